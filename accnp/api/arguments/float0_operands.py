"""Functions that move elements, applied to host arrays of float0.

Tangents of integers are NumPy arrays of float0. `numpy_node` raises `Float0Operand` when a function
that only moves or joins elements gets one outside of a trace. `api_boundary` catches the error and
calls `call_with_float0`, which returns NumPy arrays of float0. Other calls have no overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.array_type import Array
from accnp.dtypes.names import float0
from accnp.ir.trace import state
from accnp.pytree import map_arrays

__all__ = ["call_with_float0"]


def call_with_float0(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a function that moves elements; results of dtype float0 are NumPy arrays."""
    state.float0 = True
    try:
        result = function(*args, **kwargs)
    finally:
        state.float0 = False

    def on_host(x: Any) -> Any:
        return np.zeros(x.shape, float0) if type(x) is Array and x.dtype == float0 else x

    return map_arrays(on_host, result)
