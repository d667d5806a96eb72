"""LLVM text to machine code, by llvmlite alone: IR comes in, object files go out.

Fresh and cached ones are loaded by `loader.py`. This module is loaded by name on first use.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from accnp.forks import renewed
from accnp.runtime.fast_exit import watch_exit
from accnp.runtime.helpers import at_work, in_parallel
from accnp.runtime.llvm_lock import apart, in_order
from accnp.runtime.loader import framed
from accnp.runtime.machine import TARGET, VECTOR_BYTES, WIDE

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
LANE_BYTES = VECTOR_BYTES  # of the vectors that `lanes` writes; 0 in tests: none
_VECTORS = "!accnp.vectors"
_LIBRARY = "!accnp.library"
_SIZED = "!accnp.sized"
_DRIVER = "!accnp.driver"
_NAME = re.compile(r'@"?([^"(),\s]+)')
_DEFINED = re.compile(r'^define [^@\n]*@"?([^"(]+)', re.MULTILINE)
# Some CPU models carry a tuning flag that keeps vectors at 256 bits.
FEATURES = _HOST.flatten() + (",-prefer-256-bit" if WIDE else "")
ENTRY_ATTRIBUTES = 'nounwind "prefer-vector-width"="512"' if WIDE else "nounwind"

_target = llvm.Target.from_triple(_TRIPLE)
_machines: dict[int, list[Any]] = {0: [], 3: []}  # target machines that are not in use
_jit: Any = None


@contextlib.contextmanager
def _target_machine(level: int = 3) -> Iterator[Any]:
    """A target machine for one thread, which generates code at a level; a new one costs 1.2 ms with
    what its first use sets up."""
    free = _machines[level]
    try:
        machine = free.pop()
    except IndexError:
        machine = _target.create_target_machine(
            cpu=CPU, features=FEATURES, opt=level, reloc="pic", codemodel="small", jit=False
        )
    try:
        yield machine
    finally:
        free.append(machine)


class Passes(NamedTuple):
    """Which passes a module needs, as its text says."""

    vectors: bool  # all its loops are vectors: none of LLVM's work on loops
    library: bool  # many kernels call it
    sized: bool  # a tiny kernel that knows its sizes
    level: int  # at which machine code is generated

    def run(self, module: Any, machine: Any) -> Any:
        if self.vectors:
            return _tidied(module, machine, self.library, self.sized)
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization = True
        tuning.slp_vectorization = True
        tuning.loop_interleaving = True
        # What the vectoriser interleaves is long enough: unrolling costs time and gains none.
        tuning.loop_unrolling = False
        builder = llvm.create_pass_builder(machine, tuning)
        return _passed(module, builder.getModulePassManager(), builder)


class Part(NamedTuple):
    """A module in its first tier: as bitcode, and what is still to be done with it."""

    bitcode: bytes
    passes: Passes | None  # None: they have been run
    level: int


def _linked(text: str, linked: Sequence[str], machine: Any, context: Any) -> tuple[Any, Passes]:
    """A module with those that it needs, before any pass."""
    module = llvm.parse_assembly(text, context)
    module.triple = _TRIPLE
    module.data_layout = str(machine.target_data)
    others = _called(text, linked)
    for other in others:
        module.link_in(llvm.parse_assembly(other, context))
    every = (text, *others)
    passes = Passes(
        vectors=all(_VECTORS in each for each in every),
        library=_LIBRARY in text,
        sized=any(_SIZED in each for each in every),
        # What only calls others is a long list of arguments, which takes LLVM a second (of 2,857,
        # in a physics step) to allocate registers for, and nothing is gained.
        level=0 if _DRIVER in text else 3,
    )
    return module, passes


def _optimised(text: str, linked: Sequence[str], machine: Any, context: Any = None) -> Any:
    module, passes = _linked(text, linked, machine, context or llvm.create_context())
    return passes.run(module, machine)


def _passed(module: Any, passes: Any, builder: Any, parts: Sequence[Any] = ()) -> Any:
    """The module, or parts of it, after passes, which are given back: llvmlite 0.50 keeps them, 0.3
    MB for those of the second level, since the first `_dispose` among the bases of their class does
    nothing."""
    for each in parts or (module,):
        passes.run(each, builder)
    kind = next(k for k in type(passes).__mro__ if k is not ffi.ObjectRef and "_dispose" in vars(k))
    vars(kind)["_dispose"](passes)
    passes.detach()
    return module


def _called(text: str, linked: Sequence[str]) -> list[str]:
    """Those of the modules that define what a text, or one of them before, refers to."""
    found: list[str] = []
    names = _names_in(text)
    for other in linked:
        if not names.isdisjoint(_defined_in(other)):
            found.append(other)
            names = names | _names_in(other)
    return found


@functools.lru_cache(256)
def _names_in(text: str) -> frozenset[str]:
    """The global names that a module's text has."""
    return frozenset(_NAME.findall(text))


