"""Rows of a comparison, and tables of rows as text, Markdown and JSON.

Input: timings by the names of calls. Output: `Row`s and text, for `accnp bench` and for the scripts
in `benchmarks/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accnp.bench.timing import Timing
from accnp.runtime.machine_load import machine_load

__all__ = [
    "COLUMNS", "UNRELIABLE", "Row", "markdown_table", "marked", "milliseconds", "row", "text_table",
    "write_json",
]  # fmt: skip

UNRELIABLE = "? measured on a busy machine: not reliable, measure again on an idle one"


@dataclass
class Row:
    """One line of a comparison: the times, their ratio, and the bar, the maximum of the ratio."""

    work: str
    peer: str
    bar: float | None  # None: no maximum
    ratio: float
    medians: dict[str, float]
    note: str = ""
    extra_ok: bool = True
    unreliable: bool = False  # measured on a busy machine

    @property
    def met(self) -> bool:
        return bool((self.bar is None or self.ratio <= self.bar) and self.extra_ok)


def row(
    work: str,
    bar: float | None,
    timings: Mapping[str, Timing],
    ours: str,
    peer: str | Sequence[str],
    **more: Any,
) -> Row:
    """Return the row for a peer, or for the fastest of several peers, by their medians.

    The name of a timing determines its column: "JAX jit" and "jax eager" belong to JAX, and so on.
    If several belong to one column, it shows the time of the peer.
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


def marked(measure: Callable[[int], list[Row]], rounds: int) -> list[Row]:
    """Measure rows, and mark them if the machine was busy before or after."""
    before = machine_load()
    rows = measure(rounds)
    busy = before.worse_of(machine_load()).busy
    for table_row in rows:
        table_row.unreliable = busy
    return rows


# The columns of the table with their headings, and the column for each name of a timing.
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
    """Return milliseconds with three significant digits, or a dash."""
    return "-" if seconds is None else f"{1e3 * seconds:.3g}"


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    """Return the cells of the table with its head; columns without values are omitted."""
    columns = [n for n in COLUMNS if any(n in row.medians for row in rows)]
    has_bars = any(row.bar is not None for row in rows)
    bars = ["bar", ""] if has_bars else []
    cells = [["work", *[COLUMNS[n] for n in columns], "ratio", *bars, "peer", "note"]]
    for row in rows:
        figures = [milliseconds(row.medians.get(n)) for n in columns]
        verdict = "pass" if row.met else "FAIL"
        bars = ["-" if row.bar is None else f"{row.bar:.2f}", verdict] if has_bars else []
        ratio = f"{row.ratio:.3f}{' ?' if row.unreliable else ''}"
        cells.append([row.work, *figures, ratio, *bars, row.peer, row.note])
    return cells


def text_table(rows: Sequence[Row]) -> str:
    """Return the table as text, with times in milliseconds."""
    cells = _cells(rows)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    numbers = range(1, cells[0].index("peer") - ("bar" in cells[0]))
    lines = []
    for line in cells:
        pairs = enumerate(zip(line, widths))
        text = [c.rjust(w) if i in numbers else c.ljust(w) for i, (c, w) in pairs]
        lines.append("  ".join(text).rstrip())
    notes = [UNRELIABLE] if any(row.unreliable for row in rows) else []
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], *notes])


def markdown_table(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    cells = [[c.replace("|", "\\|") for c in line] for line in _cells(rows)]
    numbers = cells[0].index("peer") - ("bar" in cells[0]) - 1
    rule = ["---", *["---:"] * numbers, *["---"] * (len(cells[0]) - numbers - 1)]
    notes = ["", UNRELIABLE] if any(row.unreliable for row in rows) else []
    lines = [f"| {' | '.join(line)} |" for line in [cells[0], rule, *cells[1:]]]
    return "\n".join([*lines, *notes])


def write_json(path: Path, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    """Write the rows and facts about the machine to a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {
        "machine": dict(facts),
        "rows": [asdict(row) | {"met": row.met} for row in rows],
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
