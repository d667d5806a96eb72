"""Whole programs with loops, batches and derivatives, each written once for both libraries.

Each function takes a module with JAX's API, and returns a function of arrays together with its
arguments as NumPy arrays. `PROGRAMS` contains, for each, its label in the table and its bar
relative to JAX's `jit`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.expressions import Expression

ProgramWithArguments = tuple[Callable, tuple]


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Return normally distributed float32 numbers of the given shape."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(scale)


def bodies(n: int) -> Callable[[Any], ProgramWithArguments]:
    """A thousand steps of n bodies that attract each other."""

    def make(m: Any) -> ProgramWithArguments:
        def force(q: Any, mass: Any) -> Any:
            gap = q[None] - q[:, None]
            square = (gap * gap).sum(-1) + 1e-2
            return (gap * (mass[None] / (square * m.numpy.sqrt(square)))[..., None]).sum(1)

        def run(q: Any, v: Any, mass: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                q, v = state
                v = v + 1e-3 * force(q, mass)
                q = q + 1e-3 * v
                return (q, v), 0.5 * (mass[:, None] * v * v).sum()

            return m.lax.scan(step, (q, v), None, length=1000)

        return run, (normal(0, n, 3), normal(1, n, 3), np.abs(normal(2, n)) + 0.1)

    return make


def mandelbrot(m: Any) -> ProgramWithArguments:
    """The number of steps until a point escapes, at most 100, for 300 by 200 points."""

    def steps(c: Any) -> Any:
        def inside(state: Any) -> Any:
            z, n = state
            return (z.real * z.real + z.imag * z.imag < 4.0) & (n < 100)

        return m.lax.while_loop(inside, lambda s: (s[0] * s[0] + c, s[1] + 1), (c * 0, 0))[1]

    x, y = np.linspace(-2, 1, 300), np.linspace(-1, 1, 200)
    grid = (x[None, :] + 1j * y[:, None]).astype(np.complex64)
    return m.vmap(m.vmap(steps)), (grid,)


def jacobi(m: Any) -> ProgramWithArguments:
    """300 Jacobi sweeps for the heat equation on 512 by 512 points with a hot edge."""

    def run(u: Any) -> Any:
        def sweep(_: Any, u: Any) -> Any:
            near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            return u.at[1:-1, 1:-1].set(0.25 * near)

        return m.lax.fori_loop(0, 300, sweep, u)

    hot = np.zeros((512, 512), np.float32)
    hot[0] = 1.0
    return run, (hot,)


def recurrent(m: Any) -> ProgramWithArguments:
    """The loss and gradients of a recurrent network over 100 steps."""
    np_ = m.numpy

    def loss(p: Any, xs: Any, targets: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            h = np_.tanh(x @ p["in"] + h @ p["over"] + p["b"])
            return h, h @ p["out"]

        start = np_.zeros((xs.shape[1], p["b"].shape[0]))
        return np_.mean((m.lax.scan(cell, start, xs)[1] - targets) ** 2)

    p = {
        "in": normal(0, 16, 64, scale=0.2),
        "over": normal(1, 64, 64, scale=0.1),
        "b": normal(2, 64, scale=0.1),
        "out": normal(3, 64, 8, scale=0.1),
    }
    return m.value_and_grad(loss), (p, normal(4, 100, 32, 16), normal(5, 100, 32, 8))


def _network(*sizes: int) -> list:
    return [
        {"w": normal(i, a, b, scale=a**-0.5), "b": normal(9 - i, b)}
        for i, (a, b) in enumerate(pairwise(sizes))
    ]


def _cross_entropy(m: Any, p: Any, x: Any, label: Any) -> Any:
    for layer in p[:-1]:
        x = m.nn.relu(x @ layer["w"] + layer["b"])
    likelihood = m.nn.log_softmax(x @ p[-1]["w"] + p[-1]["b"])
    return -(likelihood * m.nn.one_hot(label, 10)).sum(-1).mean()


def train_step(m: Any) -> ProgramWithArguments:
    """One step of gradient descent of a 784-512-10 network on 128 images."""

    def step(p: Any, x: Any, labels: Any) -> Any:
        value, gradient = m.value_and_grad(lambda p: _cross_entropy(m, p, x, labels))(p)
        return m.tree_util.tree_map(lambda a, g: a - 0.1 * g, p, gradient), value

    return step, (_network(784, 512, 10), normal(3, 128, 784), np.arange(128, dtype=np.int32) % 10)


def per_example(m: Any) -> ProgramWithArguments:
    """The gradient of each of 128 examples with respect to the weights of a 64-128-10 network."""

    def gradients(p: Any, x: Any, labels: Any) -> Any:
        gradient = m.grad(lambda p, x, label: _cross_entropy(m, p, x, label))
        return m.vmap(gradient, in_axes=(None, 0, 0))(p, x, labels)

    return gradients, (
        _network(64, 128, 10),
        normal(3, 128, 64),
        np.arange(128, dtype=np.int32) % 10,
    )


def shortest_paths(m: Any) -> ProgramWithArguments:
    """Floyd-Warshall shortest paths between 256 points."""

    def run(distance: Any) -> Any:
        def through(k: Any, d: Any) -> Any:
            return d.at[:, :].min(d[:, k, None] + d[None, k, :])

        return m.lax.fori_loop(0, distance.shape[0], through, distance)

    return run, (np.random.default_rng(0).random((256, 256), np.float32) ** 4,)


def _program(title: str, make: Callable[[Any], ProgramWithArguments], bar: float) -> Expression:
    return Expression(title, make, {"jax": bar}, rtol=2e-3, atol=2e-4)


PROGRAMS = {
    "nbody": _program("n-body, 5 bodies, scan of 1000 steps", bodies(5), 0.5),
    "nbody64": _program("n-body, 64 bodies, scan of 1000 steps", bodies(64), 0.5),
    "mandelbrot": _program("Mandelbrot 300x200, vmap of while_loop", mandelbrot, 0.7),
    "jacobi": _program("Jacobi 512x512, fori_loop of 300", jacobi, 0.7),
    "rnn": _program("RNN forward and backward, scan of 100", recurrent, 1.0),
    "mlp": _program("MLP 784-512-10 train step, batch 128", train_step, 1.0),
    "examples": _program("per-example gradients 64-128-10, 128", per_example, 1.0),
    "paths": _program("Floyd-Warshall 256, fori_loop with .at[]", shortest_paths, 0.7),
}
