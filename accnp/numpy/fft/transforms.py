"""Fourier transforms: `jnp.fft`, and the strict `lax.fft`.

The transformed axes are moved to the end, and truncated or zero-padded to the requested lengths.
float32 input gives complex64.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, scalar_node
from accnp.api.arguments.shapes import as_axis, as_static
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, DeviceLike, wrap
from accnp.docstrings import fill
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy.creation import arange
from accnp.numpy.manipulation import cut, moveaxis
from accnp.numpy.padding import pad
from accnp.numpy.rearranging import roll
from accnp.numpy.ufunc_factories import documented
from accnp.numpy.ufuncs import conj
from accnp.primitives.fft import FftType

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "lax_fft", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_BY_NAME = {name: t for t in FftType for name in (t.name, t.name.lower())}


@api_boundary
def lax_fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Compute Fourier transforms over the last axes.

    Parameters
    ----------
    x : array_like
        Array to transform, real for "RFFT".
    fft_type : FftType or str
        Type of the transform: "FFT", "IFFT", "RFFT" or "IRFFT".
    fft_lengths : sequence of int
        Lengths of the transformed axes; for "IRFFT" those of the result.

    Returns
    -------
    Array
        Transforms of complex dtype, or real ones for "IRFFT".

    Raises
    ------
    ValueError
        If the type is unknown, `x` is complex for "RFFT", or lengths do not fit.
    TypeError
        If `fft_type` is neither an `FftType` nor a string.

    See Also
    --------
    numpy.fft.fft, numpy.fft.fftn, numpy.fft.rfft : The same by NumPy's names.

    Examples
    --------
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
    elif node.aval.dtype.kind != "c":  # a real transform takes half the time
        node = cast(node, np.dtype(np.float64 if wide else np.float32))
    if not fft_lengths:
        return wrap(node)
    return wrap(o.fft(node, fft_type=fft_type, fft_lengths=fft_lengths))


def _core(name: str, fft_type: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    """Compute any of the transforms over the given axes, with the given lengths."""
    full = f"jnp.fft.{name}"
    x = as_node(a, full)
    rank = x.aval.ndim
    if s is not None:
        s = [operator.index(as_static(n, full, "size")) for n in s]
        if any(n <= 0 for n in s):
            raise ValueError(f"{full}: lengths must be 1 or more; got {tuple(s)}; pass 1 or more")
        if axes is not None and len(s) != len(axes):
            raise ValueError(
                f"{full}: Shape and axes have different lengths; got {tuple(s)} and {tuple(axes)}; "
                "name one axis for each length"
            )
        if len(s) > rank:
            raise ValueError(
                f"{full}: more lengths than axes; got {s} for an array of rank {rank}; "
                "remove some, or add axes to the array"
            )
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f'{full}: Invalid norm value {norm}; should be "backward", "ortho" or "forward".'
        )
    moved = None
    if axes is not None:
        if len(set(axes)) != len(axes):
            raise ValueError(f"{full}: axes must be distinct; got {axes}; name each axis once")
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
        x = _fit_lengths(x, s, fft_type)
    out = lax_fft(wrap(x), fft_type, s)
    if norm in ("ortho", "forward"):
        # Empty arrays need no scaling.
        size = prod(s) or 1
        scale = sqrt(size) if norm == "ortho" else float(size)
        factor = scale if name.startswith("i") else 1 / scale
        out = wrap(o.mul(out._node, _scalar_like(factor, out._node)))
    return out if moved is None or moved == last else moveaxis(out, last, moved)


def _scalar_like(value: float, x: Node) -> Node:
    return scalar_node(value, x.aval.dtype, False)


def _fit_lengths(x: Node, s: Sequence[int], fft_type: FftType) -> Node:
    """Truncate or zero-pad the last axes to the lengths that the transform expects."""
    lengths = [*s[:-1], s[-1] // 2 + 1] if fft_type == FftType.IRFFT else [*s]
    first = x.aval.ndim - len(lengths)
    for k, n in enumerate(lengths):
        if n < x.aval.shape[first + k]:
            x = cut(x, first + k, 0, n)
    missing = [n - m for n, m in zip(lengths, x.aval.shape[first:], strict=True)]
    if any(missing):
        x = pad(wrap(x), [(0, 0)] * first + [(0, n) for n in missing])._node
    return x


def _check_one_axis(name: str, axis: Any) -> None:
    if isinstance(axis, list | tuple):
        raise ValueError(
            f"jnp.fft.{name}: only one axis is supported; got axis={axis!r}; use "
            f"jnp.fft.{name}n for several"
        )


def _transform_one_axis(
    name: str, fft_type: FftType, a: Any, n: Any, axis: Any, norm: Any
) -> Array:
    _check_one_axis(name, axis)
    axes = None if axis is None else [axis]
    return _core(name, fft_type, a, None if n is None else [n], axes, norm)


_WHAT = {
    FftType.FFT: "discrete Fourier transform",
    FftType.IFFT: "inverse discrete Fourier transform",
    FftType.RFFT: "Fourier transform of real numbers",
    FftType.IRFFT: "inverse Fourier transform to real numbers",
}
_TAKEN = {
    FftType.FFT: "Real or complex array to transform.",
    FftType.IFFT: "Real or complex spectrum to transform.",
    FftType.RFFT: "Real array to transform.",
    FftType.IRFFT: "Non-negative half of a spectrum along the last transformed axis.",
}
_COMPLEX = "of dtype complex64 (complex128 for 64-bit numbers)"
_GIVES = {
    FftType.FFT: f"Spectrum {_COMPLEX}.",
    FftType.IFFT: f"Transform {_COMPLEX}.",
    FftType.RFFT: f"Non-negative half of the spectrum,\n        {_COMPLEX}.",
    FftType.IRFFT: "Real transform of dtype float32 (float64 for 64-bit numbers).",
}
_ONE_AXIS = """n : int, optional
        Length along the axis to which the array is cut or padded with zeros. The default is its
        own length{}.
    axis : int, optional
        Axis to transform. The default is the last one."""
_SIZES = """s : sequence of int, optional
        Lengths along the axes to which the array is cut or padded with zeros. The default is
        its own lengths{}."""
_TWO_AXES = f"""{_SIZES}
    axes : pair of int, optional
        Axes to transform. The default is the last two."""
_MANY_AXES = f"""{_SIZES}
    axes : sequence of int, optional
        Axes to transform. The default is as many of the last axes as `s` has, or all axes."""


def _see_also(name: str) -> str:
    """Return the See Also entries of a transform: its inverse, and its form over other axes."""
    base = name.rstrip("2n")
    opposite = {"fft": "ifft", "ifft": "fft", "rfft": "irfft", "irfft": "rfft"}[base]
    tail = name[len(base) :]
    other, what = (f"{base}n", "over several axes") if not tail else (base, "along one axis")
    return f"{opposite}{tail} : The inverse.\n    {other} : The transform {what}."


P = ParamSpec("P")


def _set_docstring(
    function: Callable[P, Array], name: str, fft_type: FftType, over: str, axes: str, example: str
) -> Callable[P, Array]:
    function.__name__ = function.__qualname__ = name
    length = ", for n elements 2 (n - 1) along the last axis" if fft_type is FftType.IRFFT else ""
    complex_too = ", or `a` is complex" if fft_type is FftType.RFFT else ""
    text = fill(
        f"Compute the {_WHAT[fft_type]} {over}.\n\n"
        f"    Parameters\n    ----------\n    a : array_like\n        {_TAKEN[fft_type]}\n"
        f"    {axes.format(length)}\n    {{norm_fft}}\n\n"
        f"    Returns\n    -------\n    Array\n        {_GIVES[fft_type]}\n\n"
        "    Raises\n    ------\n"
        f"    ValueError\n        If lengths, axes or `norm` do not fit{complex_too}.\n"
        "    TypeError\n        If `a` is a list or a string.\n\n"
        f"    See Also\n    --------\n    {_see_also(name)}\n\n"
        "    Notes\n    -----\n    Unlike NumPy, there is no argument `out`."
    )
    function.__doc__ = documented(text, f"fft.{name}", example)
    # A transform along one axis is a single op, for which compilation does not pay off.
    return api_boundary(function if axes is _ONE_AXIS else compiled_if_small("a")(function))


if TYPE_CHECKING:

    class OneAxis(Protocol):
        """A transform along one axis."""

        def __call__(
            self, a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
        ) -> Array: ...


def _make_one_axis(name: str, fft_type: FftType, example: str) -> OneAxis:
    def function(
        a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
    ) -> Array:
        return _transform_one_axis(name, fft_type, a, n, axis, norm)

    return _set_docstring(function, name, fft_type, "along one axis", _ONE_AXIS, example)


if TYPE_CHECKING:

    class TwoAxes(Protocol):
        """A transform over two axes."""

        def __call__(
            self,
            a: ArrayLike,
            s: Sequence[SupportsIndex] | None = None,
            axes: Sequence[int] = (-2, -1),
            norm: str | None = None,
        ) -> Array: ...


def _make_two_axes(name: str, fft_type: FftType, example: str) -> TwoAxes:
    def function(
        a: ArrayLike,
        s: Sequence[SupportsIndex] | None = None,
        axes: Sequence[int] = (-2, -1),
        norm: str | None = None,
    ) -> Array:
        if len(axes) != 2:
            raise ValueError(
                f"jnp.fft.{name}: exactly two axes are required; got axes={axes!r}; use "
                f"jnp.fft.{name}n for others"
            )
        return _core(name, fft_type, a, s, axes, norm)

    return _set_docstring(function, name, fft_type, "over two axes", _TWO_AXES, example)


if TYPE_CHECKING:

    class ManyAxes(Protocol):
        """A transform over several axes."""

        def __call__(
            self,
            a: ArrayLike,
            s: Sequence[SupportsIndex] | None = None,
            axes: Sequence[int] | None = None,
            norm: str | None = None,
        ) -> Array: ...


def _make_many_axes(name: str, fft_type: FftType, example: str) -> ManyAxes:
    def function(
        a: ArrayLike,
        s: Sequence[SupportsIndex] | None = None,
        axes: Sequence[int] | None = None,
        norm: str | None = None,
    ) -> Array:
        return _core(name, fft_type, a, s, axes, norm)

    return _set_docstring(function, name, fft_type, "over several axes", _MANY_AXES, example)


fft = _make_one_axis(
    "fft", FftType.FFT, "[1.0, 2.0, 3.0, 4.0] -> [10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j]"
)
ifft = _make_one_axis(
    "ifft", FftType.IFFT, "[4.0, 0.0, 0.0, 0.0] -> [1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j]"
)
rfft = _make_one_axis("rfft", FftType.RFFT, "[1.0, 2.0, 3.0, 4.0] -> [10.+0.j, -2.+2.j, -2.+0.j]")
irfft = _make_one_axis("irfft", FftType.IRFFT, "[10.0, -2.0, -2.0] -> [1., 3., 3., 3.]")
fft2 = _make_two_axes("fft2", FftType.FFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
ifft2 = _make_two_axes(
    "ifft2", FftType.IFFT, "jnp.eye(2) -> [[0.5+0.j, 0. +0.j], [0. +0.j, 0.5+0.j]]"
)
rfft2 = _make_two_axes("rfft2", FftType.RFFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
irfft2 = _make_two_axes("irfft2", FftType.IRFFT, "jnp.ones((2, 2)) -> [[1., 0.], [0., 0.]]")
fftn = _make_many_axes("fftn", FftType.FFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
ifftn = _make_many_axes(
    "ifftn", FftType.IFFT, "jnp.eye(2) -> [[0.5+0.j, 0. +0.j], [0. +0.j, 0.5+0.j]]"
)
rfftn = _make_many_axes("rfftn", FftType.RFFT, "jnp.eye(2) -> [[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]]")
irfftn = _make_many_axes("irfftn", FftType.IRFFT, "jnp.ones((2, 2)) -> [[1., 0.], [0., 0.]]")


@api_boundary
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the real spectrum of a signal of which one half is given.

    The other half of the signal is the complex conjugate of the first.

    Parameters
    ----------
    a : array_like
        First half of the signal, with m elements along the axis.
    n : int, optional
        Length of the result. The default is 2 (m - 1).
    axis : int, optional
        Axis to transform. The default is the last one.
    {norm_fft}

    Returns
    -------
    Array
        Spectrum of dtype float32 (float64 for 64-bit numbers).

    Raises
    ------
    ValueError
        If `axis` is a sequence, or `n` or `norm` does not fit.

    See Also
    --------
    ihfft : The inverse.
    irfft : The same without conjugation and scaled.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    _check_one_axis("hfft", axis)
    x = conj(a)
    count = (x.shape[axis] - 1) * 2 if n is None else n
    out = _transform_one_axis("hfft", FftType.IRFFT, x, n, axis, norm)._node
    return wrap(o.mul(out, _scalar_like(count, out)))


@api_boundary
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute one half of the signal of a real spectrum, the inverse of `hfft`.

    Parameters
    ----------
    a : array_like
        Real spectrum.
    n : int, optional
        Length along the axis to which `a` is cut or padded with zeros.
    axis : int, optional
        Axis to transform. The default is the last one.
    {norm_fft}

    Returns
    -------
    Array
        First half of the signal, of complex dtype, with n // 2 + 1 elements along the axis.

    Raises
    ------
    ValueError
        If `a` is complex, `axis` is a sequence, or `n` or `norm` does not fit.

    See Also
    --------
    hfft : The inverse.
    rfft : Transform of real signals.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fft.ihfft(jnp.array([8.0, 0.0, 0.0, 0.0]))
    Array([2.+0.j, 2.+0.j, 2.+0.j], dtype=complex64)
    """
    _check_one_axis("ihfft", axis)
    x = as_node(a, "jnp.fft.ihfft")
    if n is None and x.aval.ndim and not x.aval.shape[axis]:
        raise IncompatibleShapesError(
            f"jnp.fft.ihfft: the axis is empty; got shape {x.aval.shape}; pass elements"
        )
    count = x.aval.shape[axis] if n is None else n
    out = conj(_transform_one_axis("ihfft", FftType.RFFT, wrap(x), n, axis, norm))._node
    return wrap(o.mul(out, _scalar_like(1 / count, out)))


