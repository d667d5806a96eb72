"""Derivatives and batches of whole programs have the same values, dtypes and weak types
as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from api.oracle import jax_result

import accnp


def f32(x: Any) -> np.ndarray:
    return np.asarray(x, np.float32)


X = f32(np.linspace(-2, 2.5, 12).reshape(3, 4))
V = f32([1.0, -1.5, 2.0, 0.3])
Program = Callable[[Any, Any], Any]
PROGRAMS: dict[str, Program] = {
    "softmax": lambda m, n: m.grad(lambda x: (m.nn.softmax(x, axis=-1)[:, 0] ** 2).sum())(X),
    "logsumexp": lambda m, n: m.grad(lambda x: n.sum(n.log(n.sum(n.exp(x), 1))))(X),
    "jit of grad": lambda m, n: m.jit(m.grad(lambda x: n.sum(n.sin(x) * x)))(X),
    "grad of jit": lambda m, n: m.grad(m.jit(lambda x: n.sum(n.sin(x) * x)))(X),
    "grad of jit of grad": lambda m, n: m.grad(
        lambda y: m.jit(m.grad(lambda x: n.sum(n.sin(x) * x * y)))(X).sum()
    )(2.0),
    "hessian": lambda m, n: m.hessian(lambda x: n.sum(n.sin(x) * x**3))(V),
    "jit of hessian": lambda m, n: m.jit(m.hessian(lambda x: n.prod(n.sin(x) * x**3)))(V),
    "max": lambda m, n: m.grad(lambda x: n.max(x, axis=0).sum())(X),
    "max ties": lambda m, n: m.grad(lambda x: n.max(x))(f32([1, 3, 3, 2])),
    "maximum ties": lambda m, n: m.grad(lambda x: n.maximum(x, 1.0).sum())(f32([0, 1, 2])),
    "std": lambda m, n: m.grad(lambda x: n.std(x, axis=0).sum())(X),
    "slices": lambda m, n: m.grad(lambda x: (x[1:, ::2] * x[0, 1]).sum())(X),
    "at add": lambda m, n: m.grad(
        lambda x: (n.zeros(5).at[n.array([1, 1, 3])].add(x[0, :3] * x[1, :3]) ** 2).sum()
    )(X),
    "gather": lambda m, n: m.grad(lambda x: (x[n.array([0, 2, 2])] ** 2).sum())(X),
    "where, dead nan": lambda m, n: m.grad(
        lambda x: n.where(x > 0, n.log(n.where(x > 0, x, 1.0)), 0.0).sum()
    )(X),
    "where, live nan": lambda m, n: m.grad(lambda x: n.where(x > 0, n.sqrt(x), 0.0).sum())(
        f32([0.0, -1.0, 4.0])
    ),
    "abs": lambda m, n: m.grad(lambda x: n.abs(x).sum())(f32([0.0, -0.0, -1, 2])),
    "clip": lambda m, n: m.grad(lambda x: n.clip(x, -1.0, 1.0).sum())(f32([-2, -1, 0, 1, 2])),
    "relu": lambda m, n: m.grad(lambda x: m.nn.relu(x).sum())(f32([-1, 0, 1])),
    "sqrt at 0": lambda m, n: m.grad(lambda x: n.sqrt(x).sum())(f32([0, 1])),
    "powers": lambda m, n: m.grad(lambda x, y: (x**y).sum(), (0, 1))(
        f32([0.0, 1, 2]), f32([0.0, 2.0, 3.0])
    ),
    "power 0": lambda m, n: m.grad(lambda x: x**0)(0.0),
    "power 1": lambda m, n: m.grad(m.grad(lambda x: x**1))(0.0),
    "power 2": lambda m, n: m.grad(m.grad(lambda x: x**2))(0.0),
    "prod with zero": lambda m, n: m.grad(lambda x: n.prod(x))(f32([0.0, -1, 2])),
    "prod with zeros": lambda m, n: m.hessian(lambda x: n.prod(x))(f32([0.0, 0.0, 2])),
    "sort": lambda m, n: m.grad(lambda x: (n.sort(x, axis=1) * n.arange(4.0)).sum())(X),
    "cumulative": lambda m, n: m.grad(lambda x: (n.cumsum(n.cumprod(x, 1), 1) ** 2).sum())(X),
    "concatenate": lambda m, n: m.grad(lambda x: (n.concatenate([x, x * 2], 1) ** 2).sum())(X),
    "scan": lambda m, n: m.grad(
        lambda x: m.lax.scan(lambda c, v: (c * n.sin(v), c + v), n.ones(4), x)[1].sum()
    )(X),
    "hessian of scan": lambda m, n: m.hessian(
        lambda x: m.lax.scan(lambda c, v: (c * n.sin(v), c + v), 1.0, x)[1].sum()
    )(V),
    "cond": lambda m, n: m.vmap(
        m.grad(lambda x: m.lax.cond(x.sum() > 0, lambda x: (x**2).sum(), lambda x: x.sum(), x))
    )(X),
    "fori": lambda m, n: m.grad(lambda x: m.lax.fori_loop(0, 3, lambda i, c: c * x, 1.0))(1.5),
    "while forward": lambda m, n: m.jvp(
        lambda x: m.lax.while_loop(lambda c: c < 100, lambda c: c * x, 1.0), (1.5,), (1.0,)
    ),
    "jacfwd of while": lambda m, n: m.jacfwd(
        lambda x: m.lax.while_loop(lambda c: c < 100, lambda c: c * x, 1.0)
    )(1.5),
    "jacrev": lambda m, n: m.jacrev(lambda x: n.sin(x) * x[0])(X),
    "jacfwd": lambda m, n: m.jacfwd(lambda x: n.sin(x) * x[0])(X),
    "jacobian of trees": lambda m, n: m.jacrev(lambda p: {"s": p["a"] * p["b"], "t": p["a"]})(
        {"a": V, "b": f32(2)}
    ),
    "jacfwd of trees": lambda m, n: m.jacfwd(
        lambda p, q: [p["a"] * p["b"] * q, p["a"]], argnums=(0, 1)
    )({"a": V, "b": f32(2)}, f32(3)),
    "unused argument": lambda m, n: m.grad(lambda x, y: x.sum(), (0, 1))(X, V),
    "linearize": lambda m, n: m.linearize(lambda x: n.sin(x) * x, V)[1](V),
    "vjp": lambda m, n: m.vjp(lambda x, y: (x * y, n.sin(x)), V, 2.0)[1]((V, V)),
    "linear_transpose": lambda m, n: m.linear_transpose(lambda x: n.cumsum(x) * 3.0, V)(V),
    "complex": lambda m, n: m.grad(lambda z: n.abs(z * z + 1.0).sum())(V[:2] + 1j * V[2:]),
    "complex exp": lambda m, n: m.grad(lambda z: n.real(n.exp(z) * n.conj(z)).sum())(
        V[:2] + 1j * V[2:]
    ),
    "holomorphic": lambda m, n: m.grad(lambda z: z**3, holomorphic=True)(1.0 + 2.0j),
    "real to complex": lambda m, n: m.jvp(lambda x: n.exp(1j * x), (V,), (V,)),
    "imag": lambda m, n: m.grad(lambda x: n.imag(n.exp(1j * x)).sum())(V),
    "vmap": lambda m, n: m.vmap(lambda a, b: n.dot(a, b) * a)(X, X),
    "vmap out axes": lambda m, n: m.vmap(
        lambda d, y: (d["a"] * y, n.sum(y)), in_axes=({"a": 1}, None), out_axes=(-1, None)
    )({"a": X}, X[:, 0]),
    "vmap of scan": lambda m, n: m.vmap(lambda v: m.lax.scan(lambda c, a: (c + a, c * a), 0.0, v))(
        X
    ),
    "vmap of while": lambda m, n: m.vmap(
        lambda v: m.lax.while_loop(lambda c: c < 10, lambda c: c * 2 + 1, v)
    )(f32([1, 2, 3])),
    "vmap of vmap": lambda m, n: m.vmap(m.vmap(lambda a, b: a * b + 1, (0, None)), (0, 0))(
        X, f32([1, 2, 3])
    ),
    "vmap of jit of grad": lambda m, n: m.vmap(m.jit(m.grad(lambda x: (x * n.sin(x)).sum())))(X),
    "vmap of indexing": lambda m, n: m.vmap(lambda x, i: x[i])(X, np.array([0, 3, 9])),
    "vmap of update": lambda m, n: m.vmap(lambda x, i: x.at[i].set(7.0))(X, np.array([0, 3, 1])),
    "vmap axis_size": lambda m, n: m.vmap(lambda: n.ones(2), axis_size=3)(),
    "vmap with plain values": lambda m, n: m.vmap(
        lambda x, how, k: (n.sin(x) if how == "sin" and k > 1 else x) * k, (0, None, None)
    )(X, "sin", 2),
    "per-example gradient": lambda m, n: m.vmap(
        m.value_and_grad(lambda w, x: n.sum(n.tanh(w * x))), (None, 0)
    )(V, X),
    "gradient of mapped": lambda m, n: m.grad(
        lambda w: n.sum(m.vmap(lambda x: n.tanh(w * x))(X) ** 2)
    )(V),
    "jvp of grad": lambda m, n: m.jvp(m.grad(lambda x: n.sum(n.exp(x) * x)), (V,), (V,)),
    "grad of jvp": lambda m, n: m.grad(
        lambda x: m.jvp(lambda y: n.sum(n.sin(y) * x), (x,), (n.ones(4),))[1]
    )(V),
    "third derivative": lambda m, n: m.grad(m.grad(m.grad(n.tanh)))(1.0),
    "aux": lambda m, n: m.value_and_grad(lambda x: (x.sum(), {"y": x * 2}), has_aux=True)(V),
    "stop_gradient": lambda m, n: m.grad(lambda x: (x * m.lax.stop_gradient(x)).sum())(V),
    "int and float": lambda m, n: m.grad(lambda x, i: (x * i).sum())(V, np.arange(4)),
    "arg sort and top_k": lambda m, n: m.grad(lambda x: m.lax.top_k(x, 2)[0].sum())(V),
    "checkpoint": lambda m, n: m.grad(m.checkpoint(lambda x: n.sum(n.sin(x) ** 2)))(V),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_jax(name: str) -> None:
    program = PROGRAMS[name]
    expected = jax_result(lambda: jax.tree.leaves(program(jax, jax.numpy)), program)
    actual = accnp.tree_util.tree_leaves(program(accnp, accnp.numpy))
    assert len(actual) == len(expected)
    for g, w in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-5, atol=1e-5)
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        assert g.weak_type == w.weak_type
