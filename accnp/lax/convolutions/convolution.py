"""Convolutions: `lax.conv_general_dilated` and its relatives, `convolve` and `correlate`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, promote, promote_inexact
from accnp.api.arguments.shapes import as_int, as_size, as_static
from accnp.api.arguments.values import precision_key
from accnp.api.jit.named_calls import named
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, ShardingLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lax.convolutions.shapes import (
    as_pads,
    as_steps,
    check_preferred,
    conv_dimension_numbers,
    transposed_pads,
)
from accnp.primitives.linalg import dot
from accnp.primitives.windows import dilated_length
from accnp.sharding.device_placement import with_out_sharding

if TYPE_CHECKING:
    from accnp.lax.convolutions.shapes import ConvNumbers
    from accnp.lax.enumerations import PrecisionLike

__all__ = [
    "conv", "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches",
    "conv_transpose", "conv_with_general_padding", "convolve", "correlate",
]  # fmt: skip

_NAME = "conv_general_dilated"


@api_boundary
@with_out_sharding
def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Compute a convolution, as it is used in neural networks, with strides and dilations.

    Each output is a sum over input features and taps of a window of the array, times the kernel,
    which is not reversed.

    Parameters
    ----------
    lhs : array_like
        Array with axes for examples and features, and spatial axes.
    rhs : array_like
        Kernel with axes for output features and input features of one group, and spatial axes of
        its taps.
    {window_strides}
    padding : str or sequence of (int, int)
        "SAME", "VALID", "SAME_LOWER", or how many places to add before and after each spatial axis,
        which may be negative.
    {conv_dilations}
    dimension_numbers : None, tuple of str or ConvDimensionNumbers, optional
        Roles of the axes: None stands for ("NCHW", "OIHW", "NCHW"); other strings are for example
        ("NHWC", "HWIO", "NHWC").
    feature_group_count : int, optional
        Number of groups of features that are convolved separately. The default is 1.
    batch_group_count : int, optional
        Number of groups of examples that are convolved separately, each of which gives some of the
        output features. The default is 1.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Convolution, with axes as `dimension_numbers` says.

    Raises
    ------
    TypeError
        If ranks, dtypes or dimension numbers do not fit.
    ValueError
        If sizes, groups or strides do not fit.

    See Also
    --------
    conv, conv_with_general_padding : Shorter forms.
    conv_transpose : Transposed convolution.
    numpy.convolve : Convolution of signals.

    Examples
    --------
    >>> import accnp as jnp
    >>> x, w = jnp.arange(5.0).reshape(1, 1, 5), jnp.ones((1, 1, 3))
    >>> jnp.lax.conv_general_dilated(x, w, (1,), "SAME")
    Array([[[1., 3., 6., 9., 7.]]], dtype=float32)
    """
    x, w = as_node(lhs, f"lax.{_NAME}"), as_node(rhs, f"lax.{_NAME}")
    how = window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    preferred_dtype = preferred_element_type
    if preferred_dtype is not None:
        preferred_dtype = dtypes.requested_dtype(preferred_dtype, f"lax.{_NAME}")
        if preferred_dtype.itemsize < x.aval.dtype.itemsize:
            raise TypeError(
                f"lax.{_NAME}: sums of {x.aval.dtype.name} cannot be narrower; got "
                f"{preferred_dtype.name} (preferred_element_type); convert the result"
            )
    groups = feature_group_count, batch_group_count
    return wrap(_convolve(x, w, *how, *groups, precision, preferred_dtype))


