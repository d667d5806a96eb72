"""`PlanFacts`: the facts about a plan that reports need, recorded while its clusters exist.

They contain the kernels with their operations, what they store and why, and the graph as SVG; the
times of the steps are added later.
"""

from __future__ import annotations

from typing import Any

from accnp.compiler.fusion.describe import cluster_parts, message_text, why_stored
from accnp.compiler.fusion.program import Program, Value
from accnp.compiler.fusion.reasons import OUTPUT
from accnp.config import config
from accnp.devtools.inspect.drawing import draw
from accnp.engine.describe import clusters_of
from accnp.engine.steps import ControlStep, HostStep, KernelStep, Plan
from accnp.engine.traffic import LARGE
from accnp.ir.node import ARG, site_text
from accnp.runtime.bandwidth import bandwidth, limit_load

__all__ = ["Boundary", "PlanFacts", "StepFacts"]

_FASTER = 1.1  # times the bandwidth of a copy: above, operands were in caches
_LARGE = 300  # operations; pictures of larger graphs are unreadable


class Boundary:
    """A value that goes through memory between two steps."""

    def __init__(self, v: Value, step: int) -> None:
        self.step = step
        self.value = f"%{v.id} {v.op.user_name}"
        self.line = _line(v)
        self.reasons = [why for why in why_stored(v) if why != OUTPUT]
        avals = v.aval if isinstance(v.aval, tuple) else (v.aval,)
        self.nbytes = sum(a.nbytes for a in avals)
        self.output = OUTPUT in why_stored(v)

    def __str__(self) -> str:
        size = f"{self.nbytes / 1e6:.3g} MB"
        also = " (an output as well)" if self.output else ""
        place = f", {self.line}" if self.line else ""
        return f"{self.value}{place}, {size}{also}: {'; '.join(self.reasons)}"


class StepFacts:
    """One step: what it computes, bytes that must move, seconds (the least of its runs)."""

    def __init__(self, step: Any, number: int, text: str) -> None:
        self.number = number
        self.text = text
        self.kernel = isinstance(step, KernelStep)
        self.nbytes: int = step.nbytes
        self.device: Any = None  # a GPU, where it runs on one
        self.seconds: float | None = None
        self.runs = 0
        self.reliable = True  # False if the machine was busy meanwhile

    def ran(self, seconds: float) -> None:
        """Record the time of a run."""
        self.runs += 1
        self.seconds = seconds if self.seconds is None else min(seconds, self.seconds)

    @property
    def share(self) -> float | None:
        """The bandwidth relative to a streaming copy; None if it has not run."""
        if not self.seconds:
            return None
        return self.nbytes / self.seconds / bandwidth(self.device)

    @property
    def figures(self) -> str:
        """Bytes, milliseconds and the share of the limit as a string."""
        moved = f"{self.nbytes / 1e6:.3g} MB"
        if not self.seconds or self.share is None:
            return f"{moved}, not run"
        rate = self.nbytes / self.seconds / 1e9
        text = f"{moved}, {1e3 * self.seconds:.3g} ms, {rate:.1f} GB/s"
        # A kernel whose data come from caches can be faster than the copy from memory.
        share = f", {self.share:.0%} of a copy" if self.share <= _FASTER else ""
        return f"{text}{share}{self.caveat}"

    @property
    def caveat(self) -> str:
        """A caveat for figures that are not reliable, or an empty string."""
        if not self.reliable:
            return " (unreliable: busy machine)"
        load = limit_load(self.device)
        if self.share is None or self.share <= _FASTER:
            return ""
        if self.nbytes < 2 * LARGE:
            return ", faster than a copy: from the cache"
        busy = load is not None and load.busy
        return f" (unreliable: the copy was slow{', on a busy machine' if busy else ''})"


