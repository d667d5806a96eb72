"""Wrappers of functions that wait until their results are computed, for benchmarks.

accnp and JAX return results before they are computed, so timing a call alone measures only how long
it takes to record it. `waiting` wraps a function so that it waits. This must cost very little, also
for results that contain no arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

import numpy as np

from accnp.api.environment.synchronization import block_until_ready
from accnp.array_type import Array
from accnp.pytree import tree_leaves

__all__ = ["is_pending", "waiting"]

# Types of results that need no waiting. Flattening a pytree takes 1 us and 0.2 us for each leaf.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.ndarray, np.float32, np.float64)


def waiting(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `f` and waits for the arrays of its result, a pytree.

    It waits for all leaves with a method `block_until_ready`, including arrays of JAX. If a result
    has none, later results of the same type and length are not searched.
    """
    plain: set[tuple[type, int]] = {(kind, -1) for kind in _PLAIN}

    def call(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        kind = type(result)
        if kind is Array:
            result.block_until_ready()
        elif (kind, -1) not in plain:
            key = kind, len(result) if isinstance(result, Sized) else 0
            if key not in plain:
                if any(hasattr(leaf, "block_until_ready") for leaf in tree_leaves(result)):
                    block_until_ready(result)
                else:
                    plain.add(key)
        return result

    return call


def is_pending(result: Any) -> bool:
    """Return whether a result, a pytree, contains an accnp array that is not computed yet."""
    return any(isinstance(x, Array) and not x.is_ready() for x in tree_leaves(result))
