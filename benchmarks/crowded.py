"""Time short kernels while other processes keep the CPUs busy: `python -m benchmarks.crowded`.

Two processes run accnp, one with one thread and one with a thread per CPU. They take turns while as
many other processes as there are CPUs run busy loops. For each kernel, the table shows the ratio of
the two mean call times of a turn, as the median over the turns; the means include the time spent
waiting for a thread that was descheduled. The exit status is 1 if the median of the runs exceeds
the bar.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

BAR = 1.5
SECONDS_PER_TURN = 0.1  # seconds; some turns of the scheduler


def kernels() -> dict[str, Callable[[], object]]:
    """Return, by name, kernel calls that are just long enough to be split among threads."""
    import numpy as np

    import accnp as m

    np_ = m.numpy
    m.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)

    def call(function: Callable[..., object], *arrays: np.ndarray) -> Callable[[], object]:
        compiled, places = m.jit(function), [np_.asarray(x) for x in arrays]
        return lambda: m.block_until_ready(compiled(*places))

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype("float32")

    systems = normal(32, 50, 50) + 1j * normal(32, 50, 50)
    rights = normal(32, 50, 50) + 0j
    wide = systems.astype("complex128"), rights.astype("complex128")

    def solves(a: object, b: object) -> list[object]:
        return [np_.linalg.solve(a[k], b[k]) for k in range(32)]  # pyright: ignore

    return {
        "elementwise 1e5": call(lambda x: np_.sin(x) * 2 + x, normal(100_000)),
        "elementwise 1e6": call(lambda x: x * 2 + 1, normal(1_000_000)),
        "reduction 1e6": call(lambda x: (x * x).sum(), normal(1_000_000)),
        "reduction of rows": call(lambda x: x.max(1), normal(500, 500)),
        "softmax of rows": call(lambda x: m.nn.softmax(x), normal(200, 500)),
        "matmul 128": call(lambda x: x @ x, normal(128, 128)),
        "matmul 256": call(lambda x: x @ x, normal(256, 256)),
        "sort 16x10000": call(np_.sort, normal(16, 10_000)),
        "gather 1e5": call(
            lambda x, i: x[i], normal(100_000), rng.integers(0, 100_000, 100_000).astype("int32")
        ),
        "fft 64x1024": call(lambda x: np_.abs(np_.fft.fft(x)), normal(64, 1024)),
        "batched solve 32x50x50": call(np_.linalg.solve, *wide),
        "the same one by one": call(solves, *wide),
        "batched eigh 8x60x60": call(
            lambda x: np_.linalg.eigh(x + x.mT)[0], normal(8, 60, 60).astype("float64")
        ),
        "svd 60x60": call(lambda x: np_.linalg.svd(x)[1], normal(60, 60)),
        "batched cholesky": call(
            lambda x: np_.linalg.cholesky(x @ x.mT + 50 * np_.eye(30, dtype=x.dtype)),
            normal(64, 30, 30),
        ),
    }


def serve_timings() -> None:
    """Read lines with a name and a number of seconds; answer each with the mean seconds
    per call."""
    calls = kernels()
    for call in calls.values():
        for _ in range(3):
            call()
    print(*calls, sep="\t", flush=True)
    for line in sys.stdin:
        name, seconds = line.rstrip("\n").split("\t")
        call, count, spent, start = calls[name], 0, 0.0, perf_counter()
        while spent < float(seconds):
            call()
            count, spent = count + 1, perf_counter() - start
        print(spent / count, flush=True)


class _Worker:
    """A process that runs kernels with a given number of threads."""

    def __init__(self, threads: int) -> None:
        names = ("ACCNP_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.crowded", "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **dict.fromkeys(names, str(threads))},
        )

    def answer(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with status {self.process.wait()}")
        return line.rstrip("\n")

    def seconds(self, name: str) -> float:
        """Return the mean seconds per call over one turn."""
        assert self.process.stdin
        self.process.stdin.write(f"{name}\t{SECONDS_PER_TURN}\n")
        self.process.stdin.flush()
        return float(self.answer())


@contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    """Start this number of processes that run busy loops."""
    counting = [sys.executable, "-S", "-c", "while True: pass"]
    processes = [subprocess.Popen(counting) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if a kernel misses the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--quiet", action="store_true", help="without busy processes")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.work:
        serve_timings()
        return 0
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    alone, together = _Worker(1), _Worker(threads or 1)
    names = alone.answer().split("\t")
    together.answer()
    missed = 0
    print(f"{'kernel':26} {'ms alone':>9} {'bar':>5}  ratios")
    with _busy_processes(0 if options.quiet else threads or 1):
        for name in names:
            if not any(fnmatch.fnmatch(name, f"*{pattern}*") for pattern in options.only):
                continue
            ratios, single = [], 0.0
            for _ in range(options.runs):
                pairs = [
                    (together.seconds(name), alone.seconds(name)) for _ in range(options.turns)
                ]
                ratios.append(statistics.median(a / b for a, b in pairs))
                single = statistics.median(b for _, b in pairs)
            misses = statistics.median(ratios) > BAR
            missed += misses
            row = " ".join(f"{ratio:6.2f}" for ratio in ratios) + ("  misses" if misses else "")
            print(f"{name:26} {1e3 * single:9.3f} {BAR:5.2f}  {row}", flush=True)
    for worker in (alone, together):
        assert worker.process.stdin
        worker.process.stdin.close()
        worker.process.wait()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
