"""Functions of `scipy.special` that are compositions of ops, or computed by SciPy.

Functions that need a series or a continued fraction are computed by SciPy in float64, called from
fused kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import (
    as_node,
    broadcast_nodes,
    cast,
    promote_inexact,
    to_shape,
    wrap,
)
from accnp.api.arguments.shapes import as_int, as_size
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.lazy_imports import imported
from accnp.numpy import ufunc_rules as rules
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array
from accnp.numpy.joining import stack
from accnp.numpy.log_sum_exp import logsumexp as logsumexp
from accnp.numpy.number_parts import isneginf
from accnp.numpy.selection import where
from accnp.primitives.custom import JvpRule, call_with_rule
from accnp.primitives.elementwise import like
from accnp.scipy.special import complex_gamma
from accnp.scipy.special.entropies import (
    box_cox,
    box_cox_of_more,
    divergence,
    entropy,
    entropy_between,
    in_double,
    power_of_log,
)
from accnp.scipy.special.normal_functions import expit, log_ndtr, logit, ndtr
from accnp.scipy.special.op_functions import (
    beta,
    betainc,
    betaln,
    complex_node,
    dawsn,
    digamma,
    erf,
    erfc,
    erfcx,
    erfinv,
    exp1,
    expi,
    expn,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    hyp1f1,
    hyp2f1,
    i0,
    i0e,
    i1,
    i1e,
    ndtri,
    operands,
    owens_t,
    poch,
    polygamma,
    spence,
)  # fmt: skip

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn",
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "expn",
    "factorial", "fresnel", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "hyp1f1",
    "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "loggamma",
    "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma",
    "rel_entr", "sici", "spence", "wofz", "xlog1py", "xlogy", "zeta",
]  # fmt: skip


@api_boundary
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Compute the Hurwitz zeta function, the sum of (k + q)**-x for k >= 0, elementwise.

    Parameters
    ----------
    x : array_like
        Exponents, greater than 1.
    q : array_like, optional
        Start of the summation. The default, 1, gives the Riemann zeta function.

    Returns
    -------
    {returns_special}

    Raises
    ------
    {raises_real_broadcast}

    See Also
    --------
    bernoulli : Values at whole numbers, up to factors.
    polygamma : Derivatives of the digamma function.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.zeta(2.0, 1.0)), 5)
    1.64493
    """
    return wrap(o.zeta(*operands("zeta", x, 1 if q is None else q)))


@api_boundary
def loggamma(x: ArrayLike) -> Array:
    """Compute the logarithm of the gamma function, elementwise.

    Parameters
    ----------
    x : array_like
        Real or complex array or number, of any shape.

    Returns
    -------
    Array
        Values of the shape of `x`, of floating or complex dtype: the principal branch for complex
        numbers, nan for real ones that are not positive.

    Raises
    ------
    TypeError
        If `x` is not an array or a number.

    See Also
    --------
    gammaln : Logarithm of the absolute value, also for negative numbers.
    gamma : The gamma function itself.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.loggamma(5.0)), 5)
    3.17805
    """
    if (z := complex_node("loggamma", x)) is not None:
        return wrap(complex_gamma.loggamma(z))
    value = wrap(operands("loggamma", x)[0])
    return where(value > 0, gammaln(value), np.nan)


@api_boundary
@compiled_if_small("x")
def gammasgn(x: ArrayLike) -> Array:
    """Compute the sign of the gamma function, elementwise.

    Parameters
    ----------
    x : array_like
        Real array or number, of any shape.

    Returns
    -------
    Array
        Values -1 or 1 of floating dtype, of the shape of `x`; nan at negative integers.

    Raises
    ------
    {raises_real}

    See Also
    --------
    gammaln : Logarithm of the absolute value.
    gamma : The gamma function itself.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.gammasgn(-0.5))
    -1.0
    """
    value = wrap(operands("gammasgn", x)[0])
    below = uf.floor(value)
    sign = where(value > 0, 1.0, 1.0 - 2.0 * (below % 2))
    sign = where((value < 0) & (below == value), np.nan, sign)
    sign = where(value == 0, uf.copysign(1.0, value), sign)
    return where(uf.isnan(value) | isneginf(value), np.nan, sign).astype(value.dtype)


