"""Rows of elementwise work: chains, transcendental functions, broadcasting pairs, memory.

Chains are compared with the memory bandwidth of the machine and with hand-written alternatives: a
parallel loop in Numba, numexpr, and torch.compile if PyTorch is installed.
"""

import functools
import importlib.util
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numexpr
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

import accnp.numpy as anp
from benchmarks.expressions import Expression, rows_of
from benchmarks.harness import Call, Row, fresh_process, interleave

# h and q are numbers, which hand-written code must give the dtype of the arrays.
CHAINS = {3: "(x + y) * x - y", 10: "(((((x + y) * x - y) * h + x) * y - x) * q + y) * h"}
CHAINS[30] = "x"
for _k in range(15):
    CHAINS[30] = f"({CHAINS[30]} {'+-'[_k % 2]} {'yx'[_k % 3 % 2]}) * {'hq'[_k % 2]}"
SIZES = {"1e4": 10_000, "1e6": 1_000_000, "25e6": 25_000_000}
NUMBERS = {"h": 0.5, "q": 0.25}


@functools.lru_cache(4)
def data(seed: int, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Return normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype, copy=False)


# --- peers ---


def numba_loop(text: str, x: np.ndarray, y: np.ndarray) -> Call:
    """Return the chain as a hand-written Numba loop."""
    code = f"""
def f(a, b):
    out = np.empty_like(a)
    for i in prange(a.size):
        x = a[i]
        y = b[i]
        out[i] = {text}
    return out
"""
    numbers = {k: x.dtype.type(v) for k, v in NUMBERS.items()}
    scope: dict[str, Any] = {"np": np, "prange": numba.prange, **numbers}
    exec(code, scope)
    return partial(numba.njit(parallel=True)(scope["f"]), x, y)


def numexpr_call(text: str, x: np.ndarray, y: np.ndarray) -> Call:
    names = {"x": x, "y": y} | {k: x.dtype.type(v) for k, v in NUMBERS.items()}
    return lambda: numexpr.evaluate(text, names)


