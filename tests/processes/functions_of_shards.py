"""Functions of shards that close over arrays, have operands on two meshes, or return different
results.

`outcomes` returns for each case the sum of the results or the name of the error. Several processes,
one process with simulated devices and JAX must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

VALUES = np.arange(8, dtype=np.float32).reshape(4, 2)


def outcomes(m: Any, explicit: bool) -> dict[str, float | str]:
    """Return the outcome of each case on a mesh of two devices; `m` is accnp or jax."""
    kind = m.sharding.AxisType.Explicit if explicit else m.sharding.AxisType.Auto
    mesh, other = (m.make_mesh((2,), (name,), (kind,)) for name in "xy")
    P = m.P

    def put(values: np.ndarray, mesh: Any, *spec: Any) -> Any:
        return m.device_put(values, m.NamedSharding(mesh, P(*spec)))

    def over(f: Callable[..., Any], outs: Any = None) -> Callable[..., Any]:
        return m.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=outs or P("x"))

    x = put(VALUES, mesh, "x")
    named = {
        "sharded": put(2 * VALUES, mesh, "x"),
        "whole": put(3 * VALUES, mesh),
        "elsewhere": put(5 * VALUES, other, "y"),
        "whole elsewhere": put(5 * VALUES, other),
    }
    outcomes_by_label = {}
    for wrapper in (lambda f: f, m.jit):
        label = "jit: " if wrapper is m.jit else ""
        for place in ("sharded", "whole"):
            for name, f in _closures(m, over).items():
                outcomes_by_label[f"{label}{name}, {place}"] = _outcome(wrapper(f), x, named[place])
            for name, f in _gradients(m).items():
                outcomes_by_label[f"{label}gradient of {name}, {place}"] = _outcome(
                    wrapper(m.grad(lambda w, f=f: over(lambda a: f(a, w))(x).sum())), named[place]
                )
        for name, f in _gradients(m).items():
            mapped = m.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
            outcomes_by_label[f"{label}gradient of {name}, argument"] = _outcome(
                wrapper(m.grad(lambda w, mapped=mapped: mapped(x, w).sum())), named["whole"]
            )
        for place in ("elsewhere", "whole elsewhere"):
            for name, f in _two_operands(m).items():
                outcomes_by_label[f"{label}{name}, {place}"] = _outcome(wrapper(f), x, named[place])
        for name, f in _results_of_shards(m).items():
            outcomes_by_label[f"{label}{name}"] = _outcome(wrapper(over(f, P(None))), x)
    return outcomes_by_label


def _outcome(f: Callable[..., Any], *args: Any) -> float | str:
    try:
        outputs = f(*args)
        return round(
            sum(float(y.sum()) for y in (outputs if isinstance(outputs, tuple) else (outputs,))), 3
        )
    except Exception as error:
        return type(error).__name__


def _closures(m: Any, over: Callable[..., Any]) -> dict[str, Callable[[Any, Any], Any]]:
    """Yield functions of a sharded array, and of an array that functions of shards close over."""
    lax, P = m.lax, m.P

    def scan(f: Callable[[Any, Any], Any], a: Any, xs: Any, length: int | None = None) -> Any:
        return lax.scan(lambda c, row: (f(c, row), None), a, xs, length=length)[0]

    return {
        "sum": lambda x, w: over(lambda a: a * w.sum())(x),
        "sum in scan": lambda x, w: over(lambda a: scan(lambda c, _: c + w.sum(), a, None, 3))(x),
        "sum in while_loop": lambda x, w: over(
            lambda a: lax.while_loop(lambda c: c.sum() < w.sum(), lambda c: c + w.mean(), a)
        )(x),
        "mean in cond": lambda x, w: over(
            lambda a: lax.cond(a.sum() > 10, lambda c: c + w.mean(), lambda c: c * 2, a)
        )(x),
        "mean in jit": lambda x, w: over(lambda a: m.jit(lambda a: a + w.mean())(a))(x),
        "argument of jit": lambda x, w: over(lambda a: m.jit(lambda a, w: a + w.mean())(a, w))(x),
        "argument of vmap": lambda x, w: over(lambda a: a + m.vmap(lambda row: row * 2)(w).sum(0))(
            x
        ),
        "rows of scan": lambda x, w: over(lambda a: scan(lambda c, row: c + row, a, w))(x),
        "gradient": lambda x, w: m.grad(lambda w: over(lambda a: a * w.sum())(x).sum())(w),
        "doubled": lambda x, w: over(lambda a: (a, w * 2), (P("x"), P("x")))(x),
        "itself": lambda x, w: over(lambda a: (a, w), (P("x"), P()))(x),
    }


def _gradients(m: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Yield functions of a shard and of a replicated array that bodies close over."""
    lax = m.lax
    ruled = m.custom_jvp(lambda a, w: a * w.sum())
    ruled.defjvp(lambda p, t: (ruled(*p), t[0] * p[1].sum() + p[0] * t[1].sum()))
    return {
        "a product": lambda a, w: a.sum() * w,
        "checkpoint": lambda a, w: m.checkpoint(lambda a: a * w.sum())(a),
        "map": lambda a, w: lax.map(lambda row: row * w.sum(), a),
        "scan": lambda a, w: lax.scan(lambda c, _: (c * w.sum(), None), a, None, length=1)[0],
        "nested scans": lambda a, w: lax.map(
            lambda row: lax.scan(lambda c, _: (c * w.sum(), None), row, None, length=1)[0], a
        ),
        "cond": lambda a, w: lax.cond(w.sum() > 0, lambda a: a * w.sum(), lambda a: a, a),
        "vmap": lambda a, w: m.vmap(lambda row: row * w.sum())(a),
        "a function with a rule": ruled,
        "logaddexp": lambda a, w: m.numpy.logaddexp(0 * w + a.sum(), w),
    }


