"""Which results of an operation depend on which operands, determined from the programs it contains.

The input is a program, or an operation, and flags of its operands; the output is flags of its
results, cached on the graph. Differentiation uses it to separate linear results of loops and
branches from others (`transforms/split_linear.py`, `scan.py`, `loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.aval import result_avals
from accnp.ir.graph import Graph, graphs_in
from accnp.ir.node import Node

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.ir.op_types import Params


__all__ = ["depends", "fixed_point", "results_depend"]

Flags = tuple[bool, ...]


def fixed_point(
    outs_of: Callable[[list[bool]], Sequence[bool]], carry: Sequence[bool]
) -> tuple[list[bool], Sequence[bool]]:
    """Extend the flags of a loop's carry until the body returns no additional flags.

    `outs_of` returns the flags of the body's results, those of the carry first. Returns the flags
    of the carry and of all results.
    """
    grown = list(carry)
    while True:
        outs = outs_of(grown)
        more = [a or b for a, b in zip(grown, outs, strict=False)]
        if more == grown:
            return grown, outs
        grown = more


def depends(graph: Graph, flags: Sequence[bool]) -> Flags:
    """Return which outputs of a program depend on the flagged inputs."""
    key: tuple[Hashable, ...] = ("depends", tuple(flags))
    result = graph.extra.get(key)
    if result is None:
        known: dict[int, Any] = {id(x): f for x, f in zip(graph.inputs, flags, strict=True)}
        for node in graph.nodes:
            input_flags = [known.get(id(x), False) for x in node.inputs]
            if node.op.kind == "item":
                known[id(node)] = input_flags[0] and input_flags[0][node.params["index"]]
            elif any(input_flags):
                outs = results_depend(node, input_flags)
                known[id(node)] = outs if isinstance(node.aval, tuple) else outs[0]
        result = graph.extra[key] = tuple([known.get(id(x), False) for x in graph.outputs])
    return result


def results_depend(node: Node, flags: Sequence[bool]) -> Flags:
    """Return which results of an operation depend on its flagged operands."""
    n = len(result_avals(node.aval))
    if not any(flags):
        return (False,) * n
    rule = _RULES.get(node.op.control)
    if rule is not None:
        return rule(node.params, list(flags))
    graphs = graphs_in(node.params)
    if node.op.kind == "call" and len(graphs) == 1 and len(graphs[0].inputs) == len(flags):
        return depends(graphs[0], flags)
    return (True,) * n


def _cond(params: Params, flags: list[bool]) -> Flags:
    branches = params["branches"]
    if flags[0]:
        return (True,) * len(branches[0].outputs)
    return tuple(map(any, zip(*[depends(g, flags[1:]) for g in branches], strict=True)))


def _scan(params: Params, flags: list[bool]) -> Flags:
    c, k = params["num_consts"], params["num_consts"] + params["num_carry"]

    def outs_of(carry: list[bool]) -> Flags:
        return depends(params["jaxpr"], [*flags[:c], *carry, *flags[k:]])

    carry, outs = fixed_point(outs_of, flags[c:k])
    return (*carry, *outs[k - c :])


def _while(params: Params, flags: list[bool]) -> Flags:
    a, b = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]

    def outs_of(carry: list[bool]) -> Flags:
        return depends(params["body_jaxpr"], [*flags[a:b], *carry])

    carry, _ = fixed_point(outs_of, flags[b:])
    if any(depends(params["cond_jaxpr"], [*flags[:a], *carry])):
        return (True,) * len(carry)
    return tuple(carry)


_RULES = {"cond": _cond, "scan": _scan, "while": _while}
