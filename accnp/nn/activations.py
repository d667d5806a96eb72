"""Activation functions of neural networks, applied elementwise."""

from __future__ import annotations

import math
from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy import ufunc_rules as rules
from accnp.numpy import ufuncs as uf
from accnp.numpy.derivative_rules import normal_cdf, tanh_cdf
from accnp.numpy.ufunc_factories import inexact
from accnp.primitives.custom import JvpRule, call_with_rule
from accnp.primitives.elementwise import like

tanh = uf.tanh


def _inexact_node(name: str, x: Any) -> Node:
    return inexact(name, x)[0]


@api_boundary
@shown()
def identity(x: ArrayLike) -> Array:
    """Return the input unchanged, as an array.

    Parameters
    ----------
    x : array_like
        Values of any shape and dtype to pass on.

    Returns
    -------
    Array
        `x` as an array.

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.relu : Rectified linear unit.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.identity(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return wrap(as_node(x, "identity"))


@api_boundary
def relu(x: ArrayLike) -> Array:
    """Rectified linear unit, max(x, 0).

    Parameters
    ----------
    x : array_like
        Values of any shape. Integer and floating dtypes are kept.

    Returns
    -------
    Array
        Result of the shape and dtype of `x`.

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.relu6 : Version with an upper limit.
    nn.leaky_relu : Version with a gradient for negative values.

    Notes
    -----
    The derivative at 0 is 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return _with_derivative("relu", _relu, x, lambda v: rules.compare("gt")(v, like(v, 0)))


@shown("relu")
def _relu(x: Any) -> Array:
    return uf.maximum(x, 0)


def _with_derivative(name: str, fn: Any, x: Any, inside: Any) -> Array:
    """Return a function whose derivative is 1 where `inside` holds, and 0 elsewhere."""

    def value(xs: list[Node]) -> list[Node]:
        return [fn(wrap(xs[0]))._node]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (node,), (t,) = xs, ts
        return call_with_rule(jvp_rule, xs, value), [
            t and rules.select(inside(node), t, rules.filled(t, 0))
        ]

    jvp_rule = JvpRule(name, rule, {"jvp": "jvp", "symbolic_zeros": False})
    return wrap(call_with_rule(jvp_rule, [as_node(x, name)], value)[0])


@api_boundary
def relu6(x: ArrayLike) -> Array:
    """Rectified linear unit with an upper limit of 6, min(max(x, 0), 6).

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.relu : Version without an upper limit.

    Notes
    -----
    The derivative is 0 at both ends.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.relu6(jnp.array([-1.0, 8.0]))
    Array([0., 6.], dtype=float32)
    """
    above = rules.compare("gt")
    inside = lambda v: o.and_(above(v, like(v, 0)), above(like(v, 6), v))  # noqa: E731
    return _with_derivative("relu6", _relu6, x, inside)


@shown("relu6")
def _relu6(x: Any) -> Array:
    return uf.minimum(uf.maximum(x, 0), 6.0)


@api_boundary
def sigmoid(x: ArrayLike) -> Array:
    """Logistic sigmoid, 1 / (1 + exp(-x)).

    Parameters
    ----------
    x : array_like
        Floating or complex values of any shape.

    Returns
    -------
    Array
        Result of the shape and dtype of `x`, between 0 and 1.

    Raises
    ------
    TypeError
        If `x` is not an array or number, or has an integer dtype.

    See Also
    --------
    nn.log_sigmoid : Logarithm of the sigmoid.
    nn.hard_sigmoid : Piecewise linear approximation.
    scipy.special.logit : Inverse function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return wrap(o.logistic(as_node(x, "sigmoid")))


@api_boundary
@shown()
@compiled_if_small("x")
def softplus(x: ArrayLike) -> Array:
    """Softplus, log(1 + exp(x)), computed without overflow.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.squareplus : Similar function without exponentials.
    nn.relu : Function that softplus smooths.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.softplus(jnp.array([0.0]))
    Array([0.6931472], dtype=float32)
    """
    return uf.logaddexp(x, 0)


@api_boundary
@shown()
@compiled_if_small("x")
def sparse_plus(x: ArrayLike) -> Array:
    """Sparse plus: 0 for x <= -1, (x + 1)**2 / 4 between -1 and 1, and x for x >= 1.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.sparse_sigmoid : Derivative of this function.
    nn.softplus : Function that is nowhere 0.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.sparse_plus(jnp.array([0.0, 2.0]))
    Array([0.25, 2.  ], dtype=float32)
    """
    arr = wrap(as_node(x, "sparse_plus"))
    middle = uf.divide(uf.power(uf.add(arr, 1.0), 2), 4)
    high = uf.where(uf.greater_equal(arr, 1.0), arr, middle)
    return uf.where(uf.less_equal(arr, -1.0), 0.0, high)


@api_boundary
@shown()
def soft_sign(x: ArrayLike) -> Array:
    """Soft sign, x / (1 + abs(x)).

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.hard_tanh : Piecewise linear function with the same limits.
    numpy.tanh : Hyperbolic tangent.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.soft_sign(jnp.array([1.0]))
    Array([0.5], dtype=float32)
    """
    arr = wrap(as_node(x, "soft_sign"))
    return uf.divide(arr, uf.add(uf.abs(arr), 1))


@api_boundary
@shown()
def silu(x: ArrayLike) -> Array:
    """Sigmoid-weighted linear unit, x * sigmoid(x), also called swish.

    Parameters
    ----------
    x : array_like
        Floating or complex values of any shape.

    Returns
    -------
    Array
        Result of the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not an array or number, or has an integer dtype.

    See Also
    --------
    nn.sigmoid : Logistic sigmoid.
    nn.hard_silu : Piecewise approximation.
    nn.mish : Similar function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.silu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    node = as_node(x, "silu")
    if state.named or rules.kind(node) != "f":  # jaxprs show the formula that JAX uses
        return uf.multiply(x, sigmoid(x))
    return wrap(o.silu(node))


