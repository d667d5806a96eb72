"""Products on GPUs whose lanes overflow or vanish where the whole does not: a block is done again,
with the exponents apart, as `block_prod` of the processor does it.

In: the emitter of a kernel of rows, a pass, one of its folds. Out: lines in its writer: one test,
and a branch that is hardly ever taken, where a warp reads the block once more. So nothing may be
written over it meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accnp.compiler.specs.accumulators import is_product
from accnp.compiler.text.grid_writer import Copy
from accnp.ir.kernel import Fold, Phase, dtype_code

__all__ = ["again", "again_beside", "rereads", "without_stores"]

WARP = 32


def without_stores(phases: list[Phase]) -> list[Phase]:
    """Passes of which none has products and stores."""
    found = []
    for phase in phases:
        if phase.stores and any(map(is_product, phase.folds)):
            first, phase_of_stores = Phase(), Phase()
            first.full, first.folds = phase.full, phase.folds
            phase_of_stores.full, phase_of_stores.stores = phase.full, phase.stores
            phase_of_stores.row, phase_of_stores.row_stores = phase.row, phase.row_stores
            found += [first, phase_of_stores]
        else:
            found.append(phase)
    return found


def rereads(phases: list[Phase]) -> bool:
    """Whether a product is of what an earlier pass has left."""
    loads = [s.access for p in phases if any(map(is_product, p.folds)) for s in p.full]
    return any(a is not None and a.store for a in loads)


def again(
    e: Any,
    phase: Phase,
    f: Fold,
    base: dict[int, str],
    where: tuple[str, str],
    stored: Mapping[int, str],
    width: int = WARP,
    own: frozenset[str] = frozenset(),
) -> None:
    """Do a block again if its product, `name_u` of the first of the `width` lanes of a row, is no
    normal number.

    `where`: from what place elements go by j, and how many there are. `stored`: arrays in which an
    earlier pass has left what is loaded. `own`: values of the row whose copies are meant.
    """
    if not is_product(f):
        return
    w, x, code = e.w, f.name, dtype_code(f.dtype)
    real = f.dtype.kind == "f"
    w.add(f"{x}_odd = odd(shuffle_at({x}_u, {'0' if width == WARP else 'head'}))")
    # All lanes of a warp shuffle, or none.
    with w.block(f"if {x}_odd:" if width == WARP else f"if any_lane({x}_odd):"):
        w.add(f"{x}_m = {code}(1)", f"{x}_e = 0")
        if real:
            w.add(f"{x}_zero = False", f"{x}_small = True")
        w.add("j = lane()" if width == WARP else f"j = lane() & {width - 1}")
        with w.block(f"while j < {where[1]}:"):
            value = _element(e, phase, f, base, where[0], stored, own)
            if real:
                w.add(f"{x}_zero = {x}_zero | ({value} == 0)")
                w.add(f"{x}_small = {x}_small & ({value} * {value} <= 1)")
            w.add(f"{x}_m = {code}({x}_m * mantissa({value}))")
            w.add(f"{x}_e = {x}_e + exponent({value}) + exponent({x}_m)")
            w.add(f"{x}_m = mantissa({x}_m)", f"j = j + {width}")
        w.add(f"d = {width // 2}")
        with w.block("while d > 0:"):
            w.add(f"{x}_m = {code}({x}_m * shuffle_down({x}_m, d))")
            w.add(f"{x}_e = {x}_e + shuffle_down({x}_e, d)")
            if real:
                w.add(f"{x}_zero = {x}_zero | shuffle_down({x}_zero, d)")
                w.add(f"{x}_small = {x}_small & shuffle_down({x}_small, d)")
            w.add("d = d >> 1")
        # No order of numbers of at most 1 leaves more of them than the lanes did.
        known = [f"({x}_u == 0) & ({x}_zero | {x}_small)"] if real else []
        known += [f"({x}_odd == False)"] if width < WARP else []
        keep = f"{x}_u if {' | '.join(known)} else " if known else ""
        w.add(f"{x}_u = {keep}raised({x}_m, {x}_e)")


def _element(
    e: Any,
    phase: Phase,
    f: Fold,
    base: dict[int, str],
    place: str,
    stored: Mapping[int, str],
    own: frozenset[str],
) -> str:
    """The name of an element, once more."""
    copy = Copy(e, "x", {s.name for s in phase.full} | own)
    dims = list(e.of_reduced)
    index: dict[int, str] = {dims[0]: "q"}
    e.w.add(f"q = {place}")
    if len(dims) > 1:
        e.decompose("q", dims, index, "dx_")
    for s in phase.full:
        if s.access is not None and id(s.access) in stored:
            e.w.add(f"{copy.name(s.name)} = {stored[id(s.access)]}q]")
            e.dtypes[copy.name(s.name)] = s.dtype
        else:
            copy.statement(s, base, index)
    return copy.name(f.source)


def again_beside(e: Any, phase: Phase, f: Fold, base: dict[int, str], d: int) -> None:
    """The same for 32 rows that lie side by side, along axis d: each lane of the first warp has the
    product of a block of its row in `name_0`; `base` is where they begin but for that axis."""
    if not is_product(f):
        return
    w, x, size = e.w, f.name, e.size(d)
    own = frozenset(s.name for s in e.spec.row_head)
    with w.block("if warp() == 0:"), w.block(f"if any_lane(odd({x}_0)):"):
        w.add("k = 0")
        with w.block(f"while k < {WARP}:"):
            w.add(f"{x}_u = shuffle_at({x}_0, k)")
            w.add("y = c0 + k", f"y = y if y < {size} else {size} - 1")
            row = e.deepen(base, {d: "y"}, "y")
            for s in e.spec.row_head:
                Copy(e, "x", own).statement(s, row, {})
            again(e, phase, f, row, ("b + j", "end - b"), {}, own=own)
            w.add(f"{x}_u = shuffle_at({x}_u, 0)", f"{x}_0 = {x}_u if lane() == k else {x}_0")
            w.add("k = k + 1")
