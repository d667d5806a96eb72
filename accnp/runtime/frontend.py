"""Numba as a front end: Python source of a kernel comes in, LLVM IR text with `entry` goes out.

Only this module and its helpers `direct` and `lean` import numba. It stops Numba after lowering:
nothing is optimized, wrapped or loaded by Numba. It is loaded by name, on the first kernel that no
cache holds.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import types as pytypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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

from accnp.codegen.definitions import with_definitions
from accnp.compiler.frontend.program import MAX_INLINED, Callees
from accnp.compiler.frontend.syntax import functions_of, walk
from accnp.compiler.llvm.entry import DRIVER, ENTRY, LIBRARY, SIZED, VECTORS, entry_text
from accnp.compiler.llvm.lower import take_apart
from accnp.forks import collection_paused, imported, renewed
from accnp.runtime.direct import Unsupported, build
from accnp.runtime.independent import known_sizes
from accnp.runtime.lean import TARGET, TYPING
from accnp.runtime.sharing import SHARED

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
        return [str(library._get_module_for_linking()) for library in found.values()]


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
            made.accnp_tree = trees[key]  # to write it where it is called, if that can be
    return function, trees


def lower(
    source: str,
    name: str,
    signature: tuple[str, ...],
    namespace: Mapping[str, Any],
    fastmath: bool,
    attributes: str,
    vector_bytes: int,
    callees: Callees = (),
) -> tuple[str, list[str], list[str]]:
    """LLVM text of the kernel and of `entry`, the texts of modules to link to it, and those of
    modules to be compiled on their own.

    Callees are functions in the source with their signatures, in an order in which each calls only
    those before it. Independent loops are vectors of `vector_bytes` (0: none are). A text whose
    loops all are says so (`VECTORS`), and whether it has its sizes (`SIZED`). What users brought
    comes from `codegen/definitions.py`.
    """
    source = with_definitions(source)
    arguments = (types.int64, types.int64, *map(argument_type, signature))
    with alone():
        function, trees = load_function(source, name, namespace, callees)
        if function.__code__.co_argcount != len(arguments):
            raise ValueError(
                f"get_kernel: {name} takes {function.__code__.co_argcount - 2} arguments after lo, "
                f"hi; got a signature of {len(signature)}"
            )
        made: list[_Callee] = []
        scope = function.__globals__
        for callee, its in callees:
            kinds = (types.int64, types.int64, *map(argument_type, its))
            short = _is_scalar(trees[callee])
            # Scalar code where they do one step each time, which is no loop.
            calls = source.count(f"{callee}(") - 1 + source.count(f"spread({callee}, ")
            once = short and calls == source.count(f"{callee}(0, 1, ")
            width = 0 if once else vector_bytes
            module, kernel, others = _run(scope[callee], trees[callee], kinds, fastmath, width)
            shared = its if f"spread({callee}, " in source else ()
            body = inlined(module, kernel)
            wrap = functools.partial(callee_text, body, kernel, callee, attributes, shared=shared)
            call = wrap(short=False) + (f"!{VECTORS} = !{{ }}\n" if once else "")
            made.append(_Callee(callee, wrap(short=True) if short else "", call, others, calls))
            take_apart(module)
            scope[callee] = types.ExternalFunction(callee, types.void(*kinds))
        apart = _called_apart(made, trees[name])
        linked, separate = _divide(made, apart)
        module, kernel, others = _run(function, trees[name], arguments, fastmath, vector_bytes)
        if name != "kernel":
            module.add_named_metadata(LIBRARY)
        if apart:
            module.add_named_metadata(DRIVER)
        text = _text(module, kernel, signature, attributes)
        take_apart(module)
        return text, [*others, *linked], separate


class _Callee(NamedTuple):
    """A kernel that others call, as the text of a module in two forms."""

    name: str
    inline: str  # inlined where it is called; "" for one with inner loops, which never is
    call: str  # called
    others: list[str]  # texts of modules that it needs
    calls: int  # call sites


def _called_apart(callees: Sequence[_Callee], caller: ast.FunctionDef) -> set[str]:
    """The names that the caller calls instead of inlining them: none, or all where more than
    `MAX_INLINED` would be inlined, since LLVM's time grows faster than the length of a function."""
    if sum([len(c.inline) * c.calls for c in callees]) <= MAX_INLINED:
        return set()
    return {node.id for node in walk(caller) if isinstance(node, ast.Name)}


def _divide(callees: Sequence[_Callee], apart: set[str]) -> tuple[list[str], list[str]]:
    """The texts of modules to link to the caller's, and of those to compile on their own."""
    linked: list[str] = []
    separate: list[str] = []
    for c in callees:
        inline = [c.inline] if c.inline and c.name not in apart else []
        separate += [] if inline else [c.call]
        # Callers first: what no module refers to when it is linked is dropped.
        linked = [*inline, *c.others, *linked]
    return linked, separate


