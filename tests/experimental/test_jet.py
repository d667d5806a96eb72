"""`jet` compared with JAX's or, where JAX has no rule, with nested derivatives of one variable."""

import jax
import jax.experimental.jet
import numpy as np
import pytest
from api.oracle import jax_result

import accnp
from accnp.experimental.jet import jet

POINT = np.array([[0.3, 0.7, 0.4], [0.6, 0.2, 0.9]], np.float32)
TERMS = [np.roll(POINT, i) * s for i, s in ((1, 1.0), (2, -0.5), (3, 0.25))]
WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

BY_RULES = {  # jax has rules for these
    "sin": lambda j, x: j.numpy.sin(x),
    "tanh": lambda j, x: j.numpy.tanh(x),
    "power": lambda j, x: x**3 + x**2.5,
    "quotient": lambda j, x: 1 / (1 + x * x),
    "atan2": lambda j, x: j.lax.atan2(x, x + 1),
    "erf": lambda j, x: j.scipy.special.erf(x),
    "product": lambda j, x: j.numpy.sin(x @ WEIGHTS).sum(axis=0),
    "extremes": lambda j, x: j.numpy.max(x, axis=1) + j.numpy.min(x) + j.numpy.abs(x - 1).sum(),
    "choice": lambda j, x: j.numpy.where(x > 0.5, x * x, j.numpy.cos(x)),
    "views": lambda j, x: j.numpy.concatenate([x.T[:, 0], x.reshape(-1)[::2]]) ** 2,
    "tree": lambda j, x: {"a": x * x, "b": (x.sum(), 1.0)},
    "truths": lambda j, x: (x * x, x > 0.5),
    "jitted": lambda j, x: j.jit(lambda x: j.numpy.cos(x) * x)(x),
    "read": lambda j, x: j.numpy.sin(x[1])[j.numpy.array([0, 2])],
}


def close(ours, theirs):
    leaves = jax.tree.leaves(theirs)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), leaves, strict=True):
        a, b = np.asarray(a), np.asarray(jax.numpy.asarray(b))
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", BY_RULES)
def test_terms_match_jax(name):
    f = BY_RULES[name]
    ours = jet(lambda x: f(accnp, x), (POINT,), (TERMS,))
    expected = jax_result(
        lambda: jax.experimental.jet.jet(lambda x: f(jax, x), (POINT,), (TERMS,)), f, POINT, TERMS
    )
    close(ours, expected)


def test_several_arguments_and_orders():
    for order in range(4):
        series = ((0.5, POINT), ([0.5, 0.2, 0.1][:order], TERMS[:order]))

        def f(j, s, x):
            return j.numpy.exp(s * x).sum(), s

        ours = jet(lambda *xs: f(accnp, *xs), *series)
        close(ours, jax.experimental.jet.jet(lambda *xs: f(jax, *xs), *series))


def test_coefficients_of_the_series():
    series = ((0.3,), ((1.0, 0.5, 0.25),))
    ours = jet(accnp.sin, *series, factorial_scaled=False)
    close(ours, jax.experimental.jet.jet(jax.numpy.sin, *series, factorial_scaled=False))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: accnp.lax.fori_loop(0, 3, lambda i, y: accnp.sin(y) + x, x),
        lambda x: accnp.lax.scan(lambda c, w: (accnp.cos(c * w), c), x, accnp.arange(1.0, 4.0))[0],
        lambda x: accnp.lax.cond(x > 0, accnp.tanh, accnp.cos, x),
        lambda x: accnp.linalg.inv(accnp.eye(2) * 2 + x)[0, 1],
        lambda x: accnp.vmap(accnp.sinh)(x * accnp.arange(3.0)).sum(),
        lambda x: accnp.jit(accnp.grad(accnp.exp))(x * x),
        lambda x: accnp.scipy.special.gammaln(x + 2),
    ],
)
def test_any_operation_with_a_derivative(f):
    def one(t):
        return f(0.4 + 0.7 * t + 0.3 * t**2)

    expected, g = [], one
    for _ in range(4):
        expected.append(float(g(0.0)))
        g = accnp.grad(g)
    y, terms = jet(f, (0.4,), ((0.7, 0.6, 0.0),))
    np.testing.assert_allclose([float(y), *map(float, terms)], expected, rtol=1e-4, atol=1e-5)


def test_under_transformations():
    def second(x):
        return jet(accnp.sin, (x,), ((1.0, 0.0),))[1][1]

    np.testing.assert_allclose(accnp.jit(second)(0.3), -np.sin(0.3), rtol=1e-6)
    np.testing.assert_allclose(accnp.grad(second)(0.3), -np.cos(0.3), rtol=1e-6)
    xs = accnp.arange(3.0)
    np.testing.assert_allclose(accnp.vmap(second)(xs), -np.sin(xs), rtol=1e-6)


@pytest.mark.parametrize(
    ("series", "kind", "text"),
    [
        (((1.0, 2.0), ((1.0,), (1.0, 2.0))), ValueError, "inconsistent lengths"),
        (((), ()), ValueError, "inconsistent lengths"),
        (((1.0,), ((1.0,), (2.0,))), ValueError, "each argument"),
        ((([1.0],), ((1.0,),)), ValueError, "primal value at position 0 is not an array"),
        (((1.0,), (([1.0],),)), ValueError, "term 0 for argument 0 is not an array"),
        (((1,), ((1.0,),)), TypeError, "neither floating nor complex"),
    ],
)
def test_refusals(series, kind, text):
    with pytest.raises(kind, match=text):
        jet(lambda *xs: xs[0], *series)
