"""Calls whose results depend only in part on the differentiated arguments, compared with JAX."""

import jax
import jax.numpy
import numpy as np
import pytest

import accnp
import accnp.numpy

X = np.float32([0.2, -0.7, 1.1])
POINT = np.float32(0.7)


def close(actual, expected):
    a, b = accnp.tree.leaves(actual), jax.tree.leaves(expected)
    for x, y in zip(map(np.asarray, a), map(np.asarray, b), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


# --- rules of the user that compute values and tangents together ---


def steps(b, x):
    return b.lax.scan(lambda c, _: (b.numpy.sin(c) * 1.5, c), x, None, length=3)


def both_of_a_jitted_function(b, p, t):
    pair = b.jit(lambda x, dx: (b.numpy.sin(x), b.numpy.cos(x) * dx))
    y, dy = pair(p[0], t[0])
    return y, dy * y


def both_of_a_scan(b, p, t):
    (y, ys), (dy, dys) = b.jvp(lambda x: steps(b, x), p, t)
    return y, dy * y + (ys * dys).sum()


def both_of_a_jitted_scan(b, p, t):
    y, dy = b.jit(lambda p, t: b.jvp(lambda x: steps(b, x)[0], p, t))(p, t)
    return y, dy * y


def both_of_a_mapped_scan(b, p, t):
    run = b.vmap(lambda p, t: b.jvp(lambda x: steps(b, x)[0], (p,), (t,)))
    y, dy = run(b.numpy.stack([p[0]]), b.numpy.stack([t[0]]))
    return y[0], (dy * y)[0]


def both_of_branches(b, p, t):
    def f(x):
        return b.lax.cond(x > 0, lambda x: (x * x, b.numpy.sin(x)), lambda x: (x, x), x)

    (y, s), (dy, ds) = b.jit(lambda p, t: b.jvp(f, p, t))(p, t)
    return y, dy * y * s + ds


RULES = [
    both_of_a_jitted_function,
    both_of_a_scan,
    both_of_a_jitted_scan,
    both_of_a_mapped_scan,
    both_of_branches,
]


@pytest.mark.parametrize("rule", RULES)
def test_reverse_mode_of_rules_that_compute_both(rule):
    def gradient(b):
        @b.custom_jvp
        def f(x):
            return b.numpy.sin(x)

        f.defjvp(lambda p, t: rule(b, p, t))
        return b.grad(f)

    expected = jax.jit(gradient(jax))(POINT)
    close(gradient(accnp)(POINT), expected)
    close(accnp.jit(gradient(accnp))(POINT), expected)
    close(accnp.jit(accnp.vmap(gradient(accnp)))(X), jax.jit(jax.vmap(gradient(jax)))(X))


@pytest.mark.parametrize("rule", RULES)
def test_values_of_rules_are_differentiated_as_the_rule_computes_them(rule):
    def second_derivative(b):
        @b.custom_jvp
        def f(x):
            return b.numpy.sin(x)

        f.defjvp(lambda p, t: rule(b, p, t))
        return b.grad(b.grad(lambda x: b.numpy.exp(f(x))))

    close(accnp.jit(second_derivative(accnp))(POINT), jax.jit(second_derivative(jax))(POINT))


# --- transposes ---


def counter(b, t):
    return b.lax.fori_loop(0, 3, lambda i, c: c * i + c, t)


def counters_in_counters(b, t):
    def step(i, c):
        return b.lax.fori_loop(0, 2, lambda j, d: (d[0] + 1, d[1] * (j + i + 1)), (0, c))[1]

    return b.lax.fori_loop(0, 2, step, t)


def values_carried_along(b, t):
    return b.jvp(lambda x: steps(b, x)[0], (X,), (t,))[1]


def product_with_the_value(b, t):
    y, dy = b.jit(lambda t: b.jvp(lambda x: steps(b, x)[0], (X,), (t,)))(t)
    return y * dy


def branches_with_constants(b, t):
    return b.lax.cond(X[0] > 0, lambda t: (t * 2, 3), lambda t: (t, 4), t)[0]


def affine_start(b, t):
    return b.lax.scan(lambda c, r: (c + r, c), np.float32(1), t)[1]


def fixed_in_the_carry(b, t):
    def step(c, r):
        return c, b.lax.cond(r > 0, lambda: t * r, lambda: c)

    return b.lax.scan(step, t, X)[1].sum(0)


LINEAR = [
    counter,
    counters_in_counters,
    values_carried_along,
    product_with_the_value,
    branches_with_constants,
    affine_start,
    fixed_in_the_carry,
]


@pytest.mark.parametrize("f", LINEAR)
def test_transposes(f):
    def turned(b):
        return lambda ct: b.linear_transpose(lambda t: f(b, t), X)(ct)[0]

    expected = jax.jit(turned(jax))(X)
    close(turned(accnp)(X), expected)
    close(accnp.jit(turned(accnp))(X), expected)


def test_products_of_linear_operands_are_refused():
    with pytest.raises(NotImplementedError, match="not linear"):
        accnp.linear_transpose(lambda t: accnp.lax.scan(lambda c, r: (c * r, c), t[0], t)[1], X)(X)
