"""The lanes of a reduction: from what they start, and how they are joined."""

from __future__ import annotations

from accnp.compiler.frontend.operators import computed
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.functions import identity
from accnp.compiler.loops.ir import Cast, Const, Expr, number_type
from accnp.compiler.loops.types import F4, DType, part_of

__all__ = ["first_value", "joined_lanes", "lane_count"]

_FUNCTIONS = {"sum": "add", "prod": "mul", "max": "join_max", "min": "join_min"}
_OF_BOOLS = {"sum": "or", "prod": "and", "max": "or", "min": "and"}


def lane_count(combine: str) -> int:
    """Return the number of lanes of a `Reduction`."""
    return 64 if combine in ("max", "min") else 32


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
    if of.kind == "complex":
        return computed(_FUNCTIONS[combine], x, y)
    functions = _OF_BOOLS if of.kind == "bool" else _FUNCTIONS
    return call(functions.get(combine, combine), x, y)
