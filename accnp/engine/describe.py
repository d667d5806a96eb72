"""Descriptions of plans as text: steps, buffers, and sources.

Input: a Program and the Plan made from it. Output: lines of text for `jnp.inspect`, `explain` and
the log that ACCNP_DEBUG enables. `log_plan` writes that log when a plan has been made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accnp.compiler.fusion.clusters import cluster_of
from accnp.compiler.fusion.describe import (
    aval_text,
    bytes_text,
    cluster_lines,
    leaf_text,
    members,
    program_lines,
)  # fmt: skip
from accnp.compiler.fusion.fuse import Cluster
from accnp.compiler.fusion.program import Program, Value
from accnp.config import config
from accnp.debug_log import note
from accnp.engine.steps import ControlStep, HostStep, KernelStep, Plan
from accnp.ir.graph import Graph
from accnp.ir.node import CONST, LITERAL, Node
from accnp.ir.trace import Trace

__all__ = [
    "body_operations", "bytes_text", "clusters_of", "graph_of", "iterate_plans", "kernel_label",
    "log_plan", "plan_lines", "plan_text", "step_members",
]  # fmt: skip


def clusters_of(plan: Plan, program: Program) -> dict[Cluster, int]:
    """Return the clusters of a plan with the indices of their steps.

    The second stage of a split reduction has no cluster of its own.
    """
    step_indices: dict[Cluster, int] = {}
    for i, step in enumerate(plan.steps):
        if isinstance(step, KernelStep):
            if step.cluster is not None:
                step_indices.setdefault(step.cluster, i)
            if step.chained is not None:
                step_indices.setdefault(step.chained, i)
        else:
            v = next((v for v in program.values if _is_step(v, step)), None)
            if v is not None:
                step_indices.setdefault(cluster_of(v), i)
    return step_indices


def _is_step(v: Value, step: HostStep | ControlStep) -> bool:
    is_host = isinstance(v.cluster, Cluster) and v.cluster.form == "host"
    return is_host and v.parent is None and v.op is step.op and v.node is step.node


def step_members(plan: Plan, program: Program) -> dict[int, list[Value]]:
    """Return the values that each kernel step computes, by the index of the step."""
    steps = [
        (i, s)
        for i, s in enumerate(plan.steps)
        if isinstance(s, KernelStep) and s.cluster is not None
    ]
    inside = members(program, [s.cluster for _, s in steps])  # type: ignore[misc]
    return {i: values for (i, _), values in zip(steps, inside, strict=True)}


def kernel_label(values: Sequence[Value], limit: int = 6) -> str:
    """Return a label for a kernel that lists its operations."""
    names = [v.op.name for v in values if v.op.kind != "view"] or [v.op.name for v in values]
    more = f", ... {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) + more) or "copy"


def body_operations(step: KernelStep) -> list[str]:
    """Return the names of the operations inside a native loop."""
    names: list[str] = []
    for body in step.bodies:
        if body.program is not None:
            names += [v.op.name for v in body.program.values if v.op.kind not in ("view", "loop")]
        for inner in body.steps:
            if isinstance(inner, KernelStep):
                names += body_operations(inner)
    return names


def plan_lines(plan: Plan, program: Program) -> list[str]:
    """Describe the steps, the buffers that they read, allocate and free, and the peak memory."""
    allocated_bytes = sum(
        n for s in plan.steps if isinstance(s, KernelStep) for _, n in _allocated_buffers(s)
    )
    on = "" if plan.device is None else f"on {plan.device}: "
    lines = [
        f"{on}{len(plan.steps)} steps, {plan.n_slots} buffers: {plan.n_leaves} given, "
        f"{len(set(plan.output_slots))} results; kernels allocate {bytes_text(allocated_bytes)}, "
        f"at most {bytes_text(_high_water(plan))} at once"
    ]
    for slot, v in enumerate(program.leaves):
        size = bytes_text(v.aval.nbytes)
        lines.append(f"  b{slot}: %{v.id} {leaf_text(v)}, {aval_text(v.aval)}, {size}")
    lines += _step_lines(plan, program, "  ")
    pairs = zip(plan.output_slots, plan.out_avals, strict=True)
    lines.append(f"  results: {', '.join(f'b{s} {aval_text(a)}' for s, a in pairs)}")
    return lines


def _step_lines(plan: Plan, program: Program | None, inset: str) -> list[str]:
    named = step_members(plan, program) if program is not None else {}
    lines: list[str] = []
    for i, step in enumerate(plan.steps):
        head = f"{inset}step {i}: "
        if isinstance(step, KernelStep):
            label = kernel_label(named[i]) if named.get(i) else step.label
            slots = ", ".join(dict.fromkeys(f"b{s}" for s, _ in step.pointers))
            text = f"{head}kernel({slots}) for 0..{step.extent}: {label}"
            if step.bodies:
                text = f"{head}kernel({slots}), a native loop: {label}"
            text += "".join(f"; allocates b{s} {bytes_text(n)}" for s, n in step.allocs)
            for slot, source, n, over in step.updated_slots:
                text += f"; b{slot} is {'' if over else 'a copy of '}b{source}, updated"
                text += " in place" if over else f", {bytes_text(n)}: {step.copied.get(slot, '')}"
        elif isinstance(step, ControlStep):
            ins = ", ".join(f"b{s}" for s in step.operands)
            outs = ", ".join(f"b{s}" for s, _ in step.results)
            text = f"{head}{outs} = {step.op.name}({ins}), a loop on the host over these plans"
            text += f", because {step.reason}" if step.reason else ""
            if step.bailout is not None:
                text += "; native until a branch calls Python"
        else:
            ins = ", ".join(f"b{o[0]}" for o in step.operands)
            outs = ", ".join(f"b{s}" for s, _ in step.results)
            text = f"{head}{outs} = {step.op.name}({ins}), {step.what}"
        if plan.device is not None and type(step) in (KernelStep, HostStep):
            text += ", on the CPU with copies of its operands, because no GPU version exists"
        if step.frees:
            text += f"; frees {', '.join(f'b{s}' for s in step.frees)}"
        lines.append(text)
        for k, body in enumerate(() if isinstance(step, HostStep) else step.bodies):
            lines.append(f"{inset}  program {k}:")
            lines += _step_lines(body, body.program, inset + "    ")
    return lines


def iterate_plans(
    plan: Plan, program: Program | None
) -> Iterator[tuple[str, Plan, Program | None]]:
    """Yield a plan and the plans of loops and branches in it, each with the path of its step."""
    yield "", plan, program
    for i, step in enumerate(plan.steps):
        for k, body in enumerate(step.bodies if isinstance(step, ControlStep) else ()):
            for path, inner, its in iterate_plans(body, body.program):
                yield f"{i}.{k}." + path, inner, its


def _allocated_buffers(step: KernelStep) -> list[tuple[int, int]]:
    """Return the slots and sizes of the buffers that a step allocates."""
    return [*step.allocs, *[(slot, n) for slot, _, n, over in step.updated_slots if not over]]


def _high_water(plan: Plan) -> int:
    """Return the peak number of bytes allocated by kernels that are live at the same time."""
    sizes: dict[int, int] = {}
    now = most = 0
    for step in plan.steps:
        if isinstance(step, KernelStep):
            for slot, n in _allocated_buffers(step):
                sizes[slot] = n
                now += n
            for slot, source, _, over in step.updated_slots:
                if over and source in sizes:
                    sizes[slot] = sizes.pop(source)
        most = max(most, now)
        now -= sum(sizes.get(s, 0) for s in step.frees)
    return most


def graph_of(outputs: Sequence[Node], order: Sequence[Node], leaves: Sequence[Node]) -> Graph:
    """Copy a pending graph into a `Graph` whose inputs are its leaves.

    The copy does not refer to the nodes, because a reference would count as a use of the value.
    """
    trace = Trace("jit", "inspect")
    env: dict[int, Node] = {}
    inputs: list[Node] = []
    for x in leaves:
        if x.op is LITERAL:
            env[id(x)] = x
            continue
        env[id(x)] = new = Node(CONST, (), {}, x.aval, None, trace, 0, None)
        inputs.append(new)
    copies: list[Node] = []
    for n in order:
        ins = tuple([env[id(x)] for x in n.inputs])
        env[id(n)] = new = Node(n.op, ins, n.params, n.aval, None, trace, n.depth, n.site)
        copies.append(new)
    return Graph(inputs, [env[id(x)] for x in outputs], "", (), trace.level, copies, trace)


def log_plan(what: str, program: Program, plan: Plan) -> None:
    """Log a plan that was just made, in the detail that `config.debug` asks for."""
    level = config.debug
    kernels = sum(isinstance(s, KernelStep) for s in plan.steps)
    others = len(plan.steps) - kernels
    note(
        f"{what}: new program of {len(program.values)} operations: "
        f"{kernels} kernels, {others} other steps"
    )
    if level >= 2:
        _log_section(f"graph of {what}", program_lines(program))
    if level >= 3:
        _log_section(f"fusion of {what}", cluster_lines(program, clusters_of(plan, program)))
        _log_section(f"plan of {what}", plan_lines(plan, program))
    for path, inner, its in iterate_plans(plan, program):
        _label(inner, its)
        for i, step in enumerate(inner.steps):
            if isinstance(step, KernelStep) and level >= 4:
                title = f"source of step {path}{i} of {what}: {step.label}"
                _log_section(title, step.text.source.rstrip().split("\n"))


def _label(plan: Plan, program: Program | None) -> None:
    """Label the kernels of a plan with their operations, for log messages at launch."""
    named = step_members(plan, program) if program is not None else {}
    for i, step in enumerate(plan.steps):
        if isinstance(step, KernelStep) and named.get(i):
            step.label = kernel_label(named[i])


def _log_section(title: str, lines: Sequence[str]) -> None:
    note(title + ":\n" + "\n".join("    " + line for line in lines))


def plan_text(plan: Plan) -> str:
    """Return the sources of kernels and the names of library calls, in the order of steps."""
    parts: list[str] = []
    for i, step in enumerate(plan.steps):
        if isinstance(step, KernelStep):
            parts.append(f"# step {i}: kernel, {step.extent} steps\n{step.text.source}")
        else:
            parts.append(f"# step {i}: {step.op.name} (library call)\n")
    return "\n".join(parts)
