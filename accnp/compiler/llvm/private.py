"""Private names of llvmlite that the compiler uses.

`tests/compiler/test_private_names.py` reports which of them a version of llvmlite has changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from llvmlite import ir
from llvmlite.binding import ffi

__all__ = ["Line", "add_attribute", "find_lock", "free_passes", "insert_line", "replace_locks"]


class Line:
    """One instruction as text, in place of one of llvmlite's instructions."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def insert_line(b: ir.IRBuilder, text: str) -> None:
    """Insert an instruction, as text, where a builder is."""
    b._insert(Line(text))


def add_attribute(function: ir.Function, text: str) -> None:
    """Add an attribute to a function; llvmlite checks names against a list that lacks some."""
    set[str].add(function.attributes, text)


def find_lock() -> threading.RLock | None:
    """Return the lock that llvmlite holds around its calls; None if a version has it elsewhere."""
    return getattr(getattr(ffi.lib, "_lock", None), "_lock", None)


def replace_locks(
    names: Iterable[str], replacement: Callable[[AbstractContextManager[object]], object]
) -> None:
    """Replace the lock of some functions of llvmlite's library, where a version has it there."""
    for name in names:
        wrapper: Any = getattr(ffi.lib, f"LLVMPY_{name}", None)
        if hasattr(wrapper, "_lock"):
            wrapper._lock = replacement(wrapper._lock)


def free_passes(passes: ffi.ObjectRef) -> None:
    """Free a manager of passes.

    llvmlite 0.50 does not free it (0.3 MB for level 2), because the first `_dispose` in the method
    resolution order of its class does nothing.
    """
    kind = next(k for k in type(passes).__mro__ if k is not ffi.ObjectRef and "_dispose" in vars(k))
    vars(kind)["_dispose"](passes)
    passes.detach()
