"""Tracing of the bodies of loops and branches.

`record_body` traces a user's function on given avals. `close` turns what a graph closes over into
inputs, and the checks compare the types that a body accepts and returns; their errors name the
difference. The functions from `without_refs` to `write` pass the contents of references in and out
of bodies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp import dtypes, errors, pytree
from accnp.api.arguments.convert import as_node, cast, is_host_value
from accnp.api.tracing.argument_names import argument_names
from accnp.array_type import is_traced, wrap
from accnp.ir.aval import Aval, keeps_sharding, make_aval, mesh_sharding, on_devices
from accnp.ir.graph import Graph
from accnp.ir.node import Node, arg
from accnp.ir.trace import current, state
from accnp.primitives.control import take_wholes
from accnp.pytree import PyTreeDef, flatten_arrays
from accnp.trace_fn import function_place, trace

__all__ = [
    "Body", "CapturedReference", "Loop", "Reference", "as_leaves", "build_carry", "check_branches",
    "check_carry", "check_result", "close", "forwarded_inputs", "promoted_carry_types",
    "record_body", "ref_contents", "refs_of", "row_refs", "same_type", "set_refs", "type_text",
    "values", "with_inputs", "with_refs",
    "without_refs", "write",
]  # fmt: skip


class Body:
    """A traced user function: its graph, the structure of its result, the references that it closes
    over, and the results that are host values, by position."""

    __slots__ = ("captures", "constants", "graph", "spec")

    def __init__(
        self,
        graph: Graph,
        spec: PyTreeDef,
        captures: Sequence[CapturedReference] = (),
        constants: dict[int, Any] | None = None,
    ) -> None:
        self.constants = constants or {}
        self.graph = graph
        self.spec = spec
        self.captures = captures

    @property
    def avals(self) -> tuple[Aval, ...]:
        """The avals of the results."""
        return self.graph.out_avals

    def names(self, root: str) -> list[str]:
        """Return a name for each leaf of the result."""
        return pytree.leaf_names(self.spec.unflatten(range(len(self.avals))), root)


class Reference:
    """Base class of `Ref`, which has the methods; used to recognize references."""

    __slots__ = ()
    home: Any  # the trace that created it; None outside of traces

    @property
    def aval(self) -> Any:
        """The type."""
        raise NotImplementedError

    def here(self, content: Any) -> Any:
        """Return the reference that represents this one in a nested trace, with that content."""
        raise NotImplementedError


class CapturedReference:
    """A closed-over reference in the body of a loop or a branch.

    Attributes:
        ref: the reference.
        leaf: the input of the body's program with the content at its start.
        content: the current content, an Array.
    """

    __slots__ = ("content", "leaf", "ref")

    def __init__(self, ref: Any, leaf: Node) -> None:
        self.ref = ref
        self.leaf = leaf
        self.content = wrap(leaf)


def without_refs(
    fns: Sequence[Callable[..., Any]], operands: tuple, name: str
) -> tuple[Sequence[Callable[..., Any]], tuple]:
    """Return functions that close over the references among the operands, and the other leaves.

    Without references, the functions and operands are returned unchanged.
    """
    leaves, spec = flatten_arrays(operands)
    refs = [x for x in leaves if isinstance(x, Reference)]
    if not refs:
        return fns, operands
    if len({id(x) for x in refs}) < len(refs):
        raise ValueError(f"{name}: a reference can be passed only once; got {refs}; pass it once")

    def of_rest(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def closed(*rest: Any) -> Any:
            left = iter(rest)
            return fn(
                *spec.unflatten([x if isinstance(x, Reference) else next(left) for x in leaves])
            )

        return closed

    return [of_rest(fn) for fn in fns], tuple([x for x in leaves if not isinstance(x, Reference)])


def row_refs(f: Any, xs: Any, name: str) -> tuple[Any, Any, Callable[[Any], Any]] | None:
    """Prepare a scan over rows of references.

    Returns a step that takes rows of their contents and also returns the new rows, the contents,
    and a function that stores the new contents in the references. Returns None without references.
    """
    x_leaves, spec = flatten_arrays(xs)
    refs = [x for x in x_leaves if isinstance(x, Reference)]
    if not refs:
        return None
    contents = iter(ref_contents(refs, name))
    rows = [wrap(next(contents)) if isinstance(x, Reference) else x for x in x_leaves]

    @functools.wraps(f)
    def step(carry: Any, row: Any) -> Any:
        pairs = zip(x_leaves, flatten_arrays(row)[0], strict=True)
        leaves = [x.here(r) if isinstance(x, Reference) else r for x, r in pairs]
        carry, y = f(carry, spec.unflatten(leaves))
        return carry, (
            y,
            [wrap(ref_contents([x], name)[0]) for x in leaves if isinstance(x, Reference)],
        )

    def put(outputs: Any) -> Any:
        set_refs(refs, [x._node for x in outputs[1]], name)
        return outputs[0]

    return step, spec.unflatten(rows), put


def refs_of(bodies: Sequence[Body]) -> list[Any]:
    """Return the references that any of the bodies uses."""
    return list({id(c.ref): c.ref for b in bodies for c in b.captures}.values())


def with_refs(
    body: Body, refs: Sequence[Any], after: int | None = None, before: int | None = None
) -> Graph:
    """Return a body's program with the contents of references as additional inputs and outputs.

    They are inserted after the first `after` inputs and the first `before` outputs, or at the end.
    """
    graph = body.graph
    if not refs:
        return graph
    own = {id(capture.ref): capture for capture in body.captures}
    ins, outs = [], []
    for ref in refs:
        capture = own.get(id(ref))
        leaf = arg(ref.type, graph.trace) if capture is None else capture.leaf
        ins.append(leaf)
        outs.append(leaf if capture is None else capture.content._node)
    a = len(graph.inputs) if after is None else after
    b = len(graph.outputs) if before is None else before
    return with_inputs(
        graph,
        [*graph.inputs[:a], *ins, *graph.inputs[a:]],
        [*graph.outputs[:b], *outs, *graph.outputs[b:]],
    )


def ref_contents(refs: Sequence[Any], name: str) -> list[Node]:
    """Return the current contents of references as operands."""
    return [cast(ref.place(name).content._node, ref.type.dtype) for ref in refs]


def set_refs(refs: Sequence[Any], nodes: Sequence[Node], name: str) -> None:
    """Store the new contents that a loop or a branch returned in its references."""
    for ref, node in zip(refs, nodes, strict=True):
        write(ref.place(name), wrap(node))


def write(place: Any, content: Any) -> None:
    """Store an array in a reference or a `CapturedReference`; record the old content if a rule
    needs it."""
    if state.written is not None:
        state.written.setdefault(id(place), (place, place.content))
    place.content = content


def values(spec: PyTreeDef, nodes: Sequence[Node]) -> Any:
    """Build the tree of results that users see."""
    return spec.unflatten([wrap(n) for n in nodes])


def build_carry(spec: PyTreeDef, nodes: Sequence[Node], init: Any, fixed: Sequence[bool]) -> Any:
    """Build the tree of a carry; host values that no step changes are returned as they were."""
    leaves = zip(flatten_arrays(init)[0], nodes, fixed, strict=True)
    return spec.unflatten(
        [x if f and _can_return_host_value(x, n) else wrap(n) for x, n, f in leaves]
    )


def _can_return_host_value(x: Any, node: Node) -> bool:
    # A number that the body converts becomes an array of its type, even if no step changes it.
    if isinstance(x, bool | np.ndarray | np.generic):
        return True
    return isinstance(x, int | float | complex) and node.aval.weak_type


def record_body(
    fn: Callable[..., Any],
    name: str,
    avals: Sequence[Aval],
    spec: PyTreeDef,
    *,
    of: Any = None,
    names: Sequence[str] | None = None,
    refs: bool = False,
) -> Body:
    """Trace `fn` on leaves of these avals, from which `spec` builds its positional arguments.

    `of` is the user's function, if `fn` wraps it, and `names` are the names of the leaves in
    messages, if they differ from those of `of`. With `refs`, `fn` may close over references.
    """
    of = fn if of is None else of
    if names is None:
        names = argument_names(of, spec.unflatten(range(len(avals))), {})
    out_spec: Any = None
    captures: dict[int, CapturedReference] = {}
    constants: dict[int, Any] = {}

    def on_nodes(nodes: list[Node]) -> list[Node]:
        nonlocal out_spec, constants
        if refs and state.abstract is not None:
            state.abstract.captures = captures
        result = fn(*spec.unflatten([wrap(n) for n in nodes]))
        leaves, out_spec = flatten_arrays(result)
        constants = {i: x for i, x in enumerate(leaves) if is_host_value(x)}
        for x in leaves:
            if isinstance(x, Reference):
                raise ValueError(
                    f"{name}: a reference cannot be returned; got {x.aval!r}; return its value, "
                    "ref[...]"
                )
        return [result_node(x, result, i, name) for i, x in enumerate(leaves)]

    graph = trace(on_nodes, avals, of=of, transform=name, names=names)
    return Body(graph, out_spec, list(captures.values()), constants)


class Loop:
    """Description of a loop, for error messages.

    Attributes:
        name: the public function.
        fn: the user's body.
        carry: the names of the leaves of the carry in the body.
        rows: the names of the leaves of a row.
        part: a function that extracts the part of the carry that the user passed.
        kind: distinguishes loops with the same name and body.
    """

    __slots__ = ("carry", "fn", "kind", "name", "part", "rows")

    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        carry: Sequence[str],
        rows: Sequence[str] = (),
        part: Callable[[Any], Any] = lambda carry: carry,
        kind: Any = None,
    ) -> None:
        self.name = name
        self.fn = fn
        self.carry = list(carry)
        self.rows = list(rows)
        self.part = part
        self.kind = kind


def as_leaves(tree: Any, name: str, root: str) -> tuple[list[Node], PyTreeDef]:
    """Flatten a tree of operands into nodes.

    Raises:
        TypeError: a leaf is not an array or a number; the message has its path.
        ValueError: a leaf is a reference.
    """
    leaves, spec = flatten_arrays(tree)
    nodes = []
    for i, x in enumerate(leaves):
        if isinstance(x, Reference):
            path = pytree.leaf_names(tree, root)[i]
            raise ValueError(
                f"{name}: a reference cannot be carried; got {x.aval!r} at {path}; close over it"
            )
        try:
            nodes.append(as_node(x, name))
        except TypeError:
            raise errors.not_an_array_error(name, pytree.leaf_names(tree, root)[i], x) from None
    return list(take_wholes(nodes)), spec


def result_node(x: Any, result: Any, i: int, name: str) -> Node:
    """Return the node of leaf `i` of the result of a user's function."""
    try:
        return as_node(x, name)
    except TypeError:
        path = pytree.leaf_names(result, "")[i]
        if isinstance(x, Reference):
            raise ValueError(
                f"{name}: the function returned a reference, at output{path}; got {x.aval!r}; "
                "return its value, ref[...]"
            ) from None
        raise TypeError(
            f"{name}: the function returned a value of type {type(x)}"
            f"{f' at output component {path}' if path else ''}, which is not a valid JAX type; "
            f"got {x!r}; return arrays, numbers, None, and containers of them"
        ) from None


