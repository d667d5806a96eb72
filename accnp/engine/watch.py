"""Execution of plans with observation: times of steps, the search for NaN and infinity, observers.

`run` computes the same results as `execute.run` from a plan, its program, and the buffers of its
leaves. At debug level 5 (ACCNP_DEBUG=5) it also logs the time of every step. With `debug_nans` or
`debug_infs`, it searches the results, and raises FloatingPointError with the operation and the
user's line that produced such a value. The profiler and `explain` call `observe` to see each run of
a plan. `on` is true while one of these modes is enabled; other execution only tests this flag.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from accnp._native import set_pending_limit
from accnp.compiler.fusion.program import Program, Value
from accnp.config import config, listeners
from accnp.debug_log import note
from accnp.engine import execute
from accnp.engine.steps import KernelStep, Plan, Step
from accnp.ir import graph as graphs
from accnp.ir import node as nodes
from accnp.ir.graph import Graph
from accnp.ir.node import Node, site_text
from accnp.runtime.buffer import Buffer

__all__ = ["find_bad", "first_bad_operation", "observe", "run", "searched_kinds"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

on = False  # whether any of these modes is enabled
synchronous = False  # whether steps run one by one: times are logged, or values are searched
# Whether any thread has enabled options that are not part of the keys of pending dispatch.
unkeyed_options = False
TIMES = 5
_observers = 0
_PENDING = nodes.PENDING_LIMIT


def _refresh() -> None:
    global on, synchronous, unkeyed_options
    unkeyed_options = any(config.anywhere("fastmath")) or any(config.anywhere("kernel_overrides"))
    searching = any(config.anywhere("debug_nans")) or any(config.anywhere("debug_infs"))
    synchronous = searching or max(config.anywhere("debug")) >= TIMES
    on = synchronous or _observers > 0
    # During a search, operations run when they are recorded, so that errors name the right line.
    nodes.PENDING_LIMIT = 0 if searching else _PENDING
    set_pending_limit(nodes.PENDING_LIMIT)


def observe(more: int) -> None:
    """Add (1) or remove (-1) an observer that sees every run of a plan, step by step."""
    global _observers
    _observers += more
    _refresh()


def searched_kinds() -> tuple[str, ...]:
    """Return which values this thread searches for in results: "nan", "inf"."""
    return (("nan",) if config.debug_nans else ()) + (("inf",) if config.debug_infs else ())


def run(
    plan: Plan, leaves: Sequence[Buffer], program: Program | None, kinds: tuple[str, ...]
) -> list[Buffer]:
    """Run a plan; log times at debug level 5; search the results for the given kinds of values.

    Raises:
        FloatingPointError: a result has such a value. The text names the operation and the line.
    """
    results = run_timed(plan, leaves) if config.debug >= TIMES else execute.run(plan, leaves)
    for i, (buffer, aval) in enumerate(zip(results, plan.out_avals, strict=True)):
        kind = find_bad(buffer.view(aval.shape, aval.dtype), kinds)
        if kind:
            raise _error(kind, program, leaves, i, buffer.view(aval.shape, aval.dtype))
    return results


def run_timed(plan: Plan, leaves: Sequence[Buffer]) -> list[Buffer]:
    """Run a plan, and log each step and its time."""
    for step in plan.steps:
        if isinstance(step, KernelStep):  # so that the time of a launch does not include compiling
            step.load(plan.fastmath)
    last = time.perf_counter()

    def log_step(step: Step, span: tuple[float, float] | None = None) -> None:
        nonlocal last
        now = time.perf_counter()
        if isinstance(step, KernelStep):
            what = f"kernel {step.label}, for 0..{step.extent}"
        else:
            what = f"{step.op.name} (library call or loop)"
        seconds = now - last if span is None else span[1] - span[0]
        note(f"launch {what}: {seconds * 1e6:.1f} us")
        last = time.perf_counter()

    return execute.run(plan, leaves, log_step)


# --- the search for nan and inf ---


def find_bad(value: np.ndarray, kinds: Sequence[str]) -> str:
    """Return "nan" or "inf" if the array has such a value and it is one of `kinds`; else ""."""
    if value.dtype.kind not in "fcV" and value.dtype.name not in _SMALL_FLOATS:
        return ""
    with np.errstate(all="ignore"):
        if "nan" in kinds and bool(np.isnan(value).any()):
            return "nan"
        if "inf" in kinds and bool(np.isinf(value).any()):
            return "inf"
    return ""


_SMALL_FLOATS = ("bfloat16", "float16")


class _BadValue(Exception):
    """An operation had a result with a value that is searched for."""

    def __init__(self, node: Node, kind: str, operands: Sequence[Any], result: np.ndarray) -> None:
        super().__init__(kind)
        self.node, self.kind, self.operands, self.result = node, kind, operands, result


def first_bad_operation(
    program: Program, leaves: Sequence[Buffer], kinds: Sequence[str]
) -> _BadValue | None:
    """Recompute a program, operation by operation, with the reference functions.

    Return the first operation whose result has a value of the given kinds, or None.
    """
    env: dict[int, Any] = {}
    for v, buffer in zip(program.leaves, leaves, strict=True):
        env[id(v)] = buffer.view(v.aval.shape, v.aval.dtype)
    try:
        for v in program.values:
            env[id(v)] = _compute_checked(v, env, kinds)
    except _BadValue as bad_value:
        return bad_value
    return None


def _compute_checked(
    v: Value, env: dict[int, Any], kinds: Sequence[str]
) -> np.ndarray | list[np.ndarray]:
    if v.parent is not None:
        return env[id(v.parent)][v.index]
    operands = [env[id(x)] for x in v.inputs]
    assert v.op.numpy is not None
    with np.errstate(all="ignore"):
        out = v.op.numpy(*operands, **v.params)
    several = v.has_several_results
    pairs = zip(out if several else [out], v.avals, strict=True)
    results = [np.broadcast_to(np.asarray(r, a.dtype), a.shape) for r, a in pairs]
    for result in results:
        kind = find_bad(result, kinds)
        if kind:
            _search_bodies(v, operands, kinds)
            assert v.node is not None
            raise _BadValue(v.node, kind, *_with_recorded_axes(v.node, operands, result))
    return results if several else results[0]


def _with_recorded_axes(
    node: Node, operands: Sequence[Any], result: np.ndarray
) -> tuple[list[Any], np.ndarray]:
    """Return the operands and the result of an operation with the axes that it was recorded with,
    since programs omit axes of length 1."""
    shape, of = getattr(node.aval, "shape", result.shape), result.shape
    if [n for n in shape if n != 1] != [n for n in of if n != 1]:
        return [*operands], result
    arrays = [np.asarray(x) for x in operands]
    return [x.reshape(shape) if x.shape == of else x for x in arrays], result.reshape(shape)


def _search_bodies(v: Value, operands: Sequence[Any], kinds: Sequence[str]) -> None:
    """Rerun an operation that contains programs (a loop or branch) and check each operation of
    these."""
    inner: list[Graph] = []
    todo = graphs.graphs_in(v.params)
    for g in todo:
        inner.append(g)
        for n in g.nodes:
            todo += graphs.graphs_in(n.params)
    saved = [g.extra.get("steps") for g in inner]
    try:
        for g in inner:
            slots, steps, results = graphs.steps_of(g)
            checked = [
                (_add_nan_check(s[0], n, kinds), *s[1:])
                for s, n in zip(steps, g.nodes, strict=True)
            ]
            g.extra["steps"] = slots, checked, results
        assert v.op.numpy is not None
        with np.errstate(all="ignore"):
            v.op.numpy(*operands, **v.params)
    finally:
        for g, steps in zip(inner, saved, strict=True):
            if steps is None:
                g.extra.pop("steps", None)
            else:
                g.extra["steps"] = steps


def _add_nan_check(fn: Callable[_P, _R], node: Node, kinds: Sequence[str]) -> Callable[_P, _R]:
    def call(*operands: _P.args, **params: _P.kwargs) -> _R:
        out = fn(*operands, **params)
        results: Any = out if isinstance(node.aval, tuple) else [out]
        for result in map(np.asarray, results):
            kind = find_bad(result, kinds)
            if kind:
                raise _BadValue(node, kind, operands, result)
        return out

    return call


def _error(
    kind: str, program: Program | None, leaves: Sequence[Buffer], i: int, result: np.ndarray
) -> FloatingPointError:
    bad_value = None if program is None else first_bad_operation(program, leaves, (kind,))
    operands: Sequence[Any] = ()
    where = "a result"
    if bad_value is not None:
        where = f"{bad_value.node.op.name}, recorded at {site_text(bad_value.node)}"
        operands = bad_value.operands
        result = bad_value.result
    elif program is not None and (node := program.outputs[i].node) is not None:
        where = f"{node.op.name}, recorded at {site_text(node)}"
    bad = np.isnan(result) if kind == "nan" else np.isinf(result)
    at = tuple(int(k) for k in np.argwhere(bad)[0])
    arrays = [np.asarray(x) for x in operands]
    values = [
        _format_value(x[at] if x.shape == result.shape else x[()])
        for x in arrays
        if x.shape in (result.shape, ())
    ]
    place = f" at index {at}" if at else ""
    among = (
        f"{int(bad.sum())} of {bad.size} results, first{place}" if bad.size > 1 else "the result"
    )
    source_values = f", from {', '.join(values)}" if values and len(values) == len(arrays) else ""
    option = f"debug_{kind}s"
    return FloatingPointError(
        f"invalid value ({kind}) encountered in {where}: {among}{source_values}; "
        f"mask such operands before the operation, or turn off {option} to continue"
    )


def _format_value(value: np.ndarray | np.generic) -> str:
    return f"{value:.6g}" if value.dtype.kind == "f" else str(value)


listeners.append(_refresh)
_refresh()
