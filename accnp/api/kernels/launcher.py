"""What runs a kernel's file. In: the file and its launch. Out: operands, a time, lines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from accnp.api.kernels.files import kernel_text
from accnp.engine.steps import PARALLEL
from accnp.ir.kernel import code_dtype
from accnp.runtime import buffer as pool
from accnp.runtime.compile import get_kernel
from accnp.runtime.threads import parallel_run

__all__ = ["main"]

SECONDS = 0.3  # of measuring


def main(path: str, launch: Mapping[str, Any]) -> float:
    """Run the kernel of a file on made-up operands and print how long it takes.

    Floating operands are normal numbers, others zeros (integers may be places in an array).
    Returns the median time in seconds.
    """
    kernel = get_kernel(
        kernel_text(path),
        "kernel",
        launch["signature"],
        fastmath=launch["fastmath"],
        callees=launch["callees"],
    )
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
    median = sorted(times)[len(times) // 2]
    print(f"{kernel.origin} in {kernel.seconds * 1e3:.1f} ms")
    speed = launch["moved"] / median / 1e9
    print(f"{len(times)} runs, median {median * 1e6:.1f} us, {speed:.1f} GB/s")
    for i, (token, (m, _)) in enumerate(zip(launch["signature"], launch["pointers"], strict=False)):
        found = memory[m].view(code_dtype(token.removesuffix("*")))
        print(f"argument {i} ({token}, {found.size} elements): {np.array2string(found[:4])}...")
    return median


def _operands(launch: Mapping[str, Any]) -> list[np.ndarray]:
    codes = {}
    for token, (m, _) in zip(launch["signature"], launch["pointers"], strict=False):
        codes.setdefault(m, token.removesuffix("*"))
    rng = np.random.default_rng(0)
    found = []
    for m, nbytes in enumerate(launch["memory"]):
        dtype = code_dtype(codes.get(m, "u1"))
        count = -(-nbytes // dtype.itemsize)
        # Memory like that of arrays, which is aligned and ends behind its last element.
        made = pool.empty(count * dtype.itemsize).view((count,), dtype, writeable=True)
        made[:] = 0
        if dtype.kind in "fc":
            made[:] = rng.normal(size=count)
        found.append(made)
    return found
