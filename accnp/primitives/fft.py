"""The discrete Fourier transform: the op `fft` for the four types of transforms over the last axes.

The reference function calls the C++ library inside `scipy.fft` directly. For large arrays
`_fft_rounds` distributes the transforms over threads (`Op.rounds`). The complex transform of real
numbers computes only half of the frequencies (`compiler/fusion/program.py`), and the kernel of
`fft_mirror` fills in the other half.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Lowering, o
from accnp.lazy_imports import imported, load_extension
from accnp.primitives.kinds import BOOL, full, opaque

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import V

__all__ = ["FftType"]

# Minimum number of elements for which threads share one transform over several axes: 512 x 512
# takes 0.83 ms in one thread and 0.97 ms shared.
SEVERAL = 1 << 19
PART = 1 << 15  # minimum elements per thread, about 50 us; there are at most 16 parts


class FftType(IntEnum):
    """Types of Fourier transforms for `lax.fft`.

    Attributes
    ----------
    FFT : int
        Forward transform of complex numbers.
    IFFT : int
        Inverse transform of complex numbers.
    RFFT : int
        Forward transform of real numbers.
    IRFFT : int
        Inverse transform to real numbers.

    Raises
    ------
    ValueError
        If `lax.fft` gets a string that names no type.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.fft(jnp.ones(4), jnp.lax.FftType.RFFT, (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_NAMES = {
    FftType.FFT: "fftn",
    FftType.IFFT: "ifftn",
    FftType.RFFT: "rfftn",
    FftType.IRFFT: "irfftn",
}


def _complex_dtype(dtype: np.dtype) -> np.dtype:
    wide = dtype in (np.dtype(np.float64), np.dtype(np.complex128))
    return np.dtype(np.complex128 if wide else np.complex64)


def _fft_infer(x: Aval, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Aval:
    """Complex transforms accept real operands, because converting them first would cost twice."""
    n = len(fft_lengths)
    if n > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as "
            f"fft_lengths {fft_lengths}; give one length for each transformed axis"
        )
    outer, inner = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
    dtype, shape = x.dtype, x.shape
    name = "FFT"
    if fft_type == FftType.RFFT:
        name = "RFFT"
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"RFFT input must be float32 or float64, got {dtype}")
        shape = (*outer, *fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    elif fft_type == FftType.IRFFT:
        if dtype.kind != "c":
            raise ValueError(f"IRFFT input must be complex64 or complex128, got {dtype}")
        if inner[:-1] != fft_lengths[:-1]:
            raise ValueError(
                f"IRFFT input shape {x.shape} minor dimensions must be equal to all except the "
                f"last fft_length, got {fft_lengths=}; pad or slice the input"
            )
        real = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return make_aval((*outer, *fft_lengths), real)
    elif dtype.kind != "c" and dtype not in (np.float32, np.float64):
        raise ValueError(f"FFT input must be complex64 or complex128, got {dtype}")
    if inner != fft_lengths:
        raise ValueError(
            f"{name} input shape {x.shape} minor dimensions must be equal to fft_lengths "
            f"{fft_lengths}; pad or slice the input"
        )
    return make_aval(shape, _complex_dtype(x.dtype))


@functools.cache
def _load_library() -> ModuleType | None:
    """Return SciPy's internal library, or None if it is missing; scipy.fft's checks take 3-8 us."""
    for name in ("_duccfft.pyduccfft", "_pocketfft.pypocketfft"):  # from SciPy 1.18 on; before
        try:
            return load_extension(f"scipy.fft.{name}")
        except ImportError:
            pass
    return None


def _transform(
    x: np.ndarray, fft_type: FftType, axes: Sequence[int], last: int, out: np.ndarray | None = None
) -> np.ndarray:
    """Compute the transforms along these axes in this thread, into `out` if it is given.

    SciPy's own `workers` are not used: the library transforms groups of lines with vector
    instructions and left-over lines one by one, which rounds differently (SciPy 1.18), and the
    number of workers determines which lines are left over.
    """
    forward = fft_type in (FftType.FFT, FftType.RFFT)
    library = _load_library()
    if library is None:
        lengths = [*[x.shape[d] for d in axes[:-1]], last]
        y = getattr(imported("scipy.fft"), _NAMES[fft_type])(x, lengths, axes)
        if out is None:
            return y
        out[...] = y
        return out
    scaled = 0 if forward else 2  # 2: divide by the number of elements
    if fft_type == FftType.IRFFT:
        return library.c2r(x, axes, last, forward, scaled, out, 1)
    way = library.r2c if fft_type == FftType.RFFT else library.c2c
    y = way(x, axes, forward, scaled, out, 1)
    if x.dtype.kind == "f" and fft_type != FftType.RFFT:
        y.imag += 0  # replaces -0 by 0 in the mirrored half
    return y


def _fit_frequencies(x: np.ndarray, fft_type: FftType, last: int) -> np.ndarray:
    """Cut or pad the frequencies of an inverse transform to the number that its length requires."""
    known, half = x.shape[-1], last // 2 + 1
    if fft_type != FftType.IRFFT or known == half:
        return x
    if known > half:
        return x[..., :half]
    return np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, half - known)])


