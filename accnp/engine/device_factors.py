"""Large factorizations and linear systems on a GPU, by cuSOLVER and cuBLAS functions that machine
code calls by address, with accnp's own kernels before and after them.

`factor_steps` takes an operation (cholesky, triangular_solve, lu, linear_solve, det, slogdet) whose
matrices are too large for one thread block, and returns launches and `CallStep`s, or no steps for
types that the libraries lack.

These libraries expect column-major matrices. A row-major matrix is its transpose in column-major
order: a lower triangle becomes an upper one, on the other side of the unknowns, so it needs no
copy. LU exchanges rows, so its matrices are copied to column-major order. Right-hand sides are
copied to the buffer of the result, where they are solved in place.

A batch of matrices is one call of a batched function, which reads the addresses of the matrices
from memory. A few large matrices are one call each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.fusion.program import Value
from accnp.compiler.library.cupy.calls import MAX_SEQUENTIAL_SYSTEMS, MAX_SMALL_SYSTEM
from accnp.compiler.library.linalg import large_factors
from accnp.engine.device_products import copy_layout, merge_axes, one_and_zero
from accnp.engine.device_series import SeriesStep, StepSequence
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
PLAIN, TRANSPOSED, CONJUGATE = 0, 1, 2  # cublasOperation_t

SlotOffset = tuple[int, int]  # a slot and an offset in bytes
Argument = int | SlotOffset | np.ndarray  # a number, a place in a slot, or memory of the host


class CallStep(AddressStep):
    """A call of a cuSOLVER or cuBLAS function as one of several steps of an operation."""

    __slots__ = ("arguments", "letter", "name", "solver")

    def __init__(
        self, v: Value, solver: Solver, name: str, letter: str, arguments: Sequence[Argument]
    ) -> None:
        super().__init__(v)
        self.solver, self.name, self.letter, self.arguments = solver, name, letter, arguments

    @property
    def what(self) -> str:
        """Description of the step for `explain`."""
        name = self.name.replace("?", self.letter).removesuffix("_v2")
        return f"part of a step: {name} of the GPU's library"

    def words(self, place: PlaceOf, calls: Calls) -> tuple[str, int, int, list[Place]]:
        address, handle, bit = self.solver.function(self.name, self.letter)
        calls.exclusive = True  # a handle is for one thread at a time
        words = [(0, handle)]
        for x in self.arguments:
            if isinstance(x, tuple):
                words.append(place(*x))
            elif isinstance(x, int):
                words.append((0, x))
            else:
                calls.references.append(x)
                words.append((0, x.ctypes.data))
        return self.name, address, bit, words


def factor_steps(planner: DevicePlanner, v: Value, call: HostStep) -> list[SeriesStep]:
    """Return the steps of an operation in place of its library call; none if it is not
    supported."""
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
    factors = _Factors(planner, v, call, solver, code)
    return factors.steps if plan(factors) else []


class _Factors(StepSequence):
    """The steps of one factorization or linear system."""

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
        self.one_by_one = self.count == 1 or few

    # --- kinds of steps ---

    def slot(self, index: int = -1) -> int:
        """Return the slot of a result, or a new slot if the result is not used."""
        return self.results[index] if index in self.results else self.planner.new_slot()

    def call(
        self,
        name: str,
        arguments: Sequence[Argument],
        changed: Sequence[tuple[int, int]],
        read: Sequence[int] = (),
    ) -> None:
        """Append a call. `changed` are the slots that it writes to and their bytes; `read` are
        slots whose addresses it reads from memory."""
        step = CallStep(self.v, self.solver, name, LETTERS[self.code], arguments)
        step.own_allocs = [pair for slot, nbytes in changed for pair in self.allocate(slot, nbytes)]
        step.nbytes //= self.count if self.one_by_one else 1
        step.work //= self.count if self.one_by_one else 1
        new = {slot for slot, _ in step.own_allocs}
        passed: list[int] = [as_tuple(x)[0] for x in arguments if isinstance(x, tuple)]
        for slot in dict.fromkeys([*passed, *read, *[slot for slot, _ in changed]]):
            if slot not in new:
                step.operands.append((slot, (), self.operands[0][2], None, 0, 0))
        step.results = [(slot, -1) for slot, _ in changed]
        self.steps.append(step)

    def copy_operand(
        self, which: int, slot: int, column_major: bool = False, conjugate: bool = False
    ) -> None:
        """Append a copy of an operand to a slot, in row-major or column-major order."""
        self.copy(self.operands[which], slot, column_major, conjugate)

    def copy(
        self, operand: HostOperand, slot: int, column_major: bool, conjugate: bool = False
    ) -> None:
        shape = operand[1]
        *outer, down, along = range(len(shape))
        order = [*outer, along, down] if column_major else [*outer, down, along]
        copy = copy_layout(0, operand, order, conjugate and self.code[0] == "c")
        nbytes = prod(shape) * self.size
        pointers = [(operand[0], operand[4]), (slot, 0)]
        self.launch(copy.kernel, [copy.code] * 2, pointers, [(slot, nbytes)], "copy", 2 * nbytes)

    def addresses(self, slot: int, elements: int, start: int = 0) -> int:
        """Append a kernel that writes the addresses of matrices, `elements` apart in another slot;
        return its slot."""
        table = self.planner.new_slot()
        own = large_factors.addresses(self.count, elements)
        self.launch(
            own, ["i8", self.code], [(table, 0), (slot, start)], [(table, 8 * self.count)],
            "addresses",
        )  # fmt: skip
        return table

    def call_each(
        self,
        name: str,
        arguments: Callable[[int], Sequence[Argument]],
        changed: Sequence[tuple[int, int]],
    ) -> None:
        """Append a call for each matrix."""
        for k in range(self.count):
            self.call(name, arguments(k), changed)

    # --- operations ---

    def cholesky(self) -> bool:
        n, count, y, info = self.rows, self.count, self.slot(), self.planner.new_slot()
        info_bytes, whole = 4 * count, self.size * n * n
        self.copy_operand(0, y)
        changed = [(y, 0), (info, info_bytes)]
        if self.one_by_one:
            name, work = "cusolverDn?potrf", self.planner.new_slot()
            work_size = self.solver.workspace_size(name, LETTERS[self.code], UPPER, n)
            changed.append((work, max(1, work_size) * self.size))
            self.call_each(name, lambda k: [
                UPPER, n, (y, k * whole), n, (work, 0), work_size, (info, 4 * k),
            ], changed)  # fmt: skip
        else:
            lists = self.addresses(y, n * n)
            self.call("cusolverDn?potrfBatched", [
                UPPER, n, (lists, 0), n, (info, 0), count,
            ], changed)  # fmt: skip
        codes, pointers = [self.code, "i4"], [(y, 0), (info, 0)]
        own = large_factors.good(self.code, count, n)
        self.launch(own, codes, pointers, [(info, 0)], "whether it is positive definite")
        own = large_factors.triangle(self.code, count, n)
        self.launch(own, codes, pointers, [(y, 0)], "triangle", 2 * count * whole)
        return True

    def triangular_solve(self) -> bool:
        p, (a, b) = self.v.params, self.operands
        n, left, turned = self.rows, p["left_side"], p["transpose_a"]
        sides = b[1][-1] if left else b[1][-2]
        y = self.slot()
        # To cuBLAS, a row-major matrix is its transpose, and so is the system.
        lower, matrix, start, apart, leading = not p["lower"], a[0], a[4], None, n
        strides = [s // self.size for s in a[3]] if a[3] is not None else contiguous(a[1])
        down, along = strides[-2:]
        conjugate = p["conjugate_a"] and self.code[0] == "c"
        batch = merge_axes([*zip(a[1][:-2], strides[:-2], strict=True)])
        if batch is not None and 1 in (down, along) and max(down, along) >= n and min(strides) >= 0:
            apart = batch[1]
            leading = max(down, along)
            if along != 1:  # column-major
                lower, turned = not lower, not turned
        if apart is None or (conjugate and not turned):
            matrix, start, apart, leading = self.planner.new_slot(), 0, n * n, n
            lower, turned = not p["lower"], p["transpose_a"]
            self.copy_operand(0, matrix, conjugate=conjugate)
            conjugate = False
        self.copy_operand(1, y)
        how = [
            RIGHT if left else LEFT, LOWER if lower else UPPER,
            (CONJUGATE if conjugate else TRANSPOSED) if turned else PLAIN, int(p["unit_diagonal"]),
            *((sides, n) if left else (n, sides)), one_and_zero(a[2]),
        ]  # fmt: skip
        step = sides if left else n
        if self.one_by_one:
            self.call_each("cublas?trsm_v2", lambda k: [
                *how, (matrix, start + k * apart * self.size), leading,
                (y, k * n * sides * self.size), step,
            ], [(y, 0)])  # fmt: skip
            return True
        lists = self.addresses(matrix, apart, start), self.addresses(y, n * sides)
        self.call("cublas?trsmBatched", [
            *how, (lists[0], 0), leading, (lists[1], 0), step, self.count,
        ], [(y, 0)], [matrix])  # fmt: skip
        return True

    def factorize(self) -> tuple[int, int] | None:
        """Append an LU factorization; return the slots of the column-major factors and of the
        pivots (counted from 1), or None if there is no function for this batch."""
        m, n, least = self.rows, self.columns, min(self.rows, self.columns)
        if m != n:  # there is no batched function for rectangular matrices
            self.one_by_one = self.count <= MAX_SEQUENTIAL_SYSTEMS
            if not self.one_by_one:
                return None
        lu, pivots, info = (self.planner.new_slot() for _ in range(3))
        whole = self.size * m * n
        self.copy_operand(0, lu, True)
        changed = [(lu, 0), (pivots, 4 * least * self.count), (info, 4 * self.count)]
        if self.one_by_one:
            name, work = "cusolverDn?getrf", self.planner.new_slot()
            work_size = self.solver.workspace_size(name, LETTERS[self.code], m, n)
            changed.append((work, max(1, work_size) * self.size))
            self.call_each(name, lambda k: [
                m, n, (lu, k * whole), m, (work, 0), (pivots, 4 * k * least), (info, 4 * k),
            ], changed)  # fmt: skip
        else:
            lists = self.addresses(lu, m * n)
            self.call("cublas?getrfBatched", [
                n, (lists, 0), n, (pivots, 0), (info, 0), self.count,
            ], changed)  # fmt: skip
        return lu, pivots

    def lu(self) -> bool:
        factors = self.factorize()
        if factors is None:
            return False
        (lu, pivots), m, n = factors, self.rows, self.columns
        least = min(m, n)
        if 0 in self.results:
            self.copy(self.column_major_operand(lu, m, n), self.results[0], False)
        if 1 in self.results:
            own, slot, total = large_factors.pivots(self.count * least), self.results[1], self.count
            outputs = [(slot, 4 * total * least)]
            self.launch(own, ["i4"] * 2, [(slot, 0), (pivots, 0)], outputs, "exchanges")
        if 2 in self.results:
            own, slot = large_factors.order(self.count, m, least), self.results[2]
            outputs = [(slot, 4 * self.count * m)]
            self.launch(own, ["i4"] * 2, [(slot, 0), (pivots, 0)], outputs, "order of rows")
        return True

    def column_major_operand(self, slot: int, m: int, n: int) -> HostOperand:
        """Return a slot with a column-major matrix as an operand."""
        shape = (*self.outer, m, n)
        steps = [s * m * n * self.size for s in contiguous(self.outer)]
        strides = (*steps, self.size, m * self.size)
        return slot, shape, self.operands[0][2], strides, 0, prod(shape)

    def linear_solve(self) -> bool:
        factors = self.factorize()
        if factors is None:
            return False
        (lu, pivots), n, sides = factors, self.rows, self.operands[1][1][-1]
        whole, part, info = n * n * self.size, n * sides * self.size, self.planner.new_slot()
        # A single right-hand side has the same layout in both orders.
        y = self.slot() if sides == 1 else self.planner.new_slot()
        self.copy_operand(1, y, True)
        if self.one_by_one:
            self.call_each("cusolverDn?getrs", lambda k: [
                PLAIN, n, sides, (lu, k * whole), n, (pivots, 4 * k * n), (y, k * part), n,
                (info, 0),
            ], [(y, 0), (info, 4)])  # fmt: skip
        else:
            lists = self.addresses(lu, n * n), self.addresses(y, n * sides)
            self.call("cublas?getrsBatched", [
                PLAIN, n, sides, (lists[0], 0), n, (pivots, 0), (lists[1], 0), n,
                np.zeros(1, "i4"), self.count,
            ], [(y, 0)], [lu])  # fmt: skip
        if sides > 1:
            self.copy(self.column_major_operand(y, n, sides), self.slot(), False)
        return True

    def det(self) -> bool:
        slots_of_factors = self.factorize()
        if slots_of_factors is None:
            return False
        avals = result_avals(self.v.aval)
        several = len(avals) > 1
        slots = [self.slot(k if several else -1) for k in range(len(avals))]
        own = large_factors.determinant(
            self.operands[0][1], self.operands[0][2], np.dtype(np.int32), avals
        )
        codes = [self.code, "i4", *[dtype_code(a.dtype) for a in avals]]
        pointers = [(slot, 0) for slot in (*slots_of_factors, *slots)]
        outputs = [(slot, a.nbytes) for slot, a in zip(slots, avals, strict=True)]
        self.launch(own, codes, pointers, outputs, self.v.op.name)
        return True


# By the name of the library function in the lowering of the op.
_PLANS: dict[str, Callable[[_Factors], bool]] = {
    "cupy.calls.cholesky": _Factors.cholesky,
    "cupy.calls.triangular_solve": _Factors.triangular_solve,
    "cupy.calls.lu": _Factors.lu,
    "cupy.calls.solve": _Factors.linear_solve,
    "cupy.calls.det": _Factors.det,
    "cupy.calls.slogdet": _Factors.det,
}
