"""Run the kernel of a kernel file, as the script part of such a file does.

`main` takes the path of the file and its launch data, runs the kernel on generated operands on the
CPU or a GPU, and prints and returns the median time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from accnp.compiler.frontend.program import read_source
from accnp.compiler.kernel_cache import Callees, CompileError, Kernel, get_kernel
from accnp.compiler.ptx import ptx_of
from accnp.compiler.ptx_code import Ptx
from accnp.compiler.unsupported import Unsupported
from accnp.devtools.inspect.kernel_files import defined, explain, kernel_text
from accnp.engine.steps import PARALLEL
from accnp.ir.kernel import code_dtype
from accnp.runtime import buffer as pool
from accnp.runtime.driver import drivers
from accnp.runtime.threads import parallel_run

__all__ = ["main"]

SECONDS = 0.3  # duration of the measurement
_Made = TypeVar("_Made")


def main(path: str, launch: Mapping[str, Any]) -> float:
    """Run the kernel of a file on generated operands and print how long it takes.

    Floating operands are normal numbers, others zeros (integers may be places in an array).
    Returns the median time in seconds. If the kernel is wrong, the program ends with a message that
    shows the line.
    """
    if "blocks" in launch:
        return _on_gpu(path, launch)

    def make(source: str, callees: Callees) -> Kernel:
        signature = launch["signature"]
        read_source(source, "kernel", signature, callees, check=True)
        return get_kernel(source, "kernel", signature, fastmath=launch["fastmath"], callees=callees)

    kernel = _compile(path, launch, make)
    memory = _operands(launch)
    arguments = [memory[i].ctypes.data + at for i, at in launch["pointers"]]
    arguments += launch["ints"]
    n, work = launch["extent"], launch["work"]

    def run() -> None:
        if work < PARALLEL or n <= launch["chunk"]:
            kernel.call(n, n, *arguments)
        else:
            parallel_run(kernel, arguments, n, launch["chunk"])

    run()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    print(f"{kernel.origin} in {kernel.seconds * 1e3:.1f} ms")
    return _print_times(launch, times, memory)


def _compile(path: str, launch: Mapping[str, Any], make: Callable[[str, Callees], _Made]) -> _Made:
    """Return what is made of the kernel of a file and its callees; exit if the kernel is wrong."""
    try:
        text = kernel_text(Path(path))
    except ValueError as error:
        sys.exit(str(error).replace("override:", "kernel:", 1))
    try:
        return make(text.source, defined(text.source, launch["callees"]))
    except (CompileError, Unsupported, ValueError, RecursionError) as error:
        sys.exit(f"kernel: it does not compile; got {explain(error, text)}; fix the source")


def _print_times(
    launch: Mapping[str, Any], times: Sequence[float], memory: Sequence[np.ndarray]
) -> float:
    median = sorted(times)[len(times) // 2]
    speed = launch["moved"] / median / 1e9
    print(f"{len(times)} runs, median {median * 1e6:.1f} us, {speed:.1f} GB/s")
    for i, (token, (m, _)) in enumerate(zip(launch["signature"], launch["pointers"], strict=False)):
        array = memory[m].view(code_dtype(token.removesuffix("*")))
        print(f"argument {i} ({token}, {array.size} elements): {np.array2string(array[:4])}...")
    return median


def _on_gpu(path: str, launch: Mapping[str, Any]) -> float:
    """The same on the first GPU, by its own clock."""
    driver = drivers()[0]

    def make(source: str, callees: Callees) -> Ptx:
        signature = launch["signature"]
        tasks, threads = launch["tasks"], launch["threads"]
        read_source(
            source, "kernel", signature, callees, threads=threads, distribute=tasks, check=True
        )
        return ptx_of(
            source, signature, fastmath=launch["fastmath"], cc=driver.cc, tasks=tasks,
            threads=threads, callees=callees,
        )  # fmt: skip

    ptx = _compile(path, launch, make)
    function = driver.load(ptx.text, ptx.name)
    facts = ", ".join([f"{n} {name}" for name, n in driver.facts(function).items()])
    print(f"{driver.kind}: {launch['blocks']} blocks of {launch['threads']} threads; {facts}")
    memory = _operands(launch)
    there = [driver.upload(x) for x in memory]
    arguments = [*[there[i].ptr + at for i, at in launch["pointers"]], *launch["words"]]
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < 6 or time.perf_counter() < end:
        begin = driver.event(True)
        driver.launch(function, launch["blocks"], launch["threads"], arguments)
        after = driver.event(True)
        driver.wait(after)
        times.append(driver.elapsed(begin, after))
    for x, y in zip(memory, there, strict=True):
        driver.copy_out(y, 0, x)
    return _print_times(launch, times[1:], memory)


def _operands(launch: Mapping[str, Any]) -> list[np.ndarray]:
    codes = {}
    for token, (m, _) in zip(launch["signature"], launch["pointers"], strict=False):
        codes.setdefault(m, token.removesuffix("*"))
    rng = np.random.default_rng(0)
    operands = []
    for m, nbytes in enumerate(launch["memory"]):
        dtype = code_dtype(codes.get(m, "u1"))
        count = -(-nbytes // dtype.itemsize)
        # Allocate memory as for arrays: it is aligned and ends after the last element.
        operand = pool.empty(count * dtype.itemsize).view((count,), dtype, writeable=True)
        operand[:] = 0
        if dtype.kind in "fc":
            operand[:] = rng.normal(size=count)
        operands.append(operand)
    return operands
