"""Conversion of static arguments (shapes, axes and counts) to Python ints.

A traced value raises an error that names the function and the argument that it depends on.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from accnp.array_type import Array, concrete_value, is_traced
from accnp.engine import array_of
from accnp.errors import AxisError, IncompatibleShapesError
from accnp.ir.node import Node

__all__ = [
    "AxesLike", "as_axes", "as_axis", "as_int", "as_shape", "as_size", "as_static",
    "concrete",
]  # fmt: skip

# Types accepted for one axis or several axes.
AxesLike = SupportsIndex | Sequence[SupportsIndex]


def concrete(node: Node) -> np.ndarray | None:
    """Return the value of a node, or None if it is traced."""
    return None if is_traced(node) else array_of(node)


def as_static(x: Any, function: str, kind: str = "static") -> Any:
    """Return the value of an argument that must be static; Arrays become NumPy arrays."""
    if type(x) is Array:
        return concrete_value(x._node, kind, function)
    return x


def as_int(x: Any, function: str, name: str = "argument", kind: str = "static") -> int:
    """Return a static integer argument as an int."""
    if type(x) is int:
        return x
    value = as_static(x, function, kind)
    try:
        return operator.index(value)
    except TypeError:
        what = f"{name} must be an integer; got {value!r} of type {type(x).__name__}"
        if kind in ("shape", "size"):
            what += ": Shapes must be 1D sequences of concrete values of integer type"
        raise TypeError(f"{function}: {what}; convert it with int()") from None


def as_size(x: Any, function: str, name: str = "size") -> int:
    """Return a static number of elements as an int of 0 or more."""
    n = as_int(x, function, name, "size")
    if n < 0:
        raise IncompatibleShapesError(
            f"{function}: {name} cannot be negative; got {n}; pass 0 or more"
        )
    return n


def as_shape(shape: Any, function: str) -> tuple[int, ...]:
    """Return a shape argument as a tuple of non-negative ints; one int means one axis."""
    out = as_sizes(shape, function)
    for n in out:
        if n < 0:
            raise IncompatibleShapesError(
                f"{function}: sizes cannot be negative; got shape {out}; pass non-negative integers"
            )
    return out


def as_sizes(shape: Any, function: str) -> tuple[int, ...]:
    """Like `as_shape`, but allow negative sizes such as -1."""
    if type(shape) is int:
        return (shape,)
    if type(shape) is Array:
        shape = as_static(shape, function, "shape").tolist()
    elif isinstance(shape, np.ndarray):
        shape = shape.tolist()
    if not isinstance(shape, Sequence):
        shape = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if isinstance(shape, str):
        raise TypeError(
            f"{function}: Shapes must be 1D sequences of concrete values of integer type, got "
            f"{shape!r}; pass integers in a tuple"
        )
    try:
        return tuple([as_int(n, function, "each size of a shape", "shape") for n in shape])
    except TypeError as error:
        if type(error) is not TypeError:  # a traced size
            raise
        raise TypeError(
            f"{function}: Shapes must be 1D sequences of concrete values of integer type, got "
            f"{shape}; pass integers in a tuple"
        ) from None


def as_axis(axis: Any, rank: int, function: str) -> int:
    """Return an axis argument as an int in [0, rank)."""
    a = as_int(axis, function, "axis", "axis")
    if not -rank <= a < rank:
        raise AxisError(
            f"{function}: axis {a} is out of bounds for array of dimension {rank}; "
            f"pass an axis from {-rank} to {rank - 1}"
        )
    return a + rank if a < 0 else a


def as_axes(axes: Any, rank: int, function: str) -> tuple[int, ...]:
    """Return an argument of one or several axes as a tuple of distinct ints in [0, rank)."""
    if type(axes) is Array or isinstance(axes, np.ndarray):
        axes = as_static(axes, function, "axis").tolist()
    if not isinstance(axes, Sequence):
        axes = (axes,)
    out = tuple([as_axis(a, rank, function) for a in axes])
    if len(set(out)) != len(out):
        raise ValueError(f"{function}: duplicate value in 'axis': {tuple(axes)}; name each once")
    return out
