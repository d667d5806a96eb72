"""A stand-in for CuPy in host memory with the same calls and signatures, which records the CUDA
calls of a driver in order.
"""

import contextlib
import ctypes
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from cuda.strict_cupy import check_arguments

from accnp.runtime import cupy_driver
from accnp.runtime.driver import GEMM


class Log(list):
    """The recorded CUDA calls, in order."""


class Stream:
    def __init__(self, log, name):
        self.log, self.ptr = log, name

    def __enter__(self):
        self.log.append(("current", self.ptr))

    def __exit__(self, *_):
        self.log.append(("current", None))

    def wait_event(self, event):
        self.log.append((self.ptr, "waits for", event.stream))

    def synchronize(self):
        self.log.append((self.ptr, "synchronized"))

    def begin_capture(self):
        self.log.append((self.ptr, "begins to capture"))

    def end_capture(self):
        self.log.append((self.ptr, "captured"))
        if ("broken", self.ptr) in self.log:
            raise RuntimeError("cudaErrorStreamCaptureInvalidated")
        return SimpleNamespace(graphExec=500 + self.ptr)


class Event:
    count = 0

    def __init__(self, disable_timing):
        self.timed = not disable_timing
        self.done = False
        Event.count += 1
        self.number = self.ptr = Event.count

    def record(self, stream):
        self.stream = stream.ptr

    def synchronize(self):
        self.done = True


class Pointer:
    def __init__(self, nbytes):
        self.array = np.empty(max(nbytes, 1), np.uint8)
        self.ptr = self.array.ctypes.data


class Pinned(np.ndarray):
    """Pinned memory, with a buffer and an address."""

    def __new__(cls, nbytes):
        return np.empty(nbytes, np.uint8).view(cls)

    @property
    def ptr(self):
        return self.ctypes.data


@pytest.fixture
def cuda(monkeypatch):
    log = Log()
    names = iter(range(11, 20))

    def strict(where, **functions):
        """Return functions that accept only the arguments that CuPy's functions accept."""
        attributes = {name: check_arguments(f"{where}.{name}", f) for name, f in functions.items()}
        return SimpleNamespace(**attributes)

    runtime = strict(
        "cupy.cuda.runtime", getDeviceCount=lambda: 1, setDevice=lambda i: None,
        free=lambda p: None, getDevice=lambda: 0, memGetInfo=lambda: (600, 1000),
        getDeviceProperties=lambda i: {
            "name": b"NVIDIA H200", "major": 9, "minor": 0, "multiProcessorCount": 132,
            "maxThreadsPerMultiProcessor": 2048,
        },
        memcpyAsync=lambda to, source, n, kind, stream: (
            log.append(("copy", kind, stream)), ctypes.memmove(to, source, n),
        ),
    )  # fmt: skip
    runtime.CUDARuntimeError = RuntimeError

    class Device:
        def __init__(self, number):
            self.number = number

        __enter__ = __exit__ = lambda self, *_: None

    def load(text):
        assert text.endswith(b"\0")

    pool = strict(
        "cupy.cuda.MemoryPool", free_bytes=lambda: 50, used_bytes=lambda: 150,
        free_all_blocks=lambda: log.append("freed"),
    )  # fmt: skip
    module = strict(
        "cupy.cuda.Module", load=load, get_function=lambda name: SimpleNamespace(ptr=99, name=name)
    )
    cupy = ModuleType("cupy")
    cupy.cuda = strict(
        "cupy.cuda", Device=Device, Module=lambda: module, Event=Event, alloc=Pointer,
        Stream=lambda non_blocking: Stream(log, next(names)), alloc_pinned_memory=Pinned,
        get_elapsed_time=lambda begin, end: end.number - begin.number,
        UnownedMemory=lambda *arguments: arguments, MemoryPointer=lambda *arguments: arguments,
    )  # fmt: skip
    cupy.cuda.runtime = runtime
    allocators = [None]

    @contextlib.contextmanager
    def using(allocator):
        allocators.append(allocator)
        log.append("its own memory")
        yield
        log.append("memory of all")
        allocators.pop()

    own = strict("cupy.cuda.MemoryPool", malloc=lambda n: (log.append("its pool"), Pointer(n))[1])
    more = strict("cupy.cuda", using_allocator=using, MemoryPool=lambda: own)
    vars(cupy.cuda).update(vars(more))
    plans = [("key", SimpleNamespace(plan="a plan"))]
    cupy.fft = SimpleNamespace(
        config=strict("cupy.fft.config", get_plan_cache=lambda: plans if plans else [])
    )
    pools = strict(
        "cupy", get_default_memory_pool=lambda: pool, get_default_pinned_memory_pool=lambda: pool
    )
    vars(cupy).update(vars(pools))
    cupy.ndarray = lambda shape, dtype, *, memptr, strides: (shape, dtype, memptr, strides)
    launched = []

    def launch(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        words = (ctypes.c_void_p * 2).from_address(parameters)
        values = [ctypes.c_uint64.from_address(p).value for p in words]
        launched.append((f, (gx, gy, gz), (bx, by, bz), shared, stream, values, extra))

    where = "cupy_backends.cuda.api.driver"
    driver = ModuleType(where)
    functions = strict(
        where, launchKernel=launch, funcGetAttribute=lambda attribute, f: attribute,
        funcSetAttribute=lambda *arguments: log.append(("asked for", *arguments)),
        CUDADriverError=lambda status: RuntimeError(f"CUDA says {status}"),
    )  # fmt: skip
    vars(driver).update(vars(functions))
    driver.CU_FUNC_ATTRIBUTE_NUM_REGS = 40
    driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 8
    driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 16
    driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 80
    for name in ("cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.api"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.api.driver", driver)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    (provided,) = cupy_driver.provide()
    memory = np.zeros(8, np.uint8)
    return SimpleNamespace(driver=provided, log=log, launched=launched, memory=memory)


COMPUTE, IN, OUT = 11, 12, 13


class Blas:
    """The cuBLAS function for the product with which the driver checks it. Matrices are
    column-major.
    """

    def __init__(self, cuda, monkeypatch, wrong=0):
        self.handles, self.wrong = [], wrong
        cupy = check_arguments("cupy.cuda.device.get_cublas_handle", lambda: 4)
        cuda.driver.xp.cuda.device = SimpleNamespace(get_cublas_handle=cupy)
        self.function = GEMM(self.product)
        library = SimpleNamespace(
            cublasGemmStridedBatchedEx=self.function, cublasCreate_v2=self.create,
            cublasSetStream_v2=lambda *pair: self.handles.append([x.value for x in pair]),
        )  # fmt: skip
        monkeypatch.setattr(cupy_driver, "_find_loaded_library", lambda name: f"/lib/{name}.13")
        monkeypatch.setattr(cupy_driver.ctypes, "CDLL", lambda path: library)

    def create(self, handle):
        handle._obj.value = 5
        return 0

    def product(self, handle, ta, tb, m, n, k, one, a, ka, la, sa, b, kb, lb, sb, none, c, *rest):
        assert (handle, ta, tb, m, n, k, ka, la, kb, lb) == (5, 0, 0, 2, 2, 3, 0, 2, 0, 3)
        assert rest == (0, 2, 0, 1, 68, -1)
        x, y, out = (
            np.frombuffer((ctypes.c_float * (p * q)).from_address(at), "f4").reshape(p, q)
            for at, p, q in ((a, 3, 2), (b, 2, 3), (c, 2, 2))
        )
        out[...] = y @ x + (self.wrong == 1)
        return self.wrong if self.wrong > 1 else 0
