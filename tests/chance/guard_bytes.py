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

GUARD_BYTE, UNINITIALIZED_BYTE, GUARD_SIZE = 0xA5, 0xFF, 256
DamageCheck = Callable[[], "str | None"]


def _describe_damage(marks: np.ndarray, nbytes: int, side: str) -> str:
    at = np.flatnonzero(marks != GUARD_BYTE)
    return f"wrote {side} {nbytes} bytes: marks {at[0]} to {at[-1]} of {GUARD_SIZE}"


def report_no_damage() -> str | None:
    """Report no damage."""
    return None


def guard_cpu() -> DamageCheck:
    """Guard blocks of the CPU pool. Size classes leave an unguarded gap after some blocks."""
    from accnp.runtime import buffer

    known: list[tuple[weakref.ref, int, int]] = []

    def allocate(size: int, nbytes: int) -> tuple[int, Any]:
        whole = np.full(size + 2 * GUARD_SIZE + 64, GUARD_BYTE, np.uint8)
        start = GUARD_SIZE + -(whole.ctypes.data + GUARD_SIZE) % 64
        whole[start : start + size] = UNINITIALIZED_BYTE
        known.append((weakref.ref(whole), start, size))
        return whole.ctypes.data + start, whole

    def look() -> str | None:
        damage = None
        for block, start, size in known:
            if (whole := block()) is not None:
                front, behind = (
                    whole[start - GUARD_SIZE : start],
                    whole[start + size :][:GUARD_SIZE],
                )
                for marks, side in ((front, "before"), (behind, "behind")):
                    if (marks != GUARD_BYTE).any():
                        damage = _describe_damage(marks, size, side)
                        marks[:] = GUARD_BYTE
        known[:] = [x for x in known if x[0]() is not None]
        return damage

    buffer._allocate = allocate
    return look


def guard_gpu(driver: Any) -> DamageCheck:
    """Guard memory of a real GPU; the interpreter of the fake one checks bounds itself."""
    if not hasattr(driver, "_runtime"):
        return report_no_damage
    plain, run, lock = driver.alloc, driver._runtime, threading.Lock()
    dead: list[tuple[Any, int]] = []
    live: dict[int, tuple[Any, int]] = {}

    class Marked:
        __slots__ = ("__weakref__", "nbytes", "own", "owner", "ptr")

        def __init__(self, own: Any, nbytes: int) -> None:
            self.own, self.owner, self.nbytes, self.ptr = (
                own,
                own.owner,
                nbytes,
                own.ptr + GUARD_SIZE,
            )

        def __del__(self) -> None:
            live.pop(id(self), None)
            dead.append((self.own, self.nbytes))

    def alloc(nbytes: int) -> Any:
        own = plain(nbytes + 2 * GUARD_SIZE)
        run.memsetAsync(own.ptr, GUARD_BYTE, nbytes + 2 * GUARD_SIZE, driver.stream)
        run.memsetAsync(own.ptr + GUARD_SIZE, UNINITIALIZED_BYTE, nbytes, driver.stream)
        marked = Marked(own, nbytes)
        live[id(marked)] = (own, nbytes)
        return marked

    def look() -> str | None:
        with lock:
            driver.synchronize()
            marks, damage = np.empty(GUARD_SIZE, np.uint8), None
            for own, nbytes in [*dead, *list(live.values())]:
                sides = ((own.ptr, "before"), (own.ptr + GUARD_SIZE + nbytes, "behind"))
                for at, side in sides:
                    run.memcpy(marks.ctypes.data, at, GUARD_SIZE, 2)
                    if (marks != GUARD_BYTE).any():
                        damage = _describe_damage(marks, nbytes, side)
            del dead[:]
            return damage

    driver.alloc = alloc
    return look
