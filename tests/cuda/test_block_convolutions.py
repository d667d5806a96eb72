"""Convolutions by generated GPU kernels, compared with the CPU for all kinds of padding, dilation
and groups. Machine code launches them in loops.
"""

import numpy as np
import pytest
from cuda.support import check_no_python

import accnp as jax
import accnp.numpy as jnp
from accnp import lax
from accnp.compiler.library.windows import block_convolutions
from accnp.runtime.device_buffer import driver_of

RNG = np.random.default_rng(0)


def normal(*shape, dtype="f4"):
    x = RNG.normal(size=shape) * 3
    return (x + 1j * RNG.normal(size=shape) if dtype[0] == "c" else x).astype(jnp.dtype(dtype))


def same_padding(**how):
    return lambda x, w: lax.conv_general_dilated(x, w, (1,) * (x.ndim - 2), "SAME", **how)


def strided_with_negative_padding(x, w):
    return lax.conv_general_dilated(x, w, (2, 1), [(1, 2), (-1, 3)], rhs_dilation=(2, 3))


def dilated_operand(x, w):
    return lax.conv_general_dilated(x, w, (1, 2), [(1, -1), (-2, 3)], lhs_dilation=(2, 3))


def gradients(x, w):
    def loss(x, w):
        return (lax.conv_general_dilated(x, w, (2, 2), "SAME") ** 2).sum()

    return jax.grad(loss, (0, 1))(x, w)


LAST = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
X, W = normal(2, 3, 9, 8), normal(5, 3, 3, 2)
# Those of 16 features and more are by tiles.
CASES = {
    "moved": (strided_with_negative_padding, X, W),
    "spread": (dilated_operand, X, W),
    "groups": (same_padding(feature_group_count=3), normal(2, 6, 5, 4), normal(9, 2, 3, 2)),
    "groups of examples": (same_padding(batch_group_count=2), normal(4, 6, 5), normal(8, 6, 3)),
    "complex": (same_padding(), normal(2, 3, 9, dtype="c8"), normal(2, 3, 4, dtype="c8")),
    "whole numbers": (same_padding(), normal(2, 3, 9, dtype="i4"), normal(5, 3, 4, dtype="i4")),
    "halves": (
        same_padding(),
        normal(2, 3, 9, dtype="bfloat16"),
        normal(5, 3, 4, dtype="bfloat16"),
    ),
    "no space": (lambda x, w: lax.conv(x, w, (), ()), normal(2, 3), normal(4, 3)),
    "tiles": (dilated_operand, normal(3, 2, 9, 8), normal(17, 2, 3, 2)),
    "tiles, features last": (same_padding(**LAST), normal(2, 9, 8, 19), normal(3, 2, 19, 70)),
    "tiles in groups": (same_padding(feature_group_count=2), normal(2, 6, 70), normal(34, 3, 3)),
    "gradients by tiles": (gradients, normal(2, 17, 9, 8), normal(18, 17, 3, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_values(gpu, name):
    f, *args = CASES[name]
    expected = jax.tree.leaves(f(*map(jnp.asarray, args)))
    calls = getattr(driver_of(gpu), "calls", {})  # a fake one counts
    calls.clear()
    actual = jax.block_until_ready(jax.tree.leaves(jax.jit(f)(*jax.device_put(args, gpu))))
    assert not {"call", "copy_out", "product"} & {*calls}
    for a, b in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        a, b = np.asarray(a).astype("c16"), np.asarray(b).astype("c16")
        bound = 0.01 if name == "halves" else 1e-6
        np.testing.assert_allclose(a, b, rtol=0, atol=bound * np.abs(b).max())


@pytest.mark.parametrize("features", [2, 20])
def test_padding_times_infinity_is_zero(gpu, features):
    x, w = jax.device_put((jnp.zeros((2, 2, 0)), jnp.full((features, 2, 3), jnp.inf)), gpu)
    y = jax.jit(lambda x, w: lax.conv_general_dilated(x, w, (1,), [(40, 40)]))(x, w)
    assert y.shape == (2, features, 78)
    assert not np.asarray(y).any()


@pytest.mark.parametrize("name", ["gradients", "gradients by tiles"])
def test_long_sums_are_split(fake, monkeypatch, name):
    monkeypatch.setattr(block_convolutions, "LONG_SUM", 20)
    f, *args = CASES.get(name, (gradients, X, W))
    there = jax.device_put(args, jax.devices("gpu")[0])
    actual = jax.block_until_ready(jax.jit(lambda *x: f(*x))(*there))
    assert "a3[k *" in str([k.source for k in jax.inspect(jax.jit(f))(*there).kernels])
    for a, b in zip(actual, f(*map(jnp.asarray, args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * np.abs(b).max())


def test_convolution_loops_run_without_python(fake):
    def f(x, w):
        return lax.scan(
            lambda c, k: (jnp.tanh(same_padding()(c, k)), c.sum()), x, jnp.stack([w, -w, w])
        )

    check_no_python(fake, f, (normal(2, 5, 7) / 9, normal(5, 5, 3) / 9))
