"""Measurements in fresh processes, which include start-up, imports and compilation.

Input: a program as text. Output: the seconds that it prints, or the duration of the whole process.
`COLD` is the row of `accnp bench` for a fresh process with an empty kernel cache.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from time import perf_counter

from accnp.bench.tables import Row, row
from accnp.bench.timing import Timing, seconds_text

__all__ = [
    "COLD", "Cold", "ColdTimes", "cold_process", "fresh_process", "process_seconds", "run_python",
]  # fmt: skip

COLD_ROUNDS = 3  # a process of accnp or JAX takes one to two seconds


def run_python(code: str, **environment: str) -> str:
    """Run code in a new interpreter and return its output.

    Raises:
        RuntimeError: the code failed. The message contains its stderr.
    """
    command = [sys.executable, "-c", code]
    # Installed packages contain byte code. A checkout must be allowed to write it.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env=inherited | environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"fresh_process: the code failed; got\n{done.stderr}\nfor\n{code}")
    return done.stdout


def fresh_process(code: str, **environment: str) -> float:
    """Run code in a new interpreter and return the number of seconds that it prints last."""
    return float(run_python(code, **environment).split()[-1])


def process_seconds(code: str, **environment: str) -> float:
    """Return the seconds that a new interpreter takes to start, run the code, and end."""
    start = perf_counter()
    run_python(code, **environment)
    return perf_counter() - start


_COLD_PROCESS = """
from time import perf_counter as now
start = now()
names = {{}}
exec({setup!r}, names)
ready = now()
from accnp.bench.statements import function_of
from accnp.bench.waiting import waiting
call = waiting(function_of({statement!r}, names))
begun = now()
call()
first = now()
call()
print(ready - start, first - begun, now() - first)
"""


@dataclass(frozen=True)
class ColdTimes:
    """Median seconds in fresh processes, for imports and setup, and for two calls.

    `first` is the first call, which includes loading, tracing and compiling; `again` is the second.
    """

    setup: float
    first: float
    again: float

    def __str__(self) -> str:
        return (
            f"fresh process, empty cache: setup {seconds_text(self.setup)}, first call "
            f"{seconds_text(self.first)}, second call {seconds_text(self.again)}"
        )


def cold_process(statement: str, setup: str = "", rounds: int = 1) -> ColdTimes:
    """Time a statement in fresh processes, each with an empty cache folder."""
    code = _COLD_PROCESS.format(statement=statement, setup=setup)
    samples: list[list[float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as empty:
            printed = run_python(code, ACCNP_CACHE_DIR=empty).split()
        samples.append([float(word) for word in printed[-3:]])
    return ColdTimes(*(statistics.median(column) for column in zip(*samples)))


_SELU = """
{imports}
x = np.linspace(-1.0, 1.0, 1_000_000, dtype={float32})
def selu(x):
    return 1.05 * np.where(x > 0, x, 1.67 * np.exp(x) - 1.67)
print(float({call}[0]))
"""
_NUMEXPR = 'numexpr.evaluate("1.05 * where(x > 0, x, 1.67 * exp(x) - 1.67)")'


@dataclass(frozen=True)
class Cold:
    """The duration of a whole process that computes one expression with an empty kernel cache."""

    title: str = "cold: SELU, 1e6, whole process"

    @staticmethod
    def programs() -> dict[str, str]:
        """Return the program of each installed library."""

        def program(imports: str, call: str = "selu(x)", float32: str = '"float32"') -> str:
            return _SELU.format(imports=imports, call=call, float32=float32)

        sources = {
            "accnp": program("import accnp, accnp.numpy as np", "accnp.jit(selu)(x)"),
            "numpy": program("import numpy as np"),
            "jax": program("import jax, jax.numpy as np", "jax.jit(selu)(x)"),
            "torch": program("import torch as np", float32="np.float32"),
            "numexpr": program("import numexpr, numpy as np", _NUMEXPR),
        }
        return {name: code for name, code in sources.items() if importlib.util.find_spec(name)}

    def measure(self, rounds: int) -> list[Row]:
        """Return the row. Libraries take turns, and each process has an empty cache folder."""
        programs = self.programs()
        timings = {name: Timing() for name in programs}
        for _ in range(min(rounds, COLD_ROUNDS)):
            for name, code in programs.items():
                with tempfile.TemporaryDirectory() as empty:
                    seconds = process_seconds(code, ACCNP_CACHE_DIR=empty)
                timings[name].seconds.append(seconds)
        peers = [name for name in programs if name != "accnp"]
        return [row(self.title, None, timings, "accnp", peers, note="fresh process, empty cache")]


COLD = Cold()
