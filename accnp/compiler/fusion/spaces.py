"""Index spaces: strides under views, rows, and the loop forms of reductions.

Views are chains of view ops on a base value. The functions here compute strides through such
chains, classify how a value is read, and choose the loop form of a reduction from its shape. All
passes of fusion use them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from accnp.ir.kernel import CHUNK, CODES, code_dtype
from accnp.ir.op import Op
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.compiler.fusion.gathers import Coordinate
    from accnp.compiler.fusion.program import Value
    from accnp.compiler.fusion.regions import Placed

    Strided = tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides, offset
    # An element of a chain of views: a value of a view op, or a part of another value that is read
    # with strides, such as the region of an assembled value.
    View = Value | Placed | Coordinate
    Views = tuple[View, ...]  # a chain of views, outermost first

__all__ = [
    "NATIVE", "apply_views", "axes_longer_than_one", "axes_to_reduce_first", "expressible",
    "in_kernel", "index_strides", "is_row", "is_turned", "is_walkable", "keeps_order",
    "reduction_form", "row_axes", "strided", "strip_views",
]  # fmt: skip

SHORT_WALK = 16  # an axis with at most this many elements is too short for a walk along memory
SHORT_RUN = 32  # below this many elements in the last run of reduced axes, the others come first
LONG_AXIS = 64  # a last reduced axis of at least this length is reduced separately

NATIVE = frozenset(code_dtype(code) for code in CODES)


def in_kernel(v: Value) -> bool:
    """Return whether generated kernels can compute a value. If not, its reference function does."""
    if v.parent is not None or v.op.kind not in ("map", "iota", "reduce", "view", "assemble"):
        return False
    if v.aval.size == 0:
        return False
    if v.op.kind != "assemble" and any(x.aval.size == 0 for x in v.inputs):
        return False
    if v.op.kind in ("map", "reduce") and v.op.scalar is None and v.op.combine is None:
        return False
    return v.aval.dtype in NATIVE and all([x.aval.dtype in NATIVE for x in v.inputs])


def strip_views(v: Value, through: bool = False) -> tuple[Value, tuple[Value, ...]]:
    """Return the value below the views on top of `v`, and those views, outermost first.

    Stored views end the chain, unless `through` is true.
    """
    chain: list[Value] = []
    while v.op.kind == "view" and (through or not v.stored) and in_kernel(v):
        chain.append(v)
        v = v.inputs[0]
    return v, tuple(chain)


def is_one_value(v: Value) -> bool:
    """Return whether a value repeats a single element by broadcasting, such as zeros."""
    base, chain = strip_views(v)
    return bool(chain) and base.aval.size == 1 and v.aval.size > 1


def apply_views(
    chain: Views, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Apply views (outermost first) to strides; None if strides cannot express one of them."""
    for view in reversed(chain):
        rule = view.op.strides
        assert rule is not None
        layout = rule(shape, strides, offset, **view.params)
        if layout is None:
            return None
        shape, strides, offset = layout
    return shape, strides, offset


