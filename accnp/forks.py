"""Keep the package usable in a forked child process, and its state whole at an interrupt.

A child has only the thread that forked; locks that other threads held are never released in it.
Modules therefore register here the locks and the functions that renew their state (`renewed`,
`at_fork`). Threads that import a module (`lazy_imports.py`) hold Python's import locks, which a
child cannot renew, so a fork waits until they have left `loading`. An interrupt does not stop an
import either (`run_uninterrupted`).
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from accnp.address_space import has_room

__all__ = [
    "Gate", "at_fork", "at_interrupt", "collection_paused", "loading", "renewed",
    "run_uninterrupted", "start_thread",
]  # fmt: skip

PATIENCE = 30.0  # seconds that a fork waits for imports; loading Numba takes 0.4 on a free machine

_Lock = TypeVar("_Lock")
_T = TypeVar("_T")
_locks: list[Any] = []
_hooks: list[tuple[Callable[[], Any] | None, Callable[[], Any] | None, Callable[[], Any]]] = []


def renewed(lock: _Lock) -> _Lock:
    """Register a lock and return it. In a child process it is free, unless the thread that forked
    holds it."""
    _locks.append(lock)
    return lock


def at_fork(
    child: Callable[[], Any],
    before: Callable[[], Any] | None = None,
    parent: Callable[[], Any] | None = None,
) -> None:
    """Register functions that are called around each fork.

    Those that run before the fork are called in reverse order of registration; those that run in
    the child or in the parent are called in the order of registration, after the locks are renewed.
    """
    _hooks.append((before, parent, child))


# Functions that reset state after an interrupt has ended a call of the user (see
# `errors.hide_frames`).
at_interrupt: list[Callable[[], Any]] = []


class Gate:
    """A gate that threads enter and leave. Once closed, only the thread that closed it may enter.

    Closing waits for the other threads inside, but not for the calling thread, whose exit an
    interrupt may have skipped.
    """

    def __init__(self) -> None:
        self._inside: Counter[int] = Counter()
        self.reset()

    def reset(self) -> None:
        """Forget all other threads: for a child process, which has only this one."""
        me = threading.get_ident()
        self._changed = threading.Condition()
        self._inside = Counter({me: self._inside[me]} if self._inside[me] else {})
        self._closed_by: int | None = None

    def __enter__(self) -> None:
        with self._changed:
            me = threading.get_ident()
            while self._closed_by not in (None, me) and not self._inside[me]:
                self._changed.wait()  # until the gate is opened, or the process ends
            self._inside[me] += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            me = threading.get_ident()
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            self._changed.notify_all()

    def close(self, patience: float | None = None) -> None:
        """Stop other threads from entering, and wait for those inside, for at most `patience`
        seconds (None: without limit)."""
        with self._changed:
            self._closed_by = me = threading.get_ident()
            self._changed.wait_for(lambda: not set(self._inside) - {me}, patience)

    @property
    def closed(self) -> bool:
        """Whether a thread that is started now would have to wait."""
        return self._closed_by is not None

    def open(self) -> None:
        """Let all threads enter again."""
        with self._changed:
            self._closed_by = None
            self._changed.notify_all()


class _CollectionPause:
    """Pauses garbage collection while a thread is inside.

    Imported modules and the compiler's objects are not garbage, but allocating them triggers
    collections. A full collection in the middle of a first call takes 12 ms, an eighth of the call.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the threads inside, which do not exist in a child process."""
        self._lock, self._inside, self._paused = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._paused = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)  # `reset` in a child may have set it to 0
            if not self._inside and self._paused:
                self._paused = False
                gc.enable()

    @property
    def active(self) -> bool:
        """Whether collection is enabled but paused by a thread inside."""
        return self._paused


collection_paused = _CollectionPause()
loading = Gate()  # threads that import a module on first use are inside

# Not empty once the exit handlers that were registered before this module run. From then on no
# threads can be started.
_ending: list[bool] = []
atexit.register(_ending.append, True)


class _Thread(threading.Thread):
    """A daemon thread whose `start` returns even if it has no memory to begin, for which CPython
    would wait forever, as long as there is room for its first frame."""

    def _bootstrap(self) -> None:
        try:
            super()._bootstrap()  # type: ignore[misc]
        finally:
            self._started.set()  # type: ignore[attr-defined]


_ROOM_OF_A_THREAD = 24 << 20  # a stack of 8 MiB, and what a thread needs to begin


def start_thread(
    target: Callable[..., object], name: str, args: Sequence[Any] = ()
) -> threading.Thread | None:
    """Start a daemon thread. Returns None if that is impossible, because memory is missing or the
    interpreter is shutting down."""
    if not has_room(_ROOM_OF_A_THREAD):
        return None
    thread = _Thread(target=target, name=name, args=args, daemon=True)
    try:
        thread.start()
    except (RuntimeError, MemoryError):
        return None
    return None if thread.ident is None else thread


def run_uninterrupted(f: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """Call a function so that it runs to its end even if an interrupt ends this call.

    On the main thread, where interrupts are raised, the function runs on another thread. This is
    for work that must not stop halfway. A module such as Numba cannot be imported again after a
    part of it has been imported, an interrupt inside of `importlib` leaves its lock held, and one
    inside of llvmlite leaves an object that is destroyed twice.
    """
    if _ending or threading.current_thread() is not threading.main_thread():
        return f(*args, **kwargs)
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(f(*args, **kwargs))
        except BaseException as error:
            errors.append(error)

    thread = start_thread(run, "accnp-aside")
    if thread is None:
        return f(*args, **kwargs)
    thread.join()
    try:
        if errors:
            raise errors[0]
        return results[0]
    finally:
        errors.clear()  # the error's traceback refers to this frame


_forking = threading.RLock()  # one thread at a time
_collecting = False
_prepared = 0  # the number of hooks whose `before` function has been called for this fork


def _before_fork() -> None:
    """Prepare a fork, without holding the lock of `logging` while waiting.

    If `logging` was loaded after this module, its own hook has taken that lock for this fork.
    Imports may need it, and other threads that fork hold it while they wait for this one. So it is
    released here, and taken again before the process forks.
    """
    global _collecting
    known, lock = _logging()
    is_owner = known and lock._is_owned()
    if is_owner:
        lock.release()
    try:
        _forking.acquire()
        _prepare()
    finally:
        there, lock = _logging()
        if is_owner or (there and not known):  # the hook of `logging` releases it after the fork
            lock.acquire()
    # No garbage is collected between the fork and the renewal of the locks, because finalizers may
    # need a lock.
    _collecting = gc.isenabled() or collection_paused.active
    gc.disable()


def _prepare() -> None:
    """Call the `before` functions of all hooks, then close the gate of imports.

    A thread that was importing a module may have added hooks meanwhile. Then this is repeated for
    the new hooks, with the gate open, because they may wait for threads that import modules.
    """
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
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
