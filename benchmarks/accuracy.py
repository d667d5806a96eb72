"""How exact the functions are: the largest error against mpmath, beside jax's, NumPy's and SciPy's.

`python -m benchmarks.accuracy` writes docs/accuracy.md; `--only NAME` prints rows.

In: the cases below, a function with its exact value and its domain. Out: a table of errors in
units of the last place (ulp) of the exact value, float32 and float64.
"""

from __future__ import annotations

import argparse
import importlib
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DOCUMENT = Path(__file__).parent.parent / "docs" / "accuracy.md"
BAR = {"elementary": 2.0, "special": 4.0}
Domain = tuple[float, float]
MAX = math.inf  # a bound of a domain: the largest number of the dtype


class Case(NamedTuple):
    """One function: its name below accnp, what it should be, where."""

    name: str
    kind: str
    exact: Callable[..., Any]
    domains: tuple[Domain, ...]
    peer: str  # of NumPy or SciPy, "" where these have none
    spots: tuple[float, ...] = ()  # where cancellation is likely: zeros of the function
    share: int = 1  # of the number of points: fewer where mpmath takes long
    whole: bool = False  # the first argument is a whole number
    hangs: bool = False  # jax's does not come back for some arguments: it is not asked


def _mp() -> Any:
    return importlib.import_module("mpmath").mp


def _ndtri(p: Any) -> Any:
    mp = _mp()
    with mp.workprec(2 * mp.prec + 200):
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def _log_ndtr(x: Any) -> Any:
    mp = _mp()
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) if x < 5 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)


def _wide(f: Callable[..., Any], bits: int = 600) -> Callable[..., Any]:
    """A formula that cancels, with more digits."""

    def call(*xs: Any) -> Any:
        with _mp().workprec(bits):
            return f(*xs)

    return call


