"""Numba as the front end of kernels for GPUs: what `ptx_text.py` needs of it.

It stops Numba after lowering: nothing is optimized, wrapped or loaded by Numba. It is loaded by
name, on the first kernel for a GPU that no cache holds. Kernels of the processor have the front end
in `compiler/frontend`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import types as pytypes
from collections.abc import Iterator, Mapping
from typing import Any

import numba
from llvmlite import ir as llvmir
from numba.core import compiler, ir, registry, types
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import AnalysisPass, PassManager, register_pass
from numba.core.cpu_options import FastMathOptions
from numba.core.errors import NumbaError
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode
from numba.misc.llvm_pass_timings import PassTimingsCollection

from accnp.compiler.frontend.program import Callees
from accnp.compiler.frontend.syntax import functions_of
from accnp.compiler.numba.lean import TARGET, TYPING
from accnp.forks import collection_paused, imported, renewed

# Not nnan, ninf: fast kernels may reorder and fuse, but NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}


class TextLibrary(CPUCodeLibrary):
    """Collects what Numba lowers instead of optimizing and loading it."""

    def __init__(self, codegen: Any, name: str) -> None:
        self._codegen = codegen
        self._name = name
        self._linking_libraries = []
        self._finalized = False
        self._object_caching_enabled = False
        self._reload_init = set()
        self._dynamic_globals = []
        self._recorded_timings = PassTimingsCollection(name)
        self.modules: list[llvmir.Module] = []
        self.texts: dict[str, str] = {}  # of functions of users, by symbol

    def add_ir_module(self, ir_module: llvmir.Module) -> None:
        self.modules.append(ir_module)

    def add_linking_library(self, library: CPUCodeLibrary) -> None:
        library._ensure_finalized()
        self._linking_libraries.append(library)

    def linked(self) -> list[str]:
        """Text of the modules of functions called that Numba compiled on their own."""
        found: dict[str, CPUCodeLibrary] = {}

        def visit(library: CPUCodeLibrary) -> None:
            if library.name not in found and library.name != "nrt":
                found[library.name] = library
                for other in library._linking_libraries:
                    visit(other)

        for library in self._linking_libraries:
            visit(library)
        whole = [str(library._get_module_for_linking()) for library in found.values()]
        return [*self.texts.values(), *whole]


class _NeedsSSAError(Exception):
    """A name holds values of several types, which Numba would silently unify."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _OneTypePerName(AnalysisPass):
    """Stop where a name was given a wider type than that of a value stored in it."""

    _name = "accnp_one_type_per_name"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for assign in block.find_insts(ir.Assign):
                value = assign.value
                if isinstance(value, ir.Var):
                    kind = state.typemap[value.name]
                elif isinstance(value, ir.Const):
                    kind = state.typingctx.resolve_value_type(value.value)
                elif isinstance(value, ir.Expr) and value in state.calltypes:
                    signature = state.calltypes[value]
                    kind = getattr(signature, "return_type", None)
                else:
                    continue
                if not isinstance(kind, types.Number | types.Boolean | types.Literal):
                    continue
                if types.unliteral(kind) != types.unliteral(state.typemap[assign.target.name]):
                    raise _NeedsSSAError(assign.target.name)
        return False


class _Compiler(compiler.CompilerBase):
    """The few passes that a kernel needs."""

    needs_ssa = False
    # Where names end matters to counted objects only; leaving it out saves 2.7 ms of 21.
    frees_names = False

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("accnp")
        manager.add_pass(TranslateByteCode, "bytecode")
        manager.add_pass(FixupArgs, "arguments")
        manager.add_pass(IRProcessing, "processing")
        if self.needs_ssa:
            manager.add_pass(ReconstructSSA, "ssa")
        manager.add_pass(NopythonTypeInference, "types")
        if self.needs_ssa:
            manager.add_pass(PreLowerStripPhis, "phis")
        else:
            manager.add_pass(_OneTypePerName, "one type per name")
        if self.frees_names:
            manager.add_pass(IRLegalization, "legal")
        manager.add_pass(NativeLowering, "lowering")
        manager.add_pass(NoPythonBackend, "backend")
        manager.finalize()
        return [manager]


class _SSACompiler(_Compiler):
    needs_ssa = True


class _FullCompiler(_SSACompiler):
    frees_names = True


def _flags(fastmath: bool) -> Any:
    flags: Any = compiler.Flags()  # its attributes are made by a metaclass
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.noalias = True
    flags.error_model = "numpy"
    flags.enable_looplift = False
    flags.nrt = False
    if fastmath:
        flags.fastmath = FastMathOptions(_FAST)
    return flags


