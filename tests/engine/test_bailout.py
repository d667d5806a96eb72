"""Loops with callbacks in rarely taken branches run as native code.

The native loop stops only for the iterations that call Python. Results and callback order are
compared with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import lax
from accnp.engine import bailout

F32 = np.float32
X = np.random.default_rng(0).standard_normal((20, 3)).astype(F32)


@pytest.fixture
def native_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the iterations at which native loops stopped, in order."""
    stops: list[int] = []
    run = bailout.Bailout.run

    def counted(self: bailout.Bailout, leaves: Any, first: int) -> Any:
        outcome = run(self, leaves, first)
        stops.append(outcome[0])
        return outcome

    monkeypatch.setattr(bailout.Bailout, "run", counted)
    return stops


def add_one(seen: list[float]) -> Callable[[Any], Any]:
    """Return a function that calls Python, which records its argument and adds 1."""

    def host(value: Any) -> Any:
        seen.append(float(value))
        return np.float32(value + F32(1))

    return lambda s: accnp.pure_callback(host, accnp.ShapeDtypeStruct((), jnp.float32), s)


def scanned(x: Any, bad: Any, seen: list[float], reverse: bool = False) -> Any:
    """Run a scan whose body calls Python in the iterations listed in `bad`."""

    def body(c: Any, row: Any) -> Any:
        i, s, v = c
        s = s * 0.5 + row.sum()
        s = lax.cond((i == bad).any(), add_one(seen), lambda s: s, s)
        return (i + 1, s, v + row * s), (s * 2, v - s)

    start = (jnp.int32(0), jnp.float32(0), jnp.zeros(3))
    return lax.scan(body, start, x, reverse=reverse)


def expected(x: np.ndarray, bad: list[int], reverse: bool = False) -> Any:
    """Compute the same in NumPy, and what the callback received."""
    s, v, seen = F32(0), np.zeros(3, F32), []
    first, second = np.zeros(len(x), F32), np.zeros((len(x), 3), F32)
    for turn in range(len(x)):
        i = len(x) - 1 - turn if reverse else turn
        s = s * F32(0.5) + x[i].sum()
        if turn in bad:
            seen.append(s)
            s = s + F32(1)
        first[i], second[i] = s * 2, v - s
        v = v + x[i] * s
    return s, v, first, second, seen


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("bad", [[], [0], [7], [19], [3, 4, 5, 18]], ids=str)
def test_scan(bad: list[int], reverse: bool, native_runs: list[int]) -> None:
    seen: list[float] = []
    call = accnp.jit(lambda x, b: scanned(x, b, seen, reverse))
    (n, s, v), (first, second) = call(X, jnp.array([*bad, -1], jnp.int32))
    references = expected(X, bad, reverse)
    for actual, value in zip((s, v, first, second, seen), references, strict=True):
        np.testing.assert_allclose(np.asarray(actual), value, rtol=1e-5, atol=1e-5)
    assert n == 20
    # One native run up to each turn that calls Python, and one after the last of them.
    assert native_runs == [*bad, 20][: len(bad) + (bad[-1:] != [19])]


@pytest.mark.parametrize("bad", [-1, 0, 5, 9])
def test_while(bad: int, native_runs: list[int]) -> None:
    seen: list[float] = []

    def run(n: Any, bad: Any) -> Any:
        def body(c: Any) -> Any:
            i, s = c
            return i + 1, lax.cond(i == bad, add_one(seen), lambda s: s, s + i * 0.5)

        return lax.while_loop(lambda c: c[0] < n, body, (jnp.int32(0), jnp.float32(0)))

    i, s = accnp.jit(run)(10, bad)
    assert (i, s) == (10, 22.5 + (bad >= 0))
    assert seen == ([] if bad < 0 else [sum(0.5 * k for k in range(bad + 1))])
    assert native_runs == ([-1] if bad < 0 else [bad, -1])


