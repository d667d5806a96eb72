"""Rows of indexed reads and writes: gathers, scatters, segment sums, counts, embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.expressions import Expression, Made, normal, rows_of

BAR = {"jax": 0.7}
N = 1_000_000
ROWS_, WIDE, TABLE = 100_000, 64, 20_000


def random_indices(seed: int, top: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, top, shape).astype(np.int32)


def _elements(f: Callable[[Any, Any, Any], Any], top: int = N) -> Callable[[Any], Made]:
    """Return a function of a million numbers and as many indices."""
    return lambda m: (lambda x, i: f(m, x, i), (normal(0, N), random_indices(1, top, N)))


def _scatter(count: int) -> Callable[[Any], Made]:
    return _elements(lambda m, x, i: m.numpy.zeros(count, x.dtype).at[i].add(x), count)


def _index_rows(f: Callable[[Any, Any, Any], Any]) -> Callable[[Any], Made]:
    places = random_indices(1, 1000, ROWS_)
    return lambda m: (lambda x, i: f(m, x, i), (normal(0, ROWS_, WIDE), places))


def _embedding(f: Callable[[Any, Any, Any], Any]) -> Callable[[Any], Made]:
    return lambda m: (
        lambda e, i: f(m, e, i),
        (normal(0, TABLE, 128), random_indices(1, TABLE, 64, 128)),
    )


def take_along_rows(m: Any) -> Made:
    arrays = normal(0, 1000, 1000), random_indices(1, 1000, 1000, 1000)
    return (lambda x, i: m.numpy.take_along_axis(x, i, 1)), arrays


EXPRESSIONS = {
    "gather": Expression("x[i], 1e6 from 1e6", _elements(lambda m, x, i: x[i]), BAR),
    "gather-fused": Expression("x[i] * 2 + x, 1e6", _elements(lambda m, x, i: x[i] * 2 + x), BAR),
    "along": Expression("take_along_axis, 1000x1000", take_along_rows, BAR),
    "scatter-add": Expression("1e6 added to 1e6 places", _scatter(N), BAR, rtol=1e-3, atol=1e-4),
    "scatter-add-1000": Expression(
        "1e6 added to 1000 places", _scatter(1000), BAR, rtol=1e-2, atol=1e-2
    ),
    "segment-sum": Expression(
        "segment_sum of 1e6 in 1000",
        _elements(lambda m, x, i: m.ops.segment_sum(x, i, 1000), 1000),
        BAR, rtol=1e-2, atol=1e-2,
    ),
    "segment-sum-rows": Expression(
        f"segment_sum of {ROWS_} rows of {WIDE} in 1000",
        _index_rows(lambda m, x, i: m.ops.segment_sum(x, i, 1000)),
        BAR, rtol=1e-2, atol=1e-3,
    ),
    "segment-max-rows": Expression(
        f"segment_max of {ROWS_} rows of {WIDE} in 1000",
        _index_rows(lambda m, x, i: m.ops.segment_max(x, i, 1000)),
        BAR,
    ),
    "bincount": Expression(
        "bincount of 1e6 in 1000",
        _elements(lambda m, x, i: m.numpy.bincount(i, length=1000), 1000),
        BAR,
    ),
    "histogram": Expression(
        "histogram of 1e6 in 50 bins",
        _elements(lambda m, x, i: m.numpy.histogram(x, 50, (-3, 3))[0]),
        BAR,
        # Edges differ in the last bit, and values on an edge by one bin.
        rtol=1e-3, atol=3,
    ),
    "embedding": Expression(
        f"rows of an embedding, 64x128 from {TABLE}x128", _embedding(lambda m, e, i: e[i]), BAR
    ),
    "embedding-grad": Expression(
        f"the gradient of that, {TABLE}x128",
        _embedding(lambda m, e, i: m.grad(lambda e: m.numpy.sum(e[i] ** 2))(e)),
        BAR,
    ),
    "nonzero": Expression(
        "nonzero of 1e6 with a size",
        _elements(lambda m, x, i: m.numpy.nonzero(x > 0, size=N)[0]),
        {"jax": 1.0},
    ),
}  # fmt: skip
ROWS = rows_of(EXPRESSIONS)
