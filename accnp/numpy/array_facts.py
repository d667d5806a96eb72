"""Functions that describe arrays without computing them: rank, shape, size, kind and printing."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.shapes import AxesLike, as_axes
from accnp.api.arguments.values import node_of
from accnp.array_type import Array, ArrayData, ArrayLike
from accnp.errors import api_boundary, hide_frames, warn

iterable = np.iterable
ComplexWarning = np.exceptions.ComplexWarning
get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
save, savez = np.save, np.savez


@api_boundary
def ndim(a: ArrayData) -> int:
    """Return the number of axes of an array.

    Parameters
    ----------
    a : array_like
        Array or number. Lists are accepted with a DeprecationWarning.

    Returns
    -------
    int
        Number of axes, 0 for a number, whatever the dtype.

    Raises
    ------
    TypeError
        If `a` is a string.
    ValueError
        If nested lists differ in length.

    See Also
    --------
    shape : Lengths of the axes.
    size : Number of elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return len(_lengths("ndim", a))


def _lengths(function: str, a: Any) -> tuple[int, ...]:
    """Return the shape of an array, a number, or nested lists (deprecated)."""
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


def shape(a: ArrayData) -> tuple[int, ...]:
    """Return the lengths of the axes of an array.

    Parameters
    ----------
    a : array_like
        Array or number. Lists are accepted with a DeprecationWarning.

    Returns
    -------
    tuple of int
        One length for each axis, whatever the dtype.

    Raises
    ------
    TypeError
        If `a` is a string.
    ValueError
        If nested lists differ in length.

    See Also
    --------
    ndim : Number of axes.
    size : Number of elements.
    reshape : Change the shape.

    Examples
    --------
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
def size(a: ArrayData, axis: AxesLike | None = None) -> int:
    """Return the number of elements of an array, or their number along axes.

    Parameters
    ----------
    a : array_like
        Array or number. Lists are accepted with a DeprecationWarning.
    axis : int or sequence of int, optional
        Axes along which to count. The default, None, counts all elements.

    Returns
    -------
    int
        Product of the lengths of the axes, whatever the dtype.

    Raises
    ------
    TypeError
        If `a` is a string.
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    shape : Lengths of the axes.
    count_nonzero : Number of the elements that are not zero.

    Examples
    --------
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
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the string that `repr` gives for an array.

    Parameters
    ----------
    arr : Array
        Array to show, of any shape.
    {printing}

    Returns
    -------
    str
        Elements and dtype, and the shape if there are no elements.

    Raises
    ------
    AttributeError
        If `arr` is not an array.

    See Also
    --------
    array_str : Elements alone.
    set_printoptions : Options of both.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array_repr(jnp.array([1, 2]))
    'Array([1, 2], dtype=int32)'
    """
    if isinstance(arr, Array):
        options = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
        with np.printoptions(**{k: v for k, v in options.items() if v is not None}):
            return repr(arr)
    if not isinstance(arr, np.ndarray):
        raise AttributeError(f"jnp.array_repr: arr must be an array; got {arr!r}; use repr")
    return np.array_repr(arr)


@api_boundary
def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the string that `str` gives for an array.

    Parameters
    ----------
    a : Array
        Array to show, of any shape.
    {printing}

    Returns
    -------
    str
        Elements, without the dtype.

    Raises
    ------
    TypeError
        If `a` is traced.
    AttributeError
        If `a` is not an array.

    See Also
    --------
    array_repr : Elements and dtype.
    set_printoptions : Options of both.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array_str(jnp.array([1, 2]))
    '[1 2]'
    """
    if not isinstance(a, Array | np.ndarray):
        raise AttributeError(f"jnp.array_str: a must be an array; got {a!r}; use str")
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def isscalar(element: Any) -> bool:
    """Test whether an object is a number or an array without axes.

    Parameters
    ----------
    element : object
        Object to test, of any type.

    Returns
    -------
    bool
        True for Python and NumPy numbers and, unlike in NumPy, for arrays of shape () of any dtype.

    See Also
    --------
    ndim : Number of axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> [jnp.isscalar(2.0), jnp.isscalar(jnp.zeros(1))]
    [True, False]
    """
    return np.isscalar(element) or (hasattr(element, "ndim") and element.ndim == 0)


@api_boundary
def iscomplexobj(x: object) -> bool:
    """Test whether an array or number has a complex dtype.

    Parameters
    ----------
    x : array_like
        Object to test, of any shape.

    Returns
    -------
    bool
        True for a complex dtype, whatever the values.

    Raises
    ------
    TypeError
        If `x` is a string, which NumPy accepts.

    See Also
    --------
    isrealobj : The negation.
    iscomplex : Test of the imaginary part of each element.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    if x is None or isinstance(x, Array):
        return x is not None and x.dtype.kind == "c"
    dtype = getattr(x, "dtype", None)  # types, such as ShapeDtypeStruct, have one
    return (dtype or node_of(x, function="iscomplexobj").aval.dtype).kind == "c"


@api_boundary
def isrealobj(x: object) -> bool:
    """Test whether an array or number has a dtype that is not complex.

    Parameters
    ----------
    x : array_like
        Object to test, of any shape.

    Returns
    -------
    bool
        False for a complex dtype, whatever the values.

    Raises
    ------
    TypeError
        If `x` is a string, which NumPy accepts.

    See Also
    --------
    iscomplexobj : The negation.
    isreal : Test of the imaginary part of each element.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)
