"""Parts of references: dynamic slices, views, and reading and writing them.

`references.py` calls `read_part` and `update_part` with the content of a reference and an index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from accnp.api.arguments.convert import as_node, cast
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy.creation import arange
from accnp.primitives.elementwise import like

__all__ = ["At", "Part", "Slice", "ds", "extents", "read_part", "update_part"]

_INT32 = np.dtype(np.int32)


class Slice:
    """Evenly spaced part of an axis of a reference, whose start may be traced.

    Made by `ds`. References of any dtype can be indexed with it.

    Parameters
    ----------
    start : int or Array
        Index of the first element.
    size : int
        Number of elements that the slice covers.
    stride : int, optional
        Distance between elements. The default is 1.

    Raises
    ------
    ValueError
        From `ds`, if the stride is negative or the size is missing.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ds(1, 2)
    Slice(start=1, size=2, stride=1)
    """

    def __init__(self, start: ArrayLike, size: int, stride: int = 1) -> None:
        self.start, self.size, self.stride = start, size, stride

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size}, stride={self.stride})"


@api_boundary
def ds(start: ArrayLike, size: int | None = None, stride: int | None = None) -> Slice:
    """Make a dynamic slice for indexing a reference: `size` elements from `start`.

    Parameters
    ----------
    start : int or Array
        Index of the first element, an integer that may be traced. If it is the only argument, it is
        the size, and the slice starts at 0.
    size : int, optional
        Number of elements. It cannot be traced.
    stride : int, optional
        Distance between elements. The default is 1.

    Returns
    -------
    Slice
        Index for references of any shape and dtype.

    Raises
    ------
    ValueError
        If the size is missing, or the stride is not an integer of at least 0.

    See Also
    --------
    new_ref : Make a reference.
    lax.dynamic_slice : Slice of an array with a traced start.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.new_ref(jnp.arange(4))[jnp.ds(1, 2)]
    Array([1, 2], dtype=int32)
    """
    if size is None:
        if not isinstance(start, int):
            raise ValueError(f"ds: a traced start needs a size; got start={start!r}; pass both")
        start, size = 0, start
    stride = 1 if stride is None else stride
    if not isinstance(stride, int) or stride < 0:
        raise ValueError(f"ds: stride must be an integer of 0 or more; got {stride!r}; pass 1")
    return Slice(start, size, stride)


class Part:
    """A part of a reference, which can be read and written like the whole."""

    __slots__ = ("idx", "of")

    def __init__(self, of: Any, idx: Any) -> None:
        self.of, self.idx = of, idx

    @property
    def at(self) -> At:
        """`part.at[i]`: a part of it."""
        return At(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is read."""
        return self[...].shape

    @property
    def ndim(self) -> int:
        """The rank of what is read."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of what is read."""
        return self[...].size

    @property
    def dtype(self) -> Any:
        """The dtype of the reference's content."""
        return self.of.dtype

    def __getitem__(self, idx: Any) -> Array:
        return read_part(self.of[self.idx], idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        self.of[self.idx] = update_part(self.of[self.idx], idx, value, "set")


class At:
    """The property `at` of references and their parts."""

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getitem__(self, idx: Any) -> Part:
        return Part(self._of, idx)


class Box(NamedTuple):
    """Part of static sizes with computed starts."""

    starts: list[Node]
    sizes: tuple[int, ...]
    dropped: tuple[int, ...]  # axes indexed with integers, which the part lacks


Extent = tuple[Any, int, bool]  # start, size, and whether the axis is dropped


def extents(shape: tuple[int, ...], idx: Any) -> list[Extent] | None:
    """Return the extents that an index selects, or None if they are not all contiguous."""
    whole = list(idx) if isinstance(idx, tuple) else [idx]
    dots = [i for i, e in enumerate(whole) if e is ...]
    if len(dots) > 1 or len(whole) - len(dots) > len(shape):
        return None
    at = dots[0] if dots else len(whole)
    whole[at : at + 1] = [slice(None)] * (len(shape) - len(whole) + len(dots))
    candidates = [_extent(e, n) for e, n in zip(whole, shape, strict=True)]
    parts = [f for f in candidates if f is not None]
    return parts if len(parts) == len(candidates) else None


def box_of(shape: tuple[int, ...], idx: Any) -> Box | None:
    """Return the box of an index with computed starts; None for other indices.

    Raises:
        ValueError: an integer is out of bounds, outside of traced functions. In traced functions it
            is clamped to the last element, as in JAX.
    """
    parts = extents(shape, idx)
    if parts is not None and state.abstract is None:
        for (start, _, drop), n in zip(parts, shape, strict=True):
            if drop and isinstance(start, int) and start >= n:
                raise ValueError(
                    f"ref: Out of bound indexer: idx={start}, dim={n}; pass an index below the "
                    "size of the axis"
                )
    if parts is None or all(isinstance(start, int) for start, _, _ in parts):
        return None
    return Box(
        [cast(as_node(start), _INT32) for start, _, _ in parts],
        tuple([n for _, n, _ in parts]),
        tuple([i for i, (_, _, drop) in enumerate(parts) if drop]),
    )


def _extent(e: Any, n: int) -> Extent | None:
    """Return the extent that one entry of an index selects, or None."""
    if isinstance(e, Slice):
        return None if e.stride != 1 else (e.start, e.size, False)
    if isinstance(e, slice):
        if not all(x is None or isinstance(x, int) for x in (e.start, e.stop, e.step)):
            return None
        start, stop, step = e.indices(n)
        return (start, max(stop - start, 0), False) if step == 1 else None
    if isinstance(e, int | np.integer) and not isinstance(e, bool):
        return int(e) % n if -n <= e < n else int(e), 1, True
    if isinstance(e, Array | np.ndarray) and e.shape == () and e.dtype.kind in "iu":
        i = cast(as_node(e), _INT32)
        return wrap(o.select_n(o.lt(i, like(i, 0)), i, o.add(i, like(i, n)))), 1, True
    return None


def _convert_index(idx: Any) -> Any:
    """Convert an index to one that arrays accept: dynamic slices become index arrays."""
    if idx is None:
        return ...
    if isinstance(idx, tuple):
        return tuple([_slice_to_index(i) for i in idx])
    return _slice_to_index(idx)


def _slice_to_index(i: Any) -> Any:
    if not isinstance(i, Slice):
        return i
    if isinstance(i.start, int):
        return slice(i.start, i.start + i.size * i.stride, i.stride)
    return i.start + arange(i.size) * i.stride


def read_part(x: Array, idx: Any) -> Array:
    """Return a part of an array; a box that exceeds the array is moved inside, as in JAX."""
    box = box_of(x.shape, idx)
    if box is None:
        return x[_convert_index(idx)]
    part = o.dynamic_slice(x._node, *box.starts, slice_sizes=box.sizes)
    return wrap(o.squeeze(part, dimensions=box.dropped) if box.dropped else part)


def update_part(x: Array, idx: Any, value: Any, how: str) -> Array:
    """Return the array with a part set, or combined by `how`, a method of `x.at[i]`."""
    box = box_of(x.shape, idx)
    if box is None:
        return getattr(x.at[_convert_index(idx)], how)(value)
    part = read_part(x, idx)
    new = as_node(getattr(part.at[...], how)(value))
    whole = o.reshape(new, new_sizes=box.sizes, dimensions=None) if box.dropped else new
    return wrap(o.dynamic_update_slice(x._node, whole, *box.starts))