def _two_operands(m: Any) -> dict[str, Callable[[Any, Any], Any]]:
    jnp, lax = m.numpy, m.lax
    return {
        "add": lambda x, b: x + b,
        "matmul": lambda x, b: x @ b.T,
        "concatenate": lambda x, b: jnp.concatenate([x, b], 1),
        "where": lambda x, b: jnp.where(x > 3, b, x),
        "scan": lambda x, b: lax.scan(lambda c, r: (c + r, r.sum()), x, b.reshape(1, 4, 2)),
        "added in scan": lambda x, b: lax.scan(lambda c, _: (c + b, None), x, None, length=2)[0],
        "while_loop": lambda x, b: lax.while_loop(
            lambda c: c.sum() < 1000, lambda c: c + b, x
        ),
        "gradients": lambda x, b: m.grad(lambda x, b: (x * b).sum(), (0, 1))(x, b),
        "one after the other": lambda x, b: (x * 2, b * 2),
    }  # fmt: skip


def _results_of_shards(m: Any) -> dict[str, Callable[[Any], Any]]:
    """Yield functions of a shard whose results are declared to be replicated."""
    jnp, lax = m.numpy, m.lax

    def total(a: Any) -> Any:
        return lax.psum(a, "x")

    def loop(f: Callable[[Any], Any], a: Any) -> Any:
        return lax.fori_loop(0, 2, lambda _, c: f(c), a)

    def branch(predicate: Any, a: Any) -> Any:
        return lax.cond(predicate > 0, lambda a: a, lambda a: a * 2, a)

    return {
        "shard": lambda a: a,
        "psum": total,
        "all_gather": lambda a: lax.all_gather(a, "x", tiled=True),
        "ppermute": lambda a: lax.ppermute(a, "x", [(0, 1), (1, 0)]),
        "axis_index": lambda a: lax.axis_index("x"),
        "loop over shards": lambda a: loop(lambda c: c + 1, a),
        "loop that adds shards": lambda a: loop(lambda c: c + a, a * 0),
        "loop over sums": lambda a: loop(lambda c: c + 1, total(a)),
        "loop that sums": lambda a: loop(lambda c: c + total(a), total(a)),
        "rows of a loop": lambda a: lax.scan(lambda c, _: (c + 1, a), 0.0, None, length=2)[1],
        "while_loop over shards": lambda a: lax.while_loop(
            lambda c: c.sum() < 90, lambda c: c + 1, a
        ),
        "while_loop over sums": lambda a: lax.while_loop(
            lambda c: c.sum() < 90, lambda c: c + 1, total(a)
        ),
        "cond of shards": lambda a: branch(total(a).sum(), a),
        "cond of sums": lambda a: branch(total(a).sum(), total(a)),
        "checkpoint of shards": lambda a: m.checkpoint(lambda a: a * 2)(a),
        "checkpoint of sums": lambda a: m.checkpoint(lambda a: a * 2)(total(a)),
        "inverse of sums": lambda a: jnp.linalg.inv(total(a) + jnp.eye(2)),
        "callback of sums": lambda a: total(
            m.pure_callback(
                lambda a: np.asarray(a) * 2, m.ShapeDtypeStruct(a.shape, a.dtype), a
            )
        ),
    }  # fmt: skip
