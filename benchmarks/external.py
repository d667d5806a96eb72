"""Measure cases that were once slow against their bars: ratios to JAX, or to the faster of NumPy
and JAX.

`python -m benchmarks.external [--only PATTERN ...] [--runs 3] [--rounds 15] [--threads N]`. Each
run calls accnp and its peers in turn, in one process, as `harness.paced` does, and compares the
fastest sample of each. The exit status is 1 if the median of the runs misses a bar, or if a result
differs from the peers'.
"""

import argparse
import collections
import fnmatch
import importlib
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import simulations, sweeps
from benchmarks.harness import paced, use_cpus

SECONDS = 1.5  # that a run of a case takes, about
# A module with the API of jax in; a function of no arguments that computes and waits out.
Program = Callable[[Any], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """A program, its largest allowed ratio, and optionally the same computation in NumPy."""

    name: str
    bar: float
    program: Program
    numpy: Callable[[], Any] | None = None


def _values(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def _compile_call(m: Any, function: Callable[..., Any], *arrays: np.ndarray) -> Callable[[], Any]:
    call = m.jit(function)
    places = [m.numpy.asarray(x) for x in arrays]
    return lambda: m.block_until_ready(call(*places))


def _search(rows: int, length: int, **options: Any) -> Program:
    a = np.sort(_values(rows, length), axis=1)
    v = _values(rows, length)[:, ::-1].copy()
    return lambda m: _compile_call(
        m, m.vmap(lambda a, v: m.numpy.searchsorted(a, v, **options)), a, v
    )


def _batched_search(make: Callable[[Any], Callable[..., Any]]) -> Program:
    """Return a function of a sorted and an unsorted row of 8000 elements, batched over
    three rows."""
    a, v = np.sort(_values(3, 8000), axis=1), _values(3, 8000)[:, ::-1].copy()
    return lambda m: _compile_call(m, m.vmap(make(m)), a, v)


def _searches() -> Iterator[Case]:
    for rows, length in ((4, 1000), (4, 10000), (2, 20000), (2, 60000)):
        yield Case(f"searchsorted {rows}x{length}", 1.0, _search(rows, length))
    yield Case("searchsorted right 3x8000", 1.0, _search(3, 8000, side="right"))
    kinds: dict[str, Callable[[Any], Callable[..., Any]]] = {
        "digitize": lambda m: lambda a, v: m.numpy.digitize(v, a),
        "interp": lambda m: lambda a, v: m.numpy.interp(v, a, a * 2),
        "histogram": lambda m: lambda a, v: m.numpy.histogram(v, bins=a)[0],
        "nonzero": lambda m: lambda a, v: m.numpy.nonzero(v > 0, size=5000)[0],
        "choice": lambda m: (
            lambda a, v: m.random.choice(m.random.key(0), 8000, (8000,), p=m.nn.softmax(v))
        ),
        "intersect1d": lambda m: lambda a, v: m.numpy.intersect1d(a, v, size=8000),
        "unique": lambda m: lambda a, v: m.numpy.unique(v, size=8000),
    }
    for name, make in kinds.items():
        yield Case(f"{name} 3x8000", 1.0, _batched_search(make))


def _determinants() -> Iterator[Case]:
    for n in (1, 2, 3, 4, 5, 8):
        x = _values(500, n, n)
        yield Case(
            f"vmap(grad(det)) {n}x{n}",
            1.0,
            lambda m, x=x: _compile_call(m, m.vmap(m.grad(m.numpy.linalg.det)), x),
        )

    def loop(m: Any) -> Callable[[], Any]:
        def f(x: Any) -> Any:
            step = lambda i, s: s + m.numpy.linalg.det(x + s * 1e-3)  # noqa: E731
            return m.lax.fori_loop(0, 200, step, m.numpy.float32(0))

        x = 0.1 * _values(4, 4)
        return _compile_call(m, lambda x: m.jvp(f, (x,), (m.numpy.ones_like(x),))[1], x)

    yield Case("jvp of loop of det 4x4", 1.0, loop)
    for n in (4, 8):
        x = _values(n, n)
        name = f"hessian(det) {n}x{n}"
        yield Case(name, 1.0, lambda m, x=x: _compile_call(m, m.hessian(m.numpy.linalg.det), x))


def _loop(bar: float, name: str, x: np.ndarray, step: Callable[..., Any]) -> Case:
    """Return a loop of 50 steps over one array."""

    def program(m: Any) -> Callable[[], Any]:
        return _compile_call(m, lambda f: m.lax.fori_loop(0, 50, lambda i, f: step(m, i, f), f), x)

    return Case(name, bar, program)


def _updates() -> Iterator[Case]:
    box, square = _values(160, 60, 9), _values(300, 300)
    yield _loop(0.8, "set view of box", box, lambda m, i, f: f.at[-1, :, 3].set(f[-2, :, 3]))
    yield _loop(0.8, "set row", square, lambda m, i, f: f.at[0].set(f[1]))
    yield _loop(0.8, "set row i", square, lambda m, i, f: f.at[i].set(f[i + 1]))
    yield _loop(0.8, "set column", square, lambda m, i, f: f.at[:, 0].set(f[:, 1]))
    yield _loop(0.8, "set column i", square, lambda m, i, f: f.at[:, i].set(f[:, i + 1]))
    yield _loop(0.8, "add row", square, lambda m, i, f: f.at[i].add(f[i + 1]))
    yield _loop(
        0.8,
        "dynamic_update_slice row",
        square,
        lambda m, i, f: m.lax.dynamic_update_slice(
            f, m.lax.dynamic_slice(f, (i + 1, 0), (1, 300)), (i, 0)
        ),
    )


def _gathers() -> Iterator[Case]:
    p = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
    wide, image = _values(100000, 9), _values(1000000, 3)
    yield Case("x[:, p]", 1.0, lambda m: _compile_call(m, lambda x: x[:, p], wide))
    yield Case("x[:, ::-1]", 1.0, lambda m: _compile_call(m, lambda x: x[:, ::-1], image))
    swapped, pixels = np.array([2, 1, 0]), (255 * abs(image)).astype(np.uint8)
    yield Case("x[:, [2, 1, 0]]", 1.0, lambda m: _compile_call(m, lambda x: x[:, swapped], image))
    yield Case(
        "the same of uint8", 1.0, lambda m: _compile_call(m, lambda x: x[:, swapped], pixels)
    )
    few, order = _values(500000, 4), np.array([0, 3, 1, 2])
    yield Case("x[:, [0, 3, 1, 2]]", 1.0, lambda m: _compile_call(m, lambda x: x[:, order], few))
    yield _loop(1.0, "x[..., p] * c in loop", _values(160, 60, 9), lambda m, i, f: f[..., p] * 0.99)


def _sparse() -> Iterator[Case]:
    for rows in (1000, 20000):
        each = 16
        rng = np.random.default_rng(0)
        data = _values(rows * each, dtype="float64")
        columns = rng.integers(0, rows, rows * each)
        places, x = np.repeat(np.arange(rows), each), _values(rows, dtype="float64")

        def summed(m: Any, data=data, columns=columns, places=places, x=x, rows=rows) -> Any:
            return _compile_call(
                m,
                lambda d, c, r, x: m.ops.segment_sum(d * x[c], r, num_segments=rows),
                data, columns, places, x,
            )  # fmt: skip

        def added(m: Any, data=data, columns=columns, places=places, x=x) -> Any:
            return _compile_call(
                m,
                lambda d, c, r, x: m.numpy.zeros_like(x).at[r].add(d * x[c]),
                data, columns, places, x,
            )  # fmt: skip

        def plain(data=data, columns=columns, x=x, each=each) -> Any:
            return np.add.reduceat(data * x[columns], np.arange(0, data.size, each))

        yield Case(f"sparse segment_sum {rows}", 1.05, summed, plain)
        yield Case(f"sparse at.add {rows}", 1.05, added, plain)


def _products() -> Iterator[Case]:
    for n in (800, 1000):
        x = _values(n, n, dtype="float64") / np.sqrt(n)
        yield Case(
            f"x @ x @ x {n}",
            1.05,
            lambda m, x=x: _compile_call(m, lambda x: x @ x @ x, x),
            lambda x=x: x @ x @ x,
        )


def _iteration() -> Iterator[Case]:
    x = _values(100000)

    def program(m: Any) -> Callable[[], Any]:
        values = m.numpy.asarray(x)

        def walk() -> Any:
            return m.block_until_ready(collections.deque(values, maxlen=1)[0])

        return walk

    yield Case("iterate over 1e5 elements", 0.5, program)


def _adi(u: np.ndarray, m: Any, set_: Callable[..., Any], loop: Callable[..., Any]) -> Any:
    """Return three steps of an alternating-direction-implicit solver of u_t = u_xx + 2 u_yy."""
    n = len(u)
    across, along = 2.0 * n * n / 3, 1.0 * n * n / 3
    a, b, d, e = -across / 2, 1 + across, -along / 2, 1 + along
    zeros = m.zeros_like(u)

    def sweep(u: Any, p: Any, q: Any, a: float, b: float, d: float, take: Any) -> tuple[Any, Any]:
        def forth(j: Any, s: tuple[Any, Any]) -> tuple[Any, Any]:
            p, q = s
            below = a * p[1:-1, j - 1] + b
            right = -d * take(u, j, 0) + (1 + 2 * d) * take(u, j, 1) - d * take(u, j, 2)
            q = set_(q, (slice(1, -1), j), (right - a * q[1:-1, j - 1]) / below)
            return set_(p, (slice(1, -1), j), -a / below), q

        return loop(1, n - 1, forth, (p, q))

    def row(u: Any, j: Any, k: int) -> Any:
        return u[j, k : n - 2 + k]

    def column(v: Any, j: Any, k: int) -> Any:
        return v[k : n - 2 + k, j]

    def step(_: Any, s: tuple[Any, ...]) -> tuple[Any, ...]:
        u, v, p, q = s
        v = set_(v, (0, slice(1, -1)), 1.0)
        p, q = set_(p, (slice(1, -1), 0), 0.0), set_(q, (slice(1, -1), 0), 1.0)
        p, q = sweep(u, p, q, a, b, d, row)
        v = set_(v, (n - 1, slice(1, -1)), 1.0)

        def down(k: Any, v: Any) -> Any:
            j = n - 2 - k
            return set_(v, (j, slice(1, -1)), p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j])

        v = loop(0, n - 2, down, v)
        u = set_(u, (slice(1, -1), 0), 1.0)
        p, q = set_(p, (slice(1, -1), 0), 0.0), set_(q, (slice(1, -1), 0), 1.0)
        p, q = sweep(v, p, q, d, e, a, column)
        u = set_(u, (slice(1, -1), n - 1), 1.0)

        def back(k: Any, u: Any) -> Any:
            j = n - 2 - k
            return set_(u, (slice(1, -1), j), p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j])

        return loop(0, n - 2, back, u), v, p, q

    return loop(0, 3, step, (u, zeros, zeros + 0, zeros + 0))[0]


