"""Write the table of timings in README.md and its chart from the data files that the site shows.

`python -m benchmarks.headline` reads the measured figures in `data/headline.csv` and
`data/cold.csv`, and writes the lines between the markers in README.md, and
`docs/pictures/headline.svg`. `tests/test_readme.py` checks that they show the data.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data"
README = ROOT / "README.md"
CHART = ROOT / "docs" / "pictures" / "headline.svg"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->"
MACHINE = "two virtual cores of an AMD EPYC (Zen 4, AVX-512), float32, medians"
COLD = "fresh process, empty cache: import, compile, compute, exit"
# The figures of the README: work and peer.
CHOSEN = [
    ("`x*x + x*2.0`, 5000×5000, eager", "JAX jit"),
    ("SELU of 1e6, jit", "JAX jit"),
    ("softmax over rows of 4096×1024, jit", "JAX jit"),
    ("5-point stencil of 2000×2000", "JAX jit"),
    ("sum of 25e6", "JAX jit"),
    ("sort of 1e6", "NumPy"),
    ("matrix product 1024×1024", "JAX"),
    ("MLP 784-512-10 training step, batch 128", "JAX jit"),
    ("a new shape for a compiled function", "JAX"),
    ("import", "JAX"),
]
# Places in the chart, in pixels.
WIDTH, LABELS, TOP, ROW, BAR = 760, 400, 64, 24, 14
LARGEST = 32.0  # the ratio at the right end of the scale


@dataclass
class Figure:
    """The times of accnp and of a peer for one workload, and their ratio."""

    work: str
    ours: str
    peer: str
    theirs: str
    ratio: float


def read(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def figures() -> list[Figure]:
    """Return the selected figures and the cold start."""
    rows = {(row["work"], row["peer"]): row for row in read("headline.csv")}
    figures_of_tables = [
        Figure(work, rows[work, peer]["accnp ms"], peer, rows[work, peer]["peer ms"],
               float(rows[work, peer]["ratio"]))
        for work, peer in CHOSEN
    ]  # fmt: skip
    cold = {row["program in a fresh process"]: row["wall ms"] for row in read("cold.csv")}
    ours, theirs = cold["accnp, empty cache"], cold["JAX jit"]
    return [*figures_of_tables, Figure(COLD, ours, "JAX jit", theirs, float(ours) / float(theirs))]


def table() -> str:
    """Return the figures as a Markdown table."""
    lines = ["| work | accnp, ms | peer, ms | accnp / peer |", "|---|---|---|---|"]
    lines += [f"| {f.work} | {f.ours} | {f.peer} {f.theirs} | {f.ratio:.2f} |" for f in figures()]
    return "\n".join(lines) + "\n"


def readme() -> str:
    """Return README.md with the table between its markers."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}{table()}{END}{after}"


def chart() -> str:
    """Return a bar chart of accnp's speedup over each peer, on a logarithmic scale around 1."""
    all_figures = figures()
    height = TOP + ROW * len(all_figures) + 34
    middle = LABELS + 90
    unit = (WIDTH - 50 - middle) / math.log2(LARGEST)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="12" fill="#0f172a">',
        '<rect width="100%" height="100%" rx="8" fill="white"/>',
        '<text x="16" y="24" font-size="15" font-weight="bold">Speed of accnp relative to a peer'
        "</text>",
        f'<text x="16" y="44" fill="#475569">{escape(MACHINE)}; cold start on another machine'
        "</text>",
    ]
    for exponent in range(-1, 6):
        x = middle + exponent * unit
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 28}" stroke="#cbd5e1"/>'
            f'<text x="{x:.1f}" y="{height - 12}" text-anchor="middle" fill="#475569">'
            f"{2.0**exponent:g}×</text>"
        )
    for i, figure in enumerate(all_figures):
        y, length = TOP + ROW * i, math.log2(1 / figure.ratio) * unit
        color = "#2563eb" if length >= 0 else "#dc2626"
        label = re.sub("`", "", figure.work).partition(":")[0]
        parts.append(
            f'<text x="{LABELS - 8}" y="{y + 11}" text-anchor="end">{escape(label)}, '
            f"{escape(figure.peer)}</text>"
            f'<rect x="{middle + min(length, 0):.1f}" y="{y}" width="{abs(length):.1f}" '
            f'height="{BAR}" fill="{color}"/>'
            f'<text x="{middle + max(length, 0) + 4:.1f}" y="{y + 11}">{1 / figure.ratio:.2g}×'
            "</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    README.write_text(readme(), encoding="utf-8")
    CHART.write_text(chart(), encoding="utf-8")


if __name__ == "__main__":
    main()
