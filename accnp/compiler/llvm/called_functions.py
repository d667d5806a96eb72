"""Functions of users as functions that other modules call: kernels for GPUs that Numba types.

In: the functions of a source, and the types of the arguments of one of them. Out: the text of a
module that defines it, from the loop IR.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from llvmlite import ir

from accnp.compiler.frontend.functions import UserFunctions
from accnp.compiler.frontend.source import read_kernel
from accnp.compiler.frontend.statements import Written
from accnp.compiler.frontend.syntax import functions_of
from accnp.compiler.llvm.lower import Function
from accnp.compiler.loops.ir import Var, number_type
from accnp.compiler.loops.types import DType
from accnp.compiler.pipeline import Target, run_passes

__all__ = ["CalledFunction", "lower_function"]


class CalledFunction(NamedTuple):
    """A function of two integers, which it ignores, the addresses of its arguments, and that of its
    result. The text of its module says that it is inlined."""

    symbol: str
    text: str
    result: DType


def lower_function(
    name: str,
    functions: Mapping[str, ast.FunctionDef],
    of: Sequence[DType],
    module: ir.Module,
    fast: bool,
) -> CalledFunction:
    """Return the code of a function of numbers.

    Parameters
    ----------
    name : str
        The name of the function.
    functions : mapping of str to ast.FunctionDef
        It, and those that it calls.
    of : sequence of DType
        The types of its arguments.
    module : ir.Module
        An empty module for the target.
    fast : bool
        Whether operations on floats may be reordered and fused.

    Raises
    ------
    Unsupported
        If the function is beyond the language.
    """
    users = UserFunctions(functions, Written(set()), by_numba=False)
    names = [f"x{k}" for k in range(len(of))]
    result = number_type(users.call(name, [Var(n, t) for n, t in zip(names, of, strict=True)]))
    symbol = "_".join([name, "of", *[t.token for t in of]])
    values = ", ".join([f"{n}[0]" for n in names])
    text = f"def {symbol}(lo, hi, {', '.join(names)}, out):\n    out[0] = {name}({values})\n"
    tokens = [f"{t.token}*" for t in (*of, result)]
    kernel = read_kernel(functions_of(text)[symbol], tokens, functions=functions)
    made = Function(run_passes(kernel, Target(0)), 0, fast, module=module)
    return CalledFunction(symbol, made.callee("nounwind", inline=True, shared=False), result)
