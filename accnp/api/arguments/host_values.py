"""Host values among the operands and results of programs: Python numbers and NumPy arrays.

A program under `checkpoint` or of a linear solver that returns an operand or a constant unchanged
returns the host value, with a canonical dtype, instead of an Array, unless the call is being
traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import is_host_value
from accnp.array_type import wrap
from accnp.ir.aval import make_aval
from accnp.ir.equations import typed
from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.trace import state

__all__ = ["as_result", "restore_host_values"]


def as_result(x: Any) -> Any:
    """Return a host value as a program returns it: NumPy values become arrays of a canonical dtype,
    and Python numbers carry their dtype."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(x, dtypes.canonicalize_dtype(x.dtype))
    if isinstance(x, int | float | complex) and not isinstance(x, bool):
        dtype, weak = dtypes.value_type(x)
        return typed(x, make_aval((), dtype, weak))
    return x


def restore_host_values(
    graph: Graph,
    inputs: Mapping[int, Any],
    constants: Mapping[int, Any],
    results: Sequence[Node],
) -> list[Any]:
    """Return the results of a program as users see them.

    Results that are inputs or constants of the program are replaced by their host values: `inputs`
    maps input positions to values, `constants` maps result positions to values. While a function is
    being traced, all results are Arrays.
    """
    if state.abstract is not None or state.named:
        return [wrap(x) for x in results]
    places = {id(x): i for i, x in enumerate(graph.inputs)}
    values = []
    for i, (inner, x) in enumerate(zip(graph.outputs, results, strict=True)):
        value = constants[i] if i in constants else inputs.get(places.get(id(inner), -1))
        is_host = x.trace is None and is_host_value(value)
        values.append(as_result(value) if is_host else wrap(x))
    return values
