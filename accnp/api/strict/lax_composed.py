"""Strict functions that are compositions, with a primitive each: joining and taking apart, total
order, high words of products, batches of matrices.

In: arrays of one dtype. Out: arrays; jaxprs show one equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, broadcast_shapes, cast, scalar_node, to_shape
from accnp.api.arguments.shapes import as_axis, as_shape
from accnp.api.arrays import joining
from accnp.api.arrays.creation import full
from accnp.api.arrays.manipulation import cut
from accnp.api.elements.composed import composed
from accnp.api.elements.selecting import where
from accnp.array import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import dtype_kind, dtypes_differ, wrong_dtype

__all__ = [
    "broadcast_like", "dtype_of", "empty", "empty_p", "eq_to_p", "le_to_p",
    "lt_to_p", "mulhi", "mulhi_p", "shape_as_value", "shapes_broadcast", "split", "split_p",
    "stack", "stack_p", "stage", "stage_p", "tile", "tile_p", "unstack", "unstack_p",
]  # fmt: skip


def _same_dtypes(name: str, nodes: Sequence[Node]) -> None:
    if len({x.aval.dtype for x in nodes}) > 1:
        raise dtypes_differ(name, [x.aval for x in nodes])


# --- joining and taking apart --------------------------------------------------------------------

stack_p = composed("stack", lambda *xs, axis: joining.stack(xs, axis))
tile_p = composed("tile", lambda x, *, reps: joining.tile(x, reps))
unstack_p = composed(
    "unstack", lambda x, *, axis: list(joining.unstack(x, axis=axis)), several=True
)


def _split(x: Array, *, sizes: tuple[int, ...], axis: int) -> list[Array]:
    ends = np.cumsum(sizes)
    return [wrap(cut(x._node, axis, int(e) - n, int(e))) for n, e in zip(sizes, ends, strict=True)]


split_p = composed("split", _split, several=True)


@api_boundary
def stack(operands: Any, axis: int = 0) -> Array:
    """Join arrays of one shape and dtype along a new axis.

    Raises:
        IndexError: there are no operands.
        TypeError: their dtypes differ.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.stack([jnp.zeros(2), jnp.ones(2)], axis=1).tolist()
        [[0.0, 1.0], [0.0, 1.0]]
    """
    nodes = [as_node(x, "lax.stack") for x in operands]
    if not nodes:
        raise IndexError(f"lax.stack: operands are needed; got {operands!r}; pass some")
    _same_dtypes("lax.stack", nodes)
    at = as_axis(axis, nodes[0].aval.ndim + 1, "lax.stack")
    return stack_p.bind(*map(wrap, nodes), axis=at)


@api_boundary
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Take an array apart along an axis.

    The parts lack the axis and have the array's dtype.

    Raises:
        ValueError: there is no such axis.
        TypeError: x is a list.

    Example:
        >>> import accnp as jnp
        >>> [v.item() for v in jnp.lax.unstack(jnp.arange(3))]
        [0, 1, 2]
    """
    node = as_node(x, "lax.unstack")
    at = as_axis(axis, node.aval.ndim, "lax.unstack")
    return tuple(unstack_p.bind(wrap(node), axis=at))


@api_boundary
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat the whole array along each axis, as often as `reps` says for it; the dtype stays.

    Raises:
        TypeError: `reps` has not one number for each axis, or one is negative or no integer.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.tile(jnp.arange(3), (2,))
        Array([0, 1, 2, 0, 1, 2], dtype=int32)
    """
    node = as_node(operand, "lax.tile")
    times = as_shape(reps, "lax.tile")
    if np.ndim(reps) == 0 or len(times) != node.aval.ndim:
        raise TypeError(
            f"lax.tile: reps needs one number for each axis; got {reps!r} for shape "
            f"{node.aval.shape}; use jnp.tile for others"
        )
    return tile_p.bind(wrap(node), reps=times)


@api_boundary
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cut an axis into consecutive parts of these sizes; the other axes and the dtype stay.

    Raises:
        ValueError: the sizes do not add up to the axis, or there is no such axis.
        TypeError: a size is negative or no integer, or the operand is a list.

    Example:
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
    """The high word of a product of 64-bit integers, by products of halves."""
    kind, wide = a.aval.dtype, np.dtype(np.uint64)
    half, mask = scalar_node(32, wide, False), scalar_node(0xFFFFFFFF, wide, False)
    x, y = (cast(v, wide) for v in (a, b))
    (xh, xl), (yh, yl) = ((o.shift_right_logical(v, half), o.and_(v, mask)) for v in (x, y))
    low = o.shift_right_logical(o.mul(xl, yl), half)
    first = o.add(o.mul(xh, yl), low)
    second = o.add(o.mul(xl, yh), o.and_(first, mask))
    high = o.add(o.mul(xh, yh), o.shift_right_logical(first, half))
    high = cast(o.add(high, o.shift_right_logical(second, half)), kind)
    if kind.kind == "i":  # the words above were those of unsigned factors
        for one, other in ((a, b), (b, a)):
            minus = o.lt(one, like(one, 0))
            high = o.sub(high, where(wrap(minus), wrap(other), 0)._node)
    return high


mulhi_p = composed("mulhi", _mulhi)


@api_boundary
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high half of the bits of a product of integers, elementwise.

    Raises:
        TypeError: the operands are not integers of one dtype.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.mulhi(jnp.int32(2**30), jnp.int32(8))
        Array(2, dtype=int32)
    """
    return mulhi_p.bind(*[wrap(as_node(v, "lax.mulhi")) for v in (x, y)])


