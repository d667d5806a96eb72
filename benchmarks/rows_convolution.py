"""Rows of convolutions and pooling, forward and backward, and a training step of a
small network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.expressions import Expression, Made, normal, rows_of
from benchmarks.rows_training import cross_entropy, descent, weights

JAX: dict[str | tuple[str, ...], float] = {"jax": 1.0}
BY_ROWS = ("NHWC", "HWIO", "NHWC")
BY_PLANES = ("NCHW", "OIHW", "NCHW")


def _conv(
    x: tuple[int, ...], w: tuple[int, ...], dims: Any, strides: Any = (1, 1), groups: int = 1
) -> Callable[[Any], Made]:
    def make(m: Any) -> Made:
        def f(x: Any, w: Any) -> Any:
            return m.lax.conv_general_dilated(
                x, w, strides, "SAME", dimension_numbers=dims, feature_group_count=groups
            )

        return f, (normal(0, *x), normal(1, *w))

    return make


def _line(n: int, taps: int) -> Callable[[Any], Made]:
    data = normal(0, n), normal(1, taps)
    return lambda m: (lambda x, k: m.numpy.convolve(x, k, mode="same"), data)


def _pool(shape: tuple[int, ...], name: str, window: Any, strides: Any) -> Callable[[Any], Made]:
    def make(m: Any) -> Made:
        init, reducer = (-m.numpy.inf, m.lax.max) if name == "max" else (0.0, m.lax.add)
        padding = "VALID" if window == strides else "SAME"
        f = lambda x: m.lax.reduce_window(x, init, reducer, window, strides, padding)  # noqa: E731
        return f, (normal(0, *shape),)

    return make


def _backward(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """Return the gradients of half the sum of squares with respect to all arguments."""

    def make_gradient(m: Any) -> Made:
        f, data = make(m)
        argnums = tuple(range(len(data)))
        return m.grad(lambda *xs: m.numpy.sum(f(*xs) ** 2) * 0.5, argnums), data

    return make_gradient


def _pair(name: str, title: str, make: Callable[[Any], Made], bars: Any = None) -> dict[str, Any]:
    bars = bars or JAX
    forward = Expression(title, make, bars, rtol=1e-3, atol=1e-2)
    return {
        name: forward,
        f"{name}-grad": Expression(
            f"{title}, forward+backward", _backward(make), JAX, rtol=1e-3, atol=0.5
        ),
    }


def network(by_rows: bool, size: int, features: int) -> Callable[[Any], Made]:
    """Two convolutions, each with ReLU and pooling, then a dense layer, with batches of 32."""
    dims = BY_ROWS if by_rows else BY_PLANES
    window = (1, 2, 2, 1) if by_rows else (1, 1, 2, 2)

    def make(m: Any) -> Made:
        np_, lax = m.numpy, m.lax

        def loss(p: Any, x: Any, labels: Any) -> Any:
            for layer in p[:-1]:
                x = lax.conv_general_dilated(x, layer["w"], (1, 1), "SAME", dimension_numbers=dims)
                x = np_.maximum(x + layer["b"], 0)
                x = lax.reduce_window(x, -np_.inf, lax.max, window, window, "VALID")
            x = x.reshape(x.shape[0], -1)
            return cross_entropy(m, x @ p[-1]["w"] + p[-1]["b"], labels)

        p = []
        for i, (a, b) in enumerate(((features, 32), (32, 64))):
            w = normal(i, *((3, 3, a, b) if by_rows else (b, a, 3, 3))) / np.float32(3 * a**0.5)
            p.append({"w": w, "b": normal(5 + i, *((b,) if by_rows else (b, 1, 1)))})
        p.append({"w": weights(2, (size // 4) ** 2 * 64, 10), "b": normal(8, 10)})
        shape = (32, size, size, features) if by_rows else (32, features, size, size)
        return descent(m, loss), (p, normal(9, *shape), np.arange(32, dtype=np.int32) % 10)

    return make


WIDE, HIGH = (8, 64, 64, 16), (8, 16, 64, 64)
EXPRESSIONS: dict[str, Expression] = {
    **_pair("nhwc", "conv 3x3, 8x64x64x16 to 32", _conv(WIDE, (3, 3, 16, 32), BY_ROWS)),
    **_pair("nchw", "conv 3x3, 8x16x64x64 to 32", _conv(HIGH, (32, 16, 3, 3), BY_PLANES)),
    **_pair("first", "conv 3x3, 32x28x28x1 to 32", _conv((32, 28, 28, 1), (3, 3, 1, 32), BY_ROWS)),
    **_pair(
        "second", "conv 3x3, 32x14x14x32 to 64", _conv((32, 14, 14, 32), (3, 3, 32, 64), BY_ROWS)
    ),
    **_pair(
        "strided",
        "conv 3x3 by 2, 8x56x56x64 to 64",
        _conv((8, 56, 56, 64), (3, 3, 64, 64), BY_ROWS, (2, 2)),
    ),
    **_pair(
        "pointwise",
        "conv 1x1, 8x28x28x128 to 128",
        _conv((8, 28, 28, 128), (1, 1, 128, 128), BY_ROWS),
    ),
    **_pair(
        "stem",
        "conv 7x7 by 2, 4x112x112x3 to 32",
        _conv((4, 112, 112, 3), (7, 7, 3, 32), BY_ROWS, (2, 2)),
    ),
    **_pair(
        "depthwise",
        "depthwise 3x3, 8x56x56x64",
        _conv((8, 56, 56, 64), (3, 3, 1, 64), BY_ROWS, groups=64),
    ),
    **_pair(
        "one-axis",
        "conv 5, 16x1000x32 to 32",
        _conv((16, 1000, 32), (5, 32, 32), ("NWC", "WIO", "NWC"), (1,)),
    ),
    **_pair("line-7", "convolve 1e6 with 7", _line(1_000_000, 7), {("numpy", "jax"): 1.0}),
    "line-101": Expression(
        "convolve 1e5 with 101", _line(100_000, 101), {("numpy", "jax"): 1.0}, atol=1e-3
    ),
    **_pair("max-nhwc", "max 2x2, 8x64x64x16", _pool(WIDE, "max", (1, 2, 2, 1), (1, 2, 2, 1))),
    **_pair("max-nchw", "max 2x2, 8x16x64x64", _pool(HIGH, "max", (1, 1, 2, 2), (1, 1, 2, 2))),
    **_pair(
        "max3-nchw", "max 3x3 by 2, 8x16x64x64", _pool(HIGH, "max", (1, 1, 3, 3), (1, 1, 2, 2))
    ),
    **_pair("sum-nhwc", "sum 3x3, 8x64x64x16", _pool(WIDE, "sum", (1, 3, 3, 1), (1, 1, 1, 1))),
    **_pair("sum-nchw", "sum 3x3, 8x16x64x64", _pool(HIGH, "sum", (1, 1, 3, 3), (1, 1, 1, 1))),
    **{
        f"cnn-{layout.lower()}-{size}": Expression(
            f"CNN of {size}x{size}x{features}, {layout}: train step",
            network(layout == "NHWC", size, features),
            {"jax": 0.8},
            rtol=5e-3,
            atol=2e-3,
        )
        for layout in ("NHWC", "NCHW")
        for size, features in ((28, 1), (32, 3))
    },
}
ROWS = rows_of(EXPRESSIONS)
