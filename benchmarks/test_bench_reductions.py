"""Benchmark reductions over all elements, rows and columns, and with a fused
elementwise operand.
"""

import pytest

BODIES = {
    "sum": lambda np, x: x.sum(),
    "sum of rows": lambda np, x: x.sum(axis=1),
    "sum of columns": lambda np, x: x.sum(axis=0),
    "sum of squares": lambda np, x: (x * x).sum(),
    "max of rows": lambda np, x: x.max(axis=1),
    "std": lambda np, x: x.std(axis=0),
    "softmax": lambda np, x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
}


@pytest.mark.parametrize("body", BODIES)
def test_reductions(benchmark, library, normal, body):
    benchmark.group = f"{body}, 1000x1000"
    f = library.wrap(lambda x: BODIES[body](library.np, x))
    benchmark(f, library.asarray(normal(1000, 1000)))
