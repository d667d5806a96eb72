"""Deal the elements of a map to the threads of a GPU, several to a thread at a time.

These are adjacent, and accessed by vectors, if the operands permit it. Otherwise they are one block
of threads apart, so that the threads of a warp access adjacent elements, and all loads are issued
before the first one is waited for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from accnp.compiler.loops.builder import affine, call
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
    Store,
    StoreVector,
    Var,
)
from accnp.compiler.loops.types import B1, I8
from accnp.compiler.loops.visiting import map_expr, map_statement, names_of, unlike
from accnp.compiler.unsupported import Unsupported

__all__ = ["spread"]

BYTES = 16  # of an access, at most
_ZERO = Const(0, I8)
_Body = list[Let | Store]


def spread(kernel: Kernel, threads: int, several: int, adjacent: bool) -> Kernel:
    """Return the kernel for a GPU of a kernel that computes each element, or row, on its own.

    Parameters
    ----------
    kernel : Kernel
        Its statements are assignments and one loop of independent steps over its whole range.
    threads : int
        The number of threads of a block.
    several : int
        How many elements a thread computes at a time; more than 1 only for elements.
    adjacent : bool
        Whether these are adjacent; `several` is 4 then, and all results are adjacent, too.

    Raises
    ------
    Unsupported
        If the kernel has other statements.
    """
    *before, loop = kernel.body
    if not isinstance(loop, For) or not loop.independent or kernel.stack or kernel.heap:
        raise Unsupported("a kernel whose steps are not independent")
    whole_range = (loop.start, loop.stop, loop.step) == (kernel.first, kernel.last, 1)
    if not whole_range or not all(isinstance(s, Let) for s in before):
        raise Unsupported("a kernel with several loops")
    loops: Sequence[Let | For] = [loop._replace(start=_ZERO, spread="grid")]
    if several > 1:
        body = [s for s in loop.body if isinstance(s, Let | Store)]
        if len(body) < len(loop.body):
            raise Unsupported("a kernel that is not a map over single elements")
        made = _Spread(kernel, loop.index, body, threads)
        loops = made.adjacent(several) if adjacent else made.apart(several)
    return kernel._replace(body=(*before, *loops), threads=threads)


class _Spread:
    def __init__(self, kernel: Kernel, index: Var, body: _Body, threads: int) -> None:
        self.kernel = kernel
        self.index = index
        self.body = body
        self.threads = threads
        self.names = names_of(kernel._replace(body=kernel.body[:-1]))
        self.scaled: dict[tuple[Var, int], Var] = {}  # strides times integers

    def fresh(self, v: Var) -> Var:
        name = unlike(v.name, self.names)
        self.names.add(name)
        return v._replace(name=name)

    def new(self, name: str) -> Var:
        return self.fresh(Var(name))

    def copy(self, at: Expr) -> _Body:
        """The statements for the element at a place, with variables of their own."""
        known: dict[Var, Expr] = {self.index: at}

        def change(x: Expr) -> Expr | None:
            if isinstance(x, Var):
                return known.get(x)
            return self.shifted(x, at) if isinstance(x, Index) else None

        found: _Body = []
        for s in self.body:
            made = map_statement(s, lambda x: map_expr(x, change))
            if isinstance(made, Let):
                var = known[made.var] = self.fresh(made.var)
                made = made._replace(var=var)
            assert isinstance(made, Let | Store)
            found.append(made)
        return found

    @property
    def strides(self) -> list[Let]:
        return [Let(v, affine((stride, k))) for (stride, k), v in self.scaled.items()]

    def times(self, stride: int | Var, k: int) -> int | Var:
        """A stride times an integer."""
        if isinstance(stride, int):
            return stride * k
        if k != 1 and (stride, k) not in self.scaled:
            self.scaled[stride, k] = self.fresh(stride)
        return stride if k == 1 else self.scaled[stride, k]

    def shifted(self, x: Index, at: Expr) -> Index:
        """An affine index with the place of an element for the index of the loop."""
        assert isinstance(at, Var | Index)
        moved = at if isinstance(at, Index) else Index(((at, 1),))
        terms: list[tuple[Var, int | Var]] = []
        constant = x.constant
        for v, k in x.terms:
            assert k != self.index
            if v != self.index:
                terms.append((v, k))
                continue
            terms += [(w, self.times(k, m)) for w, m in moved.terms if isinstance(m, int)]
            if isinstance(k, int):
                constant += k * moved.constant
            elif moved.constant:
                terms.append((k, moved.constant))
        return Index(tuple(terms), constant)

    def single(self, start: Expr) -> For:
        """A loop of one element at a time, from one on."""
        i = self.new("i")
        body = tuple(self.copy(i))
        return For(i, start, self.kernel.last, 1, body, independent=True, spread="grid")

    def adjacent(self, several: int) -> list[Let | For]:
        """Some elements that are adjacent, if all addresses permit it, and single ones."""
        u = self.new("u")
        places = [affine((u, several), constant=k) for k in range(several)]
        copies = [self.copy(place) for place in places]
        loads: list[LoadVector] = []
        rest: list[list[Let]] = [[] for _ in copies]
        stores: list[StoreVector] = []
        moved: dict[Buffer, None] = {}
        for each in zip(*copies, strict=True):
            first = each[0]
            if isinstance(first, Store):
                assert isinstance(first.buffer, Buffer)
                assert first.index == places[0]
                moved[first.buffer] = None
                values = [s.value for s in each if isinstance(s, Store)]
                for k, part in _parts(first.buffer, several):
                    stores.append(StoreVector(first.buffer, places[k], tuple(values[k : k + part])))
                continue
            lets = [s for s in each if isinstance(s, Let)]
            buffer = _loaded(first, places[0])
            if buffer is None:
                for statements, s in zip(rest, lets, strict=True):
                    statements.append(s)
                continue
            moved[buffer] = None
            for k, part in _parts(buffer, several):
                results = tuple([s.var for s in lets[k : k + part]])
                loads.append(LoadVector(results, buffer, places[k]))
        aligned = [Call("aligned", (Address(b, _ZERO),), B1) for b in moved]
        test = functools.reduce(lambda x, y: call("and", x, y), aligned)
        groups = self.new("groups")
        count = call("shr", self.kernel.last, Const(several.bit_length() - 1, I8))
        body = (*loads, *[s for statements in rest for s in statements], *stores)
        return [
            *self.strides,
            Let(groups, call("select", test, count, _ZERO)),
            For(u, _ZERO, groups, 1, body, independent=True, spread="grid"),
            self.single(affine((groups, several))),
        ]

    def apart(self, several: int) -> list[Let | For]:
        """Some elements that are a block of threads apart, and single ones."""
        tile = several * self.threads
        b, t, whole = self.new("b"), self.new("t"), self.new("whole")
        places = [affine((b, 1), (t, 1), constant=k * self.threads) for k in range(several)]
        copies = [self.copy(place) for place in places]
        early = [s for copy in copies for s in copy if _is_early(s)]
        late = [s for copy in copies for s in _stores_last(copy) if not _is_early(s)]
        inner = For(
            t, _ZERO, Const(self.threads, I8), 1, (*early, *late), independent=True,
            spread="threads",
        )  # fmt: skip
        return [
            Let(whole, call("and", self.kernel.last, Const(-tile, I8))),
            For(b, _ZERO, whole, tile, (inner,), independent=True, spread="blocks"),
            self.single(whole),
        ]


def _parts(buffer: Buffer, several: int) -> list[tuple[int, int]]:
    """The accesses to adjacent elements: the first element of each, and how many it has."""
    part = min(several, BYTES // buffer.dtype.size)
    return [(k, part) for k in range(0, several, part)]


def _loaded(s: Let, index: Expr) -> Buffer | None:
    """The buffer of which an assignment loads the element at an index."""
    x = s.value
    if not isinstance(x, Load) or x.index != index or not isinstance(x.buffer, Buffer):
        return None
    return None if x.buffer.dtype.kind == "complex" else x.buffer


def _is_early(s: Let | Store) -> bool:
    """Whether a statement is a load whose place is known at once."""
    return isinstance(s, Let) and isinstance(s.value, Load) and isinstance(s.value.index, Index)


def _stores_last(body: _Body) -> _Body:
    return [*[s for s in body if isinstance(s, Let)], *[s for s in body if isinstance(s, Store)]]
