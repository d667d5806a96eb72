"""Programs without their callbacks, which say whether they would have called Python.

In: a Graph. Out: a Graph with one more result, the trap. Callbacks must be in branches: another
branch stands in for one that calls Python, and the trap is whether that one was meant. Native loops
run such programs as bodies, and leave iterations that trap to the host (`engine/bailout.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accnp.ir.aval import make_aval
from accnp.ir.graph import Graph, build, evaluate, expanded, graphs_in, rewrite
from accnp.ir.node import Node, calls_python, items, record
from accnp.ir.op import OPS, o
from accnp.primitives.kinds import full, zeros_like_aval

__all__ = ["with_trap"]

_BOOL = np.dtype(bool)


class _Unconditional(Exception):
    """A program calls Python whatever its operands are."""


def with_trap(graph: Graph) -> Graph | None:
    """The program without its callbacks, with one more result: whether it would have called Python.

    Where that is true, the other results mean nothing. None if the program calls Python in any
    case.
    """
    try:
        return _trapped(expanded(graph))
    except _Unconditional:
        return None


def _trapped(graph: Graph) -> Graph:
    traps: list[Node] = []

    def rule(node: Node, operands: list[Node]) -> list[Node] | None:
        if _is_call(node):
            *results, found = _without_calls(node, operands)
            traps[:] = [o.or_(*traps, found) if traps else found]
            return results
        return _unless(traps[0], node, operands) if traps and _may_not_end(node) else None

    def run(inputs: list[Node]) -> list[Node]:
        results = rewrite(graph, inputs, rule)
        return [*results, *(traps or [full((), False, _BOOL)])]

    return build(run, graph.in_avals, graph.name)


def _is_call(node: Node) -> bool:
    return node.op.kind == "callback" or calls_python(node.params)


def _may_not_end(node: Node) -> bool:
    """Whether an operation has a loop whose length depends on values."""
    inner = [x for g in graphs_in(node.params) for x in g.nodes]
    return node.op.name == "while" or any(map(_may_not_end, inner))


def _results(node: Node) -> list[Node]:
    return list(items(node)) if isinstance(node.aval, tuple) else [node]


def _unless(trap: Node, node: Node, operands: Sequence[Node]) -> list[Node]:
    """Record an operation that is skipped after a trap: with operands that a check was to refuse,
    its loops may not end."""

    def whole(nodes: list[Node]) -> list[Node]:
        return _results(record(node.op, tuple(nodes), node.params))

    graph = build(whole, [x.aval for x in operands], node.op.name)
    return _skipped_after(trap, graph, operands, [zeros_like_aval(a) for a in graph.out_avals])


def _skipped_after(
    trap: Node, graph: Graph, operands: Sequence[Node], instead: Sequence[Node]
) -> list[Node]:
    """Record a program, or after a trap give other values for its results."""
    avals = [*graph.in_avals, *[x.aval for x in instead]]
    n = len(operands)
    branches = (
        build(lambda nodes: evaluate(graph, nodes[:n]), avals, graph.name),
        build(lambda nodes: nodes[n:], avals, graph.name),
    )
    return _results(record(OPS["cond"], (trap, *operands, *instead), {"branches": branches}))


def _without_calls(node: Node, ins: Sequence[Node]) -> list[Node]:
    """Record an operation without its callbacks; its results, and whether it would have called."""
    name, params = node.op.name, node.params
    if name == "cond":
        return _cond(node, ins)
    if name == "scan":
        body = _trapped(expanded(params["jaxpr"]))
        first, n_carry = params["num_consts"], params["num_carry"]
        new = {**params, "jaxpr": _carrying(body, first, n_carry), "num_carry": n_carry + 1}
        false = full((), False, _BOOL)
        at = first + n_carry
        outs = _results(record(node.op, (*ins[:at], false, *ins[at:]), new))
        return [*outs[:n_carry], *outs[n_carry + 1 :], outs[n_carry]]
    if name == "while" and not params["cond_jaxpr"].calls_python:
        body = _trapped(expanded(params["body_jaxpr"]))
        first, n_carry = params["body_nconsts"], len(node.aval)
        test = params["cond_jaxpr"]

        def goes_on(nodes: list[Node]) -> list[Node]:
            *operands, trap = nodes
            if any(map(_may_not_end, test.nodes)):
                return _skipped_after(trap, test, operands, [full((), False, _BOOL)])
            return [o.and_(*evaluate(test, operands), o.not_(trap))]

        flag = make_aval((), _BOOL)
        new = {
            **params,
            "body_jaxpr": _carrying(body, first, n_carry),
            "cond_jaxpr": build(goes_on, [*test.in_avals, flag], test.name),
        }
        return _results(record(node.op, (*ins, full((), False, _BOOL)), new))
    raise _Unconditional


def _carrying(body: Graph, first: int, n_carry: int) -> Graph:
    """Make the trap, the last result of a body, the last value of its carry."""
    at = first + n_carry
    flag = make_aval((), _BOOL)

    def run(nodes: list[Node]) -> list[Node]:
        before, operands = nodes[at], [*nodes[:at], *nodes[at + 1 :]]
        if any(map(_may_not_end, body.nodes)):
            rest = [zeros_like_aval(a) for a in body.out_avals[n_carry:-1]]
            kept = [*operands[first:at], *rest, full((), True, _BOOL)]
            *outs, trap = _skipped_after(before, body, operands, kept)
        else:
            *outs, trap = evaluate(body, operands)
            trap = o.or_(before, trap)
        return [*outs[:n_carry], trap, *outs[n_carry:]]

    return build(run, [*body.in_avals[:at], flag, *body.in_avals[at:]], body.name)


def _cond(node: Node, ins: Sequence[Node]) -> list[Node]:
    index, operands = ins[0], ins[1:]
    branches: list[Graph | None] = []
    for g in node.params["branches"]:
        try:
            branches.append(_trapped(expanded(g)))
        except _Unconditional:
            branches.append(None)
    possible = [g for g in branches if g is not None]
    if not possible:
        raise _Unconditional
    if len(possible) == 1:
        *outs, trap = evaluate(possible[0], operands)
    else:
        kept = tuple([g or possible[0] for g in branches])
        made = record(node.op, (index, *operands), {**node.params, "branches": kept})
        *outs, trap = _results(made)
    for k in [k for k, g in enumerate(branches) if g is None]:
        trap = o.or_(trap, _means(index, k, len(branches) - 1))
    return [*outs, trap]


def _means(index: Node, k: int, last: int) -> Node:
    """Whether an index means branch k: numbers outside mean the first and the last one."""
    if index.aval.dtype == _BOOL:
        return index if k else o.not_(index)
    test = o.le if k == 0 else o.ge if k == last else o.eq
    return test(index, full((), k, index.aval.dtype))