class PlanFacts:
    """A plan that ran: `title`, `steps`, `boundaries`, `svg`, and facts for advice."""

    def __init__(self, program: Program | None, plan: Plan, of: str) -> None:
        self.plan = plan  # keeps its identity
        self.of = of
        self.runs = 0
        self.boundaries: list[Boundary] = []
        self.widened: list[str] = []  # lines where float32 became float64
        self.copies: list[tuple[str, str, int]] = []  # copies by updates: operation, reason, bytes
        self.svg = ""
        parts: dict[int, str] = {}
        if program is not None:
            clusters = clusters_of(plan, program)
            for number, text, stored in cluster_parts(program, clusters):
                parts[number] = text
                boundaries = [Boundary(v, number) for v in stored]
                self.boundaries += [
                    b for b in boundaries if b.reasons and _is_read(b, stored, program)
                ]
            if len(program.values) <= _LARGE:
                self.svg = draw(program, clusters, of)
            self.widened = _widening_lines(program)
        self.operations = 0 if program is None else len(program.values)
        self.steps = [
            StepFacts(
                s,
                i,
                (parts.get(i) or getattr(s, "label", "") or s.op.user_name) + _messages_text(s),
            )
            for i, s in enumerate(plan.steps)
        ]
        for step in plan.steps:
            if isinstance(step, KernelStep):
                self.copies += _copies(step)
        self.host_loops = [
            (s.op.user_name, s.reason)
            for s in plan.steps
            if isinstance(s, ControlStep) and s.reason and s.by_python
        ]
        self.calls = sum(isinstance(s, HostStep) for s in plan.steps)

    @property
    def title(self) -> str:
        """The function or line that the plan was made for, and its size."""
        kernels = sum(s.kernel for s in self.steps)
        size = f"{self.operations} operations in " if self.operations else ""
        others = len(self.steps) - kernels
        text = f"{self.of}: {size}{kernels} kernel{'s' * (kernels != 1)}"
        return text + (f" and {others} other step{'s' * (others != 1)}" if others else "")

    @property
    def seconds(self) -> float:
        """The total time of the steps."""
        return sum(s.seconds or 0.0 for s in self.steps)


def _is_read(b: Boundary, stored: list[Value], program: Program) -> bool:
    """Return whether a step of the program reads a value; outputs alone are not boundaries."""
    v = next(v for v in stored if b.value == f"%{v.id} {v.op.user_name}")
    parts = {id(x) for x in program.values if x.parent is v} | {id(v)}
    return any(id(x) in parts for w in program.values for x in w.inputs)


def _line(v: Value) -> str:
    return site_text(v.node) if v.node is not None and v.node.site is not None else ""


_WIDE = ("float64", "complex128")


def _is_wide(v: Value) -> bool:
    return not isinstance(v.aval, tuple) and v.aval.dtype.name in _WIDE


def _widening_lines(program: Program) -> list[str]:
    """Return the lines at which the user's program converts 32-bit values to 64 bits.

    Functions that compute in 64 bits and return 32 are excluded: a conversion counts if a 64-bit
    output depends on it, or if it is combined with values that depend on a 64-bit argument. Python
    numbers, which are arguments of small calls, do not count as such arguments.
    """
    if not config.x64:  # 64-bit types are disabled
        return []
    wide = [v for v in program.values if _is_wide(v)]
    depends_on_wide = {
        id(v) for v in program.leaves if _is_wide(v) and v.op is ARG and not v.aval.weak_type
    }
    for v in wide:
        if any(id(x) in depends_on_wide for x in v.inputs):
            depends_on_wide.add(id(v))
    needs_wide = depends_on_wide | {id(v) for v in program.outputs if _is_wide(v)}
    lines = []
    for v in reversed(wide):
        if id(v) in needs_wide:
            needs_wide.update(id(x) for x in v.inputs if _is_wide(x))
            narrow = [x for x in v.inputs if x.aval.dtype.name in ("float32", "complex64")]
            if narrow and _line(v):
                lines.append(f"{_line(v)}: {narrow[0].aval.dtype.name} became {v.aval.dtype.name}")
    return list(dict.fromkeys(reversed(lines)))


def _messages_text(step: object) -> str:
    """Return the messages that a native loop sends to other processes, as the end of its text."""
    if not isinstance(step, KernelStep):
        return ""
    texts = []
    for body in step.bodies:
        values = [] if body.program is None else body.program.values
        texts += [text for v in values if (text := message_text(v))]
        texts += [
            text for inner in body.steps if (text := _messages_text(inner).removeprefix(_IN_LOOP))
        ]
    return _IN_LOOP + "; ".join(dict.fromkeys(texts)) if texts else ""


_IN_LOOP = "; in each iteration: "


def _copies(step: KernelStep) -> list[tuple[str, str, int]]:
    """Return the updates of a step that could not be made in place, and why."""
    return [
        (step.label, step.copied.get(slot, ""), nbytes)
        for slot, _, nbytes, over in step.updated_slots
        if not over
    ]
