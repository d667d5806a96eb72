"""The hot path: buffers, nodes, launches, threads in kernels, and calls that were seen before.

In C (`_core`) where the extension was built, else in Python (`fallback`); both behave alike, except
that only the extension has records of calls and graphs that were seen before. The environment
variable `ACCNP_NATIVE=0` asks for the fallback; the path of an extension, such as one with checks
of memory, asks for that.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

__all__ = [
    "ALONE",
    "BRIEFLY",
    "BYPASS",
    "COMPILED",
    "COPY",
    "FREE",
    "GROUP",
    "SPREAD",
    "STREAM",
    "TOGETHER",
    "ArrayBase",
    "Blocks",
    "BufferBase",
    "Caller",
    "Form",
    "Node",
    "Pool",
    "Record",
    "Team",
    "install_arrays",
    "install_buffers",
    "install_recording",
    "launch_held",
    "launch_released",
    "launches",
    "observe_recording",
    "operate",
    "register_code",
    "repeat", "select",
    "set_pending_limit",
    "share",
    "walker",
    "wrap",
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


def _extension() -> Any:
    """The extension, None where it was not built or is not wanted."""
    wanted = os.environ.get("ACCNP_NATIVE", "")
    if wanted == "0":
        return None
    spec = find_spec(_NAME) if not wanted else spec_from_file_location(_NAME, wanted)
    if spec is None or spec.loader is None:
        return None
    core = module_from_spec(spec)
    sys.modules[_NAME] = core
    spec.loader.exec_module(core)
    if core.INTERFACE != INTERFACE:
        raise ImportError(
            f"accnp: the extension {core.__file__} was built for another version of the package; "
            "install accnp again, or set ACCNP_NATIVE=0 to do without it"
        )
    return core


_NAME = "accnp._native._core"
_core = _extension()
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
        register_code,
        repeat,
        select,
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
        register_code,
        repeat,
        select,
        set_pending_limit,
        share,
        walker,
        wrap,
    )  # fmt: skip
