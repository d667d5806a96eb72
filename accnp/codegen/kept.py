"""What a pass over a row leaves for later ones: memory of its own, which stays in cache.

In: the emitter of a row kernel of several passes. Out: lines in its writer. Lowering lets such
values wait in the row of a result, where a later pass writes over them. In memory of their own they
cost no way to memory, and the result is written once, with non-temporal stores if it is large.
"""

from __future__ import annotations

from typing import Any

from accnp.ir.kernel import Access, Phase, dtype_code

__all__ = ["keep", "kept_by"]

ROW = 1 << 17  # elements of a row; those of a longer one wait in the result


def keep(e: Any) -> None:
    """Get memory for a row of each result that an earlier pass than the last one writes to."""
    spec = e.spec
    (along,) = e.of_reduced
    *before, last = [{id(a) for a, _ in p.stores} for p in spec.phases]
    for a in spec.accesses if spec.reduced[0] <= ROW else ():
        if id(a) in last and any(id(a) in stores for stores in before):
            name = e.own_rows[id(a)] = f"row{len(e.own_rows)}"
            e.w.add(f"{name} = heap_{dtype_code(a.dtype)}({e.size(along)})")


def kept_by(e: Any, phase: Phase, a: Access | None, name: str) -> str | None:
    """The memory in which a value of a pass lies: loaded through an access, or left there."""
    if a is not None:
        return e.own_rows.get(id(a))
    if phase is e.spec.phases[-1]:
        return None
    return next(
        (e.own_rows[id(a)] for a, n in phase.stores if n == name and id(a) in e.own_rows), None
    )
