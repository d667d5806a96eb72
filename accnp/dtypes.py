"""Data types: names, the 32-bit default, jax's promotion lattice with weak types, questions about types.

In: anything that names a dtype, or a Python number. Out: `numpy.dtype` objects (or an `ExtendedDType`
for random keys) and weak flags. "Weak" marks values that came from a Python number and yield to others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from accnp.config import config
from accnp.errors import TypePromotionError

DType = Any  # np.dtype or ExtendedDType
WeakType = tuple[DType, bool]


# ---- names ----------------------------------------------------------------------------------------


class extended(np.generic):  # noqa: N801 - a dtype class, named as jax names it
    """Abstract class of dtypes that NumPy does not know."""


class prng_key(extended):  # noqa: N801
    """Abstract class of random-key dtypes."""


class ExtendedDType:
    """The dtype of random keys: `key<fry>`. One object per implementation, compared by identity."""

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
}


def key_dtype(impl: str = "fry") -> ExtendedDType:
    """The dtype of random keys of one implementation."""
    return _KEYS[impl]


float0 = np.dtype([("float0", np.void, 0)])

_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SIGNED = ("int8", "int16", "int32", "int64")
_SUB_INTS = tuple(
    n for n in ("int1", "int2", "int4", "uint1", "uint2", "uint4") if hasattr(ml_dtypes, n)
)
_SMALL_FLOATS = tuple(
    name
    for name in (
        "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
    if hasattr(ml_dtypes, name)
)  # fmt: skip
_FLOATS = ("bfloat16", "float16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")


def _named(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


# every dtype that arrays can have, by name
DTYPES: dict[str, np.dtype] = {
    name: _named(name)
    for name in ("bool", *_SUB_INTS, *_SIGNED, *_UNSIGNED, *_SMALL_FLOATS, *_FLOATS, *_COMPLEX)
}
_SUPPORTED = frozenset(DTYPES.values())
bfloat16 = DTYPES["bfloat16"]
bool_ = DTYPES["bool"]
int32, int64, uint32 = DTYPES["int32"], DTYPES["int64"], DTYPES["uint32"]
float16, float32, float64 = DTYPES["float16"], DTYPES["float32"], DTYPES["float64"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]

_NARROW = {
    DTYPES["int64"]: DTYPES["int32"],
    DTYPES["uint64"]: DTYPES["uint32"],
    DTYPES["float64"]: DTYPES["float32"],
    DTYPES["complex128"]: DTYPES["complex64"],
}
# NumPy calls ml_dtypes' types "void"; these are the classes they belong to.
_CATEGORY: dict[np.dtype, type] = {
    **{DTYPES[n]: np.unsignedinteger if n[0] == "u" else np.signedinteger for n in _SUB_INTS},
    **{DTYPES[n]: np.floating for n in (*_SMALL_FLOATS, "bfloat16")},
}
_SHORT = {
    "complex64": "c64",
    "complex128": "c128",
    "bool": "bool",
    "bfloat16": "bf16",
    "float0": "float0",
}


def as_dtype(x: Any) -> DType:
    """The dtype that `x` names or has: a dtype, a name, a NumPy or Python type, an array."""
    if isinstance(x, np.dtype | ExtendedDType):
        return x
    if isinstance(x, str):
        return DTYPES.get(x) or np.dtype(x)
    found = getattr(x, "dtype", None)
    if isinstance(found, np.dtype | ExtendedDType):
        return found
    return np.dtype(x)


def short_name(dtype: Any) -> str:
    """The name in jaxprs: f32, i32, bool, bf16, key<fry>."""
    return _short_name(as_dtype(dtype))


@lru_cache(maxsize=256)
def _short_name(dtype: DType) -> str:
    if dtype == float0:
        return "float0"
    name = dtype.name
    if name in _SHORT:
        return _SHORT[name]
    return name.replace("uint", "u").replace("int", "i").replace("float", "f")


# ---- canonical types ------------------------------------------------------------------------------


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> DType:
    """The dtype used for `dtype` under the x64 switch: int64 becomes int32 when it is off."""
    dtype = np.dtype(np.float64) if dtype is None else as_dtype(dtype)
    if isinstance(dtype, ExtendedDType) and not allow_extended_dtype:
        raise ValueError(
            f"canonicalize_dtype: a key dtype has no canonical form; got {dtype}; pass a numeric dtype"
        )
    return dtype if config.x64 else _NARROW.get(dtype, dtype)


def is_supported(dtype: DType) -> bool:
    """Whether arrays can have this dtype."""
    return dtype in _SUPPORTED or isinstance(dtype, ExtendedDType) or dtype == float0


def check_supported(dtype: DType, function: str) -> DType:
    """`dtype` itself, or a TypeError for objects, texts, dates, long doubles."""
    if dtype in _SUPPORTED or is_supported(dtype):
        return dtype
    raise TypeError(
        f"{function}: only numeric types can be in arrays; got dtype {dtype}; convert with astype first"
    )


def requested_dtype(dtype: Any, function: str) -> DType:
    """A user's `dtype=` argument as a canonical dtype; warns where 64 bits were asked for with x64 off."""
    given = check_supported(as_dtype(dtype), function)
    if isinstance(given, ExtendedDType):
        return given
    result = canonicalize_dtype(given)
    # Python's own types (float, int) mean the default width, so they do not warn.
    if result != given and dtype not in (bool, int, float, complex):
        warnings.warn(
            f"{function}: dtype {given} was requested, but 64-bit types are off; {result} is used; "
            'call accnp.config.update("jax_enable_x64", True) to have them',
            stacklevel=3,
        )
    return result


