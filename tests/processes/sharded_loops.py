"""Loops and branches on sharded arrays, for one process and for several.

The functions take rows `xs` of matrices, a matrix, and a value `c` with the shape of a row. They
are compared with the same functions of unsharded arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_RNG = np.random.default_rng(0)
OPERANDS = (
    _RNG.normal(size=(8, 4, 12)).astype(np.float32),
    (_RNG.normal(size=(12, 12)) / 6).astype(np.float32),
    _RNG.normal(size=(4, 12)).astype(np.float32),
)
Spec = tuple[str | None, ...]
# How the operands are sharded over the axis "d".
SPECS: dict[str, tuple[Spec, Spec, Spec]] = {
    "columns": ((None, None, "d"), (), (None, "d")),
    "rows": ((None, "d"), (), ("d",)),
    "whole carry": ((None, None, "d"), (None, None), ()),
    "whole rows": ((), (), ("d",)),
}
Function = Callable[[Any, Any, Any], Any]


def functions(m: Any) -> dict[str, Function]:  # noqa: C901 - a table
    """Return the functions by name; `m` is accnp or jax."""
    jnp, lax = m.numpy, m.lax

    def layers(xs: Any, w: Any, c: Any) -> Any:
        return lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c), c, xs)

    def loop(xs: Any, w: Any, c: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, c: c * 0.5 + xs[i].sum(-1, keepdims=True), c)

    def unknown_steps(xs: Any, w: Any, c: Any) -> Any:
        def going(s: Any) -> Any:
            return (s[0] < 50) & (jnp.abs(s[1]).sum() < 1e4)

        return lax.while_loop(going, lambda s: (s[0] + 1, s[1] * 1.2 + xs[0]), (0, c))

    def from_zeros(xs: Any, w: Any, c: Any) -> Any:
        """The carry is not sharded before the loop."""
        return lax.scan(lambda s, x: (s + x, s.mean()), jnp.zeros((4, 12)), xs)

    def one_after_another(xs: Any, w: Any, c: Any) -> Any:
        """A carried value becomes sharded because another carried value does."""
        zeros = jnp.zeros((4, 12))
        return lax.scan(lambda s, x: ((s[1], s[1] + x), s[0].sum()), (zeros, zeros), xs)

    def branches(xs: Any, w: Any, c: Any) -> Any:
        def second(a: Any, b: Any) -> Any:
            return a.mean(), jnp.zeros_like(b)

        return lax.cond(c.sum() > 0, lambda a, b: (a.sum(), b * 2), second, c, xs)

    def nested(xs: Any, w: Any, c: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = lax.fori_loop(0, 3, lambda i, a: a * 0.9 + x, c)
            return lax.cond(c.sum() > 0, lambda a: a, lambda a: -a, c), c.sum()

        return lax.scan(step, c, xs)

    def rates(xs: Any, w: Any, c: Any) -> Any:
        return m.jvp(lambda c: unknown_steps(xs, w, c)[1], (c,), (c * 2,))

    def random(xs: Any, w: Any, c: Any) -> Any:
        def step(key: Any, x: Any) -> Any:
            return m.random.split(key)[0], x + m.random.uniform(key, ())

        return lax.scan(step, m.random.key(0), xs)[1]

    def recomputed(xs: Any, w: Any, c: Any) -> Any:
        step = m.checkpoint(lambda c, x: (jnp.sin(c @ w) + x, None))
        return m.grad(lambda c: (lax.scan(step, c, xs)[0] ** 2).sum())(c)

    def squared(f: Function) -> Function:
        return lambda *operands: (f(*operands)[0] ** 2).sum()

    def reference(xs: Any, w: Any, c: Any) -> Any:
        box = m.new_ref(c)

        def step(i: Any, n: Any) -> Any:
            box[...] = box[...] + xs[i]
            return n + 1

        return lax.fori_loop(0, 4, step, 0), box[...]

    def choose(x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda a: a.sum(), lambda a: a.max(), x)

    return {
        "scan": layers,
        "reverse": lambda xs, w, c: lax.scan(lambda c, x: (c + x, c.max()), c, xs, reverse=True),
        "fori_loop": loop,
        "while_loop": unknown_steps,
        "from zeros": from_zeros,
        "one after another": one_after_another,
        "cond": branches,
        "switch": lambda xs, w, c: lax.switch(
            jnp.int32(jnp.abs(c.sum())) % 3, [lambda a: a * 2, lambda a: a + 1, jnp.sin], c
        ),
        "nested": nested,
        "map": lambda xs, w, c: lax.map(lambda x: (x * c).sum(0), xs, batch_size=2),
        "prefixes": lambda xs, w, c: lax.associative_scan(jnp.add, xs),
        "gradients of scan": m.grad(squared(layers), argnums=(0, 1, 2)),
        "gradient from zeros": m.grad(squared(from_zeros)),
        "gradient of cond": m.grad(squared(branches), argnums=2),
        "second derivative": m.grad(
            lambda xs, w, c: (m.grad(squared(layers), argnums=2)(xs, w, c) ** 2).sum(), argnums=2
        ),
        "tangents of while_loop": rates,
        "recomputed": recomputed,
        "random numbers": random,
        "reference": reference,
        "closed over": lambda xs, w, c: lax.scan(
            lambda s, _: (s * 0.5 + c, None), jnp.ones((4, 12)), None, length=4
        ),
        "vmap of fori_loop": lambda xs, w, c: m.vmap(
            lambda x: lax.fori_loop(0, 3, lambda i, a: a * 0.5 + x.sum(), x)
        )(xs),
        "vmap of while_loop": lambda xs, w, c: m.vmap(
            lambda x: lax.while_loop(lambda a: jnp.abs(a).sum() < 100, lambda a: a * 1.5 + 1, x)
        )(xs),
        "vmap of while_loop with bounds": lambda xs, w, c: m.vmap(
            lambda k: lax.while_loop(lambda s: s < k, lambda s: s + 1, 0.0)
        )(jnp.abs(c).sum(1)),
        "vmap of while_loop from zero": lambda xs, w, c: m.vmap(
            lambda r: lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, s[1] * 1.1), (0.0, r))
        )(c),
        "vmap of cond": lambda xs, w, c: m.vmap(choose)(xs),
    }


def results(m: Any, ranks: int, explicit: bool, gather: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the values and shardings of all results, with and without `jit`."""
    kind = m.sharding.AxisType.Explicit if explicit else m.sharding.AxisType.Auto
    mesh = m.make_mesh((ranks,), ("d",), axis_types=(kind,))
    outcomes: dict[str, Any] = {}
    for name, f in functions(m).items():
        for place, specs in SPECS.items():
            shardings = [m.NamedSharding(mesh, m.P(*spec)) for spec in specs]
            operands = [m.device_put(x, s) for x, s in zip(OPERANDS, shardings, strict=True)]
            for label, g in ((name, f), (f"jit: {name}", m.jit(f))):
                leaves = m.tree.leaves(g(*operands))
                outcomes[f"{label}, {place}"] = [
                    [_divided(x), np.asarray(gather(x)).tolist()] for x in leaves
                ]
    return outcomes


def _divided(x: Any) -> list[int]:
    """Return into how many parts each axis of an array is divided."""
    return [n // k for n, k in zip(x.shape, x.sharding.shard_shape(x.shape), strict=True)]