def _solvers() -> Iterator[Case]:
    u = _values(100, 100, dtype="float64")

    def traced(m: Any) -> Callable[[], Any]:
        update = lambda x, key, value: x.at[key].set(value)  # noqa: E731
        return _compile_call(m, lambda u: _adi(u, m.numpy, update, m.lax.fori_loop), u)

    def plain() -> Any:
        def update(x: Any, key: Any, value: Any) -> Any:
            x[key] = value
            return x

        def loop(low: int, high: int, body: Callable[..., Any], s: Any) -> Any:
            for i in range(low, high):
                s = body(i, s)
            return s

        return _adi(u.copy(), np, update, loop)

    yield Case("alternating directions 100x100", 1.05, traced, plain)


def _masked_cases() -> Iterator[Case]:
    def fill(m: Any) -> Callable[..., Any]:
        def step(c: tuple[Any, Any]) -> tuple[Any, Any]:
            return c[0] + 1, c[1].at[c[0]].set(1.0)

        return m.vmap(lambda i, x: m.lax.while_loop(lambda c: c[0] < x.size, step, (i, x))[1])

    for rows, n in ((1, 20000), (4, 5000)):
        first, x = np.arange(rows, dtype=np.int32), np.zeros((rows, n), np.float32)
        yield Case(
            f"vmap of while_loop {rows}x{n}",
            1.0,
            lambda m, first=first, x=x: _compile_call(m, fill(m), first, x),
        )


