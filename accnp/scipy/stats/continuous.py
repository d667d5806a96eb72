"""Continuous distributions, one declaration each, for loc=0 and scale=1.

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (Wiley).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp.numpy import ufuncs as uf
from accnp.numpy.selection import where
from accnp.scipy.special import functions as sp
from accnp.scipy.stats.declaration import declare

__all__ = [
    "beta", "cauchy", "chi2", "expon", "gamma", "gennorm", "gumbel_l", "gumbel_r", "laplace",
    "logistic", "norm", "pareto", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _where_inside(test: Any, value: Any, f: Any, outside: Any = -np.inf, safe: Any = 0.5) -> Any:
    """Return f(value) where a test holds. Elsewhere f gets a safe value, so that no derivative is
    nan."""
    return where(test, f(where(test, value, safe)), outside)


def _norm_logpdf(z: Any) -> Any:
    return -0.5 * z * z - _HALF_LOG_2PI


_ALL = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")

norm = declare(
    "norm", "the normal distribution", "",
    strong=("cdf", "logcdf", "sf", "logsf", "ppf", "isf"),
    logpdf=_norm_logpdf,
    cdf=sp.ndtr,
    logcdf=sp.log_ndtr,
    sf=lambda z: sp.ndtr(-z),
    logsf=lambda z: sp.log_ndtr(-z),
    ppf=sp.ndtri,
    isf=lambda q: -sp.ndtri(q),
)  # fmt: skip


def _log_of_square_and_one(z: Any) -> Any:
    """Return log(1 + z * z), also if the square overflows."""
    if z.dtype.kind == "c":
        return uf.log1p(z * z)
    far = uf.abs(z) > 1e9
    near = where(far, 1.0, z)
    return where(far, 2 * uf.log(uf.abs(where(far, z, 1.0))), uf.log1p(near * near))


def _cauchy_place(q: Any) -> Any:
    place = uf.tan(math.pi * (q - 0.5))
    if q.dtype.kind == "c":
        return place
    near = where(q < 0.5, q, 1 - q)  # in the tails q - 0.5 loses the significant digits
    tail = uf.sign(q - 0.5) / uf.tan(math.pi * where(near < 0.25, near, 0.25))
    place = where(near < 0.25, tail, place)
    return where((q < 0) | (q > 1), np.nan, place)  # the tangent is periodic


cauchy = declare(
    "cauchy", "the Cauchy distribution", "",
    logpdf=lambda z: -math.log(math.pi) - _log_of_square_and_one(z),
    cdf=lambda z: uf.arctan2(1, -z) / math.pi,
    logcdf=lambda z: uf.log(uf.arctan2(1, -z) / math.pi),
    sf=lambda z: uf.arctan2(1, z) / math.pi,
    logsf=lambda z: uf.log(uf.arctan2(1, z) / math.pi),
    ppf=_cauchy_place,
    isf=lambda q: -_cauchy_place(q),
)  # fmt: skip


def _of_probability(q: Any, f: Any) -> Any:
    """Return f(q) for probabilities, and nan for other numbers."""
    return _where_inside((q >= 0) & (q <= 1), q, f, np.nan)


def _log_of_rest(v: Any) -> Any:
    """Return log(1 - exp(-v)) for v >= 0; for large v by the first term of its series."""
    far = v > 1
    near = uf.log(-uf.expm1(-where(far, 0.5, v)))
    return where(far, uf.log1p(-uf.exp(-where(far, v, 2.0))), near)


def _log_of_double(y: Any) -> Any:
    """Return log(1 - exp(-exp(y))); from y itself if exp(y) is tiny, since it may underflow."""
    low = y < -18
    return where(low, y - 0.5 * uf.exp(y), 0.0 + _log_of_rest(uf.exp(where(low, 0.0, y))))


def _log_of_either(p: Any, rest: Any) -> Any:
    """Return log(p) for p and rest = 1 - p, computed from the smaller one."""
    small = p < 0.5
    return where(small, uf.log(where(small, p, 0.5)), 0.0 + uf.log1p(-where(small, 0.5, rest)))


def _expon_logsf(z: Any) -> Any:
    return _where_inside(z >= 0, z, lambda v: 0.0 - v, 0.0)  # at 0 the one-sided derivative


expon = declare(
    "expon", "the exponential distribution", "", pieces=True, loose=_ALL,
    logpdf=lambda z: where(z < 0, -np.inf, -z),
    cdf=lambda z: _where_inside(z >= 0, z, lambda v: -uf.expm1(-v), 0),
    logcdf=lambda z: _where_inside(z >= 0, z, _log_of_rest),
    sf=lambda z: uf.exp(_expon_logsf(z)),
    logsf=_expon_logsf,
    ppf=lambda q: _of_probability(q, lambda v: -uf.log1p(-v)),
)  # fmt: skip


def _laplace_cdf(z: Any) -> Any:
    # Not by minimum and maximum, which would halve the derivative at 0.
    low = z <= 0
    return where(low, 0.5 * uf.exp(where(low, z, 0.0)), 1 - 0.5 * uf.exp(-where(low, 0.0, z)))


laplace = declare(
    "laplace", "the Laplace distribution", "",
    logpdf=lambda z: -uf.abs(z) - math.log(2),
    cdf=_laplace_cdf,
)  # fmt: skip

logistic = declare(
    "logistic", "the logistic distribution", "", inverse="x", loose=("cdf", "sf"),
    shaped={"pdf": ("loc", "scale"), "logpdf": ("loc", "scale")},
    logpdf=lambda z: -2 * uf.logaddexp(z / 2, -z / 2),
    cdf=sp.expit,
    sf=lambda z: sp.expit(-z),
    ppf=sp.logit,
    isf=lambda q: -sp.logit(q),
)  # fmt: skip

gumbel_r = declare(
    "gumbel_r", "the Gumbel distribution of largest values", "", inverse="p",
    loose=("pdf", "logpdf", "cdf", "logcdf", "logsf", "ppf"),
    logpdf=lambda z: -z - uf.exp(-z),
    logcdf=lambda z: -uf.exp(-z),
    sf=lambda z: -uf.expm1(-uf.exp(-z)),
    logsf=lambda z: _log_of_double(-z),
    ppf=lambda q: -uf.log(-uf.log(q)),
)  # fmt: skip

gumbel_l = declare(
    "gumbel_l", "the Gumbel distribution of smallest values", "", inverse="p", loose=_ALL,
    logpdf=lambda z: z - uf.exp(z),
    cdf=lambda z: -uf.expm1(-uf.exp(z)),
    logcdf=_log_of_double,
    logsf=lambda z: -uf.exp(z),
    ppf=lambda q: uf.log(-uf.log1p(-q)),
)  # fmt: skip

uniform = declare(
    "uniform", "the uniform distribution from loc to loc + scale", "", strong=("cdf",), pieces=True,
    loose=_ALL,
    logpdf=lambda z: where((z >= 0) & (z <= 1), 0.0, -np.inf),
    cdf=lambda z: where(z < 0, 0, where(z > 1, 1, z)),
    ppf=lambda q: _of_probability(q, lambda v: v),
)  # fmt: skip

pareto = declare(
    "pareto", "the Pareto distribution", "b", pieces=True, positive=True, loose=("logcdf",),
    logpdf=lambda z, b: _where_inside(
        z >= 1, z, lambda v: uf.log(b) - (b + 1) * uf.log(v), safe=2.0
    ),
    cdf=lambda z, b: _where_inside(z >= 1, z, lambda v: -uf.expm1(-b * uf.log(v)), 0, 2.0),
    logcdf=lambda z, b: _where_inside(z >= 1, z, lambda v: _log_of_rest(b * uf.log(v)), safe=2.0),
    sf=lambda z, b: _where_inside(z >= 1, z, lambda v: uf.exp(-b * uf.log(v)), 1, 2.0),
    logsf=lambda z, b: _where_inside(z >= 1, z, lambda v: -b * uf.log(v), 0, 2.0),
    ppf=lambda q, b: _of_probability(q, lambda v: uf.exp(-uf.log1p(-v) / b)),
)  # fmt: skip


def _gamma_logpdf(z: Any, a: Any) -> Any:
    return _where_inside(z >= 0, z, lambda v: sp.xlogy(a - 1, v) - v - sp.gammaln(a))


def _within_ends(z: Any, f: Any, below: float, above: float) -> Any:
    """Return f(z) within 0 and infinity, also if shape parameters are infinite."""
    return _where_inside((z > 0) & (z < np.inf), z, f, where(z > 0, above, below))


def _gamma_cdf(z: Any, a: Any) -> Any:
    return _within_ends(z, lambda v: sp.gammainc(a, v), 0.0, 1.0)


def _gamma_logcdf(z: Any, a: Any) -> Any:
    return _within_ends(
        z, lambda v: _log_of_either(sp.gammainc(a, v), sp.gammaincc(a, v)), -np.inf, 0.0
    )


def _gamma_sf(z: Any, a: Any) -> Any:
    return _within_ends(z, lambda v: sp.gammaincc(a, v), 1.0, 0.0)


def _gamma_logsf(z: Any, a: Any) -> Any:
    return _within_ends(
        z, lambda v: _log_of_either(sp.gammaincc(a, v), sp.gammainc(a, v)), 0.0, -np.inf
    )


gamma = declare(
    "gamma", "the gamma distribution", "a", pieces=True, positive=True, loose=("sf", "logsf"),
    logpdf=_gamma_logpdf,
    cdf=_gamma_cdf,
    logcdf=_gamma_logcdf,
    sf=_gamma_sf,
    logsf=_gamma_logsf,
)  # fmt: skip

chi2 = declare(
    "chi2", "the chi-squared distribution", "df", pieces=True, positive=True,
    shaped=dict.fromkeys(("cdf", "logcdf", "sf", "logsf"), ("scale",)),
    logpdf=lambda z, df: _gamma_logpdf(z / 2, df / 2) - math.log(2),
    cdf=lambda z, df: _gamma_cdf(z / 2, df / 2),
    logcdf=lambda z, df: _gamma_logcdf(z / 2, df / 2),
    sf=lambda z, df: _gamma_sf(z / 2, df / 2),
    logsf=lambda z, df: _gamma_logsf(z / 2, df / 2),
)  # fmt: skip


def _beta_cdf(z: Any, a: Any, b: Any) -> Any:
    ends = where(z > 0, 1.0, 0.0)
    return _where_inside((z > 0) & (z < 1), z, lambda v: sp.betainc(a, b, v), ends)


def _beta_sf(z: Any, a: Any, b: Any) -> Any:
    ends = where(z > 0, 0.0, 1.0)
    return _where_inside((z > 0) & (z < 1), z, lambda v: sp.betainc(b, a, 1 - v), ends)


beta = declare(
    "beta", "the beta distribution", "a, b", pieces=True, positive=True,
    logpdf=lambda z, a, b: _where_inside(
        (z >= 0) & (z <= 1),
        z,
        lambda v: sp.xlogy(a - 1, v) + sp.xlog1py(b - 1, -v) - sp.betaln(a, b),
    ),
    cdf=_beta_cdf,
    logcdf=lambda z, a, b: _where_inside(
        z > 0, z, lambda v: _log_of_either(_beta_cdf(v, a, b), _beta_sf(v, a, b))
    ),
    sf=_beta_sf,
    logsf=lambda z, a, b: _where_inside(
        z < 1, z, lambda v: _log_of_either(_beta_sf(v, a, b), _beta_cdf(v, a, b))
    ),
)  # fmt: skip


def _half_step(x: Any) -> Any:
    """Return log(Gamma(x + 1/2) / Gamma(x)) - log(x) / 2; for large x by its series, since the
    difference of the logarithms would cancel."""
    small = where(x < 12, x, 1.0)
    direct = sp.gammaln(small + 0.5) - sp.gammaln(small) - 0.5 * uf.log(small)
    v = 1 / where(x < 12, 12.0, x)
    w = v * v
    terms = -1 / 8 + w * (1 / 192 + w * (-1 / 640 + w * (17 / 14336 - w * 31 / 18432)))
    return where(x < 12, direct, v * terms)


t = declare(
    "t", "Student's t distribution", "df",
    logpdf=lambda z, df: (
        _half_step(df / 2) - _HALF_LOG_2PI - (df + 1) / 2 * _log_of_square_and_one(z / uf.sqrt(df))
    ),
)  # fmt: skip


def _gennorm_cdf(z: Any, beta: Any) -> Any:
    tail = 0.5 * sp.gammaincc(1 / beta, uf.abs(z) ** beta)
    return where(z < 0, tail, 1 - tail)


gennorm = declare(
    "gennorm", "the generalized normal distribution", "beta", place="", loose=_ALL,
    pieces=True, positive=True,
    logpdf=lambda z, beta: uf.log(0.5 * beta) - sp.gammaln(1 / beta) - uf.abs(z) ** beta,
    # At 0 the derivative is the density there.
    cdf=lambda z, beta: _where_inside(
        z != 0, z, lambda v: _gennorm_cdf(v, beta),
        0.5 + z * (0.5 * beta / uf.exp(sp.gammaln(1 / beta))),
    ),
)  # fmt: skip


def _vonmises_logpdf(z: Any, kappa: Any) -> Any:
    kappa = where(kappa >= 0, kappa, np.nan)
    # At 0, the scaled Bessel function has the mean of both derivatives; the last term corrects it.
    rest = where(kappa == 0, kappa, 0.0)
    return kappa * (uf.cos(z) - 1) - math.log(2 * math.pi) - uf.log(sp.i0e(kappa)) + rest


vonmises = declare(
    "vonmises", "the von Mises distribution", "kappa", place="", loose=_ALL,
    logpdf=_vonmises_logpdf,
)  # fmt: skip

wrapcauchy = declare(
    "wrapcauchy", "the Cauchy distribution wrapped around a circle", "c", place="", loose=_ALL,
    pieces=True,
    logpdf=lambda z, c: where(
        (c > 0) & (c < 1),
        where(
            (z >= 0) & (z <= 2 * math.pi),
            uf.log((1 - c * c) / (2 * math.pi * (1 + c * c - 2 * c * uf.cos(z)))),
            -np.inf,
        ),
        np.nan,
    ),
)  # fmt: skip


# --- the truncated normal distribution ------------------------------------------------------------


def _log_mass(a: Any, b: Any) -> Any:
    """Return log(Phi(b) - Phi(a)) for a <= b, from the tail with both, or from both tails."""
    up = a > 0
    low, high = where(up, -b, a), where(up, -a, b)
    tail = high <= 0  # the unused branch gets safe values
    most = sp.log_ndtr(where(tail, high, -1.0))
    rest = sp.log_ndtr(where(tail, low, -2.0)) - most
    outside = sp.ndtr(where(tail, -1.0, low)) + sp.ndtr(-where(tail, 1.0, high))
    return where(tail, most + uf.log1p(-uf.exp(uf.minimum(rest, 0))), uf.log1p(-outside))


def _point_between(a: Any, b: Any) -> Any:
    """Return a finite number between two bounds, which may be infinite, with finite derivatives."""
    low, high = uf.isinf(a), uf.isinf(b)
    return where(low & high, 0.0, where(low, b - 1, where(high, a + 1, 0.5 * (a + b))))


def _on_support(f: Any, below: float, above: float, ends: bool = False) -> Any:
    """Make a function of points between `a` and `b`, including the ends or not."""

    def run(z: Any, a: Any, b: Any) -> Any:
        inside = (z >= a) & (z <= b) if ends else (z > a) & (z < b)
        inside = inside & ~uf.isinf(z)  # infinities are ends
        value = f(where(inside, z, _point_between(a, b)), a, b)
        return where(a >= b, np.nan, where(inside, value, where(z <= a, below, above)))

    return run


def _log_fraction_below(z: Any, a: Any, b: Any) -> Any:
    """Return the log of the fraction of the mass below z; near 0 from the fraction above."""
    whole = _log_mass(a, b)
    below, above = _log_mass(a, z) - whole, _log_mass(z, b) - whole
    most = below > -0.1
    return where(most, uf.log1p(-uf.exp(where(most, above, -1.0))), below)


truncnorm = declare(
    "truncnorm", "the normal distribution cut off below a and above b", "a, b", pieces=True,
    strong=("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"),
    logpdf=_on_support(
        lambda z, a, b: _norm_logpdf(z) - _log_mass(a, b), -np.inf, -np.inf, ends=True
    ),
    # At the ends one of the fractions is 0, and its logarithm has no derivative.
    logcdf=_on_support(_log_fraction_below, -np.inf, 0.0),
    logsf=_on_support(lambda z, a, b: _log_fraction_below(-z, -b, -a), 0.0, -np.inf),
)  # fmt: skip
