"""Checks that only a real GPU can answer, for the first minutes on such a machine, simplest
first.

    python tests/cuda/smoke.py [FILE]

Each check runs in its own process, because a fault in a kernel ends all GPU work of its process. If
a check fails or hangs, this is recorded, and the next one runs. Each prints a line of JSON, which
is also written to FILE.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
LIMIT, WHOLE = 60, 180  # seconds for a check, and for all
LARGE = 1 << 27  # numbers of float32: 1 GiB to read and write
PARALLEL_CHECKS = 6
SEQUENTIAL_CHECKS = ("too_much_memory", "speed", "speed_of_convolutions", "speed_of_factorizations")
CHECKS: dict[str, Callable[[], Any]] = {}


def check(f: Callable[[], Any]) -> Callable[[], Any]:
    CHECKS[f.__name__] = f
    return f


def _import_accnp_and_gpu() -> tuple[Any, Any, Any]:
    import accnp
    from accnp.runtime.device_buffer import driver_of

    gpu = accnp.devices("gpu")[0]
    return accnp, gpu, driver_of(gpu)


def _compare_with_cpu(f: Callable[..., Any], *arrays: Any, close: float = 1e-5) -> str:
    """Compare a jitted function on the GPU with the CPU, twice; the second call uses the caches."""
    accnp, gpu, _ = _import_accnp_and_gpu()
    expected = accnp.jit(f)(*arrays)
    there = [accnp.device_put(a, gpu) for a in arrays]
    g = accnp.jit(f)
    for _ in range(2):
        accnp.tree.map(
            lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), close, close),
            g(*there),
            expected,
        )
    return _plan_text(accnp, g, there)


def _plan_text(accnp: Any, g: Any, there: Any) -> str:
    text = str(accnp.inspect(g)(*there))
    plan = text[text.index("-- plan --") :].split("\n-- ")[0]
    return "; ".join(line.split("because ")[1] for line in plan.split("\n") if "because " in line)


X = np.sin(np.arange(4096, dtype="f4"))
M = np.cos(np.arange(64 * 64, dtype="f4")).reshape(64, 64)


@check
def versions() -> Any:
    versions_by_name = {"python": sys.version.split()[0]}
    for name in ("numpy", "numba", "numba-cuda", "llvmlite", "cupy-cuda12x", "cupy-cuda13x",
                 "torch", "jax"):  # fmt: skip
        try:
            versions_by_name[name] = version(name)
        except PackageNotFoundError:
            versions_by_name[name] = "none"
    return versions_by_name


@check
def device() -> Any:
    accnp, gpu, driver = _import_accnp_and_gpu()
    return {"kind": driver.kind, "cc": driver.cc, **accnp.device_memory_stats(gpu)}


@check
def copies() -> Any:
    accnp, gpu, _ = _import_accnp_and_gpu()
    for n in (0, 3, 1 << 10, 1 << 22):
        x = np.arange(n, dtype="f4")
        np.testing.assert_array_equal(np.asarray(accnp.device_put(x, gpu)), x)


@check
def one_kernel() -> Any:
    return _compare_with_cpu(lambda x: x * 2 + 1, X)


@check
def sums() -> Any:
    return _compare_with_cpu(lambda x: [x.sum(), x.max(0), x.mean(1), x.argmax(1)], M)


@check
def tiles() -> Any:
    return _compare_with_cpu(lambda x: x.T + x, M)


@check
def several_kernels() -> Any:
    import accnp.nn as nn

    return _compare_with_cpu(lambda x: nn.softmax(x, 1) @ x + x.sum(0), M, close=1e-4)


@check
def products_by_address() -> Any:
    """Return whether machine code may call cuBLAS."""
    _, _, driver = _import_accnp_and_gpu()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert driver.blas()[0], "; ".join([str(w.message) for w in caught])
    return _compare_with_cpu(lambda x: x @ x.T, M, close=1e-4)


def _convolutions() -> dict[str, Any]:
    from accnp import grad, lax

    last = ("NHWC", "HWIO", "NHWC")

    def gradients(x: Any, w: Any) -> Any:
        return grad(lambda x, w: (lax.conv(x, w, (1, 1), "SAME") ** 2).sum(), (0, 1))(x, w)

    return {
        "features first": gradients,
        "features last": lambda x, w: lax.conv_general_dilated(
            x.transpose(0, 2, 3, 1),
            w.transpose(2, 3, 1, 0),
            (2, 2),
            [(1, 2), (0, 2)],
            (2, 1),
            (1, 2),
            last,
        ),
        "one place": lambda x, w: lax.conv(x, w[:, :, :1, :1], (1, 1), "SAME"),
    }


@check
def convolutions_by_products() -> Any:
    """Compute convolutions as cuBLAS products of windows that generated kernels copy in chunks."""
    from unittest.mock import patch

    from accnp.engine import device_convolutions

    x, w = np.resize(X, (2, 5, 6, 6)) / 4, np.resize(M, (6, 5, 3, 3)) / 4
    with patch.multiple(device_convolutions, LARGE=0, FEATURES=1, BUFFER_BYTES=1 << 12, ROWS=16):
        return {n: _compare_with_cpu(f, x, w, close=1e-3) for n, f in _convolutions().items()}


@check
def speed_of_convolutions() -> Any:
    """Measure the milliseconds of a convolution of 64 features, by products and by generated
    kernels.
    """
    from unittest.mock import patch

    from accnp import lax
    from accnp.engine import device_convolutions

    accnp, gpu, _ = _import_accnp_and_gpu()
    side, n, c = (56, 128, 64) if LARGE > 1 << 20 else (2, 1, 16)
    x, w = (accnp.device_put(np.resize(X, s), gpu) for s in ((n, c, side, side), (c, c, 3, 3)))
    milliseconds = {}
    for how, least in (("products", 0), ("kernels", 1 << 60)):
        with patch.object(device_convolutions, "LARGE", least):
            f = accnp.jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME"))
            f(x, w).block_until_ready()
            begin = time.perf_counter()
            for _ in range(5):
                y = f(x, w)
            y.block_until_ready()
            milliseconds[how] = round(1e3 * (time.perf_counter() - begin) / 5, 3)
    return milliseconds


def _factors() -> dict[str, Any]:
    import accnp.numpy as jnp
    from accnp import lax

    def triangle(a: Any, b: Any) -> Any:
        return [
            lax.linalg.triangular_solve(a, b if left else b.T, left_side=left, transpose_a=turned)
            for left in (True, False)
            for turned in (True, False)
        ]

    return {
        "cholesky": lambda a, b: jnp.linalg.cholesky(a),
        "not positive": lambda a, b: jnp.linalg.cholesky(a - 9 * jnp.eye(len(a))),
        "triangle": triangle,
        "lu": lambda a, b: lax.linalg.lu(a + jnp.eye(len(a))[::-1]),
        "solve": lambda a, b: jnp.linalg.solve(a[::-1], b),
        "determinant": lambda a, b: jnp.linalg.slogdet(a[::-1]),
        "stacks": lambda a, b: [
            jnp.linalg.cholesky(jnp.stack([a, a * 2, -a])), lax.linalg.lu(jnp.stack([a, a[::-1]])),
            jnp.linalg.solve(jnp.stack([a, a.T * 2]), jnp.stack([b, b])),
            lax.linalg.triangular_solve(jnp.stack([a, a * 2]), jnp.stack([b, b]), left_side=True),
        ],
    }  # fmt: skip


@check
def factorizations_by_address() -> Any:
    """Check whether machine code may call cuSOLVER, and the results of these calls, also in
    loops.
    """
    from unittest.mock import patch

    from accnp import lax
    from accnp.compiler.library.linalg import block_factors

    _, _, driver = _import_accnp_and_gpu()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert driver.solver() is not None, "; ".join([str(w.message) for w in caught])
    n, bad, outcomes = 9, [], {}
    i = np.arange(n, dtype="f4")
    a, b = np.eye(n, dtype="f4") * 4 + np.cos(i[:, None] * i) / n, np.resize(X, (n, 3))
    every = _factors()
    every["a loop"] = lambda a, b: lax.fori_loop(0, 3, lambda _, x: every["solve"](a, x), b)
    # No matrix is small enough for a block of threads.
    with patch.object(block_factors, "CLASSES", ()):
        for dtype in ("f4", "c8"):
            for name, f in every.items():
                try:
                    outcomes[f"{name} {dtype}"] = _compare_with_cpu(
                        f, a.astype(dtype), b.astype(dtype), close=1e-3
                    )
                except Exception as error:
                    bad.append(f"{name} {dtype}: {type(error).__name__}: {error}"[:500])
    assert not bad, "; ".join(bad)
    return outcomes


@check
def speed_of_factorizations() -> Any:
    """Measure the milliseconds of factorizations called by address, and by CuPy."""
    from unittest.mock import patch

    import accnp.numpy as jnp
    from accnp.compiler.library.linalg import block_factors

    accnp, gpu, driver = _import_accnp_and_gpu()
    n = 2048 if LARGE > 1 << 20 else 9
    milliseconds = {}
    for shape in ((n, n), (n // 16, 128, 128))[: 1 + (n > 200)]:
        a = accnp.device_put(np.eye(shape[-1], dtype="f4") * np.ones(shape, "f4") + 1, gpu)
        for how, solver in (("address", driver.solver()), ("CuPy", None)):
            with (
                patch.object(driver, "solver", lambda solver=solver: solver),
                patch.object(block_factors, "CLASSES", ()),
            ):
                for name in ("cholesky", "inv"):
                    f = accnp.jit(lambda x, name=name: getattr(jnp.linalg, name)(x))
                    f(a).block_until_ready()
                    begin = time.perf_counter()
                    for _ in range(3):
                        y = f(a)
                    y.block_until_ready()
                    took = (time.perf_counter() - begin) / 3
                    milliseconds[f"{name} {shape} by {how}"] = round(1e3 * took, 3)
    return milliseconds


@check
def a_loop_in_a_kernel() -> Any:
    from accnp import lax

    return _compare_with_cpu(lambda x: lax.fori_loop(0, 9, lambda i, c: c * 0.5 + i, x), X)


@check
def loops_in_machine_code() -> Any:
    import accnp.numpy as jnp
    from accnp import lax, nn

    def turned(c: Any) -> Any:
        return nn.softmax(c, 1) + jnp.roll(c, 1, 0) * 0.5

    def f(x: Any) -> Any:
        y = lax.fori_loop(0, 5, lambda i, c: turned(c) + i, x)
        z = lax.while_loop(lambda c: jnp.abs(c).max() > 0.1, lambda c: turned(c) * 0.2, x)
        return y, z, lax.cond(x.sum() > 0, turned, lambda c: c @ c, x)

    return _compare_with_cpu(f, M, close=1e-4)


def _calls() -> dict[str, Callable[..., Any]]:
    import accnp.numpy as jnp
    from accnp import lax

    spd, eye = M @ M.T + 64 * np.eye(64, dtype="f4"), np.eye(128, dtype="f4")
    return {
        "fft": lambda x: jnp.fft.fft(x).real,
        "rfft": lambda x: jnp.fft.irfft(jnp.fft.rfft(x)),
        "sort": lambda x: jnp.sort(x, 1),
        "argsort": lambda x: jnp.argsort(x, 1).astype("f4") / 64,
        "top_k": lambda x: jnp.tile(lax.top_k(x, 8)[0], (1, 8)),
        "cumsum": lambda x: jnp.cumsum(x, 1) / 64,
        "cummax": lambda x: lax.cummax(x, 1),
        "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x[0]), x).astype("f4") / 64,
        "cholesky": lambda x: jnp.linalg.cholesky(x + spd) / 64,
        "solve": lambda x: jnp.linalg.solve(spd, x),
        "svd": lambda x: x + jnp.linalg.svdvals((x + spd)[:6, :6])[0] / 64,
        "large svd": lambda x: x + jnp.linalg.svdvals(jnp.tile(x, (2, 2)))[0] / 64,
        "large lu": lambda x: x + lax.linalg.lu(jnp.tile(x, (2, 2)) + 4 * eye)[1].max() / 64,
        "convolution": lambda x: jnp.convolve(x[0], x[1], "same")[None] + 0 * x,
    }


@check
def library_calls() -> Any:
    return _run_library_calls(lambda f: f)


@check
def captured_calls() -> Any:
    """Check for each library call in a loop whether it is a CUDA graph, and its values."""
    from accnp import lax

    return _run_library_calls(lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: f(c * 0.9), x))


def _run_library_calls(make: Callable[[Any], Any]) -> dict[str, str]:
    outcomes, bad = {}, []
    for name, f in _calls().items():
        try:
            outcomes[name] = _compare_with_cpu(make(f), M, close=1e-3) or "right"
        except Exception as error:
            outcomes[name] = f"{type(error).__name__}: {error}"[:300]
            bad.append(name)
    if bad:
        raise AssertionError(f"wrong: {', '.join(bad)}; {json.dumps(outcomes)}")
    return outcomes


@check
def a_users_text() -> Any:
    accnp, gpu, _ = _import_accnp_and_gpu()
    text = 'extern "C" __global__ void twice(const float* x, float* y) {'
    text += " int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 2 * x[i]; }"
    f = accnp.kernel(text, lambda x: x, grid=(16, 256))
    np.testing.assert_array_equal(np.asarray(f(accnp.device_put(X, gpu))), 2 * X)


@check
def a_users_kernel_of_numba() -> Any:
    from numba import cuda

    accnp, gpu, _ = _import_accnp_and_gpu()

    @cuda.jit
    def twice(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * np.float32(2)

    f = accnp.kernel(twice, lambda x: x, grid=(16, 256))
    np.testing.assert_array_equal(np.asarray(f(accnp.device_put(X, gpu))), 2 * X)


@check
def exchange_with_torch() -> Any:
    import torch

    accnp, gpu, _ = _import_accnp_and_gpu()
    x = accnp.device_put(X, gpu)
    np.testing.assert_array_equal((torch.from_dlpack(x) + 1).cpu().numpy(), X + 1)
    np.testing.assert_array_equal(np.asarray(accnp.from_dlpack(torch.arange(5.0).cuda()) * 2),
                                  [0, 2, 4, 6, 8])  # fmt: skip


@check
def too_much_memory() -> Any:
    import accnp.numpy as jnp

    accnp, gpu, _ = _import_accnp_and_gpu()
    total = accnp.device_memory_stats(gpu)["bytes_limit"]
    try:
        with accnp.default_device(gpu):
            accnp.block_until_ready(jnp.ones(total // 2, "f4"))
    except Exception as error:
        text = str(error)
    else:
        raise AssertionError("twice the memory of the GPU was given out")
    assert "not enough memory" in text, text
    return _compare_with_cpu(lambda x: x + 1, X)


@check
def speed() -> Any:
    """Measure a call that reads and writes 1 GiB, and a small call.

    Each is called a few times separately, then repeatedly without waiting. The memory in use must
    be that of two results, because one is live while the next is computed.
    """
    accnp, gpu, _ = _import_accnp_and_gpu()
    measurements = {}
    for name, n in (("large", LARGE), ("small", len(X))):
        f = accnp.jit(lambda x: x * 2 + 1)
        x = accnp.device_put(np.ones(n, "f4"), gpu).block_until_ready()
        pool_bytes = accnp.device_memory_stats(gpu)["pool_bytes"]
        first = []
        for _ in range(6):
            begin = time.perf_counter()
            y = f(x).block_until_ready()
            first.append(1e3 * (time.perf_counter() - begin))
        begin = time.perf_counter()
        for _ in range(50):
            y = f(x)
        back = time.perf_counter()
        y.block_until_ready()
        each = [(t - begin) / 50 for t in (back, time.perf_counter())]
        results_in_memory = (accnp.device_memory_stats(gpu)["pool_bytes"] - pool_bytes) / x.nbytes
        measurements[name] = {
            "returns after us": round(1e6 * each[0], 2),
            "there after us": round(1e6 * each[1], 2),
            "first, ms": [round(t, 3) for t in first],
            "results": round(results_in_memory, 2),
        }
        assert results_in_memory < 3, measurements
    return measurements


def main(names: list[str], out: Any = None, limit: float = LIMIT, whole: float = WHOLE) -> int:
    """Run checks, each in its own process and several in parallel; measurements run last and
    alone.

    Returns the number of failed checks.
    """
    failed, end = 0, time.perf_counter() + whole

    def run(name: str) -> dict[str, Any]:
        begin = time.perf_counter()
        most = min(limit, max(0.01, end - begin))
        command = [sys.executable, "-W", "ignore", __file__, "--one", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=most)
            lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
            outcome = json.loads(lines[-1]) if lines else {
                "ok": False, "says": f"ended with {done.returncode}: {done.stderr[-1500:]}"
            }  # fmt: skip
        except subprocess.TimeoutExpired:
            outcome = {"ok": False, "says": f"did not end in {most:.3g} s"}
        return {"check": name, **outcome, "seconds": round(time.perf_counter() - begin, 1)}

    alone = [name for name in names if name in SEQUENTIAL_CHECKS]
    with ThreadPoolExecutor(PARALLEL_CHECKS) as pool:
        parallel = pool.map(run, [name for name in names if name not in SEQUENTIAL_CHECKS])
        for outcome in itertools.chain(parallel, map(run, alone)):
            failed += not outcome["ok"]
            line = json.dumps(outcome, default=str)
            print(line, flush=True)
            if out is not None:
                print(line, file=out, flush=True)
    print(f"{len(names) - failed} of {len(names)} checks passed")
    return failed


def one(name: str) -> dict[str, Any]:
    """Run a check in this process."""
    try:
        return {"ok": True, "says": CHECKS[name]()}
    except BaseException:
        return {"ok": False, "says": traceback.format_exc()[-2500:]}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--one"]:
        print("\n" + json.dumps(one(sys.argv[2]), default=str))
    elif len(sys.argv) > 1:
        whole = float(sys.argv[2]) if len(sys.argv) > 2 else WHOLE
        with open(sys.argv[1], "w") as file:
            sys.exit(min(1, main(list(CHECKS), file, whole=whole)))
    else:
        sys.exit(min(1, main(list(CHECKS))))
