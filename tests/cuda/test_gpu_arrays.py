"""Arrays on a GPU outside of kernels: placement, copies, inspection, and exchange with other
libraries.
"""

import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
from cuda.fake import gpus

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.config import config
from accnp.devtools.inspect.inspected_kernel import occupancy
from accnp.runtime import buffer as pool
from accnp.runtime import device

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def put_on_gpu(x, fake=None):
    return jax.device_put(np.asarray(x), jax.devices("gpu")[0])


# --- places --------------------------------------------------------------------------------------


def test_devices(fake):
    (gpu,) = jax.devices("gpu")
    assert jax.devices("cuda") == [gpu] == jax.local_devices(backend="gpu")
    assert (repr(gpu), str(gpu), gpu.platform) == ("CudaDevice(id=0)", "cuda:0", "gpu")
    assert (gpu.device_kind, gpu.compute_capability) == ("fake", "9.0")
    assert not hasattr(jax.devices("cpu")[0], "compute_capability")
    assert jax.default_backend() == "cpu"
    assert jax.devices()[0].platform == "cpu"


def test_placement_is_checked_while_a_gpu_exists():
    before = device.gpu_possible
    with gpus():
        assert device.gpu_possible == before
        jax.devices("gpu")
        assert device.gpu_possible
        with jax.default_device("cpu"):
            pass
        assert device.gpu_possible
    assert device.gpu_possible == before


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("sys.modules['cupy'] = None", "CuPy cannot be imported .*pip install 'accnp.cuda.'"),
        ("fault.status = 35", "NVIDIA's driver is missing or older"),
        ("fault.status = 100", "no GPU is visible; check nvidia-smi"),
        ("fault.status = 3", "CUDA does not start .*nvidia-smi"),
    ],
)
def test_missing_driver_is_reported(before, text):
    program = f"""
import sys, types
class Fault(RuntimeError): status = 0
fault = Fault("told by CUDA")
def count(): raise fault
runtime = types.SimpleNamespace(getDeviceCount=count, CUDARuntimeError=Fault)
sys.modules["cupy"] = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
{before}
import accnp
try:
    accnp.devices("gpu")
except RuntimeError as error:
    print(error)
print(accnp.ones(2) + 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    first, second = done.stdout.splitlines()
    import re

    assert re.search("devices: backend 'gpu' is not available: .*" + text, first)
    assert second == "[2. 2.]"


def test_environment_variable_selects_the_platform():
    program = """
import accnp
for f in (accnp.default_backend, lambda: accnp.ones(2) + 1):
    try: print(f())
    except RuntimeError as e: print(e)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True,
        env=os.environ | {"ACCNP_PLATFORM": "gpu", "PYTHONPATH": REPOSITORY},
    )  # fmt: skip
    first, second = done.stdout.splitlines()
    assert first == "gpu" or first.startswith("default_backend: backend 'gpu' is not available")
    assert "not available" in second or second == "[2. 2.]"


def test_jit_accepts_device_and_backend(fake):
    gpu = jax.devices("gpu")[0]
    for how in ({"device": gpu}, {"backend": "gpu"}):
        f = jax.jit(lambda x, n: x + n, static_argnums=1, **how)
        assert f(np.ones(3), 2).devices() == {gpu}
        assert f(put_on_gpu(np.ones(3)), 2).devices() == {gpu}
    assert jax.jit(lambda: jnp.ones(2), device=gpu)().devices() == {gpu}


def test_default_device(fake):
    gpu = jax.devices("gpu")[0]
    with jax.default_device(gpu):
        x = jnp.arange(4.0) * 2
        assert x.device == gpu
        assert not x.committed
        x.block_until_ready()
    assert x.device == gpu  # where it was computed
    assert (x + 1).device == gpu
    launched = fake.calls["launch"]
    assert (jnp.arange(4.0) * 2).device.platform == "cpu"
    assert fake.calls["launch"] == launched
    config.update("platforms", "gpu,cpu")
    try:
        assert jnp.ones(2).device == gpu
        assert jax.default_backend() == "gpu"
        assert jax.devices() == [gpu]
        np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(np.ones(3)), [2, 2, 2])
        assert fake.calls["launch"] > launched
    finally:
        config.update("platforms", None)


