"""Declared types are the types of the reference functions' results, in single and
double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from primitives.cases import CASES, Case

from accnp.ir.aval import make_aval
from accnp.ir.graph import build
from accnp.ir.node import items
from accnp.ir.op import OPS

ALL = [pytest.param(c, id=str(c)) for cases in CASES.values() for c in cases]
SINGLE = {"float64": np.float32, "complex128": np.complex64}


def narrow_case(case: Case) -> tuple[tuple[np.ndarray, ...], dict[str, Any]]:
    """Return the case in single precision, including its dtype parameters."""
    inputs = tuple(
        x.astype(SINGLE[x.dtype.name]) if x.dtype.name in SINGLE else x for x in case.inputs
    )
    params = dict(case.params)
    for key, value in params.items():
        if isinstance(value, np.dtype) and value.name in SINGLE:
            params[key] = np.dtype(SINGLE[value.name])
    return inputs, params


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("case", ALL)
def test_declared_type_matches_the_reference(case: Case, single: bool) -> None:
    inputs, params = narrow_case(case) if single else (case.inputs, case.params)
    if single and case.op in ("bitcast_convert_type", "view_bytes"):
        params = {"new_dtype": np.dtype(np.int32)}
    op = OPS[case.op]
    declared = op.infer(*[make_aval(x.shape, x.dtype) for x in inputs], **params)
    assert op.numpy is not None
    values = op.numpy(*inputs, **params)
    if not isinstance(declared, tuple):
        declared, values = (declared,), (values,)
    assert len(values) == len(declared)
    for value, aval in zip(values, declared, strict=True):
        assert np.asarray(value).dtype == aval.dtype
        assert np.shape(value) == aval.shape


@pytest.mark.parametrize("case", ALL)
def test_recorded_type_matches_the_declared_type(case: Case) -> None:
    if case.pre is not None or case.post is not None:
        assert case.op in ("cholesky", "eigh", "svd", "qr", "sici", "fresnel")
        return
    avals = [make_aval(x.shape, x.dtype) for x in case.inputs]

    def body(nodes: list[Any]) -> list[Any]:
        y = case.record(*nodes)
        return list(items(y)) if isinstance(y.aval, tuple) else [y]

    graph = build(body, avals, case.op)
    declared = OPS[case.op].infer(*avals, **case.params)
    assert graph.out_avals == (declared if isinstance(declared, tuple) else (declared,))
