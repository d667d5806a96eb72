"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, promote_inexact
from accnp.api.arguments.shapes import as_axes, as_static
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.lax.linalg import spectra as lax_spectra
from accnp.numpy.manipulation import expand_node, reshape_plain, transpose_node
from accnp.numpy.reductions import root_of_squares, wide_type
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to, dtype_kind, full
from accnp.primitives.reduce import remaining_dims

__all__ = ["matrix_norm", "norm", "vector_norm"]


def _squares(x: Node, axes: tuple[int, ...]) -> Node:
    """Return the root of the sum of squares, strongly typed."""
    return root_of_squares(cast(x, x.aval.dtype), axes)


def _largest(x: Node, axes: tuple[int, ...]) -> Node:
    """Return the largest of nonnegative values, at least 0; ties with 0 share the derivative."""
    return o.max(like(x, 0), o.reduce_max(x, axes=axes))


def _vector(x: Node, order: Any, axes: tuple[int, ...], function: str) -> Node:
    if order is None or order == 2:
        return _squares(x, axes)
    if isinstance(order, str):
        raise ValueError(
            f"{function}: order {order!r} is defined only for matrices; got vectors; "
            "pass a matrix, or a number as ord"
        )
    x = cast(x, x.aval.dtype)  # as in JAX, the result is strong
    size = x if dtype_kind(x.aval.dtype) in "bu" else o.abs(x)
    if order in (math.inf, -math.inf):
        empty = any(x.aval.shape[d] == 0 for d in axes)
        if empty and order < 0:
            raise ValueError(f"{function}: order -inf is undefined for empty vectors; got none")
        return _largest(size, axes) if order > 0 else o.reduce_min(size, axes=axes)
    if order == 0:
        some = o.convert_element_type(
            o.ne(x, like(x, 0)), new_dtype=size.aval.dtype, weak_type=False
        )
        return o.reduce_sum(some, axes=axes)
    if order == 1:
        return o.reduce_sum(size, axes=axes)
    if state.named:  # jaxprs show the formula that JAX uses
        total = o.reduce_sum(o.pow(size, like(size, float(order))), axes=axes)
        return o.pow(total, like(total, 1 / float(order)))
    # Divide by the dominant element, since powers may overflow.
    most = (o.reduce_max if order > 0 else o.reduce_min)(size, axes=axes)
    some = o.and_(o.gt(most, full(most.aval.shape, 0, most.aval.dtype)), o.is_finite(most))
    unit = o.select_n(some, full(most.aval.shape, 1, most.aval.dtype), most)
    ratio = o.div(size, broadcast_to(unit, x.aval.shape, remaining_dims(x.aval.ndim, axes)))
    total = o.reduce_sum(o.pow(ratio, like(size, float(order))), axes=axes)
    return o.mul(o.pow(total, like(total, 1 / float(order))), unit)


def _matrix(x: Node, order: Any, axes: tuple[int, ...], function: str) -> Node:
    row, col = axes
    if order in (None, "f", "fro"):
        return _squares(x, axes)
    if order in (1, -1, math.inf, -math.inf):
        over, left = (row, col) if abs(order) == 1 else (col, row)
        sums = o.reduce_sum(o.abs(cast(x, x.aval.dtype)), axes=(over,))
        left -= over < left
        if order < 0 and not sums.aval.shape[left]:
            raise ValueError(
                f"{function}: order {order} is undefined for empty matrices; got no elements"
            )
        return _largest(sums, (left,)) if order > 0 else o.reduce_min(sums, axes=(left,))
    if order in ("nuc", 2, -2):
        others = [d for d in range(x.aval.ndim) if d not in axes]
        x = cast(x, x.aval.dtype)  # as above
        s = singular_values(transpose_node(x, (*others, row, col)))
        last = (s.aval.ndim - 1,)
        if order == "nuc":
            return o.reduce_sum(s, axes=last)
        return _largest(s, last) if order == 2 else o.reduce_min(s, axes=last)
    raise ValueError(
        f"{function}: unknown order of a matrix norm; got {order!r}; "
        "use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
    )


def singular_values(x: Node) -> Node:
    """Return the singular values of matrices, in descending order."""
    return lax_spectra.svd(wrap(x), full_matrices=False, compute_uv=False)._node


