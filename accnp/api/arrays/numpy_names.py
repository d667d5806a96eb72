"""Functions of NumPy's main namespace that jax lacks and immutable arrays can have.

In: what NumPy's take, files too. Out: lazy Arrays; facts about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments import scalars
from accnp.api.arrays.creation import asarray
from accnp.api.arrays.joining import vstack
from accnp.api.arrays.manipulation import atleast_1d
from accnp.api.elements.ufuncs import trunc
from accnp.array import Array
from accnp.errors import api_boundary

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
def asanyarray(a: Any, dtype: Any = None, order: str | None = None) -> Array:
    """Return an array of any operand; there are no subclasses that could pass.

    >>> import accnp as jnp
    >>> jnp.asanyarray([1, 2]).shape
    (2,)
    """
    return asarray(a, dtype, order)


@api_boundary
def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    """Return an array of one axis at least; how it lies in memory cannot be seen.

    >>> import accnp as jnp
    >>> jnp.ascontiguousarray(3).shape
    (1,)
    """
    return atleast_1d(asarray(a, dtype))


@api_boundary
def asfortranarray(a: Any, dtype: Any = None) -> Array:
    """Return an array of one axis at least; how it lies in memory cannot be seen.

    >>> import accnp as jnp
    >>> jnp.asfortranarray([[1, 2]]).shape
    (1, 2)
    """
    return atleast_1d(asarray(a, dtype))


def isfortran(a: Any) -> bool:
    """Return False: values are handed out in the order of C.

    >>> import accnp as jnp
    >>> jnp.isfortran(jnp.ones((2, 2)))
    False
    """
    return False


@api_boundary
def asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Array:
    """Return an array whose values are all finite; they are computed to know.

    Raises:
        ValueError: there is an infinite number or nan.

    >>> import accnp as jnp
    >>> jnp.asarray_chkfinite([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    x = asarray(a, dtype, order)
    if x.dtype.kind in "fc" and not np.isfinite(np.asarray(x)).all():
        raise ValueError(
            "asarray_chkfinite: all values must be finite; got inf or nan (a); "
            "mend them first, with jnp.nan_to_num for instance"
        )
    return x


@api_boundary
def require(
    a: Any, dtype: Any = None, requirements: str | Sequence[str] | None = None, *, like: None = None
) -> Array:
    """Return an array; it is aligned and C-contiguous. It cannot be writeable or Fortran's.

    >>> import accnp as jnp
    >>> jnp.require([1, 2], jnp.float32, ["C", "A"])
    Array([1., 2.], dtype=float32)
    """
    for asked in [requirements] if isinstance(requirements, str) else requirements or ():
        if asked.upper()[:1] in ("W", "F"):
            raise ValueError(
                f"require: arrays never change and lie as C has it; got {asked!r} (requirements); "
                "leave it out"
            )
    return asarray(a, dtype)


@api_boundary
def ndenumerate(a: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Return an iterator over (index, value), with values as NumPy's scalars.

    >>> import accnp as jnp
    >>> [(i, int(v)) for i, v in jnp.ndenumerate(jnp.array([[5, 6]]))]
    [((0, 0), 5), ((0, 1), 6)]
    """
    return iter(np.ndenumerate(np.asarray(a)))


@api_boundary
def loadtxt(*args: Any, **kwargs: Any) -> Any:
    """Return an array of the numbers in a text file; takes what `numpy.loadtxt` takes.

    >>> import accnp as jnp
    >>> jnp.loadtxt(["1 2", "3 4"]).shape
    (2, 2)
    """
    return _ours(np.loadtxt(*args, **kwargs))


@api_boundary
def genfromtxt(*args: Any, **kwargs: Any) -> Any:
    """Return an array of the numbers in a text file; takes what `numpy.genfromtxt` takes.

    >>> import accnp as jnp
    >>> jnp.genfromtxt(["1,2", "3,"], delimiter=",").shape
    (2, 2)
    """
    return _ours(np.genfromtxt(*args, **kwargs))


def _ours(read: Any) -> Any:
    """In the default types, as those of numbers that Python has."""
    if isinstance(read, tuple | list):
        return type(read)([_ours(v) for v in read])
    kind = {"f": float, "i": int, "c": complex}.get(read.dtype.kind)
    wide = kind is not None and read.dtype.itemsize == np.dtype(kind).itemsize
    return asarray(read, kind if wide else None)


def errstate(**kwargs: Any) -> np.errstate:
    """Return NumPy's context, which our functions need not: they pass nan and inf in silence.

    Raises:
        NotImplementedError: an error is to be raised; `jax_debug_nans` does that.

    >>> import accnp as jnp
    >>> with jnp.errstate(divide="ignore"):
    ...     jnp.divide(1.0, 0.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    for name, value in kwargs.items():
        if value in ("raise", "call", "log", "print"):
            raise NotImplementedError(
                f"errstate: only 'ignore' and 'warn' are there; got {value!r} ({name}); "
                "use config.update('jax_debug_nans', True)"
            )
    return np.errstate(**kwargs)