def _fft_numpy(x: np.ndarray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> np.ndarray:
    if not x.size or not prod(fft_lengths):
        aval = _fft_infer(make_aval(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(aval.shape, aval.dtype)
    axes, last = range(x.ndim - len(fft_lengths), x.ndim), fft_lengths[-1]
    return _transform(_fit_frequencies(x, fft_type, last), fft_type, axes, last)


_Round = tuple[Callable[[int, int], object], int, int]


def _make_round(
    x: np.ndarray, out: np.ndarray, fft_type: FftType, axes: Sequence[int], last: int
) -> _Round:
    """Return a round that transforms along some axes, in parts of the longest other axis. The parts
    depend on shapes only, and have multiples of the vector length."""
    across = max(set(range(x.ndim)) - {*axes}, key=lambda d: (x.shape[d], -d), default=-1)
    n = 1 if across < 0 else x.shape[across]
    chunk = -(-n // max(1, min(16, out.size // PART)))
    chunk = -(-chunk // 4) * 4 if n >= 8 else chunk

    def work(first: int, end: int) -> None:
        part = (*[slice(None)] * across, slice(first, end)) if across >= 0 else ...
        _transform(x[part], fft_type, axes, last, out[part])

    return work, n, chunk


def _fft_rounds(
    out: np.ndarray, x: np.ndarray, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> Iterator[_Round]:
    """Large transforms over several axes run axis by axis; otherwise, examples are distributed."""
    last = fft_lengths[-1]
    x = _fit_frequencies(x, fft_type, last)
    axes = range(x.ndim - len(fft_lengths), x.ndim)
    halved = fft_type in (FftType.RFFT, FftType.IRFFT)
    mirrored = x.dtype.kind == "f" and not halved
    if len(axes) == 1 or prod(fft_lengths) < SEVERAL or mirrored:
        yield _make_round(x, out, fft_type, axes, last)
        return
    whole = np.empty(x.shape, x.dtype) if fft_type == FftType.IRFFT else out
    if fft_type == FftType.RFFT:
        yield _make_round(x, out, fft_type, axes[-1:], last)
        x = out
    forward = fft_type in (FftType.FFT, FftType.RFFT)
    for d in axes[:-1] if halved else axes:
        yield _make_round(x, whole, FftType.FFT if forward else FftType.IFFT, (d,), x.shape[d])
        x = whole
    if fft_type == FftType.IRFFT:
        yield _make_round(x, out, fft_type, axes[-1:], last)


def _count_frequencies(shape: tuple[int, ...], n: int, dtype: np.dtype) -> Node:
    """Return how many of the n frequencies each stored one represents: 1 or 2 on the last axis."""
    axis, kind = len(shape) - 1, np.dtype(np.int32)
    place = o.iota(dtype=kind, shape=shape, dimension=axis)
    once = o.eq(place, full(shape, 0, kind))
    if n % 2 == 0:
        once = o.or_(once, o.eq(place, full(shape, shape[-1] - 1, kind)))
    assert once.aval.dtype == BOOL
    return o.select_n(once, full(shape, 2, dtype), full(shape, 1, dtype))


def _fft_jvp(t: Node, y: Node, x: Node, **p: object) -> Node:
    return o.fft(t, **p)


def _fft_transpose(
    ct: Node, x: Operand, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> tuple[Node]:
    """Transform matrices are symmetric; stored frequencies of real transforms can count twice."""
    p = {"fft_lengths": fft_lengths}
    shape, n = ct.aval.shape, prod(fft_lengths)
    if fft_type == FftType.RFFT:
        shares = _count_frequencies(shape, fft_lengths[-1], ct.aval.dtype)
        back = o.fft(o.div(o.conj(ct), shares), fft_type=FftType.IRFFT, **p)
        return (o.mul(back, full(back.aval.shape, n, back.aval.dtype)),)
    if fft_type == FftType.IRFFT:
        y = o.fft(ct, fft_type=FftType.RFFT, **p)
        shares = _count_frequencies(y.aval.shape, fft_lengths[-1], y.aval.dtype)
        scaled = o.mul(o.mul(full(y.aval.shape, 1 / n, y.aval.dtype), shares), y)
        return (o.conj(scaled),)
    y = o.fft(ct, fft_type=fft_type, **p)
    return (o.real(y) if x.aval.dtype.kind == "f" else y,)


def _fft_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
) -> tuple[Node, bool]:
    return o.fft(xs[0], **p), True


def _half_of_real(
    make: Callable[[str, Params, tuple[V, ...]], V], params: Params, operands: tuple[V, ...]
) -> V | None:
    """Compute only half of the frequencies of real numbers, which determines the others."""
    (x,) = operands
    if params["fft_type"] != FftType.FFT or x.aval.dtype.kind == "c" or not x.aval.size:
        return None
    half = make("fft", {**params, "fft_type": FftType.RFFT}, (x,))
    return make("fft_mirror", {"fft_lengths": params["fft_lengths"]}, (half,))


opaque(
    "fft",
    lowering=Lowering(gpu="cupy.calls.fft"),
    infer=_fft_infer,
    numpy=_fft_numpy,
    jvp=(_fft_jvp,),
    transpose=_fft_transpose,
    batch=_fft_batch,
    rounds=_fft_rounds,
    rewrite=_half_of_real,
    makes_nan=True,
    cost=250,  # measured: 2 ns per element for short rows, 6 to 10 ns for long lines
    show=lambda p: {**p, "fft_type": int(p["fft_type"])},
    sharding="fft",
)


# --- mirrored half of a transform of real numbers ------------------------------------------------


def _mirror_infer(x: Aval, *, fft_lengths: tuple[int, ...]) -> Aval:
    return make_aval((*x.shape[:-1], fft_lengths[-1]), x.dtype)


def _mirror_numpy(x: np.ndarray, *, fft_lengths: tuple[int, ...]) -> np.ndarray:
    n = fft_lengths[-1]
    half: int = x.shape[-1]
    y = np.empty((*x.shape[:-1], n), x.dtype)
    y[..., :half] = x
    back: list[np.ndarray] = [-np.arange(k) % k for k in fft_lengths[:-1]]
    y[..., half:] = x[(..., *np.ix_(*back, np.arange(n - half, 0, -1)))].conj()
    imaginary = np.imag(y)
    imaginary += 0  # replaces -0 by 0
    return y


opaque(
    "fft_mirror",
    lowering=Lowering("fourier.mirror"),
    infer=_mirror_infer,
    numpy=_mirror_numpy,
    cost=2,
)
