"""Image resizing: each result along an axis is a weighted sum of elements near its position.

The array is multiplied by matrices of weights along one axis after the other, or gathered for the
nearest element.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_axis, as_shape
from accnp.array_type import Array, ArrayLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.lax.enumerations import Precision
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import arange, asarray
from accnp.numpy.padding import pad
from accnp.numpy.products import matmul
from accnp.numpy.selection import where

if TYPE_CHECKING:
    from accnp.lax.enumerations import PrecisionLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """Methods of interpolation for `image.resize`, which also accepts their names.

    They work for images of any shape and floating dtype.

    Raises
    ------
    ValueError
        If the method is unknown.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.image.resize(jnp.arange(2.0), (4,), jnp.image.ResizeMethod.NEAREST)
    Array([0., 0., 1., 1.], dtype=float32)
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    @api_boundary
    def from_string(s: str) -> ResizeMethod:
        """Return the method of a name."""
        for method, names in _NAMES.items():
            if s in names.split():
                return method
        raise ValueError(
            f"image.resize: there is no method {s!r}; use one of {' '.join(_NAMES.values())}"
        )


_NAMES = {
    ResizeMethod.NEAREST: "nearest",
    ResizeMethod.LINEAR: "linear bilinear trilinear triangle",
    ResizeMethod.LANCZOS3: "lanczos3",
    ResizeMethod.LANCZOS5: "lanczos5",
    ResizeMethod.CUBIC: "cubic bicubic tricubic",
    ResizeMethod.CUBIC_PYTORCH: "cubic-pytorch bicubic-pytorch",
    ResizeMethod.AREA: "area",
}


def _triangle(x: Array) -> Array:
    return uf.maximum(0, 1 - x)


def _lanczos(radius: int) -> Callable[[Array], Array]:
    """Return the Lanczos kernel: sinc(x) sinc(x / radius) within the radius, otherwise 0."""

    def kernel(x: Array) -> Array:
        safe = where(x > 0.001, x, 1.0)
        value = radius * uf.sin(np.pi * x) * uf.sin(np.pi * x / radius) / (np.pi * safe) ** 2
        return where(x > radius, 0.0, where(x > 0.001, value, 1.0))

    return kernel


def _cubic(a: float) -> Callable[[Array], Array]:
    """Return the piecewise cubic kernel with derivative `a` at 1 (Keys 1981 has -1/2)."""

    def kernel(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return where(x >= 2, 0.0, where(x >= 1, far, near))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
}
_REACH = 2  # radius of a cubic kernel
_SMALLEST = 1000 * float(np.finfo(np.float32).eps)  # smaller sums of weights are treated as 0


def _weights(
    n: int, count: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool
) -> Array:
    """Return the weight of each of n elements in each of `count` results, [n, count]."""
    dtype, _ = dtypes.promote(tuple(dtypes.value_type(v) for v in (scale, shift)))
    step = 1.0 / asarray(scale, dtype=dtype)
    start = shift * step
    center = (arange(count, dtype=dtype) + 0.5) * step - start - 0.5
    element = arange(n, dtype=dtype)[:, None]
    # PyTorch's cubic kernel repeats the elements at the borders.
    pads_borders = method is ResizeMethod.CUBIC_PYTORCH and not antialias
    if method is ResizeMethod.AREA:
        left = arange(count, dtype=dtype) * step - start
        overlap = uf.minimum(left + step, element + 1.0) - uf.maximum(left, element)
        weights = uf.maximum(0.0, overlap)
    else:
        if pads_borders:
            element = arange(-_REACH, n + _REACH, dtype=dtype)[:, None]
        if antialias and method is ResizeMethod.CUBIC_PYTORCH:
            method = ResizeMethod.CUBIC
        width = uf.maximum(step, 1.0) if antialias else 1.0
        weights = _KERNELS[method](uf.abs(center - element) / width)
    if pads_borders:
        first, last = weights[:_REACH].sum(axis=0), weights[n + _REACH :].sum(axis=0)
        weights = weights[_REACH : n + _REACH]
        weights = weights + pad(first[None], [(0, n - 1), (0, 0)])
        weights = weights + pad(last[None], [(n - 1, 0), (0, 0)])
    total = weights.sum(axis=0, keepdims=True)
    weights = where(uf.abs(total) > _SMALLEST, weights / where(total != 0, total, 1), 0)
    if pads_borders:
        return weights
    return where((center >= -0.5) & (center <= n - 0.5), weights, 0)


def _multiply_axis(x: Array, d: int, weights: Array, precision: Any) -> Array:
    """Replace axis d by its product with weights."""
    before, after = x.shape[:d], x.shape[d + 1 :]
    n, count = weights.shape
    if not after:
        return matmul(x, weights, precision=precision)
    rows = x.reshape((*before, n, math.prod(after)))
    return matmul(weights.T, rows, precision=precision).reshape((*before, count, *after))


def _resample(
    x: Array, shape: Sequence[int], axes: Sequence[int], scale: Any, shift: Any,
    method: ResizeMethod, antialias: bool, precision: Any,
) -> Array:  # fmt: skip
    # Axes that shrink most come first, which leaves less work for the others.
    # As in JAX, if an axis is repeated, only its last entry resizes; the others scale elements.
    last = {d: i for i, d in enumerate(axes)}
    ratios = [shape[d] / max(1, x.shape[d]) for d in axes]
    for i in sorted(range(len(axes)), key=lambda i: (last[axes[i]] == i, ratios[i])):
        d = axes[i]
        weights = _weights(x.shape[d], shape[d], scale[i], shift[i], method, antialias)
        weights = weights.astype(x.dtype)
        if last[d] == i:
            x = _multiply_axis(x, d, weights, precision)
        else:
            x = x * weights.sum(axis=1).reshape((-1, *(1,) * (x.ndim - 1 - d)))
    return x


