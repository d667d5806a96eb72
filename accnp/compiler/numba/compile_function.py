"""Compile a function of numbers that a user brought through Numba's public API.

In: the text of functions, the name of one of them, and the types of its arguments. Out: the text of
an LLVM module, which is linked to the kernels that call it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from numba import njit, types  # pyright: ignore[reportAttributeAccessIssue]
from numba.np.numpy_support import as_dtype

from accnp.compiler.intrinsics.linked import LinkedFunction
from accnp.compiler.loops.types import DType, dtype_of
from accnp.compiler.numba.functions import NUMBA_TYPES
from accnp.compiler.unsupported import Unsupported

__all__ = ["compile_function"]

# What others can call: the function itself.
_DEFINED = re.compile(
    r"^define (?!internal |private |linkonce)[^@\n]*@\"?([^\s\"(]+)", re.MULTILINE
)
_COMMON = re.compile(r"= common (?:local_unnamed_addr )?(?=global)")
# No memory of Numba's: kernels have none. What is called is linked, not exported to Python or C.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
}  # fmt: skip


def compile_function(name: str, text: str, of: Sequence[DType]) -> LinkedFunction:
    """Return the code of a function for arguments of some types.

    Parameters
    ----------
    name : str
        The name of the function.
    text : str
        Its definition, and those of the functions that it calls.
    of : sequence of DType
        The types of its arguments.

    Raises
    ------
    Unsupported
        If its result is not a number.
    numba.core.errors.NumbaError
        If Numba cannot compile it.
    """
    scope: dict[str, Any] = {}
    exec(compile(text, f"<accnp function {name}>", "exec"), scope)
    for n, f in list(scope.items()):
        if isinstance(f, FunctionType):
            scope[n] = njit(**_OPTIONS)(f)
    made = scope[name]
    given = tuple([NUMBA_TYPES[t.token] for t in of])
    made.compile(given)
    (signature,) = made.nopython_signatures
    returned = types.unliteral(signature.return_type)
    known = isinstance(returned, types.Number | types.Boolean)
    result = dtype_of(as_dtype(returned)) if known else None
    if result is None:
        raise Unsupported(f"{name} returns {returned}")
    module = made.inspect_llvm(given)
    (symbol,) = _DEFINED.findall(module)
    module = _DEFINED.sub(lambda m: m[0].replace("define ", "define linkonce_odr ", 1), module)
    module = _COMMON.sub("= internal ", module)
    unique = "_".join(
        [name, hashlib.sha256(text.encode()).hexdigest()[:16], *[t.token for t in of]]
    )
    return LinkedFunction(unique, module.replace(symbol, unique), result)
