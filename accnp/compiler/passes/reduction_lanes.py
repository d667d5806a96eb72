"""Expressions for the lanes of a reduction on a GPU.

A row is reduced in several lanes (`ir.op.Combine.lanes`), each of which has its own partial result.
`initial_value` is the value with which a lane starts, and `combine_lanes` combines a lane with an
element or with another lane. `reduce_rows.py` and `reduce_rows_across.py` use both.
"""

from __future__ import annotations

from accnp.compiler.loops.builder import call
from accnp.compiler.loops.functions import identity
from accnp.compiler.loops.ir import Cast, Const, Expr, number_type
from accnp.compiler.loops.operators import computed
from accnp.compiler.loops.types import F4, DType, part_of
from accnp.ir.op import COMBINES

__all__ = ["combine_lanes", "initial_value"]


def initial_value(name: str, of: DType) -> Expr:
    """Return the value with which a lane starts."""
    if of.kind == "complex":
        return Cast(initial_value(name, part_of(of)), of)
    kind = F4 if of.kind == "half" else of
    start = Const(identity(name, kind), kind)
    return start if kind == of else Cast(start, of)


def combine_lanes(name: str, x: Expr, y: Expr) -> Expr:
    """Return the combination of a lane and an element, or of two lanes."""
    of = number_type(x)
    combine = COMBINES[name]
    if of.kind == "complex":
        return computed(combine.function, x, y)
    if of.kind == "bool":
        return call(combine.of_bools or combine.function, x, y)
    return call(combine.lane_function, x, y)
