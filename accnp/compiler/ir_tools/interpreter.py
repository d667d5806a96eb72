"""Interpreter of the loop IR in NumPy: the reference for both back ends in tests.

`run` executes a kernel on NumPy arrays. The commands `run` and `bisect` of `python -m
accnp.compiler` also use it.

Loads and stores are checked against the bounds of their buffers. Steps of independent loops run in
reverse order, so that tests find dependences between them. The threads of a GPU kernel run one
after the other, except in loops with barriers or warp functions, whose threads run together
(`block_threads.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from accnp.compiler.ir_tools import python_functions
from accnp.compiler.ir_tools.block_threads import SYNCHRONIZING, Block, BlockThread
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
from accnp.compiler.loops.printer import print_expr
from accnp.compiler.loops.types import DType, Pointer, dtype_of
from accnp.compiler.loops.visiting import statements
from accnp.ir.op import COMBINES

__all__ = ["AlignmentError", "BoundsError", "reduce_in_order", "run"]


class BoundsError(IndexError):
    """An access outside the bounds of a buffer."""


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
    """Run the steps of a kernel from `first` up to, but not including, `last`.

    Parameters
    ----------
    kernel : Kernel
        A kernel that `verify` accepts.
    arrays : mapping of str to numpy.ndarray
        One-dimensional arrays for the buffer arguments, by name. The kernel may write to them.
    integers : mapping of str to int
        The integer arguments, by name.
    first, last : int
        The range of steps.
    kernels : mapping of str to Kernel, optional
        The kernels that this kernel calls, by name.

    Raises
    ------
    BoundsError
        If an access is outside the bounds of its buffer.
    AlignmentError
        If an access to several elements is at an address that is not a multiple of their size.
    OverflowError
        If an index has more than 64 bits.
    """
    values = {kernel.first: first, kernel.last: last}
    values |= {v: integers[v.name] for v in kernel.integers}
    memory = {b: arrays[b.name] for b in kernel.buffers}
    # Buffers on the stack have room for whole vectors after their last element (`ir.Buffer`).
    memory |= {b: np.zeros(b.length + 64, b.dtype.numpy) for b in kernel.stack}
    memory |= {b: np.zeros(b.length, b.dtype.numpy) for b in kernel.shared}
    memory |= {b: np.zeros(values[n], b.dtype.numpy) for b, n in kernel.heap}
    with np.errstate(all="ignore"):
        _Machine(memory, {**values}, kernels or {}, kernel.threads).block(kernel.body)


def _combine(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return one step of a reduction for each element of two arrays."""
    combine = COMBINES[name]
    if combine.order:
        later = y > x if combine.order == ">" else y < x
        return np.where(later | (y != y), y, x)
    return combine.reference(x, y)


