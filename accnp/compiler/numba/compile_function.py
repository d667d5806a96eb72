"""Compilation of a user-defined function of numbers through Numba's public API.

The input is the syntax tree of a module, the name of a function in it, and the types of its
arguments. The output is the text of an LLVM module, which is linked to the kernels that call the
function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING

from numba import njit, types
from numba.np.numpy_support import as_dtype

from accnp.compiler.llvm.intrinsics.linked import LinkedFunction
from accnp.compiler.loops.types import DType, dtype_of
from accnp.compiler.numba.functions import NUMBA_TYPES
from accnp.compiler.numba.user_functions import gist, line_in
from accnp.compiler.unsupported import Unsupported
from accnp.compiler.worker_threads import at_work

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

__all__ = ["compile_function"]

# Other functions can call only the function itself.
_DEFINED = re.compile(
    r"^define (?!internal |private |linkonce)[^@\n]*@\"?([^\s\"(]+)", re.MULTILINE
)
_COMMON = re.compile(r"= common (?:local_unnamed_addr )?(?=global)")
# No memory of Numba's: kernels have none. What is called is linked, not exported to Python or C.
_OPTIONS: dict[str, object] = {
    "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
}  # fmt: skip


def compile_function(
    name: str, mark: str, module: ast.Module, of: Sequence[DType]
) -> LinkedFunction:
    """Return the code of a function for arguments of some types.

    Parameters
    ----------
    name : str
        The name of the function.
    mark : str
        A name for its definition, which contains a hash of the text.
    module : ast.Module
        Its definition, and those of the functions that it calls.
    of : sequence of DType
        The types of its arguments.

    Raises
    ------
    Unsupported
        If Numba cannot compile it, with the line, or its result is not a number.
    """
    scope: dict[str, object] = {}
    compiled: dict[str, Dispatcher] = {}
    exec(compile(module, f"<{mark}>", "exec"), scope)
    for n, f in list(scope.items()):
        if isinstance(f, FunctionType):
            scope[n] = compiled[n] = njit(**_OPTIONS)(f)
    dispatcher = compiled[name]
    argument_types = tuple([NUMBA_TYPES[t.token] for t in of])
    try:
        with at_work:
            dispatcher.compile(argument_types)
    except Exception as error:  # not all are NumbaError
        text = "a function of numbers makes no arrays, lists or texts"
        unsupported = Unsupported(
            text if "NRT required" in str(error) else f"{name}: {gist(error)}"
        )
        unsupported.line = line_in(error, f"<{mark}>") or dispatcher.py_func.__code__.co_firstlineno
        raise unsupported from error
    if len(dispatcher.nopython_signatures) > 1:
        raise Unsupported(f"{name} calls itself with numbers of other types")
    returned = types.unliteral(dispatcher.overloads[argument_types].signature.return_type)
    known = isinstance(returned, types.Number | types.Boolean)
    result = dtype_of(as_dtype(returned)) if known else None
    if result is None:
        unsupported = Unsupported(f"{name} returns {returned}, which is not a number")
        unsupported.line = dispatcher.py_func.__code__.co_firstlineno
        raise unsupported
    code = dispatcher.inspect_llvm(argument_types)
    (symbol,) = _DEFINED.findall(code)
    code = _DEFINED.sub(lambda m: m[0].replace("define ", "define linkonce_odr ", 1), code)
    code = _COMMON.sub("= internal ", code)
    unique = "_".join([mark, *[t.token for t in of]])
    return LinkedFunction(unique, code.replace(symbol, unique), result)
