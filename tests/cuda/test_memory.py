"""GPU memory: reuse, allocation failures, and faults in kernels."""

import numpy as np
import pytest
from cuda.fake import gpus

import accnp as jax
import accnp.numpy as jnp
from accnp.devtools.profiler.memory_profile import live_memory


def put_on_gpu(x):
    return jax.device_put(np.asarray(x), jax.devices("gpu")[0])


def test_donation_needs_no_memory(fake):
    step = jax.jit(lambda p, g: p - 0.5 * g, donate_argnums=0)
    big = np.ones((600, 600), "f4")
    p, g = put_on_gpu(big), put_on_gpu(big)
    p = step(p, g)
    used, address = fake.counts["used"], p.unsafe_buffer_pointer()
    again = step(p, g)
    assert fake.counts["used"] == used
    assert again.unsafe_buffer_pointer() == address
    assert p.is_deleted()
    assert float(again[3, 4]) == 0.0


def test_updates_in_place(fake):
    x = put_on_gpu(np.zeros((300, 1000), "f4"))
    np.asarray(x)
    x = x.at[0].set(1).block_until_ready()
    used = fake.counts["used"]
    x = x.at[1].set(2).block_until_ready()
    assert fake.counts["used"] <= used + 64
    assert float(x.sum()) == 3000
    y = put_on_gpu([1.0, 2.0])  # small values are shared: never written over
    f = jax.jit(lambda a: a.at[0].set(9), donate_argnums=0)
    np.testing.assert_array_equal(f(put_on_gpu([1.0, 2.0])), [9, 2])
    np.testing.assert_array_equal(y, [1, 2])


def test_memory_is_returned(fake):
    x = put_on_gpu(np.ones(10000, "f4"))
    used = fake.counts["used"]
    y = (x * 2).block_until_ready()
    assert fake.counts["used"] >= used + 40000
    stats = jax.device_memory_stats(x.device)
    assert stats == jax.device_memory_stats()
    with pytest.raises(ValueError, match="name a GPU"):
        jax.device_memory_stats(jax.devices("cpu")[0])
    assert stats["bytes_in_use"] >= 80000
    assert stats["bytes_limit"] == fake.total
    del y
    assert fake.counts["used"] <= used + 16  # a literal stays


def test_host_copy_needs_no_gpu(fake):
    x = (put_on_gpu(np.ones(10000, "f4")) * 2).block_until_ready()
    y = jax.device_put(x, jax.devices("cpu")[0]).block_until_ready()
    used = fake.counts["used"]
    del x
    assert fake.counts["used"] <= used - 40000
    assert float(y[0]) == 2


def test_live_arrays_are_listed(fake):
    x = put_on_gpu(np.ones(9, "f4")) + 1
    x.block_until_ready()
    assert any(x is y for y in jax.live_arrays("gpu"))
    assert not any(x is y for y in jax.live_arrays("cpu"))
    assert any("test_live_arrays_are_listed" in place for place in live_memory())


def test_no_memory_left():
    with gpus(1, 1 << 20) as (fake,):
        x = put_on_gpu(np.ones(100_000, "f4"))
        y = (x * 2).block_until_ready()
        with pytest.raises(MemoryError) as caught:
            (jnp.concatenate([x, y]) + 1).block_until_ready()
        assert fake.calls["free_all"] == 1
        text = str(caught.value)
        assert "got a request of 800000 bytes (781.2 KiB)" in text
        assert "390.6 KiB by mul" in text
        assert "390.6 KiB by arrays from the host" in text
        assert any("recorded at" in n and "test_memory.py" in n for n in caught.value.__notes__)
        del y
        np.testing.assert_array_equal((x + 1)[:2], [2, 2])  # it goes on


def test_no_memory_left_for_the_library(fake, monkeypatch):
    """A library call is repeated after the pool is emptied; if it fails again, the error names the
    call.
    """
    x = put_on_gpu(np.arange(3000, dtype="f4")[::-1].copy())
    call, failures = fake.call, [1]

    def failing(function, *arrays, **params):
        failures[0] -= 1
        if failures[0] >= 0:
            raise MemoryError("Out of memory allocating 77 bytes")
        return call(function, *arrays, **params)

    monkeypatch.setattr(fake, "call", failing)
    np.testing.assert_array_equal(jnp.sort(x), np.arange(3000))
    assert fake.calls["free_all"] == 1
    failures[0] = 9
    with pytest.raises(MemoryError) as caught:
        jnp.cumsum(x).block_until_ready()
    text = str(caught.value)
    assert "cumsum: not enough memory on cuda:0 for a call of the GPU's library" in text
    assert "got 'Out of memory allocating 77 bytes'" in text
    assert "11.72 KiB by arrays from the host" in text
    failures[0] = 0
    assert float(jnp.cumsum(x)[-1]) == 2999 * 1500


def test_gpu_fault_is_raised_by_wait(fake):
    x = put_on_gpu(np.ones(5000, "f4"))
    y = x * 3
    y.copy_to_host_async()
    fake.fault = "an illegal memory access was encountered"
    for wait in (y.block_until_ready, lambda: np.asarray(y)):
        with pytest.raises(RuntimeError, match="illegal memory access") as caught:
            wait()
        (note,) = caught.value.__notes__
        assert "the value of mul, recorded at" in note
        assert "test_gpu_fault_is_raised_by_wait" in note
    f = jax.jit(lambda x: jnp.sin(x) + 1)  # results of calls have the line of the operation
    for z in (f(x), f(x)):
        with pytest.raises(RuntimeError) as caught:
            z.block_until_ready()
        assert "the value of add, recorded at" in caught.value.__notes__[0]
        assert "(<lambda>)" in caught.value.__notes__[0]
    fake.fault = ""
    assert float(y[0]) == 3


class CudaError(RuntimeError):
    """A CUDA error, as CuPy raises it."""

    status = 700


WAYS = {
    "a launch": ("launch", lambda x: x + 1),
    "a jitted call": ("launch", jax.jit(lambda x: x * 2 + 1)),
    "a call of the library": ("call", lambda x: jnp.linalg.norm(jnp.fft.fft(x))),
    "an upload": ("upload", lambda x: put_on_gpu(np.arange(50.0))),
    "memory": ("alloc", lambda x: x + 1),
    "a look": ("wait", lambda x: x * 3),
}


@pytest.mark.parametrize("way", WAYS)
def test_gpu_is_unusable_after_a_fault(fake, monkeypatch, way):
    name, f = WAYS[way]
    x = put_on_gpu(np.ones(500, "f4"))
    f(x).block_until_ready()

    def lost(*_, **__):
        raise CudaError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    monkeypatch.setattr(fake, name, lost)
    with pytest.raises(RuntimeError, match="illegal memory access") as caught:
        np.asarray(f(x))
    notes = [note for note in caught.value.__notes__ if "restart it" in note]
    assert len(notes) == 1
    assert "CUDA_LAUNCH_BLOCKING=1" in notes[0]
    np.testing.assert_array_equal(jnp.ones(3) + 1, [2, 2, 2])  # the CPU still works
