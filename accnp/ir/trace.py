"""Traces: who is recording, and whether values can be had.

A `Trace` is "jit" (leaves are abstract: jit, vmap, make_jaxpr, control-flow bodies), "linear"
(tangent placeholders while linearizing) or "grad" (leaves are concrete marks; nodes keep their
graph when materialized). Traces nest like the calls that made them; `current()` is the innermost
abstract one of this thread: everything recorded while it is active belongs to it.
"""

from __future__ import annotations

import _signal
import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from accnp._native import Node
from accnp.errors import UnexpectedTracerError
from accnp.forks import at_interrupt

__all__ = [
    "DEAD", "OWN", "Deleted", "EffectsOf", "Escaped", "HostValue", "Trace", "belongs", "current",
    "differentiating", "held_effects", "innermost", "is_own", "join", "line_of", "mapping",
    "noted_writes", "own_effects", "own_lines", "sets_site", "state", "tracing", "untraced",
]  # fmt: skip


P = ParamSpec("P")
R = TypeVar("R")


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[Trace] = []
        self.abstract: Trace | None = None
        self.dispatching = True
        self.held: list[Any] | None = None  # effects that wait for a decision
        self.within: EffectsOf | None = None  # the function with a rule that is being run
        # References that it wrote to, by place, and what was in them.
        self.written: dict[int, Any] | None = None
        self.site: Any = None  # the user's line that what is recorded belongs to, if it is known
        # A jaxpr is being made: traces keep what they record, named functions are calls.
        self.named = False
        self.ruled = False  # a user-defined derivative rule has been run: it may close over values
        # The frames of which `belongs` has found out that they record into `abstract`, each called
        # from the one before, if by way of others; the last one is the user's.
        self.verified: list[FrameType] = []
        # While only the program of a function is wanted: the types that it uses as values, and what
        # replaces the symbols in these by sizes.
        self.types: Any = None
        self.sized: Callable[[Any], Any] | None = None
        self.float0 = False  # a function of host arrays of float0 is being called
        self.lists = False  # a function of NumPy is called, which takes lists for arrays
        self.varying: Any = None  # a part of a mesh is traced: what differs between the parts


state = _State()
# The abstract traces of all threads: while there are none, hot paths do not ask for this thread's.
tracing: list[Trace] = []


