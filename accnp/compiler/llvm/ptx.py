"""Compile kernels of the loop IR and LLVM modules to PTX for NVIDIA's GPUs, with llvmlite only.

`write_program` gets a kernel with `threads`, and `emit` the text of an LLVM module; both return
PTX. The module `accnp.compiler.ptx` imports this one by name, for kernels that are in no cache.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm

from accnp.compiler.llvm.lock import in_order
from accnp.compiler.llvm.lower import Platform, write_function
from accnp.compiler.loops.ir import Buffer, Kernel

__all__ = ["TRIPLE", "emit", "emit_ptx", "link_and_optimize", "write_program"]

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

TRIPLE = "nvptx64-nvidia-cuda"
# Every driver since CUDA 12.0 reads PTX 8.0.
FEATURES = "+ptx80"
_target = llvm.Target.from_triple(TRIPLE)
_machines = threading.local()  # target machines by GPU; each can be used by one thread only
# Functions that are declared but not defined, and that a CPU would call by address (GPUs have only
# vprintf); and LLVM's intrinsics for which its NVPTX target aborts the process.
_UNAVAILABLE = re.compile(
    r'^declare [^@\n]*@"?((?!llvm\.|vprintf\b)[^"(]+|llvm\.(?:a?sin|a?cos|a?tan|atan2|sinh|cosh|'
    r'tanh|exp|exp2|exp10|log|log2|log10|pow|powi|frexp|ldexp|modf|sincos|sincospi)\.[^"(]+)',
    re.MULTILINE,
)

# C functions of the CPU's library that Numba calls.
_CPU_FUNCTIONS = re.compile(
    r'^declare [^@\n]*@"?(?:numba_(?:ldexp|frexp)|hypot)f?"?\(', re.MULTILINE
)


def _machine(cpu: str) -> llvm.TargetMachine:
    machines = _machines.__dict__
    if cpu not in machines:
        machines[cpu] = _target.create_target_machine(cpu=cpu, features=FEATURES, opt=3)
    return machines[cpu]


def write_program(
    kernel: Kernel,
    cpu: str,
    entry: str,
    guard: str,
    fast: bool = False,
    callees: Sequence[Kernel] = (),
    define_functions: Callable[[list[str]], str] | None = None,
) -> str:
    """Return the PTX of a kernel of the loop IR.

    Parameters
    ----------
    kernel : Kernel
        A kernel with `threads`, after the passes.
    cpu : str
        The GPU, such as "sm_90".
    entry : str
        The name of the function that is launched.
    guard : str
        As for `ptx.ptx_of`.
    fast : bool, optional
        Whether operations on floats may be reordered and fused, and use the approximate units.
    callees : sequence of Kernel, optional
        The kernels for processors that it calls, after the passes.
    define_functions : callable, optional
        Returns the LLVM text of the C functions that functions compiled by Numba declare.
    """
    platform = Platform(TRIPLE, str(_machine(cpu).target_data))
    linked: list[str] = []
    for callee in callees:  # each calls only those before it
        called = write_function(callee, 0, fast, platform)
        linked = [called.callee("nounwind", True, False), *called.linked, *linked]
    function = write_function(kernel, 0, fast, platform)
    names = {p: f"%a{k}" for k, p in enumerate(kernel.parameters)}
    parameters = [
        f"{'ptr noalias' if isinstance(p, Buffer) else 'i64'} {x}" for p, x in names.items()
    ]
    kinds = zip(kernel.arguments, function.kinds, strict=True)
    arguments = [f"{kind} {names[p]}" for p, kind in kinds]
    last = names.get(kernel.last, "0")
    steps = ["i64 0", f"i64 {last}", "i64 0"]  # and no non-temporal stores
    call = f"  call void @{function.name}({', '.join([*steps, *arguments])})"
    text = _entry_text(entry, parameters, [call], kernel.threads, guard)
    modules = [*function.linked, *linked]
    if define_functions is not None and any(_CPU_FUNCTIONS.search(t) for t in modules):
        modules.append(define_functions(modules))
    return emit(f"{function.module_text}\n{text}", modules, cpu)


def _entry_text(
    entry: str,
    parameters: Sequence[str],
    body: Sequence[str],
    threads: int,
    guard: str,
) -> str:
    """Return the text of the function that is launched, whose arguments are one word each.

    The kernel, which the `body` calls, is inlined here, where its noalias arguments become alias
    scopes.
    """
    chosen = ["ptr %choice", "i64 %low", "i64 %high"] if guard else []
    lines = [
        f"define ptx_kernel void @{entry}({', '.join([*parameters, *chosen])}) #770 {{",
        "begin:",
        *(_GUARDS[guard] if guard else ["  br label %start"]),
        "start:",
        *body,
        "  ret void",
        "}",
        f'attributes #770 = {{ nounwind "nvvm.maxntid"="{threads}" }}',
        "",
    ]
    return "\n".join(lines)


_TEST_RANGE = [
    "  %above = icmp sge i64 %chosen, %low",
    "  %below = icmp sle i64 %chosen, %high",
    "  %meant = and i1 %above, %below",
    "  br i1 %meant, label %start, label %other",
    "other:",
    "  ret void",
]
_GUARDS = {
    "b1": ["  %read = load i8, ptr %choice", "  %bit = and i8 %read, 1",
           "  %chosen = zext i8 %bit to i64", *_TEST_RANGE],
    "i4": ["  %read = load i32, ptr %choice", "  %chosen = sext i32 %read to i64", *_TEST_RANGE],
    "i8": ["  %chosen = load i64, ptr %choice", *_TEST_RANGE],
}  # fmt: skip


@in_order
def emit(text: str, linked: list[str], cpu: str) -> str:
    """Return the PTX of a module and of the modules linked to it."""
    return emit_ptx(link_and_optimize(text, linked, cpu), cpu)


def emit_ptx(module: llvm.ModuleRef, cpu: str) -> str:
    """Return the PTX of an optimized module, which is modified."""
    return _machine(cpu).emit_assembly(module)


def link_and_optimize(text: str, linked: list[str], cpu: str) -> llvm.ModuleRef:
    """Link a text with others and optimize the module; reject calls that a GPU cannot make."""
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
    missing = sorted(set(_UNAVAILABLE.findall(str(module))))
    if missing:
        raise NotImplementedError(
            f"a GPU cannot call {', '.join(missing)}; compute this operation on the host"
        )
    return module
