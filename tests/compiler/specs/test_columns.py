"""Reductions of columns: the order of summation, and special values such as nan and -0.0."""

from __future__ import annotations

import numpy as np
import pytest

import accnp as jnp
from accnp.ir.kernel import ROWS

SHAPES = [(1, 64), (3, 100), (511, 33), (512, 17), (513, 130), (1030, 65), (2, 2100)]


def in_order(x: np.ndarray) -> np.ndarray:
    """Sums over the first axis: rows in turn, and every `ROWS` of them in float64."""
    total = np.zeros(x.shape[1:], np.float64)
    for first in range(0, len(x), ROWS):
        part = np.zeros(x.shape[1:], x.dtype)
        for row in x[first : first + ROWS]:
            part = part + row
        total = total + part
    return total.astype(x.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_columns_have_the_bits_of_their_order(shape, dtype):
    x = (np.random.default_rng(0).normal(size=shape) * 100).astype(dtype)
    with jnp.enable_x64(True):
        actual = np.asarray(jnp.asarray(x).sum(0))
    assert actual.tobytes() == in_order(x).tobytes()


def test_a_sum_and_its_elements_are_one_kernel():
    x = np.random.default_rng(0).normal(size=(1030, 65)).astype(np.float32)

    @jnp.jit
    def both(x):
        y = x * x
        return y, y.sum(0)

    y, total = both(x)
    assert np.asarray(y).tobytes() == (x * x).tobytes()
    assert np.asarray(total).tobytes() == in_order(x * x).tobytes()


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_sums_of_several_axes(axis):
    x = np.random.default_rng(0).integers(-50, 50, (30, 40, 50))
    expected = x.sum(axis).astype(np.float32)  # exact
    assert np.array_equal(jnp.asarray(x.astype(np.float32)).sum(axis), expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint32", "bool"])
@pytest.mark.parametrize("shape", [(5, 40), (600, 33)])
def test_columns_of_whole_numbers(shape, dtype):
    x = np.random.default_rng(0).integers(0, 90, shape).astype(dtype)
    a = jnp.asarray(x)
    assert np.array_equal(a.sum(0), x.sum(0))
    assert np.array_equal(a.max(0), x.max(0))
    assert np.array_equal(a.min(0), x.min(0))
    assert np.array_equal((a > 3).all(0), (x > 3).all(0))
    assert np.array_equal((a > 80).any(0), (x > 80).any(0))


@pytest.mark.parametrize("step", [1, -1, 2, 5])
def test_columns_with_nan_and_infinity(step: int):
    x = np.random.default_rng(0).normal(size=(600, 200)).astype(np.float32)
    x[::7, 3], x[5, 15], x[:, 25] = np.nan, np.inf, -np.inf
    x = x[:, ::step]
    a = jnp.asarray(x)
    assert np.array_equal(a.max(0), x.max(0), equal_nan=True)
    assert np.array_equal(a.min(0), x.min(0), equal_nan=True)
    assert np.array_equal(np.isfinite(a.sum(0)), np.isfinite(x.sum(0)))


@pytest.mark.parametrize("shape", [(513, 70), (600, 17), (30, 300), (520, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, bool])
def test_contiguous_columns(shape, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 40, s).astype(dtype) for s in (shape[::-1], shape))

    def folds(x, y):
        return x.T.sum(0), x.T.max(0), (x.T & y if dtype is bool else x.T * y).sum(0)

    with jnp.enable_x64(True):
        actual = jnp.jit(folds)(jnp.asarray(x), jnp.asarray(y))
    for mine, expected in zip(actual, folds(x, y), strict=True):
        assert np.array_equal(mine, expected)


@pytest.mark.parametrize("shape", [(513, 70), (1030, 20)])
def test_layouts_do_not_change_a_bit(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    a, b = jnp.asarray(x), jnp.asarray(np.ascontiguousarray(x.T))
    ways = [lambda x: x.sum(0), lambda x: (x * x).sum(0), lambda x: jnp.tanh(x).min(0)]
    for way in ways:
        expected = np.asarray(jnp.jit(way)(a))
        actual = np.asarray(jnp.jit(lambda y, way=way: way(y.T))(b))
        assert actual.tobytes() == expected.tobytes()
    both = np.asarray(jnp.jit(lambda y, x: (y.T * x).sum(0))(b, a))
    assert both.tobytes() == in_order(x * x).tobytes()
