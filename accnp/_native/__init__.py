"""The core of the hot path: buffers, nodes, arrays, launches of kernels, and dispatch of calls.

It exists twice with the same interface: as a C extension (`_core`), and in Python (`fallback`),
which is used if the extension was not built. Only the extension has records of pending graphs. The
environment variable `ACCNP_NATIVE` selects one: 0 is the fallback; 1 is the extension, and its
absence is then an error; a path is another build of the extension, for example one with
AddressSanitizer. `fallback.py` lists the names of both.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

INTERFACE = 13  # of the extension that this version needs, see `module.c`

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "accnp: a free-threaded interpreter without its lock is not supported; start Python with "
        "-X gil=1 or PYTHON_GIL=1"
    )

_setting = os.environ.get("ACCNP_NATIVE", "")
_core: Any = None
if _setting not in ("", "0", "1"):
    from importlib.util import module_from_spec, spec_from_file_location

    _spec = spec_from_file_location("accnp._native._core", _setting)
    if _spec is None or _spec.loader is None:
        raise ImportError(
            f"accnp: ACCNP_NATIVE must be 0, 1, or the path of an extension; got {_setting!r}"
        )
    _core = sys.modules["accnp._native._core"] = module_from_spec(_spec)
    _spec.loader.exec_module(_core)
elif _setting != "0":
    try:
        import accnp._native._core as _core  # type: ignore[no-redef]
    except ModuleNotFoundError as _error:
        if _setting == "1":
            raise ImportError(
                "accnp: ACCNP_NATIVE=1 needs the C extension, which was not built; install accnp "
                "again, with a C compiler"
            ) from _error
if _core is not None and _core.INTERFACE != INTERFACE:
    raise ImportError(
        f"accnp: the extension {_core.__file__} was built for another version of the package; "
        "install accnp again, or set ACCNP_NATIVE=0 to do without it"
    )
# In a source tree, the sources may have changed since. An extension without a stamp is another one.
_sources = getattr(_core, "SOURCES", -1)
if _core is not None and _sources:
    _folder = os.path.dirname(os.path.abspath(__file__))
    _extension: Any = _core.__file__
    _built = os.stat(_extension).st_mtime
    with os.scandir(_folder) as _files:
        _newer = [
            f.name for f in _files if f.name.endswith((".c", ".h")) and f.stat().st_mtime > _built
        ]
    if _newer:
        from accnp._native.stamp import stamp_of

        if stamp_of(_folder) != _sources:
            raise ImportError(
                f"accnp: the extension {_extension} was built from other C sources than those "
                f"of the package; got {', '.join(sorted(_newer))}, which changed since; run python "
                "setup.py build_ext --inplace, install accnp again, or set ACCNP_NATIVE=0 to do "
                "without it"
            )
COMPILED = _core is not None

if COMPILED and not TYPE_CHECKING:
    from accnp._native._core import *  # noqa: F403
else:
    from accnp._native.fallback import *  # noqa: F403
