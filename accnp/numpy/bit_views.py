"""Reinterpretation of the bits of an array as another dtype (`Array.view`).

If the dtypes have different widths, the last axis shrinks or grows by their ratio, and the first
element holds the lowest bits. Values of 2 and 4 bits occupy a byte each in memory, in its lowest
bits, so they are extracted and combined with shifts.
"""

from __future__ import annotations

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import cast
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to

__all__ = ["bits_of", "width_of"]

_BYTE = np.dtype(np.uint8)


def width_of(dtype: np.dtype) -> int:
    """Return the number of bits of one value."""
    return dtypes.itemsize_bits(dtype)


def bits_of(x: Node, new: np.dtype) -> Node:
    """Return the bits of `x` as elements of `new`, which must fill the last axis exactly."""
    old = x.aval.dtype
    if new == old:
        return x
    if width_of(old) < 8 and width_of(new) > width_of(old):
        return bits_of(_join_bits(x, min(width_of(new), 8)), new)
    if width_of(new) < 8 and width_of(old) > width_of(new):
        return bits_of(
            _split_bits(bits_of(x, _BYTE) if width_of(old) > 8 else x, width_of(new)), new
        )
    if new.itemsize == old.itemsize and "b" not in (new.kind, old.kind):
        return o.bitcast_convert_type(x, new_dtype=new)
    return o.view_bytes(x, new_dtype=new)


def _unsigned(bits: int) -> np.dtype:
    return dtypes.requested_dtype(f"uint{bits}", "view")


def _part_shifts(shape: tuple[int, ...], bits: int) -> Node:
    """Return the shift of each part from the lowest bit."""
    place = o.iota(dtype=_BYTE, shape=shape, dimension=len(shape) - 1)
    return o.mul(place, like(place, bits))


def _split_bits(x: Node, bits: int) -> Node:
    width, shape = width_of(x.aval.dtype), x.aval.shape
    x = cast(bits_of(x, _unsigned(width)), _BYTE)
    split = (*shape, width // bits)
    x = broadcast_to(x, split, tuple(range(len(shape))))
    x = o.and_(o.shift_right_logical(x, _part_shifts(split, bits)), like(x, 2**bits - 1))
    merged = (*shape[:-1], shape[-1] * (width // bits))
    return cast(o.reshape(x, new_sizes=merged, dimensions=None), _unsigned(bits))


def _join_bits(x: Node, width: int) -> Node:
    bits, shape = width_of(x.aval.dtype), x.aval.shape
    x = cast(bits_of(x, _unsigned(bits)), _BYTE)
    ratio = width // bits
    split = (*shape[:-1], shape[-1] // ratio, ratio)
    x = o.reshape(x, new_sizes=split, dimensions=None)
    x = o.shift_left(x, _part_shifts(split, bits))
    return cast(o.reduce_or(x, axes=(len(split) - 1,)), _unsigned(width))
