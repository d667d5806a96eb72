"""The errors of the functions stay within what docs/accuracy.md says is allowed (a sample)."""

import numpy as np
import pytest

from benchmarks.accuracy import DOCUMENT, bar, cases, errors

CASES = cases()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_error(case, dtype):
    found = errors(case, dtype, 48, jax=False)
    assert found["accnp"] <= bar(case, found), found


def test_document_has_every_function():
    text = DOCUMENT.read_text()
    for case in CASES:
        assert f"| {case.name.removeprefix('numpy.')} |" in text
    assert "over:" not in text
