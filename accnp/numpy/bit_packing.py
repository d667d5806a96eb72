"""Packing bits into bytes and unpacking them."""

from __future__ import annotations

import functools
import operator

import numpy as np

from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_axis, as_int
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary, not_one_of
from accnp.numpy.creation import array, zeros
from accnp.numpy.joining import concatenate
from accnp.numpy.manipulation import moveaxis
from accnp.numpy.padding import pad
from accnp.primitives.kinds import dtype_kind

__all__ = ["packbits", "unpackbits"]


def _bit_shifts(bitorder: str, function: str) -> Array:
    """Return the shift of each of the eight bits of a byte."""
    if bitorder not in ("little", "big"):
        raise not_one_of(function, "bitorder", bitorder, ("little", "big"))
    return array(np.arange(8, dtype=np.uint8)[:: 1 if bitorder == "little" else -1])


def _move_axis_to_end(x: Array, axis: int | None, function: str) -> tuple[Array, int]:
    """Move the axis to the end and return its position; without an axis, flatten the array."""
    if axis is None:
        return x.reshape(-1), 0
    d = as_axis(axis, x.ndim, function)
    return moveaxis(x, d, -1), d


@api_boundary
@promotes_inside
@compiled_if_small("a")
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack each group of eight truth values into a byte.

    Parameters
    ----------
    a : array_like of int or bool
        Bits to pack; elements other than zero count as 1.
    {axis_or_flat}
    {bitorder}

    Returns
    -------
    Array
        Bytes of dtype uint8. The axis has an eighth of its length, rounded up; missing bits are 0.

    Raises
    ------
    TypeError
        If `a` holds neither integers nor bools.
    ValueError
        If the axis is out of bounds, or `bitorder` is unknown.

    See Also
    --------
    unpackbits : Unpack bytes into bits.
    bitwise_count : Number of ones in an integer.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
    Array([131], dtype=uint8)
    """
    x = wrap(as_node(a, "jnp.packbits"))
    if dtype_kind(x.dtype) not in "biu":
        raise TypeError(
            f"jnp.packbits: expected integers or booleans; got {x.dtype.name}; "
            "compare first, or convert with astype"
        )
    places = _bit_shifts(bitorder, "jnp.packbits")
    x, d = _move_axis_to_end(x != 0, axis, "jnp.packbits")
    missing = -x.shape[-1] % 8
    bits = pad(x.astype(np.uint8), [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    octets = bits.reshape(*x.shape[:-1], -1, 8)
    # Separate slices, since a reduction over an axis of length 8 would not be vectorized.
    moved = [octets[..., k] << places[k] for k in range(8)]
    return moveaxis(functools.reduce(operator.or_, moved), -1, d)


@api_boundary
@promotes_inside
@compiled_if_small("a")
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack each byte into eight bits.

    Parameters
    ----------
    a : array_like of uint8
        Bytes to unpack. Lists and tuples are not accepted.
    {axis_or_flat}
    count : int, optional
        Number of bits to keep along the axis. A negative number says how many to drop at the end;
        if it exceeds the number of bits, zeros are appended. The default, None, keeps all bits.
    {bitorder}

    Returns
    -------
    Array
        Zeros and ones of dtype uint8. The axis has eight times its length, or `count`.

    Raises
    ------
    TypeError
        If `a` is not an array of uint8.
    ValueError
        If the axis is out of bounds, or `bitorder` is unknown.

    See Also
    --------
    packbits : Pack bits into bytes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.unpackbits(jnp.array([5], dtype=jnp.uint8))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    x = wrap(as_node(a, "jnp.unpackbits"))
    if x.dtype != np.uint8:
        raise TypeError(f"jnp.unpackbits: expected uint8; got {x.dtype.name}; convert with astype")
    places = _bit_shifts(bitorder, "jnp.unpackbits")
    x, d = _move_axis_to_end(x, axis, "jnp.unpackbits")
    bits = ((x[..., None] >> places) & np.uint8(1)).reshape(*x.shape[:-1], -1)
    if count is not None:
        n_bits = as_int(count, "jnp.unpackbits", "count")
        have = bits.shape[-1]
        if n_bits > have:
            more = zeros((*bits.shape[:-1], n_bits - have), np.uint8)
            bits = concatenate([bits, more], axis=-1)
        else:
            bits = bits[..., :n_bits]
    return moveaxis(bits, -1, d)
