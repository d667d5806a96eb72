"""Guard bytes around memory, which detect writes out of bounds. Uninitialized memory reads as
NaN.

`guard_cpu()` and `guard_gpu(driver)` add guard bytes to all later allocations. They return a
function that describes the damage, if there is any.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

MARK, JUNK, WIDE = 0xA5, 0xFF, 256
Look = Callable[[], "str | None"]


def _damage(marks: np.ndarray, nbytes: int, side: str) -> str:
    at = np.flatnonzero(marks != MARK)
    return f"wrote {side} {nbytes} bytes: marks {at[0]} to {at[-1]} of {WIDE}"


def nothing() -> str | None:
    """Report no damage."""
    return None


def guard_cpu() -> Look:
    """Guard blocks of the CPU pool. Size classes leave an unguarded gap after some blocks."""
    from accnp.runtime import buffer

    known: list[tuple[weakref.ref, int, int]] = []

    def allocate(size: int, nbytes: int) -> tuple[int, Any]:
        whole = np.full(size + 2 * WIDE + 64, MARK, np.uint8)
        start = WIDE + -(whole.ctypes.data + WIDE) % 64
        whole[start : start + size] = JUNK
        known.append((weakref.ref(whole), start, size))
        return whole.ctypes.data + start, whole

    def look() -> str | None:
        damage = None
        for block, start, size in known:
            if (whole := block()) is not None:
                front, behind = whole[start - WIDE : start], whole[start + size :][:WIDE]
                for marks, side in ((front, "before"), (behind, "behind")):
                    if (marks != MARK).any():
                        damage = _damage(marks, size, side)
                        marks[:] = MARK
        known[:] = [x for x in known if x[0]() is not None]
        return damage

    buffer._allocate = allocate
    return look


def guard_gpu(driver: Any) -> Look:
    """Guard memory of a real GPU; the interpreter of the fake one checks bounds itself."""
    if not hasattr(driver, "_runtime"):
        return nothing
    plain, run, lock = driver.alloc, driver._runtime, threading.Lock()
    dead: list[tuple[Any, int]] = []
    live: dict[int, tuple[Any, int]] = {}

    class Marked:
        __slots__ = ("__weakref__", "nbytes", "own", "owner", "ptr")

        def __init__(self, own: Any, nbytes: int) -> None:
            self.own, self.owner, self.nbytes, self.ptr = own, own.owner, nbytes, own.ptr + WIDE

        def __del__(self) -> None:
            live.pop(id(self), None)
            dead.append((self.own, self.nbytes))

    def alloc(nbytes: int) -> Any:
        own = plain(nbytes + 2 * WIDE)
        run.memsetAsync(own.ptr, MARK, nbytes + 2 * WIDE, driver.stream)
        run.memsetAsync(own.ptr + WIDE, JUNK, nbytes, driver.stream)
        marked = Marked(own, nbytes)
        live[id(marked)] = (own, nbytes)
        return marked

    def look() -> str | None:
        with lock:
            driver.synchronize()
            marks, damage = np.empty(WIDE, np.uint8), None
            for own, nbytes in [*dead, *list(live.values())]:
                sides = ((own.ptr, "before"), (own.ptr + WIDE + nbytes, "behind"))
                for at, side in sides:
                    run.memcpy(marks.ctypes.data, at, WIDE, 2)
                    if (marks != MARK).any():
                        damage = _damage(marks, nbytes, side)
            del dead[:]
            return damage

    driver.alloc = alloc
    return look
