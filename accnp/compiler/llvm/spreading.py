"""Loops whose steps are dealt to the threads of a GPU, memory that a block of threads shares, and
accesses to several elements at once.

In: a builder of a module for a GPU. Out: values of LLVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from accnp.compiler.llvm.registers import from_memory, memory_type, to_memory
from accnp.compiler.llvm.scalars.ir import I32, I64
from accnp.compiler.loops.ir import Buffer, Spread
from accnp.compiler.loops.types import DType

__all__ = [
    "first_of", "load_elements", "register", "share_memory", "step_of", "store_elements", "thread",
    "threads",
]  # fmt: skip


def register(b: Any, name: str) -> Any:
    """Return a special register, as an integer of 64 bits."""
    name = f"llvm.nvvm.read.ptx.sreg.{name}"
    fn = b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(I32, []), name)
    return b.zext(b.call(fn, []), I64)


def thread(b: Any) -> Any:
    """Return the number of this thread in the grid."""
    return b.add(b.mul(register(b, "ctaid.x"), register(b, "ntid.x")), register(b, "tid.x"))


def threads(b: Any) -> Any:
    """Return how many threads the grid has."""
    return b.mul(register(b, "nctaid.x"), register(b, "ntid.x"))


def first_of(b: Any, to: Spread, start: Any, step: int) -> Any:
    """Return the first index of a loop that this thread or its block does."""
    number = thread(b) if to == "grid" else register(b, "ctaid.x")
    return b.add(start, _times(b, number, step))


def step_of(b: Any, to: Spread, step: int) -> Any:
    """Return how far apart the indices are that this thread or its block does."""
    return _times(b, threads(b) if to == "grid" else register(b, "nctaid.x"), step)


def _times(b: Any, x: Any, step: int) -> Any:
    return x if step == 1 else b.mul(x, ir.Constant(I64, step))


def _at(b: Any, place: Any, of: DType, count: int) -> tuple[Any, int]:
    """The address of a vector, and its bytes."""
    kind = ir.VectorType(memory_type(of), count)
    return b.bitcast(place, kind.as_pointer()), count * of.size


def load_elements(b: Any, place: Any, of: DType, count: int) -> list[Any]:
    """Load adjacent elements by one access; returns numbers in registers."""
    where, size = _at(b, place, of, count)
    vector = b.load(where, align=size)
    parts = [b.extract_element(vector, ir.Constant(I32, k)) for k in range(count)]
    return [from_memory(of, b, x) for x in parts]


def store_elements(b: Any, place: Any, of: DType, values: Sequence[Any]) -> None:
    """Store numbers in registers to adjacent elements by one access."""
    where, size = _at(b, place, of, len(values))
    vector = ir.Constant(ir.VectorType(memory_type(of), len(values)), ir.Undefined)
    for k, x in enumerate(values):
        vector = b.insert_element(vector, to_memory(of, b, x), ir.Constant(I32, k))
    b.store(vector, where, align=size)


def share_memory(b: Any, buffer: Buffer) -> Any:
    """Return the address of a buffer that the threads of a block share."""
    kind = ir.ArrayType(memory_type(buffer.dtype), buffer.length)
    name = b.module.get_unique_name(f"accnp.shared.{buffer.name}")
    room: Any = ir.GlobalVariable(b.module, kind, name, addrspace=3)
    room.initializer, room.linkage, room.align = ir.Constant(kind, ir.Undefined), "internal", 16
    return b.addrspacecast(room, kind.element.as_pointer())
