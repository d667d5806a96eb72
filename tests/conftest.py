"""What all tests share: the compiler checks its own work; four CPU devices, here and in jax."""

import os
import sys

import pytest

os.environ.setdefault("ACCNP_NUM_CPU_DEVICES", "4")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

from accnp.config import config, scoped
from accnp.engine import watch
from accnp.runtime import device


@pytest.fixture(autouse=True, scope="session")
def _checks():
    """Programs, kernels and plans are verified as they are made."""
    config.update("enable_checks", True)
    yield
    config.update("enable_checks", False)


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
