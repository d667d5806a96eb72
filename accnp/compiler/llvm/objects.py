"""Compile LLVM IR to object files with llvmlite.

The functions get the text of a module and of the modules to link with it, run LLVM's passes, and
return object files. `kernel_cache.py`, `background_compile.py` and `build_library.py` call them;
`elf_loader.py` loads the object files in this process, and in later ones from the cache on disk.
For files that it cannot load, it calls `link`, which uses LLVM's linker. This module is imported by
name on first use, since importing llvmlite takes 50 ms.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

import llvmlite.binding as llvm

from accnp.compiler.llvm.lock import apart, in_order
from accnp.compiler.llvm.private import free_passes
from accnp.compiler.object_files import join_object_files
from accnp.compiler.processor import TARGET, VECTOR_BYTES, WIDE
from accnp.compiler.worker_threads import at_work, in_parallel
from accnp.fast_exit import watch_exit
from accnp.forks import renewed

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
watch_exit()

_lock = renewed(threading.RLock())
_serial = itertools.count()
_TRIPLE = llvm.get_process_triple()
CPU = TARGET.tuning if TARGET else llvm.get_host_cpu_name()
_HOST = llvm.get_host_cpu_features()
if TARGET is not None:
    for _name in _HOST:
        _HOST[_name] = _name in TARGET.features
LANE_BYTES = VECTOR_BYTES  # size of the vectors in vector code; tests set 0 for scalar code
_VECTORS = "!accnp.vectors"
_LIBRARY = "!accnp.library"
_SIZED = "!accnp.sized"
_DRIVER = "!accnp.driver"
_NAME = re.compile(r'@"?([^"(),\s]+)')
_DEFINED = re.compile(r'^define [^@\n]*@"?([^"(]+)', re.MULTILINE)
# Some CPU models carry a tuning flag that keeps vectors at 256 bits.
FEATURES = _HOST.flatten() + (",-prefer-256-bit" if WIDE else "")
ENTRY_ATTRIBUTES = 'nounwind "prefer-vector-width"="512"' if WIDE else "nounwind"

# Relative addresses have 32 bits, or fewer on AArch64. `elf_loader.py` and JITLink keep a kernel in
# one piece of memory and add jumps to functions elsewhere. RuntimeDyld, which is used on Windows,
# adds jumps too, but has no substitute for data that is out of reach.
_CODE_MODEL = "large" if os.name == "nt" else "small"

_target = llvm.Target.from_triple(_TRIPLE)
_machines: dict[int, list[llvm.TargetMachine]] = {
    0: [],
    3: [],
}  # unused target machines, by optimization level
_jit: llvm.LLJIT | None = None


@contextlib.contextmanager
def _target_machine(level: int = 3) -> Generator[llvm.TargetMachine]:
    """Yield a target machine, for this thread alone, that generates code at a level of
    optimization. Unused machines are kept: creating one, with the setup in its first use, takes
    1.2 ms."""
    free = _machines[level]
    try:
        machine = free.pop()
    except IndexError:
        machine = _target.create_target_machine(
            cpu=CPU, features=FEATURES, opt=level, reloc="pic", codemodel=_CODE_MODEL, jit=False
        )
    try:
        yield machine
    finally:
        free.append(machine)


class Passes(NamedTuple):
    """The passes that a module needs, according to flags in its text."""

    vectors: bool  # all loops are vector code, so LLVM's loop passes are not needed
    library: bool  # a library kernel, which many kernels call
    sized: bool  # a tiny kernel whose sizes are constants
    level: int  # the optimization level of code generation

    def run(self, module: llvm.ModuleRef, machine: llvm.TargetMachine) -> llvm.ModuleRef:
        if self.vectors:
            return _run_vector_passes(module, machine, self.library, self.sized)
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization = True
        tuning.slp_vectorization = True
        tuning.loop_interleaving = True
        # Interleaved vector loops are long enough: unrolling costs compile time without a gain.
        tuning.loop_unrolling = False
        builder = llvm.create_pass_builder(machine, tuning)
        return _run_and_free(module, builder.getModulePassManager(), builder)


class Part(NamedTuple):
    """A module of an unoptimized kernel, as bitcode, and the passes that it still needs."""

    bitcode: bytes
    passes: Passes | None  # None: they have been run
    level: int


def is_vector_code(text: str, linked: Sequence[str]) -> bool:
    """Return whether all loops of a module, and of those that it needs, are vector code."""
    return all(_VECTORS in each for each in (text, *_called_modules(text, linked)))


def _link_modules(
    text: str, linked: Sequence[str], machine: llvm.TargetMachine, context: llvm.ContextRef
) -> tuple[llvm.ModuleRef, Passes]:
    """Return a module linked with the modules that it needs, before any pass, and its passes."""
    module = llvm.parse_assembly(text, context)
    module.triple = _TRIPLE
    module.data_layout = str(machine.target_data)
    others = _called_modules(text, linked)
    for other in others:
        module.link_in(llvm.parse_assembly(other, context))
    every = (text, *others)
    passes = Passes(
        vectors=all(_VECTORS in each for each in every),
        library=_LIBRARY in text,
        sized=any(_SIZED in each for each in every),
        # A kernel that only calls others has long lists of arguments. Allocating registers for them
        # takes LLVM a second (2,857 arguments in a physics step) and gains nothing.
        level=0 if _DRIVER in text else 3,
    )
    return module, passes


def _optimize(
    text: str,
    linked: Sequence[str],
    machine: llvm.TargetMachine,
    context: llvm.ContextRef | None = None,
) -> llvm.ModuleRef:
    module, passes = _link_modules(text, linked, machine, context or llvm.create_context())
    return passes.run(module, machine)


def _run_and_free(
    module: llvm.ModuleRef,
    passes: llvm.ModulePassManager | llvm.FunctionPassManager,
    builder: llvm.PassBuilder,
    parts: Sequence[llvm.ValueRef] = (),
) -> llvm.ModuleRef:
    """Run passes on a module or on parts of it, and free them."""
    for each in parts or (module,):
        passes.run(each, builder)
    free_passes(passes)
    return module


def _called_modules(text: str, linked: Sequence[str]) -> list[str]:
    """Return the modules that define a name used by a text, or by an earlier one of them."""
    modules: list[str] = []
    names = _names_in(text)
    for other in linked:
        if not names.isdisjoint(_defined_in(other)):
            modules.append(other)
            names = names | _names_in(other)
    return modules


@functools.lru_cache(256)
def _names_in(text: str) -> frozenset[str]:
    """Return the global names in a module's text."""
    return frozenset(_NAME.findall(text))


