"""Selecting elements: take and its family, nonzero, searching, counting.

Arrays come in; lazy Arrays go out. Where the result's shape depends on values, they must be known,
or `size=` must say how many there will be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    as_nodes,
    broadcast_shapes,
    cast,
    promote,
    scalar_node,
    to_shape,
)
from accnp.api.arguments.shapes import as_axis, as_int, as_size
from accnp.api.arguments.values import needs_function, no_out
from accnp.api.arrays.manipulation import cut, expand_node, reshape_plain
from accnp.api.arrays.placement import beside
from accnp.api.compiled.named import shown
from accnp.api.elements.ufunc_rules import as_bool
from accnp.api.indexes.indexing import gather_axis, index_node
from accnp.array import Array, ArrayLike, const_of, known, look, wrap
from accnp.engine import array_of
from accnp.errors import UnsupportedDtypeError, api_boundary, not_one_of
from accnp.ir.node import Node
from accnp.ir.op import distinct_number, o
from accnp.primitives.index import GatherDimensionNumbers, GatherScatterMode
from accnp.primitives.kinds import INDEX, broadcast_to, dtype_kind, needs_places, place_dtype
from accnp.primitives.kinds import full as full_node

__all__ = [
    "argwhere", "choose", "compress", "extract",
    "flatnonzero", "mask_indices", "nonzero", "searchsorted",
    "select", "take", "take_along_axis",
]  # fmt: skip

METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


@api_boundary
@shown("_take", arrays=2)
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Take elements along an axis; out of bounds gives nan, or the ends in mode "clip".

    axis=None takes from the flattened array. The shape is that of indices in the place of the axis;
    the dtype stays. Unlike NumPy: integers give their least value there, unsigned ones the largest.

    Raises:
        TypeError: indices are no integers, or something is a list or a text.
        ValueError: the axis is out of bounds.
        IndexError: the axis has length 0.
        NotImplementedError: mode='raise', or out=.

    >>> import accnp as jnp
    >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0]))
    Array([30, 10], dtype=int32)
    """
    name = "jnp.take"
    no_out(out, name)
    x, index = as_node(a, name), integers(indices, name)
    if axis is None:
        x, d = reshape_plain(x, (x.aval.size,)), 0
    else:
        d = as_axis(axis, x.aval.ndim, name)
    n = x.aval.shape[d]
    if not n and index.aval.size:
        raise IndexError(f"{name}: a has no elements there; got {x.aval}; look at the size first")
    if mode == "raise":
        raise NotImplementedError(f"{name}: mode='raise' is not supported; use 'clip' or 'fill'")
    if mode == "wrap":
        index = modulo(index, n)
    how = GatherScatterMode.from_any("clip" if mode == "wrap" else mode, name)
    if how is not GatherScatterMode.CLIP:
        index = index_node(index, n)
    fill = None if fill_value is None else distinct_number(np.asarray(fill_value).item())
    return wrap(gather_axis(x, index, d, how, fill))


def integers(x: Any, function: str) -> Node:
    node = as_node(x, function)
    if node.aval.dtype.kind == "b":
        return cast(node, INDEX)
    if dtype_kind(node.aval.dtype) not in "iu":
        got = node.aval.dtype.name
        raise UnsupportedDtypeError(f"{function}: indices must be integers; got {got}; cast them")
    return node


def modulo(x: Node, n: int) -> Node:
    """x mod n with the sign of n."""
    if place_dtype(n) != INDEX:
        x = cast(x, place_dtype(n))
    size, zero = (scalar_node(v, x.aval.dtype, False) for v in (n, 0))
    r = o.rem(x, size)
    return o.select_n(o.lt(r, zero), r, o.add(r, size)) if x.aval.dtype.kind == "i" else r


def along(x: Node, index: Node, axis: Any, function: str) -> tuple[Node, Node, int]:
    if axis is None:
        if index.aval.ndim != 1:
            raise ValueError(f"{function}: axis=None: one axis; got {index.aval.shape}; ravel")
        return reshape_plain(x, (x.aval.size,)), index, 0
    if x.aval.ndim != index.aval.ndim:
        raise ValueError(
            f"{function}: indices and array need equally many axes; "
            f"got shapes {index.aval.shape} and {x.aval.shape}; add axes to the indices"
        )
    d = as_axis(axis, x.aval.ndim, function)
    pairs = [s[:d] + s[d + 1 :] for s in (x.aval.shape, index.aval.shape)]
    rest = broadcast_shapes(function, pairs)
    shapes = [(*rest[:d], v.aval.shape[d], *rest[d:]) for v in (x, index)]
    return to_shape(x, shapes[0]), to_shape(index, shapes[1]), d


