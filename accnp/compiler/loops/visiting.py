"""Traversal of expressions and statements, and rebuilding them with changes. Passes, the verifier
and the back ends use these functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set

from accnp.compiler.loops.ir import (
    Address,
    Break,
    Call,
    Cast,
    Do,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    LoadVector,
    Memory,
    Prefetch,
    Reduce,
    ReduceColumns,
    ReduceElements,
    Run,
    Share,
    Stmt,
    Store,
    StoreVector,
    Transpose,
    Var,
    While,
)

__all__ = [
    "accessed", "addends", "assigned", "every_part", "expressions", "fresh_name",
    "make_unique_name", "map_body", "map_expr", "map_statement", "names_of", "parts",
    "replace_loops", "statements", "subexpressions",
]  # fmt: skip


def parts(x: Expr) -> tuple[Expr, ...]:
    """Return the operands of an expression."""
    if isinstance(x, Call):
        return x.args
    if isinstance(x, Cast):
        return (x.value,)
    if isinstance(x, Load | Address):
        return (x.index, x.buffer) if isinstance(x.buffer, Var) else (x.index,)
    if isinstance(x, Index):
        return tuple([v for term in x.terms for v in term if isinstance(v, Var)])
    return ()


def addends(x: Expr) -> list[Expr]:
    """Return the addends of an expression."""
    if isinstance(x, Call) and x.function == "add":
        return [a for part in x.args for a in addends(part)]
    return [x]


def subexpressions(x: Expr) -> Iterator[Expr]:
    """Yield an expression and all expressions in it."""
    stack = [x]
    while stack:
        part = stack.pop()
        yield part
        stack += parts(part)


def map_expr(x: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild an expression; `change` returns the replacement of a part of it, or None."""
    replacement = change(x)
    if replacement is not None:
        return replacement
    if isinstance(x, Call):
        return x._replace(args=tuple([map_expr(a, change) for a in x.args]))
    if isinstance(x, Cast):
        return x._replace(value=map_expr(x.value, change))
    if isinstance(x, Load | Address):
        return x._replace(index=map_expr(x.index, change))
    return x


