"""The cuBLAS and cuSOLVER functions that machine code calls for factorizations and linear systems.

`CupySolver` takes the driver of a GPU, creates handles on its stream, and returns addresses of the
functions. It first solves a system of two unknowns, to check that the loaded libraries work.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from accnp.runtime.driver import BLAS, CALLS, SOLVER, WORKSPACE_QUERIES, prototype

if TYPE_CHECKING:
    from accnp.runtime.cupy_driver import CupyDriver

__all__ = ["CupySolver"]


class CupySolver:
    """cuBLAS and cuSOLVER functions of one GPU.

    Raises:
        RuntimeError: a function fails, or its result is wrong.
    """

    def __init__(self, driver: CupyDriver, blas: int, library_path: Callable[[str], str]) -> None:
        self.driver, self.blas = driver, blas
        driver.xp.cuda.device.get_cusolver_handle()  # loads the library
        # If several copies of a library are loaded, its handles and functions must be from one
        # copy.
        self.solvers = ctypes.CDLL(library_path("libcusolver.so"))
        self.products = ctypes.CDLL(library_path("libcublas.so"))
        # Plans are built while other threads compute: queries have a separate handle and a lock.
        self.handle, self.query_handle = self._create_handle(), self._create_handle()
        self.query_lock = threading.Lock()
        stream = ctypes.c_void_p(driver.stream)
        handle = ctypes.c_void_p(self.handle)
        self._check(self.solvers.cusolverDnSetStream(handle, stream), SOLVER)
        self._check_solvers()

    def _create_handle(self) -> int:
        handle = ctypes.c_void_p()
        self._check(self.solvers.cusolverDnCreate(ctypes.byref(handle)), SOLVER)
        return handle.value or 0

    def _check(self, status: int, bit: int) -> None:
        if status:
            raise self.driver.failure(bit | status)

    def function(self, name: str, letter: str) -> tuple[int, int, int]:
        ours = name.startswith("cusolver")
        function = getattr(self.solvers if ours else self.products, name.replace("?", letter))
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        return (address, self.handle, SOLVER) if ours else (address, self.blas, BLAS)

    def workspace_size(self, name: str, letter: str, first: int, second: int) -> int:
        query = getattr(self.solvers, f"{name.replace('?', letter)}_bufferSize")
        address, size = ctypes.cast(query, ctypes.c_void_p).value or 0, ctypes.c_int()
        self.driver.enter()
        leading = second if name.endswith("potrf") else first
        # The functions do not read the matrix; JAX passes none, either.
        arguments = self.query_handle, first, second, 0, leading, ctypes.addressof(size)
        with self.query_lock:
            self._check(prototype(WORKSPACE_QUERIES[name])(address)(*arguments), SOLVER)
        return size.value

    def _call(self, name: str, *arguments: int) -> None:
        address, handle, bit = self.function(name, "S")
        self._check(prototype(CALLS[name])(address)(handle, *arguments), bit)

    def _check_solvers(self) -> None:
        """Raise unless the functions solve a system by Cholesky and one by LU factorization."""
        driver, one = self.driver, np.ones(1, "f4")
        a, x = np.array([4, 2, 2, 5], "f4"), np.array([2, 5], "f4")
        first, second = driver.upload(a), driver.upload(x)
        need = (
            self.workspace_size("cusolverDn?potrf", "S", 1, 2),
            self.workspace_size("cusolverDn?getrf", "S", 2, 2),
        )
        # Valid pivots, so that no read is out of bounds if a function does nothing.
        work, info = driver.alloc(4 * max(1, *need)), driver.upload(np.array([7, 1, 2], "i4"))
        self._call("cusolverDn?potrf", 1, 2, first.ptr, 2, work.ptr, need[0], info.ptr)
        # In row-major order, the factor is a lower triangle on the right side.
        alpha = one.ctypes.data
        self._call("cublas?trsm_v2", 1, 1, 0, 0, 1, 2, alpha, first.ptr, 2, second.ptr, 1)
        results = np.empty(4, "f4"), np.empty(2, "f4"), np.empty(3, "i4")
        for memory, into in zip((first, second, info), results, strict=True):
            driver.copy_out(memory, 0, into)
        if not np.allclose(
            [*results[0][[0, 2, 3]], *results[1], results[2][0]], [2, 1, 2, 1, 2, 0]
        ):
            raise RuntimeError("the solution of a triangular system of 2 unknowns is wrong")
        first, second = driver.upload(np.array([1, 4, 2, 4], "f4")), driver.upload(x)
        pivots = info.ptr + 4
        self._call("cusolverDn?getrf", 2, 2, first.ptr, 2, work.ptr, pivots, info.ptr)
        self._call("cusolverDn?getrs", 0, 2, 1, first.ptr, 2, pivots, second.ptr, 2, info.ptr)
        driver.copy_out(second, 0, results[1])
        driver.copy_out(info, 0, results[2])
        # x + 2 y = 2, 4 x + 4 y = 5, with the second row first
        if not np.allclose([*results[1], *results[2]], [0.5, 0.75, 0, 2, 2]):
            raise RuntimeError("the solution of a system of 2 unknowns is wrong")