def _method(method: str | ResizeMethod) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise ValueError(
            f"image.resize: method must be a name or a ResizeMethod; got {method!r}; pass 'linear'"
        )
    return method


def _check_shape(name: str, image: Any, shape: Any) -> tuple[Array, tuple[int, ...]]:
    x, new_shape = wrap(as_node(image, name)), as_shape(shape, name)
    if len(new_shape) != x.ndim:
        raise ValueError(
            f"{name}: the shape must have as many axes as the image; got {new_shape} for "
            f"{x.shape}; name all sizes, with those that stay"
        )
    return x, new_shape


@api_boundary
@promotes_inside
def resize(
    image: ArrayLike, shape: Sequence[SupportsIndex], method: str | ResizeMethod,
    antialias: bool = True, precision: PrecisionLike = Precision.HIGHEST,
) -> Array:  # fmt: skip
    """Resize an image, or an array of any rank, by interpolation.

    Parameters
    ----------
    image : array_like
        Elements to interpolate, with any number of axes.
    shape : sequence of int
        New shape. Axes whose length does not change are not interpolated.
    method : str or ResizeMethod
        "nearest", "linear" (also "bilinear", "trilinear", "triangle"), "lanczos3", "lanczos5",
        "cubic" ("bicubic", "tricubic"), "cubic-pytorch" or "area".
    antialias : bool, optional
        Whether to widen the kernel along axes that shrink, so that all elements count. The default
        is True.
    precision : Precision, optional
        Ignored: the CPU computes in the precision of the operands.

    Returns
    -------
    Array
        Resized image of the dtype of `image`, converted to a floating dtype except by "nearest".

    Raises
    ------
    ValueError
        If `shape` has another number of axes than the image, or the method is unknown.

    See Also
    --------
    image.scale_and_translate : Any scale and offset for each axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.image.resize(jnp.array([0.0, 4.0]), (4,), "linear")
    Array([0., 1., 3., 4.], dtype=float32)
    """
    x, new_shape = _check_shape("image.resize", image, shape)
    interpolation = _method(method)
    axes = [d for d in range(x.ndim) if x.shape[d] != new_shape[d]]
    if any(not x.shape[d] for d in axes):
        raise IncompatibleShapesError(
            f"image.resize: an axis without elements cannot grow; got shape {x.shape}; pass some"
        )
    if interpolation is ResizeMethod.NEAREST:
        for d in axes:
            middle = (np.arange(new_shape[d], dtype=np.float32) + 0.5) * np.float32(x.shape[d])
            nearest = np.floor(middle / np.float32(new_shape[d])).astype(np.int32)
            x = x[(*[slice(None)] * d, nearest)]
        return x
    x = wrap(promote_inexact("image.resize", x)[0])
    scale = [new_shape[d] / x.shape[d] if new_shape[d] else 1.0 for d in axes]
    return _resample(
        x, new_shape, axes, scale, [0.0] * len(axes), interpolation, antialias, precision
    )


@api_boundary
@promotes_inside
def scale_and_translate(
    image: ArrayLike, shape: Sequence[SupportsIndex], spatial_dims: Sequence[int],
    scale: ArrayLike, translation: ArrayLike, method: str | ResizeMethod, antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:  # fmt: skip
    """Scale and shift an image by interpolation.

    Parameters
    ----------
    image : array_like
        Elements to interpolate, with any number of axes.
    shape : sequence of int
        Lengths of the axes of the result.
    spatial_dims : sequence of int
        Axes to scale and shift. An axis given twice is scaled as the second entry says, after its
        elements are multiplied by the total of their weights in the first.
    scale : array_like
        Factor for each of these axes.
    translation : array_like
        Shift for each of these axes, in elements of the result.
    method : str or ResizeMethod
        Method of interpolation as for `resize`, except "nearest".
    antialias : bool, optional
        Whether to widen the kernel along axes that shrink. The default is True.
    precision : Precision, optional
        Ignored: the CPU computes in the precision of the operands.

    Returns
    -------
    Array
        Image of the dtype of `image`, converted to a floating dtype, and 0 outside of the original.
        It can be differentiated with respect to `scale` and `translation`, too.

    Raises
    ------
    ValueError
        If `shape` has another number of axes than the image, or the method is unknown, or it is
        "nearest".

    See Also
    --------
    image.resize : Change the shape of an image.

    Examples
    --------
    >>> import accnp as jnp
    >>> x, one = jnp.array([1.0, 2.0, 3.0]), jnp.ones(1)
    >>> jnp.image.scale_and_translate(x, (3,), (0,), one, one, "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    name = "image.scale_and_translate"
    x, new_shape = _check_shape(name, image, shape)
    interpolation = _method(method)
    if interpolation is ResizeMethod.NEAREST:
        raise ValueError(f"{name}: unknown method; got {method!r}; use 'linear'")
    x = wrap(promote_inexact(name, x)[0])
    axes = [as_axis(d, x.ndim, name) for d in spatial_dims]
    factors, shifts = (wrap(n) for n in promote_inexact(name, scale, translation))
    for numbers, what in ((factors, "scale"), (shifts, "translation")):
        if numbers.shape != (len(axes),):
            raise ValueError(
                f"{name}: {what} must have one number for each of {len(axes)} axes; got shape "
                f"{numbers.shape}; pass that many"
            )
    return _resample(x, new_shape, axes, factors, shifts, interpolation, antialias, precision)
