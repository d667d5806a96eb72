"""Sparse arrays in cases where JAX has no results, or where the order of stored elements
differs.
"""

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp.experimental import sparse

A = np.float32([[0, 2, 0, -1], [0, 0, 0, 0], [0.5, 0, 3, 0]])
M = sparse.BCOO.fromdense(A)
R = sparse.BCSR.fromdense(A)


def test_dense_times_rows():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(jnp.asarray(x) @ R, x @ A)
    np.testing.assert_allclose(x @ M, x @ A)


def test_functions_nonzero_at_zero_give_dense_results():
    np.testing.assert_allclose(sparse.sparsify(jnp.exp)(M), np.exp(A), rtol=1e-6)


def test_duplicate_indices_are_summed():
    twice = sparse.BCOO(([1.0, 2.0, 5.0], [[0, 1], [0, 1], [9, 9]]), shape=(2, 2))
    np.testing.assert_allclose(twice.todense(), [[0, 3], [0, 0]])
    np.testing.assert_allclose(sparse.sparsify(jnp.square)(twice).todense(), [[0, 9], [0, 0]])
    assert twice.sum_duplicates().nse == 1
    assert float(twice.sum()) == 3


def test_padding_indices_are_ignored():
    wide = sparse.BCOO.fromdense(A, nse=7)
    infinite = jnp.full((4, 2), jnp.inf).at[1].set(1.0).at[3].set(1.0)
    np.testing.assert_allclose((wide @ infinite)[0], [1, 1])
    np.testing.assert_allclose(wide[0:1].todense(), A[:1])
    both = sparse.bcoo_concatenate([wide, wide], dimension=0)
    np.testing.assert_allclose(both.todense(), np.concatenate([A, A]))


def test_batches():
    stacked = np.stack([A, 2 * A])
    mats = sparse.BCOO.fromdense(stacked, n_batch=1)
    np.testing.assert_allclose(mats.todense(), stacked)
    turned = mats.transpose((0, 2, 1))
    assert turned.n_batch == 1
    np.testing.assert_allclose(turned.todense(), stacked.swapaxes(1, 2))
    with pytest.raises(NotImplementedError, match="batches"):
        mats.transpose((1, 0, 2))
    actual = accnp.vmap(lambda d, i: sparse.BCOO((d, i), shape=(3, 4)) @ jnp.ones(4))(
        mats.data, mats.indices
    )
    np.testing.assert_allclose(actual, stacked.sum(-1))


def test_products_and_sums_of_batches():
    rng = np.random.default_rng(3)
    dense = rng.standard_normal((2, 3, 4)).astype(np.float32) * (rng.random((2, 3, 4)) < 0.5)
    mats = sparse.BCOO.fromdense(dense, n_batch=1)
    v, w = (rng.standard_normal(n).astype(np.float32) for n in (4, (4, 5)))
    three, two = (rng.standard_normal(n).astype(np.float32) for n in ((2, 4, 5), (6, 3)))
    for actual, expected in [
        (mats @ v, dense @ v),
        (mats @ w, dense @ w),
        (mats @ three, dense @ three),
        (two @ mats, two @ dense),
        ((mats @ mats.transpose((0, 2, 1))).todense(), dense @ dense.swapaxes(1, 2)),
        (sparse.BCOO.fromdense(dense[0]) @ three, dense[0] @ three),
        (mats.sum(0).todense(), dense.sum(0)),
        ((mats * v).todense(), dense * v),
        ((mats / v).todense(), dense / v),
        ((mats + mats).todense(), dense + dense),
        (mats.reshape(6, 4).todense(), dense.reshape(6, 4)),
        (mats[1].todense(), dense[1]),
        (mats.sum_duplicates().todense(), dense),
    ]:
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    numbers = (((2,), (1,)), ((0,), (0,)))
    actual = sparse.bcoo_dot_general(mats, jnp.asarray(three), dimension_numbers=numbers)
    np.testing.assert_allclose(actual, dense @ three, rtol=1e-5)
    gradient = accnp.grad(lambda d: (mats.with_data(d) @ v).sum())(mats.data)
    rows, columns = np.nonzero(dense[1])
    np.testing.assert_allclose(gradient[1, : len(rows)], v[columns], rtol=1e-6)
    actual = accnp.jit(lambda m: m @ v)(mats)
    np.testing.assert_allclose(actual, dense @ v, rtol=1e-5, atol=1e-6)


def test_nse_must_be_static_under_jit():
    with pytest.raises(accnp.errors.ConcretizationTypeError, match="nse"):
        accnp.jit(lambda x: sparse.BCOO.fromdense(x).data)(A)
    matrix = accnp.jit(lambda x: sparse.BCOO.fromdense(x, nse=4))(A)
    np.testing.assert_allclose(matrix.todense(), A)
