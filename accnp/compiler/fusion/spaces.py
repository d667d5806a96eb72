"""Index spaces: how views send strides, which axes make up a row, and in which form a fold is
done."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import Any

from accnp.ir.kernel import CHUNK, CODES, code_dtype
from accnp.primitives.views import contiguous

__all__ = [
    "NATIVE",
    "SLICE_UPDATES",
    "apply_views",
    "expressible",
    "fold_form",
    "in_kernel",
    "in_turns",
    "index_strides",
    "is_row",
    "is_turned",
    "is_walkable",
    "keeps_order",
    "long_axes",
    "row_axes",
    "strided",
    "strip_views",
]

SHORT_WALK = 16  # elements, up to which an axis is no way along memory
SHORT_RUN = 32  # elements of a run of folded axes, below which the others are folded first
LONG_AXIS = 64  # a last folded axis of this length is folded on its own

NATIVE = frozenset(code_dtype(code) for code in CODES)
# Updates of one slice, which the kernel that computes it may store; passes make the second one.
SLICE_UPDATES = frozenset(["dynamic_update_slice", "update_slice"])


def in_kernel(v: Any) -> bool:
    """Whether generated kernels can compute a value; the rest goes through the op's reference
    function."""
    if v.parent is not None or v.op.kind not in ("map", "iota", "reduce", "view", "assemble"):
        return False
    if v.aval.size == 0:
        return False
    if v.op.kind != "assemble" and any(x.aval.size == 0 for x in v.inputs):
        return False
    if v.op.kind in ("map", "reduce") and v.op.scalar is None and v.op.combine is None:
        return False
    return v.aval.dtype in NATIVE and all([x.aval.dtype in NATIVE for x in v.inputs])


def strip_views(v: Any, through: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """Return the value below the views on top of `v`, and those views, outermost first; `through`
    those as well that are stored for others."""
    chain = []
    while v.op.kind == "view" and (through or not v.stored) and in_kernel(v):
        chain.append(v)
        v = v.inputs[0]
    return v, tuple(chain)


def is_one_value(v: Any) -> bool:
    """Whether it is a single element, repeated, that has no memory of its own: zeros, mostly."""
    base, chain = strip_views(v)
    return bool(chain) and base.aval.size == 1 and v.aval.size > 1


def apply_views(
    chain: tuple[Any, ...], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Send strides through views (outermost first); None if one of them cannot be said by
    strides."""
    for view in reversed(chain):
        found = view.op.strides(shape, strides, offset, **view.params)
        if found is None:
            return None
        shape, strides, offset = found
    return shape, strides, offset


def row_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the trailing axes over which strides repeat (none moves there), or None if there are
    none."""
    k = len(shape)
    while k and (strides[k - 1] == 0 or shape[k - 1] == 1):
        k -= 1
    return tuple(range(k, len(shape))) if k < len(shape) else None


def is_row(shape: Any, strides: Any, rows: tuple[int, ...], base: tuple[int, ...]) -> bool:
    """Whether strides show a base of this shape axis by axis, each element of it once for each
    row."""
    head = shape[: rows[0]]
    want = contiguous(head)
    return [n for n in head if n != 1] == [n for n in base if n != 1] and all(
        n == 1 or s == w for n, s, w in zip(head, strides[: rows[0]], want, strict=True)
    )


def is_turned(view: Any, axes: Iterable[int]) -> bool:
    """Whether several folded axes of a view lie in memory in another order than its own."""
    base, chain = strip_views(view)
    seen = strided(base, chain) if base.aval.ndim else None
    if seen is None:
        return False
    shape, strides, _ = seen
    steps = [abs(strides[d]) for d in sorted(axes) if shape[d] != 1]
    return any(0 < a < b for a, b in pairwise(steps))


def is_walkable(view: Any, axes: Iterable[int]) -> bool:
    """Whether rows of a view can be folded in a walk along its memory: this runs along a kept axis
    (`compiler/specs/walks.py` does it)."""
    base, chain = strip_views(view)
    shape, strides, _ = strided(base, chain)
    kept = [d for d in range(len(shape)) if d not in axes and shape[d] > SHORT_WALK]
    return view.aval.dtype.kind != "c" and any(strides[d] == 1 for d in kept)


def strided(base: Any, chain: tuple[Any, ...]) -> Any:
    return apply_views(chain, base.aval.shape, contiguous(base.aval.shape), 0)


def index_strides(iota: Any, chain: tuple[Any, ...]) -> Any:
    """Send an iota's value, an affine function of its indices, through views; None if it is no
    longer affine."""
    start = tuple(1 if d == iota.params["dimension"] else 0 for d in range(iota.aval.ndim))
    return apply_views(chain, iota.aval.shape, start, 0)


def long_axes(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> set[int]:
    """Axes longer than 1."""
    return {a for a in axes or () if shape[a] != 1}


def keeps_order(view: Any) -> bool:
    """Whether a view only adds or drops axes of length 1."""
    a = [n for n in view.inputs[0].aval.shape if n != 1]
    b = [n for n in view.aval.shape if n != 1]
    return a == b and view.op.name in ("reshape", "squeeze", "broadcast_in_dim")


def expressible(base: Any, chain: tuple[Any, ...]) -> int:
    """Return the index of the outermost view up to which strides over the base suffice."""
    shape, strides, offset = base.aval.shape, contiguous(base.aval.shape), 0
    keep = len(chain) - 1
    for i in range(len(chain) - 1, -1, -1):
        found = chain[i].op.strides(shape, strides, offset, **chain[i].params)
        if found is None:
            break
        shape, strides, offset = found
        keep = i
    return keep


def fold_form(shape: tuple[int, ...], axes: tuple[int, ...]) -> str:
    """Say how a fold is done; depends on the logical shape only, so that its order of summation
    does.

    "strided" is none of the kernel forms: `in_turns` makes two folds of such a one.
    """
    big = [d for d in range(len(shape)) if shape[d] != 1]
    reduced = [d for d in big if d in axes]
    kept = [d for d in big if d not in axes]
    if not reduced:
        return "row"
    if kept and kept[-1] > reduced[0]:
        run = [d for d in big if reduced[0] <= d <= reduced[-1]]
        return "column" if run == reduced and big[-1] in kept else "strided"
    rows, length = prod(shape[d] for d in kept), prod(shape[d] for d in reduced)
    return "split" if not kept or (rows < 16 and length > CHUNK) else "row"


def in_turns(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes to fold first, if a fold over several is done in turns; () if it is not.

    Depends on the logical shape only, since it fixes an order of summation. Folds that kernels of
    rows can hold are left whole. Of axes with kept ones between them the last run comes first, or,
    where that is short, the others. In a long fold over many axes or along columns the last axis
    comes first: rows of a kernel that computes the operand by rows, and whatever the layout is,
    memory is read in its order. What is left is small beside the operand.
    """
    form = fold_form(shape, axes)
    long = [d for d in axes if shape[d] != 1]
    if form == "strided":
        kept = max(d for d in range(max(long)) if shape[d] != 1 and d not in axes)
        tail = tuple([d for d in axes if d > kept])
        short = prod([shape[d] for d in tail]) < SHORT_RUN
        return tuple([d for d in axes if d < kept]) if short else tail
    if form == "row" or len(long) < 2 or prod(shape) <= CHUNK or shape[max(long)] < LONG_AXIS:
        return ()
    return (max(long),)
