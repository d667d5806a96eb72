"""Slices that begin anywhere in a cache line: long loops peel iterations up to the next line.

The results are compared with NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import accnp as jnp

DTYPES = ("float32", "float64", "float16", "int8", "int16", "int64", "bool", "complex64")
# Around sixteen vectors of each size, and far beyond.
LENGTHS = (1, 15, 127, 128, 129, 143, 257, 511, 1024, 1039, 5003)


def averaged(b: Any, a: Any, start: int, length: int) -> Any:
    """Return the sums of neighbors, stored from `start` on."""
    near = a[start : start + length]
    return b.at[start : start + length].set((near + a[start + 1 : start + 1 + length]) * near)


def expected(b: np.ndarray, a: np.ndarray, start: int, length: int) -> np.ndarray:
    b = b.copy()
    near = a[start : start + length]
    b[start : start + length] = (near + a[start + 1 : start + 1 + length]) * near
    return b


@pytest.mark.parametrize("dtype", DTYPES)
def test_unaligned_slices(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 3, 5200).astype(dtype) for _ in range(2))
    step = jnp.jit(averaged, static_argnums=(2, 3))
    with jnp.enable_x64(True):
        x, y = jnp.asarray(a), jnp.asarray(b)
        for length in LENGTHS:
            for start in (0, 1, 3, 8, 63, 64, 65):
                reference = expected(b, a, start, length)
                np.testing.assert_array_equal(step(y, x, start, length), reference)
                np.testing.assert_array_equal(averaged(y, x, start, length), reference)


@pytest.mark.parametrize("offset", [0, 1, 5, 17])
def test_unaligned_foreign_memory(offset: int) -> None:
    values = np.arange(4100, dtype=np.float32)[offset : offset + 4000]
    x = jnp.asarray(values)
    np.testing.assert_array_equal(x * 2 + 1, values * 2 + 1)
    rows = x.reshape(8, 500)
    reference = values.reshape(8, 500).copy()
    reference[1:-1, 3:-2] = reference[:-2, 3:-2] + reference[2:, 3:-2]
    actual = jnp.jit(lambda r: r.at[1:-1, 3:-2].set(r[:-2, 3:-2] + r[2:, 3:-2]))(rows)
    np.testing.assert_array_equal(actual, reference)


def test_unaligned_slices_in_loops() -> None:
    a = np.random.default_rng(0).normal(size=3200).astype(np.float32)
    for start in (1, 2, 15, 16):
        b, c = a.copy(), 2 * a
        x, y = jnp.asarray(b), jnp.asarray(c)

        def step(_: Any, pair: Any, start: int = start) -> Any:
            x, y = pair
            y = y.at[start:-1].set(x[start - 1 : -2] + x[start:-1])
            return x.at[start:-1].set(y[start - 1 : -2] + y[start:-1]), y

        x, y = jnp.lax.fori_loop(0, 5, step, (x, y))
        for _ in range(5):
            c[start:-1] = b[start - 1 : -2] + b[start:-1]
            b[start:-1] = c[start - 1 : -2] + c[start:-1]
        np.testing.assert_array_equal(x, b)
        np.testing.assert_array_equal(y, c)