def _run(
    function: pytypes.FunctionType,
    tree: ast.FunctionDef,
    arguments: tuple,
    fastmath: bool,
    vector_bytes: int,
) -> tuple[Any, Any, list[str]]:
    """The module of a kernel, the function in it, and texts of modules that it needs.

    Lowered with as little of Numba as will do; a kernel that needs more gets it.
    """
    context = context_of(fastmath)
    library = TextLibrary(context.codegen(), function.__name__)
    try:
        width = 0 if fastmath else vector_bytes  # its flags are Numba's to set
        module, made, functions, left = build(
            tree, function.__globals__, arguments, context, library, width
        )
        linked = library.linked()
        module.beside = functions.text(module.globals)
        if not left and not linked:
            module.add_named_metadata(VECTORS)
            if known_sizes(tree):
                module.add_named_metadata(SIZED)
        return module, made, linked
    except Unsupported:
        library, result = by_numba(function, arguments, fastmath)
    (module,) = library.modules
    for made in module.functions:
        if made.name == result.fndesc.llvm_func_name:
            return module, made, library.linked()
    raise RuntimeError(f"get_kernel: no function {function.__name__} in the lowered module")


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


def _is_scalar(tree: ast.FunctionDef) -> bool:
    """Whether a kernel has no loop but that from lo to hi: inlined, it works in registers."""
    return sum(isinstance(node, ast.For) for node in walk(tree)) == 1


def inlined(module: llvmir.Module, function: llvmir.Function) -> str:
    """Text of the module of a function that is inlined where it is called."""
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    text = str(module).replace("= common global", "= internal global")
    return f"{text}\n{getattr(module, 'beside', '')}"


def _text(
    module: llvmir.Module, kernel: llvmir.Function, signature: tuple[str, ...], attributes: str
) -> str:
    body = inlined(module, kernel)
    groups = f"attributes #770 = {{ {attributes} }}\nattributes #772 = {{ {attributes} }}"
    past = getattr(module, "past", False)
    # The kernel is inlined there, where its noalias arguments become alias scopes.
    return f"{body}\n{_entry(ENTRY, signature, kernel, past)}\n{groups}\n"


def callee_text(
    body: str,
    kernel: llvmir.Function,
    name: str,
    attributes: str,
    short: bool,
    shared: tuple[str, ...] = (),
) -> str:
    """Text of a module that defines `name(lo, hi, ...)` for other kernels to call, around the
    `body` that `inlined` gave; with a signature, which `shared` is, also the entry that threads
    share it by."""
    return_slot, exception_slot, *kinds = (argument.type for argument in kernel.args)
    arguments = [f"{kind} %a{i}" for i, kind in enumerate(kinds)]
    passed = ", ".join([f"{return_slot} %ret", f"{exception_slot} %exc", *arguments])
    linkage = "linkonce_odr " if short else ""
    lines = [
        f"define {linkage}void @{name}({', '.join(arguments)}) #771 {{",
        f"  %ret = alloca {str(return_slot).removesuffix('*')}",
        f"  %exc = alloca {str(exception_slot).removesuffix('*')}",
        f'  %status = call i32 @"{kernel.name}"({passed})',
        "  ret void",
        "}",
        f"attributes #771 = {{ {attributes} {'alwaysinline' if short else 'noinline'} }}",
        f"attributes #772 = {{ {attributes} }}",
    ]
    if shared:
        lines.append(_entry(name + SHARED, shared, kernel, called=name, linkage=linkage))
        lines.append(f"attributes #770 = {{ {attributes} }}")
    return "\n".join([body, *lines, ""])


def _entry(
    name: str,
    signature: tuple[str, ...],
    kernel: llvmir.Function,
    past: bool = False,
    called: str = "",
    linkage: str = "",
) -> str:
    """The entry of a function as Numba lowers it. `called` is a function around it."""
    return_slot, exception_slot = (argument.type for argument in kernel.args[:2])
    return_type = str(return_slot).removesuffix("*")
    exception_type = str(exception_slot).removesuffix("*")
    slots = [] if called else [f"{return_slot} %ret", f"{exception_slot} %exc"]
    function = f"void @{called}" if called else f'i32 @"{kernel.name}"'
    asked = [
        "  %past = and i64 %word, 1",
        f"  %asked = inttoptr i64 %past to {return_type}",
        f"  store {return_type} %asked, {return_slot} %ret",
    ]
    return entry_text(
        name,
        signature,
        [str(argument.type) for argument in kernel.args[4:]],
        function,
        [*slots, "i64 %lo", "i64 %hi"],
        before=[f"  %ret = alloca {return_type}", f"  %exc = alloca {exception_type}"],
        after_counter=asked if past else (),
        can_bypass=past,
        linkage=linkage,
    )
