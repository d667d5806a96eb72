"""Functions whose small eager calls are compiled programs: the bits of what is recorded."""

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

M = np.array([[0.5, 2.0, -1.0], [0.25, -3.0, 0.0], [1.0, 1.5, 8.0]], np.float32)
V = np.linspace(-2, 2, 7, dtype=np.float32)
CALLS = {
    "expm": lambda m: m.scipy.linalg.expm(M),
    "expm of a stack": lambda m: m.scipy.linalg.expm(np.stack([M, M.T * 20])),
    "expm of integers": lambda m: m.scipy.linalg.expm(np.eye(2, dtype=np.int32)),
    "expm of triangles": lambda m: m.scipy.linalg.expm(np.triu(M), upper_triangular=True),
    "polar": lambda m: m.scipy.linalg.polar(M),
    "polar by svd": lambda m: m.scipy.linalg.polar(M[:2], "left", method="svd"),
    "polyval": lambda m: m.numpy.polyval(V, M),
    "polyval of a number": lambda m: m.numpy.polyval(V, 2.0),
    "polyval of integers": lambda m: m.numpy.polyval(np.arange(3), 2),
    "polyval in a loop": lambda m: m.numpy.polyval(V, V, unroll=2),
    "cross": lambda m: m.numpy.cross(M, M[0]),
    "det": lambda m: m.numpy.linalg.det(M),
    "det of a stack": lambda m: m.numpy.linalg.det(np.stack([M[:2, :2]] * 3)),
    "large det": lambda m: m.numpy.linalg.det(np.eye(5, dtype=np.float32) + V[:5]),
    "unwrap": lambda m: m.numpy.unwrap(V * 4, axis=0),
    "unwrap of integers": lambda m: m.numpy.unwrap(np.array([0, 3, 6, 1]), period=8),
    "unwrap with a jump": lambda m: m.numpy.unwrap(M * 5, 4, 0, 5.0),
    "cov": lambda m: m.numpy.cov(M),
    "cov of columns": lambda m: m.numpy.cov(M, rowvar=False, ddof=0),
    "cov of two": lambda m: m.numpy.cov(V, V * V, bias=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_bits_and_types(name):
    leaves = accnp.tree.leaves
    found, again = leaves(CALLS[name](accnp)), leaves(CALLS[name](accnp))
    with accnp.disable_jit():
        recorded = leaves(CALLS[name](accnp))
    for a, b, c, d in zip(found, again, recorded, leaves(CALLS[name](jax)), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes() == np.asarray(c).tobytes()
        assert (a.dtype, a.shape, a.weak_type) == (d.dtype, d.shape, d.weak_type)
        np.testing.assert_allclose(a, d, rtol=3e-4, atol=1e-5)


def test_large_numbers_are_left_to_the_function():
    assert jnp.polyval(V[:2], 2**40).item() == pytest.approx(np.polyval(V[:2], 2.0**40), rel=1e-5)


def test_errors_name_the_function():
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"^linalg\.polar: matrices are needed; got shape \(7,\)"
        ):
            accnp.scipy.linalg.polar(V)
        with pytest.raises(TypeError, match=r"^linalg\.expm: dtype float16 is not supported"):
            accnp.scipy.linalg.expm(M.astype(np.float16))
        with pytest.raises(IndexError, match=r"^jnp\.polyval: coefficients stand along an axis"):
            jnp.polyval(2.0, V)


def test_derivatives():
    def f(x):
        return jnp.polyval(x, 2.0) + accnp.scipy.linalg.expm(M * x[0]).sum()

    np.testing.assert_allclose(accnp.grad(f)(V), jax.grad(
        lambda x: jax.numpy.polyval(x, 2.0) + jax.scipy.linalg.expm(M * x[0]).sum()
    )(V), rtol=1e-3)  # fmt: skip
