"""Selecting elements: take and its family, nonzero, and searching.

If the shape of a result depends on values, these must be concrete, or `size=` must be given.
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
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import as_axis, as_int, as_size
from accnp.api.arguments.values import check_callable, no_out
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import (
    Array,
    ArrayLike,
    ArraySequence,
    IndexMode,
    concrete_node,
    concrete_value,
    const_of,
    wrap,
)
from accnp.engine import array_of
from accnp.errors import UnsupportedDtypeError, api_boundary, not_one_of
from accnp.ir.node import Node
from accnp.ir.op import distinct_number, o
from accnp.numpy.indexing import gather_axis, index_node
from accnp.numpy.manipulation import cut, expand_node, reshape_plain
from accnp.numpy.ufunc_rules import as_bool
from accnp.primitives.index import GatherDimensionNumbers, GatherScatterMode
from accnp.primitives.kinds import (
    INDEX,
    broadcast_to,
    check_index_dtype,
    dtype_kind,
    dtype_of_indices,
)
from accnp.primitives.kinds import full as full_node
from accnp.sharding.device_placement import beside

__all__ = [
    "argwhere", "choose", "compress", "extract",
    "flatnonzero", "mask_indices", "nonzero", "searchsorted",
    "select", "take", "take_along_axis",
]  # fmt: skip

METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


@moves_elements()
@api_boundary
@compiled_if_small("a", "indices", limit=512)
@shown("_take", arrays=2)
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take elements or slices along an axis.

    Parameters
    ----------
    {a}
    indices : array_like of int
        Positions to take. Negative ones count from the end.
    {axis_or_flat}
    {out}
    mode : {'fill', 'clip', 'wrap'}, optional
        What is taken out of bounds: `fill_value` ('fill', the default), the nearest element
        ('clip'), or the element at the position modulo the length of the axis ('wrap').
    unique_indices : bool, optional
        Promise that no position is given twice. The default is False.
    indices_are_sorted : bool, optional
        Promise that the positions are in rising order. The default is False.
    fill_value : scalar, optional
        Value out of bounds. The default is nan for floating and complex dtypes, the smallest number
        for signed integers and the largest for unsigned ones.

    Returns
    -------
    Array
        Array with the dtype of `a`, and the shape of `indices` in the place of the axis.

    Raises
    ------
    TypeError
        If `indices` does not hold integers, or an operand is neither an array nor a number.
    ValueError
        If the axis is out of bounds.
    IndexError
        If the axis has length 0.
    NotImplementedError
        If `mode` is 'raise', or `out` is given.

    See Also
    --------
    take_along_axis : Take by an index for each position.
    Array.at.get : Index with a choice for positions out of bounds.
    compress : Choose slices by a condition.

    Notes
    -----
    Indices out of bounds do not raise an error, as in JAX.

    Examples
    --------
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
        raise IndexError(f"{name}: the axis of a is empty; got {x.aval}; check the size first")
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
        dtype_name = node.aval.dtype.name
        raise UnsupportedDtypeError(
            f"{function}: indices must have an integer type; got {dtype_name}; cast them"
        )
    return node


def modulo(x: Node, n: int) -> Node:
    """Return x mod n with the sign of n."""
    if dtype_of_indices(n) != INDEX:
        x = cast(x, dtype_of_indices(n))
    size, zero = (scalar_node(v, x.aval.dtype, False) for v in (n, 0))
    r = o.rem(x, size)
    return o.select_n(o.lt(r, zero), r, o.add(r, size)) if x.aval.dtype.kind == "i" else r


def along(x: Node, index: Node, axis: Any, function: str) -> tuple[Node, Node, int]:
    if axis is None:
        if index.aval.ndim != 1:
            raise ValueError(
                f"{function}: axis=None requires indices of one axis; got {index.aval.shape}; "
                "ravel them"
            )
        return reshape_plain(x, (x.aval.size,)), index, 0
    if x.aval.ndim != index.aval.ndim:
        raise ValueError(
            f"{function}: indices and array must have equally many axes; "
            f"got shapes {index.aval.shape} and {x.aval.shape}; add axes to the indices"
        )
    d = as_axis(axis, x.aval.ndim, function)
    pairs = [s[:d] + s[d + 1 :] for s in (x.aval.shape, index.aval.shape)]
    rest = broadcast_shapes(function, pairs)
    shapes = [(*rest[:d], v.aval.shape[d], *rest[d:]) for v in (x, index)]
    return to_shape(x, shapes[0]), to_shape(index, shapes[1]), d


@moves_elements()
@api_boundary
@compiled_if_small("arr", "indices")
@shown(arrays=2)
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: IndexMode = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take, at each position, the element at a given index along an axis.

    Parameters
    ----------
    arr : array_like
        Array to take from. Lists and tuples are not accepted.
    indices : array_like of int
        Index along the axis for each position, for example the result of `argsort`. The shapes
        broadcast in the other axes.
    axis : int, optional
        Axis along which to take. The default is the last axis; None uses the flattened array.
    mode : {'fill', 'clip', 'promise_in_bounds', 'one_hot'} or GatherScatterMode, optional
        What is taken out of bounds: `fill_value` ('fill', the default), the nearest element
        ('clip'), or 0 ('one_hot').
    fill_value : scalar, optional
        Value out of bounds. The default is nan for floating and complex dtypes, the smallest number
        for signed integers and the largest for unsigned ones.
    wrap_negative_indices : bool, optional
        Whether negative indices count from the end of the axis, which is the default.

    Returns
    -------
    Array
        Elements, with the broadcast shape and the dtype of `arr`.

    Raises
    ------
    TypeError
        If `indices` does not hold integers, or an operand is neither an array nor a number.
    ValueError
        If the numbers of axes differ, or the axis is out of bounds.

    See Also
    --------
    take : Take slices along an axis.
    argsort, argmax : Functions that return such indices.
    put_along_axis : Store values at such indices.

    Examples
    --------
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
    if mode == "one_hot":  # as a product with one-hot rows: 0 out of bounds
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
    """Take along one axis with an index whose shape differs only in that axis."""
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


# --- indices of nonzero elements -----------------------------------------------------------------


def _nonzero_mask(a: Any, function: str) -> Node:
    x = as_node(a, function)
    if x.aval.dtype.kind == "b":
        return x
    return o.ne(x, scalar_node(0, x.aval.dtype, False))


def nonzero_nodes(a: Any, size: Any, fill_value: Any, function: str) -> list[Node]:
    """Return the coordinates of the nonzero elements, one node for each axis."""
    mask = _nonzero_mask(a, function)
    shape = mask.aval.shape
    if not shape:
        raise ValueError(
            f"{function}: expected at least one axis; got shape (); use jnp.atleast_1d"
        )
    fill_values = fill_value if isinstance(fill_value, Sequence) else [fill_value] * len(shape)
    fills = [as_node(0 if v is None else v, function) for v in fill_values]
    for n in shape:
        check_index_dtype(function, n, dtypes.default_int())
    if size is None:
        known = array_of(_require_concrete(mask, function))
        places = zip(np.nonzero(known), shape, strict=True)
        index_nodes = [const_of(i.astype(dtype_of_indices(n)), copy=False) for i, n in places]
        return [beside(function, x, mask) for x in index_nodes]
    count = as_size(size, function)
    if len(fills) != len(shape):
        raise ValueError(
            f"{function}: fill_value must be one number or {len(shape)} numbers; "
            f"got {fill_value!r}; pass one"
        )
    total = prod(shape)
    check_index_dtype(function, total, INDEX)
    ends = o.cumsum(cast(reshape_plain(mask, (total,)), INDEX), axis=0, reverse=False)
    # Element p of the result is the first position where p + 1 nonzero elements have been found.
    flat_indices = o.searchsorted(
        ends, o.iota(dtype=INDEX, shape=(count,), dimension=0), side="right"
    )
    valid = o.lt(flat_indices, scalar_node(total, INDEX, False))
    out = []
    for d, (n, fill) in enumerate(zip(shape, fills, strict=True)):
        step, size = (scalar_node(max(v, 1), INDEX, False) for v in (prod(shape[d + 1 :]), n))
        i = o.rem(o.div(flat_indices, step), size)
        if count and dtypes.issubdtype(fill.aval.dtype, np.inexact):  # use its dtype
            i, fill = promote(function, wrap(i), wrap(fill))
        else:
            fill = cast(fill, INDEX)
        out.append(o.select_n(valid, broadcast_to(fill, (count,)), i))
    return out


@api_boundary
def nonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]:
    """Find the indices of the elements that are not zero.

    Parameters
    ----------
    {a}
    {size_nonzero}
    fill_value : int or tuple of int, optional
        Index that stands for missing ones if there are fewer than `size`, or one for each axis. The
        default is 0.

    Returns
    -------
    tuple of Array
        One vector of indices for each axis, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `a` is a list, or is traced and `size` is not given.
    ValueError
        If `a` has no axis.

    See Also
    --------
    argwhere : The same indices as the rows of a matrix.
    flatnonzero : Indices into the flattened array.
    where : Choose elements by a condition, which needs no size.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nonzero(jnp.array([0, 4, 0, 5]))
    (Array([1, 3], dtype=int32),)
    """
    nodes = nonzero_nodes(a, size, fill_value, "jnp.nonzero")
    return tuple([cast_index(n) for n in nodes])


def cast_index(x: Node) -> Array:
    """Return indices in the default integer dtype, or unchanged if a fill value is inexact."""
    return wrap(x if dtypes.issubdtype(x.aval.dtype, np.inexact) else cast(x, dtypes.default_int()))


@api_boundary
def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the flat indices of the elements that are not zero.

    Parameters
    ----------
    {a}
    {size_nonzero}
    {fill_nonzero}

    Returns
    -------
    Array
        Vector of indices, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `a` is a list, or is traced and `size` is not given.

    See Also
    --------
    nonzero : Indices for each axis.

    Examples
    --------
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
    """Find the indices of the elements that are not zero, as the rows of a matrix.

    Parameters
    ----------
    {a}
    {size_nonzero}
    {fill_nonzero}

    Returns
    -------
    Array
        Matrix of shape (count, a.ndim), of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `a` is a list, or is traced and `size` is not given.

    See Also
    --------
    nonzero : The same indices as a tuple, which can index an array.
    where : Choose elements by a condition.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.argwhere(jnp.array([[1, 0], [0, 2]]))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    x = as_node(a, "jnp.argwhere")
    if x.aval.ndim == 0:
        indices = nonzero(wrap(reshape_plain(x, (1,))), size=size, fill_value=fill_value)[0]
        return wrap(full_node((indices.shape[0], 0), 0, dtypes.default_int()))
    parts = nonzero(wrap(x), size=size, fill_value=fill_value)
    columns = [expand_node(p._node, (1,)) for p in parts]
    return wrap(o.concatenate(*columns, dimension=1) if len(columns) > 1 else columns[0])


