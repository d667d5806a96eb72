"""Operations with several results, callbacks and functions without a sharding rule, on sharded
arrays.

On a mesh of type Auto, operands are gathered if an operation needs the whole array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

VALUES = np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32)
SPECS: dict[str, tuple[str | None, ...]] = {"rows": ("d",), "columns": (None, "d"), "whole": ()}


def functions(m: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the functions of a matrix by name; `m` is accnp or jax."""
    jnp, lax, linalg = m.numpy, m.lax, m.numpy.linalg

    def called(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[Any], Any]:
        types = tuple([m.ShapeDtypeStruct(shape, np.float32) for shape in shapes])
        return lambda a: m.pure_callback(f, types, a)

    def square(a: Any) -> Any:
        return a @ a.T + 8 * jnp.eye(8)

    def noted(a: Any) -> Any:
        m.debug.callback(lambda total: NOTED.append(float(total)), a.sum())
        return a * 1

    def gradient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return m.grad(lambda a: (f(a) ** 2).sum())

    row = m.ShapeDtypeStruct((12,), np.float32)
    return {
        "argsort": lambda a: jnp.argsort(a, 1),
        "top_k": lambda a: lax.top_k(a, 3),
        "sort_key_val": lambda a: lax.sort((a, -a), dimension=0, num_keys=1),
        "median": lambda a: jnp.median(a, 1),
        "svd": lambda a: linalg.svd(a, full_matrices=False)[1],
        "lu": lambda a: lax.linalg.lu(square(a))[0],
        "slogdet": lambda a: linalg.slogdet(square(a)),
        "frexp": jnp.frexp,
        "unique": lambda a: jnp.unique(jnp.round(a), size=5),
        "histogram": lambda a: jnp.histogram(a, bins=4),
        "gradient of sort": gradient(lambda a: jnp.sort(a, 1)[:, :3]),
        "gradient of top_k": gradient(lambda a: lax.top_k(a, 3)[0]),
        "gradient of cholesky": gradient(lambda a: linalg.cholesky(square(a))),
        "gradient of inv": gradient(lambda a: linalg.inv(square(a))),
        "gradient of eigh": gradient(lambda a: linalg.eigh(square(a))[0]),
        "gradient of a jitted constant": gradient(m.jit(lambda a: a * jnp.ones((8, 12)))),
        "gamma": lambda a: m.random.gamma(m.random.key(0), jnp.abs(a) + 0.5),
        "vmap of top_k": lambda a: m.vmap(lambda r: lax.top_k(r, 2))(a),
        "pure_callback": called(lambda a: (np.asarray(a) * 2, np.asarray(a).sum()), (8, 12), ()),
        "callback in scan": lambda a: lax.scan(
            lambda c, i: (c + m.pure_callback(np.sin, row, a[0] + i), None),
            jnp.zeros(12),
            jnp.arange(3.0),
        )[0],
        "debug.callback": noted,
    }  # fmt: skip


NOTED: list[float] = []  # by the callback


def results(m: Any, ranks: int, gather: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the values of all results, with and without `jit`."""
    mesh = m.make_mesh((ranks,), ("d",), axis_types=(m.sharding.AxisType.Auto,))
    values_by_label: dict[str, Any] = {}
    for name, f in functions(m).items():
        for place, spec in SPECS.items():
            a = m.device_put(VALUES, m.NamedSharding(mesh, m.P(*spec)))
            for label, g in ((name, f), (f"jit: {name}", m.jit(f))):
                leaves = m.tree.leaves(g(a))
                values_by_label[f"{label}, {place}"] = [
                    np.asarray(gather(x)).tolist() for x in leaves
                ]
    m.effects_barrier()
    values_by_label["noted"] = NOTED
    return values_by_label
