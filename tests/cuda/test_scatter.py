"""Scatters of narrow rows on a GPU: by atomic updates if their order does not matter, otherwise by
threads that own elements of the result. Results match the CPU bitwise.
"""

import numpy as np
import pytest
from cuda.support import same_bits

import accnp as jax
import accnp.numpy as jnp

RNG = np.random.default_rng(0)
ROWS = RNG.integers(-60, 60, 80).astype("i4")  # each place several times, some outside
WAYS = ("add", "min", "max", "set", "multiply")


def draw(dtype, shape):
    if jnp.issubdtype(dtype, np.inexact):
        return np.asarray(jnp.asarray(RNG.standard_normal(shape) * 50).astype(dtype))
    return RNG.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "int8", "float32", "bfloat16", "bool"])
@pytest.mark.parametrize("width", [(), (3,)])
def test_results_match_cpu_bitwise(dtype, width, gpu):
    with jax.enable_x64(True):
        x, rows = draw(dtype, (50, *width)), draw(dtype, (80, *width))

        def f(x, i, u):
            fresh = jnp.zeros(x.shape, x.dtype)
            return [getattr(start.at[i], way)(u) for way in WAYS for start in (x, fresh)]

        expected = jax.jit(f)(x, ROWS, rows)
        actual = jax.jit(f)(*[jax.device_put(jnp.asarray(v), gpu) for v in (x, ROWS, rows)])
        for k, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert same_bits(np.asarray(a), np.asarray(b)).all(), WAYS[k // 2]


@pytest.mark.parametrize(("dtype", "atomics"), [("int32", 1), ("float32", 0), ("int8", 0)])
def test_threads_share_updates(dtype, atomics, fake):
    arrays = [np.zeros(50, dtype), ROWS, np.ones(80, dtype)]
    there = [jax.device_put(x, jax.devices("gpu")[0]) for x in arrays]
    kernels = jax.inspect(jax.jit(lambda x, i, u: x.at[i].add(u)))(*there).kernels
    (kernel,) = [k for k in kernels if "atomic_" in k.source or "from_" in k.source]
    assert len([x for x in kernel.ptx.split("\n") if "atom." in x or "red." in x]) == atomics
    assert kernel.extent == (80 if atomics else 50)
