"""Iterating over arrays: rows are computed in chunks, when the iterator reaches them."""

import itertools

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

import accnp
import accnp.numpy as jnp
from accnp.numpy import joining


@pytest.fixture
def chunk_lengths(monkeypatch):
    """Record the number of rows of each chunk that iteration computes."""
    lengths = []
    unstack = joining.unstack

    def watched(x):
        lengths.append(len(x))
        return unstack(x)

    monkeypatch.setattr(joining, "unstack", watched)
    return lengths


@pytest.mark.parametrize("shape", [(0,), (5,), (1000,), (300, 4), (300, 0), (200, 2, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.complex64, ml_dtypes.bfloat16])
def test_rows(shape, dtype):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    rows = list(jnp.asarray(values))
    assert len(rows) == len(values)
    for row, expected in zip(rows, values, strict=True):
        assert isinstance(row, accnp.Array)
        assert row.dtype == dtype
        np.testing.assert_array_equal(np.asarray(row), expected)


def test_iteration_keeps_weak_types():
    assert next(iter(jnp.full(1000, 2.0))).weak_type == jnp.full(1000, 2.0)[0].weak_type
    assert next(iter(jnp.broadcast_to(jnp.asarray(2.0), (1000,)))).weak_type


def test_rows_are_computed_on_demand(chunk_lengths):
    x = jnp.arange(10.0**6)
    assert np.iterable(x)
    rows = iter(x)
    assert x._node.value is None  # pending
    assert [float(v) for v in itertools.islice(rows, 3)] == [0, 1, 2]
    assert chunk_lengths == []


def test_rows_of_traced_arrays_come_in_chunks(chunk_lengths):
    def first(x):
        return next(iter(x)) * 2

    x = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(accnp.jit(first)(x + 1)), 2)
    assert chunk_lengths == [joining.FEW]
    gradient = accnp.grad(lambda x: sum(v * v for v in itertools.islice(x, 130)))(x)
    np.testing.assert_array_equal(np.asarray(gradient), np.where(x < 130, 2 * x, 0))


def test_rows_do_not_change_when_their_array_is_donated():
    x = jnp.arange(1000.0) + 0
    rows = iter(x)
    first = [next(rows) for _ in range(3)]
    accnp.jit(lambda x: x * 0 - 1, donate_argnums=0)(x).block_until_ready()
    assert [float(v) for v in first] == [0, 1, 2]


def test_arrays_without_axes_are_not_iterable():
    words = r"iteration over a 0-d array; got float32\[\]; use x.item\(\) for .*x.reshape\(1\)"
    with pytest.raises(TypeError, match=words):
        iter(jnp.asarray(1.0))


def test_scipy_accepts_long_arrays():
    x = np.random.default_rng(0).normal(size=100_000)
    entropy = scipy.stats.differential_entropy(jnp.asarray(x.astype(np.float32)))
    np.testing.assert_allclose(float(entropy), 0.5 * np.log(2 * np.pi * np.e), atol=0.02)
