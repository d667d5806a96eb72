"""Products as the passes write them: values and gradients against NumPy and jax, and what a plan
does for each."""

import jax
import numpy as np
import pytest
from api.oracle import jax_result
from compiler.fusion.support import steps_of

import accnp as jnp

SIZES = {"i": 5, "j": 7, "k": 3, "a": 4, "b": 2, "c": 6, "d": 3, "q": 5, "h": 2, "z": 3, "o": 1}
PRODUCTS = [
    "ij,jk->ik", "i,i->", "i,j->ij", "bi,bi->b", "bi,bj->bij", "bij,bjk->bik", "ij,jk->ki",
    "bij,bjk->bki", "ia,ib->ab", "abc,abd->cd", "bqhd,bkhd->bhqk", "ij,ij->", "ij,ji->", "i,ij->j",
    "ij,j->i", "ab,cd->abcd", "ia,jb->abij", "abc,cab->", "abk,dab->kd", "abij,jabk->ik",
    "zab,bza->z", "zabi,bjza->zij", "oi,io->o", "io,oj->ij", "oi,ij->oj", "ao,boi->abi",
]  # fmt: skip


def operands(spec):
    rng = np.random.default_rng(0)
    terms = spec.split("->")[0].split(",")
    return [rng.normal(size=[SIZES[x] for x in t]).astype(np.float32) for t in terms]


@pytest.mark.parametrize("spec", PRODUCTS)
def test_values_and_gradients(spec):
    xs = operands(spec)
    expected = np.einsum(spec, *[x.astype(np.float64) for x in xs])

    def f(library):
        return lambda *arrays: library.numpy.einsum(spec, *arrays)

    eager, jitted = f(jnp)(*xs), jnp.jit(f(jnp))(*xs)
    np.testing.assert_allclose(np.asarray(eager), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(eager), np.asarray(jitted))

    def gradients(m):
        return m.grad(lambda *arrays: (f(m)(*arrays) ** 2).sum(), argnums=(0, 1))(*xs)

    ours, theirs = gradients(jnp), jax_result(lambda: gradients(jax), xs)
    for mine, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.complex64, np.float16, bool])
@pytest.mark.parametrize("spec", ["i,i->", "bi,bj->bij", "zab,bza->z", "abc,abd->cd"])
def test_dtypes(spec, dtype):
    xs = [(4 * x).astype(dtype) for x in operands(spec)]
    mine = np.asarray(jnp.einsum(spec, *xs))
    expected = np.asarray(jax_result(lambda: jax.numpy.einsum(spec, *xs), xs))
    assert mine.dtype == expected.dtype
    np.testing.assert_allclose(mine, expected, rtol=1e-2 if dtype == np.float16 else 1e-5)


def per_example(x, ct):
    """The gradient of each example in a layer's weights, scaled."""
    return 0.1 * jnp.vmap(lambda a, b: jnp.tensordot(a, b, 0))(x, ct)


X = np.ones((8, 5), np.float32)
PLANS = {
    "outer products": (per_example, [X, X], ["map"]),
    "scalar product": (lambda x, y: jnp.vdot(x - 1, y * 2), [X, X], ["split"]),
    "scalar products of rows": (lambda x, y: jnp.einsum("bi,bi->b", x, y) + 1, [X, X], ["row"]),
    "product over two axes, in order": (
        lambda x, y: jnp.einsum("abc,abd->cd", x, y),
        [np.ones((2, 3, 4), np.float32)] * 2,
        ["dot_general"],
    ),
    "product over two axes, out of order": (
        lambda x, y: jnp.einsum("abc,dba->cd", x, y),
        [np.ones((2, 3, 4), np.float32), np.ones((5, 3, 2), np.float32)],
        ["map", "dot_general"],
    ),
    "gradient of weights": (
        lambda w, x: jnp.grad(lambda w: ((x @ w) ** 2).sum())(w) * 2,
        [X, np.ones((3, 8), np.float32)],
        ["dot_general", "map", "dot_general", "map"],
    ),
    "both ways round": (
        lambda x, y: ((x @ y), (x @ y).T + 1),
        [X, X.T],
        ["dot_general", "map"],
    ),
}


def test_a_gradient_of_weights_is_not_transposed():
    f, arrays, _ = PLANS["gradient of weights"]
    text = str(jnp.inspect(f)(*arrays))
    program = text[text.index("-- program") : text.index("-- fusion")]
    assert "transpose" in text
    assert "transpose" not in program


@pytest.mark.parametrize("name", PLANS)
def test_plans(name):
    f, arrays, expected = PLANS[name]
    assert steps_of(f, *arrays) == expected