@api_boundary
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(y), which is 0 where x is 0, elementwise.

    Parameters
    ----------
    x : array_like
        Factor, real or complex.
    y : array_like
        Argument of the logarithm, real or complex; it broadcasts against `x`.

    Returns
    -------
    {returns_special}

    Raises
    ------
    {raises_special}

    See Also
    --------
    xlog1py : The same with log(1 + y).
    entr : Entropy -x log(x).

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.xlogy(0.0, 0.0))
    0.0
    """
    return _times_log("xlogy", x, y, o.log, 1)


@api_boundary
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(1 + y), which is 0 where x is 0, elementwise.

    Parameters
    ----------
    x : array_like
        Factor, real or complex.
    y : array_like
        Argument of the logarithm less 1, real or complex; it broadcasts against `x`.

    Returns
    -------
    {returns_special}

    Raises
    ------
    {raises_special}

    See Also
    --------
    xlogy : The same with log(y).
    numpy.log1p : The logarithm.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.xlog1py(0.0, -1.0))
    0.0
    """
    return _times_log("xlog1py", x, y, o.log1p, 0)


def _ratio(xs: list[Node]) -> list[Node]:
    """x / y, the derivative of x log(y) by y, where 0 / 0 is 0."""
    x, y = xs
    zero = o.and_(o.eq(x, like(x, 0)), o.eq(y, like(y, 0)))
    return [o.div(x, rules.select(zero, rules.filled(y, 1), y))]


def _ratio_rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
    """Differentiate the ratio without a guard: 1 / y is infinite at 0 for any x."""
    x, y = xs
    parts = [
        ts[0] and o.div(ts[0], y),
        ts[1] and o.neg(o.mul(ts[1], o.div(x, o.mul(y, y)))),
    ]
    tangent = o.add(*parts) if all(parts) else parts[0] or parts[1]
    return call_with_rule(_RATIO, xs, _ratio), [tangent]


_RATIO = JvpRule("ratio_of_xlogy", _ratio_rule)


def _times_log(name: str, x: Any, y: Any, log: Any, harmless: float) -> Array:
    a, b = broadcast_nodes(name, promote_inexact(f"special.{name}", x, y))

    def value(xs: list[Node]) -> list[Node]:
        zero = o.and_(o.eq(xs[0], like(xs[0], 0)), o.eq(xs[1], xs[1]))
        whole = o.mul(xs[0], log(xs[1]))
        return [rules.select(zero, rules.filled(whole, 0), whole)]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        inner = xs[1] if harmless else o.add(xs[1], like(xs[1], 1))
        ratio = ts[1] and call_with_rule(_RATIO, [xs[0], inner], _ratio)[0]
        parts = [ts[0] and o.mul(ts[0], log(xs[1])), ts[1] and o.mul(ts[1], ratio)]
        tangent = o.add(*parts) if all(parts) else parts[0] or parts[1]
        return call_with_rule(jvp_rule, xs, value), [tangent]

    jvp_rule = JvpRule(name, rule, {"jvp": f"_{name}_jvp", "symbolic_zeros": False})
    shape = np.broadcast_shapes(a.aval.shape, b.aval.shape)
    return wrap(call_with_rule(jvp_rule, [to_shape(n, shape) for n in (a, b)], value)[0])


@api_boundary
def entr(x: ArrayLike) -> Array:
    """Compute the entropy -x log(x) of a probability, elementwise.

    Parameters
    ----------
    x : array_like
        Real array or number, of any shape.

    Returns
    -------
    Array
        Values of floating dtype, of the shape of `x`; 0 at 0, and -inf for negative numbers.

    Raises
    ------
    {raises_real}

    See Also
    --------
    rel_entr, kl_div : Relative entropies.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.entr(1.0))
    -0.0
    """
    return wrap(entropy(*operands("entr", x)))


@api_boundary
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute the relative entropy p log(p / q), elementwise.

    Parameters
    ----------
    p : array_like
        First probability, real.
    q : array_like
        Second probability, real; it broadcasts against `p`.

    Returns
    -------
    Array
        Values of the shape to which the arguments broadcast and of floating dtype; 0 where `p` is 0
        and `q` is not negative, and inf where an argument is negative.

    Raises
    ------
    {raises_real_broadcast}

    See Also
    --------
    kl_div : The same with linear terms.
    entr : Entropy of one probability.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.rel_entr(1.0, 1.0))
    0.0
    """
    x, y = operands("rel_entr", p, q)
    value = wrap(in_double(entropy_between, x, y))
    # As in JAX, the first operand must be weak itself, the second one after promotion.
    weak = as_node(p, "rel_entr").aval.weak_type and x.aval.weak_type and y.aval.weak_type
    return wrap(cast(value._node, value.dtype, weak))


@api_boundary
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute the Kullback-Leibler divergence p log(p / q) - p + q, elementwise.

    Parameters
    ----------
    p : array_like
        First probability, real.
    q : array_like
        Second probability, real; it broadcasts against `p`.

    Returns
    -------
    Array
        Values of the shape to which the arguments broadcast and of floating dtype; borders are
        treated as by `rel_entr`.

    Raises
    ------
    {raises_real_broadcast}

    See Also
    --------
    rel_entr : The same without linear terms.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.kl_div(1.0, 1.0))
    0.0
    """
    x, y = operands("kl_div", p, q)
    weak = as_node(p, "kl_div").aval.weak_type and x.aval.weak_type and y.aval.weak_type
    return wrap(cast(in_double(divergence, x, y), x.aval.dtype, weak))


