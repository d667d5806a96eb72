"""Convolutions and correlations of two arrays of the same rank.

In every mode the result is a part of the full convolution: `count` elements from `begin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.api.arguments.convert import promote_inexact, wrap
from accnp.api.arguments.shapes import as_axes
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary, not_one_of
from accnp.lax.convolutions.convolution import conv_general_dilated
from accnp.numpy import ufuncs as uf
from accnp.numpy.fft import transforms
from accnp.numpy.rearranging import flip

if TYPE_CHECKING:
    from accnp.lax.enumerations import PrecisionLike

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

_MODES = ("full", "same", "valid")


def _pair(name: str, in1: Any, in2: Any, mode: str) -> tuple[Array, Array]:
    x, y = (wrap(n) for n in promote_inexact(name, in1, in2))
    if mode not in _MODES:
        raise not_one_of(name, "mode", mode, _MODES)
    if x.ndim != y.ndim:
        raise ValueError(
            f"{name}: both arrays must have the same number of dimensions; got shapes {x.shape} "
            f"and {y.shape}; add axes to one with x[None]"
        )
    return x, y


def _result_range(mode: str, n: int, m: int) -> tuple[int, int]:
    """Return where the result begins in the full one, of length n + m - 1, and its length."""
    if mode == "full":
        return 0, n + m - 1
    if mode == "same":
        return (m - 1) // 2, n
    return min(n, m) - 1, abs(n - m) + 1


def _larger_first(name: str, x: Array, y: Array) -> tuple[Array, Array]:
    """Return the two arrays, the one with the longer axes first."""
    if all(n >= m for n, m in zip(x.shape, y.shape, strict=True)):
        return x, y
    if any(n > m for n, m in zip(x.shape, y.shape, strict=True)):
        raise ValueError(
            f"{name}: one array must be at least as long as the other along every axis; got shapes "
            f"{x.shape} and {y.shape}; use mode='same' or 'full'"
        )
    return y, x


def _direct(
    name: str, x: Array, y: Array, parts: Sequence[tuple[int, int]], precision: Any
) -> Array:
    """Compute a part of the full convolution: a begin and a count for each axis."""
    if not x.size or not y.size:
        raise ValueError(
            f"{name}: arrays cannot be empty; got shapes {x.shape} and {y.shape}; pad them first"
        )
    long, short = _larger_first(name, x, y)
    pads = [
        (m - 1 - begin, begin + count - n)
        for n, m, (begin, count) in zip(long.shape, short.shape, parts, strict=True)
    ]
    taps = flip(short)[None, None]
    return conv_general_dilated(
        long[None, None], taps, (1,) * x.ndim, pads, precision=precision
    )[0, 0]  # fmt: skip


@api_boundary
def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Convolve two arrays by the product of their Fourier transforms.

    Parameters
    ----------
    {in1_in2}
    {mode_convolve}
    axes : int or sequence of int, optional
        Axes to convolve along; the others have equal lengths. The default is all axes.

    Returns
    -------
    Array
        Convolution of the promoted floating or complex dtype.

    Raises
    ------
    ValueError
        If ranks or lengths do not fit, or `mode` is unknown.

    See Also
    --------
    convolve : The same by sums of products.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.scipy.signal.fftconvolve(jnp.array([1.0, 2, 3]), jnp.array([1.0, 1]))
    >>> jnp.round(x)
    Array([1., 3., 5., 3.], dtype=float32)
    """
    name = "signal.fftconvolve"
    x, y = _pair(name, in1, in2, mode)
    along = tuple(range(x.ndim)) if axes is None else as_axes(axes, x.ndim, name)
    for d, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)):
        if d not in along and n != m:
            raise ValueError(
                f"{name}: axis {d} is not convolved, so both lengths must be equal; got shapes "
                f"{x.shape} and {y.shape}; broadcast one of them"
            )
    if mode == "valid":
        _larger_first(name, x, y)
    lengths = [(x.shape[d], y.shape[d]) for d in along]
    if all(1 in pair for pair in lengths):
        whole = x * y
    else:
        full = [n + m - 1 for n, m in lengths]
        if x.dtype.kind == "c":
            spectrum = transforms.fftn(x, full, along) * transforms.fftn(y, full, along)
            whole = transforms.ifftn(spectrum, full, along)
        else:
            spectrum = transforms.rfftn(x, full, along) * transforms.rfftn(y, full, along)
            whole = transforms.irfftn(spectrum, full, along)
    cuts = [slice(None)] * x.ndim
    for d, (n, m) in zip(along, lengths, strict=True):
        begin, count = _result_range(mode, n, m)
        cuts[d] = slice(begin, begin + count)
    return whole[tuple(cuts)]


