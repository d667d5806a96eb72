"""Values of nodes that several threads request at once, or that are still being computed."""

import threading

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import engine
from accnp.engine import values
from accnp.runtime.stream import default_stream

N = 100_000


def results_of_threads(f, count=4):
    """Return the results of a function in threads that start together."""
    begin, outcomes = threading.Barrier(count), []

    def run():
        begin.wait()
        try:
            outcomes.append(f())
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    return outcomes


# Functions whose result is written to the buffer of the operand, if it has no other reference.
OVER = {
    "a map": lambda x: x * 0.5 + 1,
    "an update": lambda x: x.at[::3].add(1.0),
    "behind a library call": lambda x: jnp.sort(x) * 0.5 + x[0],
}


@pytest.mark.parametrize("name", OVER)
def test_shared_operand_is_overwritten_by_one_thread_only(name):
    """Other threads computed the same value from an operand that had been overwritten meanwhile."""
    f = OVER[name]
    for k in range(12):
        a = np.random.default_rng(k).standard_normal(N).astype("f4")
        x = (jnp.asarray(a) * 2).block_until_ready()
        expected = np.asarray(f(jnp.asarray(a) * 2))
        y = f(x)
        del x
        for actual in results_of_threads(lambda y=y: np.asarray(y)):
            np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(y, expected)
    assert not values.claimed


def claimed(y):
    """Return a pending array that another thread has claimed but not computed yet."""
    claim = values.Claim([y._node])
    claim.owner = -1
    with values.value_lock:
        claim.take()
    return claim


@pytest.mark.parametrize("ask", [np.asarray, lambda y: np.asarray(y * 2) / 2, jax.jit(jnp.copy)])
def test_reading_a_claimed_value_waits(ask):
    y = jnp.arange(5.0) + 1
    claim, results = claimed(y), []
    thread = threading.Thread(target=lambda: results.append(np.asarray(ask(y))))
    thread.start()
    thread.join(0.05)
    assert thread.is_alive()
    claim.end()  # by an error: the value is not there
    thread.join(60)
    np.testing.assert_array_equal(results[0], [1, 2, 3, 4, 5])
    assert not values.claimed


def test_thread_does_not_wait_for_itself():
    z = jnp.ones(9) + 1
    claim = values.Claim([z._node])
    claim.take()
    with pytest.raises(RuntimeError, match="computed from the result of the callback"):
        z.block_until_ready()
    claim.end()
    assert float(z[0]) == 2


@pytest.fixture
def late():
    """Provide an array whose value is pending until `late.go()` is called."""
    gate = threading.Event()
    default_stream().submit(lambda: gate.wait(60))
    x = jnp.sin(jnp.arange(12.0).reshape(3, 4))
    engine.materialize([x._node])
    assert not x.is_ready()
    yield x, gate
    gate.set()


DERIVED = {
    "grad": lambda x: jax.grad(lambda v: (v * v).sum())(x),
    "value_and_grad": lambda x: jax.value_and_grad(lambda v: (v * v).sum())(x),
    "jvp": lambda x: jax.jvp(jnp.cos, (x,), (x,)),
    "vjp": lambda x: jax.vjp(jnp.cos, x)[1](x),
    "linearize": lambda x: jax.linearize(jnp.cos, x)[1](x),
    "grad of grad": lambda x: jax.grad(lambda w: jax.grad(lambda v: (v * v * w).sum())(x).sum())(x),
    "hvp": lambda x: jax.jvp(jax.grad(lambda v: (v**3).sum()), (x,), (x,)),
    "a loop": lambda x: jax.grad(lambda v: jax.lax.scan(lambda c, r: (c * r, c), x[0], v)[0][1])(x),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_at_pending_values(late, name):
    """The argument's placeholder kept the task and never received the value, which raised an
    AttributeError."""
    x, gate = late
    f = DERIVED[name]
    actual = f(x)
    gate.set()
    expected = f(jnp.asarray(np.asarray(x)))
    jax.tree.map(np.testing.assert_array_equal, actual, expected)


def test_a_traced_array_has_no_value_to_wait_for():
    """`delete` within a trace must not wait for a value."""
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"Array\.delete: Abstract"):
        jax.eval_shape(lambda x: (x.delete(), x)[1], jnp.ones(3))
    x = []
    jax.eval_shape(lambda y: x.append(y) or y, jnp.ones(3))
    with pytest.raises(RuntimeError, match="a traced array has no value; got float32"):
        engine.ready(x[0]._node)
