"""Programs whose jaxprs are compared with those of JAX. Each is written once for both
libraries.

`PROGRAMS[name](m)` returns a function and its arguments, for a library `m` with JAX's names.
`python tests/ir/jaxpr_programs.py` regenerates `expected/jaxprs.json` with JAX.
"""

import json
from pathlib import Path

import numpy as np

EXPECTED = Path(__file__).with_name("expected") / "jaxprs.json"

X = np.linspace(0.5, 2.0, 3, dtype=np.float32)
M = np.linspace(0.5, 2.0, 12, dtype=np.float32).reshape(3, 4)
S = np.eye(3, dtype=np.float32) * 2
I = np.arange(3, dtype=np.int32)  # noqa: E741
B = np.array([True, False, True])


def _log2(m):
    def f(x):
        return m.numpy.log(x) / m.numpy.log(2.0)

    return f


def _selu(m):
    def selu(x, alpha=1.67, lmbda=1.05):
        return lmbda * m.numpy.where(x > 0, x, alpha * m.numpy.exp(x) - alpha)

    return selu


def _newton(m):
    def f(x):
        return m.lax.while_loop(lambda s: s * s > x + 1e-3, lambda s: 0.5 * (s + x / s), x)

    return f


def _mlp(m):
    def loss(w, b, x):
        return m.numpy.sum(m.numpy.tanh(m.numpy.dot(x, w) + b) ** 2)

    return loss


def _cell(m):
    def f(c, xs):
        return m.lax.scan(lambda c, x: (c * 0.5 + x, c * x), c, xs)

    return f


