"""Derivatives of determinants, which are transposed cofactors, also for singular matrices."""

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

RNG = np.random.default_rng(11)


def cofactors(m):
    m = m.astype(np.float64)
    rows = range(len(m))

    def minor(i, j):
        return np.linalg.det(np.delete(np.delete(m, i, 0), j, 1))

    return np.array([[(-1) ** (i + j) * minor(i, j) for j in rows] for i in rows])


def of_rank(n, rank):
    return RNG.normal(size=(n, rank)) @ RNG.normal(size=(rank, n))


MATRICES = {
    "1x1": np.array([[3.0]]),
    "2x2": RNG.normal(size=(2, 2)),
    "4x4": RNG.normal(size=(4, 4)),
    "7x7": RNG.normal(size=(7, 7)),
    "20x20": RNG.normal(size=(20, 20)) / 4,
    "rank 3 of 4": of_rank(4, 3),
    "rank 5 of 6": of_rank(6, 5),
    "rank 3 of 6": of_rank(6, 3),
    "a row of zeros": np.diag([1.0, 2.0, 3.0, 0.0]),
    "zeros": np.zeros((5, 5)),
    "scales apart": np.diag([1e-3, 1e3, 5.0, 1.0, 2.0]),
    "exchanged": np.eye(5)[[3, 0, 4, 1, 2]],
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("wide", [False, True])
def test_gradients(name, wide):
    with accnp.enable_x64(wide):
        a = MATRICES[name].astype(np.float64 if wide else np.float32)
        gradient = accnp.grad(jnp.linalg.det)
        expected = cofactors(a)
        tolerance = np.abs(a).max(initial=0) ** (len(a) - 1) * len(a) * (1e-13 if wide else 2e-6)
        for f in (gradient, accnp.jit(gradient)):
            np.testing.assert_allclose(
                np.asarray(f(a)), expected, atol=tolerance + 1e-30, rtol=1e-5
            )


def test_stacks_of_any_layout():
    a = RNG.normal(size=(5, 6, 5, 3)).astype(np.float32)
    gradient = accnp.grad(lambda a: jnp.linalg.det(a.transpose(1, 3, 2, 0)).sum())(a)
    expected = [[cofactors(a[:, i, :, k].T).T for k in range(3)] for i in range(6)]
    expected = np.array(expected).transpose(2, 0, 3, 1)
    np.testing.assert_allclose(np.asarray(gradient), expected, atol=1e-4)


def test_forward_derivatives_in_a_loop_are_one_kernel():
    def loop(x):
        def step(i, c):
            return c + jnp.linalg.det(x * (1 + c * 1e-3))

        return accnp.lax.fori_loop(0, 20, step, 0.0)

    x = RNG.normal(size=(4, 4)).astype(np.float32)
    loop_tangent = accnp.jit(lambda x, t: accnp.jvp(loop, (x,), (t,))[1])
    loop_tangent(x, x)
    before = accnp.counters()["launches"]
    tangent = float(loop_tangent(x, x))
    assert accnp.counters()["launches"] - before <= 2
    step = 1e-3
    difference = (float(loop(x * (1 + step))) - float(loop(x * (1 - step)))) / (2 * step)
    np.testing.assert_allclose(tangent, difference, rtol=2e-2)


def test_matrices_beyond_the_kernel():
    """Large nearly singular matrices use the singular value decomposition, others the inverse."""
    with accnp.enable_x64():
        n = 130
        a = RNG.normal(size=(3, n, n)) / np.sqrt(n)
        a[1, :, 0] = a[1, :, 1]
        gradients = np.asarray(accnp.vmap(accnp.grad(jnp.linalg.det))(a))
        for k in (0, 2):
            expected = np.linalg.det(a[k]) * np.linalg.inv(a[k]).T
            np.testing.assert_allclose(gradients[k], expected, rtol=1e-7)
        u, s, vh = np.linalg.svd(a[1])
        product = np.prod(s[:-1]) * np.linalg.det(u) * np.linalg.det(vh)
        np.testing.assert_allclose(gradients[1], product * np.outer(u[:, -1], vh[-1]), atol=1e-9)


def test_second_derivatives():
    """The second derivative of det along s and t is the sum over i and j of determinants with two
    rows replaced."""
    a, s, t = RNG.normal(size=(3, 5, 5))
    expected = 0.0
    for i in range(5):
        for j in range(5):
            if i != j:
                m = a.copy()
                m[i], m[j] = s[i], t[j]
                expected += np.linalg.det(m)
    with accnp.enable_x64():

        def inner(x):
            return accnp.jvp(jnp.linalg.det, (x,), (s,))[1]

        np.testing.assert_allclose(float(accnp.jvp(inner, (a,), (t,))[1]), expected, rtol=1e-9)
