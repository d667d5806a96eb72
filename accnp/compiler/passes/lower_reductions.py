"""Pass that lowers `Reduce` to `ReduceElements`, which reduces elements of memory.

The reduced values are first stored in buffers on the stack, one block at a time. No buffer is
needed if the values are adjacent elements of an operand, or if the steps store them in memory of
the kernel anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from accnp.compiler.loops.builder import plus
from accnp.compiler.loops.ir import (
    Buffer,
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Memory,
    Reduce,
    ReduceElements,
    Stmt,
    Store,
    Var,
    number_type,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import expressions, fresh_name, replace_loops, subexpressions
from accnp.ir.kernel import BLOCK

__all__ = ["lower_reductions"]

_ZERO = Const(0, I8)


def lower_reductions(kernel: Kernel) -> Kernel:
    """Return a kernel without `Reduce`. Extents of reductions are at most `BLOCK`."""
    buffers: list[Buffer] = []

    def change(s: For | Reduce) -> Sequence[Stmt] | None:
        return _lower_reduction(s, kernel, buffers) if isinstance(s, Reduce) else None

    body = replace_loops(kernel.body, change)
    return kernel._replace(body=body, stack=(*kernel.stack, *buffers))


def _lower_reduction(s: Reduce, kernel: Kernel, buffers: list[Buffer]) -> list[Stmt]:
    """Return the statements for a reduction, and add its buffers to `buffers`."""
    fills: dict[Expr, Store] = {}  # the stores to buffers, by value
    reductions: list[ReduceElements] = []
    for f in s.reductions:
        memory = _in_memory(f.value, s, kernel.buffers)
        if memory is None:
            if f.value not in fills:
                name = fresh_name(f"{f.result.name}_values", kernel)
                buffers.append(Buffer(name, number_type(f.value), BLOCK))
                fills[f.value] = Store(buffers[-1], s.index, f.value)
            memory = fills[f.value].buffer, _ZERO
        reductions.append(ReduceElements(f.result, f.combine, *memory, s.extent, f.wide))
    steps = _needed_steps([*s.body, *fills.values()])
    if not steps:
        return [*reductions]
    return [For(s.index, _ZERO, s.extent, 1, tuple(steps), independent=True), *reductions]


def _needed_steps(steps: Sequence[Let | Store]) -> list[Let | Store]:
    """Return the stores, and the assignments that they need."""
    used: set[Expr] = set()
    needed_steps: list[Let | Store] = []
    for s in reversed(steps):
        if isinstance(s, Store) or s.var in used:
            used.update([part for x in expressions(s) for part in subexpressions(x)])
            needed_steps.append(s)
    return needed_steps[::-1]


def _in_memory(value: Expr, s: Reduce, arguments: Collection[Buffer]) -> tuple[Memory, Expr] | None:
    """Return the buffer that contains the values after the steps, and the index of the first one;
    None if the values are not in memory."""
    stores = [x for x in s.body if isinstance(x, Store)]
    for x in stores:
        # Results of the kernel are not read again, because their stores may be non-temporal.
        if x.value == value and x.buffer not in arguments:
            return _adjacent(x.buffer, x.index, s)
    if isinstance(value, Var):
        lets = {x.var: x.value for x in s.body if isinstance(x, Let)}
        value = lets.get(value, value)
    if not isinstance(value, Load) or value.buffer in [x.buffer for x in stores]:
        return None
    return _adjacent(value.buffer, value.index, s)


def _adjacent(buffer: Memory, index: Expr, s: Reduce) -> tuple[Memory, Expr] | None:
    """Return a buffer and the index in the first step, if the index grows by 1 with each step."""
    if index == s.index:
        return buffer, _ZERO
    if not isinstance(index, Index) or (s.index, 1) not in index.terms:
        return None
    rest = tuple([term for term in index.terms if term != (s.index, 1)])
    inside = {s.index, *[x.var for x in s.body if isinstance(x, Let)]}
    if any(v in inside for term in rest for v in term):
        return None
    return buffer, plus(Index(rest, index.constant), _ZERO)