@api_boundary
def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Find the indices that a function such as `triu` keeps in a square matrix.

    Parameters
    ----------
    n : int
        Number of rows and columns, static.
    mask_func : callable
        Function that is called as `mask_func(ones, k)` with a matrix of ones; elements of its
        result other than zero are kept.
    k : int, optional
        Second argument of `mask_func`, for example the number of a diagonal. The default is 0.
    {size_nonzero}

    Returns
    -------
    tuple of Array
        Indices of rows and columns, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `n` is not an integer, `mask_func` is not callable, or `size` is not given under `jit`.

    See Also
    --------
    triu_indices, tril_indices : Indices of triangles, which need no function.
    nonzero : Indices of the elements that are not zero.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    check_callable("jnp.mask_indices", mask_func)
    n = as_size(n, "jnp.mask_indices", "n")
    mask = mask_func(wrap(full_node((n, n), 1, dtypes.default_float())), k)
    return nonzero(mask, size=size)


@moves_elements()
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

    Parameters
    ----------
    condition : array_like
        Vector of truth values, one for each slice. Beyond the end of the axis they have to be
        False.
    {a}
    axis : int, optional
        Axis along which to choose. None, the default, uses the flattened array.
    {size_results}
    fill_value : array_like, optional
        Value of missing slices if fewer than `size` are kept. The default is 0.
    {out}

    Returns
    -------
    Array
        Chosen slices, with the dtype of `a`.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number, or `condition` is traced and `size` is not
        given.
    ValueError
        If `condition` is not a vector or is true beyond the end of the axis, or `size` exceeds its
        length.
    {raises_out}

    See Also
    --------
    extract : Choose elements of the flattened array.
    take : Take slices by position.
    where : Choose elements by a condition, with a static shape.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    no_out(out, "jnp.compress")
    return _compress("jnp.compress", condition, a, axis, size, fill_value)