def test_default_device_applies_to_previously_used_arrays(fake):
    """An uncommitted array stays on the device where it was used, but later uses are free to move
    it.
    """
    gpu, cpu = jax.devices("gpu")[0], jax.devices("cpu")[0]
    x, f = jnp.ones(3) * 1, jax.jit(lambda x: x + 1)
    for where in (gpu, cpu, gpu, cpu):
        with jax.default_device(where):
            assert f(x).device == (x * 2).block_until_ready().device == where
    assert f(x).device == gpu  # the default device


def test_uncommitted_values_follow_committed_ones(fake):
    x = put_on_gpu([1.0, 2.0])
    assert (x + jnp.arange(2.0) * 3).device == x.device
    assert (x + np.ones(2, "f4")).device == x.device
    np.testing.assert_array_equal(jnp.where(jnp.ones(2, bool), x, 0), [1, 2])


def test_several_devices_are_refused(fake):
    x, y = put_on_gpu([1.0]), jax.device_put(1.0, jax.devices("cpu")[0])
    for f in (lambda: x + y, lambda: jax.jit(jnp.add)(x, y), lambda: jnp.concatenate([x, y[None]])):
        with pytest.raises(ValueError, match=r"on cuda:0 and .*on cpu:0.*device_put"):
            f()
    with pytest.raises(ValueError, match="one program runs on one device"):
        jax.jit(lambda a: jax.device_put(a, jax.devices("cpu")[0]) + 1)(x).block_until_ready()


def test_data_dependent_sizes_keep_the_device_of_operands(fake):
    """The host computes the results, which are placed on the device of the operands."""
    x, gpu = put_on_gpu([3.0, 1.0, 0.0, 1.0]), jax.devices("gpu")[0]
    for outputs in (
        jnp.unique(x), jnp.unique(x, return_index=True, return_counts=True), jnp.nonzero(x),
        jnp.argwhere(x > 1), jnp.where(x > 1), jnp.union1d(x, x[:2]), jnp.setdiff1d(x, 1.0),
        jnp.intersect1d(x, x, return_indices=True), x[x > 0],
    ):  # fmt: skip
        assert {d for y in jax.tree.leaves(outputs) for d in y.devices()} == {gpu}
    np.testing.assert_array_equal(jnp.unique(x), [0, 1, 3])
    with pytest.raises(ValueError, match=r"union1d: .*on cuda:0 and .*on cpu:0.*device_put"):
        jnp.union1d(x, jax.device_put(x, jax.devices("cpu")[0]))


def test_two_gpus():
    with gpus(2) as (first, second):
        a, b = jax.devices("gpu")
        x, y = jax.device_put(jnp.ones(3), a), jax.device_put(jnp.ones(3) * 2, b)
        with pytest.raises(ValueError, match=r"cuda:0 and .*cuda:1"):
            x + y
        np.testing.assert_array_equal(jax.device_put(x, b) + y, [3, 3, 3])
        z = jnp.arange(3.0) * 1
        for where in (a, b, a):
            with jax.default_device(where):
                assert (z + 1).block_until_ready().device == where
        assert first.calls["upload"]
        assert second.calls["launch"]


