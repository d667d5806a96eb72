"""Plain Python versions of the intrinsics of matrix products.

`namespace` returns functions of NumPy scalars, and of arrays in place of pointers, which
`python_functions.py` adds to its ``NAMESPACE``. They serve kernels that call the library kernels of
products, and the sources of these library kernels themselves, written for vectors of VECTOR_BYTES.
They have the library's order of summation (`library.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, cast

import numpy as np

from accnp.compiler.library.library import SHAPES, SIGNATURES, source
from accnp.compiler.library.sizes import CHAIN_BYTES, LANES_BYTES, PANEL_VECTORS, RUN, VECTOR_RUN

if TYPE_CHECKING:
    from accnp.compiler.ir_tools.python_types import (
        Functions,
        Integer,
        MultiplyAdd,
        Number,
        Places,
        Pointer,
    )

VECTOR_BYTES = 32


def _gemm(dtype: type[Number], fma: MultiplyAdd) -> Callable[..., None]:
    """Return c (op)= a @ b in the library's order: sums of runs, each a chain of `fma`."""
    twice = np.dtype(dtype).kind == "c"
    run = RUN // 2 if twice else RUN

    def step(z: Number, x: Number, y: Number) -> Number:
        if not twice:
            return fma(x, y, z)
        out = np.empty((), dtype)
        out.real = fma(-x.imag, y.imag, fma(x.real, y.real, z.real))
        out.imag = fma(x.imag, y.real, fma(x.real, y.imag, z.imag))
        return cast("Number", out[()])

    def call(
        m: Integer, n: Integer, k: Integer, a: Pointer, rsa: Integer, csa: Integer,
        b: Pointer, rsb: Integer, csb: Integer, c: Pointer, ldc: Integer, how: Integer,
    ) -> None:  # fmt: skip
        for i, j in product(range(int(m)), range(int(n))):
            out = c[i * ldc + j] if how else dtype(0)
            for p0 in range(0, int(k), run):
                chain = dtype(0)
                for p in range(p0, min(int(k), p0 + run)):
                    chain = step(chain, a[i * rsa + p * csa], b[p * rsb + j * csb])
                with np.errstate(over="ignore"):
                    out = out - chain if how < 0 else out + chain
            c[i * ldc + j] = out

    return call


def _multiply_add_pairs(x: Number, y: Number, z: Number) -> np.int32:
    """Return z plus the products of the lower and of the upper halves of two words."""
    halves = [np.array([int(v)], np.int32).view(np.int16).astype(np.int64) for v in (x, y)]
    return np.array([int(z) + int(halves[0] @ halves[1])]).astype(np.int32)[0]


def _type(p: Pointer) -> type[Number]:
    """Return the element type of a pointer: an array, or an object that contains one."""
    a = p if isinstance(p, np.ndarray) else p.data
    return a.dtype.type


def _lanes(p: Pointer) -> int:
    return VECTOR_BYTES // np.dtype(_type(p)).itemsize


def _multiply(rows: int, parts: int, fma: MultiplyAdd) -> Callable[..., None]:
    def call(
        k: Integer, a: Pointer, rsa: Integer, csa: Integer, b: Pointer, ldb: Integer,
        c: Pointer, ldc: Integer, m: Integer, n: Integer, how: Integer,
    ) -> None:  # fmt: skip
        for i, j in product(range(min(int(m), rows)), range(int(n))):
            chain = _type(c)(0)
            for p in range(int(k)):
                for part in range(parts):
                    x = a[i * rsa + p * csa + part]
                    chain = fma(x, b[(p * parts + part) * ldb + j], chain)
            _update_element(c, i * ldc + j, chain, how)

    return call


def _multiply_indirect(rows: int, fma: MultiplyAdd) -> Callable[..., None]:
    def call(
        k: Integer, a: Pointer, down: Places, along: Places, b: Pointer, across: Places,
        c: Pointer, out: Places, m: Integer, n: Integer, how: Integer,
    ) -> None:  # fmt: skip
        for i, j in product(range(min(int(m), rows)), range(int(n))):
            chain = _type(c)(0)
            for p in range(int(k)):
                chain = fma(a[down[i] + along[p]], b[across[p] + j], chain)
            _update_element(c, out[i] + j, chain, how)

    return call


def _update_element(c: Pointer, j: Integer, y: Number, how: Integer) -> None:
    c[j] = y if how == 0 else (c[j] - y if how < 0 else c[j] + y)


def _dots(rows: int, fma: MultiplyAdd) -> Callable[..., None]:
    def call(
        k: Integer, x: Pointer, b: Pointer, ldb: Integer, c: Pointer, n: Integer, how: Integer
    ) -> None:
        dtype = _type(c)
        count = CHAIN_BYTES // np.dtype(dtype).itemsize
        for j in range(min(int(n), rows)):
            lanes = [dtype(0)] * count
            for p in range(int(k)):
                lanes[p % count] = fma(x[p], b[j * ldb + p], lanes[p % count])
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = [y + z for y, z in zip(lanes[:half], lanes[half:], strict=True)]
            _update_element(c, j, lanes[0], how)

    return call


