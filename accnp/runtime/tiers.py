"""Machine code in two tiers: a kernel whose first call is short starts with code that LLVM's
generator wrote without looking for better; the whole code, of the same optimized module, comes from
a thread behind it and takes its place.

In: a kernel in its first tier, with its modules as bitcode and the word that says where its next
code is. Out: that word is set, the kernel knows its new address, and the disk has the whole code.
Both tiers do the operations of one module in its order: the bits of results are the same.

Addresses of the first tier stay good (tables of plans hold them): it passes each call on.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import os
import sys
import threading
import time
from collections import deque
from typing import Any, NamedTuple

from accnp.forks import at_fork
from accnp.runtime import compile, loader, objects
from accnp.runtime.helpers import at_work
from accnp.runtime.notes import note

__all__ = ["finish", "first", "later", "room"]

FIRST, SLOT = "accnp_first", "accnp_next"
PATIENCE = 5.0  # seconds that a fork or the end of the process waits for the kernel under way
MANY = 64  # kernels that may wait: the end of the process waits for them, a second or less
_PAUSE = 1e-3  # seconds between checks whether a thread waits for a compilation
_NICE = 5  # not more: a fork or a timing may wait for this thread on a busy machine
# The word before an entry says whether it can use non-temporal stores (`bypass.py`).
_TEXT = """
@{slot} = global i64 0
declare void @{entry}(i64*, i64*, i64, i64)
define void @{first}(i64* %argv, i64* %counter, i64 %n, i64 %chunk) prefix i64 {past} {{
  %next = load atomic i64, i64* @{slot} monotonic, align 8
  %none = icmp eq i64 %next, 0
  br i1 %none, label %own, label %other
own:
  call void @{entry}(i64* %argv, i64* %counter, i64 %n, i64 %chunk)
  ret void
other:
  %whole = inttoptr i64 %next to void (i64*, i64*, i64, i64)*
  call void %whole(i64* %argv, i64* %counter, i64 %n, i64 %chunk)
  ret void
}}
"""


class _Upgrade(NamedTuple):
    """A kernel in its first tier, and what its whole code is made of."""

    kernel: Any
    slot: int
    parts: list[objects.Part]
    disk: Any
    key: str

    def make(self) -> None:
        begin = time.perf_counter()
        data = objects.whole(self.parts)
        (address,), code = loader.load(data, compile.ENTRY, kernel=self.kernel.name)
        self.kernel.place(address, code)
        ctypes.c_int64.from_address(self.slot).value = address
        if self.disk is not None:
            self.disk.put(self.key, data)
        seconds = time.perf_counter() - begin
        note(f"{self.kernel.name}: its whole code took {seconds * 1e3:.1f} ms behind the program")


_waiting: deque[_Upgrade] = deque()
_under_way: list[_Upgrade] = []
_thread: threading.Thread | None = None
_held = False  # while the process forks


def first(
    text: str, linked: list[str], separate: list[str], kernel: str
) -> tuple[list[int], Any, list[objects.Part]]:
    """Code of the first tier: addresses of the entry and of the word for the next one, what keeps
    them; and the modules for the whole code."""
    past = int("prefix i64 1 {" in text)
    around = _TEXT.format(slot=SLOT, entry=compile.ENTRY, first=FIRST, past=past)
    data, parts = objects.quick(text, linked, separate, around)
    return *loader.load(data, FIRST, SLOT, kernel=kernel), parts


def room() -> bool:
    """Whether another kernel may start in the first tier. Where a program compiles on and on, none
    of its threads would leave time for those that wait."""
    return len(_waiting) < MANY


def later(kernel: Any, *upgrade: Any) -> None:
    """Make the whole code of a kernel when no thread waits for a compilation."""
    _waiting.append(_Upgrade(kernel, *upgrade))
    if _thread is None and not at_work.closed:
        _start()


def finish(kernel: Any = None) -> None:
    """Return when all kernels, or one, have their whole code."""
    while _one(kernel):
        pass
    _wait(math.inf, kernel)


def _wait(seconds: float, kernel: Any = None) -> None:
    """Wait for what others have under way."""
    end = time.monotonic() + seconds
    while any(kernel in (None, u.kernel) for u in [*_under_way]) and time.monotonic() < end:
        time.sleep(_PAUSE / 2)


def _start() -> None:
    global _thread
    _thread = threading.Thread(target=_work, name="accnp-tiers", daemon=True)
    try:
        _thread.start()
    except BaseException as error:
        _thread = None
        if not isinstance(error, RuntimeError):  # the interpreter ends: `_at_exit` does it
            raise


def _one(kernel: Any = None) -> bool:
    """Make the whole code of the kernel that has waited longest, or of the one that is asked for;
    False if none waits, or all do for a fork."""
    for upgrade in _waiting.copy():
        if kernel in (None, upgrade.kernel):
            return _made(upgrade)
    return False


def _made(upgrade: _Upgrade) -> bool:
    _under_way.append(upgrade)  # first: a fork holds all, then looks what is under way
    try:
        if _held:
            return False
        try:
            _waiting.remove(upgrade)
        except ValueError:  # another thread was faster
            return True
        try:
            upgrade.make()
        except Exception as error:  # the kernel works on in its first tier
            note(f"{upgrade.kernel.name}: no whole code: {type(error).__name__}: {error}")
        except BaseException:  # an interrupt of who waits for it
            _waiting.append(upgrade)
            raise
        return True
    finally:
        _under_way.remove(upgrade)


def _work() -> None:
    global _thread
    me = threading.current_thread()
    if sys.platform == "linux":  # elsewhere this number may be another process's
        with contextlib.suppress(OSError):
            nice = max(_NICE, os.getpriority(os.PRIO_PROCESS, 0))
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
    while True:
        while _held or (compile.busy() and room()):
            time.sleep(_PAUSE)
        if not _one():
            _thread = None
            if not _waiting:  # one that came in between saw a thread at work
                return
            _thread = me


def _at_exit() -> None:
    """The next process finds whole code on the disk; without a disk there is nothing to do."""
    for upgrade in list(_waiting):
        if upgrade.disk is None:
            with contextlib.suppress(ValueError):
                _waiting.remove(upgrade)
    while _one():
        pass
    _wait(PATIENCE)


def _before_fork() -> None:
    """All is made whole first, as long as the patience lasts: a child has no thread that does it.
    This thread does not take part: it would wait for locks of LLVM as long as others hold them.
    After that none is begun: a child would have these locks for ever."""
    global _held
    end = time.monotonic() + PATIENCE
    while _thread is not None and _waiting and time.monotonic() < end:
        time.sleep(_PAUSE / 2)
    _held = True
    _wait(PATIENCE)


def _in_parent() -> None:
    global _held
    _held = False


def _in_child() -> None:
    """What waits goes on with the next kernel that is compiled."""
    global _held, _thread
    _waiting.extendleft([u for u in _under_way if u not in _waiting])
    _under_way.clear()
    _held, _thread = False, None


atexit.register(_at_exit)
at_fork(_in_child, before=_before_fork, parent=_in_parent)
