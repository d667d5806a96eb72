"""Pending nodes to a `Program`: calls inlined, marks and items resolved, common subexpressions merged, dead code dropped.

In: the nodes to compute and their leaves. Out: `Value`s in order; leaves first. Everything after this pass works on Values, which
carry the marks that fusion leaves on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.op import OPS
from accnp.passes.spaces import fold_form

__all__ = ["Program", "Value", "build", "from_graph", "is_inlined_call"]


class Value:
    """One value of a program: a leaf (op kind "leaf") or the result of an operation."""

    __slots__ = (
        "aval", "cluster", "demands", "id", "index", "inputs", "node", "op", "params", "parent", "role", "stored",
    )  # fmt: skip

    def __init__(self, op: Any, params: dict, inputs: tuple[Value, ...], aval: Any, node: Node | None) -> None:
        self.op = op
        self.params = params
        self.inputs = inputs
        self.aval = aval
        self.node = node
        self.id = -1
        self.index = -1  # which result of `parent`, for ops with several
        self.parent: Value | None = None
        # Set by fusion:
        self.stored = False
        self.cluster: Any = None
        self.role = ""  # "full", "row", "inline", "scalar"
        self.demands: list[Any] = []

    @property
    def is_leaf(self) -> bool:
        return self.op.kind == "leaf"

    def __repr__(self) -> str:
        return f"v{self.id}:{self.op.name}{self.aval}"


class Program:
    """Values in an order in which they can be computed, and which of them are wanted."""

    def __init__(self, leaves: list[Value], values: list[Value], outputs: list[Value]) -> None:
        self.leaves = leaves
        self.values = values
        self.outputs = outputs


def is_inlined_call(op: Any) -> bool:
    """Whether a call op means just its body (jit, custom derivative rules), as opposed to control flow."""
    return op.kind == "call" and op.name not in ("cond", "while", "scan")


def body_of(params: dict) -> Graph:
    """Return the graph that an inlined call op holds."""
    return next(p for p in params.values() if isinstance(p, Graph))


def build(order: Sequence[Node], leaves: Sequence[Node], outputs: Sequence[Node]) -> Program:
    """Make a program of nodes in order; `leaves` become its first values, in that order."""
    env: dict[int, Any] = {}
    leaf_values = []
    for node in leaves:
        v = Value(node.op if node.op.kind == "leaf" else OPS["const"], {}, (), node.aval, node)
        env[id(node)] = v
        leaf_values.append(v)
    table: dict[Any, Any] = {}
    extra: list[Value] = []
    for node in order:
        _add(node, env, table, extra)
    outs: list[Value] = []
    for x in outputs:
        v = env[id(x)]
        outs += v if isinstance(v, list) else [v]
    values = _live(outs)
    every = leaf_values + extra
    for i, v in enumerate(every + values):
        v.id = i
    return Program(every, values, outs)


def _get(x: Node, env: dict[int, Any], extra: list[Value]) -> Any:
    """A node's value; closed-over constants and literals of inlined bodies become further leaves."""
    v = env.get(id(x))
    if v is None:
        v = env[id(x)] = Value(x.op if x.op.kind == "leaf" else OPS["const"], {}, (), x.aval, x)
        extra.append(v)
    return v


def _add(node: Node, env: dict[int, Any], table: dict[Any, Any], extra: list[Value]) -> None:
    op = node.op
    if id(node) in env:
        return
    if op.kind == "mark":
        env[id(node)] = _get(node.inputs[0], env, extra)
        return
    ins = tuple([_get(x, env, extra) for x in node.inputs])
    if op.name == "item":
        whole = ins[0]
        env[id(node)] = whole[node.params["index"]]
        return
    if is_inlined_call(op):
        graph = body_of(node.params)
        inner = dict(env)
        inner.update({id(a): v for a, v in zip(graph.inputs, ins, strict=True)})
        for n in graph.nodes:
            _add(n, inner, table, extra)
        outs = [_get(x, inner, extra) for x in graph.outputs]
        env[id(node)] = outs if isinstance(node.aval, tuple) else outs[0]
        return
    if op.kind == "view" and node.aval.shape == ins[0].aval.shape and _is_identity(node):
        env[id(node)] = ins[0]
        return
    if op.kind == "reduce" and fold_form(ins[0].aval.shape, node.params["axes"]) == "strided":
        env[id(node)] = _fold_of_transposed(node, ins[0])
        return
    try:
        key = (op, tuple([id(v) for v in ins]), tuple(node.params.items()))
        found = table.get(key)
    except TypeError:
        key, found = None, None
    if found is None:
        found = Value(op, node.params, ins, node.aval, node)
        if isinstance(node.aval, tuple):
            found = _several(found)
        if key is not None:
            table[key] = found
    env[id(node)] = found


def _fold_of_transposed(node: Node, x: Value) -> Value:
    """Bring the reduced axes behind the others (but for a last kept axis), which leaves a form that kernels know."""
    rank, axes = x.aval.ndim, tuple(node.params["axes"])
    shape = x.aval.shape
    last = max((d for d in range(rank) if shape[d] != 1), default=0)
    kept = [d for d in range(rank) if d not in axes]
    tail = [last] if last in kept else []
    order = (*[d for d in kept if d not in tail], *axes, *tail)
    op = OPS["transpose"]
    params = {"permutation": order}
    turned = Value(op, params, (x,), op.infer(x.aval, **params), node)
    new_axes = tuple(i for i, d in enumerate(order) if d in axes)
    return Value(node.op, {"axes": new_axes}, (turned,), node.aval, node)


def _is_identity(node: Node) -> bool:
    if node.op.name in ("reshape", "broadcast_in_dim"):
        return node.inputs[0].aval.dtype == node.aval.dtype
    if node.op.name == "transpose":
        return node.params["permutation"] == tuple(range(node.aval.ndim))
    return node.op.name == "slice" and not any(k != 1 for k in node.params.get("strides") or ())


def _several(whole: Value) -> list[Value]:
    parts = []
    for i, aval in enumerate(whole.aval):
        part = Value(whole.op, whole.params, whole.inputs, aval, whole.node)
        part.parent, part.index = whole, i
        parts.append(part)
    return parts


def _live(outputs: Sequence[Value]) -> list[Value]:
    """Order the values that the outputs need; leaves excluded. A value with a parent stands behind it."""
    order: list[Value] = []
    seen: set[int] = set()
    for root in outputs:
        stack: list[tuple[Value, int]] = [(root, 0)]
        while stack:
            v, i = stack.pop()
            sources = (v.parent,) if v.parent is not None else v.inputs
            if i == 0:
                if id(v) in seen or v.is_leaf:
                    continue
                seen.add(id(v))
            if i < len(sources):
                stack.append((v, i + 1))
                child = sources[i]
                if id(child) not in seen:
                    stack.append((child, 0))
            else:
                order.append(v)
    return order


def from_graph(graph: Graph) -> tuple[Program, list[Node]]:
    """Make a program of a traced graph; returns it and its leaves (the inputs first)."""
    order = graph.nodes
    leaves = list(graph.inputs)
    seen = {id(x) for x in leaves} | {id(x) for x in order}
    for node in order:
        for x in node.inputs:
            if id(x) not in seen:
                seen.add(id(x))
                leaves.append(x)
    for x in graph.outputs:
        if id(x) not in seen:
            seen.add(id(x))
            leaves.append(x)
    program = build(order, leaves, graph.outputs)
    return program, [v.node for v in program.leaves]  # type: ignore[misc]
