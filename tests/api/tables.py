"""Assertions that expressions have the same results in accnp and in JAX.

The functions take the source of an expression such as "roll(X, 2)", two modules, and the arrays
that the source uses.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import numpy as np
from api.oracle import jax_result
from api.support import assert_same, result_or_error

import accnp


def compare_expression(
    text: str, ours: ModuleType, theirs: ModuleType, scale: float = 1.0, **arrays: Any
) -> None:
    """Evaluate an expression in both namespaces, on NumPy arrays and on arrays of each library."""

    def evaluated(module: ModuleType, jnp: Any, convert: bool) -> Any:
        names = {n: jnp.asarray(a) if convert else a for n, a in arrays.items()}
        scope = {**{n: getattr(module, n) for n in dir(module)}, "np": np, "jnp": jnp, **names}
        return _arrays(result_or_error(lambda: eval(text, scope)), jnp)

    for convert in (False, True):
        mine = evaluated(ours, accnp.numpy, convert)
        other = jax_result(lambda c=convert: evaluated(theirs, jax.numpy, c), text, arrays)
        if isinstance(other, Exception):
            raise AssertionError(f"jax refuses {text}: {other!r}")
        if isinstance(mine, Exception):
            raise AssertionError(f"{text} fails where jax gives {other}") from mine
        assert_same(mine, other, scale)


def _arrays(x: Any, jnp: Any) -> Any:
    """Convert results to arrays, because functions may return NumPy arguments unchanged."""
    if isinstance(x, tuple | list):
        return tuple([_arrays(v, jnp) for v in x])
    return jnp.asarray(x) if isinstance(x, np.ndarray) else x


def compare_gradients(text: str, scale: float = 1.0, **arrays: Any) -> None:
    """Compare the gradients of sum(sin(expression)) with respect to each array with those of
    JAX.
    """

    def total(jnp: Any) -> Any:
        def run(values: dict[str, Any]) -> Any:
            scope = {**{n: getattr(jnp, n) for n in dir(jnp)}, "np": np, "jnp": jnp, **values}
            return jnp.sum(jnp.sin(eval(text, scope)))

        return run

    def ask() -> Any:
        return jax.grad(total(jax.numpy))({n: jax.numpy.asarray(a) for n, a in arrays.items()})

    mine = accnp.grad(total(accnp.numpy))({n: accnp.asarray(a) for n, a in arrays.items()})
    other = jax_result(ask, text, arrays)
    for name in arrays:
        a, b = np.asarray(mine[name]), np.asarray(other[name])
        np.testing.assert_allclose(a, b, rtol=2e-4 * scale, atol=2e-5 * scale, err_msg=name)


def split_cases(table: str) -> list[str]:
    """Split a table of expressions, separated by bars or lines."""
    parts = [t.strip() for line in table.splitlines() for t in line.split(" | ")]
    return [t.strip(" |") for t in parts if t.strip(" |")]
