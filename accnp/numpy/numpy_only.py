"""Functions of NumPy's main namespace that JAX lacks and that immutable arrays can support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from accnp.array_type import Array
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.numpy import scalar_types as scalars
from accnp.numpy.creation import asarray
from accnp.numpy.joining import vstack
from accnp.numpy.manipulation import atleast_1d
from accnp.numpy.ufuncs import trunc

__all__ = [
    "asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "byte", "errstate",
    "fix", "genfromtxt", "half", "intc", "intp", "isfortran", "loadtxt", "long", "longlong",
    "ndenumerate", "require", "row_stack", "short", "ubyte", "uintc", "uintp", "ulong",
    "ulonglong", "ushort",
]  # fmt: skip

byte, ubyte, short, ushort = scalars.int8, scalars.uint8, scalars.int16, scalars.uint16
intc, uintc, half = scalars.int32, scalars.uint32, scalars.float16
intp, long, uintp, ulong = scalars.int_, scalars.int_, scalars.uint, scalars.uint
longlong, ulonglong = scalars.int64, scalars.uint64
row_stack, fix = vstack, trunc


@api_boundary
def asanyarray(a: Any, dtype: DTypeLike | None = None, order: str | None = None) -> Array:
    """Convert a value to an array; the same as `asarray`, since `Array` has no subclasses.

    Parameters
    ----------
    a : array_like
        Value to convert. An array is returned as it is.
    {dtype_converted}
    {order_kc}

    Returns
    -------
    Array
        Array with the shape of the value.

    Raises
    ------
    {raises_values}

    See Also
    --------
    asarray : The same with more options.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.asanyarray([1, 2]).shape
    (2,)
    """
    return asarray(a, dtype, order)


@api_boundary
def ascontiguousarray(a: Any, dtype: DTypeLike | None = None) -> Array:
    """Convert a value to an array with at least one axis.

    Parameters
    ----------
    a : array_like
        Value to convert, of any shape.
    {dtype_converted}

    Returns
    -------
    Array
        Array with at least one axis. Its memory layout cannot be seen.

    Raises
    ------
    {raises_values}

    See Also
    --------
    asarray : The same for numbers without axes.
    atleast_1d : Add an axis to numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ascontiguousarray(3).shape
    (1,)
    """
    return atleast_1d(asarray(a, dtype))


@api_boundary
def asfortranarray(a: Any, dtype: DTypeLike | None = None) -> Array:
    """Convert a value to an array with at least one axis, for compatibility with NumPy.

    Parameters
    ----------
    a : array_like
        Value to convert, of any shape.
    {dtype_converted}

    Returns
    -------
    Array
        Array with at least one axis. Its memory layout cannot be seen; NumPy makes it column-major.

    Raises
    ------
    {raises_values}

    See Also
    --------
    ascontiguousarray, asarray : Other conversions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.asfortranarray([[1, 2]]).shape
    (1, 2)
    """
    return atleast_1d(asarray(a, dtype))


def isfortran(a: Any) -> bool:
    """Test for column-major order, which no array has.

    Parameters
    ----------
    a : array_like
        Array to test, of any shape.

    Returns
    -------
    bool
        Always False: values are passed to other libraries in row-major order.

    See Also
    --------
    asfortranarray : Conversion for compatibility with NumPy.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.isfortran(jnp.ones((2, 2)))
    False
    """
    return False


@api_boundary
def asarray_chkfinite(a: Any, dtype: DTypeLike | None = None, order: str | None = None) -> Array:
    """Convert a value to an array and check that all elements are finite.

    Parameters
    ----------
    a : array_like
        Value to convert. Its elements are computed to check them.
    {dtype_converted}
    {order_kc}

    Returns
    -------
    Array
        Array with the shape of the value.

    Raises
    ------
    ValueError
        If an element is infinite or nan.
    TypeError
        If a value is not a number, or nested lists differ in length.

    See Also
    --------
    asarray : The same without the check.
    isfinite : Test of each element.
    nan_to_num : Replace nan and infinities.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.asarray_chkfinite([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    x = asarray(a, dtype, order)
    if x.dtype.kind in "fc" and not np.isfinite(np.asarray(x)).all():
        raise ValueError(
            "asarray_chkfinite: all values must be finite; got inf or nan (a); "
            "replace them first, for instance with jnp.nan_to_num"
        )
    return x


@api_boundary
def require(
    a: Any,
    dtype: DTypeLike | None = None,
    requirements: str | Sequence[str] | None = None,
    *,
    like: None = None,
) -> Array:
    """Convert a value to an array that meets requirements on its memory.

    Parameters
    ----------
    a : array_like
        Value to convert, of any shape.
    {dtype_converted}
    requirements : str or sequence of str, optional
        Requirements in NumPy's notation. 'C' (row-major), 'A' (aligned), 'O' (owns its memory) and
        'E' are met by all arrays.
    like : None, optional
        Not used; present for compatibility with NumPy.

    Returns
    -------
    Array
        Array with the shape of the value.

    Raises
    ------
    ValueError
        If a requirement is 'W' (writeable) or 'F' (column-major), which no array meets.
    TypeError
        If a value is not a number, or nested lists differ in length.

    See Also
    --------
    asarray : Conversion without requirements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.require([1, 2], jnp.float32, ["C", "A"])
    Array([1., 2.], dtype=float32)
    """
    for requirement in [requirements] if isinstance(requirements, str) else requirements or ():
        if requirement.upper()[:1] in ("W", "F"):
            raise ValueError(
                f"require: arrays are immutable and row-major; got {requirement!r} (requirements); "
                "leave it out"
            )
    return asarray(a, dtype)


@api_boundary
def ndenumerate(a: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Iterate over the indices and elements of an array.

    Parameters
    ----------
    a : array_like
        Array of any shape, whose values are computed.

    Returns
    -------
    iterator of (tuple of int, scalar)
        Indices in row-major order, and elements as NumPy scalars.

    Raises
    ------
    TracerArrayConversionError
        If the array is traced.

    See Also
    --------
    ndindex : Indices alone.

    Examples
    --------
    >>> import accnp as jnp
    >>> [(i, int(v)) for i, v in jnp.ndenumerate(jnp.array([[5, 6]]))]
    [((0, 0), 5), ((0, 1), 6)]
    """
    return iter(np.ndenumerate(np.asarray(a)))


@api_boundary
def loadtxt(*args: Any, **kwargs: Any) -> Any:
    """Read numbers from a text file with a fixed number of columns.

    Parameters
    ----------
    *args, **kwargs : optional
        File and options, as `numpy.loadtxt` takes them.

    Returns
    -------
    Array
        Numbers, one row for each line, with the default float or integer dtype.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If a field is not a number, or lines differ in length.

    See Also
    --------
    genfromtxt : Read files with missing values.
    load : Read a file that `save` wrote.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.loadtxt(["1 2", "3 4"]).shape
    (2, 2)
    """
    return _to_default_types(np.loadtxt(*args, **kwargs))


@api_boundary
def genfromtxt(*args: Any, **kwargs: Any) -> Any:
    """Read numbers from a text file, in which values may be missing.

    Parameters
    ----------
    *args, **kwargs : optional
        File and options, as `numpy.genfromtxt` takes them.

    Returns
    -------
    Array
        Numbers, one row for each line, with the default float or integer dtype. Missing values are
        nan.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If lines differ in length.

    See Also
    --------
    loadtxt : Read files without missing values.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.genfromtxt(["1,2", "3,"], delimiter=",").shape
    (2, 2)
    """
    return _to_default_types(np.genfromtxt(*args, **kwargs))


def _to_default_types(read: Any) -> Any:
    """Convert 64-bit NumPy arrays to the default dtypes; keep other dtypes."""
    if isinstance(read, tuple | list):
        return type(read)([_to_default_types(v) for v in read])
    kind = {"f": float, "i": int, "c": complex}.get(read.dtype.kind)
    wide = kind is not None and read.dtype.itemsize == np.dtype(kind).itemsize
    return asarray(read, kind if wide else None)


def errstate(**kwargs: Any) -> np.errstate:
    """Return NumPy's context manager for floating-point errors.

    Parameters
    ----------
    **kwargs : {'ignore', 'warn'}, optional
        Treatment of the errors `all`, `divide`, `over`, `under` and `invalid` in NumPy's functions.

    Returns
    -------
    numpy.errstate
        Context manager. It has no effect on functions of this package, which give nan and inf
        without a warning.

    Raises
    ------
    NotImplementedError
        If an error is to be raised, logged or passed to a function; `jax_debug_nans` raises errors
        for nan.

    See Also
    --------
    nan_to_num : Replace nan and infinities.

    Examples
    --------
    >>> import accnp as jnp
    >>> with jnp.errstate(divide="ignore"):
    ...     jnp.divide(1.0, 0.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    for name, value in kwargs.items():
        if value in ("raise", "call", "log", "print"):
            raise NotImplementedError(
                f"errstate: only 'ignore' and 'warn' are supported; got {value!r} ({name}); "
                "use config.update('jax_debug_nans', True)"
            )
    return np.errstate(**kwargs)
