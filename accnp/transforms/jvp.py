"""Forward-mode derivatives: compute a primal and a tangent for each recorded node.

The input is a list of nodes in order and an environment that maps the ids of leaves to pairs
(primal, tangent), where None is a zero tangent. `forward` applies the ops' `jvp` rules and fills
the environment; a node without an entry is its own primal and has no tangent. The primal is the
recorded node itself unless one of its operands was replaced, so that a value that has been computed
already (for a Python branch, for example) is not computed again. `vjp.py` and `tools.py` use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.graph import Graph, toposort
from accnp.ir.node import MARK, Node, forget, has_effect, items, record
from accnp.ir.op import CALLS, ZERO, as_tuple, o
from accnp.ir.trace import EffectsOf, Trace, sets_site, state
from accnp.primitives.kinds import broadcast_to, zeros_like_aval
from accnp.transforms.split_linear import separate_outputs
from accnp.transforms.traversal import dependents, inexact, nodes_within, within

if TYPE_CHECKING:
    from accnp.transforms.tools import Tools

__all__ = ["Pair", "forward", "forward_graph", "instantiate"]

Pair = tuple[Node, Node | None]
Env = dict[int, Any]  # id of a node -> Pair, or a list of them for an op with several results


def instantiate(primal: Node, tangent: Node | None) -> Node:
    """Return the tangent as a node; None becomes zeros."""
    return zeros_like_aval(primal.aval) if tangent is None else tangent


@sets_site
def forward(  # noqa: C901
    order: Sequence[Node], env: Env, tools: Tools, trace: Trace | None, linear: Trace | None = None
) -> None:
    """Differentiate nodes in order, filling `env`.

    With `linear`, the tangents are placeholders of that trace, and call ops use their `linearize`
    rules. `trace` is the trace to which the nodes belong; None means that it has ended (nodes of a
    loop body, for example), and then nodes that depend on no leaf are recorded again, too.
    """
    trace_ended = trace is None
    if trace is not None:
        trace.walked = True
    for node in order:
        state.site = node.site
        if state.named and not trace_ended:
            trace.recorded.append(node)  # type: ignore[union-attr]
        entries = [env.get(id(x)) for x in node.inputs]
        kind = node.op.kind
        if kind == "item":
            whole = entries[0]
            if whole is not None:
                env[id(node)] = whole[node.params["index"]]
                if not trace_ended:
                    forget(node)
            elif trace_ended:
                env[id(node)] = (record(node.op, node.inputs, node.params), None)
            continue
        ts: list[Node | None] = []
        xs: list[Node] = []
        changed = trace_ended
        has_tangent = False
        for x, e in zip(node.inputs, entries, strict=True):
            if e is None:
                xs.append(x)
                ts.append(None)
                continue
            xs.append(e[0])
            ts.append(e[1])
            changed = changed or e[0] is not x
            has_tangent = has_tangent or e[1] is not None
        if not has_tangent and not changed:
            continue
        if node.op is MARK:
            env[id(node)] = (xs[0], ts[0])
            continue
        if node.op.jvp is ZERO:
            ts, has_tangent = [], False
        if kind == "callback" and not trace_ended and not has_tangent and node.value is not None:
            continue  # it has run already
        if changed and not trace_ended:
            forget(node)
        owner = state.abstract
        start = 0 if owner is None else len(owner.effects)
        done = not trace_ended and node.value is not None and has_effect(node.op, node.params)
        y = record(node.op, tuple(xs), node.params) if changed and not done else node
        if y is not node and not trace_ended and owner is not None and node in owner.calls:
            owner.calls.remove(node)
        if has_tangent:
            if owner is not None and owner.calls and "rule" in node.params:
                # The rule makes these calls itself, so those of the function must not run again.
                above = set(map(id, toposort([node])))
                owner.calls[:] = [x for x in owner.calls if id(x) not in above]
            env[id(node)] = _differentiate(node, y, xs, ts, tools, linear)
        elif isinstance(y.aval, tuple):
            env[id(node)] = [(part, None) for part in items(y)]
        else:
            env[id(node)] = (y, None)
        if owner is not None:
            _remove_duplicate_effects(owner, node, y, start, trace_ended, has_tangent)


def _remove_duplicate_effects(
    owner: Trace, node: Node, y: Node, start: int, trace_ended: bool, has_tangent: bool
) -> None:
    """Remove duplicate effects: those of a rule replace those of the function, and effects that
    were recorded again replace the first ones."""
    if len(owner.effects) > start + 1 and owner.effects[start] is y:
        del owner.effects[start]
    replaced = [] if trace_ended else [node]
    if has_tangent and isinstance(
        mine := getattr(node.params.get("rule"), "owner", None), EffectsOf
    ):
        replaced += [n for n in owner.effects[:start] if mine.have(n)]
    if len(owner.effects) > start or len(replaced) > 1 - trace_ended:
        owner.supersede(replaced, start)


def forward_graph(
    graph: Graph,
    xs: Sequence[Node],
    ts: Sequence[Node | None],
    tools: Tools,
    linear: Trace | None = None,
) -> list[Pair]:
    """Record the derivative of a program; return the primals and tangents of its outputs."""
    env: Env = {id(a): (x, t) for a, x, t in zip(graph.inputs, xs, ts, strict=True)}
    forward(graph.nodes, env, tools, None, linear)
    return [env.get(id(x), (x, None)) for x in graph.outputs]


def _differentiate(
    node: Node,
    y: Node,
    xs: list[Node],
    ts: list[Node | None],
    tools: Tools,
    linear: Trace | None,
) -> Pair | list[Pair]:
    op, aval = node.op, node.aval
    if op.kind in CALLS or op.kind == "mark":
        return _differentiate_call(y, xs, ts, tools, linear)
    if isinstance(aval, tuple):
        if op.jvp is None:
            raise _missing_rule_error(node)
        tangents = op.jvp(ts, y, xs, node.params)
        return [(p, _check_tangent(node, p, t)) for p, t in zip(items(y), tangents, strict=True)]
    if not inexact(aval.dtype):
        return y, None
    if op.jvp is None:
        raise _missing_rule_error(node)
    if op.kind == "map" and aval.shape != () and op.jvp_shapes != "any":
        ts = [t if t is None else broadcast_to(t, aval.shape) for t in ts]
        if op.jvp_shapes == "equal":  # rules may compare and select, which need equal shapes
            xs = [x if x.aval.shape == () else broadcast_to(x, aval.shape) for x in xs]
    rules: Any = op.jvp
    if not isinstance(rules, tuple):
        return y, _check_tangent(node, y, rules(ts, y, xs, node.params))
    total: Node | None = None
    for rule, t in zip(as_tuple(rules), ts, strict=False):
        if t is None or rule is ZERO:
            continue
        part: Node | None = rule(t, y, *xs, **node.params)
        if part is not None:
            if op.jvp_shapes == "any":
                part = broadcast_to(part, aval.shape)
            part = _check_tangent(node, y, part)
            total = part if total is None else o.add_any(total, part)
    return y, total


def _differentiate_call(
    y: Node, xs: list[Node], ts: list[Node | None], tools: Tools, linear: Trace | None
) -> Pair | list[Pair]:
    """Apply the rule of an op that contains programs; in reverse mode the primal stays concrete."""
    op = y.op
    several = isinstance(y.aval, tuple)
    rule = op.linearize if linear is not None and op.linearize is not None else op.jvp
    if rule is None:
        raise _missing_rule_error(y)
    primals, tangents = rule(ts, y, xs, y.params, tools)
    if linear is not None and any(within(p, linear) for p in primals):
        # The rule computed primals together with tangents, so they depend on placeholders. Separate
        # them in what the rule recorded or, if that fails, use the op itself for the primals.
        leaves = [t for t in ts if t is not None]
        whole = [*primals, *tangents]
        order = nodes_within([x for x in whole if x is not None], leaves, linear)
        results: list[Any] = list(separate_outputs(order, leaves, whole, tools))
        primals, tangents = results[: len(primals)], results[len(primals) :]
        if any(dependents(nodes_within([p], leaves, linear), leaves) for p in primals):
            primals = items(y) if several else [y]
    if not any(y in (p, *p.inputs) for p in primals):
        forget(y)
    pairs: list[Pair] = []
    for p, t in zip(primals, tangents, strict=True):
        pairs.append((p, t if t is None or inexact(p.aval.dtype) else None))
    return pairs if several else pairs[0]


def _check_tangent(node: Node, y: Node, t: Node | None) -> Node | None:
    if t is None or not inexact(y.aval.dtype):
        return None
    if t.aval.shape != y.aval.shape or t.aval.dtype != y.aval.dtype:
        raise TypeError(
            f"{node.op.name}: the derivative rule returned a tangent of the wrong type; got "
            f"{t.aval} (tangent) for {y.aval} (value); this is a defect of the rule, please report "
            "it"
        )
    return t


def _missing_rule_error(node: Node) -> NotImplementedError:
    return NotImplementedError(
        f"{node.op.name}: no derivative is known; got it inside a differentiated function; "
        "give the function a rule with custom_jvp or custom_vjp, or use stop_gradient"
    )
