"""Second derivatives of `shard_map` over several processes agree with those of the unsharded
function.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from processes.launch import run
from processes.second_derivatives import W, X, derivatives, loss

import accnp


@pytest.fixture(scope="module", params=[2, 4])
def outputs(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the output of several processes."""
    return json.loads(run(request.param, "second_derivatives.py").splitlines()[-1])


@pytest.mark.parametrize("what", derivatives(accnp))
@pytest.mark.parametrize("name", ["sum", "scan"])
@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
def test_second_derivatives_over_processes(
    kind: str, name: str, what: str, outputs: dict[str, Any]
) -> None:
    expected = derivatives(accnp)[what](loss)(accnp.numpy.asarray(W), accnp.numpy.asarray(X))
    for actual in outputs[f"{kind}, {name}, {what}"]:
        np.testing.assert_allclose(np.array(actual), expected, rtol=1e-4, atol=1e-4)
