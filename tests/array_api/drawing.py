"""Hypothesis strategies for arrays, and assertions that a call agrees with `array_api_strict`.

The functions take kinds of dtypes, and a function of a namespace. Values are computed by the NumPy
reference functions of the ops (`api.support.value_of`): these tests check which ops are recorded,
for which shapes and dtypes; other tests check kernels.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import hypothesis.extra.numpy as hnp
import numpy as np
from api.support import value_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import accnp
import accnp.numpy as jnp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # 2025.12 is new there
    strict.set_array_api_strict_flags(api_version="2025.12")

INTEGERS = [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
KINDS = {
    "bool": ["bool"],
    "integer": INTEGERS,
    "float": FLOATS,
    "complex": COMPLEX,
    "real": INTEGERS + FLOATS,
    "inexact": FLOATS + COMPLEX,
    "numeric": INTEGERS + FLOATS + COMPLEX,
    "bits": ["bool", *INTEGERS],
    "any": ["bool", *INTEGERS, *FLOATS, *COMPLEX],
}
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
WITH_AXES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)
NUMBERS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.25, -3.5, 7.0, 100.0]
# What `array_api_strict` raises at operands that the standard says nothing of. A test in which all
# draws are such fails.
REFUSES = (TypeError, ValueError, IndexError)
COMPARED: list[int] = []
ODD = [math.inf, -math.inf, math.nan]
PARTS = st.sampled_from([0.0, 0.5, -1.0, 2.0])


def elements(dtype: str, odd: bool = False) -> st.SearchStrategy[Any]:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        return st.integers(-5 if kind == "i" else 0, 7)
    if kind == "f":
        return st.sampled_from(NUMBERS + ODD if odd else NUMBERS)
    return st.builds(complex, PARTS, PARTS)


def arrays(kind: str, shape: Any = SHAPES, odd: bool = False) -> st.SearchStrategy[np.ndarray]:
    """Draw arrays of a kind of dtypes (or of one dtype)."""
    return st.sampled_from(KINDS.get(kind, [kind])).flatmap(
        lambda d: hnp.arrays(d, shape, elements=elements(d, odd))
    )


def several(
    count: int, kind: str, same_dtype: bool = False, odd: bool = False
) -> st.SearchStrategy[Any]:
    """Draw arrays whose shapes broadcast."""
    shapes = hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=3, min_side=0)
    kinds = st.sampled_from(KINDS[kind]) if same_dtype else st.just(kind)
    return st.tuples(shapes, kinds).flatmap(
        lambda t: st.tuples(*[arrays(t[1], s, odd) for s in t[0].input_shapes])
    )


def with_axis(kind: str, odd: bool = False, **more: Any) -> st.SearchStrategy[Any]:
    """Draw (array, axis, ...) with one axis of the array."""
    return arrays(kind, WITH_AXES, odd).flatmap(
        lambda x: st.tuples(st.just(x), st.integers(-x.ndim, x.ndim - 1), *more.values())
    )


def with_axes(kind: str, odd: bool = False, **more: Any) -> st.SearchStrategy[Any]:
    """Draw (array, axes, ...) with None, an axis, or several."""

    def axes(x: np.ndarray) -> Any:
        if not x.ndim:
            return st.none()
        tuples = st.lists(st.integers(0, x.ndim - 1), unique=True).map(tuple)
        return st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1), tuples)

    return arrays(kind, SHAPES, odd).flatmap(
        lambda x: st.tuples(st.just(x), axes(x), *more.values())
    )


def draws(strategy: Any, count: int = 8) -> Callable[[Callable[..., None]], Any]:
    """Run the test for `count` draws, always the same ones, with 64-bit types."""

    def wrap(test: Callable[..., None]) -> Any:
        def body(drawn: Any) -> None:
            with accnp.enable_x64(), np.errstate(all="ignore"):
                test(drawn)

        run = settings(
            max_examples=count,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )(given(drawn=strategy)(body))

        def test_of_all_draws() -> None:
            before = len(COMPARED)
            run()
            assert len(COMPARED) > before, "nothing was compared"

        return test_of_all_draws

    return wrap


def plain(x: Any) -> Any:
    """Convert a result to NumPy arrays and Python values."""
    if isinstance(x, tuple | list):
        return [plain(v) for v in x]
    if isinstance(x, accnp.Array):
        return np.asarray(value_of(x))
    return np.asarray(x) if hasattr(x, "__array_namespace__") else x


def _for(xp: Any, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return xp.asarray(x.copy())
    if isinstance(x, np.dtype):
        return getattr(xp, x.name)
    if isinstance(x, tuple | list):
        return type(x)([_for(xp, v) for v in x])
    return x


def compare(actual: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, list):
        assert isinstance(actual, list)
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            compare(a, b, tolerance)
    elif isinstance(expected, np.ndarray):
        assert isinstance(actual, np.ndarray)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind not in "fc":
            np.testing.assert_array_equal(actual, expected)
            return
        single = expected.dtype.name in ("float32", "complex64")
        bound = tolerance if single else tolerance * 1e-6
        np.testing.assert_allclose(actual, expected, rtol=bound, atol=bound)
    else:
        assert actual == expected


def agree(call: str | Callable[..., Any], *args: Any, tolerance: float = 2e-5, **kw: Any) -> None:
    """Assert that a function of the namespace has the results of `array_api_strict`."""

    def run(xp: Any) -> Any:
        if callable(call):
            return plain(call(xp, *_for(xp, args), **{k: _for(xp, v) for k, v in kw.items()}))
        function = xp
        for part in call.split("."):
            function = getattr(function, part)
        return plain(function(*_for(xp, args), **{k: _for(xp, v) for k, v in kw.items()}))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = run(strict)
    except REFUSES:
        return  # the standard leaves it open
    compare(run(jnp), expected, tolerance)
    COMPARED.append(1)
