"""Arrays of what others hold: buffers, texts, iterators, files, other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import numpy_node
from accnp.api.arguments.values import node_on_gpu
from accnp.api.arrays.placement import made
from accnp.array import Array, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.runtime import buffer

__all__ = ["from_dlpack", "frombuffer", "fromfile", "fromiter", "fromstring", "load"]


@api_boundary
def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Make an array of the bytes of a buffer.

    One axis. Unlike NumPy: 64-bit dtypes become 32-bit ones (unless jax_enable_x64).

    Raises:
        ValueError: the bytes do not fit the dtype.
        TypeError: buffer is none.

    >>> import accnp as jnp
    >>> jnp.frombuffer(b"ab", dtype=jnp.uint8)
    Array([97, 98], dtype=uint8)
    """
    return _through_numpy(np.frombuffer, buffer, dtype, count=count, offset=offset)


@api_boundary
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Make an array of the numbers in a text.

    One axis; 64-bit dtypes become 32-bit ones (unless jax_enable_x64).

    Raises:
        ValueError: something is no number.

    >>> import accnp as jnp
    >>> jnp.fromstring("1 2", dtype=int, sep=" ")
    Array([1, 2], dtype=int32)
    """
    return _through_numpy(np.fromstring, string, dtype, count=count, sep=sep)


@api_boundary
def fromiter(iterable: Any, dtype: Any, count: int = -1) -> Array:
    """Make an array of the numbers that an iterator yields.

    One axis; 64-bit dtypes become 32-bit ones (unless jax_enable_x64).

    Raises:
        ValueError: something is no number.
        TypeError: nothing to iterate over.

    >>> import accnp as jnp
    >>> jnp.fromiter(range(3), int)
    Array([0, 1, 2], dtype=int32)
    """
    return _through_numpy(np.fromiter, iterable, dtype, count=count)


@api_boundary
def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0
) -> Array:
    """Make an array of one axis of the numbers in a file, as bytes or (`sep`) as text.

    64-bit dtypes become 32-bit ones (unless jax_enable_x64).

    Raises:
        OSError: the file cannot be read.

    >>> import accnp as jnp, tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(bytes([1, 2])), file.seek(0)
    ...     jnp.numpy.fromfile(file, dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return _through_numpy(np.fromfile, file, dtype, count=count, sep=sep, offset=offset)


@api_boundary
def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read what `save` wrote as an array; of `savez`, an archive of NumPy arrays by name.

    Args:
        file: path or open file.
        args, kwargs: as `numpy.load` takes them.

    Shapes stay; 64-bit dtypes become 32-bit ones (unless jax_enable_x64).

    Raises:
        OSError: the file cannot be read.

    >>> import accnp as jnp, tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     jnp.save(file, jnp.arange(3))
    ...     _ = file.seek(0)
    ...     jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if isinstance(found, np.ndarray) and found.dtype == np.dtype("V2"):
        found = found.view(dtypes.bfloat16)  # NumPy's files do not name it
    return wrap(numpy_node(found, "jnp.load")) if isinstance(found, np.ndarray) else found


def _through_numpy(fn: Any, given: Any, dtype: Any, **kw: Any) -> Array:
    return wrap(numpy_node(fn(given, dtypes.as_dtype(dtype), **kw), f"jnp.{fn.__name__}"))


@api_boundary
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Make an array of another library's through the DLPack protocol.

    What lies on a GPU stays there, and its memory is shared unless `copy` is true: who writes to it
    must not use results recorded before.

    Shape and dtype stay; 64-bit ones become 32-bit ones (unless jax_enable_x64).

    Raises:
        TypeError: x does not speak the protocol.
        ValueError: `copy` is False, and the memory cannot be shared: it is misaligned or not
            contiguous, or has 64-bit numbers without jax_enable_x64.

    >>> import accnp as jnp
    >>> import numpy
    >>> jnp.from_dlpack(numpy.array([1, 2], numpy.int32))
    Array([1, 2], dtype=int32)
    """
    if hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) != 1:
        return made(node_on_gpu(x, copy), device)
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
    return made(numpy_node(value, "jnp.from_dlpack", copy is not False), device)
