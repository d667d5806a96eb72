"""The expressions that `python -m accnp bench` measures on a CPU (`SUITE`).

They cover the main classes of work: fused elementwise chains, reductions, stencils, gathers, matrix
products, and small arrays. Each uses names that NumPy, JAX and torch have in common.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accnp.bench.expressions import Expression, Made, normal

__all__ = ["SUITE", "numexpr_call"]

_ALL = ("numpy", "jax", "torch", "numexpr")
MILLION = 1_000_000


def numexpr_call(text: str, *names: str, **constants: Any) -> Callable[..., Any]:
    """Return a peer that evaluates a formula of the arguments with numexpr, if it is installed."""

    def make(*arguments: Any) -> Any:
        if importlib.util.find_spec("numexpr") is None:
            return None
        numexpr: Any = importlib.import_module("numexpr")
        values = dict(zip(names, arguments, strict=True)) | constants
        return lambda: numexpr.evaluate(text, values)

    return make


def _make_expression(
    title: str, make: Callable[[Any], Made], formula: Any = None, **more: Any
) -> Expression:
    peers: Mapping[str, Any] = {} if formula is None else {"numexpr": formula}
    best = tuple(n for n in _ALL if n != "numexpr" or formula is not None)
    return Expression(title, make, {best: None}, peers, **more)


def _chain(m: Any) -> Made:
    def f(x: Any, y: Any) -> Any:
        return ((((x + y) * x - y) * 0.5 + x) * y - x) * 0.25 + y * y - x

    return f, (normal(0, MILLION), normal(1, MILLION))


def _selu(m: Any) -> Made:
    def f(x: Any) -> Any:
        return 1.05 * m.numpy.where(x > 0, x, 1.67 * m.numpy.exp(x) - 1.67)

    return f, (normal(0, MILLION),)


def _waves(m: Any) -> Made:
    def f(x: Any) -> Any:
        return m.numpy.sin(x) * m.numpy.cos(x) + m.numpy.sin(2 * x) * x

    return f, (normal(0, MILLION),)


def _softmax(m: Any) -> Made:
    def f(x: Any) -> Any:
        e = m.numpy.exp(x - m.numpy.amax(x, 1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return f, (normal(0, 4096, 512),)


def _normalize(m: Any) -> Made:
    def f(x: Any) -> Any:
        centred = x - x.mean(0)
        return centred / m.numpy.sqrt((centred * centred).mean(0))

    return f, (normal(0, 20_000, 64),)


def _stencil(m: Any) -> Made:
    def f(x: Any) -> Any:
        return 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])

    return f, (normal(0, 1500, 1500),)


def _distances(m: Any) -> Made:
    def f(a: Any, b: Any) -> Any:
        gap = a[:, None] - b[None]
        return m.numpy.sqrt((gap * gap).sum(-1))

    return f, (normal(0, 1000, 3), normal(1, 1000, 3))


def _gather(m: Any) -> Made:
    places = np.random.default_rng(0).integers(0, MILLION, MILLION)
    return (lambda x, i: x[i] * 2 + x), (normal(0, MILLION), places)


def _layer(m: Any) -> Made:
    def f(x: Any, w: Any, b: Any) -> Any:
        return m.numpy.tanh(x @ w + b)

    return f, (normal(0, 512, 784), 0.05 * normal(1, 784, 512), normal(2, 512))


def _small_arrays(m: Any) -> Made:
    return (lambda x: (x + 1) * x - x / 2 + x), (normal(0, 100),)


_K = {"a": np.float32(1.67), "k": np.float32(1.05), "z": np.float32(0), "two": np.float32(2)}
_HALVES = {"half": np.float32(0.5), "quarter": np.float32(0.25)}

SUITE = {
    "chain": _make_expression(
        "chain of 10 operations, 1e6",
        _chain,
        numexpr_call(
            "((((x + y) * x - y) * half + x) * y - x) * quarter + y * y - x", "x", "y", **_HALVES
        ),
    ),
    "chain-eager": _make_expression("chain of 10 operations, 1e6", _chain, eager=True),
    "selu": _make_expression(
        "SELU, 1e6", _selu, numexpr_call("k * where(x > z, x, a * exp(x) - a)", "x", **_K)
    ),
    "waves": _make_expression(
        "sin, cos, 1e6",
        _waves,
        numexpr_call("sin(x) * cos(x) + sin(two * x) * x", "x", two=_K["two"]),
    ),
    "sum": _make_expression(
        "sum of squares, 1e7", lambda m: (lambda x: (x * x).sum(), (normal(0, 10**7),))
    ),
    "columns": _make_expression("column normalization 20000x64", _normalize),
    "softmax": _make_expression("softmax over rows, 4096x512", _softmax),
    "stencil": _make_expression("5-point stencil, 1500x1500", _stencil),
    "distances": _make_expression("pairwise distances 1000x1000x3", _distances),
    "gather": _make_expression("x[i] * 2 + x, 1e6", _gather),
    "cumsum": _make_expression(
        "cumsum, 1e6", lambda m: (lambda x: x.cumsum(0), (normal(0, MILLION),)), atol=1e-2
    ),
    "product": _make_expression(
        "matrix product 512x512",
        lambda m: (lambda a, b: a @ b, (normal(0, 512, 512), normal(1, 512, 512))),
        atol=1e-2,
    ),
    "layer": _make_expression("tanh(x @ w + b), 512x784x512", _layer, atol=1e-3),
    "small": _make_expression("5 operations on 100 elements", _small_arrays),
}
