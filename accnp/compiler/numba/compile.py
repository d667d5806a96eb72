"""Compile printed kernels through Numba's public API.

`kernel_cache.py` calls `compile_source` with the source that `numba/source.py` prints, and a
signature. It returns the address of the entry of the kernel. `llvm/entry.py` writes entries for
both back ends: an entry takes chunks of the range from a counter, and calls the kernel for each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import FunctionType
from typing import TYPE_CHECKING

from numba import cfunc, njit, types

from accnp.compiler.llvm.fast import FLAGS
from accnp.compiler.numba import functions
from accnp.compiler.numba.private import COMPILER_LOCK, global_compiler_lock
from accnp.compiler.worker_threads import at_work
from accnp.forks import at_fork

if TYPE_CHECKING:
    from numba.core.ccallback import CFunc

__all__ = ["compile_source"]

Callees = tuple[tuple[str, tuple[str, ...]], ...]

# Only other kernels call these functions, not Python or C.
_INNER: dict[str, bool] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_NO_ARRAY_EXPRESSIONS: dict[str, bool] = {"no_rewrites": True, "looplift": False}


def _release() -> None:
    if COMPILER_LOCK._is_owned():  # not if this module was loaded while the process forked
        COMPILER_LOCK.release()


# A fork waits until no thread compiles. Otherwise, the child process could wait for the lock
# forever, or use typing contexts that are incomplete.
at_fork(_release, before=COMPILER_LOCK.acquire, parent=_release)


def compile_source(
    source: str,
    name: str,
    signature: Sequence[str],
    enter: Callable[[int, Sequence[str]], tuple[int, object]],
    callees: Callees = (),
    shared: Collection[str] = (),
    fastmath: bool = False,
) -> tuple[int, object]:
    """Return the address of the entry of a kernel, and an object that keeps its code alive.

    Parameters
    ----------
    source : str
        The source of a function of the first and last step and the arguments of the signature, and
        of the functions that it calls.
    name : str
        The name of the function.
    signature : sequence of str
        A token for each argument: `f4*` for a pointer, `i8` for an integer.
    enter : callable
        Creates the entry of a function from its address and the signature. Returns the address of
        the entry, and an object that keeps it alive.
    callees : tuple, optional
        Other kernels in the source with their signatures; each calls only those before it.
    shared : collection of str, optional
        The names of those whose steps threads share.
    fastmath : bool, optional
        Whether operations may be reordered and fused.
    """
    # `at_work` comes first: the thread that waits for it at exit may need the lock afterwards. The
    # lock also covers the start of Numba, which creates its typing contexts.
    with at_work, global_compiler_lock:
        scope = functions.scope()
        known = dict(scope)
        exec(compile(source, f"<accnp kernel {name}>", "exec"), scope)
        flags: set[str] | bool = set(FLAGS) if fastmath else False
        own = {
            n: f for n, f in scope.items() if isinstance(f, FunctionType) and f is not known.get(n)
        }
        compiled = {
            n: njit(error_model="numpy", fastmath=flags, **_INNER, **_NO_ARRAY_EXPRESSIONS)(f)
            for n, f in own.items()
        }
        scope.update(compiled)
        references: list[object] = [scope]
        for callee, its in callees:
            if callee in shared:
                function = _compile(own[callee], its, flags)
                functions.ENTRIES[compiled[callee]], code = enter(function.address, its)
                references += [function, code]
        function = _compile(own[name], signature, flags)
        address, code = enter(function.address, signature)
        return address, (function, code, references)


def _compile(kernel: FunctionType, signature: Sequence[str], fastmath: set[str] | bool) -> CFunc:
    """Return the kernel as a C function."""
    kinds = [types.int64, types.int64, *map(_type_of, signature)]
    return cfunc(
        types.void(*kinds), error_model="numpy", fastmath=fastmath, **_NO_ARRAY_EXPRESSIONS
    )(kernel)


def _type_of(token: str) -> types.Type:
    kind = functions.NUMBA_TYPES[token.removesuffix("*")]
    return types.CPointer(kind) if token.endswith("*") else kind
