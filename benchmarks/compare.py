"""Compare accnp with JAX, NumPy and numexpr: prints the table, writes JSON, fails below a bar.

`python -m benchmarks.compare [--only selu sum] [--rounds 15] [--threads 2] [--json FILE]`
"""

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.harness import Row, machine, text_table, use_cpus, write_json


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write; 1 if a figure misses its bar."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", nargs="*", help="names of rows")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--process-rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="CPUs for every library; all of them if absent")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    cpus = use_cpus(options.threads)
    # The libraries read their number of threads when they are imported.
    suite = importlib.import_module("benchmarks.rows")
    names = options.only or list(suite.ROWS)
    unknown = set(names) - set(suite.ROWS)
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; rows: {', '.join(suite.ROWS)}")
    rows: list[Row] = []
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        in_process = name not in suite.PROCESS_ROWS
        rows += suite.ROWS[name](options.rounds if in_process else options.process_rounds)
    facts = machine() | {"cpus": cpus}
    print("  ".join(f"{name} {value}" for name, value in facts.items()))
    print("milliseconds, medians; ratio: median over the rounds of accnp's time over the peer's")
    print(text_table(rows))
    if options.json:
        write_json(options.json, rows, facts)
        print(f"wrote {options.json}")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
