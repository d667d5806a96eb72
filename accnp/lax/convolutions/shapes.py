"""Shapes of convolutions: dimension numbers in any form, padding and result shapes.

`convolution.py` normalizes its static arguments with these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.shapes import as_int
from accnp.errors import api_boundary, not_one_of
from accnp.primitives.convolution import ConvDimensionNumbers
from accnp.primitives.windows import pads_of

__all__ = [
    "as_pads", "as_steps", "check_preferred", "conv_dimension_numbers", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple",
    "transposed_pads",
]  # fmt: skip

# Dimension numbers that functions accept: None, or three strings or sequences of axes.
ConvNumbers = ConvDimensionNumbers | Sequence[str] | Sequence[Sequence[int]] | None

_NAME = "conv_general_dilated"


def check_preferred(dtype: np.dtype, preferred_dtype: np.dtype, name: str) -> None:
    """Raise TypeError unless `preferred_dtype` is of the kind of `dtype` and at least as wide."""
    groups = [np.integer, np.floating, np.complexfloating]
    old, new = ([dtypes.issubdtype(d, g) for g in groups] for d in (dtype, preferred_dtype))
    if old[0] and new[1]:
        fits = True
    else:
        signed = [dtypes.issubdtype(d, np.signedinteger) for d in (dtype, preferred_dtype)]
        fits = all(b for a, b in zip(old, new, strict=True) if a) and signed[0] <= signed[1]
    if not fits or preferred_dtype.itemsize < dtype.itemsize:
        raise TypeError(
            f"{name}: sums of {dtype.name} need a dtype of the same kind that is not narrower; got "
            f"{preferred_dtype.name} (preferred_element_type); convert the result with astype"
        )


# --- dimension numbers ---------------------------------------------------------------------------


@api_boundary
def conv_general_permutations(dimension_numbers: Sequence[str]) -> ConvDimensionNumbers:
    """Return the roles of axes that three strings stand for.

    Parameters
    ----------
    dimension_numbers : sequence of str
        Three strings such as ("NHWC", "HWIO", "NHWC").

    Returns
    -------
    ConvDimensionNumbers
        Tuples of integers for array, kernel and result; the axes of examples and features come
        first.

    Raises
    ------
    TypeError
        If there are not three strings, a letter is missing or given twice, or spatial axes differ.

    See Also
    --------
    conv_dimension_numbers : The same for other notations, too.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.conv_general_permutations(("NWC", "WIO", "NCW"))
    ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 1, 2))
    """
    if not isinstance(dimension_numbers, list | tuple) or len(dimension_numbers) != 3:
        raise TypeError(
            "convolution: dimension_numbers must be a tuple/list of length 3; got "
            f"{dimension_numbers!r}; pass strings such as ('NCH', 'OIH', 'NCH')"
        )
    lhs, rhs, out = dimension_numbers
    for name, text, letters in (("lhs", lhs, "NC"), ("rhs", rhs, "OI"), ("out", out, "NC")):
        if any(text.count(c) != 1 for c in letters) or len(set(text)) != len(text):
            raise TypeError(
                f"convolution: dimension_numbers ({name}) must contain the characters "
                f"{letters[0]!r} and {letters[1]!r} exactly once, and no other twice; "
                f"got {text!r}; name each axis once"
            )
    space = [c for c in rhs if c not in "OI"]
    if not set(lhs) - set("NC") == set(out) - set("NC") == set(space):
        raise TypeError(
            "convolution: dimension_numbers must name the same spatial axes in all three; got "
            f"{tuple(dimension_numbers)}; use one letter for each axis"
        )
    specs = [
        tuple(text.index(c) for c in (*letters, *space))
        for text, letters in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    ]
    return ConvDimensionNumbers(*specs)


def _shapes(lhs_shape: Any, rhs_shape: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of an array and a kernel of the same rank, which must be at least 2."""
    try:
        lhs, rhs = tuple(lhs_shape), tuple(rhs_shape)
    except TypeError:
        raise TypeError(
            f"convolution: shapes must be integer sequences; got {lhs_shape!r} and {rhs_shape!r}; "
            "pass the shapes of both arrays"
        ) from None
    if len(lhs) != len(rhs):
        raise TypeError(
            f"convolution: both arrays must have the same rank; got shapes {lhs} and {rhs}; add "
            "axes to one"
        )
    if len(lhs) < 2:
        raise ValueError(
            f"convolution: batch and feature axes are required; got shapes {lhs} and {rhs}; "
            "use lax.dot_general for products without such axes"
        )
    return lhs, rhs


