"""Program to `Plan`: fused clusters become kernel steps, other values host steps; buffers get
slots, and are freed after last use.

In: a Program. Out: a Plan that can be run any number of times, also by several threads at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.codegen.cpu import Generated, generate
from accnp.codegen.folds import accumulator
from accnp.config import config
from accnp.engine.control import ControlStep
from accnp.ir.graph import Graph, graphs_in
from accnp.ir.kernel import Access, Fold, KernelSpec, Phase, Statement
from accnp.ir.node import Node
from accnp.ir.verify import verify_plan, verify_program, verify_spec
from accnp.ops.views import contiguous
from accnp.passes.fuse import Cluster, fuse
from accnp.passes.lower import lower
from accnp.passes.program import Program, Value, from_graph
from accnp.passes.spaces import apply_views, strip_views
from accnp.runtime import buffer as pool
from accnp.runtime.compile import Kernel, get_kernel
from accnp.runtime.stream import Task

__all__ = ["ControlStep", "HostStep", "KernelStep", "Plan", "make_plan", "plan_graph"]

GRAIN = 1 << 16  # simple element operations in one chunk of a kernel: some 20 µs
PARALLEL = 1 << 18  # below this much work in a kernel one thread does it
BRIEF = 1 << 13  # below this much the interpreter lock is kept


class KernelStep:
    """One launch. `pointers` are (slot, byte offset); `ints` follow them as arguments."""

    __slots__ = (
        "allocs", "cluster", "extent", "frees", "grain", "ints", "kernel", "label", "pointers",
        "text", "work",
    )  # fmt: skip

    def __init__(self, text: Generated, fastmath: bool) -> None:
        self.text = text
        self.kernel: Kernel | None = None
        self.pointers: list[tuple[int, int]] = []
        self.ints = text.ints
        self.extent = text.extent
        self.work = text.extent * text.weight
        grain = max(1, GRAIN // max(1, text.weight))
        self.grain = -(-grain // 64) * 64 if grain >= 64 else grain
        self.allocs: list[tuple[int, int]] = []
        self.frees: list[int] = []
        self.cluster: Cluster | None = None
        self.label = ""  # the operations in it, where somebody watches

    def load(self, fastmath: bool) -> Kernel:
        """Return the machine code; compile it, or take it from a cache, at the first call."""
        if self.kernel is None:
            self.kernel = get_kernel(
                self.text.source, "kernel", self.text.signature, fastmath=fastmath
            )
        return self.kernel


class HostStep:
    """One call of an op's reference function on (strided views of) buffers."""

    __slots__ = ("aval", "frees", "node", "op", "operands", "params", "place", "results", "work")

    def __init__(self, v: Value) -> None:
        self.op = v.op
        self.params = v.params
        self.node = v.node
        self.place = -1  # of its node in the pending graph that an eager plan was made for
        self.aval = v.aval  # not the node's: a value may stand for a step towards its node
        # slot, shape, dtype, strides in bytes (None: contiguous), offset in bytes, all elements of
        # the base
        self.operands: list[tuple[int, tuple[int, ...], np.dtype, Any, int, int]] = []
        self.results: list[tuple[int, Any]] = []
        self.frees: list[int] = []
        self.work = v.op.cost * max(
            [a.size for a in (v.aval if isinstance(v.aval, tuple) else (v.aval,))] or [1]
        )


class Plan:
    """Steps in order. Slots 0..len(leaves) are the leaves' buffers."""

    __slots__ = (
        "constants",
        "fastmath",
        "n_leaves",
        "n_slots",
        "out_avals",
        "output_slots",
        "program",
        "steps",
        "work",
    )  # fmt: skip

    def __init__(self, n_leaves: int) -> None:
        self.n_leaves = n_leaves
        self.n_slots = n_leaves
        self.steps: list[Any] = []
        self.output_slots: list[int] = []
        self.out_avals: list[Any] = []
        self.work = 0
        self.fastmath = False
        # Where it lives as long as the plan: in plans of traced functions.
        self.program: Program | None = None
        # Buffers of leaves that belong to the plan, after those given at each run.
        self.constants: list[Any] = []


def forget_nodes(plan: Plan, program: Program) -> None:
    """Let go of the nodes a plan was made from: plans outlive the arrays of their first run."""
    for v in (*program.leaves, *program.values):
        # Values and clusters refer to each other: without this the nodes would wait for the garbage
        # collector.
        v.node, v.cluster, v.demands = None, None, []
    for step in plan.steps:
        if isinstance(step, KernelStep):
            step.cluster = None
            step.text.pointers, step.text.partials = [], []
        elif step.node is not None:
            step.node = Node(
                step.op, (), step.params, step.node.aval, None, None, 0, step.node.site
            )


def make_plan(program: Program, fastmath: bool = False) -> Plan:
    """Fuse, lower and generate; nothing is compiled yet."""
    return _Planner(program, fastmath).run()


def plan_graph(graph: Graph, fastmath: bool = False) -> Plan:
    """Make the plan of a traced graph.

    What it closes over (literals, ready arrays) becomes part of the plan.
    """
    program, leaves = from_graph(graph)
    plan = make_plan(program, fastmath)
    plan.program = program
    plan.constants = [_buffer_of(x) for x in leaves[len(graph.inputs) :]]
    return plan


def _buffer_of(node: Node) -> Any:
    if node.op.name == "literal":
        return pool.from_scalar(node.params["value"], node.aval.dtype)
    if node.value is None:
        raise RuntimeError(f"plan: {node} is closed over and has no value yet")
    return node.value.wait() or node.value if isinstance(node.value, Task) else node.value


