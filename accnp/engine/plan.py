"""Planning: turn a Program into a Plan.

The planner fuses the program, lowers each cluster to the text of a kernel, and makes a step for
each kernel, library call and control-flow operation. It assigns slots to buffers, frees them after
their last use, and decides which kernels write over an operand in place. Input: a Program. Output:
a Plan that can be run any number of times, also by several threads at once. The CPU's kernels are
compiled when the plan first runs.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import TYPE_CHECKING

from accnp.compiler.fusion.clusters import chains, cluster_of
from accnp.compiler.fusion.costs import HEAVY
from accnp.compiler.fusion.fuse import Cluster, fuse
from accnp.compiler.fusion.lower import lower, lower_rows
from accnp.compiler.fusion.program import Program, Value, from_graph
from accnp.compiler.fusion.spaces import apply_views, strip_views
from accnp.config import config
from accnp.engine.steps import (
    BRIEF,
    SECOND_STAGE,
    ControlStep,
    HostStep,
    KernelStep,
    Plan,
    elementwise_operands,
    used_slots,
)
from accnp.engine.traffic import find_nontemporal, find_nontemporal_in_nests, spec_bytes
from accnp.ir.aval import make_aval
from accnp.ir.generated import CalledKernel, GeneratedKernel, ScratchBuffer
from accnp.ir.graph import Graph, graphs_in
from accnp.ir.kernel import (
    CODES,
    HALVES,
    Access,
    KernelSpec,
    Operand,
    OwnKernel,
    Phase,
    RowReduction,
    Statement,
    code_dtype,
    dtype_code,
)  # fmt: skip
from accnp.ir.node import LITERAL, Node
from accnp.lazy_imports import imported
from accnp.primitives.views import RESHAPE, contiguous
from accnp.runtime import buffer as pool
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device
from accnp.runtime.stream import Task

if TYPE_CHECKING:
    from accnp.compiler.fusion.in_place import StoreLocation
    from accnp.compiler.library.indexing.computed_operands import Computed
    from accnp.compiler.library.lowerings import Writer
    from accnp.engine.bailout import Bailout
    from accnp.engine.edited_kernels import EditedKernel
    from accnp.engine.steps import Step

__all__ = ["Planner", "make_plan", "plan_graph"]


LOWERINGS = "accnp.compiler.library.lowerings"  # imported for the first op that is not fused
LEAST = 1 << 20  # the minimum size, in bytes, of a result that overwrites an operand


def make_plan(
    program: Program,
    fastmath: bool = False,
    owned: Collection[int] = (),
    body: bool = False,
    device: Device | None = None,
    fixed: bool = False,
    jitted: bool = False,
) -> Plan:
    """Fuse and lower a program. Kernels for the CPU are not compiled yet; for a GPU see
    `device_plan.py`.

    `owned` are leaves whose buffers the plan may write to. `body` says that the plan is the body of
    a loop, which manages the memory of its carry. `device` is a GPU, or None for the CPU. `fixed`
    says that the literals of the program have the same values in each run, and `jitted` that its
    operations have the same lines.
    """
    if device is None:
        planner = Planner(program, fastmath, owned, body, fixed or body)
        planner.jitted = jitted
        plan = planner.run()
    else:
        module = imported("accnp.engine.device_plan")
        plan = module.DevicePlanner(program, fastmath, owned, body, device).run()
    if config.kernel_overrides and not body:
        _substitute_edited_kernels(plan)
    return plan


def _substitute_edited_kernels(plan: Plan) -> None:
    """Replace generated kernels by edited ones, also in bodies of loops on the host."""
    edited: dict[tuple[str, tuple[str, ...]], EditedKernel] = {
        (e.code, e.signature): e for e in config.kernel_overrides
    }
    for step in plan.steps:
        if isinstance(step, ControlStep):
            for body in step.bodies:
                _substitute_edited_kernels(body)
        elif isinstance(step, KernelStep):
            replacement = edited.get((step.text.source, step.text.signature))
            for e in edited.values():
                if e is not replacement:
                    e.differs(step.label)
            if replacement is None:
                continue
            replacement.used = True
            step.text.source = replacement.source
            step.text.callees = tuple(
                [CalledKernel(n, its, replacement.source) for n, its in replacement.callees]
            )
            step.text.kernel = None  # the loop IR has not been edited
            step.forget()


def plan_graph(
    graph: Graph, fastmath: bool = False, owned: Collection[int] = (), device: Device | None = None
) -> Plan:
    """Make the plan of the body of a loop. Values that it closes over (literals, computed arrays)
    become part of the plan."""
    program, leaves = from_graph(graph)
    plan = make_plan(program, fastmath, owned, True, device)
    plan.program = program
    plan.constants = [_buffer_of(x) for x in leaves[len(graph.inputs) :]]
    return plan


def _buffer_of(node: Node) -> Buffer:
    if node.op is LITERAL:
        return pool.from_scalar(node.params["value"], node.aval.dtype)
    if node.value is None:
        raise RuntimeError(f"plan: {node} is closed over and has no value yet")
    while isinstance(node.value, Task):
        node.value.wait()
    return node.value


def _is_scatter(v: Value) -> bool:
    return v.op.indexing == "scatter"


class Planner:
    """Makes the plan of a program for the CPU. `DevicePlanner` overrides the parts that differ for
    a GPU."""

    def __init__(
        self,
        program: Program,
        fastmath: bool,
        owned: Collection[int],
        body: bool,
        fixed: bool = False,
    ) -> None:
        self.program, self.body, self.fixed = program, body, fixed
        self.plan = Plan(len(program.leaves))
        self.plan.fastmath = fastmath
        self.jitted = False
        self.owned = set(owned)
        self.rooms: dict[int, tuple[int, ScratchBuffer]] = {}
        # Updates of slices whose values the kernel that computes them stores directly, by update.
        self.homes: dict[int, StoreLocation] = {}
        # Clusters that compute the updates of a scatter and become part of its kernel, by scatter.
        self.inner: dict[int, Cluster] = {}
        self.slots: dict[int, int] = {id(v): i for i, v in enumerate(program.leaves)}

    def run(self) -> Plan:
        plan = self.plan
        checks = config.enable_checks
        if checks:
            imported("accnp.ir.verify").verify_program(self.program)
        self.steps_of(fuse(self.program))
        plan.output_slots = [self.slot(v) for v in self.program.outputs]
        plan.out_avals = [v.aval for v in self.program.outputs]
        self.free_early()
        plan.work = sum(s.work for s in plan.steps)
        plan.depends_on_indices = self.program.depends_on_indices or bool(self.homes)
        if checks:
            imported("accnp.ir.verify").verify_plan(plan)
        return plan

    def steps_of(self, clusters: list[Cluster]) -> None:
        chained = chains(clusters, self.program)
        before = {reader: c for c, reader in chained.items()}
        if self.fixed and any(
            c.form == "host" and c.roots[0].op.indexing == "update" for c in clusters
        ):
            apart = {*chained, *before}
            in_place = imported("accnp.compiler.fusion.in_place")  # loaded with the first update
            self.homes = in_place.place_updates(self.program, clusters, apart)
        if any(c.form == "host" and _is_scatter(c.roots[0]) for c in clusters):
            self.find_inner(clusters, {*chained, *before})
        inner = {*self.inner.values()}
        for c in clusters:
            if c in inner:
                continue
            if c.form == "host" and id(c.roots[0]) in self.homes:
                c.form = "own"  # the kernel that computes the values has stored them
            elif c.form == "host":
                self.host(c.roots[0])
            elif c not in chained and (c not in before or not self.chain(before[c], c)):
                self.kernel(c)

    def find_inner(self, clusters: list[Cluster], apart: Collection[Cluster]) -> None:
        """Find kernels that compute nothing but the updates of one scatter."""
        if self.plan.device is not None:
            return
        outputs = {id(v) for v in self.program.outputs}
        for c in clusters:
            v = c.roots[0] if c.form == "host" else None
            if v is None or not _is_scatter(v):
                continue
            u, chain = strip_views(v.inputs[2])
            producer = u.cluster if u.role == "full" else None
            producer = producer.resolve_merged() if producer is not None else None
            if (
                producer is None
                or producer in apart
                or producer.readers != {c}
                or producer.roots != [u]
            ):
                continue
            light = all(x.op.kind == "map" and x.op.cost <= HEAVY for x in producer.members)
            whole = all(w.aval.size == u.aval.size and w.op is RESHAPE for w in chain)
            others = (*v.inputs[:2], *v.inputs[3:])
            once = all(strip_views(x)[0] is not u for x in others) and id(u) not in outputs
            if light and whole and once and producer.form == "map" and not producer.cuts:
                self.inner[id(v)] = producer

    def with_updates(self, v: Value, producer: Cluster) -> list[KernelStep]:
        """Return the launches of a scatter that computes its updates itself.

        If that is not possible, add a launch of the kernel that computes them, and return nothing.
        """
        ((spec,),) = lower(producer)
        computed = imported("accnp.compiler.library.indexing.computed_operands").Computed.of(spec)
        array = self.slot(strip_views(v.inputs[0], through=True)[0])
        # The computation of the updates must not read the array that the scatter changes.
        own: list[KernelStep] = []
        if computed is not None and all(self.slot(a.value) != array for a in computed.loads):
            own = self.own_kernel(v, self.called(v), computed=computed)
        if own:
            cluster_of(v).members += producer.members
            own[0].label += f" and {producer.size} more"
        else:
            self.slots.pop(id(producer.roots[0]), None)
            self.kernel(producer)
        return own

    def new_slot(self) -> int:
        self.plan.n_slots += 1
        return self.plan.n_slots - 1

    def slot(self, v: Value) -> int:
        while v.alias is not None:
            v = v.alias
        number = self.slots.get(id(v))
        if number is None:
            if v.role == "scalar" and not v.stored:
                raise AssertionError(f"{v} has no buffer")
            number = self.slots[id(v)] = self.new_slot()
        return number

    # --- kernels ---

    def chain(self, producer: Cluster, reader: Cluster) -> bool:
        """Launch two kernels together, if possible, the second of which reads the output of the
        first. Otherwise launch the first one only. Return whether both were launched."""
        parts, between = (lower_rows(producer), lower_rows(reader)), producer.roots[0]
        chains = imported("accnp.compiler.specs.chains")  # loaded when first used
        text = chains.fuse_chain(*parts, between, reader.shape[0])
        if text is None:
            self.kernel(producer)
            return False
        producers, readers = [[spec for part in rows for spec in part[2]] for rows in parts]
        self.check([*producers, *readers])
        step = self.launch(text, reader, spec_bytes([*producers, *readers], between))
        step.nontemporal = find_nontemporal_in_nests(readers, step)
        step.chained = producer
        step.label += f", {producer.size} in bands before"
        return True

    def check(self, specs: list[KernelSpec]) -> None:
        if config.enable_checks:
            for spec in specs:
                imported("accnp.ir.verify").verify_spec(spec)

    def kernel(self, c: Cluster) -> None:
        groups = lower(c, constants=self.body)
        every = [spec for specs in groups for spec in specs]
        for v in c.roots:
            if v.home is None:
                continue
            if imported("accnp.compiler.fusion.in_place").reads_elsewhere(v.home, every):
                del self.homes[id(v.home.update)]
                v.home = None
                self.kernel(c)
                return
        moved, homes = spec_bytes(every), [v.home for v in c.roots if v.home is not None]
        for spec in every if homes else ():
            imported("accnp.compiler.fusion.in_place").read_updates(homes, spec)
        self.check(every)
        single = len(groups) == len(groups[0]) == 1
        if single and not self.body and self.plan.device is None:
            self.prefetch(every[0])
        text = (
            self.text_of(groups[0][0])
            if single
            else imported("accnp.compiler.specs.horizontal_fusion").fuse_horizontally(groups)
        )
        step = self.launch(text, c, moved)
        if single:
            step.nontemporal = find_nontemporal(groups[0][0], step)
            if not config.kernel_overrides:  # an edited kernel may read other elements
                step.alike = [self.slot(v) for v in elementwise_operands(groups[0][0])]
        else:
            step.nontemporal = find_nontemporal_in_nests(every, step)
        if homes:
            step.nontemporal, step.alike = ((), ()), []
        self.ends(text)

    def prefetch(self, spec: KernelSpec) -> None:
        """Add launches that prefetch operands from which a kernel gathers; see `prefetching.py`."""
        if not any(a.terms for a in spec.accesses):
            return
        prefetching = imported("accnp.engine.prefetching")
        for a in prefetching.find_prefetched(spec):
            step = self.step(prefetching.make_prefetch(a))
            step.pointers, step.label = [(self.slot(a.value), 0)], prefetching.PREFETCH
            self.plan.steps.append(step)

    def ends(self, text: GeneratedKernel) -> None:
        """Add the second stage of the split reductions in the kernel that was just launched."""
        for k, (f, out, chunks) in enumerate(text.partials):
            if chunks > 1:
                self.second_stage(f, out, text.extent // chunks, chunks, self.partial_slots[k])

    def launch(self, text: GeneratedKernel, c: Cluster, moved: int) -> KernelStep:
        """Add the step of a kernel, with the slots of its operands, outputs and scratch memory."""
        step = self.step(text)
        self.partial_slots: dict[int, int] = {}
        step.cluster, step.moved = c, moved
        step.label = c.roots[0].op.name if c.roots else "copy"
        if c.size > 1:
            step.label += f" and {c.size - 1} more"
        new_slots: set[int] = set()
        for p in text.pointers:
            if isinstance(p, Access):
                fresh = p.store and id(p.value) not in self.slots
                slot = self.slot(p.value)
                if p.store:
                    step.stores.add(slot)
                if fresh or (p.store and slot in new_slots):
                    if slot not in new_slots and id(p.value) in self.homes:
                        source = self.slot(self.homes[id(p.value)].array)
                        step.updated_slots.append((slot, source, p.value.aval.nbytes, False))
                    elif slot not in new_slots:
                        step.allocs.append((slot, p.value.aval.nbytes))
                    new_slots.add(slot)
                step.pointers.append((slot, p.offset * p.dtype.itemsize))
            elif isinstance(p, ScratchBuffer):
                if id(p) not in self.rooms:  # otherwise an earlier launch has allocated it
                    self.rooms[id(p)] = self.new_slot(), p
                    step.allocs.append((self.rooms[id(p)][0], p.count * p.dtype.itemsize))
                step.pointers.append((self.rooms[id(p)][0], 0))
            else:
                _, k, dtype = p
                slot = self.new_slot()
                f, out, chunks = text.partials[k]
                if chunks > 1:
                    step.allocs.append((slot, text.extent * dtype.itemsize))
                    step.pointers.append((slot, 0))
                else:
                    step.pointers.append(step.pointers[0])  # a placeholder, which is never written
                text.partials[k] = (f, out, chunks)
                self.partial_slots[k] = slot
        self.plan.steps.append(step)
        return step

    def text_of(self, spec: KernelSpec) -> GeneratedKernel:
        return imported("accnp.compiler.specs.launches").build_generated(spec)

    def step(self, text: GeneratedKernel) -> KernelStep:
        return KernelStep(text, self.plan.fastmath)

    def second_stage(self, f: RowReduction, out: Access, rows: int, chunks: int, slot: int) -> None:
        """Add a small row kernel that reduces the partial results of a split reduction."""
        acc = imported("accnp.compiler.specs.accumulators").accumulator(f.dtype, f.combine)
        many = rows > 1
        src = Access(None, acc, (chunks, 1) if many else (1,), 0, False, 0)
        dst = Access(out.value, f.dtype, (1, 0) if many else (0,), 0, True, 1)
        phase = Phase()
        phase.full.append(Statement("t1", acc, access=src))
        phase.reductions.append(RowReduction("r1", "t1", f.combine, acc, src))
        phase.row.append(Statement("t2", f.dtype, "{0}", ("r1",)))
        phase.row_stores.append((dst, "t2"))
        spec = KernelSpec(
            "row", (rows,) if many else (), (chunks,), (), [], [], [phase], [src, dst]
        )
        step = self.step(self.text_of(spec))
        step.pointers = [(slot, 0), (self.slot(out.value), 0)]
        step.stores.add(self.slot(out.value))
        step.moved = rows * (chunks * acc.itemsize + f.dtype.itemsize)
        step.label = SECOND_STAGE
        self.plan.steps.append(step)

    # --- host ---

    def host(self, v: Value) -> None:
        if v.op.kind == "loop":
            self.control(v)
            return
        producer = self.inner.pop(id(v), None)
        own = self.with_updates(v, producer) if producer is not None else []
        if own:
            cluster_of(v).form = "own"
            self.plan.steps += own
            return
        step = self.called(v)
        own = self.own_kernel(v, step)
        if own:
            cluster_of(v).form = "own"
        elif self.jitted and imported("accnp.engine.bodies").is_message(step):
            own = [self.message(v, step)]
        self.plan.steps += own or [step]

    def message(self, v: Value, call: HostStep) -> KernelStep:
        """Return the launch that sends a message to other processes without Python."""
        messages = imported("accnp.runtime.compiled_messages")
        writing = imported("accnp.compiler.specs.control_flow")
        ((source, shape, dtype, _, offset, _),), ((slot, _),) = call.operands, call.results
        text = writing.ControlText()
        x = text.pointer("p", dtype_code(dtype), prod(shape))
        out = text.pointer("r", dtype_code(dtype), v.aval.size)
        address = messages.address_of(v.op, v.params, make_aval(shape, dtype), v.node)
        text.message(address, x.name, out, prod(shape) * dtype.itemsize)
        step = self.step(text.generated([], BRIEF))  # long enough to release the interpreter lock
        step.pointers = [(source, offset), (slot, 0)]
        step.allocs = [(slot, v.aval.nbytes)]
        step.cluster, step.label, step.moved = v.cluster, v.op.name, call.nbytes
        return step

    def called(self, v: Value) -> HostStep:
        """Return the step of a library call, with slots for its results."""
        step = self.library(v)
        if v.has_several_results:
            step.results += self.parts(v)
        else:
            step.results.append((self.slot(v), -1))
        return step

    def library(self, v: Value) -> HostStep:
        """Return the step of a library call on (strided views of) the operands of a value."""
        step = HostStep(v)
        for i, x in enumerate(v.inputs):
            # An operand that is updated in place must be a whole buffer or one repeated value, even
            # if a view of it is stored for other steps.
            base, chain = strip_views(x, through=i == v.op.updated_operand)
            if x.stored or x.is_leaf:
                base, chain = x, ()
            shape, strides, offset = base.aval.shape, None, 0
            size = base.aval.dtype.itemsize
            if chain:
                seen = apply_views(chain, shape, contiguous(shape), 0)
                assert seen is not None
                shape, steps, offset = seen
                strides = tuple([s * size for s in steps])
            step.operands.append(
                (self.slot(base), shape, base.aval.dtype, strides, offset * size, base.aval.size)
            )
        return step

    def own_kernel(
        self,
        v: Value,
        call: HostStep,
        make: Writer | None = None,
        computed: Computed | None = None,
    ) -> list[KernelStep]:
        """Return the launches of the op's own kernel, which replace a library call, or nothing if
        it has none. `make` is its writer, by default that of the op's lowering. The kernel may
        compute the last operand itself (`computed`)."""
        if make is None:
            lowerings = imported(LOWERINGS)
            make = lowerings.writer(v.op.lowering.kernel)
        if make is None:
            return []
        avals = v.avals
        operands: list[Operand] = []
        for _, shape, dtype, strides, *_ in call.operands:
            size = dtype.itemsize
            steps = contiguous(shape) if strides is None else tuple(s // size for s in strides)
            operands.append(Operand(shape, dtype, steps, self.plan.device is not None))
        if computed is not None:
            operands[-1].computed = computed
        known = CODES if v.op.halves == "own" else CODES - HALVES
        if any(dtype_code(x.dtype) not in known for x in (*operands, *avals)):
            return []
        own = make(operands, avals, v.params)
        if own is None:
            return []
        updated_operand = v.op.updated_operand
        # An updated operand that repeats one value: the kernel fills the output with it.
        blank = (
            updated_operand
            if updated_operand is not None and operands[updated_operand].one
            else None
        )
        pointed = [i for i in range(len(operands)) if i != updated_operand]
        loads = computed.loads if computed is not None else []
        if loads:
            pointed.pop()
        dtypes = [*[operands[i].dtype for i in pointed], *[a.dtype for a in loads[:1]]]
        codes = [dtype_code(dtype) for dtype in (*dtypes, *[a.dtype for a in avals])]
        codes += [code for code, _ in own.memory]
        codes += [dtype_code(a.dtype) for a in loads[1:]]
        codes += [dtype_code(operands[blank].dtype)] if blank is not None else []
        step = self.own_step(own, codes, v)
        step.moved = call.nbytes
        step.pointers = [(call.operands[i][0], call.operands[i][4]) for i in pointed]
        places = [(self.slot(a.value), a.offset * a.dtype.itemsize) for a in loads]
        step.pointers += places[:1]
        if computed is not None:
            step.moved += spec_bytes([computed.spec]) - 2 * v.inputs[-1].aval.nbytes
        result_slots = {i: slot for slot, i in call.results}
        several = v.has_several_results
        for i, a in enumerate(avals):
            slot = result_slots.get(i if several else -1)
            if slot is None:
                slot = self.new_slot()
            if updated_operand is not None and blank is None:
                source = call.operands[updated_operand]
                # The buffer of a strided view has another layout and cannot be updated in place.
                assert source[3] is None, f"{v.op.name}: takes an operand that is a strided view"
                step.updated_slots.append((slot, source[0], a.nbytes, False))
            else:
                step.allocs.append((slot, a.nbytes))
            step.pointers.append((slot, 0))
        for code, count in own.memory:
            slot = self.new_slot()
            step.allocs.append((slot, count * code_dtype(code).itemsize))
            step.pointers.append((slot, 0))
        step.pointers += places[1:]
        if blank is not None:
            step.pointers.append((call.operands[blank][0], call.operands[blank][4]))
        steps = [step]
        for more in own.then:
            steps.append(self.own_step(more, codes, v))
            steps[-1].pointers = step.pointers
            steps[-1].stores = step.writes - {source for _, source, *_ in step.updated_slots}
            steps[-1].moved = sum(nbytes for _, nbytes in step.allocs)
        return steps

    def own_step(self, own: OwnKernel, codes: list[str], v: Value) -> KernelStep:
        step = self.step(GeneratedKernel.of(own, codes))
        step.cluster, step.label = v.cluster, v.op.name
        return step

    def parts(self, v: Value) -> list[tuple[int, int]]:
        """Return the slots of the used results of a value, with the indices of the results."""
        return [(self.slot(x), x.index) for x in self.program.values if x.parent is v]

    def control(self, v: Value) -> None:
        carried = imported("accnp.engine.control").carried_inputs
        bodies = [
            plan_graph(g, self.plan.fastmath, carried(v.op.control, v.params, i))
            for i, g in enumerate(graphs_in(v.params))
        ]
        step = ControlStep(v, [self.slot(x) for x in v.inputs], bodies)
        step.results += self.parts(v)
        kernel_step = self.native(step)
        if isinstance(kernel_step, str):
            step.reason = kernel_step
            *tests, body = graphs_in(v.params)
            loops = v.op.control != "cond"
            if body.calls_python and loops and not any(g.calls_python for g in tests):
                step.bailout = self.bailout(step, body)
                step.by_python = step.bailout is None
            self.plan.steps.append(step)
        else:
            kernel_step.cluster = v.cluster
            kernel_step.moved = step.nbytes
            kernel_step.label = v.op.name
            cluster_of(v).form = "own"
            self.plan.steps.append(kernel_step)

    def native(self, step: ControlStep) -> KernelStep | str:
        """Return the kernel of a control-flow step, or the reason why it has none."""
        each = None
        if step.op.control == "while":
            rows = imported("accnp.primitives.loops").EACH
            graph = step.params["cond_jaxpr"].extra.get(rows)
            each = graph and plan_graph(graph, self.plan.fastmath)
        # Both modules are loaded with the first loop, because many programs have none.
        blocked = imported("accnp.engine.blocked")
        native = imported("accnp.engine.native")
        kernel_step = blocked.blocked_step(step, self.new_slot, self.plan.fastmath, each)
        return kernel_step or native.native_step(step, self.new_slot, self.plan.fastmath)

    def bailout(self, step: ControlStep, body: Graph) -> Bailout | None:
        """Return the native form of a loop whose body calls Python only in branches, or None."""
        graph = imported("accnp.transforms.trapping").with_trap(body)
        if graph is None:
            return None
        plan = plan_graph(graph, self.plan.fastmath)
        return imported("accnp.engine.bailout").make_bailout(step, plan, self.plan.fastmath)

    # --- liveness ---

    def free_early(self) -> None:
        """Free each slot after its last use, so that the pool can reuse its buffer; then decide
        which kernels write over an operand."""
        keep = set(self.plan.output_slots) | set(range(self.plan.n_leaves))
        last: dict[int, Step] = {}
        for step in self.plan.steps:
            for slot in used_slots(step):
                last[slot] = step
        for slot, step in last.items():
            if slot not in keep:
                step.frees.append(slot)
        owned_slots = {
            slot
            for step in self.plan.steps
            if isinstance(step, KernelStep)
            for slot in (*[s for s, _ in step.allocs], *[t[0] for t in step.updated_slots])
        } | self.owned
        for step in self.plan.steps:
            if isinstance(step, KernelStep) and step.updated_slots:
                self.take_over(step, owned_slots, last)
            elif isinstance(step, KernelStep) and step.alike and not self.body:
                self.write_over(step, owned_slots, last)
        self.plan.overwritten = frozenset(
            source
            for step in self.plan.steps
            if isinstance(step, KernelStep)
            for _, source, _, over in step.updated_slots
            if over and source in self.owned
        )

    def write_over(self, step: KernelStep, mine: set[int], last: dict[int, Step]) -> None:
        """Let an elementwise kernel write its result over an operand that is not used later.

        This saves memory, and cache lines that would be fetched only to be overwritten. It is not
        done for small results: they gain nothing, and a step that reuses a buffer cannot share a
        launch with other steps.
        """
        for slot, nbytes in step.allocs:
            for source in step.alike if nbytes >= LEAST else ():
                if last[source] is not step or source in self.plan.output_slots:
                    continue
                if source in mine:
                    step.allocs.remove((slot, nbytes))
                    step.updated_slots.append((slot, source, nbytes, True))
                    step.nontemporal = ((), ())
                    return
                if source < self.plan.n_leaves:
                    self.plan.spare += (source,)

    def why_copied(self, step: KernelStep, source: int, ours: bool, last: dict[int, Step]) -> str:
        """Return why a buffer is not updated in place."""
        if source in self.plan.output_slots:
            return "its values before the update are also a result"
        if not ours and source < self.plan.n_leaves:
            return "an argument or an array that may be visible elsewhere and is not donated"
        if not ours:
            return "the step that made it may still refer to it"
        if last[source] is not step:
            return f"step {self.plan.steps.index(last[source])} reads its values before the update"
        return "the update also reads other elements of it"

    def take_over(self, step: KernelStep, mine: set[int], last: dict[int, Step]) -> None:
        """Let a kernel update a buffer in place if it is not visible elsewhere.

        The buffer must be owned or allocated by a kernel of this plan (a host step may return
        shared memory), have its last use here, and not be read by this kernel in another role.
        """
        visible = {s for s, _ in step.pointers} | set(self.plan.output_slots)
        updates: list[tuple[int, int, int, bool]] = []
        for slot, source, n, _ in step.updated_slots:
            over = source in mine and last[source] is step and source not in visible
            updates.append((slot, source, n, over))
            # A buffer of which a large part is updated should be in the cache, so the kernel that
            # makes it uses no non-temporal stores. Adding 1e6 values to 5e6 zeros then takes 2.2 ms
            # instead of 5.1 ms.
            for other in self.plan.steps if over and 4 * step.moved >= n else ():
                if isinstance(other, KernelStep) and source in [slot for slot, _ in other.allocs]:
                    other.nontemporal = ((), ())
            if not over:
                step.copied[slot] = self.why_copied(step, source, source in mine, last)
            visible.add(source)  # if two carries start with the same value, the second gets a copy
        step.updated_slots = updates
