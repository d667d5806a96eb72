"""The op `custom_vmap_call`: a program with a user-defined batching rule.

The parameters are the program `call` and a `BatchRule`. Only batching uses the rule; the compiler
inlines the program. Its forward-mode derivative is another such call, whose rule is the derivative
of the rule; it has no reverse-mode derivative. `api/mapping/custom_vmap.py` contains the public
class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import Graph, build, evaluate, graphs_in, interpret
from accnp.ir.node import Node
from accnp.ir.op import CALLS, Op, o, register
from accnp.primitives.control import call, select_flagged

if TYPE_CHECKING:
    import numpy as np

    from accnp.ir.op_types import Params
    from accnp.primitives.rule_types import Tools

__all__ = ["BatchRule", "has_batching_rule"]

Nodes = list[Node]


def has_batching_rule(nodes: Sequence[Node]) -> bool:
    """Return whether nodes, or the programs they contain, have a function with a batching rule."""
    for node in nodes:
        if node.op is CALL:
            return True
        if node.op.kind in CALLS and any(map(_holds_batching_rule, graphs_in(node.params))):
            return True
    return False


def _holds_batching_rule(graph: Graph) -> bool:
    has_rule = graph.extra.get("batching rule")
    if has_rule is None:
        has_rule = graph.extra["batching rule"] = has_batching_rule(graph.nodes)
    return has_rule


class BatchRule:
    """A batching rule on nodes: (size, operands, flags) -> (results, flags)."""

    __slots__ = ("apply", "shown")

    def __init__(
        self,
        shown: object,
        apply: Callable[[int, Sequence[Node], Sequence[bool]], tuple[Nodes, list[bool]]],
    ) -> None:
        self.shown = shown  # the user's function, for printing
        self.apply = apply

    def __repr__(self) -> str:
        return repr(self.shown)


def _infer(*_: Aval, call: Graph, **__: object) -> tuple[Aval, ...]:
    return call.out_avals


def _run(*arrays: np.ndarray, call: Graph, **_: object) -> list[Any]:
    return interpret(call, arrays)


def _batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    rule = params["rule"]
    outs, flags = rule.apply(size, xs, [bool(b) for b in batched])
    for i, (x, f) in enumerate(zip(outs, flags, strict=True)):
        if f and x.aval.shape[:1] != (size,):
            raise ValueError(
                f"custom_vmap: the leading axis of a batched result must have length {size}; got "
                f"shape {x.aval.shape} (result {i} of {getattr(rule.shown, '__name__', rule)}); "
                "move the mapped axis to the front, or return False for this result"
            )
    return outs, flags


def _jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    if tools.reverse:
        raise ValueError(_REVERSE)
    nonzero = tuple(t is not None for t in ts)
    graph = params["call"]
    n_in, n_out = len(xs), len(graph.outputs)
    every = (True,) * n_out
    pushed = tools.jvp_graph(graph, nonzero, every)[0]

    def apply(
        size: int, operands: Sequence[Node], flags: Sequence[bool]
    ) -> tuple[Nodes, list[bool]]:
        """As in JAX, the rule treats an operand as mapped if it and its tangent are mapped. If only
        one of the two is mapped, the derivative of the rule for one example is batched."""
        of = dict(
            zip(select_flagged(nonzero, range(n_in)), range(n_in, len(operands)), strict=True)
        )
        joint = [flags[i] and i in of and flags[of[i]] for i in range(n_in)]
        alone = [
            flags[k] and not joint[i]
            for i, k in [*zip(range(n_in), range(n_in), strict=True), *of.items()]
        ]
        outs: list[bool] = []

        def rule(nodes: Nodes) -> Nodes:
            results, outs[:] = params["rule"].apply(size, nodes, joint)
            return results

        avals = [_of_example(x.aval) if f else x.aval for x, f in zip(operands, alone, strict=True)]
        whole = build(rule, avals[:n_in], graph.name)
        derived = tools.jvp_graph(whole, nonzero, every)[0]
        if not any(alone):
            return evaluate(derived, operands), [*outs, *outs]
        wide, mapped = tools.batch_graph(derived, size, tuple(alone))
        # A rule may report all results as batched, even if no operand of this call is.
        real = [
            f and x.aval.ndim > one.aval.ndim
            for f, x, one in zip(outs, whole.outputs, graph.outputs, strict=True)
        ]
        # Results that are mapped in both ways have the new axis in front of the rule's axis.
        results = [
            _diagonal(x) if m and f else x
            for x, m, f in zip(evaluate(wide, operands), mapped, [*real, *real], strict=True)
        ]
        return results, [m or f for m, f in zip(mapped, [*outs, *outs], strict=True)]

    rule = BatchRule(params["rule"].shown, apply)
    outputs = call(
        "custom_vmap_call",
        [*xs, *select_flagged(nonzero, ts)],
        {**params, "call": pushed, "rule": rule},
    )
    return outputs[:n_out], outputs[n_out:]


def _of_example(aval: Aval) -> Aval:
    return make_aval(aval.shape[1:], aval.dtype, aval.weak_type)


def _diagonal(x: Node) -> Node:
    """Return x[i, i] for each i; the first two axes must have the same length."""
    n, rest = x.aval.shape[0], x.aval.shape[2:]
    flat = o.reshape(x, new_sizes=(n * n, *rest), dimensions=None)
    return o.slice(
        flat,
        start_indices=(0,) * (1 + len(rest)),
        limit_indices=(n * n, *rest),
        strides=(n + 1,) + (1,) * len(rest),
    )


def _linearize(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    raise ValueError(_REVERSE)


_REVERSE = (
    "custom_vmap: Linearization failed to produce known values for all output primals: functions "
    "with a batching rule have no reverse-mode derivative; use jvp or jacfwd, or give the function "
    "a derivative rule, with custom_vjp around custom_vmap"
)

CALL = register(
    Op(
        "custom_vmap_call",
        "call",
        _infer,
        numpy=_run,
        jvp=_jvp,
        linearize=_linearize,
        batch=_batch,
    )
)
