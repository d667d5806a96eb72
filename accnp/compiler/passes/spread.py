"""Pass that distributes the elements of a map over the threads of a GPU.

`specs/grid.py` applies it to the kernel of a map whose elements or rows are independent. The result
is a kernel for a GPU: its loops have the mark `For.spread`, which tells the back end which indices
a thread computes. A thread computes several elements. They are adjacent, and are accessed with
vector loads and stores, if the memory layout of the operands permits it. Otherwise they are one
thread block apart, so that the threads of a warp access adjacent elements, and a thread issues all
its loads before it uses the first result. `patch.py` and `tile.py` handle other memory layouts.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from accnp.compiler.loops.builder import affine, call, cast, plus
from accnp.compiler.loops.ir import (
    Address,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    LoadVector,
    Stmt,
    Store,
    StoreVector,
    Var,
)
from accnp.compiler.loops.types import B1, I4, I8
from accnp.compiler.passes.copies import Body, Copies, interleave_copies
from accnp.compiler.unsupported import Unsupported

__all__ = ["collapse", "nest_of", "spread"]

BYTES = 16  # the maximum size of an access
_ZERO = Const(0, I8)


def spread(kernel: Kernel, threads: int, several: int, adjacent: bool) -> Kernel:
    """Return a GPU kernel that computes a map whose elements or rows are independent.

    Parameters
    ----------
    kernel : Kernel
        Assignments, followed by one loop over its range, or by a nest of loops whose sizes are
        arguments. The range of the result is the steps of the whole nest. No step depends on
        another one.
    threads : int
        Number of threads of a block.
    several : int
        Number of elements that a thread computes together; must be 1 for rows.
    adjacent : bool
        Whether these are adjacent along the innermost loop, whose size is a multiple of `several`
        if there are other loops. Then `several` is 4, and all results are adjacent too.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    before, nest = nest_of(kernel)
    if several == 1:
        loops: Sequence[Let | For] = [_distribute_single_steps(kernel, nest)]
    else:
        body = [s for s in nest[-1].body if isinstance(s, Let | Store)]
        if len(body) < len(nest[-1].body):
            raise Unsupported("a kernel that is not a map over single elements")
        map_ = _Distribution(kernel, nest, body, threads)
        loops = map_.adjacent(several) if adjacent else map_.block_apart(several)
    return kernel._replace(body=(*before, *loops), threads=threads)