class HostValue(NamedTuple):
    """A Python number under `jvp`: an argument, or a result of a custom rule."""

    mark: Node
    value: Any  # as the user or the rule gave it
    tangent: Any  # likewise
    tangent_node: Node | None


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
        "abstract",
        "active",
        "calls",
        "effects",
        "frame",
        "host",
        "info",
        "kept",
        "kind",
        "level",
        "parent",
        "previous",
        "recorded",
        "refs",
        "start",
        "walked",
    )
    dead = False  # whether its values are refused by all operations

    def __init__(self, kind: str, info: Any = None) -> None:
        self.kind = kind
        self.info = info  # what is being traced: function name, file, line, argument names
        self.parent: Trace | None = _around(sys._getframe(1)) if state.stack else None
        self.frame: FrameType | None = None  # of the function that records, while it does
        self.level: int = self.parent.level + 1 if self.parent else 1
        own = kind != "grad"
        self.abstract: bool = own or (self.parent is not None and self.parent.abstract)
        self.active = False
        self.walked = False  # its derivative is being made: nothing else will depend on its marks
        self.kept: list[Any] = []  # materialised nodes whose graph is to be dropped at the end
        self.previous: Trace | None = None
        # While a jaxpr is made: every node recorded in this trace, in order, dead ones too. Those
        # of a grad trace are among its parent's, from `start` on.
        self.recorded: list[Any] = (
            self.parent.recorded if kind == "grad" and self.parent is not None else []
        )
        self.start = len(self.recorded)
        self.effects: list[Any] = []  # the nodes recorded in it that have an effect, in order
        # All that call Python functions, in order: these, and callbacks without side effects.
        self.calls: list[Any] = []
        # In bodies of loops and branches: the references from outside that are used, by identity.
        self.refs: dict[int, Any] | None = None
        # Under `jvp` of Python numbers: what is known of marks, by identity, for custom rules.
        self.host: dict[int, HostValue] | None = None

    # A signal handler may raise between any two lines of these two methods. They put the trace into
    # `tracing` last and take it out first, so that it is never there without being in `state`,
    # where `belongs` and `_around` find and discard a trace whose function has ended.

    def __enter__(self) -> Trace:
        frame = sys._getframe(1)
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
        self._leave()
        if not state.stack:
            state.ruled = False
        outer = self.parent
        if outer is not None and outer.active:
            outer.kept.extend(self.kept)
            if self.kind == "grad":
                outer.effects.extend(self.effects)
                outer.calls.extend(self.calls)
        else:
            for node in self.kept:
                node.inputs = ()
        self.kept = []

    def _leave(self) -> None:
        """This thread records into it no more, nor into a trace that was begun after it."""
        stack = state.stack
        ended = stack[stack.index(self) :] if self in stack else [self]
        for trace in reversed(ended):
            trace.active = False
            trace.frame = None
            if trace in tracing:
                tracing.remove(trace)
        if self in stack:
            del stack[stack.index(self) :]
        state.abstract = self.previous
        state.verified = []

    def again(self) -> AbstractContextManager[Any]:
        """Record within it once more where it has ended: something closes over its values."""
        return contextlib.nullcontext() if self.active else self

    @property
    def main(self) -> Trace:
        """The trace itself, by a name that libraries compare."""
        return self

    def supersede(self, old: Sequence[Any], start: int) -> None:
        """Put the effects recorded from number `start` on in the place of earlier ones."""
        gone = set(map(id, old))
        places = [i for i, n in enumerate(self.effects[:start]) if id(n) in gone]
        new = self.effects[start:]
        at = places[0] if places else start
        kept = [n for n in self.effects[:start] if id(n) not in gone]
        self.effects[:] = [*kept[:at], *new, *kept[at:]]


# ---- traces that died, and signal handlers


def belongs(frame: FrameType) -> bool:
    """Whether what a frame records belongs to the current trace; call it while there is one.

    Traces whose functions have ended without `__exit__` are discarded: an exception of a signal
    handler may come between the entry of a trace and the block that would leave it. The result is
    False in a signal handler that has interrupted the function that is traced.
    """
    trace = state.abstract
    outer = None if trace is None else trace.frame
    at: FrameType | None = frame
    while at is not outer and at is not None:
        package = at.f_globals.get("__package__")
        own = OWN.get(package)
        if not (is_own(package) if own is None else own):
            # A user's frame; while it runs, the answer that it has been given holds.
            known = state.verified
            return (bool(known) and at is known[-1]) or _find_out(at)
        at = at.f_back
    return at is not None or _find_out(frame)


OWN: dict[str | None, bool] = {}


def is_own(package: str | None) -> bool:
    """Whether a package of this name is accnp, or a part of it."""
    own = OWN[package] = bool(package) and (package == "accnp" or package.startswith("accnp."))
    return own


def _find_out(frame: FrameType) -> bool:
    while (trace := state.abstract) is not None:
        outer, known, new = trace.frame, state.verified, []
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
        trace._leave()
    return True


_SUSPENDED = 0x20 | 0x80 | 0x200  # generators and coroutines go on within other functions
_VARIADIC = 0x04


def _around(frame: FrameType) -> Trace | None:
    """The innermost trace of this thread around a frame; those that died are discarded."""
    while state.stack:
        trace = state.stack[-1]
        outer, at, handled = trace.frame, frame, False
        while at is not outer and at is not None:
            handled = handled or _is_handler(at)
            at = at.f_back
        if at is not None:
            return None if handled else trace
        trace._leave()
    return None


