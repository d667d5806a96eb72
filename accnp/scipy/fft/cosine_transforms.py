"""Discrete cosine transforms of type 2, and their inverses.

Method: J. Makhoul, A fast cosine transform in one and two dimensions, IEEE Trans. Acoust. 28
(1980): the even elements, followed by the odd ones in reverse order, undergo a real Fourier
transform; each of its frequencies yields two results.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_axes, as_axis, as_int
from accnp.array_type import Array, ArrayLike
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of
from accnp.ir.op import o
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array
from accnp.numpy.fft import transforms
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.manipulation import moveaxis
from accnp.numpy.padding import pad
from accnp.numpy.rearranging import flip

__all__ = ["dct", "dctn", "idct", "idctn"]


def _check_arguments(name: str, type: int, norm: str | None) -> None:
    if type != 2:
        raise NotImplementedError(f"{name}: there is only type 2; got type={type}; leave it out")
    if norm not in (None, "backward", "ortho"):
        raise not_one_of(name, "norm", norm, (None, "backward", "ortho"))


def _fit_length(name: str, x: Array, d: int, n: Any) -> Array:
    """Move an axis to the end, and truncate or zero-pad it."""
    x = moveaxis(x, d, -1)
    if n is None and x.shape[-1]:
        return x
    n = 0 if n is None else as_int(n, name, "n")
    if n < 1:
        raise ValueError(
            f"{name}: the length of a transform must be positive; got n={n}; pass 1 or more"
        )
    x = x[..., :n]
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])]) if n > x.shape[-1] else x


def _rotation_angles(count: int, n: int, dtype: Any) -> tuple[Array, Array]:
    """Return cosine and sine of the angles by which frequencies are rotated."""
    angle = np.arange(count) * (np.pi / (2 * n))
    return array(np.cos(angle), dtype=dtype), array(np.sin(angle), dtype=dtype)


def _weights(n: int, dtype: Any) -> Array:
    """Return the divisors that make the transform orthogonal."""
    factors = np.full(n, sqrt(2.0 * n))
    factors[0] = sqrt(4.0 * n)
    return array(factors, dtype=dtype)


def _forward(x: Array, norm: str | None) -> Array:
    """Transform the last axis."""
    n = x.shape[-1]
    spectrum = transforms.rfft(concatenate([x[..., ::2], flip(x[..., 1::2], -1)], axis=-1))
    re, im = uf.real(spectrum), uf.imag(spectrum)
    cosine, sine = _rotation_angles(n // 2 + 1, n, re.dtype)
    low = 2 * (re * cosine + im * sine)
    high = 2 * (re * sine - im * cosine)
    out = concatenate([low, flip(high[..., 1 : n - n // 2], -1)], axis=-1)
    return out / _weights(n, out.dtype) if norm == "ortho" else out


def _backward(x: Array, norm: str | None) -> Array:
    """Invert `_forward`."""
    n = x.shape[-1]
    if norm == "ortho":
        x = x * _weights(n, x.dtype)
    low = x[..., : n // 2 + 1]
    high = flip(x[..., n - n // 2 :], -1)  # of frequency k the element n - k; of 0 there is none
    high = pad(high, [(0, 0)] * (x.ndim - 1) + [(1, 0)])
    cosine, sine = (0.5 * t for t in _rotation_angles(n // 2 + 1, n, x.dtype))
    spectrum = wrap(
        o.complex((low * cosine + high * sine)._node, (low * sine - high * cosine)._node)
    )
    mixed = transforms.irfft(spectrum, n)
    half = (n + 1) // 2
    odd = flip(mixed[..., half:], -1)
    if n % 2:
        odd = pad(odd, [(0, 0)] * (x.ndim - 1) + [(0, 1)])
    return stack([mixed[..., :half], odd], axis=-1).reshape((*x.shape[:-1], 2 * half))[..., :n]


def _transform_axes(
    name: str, x: Any, type: int, lengths: Sequence[Any], axes: Sequence[int], norm: str | None
) -> Array:
    _check_arguments(name, type, norm)
    a = wrap(promote_inexact(name, x)[0])
    if any(not a.shape[d] and not n for d, n in zip(axes, lengths, strict=True)):
        raise IncompatibleShapesError(
            f"{name}: an axis without elements has no transform; got shape {a.shape}; pass some"
        )
    if a.dtype.kind == "c":
        re, im = (
            _transform_axes(name, part(a), type, lengths, axes, norm)._node
            for part in (uf.real, uf.imag)
        )
        return wrap(o.complex(re, im))
    if a.dtype.itemsize < 4:  # at least single precision
        a = a.astype(np.float32)
    along = _backward if name.startswith("fft.i") else _forward
    for d, n in zip(axes, lengths, strict=True):
        a = moveaxis(along(_fit_length(name, a, d, n), norm), -1, d)
    return a


def _transform_one_axis(name: str, x: Any, type: int, n: Any, axis: int, norm: str | None) -> Array:
    rank = as_node(x, name).aval.ndim
    return _transform_axes(name, x, type, [n], [as_axis(axis, rank, name)], norm)


def _transform_many_axes(
    name: str, x: Any, type: int, s: Any, axes: Any, norm: str | None
) -> Array:
    rank = as_node(x, name).aval.ndim
    lengths = None
    if s is not None:
        lengths = [*s] if hasattr(s, "__iter__") else [s]
        if len(lengths) > rank:
            raise ValueError(
                f"{name}: {len(lengths)} lengths for an array of rank {rank}; got {s}; "
                "drop some, or add axes to the array"
            )
    if axes is None:
        chosen = tuple(range(rank - len(lengths), rank)) if lengths else tuple(range(rank))
    else:
        chosen = as_axes(axes, rank, name)
    if lengths is not None and len(lengths) != len(chosen):
        raise ValueError(
            f"{name}: there must be one length for each axis; got s={s} and axes={axes}; "
            "pair lengths with axes"
        )
    return _transform_axes(name, x, type, lengths or [None] * len(chosen), chosen, norm)


@api_boundary
@promotes_inside
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the discrete cosine transform of type 2 along an axis.

    Parameters
    ----------
    {cosine_x}
    n : int, optional
        Length to which the axis is cut or padded with zeros. The default is its own.
    axis : int, optional
        Axis to transform. The default is the last one.
    {norm_cosine}

    Returns
    -------
    Array
        Transform of dtype float32 (float64 for float64); complex numbers stay complex.

    Raises
    ------
    {raises_cosine}

    See Also
    --------
    idct : The inverse.
    dctn : The same along several axes.
    numpy.fft.fft : Fourier transform.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.fft.dct(jnp.ones(4))
    Array([8., 0., 0., 0.], dtype=float32)
    """
    return _transform_one_axis("fft.dct", x, type, n, axis, norm)


