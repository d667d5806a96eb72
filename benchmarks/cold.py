"""Measure a whole process that computes one expression: the cold start of `docs/performance.md`.

`python -m benchmarks.cold` runs several processes of each kind and writes the minima of their wall
and CPU times in milliseconds to `data/cold.csv`; then `python -m benchmarks.headline` copies the
figures into README.md.
"""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

DATA = Path(__file__).parent / "data" / "cold.csv"
BODY = "x = np.arange(1_000_000, dtype='float32')\nprint({call})"
VALUE = "(x * x + x * 2.0).sum()"
OURS = f"import accnp as np\n{BODY.format(call=VALUE)}"
PROGRAMS = {
    "accnp, empty cache": OURS,
    "accnp, warm cache": OURS,
    "JAX jit": f"import jax, jax.numpy as np\n{BODY.format(call=f'jax.jit(lambda x: {VALUE})(x)')}",
    "Numba, loop in `njit`": """import numba, numpy as np
@numba.njit
def total(x):
    out = np.float32(0)
    for v in x:
        out += v * v + v * np.float32(2.0)
    return out
print(total(np.arange(1_000_000, dtype="float32")))""",
    "NumPy": f"import numpy as np\n{BODY.format(call=VALUE)}",
}


def process(code: str, cache: str) -> tuple[float, float]:
    """Return the wall and CPU seconds of a fresh process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ACCNP_CACHE_DIR": cache},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    wall, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int) -> dict[str, tuple[float, float]]:
    """Return the minimum over the rounds for each kind of process; the kinds are interleaved."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as warm:
        process(OURS, warm)
        for _ in range(rounds):
            for name, code in PROGRAMS.items():
                with tempfile.TemporaryDirectory() as empty:
                    cache = warm if name == "accnp, warm cache" else empty
                    times[name].append(process(code, cache))
    return {
        name: (min(wall for wall, _ in samples), min(cpu for _, cpu in samples))
        for name, samples in times.items()
    }


def main() -> None:
    rows = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
    with DATA.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["program in a fresh process", "wall ms", "CPU ms"])
        for name, (wall, cpu) in rows.items():
            table.writerow([name, round(wall * 1000), round(cpu * 1000)])
    print(DATA.read_text(), end="")


if __name__ == "__main__":
    main()
