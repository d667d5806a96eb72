"""Statistics of samples: standard error, modes, ranks and kernel density estimates."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_axis
from accnp.api.jit.small_calls import compiled_if_small
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array, ArrayLike, Shape
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import arange, full, ones, zeros
from accnp.numpy.cumulative import cumsum, nanstd
from accnp.numpy.joining import concatenate
from accnp.numpy.linalg.decompositions import cholesky, inv
from accnp.numpy.log_sum_exp import logsumexp
from accnp.numpy.manipulation import moveaxis
from accnp.numpy.means import std
from accnp.numpy.reductions import sum as total
from accnp.numpy.selection import where
from accnp.numpy.sorting import argsort, sort
from accnp.numpy.statistics import cov
from accnp.numpy.taking import take_along_axis
from accnp.pytree.register import register_pytree_node
from accnp.random.basic_samplers import choice
from accnp.random.keys import split
from accnp.random.vector_samples import multivariate_normal
from accnp.scipy.special.functions import ndtr
from accnp.scipy.stats.discrete import multivariate_normal_logpdf

__all__ = ["ModeResult", "gaussian_kde", "mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """Values and counts, the result of `mode`."""

    mode: Array
    count: Array


def _policy(nan_policy: str, function: str, *known: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"{function}: nan_policy is one of {known}; got {nan_policy!r}; pass one of these"
        )
    if nan_policy not in known:
        raise NotImplementedError(
            f"{function}: nan_policy is one of {known}; got {nan_policy!r}; drop nans beforehand"
        )


@api_boundary
@compiled_if_small("a")
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Compute the standard error of the mean.

    Parameters
    ----------
    a : array_like
        Samples of any shape.
    axis : int or None, optional
        Axis along which the samples are. None takes all elements. The default is 0.
    ddof : int, optional
        Delta degrees of freedom: the standard deviation divides by N - ddof. The default is 1.
    nan_policy : {"propagate", "omit"}, optional
        Whether nan gives nan, the default, or is ignored.
    {keepdims}

    Returns
    -------
    Array
        Standard deviation over the square root of the number of samples, of floating dtype.

    Raises
    ------
    {raises_samples_axis}

    See Also
    --------
    numpy.std : Standard deviation.
    numpy.mean : Arithmetic mean.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.stats.sem(jnp.array([1.0, 2.0, 3.0]))), 5)
    0.57735
    """
    _policy(nan_policy, "stats.sem", "propagate", "omit")
    x = wrap(promote_inexact("stats.sem", a)[0])
    if nan_policy == "omit":
        count = total(~uf.isnan(x), axis=axis, keepdims=keepdims)
        return nanstd(x, axis, ddof=ddof, keepdims=keepdims) / uf.sqrt(count.astype(x.dtype))
    n = x.size if axis is None else x.shape[as_axis(axis, x.ndim, "stats.sem")]
    return std(x, axis, ddof=ddof, keepdims=keepdims) / math.sqrt(n)


def _lines(a: Any, axis: int | None, name: str) -> tuple[Array, int]:
    x = wrap(as_node(a, name))
    if axis is None or not x.ndim:
        return x.reshape(-1), 0
    d = as_axis(axis, x.ndim, name)
    return moveaxis(x, d, -1), d


def _same_as_before(x: Array) -> Array:
    """Return whether a sorted value equals the previous one in the last axis (nans are equal)."""
    left, right = x[..., :-1], x[..., 1:]
    equal = (left == right) | (uf.isnan(left) & uf.isnan(right))
    return concatenate([full((*x.shape[:-1], 1), False), equal], axis=-1)