def _convolve(name: str, in1: Any, in2: Any, mode: str, precision: Any) -> Array:
    x, y = _pair(name, in1, in2, mode)
    parts = [_result_range(mode, n, m) for n, m in zip(x.shape, y.shape, strict=True)]
    return _direct(name, x, y, parts, precision)


@api_boundary
def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Convolve two arrays of the same rank.

    Parameters
    ----------
    {in1_in2}
    {mode_convolve}
    method : {"auto", "direct", "fft"}, optional
        "direct" sums products, "fft" uses Fourier transforms, and "auto", the default, is "direct".
    {precision}

    Returns
    -------
    Array
        Convolution of the promoted floating or complex dtype.

    Raises
    ------
    ValueError
        If an array is empty, ranks or lengths do not fit, or `mode` or `method` is unknown.

    See Also
    --------
    fftconvolve : The same by Fourier transforms.
    correlate : Cross-correlation.
    convolve2d : The same for two axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.signal.convolve(jnp.array([1.0, 2, 3]), jnp.array([1.0, 1]), mode="same")
    Array([1., 3., 5.], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise not_one_of("signal.convolve", "method", method, ("auto", "direct"))
    return _convolve("signal.convolve", in1, in2, mode, precision)


@api_boundary
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Compute the cross-correlation of two arrays of the same rank.

    Parameters
    ----------
    {in1_in2}
    {mode_convolve}
    method : {"auto", "direct", "fft"}, optional
        "direct" sums products, "fft" uses Fourier transforms, and "auto", the default, is "direct".
    {precision}

    Returns
    -------
    Array
        Sums of products of `in1` with the shifted conjugate of `in2`. Integers give float32.

    Raises
    ------
    TypeError
        If an operand is not an array.
    ValueError
        If ranks differ, or `mode` or `method` is unknown.

    See Also
    --------
    convolve : Convolution.
    correlate2d : The same for two axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.signal.correlate(jnp.array([1.0, 2, 3]), jnp.array([0.0, 1]), mode="valid")
    Array([2., 3.], dtype=float32)
    """
    _, y = promote_inexact("signal.correlate", in1, in2)
    return convolve(in1, flip(uf.conj(wrap(y))), mode, method, precision)


def _two_axes(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}: outside there are zeros (boundary='fill', fillvalue=0); got "
            f"boundary={boundary!r}, fillvalue={fillvalue!r}; pad the array with jnp.pad"
        )
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(
            f"{name}: both arrays must have 2 dimensions; got shapes {np.shape(in1)} and "
            f"{np.shape(in2)}; convolve takes any rank"
        )


@api_boundary
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Convolve two arrays of two axes.

    Parameters
    ----------
    {in1_in2}
    {mode_convolve}
    {boundary_2d}
    {precision}

    Returns
    -------
    Array
        Convolution of two axes. Integers give float32.

    Raises
    ------
    {raises_2d}

    See Also
    --------
    convolve : The same for any rank.
    correlate2d : Cross-correlation.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.signal.convolve2d(jnp.eye(2), jnp.ones((2, 1)), mode="valid")
    Array([[1., 1.]], dtype=float32)
    """
    name = "signal.convolve2d"
    _two_axes(name, in1, in2, boundary, fillvalue)
    return _convolve(name, in1, in2, mode, precision)


@api_boundary
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Compute the cross-correlation of two arrays of two axes.

    Parameters
    ----------
    {in1_in2}
    {mode_convolve}
    {boundary_2d}
    {precision}

    Returns
    -------
    Array
        Cross-correlation of two axes, with the conjugate of `in2`. Integers give float32.

    Raises
    ------
    {raises_2d}

    See Also
    --------
    correlate : The same for any rank.
    convolve2d : Convolution.

    Notes
    -----
    If there are two middles for mode "same", the later one is used, where `correlate` uses the
    earlier one.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.signal.correlate2d(jnp.eye(2), jnp.array([[0.0], [1.0]]), mode="valid")
    Array([[0., 1.]], dtype=float32)
    """
    name = "signal.correlate2d"
    _two_axes(name, in1, in2, boundary, fillvalue)
    x, y = _pair(name, in1, in2, mode)
    inside = mode == "valid" and x.shape != y.shape
    if inside and all(n <= m for n, m in zip(x.shape, y.shape, strict=True)):
        # As in SciPy, if the arrays are swapped, the smaller one is conjugated.
        x, y = uf.conj(x), flip(y)
    else:
        y = flip(uf.conj(y))
    parts = [_result_range(mode, n, m) for n, m in zip(x.shape, y.shape, strict=True)]
    if mode == "same":
        parts = [(m - 1 - begin, n) for (begin, n), m in zip(parts, y.shape, strict=True)]
    return _direct(name, x, y, parts, precision)
