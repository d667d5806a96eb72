"""Discrete distributions, and distributions of vectors.

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (Wiley).
"""

from __future__ import annotations

import math
import sys
from inspect import Signature, signature
from types import ModuleType
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_nodes, cast, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.array_type import Array, ArrayLike
from accnp.docstrings import fill
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.op import o
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import asarray
from accnp.numpy.joining import concatenate
from accnp.numpy.linalg.decompositions import cholesky
from accnp.numpy.manipulation import broadcast_to
from accnp.numpy.reductions import sum as total
from accnp.numpy.selection import where
from accnp.numpy.ufunc_factories import documented
from accnp.primitives.kinds import dtype_kind
from accnp.scipy.special import functions as sp
from accnp.scipy.stats.declaration import declare

__all__ = [
    "bernoulli", "betabinom", "binom", "dirichlet", "geom", "multinomial", "multivariate_normal",
    "nbinom", "poisson",
]  # fmt: skip


def _evaluate_inside(test: Any, k: Any, f: Any, safe: Any = 1.0) -> Any:
    """Return f(k) where a test holds, and -inf elsewhere. As in JAX, k need not be a whole number,
    except for the Poisson and beta-binomial distributions, where JAX rounds and SciPy has 0."""
    return where(test, f(where(test, k, safe)), -np.inf)


def _nan_unless_probability(p: Any, value: Any) -> Any:
    """Return a value for probabilities p, and nan for other numbers."""
    return where((p >= 0) & (p <= 1), value, np.nan)


bernoulli = declare(
    "bernoulli", "the Bernoulli distribution", "p", "k", "loc=0", ("cdf", "ppf"), pieces=True,
    logpmf=lambda k, p: _nan_unless_probability(p, _evaluate_inside(
        (k >= 0) & (k <= 1), k, lambda v: sp.xlogy(v, p) + sp.xlog1py(1 - v, -p)
    )),
    cdf=lambda k, p: _nan_unless_probability(p, where(k < 0, 0.0, where(k < 1, 1 - p, 1.0))),
    ppf=lambda q, p: _nan_unless_probability(q, _nan_unless_probability(p, where(
        q == 0, -1.0, where((q <= 1 - p) & (q < 1), 0.0, 1.0)
    ))),
)  # fmt: skip

binom = declare(
    "binom", "the binomial distribution", "n, p", "k", "loc=0", pieces=True,
    loose=("pmf", "logpmf"),
    logpmf=lambda k, n, p: _nan_unless_probability(p, where(
        n >= 0, _evaluate_inside((k >= 0) & (k < n + 1), k, lambda v: (
            sp.gammaln(n + 1) - sp.gammaln(v + 1) - sp.gammaln(n - v + 1)
            + sp.xlogy(v, p) + sp.xlog1py(n - v, -p)
        ), 0.0), np.nan,
    )),
)  # fmt: skip

betabinom = declare(
    "betabinom", "the beta-binomial distribution", "n, a, b", "k", "loc=0", pieces=True,
    shaped=dict.fromkeys(("pmf", "logpmf"), ("loc",)),
    logpmf=lambda k, n, a, b: where(
        (n >= 0) & (a > 0) & (b > 0),
        _evaluate_inside((k >= 0) & (k <= n) & (k == uf.floor(k)), k, lambda v: (
            -uf.log1p(n) - sp.betaln(n - v + 1, v + 1)
            + sp.betaln(v + a, n - v + b) - sp.betaln(a, b)
        ), 0.0),
        np.nan,
    ),
)  # fmt: skip

nbinom = declare(
    "nbinom", "the negative binomial distribution", "n, p", "k", "loc=0", pieces=True,
    logpmf=lambda k, n, p: _evaluate_inside(k >= 0, k, lambda v: (
        sp.gammaln(v + n) - sp.gammaln(v + 1) - sp.gammaln(n) + n * uf.log(p) + sp.xlog1py(v, -p)
    )),
)  # fmt: skip

geom = declare(
    "geom", "the geometric distribution of the first success", "p", "k", "loc=0", pieces=True,
    logpmf=lambda k, p: _nan_unless_probability(
        p, _evaluate_inside(k >= 1, k, lambda v: sp.xlog1py(v - 1, -p) + uf.log(p))
    ),
)  # fmt: skip


def _poisson_entropy(mu: Any) -> Any:
    """Sum up to 40 deviations beyond the mean for small means; use the series for large ones."""
    small = where(mu < 50, uf.maximum(mu, 0), 1.0)
    k = asarray(np.arange(200.0), dtype=mu.dtype)
    log = sp.xlogy(k, small[..., None]) - small[..., None] - sp.gammaln(k + 1)
    direct = total(where(log > -200, -uf.exp(log) * log, 0), axis=-1)
    m = where(mu < 50, 50.0, mu)
    series = (
        0.5 * uf.log(2 * math.pi * math.e * m)
        - 1 / (12 * m) - 1 / (24 * m**2) - 19 / (360 * m**3)
    )  # fmt: skip
    return where(mu < 0, np.nan, where(mu < 50, direct, series)).astype(mu.dtype)


