"""Promotion of dtypes with weak types, by the lattice of JAX, and the types of Python numbers.

Input: pairs of dtype and weak-type flag, one per operand. Output: the pair to which they are
promoted. Values that come from Python numbers are weakly typed: they adapt to the dtype of other
operands.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from accnp.config import config
from accnp.dtypes.names import (
    CATEGORY,
    COMPLEX,
    DTYPES,
    FLOATS,
    NARROW,
    SIGNED,
    SMALL_FLOATS,
    SUB_INTS,
    UNSIGNED,
    DType,
    DTypeLike,
    ExtendedDType,
    as_dtype,
    bool_,
    canonicalize_dtype,
    check_supported,
    complex64,
    complex128,
    default_float,
    float0,
    float32,
    float64,
    int32,
    int64,
    short_name,
)
from accnp.errors import TypePromotionError, api_boundary

WeakType = tuple[DType, bool]

_PYTHON_32: dict[type, WeakType] = {
    bool: (bool_, False), int: (int32, True), float: (float32, True), complex: (complex64, True),
}  # fmt: skip
_PYTHON_64: dict[type, WeakType] = {
    bool: (bool_, False), int: (int64, True), float: (float64, True), complex: (complex128, True),
}  # fmt: skip


def value_type(x: Any) -> WeakType:
    """Return the dtype and the weak-type flag of a Python number, NumPy scalar or array.

    Parameters
    ----------
    x : array_like
        Number or array to classify.

    Returns
    -------
    (dtype, bool)
        Type, and whether it is weak, as that of Python numbers except bools.

    Raises
    ------
    TypeError
        If the value is neither a number nor an array.

    See Also
    --------
    typeof : Type of an array with its shape.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.value_type(1.0)
    (dtype('float32'), True)
    """
    python = _PYTHON_64 if config.x64 else _PYTHON_32
    weak_type = python.get(type(x))
    if weak_type is not None:
        return weak_type
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return canonicalize_dtype(dtype, True), bool(getattr(x, "weak_type", False))
    for kind, result in python.items():  # subclasses, such as IntEnum
        if isinstance(x, kind):
            return result
    raise TypeError(
        f"it requires ndarray or scalar arguments, got {type(x)}: {x!r}; convert it first"
    )


def scalar_type_of(x: Any) -> type:
    """Return the Python type (bool, int, float, complex) of the kind of a number or array.

    Parameters
    ----------
    x : array_like
        Number or array whose dtype to classify.

    Returns
    -------
    type
        Python type of its kind of dtype.

    Raises
    ------
    TypeError
        If `x` is neither a number nor an array.

    See Also
    --------
    dtypes.issubdtype : Whether a dtype is of a kind.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.dtypes.scalar_type_of(jax.ones(2))
    <class 'float'>
    """
    node = _node(value_type(x)[0], True)
    return {"bool": bool, "i*": int, "f*": float, "c*": complex}[node]


# Edges of the lattice, from each type to the next larger ones. Names with a star are weak types.
_EDGES: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8", *SUB_INTS),
    **{name: () for name in SUB_INTS},
    "uint8": ("uint16", "int16"),
    "uint16": ("uint32", "int32"),
    "uint32": ("uint64", "int64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": (*SMALL_FLOATS, "bfloat16", "float16", "c*"),
    **{name: () for name in SMALL_FLOATS},
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
    "i*": ("f*", *SUB_INTS, *SIGNED, *UNSIGNED),
    "f*": ("c*", *SMALL_FLOATS, *FLOATS),
    "c*": COMPLEX,
}


@lru_cache(maxsize=128)
def _upper_bounds(node: str, strict: bool) -> frozenset[str]:
    edges = _STRICT_EDGES if strict else _EDGES
    bounds = {node}
    for upper in edges[node]:
        bounds |= _upper_bounds(upper, strict)
    return frozenset(bounds)


def _bound(nodes: frozenset[str], strict: bool) -> str:
    """Return the least upper bound of nodes of the lattice."""
    common = frozenset.intersection(*(_upper_bounds(node, strict) for node in nodes))
    for node in common:
        if _upper_bounds(node, strict) == common:
            return node
    spelled = {"i*": "Python int", "f*": "Python float", "c*": "Python complex"}
    names = ", ".join(repr(spelled.get(node, node)) for node in sorted(nodes))
    if strict:
        why = 'numpy_dtype_promotion is "strict"; cast with astype, or set it to "standard"'
    elif any(node in SUB_INTS for node in nodes):
        why = "integers below 8 bits are not promoted implicitly; cast, e.g. x.astype('int32')"
    else:
        why = "floats up to 8 bits are not promoted implicitly; cast, e.g. x.astype('float32')"
    raise TypePromotionError(
        f"Input dtypes ({names}) have no available implicit dtype promotion path; {why}"
    )


_WEAK_DTYPE = {"i*": int64, "f*": float64, "c*": complex128}
_LATTICE_DTYPE: dict[str, Any] = {**DTYPES, **_WEAK_DTYPE}
_WEAK_NODE = {"i": "i*", "u": "i*", "f": "f*", "c": "c*"}


def _node(dtype: np.dtype, weak: bool) -> str:
    if weak and dtype != bool_:
        category = CATEGORY.get(dtype)
        if category is None:
            return _WEAK_NODE[dtype.kind]
        return "f*" if category is np.floating else "i*"
    return dtype.name


def promote(types: Iterable[WeakType]) -> WeakType:
    """Return the dtype and the weak-type flag that operands are promoted to.

    Parameters
    ----------
    types : iterable of (dtype, bool)
        Dtype and weak-type flag of each operand.

    Returns
    -------
    (dtype, bool)
        Common dtype, and whether it is weak.

    Raises
    ------
    TypePromotionError
        If the dtypes have no implicit promotion.

    See Also
    --------
    numpy.result_type : Promoted dtype of values.

    Examples
    --------
    >>> import accnp as jax, numpy as np
    >>> jax.dtypes.promote([(np.dtype("int8"), False), (np.dtype("float32"), True)])
    (dtype('float32'), True)
    """
    return _promote(types if type(types) is tuple else tuple(types), config.promotion)


@lru_cache(maxsize=65536)
def _promote(types: tuple[WeakType, ...], promotion: tuple[bool, str]) -> WeakType:
    x64, mode = promotion
    if not types:
        raise ValueError("result_type: at least one argument is required; got none; pass an array")
    canonical: list[tuple[Any, bool]] = [
        (d if x64 else NARROW.get(d, d), bool(w)) for d, w in types
    ]
    for dtype, _ in canonical:
        check_supported(dtype, "result_type")
    dtypes = {dtype for dtype, _ in canonical}
    all_weak = all(weak for _, weak in canonical)
    strict = mode == "strict"
    if len(dtypes) == 1 and not (strict and all_weak and len(canonical) > 1):
        dtype, weak = canonical[0][0], all_weak
    elif any(isinstance(dtype, ExtendedDType) or dtype == float0 for dtype in dtypes):
        names = ", ".join(sorted(short_name(d) for d in dtypes))
        raise TypePromotionError(
            f"dtypes of keys and float0 are not promoted; got {names}; pass equal dtypes"
        )
    else:
        # Weak types promote among themselves as the corresponding strong types do.
        as_strong = all_weak and not strict
        nodes = frozenset(_node(d, w and not as_strong) for d, w in canonical)
        node = _bound(nodes, strict)
        weak = all_weak or node in _WEAK_DTYPE
        dtype = _LATTICE_DTYPE[node]
    if weak and dtype != bool_:
        # A weak result always has the default width of its kind.
        dtype = DTYPES["uint64"] if dtype.kind == "u" else _WEAK_DTYPE[_node(dtype, True)]
    return dtype if x64 else NARROW.get(dtype, dtype), weak and dtype != bool_


def _argument_type(x: Any) -> WeakType:
    if x is None:
        return default_float(), False
    python = _PYTHON_64 if config.x64 else _PYTHON_32
    if isinstance(x, type) and x in python:
        return python[x]
    if isinstance(x, str | np.dtype | type | ExtendedDType):
        return canonicalize_dtype(x, True), False
    return value_type(x)


@api_boundary
def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Find the dtype to which arrays, dtypes and numbers promote.

    Parameters
    ----------
    *args : array_like or dtype_like
        Operands, of which the shapes do not count. Python numbers are weak: they adapt to the
        others.
    return_weak_type_flag : bool, optional
        If True, return whether the result is weakly typed as well. The default is False.

    Returns
    -------
    dtype or (dtype, bool)
        Promoted dtype, of at most 32 bits unless `jax_enable_x64` is set.

    Raises
    ------
    TypeError
        If an argument is not an array, dtype or number, or the dtypes have no common one.
    ValueError
        If no argument is given.

    See Also
    --------
    promote_types : The dtype for two dtypes.
    can_cast : Whether a conversion is allowed.

    Notes
    -----
    Promotion follows JAX: int32 and float32 give float32, where NumPy gives float64.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.result_type(jnp.int8(1), 2.0)
    dtype('float32')
    """
    dtype, weak = promote(tuple([_argument_type(x) for x in args]))
    return (dtype, weak) if return_weak_type_flag else dtype


@api_boundary
def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """Find the dtype to which two dtypes promote, also without `jax_enable_x64`.

    Parameters
    ----------
    a : dtype_like
        First dtype. The types `int`, `float` and `complex` are weak: they adapt to the other.
    b : dtype_like
        Second dtype to combine.

    Returns
    -------
    dtype
        Promoted dtype.

    Raises
    ------
    TypeError
        If an argument is not a dtype, or the two have no common dtype.

    See Also
    --------
    result_type : The dtype for arrays and numbers.

    Notes
    -----
    Promotion follows JAX: int32 and float32 give float32, where NumPy gives float64.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.promote_types("int32", "float16")
    dtype('float16')
    """
    types = (_promotable(a), _promotable(b))
    result = _promote(types, (True, config.numpy_dtype_promotion))[0]
    # uint32 with a smaller signed type is the only case in which JAX respects `enable_x64` here.
    if result == int64 and not config.x64 and all(dtype.itemsize < 8 for dtype, _ in types):
        return int32
    return result


def _promotable(x: Any) -> WeakType:
    if isinstance(x, type) and x in _PYTHON_64:
        return _PYTHON_64[x]
    return check_supported(as_dtype(x), "promote_types"), False
