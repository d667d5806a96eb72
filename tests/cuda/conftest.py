"""Which GPU the tests of this folder use: a fake one, or with ACCNP_TEST_GPU=1 the machine's."""

import os

import pytest
from cuda.fake import gpus

import accnp

REAL = os.environ.get("ACCNP_TEST_GPU") == "1"


def pytest_sessionstart():
    if REAL:  # say once what is missing
        try:
            accnp.devices("gpu")
        except RuntimeError as error:
            pytest.exit(f"ACCNP_TEST_GPU=1 asks for a GPU; {error}", 3)


@pytest.fixture(scope="module")
def gpu():
    """A GPU; of a fake one, the driver is `gpu.fake`."""
    if REAL:
        yield accnp.devices("gpu")[0]
        return
    with gpus():
        yield accnp.devices("gpu")[0]


@pytest.fixture
def fake():
    """The driver of a fake GPU of its own, whatever the machine has."""
    with gpus() as (made,):
        yield made
