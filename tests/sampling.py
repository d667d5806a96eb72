"""Select the cases of a long table that `make test` runs; `make test-full` runs all.

The functions take the parameters of a test, and return them with the mark `full` on all but a
sample. The choice depends only on the names of the parameters, so it is the same in each run and
each process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest


def in_sample(name: str, one_in: int) -> bool:
    """Return whether a case is among those that `make test` runs."""
    return crc32(name.encode()) % one_in == 0


def sample(names: Iterable[str], one_in: int) -> list[Any]:
    """Return the parameters of a test, marked `full` except for one in `one_in` of them."""
    return [
        pytest.param(name, marks=[] if in_sample(name, one_in) else [pytest.mark.full])
        for name in names
    ]


def seeds(count: int, every: int) -> list[Any]:
    """Return the seeds of a random test: `make test` runs the first `count` of them."""
    return [
        pytest.param(seed, marks=[] if seed < count else [pytest.mark.full])
        for seed in range(every)
    ]
