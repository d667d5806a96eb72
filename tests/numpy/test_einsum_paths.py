"""`einsum` contracts operands in an order that needs no more operations than JAX's."""

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
    expected = np.einsum(formula, *arrays, optimize="greedy")
    np.testing.assert_allclose(jnp.einsum(formula, *arrays), expected, rtol=1e-4)


def test_without_a_search_pairs_are_taken_from_the_front():
    arrays = [np.ones((2, 2), np.float32)] * 4
    formula = "ab,bc,cd,de->ae"
    for m in (jnp, jax.numpy):
        assert list(m.einsum_path(formula, *arrays, optimize=False)[0]) == [(0, 1)] * 3
    np.testing.assert_array_equal(jnp.einsum(formula, *arrays, optimize=False), 8)


COSTS = [
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("i->", [(3,)]),
    ("ij->ji", [(3, 2)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    ("ii,ij->j", [(3, 3), (3, 2)]),
    ("ij,ji->", [(2, 3), (3, 2)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ijk,kij,l->l", [(2, 3, 4), (4, 2, 3), (5,)]),
    ("iaj,bij->ab", [(2, 5, 3), (4, 2, 3)]),
    ("iaj,ji->a", [(2, 5, 3), (3, 2)]),
    ("ijk,jk->ijk", [(2, 3, 4), (3, 4)]),
    (",i->i", [(), (3,)]),
    ("bij,bjk,bkl->bil", [(7, 2, 3), (7, 3, 4), (7, 4, 5)]),
    ("ij,jk", [(0, 3), (3, 4)]),
]
FACTS = "eq input_subscripts output_subscript indices shapes size_dict path contraction_list"
COUNTS = "scale_list size_list naive_cost opt_cost speedup largest_intermediate"


@pytest.mark.parametrize(("formula", "shapes"), COSTS)
def test_report_is_that_of_the_peer(formula, shapes):
    arrays = [np.ones(s, np.float32) for s in shapes]
    path, info = jnp.einsum_path(formula, *arrays)
    expected = opt_einsum.contract_path(formula, *arrays, optimize=path)[1]
    for name in f"{FACTS} {COUNTS}".split():
        assert getattr(info, name) == getattr(expected, name), name
    assert str(info) == repr(info) == str(expected)


def test_report_of_more_operands_than_it_names():
    arrays = [np.ones((2, 2), np.float32)] * 24
    letters = "abcdefghijklmnopqrstuvwxyz"
    formula = ",".join(letters[i : i + 2] for i in range(24)) + "->ay"
    path, info = jnp.einsum_path(formula, *arrays)
    assert str(info) == str(opt_einsum.contract_path(formula, *arrays, optimize=path)[1])


def test_report_refuses_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="label 'j' has the lengths 3 and 4"):
        jnp.einsum_path("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)))


@pytest.mark.parametrize(
    "terms", [((1, 0),), ((5, 2), (2, 1)), ((0, 1), (1, 2), (0, 2)), ((..., 0),), (("x", "b"),)]
)
def test_labels_in_lists_give_the_axes_of_the_result_in_their_order(terms):
    arrays = [np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)]
    operands = [v for pair in zip(arrays, terms, strict=False) for v in pair] + list(terms[2:])
    text = "ba->ab" if terms == (("x", "b"),) else None  # NumPy takes integers only
    expected = np.einsum(text, arrays[0]) if text else np.einsum(*operands)
    np.testing.assert_array_equal(jnp.einsum(*operands), expected)


def test_labels_without_an_order_are_refused():
    with pytest.raises(TypeError, match="one orderable type"):
        jnp.einsum(np.ones((2, 2)), (0, "x"))
