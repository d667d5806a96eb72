"""About twenty end-to-end cases that take a few seconds: run them before each commit."""

import numpy as np
import pytest
from kernel_counts import count_made_kernels

import accnp
import accnp.numpy as jnp
from accnp import lax, random

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def equal(ours, expected, **tolerance):
    ours = np.asarray(ours)
    expected = np.asarray(expected)
    assert ours.dtype == expected.dtype
    np.testing.assert_allclose(ours, expected, **({"rtol": 1e-6, "atol": 1e-7} | tolerance))


@pytest.fixture
def x():
    return jnp.asarray(X)


def test_elementwise(x):
    equal(x * x + x * 2.0, X * X + X * np.float32(2))


def test_types_are_32_bit_and_weak(x):
    assert jnp.arange(3).dtype == np.int32
    assert jnp.float32(1).dtype == (x + 1).dtype == np.float32
    assert (jnp.arange(3) + 1.5).dtype == np.float32


def test_shape_and_type_are_known_before_the_value(x):
    y = jnp.exp(x).sum(axis=1, keepdims=True)
    assert (y.shape, y.dtype, y.ndim, y.size) == ((3, 1), np.float32, 2, 3)


def test_reductions(x):
    equal(x.sum(), X.sum())
    equal(x.mean(axis=0), X.mean(axis=0))
    equal(jnp.max(x, axis=1), X.max(axis=1))
    equal(x.std(), X.std())


def test_fused_reduction(x):
    e = np.exp(X - X.max(1, keepdims=True))
    y = jnp.exp(x - x.max(1, keepdims=True))
    equal(y / y.sum(1, keepdims=True), e / e.sum(1, keepdims=True))


def test_views(x):
    equal(x.T[::-1, 1:].reshape(-1), X.T[::-1, 1:].reshape(-1))
    equal(jnp.concatenate([x, x + 1], axis=1), np.concatenate([X, X + 1], axis=1))


def test_indexing(x):
    equal(x[1], X[1])
    equal(x[np.array([2, 0]), ..., None], X[np.array([2, 0]), ..., None])
    equal(x[x > 0], X[X > 0])


def test_update(x):
    expected = X.copy()
    expected[1] = 9
    equal(x.at[1].set(9.0), expected)
    equal(x, X)


def test_matmul(x):
    equal(x @ x.T, X @ X.T, atol=1e-6)


def test_sort(x):
    equal(jnp.sort(-x, axis=1), np.sort(-X, axis=1))


def test_where_and_comparison(x):
    equal(jnp.where(x > 0, x, 0), np.where(X > 0, X, np.float32(0)))


def test_jit_gives_the_bits_of_eager(x):
    def f(x):
        return jnp.tanh(x * 3.0 + 0.1) / (1.0 + jnp.exp(-x)) + x.sum()

    np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(accnp.jit(f)(x)))


def test_grad(x):
    equal(accnp.grad(lambda v: (jnp.sin(v) * v).sum())(x), np.cos(X) * X + np.sin(X), rtol=1e-5)


def test_grad_through_python_control_flow():
    assert float(accnp.grad(lambda v: v * v if v > 1 else -v)(3.0)) == 6.0


def test_vmap_of_grad(x):
    gradients = accnp.vmap(accnp.grad(lambda row: (row**3).sum()))(x)
    equal(gradients, 3 * X**2, rtol=1e-5)


def test_jvp_and_vjp(x):
    value, tangent = accnp.jvp(jnp.sin, (x,), (x,))
    equal(value, np.sin(X))
    equal(tangent, np.cos(X) * X, rtol=1e-5)
    _, pull = accnp.vjp(lambda v: v.sum(axis=0), x)
    (cotangent,) = pull(jnp.arange(4.0))
    equal(cotangent, np.broadcast_to(np.arange(4, dtype=np.float32), (3, 4)))


def test_control_flow():
    assert int(lax.fori_loop(0, 10, lambda i, c: c + i, 0)) == 45
    last, seen = lax.scan(lambda c, v: (c + v, c), 0.0, jnp.arange(4.0))
    equal(last, np.float32(6))
    equal(seen, np.float32([0, 0, 1, 3]))


def test_make_jaxpr():
    text = str(accnp.make_jaxpr(lambda v: v * 2.0)(1.0))
    assert text == "{ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }"


def test_random_numbers_are_reproducible():
    key = random.PRNGKey(7)
    np.testing.assert_array_equal(random.uniform(key, (5,)), random.uniform(key, (5,)))
    bits = np.asarray(random.split(random.PRNGKey(0)))
    np.testing.assert_array_equal(bits, [[1797259609, 2579123966], [928981903, 3453687069]])


def test_traced_value_in_if_is_an_error():
    with pytest.raises(accnp.errors.TracerBoolConversionError, match="argument x"):
        accnp.jit(lambda x: 1 if x > 0 else 2)(1.0)


def test_long_eager_loop_reuses_its_kernels():
    x = jnp.ones(8)
    for _ in range(200):
        x = x * 0.999 + 0.001
    x.block_until_ready()
    before = count_made_kernels()
    for _ in range(2000):
        x = x * 0.999 + 0.001
    equal(x, np.ones(8, np.float32), rtol=1e-3)
    assert count_made_kernels() - before <= 4
