"""Kernels for NVIDIA GPUs: source text and a signature come in, PTX goes out.

The front end is that of the processor's kernels (`direct.py`), and so are the functions of
`accnp/kernels/math`: the same instructions in LLVM's form, so that both give the same bits. LLVM's
own target for these GPUs writes the PTX; nothing of NVIDIA's is needed to make it. Numba and
llvmlite are loaded by name, when neither the process nor the disk has a text.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from accnp.forks import renewed
from accnp.runtime.compile import Callees, CompileError, counters, disk_cache

__all__ = ["THREADS", "Ptx", "ptx_of"]

THREADS = 256  # of a block, unless a kernel says otherwise
# Newer GPUs take the PTX of this one; LLVM ends the process where a version of PTX is too old.
NEWEST = (9, 0)

_found: dict[tuple, Ptx] = {}
_lock = renewed(threading.Lock())


class Ptx(NamedTuple):
    """A kernel as PTX: its name in the text, the text, and how many threads a block may have."""

    name: str
    text: str
    threads: int


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
    namespace: Mapping[str, Any] | None = None,
    guard: str = "",
) -> Ptx:
    """The PTX of a kernel; its arguments are one 64-bit word each, addresses or integers.

    Args:
        source: `def kernel(*pointers, *ints)`, which asks `thread()` and `threads()` for its work;
            with `tasks` the text of a kernel for the processor, `def kernel(lo, hi, *pointers,
            *ints)`.
        signature: the types of pointers and ints, without lo and hi: "f4*", "i8"...
        name: the function in the source.
        fastmath: allow sums in another order, products with sums in one rounding, and the
            approximate units; otherwise every operation is rounded by itself.
        cc: the compute capability; above 9.0 the text is one for 9.0, which newer GPUs take.
        tasks: wrap a kernel for the processor: thread k does the indices k, k + threads, ... of
            0..n, each by itself. The arguments are then the pointers, n, and the ints.
        threads: the most threads of a block.
        callees: other functions of the source that this one calls, with their signatures.
        namespace: replaces the globals of `accnp.compiler.numba.grid`; such texts stay off the
            disk.
        guard: the type of a number ("b1", "i4", "i8"): the kernel does nothing unless that is one
            of first..last; its place, first and last are then the last arguments.

    Raises:
        CompileError: the text cannot be a kernel on a GPU, with the reason and the source.
        ValueError: a type in the signature is unknown.

    >>> from accnp.runtime.ptx import ptx_of
    >>> text = "def kernel(lo, hi, x, y):\\n    for i in range(lo, hi): y[i] = exp(x[i])\\n"
    >>> made = ptx_of(text, ("f4*", "f4*"), tasks=True)
    >>> f".entry {made.name}(" in made.text, ".target sm_90" in made.text
    (True, True)
    """
    space = None if namespace is None else id(namespace)
    key = (source, signature, name, fastmath, cc, tasks, threads, callees, space, guard)
    made = _found.get(key)
    if made is not None:
        counters.memory_hits += 1
        return made
    flags = f"{fastmath} {tasks} {threads} {guard}".rstrip()
    called = [f"{callee}({','.join(its)})" for callee, its in callees]
    identity = ("ptx", name, ",".join(signature), flags, *called, source)
    major, minor = min(cc, NEWEST)
    target = f"sm_{major}{minor}"
    caches = importlib.import_module("accnp.runtime.diskcache")
    entry = f"accnp_{caches.digest(chr(0).join((target, *identity)).encode()).hex()[:16]}"
    disk = None if namespace is not None else disk_cache()
    place = disk.key(identity, target) if disk is not None else ""
    data = disk.get(place) if disk is not None else None
    if data is not None:
        counters.disk_hits += 1
        text = data.decode()
    else:
        space = namespace or importlib.import_module("accnp.compiler.numba.grid").NAMESPACE
        module = importlib.import_module("accnp.runtime.ptx_text")
        try:
            text = module.write(
                source, name, signature, space, fastmath, target, tasks, threads, callees, entry,
                guard,
            )  # fmt: skip
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
        return _found.setdefault(key, Ptx(entry, text, threads))
