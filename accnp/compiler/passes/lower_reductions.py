"""Make folds of memory of reductions: the values go to a buffer on the stack, block by block.

A reduction of elements that lie side by side in memory folds these, without a buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.loops.builder import plus
from accnp.compiler.loops.ir import (
    Buffer,
    Const,
    Expr,
    Fold,
    For,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
    Var,
    dtype,
)
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import fresh_name, replace_loops
from accnp.ir.kernel import BLOCK

__all__ = ["lower_reductions"]

_ZERO = Const(0, I8)


def lower_reductions(kernel: Kernel) -> Kernel:
    """Return a kernel without `Reduce`. Extents of reductions are at most `BLOCK`."""
    made: list[Buffer] = []

    def change(s: For | Reduce) -> Sequence[Stmt] | None:
        if not isinstance(s, Reduce):
            return None
        memory = _in_memory(s)
        if memory is not None:
            return [Fold(s.result, s.combine, *memory, s.extent, s.wide)]
        name = fresh_name(f"{s.result.name}_values", kernel)
        buffer = Buffer(name, dtype(s.value), BLOCK)
        made.append(buffer)
        body = (*s.body, Store(buffer, s.index, s.value))
        fill = For(s.index, _ZERO, s.extent, 1, body, independent=True)
        return [fill, Fold(s.result, s.combine, buffer, _ZERO, s.extent, s.wide)]

    body = replace_loops(kernel.body, change)
    return kernel._replace(body=body, stack=(*kernel.stack, *made))


def _in_memory(s: Reduce) -> tuple[Buffer, Expr] | None:
    """The buffer that a reduction is over and its first index; None if it computes values."""
    value = s.value
    if isinstance(value, Var):
        lets = {let.var: let.value for let in s.body}
        value = lets.get(value, value)
    if not isinstance(value, Load):
        return None
    if value.index == s.index:
        return value.buffer, _ZERO
    if not isinstance(value.index, Index) or (s.index, 1) not in value.index.terms:
        return None
    rest = tuple([term for term in value.index.terms if term != (s.index, 1)])
    inside = {s.index, *[let.var for let in s.body]}
    if any(v in inside for term in rest for v in term):
        return None
    return value.buffer, plus(Index(rest, value.index.constant), _ZERO)
