"""Every declared op is run once eagerly and once under `jit`, and compared with its reference.

The operands are those of the first case of each op of the table (`primitives/cases.py`), or a
program for an op that has none, because it holds programs, calls functions or exists only inside a
transformation. The tests check that the op ran, that its results match the reference, and that jit
gives the same bits as eager code. More cases, both precisions, and derivatives are in
`tests/primitives`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from primitives.cases import CASES, EXCEPTIONS, Case

import accnp
import accnp.numpy as jnp
from accnp import lax
from accnp.array_type import wrap
from accnp.experimental import checkify
from accnp.ir.node import items, record
from accnp.ir.op import OPS

X = np.float32([0.5, -1.5, 2.0, 3.0])
COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "i"), np.full(4, X.sum())),
    "pmax": (lambda x: lax.pmax(x, "i"), np.full(4, X.max())),
    "pmin": (lambda x: lax.pmin(x, "i"), np.full(4, X.min())),
    "all_gather": (lambda x: lax.all_gather(x, "i"), np.tile(X, (4, 1))),
    "reduce_scatter": (lambda x: lax.psum_scatter(x * jnp.ones(4), "i"), np.full(4, X.sum())),
    "all_to_all": (lambda x: lax.all_to_all(x * jnp.arange(4), "i", 0, 0), np.outer(range(4), X)),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0), (2, 3), (3, 2)]), X[[1, 0, 3, 2]]),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2), np.full(4, X[2])),
    "axis_index": (lambda x: x + lax.axis_index("i"), X + np.arange(4, dtype="f")),
}  # fmt: skip


def gradient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return accnp.grad(lambda x: f(x).sum())


@accnp.custom_jvp
def doubled(x: Any) -> Any:
    return x * 2


@doubled.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return doubled(*primals), tangents[0] * 3


@accnp.custom_vjp
def tripled(x: Any) -> Any:
    return x * 3


tripled.defvjp(lambda x: (x * 3, None), lambda _, ct: (ct * 5,))


@accnp.custom_batching.custom_vmap
def squared(x: Any) -> Any:
    return x * x


@squared.def_vmap
def _(size: int, batched: Any, x: Any) -> Any:
    return x * x, True


def checked(x: Any) -> Any:
    def f(x: Any) -> Any:
        checkify.check(jnp.all(x < 9), "too large")
        return x * 2

    return checkify.checkify(f)(x)[1]


def noted(x: Any) -> Any:
    accnp.debug.callback(lambda v: None, x)
    return x * 2


def printed(x: Any) -> Any:
    accnp.debug.print("{}", x)
    return x * 2


def called(call: Any) -> Callable[[Any], Any]:
    return lambda x: call(lambda v: np.asarray(v) * 2, accnp.ShapeDtypeStruct((4,), "float32"), x)


def sharded(axes: str, f: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    spec = accnp.sharding.PartitionSpec

    def run(x: Any) -> Any:
        kinds = (accnp.sharding.AxisType.Auto,)
        mesh, cut = accnp.make_mesh((4,), ("i",), axis_types=kinds), spec(*axes)
        return accnp.shard_map(f, mesh=mesh, in_specs=cut, out_specs=spec(), **options)(x)

    return run


def root(x: Any) -> Any:
    return lax.custom_root(
        lambda y: y * y - (x * x),
        x,
        lambda f, y: jnp.abs(y) - f(jnp.abs(y)),
        lambda g, y: y / g(jnp.ones_like(y)),
    )


def solved(x: Any) -> Any:
    return lax.custom_linear_solve(
        lambda y: y * 2, x, solve=lambda _, b: b / 2, transpose_solve=lambda _, b: b / 2
    )


@accnp.vmap
def chosen(x: Any) -> Any:
    """Return the results of the branches of a batch, each of which reads the rows that
    select it."""
    return lax.cond(x > 0, lambda v: v * 2, lambda v: jnp.sin(v) * 0 + v, x)


def some_moved(x: Any) -> Any:
    return accnp.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 3)]), axis_name="i")(x)


def evaluated(f: Callable[[Any], Any], x: Any) -> Any:
    """Return what the jaxpr of a function computes."""
    closed = accnp.make_jaxpr(f)(X)
    return accnp.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]


# For ops without a case: a program of X, and its result.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "literal": (lambda x: x + 1, X + 1),
    "const": (lambda x: x + jnp.asarray(X), X * 2),
    "arg": (accnp.jit(lambda x: x * 2), X * 2),
    "item": (lambda x: lax.top_k(x, 2)[0], np.float32([3, 2])),
    "mark": (gradient(lambda x: x * x), X * 2),
    "pure_callback": (called(accnp.pure_callback), X * 2),
    "io_callback": (called(accnp.experimental.io_callback), X * 2),
    "debug_callback": (noted, X * 2),
    "debug_print": (printed, X * 2),
    "check": (checked, X * 2),
    "detach": (gradient(tripled), np.full(4, 5)),
    "taken_rows": (chosen, np.where(X > 0, X * 2, X)),
    "device_put": (lambda x: accnp.device_put(x, accnp.devices()[0]) * 2, X * 2),
    "custom_vmap_call": (accnp.vmap(squared), X * X),
    "custom_jvp_call": (doubled, X * 2),
    "custom_jvp_program": (lambda x: evaluated(doubled, x), X * 2),
    "custom_vjp_call": (tripled, X * 3),
    "custom_vjp_program": (lambda x: evaluated(tripled, x), X * 3),
    "custom_vjp_tangent": (gradient(tripled), np.full(4, 5)),
    "jit": (lambda x: accnp.jit(lambda v: v * 2)(x), X * 2),
    "custom_root": (root, np.abs(X)),
    "custom_linear_solve": (solved, X / 2),
    "reduce_precision": (lambda x: lax.reduce_precision(x * 1.0009765625, 8, 7), X),
    "remat2": (gradient(accnp.checkpoint(lambda x: x * x * 0.5)), X),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda v: v * 2, lambda v: v, x), X * 2),
    "while": (lambda x: lax.while_loop(lambda v: v[2] < 9, lambda v: v * 2, x), X * 8),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x)[1], np.float32([0, 0.5, -1, 1])),
    "fft_mirror": (lambda x: jnp.fft.fft(x).imag, np.fft.fft(X).imag.astype("f")),
    "table": (some_moved, np.float32([0, 0.5, 0, 2])),
    "pvary": (sharded("", lambda x: lax.psum(lax.pvary(x, "i"), "i")), X * 4),
    "psum_invariant": (sharded("i", lambda x: lax.psum(x, "i")), [X.sum()]),
    **{name: (accnp.vmap(f, axis_name="i"), want) for name, (f, want) in COLLECTIVES.items()},
}  # fmt: skip
# Ops of meshes over several processes, which tests/processes run.
OF_PROCESSES = {name for name, why in EXCEPTIONS.items() if "several processes" in why}
OF_PROCESSES.add("all_gather_invariant")
LEAVES = {"literal", "const", "arg", "mark"}  # whose types are given


@dataclass
class Seen:
    """Count how often an op is recorded: each recording without a cached type calls the
    infer rule."""

    count: int = 0


@pytest.fixture
def seen(name: str) -> Iterator[Seen]:
    op, noted = OPS[name], Seen()
    infer = op.infer

    def counted(*avals: Any, **params: Any) -> Any:
        noted.count += 1
        return infer(*avals, **params)

    op.memo.clear()
    object.__setattr__(op, "infer", counted)
    try:
        yield noted
    finally:
        object.__setattr__(op, "infer", infer)
        op.memo.clear()


def compare(f: Callable[..., Any], arrays: list[Any], expected: Any, bound: float) -> None:
    """Run a function that returns a list of arrays, eagerly and under jit."""
    eager = [np.asarray(a) for a in f(*arrays)]
    jitted = [np.asarray(a) for a in accnp.jit(f)(*arrays)]
    for a, b, w in zip(eager, jitted, expected, strict=True):
        w = np.asarray(w)
        assert a.shape == b.shape == w.shape
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
        scale = float(np.max(np.abs(w[np.isfinite(w)]), initial=1))
        np.testing.assert_allclose(a, w, rtol=bound, atol=bound * scale)


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(name: str, seen: Seen) -> None:
    case: Case = CASES[name][0]
    op = OPS[name]

    def f(*arrays: Any) -> list[Any]:
        node = record(op, tuple([x._node for x in arrays]), dict(case.params))
        return [wrap(x) for x in (items(node) if isinstance(node.aval, tuple) else (node,))]

    with accnp.enable_x64(True):
        assert op.numpy is not None
        expected = op.numpy(*case.inputs, **case.params)
        arrays = [jnp.asarray(x) for x in case.inputs]
        compare(f, arrays, expected if isinstance(expected, tuple | list) else [expected], 1e-13)
    assert seen.count


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str, seen: Seen) -> None:
    f, expected = PROGRAMS[name]
    compare(lambda x: [f(x)], [jnp.asarray(X)], [expected], 1e-6)
    assert seen.count or name in LEAVES


def test_every_op_is_here() -> None:
    assert {*CASES, *PROGRAMS, *OF_PROCESSES} == set(OPS.whole())
    assert {*PROGRAMS, *OF_PROCESSES} == set(EXCEPTIONS)
