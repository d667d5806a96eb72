"""The call op `jit`: a program inside a program.

Passes of the compiler inline it. Transformations replace it by calls of transformed programs, which
`tools` (`transforms/tools.py`) computes and caches on the graph, so that a function that is called
several times is transformed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, interpret
from accnp.ir.node import Node
from accnp.ir.op import Linear, Op, register
from accnp.primitives.control import call, place_flagged, reorder, select_flagged, with_outputs

if TYPE_CHECKING:
    from collections.abc import Hashable

    import numpy as np

    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import Tools

__all__ = ["transpose_call"]


def _infer(*_: Aval, jaxpr: Graph, **__: object) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _numpy(*arrays: np.ndarray, jaxpr: Graph, **_: object) -> list[Any]:
    return interpret(jaxpr, arrays)


def _record_call(graph: Graph, xs: Sequence[Node], params: Params) -> list[Node]:
    return call("jit", xs, {**params, "jaxpr": graph})


def _jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    nonzero = tuple(t is not None for t in ts)
    graph, outs = tools.jvp_graph(params["jaxpr"], nonzero)
    results = _record_call(graph, [*xs, *select_flagged(nonzero, ts)], params)
    n = len(outs)
    return results[:n], place_flagged(outs, results[n:])


def _linearize(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    nonzero = tuple(t is not None for t in ts)
    graph = params["jaxpr"]
    primal, linear, _, outs = tools.linearize_graph(graph, nonzero)
    n = len(outs)
    # A residual may be an operand or a result of the call, which need not be returned again.
    where = {id(x): i for i, x in enumerate((*primal.inputs, *primal.outputs[:n]))}
    needed = [where.get(id(x)) for x in primal.outputs[n:]]
    key: tuple[Hashable, ...] = ("jit primal", nonzero)
    if key not in graph.extra:
        rest = [x for x, at in zip(primal.outputs[n:], needed, strict=True) if at is None]
        graph.extra[key] = with_outputs(primal, [*primal.outputs[:n], *rest])
    results = _record_call(graph.extra[key], xs, params)
    known, rest = [*xs, *results[:n]], iter(results[n:])
    residuals = [next(rest) if at is None else known[at] for at in needed]
    tangents = _record_call(linear, [*residuals, *select_flagged(nonzero, ts)], params)
    return results[:n], place_flagged(outs, tangents)


def transpose_call(
    cts: Sequence[Node | None], xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    """Call the transpose of a program that is linear in some operands; return their cotangents."""
    linear = tuple(isinstance(x, Linear) for x in xs)
    live = tuple(ct is not None for ct in cts)
    fixed = [not f for f in linear]
    graph = params["jaxpr"]
    live_cts = select_flagged(live, cts)
    avals = tuple([ct.aval for ct in live_cts])
    key: tuple[Hashable, ...] = ("jit transpose", linear, live, avals)
    if key not in graph.extra:
        order = [*select_flagged(fixed, range(len(xs))), *select_flagged(linear, range(len(xs)))]
        reordered = reorder(graph, order)
        reordered = with_outputs(reordered, select_flagged(live, reordered.outputs))
        graph.extra[key] = tools.transpose_graph(reordered, sum(fixed), avals)
    results = _record_call(graph.extra[key], [*select_flagged(fixed, xs), *live_cts], params)
    return place_flagged(linear, results)


def _batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    graph, outs = tools.batch_graph(
        params["jaxpr"], size, tuple(bool(b) for b in batched), operand_avals=[x.aval for x in xs]
    )
    return _record_call(graph, xs, params), list(outs)


JIT = register(
    Op(
        "jit",
        "call",
        _infer,
        numpy=_numpy,
        jvp=_jvp,
        linearize=_linearize,
        transpose=transpose_call,
        batch=_batch,
        inline=True,
        closes_over=True,
        program_constants={"jaxpr": (0, "")},
    )
)
