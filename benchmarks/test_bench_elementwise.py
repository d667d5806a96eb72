"""Benchmark elementwise functions: memory-bound, compute-bound, and with a
transcendental function.
"""

import pytest

BODIES = {
    "x*x + x*2.0": lambda np, x: x * x + x * 2.0,
    "polynomial": lambda np, x: ((x * 0.5 + 1.0) * x - 2.0) * x + 3.0,
    "tanh": lambda np, x: np.tanh(x),
    "exp log": lambda np, x: np.log(np.exp(x) + 1.0),
    "where": lambda np, x: np.where(x > 0, x, 0.1 * x),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("size", [10_000, 1_000_000], ids=["1e4", "1e6"])
def test_elementwise(benchmark, library, normal, body, size):
    benchmark.group = f"{body}, {size}"
    f = library.wrap(lambda x: BODIES[body](library.np, x))
    benchmark(f, library.asarray(normal(size)))
