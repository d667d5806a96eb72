"""Load object files into memory without LLVM.

`kernel_cache.py` passes the object files of one kernel and the names of symbols, and gets the
addresses of the symbols. The loader copies the sections, resolves relocations, and makes the code
executable. It handles ELF files for x86-64 and AArch64; LLVM's linker loads all others. Code is
unmapped when its `Code` is garbage collected, so callers must keep a reference to the `Code`, or to
the `Kernel` that contains it.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from accnp.compiler import executable_memory
from accnp.compiler.external_symbols import find_symbols
from accnp.compiler.object_files import split_object_files
from accnp.config import config
from accnp.lazy_imports import imported

if TYPE_CHECKING:
    from collections.abc import Hashable


__all__ = ["Code", "load", "mapped"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_X86_64, _AARCH64, _RELOCATABLE = 62, 183, 1
_TABLE, _RELA, _ZEROS, _REL, _UNWIND = 2, 4, 8, 9, 0x70000001  # kinds of sections
_WRITE, _LOADED = 1, 2  # flags of sections
_FUNCTION = 2  # kind of symbols
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2  # sections of symbols that have none
# Types of relocations of x86-64: absolute and relative, of 64 and 32 bits; through a table of
# addresses.
_ABS64, _PC32, _PLT32, _PC64 = 1, 2, 4, 24
_GOT = (9, 41, 42)
# Those of AArch64: absolute and relative addresses, calls, pages of 4 kB relative to the page of
# the instruction, and places in a page, for an addition and for loads of 1 to 16 bytes.
_A_ABS64, _A_PC64, _A_PC32, _A_CALLS, _A_PAGE = 257, 260, 261, (282, 283), 275
_A_PLACES = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # and the bits that loads leave out
_A_GOT_PAGE, _A_GOT_PLACE = 311, 312
# Jumps to the address that follows them, by machine.
_JUMPS = {
    _X86_64: b"\xff\x25\x02\x00\x00\x00\x90\x90",  # jmp [rip + 2]
    _AARCH64: b"\x50\x00\x00\x58\x00\x02\x1f\xd6",  # ldr x16, .+8; br x16
}


def load(data: bytes, *symbols: str, kernel: str = "") -> tuple[list[int], object]:
    """Load the object files of a kernel. Returns the addresses of symbols, and an object that keeps
    the code mapped, and the kernels that it calls."""
    images = split_object_files(data)
    outer, kernels = find_symbols(data)
    try:
        image = _Image(images, outer)
        if config.code_symbols:
            imported("accnp.compiler.code_symbols").publish(kernel, image.functions())
        symbol_addresses = image.addresses
        image.code.kernels = kernels
        return [symbol_addresses[symbol] for symbol in symbols], image.code
    except (_UnknownError, KeyError, struct.error):
        objects = imported("accnp.compiler.llvm.objects")
        addresses, code = objects.link(images, outer, symbols)
        return addresses, (code, kernels)


class Code:
    """Memory with machine code, which is unmapped with this object."""

    __slots__ = ("_base", "_unmap", "kernels")

    def __init__(self, base: int, size: int) -> None:
        self._unmap = executable_memory.unmap
        self._base = base
        self.kernels: Sequence[object] = ()  # that it calls
        mapped[base] = size

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # An interrupt may have ended `__init__`. At exit, daemon threads may still execute code.
        size = 0 if is_finalizing() else mapped.pop(getattr(self, "_base", 0), 0)
        if size:
            self._unmap(self._base, size)


mapped: dict[int, int] = {}  # the size of each piece of machine code in memory, by its address


class _UnknownError(Exception):
    """A feature of the object file that only LLVM's linker supports."""