def concrete(node: Node) -> bool:
    """Return whether the value can be computed now and no trace should record the choice."""
    return current() is None and not is_traced(node)


def close(graphs: Sequence[Graph]) -> list[Node]:
    """Turn the nodes that graphs close over into leading inputs, the same for all graphs.

    Returns these nodes. The nodes of a new graph are not shared yet, so they are changed in place
    instead of being recorded again.
    """
    by_id: dict[int, Node] = {}
    for g in graphs:
        for x in g.free():
            by_id.setdefault(id(x), x)
    outer = list(by_id.values())
    for g in graphs:
        leaves = [arg(x.aval, g.trace) for x in outer]
        new = {id(x): leaf for x, leaf in zip(outer, leaves, strict=True)}
        if new:
            _replace(g, new, leaves)
    return outer


def _replace(graph: Graph, new: dict[int, Node], leaves: list[Node]) -> None:
    for node in graph.nodes:
        if any(id(x) in new for x in node.inputs):
            node.inputs = tuple([new.get(id(x), x) for x in node.inputs])
    graph.outputs = tuple([new.get(id(x), x) for x in graph.outputs])
    graph.inputs = (*leaves, *graph.inputs)
    graph._order = None


def with_inputs(graph: Graph, inputs: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """Return a graph of the same nodes with other inputs and outputs."""
    names = ()
    return Graph(inputs, outputs, graph.name, names, graph.level, graph.recorded, graph.trace)


def forwarded_inputs(graph: Graph) -> list[int | None]:
    """For each output, return the position of the input that it equals, or None."""
    where = {id(x): i for i, x in enumerate(graph.inputs)}
    return [where.get(id(x)) for x in graph.outputs]


def same_type(a: Aval, b: Aval) -> bool:
    """Return whether shape and dtype are equal."""
    return a.shape == b.shape and a.dtype == b.dtype


def type_text(a: Aval) -> str:
    """Return a type as errors show it, such as "float32[3]"."""
    return f"{a.dtype.name}[{','.join(map(str, a.shape))}]"


def promoted_carry_types(avals: Sequence[Aval], outs: Sequence[Aval]) -> list[Aval]:
    """Return the types of a carry: initial values of weak types take the type that the body
    returns, and values that are not sharded become sharded as its results are."""
    new = []
    for a, out in zip(avals, outs, strict=True):
        if a.weak_type and not same_type(a, out):
            dtype, _ = dtypes.promote(((a.dtype, True), (out.dtype, out.weak_type)))
            a = make_aval(a.shape, dtype)
        if keeps_sharding(out) and a.shape == out.shape and _is_whole(a):
            a = on_devices(a, out.devices)
        new.append(a)
    return new


def _is_whole(aval: Aval) -> bool:
    """Return whether each device has the whole value."""
    return not keeps_sharding(aval) or mesh_sharding(aval).is_fully_replicated


def check_carry(loop: Loop, carry: Any, avals: Sequence[Aval], body: Body) -> None:
    """Compare the carry that a loop's body takes with the carry that it returns.

    Raises:
        TypeError: structures or types differ; the message has the path and both types.
    """
    place = function_place(loop.fn)
    where = f"{place[0]} ({place[1]}:{place[2]})"
    avals, spec = _user_types(flatten_arrays(carry)[1], avals)
    outs, out_spec = _user_types(body.spec, body.avals)
    if spec != out_spec:
        carry_in, carry_out = loop.part(_types(spec, avals)), loop.part(_types(out_spec, outs))
        raise TypeError(
            f"{loop.name} body function carry input and carry output must have the "
            f"same pytree structure, but they differ for {where}; "
            f"{_difference(carry_in, carry_out, ('the input', 'the output'))}; "
            "return that of the input"
        )
    wrong = [
        f"the input carry {'component ' if not n.isidentifier() else ''}{n} has type "
        f"{type_text(a)} but the corresponding output carry component has type "
        f"{type_text(b)}{_type_difference(a, b)}"
        for n, a, b in zip(loop.carry, avals, outs, strict=True)
        if not same_type(a, b)
    ]
    if wrong:
        raise TypeError(
            f"{loop.name} body function carry input and carry output must have equal types, "
            f"but they differ for {where}: {'; '.join(wrong)}. "
            "Convert the initial value, or the result of the function"
        )


def _user_types(spec: PyTreeDef, avals: Sequence[Aval]) -> tuple[list[Aval], PyTreeDef]:
    """Return types and structure as users see them: those of PRNG keys, not of their key data."""
    return spec.shown_leaves(avals), spec.shown()


def _types(spec: PyTreeDef, avals: Sequence[Aval]) -> Any:
    """Return a tree of types as texts, for messages."""
    return spec.unflatten([type_text(a) for a in avals])


def _difference(first: Any, other: Any, labels: tuple[str, str]) -> str:
    """Describe where two trees of types differ in structure."""
    mismatch = pytree.mismatch("", first, other)
    if mismatch is None:
        mismatch, labels = pytree.mismatch("", other, first), (labels[1], labels[0])
    place = str(mismatch).split("structures ", 1)[1].rsplit("; ", 1)[0]
    return f"they differ {place} (the first is {labels[0]}, the second is {labels[1]})"


def _type_difference(a: Aval, b: Aval) -> str:
    parts = []
    if a.dtype != b.dtype:
        parts.append("dtypes")
    if a.shape != b.shape:
        parts.append("shapes")
    return f", so the {' and '.join(parts)} do not match"


def check_branches(
    name: str, labels: tuple[str, str], fns: tuple[Any, Any], first: Body, second: Body
) -> None:
    """Compare the results of two branches.

    Raises:
        TypeError: structures or types differ; the message has the path and both types.
    """
    a, b = labels
    places = [function_place(f) for f in fns]
    where = "; ".join(
        f"{label} is {p[0]} at {p[1]}:{p[2]}" for label, p in zip(labels, places, strict=True)
    )
    first_avals, spec = _user_types(first.spec, first.avals)
    second_avals, second_spec = _user_types(second.spec, second.avals)
    if spec != second_spec:
        x, y = _types(spec, first_avals), _types(second_spec, second_avals)
        raise TypeError(
            f"{name} branch outputs must have the same pytree structure, but "
            f"{_difference(x, y, (f'the result of {a}', f'the result of {b}'))}; {where}; "
            "return the same structure from both"
        )
    paths = first.names("")
    wrong = [
        f"the output of {a}{f' at path {p}' if p else ''} has type {type_text(u)} but the "
        f"corresponding output of {b} has type {type_text(v)}{_type_difference(u, v)}"
        for p, u, v in zip(paths, first_avals, second_avals, strict=True)
        if not same_type(u, v)
    ]
    if wrong:
        raise TypeError(
            f"{name} branches must have equal output types but they differ. "
            f"{'; '.join(wrong)} ({where}); "
            "convert or broadcast one of them"
        )


def check_result(
    name: str,
    fn: Any,
    spec: PyTreeDef,
    avals: Sequence[Aval],
    body: Body,
    what: str = "the function",
    dtypes: bool = True,
) -> None:
    """Compare the result of a user's function with the type that it must return; without `dtypes`
    only structure and shapes.

    Raises:
        IncompatibleShapesError: structures or types differ; the message has the path and both.
    """
    place = function_place(fn)
    where = f"{place[0]} at {place[1]}:{place[2]}"
    avals, spec = _user_types(spec, avals)
    outs, out_spec = _user_types(body.spec, body.avals)
    if spec != out_spec:
        expected, returned = _types(spec, avals), _types(out_spec, outs)
        raise errors.IncompatibleShapesError(
            f"{name}: {what} must return the structure of its arguments; "
            f"{_difference(expected, returned, ('its argument', 'its result'))}; {where}"
        )
    wrong = [
        f"{what} returns{p} {type_text(b)} but must return {type_text(a)}{_type_difference(a, b)}"
        for p, a, b in zip(body.names(""), avals, outs, strict=True)
        if a.shape != b.shape or (dtypes and a.dtype != b.dtype)
    ]
    if wrong:
        raise errors.IncompatibleShapesError(f"{name}: {'; '.join(wrong)} ({where})")
