"""Window functions for spectral analysis.

Formulas: F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform", Proc. IEEE 66 (1978).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.shapes import as_static
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import arange, asarray, ones

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _points(M: Any, name: str) -> tuple[int, Array | None]:
    """Return the number of points, and the vector 0, 1, ... if there is more than one."""
    value = as_static(M, f"jnp.{name}")
    if not isinstance(value, int | float | np.number | np.ndarray) or np.ndim(value):
        raise TypeError(f"jnp.{name}: M must be the number of points; got {M!r}; pass an int")
    count = int(value)  # as in JAX, fractions are dropped
    if count < 0:
        raise TypeError(
            f"jnp.{name}: the number of points cannot be negative; got M={M}; pass 0 or more"
        )
    kind = dtypes.canonicalize_dtype(np.dtype(np.float64))
    return count, None if count < 2 else arange(count, dtype=kind)


def _cosines(M: Any, name: str, *weights: float) -> Array:
    """Return the sum of weights[k] * cos(2 pi k n / (M - 1))."""
    count, n = _points(M, name)
    if n is None:
        return ones(count)
    total = asarray(weights[0], dtype=n.dtype)
    for k, weight in enumerate(weights[1:], 1):
        total = total + weight * uf.cos(2 * math.pi * k / (count - 1) * n)
    return total


@api_boundary
def bartlett(M: int) -> Array:
    """Return the Bartlett window, a triangle that is 0 at both ends and 1 in the middle.

    Parameters
    ----------
    {window_points}

    Returns
    -------
    Array
        Samples, a vector of length M of dtype float32 (float64 with `jax_enable_x64`).

    Raises
    ------
    {raises_window}

    See Also
    --------
    blackman, hamming, hanning, kaiser : Other windows.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    count, n = _points(M, "bartlett")
    return ones(count) if n is None else 1 - uf.abs(2 * n / (count - 1) - 1)


@api_boundary
def blackman(M: int) -> Array:
    """Return the Blackman window, a sum of cosines with small side lobes.

    Parameters
    ----------
    {window_points}

    Returns
    -------
    Array
        Samples, a vector of length M of dtype float32 (float64 with `jax_enable_x64`).

    Raises
    ------
    {raises_window}

    See Also
    --------
    bartlett, hamming, hanning, kaiser : Other windows.

    Notes
    -----
    The samples are `0.42 - 0.5 * cos(x) + 0.08 * cos(2 * x)` for x from 0 to 2 pi.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.blackman(3).round(3)
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _cosines(M, "blackman", 0.42, -0.5, 0.08)


@api_boundary
def hamming(M: int) -> Array:
    """Return the Hamming window, a cosine on a pedestal.

    Parameters
    ----------
    {window_points}

    Returns
    -------
    Array
        Samples, a vector of length M of dtype float32 (float64 with `jax_enable_x64`).

    Raises
    ------
    {raises_window}

    See Also
    --------
    bartlett, blackman, hanning, kaiser : Other windows.

    Notes
    -----
    The samples are `0.54 - 0.46 * cos(x)` for x from 0 to 2 pi.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.hamming(3).round(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _cosines(M, "hamming", 0.54, -0.46)


@api_boundary
def hanning(M: int) -> Array:
    """Return the Hann window, a raised cosine.

    Parameters
    ----------
    {window_points}

    Returns
    -------
    Array
        Samples, a vector of length M of dtype float32 (float64 with `jax_enable_x64`).

    Raises
    ------
    {raises_window}

    See Also
    --------
    bartlett, blackman, hamming, kaiser : Other windows.

    Notes
    -----
    The samples are `0.5 - 0.5 * cos(x)` for x from 0 to 2 pi.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.hanning(3).round(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _cosines(M, "hanning", 0.5, -0.5)


@api_boundary
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Return the Kaiser window, whose shape is given by a parameter.

    Parameters
    ----------
    {window_points}
    beta : scalar
        Parameter of the shape; it may be traced. 0 gives ones, and larger values narrower windows.

    Returns
    -------
    Array
        Samples, a vector of length M of dtype float32 (float64 with `jax_enable_x64`).

    Raises
    ------
    {raises_window}

    See Also
    --------
    bartlett, blackman, hamming, hanning : Other windows.
    i0 : Modified Bessel function.

    Notes
    -----
    The samples are `i0(beta * sqrt(1 - x**2)) / i0(beta)` for x from -1 to 1.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    count, n = _points(M, "kaiser")
    if n is None:
        return ones(count)
    half = 0.5 * (count - 1)
    shape = asarray(beta, dtype=n.dtype)
    return uf.i0(shape * uf.sqrt(1 - ((n - half) / half) ** 2)) / uf.i0(shape)
