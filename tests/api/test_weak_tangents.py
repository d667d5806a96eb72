"""Tangents of strongly typed primals are strongly typed, as in JAX 0.10.2."""

import accnp as jax
import accnp.numpy as jnp


def test_weak_tangent_of_a_strong_primal():
    for f in (lambda x: 7.0 * x, lambda x: x):
        value, tangent = jax.jvp(f, [jnp.float32(1)], [jnp.array(4.0)])
        assert not jax.typeof(value).weak_type
        assert not jax.typeof(tangent).weak_type


def test_strong_tangent_of_a_weak_primal():
    """The derivative is weak if the value is weak; a tangent that is passed through is
    unchanged.
    """
    for f, weak in (
        (lambda x: 7.0 * x, True),
        (jnp.sin, True),
        (lambda x: x + x, True),
        (lambda x: x, False),
        (jnp.sum, False),
        (lambda x: jnp.float32(2) * x, False),
    ):
        _, tangent = jax.jvp(f, [jnp.array(4.0)], [jnp.float32(1)])
        assert jax.typeof(tangent).weak_type == weak


def test_iterative_solvers_keep_weak_types():
    solvers = jax.scipy.sparse.linalg
    for solve, keeps in ((solvers.bicgstab, True), (solvers.gmres, True), (solvers.cg, False)):
        for b, weak in ((1.0, keeps), (jnp.float32(1), False)):
            solution = solve(lambda x: x, b)[0]
            assert jax.typeof(solution).weak_type == weak
            assert float(solution) == 1
