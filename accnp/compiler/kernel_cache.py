"""Get machine code for kernels, from this process, the disk, the package or the compiler.

The input is the source of a kernel and its signature, or a kernel of the loop IR; the output is a
`Kernel`, which can be called. The engine calls `get_kernel` for the steps of its plans. llvmlite is
imported by name when it is first needed, and so is Numba, which compiles users' functions that the
front end does not accept, and all kernels with `ACCNP_COMPILER=numba`.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

from accnp._native import launch_held, launch_released
from accnp.address_space import has_room, is_shortage, make_shortage_error
from accnp.caches import BoundedCache, register_cache
from accnp.compiler.cache_state import compile_locks, counters, disk_cache
from accnp.compiler.external_symbols import install_finders
from accnp.config import config
from accnp.forks import collection_paused, renewed, run_uninterrupted
from accnp.lazy_imports import imported

ENTRY = "accnp_entry"  # as `compiler.llvm.entry` names it
Callees = tuple[tuple[str, tuple[str, ...]], ...]
Programs = Mapping[str, "LoopKernel"]
_NONE: Programs = {}
_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class FirstTier(enum.IntEnum):
    """When a kernel starts in the first of two tiers (see `background_compile.py`)."""

    NEVER = 0
    VECTORS = 1  # if all its loops are vector code
    ALWAYS = 2


class CompileError(RuntimeError):
    """The source of a kernel cannot be compiled; the message contains it."""


class Kernel:
    """Machine code of one kernel. `origin` is "compiled", "disk", or "prebuilt" (in the package).

    `call(n, chunk, *arguments)` runs 0..n on this thread; the arguments are integers, one for each
    token of the signature. `call_brief` does the same without releasing the interpreter lock.
    """

    __slots__ = (
        "__weakref__", "_code", "_entry", "address", "call", "call_brief", "callees", "fastmath",
        "name", "origin", "program", "programs", "seconds", "signature", "source",
    )  # fmt: skip

    def __init__(
        self,
        source: str,
        name: str,
        signature: tuple[str, ...],
        fastmath: bool,
        callees: Callees,
        origin: str,
        address: int,
        code: object,
        program: LoopKernel | None = None,
        programs: Programs = _NONE,
    ) -> None:
        self.source = source
        self.name = name
        self.signature = signature
        self.callees = callees
        self.program = program
        self.programs = programs
        self.fastmath = fastmath
        self.origin = origin
        self.seconds = 0.0  # spent on compiling or loading it
        self.address = address
        self._code: tuple[object, ...] = ()
        self.place(address, code)

    def place(self, address: int, code: object) -> None:
        """Use the code at an address for later launches."""
        self._code = (code, *self._code)  # running calls may still execute the earlier code
        self._entry = _Entry(address)
        self.call = functools.partial(launch_released, address)
        self.call_brief = functools.partial(launch_held, address)
        self.address = address

    def run(self, argv: ctypes.Array[ctypes.c_int64], n: int, chunk: int) -> None:
        """Run 0..n on this thread with a packed argument block."""
        counters.launched()
        counter = ctypes.c_int64(0)
        self._entry(ctypes.addressof(argv), ctypes.addressof(counter), n, chunk)

    def llvm(self) -> str:
        """Return the optimized LLVM IR, which is generated again for this."""
        return _objects().show_llvm(*self._lower())

    def assembly(self) -> str:
        """Return the assembly text, which is generated again for this."""
        return _objects().show_assembly(*self._lower())

    def _lower(self) -> tuple[str, list[str], list[str]]:
        return lower(
            self.source,
            self.name,
            self.signature,
            self.fastmath,
            self.callees,
            self.program,
            self.programs,
        )

    def __repr__(self) -> str:
        return f"Kernel({self.name}, {', '.join(self.signature)}, origin={self.origin})"


def pack(arguments: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Return the argument block of a kernel, from addresses and integers."""
    return (ctypes.c_int64 * len(arguments))(*arguments)


