"""Mapped functions of sharded arrays, for one process and for several.

`x` is sharded along its first axis, of which each of `ranks` devices has a part; `in_axes` is the
axis that `vmap` maps. The specs are those of JAX 0.10.2 on a mesh of type Explicit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

VALUES = np.arange(24, dtype=np.float32).reshape(8, 3) / 10


def operand(m: Any, ranks: int) -> tuple[Any, Any]:
    """Return the mesh and the array, sharded along its first axis."""
    mesh = m.make_mesh((ranks,), ("d",))
    return mesh, m.device_put(VALUES, m.NamedSharding(mesh, m.P("d")))


def _summed(m: Any, mesh: Any) -> Callable[[Any], Any]:
    if mesh is None:  # the sum over the processes of an array that is in one of them
        return lambda r: r.reshape(2, 4).sum(0)
    return m.shard_map(lambda a: m.lax.psum(a, "d"), mesh=mesh, in_specs=m.P("d"), out_specs=m.P())


def _choice(m: Any, mesh: Any) -> Callable[[Any], Any]:
    """Select between two functions for each example."""
    return lambda r: m.lax.cond(r.sum() > 9, lambda a: a * 2, lambda a: a - 1, r)


def _kept(m: Any, mesh: Any) -> Callable[[Any], Any]:
    """Request the sharding that the value already has."""
    if mesh is None:
        return lambda r: r * 2
    return lambda r: m.lax.with_sharding_constraint(r * 2, m.NamedSharding(mesh, m.P("d")))


def _each_gradient(m: Any, mesh: Any) -> Callable[[Any, Any], Any]:
    """Differentiate with respect to an array that the examples share."""
    return lambda a, r: m.grad(lambda a: (m.numpy.tanh(a) * r[:, None]).sum())(a)


def _share(m: Any, mesh: Any) -> Callable[[Any], Any]:
    """Use a collective along an axis that another `vmap` maps."""
    return lambda r: m.vmap(lambda e: e / m.lax.psum(e, "i"), axis_name="i")(r + 1)


def _twice(m: Any, mesh: Any) -> Callable[[Any], Any]:
    """Call a jitted function within a mapped one, and again with the mapped function's result."""
    f = m.jit(lambda r: m.numpy.tanh(r) * 2)
    return lambda r: f(f(r))


Function = Callable[[Any, Any], Callable[..., Any]]
# The axes that are mapped, the spec of the result (for two processes), and the function.
MAPPED: dict[str, tuple[Any, str, Function]] = {
    "map of rows": (0, "P('d', None)", lambda m, _: m.numpy.sin),
    "map of columns": (1, "P(None, 'd')", lambda m, _: m.numpy.sin),
    "sum of rows": (0, "P('d',)", lambda m, _: lambda r: r.sum()),
    "sum of columns": (1, "P(None,)", lambda m, _: lambda r: r.sum()),
    "softmax of columns": (1, "P(None, 'd')", lambda m, _: m.nn.softmax),
    "jit of columns": (1, "P(None, 'd')", _twice),
    "gradient of columns": (1, "P(None, 'd')", lambda m, _: m.grad(lambda r: (r**3).sum())),
    "relu of columns": (1, "P(None, 'd')", lambda m, _: m.nn.relu),
    "nested": (1, "P(None, 'd')", lambda m, _: lambda r: m.vmap(m.numpy.cos)(r)),
    "two arrays": ((1, 1), "P(None, 'd')", lambda m, _: lambda a, b: a * b),
    "one of two": ((1, None), "P(None, 'd')", lambda m, _: lambda a, b: a + b.sum()),
    "where": (1, "P(None, 'd')", lambda m, _: lambda r: m.numpy.where(r > 1, r, 0)),
    "shard_map": (1, "P(None, None)", _summed),
    "cond": (1, "P(None, 'd')", _choice),
    "constraint": (1, "P(None, 'd')", _kept),
    "gradient for each": ((None, 1), "P(None, 'd', None)", _each_gradient),
    "collective": (1, "P(None, 'd')", _share),
    "checkpoint": (1, "P(None, 'd')", lambda m, _: m.checkpoint(lambda r: m.numpy.sin(r) * r)),
}  # fmt: skip


def results(m: Any, ranks: int, gather: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the spec and the values of each result, with and without `jit`."""
    mesh, x = operand(m, ranks)
    specs_and_values = {}
    for name, (axes, _, make) in MAPPED.items():
        mapped = m.vmap(make(m, mesh), axes)
        operands = (x,) * (len(axes) if isinstance(axes, tuple) else 1)
        for label, f in ((name, mapped), (f"jit: {name}", m.jit(mapped))):
            y = f(*operands)
            specs_and_values[label] = str(y.sharding.spec), np.asarray(gather(y)).tolist()
    return specs_and_values