def reduce_in_order(name: str, values: np.ndarray) -> np.generic:
    """Return the reduction of values in the order that the IR specifies."""
    n = COMBINES[name].lanes
    rows = -(-len(values) // n)
    of = dtype_of(values.dtype)
    assert of is not None
    padded = np.full(rows * n, identity(name, of), values.dtype)
    padded[: len(values)] = values
    lanes = np.full(n, identity(name, of), values.dtype)
    for row in padded.reshape(rows, n):
        lanes = _combine(name, lanes, row).astype(values.dtype)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = _combine(name, lanes[:half], lanes[half:]).astype(values.dtype)
    return lanes[0]


def _cast(x: np.generic, to: DType) -> np.generic:
    """Convert a number as `ir.Cast` specifies; NaN becomes 0 as an integer."""
    value, of = np.asarray(x), to.numpy
    if to.kind == "bool":
        return cast("np.generic", (value != 0)[()])
    if value.dtype.kind == "f" and of.kind in "iu":
        info = np.iinfo(of)
        if np.isnan(value):
            return of.type(0)
        return of.type(min(max(int(np.clip(value, -1e30, 1e30)), info.min), info.max))
    return cast("np.generic", value.astype(of)[()])


class _Left(Exception):
    """Raised by a `Break` statement, and caught by the innermost loop."""


class _Place(NamedTuple):
    """An address: an array, and the index of an element."""

    array: np.ndarray
    at: int


# The value of a variable; None is the null address.
_Value = np.generic | int | _Place | None


class _Machine:
    """The state of a running kernel: the contents of its buffers and the values of its variables.

    There is a method for each class of statement, and `expr` evaluates expressions.
    """

    def __init__(
        self,
        memory: dict[Buffer, np.ndarray],
        values: dict[Var, _Value],
        kernels: Mapping[str, Kernel],
        threads: int = 0,
    ) -> None:
        self.threads = threads  # the number of threads of a GPU block
        self.memory = memory
        self.values = values
        self.kernels = kernels
        self.thread: BlockThread | None = None  # the GPU thread, if the threads run together
        self.left: list[_Value] = []  # the values that a `Break` passes to its loop
        self.deep = 0  # the number of enclosing loops over GPU blocks or threads

    def block(self, body: Sequence[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Stmt) -> None:  # noqa: C901
        if isinstance(s, Let):
            self.values[s.var] = self.expr(s.value)
        elif isinstance(s, Store):
            place = self.place(s.buffer, s.index)
            place.array[place.at] = self.number(s.value)
        elif isinstance(s, LoadVector):
            for v, x in zip(
                s.results, self.vector_view(s.buffer, s.index, len(s.results)), strict=True
            ):
                self.values[v] = x
        elif isinstance(s, StoreVector):
            values = [self.number(v) for v in s.values]
            self.vector_view(s.buffer, s.index, len(values))[:] = values
        elif isinstance(s, Prefetch):
            self.expr(s.index)
        elif isinstance(s, ReduceColumns):
            self.reduce_columns(s)
        elif isinstance(s, Transpose):
            self.transpose(s)
        elif isinstance(s, For):
            self.for_loop(s)
        elif isinstance(s, While):
            self.while_loop(s)
        elif isinstance(s, Do) and s.function in SYNCHRONIZING:
            self.synchronize(s)
        elif isinstance(s, Do):
            result = python_functions.NAMESPACE[s.function](*[self.argument(a) for a in s.args])
            if s.result is not None and isinstance(s.result.dtype, Pointer):
                assert isinstance(result, np.ndarray)
                self.values[s.result] = _Place(result, 0)
            elif s.result is not None:
                assert isinstance(result, np.generic | int)
                self.values[s.result] = result
        elif isinstance(s, Run | Share):
            self.run(s)
        elif isinstance(s, Break):
            self.left = [self.expr(v) for v in s.values]
            raise _Left
        elif isinstance(s, If):
            test = bool(self.number(s.test))
            self.block(s.then if test else s.orelse)
            joined = [self.expr(j.then if test else j.orelse) for j in s.joined]
            for j, value in zip(s.joined, joined, strict=True):
                self.values[j.result] = value
        elif isinstance(s, Reduce):
            self.reduce(s)
        else:
            start, count = self.integer(s.start), self.integer(s.extent)
            base = self.base(s.buffer)
            for at in (start, start + count - 1) if count else ():
                self.check_bounds(s.buffer, base, at)
            at = base.at + start
            self.values[s.result] = self.reduce_values(s, base.array[at : at + count])

    def synchronize(self, s: Do) -> None:
        """Call a barrier or a warp function, which the threads of a block call together."""
        # Outside of loops over threads, a barrier has no effect: earlier loops have completed.
        if self.thread is None:
            if self.deep or s.function != "barrier":
                raise NotImplementedError(f"run: {s.function} outside of a loop over threads")
            return
        value = self.thread.synchronize(s.function, [self.number(a) for a in s.args])
        if s.result is not None:
            self.values[s.result] = value

    def run_threads_together(self, s: For) -> None:
        """Run a loop over the threads of a block whose threads wait for each other."""
        steps = self.steps(s)

        def work(thread: BlockThread) -> None:
            values: dict[Var, _Value] = {**self.values, s.index: steps[thread.index]}
            one = _Machine(self.memory, values, self.kernels, self.threads)
            one.thread = thread
            one.block(s.body)

        Block(len(steps)).run(work)

    def run(self, s: Run | Share) -> None:
        """Run another kernel on this thread."""
        kernel = self.kernels[s.kernel]
        first, last = (0, s.count) if isinstance(s, Share) else (s.first, s.last)
        limits = [x if isinstance(x, int) else self.integer(x) for x in (first, last)]
        values = {kernel.first: limits[0], kernel.last: limits[1]}
        memory = {b: np.zeros(b.length + 64, b.dtype.numpy) for b in kernel.stack}
        for a, x in zip(kernel.arguments, s.args, strict=True):
            if isinstance(a, Buffer):
                memory[a] = self.array(x)
            else:
                values[a] = self.integer(x)
        memory |= {b: np.zeros(values[n], b.dtype.numpy) for b, n in kernel.heap}
        _Machine(memory, {**values}, self.kernels).block(kernel.body)

    def argument(self, x: Expr) -> np.ndarray | np.generic | int | None:
        """Evaluate an argument of a call; an address becomes the array from that element on."""
        value = self.expr(x)
        return value.array[value.at :] if isinstance(value, _Place) else value

    def array(self, x: Expr) -> np.ndarray:
        """Evaluate an address; returns the array from that element on."""
        value = self.argument(x)
        assert isinstance(value, np.ndarray)
        return value

    def number(self, x: Expr) -> np.generic:
        """Evaluate an expression that is not an address."""
        value = self.expr(x)
        assert isinstance(value, np.generic)
        return value

    def integer(self, x: Expr) -> int:
        return int(self.number(x))

    def reduce_columns(self, s: ReduceColumns) -> None:
        """Reduce each column of a set of rows."""
        start, source = self.integer(s.start), self.memory[s.buffer]
        places = self.memory[s.places][: self.integer(s.rows)]
        for c in range(self.integer(s.columns)):
            column = [start + int(k) + c for k in places]
            for at in column:
                self.check_bounds(s.buffer, _Place(source, 0), at)
            self.memory[s.to][c] = reduce_in_order(s.combine, source[column])

    def transpose(self, s: Transpose) -> None:
        start, step = self.integer(s.start), self.integer(s.step)
        to, source = self.memory[s.to], self.memory[s.buffer]
        for r in range(self.integer(s.rows)):
            for c in range(self.integer(s.columns)):
                at = start + r + step * c
                self.check_bounds(s.buffer, _Place(source, 0), at)
                to[s.width * r + c] = source[at]

    def reduce(self, s: Reduce) -> None:
        elements: list[list[np.generic]] = [[] for _ in s.reductions]
        for j in reversed(range(self.integer(s.extent))):
            self.values[s.index] = j
            self.block(s.body)
            for f, values in zip(s.reductions, elements, strict=True):
                values.append(self.number(f.value))
        for f, values in zip(s.reductions, elements, strict=True):
            self.values[f.result] = self.reduce_values(f, np.array(values[::-1]))

    def reduce_values(self, s: Reduction | ReduceElements, values: np.ndarray) -> np.generic:
        """Return the reduction of values, after conversion to the dtype of the result."""
        assert isinstance(s.result.dtype, DType)
        return reduce_in_order(s.combine, values.astype(s.result.dtype.numpy))

    def while_loop(self, s: While) -> None:
        self.begin_loop(s)
        try:
            while self.number(s.test):
                self.run_step(s)
        except _Left:
            self.break_loop(s)
            return
        self.end_loop(s)

    def begin_loop(self, s: For | While) -> None:
        """Assign the initial values of loop-carried variables."""
        start = [self.expr(c.start) for c in s.carried]
        for c, value in zip(s.carried, start, strict=True):
            self.values[c.var] = value

    def run_step(self, s: For | While) -> None:
        """Run the body of a loop, and update the loop-carried variables."""
        self.block(s.body)
        following = [self.expr(c.following) for c in s.carried]
        for c, value in zip(s.carried, following, strict=True):
            self.values[c.var] = value

    def end_loop(self, s: For | While) -> None:
        """Assign the results of a loop that has run all its steps."""
        for c in s.carried:
            self.values[c.result] = self.values[c.var]

    def break_loop(self, s: For | While) -> None:
        """Assign the results of a loop that a `Break` has left."""
        for c, value in zip(s.carried, self.left, strict=True):
            self.values[c.result] = value

    def for_loop(self, s: For) -> None:
        if s.spread == "threads" and any(
            isinstance(x, Do) and x.function in SYNCHRONIZING for x in statements(s.body)
        ):
            self.run_threads_together(s)
            return
        self.begin_loop(s)
        steps = self.steps(s)
        self.deep += s.spread in ("grid", "threads")
        try:
            for i in reversed(steps) if s.independent else steps:
                self.values[s.index] = i
                self.run_step(s)
        except _Left:
            self.break_loop(s)
        else:
            self.end_loop(s)
        self.deep -= s.spread in ("grid", "threads")

    def steps(self, s: For) -> Sequence[int]:
        """Return the indices of a loop, or those of this block if it runs a part (`For.part`)."""
        indices = range(self.integer(s.start), self.integer(s.stop), s.step)
        if s.part is None:
            return indices
        block, blocks = [self.integer(x) for x in s.part]
        each = self.threads if s.spread == "grid" else 1
        return [i for k, i in enumerate(indices) if k // each % blocks == block]

    def base(self, memory: Memory) -> _Place:
        """Return the address of element 0 of a buffer, or the address in a variable."""
        if isinstance(memory, Buffer):
            return _Place(self.memory[memory], 0)
        place = self.values[memory]
        assert isinstance(place, _Place)
        return place

    def place(self, memory: Memory, index: Expr) -> _Place:
        """Return the address of the element at an index, after checking its bounds."""
        base, at = self.base(memory), self.integer(index)
        self.check_bounds(memory, base, at)
        return _Place(base.array, base.at + at)

    def vector_view(self, buffer: Memory, index: Expr, count: int) -> np.ndarray:
        """Return a view of the elements of a vector access, after checking its bounds and
        alignment."""
        array, at = self.place(buffer, index)
        base = self.base(buffer)
        self.check_bounds(buffer, base, at - base.at + count - 1)
        view = array[at : at + count]
        if view.ctypes.data % view.nbytes:
            raise AlignmentError(f"run: {buffer.name}[{at}] is not aligned for {count} elements")
        return view

    def check_bounds(self, memory: Memory, base: _Place, at: int) -> None:
        """Raise BoundsError unless element `at`, relative to `base`, is in the buffer."""
        size = len(base.array) - base.at
        if not -base.at <= at < size:
            raise BoundsError(f"run: {memory.name}[{at}] of {size} elements")

    def expr(self, x: Expr) -> _Value:
        """Evaluate an expression."""
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
            return _Place(base.array, base.at + self.integer(x.index))
        if isinstance(x, Index):
            terms = [
                self.integer(v) * (k if isinstance(k, int) else self.integer(k)) for v, k in x.terms
            ]
            result = sum(terms) + x.constant
            if not -(1 << 63) <= result < 1 << 63:
                raise OverflowError(f"run: {print_expr(x)} has more than 64 bits: {result}")
            return np.int64(result)
        if isinstance(x, Cast):
            return _cast(self.number(x.value), x.dtype)
        assert isinstance(x, Call)
        if x.function == "nontemporal_requested":  # whether the launch requests non-temporal stores
            return np.int64(0)
        function = FUNCTIONS.get(x.function)
        takes = function is not None and function.rule([dtype(a) for a in x.args]) is not None  # type: ignore[misc]
        reference = (
            function.reference if function and takes else python_functions.NAMESPACE[x.function]
        )
        result = reference(*[self.argument(a) for a in x.args])
        assert isinstance(x.dtype, DType)
        return cast("np.generic", np.asarray(result).astype(x.dtype.numpy)[()])
