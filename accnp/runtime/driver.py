"""The interface to a GPU (`Driver`), and the drivers of this machine.

`drivers` returns one driver for each GPU, or raises an error that says what is missing. accnp ships
`cupy_driver.py`, which is imported when a GPU is first used. `install` replaces it: the tests use a
driver that computes with NumPy and an interpreter of PTX.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from accnp.forks import renewed
from accnp.lazy_imports import imported

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = [
    "BLAS", "CALLS", "DEFAULT_SHARED_BYTES", "GEMM", "SOLVER", "WORKSPACE_QUERIES", "Driver",
    "Entries", "GPUUnavailable", "Graph", "Memory", "NotCaptured", "Solver", "add_failure_note",
    "drivers", "install", "prototype",
]  # fmt: skip

DEFAULT_SHARED_BYTES = 48 << 10  # bytes of shared memory of a block, unless a kernel requests more

BLAS, SOLVER = 1 << 20, 1 << 21  # bits that mark error codes of cuBLAS and of cuSOLVER
# The arguments of C functions that machine code calls, as in the headers of CUDA 12: i is an int or
# an enumeration, w a word of 64 bits (a handle, an address, a long long). The functions return an
# int. The question mark stands for the letter of a type: S, D, C or Z.
CALLS = {
    "cublasGemmStridedBatchedEx": "wiiiiiwwiiwwiiwwwiiwiii",
    "cublas?trsm_v2": "wiiiiiiwwiwi",
    "cublas?trsmBatched": "wiiiiiiwwiwii",
    "cublas?getrfBatched": "wiwiwwi",
    "cublas?getrsBatched": "wiiiwiwwiwi",
    "cusolverDn?potrf": "wiiwiwiw",
    "cusolverDn?potrfBatched": "wiiwiwi",
    "cusolverDn?getrf": "wiiwiwww",
    "cusolverDn?getrs": "wiiiwiwwiw",
}
# The same for the functions that return the workspace of a factorization, in elements.
WORKSPACE_QUERIES = {"cusolverDn?potrf": "wiiwiw", "cusolverDn?getrf": "wiiwiw"}


def prototype(kinds: str) -> Callable[[int], Callable[..., int]]:
    """Return the ctypes type of a function with such arguments."""
    types = [ctypes.c_int if k == "i" else ctypes.c_int64 for k in kinds]
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)


GEMM = prototype(CALLS["cublasGemmStridedBatchedEx"])


class GPUUnavailable(RuntimeError):
    """No GPU can be used; the message says what is missing, and what to do."""


class NotCaptured(RuntimeError):
    """The work cannot be captured as a CUDA graph; the message says why."""


# Errors of CUDA after which a process cannot use GPUs any more: an illegal address, an illegal
# instruction, a timeout, an assertion, a memory error.
LOST = frozenset((214, 700, 702, 710, 714, 715, 716, 717, 718, 719))
_LOST = (
    "a kernel that was launched earlier has failed, and this process cannot use the GPU any more: "
    "restart it; with CUDA_LAUNCH_BLOCKING=1 in the environment, the error is raised by the call "
    "that launches the kernel"
)


def add_failure_note(error: BaseException) -> None:
    """Add a note to such an error, once."""
    lost = getattr(error, "status", None) in LOST
    if lost and _LOST not in getattr(error, "__notes__", ()):
        error.add_note(_LOST)


class Graph(Protocol):
    """Captured work, which can be launched any number of times. The memory that it allocated is
    freed with the last reference to the graph.

    Attributes:
        handle: its handle for `cuGraphLaunch`.
        value: the return value of the work: arrays that each launch fills.
    """

    handle: int
    value: Any


class Entries(NamedTuple):
    """Addresses of C functions with the arguments of these functions of CUDA: `cuLaunchKernel`,
    `cuMemcpyDtoDAsync_v2`, `cuMemcpyDtoHAsync_v2`, `cuStreamSynchronize`, `cuGraphLaunch`,
    `cuEventRecord`, `cuEventSynchronize`."""

    launch: int
    copy: int
    fetch: int
    wait: int
    graph: int
    mark: int
    passed: int


class Solver(Protocol):
    """Functions of cuBLAS and cuSOLVER for factorizations and systems, on the device's stream."""

    def function(self, name: str, letter: str) -> tuple[int, int, int]:
        """Return the address of one of `CALLS` for a type, its handle, and its error bit."""
        ...

    def workspace_size(self, name: str, letter: str, first: int, second: int) -> int:
        """Return the workspace in elements, from one of `WORKSPACE_QUERIES` with two integers."""
        ...


class Memory(Protocol):
    """Memory of a device, which is freed with the last reference to it."""

    @property
    def ptr(self) -> int:
        """Its address."""
        ...


if TYPE_CHECKING:

    class Function(Protocol):
        """A loaded kernel. Only the driver that loaded it knows more about it."""

    class Event(Protocol):
        """A point in the work of a GPU. Only the driver that recorded it knows more about it."""

    class ArrayFlags(Protocol):
        """How an array lies in memory."""

        @property
        def c_contiguous(self) -> bool: ...

        @property
        def owndata(self) -> bool: ...

    class DeviceArray(Protocol):
        """An array of the library `Driver.xp`."""

        @property
        def shape(self) -> tuple[int, ...]: ...

        @property
        def dtype(self) -> np.dtype: ...

        @property
        def strides(self) -> tuple[int, ...]: ...

        @property
        def nbytes(self) -> int: ...

        @property
        def flags(self) -> ArrayFlags: ...

        @property
        def __dlpack__(self) -> Callable[..., CapsuleType]: ...

        def view(self, dtype: str) -> DeviceArray: ...

        def copy(self, order: Literal["C"]) -> DeviceArray: ...


