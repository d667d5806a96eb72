"""Incomplete gamma and beta functions and their derivatives.

The values come from SciPy's C functions, which fused kernels call element by element
(`compiler/library/special_calls.py`). The derivatives of `igamma` by its parameter and of gamma
samples are opaque ops; one source text serves as their kernel and as their reference function.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from accnp.ir.node import Node
from accnp.ir.op import Lowering, o
from accnp.lazy_imports import imported
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import binary, like_full, map_infer, map_op, move_batch_first, opaque
from accnp.primitives.special import scipy_function

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


def _gamma_density(x: Node, a: Node) -> Node:
    """Return the derivative of igamma by x: exp(-x) x**(a - 1) / gamma(a)."""
    less = o.sub(a, like(a, 1))
    one = o.eq(less, like(less, 0))  # x**0 is 1 even at 0, where the logarithm is infinite
    power = o.select_n(one, o.mul(less, o.log(x)), like_full(x, 0))
    density = o.exp(o.sub(o.sub(power, x), o.lgamma(a)))
    end = o.eq(x, like(x, math.inf))  # the exponent would be inf - inf; the density is 0
    return o.select_n(end, density, like_full(density, 0))


binary("igamma", "f", scipy_function("gammainc"), "igamma({0}, {1})", (
    lambda t, y, a, x: o.mul(t, o.igamma_grad_a(a, x)),
    lambda t, y, a, x: o.mul(t, _gamma_density(x, a)),
), cost=60)  # fmt: skip
binary("igammac", "f", scipy_function("gammaincc"), "igammac({0}, {1})", (
    lambda t, y, a, x: o.neg(o.mul(t, o.igamma_grad_a(a, x))),
    lambda t, y, a, x: o.neg(o.mul(t, _gamma_density(x, a))),
), cost=60)  # fmt: skip


def _unknown_shape_derivative(*_: object) -> NoReturn:
    raise ValueError(
        "lax.betainc: the derivative by a and b is not known; got one that is differentiated; "
        "use stop_gradient"
    )


def _betainc_jvp(t: Node, y: Node, a: Node, b: Node, x: Node) -> Node:
    log_beta = o.sub(o.add(o.lgamma(a), o.lgamma(b)), o.lgamma(o.add(a, b)))
    powers = o.add(
        o.mul(o.sub(b, like(b, 1)), o.log1p(o.neg(x))), o.mul(o.sub(a, like(a, 1)), o.log(x))
    )
    return o.mul(t, o.exp(o.sub(powers, log_beta)))


map_op(
    "regularized_incomplete_beta",
    dtypes="f",
    numpy=scipy_function("betainc"),
    scalar="betainc({0}, {1}, {2})",
    jvp=(_unknown_shape_derivative, _unknown_shape_derivative, _betainc_jvp),
    cost=80,
)


# The derivative of igamma by a is a factor x**a exp(-x) / gamma(a + 1) times a bracket. For x < a
# it is a series, with sums of the terms and of their derivatives. Otherwise it is Lentz's continued
# fraction (Numerical Recipes, 3rd ed., 6.2), whose derivatives are carried along. Both need more
# and more terms for large a and x near a. There, Newton's method finds the standard normal quantile
# that corresponds to x, using the expansion of the gamma quantile (Goldberg, Levine: Approximate
# formulas for the percentage points of chi-square, 1946), whose derivative by a is that of the
# sample; the truncation error is below 1e-14 for x within 2 % of a. The factor is Stirling's there,
# because the difference of the logarithms has no accurate digits.
_BRACKET = """
going = 1
n = 0.0
front = one
if a > 2.0e4 and abs(x - a) < 0.02 * a:
    s = one / sqrt(a)
    w = (x - a) * s
    z = w
    while going == 1:
        q = z * z
        g3 = z * (q - 7.0) / 36.0
        g4 = ((3.0 * q + 7.0) * q - 16.0) / 810.0
        g5 = z * ((9.0 * q + 256.0) * q - 433.0) / 38880.0
        g6 = (((12.0 * q - 243.0) * q - 923.0) * q + 1472.0) / 204120.0
        g = z + s * ((q - one) / 3.0 + s * (g3 + s * (s * (g5 + s * g6) - g4)))
        u = s * z
        z = z - (g - w) / (one + u * (2.0 / 3.0 + u * (one / 12.0 - u * (2.0 / 135.0))))
        n = n + 1.0
        if n > 4.0:
            going = 0
    rest = s * s * s * (g3 / 2.0 - s * (g4 - s * (1.5 * g5 + s * 2.0 * g6)))
    bracket = -(one + s * z / 2.0 - rest) * a / x
    m = (x - a) / a
    near = zero
    n = 12.0
    while n > 1.5:
        near = (one / n - near) * m
        n = n - 1.0
    front = exp(-a * m * near - one / (12.0 * a)) * s * 0.3989422804014327
