"""Simulated GPUs in NumPy's memory, with an interpreter of PTX, to test the code around
kernels.

`gpus(n)` replaces the GPUs that CuPy reports by n simulated ones (`driver.install`). Their array
library is NumPy with CuPy's names and parameters (`strict_cupy.py`), so library calls are tested as
well. An event completes when it is first queried.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from cuda.fake_solver import FakeSolver
from cuda.interpreter import _STEP, GLOBAL, Module
from cuda.interpreter import Memory as Space
from cuda.strict_cupy import Array, Capturing, active_capture, cupyx, library

from accnp.runtime import device, driver
from accnp.runtime.driver import GEMM, Entries, NotCaptured
from accnp.runtime.stream import default_stream

__all__ = ["FakeDriver", "gpus"]

# The functions of CUDA that machine code calls, with their arguments in C.
_int, _size, _pointer, _address = (
    ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint64,
)  # fmt: skip
_Launch = ctypes.CFUNCTYPE(_int, _pointer, *[_int] * 7, _pointer, _pointer, _pointer)
_Copy = ctypes.CFUNCTYPE(_int, _address, _address, _size, _pointer)
_Fetch = ctypes.CFUNCTYPE(_int, _pointer, _address, _size, _pointer)
_Wait = ctypes.CFUNCTYPE(_int, _pointer)
_Mark = ctypes.CFUNCTYPE(_int, _pointer, _pointer)
_Graph_ = ctypes.CFUNCTYPE(_int, _size, _pointer)
FAILED = 700
HANDLE = 77  # of what stands for cuBLAS
_KINDS = {k: np.dtype(t) for k, t in {0: "f4", 1: "f8", 2: "f2", 4: "c8", 5: "c16",
                                      14: ml_dtypes.bfloat16}.items()}  # fmt: skip


class _Memory:
    """An allocation."""

    def __init__(self, space: Space, nbytes: int, counts: dict[str, int]) -> None:
        self.space, self.nbytes, self.counts = space, nbytes, counts
        self.ptr = space.alloc(nbytes)
        counts["used"] += nbytes

    def __del__(self) -> None:
        self.space.free(self.ptr)
        self.counts["used"] -= self.nbytes


class _Adopted:
    """The memory of an array of the library, accessible to kernels."""

    def __init__(self, space: Space, array: np.ndarray) -> None:
        self.space = space
        self.array = array
        self.ptr = space.alloc(array.nbytes)
        number = (self.ptr - GLOBAL) // _STEP
        data = array.reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
        space.blocks[number] = data, array.nbytes

    def __del__(self) -> None:
        self.space.free(self.ptr)


class _Graph:
    """A captured graph.

    A launch repeats the work, which must call the same functions in the same order, and writes the
    results to the arrays that were allocated during capture.
    """

    def __init__(self, handle: int, work: Callable[[], Any], calls: list[str], value: Any) -> None:
        self.handle, self.work, self.asked, self.value = handle, work, calls, value

    def launch(self) -> None:
        with Capturing() as now, np.errstate(all="ignore"):
            results = self.work()
        assert now.asked == self.asked, "the replay of a graph differs from the captured launches"
        for to, array in zip(self.value, results, strict=True):
            to[...] = array


class FakeDriver:
    """The driver of one simulated GPU; `calls` counts the calls of each function."""

    kind = "fake"
    cc = (9, 0)
    wave = 1056
    stream = 0

    def __init__(self, total: int = 1 << 30) -> None:
        self.space = Space()
        self.xp = library()
        self.total = total
        self.one = threading.RLock()  # one thing after the other, as on a stream
        self.counts = {"used": 0}
        self.calls: dict[str, int] = {}
        self.fault = ""  # an error that every wait raises
        self.functions: list[Any] = [None]  # by their numbers
        self.error: Exception | None = None  # of a function that machine code called
        self._c = (_Launch(self._c_launch), _Copy(self._c_copy), _Fetch(self._c_fetch))
        self._c_graph = _Graph_(self._c_launch_graph)
        self.graphs: Any = weakref.WeakValueDictionary()  # by their numbers
        self.numbers = itertools.count(1)
        self._c_mark = _Mark(self._c_record)
        self._c_passed = _Wait(self._c_pass)
        # Copies to the host are there once the host has waited: bytes, by where they go.
        self.coming: dict[int, bytes] = {}
        self.marks: dict[int, dict[int, bytes]] = {}
        self._c_gemm = GEMM(self._gemm)
        self.gemm = True  # whether machine code may call cuBLAS
        self.solver_functions: Any = FakeSolver(self)
        self._c_wait = _Wait(lambda stream: self._guarded(self._arrive))

    def _not_captured(self, what: str) -> None:
        """Raise for operations that CUDA refuses while a stream is captured, or would not
        repeat.
        """
        if active_capture() is not None:
            raise RuntimeError(f"cudaErrorStreamCaptureUnsupported: {what}")

    def _count(self, what: str) -> None:
        with self.one:
            self.calls[what] = self.calls.get(what, 0) + 1

    def alloc(self, nbytes: int) -> _Memory:
        self._not_captured("memory beside the graph's own")
        if self.counts["used"] + nbytes > self.total:
            raise MemoryError(f"{nbytes} bytes")
        self._count("alloc")
        return _Memory(self.space, nbytes, self.counts)

    def upload(self, array: np.ndarray) -> _Memory:
        self._count("upload")
        memory = self.alloc(array.nbytes)
        self.space.bytes(memory.ptr, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
        return memory

    def copy_out(self, memory: Any, offset: int, array: np.ndarray, after: Any = None) -> None:
        self._count("copy_out")
        self.wait(after)
        data = self.space.bytes(memory.ptr + offset, array.nbytes)
        array.reshape(-1).view(np.uint8)[:] = data

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self._count("copy")
        self.space.bytes(to, nbytes)[:] = self.space.bytes(source, nbytes)

    def load(self, ptx: str, name: str) -> Any:
        self._not_captured("loading a kernel")
        self._count("load")
        return Module(ptx), name

    def launch(
        self, function: Any, blocks: Any, threads: Any, arguments: Sequence[int], shared: int = 0
    ) -> None:
        self._count("launch")
        module, name = function
        if not isinstance(blocks, int):
            return module.launch(name, blocks, threads, list(arguments), self.space, shared)
        # Kernels that ask how large the grid is are right for any, and a small one takes the
        # interpreter less time.
        blocks = min(blocks, 4) if "nctaid" in module.text else blocks
        return module.launch(name, blocks, threads, list(arguments), self.space)

    # --- for machine code ---

    def blas(self) -> tuple[int, int]:
        return (
            (ctypes.cast(self._c_gemm, ctypes.c_void_p).value or 0, HANDLE) if self.gemm else (0, 0)
        )

    def _matrices(
        self, at: int, kind: int, lines: int, line: int, leading: int, stride: int, count: int
    ) -> np.ndarray:
        """Return matrices as cuBLAS addresses them: column-major, with leading dimension
        `lines`.
        """
        dtype = _KINDS[kind]
        assert leading >= max(1, line)
        reach = (lines - 1) * leading + line + (count - 1) * stride
        flat = self.space.bytes(at, reach * dtype.itemsize).view(dtype)
        shape, steps = (count, line, lines), np.array((stride, 1, leading)) * dtype.itemsize
        return np.lib.stride_tricks.as_strided(flat, shape, tuple(steps))

    def _gemm(
        self, handle: int, ta: int, tb: int, m: int, n: int, k: int, one: int,
        a: int, ka: int, la: int, sa: int, b: int, kb: int, lb: int, sb: int,
        none: int, c: int, kc: int, lc: int, sc: int, count: int, how: int, algorithm: int,
    ) -> int:  # fmt: skip
        def work() -> None:
            self._count("product")
            scale = {70: np.float64}.get(how, np.float32)
            scale = np.result_type(scale, 1j) if ka in (4, 5) else np.dtype(scale)
            known = np.frombuffer((ctypes.c_char * (2 * scale.itemsize)).from_address(one), scale)
            assert (handle, *known) == (HANDLE, 1, 0)
            assert none - one in (0, scale.itemsize)
            assert (algorithm, ka) == (-1, kb)
            assert how in (68, 70, 77)
            x = self._matrices(a, ka, *((m, k) if ta else (k, m)), la, sa, count)
            y = self._matrices(b, kb, *((k, n) if tb else (n, k)), lb, sb, count)
            x, y = (v.swapaxes(1, 2) if t else v for v, t in ((x, ta), (y, tb)))
            with np.errstate(all="ignore"):
                product = x.astype(scale) @ y.astype(scale)
            into = self._matrices(c, kc, n, m, lc, sc, count)
            into[...] = product if none != one else into.astype(scale) + product

        return self._guarded(work)

    def solver(self) -> Any:
        return self.solver_functions

    def entries(self) -> Entries:
        every = (*self._c, self._c_wait, self._c_graph, self._c_mark, self._c_passed)
        addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in every]
        return Entries(*addresses)

    def handle(self, function: Any) -> int:
        self.functions.append(function)
        return len(self.functions) - 1

    def enter(self) -> None:
        self._count("enter")

    def failure(self, code: int) -> Exception:
        return self.error if self.error is not None else RuntimeError(f"error {code}")

    def _guarded(self, work: Any) -> int:
        try:
            with self.one:
                work()
        except Exception as error:
            self.error = error
            return FAILED
        return 0

    def _c_launch(
        self, handle: int, bx: int, by: int, bz: int, tx: int, ty: int, tz: int, shared: int,
        stream: int, places: int, extra: int,
    ) -> int:  # fmt: skip
        def work() -> None:
            assert (by, bz, ty, tz, shared, stream, extra) == (1, 1, 1, 1, 0, None, None)
            module, name = function = self.functions[handle]
            count = len(module.functions[name].params)
            at = (ctypes.c_void_p * count).from_address(places) if count else ()
            words = [ctypes.c_uint64.from_address(place).value for place in at]
            self._count("launch from a table")
            self.launch(function, bx, tx, words)

        return self._guarded(work)

    def _c_copy(self, to: int, source: int, nbytes: int, stream: int) -> int:
        return self._guarded(lambda: self.copy(to, source, nbytes))

    def _c_fetch(self, to: int, source: int, nbytes: int, stream: int) -> int:
        def work() -> None:
            self._count("fetch")
            self.coming[to] = self.space.bytes(source, nbytes).tobytes()

        return self._guarded(work)

    def _arrive(self, event: int | None = None) -> None:
        self.wait(None)
        coming = self.coming if event is None else self.marks.pop(event)
        for to, data in list(coming.items()):
            ctypes.memmove(to, data, len(data))
            self.coming.pop(to, None)

    def _c_record(self, event: int, stream: int) -> int:
        def work() -> None:
            self._count("mark")
            self.marks[event] = dict(self.coming)

        return self._guarded(work)

    def _c_pass(self, event: int) -> int:
        return self._guarded(lambda: self._arrive(event))

    def flag(self) -> tuple[int, int, Any]:
        word = (ctypes.c_char * 8)()
        return ctypes.addressof(word), next(self.numbers), word

    def capture(self, work: Callable[[], Any]) -> _Graph:
        self._count("capture")
        outcomes: list[Any] = []

        def run() -> None:  # in a thread of its own, as the real one
            try:
                outcomes.append(self._captured(work))
            except Exception as error:
                outcomes.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        (outcome,) = outcomes
        if isinstance(outcome, Exception):
            raise NotCaptured(f"{type(outcome).__name__}: {outcome}") from outcome
        return outcome

    def _captured(self, work: Callable[[], Any]) -> _Graph:
        with np.errstate(all="ignore"):
            work()
            with Capturing() as now:
                value = work()
        for array in value or ():  # nothing has run yet
            array.view(np.uint8)[...] = 0xAB if array.dtype != bool else 1
        number = next(self.numbers)
        graph = self.graphs[number] = _Graph(number, work, now.asked, value)
        return graph

    def _c_launch_graph(self, number: int, stream: int) -> int:
        def work() -> None:
            assert stream is None
            self._count("graph")
            self.graphs[number].launch()

        return self._guarded(work)

    def facts(self, function: Any) -> dict[str, int]:
        return {"registers": 0, "local": 0, "shared": 0}

    def event(self, timed: bool = False) -> Any:
        return time.perf_counter() if timed else object()

    def elapsed(self, begin: Any, end: Any) -> float:
        return end - begin

    def done(self, event: Any) -> bool:
        return True

    def wait(self, event: Any) -> None:
        self._not_captured("a wait")
        if self.fault:
            raise RuntimeError(self.fault)

    def synchronize(self) -> None:
        self.wait(None)

    def free_all(self) -> None:
        self._not_captured("giving memory back")
        self._count("free_all")

    def stats(self) -> dict[str, int]:
        used = self.counts["used"]
        return {"used": used, "kept": 0, "free": self.total - used, "total": self.total}

    def knows(self, dtype: np.dtype) -> bool:
        return (dtype.isbuiltin == 1 and dtype.kind in "biufc") or dtype.name == "bfloat16"

    def array(self, memory: Any, offset: int, shape: Any, dtype: Any, strides: Any) -> Any:
        number, at = divmod(memory.ptr - GLOBAL, _STEP)
        whole = self.space.blocks[number][0]
        view = np.ndarray(shape, dtype, whole, at + offset, strides).view(Array)
        view.held = memory  # as CuPy's arrays keep what they lie in
        return view

    def adopt(self, array: np.ndarray) -> _Adopted:
        return _Adopted(self.space, array)

    def call(self, function: Any, *arrays: Any, **params: Any) -> Any:
        self._count("call")
        with np.errstate(all="ignore"):  # a GPU warns of nothing
            return function(*arrays, **params)


@contextlib.contextmanager
def gpus(count: int = 1, total: int = 1 << 30) -> Iterator[list[FakeDriver]]:
    """Replace the GPUs by simulated ones within a block."""
    drivers = [FakeDriver(total) for _ in range(count)]
    before = device._gpus
    driver.install(lambda: drivers)
    try:
        with cupyx():
            yield drivers
            # Pending copies need the memory of these GPUs.
            default_stream().synchronize()
    finally:
        driver.install(None)
        device._gpus = before
        device._refresh()
