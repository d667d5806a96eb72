"""Find the largest errors of functions of one float32 over all 2^32 arguments, which samples miss.

`python -m benchmarks.accuracy_every [NAME...]` tries all functions, or those that are named, and
writes the worst argument of each to `accuracy_worst.txt`, with its error against mpmath.
`accuracy.py` adds these arguments to its tables, and the tests add them to their samples. It takes
10 to 60 seconds per function on two idle cores, and minutes where the float64 function is slow.

The cases are in `accuracy_cases`. For each, it finds the largest error among normal and among
subnormal results, compared with accnp's own float64 function, whose errors are 1e-8 of these units.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import accnp as jnp
from benchmarks.accuracy import (
    WORST,
    WORST_COLUMNS,
    errors,
    function_of,
    one_number,
    worst_arguments,
)  # fmt: skip
from benchmarks.accuracy_case import Case
from benchmarks.accuracy_cases import all_cases

CHUNK = 1 << 20  # arguments at once: what is made of them stays in the caches
TINY, SMALLEST, LARGEST = 2.0**-126, 2.0**-149, float(np.finfo(np.float32).max)


def measure_errors(case: Case) -> Callable[[Any], Sequence[Any]]:
    """Return a function that computes the errors of a chunk of arguments.

    It returns the largest error and its argument, for normal and for subnormal results.
    """
    function = function_of("accnp", case.name)
    assert function is not None, case.name
    f = case.form(function) if case.form else function
    ((low, high),) = case.domains

    @jnp.jit
    def run(start: Any) -> Any:
        at = start + jnp.arange(CHUNK, dtype=jnp.uint32)
        x = jnp.lax.bitcast_convert_type(at, jnp.float32)
        actual = f(x).astype(jnp.float64)
        exact = f(x.astype(jnp.float64))
        size = jnp.abs(exact)
        inside = (x >= low) & (x <= high) & (size <= LARGEST) & (jnp.abs(x) >= TINY)
        power = jnp.lax.bitcast_convert_type(size, jnp.int64) & 0x7FF0000000000000
        unit = jnp.lax.bitcast_convert_type(power, jnp.float64) * 2.0**-23
        error = jnp.abs(actual - exact) / jnp.maximum(unit, SMALLEST)
        error = jnp.where(inside, jnp.where(jnp.isnan(error), jnp.inf, error), 0.0)
        error = error.astype(jnp.float32)
        worst_by_class = []
        for test in (size >= TINY, size < TINY):
            of = jnp.where(test, error, jnp.float32(0))
            place = jnp.argmax(of)
            worst_by_class += [of[place], x[place]]
        return worst_by_class

    return run


def largest_errors(case: Case, stride: int = 1) -> list[tuple[float, float]]:
    """Return the largest errors and their arguments, for normal and for subnormal results.

    Only one in `stride` chunks is examined.
    """
    most = [(0.0, 0.0), (0.0, 0.0)]
    ((low, high),) = case.domains
    with jnp.enable_x64(True):
        run = measure_errors(case)
        for start in range(0, 1 << 32, CHUNK * stride):
            ends = np.array([start, start + CHUNK - 1], np.uint32).view(np.float32)
            if not (ends.max() >= low and ends.min() <= high):  # outside, or no numbers
                continue
            a, x, b, y = (float(v) for v in run(np.uint32(start)))
            most = [max(most[0], (a, x)), max(most[1], (b, y))]
    return most


def _by_mpmath(case: Case, worst_case: tuple[float, float]) -> str:
    error, x = worst_case
    if error < 1e-6:  # what float64 itself is off by
        return "-"
    exact = errors(case, np.float32, 0, jax=False, xs=[np.array([x], np.float32)])["accnp"]
    if abs(exact - error) > 1e-3 * error:
        print(f"{case.label} at {x!r}: {error} by float64, {exact} by mpmath", flush=True)
    return f"{x!r} {exact:.3f}"


def main() -> None:
    selected, worst_by_label = sys.argv[1:], dict(worst_arguments())
    for case in all_cases():
        if one_number(case) and (not selected or case.name in selected):
            line = [_by_mpmath(case, most) for most in largest_errors(case)]
            worst_by_label[case.label] = line
            print(case.label, *line, sep=" | ", flush=True)
            labels = [c.label for c in all_cases() if c.label in worst_by_label]
            WORST.write_text(
                WORST_COLUMNS + "".join(f"{k} | {' | '.join(worst_by_label[k])}\n" for k in labels)
            )


if __name__ == "__main__":
    main()
