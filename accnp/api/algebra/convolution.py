"""Convolutions: `lax.conv_general_dilated` and its relatives, `convolve` and `correlate`.

In: arrays, strides, padding, dimension numbers in any of their forms. Out: lazy Arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.algebra.conv_shapes import (
    as_pads,
    as_steps,
    check_preferred,
    conv_dimension_numbers,
    transposed_pads,
)
from accnp.api.arguments.convert import as_node, promote, promote_inexact
from accnp.api.arguments.shapes import as_int, as_size
from accnp.api.arguments.values import precision_key
from accnp.api.compiled.named import named
from accnp.array import Array, ArrayLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.linalg import dot
from accnp.primitives.windows import dilated

__all__ = [
    "conv", "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches",
    "conv_transpose", "conv_with_general_padding", "convolve", "correlate",
]  # fmt: skip

_NAME = "conv_general_dilated"


@api_boundary
def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Sum windows of an array, times a kernel, over input features and taps.

    Args:
        lhs: the array: examples, features, and axes of space.
        rhs: the kernel: output features, input features (of one group), and taps along space.
        window_strides: distances between windows.
        padding: "SAME", "VALID", "SAME_LOWER", or (low, high) for each axis of space; may be
            negative.
        lhs_dilation: distances between the elements of the array (1).
        rhs_dilation: distances between the taps of the kernel (1).
        dimension_numbers: which axes are which: None (NCHW, OIHW, NCHW), three strings such as
            ("NHWC", "HWIO", "NHWC"), or `ConvDimensionNumbers`.
        feature_group_count: groups of features that are convolved apart.
        batch_group_count: groups of examples that are convolved apart; each gives some features.
        precision: accepted; a CPU computes in the operands' precision.
        preferred_element_type: the dtype of the sum and of the result.
        out_sharding: accepted, and without effect on one device.

    Raises:
        TypeError: ranks, dtypes or dimension numbers do not fit.
        ValueError: sizes, groups or strides do not fit.

    Example:
        >>> import accnp as jnp
        >>> x, w = jnp.arange(5.0).reshape(1, 1, 5), jnp.ones((1, 1, 3))
        >>> jnp.lax.conv_general_dilated(x, w, (1,), "SAME")
        Array([[[1., 3., 6., 9., 7.]]], dtype=float32)
    """
    x, w = as_node(lhs, f"lax.{_NAME}"), as_node(rhs, f"lax.{_NAME}")
    how = window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    wanted = preferred_element_type
    if wanted is not None:
        wanted = dtypes.requested_dtype(wanted, f"lax.{_NAME}")
        if wanted.itemsize < x.aval.dtype.itemsize:
            raise TypeError(
                f"lax.{_NAME}: sums of {x.aval.dtype.name} in a narrower dtype; got "
                f"{wanted.name} (preferred_element_type); convert the result"
            )
    groups = feature_group_count, batch_group_count
    return wrap(_convolved(x, w, *how, *groups, precision, wanted))


def _convolved(
    x: Node,
    w: Node,
    strides: Any,
    padding: Any,
    base: Any = None,
    dilation: Any = None,
    dimension_numbers: Any = None,
    features: int = 1,
    batches: int = 1,
    precision: Any = None,
    preferred: Any = None,
) -> Node:
    if preferred is not None:
        check_preferred(x.aval.dtype, preferred, f"lax.{_NAME}")
    elif x.aval.dtype == w.aval.dtype == np.dtype(bool):  # whether any pair of both is true
        count = np.dtype(np.int32)
        x, w = (o.convert_element_type(v, new_dtype=count, weak_type=False) for v in (x, w))
        how = strides, padding, base, dilation, dimension_numbers, features, batches, precision
        y = _convolved(x, w, *how)
        return o.convert_element_type(y, new_dtype=np.dtype(bool), weak_type=False)
    dims = conv_dimension_numbers(x.aval.shape, w.aval.shape, dimension_numbers)
    rank = x.aval.ndim - 2
    strides = as_steps(strides, rank, "window_strides")
    base = as_steps(base, rank, "lhs_dilation")
    dilation = as_steps(dilation, rank, "rhs_dilation")
    spatial = [x.aval.shape[d] for d in dims.lhs_spec[2:]]
    taps = [dilated(w.aval.shape[d], k) for d, k in zip(dims.rhs_spec[2:], dilation, strict=True)]
    return o.conv_general_dilated(
        x,
        w,
        window_strides=strides,
        padding=as_pads(padding, spatial, taps, strides, base),
        lhs_dilation=base,
        rhs_dilation=dilation,
        dimension_numbers=dims,
        feature_group_count=int(features),
        batch_group_count=int(batches),
        precision=precision_key(precision),
        preferred_element_type=preferred,
    )


