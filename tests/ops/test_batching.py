"""Every batching rule equals a Python loop, for every choice of batched operands."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from ops.cases import CASES, Case

from accnp.ir.aval import make_aval
from accnp.ir.graph import build, interpret
from accnp.ir.node import items
from accnp.transforms.tools import TOOLS

SIZE = 3
ALL = [pytest.param(c, id=str(c)) for cases in CASES.values() for c in cases if c.inputs]


def examples(x: np.ndarray, case: Case, k: int) -> np.ndarray:
    """Several operands like one: itself, and shuffled or scaled variants within its domain."""
    rng = np.random.default_rng(k)
    rows = [x]
    for _ in range(SIZE - 1):
        if case.op == "searchsorted":
            rows.append(rows[-1] * 0.8)
        elif x.dtype.kind in "fc" and case.pre is None and x.shape != (3, 3):
            rows.append(rng.permuted(x.reshape(-1)).reshape(x.shape))
        elif x.dtype.kind in "fc":
            rows.append(x + 0.1 * np.eye(3) if x.shape == (3, 3) else x * 1.1)
        else:
            rows.append(rng.permuted(x.reshape(-1)).reshape(x.shape))
    return np.stack(rows)


@pytest.mark.parametrize("case", ALL)
def test_batch_equals_loop(case: Case) -> None:
    avals = [make_aval(x.shape, x.dtype) for x in case.inputs]

    def body(nodes: list[Any]) -> list[Any]:
        y = case.record(*nodes)
        if isinstance(y, list):
            return y
        return list(items(y)) if isinstance(y.aval, tuple) else [y]

    graph = build(body, avals, case.op)
    wide = [examples(x, case, k) for k, x in enumerate(case.inputs)]
    for flags in product((False, True), repeat=len(avals)):
        if not any(flags):
            continue
        batched, out_flags = TOOLS.batch_graph(graph, SIZE, flags, True)
        assert all(out_flags)
        got = interpret(
            batched, [w if f else x for w, f, x in zip(wide, flags, case.inputs, strict=True)]
        )
        loops = [
            interpret(
                graph, [w[i] if f else x for w, f, x in zip(wide, flags, case.inputs, strict=True)]
            )
            for i in range(SIZE)
        ]
        for k, y in enumerate(got):
            want = np.stack([row[k] for row in loops])
            assert y.dtype == want.dtype
            assert y.shape == want.shape == batched.outputs[k].aval.shape
            np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-12)
