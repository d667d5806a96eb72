"""Spectra of signals from overlapping segments, which are detrended, windowed and transformed.

Method: P. D. Welch, IEEE Trans. Audio Electroacoust. 15 (1967).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import broadcasts_inside, promotes_inside
from accnp.api.arguments.shapes import AxesLike, as_axis, as_int, as_static
from accnp.api.arguments.values import inexact_arrays
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary, not_one_of, warn
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import arange, array, asarray, zeros
from accnp.numpy.fft import transforms
from accnp.numpy.joining import concatenate
from accnp.numpy.manipulation import broadcast_shapes, moveaxis
from accnp.numpy.means import mean
from accnp.numpy.padding import pad
from accnp.numpy.quantiles import median
from accnp.numpy.rearranging import flip
from accnp.numpy.selection import where

__all__ = ["csd", "detrend", "istft", "stft", "welch"]
_TRENDS = ("constant", "linear")

Detrend = bool | str | Callable[[Array], Array]
Window = str | tuple[str | float, ...] | ArrayLike


@api_boundary
@broadcasts_inside
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: AxesLike = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtract the mean or a least-squares line along an axis.

    Parameters
    ----------
    data : array_like
        Signal, or a list. Integers give the default float dtype.
    axis : int, optional
        Axis of the signal. The default is the last one.
    type : {"linear", "constant"}, optional
        Whether to subtract a line, the default, or the mean.
    bp : int or sequence of int, optional
        Static indices at which further lines start. The default is one line.
    overwrite_data : None, optional
        Not supported, since arrays are immutable.

    Returns
    -------
    Array
        Signal without its trend, of the shape of `data`.

    Raises
    ------
    ValueError
        If `type` is unknown, or an index is out of bounds.
    NotImplementedError
        If `overwrite_data` is given.

    See Also
    --------
    welch, csd, stft : Functions that can remove trends.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.signal.detrend(jnp.array([1.0, 2.0, 6.0]), type="constant")
    Array([-2., -1.,  3.], dtype=float32)
    """
    name = "signal.detrend"
    if overwrite_data is not None:
        raise NotImplementedError(
            f"{name}: arrays are never written to; got overwrite_data={overwrite_data!r}; leave it"
        )
    if type not in _TRENDS:
        raise not_one_of(name, "type", type, _TRENDS)
    (x,) = inexact_arrays(name, data)
    if type == "constant":
        return x - mean(x, axis, keepdims=True)
    d = as_axis(axis, x.ndim, name)
    n = x.shape[d]
    breaks = np.unique(np.append(as_static(bp, name), [0, n]).astype(int))
    if breaks[0] < 0 or breaks[-1] > n:
        raise ValueError(
            f"{name}: breaks lie from 0 to the length of the axis, {n}; got bp={bp}; pass such"
        )
    x = moveaxis(x, d, -1)
    pieces = [_subtract_line(x[..., int(start) : int(stop)]) for start, stop in pairwise(breaks)]
    return moveaxis(concatenate(pieces, axis=-1) if len(pieces) > 1 else pieces[0], -1, d)


def _subtract_line(x: Array) -> Array:
    """Subtract the least-squares line along the last axis."""
    n = x.shape[-1]
    x = x - mean(x, -1, keepdims=True)
    if n < 2:
        return x
    places = np.arange(n) - (n - 1) / 2
    slope = (x * array(places / (places @ places), dtype=x.dtype)).sum(axis=-1, keepdims=True)
    return x - slope * array(places, dtype=x.dtype)


def _hann(n: int) -> np.ndarray:
    return np.sin(np.arange(n) * (np.pi / n)) ** 2 if n > 1 else np.ones(1)


def _window_values(name: str, window: Window, n: int) -> np.ndarray:
    """Return a named window of n elements."""
    if isinstance(window, str) and window == "hann":
        return _hann(n)
    try:
        return importlib.import_module("scipy.signal").get_window(window, n)
    except ValueError as error:
        raise ValueError(
            f"{name}: unknown window; got window={window!r} ({error}); pass a name that "
            "scipy.signal.get_window has, or the values"
        ) from None


