"""Large factorizations and systems on a GPU as steps that machine code can take: functions of
cuSOLVER and cuBLAS by their addresses, kernels of ours around them.

In: an operation (cholesky, triangular_solve, lu, linear_solve, det, slogdet) whose matrices are too
large for a block of threads. Out: launches and `CallStep`s; none where types are others. Matrices
are by columns for these libraries. One by rows is its transpose there: a lower triangle is an upper
one, and stands on the other side of what it is solved for, so that it needs no copy; LU exchanges
rows, so it gets matrices laid out by columns. Right sides are where the result comes about.

A stack of matrices is one call of a function for stacks, which reads their addresses from memory; a
few large ones are a call each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.fusion.program import Value
from accnp.compiler.library.cupy.calls import MAX_SEQUENTIAL_SYSTEMS, MAX_SMALL_SYSTEM
from accnp.compiler.library.linalg import large_factors
from accnp.engine.device_products import copy_layout, factors, merge_axes
from accnp.engine.device_series import Series, SeriesStep
from accnp.engine.device_steps import AddressStep
from accnp.engine.steps import HostOperand, HostStep
from accnp.ir.aval import result_avals
from accnp.ir.kernel import dtype_code
from accnp.ir.op import as_tuple
from accnp.primitives.views import contiguous
from accnp.runtime.device_buffer import driver_of
from accnp.runtime.driver import Solver

if TYPE_CHECKING:
    from accnp.engine.device_plan import DevicePlanner
    from accnp.engine.device_steps import PlaceOf
    from accnp.engine.device_words import Calls, Place

__all__ = ["CallStep", "factor_steps"]

LETTERS = {"f4": "S", "f8": "D", "c8": "C", "c16": "Z"}
LIMIT = 1 << 31  # sizes are C's int
LEFT, RIGHT = 0, 1  # cublasSideMode_t
LOWER, UPPER = 0, 1  # cublasFillMode_t
PLAIN, TURNED, CONJUGATE = 0, 1, 2  # cublasOperation_t

Where = tuple[int, int]  # a slot, and bytes from its beginning
Argument = int | Where | np.ndarray  # of a call: a number, a place in a slot, or memory of the host


class CallStep(AddressStep):
    """A call that is one of several steps. An argument is a number, a place in a slot, or memory of
    the host."""

    __slots__ = ("arguments", "letter", "name", "solver")

    def __init__(
        self, v: Value, solver: Solver, name: str, letter: str, arguments: Sequence[Argument]
    ) -> None:
        super().__init__(v)
        self.solver, self.name, self.letter, self.arguments = solver, name, letter, arguments

    @property
    def what(self) -> str:
        """What kind of step it is."""
        name = self.name.replace("?", self.letter).removesuffix("_v2")
        return f"a part of it: {name} of the GPU's library"

    def words(self, place: PlaceOf, calls: Calls) -> tuple[str, int, int, list[Place]]:
        address, handle, bit = self.solver.function(self.name, self.letter)
        calls.exclusive = True  # a handle is for one thread at a time
        given = [(0, handle)]
        for x in self.arguments:
            if isinstance(x, tuple):
                given.append(place(*x))
            elif isinstance(x, int):
                given.append((0, x))
            else:
                calls.referenced.append(x)
                given.append((0, x.ctypes.data))
        return self.name, address, bit, given


def factor_steps(planner: DevicePlanner, v: Value, call: HostStep) -> list[SeriesStep]:
    """The steps of an operation whose call is planned; none if it is not one of these."""
    plan = _PLANS.get(v.op.lowering.gpu)
    code = dtype_code(call.operands[0][2]) if call.operands else ""
    sizes = [o[1] for o in call.operands]
    if (
        plan is None
        or code not in LETTERS
        or any(o[2] != call.operands[0][2] for o in call.operands)
    ):
        return []
    if not all(0 < prod(shape) < LIMIT for shape in sizes):
        return []
    solver = driver_of(planner.device).solver()
    if solver is None:
        return []
    made = _Factors(planner, v, call, solver, code)
    return made.steps if plan(made) else []


class _Factors(Series):
    """One operation that is planned."""

    def __init__(
        self, planner: DevicePlanner, v: Value, call: HostStep, solver: Solver, code: str
    ) -> None:
        super().__init__(planner, v, call)
        self.solver, self.code = solver, code
        self.size: int = call.operands[0][2].itemsize
        *outer, self.rows, self.columns = call.operands[0][1]
        self.outer, self.count = tuple(outer), prod(outer)
        few = (
            self.count <= MAX_SEQUENTIAL_SYSTEMS and max(self.rows, self.columns) > MAX_SMALL_SYSTEM
        )
        self.singly = self.count == 1 or few

    # --- parts ---

    def slot(self, index: int = -1) -> int:
        """That of a result, wanted or not."""
        return self.results[index] if index in self.results else self.planner.new_slot()

    def call(
        self,
        name: str,
        arguments: Sequence[Argument],
        changed: Sequence[tuple[int, int]],
        read: Sequence[int] = (),
    ) -> None:
        """A call; `changed` are slots that it writes to, and their bytes, `read` are those that it
        knows by addresses in memory."""
        step = CallStep(self.v, self.solver, name, LETTERS[self.code], arguments)
        step.own_allocs = [pair for slot, nbytes in changed for pair in self.allocate(slot, nbytes)]
        step.nbytes //= self.count if self.singly else 1
        step.work //= self.count if self.singly else 1
        made = {slot for slot, _ in step.own_allocs}
        known: list[int] = [as_tuple(x)[0] for x in arguments if isinstance(x, tuple)]
        for slot in dict.fromkeys([*known, *read, *[slot for slot, _ in changed]]):
            if slot not in made:
                step.operands.append((slot, (), self.operands[0][2], None, 0, 0))
        step.results = [(slot, -1) for slot, _ in changed]
        self.steps.append(step)

    def laid(self, which: int, slot: int, turned: bool = False, conjugate: bool = False) -> None:
        """An operand laid out in a slot, by rows or (turned) by columns."""
        self.copied(self.operands[which], slot, turned, conjugate)

    def copied(
        self, operand: HostOperand, slot: int, turned: bool, conjugate: bool = False
    ) -> None:
        shape = operand[1]
        *outer, down, along = range(len(shape))
        order = [*outer, along, down] if turned else [*outer, down, along]
        copy = copy_layout(0, operand, order, conjugate and self.code[0] == "c")
        nbytes = prod(shape) * self.size
        pointers = [(operand[0], operand[4]), (slot, 0)]
        self.launch(copy.kernel, [copy.code] * 2, pointers, [(slot, nbytes)], "copy", 2 * nbytes)

    def addresses(self, slot: int, elements: int, start: int = 0) -> int:
        """A slot with the addresses of matrices in another one, this many elements apart."""
        made = self.planner.new_slot()
        own = large_factors.addresses(self.count, elements)
        self.launch(
            own, ["i8", self.code], [(made, 0), (slot, start)], [(made, 8 * self.count)],
            "addresses",
        )  # fmt: skip
        return made

    def each(
        self,
        name: str,
        arguments: Callable[[int], Sequence[Argument]],
        changed: Sequence[tuple[int, int]],
    ) -> None:
        for k in range(self.count):
            self.call(name, arguments(k), changed)

    # --- operations ---

    def cholesky(self) -> bool:
        n, count, y, marks = self.rows, self.count, self.slot(), self.planner.new_slot()
        bytes_of_marks, whole = 4 * count, self.size * n * n
        self.laid(0, y)
        changed = [(y, 0), (marks, bytes_of_marks)]
        if self.singly:
            name, work = "cusolverDn?potrf", self.planner.new_slot()
            room = self.solver.room(name, LETTERS[self.code], UPPER, n)
            changed.append((work, max(1, room) * self.size))
            self.each(name, lambda k: [
                UPPER, n, (y, k * whole), n, (work, 0), room, (marks, 4 * k),
            ], changed)  # fmt: skip
        else:
            lists = self.addresses(y, n * n)
            self.call("cusolverDn?potrfBatched", [
                UPPER, n, (lists, 0), n, (marks, 0), count,
            ], changed)  # fmt: skip
        codes, pointers = [self.code, "i4"], [(y, 0), (marks, 0)]
        own = large_factors.good(self.code, count, n)
        self.launch(own, codes, pointers, [(marks, 0)], "whether it is positive definite")
        own = large_factors.triangle(self.code, count, n)
        self.launch(own, codes, pointers, [(y, 0)], "triangle", 2 * count * whole)
        return True

    def triangular_solve(self) -> bool:
        p, (a, b) = self.v.params, self.operands
        n, left, turned = self.rows, p["left_side"], p["transpose_a"]
        sides = b[1][-1] if left else b[1][-2]
        y = self.slot()
        # What cuBLAS has of the matrix by rows is its transpose; that of the system, too.
        lower, matrix, start, apart, leading = not p["lower"], a[0], a[4], None, n
        strides = [s // self.size for s in a[3]] if a[3] is not None else contiguous(a[1])
        down, along = strides[-2:]
        conjugate = p["conjugate_a"] and self.code[0] == "c"
        batch = merge_axes([*zip(a[1][:-2], strides[:-2], strict=True)])
        if batch is not None and 1 in (down, along) and max(down, along) >= n and min(strides) >= 0:
            apart = batch[1]
            leading = max(down, along)
            if along != 1:  # by columns
                lower, turned = not lower, not turned
        if apart is None or (conjugate and not turned):
            matrix, start, apart, leading = self.planner.new_slot(), 0, n * n, n
            lower, turned = not p["lower"], p["transpose_a"]
            self.laid(0, matrix, conjugate=conjugate)
            conjugate = False
        self.laid(1, y)
        how = [
            RIGHT if left else LEFT, LOWER if lower else UPPER,
            (CONJUGATE if conjugate else TURNED) if turned else PLAIN, int(p["unit_diagonal"]),
            *((sides, n) if left else (n, sides)), factors(a[2]),
        ]  # fmt: skip
        step = sides if left else n
        if self.singly:
            self.each("cublas?trsm_v2", lambda k: [
                *how, (matrix, start + k * apart * self.size), leading,
                (y, k * n * sides * self.size), step,
            ], [(y, 0)])  # fmt: skip
            return True
        lists = self.addresses(matrix, apart, start), self.addresses(y, n * sides)
        self.call("cublas?trsmBatched", [
            *how, (lists[0], 0), leading, (lists[1], 0), step, self.count,
        ], [(y, 0)], [matrix])  # fmt: skip
        return True

    def factorised(self) -> tuple[int, int] | None:
        """The slots of factors by columns and of exchanges, counted from 1."""
        m, n, least = self.rows, self.columns, min(self.rows, self.columns)
        if m != n:  # there is no function for stacks of these
            self.singly = self.count <= MAX_SEQUENTIAL_SYSTEMS
            if not self.singly:
                return None
        made, swaps, marks = (self.planner.new_slot() for _ in range(3))
        whole = self.size * m * n
        self.laid(0, made, True)
        changed = [(made, 0), (swaps, 4 * least * self.count), (marks, 4 * self.count)]
        if self.singly:
            name, work = "cusolverDn?getrf", self.planner.new_slot()
            room = self.solver.room(name, LETTERS[self.code], m, n)
            changed.append((work, max(1, room) * self.size))
            self.each(name, lambda k: [
                m, n, (made, k * whole), m, (work, 0), (swaps, 4 * k * least), (marks, 4 * k),
            ], changed)  # fmt: skip
        else:
            lists = self.addresses(made, m * n)
            self.call("cublas?getrfBatched", [
                n, (lists, 0), n, (swaps, 0), (marks, 0), self.count,
            ], changed)  # fmt: skip
        return made, swaps

    def lu(self) -> bool:
        found = self.factorised()
        if found is None:
            return False
        (made, swaps), m, n = found, self.rows, self.columns
        least = min(m, n)
        if 0 in self.results:
            self.copied(self.by_columns(made, m, n), self.results[0], False)
        if 1 in self.results:
            own, slot, total = large_factors.pivots(self.count * least), self.results[1], self.count
            made_here = [(slot, 4 * total * least)]
            self.launch(own, ["i4"] * 2, [(slot, 0), (swaps, 0)], made_here, "exchanges")
        if 2 in self.results:
            own, slot = large_factors.order(self.count, m, least), self.results[2]
            made_here = [(slot, 4 * self.count * m)]
            self.launch(own, ["i4"] * 2, [(slot, 0), (swaps, 0)], made_here, "order of rows")
        return True

    def by_columns(self, slot: int, m: int, n: int) -> HostOperand:
        """What lies by columns in a slot, as an operand."""
        shape = (*self.outer, m, n)
        steps = [s * m * n * self.size for s in contiguous(self.outer)]
        strides = (*steps, self.size, m * self.size)
        return slot, shape, self.operands[0][2], strides, 0, prod(shape)

    def linear_solve(self) -> bool:
        found = self.factorised()
        if found is None:
            return False
        (made, swaps), n, sides = found, self.rows, self.operands[1][1][-1]
        whole, part, marks = n * n * self.size, n * sides * self.size, self.planner.new_slot()
        # One side is the same by rows and by columns.
        y = self.slot() if sides == 1 else self.planner.new_slot()
        self.laid(1, y, True)
        if self.singly:
            self.each("cusolverDn?getrs", lambda k: [
                PLAIN, n, sides, (made, k * whole), n, (swaps, 4 * k * n), (y, k * part), n,
                (marks, 0),
            ], [(y, 0), (marks, 4)])  # fmt: skip
        else:
            lists = self.addresses(made, n * n), self.addresses(y, n * sides)
            self.call("cublas?getrsBatched", [
                PLAIN, n, sides, (lists[0], 0), n, (swaps, 0), (lists[1], 0), n,
                np.zeros(1, "i4"), self.count,
            ], [(y, 0)], [made])  # fmt: skip
        if sides > 1:
            self.copied(self.by_columns(y, n, sides), self.slot(), False)
        return True

    def det(self) -> bool:
        found = self.factorised()
        if found is None:
            return False
        avals = result_avals(self.v.aval)
        several = len(avals) > 1
        slots = [self.slot(k if several else -1) for k in range(len(avals))]
        own = large_factors.determinant(
            self.operands[0][1], self.operands[0][2], np.dtype(np.int32), avals
        )
        codes = [self.code, "i4", *[dtype_code(a.dtype) for a in avals]]
        pointers = [(slot, 0) for slot in (*found, *slots)]
        made = [(slot, a.nbytes) for slot, a in zip(slots, avals, strict=True)]
        self.launch(own, codes, pointers, made, self.v.op.name)
        return True


# By the library function of the op's lowering.
_PLANS: dict[str, Callable[[_Factors], bool]] = {
    "cupy.calls.cholesky": _Factors.cholesky,
    "cupy.calls.triangular_solve": _Factors.triangular_solve,
    "cupy.calls.lu": _Factors.lu,
    "cupy.calls.solve": _Factors.linear_solve,
    "cupy.calls.det": _Factors.det,
    "cupy.calls.slogdet": _Factors.det,
}
