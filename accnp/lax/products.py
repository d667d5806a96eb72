"""Products of `lax` other than `dot_general`, on which they are based: `batch_matmul`, products of
ragged groups of rows (`ragged_dot`), and products of block-scaled operands (`scaled_dot`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, to_shape
from accnp.api.arguments.values import precision_key
from accnp.array_type import Array, ArrayLike, ShardingLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.lax.enumerations import PrecisionLike, RaggedDotDimensionNumbers
from accnp.numpy import products
from accnp.numpy.composed_primitives import composed
from accnp.numpy.cumulative import cumsum
from accnp.numpy.joining import repeat
from accnp.numpy.selection import where
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to, dtype_kind
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "batch_matmul", "ragged_dot", "ragged_dot_general", "ragged_dot_general_p", "scaled_dot",
    "scaled_dot_p", "scales_repeated",
]  # fmt: skip


@api_boundary
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Multiply the matrices in the last two axes.

    Parameters
    ----------
    lhs : array_like
        Matrices of shape (..., m, k).
    rhs : array_like
        Matrices of shape (..., k, n), with the same leading axes.
    {precision}

    Returns
    -------
    Array
        Products of shape (..., m, n) and of the promoted dtype.

    Raises
    ------
    ValueError
        If the ranks differ or are less than 2.
    TypeError
        If sizes do not fit, or an operand is a list.

    See Also
    --------
    dot_general : Products along any axes.
    numpy.matmul : The same with broadcasting.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.batch_matmul(jnp.ones((2, 3, 4)), jnp.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    x, y = as_node(lhs, "lax.batch_matmul"), as_node(rhs, "lax.batch_matmul")
    rank = x.aval.ndim
    if min(rank, y.aval.ndim) < 2:
        raise ValueError(
            f"lax.batch_matmul: expected matrices; got shapes {x.aval.shape} and "
            f"{y.aval.shape}; add axes"
        )
    if y.aval.ndim != rank:
        raise ValueError(
            f"lax.batch_matmul: both must have the same rank; got shapes {x.aval.shape} and "
            f"{y.aval.shape}; use jnp.matmul, which broadcasts"
        )
    outer = tuple(range(rank - 2))
    dims = (((rank - 1,), (rank - 2,)), (outer, outer))
    return products.dot_general(wrap(x), wrap(y), dims, precision=precision)


# --- ragged products -----------------------------------------------------------------------------


def _mask_groups(x: Array, sizes: Array, axis: int, before: Sequence[int]) -> Array:
    """Return a copy of x for each group, along a new leading axis, with zeros outside of the group.

    `axis` is the axis of x that is cut into groups. `before` has the axes of x that
    correspond to the leading axes of `sizes`.
    """
    ends = cumsum(sizes, axis=-1)
    count, rank = sizes.shape[-1], x.ndim
    wide = (count, *x.shape)
    to = (*[d + 1 for d in before[: sizes.ndim - 1]], 0)

    def along_groups(v: Array) -> Any:
        node, order = v._node, np.argsort(to)
        node = o.transpose(node, permutation=tuple(int(i) for i in order))
        return broadcast_to(node, wide, tuple(sorted(to)))

    place = o.iota(dtype=np.dtype(sizes.dtype), shape=wide, dimension=axis + 1)
    here = o.and_(o.lt(place, along_groups(ends)), o.ge(place, along_groups(ends - sizes)))
    all_of_it = broadcast_to(x._node, wide, tuple(range(1, rank + 1)))
    return where(wrap(here), wrap(all_of_it), wrap(like(x._node, 0)))


def _ragged_dot_general(
    x: Array,
    y: Array,
    sizes: Array,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
    group_offset: Any,
    out_sharding: Any = None,
) -> Array:
    """Compute a ragged product as one `dot_general`, of masked copies if the groups matter."""
    numbers = ragged_dot_dimension_numbers
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    of_x = (*xc, *xb, *numbers.lhs_ragged_dimensions)
    of_y = (*yc, *yb, *numbers.rhs_group_dimensions)
    for which, operand, axes in (("lhs", x, of_x), ("rhs", y, of_y)):
        if outside := [d for d in axes if not 0 <= d < operand.ndim]:
            raise TypeError(
                f"lax.ragged_dot_general: {which} has no axis {outside[0]}, which is in "
                f"ragged_dot_dimension_numbers; got {operand._node.aval} with "
                f"{axes}; use axes of the operand"
            )
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            "lax.ragged_dot_general: ragged_dot_general expects exactly one lhs ragged dimension.; "
            f"got {numbers.lhs_ragged_dimensions}"
        )
    (ragged,) = numbers.lhs_ragged_dimensions
    free = [d for d in range(x.ndim) if d not in xc and d not in xb]
    groups = numbers.rhs_group_dimensions
    if len(groups) != (ragged in free):
        raise TypeError(
            "lax.ragged_dot_general: rhs must have one group axis if the ragged axis of lhs "
            f"is not contracted, and none otherwise; got {groups} for the ragged axis {ragged}; "
            "change rhs_group_dimensions"
        )

    def multiply(a: Array, b: Array, c: Any, d: Any) -> Array:
        return products.dot_general(a, b, (c, d), precision, preferred_element_type)

    if ragged in xb:  # a batch axis: the groups have no effect
        return multiply(x, y, (xc, yc), (xb, yb))
    up = [tuple(d + 1 for d in axes) for axes in (xc, yc, xb, yb)]
    if ragged in free:  # kept in the result: the axis of groups is contracted
        if y.shape[groups[0]] != sizes.shape[-1]:
            raise TypeError(
                "lax.ragged_dot_general: expected rhs group dimension size to be "
                f"{sizes.shape[-1]}, got {y.shape[groups[0]]}."
            )
        wide = _mask_groups(x, sizes, ragged, [*xb, *[d for d in free if d < ragged]])
        return multiply(wide, y, ((0, *up[0]), (groups[0], *yc)), (up[2], yb))
    # The ragged axis is contracted: the axis of groups is a batch axis.
    before = [*xb, *[d for d in xc if d < ragged]]
    other = {**dict(zip(xb, yb, strict=True)), **dict(zip(xc, yc, strict=True))}
    left = _mask_groups(x, sizes, ragged, before)
    right = _mask_groups(y, sizes, other[ragged], [other[d] for d in before])
    return multiply(left, right, (up[0], up[1]), ((0, *up[2]), (0, *up[3])))


ragged_dot_general_p = composed("ragged_dot_general", _ragged_dot_general)


@api_boundary
@with_out_sharding
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Multiply arrays in groups of elements along one axis.

    Parameters
    ----------
    lhs : array_like
        Left operand, one axis of which is cut into groups.
    rhs : array_like
        Right operand, of any shape.
    group_sizes : array_like of int
        Lengths of the groups, of shape (groups,). Leading axes are allowed: the batch axes of
        `lhs`, then those that precede the ragged axis and are, like it, contracted or kept.
    ragged_dot_dimension_numbers : RaggedDotDimensionNumbers
        Contracted and batch axes as in `dot_general`, the ragged axis of `lhs`, and the axis of
        `rhs` with one entry for each group.
    {precision}
    {preferred_element_type}
    group_offset : None, optional
        Index of the first group in JAX. Not supported.
    {out_sharding}

    Returns
    -------
    Array
        Products, whose axes are ordered as in `dot_general`.

    Raises
    ------
    TypeError
        If the axes do not fit, or `group_sizes` are not integers.
    NotImplementedError
        If `group_offset` is given.

    See Also
    --------
    ragged_dot : Multiply groups of rows by one matrix each.
    dot_general : The product without groups.

    Notes
    -----
    If the ragged axis is kept, `rhs` has one matrix for each group. If it is contracted, there is
    one result for each group, along a new leading axis. If it is a batch axis, the groups have no
    effect. The cost is that of one full product for each group.

    Examples
    --------
    >>> import accnp as jnp
    >>> numbers = jnp.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> ones = jnp.ones((3, 1))
    >>> jnp.lax.ragged_dot_general(ones, ones, jnp.array([1, 2]), numbers).ravel()
    Array([1., 2.], dtype=float32)
    """
    name = "lax.ragged_dot_general"
    nodes = [as_node(v, name) for v in (lhs, rhs, group_sizes)]
    if group_offset is not None:
        raise NotImplementedError(
            f"{name}: group_offset is not supported; got {group_offset!r}; pass all groups"
        )
    if dtype_kind(nodes[2].aval.dtype) not in "iu":
        raise TypeError(
            f"{name}: group_sizes must be integers; got {nodes[2].aval.dtype.name}; "
            "convert with astype(int)"
        )
    preferred_dtype = preferred_element_type
    out = ragged_dot_general_p.bind(
        *map(wrap, nodes),
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=precision_key(precision),
        preferred_element_type=None
        if preferred_dtype is None
        else dtypes.requested_dtype(preferred_dtype, name),
        group_offset=None,
        out_sharding=None,
    )
    return wrap(cast(out._node, out.dtype))  # the result is always strong