def _window(name: str, window: Window, nperseg: int | None, length: int, dtype: Any) -> Array:
    """Return the window of the segments of a signal of this length."""
    if isinstance(window, str | tuple):
        n = length if nperseg is None else nperseg
        if n > length:
            warn(
                f"{name}: segments of nperseg={n} are longer than the signal; "
                f"nperseg={length} is used",
            )
            n = length
        return array(_window_values(name, window, n), dtype=dtype)
    out = asarray(window, dtype=dtype)
    if out.ndim != 1:
        raise ValueError(f"{name}: a window has one axis; got shape {out.shape}; ravel it")
    if out.size > length:
        raise ValueError(
            f"{name}: the window is longer than the signal; got {out.size} and {length}; "
            "pass a shorter one"
        )
    if nperseg not in (None, out.size):
        raise ValueError(
            f"{name}: nperseg is the length of the window, {out.size}; got {nperseg}; leave it out"
        )
    return out


def _extend_odd(x: Array, n: int) -> Array:
    """Extend both ends by their reflections through the last point."""
    if n < 1:
        return x
    if n >= x.shape[-1]:
        raise ValueError(
            "signal.stft: boundary='odd' needs a signal longer than half a segment; got "
            f"{x.shape[-1]} elements for {n} at each end; pass a smaller nperseg"
        )
    left = 2 * x[..., :1] - flip(x[..., 1 : n + 1], -1)
    right = 2 * x[..., -1:] - flip(x[..., -n - 1 : -1], -1)
    return concatenate([left, x, right], axis=-1)


_BEYOND = {"even": "reflect", "constant": "edge", "zeros": "constant"}


def _extend_ends(name: str, x: Array, boundary: str | None, n: int) -> Array:
    if boundary is None:
        return x
    if boundary == "odd":
        return _extend_odd(x, n)
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], _BEYOND[boundary])


def _zeros_behind(x: Array, n: int) -> Array:
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n)]) if n else x


class _Segments:
    """How a signal is divided into segments, and how each is processed."""

    def __init__(
        self, window: Array, overlap: int, length: int, trend: Detrend, axis: int, one_sided: bool
    ) -> None:
        self.window, self.length, self.one_sided = window, length, one_sided
        self.size, self.step = window.size, window.size - overlap
        self.trend, self.axis = trend, axis

    def spectra(self, x: Array) -> Array:
        """Transform the segments of the last axis: shape [..., segments, frequencies]."""
        if self.step == self.size == 1:
            cut = x[..., None]
        else:
            starts = np.arange(0, x.shape[-1] - self.size + 1, self.step)
            cut = x[..., starts[:, None] + np.arange(self.size)]
        cut = self.level(cut) * self.window
        if self.one_sided:
            return transforms.rfft(uf.real(cut), n=self.length)
        return transforms.fft(cut, n=self.length)

    def level(self, cut: Array) -> Array:
        trend = self.trend
        if isinstance(trend, str):
            return detrend(cut, type=trend, axis=-1)
        if not callable(trend):
            return cut
        return moveaxis(trend(moveaxis(cut, self.axis, -1)), -1, self.axis)


def _outer(name: str, x: Array, y: Array, d: int) -> tuple[int, ...]:
    """Return the broadcast shape of both signals without axis d."""
    if x.ndim != y.ndim:
        raise ValueError(
            f"{name}: both signals must have the same rank; got shapes {x.shape} and {y.shape}; "
            "add axes to one with x[None]"
        )
    try:
        return broadcast_shapes(*[(*v.shape[:d], *v.shape[d + 1 :]) for v in (x, y)])
    except ValueError:
        raise ValueError(
            f"{name}: signals must broadcast; got shapes {x.shape} and {y.shape}; "
            "make all axes but the last equal, or 1"
        ) from None


