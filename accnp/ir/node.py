"""Nodes and the recorder, the one entry through which every operation becomes part of a graph.

`record(op, inputs, params)` infers the abstract value of the result (memoized per op), determines
the trace to which the new node belongs, and returns the `Node` without computing anything. Outside
of traces it also decides when pending nodes are handed to the engine. The module creates leaves
(`literal`, `const`, `arg`) and marks, too. The C code in `_native/graph.c` takes over the common
case of eager arrays.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from accnp._native import Form, Node, install_recording, set_pending_limit
from accnp.caches import BoundedCache
from accnp.dtypes.names import NARROW, float0
from accnp.errors import UnexpectedTracerError, UnsupportedDtypeError
from accnp.ir.aval import (
    Aval,
    ShardedDevices,
    any_value_spans_processes,
    make_aval,
    on_devices,
    result_devices,
    spans_processes,
)
from accnp.ir.mesh_axis import communicates
from accnp.ir.op import CALLS, OPS, ZERO, Op, as_tuple, install_recorder, register
from accnp.ir.trace import (
    DEAD,
    OWN,
    Escaped,
    Trace,
    frame_belongs,
    is_part_of_accnp,
    join,
    line_of,
    mapping,
    outside_traces,
    state,
    tracing,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.ir.op_types import Params


__all__ = [
    "EMPTY", "Form", "Node", "arg", "const", "forget", "has_effect", "independent_nodes",
    "install_distribution", "install_engine", "is_user_held_scalar", "items", "line_of", "literal",
    "literal_of_array", "mark", "owning_trace", "record", "refuse_float0", "run_effect",
    "site_text", "together", "value_of",
]  # fmt: skip

EMPTY: Params = {}
_T = TypeVar("_T")

# Outside of traces, a chain of this many pending operations is handed to the engine, so that eager
# loops run in constant memory.
PENDING_LIMIT = 64
HEAVY = 1 << 22  # updates whose operands have more bytes than this do not form pending chains
_on_deep: list[Callable[[Node], None]] = []
# Runs a node immediately if it was recorded outside of traces: callbacks, and collectives between
# processes, whose order must be the same in all processes.
_perform: list[Callable[[Node], None]] = []
_values: list[Callable[[Node], np.ndarray]] = []
# Decides how an operation on sharded operands is executed; see `sharding/partitioning.py`.
_distribute: list[Callable[[Op, tuple[Node, ...], Params, Any], Any]] = []
# Kinds whose result types are not memoized: their parameters are programs or user functions, or the
# inference is trivial.
_OWN_TYPE = (*CALLS, "mark", "callback", "item")


def _create_form(op: Op, avals: Sequence[Aval], aval: Aval | tuple[Aval, ...]) -> Form:
    """Create the memo entry of an operation on operands of these types; see `Form`."""
    return Form(op, op.updated_operand, aval, any([x.dtype in NARROW for x in avals]))


def _leaf_infer(*_: object, **__: object) -> Aval:
    raise TypeError("leaf: a leaf cannot be recorded; create it with literal, const or arg")


def _identity(x: _T, **_: object) -> _T:
    return x


def _item_infer(avals: Sequence[Aval], *, index: int) -> Aval:
    return avals[index]


def _item_numpy(xs: Sequence[np.ndarray], *, index: int) -> np.ndarray:
    return xs[index]


def _together_infer(*avals: Aval) -> tuple[Aval, ...]:
    return avals


LITERAL = register(Op("literal", "leaf", _leaf_infer))
CONST = register(Op("const", "leaf", _leaf_infer))
ARG = register(Op("arg", "leaf", _leaf_infer))
MARK = register(Op("mark", "mark", _identity, numpy=_identity))
ITEM = register(Op("item", "item", _item_infer, numpy=_item_numpy))
# Holds results that were recorded one by one; taking one of them gives its node.
TOGETHER = Op("together", "mark", _together_infer)

_getframe = sys._getframe  # pyright: ignore[reportPrivateUsage]


def user_site() -> tuple[CodeType, int] | None:
    """Return (code object, instruction offset) of the innermost frame outside the package."""
    return _find_user_site(_getframe(2))


def _find_user_site(frame: FrameType | None) -> tuple[CodeType, int] | None:
    while frame is not None:
        package = frame.f_globals.get("__package__")
        own = OWN.get(package)
        if not (is_part_of_accnp(package) if own is None else own):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None


def site_text(node: Node) -> str:
    """Return `file:line (function)` of the user's line that recorded a node."""
    return line_of(node.site)


