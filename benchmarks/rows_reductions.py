"""Rows of reductions over all patterns of axes, and of functions of rows, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.expressions import Expression, Made, normal, rows_of

BETTER: dict[Any, float] = {("numpy", "jax"): 0.8}
ROWWISE: dict[Any, float] = {"jax": 0.6}
PLANE, CUBE, TABLE = (1000, 1500), (100, 150, 100), (4096, 1024)
SQUARES = 25_000_000

VIEWS: dict[str, Callable[[Any], Any]] = {
    "": lambda x: x,
    "strided ": lambda x: x[::2, ::3],
    "transposed ": lambda x: x.transpose(*range(x.ndim)[::-1]),
}


def _make_reduction(
    op: str, shape: tuple[int, ...], view: str, **how: Any
) -> Callable[[Any], Made]:
    def make(m: Any) -> Made:
        return (lambda x: getattr(m.numpy, op)(VIEWS[view](x), **how)), (normal(0, *shape),)

    return make


def _masked_sum(axis: int | None) -> Callable[[Any], Made]:
    return lambda m: (lambda x: m.numpy.sum(x, axis=axis, where=x > 0), (normal(0, *PLANE),))


def _patterns() -> Iterator[tuple[str, Callable[[Any], Made]]]:
    """Yield the title of each pattern and the function that makes it."""
    for op in ("sum", "max", "mean", "var", "any", "argmax"):
        for axis in (None, 0, 1):
            yield f"{op} 2-D axis {axis}", _make_reduction(op, PLANE, "", axis=axis)
    for view in ("strided ", "transposed "):
        for axis in (None, 0, 1):
            yield f"sum {view}2-D axis {axis}", _make_reduction("sum", PLANE, view, axis=axis)
    for axis in (0, 1):
        yield (
            f"sum 2-D axis {axis} keepdims",
            _make_reduction("sum", PLANE, "", axis=axis, keepdims=True),
        )
    for axis in (None, 0, 1):
        yield f"sum 2-D axis {axis} where", _masked_sum(axis)
    for view in ("", "transposed "):
        for axis in (None, 0, 1, 2, (0, 1), (0, 2), (1, 2)):
            text = str(axis).replace(" ", "")
            yield f"sum {view}3-D axis {text}", _make_reduction("sum", CUBE, view, axis=axis)


def _layer_norm(m: Any, x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / m.numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)


def _rms_norm(m: Any, x: Any) -> Any:
    return x / m.numpy.sqrt(m.numpy.mean(x * x, -1, keepdims=True) + 1e-5)


def _cosine(m: Any, x: Any) -> Any:
    y, norm = x[::-1], m.numpy.linalg.norm
    return m.numpy.sum(x * y, -1) / (norm(x, axis=-1) * norm(y, axis=-1))


OF_ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda m, x: m.nn.softmax(x),
    "log-softmax": lambda m, x: m.nn.log_softmax(x),
    "layer norm": _layer_norm,
    "RMS norm": _rms_norm,
    "variance": lambda m, x: x.var(-1),
    "cosine similarity": _cosine,
}


def _of_rows(f: Callable[[Any, Any], Any], backward: bool) -> Callable[[Any], Made]:
    """Return a function of rows, or its value and gradient under half the sum of squares."""

    def make(m: Any) -> Made:
        def loss(x: Any) -> Any:
            return 0.5 * m.numpy.sum(f(m, x) ** 2)

        arguments = (normal(0, *TABLE),)
        return (m.value_and_grad(loss) if backward else lambda x: f(m, x)), arguments

    return make


def _transpose_2d(m: Any) -> Made:
    return (lambda x: x.T * 2), (normal(0, 2000, 3000),)


def _symmetric(m: Any) -> Made:
    return (lambda x: x + x.T), (normal(0, 2000, 2000),)


def _permute_3d(m: Any) -> Made:
    return (lambda x: x.transpose(2, 0, 1) * 2), (normal(0, 100, 200, 300),)


def _of_columns(m: Any) -> Made:
    return (lambda x: m.numpy.sum(m.numpy.exp(x.T), axis=1)), (normal(0, 2000, 3000),)


def _squares(m: Any) -> Made:
    return (lambda x: m.numpy.sum(x * x)), (normal(0, SQUARES),)


def _expressions() -> Iterator[tuple[str, Expression]]:
    for title, make in _patterns():
        yield title.replace(" ", "-"), Expression(title, make, BETTER, rtol=1e-4, atol=2e-3)
    for name, f in OF_ROWS.items():
        key = name.replace(" ", "-")
        for backward in (False, True):
            way = "forward and backward" if backward else "forward"
            title = f"{name} of rows of 4096x1024, {way}"
            of_rows = Expression(title, _of_rows(f, backward), ROWWISE, rtol=2e-3, atol=2e-4)
            yield key + ("-backward" if backward else ""), of_rows
    yield "transposed", Expression("x.T * 2 of 2000x3000", _transpose_2d, {"jax": 0.8})
    yield "symmetric", Expression("x + x.T of 2000x2000", _symmetric, {("numpy", "jax"): 0.8})
    yield "turned", Expression("x.transpose(2, 0, 1) * 2 of 100x200x300", _permute_3d, {"jax": 0.8})
    yield "columns", Expression("sum(exp(x.T), 1) of 2000x3000", _of_columns, {"jax": 0.8})
    yield "squares", Expression("sum of 25e6 squares", _squares, {"jax": 1.0}, moved=4 * SQUARES)


EXPRESSIONS = dict(_expressions())
ROWS = rows_of(EXPRESSIONS)
