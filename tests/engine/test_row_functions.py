"""Functions of rows and long sums: the tests count kernels and bytes and measure errors."""

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

SHAPE = (512, 1024)
N = 4 * SHAPE[0] * SHAPE[1]
ROW = 4 * SHAPE[0]


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def cosine(x):
    y, norm = x[::-1], jnp.linalg.norm
    return jnp.sum(x * y, -1) / (norm(x, axis=-1) * norm(y, axis=-1))


# Bytes: a cosine reads each row beside another one.
FUNCTIONS = {
    "softmax": (accnp.nn.softmax, 2 * N),
    "log-softmax": (accnp.nn.log_softmax, 2 * N),
    "layer norm": (layer_norm, 2 * N),
    "RMS norm": (lambda x: x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5), 2 * N),
    "variance": (lambda x: x.var(-1), N + ROW),
    "cosine similarity": (cosine, N + ROW),
}


def steps(f):
    return accnp.inspect(f)(accnp.ShapeDtypeStruct(SHAPE, jnp.float32)).plan.steps


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_rows_reads_its_input_once(name):
    f, nbytes = FUNCTIONS[name]
    (step,) = steps(f)
    assert nbytes <= step.nbytes <= nbytes + 16


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "cosine similarity"])
def test_with_its_loss_and_backward_pass_it_is_one_kernel_of_the_rows(name):
    f, _ = FUNCTIONS[name]
    plan = steps(accnp.value_and_grad(lambda x: 0.5 * jnp.sum(f(x) ** 2)))
    large = [s.nbytes for s in plan if s.nbytes >= N]
    assert len(large) == 1
    assert 2 * N <= large[0] <= 2 * N + ROW + 64


def test_a_sum_of_25e6_squares_is_right_to_1e_7():
    x = np.random.default_rng(0).standard_normal(25_000_000, dtype=np.float32)
    exact = np.sum(np.square(x, dtype=np.float64))
    for f in (lambda x: jnp.sum(x * x), lambda x: jnp.sum(x.reshape(5000, 5000) ** 2)):
        assert abs(float(accnp.jit(f)(jnp.asarray(x))) - exact) <= 1e-7 * exact


def test_readers_of_other_ranks_share_a_reduction():
    def f(x):
        y = x.sum(2)
        return y / y.sum(1, keepdims=True), x * y[:, :, None], (y[0] ** 2).sum()

    x = np.random.default_rng(1).standard_normal((6, 50, 70), dtype=np.float32) + 3
    y = x.sum(2)
    expected = y / y.sum(1, keepdims=True), x * y[:, :, None], (y[0] ** 2).sum()
    for a, b in zip(accnp.jit(f)(jnp.asarray(x)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5)


@pytest.mark.parametrize("rows", [3, 4, 30, 600])
def test_column_reduced_values_with_other_readers_are_stored(rows):
    x = np.random.default_rng(1).standard_normal((rows, 70), dtype=np.float32)
    y, s = accnp.jit(lambda x: (y := jnp.exp(x), y.sum(0)))(jnp.asarray(x))
    np.testing.assert_allclose(np.asarray(y), np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(s), np.exp(x).sum(0), rtol=1e-5)
    z, t = accnp.jit(lambda x: (z := x.T * 2 + 1, z.sum(0)))(jnp.asarray(x))
    np.testing.assert_array_equal(np.asarray(z), x.T * 2 + 1)
    np.testing.assert_allclose(np.asarray(t), (x.T * 2 + 1).sum(0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(300, 70), (40, 90, 110), (5, 7, 64, 100)])
def test_long_reductions_over_several_axes(shape):
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    for axes in (None, tuple(range(1, len(shape))), tuple(range(len(shape) - 1))):
        exact = x.astype(np.float64).sum(axes)
        scale = np.abs(x.astype(np.float64)).sum(axes)
        actual = np.asarray(jnp.asarray(x).sum(axes))
        assert np.all(np.abs(actual - exact) <= 1e-7 * scale)
        np.testing.assert_array_equal(np.asarray(jnp.asarray(x).max(axes)), x.max(axes))
        np.testing.assert_allclose(np.asarray(jnp.asarray(x).std(axes)), x.std(axes), rtol=1e-5)
