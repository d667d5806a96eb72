"""Recorders of strict functions that accept more dtypes than their op."""

from __future__ import annotations

from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.ufunc_rules import atan2
from accnp.primitives.kinds import broadcast_scalar, map_shape

__all__ = ["atan2_any"]


def atan2_any(y: Node, x: Node) -> Node:
    """Record atan2 of real or complex numbers."""
    if y.aval.dtype.kind != "c" or y.aval.dtype != x.aval.dtype:
        return o.atan2(y, x)
    shape = map_shape("atan2", (y.aval, x.aval))
    return atan2(broadcast_scalar(y, shape), broadcast_scalar(x, shape))
