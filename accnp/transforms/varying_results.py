"""Along which mesh axes the results of a function of shards differ, including those of its loops.

It takes the program of one shard, and the axes along which its operands differ. It returns, for
each result, the axes along which it may differ, so that `shard_map` can refuse a result that
`out_specs` declares equal. A value differs along the axes of its operands and of its own
collective; a carried value also along those of the body's result, and a result of `cond` or
`while_loop` along those of the predicate. `Varying` is coarser: it decides while the program is
recorded, when the body of a loop is not known yet, and `pvary` marks its assumptions; these marks
have no effect here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from accnp.ir.graph import Graph, graphs_in
from accnp.ir.node import ITEM, Node
from accnp.ir.op import CALLS

__all__ = ["differing_axes"]

Names = frozenset[Hashable]
_NONE: Names = frozenset()


def differing_axes(graph: Graph, operands: Sequence[Names], every: Names) -> list[Names]:
    """Return the axes along which each result of a program differs.

    Parameters
    ----------
    graph : Graph
        The program of one shard. What it closes over is equal in all shards.
    operands : sequence of frozenset
        The axes along which each operand differs.
    every : frozenset
        The axes over which the function is mapped.
    """
    known: dict[int, Names] = {}
    of_calls: dict[int, list[Names]] = {}
    for x, names in zip(graph.inputs, operands, strict=True):
        known[id(x)] = names
    for node in graph.nodes:
        ins = [known.get(id(x), _NONE) for x in node.inputs]
        if node.op is ITEM and id(node.inputs[0]) in of_calls:
            index: int = node.params["index"]
            known[id(node)] = of_calls[id(node.inputs[0])][index]
        elif node.op.kind in CALLS:
            of_calls[id(node)] = _of_call(node, ins, every)
        else:
            known[id(node)] = _of_operation(node, _NONE.union(*ins), every)
    return [known.get(id(x), _NONE) for x in graph.outputs]


def _of_operation(node: Node, axes: Names, every: Names) -> Names:
    own = every.intersection((node.params or {}).get("axis_name") or ())
    facts = node.op.collective
    if not own or (facts is not None and not facts.sends and node.inputs):  # `pvary`
        return axes
    whole = node.params.get("axis_index_groups") is None
    return axes - own if facts is not None and facts.equal and whole else axes | own


def _of_call(node: Node, ins: list[Names], every: Names) -> list[Names]:
    """The axes of the results of a loop, a branch or another call."""
    params = node.params
    if node.op.control == "scan":
        a, n = params["num_consts"], params["num_carry"]
        consts, carry, rows = ins[:a], ins[a : a + n], ins[a + n :]
        while True:
            outs = differing_axes(params["jaxpr"], [*consts, *carry, *rows], every)
            wider = [x | y for x, y in zip(carry, outs[:n], strict=True)]
            if wider == carry:
                return [*carry, *outs[n:]]
            carry = wider
    if node.op.control == "while":
        a, b = params["cond_nconsts"], params["body_nconsts"]
        carry = ins[a + b :]
        while True:
            (test,) = differing_axes(params["cond_jaxpr"], [*ins[:a], *carry], every)
            outs = differing_axes(params["body_jaxpr"], [*ins[a : a + b], *carry], every)
            wider = [x | y | test for x, y in zip(carry, outs, strict=True)]
            if wider == carry:
                return carry
            carry = wider
    if node.op.control == "cond":
        results = [differing_axes(g, ins[1:], every) for g in params["branches"]]
        return [ins[0].union(*column) for column in zip(*results, strict=True)]
    return differing_axes(graphs_in(params)[0], ins, every)
