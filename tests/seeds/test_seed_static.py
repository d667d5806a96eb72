"""Static and traced values in the seed programs: which uses raise errors, and how often code is
traced.
"""

import re
from functools import partial

import numpy as np
import pytest

import accnp
import accnp as jax
import accnp.numpy as jnp
from accnp import errors


def raised_error(run, kind: type[Exception]) -> str:
    """Return the text of the error that ended the program, after checking its class."""
    assert isinstance(run.error, kind), repr(run.error)
    return str(run.error)


# 5, 6: a branch on a traced value


@pytest.mark.parametrize(
    ("name", "function", "argument"), [("p05_if", "f", "x"), ("p06_while", "g", "n")]
)
def test_branching_on_a_traced_value(ours, name, function, argument):
    run = ours(name)
    text = raised_error(run, errors.TracerBoolConversionError)
    assert isinstance(run.error, errors.ConcretizationTypeError)
    assert isinstance(run.error, TypeError)
    assert "bool" in text
    assert f"{function} at {run.path}:{run.line_of(f'def {function}(')}" in text
    assert re.search(rf"argument {argument}\b", text)
    assert "lax.cond" in text
    assert "static_argnums" in text


def test_piecewise_function_under_jit(ours):
    run = ours("p05_piecewise")
    assert run.error is None
    assert run.output.startswith("Exception ")
    assert "argument x" in run.output


def test_piecewise_function_with_a_static_argument(ours, theirs):
    run = ours("p05_piecewise_static")
    assert run.output == theirs("p05_piecewise_static").output
    assert "argument x" in raised_error(run, errors.TracerBoolConversionError)


# 7, 8, 9: static arguments, loops outside, jit in a loop


def test_static_arguments(ours, theirs):
    run = ours("p07_static")
    assert run.error is None
    assert run.output.split() == ["10", "30", "30", "30", "30"]
    assert run.output == theirs("p07_static").output


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (partial(jax.jit, static_argnums=1), lambda g, n: g(10, n)),
        (partial(jax.jit, static_argnames=["n"]), lambda g, n: g(10, n)),
        (partial(jax.jit, static_argnames="n"), lambda g, n: g(10, n=n)),
    ],
)
def test_one_trace_per_static_value(make, call):
    traced = []

    @make
    def g(x, n):
        traced.append(n)
        i = 0
        while i < n:
            i += 1
        return x + i

    for n in (20, 20, 5, 20, 5):
        assert int(call(g, n)) == 10 + n
    assert traced == [20, 5]


def test_loop_outside_and_jitted_body(ours, theirs):
    run = ours("p08_loop_outside")
    assert run.error is None
    assert (
        run.output
        == theirs("p08_loop_outside").output
        == ("Array(30, dtype=int32, weak_type=True)\n")
    )


@pytest.mark.parametrize(("kind", "traces"), [("partial", 20), ("lambda", 20), ("normal", 1)])
def test_jit_in_a_loop_compiles_once(ours, kind, traces):
    run = ours("p09_jit_in_loop")
    assert run.error is None
    traced = []

    def counted_loop_body(prev_i):
        traced.append(prev_i)
        return prev_i + 1

    run.names["unjitted_loop_body"] = counted_loop_body
    before = accnp.counters()
    result = run.names[f"g_inner_jitted_{kind}"](10, 20)
    assert int(result.block_until_ready()) == 30
    after = accnp.counters()
    assert len(traced) == after["traces"] - before["traces"] == traces
    assert after["compiles"] == before["compiles"]
    assert after["disk_hits"] == before["disk_hits"]


# 10: a global read under jit


def test_global_is_constant_until_retraced(ours, theirs):
    run = ours("p10_globals")
    assert run.error is None
    assert run.output == theirs("p10_globals").output
    assert "Array(4., dtype=float32, weak_type=True)" in run.output
    assert "Array([14.], dtype=float32)" in run.output


# 11, 12, 13: shapes that depend on values


def test_boolean_mask_under_jit(ours, theirs):
    run = ours("p11_negatives")
    text = raised_error(run, errors.NonConcreteBooleanIndexError)
    assert isinstance(run.error, IndexError)
    assert "bool[10]" in text
    assert run.output == theirs("p11_negatives").output


def test_traced_length(ours):
    run = ours("p12_ones")
    text = raised_error(run, TypeError)
    assert "hapes must be" in text
    assert "argument length" in text
    assert "static_argnums" in text
    fixed = jax.jit(lambda length: jnp.ones((length,)), static_argnums=0)
    np.testing.assert_array_equal(np.asarray(fixed(5)), np.ones(5, np.float32))


def test_traced_shape_in_reshape_names_the_operation(ours):
    run = ours("p13_reshape")
    text = raised_error(run, errors.ConcretizationTypeError)
    assert "reshape" in text
    assert "reduce_prod" in text
    assert f"{run.path}:{run.line_of('.prod()')}" in text


def test_static_shape_in_reshape(ours, theirs):
    run = ours("p13_reshape_static")
    assert run.error is None
    assert run.output == theirs("p13_reshape_static").output


# 24: what traces again and what does not


def test_retracing_conditions():
    traced = []

    @partial(jax.jit, static_argnames="power")
    def f(x, power=2):
        traced.append((x.shape, str(x.dtype), power))
        return x**power

    f(jnp.ones(3))
    f(jnp.zeros(3))
    assert len(traced) == 1  # same shape, same dtype, same static value
    f(jnp.ones(4))
    f(jnp.ones((3, 1)))
    assert len(traced) == 3  # a new shape
    f(jnp.ones(3), power=3)
    assert len(traced) == 4  # a new static value
    f(jnp.arange(3))
    assert len(traced) == 5  # a new dtype
    f(jnp.ones(4))
    f(jnp.ones(3), power=3)
    f(jnp.ones(3))
    assert len(traced) == 5
    assert f._cache_size() == 5


def test_a_new_shape_never_compiles():
    @jax.jit
    def f(x):
        return jnp.tanh(x) * 3.0 + x

    f(jnp.ones(1000)).block_until_ready()
    before = accnp.counters()
    for n in (1001, 2002, 40_000):
        np.testing.assert_allclose(np.asarray(f(jnp.ones(n))), np.tanh(1) * 3 + 1, rtol=1e-6)
    after = accnp.counters()
    assert after["traces"] - before["traces"] == 3
    assert after["compiles"] == before["compiles"]
    assert after["disk_hits"] == before["disk_hits"]
