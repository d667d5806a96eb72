"""Products of arrays: matmul, dot, tensordot and their relatives, all based on dot_general."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    broadcast_nodes,
    broadcast_shapes,
    cast,
    promote,
    to_shape,
)
from accnp.api.arguments.shapes import as_axes, as_axis, as_int
from accnp.api.arguments.values import no_out, precision_key, to_dtype
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, ShardingLike, wrap
from accnp.config import numpy_dtype_promotion
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.creation import eye
from accnp.numpy.manipulation import expand_node, reshape_plain, transpose_node
from accnp.numpy.matrices import diagonal_node
from accnp.numpy.reductions import wide_type
from accnp.numpy.ufunc_rules import multiply
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to
from accnp.sharding.device_placement import record_sharded

if TYPE_CHECKING:
    from accnp.lax.enumerations import DotNumbers, PrecisionLike

__all__ = [
    "dot", "inner", "matmul", "outer", "tensordot", "trace", "vdot",
    "vecdot", 
]  # fmt: skip


def product(
    a: Node,
    b: Node,
    contract: Any,
    batch: Any = ((), ()),
    precision: Any = None,
    preferred: Any = None,
) -> Node:
    """Record a dot_general whose dtype is that of the (promoted) operands, or `preferred`."""
    dims = tuple(tuple(tuple([int(d) for d in g]) for g in pair) for pair in (contract, batch))
    if preferred is None:
        return _dot_general(a, b, dims, precision, a.aval.dtype)
    out = np.dtype(preferred)
    return cast(_dot_general(a, b, dims, precision, out), out)


def _dot_general(a: Node, b: Node, dims: Any, precision: Any, out: np.dtype | None) -> Node:
    """Record a dot_general. If `out` cannot hold the sums, they are computed first, then cast."""
    own = a.aval.dtype
    keyed = precision_key(precision)
    if out is None or out == own:
        return o.dot_general(
            a, b, dimension_numbers=dims, precision=keyed, preferred_element_type=out
        )
    if own == b.aval.dtype and not hasattr(precision, "check"):
        check_sum_dtype(own, out)
    kinds = np.complexfloating if own.kind == "c" else np.inexact
    later = dtypes.issubdtype(own, np.inexact) and not dtypes.issubdtype(out, kinds)
    y = o.dot_general(
        a, b, dimension_numbers=dims, precision=keyed, preferred_element_type=own if later else out
    )
    return cast(y, out) if later else y


def check_sum_dtype(own: np.dtype, out: np.dtype) -> None:
    """Raise if sums of integers or complex numbers would be stored in a narrower dtype."""
    if not dtypes.issubdtype(own, np.floating) and _bits(out) < _bits(own):
        raise TypeError(
            f"dot_general: sums of {own.name} do not fit into a narrower dtype; got {out.name} "
            "(preferred_element_type); convert the result"
        )


def _bits(dtype: np.dtype) -> int:
    """Return the bits of a number, or of each part of a complex one; a bool has one bit."""
    if dtype.kind == "b":
        return 1
    return dtype.itemsize * (4 if dtype.kind == "c" else 8)


def _pair(name: str, a: Any, b: Any, preferred: Any) -> tuple[Node, Node, Any]:
    if preferred is None:
        x, y = promote(name, a, b)
        return x, y, None
    preferred_dtype = dtypes.requested_dtype(preferred, name)
    # The operands are not promoted, so that Python floats are not rounded to 16 bits.
    return as_node(a, name), as_node(b, name), preferred_dtype


@api_boundary
def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Contract and batch any axes of two arrays.

    Parameters
    ----------
    lhs : array_like
        First operand, of any shape.
    rhs : array_like
        Second operand, of any shape.
    dimension_numbers : ((axes, axes), (axes, axes))
        Contracted axes of both operands, then batch axes of both.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Products. The batch axes come first, then the other axes of `lhs`, then those of `rhs`.

    Raises
    ------
    TypeError
        If paired axes have different lengths, an axis is out of bounds or given twice, or an
        operand is not an array.

    See Also
    --------
    dot, batch_matmul : Simpler products.
    numpy.einsum, numpy.matmul : The same by other notations.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dot_general(jnp.ones((2, 3)), jnp.ones(3), (((1,), (0,)), ((), ())))
    Array([3., 3.], dtype=float32)
    """
    (ac, bc), (ab, bb) = dimension_numbers
    x, y = as_node(lhs, "lax.dot_general"), as_node(rhs, "lax.dot_general")
    dims = ((tuple(ac), tuple(bc)), (tuple(ab), tuple(bb)))
    for side, rank in enumerate((x.aval.ndim, y.aval.ndim)):
        axes = [as_int(d, "lax.dot_general") for d in (*dims[0][side], *dims[1][side])]
        if len(set(axes)) < len(axes) or any(not 0 <= d < rank for d in axes):
            raise TypeError(
                f"lax.dot_general: the axes of operand {side} must be distinct, from 0 to "
                f"{rank - 1}; got {dims[0][side]} contracted and {dims[1][side]} batched for shape "
                f"{(x, y)[side].aval.shape}; name each axis once"
            )
    preferred_dtype = preferred_element_type
    if preferred_dtype is not None:
        preferred_dtype = dtypes.requested_dtype(preferred_dtype, "lax.dot_general")
    elif x.aval.dtype != y.aval.dtype:
        with numpy_dtype_promotion("standard"):
            preferred_dtype = dtypes.promote(
                tuple((v.aval.dtype, v.aval.weak_type) for v in (x, y))
            )[0]

    def record(x: Node, y: Node) -> Node:
        return _dot_general(x, y, dims, precision, preferred_dtype)

    return wrap(record_sharded("lax.dot_general", out_sharding, record, x, y))


