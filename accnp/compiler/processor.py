"""Describe the processor for which kernels are compiled, as LLVM sees it.

``STAMP`` differs between processors whose machine code may differ, and is part of every key of the
disk cache. The module also has the width of vectors, and the level of x86-64 (``LEVELS``) of the
kernels that were compiled in advance (`library/prebuilt.py`). It reads what LLVM reads, so an
emulator or a virtual machine that hides features changes both. With the environment variable
``ACCNP_CPU_LEVEL``, code is generated for a level instead of this machine.
"""

# `build_for` changes what is constant otherwise.
# pyright: reportConstantRedefinition=false

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from accnp.compiler.executable_memory import SUPPORTED, make_executable, map_writable
from accnp.host_machine import MACHINE
from accnp.lazy_imports import imported

__all__ = ["LEVELS", "STAMP", "TARGET", "VECTOR_BYTES", "WIDE", "Level", "build_for", "host"]

# LLVM selects instructions by `cpuid` on x86-64, and by `/proc/cpuinfo` on Linux on AArch64; this
# module reads the same. On other systems, it calls LLVM: loading LLVM takes 50 ms, which a process
# with a warm disk cache saves.

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
        """Return whether the level has vectors of 64 bytes."""
        return "avx512f" in self.features

    @property
    def registers(self) -> int:
        """The bits of XCR0 for the registers that the operating system must save."""
        return _AVX512_STATE if self.wide else _AVX_STATE if "avx" in self.features else 0


_V2 = {(0x1, 0, _ECX): (0, 9, 13, 19, 20, 23), (0x80000001, 0, _ECX): (0,)}
_V3 = {
    (0x1, 0, _ECX): (0, 9, 12, 13, 19, 20, 22, 23, 27, 28, 29),
    (0x7, 0, _EBX): (3, 5, 8),
    (0x80000001, 0, _ECX): (0, 5),
}
_V4 = _V3 | {(0x7, 0, _EBX): (3, 5, 8, 16, 17, 28, 30, 31)}
_V2_FEATURES = frozenset({
    "64bit", "cmov", "cx16", "cx8", "fxsr", "mmx", "popcnt", "sahf", "sse", "sse2", "sse3",
    "sse4.1", "sse4.2", "ssse3",
})  # fmt: skip
_V3_FEATURES = _V2_FEATURES | {
    "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave",
}  # fmt: skip
_V4_FEATURES = _V3_FEATURES | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = (
    # Of LLVM's scheduling models, these suit Zen 4 and 5 best. With the generic model of the level,
    # products are 4 % slower (Zen 5, LLVM 22).
    Level("x86-64-v4", _V4_FEATURES, "znver4", _V4),
    Level("x86-64-v3", _V3_FEATURES, "znver3", _V3),
    # No kernels are compiled in advance for this one.
    Level("x86-64-v2", _V2_FEATURES, "nehalem", _V2),
)
_VARIABLE = "ACCNP_CPU_LEVEL"
_AVX512F = 1 << 16  # in EBX of leaf 7
_OSXSAVE = 1 << 27  # in ECX of leaf 1
_AVX512_STATE = 0xE6  # the operating system saves the vector and mask registers
_AVX_STATE = 0x06


def _instructions() -> tuple[Callable[[int, int], tuple[int, ...]], Callable[[], int]]:
    """Return functions that execute `cpuid` and `xgetbv`.

    Raises:
        OSError: the system does not allow executable memory.
    """
    start = -(-len(_CPUID) // 16) * 16
    code = _CPUID.ljust(start, b"\xcc") + _XGETBV
    base = map_writable(mmap.PAGESIZE)
    ctypes.memmove(base, code, len(code))
    if not make_executable(base, mmap.PAGESIZE):
        raise OSError("the system does not allow executable memory")
    words = ctypes.c_uint32 * 4
    run = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(words))(base)

    def cpuid(leaf: int, subleaf: int) -> tuple[int, ...]:
        registers = words()
        run(leaf, subleaf, ctypes.byref(registers))
        return tuple(registers)

    return cpuid, ctypes.CFUNCTYPE(ctypes.c_uint64)(base + start)


