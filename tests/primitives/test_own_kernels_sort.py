"""Kernels of sort, top_k and searchsorted agree with the reference functions, compiled and as plain
Python; the reference functions agree with NumPy's stable sort.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from fuzz.executors import same_bits
from hypothesis import given
from hypothesis import strategies as st
from primitives.own_kernels import (
    DTYPES,
    OperandView,
    check_op,
    distinct_values,
    draw_settings,
    draw_view,
    plan_op,
    run_native,
)

from accnp.compiler.library.sorts import long_sorts, searches, shared_sorts, short_sorts
from accnp.ir.op import OPS


def drawn(draw, shape, dtypes=DTYPES):
    """Draw values with ties, zeros of both signs, NaN and infinities."""
    x = distinct_values(draw, shape, draw(st.sampled_from(dtypes)))
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
    """Draw a shape with few rows, and an axis."""
    shape = [draw(st.integers(least, 3)) for _ in range(draw(st.integers(1, 3)))]
    axis = draw(st.integers(0, len(shape) - 1))
    shape[axis] = draw(st.sampled_from([*range(least, 24), 31, 32, 33, 64, 100, 200]))
    return tuple(shape), axis


@draw_settings(15)
@given(st.data(), lines())
def test_sort(data, line):
    shape, axis = line
    draw = data.draw
    count = draw(st.sampled_from([1, 1, 2, 3]))
    operands = [draw_view(draw, drawn(draw, shape)) for _ in range(count)]
    params = {"dimension": axis, "is_stable": True, "num_keys": draw(st.integers(1, count))}
    # Many elements are sorted as integers of 64 bits, which hold a key and its position.
    few = int(np.prod(shape)) <= short_sorts.MOST and shape[axis] <= short_sorts.LONGEST
    dtype = operands[0].value.dtype
    one_word = dtype.kind != "c" and (count == 1 or dtype.itemsize <= 4)
    check_op("sort", operands, params, kernels=few or (params["num_keys"] == 1 and one_word))


KEYS = [d for d in DTYPES if "c" not in d]
NARROW = [d for d in KEYS if np.dtype(d).itemsize <= 4]


@draw_settings(12)
@given(st.data(), lines(), st.sampled_from([1, 2, 3, 4]))
def test_long_sort(data, line, threads):
    """Run every step of long sorts, with small sizes in place of the large ones."""
    shape, axis = line
    draw = data.draw
    count = draw(st.sampled_from([1, 1, 2, 3]))
    operands = [draw_view(draw, drawn(draw, shape, KEYS if count == 1 else NARROW))]
    operands += [draw_view(draw, drawn(draw, shape)) for _ in range(count - 1)]
    params = {"dimension": axis, "is_stable": True, "num_keys": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(short_sorts, "LONGEST", -1)
        patch.setattr(long_sorts, "SHARED", 12)
        patch.setattr(shared_sorts, "BLOCK", 8)
        patch.setattr(shared_sorts, "SAMPLE", 16)
        patch.setattr(long_sorts, "config", SimpleNamespace(threads=threads))
        check_op("sort", operands, params, kernels=bool(np.prod(shape)))


def test_long_lines_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100_000).astype("f4")
    x[::7], x[::11], x[::13] = 0.0, -0.0, np.nan
    place = np.arange(x.size, dtype=np.int32)
    expected, order = np.sort(x, kind="stable"), np.argsort(x, kind="stable")
    params = {"dimension": 0, "is_stable": True, "num_keys": 1}
    for threads in (1, 2, 3, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(long_sorts, "config", SimpleNamespace(threads=threads))
            (actual,) = run_native(plan_op("sort", [OperandView(x)], params), [OperandView(x)])
            both = [OperandView(x), OperandView(place)]
            follows = run_native(plan_op("sort", both, params), both)[1]
        assert same_bits(actual, expected)
        np.testing.assert_array_equal(follows, order)


RNG = np.random.default_rng(0)
LISTS = {
    "all different": RNG.permutation(5000),
    "few": RNG.integers(0, 3, 5000),
    "all one": np.full(5000, 7),
    "mostly one": np.where(RNG.random(5000) < 0.01, RNG.integers(-9, 99, 5000), 7),
    "sorted": np.arange(5000),
    "the ends": RNG.choice([-(2**31), 2**31 - 1, 0], 5000),
}


@pytest.mark.parametrize("dtype", ["i4", "f4", "i8"])
@pytest.mark.parametrize("name", LISTS)
def test_bucket_distribution(name, dtype):
    """As plain Python in any case, and compiled where NumPy's sort of long arrays is slow."""
    x = LISTS[name].astype(dtype)
    if dtype == "f4":
        x[::9] = np.nan
    params = {"dimension": 0, "is_stable": True, "num_keys": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_sorts, "SHARED", 12)
        patch.setattr(long_sorts, "config", SimpleNamespace(threads=2))
        check_op("sort", [OperandView(x)], params)
        if dtype != "i8":
            check_op("sort", [OperandView(x), OperandView(np.arange(5000, dtype="i4"))], params)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_zeros_of_many_lines_keep_their_order(dtype, axis):
    x = np.random.default_rng(0).integers(-3, 4, (300, 700)).astype(dtype)
    x[::3, ::7] *= -1  # zeros of both signs
    x[5, 9] = np.nan
    params = {"dimension": axis, "is_stable": True, "num_keys": 1}
    (actual,) = run_native(plan_op("sort", [OperandView(x)], params), [OperandView(x)])
    assert same_bits(actual, np.sort(x, axis, kind="stable"))