def default_int() -> np.dtype:
    """int32, or int64 with x64 on."""
    return int64 if config.x64 else int32


def default_float() -> np.dtype:
    """float32, or float64 with x64 on."""
    return float64 if config.x64 else float32


def default_complex() -> np.dtype:
    """complex64, or complex128 with x64 on."""
    return complex128 if config.x64 else complex64


def to_inexact(dtype: DType) -> DType:
    """The dtype of `sin` of such values: floats stay, integers and bool become the default float."""
    return dtype if issubdtype(dtype, np.inexact) else default_float()


def real_part(dtype: DType) -> DType:
    """The dtype of the real part of such values."""
    return _REAL.get(dtype, dtype)


_REAL = {complex64: float32, complex128: float64}

_PYTHON_32: dict[type, WeakType] = {
    bool: (bool_, False), int: (int32, True), float: (float32, True), complex: (complex64, True),
}  # fmt: skip
_PYTHON_64: dict[type, WeakType] = {
    bool: (bool_, False), int: (int64, True), float: (float64, True), complex: (complex128, True),
}  # fmt: skip


def value_type(x: Any) -> WeakType:
    """`(dtype, weak)` of a Python number (weak, but for bool), NumPy scalar or array."""
    python = _PYTHON_64 if config.x64 else _PYTHON_32
    found = python.get(type(x))
    if found is not None:
        return found
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return canonicalize_dtype(dtype, True), bool(getattr(x, "weak_type", False))
    for kind, result in python.items():  # subclasses, such as IntEnum
        if isinstance(x, kind):
            return result
    raise TypeError(
        f"a number or an array is needed; got {x!r} of type {type(x).__name__}; convert it first"
    )


# ---- promotion ------------------------------------------------------------------------------------

# Edges of the lattice: from each type to those that it turns into. "i*", "f*", "c*" are the weak types.
_EDGES: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8", *_SUB_INTS),
    **{name: () for name in _SUB_INTS},
    "uint8": ("uint16", "int16"),
    "uint16": ("uint32", "int32"),
    "uint32": ("uint64", "int64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": (*_SMALL_FLOATS, "bfloat16", "float16", "c*"),
    **{name: () for name in _SMALL_FLOATS},
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}
_STRICT_EDGES: dict[str, tuple[str, ...]] = {
    **{name: () for name in _EDGES},
    "i*": ("f*", *_SUB_INTS, *_SIGNED, *_UNSIGNED),
    "f*": ("c*", *_SMALL_FLOATS, *_FLOATS),
    "c*": _COMPLEX,
}


