"""Lowering of a cluster to `KernelSpec`s.

Input: a `Cluster` of `fuse.py`. Output: a KernelSpec for each cell, with statements in sections
(prologue, rows, elements), operands as strided accesses, and coalesced axes. The planner passes the
specs to `compiler/specs`, which makes loop IR of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from accnp.compiler.fusion.fuse import Cluster
from accnp.compiler.fusion.gathers import write_gather
from accnp.compiler.fusion.program import Value
from accnp.compiler.fusion.regions import Cell, cells_of, operand, placed
from accnp.compiler.fusion.spaces import axes_longer_than_one, index_strides, strided, strip_views
from accnp.ir.kernel import Access, KernelSpec, Phase, RowReduction, Statement, dtype_code
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.compiler.fusion.spaces import Strided, Views

__all__ = ["lower", "lower_rows", "scalar_text"]

# A value of at least this cost is kept in memory between the passes over a row, if there is room.
HEAVY = 10


def scalar_text(v: Value) -> str:
    """Return the scalar expression of a map value, with `{0}`, `{1}`... for its operands."""
    text = v.op.scalar
    kind = v.inputs[0].aval.dtype if v.inputs else v.aval.dtype
    if isinstance(text, dict):
        texts = cast("dict[str, Any]", text)
        text = next((t for k, t in texts.items() if k and kind.kind in k), texts.get(""))
    if callable(text):
        count = text.__code__.co_argcount
        dtypes = [x.aval.dtype for x in v.inputs]
        text = text(*(v.params, kind, len(dtypes), dtypes)[:count])
    assert isinstance(text, str), v.op
    return text


def lower(c: Cluster, constants: bool = False) -> list[list[KernelSpec]]:
    """Return the specs of the cells of a cluster; those in one list iterate over the same rows.

    With `constants`, integer literals become constants of the kernel for ops that ask for it.
    """
    cells = cells_of(c.shape, c.cuts)
    return [[ClusterLowering(c, cell, constants).run() for cell in row] for row in cells]


def lower_rows(c: Cluster) -> list[tuple[int, int, list[KernelSpec]]]:
    """Return the same, each list with the index of its first row and the number of its rows along
    the first axis."""
    cells = [row[0] for row in cells_of(c.shape, c.cuts)]
    return [(cell.start[0], cell.shape[0], row) for cell, row in zip(cells, lower(c), strict=True)]


class ClusterLowering:
    """Writes the kernel of one cell of a cluster."""

    def __init__(self, c: Cluster, cell: Cell, constants: bool) -> None:
        self.c = c
        self.constants = constants
        self.shape = c.shape
        self.cell = cell
        self.parts: dict[Any, Any] = {}  # views of assembled values and gathers on operands
        self.reduced: set[int] = axes_longer_than_one(c.shape, c.axes) if c.form != "map" else set()
        self.kept_axes = [d for d, n in enumerate(c.shape) if n != 1 and d not in self.reduced]
        self.accesses: dict[Hashable, Access] = {}
        self.indices: list[Access] = []
        self.scalars: list[Statement] = []
        self.names: dict[
            Hashable, str
        ] = {}  # scalars and row values, which are valid in all passes
        self.levels: dict[int, int] = {}
        self.count = 0
        self.cost = 1
        # Where expensive values are kept between passes, in the row of an output, by the id of the
        # value; and which of these accesses a pass has filled.
        self.cache_accesses: dict[int, Access] = {}
        self.filled_accesses: list[Access] = []

    # --- the whole ---

    def run(self) -> KernelSpec:
        c = self.c
        fulls, rows = self.roots()
        members = [v for v in rows if v.op.kind != "reduce"]
        reductions = self.find_reductions(fulls + rows)
        passes = (
            max(
                [self.level(v) for v in fulls] + [self.level(f.inputs[0]) for f in reductions] + [0]
            )
            + 1
        )
        if not fulls and reductions:
            passes = max(self.level(f.inputs[0]) for f in reductions) + 1
        if not fulls and not reductions:
            passes = 0
        head: list[Statement] = []
        phases: list[Phase] = []
        if len(c.roots) and c.form == "row":
            self.keep_heavy(fulls, reductions, passes)
        for p in range(passes):
            phase = Phase()
            phases.append(phase)
            self.row_section = head if p == 0 else phases[p - 1].row
            self.full_names: dict[Hashable, str] = {}
            self.section, self.phase = phase.full, phase
            for f in reductions:
                if self.level(f.inputs[0]) == p:
                    source = self.emit(f.inputs[0], (), "full")
                    name = self.fresh("r")
                    phase.reductions.append(
                        RowReduction(name, source, f.op.combine or "", f.aval.dtype)
                    )
                    self.names[(id(f), (), "row")] = name
            for v in fulls:
                if self.level(v) == p:
                    phase.stores.append((self.store_access(v), self.emit_root(v)))
        last = phases[-1].row if phases else head
        self.row_section = last
        for v in rows:
            name = self.emit(v, (), "row") if v in members else self.names[(id(v), (), "row")]
            (phases[-1] if phases else Phase()).row_stores.append((self.store_access(v), name))
        self.mark_direct(phases)
        return self.finish(head, phases)

    def roots(self) -> tuple[list[Value], list[Value]]:
        fulls = [v for v in self.c.roots if v.role != "row"]
        return fulls, [v for v in self.c.roots if v.role == "row"]

    def emit_root(self, v: Value) -> str:
        if v.op.kind == "iota":
            seen = index_strides(v, ())
            assert seen is not None
            return self.index(v, seen, "full")
        if v.op.kind == "view":  # a stored view: copy the value below it
            base, chain = strip_views(v.inputs[0])
            return self.emit_base(base, (v, *chain), "full")
        if v.op.kind == "assemble":
            return self.assembled(v, ())
        if v.op.indexing == "gather":
            return write_gather(self, v, (), "full")
        return self.compute(v, (), "full")

    def assembled(self, v: Value, chain: Views) -> str:
        """Emit the operand that an assembled value consists of in this cell."""
        if id(v) not in self.parts:
            self.parts[id(v)] = placed(v) or ()
        p = operand(v, self.parts[id(v)], chain, self.cell.start)
        return self.emit(p.inputs[0], (*chain, p), "full")

    def store_access(self, v: Value) -> Access:
        to, strides, offset = v, contiguous(v.aval.shape), 0
        if v.home is not None:
            to, strides, offset = v.home.update, v.home.strides, v.home.offset
        if v.role == "row":
            strides = self.spread(v.aval.shape, strides)
        return self.access(to, strides, offset, True)

    def find_reductions(self, roots: Sequence[Value]) -> list[Value]:
        """Return the reductions that belong to this kernel, inner ones first."""
        reductions: list[Value] = []
        seen: set[int] = set()

        def visit(v: Value) -> None:
            stack: list[tuple[Value, bool]] = [(v, False)]
            while stack:
                x, done = stack.pop()
                if done:
                    if x.op.kind == "reduce" and x not in reductions:
                        reductions.append(x)
                    continue
                if id(x) in seen or not self.is_computed_here(x):
                    continue
                seen.add(id(x))
                stack.append((x, True))
                for y in x.inputs:
                    stack.append((strip_views(y)[0], False))

        for v in roots:
            visit(v if v.op.kind != "view" else strip_views(v.inputs[0])[0])
        return reductions

    def is_computed_here(self, v: Value) -> bool:
        """Return whether this kernel computes a value instead of loading it."""
        if v.is_leaf or v.parent is not None:
            return False
        if v.role == "scalar" or v.role == "inline" or v.op.kind == "iota":
            return True
        if v.cluster is None or v.role == "alias":
            return False
        return v.cluster.resolve_merged() is self.c and v.role in ("full", "row")

    def level(self, v: Value) -> int:
        """Return the number of passes over a row that must be complete before a value can be
        computed."""
        stack = [v]
        while stack:
            x = stack[-1]
            base = strip_views(x)[0] if x.op.kind == "view" and not x.stored else x
            if id(x) in self.levels:
                stack.pop()
                continue
            if base is not x:
                if id(base) in self.levels:
                    self.levels[id(x)] = self.levels[id(base)]
                    stack.pop()
                else:
                    stack.append(base)
                continue
            if x.op.kind == "view" and x in self.c.roots:
                below = [x.inputs[0]]
            else:
                below = list(x.inputs) if self.is_computed_here(x) else []
            todo = [y for y in below if id(y) not in self.levels]
            if todo:
                stack.extend(todo)
                continue
            top = max([self.levels[id(y)] for y in below], default=0)
            self.levels[id(x)] = top + 1 if x.op.kind == "reduce" and below else top
            stack.pop()
        return self.levels[id(v)]

    def keep_heavy(self, fulls: list[Value], reductions: list[Value], passes: int) -> None:
        """Choose expensive values that several passes need, and for each an output of the same
        dtype whose row can hold it between passes."""
        uses: dict[int, tuple[Value, set[int]]] = {}
        for p in range(passes):
            starts = [f.inputs[0] for f in reductions if self.level(f.inputs[0]) == p]
            starts += [v for v in fulls if self.level(v) == p and v.op.kind != "view"]
            stack = [strip_views(x)[0] for x in starts if not strip_views(x)[1]]
            seen: set[int] = set()
            while stack:
                x = stack.pop()
                if id(x) in seen or not self.is_computed_here(x) or x.role != "full":
                    continue
                seen.add(id(x))
                uses.setdefault(id(x), (x, set()))[1].add(p)
                stack += [y for y in x.inputs if y.op.kind != "view"]
        free = [v for v in fulls if v.role == "full" and self.level(v) == passes - 1]
        for x, when in sorted(uses.values(), key=lambda u: -self.level(u[0])):
            if len(when) < 2 or x.op.cost < HEAVY or x in fulls:
                continue
            room = next((v for v in free if v.aval.dtype == x.aval.dtype), None)
            if room is not None:
                free.remove(room)
                self.cache_accesses[id(x)] = self.store_access(room)

    # --- statements ---

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def emit(self, x: Value, outer: Views, context: str) -> str:
        if x.aval.ndim == 0:
            return self.scalar(x)
        base, chain = strip_views(x)
        return self.emit_base(base, (*outer, *chain), context)

    def emit_base(self, base: Value, chain: Views, context: str) -> str:
        if base.aval.ndim == 0:
            return self.scalar(base)
        if self.is_computed_here(base) and base.role == "row":
            return self.compute(base, (), "row")
        if base.op.kind == "iota" and (axis_strides := index_strides(base, chain)) is not None:
            return self.index(base, axis_strides, context)
        if base.op.kind == "assemble" and self.is_computed_here(base):
            return self.assembled(base, chain)
        if base.op.indexing == "gather" and self.is_computed_here(base):
            return write_gather(self, base, chain, context)
        if self.is_computed_here(base) and (base.role == "inline" or not chain):
            return self.compute(base, chain, context)
        seen = strided(base, chain)
        assert seen is not None
        shape, strides, offset = seen
        if context == "row":
            strides = self.spread(shape, strides)
        return self.load(base, strides, offset, context)

    def compute(self, v: Value, chain: Views, context: str) -> str:
        key = (id(v), tuple(map(id, chain)), context)
        names = self.names if context == "row" else self.full_names
        known_name = names.get(key)
        if known_name is not None:
            return known_name
        access = self.cache_accesses.get(id(v)) if context == "full" and not chain else None
        if access is not None and access in self.filled_accesses:  # by an earlier pass
            name = self.fresh("t")
            self.section.append(Statement(name, v.aval.dtype, access=access))
            names[key] = name
            return name
        # This loop replaces recursion over the operands, because graphs can be deep.
        stack: list[tuple[Value, Views]] = [(v, chain)]
        while stack:
            w, outer = stack[-1]
            k = (id(w), tuple(map(id, outer)), context)
            if k in names:
                stack.pop()
                continue
            missing: list[tuple[Value, Views]] = []
            for x in w.inputs:
                if x.aval.ndim == 0:
                    continue
                base, below = strip_views(x)
                total = (*outer, *below)
                same = (
                    base.aval.ndim
                    and self.is_computed_here(base)
                    and base.op.kind == "map"
                    and id(base) not in self.cache_accesses
                )
                if same and (
                    base.role == "inline"
                    or (base.role == "full" and not total)
                    or (context == "row" and base.role == "row")
                ):
                    use = () if base.role == "row" else total
                    if (id(base), tuple(map(id, use)), context) not in names:
                        missing.append((base, use))
            if missing:
                stack.extend(missing)
                continue
            args = tuple([self.constant(w, x) or self.emit(x, outer, context) for x in w.inputs])
            name = self.fresh("t")
            section = self.row_section if context == "row" else self.section
            nonzero = "" if w.op.nonzero is None else w.op.nonzero(w.inputs[0].aval.dtype)
            text = scalar_text(w)
            section.append(Statement(name, w.aval.dtype, text, args, nonzero=nonzero))
            self.cost += w.op.cost
            names[k] = name
            stack.pop()
        name = names[key]
        if access is not None:
            self.filled_accesses.append(access)
            self.phase.stores.append((access, name))
        return name

    def scalar(self, v: Value) -> str:
        """Emit a value of rank 0 in the prologue, and return its name."""
        known_name = self.names.get(id(v))
        if known_name is not None:
            return known_name
        stack = [v]
        while stack:
            x = stack[-1]
            w, chain = strip_views(x)
            if id(w) in self.names and w.aval.ndim == 0:
                self.names[id(stack.pop())] = self.names[id(w)]
                continue
            if (
                w.aval.ndim
                or w.is_leaf
                or w.op.kind != "map"
                or w.parent is not None
                or w.role != "scalar"
            ):
                self.names[id(x)] = self.emit_single_element(w, chain)
                stack.pop()
                continue
            missing = [x for x in w.inputs if id(x) not in self.names and not self.constant(w, x)]
            if missing:
                stack.extend(missing)
                continue
            args = tuple([self.constant(w, x) or self.names[id(x)] for x in w.inputs])
            name = self.fresh("k")
            self.scalars.append(Statement(name, w.aval.dtype, scalar_text(w), args))
            self.names[id(w)] = name
        return self.names[id(v)]

    def constant(self, v: Value, x: Value) -> str | None:
        """Return the name of an operand that is a constant of the kernel, or None."""
        dtype = x.aval.dtype
        if not (self.constants and v.op.constants and x.is_leaf and dtype.kind in "iu"):
            return None
        if "value" not in x.params:  # not a literal with the same value in each run
            return None
        key = (id(x), "constant")
        if key not in self.names:
            self.names[key] = self.fresh("k")
            text = f"{dtype_code(dtype)}({np.array(x.params['value']).astype(dtype)})"
            self.scalars.append(Statement(self.names[key], dtype, text))
        return self.names[key]

    def emit_single_element(self, v: Value, chain: Views) -> str:
        """Emit one element of a stored value or of an iota, which views with rank 0 select."""
        name = self.fresh("k")
        nowhere = (0,) * len(self.shape)
        place = index_strides(v, chain) if v.op.kind == "iota" else None
        if place is not None:
            acc = Access(v, v.aval.dtype, nowhere, place[2])
            self.indices.append(acc)
            self.scalars.append(Statement(name, v.aval.dtype, index=acc))
        else:
            place = strided(v, chain)
            assert place is not None
            acc = self.access(v, nowhere, place[2], False)
            self.scalars.append(Statement(name, v.aval.dtype, access=acc))
        return name

    def load(
        self,
        v: Value,
        strides: tuple[int, ...],
        offset: int,
        context: str,
        places: tuple[str, ...] = (),
        terms: tuple[tuple[int, int], ...] = (),
    ) -> str:
        """Emit a load; `places` are computed indices, and `terms` their strides and bounds."""
        acc = self.access(v, strides, offset, False, terms)
        key = ("load", id(acc), *places)
        names = self.names if context == "row" else self.full_names
        if key not in names:
            names[key] = self.fresh("t")
            section = self.row_section if context == "row" else self.section
            section.append(Statement(names[key], v.aval.dtype, args=places, access=acc))
        return names[key]

    def index(self, v: Value, seen: Strided, context: str) -> str:
        """Emit an iota that is read through views, which is an affine function of the indices."""
        shape, strides, offset = seen
        if context == "row":
            strides = self.spread(shape, strides)
        offset += self.start(strides)
        key = ("index", strides, offset, v.aval.dtype)
        names = self.names if context == "row" else self.full_names
        if key not in names:
            acc = Access(v, v.aval.dtype, strides, offset)
            self.indices.append(acc)
            names[key] = self.fresh("t")
            section = self.row_section if context == "row" else self.section
            section.append(Statement(names[key], v.aval.dtype, index=acc))
        return names[key]

    def spread(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
        """Convert strides over the axes of a row value to strides over the index space."""
        long = [s for n, s in zip(shape, strides, strict=True) if n != 1]
        out = [0] * len(self.shape)
        for d, s in zip(self.kept_axes, long, strict=True):
            out[d] = s
        return tuple(out)

    def access(
        self,
        v: Value,
        strides: tuple[int, ...],
        offset: int,
        store: bool,
        terms: tuple[tuple[int, int], ...] = (),
    ) -> Access:
        strides = tuple(0 if n == 1 else s for n, s in zip(self.shape, strides, strict=True))
        offset += self.start(strides)
        key = (id(v), strides, offset, store, terms)
        if key not in self.accesses:
            self.accesses[key] = Access(v, v.aval.dtype, strides, offset, store, terms=terms)
        return self.accesses[key]

    def start(self, strides: tuple[int, ...]) -> int:
        """Return the offset of the first index of the cell, in elements."""
        return sum([i * s for i, s in zip(self.cell.start, strides, strict=True)])

    # --- finishing ---

    def mark_direct(self, phases: list[Phase]) -> None:
        """Mark reductions whose source is a plain load, which need no scratch memory if the load is
        contiguous; `compiler/specs` checks the strides."""
        for phase in phases:
            loads = {s.name: s.access for s in phase.full if s.access is not None and not s.args}
            widened = {
                s.name: loads[s.args[0]]
                for s in phase.full
                if s.text == "{0}" and s.dtype == np.float64 and s.args[0] in loads
            }
            for f in phase.reductions:
                f.direct = loads.get(f.source)
                wide = widened.get(f.source)
                if wide is not None and f.combine == "sum" and wide.dtype == np.float32:
                    f.direct = wide

    def finish(self, head: list[Statement], phases: list[Phase]) -> KernelSpec:
        # Omit axes of length 1 in the whole index space, and axes along which each cell has length
        # 1 (as in a stack). Other axes of length 1 in a cell stay, so that cells can share a text.
        cuts, size = self.c.cuts or ((),) * len(self.shape), self.cell.shape
        dims = [d for d, n in enumerate(self.shape) if n != len(cuts[d]) + 1]
        if self.c.form == "map":
            groups = [dims, [], []]
        elif self.c.form == "column":
            first = min(self.reduced)
            groups = [
                [d for d in self.kept_axes if d < first],
                sorted(self.reduced),
                [d for d in self.kept_axes if d > first],
            ]
        else:
            groups = [self.kept_axes, sorted(self.reduced), []]
        everything = list(self.accesses.values()) + self.indices
        sizes: list[list[int]] = []
        columns: list[list[list[int]]] = []  # for each group, each axis: one stride for each access
        for group in groups:
            n_out: list[int] = []
            s_out: list[list[int]] = []
            for d in group:
                mine = [a.strides[d] for a in everything]
                if n_out and all(p == s * size[d] for p, s in zip(s_out[-1], mine, strict=True)):
                    n_out[-1] *= size[d]
                    s_out[-1] = mine
                else:
                    n_out.append(size[d])
                    s_out.append(mine)
            sizes.append(n_out)
            columns.append(s_out)
        if self.c.form == "map" and sizes[0]:
            sizes[2], columns[2] = [sizes[0].pop()], [columns[0].pop()]
        if self.c.form == "column" and len(sizes[2]) > 1:
            # Only the last inner axis is tiled. The others become outer loops.
            sizes[0] += sizes[2][:-1]
            columns[0] += columns[2][:-1]
            sizes[2], columns[2] = sizes[2][-1:], columns[2][-1:]
        if self.c.form == "column":
            _choose_inner_axis(sizes, columns, [a.store for a in everything])
        flat = [axis for group in columns for axis in group]
        for i, a in enumerate(everything):
            a.strides = tuple(axis[i] for axis in flat)
        accesses = list(self.accesses.values())
        for i, a in enumerate(accesses):
            a.number = i
        axes, cost = (tuple(sizes[0]), tuple(sizes[1]), tuple(sizes[2])), self.cost + len(accesses)
        return KernelSpec(self.c.form, *axes, self.scalars, head, phases, accesses, cost=cost)


def _choose_inner_axis(
    sizes: list[list[int]], columns: list[list[Any]], stores: list[bool]
) -> None:
    """Choose the inner axis of a column reduction: the kept axis along which most loads are
    contiguous, or otherwise have the smallest strides."""

    def score(axis: list[int]) -> tuple[int, int]:
        steps = [abs(s) for s, store in zip(axis, stores, strict=True) if not store]
        return sum(s == 1 for s in steps), -sum(steps)

    last = columns[2][0]
    fits = [k for k in range(len(sizes[0])) if sizes[0][k] >= 16]
    best = max(fits, key=lambda k: score(columns[0][k]), default=None)
    if best is not None and score(columns[0][best]) > score(last):
        sizes[0][best], sizes[2][0] = sizes[2][0], sizes[0][best]
        columns[0][best], columns[2][0] = last, columns[0][best]
