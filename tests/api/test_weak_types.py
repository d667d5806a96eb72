"""Weak types of results, for the calls of each recipe with one or all operands weak.

The calls are those of `recipes.py`. The dtypes of the results, with `~` before a weak one, are
compared with those of JAX (`expected/weak_types.json`). Only types are inferred, so that nothing is
compiled. `exceptions.txt` lists intended differences.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from api.answers import call, flatten_result
from api.exceptions import exceptions
from api.oracle import stored_result
from api.recipes import Case, cases, operands, recipes

import accnp

EXCEPTIONS = exceptions("weak types")
FAMILIES = (
    "numpy.", "lax.", "nn.", "ops.", "Array.", "random.", "scipy.fft.", "scipy.linalg.",
    "scipy.signal.", "scipy.special.", "scipy.stats.",
)  # fmt: skip
# Of what Python's numbers become.
DTYPES = ("float32", "int32", "complex64", "bool")


def calls(name: str) -> Iterator[tuple[Case, str]]:
    """Return the calls of a function, each with its weak operands: all of them, or one."""
    for case in cases(name):
        if case.layout != "base" or case.dtype not in DTYPES:
            continue
        letters = [k for k, v in operands(case).items() if v.dtype.name in DTYPES[:3]]
        if not letters or (case.more and case.dtype != "float32"):
            continue
        yield case, "".join(letters)
        if len(letters) > 1 and not case.more:
            yield from ((case, k) for k in letters)


def weak_array(m: Any, x: np.ndarray) -> Any:
    """Return a weakly typed array, made from Python numbers."""
    numbers = [m.numpy.asarray(v) for v in x.ravel().tolist()]
    return m.numpy.stack(numbers).reshape(x.shape) if numbers else m.numpy.full(x.shape, 1.0)


def result_types(m: Any, name: str, case: Case, weak: str) -> str:
    """Return the dtypes of the results of a call: `-` if none is an array, `!` if it is refused."""
    values = operands(case)
    structs = {
        k: m.ShapeDtypeStruct(v.shape, v.dtype, weak_type=k in weak) for k, v in values.items()
    }
    run = functools.partial(_leaves, m, name, case)
    try:
        leaves = m.eval_shape(run, structs)
    except Exception:
        try:
            leaves = run(
                {
                    k: weak_array(m, v) if k in weak else m.numpy.asarray(v)
                    for k, v in values.items()
                }
            )
        except Exception:
            return "!"
    return ",".join(f"{weak_mark(x)}{x.dtype}" for x in leaves) or "-"


def weak_mark(x: Any) -> str:
    """Return `~` for a weak number; the flag has no meaning for booleans."""
    return "~" if getattr(x, "weak_type", False) and x.dtype != bool else ""


def _leaves(m: Any, name: str, case: Case, arrays: dict[str, Any]) -> list[Any]:
    return flatten_result(m, call(m, name, case, arrays))[1]


def jax_types(name: str) -> str:
    import jax

    return " ".join(result_types(jax, name, *c) for c in calls(name))


def matching_exceptions(name: str, text: str | None = None) -> list[tuple[str, ...]]:
    """Return the listed exceptions for a call, or for a function."""
    return [
        line
        for line in EXCEPTIONS
        if fnmatch.fnmatchcase(name, line[0])
        and (text is None or fnmatch.fnmatchcase(text, line[2]))
    ]


@pytest.mark.parametrize("name", [n for n in sorted(recipes()) if n.startswith(FAMILIES)])
def test_weak_results(name: str) -> None:
    expected = stored_result("weak_types", name, lambda: jax_types(name)).split()
    mismatches, used = [], set()
    for (case, weak), theirs in zip(calls(name), expected, strict=True):
        ours = result_types(accnp, name, case, weak)
        if ours != theirs and "!" not in (ours, theirs):
            text = f"{case.arguments} {case.dtype} {weak}"
            lines = matching_exceptions(name, text)
            used.update(lines)
            mismatches += [] if lines else [f"{text}: {ours}, jax {theirs}"]
    assert mismatches == []
    assert set(matching_exceptions(name)) == used, "these excuse nothing"
