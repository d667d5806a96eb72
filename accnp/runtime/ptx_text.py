"""Lower the source of a kernel to PTX, with Numba's front end and LLVM's NVPTX target.

In: a source and a signature. Out: PTX. `ptx.py` imports this module by name, for kernels that no
cache has.
"""

from __future__ import annotations

import ast
import functools
import re
import threading
from collections.abc import Mapping
from typing import Any

import llvmlite.binding as llvm
from numba.core import types

from accnp.codegen.definitions import with_definitions
from accnp.forks import imported
from accnp.runtime import frontend
from accnp.runtime.compile import Callees
from accnp.runtime.direct import Unsupported, build
from accnp.runtime.llvm_lock import in_order

__all__ = ["TRIPLE", "emit", "lowered", "optimised", "write"]

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

TRIPLE = "nvptx64-nvidia-cuda"
# Every driver since CUDA 12.0 reads PTX 8.0.
FEATURES = "+ptx80"
_target = llvm.Target.from_triple(TRIPLE)
_mine = threading.local()  # a target machine can be used by one thread at a time
# Functions that are declared but not defined, and that a CPU would call by address (GPUs have only
# vprintf); and LLVM's intrinsics for which its NVPTX target aborts the process.
_OUTSIDE = re.compile(
    r'^declare [^@\n]*@"?((?!llvm\.|vprintf\b)[^"(]+|llvm\.(?:a?sin|a?cos|a?tan|atan2|sinh|cosh|'
    r'tanh|exp|exp2|exp10|log|log2|log10|pow|powi|frexp|ldexp|modf|sincos|sincospi)\.[^"(]+)',
    re.MULTILINE,
)
# C functions of the CPU's library that Numba calls for users' functions.
_LEFT = re.compile(r'^declare [^@\n]*@"?(?:numba_(?:ldexp|frexp)|hypot)f?"?\(', re.MULTILINE)


def _machine(cpu: str) -> Any:
    found = _mine.__dict__
    if cpu not in found:
        found[cpu] = _target.create_target_machine(cpu=cpu, features=FEATURES, opt=3)
    return found[cpu]


class _Library(frontend.TextLibrary):
    """Collects modules for the GPU; intrinsics read the target from the triple."""

    approximate = False

    def create_ir_module(self, name: str) -> Any:
        module = super().create_ir_module(name)
        module.triple = TRIPLE
        module.approximate = self.approximate  # type: ignore[attr-defined]
        return module


class _FastLibrary(_Library):
    """Lets intrinsics use the approximate units."""

    approximate = True


def write(
    source: str,
    name: str,
    signature: tuple[str, ...],
    namespace: Mapping[str, Any],
    fastmath: bool,
    cpu: str,
    tasks: bool,
    threads: int,
    callees: Callees,
    entry: str,
    guard: str,
) -> str:
    """Return the PTX of a kernel; see `ptx.ptx_of`.

    Raises:
        ValueError: a type in the signature is unknown, or the number of arguments differs.
        NotImplementedError: the kernel calls a function that GPUs do not have.
    """
    _know()
    source = with_definitions(source)
    ends = (types.int64, types.int64) if tasks else ()
    arguments = (*ends, *map(frontend.argument_type, signature))
    with frontend.alone():
        function, trees = frontend.load_function(source, name, namespace, callees)
        if function.__code__.co_argcount != len(arguments):
            raise ValueError(
                f"ptx_of: {name} takes {function.__code__.co_argcount - len(ends)} arguments"
                f"{' after lo, hi' if tasks else ''}; got a signature of {len(signature)}; "
                "name a type for each"
            )
        scope = function.__globals__
        parts: list[str] = []
        for callee, its in callees:
            kinds = (types.int64, types.int64, *map(frontend.argument_type, its))
            module, made, others = _run(scope[callee], trees[callee], kinds, fastmath)
            parts = [
                frontend.callee_text(
                    frontend.inlined(module, made), made, callee, "nounwind", True
                ),
                *others,
                *parts,
            ]
            scope[callee] = types.ExternalFunction(callee, types.void(*kinds))
        module, made, others = _run(function, trees[name], arguments, fastmath)
        body = frontend.inlined(module, made)
    text = "\n".join([body, _entry(made, signature, entry, tasks, threads, guard)])
    linked = [*others, *parts]
    if any(_LEFT.search(t) for t in (text, *linked)):
        device = imported("accnp.runtime.user_device")
        linked.append(device.definitions(device.declared((text, *linked))))
    return emit(text, linked, cpu)


@functools.cache
def _know() -> None:
    """Register the functions of GPU kernels with Numba's existing contexts."""
    frontend.tell()


def _run(function: Any, tree: ast.FunctionDef, arguments: tuple, fastmath: bool) -> tuple:
    """Return the module of a kernel, the function in it, and the texts of modules to link."""
    context = frontend.context_of(fastmath)
    kind = _FastLibrary if fastmath else _Library
    library = kind(context.codegen(), function.__name__)
    try:
        module, made, _, _ = build(tree, function.__globals__, arguments, context, library, 0)
        return module, made, library.linked()
    except Unsupported:
        library, result = frontend.by_numba(function, arguments, fastmath, kind)
    (module,) = library.modules
    (made,) = [f for f in module.functions if f.name == result.fndesc.llvm_func_name]
    return module, made, library.linked()


