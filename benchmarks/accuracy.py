"""Measure the accuracy of functions: the largest error against mpmath, next to the errors of JAX,
NumPy and SciPy.

`python -m benchmarks.accuracy` writes `data/accuracy*.csv`, which the page docs/accuracy.md shows;
`--only NAME` prints rows. The cases are in `accuracy_cases`: functions with their exact values and
domains. Errors are in units in the last place (ulp) of the exact value, for float32 and float64.
"""

from __future__ import annotations

import argparse
import csv
import functools
import importlib
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy_case import BAR, MAX, Case, Domain, mpmath
from benchmarks.accuracy_cases import all_cases

DTYPES = (np.float32, np.float64)
TABLE = Path(__file__).parent / "data" / "accuracy.csv"
SUBNORMAL_TABLE = Path(__file__).parent / "data" / "accuracy_subnormal.csv"
WORST = Path(__file__).parent / "accuracy_worst.txt"  # written by `accuracy_every.py`
WORST_COLUMNS = "# function | argument, ulp among normal results | the same, subnormal results\n"


def _rank_in_dtype(x: float, dtype: Any) -> int:
    """Return the position of a number in the ordered sequence of all numbers of its dtype."""
    bits = np.asarray(x, dtype).view(f"i{np.dtype(dtype).itemsize}").item()
    return bits if bits >= 0 else -(bits & (2 ** (np.dtype(dtype).itemsize * 8 - 1) - 1))


def one_number(case: Case) -> bool:
    """Return whether a case is a function of one real number."""
    return len(case.domains) == 1 and not case.row and not case.whole


@functools.cache
def worst_arguments() -> dict[str, list[str]]:
    """Read the worst float32 argument of each function from `accuracy_worst.txt`.

    Returns, by label, the argument with the largest error among normal results and the one among
    subnormal results, each followed by the error in ulp, or "-" if there is none.
    """
    lines = WORST.read_text().splitlines()[1:] if WORST.exists() else []
    return {label: rest for label, *rest in (line.split(" | ") for line in lines)}


def _worst(case: Case, dtype: Any, subnormal: bool) -> np.ndarray:
    """Return the worst argument among all float32 numbers, to be added to the sampled arguments."""
    worst_argument = worst_arguments().get(case.label, ["-", "-"])[subnormal]
    seen = worst_argument != "-" and dtype == np.float32
    return np.array([float(worst_argument.split()[0])] if seen else [], dtype)


