"""Measure how many CPUs our kernels keep busy: `python -m benchmarks.busy [--only GROUP...]`.

Prints the CPU time of all threads divided by the wall time, for the suite of `python -m accnp
bench` and the expressions of the selected groups. Calls shorter than half a millisecond are
skipped, because they are too short to be split among threads.
"""

import argparse
import sys
from time import perf_counter

from accnp.bench.expressions import Expression, wide
from accnp.bench.suite import SUITE
from accnp.bench.timing import busy
from accnp.config import config
from benchmarks import registry

MIN_MEASURED_SECONDS = 5e-4


def measure_busy_cpus(expression: Expression) -> tuple[float, float]:
    """Return the seconds of one call and the average number of CPUs that it keeps busy."""
    with wide(expression.x64):
        call = expression.ours()
        call()
        start = perf_counter()
        call()
        return perf_counter() - start, busy(call, 0.15)


def main(argv: list[str] | None = None) -> int:
    """Print a line per expression; return 1 if an expression that is large enough to use several
    threads leaves most CPUs idle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="groups, besides the suite")
    options = parser.parse_args(argv)
    expressions = {f"suite/{name}": e for name, e in SUITE.items()}
    for name, group in registry.groups(options.only).items():
        expressions |= {f"{name}/{n}": e for n, e in group.expressions.items()}
    idle = []
    for name, expression in expressions.items():
        seconds, cpus = measure_busy_cpus(expression)
        if seconds >= MIN_MEASURED_SECONDS:
            print(f"{name:32} {1e3 * seconds:9.3f} ms {cpus:5.2f} of {config.threads} CPUs")
            if cpus < 0.75 * config.threads:
                idle.append(name)
    print(f"below three quarters: {', '.join(idle) or 'none'}")
    return 1 if idle else 0


if __name__ == "__main__":
    sys.exit(main())
