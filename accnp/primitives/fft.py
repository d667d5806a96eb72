"""The discrete Fourier transform: one op for the four kinds, over the last axes.

SciPy's pocketfft does the work, on as many threads as accnp has where there are several transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np

from accnp.config import config
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.kinds import BOOL, full, opaque

__all__ = ["FftType"]

# Elements from which threads share the transforms: 512x512 take 0.83 ms alone, 0.97 shared.
SEVERAL = 1 << 19


class FftType(IntEnum):
    """Which transform: between complex numbers, from real ones, to real ones."""

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


def _wide(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex128 if dtype in (np.float64, np.complex128) else np.complex64)


def _fft_infer(x: Aval, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Aval:
    """Real operands of the complex transforms stand for their conversion, which costs twice."""
    n = len(fft_lengths)
    if n > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as "
            f"fft_lengths {fft_lengths}."
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
                f"last fft_length, got {fft_lengths=}"
            )
        real = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return make_aval((*outer, *fft_lengths), real)
    elif dtype.kind != "c" and dtype not in (np.float32, np.float64):
        raise ValueError(f"FFT input must be complex64 or complex128, got {dtype}")
    if inner != fft_lengths:
        raise ValueError(
            f"{name} input shape {x.shape} minor dimensions must be equal to fft_lengths "
            f"{fft_lengths}"
        )
    return make_aval(shape, _wide(dtype))


def _fft_numpy(x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    import scipy.fft

    if not x.size or not prod(fft_lengths):
        aval = _fft_infer(make_aval(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(aval.shape, aval.dtype)
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    outer = prod(x.shape[: x.ndim - len(fft_lengths)])
    workers = config.threads if outer * prod(fft_lengths) >= SEVERAL else 1
    y = getattr(scipy.fft, _NAMES[fft_type])(x, fft_lengths, axes, workers=workers)
    halved = fft_type is FftType.RFFT and len(axes) == 1
    if x.dtype.kind == "f" and y.dtype.kind == "c" and not halved:
        y.imag += 0  # the half that is mirrored has -0 for 0
    return y


def _shares(shape: tuple[int, ...], n: int, dtype: np.dtype) -> Node:
    """How many of the n whole frequencies each kept one stands for: 1 or 2, along the last axis."""
    axis, kind = len(shape) - 1, np.dtype(np.int32)
    place = o.iota(dtype=kind, shape=shape, dimension=axis)
    once = o.eq(place, full(shape, 0, kind))
    if n % 2 == 0:
        once = o.or_(once, o.eq(place, full(shape, shape[-1] - 1, kind)))
    assert once.aval.dtype == BOOL
    return o.select_n(once, full(shape, 2, dtype), full(shape, 1, dtype))


def _fft_transpose(
    ct: Node, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> tuple[Node]:
    """The transforms are symmetric matrices; half of the frequencies stand for two each."""
    p = {"fft_lengths": fft_lengths}
    shape, n = ct.aval.shape, prod(fft_lengths)
    if fft_type == FftType.RFFT:
        shares = _shares(shape, fft_lengths[-1], ct.aval.dtype)
        back = o.fft(o.div(o.conj(ct), shares), fft_type=FftType.IRFFT, **p)
        return (o.mul(back, full(back.aval.shape, n, back.aval.dtype)),)
    if fft_type == FftType.IRFFT:
        y = o.fft(ct, fft_type=FftType.RFFT, **p)
        shares = _shares(y.aval.shape, fft_lengths[-1], y.aval.dtype)
        scaled = o.mul(o.mul(full(y.aval.shape, 1 / n, y.aval.dtype), shares), y)
        return (o.conj(scaled),)
    y = o.fft(ct, fft_type=fft_type, **p)
    return (o.real(y) if x.aval.dtype.kind == "f" else y,)


def _fft_batch(size: int, xs: Sequence[Node], batched: Any, p: dict[str, Any]) -> Any:
    return o.fft(xs[0], **p), True


opaque(
    "fft",
    infer=_fft_infer,
    numpy=_fft_numpy,
    jvp=(lambda t, y, x, **p: o.fft(t, **p),),
    transpose=_fft_transpose,
    batch=_fft_batch,
    cuda="gpu_library.fft",
    cost=250,  # 2 ns an element in rows, 6 to 10 in long lines
    show=lambda p: {**p, "fft_type": int(p["fft_type"])},
)
