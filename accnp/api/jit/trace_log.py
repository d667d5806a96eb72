"""Logging of jitted functions: why a call was traced, and how long tracing and compiling took.

Records go to the logger "accnp.jit", with the phrases of JAX's records: at WARNING under
`log_compiles` and `explain_cache_misses`, at DEBUG if `logging` enables it. With ACCNP_DEBUG=1,
lines are written to standard error.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from accnp.compiler.cache_state import counters
from accnp.config import OPTIONS, config
from accnp.debug_log import note
from accnp.errors import user_line
from accnp.ir.graph import Graph
from accnp.lazy_imports import imported
from accnp.trace_fn import function_place

__all__ = ["explain_miss", "log", "log_compilation", "log_trace", "report_miss"]

_codes: weakref.WeakSet[Any] = weakref.WeakSet()  # code objects of traced functions
_TRACED = [name for name, option in OPTIONS.items() if option.traced]


_WARNING, _DEBUG = 30, 10  # levels of `logging`


def _level() -> int:
    """The logging level of compilation records; 0 if no handler reads them."""
    if config.log_compiles:
        return _WARNING
    logging = sys.modules.get("logging")  # loaded if the program reads records
    return _DEBUG if logging and logging.getLogger("accnp.jit").isEnabledFor(_DEBUG) else 0


def log(level: int, text: str, *args: object) -> None:
    """Send a record to the logger "accnp.jit"."""
    import logging  # imported on demand, since it takes 7 ms

    logging.getLogger("accnp.jit").log(level, text, *args)


def log_trace(name: str, transform: str, began: float) -> None:
    """Log that a function was traced, and how long that took."""
    level = _level()
    if level:
        seconds = perf_counter() - began
        log(level, "Finished tracing %s for %s in %.9f sec", name, transform, seconds)


@contextmanager
def log_compilation(graph: Graph, n_closed: int) -> Iterator[bool]:
    """Log planning and compilation of a program in a `with` block, with the time of each.

    Yields whether they are logged; if so, the caller compiles kernels now instead of at launch.
    """
    level = _level()
    if not level:
        yield False
        return
    name = graph.name
    types = ", ".join([_text()(x.aval) for x in graph.inputs[n_closed:]])
    log(level, "Compiling jit(%s) with global shapes and types (%s)", name, types)
    began, before = perf_counter(), counters.seconds
    yield True
    code = counters.seconds - before
    plan = max(perf_counter() - began - code, 0.0)
    # The phrases are JAX's; the times are those of planning and of generating machine code.
    log(level, "Finished jaxpr to MLIR module conversion jit(%s) in %.9f sec", name, plan)
    log(level, "Finished XLA compilation of jit(%s) in %.9f sec", name, code)


def _text() -> Any:
    return imported("accnp.compiler.fusion.describe").aval_text


def report_miss(function: Any, call: Any, avals: Sequence[Any], cache: dict) -> None:
    """Report that and why a function is traced, if an option requests it; called at each miss.

    Raises:
        RuntimeError: the option no_tracing is set.
    """
    if config.no_tracing:
        name, file, line = function_place(function)
        raise RuntimeError(
            f"jit: tracing is disabled by no_tracing; got {name} ({file}:{line}); "
            "call it with these types before"
        )
    if not config.debug and not config.explain_cache_misses:
        _remember(function)
        return
    name, file, line = function_place(function)
    place = f" ({file}:{line})" if file else ""
    text = f"jit {name}{place}: traced, {explain_miss(function, call, avals, cache)}"
    if config.explain_cache_misses:
        seen = (
            "all previously seen cache keys differ"
            if _cached_signatures(cache)
            else "never seen function"
        )
        log(_WARNING, "TRACING CACHE MISS at %s:\n  %s\n  %s", user_line(), seen, text)
    if config.debug:
        note(text)


def explain_miss(function: Any, call: Any, avals: Sequence[Any], cache: dict) -> str:
    """Compare a call with the nearest signature in a cache; return a text of the differences."""
    known = _cached_signatures(cache)
    if not known:
        code = getattr(function, "__code__", None)
        if code in _codes:
            return (
                "since it is a new function object of code that was traced before "
                "(defined in a loop or in another function?); define and jit it once"
            )
        _remember(function)
        return "since this is its first call"
    nearest = min(known, key=lambda k: (k[0] != call.spec, len(_differences(call, avals, k))))
    differences = _differences(call, avals, nearest)
    if not differences:
        return "since the entry of this signature could not be kept"
    seen = f"{len(known)} signature{'s' if len(known) > 1 else ''} known"
    return f"since the nearest of {seen} differs: {'; '.join(differences)}"


def _cached_signatures(cache: dict) -> list[Any]:
    """Return the signatures in a function's cache."""
    return [k for k in cache if len(k) == 4 and isinstance(k[1], tuple)]


def _remember(function: Any) -> None:
    code = getattr(function, "__code__", None)
    if code is not None:
        _codes.add(code)


def _differences(call: Any, avals: Sequence[Any], key: tuple[Any, ...]) -> list[str]:
    spec, old_avals, old_static, old_config = key
    out = []
    if spec != call.spec:
        out.append(f"structure of the arguments: {call.spec}, before {spec}")
    else:
        for name, new, old in zip(call.names(), avals, old_avals, strict=True):
            if new is not old:
                out.append(f"{name}: {_type(new, old)}, before {_type(old, new)}")
    before = {_parameter(call, place): key for place, *key in old_static}
    for place, *new_key in call.static_keys():
        name = _parameter(call, place)
        if name not in before:
            out.append(f"static {name}: {_static_value_text(new_key)}, before not given")
        elif before[name] != new_key:
            old_text = _static_value_text(before[name])
            out.append(f"static {name}: {_static_value_text(new_key)}, before {old_text}")
        before.pop(name, None)
    out += [
        f"static {name}: not given, before {_static_value_text(old)}"
        for name, old in before.items()
    ]
    if not out and call.static_keys() != old_static:
        out.append("static arguments given by keyword that came by position before, or the reverse")
    for name, new, old in zip(_TRACED, config.key, old_config, strict=True):
        if new != old:
            out.append(f"option {name}: {new!r}, before {old!r}")
    return out


def _static_value_text(key: Sequence[Any]) -> str:
    """Return the text of a static value from its cache key."""
    kind, value = key
    if issubclass(kind, (float, complex, np.generic)) and isinstance(value, str):
        return value
    if issubclass(kind, tuple) and kind.__eq__ is tuple.__eq__:
        parts = ", ".join(map(_static_value_text, value))
        return f"({parts}{',' * (len(value) == 1)})"
    return repr(value)


def _parameter(call: Any, place: Any) -> str:
    return call.function._parameter(place) if isinstance(place, int) else place


def _type(aval: Any, other: Any) -> str:
    text = _text()(aval)
    if aval.weak_type != other.weak_type:
        text += " (weak: from a Python scalar)" if aval.weak_type else " (not weak)"
    return text
