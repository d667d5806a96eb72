"""Which axes are short, so that their indices are written out: then the loop around them is the one
that becomes vectors. And which maps take elements of their rows at few places.

In: a description of a kernel. Out: answers, and some of its statements.
"""

from __future__ import annotations

from math import prod

from accnp.ir.kernel import KernelSpec, Phase, Statement

__all__ = [
    "DEAR", "LANES", "fixed_in", "in_lanes", "is_permuted", "is_picked", "is_short", "taken_in",
]  # fmt: skip

# Elements of a folded or an inner axis that are written out, and statements in all.
LANES = 4
COLUMNS = 16
STATEMENTS = 400
PICKED = 16  # elements of a row that are taken at places which do not differ from row to row
ROW_BYTES = 64  # of a row that one instruction permutes, see `picks.permutes_rows`
DEAR = 20  # operations of a step of which some are in a function


def is_short(spec: KernelSpec) -> bool:
    """Whether a kernel's text is to be written along its short axis."""
    length = prod({"row": spec.reduced, "map": spec.inner, "column": spec.inner}.get(spec.form, ()))
    most = COLUMNS if spec.form == "column" else LANES
    count = sum(len(p.full) + len(p.folds) for p in spec.phases)
    if spec.form in ("row", "map") and not spec.outer:
        return False
    return 1 < length <= most and count * length <= STATEMENTS


def fixed_in(spec: KernelSpec) -> list[Statement]:
    """The statements that say the same in every row of a map."""
    moving: set[str] = set()
    found = []
    outer = range(len(spec.outer))
    for s in spec.phases[0].full if spec.phases else ():
        place = s.access or s.index
        along = place is not None and any(place.strides[d] for d in outer)
        if along or (s.access is not None and s.access.terms) or not moving.isdisjoint(s.args):
            moving.add(s.name)
        else:
            found.append(s)
    return found


def is_picked(spec: KernelSpec) -> bool:
    """Whether a map takes elements of its rows at few places, the same in every row."""
    if spec.form != "map" or not spec.outer or len(spec.phases) != 1 or len(spec.inner) != 1:
        return False
    length, (phase,) = spec.inner[0], spec.phases
    if not 1 < length <= PICKED or len(phase.full) * length > STATEMENTS or spec.row_head:
        return False
    heads = {s.name for s in (*spec.scalars, *fixed_in(spec))}
    taken = taken_in(phase)
    return bool(taken) and all(heads.issuperset(s.args) for s in taken)


def taken_in(phase: Phase) -> list[Statement]:
    """The loads at places that are computed."""
    return [s for s in phase.full if s.access is not None and s.access.terms]


def is_permuted(s: Statement, n: int) -> bool:
    """Whether one vector holds the row of which a statement takes n elements, at computed places
    that include the position along the inner axis."""
    if (
        s.access is None
        or any(s.access.strides[-1:])
        or len(s.access.terms) != 1
        or s.dtype.kind not in "fiu"
    ):
        return False
    ((stride, largest),) = s.access.terms
    fits = max(n, largest + 1) * s.dtype.itemsize <= ROW_BYTES
    return fits and s.dtype.itemsize in (4, 8) and stride == 1


def in_lanes(spec: KernelSpec, d: int) -> bool:
    """Whether the columns, along axis d, can be the lanes of one short vector.

    That gains where they call functions (means of exp of 3 columns: 770 -> 360 us) and where a loop
    is tiny; elsewhere LLVM does as well or, where it may change the order of a fold, better.
    """
    here = (*spec.phases[0].full, *spec.phases[0].row)
    return (
        spec.inner[0] <= LANES
        and all(s.access is None or (s.access.strides[d] in (0, 1) and not s.args) for s in here)
        and not any(s.index is not None or s.dtype.kind == "c" for s in here)
    )