def _systems() -> Iterator[Case]:
    for n in (500, 2000, 5000):
        program, plain = simulations.triangular(n)
        yield Case(f"triangular solve in loop {n}", 1.05, program, plain)
    for name, unrolled in (("contour integral, loop", True), ("contour integral, vmap", False)):
        program, plain = simulations.contour(unrolled)
        yield Case(name, 1.05, program, plain)


def _simulations() -> Iterator[Case]:
    for steps in (1, 20):
        yield Case(f"Lennard-Jones pairs, {steps}", 1.0, simulations.all_pairs(steps))
        yield Case(f"Lennard-Jones lists, {steps}", 1.0, simulations.neighbor_lists(steps))
    yield Case("variational Monte Carlo", 1.0, simulations.electrons)
    yield Case("the same of spins", 1.0, simulations.spins)
    yield Case("neuron", 1.0, simulations.neuron(gradient=False))
    yield Case("gradient of neuron", 1.0, simulations.neuron(gradient=True))
    yield Case("adjoint equation", 1.0, simulations.adjoint())


def _sweeps() -> Iterator[Case]:
    for name, bar, make, arrays in sweeps.CASES:
        yield Case(name, bar, lambda m, f=make, x=arrays: _compile_call(m, f(m), *x))


def cases() -> list[Case]:
    """Return all cases, in the order of the table."""
    groups = (
        _iteration, _searches, _determinants, _updates, _gathers, _sparse, _solvers, _masked_cases,
        _products, _systems, _simulations, _sweeps,
    )  # fmt: skip
    return [case for group in groups for case in group()]


