"""Write loops over the threads of a GPU, shared memory, and accesses to several elements.

The functions get an IR builder of a module for a GPU, emit instructions, and return LLVM values.
They read the indices of a thread and its block, compute which steps of a loop a thread or a block
runs, allocate memory that the threads of a block share, and load or store adjacent elements with
one instruction. `lower.py` calls them for loops whose `spread` is set, and `intrinsics/grid.py`
uses the indices.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.llvm.registers import from_memory, memory_type, to_memory
from accnp.compiler.llvm.scalars.ir import I32, I64
from accnp.compiler.loops.ir import Buffer, Spread
from accnp.compiler.loops.types import DType

__all__ = [
    "first_of", "load_elements", "one_of", "register", "share_memory", "step_of", "store_elements",
    "thread", "threads",
]  # fmt: skip


def register(b: ir.IRBuilder, name: str) -> ir.Value:
    """Return the value of a special register, as a 64-bit integer."""
    name = f"llvm.nvvm.read.ptx.sreg.{name}"
    fn = b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(I32, []), name)
    return b.zext(b.call(fn, []), I64)


def thread(b: ir.IRBuilder, block: ir.Value | None = None) -> ir.Value:
    """Return the index of this thread. `block` is the index of its block among those that run the
    loop; by default, its index in the grid."""
    block = register(b, "ctaid.x") if block is None else block
    return b.add(b.mul(block, register(b, "ntid.x")), register(b, "tid.x"))


def threads(b: ir.IRBuilder, blocks: ir.Value | None = None) -> ir.Value:
    """Return the number of threads in `blocks` blocks; by default, in the grid."""
    blocks = register(b, "nctaid.x") if blocks is None else blocks
    return b.mul(blocks, register(b, "ntid.x"))


def first_of(
    b: ir.IRBuilder, to: Spread, start: ir.Value, step: int, block: ir.Value | None
) -> ir.Value:
    """Return the first index of a loop that this thread or its block runs. `block` is the index of
    the block among those that run the loop, or None if all do."""
    if to == "grid":
        number = thread(b, block)
    else:
        number = register(b, "ctaid.x") if block is None else block
    return b.add(start, _multiply_by_step(b, number, step))


def step_of(b: ir.IRBuilder, to: Spread, step: int, blocks: ir.Value | None) -> ir.Value:
    """Return the distance between the indices that this thread or its block runs. `blocks` is the
    number of blocks that run the loop, or None if all do."""
    if to == "grid":
        number = threads(b, blocks)
    else:
        number = register(b, "nctaid.x") if blocks is None else blocks
    return _multiply_by_step(b, number, step)


def one_of(b: ir.IRBuilder, to: Spread, step: int) -> ir.Value:
    """Return the only index of a loop that this thread or its block runs."""
    return _multiply_by_step(b, register(b, "tid.x" if to == "threads" else "ctaid.x"), step)


def _multiply_by_step(b: ir.IRBuilder, x: ir.Value, step: int) -> ir.Value:
    return x if step == 1 else b.mul(x, ir.Constant(I64, step))


def _vector_address(
    b: ir.IRBuilder, place: ir.Value, of: DType, count: int
) -> tuple[ir.Value, int]:
    """Return the address of a vector, and its size in bytes."""
    kind = ir.VectorType(memory_type(of), count)
    return b.bitcast(place, kind.as_pointer()), count * of.size


def load_elements(b: ir.IRBuilder, place: ir.Value, of: DType, count: int) -> list[ir.Value]:
    """Load adjacent elements with one access, and return numbers in registers."""
    where, size = _vector_address(b, place, of, count)
    vector = b.load(where, align=size)
    parts = [b.extract_element(vector, ir.Constant(I32, k)) for k in range(count)]
    return [from_memory(of, b, x) for x in parts]


def store_elements(b: ir.IRBuilder, place: ir.Value, of: DType, values: Sequence[ir.Value]) -> None:
    """Store numbers in registers to adjacent elements with one access."""
    where, size = _vector_address(b, place, of, len(values))
    vector = ir.Constant(ir.VectorType(memory_type(of), len(values)), ir.Undefined)
    for k, x in enumerate(values):
        vector = b.insert_element(vector, to_memory(of, b, x), ir.Constant(I32, k))
    b.store(vector, where, align=size)


def share_memory(b: ir.IRBuilder, buffer: Buffer) -> ir.Value:
    """Allocate a buffer that the threads of a block share, and return its address."""
    kind = ir.ArrayType(memory_type(buffer.dtype), buffer.length)
    name = b.module.get_unique_name("accnp.shared")
    room = ir.GlobalVariable(b.module, kind, name, addrspace=3)
    room.initializer, room.linkage, room.align = ir.Constant(kind, ir.Undefined), "internal", 16
    return b.addrspacecast(room, kind.element.as_pointer())
