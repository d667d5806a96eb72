"""`python -m accnp bench --device gpu`: compare accnp with other libraries on one GPU.

Each library runs in its own process, because libraries do not share the memory of a GPU well, and
the processes take turns. Input: names of libraries and rows. Output: a table of milliseconds per
call. Calls are launched one after the other, and the host waits at the end. The row "launch" is the
time until a call returns to the host.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from accnp.bench.expressions import normal
from accnp.bench.peer_processes import Peer, serve

__all__ = ["LIBRARIES", "ROWS", "Timed", "main"]


@dataclass(frozen=True)
class Work:
    """A function and its arguments, made for a library and a `size` that scales the arguments.

    `moved` returns the bytes that it must read and write, and `share` is the fraction of the
    bandwidth of a copy that it should reach. `only` names the libraries that support it; "fuse"
    supports single elementwise kernels.
    """

    title: str
    make: Callable[[Any, float], tuple[Callable[..., Any], tuple]]
    moved: Callable[..., int] | None = None
    only: tuple[str, ...] = ("accnp", "jax", "torch", "cupy")
    returning: bool = False
    share: float | None = None


def _random_rows(size: float, rows: int, columns: int) -> np.ndarray:
    return normal(0, max(2, int(rows * size)), columns)


def _large(size: float) -> np.ndarray:
    return _random_rows(size, 16384, 2048)


def _bytes_read_and_written(x: np.ndarray, *more: Any) -> int:
    return 2 * x.nbytes


def _chain(m: Any, size: float) -> Any:
    def f(x: Any, y: Any) -> Any:
        return (((x + y) * x - y) * 0.5 + m.numpy.tanh(x)) * y

    return f, (_large(size), _large(size) + 1)


def _black_scholes(m: Any, size: float) -> Any:
    def f(s: Any, k: Any, t: Any) -> Any:
        n = m.numpy
        spread = 0.3 * n.sqrt(t)
        d1 = (n.log(s / k) + (0.02 + 0.045) * t) / spread
        d2 = d1 - spread
        half = 1 / math.sqrt(2)
        return s * 0.5 * (1 + m.erf(d1 * half)) - k * n.exp(-0.02 * t) * 0.5 * (
            1 + m.erf(d2 * half)
        )

    n = max(4, int(size * (1 << 24)))
    rng = np.random.default_rng(0)
    return f, tuple(
        rng.uniform(low, high, n).astype("f4") for low, high in ((10, 50), (10, 50), (1, 2))
    )


def _softmax(m: Any, size: float) -> Any:
    def f(x: Any) -> Any:
        e = m.numpy.exp(x - m.numpy.amax(x, 1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return f, (_random_rows(size, 32768, 1024),)


def _layer_norm(m: Any, size: float) -> Any:
    def f(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(1, keepdims=True)
        spread = (centred * centred).mean(1, keepdims=True)
        return centred / m.numpy.sqrt(spread + 1e-5) * scale + shift

    return f, (_random_rows(size, 32768, 1024), normal(1, 1024), normal(2, 1024))


def _stencil(m: Any, size: float) -> Any:
    def f(x: Any) -> Any:
        return 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])

    n = max(8, int(8192 * math.sqrt(size)))
    return f, (normal(0, n, n),)


def _product(m: Any, size: float) -> Any:
    n = max(8, int(4096 * size))
    return (lambda a, b: a @ b), (normal(0, n, n), normal(1, n, n))


def _descent(m: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return one step of gradient descent for the weights, the arguments after the first."""

    def step(x: Any, *weights: Any) -> Any:
        gradients = m.grad(lambda w: loss(x, *w))(weights)
        return tuple([w - 0.01 * g for w, g in zip(weights, gradients, strict=True)])

    return step


def _mlp(m: Any, size: float) -> Any:
    def loss(x: Any, a: Any, b: Any, c: Any) -> Any:
        h = m.numpy.tanh(m.numpy.tanh(x @ a) @ b) @ c
        return (h * h).mean()

    n = max(8, int(1024 * size))
    weights = (0.05 * normal(1, n, n), 0.05 * normal(2, n, n), 0.05 * normal(3, n, 16))
    return _descent(m, loss), (normal(0, max(8, int(4096 * size)), n), *weights)