def test_switch_keeps_the_branches_without_callbacks(native_runs: list[int]) -> None:
    seen: list[float] = []
    double, negate = (lambda s: s * 2), (lambda s: -s)

    @accnp.jit
    def run(which: Any) -> Any:
        def body(s: Any, k: Any) -> Any:
            s = lax.switch(k, [double, add_one(seen), negate], s)
            return s, s

        return lax.scan(body, jnp.float32(3), which)

    last, rows = run(jnp.array([0, 2, 1, 0, 5, -4], jnp.int32))  # outside: the last, the first
    assert rows.tolist() == [6.0, -6.0, -5.0, -10.0, 10.0, 20.0]
    assert last == 20
    assert seen == [-6.0]
    assert native_runs == [2, 6]


def test_first_or_last_branch_calls(native_runs: list[int]) -> None:
    seen: list[float] = []

    @accnp.jit
    def run(which: Any) -> Any:
        def body(s: Any, k: Any) -> Any:
            s = lax.switch(k, [add_one(seen), lambda s: s * 2, add_one(seen)], s)
            return s, None

        return lax.scan(body, jnp.float32(1), which)[0]

    assert run(jnp.array([1, -7, 1, 9], jnp.int32)) == 7
    assert seen == [2.0, 6.0]
    assert native_runs == [1, 3]


def test_callback_error_keeps_all_buffers() -> None:
    def host(value: Any) -> Any:
        if value > 3:
            raise ValueError("too large")
        return value

    @accnp.jit
    def run(x: Any) -> Any:
        def body(s: Any, row: Any) -> Any:
            s = s + row
            shape = accnp.ShapeDtypeStruct((), jnp.float32)
            check = lambda s: accnp.pure_callback(host, shape, s)  # noqa: E731
            return lax.cond(s > 2, check, lambda s: s, s), None

        return lax.scan(body, jnp.float32(0), x)[0]

    assert run(jnp.ones(3)) == 3
    with pytest.raises(Exception, match="too large"):
        accnp.block_until_ready(run(jnp.ones(9)))
    assert run(jnp.ones(2)) == 2


def test_a_loop_that_always_calls_stays_on_the_host(native_runs: list[int]) -> None:
    seen: list[float] = []
    bad = jnp.arange(20, dtype=jnp.int32)
    accnp.block_until_ready(accnp.jit(lambda x, b: scanned(x, b, seen))(X, bad))
    assert len(seen) == 20
    assert len(native_runs) == bailout.MOST_IN_A_ROW + 1


def test_callbacks_outside_of_branches_stay_on_the_host(native_runs: list[int]) -> None:
    seen: list[float] = []

    def body(s: Any, row: Any) -> Any:
        return lax.cond(s > 5, add_one(seen), lambda s: s, add_one(seen)(s)), None

    assert accnp.jit(lambda x: lax.scan(body, x, jnp.zeros(4))[0])(3.0) == 8
    assert seen == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert not native_runs


def test_effects_keep_their_order() -> None:
    """A branch with an ordered effect is run by the host, in the right order."""
    seen: list[int] = []

    def tell(i: Any) -> Any:
        accnp.debug.callback(lambda i: seen.append(int(i)), i, ordered=True)
        return i

    @accnp.jit
    def run(n: Any) -> Any:
        body = lambda i, s: lax.cond(i % 3 == 0, tell, lambda i: i, i) + s  # noqa: E731
        return lax.fori_loop(0, n, body, 0)

    assert run(10) == 45
    assert seen == [0, 3, 6, 9]


def test_gradients_of_checked_loops(native_runs: list[int]) -> None:
    """The check is in the loop and in its derivative; results are bit-identical to those without
    it."""
    reported: list[float] = []

    def tell(s: Any) -> Any:
        accnp.debug.callback(lambda v: reported.append(float(v)), s)
        return s

    def run(a: Any, x: Any, checked: bool) -> Any:
        def body(s: Any, row: Any) -> Any:
            s = jnp.tanh(a * s + row)
            return lax.cond(s > 2, tell, lambda s: s, s) if checked else s, s

        return lax.scan(body, jnp.float32(0), x)[1].sum()

    rows = jnp.asarray(X[:, 0])
    value_and_gradients = accnp.jit(accnp.value_and_grad(run, (0, 1)), static_argnums=2)
    np.testing.assert_array_equal(
        value_and_gradients(0.5, rows, True)[0], value_and_gradients(0.5, rows, False)[0]
    )
    for actual, unrolled in zip(
        value_and_gradients(0.5, rows, True)[1],
        value_and_gradients(0.5, rows, False)[1],
        strict=True,
    ):
        np.testing.assert_array_equal(actual, unrolled)
    assert native_runs
    assert not reported