def _is_handler(frame: FrameType) -> bool:
    """Whether a function is a signal handler that has interrupted its caller, of which it gets the
    frame as an argument."""
    code = frame.f_code
    if code.co_argcount < 2 and not code.co_flags & _VARIADIC:
        return False
    package = frame.f_globals.get("__package__")
    own = OWN.get(package)
    if is_own(package) if own is None else own:
        return False
    given, back = frame.f_locals, frame.f_back
    for name in code.co_varnames[: code.co_argcount + 1]:
        value = given.get(name)
        if value is back or (type(value) is tuple and any(x is back for x in value)):
            return back is not None and code in _handler_codes()
    return False


def _handler_codes() -> set[CodeType]:
    codes = set()
    for number in _SIGNALS:
        handler: Any = _signal.getsignal(number)
        if handler is None or isinstance(handler, int) or handler is _signal.default_int_handler:
            continue
        while isinstance(handler, functools.partial):
            handler = handler.func
        code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", 0)
        if code:
            codes.add(code)
    return codes


_SIGNALS = sorted(_signal.valid_signals())


class Deleted(Trace):
    """Takes the place of a trace in the node of a deleted or donated array.

    It has ended, so every function that asks which trace an operand belongs to raises `error()`;
    operations on arrays that are there need no check of their own.
    """

    __slots__ = ("site", "type", "what")
    dead = True

    def __init__(self, type: str, what: str, site: Any) -> None:
        self.kind, self.parent = "deleted", None
        self.active, self.abstract = False, True
        self.type = type  # of the array, such as float32[3]
        self.what = what  # what happened to it
        self.site = site  # the user's code and instruction that did it

    def error(self) -> RuntimeError:
        """The error of an operation on the array."""
        return RuntimeError(
            f"Array has been deleted with shape={self.type}: {self.what} on line "
            f"{line_of(self.site)}; make a copy before that call to use the values after it"
        )


class Escaped(Trace):
    """Takes the place of a trace in what is left of an argument of a differentiated function after
    the derivative has been taken: the value can be looked at, and operations on it raise `error()`.
    """

    __slots__ = ()
    dead = True

    def __init__(self, of: Trace) -> None:
        self.kind, self.parent, self.info = "escaped", of, of.info
        self.active, self.abstract = False, of.abstract

    def error(self) -> UnexpectedTracerError:
        """The error of an operation on the value."""
        return UnexpectedTracerError(
            "Encountered an unexpected tracer: an argument of a differentiated function was used "
            "after its derivative had been taken. It escaped through global state, a closure or an "
            "attribute; return it from the function instead, with has_aux=True"
        )


# Values of these traces are refused wherever arguments are converted.
DEAD = (Deleted, Escaped)


def line_of(site: tuple[Any, int] | None) -> str:
    """Return `file:line (function)` of a code object and an instruction in it."""
    if site is None:
        return "<unknown line>"
    code, lasti = site
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end and number is not None:
            line = number
    return f"{code.co_filename}:{line} ({code.co_name})"


