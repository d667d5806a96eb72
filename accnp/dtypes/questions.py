"""Tests and limits of dtypes: `issubdtype`, `isdtype`, `can_cast`, `finfo`, `iinfo`.

Input: dtypes, their names, or scalar classes. Output: the results that `jax.numpy` returns, also
for the dtypes of ml_dtypes and of PRNG keys, which NumPy does not classify.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from accnp.config import config
from accnp.dtypes.names import (
    CATEGORY,
    DType,
    DTypeLike,
    ExtendedDType,
    as_dtype,
    extended,
    float32,
    float64,
)
from accnp.errors import api_boundary


def _scalar_class(x: Any) -> type:
    """Return the class of `x` in NumPy's hierarchy of scalar types."""
    if isinstance(x, type) and issubclass(x, np.generic):
        return CATEGORY.get(_concrete(x), x)
    dtype = as_dtype(x)
    return CATEGORY.get(dtype) or dtype.type


@lru_cache(maxsize=128)
def _concrete(x: type) -> Any:
    """Return the dtype of a concrete scalar class; None for an abstract one."""
    if issubclass(x, extended) or x in _ABSTRACT:
        return None
    return np.dtype(x)


_ABSTRACT = frozenset(
    {np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact}
    | {np.floating, np.complexfloating, np.flexible, np.character}
)


@api_boundary
def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Test whether a dtype is of a kind.

    Parameters
    ----------
    arg1 : dtype_like
        Dtype to classify by its kind.
    arg2 : dtype_like
        Dtype, or abstract type such as `floating`.

    Returns
    -------
    bool
        Whether `arg1` is `arg2`, or of the kind that it stands for.

    Raises
    ------
    TypeError
        If an argument is not a dtype, for example a number.

    See Also
    --------
    isdtype : The test of the array API standard.
    can_cast : Whether a conversion is allowed.

    Notes
    -----
    Unlike in NumPy, `bfloat16` and the other narrow types are known, and so are the dtypes of
    random keys.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    try:
        return _issubdtype(arg1, arg2)
    except TypeError:  # unhashable description of a structured dtype, or an array
        return _issubdtype(*[x if isinstance(x, type) else as_dtype(x) for x in (arg1, arg2)])


@lru_cache(maxsize=1024)
def _issubdtype(a: Any, b: Any) -> bool:
    if isinstance(b, type) and issubclass(b, np.generic) and _concrete(b) is None:
        return issubclass(_scalar_class(a), b)
    if isinstance(a, type) and issubclass(a, np.generic) and _concrete(a) is None:
        return False
    first, second = as_dtype(a), as_dtype(b)
    if isinstance(first, ExtendedDType) or isinstance(second, ExtendedDType):
        return first is second
    if first in CATEGORY or second in CATEGORY:
        return first == second
    return bool(np.issubdtype(first, second))


_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


