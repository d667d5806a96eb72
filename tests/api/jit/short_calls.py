"""Helper functions for the tests of cached jitted calls."""

from typing import NamedTuple

import numpy as np

import accnp as jnp

X = np.arange(12, dtype="float32").reshape(3, 4)


def call_repeatedly(f, *args, times=40):
    """Call a function repeatedly, check that all results are equal, and return the last."""
    first = [np.asarray(r) for r in jnp.tree.leaves(f(*args))]
    for _ in range(times):
        result = f(*args)
        for a, b in zip(first, jnp.tree.leaves(result), strict=True):
            np.testing.assert_array_equal(a, np.asarray(b))
    return result


class Pair(NamedTuple):
    a: object
    b: object
