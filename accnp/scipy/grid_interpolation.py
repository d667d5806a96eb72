"""Interpolation on grids: `map_coordinates` and `RegularGridInterpolator`.

Along each axis, a point has one neighbor, or two with weights. The result is a weighted sum over
all combinations of neighbors, whose gathers fuse into one kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, mul
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import promote_inexact, wrap
from accnp.api.jit.small_calls import run_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary, not_one_of
from accnp.lax.elementwise import round
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array, asarray
from accnp.numpy.joining import stack
from accnp.numpy.manipulation import broadcast_arrays
from accnp.numpy.selection import where
from accnp.numpy.taking import searchsorted
from accnp.pytree import register_pytree_node

__all__ = ["RegularGridInterpolator", "map_coordinates"]


def _reflect_indices(i: Array, n: int) -> Array:
    """Reflect indices out of bounds at the center of the last element."""
    return uf.abs((i + (n - 1)) % (2 * (n - 1)) - (n - 1))


# How indices outside of an axis of n elements are mapped, by mode.
_OUTSIDE: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda i, n: i,
    "nearest": lambda i, n: uf.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _reflect_indices,
    "reflect": lambda i, n: (_reflect_indices(2 * i + 1, 2 * n + 1) - 1) // 2,
}


def _round_half_away(x: Array) -> Array:
    """The nearest integers, halves away from zero."""
    return x if x.dtype.kind in "biu" else round(x)


def _neighbors(place: Array, order: int) -> list[tuple[Array, Array]]:
    """Return indices around a point along one axis, and their weights."""
    if order == 0:
        return [(_round_half_away(place).astype(np.int32), array(1, dtype=place.dtype))]
    low = uf.floor(place)
    weight = place - low
    index = low.astype(np.int32)
    return [(index, 1 - weight), (index + 1, weight)]


@api_boundary
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Interpolate an array at given coordinates.

    Parameters
    ----------
    input : array_like
        Array of n axes to interpolate.
    coordinates : sequence of array_like
        n arrays that broadcast: the coordinates along each axis.
    order : {0, 1}
        0 for the nearest element, 1 for linear interpolation.
    mode : {"constant", "nearest", "wrap", "mirror", "reflect"}, optional
        Values outside of the array: `cval`, the default, the nearest element, the array repeated,
        or the array reversed, without and with its last element twice. "constant" and "wrap" are
        SciPy's "grid-constant" and "grid-wrap".
    cval : scalar, optional
        Value outside of the array with mode "constant". The default is 0.

    Returns
    -------
    Array
        Values of the dtype of `input` and the shape of the coordinates. Those of integers are
        rounded.

    Raises
    ------
    ValueError
        If there is not one array of coordinates for each axis.
    NotImplementedError
        If `order` or `mode` is another one.

    See Also
    --------
    scipy.interpolate.RegularGridInterpolator : Interpolation on a grid with given coordinates.
    image.resize : Resize an image.
    numpy.interp : Interpolation in one dimension.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.ndimage.map_coordinates(jnp.arange(4.0), [jnp.array([0.5, 2.0])], order=1)
    Array([0.5, 2. ], dtype=float32)
    """
    if isinstance(coordinates, list | tuple):
        return run_small(_at_places, (input, cval, *coordinates), (order, mode))
    return run_small(_at_rows, (input, cval, coordinates), (order, mode))


def _at_rows(input: ArrayLike, cval: ArrayLike, rows: Any, order: int, mode: str) -> Array:
    return _at_places(input, cval, *rows, order, mode)


def _at_places(input: ArrayLike, cval: ArrayLike, *arguments: Any) -> Array:
    *coordinates, order, mode = arguments
    name = "ndimage.map_coordinates"
    x = asarray(input)
    places = [asarray(c) for c in coordinates]
    if len(places) != x.ndim:
        raise ValueError(
            f"{name}: there must be one array of coordinates for each axis; got {len(places)} for "
            f"shape {x.shape}; pass a list of that many"
        )
    if mode not in _OUTSIDE:
        raise not_one_of(name, "mode", mode, _OUTSIDE, NotImplementedError)
    if order not in (0, 1):
        raise NotImplementedError(
            f"{name}: order must be 0 or 1; got {order!r}; use scipy.ndimage for splines"
        )
    fill = asarray(cval, dtype=x.dtype)
    axes = [
        [(_OUTSIDE[mode](i, n), (i >= 0) & (i < n), w) for i, w in _neighbors(place, order)]
        for place, n in zip(places, x.shape, strict=True)
    ]
    terms = []
    for choice in itertools.product(*axes):
        indices, inside, weights = zip(*choice, strict=True) if choice else ((), (), ())
        value = x[tuple(indices)]
        if mode == "constant" and inside:
            value = where(reduce(and_, inside), value, fill)
        terms.append(reduce(mul, weights) * value if weights else value)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return (_round_half_away(total) if x.dtype.kind in "iu" else total).astype(x.dtype)


