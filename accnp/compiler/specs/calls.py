"""Builder of kernels that call other kernels.

Input: kernels that `launches.build_generated` returns. Output: a `GeneratedKernel` for the calling
kernel. A kernel that is called several times is contained once, and sizes are arguments, so that
other shapes need no compilation. `horizontal_fusion.py` and `chains.py` use this builder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from accnp.compiler.loops.builder import LoopBuilder, affine
from accnp.compiler.loops.ir import Address, Buffer, Call, Callee, Const, Expr, Let, Run, Var
from accnp.compiler.loops.types import I8, Pointer
from accnp.compiler.numba.source import numba_source
from accnp.compiler.specs.kernel_builder import loop_type
from accnp.compiler.specs.launches import as_callee
from accnp.ir.generated import CalledKernel, GeneratedKernel, ScratchBuffer
from accnp.ir.kernel import Access

__all__ = ["CallerBuilder", "Memory"]


class Memory(NamedTuple):
    """The location of a part of a value that the calling kernel has made: a buffer, and the index
    in it that the first element of the whole value would have."""

    buffer: Buffer
    start: Var


class CallerBuilder:
    """A kernel under construction that calls other kernels."""

    def __init__(self) -> None:
        self.loop_ir = LoopBuilder()
        self.ints: list[int] = []
        self.pointers: dict[Buffer, Access] = {}
        self.rooms: dict[Buffer, ScratchBuffer] = {}
        self.callees: dict[str, CalledKernel] = {}
        self.nontemporal = Var(
            self.loop_ir.fresh("nontemporal")
        )  # whether to use non-temporal stores
        self.reads_request = False  # whether a called kernel needs this variable

    def integer(self, value: int) -> Var:
        """Add an integer argument and return it."""
        self.ints.append(value)
        return self.loop_ir.integer("n")

    def room(self, room: ScratchBuffer) -> Buffer:
        """Add a buffer for memory that the kernel needs while it runs."""
        buffer = self.loop_ir.buffer(room.name, loop_type(room.dtype))
        self.rooms[buffer] = room
        return buffer

    def pointer(self, a: Access) -> Address:
        """Return the address of the first element of an access; each array is one argument."""
        buffer = next((b for b, known in self.pointers.items() if known.value is a.value), None)
        if buffer is None:
            buffer = self.loop_ir.buffer("a", loop_type(a.dtype))
            number = len(self.pointers)
            self.pointers[buffer] = Access(a.value, a.dtype, (), 0, a.store, number)
        return Address(buffer, self.integer(a.offset))

    def call(
        self, text: GeneratedKernel, steps: tuple[Expr, Expr],
        memories: Mapping[int, Memory] | None = None, final: bool = True,
    ) -> None:  # fmt: skip
        """Add a call of a kernel for a range of its steps.

        `memories` has the locations of parts of some values, by their ids. A map has an argument
        that says whether to use non-temporal stores, which only `final` results may use.
        """
        called = as_callee(text)
        self.callees.setdefault(called.name, called)
        args: list[Expr] = []
        for a in text.pointers:
            assert isinstance(a, Access)
            memory = (memories or {}).get(id(a.value))
            if memory is None:
                args.append(self.pointer(a))
            else:
                more = [(self.integer(a.offset), 1)] if a.offset else []
                args.append(Address(memory.buffer, affine((memory.start, 1), *more)))
        args += [self.integer(n) for n in text.ints]
        if called.kernel.nontemporal is not None:
            args.append(self.nontemporal if final else Const(0, I8))
            self.reads_request |= final
        self.loop_ir.add(Run(called.name, *steps, tuple(args)))

    def finish(self, extent: int, work: int) -> GeneratedKernel:
        """Return the kernel; `work` is the work of its whole extent."""
        kernel = self.loop_ir.kernel()
        request = Let(self.nontemporal, Call("nontemporal_requested", (), I8))
        callees: list[Callee] = []
        for c in self.callees.values():
            of = [Pointer(a.dtype) if isinstance(a, Buffer) else I8 for a in c.kernel.arguments]
            callees.append(Callee(c.name, tuple(of)))
        kernel = kernel._replace(
            buffers=(*self.pointers, *self.rooms),
            body=(*[request] * self.reads_request, *kernel.body),
            callees=tuple(callees),
        )
        out = GeneratedKernel()
        out.kernel = kernel
        out.callees = tuple(self.callees.values())
        out.source = "\n\n".join([*[c.source for c in out.callees], numba_source(kernel)])
        out.pointers = [*self.pointers.values(), *self.rooms.values()]
        out.ints = self.ints
        tokens = [f"{b.dtype.token}*" for b in kernel.buffers]
        out.signature = (*tokens, *["i8"] * len(self.ints))
        out.extent, out.weight = extent, max(1, work // max(1, extent))
        return out
