"""What all tests share: the compiler checks its own work; four CPU devices, here and in jax."""

import gc
import os
import sys
from zlib import crc32

import pytest

os.environ.setdefault("ACCNP_NUM_CPU_DEVICES", "4")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

from accnp import engine
from accnp.compiler import background_compile, kernel_cache
from accnp.config import config, scoped
from accnp.engine import watch
from accnp.runtime import device


def pytest_collection_modifyitems(config, items):
    """ACCNP_TEST_SHARE=k/n: only the tests of one of n parts, which their names say."""
    part = os.environ.get("ACCNP_TEST_SHARE")
    if part is not None:
        k, n = map(int, part.split("/"))
        left = [x for x in items if crc32(x.nodeid.encode()) % n != k]
        config.hook.pytest_deselected(items=left)
        items[:] = [x for x in items if crc32(x.nodeid.encode()) % n == k]


def pytest_collection_finish():
    """Collect garbage among what the tests made, not among modules and collected tests: with jax,
    those are some millions of objects, and each `gc.collect` of a test would take two seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _checks():
    """Programs, kernels and plans are verified as they are made."""
    config.update("enable_checks", True)
    yield
    config.update("enable_checks", False)


@pytest.fixture
def own_cache(tmp_path):
    """An empty cache folder, for all threads: what a context manager sets holds for one thread, and
    others would find what an earlier run left in the default folder."""
    before = config.cache_dir
    config.update("cache_dir", str(tmp_path / "kernels"))
    yield
    config.update("cache_dir", before)


@pytest.fixture(autouse=True, scope="module")
def _one_tier(request):
    """ACCNP_TEST_ONE_TIER=1, for runs that find no kernels on disk: most calls of a test are over
    before the second tier of their kernel is made (a quarter of all CPU). Modules that are about it
    say `BOTH_TIERS`; kernels of processes that tests start, and long calls, have it as ever."""
    one = os.environ.get("ACCNP_TEST_ONE_TIER") == "1"
    with pytest.MonkeyPatch.context() as patch:
        if one and not getattr(request.module, "BOTH_TIERS", False):
            patch.setattr(background_compile, "optimize_later", lambda *_: None)
        yield


@pytest.fixture(autouse=True, scope="module")
def _by_llvm(request):
    """Modules about what LLVM's path alone has (tiers, kernels on disk, code symbols, non-temporal
    stores) say `BY_LLVM`, for runs with ACCNP_COMPILER=numba. Their processes get the variable."""
    before = config.compiler
    if before == "llvm" or not getattr(request.module, "BY_LLVM", False):
        yield
        return

    def compile_by(name):
        config.update("compiler", name)
        kernel_cache.clear_kernels()
        engine._plans.clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCNP_COMPILER", "llvm")
        compile_by("llvm")
        yield
        compile_by(before)


@pytest.fixture(autouse=True, scope="module")
def _forgetful_oracle():
    """What jax compiled for a module of tests is dropped after it: it takes gigabytes otherwise."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_on():
    """What keeps all later work from the short ways: the tests that count would fail then, wherever
    they run after it."""
    yield
    asked = os.environ.get("ACCNP_TEST_GPU") == "1"
    assert (list(scoped), watch.on, watch.unusual) == ([], False, False)
    assert asked or not device.reach
