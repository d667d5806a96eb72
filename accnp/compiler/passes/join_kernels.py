"""Pass that joins kernels for GPUs into one launch, in which each has a share of the thread blocks.

`compiler/specs/grid_horizontal_fusion.py` uses it for the cells of an index space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accnp.compiler.loops.builder import affine, call
from accnp.compiler.loops.ir import (
    Address,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoadVector,
    Memory,
    Stmt,
    Store,
    StoreVector,
    Var,
)
from accnp.compiler.loops.types import I8, Pointer
from accnp.compiler.loops.visiting import assigned, map_body, map_expr, statements
from accnp.compiler.passes.copies import Copies
from accnp.compiler.passes.replace_variables import replaced

__all__ = ["join_kernels"]

_ZERO = Const(0, I8)


def join_kernels(kernels: Sequence[Kernel], places: Sequence[Sequence[int]]) -> Kernel:
    """Return a kernel that does the work of several kernels, whose range is the blocks of all.

    Parameters
    ----------
    kernels : sequence of Kernel
        Kernels for GPUs with the same number of threads, which write different elements.
    places : sequence of sequence of int
        For each kernel, the numbers of the arrays that contain its buffers. The arrays are the
        arguments of the result. All buffers with the same number have the same type.

    Notes
    -----
    The integers of the result are, for each kernel: the number of its first block, and its number
    of blocks; its range; for each buffer, the index of its first element in the array; and its own
    integers.
    """
    types = {n: b.dtype for k, its in zip(kernels, places, strict=True)
             for b, n in zip(k.buffers, its, strict=True)}  # fmt: skip
    arrays = [Buffer(f"a{n}", types[n]) for n in range(len(types))]
    joined = Kernel(Var("lo"), Var("hi"), tuple(arrays), (), (), (), threads=kernels[0].threads)
    names = Copies(joined)
    block = names.new("b")
    before: list[Stmt] = []
    body: list[Stmt] = []
    integers: list[Var] = []
    shared: list[Buffer] = []
    for kernel, its in zip(kernels, places, strict=True):
        first, count, last = (names.new(n) for n in ("first", "count", "last"))
        known: dict[Var, Expr] = {kernel.last: last}
        memory: dict[Memory, Memory] = {}
        starts: list[Var] = []
        for b, n in zip(kernel.buffers, its, strict=True):
            starts.append(names.new("start"))
            place = names.new(b.name, Pointer(b.dtype))
            before.append(Let(place, Address(arrays[n], starts[-1])))
            memory[b] = place
        own = [names.fresh(v) for v in kernel.integers]
        known |= zip(kernel.integers, own, strict=True)
        integers += [first, count, last, *starts, *own]
        memory |= _share_memory(kernel, shared, names)
        mine = names.new("mine")
        inside = call(
            "and", call("ge", block, first), call("lt", block, affine((first, 1), (count, 1)))
        )
        steps = _rename_variables(kernel.body, known, memory, names, (mine, count))
        at = Let(mine, affine((block, 1), (first, -1)))
        body.append(If(inside, (at, *steps)))
    whole = For(block, _ZERO, joined.last, 1, tuple(body), independent=True, spread="blocks")
    return joined._replace(
        body=(*before, whole), integers=tuple(integers), shared=tuple(shared),
        narrow=all(k.narrow for k in kernels),
    )  # fmt: skip


def _share_memory(kernel: Kernel, shared: list[Buffer], names: Copies) -> Mapping[Memory, Memory]:
    """Return the shared memory for the buffers of a kernel.

    Kernels use the same memory one after the other, because each ends its steps with a barrier.
    """
    left = list(shared)
    memory_of: dict[Memory, Memory] = {}
    for b in kernel.shared:
        fit = [x for x in left if (x.dtype, x.length) == (b.dtype, b.length)]
        if fit:
            left.remove(fit[0])
        else:
            fit = [b._replace(name=names.new(b.name).name)]
            shared.append(fit[0])
        memory_of[b] = fit[0]
    return memory_of


def _rename_variables(
    body: Sequence[Stmt],
    known: dict[Var, Expr],
    memory: Mapping[Memory, Memory],
    names: Copies,
    part: tuple[Expr, Expr],
) -> tuple[Stmt, ...]:
    """Return statements with new variables and other memory, whose loops are distributed over a
    part of the blocks."""
    known = known | {v: names.fresh(v) for s in statements(body) for v in assigned(s)}

    def change(x: Expr) -> Expr:
        return _replace_memory(replaced(x, known), memory)

    return _with_memory(map_body(body, change), known, memory, part)


def _replace_memory(x: Expr, memory: Mapping[Memory, Memory]) -> Expr:
    def change(part: Expr) -> Expr | None:
        if isinstance(part, Load | Address) and part.buffer in memory:
            return part._replace(buffer=memory[part.buffer], index=map_expr(part.index, change))
        return None

    return map_expr(x, change)


def _with_memory(
    body: Sequence[Stmt],
    known: Mapping[Var, Expr],
    memory: Mapping[Memory, Memory],
    part: tuple[Expr, Expr],
) -> tuple[Stmt, ...]:
    def var(v: Var) -> Var:
        new = known[v]
        assert isinstance(new, Var)
        return new

    new_body: list[Stmt] = []
    for s in body:
        if isinstance(s, Store | StoreVector):
            new_body.append(s._replace(buffer=memory[s.buffer]))
        elif isinstance(s, LoadVector):
            results = tuple([var(v) for v in s.results])
            new_body.append(s._replace(buffer=memory[s.buffer], results=results))
        elif isinstance(s, Let):
            new_body.append(s._replace(var=var(s.var)))
        elif isinstance(s, If):
            then, orelse = (_with_memory(x, known, memory, part) for x in (s.then, s.orelse))
            joined = tuple([j._replace(result=var(j.result)) for j in s.joined])
            new_body.append(s._replace(then=then, orelse=orelse, joined=joined))
        elif isinstance(s, For):
            steps = _with_memory(s.body, known, memory, part)
            carried = [c._replace(var=var(c.var), result=var(c.result)) for c in s.carried]
            share = part if s.spread in ("grid", "blocks") else None
            new_body.append(
                s._replace(index=var(s.index), body=steps, carried=tuple(carried), part=share)
            )
        else:
            new_body.append(s)
    return tuple(new_body)
