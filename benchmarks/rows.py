"""The main rows of the comparison: each function measures one row or several and returns `Row`s.

The functions take a number of rounds. Work that needs a fresh interpreter is given as source code
into which the names of the library are inserted. The rows of further groups are in
`rows_<group>.py`.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import accnp
import accnp.numpy as anp
from accnp.bench.suite import numexpr_call
from benchmarks.expressions import Expression, rows_of
from benchmarks.harness import Row, Timing, fresh_process, interleave, row
from benchmarks.programs import PROGRAMS

OURS = "import accnp as jax, accnp.numpy as jnp"
THEIRS = "import jax, jax.numpy as jnp"
SELU = """
def selu(x, alpha=1.67, lambda_=1.05):
    return lambda_ * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)
"""


def slow_f(x: Any) -> Any:
    return x * x + x * 2.0


def selu(np_: Any) -> Callable:
    def selu(x: Any, alpha: float = 1.67, lambda_: float = 1.05) -> Any:
        return lambda_ * np_.where(x > 0, x, alpha * np_.exp(x) - alpha)

    return selu


def norm(x: Any) -> Any:
    x = x - x.mean(0)
    return x / x.std(0)


def softmax(np_: Any) -> Callable:
    def softmax(x: Any) -> Any:
        e = np_.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return softmax


def normal(shape: Any) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def call_and_wait(f: Callable, x: Any) -> Callable[[], Any]:
    return lambda: f(x).block_until_ready()


def numpy_call(f: Callable) -> Callable[..., Any]:
    """Return a peer that is only shown in the table: the function on NumPy arrays."""
    return lambda *arguments: partial(f, *arguments)


def check(ours: Any, expected: Any, **tolerance: Any) -> None:
    """Check that the results agree, since a fast but wrong result is worthless."""
    np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), **tolerance)


_POLYNOMIAL = {"numexpr": numexpr_call("x*x + x*two", "x", two=np.float32(2))}
_SELU = {
    "numexpr": numexpr_call(
        "k * where(x > z, x, a * exp(x) - a)",
        "x",
        a=np.float32(1.67),
        k=np.float32(1.05),
        z=np.float32(0),
    )
}
_FORMULA = "x*x + x*2.0, 5000x5000"


def _polynomial(m: Any) -> Any:
    return slow_f, (normal((5000, 5000)),)


def _selu(m: Any) -> Any:
    return selu(m.numpy), (normal(1_000_000),)


EXPRESSIONS = {
    "elementwise": Expression(
        _FORMULA, _polynomial, {"jax": 0.5}, {"numpy": numpy_call(slow_f), **_POLYNOMIAL}
    ),
    "elementwise-eager": Expression(
        _FORMULA, _polynomial, {"jax": 0.5, "jax eager": 0.15}, eager=True
    ),
    "selu": Expression(
        "SELU of 1e6", _selu, {"jax": 0.5}, {"numpy": numpy_call(selu(np)), **_SELU}
    ),
    "selu-eager": Expression("SELU of 1e6", _selu, {"jax": 0.5}, eager=True),
    "norm": Expression(
        "column normalization 10000x10",
        lambda m: (norm, (normal((10_000, 10)),)),
        {"jax": 0.7},
        {"numpy": numpy_call(norm)},
    ),
    "softmax": Expression(
        "softmax over rows of 4096x1024",
        lambda m: (softmax(m.numpy), (normal((4096, 1024)),)),
        {"jax": 0.7},
        {"numpy": numpy_call(softmax(np))},
    ),
    **PROGRAMS,
}


def big_sum(rounds: int) -> list[Row]:
    data = np.random.default_rng(1).random(25_000_000, dtype=np.float32)
    a, j = anp.asarray(data), jnp.asarray(data)
    exact = data.sum(dtype=np.float64)
    ours, numpys = abs(float(anp.sum(a)) - exact), abs(float(data.sum()) - exact)
    calls = {
        "jit": call_and_wait(accnp.jit(anp.sum), a),
        "JAX jit": call_and_wait(jax.jit(jnp.sum), j),
        "numpy": data.sum,
    }
    t = interleave(calls, rounds)
    # One ulp of the float32 result is 1.0: rounding it is free for everybody.
    note, good = f"error {ours:.2g}, NumPy's {numpys:.2g}", bool(ours <= max(numpys, 1.0))
    return [row("sum of 25e6", 1.0, t, "jit", "JAX jit", note=note, extra_ok=good)]


def dispatch(rounds: int) -> list[Row]:
    data = normal(8)
    a, j = anp.asarray(data), jnp.asarray(data)
    calls = {"op": lambda: a + a, "JAX eager": lambda: j + j, "numpy": lambda: data + data}
    t = interleave(calls, 3 * rounds, number=500)
    rows = [row("recording one op on small arrays", 0.25, t, "op", "JAX eager")]
    calls = {
        "jit": call_and_wait(accnp.jit(slow_f), a),
        "JAX jit": call_and_wait(jax.jit(slow_f), j),
    }
    calls["numpy"] = lambda: slow_f(data)
    t = interleave(calls, 3 * rounds, number=500)
    return [*rows, row("cached jit call, small, waited for", 1.0, t, "jit", "JAX jit")]


def processes(ours: str, theirs: str, rounds: int, **environment: str) -> dict[str, Timing]:
    """Time the two programs in fresh processes, in turns; the first turn is not counted."""
    timings = {"ours": Timing(), "JAX": Timing()}
    for index in range(rounds + 1):
        for name, code in (("ours", ours), ("JAX", theirs)):
            seconds = fresh_process(code, **environment)
            if index:
                timings[name].seconds.append(seconds)
    return timings


def import_time(rounds: int) -> list[Row]:
    code = "from time import perf_counter as now; t = now(); {}; print(now() - t)"
    t = processes(code.format("import accnp"), code.format("import jax"), rounds)
    return [row("import", 0.35, t, "ours", "JAX")]


def first_call(rounds: int) -> list[Row]:
    code = """
