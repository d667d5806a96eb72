"""Construction of loop IR. Code that uses a builder reads like the loops that it makes:

b = LoopBuilder()
x, y = b.buffer("x", F4), b.buffer("y", F4)
with b.loop("i", b.first, b.last, independent=True) as loop:
    b.store(y, loop.index, call("sq", Load(x, loop.index)))
kernel = b.kernel()
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from accnp.compiler.loops.functions import result_of
from accnp.compiler.loops.ir import (
    Break,
    Buffer,
    Call,
    Carried,
    Cast,
    Const,
    Do,
    Expr,
    For,
    Heap,
    If,
    Index,
    Kernel,
    Let,
    Reduce,
    ReduceElements,
    Reduction,
    Stmt,
    Store,
    Var,
    dtype,
    number_type,
)
from accnp.compiler.loops.types import B1, F8, I8, DType

__all__ = ["LoopBuilder", "affine", "call", "cast", "plus"]


def call(function: str, *args: Expr) -> Call:
    """Return a call of a scalar function.

    Raises
    ------
    TypeError
        If there is no such function of operands of these types.
    """
    of = [number_type(x) for x in args]
    result = result_of(function, of)
    if result is None:
        operand_types = ", ".join([d.token for d in of])
        raise TypeError(f"{function}: no scalar function of ({operand_types})")
    return Call(function, args, result)


def cast(x: Expr, to: DType) -> Expr:
    """Return an expression as another type."""
    return x if dtype(x) == to else Cast(x, to)


def affine(*terms: tuple[Var, int | Var], constant: int = 0) -> Expr:
    """Return the sum of variables times integers and a constant; terms times 0 are omitted."""
    nonzero = tuple([t for t in terms if t[1] != 0])
    if not nonzero:
        return Const(constant, I8)
    if len(nonzero) == 1 and nonzero[0][1] == 1 and not constant:
        return nonzero[0][0]
    return Index(nonzero, constant)


def plus(x: Expr, y: Expr) -> Expr:
    """Return the sum of two affine indices."""
    terms: list[tuple[Var, int | Var]] = []
    constant = 0
    for part in (x, y):
        if isinstance(part, Var):
            terms.append((part, 1))
        elif isinstance(part, Const):
            constant += int(part.value)
        elif isinstance(part, Index):
            terms += part.terms
            constant += part.constant
        else:
            raise TypeError(f"plus: an affine index is expected, got {type(part).__name__}")
    return affine(*terms, constant=constant)


class LoopBuilder:
    """Collects the statements of one kernel."""

    def __init__(self) -> None:
        self.first, self.last = Var("lo"), Var("hi")
        self.buffers: list[Buffer] = []
        self.integers: list[Var] = []
        self._stack: list[Buffer] = []
        self._heap: list[Heap] = []
        self._blocks: list[list[Stmt]] = [[]]
        self._names = {"lo", "hi"}

    def fresh(self, name: str) -> str:
        """Return a name that the kernel does not have yet."""
        unique_name, k = name, 0
        while unique_name in self._names:
            k += 1
            unique_name = f"{name}_{k}"
        self._names.add(unique_name)
        return unique_name

    # --- arguments and memory ---

    def buffer(self, name: str, of: DType) -> Buffer:
        """Add a buffer argument."""
        self.buffers.append(Buffer(self.fresh(name), of))
        return self.buffers[-1]

    def integer(self, name: str) -> Var:
        """Add an integer argument."""
        self.integers.append(Var(self.fresh(name)))
        return self.integers[-1]

    def stack(self, name: str, of: DType, length: int) -> Buffer:
        """Add a buffer on the stack."""
        self._stack.append(Buffer(self.fresh(name), of, length))
        return self._stack[-1]

    def heap(self, name: str, of: DType, length: Var) -> Buffer:
        """Add a buffer on the heap whose length is an argument."""
        self._heap.append(Heap(Buffer(self.fresh(name), of), length))
        return self._heap[-1].buffer

    # --- statements ---

    def add(self, statement: Stmt) -> None:
        """Append a statement."""
        self._blocks[-1].append(statement)

    def let(self, name: str, value: Expr) -> Var:
        """Assign a new variable."""
        var = Var(self.fresh(name), dtype(value))
        self.add(Let(var, value))
        return var

    def store(self, buffer: Buffer, index: Expr, value: Expr) -> None:
        """Write an element."""
        self.add(Store(buffer, index, value))

    def reduce_elements(
        self, name: str, combine: str, buffer: Buffer, start: Expr, extent: Expr
    ) -> Var:
        """Reduce a range of elements of a buffer."""
        result = Var(self.fresh(name), buffer.dtype)
        self.add(ReduceElements(result, combine, buffer, start, extent))
        return result

    @contextmanager
    def loop(
        self, name: str, start: Expr, stop: Expr, step: int = 1, independent: bool = False,
        interchangeable: bool = False,
    ) -> Generator[Loop]:  # fmt: skip
        """Make a loop around the statements of the `with` block."""
        loop = Loop(self, Var(self.fresh(name)))
        self._blocks.append([])
        yield loop
        body = tuple(self._blocks.pop())
        carried = tuple(loop.carried)
        statement = For(loop.index, start, stop, step, body, independent, carried)
        self.add(statement._replace(interchangeable=interchangeable))

    @contextmanager
    def when(self, test: Expr) -> Generator[None]:
        """Run the statements of the `with` block if a condition holds."""
        self._blocks.append([])
        yield
        self.add(If(test, tuple(self._blocks.pop())))

    def break_if_stopped(self, loop: Loop, mask: int) -> None:
        """Leave a loop if an interrupt ends the launch, which is checked if index & mask is 0
        (`compiler/llvm/intrinsics/interrupts.py`)."""
        stopped = Var(self.fresh("stopped"), B1)
        self.add(Do("stopped", (loop.index, Const(mask, I8)), stopped))
        with self.when(stopped):
            self.add(Break(tuple([c.var for c in loop.carried])))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Run the statements of the `with` block if the condition of the preceding `when` does not
        hold."""
        self._blocks.append([])
        yield
        body = tuple(self._blocks.pop())
        before = self._blocks[-1].pop()
        assert isinstance(before, If)
        self.add(before._replace(orelse=body))

    @contextmanager
    def reduce(self, extent: Expr) -> Generator[ReduceBuilder]:
        """Reduce values, which the statements of the `with` block compute, over 0..extent."""
        reduction = ReduceBuilder(self, Var(self.fresh("j")))
        self._blocks.append([])
        yield reduction
        body = self._blocks.pop()
        steps = tuple([s for s in body if isinstance(s, Let | Store)])
        assert len(steps) == len(body)
        self.add(Reduce(reduction.index, extent, steps, tuple(reduction.reductions)))

    def kernel(self) -> Kernel:
        """Return the kernel."""
        (body,) = self._blocks
        return Kernel(
            self.first, self.last, tuple(self.buffers), tuple(self.integers),
            tuple(self._stack), tuple(body), heap=tuple(self._heap),
        )  # fmt: skip


