"""Separation of a linear program: results that do not depend on its leaves are computed apart.

A call may have results of both sorts, for example a loop that carries a counter, or a function and
its derivative computed together. Such a call is replaced by two: one without the leaves, and one
that is linear in them, which its `linearize` rule gives at leaves of zero. The input is the nodes
of the program in order, its leaves and its outputs; in the result, every node that depends on the
leaves is linear in them, so that `transpose.py` can transpose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.node import MARK, Node, arg, has_effect, record
from accnp.ir.op import CALLS
from accnp.ir.trace import Trace
from accnp.primitives.dependence import results_depend
from accnp.primitives.kinds import zeros_like_aval
from accnp.primitives.loops import no_reverse_mode_error
from accnp.transforms.traversal import dependents, nodes_within
from accnp.transforms.varying import copy_axes

if TYPE_CHECKING:
    from accnp.transforms.tools import Tools

__all__ = ["separate_nonlinear", "separate_outputs"]


def separate_nonlinear(
    order: Sequence[Node], leaves: Sequence[Node], outputs: Sequence[Node | None], tools: Tools
) -> tuple[Sequence[Node], Sequence[Node], Sequence[Node | None]]:
    """Return the nodes that depend on the leaves, the leaves, and the outputs.

    If something must be separated, all three are recorded again; otherwise they are the given ones.
    """
    chain = dependents(order, leaves)
    mixed = _find_mixed_calls(chain, leaves)
    if not mixed:
        return chain, leaves, outputs
    for node in chain:
        if node.op.control == "while" and has_effect(node.op, node.params):
            # It contains a reverse-mode rule, whose tangent cannot be computed separately.
            raise no_reverse_mode_error()
    with Trace("linear") as inner:
        places = [arg(x.aval, inner) for x in leaves]
        copy_axes(places, leaves)
        env: dict[int, Any] = dict(zip(map(id, leaves), places, strict=True))
        results = _record_separated(chain, env, mixed, places, outputs, tools)
    order = nodes_within([x for x in results if x is not None], places, inner)
    return dependents(order, places), places, results


def separate_outputs(
    order: Sequence[Node], leaves: Sequence[Node], outputs: Sequence[Node | None], tools: Tools
) -> Sequence[Node | None]:
    """Return the outputs of a linear program that is still being recorded, after separation."""
    chain = dependents(order, leaves)
    mixed = _find_mixed_calls(chain, leaves)
    return _record_separated(chain, {}, mixed, leaves, outputs, tools) if mixed else outputs


def _record_separated(
    chain: Sequence[Node],
    env: dict[int, Any],
    mixed: set[int],
    leaves: Sequence[Node],
    outputs: Sequence[Node | None],
    tools: Tools,
) -> list[Node | None]:
    linear = set(map(id, leaves))
    for node in chain:
        xs = [env.get(id(x), x) for x in node.inputs]
        if isinstance(xs[0], list):  # the operand is a call that was separated
            env[id(node)] = xs[0][node.params["index"]]
            continue
        flags = [id(x) in linear for x in xs]
        if id(node) in mixed:
            env[id(node)] = _split_call(node, xs, flags, tools)
            deps = results_depend(node, flags)
            linear.update(id(x) for x, f in zip(env[id(node)], deps, strict=True) if f)
            continue
        y = xs[0] if node.op is MARK else record(node.op, tuple(xs), node.params)
        env[id(node)] = y
        if any(flags):
            linear.add(id(y))
    return [None if x is None else env.get(id(x), x) for x in outputs]


def _find_mixed_calls(chain: Sequence[Node], leaves: Sequence[Node]) -> set[int]:
    """Return the ids of calls of which some results depend on the leaves and some do not."""
    call_ids: set[int] = set()
    if not any(node.op.kind in CALLS for node in chain):
        return call_ids
    known: dict[int, Any] = dict.fromkeys(map(id, leaves), True)
    for node in chain:
        input_flags = [known.get(id(x), False) for x in node.inputs]
        if node.op.kind == "item":
            known[id(node)] = input_flags[0] and input_flags[0][node.params["index"]]
        elif isinstance(node.aval, tuple):
            deps = known[id(node)] = results_depend(node, input_flags)
            if any(deps) and not all(deps) and node.op.linearize is not None:
                call_ids.add(id(node))
        else:
            known[id(node)] = any(input_flags)
    return call_ids


def _split_call(node: Node, xs: Sequence[Node], flags: Sequence[bool], tools: Tools) -> list[Node]:
    """Return the results of a call. Those that depend on flagged operands are linear in them, so
    they are the derivative at zero; the others are computed without the flagged operands."""
    at = [zeros_like_aval(x.aval) if f else x for x, f in zip(xs, flags, strict=True)]
    ts = [x if f else None for x, f in zip(xs, flags, strict=True)]
    y = record(node.op, tuple(at), node.params)
    primals, tangents = node.op.linearize(ts, y, at, node.params, tools)  # type: ignore[misc]
    deps = results_depend(node, flags)
    return [
        p if not f else zeros_like_aval(p.aval) if t is None else t
        for p, t, f in zip(primals, tangents, deps, strict=True)
    ]
