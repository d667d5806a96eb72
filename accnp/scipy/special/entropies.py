"""Entropies of two numbers and Box-Cox transformations without loss of precision.

Operands and results are nodes of one real floating dtype (complex for `power_of_log`). Dtypes
narrower than float64 are computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from accnp.api.arguments.convert import cast
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy import ufunc_rules as rules
from accnp.primitives.custom import JvpRule, call_with_rule
from accnp.primitives.elementwise import like

__all__ = [
    "box_cox", "box_cox_of_more", "divergence", "entropy", "entropy_between", "in_double",
    "power_of_log",
]  # fmt: skip

DOUBLE = np.dtype(np.float64)


def in_double(value: Callable[..., Node], *xs: Node) -> Node:
    """Compute a function in float64 or complex128 and round once to the dtype of the operands."""
    first, weak = xs[0].aval.dtype, all(x.aval.weak_type for x in xs)
    wide = np.dtype(np.complex128) if first.kind == "c" else DOUBLE
    return cast(value(*[cast(x, wide, x.aval.weak_type) for x in xs]), first, weak)


def _value_at_borders(x: Node, y: Node, both: Node, value: Node) -> Node:
    zero = o.and_(o.eq(x, like(x, 0)), o.ge(y, like(y, 0)))
    edge = rules.select(zero, rules.filled(y, 0.0), rules.filled(y, np.inf))
    odd = o.or_(o.ne(x, x), o.ne(y, y))
    return rules.select(odd, rules.filled(y, np.nan), rules.select(both, value, edge))


def _replace_invalid(x: Node, y: Node) -> tuple[Node, Node, Node]:
    both = o.and_(o.gt(x, like(x, 0)), o.gt(y, like(y, 0)))
    return (
        both,
        rules.select(both, x, rules.filled(x, 1)),
        rules.select(both, y, rules.filled(y, 1)),
    )


def _log_ratio(x: Node, y: Node) -> Node:
    """Return log(x / y): from the exact difference near 1, or from two logarithms."""
    ratio = o.div(x, y)
    near = o.and_(o.gt(ratio, like(x, 0.5)), o.lt(ratio, like(x, 2)))
    off = rules.select(near, o.div(o.sub(x, y), y), rules.filled(x, 0))
    normal = o.and_(o.gt(ratio, like(x, 1e-300)), o.lt(ratio, like(x, 1e300)))
    above = rules.select(normal, ratio, x)
    below = rules.select(normal, rules.filled(x, 1), y)
    return rules.select(near, o.log1p(off), o.sub(o.log(above), o.log(below)))


def _with_derivatives(
    name: str, value: Callable[..., Node], derivatives: Callable[..., list[Node]], *xs: Node
) -> Node:
    """Make a function with explicit derivatives, since the chain rule would give nan."""

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        parts = [o.mul(t, s) for t, s in zip(ts, derivatives(*xs), strict=True) if t is not None]
        return call_with_rule(jvp_rule, xs, run), [reduce(o.add, parts)]

    def run(xs: list[Node]) -> list[Node]:
        return [value(*xs)]

    jvp_rule = JvpRule(name, rule, {"jvp": f"_{name}_jvp", "symbolic_zeros": False})
    return call_with_rule(jvp_rule, xs, run)[0]


def entropy(x: Node) -> Node:
    """-x log(x); 0 at 0, -inf below."""

    def value(x: Node) -> Node:
        zero, below = o.eq(x, like(x, 0)), o.lt(x, like(x, 0))
        product = rules.select(zero, rules.filled(x, 0), o.mul(x, o.log(x)))
        return rules.select(below, rules.filled(x, -np.inf), o.neg(product))

    def derivatives(x: Node) -> list[Node]:
        inside = o.sub(like(x, -1), o.log(x))
        return [rules.select(o.lt(x, like(x, 0)), rules.filled(x, 0), inside)]

    return _with_derivatives("entr", value, derivatives, x)


def entropy_between(x: Node, y: Node) -> Node:
    """x log(x / y); 0 where x is 0 and y >= 0, inf where either is below 0."""

    def value(x: Node, y: Node) -> Node:
        both, a, b = _replace_invalid(x, y)
        return _value_at_borders(x, y, both, o.mul(a, _log_ratio(a, b)))

    def derivatives(x: Node, y: Node) -> list[Node]:
        both, a, b = _replace_invalid(x, y)
        inside = o.add(_log_ratio(a, b), like(a, 1)), o.neg(o.div(a, b))
        return [rules.select(both, s, rules.filled(s, 0)) for s in inside]

    return _with_derivatives("rel_entr", value, derivatives, x, y)


def divergence(x: Node, y: Node) -> Node:
    """x log(x / y) - x + y."""

    def derivatives(x: Node, y: Node) -> list[Node]:
        both, a, b = _replace_invalid(x, y)
        by_y = o.sub(like(a, 1), o.div(a, b))
        near = o.and_(o.gt(a, o.mul(like(a, 0.5), b)), o.lt(a, o.mul(like(a, 2), b)))
        by_y = rules.select(near, o.div(o.sub(b, a), b), by_y)
        by_x = rules.select(both, _log_ratio(a, b), rules.filled(a, -1))
        return [by_x, rules.select(both, by_y, rules.filled(b, 1))]

    return _with_derivatives("kl_div", _divergence, derivatives, x, y)


def _divergence(x: Node, y: Node) -> Node:
    """Near x = y, use the series of t - log(1 + t) with t = y / x - 1."""
    both, a, b = _replace_invalid(x, y)
    difference = o.sub(b, a)
    near = o.lt(o.abs(difference), o.mul(like(a, 0.25), a))
    t = rules.select(near, o.div(difference, a), rules.filled(a, 0))
    # With s = t / (2 + t): t - log(1 + t) = t s - 2 (s**3 / 3 + s**5 / 5 + ...), |s| <= 1/7.
    s = o.div(t, o.add(like(t, 2), t))
    square = o.mul(s, s)
    series = rules.filled(t, 1 / 21)
    for k in range(19, 1, -2):
        series = o.add(o.mul(series, square), like(t, 1 / k))
    small = o.mul(a, o.sub(o.mul(t, s), o.mul(o.mul(like(s, 2), o.mul(s, square)), series)))
    large = o.add(o.sub(o.mul(a, _log_ratio(a, b)), a), b)
    edge = o.add(o.sub(_value_at_borders(x, y, both, rules.filled(x, 0)), x), y)
    return rules.select(both, rules.select(near, small, large), edge)


def _box_cox(log: Node, power: Callable[[], Node], by: Node) -> Node:
    """Return (exp(t) - 1) / by for t = by log; by the power itself if exp(t) would lose digits."""
    nothing = o.and_(o.eq(by, like(by, 0)), o.not_(o.is_finite(log)))  # 0 times inf is nan
    t = o.mul(by, rules.select(nothing, rules.filled(log, 0), log))
    size = o.abs(t)
    # At 0, the first terms of the series, for correct derivatives.
    small, large = o.lt(size, like(t, 1e-9)), o.gt(size, like(t, 1))
    safe = rules.select(small, rules.filled(by, 1), by)
    middle = o.expm1(rules.select(o.or_(small, large), rules.filled(t, 0.5), t))
    far = o.sub(power(), like(t, 1))
    first = o.mul(log, o.add(like(t, 1), o.mul(t, like(t, 0.5))))
    return rules.select(small, first, o.div(rules.select(large, far, middle), safe))


def power_of_log(log: Node, by: Node) -> Node:
    """Return (exp(by log) - 1) / by for complex numbers; its limit, log, at by = 0."""
    zero = o.eq(by, like(by, 0))
    safe = rules.select(zero, rules.filled(by, 1), by)
    first = o.mul(log, o.add(like(log, 1), o.mul(o.mul(by, log), like(log, 0.5))))
    return rules.select(zero, first, o.div(o.expm1(o.mul(safe, log)), safe))


def box_cox(x: Node, by: Node) -> Node:
    """(x**by - 1) / by; log(x) where by is 0."""
    log = o.log(x)
    large = o.gt(o.abs(o.mul(by, log)), like(x, 1))
    base = o.abs(rules.select(large, x, rules.filled(x, 2)))  # -0 is 0
    return _box_cox(log, lambda: o.pow(base, by), by)


def box_cox_of_more(x: Node, by: Node) -> Node:
    """((1 + x)**by - 1) / by; log(1 + x) where by is 0."""
    log = o.log1p(x)
    large = o.gt(o.abs(o.mul(by, log)), like(x, 1))
    safe = rules.select(large, x, rules.filled(x, 1))
    one = like(x, 1)
    whole = o.add(one, safe)
    back = o.sub(whole, one)
    # The rounding error of 1 + x contributes `by` times to the power. It is applied as a factor,
    # since for small x it is all that remains of x.
    lost = o.add(o.sub(one, o.sub(whole, back)), o.sub(safe, back))
    lost = rules.select(o.is_finite(whole), o.stop_gradient(lost), rules.filled(x, 0))
    positive = o.gt(whole, like(x, 0))
    share = o.div(o.mul(by, lost), rules.select(positive, whole, rules.filled(x, 1)))
    share = rules.select(o.and_(positive, o.eq(share, share)), share, rules.filled(x, 0))

    def power() -> Node:
        plain = o.pow(whole, by)
        more = o.mul(plain, o.expm1(share))
        return o.add(plain, rules.select(o.is_finite(plain), more, rules.filled(x, 0)))

    return _box_cox(log, power, by)
