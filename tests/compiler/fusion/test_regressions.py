"""Programs that the compiler once got wrong, each reduced to a few lines; jitted, against NumPy."""

import numpy as np
import pytest

import accnp as jnp
from accnp import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
S = np.arange(16, dtype=np.float32).reshape(4, 4)
V = np.arange(12, dtype=np.float32)
C = (np.arange(6) + 1j).astype(np.complex64)


def same(f, ref, *arrays):
    expected = ref(*arrays)
    for run in (f, jnp.jit(f)):
        actual = run(*map(jnp.asarray, arrays))
        pairs = (
            zip(actual, expected, strict=True)
            if isinstance(expected, tuple)
            else [(actual, expected)]
        )
        for a, b in pairs:
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)


def test_one_element_of_an_array_as_a_scalar():
    same(lambda x: x * x[7:8].reshape(()), lambda x: x * x[7], V)


def test_one_element_of_an_expression_as_a_scalar():
    same(lambda x: jnp.sqrt(x) * (x + 1)[7:8].reshape(()), lambda x: np.sqrt(x) * (x + 1)[7], V)


def test_indices_as_scalars():
    same(lambda x: x + jnp.arange(12)[5:6].reshape(()), lambda x: x + 5, V)


def test_padding_by_an_element_of_the_operand():
    def f(x):
        y = x * 2
        return lax.pad(y, y[3:4].reshape(()), [(1, 1, 0)])

    same(f, lambda x: np.pad(x * 2, 1, constant_values=x[3] * 2), V)


def test_indices_under_a_reshape_that_no_strides_express():
    same(
        lambda x: jnp.broadcast_to(jnp.arange(3)[:, None], (3, 4)).reshape(2, 6) + x.reshape(2, 6),
        lambda x: np.repeat(np.arange(3), 4).reshape(2, 6) + x.reshape(2, 6),
        X,
    )


def test_an_output_that_is_also_part_of_a_concatenation():
    def f(x):
        y = jnp.exp(x)
        return jnp.concatenate([y, x]), y

    same(f, lambda x: (np.concatenate([np.exp(x), x]), np.exp(x)), X / 4)


def test_a_value_used_in_place_and_transposed():
    def f(x):
        y = jnp.sin(x)
        return y * 2 + y.T, y

    same(f, lambda x: (np.sin(x) * 2 + np.sin(x).T, np.sin(x)), S)


def test_view_stored_for_one_consumer_and_fused_into_another():
    def f(x):
        y = x[:, ::2]
        return abs(y), y.reshape(6), y.reshape(6) - y.reshape(6).max()

    def ref(x):
        y = x[:, ::2]
        return abs(y), y.reshape(6), y.reshape(6) - y.max()

    same(f, ref, X)


def test_reduction_over_no_axes_or_single_elements():
    def f(x):
        y = x.sum(axis=())
        return y * 2 - y.reshape(3, 1, 4).sum(1)

    same(f, lambda x: x, X)


def test_a_regrouped_value_spread_over_rows():
    def f(v):
        return jnp.broadcast_to(jnp.sin(v).reshape(2, 6)[:, :, None], (2, 6, 5)) * 1.0

    same(f, lambda v: np.repeat(np.sin(v).reshape(2, 6, 1), 5, 2), V)


def test_many_complex_scalars():
    def f(x):
        s = x.sum()
        for k in range(12):
            s = s * 0.5 + complex(k, 1)
        return x * s

    def ref(x):
        s = x.sum()
        for k in range(12):
            s = np.complex64(s * np.float32(0.5) + np.complex64(complex(k, 1)))
        return x * s

    same(f, ref, C)


def test_small_integers_in_many_axes():
    def f(x):
        return (x[:, ::-1, ::2, ::-1] + 1).astype(np.int8) * x[:, :, ::2, :].astype(np.int8)

    x = np.arange(2 * 3 * 4 * 5, dtype=np.int8).reshape(2, 3, 4, 5)
    same(f, lambda x: (x[:, ::-1, ::2, ::-1] + 1).astype(np.int8) * x[:, :, ::2, :], x)