def test_pmap_of_gpus():
    x = np.arange(6, dtype="f4").reshape(2, 3)

    def share(x):
        return x / lax.psum(x, "i")

    with gpus(2):
        both = jax.devices("gpu")
        for how in ({"devices": both}, {"backend": "gpu"}, {"devices": both, "backend": "gpu"}):
            y = jax.pmap(share, "i", **how)(x)
            assert y.devices() == set(both)
            np.testing.assert_array_equal(y, x / x.sum(0))
        assert jax.pmap(share, "i", devices=both[1:])(x[:1]).devices() == {both[1]}
        with jax.default_device(both[1]):
            assert jax.pmap(share, "i")(x).devices() == set(both)
        with pytest.raises(ValueError, match=r"unknown device.*CpuDevice.*Cuda"):
            jax.pmap(share, "i", devices=jax.devices("cpu"), backend="gpu")
        with pytest.raises(ValueError, match=r"unknown device.*'gpu'.*use some of"):
            jax.pmap(share, "i", devices=["gpu"])


def test_transfer_round_trip(fake):
    gpu, cpu = jax.devices("gpu")[0], jax.devices("cpu")[0]
    x = jax.device_put(np.arange(3.0, dtype="f4"), cpu) * 2
    y = jax.device_put(x, gpu)
    assert (x.device, y.device) == (cpu, gpu)
    z = jax.device_put(y * y, cpu)
    assert z.device == cpu
    np.testing.assert_array_equal(z + x, [0, 6, 20])
    np.testing.assert_array_equal(
        jax.grad(lambda t: (jax.device_put(t, gpu) ** 3).sum())(x), 3 * np.asarray(x) ** 2
    )


def test_value_is_transferred_once(fake):
    x = jnp.asarray(np.ones((40, 40), "f4"))
    y = put_on_gpu(np.ones((40, 40), "f4"))
    before = fake.calls["upload"]
    for _ in range(3):
        (x + y).block_until_ready()
    assert fake.calls["upload"] == before + 1


# --- programs ------------------------------------------------------------------------------------


def test_one_launch_for_a_chain(fake):
    x = put_on_gpu(np.linspace(0, 1, 50, dtype="f4"))
    f = jax.jit(lambda x: jnp.sin(x) * 2 + jnp.exp(-x))
    f(x)
    before = dict(fake.calls)
    f(x)
    assert fake.calls["launch"] == before["launch"] + 1
    assert fake.calls.get("copy_out", 0) == before.get("copy_out", 0)  # no value was read


def test_an_elementwise_loop_is_one_launch(fake):
    x = put_on_gpu(np.linspace(0, 1, 1500, dtype="f4"))
    f = jax.jit(lambda x: lax.fori_loop(0, 7, lambda i, c: jnp.sin(c) + 0.5, x))
    expected = x
    f(x)
    before = fake.calls["launch"]
    actual = f(x)
    assert fake.calls["launch"] == before + 1
    for _ in range(7):
        expected = jnp.sin(expected) + 0.5
    np.testing.assert_array_equal(actual, expected)


def test_unsupported_operations_run_on_the_cpu(fake):
    x = put_on_gpu([0.5, 1.5])
    np.testing.assert_allclose(
        jax.scipy.special.hyp1f1(1.0, 2.0, x) * 2, np.expm1([0.5, 1.5]) / [0.25, 0.75], rtol=1e-5
    )
    w = jnp.linalg.eigvals(put_on_gpu(np.diag([1.0, 2.0]).astype("f4")))
    assert w.device == x.device
    np.testing.assert_allclose(np.sort(np.asarray(w).real), [1, 2], rtol=1e-5)


def test_small_types_after_library_calls_are_loaded_four_at_a_time(fake):
    x = put_on_gpu(np.arange(165, dtype="u1")[::-1].reshape(5, 33))
    f = jax.jit(lambda x: jnp.sort(x, 1) ^ 3)
    np.testing.assert_array_equal(f(x), np.sort(np.asarray(x), 1) ^ 3)


def test_callbacks_and_effects(fake, capsys):
    x = put_on_gpu([1.0, 2.0])

    @jax.jit
    def f(x):
        jax.debug.print("sum {}", x.sum())
        return jax.pure_callback(lambda v: np.asarray(v) * 3, x, x) + 1

    np.testing.assert_array_equal(f(x), [4, 7])
    jax.effects_barrier()
    assert "sum 3.0" in capsys.readouterr().out