PROGRAMS = {
    # elementwise
    "log2": lambda m: (_log2(m), (3.0,)),
    "polynomial": lambda m: (lambda x: 2 * x * x + 3 * x + 3, (3,)),
    "integer power": lambda m: (lambda x: x**2, (X,)),
    "power": lambda m: (lambda x, y: x**y, (X, X)),
    "float power": lambda m: (lambda x: x**0.5, (X,)),
    "arithmetic": lambda m: (lambda x, y: (x + y) * (x - y) / y, (X, X)),
    "negative": lambda m: (lambda x: -x, (X,)),
    "exp and log": lambda m: (lambda x: m.numpy.exp(m.numpy.log(x)), (X,)),
    "sin cos tan": lambda m: (lambda x: m.numpy.sin(x) + m.numpy.cos(x) * m.numpy.tan(x), (X,)),
    "tanh": lambda m: (lambda x: m.numpy.tanh(x), (X,)),
    "sqrt": lambda m: (lambda x: m.numpy.sqrt(x), (X,)),
    "rsqrt": lambda m: (lambda x: m.lax.rsqrt(x), (X,)),
    "abs sign": lambda m: (lambda x: m.numpy.abs(x) * m.numpy.sign(x), (X,)),
    "maximum": lambda m: (lambda x: m.numpy.maximum(x, 0), (X,)),
    "comparison": lambda m: (lambda x, y: x < y, (X, X)),
    "select": lambda m: (lambda b, x, y: m.lax.select(b, x, y), (B, X, X)),
    "where": lambda m: (lambda x: m.numpy.where(x > 1, x, 0.0), (X,)),
    "selu": lambda m: (_selu(m), (X,)),
    "selu under jit": lambda m: (m.jit(_selu(m)), (X,)),
    "logistic": lambda m: (lambda x: m.lax.logistic(x), (X,)),
    "erf": lambda m: (lambda x: m.lax.erf(x), (X,)),
    "floor ceil": lambda m: (lambda x: m.numpy.floor(x) + m.numpy.ceil(x), (X,)),
    "logical": lambda m: (lambda a, b: m.numpy.logical_and(a, m.numpy.logical_not(b)), (B, B)),
    "bits": lambda m: (lambda a: (a << 2) ^ (a & 1) | 4, (I,)),
    "cast": lambda m: (lambda x: x.astype(np.int32), (X,)),
    "weak": lambda m: (lambda x: x * 2.0 + 1, (I,)),
    "python scalars": lambda m: (lambda x, y: x + y, (1, 2.0)),
    # shapes
    "reshape": lambda m: (lambda x: x.reshape(4, 3), (M,)),
    "transpose": lambda m: (lambda x: x.T, (M,)),
    "broadcast": lambda m: (lambda x: m.numpy.broadcast_to(x, (2, 3)), (X,)),
    "outer product": lambda m: (lambda x: x[:, None] * x[None, :], (X,)),
    "concatenate": lambda m: (lambda x, y: m.numpy.concatenate([x, y]), (X, X)),
    "slice": lambda m: (lambda x: x[1:], (X,)),
    "slice with a step": lambda m: (lambda x: x[::2], (X,)),
    "static index": lambda m: (lambda x: x[0], (M,)),
    "squeeze": lambda m: (lambda x: m.numpy.squeeze(x), (M[None],)),
    "expand": lambda m: (lambda x: m.numpy.expand_dims(x, 0), (X,)),
    "iota": lambda m: (lambda: m.lax.iota(np.int32, 5), ()),
    "rev": lambda m: (lambda x: m.lax.rev(x, (0,)), (X,)),
    "pad": lambda m: (lambda x: m.lax.pad(x, np.float32(0), ((1, 1, 0),)), (X,)),
    # reductions
    "sum": lambda m: (lambda x: m.numpy.sum(x), (X,)),
    "sum of an axis": lambda m: (lambda x: x.sum(axis=1), (M,)),
    "max": lambda m: (lambda x: x.max(axis=0), (M,)),
    "prod": lambda m: (lambda x: m.numpy.prod(x), (X,)),
    "mean": lambda m: (lambda x: m.numpy.mean(x, axis=0), (M,)),
    "any all": lambda m: (lambda b: (b.any(), b.all()), (B,)),
    "argmax": lambda m: (lambda x: m.lax.argmax(x, 0, np.int32), (X,)),
    "cumsum": lambda m: (lambda x: m.lax.cumsum(x), (X,)),
    "sort": lambda m: (lambda x: m.lax.sort(x), (X,)),
    "logsumexp by hand": lambda m: (
        lambda x: m.numpy.log(m.numpy.sum(m.numpy.exp(x - x.max()))) + x.max(),
        (X,),
    ),
    # products
    "dot": lambda m: (lambda x, y: m.numpy.dot(x, y), (X, X)),
    "matmul": lambda m: (lambda x, y: x @ y, (M, M.T)),
    # control flow
    "cond": lambda m: (
        lambda p, x: m.lax.cond(p, lambda x: x + 1, lambda x: x * 2, x),
        (True, X),
    ),
    "switch": lambda m: (
        lambda i, x: m.lax.switch(i, [lambda x: x, lambda x: -x, lambda x: x * 2], x),
        (1, X),
    ),
    "while": lambda m: (_newton(m), (2.0,)),
    "while with a counter": lambda m: (
        lambda n: m.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0)),
        (5,),
    ),
    "fori": lambda m: (lambda x: m.lax.fori_loop(0, 5, lambda i, c: c * 2.0 + i, x), (X,)),
    "fori of a traced bound": lambda m: (
        lambda n, x: m.lax.fori_loop(0, n, lambda i, c: c + x, x),
        (3, X),
    ),
    "scan": lambda m: (_cell(m), (np.float32(1), X)),
    "scan of closed-over arrays": lambda m: (
        lambda w, xs: m.lax.scan(lambda c, x: (c + w * x, None), w, xs)[0],
        (X, M.T),
    ),
    "scan in reverse": lambda m: (
        lambda xs: m.lax.scan(lambda c, x: (c + x, c), 0.0, xs, reverse=True),
        (X,),
    ),
    "map": lambda m: (lambda xs: m.lax.map(lambda x: x * 2, xs), (X,)),
    "jit in jit": lambda m: (
        m.jit(lambda x: m.jit(lambda y: m.numpy.sin(y))(x) * 2),
        (X,),
    ),
    # transformations
    "grad": lambda m: (m.grad(lambda x: x * x * 3.0), (2.0,)),
    "grad of a sum": lambda m: (m.grad(lambda x: (m.numpy.sin(x) * x).sum()), (X,)),
    "grad of exp": lambda m: (m.grad(lambda x: m.numpy.exp(x)), (2.0,)),
    "grad of grad": lambda m: (m.grad(m.grad(lambda x: x * x * x)), (2.0,)),
    "value and grad": lambda m: (m.value_and_grad(lambda x: (x * x).sum()), (X,)),
    "loss": lambda m: (_mlp(m), (M, np.ones(4, np.float32), M[:, :3])),
    "jvp": lambda m: (lambda x, t: m.jvp(lambda x: m.numpy.sin(x) * x, (x,), (t,)), (X, X)),
    "vjp": lambda m: (lambda x, c: m.vjp(lambda x: m.numpy.sin(x), x)[1](c), (X, X)),
    "vmap": lambda m: (m.vmap(lambda x: m.numpy.sin(x) * 2.0), (M,)),
    "vmap of grad": lambda m: (m.vmap(m.grad(lambda x: x * x)), (X,)),
    "stop_gradient": lambda m: (
        m.grad(lambda x: x * m.lax.stop_gradient(x)),
        (2.0,),
    ),
    "pytrees": lambda m: (
        lambda p: {"out": p["w"] * p["b"][0], "sum": p["w"].sum()},
        ({"w": X, "b": [X, 1.0]},),
    ),
    "relu": lambda m: (m.nn.relu, (X,)),
    "sigmoid": lambda m: (m.nn.sigmoid, (X,)),
    "softplus": lambda m: (m.nn.softplus, (X,)),
    "softmax": lambda m: (m.nn.softmax, (X,)),
    "silu": lambda m: (m.nn.silu, (X,)),
    "clip": lambda m: (lambda x: m.numpy.clip(x, 0.0, 1.0), (X,)),
    "gather of rows": lambda m: (lambda x, i: x[i], (M, I)),
    "linspace": lambda m: (lambda: m.numpy.zeros(3) + m.numpy.ones(3), ()),
    "arange": lambda m: (lambda x: m.numpy.arange(3) * x, (X,)),
    "einsum": lambda m: (lambda x, y: m.numpy.einsum("ij,kj->ik", x, y), (M, M)),
    "norm": lambda m: (lambda x: m.numpy.sqrt((x * x).sum()), (X,)),
}


def text(m, name):
    """Return the jaxpr of a program as text."""
    f, args = PROGRAMS[name](m)
    return str(m.make_jaxpr(f)(*args))


def main():
    import jax

    EXPECTED.parent.mkdir(exist_ok=True)
    texts = {name: text(jax, name) for name in PROGRAMS}
    EXPECTED.write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    main()
