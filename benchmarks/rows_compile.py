"""Measure the time until a program runs: tracing and compiling graphs of 1 to 1000 operations,
second processes, new shapes, and the import.

The process is warm (it has compiled other kernels), the disk cache is off and no kernel of the
graph is cached. In the rows about second processes, both libraries have their disk caches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import accnp
import accnp.numpy as anp
from accnp.compiler import kernel_cache
from accnp.config import cache_dir
from benchmarks.harness import Row, Timing, fresh_process, interleave, row
from benchmarks.rows import OURS, THEIRS, processes

Graph = Callable[[Any, int, int], Callable[[Any], Any]]


def chain(m: Any, n: int, start: int) -> Callable[[Any], Any]:
    """Return n elementwise operations, a fifth of them `tanh`."""

    def f(x: Any) -> Any:
        y = x
        for k in range(start, start + n):
            if k % 5 == 0:
                y = m.numpy.tanh(y)
            elif k % 5 == 1:
                y = y + x
            elif k % 5 == 2:
                y = y * 0.9
            elif k % 5 == 3:
                y = m.numpy.maximum(y, x)
            else:
                y = y - x
        return y

    return f


def mixed(m: Any, n: int, start: int) -> Callable[[Any], Any]:
    """Return about n operations: matrix products, sums along either axis, and elementwise
    operations."""

    def f(x: Any) -> Any:
        y = x
        for k in range(start, start + (n + 1) // 2):
            if k % 5 == 0:
                y = m.numpy.tanh(y)
            elif k % 5 == 1:
                y = y @ x * 0.1
            elif k % 5 == 2:
                y = y - y.mean(axis=1, keepdims=True)
            elif k % 5 == 3:
                y = m.numpy.maximum(y, x) + x
            else:
                y = y + y.sum(axis=0) * 0.1
        return y

    return f


def gradient_of(graph: Graph) -> Graph:
    """Return the gradient of the sum of a graph."""
    return lambda m, n, start: m.grad(lambda x: graph(m, n, start)(x).sum())


# Long chains of elementwise operations take JAX a quarter of a minute to differentiate.
GRAPHS: dict[str, tuple[str, Graph, tuple[int, ...]]] = {
    "chain": ("elementwise operations", chain, (1, 10, 100, 1000)),
    "mixed": ("mixed operations", mixed, (1, 10, 100, 1000)),
    "gradient-chain": ("elementwise operations, gradient", gradient_of(chain), (1, 10, 100)),
    "gradient-mixed": ("mixed operations, gradient", gradient_of(mixed), (1, 10, 100, 1000)),
}


def forget() -> None:
    """Remove the kernels of all graphs from the caches, but not those of the library."""
    for key in [key for key in kernel_cache._kernels if key[1] == "kernel"]:
        del kernel_cache._kernels[key]


def graphs(name: str, rounds: int) -> list[Row]:
    title, graph, sizes = GRAPHS[name]
    data = np.random.default_rng(0).standard_normal((32, 32), np.float32) * np.float32(0.3)
    inputs = {"ours": anp.asarray(data), "JAX": jnp.asarray(data)}
    libraries = {"ours": accnp, "JAX": jax}
    rows, last = [], None
    with cache_dir(""):
        _check(graph, inputs)
        for n in sizes:
            timings = {"ours": Timing(), "JAX": Timing()}
            for k in range(min(rounds, 2 if n == 1000 else 5)):
                for key, library in sorted(libraries.items(), reverse=bool(k % 2)):
                    forget()
                    f, x = library.jit(graph(library, n, k)), inputs[key]
                    begin = perf_counter()
                    library.block_until_ready(f(x))
                    timings[key].seconds.append(perf_counter() - begin)
                    kernel_cache.wait_for_background()  # the other one has the processors to itself
            ours = timings["ours"].median
            growth = "" if last is None else f"{ours / last[1]:.2g} x that of {last[0]}"
            linear = last is None or ours / last[1] <= 1.2 * n / last[0]
            work = f"trace and compile, {n} {title}"
            rows.append(row(work, 0.8, timings, "ours", "JAX", note=growth, extra_ok=linear))
            last = n, ours
    return rows


def _check(graph: Graph, inputs: dict[str, Any]) -> None:
    """Check that both libraries compute the same, which also warms up the process."""
    ours, theirs = (
        np.asarray(m.jit(graph(m, 7, 3))(inputs[key])) for key, m in (("ours", accnp), ("JAX", jax))
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


_SECOND = """
from time import perf_counter as now
t = now()
{library}
{definition}
x = {arguments}
result = jax.block_until_ready(jax.jit(f)(x))
seconds = now() - t
import numpy as np
np.testing.assert_allclose(np.asarray(result), {expected}, rtol=1e-4, atol=1e-5)
print(seconds)
"""
_SELU = """
def f(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)
"""
_NETWORK = """
def f(x):
    for _ in range(3):
        x = jax.nn.relu(x @ x.T + x.mean(0))
        x = x / jnp.sqrt((x * x).sum(1, keepdims=True) + 1.0)
    return x.sum()
