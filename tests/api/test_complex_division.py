"""Complex division in kernels: zero divisors give what NumPy gives, and do not end the loop."""

import numpy as np
import pytest

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