@api_boundary
@shown(arrays=2)
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take, for each position, the element at its index along an axis (as argsort gives them).

    Shapes broadcast beside the axis; the dtype stays. Unlike NumPy: out of bounds gives nan;
    mode= says otherwise. The mode 'one_hot' gives 0 for what is out of bounds.

    Raises:
        TypeError: indices are no integers, or something is a list or a text.
        ValueError: different numbers of axes, or one out of bounds.

    >>> import accnp as jnp
    >>> jnp.take_along_axis(jnp.array([[3, 1, 2]]), jnp.array([[1, 2, 0]]), axis=1)
    Array([[1, 2, 3]], dtype=int32)
    """
    name = "jnp.take_along_axis"
    if dtypes.result_type(indices).kind == "b":
        raise TypeError(f"{name}: indices must be integers; got bool; pass them as int32")
    x, index, d = along(as_node(arr, name), integers(indices, name), axis, name)
    n = x.aval.shape[d]
    index = index_node(index, n, wrap_negative_indices is not False)
    if mode == "one_hot":  # the values of a product with rows of one 1 each: 0 outside
        mode, fill_value = "fill", 0
    fill = None if fill_value is None else distinct_number(np.asarray(fill_value).item())
    return wrap(gather_along(x, index, d, GatherScatterMode.from_any(mode, name), fill))


def gather_along(
    x: Node,
    index: Node,
    d: int,
    mode: Any = GatherScatterMode.PROMISE_IN_BOUNDS,
    fill: Any = None,
) -> Node:
    """Take along one axis with an index of the same shape but for that axis."""
    others = tuple([k for k in range(x.aval.ndim) if k != d])
    dims = GatherDimensionNumbers((), (d,), (d,), others, others)
    return o.gather(
        x,
        expand_node(index, (index.aval.ndim,)),
        dimension_numbers=dims,
        slice_sizes=(1,) * x.aval.ndim,
        indices_are_sorted=False,
        unique_indices=False,
        mode=mode,
        fill_value=fill,
    )


# --- positions of what is not zero ---------------------------------------------------------------


def _nonzero_mask(a: Any, function: str) -> Node:
    x = as_node(a, function)
    if x.aval.dtype.kind == "b":
        return x
    return o.ne(x, scalar_node(0, x.aval.dtype, False))


def nonzero_nodes(a: Any, size: Any, fill_value: Any, function: str) -> list[Node]:
    """The coordinates of the elements that are not zero, one node for each axis."""
    mask = _nonzero_mask(a, function)
    shape = mask.aval.shape
    if not shape:
        raise ValueError(f"{function}: an array needs an axis; got shape (); use atleast_1d")
    given = fill_value if isinstance(fill_value, Sequence) else [fill_value] * len(shape)
    fills = [as_node(0 if v is None else v, function) for v in given]
    for n in shape:
        needs_places(function, n, dtypes.default_int())
    if size is None:
        known = array_of(_known(mask, function))
        places = zip(np.nonzero(known), shape, strict=True)
        made = [const_of(i.astype(place_dtype(n)), copy=False) for i, n in places]
        return [beside(function, x, mask) for x in made]
    count = as_size(size, function)
    if len(fills) != len(shape):
        raise ValueError(
            f"{function}: fill_value is one number, or {len(shape)}; got {fill_value!r}; pass such"
        )
    total = prod(shape)
    needs_places(function, total, INDEX)
    ends = o.cumsum(cast(reshape_plain(mask, (total,)), INDEX), axis=0, reverse=False)
    # Position p of the result is the first place where p + 1 elements have been found.
    found = o.searchsorted(ends, o.iota(dtype=INDEX, shape=(count,), dimension=0), side="right")
    valid = o.lt(found, scalar_node(total, INDEX, False))
    out = []
    for d, (n, fill) in enumerate(zip(shape, fills, strict=True)):
        step, size = (scalar_node(max(v, 1), INDEX, False) for v in (prod(shape[d + 1 :]), n))
        i = o.rem(o.div(found, step), size)
        if count and dtypes.issubdtype(fill.aval.dtype, np.inexact):  # then so are the coordinates
            i, fill = promote(function, wrap(i), wrap(fill))
        else:
            fill = cast(fill, INDEX)
        out.append(o.select_n(valid, broadcast_to(fill, (count,)), i))
    return out


@api_boundary
def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """Return the coordinates of the elements that are not zero; under jit pass `size`.

    An array of int32 (64-bit with jax_enable_x64) for each axis.

    Raises:
        ValueError: a has no axis.
        TypeError: a is a list or a text, or is traced and size= is not given.

    >>> import accnp as jnp
    >>> jnp.nonzero(jnp.array([0, 4, 0, 5]))
    (Array([1, 3], dtype=int32),)
    """
    nodes = nonzero_nodes(a, size, fill_value, "jnp.nonzero")
    return tuple([cast_index(n) for n in nodes])


def cast_index(x: Node) -> Array:
    """Return indices in the default integer dtype; inexact ones, by a fill value, as they are."""
    return wrap(x if dtypes.issubdtype(x.aval.dtype, np.inexact) else cast(x, dtypes.default_int()))


@api_boundary
def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the flat positions of the elements that are not zero.

    One axis of int32 (64-bit with jax_enable_x64); size= and errors are those of `nonzero`.

    >>> import accnp as jnp
    >>> jnp.flatnonzero(jnp.array([[1, 0], [0, 2]]))
    Array([0, 3], dtype=int32)
    """
    x = as_node(a, "jnp.flatnonzero")
    return nonzero(wrap(reshape_plain(x, (x.aval.size,))), size=size, fill_value=fill_value)[0]


