"""Arrays of float0, the dtype of tangents of integers: NumPy arrays that arithmetic refuses, as in
jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

ZEROS = np.zeros(2, jax.dtypes.float0)
INTEGERS = np.arange(2, dtype=np.int32)
Make = Callable[[Any], Any]


def of_integers(m: Any) -> Any:
    """A function whose second argument has tangents of float0."""
    return m.grad(lambda x, i: (x * i).sum(), argnums=(0, 1), allow_int=True)


def test_the_dtype_is_jax_s() -> None:
    assert accnp.dtypes.float0 == jax.dtypes.float0


MADE: dict[str, Make] = {
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
    "grad": lambda m: of_integers(m)(m.numpy.ones(2), INTEGERS)[1],
    "jit of grad": lambda m: m.jit(of_integers(m))(m.numpy.ones(2), INTEGERS)[1],
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
    "vmap of grad": lambda m: m.vmap(of_integers(m))(m.numpy.ones(2), INTEGERS)[1],
    "jit of vmap": lambda m: m.jit(m.vmap(of_integers(m)))(m.numpy.ones(2), INTEGERS)[1],
    "identity": lambda m: m.jit(lambda x: x)(ZEROS),
    "constant": lambda m: m.jit(lambda: ZEROS)(),
    "jit in jit": lambda m: m.jit(lambda x, i: m.jit(of_integers(m))(x, i)[1])(
        m.numpy.ones(2), INTEGERS
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_numpy_arrays(name: str) -> None:
    found = [MADE[name](m) for m in (jax, accnp)]
    for x in found:
        assert isinstance(x, np.ndarray)
        assert x.dtype == jax.dtypes.float0
        assert np.all(x == np.zeros(x.shape, jax.dtypes.float0))
    assert found[0].shape == found[1].shape


def test_many_calls_and_trees() -> None:
    """Calls of a jitted function that machine code answers give NumPy arrays too."""
    f = accnp.jit(lambda x, i: {"a": of_integers(accnp)(x, i), "b": (x + 1, None)})
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
    "in jit": lambda m, x: m.jit(lambda x: x + 1)(x),
    "in vmap": lambda m, x: m.vmap(lambda x: x + 1)(x),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_is_refused(name: str) -> None:
    for m in (jax, accnp):
        for x in (ZEROS, m.jit(of_integers(m))(m.numpy.ones(2), INTEGERS)[1]):
            with pytest.raises(TypeError, match="float0s do not support any operations by design"):
                OPERATIONS[name](m, x)


def test_conversions_give_zeros() -> None:
    for m in (jax, accnp):
        for x in (m.lax.convert_element_type(ZEROS, "float32"), m.numpy.astype(ZEROS, "int32")):
            np.testing.assert_array_equal(x, [0, 0])