@api_boundary
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute the Box-Cox transformation (x**lmbda - 1) / lmbda, elementwise.

    Parameters
    ----------
    x : array_like
        Real or complex array or number to transform.
    lmbda : array_like
        Exponent, real or complex; it broadcasts against `x`. 0 gives log(x).

    Returns
    -------
    {returns_special}

    Raises
    ------
    {raises_special}

    See Also
    --------
    boxcox1p : The transformation of 1 + x.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.boxcox(2.0, 0.5)), 5)
    0.82843
    """
    return _box_cox("boxcox", box_cox, x, lmbda)


def _box_cox(name: str, f: Callable[..., Node], x: Any, lmbda: Any) -> Array:
    nodes = broadcast_nodes(name, promote_inexact(f"special.{name}", x, lmbda))
    if nodes[0].aval.dtype.kind != "c":
        return wrap(in_double(f, *nodes))
    return wrap(in_double(power_of_log, (o.log if f is box_cox else o.log1p)(nodes[0]), nodes[1]))


@api_boundary
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute the Box-Cox transformation of 1 + x, accurately for small x, elementwise.

    Parameters
    ----------
    x : array_like
        Real or complex array or number to transform.
    lmbda : array_like
        Exponent, real or complex; it broadcasts against `x`. 0 gives log(1 + x).

    Returns
    -------
    {returns_special}

    Raises
    ------
    {raises_special}

    See Also
    --------
    boxcox : The transformation of x.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.boxcox1p(2.0, 0.5)), 5)
    1.4641
    """
    return _box_cox("boxcox1p", box_cox_of_more, x, lmbda)


@api_boundary
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute the factorial n! by the gamma function, elementwise.

    Parameters
    ----------
    n : array_like
        Real array or number, of any shape.
    exact : bool, optional
        Whether to return exact integers. Only False, the default, is supported.

    Returns
    -------
    Array
        Factorials of floating dtype, of the shape of `n`; 0 for negative numbers.

    Raises
    ------
    {raises_real}
    NotImplementedError
        If `exact` is True.

    See Also
    --------
    gamma : The gamma function.
    comb : Binomial coefficients.

    Notes
    -----
    Unlike SciPy, there are no exact integers: float32 is exact up to 2**24 only.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.factorial(5))
    120.0
    """
    if exact:
        raise NotImplementedError(
            "special.factorial: exact=True gives Python integers; use math.factorial"
        )
    value = wrap(operands("factorial", n)[0])
    return where(value < 0, 0, gamma(where(value < 0, 0, value) + 1)).astype(value.dtype)


@api_boundary
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Compute the number of ways to choose k of N elements, elementwise.

    Parameters
    ----------
    N : array_like
        Number of elements to choose from.
    k : array_like
        How many of them are chosen; it broadcasts against `N`.
    repetition : bool, optional
        Whether an element may be chosen several times. The default is False.

    Returns
    -------
    {returns_special}

    Raises
    ------
    {raises_real_broadcast}

    See Also
    --------
    factorial : Factorials.

    Notes
    -----
    Unlike SciPy, there is no argument `exact`.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.comb(5, 2)), 3)
    10.0
    """
    n, m = (wrap(x) for x in operands("comb", N, k))
    if repetition:
        return where((m == 0) & (n >= 0), 1, comb(n + m - 1, m))  # one way to choose nothing
    fits = (m >= 0) & (n >= m) & (n >= 0)
    ways = o.binom(where(fits, n, 1)._node, where(fits, m, 0)._node)
    return where(fits, wrap(ways), 0).astype(n.dtype)


@api_boundary
def multigammaln(a: ArrayLike, d: int) -> Array:
    """Compute the logarithm of the multivariate gamma function, elementwise.

    Parameters
    ----------
    a : array_like
        Real numbers greater than (d - 1) / 2, in an array of any shape.
    d : int
        Dimension, a static integer.

    Returns
    -------
    Array
        Values of floating dtype, of the shape of `a`.

    Raises
    ------
    TypeError
        If `a` is complex or not an array, or `d` is not a static integer.
    ValueError
        If `d` is negative.

    See Also
    --------
    gammaln : The function for dimension 1.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.multigammaln(5.0, 2)), 4)
    6.2042
    """
    value = wrap(operands("multigammaln", a)[0])
    n = as_size(d, "special.multigammaln", "d")
    if not n:
        return value * 0
    rest = sum(gammaln(value - k / 2) for k in range(1, n))
    return gammaln(value) + rest + n * (n - 1) / 4 * math.log(math.pi)