class _Image:
    """Object files in memory, linked with each other.

    All sections of a kernel are in one block of memory, so that their relative addresses have few
    bits, as the small code model assumes. Calls of other functions go through jumps in this block.
    """

    def __init__(self, images: Sequence[bytes], outer: Mapping[str, int]) -> None:
        self.outer = outer
        self.addresses: dict[str, int] = {}
        if not executable_memory.SUPPORTED:
            raise _UnknownError("memory on this system")
        self.files = files = [_File(image) for image in images]
        self.machine = files[0].machine if files else _X86_64
        code = [s for f in files for s in f.sections if s.loaded and not s.writable]
        data = [s for f in files for s in f.sections if s.loaded and s.writable]
        self.slots: dict[Hashable, int] = {}
        self.free = _laid_out(code, 0)
        room = 16 * sum(len(f.relocations) for f in files)  # for jumps, at most
        edge = -(-(self.free + room) // mmap.PAGESIZE) * mmap.PAGESIZE
        end = _laid_out(data, edge)
        for f in files:
            end = f.place_common(end)
        size = -(-max(end, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.base = executable_memory.map_writable(size)
        self.code = Code(self.base, size)
        self.bytes = (ctypes.c_char * size).from_address(self.base)
        for f in files:
            for s in f.sections:
                if s.loaded and s.kind != _ZEROS:
                    self.bytes[s.place : s.place + s.size] = f.image[s.offset : s.offset + s.size]
        for f in files:
            self.addresses.update(f.exported(self.base))
        for f in files:
            for section, place, kind, symbol, addend in f.relocations:
                self._refer(f, section.place + place, kind, f.symbols[symbol], addend)
        if not executable_memory.make_executable(self.base, edge):
            raise _UnknownError("the system does not allow executable memory")

    def functions(self) -> list[tuple[str, int, int]]:
        """Return the symbol, the address and the size of each function."""
        return [
            (x.name, address, x.size)
            for f in self.files
            for x in f.symbols
            if x.is_function and (address := f.address(x, self.base)) is not None
        ]

    def _refer(self, f: _File, place: int, kind: int, symbol: _Symbol, addend: int) -> None:
        """Resolve one relocation."""
        target = f.address(symbol, self.base)
        if target is None:
            target = self.addresses.get(symbol.name)
        inside = target is not None
        if target is None:
            target = self._find_external(symbol.name)
        if self.machine == _AARCH64:
            self._refer_aarch64(place, kind, target, inside, addend)
            return
        if kind == _ABS64:
            struct.pack_into("<Q", self.bytes, place, (target + addend) % 2**64)
            return
        if kind == _PC64:
            struct.pack_into("<q", self.bytes, place, target + addend - self.base - place)
            return
        if kind in _GOT:
            target = self._slot(target) + 8
        elif kind == _PLT32 or (kind == _PC32 and inside):
            target = target if inside else self._slot(target)
        else:
            raise _UnknownError(f"relocation {kind} of {symbol.name}")
        struct.pack_into("<i", self.bytes, place, target + addend - self.base - place)

    def _refer_aarch64(self, place: int, kind: int, target: int, inside: bool, addend: int) -> None:
        """Resolve one relocation of AArch64: an address in data, or bits of an instruction."""
        here = self.base + place
        if kind == _A_ABS64:
            struct.pack_into("<Q", self.bytes, place, (target + addend) % 2**64)
            return
        if kind in (_A_PC64, _A_PC32):
            struct.pack_into("<q" if kind == _A_PC64 else "<i", self.bytes, place,
                             target + addend - here)  # fmt: skip
            return
        if kind in (_A_GOT_PAGE, _A_GOT_PLACE):
            target, inside = self._slot(target) + 8, True
        elif kind in _A_CALLS and not inside:
            target, inside = self._slot(target), True
        if not inside:
            raise _UnknownError(f"relocation {kind} of another library")
        target += addend
        if kind in _A_CALLS:
            bits = target - here >> 2 & 0x3FFFFFF
        elif kind in (_A_PAGE, _A_GOT_PAGE):
            pages = (target >> 12) - (here >> 12)
            bits = (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        elif kind == _A_GOT_PLACE:
            bits = (target & 0xFFF) >> 3 << 10
        elif kind in _A_PLACES:
            bits = (target & 0xFFF) >> _A_PLACES[kind] << 10
        else:
            raise _UnknownError(f"relocation {kind}")
        (word,) = struct.unpack_from("<I", self.bytes, place)
        struct.pack_into("<I", self.bytes, place, word | bits)

    def _find_external(self, name: str) -> int:
        address = self.outer.get(name)
        if address is None:
            address = executable_memory.find_function(name)
        if address is None:
            address = _find_numba_function(name)
        if address is None:
            raise RuntimeError(f"load: no loaded library has the function {name}")
        return address

    def _slot(self, target: int) -> int:
        """Return the address of a jump to an address, which follows the jump."""
        offset = self.slots.get(target)
        if offset is None:
            offset = self.slots[target] = -(-self.free // 16) * 16
            self.bytes[offset : offset + 16] = _JUMPS[self.machine] + struct.pack("<Q", target)
            self.free = offset + 16
        return self.base + offset


class _Section:
    __slots__ = ("align", "kind", "link", "loaded", "offset", "place", "size", "target", "writable")

    def __init__(self, header: tuple[int, ...]) -> None:
        _, self.kind, flags, _, self.offset, self.size, self.link, self.target, align, _ = header
        self.align = max(1, align)
        self.loaded = bool(flags & _LOADED) and self.kind != _UNWIND
        self.writable = bool(flags & _WRITE)
        self.place = -1


def _laid_out(sections: Sequence[_Section], at: int) -> int:
    for s in sections:
        s.place = -(-at // s.align) * s.align
        at = s.place + s.size
    return -(-at // 16) * 16


class _Symbol:
    __slots__ = ("common", "is_function", "name", "section", "shared", "size", "value")

    def __init__(self, name: str, entry: tuple[int, ...]) -> None:
        _, info, _, self.section, self.value, self.size = entry
        self.name = name
        self.shared = bool(info >> 4)  # not local
        self.is_function = info & 15 == _FUNCTION and self.section != _UNDEFINED
        self.common = -1


class _File:
    """The sections, symbols and relocations of one object file."""

    def __init__(self, image: bytes) -> None:
        self.image = image
        if image[: len(_MAGIC)] != _MAGIC:
            raise _UnknownError("not an ELF file")
        _, kind, machine, _, _, _, start, *_, size, count, _ = _HEADER.unpack_from(image)
        if (kind, size) != (_RELOCATABLE, _SECTION.size) or machine not in _JUMPS:
            raise _UnknownError("an object file for another machine")
        self.machine = machine
        headers = [_SECTION.unpack_from(image, start + i * size) for i in range(count)]
        self.sections = [_Section(h) for h in headers]
        self.symbols: list[_Symbol] = []
        self.relocations: list[tuple[_Section, int, int, int, int]] = []
        for s in self.sections:
            if s.kind == _TABLE:
                names = self.sections[s.link].offset
                for at in range(s.offset, s.offset + s.size, _SYMBOL.size):
                    entry = _SYMBOL.unpack_from(image, at)
                    begin = names + entry[0]
                    name = image[begin : image.index(b"\0", begin)].decode()
                    self.symbols.append(_Symbol(name, entry))
        for s in self.sections:
            if s.kind in (_RELA, _REL):
                target = self.sections[s.target]
                if not target.loaded:
                    continue
                if s.kind == _REL:
                    raise _UnknownError("relocations without addends")
                for at in range(s.offset, s.offset + s.size, _RELOCATION.size):
                    place, info, addend = _RELOCATION.unpack_from(image, at)
                    self.relocations.append((target, place, info & 0xFFFFFFFF, info >> 32, addend))

    def place_common(self, at: int) -> int:
        """Allocate common symbols, whose value is an alignment; returns the end of the memory."""
        for x in self.symbols:
            if x.section == _COMMON:
                x.common = -(-at // max(1, x.value)) * max(1, x.value)
                at = x.common + x.size
        return at

    def address(self, x: _Symbol, base: int) -> int | None:
        """Return the address of a symbol, or None if this file does not define it."""
        if x.section == _UNDEFINED:
            return None
        if x.section == _COMMON:
            return base + x.common
        if x.section == _ABSOLUTE:
            return x.value
        if x.section >= len(self.sections) or self.sections[x.section].place < 0:
            raise _UnknownError(f"the section of {x.name}")
        return base + self.sections[x.section].place + x.value

    def exported(self, base: int) -> dict[str, int]:
        """Return the addresses of the symbols that are visible to other files."""
        addresses: dict[str, int] = {}
        for x in self.symbols:
            if x.shared and x.section != _UNDEFINED:
                address = self.address(x, base)
                assert address is not None
                addresses[x.name] = address
        return addresses


def _find_numba_function(name: str) -> int | None:
    """Return the address of a C function of Numba, such as `math.frexp` in a user's function."""
    plain = name.removeprefix("numba_")
    return None if plain == name else imported("accnp.compiler.numba.private").helper_address(plain)
