"""Programs without their callbacks, with a result that says whether they would have called Python.

`with_trap` returns the graph with one more result, the trap. Callbacks must be in branches: a
branch that calls Python is replaced by another one, and the trap is whether it would have been
chosen. Native loops (`engine/native.py`) use such programs as bodies and let the host run the
iterations that trap (`engine/bailout.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accnp.ir.aval import make_aval
from accnp.ir.graph import Graph, build, evaluate, graphs_in, inline_calls, rewrite
from accnp.ir.node import Node, calls_python, items, record
from accnp.ir.op import OPS, o
from accnp.primitives.kinds import full, zeros_like_aval

__all__ = ["with_trap"]

_BOOL = np.dtype(bool)


class _Unconditional(Exception):
    """A program calls Python for all operands."""


def with_trap(graph: Graph) -> Graph | None:
    """Return the program without its callbacks and with the trap as an additional last result.

    If the trap is true, the other results are meaningless. Return None if the program calls Python
    in any case.
    """
    try:
        return _add_trap(inline_calls(graph))
    except _Unconditional:
        return None


def _add_trap(graph: Graph) -> Graph:
    traps: list[Node] = []

    def rule(node: Node, operands: list[Node]) -> list[Node] | None:
        if _may_call_python(node):
            *results, trap = _record_without_calls(node, operands)
            traps[:] = [o.or_(*traps, trap) if traps else trap]
            return results
        return (
            _record_unless_trapped(traps[0], node, operands)
            if traps and _may_not_terminate(node)
            else None
        )

    def run(inputs: list[Node]) -> list[Node]:
        results = rewrite(graph, inputs, rule)
        return [*results, *(traps or [full((), False, _BOOL)])]

    return build(run, graph.in_avals, graph.name)


def _may_call_python(node: Node) -> bool:
    return node.op.kind == "callback" or calls_python(node.params)


def _may_not_terminate(node: Node) -> bool:
    """Return whether an operation has a loop whose number of steps depends on values."""
    inner = [x for g in graphs_in(node.params) for x in g.nodes]
    return node.op.control == "while" or any(map(_may_not_terminate, inner))


def _results_of(node: Node) -> list[Node]:
    return list(items(node)) if isinstance(node.aval, tuple) else [node]


def _record_unless_trapped(trap: Node, node: Node, operands: Sequence[Node]) -> list[Node]:
    """Record an operation that is skipped after a trap, since its loops may not terminate for
    operands that a check should have rejected."""

    def whole(nodes: list[Node]) -> list[Node]:
        return _results_of(record(node.op, tuple(nodes), node.params))

    graph = build(whole, [x.aval for x in operands], node.op.name)
    return _skip_after_trap(trap, graph, operands, [zeros_like_aval(a) for a in graph.out_avals])


def _skip_after_trap(
    trap: Node, graph: Graph, operands: Sequence[Node], instead: Sequence[Node]
) -> list[Node]:
    """Record a program that runs only if there was no trap; otherwise `instead` are its results."""
    avals = [*graph.in_avals, *[x.aval for x in instead]]
    n = len(operands)
    branches = (
        build(lambda nodes: evaluate(graph, nodes[:n]), avals, graph.name),
        build(lambda nodes: nodes[n:], avals, graph.name),
    )
    return _results_of(record(OPS["cond"], (trap, *operands, *instead), {"branches": branches}))


def _record_without_calls(node: Node, ins: Sequence[Node]) -> list[Node]:
    """Record an operation without its callbacks; return its results and the trap."""
    control, params = node.op.control, node.params
    if control == "cond":
        return _record_cond_without_calls(node, ins)
    if control == "scan":
        body = _add_trap(inline_calls(params["jaxpr"]))
        first, n_carry = params["num_consts"], params["num_carry"]
        new = {**params, "jaxpr": _carry_trap(body, first, n_carry), "num_carry": n_carry + 1}
        false = full((), False, _BOOL)
        at = first + n_carry
        outs = _results_of(record(node.op, (*ins[:at], false, *ins[at:]), new))
        return [*outs[:n_carry], *outs[n_carry + 1 :], outs[n_carry]]
    if control == "while" and not params["cond_jaxpr"].calls_python:
        body = _add_trap(inline_calls(params["body_jaxpr"]))
        first, n_carry = params["body_nconsts"], len(node.aval)
        test = params["cond_jaxpr"]

        def should_continue(nodes: list[Node]) -> list[Node]:
            *operands, trap = nodes
            if any(map(_may_not_terminate, test.nodes)):
                return _skip_after_trap(trap, test, operands, [full((), False, _BOOL)])
            return [o.and_(*evaluate(test, operands), o.not_(trap))]

        flag = make_aval((), _BOOL)
        new = {
            **params,
            "body_jaxpr": _carry_trap(body, first, n_carry),
            "cond_jaxpr": build(should_continue, [*test.in_avals, flag], test.name),
        }
        return _results_of(record(node.op, (*ins, full((), False, _BOOL)), new))
    raise _Unconditional


def _carry_trap(body: Graph, first: int, n_carry: int) -> Graph:
    """Make the trap, the last result of a body, the last value of its carry."""
    at = first + n_carry
    flag = make_aval((), _BOOL)

    def run(nodes: list[Node]) -> list[Node]:
        before, operands = nodes[at], [*nodes[:at], *nodes[at + 1 :]]
        if any(map(_may_not_terminate, body.nodes)):
            rest = [zeros_like_aval(a) for a in body.out_avals[n_carry:-1]]
            unchanged_values = [*operands[first:at], *rest, full((), True, _BOOL)]
            *outs, trap = _skip_after_trap(before, body, operands, unchanged_values)
        else:
            *outs, trap = evaluate(body, operands)
            trap = o.or_(before, trap)
        return [*outs[:n_carry], trap, *outs[n_carry:]]

    return build(run, [*body.in_avals[:at], flag, *body.in_avals[at:]], body.name)


def _record_cond_without_calls(node: Node, ins: Sequence[Node]) -> list[Node]:
    index, operands = ins[0], ins[1:]
    branches: list[Graph | None] = []
    for g in node.params["branches"]:
        try:
            branches.append(_add_trap(inline_calls(g)))
        except _Unconditional:
            branches.append(None)
    possible = [g for g in branches if g is not None]
    if not possible:
        raise _Unconditional
    if len(possible) == 1:
        *outs, trap = evaluate(possible[0], operands)
    else:
        new_branches = tuple([g or possible[0] for g in branches])
        result = record(node.op, (index, *operands), {**node.params, "branches": new_branches})
        *outs, trap = _results_of(result)
    for k in [k for k, g in enumerate(branches) if g is None]:
        trap = o.or_(trap, _selects_branch(index, k, len(branches) - 1))
    return [*outs, trap]


def _selects_branch(index: Node, k: int, last: int) -> Node:
    """Return whether an index selects branch k; indices out of range select the first or last
    branch."""
    if index.aval.dtype == _BOOL:
        return index if k else o.not_(index)
    test = o.le if k == 0 else o.ge if k == last else o.eq
    return test(index, full((), k, index.aval.dtype))
