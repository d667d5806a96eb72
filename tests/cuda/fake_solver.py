"""Fake cuBLAS and cuSOLVER factorization functions, computed by LAPACK in the memory of a fake GPU.

They have the C signatures of the real functions, expect column-major matrices, and work in place
with the same side effects: the other triangle is unchanged, pivots are counted from 1, and a matrix
that is not positive definite is left partly factorized.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from accnp.runtime.driver import BLAS, CALLS, SOLVER, prototype

__all__ = ["FakeSolver"]

BLAS_HANDLE, HANDLE = 77, 78
TYPES = {"S": "f4", "D": "f8", "C": "c8", "Z": "c16"}


class FakeSolver:
    """The functions by name; `queries` records the workspace queries."""

    def __init__(self, driver: Any) -> None:
        self.driver, self.kept, self.queries = driver, {}, []

    def function(self, name: str, letter: str) -> tuple[int, int, int]:
        work = getattr(self, "_" + name.partition("?")[2])
        handle, bit = (HANDLE, SOLVER) if name.startswith("cusolver") else (BLAS_HANDLE, BLAS)

        def call(actual_handle: int, *arguments: int) -> int:
            def run() -> None:
                assert actual_handle == handle
                self.driver._count(name)
                with np.errstate(all="ignore"):
                    work(np.dtype(TYPES[letter]), *arguments)

            return self.driver._guarded(run)

        key = name, letter
        if key not in self.kept:
            self.kept[key] = prototype(CALLS[name])(call)
        return ctypes.cast(self.kept[key], ctypes.c_void_p).value or 0, handle, bit

    def workspace_size(self, name: str, letter: str, first: int, second: int) -> int:
        self.queries.append((name, letter, first, second))
        return 5 * second

    def _matrix(self, at: int, dtype: Any, rows: int, columns: int, leading: int) -> np.ndarray:
        assert leading >= rows
        reach = (columns - 1) * leading + rows
        flat = self.driver.space.bytes(at, reach * dtype.itemsize).view(dtype)
        steps = dtype.itemsize, leading * dtype.itemsize
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), steps)

    def _ints(self, at: int, count: int) -> np.ndarray:
        return self.driver.space.bytes(at, 4 * count).view("i4")

    def _list(self, at: int, count: int) -> list[int]:
        return self.driver.space.bytes(at, 8 * count).view("i8").tolist()

    def _potrf(
        self, t: Any, uplo: int, n: int, a: int, lda: int, w: int, room: int, info: int
    ) -> None:
        self.driver.space.bytes(w, room * t.itemsize)[:] = 0xAB
        m = self._matrix(a, t, n, n, lda)
        (potrf,) = get_lapack_funcs(("potrf",), dtype=t)
        factor, code = potrf(m, lower=uplo == 0, clean=False)
        m[...] = factor
        self._ints(info, 1)[0] = code

    def _potrfBatched(
        self, t: Any, uplo: int, n: int, a: int, lda: int, info: int, count: int
    ) -> None:
        work = self.driver.space.alloc(t.itemsize * n)
        for k, at in enumerate(self._list(a, count)):
            self._potrf(t, uplo, n, at, lda, work, n, info + 4 * k)

    def _trsm_v2(
        self, t: Any, side: int, uplo: int, trans: int, diag: int, m: int, n: int, alpha: int,
        a: int, lda: int, b: int, ldb: int,
    ) -> None:  # fmt: skip
        one = np.frombuffer((ctypes.c_char * t.itemsize).from_address(alpha), t)
        assert one == 1
        size = n if side else m
        x, y = self._matrix(a, t, size, size, lda), self._matrix(b, t, m, n, ldb)
        x = np.triu(x) if uplo else np.tril(x)
        if diag:
            np.fill_diagonal(x, 1)
        x, lower = (x.T if trans == 1 else x.conj().T, bool(uplo)) if trans else (x, not uplo)
        if side:  # of the transpose it is on the left
            y[...] = _triangle(x.T, y.T, not lower).T
        else:
            y[...] = _triangle(x, y, lower)

    def _trsmBatched(self, t: Any, *rest: int) -> None:
        *how, a, lda, b, ldb, count = rest
        for x, y in zip(self._list(a, count), self._list(b, count), strict=True):
            self._trsm_v2(t, *how, x, lda, y, ldb)

    def _getrf(self, t: Any, m: int, n: int, a: int, lda: int, w: int, p: int, info: int) -> None:
        x = self._matrix(a, t, m, n, lda)
        (getrf,) = get_lapack_funcs(("getrf",), dtype=t)
        factors, swaps, code = getrf(x)
        x[...] = factors
        self._ints(p, min(m, n))[:] = swaps + 1
        self._ints(info, 1)[0] = code

    def _getrfBatched(
        self, t: Any, n: int, a: int, lda: int, p: int, info: int, count: int
    ) -> None:
        for k, at in enumerate(self._list(a, count)):
            self._getrf(t, n, n, at, lda, 0, p + 4 * k * n, info + 4 * k)

    def _getrs(
        self, t: Any, trans: int, n: int, sides: int, a: int, lda: int, p: int, b: int, ldb: int,
        info: int,
    ) -> None:  # fmt: skip
        x, y = self._matrix(a, t, n, n, lda), self._matrix(b, t, n, sides, ldb)
        (getrs,) = get_lapack_funcs(("getrs",), dtype=t)
        y[...], code = getrs(x, self._ints(p, n) - 1, y, trans=trans)
        if info:
            self._ints(info, 1)[0] = code

    def _getrsBatched(
        self, t: Any, trans: int, n: int, sides: int, a: int, lda: int, p: int, b: int, ldb: int,
        info: int, count: int,
    ) -> None:  # fmt: skip
        ctypes.c_int.from_address(info).value = 0  # of the host
        for k, (x, y) in enumerate(zip(self._list(a, count), self._list(b, count), strict=True)):
            self._getrs(t, trans, n, sides, x, lda, p + 4 * k * n, y, ldb, 0)


def _triangle(x: np.ndarray, y: np.ndarray, lower: bool) -> np.ndarray:
    return get_blas_funcs("trsm", dtype=x.dtype)(1.0, x, y, lower=lower)
