"""Describe the processor for which kernels are compiled, as its `cpuid` instruction reports it.

Out: ``STAMP``, which differs between processors whose machine code may differ, and which is part of
every key of the disk cache; the width of vectors; and the level of x86-64 (``LEVELS``) of the
kernels compiled in advance (`library/prebuilt.py`). LLVM selects instructions by `cpuid` as well,
so an emulator or a virtual machine that hides features changes both; `/proc/cpuinfo` would describe
the host. If the instruction cannot be executed here, LLVM reports the features: loading it takes 50
ms, which a process with a warm disk cache saves.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from typing import NamedTuple

from accnp.forks import imported

__all__ = ["LEVELS", "STAMP", "TARGET", "VECTOR_BYTES", "WIDE", "Level", "build_for"]

# void cpuid(uint32 leaf, uint32 subleaf, uint32 out[4]), for the System V calling convention.
_CPUID = bytes.fromhex("534989d089f889f10fa241890041895804418948084189500c5bc3")
# uint64 xgetbv(void): which registers the operating system saves.
_XGETBV = bytes.fromhex("31c90f01d048c1e2204809d0c3")
_EAX, _EBX, _ECX, _EDX = range(4)
# The registers that LLVM reads, except those that differ between cores (leaf 1, EBX).
_LEAVES: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (0x1, 0, (_EAX, _ECX, _EDX)),
    (0x7, 0, (_EBX, _ECX, _EDX)),
    (0x7, 1, (_EAX, _EBX, _ECX, _EDX)),
    (0xD, 1, (_EAX,)),
    (0x14, 0, (_EBX,)),
    (0x19, 0, (_EBX,)),
    (0x1E, 1, (_EAX,)),
    (0x24, 0, (_EBX,)),
    (0x80000001, 0, (_ECX, _EDX)),
    (0x80000008, 0, (_EBX,)),
)


class Level(NamedTuple):
    """A level of x86-64 (psABI, 3.1.1): the features that LLVM may use, the processor for which it
    schedules instructions, and the bits of `cpuid` for the features, by leaf and register."""

    name: str
    features: frozenset[str]
    tuning: str
    bits: dict[tuple[int, int, int], tuple[int, ...]]

    @property
    def wide(self) -> bool:
        """Whether it has vectors of 64 bytes."""
        return "avx512f" in self.features


_V3 = {
    (0x1, 0, _ECX): (0, 9, 12, 13, 19, 20, 22, 23, 27, 28, 29),
    (0x7, 0, _EBX): (3, 5, 8),
    (0x80000001, 0, _ECX): (0, 5),
}
_V4 = _V3 | {(0x7, 0, _EBX): (3, 5, 8, 16, 17, 28, 30, 31)}
_V3_FEATURES = frozenset({
    "64bit", "avx", "avx2", "bmi", "bmi2", "cmov", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt",
    "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave",
})  # fmt: skip
_V4_FEATURES = _V3_FEATURES | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = (
    # Of LLVM's scheduling models, these suit Zen 4 and 5 best. With the generic model of the level,
    # products are 4 % slower (Zen 5, LLVM 22).
    Level("x86-64-v4", _V4_FEATURES, "znver4", _V4),
    Level("x86-64-v3", _V3_FEATURES, "znver3", _V3),
)
_AVX512F = 1 << 16  # in EBX of leaf 7
_OSXSAVE = 1 << 27  # in ECX of leaf 1
_AVX512_STATE = 0xE6  # the operating system saves the vector and mask registers
_AVX_STATE = 0x06


def _executable(code: bytes) -> int:
    """Return the address of a page with machine code.

    Raises:
        OSError: the system does not allow executable memory.
    """
    process = ctypes.CDLL(None)
    take, protect = process.mmap, process.mprotect
    take.restype = ctypes.c_void_p
    take.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = take(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base in (None, ctypes.c_void_p(-1).value):
        raise OSError("mmap cannot allocate memory")
    ctypes.memmove(base, code, len(code))
    if protect(base, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError("mprotect does not allow executable memory")
    return base


def _instructions() -> tuple[Callable[[int, int], tuple[int, ...]], Callable[[], int]]:
    """Return functions that execute `cpuid` and `xgetbv`.

    Raises:
        OSError: the system does not allow executable memory.
    """
    start = -(-len(_CPUID) // 16) * 16
    base = _executable(_CPUID.ljust(start, b"\xcc") + _XGETBV)
    words = ctypes.c_uint32 * 4
    run = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(words))(base)

    def cpuid(leaf: int, subleaf: int) -> tuple[int, ...]:
        found = words()
        run(leaf, subleaf, ctypes.byref(found))
        return tuple(found)

    return cpuid, ctypes.CFUNCTYPE(ctypes.c_uint64)(base + start)


def _from_cpuid() -> tuple[bool, str, list[str]]:
    """Return whether AVX-512 can be used, the level for kernels compiled in advance ("" for none),
    and all features that `cpuid` reports to LLVM."""
    cpuid, xgetbv = _instructions()
    first = cpuid(0, 0)
    last = {0: first[_EAX], 0x80000000: cpuid(0x80000000, 0)[_EAX]}
    texts = ["-".join(f"{first[i]:x}" for i in (_EBX, _EDX, _ECX))]
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for leaf, subleaf, registers in _LEAVES:
        known = leaf <= last[leaf & 0x80000000]
        found[leaf, subleaf] = values = cpuid(leaf, subleaf) if known else (0, 0, 0, 0)
        texts.append(f"{leaf:x}.{subleaf}:" + "-".join(f"{values[i]:x}" for i in registers))
    saved = xgetbv() if found[1, 0][_ECX] & _OSXSAVE else 0
    wide = bool(found[7, 0][_EBX] & _AVX512F) and saved & _AVX512_STATE == _AVX512_STATE
    levels = [
        level.name
        for level in LEVELS
        if level.wide == wide
        and saved & _AVX_STATE == _AVX_STATE
        and all(found[i, j][k] >> bit & 1 for (i, j, k), bits in level.bits.items() for bit in bits)
    ]
    return wide, levels[0] if levels else "", [*texts, f"xcr0:{saved:x}"]


def _from_llvm() -> tuple[bool, str, list[str]]:
    name, on = imported("accnp.compiler.llvm.processor").host()
    return "avx512f" in on, "", [name, " ".join(on)]


def _described() -> tuple[bool, str, list[str]]:
    if hasattr(os, "uname") and os.uname().machine in ("x86_64", "amd64"):
        try:
            return _from_cpuid()
        except OSError:
            pass
    return _from_llvm()


WIDE, LEVEL, _FEATURES = _described()
VECTOR_BYTES = 64 if WIDE else 32
STAMP = "\n".join([*os.uname()[::4], *_FEATURES] if hasattr(os, "uname") else [os.name, *_FEATURES])
TARGET: Level | None = None  # for which kernels are compiled, instead of this machine


def build_for(level: Level) -> None:
    """Generate code for a level instead of for this machine. Call it before compiling anything."""
    global TARGET, WIDE, VECTOR_BYTES
    TARGET, WIDE, VECTOR_BYTES = level, level.wide, 64 if level.wide else 32
