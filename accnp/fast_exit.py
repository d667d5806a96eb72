"""End processes that have compiled kernels quickly.

The compiler leaves some 50,000 objects. CPython traverses all of them in each of the four garbage
collections at its end, and then frees them one by one, which takes a third of a second. At exit,
this module moves all objects to the permanent generation (`gc.freeze`), which is not collected, and
keeps the contents of the modules of accnp and of the compiler alive. It does neither if an object
has a finalizer that would not run then: a `__del__` method, a callback of a weak reference, a
suspended generator, or an open file. Objects outside of reference cycles are finalized as usual.

`watch_exit` is called when LLVM is loaded (`compiler/llvm/objects.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import io
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from accnp._native import select

__all__ = ["watch_exit"]

# Packages whose objects need no finalization at exit: the system frees their memory.
_PACKAGES = frozenset(["accnp", "llvmlite", "ml_dtypes", "numba", "numpy", "scipy"])
# Modules of the standard library whose callbacks only remove an entry from a container.
_CONTAINERS = frozenset(["weakref", "_weakrefset", "_frozen_importlib"])
_BUILTIN_CALLBACKS = frozenset(["ReferenceType._destroy", "ReferenceType._localdummy_destroyed"])
_SUSPENDED = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}


def watch_exit() -> None:
    """Freeze all objects when the process ends, unless one of them has a finalizer to run."""
    atexit.register(_at_exit)


def _at_exit() -> None:
    if threading.main_thread().is_alive():  # called by the program itself, which continues
        watch_exit()
        return
    with contextlib.suppress(Exception):  # raised by attributes of the program's objects
        if not _finalized_objects():
            _keep(
                [
                    vars(m).copy()
                    for name, m in sys.modules.copy().items()
                    if _belongs_to_package(name)
                ]
            )
            gc.freeze()


def _belongs_to_package(name: str) -> bool:
    return name.partition(".")[0] in _PACKAGES


def _keep(x: object) -> None:
    """Keep an object alive until the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


def _finalized_objects() -> list[object]:
    """Return the objects that have a finalizer that must run."""
    return list(filter(_runs_finalizer, select(gc.get_objects(), _is_of_interest)))


def _is_of_interest(kind: type) -> bool:
    if issubclass(kind, weakref.ReferenceType):
        return True
    has = any("__del__" in base.__dict__ for base in kind.__mro__)
    return has and _package(kind) not in _PACKAGES


def _package(of: Any) -> str:
    return str(getattr(of, "__module__", None)).partition(".")[0]


def _runs_finalizer(x: Any) -> bool:
    if isinstance(x, weakref.ReferenceType):
        callback = x.__callback__  # None if the object is dead
        return callback is not None and not _is_harmless(callback)
    frame_name = _SUSPENDED.get(type(x))
    if frame_name is not None:
        frame = getattr(x, frame_name)
        return frame is not None and _package_of_frame(frame) not in _PACKAGES
    if isinstance(x, io.IOBase):
        return not x.closed and not _is_standard_stream(x)
    return True


def _package_of_frame(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _is_harmless(callback: Callable[..., Any]) -> bool:
    if isinstance(callback, types.BuiltinFunctionType):
        return callback.__qualname__ in _BUILTIN_CALLBACKS
    if isinstance(callback, weakref.finalize):  # has its own exit handler
        return True
    return _package(callback) in _PACKAGES | _CONTAINERS or callback.__module__ == "logging"


def _is_standard_stream(x: io.IOBase) -> bool:
    """CPython flushes these itself. They are three layers deep."""
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        layer: Any = stream
        while layer is not None:
            if layer is x:
                return True
            layer = getattr(layer, "buffer", None) or getattr(layer, "raw", None)
    return False
