"""Names of dtypes, and the default of 32 bits.

Input: anything that names a dtype: a dtype, a string, a Python or NumPy type, or an array. Output:
a `numpy.dtype`, or an `ExtendedDType` for PRNG keys. `canonicalize_dtype` replaces 64-bit dtypes by
32-bit ones unless `enable_x64` is set.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import ml_dtypes
import numpy as np

from accnp.config import config
from accnp.errors import KeyArrayError, UnsupportedDtypeError, warn
from accnp.lazy_imports import imported

DType = Any  # np.dtype or ExtendedDType

if TYPE_CHECKING:

    class SupportsDType(Protocol):
        """An object with a dtype, such as an array or the result of `finfo`."""

        @property
        def dtype(self) -> Any: ...

    DTypeLike = str | type[Any] | np.dtype | SupportsDType
else:
    DTypeLike = str | type[Any] | np.dtype


class extended(np.generic):
    """Abstract class of dtypes that NumPy does not have, for `issubdtype`.

    Parameters
    ----------
    *args, **kwargs : object
        Not used, since there are no scalars of abstract dtypes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.extended)
    True
    """


class prng_key(extended):
    """Abstract class of the dtypes of PRNG keys, for `issubdtype`.

    Parameters
    ----------
    *args, **kwargs : object
        Not used, since there are no scalars of abstract dtypes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
    True
    """


class ExtendedDType:
    """Dtype of PRNG keys, such as `key<fry>`; there is one object for each implementation.

    Parameters
    ----------
    impl : str
        Short name of the generator, such as "fry".
    base_shape : tuple of int
        Shape of the raw uint32 key.

    Examples
    --------
    >>> import accnp as jnp
    >>> dtype = jnp.random.key(0).dtype
    >>> dtype.impl, dtype.base_shape
    ('fry', (2,))
    """

    __slots__ = ("base_dtype", "base_shape", "impl", "name")
    kind = "V"
    type = prng_key

    def __init__(self, impl: str, base_shape: tuple[int, ...]) -> None:
        self.impl = impl
        self.name = f"key<{impl}>"
        self.base_shape = base_shape
        self.base_dtype = np.dtype(np.uint32)

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return 4 * int(np.prod(self.base_shape))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (key_dtype, (self.impl,))


_KEYS = {
    "fry": ExtendedDType("fry", (2,)),
    "rbg": ExtendedDType("rbg", (4,)),
    "urbg": ExtendedDType("urbg", (4,)),
    "phx2": ExtendedDType("phx2", (1,)),
    "phx4": ExtendedDType("phx4", (2,)),
    "fry4": ExtendedDType("fry4", (4,)),
}


def key_dtype(impl: str = "fry") -> ExtendedDType:
    """Return the dtype of PRNG keys of one implementation.

    Parameters
    ----------
    impl : str, optional
        Short name of the generator. The default is "fry", for threefry2x32.

    Returns
    -------
    dtypes.ExtendedDType
        Dtype of the keys.

    Raises
    ------
    KeyError
        If the implementation is unknown.

    See Also
    --------
    random.key_impl : Implementation of a key.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.key_dtype() == jax.random.key(0).dtype
    True
    """
    return _KEYS[impl]


float0 = np.dtype([("float0", np.void, 0)])

UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
SUB_INTS = tuple(
    n for n in ("int1", "int2", "int4", "uint1", "uint2", "uint4") if hasattr(ml_dtypes, n)
)
SMALL_FLOATS = tuple(
    name
    for name in (
        "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
    if hasattr(ml_dtypes, name)
)  # fmt: skip
FLOATS = ("bfloat16", "float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")


def _dtype_by_name(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


# All dtypes that arrays can have, by name.
DTYPES: dict[str, np.dtype] = {
    name: _dtype_by_name(name)
    for name in ("bool", *SUB_INTS, *SIGNED, *UNSIGNED, *SMALL_FLOATS, *FLOATS, *COMPLEX)
}
_SUPPORTED = frozenset(DTYPES.values())
bfloat16: type = DTYPES["bfloat16"].type  # the scalar type, so that calls convert scalars
bool_ = DTYPES["bool"]
int32, int64, uint32 = DTYPES["int32"], DTYPES["int64"], DTYPES["uint32"]
float16, float32, float64 = DTYPES["float16"], DTYPES["float32"], DTYPES["float64"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]

NARROW: dict[Any, np.dtype] = {
    DTYPES["int64"]: DTYPES["int32"],
    DTYPES["uint64"]: DTYPES["uint32"],
    DTYPES["float64"]: DTYPES["float32"],
    DTYPES["complex128"]: DTYPES["complex64"],
}
# The scalar classes of the dtypes of ml_dtypes, which NumPy itself treats as void types.
CATEGORY: dict[np.dtype, type] = {
    **{DTYPES[n]: np.unsignedinteger if n[0] == "u" else np.signedinteger for n in SUB_INTS},
    **{DTYPES[n]: np.floating for n in (*SMALL_FLOATS, "bfloat16")},
}
_SHORT = {
    "complex64": "c64",
    "complex128": "c128",
    "bool": "bool",
    "bfloat16": "bf16",
    "float0": "float0",
}


def as_dtype(x: Any) -> DType:
    """Convert a dtype, a name, a NumPy or Python type, or an array to a dtype.

    Dtypes of the other byte order stand for those of the machine, which all arrays have.

    Parameters
    ----------
    x : dtype_like or array_like
        Object that names or has a dtype.

    Returns
    -------
    dtype
        NumPy dtype, or that of PRNG keys.

    Raises
    ------
    TypeError
        If the dtype is unknown.

    See Also
    --------
    dtypes.canonicalize_dtype : Also apply the 32-bit default.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.as_dtype("float32"), jax.dtypes.as_dtype(jax.numpy.ones(2))
    (dtype('float32'), dtype('float32'))
    """
    if isinstance(x, np.dtype):
        # Returns NumPy's own dtype object. A copy of it would not count as a built-in dtype.
        return x if x.isnative else np.dtype(x.newbyteorder("=").str)
    if isinstance(x, ExtendedDType):
        return x
    if isinstance(x, str):
        return DTYPES.get(x) or as_dtype(np.dtype(x))
    attribute = getattr(x, "dtype", None)
    if isinstance(attribute, np.dtype | ExtendedDType):
        return as_dtype(attribute)
    return np.dtype(x)


def short_name(dtype: Any) -> str:
    """Return the name of a dtype in jaxprs, such as f32, i32, bool, bf16 or key<fry>.

    Parameters
    ----------
    dtype : dtype
        Type to name.

    Returns
    -------
    str
        Short name.

    Raises
    ------
    TypeError
        If the argument is not a dtype.

    See Also
    --------
    make_jaxpr : Print such names.

    Examples
    --------
    >>> import accnp as jax, numpy as np
    >>> jax.dtypes.short_name(np.dtype("float32"))
    'f32'
    """
    return _short_name(as_dtype(dtype))


@lru_cache(maxsize=256)
def _short_name(dtype: DType) -> str:
    if dtype == float0:
        return "float0"
    name = dtype.name
    if name in _SHORT:
        return _SHORT[name]
    return name.replace("uint", "u").replace("int", "i").replace("float", "f")


def canonicalize_dtype(dtype: DTypeLike | DType, allow_extended_dtype: bool = False) -> DType:
    """Return the dtype that accnp uses for a requested dtype.

    Without `enable_x64`, 64-bit dtypes become 32-bit: int64 becomes int32.

    Parameters
    ----------
    dtype : dtype_like
        Requested type of elements.
    allow_extended_dtype : bool, optional
        Whether to accept dtypes of PRNG keys. The default is False.

    Returns
    -------
    dtype
        Canonical dtype.

    Raises
    ------
    TypeError
        If the dtype is unknown.
    KeyArrayError
        If it is the dtype of a PRNG key and these are not accepted.

    See Also
    --------
    numpy.result_type : Promoted dtype of several values.
    enable_x64 : Use 64-bit dtypes.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.canonicalize_dtype("float64")
    dtype('float32')
    """
    dtype = np.dtype(np.float64) if dtype is None else as_dtype(dtype)
    if isinstance(dtype, ExtendedDType) and not allow_extended_dtype:
        raise KeyArrayError(
            f"canonicalize_dtype: PRNG keys have no canonical dtype; got {dtype}; pass a numeric "
            "dtype"
        )
    return dtype if config.x64 else NARROW.get(dtype, dtype)


def is_supported(dtype: DType) -> bool:
    """Return whether arrays can have a dtype.

    Parameters
    ----------
    dtype : dtype
        Type to test.

    Returns
    -------
    bool
        False for objects, strings, dates and extended-precision floats.

    See Also
    --------
    dtypes.check_supported : Raise an error for other dtypes.

    Examples
    --------
    >>> import accnp as jax, numpy as np
    >>> jax.dtypes.is_supported(np.dtype("int8")), jax.dtypes.is_supported(np.dtype("O"))
    (True, False)
    """
    return dtype in _SUPPORTED or isinstance(dtype, ExtendedDType) or dtype == float0


def check_supported(dtype: DType, function: str) -> DType:
    """Return a dtype that arrays can have, and raise an error for others.

    Parameters
    ----------
    dtype : dtype
        Type to test.
    function : str
        Name of the function for the error message.

    Returns
    -------
    dtype
        The dtype itself.

    Raises
    ------
    UnsupportedDtypeError
        For objects, strings, dates and extended-precision floats.

    See Also
    --------
    dtypes.is_supported : Test without an error.

    Examples
    --------
    >>> import accnp as jax, numpy as np
    >>> jax.dtypes.check_supported(np.dtype("int8"), "f")
    dtype('int8')
    """
    if dtype in _SUPPORTED or is_supported(dtype):
        return dtype
    raise UnsupportedDtypeError(
        f"{function}: arrays can only have numeric dtypes; got dtype {dtype}; convert with astype "
        "first"
    )


_PYTHON_TYPES = (bool, int, float, complex)


def requested_dtype(dtype: Any, function: str) -> DType:
    """Convert the `dtype` argument of a function to a canonical dtype.

    Without `enable_x64`, a request for 64 bits gives a warning and a 32-bit dtype.

    Parameters
    ----------
    dtype : dtype_like
        What the caller of the function asked for.
    function : str
        Name of the function for messages.

    Returns
    -------
    dtype
        Canonical dtype.

    Raises
    ------
    TypeError
        If the dtype is unknown or not a dtype of arrays.

    See Also
    --------
    dtypes.canonicalize_dtype : Convert without a warning.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.requested_dtype(float, "f")
    dtype('float32')
    """
    try:
        requested = as_dtype(dtype)
    except TypeError as error:  # the message of NumPy does not name the function
        known = [str(name) for name in _SUPPORTED] if isinstance(dtype, str) else []
        near = imported("accnp.error_texts").suggestion(str(dtype), known)
        raise TypeError(
            f"{function}: unknown dtype ({error}); got dtype={dtype!r}; "
            f"{near or 'pass a dtype, or the name of one'}"
        ) from None
    explicit = check_supported(requested, function)
    if isinstance(explicit, ExtendedDType):
        raise KeyArrayError(
            f"{function}: arrays of numbers cannot have dtype {explicit.name}; make keys with "
            "random.key or random.wrap_key_data"
        )
    result = canonicalize_dtype(explicit)
    if result != explicit and config.explicit_x64_dtypes != "warn" and dtype not in _PYTHON_TYPES:
        if config.explicit_x64_dtypes == "allow":
            return explicit
        raise ValueError(
            f"{function}: Explicitly requested dtype {explicit} is not available; got "
            f"dtype={dtype!r} while 64-bit types are off and explicit_x64_dtypes is 'error'; set "
            "jax_enable_x64, or explicit_x64_dtypes to 'allow'"
        )
    # Python's own types (float, int) mean the default width, so they do not warn.
    if result != explicit and dtype not in _PYTHON_TYPES:
        warn(
            f"Explicitly requested dtype {explicit} requested in {function.removeprefix('jnp.')} "
            f"is not available, and will be truncated to dtype {result}: 64-bit types are off; "
            'call accnp.config.update("jax_enable_x64", True) to enable them',
        )
    return result


def default_int() -> np.dtype:
    """Return the default integer dtype: int32, or int64 with `enable_x64`.

    Returns
    -------
    dtype
        Type of arrays made from Python integers.

    See Also
    --------
    dtypes.default_float : Default float dtype.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.default_int()
    dtype('int32')
    """
    return int64 if config.x64 else int32


def default_float() -> np.dtype:
    """Return the default float dtype: float32, or float64 with `enable_x64`.

    Returns
    -------
    dtype
        Type of arrays made from Python floats.

    See Also
    --------
    dtypes.default_int : Default integer dtype.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.default_float()
    dtype('float32')
    """
    return float64 if config.x64 else float32


def default_complex() -> np.dtype:
    """Return the default complex dtype: complex64, or complex128 with `enable_x64`.

    Returns
    -------
    dtype
        Type of arrays made from Python complex numbers.

    See Also
    --------
    dtypes.default_float : Default float dtype.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.default_complex()
    dtype('complex64')
    """
    return complex128 if config.x64 else complex64


def real_part(dtype: DType) -> DType:
    """Return the dtype of the real part of values of a dtype.

    Parameters
    ----------
    dtype : dtype
        Type of complex or real values.

    Returns
    -------
    dtype
        Floating dtype for complex numbers, and the same dtype otherwise.

    See Also
    --------
    numpy.real : Real part of an array.

    Examples
    --------
    >>> import accnp as jax, numpy as np
    >>> jax.dtypes.real_part(np.dtype("complex64"))
    dtype('float32')
    """
    return _REAL.get(dtype, dtype)


_REAL = {complex64: float32, complex128: float64}
