"""The base class of writers of vector loops: loops of independent steps as vector code.

A subclass (`lower._Vectors`) writes the operations of one step, in order, for several steps at a
time, and `stepping.write_loop` writes the loop around them. This module writes the LLVM text of
vector values, loads and stores. There is one copy of the body, and a mask for the last steps.
LLVM's own vectorizer tries several widths and leaves three copies of the body (vectors, shorter
vectors, single steps), which takes half of the time to compile a kernel.

Each operation is made from its code for scalars, instruction by instruction, so the bits are the
same. Long operations such as `tanh` are separate functions of vectors, which are inlined unless
they are called often.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NoReturn, TypeGuard

from llvmlite import ir

from accnp.compiler.llvm.accesses import (
    SIZES,
    Mask,
    gather,
    load_strided,
    load_vector,
    store_vector,
)
from accnp.compiler.llvm.nontemporal import prefetch, store_maybe_nontemporally
from accnp.compiler.llvm.private import insert_line
from accnp.compiler.llvm.templates import Index, LaneValue, Template, Vector, byte_size, vector
from accnp.compiler.loops.ir import For, Load, Memory

if TYPE_CHECKING:
    from accnp.compiler.llvm.lower import Function

__all__ = ["AHEAD", "MOST", "SHORT", "NotVector", "VectorLoop"]

MOST = 64  # lanes of a mask
SHORT = 4  # instructions of the longest operation that is written inline; longer ones are functions
AHEAD = 1024  # distance in bytes between a load and the prefetch that it issues
_I64 = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
# The same pointer, but LLVM does not know how it was computed, only which memory it points into.
_LAUNDER = "llvm.launder.invariant.group.p0"


class NotVector(Exception):
    """The loop cannot be written as vector code; LLVM's vectorizer handles it."""

    def __init__(self, node: For, why: str) -> None:
        super().__init__(why)
        self.node = node