@api_boundary
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return the roles of axes of a convolution in normal form.

    Parameters
    ----------
    lhs_shape : sequence of int
        Lengths of the axes of the array.
    rhs_shape : sequence of int
        Lengths of the axes of the kernel, as many as of the array.
    dimension_numbers : None, sequence of str, sequence of sequences or ConvDimensionNumbers
        Roles of the axes in any notation. None stands for (N, C, space...).

    Returns
    -------
    ConvDimensionNumbers
        Tuples of integers for array, kernel and result.

    Raises
    ------
    TypeError
        If ranks differ, or the dimension numbers have another form or do not fit the rank.
    ValueError
        If the rank is less than 2.

    See Also
    --------
    conv_general_dilated : Function that accepts these numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.conv_dimension_numbers((1, 2, 8), (3, 2, 5), None)
    ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    lhs_shape, rhs_shape = _shapes(lhs_shape, rhs_shape)
    rank = len(lhs_shape)
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if not isinstance(dimension_numbers, list | tuple) or len(dimension_numbers) != 3:
        raise TypeError(
            "convolution: dimension_numbers must be a tuple/list of length 3 or None; got "
            f"{dimension_numbers!r}; pass strings such as ('NCH', 'OIH', 'NCH')"
        )
    if not all(isinstance(s, str) for s in dimension_numbers):
        specs = [tuple(int(d) for d in s) for s in dimension_numbers]
        if any(sorted(s) != list(range(rank)) for s in specs):
            raise TypeError(
                f"convolution: dimension_numbers must be permutations of the axes; got {specs} for "
                f"arrays of rank {rank}; name each axis once"
            )
        return ConvDimensionNumbers(*specs)
    for text in dimension_numbers:
        if len(text) != rank:
            raise TypeError(
                f"convolution: dimension_numbers must name {rank} axes; got {text!r} for shapes "
                f"{tuple(lhs_shape)} and {tuple(rhs_shape)}; use one letter for each axis"
            )
    return conv_general_permutations(dimension_numbers)


# --- arguments -----------------------------------------------------------------------------------


def as_steps(values: Any, rank: int, name: str) -> tuple[int, ...]:
    """Return one positive integer for each spatial axis; dilations may be None."""
    if values is None and name != "window_strides":
        return (1,) * rank
    if values is None:
        raise TypeError(f"{_NAME}: {name} must be integers; got None; pass {(1,) * rank}")
    steps = tuple(as_int(v, f"lax.{_NAME}", f"each of {name}") for v in values)
    if len(steps) != rank:
        raise ValueError(
            f"{_NAME}: {name} needs one number for each of {rank} spatial axes; got {steps}; "
            "pass that many"
        )
    if any(v < 1 for v in steps):
        what = "strides" if name == "window_strides" else "dilations"
        raise TypeError(f"convolution: all {what} must be positive; got {steps}; pass 1 or more")
    return steps


def as_pads(padding: Any, spatial: Any, taps: Any, strides: Any, base: Any) -> tuple[Any, ...]:
    """Return (low, high) for each spatial axis; `taps` are kernel sizes including dilation."""
    if isinstance(padding, str):
        kind = padding.upper()
        if kind not in ("SAME", "VALID", "SAME_LOWER"):
            raise RuntimeError(
                "convolution: padding must be 'VALID', 'SAME', 'SAME_LOWER' or "
                f"pairs; got {padding!r}; pass one of these"
            )
        if any(d != 1 for d in base):
            raise ValueError(
                f"{_NAME}: named padding does not support lhs_dilation; got "
                f"{padding!r}; pass pairs, or use lax.conv_transpose"
            )
        return tuple(pads_of(spatial, taps, strides, kind))
    try:
        pairs = tuple((as_int(a, _NAME), as_int(b, _NAME)) for a, b in padding)
    except (TypeError, ValueError) as e:
        raise ValueError(
            "convolution: padding must be a string or pairs (low, high); got "
            f"{padding!r}; pass one for each spatial axis"
        ) from e
    if len(pairs) != len(taps):
        raise TypeError(
            f"convolution: padding must have one pair for each spatial axis; got {len(pairs)} "
            f"for {len(taps)}; pass that many"
        )
    return pairs


