"""Checks on what the compiler makes: a program of values, a kernel's loop nest. In: one of those.
Out: nothing, or VerifyError.

They are done for every new plan while `config.enable_checks` is set (the tests set it), and never
for a launch.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

from accnp.ir.kernel import Access, KernelSpec, Statement

__all__ = ["VerifyError", "verify_plan", "verify_program", "verify_spec"]

_FORMS = ("map", "row", "split", "column")
_PLACE = re.compile(r"\{(\d+)\}")


class VerifyError(AssertionError):
    """The compiler made something that cannot be right; a bug of this package."""


def _need(good: bool, text: str) -> None:
    if not good:
        raise VerifyError(f"verify: {text}")


# --- programs ---


def verify_program(program: Any) -> None:
    """Operands come before their users, every value has the type that its op infers, outputs are
    part of the program."""
    known: set[int] = {id(v) for v in program.leaves}
    _need(len(known) == len(program.leaves), "a leaf stands in the program twice")
    for v in program.values:
        _need(id(v) not in known, f"{v} stands in the program twice")
        if v.parent is not None:
            _need(id(v.parent) in known, f"{v} comes before the operation that it is a result of")
            _need(v.aval == v.parent.aval[v.index], f"{v} is not result {v.index} of {v.parent}")
        else:
            for x in v.inputs:
                _need(id(x) in known, f"{v} comes before its operand {x}")
                _need(not isinstance(x.aval, tuple), f"{v} takes all results of {x} as one operand")
            _verify_type(v)
        known.add(id(v))
    for v in program.outputs:
        _need(id(v) in known, f"the output {v} is not part of the program")


def _verify_type(v: Any) -> None:
    if v.op.kind in ("call", "loop", "mark", "item"):
        return
    found = v.op.infer(*[x.aval for x in v.inputs], **v.params)
    some = found if isinstance(found, tuple) else (found,)
    mine = v.aval if isinstance(v.aval, tuple) else (v.aval,)
    same = [(a.shape, a.dtype) == (b.shape, b.dtype) for a, b in zip(some, mine, strict=True)]
    _need(all(same), f"{v} has operands for which {v.op.name} infers {found}")


# --- kernels ---


def verify_spec(spec: KernelSpec) -> None:
    """Names are defined before use and once; accesses stay inside their arrays; stores of one array
    do not overlap loads of it."""
    _need(spec.form in _FORMS, f"{spec.form!r} is no form of a kernel")
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    _need(all(n >= 1 for n in sizes), f"a kernel over sizes {sizes}")
    _need(
        bool(spec.inner) == (spec.form == "column") or spec.form == "map",
        f"inner axes in the form {spec.form}",
    )
    for i, a in enumerate(spec.accesses):
        _need(a.number == i, "accesses are not numbered in order")
        _verify_access(a, sizes)
    stored = {id(a.value): a for a in spec.accesses if a.store and a.value is not None}
    for a in spec.accesses:
        if not a.store and a.value is not None and id(a.value) in stored:
            _need(False, f"{a.value} is loaded by the kernel that stores it")
    _verify_names(spec)


def _verify_access(a: Access, sizes: tuple[int, ...]) -> None:
    _need(
        len(a.strides) == len(sizes),
        f"an access with {len(a.strides)} strides in {len(sizes)} axes",
    )
    if a.value is None:  # scratch
        return
    low = high = a.offset
    for n, s in zip(sizes, a.strides, strict=True):
        low, high = low + min(0, s) * (n - 1), high + max(0, s) * (n - 1)
    for stride, top in a.terms:
        low, high = low + min(0, stride * top), high + max(0, stride * top)
    size = a.value.aval.size
    _need(low >= 0 and high < size, f"{a.value} of {size} elements is reached from {low} to {high}")
    _need(a.dtype == a.value.aval.dtype, f"an access of {a.dtype} to {a.value}")
    if a.store:
        moving = [n for n, s in zip(sizes, a.strides, strict=True) if s]
        _need(prod(moving) <= size, f"{prod(moving)} stores to {a.value} of {size} elements")


def _verify_names(spec: KernelSpec) -> None:
    always: set[str] = set()  # scalars and row values
    _define(spec.scalars, always)
    _define(spec.row_head, always)
    for phase in spec.phases:
        inside = set(always)
        _define(phase.full, inside)
        for f in phase.folds:
            _need(f.source in inside, f"a fold of {f.source}, which is not defined")
        for a, name in phase.stores:
            _need(a.store and name in inside, f"a store of {name}, which is not defined")
        for f in phase.folds:
            _need(f.name not in always, f"{f.name} is defined twice")
            always.add(f.name)
        _define(phase.row, always)
        for a, name in phase.row_stores:
            _need(a.store and name in always, f"a store of {name}, which is not defined in the row")


def _define(section: list[Statement], known: set[str]) -> None:
    for s in section:
        _need(s.name not in known, f"{s.name} is defined twice")
        for x in s.args:
            _need(x in known, f"{s.name} uses {x}, which is not defined")
        if s.access is None and s.index is None:
            places = {int(k) for k in _PLACE.findall(s.text)}
            _need(
                places <= set(range(len(s.args))), f"{s.name} = {s.text} has {len(s.args)} operands"
            )
        known.add(s.name)


# --- plans ---


def verify_plan(plan: Any) -> None:
    """Every slot is written before it is read, and not freed before its last use."""
    there = set(range(plan.n_leaves))
    for step in plan.steps:
        if hasattr(step, "pointers"):
            for slot, source, *_ in step.takes:
                _need(source in there, f"a kernel takes slot {source}, which is not there")
                there.add(slot)
            there |= {slot for slot, _ in step.allocs}
            for slot, _ in step.pointers:
                _need(
                    slot in there,
                    f"a kernel uses slot {slot} before it is made or after it is freed",
                )
            _need(
                len(step.pointers) + len(step.constants)
                == sum(c.endswith("*") for c in step.text.signature),
                "pointers and signature differ",
            )
            _need(
                len(step.pointers) + len(step.ints) == len(step.text.signature),
                "integers and signature differ",
            )
        else:
            for operand in step.operands:
                slot = operand if isinstance(operand, int) else operand[0]
                _need(
                    slot in there,
                    f"{step.op.name} reads slot {slot} before it is made or after it is freed",
                )
            there |= {slot for slot, _ in step.results}
        there -= set(step.frees)
    for slot in plan.output_slots:
        _need(slot in there, f"the output slot {slot} is never made, or freed")