def row_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the trailing axes with stride 0 or length 1, or None if there are none."""
    k = len(shape)
    while k and (strides[k - 1] == 0 or shape[k - 1] == 1):
        k -= 1
    return tuple(range(k, len(shape))) if k < len(shape) else None


def is_row(
    shape: tuple[int, ...], strides: tuple[int, ...], rows: tuple[int, ...], base: tuple[int, ...]
) -> bool:
    """Return whether strides show a base of this shape in order, each element repeated over a
    row."""
    head = shape[: rows[0]]
    expected = contiguous(head)
    return [n for n in head if n != 1] == [n for n in base if n != 1] and all(
        n == 1 or s == w for n, s, w in zip(head, strides[: rows[0]], expected, strict=True)
    )


def is_turned(view: Value, axes: Iterable[int]) -> bool:
    """Return whether the reduced axes of a view are in another order in memory."""
    base, chain = strip_views(view)
    seen = strided(base, chain) if base.aval.ndim else None
    if seen is None:
        return False
    shape, strides, _ = seen
    steps = [abs(strides[d]) for d in sorted(axes) if shape[d] != 1]
    return any(0 < a < b for a, b in pairwise(steps))


def is_walkable(view: Value, axes: Iterable[int]) -> bool:
    """Return whether the rows of a view can be reduced in memory order, because a kept axis is
    contiguous (`compiler/specs/transposed_rows.py`)."""
    base, chain = strip_views(view)
    seen = strided(base, chain)
    assert seen is not None
    shape, strides, _ = seen
    kept_axes = [d for d in range(len(shape)) if d not in axes and shape[d] > SHORT_WALK]
    return view.aval.dtype.kind != "c" and any(strides[d] == 1 for d in kept_axes)


def strided(base: Value, chain: Views) -> Strided | None:
    return apply_views(chain, base.aval.shape, contiguous(base.aval.shape), 0)


def index_strides(iota: Value, chain: Views) -> Strided | None:
    """Apply views to an iota, which is an affine function of its indices; None if the result is not
    affine."""
    start = tuple(1 if d == iota.params["dimension"] else 0 for d in range(iota.aval.ndim))
    return apply_views(chain, iota.aval.shape, start, 0)


def axes_longer_than_one(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> set[int]:
    """Return the axes that are longer than 1."""
    return {a for a in axes or () if shape[a] != 1}


def keeps_order(view: View) -> bool:
    """Return whether a view only adds or drops axes of length 1."""
    a = [n for n in view.inputs[0].aval.shape if n != 1]
    b = [n for n in view.aval.shape if n != 1]
    return a == b and isinstance(view.op, Op) and view.op.keeps_order


def expressible(base: Value, chain: Views) -> int:
    """Return the index of the outermost view up to which strides over the base suffice."""
    shape, strides, offset = base.aval.shape, contiguous(base.aval.shape), 0
    keep = len(chain) - 1
    for i in range(len(chain) - 1, -1, -1):
        rule = chain[i].op.strides
        assert rule is not None
        layout = rule(shape, strides, offset, **chain[i].params)
        if layout is None:
            break
        shape, strides, offset = layout
        keep = i
    return keep


def reduction_form(shape: tuple[int, ...], axes: tuple[int, ...]) -> str:
    """Return the loop form of a reduction. It depends only on the logical shape, because it
    determines the order of summation.

    "strided" is not a form of kernels: `axes_to_reduce_first` splits such a reduction into two.
    """
    big = [d for d in range(len(shape)) if shape[d] != 1]
    reduced = [d for d in big if d in axes]
    kept_axes = [d for d in big if d not in axes]
    if not reduced:
        return "row"
    if kept_axes and kept_axes[-1] > reduced[0]:
        run = [d for d in big if reduced[0] <= d <= reduced[-1]]
        return "column" if run == reduced and big[-1] in kept_axes else "strided"
    rows, length = prod(shape[d] for d in kept_axes), prod(shape[d] for d in reduced)
    return "split" if not kept_axes or (rows < 16 and length > CHUNK) else "row"


def axes_to_reduce_first(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes to reduce first, if a reduction over several axes is split; () otherwise.

    The result depends only on the logical shape, because it determines the order of summation.
    Reductions that row kernels can compute are not split. If there are kept axes between the
    reduced ones, the last run of reduced axes comes first, or the others if this run is short. In a
    long reduction over many axes or along columns, the last axis comes first: a row kernel reduces
    it, which may also compute the operand, and reads memory in order for any layout. The remaining
    reduction is small compared with the operand.
    """
    form = reduction_form(shape, axes)
    long = [d for d in axes if shape[d] != 1]
    if form == "strided":
        last_kept = max(d for d in range(max(long)) if shape[d] != 1 and d not in axes)
        tail = tuple([d for d in axes if d > last_kept])
        short = prod([shape[d] for d in tail]) < SHORT_RUN
        return tuple([d for d in axes if d < last_kept]) if short else tail
    if form == "row" or len(long) < 2 or prod(shape) <= CHUNK or shape[max(long)] < LONG_AXIS:
        return ()
    return (max(long),)
