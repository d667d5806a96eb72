"""Fourier transforms: `jnp.fft`, and the strict `lax.fft`.

Arrays come in; lazy Arrays go out, complex64 for float32. Axes are moved to the end, and cut or
padded with zeros to the lengths asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, scalar_node
from accnp.api.arguments.shapes import as_axis, as_static
from accnp.api.arrays.creation import arange
from accnp.api.arrays.manipulation import cut, moveaxis
from accnp.api.arrays.padding import pad
from accnp.api.arrays.reversing import roll
from accnp.api.compiled.named import shown
from accnp.api.elements.elementwise import documented
from accnp.api.elements.ufuncs import conj
from accnp.array import Array, ArrayLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.primitives.fft import FftType

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "lax_fft", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_BY_NAME = {name: t for t in FftType for name in (t.name, t.name.lower())}


@api_boundary
def lax_fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Transform the last axes, whose lengths are `fft_lengths`.

    Args:
        x: array of at least as many axes; real for "RFFT".
        fft_type: an `FftType`, or its name: "FFT", "IFFT", "RFFT", "IRFFT".
        fft_lengths: lengths of the transformed axes; for "IRFFT" those of the result.

    Returns:
        A complex array; a real one for "IRFFT".

    Raises:
        ValueError: unknown type, complex operand of "RFFT", lengths that do not fit.
        TypeError: `fft_type` is neither an `FftType` nor a string.

    >>> import accnp as jnp
    >>> jnp.lax.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), "RFFT", (4,))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type not in _BY_NAME:
            raise ValueError(f"lax.fft: Unknown FFT type '{fft_type}'; use one of {[*_BY_NAME]}")
        fft_type = _BY_NAME[fft_type]
    elif not isinstance(fft_type, FftType):
        raise TypeError(f"lax.fft: Unknown FFT type value '{fft_type}'; use a name or an FftType")
    return _transform(wrap(as_node(x, "lax.fft")), fft_type, tuple(fft_lengths))


lax_fft.__name__ = lax_fft.__qualname__ = "fft"
lax_fft.__module__ = "accnp.lax"


@shown("fft")
def _transform(x: Array, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Array:
    node = x._node
    inexact = dtypes.to_inexact(node.aval.dtype)
    wide = inexact in (np.float64, np.complex128)
    if fft_type == FftType.RFFT:
        if node.aval.dtype.kind == "c":
            raise ValueError(
                "lax.fft: only real valued inputs supported for rfft; "
                f"got {node.aval.dtype.name}; use fft"
            )
        node = cast(node, inexact)
    elif fft_type == FftType.IRFFT or not fft_lengths or state.named:
        node = cast(node, np.dtype(np.complex128 if wide else np.complex64))
    elif node.aval.dtype.kind != "c":  # transforms of real numbers take half the time
        node = cast(node, np.dtype(np.float64 if wide else np.float32))
    if not fft_lengths:
        return wrap(node)
    return wrap(o.fft(node, fft_type=fft_type, fft_lengths=fft_lengths))


def _core(name: str, fft_type: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    """Any of the transforms: over all axes, or some, of these lengths."""
    full = f"jnp.fft.{name}"
    x = as_node(a, full)
    rank = x.aval.ndim
    if s is not None:
        s = [operator.index(as_static(n, full, "shape")) for n in s]
        if any(n <= 0 for n in s):
            raise ValueError(f"{full}: lengths must be 1 or more; got {tuple(s)}; pass such")
        if axes is not None and len(s) != len(axes):
            raise ValueError(
                f"{full}: Shape and axes have different lengths; got {tuple(s)} and {tuple(axes)}; "
                "name one axis for each length"
            )
        if len(s) > rank:
            raise ValueError(
                f"{full}: {len(s)} lengths for an array of rank {rank}; got {s}; "
                "drop some, or add axes to the array"
            )
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f'{full}: Invalid norm value {norm}; should be "backward", "ortho" or "forward".'
        )
    moved = None
    if axes is not None:
        if len(set(axes)) != len(axes):
            raise ValueError(
                f"{full}: each axis is transformed once; got axes {axes}; name each once"
            )
        moved = tuple([as_axis(d, rank, full) for d in axes])
        count = len(moved)
    else:
        count = rank if s is None else len(s)
    last = tuple(range(rank - count, rank))
    if moved is not None and moved != last:
        x = moveaxis(wrap(x), moved, last)._node
    if s is None:
        s = list(x.aval.shape[rank - count :])
        if fft_type == FftType.IRFFT and s:
            s[-1] = max(0, 2 * (s[-1] - 1))
    else:
        x = _fitted(x, s, fft_type)
    out = lax_fft(wrap(x), fft_type, s)
    if norm in ("ortho", "forward"):
        # Of nothing there is nothing to scale.
        size = prod(s) or 1
        scale = sqrt(size) if norm == "ortho" else float(size)
        factor = scale if name.startswith("i") else 1 / scale
        out = wrap(o.mul(out._node, _number(factor, out._node)))
    return out if moved is None or moved == last else moveaxis(out, last, moved)


def _number(value: float, x: Node) -> Node:
    return scalar_node(value, x.aval.dtype, False)


def _fitted(x: Node, s: Sequence[int], fft_type: FftType) -> Node:
    """The last axes cut or padded with zeros to the lengths that the transform takes."""
    wanted = [*s[:-1], s[-1] // 2 + 1] if fft_type == FftType.IRFFT else [*s]
    first = x.aval.ndim - len(wanted)
    for k, n in enumerate(wanted):
        if n < x.aval.shape[first + k]:
            x = cut(x, first + k, 0, n)
    missing = [n - m for n, m in zip(wanted, x.aval.shape[first:], strict=True)]
    if any(missing):
        x = pad(wrap(x), [(0, 0)] * first + [(0, n) for n in missing])._node
    return x


def _check_one_axis(name: str, axis: Any) -> None:
    if isinstance(axis, list | tuple):
        raise ValueError(
            f"jnp.fft.{name}: one axis is transformed; got axis={axis!r}; use "
            f"jnp.fft.{name}n for several"
        )


def _one(name: str, fft_type: FftType, a: Any, n: Any, axis: Any, norm: Any) -> Array:
    _check_one_axis(name, axis)
    axes = None if axis is None else [axis]
    return _core(name, fft_type, a, None if n is None else [n], axes, norm)


_WHAT = {
    FftType.FFT: "the discrete Fourier transform",
    FftType.IFFT: "the inverse of the discrete Fourier transform",
    FftType.RFFT: "the discrete Fourier transform of real numbers: half of the frequencies",
    FftType.IRFFT: "the inverse of `rfft`: real numbers",
}

_COMPLEX = "The dtype is complex64\n    (complex128 for 64-bit numbers)."
_REAL = "The dtype is float32\n    (float64 for 64-bit numbers)."
_TYPES = {kind: _REAL if kind is FftType.IRFFT else _COMPLEX for kind in _WHAT}


def _finished(
    function: Callable[..., Array], name: str, fft_type: FftType, over: str, example: str
) -> Any:
    function.__name__ = function.__qualname__ = name
    text = (
        f"Return {_WHAT[fft_type]}.\n\n    It goes {over}. {_TYPES[fft_type]}\n"
        "    Unlike NumPy: there is no out=.\n"
        '    norm: "backward" (None) divides inverse transforms by the number of elements,\n'
        '    "forward" the others, "ortho" both by its square root.\n\n'
        "    Raises:\n        ValueError: lengths, axes or norm that do not fit; rfft of complex."
        "\n        TypeError: a is a list or a text."
    )
    function.__doc__ = documented(text, f"fft.{name}", example)
    return api_boundary(function)


def _along_one(name: str, fft_type: FftType, example: str) -> Any:
    def function(
        a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
    ) -> Array:
        return _one(name, fft_type, a, n, axis, norm)

    return _finished(
        function, name, fft_type, "along one axis, cut or padded with zeros to n", example
    )


def _over_two(name: str, fft_type: FftType, example: str) -> Any:
    def function(
        a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Array:
        if len(axes) != 2:
            raise ValueError(
                f"jnp.fft.{name}: two axes are transformed; got axes={axes!r}; use "
                f"jnp.fft.{name}n for others"
            )
        return _core(name, fft_type, a, s, axes, norm)

    return _finished(
        function, name, fft_type, "over two axes, cut or padded with zeros to s", example
    )


def _over_many(name: str, fft_type: FftType, example: str) -> Any:
    def function(
        a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None
    ) -> Array:
        return _core(name, fft_type, a, s, axes, norm)

    what = "over all axes, or those given, cut or padded with zeros to s"
    return _finished(function, name, fft_type, what, example)


fft = _along_one("fft", FftType.FFT, "[1.0, 2.0, 3.0, 4.0] -> [10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j]")
ifft = _along_one("ifft", FftType.IFFT, "[4.0, 0.0, 0.0, 0.0] -> [1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j]")
rfft = _along_one("rfft", FftType.RFFT, "[1.0, 2.0, 3.0, 4.0] -> [10.+0.j, -2.+2.j, -2.+0.j]")
irfft = _along_one("irfft", FftType.IRFFT, "[10.0, -2.0, -2.0] -> [1., 3., 3., 3.]")
fft2 = _over_two("fft2", FftType.FFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
ifft2 = _over_two("ifft2", FftType.IFFT, "jnp.eye(2) -> [[0.5+0.j, 0. +0.j], [0. +0.j, 0.5+0.j]]")
rfft2 = _over_two("rfft2", FftType.RFFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
irfft2 = _over_two("irfft2", FftType.IRFFT, "jnp.ones((2, 2)) -> [[1., 0.], [0., 0.]]")
fftn = _over_many("fftn", FftType.FFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
ifftn = _over_many("ifftn", FftType.IFFT, "jnp.eye(2) -> [[0.5+0.j, 0. +0.j], [0. +0.j, 0.5+0.j]]")
rfftn = _over_many("rfftn", FftType.RFFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
irfftn = _over_many("irfftn", FftType.IRFFT, "jnp.ones((2, 2)) -> [[1., 0.], [0., 0.]]")


@api_boundary
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform one half of a signal whose other half is its conjugate: a real spectrum.

    The dtype is float32 (float64 for 64-bit numbers).

    Args:
        a: array; n: length of the result (default: 2 (m - 1) for m elements).
        axis, norm: as for `fft`.

    Raises:
        ValueError: several axes, or an n or norm that does not fit.

    >>> import accnp as jnp
    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    _check_one_axis("hfft", axis)
    x = conj(a)
    count = (x.shape[axis] - 1) * 2 if n is None else n
    out = _one("hfft", FftType.IRFFT, x, n, axis, norm)._node
    return wrap(o.mul(out, _number(count, out)))


@api_boundary
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `hfft`: half of the signal of a real spectrum.

    Raises:
        ValueError: a complex operand, several axes, or an n or norm that does not fit.

    >>> import accnp as jnp
    >>> jnp.fft.ihfft(jnp.array([8.0, 0.0, 0.0, 0.0]))
    Array([2.+0.j, 2.+0.j, 2.+0.j], dtype=complex64)
    """
    _check_one_axis("ihfft", axis)
    x = as_node(a, "jnp.fft.ihfft")
    if n is None and x.aval.ndim and not x.aval.shape[axis]:
        raise IncompatibleShapesError(
            f"jnp.fft.ihfft: there is nothing to transform; got shape {x.aval.shape}; pass elements"
        )
    count = x.aval.shape[axis] if n is None else n
    out = conj(_one("ihfft", FftType.RFFT, wrap(x), n, axis, norm))._node
    return wrap(o.mul(out, _number(1 / count, out)))