swish = silu


@api_boundary
@shown()
def mish(x: ArrayLike) -> Array:
    """Mish activation, x * tanh(softplus(x)).

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.silu : Similar function.
    nn.softplus : Inner function.

    Notes
    -----
    See Misra, "Mish: A Self Regularized Non-Monotonic Activation Function" (2019).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.mish(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    node = as_node(x, "mish")
    if state.named or rules.kind(node) != "f":  # jaxprs show the formula that JAX uses
        return uf.multiply(x, uf.tanh(softplus(x)))
    return wrap(o.mish(node))


@api_boundary
@shown()
@compiled_if_small("x")
def log_sigmoid(x: ArrayLike) -> Array:
    """Logarithm of the sigmoid, log(1 / (1 + exp(-x))), computed without overflow.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.sigmoid : Logistic sigmoid.
    nn.softplus : The negative of this function of -x.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.log_sigmoid(jnp.array([0.0]))
    Array([-0.6931472], dtype=float32)
    """
    return uf.negative(softplus(uf.negative(x)))


@api_boundary
@shown(arrays=2)
@compiled_if_small("x", "alpha")
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Exponential linear unit: x for x > 0, alpha * (exp(x) - 1) otherwise.

    Parameters
    ----------
    {x_activation}
    {alpha_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.celu : Version with a continuous derivative for every alpha.
    nn.selu : Scaled version.

    Notes
    -----
    See Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units"
    (2015).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.elu(jnp.array([-1.0, 2.0]))
    Array([-0.63212055,  2.        ], dtype=float32)
    """
    arr = wrap(as_node(x, "elu"))
    above = uf.greater(arr, 0)
    # The unused branch gets x = 0 where x is positive, so that its derivative is finite.
    safe = uf.where(uf.greater(arr, 0), 0.0, arr)
    return uf.where(above, arr, uf.multiply(alpha, uf.expm1(safe)))


