"""`disable_jit`, compared with JAX: functions see concrete values, and Python executes control
flow.
"""

import jax
import numpy as np
import pytest
from api.oracle import assert_same_result, stored_result

import accnp as jnp
from accnp.config import config

F32 = np.float32
VECTOR = np.arange(4, dtype=F32)


def branch(x):
    return x * 2 if x > 1 else x


PROGRAMS = {
    "jit": (lambda m: m.jit(branch), F32(2)),
    "static": (lambda m: m.jit(lambda x, n: x * n, static_argnums=1), F32(2), 3),
    "grad of jit": (lambda m: m.grad(m.jit(branch)), F32(3)),
    "scan": (
        lambda m: lambda x: m.lax.scan(lambda c, v: (c + v if v > 1 else c, (c, v)), x[0], x),
        VECTOR,
    ),
    "scan, reverse": (
        lambda m: lambda x: m.lax.scan(lambda c, v: (c - v, c), x[0], x, reverse=True),
        VECTOR,
    ),
    "scan, no rows": (
        lambda m: lambda x: m.lax.scan(
            lambda c, _: ({"a": branch(c["a"])}, None), {"a": x}, None, 3),
        F32(1.5),
    ),
    "scan, no steps": (
        lambda m: lambda x: m.lax.scan(lambda c, v: (c, v), x, np.zeros(0, F32)),
        F32(1),
    ),
    "grad of scan": (
        lambda m: m.grad(lambda x: m.lax.scan(
            lambda c, _: (c * x if c < 5 else c, None), x, None, 3)[0]),
        F32(2),
    ),
    "vmap of scan": (
        lambda m: m.vmap(lambda x: m.lax.scan(lambda c, _: (c * x, c), x, None, 2)),
        VECTOR,
    ),
    "while": (
        lambda m: lambda x: m.lax.while_loop(
            lambda c: c < 10, lambda c: c * 2 if c < 5 else c + 1, x),
        1,
    ),
    "grad of while": (
        lambda m: m.grad(lambda x: m.lax.while_loop(lambda c: c < 10, lambda c: c * x, x)),
        F32(2),
    ),
    "vmap of while": (
        lambda m: m.vmap(lambda x: m.lax.while_loop(lambda c: c < x, lambda c: c + 1, x * 0)),
        VECTOR,
    ),
    "fori": (
        lambda m: lambda n: m.lax.fori_loop(0, n, lambda i, c: c + i if i % 2 else c, F32(0)),
        4,
    ),
    "vmap of fori": (
        lambda m: m.vmap(lambda n: m.lax.fori_loop(0, n, lambda i, c: c + i, 0)),
        np.arange(4),
    ),
    "cond": (
        lambda m: lambda x: m.lax.cond(x > 0, branch, lambda y: -y, x),
        F32(3),
    ),
    "vmap of cond": (
        lambda m: m.vmap(lambda x: m.lax.cond(x > 0, lambda y: y * 2, lambda y: -y, x)),
        VECTOR - 1,
    ),
    "switch": (
        lambda m: lambda i: m.lax.switch(i, [lambda x: x, branch], F32(3)),
        1,
    ),
    "map": (lambda m: lambda x: m.lax.map(branch, x), VECTOR),
    "associative_scan": (
        lambda m: lambda x: m.lax.associative_scan(lambda a, b: a + b, x),
        VECTOR,
    ),
    "jacfwd": (lambda m: m.jacfwd(m.jit(lambda x: x**2)), VECTOR),
    "hessian": (lambda m: m.hessian(m.jit(lambda x: (x**3).sum())), VECTOR),
    "carry of another structure": (
        lambda m: lambda x: m.lax.scan(lambda c, v: ((c, c), v), x, np.zeros(2, F32)),
        F32(1),
    ),
}  # fmt: skip


def outcome(m, program, args):
    try:
        return [np.asarray(x) for x in m.tree_util.tree_leaves(program(m)(*args))]
    except (ValueError, TypeError) as error:
        return error


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    program, *args = PROGRAMS[name]

    def ask():
        with jax.disable_jit():
            return outcome(jax, program, args)

    with jnp.disable_jit():
        actual = outcome(jnp, program, args)
    assert_same_result(actual, stored_result("disable_jit", name, ask))


def test_disabled_jit_computes_values_step_by_step():
    seen = []

    def body(c, x):
        seen.append((float(c), float(x)))
        return c + x, None

    with jnp.disable_jit():
        jnp.jit(lambda x: jnp.lax.scan(body, x[0], x))(VECTOR)
    assert seen == [(0, 0), (0, 1), (1, 2), (3, 3)]


def test_disable_jit_by_config_can_be_reverted():
    f = jnp.jit(branch)
    config.update("jax_disable_jit", True)
    try:
        assert float(f(2.0)) == 4.0
        with jnp.disable_jit(False), pytest.raises(jnp.errors.TracerBoolConversionError):
            f(2.0)
    finally:
        config.update("jax_disable_jit", False)
    with pytest.raises(jnp.errors.TracerBoolConversionError):
        f(2.0)
