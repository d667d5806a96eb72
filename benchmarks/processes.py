"""Measure messages and weak scaling in two single-threaded processes, and write a table and a
chart.

`python -m benchmarks.processes` should run on an otherwise idle machine. It writes
`data/processes.csv`, the table in docs/multiple-processes.md and `docs/pictures/processes.svg`;
`--render` only writes the latter two again. Each case is measured several times in fresh processes,
in turns, and the minimum counts. Each process is bound to its own CPU.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data" / "processes.csv"
PAGE = ROOT / "docs" / "multiple-processes.md"
CHART = ROOT / "docs" / "pictures" / "processes.svg"
PROGRAM = str(Path(__file__).parent / "process_program.py")
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->"
MESSAGES = ("psum 8", "ppermute 8", "psum 100000000", "ppermute 100000000")
LOOPS = ("psum loop", "ppermute loop")
WORK = ("stencil", "mlp")
TITLES = {
    "psum 8": "`psum` of 8 B",
    "ppermute 8": "`ppermute` of 8 B",
    "psum 100000000": "`psum` of 100 MB",
    "ppermute 100000000": "`ppermute` of 100 MB",
    "psum loop": "`psum` of 8 B in a loop",
    "ppermute loop": "`ppermute` of 8 B in a loop",
    "stencil": "stencil, a step of 2048×2048 for each process",
    "mlp": "MLP 784-512-10, a training step of 256 examples for each process",
}
ONE_THREAD = {
    "ACCNP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def _start_process(command: Sequence[str], processor: int | None = None) -> subprocess.Popen[str]:
    pinned = ["taskset", "-c", str(processor)] if processor is not None else []
    environment = {**os.environ, **ONE_THREAD}
    return subprocess.Popen([*pinned, *command], env=environment, stdout=subprocess.PIPE, text=True)


def _seconds(started: Sequence[subprocess.Popen[str]]) -> list[float]:
    """Return the numbers that the programs print, or nan if one fails."""
    times = []
    for program in started:
        try:
            out = program.communicate(timeout=180)[0]
        except subprocess.TimeoutExpired:
            program.kill()
            out = ""
        times += [float(x) for x in re.findall(r"^seconds (\S+)$", out, re.MULTILINE)]
    return times or [float("nan")]


def _port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def run(library: str, case: str) -> float:
    """Run a case in two processes and return its seconds."""
    program = [sys.executable, PROGRAM, library, case]
    if library == "jax":
        port = _port()
        return max(_seconds([_start_process([*program, str(i), port], i) for i in range(2)]))
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    command = [*program, "0", "0"]
    pinned = [["-n", "1", "taskset", "-c", str(i), *command] for i in range(2)]
    return _seconds([_start_process([launcher, *pinned[0], ":", *pinned[1]])])[0]


def run_alone(library: str, case: str) -> float:
    """Run the work of one process twice in parallel and return the seconds of the slower one."""
    program = [sys.executable, PROGRAM, library, case, "alone", "0"]
    return max(_seconds([_start_process(program, i) for i in range(2)]))


def measure(rounds: int) -> dict[tuple[str, str], float]:
    """Return the seconds of each case and system."""
    fastest: dict[tuple[str, str], float] = {}

    def note(case: str, system: str, seconds: float) -> None:
        fastest[case, system] = min(fastest.get((case, system), float("inf")), seconds)
        print(f"{case:20} {system:12} {seconds * 1e6:12.1f} us", flush=True)

    for _ in range(rounds):
        for case in MESSAGES:
            for library in ("mpi4py", "accnp", "jax"):
                note(case, library, run(library, case))
        for case in LOOPS:
            for library in ("accnp", "jax"):
                note(case, library, run(library, case))
        for case in WORK:
            for library in ("accnp", "jax"):
                note(case, library, run(library, case))
                note(case, f"{library} alone", run_alone(library, case))
    return fastest


def write(times: dict[tuple[str, str], float]) -> None:
    """Write the data file."""
    with DATA.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["case", "system", "us"])
        table.writerows([[*key, f"{seconds * 1e6:.2f}"] for key, seconds in times.items()])


def read() -> dict[tuple[str, str], float]:
    """Return the microseconds of each case and system."""
    with DATA.open(newline="", encoding="utf-8") as file:
        return {(r["case"], r["system"]): float(r["us"]) for r in csv.DictReader(file)}


def _time(us: float | None) -> str:
    if us is None:
        return "—"
    return f"{us:.1f} µs" if us < 100 else f"{us:.0f} µs" if us < 1000 else f"{us / 1000:.1f} ms"


def lines(times_by_case: dict[tuple[str, str], float]) -> str:
    """Return the tables of the page."""
    rows = ["| Message | mpi4py | accnp | JAX with gloo |", "|---|---:|---:|---:|"]
    for case in (*MESSAGES, *LOOPS):
        if (case, "accnp") not in times_by_case:
            continue
        raw = case.replace("loop", "8")
        times = [
            times_by_case.get(key) for key in ((raw, "mpi4py"), (case, "accnp"), (case, "jax"))
        ]
        rows.append(f"| {TITLES[case]} | {' | '.join(map(_time, times))} |")
    if not any(key[1] == "jax alone" for key in times_by_case):
        return "\n".join(rows) + "\n"
    rows += [
        "",
        "| Work | accnp | two alone | weak scaling | JAX with gloo | its scaling |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for case in WORK:
        if (case, "jax alone") not in times_by_case:
            continue
        ours, alone = times_by_case[case, "accnp"], times_by_case[case, "accnp alone"]
        theirs, their = times_by_case[case, "jax"], times_by_case[case, "jax alone"]
        rows.append(
            f"| {TITLES[case]} | {_time(ours)} | {_time(alone)} | {alone / ours:.2f} | "
            f"{_time(theirs)} | {their / theirs:.2f} |"
        )
    return "\n".join(rows) + "\n"


def chart(times: dict[tuple[str, str], float]) -> str:
    """Return the chart of weak scaling, as SVG."""
    width, left, top, row, bar = 780, 300, 60, 30, 18
    scale = 420.0
    parts = []
    y = top
    for case, title in (("stencil", "stencil, 2048×2048 each"), ("mlp", "MLP, 256 examples each")):
        for library, color in (("accnp", "#1f6f8b"), ("jax", "#808080")):
            value = times[case, f"{library} alone"] / times[case, library]
            name = f"{title}, {'accnp' if library == 'accnp' else 'JAX with gloo'}"
            parts += [
                f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{name}</text>',
                f'<rect x="{left}" y="{y}" width="{value * scale:.0f}" height="{bar}" '
                f'fill="{color}"/>',
                f'<text x="{left + value * scale - 6:.0f}" y="{y + 14}" text-anchor="end" '
                f'fill="white">{value:.2f}</text>',
            ]
            y += row
        y += 8
    end = left + scale
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 16}" width="{width}" '
        f'height="{y + 16}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{y + 16}" fill="white"/>',
        '<text x="12" y="22" font-size="15">Weak scaling from 1 to 2 processes</text>',
        '<text x="12" y="42">time of two programs side by side / time of two processes that '
        "communicate; 1 is ideal</text>",
        f'<line x1="{end:.0f}" y1="{top - 8}" x2="{end:.0f}" y2="{y}" stroke="black" '
        'stroke-dasharray="4 3"/>',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def render() -> None:
    """Write the tables of the page and the chart from the data file."""
    times = read()
    text = PAGE.read_text(encoding="utf-8")
    new = f"{BEGIN}{lines(times)}{END}"
    text = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: new, text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")
    if all((case, f"{m} alone") in times for case in WORK for m in ("accnp", "jax")):
        CHART.write_text(chart(times), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--render", action="store_true", help="only write the table and the chart")
    options = parser.parse_args()
    if not options.render:
        write(measure(options.rounds))
    render()


if __name__ == "__main__":
    main()
