"""The buffer pool.

It creates `Buffer`s, memory that is aligned to 64 bytes, from sizes, NumPy arrays, and arrays of
other libraries. Freed blocks are returned to the pool, keyed by size class, when the last reference
to their Buffer is dropped. A NumPy view made by `Buffer.view` holds the Buffer, so visible memory
is not reused.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, Unpack

import numpy as np

from accnp._native import Blocks, BufferBase, Pool, install_buffers
from accnp.caches import register_cache
from accnp.config import config, listeners
from accnp.errors import warn
from accnp.forks import renewed

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from accnp.runtime.driver import DeviceArray

ALIGN = 64
SMALL = 4096  # bytes up to which blocks are cut from slabs and have power-of-two sizes
_SLAB = 1 << 18
_HUGE = 1 << 21  # the size of a huge page

T = TypeVar("T")
Memory = tuple[int, object]  # address, and the object that owns the memory (None for slab pieces)


def _limit() -> int:
    """Return the option `pool_max_bytes`; by default, a quarter of the machine's memory."""
    if config.pool_max_bytes is not None:
        return config.pool_max_bytes
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 30
    return max(total // 4, 1 << 28)


class _Pool(Pool):
    """Free blocks by size class, and the allocation of new ones."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.slabs: list[np.ndarray] = []
        self.lock = renewed(threading.Lock())
        self.allocations = 0  # blocks taken from the system
        self.allocated_bytes = 0

    def _allocate(self, blocks: Blocks | None, nbytes: int) -> Buffer:
        """Return a buffer over a new block. Small blocks are cut from a slab, whose other pieces go
        to the pool."""
        if blocks is None:
            raise MemoryError(_too_large_message(nbytes))
        size = blocks.size
        if size <= SMALL:
            slab = _allocate_from_system(lambda: np.empty(_SLAB + ALIGN, np.uint8), nbytes)
            first = -(-slab.ctypes.data // ALIGN) * ALIGN
            with self.lock:
                self.slabs.append(slab)  # slabs are never freed: their pieces return to the pool
                self.allocations += 1
                self.allocated_bytes += _SLAB
            blocks.fill(first + size, first + _SLAB)
            return Buffer(first, nbytes, None, blocks)
        ptr, memory = _allocate_from_system(lambda: _map(size), nbytes)
        with self.lock:
            self.allocations += 1
            self.allocated_bytes += size
        return Buffer(ptr, nbytes, memory, blocks)


# One ctypes array type per size class: np.ndarray takes its memory from an instance of it.
_exporters: dict[int, type[ctypes.Array[ctypes.c_char]]] = {}


def _exporter(size: int) -> type[ctypes.Array[ctypes.c_char]]:
    kind = _exporters.get(size)
    if kind is None:
        base = ctypes.c_char * size
        kind = _exporters[size] = type("Exporter", (base,), {"__slots__": ("buffer",)})
    return kind


def is_pooled(owner: object) -> bool:
    """Return whether an object exports the memory of a Buffer of the pool to NumPy."""
    return type(getattr(owner, "buffer", None)) is Buffer and isinstance(owner, ctypes.Array)


class Buffer(BufferBase):
    """Memory of a known size; `ptr` is its address. The functions of this module make buffers."""

    __slots__ = ()

    @property
    def pooled(self) -> bool:
        """Whether the memory belongs to the pool."""
        return self.size_class != 0

    def done(self) -> bool:
        """Return whether the values are computed: always true in the memory of the host."""
        return True

    def wait(self) -> None:
        """Wait until the values are computed."""

    def view(
        self, shape: Sequence[int], dtype: np.dtype | type, writeable: bool = False
    ) -> np.ndarray:
        """Return a C-contiguous NumPy array over this memory; it keeps the Buffer alive."""
        size = self.size_class
        if size:
            exporter: Any = _exporter(size).from_address(self.ptr)
            exporter.buffer = self
        else:
            exporter = self.memory
        if writeable:
            return np.ndarray(shape, dtype, exporter)
        # frombuffer, unlike ndarray, keeps the read-only memoryview as the base, so that the array
        # cannot be made writeable again.
        count = math.prod(shape)
        if count == 0:
            array = np.empty(shape, dtype)
            array.flags.writeable = False
            return array
        return np.frombuffer(memoryview(exporter).toreadonly(), dtype, count).reshape(shape)

    def __repr__(self) -> str:
        return f"Buffer(ptr={self.ptr:#x}, nbytes={self.nbytes})"


install_buffers(Buffer)
_pool = _Pool(_limit())
empty = _pool.empty
blocks = _pool.blocks


def _allocate_from_system(take: Callable[[], T], nbytes: int) -> T:
    """Return what `take` gets from the system, if need be after the free blocks were returned.

    Raises MemoryError, with the number of bytes that were asked for, if there is not enough memory.
    """
    try:
        return take()
    except (OSError, MemoryError, OverflowError):
        trim()
    try:
        return take()
    except (OSError, MemoryError, OverflowError) as error:
        raise MemoryError(_too_large_message(nbytes)) from error


def _too_large_message(nbytes: int) -> str:
    return (
        f"empty: not enough memory for an array; got a request of {nbytes} bytes "
        f"({nbytes / 2**30:.3g} GiB); use a smaller shape or dtype, or process the data in parts"
    )


# By default, mmap makes memory that a forked child shares, so that it would write into arrays of
# its parent; such memory has no huge pages either.
_OWN: dict[str, int] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
)


def _map(size: int) -> Memory:
    if size < 1 << 18:
        array = np.empty(size + ALIGN, np.uint8)
        return -(-array.ctypes.data // ALIGN) * ALIGN, array
    # Huge pages need an aligned address; the surplus is address space only.
    mapped = mmap.mmap(-1, size + (_HUGE if size >= _HUGE else 0), **_OWN)
    keep = ctypes.c_char.from_buffer(mapped)
    ptr = ctypes.addressof(keep)
    if size >= _HUGE:
        ptr = -(-ptr // _HUGE) * _HUGE
        advice = getattr(mmap, "MADV_HUGEPAGE", None)
        if advice is not None:
            # Without huge pages, only the first access is slower.
            with contextlib.suppress(OSError):
                mapped.madvise(advice)
    return ptr, keep


# In NumPy's C interface, the address of an array's elements follows the object's head. The
# attribute `ctypes.data` takes 1.3 us, more than the rest of `wrap` or `copy_in`.
_HEAD = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def wrap(array: np.ndarray) -> Buffer:
    """Return a Buffer over the memory of a C-contiguous array, which it keeps alive; no copy."""
    if not array.flags.c_contiguous:
        raise ValueError(
            f"wrap: the array must be C-contiguous; got strides {array.strides} for shape "
            f"{array.shape}; use copy_in"
        )
    # Dtypes of ml_dtypes do not support the buffer protocol, but bytes do. The kind does not
    # identify these dtypes: float8_e5m2 is of kind "f".
    data = array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8)
    return Buffer(_word_at(id(array) + _HEAD).value, array.nbytes, data)


def wrap_rows(array: np.ndarray) -> Iterator[Buffer]:
    """Yield Buffers over the rows of a C-contiguous array without empty rows, as `wrap` does."""
    nbytes = array.nbytes // len(array)
    data = array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8)
    begin = array.ctypes.data
    for i, row in enumerate(data.reshape(len(array), -1)):
        yield Buffer(begin + i * nbytes, nbytes, row)


def copy_in(array: np.ndarray) -> Buffer:
    """Return a Buffer with a C-contiguous copy of an array, or of a NumPy scalar."""
    nbytes = array.nbytes
    buffer = empty(nbytes)
    # 0.6 instead of 2.2 us. Scalars are contiguous, but do not have an address at this place.
    if type(array) is np.ndarray and array.flags.c_contiguous:
        ctypes.memmove(buffer.ptr, _word_at(id(array) + _HEAD).value, nbytes)
    else:
        np.copyto(buffer.view(array.shape, array.dtype, writeable=True), array)
    return buffer


_CTYPES: dict[str, Any] = {
    "f4": ctypes.c_float,
    "f8": ctypes.c_double,
    "i1": ctypes.c_int8,
    "i2": ctypes.c_int16,
    "i4": ctypes.c_int32,
    "i8": ctypes.c_int64,
    "u1": ctypes.c_uint8,
    "u2": ctypes.c_uint16,
    "u4": ctypes.c_uint32,
    "u8": ctypes.c_uint64,
    "b1": ctypes.c_bool,
}
_scalar_types = {np.dtype(code): kind for code, kind in _CTYPES.items()}
_NO_CONTEXT = nullcontext()


def overflow_warnings(dtype: np.dtype) -> AbstractContextManager[object]:
    """Return a context in which NumPy's warning of an overflow names the user's line.

    It is for conversions to types of less than 4 bytes, whose largest number is small; a context
    would take as long as the conversion of a short list. Other settings of `numpy.errstate`, such
    as "ignore" and "raise", stay in force.
    """
    if dtype.itemsize >= 4 or np.geterr()["over"] != "warn":
        return _NO_CONTEXT
    return np.errstate(over="call", call=_warn_of_overflow)


def _warn_of_overflow(kind: str, flag: int) -> None:
    warn("overflow encountered in cast", RuntimeWarning)


def from_scalar(value: complex | np.generic, dtype: np.dtype) -> Buffer:
    """Return a Buffer of one element; Python integers wrap around as in C."""
    buffer = empty(dtype.itemsize)
    kind = _scalar_types.get(dtype)
    if kind is None:
        with overflow_warnings(dtype):
            buffer.view((), dtype, writeable=True)[...] = value
    else:
        kind.from_address(buffer.ptr).value = value
    return buffer


if TYPE_CHECKING:

    class DLPackOptions(TypedDict, total=False):
        """The arguments of `__dlpack__`."""

        stream: int | None
        max_version: tuple[int, int] | None
        dl_device: tuple[int, int] | None
        copy: bool | None

    class DLPackArray(Protocol):
        """An array of any library that supports DLPack."""

        @property
        def __dlpack__(self) -> Callable[..., CapsuleType]: ...

        @property
        def __dlpack_device__(self) -> Callable[[], tuple[int, int]]: ...


# Types that DLPack has but NumPy's DLPack does not: they are exported as unsigned integers of their
# width, and the code of the type is then written into the tensor's head.
_CODES = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
_NAMES = {code: name for name, code in _CODES.items()}
_UINT = 1
_CODE_AT = 20  # in DLTensor: after the address, the device and the number of axes
_HEADS = {b"dltensor": 0, b"dltensor_versioned": 32}  # bytes before DLTensor


def _type_code(capsule: CapsuleType) -> ctypes.c_uint8 | None:
    """Return the place of the type code in a DLPack capsule."""
    api = ctypes.pythonapi
    valid, get = api.PyCapsule_IsValid, api.PyCapsule_GetPointer
    valid.argtypes = get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    get.restype = ctypes.c_void_p
    for name, head in _HEADS.items():
        if valid(capsule, name):
            return ctypes.c_uint8.from_address(get(capsule, name) + head + _CODE_AT)
    return None


def to_dlpack(
    array: DeviceArray | np.ndarray, name: str = "", **kwargs: Unpack[DLPackOptions]
) -> CapsuleType:
    """Return a DLPack capsule of an array of any dtype that DLPack supports. If the array contains
    unsigned integers in place of another dtype, `name` is that dtype."""
    code = _CODES.get(name or array.dtype.name)
    if code is None:
        return array.__dlpack__(**kwargs)
    capsule = array.view(f"u{array.dtype.itemsize}").__dlpack__(**kwargs)
    place = _type_code(capsule)
    assert place is not None
    place.value = code
    return capsule


class Plain:
    """A producer of DLPack capsules with dtypes that NumPy supports."""

    def __init__(self, source: DLPackArray) -> None:
        self.source = source
        self.name = ""  # the dtype that the unsigned integers replace

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.source.__dlpack_device__()

    def __dlpack__(self, **kwargs: Unpack[DLPackOptions]) -> CapsuleType:
        capsule = self.source.__dlpack__(**kwargs)
        place = _type_code(capsule)
        if place is not None and place.value in _NAMES:
            self.name = _NAMES[place.value]
            place.value = _UINT
        return capsule


def from_dlpack(x: DLPackArray) -> np.ndarray:
    """Return a view of another library's array."""
    plain = Plain(x)
    value = np.from_dlpack(plain)
    if not plain.name:
        return value
    return value.view(ml_dtype(plain.name))


def ml_dtype(name: str) -> np.dtype:
    """Return a dtype of ml_dtypes."""
    import ml_dtypes  # loaded already; the pool itself does not need it

    return np.dtype(getattr(ml_dtypes, name))


def pool_stats() -> dict[str, int]:
    """Return the numbers of allocations and reuses, and the bytes in use, kept, and allowed."""
    with _pool.lock:
        kept_bytes = _pool.free_bytes
        return {
            "allocations": _pool.allocations,
            "reuses": _pool.reuses,
            "live_bytes": _pool.allocated_bytes - _pool.dropped - kept_bytes,
            "kept_bytes": kept_bytes,
            "limit_bytes": _pool.limit,
        }


def trim() -> int:
    """Free the unused blocks of the pool, except pieces of slabs; returns their bytes."""
    freed = sum([blocks.clear() for blocks in _pool.sizes() if blocks.size > SMALL])
    with _pool.lock:
        _pool.allocated_bytes -= freed
    return freed


def _follow_limit() -> None:
    limit = _limit()
    if limit != _pool.limit:
        _pool.limit = limit
        if _pool.free_bytes > limit:
            trim()


listeners.append(_follow_limit)
register_cache(
    "pool",
    "bytes of freed buffers, for reuse",
    "pool_max_bytes",
    lambda: _pool.free_bytes,
    lambda: _pool.dropped,
    trim,
    in_bytes=True,
)