def test_nan_is_found(fake):
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jnp.log(put_on_gpu([-1.0])).block_until_ready()


def test_inspect(fake):
    f = jax.jit(lambda x: jnp.linalg.eigvals(jnp.exp(x @ x)))
    x = put_on_gpu(np.eye(2, dtype="f4"))
    seen = jax.inspect(f)(x)
    text = str(seen)
    assert "on cuda:0: " in text
    assert "product by the GPU's library" in text
    assert "on the CPU with copies of its operands" in text
    (kernel,) = seen.kernels
    assert ".target sm_90" in kernel.ptx
    assert kernel.device == x.device
    assert kernel.assembly() == kernel.ptx
    assert "blocks of" in kernel.launch
    assert kernel.facts()["occupancy"] > 0
    assert f.lower(x).compile()(x).shape == (2,)
    with pytest.raises(TypeError, match=r"compiled for .* on cuda:0; called with .* on cpu:0"):
        f.lower(x).compile()(jax.device_put(x, jax.devices("cpu")[0]))


def test_compiled_functions_stay_on_their_device(fake):
    """The device is that of the argument types, or the default at compilation."""
    gpu, y = jax.devices("gpu")[0], np.ones(3, "f4")
    f, one = jax.jit(lambda x: x * 2), jax.sharding.SingleDeviceSharding(gpu)
    struct = jax.ShapeDtypeStruct((3,), "float32", sharding=one)
    with jax.default_device(gpu):
        late = f.lower(y).compile()
    for g in (late, f.lower(struct).compile()):
        assert g(y).device == g(put_on_gpu(y)).device == gpu
    with jax.default_device(gpu):
        assert f.lower(struct.update(sharding=None)).compile()(y).device == gpu
    assert jax.inspect(lambda x: jnp.sin(x))(struct).kernels[0].device == gpu


def test_occupancy():
    full, half = 1.0, 0.5
    assert occupancy((9, 0), 256, 32, 0) == full
    assert occupancy((9, 0), 256, 33, 0) == 6 * 8 / 64  # 40 registers each
    assert occupancy((9, 0), 256, 64, 0) == half
    assert occupancy((9, 0), 32, 16, 0) == half  # 32 blocks
    assert occupancy((8, 6), 1024, 16, 0) == 32 / 48
    assert occupancy((8, 0), 128, 16, 40 << 10) == 4 * 4 / 64
    assert occupancy((12, 1), 64, 255, 0) == 4 * 2 / 48


def test_profiled_times_are_gpu_times(fake):
    f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: jax.nn.softmax(c) + c[0], x) @ y)
    x, y = put_on_gpu(np.ones(1500, "f4")), put_on_gpu(np.ones((1500, 3), "f4"))
    f(x)
    with jax.profiler.profile() as timeline:
        f(x).block_until_ready()
    steps = [e for e in timeline.events if e.kind == "step"]
    assert [e.name for e in steps] == ["scan", "dot_general"]
    assert {e.thread for e in steps} == {-1}
    assert steps[0].end <= steps[1].start
    assert all(e.seconds > 0 for e in steps)
    assert "a copy inside cuda:0 moves" in timeline.summary()
    named = [e for e in timeline.as_dict()["traceEvents"] if e["name"] == "thread_name"]
    assert "cuda:0" in [e["args"]["name"] for e in named]
    assert "a copy" in str(jax.explain(f, x))


# --- other libraries -----------------------------------------------------------------------------


