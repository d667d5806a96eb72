"""The intrinsics of matrix products as plain Python: for kernels that call the library, and for the
library's own texts, written for vectors of VECTOR_BYTES.

In: NumPy scalars, and arrays in place of pointers. Out: entries of ``plain.NAMESPACE``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .library import RUN, SIGNATURES, TALL

VECTOR_BYTES = 32
Fma = Callable[[Any, Any, Any], Any]


def _gemm(dtype: Any, fma: Fma) -> Callable[..., None]:
    """c (op)= a @ b in the library's order: runs of a chain of fma, added up."""
    twice = np.dtype(dtype).kind == "c"
    run = RUN // 2 if twice else RUN

    def step(z: Any, x: Any, y: Any) -> Any:
        if not twice:
            return fma(x, y, z)
        out = np.empty((), dtype)
        out.real = fma(-x.imag, y.imag, fma(x.real, y.real, z.real))
        out.imag = fma(x.imag, y.real, fma(x.real, y.imag, z.imag))
        return out[()]

    def call(
        m: Any, n: Any, k: Any, a: Any, rsa: Any, csa: Any, b: Any, rsb: Any, csb: Any,
        c: Any, ldc: Any, how: Any,
    ) -> None:  # fmt: skip
        for i, j in np.ndindex(int(m), int(n)):
            out = c[i * ldc + j] if how else dtype(0)
            for p0 in range(0, int(k), run):
                chain = dtype(0)
                for p in range(p0, min(int(k), p0 + run)):
                    chain = step(chain, a[i * rsa + p * csa], b[p * rsb + j * csb])
                out = out - chain if how < 0 else out + chain
            c[i * ldc + j] = out

    return call


def _type(p: Any) -> Any:
    """The element type of a pointer, which may be an array or something around one."""
    return (p if isinstance(p, np.ndarray) else p.data).dtype.type


def _lanes(p: Any) -> int:
    return VECTOR_BYTES // np.dtype(_type(p)).itemsize


def _tile(rows: int, parts: int, fma: Fma) -> Callable[..., None]:
    def call(
        k: Any, a: Any, rsa: Any, csa: Any, b: Any, ldb: Any, c: Any, ldc: Any, m: Any, n: Any,
        how: Any,
    ) -> None:  # fmt: skip
        for i, j in np.ndindex(min(int(m), rows), int(n)):
            zero = chain = _type(c)(0)
            for p in range(int(k)):
                for part in range(parts):
                    x = a[i * rsa + p * csa + part]
                    chain = fma(x, b[(p * parts + part) * ldb + j], chain)
            old = c[i * ldc + j] if how else zero
            c[i * ldc + j] = old - chain if how < 0 else old + chain

    return call


def _lay(dst: Any, src: Any, stride: Any, n: Any) -> None:
    for q in range(_lanes(dst)):
        dst[q] = src[q * stride] if q < n else _type(dst)(0)


def _lay_pairs(dst: Any, other: Any, src: Any, stride: Any, n: Any) -> None:
    for q in range(0, _lanes(dst), 2):
        re, im = (src[q // 2 * stride + k] if q < n else _type(dst)(0) for k in (0, 1))
        dst[q], dst[q + 1] = re, im
        other[q], other[q + 1] = -im, re


def _turn(dst: Any, ldd: Any, src: Any, lds: Any) -> None:
    for p, q in np.ndindex(_lanes(dst), _lanes(dst)):
        dst[p * ldd + q] = src[q * lds + p]


def namespace(fma: Fma) -> dict[str, Any]:
    """Names and functions."""
    types = {"f4": np.float32, "f8": np.float64, "c8": np.complex64, "c16": np.complex128}
    found: dict[str, Any] = {"lay": _lay, "lay_pairs": _lay_pairs, "turn": _turn}
    for name in SIGNATURES:
        found[name] = _gemm(types[name.split("_")[1]], fma)
    for tall in TALL.values():
        for shape in (f"{tall}x1", f"{tall}x2"):
            found["tile_" + shape] = _tile(tall, 1, fma)
            found["twin_" + shape] = _tile(tall, 2, fma)
    found["tile_2x4"], found["twin_2x4"] = _tile(2, 1, fma), _tile(2, 2, fma)
    for name in ("f4", "f8"):
        dtype = types[name]
        count = RUN * 4 * VECTOR_BYTES // np.dtype(dtype).itemsize
        found["panel_" + name] = lambda dtype=dtype, count=count: np.empty(count, dtype)
    return found
