"""The story on one page: pending nodes in; program, fusion, kernels, launches; buffers out.

`materialise` collects the pending graph above some nodes, looks up (or makes) the plan of its
structure, and runs it: at once if the work is small and its inputs are there, else on the device's
stream, leaving a task in each node until its buffer is there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from accnp._native import Record, repeat
from accnp.compiler.fusion.program import Program, build, from_graph
from accnp.config import config, epoch
from accnp.engine import execute, values, watch
from accnp.engine.execute import brought
from accnp.engine.pending import (
    IN_TWO_LISTS,
    Pending,
    apart,
    by_place,
    collect,
    crossings,
    has_own_buffer,
    lost_leaves,
    place_of,
    placed,
    sorted_order,
    wanted,
)  # fmt: skip
from accnp.engine.plan import make_plan
from accnp.engine.steps import KernelStep, Plan, forget_nodes, often
from accnp.engine.values import (
    DELETED,
    Claim,
    at_hand,
    claimed,
    deliver,
    looking,
    promise,
)
from accnp.errors import JaxRuntimeError
from accnp.forks import imported
from accnp.ir.graph import Graph
from accnp.ir.node import CONST, Node, _on_deep, _perform, _values, const, has_effect
from accnp.ir.op import ZERO
from accnp.primitives.unrolled import differentiated
from accnp.runtime import device as devices
from accnp.runtime.buffer import Buffer
from accnp.runtime.device import Device
from accnp.runtime.stream import Task, default_stream

__all__ = [
    "DELETED", "Plan", "apart", "array_of", "brought", "close", "compile_plan", "is_ready",
    "materialise", "on_device", "pending", "place_of", "placed", "plan_of_graph", "plan_of_pending",
    "ready", "run_plan", "settle", "where",
]  # fmt: skip

# Work, in simple element operations (some 5 ms), from which a hand-over to the stream pays: of a
# jitted call, which is often waited for at once, and of an operation whose value is not wanted yet.
ASYNC = 1 << 28
BEHIND = 1 << 26
MAX_PLANS = 4096
# Plans of pending graphs that differ only in where updates write: from this number on one plan
# serves all places, in which updates are separate steps.
MAX_PLACES = 8
_plans: dict[Any, Plan] = {}
_places: dict[Any, int] = {}  # how many such plans there are, by the key without places
# What computes nodes of a form in machine code, and its records (see `repeated.py`).
_repeats: dict[Any, tuple[Record, ...]] = {}
counters = {"plans": 0, "plan_hits": 0}


def materialise(nodes: Sequence[Node], wait: bool = False) -> None:
    """Give nodes their values, or tasks that will deliver them; with `wait`, run on this thread."""
    if not devices.reach:
        _materialise(nodes, wait)
        return
    for node in crossings(nodes):
        if node.value is None:
            materialise(node.inputs)
            execute.carry(node, ready)
    for alike in by_place(nodes):
        _materialise(alike, wait)


def _materialise(nodes: Sequence[Node], wait: bool) -> None:
    mine: Claim | None = None
    try:
        while True:
            with looking:
                now = epoch["now"]
                found = collect(nodes)
                theirs = values.claim_among((*nodes, *found.leaves)) if claimed else None
                if theirs is None:
                    order, leaves = found.order, found.leaves
                    if not order:
                        return
                    if config.no_execution:
                        raise RuntimeError(
                            "the option no_execution is set; got values that are not computed "
                            "yet; leave the option's context first"
                        )
                    device = place_of(nodes, leaves) if devices.reach else None
                    outputs, places = wanted(found)
                    rest = (*_switches(), device)
                    plan, lost, key, general = _known(found, places, rest)
                    if lost:
                        mine = Claim(outputs)
                        mine.take()
                    program = None
                    if plan is None:  # a general plan has places that are not known
                        fixed = {id(x) for x in found.places} if general is not None else ()
                        program = build(sorted_order(order), leaves, outputs, fixed)
                    break
            theirs.wait()
        if plan is None:
            assert program is not None
            counters["plans"] += 1
            plan = _plan(program, len(leaves), order, lost, device, general is not None)
            _keep(plan, key, general)
        else:
            counters["plan_hits"] += 1
            plan.hits += 1
            if often(plan.hits) and rest == (*_switches(), device):
                imported("accnp.engine.repeated").arm(now, found, places, plan, _repeats)
        _launch(plan, leaves, outputs, wait, order)
    finally:
        if mine is not None:
            mine.end()


def _keep(plan: Plan, key: Any, general: Any) -> None:
    """Remember a plan, for all places if it is the same for these."""
    if len(_plans) >= MAX_PLANS:
        forget_plans()
    if general is not None:
        _places[general] = _places.get(general, 0) + 1 if plan.known else MAX_PLACES
    _plans[key if general is None or plan.known else general] = plan


def forget_plans() -> None:
    """Forget how pending graphs were computed before: they are planned anew."""
    _plans.clear()
    _places.clear()
    _repeats.clear()


def _known(
    found: Pending, places: tuple[int, ...], rest: tuple[Any, ...]
) -> tuple[Plan | None, tuple[int, ...], Any, Any]:
    """The plan of a pending graph if it is known, leaves that it writes over, and its keys."""
    lost = lost_leaves(found, found.taken) if found.taken and not watch.one_by_one else ()
    key, general = _keys(found, (places, lost, *rest))
    plan = _plans.get(key)
    if plan is not None and plan.spare and not watch.one_by_one:
        # Large results are written over operands that are not referenced elsewhere.
        more = lost_leaves(found, {*found.taken, *plan.spare})
        if more != lost:
            lost = more
            key, general = _keys(found, (places, lost, *rest))
            plan = _plans.get(key)
    return plan, lost, key, general


def _keys(found: Pending, rest: tuple[Any, ...]) -> tuple[Any, Any]:
    """The key of a pending graph, and the one without the places that it says where updates
    write; None for the latter where the former has none of them."""
    general = (*found.key, *rest)
    if not found.places or _places.get(general, 0) >= MAX_PLACES:
        return general, None
    numbers = imported("accnp.compiler.fusion.places").numbers
    return (general, tuple([numbers(x) for x in found.places])), general


def _switches() -> tuple[Any, ...]:
    """What plans depend on beside programs."""
    return config.fastmath, config.fusion_limit, config.kernel_overrides, config.mpi_allreduce


def _again(node: Node) -> bool:
    """Compute a node as it was often computed before, in machine code; whether that was so."""
    records = _repeats.get(node.form)
    if records is None:
        return False
    with looking:  # unless another thread has claimed or computed it meanwhile
        return node.value is None and repeat(records, node)


def _plan(
    program: Program,
    n_leaves: int,
    order: Sequence[Node],
    lost: tuple[int, ...] = (),
    device: Device | None = None,
    fixed: bool = False,
) -> Plan:
    plan = plan_of_pending(program, lost, device, fixed)
    # Constants inside inlined bodies are part of the plan itself.
    close(plan, [v.node for v in program.leaves[n_leaves:]])  # type: ignore[misc]
    if config.debug:
        imported("accnp.engine.describe").tell_plan("eager", program, plan)
    places = {id(n): i for i, n in enumerate(order)}
    for step in plan.steps:
        if hasattr(step, "place"):
            step.place = places.get(id(step.node), -1)
    forget_nodes(plan, program)
    return plan


def plan_of_pending(
    program: Program, lost: tuple[int, ...], device: Device | None, fixed: bool = False
) -> Plan:
    """It writes to `lost` leaves unless a library call may fail, which needs all of them again;
    `fixed` as of `make_plan`."""
    plan = make_plan(program, config.fastmath, lost, device=device, fixed=fixed)
    if plan.overwritten and not all(isinstance(step, KernelStep) for step in plan.steps):
        return make_plan(program, config.fastmath, device=device, fixed=fixed)
    return plan


def close(plan: Plan, free: Sequence[Node]) -> None:
    """Give a plan what it closes over, where it runs."""
    plan.constants = execute.bring(plan, free, [ready(x) for x in free])


def _launch(
    plan: Plan,
    leaves: list[Node],
    outputs: list[Node],
    wait: bool,
    order: Sequence[Node] = (),
    most: int = BEHIND,
) -> None:
    """Run a plan: at once if it has less work than `most`, else on the stream."""
    quick = plan.quick
    if watch.on:
        if watch.one_by_one:
            _launch_watched(plan, leaves, outputs, order)
            return
        quick = None  # observers see steps
    there: list[Any] = [x.value for x in leaves]
    for value in there:
        if type(value) is not Buffer:
            there = [at_hand(x) for x in leaves]
            break
    if devices.reach:
        there = execute.bring(plan, leaves, there)
    stream = execute.stream_of(plan)
    at_once = wait or (plan.work < most if plan.device is None else not plan.waits)
    if at_once and stream.idle and None not in there:
        # An interrupt behind kernels that write over operands must be seen; see `_run`.
        if quick is not None and not plan.overwritten:
            deliver(outputs, quick(there + plan.constants))
        else:
            _run(plan, there, leaves, outputs, order)
        return

    def work() -> None:
        buffers = [b if b is not None else ready(x) for b, x in zip(there, leaves, strict=True)]
        _run(plan, execute.bring(plan, leaves, buffers), leaves, outputs, order)

    task = stream.submit(work)
    promise(outputs, task)
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
        deliver(outputs, execute.run(plan, buffers + plan.constants))
    except BaseException as error:
        for k in plan.overwritten:  # half done: it must not be read again
            leaves[k].value = DELETED
        execute.blame(error, order)
        raise


def _launch_watched(
    plan: Plan, leaves: list[Node], outputs: list[Node], order: Sequence[Node]
) -> None:
    kinds = watch.looking_for()
    program = plan.program or (build(sorted_order(order), leaves, outputs) if kinds else None)

    def work() -> None:
        buffers = execute.bring(plan, leaves, [ready(x) for x in leaves]) + plan.constants
        deliver(outputs, watch.run(plan, buffers, program, kinds))

    if default_stream().idle:
        work()
    else:
        default_stream().submit(work).wait()


def pending(node: Node) -> tuple[Any, ...]:
    """For inspection: nodes, leaves, what is stored, leaves that only the graph has, those that say
    where updates write if the plan depends on that, and the plan if there is one."""
    with looking:
        found = collect([node])
        outputs, places = wanted(found)
        device = place_of([node], found.leaves) if devices.reach else None
        plan, lost, _, general = _known(found, places, (*_switches(), device))
        fixed = [] if general is None else found.places
        return sorted_order(found.order), found.leaves, outputs, lost, fixed, plan


def ready(node: Node) -> Buffer:
    """Return the buffer of a node that is not traced; compute it, or wait, where needed."""
    value = node.value
    if type(value) is Buffer:
        return value
    if value is None and _again(node):
        return node.value
    while True:
        value = node.value
        if value is None:
            _compute(node)
            if node.value is None:
                raise values.traced(node)
        elif isinstance(value, Task):
            value.wait()
            if node.value is value:  # a mark has been given that of its operand
                node.value = ready(node.inputs[0])
        elif value is DELETED:
            raise values.gone()
        else:
            return value


def _compute(node: Node) -> None:
    """Give a node a value, or a task; another thread may be about it, too."""
    name, inputs = node.op.name, node.inputs
    if name == "literal":
        at_hand(node)
        return
    if name == "mark" and inputs and inputs[0].value is not None:
        node.value = ready(inputs[0])
        return
    if name == "item" and inputs:
        (whole,) = inputs
        if isinstance(task := whole.value, Task):
            task.wait()
        if isinstance(whole.value, tuple):
            node.value = whole.value[node.params["index"]]
            return
    materialise([node], wait=True)


def is_ready(node: Node) -> bool:
    """Whether a node's value is there."""
    return isinstance(node.value, Buffer) and node.value.done()


