"""A vmapped expression becomes as many steps, of the same forms, as the one batched by hand."""

import numpy as np
import pytest
from compiler.fusion.support import steps_of

import accnp as jnp

B, N, M = 16, 24, 40
X = np.linspace(-1, 1, B * N, dtype=np.float32).reshape(B, N)
Y = np.linspace(0.5, 2, B * N, dtype=np.float32).reshape(B, N)
V = np.linspace(-1, 1, N, dtype=np.float32)
S = np.linspace(-1, 1, B, dtype=np.float32)
A = np.linspace(-1, 1, B * N * M, dtype=np.float32).reshape(B, N, M)
C = np.linspace(-1, 1, B * M * N, dtype=np.float32).reshape(B, M, N)
W = np.linspace(-1, 1, N * M, dtype=np.float32).reshape(N, M)
I = np.arange(B, dtype=np.int32) % N  # noqa: E741


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, scale):
    m = x.mean(-1, keepdims=True)
    return (x - m) / jnp.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * scale


def laplace(u):
    return u[..., 2:, 1:-1] + u[..., :-2, 1:-1] + u[..., 1:-1, 2:] + u[..., 1:-1, :-2]


# name: (one example, in_axes, by hand, arrays)
CASES = {
    "polynomial": (lambda x: x * x + 2 * x, 0, lambda x: x * x + 2 * x, [X]),
    "two operands": (lambda x, y: jnp.sin(x) * y, 0, lambda x, y: jnp.sin(x) * y, [X, Y]),
    "one of them whole": (lambda x, v: x * v + 1, (0, None), lambda x, v: x * v + 1, [X, V]),
    "a number for each": (lambda x, s: x * s, 0, lambda x, s: x * s[:, None], [X, S]),
    "only the number mapped": (lambda v, s: v * s, (None, 0), lambda v, s: v * s[:, None], [V, S]),
    "other axis": (lambda x: jnp.exp(x) + 1, 1, lambda x: jnp.exp(x.T) + 1, [X]),
    "where": (
        lambda x, y: jnp.where(x > 0, x, y * 2),
        0,
        lambda x, y: jnp.where(x > 0, x, y * 2),
        [X, Y],
    ),
    "sum": (lambda x: (x * x).sum(), 0, lambda x: (x * x).sum(1), [X]),
    "sum and max": (lambda x: (x.sum(), x.max()), 0, lambda x: (x.sum(1), x.max(1)), [X]),
    "sum of columns": (lambda x: x.sum(), 1, lambda x: x.T.sum(1), [X]),
    "mean over two axes": (lambda a: a.mean(), 0, lambda a: a.mean((1, 2)), [A]),
    "mean over the first": (lambda a: a.mean(0), 0, lambda a: a.mean(1), [A]),
    "norm": (
        lambda x: x / jnp.sqrt((x * x).sum()),
        0,
        lambda x: x / jnp.sqrt((x * x).sum(1, keepdims=True)),
        [X],
    ),
    "softmax": (softmax, 0, softmax, [X]),
    "softmax over two axes": (jnp.vectorize(softmax, signature="(n)->(n)"), 0, softmax, [A]),
    "layer norm": (layer_norm, (0, None), layer_norm, [X, V]),
    "variance": (lambda x: x.var(), 0, lambda x: x.var(1), [X]),
    "stencil": (laplace, 0, laplace, [A]),
    "outer product": (
        lambda x, y: x[:, None] * y[None, :],
        0,
        lambda x, y: x[:, :, None] * y[:, None, :],
        [X, Y],
    ),
    "distances": (
        lambda x, y: ((x - y) ** 2).sum(),
        (0, None),
        lambda x, y: ((x - y) ** 2).sum(1),
        [X, V],
    ),
    "all pairs": (
        jnp.vmap(lambda x, y: ((x - y) ** 2).sum(), (None, 0)),
        (0, None),
        lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1),
        [X, Y],
    ),
    "inner product": (jnp.dot, 0, lambda x, y: jnp.einsum("bn,bn->b", x, y), [X, Y]),
    "matrix and vector": (jnp.dot, (0, None), lambda a, v: a @ v, [C, V]),
    "matrix, one of both": (lambda x, w: x @ w, (0, None), lambda x, w: x @ w, [X, W]),
    "matrices": (jnp.matmul, 0, jnp.matmul, [A, C]),
    "layer": (
        lambda x, w, b: jnp.maximum(x @ w + b, 0),
        (0, None, None),
        lambda x, w, b: jnp.maximum(x @ w + b, 0),
        [X, W, W[0]],
    ),
    "transposed": (lambda a: a.T * 2, 0, lambda a: a.transpose(0, 2, 1) * 2, [A]),
    "concatenated": (
        lambda x, y: jnp.concatenate([x, y * 2]),
        0,
        lambda x, y: jnp.concatenate([x, y * 2], 1),
        [X, Y],
    ),
    "reversed": (lambda x: x[::-1] + x, 0, lambda x: x[:, ::-1] + x, [X]),
    "cumulative": (lambda x: jnp.cumsum(x * 2), 0, lambda x: jnp.cumsum(x * 2, 1), [X]),
    "sorted": (lambda x: jnp.sort(x * 2), 0, lambda x: jnp.sort(x * 2, 1), [X]),
    "indexed": (
        lambda x, i: x[i] * 2,
        0,
        lambda x, i: jnp.take_along_axis(x, i[:, None], 1)[:, 0] * 2,
        [X, I],
    ),
    "psum": (
        lambda x: x / jnp.lax.psum(x, "rows"),
        0,
        lambda x: x / x.sum(0),
        [X],
    ),
    "pmean and all_gather": (
        lambda x: (jnp.lax.all_gather(x, "rows") - jnp.lax.pmean(x, "rows")).sum(),
        0,
        lambda x: jnp.broadcast_to((x - x.mean(0)).sum(), (B,)),
        [X],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_vmap_uses_as_many_kernels_as_manual_batching(name):
    one, axes, by_hand, arrays = CASES[name]
    mapped = jnp.vmap(one, axes, axis_name="rows")
    actual = [np.asarray(y) for y in jnp.tree.leaves(mapped(*arrays))]
    expected = [np.asarray(y) for y in jnp.tree.leaves(by_hand(*arrays))]
    for g, w in zip(actual, expected, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
    assert steps_of(mapped, *arrays) == steps_of(by_hand, *arrays)
