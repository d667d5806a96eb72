"""Kernels of sort, top_k and searchsorted: compiled and as plain Python, they equal the reference
functions; and those equal NumPy's stable sort."""

import numpy as np
import pytest
from fuzz.ways import same_bits
from hypothesis import given
from hypothesis import strategies as st
from primitives.own_kernels import DTYPES, check, filled, many, shown

from accnp.ir.op import OPS


def drawn(draw, shape, dtypes=DTYPES):
    """Values with ties, zeros of both signs, NaN and infinities among them."""
    x = filled(draw, shape, draw(st.sampled_from(dtypes)))
    if x.dtype.kind != "b" and x.size:
        rng = np.random.default_rng(draw(st.integers(0, 1000)))
        few = [0, 1] if x.dtype.kind in "iu" else [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, -np.nan]
        some = np.array(few, x.dtype)[rng.integers(0, len(few), x.shape)]
        x = np.where(rng.random(x.shape) < draw(st.sampled_from([0.1, 0.5, 1])), some, x)
        if x.dtype.kind == "c":
            x.imag = np.where(rng.random(x.shape) < 0.3, np.nan, x.imag)
    return x


@st.composite
def lines(draw, least=0):
    """A shape and an axis, of few lines."""
    shape = [draw(st.integers(least, 3)) for _ in range(draw(st.integers(1, 3)))]
    axis = draw(st.integers(0, len(shape) - 1))
    shape[axis] = draw(st.sampled_from([*range(least, 24), 31, 32, 33, 64, 100, 200]))
    return tuple(shape), axis


@many(30)
@given(st.data(), lines())
def test_sort(data, line):
    shape, axis = line
    draw = data.draw
    count = draw(st.sampled_from([1, 1, 2, 3]))
    operands = [shown(draw, drawn(draw, shape)) for _ in range(count)]
    params = {"dimension": axis, "is_stable": True, "num_keys": draw(st.integers(1, count))}
    check("sort", operands, params)


@many(30)
@given(st.data(), lines(1))
def test_top(data, line):
    shape, axis = line
    draw = data.draw
    x = shown(draw, drawn(draw, shape, [d for d in DTYPES if "c" not in d]))
    check("top_k", [x], {"k": draw(st.integers(0, shape[axis])), "axis": axis})


@many(30)
@given(st.data())
def test_search(data):
    draw = data.draw
    dtype = [draw(st.sampled_from([d for d in DTYPES if "c" not in d]))]
    a = np.sort(drawn(draw, (draw(st.integers(0, 70)),), dtype))
    v = drawn(draw, tuple(draw(st.lists(st.integers(0, 9), max_size=2))), dtype)
    side = draw(st.sampled_from(["left", "right"]))
    check("searchsorted", [shown(draw, a), shown(draw, v)], {"side": side})


@pytest.mark.parametrize("n", [5, 40, 3000])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [*[d for d in DTYPES if "c" not in d], "f2"])
def test_reference_is_stable(dtype, axis, n):
    rng = np.random.default_rng(n)
    shape = (n, 3) if axis == 0 else (3, n)
    x = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
    if dtype == "?":
        x = rng.random(shape) < 0.5
    else:
        few = np.array([0, 1] if np.dtype(dtype).kind in "iu" else [0.0, -0.0, np.nan], dtype)
        x = np.where(rng.random(shape) < 0.3, rng.choice(few, shape), x)
    params = {"dimension": axis, "is_stable": True, "num_keys": 1}
    place = np.broadcast_to(np.arange(n).reshape(-1, *[1] * (1 - axis)), shape)
    assert same_bits(OPS["sort"].numpy(x, **params), np.sort(x, axis, kind="stable"))
    found = OPS["sort"].numpy(x, place.astype(np.int32), **params)[1]
    np.testing.assert_array_equal(found, np.argsort(x, axis, kind="stable"))
