"""Defects found by writing ordinary programs. Each test shows the behavior that was missing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import accnp as jnp


def test_softplus_derivatives_at_zero() -> None:
    derivative = jnp.grad(lambda x: jnp.logaddexp(x, 0.0))
    assert float(derivative(0.0)) == 0.5
    assert float(jnp.grad(derivative)(0.0)) == 0.25
    assert float(jnp.grad(lambda x: jnp.logaddexp(0.0, x))(0.0)) == 0.5
    assert np.asarray(jnp.hessian(lambda x: jnp.nn.softplus(x).sum())(jnp.zeros(2))).tolist() == [
        [0.25, 0.0],
        [0.0, 0.25],
    ]
    infinite = jnp.vmap(derivative)(jnp.array([np.inf, -np.inf]))
    assert np.asarray(infinite).tolist() == [1.0, 0.0]


def test_scalars_convert_as_arrays_do() -> None:
    with jnp.enable_x64(True):
        assert float(jnp.float16(0.1) + jnp.float64(0)) == float(np.float16(0.1))
        assert float(jnp.float32(0.1).astype(float)) == float(np.float32(0.1))
    assert float(jnp.bfloat16(0.1).astype(jnp.float32)) == 0.10009765625
    values, kinds = (np.nan, np.inf, -np.inf, 1e30, -1.0, 300.0, 2.9), ("int8", "uint8", "int32")
    for kind in kinds:
        wide = jnp.array(values).astype(kind)
        assert [int(jnp.array(v).astype(kind)) for v in values] == np.asarray(wide).tolist()
    assert np.asarray(jnp.full(2, np.nan, dtype=int)).tolist() == [0, 0]


def test_complex_literals_keep_the_sign_of_zero() -> None:
    above, below = jnp.sqrt(complex(-1, 0.0)), jnp.sqrt(complex(-1, -0.0))
    assert (complex(above), complex(below)) == (1j, -1j)


def test_triangles_keep_weak_types() -> None:
    assert jnp.tril(jnp.asarray(2.0)[None, None]).weak_type
    assert not jnp.tril(jnp.float32(2.0)[None, None]).weak_type


SMALL_FLOATS = [name for name in vars(ml_dtypes) if name.startswith("float8_e")]


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_eight_bit_floats_of_every_kind_are_operands(name: str) -> None:
    data = jnp.array([0.5, 2.0], getattr(ml_dtypes, name))
    twice = data * 2
    assert np.asarray(twice.astype("float32")).tolist() == [1.0, 4.0]
    assert np.asarray(twice).dtype == data.dtype
    assert np.asarray(data)[::-1].tolist() == [2.0, 0.5]


def test_a_negative_number_of_classes_is_named() -> None:
    with pytest.raises(ValueError, match=r"one_hot: num_classes cannot be negative; got -1"):
        jnp.nn.one_hot(jnp.array([0, 1]), -1)


def test_a_library_operation_with_one_result_in_a_tuple_is_computed_again_and_again():
    # The short way of eager operations took its tuple of one for the result itself.
    for n in range(1, 20):
        x = jnp.asarray(np.eye(3, dtype="float32") * n)
        np.testing.assert_allclose(jnp.linalg.svd(x, compute_uv=False), [n] * 3, rtol=1e-6)


def test_rounding_one_weak_number_keeps_it_weak() -> None:
    assert jnp.round(jnp.asarray(2.567), 1).weak_type
    assert not jnp.round(jnp.asarray(2.567)[None], 1).weak_type


def test_bytes_that_can_be_written_are_numbers() -> None:
    assert np.asarray(jnp.array(bytearray(b"ab"))).tolist() == [97, 98]
    with pytest.raises(TypeError, match="of type <class 'bytes'> is not a valid JAX array type"):
        jnp.array(b"ab")


def test_missing_argument_is_reported() -> None:
    with pytest.raises(TypeError, match=r"jnp.arange: stop is missing; got no arguments; pass one"):
        jnp.arange(None)
    with pytest.raises(TypeError, match=r"only 0 positional arguments; pass it by position$"):
        jnp.grad(lambda x: x)(x=1.0)


def test_scalar_kernels_multiply_complex_numbers() -> None:
    @jnp.kernel
    def f(v, w):
        return 1 / v + abs(w) + v**2 - v.conjugate() * w * v

    z = np.array([1j, 2 + 3j, -1 - 1j], "complex64")
    np.testing.assert_allclose(f(z, z), 1 / z + abs(z) + z**2 - z.conj() * z * z, rtol=1e-6)


def test_tracing_and_raw_keys_can_be_forbidden() -> None:
    f = jnp.jit(lambda x: x + 1)
    with (
        jnp.no_tracing(True),
        pytest.raises(RuntimeError, match="tracing is disabled by no_tracing; got <lambda>"),
    ):
        f(1.0)
    assert float(f(1.0)) == 2
    with jnp.no_tracing(True):
        assert float(f(2.0)) == 3
    raw, typed = jnp.random.PRNGKey(0), jnp.random.key(0)
    for sample in (jnp.random.normal, jnp.random.split, jnp.random.key_data):
        sample(raw)  # what it remembers must not pass by the option
        with jnp.legacy_prng_key("error"), pytest.raises(ValueError, match=r"random\.key\(seed\)"):
            sample(raw)
        with (
            jnp.legacy_prng_key("warn"),
            pytest.warns(UserWarning, match="Legacy uint32 key array passed as key"),
        ):
            sample(raw)
        with jnp.legacy_prng_key("error"):
            sample(typed)


def test_clear_caches_gives_free_memory_back() -> None:
    from accnp.runtime import buffer

    x = jnp.ones(2**22) * 2
    x.block_until_ready()
    del x
    jnp.clear_caches()
    assert not any(blocks for blocks in buffer._pool.sizes() if blocks.size > buffer.SMALL)


def test_derivatives_of_a_known_branch_are_those_of_a_traced_one() -> None:
    """Contributions to a cotangent within the branch are summed first, however the branch was
    selected."""

    def f(i, x):
        y = jnp.lax.switch(i, [jnp.sin, lambda v: v * v + jnp.exp(v) * v - v, jnp.tanh], x)
        return (y * x + jnp.cos(x) * y - x).sum()

    x = np.random.default_rng(0).normal(size=(7, 301)).astype("float32")
    gradient = jnp.grad(f, 1)
    assert np.array_equal(gradient(1, x), jnp.jit(gradient)(1, x))
    a = x[:, :7]
    gradient = jnp.grad(lambda a: (jnp.scipy.linalg.expm(a) ** 2).sum())
    assert np.array_equal(gradient(a), jnp.jit(gradient)(a))