@api_boundary
def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve (N, C, space...) with (O, I, taps...), C = I: see `conv_general_dilated`.

    Returns:
        (N, O, space...), of the dtype of both, or of preferred_element_type.

    Raises:
        TypeError: ranks or dtypes differ, a stride is below 1, or an operand is a list.
        ValueError: features or the number of strides do not fit.
        RuntimeError: padding is none of "SAME", "SAME_LOWER", "VALID".

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.conv(jnp.ones((1, 1, 4)), jnp.ones((2, 1, 3)), (1,), "VALID").shape
        (1, 2, 2)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@api_boundary
def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve as `conv` does, with dilations and with any padding; shapes, dtypes, errors are its.

    Padding may be (low, high) for each axis of space; a ValueError where it is no such thing.

    >>> import accnp as jnp
    >>> x, w = jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2))
    >>> jnp.lax.conv_with_general_padding(x, w, (1,), [(1, 0)], None, None)
    Array([[[1., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# --- relatives -----------------------------------------------------------------------------------

_LETTERS = "HWD"


@api_boundary
def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolve an array whose elements are `strides` apart: what undoes the shape of a convolution.

    Args:
        lhs: the array, (N, space..., C) where no dimension numbers are given.
        rhs: the kernel, (taps..., I, O).
        strides: distances between the elements, by which the result is larger.
        padding: "SAME" (as many elements as in, times the stride), "VALID", or (low, high) for each
            axis of space.
        rhs_dilation: distances between the taps (1).
        dimension_numbers: as for `conv_general_dilated`.
        transpose_kernel: whether the kernel is that of the convolution to be undone: taps are
            reversed, and input and output features exchanged.
        precision: accepted; a CPU computes in the operands' precision.
        preferred_element_type: the dtype of the sum and of the result.
        use_consistent_padding: whether explicit padding is that of the convolution to be undone.

    Raises:
        TypeError: ranks or dtypes differ, or a stride is below 1.
        ValueError: features or the number of strides do not fit; there is no such padding; or no
            dimension numbers for more than 3 axes of space.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.conv_transpose(jnp.ones((1, 3, 1)), jnp.ones((2, 1, 1)), (2,), "SAME").shape
        (1, 6, 1)
    """
    x, w = as_node(lhs, "lax.conv_transpose"), as_node(rhs, "lax.conv_transpose")
    rank = x.aval.ndim - 2
    if dimension_numbers is None:
        if not 0 <= rank <= 3:
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        space = _LETTERS[:rank]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    dims = conv_dimension_numbers(x.aval.shape, w.aval.shape, dimension_numbers)
    strides = as_steps(strides, rank, "window_strides")
    dilation = as_steps(rhs_dilation, rank, "rhs_dilation")
    spans = [dilated(w.aval.shape[d], k) for d, k in zip(dims.rhs_spec[2:], dilation, strict=True)]
    pads = padding
    if isinstance(padding, str):
        pads = [transposed_pads(k, s, padding) for k, s in zip(spans, strides, strict=True)]
    elif use_consistent_padding:
        pads = [(k - 1 - a, k - 1 - b) for k, (a, b) in zip(spans, padding, strict=True)]
    if transpose_kernel:
        order = list(range(w.aval.ndim))
        first, second = dims.rhs_spec[:2]
        order[first], order[second] = second, first
        w = o.transpose(o.rev(w, dimensions=tuple(dims.rhs_spec[2:])), permutation=tuple(order))
    wanted = preferred_element_type
    if wanted is not None:
        wanted = dtypes.requested_dtype(wanted, "lax.conv_transpose")
    one = (1,) * rank
    return wrap(_convolved(x, w, one, pads, strides, dilation, dims, 1, 1, precision, wanted))


@api_boundary
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Return what the windows of a convolution see, as output features.

    Args:
        lhs: the array, of any numeric dtype, which stays.
        filter_shape: taps along each axis of space.
        window_strides: distances between windows.
        padding: as for `conv_general_dilated`; so are the other arguments.

    Returns:
        As many features as input features (slow) times taps, in the shape of the convolution.

    Raises:
        TypeError: taps are not one for each axis of space.
        ValueError: the number of strides does not fit.
        RuntimeError: there is no padding of that name.

    Example:
        >>> import accnp as jnp
        >>> x = jnp.arange(4.0).reshape(1, 1, 4)
        >>> jnp.lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")
        Array([[[0., 1., 2.],
                [1., 2., 3.]]], dtype=float32)
    """
    x = as_node(lhs, "lax.conv_general_dilated_patches")
    name = "lax.conv_general_dilated_patches"
    sizes = tuple(as_size(v, name, "each of filter_shape") for v in filter_shape)
    how = window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    wanted = preferred_element_type
    if wanted is not None:
        wanted = dtypes.requested_dtype(wanted, "lax.conv_general_dilated_patches")
    return wrap(_patches(x, sizes, *how, precision, wanted))


def _patches(
    x: Node, sizes: tuple[int, ...], strides: Any, padding: Any, base: Any, dilation: Any,
    dimension_numbers: Any, precision: Any, wanted: Any = None,
) -> Node:  # fmt: skip
    shape = (*(1,) * 2, *sizes)
    dims = conv_dimension_numbers(x.aval.shape, shape, dimension_numbers)
    inputs, taps = x.aval.shape[dims.lhs_spec[1]], prod(sizes)
    int32 = np.dtype(np.int32)
    row, column = (o.iota(dtype=int32, shape=(taps, taps), dimension=d) for d in (0, 1))
    unit = o.convert_element_type(o.eq(row, column), new_dtype=x.aval.dtype, weak_type=False)
    unit = o.broadcast_in_dim(unit, shape=(inputs, taps, taps), broadcast_dimensions=(1, 2))
    w = o.reshape(unit, new_sizes=(inputs * taps, 1, *sizes), dimensions=None)
    order = tuple(int(d) for d in np.argsort(dims.rhs_spec))
    if order != tuple(range(len(order))):
        w = o.transpose(w, permutation=order)
    how = strides, padding, base, dilation
    return _convolved(x, w, *how, dims, inputs, 1, precision, wanted)


@api_boundary
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """Convolve with a kernel of its own at each place.

    Args:
        lhs: the array.
        rhs: kernels: output features, input features times taps, and the places of the result.
        window_strides: distances between windows.
        padding: as for `conv_general_dilated`.
        filter_shape: taps along each axis of space.
        lhs_dilation: distances between the elements of the array (1).
        rhs_dilation: distances between the taps (1).
        dimension_numbers: as for `conv_general_dilated`.
        precision: accepted; a CPU computes in the operands' precision.

    Returns:
        Shapes are as of `conv_general_dilated`, the dtype is that of the operands, promoted.

    Raises:
        TypeError: ranks differ, or kernels do not fit features, taps or places.
        ValueError: the number of strides or taps does not fit.
        RuntimeError: there is no padding of that name.

    Example:
        >>> import accnp as jnp
        >>> x, w = jnp.ones((1, 1, 4)), jnp.arange(6.0).reshape(1, 2, 3)
        >>> jnp.lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,))
        Array([[[3., 5., 7.]]], dtype=float32)
    """
    x, w = (as_node(v, "lax.conv_general_dilated_local") for v in (lhs, rhs))
    dims = conv_dimension_numbers(x.aval.shape, w.aval.shape, dimension_numbers)
    sizes = tuple(as_int(v, "lax.conv_general_dilated_local") for v in filter_shape)
    how = window_strides, padding, lhs_dilation, rhs_dilation
    patches = _patches(x, sizes, *how, dims, precision)
    contract = (dims.rhs_spec[1],), (dims.out_spec[1],)
    batch = (dims.rhs_spec[2:], dims.out_spec[2:])
    wide, _ = dtypes.promote(tuple([(v.aval.dtype, v.aval.weak_type) for v in (w, patches)]))
    y = dot(w, patches, contract, batch, wide)
    n = len(sizes)  # axes of y: space, output features, examples
    order = [0] * (n + 2)
    for d, axis in zip(dims.out_spec, (n + 1, n, *range(n)), strict=True):
        order[d] = axis
    return wrap(o.transpose(y, permutation=tuple(order)))


# --- one axis ------------------------------------------------------------------------------------


def _line(
    name: str, x: Node, y: Node, mode: str, precision: Any, preferred: Any, early: bool = True
) -> Node:
    """Slide y along x, both of one axis; y is taken as it is, as in a correlation.

    Where the windows of "same" cannot lie evenly, they begin and end early, or late.
    """
    n, m = x.aval.shape[0], y.aval.shape[0]
    same = m // 2, m - m // 2 - 1
    pads = {"full": (m - 1, m - 1), "same": same if early else same[::-1], "valid": (0, 0)}
    if mode not in pads:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    if preferred is not None:
        preferred = dtypes.requested_dtype(preferred, f"jnp.{name}")
    x = o.broadcast_in_dim(x, shape=(1, 1, n), broadcast_dimensions=(2,))
    y = o.broadcast_in_dim(y, shape=(1, 1, m), broadcast_dimensions=(2,))
    out = _convolved(x, y, (1,), [pads[mode]], precision=precision, preferred=preferred)
    return o.squeeze(out, dimensions=(0, 1))


def _lines(name: str, a: Any, v: Any, preferred: Any) -> tuple[Node, Node]:
    x, y = (promote_inexact if preferred is None else promote)(name, a, v)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            f"{name}: vectors are needed; got shapes {x.aval.shape} and {y.aval.shape}; ravel them"
        )
    if not x.aval.size or not y.aval.size:
        raise ValueError(
            f"{name}: vectors without elements; got shapes {x.aval.shape} and "
            f"{y.aval.shape}; pass one at least"
        )
    return x, y


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The discrete convolution of two arrays of one axis.

    Args:
        a: an array of one axis.
        v: another one.
        mode: "full" (every place where they overlap), "same" (as many as the longer array has) or
            "valid" (where the shorter one lies inside).
        precision: accepted; a CPU computes in the operands' precision.
        preferred_element_type: the dtype of the sums and of the result.

    Example:
    Integers become the default float, unlike in NumPy.

    Raises:
        ValueError: an operand has not one axis or no element, or there is no such mode.
        TypeError: an operand is a list or a text.

        >>> import accnp as jnp
        >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
        Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    x, y = _lines("convolve", a, v, preferred_element_type)
    if y.aval.size > x.aval.size:
        x, y = y, x
    y = o.rev(y, dimensions=(0,))
    return wrap(_line("convolve", x, y, mode, precision, preferred_element_type))


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two arrays of one axis; the second one is conjugated.

    Args and result are those of `convolve`.

    Example:
    Shape and dtype are those of `convolve`.

    Raises:
        ValueError: an operand has not one axis or no element, or there is no such mode.
        TypeError: an operand is a list or a text.

        >>> import accnp as jnp
        >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
        Array([3.5], dtype=float32)
    """
    x, y = _lines("correlate", a, v, preferred_element_type)
    if y.aval.dtype.kind == "c":
        y = o.conj(y)
    longer = y.aval.size > x.aval.size
    if longer:
        x, y = o.rev(y, dimensions=(0,)), o.rev(x, dimensions=(0,))
    preferred = preferred_element_type
    return wrap(_line("correlate", x, y, mode, precision, preferred, early=not longer))


convolve = api_boundary(named(convolve, arrays=2))
correlate = api_boundary(named(correlate, arrays=2))
