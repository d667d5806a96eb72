"""What all tests share: the compiler checks its own work; four CPU devices, here and in jax."""

import os
import sys
from zlib import crc32

import pytest

os.environ.setdefault("ACCNP_NUM_CPU_DEVICES", "4")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

from accnp.compiler import background_compile
from accnp.config import config, scoped
from accnp.engine import watch
from accnp.runtime import device


def pytest_collection_modifyitems(config, items):
    """ACCNP_TEST_EIGHTH=k, of 0 to 7: only an eighth of the tests, which their names say."""
    eighth = os.environ.get("ACCNP_TEST_EIGHTH")
    if eighth is not None:
        left = [x for x in items if crc32(x.nodeid.encode()) % 8 != int(eighth)]
        config.hook.pytest_deselected(items=left)
        items[:] = [x for x in items if crc32(x.nodeid.encode()) % 8 == int(eighth)]


@pytest.fixture(autouse=True, scope="session")
def _checks():
    """Programs, kernels and plans are verified as they are made."""
    config.update("enable_checks", True)
    yield
    config.update("enable_checks", False)


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
