"""Benchmark rows of random numbers.

Both libraries generate the same bits. Keys are arguments, as in user programs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.expressions import Expression, rows_of

LARGE = 10_000_000


def _make_sampling(
    title: str, draw: Callable[[Any, Any], Any], atol: float = 0.0, max_ratio: float = 0.5
) -> Expression:
    key = np.array([0, 42], np.uint32)
    return Expression(
        title, lambda m: (lambda k: draw(m, k), (key,)), {"jax": max_ratio}, rtol=atol, atol=atol
    )


EXPRESSIONS = {
    "bits": _make_sampling("random bits, 1e7", lambda m, k: m.random.bits(k, (LARGE,))),
    "uniform": _make_sampling("uniform, 1e7", lambda m, k: m.random.uniform(k, (LARGE,))),
    # Some results differ by a few units in the last place from those of JAX.
    "normal": _make_sampling("normal, 1e7", lambda m, k: m.random.normal(k, (LARGE,)), 1e-5),
    "randint": _make_sampling("randint, 1e7", lambda m, k: m.random.randint(k, (LARGE,), 0, 100)),
    "bernoulli": _make_sampling(
        "bernoulli, 1e7", lambda m, k: m.random.bernoulli(k, 0.3, (LARGE,))
    ),
    "permutation": _make_sampling(
        "permutation of 1e6", lambda m, k: m.random.permutation(k, 1_000_000)
    ),
}
ROWS = rows_of(EXPRESSIONS)
