"""Functions of `lax` that are compositions of ops but single equations in jaxprs.

They join and split arrays, compare floats in total order, and compute high words of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, broadcast_shapes, cast, scalar_node, to_shape
from accnp.api.arguments.non_numeric import accepts_keys, moves_elements
from accnp.api.arguments.shapes import as_axis, as_shape
from accnp.array_type import Array, ArrayLike, ArraySequence, Shape, ShardingLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy import joining
from accnp.numpy.composed_primitives import composed
from accnp.numpy.creation import full
from accnp.numpy.manipulation import cut
from accnp.numpy.selection import where
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import dtype_kind, dtypes_differ, wrong_dtype
from accnp.sharding.device_placement import new_array

__all__ = [
    "broadcast_like", "dtype_of", "empty", "empty_p", "eq_to_p", "le_to_p",
    "lt_to_p", "mulhi", "mulhi_p", "shape_as_value", "shapes_broadcast", "split", "split_p",
    "stack", "stack_p", "stage", "stage_p", "tile", "tile_p", "unstack", "unstack_p",
]  # fmt: skip


def _same_dtypes(name: str, nodes: Sequence[Node]) -> None:
    if len({x.aval.dtype for x in nodes}) > 1:
        raise dtypes_differ(name, [x.aval for x in nodes])


# --- joining and splitting -----------------------------------------------------------------------

stack_p = composed("stack", lambda *xs, axis: joining.stack(xs, axis))
tile_p = composed("tile", lambda x, *, reps: joining.tile(x, reps))
unstack_p = composed(
    "unstack", lambda x, *, axis: list(joining.unstack(x, axis=axis)), several=True
)


def _split_along_axis(x: Array, *, sizes: tuple[int, ...], axis: int) -> list[Array]:
    ends = np.cumsum(sizes)
    return [wrap(cut(x._node, axis, int(e) - n, int(e))) for n, e in zip(sizes, ends, strict=True)]


split_p = composed("split", _split_along_axis, several=True)


@moves_elements()
@api_boundary
def stack(operands: ArraySequence, axis: int = 0) -> Array:
    """Join arrays of one shape and dtype along a new axis.

    Parameters
    ----------
    operands : sequence of array_like
        Arrays of one shape and dtype.
    axis : int, optional
        Position of the new axis in the result. The default is 0.

    Returns
    -------
    Array
        Joined array of the same dtype, with one axis more.

    Raises
    ------
    IndexError
        If no operand is given.
    TypeError
        If their dtypes differ.

    See Also
    --------
    unstack : The inverse.
    concatenate : Join along an existing axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.stack([jnp.zeros(2), jnp.ones(2)], axis=1).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    nodes = [as_node(x, "lax.stack") for x in operands]
    if not nodes:
        raise IndexError(f"lax.stack: operands must not be empty; got {operands!r}; pass arrays")
    _same_dtypes("lax.stack", nodes)
    at = as_axis(axis, nodes[0].aval.ndim + 1, "lax.stack")
    return stack_p.bind(*map(wrap, nodes), axis=at)


@moves_elements()
@api_boundary
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its parts along an axis.

    Parameters
    ----------
    x : array_like
        Array to split, of any shape.
    axis : int, optional
        Axis along which to split. The default is 0.

    Returns
    -------
    tuple of Array
        Parts without the axis, of the dtype of `x`.

    Raises
    ------
    ValueError
        If `axis` is out of bounds.
    TypeError
        If `x` is a list.

    See Also
    --------
    stack : The inverse.
    split : Parts of several elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> [v.item() for v in jnp.lax.unstack(jnp.arange(3))]
    [0, 1, 2]
    """
    node = as_node(x, "lax.unstack")
    at = as_axis(axis, node.aval.ndim, "lax.unstack")
    return tuple(unstack_p.bind(wrap(node), axis=at))


@moves_elements()
@api_boundary
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat a whole array along each axis.

    Parameters
    ----------
    operand : array_like
        Array to repeat, of any shape.
    reps : sequence of int
        Number of repetitions for each axis.

    Returns
    -------
    Array
        Repeated array of the same dtype.

    Raises
    ------
    TypeError
        If `reps` does not have one number for each axis, or one is negative or not an integer.

    See Also
    --------
    numpy.tile : The same with any number of repetitions.
    broadcast : Repeat along new axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.tile(jnp.arange(3), (2,))
    Array([0, 1, 2, 0, 1, 2], dtype=int32)
    """
    node = as_node(operand, "lax.tile")
    times = as_shape(reps, "lax.tile")
    if np.ndim(reps) == 0 or len(times) != node.aval.ndim:
        raise TypeError(
            f"lax.tile: reps must have one number for each axis; got {reps!r} for shape "
            f"{node.aval.shape}; use jnp.tile for others"
        )
    return tile_p.bind(wrap(node), reps=times)