@promotes_inside
def _spectral(
    name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
    trend: Detrend, one_sided: bool, scaling: str, axis: Any, short_time: bool = False,
    boundary: str | None = None, padded: bool = False,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return frequencies, times, and the spectra of the segments, along the last axis."""
    if boundary not in (None, "odd", *_BEYOND):
        raise not_one_of(name, "boundary", boundary, (None, "odd", *_BEYOND))
    pair = y is not None
    signals = [wrap(n) for n in promote_inexact(name, *([x, y] if pair else [x]))]
    d = as_axis(axis, signals[0].ndim, name)
    outer = _outer(name, signals[0], signals[-1], d)
    real = dtypes.finfo(signals[0].dtype).dtype
    complex_ = np.dtype(np.result_type(real, np.complex64))
    real = np.finfo(complex_).dtype
    size = None if nperseg is None else as_int(nperseg, name, "nperseg")
    if size is not None and size < 1:
        raise ValueError(f"{name}: nperseg must be positive; got nperseg={size}; pass 1 or more")
    win = _window(name, window, size, signals[0].shape[d], signals[0].dtype)
    size = win.size
    overlap = size // 2 if noverlap is None else as_int(noverlap, name, "noverlap")
    length = size if nfft is None else as_int(nfft, name, "nfft")
    if not all(s.size for s in signals):
        shape = [*outer]
        shape.insert(d, min(s.shape[d] for s in signals))
        return zeros(shape, real), zeros(shape, real), zeros(shape, complex_)
    if length < size:
        raise ValueError(
            f"{name}: nfft is at least nperseg={size}; got {length}; pass that or None"
        )
    if overlap >= size:
        raise ValueError(f"{name}: noverlap must be below nperseg={size}; got {overlap}; pass less")
    if scaling not in ("density", "spectrum"):
        raise not_one_of(name, "scaling", scaling, ("density", "spectrum"))
    if not callable(trend) and trend not in (*_TRENDS, False):
        raise not_one_of(name, "detrend", trend, (*_TRENDS, False))
    signals = [moveaxis(s, d, -1) for s in signals]
    longest = max(s.shape[-1] for s in signals)
    signals = [_zeros_behind(s, longest - s.shape[-1]) for s in signals]
    signals = [_extend_ends(name, s, boundary, size // 2) for s in signals]
    step, longest = size - overlap, signals[0].shape[-1]
    if padded:
        missing = -(longest - size) % step % size
        signals = [_zeros_behind(s, missing) for s in signals]
        longest += missing
    one_sided = bool(one_sided)
    if one_sided and any(s.dtype.kind == "c" for s in signals):
        warn(f"{name}: the signal is complex, so return_onesided=False is used")
        one_sided = False
    place = axis if axis == -1 else d
    segments = _Segments(win, overlap, length, trend, place, one_sided)
    scale = 1.0 / (fs * (win * win).sum() if scaling == "density" else win.sum() ** 2)
    frequencies = transforms.rfftfreq if one_sided else transforms.fftfreq
    freqs = frequencies(length, 1 / fs, dtype=real)
    spectra = [segments.spectra(s) for s in signals]
    if short_time:
        result = spectra[0] * uf.sqrt(asarray(scale))
    else:
        s = spectra[0]
        power = uf.conj(s) * spectra[1] if pair else uf.real(s) ** 2 + uf.imag(s) ** 2
        result = power * scale
        if one_sided:  # frequencies that also represent their negatives
            twice = np.full(result.shape[-1], 2.0)
            twice[0] = 1.0
            twice[-1 if length % 2 == 0 else length :] = 1.0
            result = result * array(twice, dtype=real)
    times = arange(size / 2, longest - size / 2 + 1, step, dtype=real) / fs
    if boundary is not None:
        times = times - size / 2 / fs
    result = result.astype(complex_) if pair or short_time else uf.real(result).astype(real)
    return freqs, times, moveaxis(result, -1, d)


@api_boundary
def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute the short-time Fourier transform of a signal.

    Parameters
    ----------
    x : array_like
        Signal of floating or complex dtype; others are promoted.
    {fs}
    {window}
    nperseg : int, optional
        Number of elements of a segment, static. The default is 256.
    {noverlap}
    {nfft_padded}
    detrend : str, callable or False, optional
        "constant", "linear", a function of segments, or False, the default.
    return_onesided : bool, optional
        Whether to return only frequencies that are not negative, for real signals. The default is
        True.
    boundary : {"zeros", "even", "odd", "constant", None}, optional
        How both ends are extended by half a segment, if at all. The default is "zeros".
    padded : bool, optional
        Whether to pad with zeros to whole segments. The default is True.
    {axis_time}

    Returns
    -------
    f : Array
        Frequencies.
    t : Array
        Times of the segments.
    Zxx : Array
        Transforms of complex dtype, with frequencies in the place of time and the segments along
        the last axis.

    Raises
    ------
    {raises_spectra}

    See Also
    --------
    istft : The inverse.
    welch : Power spectral density.

    Examples
    --------
    >>> import accnp as jnp
    >>> freqs, times, z = jnp.scipy.signal.stft(jnp.ones(8), nperseg=4)
    >>> z.shape
    (3, 5)
    """
    how = fs, window, nperseg, noverlap, nfft, detrend, return_onesided, "spectrum", axis
    return _spectral("signal.stft", x, None, *how, True, boundary, padded)


def _average_segments(name: str, x: Any, y: Any, average: str, *how: Any) -> tuple[Array, Array]:
    if average not in ("mean", "median"):
        raise not_one_of(name, "average", average, ("mean", "median"))
    freqs, _, power = _spectral(name, x, y, *how)
    if power.ndim < 2 or not power.size:
        return freqs, power
    count = power.shape[-1]
    if count == 1:
        return freqs, power[..., 0]
    if average == "mean":
        return freqs, mean(power, -1)
    even = np.arange(2.0, count, 2)  # the median is biased low
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))  # weak, so the dtype is kept
    if power.dtype.kind == "c":
        parts = [median(f(power), axis=-1) for f in (uf.real, uf.imag)]
        return freqs, (parts[0] + 1j * parts[1]) / bias
    return freqs, median(power, axis=-1) / bias


