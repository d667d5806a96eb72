"""Maps that take elements of their rows at computed places, the same in every row."""

from __future__ import annotations

import numpy as np
import pytest

import accnp as jnp
from accnp.compiler.specs import row_gathers


@pytest.mark.parametrize("permutes", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int16", "bool"])
@pytest.mark.parametrize("places", [[2, 0, 1], [-1, 1, 1, 0, 2]])
def test_gather_rows_at_equal_indices(places, dtype, permutes, monkeypatch):
    if not permutes:
        monkeypatch.setattr(row_gathers, "has_vector_permute", lambda: False)
    x = np.random.default_rng(0).integers(0, 9, (2, 50, 3)).astype(dtype)
    where = np.asarray(places, np.int32)
    first = jnp.jit(lambda x, i: x[..., i])(x, where)
    assert np.array_equal(first, x[..., where])
    last = x[..., -1:]
    more = jnp.jit(lambda x, i, y: (jnp.where(x[..., i] == y, y, x[..., i]), x[..., i] == y))
    values, same = more(x, where, last)
    assert np.array_equal(values, x[..., where])
    assert np.array_equal(same, x[..., where] == last)


def test_gather_float64_rows_at_equal_indices():
    x = np.random.default_rng(0).normal(size=(70, 8))
    with jnp.enable_x64(True):
        actual = jnp.jit(lambda x, i: x[:, i] - x[:, i[::-1]])(x, np.arange(8) // 2)
    assert np.array_equal(actual, x[:, np.arange(8) // 2] - x[:, np.arange(8)[::-1] // 2])