def map_statement(s: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """Rebuild a statement with changed expressions.

    Nested statements, values of reductions, carried values and joined values stay the same.
    """
    if isinstance(s, Let):
        return s._replace(value=change(s.value))
    if isinstance(s, Do):
        return s._replace(args=tuple([change(a) for a in s.args]))
    if isinstance(s, Break):
        return Break(tuple([change(v) for v in s.values]))
    if isinstance(s, Run):
        args = tuple([change(a) for a in s.args])
        return s._replace(first=change(s.first), last=change(s.last), args=args)
    if isinstance(s, Share):
        return Share(
            s.kernel, change(s.sharer), change(s.pool), change(s.helpers), change(s.count),
            change(s.chunk), tuple([change(a) for a in s.args]),
        )  # fmt: skip
    if isinstance(s, While):
        return s._replace(carried=tuple([c._replace(start=change(c.start)) for c in s.carried]))
    if isinstance(s, Store):
        return s._replace(index=change(s.index), value=change(s.value))
    if isinstance(s, Prefetch | LoadVector):
        return s._replace(index=change(s.index))
    if isinstance(s, StoreVector):
        values = tuple([change(v) for v in s.values])
        return s._replace(index=change(s.index), values=values)
    if isinstance(s, ReduceColumns):
        shape = {"rows": change(s.rows), "columns": change(s.columns)}
        return s._replace(start=change(s.start), **shape)
    if isinstance(s, Transpose):
        shape = {"rows": change(s.rows), "columns": change(s.columns)}
        return s._replace(start=change(s.start), step=change(s.step), **shape)
    if isinstance(s, For):
        carried = tuple([c._replace(start=change(c.start)) for c in s.carried])
        part = None if s.part is None else (change(s.part[0]), change(s.part[1]))
        return s._replace(start=change(s.start), stop=change(s.stop), carried=carried, part=part)
    if isinstance(s, If):
        return s._replace(test=change(s.test))
    if isinstance(s, Reduce):
        return s._replace(extent=change(s.extent))
    return s._replace(start=change(s.start), extent=change(s.extent))


def map_body(body: Sequence[Stmt], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Rebuild statements and nested statements with changed expressions."""
    new_body: list[Stmt] = []
    for s in body:
        statement = map_statement(s, change)
        if isinstance(statement, For | While):
            carried = [c._replace(following=change(c.following)) for c in statement.carried]
            statement = statement._replace(
                body=map_body(statement.body, change), carried=tuple(carried)
            )
            statement = (
                statement._replace(test=change(statement.test))
                if isinstance(statement, While)
                else statement
            )
        elif isinstance(statement, If):
            joined = [
                j._replace(then=change(j.then), orelse=change(j.orelse)) for j in statement.joined
            ]
            statement = statement._replace(
                then=map_body(statement.then, change), orelse=map_body(statement.orelse, change),
                joined=tuple(joined),
            )  # fmt: skip
        elif isinstance(statement, Reduce):
            steps = [x for x in map_body(statement.body, change) if isinstance(x, Let | Store)]
            reductions = [f._replace(value=change(f.value)) for f in statement.reductions]
            statement = statement._replace(body=tuple(steps), reductions=tuple(reductions))
        new_body.append(statement)
    return tuple(new_body)


def expressions(s: Stmt) -> tuple[Expr, ...]:  # noqa: C901
    """Return the expressions of a statement, without those of nested statements."""
    if isinstance(s, Let):
        return (s.value,)
    if isinstance(s, Do):
        return s.args
    if isinstance(s, Break):
        return s.values
    if isinstance(s, Run):
        return (s.first, s.last, *s.args)
    if isinstance(s, Share):
        return (s.sharer, s.pool, s.helpers, s.count, s.chunk, *s.args)
    if isinstance(s, Store):
        return (s.index, s.value, *_address_of(s.buffer))
    if isinstance(s, Prefetch):
        return (s.index,)
    if isinstance(s, LoadVector):
        return (s.index, *_address_of(s.buffer))
    if isinstance(s, StoreVector):
        return (s.index, *s.values, *_address_of(s.buffer))
    if isinstance(s, ReduceColumns):
        return (s.start, s.rows, s.columns)
    if isinstance(s, Transpose):
        return (s.start, s.step, s.rows, s.columns)
    if isinstance(s, For):
        carried = [x for c in s.carried for x in (c.start, c.following)]
        return (s.start, s.stop, *(s.part or ()), *carried)
    if isinstance(s, While):
        return (s.test, *[x for c in s.carried for x in (c.start, c.following)])
    if isinstance(s, If):
        return (s.test, *[x for j in s.joined for x in (j.then, j.orelse)])
    if isinstance(s, Reduce):
        return (s.extent, *[f.value for f in s.reductions])
    return (s.start, s.extent)


def _address_of(memory: Memory) -> tuple[Var, ...]:
    return (memory,) if isinstance(memory, Var) else ()


def accessed(s: Stmt) -> set[Memory]:
    """Return the memory that a statement reads, writes, or takes addresses of, without that of
    nested statements."""
    memories: set[Memory] = set()
    if isinstance(s, Store | LoadVector | StoreVector | ReduceElements | ReduceColumns | Transpose):
        memories.add(s.buffer)
    if isinstance(s, Transpose | ReduceColumns):
        memories.add(s.to)
    if isinstance(s, ReduceColumns):
        memories.add(s.places)
    inner = [x for e in expressions(s) for x in subexpressions(e)]
    return memories | {x.buffer for x in inner if isinstance(x, Load | Address)}


def names_of(kernel: Kernel) -> set[str]:
    """Return the names of the arguments, buffers and variables of a kernel."""
    names = {x.name for x in (kernel.first, kernel.last, *kernel.integers)}
    names |= {b.name for b in (*kernel.buffers, *kernel.stack, *kernel.shared)}
    names |= {b.name for b, _ in kernel.heap}
    for s in statements(kernel.body):
        names |= {v.name for v in assigned(s)}
    return names


def assigned(s: Stmt) -> tuple[Var, ...]:
    """Return the variables that a statement assigns, without those of nested statements."""
    if isinstance(s, Let):
        return (s.var,)
    if isinstance(s, LoadVector):
        return s.results
    if isinstance(s, For | While):
        own = (s.index,) if isinstance(s, For) else ()
        return (*own, *[v for c in s.carried for v in (c.var, c.result)])
    if isinstance(s, If):
        return tuple([j.result for j in s.joined])
    if isinstance(s, Reduce):
        return (s.index, *[f.result for f in s.reductions])
    return (s.result,) if isinstance(s, ReduceElements | Do) and s.result is not None else ()


def every_part(s: Stmt) -> list[Expr]:
    """Return all expressions in a statement, without those of statements in it."""
    return [part for x in expressions(s) for part in subexpressions(x)]


def fresh_name(name: str, kernel: Kernel) -> str:
    """Return a name, with a numeric suffix if the kernel has the name already."""
    return make_unique_name(name, names_of(kernel))


def make_unique_name(name: str, used_names: Set[str]) -> str:
    """Return this name if it is not in use, or otherwise this name with a numeric suffix."""
    unique_name, k = name, 0
    while unique_name in used_names:
        unique_name, k = f"{name}_{k}", k + 1
    return unique_name


def statements(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield statements and all nested statements."""
    for s in body:
        yield s
        if isinstance(s, For | While | Reduce):
            yield from statements(s.body)
        elif isinstance(s, If):
            yield from statements(s.then)
            yield from statements(s.orelse)


def replace_loops(
    body: Sequence[Stmt], change: Callable[[For | Reduce], Sequence[Stmt] | None]
) -> tuple[Stmt, ...]:
    """Rebuild statements; `change` returns replacements of loops and reductions, inner first."""
    new_body: list[Stmt] = []
    for s in body:
        if isinstance(s, If):
            new_body.append(
                s._replace(
                    then=replace_loops(s.then, change), orelse=replace_loops(s.orelse, change)
                )
            )
        elif isinstance(s, While):
            new_body.append(s._replace(body=replace_loops(s.body, change)))
        elif isinstance(s, For | Reduce):
            inner = s._replace(body=replace_loops(s.body, change)) if isinstance(s, For) else s
            new = change(inner)
            new_body += [inner] if new is None else new
        else:
            new_body.append(s)
    return tuple(new_body)
