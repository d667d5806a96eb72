"""Random nests of control flow and transformations, up to four levels deep, compared with JAX in 64
bits.
"""

import jax
import jax.numpy
import numpy as np
import pytest
from fuzz.nests import SIZE, Nest

import accnp
import accnp.numpy


class Library:
    """JAX or accnp, as a program sees it."""

    def __init__(self, top, numpy):
        self.top, self.np, self.lax = top, numpy, top.lax


OURS = Library(accnp, accnp.numpy)
THEIRS = Library(jax, jax.numpy)


def with_derivatives(b, nest):
    """Return a program's values and derivatives."""

    def f(x, w):
        return nest.fn(b, x, w)

    def total(x, w):
        y = f(x, w)
        return (y * b.np.cos(y)).sum()

    def run(x, w):
        if nest.reverse:
            return f(x, w), b.top.grad(total, (0, 1))(x, w)
        return b.top.jvp(f, (x, w), (b.np.cos(x), b.np.sin(w)))

    return run


# What once went wrong, and others.
SEEDS = [(147, 3, True), (216, 4, True), *[(seed, 4, seed % 2 > 0) for seed in range(20, 25)]]


@pytest.mark.parametrize(("seed", "depth", "reverse"), SEEDS)
def test_nests(seed, depth, reverse):
    rng = np.random.default_rng(seed)
    nest = Nest(seed, depth, reverse)
    with jax.enable_x64(True), accnp.enable_x64(True):
        x, w = rng.normal(size=SIZE), rng.normal(size=SIZE)
        expected = jax.tree.leaves(jax.jit(with_derivatives(THEIRS, nest))(x, w))
        run = with_derivatives(OURS, nest)
        if seed % 4:
            run = accnp.jit(run)  # else by values, one construct after another
        actual = accnp.tree.leaves(run(accnp.numpy.asarray(x), accnp.numpy.asarray(w)))
    for a, b in zip(map(np.asarray, actual), map(np.asarray, expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), nest.text
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8, err_msg=nest.text)
