"""Gathers inside of kernels.

A gathered element is a load whose offset contains values of the kernel. Indices are therefore
computed, and elements used, in the same kernel. Input: a gather. Output: its demands for operands
(`Coordinate` views), and its statements, which `lower.py` requests. Parts that depend on an index
but not on the element of its window are computed outside of the innermost loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from accnp.compiler.fusion.spaces import NATIVE, apply_views, strided, strip_views
from accnp.ir.kernel import Access, Statement, dtype_code
from accnp.lazy_imports import imported
from accnp.primitives.kinds import dtype_kind

if TYPE_CHECKING:
    from collections.abc import Hashable

    from accnp.compiler.fusion.clusters import Demand
    from accnp.compiler.fusion.lower import ClusterLowering
    from accnp.compiler.fusion.program import Value
    from accnp.compiler.fusion.spaces import Strided, Views
    from accnp.ir.op_types import Params

__all__ = ["COST", "Coordinate", "can_express_views", "is_gather", "write_gather"]

COST = 12  # cost of one element, without its indices
_STARTS = (np.dtype(np.int32), np.dtype(np.int64))


class Coordinate:
    """A view of one coordinate of the start indices in the index space of the gathered array."""

    __slots__ = (
        "aval", "axes", "demands", "inputs", "k", "name", "op", "params", "stored",
    )  # fmt: skip

    def __init__(self, v: Value, k: int) -> None:
        self.inputs, self.aval, self.k = (v.inputs[1],), v.aval, k
        self.axes = batch_axes(v)
        self.op, self.name = self, "gather"
        self.params: Params = {}
        self.demands: list[Demand] = []
        self.stored = False

    def strides(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Strided:
        """Return the strides of the view, as the rule of a view op does."""
        out = [0] * self.aval.ndim
        for axis, step in zip(self.axes, strides, strict=False):
            out[axis] = step
        return self.aval.shape, tuple(out), offset + self.k * strides[-1]

    @property
    def outside(self) -> bool:
        """Return whether the loops over windows are inside of those over indices."""
        return self.axes == list(range(len(self.axes)))


def batch_axes(v: Value) -> list[int]:
    """Return the axes of a gathered array that belong to the start indices."""
    inside = v.params["dimension_numbers"].offset_dims
    return [d for d in range(v.aval.ndim) if d not in inside]


def gathered_strides(v: Value, steps: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of the gathered array in its operand, without the start indices; `steps`
    are the strides of the operand."""
    dims = v.params["dimension_numbers"]
    moved = [0] * v.aval.ndim
    axes = batch_axes(v)
    gone = (*dims.collapsed_slice_dims, *dims.operand_batching_dims)
    window_axes = [d for d in range(len(steps)) if d not in gone]
    for axis, d in zip(dims.offset_dims, window_axes, strict=True):
        moved[axis] = steps[d]
    for d, axis in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
        moved[axes[axis]] = steps[d]
    return tuple(moved)


def can_express_views(v: Value, chain: Views) -> bool:
    """Return whether strides can express a reader's views of the gathered elements."""
    x = v.inputs[0]
    base, below = strip_views(x)
    seen = strided(base, below) or strided(x, ())
    assert seen is not None
    return apply_views(chain, v.aval.shape, gathered_strides(v, seen[1]), seen[2]) is not None


def is_gather(v: Value) -> bool:
    """Return whether a value is a gather that a kernel can compute."""
    if v.op.indexing != "gather" or v.parent is not None:
        return False
    x, starts = v.inputs
    return (
        bool(v.aval.size and v.aval.ndim and x.aval.size and x.aval.ndim)
        and starts.aval.dtype in _STARTS
        and x.aval.dtype in NATIVE
        and x.aval.dtype.kind != "c"
    )


