"""Gathers of single elements inside of kernels, against NumPy and jax's modes."""

import jax
import numpy as np
import pytest
from compiler.fusion.support import steps_of
from kernel_counts import count_made_kernels

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
    expected = reference(x, i)
    actual = jnp.jit(f)(x, i)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(f(F.asarray(x), F.asarray(i)), actual)
    assert steps_of(f, x, i) == steps


def test_new_shape_of_a_gather_reuses_kernel():
    f = jnp.jit(lambda x, i: x[i] * 2)
    f(V, I)
    before = count_made_kernels()
    f(V[:77], I[:3] % 77)
    assert count_made_kernels() == before


COSINES = np.cos(np.arange(50, dtype=np.float32))
SLICES = {
    "sum": (lambda m, x, i: x[i].sum(), ["split"]),
    "dot": (lambda m, x, i: m.numpy.dot(x[i], COSINES), ["split"]),
    "square": (lambda m, x, i: m.numpy.dot(x[i], x[i]), ["split"]),
    "fused": (lambda m, x, i: m.numpy.exp(x[i] * 2 - 1).max(), ["split"]),
    "two rows": (lambda m, x, i: (x[i] * x[i - 1]).sum(), ["split"]),
    "a column": (lambda m, x, i: x[:, i].sum(), ["split"]),
    "a block": (lambda m, x, i: m.lax.dynamic_slice(x, (i, 0), (3, 50)).sum(), ["split"]),
    "of a view": (lambda m, x, i: x.T[i].sum(), ["split"]),
    "of all in reverse": (lambda m, x, i: x[::-1, ::-1][i].min(), ["split"]),
    # Slices with two readers or two coordinates, and those that are outputs, are copied.
    "two readers": (lambda m, x, i: (x[i].sum(), x[i] * 2), ["dynamic_slice", "split", "map"]),
    "two axes": (
        lambda m, x, i: m.lax.dynamic_slice(x, (i, i), (3, 4)).sum(),
        ["dynamic_slice", "split"],
    ),
    "an output": (lambda m, x, i: (x[i].sum(), x[i]), ["dynamic_slice", "split"]),
}


@pytest.mark.parametrize("name", SLICES)
def test_reduction_reads_slice_without_copy(name):
    f, steps = SLICES[name]
    actual = steps_of(lambda x, i: f(jnp, x, i), X, np.int32(3))
    places = "dynamic_slice" in steps  # these kernels compute where it begins
    assert (actual[actual.index("dynamic_slice") :] if places else actual) == steps
    ours, theirs = jnp.jit(lambda x, i: f(jnp, x, i)), jax.jit(lambda x, i: f(jax, x, i))
    for i in np.array([0, 3, -1, -90, 90], np.int32):
        expected = jax.tree.leaves(theirs(X, i))
        for a, b in zip(jnp.tree.leaves(ours(X, i)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [3, 40])
def test_slices_are_read_before_the_loop_updates_them(size):
    def run(m, x):
        def step(i, state):
            x, total = state
            return x.at[i].set(2.0), total + (x[i] * x[i - 1]).sum()

        return m.lax.fori_loop(0, size, step, (x, m.numpy.float32(0)))

    x = X[:size, :size]
    expected = jax.jit(lambda x: run(jax, x))(x)
    for a, b in zip(jnp.jit(lambda x: run(jnp, x))(x), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_gathers_of_one_value_per_row():
    """They take part in what is computed once for each row."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(5, 7)).astype("f4"), rng.normal(size=9).astype("f4")
    rows = rng.integers(-9, 9, 5)

    def inner(x, t, i):
        return x.sum(1) * t[i] + t[i], x - t[i][:, None] * x.max(1, keepdims=True)

    for function in (inner, lambda x, t, i: x * 2 + (x.sum(1) * t[i])[:, None]):
        actual, expected = jnp.jit(function)(x, t, rows), function(x, t, rows)
        for a, b in zip(jnp.tree.leaves(actual), jnp.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5)


def test_values_used_by_a_reduction_and_as_indices():
    """The kernel computes the indices once for each row, and reads them through a coordinate."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(5, 7)).astype("f4"), rng.normal(size=9).astype("f4")

    def function(x, t, i):
        rows = i + i
        return (x * rows[:, None]).sum(1) + t[rows]

    i = np.arange(5, dtype=np.int32)
    actual = jnp.jit(function)(x, t, i)
    np.testing.assert_allclose(np.asarray(actual), function(x, t, i), rtol=1e-5)
