"""Scalar types: `jnp.float32(1)` makes a lazy array of rank 0, and `jnp.float32` names a dtype.

The types compare equal to NumPy's, and `numpy.dtype` accepts them.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from accnp.array_type import Array
from accnp.dtypes import as_dtype
from accnp.numpy.creation import asarray

_PARSERS = (int, complex, builtins.bool)


class ScalarType(type):
    """Metaclass of the scalar types; calling a type converts its argument to an array."""

    dtype: np.dtype

    def __call__(cls, x: Any) -> Array:
        if isinstance(x, str):  # NumPy parses strings
            kind = next((k for k in _PARSERS if k.__name__ in cls.dtype.name), float)
            try:
                x = kind(x)
            except ValueError as error:
                raise ValueError(
                    f"jnp.{cls.__name__}: the string is not a number of this type; got {x!r} "
                    f"({error}); pass a number"
                ) from None
        return asarray(x, dtype=cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: Any) -> Any:
        return cls is other or cls.dtype.type == other or getattr(other, "dtype", None) is cls.dtype

    def __ne__(cls, other: Any) -> Any:
        return not cls == other

    def __instancecheck__(cls, instance: Any) -> Any:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'accnp.numpy.{cls.__name__}'>"


def scalar_type(name: str) -> ScalarType:
    """Make the scalar type of one dtype."""
    doc = f"""\
    Scalar type {name}, which names a dtype and makes arrays of it.

    Parameters
    ----------
    x : array_like
        Number, text of a number, or nested sequence of numbers to convert, of any shape.

    Raises
    ------
    TypeError
        If `x` cannot be converted to an array of numbers.
    ValueError
        If `x` is a string that does not spell a number of this type.

    Notes
    -----
    Calling the type returns an `Array`, where NumPy returns a scalar of its own. 64-bit types give
    32-bit arrays unless `jax_enable_x64` is set.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.dtype(jnp.{name}).name
    '{name}'
    """
    return ScalarType(
        name, (), {"dtype": as_dtype(name), "__doc__": doc, "__module__": "accnp.numpy"}
    )


bool = bool_ = scalar_type("bool")
int2 = scalar_type("int2")
int4 = scalar_type("int4")
int8 = scalar_type("int8")
int16 = scalar_type("int16")
int32 = scalar_type("int32")
int64 = scalar_type("int64")
uint2 = scalar_type("uint2")
uint4 = scalar_type("uint4")
uint8 = scalar_type("uint8")
uint16 = scalar_type("uint16")
uint32 = scalar_type("uint32")
uint64 = scalar_type("uint64")
float4_e2m1fn = scalar_type("float4_e2m1fn")
float8_e3m4 = scalar_type("float8_e3m4")
float8_e4m3 = scalar_type("float8_e4m3")
float8_e4m3b11fnuz = scalar_type("float8_e4m3b11fnuz")
float8_e4m3fn = scalar_type("float8_e4m3fn")
float8_e4m3fnuz = scalar_type("float8_e4m3fnuz")
float8_e5m2 = scalar_type("float8_e5m2")
float8_e5m2fnuz = scalar_type("float8_e5m2fnuz")
float8_e8m0fnu = scalar_type("float8_e8m0fnu")
bfloat16 = scalar_type("bfloat16")
float16 = scalar_type("float16")
float32 = single = scalar_type("float32")
float64 = double = scalar_type("float64")
complex64 = csingle = scalar_type("complex64")
complex128 = cdouble = scalar_type("complex128")
int_, uint, float_, complex_ = int64, uint64, float64, complex128

# Abstract types and constants are those of NumPy.
generic, number, inexact, flexible = np.generic, np.number, np.inexact, np.flexible
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating, character = np.floating, np.complexfloating, np.character
object_ = np.object_
dtype = np.dtype
pi, e, inf, nan, euler_gamma, newaxis = np.pi, np.e, np.inf, np.nan, np.euler_gamma, None
s_, index_exp = np.s_, np.index_exp