def _entry(
    kernel: Any, signature: tuple[str, ...], entry: str, tasks: bool, threads: int, guard: str
) -> str:
    """Return the text of the function that is launched: each argument is one word.

    The kernel is inlined into it, so that its noalias arguments become alias scopes.
    """
    return_slot, exception_slot = (argument.type for argument in kernel.args[:2])
    count = sum(token.endswith("*") for token in signature)
    lines, passed, words = [], [], []
    given = kernel.args[4:] if tasks else kernel.args[2:]
    for at, (token, argument) in enumerate(zip(signature, given, strict=True)):
        kind = str(argument.type)
        if token.endswith("*"):
            words.append(f"ptr noalias %a{at}")
        elif token in ("f4", "f8", "c8", "c16"):
            raise ValueError(f"ptx_of: pass a {token} by pointer; got {token!r}")
        elif token in ("i8", "u8"):
            words.append(f"i64 %a{at}")
        else:
            words.append(f"i64 %w{at}")
            lines.append(f"  %a{at} = trunc i64 %w{at} to {kind}")
        passed.append(f"{kind} %a{at}")
    if tasks:
        words.insert(count, "i64 %n")
        passed = ["i64 %i", "i64 %e", *passed]
    call = f'call i32 @"{kernel.name}"('
    call += ", ".join([f"{return_slot} %ret", f"{exception_slot} %exc", *passed]) + ")"
    registers = {"t": "tid", "b": "ctaid", "s": "ntid", "g": "nctaid"}
    special = {k: f"llvm.nvvm.read.ptx.sreg.{r}.x" for k, r in registers.items()}
    words += ["ptr %choice", "i64 %low", "i64 %high"] if guard else []
    begin = [
        f"define ptx_kernel void @{entry}({', '.join(words)}) #770 {{",
        "begin:",
        f"  %ret = alloca {str(return_slot).removesuffix('*')}",
        f"  %exc = alloca {str(exception_slot).removesuffix('*')}",
        *(_GUARDS[guard] if guard else ["  br label %start"]),
        "start:",
        *lines,
    ]
    end = ["  ret void", "}", f'attributes #770 = {{ nounwind "nvvm.maxntid"="{threads}" }}']
    if not tasks:
        return "\n".join([*begin, f"  %status = {call}", *end, ""])
    for k, register in special.items():
        begin += [f"  %{k}4 = call i32 @{register}()", f"  %{k} = zext i32 %{k}4 to i64"]
    loop = [
        "  %before = mul i64 %b, %s",
        "  %first = add i64 %before, %t",
        "  %step = mul i64 %s, %g",
        "  br label %head",
        "head:",
        "  %i = phi i64 [%first, %start], [%next, %work]",
        "  %more = icmp slt i64 %i, %n",
        "  br i1 %more, label %work, label %out",
        "work:",
        "  %e = add nsw i64 %i, 1",
        f"  %status = {call}",
        "  %next = add nsw i64 %i, %step",
        "  br label %head",
        "out:",
    ]
    declared = [f"declare i32 @{register}()" for register in special.values()]
    return "\n".join([*declared, *begin, *loop, *end, ""])


_MEANT = [
    "  %above = icmp sge i64 %chosen, %low",
    "  %below = icmp sle i64 %chosen, %high",
    "  %meant = and i1 %above, %below",
    "  br i1 %meant, label %start, label %other",
    "other:",
    "  ret void",
]
_GUARDS = {
    "b1": ["  %read = load i8, ptr %choice", "  %bit = and i8 %read, 1",
           "  %chosen = zext i8 %bit to i64", *_MEANT],
    "i4": ["  %read = load i32, ptr %choice", "  %chosen = sext i32 %read to i64", *_MEANT],
    "i8": ["  %chosen = load i64, ptr %choice", *_MEANT],
}  # fmt: skip


@in_order
def emit(text: str, linked: list[str], cpu: str) -> str:
    """Return the PTX of a module and of the modules linked to it."""
    return lowered(optimised(text, linked, cpu), cpu)


def lowered(module: Any, cpu: str) -> str:
    """Return the PTX of an optimized module, which is modified."""
    return _machine(cpu).emit_assembly(module)


def optimised(text: str, linked: list[str], cpu: str) -> Any:
    """Link a text with others and optimize the module; rejects calls that a GPU cannot make."""
    context = llvm.create_context()
    machine = _machine(cpu)
    module = llvm.parse_assembly(text, context)
    for other in linked:
        module.link_in(llvm.parse_assembly(other, context))
    module.triple = TRIPLE
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = False  # threads of a GPU have no vectors
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    missing = sorted(set(_OUTSIDE.findall(str(module))))
    if missing:
        raise NotImplementedError(
            f"a GPU cannot call {', '.join(missing)}; compute this operation on the host"
        )
    return module