def test_loops_after_a_failed_check_are_skipped(native_runs: list[int]) -> None:
    """With a step that fails the check, the inner loop would never end."""

    def refuse(value: Any) -> Any:
        raise ValueError("a step must be positive")

    @accnp.jit
    def run(steps: Any) -> Any:
        def body(total: Any, dt: Any) -> Any:
            shape = accnp.ShapeDtypeStruct((), jnp.float32)
            check = lambda d: accnp.pure_callback(refuse, shape, d)  # noqa: E731
            dt = lax.cond(dt > 0, lambda d: d, check, dt)
            count = lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + dt, c[1] + 1), (0.0, 0))[1]
            return total + count, count

        return lax.scan(body, 0, steps)

    total, counts = run(jnp.array([0.5, 0.25, 1.0]))
    assert (total, counts.tolist()) == (7, [2, 4, 1])
    with pytest.raises(Exception, match="must be positive"):
        accnp.block_until_ready(run(jnp.array([0.5, 0.0, 1.0])))
    assert native_runs == [3, 1]


def test_checks_in_inner_loops(native_runs: list[int]) -> None:
    """A failed check in an inner loop ends the iteration of the outer loop."""
    seen: list[float] = []

    @accnp.jit
    def run(x: Any) -> Any:
        def inner(s: Any, v: Any) -> Any:
            s = lax.cond(v > 2, add_one(seen), lambda s: s, s + v)
            return s, None

        def outer(s: Any, row: Any) -> Any:
            s = lax.scan(inner, s, row)[0]
            end = lambda c: c[0] < row[0]  # noqa: E731
            step = lambda c: (c[0] + 1, lax.cond(c[0] == 1, add_one(seen), lambda s: s, c[1]))  # noqa: E731
            return lax.while_loop(end, step, (0, s))[1], s

        return lax.scan(outer, jnp.float32(0), x)

    s, rows = run(jnp.array([[1, 1], [0, 1], [1, 3], [2, 1], [1, 0]], jnp.float32))
    assert rows.tolist() == [2.0, 3.0, 8.0, 11.0, 13.0]
    assert s == 13
    assert seen == [7.0, 11.0]
    assert native_runs[:1] == [2]


def is_odd_checked(seen: list[float]) -> Callable[[Any], Any]:
    """Add 1 to odd numbers in a Python callback; loops that count down by two end only for even
    numbers."""

    def tell(c: Any) -> Any:
        accnp.debug.callback(lambda v: seen.append(int(v)), c)
        return c + 1

    return lambda c: lax.cond(c % 2 == 1, tell, lambda c: c, c)


def steps_down(c: Any) -> Any:
    """Count the twos in c; for odd c the loop does not end."""
    return lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 2, s[1] + 1), (c, 0))[1]


@pytest.mark.parametrize("kind", ["scan", "while", "test"])
def test_inner_iterations_are_skipped_after_a_trap(kind: str) -> None:
    seen: list[float] = []
    checked = is_odd_checked(seen)

    def inner(c: Any) -> Any:
        if kind == "scan":
            step = lambda c, _: ((d := checked(c)), steps_down(d))  # noqa: E731
            c, counts = lax.scan(step, c, None, length=3)
            return c + counts.sum()
        if kind == "while":
            more = lambda s: s[0] < 3  # noqa: E731
            step = lambda s: (s[0] + 1, (d := checked(s[1])), s[2] + steps_down(d))  # noqa: E731
            return sum(lax.while_loop(more, step, (0, c, 0))[1:])
        more = lambda s: s[0] + 0 * steps_down(jnp.where(s[0] == 0, 8, s[1])) < 3  # noqa: E731
        step = lambda s: (s[0] + 1, checked(s[1]))  # noqa: E731
        return lax.while_loop(more, step, (0, c))[1] + 12

    @accnp.jit
    def run() -> Any:
        turn = lambda k, _: (k + 1, inner(jnp.where(k % 10 == 5, 7, 8)))  # noqa: E731
        return lax.scan(turn, 0, None, length=20)[1]

    assert run().tolist() == [20] * 20
    assert seen == [7, 7]
