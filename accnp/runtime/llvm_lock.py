"""LLVM on several threads: llvmlite has one lock around all its calls, so that one thread at a
time is inside LLVM. What works in an LLVM context of its own needs none.

In: nothing. Out: `apart`, in which a thread passes the lock by in the calls that take long. If a
version of llvmlite has its lock elsewhere, threads take turns, as they do without this module.
"""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import llvmlite.binding.ffi as ffi

__all__ = ["apart"]

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


_collecting = False


def _before_fork() -> None:
    """Nothing is collected between the fork and the fresh lock: what goes may need the old one."""
    global _collecting
    _collecting = gc.isenabled()
    gc.disable()


def _after_fork() -> None:
    if _collecting:
        gc.enable()


def _fresh_lock() -> None:
    """In a child of the process: the thread that held the lock may not be there any more."""
    lock: Any = getattr(ffi.lib, "_lock", None)
    if hasattr(lock, "_lock"):
        lock._lock = threading.RLock()
    apart.on = False
    _after_fork()


_install()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_fresh_lock
    )
