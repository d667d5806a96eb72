"""Arrays that are gathered at random indices are first read in order, to bring them into the
caches.
"""

import numpy as np
import pytest
from compiler.fusion.support import plan_of

import accnp as jnp
from accnp import jit
from accnp.engine.prefetching import PREFETCH

N = 600_000
X = np.arange(N, dtype=np.float32)
IDX = ((np.arange(N) * 7919) % N).astype(np.int32)
TABLE = X.reshape(1000, 600)
CASES = {
    "elements": (lambda x, i: x[i] * 2, (X, IDX), 1),
    "of each row": (
        lambda x, i: jnp.take_along_axis(x, i, 1),
        (TABLE, (IDX % 600).reshape(1000, 600)),
        1,
    ),
    "of short rows": (lambda x, i: x[:, i], (X.reshape(-1, 6), np.array([2, 0, 5])), 0),
    "few": (lambda x, i: x[i], (X, IDX[:1000]), 0),
    "of a small array": (lambda x, i: x[i], (X[:1000], IDX % 1000), 0),
    "rows": (lambda x, i: x[i], (TABLE, IDX[:1000] % 1000), 0),
    "of what was just made": (lambda x, i: jnp.sort(x)[i], (X, IDX), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_arrays_that_are_prefetched(name):
    f, arrays, count = CASES[name]
    assert sum(step.label == PREFETCH for step in plan_of(f, *arrays).steps) == count


@pytest.mark.parametrize("name", ["elements", "of each row"])
def test_values_match_numpy(name):
    f, (x, i), _ = CASES[name]
    expected = x[i] * 2 if name == "elements" else np.take_along_axis(x, i, 1)
    np.testing.assert_array_equal(jit(f)(jnp.asarray(x), jnp.asarray(i)), expected)
