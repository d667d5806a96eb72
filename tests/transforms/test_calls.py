"""Jitted functions under transformations: each transformed program is made once and then called."""

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import engine
from accnp.transforms import tools

X = np.linspace(0.5, 2.0, 4, dtype=np.float32)


def primitives(closed):
    """Return the names of all equations, including those of inner programs."""
    for eqn in closed.jaxpr.eqns:
        yield eqn.primitive.name
        inner = eqn.params.get("jaxpr")
        if inner is not None:
            yield from primitives(inner)


@accnp.jit
def layer(x):
    return accnp.numpy.sin(x) * x


TRANSFORMED = {
    "grad": accnp.grad(lambda x: layer(x).sum()),
    "jvp": lambda x: accnp.jvp(layer, (x,), (x,)),
    "vmap": accnp.vmap(layer),
    "linearize": lambda x: accnp.linearize(layer, x)[1](x),
    "grad of grad": accnp.grad(lambda x: accnp.grad(lambda y: layer(y).sum())(x).sum()),
    "vmap of grad": accnp.vmap(accnp.grad(layer)),
    "hessian": accnp.hessian(lambda x: layer(x).sum()),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_keep_calls(name):
    assert "jit" in set(primitives(accnp.make_jaxpr(TRANSFORMED[name])(X)))


def test_a_transformed_program_is_made_once(monkeypatch):
    transformed = []
    forward = tools.forward_graph
    monkeypatch.setattr(
        tools, "forward_graph", lambda *args: transformed.append(args[0]) or forward(*args)
    )
    f = accnp.jit(lambda x: jnp.sin(x) * x)

    def loss(x):
        for _ in range(5):
            x = f(x)
        return x.sum()

    for _ in range(3):
        actual = accnp.grad(loss)(X)
    assert len(transformed) == 1

    def theirs(x):
        for _ in range(5):
            x = jax.numpy.sin(x) * x
        return x.sum()

    np.testing.assert_allclose(actual, jax.grad(theirs)(X), rtol=1e-5)


def test_calls_over_outer_values_find_their_plan_again():
    def step(w):
        return accnp.grad(lambda v: accnp.jit(lambda x: jnp.cos(x * v))(X).sum())(w)

    step(jnp.asarray(X)).block_until_ready()
    before = engine.counters["plans"]
    np.testing.assert_allclose(
        step(jnp.asarray(X + 1)),
        jax.grad(lambda v: jax.numpy.cos(X * v).sum())(X + 1),
        rtol=1e-5,
        atol=1e-7,
    )
    assert engine.counters["plans"] == before


def test_calls_receive_only_needed_operands():
    f = accnp.jit(lambda x, y: (jnp.exp(x) * y, jnp.sin(y)))
    closed = accnp.make_jaxpr(accnp.grad(lambda x: f(x, 2.0)[0]))(1.0)
    first, second = closed.eqns
    # The value of exp is the one residual; y is an operand already.
    assert len(first.outvars) == 3
    assert len(second.invars) == 3
    assert float(accnp.grad(lambda x: f(x, 2.0)[0])(1.0)) == pytest.approx(2 * np.e)


def test_transposing_a_call_with_fixed_and_linear_operands_mixed():
    f = accnp.jit(lambda a, x, b, y: (a * x + b * y, x * 3))
    x = jnp.asarray(X)
    (ct,) = accnp.linear_transpose(lambda y: f(2.0, y, 3.0, y), x)((x, x))
    np.testing.assert_allclose(ct, X * 8)
    (ct,) = accnp.linear_transpose(lambda y: f(x, y, 3.0, x)[1], x)(x)
    np.testing.assert_allclose(ct, X * 3)