def _place_results(
    aval: Aval | tuple[Aval, ...], where: ShardedDevices | tuple[ShardedDevices, ...]
) -> Aval | tuple[Aval, ...]:
    """Return the aval (or avals) of a result on other devices."""
    if isinstance(aval, tuple):
        return tuple([on_devices(a, d) for a, d in zip(aval, where, strict=True)])
    return on_devices(aval, where)


def has_effect(op: Op, params: Params) -> bool:
    """Return whether an operation, or one in the programs it contains, has an effect."""
    if op.effect or op.kind not in CALLS:
        return op.effect
    for value in params.values():
        for program in as_tuple(value):
            if getattr(program, "effects", ()):
                return True
    return False


def calls_python(params: Params) -> bool:
    """Return whether a program among a call's parameters has a callback, with or without an
    effect."""
    for value in params.values():
        for program in as_tuple(value):
            if getattr(program, "calls_python", False):
                return True
    return False


def record(op: Op, inputs: tuple[Node, ...], params: Params = EMPTY) -> Node:  # noqa: C901
    """Record one operation: infer its aval (memoized), join the traces, and return the node."""
    trace = state.abstract
    if trace is not None:
        if not frame_belongs(_getframe()):
            with outside_traces():
                return record(op, inputs, params)
        trace = state.abstract
        if state.varying is not None and state.varying.over_processes:
            inputs = state.varying.align_axes(op, inputs, params)
    depth = 0
    try:
        for x in inputs:
            if x.trace is not None and x.trace is not trace:
                trace = join(trace, x.trace)
            if x.depth > depth:
                depth = x.depth
    except UnexpectedTracerError:
        for x in inputs:
            owning_trace(x)
        return record(op, inputs, params)
    effect = False
    form = None
    if op.kind in _OWN_TYPE:
        if op is ITEM and inputs[0].op is TOGETHER:
            index: int = params["index"]
            return inputs[0].inputs[index]
        effect = has_effect(op, params)
        if state.within is not None and op.jvp is ZERO and "within" not in params:
            params = {**params, "within": state.within}
        avals = [x.aval for x in inputs]
        aval: Aval | tuple[Aval, ...] = op.infer(*avals, **params)
        # The programs of calls over several processes say which of their results are sharded.
        exact = (
            any_value_spans_processes() and op.kind in CALLS and any(map(spans_processes, avals))
        )
        if not (op.places or exact):
            aval = result_devices(op.name, avals, aval)
            if op.kind != "mark" and any(
                [type(getattr(a, "devices", None)) is ShardedDevices for a in avals]
            ):
                placement = _distribute[0](op, inputs, params, aval)
                if isinstance(placement, Node):
                    return placement
                if placement is not None:
                    aval = _place_results(aval, placement)
    else:
        key: Hashable = tuple([x.aval for x in inputs])
        if params:
            key = (key, *params.items())
        form = op.memo.get(key) or op.memo.recall(key)
        if form is not None:
            aval = form.aval
        else:
            avals = [x.aval for x in inputs]
            known = op.kind not in _ARITHMETIC if op.float0 is None else op.float0
            if not known and params.get("new_dtype") != float0:
                refuse_float0(op.name, avals)
            inferred: Aval | tuple[Aval, ...] = op.infer(*avals, **params)
            aval = result_devices(op.name, avals, inferred)
            if any([type(a.devices) is ShardedDevices for a in avals]):
                placement = _distribute[0](op, inputs, params, aval)
                if isinstance(placement, Node):
                    return placement  # the node of a multi-process (sharded) computation
                if placement is not None:
                    aval = _place_results(aval, placement)
            # In vmap nothing is distributed, and no operation may be recorded again elsewhere.
            if not any(map(spans_processes, avals)):
                form = _create_form(op, avals, aval)
                op.memo.store(key, form)
    site = state.site or user_site()
    node = Node(op, inputs, params, aval, None, trace, depth + 1, site, form)
    if state.named and trace is not None:
        trace.recorded.append(node)
    if (
        effect
        or op.kind == "callback"
        or (op.kind in CALLS and calls_python(params))
        or (op.kind == "opaque" and params and communicates(op, params))
    ):
        _note_or_run(node, effect)
    elif trace is None and op.updated_operand is not None:
        # Updates stay pending: once they hold the only reference to their operand, they reuse its
        # buffer. Their operands are handed over early, because pending updates keep the indices and
        # values alive.
        if depth >= PENDING_LIMIT or (depth and sum([x.aval.nbytes for x in inputs]) > HEAVY):
            for x in inputs:
                _on_deep[0](x)
            node.depth = 1
    elif trace is None and (depth >= PENDING_LIMIT or op.kind == "opaque"):
        _on_deep[0](node)
    elif not PENDING_LIMIT and trace is not None and not trace.abstract:
        _on_deep[0](node)  # debug_nans checks every value, also while differentiating
    return node


