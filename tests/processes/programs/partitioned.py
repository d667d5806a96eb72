"""Functions of sharded arrays, eager and jitted, compared with the same functions of unsharded
arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from processes.program_helpers import assert_raises, gather

import accnp as jnp
from accnp import P

jnp.distributed.initialize()
me, n = jnp.process_index(), jnp.process_count()
rng = np.random.default_rng(0)
A, B, W1, W2, Y = (
    rng.standard_normal(s).astype(np.float32) for s in ((8, 12), (8, 12), (12, 16), (16, 4), (8, 4))
)


def loss(p, x, y, sharding=None):
    hidden = jnp.maximum(x @ p[0], 0)
    return ((jnp.matmul(hidden, p[1], out_sharding=sharding) - y) ** 2).mean()


def whole(y):
    return np.asarray(gather(y))


def same(actual, expected):
    for f, w in zip(jnp.tree.leaves(actual), jnp.tree.leaves(expected), strict=True):
        assert np.allclose(whole(f), w, rtol=1e-4, atol=1e-5), (f, w)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "map": lambda a, b: jnp.sin(a) * b + 1,
    "sums": lambda a, b: (a.sum(), a.sum(0), a.sum(1), a.mean(), a.std(1), a.var()),
    "extremes": lambda a, b: (a.max(0), a.min(), (a > 0).all(0), (a > 0).any(1), a.argmax(1)),
    "product": lambda a, b: a.prod(0),
    "bits": lambda a, b: [
        reduce((a * 16).astype(int), (0,))
        for reduce in (jnp.lax.reduce_and, jnp.lax.reduce_or, jnp.lax.reduce_xor)
    ],
    "softmax": lambda a, b: (jnp.nn.softmax(a, 1), jnp.nn.logsumexp(a, 1), jnp.nn.relu(a)),
    "parts": lambda a, b: (a[:, 2:5], jnp.concatenate([a, b], 1), jnp.roll(a, 1, 1), a.T),
    "shapes": lambda a, b: (a.reshape(8, 3, 4), a.reshape(96), jnp.broadcast_to(a, (2, 8, 12))),
    "rows": lambda a, b: (jnp.cumsum(a, 1), jnp.sort(a, 1), a.at[:, 0].set(0), a[:, [3, 1]]),
    "nested": lambda a, b: jnp.jit(lambda u, v: (u * v).sum(0) @ u.T)(a, b),
    "gradient": lambda a, b: jnp.grad(lambda u: (jnp.tanh(u) * b).sum())(a),
    "tangent": lambda a, b: jnp.jvp(lambda u: jnp.sin(u).sum(), (a,), (b,)),
    "vmap": lambda a, b: jnp.vmap(lambda u: u * 2 + u.sum())(a),
    "mixed": lambda a, b: a + np.float32(1) * jnp.ones(12) * jnp.arange(8.0)[:, None],
    "random": lambda a, b: a * jnp.random.normal(jnp.random.key(0), (8, 12)),
}
for kind in (jnp.sharding.AxisType.Explicit, jnp.sharding.AxisType.Auto):
    mesh = jnp.make_mesh((n,), ("x",), (kind,))

    def put(a, *spec, mesh=mesh):
        return jnp.device_put(a, jnp.NamedSharding(mesh, P(*spec)))

    a, b = put(A, "x"), put(B, "x")
    for function in FUNCTIONS.values():
        want = function(jnp.asarray(A), jnp.asarray(B))
        same(function(a, b), want)
        same(jnp.jit(function)(a, b), want)
    # Data-parallel training: gradients of whole parameters are summed over the processes.
    want = jnp.value_and_grad(loss)((jnp.asarray(W1), jnp.asarray(W2)), jnp.asarray(A), Y)
    parameters = put(W1), put(W2)
    for f in (jnp.value_and_grad(loss), jnp.jit(jnp.value_and_grad(loss))):
        same(f(parameters, put(A, "x"), put(Y, "x")), want)
    # Tensor-parallel: the second product contracts over what both operands are cut along.
    parameters = put(W1, None, "x"), put(W2, "x")
    for f in (jnp.value_and_grad(loss), jnp.jit(jnp.value_and_grad(loss), static_argnums=3)):
        if kind is jnp.sharding.AxisType.Explicit:
            call = partial(f, parameters, put(A), put(Y))
            assert_raises(jnp.errors.ShardingTypeError, "ambiguous", call)
            # out_sharding decides: whole results, or rows of the results in each process.
            for spec in (P(), P("x")):
                sharding = jnp.NamedSharding(mesh, spec)
                value, grads = f(parameters, put(A), put(Y, *spec), sharding)
                same((value, grads), want)
                assert [g.sharding.spec for g in grads] == [P(None, "x"), P("x")]
            continue
        value, grads = f(parameters, put(A), put(Y))
        same((value, grads), want)
        assert [g.sharding.spec for g in grads] == [P(None, "x"), P("x")]


# Loops over what whole arrays give: a training loop whose data are sharded.
def trained(w, x):
    def step(w, _):
        value, g = jnp.value_and_grad(lambda w: (jnp.sin(x @ w) ** 2).mean())(w)
        return w - 0.1 * g, value

    return jnp.lax.scan(step, w, None, length=5)


mean = jnp.shard_map(
    lambda w, x: jnp.lax.pmean((jnp.sin(x @ w) ** 2).mean(), "x"),
    mesh=mesh, in_specs=(P(), P("x")), out_specs=P(),
)  # fmt: skip


def trained_on_shards(w):
    def step(w, _):
        value, g = jnp.value_and_grad(mean)(w, a)
        return w - 0.1 * g, value

    return jnp.lax.scan(step, w, None, length=5)


for f in (trained_on_shards, jnp.jit(trained_on_shards)):
    same(f(jnp.ones(12)), trained(jnp.ones(12), jnp.asarray(A)))


# A function of shards takes sharded arrays as arguments only.
def closing(f):
    return lambda: jnp.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


everywhere = jnp.device_put(jnp.ones(12), jnp.NamedSharding(mesh, P()))
same(closing(lambda x: x * everywhere)(), jnp.asarray(A))
assert_raises(
    NotImplementedError, "cannot close over a sharded array", closing(lambda x: x * a.sum(1))
)
assert_raises(NotImplementedError, "cannot close over a sharded array", closing(lambda x: x @ a.T))
assert_raises(
    NotImplementedError,
    "a loop in a function of shards cannot use an array over several processes",
    closing(lambda x: jnp.lax.fori_loop(0, 2, lambda i, s: s * everywhere, x)),
)

# What a plan sends is shown.
total = jnp.jit(lambda a: a.sum(0))
text = str(jnp.explain(total, a))
assert "psum_invariant" not in text
assert f"a message of psum over 'x': each of {n} processes sends {48 * (n - 1)} B" in text, text
assert "a message of psum" in str(jnp.inspect(total)(a))
text = str(jnp.explain(jnp.jit(trained_on_shards), jnp.ones(12)))
assert "in each iteration: a message of psum over 'x'" in text, text
explicit = jnp.make_mesh((n,), ("x",))
rows, columns = (jnp.NamedSharding(explicit, spec) for spec in (P("x"), P(None, "x")))
u, v = jnp.device_put(A, columns), jnp.device_put(A.T, rows)
for sharding, message in ((columns.whole(), "psum"), (rows, "reduce_scatter")):
    text = str(jnp.explain(jnp.jit(partial(jnp.matmul, out_sharding=sharding)), u, v))
    assert f"a message of {message} over 'x'" in text, text

# Batching moves the values of all examples.
same(jnp.vmap(lambda x: jnp.reshard(x, rows))(u), A)
product = partial(jnp.matmul, out_sharding=rows)
same(jnp.vmap(product)(u[None], v[None]), (A @ A.T)[None])
print(f"process {me} is done")
