"""Run kernels of the loop IR by each back end."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from accnp.compiler import elf_loader
from accnp.compiler.ir_tools import interpreter
from accnp.compiler.kernel_cache import enter_function, get_kernel, pack
from accnp.compiler.llvm import objects
from accnp.compiler.llvm.entry import ENTRY
from accnp.compiler.llvm.lower import lower
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.pipeline import Target, run_passes

WIDTH = objects.LANE_BYTES or 64


def launch_kernel(
    address: int,
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    integers: Mapping[str, int],
    steps: tuple[int, int],
    nontemporal: bool = False,
) -> None:
    """Call an entry for some steps: without a counter, and the rest by chunks from a counter. With
    `nontemporal`, the first ones request non-temporal stores."""
    entry = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )(address)
    words = [arrays[b.name].ctypes.data for b in kernel.buffers]
    argv = pack([*words, *[integers[v.name] for v in kernel.integers]])
    first, last = steps
    middle = (first + last) // 2
    counter = ctypes.c_int64(middle)
    entry(ctypes.addressof(argv), int(nontemporal), middle, first)
    entry(ctypes.addressof(argv), ctypes.addressof(counter), last, 3)


def signature(kernel: Kernel) -> tuple[str, ...]:
    """The tokens of the arguments."""
    return (*[f"{b.dtype.token}*" for b in kernel.buffers], *["i8"] * len(kernel.integers))


def compile_with_llvm(
    kernel: Kernel, vector_bytes: int = WIDTH, nontemporal: bool = False
) -> tuple[int, object]:
    """The entry of a kernel, and what keeps it; with `nontemporal` one that has such stores."""
    done = run_passes(kernel, Target(vector_bytes), check=True)
    if nontemporal:
        assert "prefix i64 1" in lower(done, vector_bytes, "nounwind")
    data = objects.build(lower(done, vector_bytes, objects.ENTRY_ATTRIBUTES), [])
    (address,), code = elf_loader.load(data, ENTRY, kernel="kernel")
    return address, code


def compile_from_text(kernel: Kernel) -> tuple[int, object]:
    """The same by the path for kernels that are Python text."""
    compiled = get_kernel(numba_source(kernel), kernel.name, signature(kernel))
    return compiled.address, compiled


def compile_with_numba(kernel: Kernel) -> tuple[int, object]:
    """The same by Numba's public API."""
    from accnp.compiler.numba.compile import compile_source

    source = numba_source(kernel, to_compile=True)
    return compile_source(source, kernel.name, signature(kernel), enter_function)


def interpret_kernel(
    kernel: Kernel,
    arrays: Mapping[str, np.ndarray],
    integers: Mapping[str, int],
    steps: tuple[int, int],
) -> None:
    """Do some steps with the interpreter."""
    interpreter.run(kernel, arrays, integers, *steps)