@api_boundary
@promotes_inside
@compiled_if_small("a")
def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Find the most frequent value along an axis, and how often it occurs.

    Parameters
    ----------
    a : array_like
        Real samples of any shape.
    axis : int or None, optional
        Axis along which the samples are. None takes all elements. The default is 0.
    nan_policy : {"propagate"}, optional
        All nan are equal, and greater than any number. Other policies are not supported.
    {keepdims}

    Returns
    -------
    mode : Array
        Most frequent values, of the dtype of `a`; the smallest of several.
    count : Array
        How often they occur, of dtype int32 (int64 with `jax_enable_x64`).

    Raises
    ------
    {raises_samples_axis}
    NotImplementedError
        If `nan_policy` is not "propagate".

    See Also
    --------
    numpy.unique_counts : All values and their counts.
    numpy.median : Middle value.

    Notes
    -----
    The derivative is that of the first of the equal values.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.stats.mode(jnp.array([3, 1, 1, 2])).count
    Array(2, dtype=int32)
    """
    _policy(nan_policy, "stats.mode", "propagate")
    x, d = _lines(a, axis, "stats.mode")
    rank = 1 if axis is None else x.ndim
    if not x.shape[-1]:
        floating = dtypes.default_float()
        value = full(x.shape[:-1], np.nan, floating)
        result = ModeResult(value, full(x.shape[:-1], 0, floating))
    else:
        ordered = sort(x, axis=-1)
        place = arange(x.shape[-1])
        first = where(_same_as_before(ordered), 0, place)
        begin = wrap(o.cummax(first._node, axis=first.ndim - 1, reverse=False))
        length = place - begin + 1
        best = length.argmax(axis=-1, keepdims=True)
        result = ModeResult(
            take_along_axis(ordered, take_along_axis(begin, best, -1), -1)[..., 0],
            take_along_axis(length, best, -1)[..., 0],
        )
    if not keepdims:
        return result
    shape = list(np.shape(a))
    kept_shape = [1] * len(shape) if axis is None else [*shape[:d], 1, *shape[d + 1 :]]
    return ModeResult(*[v.reshape(kept_shape if rank else ()) for v in result])


@api_boundary
@compiled_if_small("a")
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Rank the values of samples, from 1.

    Parameters
    ----------
    a : array_like
        Samples of any shape.
    method : {"average", "min", "max", "dense", "ordinal"}, optional
        Ranks of equal values: their average, the default, least or greatest rank, the least without
        gaps, or different ranks in the order of their places.
    axis : int or None, optional
        Axis along which to rank. None, the default, ranks all elements.
    nan_policy : {"propagate"}, optional
        Lines with a nan have ranks of nan. Other policies are not supported.

    Returns
    -------
    Array
        Ranks of floating dtype, of the shape of `a`, which is flattened if `axis` is None.

    Raises
    ------
    {raises_samples_axis}
    NotImplementedError
        If `nan_policy` is not "propagate".

    See Also
    --------
    numpy.argsort : Indices that sort an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.stats.rankdata(jnp.array([10, 30, 20, 20]))
    Array([1. , 4. , 2.5, 2.5], dtype=float32)
    """
    _policy(nan_policy, "stats.rankdata", "propagate")
    known = ("average", "min", "max", "dense", "ordinal")
    if method not in known:
        raise ValueError(f"stats.rankdata: unknown method; got {method!r}; use one of {known}")
    x, d = _lines(a, axis, "stats.rankdata")
    if not x.size:
        return moveaxis(zeros(x.shape), -1, d)
    ranks = _ranks
    for _ in range(x.ndim - 1):
        ranks = vmap(ranks, in_axes=(0, None))
    result = ranks(x, method)
    if x.dtype.kind == "f":
        result = where(uf.isnan(x).any(axis=-1, keepdims=True), np.nan, result)
    return moveaxis(result, -1, d)


def _ranks(x: Array, method: str) -> Array:
    n = x.shape[0]
    order = argsort(x, stable=True)
    place = ones(n, np.int32).at[order].set(arange(n, dtype=np.int32))
    kind = dtypes.default_float()
    if method == "ordinal":
        return (place + 1).astype(kind)
    fresh = ~_same_as_before(x[order])
    dense = cumsum(fresh.astype(np.int32))[place]
    if method == "dense":
        return dense.astype(kind)
    # The start of each run of equal values, and one past its end.
    starts = (
        full(n + 1, n, np.int32)
        .at[cumsum(fresh.astype(np.int32)) - 1]
        .min(arange(n, dtype=np.int32))
    )
    low, high = starts[dense - 1] + 1, starts[dense]
    if method == "min":
        return low.astype(kind)
    if method == "max":
        return high.astype(kind)
    return (low + high).astype(kind) / 2