def test_empty_reduction_over_nonadjacent_axes():
    x = np.zeros((2, 0, 9), np.float32)
    same(lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2)), x)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_bits_of_negative_integers(dtype):
    x = np.array([-1, -2, 0, 5], dtype)
    bits = x.view(f"u{x.itemsize}")
    np.testing.assert_array_equal(
        np.asarray(lax.population_count(jnp.asarray(x))), np.bitwise_count(bits)
    )


def test_the_order_of_axes_of_a_broadcast():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)

    def places(x):
        return lax.broadcast_in_dim(x, (2, 4, 3), (2, 0))

    np.testing.assert_array_equal(places(x), np.broadcast_to(x.T[:, None], (2, 4, 3)))
    np.testing.assert_array_equal(jnp.grad(lambda x: (places(x) ** 2).sum())(x), 8 * x)
    with pytest.raises(TypeError, match="increasing"):  # two axes for one place
        lax.broadcast_in_dim(x, (3, 3), (0, 0))


def test_two_consecutive_views_without_strides():
    def f(x):
        y = x.transpose(0, 2, 1, 3).reshape(3, 6, 10)
        return jnp.broadcast_to(y.transpose(1, 0, 2).reshape(6, 30), (2, 6, 30))

    def ref(x):
        y = x.transpose(0, 2, 1, 3).reshape(3, 6, 10)
        return np.broadcast_to(y.transpose(1, 0, 2).reshape(6, 30), (2, 6, 30))

    same(f, ref, np.arange(180, dtype=np.float32).reshape(3, 2, 6, 5))


def test_a_value_stored_by_the_kernel_of_its_column_sums():
    x = np.arange(40 * 30, dtype=np.float32).reshape(40, 30)

    def f(m, x):
        y = x[::2] * x[1::2]
        return y, y.sum(0)

    for actual, expected in zip(jnp.jit(lambda x: f(jnp, x))(x), f(np, x), strict=True):
        np.testing.assert_allclose(actual, expected)


def test_joined_parts_of_joined_parts_under_another_shape():
    def f(n):
        def g(x):
            y = n.stack([x + 1, x * 2], -1)
            y = n.stack([y[:, i].reshape(3, 4) for i in range(2)], -1)
            return n.stack([y[..., i].reshape(4, 3) for i in range(2)], -1)

        return g

    same(f(jnp), f(np), V)


def test_zeros_in_batches_scattered_into_after_a_loop_has_read_them():
    def f(x):
        z = jnp.zeros((10, 4))
        last, _ = lax.scan(lambda c, row: (c + row, None), x, z)
        return jnp.broadcast_to(z, (3, 10, 4)).at[:, 1].set(last)

    x = jnp.arange(4.0)
    expected = np.zeros((3, 10, 4), np.float32)
    expected[:, 1] = np.arange(4.0)
    for g in (f, jnp.jit(f)):
        np.testing.assert_array_equal(g(x), expected)


def test_a_stack_along_the_last_axis_has_no_loop_over_its_one_element():
    """Each cell's kernel goes over the rows alone: 1e6 rows 8.4 -> 1.1 ms."""
    x = jnp.asarray(np.arange(6000, dtype=np.float32).reshape(60, 100))

    def f(x):
        return jnp.stack([x, x + 1, x * 2], -1)

    (kernel,) = jnp.inspect(jnp.jit(f))(x).kernels
    assert kernel.source.count("    for ") == 4  # of rows, for each operand, and of tasks
    v = np.asarray(x)
    np.testing.assert_array_equal(jnp.jit(f)(x), np.stack([v, v + 1, v * 2], -1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32"])
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.T, lambda x: x[::2, 1:]])
@pytest.mark.parametrize("shape", [(3, 700), (700, 3), (1030, 70), (40, 2100)])
def test_sums_in_one_pass_have_the_bits_of_sums_alone(shape, layout, dtype):
    x = np.linspace(-3, 5, shape[0] * shape[1]).reshape(shape).astype(dtype)
    parts = [
        lambda x: layout(x).mean(0),
        lambda x: (layout(x) * layout(x)).sum(0) / 3,
        lambda x: layout(x).std(0) if dtype != "int32" else layout(x).sum(0),
    ]
    actual = jnp.jit(lambda x: [f(x) for f in parts])(x)
    for f, y in zip(parts, actual, strict=True):
        assert np.asarray(y).tobytes() == np.asarray(jnp.jit(f)(x)).tobytes()
