"""Sessions of `explain` and the profiler, which record events while they are open.

Events are operations recorded, functions traced, passes, kernels compiled, plans run step by step,
and values waited for, in the order in which they ended. While a session is open, the functions that
do these things are patched (`runtime/function_patch.py`), so that they need not test for a session.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from _thread import get_ident
from collections.abc import Callable
from itertools import islice
from time import perf_counter_ns
from types import FrameType
from typing import Any

from accnp import engine, errors
from accnp._native import observe_recording
from accnp.api.jit import trace_log
from accnp.engine import watch
from accnp.forks import renewed, run_uninterrupted
from accnp.ir.node import site_text
from accnp.runtime.function_patch import FunctionPatch
from accnp.trace_fn import function_place

__all__ = ["Event", "Session", "emit"]


class Event:
    """An event: `kind`, `name`, nanoseconds from `start` to `end`, the thread, the user's line, and
    other facts (`more`). Steps on GPUs have -1, -2, ... as their thread."""

    __slots__ = ("end", "kind", "line", "more", "name", "start", "thread")

    def __init__(
        self, kind: str, name: str, start: int, end: int, line: str = "", **more: Any
    ) -> None:
        self.kind = kind
        self.name = name
        self.start = start
        self.end = end
        self.line = line
        self.more = more
        self.thread = get_ident()

    @property
    def seconds(self) -> float:
        """The duration."""
        return (self.end - self.start) / 1e9

    def __repr__(self) -> str:
        return f"Event({self.kind}, {self.name!r}, {self.seconds * 1e3:.3f} ms)"


_open: list[Session] = []
_patches: list[FunctionPatch | _Recording] = []
_lock = renewed(threading.RLock())
# The nesting depth of plans that a thread runs: loops on the host run the plans of their bodies.
_inside = threading.local()
# The current users in a thread: names of jitted functions, or lines that need values.
_asking: dict[int, list[str]] = {}


def emit(event: Event) -> None:
    """Send an event to all open sessions."""
    for session in _open:
        if event.kind in session.kinds:
            session.events.append(event)


class Session:
    """Events of the requested kinds from `start` to `stop`; sessions may overlap.

    Kinds: "record", "trace", "miss", "call", "plan", "pass", "compile", "use", "copy", "run",
    "step", "wait", and "note" for what users mark themselves.
    """

    def __init__(self, kinds: frozenset[str]) -> None:
        self.kinds = kinds
        self.events: list[Event] = []
        self.began = self.ended = 0
        self._given_up = False  # `start` was interrupted

    def start(self) -> None:
        """Start observing."""
        try:
            run_uninterrupted(self._open_session)
        except BaseException:  # an interrupt: the caller cannot stop the session
            self._given_up = True  # do not start if it has not yet
            run_uninterrupted(self._stop)
            raise

    def _open_session(self) -> None:
        with _lock:
            if self._given_up:
                return
            if not _open:
                if not _patches:
                    _patches.extend(_points())
                for d in _patches:
                    d.start()
            _open.append(self)
            watch.observe(1)
        self.began = perf_counter_ns()

    def planned(self, program: Any, plan: Any, of: str) -> None:
        """Handle a new plan, whose clusters are available only now."""

    def stop(self) -> None:
        """Stop observing; a second call has no effect."""
        if self not in _open:
            return
        try:
            run_uninterrupted(self._stop)
        except BaseException:  # an interrupt, possibly before `start`
            run_uninterrupted(self._stop)
            raise

    def _stop(self) -> None:
        with _lock:
            if self not in _open:
                return
            self.ended = perf_counter_ns()
            _open.remove(self)
            if not _open:
                for d in _patches:
                    d.stop()
            watch.observe(-1)


def _is_recorded(kind: str) -> bool:
    return any(kind in session.kinds for session in _open)


class _Recording:
    """Makes `record` see operations that are otherwise recorded by the C extension."""

    def start(self) -> None:
        """Enable the slow path."""
        observe_recording(True)

    def stop(self) -> None:
        """Disable it again."""
        observe_recording(False)


# --- the functions that are watched, and what is recorded of them ---


def _points() -> list[FunctionPatch | _Recording]:
    """Return the functions to observe, by name, so that unused modules stay unloaded."""

    def point(module: str, name: str, around: Callable[..., Any]) -> FunctionPatch:
        target: Any = importlib.import_module(f"accnp.{module}")
        for part in name.split("."):
            target = vars(target)[part]
        return FunctionPatch(target, around)

    return [
        point("ir.node", "record", _record),
        _Recording(),
        point("trace_fn", "trace", _trace),
        point("api.jit.trace_log", "report_miss", _miss),
        point("api.jit.jit", "JitFunction._call_uncached", _record_call),
        point("compiler.fusion.program", "build", _pass("program")),
        point("compiler.fusion.fuse", "fuse", _pass("fusion")),
        point("compiler.fusion.lower", "lower", _pass("lowering")),
        point("compiler.specs.launches", "build_generated", _pass("source")),
        point("engine.plan", "make_plan", _plan),
        point("engine", "materialize", _record_materialize),
        point("engine.pending", "unreferenced_leaves", _record_copies),
        point("engine.execute", "run", _run),
        point("compiler.kernel_cache", "_make", _compile),
        point("runtime.stream", "Task.wait", _record_wait),
    ]


def _record(original: Any, op: Any, *args: Any) -> Any:
    if not _is_recorded("record"):
        return original(op, *args)
    start = perf_counter_ns()
    node = original(op, *args)
    emit(Event("record", node.op.user_name, start, perf_counter_ns(), site=node.site))
    return node


def _trace(original: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
    start = perf_counter_ns()
    try:
        return original(fn, *args, **kwargs)
    finally:
        name, file, line = function_place(kwargs.get("of") or fn)
        place = f"{file}:{line}" if file else ""
        how = kwargs.get("transform", "jit")
        emit(Event("trace", name, start, perf_counter_ns(), place, transform=how))


def _miss(original: Any, function: Any, call: Any, avals: Any, cache: Any) -> None:
    if _is_recorded("miss"):
        name, file, line = function_place(function)
        now = perf_counter_ns()
        why = trace_log.explain_miss(function, call, avals, cache)
        code = getattr(function, "__code__", None)
        place = f"{file}:{line}" if file else ""
        at = errors.user_line()
        emit(Event("miss", name, now, now, place, why=why, at=at, code=code or function))
    original(function, call, avals, cache)


def _record_call(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    start = perf_counter_ns()
    asking = _asking.setdefault(get_ident(), [])
    asking.append(f"jit {self._name}")
    try:
        return original(self, *args, **kwargs)
    finally:
        asking.pop()
        now = perf_counter_ns()
        code = getattr(self._fun, "__code__", self._fun)
        emit(Event("call", self._name, start, now, errors.user_line(), code=code))


def _pass(name: str) -> Callable[..., Any]:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter_ns()
        try:
            return original(*args, **kwargs)
        finally:
            emit(Event("pass", name, start, perf_counter_ns()))

    return around


def _plan(original: Any, program: Any, *args: Any, **kwargs: Any) -> Any:
    start = perf_counter_ns()
    depth = _inside.plans = getattr(_inside, "plans", 0) + 1
    try:
        plan = original(program, *args, **kwargs)
    finally:
        _inside.plans = depth - 1
    if depth > 1:  # in a loop body; the outer plan reports it
        return plan
    of = (_asking.get(get_ident()) or ["eager"])[-1]
    for session in _open:
        session.planned(program, plan, of)
    text = f"{len(program.values)} operations in {len(plan.steps)} steps"
    emit(Event("plan", text, start, perf_counter_ns(), plan=plan, program=program))
    return plan


def _position(frame: FrameType) -> Any:
    """Return the lines and columns of the current instruction of a frame: a call is several
    instructions in Python 3.11, and which one is current varies."""
    return next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))


def _record_materialize(original: Any, nodes: Any, wait: bool = False) -> None:
    avals = [n.aval for n in nodes if n.value is None and n.op.kind != "leaf"]
    if not avals:
        return original(nodes, wait)
    start = perf_counter_ns()
    op = next(n.op for n in nodes if n.value is None and n.op.kind != "leaf")
    frame = errors.user_frame()
    line = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
    why, asked_for = _find_reader(op)
    asking = _asking.setdefault(get_ident(), [])
    asking.append(f"eager, for {why} at {os.path.basename(line)}")
    try:
        return original(nodes, wait)
    finally:
        asking.pop()
        place = (frame.f_code, _position(frame)) if frame else None
        emit(
            Event(
                "use",
                why,
                start,
                perf_counter_ns(),
                line,
                avals=avals,
                place=place if asked_for else None,
            )
        )


# Methods of arrays, and functions, as users write them.
_SPELLED = {
    "Array.__float__": "float(x)", "Array.__int__": "int(x)", "Array.__bool__": "bool(x)",
    "Array.__complex__": "complex(x)", "Array.__index__": "x used as an index",
    "Array.__array__": "np.asarray(x)",
    "Array.__buffer__": "np.asarray(x)",  # which tries this first from Python 3.12 on
    "Array._values": "np.asarray(x)",  # the same with the C extension
    "Array.__repr__": "repr(x)", "Array.__str__": "print(x)",
    "Array.__format__": "formatting x", "Array.item": "x.item()", "Array.tolist": "x.tolist()",
    "Array.block_until_ready": "x.block_until_ready()", "Array.__iter__": "iterating over x",
    "block_until_ready": "block_until_ready(x)", "device_get": "device_get(x)",
    "Array.__contains__": "y in x", "Array.__dlpack__": "x.__dlpack__()",
    "JitFunction._call_uncached": "an argument of a jitted function",
}  # fmt: skip


def _find_reader(op: Any) -> tuple[str, bool]:
    """Return why the user's line needed a value: the call nearest to it, or an internal reason of
    the recorder; and whether the user requested it."""
    frame: Any = errors.own_frame()
    name = frame.f_code.co_qualname if frame is not None else ""
    asks = _SPELLED.get(name, f"{name}()" if name else "a call")
    if _passes_through("record"):
        if op.kind == "opaque":
            return f"{op.name}: a library call, done as soon as it is recorded", False
        return f"{asks}: a long chain, or a large operand of an update, does not wait", False
    return asks, name not in ("JitFunction._call_uncached", "block_until_ready")


def _passes_through(*names: str) -> bool:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in names and frame.f_globals.get("__name__") == "accnp.ir.node":
            return True
        frame = frame.f_back
    return False


def _record_copies(original: Any, pending_graph: Any, leaves: Any) -> Any:
    lost = original(pending_graph, leaves)
    # The second call also covers other operands, which need no copies.
    for k in pending_graph.updated_leaves if leaves is pending_graph.updated_leaves else ():
        if k not in lost:
            now = perf_counter_ns()
            leaf = pending_graph.leaves[k]
            own = getattr(leaf.value, "pooled", True)
            why = (
                "its old value is still referred to (a name, a container, a view, or another use "
                "in the same expression)"
                if own
                else "its memory is not accnp's: an array of NumPy's was taken without a copy"
            )
            node = next(n for n in pending_graph.order if n.op.updated_operand is not None)
            size = leaf.aval.nbytes
            del leaf
            emit(Event("copy", node.op.name, now, now, site_text(node), why=why, nbytes=size))
            del node
    return lost


def _run(original: Any, plan: Any, leaves: Any, tell: Any = None) -> Any:
    depth = getattr(_inside, "depth", 0)
    engine.compile_plan(plan)  # compile before timing the launch
    last = perf_counter_ns()

    def tell_step(step: Any, span: Any = None) -> None:
        nonlocal last
        now = perf_counter_ns()
        name = getattr(step, "label", "") or step.op.user_name
        if span is not None:  # on a GPU, by its clock
            last, now = (start + int(t * 1e9) for t in span)
        event = Event("step", name, last, now, step=step, plan=plan, depth=depth)
        if span is not None:
            event.thread = -1 - plan.device.id
        emit(event)
        if tell is not None:
            tell(step, *([span] if span is not None else []))
        last = perf_counter_ns()

    start = last
    _inside.depth = depth + 1
    try:
        return original(plan, leaves, tell_step)
    finally:
        _inside.depth = depth
        if not depth:
            emit(Event("run", f"{len(plan.steps)} steps", start, perf_counter_ns(), plan=plan))


def _compile(original: Any, source: str, name: str, *args: Any) -> Any:
    start = perf_counter_ns()
    kernel = original(source, name, *args)
    emit(Event("compile", name, start, perf_counter_ns(), origin=kernel.origin, source=source))
    return kernel


def _record_wait(original: Any, self: Any) -> Any:
    if self.done():
        return original(self)
    start = perf_counter_ns()
    try:
        return original(self)
    finally:
        emit(Event("wait", "wait", start, perf_counter_ns(), errors.user_line()))