@api_boundary
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Multiply matrices in the last two axes.

    Parameters
    ----------
    a : array_like
        First factor, of shape (..., n, k), or a vector of length k.
    b : array_like
        Second factor, of shape (..., k, m), or a vector of length k. Leading axes broadcast.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Products of shape (..., n, m), without the axes that a vector lacks, with the promoted dtype
        or `preferred_element_type`.

    Raises
    ------
    TypeError
        If the contracted axes differ in length, leading axes do not broadcast, or an operand is
        neither an array nor a number.
    ValueError
        If an operand is a scalar.

    See Also
    --------
    dot : Other rules for more than two axes.
    einsum : Sums of products over labeled axes.
    matvec, vecmat, vecdot : Products with vectors.
    lax.dot_general : Contract and batch any axes.

    Notes
    -----
    Unlike in NumPy, there is no `out` parameter.

    {note_narrow}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.matmul(jnp.eye(2), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    x, y, preferred_dtype = _pair("matmul", a, b, preferred_element_type)

    def record(x: Node, y: Node) -> Node:
        return matmul_nodes(x, y, precision, preferred_dtype)

    return wrap(record_sharded("matmul", out_sharding, record, x, y))


def matmul_nodes(x: Node, y: Node, precision: Any = None, preferred: Any = None) -> Node:
    """Multiply nodes of one dtype as `numpy.matmul` does."""
    for i, n in enumerate((x, y)):
        if n.aval.ndim == 0:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it has ndim 0; got "
                "a scalar; use jnp.multiply"
            )
    a, b = x.aval, y.aval
    contract = ((a.ndim - 1,), (max(0, b.ndim - 2),))
    if (a.ndim <= 2 and b.ndim <= 2) or b.ndim == 1:
        return product(x, y, contract, ((), ()), precision, preferred)
    if a.shape[-1] != b.shape[-2]:
        raise IncompatibleShapesError(
            "dot_general requires contracting dimensions to have the same shape, got "
            f"({a.shape[-1]},) and ({b.shape[-2]},) for shapes {a.shape} and {b.shape}; transpose "
            "or slice one"
        )
    if b.ndim == 2:
        return product(x, y, contract, ((), ()), precision, preferred)
    left = a.shape[:-2] if a.ndim > 1 else ()
    outer = broadcast_shapes("matmul", [left, b.shape[:-2]])
    x = to_shape(x, (*outer, *a.shape[-2:])) if a.ndim > 1 else to_shape(x, (*outer, *a.shape))
    y = to_shape(y, (*outer, *b.shape[-2:]))
    rank = len(outer)
    dims = tuple(range(rank))
    contract = ((x.aval.ndim - 1,), (rank,))
    return product(x, y, contract, (dims, dims), precision, preferred)