poisson = declare(
    "poisson", "the Poisson distribution", "mu", "k", "loc=0", pieces=True,
    loose=("pmf", "logpmf"),
    logpmf=lambda k, mu: _evaluate_inside(
        (k >= 0) & (k == uf.floor(k)), k, lambda v: sp.xlogy(v, mu) - sp.gammaln(v + 1) - mu
    ),
    cdf=lambda k, mu: where(k >= 0, sp.gammaincc(uf.floor(uf.maximum(k, 0)) + 1, mu), 0.0),
    entropy=_poisson_entropy,
)  # fmt: skip


# --- vectors --------------------------------------------------------------------------------------


@api_boundary
def dirichlet_logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Compute the log of the probability density function of the Dirichlet distribution.

    Parameters
    ----------
    {dirichlet_params}

    Returns
    -------
    Array
        Values of shape (...) and floating dtype; -inf outside of the simplex, nan for
        concentrations that are not positive.

    Raises
    ------
    {raises_dirichlet}

    See Also
    --------
    pdf : The density itself.
    random.dirichlet : Samples of the distribution.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.stats.dirichlet.logpdf(jnp.array([0.2, 0.8]), jnp.array([1.0, 2.0]))
    Array(0.47000366, dtype=float32)
    """
    name = "dirichlet.logpdf"
    point, weights = (wrap(n) for n in promote_inexact(name, x, alpha))
    if weights.ndim != 1:
        raise ValueError(
            f"{name}: alpha must be rank 1; got shape {weights.shape}; ravel it, or use vmap"
        )
    k = weights.shape[0]
    if not point.ndim or point.shape[0] not in (k, k - 1):
        raise ValueError(
            f"{name}: x must have {k} or {k - 1} entries; got shape {point.shape}; "
            "make the first axis that long"
        )
    if point.shape[0] == k - 1:
        point = concatenate([point, 1 - total(point, axis=0, keepdims=True)], axis=0)
    weights = weights.reshape(k, *[1] * (point.ndim - 1))
    norm = total(sp.gammaln(weights), axis=0) - sp.gammaln(total(weights, axis=0))
    # As in SciPy the faces belong to the simplex: the density there is 0, finite or infinite.
    inside = (point >= 0).all(axis=0) & (uf.abs(total(point, axis=0) - 1) < 1e-6)
    terms = sp.xlogy(weights - 1, where(point > 0, point, 1))
    face = where(weights == 1, 0.0, where(weights > 1, -np.inf, np.inf))
    value = total(where(point == 0, face, terms), axis=0) - norm
    unknown = uf.isnan(point).any(axis=0) | ~(weights > 0).all(axis=0)
    return where(unknown, np.nan, where(inside, value, -np.inf))


@api_boundary
@promotes_inside
def multinomial_logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Compute the log of the probability mass function of the multinomial distribution.

    Parameters
    ----------
    {multinomial_params}

    Returns
    -------
    Array
        Values of shape (...) and floating dtype; -inf where counts do not add up to `n`.

    Raises
    ------
    {raises_multinomial}

    See Also
    --------
    pmf : The probability itself.
    random.multinomial : Samples of the distribution.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.stats.multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(-0.6931472, dtype=float32)
    """
    for v in as_nodes("multinomial.logpmf", x, n):
        if dtype_kind(v.aval.dtype) not in "biu":
            raise ValueError(
                "multinomial.logpmf: x and n must be of integer type; "
                f"got {v.aval}; use astype(int)"
            )
    counts, chances = (wrap(v) for v in promote_inexact("multinomial.logpmf", x, p))
    whole = wrap(promote_inexact("multinomial.logpmf", n)[0]).astype(counts.dtype)
    value = (
        sp.gammaln(whole + 1)
        + total(sp.xlogy(counts, chances) - sp.gammaln(counts + 1), axis=-1)
    )  # fmt: skip
    all_counts = total(counts, axis=-1) if counts.ndim else counts
    return where(whole < 0, np.nan, where(all_counts == whole, value, -np.inf))


def _solve_triangular_rows(factor: Array, off: Array) -> Array:
    """Return the rows of `off` times the inverse of a lower triangular matrix."""
    shape = np.broadcast_shapes(factor.shape[:-2], off.shape[:-1])
    if factor.ndim == 2:
        right = off.reshape(math.prod(off.shape[:-1]), off.shape[-1]).T
    else:
        factor = broadcast_to(factor, (*shape, *factor.shape[-2:]))
        right = broadcast_to(off, (*shape, off.shape[-1]))[..., None]
    flags = {"transpose_a": False, "conjugate_a": False, "unit_diagonal": False}
    y = wrap(o.triangular_solve(factor._node, right._node, left_side=True, lower=True, **flags))
    return y.T.reshape(off.shape) if factor.ndim == 2 else y[..., 0]