if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.compiler.disk_cache import DiskCache
    from accnp.compiler.llvm.objects import Part
    from accnp.compiler.loops.ir import Kernel as LoopKernel
    from accnp.compiler.pipeline import Target

    # The word for the address of the optimized code, its modules, and its place on disk.
    _Upgrade = tuple[int, list[Part], DiskCache | None, str]

_Key = tuple["Hashable", ...]  # all that the code of a kernel depends on
_kernels: BoundedCache[_Key, Kernel] = BoundedCache("kernel_cache_size")
# All kernels that exist: plans may need one that the cache has evicted.
_alive: weakref.WeakValueDictionary[_Key, Kernel] = weakref.WeakValueDictionary()
_lock = renewed(threading.RLock())


def get_kernel(
    source: str,
    name: str,
    signature: tuple[str, ...],
    *,
    fastmath: bool = False,
    callees: Callees = (),
    first_tier: FirstTier = FirstTier.NEVER,
    program: LoopKernel | None = None,
    programs: Programs = _NONE,
) -> Kernel:
    """Return the kernel of a source text, from the process, the disk or the compiler.

    `callees` are other kernels in the source that this one calls, with their signatures.
    `first_tier` says in which tier a kernel starts that must be compiled.
    With a `program`, a kernel of the loop IR, the source is its text; `programs` are the same for
    callees, by name.
    """
    key = (source, name, signature, fastmath, callees)
    kernel = _known_kernel(key)
    if kernel is not None:
        counters.memory_hits += 1
        return kernel
    with _lock:
        making = compile_locks.setdefault(key, threading.RLock())
    try:
        with making:  # threads compile different kernels at the same time, but each kernel once
            kernel = _known_kernel(key)
            if kernel is None:
                try:
                    kernel = _make(
                        source, name, signature, fastmath, callees, first_tier, program, programs
                    )
                except (CompileError, MemoryError, OSError) as error:
                    if is_shortage(error) and not (type(error) is MemoryError and error.args):
                        require_room(error)
                    raise
                _alive[key] = kernel
                _kernels.store(key, kernel)
            return kernel
    finally:
        compile_locks.pop(key, None)


def _known_kernel(key: _Key) -> Kernel | None:
    kernel = _kernels.get(key) or _kernels.recall(key)
    if kernel is None:
        kernel = _alive.get(key)
        if kernel is not None:
            _kernels.store(key, kernel)
    return kernel


def find_kernel(
    source: str,
    name: str,
    signature: tuple[str, ...],
    *,
    fastmath: bool = False,
    callees: Callees = (),
) -> tuple[Kernel | None, bool]:
    """Return the kernel of a source text if this process has it, and whether the disk has it."""
    kernel = _known_kernel((source, name, signature, fastmath, callees))
    disk = disk_cache()
    if disk is None or config.compiler == "numba":  # whose kernels are not stored
        return kernel, False
    identity = identity_of(source, name, signature, fastmath, callees)
    path = disk.path(disk.key(identity, _stamp()))
    return kernel, os.path.exists(path)


def show_kernel(
    source: str,
    name: str,
    signature: tuple[str, ...],
    *,
    fastmath: bool = False,
    callees: Callees = (),
    program: LoopKernel | None = None,
    programs: Programs = _NONE,
    what: str,
) -> str:
    """Return the optimized LLVM IR ("llvm") or the assembly ("assembly") of a source text.

    `program` and `programs` are those of `get_kernel`. No cache changes.
    """
    lowered = lower(source, name, signature, fastmath, callees, program, programs)
    return getattr(_objects(), f"show_{what}")(*lowered)


def identity_of(
    source: str,
    name: str,
    signature: tuple[str, ...],
    fastmath: bool = False,
    callees: Callees = (),
) -> tuple[str, ...]:
    """Return the identity of a kernel, which is part of its key on disk; the source comes last."""
    called = [f"{callee}({','.join(its)})" for callee, its in callees]
    return (name, ",".join(signature), str(fastmath), *called, source)


