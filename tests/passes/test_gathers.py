"""Gathers of single elements inside of kernels, against NumPy and jax's modes."""

import numpy as np
import pytest
from passes.support import steps_of

import accnp as jnp

X = np.linspace(-1, 1, 40 * 50, dtype=np.float32).reshape(40, 50) ** 3
V = X.reshape(-1)
I = (np.arange(210, dtype=np.int32) * 37 % 4000 - 2000).reshape(30, 7)  # noqa: E741
J = (np.arange(360, dtype=np.int32) * 7 % 50).reshape(40, 9)
F = jnp.numpy

CASES = {
    "elements": (lambda x, i: x[i], V, I, lambda x, i: x[i], ["map"]),
    "fused": (lambda x, i: F.exp(x[i]) * 2 + 1, V, I, lambda x, i: np.exp(x[i]) * 2 + 1, ["map"]),
    "twice": (lambda x, i: x[i] * x[i // 2], V, I, lambda x, i: x[i] * x[i // 2], ["map"]),
    "pairs": (lambda x, i: x[i % 40, i] * 2, X, J, lambda x, i: x[i % 40, i] * 2, ["map"]),
    "transposed": (lambda x, i: x.T[i, i % 40], X, J, lambda x, i: x.T[i, i % 40], ["map"]),
    "along rows": (
        lambda x, i: F.take_along_axis(x, i, 1) + 1,
        X, J,
        lambda x, i: np.take_along_axis(x, i, 1) + 1,
        ["map"],
    ),
    "clipped": (
        lambda x, i: F.take(x, i * 3, mode="clip"),
        V, I,
        lambda x, i: np.take(x, i * 3, mode="clip"),
        ["map"],
    ),
    "filled": (
        lambda x, i: F.take(x, i * 3, mode="fill", fill_value=7),
        V, I,
        lambda x, i: np.where(abs(i * 3 + 0.5) < 2000, x[i * 3 % 2000], 7),
        ["map"],
    ),
    "nan outside": (
        lambda x, i: x.at[i * 3].get(mode="fill"),
        V, I,
        lambda x, i: np.where(abs(i * 3 + 0.5) < 2000, x[i * 3 % 2000], np.nan),
        ["map"],
    ),
    "whole numbers outside": (
        lambda x, i: (x * 100).astype(int).at[i * 3].get(mode="fill"),
        V, I,
        lambda x, i: np.where(
            abs(i * 3 + 0.5) < 2000, (x * 100).astype(int)[i * 3 % 2000], -(2**31)
        ),
        ["map", "map"],
    ),
    "truths": (lambda x, i: (x > 0)[i], V, I, lambda x, i: (x > 0)[i], ["map", "map"]),
    "a sum of rows": (lambda x, i: x[i].sum(1), V, I, lambda x, i: x[i].sum(1), ["row"]),
    "a sum of columns": (lambda x, i: x[i].sum(0), V, I, lambda x, i: x[i].sum(0), ["column"]),
    "a sum of many columns": (
        lambda x, i: x[i].sum(0),
        V, I.reshape(7, 30),
        lambda x, i: x[i].sum(0),
        ["column"],
    ),
    "gathered places": (
        lambda x, i: x[(x[i] * 100).astype(int)],
        V, I,
        lambda x, i: x[(x[i] * 100).astype(int)],
        ["map"],
    ),
    "several readers": (
        lambda x, i: F.roll(x[i], 1, 0) + x[i],
        V, I,
        lambda x, i: np.roll(x[i], 1, 0) + x[i],
        ["map", "map"],
    ),
    "rows": (lambda x, i: x[i] * 2, X, J % 40, lambda x, i: x[i] * 2, ["map"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_steps(name):
    f, x, i, reference, steps = CASES[name]
    want = reference(x, i)
    got = jnp.jit(f)(x, i)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(f(F.asarray(x), F.asarray(i)), got)
    assert steps_of(f, x, i) == steps


def test_another_shape_of_a_gather_compiles_nothing():
    f = jnp.jit(lambda x, i: x[i] * 2)
    f(V, I)
    before = jnp.counters()["compiles"]
    f(V[:77], I[:3] % 77)
    assert jnp.counters()["compiles"] == before


def test_gathers_of_one_value_per_row():
    """They take part in what is computed once for each row."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(5, 7)).astype("f4"), rng.normal(size=9).astype("f4")
    rows = rng.integers(-9, 9, 5)

    def inner(x, t, i):
        return x.sum(1) * t[i] + t[i], x - t[i][:, None] * x.max(1, keepdims=True)

    for function in (inner, lambda x, t, i: x * 2 + (x.sum(1) * t[i])[:, None]):
        found, want = jnp.jit(function)(x, t, rows), function(x, t, rows)
        for a, b in zip(jnp.tree.leaves(found), jnp.tree.leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5)