def _gemv(fma: MultiplyAdd) -> Callable[..., None]:
    """Return c (op)= x @ b: runs over lanes, combined by halves."""
    dots = _dots(1, fma)

    def call(
        n: Integer, k: Integer, x: Pointer, sx: Integer, b: Pointer, rsb: Integer, csb: Integer,
        c: Pointer, how: Integer,
    ) -> None:  # fmt: skip
        dtype = _type(c)
        for j in range(int(n)):
            for p0 in range(0, max(int(k), 1), VECTOR_RUN):
                steps = range(p0, min(int(k), p0 + VECTOR_RUN))
                left = np.array([x[p * sx] for p in steps], dtype)
                right = np.array([b[p * rsb + j * csb] for p in steps], dtype)
                out = np.zeros(1, dtype)
                dots(len(steps), left, right, 0, out, 1, 0)
                _update_element(c, j, out[0], how if p0 == 0 or how < 0 else 1)

    return call


def _add_scaled(rows: int, fma: MultiplyAdd) -> Callable[..., None]:
    def call(acc: Pointer, x: Pointer, sx: Integer, src: Pointer, lds: Integer, n: Integer) -> None:
        for j, i in product(range(int(n)), range(rows)):
            acc[j] = fma(x[i * sx], src[i * lds + j], acc[j])

    return call


def _copy_vector(dst: Pointer, src: Pointer, stride: Integer, n: Integer) -> None:
    for q in range(_lanes(dst)):
        dst[q] = src[q * stride] if q < n else _type(dst)(0)


def _copy_words(dst: Pointer, src: Pointer, n: Integer) -> None:
    for p in range(0, int(n), 2):
        upper = int(src[p + 1]) if p + 1 < n else 0
        dst[p // 2] = np.uint32((upper & 0xFFFF) << 16 | int(src[p]) & 0xFFFF).astype(np.int32)


def _copy_complex_pairs(
    dst: Pointer, other: Pointer, src: Pointer, stride: Integer, n: Integer
) -> None:
    for q in range(0, _lanes(dst), 2):
        re, im = (src[q // 2 * stride + k] if q < n else _type(dst)(0) for k in (0, 1))
        dst[q], dst[q + 1] = re, im
        other[q], other[q + 1] = -im, re


def _transpose_square(dst: Pointer, ldd: Integer, src: Pointer, lds: Integer) -> None:
    for p, q in product(range(_lanes(dst)), repeat=2):
        dst[p * ldd + q] = src[q * lds + p]


def _release(p: object) -> None:
    pass


def _compile_source(name: str, scope: Functions) -> Callable[..., None]:
    """Return a function that executes the source of a library kernel."""

    def call(*args: Pointer | Integer) -> None:
        mine = dict(scope)
        exec(source(name, VECTOR_BYTES), mine)
        mine[name](0, 1, *args)

    return call


def namespace(floats: MultiplyAdd, scope: Functions) -> Functions:
    """Return the functions by name; `scope` contains the functions that the sources of library
    kernels call."""
    types: dict[str, type[Number]] = {
        "f4": np.float32, "f8": np.float64, "c8": np.complex64, "c16": np.complex128,
        "i2": np.int32,
    }  # fmt: skip

    def fma(x: Number, y: Number, z: Number) -> Number:
        return (_multiply_add_pairs if isinstance(z, np.integer) else floats)(x, y, z)

    functions: Functions = {
        "copy_vector": _copy_vector, "copy_words": _copy_words,
        "copy_complex_pairs": _copy_complex_pairs, "transpose_square": _transpose_square,
        "add_scaled": _add_scaled(1, fma), "add_scaled_4": _add_scaled(4, fma),
        "add_scaled_8": _add_scaled(8, fma), "release": _release,
    }  # fmt: skip
    for name in SIGNATURES:
        family, code = name.rsplit("_", 1)
        if family == "gemm":
            functions[name] = _gemm(types[code], fma)
        else:
            functions[name] = _gemv(fma) if family == "gemv" else _compile_source(name, scope)
    for of in SHAPES.values():
        functions[f"dots_{of.dot_rows}"] = _dots(of.dot_rows, fma)
        for shape in (f"{of.tile_rows}x1", f"{of.tile_rows}x2"):
            functions["multiply_" + shape] = _multiply(of.tile_rows, 1, fma)
            functions["multiply_complex_" + shape] = _multiply(of.tile_rows, 2, fma)
            functions["multiply_indirect_" + shape] = _multiply_indirect(of.tile_rows, fma)
    for rows, shape in ((2, "2x4"), (4, "4x2")):
        functions["multiply_" + shape] = _multiply(rows, 1, fma)
        functions["multiply_complex_" + shape] = _multiply(rows, 2, fma)
    for name, dtype in (("f4", np.float32), ("f8", np.float64), ("i4", np.int32)):
        count = PANEL_VECTORS * VECTOR_BYTES // np.dtype(dtype).itemsize
        functions["panel_" + name] = partial(np.empty, count, dtype)
    for name, dtype in (("f4", np.float32), ("f8", np.float64)):
        count = LANES_BYTES // np.dtype(dtype).itemsize
        functions["lanes_" + name] = partial(np.empty, count, dtype)
    return functions