@api_boundary
@with_out_sharding
def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Multiply groups of consecutive rows by one matrix each.

    Parameters
    ----------
    lhs : array_like
        Rows, of shape (m, k).
    rhs : array_like
        One matrix for each group, of shape (groups, k, n).
    group_sizes : array_like of int
        Number of rows of each group, of shape (groups,).
    {precision}
    {preferred_element_type}
    group_offset : None, optional
        Index of the first group in JAX. Not supported.
    {out_sharding}

    Returns
    -------
    Array
        Products of shape (m, n). Rows after the last group are zeros.

    Raises
    ------
    TypeError
        If the shapes do not fit, or `group_sizes` are not integers.
    NotImplementedError
        If `group_offset` is given.

    See Also
    --------
    ragged_dot_general : Multiply groups along any axis.
    dot : The product without groups.

    Examples
    --------
    >>> import accnp as jnp
    >>> matrices = jnp.array([[[1.0]], [[10.0]]])
    >>> jnp.lax.ragged_dot(jnp.ones((4, 1)), matrices, jnp.array([1, 2])).ravel()
    Array([ 1., 10., 10.,  0.], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    shapes = [as_node(v, "lax.ragged_dot").aval.shape for v in (lhs, rhs)]
    if [len(s) for s in shapes] != [2, 3]:
        raise TypeError(
            "lax.ragged_dot: expected shapes [rows, k] and [groups, k, n]; got shapes "
            f"{shapes[0]} and {shapes[1]}; use ragged_dot_general for others"
        )
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset
    )


