"""`jnp.vectorize` compared with JAX: signatures, excluded arguments and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

A = np.arange(12, dtype=np.float32).reshape(4, 3)
B = np.arange(3, dtype=np.float32)
W = np.ones((2, 5, 4, 3), np.float32)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "scalars": lambda v: v(lambda x, y: x * y)(2, 3.0),
    "broadcast": lambda v: v(lambda x, y: x * y)(A, B),
    "mixed types": lambda v: v(lambda x, y: x + y)(np.arange(3), B),
    "lists": lambda v: v(lambda x: x * 2)([1.0, 2.0]),
    "length one": lambda v: v(lambda x, y: x * y)(A[:, :1], B[None, None]),
    "only length one": lambda v: v(lambda x: x * 2)(np.ones((1, 3, 1), np.float32)),
    "no length": lambda v: v(lambda x: x * 2)(A[:0]),
    "results of higher rank": lambda v: v(lambda x: np.ones(2, np.float32) * x)(A),
    "several results": lambda v: v(lambda x: (x, x + 1))(A),
    "results in a tree": lambda v: v(lambda x: {"a": x, "b": [x * 2]})(A),
    "dot": lambda v: v(lambda x, y: (x * y).sum(), signature="(n),(n)->()")(A, B),
    "matrix": lambda v: v(lambda x, y: x @ y, signature="(n,m),(m)->(n)")(W, B),
    "two ways": lambda v: v(lambda x, y: x @ y, signature="(n),(n)->()")(W[0, 0], W[0, :, :1]),
    "core results": lambda v: v(lambda x: (x.sum(), x * 2), signature="(n)->(),(n)")(A),
    "a new core axis": lambda v: v(lambda x: x[None] + B, signature="()->(k)")(A),
    "numbers as core": lambda v: v(lambda x: x[:2], signature="(3)->(2)")(A),
    "excluded": lambda v: v(lambda x, n: x * n.sum(), excluded={1})(A, B),
    "excluded by name": lambda v: v(lambda x, n=None: x * n.sum(), excluded={"n"})(A, n=B),
    "excluded text": lambda v: v(lambda x, m: x if m == "a" else -x, excluded=[1])(A, "b"),
    "excluded and core": lambda v: v(
        lambda n, x, y: (x * y).sum() * n, signature="(n),(n)->()", excluded={0}
    )(3, A, B),
    "None": lambda v: v(lambda x, y: x if y is None else y)(A, None),
    "None and core": lambda v: v(lambda x, y: x, signature="(n),()->(n)")(A, None),
}
WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "no arguments": (lambda v: v(lambda: B, signature="->(k)")(), ValueError, "gufunc signature"),
    "no brackets": (lambda v: v(lambda x: x, signature="n->n")(A), ValueError, "gufunc signature"),
    "spaces": (lambda v: v(lambda x: x, signature="(n) -> (n)")(A), ValueError, "gufunc signature"),
    "too few": (lambda v: v(lambda x: x, signature="(n),()->()")(A), TypeError, "expected 2.*1"),
    "core lengths": (
        lambda v: v(lambda x, y: x, signature="(n),(n)->(n)")(A, np.ones(4)),
        ValueError,
        "core dimension 'n': 4",
    ),
    "rank": (lambda v: v(lambda x: x, signature="(n,m)->()")(B), ValueError, "core dimensions"),
    "shapes": (lambda v: v(lambda x, y: x)(A, np.ones(4)), ValueError, "broadcast"),
    "more results": (lambda v: v(lambda x: (x, x), signature="()->()")(A), TypeError, "1.*2"),
    "no tuple": (lambda v: v(lambda x: x, signature="()->(),()")(A), TypeError, "tuple"),
    "result length": (
        lambda v: v(lambda x: x[:2], signature="(n)->(n)")(A),
        ValueError,
        "core dimension 'n': 2",
    ),
    "result rank": (
        lambda v: v(lambda x: x.sum(), signature="(n)->(n)")(A),
        ValueError,
        "core dimensions",
    ),
    "excluded float": (lambda v: v(lambda x: x, excluded={1.5}), TypeError, "exclude"),
    "excluded negative": (lambda v: v(lambda x: x, excluded={-1}), ValueError, "negative"),
    "keyword": (lambda v: v(lambda x, y: x)(A, y=B), TypeError, "argument"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_vectorize_matches_jax(name: str) -> None:
    expected = PROGRAMS[name](jax.numpy.vectorize)
    actual = PROGRAMS[name](accnp.vectorize)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for g, w in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6)


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind):
        call(jax.numpy.vectorize)
    with pytest.raises(kind, match=text):
        call(accnp.vectorize)


def test_traced_once_and_transformed() -> None:
    count = []

    def dot(x: Any, y: Any) -> Any:
        count.append(1)
        return (x * y).sum()

    f = accnp.vectorize(dot, signature="(n),(n)->()")
    np.testing.assert_allclose(f(W, B), W @ B)
    assert len(count) == 1
    np.testing.assert_allclose(accnp.jit(f)(A, B), A @ B)
    np.testing.assert_allclose(accnp.grad(lambda b: f(A, b).sum())(B), A.sum(0))
    np.testing.assert_allclose(accnp.vmap(f, (0, None))(A, B), A @ B)
    assert f.__name__ == "dot"


def test_typed_keys() -> None:
    def draw(m: Any) -> Any:
        keys = m.random.split(m.random.key(0), 3)
        return m.numpy.vectorize(m.random.uniform, signature="()->()")(keys)

    np.testing.assert_array_equal(draw(accnp), draw(jax))