@functools.lru_cache(256)
def _defined_in(text: str) -> tuple[str, ...]:
    """Return the names of the functions that a module's text defines."""
    return tuple(_DEFINED.findall(text))


def _run_vector_passes(
    module: llvm.ModuleRef, machine: llvm.TargetMachine, often: bool, tiny: bool
) -> llvm.ModuleRef:
    """Run the passes that vector code needs, without LLVM's loop passes, which take most time.

    Library kernels get two more passes, which make matrix products 5 % faster; other kernels gain
    nothing from them. Tiny kernels of constant sizes get LLVM's function passes, which hoist common
    work out of loops or unroll them (n-body with 5 bodies: 30 instead of 37 us).
    """
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()  # again: inlined kernels took arguments by pointer
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_simplify_cfg_pass()
    if often:
        passes.add_new_gvn_pass()
        passes.add_instruction_combine_pass()
    _run_and_free(module, passes, builder)
    if tiny:
        parts = [f for f in module.functions if not f.is_declaration]
        _run_and_free(module, builder.getFunctionPassManager(), builder, parts)
    return module


def build(text: str, linked: Sequence[str], separate: Sequence[str] = ()) -> bytes:
    """Return object files of a module, linked with others, and of the `separate` modules.

    Threads compile the separate modules at the same time: LLVM does not hold the interpreter lock.
    """
    texts = [text, *separate]
    images: list[bytes] = [b""] * len(texts)

    @in_order
    def one(i: int) -> None:
        with at_work, apart, _target_machine() as machine:
            # Each thread has its own context as well.
            module, passes = _link_modules(texts[i], linked, machine, llvm.create_context())
            module = passes.run(module, machine)
            images[i] = _emit(module, passes.level)

    in_parallel([functools.partial(one, i) for i in range(len(texts))])
    return join_object_files(images)