class Driver(Protocol):
    """One GPU. Its work is done in order, as on one stream, and its methods return at once, except
    those that are documented to wait. These raise failures of earlier work as RuntimeError.

    Attributes:
        kind: the name of the hardware.
        cc: its compute capability.
        wave: the number of blocks of 256 threads that it runs at a time.
        stream: the handle of the stream for other libraries; 0 if there is none.
        xp: the array library for library calls (CuPy), which uses the same stream.
    """

    kind: str
    cc: tuple[int, int]
    wave: int
    stream: int
    xp: Any

    def alloc(self, nbytes: int) -> Memory:
        """Return memory with unspecified contents; raises MemoryError if there is not enough."""
        ...

    def upload(self, array: np.ndarray) -> Memory:
        """Return memory with the values of a C-contiguous array, which may be changed when this
        returns; raises MemoryError if there is not enough."""
        ...

    def copy_out(
        self, memory: Memory, offset: int, array: np.ndarray, after: Event | None = None
    ) -> None:
        """Fill a C-contiguous array from memory, from an offset in bytes on. Waits for an event, or
        for all earlier work, and for the copy."""
        ...

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy between two addresses of the device."""
        ...

    def load(self, ptx: str, name: str) -> Function:
        """Return a function of a PTX text."""
        ...

    def launch(
        self,
        function: Function,
        blocks: int | Sequence[int],
        threads: int | Sequence[int],
        arguments: Sequence[int],
        shared: int = 0,
    ) -> None:
        """Launch a function with words of 64 bits as arguments: addresses and integers. A single
        number of blocks may be adjusted; a sequence of up to three numbers is the exact grid."""
        ...

    def entries(self) -> Entries:
        """Return the C functions with which machine code launches and copies on the stream."""
        ...

    def blas(self) -> tuple[int, int]:
        """Return the address of `cublasGemmStridedBatchedEx` and a handle on the stream; zeros if
        they are not available. Its return value with the bit `BLAS` is a code for `failure`."""
        ...

    def solver(self) -> Solver | None:
        """Return the functions for factorizations and systems; None if they are not available."""
        ...

    def flag(self) -> tuple[int, int, object]:
        """Return the address of a word on the host to which the GPU copies asynchronously, the
        handle of an event, and an object that keeps both."""
        ...

    def handle(self, function: Function) -> int:
        """Return the handle of a loaded function for the functions of `entries`."""
        ...

    def enter(self) -> None:
        """Prepare this thread to call the functions of `entries`."""
        ...

    def failure(self, code: int) -> Exception:
        """Return the exception for an error code of these functions."""
        ...

    def facts(self, function: Function) -> dict[str, int]:
        """Return the registers and the bytes of local and shared memory of a loaded function."""
        ...

    def event(self, timed: bool = False) -> Event:
        """Record an event after all work so far; with `timed`, it has a time for `elapsed`."""
        ...

    def elapsed(self, begin: Event, end: Event) -> float:
        """Return the seconds between two timed events that have occurred."""
        ...

    def done(self, event: Event) -> bool:
        """Return whether all work before an event is done."""
        ...

    def wait(self, event: Event) -> None:
        """Wait until all work before an event is done."""
        ...

    def synchronize(self) -> None:
        """Wait for all work."""
        ...

    def free_all(self) -> None:
        """Return unused memory to the system."""
        ...

    def stats(self) -> dict[str, int]:
        """Return bytes: `used` by arrays, `kept` for reuse, `free` and `total` of the GPU."""
        ...

    def knows(self, dtype: np.dtype) -> bool:
        """Return whether arrays of `xp` can have a dtype."""
        ...

    def array(
        self,
        memory: Memory,
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: Sequence[int] | None,
    ) -> DeviceArray:
        """Return an array of `xp` over memory, which it keeps alive; strides in bytes, or None."""
        ...

    def adopt(self, array: DeviceArray) -> Memory:
        """Return the memory of a C-contiguous array of `xp`, which it keeps alive."""
        ...

    def call(self, function: Callable[P, R], *arrays: P.args, **params: P.kwargs) -> R:
        """Call a function of arrays of `xp` on the stream."""
        ...

    def capture(self, work: Callable[[], object]) -> Graph:
        """Capture calls of functions of `xp` and launches as a graph. The work is done twice: once
        normally, because first calls load and allocate, and once to be captured.

        Raises:
            NotCaptured: the work reads values, waits, or calls a function that cannot be captured.
        """
        ...


Provider = Callable[[], Sequence[Driver]]

_lock = renewed(threading.Lock())
_drivers: tuple[Driver, ...] | GPUUnavailable | None = None
_provider: Provider | None = None


def install(provider: Provider | None) -> None:
    """Get drivers from a function, or from CuPy again (None). Earlier devices become invalid; no
    array may be on them."""
    global _drivers, _provider
    with _lock:
        _provider, _drivers = provider, None


def drivers() -> tuple[Driver, ...]:
    """Return one driver for each GPU; the first call finds them.

    Raises:
        GPUUnavailable: no GPU can be used.
    """
    global _drivers
    if _drivers is None:
        with _lock:
            if _drivers is None:
                _drivers = _find_drivers()
    if isinstance(_drivers, GPUUnavailable):
        raise _drivers.with_traceback(None)
    return _drivers


def _find_drivers() -> tuple[Driver, ...] | GPUUnavailable:
    provider = _provider
    if provider is None:
        provider = imported("accnp.runtime.cupy_driver").provide
    try:
        return tuple(provider())
    except GPUUnavailable as error:
        return error