@lru_cache(maxsize=128)
def _above(node: str, strict: bool) -> frozenset[str]:
    edges = _STRICT_EDGES if strict else _EDGES
    found = {node}
    for upper in edges[node]:
        found |= _above(upper, strict)
    return frozenset(found)


def _bound(nodes: frozenset[str], strict: bool) -> str:
    """The least node above all of `nodes`."""
    common = frozenset.intersection(*(_above(node, strict) for node in nodes))
    for node in common:
        if _above(node, strict) == common:
            return node
    spelled = {"i*": "Python int", "f*": "Python float", "c*": "Python complex"}
    names = ", ".join(sorted(spelled.get(node, node) for node in nodes))
    if strict:
        why = 'numpy_dtype_promotion is "strict"; cast explicitly with astype, or set it to "standard"'
    elif any(node in _SUB_INTS for node in nodes):
        why = "integers of fewer than 8 bits are not promoted implicitly; cast with astype, e.g. x.astype('int32')"
    else:
        why = "floats of 8 bits or fewer are not promoted implicitly; cast with astype, e.g. x.astype('float32')"
    raise TypePromotionError(f"these dtypes have no common dtype to promote to; got {names}; {why}")


_WEAK_NODE = {"i": "i*", "u": "i*", "f": "f*", "c": "c*"}


def _node(dtype: np.dtype, weak: bool) -> str:
    if weak and dtype != bool_:
        category = _CATEGORY.get(dtype)
        if category is None:
            return _WEAK_NODE[dtype.kind]
        return "f*" if category is np.floating else "i*"
    return dtype.name


def promote(types: Iterable[WeakType]) -> WeakType:
    """The dtype and weak flag that operands of these dtypes and weak flags are brought to."""
    return _promote(
        types if type(types) is tuple else tuple(types), config.x64, config.numpy_dtype_promotion
    )


@lru_cache(maxsize=65536)
def _promote(types: tuple[WeakType, ...], x64: bool, mode: str) -> WeakType:
    if not types:
        raise ValueError("result_type: at least one array or dtype is needed; got none; pass one")
    canonical = [(d if x64 else _NARROW.get(d, d), bool(w)) for d, w in types]
    for dtype, _ in canonical:
        check_supported(dtype, "result_type")
    dtypes = {dtype for dtype, _ in canonical}
    all_weak = all(weak for _, weak in canonical)
    if len(dtypes) == 1:
        dtype, weak = canonical[0][0], all_weak
        return dtype, weak and dtype != bool_
    if any(isinstance(dtype, ExtendedDType) or dtype == float0 for dtype in dtypes):
        names = ", ".join(sorted(short_name(d) for d in dtypes))
        raise TypePromotionError(
            f"key and float0 dtypes are not promoted; got {names}; pass equal dtypes"
        )
    if all_weak:
        # Bound of the strong counterparts, so that weak int16 with weak int8 gives weak int16.
        node, weak = _bound(frozenset(d.name for d in dtypes), False), True
    else:
        node = _bound(frozenset(_node(d, w) for d, w in canonical), mode == "strict")
        weak = node in ("i*", "f*", "c*")
    wide = {"i*": int64, "f*": float64, "c*": complex128}.get(node) or DTYPES[node]
    result = wide if x64 else _NARROW.get(wide, wide)
    return result, weak and result != bool_


def _argument_type(x: Any) -> WeakType:
    if x is None:
        return default_float(), False
    python = _PYTHON_64 if config.x64 else _PYTHON_32
    if isinstance(x, type) and x in python:
        return python[x]
    if isinstance(x, str | np.dtype | type | ExtendedDType):
        return canonicalize_dtype(x, True), False
    return value_type(x)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that these arrays, dtypes and Python numbers promote to.

    >>> result_type(np.int8(1), 2.0)
    dtype('float32')
    """
    dtype, weak = promote(tuple([_argument_type(x) for x in args]))
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: Any, b: Any) -> DType:
    """The dtype that two dtypes promote to; Python's `int`, `float`, `complex` count as weak."""
    return promote((_promotable(a), _promotable(b)))[0]


