"""Run SciPy's own tests of array API support, which its wheel contains, with accnp as the library.

    python tests/libraries/scipy_tests.py [--jobs N] [--limit SECONDS] [FILE ...]
    python tests/libraries/scipy_tests.py --table

FILE is the path of a test file in the package, such as `stats/tests/test_rank.py`; by default, all
files with such tests run. The tests of SciPy name the libraries that they know, so accnp runs as
`jax.numpy` (`accnp.as_jax`), and functions that support it run within `jit`. The counts are added
to `scipy_counts.json`. `--table` writes them to the table in `docs/libraries.md`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).parent
COUNTS = HERE / "scipy_counts.json"
PAGE = HERE.parents[1] / "docs" / "libraries.md"
_USES_FIXTURE = re.compile(r"def test\w*\([^)]*\bxp\b")
_MARKS = "<!-- counts of SciPy's tests -->\n", "<!-- end of counts -->\n"


class Counts(TypedDict, total=False):
    """The results of one file; `skipped` counts the tests that SciPy skips or expects to fail for
    JAX.
    """

    passed: int
    failed: int
    skipped: int
    seconds: float
    ended: str  # why the run ended early


def scipy_folder() -> Path:
    """Return the folder of the installed package, without importing it."""
    spec = importlib.util.find_spec("scipy")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def test_files() -> list[str]:
    """Return the files with tests that take the fixture `xp`."""
    root = scipy_folder()
    files = sorted(root.rglob("test_*.py"))
    return [str(f.relative_to(root)) for f in files if _USES_FIXTURE.search(f.read_text())]


def run(file: str, jobs: int, limit: int) -> Counts:
    """Run one file and return the counts."""
    root = scipy_folder()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable, "-m", "accnp.as_jax", "-m", "pytest", "-q", "-p", "no:cacheprovider",
            "-c", os.devnull, "--rootdir", str(root), "-m", "array_api_backends",
            f"--junitxml={report}", *(["-n", str(jobs)] if jobs > 1 else []), str(root / file),
        ]  # fmt: skip
        environment = {**os.environ, "SCIPY_ARRAY_API": '["jax.numpy"]'}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, timeout=limit, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"ended": f"more than {limit} s"}
        if not report.exists():
            return {"ended": done.stderr[-300:]}
        cases = list(ElementTree.parse(report).iter("testcase"))
    for case in cases:
        for failure in (*case.iter("failure"), *case.iter("error")):
            print(f"  {case.get('name')}: {(failure.get('message') or '')[:200]!r}", flush=True)
    failed = sum(any(c.tag in ("failure", "error") for c in case) for case in cases)
    skipped = sum(any(c.tag == "skipped" for c in case) for case in cases)
    return {
        "passed": len(cases) - failed - skipped,
        "failed": failed,
        "skipped": skipped,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def table() -> str:
    """Return the counts as a table in Markdown."""
    known = json.loads(COUNTS.read_text())
    rows = [
        f"SciPy {known['scipy']}, by file of its tests:",
        "",
        "| File | Passed | Failed | Skipped or expected to fail |",
        "|---|---|---|---|",
    ]
    counted = {file: c for file, c in known["files"].items() if "ended" not in c}
    names = ("passed", "failed", "skipped")
    for file, c in sorted(counted.items()):
        rows.append(f"| `{file}` | " + " | ".join(f"{c[name]:,}" for name in names) + " |")
    total = [sum(c[name] for c in counted.values()) for name in names]
    rows.append("| all | " + " | ".join(f"{n:,}" for n in total) + " |")
    left = [f"`{file}`" for file in test_files() if file not in counted]
    if left:
        rows += ["", f"Not counted, since they take longer than the others: {', '.join(left)}."]
    return "\n".join(rows) + "\n"


def write_table() -> None:
    """Replace the table in the page."""
    text = PAGE.read_text()
    before, rest = text.split(_MARKS[0])
    PAGE.write_text(f"{before}{_MARKS[0]}{table()}{_MARKS[1]}{rest.split(_MARKS[1])[1]}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--jobs", type=int, default=1, help="processes (needs pytest-xdist)")
    parser.add_argument("--limit", type=int, default=3600, help="seconds for one file")
    parser.add_argument("--table", action="store_true", help="write the table of the page and stop")
    options = parser.parse_args()
    if options.table:
        return write_table()
    known = json.loads(COUNTS.read_text()) if COUNTS.exists() else {"files": {}}
    if known.get("scipy") != version("scipy"):
        known = {"scipy": version("scipy"), "files": {}}
    for file in options.files or test_files():
        counts = known["files"][file] = run(file, options.jobs, options.limit)
        print(file, dict(counts), flush=True)
        known["files"] = dict(sorted(known["files"].items()))
        COUNTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
