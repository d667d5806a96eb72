"""Deleted and donated arrays: using one raises an error that names the call that deleted it."""

from __future__ import annotations

import jax as oracle
import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax


def make_deleted_array() -> jax.Array:
    x = jnp.arange(3.0)
    x.delete()
    return x


OPERATIONS = {
    "operator": lambda x: x * 2,
    "reflected": lambda x: 2 - x,
    "function": jnp.sin,
    "two operands": lambda x: jnp.add(jnp.ones(3), x),
    "index": lambda x: x[0],
    "slice": lambda x: x[1:],
    "index array": lambda x: jnp.ones(5)[x.astype(int)],
    "at": lambda x: x.at[0].set(1.0),
    "at value": lambda x: jnp.zeros(3).at[:].set(x),
    "method": lambda x: x.sum(),
    "transposed": lambda x: x.T,
    "reshape": lambda x: x.reshape(3),
    "astype": lambda x: x.astype(x.dtype),
    "asarray": jnp.asarray,
    "array": jnp.array,
    "list": lambda x: jnp.array([x, x]),
    "stack": lambda x: jnp.stack([x, jnp.ones(3)]),
    "lax": lambda x: lax.mul(x, x),
    "where": lambda x: jnp.where(x > 0, x, 0),
    "jit": lambda x: jax.jit(lambda a: a + 1)(x),
    "jit of a pytree": lambda x: jax.jit(lambda t: t["a"] + 1)({"a": x, "b": jnp.ones(2)}),
    "closed over": lambda x: jax.jit(lambda: x + 1)(),
    "returned": lambda x: jax.jit(lambda: x)(),
    "vmap": lambda x: jax.vmap(jnp.sin)(x),
    "grad": lambda x: jax.grad(jnp.sum)(x),
    "vjp": lambda x: jax.vjp(jnp.sin, x),
    "jvp": lambda x: jax.jvp(jnp.sin, (x,), (jnp.ones(3),)),
    "nested": lambda x: jax.vmap(jax.grad(lambda a: a * 2))(x),
    "scan": lambda x: lax.scan(lambda c, a: (c + a, a), 0.0, x),
    "tree.map": lambda x: jax.tree.map(lambda a: a + 1, [x]),
    "device_put": jax.device_put,
    "matmul": lambda x: x @ x,
    "numpy": np.asarray,
    "wait": lambda x: x.block_until_ready(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_raises_at_once(name: str) -> None:
    x = make_deleted_array()
    with pytest.raises(RuntimeError, match=r"^Array has been deleted with shape=float32\[3\]"):
        OPERATIONS[name](x)


def test_message_names_the_donating_call() -> None:
    def consume(a: jax.Array) -> jax.Array:
        return a + 1

    x = jnp.ones(3)
    jax.jit(consume, donate_argnums=0)(x)  # this line
    line = consume.__code__.co_firstlineno + 4
    with pytest.raises(RuntimeError) as caught:
        x * 2
    text = str(caught.value)
    assert "donated to consume" in text
    assert f"test_deleted_arrays.py:{line}" in text


def test_message_names_the_deletion() -> None:
    with pytest.raises(RuntimeError, match=r"Array\.delete was called on line .*_arrays\.py:\d+"):
        make_deleted_array() + 1


JITTED = {
    "array": (jax.jit(lambda a: a + 1), lambda f, x: f(x)),
    "NumPy array": (jax.jit(lambda a, b: a + b), lambda f, x: f(x, np.ones(3, np.float32))),
    "static": (jax.jit(lambda n, a: a + n, static_argnums=0), lambda f, x: f(1, x)),
    "keyword": (jax.jit(lambda a: a + 1), lambda f, x: f(a=x)),
    "pytree": (jax.jit(lambda t: t["a"] + 1), lambda f, x: f({"a": x})),
}


@pytest.mark.parametrize("calls", [1, 200])  # compiled; and enough for the call to be machine code
@pytest.mark.parametrize("name", JITTED)
def test_cached_jit_call_raises(name: str, calls: int) -> None:
    f, call = JITTED[name]
    for _ in range(calls):
        call(f, jnp.ones(3))
    with pytest.raises(RuntimeError, match=r"^Array has been deleted with .*Array\.delete was cal"):
        call(f, make_deleted_array())
    assert call(f, jnp.ones(3)).tolist() == [2, 2, 2]


def test_types_of_deleted_arrays_are_known() -> None:
    x = make_deleted_array()
    assert (x.shape, x.dtype.name, x.is_deleted()) == ((3,), "float32", True)
    assert not isinstance(x, jax.core.Tracer)
    assert jax.tree.map(jnp.shape, {"a": x}) == {"a": (3,)}
    assert jax.eval_shape(jnp.sin, x).shape == (3,)
    x.delete()


def test_earlier_operations_keep_the_value() -> None:
    x = jnp.arange(3.0)
    y = x + 1
    jax.jit(lambda a: a * 2, donate_argnums=0)(x)
    assert y.tolist() == [1, 2, 3]


def test_donated_position_passed_by_keyword() -> None:
    f = jax.jit(lambda u, v: v * 2 + u, donate_argnums=1)
    x, y = jnp.ones(3), jnp.ones(3) * 4
    assert f(x, v=y).tolist() == [9, 9, 9]
    assert (x.is_deleted(), y.is_deleted()) == (False, True)
    z = jnp.ones(3)
    f(v=z, u=x)
    assert (x.is_deleted(), z.is_deleted()) == (False, True)


def test_class_of_an_escaped_tracer() -> None:
    escaped = []
    jax.jit(lambda x: escaped.append(x) or x)(1.0)
    assert isinstance(escaped[0], jax.core.Tracer)


def test_compiled_stages_take_donated_arrays() -> None:
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    compiled = f.lower(jax.ShapeDtypeStruct((3,), jnp.float32)).compile()
    for call in (compiled, f.lower(jnp.ones(3)).compile(), compiled.call):
        y = jnp.ones(3)
        assert call(y).tolist() == [2.0, 2.0, 2.0]
        assert y.is_deleted()
        with pytest.raises(RuntimeError, match="donated to <lambda>"):
            call(y)


UNUSED = {
    "jit": lambda m, x: m.jit(lambda a, b: b + 1)(x, m.numpy.ones(3)),
    "removed operation": lambda m, x: m.jit(lambda a, b: (a + 1, b)[1])(x, m.numpy.ones(3)),
    "shape": lambda m, x: m.jit(lambda a: m.numpy.zeros_like(a) + a.shape[0])(x),
    "pytree": lambda m, x: m.jit(lambda t: t["b"] * 2)({"a": x, "b": m.numpy.ones(3)}),
    "keyword": lambda m, x: m.jit(lambda a, b: b * 2)(b=m.numpy.ones(3), a=x),
    "donated": lambda m, x: m.jit(lambda a, b: b + 1, donate_argnums=0)(x, m.numpy.ones(3)),
    "static": lambda m, x: m.jit(lambda a, n: n * 1.0, static_argnums=1)(x, 2),
    "jit in jit": lambda m, x: m.jit(lambda a, b: m.jit(lambda a, b: b)(a, b))(x, m.numpy.ones(3)),
    "compiled": lambda m, x: (
        m.jit(lambda a, b: b + 1)
        .lower(m.numpy.ones(3), m.numpy.ones(3))
        .compile()(x, m.numpy.ones(3))
    ),
    "vmap": lambda m, x: m.vmap(lambda a, b: b + 1)(x, m.numpy.ones(3)),
    "vmap, shared": lambda m, x: m.vmap(lambda a, b: b + 1, (None, 0))(x, m.numpy.ones(3)),
    "jit of vmap": lambda m, x: m.jit(m.vmap(lambda a, b: b + 1))(x, m.numpy.ones(3)),
    "jit of grad": lambda m, x: m.jit(m.grad(lambda a, b: b.sum(), 1))(x, m.numpy.ones(3)),
    "jit of a linear function's grad": lambda m, x: m.jit(m.grad(lambda a: a.sum()))(x),
    "grad of jit": lambda m, x: m.grad(m.jit(lambda a, b: b.sum()), 1)(x, m.numpy.ones(3)),
    "checkpoint": lambda m, x: m.checkpoint(lambda a, b: b + 1)(x, m.numpy.ones(3)),
}


@pytest.mark.parametrize("name", UNUSED)
def test_unused_arguments_may_be_deleted(name: str) -> None:
    x = oracle.numpy.arange(3.0)
    x.delete()
    np.testing.assert_array_equal(UNUSED[name](jax, make_deleted_array()), UNUSED[name](oracle, x))


@pytest.mark.parametrize("calls", [1, 200])
def test_cached_calls_with_unused_deleted_arguments(calls: int) -> None:
    f = jax.jit(lambda a, b: b + 1)
    for _ in range(calls):
        f(jnp.ones(3), jnp.ones(3))
    assert f(make_deleted_array(), jnp.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        f(jnp.ones(3), make_deleted_array())


def test_keep_unused_refuses_deleted_arrays() -> None:
    for m in (jax, oracle):
        x = m.numpy.arange(3.0)
        x.delete()
        f = m.jit(lambda a, b: b + 1, keep_unused=True)
        with pytest.raises(RuntimeError, match="deleted"):
            f(x, m.numpy.ones(3))


def test_transformations_keep_donated_arguments() -> None:
    f = jax.jit(lambda a: a * 2, donate_argnums=0)
    for call in (jax.vmap(f), jax.grad(lambda x: f(x).sum()), jax.checkpoint(f)):
        x = jnp.ones(3) * 2
        call(x)
        assert x.tolist() == [2, 2, 2]
