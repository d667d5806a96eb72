"""Histograms in one or more dimensions, and the edges of their bins."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, promote_inexact, wrap
from accnp.api.arguments.shapes import as_size
from accnp.api.jit.named_calls import shown
from accnp.array_type import Array, ArrayLike, ArraySequence
from accnp.dtypes import to_inexact
from accnp.errors import api_boundary
from accnp.numpy import ufuncs
from accnp.numpy.counting import bincount, ravel_multi_index
from accnp.numpy.creation import array, asarray, ones_like, zeros
from accnp.numpy.differences import diff
from accnp.numpy.matrices import ix_
from accnp.numpy.numerical_ranges import linspace
from accnp.numpy.reductions import max as amax
from accnp.numpy.reductions import min as amin
from accnp.numpy.selection import where
from accnp.numpy.taking import searchsorted

__all__ = ["histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


@api_boundary
def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: ArraySequence | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute the edges of the bins of a histogram.

    Parameters
    ----------
    a : array_like
        Values of any shape. Lists and tuples are not accepted.
    {bins_range}
    weights : array_like, optional
        Has no effect; present for compatibility with NumPy.

    Returns
    -------
    Array
        Vector of the edges in a floating dtype, with one element more than there are bins.

    Raises
    ------
    ValueError
        If `range` is not a pair of numbers.
    NotImplementedError
        If `bins` is a string, the name of a rule in NumPy.

    See Also
    --------
    histogram : Counts of the values.
    digitize : Number of the bin of each value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    name = "jnp.histogram_bin_edges"
    if isinstance(bins, str):
        raise NotImplementedError(
            f"{name}: string values for `bins` are not implemented; got {bins!r}; pass a number"
        )
    x = wrap(as_node(a, name))
    kind = to_inexact(x.dtype)
    if np.ndim(bins) == 1:
        return wrap(as_node(bins, name)).astype(kind)
    count = as_size(bins, name, "bins")
    ends: Any = [amin(x), amax(x)] if range is None else range
    if not hasattr(ends, "__len__") or np.ndim(ends[0] if len(ends) == 2 else ends):
        raise ValueError(
            f"{name}: `range` must be either None or a sequence of two scalars; got {range}; "
            "pass (least, greatest)"
        )
    low, high = [array(e, dtype=kind) for e in ends]
    point = high == low
    return linspace(
        where(point, low - 0.5, low), where(point, high + 0.5, high), count + 1, dtype=kind
    )


def _bin_of(x: Array, edges: Array, even: bool) -> Array:
    """Return the index of the first edge beyond each value: 0 before all edges, n + 1 after them.

    For bins of equal width the index is computed and then corrected by comparison with the edges.
    """
    n = edges.shape[0] - 1
    if not even or n < 1 or x.dtype.kind == "c":
        return searchsorted(edges, x, side="right")
    low, high = edges[0], edges[-1]
    guess = ufuncs.floor((x - low) * (n / (high - low)))
    i = ufuncs.minimum(ufuncs.maximum(guess, 0), n - 1).astype(np.int32)
    i = i + (x >= edges[i + 1]).astype(np.int32) - (x < edges[i]).astype(np.int32)
    inside = (x >= low) & (x < high)
    return where(inside, i + 1, where(x < low, 0, n + 1))


@api_boundary
@shown()
def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: ArraySequence | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """Count the values in bins.

    Parameters
    ----------
    a : array_like
        Values of any shape. Lists and tuples are not accepted.
    {bins_range}
    weights : array_like, optional
        Weight of each value, with the shape of `a`, which is added up instead of 1.
    {density}

    Returns
    -------
    hist, bin_edges : Array
        Counts in the dtype of the weights, or in the inexact dtype of `a`, and the edges, one more.
        The last bin includes its upper edge.

    Raises
    ------
    ValueError
        If `weights` has another shape than `a`, or `range` is not a pair of numbers.
    NotImplementedError
        If `bins` is a string.

    See Also
    --------
    histogram2d, histogramdd : Histograms in two and more dimensions.
    bincount : Counts of integers.
    histogram_bin_edges : Edges alone.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.histogram(jnp.array([1.0, 2.0, 1.0, 4.0]), bins=3)
    (Array([2., 1., 1.], dtype=float32), Array([1., 2., 3., 4.], dtype=float32))
    """
    name = "jnp.histogram"
    if not isinstance(bins, str):
        as_node(bins, name)
    if weights is None:
        (node,) = promote_inexact(name, a)
        x = wrap(node)
        w = ones_like(x)
    else:
        if as_node(a, name).aval.shape != as_node(weights, name).aval.shape:
            raise ValueError(
                f"{name}: weights should have the same shape as a; got shapes "
                f"{as_node(weights, name).aval.shape} and {as_node(a, name).aval.shape}; "
                "broadcast one of them"
            )
        x, w = [wrap(n) for n in promote_inexact(name, a, weights)]
    edges = histogram_bin_edges(x, bins, range)
    n = edges.shape[0] - 1
    at = _bin_of(x, edges, np.ndim(bins) == 0)
    at = where(x == edges[-1], n, at)
    counts = zeros(n + 1, w.dtype).at[at].add(w)[1:]
    if density:
        counts = counts / diff(edges) / counts.sum()
    return counts, edges


@api_boundary
@shown()
def histogramdd(
    sample: ArrayLike,
    bins: int | ArraySequence = 10,
    range: Sequence[Sequence[float] | None] | np.ndarray | Array | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count points in the boxes of a grid of any dimension.

    Parameters
    ----------
    sample : array_like
        Points, a matrix of shape (n, d).
    bins : int or sequence, optional
        Number of bins along all axes, or for each axis a number or a vector of edges. The default
        is 10.
    range : sequence, optional
        For each axis the first and the last edge, or None for the smallest and the largest
        coordinate.
    weights : array_like, optional
        Weight of each point, a vector of length n, which is added up instead of 1.
    {density}

    Returns
    -------
    hist : Array
        Counts, an array with d axes, in the dtype of the weights, or in int32 without them.
    edges : list of Array
        Vector of the edges along each axis.

    Raises
    ------
    ValueError
        If `bins`, `range` or `weights` do not fit the sample.

    See Also
    --------
    histogram : Histogram of numbers.
    histogram2d : Histogram of points in the plane.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    name = "jnp.histogramdd"
    w = None
    if weights is None:
        (node,) = promote_inexact(name, sample)
        x = wrap(node)
    else:
        if as_node(weights, name).aval.shape != as_node(sample, name).aval.shape[:1]:
            raise ValueError(
                f"{name}: expected one weight for each sample; got shape "
                f"{as_node(weights, name).aval.shape}; pass a vector of them"
            )
        x, w = [wrap(v) for v in promote_inexact(name, sample, weights)]
    if x.ndim != 2:
        raise ValueError(
            f"{name}: the sample must be a matrix of points; got shape {x.shape}; "
            "reshape it to [points, dimensions]"
        )
    d = x.shape[1]
    if not d:
        raise ValueError(
            f"{name}: points must have at least one coordinate; got shape {x.shape}; "
            "reshape it to [points, dimensions]"
        )
    if range is not None and (
        len(range) != d or any(r is not None and np.shape(r)[0] != 2 for r in range)
    ):
        raise ValueError(
            f"{name}: for a sample of shape {x.shape}, range must be a sequence of {d} pairs or "
            f"Nones; got {range}; pass one pair for each dimension"
        )
    each: list[Any] = list(bins) if isinstance(bins, Sequence) or np.ndim(bins) else [bins] * d  # type: ignore[arg-type]
    if len(each) != d:
        raise ValueError(
            f"{name}: bins must have one entry for each of {d} dimensions; got {len(each)}; "
            "pass one entry for each"
        )
    edges, places = [], []
    for k, count in enumerate(each):
        column = x[:, k]
        its = histogram_bin_edges(column, count, None if range is None else range[k])
        at = _bin_of(column, its, np.ndim(count) == 0)
        places.append(where(column == its[-1], its.shape[0] - 1, at))
        edges.append(its)
    sizes = tuple([e.shape[0] + 1 for e in edges])
    flat = ravel_multi_index(tuple(places), sizes, mode="clip")
    counts = bincount(flat, w, length=prod(sizes)).reshape(sizes)
    counts = counts[tuple([slice(1, -1)] * d)]
    if density:
        counts = counts.astype(x.dtype)
        counts = counts / counts.sum()
        for width in ix_(*[diff(e) for e in edges]):
            counts = counts / width
    return counts, edges


@api_boundary
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: int | ArraySequence = 10,
    range: Sequence[Sequence[float] | None] | np.ndarray | Array | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count points of the plane in the boxes of a grid.

    Parameters
    ----------
    x : array_like
        Vector of the first coordinates of the points.
    y : array_like
        Vector of the second coordinates of the points.
    bins : int, array_like or pair of these, optional
        Number of bins or vector of edges, for both axes or for each. The default is 10.
    range : pair of pairs, optional
        For each axis the first and the last edge. The default is the smallest and the largest
        coordinate.
    weights : array_like, optional
        Weight of each point, which is added up instead of 1.
    {density}

    Returns
    -------
    hist, x_edges, y_edges : Array
        Counts, a matrix of shape (bins along x, bins along y) in the dtype of the weights, or in
        int32 without them, and the edges along both axes.

    Raises
    ------
    TypeError
        If `x` and `y` differ in length, or one is neither an array nor a number.
    ValueError
        If `bins`, `range` or `weights` do not fit the points.

    See Also
    --------
    histogram : Histogram of numbers.
    histogramdd : Histogram of points in any dimension.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    name = "jnp.histogram2d"
    points = [wrap(n) for n in (as_node(x, name), as_node(y, name))]
    several = len(bins) if isinstance(bins, Sequence) or np.ndim(bins) else 1  # type: ignore[arg-type]
    if several not in (1, 2):
        bins = [asarray(bins), asarray(bins)]
    counts, edges = histogramdd(array(points).T, bins, range, weights, density)
    return counts, edges[0], edges[1]