@api_boundary
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Contract the last axis of one array with the last but one of another.

    Parameters
    ----------
    a : array_like
        First factor. A scalar multiplies all elements of the other factor.
    b : array_like
        Second factor. The only axis of a vector is contracted.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Products, with the other axes of `a` and then those of `b`, and the promoted dtype or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If the contracted axes differ in length, or an operand is neither an array nor a number.

    See Also
    --------
    matmul : Matrix product, whose leading axes broadcast.
    vdot, vecdot, inner : Products of vectors.
    tensordot : Contract several axes.
    linalg.multi_dot : Product of several matrices.

    Notes
    -----
    {note_narrow}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.dot(jnp.arange(3), jnp.ones(3))
    Array(3., dtype=float32)
    """
    x, y, preferred_dtype = _pair("dot", a, b, preferred_element_type)
    m, n = x.aval.ndim, y.aval.ndim
    contract: Any = ((), ()) if not m or not n else ((m - 1,), (max(0, n - 2),))

    def record(x: Node, y: Node) -> Node:
        return product(x, y, contract, ((), ()), precision, preferred_dtype)

    return wrap(record_sharded("dot", out_sharding, record, x, y))


@api_boundary
def lax_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Multiply vectors and matrices, or contract given axes.

    Parameters
    ----------
    lhs : array_like
        First operand, of the dtype of `rhs`.
    rhs : array_like
        Second operand, of the dtype of `lhs`.
    dimension_numbers : ((axes, axes), (axes, axes)), optional
        Contracted axes of both operands, then batch axes of both. By default, vectors and matrices
        are multiplied.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Products; the axes are ordered as in `dot_general`.

    Raises
    ------
    ValueError
        If shapes do not fit, or there are more than two axes and no dimension numbers.

    See Also
    --------
    dot_general : The general form.
    numpy.dot : The same with promotion of dtypes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    x, y = np.shape(lhs), np.shape(rhs)
    if dimension_numbers is None:
        if not (1 <= len(x) <= 2 and 1 <= len(y) <= 2 and x[-1] == y[0]):
            raise ValueError(
                "lax.dot: expected vectors and matrices of matching sizes; got shapes "
                f"{x} and {y}; pass dimension_numbers for others"
            )
        dimension_numbers = (((len(x) - 1,), (0,)), ((), ()))
    pairs: Any = [
        tuple([(d,) if isinstance(d, int) else tuple(d) for d in pair])
        for pair in dimension_numbers
    ]
    return dot_general(
        lhs, rhs, tuple(pairs), precision, preferred_element_type, out_sharding=out_sharding
    )


lax_dot.__name__ = lax_dot.__qualname__ = "dot"
lax_dot.__module__ = "accnp.lax"


@api_boundary
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the dot product of two flattened arrays, conjugating the first.

    Parameters
    ----------
    a : array_like
        First factor, which is flattened and conjugated.
    b : array_like
        Second factor, which is flattened.
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Scalar with the promoted dtype or `preferred_element_type`.

    Raises
    ------
    TypeError
        If the sizes differ, or an operand is neither an array nor a number.

    See Also
    --------
    vecdot : The same along an axis.
    dot : Product without conjugation.

    Notes
    -----
    {note_narrow}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vdot(jnp.arange(3), jnp.ones(3))
    Array(3., dtype=float32)
    """
    x, y, preferred_dtype = _pair("vdot", a, b, preferred_element_type)
    if x.aval.size != y.aval.size:
        raise IncompatibleShapesError(
            "vdot: dot_general requires contracting dimensions to have the same shape, got "
            f"{x.aval.shape} and {y.aval.shape}; slice or pad one"
        )
    x, y = (reshape_plain(v, (v.aval.size,)) for v in (x, y))
    if x.aval.dtype.kind == "c":
        x = o.conj(x)
    return wrap(product(x, y, ((0,), (0,)), ((), ()), precision, preferred_dtype))


