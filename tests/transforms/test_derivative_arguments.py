"""Arguments, results and errors of the derivative functions match those of JAX.

Each program takes a library and its `numpy`, so that JAX and accnp both run it. The tests compare
structure, values, dtypes, shapes, weak types, and the class and the message of errors.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from api.oracle import jax_result

import accnp
import accnp.numpy as jnp

X = np.array([0.5, -1.5, 2.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
Z = np.array([1 + 2j, -0.5 + 0.25j], np.complex64)
I = np.array([1, 2, 3], np.int32)  # noqa: E741
FLOAT0 = np.zeros((3,), jax.dtypes.float0)
Program = Callable[[Any, Any], Any]


def poly(x: Any, y: Any = 2.0, z: Any = 3.0) -> Any:
    return (x * x * y + z * y).sum() if hasattr(x * y * z, "sum") else x * x * y + z * y


def tree(p: Any, q: Any) -> Any:
    return {"s": p["a"] * q[0], "t": [p["b"].sum() * q[1], (p["a"] * p["b"]).sum()]}


P = {"a": np.float32(1.5), "b": X}
Q = [X, np.float32(-2)]

SAME: dict[str, Program] = {
    # which arguments
    "argnums 0": lambda m, n: m.grad(poly)(2.0, 3.0, 4.0),
    "argnums 1": lambda m, n: m.grad(poly, 1)(2.0, 3.0, 4.0),
    "argnums -1": lambda m, n: m.grad(poly, -1)(2.0, 3.0, 4.0),
    "argnums (0,)": lambda m, n: m.grad(poly, (0,))(2.0, 3.0, 4.0),
    "argnums (2, 0)": lambda m, n: m.grad(poly, (2, 0))(2.0, 3.0, 4.0),
    "argnums (0, -1)": lambda m, n: m.value_and_grad(poly, (0, -1))(2.0, 3.0, 4.0),
    "argnums of numpy": lambda m, n: m.grad(poly, np.int64(1))(2.0, 3.0),
    "argnums list": lambda m, n: m.grad(poly, [0, 1])(2.0, 3.0),
    "defaults": lambda m, n: m.grad(poly)(2.0),
    "keywords": lambda m, n: m.grad(poly)(2.0, z=5.0, y=np.float32(2)),
    "arrays": lambda m, n: m.grad(poly, (0, 1))(n.asarray(X), n.float32(2)),
    "trees": lambda m, n: m.grad(lambda p, q: n.sum(tree(p, q)["s"]) + tree(p, q)["t"][0], (0, 1))(
        P, Q
    ),
    "None in a tree": lambda m, n: m.grad(lambda p: p[0] * p[1]["k"])([2.0, {"k": 3.0, "l": None}]),
    "method": lambda m, n: m.grad(functools.partial(poly, z=1.0))(2.0, 3.0),
    # types of the results
    "weak": lambda m, n: m.value_and_grad(lambda x: x * x)(2.0),
    "strong": lambda m, n: m.value_and_grad(lambda x: x * x)(np.float32(2)),
    "weak times strong": lambda m, n: m.value_and_grad(lambda x: x * np.float32(2))(2.0),
    "strong value, weak argument": lambda m, n: m.grad(lambda x: n.sum(x * n.asarray(X)))(2.0),
    "strong cotangent through jit": lambda m, n: m.vjp(m.jit(lambda x: x * 2), 2.0)[1](
        np.float32(1)
    ),
    "strong cotangent through jit in jit": lambda m, n: m.jit(
        lambda x: m.vjp(m.jit(lambda y: (n.sin(y), y)), x)[1]((n.ones(()), 1.0))
    )(2.0),
    "strong cotangent of a vjp that left jit": lambda m, n: m.jit(
        lambda x: m.vjp(lambda y: y / 3, x)[1]
    )(2.0)(np.float32(1)),
    "unused weak": lambda m, n: m.grad(lambda x, y: y * 2.0, (0, 1))(2.0, np.float32(1)),
    "half": lambda m, n: m.value_and_grad(lambda x: n.sum(n.sin(x)))(n.asarray(X, "float16")),
    "bfloat16": lambda m, n: m.grad(lambda x: n.sum(x * x))(n.asarray(X, "bfloat16")),
    "mixed": lambda m, n: m.grad(lambda x, y: n.sum(x * y), (0, 1))(
        n.asarray(X, "float16"), n.asarray(X)
    ),
    "constant function": lambda m, n: m.value_and_grad(lambda x: 3.0)(n.asarray(X)),
    "identity": lambda m, n: m.value_and_grad(lambda x: x)(2.0),
    "through an integer": lambda m, n: m.grad(lambda x: n.sum(x.astype("int32") * x))(n.asarray(X)),
    # auxiliary values
    "aux": lambda m, n: m.grad(lambda x: (n.sum(x), {"y": x * 2, "k": 3}), has_aux=True)(
        n.asarray(X)
    ),
    "value and aux": lambda m, n: m.value_and_grad(lambda x: (x * x, (x, None)), has_aux=True)(2.0),
    "aux in a list": lambda m, n: m.grad(lambda x: [x * x, x * 2], has_aux=True)(2.0),
    "aux of jacobians": lambda m, n: (
        m.jacfwd(lambda x: (x * x, n.sin(x)), has_aux=True)(n.asarray(X)),
        m.jacrev(lambda x: (x * x, n.sin(x)), has_aux=True)(n.asarray(X)),
        m.hessian(lambda x: (n.sum(x**3), x[0]), has_aux=True)(n.asarray(X)),
    ),
    "aux of jvp": lambda m, n: m.jvp(lambda x: (x * x, x + 1), (2.0,), (1.0,), has_aux=True),
    "aux of linearize": lambda m, n: m.linearize(lambda x: (x * x, x + 1), 2.0, has_aux=True)[::2],
    "aux is differentiable": lambda m, n: m.grad(
        lambda x: m.grad(lambda y: (y * y, y**3), has_aux=True)(x)[1]
    )(2.0),
    # integers
    "allow_int": lambda m, n: m.grad(lambda x, i: n.sum(x * i), (0, 1), allow_int=True)(
        n.asarray(X), n.asarray(I)
    ),
    "allow_int of bool": lambda m, n: m.grad(lambda b: n.where(b, 1.0, 2.0), allow_int=True)(True),
    "jacrev allow_int": lambda m, n: m.jacrev(lambda i: i * n.asarray(X), allow_int=True)(
        n.asarray(I)
    ),
    "jvp with float0": lambda m, n: m.jvp(
        lambda x, i: (x * i, i + 1), (n.asarray(X), n.asarray(I)), (n.asarray(X), FLOAT0)
    ),
    "vjp of integers": lambda m, n: m.vjp(lambda x, i: x * i, n.asarray(X), n.asarray(I))[1](
        n.asarray(X)
    ),
    "vjp, integer result": lambda m, n: m.vjp(lambda x: (x * 2, n.int32(3)), n.asarray(X))[1](
        (n.asarray(X), np.zeros((), jax.dtypes.float0))
    ),
    # complex numbers
    "real part": lambda m, n: m.grad(lambda z: n.sum(n.real(z * z)))(n.asarray(Z)),
    "absolute value": lambda m, n: m.grad(lambda z: n.sum(n.abs(z) ** 2))(n.asarray(Z)),
    "complex constant": lambda m, n: m.grad(lambda x: n.real(n.exp(1j * x)).sum())(n.asarray(X)),
    "holomorphic": lambda m, n: m.grad(lambda z: z**3 + 1j * z, holomorphic=True)(n.complex64(2j)),
    "holomorphic jacobians": lambda m, n: (
        m.jacfwd(lambda z: z * z[0], holomorphic=True)(n.asarray(Z)),
        m.jacrev(lambda z: z * z[0], holomorphic=True)(n.asarray(Z)),
        m.hessian(lambda z: z[0] ** 2 * z[1], holomorphic=True)(n.asarray(Z)),
    ),
    "weak complex": lambda m, n: m.grad(lambda z: z * z, holomorphic=True)(1 + 2j),
    "jvp, real to complex": lambda m, n: m.jvp(lambda x: n.exp(1j * x), (X,), (X,)),
    "vjp, complex to real": lambda m, n: m.vjp(lambda z: n.abs(z), n.asarray(Z))[1](
        n.asarray(X[:2])
    ),
    "vjp, real to complex": lambda m, n: m.vjp(lambda x: x * (1 + 2j), n.asarray(X[:2]))[1](
        n.asarray(Z)
    ),
    "vjp of conj": lambda m, n: m.vjp(n.conj, n.asarray(Z))[1](n.asarray(Z)),
    # vjp, linearize, linear_transpose
    "vjp, used twice": lambda m, n: [
        m.vjp(n.sin, n.asarray(X))[1](n.asarray(c)) for c in (X, X * 2)
    ],
    "vjp, trees": lambda m, n: m.vjp(tree, P, Q)[1]({"s": n.asarray(X), "t": [1.0, 2.0]}),
    "vjp, aux": lambda m, n: m.vjp(lambda x: (x * x, {"k": x}), 2.0, has_aux=True)[::2],
    "vjp, no arguments used": lambda m, n: m.vjp(lambda x, y: y, 2.0, 3.0)[1](1.0),
    "vjp under jit": lambda m, n: m.jit(lambda x, c: m.vjp(n.sin, x)[1](c))(X, X),
    "vjp's function under jit": lambda m, n: m.jit(m.vjp(n.sin, n.asarray(X))[1])(X),
    "vjp's function under vmap": lambda m, n: m.vmap(m.vjp(n.sin, n.asarray(X))[1])(n.eye(3)),
    "vjp's function from jit": lambda m, n: m.jit(lambda x: m.vjp(n.sin, x))(n.asarray(X))[1](
        n.asarray(X)
    ),
    "linearize's function from jit": lambda m, n: m.jit(lambda x: m.linearize(tree, x, Q)[1])(P)(
        P, Q
    ),
    "vjp's function from vmap": lambda m, n: m.vmap(lambda pull, c: pull(c))(
        m.vmap(lambda x: m.vjp(n.sin, x)[1])(n.asarray(X)), n.asarray(X)
    ),
    "vjp's function to jit": lambda m, n: m.jit(lambda pull, c: pull(c))(
        m.vjp(lambda x, i: x * i, n.asarray(X), 3)[1], n.asarray(X)
    ),
    "grad through vjp's function": lambda m, n: m.grad(
        lambda c: n.sum(m.vjp(n.sin, n.asarray(X))[1](c)[0] ** 2)
    )(n.asarray(X)),
    "linearize, several": lambda m, n: m.linearize(lambda x, y: (x * y, n.sin(y)), 2.0, 3.0)[1](
        1.0, 2.0
    ),
    "linearize under vmap": lambda m, n: m.vmap(m.linearize(n.sin, n.asarray(X))[1])(n.eye(3)),
    "linear_transpose": lambda m, n: m.linear_transpose(lambda x, y: n.sum(x * 2) + y, X, 1.0)(3.0),
    "linear_transpose of a structure": lambda m, n: m.linear_transpose(
        lambda p: [p["a"] * 2, n.sum(p["b"])],
        {
            "a": m.ShapeDtypeStruct((3,), np.float32),
            "b": m.ShapeDtypeStruct((2, 3), np.float32),
        },
    )([n.asarray(X), n.float32(1)]),
    "linear_transpose, complex": lambda m, n: m.linear_transpose(lambda z: z * (1 + 2j), Z)(
        n.asarray(Z)
    ),
    # jacobians
    "jacfwd, argnums": lambda m, n: m.jacfwd(lambda x, y: x * y, (0, 1))(n.asarray(X), 2.0),
    "jacrev, argnums": lambda m, n: m.jacrev(lambda x, y: x * y, (1, 0))(n.asarray(X), 2.0),
    "jacfwd, trees": lambda m, n: m.jacfwd(tree, (0, 1))(P, Q),
    "jacrev, trees": lambda m, n: m.jacrev(tree, -1)(P, Q),
    "hessian, trees": lambda m, n: m.hessian(lambda p: n.sum(p["a"] * p["b"] ** 2))(P),
    "hessian, argnums": lambda m, n: m.hessian(lambda x, y: n.sum(x**2 * y), (0, 1))(
        n.asarray(X), n.asarray(X)
    ),
    "jacobian of a matrix": lambda m, n: m.jacrev(lambda x: n.sin(x).T @ x)(n.asarray(M)),
    "jacobian of nothing": lambda m, n: m.jacfwd(lambda x: x * 2)(n.zeros((0,))),
    "jacobian, unused": lambda m, n: m.jacrev(lambda x, y: x * 2, (0, 1))(n.asarray(X), 1.0),
    "jacobian of a scalar": lambda m, n: (m.jacfwd(n.sin)(1.0), m.jacrev(n.sin)(1.0)),
    "jacfwd of an integer result": lambda m, n: m.jacfwd(lambda x: (x, x.astype("int32")))(
        n.asarray(X)
    ),
    "jacfwd of jacrev of jit": lambda m, n: m.jit(m.jacfwd(m.jacrev(m.jit(lambda x: n.sum(x**3)))))(
        X
    ),
    # nesting
    "fourth derivative": lambda m, n: m.grad(m.grad(m.grad(m.grad(lambda x: x**5))))(2.0),
    "mixed partials": lambda m, n: m.grad(m.grad(lambda x, y: x**2 * y**3, 0), 1)(2.0, 3.0),
    "jvp of vjp of jvp": lambda m, n: m.jvp(
        lambda x: m.vjp(lambda y: m.jvp(n.sin, (y,), (x,))[1], x)[1](1.0)[0], (0.7,), (1.0,)
    ),
    "stop_gradient": lambda m, n: m.grad(
        lambda p: n.sum(m.lax.stop_gradient(p)["b"] * p["b"]) + p["a"]
    )(P),
}


def structure(x: Any) -> Any:
    """Return containers as they are, and leaves as the properties that must be equal."""
    if isinstance(x, dict):
        return {k: structure(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(map(structure, x))
    if x is None:
        return x
    if isinstance(x, int | float) and not isinstance(x, np.generic):  # handed through by jax
        return ("int32" if isinstance(x, int) else "float32", (), True)
    weak = getattr(x, "weak_type", False)
    return (x.dtype.name, x.shape, weak)


@pytest.mark.parametrize("name", SAME)
def test_like_jax(name: str) -> None:
    actual = SAME[name](accnp, jnp)
    expected = jax_result(lambda: SAME[name](jax, jax.numpy), SAME[name])
    assert structure(actual) == structure(expected)
    leaves = accnp.tree_util.tree_leaves(actual), jax.tree.leaves(expected)
    for g, w in zip(*leaves, strict=True):
        if getattr(w, "dtype", None) != jax.dtypes.float0:
            np.testing.assert_allclose(
                np.asarray(g, np.complex64), np.asarray(w, np.complex64), rtol=2e-5, atol=2e-6
            )


def pull(m: Any, n: Any) -> Any:
    return m.vjp(n.sin, n.asarray(X))[1]


def push(m: Any, n: Any) -> Any:
    return m.linearize(n.sin, n.asarray(X))[1]


WRONG: dict[str, tuple[Program, str]] = {
    "not callable": (lambda m, n: m.grad(3), "callable"),
    "vector": (lambda m, n: m.grad(n.sin)(n.asarray(X)), "scalar-output"),
    "tuple": (lambda m, n: m.grad(lambda x: (x, x))(1.0), "scalar-output"),
    "no result": (lambda m, n: m.grad(lambda x: None)(1.0), "scalar-output"),
    "integer argument": (lambda m, n: m.grad(n.sin)(3), "np.inexact.,? but got int32"),
    "integer result": (
        lambda m, n: m.grad(lambda x: n.int32(3))(1.0),
        "requires real-valued outputs",
    ),
    "complex result": (lambda m, n: m.grad(lambda x: x * 1j)(1.0), "requires real-valued outputs"),
    "holomorphic of real": (lambda m, n: m.grad(n.sin, holomorphic=True)(1.0), "complex dtype"),
    "holomorphic to real": (lambda m, n: m.grad(n.abs, holomorphic=True)(1j), "complex dtype"),
    "argnums beyond": (lambda m, n: m.grad(n.sin, 1)(1.0), "positional"),
    "argnums before": (lambda m, n: m.grad(n.sin, -2)(1.0), "argnum|Positional"),
    "argnums text": (lambda m, n: m.grad(n.sin, "x")(1.0), "argnums|int"),
    "argnums of text": (lambda m, n: m.grad(n.sin, ("x",))(1.0), "argnums|int"),
    "no array": (lambda m, n: m.grad(lambda s: 1.0)("text"), "text|str"),
    "no array in a tree": (lambda m, n: m.grad(lambda s: 1.0)({"a": object()}), "object"),
    "no array returned": (lambda m, n: m.grad(lambda s: "text")(1.0), "text|str"),
    "no aux": (lambda m, n: m.grad(n.sin, has_aux=True)(1.0), "two-element tuple|aux"),
    "jvp of an array": (lambda m, n: m.jvp(n.sin, n.asarray(X), n.asarray(X)), "tuples or lists"),
    "jvp, other tree": (lambda m, n: m.jvp(n.sin, (1.0,), ((1.0, 2.0),)), "tree structure"),
    "jvp, too many": (lambda m, n: m.jvp(n.sin, (1.0,), (1.0, 2.0)), "tree structure"),
    "jvp, other shape": (
        lambda m, n: m.jvp(n.sin, (n.asarray(X),), (n.ones(4),)),
        "shapes",
    ),
    "jvp, other dtype": (
        lambda m, n: m.jvp(n.sin, (n.asarray(X),), (n.ones(3, "float16"),)),
        "dtype",
    ),
    "jvp, integer tangent": (lambda m, n: m.jvp(lambda i: i * 2, (3,), (1,)), "float0"),
    "jvp, no aux": (lambda m, n: m.jvp(n.sin, (1.0,), (1.0,), has_aux=True), ""),
    "vjp, other tree": (lambda m, n: pull(m, n)((n.asarray(X),)), "tree structure"),
    "vjp, other shape": (lambda m, n: pull(m, n)(n.ones(4)), "VJP function"),
    "vjp, other dtype": (lambda m, n: pull(m, n)(n.ones(3, "float16")), "VJP function"),
    "vjp, two arguments": (lambda m, n: pull(m, n)(1.0, 2.0), "single argument"),
    "vjp, no aux": (lambda m, n: m.vjp(n.sin, 1.0, has_aux=True), "aux"),
    "linearize, other tree": (lambda m, n: push(m, n)((n.asarray(X),)), "expected"),
    "linearize, too many": (lambda m, n: push(m, n)(n.asarray(X), n.asarray(X)), "expected"),
    "linearize, other shape": (lambda m, n: push(m, n)(n.ones(4)), "linear"),
    "linearize, other dtype": (lambda m, n: push(m, n)(n.ones(3, "float16")), "linear"),
    "transpose, other tree": (
        lambda m, n: m.linear_transpose(lambda x: x * 2, X)((n.asarray(X),)),
        "cotangent tree does not match function output",
    ),
    "transpose, other type": (
        lambda m, n: m.linear_transpose(lambda x: x * 2, X)(n.ones(4)),
        "cotangent type does not match function output",
    ),
    "jacfwd of integers": (
        lambda m, n: m.jacfwd(lambda i: i * 2)(3),
        "requires real-valued inputs",
    ),
    "jacfwd of complex": (
        lambda m, n: m.jacfwd(lambda z: z * 2)(1j),
        "requires real-valued inputs",
    ),
    "jacrev of integers": (lambda m, n: m.jacrev(lambda i: i * 2)(3), "inputs"),
    "jacrev to complex": (
        lambda m, n: m.jacrev(lambda x: x * 1j)(1.0),
        "requires real-valued outputs",
    ),
    "jacrev to integers": (
        lambda m, n: m.jacrev(lambda x: n.int32(2))(1.0),
        "requires real-valued outputs",
    ),
    "jacfwd, argnums": (lambda m, n: m.jacfwd(n.sin, 2)(1.0), "argnum|Positional"),
    "hessian of a vector": (lambda m, n: m.hessian(n.sin)(n.asarray(I)), "inputs"),
}


def error_of(program: Program, m: Any) -> Exception | None:
    try:
        m.block_until_ready(program(m, m.numpy))
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", WRONG)
def test_raises_where_jax_raises(name: str) -> None:
    program, text = WRONG[name]
    theirs, ours = error_of(program, jax), error_of(program, accnp)
    assert type(ours).__name__ == type(theirs).__name__, (ours, theirs)
    assert re.search(text, str(ours))


def test_repeated_vjp_calls_keep_residuals() -> None:
    x = accnp.asarray(X)
    y, pull = accnp.vjp(lambda v: (accnp.exp(v) * v).sum(), x)
    first = np.asarray(pull(1.0)[0])
    del x, y
    np.testing.assert_array_equal(np.asarray(pull(1.0)[0]), first)
    np.testing.assert_allclose(first, np.exp(X) * (1 + X), rtol=1e-6)


STRONG = np.float32(2)


@pytest.mark.parametrize(
    ("gradients", "weak"),
    [
        (lambda: accnp.vjp(lambda x: x * x, 1.0)[1](jnp.float32(2)), [False]),
        (lambda: accnp.vjp(lambda x: x * x, 1.0)[1](2.0), [True]),
        (lambda: accnp.vjp(lambda x: x, 1.0)[1](jnp.float32(2)), [False]),
        (lambda: accnp.vjp(lambda x: x * STRONG, 1.0)[1](jnp.float32(2)), [True]),
        (lambda: accnp.vjp(lambda x, y: x * y, 1.0, STRONG)[1](jnp.float32(2)), [True, False]),
        (lambda: accnp.vjp(lambda x, y: (x, y * 3), 1.0, 2.0)[1]((jnp.float32(2), 1.0)),
         [False, True]),
        (lambda: [accnp.linearize(lambda x: x * x, 1.0)[1](jnp.float32(2))], [False]),
        (lambda: [accnp.linearize(lambda x: x * x, 1.0)[1](2.0)], [True]),
        (lambda: [accnp.grad(lambda x: x * x)(1.0)], [True]),
    ],
)  # fmt: skip
def test_strong_cotangents_give_strong_gradients(gradients, weak):
    assert [x.weak_type for x in gradients()] == weak
