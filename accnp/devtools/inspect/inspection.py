"""`Inspection`, the result of `inspect`: a graph, its program and plan as text and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accnp import engine
from accnp.compiler.fusion.describe import cluster_lines, program_lines
from accnp.compiler.fusion.program import Program
from accnp.devtools.inspect.drawing import draw
from accnp.devtools.inspect.inspected_kernel import InspectedKernel, KernelOnGpu, kernels_of
from accnp.engine.describe import clusters_of, plan_lines
from accnp.engine.steps import KernelStep, Plan
from accnp.engine.table import groups_of
from accnp.ir.equations import ClosedJaxpr
from accnp.ir.graph import Graph
from accnp.ir.svg import escape

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Inspection", "plural"]


class Inspection:
    """How a function or array is computed: `print` it, or use its attributes.

    `graph` is the recorded program and `jaxpr` the same program as a jaxpr; `program` is the result
    of the passes, `plan` the steps that run, and `kernels` the generated kernels. For an array that
    has been computed already, these are empty.
    """

    def __init__(self, title: str, status: str) -> None:
        self.title = title
        self.status = status
        self.graph: Graph | None = None
        self.jaxpr: ClosedJaxpr | None = None
        self.program: Program | None = None
        self.plan: Plan | None = None
        self.kernels: list[InspectedKernel] = []
        self._sections: dict[str, str] = {}

    def fill(
        self,
        graph: Graph,
        jaxpr: ClosedJaxpr,
        program: Program,
        plan: Plan,
        existing: Plan | None = None,
    ) -> Inspection:
        """Set the parts; `existing` is the plan that runs, if `plan` is only for inspection."""
        self.graph, self.jaxpr, self.program, self.plan = graph, jaxpr, program, plan
        self._clusters = clusters_of(plan, program)
        self.kernels = kernels_of(plan, program, existing)
        return self

    @property
    def sections(self) -> dict[str, str]:
        """Return the parts of the text by their titles."""
        if self._sections or self.plan is None or self.program is None or self.graph is None:
            return self._sections
        program, plan = self.program, self.plan
        out = self._sections
        out["graph"] = str(self.jaxpr)
        recorded = len(self.graph.nodes)
        out[
            f"program: {recorded} recorded operations; calls inlined, duplicates merged, "
            f"{len(program.values)} left"
        ] = "\n".join(program_lines(program))
        count = sum(isinstance(s, KernelStep) for s in plan.steps)
        others = len(plan.steps) - count
        title = f"fusion: {plural(len(program.values), 'operation')} in {plural(count, 'kernel')}"
        if others:
            title += f" and {plural(others, 'other step')}"
        out[title] = "\n".join(cluster_lines(program, self._clusters))
        out["plan"] = "\n".join(plan_lines(plan, program))
        for i, k in enumerate(self.kernels):
            arguments = f"arguments after lo, hi: {', '.join(k.signature)}"
            out[f"kernel {i} (step {k.step}): {k.label}"] = (
                f"# {k.came}\n# {arguments}\n{k.text.rstrip()}"
            )
            if isinstance(k, KernelOnGpu):
                out[f"PTX of kernel {i}"] = k.ptx.rstrip()
        out["launches"] = self._launches()
        return out

    def _launches(self) -> str:
        plan = self.plan
        assert plan is not None
        where = (
            "in the calling thread"
            if plan.work < engine.ASYNC and plan.device is None
            else "on the device's stream: the call returns at once"
        )
        lines = [f"{plural(len(plan.steps), 'step')} for each run, {where}"]
        lines += [f"step {k.step}: {k.launch}" for k in self.kernels]
        first = 0
        for group in () if plan.device is not None else groups_of(plan) or ():
            if len(group) > 1:
                last = first + len(group) - 1
                lines.append(f"steps {first} to {last} need nothing of each other: one launch")
            first += len(group)
        return "\n".join(lines)

    def svg(self) -> str:
        """Return the graph as SVG: kernels are colored frames around their operations."""
        if self.program is None:
            raise ValueError(
                f"Inspection.svg: there is no graph to draw; got {self.title}, {self.status}; "
                "inspect it before it is computed"
            )
        return draw(self.program, self._clusters, self.title)

    def save_svg(self, path: str | Path) -> Path:
        """Write the picture to a file; returns its path."""
        from pathlib import Path  # 15 ms

        target = Path(path)
        target.write_text(self.svg(), encoding="utf-8")
        return target

    def __str__(self) -> str:
        parts = [f"{self.title}\n{self.status}"]
        parts += [f"-- {title} --\n{text}" for title, text in self.sections.items()]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def _repr_svg_(self) -> str | None:
        return None if self.program is None else self.svg()

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self.title)}</b><br>{escape(self.status)}</p>"]
        if self.program is not None:
            parts.append(f'<div style="overflow:auto">{self.svg()}</div>')
        parts += [
            f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"
            for title, text in self.sections.items()
        ]
        return "\n".join(parts)


def plural(n: int, what: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
