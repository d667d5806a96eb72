"""The hot path: buffers, nodes, launches, threads in kernels, and calls that were seen before.

In C (`_core`) where the extension was built, else in Python (`fallback`); both behave alike, except
that only the extension has records of calls and graphs that were seen before. The environment
variable `ACCNP_NATIVE=0` asks for the fallback.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__all__ = [
    "ALONE", "BRIEFLY", "BYPASS", "COMPILED", "COPY", "FREE", "GROUP", "SPREAD", "STREAM",
    "TOGETHER", "ArrayBase", "Blocks", "BufferBase", "Caller", "Form", "Node", "Pool", "Record",
    "Team", "install_arrays", "install_buffers", "install_recording", "launch_held",
    "launch_released", "launches", "observe_recording", "operate", "repeat", "set_pending_limit",
    "share", "walker", "wrap",
]  # fmt: skip

INTERFACE = 1  # of the extension that this version needs, see `module.c`
# How a table of kernels is run: the interpreter lock kept, or released; released, with helpers, or
# with those of them that are awake.
ALONE, FREE, TOGETHER, BRIEFLY = range(4)

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "accnp: a free-threaded interpreter without its lock is not supported; start Python with "
        "-X gil=1 or PYTHON_GIL=1"
    )


_core: Any = None
if os.environ.get("ACCNP_NATIVE") != "0" and find_spec("accnp._native._core") is not None:
    _core = import_module("accnp._native._core")
    if _core.INTERFACE != INTERFACE:
        raise ImportError(
            f"accnp: the extension {_core.__file__} was built for another version of the package; "
            "install accnp again, or set ACCNP_NATIVE=0 to do without it"
        )
COMPILED = _core is not None

if COMPILED and not TYPE_CHECKING:
    from accnp._native._core import (
        BYPASS,
        COPY,
        GROUP,
        SPREAD,
        STREAM,
        ArrayBase,
        Blocks,
        BufferBase,
        Caller,
        Form,
        Node,
        Pool,
        Record,
        Team,
        install_arrays,
        install_buffers,
        install_recording,
        launch_held,
        launch_released,
        launches,
        observe_recording,
        operate,
        repeat,
        set_pending_limit,
        share,
        walker,
        wrap,
    )  # fmt: skip
else:
    from accnp._native.fallback import (
        BYPASS,
        COPY,
        GROUP,
        SPREAD,
        STREAM,
        ArrayBase,
        Blocks,
        BufferBase,
        Caller,
        Form,
        Node,
        Pool,
        Record,
        Team,
        install_arrays,
        install_buffers,
        install_recording,
        launch_held,
        launch_released,
        launches,
        observe_recording,
        operate,
        repeat,
        set_pending_limit,
        share,
        walker,
        wrap,
    )  # fmt: skip
