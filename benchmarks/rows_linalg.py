"""Rows of factorizations, linear systems and Fourier transforms, compared with SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.expressions import Expression, Made, normal, rows_of
from benchmarks.harness import Call

BAR = 1.05


def _general(n: int) -> np.ndarray:
    return normal(0, n, n) + 2 * np.eye(n, dtype=np.float32)


def _definite(n: int) -> np.ndarray:
    a = normal(0, n, n)
    return a @ a.T + n * np.eye(n, dtype=np.float32)


def _batch() -> np.ndarray:
    return normal(0, 1000, 20, 20) + 5 * np.eye(20, dtype=np.float32)


def _make(text: str, *arguments: Any) -> Callable[[Any], Made]:
    """Return an expression of x (and y) in the names of `jax.numpy`."""

    def make(m: Any) -> Made:
        names = ", ".join("xy"[: len(arguments)])
        return eval(f"lambda {names}: {text}", {"jnp": m.numpy}), arguments

    return make


def _scipy(text: str) -> Callable[..., Call]:
    def call(*arguments: Any) -> Call:
        import scipy.fft
        import scipy.linalg

        scope = {"linalg": scipy.linalg, "fft": scipy.fft, "np": np}
        f = eval(f"lambda {', '.join('xy'[: len(arguments)])}: {text}", scope)
        return lambda: f(*arguments)

    return call


def _row(title: str, make: Any, peer: str, **more: Any) -> Expression:
    return Expression(title, make, {"scipy": BAR}, {"scipy": _scipy(peer)}, **more)


# Single precision of large systems, against another LAPACK.
LOOSE = {"rtol": 1e-2, "atol": 1e-2}

EXPRESSIONS = {
    **{
        f"cholesky-{n}": _row(
            f"cholesky of {n}x{n}", _make("jnp.linalg.cholesky(x)", _definite(n)),
            "linalg.cholesky(x, lower=True)",
        )
        for n in (500, 1000)
    },
    "cholesky-batch": _row(
        "cholesky of 1000 of 20x20",
        _make("jnp.linalg.cholesky(x)", np.stack([_definite(20)] * 1000)), "np.linalg.cholesky(x)",
    ),
    **{
        f"solve-{n}": _row(
            f"solve of {n}x{n}", _make("jnp.linalg.solve(x, y)", _general(n), normal(1, n)),
            "linalg.solve(x, y)", **LOOSE,
        )
        for n in (100, 500, 1000)
    },
    "solve-batch": _row(
        "solve of 1000 of 20x20",
        _make("jnp.linalg.solve(x, y)", _batch(), normal(1, 1000, 20, 1)), "np.linalg.solve(x, y)",
        **LOOSE,
    ),
    "inv-500": _row(
        "inverse of 500x500", _make("jnp.linalg.inv(x)", _definite(500)), "linalg.inv(x)", **LOOSE
    ),
    "qr-500": _row(
        "qr of 500x500", _make("jnp.linalg.qr(x)", _general(500)), "linalg.qr(x)", **LOOSE
    ),
    "qr-tall": _row(
        "qr of 2000x200", _make("jnp.linalg.qr(x)", normal(0, 2000, 200)),
        "linalg.qr(x, mode='economic')", **LOOSE,
    ),
    "svd-300": _row(
        "svd of 300x300", _make("jnp.linalg.svd(x)", normal(0, 300, 300)), "linalg.svd(x)",
        **LOOSE,
    ),
    "eigh-500": _row(
        "eigh of 500x500", _make("jnp.linalg.eigh(x)", _definite(500)), "linalg.eigh(x)", **LOOSE
    ),
    "fft": _row("fft of 2^19 float32", _make("jnp.fft.fft(x)", normal(0, 1 << 19)), "fft.fft(x)",
                rtol=1e-3, atol=1e-2),
    "fft-complex-rows": _row(
        "fft of 1000 rows of 1024 complex64",
        _make("jnp.fft.fft(x)", normal(0, 1000, 1024) + 1j * normal(1, 1000, 1024)), "fft.fft(x)",
        rtol=1e-3, atol=1e-3,
    ),
    "fft2": _row("fft2 of 512x512", _make("jnp.fft.fft2(x)", normal(0, 512, 512)), "fft.fft2(x)",
                 rtol=1e-3, atol=1e-2),
    "rfft-rows": _row(
        "rfft of 1000 rows of 1024", _make("jnp.fft.rfft(x)", normal(0, 1000, 1024)), "fft.rfft(x)",
        rtol=1e-3, atol=1e-3,
    ),
    "irfft-rows": _row(
        "irfft of 1000 rows of 513", _make("jnp.fft.irfft(x)", normal(0, 1000, 513) + 0j),
        "fft.irfft(x)", rtol=1e-3, atol=1e-4,
    ),
}  # fmt: skip
ROWS = rows_of(EXPRESSIONS)
