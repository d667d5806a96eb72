"""Composite functions are single equations in jaxprs, and can be bound with programs,
batched and differentiated.
"""

from __future__ import annotations

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax


def test_complex_numbers_are_true_where_either_part_is_not_zero():
    assert jnp.array(np.array([0, 1j, 1]), dtype=bool).tolist() == [False, True, True]
    assert bool(jnp.array(1j, dtype=bool))
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        assert jnp.full(2, 1j, dtype=bool).all()


def test_compositions_are_equations_of_their_own():
    def f(x):
        first, second = lax.split(lax.tile(lax.stack([x, x]), (2, 1)), (1, 3))
        return lax.unstack(second)[0] + first[0], lax.mulhi(3, 4)

    names = [str(e.primitive) for e in jax.make_jaxpr(f)(jnp.ones(3)).eqns]
    assert names[:4] == ["stack", "tile", "split", "unstack"]
    assert "mulhi" in names


def test_a_composite_holds_its_program_and_is_evaluated_again():
    def f(x):
        return lax.composite(lambda a, *, k: jnp.sin(a) * k, "my.scaled", version=3)(x, k=2)

    closed = jax.make_jaxpr(f)(1.0)
    (eqn,) = closed.eqns
    assert (eqn.params["name"], eqn.params["version"]) == ("my.scaled", 3)
    assert [str(e.primitive) for e in eqn.params["jaxpr"].eqns] == ["sin", "mul"]
    (out,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 0.5)
    assert out == f(0.5)
    assert jax.grad(f)(0.0) == 2
    assert jax.vmap(f)(jnp.zeros(3)).shape == (3,)


def _pair(fn):
    return jax.make_jaxpr(fn)(1.0, 2.0).jaxpr


_WINDOW = {"window_dimensions": (2,), "window_strides": (2,), "padding": ((0, 0),)}
_DILATED = {**_WINDOW, "base_dilation": (1,), "window_dilation": (1,)}


def test_primitives_take_programs():
    x, add = jnp.array([1.0, 3.0, 2.0, 0.0]), _pair(lax.add)
    assert lax.reduce_p.bind(x, 0.0, jaxpr=add, dimensions=(0,))[0] == 6
    assert lax.reduce_window_p.bind(x, 0.0, jaxpr=add, **_DILATED)[0].tolist() == [4, 2]
    programs = {"select_jaxpr": _pair(lax.ge), "scatter_jaxpr": add}
    out = lax.select_and_scatter_p.bind(x, jnp.ones(2), 0.0, **programs, **_WINDOW)
    assert out.tolist() == [0, 1, 1, 0]
    programs["scatter_jaxpr"] = _pair(lax.mul)
    with pytest.raises(NotImplementedError, match="select_and_scatter"):
        lax.select_and_scatter_p.bind(x, jnp.ones(2), 0.0, **programs, **_WINDOW)


def test_primitives_of_ops_take_the_parameters_of_jax():
    x = jnp.array([1.0, 3.0, 2.0, 0.0])
    out = lax.select_and_scatter_add_p.bind(jnp.ones(2), x, select_prim=lax.ge_p, **_DILATED)
    assert out.tolist() == [0, 1, 1, 0]
    put = lax.device_put_p.bind(x, devices=(jax.devices()[0],), srcs=(None,))
    assert put[0].tolist() == x.tolist()
    assert lax.reduce_precision_p.bind(1.1, exponent_bits=5, mantissa_bits=2) == 1
    best, where = lax.approx_top_k_p.bind(x, k=2, reduction_dimension=-1, is_max_k=False)
    assert (best.tolist(), where.tolist()) == ([0, 1], [3, 0])
    text = str(jax.make_jaxpr(lambda v: lax.reduce_precision(v, 5, 10))(x))
    assert "reduce_precision[exponent_bits=5 mantissa_bits=10]" in text


def test_tokens_are_empty():
    token = lax.after_all(lax.create_token(1.0), lax.create_token())
    assert token.block_until_ready() is None
    assert jax.tree.leaves(jax.jit(lambda x: (x, lax.create_token(x)))(1.0)) == [1.0]


def test_sinks_stay_in_jaxprs():
    (eqn,) = jax.make_jaxpr(lambda x: lax.dce_sink({"a": x}))(1.0).eqns
    assert str(eqn.primitive) == "dce_sink"


def test_ragged_exchange_of_rows():
    """Member i sends i + 1 rows to member 0, and one row to member 1."""
    x = jnp.arange(6.0).reshape(2, 3)

    def send(rows, me):
        sizes = jnp.array([me + 1, 1])
        starts, places = jnp.array([0, 2]), jnp.array([me, me])
        return lax.ragged_all_to_all(
            rows, jnp.full(3, -1.0), starts, sizes, places, sizes, axis_name="i"
        )

    out = jax.vmap(send, axis_name="i")(x, jnp.arange(2))
    assert out.tolist() == [[0, 3, 4], [2, 5, -1]]
    with pytest.raises(NotImplementedError, match="ppermute"):
        lax.psend(x, "i", [(0, 1)])


def test_numbers_without_a_key_are_new_in_each_call_of_a_program():
    draw = jax.jit(lambda: lax.rng_uniform(jnp.float32(2), jnp.float32(3), (4,)))
    first, second = draw(), draw()
    assert ((first >= 2) & (first < 3)).all()
    assert (first != second).any()
    assert set(lax.rng_uniform(jnp.int32(0), jnp.int32(2), (64,)).tolist()) == {0, 1}
