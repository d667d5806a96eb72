"""The engine: compute the values of pending nodes, and run the plans of traced functions.

`materialize` collects the pending graph that ends in the given nodes, finds the plan for its
structure in the cache or makes one (program, fusion, kernels), and runs it. A plan with little
work whose inputs are ready runs at once on the calling thread. Other plans are submitted to the
stream of the device, and each output node holds a task until its buffer is delivered.
`plan_of_graph` and `run_plan` do the same for graphs that `jit` has traced.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp._native import Record, dispatch_pending
from accnp.caches import BoundedCache
from accnp.compiler.fusion.program import Program, build, from_graph
from accnp.config import config, epoch
from accnp.engine import execute, values, watch
from accnp.engine.execute import to_device
from accnp.engine.pending import (
    IN_TWO_LISTS,
    Pending,
    collect,
    computing_device,
    device_copies,
    group_by_device,
    has_own_buffer,
    needs_copy_between,
    nodes_to_store,
    one_node_per_device,
    sorted_order,
    unreferenced_leaves,
)  # fmt: skip
from accnp.engine.plan import make_plan
from accnp.engine.steps import KernelStep, Plan, forget_nodes, is_due_for_entry
from accnp.engine.values import (
    DELETED,
    Claim,
    available_buffer,
    claimed,
    set_pending_task,
    set_values,
    value_lock,
)
from accnp.errors import JaxRuntimeError
from accnp.ir.graph import Graph
from accnp.ir.node import (
    CONST,
    ITEM,
    LITERAL,
    MARK,
    Node,
    const,
    has_effect,
    install_engine,
)
from accnp.ir.op import ZERO, as_tuple
from accnp.lazy_imports import imported
from accnp.primitives.unrolled import depends_on_marks
from accnp.runtime import device as devices
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device
from accnp.runtime.stream import Task, default_stream

if TYPE_CHECKING:
    from accnp.ir.aval import Aval


__all__ = [
    "DELETED", "Plan", "array_of", "close", "compile_plan", "computing_device", "device_of",
    "is_ready", "materialize", "needs_copy_between", "on_device", "one_node_per_device", "pending",
    "plan_of_graph", "plan_of_pending", "ready", "run_plan", "to_device", "wait_for_value",
]  # fmt: skip

# Work, in simple element operations, from which a plan is submitted to the stream instead of being
# run at once: ASYNC (some 5 ms) for a jitted call, which callers often wait for immediately, and
# BEHIND for eager operations whose values have not been requested yet.
ASYNC = 1 << 28
BEHIND = 1 << 26
# The maximum number of plans for pending graphs that differ only in the indices that updates write
# to. From then on, one plan in which updates are separate steps serves all indices.
MAX_PLACES = 8
_plans = BoundedCache["Hashable", "Plan"]("plan_cache_size").register(
    "plans", "plans of eager operations"
)
# The number of such plans, by the key without indices.
_places: BoundedCache[Hashable, int] = BoundedCache("plan_cache_size")
# Entries of the dispatch cache, by the form of the root node (see `pending_dispatch.py`).
_dispatch_cache = BoundedCache["Hashable", tuple["Record", ...]]("dispatch_cache_size").register(
    "dispatch entries", "eager operations that the C extension recognizes, by the last one"
)
counters = {"plans": 0, "plan_hits": 0}


def materialize(nodes: Sequence[Node], wait: bool = False) -> None:
    """Compute nodes: each then holds its value, or a task that will deliver it.

    With `wait`, the plan runs on this thread, or this thread waits for the stream.
    """
    if not devices.gpu_possible:
        _materialize(nodes, wait)
        return
    for node in device_copies(nodes):
        if node.value is None:
            materialize(node.inputs)
            execute.copy_between_devices(node, ready)
    for alike in group_by_device(nodes):
        _materialize(alike, wait)


def _materialize(nodes: Sequence[Node], wait: bool) -> None:
    mine: Claim | None = None
    try:
        while True:
            with value_lock:
                now = epoch["now"]
                pending_graph = collect(nodes)
                theirs = values.find_claim((*nodes, *pending_graph.leaves)) if claimed else None
                if theirs is None:
                    order, leaves = pending_graph.order, pending_graph.leaves
                    if not order:
                        return
                    if config.no_execution:
                        raise RuntimeError(
                            "the option no_execution is set; got values that are not computed "
                            "yet; leave the option's context first"
                        )
                    device = computing_device(nodes, leaves) if devices.gpu_possible else None
                    outputs, places = nodes_to_store(pending_graph)
                    rest = (*_plan_options(), device)
                    plan, lost, key, general = _find_plan(pending_graph, places, rest)
                    if lost:
                        mine = Claim(outputs)
                        mine.take()
                    program = None
                    if plan is None:  # a general plan does not know the indices of updates
                        fixed = {id(x) for x in pending_graph.places} if general is not None else ()
                        program = build(sorted_order(order), leaves, outputs, fixed)
                    break
            theirs.wait()
        if plan is None:
            assert program is not None
            counters["plans"] += 1
            plan = _make_pending_plan(
                program, len(leaves), order, lost, device, general is not None
            )
            _cache_plan(plan, key, general)
        else:
            counters["plan_hits"] += 1
            plan.hits += 1
            if is_due_for_entry(plan.hits) and rest == (*_plan_options(), device):
                imported("accnp.engine.pending_dispatch").add_entry(
                    now, pending_graph, places, plan, _dispatch_cache
                )
        _launch(plan, leaves, outputs, wait, order)
    finally:
        if mine is not None:
            mine.end()


def _cache_plan(plan: Plan, key: Hashable, general: Hashable | None) -> None:
    """Put a plan into the cache, under the key without indices if it does not depend on them."""
    if general is not None:
        _places.store(
            general, _count_places(general) + 1 if plan.depends_on_indices else MAX_PLACES
        )
    _plans.store(key if general is None or plan.depends_on_indices else general, plan)


def _count_places(general: Hashable) -> int:
    """Return how many plans there are for a key without the values of indices."""
    return _places.get(general) or _places.recall(general) or 0


def forget_plans() -> None:
    """Clear the caches of plans of pending graphs."""
    _plans.clear()
    _places.clear()
    _dispatch_cache.clear()


def _find_plan(
    pending_graph: Pending, places: tuple[int, ...], rest: tuple[Hashable, ...]
) -> tuple[Plan | None, tuple[int, ...], Hashable, Hashable]:
    """Return the cached plan of a pending graph or None, the leaves that it overwrites, and the
    two keys that `_make_keys` returns."""
    lost = (
        unreferenced_leaves(pending_graph, pending_graph.updated_leaves)
        if pending_graph.updated_leaves and not watch.synchronous
        else ()
    )
    key, general = _make_keys(pending_graph, (places, lost, *rest))
    plan = _plans.get(key) or _plans.recall(key)
    if plan is not None and plan.spare and not watch.synchronous:
        # Large results can overwrite operands that are not referenced elsewhere.
        more = unreferenced_leaves(pending_graph, {*pending_graph.updated_leaves, *plan.spare})
        if more != lost:
            lost = more
            key, general = _make_keys(pending_graph, (places, lost, *rest))
            plan = _plans.get(key) or _plans.recall(key)
    return plan, lost, key, general


def _make_keys(pending_graph: Pending, rest: tuple[Hashable, ...]) -> tuple[Hashable, Hashable]:
    """Return the cache key of a pending graph, and the key without the values of the indices that
    updates write to. The second is None if the first contains no such values."""
    general = (*pending_graph.key, *rest)
    if not pending_graph.places or _count_places(general) >= MAX_PLACES:
        return general, None
    numbers = imported("accnp.compiler.fusion.update_regions").numbers
    return (general, tuple([numbers(x) for x in pending_graph.places])), general


def _plan_options() -> tuple[Hashable, ...]:
    """Return the options that plans depend on."""
    return (
        config.fastmath,
        config.fusion_limit,
        config.kernel_overrides,
        config.mpi_allreduce,
    )


def _compute_by_entry(node: Node) -> bool:
    """Compute a node by an entry of the dispatch cache; return whether one matched."""
    form = node.form
    records = _dispatch_cache.get(form) or _dispatch_cache.recall(form)
    if records is None:
        return False
    with value_lock:  # another thread may have claimed or computed it meanwhile
        return node.value is None and dispatch_pending(records, node)


def _make_pending_plan(
    program: Program,
    n_leaves: int,
    order: Sequence[Node],
    lost: tuple[int, ...] = (),
    device: Device | None = None,
    fixed: bool = False,
) -> Plan:
    plan = plan_of_pending(program, lost, device, fixed)
    # Constants of inlined bodies are part of the plan, because they are not leaves of the graph.
    close(plan, [v.node for v in program.leaves[n_leaves:]])  # type: ignore[misc]
    if config.debug:
        imported("accnp.engine.describe").log_plan("eager", program, plan)
    places = {id(n): i for i, n in enumerate(order)}
    for step in plan.steps:
        if hasattr(step, "place"):
            step.place = places.get(id(step.node), -1)
    forget_nodes(plan, program)
    return plan


def plan_of_pending(
    program: Program, lost: tuple[int, ...], device: Device | None, fixed: bool = False
) -> Plan:
    """Make the plan of a pending graph, which may overwrite the leaves `lost`.

    A plan with library calls overwrites nothing: if a call fails, the leaves are needed to compute
    the values again. See `make_plan` for `fixed`.
    """
    plan = make_plan(program, config.fastmath, lost, device=device, fixed=fixed)
    if plan.overwritten and not all(isinstance(step, KernelStep) for step in plan.steps):
        return make_plan(program, config.fastmath, device=device, fixed=fixed)
    return plan


def close(plan: Plan, free: Sequence[Node]) -> None:
    """Store the values that a plan closes over, copied to the device where the plan runs."""
    plan.constants = execute.move_leaves(plan, free, [ready(x) for x in free])


def _launch(
    plan: Plan,
    leaves: list[Node],
    outputs: list[Node],
    wait: bool,
    order: Sequence[Node] = (),
    most: int = BEHIND,
) -> None:
    """Run a plan: at once if it has less work than `most`, otherwise on the stream."""
    quick = plan.quick
    if watch.on:
        if watch.synchronous:
            _launch_watched(plan, leaves, outputs, order)
            return
        quick = None  # observers are called after every step
    there: list[Any] = [x.value for x in leaves]
    for value in there:
        if type(value) is not Buffer:
            there = [available_buffer(x) for x in leaves]
            break
    if devices.gpu_possible:
        there = execute.move_leaves(plan, leaves, there)
    stream = execute.stream_of(plan)
    at_once = wait or (plan.work < most if plan.device is None else not plan.waits)
    if at_once and stream.idle and None not in there:
        # If a KeyboardInterrupt ends a plan that overwrites operands, `_run` must mark these.
        if quick is not None and not plan.overwritten:
            set_values(outputs, quick(there + plan.constants))
        else:
            _run(plan, there, leaves, outputs, order)
        return

    def work() -> None:
        buffers = [b if b is not None else ready(x) for b, x in zip(there, leaves, strict=True)]
        _run(plan, execute.move_leaves(plan, leaves, buffers), leaves, outputs, order)

    task = stream.submit(work)
    set_pending_task(outputs, task)
    if wait:
        task.wait()


def _run(
    plan: Plan,
    buffers: list[Buffer],
    leaves: list[Node],
    outputs: list[Node],
    order: Sequence[Node],
) -> None:
    try:
        set_values(outputs, execute.run(plan, buffers + plan.constants))
    except BaseException as error:
        for k in plan.overwritten:  # it may be partly overwritten and must not be read again
            leaves[k].value = DELETED
        execute.add_error_note(error, order)
        raise


def _launch_watched(
    plan: Plan, leaves: list[Node], outputs: list[Node], order: Sequence[Node]
) -> None:
    kinds = watch.searched_kinds()
    program = plan.program or (build(sorted_order(order), leaves, outputs) if kinds else None)

    def work() -> None:
        buffers = execute.move_leaves(plan, leaves, [ready(x) for x in leaves]) + plan.constants
        set_values(outputs, watch.run(plan, buffers, program, kinds))

    if default_stream().idle:
        work()
    else:
        default_stream().submit(work).wait()


def pending(node: Node) -> tuple[Any, ...]:
    """Return, for inspection, the pending nodes, their leaves, the nodes that are stored, the
    leaves that may be overwritten, the leaves with indices of updates if the plan depends on their
    values, and the cached plan or None."""
    with value_lock:
        pending_graph = collect([node])
        outputs, places = nodes_to_store(pending_graph)
        device = computing_device([node], pending_graph.leaves) if devices.gpu_possible else None
        plan, lost, _, general = _find_plan(pending_graph, places, (*_plan_options(), device))
        fixed = [] if general is None else pending_graph.places
        return sorted_order(pending_graph.order), pending_graph.leaves, outputs, lost, fixed, plan


def ready(node: Node) -> Buffer:
    """Return the buffer of a node that is not traced; compute it or wait for it if necessary."""
    value = node.value
    if type(value) is Buffer:
        return value
    if value is None and _compute_by_entry(node):
        return node.value
    while True:
        value = node.value
        if value is None:
            _compute(node)
            if node.value is None:
                raise values.make_traced_error(node)
        elif isinstance(value, Task):
            value.wait()
            if node.value is value:  # a mark shares the task of its operand
                node.value = ready(node.inputs[0])
        elif value is DELETED:
            raise values.make_deleted_error()
        else:
            return value


def _compute(node: Node) -> None:
    """Give a node a value or a task. Another thread may compute the same node meanwhile."""
    op, inputs = node.op, node.inputs
    if op is LITERAL:
        available_buffer(node)
        return
    if op is MARK and inputs and inputs[0].value is not None:
        node.value = ready(inputs[0])
        return
    if op is ITEM and inputs:
        (whole,) = inputs
        if isinstance(task := whole.value, Task):
            task.wait()
        value: Any = whole.value
        if isinstance(value, tuple):
            node.value = as_tuple(value)[node.params["index"]]
            return
    materialize([node], wait=True)


def is_ready(node: Node) -> bool:
    """Return whether the value of a node has been computed."""
    return isinstance(node.value, Buffer) and node.value.done()


def array_of(node: Node) -> np.ndarray:
    """Return a read-only NumPy view of the buffer of a node, after waiting for its value."""
    value = ready(node)
    if type(value) is Buffer:
        return value.view(node.aval.shape, node.aval.dtype)
    with execute.annotating_gpu_errors(node):
        return value.view(node.aval.shape, node.aval.dtype)


def device_of(node: Node) -> Device:
    """Return the device where the value of a node is stored or will be computed."""
    device = None
    if devices.gpu_possible:
        device = computing_device(
            [node], [node] if node.value is not None else collect([node]).leaves
        )
    return device or devices.default_cpu(node.aval.devices)


def on_device(node: Node) -> Buffer:
    """Return the buffer of a node, copied to the device that the node was placed on."""
    value = ready(node)
    if devices.gpu_possible:
        value = node.value = to_device(value, computing_device([node], [node]))
    return value


def wait_for_value(node: Node) -> None:
    """Wait until the value of a node has been computed, also if it is on a GPU."""
    value = ready(node)
    if type(value) is not Buffer:  # it is in the memory of a GPU, where work may be queued
        with execute.annotating_gpu_errors(node):
            value.wait()


def plan_of_graph(
    graph: Graph,
    fastmath: bool = False,
    donated: Collection[int] = (),
    device: Device | None = None,
) -> tuple[Plan, list[Node]]:
    """Make the plan of a traced graph; it may write to the buffers of donated inputs.

    Returns the plan and the leaves that it closes over, which follow its inputs at each run.
    """
    program, leaves = from_graph(graph)
    plan = make_plan(program, fastmath, donated, device=device, fixed=True, jitted=True)
    plan.program = program
    if config.debug:
        imported("accnp.engine.describe").log_plan(f"jit {graph.name}", program, plan)
    return plan, leaves[len(graph.inputs) :]


def run_plan(
    plan: Plan, leaves: Sequence[Node], avals: Sequence[Aval], donated: Collection[int] = ()
) -> list[Node]:
    """Run a plan on leaf nodes and return nodes of its results, which hold buffers or tasks.

    Leaves that the plan overwrites are copied first, except donated leaves that are not visible
    elsewhere: no array and no pending node refers to them.
    """
    outputs = [Node(CONST, (), {}, a, None, None, 0, None) for a in avals]
    # Leaves are computed before the plan is submitted: work on the stream must not wait for work
    # that is queued after it.
    if not all([isinstance(x.value, Buffer) or x.op is LITERAL for x in leaves]):
        materialize(leaves)
    used = list(leaves)
    for k in plan.overwritten:
        ready(used[k])
        mine = k in donated and getrefcount(leaves[k]) == IN_TWO_LISTS
        if not (mine and has_own_buffer(leaves[k])):
            used[k] = const(execute.copy_buffer(leaves[k].value), leaves[k].aval)
    _launch(plan, used, outputs, False, most=ASYNC)
    return outputs


def run_into(
    plan: Plan, leaves: Sequence[Node], avals: Sequence[Aval], memory: Sequence[Buffer | None]
) -> list[Buffer]:
    """Run a plan on leaf nodes, wait, and return the buffers of its results.

    A result is written to the given `memory` if it comes from a kernel and the memory overlaps no
    operand and no other result, also through another map of the same file. Library functions
    allocate their results.
    """
    if watch.on or plan.overwritten or plan.device is not None:
        return [ready(x) for x in run_plan(plan, leaves, avals)]
    materialize(leaves)
    buffers = [ready(x) for x in leaves] + plan.constants
    result_buffers: dict[int, Buffer] = {}
    pairs = zip(plan.output_slots, memory, strict=True)
    targets = [(slot, b) for slot, b in pairs if b is not None]
    maps = imported("accnp.runtime.memory_regions")  # only programs with call_into need it
    with_files = any(maps.is_mapped(b.memory) for _, b in targets) and not all(
        b.pooled for b in buffers
    )
    parts = [*buffers, *[b for _, b in targets]]
    blocks = [maps.Block(b.ptr, b.ptr + b.nbytes, b.memory) for b in parts]
    regions = maps.regions_of(blocks, with_files)
    occupied = regions[: len(buffers)]
    for (slot, b), region in zip(targets, regions[len(buffers) :], strict=True):
        if slot not in result_buffers and not any(map(region.overlaps, occupied)):
            result_buffers[slot] = b
            occupied.append(region)
    results: list[Buffer] = []

    def work() -> None:
        try:
            results.extend(execute.run(plan, buffers, result_buffers=result_buffers))
        except BaseException as error:
            execute.add_error_note(error)
            raise

    if default_stream().idle:
        work()
    else:
        default_stream().submit(work).wait()
    return results


def compile_plan(plan: Plan) -> None:
    """Compile every kernel of a plan, or load it from a cache."""
    for step in plan.steps:
        if isinstance(step, KernelStep):
            step.load(plan.fastmath)


def _on_deep_node(node: Node) -> None:
    # The value has not been requested yet. An error is raised when it is, by computing it again.
    try:
        if not _compute_by_entry(node):
            materialize([node])
    except FloatingPointError:  # debug_nans reports errors at the line of the operation
        raise
    except Exception:
        return


def _perform_node(node: Node) -> None:
    """Execute a callback, or run a program with an effect, as soon as it is recorded.

    If operands are still being computed, the callback is submitted to the stream. Its error is then
    raised when its results are waited for, or by `effects_barrier`. A program whose callbacks have
    no effect is not run yet if it is being differentiated, because its derivative rule calls them
    too.
    """
    if node.op.kind != "callback":
        # A collective runs at once, because other processes wait for this one.
        collective = node.op.kind == "opaque"
        if collective or has_effect(node.op, node.params) or not depends_on_marks(node.inputs):
            materialize([node])
        return
    if node.op.jvp is not ZERO and depends_on_marks(node.inputs):
        node.op.jvp()  # raises: callbacks cannot be differentiated
    materialize(node.inputs)

    def work() -> None:
        set_values([node], execute.run_callback(node, [array_of(x) for x in node.inputs]))

    now = default_stream().idle and all(available_buffer(x) is not None for x in node.inputs)
    if now or node.op.immediate:
        try:
            work()
        except JaxRuntimeError as error:
            if not node.op.raises_cause or error.__cause__ is None:
                raise
            # A debugging function that is called at once raises its own error, as in JAX.
            cause = error.__cause__
            for note in error.__notes__:
                cause.add_note(note)
            raise cause from None
    else:
        set_pending_task([node], default_stream().submit(work))


install_engine(_on_deep_node, _perform_node, array_of)
