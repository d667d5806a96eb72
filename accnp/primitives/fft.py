"""The discrete Fourier transform: one op for the four kinds, over the last axes.

SciPy's pocketfft does the work; of several transforms each thread does some (`Op.apart`). Those of
real numbers are computed by half (`passes/program.py`): `fft_mirror` is the kernel that fills in
the other half.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np

from accnp.config import config
from accnp.ir.aval import Aval, make_aval
from accnp.ir.kernel import Operand, OwnKernel, dtype_code
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.kinds import BOOL, full, opaque
from accnp.primitives.nests import Text
from accnp.primitives.views import contiguous

__all__ = ["FftType"]

# Elements from which threads share the transforms: 512x512 take 0.83 ms alone, 0.97 shared.
SEVERAL = 1 << 19
BLOCK = 4096  # frequencies that one task mirrors


class FftType(IntEnum):
    """Which transform: between complex numbers, from real ones, to real ones.

    A ValueError for texts that name none.

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
    return make_aval(shape, _wide(x.dtype))


@functools.cache
def _pocketfft() -> Any:
    """The functions below `scipy.fft`, whose checks take 3 to 8 us; None if they are gone."""
    try:
        return importlib.import_module("scipy.fft._pocketfft.pypocketfft")
    except ImportError:
        return None


def _transformed(x: Any, fft_type: FftType, lengths: tuple[int, ...], workers: int) -> Any:
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    forward = fft_type in (FftType.FFT, FftType.RFFT)
    library = _pocketfft()
    of_half = fft_type == FftType.IRFFT
    if library is None or (of_half and x.shape[-1] != lengths[-1] // 2 + 1):
        import scipy.fft

        return getattr(scipy.fft, _NAMES[fft_type])(x, lengths, axes, workers=workers)
    scaled = 0 if forward else 2  # 2: divided by the number of elements
    if of_half:
        return library.c2r(x, axes, lengths[-1], forward, scaled, None, workers)
    way = library.r2c if fft_type == FftType.RFFT else library.c2c
    return way(x, axes, forward, scaled, None, workers)


def _fft_numpy(x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if not x.size or not prod(fft_lengths):
        aval = _fft_infer(make_aval(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(aval.shape, aval.dtype)
    several = len(fft_lengths) > 1 and prod(fft_lengths) >= SEVERAL
    y = _transformed(x, fft_type, fft_lengths, config.threads if several else 1)
    if x.dtype.kind == "f" and fft_type != FftType.RFFT:
        y.imag += 0  # the half that is mirrored has -0 for 0
    return y


def _fft_apart(x: Aval, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> int:
    return x.ndim - len(fft_lengths)


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
    apart=_fft_apart,
    cost=250,  # 2 ns an element in rows, 6 to 10 in long lines
    show=lambda p: {**p, "fft_type": int(p["fft_type"])},
)


# --- the other half of a transform of real numbers -----------------------------------------------


def _mirror_infer(x: Aval, *, fft_lengths: tuple[int, ...]) -> Aval:
    return make_aval((*x.shape[:-1], fft_lengths[-1]), x.dtype)


def _mirror_numpy(x: Any, *, fft_lengths: tuple[int, ...]) -> Any:
    n, half = fft_lengths[-1], x.shape[-1]
    y = np.empty((*x.shape[:-1], n), x.dtype)
    y[..., :half] = x
    back = [-np.arange(k) % k for k in fft_lengths[:-1]]
    y[..., half:] = x[(..., *np.ix_(*back, np.arange(n - half, 0, -1)))].conj()
    y.imag += 0
    return y


def _mirror_kernel(
    operands: Sequence[Operand], results: Sequence[Aval], params: dict[str, Any]
) -> OwnKernel | None:
    """Blocks of rows of the known half, each to its place and, conjugated, to where it is met again
    from the other end of every axis. Adding to 0, and taking from it, leaves no -0."""
    (x,), (y,) = operands, results
    lengths = params["fft_lengths"]
    n, half = lengths[-1], x.shape[-1]
    if x.strides != contiguous(x.shape) or not y.size:
        return None
    text = Text(2)
    rows, blocks = prod(x.shape[:-1]), -(-half // BLOCK)
    zero = f"{dtype_code(np.real(np.empty(0, x.dtype)).dtype)}(0)"
    with text.block("for u in range(lo, hi):"):
        count, width, size = text.integer(blocks), text.integer(half), text.integer(n)
        text.add(f"r = u // {count}", f"start = (u - r * {count}) * {BLOCK}")
        text.add(f"end = start + {BLOCK}", f"end = end if end < {width} else {width}")
        text.add("rest = r", "back = 0")
        step = 1
        for k, length in reversed([*enumerate(lengths[:-1])]):
            name = text.integer(length)
            text.add(f"rest{k} = rest // {name}", f"i{k} = rest - rest{k} * {name}")
            text.add(f"i{k} = {name} - i{k} if i{k} > 0 else i{k}", f"rest = rest{k}")
            text.add(f"back = back + i{k} * {text.integer(step)}")
            step *= length
        text.add(f"back = back + rest * {text.integer(step)}" if rows > step else "back = back")
        text.add(f"x = at(a0, r * {width})", f"y = at(a1, r * {size})")
        with text.block("for j in range(start, end):"):
            text.add(f"y[j] = make_complex(x[j].real, x[j].imag + {zero})")
        text.add("start = start if start > 0 else 1", f"last = ({size} + 1) // 2")
        text.add("end = end if end < last else last")
        text.add(f"y = at(a1, back * {size})")
        with text.block(f"for k in range({size} - end + 1, {size} - start + 1):"):
            text.add(f"z = x[{size} - k]", f"y[k] = make_complex(z.real, {zero} - z.imag)")
    return text.own(rows * blocks, 2 * y.size)


opaque(
    "fft_mirror", infer=_mirror_infer, numpy=_mirror_numpy, kernel=_mirror_kernel, cost=2,
)  # fmt: skip
