"""Traces: which recording is in progress in each thread, and whether values are available.

A `Trace` has one of three kinds. In "jit" traces (jit, vmap, make_jaxpr, bodies of control flow)
leaves are abstract; "linear" traces have placeholder tangents (linearization); in "grad" traces
leaves are concrete marks, and nodes keep their operands when they are computed. Traces nest like
the calls that create them. `current()` is the innermost abstract trace of this thread: everything
recorded while it is active belongs to it. `ir/node.py` asks this module where a new node belongs.
"""

from __future__ import annotations

import _signal
import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast

from accnp._native import Node
from accnp.errors import UnexpectedTracerError
from accnp.forks import at_interrupt
from accnp.ir.aval import any_value_spans_processes, spans_processes
from accnp.ir.op import as_tuple

__all__ = [
    "DEAD", "OWN", "Deleted", "EffectsOf", "Escaped", "HostValue", "Rebinding", "Trace",
    "collect_effects", "collect_writes", "current", "differentiating", "frame_belongs",
    "in_shard_map", "in_vmap", "innermost", "is_distributed", "is_outside_shard_map",
    "is_part_of_accnp", "join", "line_of", "mapping", "outside_shard_map", "outside_traces",
    "own_effects", "own_lines", "recorder_of", "sets_site", "state", "tracing", "types_only",
]  # fmt: skip


_getframe = sys._getframe  # pyright: ignore[reportPrivateUsage]
P = ParamSpec("P")
R = TypeVar("R")


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[Trace] = []
        self.abstract: Trace | None = None
        self.dispatching = True
        # Effects that run only if `perform` is called later.
        self.deferred_effects: list[Node] | None = None
        self.within: EffectsOf | None = None  # the running function that has a derivative rule
        # References that it wrote to, by id, with their previous contents.
        self.written: dict[int, Any] | None = None
        self.site: tuple[CodeType, int] | None = (
            None  # the user's line for nodes that are recorded now, if it is known
        )
        # Whether a jaxpr is being made: traces then list all nodes, and named functions stay calls.
        self.named = False
        self.ruled = False  # whether a derivative rule has ever run; it may close over values
        # Frames that `frame_belongs` has verified to record into `abstract`, outermost first. Each
        # is called, directly or indirectly, by its predecessor. The last one is the user's.
        self.verified: list[FrameType] = []
        # Used while only the program of a function is wanted: the types that stand for values, and
        # a function that replaces the symbols in them by sizes.
        self.types: Any = None
        self.sized: Callable[[Any], Any] | None = None
        self.float0 = False  # a function of host arrays of float0 is being called
        self.lists = False  # a NumPy function is being called, which accepts lists as arrays
        self.varying: Any = None  # inside shard_map: along which axes values differ (`Varying`)
        # The policies of the checkpointed functions that are being traced, from the outermost, and
        # how often functions have read the last one, also in traces that are used again.
        self.policies: tuple[Any, ...] = ()
        self.policy_reads = 0


state = _State()
# The abstract traces of all threads. While it is empty, hot paths skip the thread-local lookup.
tracing: list[Trace] = []


class HostValue(NamedTuple):
    """A Python number under `jvp`: an argument, or the result of a custom rule."""

    mark: Node
    value: Any  # as the user or the rule passed it
    tangent: Any  # likewise
    tangent_node: Node | None


class Rebinding(NamedTuple):
    """An array that existed before a trace, or whose values did, to which an item assignment in the
    trace gave a value of the trace."""

    array: Any
    attribute: str  # the attribute that holds the value
    before: Any  # the previous content of the attribute
    site: tuple[CodeType, int] | None  # the user's code and instruction of the assignment


if TYPE_CHECKING:

    class TracedFunction(Protocol):
        """The function that is being traced, for error messages."""

        @property
        def function(self) -> str: ...

        @property
        def file(self) -> str: ...

        @property
        def line(self) -> int: ...

        @property
        def transform(self) -> str: ...


