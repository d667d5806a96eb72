"""Host arrays of float0 in functions that move elements.

Tangents of integers are NumPy arrays of float0, and so are results of functions that move or join
them. `numpy_node` raises `Float0Operand` for such an operand of one of these functions, outside of
traces; `api_boundary` catches it and asks here for the result. Other calls pay nothing for this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.array import Array
from accnp.dtypes.names import float0
from accnp.ir.trace import state
from accnp.pytree import map_arrays

__all__ = ["served"]


def served(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a function that moves elements; its results of float0 are NumPy arrays."""
    state.float0 = True
    try:
        result = function(*args, **kwargs)
    finally:
        state.float0 = False

    def on_host(x: Any) -> Any:
        return np.zeros(x.shape, float0) if type(x) is Array and x.dtype == float0 else x

    return map_arrays(on_host, result)
