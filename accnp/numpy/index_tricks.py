"""Objects that make arrays when they are indexed: `mgrid`, `ogrid`, `r_` and `c_`."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, promote, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_static
from accnp.array_type import Array
from accnp.numpy.creation import arange, array
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.manipulation import moveaxis
from accnp.numpy.matrices import meshgrid
from accnp.numpy.numerical_ranges import linspace

__all__ = ["c_", "mgrid", "ogrid", "r_"]


def _line(cut: slice, name: str) -> Array:
    """Return the numbers of a slice; an imaginary step is the number of points, ends included."""
    start, stop, step = (
        as_static(v, f"jnp.{name}") for v in (cut.start or 0, cut.stop, cut.step or 1)
    )
    if stop is None:  # as in NumPy and JAX, the start is then the stop of arange
        start, stop = 0, start
    if isinstance(step, complex | np.complexfloating):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """`mgrid` (dense) or `ogrid` (open)."""

    def __init__(self, name: str, sparse: bool, what: str) -> None:
        self._name, self._sparse = name, sparse
        self.__doc__ = what

    def __repr__(self) -> str:
        return f"accnp.numpy.{self._name}"

    @promotes_inside
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key, self._name)
        if not key:
            return [] if self._sparse else arange(0)
        lines = [wrap(n) for n in promote(self._name, *[_line(k, self._name) for k in key])]
        grid = meshgrid(*lines, indexing="ij", sparse=self._sparse)
        return list(grid) if self._sparse else stack(grid)


class _Joined:
    """`r_` or `c_`: joins arrays, numbers and slices along an axis."""

    def __init__(self, name: str, axis: int, rank: int, place: int, what: str) -> None:
        self._name, self._default = name, (axis, rank, place)
        self.__doc__ = what

    def __repr__(self) -> str:
        return f"accnp.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Array:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, rank, place = self._default
        matrix = ""
        if parts and isinstance(parts[0], str):
            directive = parts.pop(0)
            if directive in ("r", "c"):
                matrix = directive
            else:
                axis, rank, place = self._directive(directive)
        joined = concatenate([self._convert_item(p, rank, place) for p in parts], axis)
        if matrix and joined.ndim == 1:
            return joined[None, :] if matrix == "r" else joined[:, None]
        return joined

    def _directive(self, text: str) -> tuple[int, int, int]:
        """Parse 'axis,ndmin,trans1d'; missing numbers keep their defaults."""
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(
                f"jnp.{self._name}: could not understand directive {text!r}; "
                "use 'r', 'c' or up to three integers: 'axis,ndmin,trans1d'"
            )
        return tuple((*numbers, *self._default[len(numbers) :]))  # type: ignore[return-value]

    def _convert_item(self, item: Any, rank: int, place: int) -> Array:
        item_array = _line(item, self._name) if isinstance(item, slice) else _as_array(item)
        missing = rank - item_array.ndim
        if missing <= 0:
            return item_array
        had = item_array.ndim
        item_array = item_array.reshape((1,) * missing + item_array.shape)
        if place == -1:
            return item_array
        # `place` is the position of the part's own axes among the `rank` axes.
        first = place if place >= 0 else place + missing + 1
        return moveaxis(item_array, tuple(range(missing, rank)), tuple(range(first, first + had)))


def _as_array(item: Any) -> Array:
    """Convert an item to an array; numbers stay weakly typed, as in arithmetic."""
    return wrap(as_node(item)) if isinstance(item, int | float | complex) else array(item)


mgrid = _Grid(
    "mgrid",
    False,
    """Make dense coordinate grids from slices, by indexing.

    `mgrid[0:3, 0:2]` is an array of shape (2, 3, 2), with the coordinates along each axis. A slice
    start:stop:step stands for `arange`, and one with an imaginary step for `linspace`.

    See Also
    --------
    ogrid : Open grids.
    meshgrid : Grids from vectors.
    indices : Indices of a grid.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.mgrid[0:2, 0:3].shape
    (2, 2, 3)
    """,
)
ogrid = _Grid(
    "ogrid",
    True,
    """Make open coordinate grids from slices, by indexing.

    `ogrid[0:3, 0:2]` is a list of one array for each axis, which broadcast against each other.
    Slices are those of `mgrid`.

    See Also
    --------
    mgrid : Dense grids.
    ix_ : Index arrays of an open mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> [g.shape for g in jnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """,
)
r_ = _Joined(
    "r_",
    0,
    1,
    -1,
    """Join numbers, arrays and slices along the first axis, by indexing.

    A string in front, 'axis,ndmin,trans1d', chooses the axis, the minimum number of axes of the
    parts, and the position of their own axes among these. 'r' and 'c' make a matrix of one row or
    column.

    See Also
    --------
    c_ : Join along the last axis.
    concatenate : The function for arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.r_[0:3, 7, jnp.array([1, 2])]
    Array([0, 1, 2, 7, 1, 2], dtype=int32)
    """,
)
c_ = _Joined(
    "c_",
    -1,
    2,
    0,
    """Join arrays along the last axis, by indexing; vectors are columns.

    See Also
    --------
    r_ : Join along the first axis.
    column_stack : The function for arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.c_[jnp.arange(2), jnp.arange(2)]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """,
)
