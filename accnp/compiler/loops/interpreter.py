"""Run kernels of the loop IR with NumPy, one step after the other: a reference for both back ends.

Every access is checked against the bounds of its buffer, and steps that are said to be independent
run backwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accnp.compiler.loops.functions import FUNCTIONS, identity
from accnp.compiler.loops.ir import (
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Fold,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Prefetch,
    Reduce,
    Reduction,
    Stmt,
    Store,
    Transpose,
    Var,
)
from accnp.compiler.loops.printer import print_expr
from accnp.compiler.loops.types import DType, dtype_of

__all__ = ["BoundsError", "fold", "lanes_of", "run"]


class BoundsError(IndexError):
    """An access outside of a buffer."""


def run(
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    integers: Mapping[str, int],
    first: int,
    last: int,
) -> None:
    """Do the steps first..last of a kernel.

    Parameters
    ----------
    kernel : Kernel
        A kernel that `verify` accepts.
    arrays : mapping of str to numpy.ndarray
        For the name of each buffer that is an argument, an array with one axis; written to.
    integers : mapping of str to int
        The integers that are arguments, by name.
    first, last : int
        The steps.

    Raises
    ------
    BoundsError
        If an access is outside of its buffer.
    OverflowError
        If an index has more than 64 bits.
    """
    values = {kernel.first: first, kernel.last: last}
    values |= {v: integers[v.name] for v in kernel.integers}
    memory = {b: arrays[b.name] for b in kernel.buffers}
    memory |= {b: np.zeros(b.length + 64, b.dtype.numpy) for b in kernel.stack}
    memory |= {b: np.zeros(values[n], b.dtype.numpy) for b, n in kernel.heap}
    with np.errstate(all="ignore"):
        _Machine(memory, values).block(kernel.body)


def lanes_of(combine: str) -> int:
    """Return the number of lanes in which values are folded."""
    return 64 if combine in ("max", "min") else 32


def _join(combine: str, x: Any, y: Any) -> Any:
    if combine in ("max", "min"):  # the first of equal ones; NaN stays
        return np.where((y > x if combine == "max" else y < x) | (y != y), y, x)
    ufunc = {"sum": np.add, "prod": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or}
    return ufunc[combine](x, y)


def fold(combine: str, values: np.ndarray) -> Any:
    """Return the fold of values in the order that the IR declares."""
    n = lanes_of(combine)
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


class _Machine:
    def __init__(self, memory: dict[Buffer, np.ndarray], values: dict[Var, Any]) -> None:
        self.memory = memory
        self.values = values

    def block(self, body: Sequence[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        if isinstance(s, Let):
            self.values[s.var] = self.expr(s.value)
        elif isinstance(s, Store):
            at = self.place(s.buffer, s.index)
            self.memory[s.buffer][at] = self.expr(s.value)
        elif isinstance(s, Prefetch):
            self.expr(s.index)
        elif isinstance(s, Transpose):
            self.transpose(s)
        elif isinstance(s, For):
            self.loop(s)
        elif isinstance(s, If):
            self.block(s.then if self.expr(s.test) else s.orelse)
        elif isinstance(s, Reduce):
            self.reduce(s)
        elif isinstance(s, Fold):
            start, count = int(self.expr(s.start)), int(self.expr(s.extent))
            for at in (start, start + count - 1) if count else ():
                self.check(s.buffer, at)
            self.values[s.result] = self.folded(s, self.memory[s.buffer][start : start + count])

    def transpose(self, s: Transpose) -> None:
        start, step = int(self.expr(s.start)), int(self.expr(s.step))
        to, source = self.memory[s.to], self.memory[s.buffer]
        for r in range(int(self.expr(s.rows))):
            for c in range(int(self.expr(s.columns))):
                at = start + r + step * c
                self.check(s.buffer, at)
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
        return fold(s.combine, found.astype(s.result.dtype.numpy))

    def loop(self, s: For) -> None:
        for c in s.carried:
            self.values[c.var] = self.expr(c.start)
        steps = range(int(self.expr(s.start)), int(self.expr(s.stop)), s.step)
        for i in reversed(steps) if s.independent else steps:
            self.values[s.index] = i
            self.block(s.body)
            following = [self.expr(c.following) for c in s.carried]
            for c, value in zip(s.carried, following, strict=True):
                self.values[c.var] = value
        for c in s.carried:
            self.values[c.result] = self.values[c.var]

    def place(self, buffer: Buffer, index: Expr) -> int:
        at = int(self.expr(index))
        self.check(buffer, at)
        return at

    def check(self, buffer: Buffer, at: int) -> None:
        size = len(self.memory[buffer])
        if not 0 <= at < size:
            raise BoundsError(f"run: {buffer.name}[{at}] of {size} elements")

    def expr(self, x: Expr) -> Any:
        if isinstance(x, Const):
            return x.dtype.numpy.type(x.value)
        if isinstance(x, Var):
            return x.dtype.numpy.type(self.values[x])
        if isinstance(x, Load):
            return self.memory[x.buffer][self.place(x.buffer, x.index)]
        if isinstance(x, Index):
            terms = [int(self.values[v]) * int(self.values.get(k, k)) for v, k in x.terms]  # type: ignore[arg-type]
            found = sum(terms) + x.constant
            if not -(1 << 63) <= found < 1 << 63:
                raise OverflowError(f"run: {print_expr(x)} has more than 64 bits: {found}")
            return np.int64(found)
        if isinstance(x, Cast):
            return _cast(self.expr(x.value), x.dtype)
        assert isinstance(x, Call)
        found = FUNCTIONS[x.function].reference(*[self.expr(a) for a in x.args])
        return np.asarray(found).astype(x.dtype.numpy)[()]