def cases() -> list[Case]:
    """All functions; mpmath is imported here, so that importing this module does not need it."""
    mp = _mp()
    every, plus, unit, inner = (-MAX, MAX), (0.0, MAX), (-1.0, 1.0), (0.0, 1.0)
    e: list[Case] = []

    def add(
        kind: str, name: str, exact: Any, *domains: Domain, peer: str = "-", **more: Any
    ) -> None:
        if peer == "-":
            peer = name
        e.append(Case(name, kind, exact, domains, peer, **more))

    for name in ("sin", "cos", "tan"):
        add("elementary", f"numpy.{name}", _wide(getattr(mp, name), 2600), every, share=2)
    for name, where in {"arcsin": unit, "arccos": unit, "arctan": every}.items():
        add("elementary", f"numpy.{name}", getattr(mp, name.replace("arc", "a")), where)
    add("elementary", "numpy.sinh", mp.sinh, (-700.0, 700.0))
    add("elementary", "numpy.cosh", mp.cosh, (-700.0, 700.0))
    add("elementary", "numpy.tanh", mp.tanh, (-700.0, 700.0))
    add("elementary", "numpy.arcsinh", _wide(mp.asinh, 2600), every, share=4)
    add("elementary", "numpy.arccosh", _wide(mp.acosh, 2600), (1.0, MAX), share=4, spots=(1.0,))
    add("elementary", "numpy.arctanh", mp.atanh, unit)
    add("elementary", "numpy.exp", mp.exp, (-708.0, 709.0))
    add("elementary", "numpy.exp2", lambda x: mp.power(2, x), (-1022.0, 1023.0))
    add("elementary", "numpy.expm1", mp.expm1, (-708.0, 709.0))
    add("elementary", "numpy.log", mp.log, plus, spots=(1.0,))
    add("elementary", "numpy.log2", lambda x: mp.log(x, 2), plus, spots=(1.0,))
    add("elementary", "numpy.log10", mp.log10, plus, spots=(1.0,))
    add("elementary", "numpy.log1p", _wide(mp.log1p, 1200), (-1.0, MAX))
    add("elementary", "numpy.sqrt", mp.sqrt, plus)
    add("elementary", "numpy.cbrt", lambda x: mp.sign(x) * mp.cbrt(abs(x)), every)
    add("elementary", "lax.rsqrt", lambda x: 1 / mp.sqrt(x), plus, peer="")
    add("elementary", "numpy.reciprocal", lambda x: 1 / x, every)
    add("elementary", "numpy.square", lambda x: x * x, every)
    add("elementary", "numpy.deg2rad", lambda x: x * mp.pi / 180, every)
    add("elementary", "numpy.rad2deg", lambda x: x * 180 / mp.pi, every)
    add("special", "numpy.sinc", lambda x: mp.sinpi(x) / (mp.pi * x), (-1000.0, 1000.0))
    add("elementary", "lax.logistic", lambda x: 1 / (1 + mp.exp(-x)), (-700.0, 700.0),
        peer="scipy.special.expit")  # fmt: skip
    add("elementary", "numpy.hypot", lambda x, y: mp.sqrt(x * x + y * y), every, every)
    add("elementary", "numpy.arctan2", _wide(mp.atan2, 2600), every, every, share=4)
    add("elementary", "numpy.power", lambda x, y: mp.power(x, y), plus, (-60.0, 60.0))
    # Sums that cancel where the result is near 0, in NumPy as well: that one's error is allowed.
    add("special", "numpy.logaddexp", _wide(lambda x, y: mp.log(mp.exp(x) + mp.exp(y))),
        (-100.0, 100.0), (-100.0, 100.0))  # fmt: skip
    add("special", "numpy.logaddexp2",
        _wide(lambda x, y: mp.log(mp.power(2, x) + mp.power(2, y), 2)),
        (-100.0, 100.0), (-100.0, 100.0))  # fmt: skip

    sp = "scipy.special."
    few: dict[str, Any] = {"share": 8}
    add("special", sp + "erf", mp.erf, (-9.0, 9.0))
    add("special", sp + "erfc", mp.erfc, (-9.0, 26.0))
    add("special", sp + "erfinv", _wide(mp.erfinv, 300), unit, share=8)
    add(
        "special", sp + "erfcx", _wide(lambda x: mp.exp(x * x) * mp.erfc(x)), (-9.0, 100.0), share=4
    )
    add("special", sp + "ndtr", lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, (-37.0, 9.0))
    add("special", sp + "log_ndtr", _wide(_log_ndtr), (-1e5, 9.0), share=4)
    add("special", sp + "ndtri", _ndtri, (1e-30, 1.0), **few)
    add("special", sp + "gamma", mp.gamma, (-30.0, 170.0))
    add("special", sp + "gammaln", lambda x: mp.re(mp.loggamma(x)), plus, spots=(1.0, 2.0))
    add("special", sp + "digamma", mp.digamma, plus, spots=(1.4616321449683623,))
    add("special", sp + "polygamma", lambda n, x: mp.polygamma(int(n), x), (1.0, 6.0), (0.01, 1e4),
        whole=True, **few)  # fmt: skip
    add("special", sp + "zeta", lambda x, q: mp.zeta(x, q), (1.0, 30.0), (0.01, 1e3), **few)
    add("special", sp + "beta", _wide(mp.beta), (0.01, 100.0), (0.01, 100.0), **few)
    add("special", sp + "betaln", _wide(lambda a, b: mp.log(mp.beta(a, b))),
        (0.01, 1e4), (0.01, 1e4), **few)  # fmt: skip
    add("special", sp + "gammainc", lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        (0.01, 200.0), (0.01, 200.0), **few)  # fmt: skip
    add("special", sp + "gammaincc", lambda a, x: mp.gammainc(a, x, regularized=True),
        (0.01, 200.0), (0.01, 200.0), **few)  # fmt: skip
    add("special", sp + "betainc", lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        (0.1, 30.0), (0.1, 30.0), inner, share=16)  # fmt: skip
    add("special", sp + "i0", lambda x: mp.besseli(0, x), (-80.0, 80.0), **few)
    add("special", sp + "i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), (-1e3, 1e3), **few)
    add("special", sp + "i1", lambda x: mp.besseli(1, x), (-80.0, 80.0), **few)
    add("special", sp + "i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (-1e3, 1e3), **few)
    add("special", sp + "exp1", mp.e1, (0.0, 80.0), hangs=True, **few)
    add("special", sp + "expi", lambda x: mp.re(mp.ei(x)), (-80.0, 80.0),
        hangs=True,
        spots=(0.3725074107813666,), **few)  # fmt: skip
    add("special", sp + "expn", lambda n, x: mp.expint(int(n), x), (1.0, 9.0), (0.01, 80.0),
        hangs=True, whole=True, **few)  # fmt: skip
    add("special", sp + "dawsn",
        _wide(lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), 4000),
        (-20.0, 20.0), **few)  # fmt: skip
    add("special", sp + "spence", lambda x: mp.re(mp.polylog(2, 1 - x)), (0.0, 100.0),
        spots=(1.0,), **few)  # fmt: skip
    add("special", sp + "hyp1f1", _wide(mp.hyp1f1), (0.1, 10.0), (0.1, 10.0), (0.0, 20.0), share=16)
    add("special", sp + "poch", _wide(mp.rf), (0.1, 50.0), (0.0, 20.0), **few)
    add("special", sp + "logit", _wide(lambda x: mp.log(x / (1 - x))), inner, spots=(0.5,))
    add("special", sp + "entr", lambda x: -x * mp.log(x), plus, spots=(1.0,))
    add("special", sp + "xlogy", lambda x, y: x * mp.log(y), (-1e5, 1e5), plus)
    add(
        "special",
        sp + "xlog1py",
        _wide(lambda x, y: x * mp.log1p(y), 1200),
        (-1e5, 1e5),
        (-1.0, MAX),
    )
    return e


def _ordered(x: float, dtype: Any) -> int:
    """The place of a number among all of its dtype."""
    bits = np.asarray(x, dtype).view(f"i{np.dtype(dtype).itemsize}").item()
    return bits if bits >= 0 else -(bits & (2 ** (np.dtype(dtype).itemsize * 8 - 1) - 1))


def points(case: Case, dtype: Any, n: int) -> list[np.ndarray]:
    """Arguments inside a case's domain: half of them spread over all magnitudes."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    info = np.finfo(dtype)
    arguments = []
    for k, (low, high) in enumerate(case.domains):
        low, high = max(low, -float(info.max) / 2), min(high, float(info.max) / 2)
        a, b = _ordered(low, dtype), _ordered(high, dtype)
        signed = rng.integers(a, b, n // 2, endpoint=True)
        magnitudes = np.abs(signed).astype(f"i{info.dtype.itemsize}").view(dtype)
        spread = np.where(signed < 0, -magnitudes, magnitudes)
        left, right = max(low, -1e3), min(high, 1e3)
        parts = [spread, rng.uniform(left, right, n - n // 2 - 8).astype(dtype)]
        near = case.spots if k == len(case.domains) - 1 and case.spots else ((left + right) / 2,)
        parts.append(np.resize(near, 8) * (1 + rng.standard_normal(8) * 10.0 ** -np.arange(1, 9)))
        x = np.concatenate(parts).astype(dtype)
        if case.whole and k == 0:
            x = np.floor(x)
        x = np.clip(x, low, high)
        arguments.append(np.where(np.abs(x) < info.tiny, info.tiny * 3, x).astype(dtype))
    for x in arguments[1:]:
        rng.shuffle(x)
    return arguments


def exact_values(case: Case, xs: Sequence[np.ndarray]) -> list[Any]:
    """What a function should give, to more digits than any dtype has; None where that fails."""
    mp = _mp()
    found = []
    with mp.workprec(140):
        for at in zip(*(x.tolist() for x in xs)):
            try:
                value = case.exact(*map(mp.mpf, at))
                found.append(value if mp.isfinite(value) and mp.im(value) == 0 else None)
            except (ValueError, ZeroDivisionError, OverflowError, mp.NoConvergence):
                found.append(None)
    return found


def worst(got: np.ndarray, exact: Iterable[Any], dtype: Any) -> float:
    """The largest error in ulp, where the exact value is a normal number."""
    mp, info = _mp(), np.finfo(dtype)
    tiny, top = mp.mpf(float(info.tiny)), mp.mpf(float(info.max))
    most = 0.0
    for g, e in zip(got.tolist(), exact):
        if e is None or not tiny <= abs(e) < top:
            continue
        if not math.isfinite(g):
            return math.inf
        ulp = mp.ldexp(1, mp.frexp(e)[1] - 1 - info.nmant)
        most = max(most, float(abs(mp.mpf(g) - e) / ulp))
    return most


def _function(library: str, name: str) -> Callable[..., Any] | None:
    module, _, last = f"{library}.{name}".strip(".").rpartition(".")
    return getattr(importlib.import_module(module), last, None) if module else None


def errors(case: Case, dtype: Any, n: int, jax: bool = True) -> dict[str, float]:
    """The largest errors of the libraries that have a function."""
    xs = points(case, dtype, max(24, n // case.share))
    exact = exact_values(case, xs)
    given = [x.astype(np.int32) if case.whole and k == 0 else x for k, x in enumerate(xs)]
    found = {}
    for library in ("accnp", "jax") if jax and not case.hangs else ("accnp",):
        module = importlib.import_module(library)
        with module.enable_x64(np.dtype(dtype) == np.float64):
            function = _function(library, case.name)
            assert function is not None, case.name
            got = np.asarray(module.jit(function)(*given))
        found[library] = worst(got, exact, dtype)
    peer = _function("", case.peer) if case.peer else None
    if peer is not None:
        with np.errstate(all="ignore"):
            found["peer"] = worst(np.asarray(peer(*given)).astype(dtype), exact, dtype)
    return found


def bar(case: Case, found: dict[str, float]) -> float:
    """What is allowed: 2 ulp, or 4 for special functions, or SciPy's own error there."""
    return max(BAR[case.kind], found.get("peer", 0.0) if case.kind == "special" else 0.0)


def _shown(x: float | None) -> str:
    if x is None:
        return "–"
    return (
        f"{x:.2g}" if x < 10 else "inf" if math.isinf(x) else f"{x:.0f}" if x < 1e6 else f"{x:.0e}"
    )


def _where(case: Case) -> str:
    def one(domain: Domain) -> str:
        low, high = ("max" if b == MAX else "−max" if b == -MAX else f"{b:g}" for b in domain)
        return f"{low} to {high}"

    return "; ".join(map(one, case.domains))


HEAD = """# Accuracy

The largest error of each elementary and special function against mpmath, in units of the last
place of the exact value; written by `python -m benchmarks.accuracy`. {n} arguments for each
function and dtype (a fraction of that where mpmath takes long), half of them spread over all
magnitudes of the domain, half evenly over its part within ±1000, some beside zeros of the function;
arguments and results are normal numbers. "peer" is NumPy or SciPy, same dtype. Allowed: 2 ulp,
for special functions 4 or SciPy's own error; sums and quotients of several functions (`sinc`,
`logaddexp`) count as special. A dash: there is no such function, or it does not come back.
`tests/test_accuracy.py` samples the same.

| function | domain | accnp f32 | jax | peer | accnp f64 | jax | peer | |
|---|---|---|---|---|---|---|---|---|
"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--only", default="", help="rows whose name has this text; nothing is written"
    )
    parser.add_argument("-n", type=int, default=4000, help="arguments for each function")
    options = parser.parse_args(argv)
    rows = []
    for case in cases():
        if options.only not in case.name:
            continue
        both = [errors(case, dtype, options.n) for dtype in (np.float32, np.float64)]
        cells = [_shown(f.get(who)) for f in both for who in ("accnp", "jax", "peer")]
        over = ", ".join(t for t, f in zip(("f32", "f64"), both) if f["accnp"] > bar(case, f))
        name = case.name.removeprefix("numpy.")
        rows.append(
            f"| {name} | {_where(case)} | {' | '.join(cells)} | {over and 'over: ' + over} |"
        )
        print(rows[-1], flush=True)
    if not options.only:
        DOCUMENT.write_text(HEAD.format(n=options.n) + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
