"""Exceptions raised by signal handlers at any point where CPython runs handlers in the package.

Afterwards the thread must compute as before, its options must be unchanged, and no lock may be
held. Handlers run after a function is entered, after a call of a C function, and after a backward
jump. The tests find these places in programs that use most of the package, and raise an error at
one of them at a time.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import forks, lax
from accnp.compiler.worker_threads import at_work
from accnp.config import config
from accnp.engine import watch
from accnp.ir import trace as traces

ROOT = str(Path(jax.__file__).parent)
CHECKS = ("RESUME", "CALL", "CALL_FUNCTION_EX")  # after which CPython runs handlers
ERRORS = (KeyboardInterrupt, TimeoutError, MemoryError)
SAMPLE = 40  # number of positions to test in each program, and all of those in `enters_or_leaves`

Place = tuple[CodeType, int]


def places_of(code: CodeType) -> set[int]:
    """Return the offsets of instructions before which a handler may run.

    Omits those from which an error leaves through the same `finally` as from the previous
    instruction.
    """
    ranges = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    steps = list(dis.get_instructions(code))

    def around(offset: int) -> list[int]:
        return [i for i, r in enumerate(ranges) if r.start <= offset < r.end]

    offsets = set()
    for step, after in itertools.pairwise(steps):
        if step.opname == "JUMP_BACKWARD":
            offsets.add(step.argval)
        elif step.opname in CHECKS and around(step.offset) == around(after.offset):
            offsets.add(after.offset)
    return offsets


def enters_or_leaves(code: CodeType) -> bool:
    """Return whether a code object is a part of a context manager, or sets options."""
    generator = code.co_flags & inspect.CO_GENERATOR and code.co_name != "<genexpr>"
    named = code.co_name in ("__enter__", "__exit__")
    return bool(generator) or named or code.co_filename.endswith("config.py")


class Injection:
    """List the places that a program passes, or raise an error at one of them, once."""

    def __init__(self, at: Place | None = None, error: type[BaseException] = TimeoutError) -> None:
        self.at = at
        self.error = error
        self.passed: dict[Place, None] = {}
        self.raised = False
        self.known: dict[CodeType, set[int]] = {}

    def calls(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(ROOT) and code.co_filename != contextlib.__file__:
            return None
        if self.at is not None and (self.raised or code is not self.at[0]):
            return None
        frame.f_trace_opcodes = True
        return self.steps

    def steps(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "opcode" and not self.raised:
            code, place = frame.f_code, (frame.f_code, frame.f_lasti)
            if self.at is None:
                if code not in self.known:
                    self.known[code] = places_of(code)
                if frame.f_lasti in self.known[code]:
                    self.passed[place] = None
            elif place == self.at:
                self.raised = True
                raise self.error("of a signal handler")
        return self.steps

    def run(self, work: Callable[[], Any]) -> None:
        before = sys.gettrace()
        sys.settrace(self.calls)
        try:
            work()
        except BaseException:
            if not self.raised:
                raise
        finally:
            sys.settrace(before)


def options() -> dict[str, Any]:
    return {**config.values(), "key": config.key, "promotion": config.promotion}


def unavailable_locks() -> list[Any]:
    """Return the locks of the package that another thread cannot acquire now."""
    locks = []

    def look() -> None:
        for lock in forks._locks:
            if hasattr(lock, "acquire") and not lock.acquire(timeout=60):
                locks.append(lock)
            else:
                getattr(lock, "release", lambda: None)()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return locks


def left_inside() -> set[int]:
    """Return the threads that `at_work` counts as inside, except those that may still
    be compiling."""
    others = {t.ident for t in threading.enumerate() if t is not threading.current_thread()}
    return set(at_work._inside) - others


x = jnp.arange(4.0)
times_two = jax.jit(lambda x: x * 2 + 1)


def scopes() -> list[float]:
    with jax.enable_x64(True), jax.debug_nans(True):
        a = jnp.ones(3) + 1
    with jax.numpy_rank_promotion("raise"):
        b = np.asarray(times_two(x))
    with jax.disable_jit(), jax.named_scope("a"), jax.default_device(jax.devices()[0]):
        c = times_two(x) + 1
    return [float(v) for v in (a[0], b[1], c[1])]


def observed() -> list[float]:
    with jax.explain():
        return np.asarray(jnp.sin(x) * 2).tolist()


@jax.custom_jvp
def sine(x: jax.Array) -> jax.Array:
    return jnp.sin(x)


@sine.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return sine(primals[0]), tangents[0] * jnp.cos(primals[0])


@jax.custom_vjp
def cube(x: jax.Array) -> jax.Array:
    return x * x * x


cube.defvjp(lambda x: (x * x * x, x), lambda x, g: (3 * x * x * g,))


def rules() -> list[float]:
    a = jax.grad(lambda x: sine(x) * cube(x))(0.5)
    b = jax.jit(jax.grad(lambda x: jax.checkpoint(cube)(x)))(0.5)
    c = jax.hessian(lambda x: (sine(x) ** 2).sum())(x[:2])
    return [float(v) for v in (a, b, c[0, 0])]


def control() -> list[float]:
    def body(c: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
        jax.debug.callback(lambda v: None, a)
        return c + a, c

    a = lax.scan(body, 0.0, x)[0]
    b = lax.while_loop(lambda s: s < 9, lambda s: s * 2 + 1, 1.0)
    c = lax.cond(True, lambda: 1.0, lambda: 2.0)
    d = jax.pure_callback(np.square, jax.ShapeDtypeStruct((4,), np.float32), x)
    return [float(v) for v in (a, b, c, d[3])]


def eager() -> list[float]:
    y = jnp.sin(x) * 0 + 2
    inverse = jnp.linalg.inv(jnp.eye(3) * 2)
    key = jax.random.normal(jax.random.key(0), (3,))
    return [float(v) for v in (y @ y, inverse[0, 0], key.shape[0], x.at[1].set(4.0)[1])]


def mapped() -> list[float]:
    a = jax.vmap(lambda a: a * 2)(x)
    b = jax.jit(jax.vmap(lambda a: lax.psum(a, "i"), axis_name="i"))(x)
    c = jax.pmap(lambda x: x + 1)(x[None])
    d = jax.linearize(jnp.square, x)[1](x)
    e = jax.vjp(jnp.square, x)[1](x)[0]
    text = str(jax.make_jaxpr(lambda x: x + 1)(x))
    return [*(float(v) for v in (a[1], b[1], c[0, 1], d[1], e[1])), float("add" in text)]


def cold() -> list[float]:
    jax.clear_caches()
    return [float(jax.jit(lambda x: jnp.sum(x * 3 + 1))(x))]


PROGRAMS = (scopes, observed, rules, control, eager, mapped, cold)


@pytest.fixture(autouse=True)
def fast_switching() -> Iterator[None]:
    """Make background compilation threads yield at once; half of the time was spent waiting for
    them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("program", PROGRAMS)
