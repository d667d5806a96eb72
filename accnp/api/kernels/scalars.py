"""A user's function of numbers as an elementwise operation, whose source becomes part of kernels.

It takes the function and returns `record`, a function that records the operation for given
operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import broadcast_nodes, wrap
from accnp.api.kernels.texts import ScalarText, function_name, python_function
from accnp.array_type import Array
from accnp.ir.node import Node, record
from accnp.lazy_imports import imported
from accnp.primitives.user_kernels import scalar_op
from accnp.trace_fn import function_place

__all__ = ["ScalarFunction"]


class ScalarFunction:
    """A function of numbers; `dtype` is that of its result, if it was declared."""

    kind = "scalar"

    def __init__(self, function: Any, name: str | None, dtype: Any, cost: int) -> None:
        self.function = function
        self.python: Any = python_function(function)
        self.name = name or function_name(self.python)
        self.declared = None if dtype is None else dtypes.canonicalize_dtype(dtype)
        self.of = "{} ({}:{})".format(*function_place(self.python))
        self.text = ScalarText(function)
        self.mark = self.text.name
        self.op = scalar_op(self.name, self.mark, self.reference, cost)
        self.result_dtypes: dict[Any, np.dtype] = {}

    def record(self, nodes: Sequence[Node], static: dict[str, Any]) -> Array:
        """Apply it to operands, which are broadcast."""
        count = self.python.__code__.co_argcount
        if static or len(nodes) != count:
            description = f"{len(nodes)} operands" + (
                f" and {sorted(static)} by name" if static else ""
            )
            raise TypeError(
                f"kernel: {self.of} is a function of {count} numbers; got {description}; give one "
                "array for each of its parameters, by position"
            )
        if not count:
            raise TypeError(f"kernel: {self.of} takes no operand; got none; let it take one")
        out = self.result([x.aval.dtype for x in nodes])
        return wrap(record(self.op, tuple(broadcast_nodes(self.name, list(nodes))), {"out": out}))

    def result(self, kinds: Sequence[np.dtype]) -> np.dtype:
        """The dtype of the result; compiles the function for these, so that errors come here."""
        key = (*kinds, dtypes.canonicalize_dtype(np.float64))
        result_dtype = self.result_dtypes.get(key)
        if result_dtype is None:
            operand_dtypes = [computed(k) for k in kinds]
            frontend = imported("accnp.compiler.frontend.functions")
            try:
                inferred_dtype = frontend.result_type(self.mark, operand_dtypes)
            except RecursionError:
                self.text.refuse_depth()
            if inferred_dtype is None:
                compiled = imported("accnp.compiler.numba.user_functions")
                inferred_dtype = compiled.scalar_result(self.text.python, self.of, operand_dtypes)
            result_dtype = self.declared or dtypes.canonicalize_dtype(inferred_dtype)
            self.result_dtypes[key] = result_dtype
        return result_dtype

    def reference(self, *arrays: np.ndarray, out: np.dtype) -> np.ndarray:
        """The function on arrays, outside of kernels: of half precisions, or without elements."""
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
        if 0 in shape:
            return np.empty(shape, out)
        compiled = imported("accnp.compiler.numba.user_functions")
        ins = [x.astype(computed(x.dtype), copy=False) for x in arrays]
        with np.errstate(all="ignore"):
            return np.asarray(compiled.vectorized(self.text.python)(*ins)).astype(out)


def computed(dtype: np.dtype) -> np.dtype:
    """The dtype that Numba computes with in place of one: float32 for half precisions."""
    half = dtype.kind not in "biuc" and dtype.itemsize < 4
    return np.dtype(np.float32) if half else dtype
