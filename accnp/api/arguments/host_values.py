"""Host values among the operands and results of programs: Python numbers and NumPy arrays.

A program that returns an operand or a constant unchanged returns the host value itself instead of
an Array, unless the call is being traced. `jit` and the transformations call `handed_through` for
the results of a program.
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

__all__ = ["as_evaluated", "handed_through"]


def as_evaluated(x: Any) -> Any:
    """Return a host value as a program returns it: NumPy values become arrays of a canonical dtype,
    and Python numbers carry their dtype."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(x, dtypes.canonicalize_dtype(x.dtype))
    if isinstance(x, int | float | complex) and not isinstance(x, bool):
        dtype, weak = dtypes.value_type(x)
        return typed(x, make_aval((), dtype, weak))
    return x


def handed_through(
    graph: Graph,
    given: Mapping[int, Any],
    constants: Mapping[int, Any],
    results: Sequence[Node],
) -> list[Any]:
    """Return the results of a program as users see them.

    Results that are inputs or constants of the program are replaced by their host values: `given`
    maps input positions to values, `constants` maps result positions to values. While a function is
    being traced, all results are Arrays.
    """
    if state.abstract is not None or state.named:
        return [wrap(x) for x in results]
    places = {id(x): i for i, x in enumerate(graph.inputs)}
    found = []
    for i, (inner, x) in enumerate(zip(graph.outputs, results, strict=False)):
        value = constants[i] if i in constants else given.get(places.get(id(inner), -1))
        known = x.trace is None and is_host_value(value)
        found.append(as_evaluated(value) if known else wrap(x))
    return found
