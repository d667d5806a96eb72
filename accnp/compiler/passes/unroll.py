"""Pass that unrolls loops with a small constant number of steps, so that enclosing loops can become
vector code.

Loops of independent steps that are one vector are not unrolled. Stores are moved after the loads of
all steps. In loops that stay, common subexpressions are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from accnp.compiler.loops.ir import (
    Const,
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
from accnp.compiler.loops.types import I8
from accnp.compiler.loops.visiting import (
    every_part,
    map_statement,
    replace_loops,
    statements,
    subexpressions,
)
from accnp.compiler.passes.copies import Copies
from accnp.compiler.passes.replace_variables import replaced

__all__ = ["unroll"]

MOST, STATEMENTS = 16, 1024  # the maximum number of steps, and of statements after unrolling


def unroll(kernel: Kernel) -> Kernel:
    """Return a kernel without loops that have a small constant number of steps."""
    rows = _in_rows(kernel)
    loaded = _loaded(kernel)

    def count(s: For) -> int:
        return 0 if _fills_vector(s, loaded) else _count(s, rows)

    if not any(isinstance(s, For) and count(s) for s in statements(kernel.body)):
        return kernel
    copies = Copies(kernel)

    def change(s: For | Reduce) -> Sequence[Stmt] | None:
        if not isinstance(s, For) or not all(isinstance(x, Let | Store) for x in s.body):
            return None
        if not count(s):
            return [_eliminate_common_subexpressions(s)]
        return _unroll_loop(s, copies.fresh)

    return kernel._replace(body=replace_loops(kernel.body, change))


def _count(s: For, rows: Set[Var]) -> int:
    """Return the number of steps of a loop if it should be unrolled, and 0 otherwise."""
    if not isinstance(s.start, Const) or not isinstance(s.stop, Const) or s.vector is not None:
        return 0
    count = len(range(int(s.start.value), int(s.stop.value), s.step))
    few = count <= MOST and count * len(s.body) <= STATEMENTS
    return count if few and (s.index in rows or not _is_vector(s)) else 0


def _loaded(kernel: Kernel) -> set[Var]:
    """Return the variables whose values depend on loads in their own statement."""
    lets = [s for s in statements(kernel.body) if isinstance(s, Let)]
    return {s.var for s in lets if any(isinstance(p, Load) for p in subexpressions(s.value))}


def _fills_vector(s: For, loaded: Set[Var]) -> bool:
    """Return whether a loop carries a value over MOST adjacent elements whose start index was
    loaded from memory.

    LLVM's vectorizer makes vectors of its steps. If the loop were unrolled, it would make vectors
    of the steps of the loop around it, with a gather for each element: a search that compares 16
    numbers at a time took 1.8 to 3.5 times as long.
    """
    if not s.carried or s.start != Const(0, I8) or s.stop != Const(MOST, I8) or s.step != 1:
        return False
    loads = [p for x in s.body for p in every_part(x) if isinstance(p, Load)]
    indices = [p.index for p in loads if isinstance(p.index, Index)]
    return any((s.index, 1) in x.terms and any(v in loaded for v, _ in x.terms) for x in indices)


def _in_rows(kernel: Kernel) -> set[Var]:
    """Return the indices of loops of constant length that process a row in each step of a loop of
    variable length. The latter may become vector code."""
    indices: set[Var] = set()
    for s in statements(kernel.body):
        if not isinstance(s, For) or isinstance(s.stop, Const) or s.carried:
            continue
        inner = [x for x in s.body if isinstance(x, For) and isinstance(x.stop, Const)]
        below = [x for loop in inner for x in loop.body]
        rest = [x for x in s.body if x not in inner]
        if not inner or not all(isinstance(x, Let | Store) for x in (*below, *rest)):
            continue
        every = (*below, *rest)
        places = [x.index for x in every if isinstance(x, Store)]
        if all(s.index in subexpressions(x) for x in places):
            indices |= {x.index for x in inner}
    return indices


def _is_vector(s: For) -> bool:
    """Return whether the steps of a loop are the lanes of a vector: they are independent and write
    adjacent elements."""
    places = [x.index for x in s.body if isinstance(x, Store)]
    return s.independent and all(
        x == s.index or (isinstance(x, Index) and (s.index, 1) in x.terms) for x in places
    )


def _unroll_loop(s: For, fresh: Callable[[Var], Var]) -> list[Stmt]:
    assert isinstance(s.start, Const)
    assert isinstance(s.stop, Const)
    new_body: list[Stmt] = []
    carried: list[Expr] = [c.start for c in s.carried]
    for k in range(int(s.start.value), int(s.stop.value), s.step):
        known: dict[Var, Expr] = {s.index: Const(k, I8)}
        known |= {c.var: x for c, x in zip(s.carried, carried, strict=True)}
        for x in s.body:
            new = map_statement(x, lambda e, known=known: replaced(e, known))
            if isinstance(new, Let):
                known[new.var] = fresh(new.var)
                new = new._replace(var=known[new.var])
            new_body.append(new)
        carried = []
        for c in s.carried:
            var = fresh(c.var)
            new_body.append(Let(var, replaced(c.following, known)))
            carried.append(var)
    new_body += [Let(c.result, x) for c, x in zip(s.carried, carried, strict=True)]
    return _stores_last(new_body)


def _stores_last(body: list[Stmt]) -> list[Stmt]:
    """Move stores to memory that is not read here to the end of the statements."""
    read = {p.buffer for s in body for p in every_part(s) if isinstance(p, Load)}
    late = [s for s in body if isinstance(s, Store) and s.buffer not in read]
    return [s for s in body if not (isinstance(s, Store) and s.buffer not in read)] + late


def _eliminate_common_subexpressions(s: For) -> For:
    """Return a loop in whose statements common subexpressions are eliminated."""
    known: dict[Var, Expr] = {}
    computed: dict[Expr, Var] = {}
    loaded: dict[Memory, list[Expr]] = {}  # computed expressions that load from memory
    new_body: list[Stmt] = []
    for x in s.body:
        new = map_statement(x, lambda e: replaced(e, known))
        if isinstance(new, Let):
            before = new.value if isinstance(new.value, Var) else computed.get(new.value)
            if before is not None:
                known[new.var] = before
                continue
            computed[new.value] = new.var
            for p in subexpressions(new.value):
                if isinstance(p, Load):
                    loaded.setdefault(p.buffer, []).append(new.value)
        elif isinstance(new, Store):
            for e in loaded.pop(new.buffer, ()):
                computed.pop(e, None)
        new_body.append(new)
    carried = [c._replace(following=replaced(c.following, known)) for c in s.carried]
    return s._replace(body=tuple(new_body), carried=tuple(carried))
