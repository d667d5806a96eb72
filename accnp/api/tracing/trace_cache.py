"""Cache of traced functions, so that a loop in eager code traces its body only once.

The key consists of the functions and the types they are traced for. A cached trace is valid while
everything that the functions visibly read is unchanged: closures, globals, defaults, those of the
functions they call, and the contents of containers and attributes among these. Objects that the
functions change while they are traced, such as a list of calls, are logs and are ignored.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np

from accnp.api.tracing.bound_method import BoundMethod
from accnp.array_type import Array
from accnp.caches import register_cache
from accnp.config import config
from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.trace import state, types_only
from accnp.key_array import PRNGKeyArray
from accnp.transforms.axes import bound

__all__ = ["cached_trace"]

MANY = 256  # functions that read more objects are traced each time
EACH = 16  # traces of one function; the cache does not keep functions alive
SMALL = 4096  # bytes of NumPy arrays that are compared by content
_PARTIALS = (partial, BoundMethod)
_LIBRARIES = {*sys.stdlib_module_names, "accnp", "numpy", "scipy", "numba", "ml_dtypes"} - {
    "__main__"
}
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type, ModuleType, Array, np.generic)


class Recorded(Protocol):
    """A cached trace: programs, and the nodes and references that they close over."""

    @property
    def graphs(self) -> Sequence[Graph]:
        """The programs."""
        ...

    @property
    def outer(self) -> Sequence[Node]:
        """Constants and nodes of enclosing traces."""
        ...

    @property
    def refs(self) -> Sequence[Any]:
        """Closed-over references."""
        ...


R = TypeVar("R", bound=Recorded)
Path = tuple[Any, ...]
Seen = dict[Path, Any]

Logs = set[Path]
Entry = tuple[list[weakref.ref], Seen, Logs, Any]  # other functions, objects read, logs, result

_known: weakref.WeakKeyDictionary[Any, dict[Any, Entry]] = weakref.WeakKeyDictionary()
register_cache(
    "control flow",
    f"traces of functions in eager control flow, at most {EACH} of one function",
    "",
    lambda: sum([len(table) for table in list(_known.values())]),
    lambda: 0,
    _known.clear,
)


def cached_trace(fns: Sequence[Callable[..., Any]], key: Any, make: Callable[[], R]) -> R:
    """Return what `make` returns, or its cached result for these functions, key and options."""
    if state.named or not all(map(_has_stable_identity, fns)):
        return make()
    whole = (key, config.key, bound(), types_only())
    table = _known.setdefault(fns[0], {})
    try:
        cached = table.get(whole)
    except TypeError:  # unhashable static data in a structure
        return make()
    before = _read_objects(fns)
    if before is None:
        return make()
    others = [weakref.ref(fn) for fn in fns[1:]]
    if cached is not None:
        known, read, logs, result = cached
        if known == others and _are_unchanged(read, _remove_paths(before, logs)):
            table[whole] = table.pop(whole, cached)  # the most recently used comes last
            return result
    reads = state.policy_reads
    result = make()
    after = _read_objects(fns)
    if state.policy_reads != reads:  # other policies give other programs
        return result
    if after is not None and not result.refs and all(x.trace is None for x in result.outer):
        logs = _find_changes(before, after)
        for graph in result.graphs:
            graph.detach()
        table.pop(whole, None)
        if len(table) >= EACH:
            with suppress(StopIteration, KeyError):  # another thread was faster
                del table[next(iter(table))]
        table[whole] = (others, _remove_paths(after, logs), logs, result)
    return result


def _has_stable_identity(fn: Any) -> bool:
    """Return whether a callable can be identified by identity: functions, `partial`, and instances
    of user classes that compare by identity."""
    kind = type(fn)
    if isinstance(fn, FunctionType) or kind in _PARTIALS:  # ufuncs are functions
        return True
    return (
        kind.__eq__ is object.__eq__
        and kind.__hash__ is object.__hash__
        and kind.__weakrefoffset__ != 0
        and not _of_library(kind)
        and type(kind.__call__) is FunctionType
    )


def _of_library(x: Any) -> bool:
    return (x.__module__ or "").partition(".")[0] in _LIBRARIES


# --- what functions read ---


def _read_objects(fns: Sequence[Any]) -> Seen | None:
    """Return the objects that functions read, by path; None if there are too many, or if one can
    change without notice."""
    seen: Seen = {}
    queue: list[tuple[Path, Any]] = [((i,), fn) for i, fn in enumerate(fns)]
    queue += [((i, *path), part) for i, fn in enumerate(fns) for path, part in _methods(fn)]
    entered: set[int] = set()
    while queue:
        path, x = queue.pop()
        if isinstance(x, np.ndarray):
            if x.nbytes > SMALL and x.flags.writeable:
                return None
            seen[path] = x.tobytes() if x.nbytes <= SMALL else x
            continue
        # The functions themselves are not stored, since the cache must not keep them alive. An
        # array object may hold other values later (`item_assignment`), but a node is constant.
        seen[path] = None if any(x is fn for fn in fns) else _value(x)
        if isinstance(x, _ATOMS) or id(x) in entered:
            continue
        entered.add(id(x))
        queue += [((*path, name), value) for name, value in _referenced_objects(x)]
        if len(seen) + len(queue) > MANY:
            return None
    return seen


def _value(x: Any) -> Any:
    """Return what identifies the value of an object."""
    if not isinstance(x, Array):
        return x
    return x._base._node if isinstance(x, PRNGKeyArray) else x._node


def _referenced_objects(x: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the user's objects that an object refers to."""
    if isinstance(x, FunctionType):
        if _of_library(x):
            return
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            try:
                yield ("closure", name), cell.cell_contents
            except ValueError:  # still empty
                yield ("closure", name), None
        yield from ((("default", i), v) for i, v in enumerate(x.__defaults__ or ()))
        yield from ((("default", k), v) for k, v in (x.__kwdefaults__ or {}).items())
        known = x.__globals__
        yield from ((("global", n), known[n]) for n in _names(x.__code__) if n in known)
    elif type(x) in _PARTIALS:
        yield from (("func", x.func), ("args", x.args), ("keywords", x.keywords))
    elif isinstance(x, dict):
        yield from x.items()
    elif isinstance(x, list | tuple | set | frozenset):
        yield from enumerate(x)
    elif not _of_library(type(x)):
        yield from getattr(x, "__dict__", {}).items()


def _methods(fn: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the attributes of a callable object's classes, which its call may use."""
    if isinstance(fn, FunctionType) or type(fn) in _PARTIALS:
        return
    for i, kind in enumerate(type(fn).__mro__):
        if not _of_library(kind):
            yield from ((("class", i, n), v) for n, v in [*vars(kind).items()])


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def _equal(a: Any, b: Any) -> bool:
    return a is b or (type(a) is bytes is type(b) and a == b)


def _are_unchanged(before: Seen, now: Seen) -> bool:
    return before.keys() == now.keys() and all(_equal(v, now[p]) for p, v in before.items())


def _find_changes(before: Seen, after: Seen) -> Logs:
    """Return the paths of what tracing has changed: values, and containers of other lengths."""
    logs = {p for p, v in before.items() if p in after and not _equal(v, after[p])}
    return logs | {p[:-1] for p in before.keys() ^ after.keys() if len(p) > 1}


def _remove_paths(seen: Seen, logs: Logs) -> Seen:
    if not logs:
        return seen
    return {
        path: value
        for path, value in seen.items()
        if not any(path[:n] in logs for n in range(1, len(path) + 1))
    }
