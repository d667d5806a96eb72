"""Run random programs and random operations on array lifetimes, until a time limit.

    python -m tests.chance SECONDS [--processes N] [--against KIND,KIND] [--fake] [--seed S]
    python -m tests.chance --one KIND SEED [--fake]

The kinds of checks are:

- `eager`: a program runs jitted, eagerly, statement by statement and with donated arguments, with
  bitwise the same results,
- `threads`: one or several threads compute, and one or several call, with bitwise the same results,
- `lifetimes`: arrays are created, donated, deleted and shared; values are compared with NumPy,
- with a GPU, or a simulated one (`--fake`): `gpu` (programs compared with the CPU), `gpu-guards`
  (with guard bytes around memory), `gpu-lifetimes` and `gpu-failures` (memory allocation fails).

Several processes run at the same time. If one crashes or hangs, this is a failure, and a new
process replaces it. Each failure is printed with its seed and a short program that reproduces it.
Returns 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from chance.worker import CPU, GPU, check_seeds  # noqa: E402

COMMAND = [sys.executable, "-u", "-m", "tests.chance"]
HANG_TIMEOUT = 100  # seconds for a seed; then it hangs
MAX_STARTS = 6  # times that a process is begun
UNLIMITED_SEEDS = 1 << 62


class Run:
    """The results of all processes."""

    def __init__(self, seconds: float, fake: bool) -> None:
        self.end, self.fake = time.monotonic() + seconds, fake
        self.lock, self.seeds, self.found = threading.Lock(), 0, 0
        self.notes: set[str] = set()
        self.refused: Counter[str] = Counter()  # programs, by the beginning of the error

    def report(self, kind: str, failure: dict[str, Any]) -> None:
        with self.lock:
            self.found += 1
            print(
                f"=== {kind} {failure['seed']}: {failure['what']}\n{failure.get('text', '')}",
                flush=True,
            )

    def note(self, text: str) -> None:
        """Print a message that is not a failure, once."""
        with self.lock:
            if text not in self.notes:
                print(text, flush=True)
            self.notes.add(text)

    def process(self, kind: str, first: int, step: int) -> None:
        """Run processes of one kind until the time limit; a process that ends earlier is
        replaced.
        """
        for _ in range(MAX_STARTS):
            first = self._one(kind, first, step)
            if time.monotonic() > self.end - 1:
                return

    def _one(self, kind: str, first: int, step: int) -> int:
        left = max(1.0, self.end - time.monotonic())
        seed, silent = first, False
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            process = subprocess.Popen(
                [*COMMAND, "--worker", kind, f"{first}:{step}", str(left),
                 *["--fake"] * self.fake],
                stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace", cwd=ROOT,
                env={**os.environ, "MALLOC_PERTURB_": "165"},
            )  # fmt: skip

            def stop() -> None:
                nonlocal silent
                silent = True
                process.send_signal(getattr(signal, "SIGUSR1", signal.SIGTERM))
                time.sleep(1)
                process.kill()

            assert process.stdout
            timer = threading.Timer(HANG_TIMEOUT, stop)
            timer.start()
            for line in process.stdout:
                if not line.startswith("@"):
                    continue
                timer.cancel()
                word, value = json.loads(line[1:])
                if word == "at":
                    seed, self.seeds = value, self.seeds + 1
                elif word == "refused":
                    self.refused[value[:70]] += 1
                elif word == "note":
                    self.note(value)
                else:
                    self.report(kind, value)
                timer = threading.Timer(HANG_TIMEOUT, stop)
                timer.start()
            process.stdout.close()
            ended = process.wait()
            timer.cancel()
            if ended not in (0, 7):
                errors.seek(0)
                what = "hangs" if silent else f"the process ended with {ended}"
                self.report(kind, {"seed": seed, "what": f"{what}\n{errors.read()[-3000:]}"})
        return seed + step


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("tests.chance", usage=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--against", default="")
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000 * 1000)
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--worker", nargs=3)
    options = parser.parse_args(args)
    if options.worker:
        kind, seeds, seconds = options.worker
        first, step = map(int, seeds.split(":"))
        check_seeds(kind, range(first, UNLIMITED_SEEDS, step), float(seconds), options.fake)
        return 0
    if options.one:
        kind, seed = options.one
        check_seeds(kind, range(int(seed), int(seed) + 1), HANG_TIMEOUT, options.fake)
        return 0
    kinds = options.against.split(",") if options.against else list(CPU)
    if not options.against and (options.fake or _has_gpu()):
        kinds = GPU
    run = Run(options.seconds, options.fake)
    number = max(options.processes, len(kinds))
    print(f"{number} processes, {', '.join(kinds)}, seeds from {options.seed}", flush=True)
    side_by_side = [
        threading.Thread(target=run.process, args=(kind, options.seed + i, number))
        for i, kind in zip(range(number), itertools.cycle(kinds))
    ]
    [t.start() for t in side_by_side]
    [t.join() for t in side_by_side]
    refused = sum(run.refused.values())
    print(f"{run.seeds} seeds, {run.found} failures, {refused} refused by all ways in like manner")
    for text, count in run.refused.most_common(9):
        print(f"{count:5d} {text}")
    return min(1, run.found)


def _has_gpu() -> bool:
    code = "import accnp; accnp.devices('gpu')"
    return not subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
