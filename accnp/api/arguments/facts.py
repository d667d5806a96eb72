"""What is known about an array without computing it, and how it prints.

In: arrays, numbers. Out: ints, texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.shapes import as_axes
from accnp.api.arguments.values import node_of
from accnp.array import Array
from accnp.errors import api_boundary, hide_frames, warn

iterable = np.iterable
ComplexWarning = np.exceptions.ComplexWarning
get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
save, savez = np.save, np.savez


@api_boundary
def ndim(a: Any) -> int:
    """The number of axes.

    Lists are counted, with a DeprecationWarning; no dtype plays a part.

    Raises:
        TypeError: a is a text.
        ValueError: nested lists differ in length.

    >>> import accnp as jnp
    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return len(_lengths("ndim", a))


def _lengths(function: str, a: Any) -> tuple[int, ...]:
    """The shape of an array, a number, or nested lists, which jax will refuse."""
    if hasattr(a, "shape"):
        return tuple(a.shape)
    if np.isscalar(a):
        return as_node(a, function).aval.shape
    warn(
        f"{function} requires ndarray or scalar arguments, got {type(a)}; lists will be refused in "
        "the future, so convert them with jnp.asarray first",
        DeprecationWarning,
    )
    return np.shape(a)


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the axes.

    Lists have one, with a DeprecationWarning; no dtype plays a part.

    Raises:
        TypeError: a is a text.
        ValueError: nested lists differ in length.

    >>> import accnp as jnp
    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    try:
        return _lengths("shape", a)
    except Exception as error:
        hide_frames(error)
        raise


@api_boundary
def size(a: Any, axis: Any = None) -> int:
    """The number of elements, in all or along axes.

    No dtype plays a part.

    Raises:
        TypeError: a is a text.
        ValueError: an axis is out of bounds.

    >>> import accnp as jnp
    >>> jnp.size(jnp.zeros((2, 3)), axis=1)
    3
    """
    lengths = _lengths("size", a)
    axes = range(len(lengths)) if axis is None else as_axes(axis, len(lengths), "size")
    total = 1
    for d in axes:
        total *= lengths[d]
    return total


@api_boundary
def array_repr(
    arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The text that `repr` gives.

    It shows dtype, and shape where no elements are. Widths and precision are those of
    `set_printoptions`.

    Raises:
        AttributeError: arr is no array.

    >>> import accnp as jnp
    >>> jnp.array_repr(jnp.array([1, 2]))
    'Array([1, 2], dtype=int32)'
    """
    if isinstance(arr, Array):
        given = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
        with np.printoptions(**{k: v for k, v in given.items() if v is not None}):
            return repr(arr)
    if not isinstance(arr, np.ndarray):
        raise AttributeError(f"jnp.array_repr: arr must be an array; got {arr!r}; use repr")
    return np.array_repr(arr)


@api_boundary
def array_str(
    a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The text that `str` gives.

    It shows elements, not the dtype; of any shape.

    Raises:
        TypeError: a is traced.
        AttributeError: a is no array.

    >>> import accnp as jnp
    >>> jnp.array_str(jnp.array([1, 2]))
    '[1 2]'
    """
    if not isinstance(a, Array | np.ndarray):
        raise AttributeError(f"jnp.array_str: a must be an array; got {a!r}; use str")
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def isscalar(element: Any) -> bool:
    """Whether an object is a number or an array of rank 0.

    Of any dtype. Unlike NumPy: arrays of shape () are scalars. It raises no error.

    >>> import accnp as jnp
    >>> [jnp.isscalar(2.0), jnp.isscalar(jnp.zeros(1))]
    [True, False]
    """
    return np.isscalar(element) or (hasattr(element, "ndim") and element.ndim == 0)


@api_boundary
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    Of any shape.

    Raises:
        TypeError: x is a text, which NumPy takes.

    >>> import accnp as jnp
    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    if x is None or isinstance(x, Array):
        return x is not None and x.dtype.kind == "c"
    dtype = getattr(x, "dtype", None)  # types, such as ShapeDtypeStruct, have one
    return (dtype or node_of(x, function="iscomplexobj").aval.dtype).kind == "c"


@api_boundary
def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    Of any shape.

    Raises:
        TypeError: x is a text, which NumPy takes.

    >>> import accnp as jnp
    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)