class _Described(NamedTuple):
    """A processor: whether AVX-512 can be used, the levels of x86-64 that it has, highest first,
    and all features that LLVM sees."""

    wide: bool
    levels: list[Level]
    features: list[str]


def _from_cpuid() -> _Described:
    cpuid, xgetbv = _instructions()
    first = cpuid(0, 0)
    last = {0: first[_EAX], 0x80000000: cpuid(0x80000000, 0)[_EAX]}
    texts = ["-".join(f"{first[i]:x}" for i in (_EBX, _EDX, _ECX))]
    leaves: dict[tuple[int, int], tuple[int, ...]] = {}
    for leaf, subleaf, registers in _LEAVES:
        known = leaf <= last[leaf & 0x80000000]
        leaves[leaf, subleaf] = values = cpuid(leaf, subleaf) if known else (0, 0, 0, 0)
        texts.append(f"{leaf:x}.{subleaf}:" + "-".join(f"{values[i]:x}" for i in registers))
    saved = xgetbv() if leaves[1, 0][_ECX] & _OSXSAVE else 0
    wide = bool(leaves[7, 0][_EBX] & _AVX512F) and saved & _AVX512_STATE == _AVX512_STATE
    levels = [
        level
        for level in LEVELS
        if saved & level.registers == level.registers
        and all(
            leaves[i, j][k] >> bit & 1 for (i, j, k), bits in level.bits.items() for bit in bits
        )
    ]
    return _Described(wide, levels, [*texts, f"xcr0:{saved:x}"])


def host() -> tuple[str, list[str]]:
    """Return LLVM's name for the processor of this machine, and its features in order."""
    binding = imported("llvmlite.binding")
    features: dict[str, bool] = binding.get_host_cpu_features()
    return str(binding.get_host_cpu_name()), sorted(name for name, on in features.items() if on)


def _from_llvm() -> _Described:
    name, on = host()
    return _Described("avx512f" in on, [], [name, " ".join(on)])


# The lines of /proc/cpuinfo that LLVM reads on AArch64. Processors may have cores of several kinds.
_ARM_LINES = ("CPU implementer", "CPU part", "CPU variant", "Features", "Hardware")


def _from_arm_file() -> _Described:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file]
    features = {line for line in lines if line.partition(":")[0].strip() in _ARM_LINES}
    if not any(line.startswith("Features") for line in features):
        raise OSError("/proc/cpuinfo does not have the features of AArch64")
    return _Described(False, [], sorted(features))


def _describe_processor() -> _Described:
    try:
        if MACHINE == "x86_64" and SUPPORTED:
            return _from_cpuid()
        if MACHINE == "aarch64" and sys.platform == "linux":
            return _from_arm_file()
    except (OSError, MemoryError):
        pass
    return _from_llvm()


def _choose_level(name: str, levels: list[Level]) -> Level:
    """Return the level that the environment variable selects.

    Raises:
        ValueError: the level is unknown, or this processor does not support it.
    """
    matches = [level for level in levels if level.name == name]
    if not matches:
        every = ", ".join(level.name for level in levels) or "none"
        raise ValueError(
            f"accnp: {_VARIABLE} must be a level of x86-64 that this processor has; got {name!r}; "
            f"pass one of: {every}"
        )
    return matches[0]


WIDE, _levels, _FEATURES = _describe_processor()
# The level of the kernels compiled in advance: of one with the same width of vectors.
LEVEL = next((level.name for level in _levels if level.wide == WIDE), "")
VECTOR_BYTES = 64 if WIDE else 32
STAMP = "\n".join([sys.platform, MACHINE, *_FEATURES])
TARGET: Level | None = None  # for which kernels are compiled, instead of this machine


def build_for(level: Level) -> None:
    """Generate code for a level instead of for this machine. Call it before compiling anything."""
    global LEVEL, STAMP, TARGET, WIDE, VECTOR_BYTES
    TARGET, WIDE, VECTOR_BYTES = level, level.wide, 64 if level.wide else 32
    LEVEL, STAMP = level.name, f"{sys.platform}\n{MACHINE}\n{level.name}"


if os.environ.get(_VARIABLE):
    build_for(_choose_level(os.environ[_VARIABLE], _levels))
