"""Signal handlers that raise or compute at any point of a trace."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.ir import trace as traces
from accnp.ir.trace import Trace

ERRORS = (KeyboardInterrupt, TimeoutError, MemoryError)
CODES = {
    f.__code__
    for f in (Trace.__enter__, Trace.__exit__, Trace.leave, Trace.__init__, traces.frame_belongs)
}


def loss(x: jax.Array) -> jax.Array:
    return jnp.sum(jax.vmap(lambda a: jnp.sin(a) * 2)(x))


def work() -> None:
    """Run nested traces of each kind."""
    x = jnp.arange(3.0)
    jax.jit(jax.grad(loss))(x).block_until_ready()
    lax.scan(lambda c, a: (c + a, c), 0.0, x)[0].block_until_ready()


def interrupt_at(number: int, codes: set[CodeType], error: type[BaseException]) -> int:
    """Raise an error at the n-th event in functions with these code objects; return the number of
    events."""
    seen = 0

    def local(frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        nonlocal seen
        frame.f_trace_opcodes = True
        if event in ("line", "opcode", "return"):
            seen += 1
            if seen == number:
                raise error
        return local

    def calls(frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        return local(frame, event, arg) if frame.f_code in codes else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        work()
    except error:
        pass
    finally:
        sys.settrace(before)
    return seen


def check_usable() -> None:
    assert np.asarray(jnp.ones(3) + 1).tolist() == [2, 2, 2]
    assert jax.jit(lambda x: x * 2)(jnp.ones(2)).tolist() == [2, 2]
    assert np.allclose(jax.grad(loss)(jnp.zeros(2)), 2)
    assert not traces.state.stack
    assert traces.state.abstract is None
    assert not traces.tracing


def test_exception_at_every_instruction_leaves_the_thread_usable() -> None:
    jax.clear_caches()
    total = interrupt_at(0, CODES, KeyboardInterrupt)
    assert total > 200
    for number in range(1, total, 23):
        for error in ERRORS[number % 3 :: 3]:
            jax.clear_caches()
            interrupt_at(number, CODES, error)
            check_usable()


def with_handler(handler: Callable[..., Any], run: Callable[[], Any]) -> Any:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        return run()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum())])
def test_handler_does_not_join_the_interrupted_trace(transform: Callable[..., Any]) -> None:
    results_of_handler: list[list[float]] = []
    compiled = jax.jit(lambda x: x + 5)

    def compute(x: jax.Array) -> jax.Array:
        return x * 2 + 1

    def handler(number: int, frame: FrameType | None) -> None:
        x = jnp.arange(2.0)
        for y in (compute(x), jax.jit(compute)(x), compiled(x), jax.vmap(compute)(x)):
            results_of_handler.append(y.tolist())
        results_of_handler.append(jax.grad(lambda a: (a * a).sum())(x).tolist())

    def traced(x: jax.Array) -> jax.Array:
        y = jnp.sin(x)
        signal.raise_signal(signal.SIGUSR1)
        return jnp.cos(y)

    x = jnp.arange(3.0)
    plain = transform(lambda x: jnp.cos(jnp.sin(x)))(x).tolist()
    assert with_handler(handler, lambda: transform(traced)(x)).tolist() == plain
    assert results_of_handler == [[1, 3], [1, 3], [5, 6], [1, 3], [0, 2]]


def test_handler_leaves_no_equations() -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        float(jnp.exp(jnp.ones(())))

    def traced(x: jax.Array) -> jax.Array:
        signal.raise_signal(signal.SIGUSR1)
        return x * 2

    text = str(with_handler(handler, lambda: jax.make_jaxpr(traced)(1.0)))
    assert "exp" not in text


def test_handler_called_by_the_traced_function_is_traced() -> None:
    def handler(number: Any, frame: Any) -> Any:
        return number * 2

    f = jax.jit(lambda x: handler(x, None))
    assert with_handler(handler, lambda: f(3.0)).item() == 6
