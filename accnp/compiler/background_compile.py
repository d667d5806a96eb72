"""Compile kernels with short first calls in two tiers.

A kernel starts with code that LLVM generates without optimization. A background thread generates
optimized code from the same modules, which then replaces the first code. Both do the operations of
the modules in the same order, so their results are bit-identical. `kernel_cache.py` passes the
kernel, its modules, and the address of the word that will contain the address of the optimized
code. This module sets that word and the address of the kernel, and stores the code in the disk
cache. Tables of plans contain addresses of the first code, which forwards calls to the optimized
code.
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
from typing import TYPE_CHECKING, NamedTuple

from accnp.compiler import cache_state, elf_loader
from accnp.compiler.llvm import objects
from accnp.compiler.llvm.entry import ENTRY
from accnp.compiler.worker_threads import at_work
from accnp.debug_log import note
from accnp.forks import at_fork, start_thread

if TYPE_CHECKING:
    from accnp.compiler.disk_cache import DiskCache
    from accnp.compiler.kernel_cache import Kernel

__all__ = ["compile_first", "finish", "has_room", "optimize_later"]

FIRST, SLOT = "accnp_first", "accnp_next"
PATIENCE = 5.0  # seconds for which a fork or an exit waits for the kernel that is being compiled
MANY = 64  # kernels that may wait: an exit waits for all of them, which takes up to a second
_PAUSE = 1e-3  # seconds between checks whether a thread is waiting for a kernel
_NICE = 5  # priority of the thread; if lower, a fork would wait long for it on a busy machine
# The word before an entry says whether it can use non-temporal stores (`llvm/entry.py`).
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
    """A kernel in its first tier, and the modules of its optimized code."""

    kernel: Kernel
    slot: int
    parts: list[objects.Part]
    disk: DiskCache | None
    key: str

    def make(self) -> None:
        begin = time.perf_counter()
        data = objects.build_optimized(self.parts)
        (address,), code = elf_loader.load(data, ENTRY, kernel=self.kernel.name)
        self.kernel.place(address, code)
        ctypes.c_int64.from_address(self.slot).value = address
        if self.disk is not None:
            self.disk.put(self.key, data)
        seconds = time.perf_counter() - begin
        note(f"{self.kernel.name}: optimized in the background in {seconds * 1e3:.1f} ms")


_waiting: deque[_Upgrade] = deque()
_under_way: list[_Upgrade] = []
_thread: threading.Thread | None = None
_paused = False  # while the process forks


def compile_first(
    text: str, linked: list[str], separate: list[str], kernel: str
) -> tuple[list[int], object, list[objects.Part]]:
    """Compile the code of the first tier.

    Returns the addresses of the entry and of the word for the address of the optimized code, an
    object that keeps the code loaded, and the modules from which `optimize_later` makes the
    optimized code.
    """
    past = int("prefix i64 1 {" in text)
    around = _TEXT.format(slot=SLOT, entry=ENTRY, first=FIRST, past=past)
    data, parts = objects.build_unoptimized(text, linked, separate, around)
    return *elf_loader.load(data, FIRST, SLOT, kernel=kernel), parts


def has_room() -> bool:
    """Return whether another kernel may start in the first tier. A program that compiles kernels
    without a pause leaves no time to optimize those that wait."""
    return len(_waiting) < MANY


def optimize_later(
    kernel: Kernel, slot: int, parts: list[objects.Part], disk: DiskCache | None, key: str
) -> None:
    """Optimize a kernel as soon as no thread is waiting for a kernel."""
    _waiting.append(_Upgrade(kernel, slot, parts, disk, key))
    if _thread is None and not at_work.closed:
        _start_worker()


def finish(kernel: Kernel | None = None) -> None:
    """Return when all kernels, or one, have their optimized code."""
    while _optimize_next(kernel):
        pass
    _wait_for_kernels(math.inf, kernel)


def _wait_for_kernels(seconds: float, kernel: Kernel | None = None) -> None:
    """Wait for the kernels that other threads are optimizing."""
    end = time.monotonic() + seconds
    while any(kernel in (None, u.kernel) for u in [*_under_way]) and time.monotonic() < end:
        time.sleep(_PAUSE / 2)


def _start_worker() -> None:
    global _thread
    _thread = threading.current_thread()  # until it is known: no other thread starts one
    try:
        _thread = start_thread(
            _run_worker, "accnp-tiers"
        )  # None at shutdown: `_at_exit` does the work
    except BaseException:
        _thread = None
        raise


def _optimize_next(kernel: Kernel | None = None) -> bool:
    """Optimize the kernel that has waited longest, or a given one. Returns False if none waits, or
    if a fork is pending."""
    for upgrade in _waiting.copy():
        if kernel in (None, upgrade.kernel):
            return _optimize(upgrade)
    return False


def _optimize(upgrade: _Upgrade) -> bool:
    _under_way.append(upgrade)  # first: a fork sets `_paused`, then reads this list
    try:
        if _paused:
            return False
        try:
            _waiting.remove(upgrade)
        except ValueError:  # another thread was faster
            return True
        try:
            upgrade.make()
        except Exception as error:  # the kernel keeps the code of its first tier
            note(f"{upgrade.kernel.name}: not optimized: {type(error).__name__}: {error}")
        except BaseException:  # an interrupt of a thread that waits for the kernel
            _waiting.append(upgrade)
            raise
        return True
    finally:
        _under_way.remove(upgrade)


def _run_worker() -> None:
    global _thread
    me = threading.current_thread()
    if sys.platform == "linux":  # on other systems, the number may be that of another process
        with contextlib.suppress(OSError):
            nice = max(_NICE, os.getpriority(os.PRIO_PROCESS, 0))
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
    while True:
        while _paused or (cache_state.is_compiling() and has_room()):
            time.sleep(_PAUSE)
        if not _optimize_next():
            _thread = None
            if not _waiting:  # `optimize_later` starts no thread while it sees one
                return
            _thread = me


def _at_exit() -> None:
    """Optimize the waiting kernels for the disk cache, where the next process finds them."""
    for upgrade in list(_waiting):
        if upgrade.disk is None:
            with contextlib.suppress(ValueError):
                _waiting.remove(upgrade)
    while _optimize_next():
        pass
    _wait_for_kernels(PATIENCE)


def _before_fork() -> None:
    """Wait up to PATIENCE seconds until the background thread has optimized all kernels, since a
    child process does not have that thread. Then begin no other kernel: its locks of LLVM would
    never be released in the child. This thread does not help: it would wait for these locks for as
    long as other threads hold them."""
    global _paused
    end = time.monotonic() + PATIENCE
    while _thread is not None and _waiting and time.monotonic() < end:
        time.sleep(_PAUSE / 2)
    _paused = True
    _wait_for_kernels(PATIENCE)


def _in_parent() -> None:
    global _paused
    _paused = False


def _in_child() -> None:
    """Keep the waiting kernels: the next kernel that is compiled starts a thread for all."""
    global _paused, _thread
    _waiting.extendleft([u for u in _under_way if u not in _waiting])
    _under_way.clear()
    _paused, _thread = False, None


atexit.register(_at_exit)
at_fork(_in_child, before=_before_fork, parent=_in_parent)