@api_boundary
@shown()
@compiled_if_small("x")
def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Compute the norm of vectors or matrices.

    Parameters
    ----------
    x : array_like
        Array of any shape. Without `axis`, it has at most two axes unless `ord` is None.
    ord : {None, "fro", "nuc", number}, optional
        Order of the norm. The default is the square root of the sum of squares.
    axis : int or pair of int, optional
        Axis of vectors, or two axes of matrices. By default, all axes are used.
    {keepdims}

    Returns
    -------
    Array
        Norms, without the axes. The dtype is real: integers give the default float dtype.

    Raises
    ------
    ValueError
        If the order is unknown, an axis is out of bounds, or `x` has three axes and `axis` is
        missing.
    TypeError
        If `x` is a list or a string.

    See Also
    --------
    vector_norm, matrix_norm : The same for vectors or matrices only.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    return wrap(_norm(x, ord, axis, keepdims, "linalg.norm"))


def _norm(x: Any, ord: Any, axis: Any, keepdims: bool, function: str) -> Node:
    node = promote_inexact(function, as_array(x, function))[0]
    order = as_static(ord, function)
    if isinstance(order, np.ndarray | np.generic):
        order = order.item()
    rank = node.aval.ndim
    if axis is None:
        if order is None or rank in (1, 2):
            axes = tuple(range(rank))
        else:
            raise ValueError(
                f"{function}: without axis=, arrays must have 1 or 2 axes; got others; pass axis="
            )
        if order is None:
            out = _squares(node, axes)
            return _keep(out, axes, rank) if keepdims else out
    else:
        axes = as_axes(axis, rank, function)
    if len(axes) == 1:
        out = _vector(node, order, axes, function)
    elif len(axes) == 2:
        out = _matrix(node, order, axes, function)
    else:
        raise ValueError(
            f"{function}: axis must name one or two axes; got {axis}; "
            "pass one integer, two in a tuple, or None"
        )
    return _keep(out, axes, rank) if keepdims else out


def as_array(x: Any, function: str) -> Any:
    """Convert an array or number; raise for everything else."""
    return wrap(as_node(x, function))


def _keep(x: Node, axes: Sequence[int], rank: int) -> Node:
    return expand_node(x, tuple(sorted(axes)))


@api_boundary
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: int | float | str = 2,
) -> Array:
    """Compute the norm of vectors.

    Parameters
    ----------
    x : array_like
        Elements of the vectors, in an array of any shape.
    axis : int or tuple of int, optional
        Axes along which the elements of a vector are. By default, all elements are one vector.
    {keepdims}
    ord : number, optional
        Order of the norm. The default, 2, is the Euclidean norm.

    Returns
    -------
    Array
        Norms, without the axes. The dtype is real: integers give the default float dtype.

    Raises
    ------
    ValueError
        If `ord` is not a number, or an axis is out of bounds.
    TypeError
        If `x` is a list or a string.

    See Also
    --------
    norm : Norms of vectors or matrices.
    matrix_norm : Norms of matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.vector_norm(jnp.array([3.0, -4.0]), ord=1)
    Array(7., dtype=float32)
    """
    name = "linalg.vector_norm"
    node = as_node(x, name)
    if ord not in (math.inf, -math.inf) and dtype_kind(node.aval.dtype) in "biu":  # dtype of sums
        node = cast(node, wide_type(node.aval.dtype), node.aval.weak_type)
    if ord not in (1, math.inf, -math.inf):  # other norms are floating
        node = promote_inexact(name, wrap(node))[0]
    rank = node.aval.ndim
    axes = tuple(range(rank)) if axis is None else as_axes(axis, rank, name)
    others = tuple([d for d in range(rank) if d not in axes])
    shape = tuple([node.aval.shape[d] for d in others])
    flat = reshape_plain(transpose_node(node, (*others, *axes)), (*shape, _size(node, axes)))
    out = _vector(flat, ord, (len(shape),), name)
    return wrap(_keep(out, axes, rank) if keepdims else out)


def _size(x: Node, axes: Sequence[int]) -> int:
    return math.prod(x.aval.shape[d] for d in axes)


@api_boundary
@compiled_if_small("x")
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro"
) -> Array:
    """Compute the norm of matrices.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n).
    {keepdims}
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}, optional
        Order of the norm. The default, "fro", is the Frobenius norm.

    Returns
    -------
    Array
        Norms of shape (...). The dtype is real: integers give the default float dtype.

    Raises
    ------
    ValueError
        If the order is unknown, or there are fewer than two axes.
    TypeError
        If `x` is a list or a string.

    See Also
    --------
    norm : Norms of vectors or matrices.
    vector_norm : Norms of vectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [4.0, 0.0]]))
    Array(5., dtype=float32)
    """
    return wrap(_norm(x, ord, (-2, -1), keepdims, "linalg.matrix_norm"))