def argument_type(token: str) -> Any:
    """The Numba type of a token of a signature."""
    scalars = imported("accnp.compiler.numba.namespace").SCALARS
    try:
        kind = scalars[token.removesuffix("*")]
    except KeyError:
        raise ValueError(
            f"get_kernel: unknown argument type in the signature; got {token!r}; "
            f"use one of {', '.join(scalars)}, with * for a pointer"
        ) from None
    return types.CPointer(kind) if token.endswith("*") else kind


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One thread makes LLVM's text at a time, and no garbage is collected meanwhile: a collection
    in the middle costs more than the compilation (30 ms, measured)."""
    with global_compiler_lock, collection_paused:
        yield


renewed(global_compiler_lock._lock)


def load_function(
    source: str, name: str, namespace: Mapping[str, Any], callees: Callees = ()
) -> tuple[pytypes.FunctionType, dict[str, ast.FunctionDef]]:
    """Run kernel source; returns the function, and the trees of all in it. Other functions become
    helpers that it can call, but for its callees, which have a signature and are compiled like
    kernels."""
    scope = dict(namespace)
    before = set(scope)
    trees = functions_of(source)
    exec(compile(source, f"<accnp kernel {name}>", "exec"), scope)
    function = scope.get(name)
    if not isinstance(function, pytypes.FunctionType):
        raise ValueError(f"get_kernel: the source must define the function; got name={name!r}")
    typed = {callee for callee, _ in callees}
    for key in set(scope) - before:
        helper = scope[key]
        if key in typed or key == name:
            continue
        if isinstance(helper, pytypes.FunctionType):
            made: Any = numba.njit(error_model="numpy")(helper)
            scope[key] = made
            made.accnp_functions = trees  # to compile it as loop IR, if that can be
    return function, trees


@functools.cache
def context_of(fastmath: bool) -> Any:
    """What types and lowers, with the flags of such kernels."""
    # Makes what was registered since known to both; the intrinsics must be registered before.
    imported("accnp.compiler.numba.namespace")
    tell()
    return compiler._make_subtarget(TARGET, _flags(fastmath))


def tell() -> None:
    """Make known to both contexts what was registered since. Numba's lists of it are generators,
    which two threads must not be in."""
    with global_compiler_lock:
        TYPING.refresh()
        TARGET.refresh()


def by_numba(
    function: pytypes.FunctionType, arguments: tuple, fastmath: bool, kind_of: Any = TextLibrary
) -> tuple:
    """The library and the result of Numba's own pipeline, which takes what `direct` does not."""
    full: Any = registry.cpu_target
    attempts: Any = (
        # A name that holds two types needs SSA form, which is left out at first (3 ms).
        (_Compiler, lambda: (TYPING, TARGET)),
        (_SSACompiler, lambda: (TYPING, TARGET)),
        (_FullCompiler, lambda: (full.typing_context, full.target_context)),
    )
    for kind, contexts in attempts:
        typing_context, target_context = contexts()
        library = kind_of(target_context.codegen(), function.__name__)
        pipeline = kind(
            typing_context, target_context, library, arguments, types.void, _flags(fastmath), {}
        )
        try:
            return library, pipeline.compile_extra(function)
        except (NumbaError, NotImplementedError, _NeedsSSAError):
            if contexts is attempts[-1][1]:
                raise
    raise AssertionError("unreachable")


def inlined(module: llvmir.Module, function: llvmir.Function) -> str:
    """Text of the module of a function that is inlined where it is called."""
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    return str(module).replace("= common global", "= internal global")


def callee_text(body: str, kernel: llvmir.Function, name: str, attributes: str) -> str:
    """Text of a module that defines `name(lo, hi, ...)` for other kernels to call, around the
    `body` that `inlined` gave."""
    return_slot, exception_slot, *kinds = (argument.type for argument in kernel.args)
    arguments = [f"{kind} %a{i}" for i, kind in enumerate(kinds)]
    passed = ", ".join([f"{return_slot} %ret", f"{exception_slot} %exc", *arguments])
    lines = [
        f"define linkonce_odr void @{name}({', '.join(arguments)}) #771 {{",
        f"  %ret = alloca {str(return_slot).removesuffix('*')}",
        f"  %exc = alloca {str(exception_slot).removesuffix('*')}",
        f'  %status = call i32 @"{kernel.name}"({passed})',
        "  ret void",
        "}",
        f"attributes #771 = {{ {attributes} alwaysinline }}",
    ]
    return "\n".join([body, *lines, ""])
