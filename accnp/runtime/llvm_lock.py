"""LLVM on several threads: llvmlite has one lock around all its calls, so that one thread at a
time is inside LLVM. What works in an LLVM context of its own needs none.

In: nothing. Out: `apart`, in which a thread passes the lock by in the calls that take long. If a
version of llvmlite has its lock elsewhere, threads take turns, as they do without this module.
And `in_order`, for functions that hold contexts and modules of LLVM's.
"""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import llvmlite.binding.ffi as ffi

from accnp.forks import aside, renewed

__all__ = ["apart", "in_order"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Parsing, passes, emission. Calls that make or drop objects keep the lock: what a garbage
# collection drops may belong to another context.
_LONG = ("ParseAssembly", "LinkModules", "RunNewModulePassManager", "TargetMachineEmitToMemory")


class _Apart(threading.local):
    """Whether this thread works in a context of its own, as a `with` block."""

    on = False

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *error: object) -> None:
        self.on = False


class _Passable:
    """llvmlite's lock, for all threads but those that are apart."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        if not apart.on:
            self.lock.__enter__()

    def __exit__(self, *error: object) -> None:
        if not apart.on:
            self.lock.__exit__(*error)


apart = _Apart()


def _install() -> None:
    for name in _LONG:
        wrapper: Any = getattr(ffi.lib, f"LLVMPY_{name}", None)
        if hasattr(wrapper, "_lock"):
            wrapper._lock = _Passable(wrapper._lock)


_install()
_lock: Any = getattr(ffi.lib, "_lock", None)
if hasattr(_lock, "_lock"):
    renewed(_lock._lock)


def in_order(f: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function that works in LLVM, whose frames let go of what they hold if it fails, and
    which no interrupt ends.

    Frames of an error can be part of a cycle, and what a cycle holds is destroyed in any order: a
    context before its modules, which ends the process.
    """

    def tidy(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return f(*args, **kwargs)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)
            raise

    return functools.wraps(f)(functools.partial(aside, tidy))