def _ordered(x: Node) -> Node:
    """Integers in the total order of floats: -nan, -inf, ... -0, 0, ... inf, nan."""
    kind = x.aval.dtype
    if dtype_kind(kind) != "f":
        return x
    signed = np.dtype(f"int{kind.itemsize * 8}")
    bits = o.bitcast_convert_type(x, new_dtype=signed)
    turned = o.xor(bits, like(bits, np.iinfo(signed).max))
    return where(wrap(o.lt(bits, like(bits, 0))), wrap(turned), wrap(bits))._node


def _total(name: str) -> Any:
    def compare(x: Array, y: Array) -> Array:
        return wrap(getattr(o, name)(_ordered(x._node), _ordered(y._node)))

    return composed(f"{name}_to", compare)


eq_to_p, le_to_p, lt_to_p = _total("eq"), _total("le"), _total("lt")


# --- shapes and types ----------------------------------------------------------------------------


@api_boundary
def shapes_broadcast(*shapes: Any) -> tuple[int, ...]:
    """The shape to which shapes broadcast: a tuple of Python ints; dtypes play no part.

    Raises:
        ValueError: they do not.

    Example:
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
    """Repeat an array to the shape of another one.

    The dtype stays, the rank of the result is that of `like_arr`.

    Raises:
        ValueError: the shape cannot be repeated to the other one.
        TypeError: an argument is no array or number.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.broadcast_like(1.0, jnp.zeros(2))
        Array([1., 1.], dtype=float32, weak_type=True)
    """
    x, other = as_node(arr, "lax.broadcast_like"), as_node(like_arr, "lax.broadcast_like")
    return wrap(to_shape(x, other.aval.shape, "lax.broadcast_like"))


@api_boundary
def shape_as_value(shape: Any) -> Array:
    """The sizes of a shape as an array of integers.

    Raises:
        TypeError: a size is no integer.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.shape_as_value((2, 3))
        Array([2, 3], dtype=int32)
    """
    sizes = as_shape(shape, "lax.shape_as_value")
    parts = [full((1,), n, np.int32) for n in sizes]
    return joining.concatenate(parts) if parts else full((0,), 0, np.int32)


@api_boundary
def dtype_of(x: Any) -> np.dtype:
    """Return the dtype of an array of any shape, a number, or a type, as results would have it.

    Raises:
        TypeError: `x` has none: a list, None, an unknown name.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.dtype(1.0).name
        'float32'
    """
    if isinstance(x, type | np.dtype | str):
        return dtypes.requested_dtype(x, "lax.dtype")
    try:
        return as_node(x, "lax.dtype").aval.dtype
    except TypeError:
        found = getattr(x, "dtype", None)
        if found is None:
            raise TypeError(f"lax.dtype: Cannot determine dtype of {x!r}; pass an array") from None
        return dtypes.canonicalize_dtype(found)


dtype_of.__name__ = dtype_of.__qualname__ = "dtype"

empty_p = composed("empty", lambda *, shape, dtype, out_sharding=None: full(shape, 0, dtype))


@api_boundary
def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of this shape and dtype of which nobody asks what is in it: zeros.

    Raises:
        TypeError: a size is negative or no integer, or there is no such dtype.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.empty((2, 3), "float32").shape
        (2, 3)
    """
    new = dtypes.requested_dtype(dtype, "lax.empty")
    return empty_p.bind(shape=as_shape(shape, "lax.empty"), dtype=new)


stage_p = composed("stage", lambda x: x)


@api_boundary
def stage(x: ArrayLike, /) -> Array:
    """A number or a NumPy array as an array; in a function that is traced it stays a constant.

    Shape and dtype stay; 64 bits become 32, as everywhere, unless `enable_x64` is on.

    Raises:
        TypeError: x is a list, a text or None.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.stage(3)
        Array(3, dtype=int32, weak_type=True)
    """
    return wrap(as_node(x, "lax.stage"))