def _spacing(name: str, n: Any, d: Any) -> int:
    if isinstance(n, list | tuple):
        raise ValueError(
            f"The n argument of jnp.fft.{name} only takes an int. Got n = {n!r}; pass one integer"
        )
    if isinstance(d, list | tuple):
        raise ValueError(
            f"The d argument of jnp.fft.{name} only takes a single value. Got d = {d!r}; "
            "pass one number"
        )
    length = as_static(n, f"jnp.fft.{name}", "size")
    try:
        return operator.index(length)
    except TypeError:
        raise TypeError(
            f"{name}: expected an integer as the number of samples; got {length!r} (n); convert it "
            "with int, or pass len(x) of the samples"
        ) from None


def _frequencies(places: Array, step: Any, dtype: Any) -> Array:
    over = cast(as_node(step), places.dtype)
    return wrap(cast((places / wrap(over))._node, dtype))


@api_boundary
def fftfreq(
    n: int, d: Array | float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of `fft`.

    Parameters
    ----------
    n : int
        Number of samples of the signal.
    d : scalar, optional
        Distance between samples. The default is 1.
    dtype : dtype_like, optional
        Dtype of the result. The default is float32 (float64 with `jax_enable_x64`). An integer
        dtype truncates the frequencies, to 0 for `d` of 1, as in JAX.
    device : Device, optional
        Where the result is placed.

    Returns
    -------
    Array
        Frequencies in cycles per unit of `d`, of shape (n,).

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` or `d` is not a scalar.

    See Also
    --------
    rfftfreq : Frequencies of `rfft`.
    fftshift : Move frequency 0 to the middle.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = _spacing("fftfreq", n, d)
    result_dtype = (
        dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "fftfreq")
    )
    real = dtypes.finfo(dtypes.to_inexact(result_dtype)).dtype
    i = arange(n, dtype=real, device=device)
    return _frequencies((i + n // 2) % n - n // 2, d * n, result_dtype)


@api_boundary
def rfftfreq(
    n: int, d: Array | float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of `rfft`.

    Parameters
    ----------
    n : int
        Number of samples of the signal.
    d : scalar, optional
        Distance between samples. The default is 1.
    dtype : dtype_like, optional
        Floating dtype of the result. The default is float32 (float64 with `jax_enable_x64`).
    device : Device, optional
        Where the result is placed.

    Returns
    -------
    Array
        Frequencies in cycles per unit of `d`, of shape (n // 2 + 1,).

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` or `d` is not a scalar.

    See Also
    --------
    fftfreq : Frequencies of `fft`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = _spacing("rfftfreq", n, d)
    result_dtype = (
        dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "rfftfreq")
    )
    i = arange(n // 2 + 1, dtype=result_dtype, device=device)
    over = cast(as_node(d * n), result_dtype)
    return i / wrap(over)


def _shift_axes(name: str, x: Any, axes: Any, sign: int) -> Array:
    node = as_node(x, f"jnp.fft.{name}")
    shape = node.aval.shape
    if axes is None:
        axes = tuple(range(len(shape)))
    elif isinstance(axes, int):
        axes = (axes,)
    at = tuple([as_axis(d, len(shape), f"jnp.fft.{name}") for d in axes])
    return roll(wrap(node), tuple([sign * (shape[d] // 2) for d in at]), at) if at else wrap(node)


@api_boundary
@compiled_if_small("x")
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 to the middle of the axes.

    Parameters
    ----------
    x : array_like
        Transform or frequencies, in the order of `fft`.
    axes : int or sequence of int, optional
        Axes to shift. The default is all axes.

    Returns
    -------
    Array
        Shifted array of the same shape and dtype.

    Raises
    ------
    TypeError
        If `x` is a list or a string.
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    ifftshift : The inverse.
    fftfreq : Frequencies of `fft`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fft.fftshift(jnp.fft.fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    return _shift_axes("fftshift", x, axes, 1)


@api_boundary
@compiled_if_small("x")
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 back to the start of the axes, the inverse of `fftshift`.

    Parameters
    ----------
    x : array_like
        Transform or frequencies with frequency 0 in the middle.
    axes : int or sequence of int, optional
        Axes to shift. The default is all axes.

    Returns
    -------
    Array
        Shifted array of the same shape and dtype.

    Raises
    ------
    TypeError
        If `x` is a list or a string.
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    fftshift : The inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1], dtype=int32)
    """
    return _shift_axes("ifftshift", x, axes, -1)
