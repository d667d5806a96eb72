"""The driver of NVIDIA GPUs: CuPy's memory pool, streams and library calls, and CUDA's launches.

It implements `Driver` with one stream for kernels and two for copies. Copies go through pinned
memory, so that they overlap with kernels. The streams wait for each other's events; the host waits
only when it reads values. This module is imported when a GPU is first used.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import numpy as np

from accnp.errors import warn
from accnp.forks import at_fork
from accnp.runtime.cupy_solver import CupySolver
from accnp.runtime.driver import (
    BLAS,
    DEFAULT_SHARED_BYTES,
    GEMM,
    SOLVER,
    Entries,
    GPUUnavailable,
    Memory,
    NotCaptured,
)

if TYPE_CHECKING:
    from accnp.runtime.driver import DeviceArray

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

__all__ = ["CupyDriver", "provide"]

INSTALL = "install it with pip install 'accnp[cuda]'"
NO_DRIVER, NO_DEVICE = 35, 100  # cudaErrorInsufficientDriver, cudaErrorNoDevice
LARGE_COPY = 1 << 20  # bytes from which a copy to the device uses the copy stream
TO_DEVICE, TO_HOST, INSIDE = 1, 2, 3  # kinds of cudaMemcpy


_lost = False  # whether this process was forked from one that has used the GPU


def _mark_contexts_lost() -> None:
    global _lost
    _lost = True


at_fork(_mark_contexts_lost)


def provide() -> list[CupyDriver]:
    """Return one driver for each GPU.

    Raises:
        GPUUnavailable: CuPy, NVIDIA's driver or a GPU is missing.
    """
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise GPUUnavailable(f"CuPy cannot be imported ({error}); {INSTALL}") from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        if error.status == NO_DRIVER:
            raise GPUUnavailable(
                "CuPy is installed, but NVIDIA's driver is missing or older than CuPy needs "
                f"({error}); install a driver for this GPU"
            ) from error
        if error.status == NO_DEVICE:
            count = 0
        else:
            raise GPUUnavailable(f"CUDA does not start ({error}); run nvidia-smi") from error
    if count == 0:
        raise GPUUnavailable(
            "CuPy and NVIDIA's driver are installed, but no GPU is visible; check nvidia-smi and "
            "CUDA_VISIBLE_DEVICES"
        )
    return [CupyDriver(cupy, i) for i in range(count)]


if TYPE_CHECKING:

    class _Pointer(Protocol):
        """Memory on the device or the host: CuPy's `MemoryPointer` or `PinnedMemoryPointer`."""

        @property
        def ptr(self) -> int: ...

    class _Event(Protocol):
        """CuPy's `Event`."""

        @property
        def done(self) -> bool: ...

        def synchronize(self) -> None: ...

    class _Stream(Protocol):
        """CuPy's `Stream`; memory and library calls inside its context belong to it."""

        @property
        def ptr(self) -> int: ...

        def __enter__(self) -> object: ...

        def __exit__(self, *exc: object) -> None: ...

    class _Function(Protocol):
        """A kernel of a CuPy `Module`."""

        @property
        def ptr(self) -> int: ...

    class _Array(DeviceArray, Protocol):
        """CuPy's `ndarray`."""

        @property
        def data(self) -> _Pointer: ...


class _PoolMemory:
    """Memory from the pool of the compute stream."""

    __slots__ = ("owner", "ptr")

    def __init__(self, pointer: _Pointer) -> None:
        self.owner = pointer
        self.ptr: int = pointer.ptr


class _DeferredMemory:
    """Memory from the pool of another stream, freed after the work so far on the compute stream."""

    __slots__ = ("driver", "owner", "ptr")

    def __init__(self, driver: CupyDriver, memory: _Pointer | _Array, ptr: int) -> None:
        self.driver, self.owner, self.ptr = driver, memory, ptr

    def __del__(self) -> None:
        try:
            self.driver.retire(self.owner)
        except Exception:  # at exit, CUDA may have shut down already
            return


class _Graph:
    """Captured work, with its own memory and plans."""

    __slots__ = ("driver", "handle", "references", "value")

    def __init__(
        self, driver: CupyDriver, handle: int, value: Any, references: tuple[object, ...]
    ) -> None:
        self.driver, self.handle, self.value, self.references = driver, handle, value, references

    def __del__(self) -> None:
        try:
            self.driver.retire(self.references)
        except Exception:  # as above
            return


