"""Load object files into memory without LLVM.

In: the object files of one kernel, and the names of symbols. Out: the addresses of the symbols. The
loader copies the sections, resolves relocations, and makes code executable. It handles ELF files
for x86-64; LLVM's linker loads all others. Code is unmapped when its `Code` is garbage collected,
so callers must keep a reference to the `Code`, or to the `Kernel` that contains it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accnp.compiler.library.addresses import called_in
from accnp.config import config
from accnp.forks import imported

if TYPE_CHECKING:
    from accnp.compiler.kernel_cache import Kernel

__all__ = ["Code", "join_images", "load", "mapped"]

_FRAME = struct.Struct("<Q")
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_X86_64, _RELOCATABLE = 62, 1
_TABLE, _RELA, _ZEROS, _REL, _UNWIND = 2, 4, 8, 9, 0x70000001  # kinds of sections
_WRITE, _LOADED = 1, 2  # flags of sections
_FUNCTION = 2  # kind of symbols
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2  # sections of symbols that have none
# Types of relocations: absolute and relative, of 64 and 32 bits; through a table of addresses.
_ABS64, _PC32, _PLT32, _PC64 = 1, 2, 4, 24
_GOT = (9, 41, 42)
_JUMP = b"\xff\x25\x02\x00\x00\x00\x90\x90"  # to the address that follows it


def join_images(images: Sequence[bytes]) -> bytes:
    """Return object files as one string, each after its length."""
    return b"".join(_FRAME.pack(len(image)) + image for image in images)


def _split_images(data: bytes) -> list[bytes]:
    found = []
    while data:
        (size,) = _FRAME.unpack_from(data)
        found.append(data[_FRAME.size : _FRAME.size + size])
        data = data[_FRAME.size + size :]
    return found


def load(data: bytes, *symbols: str, kernel: str = "") -> tuple[list[int], Any]:
    """Load the object files of a kernel. Returns the addresses of symbols, and an object that keeps
    the code mapped, and the kernels that it calls."""
    images = _split_images(data)
    outer, kernels = called_in(data)
    try:
        image = _Image(images, outer)
        if config.code_symbols:
            imported("accnp.compiler.code_symbols").publish(kernel, image.functions())
        found = image.addresses
        image.code.kernels = kernels
        return [found[symbol] for symbol in symbols], image.code
    except (_UnknownError, KeyError, struct.error):
        objects = imported("accnp.compiler.llvm.objects")
        addresses, code = objects.link(images, outer, symbols)
        return addresses, (code, kernels)


class Code:
    """Memory with machine code, which is unmapped with this object."""

    __slots__ = ("_base", "_unmap", "kernels")

    def __init__(self, base: int, size: int) -> None:
        self._unmap = _process().munmap
        self._base = base
        self.kernels: list[Kernel] = []  # that it calls
        mapped[base] = size

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # An interrupt may have ended `__init__`. At exit, daemon threads may still execute code.
        size = 0 if is_finalizing() else mapped.pop(getattr(self, "_base", 0), 0)
        if size:
            self._unmap(self._base, size)


mapped: dict[int, int] = {}  # the size of each piece of machine code in memory, by its address


@functools.cache
def _process() -> ctypes.CDLL:
    """Return the process as a library, with the types of the functions that map memory."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long,
    ]  # fmt: skip
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


class _UnknownError(Exception):
    """A feature of the object file that only LLVM's linker supports."""


class _Image:
    """Object files in memory, linked with each other."""

    def __init__(self, images: Sequence[bytes], outer: Mapping[str, int]) -> None:
        self.outer = outer
        self.addresses: dict[str, int] = {}
        self.files = files = [_File(image) for image in images]
        code = [s for f in files for s in f.sections if s.loaded and not s.writable]
        data = [s for f in files for s in f.sections if s.loaded and s.writable]
        self.slots: dict[Any, int] = {}
        self.free = _laid_out(code, 0)
        room = 16 * sum(len(f.references) for f in files)  # for jumps, at most
        edge = -(-(self.free + room) // mmap.PAGESIZE) * mmap.PAGESIZE
        end = _laid_out(data, edge)
        for f in files:
            end = f.place_common(end)
        size = -(-max(end, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.base = self._mapped(size)
        self.code = Code(self.base, size)
        self.bytes = (ctypes.c_char * size).from_address(self.base)
        for f in files:
            for s in f.sections:
                if s.loaded and s.kind != _ZEROS:
                    self.bytes[s.place : s.place + s.size] = f.image[s.offset : s.offset + s.size]
        for f in files:
            self.addresses.update(f.exported(self.base))
        for f in files:
            for section, place, kind, symbol, addend in f.references:
                self._refer(f, section.place + place, kind, f.symbols[symbol], addend)
        self._executable(edge)

    def functions(self) -> list[tuple[str, int, int]]:
        """Return the symbol, the address and the size of each function."""
        return [
            (x.name, address, x.size)
            for f in self.files
            for x in f.symbols
            if x.is_function and (address := f.address(x, self.base)) is not None
        ]

    def _mapped(self, size: int) -> int:
        readable = mmap.PROT_READ | mmap.PROT_WRITE
        base = _process().mmap(None, size, readable, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"load: cannot allocate memory for a kernel; got size={size}")
        return base

    def _executable(self, size: int) -> None:
        if _process().mprotect(self.base, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise _UnknownError("the system does not allow executable memory")

    def _refer(self, f: _File, place: int, kind: int, symbol: Any, addend: int) -> None:
        """Resolve one relocation."""
        target = f.address(symbol, self.base)
        if target is None:
            target = self.addresses.get(symbol.name)
        inside = target is not None
        if target is None:
            target = self._outside(symbol.name)
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

    def _outside(self, name: str) -> int:
        found = self.outer.get(name)
        if found is None:
            try:
                found = ctypes.cast(_process()[name], ctypes.c_void_p).value
            except AttributeError:
                found = _of_numba(name)
        if found is None:
            raise RuntimeError(f"load: no loaded library has the function {name}")
        return found

    def _slot(self, target: int) -> int:
        """Return the address of a jump to an address, which follows the jump."""
        found = self.slots.get(target)
        if found is None:
            found = self.slots[target] = -(-self.free // 16) * 16
            self.bytes[found : found + 16] = _JUMP + struct.pack("<Q", target)
            self.free = found + 16
        return self.base + found


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
        _, kind, machine_, _, _, _, start, *_, size, count, _ = _HEADER.unpack_from(image)
        if (kind, machine_, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
            raise _UnknownError("an object file for another machine")
        headers = [_SECTION.unpack_from(image, start + i * size) for i in range(count)]
        self.sections = [_Section(h) for h in headers]
        self.symbols: list[_Symbol] = []
        self.references: list[tuple[_Section, int, int, int, int]] = []
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
                    self.references.append((target, place, info & 0xFFFFFFFF, info >> 32, addend))

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
        found = {}
        for x in self.symbols:
            if x.shared and x.section != _UNDEFINED:
                address = self.address(x, base)
                assert address is not None
                found[x.name] = address
        return found


def _of_numba(name: str) -> int | None:
    """Return the address of a C function of Numba, such as `math.frexp` in a user's function."""
    plain = name.removeprefix("numba_")
    return None if plain == name else imported("accnp.compiler.numba.private").helper_address(plain)
