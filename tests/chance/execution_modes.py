"""Run a random program in several ways and compare the results.

The input is a kind of check and a seed. The output is None, or a description of the failure with
the shortest program that reproduces it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from chance import tolerances
from chance.programs import NAMESPACE, Program, generate_program
from chance.values import difference, same_bits

import accnp
from accnp.config import threads

RunMode = Callable[[], tuple[Any, ...]]
MINIMIZATION_SECONDS = 12  # seconds for the search of a shorter program


class Failure(NamedTuple):
    """A failure: the way of running the program, what went wrong, and Python source that reproduces
    it.
    """

    way: str
    output: str
    what: str
    text: str = ""


def _copy_values(values: Any) -> list[np.ndarray]:
    return [np.array(v) for v in values]


def _run_by_statement(p: Program, xs: list[np.ndarray]) -> list[Any]:
    """Compute each statement before the next is recorded, so that nothing is fused."""
    scope = {**NAMESPACE, **{f"v{i}": accnp.numpy.asarray(x) for i, x in enumerate(xs)}}
    for line in p.lines:
        scope[line.name] = accnp.block_until_ready(eval(line.text, scope))
    return [scope[name] for name in p.outputs]


def _run_with_deletions(p: Program, xs: list[np.ndarray]) -> tuple[Any, ...]:
    """Run eagerly, and delete variables after their last use. Values are read at random places and
    again at the end, so that buffers which are still needed must not be reused.

    The same choices are repeated several times, because only later plans reuse buffers of operands.
    """
    last = {name: k for k, line in enumerate(p.lines) for name in line.reads}
    runs = []
    for _ in range(3):
        r = random.Random(p.seed)
        scope = {**NAMESPACE, **{f"v{i}": accnp.numpy.array(x) for i, x in enumerate(xs)}}
        seen: dict[str, np.ndarray] = {}
        for k, line in enumerate(p.lines):
            scope[line.name] = eval(line.text, scope)
            for name in sorted({*line.reads, line.name} - {*p.outputs}):
                if last.get(name, 0) <= k and r.random() < 0.8:
                    del scope[name]
            live = [x.name for x in p.lines[: k + 1] if x.name in scope]
            if live and r.random() < 0.3:
                name = r.choice(live)
                seen[name] = np.array(scope[name])
        for name in sorted(seen.keys() & scope.keys()):
            assert same_bits(np.asarray(scope[name]), seen[name]), f"{name} is another value now"
        runs.append(_copy_values(scope[x] for x in r.sample(p.outputs, len(p.outputs))))
        for a, b in zip(runs[-1], runs[0]):
            assert same_bits(a, b), f"another run has other values: {difference(a, b)}"
    return tuple(_copy_values(scope[x] for x in p.outputs))


def _change_layouts(xs: list[np.ndarray]) -> list[np.ndarray]:
    """Return the same arrays with other memory layouts."""
    return [x if x.ndim == 0 else np.asfortranarray(x) if i % 2 else x[::-1].copy()[::-1]
            for i, x in enumerate(xs)]  # fmt: skip


def eager_modes(
    p: Program, xs: list[np.ndarray], r: random.Random
) -> Iterator[tuple[str, RunMode]]:
    """Traced or eager, fused or not, with donated arguments or not: results are bitwise the
    same.
    """
    f, put = p.function(), accnp.numpy.asarray
    g = accnp.jit(f)
    donated = tuple(i for i in range(len(xs)) if r.random() < 0.6)
    yield "jit", lambda: g(*xs)
    yield "jit again", lambda: g(*map(put, xs))
    yield "eager", lambda: f(*map(put, xs))
    yield "by statement", lambda: tuple(_run_by_statement(p, xs))
    yield "by and by", lambda: _run_with_deletions(p, xs)
    yield "eager again", lambda: f(*map(put, _change_layouts(xs)))
    yield "donated", lambda: accnp.jit(f, donate_argnums=donated)(*[put(x.copy()) for x in xs])


def thread_modes(
    p: Program, xs: list[np.ndarray], r: random.Random
) -> Iterator[tuple[str, RunMode]]:
    """With any number of computing and calling threads, results are bitwise the same."""
    f, put = p.function(), accnp.numpy.asarray
    g = accnp.jit(f)

    def with_threads(n: int, f: Callable[..., Any]) -> RunMode:
        def run() -> Any:
            with threads(n):
                return accnp.block_until_ready(f(*map(put, xs)))

        return run

    def side_by_side() -> Any:
        results: list[Any] = [None] * 3
        shared = [put(x) for x in xs]
        wait = threading.Barrier(3)

        def ask(k: int) -> None:
            try:
                with accnp.enable_x64(p.x64):
                    wait.wait()
                    results[k] = _copy_values((g if k else f)(*shared))
            except BaseException as error:
                results[k] = error

        asking = [threading.Thread(target=ask, args=(k,)) for k in range(3)]
        [t.start() for t in asking]
        [t.join() for t in asking]
        for values in results:
            if isinstance(values, BaseException):
                raise values
            for a, b in zip(values, results[0]):
                assert same_bits(a, b), f"host threads saw different values: {difference(a, b)}"
        return results[r.randrange(3)]

    yield "one thread", with_threads(1, g)
    for n in (2, 3, 2):
        yield f"{n} threads", with_threads(n, g)
        yield f"{n} threads, eager", with_threads(n, f)
    yield "host threads side by side", side_by_side


def gpu_modes(p: Program, xs: list[np.ndarray], r: random.Random) -> Iterator[tuple[str, RunMode]]:
    """Compare a GPU with the CPU, except for the differences of `tolerances.py`."""
    gpu = accnp.devices("gpu")[0]
    f, g = p.function(), accnp.jit(p.function())

    def put() -> list[Any]:
        return [accnp.device_put(x, gpu) for x in xs]

    def again() -> Any:
        there = put()
        g(*there)
        result = g(*there)
        for i, (x, y) in enumerate(zip(there, xs)):
            assert same_bits(np.asarray(x), y), f"argument v{i} was changed"
        return result

    def default() -> Any:
        with accnp.default_device(gpu):
            return accnp.block_until_ready(f(*map(accnp.numpy.asarray, xs)))

    donated = tuple(i for i in range(len(xs)) if r.random() < 0.6)
    # Arrays of accnp's: those of NumPy's would be summed by NumPy where f is called as it is.
    plain = accnp.jit(f) if r.random() < 0.6 else f
    yield "processor", lambda: plain(*map(accnp.numpy.asarray, xs))
    yield "jit", lambda: g(*put())
    yield "jit again", again
    yield "eager", lambda: f(*put())
    if r.random() < 0.4:
        yield "default device", default
    else:
        yield "donated", lambda: accnp.jit(f, donate_argnums=donated)(*put())


KINDS = {"eager": eager_modes, "threads": thread_modes, "gpu": gpu_modes}


def find_failures(
    kind: str, p: Program, only: str | None = None, tell: Callable[[str], None] = str
) -> Iterator[Failure]:
    """Yield the failures of each way, or of the way `only`.

    If all ways refuse a program with the same error, this is not a failure, and the error is passed
    to `tell`.
    """
    with accnp.enable_x64(p.x64):
        xs, expected = p.arrays(), None
        for name, way in KINDS[kind](p, xs, random.Random(p.seed)):
            if expected is not None and only not in (None, name):
                continue
            try:
                actual: Any = _copy_values(way())
            except Exception as error:
                notes = " ".join(getattr(error, "__notes__", []))
                actual = f"{type(error).__name__}: {str(error)[:500]} {notes[:300]}"
            if expected is None:
                expected = actual
                if isinstance(expected, str):
                    if not expected.startswith(_REFUSALS):
                        yield Failure(name, p.outputs[0], expected)
                        return
                    tell(expected)
                continue
            if isinstance(expected, str) or isinstance(actual, str):
                if _error_class(actual) != _error_class(expected):
                    error_text = actual if isinstance(actual, str) else "no error"
                    yield Failure(
                        name,
                        p.outputs[0],
                        f"{error_text}, for {_error_class(expected) or 'values'}",
                    )
                continue
            for output, a, b in zip(p.outputs, actual, expected, strict=True):
                if same_bits(a, b) or (
                    kind == "gpu" and tolerances.is_allowed_on_gpu(p, output, a, b)
                ):
                    continue
                yield Failure(name, output, f"{output} {difference(a, b)}")


def _error_class(outcome: Any) -> str:
    """Return the class of an error; an empty text for values."""
    return outcome.partition(":")[0] if isinstance(outcome, str) else ""


_REFUSALS = ("ValueError", "TypeError", "IndexError", "NotImplementedError", "OverflowError")


def check_program(
    kind: str, seed: int, small: bool = False, tell: Callable[[str], None] = str
) -> Failure | None:
    """Run a program in all ways of a kind, and minimize the first failure."""
    p = generate_program(seed, small)
    failure = next(find_failures(kind, p, tell=tell), None)
    if failure is None:
        return None
    return shorten_program(kind, p, failure)


def shorten_program(kind: str, p: Program, failure: Failure) -> Failure:
    """Return the failure for the first statement that fails on its own, with the statements that it
    needs.
    """
    end = time.monotonic() + MINIMIZATION_SECONDS
    least, only = p, failure.way
    for line in p.lines:
        if time.monotonic() > end or "illegal" in failure.what or "CUDA_ERROR" in failure.what:
            break
        cut = p.cut(line.name)
        again = next(find_failures(kind, cut, only), None)
        if again is not None:
            least, failure = cut, again
            break
    return failure._replace(text=f"# {kind}, {failure.way}\n{least.reproducer()}")
