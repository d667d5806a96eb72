"""Devices behave like JAX's, and errors name a missing platform. The test suite runs with four
devices (see conftest.py).
"""

import copy
import os
import pickle
import subprocess
import sys

import jax
import pytest

from accnp.config import config
from accnp.runtime import device


def test_device_functions_match_jax():
    ours, theirs = device.devices(), jax.devices()
    assert len(ours) == 4
    assert [*map(repr, ours)] == [*map(repr, theirs)]
    assert [*map(str, ours)] == [*map(str, theirs)]
    for name in ("platform", "id", "device_kind", "process_index", "host_id", "local_hardware_id"):
        assert [getattr(d, name) for d in ours] == [getattr(d, name) for d in theirs]
    assert device.devices("cpu") == device.local_devices() == ours
    assert device.device_count() == device.local_device_count("cpu") == jax.device_count()
    assert device.default_backend() == jax.default_backend()
    for d in ours:
        assert pickle.loads(pickle.dumps(d)) is copy.deepcopy(d) is d


@pytest.mark.parametrize("function", [device.devices, device.device_count])
def test_a_missing_platform(function):
    with pytest.raises(RuntimeError, match=r"'tpu' is not available: accnp has no kernels.*cpu"):
        function("tpu")
    with pytest.raises(RuntimeError, match=r"'abacus' is not available: the platform is unknown"):
        function("abacus")
    with pytest.raises(ValueError, match="there are processes 0 to 0; got process_index=3"):
        device.local_devices(3)


@pytest.mark.parametrize("name", ["tpu", "abacus,cpu"])
def test_a_default_that_is_missing(name):
    program = """
import accnp
try: accnp.default_backend()
except RuntimeError as error: print(error)
"""
    output = in_a_process(program, **os.environ | {"ACCNP_PLATFORM": name})
    first = name.split(",")[0]
    message = f"default_backend: Unknown backend {first}: backend '{first}' is not available"
    assert output.startswith(message)


@pytest.mark.parametrize("name", ["num_cpu_devices", "jax_num_cpu_devices"])
def test_device_count_is_fixed_by_first_use(name):
    jax.devices()
    device.devices()
    config.update(name, 4)  # as it is
    for m in (jax.config, config):
        with pytest.raises(RuntimeError, match=r"num_cpu_devices"):
            m.update("jax_num_cpu_devices", 3)
    assert config.num_cpu_devices == 4
    with pytest.raises(ValueError, match="at least 1"):
        config.update(name, 0)


def in_a_process(program, **environment):
    """Return what a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_device_counts():
    count = "import accnp; print(accnp.device_count(), accnp.ones(2).device)"
    assert in_a_process(count) == "1 cpu:0"
    assert in_a_process(count, ACCNP_NUM_CPU_DEVICES="3") == "3 cpu:0"
    before = (
        "import accnp; x = accnp.ones(2) + 1; accnp.config.update('num_cpu_devices', 2);"
        "print(accnp.local_device_count(), accnp.devices()[1])"
    )
    assert in_a_process(before) == "2 cpu:1"