def array_of(node: Node) -> np.ndarray:
    """Return a read-only NumPy array over a node's buffer; waits."""
    value = ready(node)
    if type(value) is Buffer:
        return value.view(node.aval.shape, node.aval.dtype)
    with execute.waited_for(node):
        return value.view(node.aval.shape, node.aval.dtype)


def where(node: Node) -> Device:
    """The device where a node's value is, or will be computed."""
    device = None
    if devices.reach:
        device = place_of([node], [node] if node.value is not None else collect([node]).leaves)
    return device or devices.default_cpu(node.aval.devices)


def on_device(node: Node) -> Buffer:
    """A node's buffer, where the node is said to lie."""
    value = ready(node)
    if devices.reach:
        value = node.value = brought(value, place_of([node], [node]))
    return value


def settle(node: Node) -> None:
    """Wait until a node's value is there; for one on a GPU, until it has been computed."""
    value = ready(node)
    if type(value) is not Buffer:  # values in the host's memory are there
        with execute.waited_for(node):
            value.wait()


def plan_of_graph(
    graph: Graph,
    fastmath: bool = False,
    donated: Collection[int] = (),
    device: Device | None = None,
) -> tuple[Plan, list[Node]]:
    """Make the plan of a traced graph; it may write to the buffers of donated inputs.

    Returns it and its closed-over leaves (its inputs come before those).
    """
    program, leaves = from_graph(graph)
    plan = make_plan(program, fastmath, donated, device=device, fixed=True)
    plan.program = program
    if config.debug:
        imported("accnp.engine.describe").tell_plan(f"jit {graph.name}", program, plan)
    return plan, leaves[len(graph.inputs) :]