@api_boundary
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Contract the last axes of two arrays.

    Parameters
    ----------
    a : array_like
        First factor. A scalar multiplies all elements of the other factor.
    b : array_like
        Second factor, whose last axis has the same length.
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Products, with the other axes of `a` and then those of `b`, and the promoted dtype or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If the last axes differ in length, or an operand is neither an array nor a number.

    See Also
    --------
    dot : Contract the last axis with the last but one.
    vecdot : Products of vectors, whose other axes broadcast.
    tensordot : Contract several axes.

    Notes
    -----
    {note_narrow}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.inner(jnp.arange(3), jnp.ones(3))
    Array(3., dtype=float32)
    """
    x, y, preferred_dtype = _pair("inner", a, b, preferred_element_type)
    m, n = x.aval.ndim, y.aval.ndim
    contract: Any = ((), ()) if not m or not n else ((m - 1,), (n - 1,))
    return wrap(product(x, y, contract, ((), ()), precision, preferred_dtype))


@api_boundary
@compiled_if_small("a", "b", limit=512)
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Multiply each element of one array with each element of another.

    Parameters
    ----------
    a : array_like
        First factor, which is flattened; it varies along the rows.
    b : array_like
        Second factor, which is flattened; it varies along the columns.
    {out}

    Returns
    -------
    Array
        Matrix of shape (a.size, b.size), with the promoted dtype.

    Raises
    ------
    {raises_operand}
    {raises_out}

    See Also
    --------
    linalg.outer : The same for vectors only.
    ufunc.outer : All pairs for other functions, with the axes of both operands.
    kron : Kronecker product.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.outer(jnp.arange(2), jnp.ones(2))
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    no_out(out, "outer")
    x, y = promote("outer", a, b)
    n, m = x.aval.size, y.aval.size
    column = expand_node(reshape_plain(x, (n,)), (1,))
    row = expand_node(reshape_plain(y, (m,)), (0,))
    return wrap(multiply(to_shape(column, (n, m)), to_shape(row, (n, m))))


@api_boundary
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: SupportsIndex | Sequence[SupportsIndex] | Sequence[Sequence[SupportsIndex]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Contract several axes of two arrays.

    Parameters
    ----------
    a : array_like
        First factor. Lists and tuples are not accepted.
    b : array_like
        Second factor. Lists and tuples are not accepted.
    axes : int or pair of sequences of int, optional
        Number of axes to contract, the last ones of `a` with the first ones of `b`, or the axes of
        `a` and the axes of `b`. The default is 2.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Products, with the other axes of `a` and then those of `b`, and the promoted dtype or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If contracted axes differ in length, there are too few of them, `axes` is not a pair, or an
        operand is neither an array nor a number.
    ValueError
        If the sequences of axes differ in length, or an axis is out of bounds.

    See Also
    --------
    einsum : Sums of products over labeled axes.
    dot, inner : Contract one axis.

    Notes
    -----
    A negative number of axes contracts none.

    {note_narrow}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.tensordot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]), axes=1)
    Array([3, 7], dtype=int32)
    """
    x, y, preferred_dtype = _pair("tensordot", a, b, preferred_element_type)
    m, n = x.aval.ndim, y.aval.ndim
    if isinstance(axes, Sequence | np.ndarray) and not isinstance(axes, str):
        if len(axes) != 2:
            raise TypeError(
                f"tensordot: axes must be a number or a pair; got {axes!r}; "
                "pass ((axes of a), (axes of b))"
            )
        left, right = as_axes(axes[0], m, "tensordot"), as_axes(axes[1], n, "tensordot")
        if len(left) != len(right):
            raise IncompatibleShapesError(
                f"tensordot: both axes lists must be equally long; got {axes!r}; "
                "pair each axis of a with one of b"
            )
    else:
        k = max(0, as_int(axes, "tensordot", "axes"))  # as in JAX, negative means 0
        if k > min(m, n):
            raise TypeError(
                f"tensordot: more axes to contract than operands have; got axes={k} "
                f"for shapes {x.aval.shape} and {y.aval.shape}; pass fewer"
            )
        left, right = tuple(range(m - k, m)), tuple(range(k))

    def record(x: Node, y: Node) -> Node:
        return product(x, y, (left, right), ((), ()), precision, preferred_dtype)

    return wrap(record_sharded("tensordot", out_sharding, record, x, y))