def _compress(name: str, condition: Any, a: Any, axis: Any, size: Any, fill_value: Any) -> Array:
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
        size = as_int(size, name, "size", "size")
        if not 0 <= size <= length:
            raise ValueError(f"{name}: too many slices; got size={size}; pass 0 to {length}")
    elif length < cond.aval.size and array_of(_require_concrete(cond, name))[length:].any():
        text = f"got shape {cond.aval.shape} for shape {x.aval.shape}; slice it to [:{n}]"
        raise ValueError(f"{name}: condition is true beyond the end; {text}")
    index = nonzero_nodes(wrap(cut(cond, 0, 0, length)), size, n, name)[0]
    as_node(fill_value, name)
    x = x if size is None else cast(x, x.aval.dtype)
    fill = distinct_number(np.asarray(fill_value).item())
    return wrap(gather_axis(x, index, d, GatherScatterMode.FILL_OR_DROP, fill))


def _require_concrete(x: Node, function: str) -> Node:
    return concrete_node(x, "count", f"{function} (without size=)")


@moves_elements()
@api_boundary
def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Return the elements for which a condition holds, as a vector.

    Parameters
    ----------
    condition : array_like
        Truth values, one for each element of the flattened array.
    arr : array_like
        Array to choose from. Lists and tuples are not accepted.
    {size_results}
    fill_value : array_like, optional
        Value of missing elements if fewer than `size` are kept. The default is 0.

    Returns
    -------
    Array
        Vector with the dtype of `arr`.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number, or `condition` is traced and `size` is not
        given.

    See Also
    --------
    compress : Choose slices along an axis.
    place : Store values where a condition holds.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    cond = as_node(condition, "jnp.extract")
    flat = wrap(reshape_plain(cond, (cond.aval.size,)))
    return _compress("jnp.extract", flat, arr, None, size, fill_value)


