"""Seed program 17: the table of control flow, with one test per cell."""

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import errors, lax


def python_if(x):
    return x * x if x > 1 else -x


def python_for(x, n):
    for _ in range(n):
        x = x * x
    return x


def python_while(x):
    while x < 10:
        x = x * x
    return x


def lax_cond(x):
    return lax.cond(x > 1, lambda v: v * v, lambda v: -v, x)


def lax_while(x):
    return lax.while_loop(lambda v: v < 10, lambda v: v * v, x)


def lax_fori(x):
    return lax.fori_loop(0, 2, lambda i, v: v * v, x)


def lax_fori_traced(x):
    return lax.fori_loop(0, jnp.int32(x + 0.5), lambda i, v: v * v, x)


def lax_scan(x):
    last, seen = lax.scan(lambda v, k: (v * k, v), x, jnp.arange(1.0, 4.0))
    return last + seen.sum()


# jit


@pytest.mark.parametrize("f", [python_if, python_while])
def test_jit_refuses_branching_on_values(f):
    with pytest.raises(errors.TracerBoolConversionError, match="argument x"):
        jax.jit(f)(2.0)


def test_jit_refuses_a_traced_trip_count():
    with pytest.raises(TypeError, match="argument n"):
        jax.jit(python_for)(2.0, 2)


def test_jit_unrolls_loops_over_static_values():
    assert float(jax.jit(python_for, static_argnums=1)(2.0, 2)) == 16.0
    rank_loop = jax.jit(lambda x: sum(x[i] for i in range(x.shape[0])))
    assert float(rank_loop(jnp.arange(4.0))) == 6.0


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lax_cond, 4.0),
        (lax_while, 16.0),
        (lax_fori, 16.0),
        (lax_fori_traced, 16.0),
        (lax_scan, 20.0),
    ],
)
def test_jit_accepts_structured_control_flow(f, expected):
    assert float(f(2.0)) == expected
    assert float(jax.jit(f)(2.0)) == expected


# grad


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (python_if, 4.0),
        (python_while, 32.0),
        (lambda x: python_for(x, 2), 32.0),
        (lax_cond, 4.0),
        (lax_fori, 32.0),
        (lax_scan, 10.0),
    ],
)
def test_reverse_mode(f, expected):
    assert float(jax.grad(f)(2.0)) == pytest.approx(expected)


@pytest.mark.parametrize("f", [lax_cond, lax_fori, lax_scan])
def test_reverse_mode_under_jit(f):
    assert float(jax.jit(jax.grad(f))(2.0)) == pytest.approx(float(jax.grad(f)(2.0)))


@pytest.mark.parametrize("f", [lax_while, lax_fori_traced])
def test_reverse_mode_refuses_open_loops(f):
    with pytest.raises(ValueError, match="while_loop") as caught:
        jax.jit(jax.grad(f))(2.0)
    assert "everse-mode" in str(caught.value)
    assert "scan" in str(caught.value)


@pytest.mark.parametrize("f", [lax_cond, lax_while, lax_fori, lax_fori_traced, lax_scan])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_forward_mode(f, wrap):
    run = wrap(lambda x: jax.jvp(f, (x,), (1.0,)))
    value, tangent = run(2.0)
    h = 1e-2
    difference = (float(f(2.0 + h)) - float(f(2.0 - h))) / (2 * h)
    assert float(value) == pytest.approx(float(f(2.0)))
    assert float(tangent) == pytest.approx(difference, rel=2e-3)


def test_branch_not_taken_is_not_run():
    calls = lax.cond(jnp.array(False), lambda v: v / 0, lambda v: v + 1, 1.0)
    np.testing.assert_array_equal(np.asarray(calls), np.float32(2))


def test_cond_needs_equal_types_from_both_branches():
    with pytest.raises(TypeError, match=r"cond"):
        lax.cond(True, lambda v: v, lambda v: (v, v), 1.0)


def test_scan_needs_a_carry_of_one_type():
    with pytest.raises(TypeError, match=r"scan.*carry|carry.*scan"):
        lax.scan(lambda c, x: (jnp.stack([c, c]), x), 1.0, jnp.arange(3.0))
