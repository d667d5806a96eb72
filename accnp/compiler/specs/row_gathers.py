"""Maps that read their rows at a few computed indices, which are the same in every row.

The indices are computed once and stored on the stack. If the processor has an instruction for it,
each short row is permuted by one instruction, and the other operations use vectors along the row.
Otherwise each element is loaded and stored separately, in loops that `passes.unroll` unrolls.
Vectors across rows would have to gather and scatter the elements.
"""

from __future__ import annotations

from math import prod

from accnp.compiler.formulas import converted
from accnp.compiler.loops.ir import Address, Buffer, Const, Do, Load, Var
from accnp.compiler.loops.types import I4, I8
from accnp.compiler.specs.kernel_builder import KernelBuilder, loop_type
from accnp.compiler.specs.short_axes import fits_permute, gather_loads, row_invariants
from accnp.ir.kernel import BLOCK, Statement
from accnp.lazy_imports import imported

__all__ = ["add_row_gathers", "has_vector_permute"]

_ZERO = Const(0, I8)


def has_vector_permute() -> bool:
    """Return whether the processor permutes vectors by a register (AVX-512)."""
    return imported("accnp.compiler.processor").WIDE


def add_row_gathers(builder: KernelBuilder) -> None:
    """Add a loop whose steps are rows."""
    spec = builder.spec
    builder.out.extent = prod(spec.outer)
    builder.out.weight = spec.cost * prod(spec.inner)
    gathers = gather_loads(spec.phases[0])
    adjacent = all(a.strides[builder.along] == 1 for a, _ in spec.phases[0].stores)
    if adjacent and all(fits_permute(s, spec.inner[0]) for s in gathers) and has_vector_permute():
        _add_permuted_rows(builder, gathers)
    else:
        _add_loaded_rows(builder)


def _add_permuted_rows(builder: KernelBuilder, gathers: list[Statement]) -> None:
    """Add rows that one instruction permutes."""
    spec, loop_ir, inner = builder.spec, builder.loop_ir, builder.along
    (phase,) = spec.phases
    n = Const(spec.inner[0], I8)
    rows = {s.name: loop_ir.stack("row", loop_type(s.dtype), BLOCK) for s in gathers}
    places = {s.name: loop_ir.stack("places", I4, BLOCK) for s in gathers}
    needed = {name for _, name in phase.stores}  # in the loop over rows
    for s in reversed(phase.full):
        if s.name in needed and s.name not in rows:
            needed.update(s.args)
    before = dict(builder.values)
    with loop_ir.loop("j", _ZERO, n, independent=True) as steps:
        for s in row_invariants(spec):
            builder.statement(s, {inner: steps.index})
        for s in gathers:
            loop_ir.store(places[s.name], steps.index, converted(builder.values[s.args[0]], I4))
    builder.values = dict(before)
    with loop_ir.loop("o", loop_ir.first, loop_ir.last) as loop:
        index = builder.outer_indices(loop.index)
        for s in gathers:
            a = s.access
            assert a is not None
            size = builder.integer(("row", id(a)), "size", a.terms[0][1] + 1)
            start = builder.place(a, index)
            to = rows[s.name]
            row = Address(to, _ZERO), Address(builder.buffers[id(a)], start), size
            loop_ir.add(Do("permute", (*row, n, Address(places[s.name], _ZERO))))
        with loop_ir.loop("j", _ZERO, n, independent=True) as steps:
            here = {**index, inner: steps.index}
            for s in phase.full:
                if s.name in rows:
                    builder.values[s.name] = loop_ir.let(s.name, Load(rows[s.name], steps.index))
                elif s.name in needed:
                    builder.statement(s, here)
            builder.stores(phase.stores, here)
    builder.values = before


def _add_loaded_rows(builder: KernelBuilder) -> None:
    """Add rows whose elements are loaded one by one."""
    spec, loop_ir, inner = builder.spec, builder.loop_ir, builder.along
    (phase,) = spec.phases
    n = Const(spec.inner[0], I8)
    fixed = row_invariants(spec)
    moving = [s for s in phase.full if s not in fixed]
    needed = {x for s in moving for x in s.args} | {name for _, name in phase.stores}
    buffers: dict[str, Buffer] = {}
    before = dict(builder.values)
    with loop_ir.loop("k", _ZERO, n) as steps:
        for s in fixed:
            builder.statement(s, {inner: steps.index})
            if s.name in needed:
                buffers[s.name] = loop_ir.stack("kept", loop_type(s.dtype), BLOCK)
                loop_ir.store(buffers[s.name], steps.index, builder.values[s.name])
    builder.values = dict(before)
    with loop_ir.loop("o", loop_ir.first, loop_ir.last) as loop:
        index: dict[int, Var] = builder.outer_indices(loop.index)
        with loop_ir.loop("k", _ZERO, n) as steps:
            here = {**index, inner: steps.index}
            for name, buffer in buffers.items():
                builder.values[name] = loop_ir.let(name, Load(buffer, steps.index))
            for s in moving:
                builder.statement(s, here)
            builder.stores(phase.stores, here)
    builder.values = before
