"""Devices look like jax's, and a missing platform says what is missing."""

import copy
import pickle

import pytest

from accnp.runtime import device


def test_the_cpu():
    (cpu,) = device.devices()
    assert repr(cpu) == "CpuDevice(id=0)"
    assert str(cpu) == "TFRT_CPU_0"
    assert (cpu.platform, cpu.id, cpu.device_kind, cpu.process_index) == ("cpu", 0, "cpu", 0)
    assert device.devices("cpu") == device.local_devices() == [cpu]
    assert device.device_count() == device.local_device_count("cpu") == 1
    assert device.default_backend() == "cpu"
    assert pickle.loads(pickle.dumps(cpu)) is copy.deepcopy(cpu) is cpu


@pytest.mark.parametrize("function", [device.devices, device.device_count])
def test_a_missing_platform(function):
    with pytest.raises(RuntimeError, match=r"'gpu' is not available: accnp has no kernels.*cpu"):
        function("gpu")
    with pytest.raises(RuntimeError, match=r"'abacus' is not available: no such platform"):
        function("abacus")
    with pytest.raises(ValueError, match="one process"):
        device.local_devices(3)