class Trace:
    """Trace in progress; a context manager.

    Parameters
    ----------
    kind : str
        What traces the function, such as "jit" or "vmap".
    info : object, optional
        Name of the function, for error messages.

    Examples
    --------
    >>> import accnp as jax
    >>> kinds = []
    >>> _ = jax.jit(lambda x: kinds.append(jax.core.find_top_trace([x]).kind))(1)
    >>> kinds
    ['jit']
    """

    __slots__ = (
        "abstract", "active", "calls", "captures", "computed_nodes", "effects", "frame", "host",
        "info", "kind", "level", "parent", "previous", "rebound", "recorded", "start", "walked",
    )  # fmt: skip
    dead = False  # whether all operations reject its values

    def __init__(self, kind: str, info: TracedFunction | str | None = None) -> None:
        self.kind = kind
        self.info = info  # the traced function: name, file, line, argument names
        self.parent: Trace | None = _find_enclosing_trace(_getframe(1)) if state.stack else None
        self.frame: FrameType | None = None  # frame of the recording function while it runs
        self.level: int = self.parent.level + 1 if self.parent else 1
        own = kind != "grad"
        self.abstract: bool = own or (self.parent is not None and self.parent.abstract)
        self.active = False
        self.walked = False  # its derivative is being computed: no new node depends on its marks
        self.computed_nodes: list[Node] = []  # their operands are dropped at the end
        self.previous: Trace | None = None
        # While a jaxpr is made: every node recorded in this trace, in order, including unused ones.
        # A grad trace shares the list of its parent; its own nodes start at `start`.
        self.recorded: list[Node] = (
            self.parent.recorded if kind == "grad" and self.parent is not None else []
        )
        self.start = len(self.recorded)
        self.effects: list[Node] = []  # nodes recorded in it that have an effect, in order
        # All nodes that call Python functions, in order: `effects` and callbacks without effects.
        self.calls: list[Node] = []
        # In bodies of loops and branches: references from outside that are used, by id.
        self.captures: dict[int, Any] | None = None
        # Under `jvp` of Python numbers: the host values of marks, by id, for custom rules.
        self.host: dict[int, HostValue] | None = None
        # Arrays that item assignments have changed and that get back their values at the end.
        self.rebound: list[Rebinding] = []

    # A signal handler may raise between any two lines of these two methods. They add the trace to
    # `tracing` last and remove it first, so that it is never in `tracing` without being in `state`,
    # where `frame_belongs` and `_find_enclosing_trace` find and discard a trace that has ended.

    def __enter__(self) -> Trace:
        frame = _getframe(1)
        while frame.f_back is not None and (
            frame.f_code.co_flags & _SUSPENDED or frame.f_globals.get("__name__") == "contextlib"
        ):
            frame = frame.f_back  # the function with the `with` statement
        self.frame = frame
        self.previous = state.abstract
        state.verified = []
        self.active = True
        state.stack.append(self)
        if self.kind == "jit":
            state.abstract = self
            tracing.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave()
        outer = self.parent
        if outer is not None and outer.active:
            outer.computed_nodes.extend(self.computed_nodes)
            if self.kind == "grad":
                outer.effects.extend(self.effects)
                outer.calls.extend(self.calls)
        else:
            for node in self.computed_nodes:
                node.inputs = ()
        self.computed_nodes = []

    def leave(self) -> None:
        """End this trace and the traces that were started in it."""
        stack = state.stack
        ended = stack[stack.index(self) :] if self in stack else [self]
        for trace in reversed(ended):
            trace.active = False
            trace.frame = None
            if trace in tracing:
                tracing.remove(trace)
            for entry in reversed(trace.rebound):
                setattr(entry.array, entry.attribute, entry.before)
        if self in stack:
            del stack[stack.index(self) :]
        state.abstract = self.previous
        state.verified = []

    def again(self) -> AbstractContextManager[Any]:
        """Re-enter the trace if it has ended, because a function closes over its values."""
        return contextlib.nullcontext() if self.active else self

    @property
    def main(self) -> Trace:
        """The trace itself, under a name that libraries compare."""
        return self

    def supersede(self, old: Sequence[Node], start: int) -> None:
        """Replace earlier effects by those recorded from number `start` on."""
        replaced = set(map(id, old))
        places = [i for i, n in enumerate(self.effects[:start]) if id(n) in replaced]
        new = self.effects[start:]
        at = places[0] if places else start
        remaining = [n for n in self.effects[:start] if id(n) not in replaced]
        self.effects[:] = [*remaining[:at], *new, *remaining[at:]]