def _find_loaded_library(name: str) -> str:
    """Return the path of a library that this process has loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if os.path.basename(path).startswith(name):
                return "/" + path
    raise OSError(f"the library {name} is not loaded")


def _extend_to_three(n: int | Sequence[int]) -> tuple[int, ...]:
    return (n, 1, 1) if isinstance(n, int) else (*n, 1, 1)[:3]


class CupyDriver:
    """One GPU."""

    def __init__(self, cupy: ModuleType, number: int) -> None:
        self.xp = cupy
        self.number = number
        self._runtime = cupy.cuda.runtime
        self._cuda = importlib.import_module("cupy_backends.cuda.api.driver")
        self._threads = threading.local()
        facts = self._runtime.getDeviceProperties(number)
        self.kind: str = facts["name"].decode()
        self.cc: tuple[int, int] = (facts["major"], facts["minor"])
        each = facts["maxThreadsPerMultiProcessor"] // 256
        self.wave: int = facts["multiProcessorCount"] * max(1, each)
        with cupy.cuda.Device(number):
            stream = cupy.cuda.Stream
            self._compute, self._in, self._out = [stream(non_blocking=True) for _ in range(3)]
        self.stream: int = self._compute.ptr
        self._retired: deque[tuple[_Event, object]] = deque()
        self._first = threading.RLock()  # for the following, which several threads may need
        self._blas: tuple[int, int] | None = None
        self._solver: CupySolver | None = None
        self._solves: bool | None = None  # whether there is a solver; None if not known yet

    def _activate(self) -> None:
        """Prepare this thread to use the GPU."""
        if _lost:
            raise RuntimeError(
                f"cuda:{self.number}: CUDA does not work in a process that was forked from one "
                "that uses a GPU; use GPUs only after the fork, or start processes by 'spawn'"
            )
        if not getattr(self._threads, "ready", False):
            self._runtime.setDevice(self.number)
            self._runtime.free(0)  # creates CUDA's context, which launches need
            self._threads.ready = True
        elif self._runtime.getDevice() != self.number:
            self._runtime.setDevice(self.number)

    def _stream(self) -> int:
        """Return the stream on which this thread launches: another one while it captures."""
        return getattr(self._threads, "captures", self.stream)

    # --- memory ---

    def _malloc(self, nbytes: int, stream: _Stream) -> _Pointer:
        with stream:
            return self.xp.cuda.alloc(nbytes)

    def alloc(self, nbytes: int) -> _PoolMemory:
        self._activate()
        self._sweep()
        return _PoolMemory(self._malloc(nbytes, self._compute))

    def retire(self, memory: object) -> None:
        """Free something after all work so far."""
        self._retired.append((self.event(), memory))

    def _sweep(self) -> None:
        while self._retired:
            try:
                event, memory = self._retired.popleft()
            except IndexError:  # another thread was faster
                return
            if not event.done:
                self._retired.appendleft((event, memory))
                return

    def free_all(self) -> None:
        self.synchronize()
        self._sweep()
        self.xp.get_default_memory_pool().free_all_blocks()
        self.xp.get_default_pinned_memory_pool().free_all_blocks()

    def stats(self) -> dict[str, int]:
        self._activate()
        pool = self.xp.get_default_memory_pool()
        free, total = self._runtime.memGetInfo()
        free_pool_bytes = pool.free_bytes()
        return {
            "used": pool.used_bytes(),
            "kept": free_pool_bytes,
            "free": free + free_pool_bytes,
            "total": total,
        }

    # --- copies ---

    def upload(self, array: np.ndarray) -> _PoolMemory | _DeferredMemory:
        self._activate()
        self._sweep()
        staged = self.xp.cuda.alloc_pinned_memory(array.nbytes)
        np.frombuffer(staged, np.uint8, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
        large = array.nbytes >= LARGE_COPY
        # Memory from the copy stream is not used by any kernel, so the copy does not wait for the
        # kernels so far. Later work waits for the copy.
        stream = self._in if large else self._compute
        memory = self._malloc(array.nbytes, stream)
        self._runtime.memcpyAsync(memory.ptr, staged.ptr, array.nbytes, TO_DEVICE, stream.ptr)
        if large:
            self._compute.wait_event(self._mark(stream))
        self._retired.append((self._mark(stream), staged))
        return _DeferredMemory(self, memory, memory.ptr) if large else _PoolMemory(memory)

    def copy_out(
        self, memory: Memory, offset: int, array: np.ndarray, after: _Event | None = None
    ) -> None:
        self._activate()
        staged = self.xp.cuda.alloc_pinned_memory(array.nbytes)
        self._out.wait_event(after or self.event())
        source = memory.ptr + offset
        self._runtime.memcpyAsync(staged.ptr, source, array.nbytes, TO_HOST, self._out.ptr)
        self._out.synchronize()
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(staged, np.uint8, array.nbytes)

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self._activate()
        self._runtime.memcpyAsync(to, source, nbytes, INSIDE, self._stream())

    # --- kernels ---

    def load(self, ptx: str, name: str) -> _Function:
        self._activate()
        module = self.xp.cuda.Module()
        module.load(ptx.encode() + b"\0")
        return module.get_function(name)

    def launch(
        self,
        function: _Function,
        blocks: int | Sequence[int],
        threads: int | Sequence[int],
        arguments: Sequence[int],
        shared: int = 0,
    ) -> None:
        self._activate()
        count = len(arguments)
        words = (ctypes.c_uint64 * count)(*[x & 0xFFFFFFFFFFFFFFFF for x in arguments])
        first = ctypes.addressof(words)
        places = (ctypes.c_void_p * count)(*range(first, first + 8 * count, 8))
        where = ctypes.addressof(places)
        sizes = (*_extend_to_three(blocks), *_extend_to_three(threads))
        if shared > DEFAULT_SHARED_BYTES:
            most = self._cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._cuda.funcSetAttribute(function.ptr, most, shared)
        self._cuda.launchKernel(function.ptr, *sizes, shared, self._stream(), where, 0)

    def entries(self) -> Entries:
        library = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        names = (
            "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize",
            "cuGraphLaunch", "cuEventRecord", "cuEventSynchronize",
        )  # fmt: skip
        addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]
        return Entries(*[address or 0 for address in addresses])

    def blas(self) -> tuple[int, int]:
        with self._first:
            if self._blas is None:
                self._blas = self._products()
            return self._blas

    def _products(self) -> tuple[int, int]:
        """Return cuBLAS's function and a handle, once it has computed a small product correctly."""
        if os.environ.get("ACCNP_GPU_PRODUCTS", "") == "cupy":
            return 0, 0
        self._activate()
        try:
            self.xp.cuda.device.get_cublas_handle()  # loads the library
            # If several copies of the library are loaded, handle and function must be of the same.
            library = ctypes.CDLL(_find_loaded_library("libcublas.so"))
            cublas_handle = ctypes.c_void_p()
            for status in (
                library.cublasCreate_v2(ctypes.byref(cublas_handle)),
                library.cublasSetStream_v2(cublas_handle, ctypes.c_void_p(self.stream)),
            ):
                if status:
                    raise self.failure(BLAS | status)
            call = library.cublasGemmStridedBatchedEx
            address = ctypes.cast(call, ctypes.c_void_p).value or 0
            handle = cublas_handle.value or 0
            if self._check_gemm(GEMM(address), handle):
                return address, handle
            why = "the result of a product of 2 by 3 is wrong"
        except Exception as error:  # CuPy's functions are used instead
            why = f"{type(error).__name__}: {error}"
        warn(
            f"accnp: products on {self.kind} use calls of CuPy from Python, one by one, because "
            f"cuBLAS cannot be called directly ({why}); ACCNP_GPU_PRODUCTS=cupy selects this "
            "without a warning",
        )
        return 0, 0

    def solver(self) -> CupySolver | None:
        with self._first:
            if self._solves is None:
                self._solves = False
                self._solver = self._make_solver()
                self._solves = self._solver is not None
            return self._solver

    def _make_solver(self) -> CupySolver | None:
        address, handle = self.blas()
        if not address:
            return None
        self._activate()
        try:
            return CupySolver(self, handle, _find_loaded_library)
        except Exception as error:  # CuPy's functions are used instead
            warn(
                f"accnp: factorizations on {self.kind} use calls of CuPy from Python, one by one, "
                "because cuSOLVER cannot be called directly "
                f"({type(error).__name__}: {error})",
            )
        return None

    def _check_gemm(self, gemm: Callable[..., int], handle: int) -> bool:
        a, b = np.arange(6, dtype="f4").reshape(2, 3), np.arange(1, 7, dtype="f4").reshape(3, 2)
        x, y, out = self.upload(a), self.upload(b), self.alloc(16)
        one = np.array([1, 0], "f4")
        at, product = one.ctypes.data, np.empty((2, 2), "f4")
        first, second, third = (y.ptr, 0, 2, 0), (x.ptr, 0, 3, 0), (out.ptr, 0, 2, 0)
        status = gemm(handle, 0, 0, 2, 2, 3, at, *first, *second, at + 4, *third, 1, 68, -1)
        if status:
            raise self.failure(BLAS | status)
        self.copy_out(out, 0, product)
        return bool((product == a @ b).all())

    def flag(self) -> tuple[int, int, object]:
        self._activate()
        word = self.xp.cuda.alloc_pinned_memory(8)
        event = self.xp.cuda.Event(disable_timing=True)
        return word.ptr, event.ptr, (word, event)

    def handle(self, function: _Function) -> int:
        return function.ptr

    def enter(self) -> None:
        self._activate()

    def failure(self, code: int) -> Exception:
        for name, bit in (("cuBLAS", BLAS), ("cuSOLVER", SOLVER)):
            if code & bit:
                return RuntimeError(
                    f"{name}: the call failed; got status {code ^ bit}; set "
                    "ACCNP_GPU_PRODUCTS=cupy to use CuPy for products and factorizations"
                )
        return self._cuda.CUDADriverError(code)

    def facts(self, function: _Function) -> dict[str, int]:
        self._activate()
        get, cuda = self._cuda.funcGetAttribute, self._cuda
        return {
            "registers": get(cuda.CU_FUNC_ATTRIBUTE_NUM_REGS, function.ptr),
            "local": get(cuda.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function.ptr),
            "shared": get(cuda.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.ptr),
        }

    # --- time ---

    def _mark(self, stream: _Stream, timed: bool = False) -> _Event:
        event = self.xp.cuda.Event(disable_timing=not timed)
        event.record(stream)
        return event

    def event(self, timed: bool = False) -> _Event:
        self._activate()
        return self._mark(self._compute, timed)

    def elapsed(self, begin: _Event, end: _Event) -> float:
        return self.xp.cuda.get_elapsed_time(begin, end) / 1e3

    def done(self, event: _Event) -> bool:
        return event.done

    def wait(self, event: _Event) -> None:
        self._activate()
        event.synchronize()

    def synchronize(self) -> None:
        self._activate()
        for stream in (self._in, self._compute, self._out):
            stream.synchronize()

    # --- CuPy's arrays ---

    def knows(self, dtype: np.dtype) -> bool:
        return (dtype.isbuiltin == 1 and dtype.kind in "biufc") or dtype.name == "bfloat16"

    def array(
        self,
        memory: Memory,
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: Sequence[int] | None,
    ) -> _Array:
        cupy = self.xp
        ends: list[int] = [(n - 1) * s for n, s in zip(shape, strides or (), strict=False) if n]
        reach = sum(ends) if strides is not None else int(np.prod(shape)) * dtype.itemsize
        size = offset + reach + dtype.itemsize
        unowned_memory = cupy.cuda.UnownedMemory(memory.ptr, size, memory, self.number)
        place = cupy.cuda.MemoryPointer(unowned_memory, offset)
        return cupy.ndarray(shape, dtype, memptr=place, strides=strides)

    def adopt(self, array: _Array) -> _DeferredMemory:
        return _DeferredMemory(self, array, array.data.ptr)

    def call(self, function: Callable[_P, _R], *arrays: _P.args, **params: _P.kwargs) -> _R:
        """Call a function of CuPy on the compute stream."""
        self._activate()
        with self._compute:
            return function(*arrays, **params)

    def capture(self, work: Callable[[], object]) -> _Graph:
        if os.environ.get("ACCNP_GPU_GRAPHS", "") == "0":
            raise NotCaptured("ACCNP_GPU_GRAPHS=0 disables graphs")
        # CuPy keeps plans of Fourier transforms by thread. A new thread has none, so the plans of
        # the graph are made in its memory, and no other thread drops them.
        outcomes: list[_Graph | Exception] = []

        def run() -> None:
            try:
                outcomes.append(self._capture_graph(work))
            except Exception as error:
                outcomes.append(error)

        thread = threading.Thread(target=run, name="accnp capture")
        thread.start()
        thread.join()
        (outcome,) = outcomes
        if isinstance(outcome, MemoryError):
            raise outcome
        if isinstance(outcome, Exception):
            raise NotCaptured(f"{type(outcome).__name__}: {outcome}") from outcome
        return outcome

    def _capture_graph(self, work: Callable[[], object]) -> _Graph:
        self._activate()
        cuda = self.xp.cuda
        # Other threads continue to use the compute stream. Memory comes from a pool that only this
        # graph uses.
        stream, pool = cuda.Stream(non_blocking=True), cuda.MemoryPool()
        stream.wait_event(self.event())
        self._threads.captures = stream.ptr
        with cuda.using_allocator(pool.malloc), stream:
            work()  # loads kernels, makes plans, and fills the pool
            stream.synchronize()
            stream.begin_capture()
            try:
                value = work()
            except BaseException:
                with contextlib.suppress(Exception):
                    stream.end_capture()
                raise
            graph = stream.end_capture()
            plans = [node.plan for _, node in self.xp.fft.config.get_plan_cache()]
        return _Graph(self, graph.graphExec, value, (graph, plans, pool))
