"""Functions with custom derivative rules under every transformation."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest

import accnp as jnp


@jnp.custom_jvp
def square(x: Any) -> Any:
    return x * x


@square.defjvp
def square_jvp(primals: Any, tangents: Any) -> Any:
    return square(*primals), 10.0 * primals[0] * tangents[0]


@jnp.custom_vjp
def product(x: Any, y: Any) -> Any:
    return x * y


product.defvjp(lambda x, y: (x * y, (x, y)), lambda res, ct: (ct * res[1] * 10, ct * res[0] * 100))


def test_custom_jvp() -> None:
    x = jnp.array([1.0, 2.0])
    assert float(square(3.0)) == 9.0
    assert float(jnp.grad(square)(3.0)) == 30.0
    assert float(jnp.grad(jnp.grad(square))(3.0)) == 10.0
    assert float(jnp.jvp(square, (3.0,), (2.0,))[1]) == 60.0
    np.testing.assert_allclose(jnp.vmap(jnp.grad(square))(x), [10, 20])
    np.testing.assert_allclose(jnp.grad(lambda x: jnp.vmap(square)(x).sum())(x), [10, 20])
    np.testing.assert_allclose(jnp.jit(jnp.grad(lambda x: square(x).sum()))(x), [10, 20])
    np.testing.assert_allclose(jnp.grad(jnp.jit(lambda x: square(x).sum()))(x), [10, 20])
    np.testing.assert_allclose(jnp.jacfwd(square)(x), np.diag([10, 20]))
    scanned = jnp.grad(lambda x: jnp.lax.scan(lambda c, v: (c + square(v), v), 0.0, x)[0])(x)
    np.testing.assert_allclose(scanned, [10, 20])


def test_custom_jvp_hides_what_has_no_derivative() -> None:
    @jnp.custom_jvp
    def measured(x: Any) -> Any:
        return jnp.asarray(np.asarray(x) * 2)  # leaves the graph: no derivative of its own

    measured.defjvp(lambda p, t: (p[0] * 2, t[0] * 2))
    assert float(jnp.grad(measured)(3.0)) == 2.0


def test_defjvps() -> None:
    @jnp.custom_jvp
    def g(x: Any, y: Any) -> Any:
        return x * y

    g.defjvps(lambda t, ans, x, y: t * 2, None)
    assert [float(v) for v in jnp.grad(g, (0, 1))(3.0, 4.0)] == [2.0, 0.0]


def test_nondiff_argnums() -> None:
    @functools.partial(jnp.custom_jvp, nondiff_argnums=(0,))
    def apply(fn: Any, x: Any) -> Any:
        return fn(x)

    @apply.defjvp
    def apply_jvp(fn: Any, primals: Any, tangents: Any) -> Any:
        return fn(primals[0]), tangents[0] * 7

    assert float(jnp.grad(lambda x: apply(jnp.sin, x))(1.0)) == 7.0

    @functools.partial(jnp.custom_vjp, nondiff_argnums=(1,))
    def clipped(x: Any, limit: float) -> Any:
        return x

    clipped.defvjp(
        lambda x, limit: (x, None), lambda limit, res, ct: (jnp.clip(ct, -limit, limit),)
    )
    assert float(jnp.grad(lambda x: clipped(x, 0.5) * 3)(1.0)) == 0.5


def test_custom_vjp() -> None:
    x = jnp.array([1.0, 2.0, 3.0])
    assert [float(v) for v in jnp.grad(product, (0, 1))(3.0, 2.0)] == [20.0, 300.0]
    assert float(jnp.grad(jnp.grad(product, 1), 0)(3.0, 2.0)) == 100.0
    dx, dy = jnp.vmap(jnp.grad(product, (0, 1)), (0, None))(x, 2.0)
    np.testing.assert_allclose(dx, [20, 20, 20])
    np.testing.assert_allclose(dy, [100, 200, 300])
    total = jnp.grad(lambda x, y: jnp.vmap(product, (0, None))(x, y).sum(), (0, 1))(x, 2.0)
    np.testing.assert_allclose(total[0], [20, 20, 20])
    assert float(total[1]) == 600.0
    jitted = jnp.jit(jnp.grad(lambda x: product(x, 2.0 * jnp.ones(3)).sum()))(x)
    np.testing.assert_allclose(jitted, [20, 20, 20])
    scanned = jnp.grad(lambda x: jnp.lax.scan(lambda c, v: (c + product(v, 2.0), v), 0.0, x)[0])(x)
    np.testing.assert_allclose(scanned, [20, 20, 20])
    np.testing.assert_allclose(
        jnp.jacrev(lambda x: product(x, 2.0 * jnp.ones(3)))(x), 20 * np.eye(3)
    )


def test_custom_vjp_refuses_forward_mode() -> None:
    with pytest.raises(TypeError, match="forward-mode"):
        jnp.jvp(product, (1.0, 2.0), (1.0, 1.0))


def test_custom_vjp_trees_and_branches() -> None:
    @jnp.custom_vjp
    def g(p: Any, flag: Any) -> Any:
        if p["a"] > 0:  # a concrete value, in eager code
            return {"out": p["a"] * p["b"]}
        return {"out": p["b"]}

    def fwd(p: Any, flag: Any) -> Any:
        return g(p, flag), (p, "note")

    def bwd(res: Any, ct: Any) -> Any:
        p, note = res
        assert note == "note"
        return {"a": ct["out"] * p["b"], "b": None}, None

    g.defvjp(fwd, bwd)
    gradient = jnp.grad(lambda p: g(p, 1)["out"])({"a": 2.0, "b": 5.0})
    assert float(gradient["a"]) == 5.0
    assert float(gradient["b"]) == 0.0


def test_custom_gradient() -> None:
    @jnp.custom_gradient
    def g(x: Any) -> Any:
        return x * x, lambda ct: ct * 3.0 * x

    assert float(g(2.0)) == 4.0
    assert float(jnp.grad(g)(2.0)) == 6.0


def test_missing_and_wrong_rules() -> None:
    bare = jnp.custom_jvp(lambda x: x)
    with pytest.raises(AttributeError, match="defjvp"):
        bare(1.0)
    bare.defjvp(lambda p, t: p[0])
    with pytest.raises(TypeError, match="pair"):
        jnp.grad(bare)(1.0)
    wrong = jnp.custom_vjp(lambda x: x)
    wrong.defvjp(lambda x: (x, None), lambda res, ct: (ct, ct))
    with pytest.raises(TypeError, match="one cotangent for each"):
        jnp.grad(wrong)(1.0)
    shape = jnp.custom_vjp(lambda x: x)
    shape.defvjp(lambda x: (x, None), lambda res, ct: (jnp.ones(3),))
    with pytest.raises(ValueError, match="type"):
        jnp.grad(shape)(1.0)


@pytest.mark.parametrize("lib", [jax, jnp], ids=["jax", "accnp"])
def test_jaxprs_of_rules_that_call_their_function_on_tangents(lib):
    """The linear part then contains a call with a rule, which is transposed as it is."""
    double = lib.custom_jvp(lambda x: 2 * x)
    double.defjvp(lambda primals, tangents: (double(*primals), double(*tangents)))
    x = lib.numpy.arange(3.0)

    def loss(x):
        return (lib.jit(double)(x) * x).sum()

    def twice(x):
        return lib.lax.scan(lambda c, _: (double(c), None), x, None, length=2)[0].sum()

    for f, expected in (
        (lib.grad(loss), [0, 4, 8]),
        (lib.grad(twice), [4, 4, 4]),
        (lambda x: lib.linear_transpose(double, x)(x)[0], [0, 2, 4]),
    ):
        closed = lib.make_jaxpr(f)(x)
        actual = lib.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]
        np.testing.assert_allclose(actual, expected)
