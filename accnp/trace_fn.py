"""Recording a Python function into a `Graph`, and what to say when a traced value is asked for its
value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import WRAPPER_ASSIGNMENTS, WRAPPER_UPDATES, partial, update_wrapper
from types import FrameType
from typing import Any

from accnp import errors
from accnp.config import config
from accnp.forks import imported
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph
from accnp.ir.node import Node, arg, independent, record, site_text
from accnp.ir.trace import Trace, own_lines, state, untraced

__all__ = [
    "conversion_error",
    "describe",
    "function_place",
    "provenance",
    "trace",
    "traced_repr",
    "unmapped",
    "wraps",
]

counters = {"traces": 0}


class Traced:
    """What is being traced, for errors: the function's name, file, line; the transformation."""

    __slots__ = ("file", "function", "line", "transform")

    def __init__(self, fn: Any, transform: str) -> None:
        self.function, self.file, self.line = function_place(fn)
        self.transform = transform

    def __repr__(self) -> str:
        return f"{self.function} at {self.file}:{self.line} for {self.transform}"


def function_place(fn: Any) -> tuple[str, str, int]:
    """Return a function's name, file and first line, looking through partials and wrappers."""
    inner = fn
    while inner is not None:
        fn = inner
        inner = fn.func if isinstance(fn, partial) else getattr(fn, "__wrapped__", None)
    # An object with a method `__call__` is named by that.
    method = getattr(fn, "__call__", None)  # noqa: B004
    code = getattr(fn, "__code__", None) or getattr(method, "__code__", None)
    name = getattr(fn, "__name__", type(fn).__name__)
    return (name, code.co_filename, code.co_firstlineno) if code else (name, "", 0)


def wraps(fun: Any, updated: Sequence[str] = WRAPPER_UPDATES) -> Callable[[Any], Any]:
    """`functools.wraps` for what users transform: callable objects whose name is no text, or that
    refuse to be asked for one, keep the wrapper's."""

    def decorate(wrapper: Any) -> Any:
        for name in WRAPPER_ASSIGNMENTS:
            with suppress(AttributeError, TypeError):
                setattr(wrapper, name, getattr(fun, name))
        return update_wrapper(wrapper, fun, assigned=(), updated=updated)

    return decorate


def describe(wrapper: Any, fun: Any, text: str) -> None:
    """Give a transformed function a docstring: `text` with the function's name, and its own."""
    own = getattr(fun, "__doc__", None)
    name = getattr(fun, "__name__", None) or type(fun).__name__
    text = text.format(name)
    wrapper.__doc__ = f"{text}\n\nOriginal documentation:\n\n{own}" if own else text


def trace(
    fn: Callable[[list[Node]], Sequence[Node]],
    avals: Sequence[Aval],
    *,
    of: Any = None,
    transform: str = "jit",
    names: Sequence[str] = (),
) -> Graph:
    """Record `fn`, a function from leaf nodes to result nodes, into a Graph.

    `of` is the user's function (for messages), `names` the leaves' names as the user would write
    them.
    """
    counters["traces"] += 1
    info = Traced(of if of is not None else fn, transform)
    with Trace("jit", info) as t:
        leaves = [arg(a, t, names[i] if i < len(names) else "") for i, a in enumerate(avals)]
        with own_lines():
            outputs = fn(leaves)
            shards = state.varying
            if shards is not None and shards.over_processes and transform != "shard_map":
                # Operands of loops and other calls differ along all axes, and so do results.
                outputs = [shards.spread(x, shards.every) for x in outputs]
    if config.check_tracer_leaks and transform not in ("vmap", "pmap"):  # these keep results
        imported("accnp.leaks").check(t, info)
    recorded = t.recorded if state.named else None
    return Graph(leaves, outputs, info.function, names, t.level, recorded, t)


def provenance(node: Node) -> errors.Provenance:
    """Collect where a traced value comes from: argument names, or else operations."""
    trace_ = node.trace
    while trace_ is not None and trace_.kind != "jit":
        trace_ = trace_.parent
    info = trace_.info if trace_ is not None else None
    names: list[str] = []
    operations: list[tuple[str, str]] = []
    seen: set[int] = set()
    stack = [node]
    while stack and len(seen) < 10_000:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        if n.op.name == "arg":
            if n.params["name"] and n.params["name"] not in names:
                names.append(n.params["name"])
        elif n.op.kind != "leaf":
            if n.trace is not None and n.trace.abstract and n.site is not None:
                text = imported("accnp.ir.printer").equation_text(n)
                operations.append((text, site_text(n)))
            stack.extend(reversed(n.inputs))
    if not isinstance(info, Traced):  # a program that a transformation records again
        return errors.Provenance(
            info or "", transform="a transformation", arguments=names, operations=operations
        )
    return errors.Provenance(
        function=info.function,
        file=info.file,
        line=info.line,
        transform=info.transform,
        arguments=names,
        operations=operations,
    )


def unmapped(node: Node) -> Node | None:
    """The same value outside of the functions being mapped; None where it depends on what is
    mapped, or something else than `vmap` traces.

    It is recorded once more there, so that it can be looked at, as jax lets one.
    """
    for t in state.stack:
        if t.kind != "grad" and getattr(t.info, "transform", "") != "vmap":
            return None
    order = independent(node, lambda t: t.abstract)
    if order is None:
        return None
    made: dict[int, Node] = {}
    with untraced():
        for n in order:
            inputs = tuple([made.get(id(x), x) for x in n.inputs])
            made[id(n)] = inputs[0] if n.op.name == "mark" else record(n.op, inputs, n.params)
    return made[id(node)]


def traced_repr(node: Node) -> str:
    """Return the repr of a traced value: dtype, shape, and what is tracing it."""
    a = node.aval
    weak = ", weak_type=True" if a.weak_type else ""
    return f"JitTracer({a.dtype.name}[{','.join(map(str, a.shape))}]{weak})"


# Conversions that a method such as `__bool__` makes, and what they are of a static argument.
_BY_PYTHON = {"bool": "flag", "int": "number", "index": "number", "float": "number"}


def _calls_user(frame: FrameType) -> bool:
    """Whether a function of ours was given, or made for, a user's function, which may convert."""
    code, held = frame.f_code, frame.f_locals
    names = (*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_freevars)
    functions = [held[n] for n in names if n != "dtype" and callable(held.get(n))]
    return any(not errors.is_internal(function_place(f)[1]) for f in functions)


def conversion_error(kind: str, node: Node, function: str = "") -> Exception:
    """Make the error for a traced value whose value was asked for.

    `kind` is one of errors.CONVERSION_KINDS.
    """
    a = node.aval
    what = f"traced array with shape {a.dtype.name}[{','.join(map(str, a.shape))}]"
    if kind in _BY_PYTHON and not function:
        frame = errors.own_frame()
        if (
            frame is not None
            and not frame.f_code.co_name.startswith("_")
            and not _calls_user(frame)
        ):
            kind = _BY_PYTHON[kind]  # a public function, not `__bool__` or `y in x`
    return errors.conversion_error(kind, what, provenance(node), function)