@api_boundary
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the dot products of vectors along an axis, conjugating the first.

    Parameters
    ----------
    x1 : array_like
        First factor, which is conjugated.
    x2 : array_like
        Second factor, whose vectors have the same length.
    axis : int, optional
        Axis of the vectors. The default is the last axis. The other axes broadcast.
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Products, with the broadcast shape without the axis, and the promoted dtype or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If the other axes do not broadcast, or an operand is neither an array nor a number.
    ValueError
        If the vectors differ in length, an operand is a scalar, or the axis is out of bounds.

    See Also
    --------
    vdot : Product of flattened arrays.
    matvec, vecmat : Products with matrices.
    linalg.vecdot : The same function.

    Notes
    -----
    {note_narrow}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vecdot(jnp.arange(3), jnp.ones(3))
    Array(3., dtype=float32)
    """
    x, y, preferred_dtype = _pair("vecdot", x1, x2, preferred_element_type)
    if not x.aval.ndim or not y.aval.ndim:
        raise ValueError("vecdot: expected at least one axis; got a scalar; pass arrays of vectors")
    i, j = (as_axis(axis, v.aval.ndim, "vecdot") for v in (x, y))
    if x.aval.shape[i] != y.aval.shape[j]:
        raise ValueError(
            f"vecdot: the vectors must be equally long; got {x.aval.shape} and {y.aval.shape}; "
            "pass axis=, or slice one"
        )
    x, y = _axis_last(x, i), _axis_last(y, j)
    x, y = broadcast_nodes("vecdot", [x, y])
    if x.aval.dtype.kind == "c":
        x = o.conj(x)
    rank = x.aval.ndim - 1
    dims = tuple(range(rank))
    return wrap(product(x, y, ((rank,), (rank,)), (dims, dims), precision, preferred_dtype))


def _axis_last(x: Node, d: int) -> Node:
    return transpose_node(x, (*[k for k in range(x.aval.ndim) if k != d], d))


@api_boundary
@compiled_if_small("a")
@shown()
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum the elements of a diagonal.

    Parameters
    ----------
    a : array_like
        Array with at least two axes. Lists and tuples are not accepted.
    offset : int, optional
        Number of the diagonal: 0, the default, is the main diagonal, positive numbers count to the
        right of it, and negative ones below it.
    axis1 : int, optional
        Axis of the rows. The default is 0.
    axis2 : int, optional
        Axis of the columns. The default is 1.
    dtype : dtype_like, optional
        Dtype of the sum. By default bools and narrow integers give int32 (int64 with
        `jax_enable_x64`), and other dtypes are unchanged.
    {out}

    Returns
    -------
    Array
        Sums, with the shape of `a` without the two axes.

    Raises
    ------
    {raises_not_array}
    ValueError
        If there are fewer than two axes, or the axes are equal or out of bounds.
    {raises_out}

    See Also
    --------
    diagonal : Elements of a diagonal.
    linalg.trace : The same for the last two axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.trace(jnp.eye(3))
    Array(3., dtype=float32)
    """
    no_out(out, "trace")
    x = as_node(a, "trace")
    if dtype is not None:
        x = to_dtype(x, dtypes.requested_dtype(dtype, "trace"))
    else:
        x = cast(x, wide_type(x.aval.dtype))
    reduce = o.reduce_or if x.aval.dtype.kind == "b" else o.reduce_sum
    if isinstance(offset, Array) and offset._node.trace is not None:
        d = _on_diagonal(x, offset, axis1, axis2)
        return wrap(reduce(d, axes=(d.aval.ndim - 2, d.aval.ndim - 1)))
    d = diagonal_node(x, offset, axis1, axis2, "trace")
    return wrap(reduce(d, axes=(d.aval.ndim - 1,)))


def _on_diagonal(x: Node, offset: Array, axis1: int, axis2: int) -> Node:
    """Move two axes to the end and zero all elements off a diagonal; its offset may be traced."""
    rank = x.aval.ndim
    i, j = as_axis(axis1, rank, "trace"), as_axis(axis2, rank, "trace")
    rest = [d for d in range(rank) if d not in (i, j)]
    x = transpose_node(x, (*rest, i, j))
    mask = eye(*x.aval.shape[-2:], k=offset, dtype=bool)._node
    return rules.select(broadcast_to(mask, x.aval.shape, (rank - 2, rank - 1)), x, like(x, 0))
