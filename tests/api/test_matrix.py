"""Functions of the core namespace with their tangents and gradients, compared with JAX.

The expressions are in `matrix.py`. JAX compiles one program for each group of a few expressions.
`test_values.py` covers `jit`, `vmap` and both precisions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from api.matrix import CASES, inputs
from api.oracle import jax_result

import accnp

GROUP = 20
CHUNKS = [CASES[i : i + GROUP] for i in range(0, len(CASES), GROUP)]
QUICK = {"xla_backend_optimization_level": 0}  # its programs run once
SCALE = {"digamma": 30, "lgamma": 10, "power": 5, "pow": 5}


def make_function(text: str, m: Any) -> Callable[..., Any]:
    """Return an expression as a function of the arrays that it uses, for JAX or accnp."""
    scope = {"jnp": m.numpy, "lax": m.lax, "random": m.random, "nn": m.nn, "np": np}
    code = compile(text, text, "eval")
    return lambda **arrays: eval(code, scope, arrays) if arrays else eval(code, scope)


def select_arrays(text: str, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {k: data[k] for k in sorted(data) if re.search(rf"(?<![\w.'\"]){k}(?![\w'\"])", text)}


def array_leaves(m: Any, result: Any) -> list[Any]:
    return [x for x in m.tree.leaves(result) if isinstance(x, m.Array)]


def static_results(m: Any, result: Any) -> list[Any]:
    """Return the results that are not arrays: shapes, types and flags."""
    return [str(x) for x in m.tree.leaves(result) if not isinstance(x, m.Array)]


def weighted_sum(m: Any, f: Callable[..., Any], fixed: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a weighted sum of the real and complex results."""

    def run(moving: dict[str, Any]) -> Any:
        out: Any = m.numpy.zeros((), "float32")
        for x in array_leaves(m, f(**fixed, **moving)):
            if m.numpy.issubdtype(x.dtype, np.inexact):
                weights = np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape)
                out = out + (m.numpy.real(x) * weights).sum()
                if m.numpy.issubdtype(x.dtype, np.complexfloating):
                    out = out + (m.numpy.imag(x) * (weights + 0.5)).sum()
        return out

    return run


def split_differentiable(arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    moving = {k: v for k, v in arrays.items() if v.dtype.kind == "f"}
    return moving, {k: v for k, v in arrays.items() if k not in moving}


def transformed_results(
    m: Any, text: str, arrays: dict[str, Any], selected: Any = None
) -> dict[str, Any]:
    """Return value, tangent and gradient of an expression in one library.

    Without `selected`, those that the library refuses are omitted.
    """
    f = make_function(text, m)
    moving, fixed = split_differentiable(arrays)
    tangents = {k: v * 0.5 + 0.25 for k, v in moving.items()}

    def tangent() -> list[Any]:
        out = m.jvp(lambda a: array_leaves(m, f(**fixed, **a)), (moving,), (tangents,))[1]
        return [t for t in out if t.dtype != jax.dtypes.float0]

    results = {"value": array_leaves(m, f(**arrays))}
    others = {"jvp": tangent, "grad": lambda: [*m.grad(weighted_sum(m, f, fixed))(moving).values()]}
    for way, compute in others.items() if moving else ():
        try:
            if selected is None or way in selected:
                results[way] = compute()
        except (NotImplementedError, ValueError):
            if selected is not None:
                raise
    return results


@functools.cache
def jax_results(chunk: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return JAX's results for a few expressions, compiled as one program."""
    static: dict[str, Any] = {}

    def run(arrays: dict[str, Any]) -> dict[str, Any]:
        out = {}
        for text in CHUNKS[chunk]:
            mine = {k: arrays[k] for k in select_arrays(text, data)}
            static[text] = static_results(jax, make_function(text, jax)(**mine))
            out[text] = transformed_results(jax, text, mine)
        return out

    data = inputs()
    out = jax.jit(run, compiler_options=QUICK)({k: jax.numpy.asarray(v) for k, v in data.items()})
    return out, static


def assert_close(ours: Any, theirs: Any, why: str, scale: float = 1.0) -> None:
    expected, weak = np.asarray(theirs), theirs.weak_type
    actual = np.asarray(ours)
    assert actual.shape == expected.shape, why
    assert actual.dtype == expected.dtype, why
    if expected.dtype != bool:
        assert ours.weak_type == weak, f"{why}: weak type"
    if expected.dtype.kind in "fc":
        limit = scale * 8e-6
        np.testing.assert_allclose(actual, expected, rtol=limit, atol=limit, err_msg=why)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=why)


@pytest.mark.parametrize("text", CASES)
def test_as_jax(text: str) -> None:
    """Compare values, tangents and gradients with their types and weak flags."""
    data, chunk = select_arrays(text, inputs()), CASES.index(text) // GROUP
    expected, static = jax_result(
        lambda: [results[text] for results in jax_results(chunk)], text, data
    )
    scale = next((v for k, v in SCALE.items() if k in text), 1)
    arrays = {k: accnp.asarray(v) for k, v in data.items()}
    assert static_results(accnp, make_function(text, accnp)(**arrays)) == static
    actual = transformed_results(accnp, text, arrays, expected)
    for way, expected_leaves in expected.items():
        assert len(actual[way]) == len(expected_leaves), way
        for a, b in zip(actual[way], expected_leaves):
            assert_close(a, b, way, scale if way == "value" else 4 * scale)