def nest_of(kernel: Kernel) -> tuple[list[Stmt], list[For]]:
    """Return the assignments of a kernel, and the loops that follow: one loop over its whole range,
    or a nest of loops whose sizes are arguments.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    *before, loop = kernel.body
    if not isinstance(loop, For) or kernel.stack or kernel.heap:
        raise Unsupported("a kernel without a loop over its range")
    if not all(isinstance(s, Let) for s in before):
        raise Unsupported("a kernel with several loops")
    if (loop.start, loop.stop, loop.step) == (kernel.first, kernel.last, 1):
        return before, [loop]
    nest: list[For] = []
    inner: Stmt | None = loop
    while isinstance(inner, For) and inner.stop in kernel.integers:
        if inner.start != _ZERO or inner.step != 1 or inner.carried:
            break
        nest.append(inner)
        inner = inner.body[0] if len(inner.body) == 1 else None
    if not nest:
        raise Unsupported("a kernel without a loop over its range")
    return before, nest


def collapse(
    kernel: Kernel, names: Copies, nest: Sequence[For], flat: Expr
) -> tuple[list[Let], dict[Var, Expr]]:
    """Return assignments that compute the indices of a nest from the number of a step, and the
    expressions for these indices."""
    lets: list[Let] = []
    known: dict[Var, Expr] = {}
    for loop in reversed(nest[1:]):
        above, index = names.new("q"), names.fresh(loop.index)
        rest = call("sub", flat, call("mul", above, loop.stop))
        lets.append(Let(above, call("floordiv", flat, loop.stop)))
        lets.append(Let(index, cast(cast(rest, I4), I8) if kernel.narrow else rest))
        known[loop.index] = index
        flat = above
    return lets, {nest[0].index: flat, **known}


def _distribute_single_steps(kernel: Kernel, nest: Sequence[For]) -> For:
    """Return a loop that distributes single steps, which may contain any statements."""
    if len(nest) == 1:
        return nest[0]._replace(start=_ZERO, stop=kernel.last, independent=True, spread="grid")
    names = Copies(kernel)
    i = names.new("i")
    lets, known = collapse(kernel, names, nest, i)
    same = [Let(v, x) for v, x in known.items()]
    body = (*lets, *same, *nest[-1].body)
    return For(i, _ZERO, kernel.last, 1, body, independent=True, spread="grid")


class _Distribution:
    """A map whose elements are distributed, and the names of new variables."""

    def __init__(self, kernel: Kernel, nest: Sequence[For], body: Body, threads: int) -> None:
        self.kernel = kernel
        self.nest = nest
        self.body = body
        self.threads = threads
        self.names = Copies(kernel._replace(body=kernel.body[:-1]))
        self.new = self.names.new

    def copies(self, places: Sequence[Expr]) -> Body:
        """Return the statements for the steps with these numbers."""
        lets: Body = []
        copies: list[Body] = []
        for place in places:
            indices, known = collapse(self.kernel, self.names, self.nest, place)
            lets += indices
            copies.append(self.names.copy(self.body, known))
        return [*lets, *interleave_copies(copies)]

    def single(self, start: Expr) -> For:
        """Return a loop over single elements, from an element on."""
        i = self.new("i")
        body = tuple(self.copies([i]))
        return For(i, start, self.kernel.last, 1, body, independent=True, spread="grid")

    def adjacent(self, several: int) -> list[Let | For]:
        """Return a loop over groups of adjacent elements, which runs if all addresses are aligned,
        and a loop over the remaining elements."""
        u, first = self.new("u"), self.new("i")
        indices, known = collapse(self.kernel, self.names, self.nest, first)
        along = self.nest[-1].index
        places = [plus(known[along], Const(k, I8)) for k in range(several)]
        copies = [self.names.copy(self.body, {**known, along: place}) for place in places]
        loads: list[LoadVector] = []
        rest: list[Body] = [[] for _ in copies]
        stores: list[StoreVector] = []
        moved: dict[Buffer, None] = {}
        for each in zip(*copies, strict=True):
            s = each[0]
            if isinstance(s, Store):
                assert isinstance(s.buffer, Buffer)
                moved[s.buffer] = None
                values = [x.value for x in each if isinstance(x, Store)]
                for k, part in _adjacent_accesses(s.buffer, several):
                    at = plus(s.index, Const(k, I8))
                    stores.append(StoreVector(s.buffer, at, tuple(values[k : k + part])))
                continue
            assignments = [s for s in each if isinstance(s, Let)]
            buffer = _adjacent(assignments)
            if buffer is None:
                for statements, one in zip(rest, assignments, strict=True):
                    statements.append(one)
                continue
            moved[buffer] = None
            for k, part in _adjacent_accesses(buffer, several):
                results = tuple([s.var for s in assignments[k : k + part]])
                value = assignments[k].value
                assert isinstance(value, Load)
                loads.append(LoadVector(results, buffer, value.index))
        aligned = [Call("aligned", (Address(b, _ZERO),), B1) for b in moved]
        test = functools.reduce(lambda x, y: call("and", x, y), aligned)
        groups = self.new("groups")
        count = call("shr", self.kernel.last, Const(several.bit_length() - 1, I8))
        place = Let(first, affine((u, several)))
        body = (place, *indices, *loads, *[s for statements in rest for s in statements], *stores)
        return [
            Let(groups, call("select", test, count, _ZERO)),
            For(u, _ZERO, groups, 1, body, independent=True, spread="grid"),
            self.single(affine((groups, several))),
        ]

    def block_apart(self, several: int) -> list[Let | For]:
        """Return a loop over groups of elements that are a thread block apart, and a loop over the
        remaining elements."""
        tile = several * self.threads
        b, t, whole = self.new("b"), self.new("t"), self.new("whole")
        places = [affine((b, 1), (t, 1), constant=k * self.threads) for k in range(several)]
        body = tuple(self.copies(places))
        inner = For(t, _ZERO, Const(self.threads, I8), 1, body, independent=True, spread="threads")
        return [
            Let(whole, call("and", self.kernel.last, Const(-tile, I8))),
            For(b, _ZERO, whole, tile, (inner,), independent=True, spread="blocks"),
            self.single(whole),
        ]


def _adjacent_accesses(buffer: Buffer, several: int) -> list[tuple[int, int]]:
    """Return the accesses to adjacent elements: the first element of each, and its length."""
    part = min(several, BYTES // buffer.dtype.size)
    return [(k, part) for k in range(0, several, part)]


def _adjacent(each: Sequence[Let]) -> Buffer | None:
    """Return the buffer from which assignments load adjacent elements, or None."""
    loads = [s.value for s in each if isinstance(s.value, Load)]
    if not loads or not isinstance(loads[0].index, Var | Index):
        return None
    buffer, start = loads[0].buffer, loads[0].index
    places = [plus(start, Const(k, I8)) for k in range(len(each))]
    if [x.index for x in loads] != places or not isinstance(buffer, Buffer):
        return None
    return None if buffer.dtype.kind == "complex" else buffer
