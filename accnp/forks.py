"""Keep the package usable in a forked child process, and load modules on first use.

A child has only the thread that forked; locks that other threads held are never released in it.
Modules therefore register here the locks and the functions that renew their state (`renewed`,
`at_fork`). Threads that import a module hold Python's import locks, which a child cannot renew, so
a fork waits until they are done. Modules that are loaded on first use are imported by `imported`
and `load_extension` for that reason. An interrupt does not stop an import either (`aside`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec
from typing import Any, TypeVar

__all__ = [
    "Gate", "aside", "at_fork", "at_interrupt", "collection_paused", "has_loaded_extension",
    "imported", "load_extension", "loading", "renewed",
]  # fmt: skip

PATIENCE = 30.0  # seconds that a fork waits for imports; loading Numba takes 0.4 on a free machine

_Lock = TypeVar("_Lock")
_T = TypeVar("_T")
_locks: list[Any] = []
_hooks: list[tuple[Callable[[], Any] | None, Callable[[], Any] | None, Callable[[], Any]]] = []


def renewed(lock: _Lock) -> _Lock:
    """The lock, which is free in a child unless the thread that forked holds it."""
    _locks.append(lock)
    return lock


def at_fork(
    child: Callable[[], Any],
    before: Callable[[], Any] | None = None,
    parent: Callable[[], Any] | None = None,
) -> None:
    """Call functions around forks: `before` in the opposite order of these calls, the others in
    this one, when the locks are free."""
    _hooks.append((before, parent, child))


# Called where an interrupt ends a call, as `errors.hide_frames` sees.
at_interrupt: list[Callable[[], Any]] = []


class Gate:
    """Which threads are inside; once it is closed, only the thread that closed it may enter.

    It does not wait for itself: an interrupt may have come between its entry and its exit.
    """

    def __init__(self) -> None:
        self._inside: Counter[int] = Counter()
        self.reset()

    def reset(self) -> None:
        """Only this thread may be inside: in a child of the process, which has no other."""
        me = threading.get_ident()
        self._changed = threading.Condition()
        self._inside = Counter({me: self._inside[me]} if self._inside[me] else {})
        self._closed_by: int | None = None

    def __enter__(self) -> None:
        with self._changed:
            me = threading.get_ident()
            while self._closed_by not in (None, me) and not self._inside[me]:
                self._changed.wait()  # until it is opened, or the process is gone
            self._inside[me] += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            me = threading.get_ident()
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            self._changed.notify_all()

    def close(self, patience: float | None = None) -> None:
        """Let no other thread in, and wait for those inside: for ever, or for some seconds."""
        with self._changed:
            self._closed_by = me = threading.get_ident()
            self._changed.wait_for(lambda: not set(self._inside) - {me}, patience)

    @property
    def closed(self) -> bool:
        """Whether a thread that is started now would stand at it."""
        return self._closed_by is not None

    def open(self) -> None:
        """Let all in again."""
        with self._changed:
            self._closed_by = None
            self._changed.notify_all()


class _CollectionPause:
    """Garbage collection is paused while a thread is inside.

    Imported modules and the compiler's objects are not garbage, but allocating them triggers
    collections. A full collection in the middle of a first call takes 12 ms, an eighth of the call.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the threads inside: a child process does not have them."""
        self._lock, self._inside, self._paused = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._paused = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)  # a child has forgotten those inside
            if not self._inside and self._paused:
                self._paused = False
                gc.enable()

    @property
    def active(self) -> bool:
        """Whether collection is enabled but paused by a thread inside."""
        return self._paused


collection_paused = _CollectionPause()
loading = Gate()  # all imports on first use enter it
_modules: dict[str, Any] = {}
_packages: set[str] = set()  # whose extension modules `load_extension` has loaded


def imported(name: str) -> Any:
    """Return a module, which the first call imports."""
    found = _modules.get(name)
    if found is None:
        found = _modules[name] = _loaded(name) if _loading_here() else aside(_loaded, name)
    return found


def _loaded(name: str) -> Any:
    with loading, collection_paused:
        return importlib.import_module(name)


def load_extension(name: str) -> Any:
    """Return an extension module, which the first call loads without importing its packages.

    Importing `scipy.fft` takes 130 ms of CPU time and `scipy.linalg` 220 (EPYC, SciPy 1.17), mostly
    for Python code that is not needed here; their extension modules take 1 to 37 ms. The packages
    can still be imported later.

    Raises:
        ImportError: the module does not exist.
    """
    found = _modules.get(name) or sys.modules.get(name)
    if found is None:
        found = _modules[name] = _extension(name) if _loading_here() else aside(_extension, name)
        _packages.add(name.rpartition(".")[0])
    return found


def has_loaded_extension(package: str) -> bool:
    """Return whether `load_extension` has loaded a module that lies directly in a package."""
    return package in _packages


def _extension(name: str) -> Any:
    package, *between, _ = name.split(".")
    with loading, collection_paused:
        root = PathFinder.find_spec(package)
        places = root.submodule_search_locations if root is not None else None
        spec = PathFinder.find_spec(name, [os.path.join(each, *between) for each in places or ()])
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            raise ImportError(f"there is no extension module {name}", name=name)
        known = name in sys.modules
        module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except (ImportError, OSError):  # the module needs its package, as on Windows
            sys.modules.pop(name, None)
            return importlib.import_module(name)
        if not known:  # importing the package adds it, and makes it an attribute
            sys.modules.pop(name, None)
        return module


def _loading_here() -> bool:
    """Whether this thread is loading something: another might need that, and wait for this one."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


