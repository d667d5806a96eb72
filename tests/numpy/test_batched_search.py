"""Batched `searchsorted`: each row has its own sorted vector. Takes O(n log n); compared with
NumPy.
"""

import ml_dtypes
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

RNG = np.random.default_rng(5)


def by_rows(a, v, side):
    return np.stack([np.searchsorted(x, y, side=side) for x, y in zip(a, v, strict=True)])


def ordered(shape, dtype):
    if np.dtype(dtype) == bool:
        return np.sort(RNG.random(shape) > 0.5, axis=-1)
    return np.sort(np.abs(RNG.normal(size=shape) * 20).astype(dtype), axis=-1)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int8, np.uint32, bool, np.float16, ml_dtypes.bfloat16]
)
@pytest.mark.parametrize(
    ("a", "v"),
    [((3, 50), (3, 40)), ((300, 7), (300,)), ((2, 1), (2, 3, 4)), ((2, 900), (2, 700)),
     ((4, 0), (4, 5)), ((0, 3), (0, 2))],
)  # fmt: skip
def test_a_vector_for_each_row(side, dtype, a, v):
    with accnp.enable_x64(dtype == np.float64):
        a, v = ordered(a, dtype), ordered(v, dtype)
        search = accnp.vmap(lambda a, v: jnp.searchsorted(a, v, side=side))
        expected = by_rows(a, v, side) if len(a) else np.zeros(v.shape)
        for f in (search, accnp.jit(search)):
            np.testing.assert_array_equal(np.asarray(f(a, v)), expected)


@pytest.mark.parametrize("side", ["left", "right"])
def test_nan_come_last(side):
    a = np.array([[1, 2, np.nan, np.nan], [np.nan] * 4, [-np.inf, 0, 5, np.inf]], np.float32)
    v = np.array([[np.nan, 1, 3, np.inf], [0, np.nan, -np.inf, 1], [np.nan, np.inf, 0, -9]])
    v = v.astype(np.float32)
    positions = accnp.vmap(lambda a, v: jnp.searchsorted(a, v, side=side))(a, v)
    np.testing.assert_array_equal(np.asarray(positions), by_rows(a, v, side))


def test_complex_numbers():
    a = np.sort_complex(RNG.integers(0, 3, (2, 9)) + 1j * RNG.integers(0, 3, (2, 9)))
    a, v = np.sort(a.astype(np.complex64), axis=1), a[:, ::2].astype(np.complex64)
    positions = accnp.vmap(jnp.searchsorted)(a, v)
    np.testing.assert_array_equal(np.asarray(positions), by_rows(a, v, "left"))


def test_rows_and_columns_of_any_layout():
    a, v = ordered((60, 5), np.float32), ordered((70, 5), np.float32)
    a = np.sort(a, axis=0)
    positions = accnp.vmap(jnp.searchsorted, in_axes=1, out_axes=1)(a, v)
    np.testing.assert_array_equal(np.asarray(positions).T, by_rows(a.T, v.T, "left"))
    backwards = accnp.vmap(lambda a, v: jnp.searchsorted(a[::-1], v))(-a.T, v.T)
    np.testing.assert_array_equal(np.asarray(backwards), by_rows(-a.T[:, ::-1], v.T, "left"))


def test_batches_of_batches():
    a, v = ordered((2, 3, 20), np.float32), ordered((2, 3, 10), np.float32)
    expected = np.stack([by_rows(x, y, "left") for x, y in zip(a, v, strict=True)])
    search = accnp.vmap(accnp.vmap(jnp.searchsorted))
    np.testing.assert_array_equal(np.asarray(search(a, v)), expected)
    # One vector of each row for all columns of values, and one for all rows.
    search = accnp.vmap(accnp.vmap(jnp.searchsorted, in_axes=(None, 0)))
    expected = np.stack([[np.searchsorted(a[i, 0], v[i, j]) for j in range(3)] for i in range(2)])
    np.testing.assert_array_equal(np.asarray(search(a[:, 0], v)), expected)
    search = accnp.vmap(accnp.vmap(jnp.searchsorted), in_axes=(None, 0))
    expected = np.stack([by_rows(a[0], y, "left") for y in v])
    np.testing.assert_array_equal(np.asarray(search(a[0], v)), expected)


USERS = {
    "searchsorted": lambda a, v: jnp.searchsorted(a, v),
    "digitize": lambda a, v: jnp.digitize(v, a),
    "interp": lambda a, v: jnp.interp(v, a, a * 2),
    "histogram": lambda a, v: jnp.histogram(v, bins=a)[0],
    "repeat": lambda a, v: jnp.repeat(a, (v / 9).astype(int), total_repeat_length=500),
    "nonzero": lambda a, v: jnp.nonzero(v > 0, size=300)[0],
    "choice": lambda a, v: accnp.random.choice(accnp.random.key(0), 400, (400,), p=v * v),
}


def largest(jaxpr):
    sizes = [v.aval.size for e in jaxpr.eqns for v in e.outvars]
    for e in jaxpr.eqns:
        sizes += [largest(inner) for inner in accnp.core.jaxprs_in_params(e.params)]
    return max(sizes, default=0)


@pytest.mark.parametrize("name", USERS)
def test_no_value_is_compared_with_all_elements(name):
    a, v = ordered((3, 400), np.float32), ordered((3, 400), np.float32)
    f = USERS[name]
    closed = accnp.make_jaxpr(accnp.vmap(f))(a, v)
    assert largest(closed.jaxpr) <= 4 * v.size
    for row, x, y in zip(np.asarray(accnp.vmap(f)(a, v)), a, v, strict=True):
        np.testing.assert_allclose(row, np.asarray(f(x, y)), rtol=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_complex_numbers_with_nan_in_a_part(side):
    """NumPy's order is used; JAX compares such numbers by their real parts alone."""
    parts = [np.nan, -np.inf, -1, 0, 2, np.inf]
    z = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    a, v = np.sort(z), RNG.permutation(z)
    expected = np.searchsorted(a, v, side=side)

    def search(a, v):
        return jnp.searchsorted(a, v, side=side)

    np.testing.assert_array_equal(np.asarray(search(a, v)), expected)
    np.testing.assert_array_equal(np.asarray(accnp.vmap(search)(a[None], v[None]))[0], expected)
