"""Training steps of small networks: one step of gradient descent as a function of parameters and
examples, timed until its results are ready.

Each function takes a module with JAX's API, and returns the step and its arguments as NumPy arrays.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.expressions import Expression, rows_of
from benchmarks.programs import normal

ProgramWithArguments = tuple[Callable[..., Any], tuple]


def descent(m: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return one step of gradient descent: new parameters and the loss."""

    def step(p: Any, *examples: Any) -> Any:
        value, gradient = m.value_and_grad(loss)(p, *examples)
        return m.tree_util.tree_map(lambda a, g: a - 0.01 * g, p, gradient), value

    return step


def weights(seed: int, *shape: int) -> np.ndarray:
    """Return normally distributed weights, scaled down for large axes."""
    return normal(seed, *shape, scale=shape[-2] ** -0.5 if len(shape) > 1 else 0.1)


def cross_entropy(m: Any, logits: Any, labels: Any) -> Any:
    likelihood = m.nn.log_softmax(logits)
    return -(likelihood * m.nn.one_hot(labels, logits.shape[-1])).sum(-1).mean()


def mlp(m: Any) -> ProgramWithArguments:
    """Three layers 64-128-128-10 with GELU, batch size 64."""

    def loss(p: Any, x: Any, labels: Any) -> Any:
        for layer in p[:-1]:
            x = m.nn.gelu(x @ layer["w"] + layer["b"])
        return cross_entropy(m, x @ p[-1]["w"] + p[-1]["b"], labels)

    sizes = (64, 128, 128, 10)
    p = [
        {"w": weights(i, a, b), "b": weights(9 - i, b)} for i, (a, b) in enumerate(pairwise(sizes))
    ]
    labels = np.arange(64, dtype=np.int32) % 10
    return descent(m, loss), (p, normal(3, 64, 64), labels)


def transformer(m: Any) -> ProgramWithArguments:
    """One block with 4 heads on 8 sequences of 64 vectors of length 64, with a GELU
    layer of 256."""
    np_ = m.numpy
    heads, width = 4, 64

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        return x / np_.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def attend(p: Any, x: Any) -> Any:
        n, length, _ = x.shape
        q, k, v = (
            (x @ p[name]).reshape(n, length, heads, width // heads).transpose(0, 2, 1, 3)
            for name in ("q", "k", "v")
        )
        scores = q @ k.transpose(0, 1, 3, 2) / np_.sqrt(width / heads)
        mask = np_.tril(np_.ones((length, length), bool))
        mixed = m.nn.softmax(np_.where(mask, scores, -1e9), axis=-1) @ v
        return mixed.transpose(0, 2, 1, 3).reshape(n, length, width) @ p["o"]

    def loss(p: Any, x: Any, labels: Any) -> Any:
        x = x + attend(p, norm(x, p["s1"], p["b1"]))
        hidden = m.nn.gelu(norm(x, p["s2"], p["b2"]) @ p["up"] + p["c1"])
        x = x + hidden @ p["down"] + p["c2"]
        return cross_entropy(m, x @ p["out"], labels)

    p = {name: weights(i, width, width) for i, name in enumerate("qkvo")}
    p |= {name: np.ones(width, np.float32) for name in ("s1", "s2")}
    p |= {name: np.zeros(width, np.float32) for name in ("b1", "b2", "c2")}
    p |= {"up": weights(5, width, 256), "c1": weights(6, 256), "down": weights(7, 256, width)}
    p |= {"out": weights(8, width, 32)}
    labels = np.arange(8 * 64, dtype=np.int32).reshape(8, 64) % 32
    return descent(m, loss), (p, normal(9, 8, 64, width), labels)


def lstm(m: Any) -> ProgramWithArguments:
    """An LSTM of 64 units over 50 steps of 32 sequences, with a classifier on the last state."""
    np_ = m.numpy

    def loss(p: Any, xs: Any, labels: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            gates = x @ p["in"] + h @ p["over"] + p["b"]
            i, f, g, o = np_.split(gates, 4, axis=-1)
            c = m.nn.sigmoid(f + 1.0) * c + m.nn.sigmoid(i) * np_.tanh(g)
            h = m.nn.sigmoid(o) * np_.tanh(c)
            return (h, c), None

        start = np_.zeros((xs.shape[1], 64), np_.float32)
        (h, _), _ = m.lax.scan(cell, (start, start), xs)
        return cross_entropy(m, h @ p["out"], labels)

    p = {"in": weights(0, 16, 256), "over": weights(1, 64, 256), "b": weights(2, 256)}
    p["out"] = weights(3, 64, 10)
    return descent(m, loss), (p, normal(4, 50, 32, 16), np.arange(32, dtype=np.int32) % 10)


_STEPS = {
    "mlp": (mlp, "MLP 64-128-128-10, batch 64"),
    "transformer": (transformer, "transformer block, 4 heads, 8x64x64"),
    "lstm": (lstm, "LSTM of 64 units, 50 steps of 32"),
}
EXPRESSIONS = {
    name: Expression(f"{title}: train step", make, {"jax": 0.8}, rtol=2e-3, atol=2e-4)
    for name, (make, title) in _STEPS.items()
}
ROWS = rows_of(EXPRESSIONS)
