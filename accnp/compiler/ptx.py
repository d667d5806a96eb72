"""Compile kernels for NVIDIA GPUs to PTX.

The input is the source of a kernel and its signature, and the output is PTX, which the engine
launches. The front end (`frontend/`) translates a source in restricted Python to a kernel of the
loop IR, unless the kernel exists as loop IR already, and `llvm/ptx.py` lowers it with LLVM's NVPTX
target, without software from NVIDIA. The scalar functions are the LLVM instructions of kernels for
the CPU (`llvm/scalars`), so that both compute the same bits. Both modules are imported by name if
neither the process nor the disk has the PTX.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.caches import BoundedCache
from accnp.compiler.cache_state import counters, disk_cache
from accnp.compiler.kernel_cache import Callees, CompileError
from accnp.compiler.loops.ir import Kernel as LoopKernel
from accnp.compiler.ptx_code import NEWEST, Ptx
from accnp.config import config
from accnp.forks import renewed
from accnp.lazy_imports import imported

if TYPE_CHECKING:
    from collections.abc import Hashable


__all__ = ["THREADS", "ptx_of"]

THREADS = 256  # of a block, unless a kernel says otherwise

_ptx_cache = BoundedCache[tuple["Hashable", ...], "Ptx"]("kernel_cache_size").register(
    "PTX", "code for GPUs"
)
_lock = renewed(threading.Lock())


def ptx_of(
    source: str,
    signature: tuple[str, ...],
    *,
    name: str = "kernel",
    fastmath: bool = False,
    cc: tuple[int, int] = (9, 0),
    tasks: bool = False,
    threads: int = THREADS,
    callees: Callees = (),
    guard: str = "",
    program: LoopKernel | None = None,
) -> Ptx:
    """Return the PTX of a kernel; its arguments are one 64-bit word each, addresses or integers.

    Args:
        source: `def kernel(*pointers, *ints)`, which finds its work by `thread()` and `threads()`;
            with `tasks`, the source of a kernel for the CPU, `def kernel(lo, hi, *pointers,
            *ints)`.
        signature: the types of pointers and ints, without lo and hi: "f4*", "i8"...
        name: the function in the source.
        fastmath: allow sums in another order, fused multiply-add, and approximate units; otherwise
            every operation is rounded separately.
        cc: the compute capability; above 9.0, the PTX is for 9.0, which newer GPUs run.
        tasks: wrap a kernel for the CPU: thread k computes the indices k, k + threads, ... of 0..n
            one by one. The arguments are then the pointers, n, and the ints.
        threads: the most threads of a block.
        callees: other functions of the source that this one calls, with their signatures.
        guard: the type of an integer ("b1", "i4", "i8"): the kernel does nothing unless the integer
            is in first..last. The last arguments are then its address, first, and last.
        program: the kernel of the loop IR of which the source is a print.

    Raises:
        CompileError: the source cannot be compiled for a GPU; the message has the reason.
        ValueError: the signature does not match the parameters, or passes a float or a complex
            number by value.

    >>> from accnp.compiler.ptx import ptx_of
    >>> text = "def kernel(lo, hi, x, y):\\n    for i in range(lo, hi): y[i] = exp(x[i])\\n"
    >>> ptx = ptx_of(text, ("f4*", "f4*"), tasks=True)
    >>> f".entry {ptx.name}(" in ptx.text, ".target sm_90" in ptx.text
    (True, True)
    """
    for token in signature:
        if token in ("f4", "f8", "c8", "c16"):
            raise ValueError(f"ptx_of: pass a {token} by pointer; got {token!r}")
    key = (source, signature, name, fastmath, cc, tasks, threads, callees, guard)
    ptx = _ptx_cache.get(key) or _ptx_cache.recall(key)
    if ptx is not None:
        counters.memory_hits += 1
        return ptx
    flags = f"{fastmath} {tasks} {threads} {guard}".rstrip()
    calls = [f"{callee}({','.join(its)})" for callee, its in callees]
    identity = ("ptx", name, ",".join(signature), flags, *calls, source)
    major, minor = min(cc, NEWEST)
    target = f"sm_{major}{minor}"
    caches = imported("accnp.compiler.disk_cache")
    entry = f"accnp_{caches.digest(chr(0).join((target, *identity)).encode()).hex()[:16]}"
    disk = disk_cache()
    place = disk.key(identity, target) if disk is not None else ""
    data = disk.get(place) if disk is not None else None
    if data is not None:
        counters.disk_hits += 1
        text = data.decode()
    else:
        try:
            kernels = [program] if program is not None else []
            if not kernels:
                read = imported("accnp.compiler.frontend.program").read_source
                kernel, called = read(
                    source, name, signature, callees, threads=threads, distribute=tasks
                )
                kernels = [kernel, *called]
            text = _write_ptx(kernels, target, entry, guard, fastmath)
        except (ValueError, MemoryError):
            raise
        except Exception as error:
            raise CompileError(
                f"ptx_of: {name} does not compile for {target}: {type(error).__name__}: {error}\n"
                f"signature: {', '.join(signature)}\nsource:\n{source}"
            ) from error
        counters.compiles += 1
        if disk is not None:
            disk.put(place, text.encode())
    with _lock:
        ptx = Ptx(entry, text, threads)
        _ptx_cache.store(key, ptx)
        return ptx


def _write_ptx(
    kernels: Sequence[LoopKernel], target: str, entry: str, guard: str, fast: bool
) -> str:
    """Run the passes on a kernel and those that it calls, and return the PTX of the first."""
    pipeline = imported("accnp.compiler.pipeline")
    lowered = [
        pipeline.run_passes(k, pipeline.Target(0, fast), check=config.enable_checks)
        for k in kernels
    ]
    return imported("accnp.compiler.llvm.ptx").write_program(
        lowered[0], target, entry, guard, fast, lowered[1:], _define_functions
    )


def _define_functions(modules: list[str]) -> str:
    """Return the LLVM text of the C functions that modules compiled by Numba declare."""
    device = imported("accnp.compiler.numba.user_device")
    return device.define_functions(device.find_declared(modules))
