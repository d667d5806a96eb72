"""The op `cond`, and helpers that all control-flow ops share.

The parameters of a control-flow op are graphs that close over nothing: the public functions pass
the values that the bodies use as leading inputs. Rules receive the transformations in progress as
their last argument `tools` (`transforms/tools.py`), because this layer must not import them. The
ops `scan`, `while`, `jit` and `checkpoint` are in modules of their own and use these helpers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.aval import Aval, any_value_spans_processes, make_aval
from accnp.ir.graph import Graph, build, derive_graph, evaluate, graphs_in, interpret
from accnp.ir.node import Node, items, record
from accnp.ir.op import OPS, ZERO, Linear, Op, as_tuple, o, register
from accnp.ir.trace import in_shard_map, state, types_only
from accnp.lazy_imports import imported
from accnp.primitives.kinds import broadcast_to, full, zeros_like_aval
from accnp.primitives.unrolled import is_unrolled, unrolled

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import Flags, Tools

__all__ = [
    "call", "check_carry", "leading", "place_flagged", "select_flagged", "split",
    "take_wholes", "with_outputs", "zeros_for",
]  # fmt: skip


def call(name: str, inputs: Sequence[Node], params: Params) -> list[Node]:
    """Record a call op and return its results."""
    op = OPS[name]
    if state.ruled:
        inputs, params = _pass_closed_values(op, inputs, params)
    if is_unrolled(op, inputs, params):
        return unrolled(op, inputs, params)
    if any_value_spans_processes() and op.kind == "loop" and not types_only():
        shards = imported("accnp.primitives.loops_on_shards")  # in programs of processes only
        if shards.is_over_processes(inputs, params):
            return shards.call_on_shards(op, inputs, params)
    return list(items(record(op, tuple(inputs), params)))


def take_wholes(xs: Sequence[Node]) -> Sequence[Node]:
    """Return the operands of a call; in a function of shards, the wholes of arrays over processes.

    Raises:
        NotImplementedError: the function closes over an array that is sharded on Explicit axes.
    """
    if not in_shard_map():
        return xs
    return imported("accnp.primitives.shards").gather_operands(xs)


def _pass_closed_values(
    op: Op, inputs: Sequence[Node], params: Params
) -> tuple[Sequence[Node], Params]:
    """Turn traced and pending values over which derivatives close into operands; user-defined rules
    may close over such values."""
    for key, (place, count) in op.program_constants.items():
        value = params[key]
        graphs: tuple[Graph, ...] = as_tuple(value)
        free = [x for g in graphs for x in _closed_over(g)]
        outer = list({id(x): x for x in free if x.value is None}.values())
        if not outer:
            continue
        wide = tuple(_with_leading(g, outer) for g in graphs)
        at = params["cond_nconsts"] if place < 0 else place
        inputs = [*inputs[:at], *outer, *inputs[at:]]
        params = {**params, key: wide if isinstance(value, tuple) else wide[0]}
        if count:
            params[count] += len(outer)
        if isinstance(flags := params.get("prevent_cse"), tuple):
            params["prevent_cse"] = (*(True,) * len(outer), *flags)
    return inputs, params


def _closed_over(graph: Graph) -> list[Node]:
    if "closed over" not in graph.extra:
        graph.extra["closed over"] = graph.free()
    return graph.extra["closed over"]


def _with_leading(graph: Graph, outer: Sequence[Node]) -> Graph:
    """Return the program with additional leading inputs for these nodes."""
    n = len(outer)

    def run(nodes: list[Node]) -> list[Node]:
        closed = dict(zip(map(id, outer), nodes[:n], strict=True))
        return evaluate(graph, nodes[n:], closed)

    return build(run, [*[x.aval for x in outer], *graph.in_avals], graph.name)


def select_flagged(flags: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
    """Return the elements of `xs` whose flag is true."""
    return [x for f, x in zip(flags, xs, strict=True) if f]


def place_flagged(flags: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
    """Invert `select_flagged`: put `xs` where the flags are true, and None elsewhere."""
    rest = iter(xs)
    return [next(rest) if f else None for f in flags]


def zeros_for(cts: Sequence[Node | None], avals: Sequence[Aval]) -> list[Node]:
    """Replace missing cotangents or tangents by zeros."""
    return [zeros_like_aval(a) if c is None else c for c, a in zip(cts, avals, strict=True)]


def leading(size: int, x: Node, batched: bool) -> Node:
    """Broadcast a node to the leading batch axis if it has none."""
    if batched:
        return x
    shape = x.aval.shape
    return broadcast_to(x, (size, *shape), tuple(range(1, len(shape) + 1)))


def check_carry(name: str, carry: Sequence[Aval], outs: Sequence[Aval]) -> None:
    """Raise TypeError if the body of a loop returns a carry of another type than it receives. The
    public function has checked the user's body, but user-defined rules may return other types."""
    for i, (a, b) in enumerate(zip(carry, outs, strict=False)):
        if a is not b and (a.shape, a.dtype) != (b.shape, b.dtype):
            raise TypeError(
                f"{name} body function carry input and carry output must have equal types, but "
                f"they differ for carry {i}; got {a} and {b}; let the rules of custom_vmap and "
                "custom_vjp return values of the types that their functions have"
            )


