"""Corner cases of arguments, compared with JAX and NumPy."""

from __future__ import annotations

import operator
import pickle
import warnings

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp


def test_trapezoid_broadcasts_dx_against_the_whole_of_y() -> None:
    y = jnp.arange(12.0).reshape(3, 4)
    by_column = jnp.array([[1.0, 2.0, 3.0, 4.0]])
    assert jnp.trapezoid(y, dx=jnp.ones((2, 4)), axis=0).tolist() == [8, 10, 12, 14]
    assert jnp.trapezoid(y, dx=by_column, axis=0).tolist() == [8, 20, 36, 56]
    assert jnp.trapezoid(y, dx=jnp.ones((3, 1)), axis=1).tolist() == [4.5, 16.5, 28.5]
    assert jnp.trapezoid(jnp.ones((3, 4, 5)), dx=jnp.ones(5), axis=1).shape == (3, 5)
    assert float(jnp.trapezoid(y[0], dx=jnp.array([1.0, 2.0, 4.0]))) == 0.5 + 3 + 10


def test_grids_with_no_slices_and_with_open_slices() -> None:
    assert jnp.mgrid[()].tolist() == []
    assert jnp.ogrid[()] == []
    assert jnp.ogrid[:].tolist() == []
    assert jnp.mgrid[3:].tolist() == [0, 1, 2]


def test_omitted_directives_keep_defaults() -> None:
    for key in (("0,2", [1, 2], [3, 4]), ("0", [1, 2], [3, 4]), ("-1", [1, 2], [3, 4])):
        assert jnp.c_[key].tolist() == np.c_[key].tolist()
        assert jnp.r_[key].tolist() == np.r_[key].tolist()


def test_tri_takes_a_traced_diagonal() -> None:
    traced_tri = jax.jit(lambda k: jnp.tri(3, 4, k))
    for k in (-1, 0, 2, 5):
        assert traced_tri(k).tolist() == np.tri(3, 4, k).tolist()
    batch = jax.vmap(lambda k: jnp.tri(2, 2, k, dtype=int))(jnp.arange(2))
    assert batch.tolist() == [np.tri(2, 2, k).tolist() for k in range(2)]


def test_unravel_index_takes_a_traced_shape() -> None:
    flat = np.array([-13, -12, -5, -1, 0, 5, 7, 11, 12, 40])
    for shape in ((3, 4), (12,), (2, 2, 3)):
        expected = [part.tolist() for part in jnp.unravel_index(flat, shape)]
        assert [p.tolist() for p in jax.jit(jnp.unravel_index)(flat, shape)] == expected
        traced_array = jax.jit(jnp.unravel_index)(flat, jnp.array(shape))
        assert [p.tolist() for p in traced_array] == expected


def test_take_along_axis_one_hot_gives_zero_outside() -> None:
    x = jnp.arange(1.0, 5.0)

    def take(x: jax.Array) -> jax.Array:
        return jnp.take_along_axis(x, jnp.array([2, -1, 9]), 0, mode="one_hot")

    assert take(x).tolist() == [3, 4, 0]
    assert jax.grad(lambda x: take(x).sum())(x).tolist() == [0, 0, 1, 1]


def test_large_integers_are_converted_as_64_bit_ones() -> None:
    convert = jax.lax.convert_element_type
    assert convert(2**100, jnp.float32) == np.float32(2.0**100)
    assert convert(2**32, "int32") == 0
    assert convert(2**32 + 7, "uint8") == 7
    assert convert(2**63 + 5, "int32") == 5
    assert convert(2**100, bool) == True  # noqa: E712
    with pytest.raises(OverflowError, match="64 bits"):
        convert(2**64, "int32")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert convert(complex("nan"), "int32") == 0
    assert caught[0].category is np.exceptions.ComplexWarning


