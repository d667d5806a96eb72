"""Defects found by writing ordinary programs; each test shows the behaviour that was missing."""

from __future__ import annotations

import numpy as np

import accnp as jnp


def test_softplus_slopes_at_zero() -> None:
    slope = jnp.grad(lambda x: jnp.logaddexp(x, 0.0))
    assert float(slope(0.0)) == 0.5
    assert float(jnp.grad(slope)(0.0)) == 0.25
    assert float(jnp.grad(lambda x: jnp.logaddexp(0.0, x))(0.0)) == 0.5
    assert np.asarray(jnp.hessian(lambda x: jnp.nn.softplus(x).sum())(jnp.zeros(2))).tolist() == [
        [0.25, 0.0],
        [0.0, 0.25],
    ]
    infinite = jnp.vmap(slope)(jnp.array([np.inf, -np.inf]))
    assert np.asarray(infinite).tolist() == [1.0, 0.0]
