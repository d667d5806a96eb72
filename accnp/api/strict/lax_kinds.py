"""Recorders of ops for fewer dtypes than the op takes, or for more.

In: the name of an op. Out: functions of nodes, for the strict forms in `lax`.
"""

from __future__ import annotations

from collections.abc import Callable

from accnp.api.elements.ufunc_rules import atan2
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.kinds import map_shape, spread

__all__ = ["atan2_any", "without"]


def without(kind: str, op: str) -> Callable[..., Node]:
    """Record an op for dtypes of other kinds; it takes this one for the sake of `jnp` functions."""
    record = getattr(o, op)

    def checked(*xs: Node) -> Node:
        if xs[0].aval.dtype.kind == kind:
            raise TypeError(
                f"lax.{op}: it takes no operands of this dtype; got {xs[0].aval.dtype.name}; "
                f"use jnp.{op}, or convert with astype"
            )
        return record(*xs)

    return checked


def atan2_any(y: Node, x: Node) -> Node:
    """Record atan2 of real or complex numbers."""
    if y.aval.dtype.kind != "c" or y.aval.dtype != x.aval.dtype:
        return o.atan2(y, x)
    shape = map_shape("atan2", (y.aval, x.aval))
    return atan2(spread(y, shape), spread(x, shape))