class VectorLoop:
    """A loop whose body is written for `n` steps at a time.

    `f` is the function that is being written, with its builder `b`, its `functions`, and the size
    of a vector register, `vector_bytes`. `steps_of` writes the body.
    """

    rest = "tail"  # as `loops.ir.Vector.rest`
    count = 0  # steps, if their number is known and one vector computes them all
    flat = False  # whether it is a loop over all elements of the kernel
    # `stepping.write_loop` sets these before it writes the body.
    before: ir.Block  # the block before the loop, which grows until the end
    ahead: ir.IRBuilder  # writes into that block
    join: ir.Block  # the block after it

    def __init__(self, f: Function, node: For, n: int) -> None:
        self.f = f
        self.node = node
        self.n = n
        self.declares = f.functions.declares
        self.splats: dict[int, Vector] = {}
        self.starts: dict[tuple[object, ...], ir.Value] = {}  # loop-invariant addresses and numbers
        self.requested: ir.Value | None = None  # 1 if the launch requests non-temporal stores
        self.read: list[tuple[ir.Value, int]] = []  # addresses and bytes of operands of a step
        self.mask: Mask = None
        self.left: ir.Value | int | None = None  # remaining steps, if there is a mask
        self.whole: ir.Value | None = None  # 1 if they fill a vector; set if that is worth a branch
        # 1 if whole vectors are stored non-temporally; None: never
        self.nontemporal: ir.Value | None = None
        self.fetches: set[Load] | None = None  # loads that are prefetched; None: no prefetches
        self.padded: Collection[Memory] = ()  # memory with room for whole vectors under the index

    def fail(self, why: str) -> NoReturn:
        raise NotVector(self.node, why)

    def first_aligned(self, start: ir.Value, stop: ir.Value) -> ir.Value | None:
        """Set `requested`, and return the step up to which a row is computed separately. None if
        the row begins with a cache line, or no results are stored non-temporally."""
        raise NotImplementedError

    def common_offset(self) -> ir.Value | None:
        """Return a loop-invariant number that `stepping.write_loop` adds to the index of the loop,
        or None. `steps_of` gets the index with it."""
        raise NotImplementedError

    def overlapping_loads(
        self, before: ir.Block, head: ir.Block, start: ir.Value, stop: ir.Value
    ) -> AbstractContextManager[None]:
        """Reuse the vector of the previous step for loads that overlap, in the body of a loop from
        `start` on. `before` is the block before the loop, and `head` its first one."""
        raise NotImplementedError

    def steps_of(
        self, at: ir.Value, mask: Mask, left: ir.Value | int | None, nontemporal: ir.Value | None
    ) -> None:
        """Write the body for the steps from `at` on: those of the mask, or one for each lane.
        `left` is the number of remaining steps, or None. Whole vectors are stored non-temporally if
        `nontemporal` is 1."""
        raise NotImplementedError

    # --- text ---

    def put(self, text: str, builder: ir.IRBuilder | None = None) -> str:
        """Write an instruction; returns the name of its result."""
        functions = self.f.functions
        functions.serial += 1
        name = f"%v{functions.serial}"
        insert_line(builder or self.f.b, f"{name} = {text}")
        return name

    # --- values ---

    def lanes(self, value: LaneValue) -> Vector:
        """Return a value as a vector."""
        n = self.n
        if isinstance(value, Vector):
            return value
        if isinstance(value, Index):
            first = self.splat(self.first(value), self.f.b)
            steps = self.steps(value.step).name
            return Vector(_I64, self.put(f"add {vector('i64', n)} {first.name}, {steps}"))
        if isinstance(value, ir.Constant):
            return Vector(value.type, f"splat ({value.type} {value.get_reference()})")
        if not self.same(value):
            return self.splat(value, self.f.b)
        splat = self.splats.get(id(value))
        if splat is None:
            splat = self.splats[id(value)] = self.splat(value, self.ahead)
        return splat

    def steps(self, step: int | ir.Value) -> Vector:
        """Return the vector 0, step, 2 * step, ..."""
        lanes = range(self.n) if isinstance(step, ir.Value) else range(0, self.n * step, step)
        text = f"<{', '.join(f'i64 {k}' for k in lanes)}>"
        if isinstance(step, ir.Value):
            each = self.lanes(step)
            ahead = self.ahead if self.same(step) else None
            text = self.put(f"mul {vector('i64', self.n)} {each.name}, {text}", ahead)
        return Vector(_I64, text)

    def splat(self, value: ir.Value, builder: ir.IRBuilder) -> Vector:
        n, kind = self.n, vector(value.type, self.n)
        typed = f"{value.type} {value.get_reference()}"
        one = self.put(f"insertelement {kind} poison, {typed}, i64 0", builder)
        zeros = f"{vector('i32', n)} zeroinitializer"
        return Vector(
            value.type,
            self.put(f"shufflevector {kind} {one}, {kind} poison, {zeros}", builder),
        )

    # --- memory ---

    def store_lanes(self, code: ir.Type, place: ir.Value, name: str, mask: Mask) -> None:
        """Store a vector, non-temporally if that is requested."""
        store_normally = functools.partial(
            store_vector, self.f.b, self.put, self.declares, code, place, self.n, mask, name,
            self.whole,
        )  # fmt: skip
        if self.nontemporal is None:
            store_normally()
        else:
            read, self.read = () if self.fetches is not None else self.read, []
            how = self.nontemporal, self.n, code, place, name, store_normally, read, self.flat
            store_maybe_nontemporally(self.f.b, self.put, self.declares, *how)

    def load_lanes(self, kind: ir.Type, place: ir.Value, step: int, mask: Mask) -> str:
        """Load a vector of elements with a stride of `step`."""
        if step == 1:
            how = self.n, mask, self.whole
            return load_vector(self.f.b, self.put, self.declares, kind, place, *how)
        # Words of two bytes are shuffled by one instruction where vectors have 64.
        if byte_size(kind) not in (SIZES if self.f.vector_bytes < 64 else (2, *SIZES)):
            self.fail("short numbers in strides")
        how = step, self.n, self.f.vector_bytes, self.left
        return load_strided(self.f.b, self.put, self.declares, kind, place, *how)

    def gather_lanes(self, code: ir.Type, base: ir.Value, places: Vector) -> Vector:
        """Load lanes at computed indices."""
        text = gather(self.put, self.declares, code, base, places, self.n, self.mask)
        return Vector(code, text)

    def same(self, value: LaneValue) -> TypeGuard[ir.Value]:
        """Return whether a value is a loop-invariant LLVM value."""
        return isinstance(value, ir.Constant) or getattr(value, "parent", None) is self.before

    def first(self, index: Index) -> ir.Value:
        if index.offset is None:
            return index.now
        return self.f.b.add(index.now, index.offset, flags=("nsw",))

    def place(self, base: ir.Value, index: Index) -> ir.Value:
        """Return the address of an index. Its loop-invariant part is computed before the loop: LLVM
        would find it too, but that takes longer than all its other work."""
        if index.offset is None or not self.same(base):
            return self.f.b.gep(base, [self.first(index)])
        return self.f.b.gep(self.early("gep", base, index.offset), [index.now])

    def early(self, name: str, *values: ir.Value) -> ir.Value:
        """Write an instruction before the loop, once."""
        key = name, *[("", v.constant) if isinstance(v, ir.Constant) else id(v) for v in values]
        value = self.starts.get(key)
        if value is None:
            x, *rest = values
            more = {} if name in ("gep", "neg") else {"flags": ("nsw",)}
            instruction = getattr(self.ahead, name)(x, *([rest] if name == "gep" else rest), **more)
            value = self.starts[key] = self.launder(instruction) if name == "gep" else instruction
        return value

    def launder(self, place: ir.Value) -> ir.Value:
        """Hide from LLVM how an address was computed. Otherwise LLVM turns it into an address that
        it increments from row to row, and computes the sum again at the end of each row: with rows
        of 23 elements that took a quarter of the time."""
        b, module = self.ahead, self.f.b.module
        function = module.globals.get(_LAUNDER)
        if function is None:
            function = ir.Function(module, ir.FunctionType(_BYTES, [_BYTES]), _LAUNDER)
        return b.bitcast(b.call(function, [b.bitcast(place, _BYTES)]), place.type)

    def fetch(self, what: Load, place: ir.Value, size: int) -> None:
        """Prefetch the data of a later step.

        The processor prefetches by itself only if loads follow each other quickly. If the body is
        long, too few steps are in flight to hide the latency of memory.
        """
        if self.fetches is None or what in self.fetches:
            return
        self.fetches.add(what)
        prefetch(self.f.b, self.put, self.declares, place, AHEAD, self.n * size)

    def write_template(self, what: str, template: Template, names: Sequence[str]) -> Vector:
        """Write an operation on vectors; `what` is its name."""
        functions, n = self.f.functions, self.n
        if template.count <= SHORT:
            functions.serial += 1
            prefix = f"v{functions.serial}"
            for line in template.lines:
                insert_line(self.f.b, line.format(prefix, *names))
            functions.declares.update(template.declares)
            return Vector(template.type, template.result.format(prefix, *names))
        name = functions.called(template, what, n)
        kinds = [vector(k, n) for k in template.kinds]
        passed = ", ".join(map(" ".join, zip(kinds, names, strict=True)))
        return Vector(template.type, self.put(f"call {vector(template.type, n)} {name}({passed})"))
