"""Kernels along an axis: cumulative reductions, argmax and argmin.

Compiled and as plain Python, they agree with the reference functions for any axis, dtype and
layout, and with NumPy up to rounding.
"""

import numpy as np
import pytest
from fuzz.executors import same_values
from hypothesis import given
from hypothesis import strategies as st
from primitives.own_kernels import (
    DTYPES,
    OperandView,
    check_op,
    distinct_values,
    draw_settings,
    draw_view,
    is_near,
)

from accnp.ir.op import OPS


@st.composite
def lines(draw, least=0):
    """Draw a shape and an axis; the axis or the trailing axes may be long."""
    shape = [draw(st.integers(least, 4)) for _ in range(draw(st.integers(1, 3)))]
    axis = draw(st.integers(0, len(shape) - 1))
    shape[draw(st.sampled_from([axis, -1]))] = draw(st.integers(least, 300))
    if draw(st.booleans()):
        shape[axis] = draw(st.integers(least, 21))
    return tuple(shape), axis


FOLDS = {
    "cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("op", FOLDS)
@draw_settings(12)
@given(st.data(), lines())
def test_cumulative(op, data, line):
    shape, axis = line
    draw = data.draw
    kinds = "iuf" if op in ("cummax", "cummin") else "iufc"
    dtype = draw(st.sampled_from([d for d in DTYPES if np.dtype(d).kind in kinds]))
    x = draw_view(draw, distinct_values(draw, shape, dtype))
    reverse = draw(st.booleans())
    params = {"axis": axis, "reverse": reverse}
    check_op(op, [x], params, same_values if op in ("cummax", "cummin") else is_near)
    value = np.flip(x.value, axis) if reverse else x.value
    with np.errstate(all="ignore"):
        expected = FOLDS[op].accumulate(value, axis=axis, dtype=dtype)
        actual = OPS[op].numpy(x.value, **params)
    expected = np.flip(expected, axis) if reverse else expected
    eps = np.finfo(dtype).eps if np.dtype(dtype).kind in "fc" else 0
    scale = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0)) * 300
    np.testing.assert_allclose(actual, expected, rtol=300 * eps, atol=eps * scale)


@draw_settings(12)
@given(st.data(), lines())
def test_cumlogsumexp(data, line):
    shape, axis = line
    draw = data.draw
    dtype = draw(st.sampled_from(["f4", "f8"]))
    x = distinct_values(draw, shape, dtype) * draw(st.sampled_from([1, 300]))
    if x.size and draw(st.booleans()):
        x.flat[0], x.flat[-1] = -np.inf, draw(st.sampled_from([np.inf, -np.inf]))
    eps = np.finfo(dtype).eps

    def close(a, b):
        return np.allclose(a, b, rtol=8 * eps, atol=8 * eps, equal_nan=True)

    params = {"axis": axis, "reverse": draw(st.booleans())}
    check_op("cumlogsumexp", [draw_view(draw, x)], params, close)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@draw_settings(15)
@given(st.data(), lines(1))
def test_argmax_and_argmin(op, data, line):
    shape, axis = line
    draw = data.draw
    dtype = draw(st.sampled_from([d for d in DTYPES if "c" not in d]))
    x = distinct_values(draw, shape, dtype)
    if dtype[0] != "?" and draw(st.booleans()):  # ties, and more than one NaN
        x = np.where(x > 0, x.dtype.type(1), x)
    params = {"axes": (axis,), "index_dtype": np.dtype(draw(st.sampled_from(["i4", "i8", "u1"])))}
    check_op(op, [draw_view(draw, x)], params)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f4", "i2", "?"])
def test_argmax_in_few_long_lines(op, dtype):
    """Parts of a row are reduced separately; among equal values, and among NaNs, the first one
    counts."""
    rng = np.random.default_rng(5)
    x = rng.integers(-90, 90, (3, 100_001)).astype("f4" if dtype != "i2" else dtype)
    x[1, [70_000, 32_768, 99_999]] = 95 if op == "argmax" else -95
    x[2, :] = 0
    if dtype == "f4":
        x[0, [40_000, 40_001, 99_999]] = np.nan
    x = x > 94 if dtype == "?" else x
    for value, axis in ((x, 1), (x[0], 0), (np.stack([x[1], x[2]]), 1)):
        params = {"axes": (axis,), "index_dtype": np.dtype("i4")}
        check_op(op, [OperandView(value)], params)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u8", "?"])
def test_argmax_in_many_short_lines(op, dtype):
    """Rows are transposed in tiles: no tile, partial and full tiles, and more than one tile."""
    rng = np.random.default_rng(6)
    for lines, n in ((16, 3), (300, 5), (129, 16), (40, 17), (257, 64)):
        x = rng.integers(0, 3, (lines, n)).astype(dtype)
        if dtype[0] == "f":
            x[:: n - 1, n // 2 :] = np.nan
            x[x == 0] = -0.0
        for value, axis in ((x, 1), (x[:, ::-1], 1), (x.T, 0), (x.reshape(1, lines, n), 2)):
            params = {"axes": (axis,), "index_dtype": np.dtype("i4")}
            check_op(op, [OperandView(value)], params)


def test_sums_keep_their_digits():
    """With 1e6 float32 summands, the error does not grow with the number of summands."""
    x = np.full(1_000_000, 0.1, np.float32)
    actual = OPS["cumsum"].numpy(x, axis=0)
    expected = np.cumsum(x.astype(np.float64))
    assert np.max(np.abs(actual - expected) / expected) < 1e-7


@draw_settings(15)
@given(st.data())
def test_gcd(data):
    draw = data.draw
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    dtype = draw(st.sampled_from(["i1", "i4", "i8", "u1", "u8"]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    a, b = (distinct_values(draw, shape, dtype) for _ in range(2))
    b = np.where(rng.random(shape) < 0.2, b.dtype.type(0), b)
    check_op("gcd", [draw_view(draw, a), draw_view(draw, b)], {})
