"""Compare random calls of all public functions with JAX, for a given time.

    python -m tests.sweep SECONDS [--seed N] [--calls N] [--names PATTERN,PATTERN]
                          [--ways value,jit,vmap,grad,jvp,hvp,ranks,strict] [--wide] [--alone]

A seed selects a call (`calls.py`): a function, its arguments, and operands of all shapes, dtypes
and layouts. Consecutive seeds go through all names. If JAX accepts a call, the sweep compares:

- values, dtypes and weak flags with JAX's, or with NumPy, SciPy or a formula where JAX is wrong
(`tests/api/references.py`), - `jit` with eager results, bitwise, and `vmap` with separate calls, -
`grad` and `jvp` with JAX's derivatives or difference quotients, and `hvp` (second derivatives along
tangents) with JAX's or differences of gradients, - `ranks` and `strict`: the values under the two
promotion modes, where JAX accepts them.

Half of the batches of six calls have 64-bit types, with `--wide` all of them. With `--alone`, JAX
is not used, and only values with another reference are compared. `tests/api/exceptions.txt` lists
intended differences. Each other difference is printed as a line that can be pasted after `from
tests.sweep.scope import *`. Returns 1 if there was one.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([*sys.path[:2], os.environ.get("PYTHONPATH", "")])

from sweep import accnp_results, jax_results  # noqa: E402
from sweep.calls import Call, draw_call, shuffled_names  # noqa: E402
from sweep.execution_modes import MODES  # noqa: E402
from sweep.result_comparison import Difference, compared_modes, find_differences  # noqa: E402
from sweep.worker import Ended, Worker  # noqa: E402

BATCH = 6  # calls in one program of JAX
SLOW = 60  # seconds after which a call of accnp counts as hanging
OFTEN = 3  # printed differences of one kind per name


class Sweep:
    """The settings of a sweep, and the differences that it has reported."""

    def __init__(self, modes: Sequence[str], alone: bool) -> None:
        self.modes, self.alone = modes, alone
        self.jax, self.accnp = Worker("jax", 3 * SLOW), Worker("accnp", SLOW)
        self.counts: Counter[str] = Counter()
        self.differences: Counter[tuple[str, str, str]] = Counter()

    def jax_results(self, calls: Sequence[Call]) -> list[Any]:
        """Return JAX's records of calls; {} for a call that JAX cannot compile in time."""
        if self.alone:
            return [None] * len(calls)
        try:
            return self.jax.ask(jax_results.compute_records, calls, self.modes)
        except Ended:
            if len(calls) == 1:
                return [{}]
            return [record for call in calls for record in self.jax_results([call])]

    def compare(self, call: Call, record: Any) -> None:
        self.counts["calls"] += 1
        if record is not None and ("error" in record or "value" not in record):
            self.counts["jax refuses"] += 1
            return
        try:
            mine = self.accnp.ask(accnp_results.compute_record, call, record, self.modes)
            different = find_differences(call, record, mine)
            self.counts.update(compared_modes(call, record, mine))
        except Ended as error:
            different = [Difference("value", "crash", str(error))]
        except Exception as error:  # report it and continue: the comparison is wrong
            different = [Difference("value", "not compared", repr(error))]
        for difference in different:
            self.report(call, difference)

    def report(self, call: Call, difference: Difference) -> None:
        kind = (call.name, difference.mode, difference.what)
        self.differences[kind] += 1
        if self.differences[kind] <= OFTEN:
            wide = f"{call.seed}{', 64-bit types' if call.wide else ''}"
            print(f"=== {difference.mode}, {difference.what}: {call.name}, seed {wide}", flush=True)
            print(f"{call.expression(difference.mode)}\n    {difference.how[:700]}", flush=True)

    def run(self, batches: Iterator[list[Call]], going: Callable[[], bool]) -> None:
        """Compare calls until `going` returns False. A thread runs JAX a few batches ahead."""
        ready: queue.Queue[Any] = queue.Queue(3)

        def run_jax() -> None:
            for calls in batches:
                if not going():
                    break
                ready.put((calls, self.jax_results(calls)))
            ready.put(None)

        jax_thread = threading.Thread(target=run_jax, daemon=True)
        jax_thread.start()
        while (item := ready.get()) is not None:
            for call, record in zip(*item, strict=True):
                if going():
                    self.compare(call, record)
        jax_thread.join()
        self.jax.close()
        self.accnp.close()

    def summary(self) -> str:
        kinds: Counter[str] = Counter()
        for (_, mode, what), n in self.differences.items():
            kinds[f"{mode}, {what}"] += n
        texts = (", ".join(f"{n} {k}" for k, n in c.most_common()) for c in (self.counts, kinds))
        return "; differences: ".join(text or "none" for text in texts)


def batches(
    first: int, among: Sequence[str], wide: bool, count: int | None
) -> Iterator[list[Call]]:
    """Yield batches of calls of the same precision."""
    seeds = range(first, first + (count or 1 << 40))
    for at in range(0, len(seeds), BATCH):
        some = seeds[at : at + BATCH]
        yield [draw_call(seed, wide or at // BATCH % 2 == 1, among) for seed in some]


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("tests.sweep", usage=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000 * 1000)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--names", default="*")
    parser.add_argument("--ways", default=",".join(MODES))
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args(args)
    patterns = options.names.split(",")
    among = [n for n in shuffled_names() if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
    print(f"{len(among)} names, seeds from {options.seed}", flush=True)
    end = time.monotonic() + options.seconds
    sweep = Sweep(options.ways.split(","), options.alone)
    calls = batches(options.seed, among, options.wide, options.calls)
    sweep.run(calls, lambda: time.monotonic() < end)
    print(sweep.summary())
    return 1 if sweep.differences else 0


if __name__ == "__main__":
    sys.exit(main())