_ARITHMETIC = ("map", "reduce")


def refuse_float0(name: str, avals: Iterable[Aval]) -> None:
    """Raise UnsupportedDtypeError if a tangent of an integer (float0) is used in arithmetic."""
    if any([a.dtype == float0 for a in avals]):
        raise UnsupportedDtypeError(
            f"Called {name} with a float0 array; float0s do not support any operations by design, "
            "since the tangents of integers and booleans are no vector space; got such a value, "
            "perhaps a gradient with respect to an integer argument; use np.zeros_like(x, "
            "dtype=float) for zeros instead"
        )


def independent_nodes(node: Node, inside: Callable[[Trace], bool]) -> list[Node] | None:
    """Return the nodes within some traces from which a value is computed, operands first; None if
    it depends on an argument of the traces, a callback or a mapped axis."""
    order: list[Node] = []
    seen: set[int] = set()
    stack = [(node, False)]
    while stack:
        n, done = stack.pop()
        if done:
            order.append(n)
        elif id(n) not in seen and n.trace is not None and inside(n.trace):
            if n.op is ARG or n.op.kind == "callback" or "axis_name" in n.params:
                return None
            seen.add(id(n))
            stack.append((n, True))
            stack.extend([(x, False) for x in n.inputs])
    return order


def owning_trace(node: Node) -> Trace | None:
    """Return the active trace to which a value belongs, or None.

    A value that a mapped function computed without its mapped arguments remains usable after the
    trace has ended, as in JAX, which does not trace such values: the node and its operands move to
    the trace around `vmap`.

    Raises:
        UnexpectedTracerError: the value belongs to a trace that has ended.
    """
    if node.trace is None or node.trace.active:
        return node.trace
    try:
        return join(node.trace, None)
    except UnexpectedTracerError as error:
        if isinstance(node.trace, Escaped):
            raise
        order = independent_nodes(node, lambda trace: trace.abstract and not trace.active)
        # In vmap, operations on arrays of several processes are not distributed: none can run.
        if order is None or any(
            (n.trace is not None and not mapping(n.trace)) or spans_processes(n.aval) for n in order
        ):
            message = f"{error.args[0]}. The value was created on line"
            info = node.trace.info
            if node.site is not None:
                error.args = (f"{message} {site_text(node)}",)
            elif node.op is ARG and info is not None and not isinstance(info, str):
                error.args = (
                    f"{message} {info.file}:{info.line} ({info.function}), as an argument",
                )
            raise
    for n in order:
        trace: Trace | None = n.trace
        while trace is not None and not trace.active:
            trace = trace.parent
        for x in n.inputs:
            trace = join(trace, x.trace)
        n.trace = trace
        if state.named and trace is not None:
            trace.recorded.append(n)
    return node.trace


def _note_or_run(node: Node, effect: bool) -> None:
    """Note an operation that calls Python in the trace being recorded, or run it immediately."""
    trace = node.trace
    if trace is not None and trace.kind == "linear":
        return  # tangents: users cannot observe these calls
    owner = state.abstract or trace
    if owner is not None:
        owner.calls.append(node)
        if effect:
            owner.effects.append(node)
    if trace is None or not trace.abstract:
        run_effect(node)


