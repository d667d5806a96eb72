"""Python numbers have the same value as operands, as arguments of `jit`, and as defaults: they are
rounded to each dtype to which they are converted.
"""

import math

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp.api.arguments.convert import promote, wrap
from accnp.experimental import enable_x64


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_default_is_rounded_like_an_argument(dtype):
    """The period 2 pi is promoted to the dtype of the angles, which are then converted to
    float32.
    """
    x = jnp.asarray([-1.608, 0.6304, 0.4973, -1.08, 6.008, -3.709, -0.5215], dtype)
    expected = jnp.unwrap(x, period=jnp.asarray(2 * math.pi, dtype))
    for actual in (jnp.unwrap(x), jax.jit(jnp.unwrap)(x)):
        assert actual.dtype == x.dtype
        np.testing.assert_array_equal(actual.astype("float32"), expected.astype("float32"))


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float64"),
        ("float16", "float64"),
    ],
)
def test_a_promoted_number_is_rounded(narrow, wide):
    """`promote` converts the number to the narrow dtype, and the sum converts it to the wide
    one.
    """

    def f(x, number=math.pi):
        x, number = (wrap(n) for n in promote("f", x, number))
        return x.astype(wide) + number

    with enable_x64(wide == "float64"):
        x = jnp.ones(3, narrow)
        expected = np.asarray(jnp.asarray(math.pi, narrow).astype(wide)) + np.ones(3, wide)
        for actual in (f(x), jax.jit(f)(x), jax.jit(f)(x, math.pi)):
            np.testing.assert_array_equal(actual, expected)
