"""Which GPU the tests of this folder use: a fake one, or with ACCNP_TEST_GPU=1 the machine's."""

import os
from contextlib import contextmanager

import pytest
from cuda import host_cupy
from cuda.assembler import ptxas, refused
from cuda.fake import gpus

import accnp
from accnp.caches import BoundedCache
from accnp.compiler import ptx
from accnp.compiler.llvm.scalars import units

cuda = host_cupy.cuda  # a driver of the real kind over a stand-in for CuPy
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


@pytest.fixture(scope="module", autouse=True)
def _assembled():
    """NVIDIA's assembler takes all PTX that the tests of a module have made."""
    with _taken():
        yield


@pytest.fixture(scope="module")
def one_form():
    """Functions are computed as on the processor, without the units of GPUs, so that whole kernels
    can be held against its bits; such texts stay off the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ptx, "_found", BoundedCache("kernel_cache_size"))
        patch.setattr(ptx, "disk_cache", lambda: None)
        patch.setattr(units, "own", lambda x: False)
        with _taken():
            yield


@contextmanager
def _taken():
    before = set(ptx._found)
    yield
    if not REAL and ptxas():
        made = {p.text for key, p in ptx._found.items() if key not in before}
        assert refused(sorted(made)) == []
