"""Compare accnp with JAX, NumPy, numexpr and PyTorch: print a table and fail if a bar is missed.

`python -m benchmarks.compare [--only selu sort 'fft*'] [--rounds 15] [--threads 2] [--markdown]
[--json FILE]`. Words after `--only` are groups, rows, or patterns of them; `--list` shows them.
"""

import argparse
import importlib
import sys
import traceback
from pathlib import Path

from benchmarks.harness import (
    Row,
    machine,
    markdown_table,
    marked,
    text_table,
    use_cpus,
    write_json,
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the rows; return 1 if a ratio misses its bar or a row fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="groups, rows, or patterns of either")
    parser.add_argument("--list", action="store_true", help="show groups and rows, measure nothing")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--process-rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="CPUs for every library; all of them if absent")
    parser.add_argument("--markdown", action="store_true", help="the table in Markdown")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    cpus = use_cpus(options.threads)
    # The libraries read their number of threads when they are imported.
    registry = importlib.import_module("benchmarks.registry")
    groups = registry.groups()
    if options.list:
        for group in groups.values():
            print(f"{group.name}: {', '.join(group.rows)}")
        return 0
    try:
        selected = registry.select(groups, options.only or groups)
    except ValueError as error:
        parser.error(str(error))
    rows: list[Row] = []
    failed = []
    for group, name in selected:
        print(f"measuring {group.name}/{name} ...", file=sys.stderr, flush=True)
        rounds = options.process_rounds if name in group.slow else options.rounds
        try:
            rows += marked(group.rows[name], rounds)
        except Exception:  # a row that fails must not take the others' figures with it
            failed.append(f"{group.name}/{name}")
            traceback.print_exc()
    facts = machine() | {"cpus": cpus}
    print("  ".join(f"{name} {value}" for name, value in facts.items()))
    print("milliseconds, medians; ratio: median over the rounds of accnp's time over the peer's\n")
    print(markdown_table(rows) if options.markdown else text_table(rows))
    missed = sum(not row.met for row in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} bars met")
    if failed:
        print(f"no figures, they failed: {', '.join(failed)}")
    if options.json:
        write_json(options.json, rows, facts)
        print(f"wrote {options.json}")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