@api_boundary
def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the coordinates of the elements that are not zero, one row for each.

    Shape (count, a.ndim), int32 (64-bit with jax_enable_x64); size= and errors are those of
    `nonzero`.

    >>> import accnp as jnp
    >>> jnp.argwhere(jnp.array([[1, 0], [0, 2]]))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    x = as_node(a, "jnp.argwhere")
    if x.aval.ndim == 0:
        found = nonzero(wrap(reshape_plain(x, (1,))), size=size, fill_value=fill_value)[0]
        return wrap(full_node((found.shape[0], 0), 0, dtypes.default_int()))
    parts = nonzero(wrap(x), size=size, fill_value=fill_value)
    columns = [expand_node(p._node, (1,)) for p in parts]
    return wrap(o.concatenate(*columns, dimension=1) if len(columns) > 1 else columns[0])


@api_boundary
def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Return the indices where a mask function of an n by n matrix of ones is not zero.

    Args:
        n: rows and columns.
        mask_func: called as mask_func(ones, k), for instance `jnp.triu`.
        k: its second argument.
        size: how many indices; needed under `jit`. Missing ones are 0.

    The dtype is int32 (int64 with jax_enable_x64).

    Raises:
        TypeError: n is no integer, mask_func no function, or size= is not given under `jit`.

    >>> import accnp as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    needs_function("jnp.mask_indices", mask_func)
    n = as_size(n, "jnp.mask_indices", "n")
    mask = mask_func(wrap(full_node((n, n), 1, dtypes.default_float())), k)
    return nonzero(mask, size=size)


@api_boundary
def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Keep the slices along an axis for which a condition holds.

    The dtype stays.

    Args:
        condition: vector of truth values; beyond the end of the axis only False.
        a: array; axis: an axis of it, None for all elements in a row.
        size: how many slices to return, at most as many as `condition` has; needed under jit.
        fill_value: what slices beyond the last that is kept are filled with.

    Raises:
        ValueError: the condition is no vector or holds beyond the end; `size` is out of bounds.

    >>> import accnp as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    no_out(out, "jnp.compress")
    return _compressed("jnp.compress", condition, a, axis, size, fill_value)


def _compressed(name: str, condition: Any, a: Any, axis: Any, size: Any, fill_value: Any) -> Array:
    x = as_node(a, name)
    if axis is None:
        x, d = reshape_plain(x, (x.aval.size,)), 0
    else:
        d = as_axis(axis, x.aval.ndim, name)
    cond, n = as_node(condition, name), x.aval.shape[d]
    if cond.aval.ndim != 1:
        raise ValueError(f"{name}: condition must be 1-d; got shape {cond.aval.shape}; ravel it")
    length = min(cond.aval.size, n)
    if size is not None:
        size = as_int(size, name, "size", "shape")
        if not 0 <= size <= length:
            raise ValueError(f"{name}: too many slices; got size={size}; pass 0 to {length}")
    elif length < cond.aval.size and array_of(_known(cond, name))[length:].any():
        text = f"got shape {cond.aval.shape} for shape {x.aval.shape}; cut it to [:{n}]"
        raise ValueError(f"{name}: condition holds beyond the end; {text}")
    index = nonzero_nodes(wrap(cut(cond, 0, 0, length)), size, n, name)[0]
    as_node(fill_value, name)
    x = x if size is None else cast(x, x.aval.dtype)
    fill = distinct_number(np.asarray(fill_value).item())
    return wrap(gather_axis(x, index, d, GatherScatterMode.FILL_OR_DROP, fill))