def torch_call(make: Callable[[Any], Callable], *arrays: np.ndarray) -> Call | None:
    """Return a call of a function of the library compiled by torch.compile."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    g = torch.compile(make(torch), dynamic=False)
    arguments = [torch.from_numpy(v) for v in arrays]

    def call() -> Any:
        with torch.no_grad():
            return g(*arguments)

    return call


@intrinsic
def _copy_line(typing: Any, target: Any, source: Any) -> Any:
    """Copy 64 bytes with non-temporal stores; both addresses are multiples of 64."""

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.IntType(64), 4)
        mark = b.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        to, at = (b.inttoptr(a, kind.as_pointer()) for a in args)
        for k in range(2):
            place = [ir.Constant(ir.IntType(64), k)]
            value = b.load(b.gep(at, place))
            value.align = 32
            b.store(value, b.gep(to, place), align=32).set_metadata("nontemporal", mark)
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64), emit


@numba.njit(parallel=True)
def _copy(target: int, source: int, lines: int, threads: int) -> None:
    for t in numba.prange(threads):
        for i in range(t * lines // threads, (t + 1) * lines // threads):
            _copy_line(target + 64 * i, source + 64 * i)  # type: ignore[call-arg]


def streaming_copy(moved: int, *_: np.ndarray) -> Call:
    """Copy `moved` / 2 bytes with non-temporal stores on all threads, which moves `moved` bytes."""
    lines = moved // 128
    raw = [np.ones(64 * lines + 64, np.uint8) for _ in range(2)]
    target, source = (r[-r.ctypes.data % 64 :][: 64 * lines] for r in raw)
    source[:] = 7
    call = partial(_copy, target.ctypes.data, source.ctypes.data, lines, numba.get_num_threads())
    call()
    assert (target == 7).all()
    return lambda: call() or raw


# --- chains ---


def _chain(dtype: str, size: str, ops: int) -> Expression:
    n, text = SIZES[size], CHAINS[ops]
    f = eval(f"lambda x, y: {text}", dict(NUMBERS))
    bars: dict[Any, float] = dict.fromkeys(("jax", "numba", "numexpr", "torch"), 1.0)
    peers: dict[str, Callable] = {
        "numba": partial(numba_loop, text),
        "numexpr": partial(numexpr_call, text),
        "torch": partial(torch_call, lambda torch: f),
    }
    if size == "25e6":
        bars = {"limit": 1 / 0.85, **bars}
        peers["limit"] = partial(streaming_copy, 3 * n * np.dtype(dtype).itemsize)
    return Expression(
        f"chain of {ops}, {dtype}, {size}",
        lambda m: (f, (data(0, n, dtype=dtype), data(1, n, dtype=dtype))),
        bars,
        peers,
        x64=dtype == "float64",
        counted=size == "1e6",
    )


# --- transcendental functions ---


def _black_scholes(m: Any) -> Callable:
    # torch has its functions in one place, jax in three.
    np_, erf = (m.numpy, m.lax.erf) if hasattr(m, "lax") else (m, m.erf)

    def price(s: Any, k: Any, t: Any) -> Any:
        root = 0.3 * np_.sqrt(t)
        d = (np_.log(s / k) + 0.065 * t) / root
        near, far = (0.5 * (1 + erf(v / 1.4142135)) for v in (d, d - root))
        return s * near - k * np_.exp(-0.02 * t) * far

    return price


def _selu(m: Any) -> Callable:
    np_ = getattr(m, "numpy", m)
    return lambda x: 1.05 * np_.where(x > 0, x, 1.67 * np_.exp(x) - 1.67)


def _sincos(m: Any) -> Callable:
    np_ = getattr(m, "numpy", m)
    return lambda x: np_.sin(x) * np_.cos(x) + np_.sin(2 * x) * x * 0.5 - np_.cos(x * x)


def _gelu(m: Any, approximate: bool) -> Callable:
    if hasattr(m, "numpy"):
        return partial(m.nn.gelu, approximate=approximate)
    return partial(m.nn.functional.gelu, approximate="tanh" if approximate else "none")


def _softplus(m: Any) -> Callable:
    if hasattr(m, "numpy"):
        return m.nn.softplus
    return lambda x: m.logaddexp(x, m.zeros_like(x))


def _million(title: str, make: Callable[[Any], Callable], count: int = 1) -> Expression:
    def arguments() -> tuple[np.ndarray, ...]:
        xs = [data(k, 1_000_000) for k in range(count)]
        return tuple(xs if count == 1 else [np.abs(x) + 0.5 for x in xs])

    return Expression(
        f"{title}, 1e6",
        lambda m: (make(m) if m.lax else print, arguments()),  # NumPy is asked for arguments only
        {"jax": 0.4, "torch": 0.7},
        {"torch": partial(torch_call, make)},
        atol=3e-6,
    )


# --- broadcasting pairs ---


def _pairs(title: str, f: Callable[[Any], Callable], *shapes: tuple[int, ...]) -> Expression:
    # Distances cancel near 0, where the peer rounds in another order.
    return Expression(
        title,
        lambda m: (f(m.numpy), tuple(data(k, *s) for k, s in enumerate(shapes))),
        {"jax": 0.5},
        atol=2e-3 if "distances" in title else 1e-5,
    )


def _on_grid(np_: Any) -> Callable:
    def f(a: Any, b: Any) -> Any:
        x, y = np_.meshgrid(a, b)
        return np_.sin(x) * np_.cos(y) + x * y

    return f


EXPRESSIONS = {
    **{
        f"chain-{ops}-{dtype}-{size}": _chain(dtype, size, ops)
        for size in SIZES
        for dtype in ("float32", "float64")
        for ops in CHAINS
    },
    "black-scholes": _million("Black-Scholes", _black_scholes, 3),
    "selu": _million("SELU", _selu),
    "gelu-tanh": _million("GELU by tanh", partial(_gelu, approximate=True)),
    "gelu-erf": _million("GELU by erf", partial(_gelu, approximate=False)),
    "softplus": _million("softplus", _softplus),
    "sincos": _million("sum of products of sin and cos", _sincos),
    "pairs-distances": _pairs(
        "distances of 4000 and 4000 points in 3-D",
        lambda np_: lambda a, b: np_.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)),
        (4000, 3),
        (4000, 3),
    ),
    "pairs-sum": _pairs(
        "outer sum, 5000x5000", lambda np_: lambda a, b: a[:, None] + b[None], (5000,), (5000,)
    ),
    "pairs-gauss": _pairs(
        "Gaussian kernel, 5000x5000",
        lambda np_: lambda a, b: np_.exp(-((a[:, None] - b[None]) ** 2)),
        (5000,),
        (5000,),
    ),
    "pairs-meshgrid": _pairs("formula on a meshgrid, 5000x5000", _on_grid, (5000,), (5000,)),
}


# --- memory ---


def peak_memory(rounds: int) -> list[Row]:
    """Measure the peak memory of a fused chain relative to the size of its inputs and output."""
    code = f"""
import accnp, accnp.numpy as jnp, numpy as np
h, q = 0.5, 0.25
f = accnp.jit(lambda x, y: {CHAINS[10]})
def read(key):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(s for s in lines if s.startswith(key)).split()[1]) * 1024
def arrays(n):
    return jnp.ones(n), jnp.arange(n, dtype=jnp.float32)
accnp.block_until_ready(f(*arrays(1_000_000)))
open("/proc/self/clear_refs", "w").write("5")
before = read("VmRSS")
x, y = accnp.block_until_ready(arrays(25_000_000))
z = f(x, y).block_until_ready()
print((read("VmHWM") - before) / (x.nbytes + y.nbytes + z.nbytes))
"""
    work = "peak memory of a chain of 10, 25e6"
    return [Row(work, "inputs + output", 1.01, fresh_process(code), {}, note="bytes, not time")]


def wrapping(rounds: int) -> list[Row]:
    """Check that `asarray` of a read-only array makes no copy and takes less than 2 us."""
    frozen = data(2, 25_000_000).copy()
    frozen.flags.writeable = False
    assert np.shares_memory(np.asarray(anp.asarray(frozen)), frozen)
    t = interleave({"accnp": lambda: anp.asarray(frozen)}, 3 * rounds, 200)["accnp"]
    medians = {"accnp": t.median}
    return [Row("asarray of 25e6 read-only numbers", "2 us", 1.0, t.median / 2e-6, medians)]


ROWS: dict[str, Callable[[int], list[Row]]] = {**rows_of(EXPRESSIONS), "asarray": wrapping}
if os.path.exists("/proc/self/clear_refs"):
    ROWS["peak-memory"] = peak_memory
