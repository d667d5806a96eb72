"""`InspectedKernel`: the source of a generated kernel, the origin of its machine code, and that
code on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.compiler.frontend.program import read_source
from accnp.compiler.frontend.users import write_users_functions
from accnp.compiler.fusion.program import Program
from accnp.compiler.kernel_cache import Callees, Kernel, find_kernel, get_kernel, show_kernel
from accnp.compiler.loops.ir import Kernel as LoopKernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.user_definitions import with_definitions, with_linked
from accnp.config import config
from accnp.devtools.inspect.kernel_files import kernel_file, memory_of
from accnp.engine.describe import (
    body_operations,
    iterate_plans,
    kernel_label,
    step_members,
)
from accnp.engine.steps import BRIEF, PARALLEL, KernelStep, Plan

__all__ = ["InspectedKernel", "kernels_of"]


class InspectedKernel:
    """A generated kernel of a plan.

    `ir` is the kernel of the loop IR that is compiled, as text, and `text` its source for Numba.
    `source` is a Python file that can be edited and run by itself (`python file.py` makes operands
    and times it); kernels that accnp has as restricted Python are in that form there. `signature`
    has the arguments after the range, `operations` the names of the
    operations fused in it, `extent` how far its range goes.
    `origin` says where its machine code comes from: "compiled" or "disk" once this plan has run,
    "memory" if another plan has made it, else "on disk" or "not compiled"; `compile_ms` is its
    time, if known.
    """

    def __init__(
        self,
        step: KernelStep,
        place: str,
        operations: Sequence[str],
        fastmath: bool,
        label: str,
        sizes: dict[int, int],
    ) -> None:
        self.step = place
        self.device: Any = None  # a GPU
        self.label = label
        self.code = step.text.source  # the compiled text, unless the kernel is loop IR
        self.signature = step.text.signature
        self.operations = list(operations)
        self.number_of_ops = len(self.operations)
        self.extent = step.extent
        self.fastmath = fastmath
        self.pointers = list(step.pointers)
        self.ints = list(step.ints)
        self._work = step.work
        self._grain = step.grain
        self._own = step.kernel
        self.callees = step.callees
        self._step, self._sizes = step, sizes
        cached_kernel, on_disk = find_kernel(
            self.code, "kernel", self.signature, fastmath=fastmath, callees=self.callees
        )
        kernel: Kernel | None = step.kernel or cached_kernel
        self.origin = "on disk" if on_disk else "not compiled"
        if kernel is not None:
            self.origin = kernel.origin if step.kernel is not None else "memory"
        self.loaded = kernel is not None
        self.compile_ms = (
            None if kernel is None or kernel.origin == "disk" else kernel.seconds * 1e3
        )
        self.load_ms = (
            kernel.seconds * 1e3 if kernel is not None and kernel.origin == "disk" else None
        )

    @property
    def ir(self) -> str:
        """The kernel of the loop IR before the passes, after the kernels that it calls. The
        commands of `python -m accnp.compiler` read such texts."""
        return "\n".join(map(print_kernel, self._loop_kernels()))

    @property
    def text(self) -> str:
        """The source for Numba: a function `kernel` of the range, the operands and the integers,
        after the functions that it calls. It runs outside accnp with the functions of
        `accnp.compiler.numba.functions`."""
        return with_linked("\n".join(map(numba_source, self._loop_kernels())))

    def _loop_kernels(self) -> Sequence[LoopKernel]:
        """Return the kernel after those that it calls; functions of users are written into them."""
        loop_kernel: LoopKernel | None = self._step.text.kernel
        if loop_kernel is not None and not self.callees:
            return (write_users_functions(loop_kernel),)
        known = self._step.programs | ({} if loop_kernel is None else {"kernel": loop_kernel})
        kernel, others = read_source(self.code, "kernel", self.signature, self.callees, known)
        return (*others, kernel)

    @property
    def source(self) -> str:
        """The kernel as a file: edit it, run it, put it in place with `override`."""
        title = f"Kernel of step {self.step}: {self.label}."
        return kernel_file(self._step, self._sizes, self.fastmath, title)

    def compiled(self, source: str, callees: Callees) -> None:
        """Compile another text instead of this one; raises Unsupported, CompileError, or ValueError
        if that is impossible."""
        read_source(source, "kernel", self.signature, callees, check=True)
        get_kernel(source, "kernel", self.signature, fastmath=self.fastmath, callees=callees)

    def llvm(self) -> str:
        """The optimized LLVM IR, made for looking at it; no cache changes."""
        return self._show_code("llvm")

    def assembly(self) -> str:
        """The assembly of this machine, made for looking at it; no cache changes."""
        return self._show_code("assembly")

    def _show_code(self, what: str) -> str:
        return show_kernel(
            self.code,
            "kernel",
            self.signature,
            fastmath=self.fastmath,
            callees=self.callees,
            program=self._step.text.kernel,
            programs=self._step.programs,
            what=what,
        )

    @property
    def came(self) -> str:
        """Describe the origin of the machine code, with the compile time if known."""
        text = {
            "compiled": "compiled by this plan",
            "disk": "read from disk by this plan",
            "memory": "in memory: another plan has it",
            "on disk": "on disk: the first run will read it",
            "not compiled": "not compiled yet",
        }[self.origin]
        if self.compile_ms is not None:
            text += f"; compiling took {self.compile_ms:.1f} ms"
        if self.load_ms is not None:
            text += f"; reading took {self.load_ms:.1f} ms"
        return text

    @property
    def launch(self) -> str:
        """Describe how the kernel is launched."""
        if self._work < BRIEF:
            return "on the calling thread, in one go"
        if self._work < PARALLEL or self.extent <= self._grain:
            return "on one thread"
        threads = min(config.threads, -(-self.extent // self._grain))
        return f"on up to {threads} threads, in chunks of {self._grain}"

    def __str__(self) -> str:
        return f"step {self.step}: {self.label}\n{self.came}\n{self.text}"

    def __repr__(self) -> str:
        return f"<kernel of step {self.step}: {self.label}; {self.origin}>"


REGISTERS = 65536  # of a multiprocessor
# Of a multiprocessor, by compute capability: warps and blocks that it holds at once, and bytes of
# shared memory (CUDA's programming guide, compute capabilities).
_HOLDS = {
    (8, 0): (64, 32, 164 << 10), (8, 6): (48, 16, 100 << 10), (8, 7): (48, 16, 164 << 10),
    (8, 9): (48, 24, 100 << 10), (9, 0): (64, 32, 228 << 10), (10, 0): (64, 32, 228 << 10),
    (12, 0): (48, 24, 100 << 10),
}  # fmt: skip
_OWN = 1 << 10  # bytes of shared memory that CUDA keeps of each block


def occupancy(cc: tuple[int, int], threads: int, registers: int, shared: int) -> float:
    """The part of a multiprocessor's warps that blocks of a kernel can fill: registers are given
    to a warp by 256, shared memory to a block."""
    warps, blocks, memory = _HOLDS[max([known for known in _HOLDS if known <= cc] or [(8, 0)])]
    mine = -(-threads // 32)
    each = -(-max(registers, 1) * 32 // 256) * 256
    most = min(blocks, warps // mine, REGISTERS // (each * mine), memory // (shared + _OWN))
    return most * mine / warps


class KernelOnGpu(InspectedKernel):
    """A generated kernel for a GPU: `device` is which, `ptx` its text there; `blocks` of `threads`
    are launched. Its file needs a GPU to run."""

    def __init__(self, step: Any, *rest: Any) -> None:
        super().__init__(step, *rest)
        ptx = step.ptx()
        self.device = step.device
        self.ptx = ptx.text
        self.threads = ptx.threads
        self.blocks = step.blocks
        self._on_gpu = step
        self.loaded = step.function is not None
        self.origin = "memory" if self.loaded else "on disk"

    @property
    def text(self) -> str:
        """The source that is compiled to PTX."""
        return with_definitions(self.code)

    def _loop_kernels(self) -> Sequence[LoopKernel]:
        loop_kernel: LoopKernel | None = self._step.text.kernel
        if loop_kernel is not None and not self._step.text.tasks:
            return (write_users_functions(loop_kernel),)
        kernel, others = read_source(
            self.code,
            "kernel",
            self.signature,
            self.callees,
            threads=self.threads,
            distribute=bool(self._step.text.tasks),
        )
        return (*others, kernel)

    def compiled(self, source: str, callees: Callees) -> None:
        step = self._on_gpu
        read_source(
            source, "kernel", self.signature, callees, threads=self.threads,
            distribute=bool(step.text.tasks), check=True,
        )  # fmt: skip
        step.ptx(source, callees)

    def assembly(self) -> str:
        """The PTX."""
        return self.ptx

    def llvm(self) -> str:
        """Not kept; see `ptx`."""
        raise NotImplementedError(
            f"llvm: a kernel for {self.device} is kept as PTX; got that of step {self.step}; "
            "use its `ptx` attribute"
        )

    def facts(self) -> dict[str, float]:
        """Registers of a thread, bytes of local and shared memory of it, and an estimate of the
        occupancy: the part of a multiprocessor's warps that its blocks can fill. Loads the kernel.
        """
        known = self._on_gpu.facts()
        cc = self._on_gpu.capability
        part = occupancy(cc, self.threads, known["registers"], known["shared"])
        return {**known, "occupancy": part}

    @property
    def came(self) -> str:
        """Describe the origin of the machine code."""
        return "PTX, loaded" if self.loaded else "PTX, to be loaded by the first run"

    @property
    def launch(self) -> str:
        """Describe how the kernel is launched."""
        return f"on {self.device}, {self.blocks} blocks of {self.threads} threads"


def kernels_of(
    plan: Plan, program: Program | None, existing: Plan | None = None
) -> list[InspectedKernel]:
    """Return the kernels of a plan and of the loops in it.

    `existing` is the plan that runs, if another one was made for inspection.
    """
    kernels = []
    running: Any = iterate_plans(existing, None) if existing is not None else None
    for path, inner, its in iterate_plans(plan, program):
        other = next(running)[1] if running is not None else inner
        named = step_members(inner, its) if its is not None else {}
        sizes = memory_of(inner, its)
        for i, step in enumerate(inner.steps):
            if not isinstance(step, KernelStep):
                continue
            values = named.get(i)
            names = [v.op.name for v in values or () if v.op.kind != "view"] or [
                v.op.name for v in values or ()
            ]
            names += body_operations(step)
            kind = KernelOnGpu if hasattr(step, "ptx") else InspectedKernel
            kernel = kind(
                step,
                f"{path}{i}",
                names,
                plan.fastmath,
                kernel_label(values) if values else step.label,
                sizes,
            )
            if other is not inner and getattr(other.steps[i], "kernel", None) is not None:
                kernel.origin = other.steps[i].kernel.origin
            kernels.append(kernel)
    return kernels
