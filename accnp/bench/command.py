"""The command `accnp bench`, which compares accnp with other installed libraries (peers).

Input: the arguments of the command line. Output: a table, and a bar chart if matplotlib is
installed. Rows that were measured on a busy machine are marked, or omitted with `--refuse-busy`.
With `--device gpu`, `gpu.py` does the work.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accnp.bench.expressions import Expression
from accnp.bench.processes import COLD, Cold
from accnp.bench.suite import SUITE
from accnp.bench.tables import (
    COLUMNS,
    UNRELIABLE,
    Row,
    markdown_table,
    marked,
    text_table,
    write_json,
)  # fmt: skip
from accnp.bench.timing import busy, machine, seconds_text
from accnp.config import config
from accnp.lazy_imports import imported
from accnp.runtime.bandwidth import bandwidth
from accnp.runtime.machine_load import machine_load

__all__ = ["ROWS", "chart", "main"]

ROWS: dict[str, Expression | Cold] = {"cold": COLD, **SUITE}
BUSY = 3  # exit status of --refuse-busy

PEERS = ("jax", "numexpr", "torch")
_PICTURES = (".png", ".svg", ".pdf")
_COLORS = {"numpy": "#64748b", "jax": "#d97706", "numexpr": "#16a34a", "torch": "#db2777"}


def main(arguments: Sequence[str]) -> int:
    """Measure, print and draw; return the exit status: 2 for invalid arguments, 3 if results were
    omitted because the machine was busy."""
    parser = argparse.ArgumentParser(
        prog="accnp bench",
        description="Compare the times of accnp with those of NumPy, JAX, numexpr and torch, if "
        "installed; print a table and draw a chart (with matplotlib).",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    names = ", ".join(ROWS)
    parser.add_argument("--only", nargs="*", metavar="NAME", help=f"rows to measure: {names}")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="device to use")
    parser.add_argument("--size", type=float, default=1.0, help="scale of the work on a GPU")
    parser.add_argument("--within", type=float, default=320.0, help="time limit on a GPU, seconds")
    parser.add_argument("--rounds", type=_count, default=15, help="samples of each call")
    parser.add_argument("--threads", type=_count, help="threads of every library; default all CPUs")
    parser.add_argument("--chart", type=_picture, default="accnp-bench.png", help="chart file")
    parser.add_argument("--json", type=Path, help="file for the rows as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument(
        "--refuse-busy",
        action="store_true",
        help="omit results that were measured on a busy machine (exit status 3)",
    )
    options = parser.parse_args(arguments)
    gpu: Any = imported("accnp.bench.gpu") if options.device == "gpu" else None
    known = ROWS if gpu is None else gpu.ROWS
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        parser.error(f"--only: there is no {', '.join(unknown)}; choose from {', '.join(known)}")
    if gpu is None:  # on a GPU, each library runs in its own process
        _same_threads(options.threads or config.threads)
    load = machine_load()
    if load.busy and options.refuse_busy:
        print(f"nothing was measured, {load}", file=sys.stderr)
        return BUSY
    if gpu is not None:
        seconds = 0.2 * options.size * options.rounds / 15
        print(gpu.main(options.only, options.size, seconds, options.json, options.within))
        print(load.worse_of(machine_load()))
        return 0
    missing = [p for p in PEERS if importlib.util.find_spec(p) is None]
    rows: list[Row] = []
    refused: list[str] = []
    for name in options.only or ROWS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        work = ROWS[name]
        (row,) = marked(work.measure, options.rounds)
        if row.unreliable and options.refuse_busy:
            refused.append(name)
            continue
        if isinstance(work, Expression):
            row.note = f"uses {busy(work.ours(), 0.1):.1f} CPUs"
        rows.append(row)
    facts: dict[str, Any] = machine() | {"threads": config.threads, "load": str(load)}
    print("  ".join(f"{name} {value}" for name, value in facts.items()))
    print(f"a streaming copy moves {bandwidth() / 1e9:.1f} GB/s")
    print("median times in milliseconds; ratio: time of accnp / time of the fastest peer\n")
    print(markdown_table(rows) if options.markdown else text_table(rows))
    if refused:
        print(f"\nomitted, because the machine was busy: {', '.join(refused)}")
    if missing:
        print(f"\nnot installed: {', '.join(missing)}")
    if options.json:
        write_json(options.json, rows, facts)
        print(f"wrote {options.json}")
    print(chart(rows, options.chart, facts))
    return BUSY if refused else 0


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be 1 or more; got {text}")
    return int(text)


def _picture(text: str) -> Path:
    """Check and return the file of the chart, before anything is measured."""
    path = Path(text)
    if path.suffix.lower() not in _PICTURES:
        raise argparse.ArgumentTypeError(f"must end with {' or '.join(_PICTURES)}; got {text}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot create the folder of {text}: {error}") from None
    return path


def _same_threads(count: int) -> None:
    """Set the number of threads of every library; the peers read it when they are imported."""
    config.update("threads", count)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    for name in ("NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(count)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def chart(rows: Sequence[Row], path: Path, facts: Mapping[str, Any] | None = None) -> str:
    """Draw the time of each peer relative to accnp; return a message.

    The title names the machine of `facts`. Bars of rows that were measured on a busy machine are
    pale, and the title says so.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return "no chart: matplotlib is not installed (pip install matplotlib)"
    if not rows:
        return "no chart: nothing was measured"
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    plots: Any = importlib.import_module("matplotlib.pyplot")
    peers = [p for p in _COLORS if any(p in row.medians for row in rows)]
    height = 0.8 / max(1, len(peers))
    size = 9, 2.2 + 0.2 * (len(peers) + 1) * len(rows)
    figure, axes = plots.subplots(figsize=size, layout="constrained")
    for k, peer in enumerate(peers):
        mine = [(i, row) for i, row in enumerate(rows) if peer in row.medians]
        times = [row.medians[peer] / row.medians["accnp"] for _, row in mine]
        places = [i + (k - (len(peers) - 1) / 2) * height for i, _ in mine]
        bars = axes.barh(places, times, height, color=_COLORS[peer], label=COLUMNS[peer])
        for bar, (_, row) in zip(bars, mine, strict=True):
            bar.set_alpha(0.35 if row.unreliable else 1.0)
        axes.bar_label(bars, [_ratio_text(t) for t in times], fontsize=7, padding=2)
    axes.axvline(1.0, color="#1d4ed8", linewidth=1.5, label="accnp")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("time of the peer / time of accnp (right of 1: accnp is faster)")
    labels = [f"{row.work}\naccnp: {seconds_text(row.medians['accnp'])}" for row in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12, y=0.01)
    figure.suptitle(_title(facts or machine(), any(row.unreliable for row in rows)), fontsize=9)
    figure.legend(loc="outside lower center", ncols=len(peers) + 1, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plots.close(figure)
    return f"wrote {path}"


def _title(facts: Mapping[str, Any], unreliable: bool) -> str:
    """Return the title of the chart: what it shows, the machine, and the versions."""
    named = {name: value for name, value in facts.items() if value != "not installed"}
    threads = f", {named.pop('threads')} threads" if "threads" in named else ""
    cpu = named.pop("cpu", "unknown processor")
    named.pop("load", None)
    versions = ", ".join(f"{name} {value}" for name, value in named.items())
    lines = ["Time of each library, relative to accnp", f"{cpu}{threads}", versions]
    return "\n".join([*lines, UNRELIABLE.replace("?", "pale bars:")] if unreliable else lines)


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.2g}×"
