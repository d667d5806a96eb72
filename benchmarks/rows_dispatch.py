"""Measure the overhead of a call: small functions, recording, trees of parameters, and programs
with loops, which are combined in one row.

A row over several sizes or programs shows the geometric mean of their ratios, and each ratio in its
note.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import accnp
import accnp.numpy as anp
from benchmarks.harness import Call, Row, Timing, interleave, paced, row
from benchmarks.programs import PROGRAMS

SIZES = (10, 100, 1000)
LOOPS = ("nbody", "nbody64", "mandelbrot", "jacobi", "rnn", "paths")


def add_one(x: Any) -> Any:
    return x + 1


def five_operations(x: Any) -> Any:
    return (x + 1) * x - x / 2 + x


def twenty_operations(x: Any) -> Any:
    for _ in range(5):
        x = (x + 1) * x - x / 2
    return x


WORK = {"1": add_one, "5": five_operations, "20": twenty_operations}


def small(ops: str, eager: bool, rounds: int) -> list[Row]:
    """Time a function of a number of operations on 10 to 1000 elements, including the wait for its
    result."""
    f, timings = WORK[ops], {}
    for n in SIZES:
        data = np.random.default_rng(n).standard_normal(n, np.float32)
        a, j = anp.asarray(data), jnp.asarray(data)
        ours, theirs = (f, f) if eager else (accnp.jit(f), jax.jit(f))
        np.testing.assert_allclose(np.asarray(ours(a)), np.asarray(theirs(j)), rtol=1e-3)
        calls = {"ours": _call_and_wait(ours, a), "JAX": _call_and_wait(theirs, j)}
        timings[str(n)] = interleave(calls, 3 * rounds, number=50)
    how, bar = ("eager", 0.3) if eager else ("jit", 0.6)
    many = "operation" if ops == "1" else "operations"
    return [combine_timings(f"{ops} {many} on 10 to 1000 elements, {how}", bar, timings)]


def combine_timings(work: str, bar: float, timings: Mapping[str, Mapping[str, Timing]]) -> Row:
    """Combine several measurements into one row by the geometric mean of their ratios."""
    ratios = {name: t["ours"].ratio(t["JAX"]) for name, t in timings.items()}
    means = {
        column: _mean([t[key].median for t in timings.values()])
        for column, key in (("accnp", "ours"), ("jax", "JAX"))
    }
    note = " ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items())
    return Row(work, "JAX", bar, _mean(list(ratios.values())), means, note=note)


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _call_and_wait(f: Callable[..., Any], x: Any) -> Call:
    return lambda: f(x).block_until_ready()


def time_recording(rounds: int) -> list[Row]:
    """Time the recording of operations, one after the other, whose values are not needed yet."""

    def record(x: Any) -> Any:
        y = x
        for _ in range(50):
            y = y + x
        return y

    a, j = anp.ones(10), jnp.ones(10)
    np.testing.assert_array_equal(np.asarray(record(a)), np.asarray(record(j)))
    calls = {"ours": partial(record, a), "JAX": partial(record, j)}
    t = interleave(calls, 3 * rounds, number=10)
    note = f"{t['ours'].median / 50 * 1e6:.2f} us each"
    return [row("recording 50 operations", 0.13, t, "ours", "JAX", note=note)]


def tree_of_parameters(rounds: int) -> list[Row]:
    """Time a jitted step over 50 small parameters in nested dictionaries, including the wait."""
    data = {
        f"layer{i}": {"w": np.full((4, 4), i, np.float32), "b": np.ones(4, np.float32)}
        for i in range(25)
    }
    calls: dict[str, Call] = {}
    for name, m in (("ours", accnp), ("JAX", jax)):
        p = m.tree_util.tree_map(m.numpy.asarray, data)
        step = m.jit(_update(m))
        calls[name] = partial(lambda m, step, p: m.block_until_ready(step(p, p)), m, step, p)
    for a, b in zip(*(jax.tree_util.tree_leaves(call()) for call in calls.values()), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    before = accnp.counters()["launches"]
    calls["ours"]()
    launches = accnp.counters()["launches"] - before
    t = paced(calls, rounds)
    note = f"{launches} launches"
    good = launches == 1
    return [row("update of 50 parameters", 1.0, t, "ours", "JAX", note=note, extra_ok=good)]


def _update(m: Any) -> Callable[[Any, Any], Any]:
    return lambda p, g: m.tree_util.tree_map(lambda a, b: a - 0.1 * b, p, g)


def loops(rounds: int) -> list[Row]:
    """Compare programs with loops under `jit` with JAX's `jit`."""
    timings = {}
    for name in LOOPS:
        functions = PROGRAMS[name].calls()
        PROGRAMS[name].check(functions)
        calls = {"ours": functions["accnp"], "JAX": functions["jax"]}
        timings[name] = paced(calls, rounds, seconds=1.5)
    return [combine_timings("loops: geometric mean over programs", 0.5, timings)]


ROWS: dict[str, Callable[[int], list[Row]]] = {
    **{f"small-{ops}-jit": partial(small, ops, False) for ops in WORK},
    **{f"small-{ops}-eager": partial(small, ops, True) for ops in WORK},
    "recording": time_recording,
    "parameters": tree_of_parameters,
    "loops": loops,
}
