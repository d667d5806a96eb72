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

__all__ = ["moves_elements", "served"]

# As the functions name themselves when they convert their operands, without the module.
_MOVING = frozenset(
    (
        "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block",
        "broadcast", "broadcast_arrays", "broadcast_in_dim", "broadcast_to", "column_stack",
        "concatenate", "cond", "copy", "delete", "device_put", "diag", "dstack", "dsplit",
        "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack", "insert",
        "matrix_transpose", "moveaxis", "pad", "permute_dims", "ravel", "repeat", "reshape",
        "rev", "roll", "rollaxis", "rot90", "select", "select_n", "slice", "split",
        "squeeze", "stack", "swapaxes", "switch", "tile", "transpose", "tri", "tril",
        "triu", "unstack", "vsplit", "vstack", "where",
    )
)  # fmt: skip


def moves_elements(name: str) -> bool:
    """Whether a call of this function outside of traces should go by `served`."""
    return not state.float0 and state.abstract is None and name.rpartition(".")[2] in _MOVING


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