def run_plan(
    plan: Plan, leaves: Sequence[Node], avals: Sequence[Any], donated: Collection[int] = ()
) -> list[Node]:
    """Run a plan on leaf nodes and return nodes of its results (ready, or tasks).

    What it writes over is copied before, except donated leaves that are not visible elsewhere: to
    no handle, and to nothing that is recorded and not computed yet.
    """
    outputs = [Node(CONST, (), {}, a, None, None, 0, None) for a in avals]
    # First, and by this thread: work on the stream must not wait for what is queued behind it.
    if not all([isinstance(x.value, Buffer) or x.op.name == "literal" for x in leaves]):
        materialise(leaves)
    used = list(leaves)
    for k in plan.overwritten:
        ready(used[k])
        mine = k in donated and getrefcount(leaves[k]) == IN_TWO_LISTS
        if not (mine and has_own_buffer(leaves[k])):
            used[k] = const(execute.copied(leaves[k].value), leaves[k].aval)
    _launch(plan, used, outputs, False, most=ASYNC)
    return outputs


def run_into(
    plan: Plan, leaves: Sequence[Node], avals: Sequence[Any], memory: Sequence[Buffer | None]
) -> list[Buffer]:
    """Run a plan on leaf nodes, wait, and return the buffers of its results: for each the memory
    that is given, if its kernel can write there.

    Kernels cannot write over what they read, and functions of libraries return memory of their own.
    """
    if watch.on or plan.overwritten or plan.device is not None:
        return [ready(x) for x in run_plan(plan, leaves, avals)]
    materialise(leaves)
    buffers = [ready(x) for x in leaves] + plan.constants
    given: dict[int, Buffer] = {}
    for slot, b in zip(plan.output_slots, memory, strict=True):
        if b is not None and not any(map(b.overlaps, (*buffers, *given.values()))):
            given.setdefault(slot, b)
    found: list[Buffer] = []

    def work() -> None:
        try:
            found.extend(execute.run(plan, buffers, given=given))
        except BaseException as error:
            execute.blame(error)
            raise

    if default_stream().idle:
        work()
    else:
        default_stream().submit(work).wait()
    return found


