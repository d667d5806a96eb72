"""Functions of `scipy.special` for normal and logistic distributions: `ndtr`, `expit`, ..."""

from __future__ import annotations

from accnp import dtypes
from accnp.api.arguments.convert import cast, promote_inexact, wrap
from accnp.api.arguments.shapes import as_int
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.derivative_rules import normal_cdf
from accnp.primitives.custom import JvpRule, call_with_rule
from accnp.primitives.elementwise import like
from accnp.scipy.special.op_functions import floating

__all__ = ["expit", "log_ndtr", "logit", "ndtr"]


@api_boundary
def expit(x: ArrayLike) -> Array:
    """Compute the logistic sigmoid 1 / (1 + exp(-x)), elementwise.

    Parameters
    ----------
    x : array_like
        Real or complex array or number, of any shape.

    Returns
    -------
    Array
        Values of the shape of `x`, of floating or complex dtype. Integers give float32, where SciPy
        gives float64.

    Raises
    ------
    TypeError
        If `x` is not an array or a number.

    See Also
    --------
    logit : The inverse.
    nn.sigmoid : The same as an activation function.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.expit(0.0))
    0.5
    """
    (node,) = promote_inexact("special.expit", x)
    return wrap(o.logistic(node))


@api_boundary
def logit(x: ArrayLike) -> Array:
    """Compute log(x / (1 - x)), the inverse of the logistic sigmoid, elementwise.

    Parameters
    ----------
    x : array_like
        Real or complex array or number, of any shape.

    Returns
    -------
    Array
        Values of the shape of `x`, of floating or complex dtype; nan for real numbers outside of
        [0, 1]. Integers give float32.

    Raises
    ------
    TypeError
        If `x` is not an array or a number.

    See Also
    --------
    expit : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.logit(0.5))
    0.0
    """
    (p,) = promote_inexact("special.logit", x)
    return wrap(_logit(p))


def _logit(p: Node) -> Node:
    if state.named or p.aval.dtype.kind == "c":
        return o.log(o.div(p, o.sub(like(p, 1), p)))

    def value(xs: list[Node]) -> list[Node]:
        # log(p / (1 - p)) loses its digits at 1/2; 1 - 2 p is exact there.
        (p,) = xs
        rest = o.sub(like(p, 1), p)
        upper = o.ge(p, like(p, 0.5))
        size = o.log1p(o.div(o.abs(o.sub(like(p, 1), o.add(p, p))), o.min(p, rest)))
        # There the quotient may overflow: in float16 (at most 65504) below 1.5e-5.
        low = like(p, max(1e-30, float(dtypes.finfo(p.aval.dtype).tiny)))
        size = rules.select(o.lt(p, low), o.neg(o.log(p)), size)
        return [rules.select(upper, size, o.neg(size))]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (p,), (t,) = xs, ts
        return [_logit(p)], [t and o.div(t, o.mul(p, o.sub(like(p, 1), p)))]

    jvp_rule = JvpRule("logit", rule, {"jvp": "_logit_jvp", "symbolic_zeros": False})
    return call_with_rule(jvp_rule, [p], value)[0]


@api_boundary
def ndtr(x: ArrayLike) -> Array:
    """Compute the distribution function of the standard normal distribution, elementwise.

    Parameters
    ----------
    x : array_like
        Array or number of dtype float32 or float64, of any shape.

    Returns
    -------
    Array
        Probabilities of the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` has another dtype.

    See Also
    --------
    log_ndtr : Its logarithm.
    ndtri : The inverse.
    scipy.stats.norm.cdf : The same with location and scale.

    Notes
    -----
    Unlike SciPy, there are no other dtypes than float32 and float64, and they are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> float(jnp.scipy.special.ndtr(0.0))
    0.5
    """
    node = floating("ndtr", x)
    return wrap(cast(normal_cdf(node), node.aval.dtype))


@api_boundary
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Compute the logarithm of `ndtr`, accurate far to the left, elementwise.

    Parameters
    ----------
    x : array_like
        Array, number or list of dtype float32 or float64, of any shape.
    series_order : int, optional
        Order of a series in JAX. It is checked and has no effect.

    Returns
    -------
    Array
        Logarithms of the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` has another dtype.
    ValueError
        If `series_order` is not between 0 and 30.

    See Also
    --------
    ndtr : The distribution function itself.

    Notes
    -----
    Unlike SciPy, there are no other dtypes than float32 and float64, and they are kept.

    Examples
    --------
    >>> import accnp as jnp
    >>> round(float(jnp.scipy.special.log_ndtr(-30.0)), 3)
    -454.321
    """
    order = as_int(series_order, "special.log_ndtr", "series_order")
    if not 0 <= order <= 30:
        raise ValueError(
            f"special.log_ndtr: series_order is from 0 to 30; got {order}; pass one of these"
        )
    node = floating("log_ndtr", x)
    return wrap(o.log_ndtr(cast(node, node.aval.dtype)))  # strong, as in JAX
