"""Elementwise functions with derivative rules of their own.

The derivatives of the ops that they consist of would not be finite or not be accurate everywhere.
Operands and results are nodes; the operands have one dtype and are broadcast.
"""

from __future__ import annotations

import math
from typing import Any

from accnp.api.arguments.convert import cast, to_shape
from accnp.ir.node import LITERAL, Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy.ufunc_rules import (
    INF,
    constant,
    filled,
    kind,
    like,
    maximum,
    remainder,
    select,
    strong_array,
    where_,
)
from accnp.primitives.custom import JvpRule, call_with_rule

__all__ = ["i0", "logaddexp", "logaddexp2", "normal_cdf", "sinc", "tanh_cdf"]


def logaddexp(a: Node, b: Node) -> Node:
    return _logaddexp("logaddexp", a, b, o.exp, None)


def logaddexp2(a: Node, b: Node) -> Node:
    return _logaddexp("logaddexp2", a, b, o.exp2, 1 / math.log(2))


def _jaxpr_params(name: str) -> dict[str, Any]:
    """Return the parameters of a derivative rule that jaxprs show, with JAX's name for the rule."""
    return {"jvp": f"_{name.lstrip('_')}_jvp", "symbolic_zeros": False}


def _logaddexp(name: str, a: Node, b: Node, exp: Any, scale: float | None) -> Node:
    if kind(a) == "c":
        return _complex_logaddexp(a, b, scale)

    def rule(xs: list[Node], ts: list[Node | None]) -> Any:
        y = _logaddexp(name, xs[0], xs[1], exp, scale)
        top = _no_inf(y)
        parts = [
            o.mul(to_shape(t, y.aval.shape), exp(o.sub(to_shape(_no_inf(x), y.aval.shape), top)))
            for x, t in zip(xs, ts, strict=True)
            if t is not None
        ]
        return [y], [o.add(*parts) if len(parts) == 2 else parts[0]]

    def value(xs: list[Node]) -> list[Node]:
        # Jaxprs show the formula that JAX uses. If one operand is a literal that is not negative,
        # as in softplus, nothing cancels and the formula is accurate.
        if state.named or (b.op is LITERAL and b.params["value"] >= 0):
            return [_logaddexp_value(xs[0], xs[1], exp, scale)]
        out = getattr(o, name)(xs[0], xs[1])
        return [out if scale is None else strong_array(out)]

    return call_with_rule(JvpRule(name, rule, _jaxpr_params(name)), [a, b], value)[0]


def _no_inf(x: Node) -> Node:
    # The derivative by an infinite operand of an infinite sum is 1; inf - inf would give nan.
    return select(o.eq(x, like(x, INF)), filled(x, 0), x)


def _logaddexp_value(a: Node, b: Node, exp: Any, scale: float | None) -> Node:
    top, delta = o.max(a, b), o.sub(a, b)
    # If the difference is nan (equal infinities, or a nan operand), the sum is the right result.
    odd = o.ne(delta, delta)
    total = o.add(a, b)
    tail = o.log1p(exp(o.neg(o.abs(delta))))
    if scale is not None:
        tail = o.mul(constant(tail, scale), tail)
    return select(odd, total, o.add(top, tail))


def _complex_logaddexp(a: Node, b: Node, scale: float | None) -> Node:
    if scale is not None:
        inner = _complex_logaddexp(o.mul(a, like(a, 1 / scale)), o.mul(b, like(b, 1 / scale)), None)
        out = o.mul(inner, like(inner, scale))
        return strong_array(cast(out, a.aval.dtype, a.aval.weak_type and b.aval.weak_type))
    top = maximum(a, b)
    low = o.sub(o.add(a, b), o.mul(top, like(top, 2)))
    out = o.add(top, o.log1p(o.exp(low)))
    turn = like(o.imag(out), 2 * math.pi)
    angle = remainder(o.add(o.imag(out), like(turn, math.pi)), turn)
    out = o.complex(o.real(out), o.sub(angle, like(angle, math.pi)))
    return strong_array(cast(out, a.aval.dtype, a.aval.weak_type and b.aval.weak_type))


