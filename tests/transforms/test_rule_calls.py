"""When functions with custom derivative rules and their rules are called, and with
which arguments.
"""

import functools

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp.errors import UnexpectedTracerError


def sine(kind: str, seen: list[str]):
    """Return a sine whose Python code needs concrete values, and which records what is called."""

    def primal(x):
        seen.append("primal")
        return jnp.asarray(np.sin(np.asarray(x)))

    if kind == "jvp":
        f = jax.custom_jvp(primal)

        def rule(primals, tangents):
            seen.append("rule")
            return jnp.sin(primals[0]), tangents[0] * jnp.cos(primals[0])

        f.defjvp(rule)
        return f
    f = jax.custom_vjp(primal)
    f.defvjp(
        lambda x: (seen.append("fwd"), (jnp.sin(x), x))[1],
        lambda x, ct: (ct * jnp.cos(x),),
    )
    return f


TRANSFORMED = {
    "grad": lambda f: jax.grad(f)(1.0),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(1.0),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f))(jnp.ones(2))[1],
    "vjp": lambda f: jax.vjp(f, 1.0)[1](1.0)[0],
    "jacrev": lambda f: jax.jacrev(f)(1.0),
    "inner": lambda f: jax.grad(lambda x: f(x * 1.0))(1.0),
}
FORWARD = {
    "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,))[1],
    "linearize": lambda f: jax.linearize(f, 1.0)[1](1.0),
    "jacfwd": lambda f: jax.jacfwd(f)(1.0),
}
CASES = [(kind, name) for kind in ("jvp", "vjp") for name in TRANSFORMED]
CASES += [("jvp", name) for name in FORWARD]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_only_rules_run_where_a_derivative_is_taken(kind, name):
    seen: list[str] = []
    derivative = {**TRANSFORMED, **FORWARD}[name](sine(kind, seen))
    np.testing.assert_allclose(derivative, np.cos(1.0), rtol=1e-6)
    assert "primal" not in seen


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_second_derivatives_run_no_primal(kind):
    seen: list[str] = []
    derivative = jax.grad(jax.grad(sine(kind, seen)))(1.0)
    np.testing.assert_allclose(derivative, -np.sin(1.0), rtol=1e-6)
    assert "primal" not in seen


def test_rule_determines_the_result_shape():
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (jnp.stack([x, 2 * x]), None), lambda _, ct: (ct.sum(),))
    value, pull = jax.vjp(f, 3.0)
    assert value.tolist() == [3.0, 6.0]
    assert float(pull(jnp.ones(2))[0]) == 2.0


def test_calls_of_host_values_return_what_the_function_returns():
    f = jax.custom_jvp(lambda x: x + 1)
    f.defjvp(lambda p, t: (p[0] + 1, t[0]))
    g = jax.custom_vjp(lambda x: x + 1)
    g.defvjp(lambda x: (x + 1, None), lambda _, ct: (ct,))
    for h in (f, g):
        assert type(h(2.0)) is float
        assert type(h(np.ones(2))) is np.ndarray
        assert h(np.ones(2)).dtype == np.float32
        assert isinstance(jax.jit(lambda x, h=h: h(2.0) * x)(1.0), jax.Array)


def test_keywords_that_a_partial_binds_are_no_arguments():
    w = functools.partial(lambda x, y, a: x + y * a, a=0.1)
    f = jax.custom_jvp(w)
    f.defjvp(lambda p, t: jax.jvp(w, p, t))
    np.testing.assert_allclose(f(1.0, 2.0), 1.2, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(f, argnums=(0, 1))(1.0, 2.0), (1.0, 0.1), rtol=1e-6)
    g = jax.custom_vjp(w)
    g.defvjp(lambda x, y: (w(x, y), None), lambda _, ct: (ct, 3 * ct))
    assert [float(v) for v in jax.jit(jax.grad(g, argnums=(0, 1)))(1.0, 2.0)] == [1.0, 3.0]


def test_rules_run_with_the_types_of_the_call():
    f = jax.custom_vjp(lambda x: x**2.0)
    f.defvjp(lambda x: (f(x), jnp.sin(x)), lambda r, ct: (r * ct,))

    def g(x):
        with jax.enable_x64():
            return f(jnp.array(x, jnp.float64))

    gradient = jax.grad(g)(5.0)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, np.sin(5.0), rtol=1e-6)


def test_traced_values_are_no_nondiff_argnums_of_custom_vjp():
    f = jax.custom_vjp(lambda n, x: n * x, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (n * x, None), lambda n, _, ct: (n * ct,))
    with pytest.raises(UnexpectedTracerError, match="nondiff_argnums"):
        jax.jit(lambda n, x: f(n, x))(2, 3.0)


def test_users_primitives_in_loops_with_callbacks_are_differentiated():
    from accnp.extend.core import Primitive
    from accnp.interpreters import ad, mlir

    p = Primitive("rule_calls_mine")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    ad.defjvp(p, lambda t, x: t)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x, multiple_results=False))

    def body(c, _):
        jax.debug.callback(lambda c: None, c)
        return p.bind(c) * 2.0, None

    def f(x):
        return jax.lax.scan(body, x, None, length=3)[0]

    assert [float(v) for v in jax.jvp(jax.jit(f), (1.0,), (1.0,))] == [8.0, 8.0]
    assert float(jax.grad(jax.jit(f))(1.0)) == 8.0
