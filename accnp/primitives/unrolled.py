"""Programs with effects that are differentiated while values are available (outside of traces).

A call or loop op with effects would run again as a whole for its derivative. Instead, its
operations are recorded one by one, so that each effect happens once. `unrolled` replaces a call or
a loop, and `_evaluate_with_effects`, a hook that `ir/graph.py` calls, the evaluation of a graph.
Callbacks also use the helpers `row` and `stack`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.graph import Graph, evaluate, graphs_in, install_effects
from accnp.ir.node import MARK, Node, has_effect, record, run_effect, value_of
from accnp.ir.op import CALLS, ZERO, Op, as_tuple, o
from accnp.ir.trace import EffectsOf, Trace, collect_effects, sets_site, state
from accnp.primitives.kinds import broadcast_to, dtype_kind, full

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["depends_on_marks", "is_unrolled", "row", "stack", "unrolled"]


def is_unrolled(op: Op, inputs: Sequence[Node], params: Params) -> bool:
    """Return whether a call must be recorded operation by operation."""
    if state.abstract is not None or not has_effect(op, params):
        return False
    if op.recomputes or not graphs_in(params):
        return False
    traces = [x.trace for x in inputs if x.trace is not None and x.trace.active]
    return bool(traces) and not any(t.abstract for t in traces)


def depends_on_marks(xs: Iterable[Node], traces: Container[Trace] | None = None) -> bool:
    """Return whether values depend differentiably on marks of these traces (None: of any trace)."""
    seen: set[int] = set()
    stack = [x for x in xs if x.trace is not None]
    while stack:
        x = stack.pop()
        if id(x) in seen or x.trace is None or not x.trace.active:
            continue
        seen.add(id(x))
        if isinstance(x.aval, tuple) or dtype_kind(x.aval.dtype) in "fc":
            if x.op is MARK and not x.trace.walked and (traces is None or x.trace in traces):
                return True
            rules = as_tuple(x.op.jvp)
            if not isinstance(x.op.jvp, tuple):
                rules *= len(x.inputs)
            stack += [y for y, rule in zip(x.inputs, rules, strict=False) if rule is not ZERO]
    return False


def row(x: Node, i: int) -> Node:
    """Return row `i` of a node."""
    shape = x.aval.shape
    start, stop = (i, *(0,) * (len(shape) - 1)), (i + 1, *shape[1:])
    one = o.slice(x, start_indices=start, limit_indices=stop, strides=(1,) * len(shape))
    return o.squeeze(one, dimensions=(0,))


def stack(xs: Sequence[Node]) -> Node:
    """Stack nodes along a new leading axis."""
    shape = xs[0].aval.shape
    dims = tuple(range(1, len(shape) + 1))
    return o.concatenate(*[broadcast_to(x, (1, *shape), dims) for x in xs], dimension=0)


def unrolled(op: Op, inputs: Sequence[Node], params: Params) -> list[Node]:
    """Record the operations of a call or a loop instead of the op."""
    loop = {"cond": _cond, "while": _while, "scan": _scan}.get(op.control)
    if loop is None:
        return evaluate(graphs_in(params)[0], inputs)
    return loop(list(inputs), params)


@sets_site
def _evaluate_with_effects(graph: Graph, inputs: Sequence[Node]) -> list[Node]:
    """Record a program's operations; calls with effects are recorded operation by operation.

    Effects of a function with its own derivative rule are left to the rule if it is used.
    """
    env: dict[int, Any] = {id(x): new for x, new in zip(graph.inputs, inputs, strict=True)}
    owners = [getattr(n.params.get("rule"), "owner", None) for n in graph.nodes]
    effects_by_owner: dict[EffectsOf, list[Node]] = {
        owner: [] for owner in owners if owner is not None
    }
    for node, rule in zip(graph.nodes, owners, strict=True):
        state.site = node.site
        ins = [env.get(id(x), x) for x in node.inputs]
        if node.op.kind == "item" and isinstance(ins[0], list):
            env[id(node)] = ins[0][node.params["index"]]
            continue
        owner = next(
            (e for e in effects_by_owner if has_effect(node.op, node.params) and e.have(node)), None
        )
        with (
            contextlib.nullcontext() if owner is None else collect_effects(effects_by_owner[owner])
        ):
            env[id(node)] = _record_operation(node, ins)
        if rule in effects_by_owner and not depends_on_marks(ins[1:]):
            for effect in effects_by_owner.pop(rule):
                run_effect(effect)
    return [env.get(id(x), x) for x in graph.outputs]


def _record_operation(node: Node, inputs: list[Node]) -> Node | list[Node]:
    """Record an operation with other operands; return the node, or an unrolled call's results."""
    op = node.op
    if op.kind in CALLS and is_unrolled(op, inputs, node.params):
        return unrolled(op, inputs, node.params)
    return record(op, tuple(inputs), node.params)


install_effects(_evaluate_with_effects)


def _cond(xs: list[Node], params: Params) -> list[Node]:
    branches = params["branches"]
    index = min(max(int(value_of(xs[0])), 0), len(branches) - 1)
    return evaluate(branches[index], xs[1:])


def _while(xs: list[Node], params: Params) -> list[Node]:
    n, m = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    carry = xs[m:]
    while value_of(evaluate(params["cond_jaxpr"], [*xs[:n], *carry])[0]):
        carry = evaluate(params["body_jaxpr"], [*xs[n:m], *carry])
    return carry


def _scan(xs: list[Node], params: Params) -> list[Node]:
    n, m, length = params["num_consts"], params["num_carry"], params["length"]
    carry, rows = xs[n : n + m], xs[n + m :]
    step_rows: list[list[Node]] = []
    for i in reversed(range(length)) if params["reverse"] else range(length):
        outs = evaluate(params["jaxpr"], [*xs[:n], *carry, *[row(x, i) for x in rows]])
        carry = outs[:m]
        step_rows.append(outs[m:])
    if params["reverse"]:
        step_rows.reverse()
    if not step_rows:
        return [*carry, *[full((0, *a.shape), 0, a.dtype) for a in params["jaxpr"].out_avals[m:]]]
    return [*carry, *[stack(column) for column in zip(*step_rows, strict=True)]]