@api_boundary
def multivariate_normal_logpdf(
    x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None
) -> Array:
    """Compute the log of the probability density function of the multivariate normal distribution.

    Parameters
    ----------
    {multivariate_normal_params}
    allow_singular : None, optional
        Whether to allow singular covariances. Not supported.

    Returns
    -------
    Array
        Values of shape (...) and floating dtype.

    Raises
    ------
    {raises_multivariate_normal}
    NotImplementedError
        If `allow_singular` is given.

    See Also
    --------
    pdf : The density itself.
    random.multivariate_normal : Samples of the distribution.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.stats.multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    Array(-1.837877, dtype=float32)
    """
    name = "multivariate_normal.logpdf"
    if allow_singular is not None:
        raise NotImplementedError(
            f"{name}: singular covariances are not supported; got {allow_singular!r} "
            "(allow_singular); leave it out"
        )
    point, centre, spread = (wrap(n) for n in promote_inexact(name, x, mean, cov))
    if not centre.ndim:
        off = point - centre
        return -0.5 * (off * off / spread + math.log(2 * math.pi) + uf.log(spread))
    k = centre.shape[-1]
    if point.shape[-1:] not in ((k,), (1,), ()):
        raise IncompatibleShapesError(
            f"{name}: points must have shape [..., {k}]; got {point.shape}; "
            "make the last axis that long"
        )
    off = point - centre
    if not spread.ndim:
        size = total(off * off, axis=-1) / spread
        value = -0.5 * (size + k * (math.log(2 * math.pi) + uf.log(spread)))
        weak = off.weak_type and spread.weak_type  # a sum is strong; jax has a product here
        return wrap(cast(value._node, value.dtype, weak))
    if spread.ndim < 2 or spread.shape[-2:] != (k, k):
        raise ValueError(
            f"{name}: cov must have shape ({k}, {k}); got {spread.shape}; "
            "pass a matrix of the size of the mean"
        )
    factor = cholesky(spread)
    y = _solve_triangular_rows(factor, off)
    log_root = total(uf.log(factor.diagonal(axis1=-1, axis2=-2)), axis=-1)
    return -0.5 * (total(y * y, axis=-1) + k * math.log(2 * math.pi)) - log_root


_CALLED = {"pdf": "the probability density function", "pmf": "the probability mass function"}


def _pair(name: str, log: str, function: Any, example: str) -> ModuleType:
    """Build the module of a distribution of vectors from its log-density."""
    module = ModuleType(f"accnp.scipy.stats.{name}", f"The distribution {name}.")
    plain, what = log.removeprefix("log"), name.replace("_", " ").replace("dir", "Dir")

    parameters = signature(function).parameters.values()
    own_signature = Signature([p for p in parameters if p.name != "allow_singular"])
    shown = f"({', '.join(own_signature.parameters)})"

    @api_boundary
    def density(*args: Any, **kwargs: Any) -> Array:
        try:
            own_signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}.{plain}() takes {shown}; {error}; pass these") from None
        return uf.exp(function(*args, **kwargs))

    density.__signature__ = own_signature  # pyright: ignore[reportFunctionMemberAccess]
    density.__name__ = density.__qualname__ = plain
    text = fill(
        f"Compute {_CALLED[plain]} of the {what} distribution.\n\n"
        f"    Parameters\n    ----------\n    {{{name}_params}}\n\n"
        "    Returns\n    -------\n"
        "    Array\n        Values of floating dtype, one for each point.\n\n"
        f"    Raises\n    ------\n    {{raises_{name}}}\n\n"
        f"    See Also\n    --------\n    {log} : Its logarithm, which does not underflow.\n"
        f"    random.{name} : Samples of the distribution."
    )
    density.__doc__ = documented(text, f"scipy.stats.{name}.{plain}", example)
    setattr(module, log, function)
    setattr(module, plain, density)
    sys.modules[module.__name__] = module
    return module


dirichlet = _pair(
    "dirichlet", "logpdf", dirichlet_logpdf, "[0.2, 0.8], [1.0, 2.0] -> Array(1.6, dtype=float32)"
)
multinomial = _pair(
    "multinomial",
    "logpmf",
    multinomial_logpmf,
    "[1, 1], 2, [0.5, 0.5] -> Array(0.5, dtype=float32)",
)
multivariate_normal = _pair(
    "multivariate_normal",
    "logpdf",
    multivariate_normal_logpdf,
    "jnp.zeros(2), jnp.zeros(2), jnp.eye(2) -> Array(0.15915495, dtype=float32)",
)
