"""Interleaved timing: named calls come in, a `Timing` per name goes out; rows and tables of them.

The calls take turns, so that a change in the machine's load falls on all of them. The ratio of two
is the median of the ratios within each round. `fresh_process` does the same for work that needs
an interpreter of its own: the code prints a number of seconds as its last line.
"""

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

Call = Callable[[], Any]


@dataclass
class Timing:
    """Seconds per call, one entry per round."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio(self, peer: "Timing") -> float:
        """The median over the rounds of our time over the peer's."""
        return statistics.median(a / b for a, b in zip(self.seconds, peer.seconds))


def interleave(
    calls: Mapping[str, Call], rounds: int = 15, number: int = 1, warm: int = 3
) -> dict[str, Timing]:
    """Time the calls in turns; each sample runs a call `number` times.

    What a call returns is kept until its clock has stopped; garbage is collected between rounds
    (that of the rounds: what was there before is frozen, or looking through it would take longer
    than most rounds).
    """
    for call in calls.values():
        for _ in range(warm):
            call()
    timings = {name: Timing() for name in calls}
    was_enabled = gc.isenabled()
    gc.disable()
    gc.collect()
    gc.freeze()
    try:
        for index in range(rounds):
            gc.collect()
            order = list(calls.items())
            if index % 2:  # who follows whom alternates, so that nobody always inherits one cache
                order.reverse()
            for name, call in order:
                start = perf_counter()
                for _ in range(number):
                    kept = call()
                timings[name].seconds.append((perf_counter() - start) / number)
                del kept
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
    return timings


def paced(calls: Mapping[str, Call], rounds: int, seconds: float = 6.0) -> dict[str, Timing]:
    """`interleave` with numbers that fit the calls: samples of 1 ms or more where a call is short,
    five times the rounds where there is time for them, all of it in about so many seconds."""
    took = []
    for call in calls.values():
        for _ in range(2):  # the first one compiles
            start = perf_counter()
            call()
            once = perf_counter() - start
        took.append(once)
    number = max(1, round(1e-3 / min(took)))
    turn = number * sum(took)
    return interleave(calls, max(5, min(5 * rounds, int(seconds / turn))), number, warm=1)


def fresh_process(code: str, **environment: str) -> float:
    """Run code in a new interpreter; the seconds that it prints last."""
    command = [sys.executable, "-c", code]
    # Installed packages come with byte code; a checkout must be allowed to write its own.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env=inherited | environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"fresh_process: the code failed; got\n{done.stderr}\nfor\n{code}")
    return float(done.stdout.split()[-1])


def use_cpus(count: int | None) -> int:
    """Give every library the same CPUs; call it before they are imported. How many they are."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:count])
        count = len(allowed[:count])
    count = count or os.cpu_count() or 1
    for name in (
        "ACCNP_THREADS",
        "NUMEXPR_NUM_THREADS",
        "OMP_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ):  # torch reads OMP's
        os.environ[name] = str(count)
    os.environ["JAX_PLATFORMS"] = "cpu"
    return count


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [s for s in info.read_text().splitlines() if s.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    facts = {"cpu": cpu, "python": platform.python_version()}
    for package in ("accnp", "jax", "numpy", "numba", "numexpr", "torch"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


@dataclass
class Row:
    """One line of the comparison: our time, the peer's, the bar, and whether it was met."""

    work: str
    peer: str
    bar: float
    ratio: float
    medians: dict[str, float]
    note: str = ""
    extra_ok: bool = True

    @property
    def met(self) -> bool:
        return bool(self.ratio <= self.bar and self.extra_ok)


def row(
    work: str,
    bar: float,
    timings: Mapping[str, Timing],
    ours: str,
    peer: str | Sequence[str],
    **more: Any,
) -> Row:
    """A row against a peer, or against the best of several: the one of the smallest median.

    Columns are filled by the names of timings: "JAX jit" and "jax eager" are JAX's, and so on; the
    peer's own time stands in its column.
    """
    names = (peer,) if isinstance(peer, str) else tuple(peer)
    best = min(names, key=lambda name: timings[name].median)
    text = best if len(names) == 1 else f"{best} (best of {', '.join(names)})"
    medians = {"accnp": timings[ours].median}
    for name in (best, *timings):
        column = COLUMN_OF.get(name.lower())
        if column is not None:
            medians.setdefault(column, timings[name].median)
    return Row(work, text, bar, timings[ours].ratio(timings[best]), medians, **more)


# Columns of the table: how they are headed, and the names of timings that stand in them.
COLUMNS = {
    "accnp": "accnp",
    "jax": "JAX",
    "numpy": "NumPy",
    "numexpr": "numexpr",
    "torch": "torch",
    "scipy": "SciPy",
    "numba": "Numba",
    "limit": "limit",
}
COLUMN_OF = {**{name: name for name in COLUMNS if name != "accnp"}, "jax jit": "jax",
             "jax eager": "jax", "torch eager": "torch"}  # fmt: skip


def milliseconds(seconds: float | None) -> str:
    """Three significant digits, or a dash."""
    return "-" if seconds is None else f"{1e3 * seconds:.3g}"


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    """The table's cells, its head first; a column that nobody was measured for is left out."""
    columns = [n for n in COLUMNS if any(n in row.medians for row in rows)]
    times = [COLUMNS[n] for n in columns]
    cells = [["work", *times, "ratio", "bar", "", "peer", "note"]]
    for row in rows:
        verdict = "pass" if row.met else "FAIL"
        figures = [milliseconds(row.medians.get(n)) for n in columns]
        ratio, bar = f"{row.ratio:.3f}", f"{row.bar:.2f}"
        cells.append([row.work, *figures, ratio, bar, verdict, row.peer, row.note])
    return cells


def text_table(rows: Sequence[Row]) -> str:
    """The comparison as text, times in milliseconds."""
    cells = _cells(rows)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    numbers = range(1, len(widths) - 3)
    lines = []
    for line in cells:
        pairs = enumerate(zip(line, widths))
        text = [c.rjust(w) if i in numbers else c.ljust(w) for i, (c, w) in pairs]
        lines.append("  ".join(text).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def markdown_table(rows: Sequence[Row]) -> str:
    """The comparison as a table in Markdown, for notes."""
    cells = [[c.replace("|", "\\|") for c in line] for line in _cells(rows)]
    rule = ["---", *["---:"] * (len(cells[0]) - 4), "---", "---", "---"]
    return "\n".join(f"| {' | '.join(line)} |" for line in [cells[0], rule, *cells[1:]])


def write_json(path: Path, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    """Everything that was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {
        "machine": dict(facts),
        "rows": [asdict(row) | {"met": row.met} for row in rows],
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