def points(case: Case, dtype: Any, n: int) -> list[np.ndarray]:
    """Return arguments inside a case's domain; half of them are spread over all magnitudes."""
    rng = np.random.default_rng(zlib.crc32(case.label.encode()))
    info = np.finfo(dtype)
    arguments = []
    domains = case.domains * max(case.row, 1)
    for k, (low, high) in enumerate(domains):
        low, high = max(low, -float(info.max) / 2), min(high, float(info.max) / 2)
        a, b = _rank_in_dtype(low, dtype), _rank_in_dtype(high, dtype)
        signed = rng.integers(a, b, n // 2, endpoint=True)
        magnitudes = np.abs(signed).astype(f"i{info.dtype.itemsize}").view(dtype)
        spread = np.where(signed < 0, -magnitudes, magnitudes)
        left, right = max(low, -1e3), min(high, 1e3)
        parts = [spread, rng.uniform(left, right, n - n // 2 - 8).astype(dtype)]
        near = case.spots if k == len(domains) - 1 and case.spots else ((left + right) / 2,)
        parts.append(np.resize(near, 8) * (1 + rng.standard_normal(8) * 10.0 ** -np.arange(1, 9)))
        x = np.concatenate(parts).astype(dtype)
        if k < case.whole:
            x = np.floor(x)
        x = np.clip(x, low, high)
        low_enough = (np.abs(x) < info.tiny) & (k >= case.whole)
        arguments.append(np.where(low_enough, info.tiny * 3, x).astype(dtype))
    for x in arguments[1:]:
        rng.shuffle(x)
    if one_number(case):
        arguments = [np.concatenate([*arguments, _worst(case, dtype, False)])]
    return arguments


# Where results are subnormal though arguments are not: (float32, float64).
VANISHING: dict[str, tuple[Domain, Domain]] = {
    "exp": ((-103.5, -87.5), (-745.0, -708.5)), "exp2": ((-149.0, -126.0), (-1074.0, -1022.0)),
    "lax.logistic": ((-103.5, -87.5), (-745.0, -708.5)),
    "nn.sigmoid": ((-103.5, -87.5), (-745.0, -708.5)),
    "nn.silu": ((-108.0, -92.0), (-751.0, -715.5)),
    "nn.mish": ((-108.0, -92.0), (-751.0, -715.5)),
    "nn.gelu": ((-10.6, -9.9), (-21.7, -20.9)),
    "nn.gelu (exact)": ((-14.3, -13.1), (-38.6, -37.6)),
    "scipy.special.erfc": ((9.2, 10.0), (26.6, 27.2)),
    "scipy.special.ndtr": ((-14.1, -13.1), (-38.4, -37.6)),
}  # fmt: skip


def subnormal_points(case: Case, dtype: Any) -> list[np.ndarray] | None:
    """Return arguments of one-argument functions that are subnormal or whose result is subnormal.

    Returns None if the domain contains none.
    """
    if not one_number(case):
        return None
    ((low, high),), info = case.domains, np.finfo(dtype)
    rng = np.random.default_rng(zlib.crc32(case.label.encode()))
    smallest, parts = float(info.smallest_subnormal), []
    if low <= 0 <= high:
        x = np.exp2(rng.uniform(0, info.nmant, 24)).round() * smallest
        parts.append(np.clip(np.where(rng.random(24) < 0.5, -x, x), low, high))
    if case.label in VANISHING:
        parts.append(rng.uniform(*VANISHING[case.label][info.dtype.itemsize // 8], 24))
    # Put the worst argument first, because the tests use every second argument.
    x = np.concatenate([_worst(case, dtype, True), *parts]).astype(dtype)
    x = x[x != 0]
    return [x] if x.size else None


def exact_values(case: Case, xs: Sequence[np.ndarray]) -> list[Any]:
    """Return the exact values by mpmath, or None where mpmath fails or the value is not finite."""
    mp = mpmath()
    values = []
    with mp.workprec(140):
        for at in zip(*(x.tolist() for x in xs)):
            try:
                value = case.exact(*map(mp.mpf, at))
                values.append(value if mp.isfinite(value) else None)
            except (ValueError, ZeroDivisionError, OverflowError, mp.NoConvergence):
                values.append(None)
    return values


def worst(actual: np.ndarray, exact: Iterable[Any], dtype: Any, normal: bool = True) -> float:
    """Return the largest error in ulp, by default only where the exact value is a normal number."""
    mp, info = mpmath(), np.finfo(dtype)
    tiny, top = mp.mpf(float(info.tiny)) if normal else 0, mp.mpf(float(info.max))
    smallest = mp.mpf(float(info.smallest_subnormal))
    most = 0.0
    for g, e in zip(actual.tolist(), exact):
        if e is None or not tiny <= abs(e) < top:
            continue
        if not np.isfinite(g):
            return math.inf
        ulp = max(smallest, mp.ldexp(1, mp.frexp(abs(e))[1] - 1 - info.nmant))
        most = max(most, float(abs(mp.mpmathify(g) - e) / ulp))
    return most


def function_of(library: str, name: str) -> Callable[..., Any] | None:
    module, _, last = f"{library}.{name}".strip(".").rpartition(".")
    return getattr(importlib.import_module(module), last, None) if module else None


def errors(
    case: Case, dtype: Any, n: int, jax: bool = True, xs: list[np.ndarray] | None = None
) -> dict[str, float]:
    """Return the largest error of each library that has the function, by library.

    If `xs` is given, these arguments are used and subnormal results count too.
    """
    normal = xs is None
    xs = points(case, dtype, max(24, n // case.share)) if xs is None else xs
    exact = exact_values(case, xs)
    operands = [x.astype(np.int32) if k < case.whole < len(xs) else x for k, x in enumerate(xs)]
    operands = [np.stack(operands, axis=-1)] if case.row else operands
    maxima = {}
    for library in ("accnp", "jax") if jax and not case.hangs else ("accnp",):
        module = importlib.import_module(library)
        with module.enable_x64(np.dtype(dtype) == np.float64):
            function = function_of(library, case.name)
            assert function is not None, case.name
            function = case.form(function) if case.form else function
            actual = np.asarray(module.jit(function)(*operands))
        maxima[library] = worst(actual, exact, dtype, normal)
    peer = function_of("", case.peer) if case.peer else None
    if peer is not None:
        peer = case.peer_form(peer) if case.peer_form else peer
        with np.errstate(all="ignore"):
            actual = np.asarray(peer(*operands))
            parts = np.result_type(dtype, 1j) if actual.dtype.kind == "c" else dtype
            actual = actual.astype(parts)
        maxima["peer"] = worst(actual, exact, dtype, normal)
    return maxima


def bar(case: Case, measured: dict[str, float]) -> float:
    """Return the largest error allowed: 2 ulp, or for special functions 4 ulp or
    SciPy's own error."""
    theirs = measured.get("peer", 0.0) if case.kind == "special" else 0.0
    return max(BAR[case.kind], theirs)


def _error_text(x: float | None) -> str:
    if x is None:
        return "–"
    return (
        f"{x:.2g}" if x < 10 else "inf" if math.isinf(x) else f"{x:.0f}" if x < 1e6 else f"{x:.0e}"
    )


def _domain_text(case: Case) -> str:
    def one(domain: Domain) -> str:
        low, high = ("max" if b == MAX else "−max" if b == -MAX else f"{b:g}" for b in domain)
        return f"{low} to {high}"

    return "; ".join(map(one, case.domains))


_ERRORS = [f"{who} {dtype}" for dtype in ("float32", "float64") for who in ("accnp", "JAX", "peer")]


def _write(path: Path, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([[*head, *_ERRORS, "note"], *rows])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--only", default="", help="rows whose name has this text; nothing is written"
    )
    parser.add_argument("-n", type=int, default=4000, help="arguments for each function")
    options = parser.parse_args(argv)
    rows, small = [], []
    for case in all_cases():
        if options.only not in case.label:
            continue
        both = [errors(case, dtype, options.n) for dtype in DTYPES]
        rows.append([case.label, _domain_text(case), *_cells(case, both)])
        print(" | ".join(rows[-1]), flush=True)
        tiny = [subnormal_points(case, dtype) for dtype in DTYPES]
        if all(xs is not None for xs in tiny):
            both = [errors(case, dtype, 0, xs=xs) for dtype, xs in zip(DTYPES, tiny)]
            small.append([case.label, *_cells(case, both)])
            print("subnormal:", " | ".join(small[-1]), flush=True)
    if not options.only:
        _write(TABLE, ["function", "domain"], rows)
        _write(SUBNORMAL_TABLE, ["function"], small)


def _cells(case: Case, both: Sequence[dict[str, float]]) -> list[str]:
    cells = [_error_text(f.get(who)) for f in both for who in ("accnp", "jax", "peer")]
    over = ", ".join(t for t, f in zip(("f32", "f64"), both) if f["accnp"] > bar(case, f))
    return [*cells, over and f"over: {over}"]


if __name__ == "__main__":
    main()