def does_io(graph: Graph) -> bool:
    """Return whether a program has effects that must not run for examples outside of the branch."""
    inner = [g for node in graph.effects for g in graphs_in(node.params)]
    return any(n.op.kind == "callback" and n.op.jvp is not ZERO for n in graph.effects) or any(
        does_io(g) for g in inner
    )


def instantiate(t: Node | None, x: Node) -> Node:
    """Return a tangent; None becomes zeros."""
    return zeros_like_aval(x.aval) if t is None else t


def union(masks: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    """Return the elementwise "or" of masks."""
    return tuple(any(column) for column in zip(*masks, strict=True))


def split(xs: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """Split a list into parts of these sizes and the rest."""
    out, at = list[list[Any]](), 0
    for n in sizes:
        out.append(list(xs[at : at + n]))
        at += n
    out.append(list(xs[at:]))
    return out


def with_outputs(graph: Graph, outputs: Sequence[Node]) -> Graph:
    """Return the same program with other outputs."""
    return Graph(
        graph.inputs,
        outputs,
        graph.name,
        graph.in_names,
        graph.level,
        graph.recorded,
        graph.trace,
    )


# --- cond ---


def _cond_infer(index: Aval, *xs: Aval, branches: tuple[Graph, ...]) -> tuple[Aval, ...]:
    first, *others = [branch.out_avals for branch in branches]
    for outs in others:
        for i, (a, b) in enumerate(zip(first, outs, strict=True)):
            if a is not b and (a.shape, a.dtype) != (b.shape, b.dtype):
                raise ValueError(
                    f"cond: branches have mismatched return types for result {i}; got {a} and {b}; "
                    "let the rules of custom_vmap and custom_vjp return values of the types that "
                    "their functions have"
                )
    return first


def _cond_numpy(
    index: np.ndarray, *xs: np.ndarray, branches: tuple[Graph, ...]
) -> list[np.ndarray]:
    return interpret(branches[int(index)], xs)


def _cond_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    branches = params["branches"]
    which = tuple(t is not None for t in ts[1:])
    outs = union([tools.jvp_graph(g, which)[1] for g in branches])
    graphs = tuple(tools.jvp_graph(g, which, outs)[0] for g in branches)
    results = call("cond", [*xs, *select_flagged(which, ts[1:])], {"branches": graphs})
    n = len(outs)
    return results[:n], place_flagged(outs, results[n:])


def _cond_linearize(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    """Run the branch that is taken and return its residuals. All branches share one list of
    residuals, in which each fills its own slots. Residuals that are operands are not stored."""
    branches = params["branches"]
    mine = tuple(t is not None for t in ts[1:])
    outs = union([tools.linearize_graph(g, mine)[3] for g in branches])
    n = len(outs)
    parts = [_BranchParts(g, n, *tools.linearize_graph(g, mine, outs)) for g in branches]
    slots: list[Any] = []
    for part in parts:
        part.assign_slots(slots)
    operands = sorted({i for part in parts for i in part.operands})
    n_moving = sum(mine)

    def forward(part: _BranchParts) -> Graph:
        def run(nodes: list[Node]) -> list[Node]:
            results = evaluate(part.primal, nodes)
            by_slot = dict(zip(part.places, results[n:], strict=True))
            rest = [by_slot[i] if i in by_slot else zeros_like_aval(a) for i, a in enumerate(slots)]
            return [*results[:n], *rest]

        return build(run, part.primal.in_avals, part.primal.name)

    def linear(part: _BranchParts) -> Graph:
        def run(nodes: list[Node]) -> list[Node]:
            stored, values, moving = split(nodes, len(slots), len(operands))
            by_number = dict(zip(operands, values, strict=True))
            return evaluate(part.linear, [*part.residuals(stored, by_number), *moving])

        operand_avals = [part.primal.in_avals[i] for i in operands]
        moving = part.linear.in_avals[len(part.linear.inputs) - n_moving :]
        return build(run, [*slots, *operand_avals, *moving], part.linear.name)

    results = call("cond", xs, {"branches": tuple(map(forward, parts))})
    linear_operands = [*results[n:], *[xs[1 + i] for i in operands], *select_flagged(mine, ts[1:])]
    tangents = call("cond", [xs[0], *linear_operands], {"branches": tuple(map(linear, parts))})
    return results[:n], place_flagged(outs, tangents)


class _BranchParts:
    """The derivative of a branch: a primal part that returns the outputs and then residuals, a
    linear part, and the source of each residual."""

    __slots__ = ("linear", "operands", "places", "primal", "sources")

    def __init__(
        self, graph: Graph, n: int, primal: Graph, linear: Graph, n_res: int, _: Flags
    ) -> None:
        where = {id(x): i for i, x in enumerate(primal.inputs)}
        residuals = primal.outputs[len(primal.outputs) - n_res :] if n_res else ()
        self.sources = [where.get(id(x)) for x in residuals]  # the operand's number, or None
        self.operands = [i for i in self.sources if i is not None]
        computed = [x for x, i in zip(residuals, self.sources, strict=True) if i is None]
        self.primal = with_outputs(primal, [*primal.outputs[:n], *computed])
        self.linear = linear
        self.places: list[int] = []  # slots of the computed residuals in the shared list

    def assign_slots(self, slots: list[Any]) -> None:
        """Find a slot of the right type for each computed residual; append to the list if none is
        free."""
        n = len(self.sources) - len(self.operands)
        for aval in self.primal.out_avals[len(self.primal.outputs) - n :] if n else ():
            free = [i for i, s in enumerate(slots) if s is aval and i not in self.places]
            if not free:
                free = [len(slots)]
                slots.append(aval)
            self.places.append(free[0])

    def residuals(self, stored: Sequence[Node], operands: dict[int, Node]) -> list[Node]:
        """Return the residuals, given the shared list and the operands."""
        places = iter(self.places)
        return [stored[next(places)] if i is None else operands[i] for i in self.sources]


def _cond_transpose(
    cts: Sequence[Node | None], xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    index, *operands = xs
    assert isinstance(index, Node)
    linear = [isinstance(x, Linear) for x in operands]
    fixed = [not f for f in linear]
    live = [ct is not None for ct in cts]
    order = [
        *select_flagged(fixed, range(len(operands))),
        *select_flagged(linear, range(len(operands))),
    ]
    reordered = [reorder(g, order) for g in params["branches"]]
    reordered = [with_outputs(g, select_flagged(live, g.outputs)) for g in reordered]
    graphs = tuple(tools.transpose_graph(g, sum(fixed)) for g in reordered)
    results = call(
        "cond",
        [index, *select_flagged(fixed, operands), *select_flagged(live, cts)],
        {"branches": graphs},
    )
    return [None, *place_flagged(linear, results)]


def reorder(graph: Graph, order: Sequence[int]) -> Graph:
    """Return a graph whose input i is the given graph's input `order[i]`."""
    if list(order) == list(range(len(graph.inputs))):
        return graph

    def run(nodes: list[Node]) -> list[Node]:
        back: list[Any] = [None] * len(nodes)
        for node, i in zip(nodes, order, strict=True):
            back[i] = node
        return evaluate(graph, back)

    return derive_graph(graph, ("reorder", *order), run, [graph.in_avals[i] for i in order])


def _cond_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    branches = params["branches"]
    if batched[0]:
        if any(does_io(g) for g in branches):
            raise NotImplementedError("IO effect not supported in vmap-of-cond.")
        operands = [leading(size, x, b) for x, b in zip(xs[1:], batched[1:], strict=True)]
        n = len(branches[0].outputs)
        every = (True,) * len(operands)
        types = [x.aval for x in operands]
        masks = imported("accnp.primitives.masked")  # imported with the first batch only
        # Branches that call Python functions run for all rows.
        calls = any(g.calls_python for g in branches)
        inplace: dict[int, Any] = {} if calls else masks.in_place(branches)
        in_place_results: dict[int, Node] = {}
        if inplace:
            avals = [make_aval((), xs[0].aval.dtype), *branches[0].in_avals]

            def run(nodes: list[Node]) -> list[Node]:
                return masks.masked_branches(branches, inplace, nodes[0], nodes[1:])

            one = derive_graph(branches[0], ("masked", branches), run, avals)
            operand_avals = [xs[0].aval, *types]
            graph = tools.batch_graph(
                one, size, (True, *every), (True,) * len(inplace), operand_avals
            )[0]
            in_place_results = dict(zip(inplace, evaluate(graph, [xs[0], *operands]), strict=True))
        cases: list[list[Node]] = []
        for k, g in enumerate(branches[: None if calls or len(in_place_results) < n else 0]):
            here = o.eq(xs[0], full((), k, xs[0].aval.dtype))
            graph = tools.batch_graph(g, size, every, (True,) * n, types)[0]
            cases.append(evaluate(graph, [o.taken_rows(x, here) for x in operands]))
        return [
            in_place_results[c]
            if c in in_place_results
            else select(xs[0], [case[c] for case in cases])
            for c in range(n)
        ], [True] * n
    mine, types = tuple(batched[1:]), [x.aval for x in xs[1:]]
    none = (False,) * len(branches[0].outputs)
    outs = union([tools.batch_graph(g, size, mine, none, types)[1] for g in branches])
    graphs = tuple(tools.batch_graph(g, size, mine, outs, types)[0] for g in branches)
    return call("cond", xs, {"branches": graphs}), list(outs)


def select(index: Node, cases: Sequence[Node]) -> Node:
    """Select for each row the case whose number is `index` (bool or int32, one per row)."""
    if len(cases) == 1:
        return cases[0]
    shape = cases[0].aval.shape
    if len(cases) == 2 and index.aval.dtype.kind != "b":
        index = o.convert_element_type(index, new_dtype=np.dtype(bool), weak_type=False)
    return o.select_n(broadcast_to(index, shape, (0,)), *cases)


# --- rows of a batch that take a branch ---


def _taken_rows_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    t, (x, here) = ts[0], xs
    if t is None:
        return [y], [None]
    which = broadcast_to(here, x.aval.shape, tuple(range(here.aval.ndim)))
    return [y], [o.select_n(which, zeros_like_aval(t.aval), t)]


def _taken_rows_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    return [o.taken_rows(*map(leading, (size, size), xs, batched))], [True]


# The identity, whose derivative is zero in rows that do not take the branch: the branch's
# derivative may be infinite or nan there.
register(
    Op(
        "taken_rows",
        "mark",
        lambda x, here: x,
        numpy=lambda x, here: x,
        jvp=_taken_rows_jvp,
        batch=_taken_rows_batch,
    )
)

# --- declarations ---


def loop_op(
    name: str,
    control: str,
    infer: Callable[..., tuple[Aval, ...]],
    numpy: Callable[..., list[np.ndarray]],
    *,
    jvp: Callable[..., Any],
    linearize: Callable[..., Any],
    transpose: Callable[..., Any],
    batch: Callable[..., Any],
    program_constants: Mapping[str, tuple[int, str]],
) -> Op:
    """Declare a control-flow op of the form "cond", "while" or "scan" (`Op.control`)."""
    return register(
        Op(
            name,
            "loop",
            infer,
            numpy=numpy,
            jvp=jvp,
            linearize=linearize,
            transpose=transpose,
            batch=batch,
            cost=1000,
            control=control,
            program_constants=program_constants,
        )
    )


cond = loop_op(
    "cond",
    "cond",
    _cond_infer,
    _cond_numpy,
    jvp=_cond_jvp,
    linearize=_cond_linearize,
    transpose=_cond_transpose,
    batch=_cond_batch,
    program_constants={"branches": (1, "")},
)
