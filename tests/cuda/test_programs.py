"""User programs on a GPU: values match the CPU, and results are on the GPU."""

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp import lax

rng = np.random.default_rng(0)
X = rng.standard_normal((6, 9)).astype("f4")
Y = rng.standard_normal((6, 9)).astype("f4")
V = rng.standard_normal(9).astype("f4")
SQUARE = (rng.standard_normal((5, 5)) + 5 * np.eye(5)).astype("f4")
N = rng.integers(-5, 9, (4, 7)).astype("i4")


def loss(w, x):
    h = jnp.tanh(x @ w["a"] + w["b"])
    return jnp.mean((jax.nn.log_softmax(h) ** 2).sum(-1))


W = {"a": rng.standard_normal((9, 4)).astype("f4"), "b": rng.standard_normal(4).astype("f4")}


def train(w, x):
    def step(w, _):
        value, g = jax.value_and_grad(loss)(w, x)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, g), value

    return lax.scan(step, w, None, length=3)


def newton(x):
    return lax.while_loop(
        lambda c: c[1] < 20, lambda c: (0.5 * (c[0] + x / c[0]), c[1] + 1), (x, 0)
    )[0]


# Functions of arrays, and arguments.
PROGRAMS = {
    "chain": (lambda x, y: jnp.sin(x) * jnp.exp(y) + x / (1 + y * y), X, Y),
    "broadcast": (lambda x, v: (x - v) * 2 + v[::-1], X, V),
    "transposed": (lambda x, y: x.T @ y + (x + y).T.sum(1), X, Y),
    "sums": (lambda x: [x.sum(), x.sum(0), x.mean(1), x.max(), x.min(0), x.prod(1), x.var(0)], X),
    "arg": (lambda x: [x.argmax(1), x.argmin(), (x > 0).any(0), (x > 9).all()], X),
    "softmax": (jax.nn.softmax, X),
    "layer norm": (
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
        X,
    ),
    "softmax of many rows": (jax.nn.softmax, rng.standard_normal((70, 200)).astype("f4")),
    "integers": (lambda n: [n // 3, n % 3, n << 2, abs(n), n.sum(0), n > 2, ~n], N),
    "complex": (lambda x, y: [(x + 1j * y) * (y - 1j * x), jnp.abs(x + 1j * y)], X, Y),
    "half": (lambda x: (x.astype(jnp.bfloat16) * 2).astype("f4") + x.astype("f2").astype("f4"), X),
    "joined": (
        lambda x, y: [jnp.concatenate([x, y], 1), jnp.stack([x, y]), jnp.pad(x, 1), jnp.roll(x, 2)],
        X,
        Y,
    ),
    "indexed": (
        lambda x, n: [x[:, 2:7:2], x[n[0] % 6], x[1, ::-1], jnp.take_along_axis(x, n[:1] % 9, 1)],
        X,
        N,
    ),
    "updated": (lambda x, n: [x.at[1].set(0), x.at[:, n[0] % 9].add(1), x.at[2, 3].mul(5)], X, N),
    "selected": (
        lambda x, y: [jnp.where(x > y, x, y), jnp.clip(x, -1, 1), jnp.maximum(x, y)],
        X,
        Y,
    ),
    "sorted": (lambda x: [jnp.sort(x, 1), jnp.argsort(x, 0), jnp.median(x, 1), lax.top_k(x, 2)], X),
    "running": (lambda x: [jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1)], X),
    "products": (
        lambda x, y, v: [x @ y.T, x @ v, jnp.einsum("ij,ij->i", x, y), jnp.outer(v, v), v @ v],
        X,
        Y,
        V,
    ),
    "linear algebra": (
        lambda a: [
            jnp.linalg.inv(a),
            jnp.linalg.solve(a, a[:, 0]),
            jnp.linalg.det(a),
            jnp.linalg.cholesky(a @ a.T),
            jnp.linalg.qr(a)[1] ** 2,
        ],
        SQUARE,
    ),
    "transforms": (
        lambda x: [jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(jnp.fft.rfft(x, axis=1), 9)],
        X,
    ),
    "convolution": (lambda x: lax.conv(x[None, None], jnp.ones((2, 1, 3, 3)), (1, 1), "SAME"), X),
    "special": (
        lambda x: [
            jax.scipy.special.gammaln(abs(x) + 1),
            jax.scipy.special.erf(x),
            jax.scipy.special.betainc(2.0, 3.0, jax.nn.sigmoid(x)),
        ],
        X,
    ),
    "gradient": (jax.grad(loss), W, X),
    "training": (train, W, X),
    "hessian": (jax.hessian(lambda v: (jnp.sin(v) * v).sum()), V),
    "jvp": (lambda x, y: jax.jvp(lambda a: jnp.tanh(a).sum(0), (x,), (y,)), X, Y),
    "vmap": (jax.vmap(lambda x, y: x @ y + jnp.sin(x).sum()), X, Y),
    "vmap of a loop": (jax.vmap(newton), np.abs(V) + 0.5),
    "while": (newton, np.float32(7)),
    "fori": (lambda x: lax.fori_loop(0, 4, lambda i, c: c * 1.5 + i, x), X),
    "fori over many": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, jnp.tile(x, (20, 2))),
        X,
    ),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(9), x), X),
    "scan of products": (
        lambda x: lax.scan(
            lambda c, r: (jnp.tanh(c @ r), r.sum()), jnp.ones((2, 5)), jnp.stack([x, x.T])
        ),
        SQUARE,
    ),
    "reversed scan": (
        lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(9), x, reverse=True),
        X,
    ),
    "cond": (lambda x: [lax.cond(x.sum() > k, jnp.sin, jnp.cos, x) for k in (-99, 99)], X),
    "switch": (
        lambda x, n: lax.switch(n[0, 0] % 3, [lambda v: v, lambda v: v * 2, lambda v: -v], x),
        X,
        N,
    ),
    "scan's gradient": (
        jax.grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c + r), c), jnp.zeros(9), x)[0].sum()),
        X,
    ),
    "random": (
        lambda n: [
            jax.random.uniform(jax.random.key(n[0, 0]), (5,)),
            jax.random.normal(jax.random.key(3), (2, 3)),
            jax.random.permutation(jax.random.key(1), n[0]),
            jax.random.bits(jax.random.key(2), (3,)),
        ],
        N,
    ),
    "searched": (
        lambda v, x: [
            jnp.searchsorted(jnp.sort(v), x[0]),
            jnp.histogram(x, 4)[0],
            jnp.bincount(abs(x[0]).astype(int), length=4),
        ],
        V,
        X,
    ),
    "empty": (lambda x: [x[:0].sum(0), x[:0] * 2, jnp.zeros((0, 3)).T], X),
}
# Where the GPU's library computes in another order, or what is computed is not unique.
LOOSE = {"linear algebra", "transforms", "convolution", "special"}


def compare(actual, expected, loose=False):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        rtol = 2e-4 if loose else 3e-6
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", ["eager", "jit"])
def test_program(name, way, gpu):
    f, *args = PROGRAMS[name]
    expected = jax.tree.map(np.asarray, f(*jax.tree.map(jnp.asarray, args)))
    there = jax.device_put(args, gpu)
    actual = (f if way == "eager" else jax.jit(f))(*there)
    for x in jax.tree.leaves(actual):
        if x.committed:
            assert x.devices() == {gpu}
    compare(actual, expected, name in LOOSE)
