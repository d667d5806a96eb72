"""Invalid calls, derived from valid ones by replacing each argument in turn by an invalid
value.

The input is `bad_calls.txt` with rows `name | call`: a call that JAX accepts, which this module
modifies, or after `!` one that JAX refuses. `invalid_calls(name)` returns the source of each
invalid call over the names of `call_scope`, whether the argument has a completely different type,
and the argument.
`raised_error(call, space)` returns the error that a call raises.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from api.test_names import find_object

import accnp

TABLE: dict[str, list[str]] = {}
for _row in (Path(__file__).parent / "bad_calls.txt").read_text().splitlines():
    if _row.strip() and not _row.startswith("#"):
        _name, _, _call = _row.partition(" | ")
        TABLE.setdefault(_name.strip(), []).append(_call.strip())


class NamespaceChain:
    """The names that calls use, looked up in the namespace, then in the package that contains
    it.
    """

    def __init__(self, jnp: Any, above: Any) -> None:
        self.spaces = (jnp, above)

    def __getattr__(self, name: str) -> Any:
        for space in self.spaces:
            if hasattr(space, name):
                return getattr(space, name)
        raise AttributeError(name)


def call_scope(jnp: Any, above: Any) -> dict[str, Any]:
    """Return the values of the names in calls."""
    space = NamespaceChain(jnp, above)
    return {
        "jnp": space,
        "jax": space,
        "lax": above.lax,
        "np": np,
        "key": above.random.key(0),
        "x": jnp.arange(6.0).reshape(2, 3),
        "v": jnp.arange(1.0, 4.0),
        "m": jnp.eye(3) * 2 + 1,
        "i": jnp.array([0, 2]),
    }


# What an argument is replaced by, by what it is.
INVALID_FOR_ANY = ["'a'", "None"]
INVALID_ARRAYS = ["jnp.ones((2, 3, 4, 5))", "jnp.ones(7)", "jnp.float32(1)", "jnp.ones((0,))",
    "[1.0, 2.0]", "({}) * 1j", "({}) > 0", "({}) * 1.5", "jnp.asarray({}).astype(int)"]  # fmt: skip
INVALID_INTEGERS = ["-99", "99", "2.5", "1j", "(0, 0)"]
INVALID_FLOATS = ["1j", "jnp.ones((7, 7, 7))"]
INVALID_STRINGS = ["'foo'", "3"]
INVALID_SEQUENCES = ["()", "(9, 9)", "3", "(-1,)", "('a',)", "2.5", "({0})[:1] + ({0})"]
INVALID_FUNCTIONS = ["3", "'a'"]
# Mistakes of the right kind, for which the class of the error must be jax's.
SAME_TYPE_VALUES = {
    *INVALID_ARRAYS,
    "-99",
    "99",
    "-2",
    "9",
    "(0, 0)",
    "'foo'",
    "'float33'",
    "(-1,)",
    "(9, 9)",
} - {"[1.0, 2.0]"}
# What a parameter that is not given gets, by its name or its default.
INVALID_BY_PARAMETER = {
    "axis": ["9", "(0, 0)", "'a'", "1.5"],
    "axes": ["9", "(0, 0)", "'a'", "(1.5,)"],
    "axis1": ["9", "'a'"],
    "axis2": ["9", "'a'"],
    "dimension": ["9"],
    "offset": ["2.5", "'a'"],
    "k": ["2.5", "'a'"],
    "dtype": ["'float33'", "'S'", "3"],
    "preferred_element_type": ["'float33'"],
    "shape": ["(-1,)", "2.5", "'a'"],
    "size": ["-2", "2.5", "'a'"],
    "out": ["0"],
    "precision": ["'foo'"],
    "where": ["'a'", "None"],
    "initial": ["'a'"],
}  # fmt: skip
UNTESTED_PARAMETERS = {
    "device",
    "out_sharding",
    "sharding",
    "name",
    "copy",
    "backend",
    "platform",
    "_deprecated",
}


def _invalid_values_for_default(value: Any) -> list[str]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return ["'a'", "-99", "2.5"]
    if isinstance(value, float):
        return ["'a'"]
    if isinstance(value, str):
        return ["'foo'", "3"]
    return ["'a'", "-99"] if value is None else []


def _invalid_values_for_argument(value: Any) -> list[str]:
    if isinstance(value, bool | type) or value is None:
        return []
    if isinstance(value, accnp.Array | np.ndarray | np.generic):
        return INVALID_ARRAYS
    for kinds, choice in (
        (int, INVALID_INTEGERS), (float | complex, INVALID_FLOATS), (str, INVALID_STRINGS),
        (tuple | list, INVALID_SEQUENCES),
    ):  # fmt: skip
        if isinstance(value, kinds):
            return choice
    return INVALID_FUNCTIONS if callable(value) else []


ACCNP_SCOPE = call_scope(accnp.numpy, accnp)


def evaluate_or_none(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, dict(ACCNP_SCOPE))
    except Exception:
        return None


def invalidate_arguments(call: str, parameters: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Yield the calls that differ from a valid one in one argument, whether it has a completely
    different type, and its source.
    """
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    function, places = ast.unparse(tree.func), [ast.unparse(a) for a in tree.args]
    words = {k.arg: ast.unparse(k.value) for k in tree.keywords}

    def text(places: list[str], words: dict[str | None, str]) -> str:
        return f"{function}({', '.join([*places, *[f'{k}={t}' for k, t in words.items()]])})"

    for i, old in enumerate(places):
        for bad in [*INVALID_FOR_ANY, *_invalid_values_for_argument(evaluate_or_none(old))]:
            changed = [*places[:i], bad.format(old), *places[i + 1 :]]
            yield text(changed, words), bad not in SAME_TYPE_VALUES, changed[i]
    for word, old in words.items():
        for bad in [*INVALID_FOR_ANY, *_invalid_values_for_argument(evaluate_or_none(old))]:
            yield (
                text(places, {**words, word: bad.format(old)}),
                bad not in SAME_TYPE_VALUES,
                bad.format(old),
            )
    if places:
        yield text([], words), False, ""
    known = {p: d for p, d in parameters.items() if p not in words}
    for p, default in list(known.items())[len(places) :]:
        if p not in UNTESTED_PARAMETERS:
            for bad in INVALID_BY_PARAMETER.get(p) or _invalid_values_for_default(default):
                yield text(places, {**words, p: bad}), bad not in SAME_TYPE_VALUES, bad
    if parameters:
        last = list(parameters)[-1]
        yield text(places, {**words, last[:-1] + last[-1] * 2: "0"}), False, ""


def invalid_calls(name: str) -> list[tuple[str, bool, str]]:
    """Return all invalid calls of a function, including those that JAX accepts nevertheless."""
    unique: dict[str, tuple[str, bool, str]] = {}
    for call in TABLE.get(name, []):
        if call.startswith("!"):
            unique.setdefault(call[1:].strip(), (call[1:].strip(), False, ""))
        else:
            for one in invalidate_arguments(call, named_parameters(name)):
                unique.setdefault(one[0], one)
    return list(unique.values())


def named_parameters(name: str) -> dict[str, Any]:
    """Return the parameters of a public function that can be passed by name, with their
    defaults.
    """
    try:
        known = inspect.signature(find_object(name)).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def raised_error(call: str, space: dict[str, Any]) -> Exception | None:
    """Return the error that a call raises, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, dict(space))
    except Exception as error:
        return error
    return None