def _emit(module: llvm.ModuleRef, level: int) -> bytes:
    with _target_machine(level) as machine:
        return machine.emit_object(module)


def build_unoptimized(
    text: str, linked: Sequence[str], separate: Sequence[str], around: str
) -> tuple[bytes, list[Part]]:
    """Return object files from unoptimized code generation, and the modules for `build_optimized`.

    The text `around` is linked to the first module. If there are several modules, only the passes
    that code generation needs have been run on them.
    """
    texts = [text, *separate]
    objects: list[bytes] = [b""] * len(texts)
    parts: dict[int, Part] = {}

    @in_order
    def one(i: int) -> None:
        context = llvm.create_context()
        with at_work, apart, _target_machine() as machine:
            module, passes = _link_modules(texts[i], linked, machine, context)
            if separate:
                parts[i] = Part(module.as_bitcode(), passes, passes.level)
                module = _run_vector_passes(module, machine, often=False, tiny=False)
            else:
                module = passes.run(module, machine)
                parts[i] = Part(module.as_bitcode(), None, passes.level)
            if i == 0:
                module.link_in(llvm.parse_assembly(around, context))
            objects[i] = _emit(module, 0)

    in_parallel([functools.partial(one, i) for i in range(len(texts))])
    return join_object_files(objects), [parts[i] for i in range(len(texts))]


@in_order
def build_optimized(parts: Sequence[Part]) -> bytes:
    """Return the object files of optimized modules, as `build` does."""
    images: list[bytes] = []
    for bitcode, passes, level in parts:
        with at_work, apart, _target_machine() as machine:
            module = llvm.parse_bitcode(bitcode, llvm.create_context())
            if passes is not None:
                module = passes.run(module, machine)
            images.append(_emit(module, level))
    return join_object_files(images)


@in_order
def show_llvm(text: str, linked: Sequence[str], separate: Sequence[str] = ()) -> str:
    """Return the optimized module as text."""
    with _target_machine() as machine:
        return str(_optimize(text, [*separate, *linked], machine))


@in_order
def show_assembly(text: str, linked: Sequence[str], separate: Sequence[str] = ()) -> str:
    """Return the machine code as assembly text."""
    with _target_machine() as machine:
        return machine.emit_assembly(_optimize(text, [*separate, *linked], machine))


def link(
    images: Sequence[bytes], outer: Mapping[str, int], symbols: Sequence[str]
) -> tuple[list[int], object]:
    """Load object files with LLVM's linker. Return the addresses of the symbols, and an object that
    keeps the code in memory."""
    global _jit
    with _lock:
        if _jit is None:
            # The other linker, RuntimeDyld, maps sections far apart, where relative addresses of
            # AArch64 do not reach (numba#9001). JITLink does not support Windows completely.
            _jit = llvm.create_lljit_compiler(use_jit_link=os.name != "nt")
        builder = llvm.JITLibraryBuilder()
        for image in images:
            builder.add_object_img(image)
        builder.add_current_process()
        for symbol, address in outer.items():
            builder.import_symbol(symbol, address)
        for symbol in symbols:
            builder.export_symbol(symbol)
        tracker = builder.link(_jit, f"accnp{next(_serial)}")
        return [tracker[symbol] for symbol in symbols], tracker