def measure(case: Case, runs: int, rounds: int) -> tuple[list[float], bool]:
    """Return the ratio of each run, and whether the results agree with JAX's."""
    accnp, jax = importlib.import_module("accnp"), importlib.import_module("jax")
    calls = {"accnp": case.program(accnp), "jax": case.program(jax)}
    ours, theirs = np.asarray(calls["accnp"]()), np.asarray(calls["jax"]())
    agree = ours.shape == theirs.shape and np.allclose(
        ours, theirs, rtol=2e-3, atol=2e-3 * (1.0 + float(np.abs(theirs).max())), equal_nan=True
    )
    if case.numpy:
        calls["numpy"] = case.numpy
    ratios = []
    for _ in range(runs):
        best = {name: timing.best for name, timing in paced(calls, rounds, SECONDS).items()}
        ratios.append(best.pop("accnp") / min(best.values()))
    return ratios, bool(agree)


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if a case misses its bar, fails, or gives a different result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, help="CPUs for every library; all if absent")
    options = parser.parse_args(argv)
    use_cpus(options.threads)
    for name in ("accnp", "jax"):
        importlib.import_module(name).config.update("jax_enable_x64", True)
    missed = 0
    print(f"{'case':32} {'bar':>5}  ratios")
    for case in cases():
        if not any(fnmatch.fnmatch(case.name, f"*{pattern}*") for pattern in options.only):
            continue
        try:
            ratios, agree = measure(case, options.runs, options.rounds)
        except Exception as error:  # a case that fails must not hide the others
            missed += 1
            print(f"{case.name:32} {case.bar:5.2f}  {type(error).__name__}: {error}", flush=True)
            continue
        remark = "" if agree else "  differs"
        if statistics.median(ratios) > case.bar:
            remark += "  misses"
        missed += bool(remark)
        row = " ".join(f"{ratio:6.2f}" for ratio in ratios)
        print(f"{case.name:32} {case.bar:5.2f}  {row}{remark}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