@api_boundary
def bernoulli(n: int) -> Array:
    """Compute the Bernoulli numbers B0 to Bn.

    Parameters
    ----------
    n : int
        Index of the last number, a static integer.

    Returns
    -------
    Array
        Bernoulli numbers, float32 of shape (n + 1,); B1 is -1/2.

    Raises
    ------
    TypeError
        If `n` is not a static integer.
    ValueError
        If `n` is negative.

    See Also
    --------
    zeta : Zeta function, whose values at even numbers have these as factors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.special.bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    count = as_int(n, "special.bernoulli", "n")
    if count < 0:
        raise ValueError(f"special.bernoulli: n is at least 0; got {count}; pass 0 or more")
    numbers = imported("scipy.special").bernoulli(max(count, 2))[: count + 1]
    return array(np.asarray(numbers))


@api_boundary
@compiled_if_small("z")
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Compute the Bessel functions of the first kind of orders 0 to v.

    Parameters
    ----------
    z : array_like
        Real array or number, of any shape.
    v : int
        Highest order, a static integer.
    n_iter : int, optional
        Number of iterations in JAX. It is accepted and has no effect.

    Returns
    -------
    Array
        Values of shape (v + 1, ...) and floating dtype.

    Raises
    ------
    TypeError
        If `z` is complex or not an array, or `v` is not a static integer.
    ValueError
        If `v` is negative.

    See Also
    --------
    i0, i1 : Modified Bessel functions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.special.bessel_jn(jnp.array([0.0]), v=1)
    Array([[1.],
           [0.]], dtype=float32)
    """
    x = operands("bessel_jn", z)[0]
    order = as_size(v, "special.bessel_jn", "v")
    as_size(n_iter, "special.bessel_jn", "n_iter")
    return stack([wrap(o.bessel_j(like(x, k), x)) for k in range(order + 1)])


def _make_strong(node: Node) -> Array:
    return wrap(cast(node, node.aval.dtype))


@api_boundary
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the sine and cosine integrals, elementwise.

    Parameters
    ----------
    x : array_like
        Real array or number, of any shape.

    Returns
    -------
    si : Array
        Integral of sin(t) / t from 0 to x, of floating dtype.
    ci : Array
        Integral of cos(t) / t from infinity to x, of floating dtype.

    Raises
    ------
    {raises_real}

    See Also
    --------
    fresnel : Fresnel integrals.
    expi : Exponential integral.

    Notes
    -----
    Unlike SciPy, there are no complex arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> [round(float(v), 5) for v in jnp.scipy.special.sici(1.0)]
    [0.94608, 0.3374]
    """
    first, second = items(o.sici(*operands("sici", x)))
    return _make_strong(first), _make_strong(second)


@api_boundary
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the Fresnel sine and cosine integrals, elementwise.

    Parameters
    ----------
    x : array_like
        Real array or number, of any shape.

    Returns
    -------
    s : Array
        Integral of sin(pi t**2 / 2) from 0 to x, of floating dtype.
    c : Array
        Integral of cos(pi t**2 / 2) from 0 to x, of floating dtype.

    Raises
    ------
    {raises_real}

    See Also
    --------
    sici : Sine and cosine integrals.

    Notes
    -----
    Unlike SciPy, there are no complex arguments.

    Examples
    --------
    >>> import accnp as jnp
    >>> [round(float(v), 5) for v in jnp.scipy.special.fresnel(1.0)]
    [0.43826, 0.77989]
    """
    first, second = items(o.fresnel(*operands("fresnel", x)))
    return _make_strong(first), _make_strong(second)


@api_boundary
def wofz(z: ArrayLike) -> Array:
    """Compute the Faddeeva function exp(-z**2) erfc(-i z), elementwise.

    Parameters
    ----------
    z : array_like
        Real or complex array or number, of any shape.

    Returns
    -------
    Array
        Values of the shape of `z`, of dtype complex64 (complex128 for 64-bit numbers).

    Raises
    ------
    TypeError
        If `z` is not an array or a number.

    See Also
    --------
    erfcx : Scaled complementary error function.
    dawsn : Dawson's integral.

    Examples
    --------
    >>> import accnp as jnp
    >>> complex(jnp.scipy.special.wofz(0j))
    (1+0j)
    """
    (node,) = promote_inexact("special.wofz", z)
    if node.aval.dtype.kind != "c":
        node = cast(node, np.result_type(node.aval.dtype, np.complex64))
    return _make_strong(o.wofz(node))