@moves_elements()
@api_boundary
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split an array along an axis into parts of given sizes.

    Parameters
    ----------
    operand : array_like
        Array to split, of any shape.
    sizes : sequence of int
        Lengths of the parts, which add up to the length of the axis.
    axis : int, optional
        Axis along which to split. The default is 0.

    Returns
    -------
    list of Array
        Consecutive parts of the same dtype.

    Raises
    ------
    ValueError
        If the sizes do not add up to the length of the axis, or `axis` is out of bounds.
    TypeError
        If a size is negative or not an integer, or `operand` is a list.

    See Also
    --------
    unstack : Parts of one element each, without the axis.
    numpy.split : Split at indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> [v.tolist() for v in jnp.lax.split(jnp.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    node = as_node(operand, "lax.split")
    at = as_axis(axis, node.aval.ndim, "lax.split")
    parts = as_shape(sizes, "lax.split")
    if sum(parts) != node.aval.shape[at] or not hasattr(sizes, "__iter__"):
        raise IncompatibleShapesError(
            "lax.split: sizes must add up to the axis; "
            f"got {parts} for axis {at} of shape {node.aval.shape}; "
            "change sizes, or use jnp.split"
        )
    return split_p.bind(wrap(node), sizes=parts, axis=at)


# --- integers and orders -------------------------------------------------------------------------


def _mulhi(x: Array, y: Array) -> Array:
    a, b = x._node, y._node
    kind = a.aval.dtype
    if dtype_kind(kind) not in "iu":
        raise wrong_dtype("lax.mulhi", kind, "iu")
    if b.aval.dtype != kind:
        raise dtypes_differ("lax.mulhi", (a.aval, b.aval))
    bits, weak = kind.itemsize * 8, a.aval.weak_type and b.aval.weak_type
    if bits < 64:
        wide = np.dtype(f"{'u' if kind.kind == 'u' else ''}int{max(32, 2 * bits)}")
        product = o.mul(cast(a, wide), cast(b, wide))
        shift = o.shift_right_logical if kind.kind == "u" else o.shift_right_arithmetic
        return wrap(cast(shift(product, scalar_node(bits, wide, False)), kind, weak))
    return wrap(cast(_high_of_64(a, b), kind, weak))


def _high_of_64(a: Node, b: Node) -> Node:
    """Return the high word of a product of 64-bit integers, from products of 32-bit halves."""
    kind, wide = a.aval.dtype, np.dtype(np.uint64)
    half, mask = scalar_node(32, wide, False), scalar_node(0xFFFFFFFF, wide, False)
    x, y = (cast(v, wide) for v in (a, b))
    (xh, xl), (yh, yl) = ((o.shift_right_logical(v, half), o.and_(v, mask)) for v in (x, y))
    low = o.shift_right_logical(o.mul(xl, yl), half)
    first = o.add(o.mul(xh, yl), low)
    second = o.add(o.mul(xl, yh), o.and_(first, mask))
    high = o.add(o.mul(xh, yh), o.shift_right_logical(first, half))
    high = cast(o.add(high, o.shift_right_logical(second, half)), kind)
    if kind.kind == "i":  # correct the unsigned result
        for one, other in ((a, b), (b, a)):
            minus = o.lt(one, like(one, 0))
            high = o.sub(high, where(wrap(minus), wrap(other), 0)._node)
    return high


mulhi_p = composed("mulhi", _mulhi)


@api_boundary
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute the high half of the bits of a product of integers, elementwise.

    Parameters
    ----------
    x : array_like
        Array or number of integer dtype, of any shape.
    y : array_like
        Second factor, of the same dtype and shape.

    Returns
    -------
    Array
        High bits of the products, of the dtype of the operands.

    Raises
    ------
    TypeError
        If the operands are not integers of one dtype.

    See Also
    --------
    mul : The low half of the bits.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.mulhi(jnp.int32(2**30), jnp.int32(8))
    Array(2, dtype=int32)
    """
    return mulhi_p.bind(*[wrap(as_node(v, "lax.mulhi")) for v in (x, y)])


def _total_order_integers(x: Node) -> Node:
    """Return integers in the total order of floats: -nan, -inf, ... -0, 0, ... inf, nan."""
    kind = x.aval.dtype
    if dtype_kind(kind) != "f":
        return x
    signed = np.dtype(f"int{kind.itemsize * 8}")
    bits = o.bitcast_convert_type(x, new_dtype=signed)
    turned = o.xor(bits, like(bits, np.iinfo(signed).max))
    return where(wrap(o.lt(bits, like(bits, 0))), wrap(turned), wrap(bits))._node


def _total(name: str) -> Any:
    def compare(x: Array, y: Array) -> Array:
        return wrap(
            getattr(o, name)(_total_order_integers(x._node), _total_order_integers(y._node))
        )

    return composed(f"{name}_to", compare)


eq_to_p, le_to_p, lt_to_p = _total("eq"), _total("le"), _total("lt")


# --- shapes and types ----------------------------------------------------------------------------


@api_boundary
def shapes_broadcast(*shapes: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast.

    Parameters
    ----------
    *shapes : sequence of int
        Shapes of arrays, whose dtypes do not matter.

    Returns
    -------
    tuple of int
        Common shape.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    See Also
    --------
    numpy.broadcast_shapes : The same in NumPy's namespace.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return broadcast_shapes(
        "lax.broadcast_shapes", [as_shape(s, "broadcast_shapes") for s in shapes]
    )


shapes_broadcast.__name__ = shapes_broadcast.__qualname__ = "broadcast_shapes"


@api_boundary
def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast an array to the shape of another one.

    Parameters
    ----------
    arr : array_like
        Array or number to broadcast, of any shape.
    like_arr : array_like
        Array whose shape is taken.

    Returns
    -------
    Array
        Broadcast array of the dtype of `arr`.

    Raises
    ------
    ValueError
        If `arr` does not broadcast to the shape.
    TypeError
        If an argument is not an array or a number.

    See Also
    --------
    numpy.broadcast_to : Broadcast to a given shape.
    broadcast_in_dim : Put the axes at given places.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.broadcast_like(1.0, jnp.zeros(2))
    Array([1., 1.], dtype=float32, weak_type=True)
    """
    x, other = as_node(arr, "lax.broadcast_like"), as_node(like_arr, "lax.broadcast_like")
    return wrap(to_shape(x, other.aval.shape, "lax.broadcast_like"))


@api_boundary
def shape_as_value(shape: Shape) -> np.ndarray | Array:
    """Return the sizes of a shape as an array.

    Parameters
    ----------
    shape : sequence of int
        Shape whose sizes are wanted.

    Returns
    -------
    numpy.ndarray
        Vector of int32; an Array where the shape is empty.

    Raises
    ------
    TypeError
        If a size is not an integer.

    See Also
    --------
    numpy.shape : Shape of an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    sizes = as_shape(shape, "lax.shape_as_value")
    return np.array(sizes, np.int32) if sizes else full((0,), 0, np.int32)


@api_boundary
def dtype_of(x: DTypeLike | ArrayLike) -> np.dtype:
    """Return the dtype of an array, a number or a type.

    Parameters
    ----------
    x : array_like or dtype_like
        Array of any shape, Python number, or type.

    Returns
    -------
    numpy.dtype
        Dtype that results of `x` have.

    Raises
    ------
    TypeError
        If `x` has no dtype, as a list, None or an unknown name.

    See Also
    --------
    numpy.result_type : Dtype of results of several operands.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.dtype(1.0).name
    'float32'
    """
    if isinstance(x, type | np.dtype | str):
        return dtypes.requested_dtype(x, "lax.dtype")
    try:
        return as_node(x, "lax.dtype").aval.dtype
    except TypeError:
        dtype = getattr(x, "dtype", None)
        if dtype is None:
            raise TypeError(f"lax.dtype: Cannot determine dtype of {x!r}; pass an array") from None
        return dtypes.canonicalize_dtype(dtype)


dtype_of.__name__ = dtype_of.__qualname__ = "dtype"

empty_p = composed("empty", lambda *, shape, dtype, out_sharding=None: full(shape, 0, dtype))


@accepts_keys("fill_keys")
@api_boundary
def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: ShardingLike = None) -> Array:
    """Make an array whose values do not matter.

    Parameters
    ----------
    shape : int or sequence of int
        Static shape of the array to make.
    dtype : dtype_like
        Dtype of its elements, any one.
    {out_sharding}

    Returns
    -------
    Array
        Array of the given shape and dtype, filled with zeros.

    Raises
    ------
    TypeError
        If a size is negative or not an integer, or the dtype is unknown.

    See Also
    --------
    full : Fill with a value.
    numpy.empty : The same in NumPy's namespace.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.empty((2, 3), "float32").shape
    (2, 3)
    """
    new = dtypes.requested_dtype(dtype, "lax.empty")
    node = empty_p.bind(shape=as_shape(shape, "lax.empty"), dtype=new)._node
    return new_array(node, out_sharding)


stage_p = composed("stage", lambda x: x)


@api_boundary
def stage(x: ArrayLike, /) -> Array:
    """Turn a number or a NumPy array into an array of this library.

    Parameters
    ----------
    x : array_like
        Array or number to convert, of any shape.

    Returns
    -------
    Array
        The same values. Shape and dtype are unchanged, except that 64-bit dtypes become 32-bit ones
        without `jax_enable_x64`.

    Raises
    ------
    TypeError
        If `x` is a list, a string or None.

    See Also
    --------
    numpy.asarray : The same for sequences, too.

    Notes
    -----
    In a traced function the result is a constant of the trace.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.stage(3)
    Array(3, dtype=int32, weak_type=True)
    """
    return wrap(as_node(x, "lax.stage"))
