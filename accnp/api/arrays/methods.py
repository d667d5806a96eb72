"""Operators, properties and methods of `Array`.

Importing this module sets them on the class from the tables below. Methods that few programs use
are descriptors (`_LazyMethod`) that import the module of the method on first access.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.non_numeric import install_key_functions
from accnp.array_type import (
    Array,
    ArrayLike,
    DeviceLike,
    Shape,
    ShardingLike,
    concrete_value,
    is_traced,
)
from accnp.caches import BoundedCache
from accnp.config import config, preparations
from accnp.docstrings import filled
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary, hide_frames
from accnp.ir.node import record
from accnp.ir.op import OPS, o
from accnp.lazy_imports import imported
from accnp.numpy import manipulation, matrices, means, products, reductions, ufuncs
from accnp.numpy.namespace_info import API_VERSIONS
from accnp.numpy.ufunc_factories import OPERANDS
from accnp.sharding import device_placement as placement
from accnp.trace_fn import conversion_error

_new = Array.__new__

# --- operators -----------------------------------------------------------------------------------

# Operator: function of two operands. Those with a reflected form also define __r...__.
_ARITHMETIC = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_COMPARISON = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {
    "neg": ufuncs.UNARY["negative"].__func__,  # a plain function, so that it binds as a method
    "pos": ufuncs.positive,
    "abs": ufuncs.abs,
    "invert": ufuncs.bitwise_not,
}


def _is_operand(x: Any) -> bool:
    return isinstance(x, OPERANDS) or hasattr(x, "__jax_array__")


_POWERS: BoundedCache[tuple[Any, int], dict[str, int]] = BoundedCache("type_cache_size").register(
    "integer powers", "parameters of `x ** n`, by type and exponent"
)
_INTEGER_POW = OPS["integer_pow"]


def _pow(self: Array, other: Any, modulo: None = None) -> Any:
    if type(other) is int and modulo is None:
        key = self._node.aval, other
        params = _POWERS.get(key) or _POWERS.recall(key)
        if params is not None:
            result = _new(Array)
            result._node = record(_INTEGER_POW, (self._node,), params)
            return result
    if modulo is not None or not _is_operand(other):
        return NotImplemented
    try:
        result = ufuncs.power(self, other)
    except Exception as error:
        hide_frames(error)
        raise
    node = result._node
    if type(other) is int and node.op is _INTEGER_POW and node.inputs == (self._node,):
        _POWERS.store((self._node.aval, other), node.params)
    return result


@api_boundary
def _rpow(self: Array, other: Any) -> Any:
    return ufuncs.power(other, self) if _is_operand(other) else NotImplemented


def _matmul(self: Array, other: Any) -> Any:
    try:
        return products.matmul(self, other) if _is_operand(other) else NotImplemented
    except Exception as error:
        hide_frames(error)
        raise


@api_boundary
def _rmatmul(self: Array, other: Any) -> Any:
    return products.matmul(other, self) if _is_operand(other) else NotImplemented


@api_boundary
def _round(self: Array, ndigits: int | None = None) -> Array:
    out = ufuncs.round(self, 0 if ndigits is None else ndigits)
    return matrices.astype(out, dtypes.default_int()) if ndigits is None else out


@api_boundary
def _contains(self: Array, value: Any) -> bool:
    shape = value.shape if isinstance(value, Array) else as_node(value, "y in x").aval.shape
    if self.ndim != 1 or shape:
        wrong = "search array must be one-dimensional" if not shape else "query must be a scalar"
        raise ValueError(
            f"y in x: {wrong}; got shapes {self.shape} and {shape}; use (x == y).any()"
        )
    if isinstance(value, Array) and (type(value) is Array) != (type(self) is Array):
        return False  # keys and numbers are never equal
    return bool(reductions.any(self == value))


# --- properties ----------------------------------------------------------------------------------


def _reverse_axes(self: Array) -> Array:
    """Array with the order of its axes reversed."""
    return manipulation.transpose(self)


@api_boundary
def _matrix_transposed(self: Array) -> Array:
    """Array with its last two axes swapped."""
    return manipulation.matrix_transpose(self)


def _real(self: Array) -> Array:
    """Real part of each element."""
    return ufuncs.real(self)


def _imag(self: Array) -> Array:
    """Imaginary part of each element; 0 for real dtypes."""
    return ufuncs.imag(self)


# --- methods that differ from the functions -------------------------------------------------------


@filled
def _reshape(
    self: Array, *args: Shape, order: str = "C", out_sharding: ShardingLike = None
) -> Array:
    """Return the elements with another shape.

    Parameters
    ----------
    *args : int or sequence of int
        New lengths of the axes, as one sequence or separately. One may be -1; it follows from the
        number of elements.
    {order_cf}
    {out_sharding}

    Returns
    -------
    Array
        Array of the new shape, with the same dtype.

    Raises
    ------
    TypeError
        If the lengths do not fit the number of elements, or are not static integers.
    ValueError
        If `order` is neither 'C' nor 'F'.

    See Also
    --------
    reshape : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(4).reshape(2, -1).shape
    (2, 2)
    """
    try:
        shape: Any = args[0] if len(args) == 1 else args
        return manipulation.reshape(self, shape, order=order, out_sharding=out_sharding)
    except Exception as error:
        hide_frames(error)
        raise


@api_boundary
def _transpose(self: Array, *args: Shape | None) -> Array:
    """Return the array with its axes permuted, by default in reverse order.

    Parameters
    ----------
    *args : int or sequence of int
        Permutation of the axes, as one sequence or separately. Without it, the order is reversed.

    Returns
    -------
    Array
        Array with permuted axes, with the same dtype.

    Raises
    ------
    TypeError
        If the axes are not each named once.
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    transpose : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ones((2, 3, 4)).transpose(2, 0, 1).shape
    (4, 2, 3)
    """
    if not args:
        return manipulation.transpose(self)
    first: Any = args[0]
    axes: Any = first if len(args) == 1 and (first is None or np.ndim(first)) else args
    return manipulation.transpose(self, axes)


@api_boundary
def _flatten(self: Array, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """Return the elements along one axis.

    Parameters
    ----------
    {order_cf}
    {out_sharding}

    Returns
    -------
    Array
        Vector of all elements, with the same dtype.

    Raises
    ------
    ValueError
        If `order` is neither 'C' nor 'F'.

    See Also
    --------
    ravel : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array([[1, 2], [3, 4]]).flatten("F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    return manipulation.ravel(self, order, out_sharding=out_sharding)


@api_boundary
def _clip(self: Array, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Limit the elements to an interval.

    Parameters
    ----------
    min : array_like, optional
        Lower bound of the interval. The default, None, means no lower bound.
    max : array_like, optional
        Upper bound of the interval. The default, None, means no upper bound.

    Returns
    -------
    Array
        Array with the broadcast shape and the promoted dtype of all three.

    Raises
    ------
    TypeError
        If a bound is neither an array nor a number, or the shapes do not broadcast.
    ValueError
        If one of them is complex.

    See Also
    --------
    clip : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(4).clip(1, 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    return ufuncs.clip(self, min=min, max=max)


@filled
def _astype(self: Array, dtype: DTypeLike, copy: bool = False, device: DeviceLike = None) -> Array:
    """Return the array converted to a dtype.

    Parameters
    ----------
    dtype : dtype_like
        Dtype to convert the elements to.
    copy : bool, optional
        Has no effect on arrays, which are immutable.
    device : Device or Sharding, optional
        Where to put the result. By default it stays on the device of the array.

    Returns
    -------
    Array
        Converted array, with the same shape.

    Raises
    ------
    TypeError
        If the dtype is unknown.

    See Also
    --------
    astype : The function, with notes on values out of range.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array([1.5, -1.5]).astype(int)
    Array([ 1, -1], dtype=int32)
    """
    try:
        return matrices.astype(self, dtype, copy=copy, device=device)
    except Exception as error:
        hide_frames(error)
        raise


def _copy(self: Array) -> Array:
    """Return a copy with a buffer of its own.

    Returns
    -------
    Array
        Copy with the same shape and dtype. It stays valid if the array is donated or deleted.

    Raises
    ------
    RuntimeError
        If the array was deleted or donated.

    See Also
    --------
    copy : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(3).copy()
    Array([0, 1, 2], dtype=int32)
    """
    return matrices.copy(self)


@api_boundary
def _conj(self: Array) -> Array:
    """Return the complex conjugate of each element.

    Returns
    -------
    Array
        Conjugates, with the same shape and dtype. Real numbers are returned as they are.

    Raises
    ------
    RuntimeError
        If the array was deleted or donated.

    See Also
    --------
    conj : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array([1 + 2j]).conj()
    Array([1.-2.j], dtype=complex64)
    """
    return ufuncs.conj(self)


@api_boundary
def _compress(
    self: Array, condition: ArrayLike, axis: int | None = None, *, out: None = None,
    size: int | None = None, fill_value: ArrayLike = 0,
) -> Array:  # fmt: skip
    """Keep the slices along an axis for which a condition holds.

    Parameters
    ----------
    condition : array_like
        Vector of truth values, one for each slice.
    axis : int, optional
        Axis along which to choose. None, the default, uses the flattened array.
    {out}
    {size_results}
    fill_value : array_like, optional
        Value of missing slices if fewer than `size` are kept. The default is 0.

    Returns
    -------
    Array
        Chosen slices, with the same dtype.

    Raises
    ------
    TypeError
        If `condition` is a list, or is traced and `size` is not given.
    ValueError
        If `condition` is not a vector, is true beyond the end of the axis, or the axis is out of
        bounds.

    See Also
    --------
    compress : The function, with notes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(3).compress(jnp.array([True, False, True]))
    Array([0, 2], dtype=int32)
    """
    taking = imported("accnp.numpy.taking")
    return taking.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


@api_boundary
def _view(self: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """Return the array with its bits interpreted as another dtype.

    Parameters
    ----------
    dtype : dtype_like, optional
        Dtype to interpret the bits as. The default, None, returns the array.
    type : None, optional
        Not supported; present for compatibility with NumPy.

    Returns
    -------
    Array
        Array of the dtype. If its width differs, the last axis becomes longer or shorter.

    Raises
    ------
    TypeError
        If the dtype is unknown.
    ValueError
        If the last axis does not hold whole elements of the dtype.
    NotImplementedError
        If `type` is given.

    See Also
    --------
    lax.bitcast_convert_type : The function for dtypes of any widths.
    Array.astype : Convert values.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array([1.0]).view("int32")
    Array([1065353216], dtype=int32)
    """
    if type is not None:
        raise NotImplementedError(
            f"view: the 'type' argument is not supported; got {type!r}; pass dtype only"
        )
    old = self.dtype
    new = old if dtype is None else dtypes.requested_dtype(dtype, "view")
    if new == old:
        return wrap(self._node)
    bits = imported("accnp.numpy.bit_views")
    width = bits.width_of
    same = width(new) == width(old)
    if same and "b" not in (new.kind, old.kind):
        return wrap(o.bitcast_convert_type(self._node, new_dtype=new))
    if same and not self.shape:
        return _view(self.reshape(1), new).reshape(())
    if not self.shape or self.shape[-1] * width(old) % width(new):
        raise ValueError(
            f"view: the last axis must hold whole elements of the new dtype; got {self.shape} "
            f"of {old.name} for {new.name}; reshape first"
        )
    return wrap(bits.bits_of(self._node, new))


@api_boundary
def _byteswap(self: Array) -> Array:
    """Return the array with the bytes of each element reversed.

    Returns
    -------
    Array
        Array with the same shape and dtype.

    Raises
    ------
    RuntimeError
        If the array was deleted or donated.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(2).byteswap()
    Array([       0, 16777216], dtype=int32)
    """
    flat = self._node
    return wrap(o.swap_bytes(flat))


@api_boundary
def _tobytes(self: Array, order: str = "C") -> bytes:
    r"""Return the bytes of all elements, of any dtype and shape.

    Parameters
    ----------
    order : {'C', 'F', 'A'}, optional
        Whether the last index varies fastest ('C', the default, and 'A') or the first one ('F').

    Returns
    -------
    bytes
        Bytes of the elements in the byte order of the machine.

    Raises
    ------
    ValueError
        If the order is unknown.
    ConcretizationTypeError
        If the array is traced.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(2, dtype="int8").tobytes()
    b'\x00\x01'
    """
    return concrete_value(self._node, "item").tobytes(order)  # pyright: ignore[reportArgumentType]


def _setitem(self: Array, key: Any, value: Any) -> None:
    try:
        if not config.item_assignment:
            raise TypeError(
                "x[...] = y: JAX arrays are immutable and do not support in-place item assignment; "
                "use x = x.at[index].set(value), or another .at[] method; pass np.array(x) to a "
                "library that assigns, or set the option item_assignment"
            )
        references = sys.getrefcount(self)
        imported("accnp.numpy.assigning").setitem(self, key, value, references)
    except Exception as error:
        hide_frames(error)
        raise


@api_boundary
def _iter(self: Array) -> Iterator[Any]:
    if self.ndim == 0:
        if is_traced(self._node):
            raise conversion_error("iter", self._node)
        raise TypeError(
            f"iteration over a 0-d array; got {self.aval.str_short()}; use x.item() for its value, "
            "or x.reshape(1) for an array of one element"
        )
    return _iterate_rows(self)


def _iterate_rows(x: Array) -> Iterator[Array]:
    """Yield the rows of an array, each of which is recorded only when it is requested."""
    yield from imported("accnp.numpy.joining").rows_of(x)


_NAMESPACE: list[ModuleType] = []


def set_namespace(module: ModuleType) -> None:
    """Set the module that `__array_namespace__` returns."""
    _NAMESPACE[:] = [module]


@api_boundary
def _array_namespace(self: Array, *, api_version: str | None = None) -> ModuleType:
    """Return the module with the functions for this array."""
    if api_version is not None and api_version not in API_VERSIONS:
        raise ValueError(
            f"Array.__array_namespace__: unsupported api_version; got {api_version!r}; "
            f"pass None or one of {', '.join(API_VERSIONS)}"
        )
    return _NAMESPACE[0]


# Methods and attributes of NumPy's arrays that arrays here do not have (`accnp/removed_names.py`).
_NUMPY_ONLY = (
    "base", "ctypes", "data", "dump", "dumps", "fill", "flags", "getfield", "itemset",
    "newbyteorder", "numpy", "partition", "put", "resize", "setfield", "setflags", "strides",
    "tofile", "tostring",
)  # fmt: skip


def _dir(self: Array) -> list[str]:
    """The names for completion, without those that only give advice."""
    return sorted({*object.__dir__(self)} - {*_NUMPY_ONLY})


METHODS: dict[str, Callable[..., Any]] = {
    # reductions
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "max": reductions.max,
    "mean": means.mean,
    "min": reductions.min,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "std": means.std,
    "sum": reductions.sum,
    "var": means.var,
    # shapes
    "diagonal": matrices.diagonal,
    "dot": products.dot,
    "trace": products.trace,
    "flatten": _flatten,
    "ravel": manipulation.ravel,
    "reshape": _reshape,
    "squeeze": manipulation.squeeze,
    "swapaxes": manipulation.swapaxes,
    "transpose": _transpose,
    # elements
    "astype": _astype,
    "byteswap": _byteswap,
    "clip": _clip,
    "conj": _conj,
    "conjugate": _conj,
    "copy": _copy,
    "clone": _copy,
    "round": ufuncs.round,
    "tobytes": _tobytes,
    "view": _view,
    "compress": _compress,
    **placement.METHODS,
    # protocols
    "__array_namespace__": _array_namespace,
    "__contains__": _contains,
    "__dir__": _dir,
    "__iter__": _iter,
    "__matmul__": _matmul,
    "__pow__": _pow,
    "__rmatmul__": _rmatmul,
    "__round__": _round,
    "__rpow__": _rpow,
    "__setitem__": _setitem,
}
PROPERTIES: dict[str, Callable[[Array], Any]] = {
    "T": _reverse_axes,
    "imag": _imag,
    "mT": _matrix_transposed,
    "real": _real,
    **placement.PROPERTIES,
}
# Rarely used methods, whose modules are imported on first access.
LAZY_METHODS = {
    "argpartition": "accnp.numpy.sorting",
    "argsort": "accnp.numpy.sorting",
    "at": "accnp.numpy.index_updates",
    "choose": "accnp.numpy.taking",
    "cumprod": "accnp.numpy.cumulative",
    "cumsum": "accnp.numpy.cumulative",
    "__getitem__": "accnp.numpy.indexing",
    "_repr_html_": "accnp.devtools.inspect.notebook",
    "nonzero": "accnp.numpy.taking",
    "repeat": "accnp.numpy.joining",
    "searchsorted": "accnp.numpy.taking",
    "sort": "accnp.numpy.sorting",
    "take": "accnp.numpy.taking",
}


class _LazyMethod:
    """Descriptor of a method whose module is imported on first access; it then replaces itself."""

    def __init__(self, name: str, module: str) -> None:
        self.name, self.module = name, module

    def __get__(self, array: Array | None, owner: type[Array]) -> Any:
        home = imported(self.module)
        setattr(Array, self.name, getattr(home, self.name.strip("_")))
        return getattr(owner if array is None else array, self.name)


class _NumpyOnly:
    """Raises an AttributeError that says what to use instead.

    `Array.__getattr__` would do so for all names, but classes that have one find each attribute
    more slowly.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, array: Array | None, owner: type[Array]) -> Any:
        today = imported("accnp.removed_names").REMOVED_NAMES[f"accnp.Array.{self.name}"]
        raise AttributeError(
            f"'Array' object has no attribute {self.name!r}: {today}", name=self.name, obj=array
        )


def _set_name(function: Any, name: str) -> Any:
    """Set the name of a method, for tracebacks and help."""
    function.__name__ = name
    function.__qualname__ = f"Array.{name}"
    return function


def install() -> None:
    """Set the operators, methods and properties of the tables on `Array`."""
    for name, function in _ARITHMETIC.items():
        operation = ufuncs.BINARY[function]
        setattr(Array, f"__{name}__", _set_name(operation.operator, f"__{name}__"))
        setattr(Array, f"__r{name}__", _set_name(operation.reflected, f"__r{name}__"))
    for name, function in _COMPARISON.items():
        setattr(Array, f"__{name}__", _set_name(ufuncs.BINARY[function].operator, f"__{name}__"))
    for name, function in _UNARY.items():
        setattr(Array, f"__{name}__", function)
    for name, function in METHODS.items():
        # Public functions of `accnp.numpy` that are methods, too, keep their names.
        private = function.__name__.startswith("_")
        setattr(Array, name, _set_name(function, name) if private else function)
    for name, function in PROPERTIES.items():
        setattr(Array, name, property(function))
    for name, module in LAZY_METHODS.items():
        setattr(Array, name, _LazyMethod(name, module))
    for name in _NUMPY_ONLY:
        setattr(Array, name, _NumpyOnly(name))


def _key_functions() -> ModuleType:
    return imported("accnp.random.key_functions")


def _install_numpy_protocols() -> None:
    imported("accnp.api.arrays.numpy_protocols").install()


install()
install_key_functions(_key_functions)
preparations["numpy_dispatch"] = _install_numpy_protocols
if config.numpy_dispatch:  # enabled by the environment
    _install_numpy_protocols()

__all__ = ["LAZY_METHODS", "METHODS", "PROPERTIES", "install", "set_namespace"]