class gaussian_kde:
    """An estimate of a density by a sum of normal densities around the points of a sample.

    Parameters
    ----------
    dataset : array_like
        Points of shape (d, n), or (n,) in one dimension. Integers give float32.
    bw_method : str, scalar or callable, optional
        Bandwidth: "scott", the default, "silverman", a number, or a function of this object.
    weights : array_like, optional
        Weights of the points, of shape (n,). By default all are equal.

    Raises
    ------
    ValueError
        If the sample has one point or too many axes, weights or points do not fit it, or the
        bandwidth is unknown.
    TypeError
        If a sample is a list.

    Examples
    --------
    >>> import accnp as jnp
    >>> kde = jnp.scipy.stats.gaussian_kde(jnp.array([0.0, 1.0, 2.0]))
    >>> kde(jnp.array([1.0])).shape
    (1,)
    """

    dataset: Array
    weights: Array
    neff: Array
    factor: Any
    covariance: Array
    inv_cov: Array

    @api_boundary
    def __init__(
        self, dataset: ArrayLike, bw_method: Any = None, weights: ArrayLike | None = None
    ) -> None:
        points = wrap(promote_inexact("gaussian_kde", dataset)[0])
        self.dataset = points[None] if points.ndim < 2 else points
        if self.dataset.ndim != 2 or self.dataset.size < 2:
            raise ValueError(
                "gaussian_kde: the data set is an array [d, n] of several points; got shape "
                f"{points.shape}; pass two points at least"
            )
        if weights is None:
            self.weights = full(self.n, 1 / self.n, self.dataset.dtype)
        else:
            values = wrap(promote_inexact("gaussian_kde", weights)[0])
            if values.shape != (self.n,):
                raise ValueError(
                    f"gaussian_kde: weights have shape ({self.n},); got {values.shape}; "
                    "pass one for each point"
                )
            self.weights = values / values.sum()
        self.neff = 1 / (self.weights * self.weights).sum()
        self.factor = self._bandwidth(bw_method)
        data = cov(self.dataset, rowvar=True, bias=False, aweights=self.weights)
        self.covariance = data.reshape(self.d, self.d) * self.factor**2
        self.inv_cov = inv(self.covariance)

    @property
    def d(self) -> int:
        """The number of dimensions of the points."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def _bandwidth(self, method: Any) -> Any:
        if method is None or method == "scott":
            return self.neff ** (-1 / (self.d + 4))
        if method == "silverman":
            return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str):
            raise ValueError(
                f"gaussian_kde: unknown bandwidth; got {method!r}; use 'scott', 'silverman', a "
                "number or a function"
            )
        return wrap(as_node(method))

    def _points(self, points: Any, name: str) -> Array:
        x = wrap(promote_inexact(name, points)[0])
        x = x[None] if x.ndim < 2 else x
        if x.shape[0] != self.d and x.shape == (1, self.d):
            x = x.T
        if x.ndim != 2 or x.shape[0] != self.d:
            raise ValueError(
                f"{name}: points have shape ({self.d}, m); got {x.shape}; transpose or reshape them"
            )
        return x

    @api_boundary
    def logpdf(self, x: ArrayLike) -> Array:
        """Compute the log of the density at points of shape (d, m); the result has shape (m,)."""
        points = self._points(x, "gaussian_kde.logpdf")
        root = cholesky(self.inv_cov)
        ours, theirs = root.T @ self.dataset, root.T @ points
        off = ours[:, :, None] - theirs[:, None, :]
        size = 0.5 * (off * off).sum(axis=0)
        log_norm = uf.log(root.diagonal()).sum() - 0.5 * self.d * math.log(2 * math.pi)
        return logsumexp(uf.log(self.weights)[:, None] - size, axis=0) + log_norm

    @api_boundary
    def pdf(self, x: ArrayLike) -> Array:
        """Compute the density at points of shape (d, m); the result has shape (m,)."""
        return uf.exp(self.logpdf(x))

    evaluate = __call__ = pdf

    @api_boundary
    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Compute the probability between two bounds, in one dimension."""
        if self.d != 1:
            raise ValueError(f"gaussian_kde.integrate_box_1d: the data have {self.d} dimensions")
        sigma = uf.sqrt(self.covariance[0, 0])
        upper, lower = (high - self.dataset[0]) / sigma, (low - self.dataset[0]) / sigma
        return (self.weights * (ndtr(upper) - ndtr(lower))).sum()

    @api_boundary
    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Integrate the product with a normal density of mean (d,) and covariance (d, d)."""
        name = "gaussian_kde.integrate_gaussian"
        center, spread = (wrap(x) for x in promote_inexact(name, mean, cov))
        center, spread = center.reshape(-1), spread.reshape(spread.shape or (1, 1))
        if center.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise ValueError(
                f"{name}: mean and cov have shapes ({self.d},) and ({self.d}, {self.d}); got "
                f"{np.shape(mean)} and {np.shape(cov)}; reshape to these"
            )
        log_density = multivariate_normal_logpdf(self.dataset.T, center, self.covariance + spread)
        return (self.weights * uf.exp(log_density)).sum()

    @api_boundary
    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Integrate the product with another estimate, of points of the same dimension."""
        if other.d != self.d:
            raise ValueError(
                f"gaussian_kde.integrate_kde: the points have {self.d} and {other.d} dimensions"
            )
        apart = self.dataset.T[:, None, :] - other.dataset.T
        spread = self.covariance + other.covariance
        log_density = multivariate_normal_logpdf(apart, full(self.d, 0.0, apart.dtype), spread)
        return self.weights @ uf.exp(log_density) @ other.weights

    @api_boundary
    def resample(self, key: ArrayLike, shape: Shape = ()) -> Array:
        """Sample points from the estimated density, of shape (d, *shape), as JAX does."""
        places, noise = split(key)
        drawn = choice(places, self.n, shape=shape, p=self.weights)
        origin = full(self.d, 0.0, self.covariance.dtype)
        added = multivariate_normal(
            noise, origin, self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, drawn] + moveaxis(added, -1, 0)


_PARTS = ("neff", "dataset", "weights", "covariance", "inv_cov", "factor")


def _from_parts(_: None, parts: Any) -> gaussian_kde:
    kde = object.__new__(gaussian_kde)
    kde.__dict__.update(zip(_PARTS, parts, strict=True))
    return kde


register_pytree_node(
    gaussian_kde, lambda kde: (tuple(getattr(kde, p) for p in _PARTS), None), _from_parts
)