# --- scaled products -----------------------------------------------------------------------------


def scales_repeated(scale: Array, shape: Sequence[int]) -> Array:
    """Repeat each scale over its block of elements; `shape` is that of the scaled operand."""
    for axis, n in enumerate(shape):
        if scale.shape[axis] != n:
            scale = repeat(scale, n // max(scale.shape[axis], 1), axis)
    return scale


_BF16 = np.dtype(ml_dtypes.bfloat16)


def _scaled_dot(
    lhs: Array,
    rhs: Array,
    lhs_scale: Array,
    rhs_scale: Array,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
) -> Array:
    """Scale both operands in bfloat16, and multiply them with `dot_general`."""

    def apply_scales(x: Array, scale: Array) -> Array:
        wide = scales_repeated(wrap(cast(scale._node, _BF16)), x.shape)
        return wrap(o.mul(cast(x._node, _BF16), wide._node))

    left, right = apply_scales(lhs, lhs_scale), apply_scales(rhs, rhs_scale)
    return products.dot_general(
        left, right, dimension_numbers, preferred_element_type=preferred_element_type
    )


scaled_dot_p = composed("scaled_dot", _scaled_dot)


@api_boundary
def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply operands that have a scale for each block of contracted elements.

    Parameters
    ----------
    lhs : array_like
        Left operand, of any shape.
    rhs : array_like
        Right operand, of the same rank.
    lhs_scale : array_like, optional
        Scales of `lhs`, one for each block of at least 2 elements along each contracted axis. Other
        axes have the size that they have in `lhs`. By default, `lhs` is not scaled.
    rhs_scale : array_like, optional
        Scales of `rhs`, with the same rules.
    dimension_numbers : tuple, optional
        Contracted and batch axes as in `dot_general`. By default, the last axis of `lhs` and the
        second to last of `rhs` are contracted, and the leading axes are batch axes.
    preferred_element_type : dtype_like, optional
        Dtype of the result. The default is bfloat16.

    Returns
    -------
    Array
        Products, accumulated in float32.

    Raises
    ------
    TypeError
        If the shapes do not fit.

    See Also
    --------
    dot_general : The product without scales.
    nn.scaled_matmul : The same for matrices.

    Notes
    -----
    The scaled operands are rounded to bfloat16.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=jnp.full((1, 2), 3.0))
    Array([[12]], dtype=bfloat16)
    """
    name = "lax.scaled_dot"
    x, y = as_node(lhs, name), as_node(rhs, name)
    rank = x.aval.ndim
    if dimension_numbers is None:
        if rank < 2:
            raise TypeError(
                f"{name}: operands must have at least two axes; got {x.aval.str_short()}; add axes"
            )
        outer = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (outer, outer))
    (xc, yc), (xb, yb) = dimension_numbers
    dims = tuple(tuple(tuple(int(d) for d in g) for g in pair) for pair in ((xc, yc), (xb, yb)))
    scales = []
    for side, v, side_scale, axes in (("LHS", x, lhs_scale, xc), ("RHS", y, rhs_scale, yc)):
        shape = v.aval.shape
        if side_scale is None:
            ones = [1 if d in axes else n for d, n in enumerate(shape)]
            one = like(cast(v, _BF16), 1)
            scales.append(wrap(cast(to_shape(one, tuple(ones)), _F8)))
            continue
        scale = as_node(side_scale, name)
        _check_scale(side, shape, scale.aval.shape, axes)
        scales.append(wrap(scale))
    preferred_dtype = _BF16 if preferred_element_type is None else preferred_element_type
    return scaled_dot_p.bind(
        wrap(x),
        wrap(y),
        *scales,
        dimension_numbers=dims,
        preferred_element_type=dtypes.requested_dtype(preferred_dtype, name),
    )


_F8 = np.dtype(ml_dtypes.float8_e8m0fnu)  # dtype of the scales of 1 for an operand without scales


def _check_scale(side: str, shape: Sequence[int], scale: Sequence[int], axes: Any) -> None:
    """Raise TypeError if scales of this shape do not fit an operand with these contracted axes.

    `side` is the name of the operand for the error message, "LHS" or "RHS".
    """
    if len(scale) != len(shape):
        raise TypeError(
            f"lax.scaled_dot: a scale must have the rank of its operand; got {tuple(scale)} for "
            f"{side} of shape {tuple(shape)}; add axes"
        )
    for d, (n, m) in enumerate(zip(shape, scale, strict=True)):
        if n == m and d not in axes:
            continue
        if d not in axes or m == 0 or n % m or n // m < 2:
            raise TypeError(
                f"lax.scaled_dot: {side} dim {d} of size {n} does not match scale dim size {m}.; "
                "only contracted axes have fewer scales, by a whole factor of at least 2"
            )