@api_boundary
def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Test whether a dtype is of a kind, as the array API standard defines it.

    Parameters
    ----------
    dtype : dtype_like
        Dtype to classify by its kind.
    kind : dtype_like, str or tuple of these
        Dtype, or one of 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
        'complex floating' and 'numeric'.

    Returns
    -------
    bool
        Whether `dtype` is of the kind, or of one of several.

    Raises
    ------
    TypeError
        If `kind` is not a string, a dtype or a tuple.
    ValueError
        If the kind is unknown.

    See Also
    --------
    issubdtype : The same with abstract types.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.isdtype(jnp.float32, "real floating")
    True
    """
    dtype_object = as_dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KINDS:
            if issubclass(_scalar_class(dtype_object), _KINDS[one]):
                return True
            continue
        if not (isinstance(one, str | np.dtype | type | ExtendedDType) or hasattr(one, "dtype")):
            raise TypeError(
                f"isdtype: kind must be a dtype, a string or a tuple; got {one!r}; pass for "
                "example 'integral'"
            )
        try:
            same = as_dtype(one) == dtype_object
        except TypeError:
            names = ", ".join(map(repr, _KINDS))
            raise ValueError(
                f"isdtype: unknown kind; got {one!r}; pass a dtype or one of {names}"
            ) from None
        if same:
            return True
    return False


@api_boundary
def can_cast(from_: Any, to: DTypeLike, casting: str = "safe") -> bool:
    """Test whether a conversion between dtypes is allowed.

    Parameters
    ----------
    from_ : dtype_like or array_like
        Dtype, or array whose dtype is converted.
    to : dtype_like
        Dtype to which values would be converted.
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}, optional
        What is allowed: the same dtype ('no', 'equiv'), conversions that keep all values ('safe',
        the default), those within a kind ('same_kind'), or all ('unsafe').

    Returns
    -------
    bool
        Whether the conversion is allowed.

    Raises
    ------
    TypeError
        If `from_` is a Python number, as in NumPy 2, or an argument is not a dtype.
    ValueError
        If the casting is unknown.

    See Also
    --------
    result_type, promote_types : Common dtype of operands.
    astype : Convert an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> [jnp.can_cast("int8", "int32"), jnp.can_cast("int32", "int8")]
    [True, False]
    """
    if isinstance(from_, bool | int | float | complex) and not isinstance(from_, np.generic):
        raise TypeError(f"can_cast: a Python number has no dtype; got {from_!r}; pass a dtype")
    if from_ is None or to is None:
        raise TypeError(f"can_cast: two dtypes are required; got {from_!r} and {to!r}; pass both")
    return bool(np.can_cast(as_dtype(from_), as_dtype(to), casting=casting))  # pyright: ignore


class FloatLimits:
    """The limits of a floating type, as `finfo` returns them.

    Examples
    --------
    >>> import accnp as jnp
    >>> limits = jnp.finfo("float32")
    >>> limits.bits, limits.eps
    (32, 1.1920928955078125e-07)
    """

    bits: int
    dtype: np.dtype
    eps: float
    epsneg: float
    iexp: int
    machep: int
    max: float
    maxexp: int
    min: float
    minexp: int
    negep: int
    nexp: int
    nmant: int
    precision: int
    resolution: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float

    def __init__(self, dtype: DType) -> None:
        info = ml_dtypes.finfo(dtype)
        for name, kind in FloatLimits.__annotations__.items():
            value = getattr(info, name)
            setattr(self, name, float(value) if kind == "float" else value)
        self._texts = repr(info), str(info)

    def __repr__(self) -> str:
        return self._texts[0]

    def __str__(self) -> str:
        return self._texts[1]


_limits = lru_cache(maxsize=64)(FloatLimits)


@api_boundary
def finfo(dtype: DTypeLike) -> FloatLimits:
    """Return the limits of a floating dtype, such as `eps`, `max` and `tiny`.

    Parameters
    ----------
    dtype : dtype_like
        Floating or complex dtype.

    Returns
    -------
    FloatLimits
        Limits as attributes, named as in `numpy.finfo`. Numbers are Python floats and ints, as the
        array API standard requires, where NumPy's are scalars of the dtype.

    Raises
    ------
    ValueError
        If the dtype is not floating.

    See Also
    --------
    iinfo : Limits of an integer dtype.
    spacing, nextafter : Distances of floating-point numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.finfo("float16").max
    65504.0
    """
    return _limits(as_dtype(dtype))


@api_boundary
def iinfo(int_type: DTypeLike) -> Any:
    """Return the limits `min` and `max` of an integer dtype.

    Parameters
    ----------
    int_type : dtype_like
        Integer dtype, also of 2 or 4 bits.

    Returns
    -------
    iinfo
        Limits as attributes, named as in `numpy.iinfo`.

    Raises
    ------
    ValueError
        If the dtype is not an integer dtype.

    See Also
    --------
    finfo : Limits of a floating dtype.

    Examples
    --------
    >>> import accnp as jnp
    >>> int(jnp.iinfo("int4").max)
    7
    """
    try:
        dtype = as_dtype(int_type)
    except TypeError:  # a Python number
        dtype = np.dtype(type(int_type))
    return ml_dtypes.iinfo(dtype) if dtype in CATEGORY else np.iinfo(dtype)  # pyright: ignore


def itemsize_bits(dtype: DTypeLike) -> int:
    """Return the number of bits of one value of a dtype, which is less than 8 for the small types.

    Parameters
    ----------
    dtype : dtype_like
        Type whose size to return.

    Returns
    -------
    int
        Number of bits.

    Raises
    ------
    TypeError
        If the dtype is unknown.
    ValueError
        If the dtype is None.

    See Also
    --------
    numpy.finfo : Limits of a floating dtype.
    numpy.iinfo : Limits of an integer dtype.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.itemsize_bits("int4")
    4
    """
    if dtype is None:
        raise ValueError("dtypes.itemsize_bits: dtype cannot be None; name one")
    dtype_object = as_dtype(dtype)
    if isinstance(dtype_object, ExtendedDType):
        return 8 * dtype_object.itemsize
    if dtype_object in CATEGORY:
        digits = "".join(c for c in dtype_object.name.split("_")[0] if c.isdigit())
        return int(digits)
    return 8 * dtype_object.itemsize


def to_inexact(dtype: DType) -> DType:
    """Return the dtype in which functions such as `sin` compute for values of a dtype.

    Parameters
    ----------
    dtype : dtype
        Type of the values that a function gets.

    Returns
    -------
    dtype
        The same for floats and complex numbers, and float32 for integers and bools. With
        `enable_x64`, 64-bit integers give float64.

    Raises
    ------
    TypeError
        If the argument is not a dtype.

    See Also
    --------
    numpy.result_type : Promoted dtype of several values.

    Examples
    --------
    >>> import accnp as jax, numpy as np
    >>> jax.dtypes.to_inexact(np.dtype("int32"))
    dtype('float32')
    """
    if issubdtype(dtype, np.inexact):
        return dtype
    return float64 if dtype.itemsize == 8 and config.x64 else float32
