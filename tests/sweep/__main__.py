"""Random calls of all public functions beside jax, for as long as one likes.

    python -m tests.sweep SECONDS [--seed N] [--calls N] [--names PATTERN,PATTERN]
                          [--ways value,jit,vmap,grad,jvp,hvp,ranks,strict] [--wide] [--alone]

A seed is a call: a function, its arguments, operands of all shapes, dtypes and layouts
(`calls.py`); seeds that follow each other go through all names. Of calls that jax takes, values,
dtypes and weak flags are compared with jax's, or with NumPy, SciPy or a formula where jax is wrong
(`tests/api/references.py`); `jit` with the eager bits, `vmap` with the calls one by one, `grad`
and `jvp` with jax's slopes or quotients of differences, `hvp` (second derivatives along tangents)
with jax's or differences of gradients; `ranks` and `strict` are the values under the two promotion
modes, where jax accepts them. Every other six calls have 64-bit types,
with `--wide` all; with `--alone` there is no jax, and only what others know is compared.
Differences that are meant are rules of `tests/api/exceptions.txt`. Each other one is printed as a
line to be pasted behind `from tests.sweep.scope import *`. Returns 1 where there was one.
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

from sweep import ours, theirs  # noqa: E402
from sweep.calls import Call, drawn, names  # noqa: E402
from sweep.verdict import Difference, compared, differences  # noqa: E402
from sweep.ways import WAYS  # noqa: E402
from sweep.worker import Ended, Worker  # noqa: E402

BATCH = 6  # calls in one program of jax's
SLOW = 60  # seconds for a call of accnp's; then it hangs
OFTEN = 3  # lines for differences of one kind of a name


class Sweep:
    """What is compared, and what was found."""

    def __init__(self, ways: Sequence[str], alone: bool) -> None:
        self.ways, self.alone = ways, alone
        self.jax, self.accnp = Worker("jax", 3 * SLOW), Worker("accnp", SLOW)
        self.counts: Counter[str] = Counter()
        self.found: Counter[tuple[str, str, str]] = Counter()

    def asked(self, calls: Sequence[Call]) -> list[Any]:
        """What jax answers; {} for what is too much for it."""
        if self.alone:
            return [None] * len(calls)
        try:
            return self.jax.ask(theirs.answers, calls, self.ways)
        except Ended:
            if len(calls) == 1:
                return [{}]
            return [record for call in calls for record in self.asked([call])]

    def compare(self, call: Call, record: Any) -> None:
        self.counts["calls"] += 1
        if record is not None and ("error" in record or "value" not in record):
            self.counts["jax refuses"] += 1
            return
        try:
            mine = self.accnp.ask(ours.answer, call, record, self.ways)
            found = differences(call, record, mine)
            self.counts.update(compared(call, record, mine))
        except Ended as error:
            found = [Difference("value", "crash", str(error))]
        except Exception as error:  # comparing goes on; whoever reads it mends the comparison
            found = [Difference("value", "not compared", repr(error))]
        for difference in found:
            self.tell(call, difference)

    def tell(self, call: Call, found: Difference) -> None:
        kind = (call.name, found.way, found.what)
        self.found[kind] += 1
        if self.found[kind] <= OFTEN:
            wide = f"{call.seed}{', 64-bit types' if call.wide else ''}"
            print(f"=== {found.way}, {found.what}: {call.name}, seed {wide}", flush=True)
            print(f"{call.expression(found.way)}\n    {found.how[:700]}", flush=True)

    def run(self, batches: Iterator[list[Call]], going: Callable[[], bool]) -> None:
        """jax is some calls ahead."""
        ready: queue.Queue[Any] = queue.Queue(3)

        def ask() -> None:
            for calls in batches:
                if not going():
                    break
                ready.put((calls, self.asked(calls)))
            ready.put(None)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        while (item := ready.get()) is not None:
            for call, record in zip(*item, strict=True):
                if going():
                    self.compare(call, record)
        asking.join()
        self.jax.close()
        self.accnp.close()

    def summary(self) -> str:
        kinds: Counter[str] = Counter()
        for (_, way, what), n in self.found.items():
            kinds[f"{way}, {what}"] += n
        texts = (", ".join(f"{n} {k}" for k, n in c.most_common()) for c in (self.counts, kinds))
        return "; differences: ".join(text or "none" for text in texts)


def batches(
    first: int, among: Sequence[str], wide: bool, count: int | None
) -> Iterator[list[Call]]:
    """Calls of one precision each time."""
    seeds = range(first, first + (count or 1 << 40))
    for at in range(0, len(seeds), BATCH):
        some = seeds[at : at + BATCH]
        yield [drawn(seed, wide or at // BATCH % 2 == 1, among) for seed in some]


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("tests.sweep", usage=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000 * 1000)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--names", default="*")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args(args)
    patterns = given.names.split(",")
    among = [n for n in names() if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
    print(f"{len(among)} names, seeds from {given.seed}", flush=True)
    end = time.monotonic() + given.seconds
    sweep = Sweep(given.ways.split(","), given.alone)
    made = batches(given.seed, among, given.wide, given.calls)
    sweep.run(made, lambda: time.monotonic() < end)
    print(sweep.summary())
    return 1 if sweep.found else 0


if __name__ == "__main__":
    sys.exit(main())