def _promotable(x: Any) -> WeakType:
    return _argument_type(x) if isinstance(x, type) else (canonicalize_dtype(x, True), False)


# ---- questions ------------------------------------------------------------------------------------


def _scalar_class(x: Any) -> type:
    """The class of `x` in NumPy's hierarchy of scalar types."""
    if isinstance(x, type) and issubclass(x, np.generic):
        return _CATEGORY.get(_concrete(x), x)
    dtype = as_dtype(x)
    return _CATEGORY.get(dtype) or dtype.type


@lru_cache(maxsize=128)
def _concrete(x: type) -> Any:
    """The dtype of a concrete scalar class, None for an abstract one."""
    if issubclass(x, extended) or x in _ABSTRACT:
        return None
    return np.dtype(x)


_ABSTRACT = frozenset(
    [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact]
    + [np.floating, np.complexfloating, np.flexible, np.character]
)


def issubdtype(a: Any, b: Any) -> bool:
    """Whether `a` is of the kind `b`; knows bfloat16, the small floats and integers, and keys."""
    try:
        return _issubdtype(a, b)
    except TypeError:  # unhashable description of a structured dtype, or an array
        return _issubdtype(as_dtype(a), as_dtype(b))


@lru_cache(maxsize=1024)
def _issubdtype(a: Any, b: Any) -> bool:
    if isinstance(b, type) and issubclass(b, np.generic) and _concrete(b) is None:
        return issubclass(_scalar_class(a), b)
    if isinstance(a, type) and issubclass(a, np.generic) and _concrete(a) is None:
        return False
    first, second = as_dtype(a), as_dtype(b)
    if isinstance(first, ExtendedDType) or isinstance(second, ExtendedDType):
        return first is second
    if first in _CATEGORY or second in _CATEGORY:
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


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether `dtype` is of a kind: a dtype, one of the array API's names, or a tuple of these."""
    given = as_dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KINDS:
            if issubclass(_scalar_class(given), _KINDS[one]):
                return True
            continue
        if not (isinstance(one, str | np.dtype | type | ExtendedDType) or hasattr(one, "dtype")):
            raise TypeError(
                f"isdtype: kind must be a dtype, a text or a tuple; got {one!r}; pass 'integral', say"
            )
        try:
            same = as_dtype(one) == given
        except TypeError:
            names = ", ".join(map(repr, _KINDS))
            raise ValueError(
                f"isdtype: there is no such kind; got {one!r}; pass a dtype or one of {names}"
            ) from None
        if same:
            return True
    return False


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a cast between dtypes is allowed, as `numpy.can_cast`."""
    if isinstance(from_, bool | int | float | complex) and not isinstance(from_, np.generic):
        raise TypeError(
            f"can_cast: the answer would depend on the value of a Python number; got {from_!r}; pass a dtype"
        )
    return bool(np.can_cast(as_dtype(from_), as_dtype(to), casting=casting))  # pyright: ignore


def finfo(dtype: Any) -> Any:
    """Limits of a floating type, as `numpy.finfo`."""
    return ml_dtypes.finfo(as_dtype(dtype))


def iinfo(int_type: Any) -> Any:
    """Limits of an integer type, as `numpy.iinfo`."""
    try:
        dtype = as_dtype(int_type)
    except TypeError:  # a Python number: its own type
        dtype = np.dtype(type(int_type))
    return ml_dtypes.iinfo(dtype) if dtype in _CATEGORY else np.iinfo(dtype)


def itemsize_bits(dtype: Any) -> int:
    """The number of bits of one value; below 8 for the small types."""
    given = as_dtype(dtype)
    if isinstance(given, ExtendedDType):
        return 8 * given.itemsize
    if given in _CATEGORY:
        digits = "".join(c for c in given.name.split("_")[0] if c.isdigit())
        return int(digits)
    return 8 * given.itemsize