def sets_site(walk: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that records nodes again under their lines: it sets `state.site`."""

    @functools.wraps(walk)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        before = state.site
        try:
            return walk(*args, **kwargs)
        finally:
            state.site = before

    return wrapper


@contextlib.contextmanager
def own_lines() -> Iterator[None]:
    """Run a user function: what it records has its lines."""
    before, state.site = state.site, None
    try:
        yield
    finally:
        state.site = before


class EffectsOf:
    """The effects of a function that has a derivative rule of its own: where the rule is used, they
    are not done, since the rule has its own. What is recorded in it carries this as `within`."""

    __slots__ = ("held", "parent")

    def __init__(self, parent: EffectsOf | None) -> None:
        self.parent = parent  # of the function around it
        self.held: list[Any] = []  # those that wait for a decision, where values are there

    def have(self, node: Any) -> bool:
        """Whether an operation with an effect belongs to the function."""
        if node.op.kind != "callback":  # a call: all effects of its programs must
            programs = [
                p for v in node.params.values() for p in (v if isinstance(v, tuple) else (v,))
            ]
            return all(self.have(e) for p in programs for e in getattr(p, "effects", ()))
        owner = node.params.get("within")
        while owner is not None and owner is not self:
            owner = owner.parent
        return owner is self


@contextlib.contextmanager
def own_effects() -> Iterator[EffectsOf]:
    """Run a function that has a rule of its own; where values are there, effects that give nothing
    back are held, and not done."""
    owner = EffectsOf(state.within)
    before, state.within = state.within, owner
    try:
        with held_effects(owner.held):
            yield owner
    finally:
        state.within = before


@contextlib.contextmanager
def noted_writes() -> Iterator[dict[int, Any]]:
    """List the references that a function writes to, with what was in them before."""
    outer, found = state.written, {}
    state.written = found
    try:
        yield found
    finally:
        state.written = outer
        if outer is not None:
            outer.update({k: x for k, x in found.items() if k not in outer})


@contextlib.contextmanager
def held_effects(found: list[Any]) -> Iterator[None]:
    """Where values are there, list effects that give nothing back, and do not do them."""
    before, state.held = state.held, found
    try:
        yield
    finally:
        state.held = before


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """Run something outside of all traces of this thread: a user function in a callback."""
    before = dict(state.__dict__)
    try:
        state.__dict__.update(_State().__dict__)
        yield
    finally:
        state.__dict__.update(before)


def _start_anew() -> None:
    """Nothing is recorded in this thread any more."""
    left, trace = list(state.stack), state.abstract
    while trace is not None:
        left.append(trace)
        trace = trace.previous
    for trace in left:
        trace.active = False
        if trace in tracing:
            tracing.remove(trace)
    state.__dict__.update(_State().__dict__)


at_interrupt.append(_start_anew)


def current() -> Trace | None:
    """Return this thread's innermost abstract trace."""
    if state.abstract is not None and not belongs(sys._getframe(1)):
        return None
    return state.abstract


def differentiating() -> bool:
    """Whether a derivative is being taken around what this thread records, with nothing but mapped
    functions between: programs are kept, and may be differentiated later or not at all."""
    for trace in reversed(state.stack):
        if trace.kind != "jit":
            return True
        if getattr(trace.info, "transform", "vmap") not in ("vmap", "pmap"):
            return False
    return False


def mapping(trace: Trace) -> bool:
    """Whether a trace that has ended was made by `vmap` and derivatives in mapped functions only,
    up to one that is still being made."""
    at: Trace | None = trace
    while at is not None and not at.active:
        if at.kind == "jit" and getattr(at.info, "transform", "") != "vmap":
            return False
        at = at.parent
    return True


def innermost() -> Trace | None:
    """Return this thread's innermost trace of any kind."""
    return state.stack[-1] if state.stack else None


def join(a: Trace | None, b: Trace | None) -> Trace | None:
    """Return the deeper of two traces, looking through grad traces that have ended.

    Raises:
        UnexpectedTracerError: one of them is an abstract trace that has ended, so a traced value
        has leaked.
        RuntimeError: one of them stands for a deleted array.
    """
    while a is not None and not a.active:
        a = _ended(a)
    while b is not None and not b.active:
        b = _ended(b)
    if a is None:
        return b
    if b is None:
        return a
    return a if a.level >= b.level else b


def _ended(trace: Trace) -> Trace | None:
    if trace.kind == "jit":
        info = trace.info
        where = f" while tracing {info}" if info else ""
        error = UnexpectedTracerError(
            "Encountered an unexpected tracer: a traced value was used after its trace had ended. "
            f"It was made{where}, and escaped through global state, a closure or an attribute; "
            "return it from the function instead"
        )
        error.made = where
        raise error
    if isinstance(trace, DEAD):
        raise trace.error()
    return trace.parent