def compile_plan(plan: Plan) -> None:
    """Make or load the machine code of every kernel of a plan."""
    for step in plan.steps:
        if isinstance(step, KernelStep):
            step.load(plan.fastmath)


def _on_deep_node(node: Node) -> None:
    # The value is not wanted yet: an error is found again, and raised, once it is.
    try:
        if not _again(node):
            materialise([node])
    except FloatingPointError:  # asked for, by debug_nans
        raise
    except Exception:
        return


_on_deep.append(_on_deep_node)


def _perform_node(node: Node) -> None:
    """Do a callback, or run a program with an effect, as soon as it is recorded.

    With operands in flight it joins the stream; its error is then raised by `effects_barrier` if
    its results are not waited for. A program whose callbacks have no effect waits if it is being
    differentiated: the rule for its derivative calls them, too.
    """
    if node.op.kind != "callback":
        one = node.op.kind == "opaque"  # a collective, which other processes take part in now
        if one or has_effect(node.op, node.params) or not differentiated(node.inputs):
            materialise([node])
        return
    if node.op.jvp is not ZERO and differentiated(node.inputs):
        node.op.jvp()  # refuses
    materialise(node.inputs)

    def work() -> None:
        deliver([node], execute.perform(node, [array_of(x) for x in node.inputs]))

    now = default_stream().idle and all(at_hand(x) is not None for x in node.inputs)
    if now or node.op.name == "check":  # a check fails where it stands
        try:
            work()
        except JaxRuntimeError as error:
            if node.op.name not in ("debug_callback", "debug_print") or error.__cause__ is None:
                raise
            # Called at once, a debugging function raises its own error, as in jax.
            cause = error.__cause__
            for note in error.__notes__:
                cause.add_note(note)
            raise cause from None
    else:
        promise([node], default_stream().submit(work))


_perform.append(_perform_node)
_values.append(array_of)
