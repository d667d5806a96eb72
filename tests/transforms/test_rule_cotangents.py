"""Cotangents that rules of `custom_vjp` receive and return, compared with JAX.

A dtype other than the argument's is passed on; another shape is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp

BOTH = (jax, accnp)
Program = Callable[[Any, Any, Any], Any]


def widened(m: Any, dtype: str) -> Any:
    """A conversion to float32 whose cotangents keep their own dtype."""
    f = m.custom_vjp(lambda x: x.astype("float32"))
    f.defvjp(lambda x: (x.astype("float32"), None), lambda _, ct: ((ct * 1.25).astype(dtype),))
    return f


PROGRAMS: dict[str, Program] = {
    "vjp": lambda m, f, x: m.vjp(f, x)[1](m.numpy.ones(2)),
    "grad": lambda m, f, x: m.grad(lambda x: f(x).sum())(x),
    "jit of grad": lambda m, f, x: m.jit(m.grad(lambda x: f(x).sum()))(x),
    "grad of jit": lambda m, f, x: m.grad(lambda x: m.jit(f)(x).sum())(x),
    "sum of two": lambda m, f, x: m.grad(lambda x: (f(x) + f(x)).sum())(x),
    "vmap": lambda m, f, x: m.vmap(m.grad(lambda x: f(x).sum()))(x * m.numpy.ones((3, 1))),
    "checkpoint": lambda m, f, x: m.grad(m.checkpoint(lambda x: f(x).sum()))(x),
    "after a conversion": lambda m, f, x: m.grad(lambda x: f(x.astype("float16")).sum())(
        x.astype("float32")
    ),
    "jacrev": lambda m, f, x: m.jacrev(f)(x),
    "scan over rows": lambda m, f, x: m.grad(
        lambda x: m.lax.scan(lambda c, r: (c + f(r).sum(), None), np.float32(0), x)[0]
    )(x),
}


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_another_dtype_is_passed_on(name: str, dtype: str) -> None:
    gradients = []
    for m in BOTH:
        x = m.numpy.array([1.0, 2.0], "bfloat16")
        (leaf,) = jax.tree.leaves(PROGRAMS[name](m, widened(m, dtype), x))
        gradients.append((leaf.dtype.name, np.asarray(leaf.astype("complex64"))))
    np.testing.assert_array_equal(gradients[1][1], gradients[0][1])
    assert gradients[1][0] == gradients[0][0]


@pytest.mark.parametrize(
    "program",
    [
        lambda m, f, x: m.grad(lambda x: f(x * 2).sum())(x),
        lambda m, f, x: m.grad(lambda x: f(x).sum() + x.sum().astype("float32"))(x),
        lambda m, f, x: m.grad(
            lambda x: m.lax.fori_loop(0, 3, lambda i, c: f(c).astype(c.dtype), x)[0].astype(
                "float32"
            )
        )(x),
    ],
)
def test_other_operations_reject_another_dtype(program: Program) -> None:
    for m in BOTH:
        with pytest.raises(TypeError, match=r"same dtypes|equal types"):
            program(m, widened(m, "float32"), m.numpy.ones(2, "bfloat16"))


def test_branches_with_other_cotangents() -> None:
    for m in BOTH:
        f = widened(m, "float32")

        def run(x: Any, m: Any = m, f: Any = f) -> Any:
            return m.lax.cond(x[0] > 0, f, lambda x: x.astype("float32"), x).sum()

        with pytest.raises(ValueError, match="mismatched return types"):
            m.jit(m.grad(run))(m.numpy.ones(2, "bfloat16"))


@pytest.mark.parametrize("argument", [1.0, [1.0, 2.0], "complex"])
@pytest.mark.parametrize("cotangent", [(3,), (1, 2), "float0"])
def test_another_shape_is_refused(argument: Any, cotangent: Any) -> None:
    for m in BOTH:
        x = m.numpy.ones(2, "complex64") if argument == "complex" else m.numpy.array(argument)
        if cotangent == "float0":
            ct: Any = np.zeros((4,), m.dtypes.float0)
        else:
            ct = m.numpy.ones(cotangent)
        f = m.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda _, g, ct=ct: (ct,))
        with pytest.raises(ValueError, match=r"same type as the args.*at output\[0\]"):
            m.vjp(f, x)[1](x)


def test_a_symbolic_zero_of_another_type() -> None:
    for m in BOTH:
        zero = m.custom_derivatives.SymbolicZero(m.core.ShapedArray((3,), np.dtype("float32")))
        f = m.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda _, g, zero=zero: (zero,))
        with pytest.raises(ValueError, match="produced a SymbolicZero with a shape/dtype"):
            m.vjp(f, 1.0)[1](1.0)


PAIR: dict[str, Callable[[Any, Any], Any]] = {
    "jacrev": lambda m, f: m.jacrev(f)(2.0),
    "jacrev of jit": lambda m, f: m.jacrev(m.jit(f))(2.0),
    "jacrev of a tree": lambda m, f: m.jacrev(m.jit(lambda x: {"a": f(x), "b": x}))(2.0),
    "jacrev of one": lambda m, f: m.jacrev(m.jit(lambda x: f(x)[0]))(2.0),
    "jacrev of vmap": lambda m, f: m.jacrev(m.vmap(m.jit(f)))(np.arange(3, dtype=np.float32)),
    "jacrev of checkpoint": lambda m, f: m.jacrev(m.checkpoint(f))(2.0),
    "grad": lambda m, f: m.grad(lambda x: m.jit(f)(x)[2])(2.0),
    "vmap of grad": lambda m, f: m.vmap(m.grad(lambda x: f(x)[0]))(np.arange(3, dtype=np.float32)),
}


def floating(f: Any, x: Any) -> Any:
    return f(x)[::2]


def tripled(m: Any, log: list[list[bool]]) -> Any:
    zero = m.custom_derivatives.SymbolicZero
    f = m.custom_vjp(lambda x: (2 * x, m.numpy.int32(3), x * x))

    def fwd(x: Any) -> Any:
        return (2 * x.value, m.numpy.int32(3), x.value * x.value), x.value

    def bwd(x: Any, cts: Any) -> Any:
        log.append([type(ct) is zero for ct in cts])
        terms = [(2, cts[0]), (2 * x, cts[2])]
        return (sum(a * ct for a, ct in terms if type(ct) is not zero),)

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


@pytest.mark.parametrize("name", PAIR)
def test_symbolic_zeros_mark_zero_cotangents(name: str) -> None:
    """The flags that `symbolic_zeros` passes to the backward rule; jacrev pulls back all results at
    once."""
    logs: tuple[list[list[bool]], list[list[bool]]] = ([], [])
    values = []
    for m, log in zip(BOTH, logs, strict=True):
        f = tripled(m, log)
        pick = functools.partial(floating, f) if name.startswith("jacrev") else f
        values.append(jax.tree.leaves(PAIR[name](m, pick)))
    assert logs[0] == logs[1]
    for w, g in zip(*values, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)
