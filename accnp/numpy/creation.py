"""Creation of arrays: from Python and NumPy values, filled with one value, and ranges.

Filled arrays and ranges are lazy: they take no memory until a kernel needs them in a buffer.
"""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    cast,
    numpy_node,
    scalar_node,
    to_shape,
)
from accnp.api.arguments.non_numeric import accepts_keys
from accnp.api.arguments.shapes import as_int, as_shape, as_static
from accnp.api.arguments.values import check_complex, node_of, number_node, to_dtype
from accnp.array_type import (
    Array,
    ArrayData,
    ArrayLike,
    DeviceLike,
    Shape,
    ShardingLike,
    SupportsShapeDtype,
    is_traced,
    wrap,
)
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary, warn
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.kinds import dtype_kind
from accnp.primitives.kinds import full as full_node
from accnp.sharding.device_placement import new_array, put_node

__all__ = [
    "arange", "array", "asarray", "empty", "empty_like", "eye", "full", "full_like", 
    "identity", "iota", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip


# --- from values ---------------------------------------------------------------------------------


def _by_position(
    args: tuple[Any, ...], copy: bool, order: str | None, ndmin: int
) -> tuple[bool, str | None, int]:
    """Return `copy`, `order` and `ndmin` after replacing those that were passed positionally."""
    if len(args) > 3:
        raise TypeError(
            f"array: it takes from 1 to 5 positional arguments; got {len(args) + 2}; pass device "
            "and out_sharding by keyword"
        )
    warn(
        "array: Passing the copy, order, and ndmin arguments to jnp.array positionally is "
        f"deprecated; got {args}; pass them by keyword",
        DeprecationWarning,
    )
    positional = dict(enumerate(args))
    return positional.get(0, copy), positional.get(1, order), positional.get(2, ndmin)


def _resolve_placement(device: DeviceLike, out_sharding: ShardingLike) -> DeviceLike:
    """Return the device or sharding of a new array. A sharding whose mesh has no axes, as in types
    of arrays without a sharding, is ignored."""
    if device is not None:
        return device
    mesh = getattr(out_sharding, "mesh", None)
    return None if mesh is not None and mesh.empty else out_sharding


@accepts_keys("stack_keys")
@api_boundary
def array(
    object: ArrayData,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array from a number, a NumPy array or nested sequences of them.

    Parameters
    ----------
    object : array_like
        Values to convert. Nested lists and tuples give one axis for each level.
    {dtype_converted}
    *args : optional
        `copy`, `order` and `ndmin` by position, which is deprecated.
    copy : bool, optional
        If True, the default, the array is a copy. If False, the memory of a NumPy array is shared
        where dtype and layout allow it; do not write to it afterwards.
    {order_kc}
    ndmin : int, optional
        Minimum number of axes, static. Axes of length 1 are added in front. The default is 0.
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Array with the shape of the nesting.

    Raises
    ------
    {raises_values}

    See Also
    --------
    asarray : Convert without a copy where possible.
    zeros, ones, full : Arrays of one value.
    arange, linspace : Arrays of evenly spaced numbers.

    Notes
    -----
    NumPy arrays of 64-bit types become 32-bit arrays unless `jax_enable_x64` is set. A single
    Python number gives a weakly typed array: combined with another array, it takes on the dtype of
    that one.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    if args:
        copy, order, ndmin = _by_position(args, copy, order, ndmin)
    if type(object) is np.ndarray and dtype is None and order == "K" and ndmin == 0:
        return new_array(numpy_node(object, "jnp.array", copy), device)
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"array: order must be 'K' or 'C'; got {order!r}; "
            "leave it out, since all arrays are row-major"
        )
    x = node_of(object, dtype, copy, "jnp.array")
    if x.aval.ndim < ndmin:
        shape = (1,) * (ndmin - x.aval.ndim) + x.aval.shape
        x = o.reshape(x, new_sizes=shape, dimensions=None)
    if type(object) is Array and object._node is x and device is None and not copy:
        return object
    return new_array(x, device)  # a new handle, which survives donation of `object`


@accepts_keys("stack_keys")
@api_boundary
def asarray(
    a: ArrayData,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Convert a value to an array, without a copy where possible.

    Parameters
    ----------
    a : array_like
        Value to convert. An array is returned as it is.
    {dtype_converted}
    {order_kc}
    copy : bool, optional
        None, the default, copies a NumPy array if it can be written to. True always makes a copy.
        False shares the memory where dtype and layout allow it; do not write to it afterwards.
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Array with the shape of the value.

    Raises
    ------
    {raises_values}

    See Also
    --------
    array : Convert with a copy.
    from_dlpack : Share the memory of an array of another library.

    Notes
    -----
    NumPy arrays of 64-bit types become 32-bit arrays unless `jax_enable_x64` is set.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.asarray([1, 2])
    Array([1, 2], dtype=int32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    if type(a) is Array and dtype is None and device is None and not copy:
        as_node(a)  # raises for a deleted array
        return a
    if type(a) is np.ndarray and dtype is None and not copy and order is None and device is None:
        x = numpy_node(a, "jnp.asarray", copy)
        return wrap(x) if x.aval.dtype.kind != "V" else new_array(x, None)
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"asarray: order must be 'K' or 'C'; got {order!r}; "
            "leave it out, since all arrays are row-major"
        )
    return new_array(node_of(a, dtype, copy, "jnp.asarray"), device)


# --- filled --------------------------------------------------------------------------------------


def _dtype(dtype: Any, function: str) -> np.dtype:
    return dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, function)


@accepts_keys("fill_keys")
@api_boundary
def zeros(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of zeros of the given shape.

    Parameters
    ----------
    {shape}
    {dtype_default_float}
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Zeros of the given shape and dtype.

    Raises
    ------
    {raises_shape}

    See Also
    --------
    zeros_like : Zeros with the shape and dtype of another array.
    ones, full : Arrays of another value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.zeros(2)
    Array([0., 0.], dtype=float32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    return new_array(full_node(as_shape(shape, "jnp.zeros"), 0, _dtype(dtype, "jnp.zeros")), device)


@accepts_keys("fill_keys_with_ones")
@api_boundary
def ones(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of ones of the given shape.

    Parameters
    ----------
    {shape}
    {dtype_default_float}
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Ones of the given shape and dtype.

    Raises
    ------
    {raises_shape}

    See Also
    --------
    ones_like : Ones with the shape and dtype of another array.
    zeros, full : Arrays of another value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ones((1, 2))
    Array([[1., 1.]], dtype=float32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    return new_array(full_node(as_shape(shape, "jnp.ones"), 1, _dtype(dtype, "jnp.ones")), device)


@accepts_keys("fill_keys")
@api_boundary
def empty(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of unspecified values of the given shape.

    Parameters
    ----------
    {shape}
    {dtype_default_float}
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Array of the given shape and dtype. The values are zeros, unlike in NumPy.

    Raises
    ------
    {raises_shape}

    See Also
    --------
    empty_like : The same with the shape and dtype of another array.
    zeros, ones, full : Arrays of a given value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.empty(0)
    Array([], shape=(0,), dtype=float32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    return new_array(full_node(as_shape(shape, "jnp.empty"), 0, _dtype(dtype, "jnp.empty")), device)


def _fill(shape: tuple[int, ...], value: Any, dtype: Any, function: str) -> Node:
    if dtype is None:
        return to_shape(as_node(value, function), shape, function)
    kind = dtypes.requested_dtype(dtype, function)
    check_complex(value, kind, function)
    return to_shape(to_dtype(number_node(value, kind, function), kind), shape, function)


@accepts_keys("fill_keys")
@api_boundary
def full(
    shape: Shape,
    fill_value: ArrayData,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array that holds one value everywhere.

    Parameters
    ----------
    {shape}
    fill_value : array_like
        Value of the elements, or an array that broadcasts to the shape. Lists are not accepted.
    {dtype_filled}
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Array of the given shape.

    Raises
    ------
    TypeError
        If a size is negative, traced or not an integer, `fill_value` is a list, or a complex
        `fill_value` is given with a real dtype.
    ValueError
        If `fill_value` does not broadcast to the shape.

    See Also
    --------
    full_like : The same with the shape and dtype of another array.
    zeros, ones : Arrays of zeros and ones.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.full(2, 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    return new_array(_fill(as_shape(shape, "jnp.full"), fill_value, dtype, "jnp.full"), device)


@accepts_keys("fill_keys")
@api_boundary
def full_like(
    a: ArrayLike | SupportsShapeDtype,
    fill_value: ArrayData,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of one value with the shape and dtype of another array.

    Parameters
    ----------
    a : array_like
        Array whose shape and dtype are used. Lists and tuples are not accepted.
    fill_value : array_like
        Value of the elements, or an array that broadcasts to the shape. Lists are not accepted.
    {like_dtype}
    {like_shape}
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Array of the given shape and dtype.

    Raises
    ------
    TypeError
        If `a` or `fill_value` is neither an array nor a number, or a complex `fill_value` is given
        with a real dtype.
    ValueError
        If `fill_value` does not broadcast to the shape.

    See Also
    --------
    full : The same with a shape.
    zeros_like, ones_like : Zeros and ones.

    Notes
    -----
    Unlike in NumPy, there are no `order` and `subok` parameters.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.full_like(jnp.arange(2), 5)
    Array([5, 5], dtype=int32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    return _fill_like(a, fill_value, dtype, shape, device, "jnp.full_like")


def _fill_like(a: Any, value: Any, dtype: Any, shape: Any, device: Any, function: str) -> Array:
    like = shape_and_type(a, function)
    new = like[0] if shape is None else as_shape(shape, function)
    if dtype is not None:
        x = _fill(new, value, dtype, function)
    else:
        if hasattr(a, "dtype"):
            check_complex(value, like[1], function)
        x = number_node(value, like[1], function)
        if x.aval.dtype != like[1]:
            x = to_dtype(x, like[1])
        x = to_shape(cast(x, like[1], like[2] and not x.aval.ndim), new, function)
    if device is None and type(a) is Array and x.aval.dtype != dtypes.float0:
        return wrap(put_node(x, a._node.aval.devices))
    return new_array(x, device)


def shape_and_type(a: Any, function: str) -> tuple[tuple[int, ...], Any, bool]:
    """Return (shape, dtype, weak) of an array, a number, or anything with a shape and a dtype."""
    if type(a) is not Array and not isinstance(a, np.ndarray) and hasattr(a, "shape"):
        return (
            tuple(a.shape),
            dtypes.canonicalize_dtype(a.dtype),
            bool(getattr(a, "weak_type", False)),
        )
    if type(a) is int:  # also an int beyond int32, since only the type matters
        return (), dtypes.default_int(), True
    aval = a.aval if type(a) is Array else as_node(a, function).aval
    return aval.shape, aval.dtype, aval.weak_type


@accepts_keys("fill_keys")
@api_boundary
def zeros_like(
    a: ArrayLike | SupportsShapeDtype,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of zeros with the shape and dtype of another array.

    Parameters
    ----------
    a : array_like
        Array whose shape and dtype are used. Lists and tuples are not accepted.
    {like_dtype}
    {like_shape}
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Zeros of the given shape and dtype.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `shape` is not a shape.

    See Also
    --------
    zeros : Zeros of a given shape.
    ones_like, full_like : Arrays of another value.

    Notes
    -----
    Unlike in NumPy, there are no `order` and `subok` parameters.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.zeros_like(jnp.arange(2))
    Array([0, 0], dtype=int32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    return _fill_like(a, 0, dtype, shape, device, "jnp.zeros_like")


@accepts_keys("fill_keys_with_ones")
@api_boundary
def ones_like(
    a: ArrayLike | SupportsShapeDtype,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make an array of ones with the shape and dtype of another array.

    Parameters
    ----------
    a : array_like
        Array whose shape and dtype are used. Lists and tuples are not accepted.
    {like_dtype}
    {like_shape}
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Ones of the given shape and dtype.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number, or `shape` is not a shape.

    See Also
    --------
    ones : Ones of a given shape.
    zeros_like, full_like : Arrays of another value.

    Notes
    -----
    Unlike in NumPy, there are no `order` and `subok` parameters.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ones_like(jnp.arange(2))
    Array([1, 1], dtype=int32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    return _fill_like(a, 1, dtype, shape, device, "jnp.ones_like")


@accepts_keys("fill_keys")
@api_boundary
def empty_like(
    prototype: ArrayLike | SupportsShapeDtype,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Make an array of unspecified values with the shape and dtype of another array.

    Parameters
    ----------
    prototype : array_like
        Array whose shape and dtype are used. Lists and tuples are not accepted.
    {like_dtype}
    {like_shape}
    {device}

    Returns
    -------
    Array
        Array of the given shape and dtype. The values are zeros, unlike in NumPy.

    Raises
    ------
    TypeError
        If `prototype` is neither an array nor a number, or `shape` is not a shape.

    See Also
    --------
    empty : The same with a given shape.
    zeros_like, ones_like, full_like : Arrays of a given value.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.empty_like(jnp.ones(0))
    Array([], shape=(0,), dtype=float32)
    """
    return _fill_like(prototype, 0, dtype, shape, device, "jnp.empty_like")


# --- ranges --------------------------------------------------------------------------------------


@api_boundary
def iota(dtype: Any, size: Any) -> Array:
    """Make the numbers 0, 1, ..., size - 1."""
    n = as_shape(size, "lax.iota")
    kind = dtypes.requested_dtype(dtype, "lax.iota")
    if kind.kind == "b":
        raise TypeError("lax.iota: bool cannot count; got dtype bool; pass a numeric dtype")
    return wrap(o.iota(dtype=kind, shape=n, dimension=0))


@api_boundary
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Make evenly spaced numbers in a half-open interval.

    Parameters
    ----------
    start : number
        First number. If `stop` is not given, this is the end of the interval, which starts at 0.
    stop : number, optional
        End of the interval, which is not included.
    step : number, optional
        Distance of neighbors, of either sign. The default is 1.
    dtype : dtype_like, optional
        Dtype of the result. The default is int32 for integers and float32 for floats (64-bit with
        `jax_enable_x64`).
    {device}
    {out_sharding}

    Returns
    -------
    Array
        Vector with the elements `start`, `start + step`, ... below `stop` (above it for a negative
        step).

    Raises
    ------
    TypeError
        If a bound is traced (the length would not be static), or not a real number, or `dtype` is
        bool.
    ValueError
        If a bound is complex.
    ZeroDivisionError
        If `step` is 0.

    See Also
    --------
    linspace : Evenly spaced numbers, given by their count.
    lax.iota : Integers from 0 on.
    indices, meshgrid : Coordinates of grids.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(2, 8, 3)
    Array([2, 5], dtype=int32)
    """
    device = device if out_sharding is None else _resolve_placement(device, out_sharding)
    name = "jnp.arange"
    numbers = [v for v in (start, stop, step) if v is not None]
    if not numbers:
        raise TypeError(f"{name}: stop is missing; got no arguments; pass one, as in arange(5)")
    for v in numbers:
        if isinstance(v, str | list | tuple):
            raise TypeError(
                f"{name}: start, stop and step must be numbers; got {v!r}; "
                "convert it with int() or float()"
            )
        if np.ndim(v) != 0:  # works on Arrays by their ndim
            raise TypeError(
                f"{name}: start, stop and step must be numbers; got shape {np.shape(v)}; "
                "take one element, or use jnp.linspace"
            )
        if np.iscomplexobj(v):
            raise ValueError(
                f"{name}: start, stop and step must be real; got {v!r}; take the real part"
            )
    kind = (
        dtypes.promote(tuple([dtypes.value_type(v) for v in numbers]))[0]
        if dtype is None
        else dtypes.requested_dtype(dtype, name)
    )
    first: Any
    last: Any
    by: Any
    first, last, by = (
        None if v is None else _as_python_number(as_static(v, name, "shape"))
        for v in (start, stop, step)
    )
    if by == 0:
        raise ZeroDivisionError(f"{name}: the step must not be zero; got 0; pass another number")
    if last is None:
        first, last = 0, first
    if by is None and not first:
        if kind.kind == "b":
            raise TypeError("arange: bool cannot count; got dtype bool; pass a numeric dtype")
        return new_array(o.iota(dtype=kind, shape=(max(0, math.ceil(last)),), dimension=0), device)
    if kind.kind in "iu" and all(isinstance(v, int) for v in (first, last, by or 1)):
        size = max(0, -((first - last) // (by or 1)))
        x = o.iota(dtype=kind, shape=(size,), dimension=0)
        if by not in (None, 1):
            x = o.mul(x, scalar_node(by, kind, False))
        return new_array(o.add(x, scalar_node(first, kind, False)) if first else x, device)
    # In 16 bits the rounding errors of the steps would accumulate, as they do in NumPy.
    near = np.float64 if dtype_kind(kind) == "f" and kind.itemsize < 4 else kind
    x = np.arange(first, last, 1 if by is None else by, dtype=near)
    return new_array(numpy_node(x.astype(kind, copy=False), name), device)


def _as_python_number(v: Any) -> Any:
    return v.item() if isinstance(v, np.ndarray | np.generic) else v


@api_boundary
def eye(
    N: int,
    M: int | None = None,
    k: SupportsIndex = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Make a matrix with ones on one diagonal and zeros elsewhere.

    Parameters
    ----------
    N : int
        Number of rows, static.
    M : int, optional
        Number of columns, static. The default is `N`.
    k : int, optional
        Number of the diagonal: 0, the default, is the main diagonal, positive numbers count to the
        right of it, and negative ones below it. It may be traced.
    {dtype_default_float}
    {device}

    Returns
    -------
    Array
        Matrix of shape (N, M).

    Raises
    ------
    {raises_shape}

    See Also
    --------
    identity : Square matrix with ones on the main diagonal.
    diag : Matrix with given numbers on a diagonal.
    tri : Ones on and below a diagonal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    name = "jnp.eye"
    n = as_int(N, name, "N", "shape")
    m = n if M is None else as_int(M, name, "M", "shape")
    shape = as_shape((n, m), name)
    return new_array(cast(diagonal_mask(shape, as_diagonal(k, name)), _dtype(dtype, name)), device)


def as_diagonal(k: Any, name: str) -> int | Array:
    """Return a diagonal offset as an int, or as an Array if it is traced."""
    if not (type(k) is Array and is_traced(k._node)):
        return as_int(k, name, "k")
    if dtype_kind(k.dtype) not in "iu" or k.ndim:
        raise ValueError(f"{name}: k must be one integer; got {k}; convert it with astype(int)")
    return k


def diagonal_mask(shape: tuple[int, ...], k: Any = 0, compare: str = "eq") -> Node:
    """Compare row + k with column: "eq" is a diagonal, "ge" the lower triangle."""
    kind = dtypes.int32
    row = o.iota(dtype=kind, shape=shape, dimension=0)
    col = o.iota(dtype=kind, shape=shape, dimension=1)
    if type(k) is Array:  # traced
        return getattr(o, compare)(o.add(row, cast(k._node, kind)), col)
    return getattr(o, compare)(o.add(row, scalar_node(k, kind, False)) if k else row, col)


@api_boundary
def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Make a square matrix with ones on the main diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        Number of rows and columns, static.
    {dtype_default_float}

    Returns
    -------
    Array
        Matrix of shape (n, n).

    Raises
    ------
    {raises_shape}

    See Also
    --------
    eye : Ones on any diagonal of a matrix of any shape.
    diag : Matrix with given numbers on a diagonal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)
