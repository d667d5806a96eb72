"""Every batching rule agrees with a Python loop, for every choice of batched operands, batched once
and twice.

The tests are generated from the op table; ops without a case are listed in `EXCEPTIONS` with the
reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from primitives.cases import CASES, EXCEPTIONS, Case

import accnp
from accnp.array_type import wrap
from accnp.ir.aval import make_aval
from accnp.ir.graph import Graph, build, interpret
from accnp.ir.node import items
from accnp.ir.op import OPS
from accnp.transforms.tools import TOOLS

INNER, OUTER = 3, 2
ALL = [pytest.param(c, id=str(c)) for cases in CASES.values() for c in cases if c.inputs]
# Ops that need no rule, with reasons: everybody else with operands has one, and a case.
NO_RULE = {
    "mark": "ends with its trace",
    "item": "the walk selects among the batched results",
    "detach": "of one operand, and the same for a batch",
    "device_put": "of one operand, and the same for a batch",
    "table": "has no operands",
    "fft_mirror": "a step of plans, never recorded",
    "mesh_gather": "a step of plans, which collectives become after batching",
    "mesh_sum": "a step of plans, which collectives become after batching",
    "mesh_exchange": "a step of plans, which collectives become after batching",
    "mesh_swap": "a step of plans, which collectives become after batching",
    "custom_vjp_tangent": "lives in the linear part of reverse mode, which is batched through its "
    "boundary",
}


def test_every_op_has_a_batching_case() -> None:
    without = {
        name
        for name, op in OPS.whole().items()
        if op.kind not in ("leaf", "iota") and op.batch is None
    }
    nullary = {name for name, cases in CASES.items() if not any(c.inputs for c in cases)}
    assert without - nullary - set(NO_RULE) == set()
    assert set(OPS.whole()) - set(CASES) - set(EXCEPTIONS) == set()


def variants(x: np.ndarray, case: Case, count: int, seed: int) -> np.ndarray:
    """Return several operands similar to one: itself, and shuffled or scaled variants in its
    domain."""
    rng = np.random.default_rng(seed)
    rows = [x]
    for _ in range(count - 1):
        if case.op == "searchsorted":
            rows.append(rows[-1] * 0.8)
        elif x.dtype.kind in "fc" and case.pre is None and x.shape[-2:] != (3, 3):
            rows.append(rng.permuted(x.reshape(-1)).reshape(x.shape))
        elif x.dtype.kind in "fc":
            rows.append(x + 0.1 * np.eye(3) if x.shape[-2:] == (3, 3) else x * 1.1)
        else:
            rows.append(rng.permuted(x.reshape(-1)).reshape(x.shape))
    return np.stack(rows)


def record(case: Case, nodes: Sequence[Any]) -> list[Any]:
    y = case.record(*nodes)
    if isinstance(y, list):
        return y
    return list(items(y)) if isinstance(y.aval, tuple) else [y]


def program(case: Case) -> Graph:
    avals = [make_aval(x.shape, x.dtype) for x in case.inputs]
    return build(lambda nodes: record(case, nodes), avals, case.op)


def loop(graph: Graph, arrays: Sequence[np.ndarray], levels: Sequence[Sequence[bool]]) -> list:
    """Run a program for each example; `levels` are the flags of the leading axes,
    outermost first."""
    if not levels:
        return interpret(graph, arrays)
    flags, rest = levels[0], levels[1:]
    size = next(x.shape[0] for x, f in zip(arrays, flags, strict=True) if f)
    rows = [
        loop(graph, [x[i] if f else x for x, f in zip(arrays, flags, strict=True)], rest)
        for i in range(size)
    ]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def compare(actual: Sequence[Any], expected: Sequence[np.ndarray]) -> None:
    for y, w in zip(actual, expected, strict=True):
        assert y.dtype == w.dtype
        assert y.shape == w.shape
        np.testing.assert_allclose(y, w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", ALL)
def test_batch_equals_loop(case: Case) -> None:
    graph = program(case)
    wide = [variants(x, case, INNER, k) for k, x in enumerate(case.inputs)]
    for flags in product((False, True), repeat=len(wide)):
        if not any(flags):
            continue
        batched, out_flags = TOOLS.batch_graph(graph, INNER, flags, True)
        assert all(out_flags)
        arrays = [w if f else x for w, f, x in zip(wide, flags, case.inputs, strict=True)]
        actual = interpret(batched, arrays)
        assert [y.shape for y in actual] == [a.shape for a in batched.out_avals]
        compare(actual, loop(graph, arrays, [flags]))


@pytest.mark.parametrize("case", ALL)
def test_batch_of_batch_equals_loops(case: Case) -> None:
    """Each operand is mapped by the inner vmap, by the outer one, by both or by none."""
    graph = program(case)
    n = len(case.inputs)
    every = (True,) * n
    for inner in product((False, True), repeat=n):
        other = tuple(not f for f in inner)
        for outer in {every, other}:
            if not any(inner) or not any(outer):
                continue
            arrays = []
            for k, x in enumerate(case.inputs):
                y = variants(x, case, INNER, k) if inner[k] else x
                arrays.append(variants(y, case, OUTER, n + k) if outer[k] else y)
            once, _ = TOOLS.batch_graph(graph, INNER, inner, True)
            twice, out_flags = TOOLS.batch_graph(once, OUTER, outer, True)
            assert all(out_flags)
            compare(interpret(twice, arrays), loop(graph, arrays, [outer, inner]))


# The first case of every op that is not elementwise, and so another one for a batch.
OTHERS = [
    pytest.param(next(c for c in cases if c.inputs), id=op)
    for op, cases in CASES.items()
    if OPS[op].kind != "map" and any(c.inputs for c in cases)
]


@pytest.mark.parametrize("case", OTHERS)
def test_vmap_of_every_op_runs(case: Case) -> None:
    """`vmap` runs through the engine with the mapped axis last, for the first operand and for all
    operands."""
    graph = program(case)
    n = len(case.inputs)

    def one(*xs: Any) -> list[Any]:
        return [wrap(y) for y in record(case, [x._node for x in xs])]

    for flags in {(True,) * n, (True,) + (False,) * (n - 1)}:
        arrays = [
            variants(x, case, INNER, k) if f else x
            for k, (x, f) in enumerate(zip(case.inputs, flags, strict=True))
        ]
        last = [np.moveaxis(x, 0, -1) if f else x for x, f in zip(arrays, flags, strict=True)]
        axes = tuple([-1 if f else None for f in flags])
        with accnp.enable_x64():
            actual = accnp.vmap(lambda *xs: one(*map(accnp.asarray, xs)), axes)(*last)
            for y, w in zip(actual, loop(graph, arrays, [flags]), strict=True):
                assert y.dtype == w.dtype
                np.testing.assert_allclose(y, w, rtol=1e-9, atol=1e-10)
