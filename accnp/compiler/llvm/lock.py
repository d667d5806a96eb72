"""Let several threads compile at the same time.

llvmlite holds one lock around all its calls, so only one thread at a time is inside LLVM. A thread
that works in an LLVM context of its own does not need the lock: within `with apart`, the calls that
take long do not take it. If a version of llvmlite has its lock elsewhere, threads take turns as
they do without this module. `in_order` wraps functions that hold LLVM contexts and modules.
"""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import ParamSpec, TypeVar

from accnp.compiler.llvm.private import find_lock, replace_locks
from accnp.forks import renewed, run_uninterrupted

__all__ = ["apart", "in_order"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Parsing, passes, emission. Calls that create or destroy objects keep the lock: an object that the
# garbage collector destroys may belong to another context.
_LONG_CALLS = (
    "ParseAssembly",
    "LinkModules",
    "RunNewModulePassManager",
    "TargetMachineEmitToMemory",
)


class _Apart(threading.local):
    """A `with` block in which the thread works in an LLVM context of its own."""

    on = False

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *error: object) -> None:
        self.on = False


class _SkippableLock:
    """A lock of llvmlite that threads inside `with apart` do not take."""

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        if not apart.on:
            self.lock.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not apart.on:
            self.lock.__exit__(kind, error, trace)


apart = _Apart()


replace_locks(_LONG_CALLS, _SkippableLock)
_lock = find_lock()
if _lock is not None:
    renewed(_lock)


def in_order(f: Callable[_P, _T]) -> Callable[_P, _T]:
    """Wrap a function that uses LLVM: an interrupt does not stop it, and if it fails, its frames
    release their objects in order.

    The frames of an error can be part of a reference cycle, whose objects the garbage collector
    destroys in any order. Destroying a context before its modules crashes the process.
    """

    def tidy(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return f(*args, **kwargs)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)
            raise

    return functools.wraps(f)(functools.partial(run_uninterrupted, tidy))
