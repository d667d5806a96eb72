"""Kernels over cut index spaces: assembled values inside of expressions, against NumPy."""

import numpy as np
import pytest
from compiler.fusion.support import steps_of
from kernel_counts import count_made_kernels

import accnp as jnp

X = np.linspace(-1, 1, 12 * 15, dtype=np.float32).reshape(12, 15) ** 3
C = np.linspace(-1, 1, 4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)

CASES = {
    "rows roll": (lambda m, x: m.roll(x, 1, 0) * 2, X, 1),
    "columns roll": (lambda m, x: m.roll(x, -4, 1) - x, X, 1),
    "a vector rolls": (lambda m, x: m.roll(x[0], 3) - x[0], X, 1),
    "all axes roll": (lambda m, x: m.roll(m.roll(m.roll(x, 1, 0), 1, 1), -2, 2) * x, C, 1),
    "edge": (lambda m, x: (lambda y: y[:-2] + y[2:])(m.pad(x, 1, mode="edge")), X, 1),
    "zeros": (lambda m, x: (lambda y: y[:-2] - 3 * y[1:-1])(m.pad(x, 1)), X, 1),
    "wrap": (lambda m, x: m.pad(x, 3, mode="wrap") * 2, X, 1),
    "reflect": (lambda m, x: m.pad(x, 3, mode="reflect") * 2, X, 1),
    "rows of one array": (lambda m, x: m.concatenate([x[:5] * 2, x[5:] + 1]) * 3, X, 1),
    "stack behind": (lambda m, x: m.stack([x, x * 2, x * 3], -1), X, 1),
    "turned": (lambda m, x: m.concatenate([x.T, x.T[:3]], 0)[::-1] * 2, X, 1),
    "steps": (lambda m, x: m.concatenate([x, x + 1], 1)[::2, ::-3] * 2, X, 1),
    "cut in a cut": (
        lambda m, x: m.concatenate([m.concatenate([x, x * 2], 1), m.roll(x, 1, 0)], 1) + 1,
        X,
        1,
    ),
    "broadcast": (lambda m, x: m.roll(x[0], 1)[None] + m.roll(x[:, 0], 2)[:, None], X, 3),
    "into one axis": (lambda m, x: m.stack([x, x], 2).reshape(12, 30) * 2, X, 2),
    "folded": (lambda m, x: m.exp(m.roll(x, 2, 1)).sum(1), X, 2),
    "heavy, twice": (lambda m, x: (lambda y: y[1:] - y[:-1])(m.roll(m.exp(x), 1, 0)), X, 1),
    "counted rows": (lambda m, x: m.concatenate([m.arange(5), m.arange(7) * 2]) + 1, X, 1),
    "nothing": (lambda m, x: m.concatenate([x[:0], x, x[:0] * 2]) * 2, X, 3),
    "overlapping regions": (lambda m, x: m.pad(m.pad(x, 2), ((0, 1), (3, 0)))[1:, 1:], X, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_assembled_values_and_plan_steps(name):
    f, x, steps = CASES[name]
    actual = jnp.jit(lambda x: f(jnp, x))(x)
    expected = f(np, x)
    np.testing.assert_array_equal(actual.shape, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)
    assert len(steps_of(lambda x: f(jnp, x), x)) == steps


def test_cells_of_rolls_share_one_text():
    f = jnp.jit(lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1))
    (kernel,) = jnp.inspect(f)(X).kernels
    assert kernel.source.count("def ") == 2


EDGES = {
    "rows": lambda m, x: m.roll(x, 3, 0) * 2 + x,
    "columns": lambda m, x: m.roll(x, -3, 1) * 2 + x,
    "beside what lies across": lambda m, x: m.roll(x * 2, 3, 0) + m.tanh(x.T),
    "columns of that": lambda m, x: m.roll(x * 2, 4, 1) + m.tanh(x.T),
}


@pytest.mark.parametrize("name", EDGES)
def test_narrow_edges_are_not_unrolled(name):
    """Written out as short axes are, they took as long to compile as the rest, or longer."""
    x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64) ** 3
    f = jnp.jit(lambda x: EDGES[name](jnp, x))
    (kernel,) = jnp.inspect(f)(x).kernels
    assert kernel.source.count("def ") == 2
    np.testing.assert_allclose(f(x), EDGES[name](np, x), rtol=1e-6, atol=1e-6)


def test_short_parts_are_unrolled():
    x = np.ones((64, 2), np.float32)
    f = jnp.jit(lambda x: jnp.concatenate([x * 2, x + 1, x - 1], 1) * 3)
    (kernel,) = jnp.inspect(f)(x).kernels
    assert "for j in" not in kernel.source


def test_new_shape_of_a_cut_space_reuses_kernel():
    f = jnp.jit(lambda x: jnp.roll(x, 1, 0) * jnp.pad(x, 1, mode="edge")[2:, 2:])
    f(X)
    before = count_made_kernels()
    f(np.ones((31, 77), np.float32))
    assert count_made_kernels() == before
