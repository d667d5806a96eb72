"""Compile printed kernels through Numba's public API.

In: the source that `numba.source` prints, and a signature. Out: the address of an entry like those
of `llvm.entry`, which takes chunks of the range from a counter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import cfunc, njit, types  # pyright: ignore[reportAttributeAccessIssue]
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from accnp.compiler.numba import functions
from accnp.forks import at_fork

__all__ = ["compile_source"]

_WORDS = types.CPointer(types.int64)
_ENTRY = """
def entry(argv, counter, n, chunk):
    if address_of(counter) < 2:
        kernel(chunk, n{arguments})
    else:
        first = take(counter, chunk)
        while first < n:
            kernel(first, min(first + chunk, n){arguments})
            first = take(counter, chunk)
"""


_lock: Any = global_compiler_lock._lock


def _release() -> None:
    if _lock._is_owned():  # not if this module was loaded while the process forked
        _lock.release()


# A fork waits until no thread compiles: a child would wait for the lock for ever, or meet typing
# contexts that are half made.
at_fork(_release, before=_lock.acquire, parent=_release)


@intrinsic
def address_of(typingctx: Any, p: Any) -> Any:
    """A pointer as an integer."""

    def code(context: Any, b: Any, signature: Any, values: Sequence[Any]) -> Any:
        return b.ptrtoint(values[0], ir.IntType(64))

    return types.int64(_WORDS), code


@intrinsic
def take(typingctx: Any, counter: Any, chunk: Any) -> Any:
    """Add to the counter; what it was before."""

    def code(context: Any, b: Any, signature: Any, values: Sequence[Any]) -> Any:
        return b.atomic_rmw("add", *values, "monotonic")

    return types.int64(_WORDS, types.int64), code


def _pointer(token: str) -> Any:
    """What makes a pointer of an integer."""
    kind = types.CPointer(functions.NUMBA_TYPES[token])

    @intrinsic
    def pointer(typingctx: Any, word: Any) -> Any:
        def code(context: Any, b: Any, signature: Any, values: Sequence[Any]) -> Any:
            return b.inttoptr(values[0], context.get_value_type(kind))

        return kind(types.int64), code

    return pointer


_POINTERS = {token: _pointer(token) for token in functions.NUMBA_TYPES}


@global_compiler_lock  # also around Numba's start, which makes its typing contexts
def compile_source(source: str, name: str, signature: Sequence[str]) -> tuple[int, Any]:
    """Return the address of the entry of a kernel, and what keeps its code.

    Parameters
    ----------
    source : str
        The source of a function of the first and last step and the arguments of the signature.
    name : str
        The name of the function.
    signature : sequence of str
        A token for each argument: `f4*` for a pointer, `i8` for an integer.
    """
    scope: dict[str, Any] = {n: getattr(functions, n) for n in functions.__all__}
    exec(compile(source, f"<accnp kernel {name}>", "exec"), scope)
    kernel = njit(error_model="numpy")(scope[name])
    scope = {"address_of": address_of, "take": take, "kernel": kernel}
    arguments = ""
    for at, token in enumerate(signature):
        if token.endswith("*"):
            scope[f"pointer_{at}"] = _POINTERS[token.removesuffix("*")]
            arguments += f", pointer_{at}(argv[{at}])"
        else:
            arguments += f", argv[{at}]"
    exec(_ENTRY.format(arguments=arguments), scope)
    made = cfunc(types.void(_WORDS, _WORDS, types.int64, types.int64))(scope["entry"])
    address: Any = made.address
    return address, (made, scope)