class Loop:
    """A loop under construction: its index and its carried values."""

    def __init__(self, builder: LoopBuilder, index: Var) -> None:
        self._builder = builder
        self.index = index
        self.carried: list[Carried] = []

    def carry(self, name: str, start: Expr) -> Var:
        """Return a variable that is `start` in the first step; `follow` sets its next value."""
        var = Var(self._builder.fresh(name), dtype(start))
        result = Var(self._builder.fresh(name), var.dtype)
        self.carried.append(Carried(var, start, var, result))
        return var

    def follow(self, var: Var, following: Expr) -> Var:
        """Set the value of a variable in the next step. Returns its value after the loop."""
        k = next(k for k, c in enumerate(self.carried) if c.var == var)
        self.carried[k] = self.carried[k]._replace(following=following)
        return self.carried[k].result


class ReduceBuilder:
    """A `Reduce` under construction: its index and its reductions."""

    def __init__(self, builder: LoopBuilder, index: Var) -> None:
        self._builder = builder
        self.index = index
        self.reductions: list[Reduction] = []

    def reduce_value(self, name: str, combine: str, value: Expr, wide: bool = False) -> Var:
        """Reduce a value. Returns the result, which is available after the `with` block."""
        result = Var(self._builder.fresh(name), F8 if wide else dtype(value))
        self.reductions.append(Reduction(result, combine, value, wide))
        return result
