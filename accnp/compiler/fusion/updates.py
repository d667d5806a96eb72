"""Rewriting of updates at known indices to forms that fusion supports.

Input: the values of a program in order. Output: the same values, in which

- an update that combines (`x.at[1:-1].add(f(y))`) is a plain update with values that the kernel of
  `f` computes from the old elements;
- a scatter whose windows form a regular grid is an update of this region, without indices;
- updates of an array that is not used otherwise are one assembled value, so that a kernel writes
  each of its elements once.

`in_place.py` then finds the kernels that can store into the updated arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accnp.compiler.fusion.clusters import MAX_CELLS, MAX_STATEMENTS
from accnp.compiler.fusion.costs import AGAIN, work
from accnp.compiler.fusion.regions import count_cells, cuts_of, placed
from accnp.compiler.fusion.spaces import NATIVE, in_kernel, is_one_value, strip_views
from accnp.compiler.fusion.update_regions import is_update, region_of
from accnp.config import config
from accnp.ir.aval import make_aval
from accnp.ir.op import COMBINES, OPS
from accnp.primitives.updates import OVERLAY, UPDATE, Region

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import Value
    from accnp.ir.op_types import Params

__all__ = ["rewrite_updates"]

# Updates of one assembled value: enough for the elements of a 3x3 matrix. Each may need its own
# loop nest: with 16 of them, a chain of 100 elements took 220 ms longer to compile.
MAX_UPDATES = 9


def rewrite_updates(
    values: Sequence[Value], outputs: Sequence[Value], new: Callable[..., Value]
) -> tuple[list[Value], bool]:
    """Return the rewritten values, and whether anything was changed; `new` makes a value."""
    if len(values) > config.fusion_limit:  # operations are not fused then
        return list(values), False
    rewriting = _Rewriting(values, outputs, new)
    for v in values:
        if is_update(v) and v.aval.ndim and v.inputs[0].aval.dtype in NATIVE:
            rewriting.update(v)
        rewriting.values.append(v)
    return rewriting.values, rewriting.changed


class _Rewriting:
    def __init__(
        self, values: Sequence[Value], outputs: Sequence[Value], new: Callable[..., Value]
    ) -> None:
        self.new = new
        self.values: list[Value] = []
        self.changed = False
        self.uses = Counter([id(x) for v in values if v.parent is None for x in v.inputs])
        self.uses.update([id(v) for v in outputs])

    def apply_op(self, name: str, params: Params, x: Value, *others: Value) -> Value:
        """Return the value of another op, which comes before the current update."""
        op = OPS[name]
        aval = op.infer(x.aval, *[y.aval for y in others], **params)
        self.values.append(self.new(op, params, (x, *others), aval, self.node))
        return self.values[-1]

    def reshaped(self, x: Value, shape: tuple[int, ...]) -> Value:
        if x.aval.shape == shape:
            return x
        return self.apply_op("reshape", {"new_sizes": shape, "dimensions": None}, x)

    def update(self, v: Value) -> None:
        region, self.node = region_of(v), v.node
        if region is None:
            return
        x, u = v.inputs[0], v.inputs[1 if v.op.indexing == "update" else 2]
        count = self.count_new(x)
        if v.op.combine is not None:
            if count is not None and work(x) > AGAIN:
                count = None  # its elements are read twice, so they are stored
            known = region.in_order and (count is not None or not strip_views(x)[1])
            if not (known and _is_computed(u) and v.aval.dtype.kind != "b"):
                return
            u = self.apply_op(
                COMBINES[v.op.combine].op, {}, self.window(x, region, u.aval.shape), u
            )
        if v.op.indexing == "scatter":
            v.op, v.params, v.inputs = UPDATE, {"region": region}, (x, u)
            self.changed = True
        if count is not None and region.in_order and all(step in (0, 1) for _, step in region.axes):
            self.overlay(v, region, count)

    def window(self, x: Value, region: Region, shape: tuple[int, ...]) -> Value:
        """Return the elements of an array that an update of this shape replaces."""
        sizes = region.sizes(shape, x.aval.ndim)
        steps = [1] * x.aval.ndim
        for d, step in region.axes:
            if d >= 0:
                steps[d] = step
        ends = [i + (n - 1) * s for i, n, s in zip(region.starts, sizes, steps, strict=True)]
        first = tuple(map(min, region.starts, ends))
        last = map(max, region.starts, ends)
        strides = tuple([abs(s) for s in steps]) if any(abs(s) != 1 for s in steps) else None
        params = {
            "start_indices": first,
            "limit_indices": tuple([i + 1 for i in last]),
            "strides": strides,
        }
        part = self.apply_op("slice", params, x)
        turned = tuple([d for d, s in enumerate(steps) if s < 0])
        if turned:
            part = self.apply_op("rev", {"dimensions": turned}, part)
        return self.reshaped(part, shape)

    def overlay(self, v: Value, region: Region, count: int) -> None:
        """Replace an update of a new array by an assembled value, merged with earlier updates."""
        x, u = v.inputs[:2]
        u = self.reshaped(u, region.sizes(u.aval.shape, x.aval.ndim))
        inputs, starts = (x,), ()
        if x.op is OVERLAY:
            inputs, starts = x.inputs, x.params["starts"]
            if len(starts) >= MAX_UPDATES:
                return
        params = {"starts": (*starts, region.starts)}
        aval = make_aval(v.aval.shape, v.aval.dtype, v.aval.weak_type)
        whole = self.new(OVERLAY, params, (*inputs, u), aval, v.node)
        parts = placed(whole)
        cuts = (
            None if parts is None or not in_kernel(whole) else cuts_of(whole, parts, (), aval.shape)
        )
        if cuts is None or count_cells(cuts) > MAX_CELLS:
            return
        if count_cells(cuts) * (count + self.count_inside(u)) > MAX_STATEMENTS // 2:
            return
        v.op, v.params, v.inputs = OVERLAY, params, whole.inputs
        self.changed = True

    def count_new(self, x: Value) -> int | None:
        """Return the number of operations that compute an array, if a kernel can compute it and
        only the update uses it; None otherwise."""
        if x.is_leaf or self.uses[id(x)] != 1 or x.aval.ndim == 0:
            return None
        if x.op.kind == "view" and not is_one_value(x):
            return None
        count, stack = 0, [x]
        while stack:
            y = stack.pop()
            if y.is_leaf or y.aval.ndim == 0 or y.op.kind == "iota":
                continue
            if not in_kernel(y) or (self.uses[id(y)] != 1 and y.op.kind != "view"):
                return None
            if y.op.kind not in ("map", "view") and y.op is not OVERLAY:
                return None
            count += y.op.kind == "map"
            stack += y.inputs
        return count

    def count_inside(self, u: Value) -> int:
        """Return the number of operations that a kernel may compute for the values of an update."""
        count, stack = 0, [u]
        seen: set[int] = set()
        while stack and count <= MAX_STATEMENTS:
            y = stack.pop()
            if id(y) in seen or y.is_leaf or not in_kernel(y) or y.op.kind == "reduce":
                continue
            seen.add(id(y))
            count += y.op.kind == "map"
            stack += y.inputs
        return count


def _is_computed(u: Value) -> bool:
    """Return whether an elementwise operation computes the values of an update."""
    base = strip_views(u)[0]
    return base.op.kind == "map" and in_kernel(base)
