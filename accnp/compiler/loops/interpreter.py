"""Interpreter of the loop IR in NumPy, which is the reference for both back ends in tests.

Every access is checked against the bounds of its buffer, and independent steps run in reverse
order. In kernels for GPUs, threads run one after the other, except in loops with barriers or with
functions of several threads, whose threads run together (`lockstep.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accnp.compiler.library import plain
from accnp.compiler.loops.functions import FUNCTIONS, identity
from accnp.compiler.loops.ir import (
    Address,
    Break,
    Buffer,
    Call,
    Cast,
    Const,
    Do,
    Expr,
    Fold,
    FoldRows,
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
    Reduction,
    Run,
    Share,
    Stmt,
    Store,
    StoreVector,
    Transpose,
    Var,
    While,
    dtype,
)
from accnp.compiler.loops.lockstep import MEETINGS, Block, Member
from accnp.compiler.loops.printer import print_expr
from accnp.compiler.loops.types import DType, Pointer, dtype_of
from accnp.compiler.loops.visiting import statements
from accnp.ir.op import COMBINES

_LEFT = Var("values of a loop that is left")  # cannot be the name of a variable of a kernel

__all__ = ["AlignmentError", "BoundsError", "fold", "run"]


class BoundsError(IndexError):
    """An access outside of a buffer."""


class AlignmentError(ValueError):
    """An access to several elements at an address that is not a multiple of their size."""


def run(
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    integers: Mapping[str, int],
    first: int,
    last: int,
    kernels: Mapping[str, Kernel] | None = None,
) -> None:
    """Run the steps first..last of a kernel.

    Parameters
    ----------
    kernel : Kernel
        A kernel that `verify` accepts.
    arrays : mapping of str to numpy.ndarray
        One-dimensional arrays for the buffer arguments, by name, which the kernel may write to.
    integers : mapping of str to int
        The integer arguments, by name.
    first, last : int
        The steps.
    kernels : mapping of str to Kernel, optional
        The kernels that it calls, by name.

    Raises
    ------
    BoundsError
        If an access is outside of its buffer.
    AlignmentError
        If an access to several elements is at an address that is not a multiple of their size.
    OverflowError
        If an index has more than 64 bits.
    """
    values = {kernel.first: first, kernel.last: last}
    values |= {v: integers[v.name] for v in kernel.integers}
    memory = {b: arrays[b.name] for b in kernel.buffers}
    memory |= {b: np.zeros(b.length + 64, b.dtype.numpy) for b in kernel.stack}
    memory |= {b: np.zeros(b.length, b.dtype.numpy) for b in kernel.shared}
    memory |= {b: np.zeros(values[n], b.dtype.numpy) for b, n in kernel.heap}
    with np.errstate(all="ignore"):
        _Machine(memory, values, kernels or {}, kernel.threads).block(kernel.body)


def _join(combine: str, x: Any, y: Any) -> Any:
    found = COMBINES[combine]
    if found.order:
        return np.where((y > x if found.order == ">" else y < x) | (y != y), y, x)
    return found.reference(x, y)


def fold(combine: str, values: np.ndarray) -> Any:
    """Return the reduction of values in the order that the IR specifies."""
    n = COMBINES[combine].lanes
    rows = -(-len(values) // n)
    of = dtype_of(values.dtype)
    assert of is not None
    padded = np.full(rows * n, identity(combine, of), values.dtype)
    padded[: len(values)] = values
    lanes = np.full(n, identity(combine, of), values.dtype)
    for row in padded.reshape(rows, n):
        lanes = _join(combine, lanes, row).astype(values.dtype)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = _join(combine, lanes[:half], lanes[half:]).astype(values.dtype)
    return lanes[0]


def _cast(x: Any, to: DType) -> Any:
    x, of = np.asarray(x), to.numpy
    if to.kind == "bool":
        return (x != 0)[()]
    if x.dtype.kind == "f" and of.kind in "iu":
        info = np.iinfo(of)
        if np.isnan(x):
            return of.type(0)
        return of.type(min(max(int(np.clip(x, -1e30, 1e30)), info.min), info.max))
    return x.astype(of)[()]


class _Left(Exception):
    """Raised to leave the innermost loop."""


class _Place(NamedTuple):
    """An address: an array, and the index of an element."""

    array: np.ndarray
    at: int


class _Machine:
    def __init__(
        self,
        memory: dict[Buffer, np.ndarray],
        values: dict[Var, Any],
        kernels: Mapping[str, Kernel],
        threads: int = 0,
    ) -> None:
        self.threads = threads  # of a block of a GPU
        self.memory = memory
        self.values = values
        self.kernels = kernels
        self.member: Member | None = None
        self.deep = 0  # loops around whose steps are those of threads

    def block(self, body: Sequence[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        if isinstance(s, Let):
            self.values[s.var] = self.expr(s.value)
        elif isinstance(s, Store):
            place = self.place(s.buffer, s.index)
            place.array[place.at] = self.expr(s.value)
        elif isinstance(s, LoadVector):
            for v, x in zip(
                s.results, self.adjacent(s.buffer, s.index, len(s.results)), strict=True
            ):
                self.values[v] = x
        elif isinstance(s, StoreVector):
            values = [self.expr(v) for v in s.values]
            self.adjacent(s.buffer, s.index, len(values))[:] = values
        elif isinstance(s, Prefetch):
            self.expr(s.index)
        elif isinstance(s, FoldRows):
            self.columns(s)
        elif isinstance(s, Transpose):
            self.transpose(s)
        elif isinstance(s, For):
            self.loop(s)
        elif isinstance(s, While):
            self.condition_loop(s)
        elif isinstance(s, Do) and s.function in MEETINGS:
            self.meet(s)
        elif isinstance(s, Do):
            found = plain.NAMESPACE[s.function](*[self.passed(a) for a in s.args])
            if s.result is not None:
                is_address = isinstance(s.result.dtype, Pointer)
                self.values[s.result] = _Place(found, 0) if is_address else found
        elif isinstance(s, Run | Share):
            self.run(s)
        elif isinstance(s, Break):
            self.values[_LEFT] = [self.expr(v) for v in s.values]
            raise _Left
        elif isinstance(s, If):
            test = bool(self.expr(s.test))
            self.block(s.then if test else s.orelse)
            joined = [self.expr(j.then if test else j.orelse) for j in s.joined]
            for j, value in zip(s.joined, joined, strict=True):
                self.values[j.result] = value
        elif isinstance(s, Reduce):
            self.reduce(s)
        elif isinstance(s, Fold):
            start, count = int(self.expr(s.start)), int(self.expr(s.extent))
            base = self.base(s.buffer)
            for at in (start, start + count - 1) if count else ():
                self.check(s.buffer, base, at)
            at = base.at + start
            self.values[s.result] = self.folded(s, base.array[at : at + count])

    def meet(self, s: Do) -> None:
        """Call a function together with other threads of a block."""
        if self.member is None:  # all threads have completed the loops before
            if self.deep or s.function != "barrier":
                raise NotImplementedError(f"run: {s.function} outside of a loop over threads")
            return
        found = self.member.meet(s.function, [self.expr(a) for a in s.args])
        if s.result is not None:
            self.values[s.result] = found

    def together(self, s: For) -> None:
        """Run a loop over the threads of a block, which wait for each other."""
        steps = self.steps(s)

        def work(member: Member) -> None:
            values = {**self.values, s.index: steps[member.number]}
            one = _Machine(self.memory, values, self.kernels, self.threads)
            one.member = member
            one.block(s.body)

        Block(len(steps)).run(work)

    def run(self, s: Run | Share) -> None:
        """Run another kernel, step by step."""
        kernel = self.kernels[s.kernel]
        first, last = (0, s.count) if isinstance(s, Share) else (s.first, s.last)
        limits = [int(self.expr(x)) if not isinstance(x, int) else x for x in (first, last)]
        values: dict[Var, Any] = {kernel.first: limits[0], kernel.last: limits[1]}
        memory = {b: np.zeros(b.length + 64, b.dtype.numpy) for b in kernel.stack}
        for a, x in zip(kernel.arguments, s.args, strict=True):
            if isinstance(a, Buffer):
                memory[a] = self.passed(x)
            else:
                values[a] = int(self.expr(x))
        memory |= {b: np.zeros(values[n], b.dtype.numpy) for b, n in kernel.heap}
        _Machine(memory, values, self.kernels).block(kernel.body)

    def passed(self, x: Expr) -> Any:
        """Return an argument of a procedure; an address becomes the array from that element on."""
        found = self.expr(x)
        return found.array[found.at :] if isinstance(found, _Place) else found

    def columns(self, s: FoldRows) -> None:
        start, source = int(self.expr(s.start)), self.memory[s.buffer]
        places = self.memory[s.places][: int(self.expr(s.rows))]
        for c in range(int(self.expr(s.columns))):
            column = [start + int(k) + c for k in places]
            for at in column:
                self.check(s.buffer, _Place(source, 0), at)
            self.memory[s.to][c] = fold(s.combine, source[column])

    def transpose(self, s: Transpose) -> None:
        start, step = int(self.expr(s.start)), int(self.expr(s.step))
        to, source = self.memory[s.to], self.memory[s.buffer]
        for r in range(int(self.expr(s.rows))):
            for c in range(int(self.expr(s.columns))):
                at = start + r + step * c
                self.check(s.buffer, _Place(source, 0), at)
                to[s.width * r + c] = source[at]

    def reduce(self, s: Reduce) -> None:
        found: list[list[Any]] = [[] for _ in s.folds]
        for j in reversed(range(int(self.expr(s.extent)))):
            self.values[s.index] = j
            self.block(s.body)
            for f, values in zip(s.folds, found, strict=True):
                values.append(self.expr(f.value))
        for f, values in zip(s.folds, found, strict=True):
            self.values[f.result] = self.folded(f, np.array(values[::-1]))

    def folded(self, s: Reduction | Fold, found: np.ndarray) -> Any:
        assert isinstance(s.result.dtype, DType)
        return fold(s.combine, found.astype(s.result.dtype.numpy))

    def condition_loop(self, s: While) -> None:
        self.begin(s)
        try:
            while self.expr(s.test):
                self.step(s)
        except _Left:
            self.leave(s)
            return
        self.end(s)

    def begin(self, s: For | While) -> None:
        start = [self.expr(c.start) for c in s.carried]
        for c, value in zip(s.carried, start, strict=True):
            self.values[c.var] = value

    def step(self, s: For | While) -> None:
        self.block(s.body)
        following = [self.expr(c.following) for c in s.carried]
        for c, value in zip(s.carried, following, strict=True):
            self.values[c.var] = value

    def end(self, s: For | While) -> None:
        for c in s.carried:
            self.values[c.result] = self.values[c.var]

    def leave(self, s: For | While) -> None:
        for c, value in zip(s.carried, self.values[_LEFT], strict=True):
            self.values[c.result] = value

    def loop(self, s: For) -> None:
        if s.spread == "threads" and any(
            isinstance(x, Do) and x.function in MEETINGS for x in statements(s.body)
        ):
            self.together(s)
            return
        self.begin(s)
        steps = self.steps(s)
        self.deep += s.spread in ("grid", "threads")
        try:
            for i in reversed(steps) if s.independent else steps:
                self.values[s.index] = i
                self.step(s)
        except _Left:
            self.leave(s)
        else:
            self.end(s)
        self.deep -= s.spread in ("grid", "threads")

    def steps(self, s: For) -> Sequence[int]:
        found = range(int(self.expr(s.start)), int(self.expr(s.stop)), s.step)
        if s.part is None:
            return found
        block, blocks = [int(self.expr(x)) for x in s.part]
        each = self.threads if s.spread == "grid" else 1
        return [i for k, i in enumerate(found) if k // each % blocks == block]

    def base(self, memory: Memory) -> _Place:
        return self.values[memory] if isinstance(memory, Var) else _Place(self.memory[memory], 0)

    def place(self, memory: Memory, index: Expr) -> _Place:
        base, at = self.base(memory), int(self.expr(index))
        self.check(memory, base, at)
        return _Place(base.array, base.at + at)

    def adjacent(self, buffer: Memory, index: Expr, count: int) -> np.ndarray:
        """Return a view of the elements of a vector access, after checking its alignment."""
        array, at = self.place(buffer, index)
        base = self.base(buffer)
        self.check(buffer, base, at - base.at + count - 1)
        found = array[at : at + count]
        if found.ctypes.data % found.nbytes:
            raise AlignmentError(f"run: {buffer.name}[{at}] is not aligned for {count} elements")
        return found

    def check(self, memory: Memory, base: _Place, at: int) -> None:
        size = len(base.array) - base.at
        if not -base.at <= at < size:
            raise BoundsError(f"run: {memory.name}[{at}] of {size} elements")

    def expr(self, x: Expr) -> Any:
        if isinstance(x, Const):
            return x.dtype.numpy.type(x.value) if isinstance(x.dtype, DType) else None
        if isinstance(x, Var):
            value = self.values[x]
            return x.dtype.numpy.type(value) if isinstance(x.dtype, DType) else value
        if isinstance(x, Load):
            place = self.place(x.buffer, x.index)
            return place.array[place.at]
        if isinstance(x, Address):
            base = self.base(x.buffer)
            return _Place(base.array, base.at + int(self.expr(x.index)))
        if isinstance(x, Index):
            terms = [int(self.values[v]) * int(self.values.get(k, k)) for v, k in x.terms]  # type: ignore[arg-type]
            found = sum(terms) + x.constant
            if not -(1 << 63) <= found < 1 << 63:
                raise OverflowError(f"run: {print_expr(x)} has more than 64 bits: {found}")
            return np.int64(found)
        if isinstance(x, Cast):
            return _cast(self.expr(x.value), x.dtype)
        assert isinstance(x, Call)
        if x.function == "asked":
            return np.int64(0)
        function = FUNCTIONS.get(x.function)
        takes = function is not None and function.rule([dtype(a) for a in x.args]) is not None  # type: ignore[misc]
        reference = function.reference if function and takes else plain.NAMESPACE[x.function]
        found = reference(*[self.passed(a) for a in x.args])
        assert isinstance(x.dtype, DType)
        return np.asarray(found).astype(x.dtype.numpy)[()]