from time import perf_counter as now
{library}
{selu}
x = jnp.arange(1000000.0)
jax.jit(lambda x: jnp.tanh(x) + 1)(x).block_until_ready()
t = now()
jax.jit(selu)(x).block_until_ready()
print(now() - t)
"""
    ours, theirs = (code.format(library=lib, selu=SELU) for lib in (OURS, THEIRS))
    timings = _empty_cache(ours, theirs, rounds)
    note = "empty disk cache"
    return [row("first call of a new jitted SELU", 1.0, timings, "ours", "JAX", note=note)]


def _empty_cache(ours: str, theirs: str, rounds: int) -> dict[str, Timing]:
    """Time the two programs in fresh processes; ours starts with an empty disk cache
    and compiles."""
    timings = {"ours": Timing(), "JAX": Timing()}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as empty:
            timings["ours"].seconds.append(fresh_process(ours, ACCNP_CACHE_DIR=empty))
        timings["JAX"].seconds.append(fresh_process(theirs))
    return timings


def fresh_with_disk_cache(rounds: int) -> list[Row]:
    code = """
from time import perf_counter as now
t = now()
{library}
{selu}
jax.jit(selu)(jnp.arange(1000000.0)).block_until_ready()
print(now() - t)
"""
    ours, theirs = (code.format(library=lib, selu=SELU) for lib in (OURS, THEIRS))
    with tempfile.TemporaryDirectory() as cache:
        t = processes(ours, theirs, rounds, ACCNP_CACHE_DIR=cache)
    return [row("the same, fresh process, warm disk cache", 0.5, t, "ours", "JAX")]


def new_shape(rounds: int) -> list[Row]:
    f, g = accnp.jit(selu(anp)), jax.jit(selu(jnp))
    sizes = {"ours": iter(range(1000, 100_000)), "JAX": iter(range(1000, 100_000))}
    arrays = {n: anp.asarray(normal(n)) for n in range(1000, 1010 + rounds)}
    peers = {n: jnp.asarray(normal(n)) for n in arrays}
    calls = {
        "ours": lambda: f(arrays[next(sizes["ours"])]).block_until_ready(),
        "JAX": lambda: g(peers[next(sizes["JAX"])]).block_until_ready(),
    }
    calls["ours"]()
    calls["JAX"]()
    before = accnp.counters()
    t = interleave(calls, rounds, warm=0)
    after = accnp.counters()
    compiles = after["compiles"] - before["compiles"]
    note = f"{compiles} compiles in {rounds} shapes"
    work = "a new shape for a compiled function"
    return [row(work, 0.1, t, "ours", "JAX", note=note, extra_ok=compiles == 0)]


def cold(name: str, rounds: int) -> list[Row]:
    """Time the first call of a whole program: trace, compile and run once, without a disk cache."""
    code = """
from time import perf_counter as now
{library}
from benchmarks.programs import PROGRAMS
f, arguments = PROGRAMS["{name}"].make(jax)
arguments = jax.tree_util.tree_map(jnp.asarray, arguments)
jax.jit(lambda x: jnp.tanh(x) + 1)(jnp.arange(1000000.0)).block_until_ready()
t = now()
jax.block_until_ready(jax.jit(f)(*arguments))
print(now() - t)
"""
    ours, theirs = (code.format(library=lib, name=name) for lib in (OURS, THEIRS))
    timings = _empty_cache(ours, theirs, rounds)
    return [row(f"first call: {PROGRAMS[name].title}", 1.0, timings, "ours", "JAX")]


ROWS: dict[str, Callable[[int], list[Row]]] = {
    **rows_of(EXPRESSIONS),
    "sum": big_sum,
    "dispatch": dispatch,
    "import": import_time,
    "first": first_call,
    "fresh": fresh_with_disk_cache,
    "shape": new_shape,
    **{f"{name}-cold": partial(cold, name) for name in PROGRAMS},
}
PROCESS_ROWS = {"import", "first", "fresh", *[f"{name}-cold" for name in PROGRAMS]}
