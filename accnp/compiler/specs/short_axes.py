"""Detection of short axes, which are unrolled, and of maps that permute their rows.

If the inner axis of a kernel is short, it is unrolled and the enclosing loop is vectorized
(`unrolled_rows.py`). A map may also read a few elements of each row at computed indices that are
the same in all rows (`row_gathers.py`). Input: a description of a kernel. Output: predicates, and
the statements concerned.
"""

from __future__ import annotations

from math import prod

from accnp.ir.kernel import KernelSpec, Phase, Statement

__all__ = [
    "CALL_COST", "LANES", "columns_fit_vector", "fits_permute", "gather_loads", "has_short_axis",
    "is_row_gather", "row_invariants",
]  # fmt: skip

# The maximum lengths of an axis that is unrolled, for maps and rows and for columns, and the
# maximum number of statements after unrolling.
LANES = 4
COLUMNS = 16
STATEMENTS = 400
MAX_GATHERED = 16  # the maximum length of a row that is read at the same indices in all rows
# The maximum bytes of a row that one instruction permutes, `row_gathers.has_vector_permute`.
ROW_BYTES = 64
CALL_COST = 20  # cost of a step from which it is assumed to call functions


def has_short_axis(spec: KernelSpec) -> bool:
    """Return whether the inner axis of a kernel is so short that it is unrolled."""
    length = prod({"row": spec.reduced, "map": spec.inner, "column": spec.inner}.get(spec.form, ()))
    most = COLUMNS if spec.form == "column" else LANES
    count = sum(len(p.full) + len(p.reductions) for p in spec.phases)
    if spec.form in ("row", "map") and not spec.outer:
        return False
    return 1 < length <= most and count * length <= STATEMENTS


def row_invariants(spec: KernelSpec) -> list[Statement]:
    """Return the statements of a map that have the same values in all rows."""
    moving: set[str] = set()
    invariants: list[Statement] = []
    outer = range(len(spec.outer))
    for s in spec.phases[0].full if spec.phases else ():
        place = s.access or s.index
        along = place is not None and any(place.strides[d] for d in outer)
        if along or (s.access is not None and s.access.terms) or not moving.isdisjoint(s.args):
            moving.add(s.name)
        else:
            invariants.append(s)
    return invariants


def is_row_gather(spec: KernelSpec) -> bool:
    """Return whether a map reads elements of its rows at a few indices, the same in all rows."""
    if spec.form != "map" or not spec.outer or len(spec.phases) != 1 or len(spec.inner) != 1:
        return False
    length, (phase,) = spec.inner[0], spec.phases
    if not 1 < length <= MAX_GATHERED or len(phase.full) * length > STATEMENTS or spec.row_head:
        return False
    heads = {s.name for s in (*spec.scalars, *row_invariants(spec))}
    gathers = gather_loads(phase)
    return bool(gathers) and all(heads.issuperset(s.args) for s in gathers)


def gather_loads(phase: Phase) -> list[Statement]:
    """Return the loads at computed indices."""
    return [s for s in phase.full if s.access is not None and s.access.terms]


def fits_permute(s: Statement, n: int) -> bool:
    """Return whether one vector can hold the row from which a statement reads n elements, at
    computed indices along the inner axis."""
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


def columns_fit_vector(spec: KernelSpec, d: int) -> bool:
    """Return whether the columns, along axis d, can be the lanes of one short vector.

    This pays if they call functions (means of exp of 3 columns: 770 us without it, 360 us with it)
    and for tiny loops. In other cases the code of LLVM is as fast, or faster if it may change the
    order of a reduction.
    """
    here = (*spec.phases[0].full, *spec.phases[0].row)
    return (
        spec.inner[0] <= LANES
        and all(s.access is None or (s.access.strides[d] in (0, 1) and not s.args) for s in here)
        and not any(s.index is not None or s.dtype.kind == "c" for s in here)
    )