def _transformer(m: Any, size: float) -> Any:
    tokens, width = max(8, int(2048 * size)), max(8, int(1024 * size))

    def normed(x: Any) -> Any:
        centred = x - x.mean(1, keepdims=True)
        return centred / m.numpy.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5)

    def loss(x: Any, q: Any, k: Any, v: Any, up: Any, down: Any) -> Any:
        y = normed(x)
        score = (y @ q) @ (y @ k).T / math.sqrt(width)
        e = m.numpy.exp(score - m.numpy.amax(score, 1, keepdims=True))
        x = x + (e / e.sum(1, keepdims=True)) @ (y @ v)
        h = normed(x) @ up
        out = x + (h / (1 + m.numpy.exp(-h))) @ down
        return (out * out).mean()

    square = [0.02 * normal(i, width, width) for i in (1, 2, 3)]
    ends = (0.02 * normal(4, width, 4 * width), 0.02 * normal(5, 4 * width, width))
    return _descent(m, loss), (normal(0, tokens, width), *square, *ends)


def _many_outputs(m: Any, size: float) -> Any:
    def f(*xs: Any) -> Any:
        return tuple([x * 0.9 + 0.1 * m.numpy.tanh(x) for x in xs])

    return f, tuple(normal(i, 64, 64) for i in range(max(2, int(64 * size))))


_TRAINING = ("accnp", "jax", "torch")
_MAPS = ("accnp", "jax", "torch", "cupy", "fuse")

ROWS = {
    "copy": Work("copy inside the GPU, 32M", lambda m, s: (m.copy, (_large(s), 0 * _large(s))),
                 _bytes_read_and_written),
    "chain": Work("chain of 7 operations, 32M", _chain, lambda x, y: 3 * x.nbytes, _MAPS,
                  share=0.9),
    "black-scholes": Work("Black-Scholes, 16M", _black_scholes, lambda s, *_: 4 * s.nbytes, _MAPS,
                          share=0.9),
    "sum": Work("sum, 32M", lambda m, s: (lambda x: x.sum(), (_large(s),)), lambda x: x.nbytes,
                share=0.85),
    "rows": Work("sums of rows, 16384x2048", lambda m, s: (lambda x: x.sum(1), (_large(s),)),
                 lambda x: x.nbytes, share=0.85),
    "columns": Work("sums of columns, 16384x2048", lambda m, s: (lambda x: x.sum(0), (_large(s),)),
                    lambda x: x.nbytes, share=0.85),
    "softmax": Work("softmax of rows, 32768x1024", _softmax, _bytes_read_and_written, share=0.85),
    "layer-norm": Work("layer norm, 32768x1024", _layer_norm, _bytes_read_and_written, share=0.85),
    "stencil": Work("5-point stencil, 8192x8192", _stencil, _bytes_read_and_written, share=0.9),
    "product": Work("matrix product, 4096", _product),
    "mlp": Work("training step of an MLP", _mlp, only=_TRAINING),
    "transformer": Work("training step of a transformer block", _transformer, only=_TRAINING),
    "many": Work("64 small updates", _many_outputs),
    "launch": Work("one small kernel, time to return",
                   lambda m, s: (lambda x: x * 2 + 1, (normal(0, 1000),)), returning=True),
}  # fmt: skip


# --- the functions of each library; `copy` may write to its second argument -----------------------


def _like_jax(name: str) -> Any:
    library: Any = importlib.import_module(name)
    if name == "jax":  # by default it computes matrix products in TF32, which is less work
        library.config.update("jax_default_matmul_precision", "highest")
        # The other processes need memory too.
        os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.4")
    (device, *_) = library.devices("gpu")
    return SimpleNamespace(
        numpy=library.numpy, erf=library.lax.erf, grad=library.grad, compile=library.jit,
        put=lambda x: library.device_put(x, device), wait=library.block_until_ready,
        copy=lambda x, _: library.numpy.copy(x),
    )  # fmt: skip


def _torch() -> Any:
    torch: Any = importlib.import_module("torch")
    return SimpleNamespace(
        numpy=torch, erf=torch.erf, grad=torch.func.grad, compile=torch.compile,
        put=lambda x: torch.from_numpy(x).cuda(), wait=lambda _: torch.cuda.synchronize(),
        copy=lambda x, y: y.copy_(x),
    )  # fmt: skip


