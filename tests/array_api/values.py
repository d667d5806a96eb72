"""Parse `special_cases.txt`: for each function, a list of concrete operands and expected
results.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TEXT = Path(__file__).parent / "special_cases.txt"
INF, NAN, PI = math.inf, math.nan, math.pi

POSITIVE = [2.0**-100, 0.25, 1.0, 1.5, 3.0, 2.0**100]  # the same numbers in both precisions
NEGATIVE = [-v for v in POSITIVE]
FINITE = [0.0, -0.0, *POSITIVE, *NEGATIVE]
ALL = [*FINITE, INF, -INF, NAN]
ODD = [1.0, 3.0, 11.0]
NOT_ODD = [0.5, 2.0, 2.5, INF]
SETS = {
    "any": ALL,
    "finite": FINITE,
    "nonzero": [*POSITIVE, *NEGATIVE],
    "pos": POSITIVE,
    "neg": NEGATIVE,
    ">0": [*POSITIVE, INF],
    "<0": [*NEGATIVE, -INF],
    ">1": [1.5, 3.0, 2.0**100, INF],
    "<1": [v for v in [*FINITE, -INF] if v < 1],
    "<-1": [-1.5, -3.0, -(2.0**100), -INF],
    "notnan": [*FINITE, INF, -INF],
    "|>1|": [1.5, -1.5, 3.0, -3.0, 1e30, -1e30, INF, -INF],
    "|1|": [1.0, -1.0],
    "|<1|": [0.0, -0.0, 0.25, -0.25, 1e-30, -1e-30],
    "±inf": [INF, -INF],
    "±0": [0.0, -0.0],
    "+0": [0.0],
    "-0": [-0.0],
    "inf": [INF],
    "-inf": [-INF],
    "nan": [NAN],
    "-nan": [math.copysign(NAN, -1)],
    "notzero": [v for v in ALL if v != 0],
    "not1": [v for v in ALL if v != 1],
    "odd>0": ODD,
    "odd<0": [-v for v in ODD],
    "notodd>0": NOT_ODD,
    "notodd<0": [-v for v in NOT_ODD],
    "fraction": [0.5, -0.5, 2.5, -2.5, 0.25],
    "whole": [1.0, -1.0, 3.0, -3.0, 2.0**40, -(2.0**20)],
}


class Case(NamedTuple):
    """Operands of a function (complex ones as pairs), and the parts of the expected result."""

    rule: str
    operands: tuple[Any, ...]
    expected: tuple[Any, ...]  # per part: a number, a bool, "±0", "±inf", "+", "-"


def _members(text: str) -> list[float]:
    return SETS[text] if text in SETS else [float(text)]


def _result(text: str, names: dict[str, float]) -> Any:
    if text in ("±0", "±inf", "+", "-", "±pi/2"):
        return text
    if text in ("True", "False"):
        return text == "True"
    if text in ("+0", "-0"):
        return float(text)
    known = {"pi": PI, "inf": INF, "nan": NAN, "abs": abs, "log": math.log, **names}
    known |= {"cos": math.cos, "sin": math.sin}
    return float(eval(text, known))


def read() -> dict[tuple[str, bool], list[Case]]:
    """Return all cases, by function and by whether its operand is complex."""
    out: dict[tuple[str, bool], list[Case]] = {}
    heads: list[tuple[str, bool]] = []
    for line in TEXT.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            *words, last = line.split()
            complex_ = last == "complex"
            names = words if complex_ else [*words, last]
            heads = [(name, complex_) for name in names]
            continue
        rule = line.strip()
        conditions, result = (side.strip() for side in rule.split("->"))
        for head in heads:
            out.setdefault(head, []).extend(_cases(rule, conditions, result, head[1]))
    return out


def _cases(rule: str, conditions: str, result: str, complex_: bool) -> Iterator[Case]:
    sets = [_members(part.strip()) for part in conditions.split("&" if complex_ else ",")]
    for values in itertools.product(*sets):
        names = dict(zip(("a", "b") if complex_ else ("x1", "x2"), values))
        expected = tuple(_result(part.strip(), names) for part in result.split("&"))
        yield Case(rule, (tuple(values),) if complex_ else values, expected)


def meets(actual: Any, expected: Any, tolerance: float) -> bool:
    """Return whether one part of a result meets the rule, including signs of zeros."""
    if isinstance(expected, bool):
        return bool(actual) is expected
    if expected == "±0":
        return actual == 0
    if expected == "±inf":
        return bool(np.isinf(actual))
    if expected == "±pi/2":
        return abs(abs(actual) - PI / 2) < tolerance
    if expected in ("+", "-"):
        return bool(np.signbit(actual)) == (expected == "-")
    if math.isnan(expected):
        return bool(np.isnan(actual))
    if math.isinf(expected) or expected == 0:
        return actual == expected and bool(np.signbit(actual)) == (math.copysign(1, expected) < 0)
    return abs(actual - expected) <= tolerance * abs(expected)
