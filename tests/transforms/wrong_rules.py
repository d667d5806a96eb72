"""Functions of (x, y) for either library. Their derivative rules are wrong on purpose, so that
tests see which rule was used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def forward_rule(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    @f.defjvp
    def rule(p: Any, t: Any) -> Any:
        return f(*p), 3 * n.cos(p[0]) * t[0] + p[0] * p[1] * t[1]

    return f


def forward_rules_each(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    f.defjvps(None, lambda t, out, x, y: 5 * t * out + x)
    g = m.custom_jvp(lambda x, y: n.exp(x) * y)
    g.defjvps(lambda t, out, x, y: t * out, lambda t, out, x, y: 2 * t * n.exp(x))
    return lambda x, y: g(n.sin(x), y) * x


def forward_symbolic(m: Any, n: Any) -> Callable[..., Any]:
    kind = m.custom_derivatives.SymbolicZero

    @m.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    def rule(p: Any, t: Any) -> Any:
        zeros = [isinstance(v, kind) for v in t]
        out = 0.0 * p[0]
        if not zeros[0]:
            out = out + (7 if zeros[1] else 3) * t[0]
        if not zeros[1]:
            out = out + p[0] * t[1]
        return f(*p), out

    f.defjvp(rule, symbolic_zeros=True)
    return f


def forward_fixed(m: Any, n: Any) -> Callable[..., Any]:
    @functools.partial(m.custom_jvp, nondiff_argnums=(0, 3))
    def apply(fn: Any, x: Any, y: Any, scale: Any = 2.0) -> Any:
        return fn(x) * y * scale

    @apply.defjvp
    def rule(fn: Any, scale: Any, p: Any, t: Any) -> Any:
        return apply(fn, *p, scale), fn(p[0]) * t[0] * scale + t[1]

    named = m.custom_jvp(lambda x, kind, y: x * y + len(kind), nondiff_argnames=("kind",))
    named.defjvp(lambda kind, p, t: (named(p[0], kind, p[1]), len(kind) * t[0] + 2 * t[1]))
    return lambda x, y: apply(n.sin, x, y=y) + named(x, kind="abc", y=y)


def forward_trees(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_jvp
    def f(p: Any, k: Any) -> Any:
        return {"a": p["x"] * p["y"][0], "n": k + 1}, n.cos(p["x"])

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        t, tk = tangents
        out = f(*primals)
        assert tk.dtype == m.dtypes.float0
        return out, ({"a": t["x"] * 2 + t["y"][0], "n": tk}, 3 * t["x"])

    def g(x: Any, y: Any) -> Any:
        out, c = f({"x": x, "y": [y]}, 3)
        return out["a"] * c * out["n"]

    return g


def reverse_rule(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y

    def fwd(x: Any, y: Any) -> Any:
        return f(x, y), (n.cos(x), n.sin(x), y)

    f.defvjp(fwd, lambda res, ct: (res[0] * ct * res[2] * 3, res[1] * ct * 10))
    return f


def reverse_symbolic(m: Any, n: Any) -> Callable[..., Any]:
    zero = m.custom_derivatives.SymbolicZero

    @m.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return n.sin(x) * y, n.cos(y)

    def fwd(x: Any, y: Any) -> Any:
        return f(x.value, y.value), (x.value, y.value if y.perturbed else None)

    def bwd(res: Any, cts: Any) -> Any:
        x, y = res
        known = isinstance(cts[1], zero)
        ct = cts[0] * (2 if known else 3)
        return ct * x, None if y is None else ct * y

    f.defvjp(fwd, bwd, symbolic_zeros=True)

    def g(x: Any, y: Any) -> Any:
        a, _ = f(x, y)
        b, c = f(x, 2.0 * n.ones_like(y))
        return a + b * c * y

    return g


def reverse_fixed(m: Any, n: Any) -> Callable[..., Any]:
    @functools.partial(m.custom_vjp, nondiff_argnums=(0,), nondiff_argnames=("kind",))
    def apply(fn: Any, x: Any, y: Any, kind: str) -> Any:
        return fn(x) * y

    def fwd(fn: Any, x: Any, y: Any, kind: str) -> Any:
        return apply(fn, x, y, kind), {"x": x, "y": y, "note": 2.0}

    def bwd(fn: Any, kind: str, res: Any, ct: Any) -> Any:
        return fn(res["y"]) * ct * len(kind), res["x"] * ct * res["note"]

    apply.defvjp(fwd, bwd)
    return lambda x, y: apply(n.tanh, x, y, kind="abc")


def reverse_trees(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_vjp
    def f(p: Any, k: Any) -> Any:
        return {"out": p["a"] * p["b"][0] * k, "count": k + 1}

    def fwd(p: Any, k: Any) -> Any:
        return f(p, k), p

    def bwd(res: Any, ct: Any) -> Any:
        assert ct["count"].dtype == m.dtypes.float0
        return [{"a": ct["out"] * res["b"][0] * 4, "b": [None]}, None]

    f.defvjp(fwd, bwd)
    return lambda x, y: f({"a": x, "b": [y]}, 3)["out"] * y


def gradient(m: Any, n: Any) -> Callable[..., Any]:
    @m.custom_gradient
    def f(x: Any, y: Any) -> Any:
        s = n.sin(x)
        return {"a": s * y, "k": 3}, lambda ct: (ct["a"] * s, ct["a"] * y * 2)

    single = m.custom_gradient(lambda x: (x**2, lambda ct: ct * n.cos(x)))
    return lambda x, y: f(x, y)["a"] + single(x) * y


def converted(m: Any, n: Any) -> Callable[..., Any]:
    """Implicit differentiation of a fixed point of a closure."""

    @functools.partial(m.custom_vjp, nondiff_argnums=(0,))
    def fixed(fn: Any, start: Any, *extra: Any) -> Any:
        z = start
        for _ in range(30):
            z = fn(z, *extra)
        return z

    def fwd(fn: Any, start: Any, *extra: Any) -> Any:
        z = fixed(fn, start, *extra)
        return z, (z, extra)

    def bwd(fn: Any, res: Any, ct: Any) -> Any:
        z, extra = res
        _, pull = m.vjp(lambda z, *e: fn(z, *e), z, *extra)
        w = ct
        for _ in range(30):
            w = ct + pull(w)[0]
        return (n.zeros_like(z), *pull(w)[1:])

    fixed.defvjp(fwd, bwd)

    def g(x: Any, y: Any) -> Any:
        step, extra = m.closure_convert(lambda z: 0.5 * n.cos(z * x) + 0.1 * y, n.zeros_like(x))
        return fixed(step, n.zeros_like(x), *extra)

    return g


def rule_in_rule(m: Any, n: Any) -> Callable[..., Any]:
    inner = reverse_rule(m, n)
    outer = m.custom_jvp(lambda x, y: inner(x, y) * x)
    outer.defjvp(lambda p, t: (outer(*p), t[0] * p[1] * 2 + n.sin(p[0]) * t[1]))
    return lambda x, y: outer(inner(x, y), y)


# --- made where they are used: they close over `s` ---


def forward_closed(m: Any, n: Any, s: Any) -> Callable[..., Any]:
    f = m.custom_jvp(lambda y: y * s)
    f.defjvp(lambda p, t: (f(*p), t[0] * s * n.cos(p[0])))
    return f


def forward_closed_unused(m: Any, n: Any, s: Any) -> Callable[..., Any]:
    """The rule closes over a value that is not used otherwise."""
    k = n.sin(s)
    f = m.custom_jvp(lambda y: y * s)
    f.defjvp(lambda p, t: (f(*p), t[0] * k))
    return f


def reverse_closed(m: Any, n: Any, s: Any) -> Callable[..., Any]:
    f = m.custom_vjp(lambda y: y * s)
    f.defvjp(
        lambda y: (f(y), (y, s)), lambda residuals, ct: (ct * residuals[1] * n.cos(residuals[0]),)
    )
    return f


def reverse_closed_behind(m: Any, n: Any, s: Any) -> Callable[..., Any]:
    """The backward pass closes over the value, which JAX rejects outside of vmap."""
    f = m.custom_vjp(lambda y: y * s)
    f.defvjp(lambda y: (f(y), y), lambda y, ct: (ct * s * n.cos(y),))
    return f