# ---- traces that ended by an exception, and signal handlers


def frame_belongs(frame: FrameType) -> bool:
    """Return whether nodes recorded by a frame belong to the current trace; call it only during a
    trace.

    Traces whose functions have ended without `__exit__` are discarded: a signal handler may raise
    between the entry of a trace and the block that would leave it. The result is False in a signal
    handler that has interrupted the traced function.
    """
    trace = state.abstract
    outer = None if trace is None else trace.frame
    at: FrameType | None = frame
    while at is not outer and at is not None:
        package = at.f_globals.get("__package__")
        own = OWN.get(package)
        if not (is_part_of_accnp(package) if own is None else own):
            # A user's frame: the answer stays valid while it runs.
            known = state.verified
            return (bool(known) and at is known[-1]) or _verify_frame(at)
        at = at.f_back
    return at is not None or _verify_frame(frame)


OWN: dict[str | None, bool] = {}


def is_part_of_accnp(package: str | None) -> bool:
    """Return whether a package of this name is accnp or a part of it."""
    own = OWN[package] = bool(package) and (package == "accnp" or package.startswith("accnp."))
    return own


def _verify_frame(frame: FrameType) -> bool:
    while (trace := state.abstract) is not None:
        outer, known = trace.frame, state.verified
        new: list[FrameType] = []
        at: FrameType | None = frame
        while at is not outer and at is not None and at not in known:
            if _is_handler(at):
                return False
            if not at.f_code.co_flags & _SUSPENDED:
                new.append(at)
            at = at.f_back
        if at is not None:
            state.verified = [*known[: known.index(at) + 1 if at in known else 0], *reversed(new)]
            break
        trace.leave()
    return True


_SUSPENDED = 0x20 | 0x80 | 0x200  # generators and coroutines resume inside other functions
_VARIADIC = 0x04


def _find_enclosing_trace(frame: FrameType) -> Trace | None:
    """Return this thread's innermost trace around a frame; discard traces that were not left."""
    while state.stack:
        trace = state.stack[-1]
        outer, at, handled = trace.frame, frame, False
        while at is not outer and at is not None:
            handled = handled or _is_handler(at)
            at = at.f_back
        if at is not None:
            return None if handled else trace
        trace.leave()
    return None


def _is_handler(frame: FrameType) -> bool:
    """Return whether a frame is a signal handler that interrupted its caller, whose frame it
    received as an argument."""
    code = frame.f_code
    if code.co_argcount < 2 and not code.co_flags & _VARIADIC:
        return False
    package = frame.f_globals.get("__package__")
    own = OWN.get(package)
    if is_part_of_accnp(package) if own is None else own:
        return False
    variables, back = frame.f_locals, frame.f_back
    for name in code.co_varnames[: code.co_argcount + 1]:
        value = variables.get(name)
        if value is back or _contains(value, back):
            return back is not None and code in _handler_codes()
    return False


def _contains(values: object, x: object) -> bool:
    return type(values) is tuple and any([value is x for value in as_tuple(values)])


def _handler_codes() -> set[CodeType]:
    codes: set[CodeType] = set()
    for number in _SIGNALS:
        handler: Any = _signal.getsignal(number)
        if handler is None or isinstance(handler, int) or handler is _signal.default_int_handler:
            continue
        while isinstance(handler, functools.partial):
            handler = cast("functools.partial[Any]", handler).func
        code: Any = getattr(handler, "__code__", None)
        code = code or getattr(type(handler).__call__, "__code__", None)
        if code:
            codes.add(code)
    return codes


_SIGNALS = sorted(_signal.valid_signals())


class Deleted(Trace):
    """Replaces the trace in the node of a deleted or donated array.

    It counts as ended, so every function that determines the trace of an operand raises `error()`,
    and operations on valid arrays need no additional check.
    """

    __slots__ = ("site", "type", "what")
    dead = True

    def __init__(self, type: str, what: str, site: tuple[CodeType, int] | None) -> None:
        self.kind, self.parent = "deleted", None
        self.active, self.abstract = False, True
        self.type = type  # the array's type as text, such as float32[3]
        self.what = what  # what happened to it
        self.site = site  # the user's code and instruction that deleted it

    def error(self) -> RuntimeError:
        """Return the error to raise for an operation on the array."""
        return RuntimeError(
            f"Array has been deleted with shape={self.type}: {self.what} on line "
            f"{line_of(self.site)}; make a copy before that call to use the values after it"
        )


