"""Pass that marks loops as independent if no step reads what another step writes.

Input: a kernel from restricted Python, where nothing is known about loops. Output: the kernel with
`independent` loops, which `vectorize` may turn into vector code.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from accnp.compiler.loops.functions import ALLOCATE
from accnp.compiler.loops.ir import (
    Buffer,
    Do,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Memory,
    Reduce,
    Stmt,
    Store,
    Var,
)
from accnp.compiler.loops.visiting import (
    expressions,
    parts,
    replace_loops,
    statements,
    subexpressions,
)

__all__ = ["find_independent"]


def find_independent(kernel: Kernel) -> Kernel:
    """Return a kernel whose innermost loops are marked as independent if this can be shown.

    A step may write one element of each memory, whose index grows by one per step, and must not
    read other elements of that memory. Memory that is known only by an address is accepted if it
    was allocated on the heap.
    """
    own = {
        s.result
        for s in statements(kernel.body)
        if isinstance(s, Do) and s.result is not None and s.function in ALLOCATE
    }

    def change(s: For | Reduce) -> Sequence[Stmt] | None:
        if not isinstance(s, For) or s.independent or s.step != 1 or s.carried:
            return None
        if not all(isinstance(x, Let | Store) for x in s.body) or not _is_independent(s, own):
            return None
        return [s._replace(independent=True)]

    return kernel._replace(body=replace_loops(kernel.body, change))


def _is_independent(s: For, own: Set[Var]) -> bool:
    places: dict[Memory, set[Expr]] = {}
    written: dict[Memory, Expr] = {}
    for inner in s.body:
        for x in expressions(inner):
            for part in subexpressions(x):
                if isinstance(part, Load):
                    places.setdefault(part.buffer, set()).add(part.index)
        if isinstance(inner, Store):
            places.setdefault(inner.buffer, set()).add(inner.index)
            written[inner.buffer] = inner.index
    if not written or not all(isinstance(m, Buffer) or m in own for m in places):
        return False
    inside = {x.var for x in s.body if isinstance(x, Let)} | {s.index}
    return all(
        len(places[m]) == 1 and _advances_with_loop(at, s.index, inside)
        for m, at in written.items()
    )


def _advances_with_loop(x: Expr, index: Var, inside: Set[Var]) -> bool:
    """Return whether an index is that of a loop plus terms that are the same in all steps."""
    if x == index:
        return True
    return (
        isinstance(x, Index)
        and (index, 1) in x.terms
        and [v for v in parts(x) if v in inside] == [index]
    )
