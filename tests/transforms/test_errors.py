"""Rejected uses of transformations raise errors of the same classes as JAX; also tests float0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp as jnp

INVALID_CALLS: dict[str, Callable[[Any], Any]] = {
    "not a scalar": lambda m: m.grad(lambda x: x)(np.ones(3, np.float32)),
    "a tree": lambda m: m.grad(lambda x: (x, x))(1.0),
    "int input": lambda m: m.grad(lambda x: x * 1.0)(3),
    "int output": lambda m: m.grad(lambda x: m.numpy.int32(x))(3.0),
    "complex output": lambda m: m.grad(lambda x: x * 1j)(3.0),
    "holomorphic, real input": lambda m: m.grad(lambda x: x, holomorphic=True)(3.0),
    "too few arguments": lambda m: m.grad(lambda x: x, argnums=2)(3.0),
    "no function": lambda m: m.grad(3),
    "aux is no pair": lambda m: m.grad(lambda x: x, has_aux=True)(3.0),
    "a string": lambda m: m.grad(lambda x: x)("a"),
    "jacfwd of int": lambda m: m.jacfwd(lambda x: x)(3),
    "jvp dtypes": lambda m: m.jvp(lambda x: x, (1.0,), (1,)),
    "jvp shapes": lambda m: m.jvp(lambda x: x, (1.0,), (np.ones(2, np.float32),)),
    "jvp structures": lambda m: m.jvp(lambda x: x, (1.0,), ((1.0, 2.0),)),
    "jvp no tuple": lambda m: m.jvp(lambda x: x, 1.0, 1.0),
    "vjp shapes": lambda m: m.vjp(lambda x: x, 1.0)[1](np.ones(2, np.float32)),
    "vjp dtypes": lambda m: m.vjp(lambda x: x, 1.0)[1](1),
    "vjp structures": lambda m: m.vjp(lambda x: x, 1.0)[1]((1.0, 2.0)),
    "vjp count": lambda m: m.vjp(lambda x: x, 1.0)[1](1.0, 1.0),
    "while in reverse": lambda m: m.grad(
        lambda x: m.lax.while_loop(lambda c: c < 9, lambda c: c * x, 1.0)
    )(2.0),
    "vmap of a scalar": lambda m: m.vmap(lambda x: x)(1.0),
    "vmap sizes": lambda m: m.vmap(lambda x, y: x)(np.ones(2), np.ones(3)),
    "vmap axis": lambda m: m.vmap(lambda x: x, in_axes=2)(np.ones((2, 3))),
    "vmap in_axes type": lambda m: m.vmap(lambda x: x, in_axes="a"),
    "vmap in_axes length": lambda m: m.vmap(lambda x: x, in_axes=(0, 0))(np.ones(2)),
    "vmap in_axes tree": lambda m: m.vmap(lambda x: x, in_axes=({"a": 0},))(np.ones(2)),
    "vmap no axis": lambda m: m.vmap(lambda x: x, in_axes=None)(np.ones(2)),
    "vmap out None": lambda m: m.vmap(lambda x: x, out_axes=None)(np.ones(2)),
    "vmap out axis": lambda m: m.vmap(lambda x: x, out_axes=3)(np.ones(2)),
    "vmap out tree": lambda m: m.vmap(lambda x: x, out_axes=(0, 0))(np.ones(2)),
    "linear_transpose shape": lambda m: m.linear_transpose(lambda x: x * 2, 1.0)(np.ones(3)),
}


@pytest.mark.parametrize("name", INVALID_CALLS)
def test_raises_where_jax_raises(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        INVALID_CALLS[name](jax)
    builtin = next(c for c in (TypeError, ValueError, IndexError) if issubclass(theirs.type, c))
    with pytest.raises(builtin) as ours:
        INVALID_CALLS[name](jnp)
    assert len(str(ours.value)) > 20


def test_not_linear() -> None:
    with pytest.raises(NotImplementedError, match="not linear"):
        jnp.linear_transpose(lambda x: x * x, 1.0)(1.0)


def test_no_rule_names_the_op() -> None:
    with pytest.raises(NotImplementedError, match="custom_jvp"):
        jnp.grad(lambda x: jnp.nextafter(x, 1.0))(0.5)


def test_float0() -> None:
    x = np.arange(3)
    for m in (jnp, jax):
        gradient = m.grad(lambda i, m=m: m.numpy.sum(i) * 1.0, allow_int=True)(x)
        assert gradient.dtype == jax.dtypes.float0
        assert gradient.shape == (3,)
        assert m.dtypes.float0 == jax.dtypes.float0
    zero = np.zeros(3, jax.dtypes.float0)
    y, t = jnp.jvp(lambda i, v: (i * 2, i * v), (x, 2.0), (zero, 1.0))
    np.testing.assert_array_equal(y[0], 2 * x)
    assert t[0].dtype == jax.dtypes.float0
    np.testing.assert_array_equal(t[1], x)
    _, pull = jnp.vjp(lambda i, v: i * v, x, 2.0)
    di, dv = pull(jnp.ones(3))
    assert di.dtype == jax.dtypes.float0
    assert float(dv) == 3.0