@pytest.mark.parametrize("assume_unique", [False, True])
def test_sets_of_a_given_size_count_repeats_as_those_without(assume_unique: bool) -> None:
    one, two = np.array([2.0, 2, 0, 7]), np.array([1.0, 1, 3, 2, 2])
    for name in ("setxor1d", "intersect1d", "setdiff1d"):
        whole = getattr(np, name)(one, two, assume_unique=assume_unique)
        padded = getattr(jnp, name)(
            one, two, assume_unique=assume_unique, size=9, fill_value=99
        ).tolist()
        assert padded[: whole.size] == whole.tolist()
        assert set(padded[whole.size :]) <= {99}
    values, first, second = jnp.intersect1d(
        np.array([4, 1, 3]), np.array([3, 9, 4]), assume_unique, True, size=3, fill_value=0
    )
    assert values.tolist() == [3, 4, 0]
    assert (first.tolist(), second.tolist()) == ([2, 0, 3], [0, 2, 3])


def test_spacing_of_float16_is_that_of_numpy() -> None:
    x = np.array([-1e-7, 1e-7, -0.0, -1.0, 1.0, -2.0, 65504.0], np.float16)
    with np.errstate(all="ignore"):
        expected = np.spacing(x)
    assert np.array_equal(np.asarray(jnp.spacing(x)), expected)


def test_derivative_of_expm1_is_exp_without_cancellation() -> None:
    for x in (-20.0, 0.5, 16.0):
        assert jax.grad(jnp.expm1)(jnp.float32(x)) == jnp.exp(jnp.float32(x))


def test_products_accept_algorithms_of_several_bfloat16_parts() -> None:
    x = jnp.full((2, 2), 1.0 / 3)
    for name in ("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9"):
        algorithm = jax.lax.DotAlgorithmPreset[name]
        assert jax.lax.dot(x, x, precision=algorithm).tolist() == jax.lax.dot(x, x).tolist()


def test_pickles_of_64_bits_are_loaded_in_32_without_x64() -> None:
    with jax.enable_x64(True):
        pickled = [pickle.dumps(jnp.array([4, 5], kind)) for kind in ("float64", "int64")]
        assert pickle.loads(pickled[0]).dtype == "float64"
    assert [pickle.loads(p).dtype.name for p in pickled] == ["float32", "int32"]
    assert [pickle.loads(p).tolist() for p in pickled] == [[4, 5], [4, 5]]


def test_from_dlpack_copy_false_raises_if_a_copy_is_needed() -> None:
    memory = np.zeros(256, np.uint8)
    start = -memory.ctypes.data % 64 + 2
    misaligned = memory[start : start + 16].view(np.float32)
    for x in (misaligned, np.zeros(6, np.float32)[::2], np.zeros(3)):
        with pytest.raises(ValueError, match="requires a copy"):
            jnp.from_dlpack(x, copy=False)
        assert jnp.from_dlpack(x).tolist() == x.tolist()


def test_squares_of_complex_numbers_with_equal_parts_are_imaginary() -> None:
    z = jnp.array([3e38 + 3e38j, -3e38 + 3e38j, 1 + 1j, complex(np.inf, np.inf)])
    for square in (jnp.square, jax.jit(jnp.square)):
        squares = np.asarray(square(z))
        assert np.array_equal(np.real(squares), [0, 0, 0, np.nan], equal_nan=True)
        assert np.array_equal(np.imag(squares), [np.inf, -np.inf, 2, np.inf])


def test_refusals() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        operator.contains(jnp.ones((2, 2)), 1)
    with pytest.raises(ValueError, match="scalar"):
        operator.contains(jnp.arange(2), jnp.arange(2))
    assert 1 in jnp.arange(2)
    with pytest.raises(ValueError, match="None"):
        jax.dtypes.itemsize_bits(None)
    long = jax.ShapeDtypeStruct((2**31 + 1,), "bfloat16")
    with pytest.raises(ValueError, match="int32 indices"):
        jax.eval_shape(lambda x: jax.lax.top_k(x, 5), long)