@api_boundary
def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the cross power spectral density of two signals by Welch's method.

    Parameters
    ----------
    x : array_like
        Signal of floating or complex dtype; others are promoted.
    y : array_like or None
        Second signal, which broadcasts; the shorter one is padded with zeros. None stands for `x`.
    {spectra_params}

    Returns
    -------
    f : Array
        Frequencies.
    Pxy : Array
        Densities of complex dtype, with frequencies in the place of time; of real dtype if `y` is
        None.

    Raises
    ------
    {raises_spectra}

    See Also
    --------
    welch : Density of one signal.
    stft : Transforms of the segments.

    Examples
    --------
    >>> import accnp as jnp
    >>> freqs, power = jnp.scipy.signal.csd(jnp.ones(8), jnp.ones(8), nperseg=4)
    >>> freqs
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    how = fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    return _average_segments("signal.csd", x, y, average, *how)


@api_boundary
def welch(
    x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Estimate the power spectral density of a signal by Welch's method.

    Parameters
    ----------
    x : array_like
        Signal of floating or complex dtype; others are promoted.
    {spectra_params}

    Returns
    -------
    f : Array
        Frequencies.
    Pxx : Array
        Densities of real dtype, with frequencies in the place of time.

    Raises
    ------
    {raises_spectra}

    See Also
    --------
    csd : Density of two signals.
    stft : Transforms of the segments.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.signal.welch(jnp.ones(8), nperseg=4)[1]
    Array([0., 0., 0.], dtype=float32)
    """
    how = fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    freqs, power = _average_segments("signal.welch", x, None, average, *how)
    return freqs, uf.real(power)


def _overlap_add(segments: Array, step: int) -> Array:
    """Add overlapping segments, [..., segments, elements], that start `step` elements apart."""
    *outer, count, size = segments.shape
    places = step * np.arange(count)[:, None] + np.arange(size)
    out = zeros((*outer, step * (count - 1) + size), segments.dtype)
    return out.at[..., places].add(segments)


@api_boundary
@promotes_inside
def istft(
    Zxx: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
    boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
) -> tuple[Array, Array]:  # fmt: skip
    """Reconstruct a signal from its short-time Fourier transform.

    Parameters
    ----------
    Zxx : array_like
        Transforms of segments, converted to a complex dtype.
    {fs}
    {window}
    nperseg : int, optional
        Number of elements of a segment. The default follows from the number of frequencies.
    {noverlap}
    nfft : int, optional
        Number of elements that were transformed. The default is `nperseg`.
    input_onesided : bool, optional
        Whether there are only frequencies that are not negative. The default is True.
    boundary : bool, optional
        Whether both ends were extended by half a segment. The default is True.
    time_axis : int, optional
        Axis of the segments. The default is the last one.
    freq_axis : int, optional
        Axis of the frequencies. The default is the last but one.

    Returns
    -------
    t : Array
        Times.
    x : Array
        Signal, whose time axis is in the place of `time_axis`.

    Raises
    ------
    ValueError
        If there are fewer than two axes, both are the same, the window is unknown, or `nperseg`,
        `noverlap` and `nfft` do not fit each other.
    TypeError
        If `Zxx` is a list, or a number of elements is not an integer.

    See Also
    --------
    stft : The transform.

    Examples
    --------
    >>> import accnp as jnp
    >>> z = jnp.scipy.signal.stft(jnp.arange(8.0), nperseg=4)[2]
    >>> jnp.round(jnp.scipy.signal.istft(z)[1])
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    name = "signal.istft"
    z = wrap(as_node(Zxx, name))
    if z.ndim < 2:
        raise ValueError(
            f"{name}: transforms have at least 2 axes; got shape {z.shape}; "
            "pass [frequencies, times]"
        )
    f, t = (as_axis(d, z.ndim, name) for d in (freq_axis, time_axis))
    if f == t:
        raise ValueError(
            f"{name}: time_axis and freq_axis must differ; got {f} twice; name two axes"
        )
    z = z.astype(np.result_type(dtypes.to_inexact(z.dtype), np.complex64))
    known = 2 * (z.shape[f] - 1) if input_onesided else z.shape[f]
    size = as_int(nperseg, name, "nperseg") if nperseg else known
    if size < 1:
        raise ValueError(f"{name}: nperseg must be positive; got nperseg={size}; pass 1 or more")
    if nfft is None:
        length = known + (input_onesided and size == known + 1)
    else:
        length = as_int(nfft, name, "nfft")
    if length < size:
        raise ValueError(
            f"{name}: nfft is at least nperseg={size}; got {length}; pass that or None"
        )
    overlap = as_int(noverlap, name, "noverlap") if noverlap else size // 2
    if overlap >= size:
        raise ValueError(f"{name}: noverlap must be below nperseg={size}; got {overlap}; pass less")
    step = size - overlap
    z = moveaxis(z, (t, f), (-2, -1))
    back = transforms.irfft if input_onesided else transforms.ifft
    parts = back(z, n=length)[..., :size]
    if isinstance(window, str | tuple):
        win = array(_window_values(name, window, size), dtype=parts.dtype)
    else:
        win = asarray(window)
        if win.shape != (size,):
            raise ValueError(
                f"{name}: the window must have one axis of nperseg={size}; got shape {win.shape}; "
                "pass a vector of that length, or a name"
            )
    x = _overlap_add(parts * win.sum() * win, step)
    norm = _overlap_add((win * win)[None, :] + zeros((parts.shape[-2], 1), win.dtype), step)
    if boundary:
        half = slice(size // 2, -(size // 2))
        x, norm = x[..., half], norm[half]
    x = x / where(uf.abs(norm) > 1e-10, norm, 1.0)
    if x.ndim > 1 and t != z.ndim - 1:
        x = moveaxis(x, -1, t - (f < t))
    return arange(x.shape[0], dtype=np.finfo(x.dtype).dtype) / fs, x
