"""Timing, tables and fresh processes for the benchmark rows, mostly re-exported from `accnp.bench`.

`fresh_process` times work that needs an interpreter of its own: the code prints a number of seconds
as its last line.
"""

import os

from accnp.bench.processes import fresh_process
from accnp.bench.tables import (
    COLUMNS,
    Row,
    markdown_table,
    marked,
    milliseconds,
    row,
    text_table,
    write_json,
)  # fmt: skip
from accnp.bench.timing import Call, Timing, busy, interleave, machine, paced

__all__ = [
    "COLUMNS", "Call", "Row", "Timing", "busy", "fresh_process", "interleave", "machine",
    "markdown_table", "marked", "milliseconds", "paced", "row", "text_table", "use_cpus",
    "write_json",
]  # fmt: skip


def use_cpus(count: int | None) -> int:
    """Give every library the same CPUs and return their number; call it before importing the
    libraries."""
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
    ):  # torch reads OMP_NUM_THREADS
        os.environ[name] = str(count)
    os.environ["JAX_PLATFORMS"] = "cpu"
    return count