def sinc(x: Node) -> Node:
    if kind(x) == "c" or state.named:
        return _sinc_value(x)

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (x,), (t,) = xs, ts
        return [sinc(x)], [t and o.mul(t, _sinc_derivative(x))]

    jvp_rule = JvpRule("sinc", rule, _jaxpr_params("sinc"))
    return call_with_rule(jvp_rule, [x], lambda xs: [_sinc_value(xs[0])])[0]


def _sinc_derivative(x: Node) -> Node:
    """Compute (cos(pi x) - sinc(x)) / x; below 1 / pi, where this cancels, by its series."""
    near = o.lt(o.abs(x), like(x, 1 / math.pi))
    y = o.mul(like(x, math.pi), select(near, x, filled(x, 0)))
    square = o.square(y)
    series = filled(x, 0)
    for k in range(10, 0, -1):
        term = (-1) ** k * 2 * k / math.factorial(2 * k + 1)
        series = o.add(o.mul(series, square), like(x, term))
    far = select(near, filled(x, 1), x)
    derivative = o.div(o.sub(_cos_pi(far), _sinc_value(far)), far)
    return select(near, o.mul(o.mul(like(x, math.pi), y), series), derivative)


def _sinc_value(x: Node) -> Node:
    zero = o.eq(x, like(x, 0))
    y = o.mul(constant(x, math.pi), x)
    safe = where_(zero, like(y, 1), y)
    # At 0 the derivatives are those of the series, since sin(y)/y is undefined there.
    series = _sinc_series(0, y)
    # Jaxprs show the formula that JAX uses.
    wave = o.sin(safe) if state.named else o.sin_pi(x)
    return where_(zero, series, o.div(wave, safe))


def _cos_pi(x: Node) -> Node:
    """Compute cos(pi x) from the reduced argument: for large x, pi x is rounded by whole turns."""
    whole = o.round(x, rounding_method=1)
    half = o.mul(whole, like(x, 0.5))
    odd = o.ne(half, o.floor(half))
    part = o.cos(o.mul(like(x, math.pi), o.sub(x, whole)))
    return select(odd, o.neg(part), part)


def _sinc_series(k: int, x: Node) -> Node:
    """Return the k-th derivative of sin(x)/x at 0, in the shape of x."""
    value = 0.0 if k % 2 else (-1.0) ** (k // 2) / (k + 1)

    def constant(xs: list[Node]) -> list[Node]:
        return [o.add(o.mul(xs[0], like(xs[0], 0)), like(xs[0], value))]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (x,), (t,) = xs, ts
        return [_sinc_series(k, x)], [t and o.mul(_sinc_series(k + 1, x), t)]

    name = "_sinc_maclaurin"
    return call_with_rule(JvpRule(name, rule, _jaxpr_params(name)), [x], constant)[0]


def i0(x: Node) -> Node:
    def value(xs: list[Node]) -> list[Node]:
        y = o.abs(xs[0])
        return [o.mul(o.exp(y), o.bessel_i0e(y))]

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (x,), (t,) = xs, ts
        derivative = o.mul(o.exp(o.abs(x)), o.bessel_i1e(x))
        return [i0(x)], [t and o.mul(t, derivative)]

    return call_with_rule(JvpRule("_i0", rule, _jaxpr_params("_i0")), [x], value)[0]


def normal_cdf(x: Node) -> Node:
    """Return erfc(-x / sqrt(2)) / 2, the normal CDF; jaxprs show the formula that JAX uses."""
    if state.named:
        return o.mul(like(x, 0.5), o.erfc(o.mul(o.neg(x), like(x, math.sqrt(0.5)))))
    return o.normal_cdf(x)


def tanh_cdf(x: Node) -> Node:
    """Return (1 + tanh(u)) / 2 for u = sqrt(2 / pi) (x + 0.044715 x**3), with JAX's jaxpr."""
    if not state.named and kind(x) == "f":
        return o.tanh_cdf(x)
    cube, scale = o.mul(like(x, 0.044715), o.integer_pow(x, y=3)), math.sqrt(2 / math.pi)
    inner = o.tanh(o.mul(like(x, scale), o.add(x, cube)))
    return o.mul(like(x, 0.5), o.add(like(x, 1), inner))