def run_effect(node: Node) -> None:
    """Run a callback, or a program with effects, whose operands have values."""
    if state.deferred_effects is not None and node.aval == ():
        state.deferred_effects.append(node)
    else:
        _perform[0](node)


def install_engine(
    on_deep: Callable[[Node], None],
    perform: Callable[[Node], None],
    value: Callable[[Node], np.ndarray],
) -> None:
    """Set the functions of the engine: one that takes nodes of deep graphs, one that runs a
    callback or a program with effects, and one that returns the value of a node."""
    _on_deep[:], _perform[:], _values[:] = [on_deep], [perform], [value]


def install_distribution(distribute: Callable[..., Any]) -> None:
    """Set the function that decides how operations on sharded operands are executed."""
    _distribute[:] = [distribute]


def value_of(node: Node) -> np.ndarray:
    """Return the value of a node as an array; compute it or wait for it if necessary."""
    return _values[0](node)


install_recorder(record)
install_recording(
    const=CONST,
    params=EMPTY,
    tracing=tracing,
    record=record,
    on_deep=lambda node: _on_deep[0](node),
    own_packages=OWN,
    find_site=_find_user_site,
    get_frame=_getframe,
)
set_pending_limit(PENDING_LIMIT)

_LITERALS = BoundedCache["Hashable", Node]("type_cache_size").register(
    "literals", "leaves of Python numbers"
)


def literal(value: complex | np.generic, dtype: np.dtype, weak_type: bool = True) -> Node:
    """Return the interned leaf of a Python scalar (rank 0); kernels take it as an argument."""
    key: Hashable = (value, type(value), dtype, weak_type)
    if value == 0 and isinstance(value, float) and math.copysign(1.0, value) < 0:
        key = ("-0.0", dtype, weak_type)
    elif isinstance(value, complex):  # -1-0j equals -1+0j, but lies across a branch cut
        key = (repr(value), dtype, weak_type)
    node = _LITERALS.get(key) or _LITERALS.recall(key)
    if node is None:
        aval = make_aval((), dtype, weak_type)
        node = Node(LITERAL, (), {"value": value}, aval, None, None, 0, None)
        _LITERALS.store(key, node)
    return node


def literal_of_array(x: Node) -> Node:
    """Return the leaf of a Python scalar that a user holds as an array.

    Kernels and passes treat it as a literal; a jaxpr that closes over it has a constant, as for any
    array, and each array has a leaf of its own.
    """
    return Node(LITERAL, (), {**x.params, "held": True}, x.aval, x.value, None, 0, None)


def is_user_held_scalar(x: Node) -> bool:
    """Return whether a node is the leaf of a Python scalar that a user holds as an array."""
    return x.op is LITERAL and "held" in x.params


def const(value: object, aval: Aval) -> Node:
    """Return a leaf with a ready buffer, or with a task that will produce one."""
    return Node(CONST, (), EMPTY, aval, value, None, 0, None)


def arg(aval: Aval, trace: Trace | None, name: str = "") -> Node:
    """Return an abstract leaf that belongs to a trace."""
    return Node(ARG, (), {"name": name}, aval, None, trace, 0, None)


def mark(x: Node, trace: Trace) -> Node:
    """Return a new node for the same value: the leaf of one call of a transformation."""
    if isinstance(x.trace, DEAD):
        raise x.trace.error()
    node = Node(MARK, (x,), EMPTY, x.aval, x.value, trace, x.depth, None)
    if state.named:
        trace.recorded.append(node)
    return node


def forget(node: Node) -> None:
    """Remove a node from the recorded equations, because another one replaces it."""
    if state.named and node.trace is not None:
        recorded = node.trace.recorded
        for i in range(len(recorded) - 1, -1, -1):
            if recorded[i] is node:
                del recorded[i]
                return


def together(xs: Sequence[Node]) -> Node:
    """Return a node that stands for several results, as that of an op with several ones does."""
    avals = tuple([x.aval for x in xs])
    return Node(TOGETHER, tuple(xs), EMPTY, avals, None, None, 0, None)


def items(node: Node) -> tuple[Node, ...]:
    """Return one node per result of an op with several results."""
    return tuple(record(OPS["item"], (node,), {"index": i}) for i in range(len(node.aval)))
