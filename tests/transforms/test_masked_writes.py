"""Writes at indices in batched loops and branches in which only some rows take part."""

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import lax

SIZE = 6
WRITES = {
    "set": lambda x, i: x.at[i].set(x[0] + 1),
    "add": lambda x, i: x.at[i].add(2),
    "multiply": lambda x, i: x.at[i].multiply(3),
    "min": lambda x, i: x.at[i].min(-1),
    "max": lambda x, i: x.at[i].max(x[1] + 9),
    "small index": lambda x, i: x.at[i.astype(jnp.uint8)].set(5),
    "large index": lambda x, i: x.at[i.astype(jnp.uint32)].add(5),
    "out of bounds": lambda x, i: x.at[i + 4].set(7),
    "clipped": lambda x, i: x.at[i + 4].set(7, mode="clip"),
    "promised": lambda x, i: x.at[i].set(8, mode="promise_in_bounds"),
    "two places": lambda x, i: x.at[jnp.stack([i, 0 * i])].add(x[:2]),
    "in turn": lambda x, i: x.at[i].set(4).at[0].add(x[1]).at[i].multiply(2),
    "slice": lambda x, i: lax.dynamic_update_slice(x, x[:2] * 2, (i,)),
    "reshaped": lambda x, i: x.reshape(2, 3).at[i % 2, 1].set(9).reshape(6),
    "jitted": lambda x, i: accnp.jit(lambda x, i: x.at[i].set(11))(x, i),
    "everything": lambda x, i: x * 2 + i.astype(x.dtype),
    "nothing": lambda x, i: x,
    "whole": lambda x, i: x.at[...].set(1),
    "transposed": lambda x, i: x.reshape(2, 3).T.at[0, 0].add(1).reshape(6),
}


def map_over_rows(f, *xs):
    rows = [f(*[x[k] for x in xs]) for k in range(len(xs[0]))]
    return [np.stack([np.asarray(c) for c in column]) for column in zip(*rows, strict=True)]


def check(f, *xs):
    for g in (accnp.vmap(f), accnp.jit(accnp.vmap(f))):
        for a, b in zip(g(*xs), map_over_rows(f, *xs), strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_while(write, dtype):
    def f(i, x):
        def step(c):
            return (c[0] + 1, write(c[1], c[0]))

        return lax.while_loop(lambda c: c[0] < SIZE, step, (i, x))

    check(f, np.array([0, 3, 5, 6], np.int32), np.arange(24).reshape(4, 6).astype(dtype))


def test_while_that_exchanges_its_buffers():
    def f(i, x, y):
        def step(c):
            return (c[0] + 1, c[2].at[c[0]].set(1), c[1].at[c[0]].add(2))

        return lax.while_loop(lambda c: c[0] < SIZE, step, (i, x, y))

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    check(f, np.array([1, 3, 4, 6], np.int32), x, -x)


def test_while_of_a_batch_of_batches():
    def f(i, x):
        def step(c):
            return (c[0] + 1, c[1].at[c[0]].add(c[0]))

        return lax.while_loop(lambda c: c[0] < SIZE, step, (i, x))

    i, x = np.arange(6, dtype=np.int32).reshape(2, 3), np.ones((2, 3, 6), np.float32)
    for g in (accnp.vmap(accnp.vmap(f)), accnp.jit(accnp.vmap(accnp.vmap(f)))):
        expected = [map_over_rows(f, *row) for row in zip(i, x, strict=True)]
        for a, *b in zip(g(i, x), *expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.stack(b))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_cond(write):
    def f(p, i, x):
        # The branches also read what they write to, and give a result of another shape.
        def yes(x):
            return (write(x, i), x[i % SIZE])

        return lax.cond(p, yes, lambda x: (x, x[0]), x)

    p = np.array([True, False, True, False])
    check(f, p, np.array([0, 3, 4, 1], np.int32), np.arange(24, dtype=np.float32).reshape(4, 6))


def switch_update(k, i, x, y):
    return lax.switch(
        k,
        [
            lambda x, y: (x.at[i].set(y[0]), y),
            lambda x, y: (x, lax.dynamic_update_slice(y, x[:2] * 3, (i,))),
            lambda x, y: (x.at[i].multiply(2.0).at[0].add(x[i]), y.at[1].set(x[1] * y[2])),
        ],
        x,
        y,
    )


ROWS = (
    np.array([0, 1, 2, 7, -1, 2], np.int32),
    np.array([0, 3, 2, 1, 4, 5], np.int32),
    np.linspace(0.5, 2, 36, dtype=np.float32).reshape(6, 6),
    np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6),
)


def test_switch():
    check(switch_update, *ROWS)


def test_derivatives_of_switch():
    k, i, x, y = ROWS

    def loss(x, y, k, i):
        a, b = switch_update(k, i, x, y)
        return (a * a).sum() + (b * jnp.sin(b)).sum()

    def of_batch(x, y):
        return accnp.vmap(loss)(x, y, k, i).sum()

    gradients = accnp.grad(of_batch, (0, 1))(x, y)
    rows = [accnp.grad(loss, (0, 1))(*row) for row in zip(x, y, k, i, strict=True)]
    for a, b in zip(gradients, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.stack(b), rtol=1e-6, atol=1e-6)
    t = np.ones_like(x)
    pushed = accnp.jvp(of_batch, (x, y), (t, t))[1]
    expected = sum(np.asarray(g).sum() for g in gradients)
    np.testing.assert_allclose(np.asarray(pushed), expected, rtol=1e-5)


def test_the_derivative_of_a_branch_that_is_not_taken_does_not_matter():
    def f(x, i):
        return lax.cond(x[0] > 0, lambda x: x.at[i].set(jnp.sqrt(x[0])), lambda x: x, x).sum()

    x = np.array([[0.0, 1.0], [4.0, 1.0]], np.float32)
    gradient = accnp.grad(lambda x: accnp.vmap(f)(x, np.array([1, 1])).sum())(x)
    np.testing.assert_array_equal(np.asarray(gradient), [[1, 1], [1.25, 0]])


def count_selects(jaxpr, shape):
    """Count the elementwise selects on arrays of a shape in a program and its inner programs."""
    count = 0
    for equation in jaxpr.eqns:
        shapes = [v.aval.shape for v in equation.outvars]
        count += equation.primitive.name == "select_n" and shape in shapes
        for inner in accnp.core.jaxprs_in_params(equation.params):
            count += count_selects(inner, shape)
    return count


def test_batched_loop_updates_its_buffer_in_place():
    """A loop of n steps over n elements writes n elements, not n arrays."""

    def loop(i, x):
        def step(c):
            return (c[0] + 1, c[1].at[c[0]].set(1.0))

        return lax.while_loop(lambda c: c[0] < 50, step, (i, x))

    def branch(i, x):
        return lax.cond(i > 1, lambda x: x.at[i].set(2.0), lambda x: x, x)

    i, x = np.arange(4, dtype=np.int32), np.zeros((4, 50), np.float32)
    for f in (loop, branch):
        assert count_selects(accnp.make_jaxpr(accnp.vmap(f))(i, x).jaxpr, (4, 50)) == 0
