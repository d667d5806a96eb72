"""einsum contracts in an order that needs no more operations than jax's."""

import jax
import numpy as np
import opt_einsum
import pytest

import accnp as jnp

SIZES = dict(zip("abcdefghij", [9, 3, 8, 2, 7, 5, 11, 2, 6, 4], strict=True))
FORMULAS = [
    "ab,bc,cd->ad",
    "ab,bc,cd,de,ef->af",
    "abc,bd,cd->a",
    "ab,bc,cd,de,ef,fg,gh->ah",
    "abc,cde,efg,ghi,ij,ja,bd,fh->",
    "abc,cd,de,ef,fg,gh,hi,ij,ja,bj->ab",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_more_operations_than_the_peer(formula):
    rng = np.random.default_rng(0)
    terms = formula.split("->")[0].split(",")
    arrays = [rng.random([SIZES[c] for c in t], np.float32) for t in terms]

    def operations(path):
        return float(opt_einsum.contract_path(formula, *arrays, optimize=path)[1].opt_cost)

    ours = jnp.einsum_path(formula, *arrays)[0]
    assert operations(ours) <= operations(jax.numpy.einsum_path(formula, *arrays)[0])
    want = np.einsum(formula, *arrays, optimize="greedy")
    np.testing.assert_allclose(jnp.einsum(formula, *arrays), want, rtol=1e-4)


def test_without_a_search_pairs_are_taken_from_the_front():
    arrays = [np.ones((2, 2), np.float32)] * 4
    formula = "ab,bc,cd,de->ae"
    for m in (jnp, jax.numpy):
        assert list(m.einsum_path(formula, *arrays, optimize=False)[0]) == [(0, 1)] * 3
    np.testing.assert_array_equal(jnp.einsum(formula, *arrays, optimize=False), 8)
