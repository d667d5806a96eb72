"""Every derivative rule compared with finite differences: forward, reverse, and forward over
reverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from primitives.cases import CASES, EXCEPTIONS, Case, complete

from accnp.ir.aval import make_aval
from accnp.ir.graph import Graph, build, evaluate, interpret
from accnp.ir.node import items
from accnp.ir.op import OPS
from accnp.transforms.tools import TOOLS

CHECKED = [
    c
    for cases in CASES.values()
    for c in cases
    if c.diff and OPS[c.op].jvp is not None and any(x.dtype.kind in "fc" for x in c.inputs)
]
SMOOTH = [pytest.param(c, id=str(c)) for c in CHECKED]
TWICE = [pytest.param(c, id=str(c)) for c in CHECKED if c.second]
STEP = 1e-6


def program(case: Case) -> Graph:
    avals = [make_aval(x.shape, x.dtype) for x in case.inputs]

    def body(nodes: list[Any]) -> list[Any]:
        y = case.record(*nodes)
        if isinstance(y, list):
            return y
        if isinstance(y.aval, tuple):
            return [*items(y)]
        return [y]

    return build(body, avals, case.op)


def differentiable_flags(case: Case) -> tuple[bool, ...]:
    return tuple(x.dtype.kind in "fc" and i not in case.fixed for i, x in enumerate(case.inputs))


def directions(case: Case) -> list[np.ndarray]:
    flags = differentiable_flags(case)
    return [direction(x, i) for i, x in enumerate(case.inputs) if flags[i]]


def direction(x: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(x.shape)
    return t + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else t.astype(x.dtype)


def move_inputs(case: Case, ts: list[np.ndarray], step: float) -> list[np.ndarray]:
    moving = iter(ts)
    return [
        x + step * next(moving) if f else x
        for x, f in zip(case.inputs, differentiable_flags(case), strict=True)
    ]


def differences(run: Any, case: Case, ts: list[np.ndarray]) -> list[np.ndarray]:
    high, low = run(move_inputs(case, ts, STEP)), run(move_inputs(case, ts, -STEP))
    return [(a.astype(np.complex128) - b) / (2 * STEP) for a, b in zip(high, low, strict=True)]


def assert_close(actual: Any, expected: Any, case: Case) -> None:
    scale = 1 + float(np.max(np.abs(expected), initial=0))
    np.testing.assert_allclose(actual, expected, rtol=case.tol, atol=case.tol * scale)


def smooth_outputs(graph: Graph) -> list[int]:
    return [i for i, a in enumerate(graph.out_avals) if a.dtype.kind in "fc"]


def test_every_op_has_a_case() -> None:
    assert complete() == set()
    assert not set(CASES) & set(EXCEPTIONS)
    assert all(EXCEPTIONS.values())


@pytest.mark.parametrize("case", SMOOTH)
def test_forward(case: Case) -> None:
    graph = program(case)
    ts = directions(case)
    derived, flags = TOOLS.jvp_graph(
        graph, differentiable_flags(case), (True,) * len(graph.outputs)
    )
    out = interpret(derived, [*case.inputs, *ts])
    count = len(graph.outputs)
    values = interpret(graph, case.inputs)
    for a, b in zip(out[:count], values, strict=True):
        np.testing.assert_array_equal(a, b)
    expected = differences(lambda xs: interpret(graph, xs), case, ts)
    assert all(flags[i] for i in smooth_outputs(graph))
    tangents = iter(out[count:])
    for i in range(count):
        t = next(tangents) if flags[i] else None
        if i in smooth_outputs(graph):
            assert_close(t, expected[i], case)


@pytest.mark.parametrize("case", SMOOTH)
def test_reverse(case: Case) -> None:
    """Check <ct, J t> = <J' ct, t>, with JAX's convention for complex numbers (no conjugate)."""
    graph = program(case)
    outs = smooth_outputs(graph)
    force = tuple(i in outs for i in range(len(graph.outputs)))
    primal, linear, n_res, _flags = TOOLS.linearize_graph(graph, differentiable_flags(case), force)
    outputs = interpret(primal, case.inputs)
    residuals = outputs[len(graph.outputs) :]
    assert len(residuals) == n_res
    ts = directions(case)
    pushed = interpret(linear, [*residuals, *ts])
    cts = [direction(v, 90 + i) for i, v in enumerate(pushed)]
    pulled = interpret(TOOLS.transpose_graph(linear, n_res), [*residuals, *cts])
    assert [g.shape for g in pulled] == [t.shape for t in ts]
    assert [g.dtype for g in pulled] == [t.dtype for t in ts]
    left = sum(np.sum(a * b).real for a, b in zip(cts, pushed, strict=True))
    right = sum(np.sum(a * b).real for a, b in zip(pulled, ts, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-5 if case.tol > 1e-3 else 1e-9, atol=1e-9)


@pytest.mark.parametrize("case", TWICE)
def test_second_order(case: Case) -> None:
    """Compare the derivative of the gradient with differences of the gradient."""
    graph = program(case)
    outs = smooth_outputs(graph)
    if not outs:
        assert all(a.dtype.kind not in "fc" for a in graph.out_avals)
        return
    force = tuple(i in outs for i in range(len(graph.outputs)))
    primal, linear, n_res, _ = TOOLS.linearize_graph(graph, differentiable_flags(case), force)
    transposed = TOOLS.transpose_graph(linear, n_res)
    cts = [
        direction(np.zeros(graph.outputs[i].aval.shape, graph.outputs[i].aval.dtype), 50 + i)
        for i in outs
    ]
    count, n_in = len(graph.outputs), len(case.inputs)

    def pull(nodes: list[Any]) -> list[Any]:
        residuals = evaluate(primal, nodes[:n_in])[count:]
        return evaluate(transposed, [*residuals, *nodes[n_in:]])

    avals = [make_aval(x.shape, x.dtype) for x in [*case.inputs, *cts]]
    gradient = build(pull, avals, "gradient")
    ts = directions(case)
    expected = differences(lambda xs: interpret(gradient, [*xs, *cts]), case, ts)
    n_out = len(gradient.outputs)
    flags = (*differentiable_flags(case), *(False,) * len(cts))
    derived, _ = TOOLS.jvp_graph(gradient, flags, (True,) * n_out)
    actual = interpret(derived, [*case.inputs, *cts, *ts])[n_out:]
    loose = Case(case.op, case.inputs, tol=case.tol * 10)
    for a, b in zip(actual, expected, strict=True):
        assert_close(a, b, loose)
