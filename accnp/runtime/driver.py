"""What accnp asks of a GPU: `Driver`, and where drivers come from.

In: nothing but the machine. Out: one driver for each GPU, or a text that says what is missing.
The one that ships is `cupy_driver.py`, loaded when a GPU is first asked for. `install` puts others
in its place: the tests have one over NumPy's memory and an interpreter of PTX.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from accnp.forks import renewed

__all__ = [
    "BLAS", "CALLS", "GEMM", "LITTLE", "ROOMS", "SOLVER", "Driver", "Entries", "Graph", "Memory",
    "Missing", "NotCaptured", "Solver", "drivers", "explain", "install", "prototype",
]  # fmt: skip

LITTLE = 48 << 10  # bytes of shared memory that a block of CUDA gets without asking for more

BLAS, SOLVER = 1 << 20, 1 << 21  # tell errors of cuBLAS and cuSOLVER from those of CUDA
# The arguments of functions in C that machine code calls, as the headers of CUDA 12 have them: i is
# an int (an enumeration, too), w a word of 64 bits (a handle, an address, a long long). What they
# return is an int. A letter for the type, S, D, C or Z, stands in the place of the question mark.
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
# The same of those that say how many elements of memory a factorisation needs.
ROOMS = {"cusolverDn?potrf": "wiiwiw", "cusolverDn?getrf": "wiiwiw"}


def prototype(kinds: str) -> Any:
    """The type of such a function."""
    types = [ctypes.c_int if k == "i" else ctypes.c_int64 for k in kinds]
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)


GEMM = prototype(CALLS["cublasGemmStridedBatchedEx"])


class Missing(RuntimeError):
    """There is no GPU to work with; the text says what is missing, and what to do."""


class NotCaptured(RuntimeError):
    """What was asked for cannot be a CUDA graph; the text says why."""


# CUDA's errors after which it gives a process no GPU any more: an address that is not there, an
# instruction, a limit of time, an assertion, memory that is broken.
LOST = frozenset((214, 700, 702, 710, 714, 715, 716, 717, 718, 719))
_LOST = (
    "a kernel that was given to the GPU before has failed, perhaps long ago, and CUDA gives this "
    "process no GPU any more: start it again; with CUDA_LAUNCH_BLOCKING=1 in the environment the "
    "error comes from the call that launches the kernel"
)


def explain(error: BaseException) -> None:
    """Say what such an error means, once."""
    lost = getattr(error, "status", None) in LOST
    if lost and _LOST not in getattr(error, "__notes__", ()):
        error.add_note(_LOST)


class Graph(Protocol):
    """Work that was captured, to be launched as often as one likes; with the last reference to it
    goes the memory that the work took for itself.

    Attributes:
        handle: by what number `cuGraphLaunch` knows it.
        value: what the work returned: arrays that each launch fills.
    """

    handle: int
    value: Any


class Entries(NamedTuple):
    """Addresses of functions in C with the arguments of those of CUDA: `cuLaunchKernel`,
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
        """The address of one of `CALLS` for a type, its handle, and the bit of its errors."""
        ...

    def room(self, name: str, letter: str, first: int, second: int) -> int:
        """How many elements of memory one of `ROOMS` needs: its two integers are given."""
        ...


class Memory(Protocol):
    """Memory of a device, given back when the last reference to it dies."""

    @property
    def ptr(self) -> int:
        """Its address."""
        ...