def _points(xi: Any, rank: int) -> Array:
    """Return points as an array whose last axis has one coordinate for each axis of the grid."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        return stack(broadcast_arrays(*xi), axis=-1).astype(dtypes.default_float())
    x = asarray(xi)
    return x.reshape(-1, rank) if x.ndim == 1 else x


class RegularGridInterpolator:
    """Interpolator of values on a rectangular grid.

    It is called with coordinates, an array whose last axis has n elements, or a tuple of n arrays
    that broadcast. It returns an array of the shape of the coordinates and of the other axes of the
    values.

    Parameters
    ----------
    points : sequence of array_like
        Increasing coordinates along each of n axes of the grid.
    values : array_like
        Array whose first n axes are those of the grid. Integers give float32.
    method : {"linear", "nearest"}, optional
        How to interpolate. The default is "linear".
    bounds_error : bool, optional
        Whether to raise errors outside of the grid. Only False, the default, is supported, since
        results cannot depend on values.
    fill_value : scalar, optional
        Result outside of the grid, nan by default. None extrapolates.

    Raises
    ------
    ValueError
        If `method` is unknown, `points` do not fit the values, or the fill value cannot be cast.
    NotImplementedError
        If `bounds_error` is True.

    See Also
    --------
    scipy.ndimage.map_coordinates : Interpolation at indices.
    numpy.interp : Interpolation in one dimension.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(3.0)
    >>> f = jnp.scipy.interpolate.RegularGridInterpolator((x, x), x[:, None] * x)
    >>> f(jnp.array([1.5, 2.0]))
    Array([3.], dtype=float32)
    """

    @api_boundary
    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:  # fmt: skip
        self.method = _method(method)
        if bounds_error:
            raise NotImplementedError(
                f"{_NAME}: places outside cannot be refused, since values are not looked at; "
                "got bounds_error=True; use fill_value"
            )
        self.bounds_error = bounds_error
        self.values = wrap(promote_inexact(_NAME, values)[0])
        if len(points) > self.values.ndim:
            raise ValueError(
                f"{_NAME}: there are more points than axes; got {len(points)} for values of shape "
                f"{self.values.shape}; drop points, or add axes to the values"
            )
        if fill_value is not None:
            fill_value = asarray(fill_value)
            if not np.can_cast(fill_value.dtype, self.values.dtype, "same_kind"):
                raise ValueError(
                    f"{_NAME}: fill_value cannot be cast to the dtype of the values; got "
                    f"{fill_value.dtype.name} for {self.values.dtype.name}; "
                    "pass a number of that dtype"
                )
        self.fill_value = fill_value
        self.grid = tuple([asarray(p) for p in points])
        for axis, p in enumerate(self.grid):
            if p.ndim != 1 or p.shape[0] != self.values.shape[axis]:
                raise ValueError(
                    f"{_NAME}: one place for each of {self.values.shape[axis]} values is needed; "
                    f"got points of shape {p.shape} (axis {axis}); "
                    "pass as many points as values along the axis"
                )

    @api_boundary
    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Interpolate at points."""
        method = self.method if method is None else _method(method)
        rank = len(self.grid)
        at = _points(xi, rank)
        if at.shape[-1] != rank:
            raise ValueError(
                f"{_NAME}: the last axis of the places must have one element for each of {rank} "
                f"axes of the grid; got shape {at.shape}; reshape them to [..., axes]"
            )
        cells = [_cell(at[..., d], g) for d, g in enumerate(self.grid)]
        beyond = self.values.ndim - rank
        if method == "nearest":
            index = [where(w <= 0.5, i, i + 1) for i, w, _ in cells]
            result = self.values[tuple(index)]
        else:
            sides = [[(i, 1 - w), (i + 1, w)] for i, w, _ in cells]
            result: Any = 0.0
            for choice in itertools.product(*sides):
                weight = reduce(mul, [w for _, w in choice])
                weight = weight.reshape(weight.shape + (1,) * beyond)
                result = result + self.values[tuple([i for i, _ in choice])] * weight
        if self.fill_value is None:
            return result
        outside = reduce(lambda a, b: a | b, [out for _, _, out in cells])
        return where(outside.reshape(outside.shape + (1,) * beyond), self.fill_value, result)


_NAME = "interpolate.RegularGridInterpolator"


def _method(method: str) -> str:
    if method not in ("linear", "nearest"):
        raise not_one_of(_NAME, "method", method, ("linear", "nearest"))
    return method


def _cell(x: Array, grid: Array) -> tuple[Array, Array, Array]:
    """Return the cells of points, the positions in them, and whether points are out of bounds."""
    i = uf.clip(searchsorted(grid, x) - 1, 0, max(grid.size - 2, 0))
    left = grid[i]
    return i, (x - left) / (grid[i + 1] - left), (x < grid[0]) | (x > grid[-1])


def _unflatten(static: Any, children: Any) -> RegularGridInterpolator:
    out = object.__new__(RegularGridInterpolator)
    out.grid, out.values, out.fill_value = children
    out.method, out.bounds_error = static
    return out


register_pytree_node(
    RegularGridInterpolator,
    lambda f: ((f.grid, f.values, f.fill_value), (f.method, f.bounds_error)),
    _unflatten,
)
