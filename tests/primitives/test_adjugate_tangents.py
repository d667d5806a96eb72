"""Second derivatives of determinants, which need the tangent of the adjugate. The reference is
exact: dual numbers with integer parts, for matrices of every rank.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp


class Dual(NamedTuple):
    """A dual number a + b eps."""

    a: int
    b: int


def determinant(m: list[list[Dual]]) -> Dual:
    """Expand by the cofactors of the first row."""
    if not m:
        return Dual(1, 0)
    a = b = 0
    for j, x in enumerate(m[0]):
        d = determinant([row[:j] + row[j + 1 :] for row in m[1:]])
        a += (-1) ** j * x.a * d.a
        b += (-1) ** j * (x.a * d.b + x.b * d.a)
    return Dual(a, b)


def change_of_cofactors(a: np.ndarray, t: np.ndarray) -> np.ndarray:
    n = len(a)
    m = [[Dual(int(a[i, j]), int(t[i, j])) for j in range(n)] for i in range(n)]
    minor = lambda i, j: [r[:j] + r[j + 1 :] for k, r in enumerate(m) if k != i]  # noqa: E731
    tangents = [[(-1) ** (i + j) * determinant(minor(i, j)).b for j in range(n)] for i in range(n)]
    return np.array(tangents, float)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "rank"), [(n, r) for n in (2, 4, 5, 6) for r in range(max(0, n - 3), n + 1)]
)
def test_exact_values_at_every_rank(n: int, rank: int, dtype: type) -> None:
    rng = np.random.default_rng(10 * n + rank)
    stack = []
    for _ in range(3):
        left, right = rng.integers(-3, 4, (n, rank)), rng.integers(-3, 4, (rank, n))
        stack.append(left @ right if rank < n else rng.integers(-3, 4, (n, n)))
    a, t = np.array(stack), rng.integers(-3, 4, (3, n, n))
    expected = np.array([change_of_cofactors(x, y) for x, y in zip(a, t, strict=True)])

    def change(a: jax.Array, t: jax.Array) -> jax.Array:
        return jax.jvp(jax.grad(lambda a: jnp.sum(jnp.linalg.det(a))), (a,), (t,))[1]

    with jax.enable_x64(True):
        for form in (jax.jit(change), jax.jit(jax.vmap(change)))[: 2 if n == 4 else 1]:
            actual = form(jnp.asarray(a, dtype), jnp.asarray(t, dtype))
            scale = max(np.abs(expected).max(), np.abs(a).max() ** (n - 2) * np.abs(t).max(), 1)
            np.testing.assert_allclose(actual, expected, atol=20 * np.finfo(dtype).eps * scale)


def test_hessian_is_as_accurate_as_jax() -> None:
    a = np.random.default_rng(0).standard_normal((8, 8))
    hessian = jax.jit(jax.hessian(jnp.linalg.det))
    with jax.enable_x64(True):
        exact = np.asarray(hessian(a))
    inverse = np.linalg.inv(a)
    by_inverse = np.linalg.det(a) * (
        np.einsum("ji,lk->ijkl", inverse, inverse) - np.einsum("jk,li->ijkl", inverse, inverse)
    )
    np.testing.assert_allclose(exact, by_inverse, atol=1e-12 * np.abs(by_inverse).max())
    actual = np.asarray(hessian(a.astype(np.float32)))
    np.testing.assert_allclose(actual, exact, atol=1e-6 * np.abs(exact).max())
