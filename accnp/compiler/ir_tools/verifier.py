"""Verifier of the loop IR, which checks that a kernel is well formed.

It checks types, names, that variables are defined before use, the annotations `independent` and
`vector`, and that accesses are within buffers whose length is known, as far as the bounds of their
indices are (`bounds.py`). Tests run it after every pass, and `enable_checks` runs it for every
kernel.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence

import numpy as np

from accnp.compiler.ir_tools.block_threads import SYNCHRONIZING
from accnp.compiler.ir_tools.signatures import is_of_gpu, procedure, type_of_call
from accnp.compiler.loops.bounds import Bounds, Limits, exactly
from accnp.compiler.loops.builder import plus
from accnp.compiler.loops.functions import FUNCTIONS
from accnp.compiler.loops.ir import (
    MAX_SHIFT_DISTANCE,
    Address,
    Break,
    Buffer,
    Carried,
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
    Vector,
    While,
    dtype,
)
from accnp.compiler.loops.printer import print_expr
from accnp.compiler.loops.types import B1, DTYPES, F4, F8, I8, DType, Pointer, Type
from accnp.compiler.loops.visiting import (
    accessed,
    assigned,
    expressions,
    parts,
    statements,
    subexpressions,
)
from accnp.ir.op import COMBINES

__all__ = ["VerificationError", "verify"]

STACK = 1 << 20  # the maximum bytes of buffers on the stack; threads have a few megabytes
SHARED = 48 << 10  # the maximum bytes of shared memory without a special request to the driver
# Keywords of the text of kernels, and names that the printed source for Numba uses.
RESERVED = frozenset({
    *keyword.kwlist, "let", "next", "reduce", "reduction", "stack", "heap", "wide", "of",
    "prefetch", "release", "transpose", "columns", *[f"strips_{c}" for c in COMBINES],
    *FUNCTIONS, *DTYPES, "range", "at", "block_wide_sum",
    *[f"transpose_{k}" for k in (1, 2, 4, 8)], *[f"tile_{t}" for t in DTYPES],
    *[f"slab_{t}" for t in DTYPES],
    *[f"block_{c}" for c in COMBINES], *[f"stack_{t}" for t in DTYPES],
    *[f"heap_{t}" for t in DTYPES],
})  # fmt: skip
# Additional reserved names in kernels for GPUs.
OF_GPUS = frozenset({
    "load", "store", "aligned", "part", "load2", "load4", "store2", "store4", "shared", "barrier",
    "thread", "threads", "thread_of_block", "threads_of_block", "block_of_grid", "blocks", "lane",
    "warp", "address", "quotient", "inverse", "divided", "any_lane", "shuffle_down", "shuffle_xor",
    "shuffle_at", "atomic_add", "atomic_min", "atomic_max", *[f"shared_{t}" for t in DTYPES],
})  # fmt: skip
SIDE = 16  # the maximum number of rows of a tile
_WORD = np.iinfo(np.int64)


class VerificationError(ValueError):
    """A kernel is not well formed.

    Attributes
    ----------
    reason : str
        What is wrong.
    statement : Stmt or None
        The statement in which it is, if it is in one.
    """

    def __init__(self, kernel: str, reason: str) -> None:
        super().__init__(f"verify: {kernel}: {reason}")
        self.reason = reason
        self.statement: Stmt | None = None


def _is_defined(name: str, of: DType) -> bool:
    combine = COMBINES.get(name)
    return combine is not None and (of.kind != "float" or "f" in combine.kinds)


def verify(kernel: Kernel) -> None:
    """Check a kernel.

    Raises
    ------
    VerificationError
        If it is not well formed. The message names the kernel and what is wrong.
    """
    _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: set[str] = set()  # all names so far
        self.scope: set[Var] = set()
        self.buffers: set[Buffer] = set()
        self.callees = {c.name: c for c in kernel.callees}
        self.carried: list[tuple[Carried, ...]] = []  # carried values of the enclosing loops
        self.bounds = Bounds()
        self.addresses: dict[Var, Address] = {}  # where variables point to, if that is known
        self.lengths = {b: exactly(b.length) for b in (*kernel.stack, *kernel.shared)}
        for b, n in kernel.heap:
            self.lengths[b] = self.bounds.of(n)

    def run(self) -> None:
        k = self.kernel
        named = k.name.isascii() and k.name.isidentifier() and not keyword.iskeyword(k.name)
        self.check(named, f"{k.name!r} is not a valid name")
        for v in (k.first, k.last, *k.integers):
            self.check(v.dtype == I8, f"argument {v.name} is not an index")
            self.define(v)
        if k.threads:
            self.check(k.threads > 0, f"a block has {k.threads} threads")
            self.scope -= {k.first, k.last} - {*k.parameters}
            alone = not (k.heap or k.nontemporal)
            self.check(alone, "a kernel for GPUs has what only processors have")
        else:
            self.check(not k.shared, "a kernel for processors has memory that a block shares")
        for b in (*k.buffers, *k.stack, *k.shared, *[b for b, _ in k.heap]):
            self.define_name(b.name)
            self.buffers.add(b)
        for b in k.buffers:
            self.check(b.length == 0, f"argument {b.name} has a length")
        for b in (*k.stack, *k.shared):
            self.check(b.length > 0, f"{b.name} has no length")
        size = sum([b.length * b.dtype.size for b in k.stack])
        shared = sum([b.length * b.dtype.size for b in k.shared])
        self.check(shared <= SHARED, f"a block shares {shared} bytes; {SHARED} are allowed")
        for b, n in k.heap:
            self.check(b.length == 0, f"{b.name} on the heap has a known length")
            self.check(n in k.integers, f"the length of {b.name} is not an argument")
        same = not k.order or {*k.arguments} == {*k.buffers, *k.integers}
        self.check(same, "the order does not list the arguments")
        self.check(
            k.nontemporal is None or k.nontemporal in k.integers,
            "the integer `nontemporal` is not an argument",
        )
        of_another = [b for b, _, _ in k.shifted]
        self.check(len({*of_another}) == len(of_another), "a buffer is shifted twice")
        for b, of, distance in k.shifted:
            pair, named = {b, of}, f"{b.name}, shifted by {distance} from {of.name},"
            self.check(pair <= {*k.buffers}, f"{named} is not an argument, or the other one is not")
            self.check(0 < distance <= MAX_SHIFT_DISTANCE, f"{named} is too far away")
            self.check(of not in of_another, f"{named} is shifted from one that is shifted as well")
            self.check(b.dtype == of.dtype, f"{named} has another type")
            stores = [s for s in statements(k.body) if isinstance(s, Store | StoreVector)]
            only_read = pair.isdisjoint([s.buffer for s in stores])
            self.check(only_read, f"{named} is stored to, or the other one is")
        self.check({*k.long} <= {*k.integers}, "a long integer is not an argument")
        self.check(size <= STACK, f"buffers on the stack have {size} bytes; {STACK} are allowed")
        self.block(k.body)

    def fail(self, what: str) -> None:
        raise VerificationError(self.kernel.name, what)

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            self.fail(what)

    def check_name(self, name: str) -> None:
        self.check(name.isascii() and name.isidentifier(), f"{name!r} is not a valid name")
        reserved = name in RESERVED or (self.kernel.threads > 0 and name in OF_GPUS)
        self.check(not reserved, f"the name {name} has a meaning")

    def integer(self, value: int, what: str) -> None:
        self.check(_WORD.min <= value <= _WORD.max, f"{what} has more than 64 bits: {value}")

    def define_name(self, name: str) -> None:
        self.check_name(name)
        self.check(name not in self.names, f"{name} is defined twice")
        self.names.add(name)

    def define(self, v: Var) -> None:
        self.define_name(v.name)
        self.scope.add(v)

    # --- statements ---

    def block(self, body: Sequence[Stmt], ends: bool = True) -> None:
        """Check statements. If their block `ends`, their variables are out of scope afterwards."""
        before = set(self.scope)
        self.statements(body)
        if ends:
            self.scope = before

    def statements(self, body: Sequence[Stmt]) -> None:
        """Check statements; errors say in which one they are."""
        for s in body:
            try:
                self.statement(s)
            except VerificationError as error:
                error.statement = error.statement or s
                raise

    def statement(self, s: Stmt) -> None:  # noqa: C901
        if isinstance(s, Let):
            self.typed(s.value, s.var.dtype, s.var.name)
            self.define(s.var)
            if isinstance(s.value, Address):
                self.addresses[s.var] = s.value
            elif s.var.dtype == I8:
                self.bounds.define(s.var, self.bounds.of(s.value))
        elif isinstance(s, Store):
            self.place(s.buffer, s.index)
            self.typed(s.value, s.buffer.element, f"an element of {s.buffer.name}")
        elif isinstance(s, LoadVector):
            self.access(s, len(s.results))
            for v in s.results:
                self.check(v.dtype == s.buffer.element, f"{v.name} has another type")
                self.define(v)
        elif isinstance(s, StoreVector):
            self.access(s, len(s.values))
            for x in s.values:
                self.typed(x, s.buffer.element, f"an element of {s.buffer.name}")
        elif isinstance(s, Do):
            self.do(s)
        elif isinstance(s, Run | Share):
            self.call_of_kernel(s)
        elif isinstance(s, Break):
            self.leave(s)
        elif isinstance(s, While):
            self.condition_loop(s)
        elif isinstance(s, Prefetch):
            self.buffer(s.buffer)
            self.typed(s.index, I8, f"an index of {s.buffer.name}")
        elif isinstance(s, ReduceColumns):
            self.columns(s)
        elif isinstance(s, Transpose):
            self.transpose(s)
        elif isinstance(s, For):
            self.loop(s)
        elif isinstance(s, If):
            self.choice(s)
        elif isinstance(s, Reduce):
            self.reduce(s)
        else:
            self.typed(s.extent, I8, f"the extent of {s.result.name}")
            self.buffer(s.buffer)
            self.typed(s.start, I8, f"the start of {s.result.name}")
            self.within(s.buffer, s.start, self.bounds.of_steps(Const(0, I8), s.extent))
            self.reduction(s, s.buffer.element)

    def place(self, buffer: Memory, index: Expr, count: int = 1) -> None:
        """Check the index of an access to adjacent elements."""
        self.buffer(buffer)
        self.typed(index, I8, f"an index of {buffer.name}")
        self.within(buffer, index, Limits(exactly(0).low, exactly(count - 1).high))

    def within(self, buffer: Memory, start: Expr, steps: Limits, beyond: int = 0) -> None:
        """Check that elements from `start` on are in a buffer, if its length is known, or at most
        `beyond` elements after it. Their distances from `start` have the bounds `steps`."""
        reached = self.bounds.of(start).plus(steps)
        while isinstance(buffer, Var) and buffer in self.addresses:
            buffer, index = self.addresses[buffer]
            reached = reached.plus(self.bounds.of(index))
        if isinstance(buffer, Buffer) and buffer in self.lengths:
            length = self.lengths[buffer].moved(beyond)
            at = f"{buffer.name}[{print_expr(start)}]"
            self.check(not self.bounds.leaves(reached, length), f"{at} is outside of the buffer")

    def access(self, s: LoadVector | StoreVector, count: int) -> None:
        """Check a vector access, which may have at most 16 bytes."""
        name, of = s.buffer.name, s.buffer.element
        self.check(self.kernel.threads > 0, f"{name} has vectors in a kernel for processors")
        fits = count in (2, 4) and count * of.size <= 16 and of.kind != "complex"
        self.check(fits, f"an access cannot have {count} elements of {name}")
        self.place(s.buffer, s.index, count)

    def choice(self, s: If) -> None:
        self.typed(s.test, B1, "a condition")
        for body, side in ((s.then, 1), (s.orelse, 2)):
            before = set(self.scope)
            with self.bounds.branch():
                self.block(body, ends=False)
            if not (body and isinstance(body[-1], Break)):
                for j in s.joined:
                    self.typed((j.then, j.orelse)[side - 1], j.result.dtype, j.result.name)
            self.scope = before
        for j in s.joined:
            self.define(j.result)

    def do(self, s: Do) -> None:
        self.of_gpu(s.function)
        result, takes = procedure(s.function, [self.expr(a) for a in s.args])
        self.check(takes, f"no procedure {s.function} of these arguments")
        if s.result is not None:
            self.check(s.result.dtype == result, f"{s.result.name} has another type")
            self.define(s.result)

    def of_gpu(self, name: str) -> None:
        """Check that a kernel for CPUs does not call an intrinsic for GPUs."""
        right = self.kernel.threads > 0 or not is_of_gpu(name)
        self.check(right, f"{name} in a kernel for processors")

    def call_of_kernel(self, s: Run | Share) -> None:
        self.check(s.kernel in self.callees, f"{s.kernel} is not among the callees")
        numbers = expressions(s)[: -len(s.args)] if s.args else expressions(s)
        for x in numbers:
            self.typed(x, I8, f"an argument of {s.kernel}")
        of = self.callees[s.kernel].arguments
        self.check(len(of) == len(s.args), f"{s.kernel} has {len(of)} arguments")
        for x, t in zip(s.args, of, strict=True):
            self.typed(x, t, f"an argument of {s.kernel}")

    def leave(self, s: Break) -> None:
        self.check(bool(self.carried), "a break outside of loops")
        carried = self.carried[-1]
        self.check(len(carried) == len(s.values), "a break with other values than the loop carries")
        for c, x in zip(carried, s.values, strict=True):
            self.typed(x, c.var.dtype, c.result.name)

    def condition_loop(self, s: While) -> None:
        for c in s.carried:
            self.typed(c.start, c.var.dtype, c.var.name)
        before = set(self.scope)
        for c in s.carried:
            self.define(c.var)
        self.typed(s.test, B1, "a condition")
        self.steps(s)
        self.scope = before
        self.results(s.carried)

    def steps(self, s: For | While) -> None:
        """Check the statements of a step, and its carried values."""
        self.carried.append(s.carried)
        self.statements(s.body)
        self.carried.pop()
        for c in s.carried:
            self.typed(c.following, c.var.dtype, c.var.name)

    def results(self, carried: Sequence[Carried]) -> None:
        for c in carried:
            self.check(c.result.dtype == c.var.dtype, f"{c.result.name} has another type")
            self.define(c.result)

    def columns(self, s: ReduceColumns) -> None:
        name = s.to.name
        for b in (s.to, s.buffer, s.places):
            self.buffer(b)
        self.check(s.to.length > 0, f"{name} has no room for vectors")
        self.check(s.to.dtype == s.buffer.dtype, f"{name} has another type than its source")
        self.check(s.places.dtype == I8, f"the places of {name} are not indices")
        self.check(_is_defined(s.combine, s.to.dtype), f"{name}: no reduction {s.combine!r}")
        for x in (s.start, s.rows, s.columns):
            self.typed(x, I8, f"a number of the columns of {name}")
        zero = Const(0, I8)
        for b, n in ((s.to, s.columns), (s.places, s.rows)):
            self.within(b, zero, self.bounds.of_steps(zero, n))

    def transpose(self, s: Transpose) -> None:
        self.buffer(s.to)
        self.buffer(s.buffer)
        self.check(s.to.length >= SIDE * s.width > 0, f"{s.to.name} has no room for squares")
        self.check(s.to.dtype == s.buffer.dtype, f"{s.to.name} has another type than its source")
        for x in (s.start, s.step, s.rows, s.columns):
            self.typed(x, I8, f"a number of the tile {s.to.name}")
        zero = Const(0, I8)
        rows, columns = (self.bounds.of_steps(zero, n) for n in (s.rows, s.columns))
        self.within(s.to, zero, columns.plus(rows, s.width))
        if isinstance(s.step, Const):
            self.within(s.buffer, s.start, rows.plus(columns, int(s.step.value)))

    def loop(self, s: For) -> None:
        name = s.index.name
        self.typed(s.start, I8, f"the start of {name}")
        self.typed(s.stop, I8, f"the end of {name}")
        self.check(s.step > 0, f"the step of {name} is {s.step}")
        self.integer(s.step, f"the step of {name}")
        for c in s.carried:
            self.typed(c.start, c.var.dtype, c.var.name)
        before = set(self.scope)
        self.define(s.index)
        for c in s.carried:
            self.define(c.var)
        limits = self.bounds.of_steps(s.start, s.stop, s.step)
        if any(isinstance(x, Break) for x in statements(s.body)):
            limits = limits._replace(high=())  # some steps may not run
        self.bounds.define(s.index, limits)
        self.steps(s)
        self.scope = before
        self.results(s.carried)
        if s.independent:
            self.check(not s.carried, f"steps of {name} are independent, and carry values")
            if not s.spread or not (_has_computed_places(s) or _is_together(s)):
                extent = None
                if isinstance(s.start, Const) and isinstance(s.stop, Const):
                    extent = int(s.stop.value) - int(s.start.value)
                self.independent(s.index, s.body, s.step, extent)
        if s.interchangeable:
            inner = s.body[-1] if s.body else None
            right = isinstance(inner, For) and inner.independent and not s.carried
            self.check(right, f"{name} may change places with a loop that there is not")
        if s.vector is not None:
            self.vector(s, s.vector)
        if s.spread:
            self.spread(s)

    def spread(self, s: For) -> None:
        """Check a loop whose steps are distributed over threads or blocks."""
        name, threads = s.index.name, self.kernel.threads
        self.check(threads > 0, f"{name} is spread in a kernel for processors")
        for x in s.part or ():
            self.typed(x, I8, f"a number of the blocks of {name}")
        some = s.part is None or s.spread in ("grid", "blocks")
        self.check(some, f"{name} is dealt to some blocks, and has one step for each")
        # In kernels from source, it is not known whether threads write different elements.
        alone = not s.carried and s.vector is None
        self.check(alone, f"{name} is spread, and carries values from step to step")
        if s.spread == "threads":
            each = (s.start, s.stop, s.step) == (Const(0, I8), Const(threads, I8), 1)
            self.check(each, f"{name} is not an index of the {threads} threads of a block")

    def vector(self, s: For, vector: Vector) -> None:
        """Check a vectorized loop, which must have step 1, assignments and stores."""
        name, lanes = s.index.name, vector.lanes
        self.check(s.independent, f"{name} has vectors, and steps that may depend on others")
        self.check(0 < lanes <= 64 and not lanes & (lanes - 1), f"{name} has {lanes} lanes")
        self.check(s.step == 1, f"{name} has vectors, and a step of {s.step}")
        plain = all(isinstance(x, Let | Store) for x in s.body)
        self.check(plain, f"{name} has vectors, and more than assignments and stores")
        if vector.peel:
            stores = any(isinstance(x, Store) for x in s.body)
            self.check(stores, f"{name} peels steps, and stores nothing")
        if vector.rest == "whole":
            used = {b for x in s.body for b in accessed(x)}
            room = {b for b in self.kernel.stack if not b.exact}
            self.check(used <= room, f"{name} has whole vectors, and memory without room")

    def independent(
        self, index: Var, body: Sequence[Stmt], width: int = 1, extent: int | None = None
    ) -> None:
        """Check that the steps of a loop are independent.

        The index of each store must be the loop index times a number or an argument, plus terms
        that are the same in all steps. If the memory is also read, it must be a number, and all
        these indices must be less than it apart. Of several stores whose indices differ by
        constants, none may write an element that another one writes in another step. The loop index
        grows by `width` per step, in a range of this `extent` if it is known.
        """
        name = index.name
        loads: dict[Memory, set[Expr]] = {}
        stores: dict[Memory, set[Expr]] = {}
        for inner in statements(body):
            for x in expressions(inner):
                for part in subexpressions(x):
                    if isinstance(part, Load):
                        loads.setdefault(part.buffer, set()).add(part.index)
            if isinstance(inner, Store):
                stores.setdefault(inner.buffer, set()).add(inner.index)
            elif isinstance(inner, StoreVector):
                places = _adjacent(inner.index, len(inner.values))
                stores.setdefault(inner.buffer, set()).update(places)
            elif isinstance(inner, LoadVector):
                places = _adjacent(inner.index, len(inner.results))
                loads.setdefault(inner.buffer, set()).update(places)
            elif isinstance(inner, For | While | Reduce | ReduceElements):
                return  # loops inside are checked on their own
        inside = {v for x in statements(body) for v in assigned(x)} | {index}
        for buffer, places in stores.items():
            for x in places:
                moves = self.moves(x, index) and [v for v in (x, *parts(x)) if v in inside] == [
                    index
                ]
                at = f"{buffer.name}[{print_expr(x)}]"
                self.check(moves, f"steps of {name} write {at}, which may be one place")
            read = loads.get(buffer, set())
            # Rows that are written together differ by sizes that are arguments.
            apart = (
                _are_apart(places | read, index, width)
                if read
                else all(
                    _never_meet(group, index, width, extent) for group in _of_equal_terms(places)
                )
            )
            self.check(apart, f"steps of {name} write {buffer.name}, and use it at several places")

    def moves(self, x: Expr, index: Var) -> bool:
        """Return whether an index grows with a loop index, by a number or by an argument: a stride,
        which is not 0 if a kernel writes."""
        known = [k for v, k in _index_terms(x) if v == index]
        return len(known) == 1 and (
            known[0] != 0 if isinstance(known[0], int) else known[0] in self.kernel.integers
        )

    def reduce(self, s: Reduce) -> None:
        self.typed(s.extent, I8, f"the extent of {s.index.name}")
        before = set(self.scope)
        self.define(s.index)
        self.bounds.define(s.index, self.bounds.of_steps(Const(0, I8), s.extent))
        for x in s.body:
            # Kernels from text may have other statements than the annotations declare.
            known = isinstance(x, Let | Store)  # pyright: ignore[reportUnnecessaryIsInstance]
            self.check(known, f"steps of {s.index.name} have statements inside")
            self.statement(x)
        values = [self.expr(f.value) for f in s.reductions]
        self.scope = before
        self.independent(s.index, s.body)
        for f, value_type in zip(s.reductions, values, strict=True):
            self.reduction(f, value_type)

    def reduction(self, s: Reduction | ReduceElements, value_type: Type) -> None:
        name = s.result.name
        self.check(s.combine in COMBINES, f"{name}: no reduction {s.combine!r}")
        if value_type.kind == "float":
            self.check(
                "f" in COMBINES[s.combine].kinds, f"{name}: {s.combine} of {value_type.token}"
            )
        if s.wide:
            self.check(
                value_type == F4 and s.combine == "sum",
                f"{name}: a wide reduction of {value_type.token}",
            )
            value_type = F8
        self.check(
            s.result.dtype == value_type,
            f"{name}: a reduction of {value_type.token} has another type",
        )
        self.define(s.result)

    # --- expressions ---

    def buffer(self, b: Memory) -> None:
        if isinstance(b, Var):
            self.check(isinstance(b.dtype, Pointer), f"{b.name} is not an address")
            self.expr(b)
        else:
            self.check(b in self.buffers, f"{b.name} is not a buffer of the kernel")

    def typed(self, x: Expr, of: Type, what: str) -> None:
        actual = self.expr(x)
        self.check(actual == of, f"{what} is {actual.token} instead of {of.token}: {print_expr(x)}")

    def expr(self, x: Expr) -> Type:
        """Check an expression; returns its type."""
        if isinstance(x, Var):
            self.check(x in self.scope, f"{x.name} is used where it is not defined")
        elif isinstance(x, Const):
            kinds = {"bool": bool, "float": float}
            right = type(x.value) is kinds.get(x.dtype.kind, int) and _is_in_range(x)
            self.check(right, f"{x.value!r} is not a valid {x.dtype.token}")
        elif isinstance(x, Load):
            self.place(x.buffer, x.index)
        elif isinstance(x, Address):
            self.buffer(x.buffer)
            self.typed(x.index, I8, f"an index of {x.buffer.name}")
            self.within(x.buffer, x.index, exactly(0), beyond=1)
        elif isinstance(x, Index):
            self.integer(x.constant, "the constant of an index")
            for v, k in x.terms:
                self.typed(v, I8, "a term of an index")
                if isinstance(k, Var):
                    self.typed(k, I8, "a factor of an index")
                else:
                    self.integer(k, "a factor of an index")
        elif isinstance(x, Cast):
            self.expr(x.value)
        else:
            self.of_gpu(x.function)
            result = type_of_call(x.function, [self.expr(a) for a in x.args])
            self.check(result is not None, f"no scalar function for {print_expr(x)}")
            self.check(result == x.dtype, f"{print_expr(x)} has another type")
        return dtype(x)


def _has_computed_places(s: For) -> bool:
    """Return whether a loop over threads writes at indices that it computes from its own index.
    Passes that collapse a nest of loops produce such loops; different steps still write different
    elements."""
    own = {s.index}
    for inner in statements(s.body):
        if isinstance(inner, Let) and any(x in own for x in subexpressions(inner.value)):
            own.add(inner.var)
    places = [x.index for x in statements(s.body) if isinstance(x, Store | StoreVector)]
    used = [{*subexpressions(x)} for x in places]
    return any(own & x - {s.index} for x in used) and all(own & x for x in used)


def _is_together(s: For) -> bool:
    """Return whether the threads that run the steps of a loop wait for each other. Then an element
    that several threads address is written by one of them, or all write the same value."""
    return any(isinstance(x, Do) and x.function in SYNCHRONIZING for x in statements(s.body))


def _step(x: Expr, index: Var) -> int:
    """Return by how much an index grows with another one; 0 if not, or if it is unknown."""
    if x == index:
        return 1
    factors = [k for v, k in x.terms if v == index] if isinstance(x, Index) else []
    return factors[0] if len(factors) == 1 and isinstance(factors[0], int) else 0


def _adjacent(x: Expr, count: int) -> list[Expr]:
    """Return the indices of several adjacent elements."""
    return [plus(x, Const(k, I8)) for k in range(count)]


def _index_terms(x: Expr) -> tuple[tuple[Expr, int | Var], ...]:
    return x.terms if isinstance(x, Index) else ((x, 1),)


def _of_equal_terms(places: set[Expr]) -> list[set[Expr]]:
    """Return groups of indices whose members differ by constants."""
    return [
        {x for x in places if _index_terms(x) == terms} for terms in {*map(_index_terms, places)}
    ]


def _are_apart(places: set[Expr], index: Var, width: int) -> bool:
    """Return whether the elements of a step are different from those of all other steps: all
    indices grow by the same number, which is larger than the distance between them."""
    rest = {*map(_index_terms, places)}
    offsets = [x.constant if isinstance(x, Index) else 0 for x in places]
    step = min([abs(_step(x, index)) for x in places]) * width
    return len(rest) == 1 and max(offsets) - min(offsets) < step


def _never_meet(places: set[Expr], index: Var, width: int, extent: int | None) -> bool:
    """Return whether indices that differ by constants are different in different steps."""
    move = abs(_step(next(iter(places)), index))
    offsets = sorted([x.constant if isinstance(x, Index) else 0 for x in places])
    apart = [b - a for k, a in enumerate(offsets) for b in offsets[k + 1 :]]
    if not move:  # it grows by a number that is an argument
        return not apart
    far = math.inf if extent is None else move * extent
    return all(d % (move * width) or d >= far for d in apart)


def _is_in_range(x: Const) -> bool:
    """Return whether a type can represent the value of a constant; floats are rounded."""
    if not isinstance(x.dtype, DType):
        return x.value == 0
    if x.dtype.kind == "bool":
        return True
    if x.dtype.kind in ("half", "complex"):
        return False
    if x.dtype.kind == "float":
        with np.errstate(over="ignore"):
            return not math.isfinite(x.value) or bool(np.isfinite(x.dtype.numpy.type(x.value)))
    info = np.iinfo(x.dtype.numpy)
    return info.min <= x.value <= info.max
