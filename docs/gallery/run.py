"""Run notebooks of the gallery as programs: `python docs/gallery/run.py n-body t-sne`.

Without names, it runs all of them. A notebook is a MyST text file; its code cells run one after the
other in one namespace, as Jupyter runs them. An exception ends the run. `--pictures DIR` writes
what each cell has drawn as PNG files, and `--cells` prints the seconds of each cell.
"""

from __future__ import annotations

import argparse
import linecache
import os
import re
import sys
from pathlib import Path
from time import perf_counter

FOLDER = Path(__file__).resolve().parent
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?:^:[^\n]*\n)*)(.*?)^```", re.DOTALL | re.MULTILINE)


def notebooks() -> list[str]:
    """The names of all notebooks."""
    return sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")


def code_cells(name: str) -> list[str]:
    """The sources of a notebook's code cells."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return [source for _, source in CELL.findall(text)]


def run(name: str, pictures: Path | None = None, show_cells: bool = False) -> float:
    """Run the cells of a notebook; returns the seconds that they took."""
    import matplotlib.pyplot as plt

    namespace: dict[str, object] = {"__name__": "__main__"}
    begin = perf_counter()
    for number, source in enumerate(code_cells(name)):
        file = f"<{name}, cell {number}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        start = perf_counter()
        exec(compile(source, file, "exec"), namespace)
        if show_cells:
            print(f"  cell {number}: {perf_counter() - start:.2f} s", flush=True)
        for figure in plt.get_fignums() if pictures else []:
            plt.figure(figure).savefig(pictures / f"{name}-{number}-{figure}.png")
        plt.close("all")
    return perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="names of notebooks, such as n-body (default: all)"
    )
    parser.add_argument("--pictures", type=Path, help="a folder for PNG files")
    parser.add_argument("--cells", action="store_true", help="print the seconds of each cell")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(notebooks())):
        parser.error(
            f"unknown notebooks: {', '.join(unknown)}; the names are {', '.join(notebooks())}"
        )
    os.environ.setdefault("MPLBACKEND", "agg")
    os.chdir(FOLDER)  # where Jupyter runs them; matplotlibrc is read from here
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or notebooks():
        seconds = run(name, arguments.pictures, arguments.cells)
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
