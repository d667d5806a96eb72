"""Complex division and functions in kernels: zero divisors, and numbers near the limits of the
dtype.
"""

import numpy as np
import pytest
from mpmath import mp

import accnp as jnp

A = np.array([0, 1 + 1j, -1, 2j, 0, 3 - 4j, 8])
B = np.array([0, 0, 0, 0, 1j, 1 + 2j, 2])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_zero_divisors(dtype):
    with np.errstate(all="ignore"):
        expected = A / B
    with jnp.enable_x64(dtype == "complex128"):
        actual = np.asarray(jnp.array(A, dtype) / jnp.array(B, dtype))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_negative_powers_of_zero():
    x = jnp.array([0, 2j, 1 + 1j], "complex64")
    actual = np.asarray(jnp.lax.integer_pow(x, -2))
    assert np.isinf(actual[0].real)
    np.testing.assert_allclose(actual[1:], [-0.25, -0.5j], atol=1e-7)


EXTREME = np.array([
    1.7e308 - 1.6e308j, 1.7e308 + 3e-300j, 5e-324 + 4.4e-323j, -3.7e-315 - 7.7e-310j,
    1e-160 + 1e160j, -1e308j, 2.5e307 - 2e307j, 1e-320,
])  # fmt: skip


def exact(f, *xs):
    with mp.workprec(3000):
        return complex(f(*[mp.mpc(complex(x)) for x in xs]))


def near(actual, expected):
    """Compare within some ulp of the modulus, or of the smallest subnormal number."""
    return actual == expected or abs(actual - expected) <= 4 * max(abs(expected) * 2.0**-52, 5e-324)


def test_no_intermediate_overflow_or_cancellation():
    with jnp.enable_x64(True):
        x, y = (a.ravel() for a in np.meshgrid(EXTREME, EXTREME))
        for a, b, actual in zip(x, y, np.asarray(jnp.array(x) / jnp.array(y))):
            expected = exact(lambda p, q: p / q, a, b)
            if max(abs(expected.real), abs(expected.imag)) < 1e308:
                assert near(complex(actual), expected), (a, b)
        functions = {
            jnp.sqrt: mp.sqrt, jnp.lax.rsqrt: lambda z: 1 / mp.sqrt(z),
            jnp.sign: lambda z: z / abs(z), jnp.log: mp.log, jnp.abs: abs,
        }  # fmt: skip
        for f, g in functions.items():
            for a, actual in zip(EXTREME, np.asarray(f(jnp.array(EXTREME)))):
                expected = exact(g, a)
                if np.isfinite(expected):
                    assert near(complex(actual), expected), (f, a)


def test_logarithms_near_the_unit_circle_and_powers_of_two():
    z = np.array([0.6945374377790815 - 0.719456562614515j, 0.6 + 0.8j, 1 + 1e-9j])
    with jnp.enable_x64(True):
        actual = np.asarray(jnp.log(jnp.array(z))).real
        expected = [exact(mp.log, x).real for x in z]
        np.testing.assert_allclose(actual, expected, rtol=1e-15)
        z = np.array([-3.177768299483534 - 559.504557500504j, 1000 + 700j])
        expected = [exact(lambda x: mp.power(2, x), x) for x in z]
        np.testing.assert_allclose(np.asarray(jnp.exp2(jnp.array(z))), expected, rtol=1e-15)


def test_powers_of_double_precision_keep_their_digits():
    rng = np.random.default_rng(3)
    z = np.exp(rng.uniform(-600, 600, 60) + 1j * rng.uniform(-3, 3, 60))
    w = rng.uniform(-1, 1, 60) + 1j * rng.uniform(-1, 1, 60)
    with jnp.enable_x64(True):
        actual = np.asarray(jnp.power(jnp.array(z), jnp.array(w)))
    for a, b, g in zip(z, w, actual):
        assert near(complex(g), exact(lambda p, q: mp.exp(q * mp.log(p)), a, b)), (a, b)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_and_trigonometric_functions_of_huge_numbers(dtype):
    with jnp.enable_x64(dtype == "complex128"):
        assert abs(complex(jnp.exp2(jnp.array(2e30j, dtype)))) < 1.1
        assert abs(complex(jnp.power(jnp.array(2 + 0j, dtype), jnp.array(2e30j, dtype)))) < 1.1
        infinite = jnp.power(jnp.array([np.inf, -np.inf], dtype), jnp.array(1, dtype))
        assert not np.isnan(np.asarray(infinite)).any()
        big = 2e30 if dtype == "complex64" else 2e200
        actual = complex(jnp.square(jnp.array(complex(big, big), dtype)))
        assert actual == complex(0, np.inf)
        with np.errstate(all="ignore"):
            expected = np.array([complex(1, np.inf), complex(-3, -np.inf)]) / np.array([0j])
        actual = jnp.array([complex(1, np.inf), complex(-3, -np.inf)], dtype) / jnp.array(0j, dtype)
        np.testing.assert_array_equal(np.asarray(actual), expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_of_zero_are_those_of_numpy(dtype):
    z = np.array([0j, complex(-0.0, 0.0), complex(0.0, -0.0)], dtype)[:, None]
    w = np.array([0, 1, 0.5, 1 + 1j, -1, -0.5, -2, 1j, -np.inf], dtype)
    with jnp.enable_x64(dtype == "complex128"), np.errstate(all="ignore"):
        actual = np.asarray(jnp.power(jnp.array(z), jnp.array(w)))
        np.testing.assert_array_equal(actual, np.power(z, w))


@pytest.mark.parametrize(("dtype", "bits"), [("complex64", 23), ("complex128", 52)])
def test_sinc_far_from_zero(dtype, bits):
    z = np.array([42 - 1.5e-12j, 18.87 - 22.12j, -815.9 + 0.7j, 0.25], dtype)
    with jnp.enable_x64(dtype == "complex128"):
        actual = np.asarray(jnp.sinc(jnp.array(z)))
    for a, g in zip(z, actual):
        expected = exact(lambda p: mp.sin(mp.pi * p) / (mp.pi * p), a)
        assert abs(complex(g) - expected) <= 4 * 2.0**-bits * abs(expected), a


def test_angles_on_the_axes_are_those_of_numpy():
    y, x = (a.ravel() for a in np.meshgrid([np.inf, -np.inf, 1, -1, 0.0, -0.0], [-1, -0.0, 1]))
    with jnp.enable_x64(True):
        np.testing.assert_array_equal(np.asarray(jnp.arctan2(y, x)), np.arctan2(y, x))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_difference_of_equal_squares_is_positive_zero(dtype):
    with jnp.enable_x64(dtype == "complex128"):
        squares = np.asarray(jnp.square(jnp.array([-1 + 1j, 1 + 1j, complex(-0.0, 0.0)], dtype)))
    assert not np.signbit(squares.real).any()
