"""PTX instructions in which the threads of a warp cooperate: shuffles, votes, matches and printing.

`instructions.py` passes the parts of an instruction, its operands and functions that read these,
and gets a `step` as described there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.arithmetic import PTXError

__all__ = ["INSTRUCTIONS", "print_output"]

Step = Callable[[Any, Any, int], "int | None"]
Exchange = Callable[[Any, Any, np.ndarray], None]


def _wait_for_warp(exchange: Exchange) -> Step:
    """Return a step in which threads wait until all threads of their warp have arrived."""

    def step(m: Any, c: Any, at: int) -> int | None:
        threads = np.arange(m.n)[c]
        if len(threads) == m.n:
            exchange(m, c, threads)
            return None
        m.pc[threads] = at
        m.stalled[threads] = True
        at_hand = np.flatnonzero(m.stalled & (m.pc == at))
        warps = m.warp[at_hand]
        complete = np.bincount(warps, minlength=m.warp[-1] + 1) == m.width
        ready = at_hand[complete[warps]]
        if ready.size:
            exchange(m, ready, ready)
            m.stalled[ready] = False
            m.pc[ready] = at + 1
        return -1

    return step


def _require_whole_warp(mask: np.ndarray, what: str) -> None:
    if (np.asarray(mask) != np.uint32(0xFFFFFFFF)).any():
        raise PTXError(f"a {what} of a part of a warp")


def _shfl(op: list[str], args: list[str], scope: Any) -> Step:
    mode = op[2]
    puts = [scope.write(n) for n in args[0].split("|")]
    source, shift, clamp, mask = (scope.read(a, "b32") for a in args[1:5])

    def exchange(m: Any, c: Any, threads: np.ndarray) -> None:
        full = np.zeros(m.n, np.uint32)
        full[threads] = source(m, c)
        lane = m.lane[c].astype(np.int64)
        by = np.asarray(shift(m, c)).astype(np.int64) & 31
        last = np.asarray(clamp(m, c)).astype(np.int64)
        part = (last >> 8) & 31
        low, high = lane & part, (lane & part) | (last & 31 & ~part)
        if mode == "down":
            other = lane + by
            valid = other <= high
        elif mode == "up":
            other = lane - by
            valid = other >= high
        else:
            other = lane ^ by if mode == "bfly" else low | (by & ~part)
            valid = other <= high
        _require_whole_warp(mask(m, c), "shuffle")
        puts[0](m, c, full[threads + np.where(valid, other - lane, 0)])
        if len(puts) > 1:
            puts[1](m, c, np.broadcast_to(valid, threads.shape))

    return _wait_for_warp(exchange)


def _vote(op: list[str], args: list[str], scope: Any) -> Step:
    put = scope.write(args[0])
    predicate = scope.read(args[1], "pred")
    mask = scope.read(args[2], "b32")

    def exchange(m: Any, c: Any, threads: np.ndarray) -> None:
        _require_whole_warp(mask(m, c), "vote")
        voices = np.broadcast_to(predicate(m, c), threads.shape)
        warp = m.warp[threads]
        ballot = np.zeros(len(m.width), np.uint32)
        np.bitwise_or.at(ballot, warp, voices.astype(np.uint32) << m.lane[threads])
        ayes = np.bincount(warp, voices, len(m.width))
        outcome = {
            "ballot": ballot, "any": ayes > 0, "all": ayes == m.width,
            "uni": (ayes == 0) | (ayes == m.width),
        }[op[2]]  # fmt: skip
        put(m, c, outcome[warp])

    return _wait_for_warp(exchange)


def _match(op: list[str], args: list[str], scope: Any) -> Step:
    puts = [scope.write(n) for n in args[0].split("|")]
    source, mask = scope.read(args[1], op[-1]), scope.read(args[2], "b32")

    def exchange(m: Any, c: Any, threads: np.ndarray) -> None:
        _require_whole_warp(mask(m, c), "match")
        values = np.broadcast_to(source(m, c), threads.shape)
        warp, bit = m.warp[threads], np.uint32(1) << m.lane[threads]
        same = (values[:, None] == values) & (warp[:, None] == warp)
        matches = (same * bit).sum(1, dtype=np.uint32)
        if op[1] == "all":
            whole = same.sum(1) == m.width[warp]
            matches = np.where(whole, matches, 0).astype(np.uint32)
            puts[-1](m, c, whole)
        puts[0](m, c, matches)

    return _wait_for_warp(exchange)


def _active(op: list[str], args: list[str], scope: Any) -> Step:
    put = scope.write(args[0])

    def step(m: Any, c: Any, at: int) -> None:
        threads = np.arange(m.n)[c]
        active = np.zeros(len(m.width), np.uint32)
        np.bitwise_or.at(active, m.warp[threads], np.uint32(1) << m.lane[threads])
        put(m, c, active[m.warp[threads]])

    return step


def _text(m: Any, address: int) -> str:
    names = {at: name for name, at in m.symbols.items()}
    (array,) = [a for name, a in m.module.constants if name == names[address]]
    return array.tobytes().split(b"\0")[0].decode()


def print_output(m: Any, c: Any, formats: np.ndarray, places: np.ndarray) -> None:
    """Print the output of threads: a C format string, and the address of its arguments."""
    for thread, form, place in zip(np.arange(m.n)[c], formats, places, strict=True):
        one, at, values = np.array([thread]), int(place), []
        text = _text(m, int(form))
        for kind in re.findall(r"%(ll[du]|[fsd])", text):
            data, where = m.place(np.array([at]), one, 8, 8)
            word = data[int(where[0]) : int(where[0]) + 8].view(np.int64)
            at += 8
            value = (
                _text(m, int(word[0]))
                if kind == "s"
                else word.view("f8" if kind == "f" else "i8")[0]
            )
            values.append(value)
        print(re.sub(r"%ll", "%", text) % tuple(values), end="")


INSTRUCTIONS = {"shfl": _shfl, "vote": _vote, "match": _match, "activemask": _active}