class Escaped(Trace):
    """Replaces the trace in a leaked argument of a differentiated function after the derivative has
    been computed: the value can still be read, but operations on it raise `error()`.
    """

    __slots__ = ()
    dead = True

    def __init__(self, of: Trace) -> None:
        self.kind, self.parent, self.info = "escaped", of, of.info
        self.active, self.abstract = False, of.abstract

    def error(self) -> UnexpectedTracerError:
        """Return the error to raise for an operation on the value."""
        return UnexpectedTracerError(
            "Encountered an unexpected tracer: an argument of a differentiated function was used "
            "after its derivative had been taken. It escaped through global state, a closure or an "
            "attribute; return it from the function instead, with has_aux=True"
        )


# Traces whose values are rejected wherever arguments are converted.
DEAD = (Deleted, Escaped)


def line_of(site: tuple[CodeType, int] | None) -> str:
    """Return `file:line (function)` of a code object and an instruction offset in it."""
    if site is None:
        return "<unknown line>"
    code, lasti = site
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end and number is not None:
            line = number
    return f"{code.co_filename}:{line} ({code.co_name})"


def sets_site(walk: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that sets `state.site` while it records nodes again: restore it after."""

    @functools.wraps(walk)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        before = state.site
        try:
            return walk(*args, **kwargs)
        finally:
            state.site = before

    return wrapper


@contextlib.contextmanager
def own_lines() -> Generator[None]:
    """Run a user function whose nodes have its own source lines."""
    before, state.site = state.site, None
    try:
        yield
    finally:
        state.site = before


class EffectsOf:
    """Identifies the effects of a function with its own derivative rule. Where the rule is used,
    these effects are not run, because the rule has its own. Nodes recorded in the function carry
    this object as the parameter `within`."""

    __slots__ = ("deferred", "parent")

    def __init__(self, parent: EffectsOf | None) -> None:
        self.parent = parent  # that of the enclosing function
        self.deferred: list[Node] = []  # outside of traces: the effects that have not been run yet

    def have(self, node: Node) -> bool:
        """Return whether an operation with an effect belongs to the function."""
        if node.op.kind != "callback":  # a call belongs to it if all effects of its programs do
            programs: list[Any] = []
            for v in node.params.values():
                programs += v if isinstance(v, tuple) else (v,)
            return all(self.have(e) for p in programs for e in getattr(p, "effects", ()))
        owner = node.params.get("within")
        while owner is not None and owner is not self:
            owner = owner.parent
        return owner is self


@contextlib.contextmanager
def own_effects() -> Generator[EffectsOf]:
    """Run a function with its own derivative rule. Outside of traces, effects without results are
    collected instead of being run."""
    owner = EffectsOf(state.within)
    before, state.within = state.within, owner
    try:
        with collect_effects(owner.deferred):
            yield owner
    finally:
        state.within = before


@contextlib.contextmanager
def collect_writes() -> Generator[dict[int, Any]]:
    """Collect the references that a function writes to, with their previous contents."""
    outer = state.written
    writes: dict[int, Any] = {}
    state.written = writes
    try:
        yield writes
    finally:
        state.written = outer
        if outer is not None:
            outer.update({k: x for k, x in writes.items() if k not in outer})


@contextlib.contextmanager
def collect_effects(effects: list[Node]) -> Generator[None]:
    """Outside of traces, collect effects without results in `effects` instead of running them."""
    before, state.deferred_effects = state.deferred_effects, effects
    try:
        yield
    finally:
        state.deferred_effects = before


@contextlib.contextmanager
def outside_traces() -> Generator[None]:
    """Run code outside of all traces of this thread, such as a user function in a callback."""
    before = dict(state.__dict__)
    try:
        state.__dict__.update(_State().__dict__)
        yield
    finally:
        state.__dict__.update(before)


def _end_all_traces() -> None:
    """End all traces of this thread."""
    left, trace = list(state.stack), state.abstract
    while trace is not None:
        left.append(trace)
        trace = trace.previous
    for trace in left:
        trace.active = False
        if trace in tracing:
            tracing.remove(trace)
    state.__dict__.update(_State().__dict__)


at_interrupt.append(_end_all_traces)


def current() -> Trace | None:
    """Return this thread's innermost abstract trace."""
    if state.abstract is not None and not frame_belongs(_getframe(1)):
        return None
    return state.abstract


def differentiating() -> bool:
    """Return whether this thread is recording for a derivative, with only mapped functions in
    between. Programs recorded then are kept, and may or may not be differentiated later."""
    for trace in reversed(state.stack):
        if trace.kind != "jit":
            return True
        if getattr(trace.info, "transform", "vmap") not in ("vmap", "pmap"):
            return False
    return False


def in_vmap() -> bool:
    """Return whether a function that `vmap` maps is being traced."""
    return any([getattr(t.info, "transform", "") == "vmap" for t in state.stack if t.abstract])


def in_shard_map() -> bool:
    """Return whether a function of shards is being traced."""
    return _shard_map_trace() is not None


def _shard_map_trace() -> Trace | None:
    """Return the outermost trace of a function of shards."""
    return next((t for t in state.stack if getattr(t.info, "transform", "") == "shard_map"), None)


def is_outside_shard_map(node: Node) -> bool:
    """Return whether a function of shards is being traced, and closes over a value."""
    trace = _shard_map_trace()
    return trace is not None and (node.trace is None or node.trace.level < trace.level)


@contextlib.contextmanager
def outside_shard_map() -> Generator[None]:
    """Record outside of the function of shards that is being traced."""
    trace = _shard_map_trace()
    assert trace is not None
    before = dict(state.__dict__)
    try:
        state.stack = state.stack[: state.stack.index(trace)]
        state.abstract, state.verified, state.varying = trace.previous, [], None
        yield
    finally:
        state.__dict__.update(before)


# ---- arrays over several processes
#
# Usually each process records an operation on such an array for its shard, with the collectives
# that it needs. In a function that `vmap` maps, operations are recorded on whole arrays, for their
# types only; batching records them again, outside of the mapped function, and distributes them.
# Programs that were traced in one of the two ways must not be used in the other.


def types_only() -> bool:
    """Return whether operations on arrays over several processes are recorded on whole arrays now.

    It is always False in a program that has no such arrays.
    """
    return any_value_spans_processes() and in_vmap()


def is_distributed(aval: object) -> bool:
    """Return whether operations on a value of this type are recorded on shards now."""
    return spans_processes(aval) and not in_vmap()


def mapping(trace: Trace) -> bool:
    """Return whether a trace that has ended, and its ended ancestors, were made by `vmap` or by
    derivatives inside mapped functions only."""
    at: Trace | None = trace
    while at is not None and not at.active:
        if at.kind == "jit" and getattr(at.info, "transform", "") != "vmap":
            return False
        at = at.parent
    return True


def recorder_of(trace: Trace | None) -> Trace | None:
    """Return the innermost abstract trace to which the values of a trace belong, or None."""
    while trace is not None and trace.kind != "jit":
        trace = trace.parent
    return trace


def innermost() -> Trace | None:
    """Return this thread's innermost trace of any kind."""
    return state.stack[-1] if state.stack else None


def join(a: Trace | None, b: Trace | None) -> Trace | None:
    """Return the deeper of two traces; grad traces that have ended count as their parents.

    Raises:
        UnexpectedTracerError: one of them is an abstract trace that has ended, so a traced value
        has leaked.
        RuntimeError: one of them stands for a deleted array.
    """
    while a is not None and not a.active:
        a = _parent_of_ended(a)
    while b is not None and not b.active:
        b = _parent_of_ended(b)
    if a is None:
        return b
    if b is None:
        return a
    return a if a.level >= b.level else b


def _parent_of_ended(trace: Trace) -> Trace | None:
    if trace.kind == "jit":
        info = trace.info
        where = f" while tracing {info}" if info else ""
        error = UnexpectedTracerError(
            "Encountered an unexpected tracer: a traced value was used after its trace had ended. "
            f"It was made{where}, and escaped through global state, a closure or an attribute; "
            "return it from the function instead"
        )
        error.origin = where
        raise error
    if isinstance(trace, DEAD):
        raise trace.error()
    return trace.parent