def _spacing(name: str, n: Any, d: Any) -> int:
    if isinstance(n, list | tuple):
        raise ValueError(f"The n argument of jnp.fft.{name} only takes an int. Got n = {n!r}.")
    if isinstance(d, list | tuple):
        raise ValueError(
            f"The d argument of jnp.fft.{name} only takes a single value. Got d = {d!r}."
        )
    return operator.index(as_static(n, f"jnp.fft.{name}", "shape"))


def _frequencies(places: Array, step: Any, dtype: Any) -> Array:
    over = cast(as_node(step), places.dtype)
    return wrap(cast((places / wrap(over))._node, dtype))


@api_boundary
def fftfreq(n: int, d: Any = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return the frequencies of the n elements of `fft`, for samples that are d apart.

    Shape (n,), float32 (64-bit with jax_enable_x64) or `dtype`.

    Raises:
        TypeError: n is no integer.
        ValueError: d is no single value.

    >>> import accnp as jnp
    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)

    Raises:
        ValueError: `n` or `d` is a list.
    """
    n = _spacing("fftfreq", n, d)
    wanted = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "fftfreq")
    real = dtypes.finfo(dtypes.to_inexact(wanted)).dtype
    i = arange(n, dtype=real, device=device)
    return _frequencies((i + n // 2) % n - n // 2, d * n, wanted)


@api_boundary
def rfftfreq(n: int, d: Any = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return the frequencies of the elements of `rfft` of n samples that are d apart.

    Shape (n // 2 + 1,), float32 (64-bit with jax_enable_x64) or `dtype`.

    Raises:
        TypeError: n is no integer.
        ValueError: d is no single value.

    >>> import accnp as jnp
    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)

    Raises:
        ValueError: `n` or `d` is a list.
    """
    n = _spacing("rfftfreq", n, d)
    wanted = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "rfftfreq")
    i = arange(n // 2 + 1, dtype=wanted, device=device)
    over = cast(as_node(d * n), wanted)
    return i / wrap(over)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Array:
    node = as_node(x, f"jnp.fft.{name}")
    shape = node.aval.shape
    if axes is None:
        axes = tuple(range(len(shape)))
    elif isinstance(axes, int):
        axes = (axes,)
    at = tuple([as_axis(d, len(shape), f"jnp.fft.{name}") for d in axes])
    return roll(wrap(node), tuple([sign * (shape[d] // 2) for d in at]), at) if at else wrap(node)


@api_boundary
def fftshift(x: ArrayLike, axes: Any = None) -> Array:
    """Move frequency 0 to the middle of the axes (default: all).

    Shape and dtype stay.

    Raises:
        TypeError: x is a list or a text.
        ValueError: an axis is out of bounds.

    >>> import accnp as jnp
    >>> jnp.fft.fftshift(jnp.fft.fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    return _shifted("fftshift", x, axes, 1)


@api_boundary
def ifftshift(x: ArrayLike, axes: Any = None) -> Array:
    """Undo `fftshift`.

    Shape and dtype stay.

    Raises:
        TypeError: x is a list or a text.
        ValueError: an axis is out of bounds.

    >>> import accnp as jnp
    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, -1)
