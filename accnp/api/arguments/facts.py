"""What is known about an array without computing it, and how it prints.

In: arrays, numbers. Out: ints, texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.shapes import as_axes
from accnp.array import Array

iterable = np.iterable
ComplexWarning = np.exceptions.ComplexWarning
get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
save, savez = np.save, np.savez


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(shape(a))


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the axes."""
    if hasattr(a, "shape"):
        return tuple(a.shape)
    return as_node(a, "shape").aval.shape if np.isscalar(a) else np.shape(a)


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, in all or along axes."""
    lengths = shape(a)
    axes = range(len(lengths)) if axis is None else as_axes(axis, len(lengths), "size")
    total = 1
    for d in axes:
        total *= lengths[d]
    return total


def array_repr(
    arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The text that `repr` gives."""
    return repr(arr) if isinstance(arr, Array) else np.array_repr(arr)


def array_str(
    a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The text that `str` gives."""
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
