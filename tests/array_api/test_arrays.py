"""Reductions, sorting, sets, shapes and indexing of arrays, compared with `array_api_strict`."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from array_api.drawing import WITH_AXES, agree, arrays, draws, several, with_axes, with_axis
from hypothesis import strategies as st

import accnp.numpy as jnp

FOLDS = {"sum": "numeric", "prod": "numeric", "max": "real", "min": "real", "mean": "inexact",
         "std": "float", "var": "float", "all": "any", "any": "any",
         "count_nonzero": "any"}  # fmt: skip


@pytest.mark.parametrize("name", FOLDS)
def test_reductions(name: str) -> None:
    @draws(with_axes(FOLDS[name], keep=st.booleans(), more=st.sampled_from([0, 1, 0.5])), 16)
    def go(drawn: Any) -> None:
        x, axes, keep, more = drawn
        if name in ("max", "min") and not x.size:
            return
        kw: dict[str, Any] = {"axis": axes, "keepdims": keep}
        if name in ("std", "var"):
            kw["correction"] = more
        if name in ("sum", "prod") and more == 1 and x.dtype.kind in "iuf":
            kw["dtype"] = np.dtype("float64")
        agree(name, x, tolerance=1e-4, **kw)

    go()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_and_argmin(name: str) -> None:
    @draws(with_axis("real", keep=st.booleans()))
    def go(drawn: Any) -> None:
        x, axis, keep = drawn
        if x.size:
            agree(name, x, axis=axis, keepdims=keep)
            agree(name, x, keepdims=keep)

    go()


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_order(name: str) -> None:
    @draws(with_axis("real", down=st.booleans()))
    def go(drawn: Any) -> None:
        x, axis, down = drawn
        agree(name, x, axis=axis, descending=down, stable=True)
        agree(name, x)

    go()


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative_reductions(name: str) -> None:
    @draws(with_axis("numeric", initial=st.booleans(), wide=st.booleans()), 16)
    def go(drawn: Any) -> None:
        x, axis, initial, wide = drawn
        kw = {"dtype": np.dtype("float64")} if wide and x.dtype.kind != "c" else {}
        agree(name, x, axis=axis, include_initial=initial, tolerance=1e-4, **kw)

    go()


@draws(with_axis("numeric", order=st.integers(0, 3)), 16)
def test_diff(drawn: Any) -> None:
    x, axis, order = drawn
    agree("diff", x, axis=axis, n=order)
    agree("diff", x, axis=axis, prepend=x, append=x)


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
def test_sets(name: str) -> None:
    draws(arrays("any"))(lambda x: agree(name, x))()


@draws(arrays("any", WITH_AXES))
def test_nonzero(x: Any) -> None:
    agree("nonzero", x)


@draws(st.tuples(arrays("integer"), arrays("integer"), st.booleans()))
def test_isin(drawn: Any) -> None:
    x, y, invert = drawn
    agree(lambda xp, a, b: ~xp.isin(a, b) if invert else xp.isin(a, b), x, y)
    agree("isin", x, 3)
    assert (jnp.isin(x, y, invert=True) == ~jnp.isin(x, y)).all()


@draws(
    st.tuples(
        arrays("real", st.tuples(st.integers(0, 5))), arrays("float64"),
        st.sampled_from(["left", "right"]),
    ), 16
)  # fmt: skip
def test_searchsorted(drawn: Any) -> None:
    x, values, side = drawn
    values = abs(values).astype(x.dtype)
    agree("searchsorted", np.sort(x), values, side=side)
    agree(lambda xp, a, v: xp.searchsorted(a, v, sorter=xp.argsort(a), side=side), x, values)
    agree("searchsorted", np.sort(x), x.dtype.type(1).item())


@draws(with_axis("any", rows=hnp.arrays("int64", st.integers(0, 4), elements=st.integers(0, 9))))
def test_take(drawn: Any) -> None:
    x, axis, rows = drawn
    size = x.shape[axis]
    rows = rows % size if size else rows[:0]
    agree("take", x, rows, axis=axis)
    agree("take", x, rows.reshape(-1, 1), axis=axis)
    if rows.size:
        agree("take", x, rows - size, axis=axis)
    if x.ndim == 1:
        agree("take", x, rows)


@draws(with_axis("any", count=st.integers(0, 4)))
def test_take_along_axis(drawn: Any) -> None:
    x, axis, count = drawn
    shape = list(x.shape)
    shape[axis] = count
    if x.shape[axis]:
        places = (np.arange(np.prod(shape)).reshape(shape) * 7) % x.shape[axis]
        agree("take_along_axis", x, places, axis=axis)


@draws(with_axis("any", other=st.integers(0, 5), by=st.integers(-3, 5)), 16)
def test_shapes(drawn: Any) -> None:
    x, axis, other, by = drawn
    other %= x.ndim
    agree("flip", x, axis=axis)
    agree("flip", x, axis=(axis,))
    agree("flip", x)
    agree("expand_dims", x, axis)
    agree("expand_dims", x, (0, -1))
    agree("moveaxis", x, axis, other)
    agree("moveaxis", x, (axis,), (other,))
    agree("permute_dims", x, tuple(reversed(range(x.ndim))))
    agree("permute_dims", x, tuple(range(-x.ndim, 0)))
    agree("repeat", x, by % 3, axis=axis)
    agree("repeat", x, 2)
    agree("repeat", x, np.arange(x.shape[axis]), axis=axis)
    agree("roll", x, by, axis=axis)
    agree("roll", x, by)
    agree("roll", x, (by, 1), axis=(axis, 0))
    for copy in (None, True):
        agree("reshape", x, (x.size, 1), copy=copy)
    agree("reshape", x, (-1,) if x.size else (0,))
    agree("tile", x, (2, by % 3))
    agree("tile", x, (2,) * (x.ndim + 1))
    agree("squeeze", x[None], 0)
    agree("squeeze", x[None, :, None], (0, 2))
    agree("broadcast_to", x, (2, *x.shape))
    agree("broadcast_arrays", x, x[None])
    agree(lambda xp, s: xp.broadcast_shapes(s, (2, *s), ()), x.shape)
    agree("tril", x[None], k=by)
    agree("triu", x[None], k=by)


@draws(several(2, "any", same_dtype=True))
def test_joining(drawn: Any) -> None:
    x, y = np.broadcast_arrays(*drawn)
    x, y = np.array(x)[None], np.array(y)[None]
    agree("concat", [x, y], axis=-1)
    agree("concat", [x, y], axis=None)
    agree("stack", [x, y], axis=1)
    agree("unstack", x, axis=0)
    agree("meshgrid", x.ravel(), y.ravel()[:2])
    agree("meshgrid", x.ravel(), indexing="ij")


@draws(several(2, "numeric"))
def test_joining_promotes(drawn: Any) -> None:
    x, y = np.broadcast_arrays(*drawn)
    agree("concat", [np.array(x)[None], np.array(y)[None]])
    agree("stack", [np.array(x), np.array(y)])


KEYS = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4).flatmap(
    lambda s: st.tuples(
        arrays("any", s), hnp.basic_indices(s, allow_newaxis=True, min_dims=0, max_dims=5)
    )
)


@draws(KEYS, 40)
def test_basic_indices(drawn: Any) -> None:
    x, key = drawn
    named = key if isinstance(key, tuple) else (key,)
    if sum(k is not None and k is not Ellipsis for k in named) == x.ndim or Ellipsis in named:
        agree(lambda xp, a: a[key], x)


@draws(arrays("any", WITH_AXES).flatmap(
    lambda x: st.tuples(st.just(x), hnp.arrays("bool", x.shape))), 16)  # fmt: skip
def test_masks(drawn: Any) -> None:
    x, mask = drawn
    agree(lambda xp, a, m: a[m], x, mask)


WITH_FLAGS = arrays("any", WITH_AXES).flatmap(
    lambda x: st.tuples(st.just(x), st.lists(st.booleans(), min_size=1, max_size=x.ndim))
)


@draws(WITH_FLAGS, 16)
def test_masks_with_axes_of_no_entries(drawn: Any) -> None:
    x, whole = drawn
    mask = np.ones([n * w for n, w in zip(x.shape, whole, strict=False)], bool)
    agree(lambda xp, a, m: a[m], x, mask)


@draws(st.tuples(arrays("any", (3, 4)), arrays("int64", st.tuples(st.integers(0, 4)))))
def test_integer_arrays_as_indices(drawn: Any) -> None:
    x, rows = drawn
    rows = rows % 3
    agree(lambda xp, a, i: a[i, i], x, rows)
    agree(lambda xp, a, i: a[i, 1], x, rows)
