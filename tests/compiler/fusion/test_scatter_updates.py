"""Scatters compute their updates, where that is as fast as to load them."""

import numpy as np
import pytest
from compiler.fusion.support import plan_of, steps_of

import accnp as jnp
from accnp import lax
from accnp.compiler.library.indexing import computed_operands
from accnp.engine.steps import KernelStep

RNG = np.random.default_rng(0)
COMBINE = {
    "add": np.add.at,
    "multiply": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
    "set": lambda a, i, v: a.__setitem__(i, v),  # the last one wins
}
F4 = np.dtype("f4")


def whole(dtype, *shape):
    """Whole numbers, of which sums are exact."""
    return RNG.integers(0, 4, shape).astype(dtype)


# Places, updates, columns of a row (0: single elements): one for each way to scatter.
SIZES = {
    "chain": (300, 700, 0),
    "chain of several blocks": (90, 2500, 0),
    "rows": (50, 300, 7),
    "wide rows": (40, 300, 130),
    "copies": (20, 70_000, 0),
    "copies of rows": (20, 30_000, 3),
    "parts": (400_000, 70_000, 0),
    "parts of rows": (40_000, 70_000, 4),
}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("how", COMBINE)
@pytest.mark.parametrize("size", SIZES)
def test_updates_are_computed_in_the_scatter(size, how, zeros):
    places, count, columns = SIZES[size]
    more = (columns,) if columns else ()
    i = RNG.integers(0, places, count).astype("u4")
    x, u, v = whole(F4, places, *more), whole(F4, count, *more), whole(F4, count, *more)

    def f(x, u, v, i):
        start = jnp.ones_like(x) if zeros else x
        return getattr(start.at[i], how)(jnp.maximum(u * 2 - v, v - 1) % 3 - 1)

    expected = np.ones_like(x) if zeros else x.copy()
    with np.errstate(all="ignore"):
        update = np.maximum(u * 2 - v, v - 1) % 3 - 1
        COMBINE[how](expected, i.astype(int), update)
    actual = jnp.jit(f)(x, u, v, i)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(f(*map(jnp.asarray, (x, u, v, i))), expected)


@pytest.mark.parametrize("dtype", ["i4", "u1", "f2", "bool", "c8", "f8", "i8"])
def test_dtypes(dtype):
    dtype = np.dtype(dtype)
    with jnp.enable_x64(dtype.itemsize == 8):
        x, u = whole(dtype, 30), whole(dtype, 50)
        i = RNG.integers(0, 30, 50).astype("u4")
        f = lambda x, u, i: x.at[i].add(jnp.where(u == u[0], u, x[0]))  # noqa: E731
        actual, plain = jnp.jit(f)(x, u, i), np.asarray(f(*map(jnp.asarray, (x, u, i))))
        expected = x.copy()
        update = np.where(u == u[0], u, x[0])
        (np.logical_or if dtype.kind == "b" else np.add).at(expected, i, update)
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(plain, expected)


def test_one_kernel_for_a_sum_of_segments():
    i, u = np.arange(50, dtype="i4") % 7, whole(F4, 50)
    f = lambda u, i: jnp.ops.segment_sum(u * 2 + 1, i, 7)  # noqa: E731
    assert steps_of(f, u, i) == ["scatter_add"]
    (step,) = plan_of(f, u, i).steps
    assert isinstance(step, KernelStep)
    assert step.label == "scatter_add and 2 more"
    assert step.moved < 3 * u.nbytes  # places, values, results


def test_updates_that_depend_on_the_operand_are_computed_first():
    """In place, a scatter would read what it has written."""
    i = np.asarray([1, 2, 3, 4], "u4")
    x = np.arange(1.0, 9, dtype="f4")
    f = lambda x, i: (x * 1).at[i].add((x * 1)[:4] * 2)  # noqa: E731
    expected = x.copy()
    expected[1:5] += 2 * x[:4]
    np.testing.assert_array_equal(jnp.jit(f)(x, i), expected)
    g = lambda x, i: x.at[i].add(x[:4] * 2)  # noqa: E731
    assert steps_of(g, x, i) == ["map", "map", "scatter_add"]  # places, values
    np.testing.assert_array_equal(jnp.jit(g, donate_argnums=0)(x.copy(), i), expected)
    y = jnp.asarray(x)
    y = y.at[jnp.asarray(i)].add(y[:4] * 2)
    np.testing.assert_array_equal(np.asarray(y), expected)
    looped = lax.fori_loop(0, 3, lambda _, x: g(x, jnp.asarray(i)), jnp.asarray(x))
    expected = x.copy()
    for _ in range(3):
        expected[1:5] = expected[1:5] + 2 * expected[:4]
    np.testing.assert_array_equal(looped, expected)


def test_shared_or_expensive_updates_are_stored():
    i, u = np.arange(50, dtype="i4") % 7, whole(F4, 50)
    total = lambda u, i: jnp.ops.segment_sum(u, i, 7)  # noqa: E731
    both = lambda u, i: ((v := u * 2 + 1), total(v, i))  # noqa: E731
    assert steps_of(both, u, i) == ["map", "scatter_add"]
    expensive = lambda u, i: total(jnp.exp(u), i)  # noqa: E731
    assert steps_of(expensive, u, i) == ["map", "scatter_add"]
    picked = lambda u, i: total(u * u[i], i)  # noqa: E731
    assert steps_of(picked, u, i)[-2:] == ["map", "scatter_add"]
    (v, sums), expected = jnp.jit(both)(u, i), np.zeros(7, "f4")
    np.add.at(expected, i, u * 2 + 1)
    np.testing.assert_array_equal(v, u * 2 + 1)
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("size", SIZES)
def test_fused_updates_match_stored_updates_bitwise(size, monkeypatch):
    places, count, columns = SIZES[size]
    more = (columns,) if columns else ()
    i = RNG.integers(0, places, count).astype("u4")
    x, u, v = (RNG.normal(size=(n, *more)).astype("f4") for n in (places, count, count))
    f = lambda x, u, v, i: x.at[i].add(jnp.sqrt(abs(u)) * v - u / 3)  # noqa: E731
    actual = jnp.jit(f)(x, u, v, i)
    monkeypatch.setattr(computed_operands.Computed, "of", lambda spec: None)
    plain = jnp.jit(lambda *args: f(*args))(x, u, v, i)
    np.testing.assert_array_equal(actual, plain)


def test_derivatives_and_vmap():
    i = RNG.integers(0, 30, 50).astype("u4")
    x, u = RNG.normal(size=30).astype("f4"), RNG.normal(size=50).astype("f4")

    def f(x, u):
        return (x.at[i].add(u * u + 1) ** 2).sum()

    gx, gu = jnp.jit(jnp.grad(f, (0, 1)))(x, u)
    y = x.copy()
    np.add.at(y, i, u * u + 1)
    np.testing.assert_allclose(gx, 2 * y, rtol=1e-5)
    np.testing.assert_allclose(gu, 2 * y[i] * 2 * u, rtol=1e-5)
    many = jnp.jit(jnp.vmap(lambda x, u: x.at[i].add(u * u + 1)))(
        np.stack([x, x]), np.stack([u, u])
    )
    np.testing.assert_allclose(many, np.stack([y, y]), rtol=1e-5)
