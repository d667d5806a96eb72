"""Random nests of control flow and transformations: a seeded generator gives a `Nest`, one program
for both libraries.

Every construct is a function of two vectors (x, w) that returns a vector: x is passed as an
operand, w is closed over, so that nests close over values of every level around them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NestFunction = Callable[[Any, Any, Any], Any]  # (library, x, w) -> vector of x's shape

SIZE = 3


class Nest:
    """A program and its source."""

    def __init__(self, seed: int, depth: int, reverse: bool) -> None:
        self.random = random.Random(seed)
        self.reverse = reverse  # whether reverse mode has to be possible
        self.fn, self.text = self.make(depth)

    def make(self, depth: int) -> tuple[NestFunction, str]:
        if depth == 0:
            return self.pick(LEAVES)(self)
        table = BOTH if self.reverse else BOTH + FORWARD
        return self.pick(table)(self, depth)

    def inner(self, depth: int, reverse: bool = False) -> tuple[NestFunction, str]:
        """Return a program one level down, usually at full depth, so that nests are as deep as
        requested.

        With `reverse`, the program supports reverse-mode differentiation.
        """
        if reverse and not self.reverse:
            self.reverse = True
            nested = self.inner(depth)
            self.reverse = False
            return nested
        down = depth - 1
        if down and self.random.random() < 0.2:
            down = self.random.randint(0, down)
        return self.make(down)

    def pick(self, xs: Any) -> Any:
        return self.random.choice(xs)

    def number(self, low: float, high: float) -> float:
        return round(self.random.uniform(low, high), 3)


# --- leaves ---


def sines(g: Nest) -> tuple[NestFunction, str]:
    k = g.number(0.5, 1.5)
    return lambda b, x, w: b.np.sin(x * k) + 0.5 * w, f"sin(x*{k})+w/2"


def products(g: Nest) -> tuple[NestFunction, str]:
    return lambda b, x, w: b.np.tanh(x * w), "tanh(x*w)"


def logistics(g: Nest) -> tuple[NestFunction, str]:
    return lambda b, x, w: b.np.exp(-x * x) + b.np.cos(w[::-1]), "exp(-x*x)+cos(w[::-1])"


def sums(g: Nest) -> tuple[NestFunction, str]:
    reverse = g.pick([False, True])
    return (
        lambda b, x, w: b.np.tanh(b.lax.cumsum(x, reverse=reverse) * w[0]),
        f"tanh(cumsum(x, {reverse})*w[0])",
    )


def products_so_far(g: Nest) -> tuple[NestFunction, str]:
    name = g.pick(["cumprod", "cummax", "cummin", "cumlogsumexp"])
    return lambda b, x, w: b.np.sin(getattr(b.lax, name)(x + w)), f"sin({name}(x+w))"


def choose_values(g: Nest) -> tuple[NestFunction, str]:
    return (
        lambda b, x, w: b.np.where(x > 0.1, b.np.sin(x), w * x),
        "where(x>0.1, sin x, w*x)",
    )


def update_items(g: Nest) -> tuple[NestFunction, str]:
    i = g.pick(range(SIZE))
    return (
        lambda b, x, w: b.np.sin(x).at[i].set(w[i]).at[(i + 1) % SIZE].add(x[i]),
        f"sin(x).at[{i}].set(w).add",
    )


def dot_products(g: Nest) -> tuple[NestFunction, str]:
    return (
        lambda b, x, w: b.np.tanh(b.np.outer(x, w) @ b.np.cos(x)),
        "tanh(outer(x,w)@cos(x))",
    )


def stop_inner_gradient(g: Nest) -> tuple[NestFunction, str]:
    return lambda b, x, w: b.lax.stop_gradient(w) * b.np.sin(x), "stop(w)*sin(x)"


def windows(g: Nest) -> tuple[NestFunction, str]:
    name = g.pick(["add", "max"])
    first = 0.0 if name == "add" else -float("inf")

    def run(b: Any, x: Any, w: Any) -> Any:
        y = b.np.sin(x + w)
        return b.lax.reduce_window(y, first, getattr(b.lax, name), (2,), (1,), "SAME") * 0.5

    return run, f"reduce_window({name})(sin(x+w))"


def fold_values(g: Nest) -> tuple[NestFunction, str]:
    def run(b: Any, x: Any, w: Any) -> Any:
        y = b.np.sin(x)
        s = b.lax.reduce(y, b.np.ones((), x.dtype), lambda p, q: p + q + p * q, (0,))
        return b.np.sin(s * w)

    return run, "sin(reduce(x)*w)"


def solve_system(g: Nest) -> tuple[NestFunction, str]:
    def run(b: Any, x: Any, w: Any) -> Any:
        scale = b.np.cos(w) + 2

        def divide(matvec: Any, y: Any) -> Any:
            return y / matvec(b.np.ones_like(y))

        return b.lax.custom_linear_solve(lambda v: scale * v, x, divide, symmetric=True)

    return run, "custom_linear_solve(x / (cos(w) + 2))"


LEAVES = [
    sines, products, logistics, sums, products_so_far, choose_values, update_items, dot_products,
    stop_inner_gradient, windows, fold_values, solve_system,
]  # fmt: skip


# --- constructs ---


def chain(g: Nest, depth: int) -> tuple[NestFunction, str]:
    (f, a), (h, c) = g.inner(depth), g.make(0)
    return lambda b, x, w: h(b, f(b, x, w), x), f"[{a}; {c}]"


def branch(g: Nest, depth: int) -> tuple[NestFunction, str]:
    (f, a), (h, c) = g.inner(depth), g.inner(depth)
    t = g.number(-0.5, 0.5)
    closed = g.pick([True, False])

    def run(b: Any, x: Any, w: Any) -> Any:
        if closed:
            return b.lax.cond(x[0] > t, lambda: f(b, x, w), lambda: h(b, w, x))
        return b.lax.cond(x.sum() > t, lambda v: f(b, v, w), lambda v: h(b, v, x), w + x)

    return run, f"cond({'closed ' if closed else ''}{t}: {a} | {c})"


def apply_switch(g: Nest, depth: int) -> tuple[NestFunction, str]:
    (f, a), (h, c) = g.inner(depth), g.make(0)

    def run(b: Any, x: Any, w: Any) -> Any:
        index = b.np.int32(b.np.floor(x[0] * 3))
        return b.lax.switch(
            index, [lambda v, u: f(b, v, u), lambda v, u: h(b, u, v), lambda v, u: v * u], x, w
        )

    return run, f"switch({a} | {c} | x*w)"


def scan(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)
    reverse, length = g.pick([True, False]), g.pick([1, 2, 3])
    unroll = g.pick([1, 1, 2, True])
    kind = g.pick(["rows", "none", "counter", "fixed"])

    def run(b: Any, x: Any, w: Any) -> Any:
        rows = b.np.stack([b.np.sin(w * (i + 1)) for i in range(length)])
        kw = {"reverse": reverse, "unroll": unroll}
        if kind == "rows":
            last, ys = b.lax.scan(lambda c, r: (f(b, c, r), b.np.cos(c) * r), x, rows, **kw)
            return last + ys.sum(0)
        if kind == "none":
            last, ys = b.lax.scan(lambda c, _: (f(b, c, w), c), x, None, length, **kw)
            return last + ys[0]
        if kind == "counter":

            def step(c: Any, r: Any) -> Any:
                i, v = c
                return (i + 1, f(b, v, r * i + w)), (i, v[0])

            (n, last), (counts, firsts) = b.lax.scan(step, (0, x), rows, **kw)
            return last * n + (firsts * counts).sum()

        def body(c: Any, r: Any) -> Any:
            v, fixed, d = c
            return (f(b, v, fixed * r), fixed, {"k": d["k"] * 0.9 + v}), (r, v * d["k"])

        (last, _, d), (again, ys) = b.lax.scan(body, (x, w, {"k": x * 0.5}), rows, **kw)
        return last + d["k"] + (again * ys).sum(0)

    return run, f"scan({kind} {length} reverse={reverse} unroll={unroll}: {a})"


def loop(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)
    low, high = g.pick([(0, 2), (1, 4), (-1, 1), (2, 2)])
    return (
        lambda b, x, w: b.lax.fori_loop(low, high, lambda i, v: f(b, v, w * i + x), x),
        f"fori({low}, {high}: {a})",
    )


def rows(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)
    size = g.pick([None, 1, 2, 3])

    def run(b: Any, x: Any, w: Any) -> Any:
        m = b.np.stack([x, w, x * w])
        return b.lax.map(lambda v: f(b, v, w), m, batch_size=size).sum(0)

    return run, f"map({size}: {a})"


def associative(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)
    reverse = g.pick([True, False])

    def run(b: Any, x: Any, w: Any) -> Any:
        p, q = b.lax.associative_scan(
            lambda s, t: (s[0] * t[0], s[1] * t[0] + t[1]), (f(b, x, w), w), reverse=reverse
        )
        return p + b.np.sin(q)

    return run, f"associative_scan({reverse}: {a})"


def apply_vmap(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)
    kind = g.pick(["both", "x", "w", "last"])

    def run(b: Any, x: Any, w: Any) -> Any:
        m, n = b.np.stack([x, w, -x]), b.np.stack([w, b.np.sin(x), w * x])
        if kind == "both":
            return b.top.vmap(lambda u, v: f(b, u, v))(m, n).sum(0)
        if kind == "x":
            return b.top.vmap(lambda u: f(b, u, w))(m).sum(0)
        if kind == "w":
            return b.top.vmap(lambda v: f(b, x, v))(n).sum(0)
        return b.top.vmap(lambda u, v: f(b, u, v), (1, None), 1)(m, w)[:, 0]

    return run, f"vmap({kind}: {a})"


def apply_jit(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)
    return lambda b, x, w: b.top.jit(lambda v: f(b, v, w))(x), f"jit({a})"


def apply_checkpoint(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth, reverse=True)
    return lambda b, x, w: b.top.checkpoint(lambda v: f(b, v, w))(x), f"checkpoint({a})"


def tangent(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)

    def run(b: Any, x: Any, w: Any) -> Any:
        y, t = b.top.jvp(lambda v: f(b, v, w), (x,), (b.np.cos(w),))
        return b.np.tanh(y + t)

    return run, f"jvp({a})"


def gradient(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth, reverse=True)
    return (
        lambda b, x, w: b.np.tanh(b.top.grad(lambda v: b.np.sin(f(b, v, w)).sum())(x)),
        f"grad({a})",
    )


def apply_vjp(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth, reverse=True)

    def run(b: Any, x: Any, w: Any) -> Any:
        y, pull = b.top.vjp(lambda u, v: f(b, u, v), x, w)
        p, q = pull(b.np.cos(y))
        return b.np.tanh(p - q)

    return run, f"vjp({a})"


def apply_jvp(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)

    def run(b: Any, x: Any, w: Any) -> Any:
        y, push = b.top.linearize(lambda v: f(b, v, w), x)
        return b.np.tanh(y + push(w) * 0.5)

    return run, f"linearize({a})"


def apply_custom_rule(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)

    def run(b: Any, x: Any, w: Any) -> Any:
        @b.top.custom_jvp
        def h(v: Any, u: Any) -> Any:
            return f(b, v, u)

        @h.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            both = b.top.jit(lambda p, t: b.top.jvp(lambda v, u: f(b, v, u), p, t))
            y, t = both(primals, tangents)
            return y, t + 0.1 * y * t

        return h(x, w)

    return run, f"custom_jvp({a})"


def repeat(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)
    n = g.pick([0, 1, 3])

    def run(b: Any, x: Any, w: Any) -> Any:
        return b.lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, f(b, c[1], w * c[0])), (0, x)
        )[1]

    return run, f"while({n}: {a})"


def until(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)

    def run(b: Any, x: Any, w: Any) -> Any:
        limit = b.np.abs(x[0]) + 1

        def body(c: Any) -> Any:
            return c[0] + 0.4 + b.np.abs(w[1]), f(b, c[1], w)

        return b.lax.while_loop(lambda c: c[0] < limit, body, (w[0], x))[1]

    return run, f"until({a})"


def loop_with_traced_bound(g: Nest, depth: int) -> tuple[NestFunction, str]:
    f, a = g.inner(depth)

    def run(b: Any, x: Any, w: Any) -> Any:
        n = b.np.int32(b.np.floor(b.np.abs(x[1]) * 3))
        return b.lax.fori_loop(0, n, lambda i, v: f(b, v, w * i), x + w)

    return run, f"fori(traced: {a})"


BOTH = [
    chain, branch, apply_switch, scan, scan, scan, loop, rows, associative, apply_vmap,
    apply_vmap, apply_jit,
    tangent, gradient, apply_vjp, apply_jvp, apply_checkpoint, apply_custom_rule,
]  # fmt: skip
FORWARD = [repeat, until, loop_with_traced_bound]
