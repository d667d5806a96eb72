"""Fixtures that choose the GPU of these tests: a fake one, or the real one if ACCNP_TEST_GPU=1."""

import os
from contextlib import contextmanager

import pytest
from cuda import host_cupy
from cuda.assembler import assembler_errors, ptxas
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
    """A GPU, real or fake. The driver of a fake GPU is `gpu.fake`."""
    if REAL:
        yield accnp.devices("gpu")[0]
        return
    with gpus():
        yield accnp.devices("gpu")[0]


@pytest.fixture
def fake():
    """The driver of a fake GPU, whether or not the machine has a real one."""
    with gpus() as (driver,):
        yield driver


@pytest.fixture(scope="module", autouse=True)
def _assembled():
    """Assemble all PTX that the tests of a module have generated with NVIDIA's assembler."""
    with _assembling():
        yield


@pytest.fixture(scope="module")
def cpu_formulas():
    """Use the CPU's formulas in GPU kernels, without approximate instructions, so that results can
    be compared bitwise. These kernels are not stored in the disk cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ptx, "_ptx_cache", BoundedCache("kernel_cache_size"))
        patch.setattr(ptx, "disk_cache", lambda: None)
        patch.setattr(units, "has_units", lambda x: False)
        with _assembling():
            yield


@contextmanager
def _assembling():
    before = set(ptx._ptx_cache)
    yield
    if not REAL and ptxas():
        generated = {p.text for key, p in ptx._ptx_cache.items() if key not in before}
        assert assembler_errors(sorted(generated)) == []
