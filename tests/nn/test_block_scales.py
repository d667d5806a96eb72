"""Matrix products of low-precision operands with a scale per block, which JAX supports on GPUs
only.
"""

import ml_dtypes
import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp

DIMS = (((2,), (2,)), ((0,), (0,)))


def normal(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_scaled_matmul_matches_product_of_scaled_operands():
    x, y = normal(2, 3, 8), normal(2, 4, 8)
    a, b = np.abs(normal(2, 3, 2)), np.abs(normal(2, 4, 2))
    expected = (x * a.repeat(4, 2)) @ (y * b.repeat(4, 2)).transpose(0, 2, 1)
    out = jax.nn.scaled_matmul(x, y, a, b, jnp.bfloat16)
    assert out.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(jax.nn.scaled_matmul(x, y, a, b)), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="blocks"):
        jax.nn.scaled_matmul(x, y, a[:, :, :0], b)
    with pytest.raises(ValueError, match="equally many blocks"):
        jax.nn.scaled_matmul(x, y, a, b.repeat(2, 2))


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_stored_operands_have_the_error_of_their_format(mode):
    config = jax.nn.get_scaled_dot_general_config(mode)
    eye = np.eye(64, dtype=np.float32)[None]
    x = normal(1, 3, 64) * np.exp2(np.arange(64) // config.block_size, dtype=np.float32)
    out = jax.nn.scaled_dot_general(x, eye, DIMS, configs=[config] * 3)
    bits = {"mxfp8": 3, "nvfp4": 1}[mode]
    blocks = np.abs(x).reshape(3, -1, config.block_size).max(-1).repeat(config.block_size, -1)
    assert (np.abs(np.asarray(out)[0] - x[0]) <= blocks * 2.0 ** -(bits + 1) * 1.1).all()
    assert (np.asarray(out)[0] != x[0]).any()


def test_a_stored_operand_is_a_value_of_its_format():
    config = jax.nn.get_scaled_dot_general_config("mxfp8")
    x = normal(1, 1, 32)
    eye = np.eye(32, dtype=np.float32)[None]
    out = np.asarray(jax.nn.scaled_dot_general(x, eye, DIMS, configs=[config] * 3)).ravel()
    scale = 2 ** np.ceil(np.log2(np.abs(x).max() / 448))
    assert (
        out == (x.ravel() / scale).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) * scale
    ).all()


def test_derivatives_pass_through_the_format():
    config = jax.nn.get_scaled_dot_general_config("mxfp8")
    eye = np.eye(32, dtype=np.float32)[None]
    x = normal(1, 2, 32)

    def f(v):
        return jax.nn.scaled_dot_general(v, eye, DIMS, configs=[config] * 3).sum()

    assert (jax.grad(f)(x) == 1).all()
    with pytest.raises(ValueError, match="multiple of the block size"):
        f(x[:, :, :30])
