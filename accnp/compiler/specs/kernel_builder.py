"""Building of the arguments, statements and stores of a kernel from its description.

Input: a `KernelSpec`, whose statements have formulas and strided accesses. Output: loop IR in a
`LoopBuilder`, and the pointers and integers of the call (`GeneratedKernel`). The files of the loop
forms add loops and call `KernelBuilder` for the statements inside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from accnp.compiler.formulas import converted, expression
from accnp.compiler.loops.builder import Loop, LoopBuilder, affine, call, cast, plus
from accnp.compiler.loops.ir import Buffer, Const, Expr, Index, Load, Var
from accnp.compiler.loops.types import I8, DType, dtype_of
from accnp.compiler.unsupported import Unsupported
from accnp.ir.generated import GeneratedKernel
from accnp.ir.kernel import LONG_STEP, STRETCH, STRIDES, Access, KernelSpec, Phase, Statement

__all__ = ["KernelBuilder", "Place", "are_adjacent", "loop_type"]

Place = Var | Index  # an index along an axis: a variable, or variables plus a constant


def loop_type(dtype: np.dtype) -> DType:
    """Return the type of the loop IR for a dtype; raises Unsupported if there is none."""
    result = dtype_of(dtype)
    if result is None:
        raise Unsupported(f"numbers of type {dtype}")
    return result


def are_adjacent(stores: Sequence[tuple[Access, str]], d: int) -> bool:
    """Return whether adjacent elements along an axis are stored adjacently. Only such loops become
    vector code. Other loops might write an element several times."""
    return all(a.strides[d] == 1 for a, _ in stores)


class KernelBuilder:
    """A kernel that is being built: its arguments, and the values assigned so far."""

    def __init__(self, spec: KernelSpec, edge: bool = False, tiny: bool = False) -> None:
        self.spec = spec
        # Whether a narrow cell has the loops for long axes, so that it shares the kernel of others.
        self.edge = edge
        # Whether the kernel does all its few steps in one call, and will be specialized to sizes.
        self.tiny = tiny
        self.loop_ir = LoopBuilder()
        self.out = GeneratedKernel()
        self.out.form = spec.form
        self.values: dict[str, Expr] = {}
        self.buffers: dict[int, Buffer] = {}
        self.integers: dict[object, Var] = {}  # integer arguments
        # The row buffers for later passes by result, and whether stores go there.
        self.row_buffers: dict[int, Buffer] = {}
        self.stores_to_row_buffers = False
        self.max_constant_stride = 1  # the largest stride that is a constant
        # The tile of a transposed operand, and the index in it of index 0 along the rows.
        self.transposed: dict[int, tuple[Buffer, Var]] = {}
        # Axes are numbered from the outer ones: (outer, reduced, inner).
        self.outer = len(spec.outer)
        axes = len(spec.outer) + len(spec.reduced) + len(spec.inner)
        self.along = axes - 1 if spec.inner or spec.reduced else -1  # axis of the innermost loop

    def start(self) -> None:
        """Declare the buffers, and assign the values that are computed once."""
        for a in self.spec.accesses:
            self.buffers[id(a)] = self.loop_ir.buffer(f"a{a.number}", loop_type(a.dtype))
            self.out.pointers.append(a)
        for s in self.spec.scalars:
            self.statement(s, {})

    # --- arguments ---

    def integer(self, key: object, name: str, value: int) -> Var:
        """Return an integer argument."""
        if key not in self.integers:
            self.integers[key] = self.loop_ir.integer(name)
            self.out.ints.append(value)
        return self.integers[key]

    def size(self, d: int) -> Var:
        """Return the size of an axis."""
        sizes = (*self.spec.outer, *self.spec.reduced, *self.spec.inner)
        return self.integer(("n", d), f"n{d}", sizes[d])

    def total(self) -> Var:
        """Return the number of reduced elements."""
        if len(self.spec.reduced) == 1:
            return self.size(self.outer)
        return self.integer("nr", "nr", prod(self.spec.reduced))

    def break_if_stopped(self, loop: Loop) -> None:
        """Add a `break` for interrupts to a loop over the reduced elements, if one step of the
        kernel may take longer than a user waits for an interrupt."""
        if self.out.weight >= LONG_STEP and not self.tiny:
            work = max(1, self.out.weight // prod(self.spec.reduced))
            self.loop_ir.break_if_stopped(
                loop, (1 << max(0, (STRETCH // work).bit_length() - 1)) - 1
            )

    def indices(self, flat: Var, axes: Sequence[int], name: str) -> dict[int, Var]:
        """Return the indices of some axes from the flat index of their elements."""
        coordinates: dict[int, Var] = {}
        for d in reversed(axes[1:]):
            size = self.size(d)
            rest = self.loop_ir.let(f"{name}q{d}", call("floordiv", flat, size))
            coordinates[d] = self.loop_ir.let(
                f"{name}{d}", call("sub", flat, call("mul", rest, size))
            )
            flat = rest
        return {axes[0]: flat, **dict(reversed(coordinates.items()))} if axes else {}

    def outer_indices(self, flat: Var) -> dict[int, Var]:
        """Return the indices of the outer axes from the flat index of a row."""
        return self.indices(flat, range(self.outer), "o")

    def reduced_indices(self, flat: Var) -> dict[int, Var]:
        """Return the indices of the reduced axes from the flat index of a reduced element."""
        return self.indices(flat, self.reduced_axes, "d")

    @property
    def reduced_axes(self) -> range:
        """The reduced axes."""
        return range(self.outer, self.outer + len(self.spec.reduced))

    def place(self, a: Access, index: Mapping[int, Place]) -> Expr:
        """Return the index of an access at the indices of some axes."""
        terms: list[tuple[Var, int | Var]] = []
        constant = 0
        for d, i in index.items():
            factor = self.stride(a, d)
            assert isinstance(i, Var) or all(k == 1 for _, k in i.terms)
            if isinstance(i, Var):
                terms.append((i, factor))
            elif isinstance(factor, Var):
                terms += [(v, factor) for v, _ in i.terms]
                terms.append((factor, i.constant))
            else:
                terms += [(v, factor) for v, _ in i.terms]
                constant += factor * i.constant
        return affine(*terms, constant=constant)

    def stride(self, a: Access, d: int) -> int | Var:
        """Return the stride of an access along an axis: a small constant, or an argument."""
        stride = a.strides[d]
        along = d == self.along and stride in STRIDES and not a.store
        if 0 <= stride <= self.max_constant_stride or along:
            return stride
        # Loads of one array with the same strides share these arguments.
        whose = id(a) if a.store else (id(a.value), a.strides)
        name = f"a{a.number}s{d}" if a.number >= 0 else f"x{d}"
        return self.integer(("s", whose, d), name, stride)

    def element(self, s: Statement, a: Access, index: Mapping[int, Place]) -> Expr:
        """Return the index of a load, with its computed terms."""
        at = self.place(a, index)
        for k, (name, (stride, _)) in enumerate(zip(s.args, a.terms, strict=True)):
            term: Expr = cast(self.values[name], I8)
            if stride != 1:
                step = self.integer(("m", id(a), k), f"a{a.number}m{k}", stride)
                term = call("mul", term, step)
            at = term if at == Const(0, I8) else call("add", at, term)
        return at

    # --- statements ---

    def value(self, s: Statement, index: Mapping[int, Place]) -> Expr:
        """Return the value that a statement assigns."""
        to = loop_type(s.dtype)
        if s.access is not None and id(s.access) in self.transposed:
            tile, begin = self.transposed[id(s.access)]
            return Load(tile, plus(begin, index[self.along]))
        if s.access is not None and id(s.access) in self.row_buffers:
            return Load(self.row_buffers[id(s.access)], index[self.outer])
        if s.access is not None:
            return Load(self.buffers[id(s.access)], self.element(s, s.access, index))
        if s.index is not None:
            offset = self.integer(("o", id(s.index)), f"x{len(self.integers)}o", s.index.offset)
            return converted(plus(self.place(s.index, index), offset), to)
        return converted(expression(s.text, [self.values[a] for a in s.args]), to)

    def statement(self, s: Statement, index: Mapping[int, Place]) -> None:
        self.values[s.name] = self.loop_ir.let(s.name, self.value(s, index))

    def store(self, a: Access, name: str, index: Mapping[int, Place]) -> None:
        if self.stores_to_row_buffers and id(a) in self.row_buffers:
            self.loop_ir.store(self.row_buffers[id(a)], index[self.outer], self.values[name])
            return
        self.loop_ir.store(self.buffers[id(a)], self.place(a, index), self.values[name])

    def hoist(self, phase: Phase, along: int, index: Mapping[int, Place]) -> None:
        """Assign loop-invariant values before the loop."""
        moving: set[str] = set()
        for s in phase.full:
            access = s.access or s.index
            if (access is not None and access.strides[along]) or not moving.isdisjoint(s.args):
                moving.add(s.name)
            else:
                self.statement(s, index)

    def body(self, phase: Phase, index: Mapping[int, Place]) -> None:
        """Add the statements of one step. Results are stored as soon as they are known, but after
        the last load, because they may overwrite operands."""
        here = [s for s in phase.full if s.name not in self.values]
        loads = [k for k, s in enumerate(here) if s.access is not None]
        last = loads[-1] if loads else -1
        coming = {s.name for s in here[last + 1 :]}
        early = [x for x in phase.stores if x[1] not in coming]
        for k, s in enumerate(here):
            if k == last + 1:
                self.stores(early, index)
            self.statement(s, index)
            if k > last:
                self.stores([x for x in phase.stores if x[1] == s.name], index)
        if last + 1 >= len(here):
            self.stores(early, index)

    def stores(self, those: Sequence[tuple[Access, str]], index: Mapping[int, Place]) -> None:
        for a, name in those:
            self.store(a, name, index)
