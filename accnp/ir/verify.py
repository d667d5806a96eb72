"""Internal consistency checks of programs, kernel specs and plans; they raise `VerifyError`.

The checks run for every new plan while `config.enable_checks` is set (the tests set it), and never
for a launch. Programs that are loaded from bytes (`export.deserialize`) are always checked, with
`verify_operation`. A failure is a bug of this package, except for corrupted bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from accnp.ir.aval import Aval, result_avals
from accnp.ir.graph import Graph, graphs_in
from accnp.ir.kernel import Access, KernelSpec, Statement
from accnp.ir.op import Op

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["VerifyError", "verify_operation", "verify_plan", "verify_program", "verify_spec"]

_FORMS = ("map", "row", "split", "column")
_PLACE = re.compile(r"\{(\d+)\}")


class VerifyError(AssertionError):
    """The compiler produced an internal consistency check failed, which is a bug in accnp."""


def _fail(text: str) -> NoReturn:
    raise VerifyError(f"verify: {text}")


class Operation(Protocol):
    """An operation with its operands: a `Node` or a `Value`."""

    @property
    def op(self) -> Op: ...

    @property
    def params(self) -> Params: ...

    @property
    def inputs(self) -> Sequence[Operation]: ...

    @property
    def aval(self) -> Aval | tuple[Aval, ...]: ...


class ProgramValue(Operation, Protocol):
    """A `Value` of a program of the planner."""

    @property
    def parent(self) -> ProgramValue | None: ...

    @property
    def index(self) -> int: ...


class VerifiedProgram(Protocol):
    """A `Program` of the planner."""

    @property
    def leaves(self) -> Sequence[ProgramValue]: ...

    @property
    def values(self) -> Sequence[ProgramValue]: ...

    @property
    def outputs(self) -> Sequence[ProgramValue]: ...


class VerifiedPlan(Protocol):
    """A `Plan` of the engine."""

    @property
    def n_leaves(self) -> int: ...

    @property
    def steps(self) -> Sequence[Any]: ...

    @property
    def output_slots(self) -> Sequence[int]: ...


# --- programs ---


def verify_program(program: VerifiedProgram) -> None:
    """Check that operands precede their users, that every value has the type its op infers, and
    that outputs are part of the program."""
    known: set[int] = {id(v) for v in program.leaves}
    if len(known) != len(program.leaves):
        _fail("a leaf occurs twice in the program")
    for v in program.values:
        if id(v) in known:
            _fail(f"{v} occurs twice in the program")
        if v.parent is not None:
            if id(v.parent) not in known:
                _fail(f"{v} precedes the operation of which it is a result")
            if v.aval != result_avals(v.parent.aval)[v.index]:
                _fail(f"{v} is not result {v.index} of {v.parent}")
        else:
            for x in v.inputs:
                if id(x) not in known:
                    _fail(f"{v} comes before its operand {x}")
                if isinstance(x.aval, tuple):
                    _fail(f"{v} uses all results of {x} as one operand")
            verify_operation(v)
        known.add(id(v))
    for v in program.outputs:
        if id(v) not in known:
            _fail(f"the output {v} is not part of the program")


def _verify_graph(graph: Graph) -> None:
    """Check a recorded graph in the same way, and the programs that its operations contain."""
    known = {id(x) for x in graph.inputs}
    if len(known) != len(graph.inputs):
        _fail("an input occurs twice in the program")
    for node in graph.nodes:
        for x in node.inputs:
            if id(x) not in known and graph.holds(x) and x.op.kind != "leaf":
                _fail(f"{node} comes before its operand {x}")
            if isinstance(x.aval, tuple) and node.op.kind != "item":
                _fail(f"{node} uses all results of {x} as one operand")
        verify_operation(node)
        known.add(id(node))


def verify_operation(v: Operation) -> None:
    """Check that an operation (a `Node` or a `Value`) has the type that its op infers, and that the
    programs it contains match its operands and results."""
    if v.op.kind in ("mark", "item"):
        return
    avals: list[Any] = [x.aval for x in v.inputs]
    if v.op.kind in ("call", "loop"):
        _verify_call(v.op, avals, result_avals(v.aval), v.params)
    out_aval = v.op.infer(*avals, **v.params)
    if not _have_same_types(result_avals(out_aval), result_avals(v.aval)):
        _fail(f"{v} has operands for which {v.op.name} infers {out_aval}")


# --- programs within programs ---


def _have_same_types(some: Sequence[Aval], others: Sequence[Aval]) -> bool:
    """Return whether two sequences of values have the same shapes and dtypes."""
    return len(some) == len(others) and all(
        (a.shape, a.dtype) == (b.shape, b.dtype) for a, b in zip(some, others, strict=True)
    )


def _verify_call(op: Op, xs: Sequence[Aval], results: Sequence[Aval], params: Params) -> None:
    """Check that the programs of an operation match its operands and results."""
    for graph in graphs_in(params):
        _verify_graph(graph)
    if op.control == "scan":
        _verify_scan(xs, params)
    elif op.control == "while":
        _verify_while(xs, params)
    elif op.control == "cond":
        _verify_cond(xs, params["branches"])
    else:
        key = next((k for k in ("jaxpr", "call_jaxpr", "call") if k in params), None)
        if key is not None and not _have_same_types(params[key].in_avals, xs):
            _fail(f"{op.name}: the program takes {params[key].in_avals}; got {xs}")
        if key is not None and not _have_same_types(params[key].out_avals, results):
            _fail(f"{op.name}: the program returns {params[key].out_avals}, not {results}")


def _verify_scan(xs: Sequence[Aval], params: Params) -> None:
    graph, length = params["jaxpr"], params["length"]
    n, m = params["num_consts"], params["num_consts"] + params["num_carry"]
    if not 0 <= n <= m <= len(xs) or length < 0:
        _fail(f"scan: {n} constants, {m - n} carries and {length} steps for {len(xs)} operands")
    for x in xs[m:]:
        if x.ndim < 1 or x.shape[0] != length:
            _fail(f"scan: {length} steps over the rows of {x}")
    rows = [(x.shape[1:], x.dtype) for x in xs[m:]]
    body_types = [(x.shape, x.dtype) for x in graph.in_avals]
    if body_types != [*[(x.shape, x.dtype) for x in xs[:m]], *rows]:
        _fail(f"scan: the body takes {graph.in_avals}; got {xs} for {length} steps")
    if not _have_same_types(graph.out_avals[: m - n], xs[n:m]):
        _fail(f"scan: the carry {xs[n:m]} becomes {graph.out_avals[: m - n]}")


def _verify_while(xs: Sequence[Aval], params: Params) -> None:
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    n, m = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    if not 0 <= n <= m <= len(xs):
        _fail(f"while: {n} and {m - n} constants for {len(xs)} operands")
    if not _have_same_types(test.in_avals, [*xs[:n], *xs[m:]]):
        _fail(f"while: the condition takes {test.in_avals}; got {xs}")
    if [(a.shape, a.dtype.name) for a in test.out_avals] != [((), "bool")]:
        _fail(f"while: the condition returns {test.out_avals}")
    if not _have_same_types(body.in_avals, xs[n:]):
        _fail(f"while: the body takes {body.in_avals}; got {xs}")
    if not _have_same_types(body.out_avals, xs[m:]):
        _fail(f"while: the carry {xs[m:]} becomes {body.out_avals}")


def _verify_cond(xs: Sequence[Aval], branches: tuple[Graph, ...]) -> None:
    index, *operands = xs
    if index.shape or index.dtype.name not in ("bool", "int32"):
        _fail(f"cond: {index} cannot select one of {len(branches)} branches")
    if index.dtype.name == "bool" and len(branches) > 2:
        _fail(f"cond: a bool cannot select one of {len(branches)} branches")
    outs = [graph.out_avals for graph in branches]
    if not outs:
        _fail("cond: there are no branches")
    for graph in branches:
        if not _have_same_types(graph.in_avals, operands):
            _fail(f"cond: a branch takes {graph.in_avals}; got {operands}")
        if not _have_same_types(graph.out_avals, outs[0]):
            _fail(f"cond: branches return {graph.out_avals} and {outs[0]}")


# --- kernels ---


def verify_spec(spec: KernelSpec) -> None:
    """Check that names are defined once and before use, that accesses stay inside their arrays, and
    that no array is both loaded and stored."""
    if spec.form not in _FORMS:
        _fail(f"unknown form {spec.form!r} of a kernel")
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    if any(n < 1 for n in sizes):
        _fail(f"a kernel has empty axes: {sizes}")
    if bool(spec.inner) != (spec.form == "column") and spec.form != "map":
        _fail(f"a kernel of the form {spec.form} has inner axes, or lacks them")
    for i, a in enumerate(spec.accesses):
        if a.number != i:
            _fail("accesses are not numbered in order")
        _verify_access(a, sizes)
    stored = {id(a.value): a for a in spec.accesses if a.store and a.value is not None}
    for a in spec.accesses:
        if not a.store and a.value is not None and id(a.value) in stored:
            _fail(f"{a.value} is loaded by the kernel that stores it")
    _verify_names(spec)


def _verify_access(a: Access, sizes: tuple[int, ...]) -> None:
    if len(a.strides) != len(sizes):
        _fail(f"an access has {len(a.strides)} strides for {len(sizes)} axes")
    if a.value is None:  # scratch
        return
    low = high = a.offset
    for n, s in zip(sizes, a.strides, strict=True):
        low, high = low + min(0, s) * (n - 1), high + max(0, s) * (n - 1)
    for stride, top in a.terms:
        low, high = low + min(0, stride * top), high + max(0, stride * top)
    size = a.value.aval.size
    if low < 0 or high >= size:
        _fail(f"{a.value} of {size} elements is reached from {low} to {high}")
    if a.dtype != a.value.aval.dtype:
        _fail(f"an access has dtype {a.dtype} for {a.value}")
    if a.store:
        moving = [n for n, s in zip(sizes, a.strides, strict=True) if s]
        if prod(moving) > size:
            _fail(f"{prod(moving)} stores to {a.value} of {size} elements")


def _verify_names(spec: KernelSpec) -> None:
    always: set[str] = set()  # scalars and row values
    _check_definitions(spec.scalars, always)
    _check_definitions(spec.row_head, always)
    for phase in spec.phases:
        inside = set(always)
        _check_definitions(phase.full, inside)
        for f in phase.reductions:
            if f.source not in inside:
                _fail(f"{f.source} is reduced, but not defined")
        for a, name in phase.stores:
            if not (a.store and name in inside):
                _fail(f"{name} is stored, but not defined")
        for f in phase.reductions:
            if f.name in always:
                _fail(f"{f.name} is defined twice")
            always.add(f.name)
        _check_definitions(phase.row, always)
        for a, name in phase.row_stores:
            if not (a.store and name in always):
                _fail(f"{name} is stored, but not defined in the row")


def _check_definitions(section: list[Statement], known: set[str]) -> None:
    for s in section:
        if s.name in known:
            _fail(f"{s.name} is defined twice")
        for x in s.args:
            if x not in known:
                _fail(f"{s.name} uses {x}, which is not defined")
        if s.access is None and s.index is None:
            places = {int(k) for k in _PLACE.findall(s.text)}
            if max(places, default=-1) >= len(s.args):
                _fail(f"{s.name} = {s.text} has {len(s.args)} operands")
        known.add(s.name)


# --- plans ---


def verify_plan(plan: VerifiedPlan) -> None:
    """Check that every slot is written before it is read, and not freed before its last use."""
    there = set(range(plan.n_leaves))
    for step in plan.steps:
        if hasattr(step, "pointers"):
            for slot, source, *_ in step.updated_slots:
                if source not in there:
                    _fail(f"a kernel takes slot {source} before it is made or after it is freed")
                there.add(slot)
            there |= {slot for slot, _ in step.allocs}
            for slot, _ in step.pointers:
                if slot not in there:
                    _fail(f"a kernel uses slot {slot} before it is made or after it is freed")
            if len(step.pointers) + len(step.constants) != sum(
                c.endswith("*") for c in step.text.signature
            ):
                _fail("pointers and signature differ")
            if len(step.pointers) + len(step.ints) != len(step.text.signature):
                _fail("integers and signature differ")
        else:
            for operand in step.operands:
                slot = operand if isinstance(operand, int) else operand[0]
                if slot not in there:
                    _fail(
                        f"{step.op.name} reads slot {slot} before it is made or after it is freed"
                    )
            there |= {slot for slot, _ in step.results}
        there -= set(step.frees)
    for slot in plan.output_slots:
        if slot not in there:
            _fail(f"the output slot {slot} is never made, or is freed")
