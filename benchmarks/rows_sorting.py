"""Rows of sorts, argsorts, searches, selections and unique values of a million elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.expressions import Expression, Made, normal, rows_of

MILLION = 1_000_000
BARS: dict[Any, float] = {"numpy": 1.0, "jax": 0.3}
EAGER: dict[Any, float] = {"numpy": 1.0, "jax eager": 0.3}
PERCENTILES = np.array([10.0, 50.0, 90.0], np.float32)


def _ints() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1000, MILLION).astype(np.int32)


def _make(text: str, *arguments: Callable[[], Any]) -> Callable[[Any], Made]:
    """Return an expression of x (and y) in the names of `jax.numpy` and `lax`."""

    def make(m: Any) -> Made:
        scope = {"jnp": m.numpy, "lax": m.lax}
        names = ", ".join("xy"[: len(arguments)])
        return eval(f"lambda {names}: {text}", scope), tuple(f() for f in arguments)

    return make


def _line() -> np.ndarray:
    return normal(0, MILLION)


def _table() -> np.ndarray:
    return normal(0, 1000, 1000)


def _sorted_values(step: int = 1) -> Callable[[], np.ndarray]:
    return lambda: np.sort(normal(1, MILLION))[::step].copy()


def _exact_expression(
    title: str, make: Callable[[Any], Made], bars: Any = None, **more: Any
) -> Expression:
    return Expression(title, make, bars or BARS, rtol=0, atol=0, **more)


EXPRESSIONS = {
    "sort": _exact_expression("sort of 1e6 float32", _make("jnp.sort(x)", _line)),
    "argsort": _exact_expression("argsort of 1e6 float32", _make("jnp.argsort(x)", _line)),
    "sort-int": _exact_expression("sort of 1e6 int32 below 1000", _make("jnp.sort(x)", _ints)),
    "argsort-int": _exact_expression(
        "argsort of 1e6 int32 below 1000",
        _make("jnp.argsort(x)", _ints),
        expected=lambda x: np.argsort(x, kind="stable"),
    ),
    "sort-rows": _exact_expression(
        "sort of the rows of 1000x1000", _make("jnp.sort(x, axis=1)", _table)
    ),
    "sort-columns": _exact_expression(
        "sort of the columns of 1000x1000", _make("jnp.sort(x, axis=0)", _table)
    ),
    "unique": _exact_expression(
        "unique of 1e6 float32",
        _make("jnp.unique(x)", _line),
        EAGER,
        eager=True,
        expected=np.unique,
    ),
    "unique-int": _exact_expression(
        "unique of 1e6 int32 below 1000",
        _make("jnp.unique(x)", _ints),
        EAGER,
        eager=True,
        expected=np.unique,
    ),
    "searchsorted": _exact_expression(
        "searchsorted of 1e6 in 1e6", _make("jnp.searchsorted(x, y)", _sorted_values(), _line)
    ),
    "searchsorted-sorted": _exact_expression(
        "searchsorted of 1e6 sorted in 1e6",
        _make("jnp.searchsorted(x, y)", _sorted_values(), lambda: np.sort(_line())),
    ),
    "searchsorted-small": _exact_expression(
        "searchsorted of 1e6 in 1e4", _make("jnp.searchsorted(x, y)", _sorted_values(100), _line)
    ),
    "median": Expression("median of 1e6", _make("jnp.median(x)", _line), BARS),
    "median-rows": Expression(
        "median of the rows of 1000x1000", _make("jnp.median(x, axis=1)", _table), BARS
    ),
    "percentile": Expression(
        "percentiles 10, 50, 90 of 1e6",
        _make("jnp.percentile(x, y)", _line, lambda: PERCENTILES),
        BARS,
    ),
    "partition": _exact_expression(
        "partition of 1e6 at the middle",
        _make("jnp.partition(x, 500_000)", _line),
        expected=np.sort,
        compared=lambda y: (np.sort(y[:500_000]), y[500_000], np.sort(y[500_001:])),
    ),
    "top-k": _exact_expression(
        "top_k(10) of 1e6",
        _make("lax.top_k(x, 10)", _line),
        {"argpartition": 1.0, "jax": 0.3},
        peers={"argpartition": lambda x: lambda: _best(x, 10)},
    ),
    "top-k-rows": _exact_expression(
        "top_k(10) of the rows of 1000x1000",
        _make("lax.top_k(x, 10)", _table),
        {"argpartition": 1.0, "jax": 0.3},
        peers={"argpartition": lambda x: lambda: _best(x, 10)},
    ),
}


def _best(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest elements and their indices, largest first, as one writes it
    with NumPy."""
    places = np.argpartition(x, -k, axis=-1)[..., -k:]
    values = np.take_along_axis(x, places, -1)
    order = np.argsort(-values, axis=-1)
    return np.take_along_axis(values, order, -1), np.take_along_axis(places, order, -1)


ROWS = rows_of(EXPRESSIONS)