def _cupy(fuse: bool = False) -> Any:
    cupy: Any = importlib.import_module("cupy")
    special: Any = importlib.import_module("cupyx.scipy.special")

    def copy(x: Any, y: Any) -> Any:  # on an H200, `x.copy()` takes more than twice as long
        y.data.copy_from_device_async(x.data, x.nbytes)
        return y

    return SimpleNamespace(
        numpy=cupy, erf=special.erf, put=cupy.asarray, copy=copy,
        compile=cupy.fuse if fuse else lambda f: f,
        wait=lambda _: cupy.cuda.Device().synchronize(),
    )  # fmt: skip


LIBRARIES: dict[str, Callable[[], Any]] = {
    "accnp": lambda: _like_jax("accnp"),
    "jax": lambda: _like_jax("jax"),
    "cupy": _cupy,
    "fuse": lambda: _cupy(True),
    "torch": _torch,  # last, because it takes longest to compile
}


SAMPLES = 7
# Seconds: for everything; for compiling, after which rows that are not compiled are omitted; and
# the maximum for a sample.
WHOLE, READY, ONE = 320.0, 100.0, 20.0


class Timed:
    """The calls of one library, which are prepared and then timed sample by sample."""

    def __init__(self, name: str, size: float, seconds: float) -> None:
        self.name, self.size, self.seconds = name, size, seconds
        self.library = LIBRARIES[name]()
        self._calls: dict[str, tuple[Any, list]] = {}
        self._numbers: dict[str, int] = {}

    def ready(self, row: str) -> None:
        """Make the arrays of a row and compile its call."""
        f, arguments = ROWS[row].make(self.library, self.size)
        call, operands = self.library.compile(f), [self.library.put(x) for x in arguments]
        for _ in range(2):
            self.library.wait(call(*operands))
        self._calls[row] = call, operands

    def sample(self, row: str) -> float:
        """Return the seconds per call, over enough calls that the sample takes its share of the
        time."""
        call, operands = self._calls[row]
        start = perf_counter()
        self.library.wait(call(*operands))  # restores caches after the work of other libraries
        if row not in self._numbers:
            start = perf_counter()
            self.library.wait(call(*operands))
            once = max(perf_counter() - start, 1e-6)
            self._numbers[row] = max(1, min(1000, int(self.seconds / SAMPLES / once)))
        number = self._numbers[row]
        start = perf_counter()
        for _ in range(number):
            out = call(*operands)
        returned = perf_counter()
        self.library.wait(out)
        return ((returned if ROWS[row].returning else perf_counter()) - start) / number


def main(
    only: Sequence[str] | None,
    size: float,
    seconds: float,
    path: Path | None = None,
    within: float = WHOLE,
) -> str:
    """Measure every library in its own process, and return the table and the bars.

    The processes compile concurrently and then take turns, row by row and sample by sample, within
    `within` seconds in total. The file `path` gets the results, in seconds, and the time until each
    row was ready.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        return _measure(list(only or ROWS), size, seconds, path, within, empty)


def _measure(
    rows: Sequence[str], size: float, seconds: float, path: Path | None, within: float, empty: str
) -> str:
    """Do the work of `main`, with an empty folder for the kernels of accnp."""
    begin, ready_in = perf_counter(), min(READY, 0.6 * within)
    command = [sys.executable, "-m", "accnp.bench.gpu"]
    peers = {
        name: Peer(
            [*command, name, str(size), str(seconds), str(ready_in), *rows],
            {"ACCNP_CACHE_DIR": empty},
        )
        for name in LIBRARIES
    }
    results: dict[str, dict[str, Any]] = {name: {} for name in peers}
    ready: dict[str, dict[str, float]] = {name: {} for name in peers}
    end = begin + ready_in + min(ONE, 0.1 * within)
    for name, peer in peers.items():
        while (answer := peer.read_answer(end - perf_counter())) is not None and answer[0] != "all":
            row, value = answer
            if isinstance(value, float):
                ready[name][row] = value
            else:
                results[name][row] = value
    end = begin + within
    samples: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        for _ in range(SAMPLES):
            for name in [n for n in peers if row in ready[n] and row not in results[n]]:
                answer = peers[name].ask(row, min(ONE, end - perf_counter()))
                if answer is not None and isinstance(answer[1], float):
                    samples.setdefault((name, row), []).append(answer[1])
                elif answer is not None:  # an error message instead of a time
                    results[name][row] = answer[1]
    lines = []
    for name, peer in peers.items():
        peer.close()
        measured = {r: statistics.median(x) for (n, r), x in samples.items() if n == name}
        results[name] = measured | results[name]
        if not results[name]:
            del results[name]
        if peer.why:
            part = " to the end" if name in results else ""
            lines.append(f"{name}: not measured{part}: {peer.why}")
    if path is not None:
        text = {"size": size, "seconds": results, "ready": ready, "notes": lines}
        path.write_text(json.dumps(text, indent=1))
    cold = cold_lines({name: ready[name] for name in results})
    return "\n".join([*table(rows, results, size), *cold, *lines, *bars(rows, results, size)])


def cold_lines(ready: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a line with the milliseconds that the first calls take in a fresh process.

    It is the sum over the rows that all libraries support. The kernel cache of accnp is empty.
    """
    common = set.intersection(*map(set, ready.values())) if ready else set()
    if not common:
        return []
    title = f"cold: first calls of {len(common)} row{'s' * (len(common) != 1)}"
    times = [sum(of[row] for row in common) for of in ready.values()]
    return [f"{title:<40}" + "".join(f"{1e3 * t:12.4g}" for t in times)]