def clear_kernels() -> None:
    """Remove all kernels from the caches in memory. Later calls load them from disk again; existing
    plans keep theirs."""
    wait_for_background()
    with _lock:
        _kernels.clear()
        _alive.clear()


register_cache(
    "kernels",
    "machine code; code that plans need is kept",
    "kernel_cache_size",
    lambda: len(_alive),
    lambda: _kernels.evicted,
    _kernels.clear,
)


def _make(
    source: str,
    name: str,
    signature: tuple[str, ...],
    fastmath: bool,
    callees: Callees,
    first_tier: FirstTier,
    program: LoopKernel | None,
    programs: Programs,
) -> Kernel:
    begin = time.perf_counter()
    upgrades: list[_Upgrade] = []
    identity = identity_of(source, name, signature, fastmath, callees)
    if config.compiler == "numba":
        plain = None if callees or _calls_users(source) else program
        (address,), code, origin = _lower_with_numba(
            source, name, signature, fastmath, callees, plain
        )
    else:
        (address,), code, origin = _native(
            identity,
            lambda: lower(source, name, signature, fastmath, callees, program, programs),
            (ENTRY,),
            upgrades=upgrades,
            first_tier=first_tier,
        )
    if origin == "disk":
        counters.disk_hits += 1
    elif origin == "compiled":
        counters.compiles += 1
    kernel = Kernel(
        source, name, signature, fastmath, callees, origin, address, code, program, programs
    )
    kernel.seconds = time.perf_counter() - begin
    counters.seconds += kernel.seconds
    if config.debug:
        where = {"disk": "read from disk", "prebuilt": "read from the package"}.get(origin, origin)
        tier = ", in the first tier" if upgrades else ""
        arguments, ms = ", ".join(signature), kernel.seconds * 1e3
        counters.event(origin, name, f"{where} in {ms:.1f} ms, for ({arguments}){tier}")
    for upgrade in upgrades:
        _background_compile().optimize_later(kernel, *upgrade)
    return kernel


def _native(
    identity: tuple[str, ...],
    lower: Callable[[], tuple[str, list[str], list[str]]],
    symbols: tuple[str, ...],
    stored: bool = True,
    upgrades: list[_Upgrade] | None = None,
    first_tier: FirstTier = FirstTier.NEVER,
) -> tuple[list[int], object, str]:
    """Return the addresses of symbols, an object that keeps the code loaded, and the origin.

    If the code is of the first tier, the data for its optimization is appended to `upgrades`.
    """
    loader = _elf_loader()
    disk = disk_cache() if stored else None
    data = imported("accnp.compiler.library.prebuilt").find(identity, disk) if stored else None
    if data is not None:
        with contextlib.suppress(RuntimeError):  # the file is damaged
            return *loader.load(data, *symbols, kernel=identity[0]), "prebuilt"
    key = ""
    if disk is not None:
        key = disk.key(identity, _stamp())
        data = disk.get(key)
        if data is not None:
            try:
                return *loader.load(data, *symbols, kernel=identity[0]), "disk"
            except RuntimeError:
                disk.drop(key)
    require_room()
    with collection_paused:
        lowered = run_uninterrupted(lower)  # an interrupt must not leave incomplete typing contexts
    try:
        if upgrades is not None and _starts_in_first_tier(first_tier, *lowered[:2]):
            addresses, code, parts = _background_compile().compile_first(
                *lowered, kernel=identity[0]
            )
            upgrades.append((addresses.pop(), parts, disk, key))
            return addresses, code, "compiled"
        data = _objects().build(*lowered)
        loaded = loader.load(data, *symbols, kernel=identity[0])
    except RuntimeError as error:
        # LLVM rejects the text, or the code calls a function that no loaded library has.
        raise CompileError(
            f"get_kernel: LLVM cannot build {identity[0]}: {error}\nsource:\n{identity[-1]}"
        ) from error
    if disk is not None:
        disk.put(key, data)
    return *loaded, "compiled"