def test_exception_leaves_the_thread_as_it_was(
    program: Callable[[], list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored: list[Any] = []  # what CPython prints: errors that come up in `__del__`
    monkeypatch.setattr(sys, "unraisablehook", lambda u: ignored.append(u.exc_value))
    right = program()
    before = options()
    seen = Injection()
    seen.run(program)
    places = list(seen.passed)
    assert len(places) > 300
    first = {place[0]: place for place in reversed(places) if not enters_or_leaves(place[0])}
    chosen = [place for place in places if enters_or_leaves(place[0])]
    chosen += list(first.values())[:: max(1, len(first) // SAMPLE)]
    for number, place in enumerate(chosen):
        where = f"{place[0].co_filename}:{place[0].co_firstlineno} ({place[0].co_qualname})"
        Injection(place, ERRORS[number % 3]).run(program)
        assert program() == right, where
        assert options() == before, where
        assert not unavailable_locks(), where
        assert not left_inside(), where
        assert traces.state.abstract is None, where
        assert not traces.state.stack, where
        assert not traces.tracing, where
        assert not watch.on, where
    assert all("of a signal handler" in str(error) for error in ignored), ignored


IMPORT = """
import subprocess
import sys
def local(frame, event, arg):
    global lines
    lines += event == "line"
    if lines == {at}:
        lines += 1
        raise {error}
    return local
lines = 0
sys.settrace(lambda frame, event, arg: local if {root!r} in frame.f_code.co_filename else None)
try:
    import accnp
    import accnp.scipy.stats
except {error}:
    pass
finally:
    sys.settrace(None)
assert lines > {at}
import accnp as jax, accnp.numpy as jnp, accnp.scipy.stats as stats
x = jnp.arange(4.0)
assert float(jax.jit(jax.grad(lambda x: (x * x).sum()))(x)[1]) == 2
assert isinstance(jax.vmap(lambda a: a + 1)(x), jax.Array)
assert abs(float(stats.beta.pdf(0.5, 2.0, 3.0)) - 1.5) < 1e-5
try:
    jax.jit(lambda x: bool(x > 0))(1.0)
except jax.errors.TracerBoolConversionError:
    print("computes")
"""


@pytest.mark.parametrize("at", [20, 5003, 14003, 16007, 24001, 29009, 33011])
def test_an_interrupted_import_can_be_done_again(at: int) -> None:
    program = IMPORT.format(at=at, error=ERRORS[at % 3].__name__, root=ROOT)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "computes\n", run.stderr
