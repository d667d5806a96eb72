"""Programs of sweeps that depend on each other: stencils that write slices in loops, tridiagonal
sweeps over levels, and sequential recurrences.

`CASES` contains (name, bar, function of a module with JAX's API, arrays); `external.py` measures
them. The programs follow public NumPy and JAX benchmark suites. All values are float64, except for
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["CASES"]

_Case = tuple[str, float, Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


def _alternate_arrays(m: Any, steps: int, put: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Jacobi sweeps that alternate between two arrays."""

    def step(_: Any, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = pair
        b = put(b, a)
        return put(a, b), b

    return lambda a, b: m.lax.fori_loop(0, steps, step, (a, b))


def _stencil1(b: Any, a: Any) -> Any:
    return b.at[1:-1].set(0.33333 * (a[:-2] + a[1:-1] + a[2:]))


def _stencil2(b: Any, a: Any) -> Any:
    around = a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
    return b.at[1:-1, 1:-1].set(0.2 * around)


def _stencil3(b: Any, a: Any) -> Any:
    c = a[1:-1, 1:-1, 1:-1]
    x = 0.125 * (a[2:, 1:-1, 1:-1] - 2 * c + a[:-2, 1:-1, 1:-1])
    y = 0.125 * (a[1:-1, 2:, 1:-1] - 2 * c + a[1:-1, :-2, 1:-1])
    z = 0.125 * (a[1:-1, 1:-1, 2:] - 2 * c + a[1:-1, 1:-1, :-2])
    return b.at[1:-1, 1:-1, 1:-1].set(x + y + z + c)


def _wave_equation(m: Any) -> Callable[..., Any]:
    """Electromagnetic waves by the finite-difference time-domain method, 40 steps."""

    def step(t: Any, fields: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        ex, ey, hz = fields
        ey = ey.at[0, :].set(t * 1.0)
        ey = ey.at[1:, :].set(ey[1:, :] - 0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].set(ex[:, 1:] - 0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return ex, ey, hz.at[:-1, :-1].set(hz[:-1, :-1] - 0.7 * curl)

    return lambda *fields: m.lax.fori_loop(0, 40, step, fields)


def _thomas_algorithm(m: Any) -> Callable[..., Any]:
    """The Thomas algorithm along the last axis of fields, by scans over the levels."""
    np_, lax = m.numpy, m.lax

    def down(above: tuple[Any, Any], level: tuple[Any, ...]) -> Any:
        (c, d), (w0, w1, u0, u1, forcing) = above, level
        a, b = -0.25 * w0, 1.0 + 0.25 * (w0 + w1)
        scale = 1.0 / (b - c * a)
        corrections = 0.25 * w1 * scale, (forcing + 0.5 * (u1 - u0) - d * a) * scale
        return corrections, corrections

    def up(below: Any, level: tuple[Any, Any]) -> tuple[Any, Any]:
        c, d = level
        x = d - c * below
        return x, x

    def solve(u: Any, w: Any, forcing: Any) -> Any:
        u, w, forcing = (np_.moveaxis(x, 2, 0) for x in (u, w, forcing))
        zero = np_.zeros(u.shape[1:])
        _, factors = lax.scan(down, (zero, zero), (w[:-1], w[1:], u[:-1], u[1:], forcing[:-1]))
        _, x = lax.scan(up, zero, factors, reverse=True)
        return np_.moveaxis(x, 0, 2)

    return solve


def _durbin(m: Any) -> Callable[..., Any]:
    """Durbin's recursion for a Toeplitz system; prefixes of all lengths are written as masks."""
    np_ = m.numpy

    def solve(r: Any) -> Any:
        n = r.size
        place = np_.arange(n)

        def step(k: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            alpha, beta, y = state
            prefix = place < k
            beta = beta * (1.0 - alpha * alpha)
            back = np_.where(prefix, np_.roll(r[::-1], k - n), 0.0)
            alpha = -(r[k] + np_.dot(back, np_.where(prefix, y, 0.0))) / beta
            y = np_.where(prefix, y + alpha * np_.roll(y[::-1], k - n), y)
            return alpha, beta, y.at[k].set(alpha)

        first = np_.zeros(n).at[0].set(-r[0])
        return m.lax.fori_loop(1, n, step, (-r[0], np_.ones(()), first))[2]

    return solve


def _crc(m: Any) -> Callable[..., Any]:
    """The 16-bit cyclic redundancy check of X.25, bit by bit."""
    np_, loop = m.numpy, m.lax.fori_loop

    def bit(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        crc, byte = state
        return np_.where((byte ^ crc) & 1, (crc >> 1) ^ 0x8408, crc >> 1), byte >> 1

    def check(data: Any) -> Any:
        def byte(i: Any, crc: Any) -> Any:
            return loop(0, 8, bit, (crc, data[i].astype("uint32")))[0]

        crc = ~loop(0, data.size, byte, np_.uint32(0xFFFF)) & 0xFFFF
        return (crc << 8 | crc >> 8 & 0xFF) & 0xFFFF

    return check


def _cases() -> Iterator[_Case]:
    for name, bar, steps, shape, put in (
        ("1-D stencil, 3200", 1.0, 400, (3200,), _stencil1),
        ("1-D stencil, 30000", 1.0, 100, (30000,), _stencil1),
        ("2-D stencil, 150x150", 0.7, 40, (150, 150), _stencil2),
        ("3-D stencil, 25x25x25", 0.8, 40, (25, 25, 25), _stencil3),
    ):
        x = _values(*shape)
        yield name, bar, lambda m, k=steps, f=put: _alternate_arrays(m, k, f), (x, 2 * x)
    yield "waves in 200x220", 0.8, _wave_equation, tuple(_values(3, 200, 220))
    for n, levels in ((64, 60), (128, 160)):
        yield (
            f"tridiagonal {n}x{n}x{levels}",
            0.9,
            _thomas_algorithm,
            tuple(_values(3, n, n, levels)),
        )
    for n in (400, 2000):
        yield f"Durbin {n}", 0.9, _durbin, (_values(n) / (4 * n),)
    data = np.random.default_rng(0).integers(0, 256, 20000, dtype=np.uint8)
    yield "CRC-16 of 20000 bytes", 0.9, _crc, (data,)


CASES = tuple(_cases())
