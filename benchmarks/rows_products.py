"""Rows of matrix products, contractions, and operations that can be fused into a product."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.expressions import Expression, Made, normal, rows_of

BETTER: dict[str | tuple[str, ...], float] = {("numpy", "jax"): 1.0}


def _matmul(a: Any, b: Any) -> Callable[[Any], Made]:
    return lambda m: (lambda x, y: x @ y, (a, b))


def _float_product(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Callable[[Any], Made]:
    return _matmul(*[normal(i, *shape, dtype=dtype) for i, shape in enumerate(shapes)])


def _integer_arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 9, shape).astype(np.int32) for shape in shapes]


def _einsum(formula: str, *shapes: tuple[int, ...], bars: Any = None) -> Expression:
    data = tuple(normal(i, *shape) for i, shape in enumerate(shapes))
    return Expression(
        f"einsum {formula}",
        lambda m: (partial(m.numpy.einsum, formula), data),
        bars or BETTER,
        {"numpy": lambda *xs: partial(np.einsum, formula, *xs, optimize=True)},
        rtol=1e-3,
        atol=1e-3,
    )


def _layer(activation: str) -> Callable[[Any], Made]:
    def make(m: Any) -> Made:
        def relu(z: Any) -> Any:
            return m.numpy.maximum(z, 0)

        act = relu if activation == "relu" else m.nn.gelu
        data = normal(0, 512, 784), normal(1, 784, 512) * 0.04, normal(2, 512)
        return (lambda x, w, b: act(x @ w + b)), data

    return make


EXPRESSIONS = {
    **{
        f"matmul-{n}": Expression(
            f"matmul {n}x{n}", _float_product((n, n), (n, n)), BETTER, atol=1e-2
        )
        for n in (64, 128, 256, 512, 1024)
    },
    "matmul-f64": Expression(
        "matmul 512x512, float64",
        _float_product((512, 512), (512, 512), dtype=np.float64),
        BETTER,
        x64=True,
    ),
    "matmul-i32": Expression(
        "matmul 200x200, int32", _matmul(*_integer_arrays((200, 200), (200, 200))), BETTER
    ),
    "matvec": Expression(
        "2000x2000 @ 2000", _float_product((2000, 2000), (2000,)), BETTER, atol=1e-2
    ),
    "vecmat": Expression(
        "2000 @ 2000x2000", _float_product((2000,), (2000, 2000)), BETTER, atol=1e-2
    ),
    "many-3x3": Expression(
        "10000 products 3x3", _float_product((10000, 3, 3), (10000, 3, 3)), BETTER
    ),
    "many-64x64": Expression(
        "100 products 64x64", _float_product((100, 64, 64), (100, 64, 64)), BETTER, atol=1e-3
    ),
    "tall": Expression(
        "100000x32 @ 32x32", _float_product((100000, 32), (32, 32)), BETTER, atol=1e-3
    ),
    "gram": Expression(
        "A.T @ A of 100000x32",
        lambda m: (lambda a: a.T @ a, (normal(0, 100000, 32),)),
        BETTER,
        rtol=1e-3,
        atol=1.0,
    ),
    "attention": _einsum("bqhd,bkhd->bhqk", (8, 128, 8, 64), (8, 128, 8, 64)),
    "chain": _einsum("ij,jk,kl->il", (500, 20), (20, 500), (500, 20)),
    "bilinear": _einsum("bi,ijk,bj->bk", (128, 64), (64, 64, 64), (128, 64)),
    "bias-relu": Expression("relu(512x784 @ 784x512 + b)", _layer("relu"), BETTER, atol=1e-3),
    "bias-gelu": Expression("gelu(512x784 @ 784x512 + b)", _layer("gelu"), {"jax": 1.0}, atol=1e-3),
}
ROWS = rows_of(EXPRESSIONS)
