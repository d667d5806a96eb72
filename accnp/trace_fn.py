"""Tracing: record a Python function as a `Graph`, and explain errors about traced values.

`trace` calls a function with leaf nodes and returns the graph of the operations that it recorded.
`jit` and the transformations use it. `conversion_error` makes the errors for traced values that are
used where a concrete value is needed, with their origin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import WRAPPER_ASSIGNMENTS, WRAPPER_UPDATES, partial, update_wrapper
from types import FrameType
from typing import Any

from accnp import errors
from accnp.config import config
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph
from accnp.ir.node import ARG, MARK, Node, arg, independent_nodes, record, site_text
from accnp.ir.trace import Trace, outside_traces, own_lines, state
from accnp.lazy_imports import imported

__all__ = [
    "conversion_error", "describe", "function_place", "provenance", "trace", "traced_repr",
    "unmapped", "wraps",
]  # fmt: skip

counters = {"traces": 0}


class Traced:
    """The function that is being traced (name, file, line) and the transformation, for errors."""

    __slots__ = ("file", "function", "line", "transform")

    def __init__(self, fn: Any, transform: str) -> None:
        self.function, self.file, self.line = function_place(fn)
        self.transform = transform

    def __repr__(self) -> str:
        return f"{self.function} at {self.file}:{self.line} for {self.transform}"


def function_place(fn: Any) -> tuple[str, str, int]:
    """Return the name, file and first line of a function, inside of partials and wrappers."""
    inner: Any = fn
    while inner is not None:
        fn = inner
        is_partial = isinstance(fn, partial)
        inner = getattr(fn, "func" if is_partial else "__wrapped__", None)
    # For an object with a method `__call__`, the place is that of the method.
    method: Any = getattr(fn, "__call__", None)  # noqa: B004
    code: Any = getattr(fn, "__code__", None) or getattr(method, "__code__", None)
    name: str = getattr(fn, "__name__", type(fn).__name__)
    return (name, code.co_filename, code.co_firstlineno) if code else (name, "", 0)


def wraps(fun: Any, updated: Sequence[str] = WRAPPER_UPDATES) -> Callable[[Any], Any]:
    """Version of `functools.wraps` for any callable. If an attribute such as the name is not a
    string or raises an error, the wrapper keeps its own."""

    def decorate(wrapper: Any) -> Any:
        for name in WRAPPER_ASSIGNMENTS:
            with suppress(AttributeError, TypeError):
                setattr(wrapper, name, getattr(fun, name))
        return update_wrapper(wrapper, fun, assigned=(), updated=updated)

    return decorate


def describe(wrapper: Any, fun: Any, text: str) -> None:
    """Set the docstring of a transformed function: `text` with its name, and its own docstring."""
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
    """Record `fn`, a function from leaf nodes to result nodes, as a Graph.

    `of` is the user's function, for messages, and `names` are the names of the leaves as Python
    code.
    """
    counters["traces"] += 1
    info = Traced(of if of is not None else fn, transform)
    with Trace("jit", info) as t:
        leaves = [arg(a, t, names[i] if i < len(names) else "") for i, a in enumerate(avals)]
        with own_lines():
            outputs = fn(leaves)
            shards = state.varying
            if shards is not None and shards.over_processes and transform != "shard_map":
                # Operands of loops and other calls vary along all mesh axes, so results must too.
                outputs = [shards.spread(x, shards.every) for x in outputs]
    if t.rebound:
        imported("accnp.leaks").check_assigned(t.rebound, info)
    # `vmap` and `pmap` keep references to results themselves.
    if config.check_tracer_leaks and transform not in ("vmap", "pmap"):
        imported("accnp.leaks").check(t, info)
    recorded = t.recorded if state.named else None
    return Graph(leaves, outputs, info.function, names, t.level, recorded, t)


def provenance(node: Node) -> errors.Provenance:
    """Return the origin of a traced value: names of arguments, or otherwise operations."""
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
        if n.op is ARG:
            if n.params["name"] and n.params["name"] not in names:
                names.append(n.params["name"])
        elif n.op.kind != "leaf":
            if n.trace is not None and n.trace.abstract and n.site is not None:
                text = imported("accnp.ir.printer").equation_text(n)
                operations.append((text, site_text(n)))
            stack.extend(reversed(n.inputs))
    if info is None or isinstance(info, str):  # a transformation is recording a program
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
    """Return the same value outside of mapped functions, so that it can be read, as in JAX.

    The operations are recorded again there. Returns None if the value depends on a mapped argument,
    or if a transformation other than `vmap` traces it.
    """
    for t in state.stack:
        if t.kind != "grad" and getattr(t.info, "transform", "") != "vmap":
            return None
    order = independent_nodes(node, lambda t: t.abstract)
    if order is None:
        return None
    env: dict[int, Node] = {}
    with outside_traces():
        for n in order:
            inputs = tuple([env.get(id(x), x) for x in n.inputs])
            env[id(n)] = inputs[0] if n.op is MARK else record(n.op, inputs, n.params)
    return env[id(node)]


def traced_repr(node: Node) -> str:
    """Return the repr of a traced value, which shows its dtype and shape."""
    a = node.aval
    weak = ", weak_type=True" if a.weak_type else ""
    return f"JitTracer({a.dtype.name}[{','.join(map(str, a.shape))}]{weak})"


# Conversions by methods such as `__bool__`, and the kinds for static arguments of functions.
_BY_PYTHON = {"bool": "flag", "int": "number", "index": "number", "float": "number"}


def _calls_user(frame: FrameType) -> bool:
    """Return whether the function of a frame was passed or made for a user's function, which may
    have converted the value itself."""
    code, variables = frame.f_code, frame.f_locals
    names = (*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_freevars)
    functions = [variables[n] for n in names if n != "dtype" and callable(variables.get(n))]
    return any(not errors.is_internal(function_place(f)[1]) for f in functions)


def conversion_error(kind: str, node: Node, function: str = "") -> Exception:
    """Return the error for a traced value of which a concrete value is needed.

    `kind` is one of `errors.CONVERSION_KINDS`.
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
