"""The driver checks functions of cuSOLVER and cuBLAS before machine code calls them."""

import ctypes
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.fake_solver import BLAS_HANDLE, HANDLE, FakeSolver
from cuda.host_cupy import COMPUTE, Blas
from cuda.strict_cupy import check_arguments

from accnp.runtime import cupy_driver
from accnp.runtime.driver import BLAS, CALLS, SOLVER, WORKSPACE_QUERIES, prototype

QUERY_HANDLE = 79


class FakeLibraries:
    """A fake of the libraries in host memory, in which the function named `wrong` does nothing."""

    def __init__(self, cuda, monkeypatch, wrong="", status=0):
        Blas(cuda, monkeypatch)
        cuda.driver._blas = 1, BLAS_HANDLE
        cuda.driver.xp.cuda.device.get_cusolver_handle = check_arguments(
            "cupy.cuda.device.get_cusolver_handle", lambda: 9
        )
        space = SimpleNamespace(bytes=self.bytes)
        host = SimpleNamespace(space=space, _count=lambda _: None, _guarded=lambda run: run() or 0)
        functions, self.streams, self.queries = FakeSolver(host), [], []
        self.handles = []
        entries = {
            "cusolverDnCreate": self.create,
            "cusolverDnSetStream": lambda *pair: self.streams.append([x.value for x in pair]),
        }
        for name in CALLS:
            if "?" in name:
                functions.function(name, "S")
                entries[name.replace("?", "S")] = functions.kept[name, "S"]
        for name, kinds in WORKSPACE_QUERIES.items():
            entries[f"{name.replace('?', 'S')}_bufferSize"] = prototype(kinds)(self.workspace_size)
        if wrong:
            kinds = CALLS[wrong]
            entries[wrong.replace("?", "S")] = prototype(kinds)(lambda *_: status)
        self.library = SimpleNamespace(**entries)
        monkeypatch.setattr(cupy_driver.ctypes, "CDLL", lambda path: self.library)

    def bytes(self, at, nbytes):
        return np.frombuffer((ctypes.c_char * nbytes).from_address(at), np.uint8)

    def create(self, handle):
        handle._obj.value = HANDLE if not self.handles else QUERY_HANDLE
        self.handles.append(handle._obj.value)
        return 0

    def workspace_size(self, handle, first, second, matrix, leading, size):
        self.queries.append((handle, first, second, matrix, leading))
        ctypes.c_int.from_address(size).value = 5
        return 0


def test_solvers_are_checked_first(cuda, monkeypatch):
    libraries = FakeLibraries(cuda, monkeypatch)
    solver = cuda.driver.solver()
    assert solver is not None
    assert solver is cuda.driver.solver()
    assert libraries.streams == [[HANDLE, COMPUTE]]
    assert libraries.queries == [(QUERY_HANDLE, 1, 2, 0, 2), (QUERY_HANDLE, 2, 2, 0, 2)]
    assert solver.workspace_size("cusolverDn?getrf", "S", 9, 4) == 5
    assert libraries.queries[-1] == (QUERY_HANDLE, 9, 4, 0, 9)
    for name, handle, bit in (
        ("cusolverDn?potrf", HANDLE, SOLVER), ("cublas?trsmBatched", BLAS_HANDLE, BLAS),
    ):  # fmt: skip
        function = getattr(libraries.library, name.replace("?", "S"))
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert solver.function(name, "S") == (address, handle, bit)


def test_workspace_queries_are_serialized(cuda, monkeypatch):
    libraries, inside, here = FakeLibraries(cuda, monkeypatch), [], []

    def slow_query(*arguments):
        inside.append(None)
        time.sleep(0.01)
        assert len(inside) == 1
        inside.pop()
        return query(*arguments)

    query, kinds = libraries.workspace_size, WORKSPACE_QUERIES["cusolverDn?potrf"]
    libraries.library.cusolverDnSpotrf_bufferSize = prototype(kinds)(slow_query)
    use, create = cuda.driver._runtime.setDevice, libraries.library.cusolverDnCreate
    threads = []
    monkeypatch.setattr(
        cuda.driver._runtime, "setDevice", lambda n: threads.append(threading.get_ident()) or use(n)
    )
    libraries.library.cusolverDnCreate = lambda handle: (
        here.append(threading.get_ident() in threads) or create(handle)
    )

    def ask(_):
        solver = cuda.driver.solver()
        return solver, solver.workspace_size("cusolverDn?potrf", "S", 1, 4)

    with ThreadPoolExecutor(3) as pool:
        results = [*pool.map(ask, range(3))]
    assert results == [(cuda.driver.solver(), 5)] * 3
    assert here == [True, True]  # handles are for the device that their thread uses


@pytest.mark.parametrize("name", ["cublas?trsm_v2", "cusolverDn?potrf", "cusolverDn?getrf",
                                  "cusolverDn?getrs"])  # fmt: skip
@pytest.mark.parametrize("status", [0, 7])
def test_failed_solver_check_falls_back_to_cupy(cuda, monkeypatch, name, status):
    FakeLibraries(cuda, monkeypatch, name, status)
    why = "got status 7; set ACCNP_GPU_PRODUCTS=cupy" if status else "is wrong"
    with pytest.warns(UserWarning, match=why):
        assert cuda.driver.solver() is None
    assert cuda.driver.solver() is None  # without another warning


def test_no_solvers_without_cublas(cuda, monkeypatch):
    monkeypatch.setenv("ACCNP_GPU_PRODUCTS", "cupy")
    assert cuda.driver.solver() is None