def _convolve(
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
    elif x.aval.dtype == w.aval.dtype == np.dtype(bool):  # "or" of "and"
        count = np.dtype(np.int32)
        x, w = (o.convert_element_type(v, new_dtype=count, weak_type=False) for v in (x, w))
        how = strides, padding, base, dilation, dimension_numbers, features, batches, precision
        y = _convolve(x, w, *how)
        return o.convert_element_type(y, new_dtype=np.dtype(bool), weak_type=False)
    dims = conv_dimension_numbers(x.aval.shape, w.aval.shape, dimension_numbers)
    rank = x.aval.ndim - 2
    strides = as_steps(strides, rank, "window_strides")
    base = as_steps(base, rank, "lhs_dilation")
    dilation = as_steps(dilation, rank, "rhs_dilation")
    spatial = [x.aval.shape[d] for d in dims.lhs_spec[2:]]
    taps = [
        dilated_length(w.aval.shape[d], k) for d, k in zip(dims.rhs_spec[2:], dilation, strict=True)
    ]
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
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute a convolution of an array (N, C, space...) with a kernel (O, I, taps...).

    Parameters
    ----------
    lhs : array_like
        Array with the axes examples, features, space.
    rhs : array_like
        Kernel with the axes output features, input features, taps.
    {window_strides}
    padding : str
        "SAME", "SAME_LOWER" or "VALID".
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Convolution of shape (N, O, space...), of the dtype of both operands or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If ranks or dtypes differ, a stride is less than 1, or an operand is a list.
    ValueError
        If features or the number of strides do not fit.
    RuntimeError
        If `padding` is unknown.

    See Also
    --------
    conv_general_dilated : The general form.

    Examples
    --------
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
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute a convolution as `conv` does, with dilations and any padding.

    Parameters
    ----------
    lhs : array_like
        Array with the axes examples, features, space.
    rhs : array_like
        Kernel with the axes output features, input features, taps.
    {window_strides}
    padding : str or sequence of (int, int)
        "SAME", "SAME_LOWER", "VALID", or how many places to add before and after each spatial axis.
    lhs_dilation : sequence of int or None
        Distance between the elements of the array. None means 1.
    rhs_dilation : sequence of int or None
        Distance between the taps of the kernel. None means 1.
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Convolution of shape (N, O, space...), of the dtype of both operands or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If ranks or dtypes differ, a stride is less than 1, or an operand is a list.
    ValueError
        If features, strides or the padding do not fit.

    See Also
    --------
    conv_general_dilated : The general form.

    Examples
    --------
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
    dimension_numbers: ConvNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Compute a transposed convolution, which increases the size of an array by its strides.

    Parameters
    ----------
    lhs : array_like
        Array, by default with the axes (N, space..., C).
    rhs : array_like
        Kernel, by default with the axes (taps..., I, O).
    strides : sequence of int
        Factors by which the spatial axes of the result are longer.
    padding : str or sequence of (int, int)
        "SAME" (as many elements as the input times the stride), "VALID", or how many places to add
        before and after each spatial axis.
    rhs_dilation : sequence of int, optional
        Distance between the taps of the kernel. The default is 1.
    {conv_dimension_numbers}
    transpose_kernel : bool, optional
        Whether `rhs` is the kernel of the convolution to transpose: taps are reversed, and input
        and output features exchanged. The default is False.
    {precision}
    {preferred_element_type}
    use_consistent_padding : bool, optional
        Whether an explicit padding is that of the convolution to transpose. The default is False.

    Returns
    -------
    Array
        Transposed convolution, of the dtype of both operands or `preferred_element_type`.

    Raises
    ------
    TypeError
        If ranks or dtypes differ, or a stride is less than 1.
    ValueError
        If features, the number of strides or the padding do not fit, or dimension numbers are
        missing for more than 3 spatial axes.

    See Also
    --------
    conv_general_dilated : The convolution.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.conv_transpose(jnp.ones((1, 3, 1)), jnp.ones((2, 1, 1)), (2,), "SAME").shape
    (1, 6, 1)
    """
    x, w = as_node(lhs, "lax.conv_transpose"), as_node(rhs, "lax.conv_transpose")
    rank = x.aval.ndim - 2
    if dimension_numbers is None:
        if not 0 <= rank <= 3:
            raise ValueError(
                "conv_transpose: No 4+ dimensional dimension_number defaults; got an operand of "
                f"shape {x.aval.shape}; pass dimension_numbers"
            )
        space = _LETTERS[:rank]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    dims = conv_dimension_numbers(x.aval.shape, w.aval.shape, dimension_numbers)
    strides = as_steps(strides, rank, "window_strides")
    dilation = as_steps(rhs_dilation, rank, "rhs_dilation")
    spans = [
        dilated_length(w.aval.shape[d], k) for d, k in zip(dims.rhs_spec[2:], dilation, strict=True)
    ]
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
    preferred_dtype = preferred_element_type
    if preferred_dtype is not None:
        preferred_dtype = dtypes.requested_dtype(preferred_dtype, "lax.conv_transpose")
    one = (1,) * rank
    return wrap(
        _convolve(x, w, one, pads, strides, dilation, dims, 1, 1, precision, preferred_dtype)
    )


@api_boundary
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Extract the windows of a convolution as output features.

    Parameters
    ----------
    lhs : array_like
        Array of any numeric dtype, with axes as in `conv_general_dilated`.
    filter_shape : sequence of int
        Number of taps along each spatial axis.
    {window_strides}
    padding : str or sequence of (int, int)
        Padding, as in `conv_general_dilated`.
    {conv_dilations}
    {conv_dimension_numbers}
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Windows, in the shape of the convolution. It has one feature for each input feature and tap;
        taps vary fastest.

    Raises
    ------
    TypeError
        If there is not one number of taps for each spatial axis.
    ValueError
        If the number of strides does not fit.
    RuntimeError
        If the padding is unknown.

    See Also
    --------
    conv_general_dilated : Weighted sums of the windows.
    conv_general_dilated_local : The same with a kernel for each place.

    Examples
    --------
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
    preferred_dtype = preferred_element_type
    if preferred_dtype is not None:
        preferred_dtype = dtypes.requested_dtype(
            preferred_dtype, "lax.conv_general_dilated_patches"
        )
    return wrap(_extract_patches(x, sizes, *how, precision, preferred_dtype))


def _extract_patches(
    x: Node, sizes: tuple[int, ...], strides: Any, padding: Any, base: Any, dilation: Any,
    dimension_numbers: Any, precision: Any, preferred_dtype: Any = None,
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
    return _convolve(x, w, *how, dims, inputs, 1, precision, preferred_dtype)


@api_boundary
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """Compute a convolution with a separate kernel at each place.

    Parameters
    ----------
    lhs : array_like
        Array, with axes as in `conv_general_dilated`.
    rhs : array_like
        Kernels, with the axes output features, input features times taps, and the places of the
        result.
    {window_strides}
    padding : str or sequence of (int, int)
        Padding, as in `conv_general_dilated`.
    filter_shape : sequence of int
        Number of taps along each spatial axis.
    {conv_dilations}
    {conv_dimension_numbers}
    {precision}

    Returns
    -------
    Array
        Sums, in the shape of the convolution and the promoted dtype of the operands.

    Raises
    ------
    TypeError
        If ranks differ, or kernels do not fit features, taps or places.
    ValueError
        If the number of strides or taps does not fit.
    RuntimeError
        If the padding is unknown.

    See Also
    --------
    conv_general_dilated : One kernel for all places.
    conv_general_dilated_patches : Windows of an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> x, w = jnp.ones((1, 1, 4)), jnp.arange(6.0).reshape(1, 2, 3)
    >>> jnp.lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,))
    Array([[[3., 5., 7.]]], dtype=float32)
    """
    x, w = (as_node(v, "lax.conv_general_dilated_local") for v in (lhs, rhs))
    dims = conv_dimension_numbers(x.aval.shape, w.aval.shape, dimension_numbers)
    sizes = tuple(as_int(v, "lax.conv_general_dilated_local") for v in filter_shape)
    how = window_strides, padding, lhs_dilation, rhs_dilation
    patches = _extract_patches(x, sizes, *how, dims, precision)
    contract = (dims.rhs_spec[1],), (dims.out_spec[1],)
    batch = (dims.rhs_spec[2:], dims.out_spec[2:])
    wide, _ = dtypes.promote(tuple([(v.aval.dtype, v.aval.weak_type) for v in (w, patches)]))
    y = dot(w, patches, contract, batch, wide)
    n = len(sizes)  # the axes of y: space, output features, batch
    order = [0] * (n + 2)
    for d, axis in zip(dims.out_spec, (n + 1, n, *range(n)), strict=True):
        order[d] = axis
    return wrap(o.transpose(y, permutation=tuple(order)))


# --- one axis ------------------------------------------------------------------------------------


def _line(
    name: str, x: Node, y: Node, mode: str, precision: Any, preferred: Any, early: bool = True
) -> Node:
    """Slide y along x, both vectors, without reversing y, as in a correlation.

    For "same" with an even length of y, windows are shifted by half an element to the left if
    `early`, otherwise to the right.
    """
    n, m = x.aval.shape[0], y.aval.shape[0]
    same = m // 2, m - m // 2 - 1
    pads = {"full": (m - 1, m - 1), "same": same if early else same[::-1], "valid": (0, 0)}
    if not isinstance(as_static(mode, name), str) or mode not in pads:
        raise ValueError(
            f"mode must be one of ['full', 'same', 'valid']; got {mode!r}; pass one of these"
        )
    if preferred is not None:
        preferred = dtypes.requested_dtype(preferred, f"jnp.{name}")
    x = o.broadcast_in_dim(x, shape=(1, 1, n), broadcast_dimensions=(2,))
    y = o.broadcast_in_dim(y, shape=(1, 1, m), broadcast_dimensions=(2,))
    out = _convolve(x, y, (1,), [pads[mode]], precision=precision, preferred=preferred)
    return o.squeeze(out, dimensions=(0, 1))


def _lines(name: str, a: Any, v: Any, preferred: Any) -> tuple[Node, Node]:
    x, y = (promote_inexact if preferred is None else promote)(name, a, v)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        raise ValueError(
            f"{name}: expected vectors; got shapes {x.aval.shape} and {y.aval.shape}; ravel them"
        )
    if not x.aval.size or not y.aval.size:
        raise ValueError(
            f"{name}: vectors must not be empty; got shapes {x.aval.shape} and "
            f"{y.aval.shape}; pass at least one element"
        )
    return x, y


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the discrete convolution of two vectors.

    Parameters
    ----------
    a : array_like
        First vector. Lists and tuples are not accepted.
    v : array_like
        Second vector, which is reversed.
    {conv_mode}
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Vector of the sums. Integers give the default float dtype, unlike in NumPy.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number.
    ValueError
        If an operand is not a vector or has no elements, or the mode is unknown.

    See Also
    --------
    correlate : The same without reversal.
    scipy.signal.fftconvolve : Convolution by Fourier transforms, for long vectors.
    lax.conv_general_dilated : Convolution in several dimensions.
    polymul : Product of polynomials.

    Examples
    --------
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
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the cross-correlation of two vectors.

    Parameters
    ----------
    a : array_like
        First vector. Lists and tuples are not accepted.
    v : array_like
        Second vector, which is conjugated.
    {conv_mode}
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Vector of the sums. Integers give the default float dtype, unlike in NumPy.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number.
    ValueError
        If an operand is not a vector or has no elements, or the mode is unknown.

    See Also
    --------
    convolve : The same with the second vector reversed.
    corrcoef : Correlation coefficients of variables.
    scipy.signal.correlate : Correlation in several dimensions.

    Examples
    --------
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


convolve = api_boundary(compiled_if_small("a", "v")(named(convolve, arrays=2)))
correlate = api_boundary(compiled_if_small("a", "v")(named(correlate, arrays=2)))
