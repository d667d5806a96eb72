"""Lower the source of a kernel to PTX, with Numba's front end and LLVM's NVPTX target.

In: a source and a signature. Out: PTX. `ptx.py` imports this module by name, for kernels that no
cache has.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from typing import Any

from numba.core import types

from accnp.compiler.frontend.definitions import with_definitions
from accnp.compiler.kernel_cache import Callees
from accnp.compiler.llvm.ptx import TRIPLE, emit, entry_text
from accnp.compiler.numba import frontend
from accnp.compiler.numba.direct import Unsupported, build
from accnp.forks import imported

__all__ = ["write"]

# C functions of the CPU's library that Numba calls for users' functions.
_LEFT = re.compile(r'^declare [^@\n]*@"?(?:numba_(?:ldexp|frexp)|hypot)f?"?\(', re.MULTILINE)


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
                frontend.callee_text(frontend.inlined(module, made), made, callee, "nounwind"),
                *others,
                *parts,
            ]
            scope[callee] = types.ExternalFunction(callee, types.void(*kinds))
        module, made, others = _run(function, trees[name], arguments, fastmath)
        body = frontend.inlined(module, made)
    text = "\n".join([body, _entry(made, signature, entry, tasks, threads, guard)])
    linked = [*others, *parts]
    if any(_LEFT.search(t) for t in (text, *linked)):
        device = imported("accnp.compiler.numba.user_device")
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
        module, made = build(tree, function.__globals__, arguments, context, library)
        return module, made, library.linked()
    except Unsupported:
        library, result = frontend.by_numba(function, arguments, fastmath, kind)
    (module,) = library.modules
    (made,) = [f for f in module.functions if f.name == result.fndesc.llvm_func_name]
    return module, made, library.linked()


def _entry(
    kernel: Any, signature: tuple[str, ...], entry: str, tasks: bool, threads: int, guard: str
) -> str:
    """Return the text of the function that is launched: each argument is one word."""
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
    room = [f"  %ret = alloca {str(return_slot).removesuffix('*')}",
            f"  %exc = alloca {str(exception_slot).removesuffix('*')}"]  # fmt: skip
    call = f'call i32 @"{kernel.name}"('
    call += ", ".join([f"{return_slot} %ret", f"{exception_slot} %exc", *passed]) + ")"
    if not tasks:
        lines.append(f"  %status = {call}")
        return entry_text(entry, words, lines, threads, guard, room)
    registers = {"t": "tid", "b": "ctaid", "s": "ntid", "g": "nctaid"}
    special = {k: f"llvm.nvvm.read.ptx.sreg.{r}.x" for k, r in registers.items()}
    for k, register in special.items():
        lines += [f"  %{k}4 = call i32 @{register}()", f"  %{k} = zext i32 %{k}4 to i64"]
    lines += [
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
    return "\n".join([*declared, entry_text(entry, words, lines, threads, guard, room)])
