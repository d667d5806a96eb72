"""Shardings of the results of operations on an Explicit mesh, and rejected operations, compared
with JAX.
"""

from __future__ import annotations

import json
from typing import Any

import jax
import numpy as np
import pytest
from processes.launch import run
from processes.sharded_operations import OPERATIONS, operands

import accnp
from accnp.errors import ShardingTypeError


@pytest.fixture(scope="module")
def theirs() -> Any:
    return operands(jax)


@pytest.fixture(scope="module")
def outputs() -> dict[str, Any]:
    """Return the output of four processes."""
    return json.loads(run(4, "operations.py").splitlines()[-1])


@pytest.mark.parametrize("name", OPERATIONS)
def test_result_shardings_match_jax(name: str, theirs: Any, outputs: dict[str, Any]) -> None:
    try:
        expected = OPERATIONS[name](jax, theirs)
    except Exception as refusal:
        kind = type(refusal).__name__
    else:
        kind = ""
    if kind:
        assert kind == "ShardingTypeError"
        with pytest.raises(ShardingTypeError):
            OPERATIONS[name](accnp, operands(accnp))
        assert outputs[name] == "ShardingTypeError"
        return
    ours = OPERATIONS[name](accnp, operands(accnp))
    assert str(ours.sharding.spec) == str(expected.sharding.spec)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)
    spec, values = outputs[name]
    assert spec == str(expected.sharding.spec)
    np.testing.assert_allclose(np.array(values), expected, rtol=1e-4, atol=1e-5)