# Filled once handlers of the exit run that were there before us: only this thread works then.
_ending: list[bool] = []
atexit.register(_ending.append, True)


def aside(f: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """What a function returns. It runs to its end even if an interrupt ends this call: where these
    come up, on a thread of its own.

    For what is worth nothing half done. Of a module that is loaded again, such as Numba, some parts
    are there already, and others are missed; an interrupt inside of `importlib` leaves its lock
    closed, one inside of llvmlite an object that is destroyed twice.
    """
    if _ending or threading.current_thread() is not threading.main_thread():
        return f(*args, **kwargs)
    found: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(f(*args, **kwargs))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="accnp-aside", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends
        return f(*args, **kwargs)
    thread.join()
    try:
        if errors:
            raise errors[0]
        return found[0]
    finally:
        errors.clear()  # the error's traceback refers to this frame


_forking = threading.RLock()  # one thread at a time
_collecting = False
_prepared = 0  # hooks whose first function has been called for this fork


def _before() -> None:
    """Nothing that waits here holds the lock of `logging`, which its own hook has taken for this
    fork if it was loaded after this module: imports may ask for it, and other threads that fork
    have it while they wait for this one. It is held again when the process forks."""
    global _collecting
    known, lock = _logging()
    held = known and lock._is_owned()
    if held:
        lock.release()
    try:
        _forking.acquire()
        _prepare()
    finally:
        there, lock = _logging()
        if held or (there and not known):  # its hook after the fork gives it back
            lock.acquire()
    # Nothing is collected between the fork and the fresh locks: what goes may need an old one.
    _collecting = gc.isenabled() or collection_paused.active
    gc.disable()


def _prepare() -> None:
    """Call the first functions of all hooks, then close the gate of imports. A thread that was
    importing a module may have added hooks meanwhile, and may already hold what they wait for: then
    once more for these, with the gate open, because threads that they wait for may import."""
    global _prepared
    _prepared = 0
    while True:
        new = _hooks[_prepared:]
        _prepared += len(new)
        for before, _, _ in reversed(new):
            if before is not None:
                before()
        loading.close(PATIENCE)
        if _prepared == len(_hooks):
            return
        loading.open()


def _logging() -> tuple[bool, Any]:
    lock = getattr(sys.modules.get("logging"), "_lock", None)
    return hasattr(lock, "_is_owned"), lock


def _in_parent() -> None:
    if _collecting and not collection_paused.active:
        gc.enable()
    loading.open()
    for _, parent, _ in _hooks[:_prepared]:
        if parent is not None:
            parent()
    _forking.release()


def _in_child() -> None:
    loading.reset()
    collection_paused.reset()
    for lock in _locks:
        owned = getattr(lock, "_is_owned", None)
        if owned is None or not owned():
            lock._at_fork_reinit()
    for _, _, child in _hooks:
        child()
    if _collecting:
        gc.enable()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