def _known(x: Node, function: str) -> Node:
    return known(x, "shape", f"{function} (without size=)")


@api_boundary
def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Return the elements for which a condition holds, flattened; see `compress`.

    One axis, the dtype of arr.

    Raises:
        TypeError: something is a list or a text, or is traced and size= is not given.

    >>> import accnp as jnp
    >>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    cond = as_node(condition, "jnp.extract")
    flat = wrap(reshape_plain(cond, (cond.aval.size,)))
    return _compressed("jnp.extract", flat, arr, None, size, fill_value)


@api_boundary
def select(condlist: Any, choicelist: Any, default: ArrayLike = 0) -> Array:
    """Take each element from the first choice whose condition holds.

    Shapes broadcast; the dtype is the promoted one of choices and default.

    Raises:
        ValueError: the lists differ in length, or are empty.
        TypeError: shapes do not broadcast, or an entry is a list or a text.

    >>> import accnp as jnp
    >>> jnp.select([jnp.array([True, False])], [jnp.array([1, 2])], default=0)
    Array([1, 0], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            "jnp.select: condlist and choicelist need equally many entries, at least one; "
            f"got {len(condlist)} and {len(choicelist)}; pair each condition with a choice"
        )
    *choices, last = promote("jnp.select", *choicelist, default)
    tests = as_nodes("jnp.select", *condlist)
    shape = broadcast_shapes("jnp.select", [n.aval.shape for n in (*tests, *choices, last)])
    out = to_shape(last, shape)
    for test, choice in zip(reversed(tests), reversed(choices), strict=True):
        test = to_shape(as_bool(test), shape)
        out = o.select_n(test, out, to_shape(choice, shape))
    return wrap(out)


@api_boundary
def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Take each element from the choice that an index array names.

    Shapes broadcast; the dtype is the promoted one of the choices.

    Raises:
        ValueError: an index is out of bounds in mode 'raise'.
        TypeError: indices are no integers; they are traced in mode 'raise'.
        NotImplementedError: out= is given.

    >>> import accnp as jnp
    >>> jnp.choose(jnp.array([0, 1]), [jnp.array([1, 2]), jnp.array([3, 4])])
    Array([1, 4], dtype=int32)
    """
    no_out(out, "jnp.choose")
    if mode not in ("raise", "wrap", "clip"):
        raise not_one_of("jnp.choose", "mode", mode, ("raise", "wrap", "clip"))
    index = integers(wrap(as_node(a, "jnp.choose")), "jnp.choose")
    parts = [cast(p, p.aval.dtype) for p in promote("jnp.choose", *choices)]
    n = len(parts)
    if mode == "wrap":
        index = modulo(index, n)
    elif mode == "clip":
        kind = index.aval.dtype
        index = o.clamp(scalar_node(0, kind, False), index, scalar_node(n - 1, kind, False))
    elif np.any(((at := look(index, "static", "jnp.choose (mode='raise')")) < 0) | (at >= n)):
        text = f"got {at!s:.40} for {n} choices; use mode='clip' or 'wrap'"
        raise ValueError(f"invalid entry in choice array; choose {text}")
    shape = broadcast_shapes("jnp.choose", [v.aval.shape for v in (index, *parts)])
    if n == 1:
        return wrap(to_shape(parts[0], shape))
    which = to_shape(cast(index, INDEX), shape)
    return wrap(o.select_n(which, *[to_shape(p, shape) for p in parts]))


# --- searching and counting ----------------------------------------------------------------------


@api_boundary
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Return where values would be inserted into a sorted vector.

    The shape is that of v, the dtype int32 (64-bit with jax_enable_x64). Unlike NumPy: method= is
    there, and all are one here.

    Raises:
        ValueError: a is no vector, or there is no such side or method.
        TypeError: a or v is a list or a text.

    >>> import accnp as jnp
    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 9]))
    Array([0, 1, 3], dtype=int32)
    """
    name = "jnp.searchsorted"
    if side not in ("left", "right"):
        raise not_one_of(name, "side", side, ("left", "right"))
    if method not in METHODS:
        raise not_one_of(name, "method", method, METHODS)
    x, values = promote(name, a, v)
    if x.aval.ndim != 1:
        raise ValueError(f"{name}: a must have one axis; got shape {x.aval.shape}; use jax.vmap")
    if sorter is not None:
        x = gather_axis(x, integers(sorter, name), 0)
    return wrap(
        cast(o.searchsorted(x, values, side=side), dtypes.default_int())
    )  # as the standard has it
