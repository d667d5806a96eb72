"""Rows of stencils: five-point and seven-point stencils, a separable blur and shallow water,
written with slices, rolls and pads, and these operations alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.expressions import Expression, Made, normal, rows_of

BAR = {"jax": 0.6}
N, D = 2000, 128


def _stencil(f: Callable[[Any, Any], Any], *shape: int) -> Callable[[Any], Made]:
    return lambda m: (lambda x: f(m, x), (normal(0, *shape),))


def five_points(m: Any, x: Any) -> Any:
    return 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])


def five_points_inside(m: Any, x: Any) -> Any:
    return x.at[1:-1, 1:-1].set(five_points(m, x))


def seven_points(m: Any, x: Any) -> Any:
    inner = x[1:-1, 1:-1, 1:-1]
    planes = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1]
    rows = x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    return inner * -6 + planes + rows + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]


def laplacian(m: Any, x: Any) -> Any:
    roll = m.numpy.roll
    return roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1) - 4 * x


def blur(m: Any, x: Any) -> Any:
    taps = (1, 4, 6, 4, 1)
    n = x.shape[0] - 4
    rows: Any = sum(w * x[:, i : i + n] for i, w in enumerate(taps))
    return sum(w * rows[i : i + n] for i, w in enumerate(taps)) / 256


def padded_blur(m: Any, x: Any) -> Any:
    y = m.numpy.pad(x, 1, mode="edge")
    y = y[:-2] + 2 * y[1:-1] + y[2:]
    return (y[:, :-2] + 2 * y[:, 1:-1] + y[:, 2:]) / 16


def stencil_gradient(m: Any, x: Any) -> Any:
    return m.grad(lambda x: m.numpy.sum(five_points(m, x) ** 2))(x)


def shallow_water(m: Any) -> Made:
    roll = m.numpy.roll

    def step(h: Any, u: Any, v: Any) -> Any:
        return (
            h - 0.1 * (roll(u, -1, 0) - u + roll(v, -1, 1) - v),
            u - 0.2 * (h - roll(h, 1, 0)),
            v - 0.2 * (h - roll(h, 1, 1)),
        )

    return step, tuple(normal(k, N, N) for k in range(3))


EXPRESSIONS = {
    "five": Expression(f"5-point stencil, {N}x{N}", _stencil(five_points, N, N), BAR),
    "five-at": Expression(
        f"5-point stencil into the interior by .at[].set, {N}x{N}",
        _stencil(five_points_inside, N, N),
        BAR,
    ),
    "five-grad": Expression(
        f"gradient of a sum over a 5-point stencil, {N}x{N}", _stencil(stencil_gradient, N, N), BAR
    ),
    "seven": Expression(f"7-point stencil, {D}x{D}x{D}", _stencil(seven_points, D, D, D), BAR),
    "laplacian": Expression(f"Laplacian of four rolls, {N}x{N}", _stencil(laplacian, N, N), BAR),
    "blur": Expression(f"separable blur of 5 taps, {N}x{N}", _stencil(blur, N, N), BAR),
    "padded-blur": Expression(
        f"separable blur of 3 taps, edges padded, {N}x{N}", _stencil(padded_blur, N, N), BAR
    ),
    "shallow-water": Expression(f"shallow-water step of rolls, {N}x{N}", shallow_water, BAR),
    "concatenate": Expression(
        f"two halves, joined, {N}x{N}",
        _stencil(lambda m, x: m.numpy.concatenate([x[: N // 2] * 2, x[N // 2 :] + 1]), N, N),
        {("numpy", "jax"): 1.0},
    ),
    "stack": Expression(
        "a stack of 20 products, 300x300",
        _stencil(lambda m, x: m.numpy.stack([x * i for i in range(20)]), 300, 300),
        {("numpy", "jax"): 1.0},
    ),
    "diff": Expression(
        "differences of 1e6 neighbors",
        _stencil(lambda m, x: m.numpy.diff(x), 1_000_000),
        {("numpy", "jax"): 1.0},
    ),
}  # fmt: skip
ROWS = rows_of(EXPRESSIONS)