# Address space for compiling a kernel: LLVM ends the process if it gets no memory. The largest
# kernel of the tests takes 40 MB (x86-64, LLVM 20, 2026-11).
_ROOM = 64 << 20


def require_room(error: BaseException | None = None) -> None:
    """Raise MemoryError if memory is too short to load the compiler and compile a kernel, or if
    `error` was raised for lack of memory."""
    need = _ROOM
    if "llvmlite.binding" not in sys.modules:
        need += _size_of_llvm()
    if is_shortage(error) or not has_room(need):
        what = "get_kernel: not enough memory to compile a kernel"
        raise make_shortage_error(what, need) from error


def _size_of_llvm() -> int:
    spec = PathFinder.find_spec("llvmlite")
    for place in (spec and spec.submodule_search_locations) or ():
        with contextlib.suppress(OSError), os.scandir(os.path.join(place, "binding")) as files:
            return max([f.stat().st_size for f in files], default=0)
    return 0


def _starts_in_first_tier(first_tier: FirstTier, text: str, linked: list[str]) -> bool:
    if first_tier is FirstTier.NEVER or not _background_compile().has_room():
        return False
    return first_tier is FirstTier.ALWAYS or _objects().is_vector_code(text, linked)


def wait_for_background(kernel: Kernel | None = None) -> None:
    """Return when all kernels, or one, have their optimized code (see `background_compile.py`):
    before they are timed, or run for long."""
    if "accnp.compiler.background_compile" in sys.modules:
        _background_compile().finish(kernel)


def native_code(
    identity: tuple[str, ...], text: str, symbols: tuple[str, ...]
) -> tuple[list[int], object]:
    """Return the addresses of symbols of a text of LLVM IR, and an object that keeps the code."""
    return _native(identity, lambda: (text, [], []), symbols)[:2]


def lower(
    source: str,
    name: str,
    signature: tuple[str, ...],
    fastmath: bool = False,
    callees: Callees = (),
    program: LoopKernel | None = None,
    programs: Programs = _NONE,
) -> tuple[str, list[str], list[str]]:
    """Return the LLVM IR of a kernel: its module, modules to link, and modules to compile alone."""
    try:
        if program is not None and not callees:
            return _lowered_program(program, source, fastmath)
        known = programs if program is None else {**programs, name: program}
        return _lowered_source(source, name, signature, callees, fastmath, known)
    except ValueError:
        raise
    except Exception as error:
        raise _make_compile_error(source, name, signature, error) from error


def _make_compile_error(
    source: str, name: str, signature: tuple[str, ...], error: Exception
) -> CompileError:
    line: int | None = getattr(error, "line", None)
    where = "" if line is None else f", at line {line}: {source.splitlines()[line - 1].strip()!r}"
    return CompileError(
        f"get_kernel: {name} does not compile: {type(error).__name__}: {error}{where}\n"
        f"signature: {', '.join(signature)}\nsource:\n{source}"
    )


def _target(fastmath: bool) -> Target:
    """Return the target of kernels. LLVM vectorizes fast kernels, in which it may reorder sums."""
    bytes_of_vectors = 0 if fastmath else _objects().LANE_BYTES
    return imported("accnp.compiler.pipeline").Target(bytes_of_vectors, fastmath)


def _lowered_source(
    source: str, name: str, signature: tuple[str, ...], callees: Callees, fastmath: bool,
    programs: Programs,
) -> tuple[str, list[str], list[str]]:  # fmt: skip
    """Return the LLVM texts of a source in restricted Python. Some of its kernels exist as loop
    IR."""
    return imported("accnp.compiler.frontend.program").lower_source(
        source, name, signature, callees, _target(fastmath), _objects().ENTRY_ATTRIBUTES,
        config.enable_checks, programs,
    )  # fmt: skip