@moves_elements("choicelist", "default")
@api_boundary
def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Choose each element from the first operand whose condition holds.

    Parameters
    ----------
    condlist : sequence of array_like
        Conditions, of which the first true one decides.
    choicelist : sequence of array_like
        Operand for each condition.
    default : array_like, optional
        Values where no condition holds. The default is 0.

    Returns
    -------
    Array
        Array with the broadcast shape of all operands, and the promoted dtype of the choices and
        `default`.

    Raises
    ------
    TypeError
        If the shapes do not broadcast, or an entry is neither an array nor a number.
    ValueError
        If the sequences differ in length, or are empty.

    See Also
    --------
    where : Choose by one condition.
    choose : Choose by an index.
    piecewise : Evaluate functions by conditions.

    Examples
    --------
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


@moves_elements("choices")
@api_boundary
def choose(a: ArrayLike, choices: ArraySequence, out: None = None, mode: str = "raise") -> Array:
    """Choose each element from the operand that an index names.

    Parameters
    ----------
    a : array_like of int
        Number of the choice for each element.
    choices : sequence of array_like
        Operands to choose from. An array is a sequence of its slices along the first axis.
    {out}
    mode : {'raise', 'wrap', 'clip'}, optional
        What happens to numbers out of bounds: an error ('raise', the default, which needs concrete
        values), the number modulo the count of choices ('wrap'), or the nearest choice ('clip').

    Returns
    -------
    Array
        Array with the broadcast shape of all operands, and the promoted dtype of the choices.

    Raises
    ------
    TypeError
        If `a` does not hold integers, or is traced in mode 'raise'.
    ValueError
        If a number is out of bounds in mode 'raise', or the mode is unknown.
    {raises_out}

    See Also
    --------
    select : Choose by conditions.
    take : Take elements along an axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.choose(jnp.array([0, 1]), [jnp.array([1, 2]), jnp.array([3, 4])])
    Array([1, 4], dtype=int32)
    """
    no_out(out, "jnp.choose")
    if mode not in ("raise", "wrap", "clip"):
        raise not_one_of("jnp.choose", "mode", mode, ("raise", "wrap", "clip"))
    index = integers(wrap(as_node(a, "jnp.choose")), "jnp.choose")
    if len(choices) == 0:
        raise ValueError("invalid entry in choice array; choose got no choices; pass one or more")
    parts = [cast(p, p.aval.dtype) for p in promote("jnp.choose", *choices)]
    n = len(parts)
    if mode == "wrap":
        index = modulo(index, n)
    elif mode == "clip":
        kind = index.aval.dtype
        index = o.clamp(scalar_node(0, kind, False), index, scalar_node(n - 1, kind, False))
    elif np.any(
        ((at := concrete_value(index, "static", "jnp.choose (mode='raise')")) < 0) | (at >= n)
    ):
        text = f"got {at!s:.40} for {n} choices; use mode='clip' or 'wrap'"
        raise ValueError(f"invalid entry in choice array; choose {text}")
    shape = broadcast_shapes("jnp.choose", [v.aval.shape for v in (index, *parts)])
    if n == 1:
        return wrap(to_shape(parts[0], shape))
    which = to_shape(cast(index, INDEX), shape)
    return wrap(o.select_n(which, *[to_shape(p, shape) for p in parts]))


# --- searching -----------------------------------------------------------------------------------


@api_boundary
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Find where values would be inserted into a sorted vector.

    Parameters
    ----------
    a : array_like
        Vector in rising order. Lists and tuples are not accepted.
    v : array_like
        Values to find positions for, of any shape.
    side : {'left', 'right'}, optional
        Whether the position is before ('left', the default) or after ('right') equal elements.
    sorter : array_like of int, optional
        Indices that sort `a`, for example from `argsort`, if it is not sorted.
    {searchsorted_method}

    Returns
    -------
    Array
        Positions with the shape of `v`, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    TypeError
        If `a` or `v` is neither an array nor a number.
    ValueError
        If `a` is not a vector, or the side or method is unknown.

    See Also
    --------
    digitize : Numbers of bins.
    sort, argsort : Sort an array.
    histogram : Counts of values in bins.

    Examples
    --------
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
    # The array API standard requires the default integer dtype.
    return wrap(cast(o.searchsorted(x, values, side=side), dtypes.default_int()))
