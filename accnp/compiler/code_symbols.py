"""Publish the names of machine code to profilers and debuggers, if the option `code_symbols` is on.

`elf_loader.py` calls `publish` with the name of a kernel and the functions in its machine code
after it has loaded them. This module appends lines to `perf-PID.map` in the temporary folder, which
Linux's `perf` reads. If the C extension is in use, it also registers an object file in memory with
gdb.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from accnp._native import register_code
from accnp.host_machine import MACHINE

__all__ = ["Function", "publish"]


class Function(NamedTuple):
    """A function in machine code."""

    symbol: str
    address: int
    size: int


def publish(kernel: str, functions: Sequence[tuple[str, int, int]]) -> None:
    """Publish the functions of a kernel, each given by its symbol, address and size."""
    named = [Function(_label(kernel, s), at, size) for s, at, size in functions if size]
    if not named:
        return
    lines = "".join([f"{f.address:x} {f.size:x} {f.symbol}\n" for f in named])
    path = os.path.join(tempfile.gettempdir(), f"perf-{os.getpid()}.map")
    try:
        with open(path, "a") as file:
            file.write(lines)
    except OSError:
        pass  # if the folder is full or read-only, only the names are missing
    register_code(_object_file(named))


def _label(kernel: str, symbol: str) -> str:
    return f"accnp:{kernel}" if symbol == "accnp_entry" else f"accnp:{kernel}.{symbol[:80]}"


_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian
_MACHINES = {"x86_64": 62, "aarch64": 183}
_EXECUTABLE, _SYMTAB, _STRTAB, _NOBITS = 2, 2, 3, 8
_ALLOCATED_CODE = 6
_GLOBAL_FUNCTION = 0x12


def _object_file(functions: Sequence[Function]) -> bytes:
    """Return an ELF file with the symbols of functions in memory, and no contents."""
    begin = min(f.address for f in functions)
    end = max(f.address + f.size for f in functions)
    names, symbols = b"\0", [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    for f in functions:
        symbols.append(_SYMBOL.pack(len(names), _GLOBAL_FUNCTION, 0, 1, f.address, f.size))
        names += f.symbol.encode() + b"\0"
    table = b"".join(symbols)
    titles = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    at = _HEADER.size
    sections = [
        _SECTION.pack(*[0] * 10),
        _SECTION.pack(1, _NOBITS, _ALLOCATED_CODE, begin, at, end - begin, 0, 0, 16, 0),
        _SECTION.pack(7, _SYMTAB, 0, 0, at, len(table), 3, 1, 8, _SYMBOL.size),
        _SECTION.pack(15, _STRTAB, 0, 0, at + len(table), len(names), 0, 0, 1, 0),
        _SECTION.pack(
            23, _STRTAB, 0, 0, at + len(table) + len(names), len(titles), 0, 0, 1, 0
        ),
    ]  # fmt: skip
    body = table + names + titles
    machine = _MACHINES.get(MACHINE, 0)
    header = _HEADER.pack(
        _IDENT, _EXECUTABLE, machine, 1, 0, 0, at + len(body), 0, at, 0, 0, _SECTION.size,
        len(sections), len(sections) - 1,
    )  # fmt: skip
    return header + body + b"".join(sections)