class Driver(Protocol):
    """One GPU. All that is asked of it happens in order, as on one stream, and returns at once
    but where it is said to wait; failures of what ran before are raised there as RuntimeError.

    Attributes:
        kind: the name of the hardware.
        cc: its compute capability.
        wave: how many blocks of 256 threads it holds at a time.
        stream: the number by which other libraries know the stream; 0 if there is none.
        xp: the array library of library calls (CuPy), which works on the same stream.
    """

    kind: str
    cc: tuple[int, int]
    wave: int
    stream: int
    xp: Any

    def alloc(self, nbytes: int) -> Memory:
        """Memory with unspecified contents; MemoryError where there is not enough."""
        ...

    def upload(self, array: np.ndarray) -> Memory:
        """Memory with the values of a C-contiguous array, which may change as soon as this
        returns; MemoryError likewise."""
        ...

    def copy_out(self, memory: Memory, offset: int, array: np.ndarray, after: Any = None) -> None:
        """Fill a C-contiguous array from memory, from a byte on; waits for a mark, or for
        everything, and for the copy."""
        ...

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy between two addresses of the device."""
        ...

    def load(self, ptx: str, name: str) -> Any:
        """The function of that name in a PTX text."""
        ...

    def launch(
        self,
        function: Any,
        blocks: int | Sequence[int],
        threads: int | Sequence[int],
        arguments: Sequence[int],
        shared: int = 0,
    ) -> None:
        """Run a function; its arguments are words of 64 bits: addresses and integers. A number of
        blocks may be another one; with up to three numbers the grid is just that."""
        ...

    def entries(self) -> Entries:
        """The functions in C by which machine code launches and copies on the stream."""
        ...

    def blas(self) -> tuple[int, int]:
        """The address of `cublasGemmStridedBatchedEx`, and a handle that works on the stream; zeros
        where they are not available. What it returns, with the bit of `BLAS` set, is a code."""
        ...

    def solver(self) -> Solver | None:
        """Those for factorizations and systems; None where they are not available."""
        ...

    def flag(self) -> tuple[int, int, Any]:
        """The address of a word on the host that copies of the GPU reach while the host goes on,
        the number of an event, and what keeps both."""
        ...

    def handle(self, function: Any) -> int:
        """By what number these know a loaded function."""
        ...

    def enter(self) -> None:
        """Let this thread call them."""
        ...

    def failure(self, code: int) -> Exception:
        """The error of a number that they returned."""
        ...

    def facts(self, function: Any) -> dict[str, int]:
        """What is known of a loaded function: registers, bytes of local and shared memory."""
        ...

    def event(self, timed: bool = False) -> Any:
        """A mark behind everything asked for so far; `timed` if it shall know when it is passed."""
        ...

    def elapsed(self, begin: Any, end: Any) -> float:
        """Seconds between two such marks, once both are passed."""
        ...

    def done(self, event: Any) -> bool:
        """Whether everything before a mark has run."""
        ...

    def wait(self, event: Any) -> None:
        """Wait until everything before a mark has run."""
        ...

    def synchronize(self) -> None:
        """Wait for everything."""
        ...

    def free_all(self) -> None:
        """Return unused memory to the system."""
        ...

    def stats(self) -> dict[str, int]:
        """Bytes: `used` by arrays, `kept` in the pool for reuse, `free` and `total` of the GPU."""
        ...

    def knows(self, dtype: np.dtype) -> bool:
        """Whether arrays of `xp` can be of a type."""
        ...

    def array(self, memory: Memory, offset: int, shape: Any, dtype: Any, strides: Any) -> Any:
        """An array of `xp` over memory, which it keeps alive; strides in bytes, or None."""
        ...

    def adopt(self, array: Any) -> Memory:
        """The memory of a C-contiguous array of `xp`, which it keeps alive."""
        ...

    def call(self, function: Any, *arrays: Any, **params: Any) -> Any:
        """Call a function of `xp`'s arrays in its turn."""
        ...

    def capture(self, work: Callable[[], Any]) -> Graph:
        """Calls of functions of `xp` and launches as a graph. The work is done twice: once as it
        is, for what first calls load and allocate, and once to be captured.

        Raises:
            NotCaptured: it looks at values, or waits, or calls what cannot be captured.
        """
        ...


Provider = Callable[[], Sequence[Driver]]

_lock = renewed(threading.Lock())
_found: tuple[Driver, ...] | Missing | None = None
_provider: Provider | None = None


def install(provider: Provider | None) -> None:
    """Let drivers come from a function, or again from CuPy (None). Devices that were there before
    are forgotten; arrays on them must be gone."""
    global _found, _provider
    with _lock:
        _provider, _found = provider, None


def drivers() -> tuple[Driver, ...]:
    """One driver for each GPU; it is looked for once.

    Raises:
        Missing: no GPU can be used.
    """
    global _found
    if _found is None:
        with _lock:
            if _found is None:
                _found = _look()
    if isinstance(_found, Missing):
        raise _found.with_traceback(None)
    return _found


def _look() -> tuple[Driver, ...] | Missing:
    provider = _provider
    if provider is None:
        provider = importlib.import_module("accnp.runtime.cupy_driver").provide
    try:
        return tuple(provider())
    except Missing as error:
        return error
