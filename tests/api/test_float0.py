"""Arrays of float0, the tangent dtype of integers. They are NumPy arrays without arithmetic, as in
JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

ZEROS = np.zeros(2, jax.dtypes.float0)
INTEGERS = np.arange(2, dtype=np.int32)
Build = Callable[[Any], Any]


def gradient_with_integers(m: Any) -> Any:
    """A function whose second argument has float0 tangents."""
    return m.grad(lambda x, i: (x * i).sum(), argnums=(0, 1), allow_int=True)


def test_float0_dtype_matches_jax() -> None:
    assert accnp.dtypes.float0 == jax.dtypes.float0


CONSTRUCTORS: dict[str, Build] = {
    "zeros ()": lambda m: m.numpy.zeros((), m.dtypes.float0),
    "zeros (2, 3)": lambda m: m.numpy.zeros((2, 3), m.dtypes.float0),
    "zeros (0,)": lambda m: m.numpy.zeros((0,), m.dtypes.float0),
    "ones": lambda m: m.numpy.ones((), m.dtypes.float0),
    "empty": lambda m: m.numpy.empty(3, m.dtypes.float0),
    "full": lambda m: m.numpy.full((), False, m.dtypes.float0),
    "zeros_like": lambda m: m.numpy.zeros_like(m.numpy.ones(2), dtype=m.dtypes.float0),
    "zeros_like of float0": lambda m: m.numpy.zeros_like(ZEROS),
    "asarray": lambda m: m.numpy.asarray(ZEROS),
    "array": lambda m: m.numpy.array(ZEROS[0]),
    "astype": lambda m: m.numpy.ones(2).astype(m.dtypes.float0),
    "lax.convert_element_type": lambda m: m.lax.convert_element_type(
        m.numpy.ones(2), m.dtypes.float0
    ),
    "lax.full": lambda m: m.lax.full((2,), 0, m.dtypes.float0),
    "grad": lambda m: gradient_with_integers(m)(m.numpy.ones(2), INTEGERS)[1],
    "jit of grad": lambda m: m.jit(gradient_with_integers(m))(m.numpy.ones(2), INTEGERS)[1],
    "jit of grad by a number": lambda m: m.jit(
        m.grad(lambda x, i: x[i], argnums=(0, 1), allow_int=True)
    )(np.ones(2), 1)[1],
    "jit of vjp": lambda m: m.jit(
        lambda i: m.vjp(lambda i: i * 2.0, i)[1](m.numpy.ones(2)),
    )(INTEGERS)[0],
    "jit of jvp": lambda m: m.jit(lambda x: m.jvp(lambda x: x > 0, (x,), (x,))[1])(m.numpy.ones(2)),
    "jit of linearize": lambda m: m.jit(lambda x: m.linearize(lambda x: x > 0, x)[1](x))(
        m.numpy.ones(2)
    ),
    "vmap of grad": lambda m: m.vmap(gradient_with_integers(m))(m.numpy.ones(2), INTEGERS)[1],
    "jit of vmap": lambda m: m.jit(m.vmap(gradient_with_integers(m)))(m.numpy.ones(2), INTEGERS)[1],
    "identity": lambda m: m.jit(lambda x: x)(ZEROS),
    "constant": lambda m: m.jit(lambda: ZEROS)(),
    "jit in jit": lambda m: m.jit(lambda x, i: m.jit(gradient_with_integers(m))(x, i)[1])(
        m.numpy.ones(2), INTEGERS
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_numpy_arrays(name: str) -> None:
    arrays = [CONSTRUCTORS[name](m) for m in (jax, accnp)]
    for x in arrays:
        assert isinstance(x, np.ndarray)
        assert x.dtype == jax.dtypes.float0
        assert np.all(x == np.zeros(x.shape, jax.dtypes.float0))
    assert arrays[0].shape == arrays[1].shape


def test_many_calls_and_trees() -> None:
    """Cached calls of jitted functions, which run in machine code, return NumPy arrays too."""
    f = accnp.jit(lambda x, i: {"a": gradient_with_integers(accnp)(x, i), "b": (x + 1, None)})
    x = accnp.numpy.ones(2)
    for _ in range(5):
        out = f(x, INTEGERS)
        assert type(out["a"][1]) is np.ndarray
        np.testing.assert_array_equal(out["a"][0], INTEGERS)
        np.testing.assert_array_equal(out["b"][0], [2, 2])


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda m, x: m.numpy.add(x, x),
    "add a number": lambda m, x: m.numpy.add(x, 1),
    "add to an array": lambda m, x: m.numpy.ones(2) + x,
    "add an array": lambda m, x: x + m.numpy.ones(2),
    "multiply": lambda m, x: m.numpy.multiply(2.0, x),
    "equal": lambda m, x: m.numpy.equal(x, x),
    "sin": lambda m, x: m.numpy.sin(x),
    "exp": lambda m, x: m.numpy.exp(x),
    "abs": lambda m, x: m.numpy.abs(x),
    "allclose": lambda m, x: m.numpy.allclose(x, x),
    "lax.add": lambda m, x: m.lax.add(x, x),
    "lax.neg": lambda m, x: m.lax.neg(x),
    "isnan": lambda m, x: m.numpy.isnan(x),
    "signbit": lambda m, x: m.numpy.signbit(x),
    "positive": lambda m, x: m.numpy.positive(x),
    "in jit": lambda m, x: m.jit(lambda x: x + 1)(x),
    "in vmap": lambda m, x: m.vmap(lambda x: x + 1)(x),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_is_refused(name: str) -> None:
    for m in (jax, accnp):
        for x in (ZEROS, m.jit(gradient_with_integers(m))(m.numpy.ones(2), INTEGERS)[1]):
            with pytest.raises(TypeError, match="float0s do not support any operations by design"):
                OPERATIONS[name](m, x)


def test_conversions_give_zeros() -> None:
    for m in (jax, accnp):
        for x in (m.lax.convert_element_type(ZEROS, "float32"), m.numpy.astype(ZEROS, "int32")):
            np.testing.assert_array_equal(x, [0, 0])


@pytest.mark.parametrize("name", ["isfinite", "isinf", "isposinf", "isneginf"])
def test_zeros_are_finite(name: str) -> None:
    for zeros in (ZEROS, np.zeros((), ZEROS.dtype), np.zeros((0, 2), ZEROS.dtype)):
        actual, expected = (getattr(m.numpy, name)(zeros) for m in (accnp, jax))
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert actual.tolist() == expected.tolist()


STRUCTURAL_OPERATIONS: dict[str, Build] = {
    "device_put": lambda m: m.device_put({"a": ZEROS})["a"],
    "concatenate": lambda m: m.numpy.concatenate([ZEROS, ZEROS]),
    "stack": lambda m: m.numpy.stack([ZEROS, ZEROS], 1),
    "column_stack": lambda m: m.numpy.column_stack([ZEROS, ZEROS]),
    "append": lambda m: m.numpy.append(ZEROS, ZEROS),
    "where": lambda m: m.numpy.where(True, ZEROS, ZEROS),
    "select": lambda m: m.numpy.select([m.numpy.array(True)], [ZEROS], ZEROS),
    "lax.select": lambda m: m.lax.select(m.numpy.ones(2, bool), ZEROS, ZEROS),
    "lax.concatenate": lambda m: m.lax.concatenate([ZEROS, ZEROS], 0),
    "lax.broadcast_in_dim": lambda m: m.lax.broadcast_in_dim(ZEROS, (3, 2), (1,)),
    "ravel": lambda m: m.numpy.ravel(ZEROS),
    "transpose": lambda m: m.numpy.transpose(ZEROS[None]),
    "real": lambda m: m.numpy.real(ZEROS),
    "imag": lambda m: m.numpy.imag(ZEROS),
    "conj": lambda m: m.numpy.conj(ZEROS),
    "nan_to_num": lambda m: m.numpy.nan_to_num(ZEROS),
    "expand_dims": lambda m: m.numpy.expand_dims(ZEROS, 0),
    "broadcast_to": lambda m: m.numpy.broadcast_to(ZEROS, (3, 2)),
    "flip": lambda m: m.numpy.flip(ZEROS),
    "tile": lambda m: m.numpy.tile(ZEROS, 2),
    "pad": lambda m: m.numpy.pad(ZEROS, 1),
    "split": lambda m: m.numpy.split(ZEROS, 2)[1],
    "broadcast_arrays": lambda m: m.numpy.broadcast_arrays(ZEROS, ZEROS)[0],
    "meshgrid": lambda m: m.numpy.meshgrid(ZEROS, ZEROS)[0],
    "compress": lambda m: m.numpy.compress(np.array([True, False]), ZEROS),
    "extract": lambda m: m.numpy.extract(np.array([True, False]), ZEROS),
    "choose": lambda m: m.numpy.choose(np.array([0, 1]), [ZEROS, ZEROS]),
    "put_along_axis": lambda m: m.numpy.put_along_axis(
        ZEROS, np.array([0]), ZEROS[:1], 0, inplace=False
    ),
    "lax.collapse": lambda m: m.lax.collapse(ZEROS[None], 0),
    "lax.dynamic_slice": lambda m: m.lax.dynamic_slice(ZEROS, (1,), (1,)),
    "lax.dynamic_update_slice": lambda m: m.lax.dynamic_update_slice(ZEROS, ZEROS[:1], (1,)),
    "lax.index_in_dim": lambda m: m.lax.index_in_dim(ZEROS, 1),
    "lax.slice_in_dim": lambda m: m.lax.slice_in_dim(ZEROS, 0, 1),
    "cond": lambda m: m.lax.cond(True, lambda x: x, lambda x: x, ZEROS),
    "fori_loop": lambda m: m.lax.fori_loop(0, 3, lambda i, x: x, ZEROS),
    "checkpoint": lambda m: m.checkpoint(lambda x: x)(ZEROS),
}


@pytest.mark.parametrize("name", STRUCTURAL_OPERATIONS)
def test_functions_that_move_elements(name: str) -> None:
    actual, expected = STRUCTURAL_OPERATIONS[name](accnp), STRUCTURAL_OPERATIONS[name](jax)
    assert isinstance(actual, np.ndarray)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)


REFUSED: dict[str, tuple[type[Exception], Build]] = {
    "concatenate": (ValueError, lambda m: m.numpy.concatenate([ZEROS, m.numpy.ones(2)])),
    "stack": (ValueError, lambda m: m.numpy.stack([m.numpy.ones(2), ZEROS])),
    "where": (ValueError, lambda m: m.numpy.where(True, ZEROS, m.numpy.ones(2))),
    "where by it": (TypeError, lambda m: m.numpy.where(ZEROS, 1.0, m.numpy.ones(2))),
    "matmul": (ValueError, lambda m: m.numpy.matmul(ZEROS, m.numpy.ones(2))),
    "divide": (TypeError, lambda m: m.numpy.divide(ZEROS, m.numpy.ones(2))),
    "x == y": (TypeError, lambda m: m.numpy.ones(2) == ZEROS),
    "sort": (TypeError, lambda m: m.numpy.sort(ZEROS)),
    "cumsum": (TypeError, lambda m: m.numpy.cumsum(ZEROS)),
    "argmax": (ValueError, lambda m: m.numpy.argmax(ZEROS)),
    "grad": (TypeError, lambda m: m.grad(lambda x: 1.0)(ZEROS)),
    "at": (ValueError, lambda m: m.numpy.ones(2).at[0].set(ZEROS[0])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_classes_of_refusals(name: str) -> None:
    kind, call = REFUSED[name]
    for m in (jax, accnp):
        with pytest.raises(kind):
            call(m)


def test_comparison_on_the_host() -> None:
    for m in (jax, accnp):
        x = gradient_with_integers(m)(m.numpy.ones(2), INTEGERS)[1]
        assert (x == x).all()
