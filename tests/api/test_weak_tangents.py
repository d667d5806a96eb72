"""Tangents of primals that are not weak are not weak either, as in jax 0.10.2."""

import accnp as jax
import accnp.numpy as jnp


def test_weak_tangent_of_a_strong_primal():
    for f in (lambda x: 7.0 * x, lambda x: x):
        value, tangent = jax.jvp(f, [jnp.float32(1)], [jnp.array(4.0)])
        assert not jax.typeof(value).weak_type
        assert not jax.typeof(tangent).weak_type
