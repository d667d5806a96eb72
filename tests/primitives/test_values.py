"""Every op run by the engine, including its kernels, agrees with its reference function in single
and double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from primitives.cases import CASES, Case

from accnp import engine
from accnp.array_type import from_numpy
from accnp.ir.node import items, record
from accnp.ir.op import OPS

SINGLE = {"float64": np.float32, "complex128": np.complex64}
ALL = [pytest.param(c, id=str(c)) for cases in CASES.values() for c in cases if not c.pre]


def narrow_case(case: Case) -> tuple[tuple[np.ndarray, ...], dict[str, Any]]:
    """Return the case in single precision, including its dtype parameters."""
    inputs = tuple(
        x.astype(SINGLE[x.dtype.name]) if x.dtype.name in SINGLE else x for x in case.inputs
    )
    params = dict(case.params)
    for key, value in params.items():
        if isinstance(value, np.dtype) and value.name in SINGLE:
            params[key] = np.dtype(SINGLE[value.name])
    if case.op in ("bitcast_convert_type", "view_bytes"):
        params = {"new_dtype": np.dtype(np.int32)}
    return inputs, params


@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("case", ALL)
def test_engine_equals_reference(case: Case, single: bool) -> None:
    inputs, params = narrow_case(case) if single else (case.inputs, case.params)
    op = OPS[case.op]
    assert op.numpy is not None
    nodes = tuple(from_numpy(x)._node for x in inputs)
    node = record(op, nodes, params)
    actual = [engine.array_of(n) for n in (items(node) if isinstance(node.aval, tuple) else [node])]
    expected = op.numpy(*inputs, **params)
    expected = list(expected) if isinstance(node.aval, tuple) else [expected]
    eps = 4e-6 if single else 1e-13
    for g, w in zip(actual, expected, strict=True):
        w = np.asarray(w)
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        if w.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w)
        else:
            scale = float(np.max(np.abs(w[np.isfinite(w)]), initial=1))
            np.testing.assert_allclose(g, w, rtol=eps, atol=eps * scale)