class _Writer:
    """Writes the statements of one gather into a kernel that is being lowered."""

    def __init__(self, lowering: ClusterLowering, v: Value, context: str) -> None:
        self.l, self.v, self.context = lowering, v, context

    def whole(self, key: Hashable, value: int, dtype: np.dtype) -> str:
        """Return the name of an argument for a number, so that the text does not depend on it."""
        key = (id(self.v), key)
        if key not in self.l.names:
            name = self.l.names[key] = self.l.fresh("k")
            place = Access(self.v, dtype, (0,) * len(self.l.shape), value)
            self.l.indices.append(place)
            self.l.scalars.append(Statement(name, dtype, index=place))
        return self.l.names[key]

    def add(self, dtype: np.dtype, text: str, *args: str) -> str:
        name = self.l.fresh("t")
        section = self.l.row_section if self.context == "row" else self.l.section
        section.append(Statement(name, dtype, text, args))
        return name

    def fill(self) -> str:
        """Return the name of the value for indices out of bounds, which is computed once."""
        dtype = self.v.aval.dtype
        fill = imported("accnp.primitives.index").fill_value_of
        value = np.asarray(fill(dtype, self.v.params["fill_value"])).astype(dtype)
        key = (id(self.v), "fill value")
        if key in self.l.names:
            return self.l.names[key]
        text, args = str(bool(value)), ()
        if dtype.kind != "b":
            real = dtype_kind(dtype) == "f"
            bits = np.dtype(f"i{dtype.itemsize}") if real else dtype
            number = int(value.view(bits)) if real else int(value.astype(np.int64))
            text = f"bitcast_{dtype_code(dtype)}({{0}})" if real else "{0}"
            args = (self.whole("fill", number, bits),)
        name = self.l.names[key] = self.l.fresh("k")
        self.l.scalars.append(Statement(name, dtype, text, args))
        return name

    def write(self, chain: Views) -> str:
        v, low = self.v, self.l
        x, starts = v.inputs
        dims, mode = v.params["dimension_numbers"], v.params["mode"]
        modes = imported("accnp.primitives.index").GatherScatterMode
        base, below = strip_views(x)
        seen = strided(base, below)
        assert seen is not None
        shape, steps, offset = seen
        kind = starts.aval.dtype
        zero = f"{dtype_code(kind)}(0)"
        names: list[str] = []
        terms: list[tuple[int, int]] = []
        tests: list[str] = []
        axes: tuple[int, ...] = dims.start_index_map
        for k, d in enumerate(axes):
            view = low.parts.setdefault((id(v), k), Coordinate(v, k))
            place = low.emit(starts, (*chain, view), self.context)
            last = shape[d] - v.params["slice_sizes"][d]
            top = self.whole(k, last, kind)
            names.append(self.add(kind, f"fmin(fmax({{0}}, {zero}), {{1}})", place, top))
            terms.append((steps[d], last))
            if mode is modes.FILL_OR_DROP:
                tests.append(self.add(np.dtype(bool), f"{{0}} >= {zero}", place))
                tests.append(self.add(np.dtype(bool), "{0} <= {1}", place, top))
        layout = apply_views(chain, v.aval.shape, gathered_strides(v, steps), offset)
        assert layout is not None
        strides = low.spread(layout[0], layout[1]) if self.context == "row" else layout[1]
        element = low.load(base, strides, layout[2], self.context, tuple(names), tuple(terms))
        if not tests:
            return element
        inside = tests[0]
        for test in tests[1:]:
            inside = self.add(np.dtype(bool), "{0} & {1}", inside, test)
        return self.add(v.aval.dtype, "select({0}, {1}, {2})", inside, element, self.fill())


def write_gather(lowering: ClusterLowering, v: Value, chain: Views, context: str) -> str:
    """Write the statements of a gather read through views; return the name of its element."""
    names = lowering.names if context == "row" else lowering.full_names
    key = (id(v), tuple(map(id, chain)), context)
    name = names.get(key)
    if name is None:
        name = names[key] = _Writer(lowering, v, context).write(chain)
    return name
