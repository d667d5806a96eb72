"""Derivatives have full precision where a naive formula would suffer from cancellation. The
reference is mpmath or float64.
"""

import numpy as np
import pytest
from mpmath import mp, mpf

import accnp as jnp
from accnp.scipy import special as sp


def _hazard(x):
    return mp.exp(-x * x / 2) * mp.sqrt(2 / mp.pi) / mp.erfc(-x / mp.sqrt(2))


def _ndtri(p):
    y = mp.sqrt(2) * mp.erfinv(2 * p - 1)
    return mp.sqrt(2 * mp.pi) * mp.exp(y * y / 2)


def _sinc(x):
    return (mp.cospi(x) - mp.sincpi(x)) / x


CASES = {
    "sinc": (jnp.sinc, _sinc, [1e-30, 1e-10, 1e-3, 0.2, 0.3, 0.5, 3.0, 1e6]),
    "log_ndtr": (sp.log_ndtr, _hazard, [-1e4, -200.0, -20.0, -1.0, 0.0, 3.0]),
    "ndtri": (sp.ndtri, _ndtri, [1e-30, 1e-20, 1e-3, 0.5, 0.9]),
    "logit": (sp.logit, lambda p: 1 / (p * (1 - p)), [1e-30, 0.25, 0.5]),
    "log1mexp": (jnp.nn.log1mexp, lambda x: 1 / mp.expm1(x), [1e-30, 1e-3, 1.0, 30.0]),
    "betaln": (
        lambda x: sp.betaln(jnp.asarray(2.0, x.dtype), x),
        lambda x: mp.digamma(x) - mp.digamma(x + 2),
        [0.01, 0.5, 5.0, 88.0, 1e4, 1e10, 1e30],
    ),
    "poch": (
        lambda x: sp.poch(x, jnp.asarray(3.0, x.dtype)),
        lambda x: x * (x + 1) * (x + 2) * (1 / x + 1 / (x + 1) + 1 / (x + 2)),
        [0.5, 3.0, 40.0],
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name, dtype):
    f, reference, at = CASES[name]
    x = np.array(at, dtype)
    with mp.workprec(2000):
        expected = [float(reference(mpf(float(v)))) for v in x]
    with jnp.enable_x64(dtype == np.float64):
        actual = np.asarray(jnp.vmap(jnp.grad(f))(jnp.array(x)))
    np.testing.assert_allclose(actual, expected, rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_functions_of_subnormal_numbers(dtype):
    x = np.array([0, 1, 3, 200], dtype) * np.finfo(dtype).smallest_subnormal
    expected = np.log(x.astype(float), where=x > 0, out=np.full(4, -np.inf))
    rtol = max(1e-6, float(np.finfo(dtype).eps))
    with jnp.enable_x64(dtype == np.float64):
        for f in (sp.logit, jnp.nn.log1mexp, lambda x: -sp.gammaln(x)):
            np.testing.assert_allclose(np.asarray(f(jnp.array(x))), expected, rtol=rtol)
    with jnp.enable_x64(dtype == np.float64):
        assert float(sp.logit(jnp.array(-0.0, dtype))) == -np.inf


def test_derivative_of_betaln_is_accurate():
    x = np.array([0.01, 0.5, 3.0, 9.9, 40.0, 1e5])
    for h in (1e-6, 0.3, 7.0, 1e4):
        with mp.workprec(300):
            pairs = [(mp.digamma(mpf(v) + mpf(h)), mp.digamma(mpf(v))) for v in x.tolist()]
            expected = [float(a - b) for a, b in pairs]
        with jnp.enable_x64(True):
            gradients = jnp.vmap(jnp.grad(lambda v, h=h: sp.betaln(h, v)))
            actual = -np.asarray(gradients(jnp.array(x)))
        np.testing.assert_allclose(actual, expected, rtol=4e-15)


@pytest.mark.parametrize("b", [1e-38, 1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_derivatives_of_quotients_of_small_and_large_numbers(b):
    b = jnp.float32(b)
    a = 1.5 * b
    da, db = jnp.grad(lambda a, b: a / b, (0, 1))(a, b)
    np.testing.assert_allclose([da * b, db * b], [1, -1.5], rtol=1e-6)
    tangent = jnp.jvp(lambda b: a / b, (b,), (b,))[1]
    np.testing.assert_allclose(tangent, -1.5, rtol=1e-6)


INF = np.inf
ENTROPIES = {
    "entr": [((INF,), (-INF,)), ((0.0,), (INF,)), ((1.0,), (-1.0,)), ((-1.0,), (0.0,))],
    "rel_entr": [
        ((INF, 1.0), (INF, -INF)), ((1.0, INF), (-INF, 0.0)), ((2.0, 2.0), (1.0, -1.0)),
        ((0.0, 1.0), (0.0, 0.0)), ((1.0, 0.0), (0.0, 0.0)),
    ],
    "kl_div": [
        ((INF, 1.0), (INF, -INF)), ((1.0, INF), (-INF, 1.0)), ((2.0, 2.0), (0.0, 0.0)),
        ((0.0, 1.0), (-1.0, 1.0)), ((1.0, 0.0), (-1.0, 1.0)),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "rows"), ENTROPIES.items())
def test_derivatives_of_entropies_at_the_borders(name, rows):
    for xs, expected in rows:
        actual = jnp.grad(getattr(sp, name), tuple(range(len(xs))))(*xs)
        np.testing.assert_array_equal(np.array(actual), expected, err_msg=str(xs))


@pytest.mark.parametrize("x", [-3.0, 0.0, 5.0, 10.0, 14.0, 38.0])
def test_second_derivative_of_log_ndtr(x):
    """It was nan from 14 on in float32, because the square in the derivative of a quotient
    overflows."""
    actual = jnp.grad(jnp.grad(sp.log_ndtr))(np.float32(x))
    with mp.workdps(60):
        s = mp.npdf(mp.mpf(x)) / mp.ncdf(mp.mpf(x))
        expected = float(-s * (x + s))
    np.testing.assert_allclose(actual, expected, rtol=3e-5, atol=1e-41)


def test_second_derivative_of_ndtri_in_the_middle():
    assert float(jnp.grad(jnp.grad(sp.ndtri))(0.5)) == 0.0  # was -5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["gelu", "silu", "mish"])
def test_derivatives_of_activations_in_halves_are_rounded_once(name, dtype):
    """Their terms cancel: at 3.5, the second derivative of gelu was 0 instead of -0.0085."""
    f = getattr(jnp.nn, name)
    for x in (-1.25, 0.5, 2.5, 3.5):
        for derivative in (jnp.grad(f), jnp.grad(jnp.grad(f))):
            actual, expected = derivative(jnp.asarray(x, dtype=dtype)), derivative(np.float32(x))
            eps = float(jnp.finfo(dtype).eps)
            np.testing.assert_allclose(np.float32(actual), np.float32(expected), rtol=0.6 * eps)


@pytest.mark.parametrize("at", [(2.0, 2.0), (-0.5, 0.5), (3.0, -4.0), (1.0, 0.0)])
def test_second_derivatives_of_hypot(at):
    """For equal operands they were 0, as in JAX."""
    a, b = at
    h = np.hypot(a, b)
    expected = np.array([[b * b, -a * b], [-a * b, a * a]]) / h**3
    actual = jnp.hessian(lambda v: jnp.hypot(v[0], v[1]))(np.float32(at))
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)
    first = jnp.grad(lambda v: jnp.hypot(v[0], v[1]))(np.float32(at))
    np.testing.assert_allclose(first, np.array(at) / h, rtol=1e-6)


def test_second_and_third_derivative_of_spence_at_one():
    second = jnp.grad(jnp.grad(sp.spence))
    assert float(second(1.0)) == 0.5
    np.testing.assert_allclose(jnp.grad(second)(1.0), -2 / 3, rtol=1e-6)
