"""The lanes of a reduction: from what they start, and how they are joined."""

from __future__ import annotations

from accnp.compiler.frontend.operators import computed
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.functions import identity
from accnp.compiler.loops.ir import Cast, Const, Expr, number_type
from accnp.compiler.loops.types import F4, DType, part_of
from accnp.ir.op import COMBINES

__all__ = ["first_value", "joined_lanes", "lane_count"]


def lane_count(combine: str) -> int:
    """Return the number of lanes of a `Reduction`."""
    return COMBINES[combine].lanes


def first_value(combine: str, of: DType) -> Expr:
    """Return the value from which a lane starts."""
    if of.kind == "complex":
        return Cast(first_value(combine, part_of(of)), of)
    kind = F4 if of.kind == "half" else of
    start = Const(identity(combine, kind), kind)
    return start if kind == of else Cast(start, of)


def joined_lanes(combine: str, x: Expr, y: Expr) -> Expr:
    """Return a lane and an element, or two lanes, joined."""
    of = number_type(x)
    found = COMBINES[combine]
    if of.kind == "complex":
        return computed(found.function, x, y)
    if of.kind == "bool":
        return call(found.of_bools or found.function, x, y)
    return call(found.lane_function, x, y)
