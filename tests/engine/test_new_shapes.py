"""Kernels do not depend on sizes: a new shape requires a new plan but no compilation."""

import numpy as np
import pytest
from kernel_counts import count_made_kernels

import accnp as jnp
from accnp import engine


def softmax(x):
    e = jnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


PROGRAMS = {
    "map": (lambda x: x * x + 2 * x, [(7,), (100,), (3000,)]),
    "map of a matrix": (lambda x: jnp.sin(x) + 1, [(7, 9), (30, 2), (100, 100)]),
    "row": (softmax, [(4, 7), (9, 30), (100, 1025)]),
    "column": (lambda x: (x - x.mean(0)) / x.std(0), [(4, 17), (9, 30), (60, 110)]),
    "split": (lambda x: (x.sum(), x.max()), [(40_000,), (70_000,), (90_001,)]),
    "broadcast": (lambda x: x[:, None] * x[None, :], [(5,), (11,), (40,)]),
    "transposed": (lambda x: x.T * 2 + 1, [(6, 5), (8, 9), (33, 65)]),
    "sliced": (lambda x: x[2:] + x[:-2], [(9,), (31,), (1000,)]),
    "strided": (lambda x: x[::2] * 3, [(9,), (31,), (1000,)]),
    "joined": (lambda x: jnp.concatenate([x * 2, x + 1]), [(9,), (31,), (1000,)]),
    "indices": (lambda x: x * jnp.arange(x.shape[0]), [(9,), (31,), (1000,)]),
    "scalar": (lambda x: x / x.sum(), [(9,), (31,), (1000,)]),
}


# Axes of up to 4 elements (16 columns in a reduction) are unrolled: see
# compiler/specs/short_axes.py.


def ours(shape):
    return jnp.asarray(np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def run(f, shape):
    out = f(ours(shape))
    for x in out if isinstance(out, tuple) else (out,):
        x.block_until_ready()


@pytest.mark.parametrize("wrap", [lambda f: f, jnp.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_new_shape_reuses_kernels(name, wrap):
    f, shapes = PROGRAMS[name]
    f = wrap(f)
    run(f, shapes[0])
    before = count_made_kernels()
    for shape in shapes[1:]:
        run(f, shape)
    assert count_made_kernels() == before


def test_new_function_reuses_kernels():
    x = ours((50,))
    jnp.jit(lambda x: x * 3.0 - 1.0)(x).block_until_ready()
    before = count_made_kernels()
    for _ in range(5):
        jnp.jit(lambda x: x * 3.0 - 1.0)(x).block_until_ready()
    assert count_made_kernels() == before


def test_new_scalar_reuses_kernels_and_plans():
    x = ours((50,))
    (x * 1.5 + 0.25).block_until_ready()
    before = count_made_kernels(), engine.counters["plans"]
    for k in range(20):
        (x * float(k) + 0.25).block_until_ready()
    assert (count_made_kernels(), engine.counters["plans"]) == before
