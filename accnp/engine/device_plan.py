"""Plan a Program for a GPU: fusion and lowering are the same as for the CPU, the steps differ.

It takes a Program and a device, and returns a Plan whose kernels are PTX. All kernels are compiled
here, in parallel, or read from the disk cache, because the plan depends on success: if a fused
kernel cannot be compiled, the CPU kernel runs on copies of its operands, and an operation falls
back to its reference function.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from accnp.compiler.fusion.clusters import cluster_of
from accnp.compiler.fusion.fuse import Cluster
from accnp.compiler.fusion.lower import lower
from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.grid_kernels import build_fused_grid_kernel, build_grid_kernel
from accnp.compiler.kernel_cache import CompileError
from accnp.compiler.library.copies import empty_kernel
from accnp.compiler.library.lowerings import gpu_call_of, writer
from accnp.compiler.worker_threads import in_parallel
from accnp.config import config
from accnp.engine.blocked import blocked_step
from accnp.engine.control import carried_inputs
from accnp.engine.device_captures import capture
from accnp.engine.device_convolutions import convolution_steps
from accnp.engine.device_factors import factor_steps
from accnp.engine.device_products import Copy, product_step
from accnp.engine.device_slots import root_slots, slot_sizes, why_not_table
from accnp.engine.device_steps import DeviceStep, LibraryStep
from accnp.engine.native import native_step
from accnp.engine.plan import Planner, plan_graph
from accnp.engine.steps import (
    ControlStep,
    HostOperand,
    HostStep,
    KernelStep,
    Plan,
    Step,
    elementwise_operands,
)
from accnp.engine.traffic import spec_bytes
from accnp.ir.generated import GeneratedKernel
from accnp.ir.graph import graphs_in
from accnp.ir.kernel import KernelSpec, dtype_code
from accnp.primitives.convolution import CONVOLUTION
from accnp.primitives.loops import EACH
from accnp.runtime.device import Device
from accnp.runtime.device_buffer import driver_of, move

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.compiler.library.indexing.computed_operands import Computed
    from accnp.compiler.library.lowerings import Writer
    from accnp.ir.node import Node

__all__ = ["DevicePlanner"]

# Work of a body, in simple operations, up to which one thread of the GPU runs a whole loop faster
# than the host launches its kernels one by one.
ONE_THREAD_WORK = 1 << 10
# Kernels of all branches up to which all are launched: a kernel of a branch that is not chosen
# takes some 2 us, less than the host waits for the index and the GPU then waits for the host.
MAX_GUARDED_KERNELS = 6
# Launches of one loop above which the host may have to wait: a GPU queues some 1000.
QUEUED_LAUNCHES = 512


class DevicePlanner(Planner):
    """Makes the plan of a program for a GPU."""

    def __init__(
        self,
        program: Program,
        fastmath: bool,
        owned: Collection[int],
        body: bool,
        device: Device,
    ) -> None:
        super().__init__(program, fastmath, owned, body)
        self.device = self.plan.device = device
        self.wave = driver_of(device).wave
        self.gpu = True  # whether the next kernels are generated for the GPU

    def run(self) -> Plan:
        plan = super().run()
        for step in plan.steps:
            if isinstance(step, DeviceStep) and step.cluster is not None:
                step.node = _first_node(step.cluster)
                step.op = step.node and step.node.op
        plan.waits = any([_makes_host_wait(step) for step in plan.steps])
        return plan

    def steps_of(self, clusters: list[Cluster]) -> None:
        texts: dict[Cluster, list[tuple[list[KernelSpec], GeneratedKernel]]] = {}
        for c in clusters:
            if c.form != "host":
                specs = [spec for specs in lower(c) for spec in specs]
                self.check(specs)
                joined = build_fused_grid_kernel(specs, self.wave) if len(specs) > 1 else None
                if joined is not None:
                    texts[c] = [(specs, joined)]
                else:
                    texts[c] = [([spec], self.text_of(spec)) for spec in specs]
        every = [text for pairs in texts.values() for _, text in pairs]
        later = [more for text in every for more in text.then]
        refused = self.compile_texts(every) | self.compile_texts(later)
        for c in clusters:
            if c.form == "host":
                self.host(c.roots[0])
            elif any(id(t) in refused for _, text in texts[c] for t in (text, *text.then)):
                self.gpu = False
                self.kernel(c)
                self.gpu = True
            else:
                for specs, text in texts[c]:
                    step = self.launch(text, c, spec_bytes(specs))
                    # An edited kernel may read at other indices.
                    if len(texts[c]) == len(specs) == 1 and not config.kernel_overrides:
                        step.alike = [self.slot(v) for v in elementwise_operands(specs[0])]
                    for more in text.then:
                        self.launch(more, c, 0)
                    self.ends(text)

    def compile_texts(self, texts: Sequence[GeneratedKernel]) -> set[int]:
        """Compile kernels in parallel; return the ids of the texts that cannot run on a GPU."""
        refused: set[int] = set()
        by_content: dict[Hashable, list[GeneratedKernel]] = {}
        for text in texts:
            by_content.setdefault((text.source, text.signature), []).append(text)

        def make(alike: list[GeneratedKernel]) -> None:
            try:
                self.step(alike[0]).load(self.plan.fastmath)
            except CompileError:
                refused.update(map(id, alike))

        longest = sorted(by_content.values(), key=lambda alike: -len(alike[0].source))
        in_parallel([functools.partial(make, alike) for alike in longest])
        return refused

    def text_of(self, spec: KernelSpec) -> GeneratedKernel:
        return build_grid_kernel(spec, self.wave) if self.gpu else super().text_of(spec)

    def step(self, text: GeneratedKernel) -> KernelStep:
        if not self.gpu:
            return super().step(text)
        return DeviceStep(text, self.plan.fastmath, self.device)

    # --- single operations ---

    def host(self, v: Value) -> None:
        avals = v.avals
        if any([a.size for a in avals]) or v.op.kind in ("loop", "callback") or v.op.effect:
            super().host(v)
            return
        # Nothing is computed, so the CPU is not needed.
        slots = self.parts(v) if v.has_several_results else [(self.slot(v), -1)]
        step = self.own_step(empty_kernel(), [], v)
        step.allocs = [(slot, 0) for slot, _ in slots]
        step.load(self.plan.fastmath)
        self.plan.steps.append(step)

    def library(self, v: Value) -> HostStep:
        if gpu_call_of(v.op) is None or not self.supports(v):
            return super().library(v)
        operands = super().library(v).operands
        if v.op.contraction and driver_of(self.device).blas()[0]:
            product = product_step(v, operands, functools.partial(self.plan_copy, v, operands))
            if product is not None:
                return product
        step = LibraryStep(v)
        step.operands = operands
        return step

    def plan_copy(self, v: Value, operands: Sequence[HostOperand], copy: Copy) -> int:
        """Plan a launch that copies an operand to another layout; return the slot of the copy."""
        step = self.own_step(copy.kernel, [copy.code] * 2, v)
        source, _, dtype, _, offset, _ = operands[copy.which]
        slot, step.label = self.new_slot(), "copy"
        step.pointers = [(source, offset), (slot, 0)]
        step.allocs = [(slot, step.extent * dtype.itemsize)]
        step.moved = 2 * step.extent * dtype.itemsize
        step.load(self.plan.fastmath)
        self.plan.steps.append(step)
        return slot

    def supports(self, v: Value) -> bool:
        """Return whether the array library supports the dtypes of an operation. Kernels of users
        check their own."""
        avals = [x.aval for x in v.inputs] + [*v.avals]
        supports = driver_of(self.device).knows
        return v.op.cuda is not None or all(supports(a.dtype) for a in avals)

    def own_kernel(
        self,
        v: Value,
        call: HostStep,
        make: Writer | None = None,
        computed: Computed | None = None,
    ) -> list[Any]:
        if v.op is CONVOLUTION and driver_of(self.device).blas()[0]:
            products = convolution_steps(self, v, call)
            if products:
                return products
        lowering = v.op.lowering
        lowerings = [lowering.block, "" if isinstance(call, LibraryStep) else lowering.kernel]
        for make in map(writer, filter(None, lowerings)):
            steps = super().own_kernel(v, call, make)
            if steps and not self.compile_texts([step.text for step in steps]):
                return steps
        return factor_steps(self, v, call) if isinstance(call, LibraryStep) else []

    # --- loops and branches ---

    def control(self, v: Value) -> None:
        device_step = self.fuse_loop(v)
        if device_step is None:
            fastmath, device = self.plan.fastmath, self.device
            bodies = [
                plan_graph(g, fastmath, carried_inputs(v.op.control, v.params, i), device)
                for i, g in enumerate(graphs_in(v.params))
            ]
            for body in bodies:
                body.constants = [move(b, device) for b in body.constants]
                _capture(body, device)
            step = ControlStep(v, [self.slot(x) for x in v.inputs], bodies)
            step.results += self.parts(v)
            why = why_not_table([step])
            step.by_python = bool(why)
            by = f"Python, since {why}" if why else "machine code"
            step.reason = f"its kernels are launched from there, by {by}"
            if self.guard_branches(step):
                step.reason += (
                    "; all branches are launched, and each kernel tests which one was chosen"
                )
            self.plan.steps.append(step)
            return
        cluster_of(v).form = "own"
        self.plan.steps.append(device_step)

    def guard_branches(self, step: ControlStep) -> bool:
        """If branches have few kernels, launch all and let each test the index of its branch,
        so that the host need not wait for it. Return whether this was done."""
        code = dtype_code(step.inputs[0].dtype)
        inner = [s for body in step.bodies for s in body.steps]
        has_few = len(inner) <= MAX_GUARDED_KERNELS and {DeviceStep} >= set(map(type, inner))
        if step.op.control != "cond" or not has_few or code not in ("b1", "i4", "i8"):
            return False
        step.guard = code
        for s in inner:
            s.guard = code
            s.forget()
            s.load(self.plan.fastmath)
        return True

    def fuse_loop(self, v: Value) -> DeviceStep | None:
        """Return one kernel for a whole loop, or None.

        If the body is elementwise, each thread runs the loop for its elements; if it is tiny, one
        thread runs everything.
        """
        fastmath = self.plan.fastmath
        graphs = graphs_in(v.params)
        control = v.op.control
        bodies = [
            plan_graph(g, fastmath, carried_inputs(control, v.params, i))
            for i, g in enumerate(graphs)
        ]
        step = ControlStep(v, [self.slot(x) for x in v.inputs], bodies)
        step.results += self.parts(v)
        row_cond = None
        if step.op.control == "while":
            graph = step.params["cond_jaxpr"].extra.get(EACH)
            row_cond = graph and plan_graph(graph, fastmath)
        kernel_step = blocked_step(step, self.new_slot, fastmath, row_cond, 1, can_stop=False)
        if kernel_step is None and all(b.work <= ONE_THREAD_WORK for b in bodies):
            kernel_step = native_step(step, self.new_slot, fastmath, can_stop=False)
        if not isinstance(kernel_step, KernelStep):
            return None
        kernel_step.cluster = v.cluster
        kernel_step.moved = step.nbytes
        kernel_step.label, kernel_step.whole_loop = v.op.name, True
        device_step = DeviceStep.of(kernel_step, fastmath, self.device)
        device_step.constants = [move(b, self.device) for b in kernel_step.constants]
        try:
            device_step.load(fastmath)
        except CompileError:
            return None
        return device_step


def _first_node(c: Cluster) -> Node | None:
    return next((v.node for v in c.roots if v.node is not None), None)


def _capture(body: Plan, device: Device) -> None:
    """Capture the library calls in a body, if they can then all be launched from a table."""
    calls = [s for s in body.steps if type(s) is LibraryStep]
    others = [s for s in body.steps if type(s) is not LibraryStep]
    why = why_not_table(others)
    inside = {} if why else _internal_slot_bytes(body)
    for step in calls if not why else ():
        step.captured = capture(step, device, inside)
        if isinstance(step.captured, str):
            why = step.captured
            break
    for step in calls if why else ():
        step.captured = why


def _internal_slot_bytes(body: Plan) -> dict[int, int]:
    """Return the bytes of the slots that are internal to a body.

    CUDA graphs keep these in their own memory, so they are not copied.
    """
    root = root_slots(body.steps)
    seen = {root.get(slot, slot) for slot in body.output_slots}
    return {slot: n for slot, n in slot_sizes(body.steps).items() if slot not in {*seen, *root}}


def _launches(step: Step) -> int:
    """Return the number of launches of a step."""
    if not isinstance(step, ControlStep):
        return 1
    each = max([sum([_launches(s) for s in body.steps]) for body in step.bodies], default=0)
    return each * int(step.params.get("length", 1))


def _makes_host_wait(step: Step) -> bool:
    """Return whether the host waits for a step, so that it is better done by another thread."""
    if isinstance(step, ControlStep):
        bodies = any([_makes_host_wait(s) for body in step.bodies for s in body.steps])
        waits = step.op.control == "while" or (step.op.control == "cond" and not step.guard)
        return bodies or waits or _launches(step) > QUEUED_LAUNCHES
    if type(step) is LibraryStep:
        return hasattr(step.function, "waits")
    return not isinstance(step, DeviceStep | LibraryStep)
