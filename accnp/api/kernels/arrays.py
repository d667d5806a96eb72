"""Operations that call a user's Numba function on whole arrays.

`kernel` (`kernel.py`) makes an `ArrayFunction` from the function and the declared types of its
results. `record` compiles the function for the types of the operands and records a node. When the
node is evaluated, `run` calls the compiled function on NumPy arrays, without the GIL. An
`ArrayFunction` can also be the CPU implementation of a GPU kernel (`cuda.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import wrap
from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct
from accnp.api.kernels.texts import python_function
from accnp.errors import JaxRuntimeError
from accnp.forks import renewed
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node, items, record
from accnp.lazy_imports import imported
from accnp.primitives.user_kernels import array_op
from accnp.pytree import PyTreeDef, flatten_arrays, leaf_names
from accnp.trace_fn import function_place

__all__ = ["ArrayFunction", "result_avals"]

# Held during calls of functions with `parallel=True`, since only one call at a time may use Numba's
# threads.
_one_at_a_time = renewed(threading.Lock())


def result_avals(out: Any, nodes: Sequence[Node], static: dict[str, Any]) -> tuple[Any, PyTreeDef]:
    """Return the declared types of the results and their pytree structure.

    `out` is a pytree of objects with a shape and a dtype, or a function that returns one for the
    types of the operands and the static arguments.
    """
    if callable(out):
        out = out(*[ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in nodes], **static)
    leaves, tree = flatten_arrays(out)
    avals = []
    for i, x in enumerate(leaves):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise ValueError(
                f"kernel: out{leaf_names(out)[i]} must have a shape and a dtype; got {x!r}; pass a "
                "ShapeDtypeStruct"
            )
        avals.append(make_aval(tuple(x.shape), dtypes.canonicalize_dtype(np.dtype(x.dtype))))
    if not avals:
        raise ValueError(f"kernel: out must declare a result; got {out!r}; pass ShapeDtypeStructs")
    return tuple(avals), tree


def _format_type(shape: Sequence[int], dtype: np.dtype) -> str:
    return f"{dtype.name}[{','.join(map(str, shape))}]"


class ArrayFunction:
    """A user's function of arrays as an operation.

    `out` declares the types of its results (see `result_avals`). `fill` is the initial value of the
    arrays that the function writes its results to; None leaves them uninitialized. `cost` is the
    cost of one element of the largest result, in simple instructions.
    """

    kind = "array"

    def __init__(self, function: Any, name: str | None, out: Any, fill: Any, cost: int) -> None:
        self.function = function
        self.python: Any = python_function(function)
        self.name = name or self.python.__name__
        self.out, self.fill = out, fill
        # Name, file and line of the function, for error messages.
        self.of = "{} ({}:{})".format(*function_place(self.python))
        self.op = array_op(self.name, self.run, _jaxpr_params, cost)
        self.compiled: Any = None
        self.checked: set[Any] = set()  # keys of the types that it is compiled for
        self.threaded = bool(getattr(function, "targetoptions", {}).get("parallel"))

    def record(self, nodes: Sequence[Node], static: dict[str, Any]) -> Any:
        """Record the operation on operands and return its results.

        The function is compiled here, not when the node is evaluated, so that the call raises the
        errors of compilation.
        """
        self.check_operand_count(len(nodes), static)
        avals, tree = result_avals(self.out, nodes, static)
        self.check([x.aval for x in nodes], avals, static)
        params = {"result_avals": avals, "static": tuple(sorted(static.items()))}
        results = items(record(self.op, tuple(nodes), params))
        return tree.unflatten([wrap(x) for x in results])

    def check_operand_count(self, operands: int, static: dict[str, Any]) -> None:
        """Raise TypeError for unknown static arguments, or for too many operands."""
        names = self.python.__code__.co_varnames[: self.python.__code__.co_argcount]
        unknown = [n for n in static if n not in names]
        if unknown or operands > len(names) - len(static):
            description = f"{operands} operands" + (
                f" and {sorted(static)} by name" if static else ""
            )
            raise TypeError(
                f"kernel: {self.of} has the parameters {', '.join(names)}; got {description}; pass "
                "arrays by position; the parameters for its results follow"
            )

    def writes_results(self, operands: int, results: int, static: Sequence[str]) -> bool:
        """Return whether the function writes its results to arrays, its last arguments.

        A function that accepts an argument for each operand and each result writes its results. One
        that accepts the operands alone returns them.
        """
        code = self.python.__code__
        names = code.co_varnames[: code.co_argcount]
        defaults = names[len(names) - len(self.python.__defaults__ or ()) :]
        free = [n for n in names if n not in static]
        least = len([n for n in free if n not in defaults])
        for count, writes_results in ((operands + results, True), (operands, False)):
            if least <= count <= len(free):
                return writes_results
        raise TypeError(
            f"kernel: {self.of} takes {len(free)} arguments; got {operands} operands and "
            f"{results} declared results; let it take the operands and an array for each result, "
            "or the operands alone and return the results"
        )

    def check(self, ins: Sequence[Any], outs: Sequence[Aval], static: dict[str, Any]) -> None:
        """Compile the function for these types of operands and results, unless it has been.

        `ins` and `outs` have a shape and a dtype. Raises TypeError if Numba does not support a
        dtype or cannot compile the function, or if the function returns other types.
        """
        writes_results = self.writes_results(len(ins), len(outs), list(static))
        kinds = [(len(a.shape), a.dtype) for a in (*ins, *outs)]
        key = (*kinds, writes_results, tuple([(k, type(v)) for k, v in sorted(static.items())]))
        if key in self.checked:
            return
        for i, a in enumerate((*ins, *outs)):
            if a.dtype.kind not in "biufc" or (a.dtype.itemsize < 4 and a.dtype.kind == "f"):
                what = f"operand {i}" if i < len(ins) else f"result {i - len(ins)}"
                raise TypeError(
                    f"kernel: {self.of}: Numba does not support the dtype of {what}; got "
                    f"{a.dtype.name}; convert it to float32 with astype"
                )
        module = imported("accnp.compiler.numba.user_functions")
        if self.compiled is None:
            self.compiled = module.released(self.function)
        out_arguments = [] if not writes_results else outs
        result_types = module.compile_for(self.compiled, self.of, ins, out_arguments, static)
        self.check_returned(result_types, outs, writes_results)
        self.checked.add(key)

    def check_returned(self, result_types: Any, outs: Sequence[Aval], writes_results: bool) -> None:
        """Raise TypeError if the compiled function does not return what `out` declares.

        `result_types` has the rank and the dtype of each result that it returns.
        """
        if writes_results:
            if result_types:
                raise TypeError(
                    f"kernel: {self.of} gets arrays for its results and must return nothing; got "
                    f"{_describe_types(result_types)}; write to its last {len(outs)} arguments"
                )
            return
        expected = [(len(a.shape), a.dtype) for a in outs]
        if result_types != expected:
            raise TypeError(
                f"kernel: {self.of} returns {_describe_types(result_types) or 'nothing'}; out "
                f"declares {_describe_types(expected)}; change out or what the function returns"
            )

    def run(
        self, *arrays: np.ndarray, result_avals: Sequence[Aval], static: tuple[Any, ...]
    ) -> list[np.ndarray]:
        """Call the compiled function on arrays and return its results in new arrays."""
        ins = [_prepare_operand(x) for x in arrays]
        named = dict(static)
        writes_results = self.writes_results(len(ins), len(result_avals), list(named))
        outs = [self.allocate_result(a) for a in result_avals] if writes_results else []
        try:
            if self.threaded:
                with _one_at_a_time:
                    results = self.compiled(*ins, *outs, **named)
            else:
                results = self.compiled(*ins, *outs, **named)
        except Exception as error:
            raise JaxRuntimeError(
                f"kernel: {self.of} raised {type(error).__name__}: {error}"
            ) from error
        if writes_results:
            return outs
        several = list(results) if isinstance(results, tuple) else [results]
        for i, (x, a) in enumerate(zip(several, result_avals, strict=True)):
            if np.shape(x) != a.shape:
                raise JaxRuntimeError(
                    f"kernel: {self.of} returned {_format_type(np.shape(x), a.dtype)} for result "
                    f"{i}; declared is {_format_type(a.shape, a.dtype)}; return what out says"
                )
        return several

    def allocate_result(self, aval: Aval) -> np.ndarray:
        if self.fill is None:
            return np.empty(aval.shape, aval.dtype)
        return np.full(aval.shape, self.fill, aval.dtype)


def _prepare_operand(x: np.ndarray) -> Any:
    """Convert an operand to what the function is compiled for: a C-contiguous read-only array, or a
    scalar."""
    if not x.shape:
        return x[()]
    x = np.ascontiguousarray(x)
    if x.flags.writeable:
        x = x.view()
        x.flags.writeable = False
    return x


def _describe_types(kinds: Sequence[tuple[int, np.dtype]]) -> str:
    """Return the ranks and dtypes of results as text for an error message."""
    return ", ".join(f"{dtype.name} of rank {rank}" for rank, dtype in kinds)


def _jaxpr_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that jaxprs show: the static arguments."""
    return dict(params["static"])