@functools.lru_cache(256)
def _defined_in(text: str) -> tuple[str, ...]:
    """The functions that a module's text defines."""
    return tuple(_DEFINED.findall(text))


def _tidied(module: Any, machine: Any, often: bool, tiny: bool) -> Any:
    """What code with vectors needs: none of LLVM's work on loops, which is most of the other.

    A kernel that many others call is worth two more passes: products 5 % faster, elsewhere nothing.
    Tiny kernels, whose sizes it knows, are worth LLVM's passes for functions: what loops have in
    common is done before them, or they are written out (n-body of 5 bodies, 37 -> 30 us).
    """
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()  # also of what inlined kernels take by pointer
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_simplify_cfg_pass()
    if often:
        passes.add_new_gvn_pass()
        passes.add_instruction_combine_pass()
    _passed(module, passes, builder)
    if tiny:
        parts = [f for f in module.functions if not f.is_declaration]
        _passed(module, builder.getFunctionPassManager(), builder, parts)
    return module


def build(text: str, linked: Sequence[str], separate: Sequence[str] = ()) -> bytes:
    """Object files of a module, linked with others, and of those compiled on their own.

    The latter are compiled at the same time by other threads: LLVM leaves the interpreter alone.
    """
    texts = [text, *separate]
    found: list[bytes] = [b""] * len(texts)

    @in_order
    def one(i: int) -> None:
        with at_work, apart, _target_machine() as machine:
            # A context for each thread, too.
            module, passes = _linked(texts[i], linked, machine, llvm.create_context())
            module = passes.run(module, machine)
            found[i] = _emitted(module, passes.level)

    in_parallel([functools.partial(one, i) for i in range(len(texts))])
    return framed(found)


def _emitted(module: Any, level: int) -> bytes:
    with _target_machine(level) as machine:
        return machine.emit_object(module)


def quick(
    text: str, linked: Sequence[str], separate: Sequence[str], around: str
) -> tuple[bytes, list[Part]]:
    """Object files as the code generator writes them without optimizing, the first with what
    stands `around` its module; and the modules, for `whole`. Those of a kernel of several modules
    have only the passes that generating code needs."""
    texts = [text, *separate]
    objects: list[bytes] = [b""] * len(texts)
    parts: dict[int, Part] = {}

    @in_order
    def one(i: int) -> None:
        context = llvm.create_context()
        with at_work, apart, _target_machine() as machine:
            module, passes = _linked(texts[i], linked, machine, context)
            if separate:
                parts[i] = Part(module.as_bitcode(), passes, passes.level)
                module = _tidied(module, machine, often=False, tiny=False)
            else:
                module = passes.run(module, machine)
                parts[i] = Part(module.as_bitcode(), None, passes.level)
            if i == 0:
                module.link_in(llvm.parse_assembly(around, context))
            objects[i] = _emitted(module, 0)

    in_parallel([functools.partial(one, i) for i in range(len(texts))])
    return framed(objects), [parts[i] for i in range(len(texts))]


@in_order
def whole(parts: Sequence[Part]) -> bytes:
    """The object files of optimized modules, like `build`'s."""
    found = []
    for bitcode, passes, level in parts:
        with at_work, apart, _target_machine() as machine:
            module = llvm.parse_bitcode(bitcode, llvm.create_context())
            if passes is not None:
                module = passes.run(module, machine)
            found.append(_emitted(module, level))
    return framed(found)


@in_order
def show_llvm(text: str, linked: Sequence[str], separate: Sequence[str] = ()) -> str:
    """The optimized module as text."""
    with _target_machine() as machine:
        return str(_optimised(text, [*separate, *linked], machine))


@in_order
def show_assembly(text: str, linked: Sequence[str], separate: Sequence[str] = ()) -> str:
    """The machine code as assembly text."""
    with _target_machine() as machine:
        return machine.emit_assembly(_optimised(text, [*separate, *linked], machine))


def link(
    images: Sequence[bytes], outer: Mapping[str, int], symbols: Sequence[str]
) -> tuple[list[int], Any]:
    """Load object files by LLVM's linker; addresses of symbols, and what keeps the code mapped."""
    global _jit
    with _lock:
        if _jit is None:
            _jit = llvm.create_lljit_compiler()
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
