"""Second derivatives of functions of shards, for one process and for several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_generator = np.random.default_rng(0)
W = _generator.normal(size=3).astype(np.float32)
X = _generator.normal(size=(4, 3)).astype(np.float32)


def loss(w: Any, x: Any) -> Any:
    """Return the sum of which each function of shards computes a part."""
    return ((x @ w) ** 3).sum()


def losses(m: Any, mesh: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Return the loss as functions of the shards of its second argument."""

    def scanned(w: Any, x: Any) -> Any:
        first = m.lax.pvary(m.numpy.zeros((), m.numpy.float32), ("d",))
        total, _ = m.lax.scan(lambda c, row: (c + (row @ w) ** 3, None), first, x)
        return m.lax.psum(total, "d")

    parts = {"sum": lambda w, x: m.lax.psum(loss(w, x), "d"), "scan": scanned}
    specs = (m.P(), m.P("d"))
    return {
        name: m.shard_map(f, mesh=mesh, in_specs=specs, out_specs=m.P())
        for name, f in parts.items()
    }


def derivatives(m: Any) -> dict[str, Callable[[Any], Any]]:
    """Return transformations of a function of two arguments."""
    return {
        "hessian": m.hessian,
        "jit of hessian": lambda f: m.jit(m.hessian(f)),
        "hessian of jit": lambda f: m.hessian(m.jit(f)),
        "jacrev of jacrev": lambda f: m.jacrev(m.jacrev(f)),
        "jacrev of jacfwd": lambda f: m.jacrev(m.jacfwd(f)),
        "jacfwd of jacfwd": lambda f: m.jacfwd(m.jacfwd(f)),
        "shards": lambda f: m.hessian(f, argnums=1),
        "mixed": lambda f: m.jacfwd(m.grad(f), argnums=1),
        "mixed, reversed": lambda f: m.jacrev(m.grad(f, argnums=1)),
        "grad of grad": lambda f: m.grad(lambda w, x: (m.grad(f)(w, x) ** 2).sum()),
        "jvp of grad": lambda f: lambda w, x: m.jvp(lambda v: m.grad(f)(v, x), (w,), (w,))[1],
    }