def _lowered_program(
    program: LoopKernel, source: str, fastmath: bool
) -> tuple[str, list[str], list[str]]:
    """Return the LLVM texts of a kernel of the loop IR that calls no other kernel."""
    if _calls_users(source):
        program = imported("accnp.compiler.frontend.users").write_users_functions(program)
    target = _target(fastmath)
    run_passes = imported("accnp.compiler.pipeline").run_passes
    done = run_passes(program, target, check=config.enable_checks)
    write_function = imported("accnp.compiler.llvm.lower").write_function
    function = write_function(done, target.vector_bytes, fastmath)
    return function.text(_objects().ENTRY_ATTRIBUTES), [*function.linked], []


def _calls_users(source: str) -> bool:
    """Return whether a kernel calls users' functions, which its source does not define."""
    definitions = imported("accnp.compiler.user_definitions")
    return definitions.with_definitions(source) != source


def _lower_with_numba(
    source: str,
    name: str,
    signature: tuple[str, ...],
    fastmath: bool,
    callees: Callees,
    program: LoopKernel | None,
) -> tuple[list[int], object, str]:
    """Compile a kernel through Numba's public API, without the disk; returns as `_native`."""
    numba = imported("accnp.compiler.numba.compile")

    def make() -> tuple[int, object]:
        if program is None:
            reprint = imported("accnp.compiler.frontend.reprint").reprint
            text, shared = reprint(source, name, signature, callees, to_compile=True)
        else:
            numba_source = imported("accnp.compiler.numba.source").numba_source
            text, shared = numba_source(program, to_compile=True), ()
        # Not while Numba compiles: another thread may compile the same one, and wait for Numba.
        for called in imported("accnp.compiler.library.addresses").find_library_calls(text) - {
            name
        }:
            library_kernel(called)
        return numba.compile_source(
            text, name, signature, enter_function, callees, shared, fastmath
        )

    try:
        address, code = run_uninterrupted(make)
    except ValueError:
        raise
    except Exception as error:
        raise _make_compile_error(source, name, signature, error) from error
    return [address], code, "compiled"


def enter_function(address: int, signature: Sequence[str]) -> tuple[int, object]:
    """Return the address of an entry of a loaded function, and an object that keeps it."""
    text = imported("accnp.compiler.llvm.entry").entry_at(address, signature)
    (entry,), code, _ = _native(("kernel", text), lambda: (text, [], []), (ENTRY,), stored=False)
    return entry, code


def library_kernel(name: str) -> Kernel:
    """Return a library kernel."""
    library = imported("accnp.compiler.library.library")
    source = library.source(name, imported("accnp.compiler.processor").VECTOR_BYTES)
    return get_kernel(source, name, library.SIGNATURES[name])


def _find_symbols(data: bytes) -> tuple[dict[str, int], list[Kernel]]:
    """Return the addresses of the symbols in an object file, and the kernels that must stay loaded
    for them."""
    return imported("accnp.compiler.library.addresses").resolve_symbols(data, library_kernel)


_called: list[object] = []  # code of other modules that kernels call is never freed


def address_of(symbol: str) -> int | None:
    """Return the address of what a kernel calls outside of its own code: library kernels, LAPACK,
    NumPy's sorts, and users' functions that Numba has compiled. None if a symbol is unknown."""
    modules = imported("accnp.compiler.llvm.intrinsics.linked").linked_modules([symbol])
    if modules:
        # LLVM drops definitions with linkonce_odr that nothing refers to, so make them external.
        text = modules[0].replace("define linkonce_odr ", "define ")
        (address,), code = native_code((symbol, text), text, (symbol,))
        _called.append(code)
        return address
    addresses, kernels = _find_symbols(symbol.encode() + b"\0")  # as tables of symbols
    _called.append(kernels)
    return addresses.get(symbol)


install_finders(_find_symbols, address_of)


def _stamp() -> str:
    return imported("accnp.compiler.processor").STAMP


def _elf_loader() -> ModuleType:
    return imported("accnp.compiler.elf_loader")


def _background_compile() -> ModuleType:
    return imported("accnp.compiler.background_compile")


def _objects() -> ModuleType:
    return imported("accnp.compiler.llvm.objects")