def transposed_pads(span: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding of a transposed convolution."""
    kind = padding.upper()
    if kind == "SAME":
        total = span + stride - 2
        before = span - 1 if stride > span - 1 else -(-total // 2)
    elif kind == "VALID":
        total = span + stride - 2 + max(span - stride, 0)
        before = span - 1
    else:
        raise not_one_of("conv_transpose", "padding", padding, ("SAME", "VALID"))
    return before, total - before


# --- shapes --------------------------------------------------------------------------------------


@api_boundary
def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Return the shape of a convolution of (N, C, space...) with (O, I, taps...).

    Parameters
    ----------
    lhs_shape : sequence of int
        Lengths of the axes of the array.
    rhs_shape : sequence of int
        Lengths of the axes of the kernel.
    strides : sequence of int
        Distance between windows along each spatial axis.
    pads : str or sequence of (int, int)
        Name of a padding, or how many places to add before and after each spatial axis.
    batch_group_count : int, optional
        Number of groups of examples. The default is 1.

    Returns
    -------
    tuple of int
        Shape of the result. Numbers of features are not checked.

    Raises
    ------
    TypeError
        If ranks or numbers of pads differ, or a stride is less than 1.
    ValueError
        If the number of strides, the pads or `batch_group_count` do not fit.
    RuntimeError
        If the padding is unknown.

    See Also
    --------
    conv_general_shape_tuple : The same for any order of axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.conv_shape_tuple((1, 2, 8), (3, 2, 3), (1,), "VALID")
    (1, 3, 6)
    """
    lhs_shape, rhs_shape = _shapes(lhs_shape, rhs_shape)
    if batch_group_count < 1 or lhs_shape[0] % batch_group_count:
        raise ValueError(
            "convolution: batch_group_count must divide the batch size; got "
            f"{batch_group_count} for {lhs_shape[0]}; pass a divisor of it"
        )
    strides = as_steps(strides, len(lhs_shape) - 2, "window_strides")
    pads = as_pads(pads, lhs_shape[2:], rhs_shape[2:], strides, ())
    space = [
        max(0, (n + a + b - k) // s + 1)
        for n, k, s, (a, b) in zip(lhs_shape[2:], rhs_shape[2:], strides, pads, strict=True)
    ]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


def _permute_shapes(lhs_shape: Any, rhs_shape: Any, dimension_numbers: Any) -> tuple[Any, Any, Any]:
    """Return the shapes in the order (N, C, space...) and (O, I, taps...), and the positions of the
    axes of the result."""
    lhs_shape, rhs_shape = _shapes(lhs_shape, rhs_shape)
    dims = conv_general_permutations(dimension_numbers)
    if len(dims.lhs_spec) != len(lhs_shape):
        raise TypeError(
            f"convolution: dimension_numbers must name {len(lhs_shape)} axes; got "
            f"{dimension_numbers!r}; name each axis once"
        )
    x, w = [lhs_shape[d] for d in dims.lhs_spec], [rhs_shape[d] for d in dims.rhs_spec]
    return x, w, np.argsort(dims.out_spec)


@api_boundary
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Return the shape of a convolution with given dimension numbers.

    Parameters
    ----------
    {conv_shapes}

    Returns
    -------
    tuple of int
        Shape of the result.

    Raises
    ------
    TypeError
        If dimension numbers do not fit, or a stride is less than 1.
    ValueError
        If the number of strides or the padding does not fit.
    RuntimeError
        If the padding is unknown.

    See Also
    --------
    conv_shape_tuple : The same for the default order of axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> numbers = ("NCH", "OIH", "NCH")
    >>> jnp.lax.conv_general_shape_tuple((1, 1, 5), (2, 1, 3), (1,), "VALID", numbers)
    (1, 2, 3)
    """
    x, w, order = _permute_shapes(lhs_shape, rhs_shape, dimension_numbers)
    y = conv_shape_tuple(x, w, window_strides, padding)
    return tuple(y[k] for k in order)


@api_boundary
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Return the shape of a transposed convolution with given dimension numbers.

    Parameters
    ----------
    {conv_shapes}

    Returns
    -------
    tuple of int
        Shape of the result.

    Raises
    ------
    TypeError
        If dimension numbers do not fit, or a stride is less than 1.
    ValueError
        If the number of strides does not fit, or a string is neither "SAME" nor "VALID".

    See Also
    --------
    conv_transpose : The transposed convolution.

    Examples
    --------
    >>> import accnp as jnp
    >>> numbers = ("NCH", "IOH", "NCH")
    >>> jnp.lax.conv_transpose_shape_tuple((1, 1, 3), (1, 2, 3), (2,), "VALID", numbers)
    (1, 2, 7)
    """
    x, w, order = _permute_shapes(lhs_shape, rhs_shape, dimension_numbers)
    steps = as_steps(window_strides, len(x) - 2, "window_strides")
    if isinstance(padding, str):
        pads = [transposed_pads(k, s, padding) for k, s in zip(w[2:], steps, strict=True)]
    else:
        pads = as_pads(padding, x[2:], w[2:], steps, ())
    space = [
        (n - 1) * s + 1 + a + b - k + 1
        for n, k, s, (a, b) in zip(x[2:], w[2:], steps, pads, strict=True)
    ]
    y = (x[0], w[0], *space)
    return tuple(y[k] for k in order)
