"""The object that `vjp` returns, compared with JAX: its residuals, and references to which
cotangents are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

BOTH = (jax, accnp)
X = np.array([1, 2, 3], np.float32)
W = np.array([2, 2, 2], np.float32)
Function = Callable[..., Any]


FUNCTIONS: dict[str, tuple[Callable[[Any], Function], tuple[Any, ...]]] = {
    "sin": (lambda m: m.numpy.sin, (X,)),
    "product": (lambda m: lambda x, y: x * y, (X, W)),
    "product and sin": (lambda m: lambda x, y: x * y + m.numpy.sin(x), (X, W)),
    "sum": (lambda m: lambda x, y: x + y, (X, W)),
    "matrix": (lambda m: lambda a, b: a @ b, (X, np.ones((3, 2), np.float32))),
    "exp": (lambda m: m.numpy.exp, (X,)),
    "jit": (lambda m: m.jit(lambda x, y: x * y), (X, W)),
    "tree": (lambda m: lambda d: (d["a"] * d["b"][0]).sum() + d["b"][1], ({"a": X, "b": [W, X]},)),
}


def text(x: Any) -> Any:
    """Return values, and the type names of other objects, in tuples and lists."""
    if isinstance(x, list | tuple):
        return type(x)(text(y) for y in x)
    return type(x).__name__ if not hasattr(x, "shape") else np.asarray(x).round(4).tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_residuals(name: str) -> None:
    make, args = FUNCTIONS[name]
    outcomes = []
    for m in BOTH:
        arrays = jax.tree.map(m.numpy.asarray, args)
        pull = m.vjp(make(m), *arrays)[1]
        outcomes.append(
            (
                text(pull.args_res),
                text(pull.opaque_residuals),
                len(jax.tree.leaves([pull.args_res, pull.opaque_residuals])),
            )
        )
        assert str(pull.in_tree) == str(m.tree.structure(arrays))
    assert outcomes[0][:2] == outcomes[1][:2]


def test_residuals_can_be_replaced() -> None:
    for m in BOTH:
        y, pull = m.vjp(lambda x, y: x * y, m.numpy.asarray(X), m.numpy.asarray(W))
        residuals = list(pull.args_res)
        pull.args_res[1] = m.numpy.ones(3) * 10
        np.testing.assert_array_equal(pull(m.numpy.ones(3))[0], [10, 10, 10])
        pull.args_res = residuals
        np.testing.assert_array_equal(pull(m.numpy.ones(3))[0], W)
        again = m.jit(lambda pull, ct: pull(ct))(pull, y)
        np.testing.assert_array_equal(again[1], X * y)
        _, pull = m.vjp(m.numpy.sin, 1.0)
        pull.opaque_residuals[0] = m.numpy.float32(3)
        assert float(pull(2.0)[0]) == 6


def test_a_copy_with_other_residuals() -> None:
    """The residuals are leaves of the pytree, even after they have been read."""
    _, pull = accnp.vjp(lambda x, y: x * y, X, W)
    assert len(pull.args_res) == 2
    doubled = accnp.tree.map(lambda x: 2 * x, pull)
    np.testing.assert_array_equal(doubled(np.ones(3, np.float32))[0], 2 * W)
    np.testing.assert_array_equal(doubled.args_res[0], 2 * X)


def test_cotangents_are_added_to_references() -> None:
    sums = []
    for m in BOTH:
        first, second = m.new_ref(m.numpy.ones(3)), m.new_ref(m.numpy.zeros(3))
        _, pull = m.vjp(lambda d: d["a"] * d["b"], {"a": m.numpy.asarray(X), "b": W})
        for _ in range(2):
            (out,) = pull.with_refs({"a": first, "b": second})(m.numpy.ones(3))
        assert [type(x).__name__ for x in out.values()] == ["GradRef", "GradRef"]
        sums.append([np.asarray(first[...]), np.asarray(second[...])])
    np.testing.assert_array_equal(sums[0], sums[1])


def test_some_cotangents_in_references() -> None:
    for m in BOTH:
        total = m.new_ref(m.numpy.zeros(3))
        _, pull = m.vjp(lambda x, y, z: x * y * z, X, W, W)
        out = pull.with_refs(total, m.ad.GradValue(), m.ad.DontWant())(m.numpy.ones(3))
        assert isinstance(out[0], m.ad.GradRef)
        assert isinstance(out[2], m.ad.DidntWant)
        np.testing.assert_array_equal(out[1], X * W)
        np.testing.assert_array_equal(total[...], W * W)


def test_references_in_loops_and_jit() -> None:
    for m in BOTH:
        total = m.new_ref(m.numpy.zeros(3))

        @m.jit
        def step(x: Any, total: Any, m: Any = m) -> Any:
            return m.vjp(lambda x: x * x, x)[1].with_refs(total)(m.numpy.ones(3))

        step(X, total)
        step(X, total)
        np.testing.assert_array_equal(total[...], 4 * X)

        def body(c: Any, x: Any, m: Any = m, total: Any = total) -> Any:
            y, pull = m.vjp(lambda w, x: (w * x).sum(), W, x)
            pull.with_refs(total, m.ad.DontWant())(np.float32(1))
            return c + y, None

        m.lax.scan(body, np.float32(0), np.ones((4, 3), np.float32))
        np.testing.assert_array_equal(total[...], 4 * X + 4)


def test_wrong_references() -> None:
    for m in BOTH:
        _, pull = m.vjp(lambda x, y: x * y, X, W)
        with pytest.raises(Exception):  # noqa: B017, PT011 - jax has no type or text of its own
            pull.with_refs(m.new_ref(m.numpy.zeros(3)))(m.numpy.ones(3))
        _, pull = m.vjp(m.numpy.sin, X)
        with pytest.raises(ValueError, match="Invalid shape for `addupdate`"):
            pull.with_refs(m.new_ref(m.numpy.zeros(4)))(m.numpy.ones(3))
