"""Python control flow in traced functions, nested transformations, values that outlive a call, and
deep graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import accnp as jnp
from accnp import errors


def f(x: Any) -> Any:
    if x > 0:
        return jnp.sin(x) * x
    return -x


def test_branch_on_a_value() -> None:
    assert float(jnp.grad(f)(2.0)) == pytest.approx(np.sin(2) + 2 * np.cos(2), rel=1e-6)
    assert float(jnp.grad(f)(-2.0)) == -1.0
    assert float(jnp.grad(jnp.grad(f))(2.0)) == pytest.approx(2 * np.cos(2) - 2 * np.sin(2))


def test_loop_on_a_value() -> None:
    def halve(x: Any) -> Any:
        while x > 1:
            x = x / 2
        return x

    value, gradient = jnp.value_and_grad(halve)(12.0)
    assert (float(value), float(gradient)) == (0.75, 0.0625)


def test_reading_values_inside_derivatives() -> None:
    seen = []

    def g(x: Any) -> Any:
        y = jnp.exp(x)
        seen.append(float(y[0]))
        z = y * y
        seen.append(np.asarray(z).sum())
        return z.sum()

    gradient = jnp.grad(g)(jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(gradient, 2 * np.exp([0, 2]), rtol=1e-6)
    assert seen[0] == 1.0
    assert len(seen) == 2


def test_no_perturbation_confusion() -> None:
    outer = jnp.grad(lambda x: x * jnp.grad(lambda y: x * y)(1.0))
    assert float(outer(3.0)) == 6.0
    nested = jnp.grad(lambda x: jnp.grad(lambda y: x * y * y)(x) * x)
    assert float(nested(3.0)) == 54.0  # 2 x^3
    forward = jnp.jvp(lambda x: x * jnp.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (2.0,), (1.0,))
    assert float(forward[1]) == 1.0


def test_closed_over_tracers() -> None:
    def g(x: Any) -> Any:
        mapped = jnp.vmap(lambda a: a * x)(jnp.arange(3.0))
        return jnp.jit(lambda b: (b * x + mapped).sum())(mapped)

    # mapped = a x, sum of a x^2 + a x = 3 x^2 + 3 x
    assert float(jnp.grad(g)(2.0)) == 15.0
    assert float(jnp.grad(jnp.grad(g))(2.0)) == 6.0


def test_results_outlive_the_trace() -> None:
    value, gradient = jnp.value_and_grad(lambda x: (x * x).sum())(jnp.arange(3.0))
    print(value, gradient)
    again = jnp.jit(lambda z: z + value + gradient)(jnp.ones(3))
    np.testing.assert_allclose(again, [6.0, 8.0, 10.0])
    both = jnp.grad(lambda z: (z * gradient).sum() + value)(jnp.ones(3))
    np.testing.assert_allclose(both, gradient)
    mapped = jnp.vmap(lambda z: z * value)(jnp.ones(2))
    np.testing.assert_allclose(mapped, [5.0, 5.0])


def test_vjp_function_can_be_called_again() -> None:
    x = jnp.arange(3.0)
    y, pull = jnp.vjp(jnp.sin, x)
    np.testing.assert_allclose(y, np.sin(x))
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(pull(y * scale)[0], np.cos(x) * np.sin(x) * scale, rtol=1e-6)
    np.testing.assert_allclose(jnp.vmap(pull)(jnp.eye(3))[0], np.diag(np.cos(x)), rtol=1e-6)
    np.testing.assert_allclose(jnp.jit(pull)(x)[0], np.cos(x) * x, rtol=1e-6)
    inner = jnp.grad(lambda ct: (pull(ct)[0] * x).sum())(x)
    np.testing.assert_allclose(inner, np.cos(x) * x, rtol=1e-6)


def test_linear_map_under_transformations() -> None:
    x = jnp.arange(3.0)
    _, push = jnp.linearize(lambda v: jnp.exp(v) * v, x)
    expected = np.exp(x) * (1 + np.asarray(x))
    np.testing.assert_allclose(jnp.vmap(push)(jnp.eye(3)), np.diag(expected), rtol=1e-6)
    np.testing.assert_allclose(jnp.jit(push)(x), expected * x, rtol=1e-6)
    np.testing.assert_allclose(jnp.linear_transpose(push, x)(x)[0], expected * x, rtol=1e-6)


def test_leaked_tracer_becomes_a_value() -> None:
    leaked = []

    def g(x: Any) -> Any:
        leaked.append(x * 2)
        return x.sum()

    jnp.grad(g)(jnp.ones(2))
    np.testing.assert_allclose(leaked[0], [2.0, 2.0])


def test_leaked_example_is_an_error() -> None:
    leaked = []
    jnp.vmap(lambda x: leaked.append(x * 2) or x)(jnp.ones(2))
    with pytest.raises(errors.UnexpectedTracerError):
        leaked[0] + 1


def make_leaking_function(leaked: list[Any], m: Any) -> Any:
    """Return a function that stores a value computed independently of its argument, as flows of
    flowjax do."""

    def f(x):
        leaked.append(m.numpy.arange(3.0) * 2)
        return x + leaked[-1].sum()

    return f


LEAKING_TRANSFORMS = {
    "vmap": lambda f, m: m.vmap(f)(m.numpy.ones(2)),
    "nested": lambda f, m: m.vmap(m.vmap(f))(m.numpy.ones((2, 2))),
    "grad in vmap": lambda f, m: m.vmap(m.grad(f))(m.numpy.ones(2)),
    "jit in vmap": lambda f, m: m.vmap(m.jit(f))(m.numpy.ones(2)),
    "jit": lambda f, m: m.jit(f)(1.0),
    "vmap in jit": lambda f, m: m.jit(m.vmap(f))(m.numpy.ones(2)),
}
USES = {
    "an operation": lambda c, m: c + 1,
    "a look": lambda c, m: np.asarray(c),
    "vmap": lambda c, m: m.vmap(lambda x: x + c)(m.numpy.ones(2)),
    "jit": lambda c, m: m.jit(lambda x: x * c)(2.0),
    "an argument of jit": lambda c, m: m.jit(lambda c: c + 1)(c),
    "grad": lambda c, m: m.grad(lambda x: (c * x).sum())(2.0),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("way", LEAKING_TRANSFORMS)
def test_batch_independent_values_outlive_vmap(way: str, use: str) -> None:
    answers = []
    for m in (jnp, jax):
        leaked: list[Any] = []
        LEAKING_TRANSFORMS[way](make_leaking_function(leaked, m), m)
        try:
            answers.append(np.asarray(USES[use](leaked[0], m)).tolist())
        except (m.errors.UnexpectedTracerError, m.errors.TracerArrayConversionError):
            answers.append("refused")
    assert answers[0] == answers[1]


def test_values_that_outlive_vmap_belong_to_the_outer_trace() -> None:
    def f(y: Any) -> Any:
        leaked: list[Any] = []
        jnp.vmap(lambda x: leaked.append(y * 2) or x)(jnp.ones(2))
        inner.append(leaked[0])
        return leaked[0] * y

    inner: list[Any] = []
    assert float(jnp.jit(f)(3.0)) == 18
    with pytest.raises(errors.UnexpectedTracerError):
        inner[0] + 1
    assert float(jnp.grad(f)(3.0)) == 12
    leaked: list[Any] = []
    jnp.vmap(make_leaking_function(leaked, jnp))(jnp.ones(2))
    assert repr(leaked[0]) == "Array([0., 2., 4.], dtype=float32)"


def test_value_under_vmap_is_an_error() -> None:
    with pytest.raises(errors.TracerBoolConversionError, match="vmap"):
        jnp.vmap(f)(jnp.ones(2))


def test_deep_graphs() -> None:
    def chain(x: Any) -> Any:
        for _ in range(5000):
            x = x * 0.9999 + 0.0001
        return x

    assert float(jnp.grad(chain)(1.0)) == pytest.approx(0.9999**5000, rel=1e-3)
    assert float(jnp.jvp(chain, (1.0,), (1.0,))[1]) == pytest.approx(0.9999**5000, rel=1e-3)
    np.testing.assert_allclose(jnp.vmap(chain)(jnp.ones(2)), [1.0, 1.0], rtol=1e-3)


def test_failed_trace_leaves_no_state() -> None:
    with pytest.raises(ZeroDivisionError):
        jnp.grad(lambda x: 1 / 0)(1.0)
    with pytest.raises(ZeroDivisionError):
        jnp.vmap(lambda x: 1 / 0)(jnp.ones(2))
    assert float(jnp.grad(f)(2.0)) == pytest.approx(np.sin(2) + 2 * np.cos(2))
    assert jnp.add(1, 2) == 3


def test_training_step() -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((20, 3)).astype(np.float32)
    truth = np.array([1.0, -2.0, 0.5], np.float32)

    @jnp.jit
    def step(w: Any) -> Any:
        loss, gradient = jnp.value_and_grad(
            lambda w: jnp.mean(jnp.square((data * w).sum(1) - data @ truth))
        )(w)
        return w - 0.1 * gradient, loss

    w = jnp.zeros(3)
    for _ in range(200):
        w, loss = step(w)
    np.testing.assert_allclose(w, truth, atol=1e-2)
    assert float(loss) < 1e-3


READ_INSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "value_and_grad": lambda f, x: jnp.value_and_grad(f)(x)[0],
    "aux": lambda f, x: jnp.grad(lambda y: (y, f(y)), has_aux=True)(x)[1],
    "jvp": lambda f, x: jnp.jvp(f, (x,), (x,))[0],
    "vjp": lambda f, x: jnp.vjp(f, x)[0],
    "grad": lambda f, x: jnp.grad(f)(x),
}


@pytest.mark.parametrize("name", READ_INSIDE)
def test_values_that_are_read_after_an_inner_derivative_keep_their_operands(name: str) -> None:
    """The value of a completed inner derivative still depends on the variable of the outer one."""

    def outer(x: Any, read: bool) -> Any:
        y = READ_INSIDE[name](lambda z: jnp.sin(z) * jnp.exp(z), x)
        if read:
            float(y)
        return y * x

    for derivative in (jnp.grad, jnp.jacfwd):
        expected = derivative(lambda x: outer(x, False))(0.7)
        assert expected != 0
        np.testing.assert_allclose(derivative(lambda x: outer(x, True))(0.7), expected, rtol=1e-6)