elif x <= 1.0 or x < a:
    whole = one
    derivative = zero
    term = one
    turn = zero
    while going == 1:
        n = n + 1.0
        shift = a + n
        turn = (turn - term / shift) * x / shift
        term = term * x / shift
        whole = whole + term
        derivative = derivative + turn
        if (term < whole * tiny and -turn < -derivative * tiny) or n > 2000.0:
            going = 0
    bracket = (log(x) - digamma(a + one)) * whole + derivative
    front = exp(a * log(x) - x - lgamma(a + one))
else:
    b = x + one - a
    c = one / floor_
    dc = zero
    d = one / b
    dd = d * d
    h = d
    dh = dd
    while going == 1:
        n = n + 1.0
        f = n * (a - n)
        b = b + 2.0
        dc = n / c - f * dc / (c * c) - one
        c = b + f / c
        dd = n * d + f * dd - one
        d = one / (f * d + b)
        dd = -dd * d * d
        step = d * c
        turn = dd * c + d * dc
        dh = dh * step + h * turn
        h = h * step
        if (abs(step - one) < tiny and abs(turn) < tiny) or n > 2000.0:
            going = 0
    bracket = -a * (h * (log(x) - digamma(a)) + dh)
    front = exp(a * log(x) - x - lgamma(a + one))
"""
_NAMES = {"one": 1.0, "zero": 0.0, "tiny": 1e-17, "floor_": 1e-300}
_GRAD = """
y = x
if x >= 0.0 and a > 0.0:
    if x > 0.0 and (x < 1.0e300 or a > 1.0e300):
{bracket}
        y = {result}
    elif x > 0.0:
        y = {far}
    else:
        y = zero
else:
    y = log(-one)
"""


class Derivative(NamedTuple):
    """A derivative by the parameter: its formula, and its value where x is infinite or almost
    infinite."""

    result: str
    far: str


# The derivative itself, and the derivative of a sample by its parameter, -(dP/da) / (dP/dx).
IGAMMA_GRAD_A = Derivative("bracket * front", "zero * a")
RANDOM_GAMMA_GRAD = Derivative("-bracket * x / a", "log(x) - digamma(a)")


def derivative_source(derivative: Derivative) -> str:
    bracket = textwrap.indent(_BRACKET, "        ")
    text = _GRAD.format(bracket=bracket, result=derivative.result, far=derivative.far)
    return text.replace("floor_", "1.0e-300")


def _reference(name: str, derivative: Derivative) -> Callable[..., Any]:
    """Return a function that runs the same source as Python, element by element."""
    code = compile(derivative_source(derivative), name, "exec")

    def run(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        special = imported("scipy.special")
        known = {
            "log": np.log,
            "exp": np.exp,
            "sqrt": np.sqrt,
            "digamma": special.psi,
            "lgamma": special.gammaln,
        }
        a, x = np.broadcast_arrays(a, x)
        out = np.empty(x.shape, np.float64)
        with np.errstate(all="ignore"):
            for place in np.ndindex(x.shape):
                names: dict[str, Any] = (
                    known | _NAMES | {"a": np.float64(a[place]), "x": np.float64(x[place])}
                )
                exec(code, names)
                out[place] = names["y"]
        return out.astype(x.dtype)

    return run


def _unknown_second_derivative(*_: object) -> NoReturn:
    raise NotImplementedError(
        "igamma: the second derivative by a is not known; got one that is differentiated twice; "
        "use stop_gradient"
    )


for _name, _derivative in (
    ("igamma_grad_a", IGAMMA_GRAD_A),
    ("random_gamma_grad", RANDOM_GAMMA_GRAD),
):

    def _batch(size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params,
               name: str = _name) -> tuple[Node, bool]:  # fmt: skip
        return getattr(o, name)(*move_batch_first(size, xs, batched)), True

    opaque(
        _name,
        lowering=Lowering(f"iterations.{_name}"),
        infer=map_infer(_name, "same", "f"),
        numpy=_reference(_name, _derivative),
        jvp=(_unknown_second_derivative, _unknown_second_derivative),
        batch=_batch,
        makes_nan=True,
    )