class ForeignArray:
    """An array of another library on the GPU."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__()


def test_dlpack_in(fake):
    array = np.arange(6, dtype="f4").reshape(2, 3)
    x = jnp.from_dlpack(ForeignArray(array))
    assert x.device == jax.devices("gpu")[0]
    array[0, 0] = 7  # shared
    np.testing.assert_array_equal(x * 2, array * 2)
    reference = weakref.ref(array)
    del array, x
    assert jnp.from_dlpack(ForeignArray(np.ones(3)), copy=True).dtype == "float32"
    assert reference() is None
    with pytest.raises(BufferError, match="must be C-contiguous"):
        jnp.from_dlpack(ForeignArray(np.ones((3, 2), "f4").T), copy=False)
    np.testing.assert_array_equal(
        jnp.from_dlpack(ForeignArray(np.ones((3, 2), "f4").T)), np.ones((2, 3))
    )


def test_dlpack_out(fake):
    x = put_on_gpu([[1.0, 2.0]]) * 2
    assert x.__dlpack_device__() == (2, 0)
    there_is = pool.from_dlpack(CapsuleReader(x))
    np.testing.assert_array_equal(there_is, [[2, 4]])
    small = (x.astype(jnp.bfloat16)).block_until_ready()
    assert pool.from_dlpack(CapsuleReader(small)).dtype == "bfloat16"
    np.testing.assert_array_equal(np.asarray(x), [[2, 4]])


@pytest.mark.parametrize("how", ["update", "map", "donated", "donated loop"])
def test_exported_buffers_are_not_overwritten(fake, how):
    """Memory exported by DLPack is unchanged while a consumer holds it, even if our array is
    deleted or donated.
    """
    values = np.arange(1 << 19, dtype="f4")
    x = (put_on_gpu(values) + 1).block_until_ready()
    exported = pool.from_dlpack(CapsuleReader(x))
    if how == "update":
        x = x.at[3].set(70)
    elif how == "map":
        x = x * 1.5
    elif how == "donated":
        x = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    else:
        x = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c + i, x), donate_argnums=0)(x)
    x.block_until_ready()
    np.testing.assert_array_equal(exported, values + 1)
    more = [(put_on_gpu(values) * k).block_until_ready() for k in (2, 3)]
    np.testing.assert_array_equal(exported, values + 1)
    del exported, more


def test_exported_memory_lives_as_long_as_the_array(fake):
    """Reading `__cuda_array_interface__` keeps the array's memory from being reused, even if the
    array is donated.
    """
    values = np.arange(1 << 19, dtype="f4")
    x = (put_on_gpu(values) + 1).block_until_ready()
    address = x.__cuda_array_interface__["data"][0]
    y = jax.jit(lambda x: x * 2, donate_argnums=0)(x).block_until_ready()
    assert x.is_deleted()
    more = [(put_on_gpu(values) * k).block_until_ready() for k in (2, 3)]
    assert address not in [z.unsafe_buffer_pointer() for z in (y, *more)]
    before = jax.device_memory_stats()["bytes_in_use"]
    del x
    assert jax.device_memory_stats()["bytes_in_use"] == before - values.nbytes


class CapsuleReader:
    """Reads a DLPack capsule as host memory, which the memory of a fake GPU is."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **kwargs):
        return self.x.__dlpack__()


def test_cuda_array_interface(fake):
    x = put_on_gpu(np.ones((2, 3), "f4")) + 1
    interface = x.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"], interface["version"]) == ((2, 3), "<f4", 3)
    assert interface["data"] == (x.unsafe_buffer_pointer(), False)
    assert not hasattr(jnp.ones(2), "__cuda_array_interface__")
    with pytest.raises(TypeError, match="does not have this dtype; got bfloat16"):
        x.astype(jnp.bfloat16).__cuda_array_interface__  # noqa: B018

    class Theirs:
        __cuda_array_interface__ = interface

        def __array__(self, *_, **__):  # what the fake's library looks at
            return np.full((2, 3), 2, "f4")

    y = jnp.asarray(Theirs())
    assert y.device == x.device
    np.testing.assert_array_equal(x + y, np.full((2, 3), 4))
