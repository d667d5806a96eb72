"""Run every demo, then print the time that each takes under NumPy, accnp eager and accnp jit.

Each time is measured in a fresh process: `python -m demos --time photo jit` prints one as JSON.
"First" is the first call with an empty cache folder, "again" the first call of a second process
(its kernels come from disk), and "steady" the median of later calls.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from time import perf_counter

from demos import digits, photo

PROGRAMS = {"digits": digits, "photo": photo}
WORK = {"digits": "one epoch of SGD", "photo": "the 427x640 photograph"}
MODES = ("numpy", "eager", "jit")


def measure(program: str, mode: str, repeats: int = 15) -> dict[str, float]:
    """Return the seconds of the first call and the median of the later ones, in this process."""
    call = PROGRAMS[program].timed_call(mode)
    times = []
    for _ in range(repeats + 1):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return {"first": times[0], "steady": statistics.median(times[1:])}


def fresh(program: str, mode: str, cache: str) -> dict[str, float]:
    """Do the same in a fresh process with the given cache folder."""
    command = [sys.executable, "-m", "demos", "--time", program, mode]
    environment = os.environ | {"ACCNP_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def table() -> str:
    """Return the timing table as text."""
    lines = [f"{'milliseconds':30}{'':8}{'first':>10}{'again':>10}{'steady':>10}"]
    for program, work in WORK.items():
        for mode in MODES:
            with tempfile.TemporaryDirectory() as cache:
                cold = fresh(program, mode, cache)
                warm = fresh(program, mode, cache)
            label = f"{program}: {work}" if mode == MODES[0] else ""
            figures = (cold["first"], warm["first"], min(cold["steady"], warm["steady"]))
            cells = "".join(f"{1e3 * t:10.2f}" for t in figures)
            lines.append(f"{label:30}{mode:>8}{cells}")
    return "\n".join(lines)


def main() -> None:
    """Run both programs, then print the table."""
    if sys.argv[1:2] == ["--time"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3])))
        return
    for program in PROGRAMS.values():
        program.main([])
    print()
    print(table())


if __name__ == "__main__":
    main()