"""
SECOND = {
    "selu": (_SELU, "jnp.arange(1000000.0)", "1.05 * np.arange(1000000.0)"),
    "network": (_NETWORK, "jnp.ones((64, 64))", "508.79574"),
}


def second_process(name: str, rounds: int) -> list[Row]:
    """Time a process from its start to its first result, with all kernels on disk."""
    definition, arguments, expected = SECOND[name]
    ours, theirs = (
        _SECOND.format(library=lib, definition=definition, arguments=arguments, expected=expected)
        for lib in (OURS, THEIRS)
    )
    with tempfile.TemporaryDirectory() as cache:
        timings = processes(
            ours,
            theirs,
            rounds,
            ACCNP_CACHE_DIR=cache,
            JAX_COMPILATION_CACHE_DIR=f"{cache}/jax",
            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
            JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
        )
    return [row(f"second process, {name}", 0.3, timings, "ours", "JAX")]


def import_time(rounds: int) -> list[Row]:
    """Compare `import accnp` with `import numpy` and with 80 ms."""
    code = "from time import perf_counter as now; t = now(); import {}; print(now() - t{})"
    timings = {"ours": Timing(), "NumPy": Timing()}
    for index in range(rounds + 1):
        ours, theirs = (
            fresh_process(code.format(*x)) for x in (("accnp", ""), ("numpy", " + 0.08"))
        )
        if index:  # the first wrote byte code
            timings["ours"].seconds.append(ours)
            timings["NumPy"].seconds.append(theirs)
    over = 1e3 * (timings["ours"].median - timings["NumPy"].median) + 80
    note = f"{over:.0f} ms beyond NumPy's"
    return [row("import, against NumPy's and 80 ms", 1.0, timings, "ours", "NumPy", note=note)]


def new_shapes(name: str, rounds: int) -> list[Row]:
    """Time calls of a compiled function with new shapes, for which nothing is compiled."""
    graph = {
        "formula": lambda m: lambda x: m.numpy.tanh(x) * x + 1.0,
        "rows": lambda m: lambda x: m.nn.softmax(x) @ x.T,
    }[name]
    f, g = accnp.jit(graph(accnp)), jax.jit(graph(jax))
    data = [
        np.random.default_rng(n).standard_normal((40 + n, 50 + n), np.float32)
        for n in range(rounds + 1)
    ]
    np.testing.assert_allclose(np.asarray(f(data[0])), np.asarray(g(data[0])), rtol=1e-3, atol=1e-4)
    ours, theirs = (iter([m.asarray(x) for x in data[1:]]) for m in (anp, jnp))
    before = accnp.counters()["compiles"]
    calls = {
        "ours": lambda: f(next(ours)).block_until_ready(),
        "JAX": lambda: g(next(theirs)).block_until_ready(),
    }
    timings = interleave(calls, rounds, warm=0)
    compiles = accnp.counters()["compiles"] - before
    note = f"{compiles} compiles in {rounds} shapes"
    return [
        row(f"a new shape, {name}", 0.05, timings, "ours", "JAX", note=note, extra_ok=not compiles)
    ]


ROWS: dict[str, Callable[[int], list[Row]]] = {
    **{f"graph-{name}": partial(graphs, name) for name in GRAPHS},
    **{f"second-{name}": partial(second_process, name) for name in SECOND},
    **{f"shape-{name}": partial(new_shapes, name) for name in ("formula", "rows")},
    "import-numpy": import_time,
}
PROCESS_ROWS = {"import-numpy", *[name for name in ROWS if name.startswith("second-")]}