@api_boundary
@promotes_inside
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the inverse discrete cosine transform along an axis.

    Parameters
    ----------
    {cosine_x}
    n : int, optional
        Length to which the axis is cut or padded with zeros. The default is its own.
    axis : int, optional
        Axis to transform. The default is the last one.
    {norm_cosine}

    Returns
    -------
    Array
        Transform of dtype float32 (float64 for float64); complex numbers stay complex.

    Raises
    ------
    {raises_cosine}

    See Also
    --------
    dct : The transform itself.
    idctn : The same along several axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.fft.idct(jnp.array([8.0, 0, 0, 0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _transform_one_axis("fft.idct", x, type, n, axis, norm)


@api_boundary
@promotes_inside
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the discrete cosine transform of type 2 along several axes.

    Parameters
    ----------
    {cosine_x}
    {cosine_axes}
    {norm_cosine}

    Returns
    -------
    Array
        Transform of dtype float32 (float64 for float64); complex numbers stay complex.

    Raises
    ------
    {raises_cosine}

    See Also
    --------
    idctn : The inverse.
    dct : The same along one axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.fft.dctn(jnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _transform_many_axes("fft.dctn", x, type, s, axes, norm)


@api_boundary
@promotes_inside
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the inverse discrete cosine transform along several axes.

    Parameters
    ----------
    {cosine_x}
    {cosine_axes}
    {norm_cosine}

    Returns
    -------
    Array
        Transform of dtype float32 (float64 for float64); complex numbers stay complex.

    Raises
    ------
    {raises_cosine}

    See Also
    --------
    dctn : The transform itself.
    idct : The same along one axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.fft.idctn(jnp.array([[16.0, 0], [0, 0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _transform_many_axes("fft.idctn", x, type, s, axes, norm)
