"""Conversion of nodes to a `Program`, with simplification.

Input: the nodes to compute, and their leaves. Output: a Program of `Value`s in topological order.
Calls are inlined, marks and items are resolved, common subexpressions are merged, dead code is
removed, and some operations are rewritten to forms that are faster or that fusion supports. All
later passes work on Values, on which fusion stores its decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from accnp.compiler.fusion.products import product, transpose_products
from accnp.compiler.fusion.spaces import axes_to_reduce_first, keeps_order
from accnp.ir.aval import Aval, mesh_sharding, result_avals, spans_processes
from accnp.ir.graph import Graph, graphs_in
from accnp.ir.kernel import is_half
from accnp.ir.mesh_axis import communicates, is_over_mesh
from accnp.ir.node import ITEM, LITERAL, Node, has_effect
from accnp.ir.op import OPS, Op, as_tuple
from accnp.lazy_imports import imported
from accnp.primitives.conversion import CONVERT
from accnp.primitives.kinds import full
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.compiler.fusion.clusters import Cluster, Demand
    from accnp.compiler.fusion.in_place import StoreLocation
    from accnp.ir.op_types import Params

__all__ = ["Program", "Value", "build", "from_graph"]

_SINGLE = np.dtype(np.float32)


class Value:
    """One value of a program: a leaf (op kind "leaf") or the result of an operation."""

    __slots__ = (
        "alias", "aval", "cluster", "demands", "home", "id", "index", "inputs", "node", "op",
        "params", "parent", "role", "stored", "why",
    )  # fmt: skip

    def __init__(
        self,
        op: Op,
        params: Params,
        inputs: tuple[Value, ...],
        aval: Aval | tuple[Aval, ...],
        node: Node | None,
    ) -> None:
        self.op = op
        self.params = params
        self.inputs = inputs
        # The type of the result; of several results, a tuple, which only `avals` reads.
        self.aval = cast("Aval", aval)
        self.node = node
        self.id = -1
        self.index = -1  # index among the results of `parent`, for ops with several results
        self.parent: Value | None = None
        # Set by fusion:
        self.stored = False
        self.cluster: Cluster | None = None
        self.role = ""  # "full", "row", "inline", "scalar", "alias"
        self.alias: Value | None = None  # the value whose memory it shares, if it is an alias
        self.demands: list[Demand] = []
        self.home: StoreLocation | None = (
            None  # location in an updated array (`in_place.StoreLocation`), if any
        )
        # Why it is stored: texts, and clusters that cannot share a kernel (its own or of readers).
        self.why: tuple[str | Cluster, ...] = ()

    @property
    def has_several_results(self) -> bool:
        """Whether `aval` is a tuple, of one type for each result."""
        return isinstance(self.aval, tuple)

    @property
    def avals(self) -> tuple[Aval, ...]:
        """The types of all results."""
        return result_avals(self.aval)

    @property
    def is_leaf(self) -> bool:
        return self.op.kind == "leaf"

    def __repr__(self) -> str:
        return f"v{self.id}:{self.op.name}{self.aval}"


class Program:
    """Values in topological order, and which of them are outputs."""

    def __init__(
        self,
        leaves: list[Value],
        values: list[Value],
        outputs: list[Value],
        effects: Sequence[Value] = (),
    ) -> None:
        self.leaves = leaves
        self.values = values
        self.outputs = outputs
        self.effects = effects  # values with effects, which are executed in this order
        # Whether it depends on the values of leaves that are indices of updates.
        self.depends_on_indices = False


def build(
    order: Sequence[Node],
    leaves: Sequence[Node],
    outputs: Sequence[Node],
    fixed: Collection[int] | None = (),
) -> Program:
    """Make a program from nodes in topological order; `leaves` become its first values.

    `fixed` are the ids of leaves whose values are the same in each run; None means all literals.
    """
    builder = ProgramBuilder(fixed)
    leaf_values = [builder.leaf(node) for node in leaves]
    env = _Env(None)
    for node in order:
        builder.add(node, env)
    outs: list[Value] = []
    for x in outputs:
        v = builder.get(x, env)
        outs += v if isinstance(v, list) else [v]
    roots = [*builder.effects, *outs]
    values = _select_live_values(builder.values, roots)
    if transpose_products(values, roots):
        values = _select_live_values(builder.values, roots)
    known = False
    if (fixed is None or fixed) and any(v.op.updated_operand is not None for v in values):
        rewrite = imported("accnp.compiler.fusion.updates").rewrite_updates
        values, known = rewrite(values, roots, Value)
    if any(v.op.indexing == "slice" for v in values):
        values = imported("accnp.compiler.fusion.slices").replace_slices_by_gathers(
            values, roots, Value
        )
    every = leaf_values + builder.extra
    for i, v in enumerate(every + values):
        v.id = i
    program = Program(every, values, outs, builder.effects)
    program.depends_on_indices = known
    return program


# What replaces a node: its value, or one value for each of its results.
_Made = Value | list[Value]


class _Env:
    """The values of the nodes of a body, and of the enclosing bodies."""

    __slots__ = ("around", "own")

    def __init__(self, around: _Env | None) -> None:
        self.around = around
        self.own: dict[int, _Made] = {}

    def get(self, key: int) -> _Made | None:
        env: _Env | None = self
        while env is not None:
            value = env.own.get(key)
            if value is not None:
                return value
            env = env.around
        return None


class ProgramBuilder:
    """Makes values from nodes; equal values become one."""

    def __init__(self, fixed: Collection[int] | None) -> None:
        self.fixed = fixed
        self.leaves: dict[int, Value] = {}
        self.extra: list[Value] = []  # additional leaves: constants and literals of inlined bodies
        self.table: dict[tuple[object, ...], _Made] = {}  # for common subexpressions
        self.values: list[Value] = []  # all values in order
        self.effects: list[Value] = []  # in order

    def extra_leaf(self, node: Node) -> Value:
        """Return the value of a leaf that is not an argument of the program."""
        v = self.leaf(node)
        self.extra.append(v)
        return v

    def leaf(self, node: Node) -> Value:
        op = node.op if node.op.kind == "leaf" else OPS["const"]
        known = op is node.op and (self.fixed is None or id(node) in self.fixed)
        params = node.params if known else {}
        # For an array over several processes, the program computes with the shard of this process.
        aval = node.aval
        if spans_processes(aval):
            aval = OPS["to_local"].infer(aval, sharding=mesh_sharding(aval))
        v = self.leaves[id(node)] = Value(op, params, (), aval, node)
        return v

    def get(self, x: Node, env: _Env) -> _Made:
        v = self.leaves.get(id(x)) or env.get(id(x))
        return self.extra_leaf(x) if v is None else v

    def add(self, node: Node, env: _Env) -> None:
        if env.get(id(node)) is None:
            env.own[id(node)] = self.value_of(node, env)

    def value_of(self, node: Node, env: _Env) -> _Made:  # noqa: C901
        op = node.op
        inputs = [self.get(x, env) for x in node.inputs]
        if op.kind == "mark" or op.identity:
            return inputs[0]
        if op is ITEM:
            assert not isinstance(inputs[0], Value)
            index: int = node.params["index"]
            return inputs[0][index]
        ins = tuple([v for v in inputs if isinstance(v, Value)])
        assert len(ins) == len(inputs)  # only items have an operand with several results
        if op.kind == "call":
            return self.inline(node, ins, env)
        if op.kind == "opaque" and node.params and is_over_mesh(node.params):
            small = imported("accnp.compiler.fusion.collectives").lower_collective(self, node, ins)
            if small is not None:
                return small
        if op.in_program is not None:
            return op.in_program(node.params)
        if op.kind == "view" and node.aval.shape == ins[0].aval.shape and _is_identity(node):
            return ins[0]
        if op.kind == "reduce":
            x = ins[0]
            axes: tuple[int, ...] = tuple(node.params["axes"])
            has_one_element = all([x.aval.shape[a] == 1 for a in axes])
            if has_one_element:
                if x.aval.shape == node.aval.shape:
                    return x
                params = {"new_sizes": node.aval.shape, "dimensions": None}
                return self.make_value(OPS["reshape"], params, (x,), node.aval, node)
            return self.reduce(node, x, axes)
        if op is CONVERT and ins[0].aval.dtype == node.aval.dtype:
            return ins[0]  # only weak types differ, which do not affect values
        if op.kind == "map":
            ins = self.broadcast_operands(node, ins)
            small = self.move_unit_axes(node, ins)
            if small is not None:
                return small
        if op.contraction:
            make = partial(self.apply_op, node)
            fused = product(make, node.params, ins[0], ins[1], node.aval.dtype)
            if fused is not None:
                return fused
        if op.indexing == "scatter":
            make, const = partial(self.apply_op, node), partial(self.constant, env)
            rule = imported("accnp.compiler.fusion.scatters").flat_scatter
            flat = rule(make, const, op.name, node.params, ins)
            if flat is not None:
                return flat
        if op.halves == "float32" and any(is_half(x.aval.dtype) for x in ins):
            return self.compute_in_float32(node, ins)
        if op.rewrite is not None:
            cheaper = op.rewrite(partial(self.apply_op, node), node.params, ins)
            if cheaper is not None:
                return cheaper
        return self.make(op, node.params, ins, node.aval, node)

    def constant(self, env: _Env, value: int, dtype: np.dtype) -> Value:
        """Return the value of a constant that a rewriting rule needs."""
        literal = self.get(full((), value, dtype), env)
        assert isinstance(literal, Value)
        return literal

    def broadcast_operands(self, node: Node, ins: tuple[Value, ...]) -> tuple[Value, ...]:
        """Broadcast the operands of a map along axes of length 1."""
        shape = node.aval.shape
        if all(v.aval.shape in ((), shape) for v in ins):
            return ins
        params = {"shape": shape, "broadcast_dimensions": tuple(range(len(shape)))}
        return tuple(
            v
            if v.aval.shape in ((), shape)
            else self.apply_op(node, "broadcast_in_dim", params, (v,))
            for v in ins
        )

    def convert(self, node: Node, x: Value, dtype: np.dtype, weak: bool = False) -> Value:
        """Convert a value to another dtype."""
        params = {"new_dtype": dtype, "weak_type": weak}
        return self.apply_op(node, "convert_element_type", params, (x,))

    def compute_in_float32(self, node: Node, ins: tuple[Value, ...]) -> _Made:
        """Make an operation on half-precision operands that computes in float32."""
        wide = tuple([self.convert(node, x, _SINGLE) if is_half(x.aval.dtype) else x for x in ins])
        avals = node.op.infer(*[x.aval for x in wide], **node.params)
        outputs = self.make(node.op, node.params, wide, avals, node)

        def back(y: Value, a: Aval) -> Value:
            return y if y.aval.dtype == a.dtype else self.convert(node, y, a.dtype, a.weak_type)

        results = result_avals(node.aval)
        if isinstance(outputs, Value):
            return back(outputs, results[0])
        return [back(y, a) for y, a in zip(outputs, results, strict=True)]

    def apply_op(self, node: Node, name: str, params: Params, ins: tuple[Value, ...]) -> Value:
        """Return the value of another op, which has one result, in place of a node."""
        op = OPS[name]
        return self.make_value(op, params, ins, op.infer(*[x.aval for x in ins], **params), node)

    def make(
        self,
        op: Op,
        params: Params,
        ins: tuple[Value, ...],
        aval: Aval | tuple[Aval, ...],
        node: Node,
    ) -> _Made:
        """Make a value, or return the one that was made before with the same op and operands."""
        if op.kind == "callback" or has_effect(op, params):
            return self.new(op, params, ins, aval, node)
        try:
            key = (op, tuple([id(v) for v in ins]), tuple(params.items()))
            value = self.table.get(key)
        except TypeError:  # parameters that cannot be hashed
            key, value = None, None
        if value is None:
            value = self.new(op, params, ins, aval, node)
            if key is not None:
                self.table[key] = value
        return value

    def make_value(
        self, op: Op, params: Params, ins: tuple[Value, ...], aval: Aval, node: Node
    ) -> Value:
        """Make a value of an op with one result, or return the one that was made before."""
        value = self.make(op, params, ins, aval, node)
        assert isinstance(value, Value)
        return value

    def new(
        self,
        op: Op,
        params: Params,
        ins: tuple[Value, ...],
        aval: Aval | tuple[Aval, ...],
        node: Node,
    ) -> _Made:
        """Make a value, or a list of values for an operation with several results."""
        whole = Value(op, params, ins, aval, node)
        self.values.append(whole)
        if has_effect(op, params) or communicates(op, params):
            self.effects.append(whole)  # messages must have the same order in all processes
        if not isinstance(aval, tuple):
            return whole
        parts = _split_results(whole)
        self.values += parts
        return parts

    def inline(self, node: Node, ins: tuple[Value, ...], env: _Env) -> _Made:
        graphs = graphs_in(node.params)
        if not graphs:  # defined in reverse mode only: the reference function raises an error
            node.op.numpy()  # type: ignore[misc]
        graph = graphs[0]
        if node.op.recomputes and node.params["differentiated"]:
            ins = self.add_barrier(ins, node)
        inner = _Env(env)
        inner.own = {id(a): v for a, v in zip(graph.inputs, ins, strict=True)}
        for n in graph.nodes:
            # Set in the environment of this call, because an outer call of the same body may have
            # values for the same nodes.
            inner.own[id(n)] = self.value_of(n, inner)
        results = [self.get(x, inner) for x in graph.outputs]
        outs = [v for v in results if isinstance(v, Value)]
        assert len(outs) == len(results)
        return outs if isinstance(node.aval, tuple) else outs[0]

    def add_barrier(self, ins: tuple[Value, ...], node: Node) -> tuple[Value, ...]:
        """Pass the operands of a recomputation (see `primitives/checkpoint.py`) through a barrier.

        It is then not merged with the first computation, and starts when all operands are computed.
        Views of the operands are recreated after the barrier, so that no view is stored for it.
        """
        flags = node.params["prevent_cse"]
        which = as_tuple(flags) if isinstance(flags, tuple) else (flags,) * len(ins)
        bases: dict[int, Value] = {}
        for x, flag in zip(ins, which, strict=True):
            while x.op.kind == "view":
                x = x.inputs[0]
            if flag and x.op.kind != "iota" and x.op is not LITERAL:
                bases[id(x)] = x
        if not bases:
            return ins
        operands = tuple(bases.values())
        op = OPS["optimization_barrier"]
        parts = self.new(op, {}, operands, tuple([x.aval for x in operands]), node)
        assert not isinstance(parts, Value)
        barriered = dict(zip(bases, parts, strict=True))

        def moved(x: Value) -> Value:
            if id(x) in barriered or x.op.kind != "view":
                return barriered.get(id(x), x)
            return self.make_value(x.op, x.params, (moved(x.inputs[0]),), x.aval, x.node)  # type: ignore[arg-type]

        return tuple([moved(x) if flag else x for x, flag in zip(ins, which, strict=True)])

    def reduce(self, node: Node, x: Value, axes: tuple[int, ...]) -> Value:
        """Make a reduction, or several successive reductions if `axes_to_reduce_first` splits the
        axes."""
        if is_half(x.aval.dtype):
            y = self.reduce(node, self.convert(node, x, _SINGLE), axes)
            return self.convert(node, y, x.aval.dtype, node.aval.weak_type)
        first = axes_to_reduce_first(x.aval.shape, axes)
        if first:
            x = self.reduce(node, x, first)
            axes = tuple([d - sum(k < d for k in first) for d in axes if d not in first])
        params = {**node.params, "axes": axes}
        return self.make_value(node.op, params, (x,), node.op.infer(x.aval, **params), node)

    def move_unit_axes(self, node: Node, ins: tuple[Value, ...]) -> Value | None:
        """Move views that only add or drop axes of length 1 from the operands to the result.

        Then `mean(x, 0)` and `mean(x, 0, keepdims=True)` become one value, and an elementwise
        operation on it can be fused with the reduction. Returns None if this is not possible.
        """
        bases: list[Value] = []
        shape = None
        for x in ins:
            if x.aval.ndim:
                while x.op.kind == "view" and keeps_order(x):
                    x = x.inputs[0]
                if x.aval.shape == node.aval.shape or shape not in (None, x.aval.shape):
                    return None
                shape = x.aval.shape
            bases.append(x)
        if shape is None:
            return None
        aval = node.op.infer(*[x.aval for x in bases], **node.params)
        below = self.make_value(node.op, node.params, tuple(bases), aval, node)
        params = {"new_sizes": node.aval.shape, "dimensions": None}
        return self.make_value(OPS["reshape"], params, (below,), node.aval, node)


def _is_identity(node: Node) -> bool:
    """Return whether a view of its operand's shape shows each element where it was."""
    x = node.inputs[0].aval
    steps = contiguous(x.shape)
    seen = node.op.strides(x.shape, steps, 0, **node.params)  # type: ignore[misc]
    if seen is None or seen[2] or x.dtype != node.aval.dtype:
        return False
    return all(a == b or n == 1 for a, b, n in zip(seen[1], steps, x.shape, strict=True))


def _split_results(whole: Value) -> list[Value]:
    parts: list[Value] = []
    for i, aval in enumerate(whole.avals):
        part = Value(whole.op, whole.params, whole.inputs, aval, whole.node)
        part.parent, part.index = whole, i
        parts.append(part)
    return parts


def _select_live_values(values: Sequence[Value], outputs: Sequence[Value]) -> list[Value]:
    """Return the values that the outputs need, without leaves, in the order of the program.

    This order keeps operations together that were recorded together. A result after which operands
    can be freed, such as the gradient of the weights of a layer, is then computed early.
    """
    seen: set[int] = set()
    stack = list(outputs)
    while stack:
        v = stack.pop()
        if id(v) not in seen and not v.is_leaf:
            seen.add(id(v))
            stack.extend((v.parent,) if v.parent is not None else v.inputs)
    return [v for v in values if id(v) in seen]


def from_graph(graph: Graph, fixed: Collection[int] | None = None) -> tuple[Program, list[Node]]:
    """Make a program from a traced graph; return it and its leaves, inputs first.

    See `build` for `fixed`.
    """
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
    program = build(order, leaves, graph.outputs, fixed)
    return program, [v.node for v in program.leaves]  # type: ignore[misc]
