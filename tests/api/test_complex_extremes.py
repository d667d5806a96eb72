"""Complex division and functions in kernels: zero divisors, numbers near the limits of the type."""

import numpy as np
import pytest
from mpmath import mp

import accnp as jnp

A = np.array([0, 1 + 1j, -1, 2j, 0, 3 - 4j, 8])
B = np.array([0, 0, 0, 0, 1j, 1 + 2j, 2])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_zero_divisors(dtype):
    with np.errstate(all="ignore"):
        want = A / B
    with jnp.enable_x64(dtype == "complex128"):
        got = np.asarray(jnp.array(A, dtype) / jnp.array(B, dtype))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_negative_powers_of_zero():
    x = jnp.array([0, 2j, 1 + 1j], "complex64")
    got = np.asarray(jnp.lax.integer_pow(x, -2))
    assert np.isinf(got[0].real)
    np.testing.assert_allclose(got[1:], [-0.25, -0.5j], atol=1e-7)


EXTREME = np.array([
    1.7e308 - 1.6e308j, 1.7e308 + 3e-300j, 5e-324 + 4.4e-323j, -3.7e-315 - 7.7e-310j,
    1e-160 + 1e160j, -1e308j, 2.5e307 - 2e307j, 1e-320,
])  # fmt: skip


def exact(f, *xs):
    with mp.workprec(3000):
        return complex(f(*[mp.mpc(complex(x)) for x in xs]))


def near(got, want):
    """To some units of the last place of the modulus, or of subnormal numbers."""
    return got == want or abs(got - want) <= 4 * max(abs(want) * 2.0**-52, 5e-324)


def test_nothing_overflows_or_loses_digits_in_between():
    with jnp.enable_x64(True):
        x, y = (a.ravel() for a in np.meshgrid(EXTREME, EXTREME))
        for a, b, got in zip(x, y, np.asarray(jnp.array(x) / jnp.array(y))):
            want = exact(lambda p, q: p / q, a, b)
            if max(abs(want.real), abs(want.imag)) < 1e308:
                assert near(complex(got), want), (a, b)
        functions = {
            jnp.sqrt: mp.sqrt, jnp.lax.rsqrt: lambda z: 1 / mp.sqrt(z),
            jnp.sign: lambda z: z / abs(z), jnp.log: mp.log, jnp.abs: abs,
        }  # fmt: skip
        for f, g in functions.items():
            for a, got in zip(EXTREME, np.asarray(f(jnp.array(EXTREME)))):
                want = exact(g, a)
                if np.isfinite(want):
                    assert near(complex(got), want), (f, a)


def test_logarithms_near_the_unit_circle_and_powers_of_two():
    z = np.array([0.6945374377790815 - 0.719456562614515j, 0.6 + 0.8j, 1 + 1e-9j])
    with jnp.enable_x64(True):
        got = np.asarray(jnp.log(jnp.array(z))).real
        want = [exact(mp.log, x).real for x in z]
        np.testing.assert_allclose(got, want, rtol=1e-15)
        z = np.array([-3.177768299483534 - 559.504557500504j, 1000 + 700j])
        want = [exact(lambda x: mp.power(2, x), x) for x in z]
        np.testing.assert_allclose(np.asarray(jnp.exp2(jnp.array(z))), want, rtol=1e-15)