def _rate(row: str, seconds: float, size: float) -> float:
    """Return the bytes per second that a row moves."""
    moved = ROWS[row].moved
    assert moved is not None
    return moved(*ROWS[row].make(SimpleNamespace(numpy=np, copy=None), size)[1]) / seconds


def bars(rows: Sequence[str], results: dict[str, dict[str, Any]], size: float) -> list[str]:
    """Return a line for each target of accnp on an H200: whether it is met, the value, and the bar.

    Targets without a measurement are omitted.
    """
    known = {
        name: {row: x for row, x in of.items() if isinstance(x, float)}
        for name, of in results.items()
    }
    ours = known.get("accnp", {})
    lines: list[str] = []

    def say(title: str, value: float, bar: float, most: bool) -> None:
        met = value <= bar if most else value >= bar
        sign = "<=" if most else ">="
        lines.append(f"{'met   ' if met else 'MISSED'} {title}: {value:.3f} ({sign} {bar:g})")

    # The fastest copy of all libraries, so that a slow one does not lower the bars.
    copy = min([of["copy"] for of in known.values() if "copy" in of], default=None)
    for row in rows:
        bar = ROWS[row].share
        if copy is not None and bar is not None and row in ours:
            share = _rate(row, ours[row], size) / _rate("copy", copy, size)
            say(f"{ROWS[row].title}, of the copy's bandwidth", share, bar, False)
    for peer in ("jax", "torch"):
        both = [row for row in rows if row in ours and row in known.get(peer, {})]
        times = {row: ours[row] / known[peer][row] for row in both}
        for row, ratio in times.items():
            say(f"{ROWS[row].title}, over {peer}'s time", ratio, 1.05, True)
        if times:
            say(f"geometric mean over {peer}'s", statistics.geometric_mean(times.values()), 1, True)
    for row, peer, bar, title in (
        ("product", "cupy", 1.05, "matrix product, over cuBLAS's time (by CuPy)"),
        ("launch", "jax", 0.8, "cached call of one small kernel, over jax's time on the host"),
    ):
        if row in ours and row in known.get(peer, {}):
            say(title, ours[row] / known[peer][row], bar, True)
    return ["", "bars of an H200:", *lines] if lines else []


def table(rows: Sequence[str], results: dict[str, dict[str, Any]], size: float) -> list[str]:
    """Return the lines of the table: milliseconds by library, and GB/s of accnp if known."""
    lines = ["".join([f"{'work':<40}", *[f"{n:>12}" for n in results], f"{'accnp GB/s':>12}"])]
    for row in rows:
        work = ROWS[row]
        cells = []
        for figures_of in results.values():
            value = figures_of.get(row)
            cells.append(f"{1e3 * value:12.4g}" if isinstance(value, float) else f"{'-':>12}")
        ours = results.get("accnp", {}).get(row)
        rate = ""
        if work.moved is not None and isinstance(ours, float):
            rate = f"{_rate(row, ours, size) / 1e9:12.4g}"
        lines.append(f"{work.title:<40}" + "".join(cells) + rate)
    for name, figures_of in results.items():
        lines += [f"{name}, {r}: {v}" for r, v in figures_of.items() if isinstance(v, str)]
    return lines


if __name__ == "__main__":
    _library, _size, _seconds, _ready, *_asked = sys.argv[1:]
    _timed = Timed(_library, float(_size), float(_seconds))
    _known = [row for row in _asked if _library in ROWS[row].only]
    serve(_timed.ready, _timed.sample, _known, float(_ready))