@draw_settings(15)
@given(st.data(), lines(1))
def test_top_k(data, line):
    shape, axis = line
    draw = data.draw
    x = draw_view(draw, drawn(draw, shape, [d for d in DTYPES if "c" not in d]))
    check_op("top_k", [x], {"k": draw(st.integers(0, shape[axis])), "axis": axis})


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u4", "i8", "u8", "u1"])
@pytest.mark.parametrize(("n", "k"), [(128, 32), (300, 33), (1100, 5), (2200, 1)])
def test_top_k_of_long_lines(dtype, n, k):
    rng = np.random.default_rng(n)
    info = None if dtype[0] == "f" else np.iinfo(dtype)
    x = rng.normal(size=(2, n)) if info is None else rng.integers(info.min, info.max, (2, n), dtype)
    x = x.astype(dtype)
    x[1, n // 2 :] = x[1, 7]  # ties
    if dtype[0] == "f":
        x[0, 5:60] = -np.inf
        x[0, [3, n - 1]], x[1, 70:90] = np.nan, np.nan
        x[0, [1, 100]], x[1, 91:95] = -np.nan, [-0.0, 0.0, -0.0, 0.0]
    check_op("top_k", [OperandView(x)], {"k": k, "axis": 1})


@draw_settings(20)
@given(st.data(), st.booleans())
def test_search(data, tree):
    draw = data.draw
    dtype = [draw(st.sampled_from(KEYS))]
    sizes = [16, 17, 31, 33, 100, 255, 256, 257, 300, 700] if tree else [0, 1, 2, 3, 7, 16, 33, 70]
    a = np.sort(drawn(draw, (draw(st.sampled_from(sizes)),), dtype))
    v = drawn(draw, tuple(draw(st.lists(st.integers(0, 9), max_size=2))), dtype)
    side = draw(st.sampled_from(["left", "right"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "LEAST", 16 if tree else 1 << 40)
        patch.setattr(searches, "SHARE", 1 << 40)
        plan = check_op("searchsorted", [draw_view(draw, a), draw_view(draw, v)], {"side": side})
    assert len(plan.steps) >= 1 + (tree and v.size > 0)


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
    order = OPS["sort"].numpy(x, place.astype(np.int32), **params)[1]
    np.testing.assert_array_equal(order, np.argsort(x, axis, kind="stable"))
