"""SVG drawings of a program and its kernels, for `Inspection.svg`."""

from __future__ import annotations

from accnp.compiler.fusion.describe import (
    aval_text,
    find_storing_cluster,
    leaf_text,
    members,
    params_text,
)
from accnp.compiler.fusion.fuse import Cluster
from accnp.compiler.fusion.program import Program, Value
from accnp.ir.node import LITERAL, site_text
from accnp.ir.svg import Box, Group, picture

__all__ = ["draw"]


def draw(program: Program, clusters: dict[Cluster, int], title: str) -> str:
    """Return the graph as SVG: kernels are colored frames, library calls dashed ones."""
    return _Drawing(program, clusters).run(title)


class _Drawing:
    def __init__(self, program: Program, clusters: dict[Cluster, int]) -> None:
        self.program = program
        self.clusters = list(clusters)
        self.numbers = clusters
        self.groups: list[Group] = []
        self.boxes: list[Box] = []
        self.edges: list[tuple[Box, Box]] = []
        self.inside: dict[tuple[int, int], Box] = {}  # (cluster number, id of value)
        self.outside: dict[int, Box] = {}  # leaves, and values in no kernel
        self.roots = {id(v): i for i, c in enumerate(clusters) for v in c.roots}

    def run(self, title: str) -> str:
        inside = members(self.program, self.clusters)
        for i, (c, values) in enumerate(zip(self.clusters, inside, strict=True)):
            host = c.form == "host"
            name = f"step {self.numbers[c]}: {c.form} kernel over {list(c.shape)}"
            if c.form in ("host", "own"):
                loop = c.roots[0].op.kind == "loop"
                kinds = ("library call", "loop") if host else ("separate kernel", "native loop")
                name = f"step {self.numbers[c]}: {kinds[loop]}"
            group = Group(name, host)
            self.groups.append(group)
            for v in values or c.roots:
                self.inside[i, id(v)] = self.box(v, group)
        used = {id(x) for v in self.program.values for x in v.inputs}
        used |= {id(v) for v in self.program.outputs}
        shown = {id(v) for v in self.program.outputs}
        for v in self.program.leaves:
            if id(v) in used and (v.op is not LITERAL or id(v) in shown):
                self.outside[id(v)] = self.leaf(v)
        for i, values in enumerate(inside):
            for v in values or self.clusters[i].roots:
                for x in v.inputs:
                    self.link(x, i, self.inside[i, id(v)])
        for k, v in enumerate(self.program.outputs):
            box = Box([f"result {k}", aval_text(v.aval)], "result")
            self.boxes.append(box)
            self.link(v, None, box)
        return picture(self.boxes, self.edges, title)

    def box(self, v: Value, group: Group) -> Box:
        params = params_text(v.params)
        place = site_text(v.node) if v.node is not None and v.node.site is not None else ""
        tip = f"%{v.id} {v.op.name} {params}\n{place}".strip()
        if v.op.kind == "view":
            box = Box([f"{v.op.name} {aval_text(v.aval)}"], "view", tip, group)
        else:
            short = f" {params}" if params and len(params) <= 24 else ""
            for x in v.inputs:
                if x.op is LITERAL:
                    short += f" {leaf_text(x).removeprefix('literal ')}"
            box = Box([v.op.name + short, aval_text(v.aval)], "op", tip, group)
        self.boxes.append(box)
        return box

    def leaf(self, v: Value) -> Box:
        box = Box([leaf_text(v).removeprefix("argument "), aval_text(v.aval)], "leaf", f"%{v.id}")
        self.boxes.append(box)
        return box

    def link(self, x: Value, cluster: int | None, to: Box) -> None:
        """Draw the edge from a value: in this kernel, the kernel that stores it, or a leaf."""
        while cluster is None and x.alias is not None:
            x = x.alias
        source = self.inside.get((cluster, id(x))) if cluster is not None else None
        if source is None:
            source = self.stored(x)
        if source is not None and source is not to:
            self.edges.append((source, to))

    def stored(self, x: Value) -> Box | None:
        """Return the box of a value outside of the kernel that reads it."""
        while x.alias is not None:
            x = x.alias
        if id(x) in self.outside:
            return self.outside[id(x)]
        whole = x.parent if x.parent is not None else x
        number = self.roots.get(id(whole))
        if number is None:
            c = find_storing_cluster(whole)
            number = next((i for i, d in enumerate(self.clusters) if d is c), None)
        return self.inside.get((number, id(whole))) if number is not None else None