class _Planner:
    def __init__(self, program: Program, fastmath: bool) -> None:
        self.program = program
        self.plan = Plan(len(program.leaves))
        self.plan.fastmath = fastmath
        self.slots: dict[int, int] = {id(v): i for i, v in enumerate(program.leaves)}

    def run(self) -> Plan:
        plan = self.plan
        checks = config.enable_checks
        if checks:
            verify_program(self.program)
        for c in fuse(self.program):
            if c.form == "host":
                self.host(c.roots[0])
            else:
                self.kernel(c)
        plan.output_slots = [self.slot(v) for v in self.program.outputs]
        plan.out_avals = [v.aval for v in self.program.outputs]
        self.free_early()
        plan.work = sum(s.work for s in plan.steps)
        if checks:
            verify_plan(plan)
        return plan

    def new_slot(self) -> int:
        self.plan.n_slots += 1
        return self.plan.n_slots - 1

    def slot(self, v: Value) -> int:
        while v.role == "alias":
            v = v.cluster
        found = self.slots.get(id(v))
        if found is None:
            if v.role == "scalar" and not v.stored:
                raise AssertionError(f"{v} has no buffer")
            found = self.slots[id(v)] = self.new_slot()
        return found

    # --- kernels ---

    def kernel(self, c: Cluster) -> None:
        spec = lower(c)
        if config.enable_checks:
            verify_spec(spec)
        text = generate(spec)
        step = self.step(text)
        step.cluster = c
        made: set[int] = set()
        for p in text.pointers:
            if isinstance(p, Access):
                fresh = p.store and id(p.value) not in self.slots
                slot = self.slot(p.value)
                if fresh or (p.store and slot in made):
                    if slot not in made:
                        step.allocs.append((slot, p.value.aval.nbytes))
                    made.add(slot)
                step.pointers.append((slot, p.offset * p.dtype.itemsize))
            else:
                _, k, dtype = p
                slot = self.new_slot()
                f, out, chunks = text.partials[k]
                if chunks > 1:
                    step.allocs.append((slot, text.extent * dtype.itemsize))
                    step.pointers.append((slot, 0))
                else:
                    step.pointers.append(step.pointers[0])  # never written
                text.partials[k] = (f, out, chunks)
                self.partial_slots[k] = slot
        self.plan.steps.append(step)
        for k, (f, out, chunks) in enumerate(text.partials):
            if chunks > 1:
                self.second_stage(f, out, text.extent // chunks, chunks, self.partial_slots[k])

    def step(self, text: Generated) -> KernelStep:
        self.partial_slots = {}
        return KernelStep(text, self.plan.fastmath)

    def second_stage(self, f: Fold, out: Access, rows: int, chunks: int, slot: int) -> None:
        """Fold the partial results of a split fold: a small row kernel of its own."""
        acc = accumulator(f.dtype, f.combine)
        many = rows > 1
        src = Access(None, acc, (chunks, 1) if many else (1,), 0, False, 0)
        dst = Access(out.value, f.dtype, (1, 0) if many else (0,), 0, True, 1)
        phase = Phase(
            full=[Statement("t1", acc, access=src)],
            folds=[Fold("r1", "t1", f.combine, acc, src)],
            row=[Statement("t2", f.dtype, "{0}", ("r1",))],
            row_stores=[(dst, "t2")],
        )
        spec = KernelSpec(
            "row", (rows,) if many else (), (chunks,), (), [], [], [phase], [src, dst]
        )
        text = generate(spec)
        step = KernelStep(text, self.plan.fastmath)
        step.pointers = [(slot, 0), (self.slot(out.value), 0)]
        self.plan.steps.append(step)

    # --- host ---

    def host(self, v: Value) -> None:
        if v.op.kind == "call":
            self.control(v)
            return
        step = HostStep(v)
        for x in v.inputs:
            base, chain = strip_views(x)
            if x.stored or x.is_leaf:
                base, chain = x, ()
            size = base.aval.dtype.itemsize
            if chain:
                shape, strides, offset = apply_views(
                    chain, base.aval.shape, contiguous(base.aval.shape), 0
                )  # type: ignore[misc]
                byte_strides = tuple(s * size for s in strides)
                step.operands.append(
                    (
                        self.slot(base),
                        shape,
                        base.aval.dtype,
                        byte_strides,
                        offset * size,
                        base.aval.size,
                    )
                )
            else:
                step.operands.append(
                    (self.slot(base), base.aval.shape, base.aval.dtype, None, 0, base.aval.size)
                )
        if isinstance(v.aval, tuple):
            step.results += self.parts(v)
        else:
            step.results.append((self.slot(v), -1))
        self.plan.steps.append(step)

    def parts(self, v: Value) -> list[tuple[int, int]]:
        """Slots of those results of a value that are used, and their numbers."""
        return [(self.slot(x), x.index) for x in self.program.values if x.parent is v]

    def control(self, v: Value) -> None:
        bodies = [plan_graph(g, self.plan.fastmath) for g in graphs_in(v.params)]
        step = ControlStep(v, [self.slot(x) for x in v.inputs], bodies)
        step.results += self.parts(v)
        self.plan.steps.append(step)

    # --- liveness ---

    def free_early(self) -> None:
        """Let a slot go after its last step, so that its block can serve the next one."""
        keep = set(self.plan.output_slots) | set(range(self.plan.n_leaves))
        last: dict[int, Any] = {}
        for step in self.plan.steps:
            for slot in used_slots(step):
                last[slot] = step
        for slot, step in last.items():
            if slot not in keep:
                step.frees.append(slot)


def used_slots(step: Any) -> Sequence[int]:
    """Return the slots a step reads or writes."""
    if isinstance(step, KernelStep):
        return [s for s, _ in step.pointers]
    if isinstance(step, ControlStep):
        return [*step.operands, *[s for s, _ in step.results]]
    return [o[0] for o in step.operands] + [s for s, _ in step.results]
