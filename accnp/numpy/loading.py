"""Arrays from external data: buffers, strings, iterables, files and other libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import numpy_node
from accnp.api.arguments.values import node_on_gpu
from accnp.array_type import Array, DeviceLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.runtime import buffer
from accnp.sharding.device_placement import new_array

__all__ = ["from_dlpack", "frombuffer", "fromfile", "fromiter", "fromstring", "load"]


@api_boundary
def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Make an array from the bytes of a buffer.

    Parameters
    ----------
    buffer : bytes-like
        Object whose bytes to read.
    dtype : dtype_like, optional
        Dtype of the bytes. The default is float64.
    {count_read}
    offset : int, optional
        Number of bytes to skip. The default is 0.

    Returns
    -------
    Array
        Vector of the elements.

    Raises
    ------
    TypeError
        If `buffer` does not hold bytes.
    ValueError
        If the number of bytes does not fit the dtype.

    See Also
    --------
    fromfile : Read a file.
    from_dlpack : Share the memory of an array of another library.

    Notes
    -----
    {note_32}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.frombuffer(b"ab", dtype=jnp.uint8)
    Array([97, 98], dtype=uint8)
    """
    return _through_numpy(np.frombuffer, buffer, dtype, count=count, offset=offset)


@api_boundary
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Make an array from the numbers in a string.

    Parameters
    ----------
    string : str
        Text in which numbers are separated by `sep`.
    dtype : dtype_like, optional
        Dtype to which the numbers are converted. The default is float.
    {count_read}
    sep : str
        Text between two numbers; a space stands for any white space.

    Returns
    -------
    Array
        Vector of the numbers.

    Raises
    ------
    ValueError
        If a part is not a number.

    See Also
    --------
    loadtxt : Read a text file.
    frombuffer : Read bytes.

    Notes
    -----
    {note_32}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fromstring("1 2", dtype=int, sep=" ")
    Array([1, 2], dtype=int32)
    """
    return _through_numpy(np.fromstring, string, dtype, count=count, sep=sep)


@api_boundary
def fromiter(iterable: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """Make an array from the numbers of an iterable.

    Parameters
    ----------
    iterable : iterable
        Object that yields numbers.
    dtype : dtype_like
        Dtype to which the numbers are converted.
    {count_read}

    Returns
    -------
    Array
        Vector of the numbers.

    Raises
    ------
    TypeError
        If `iterable` cannot be iterated over.
    ValueError
        If an element is not a number.

    See Also
    --------
    array : Make an array from a list.

    Notes
    -----
    {note_32}

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fromiter(range(3), int)
    Array([0, 1, 2], dtype=int32)
    """
    return _through_numpy(np.fromiter, iterable, dtype, count=count)


@api_boundary
def fromfile(
    file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0
) -> Array:
    """Make an array from the numbers in a file.

    Parameters
    ----------
    file : path or file object
        Path or open file to read from.
    dtype : dtype_like, optional
        Dtype to which the numbers are converted. The default is float.
    {count_read}
    sep : str, optional
        Text between two numbers of a text file. The default, '', reads bytes.
    offset : int, optional
        Number of bytes to skip in a file of bytes. The default is 0.

    Returns
    -------
    Array
        Vector of the numbers.

    Raises
    ------
    OSError
        If the file cannot be read.

    See Also
    --------
    load : Read a file that `save` wrote.
    loadtxt : Read a table of numbers.

    Notes
    -----
    {note_32}

    Examples
    --------
    >>> import accnp as jnp, tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(bytes([1, 2])), file.seek(0)
    ...     jnp.numpy.fromfile(file, dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return _through_numpy(np.fromfile, file, dtype, count=count, sep=sep, offset=offset)


@api_boundary
def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an array from a file that `save` or `savez` wrote.

    Parameters
    ----------
    file : path or file object
        Path or open file to read from.
    *args, **kwargs : optional
        Further arguments of `numpy.load`.

    Returns
    -------
    Array or NpzFile
        Array with the shape in the file, or for `savez` an archive of NumPy arrays by name.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file has another format.

    See Also
    --------
    save, savez : Write arrays.
    fromfile : Read numbers without a header.

    Notes
    -----
    {note_32}

    Examples
    --------
    >>> import accnp as jnp, tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     jnp.save(file, jnp.arange(3))
    ...     _ = file.seek(0)
    ...     jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    content = np.load(file, *args, **kwargs)
    if isinstance(content, np.ndarray) and content.dtype == np.dtype("V2"):
        content = content.view(dtypes.bfloat16)  # NumPy's file format has no bfloat16
    return wrap(numpy_node(content, "jnp.load")) if isinstance(content, np.ndarray) else content


def _through_numpy(fn: Any, data: Any, dtype: Any, **kw: Any) -> Array:
    return wrap(numpy_node(fn(data, dtypes.as_dtype(dtype), **kw), f"jnp.{fn.__name__}"))


@api_boundary
def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Make an array from an array of another library by the DLPack protocol.

    Parameters
    ----------
    x : object
        Array with the methods `__dlpack__` and `__dlpack_device__`.
    {device}
    copy : bool, optional
        True copies the memory, and False raises an error if it cannot be shared. The default, None,
        shares it where possible.

    Returns
    -------
    Array
        Array with the same shape and dtype.

    Raises
    ------
    TypeError
        If `x` does not support the protocol.
    ValueError
        If `copy` is False and the memory cannot be shared: it is misaligned or not contiguous, or
        holds 64-bit numbers without `jax_enable_x64`.

    See Also
    --------
    asarray : Convert NumPy arrays.

    Notes
    -----
    Memory on a GPU stays there. After writing to shared memory through the other library, do not
    use results that were recorded before.

    {note_32}

    Examples
    --------
    >>> import accnp as jnp
    >>> import numpy
    >>> jnp.from_dlpack(numpy.array([1, 2], numpy.int32))
    Array([1, 2], dtype=int32)
    """
    if hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) != 1:
        return new_array(node_on_gpu(x, copy), device)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(
            f"jnp.from_dlpack: x must have __dlpack__ and __dlpack_device__; got {x!r}; use asarray"
        )
    value = buffer.from_dlpack(x)
    if copy is False:
        fits = dtypes.canonicalize_dtype(value.dtype) == value.dtype
        if not (fits and value.flags.c_contiguous and value.flags.aligned):
            raise ValueError(
                "jnp.from_dlpack: Specified input which requires a copy, but copy=False; got "
                f"{value.dtype.name}{[*value.shape]} that is misaligned, not contiguous, or of a "
                "dtype that needs jax_enable_x64; pass copy=None"
            )
    return new_array(numpy_node(value, "jnp.from_dlpack", copy is not False), device)