@api_boundary
@shown(arrays=2)
@compiled_if_small("x", "alpha")
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Continuously differentiable exponential linear unit.

    It is max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1).

    Parameters
    ----------
    {x_activation}
    {alpha_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.elu : Version that is not scaled inside the exponential.

    Notes
    -----
    See Barron, "Continuously Differentiable Exponential Linear Units" (2017).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.celu(jnp.array([-1.0, 2.0]))
    Array([-0.63212055,  2.        ], dtype=float32)
    """
    high = uf.maximum(x, 0.0)
    low = uf.divide(uf.minimum(x, 0.0), alpha)
    return uf.add(high, uf.multiply(alpha, uf.expm1(low)))


@api_boundary
@shown()
@compiled_if_small("x")
def selu(x: ArrayLike) -> Array:
    """Self-normalizing exponential linear unit, a scaled `elu`.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.elu : Version without scaling.

    Notes
    -----
    The constants, alpha = 1.6733 and a factor of 1.0507, are those of Klambauer et al.,
    "Self-Normalizing Neural Networks" (2017).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.selu(jnp.array([0.0, 1.0]))
    Array([0.      , 1.050701], dtype=float32)
    """
    return uf.multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


@api_boundary
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Gaussian error linear unit: x times the normal cumulative distribution function.

    Parameters
    ----------
    {x_activation}
    approximate : bool, optional
        If True, the default, use an approximation by tanh; otherwise compute the function exactly,
        by erf.

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.silu : Similar function with a sigmoid.
    scipy.special.erf : Error function.

    Notes
    -----
    See Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.gelu(jnp.array([0.0, 1.0]))
    Array([0.      , 0.841192], dtype=float32)
    """
    node = _inexact_node("gelu", x)
    if state.named or rules.kind(node) != "f":  # jaxprs show the formula that JAX uses
        cdf = tanh_cdf if approximate else normal_cdf
        return wrap(cast(o.mul(node, cdf(node)), node.aval.dtype))
    return wrap(cast((o.tanh_gelu if approximate else o.normal_gelu)(node), node.aval.dtype))


@api_boundary
@compiled_if_small("x", "negative_slope")
@shown(arrays=2)
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Leaky rectified linear unit: x for x >= 0, negative_slope * x otherwise.

    Parameters
    ----------
    {x_activation}
    negative_slope : array_like, optional
        Slope for negative values, which broadcasts against `x`. The default is 0.01.

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.relu : Version with slope 0.
    nn.elu : Smooth version.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.leaky_relu(jnp.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    arr = wrap(as_node(x, "leaky_relu"))
    return uf.where(uf.greater_equal(arr, 0), arr, uf.multiply(negative_slope, arr))


@api_boundary
@shown()
@compiled_if_small("x")
def hard_tanh(x: ArrayLike) -> Array:
    """Piecewise linear tanh: x clipped to the interval from -1 to 1.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    numpy.tanh : Hyperbolic tangent.
    nn.soft_sign : Smooth function with the same limits.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.hard_tanh(jnp.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    arr = wrap(as_node(x, "hard_tanh"))
    return uf.where(uf.greater(arr, 1), 1, uf.where(uf.less(arr, -1), -1, arr))


@api_boundary
@shown()
@compiled_if_small("x")
def hard_sigmoid(x: ArrayLike) -> Array:
    """Piecewise linear sigmoid, relu6(x + 3) / 6.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.sigmoid : Logistic sigmoid.
    nn.relu6 : Inner function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.hard_sigmoid(jnp.array([-4.0, 0.0]))
    Array([0. , 0.5], dtype=float32)
    """
    return uf.divide(relu6(uf.add(x, 3.0)), 6.0)


@api_boundary
@shown()
@compiled_if_small("x")
def hard_silu(x: ArrayLike) -> Array:
    """Piecewise approximation of `silu`, x * hard_sigmoid(x), also called hard swish.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.silu : Exact function.
    nn.hard_sigmoid : Factor of x.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.hard_silu(jnp.array([-4.0, 3.0]))
    Array([-0.,  3.], dtype=float32)
    """
    return uf.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@api_boundary
@shown()
@compiled_if_small("x")
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Piecewise linear sigmoid: (x + 1) / 2 clipped to the interval from 0 to 1.

    Parameters
    ----------
    {x_activation}

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.sparse_plus : Function of which this is the derivative.
    nn.sigmoid : Logistic sigmoid.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.sparse_sigmoid(jnp.array([-2.0, 0.0]))
    Array([0. , 0.5], dtype=float32)
    """
    return uf.multiply(0.5, uf.clip(uf.add(x, 1.0), 0.0, 2.0))


@api_boundary
@shown(arrays=2)
@compiled_if_small("x", "b")
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Squareplus, (x + sqrt(x*x + b)) / 2.

    Parameters
    ----------
    {x_activation}
    b : array_like, optional
        Smoothness, which broadcasts against `x`: the result at 0 is sqrt(b) / 2. The default is 4.

    Returns
    -------
    {returns_activation}

    Raises
    ------
    {raises_x}

    See Also
    --------
    nn.softplus : Similar function with exponentials.

    Notes
    -----
    See Barron, "Squareplus: A Softplus-Like Algebraic Rectifier" (2021).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.squareplus(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    plain = uf.divide(uf.add(x, uf.sqrt(uf.add(uf.square(x), b))), 2)
    if state.named or plain.dtype.kind == "c":
        return plain
    positive = isinstance(b, int | float) and b >= 0
    root = uf.hypot(x, uf.sqrt(b if positive else uf.maximum(b, 0)))  # squares may overflow
    if not positive:
        root = uf.where(uf.less(b, 0), uf.sqrt(uf.add(uf.square(x), b)), root)
    x, root = (wrap(v) for v in inexact("squareplus", x, root))
    below = uf.less(x, 0)  # there the sum cancels; f(x) f(-x) = b / 4
    high = uf.divide(uf.add(uf.where(below, uf.negative(x), x), root), 2)
    result = uf.where(below, uf.divide(uf.divide(b, 4), high), high)
    return wrap(cast(result._node, plain.dtype, plain._node.aval.weak_type))


@api_boundary
def log1mexp(x: ArrayLike) -> Array:
    """Compute log(1 - exp(-x)) accurately for small and large x.

    Parameters
    ----------
    x : array_like
        Positive or complex values of any shape. Integers become the default float dtype.

    Returns
    -------
    {returns_activation}

    Raises
    ------
    TypeError
        If `x` is not an array or number, or has dtype bool.

    See Also
    --------
    numpy.expm1 : Accurate exp(x) - 1.
    numpy.log1p : Accurate log(1 + x).

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nn.log1mexp(jnp.array([1.0]))
    Array([-0.45867515], dtype=float32)
    """
    if dtypes.result_type(x).kind == "b":
        raise TypeError("nn.log1mexp: x must be numbers; got bool; use astype(float)")
    node = _inexact_node("log1mexp", x)
    part = o.real(node) if rules.kind(node) == "c" else node
    near = o.lt(part, like(part, math.log(2)))
    low = rules.select(near, node, like(node, 0.5))
    tiny = o.lt(o.abs(low), like(part, 1e-30))  # subnormal numbers
    small = o.log(rules.select(tiny, low, o.neg(o.expm1(o.neg(low)))))
    large = o.log1p(o.neg(o.exp(o.neg(rules.select(near, like(node, 1), node)))))
    return wrap(rules.select(near, small, large))
