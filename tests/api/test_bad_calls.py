"""What each public function says of bad arguments: it refuses what jax refuses, with an error of
jax's class, whose text names the function as the user called it, and says what to do.

In: `bad_calls.py`, and `bad_calls_exceptions.txt`: a pattern of names, what differs ("none": no
bad call is known; "accepted"; "class"; "text"), why. Out: assertions. What jax does is stored
(`oracle.py`).
"""

from __future__ import annotations

import ast
import builtins
import fnmatch
import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from api.bad_calls import OURS, TABLE, calls, given, outcome
from api.oracle import stored
from api.test_names import NAMES, find

import accnp
import accnp.numpy as jnp

FAMILIES = ("numpy.", "lax.", "nn.", "scipy.", "image.", "ops.", "random.", "tree.", "Array.")
EXCEPTIONS = [
    tuple(part.strip() for part in row.split(" | "))
    for row in (Path(__file__).parent / "bad_calls_exceptions.txt").read_text().splitlines()
    if row.strip() and not row.startswith("#")
]
LETTERS = {
    "T": "TypeError", "V": "ValueError", "I": "IndexError", "N": "NotImplementedError",
    "O": "OverflowError",
}  # fmt: skip


def excused(name: str) -> set[str]:
    """What is different about a function by the file of exceptions."""
    return {what for pattern, what, _ in EXCEPTIONS if fnmatch.fnmatchcase(name, pattern)}


def letter(error: Exception | None) -> str:
    """The class of an error: a letter, X for what is raised by accident, a dot for no error."""
    kinds = [] if error is None else [k.__name__ for k in type(error).__mro__]
    return next((x for x, k in LETTERS.items() if k in kinds), "X" if kinds else ".")


def of_jax(name: str) -> str:
    """What jax does with the bad calls of a function: arguments are made, nothing is compiled."""
    jax: Any = importlib.import_module("jax")
    for part in (
        "numpy.fft", "numpy.linalg", "scipy.special", "scipy.linalg", "scipy.stats", "scipy.signal",
        "scipy.fft", "scipy.ndimage", "scipy.integrate", "scipy.interpolate", "scipy.optimize",
        "scipy.sparse.linalg", "scipy.cluster.vq", "nn.initializers", "lax.linalg",
    ):  # fmt: skip
        importlib.import_module(f"jax.{part}")
    space = given(jax.numpy, jax)

    def one(call: str) -> str:
        tree = ast.parse(call, mode="eval").body
        if not isinstance(tree, ast.Call):
            return letter(outcome(call, space))
        try:
            f = eval(ast.unparse(tree.func), dict(space))
            args = [eval(ast.unparse(a), dict(space)) for a in tree.args]
            named = {str(k.arg): eval(ast.unparse(k.value), dict(space)) for k in tree.keywords}
        except Exception:
            return "."  # the argument itself is not to be had
        try:
            jax.eval_shape(lambda: (f(*args, **named), None)[1])
        except Exception as error:
            traced = re.search("Tracer|Concret", type(error).__name__)
            return letter(outcome(call, space) if traced else error)
        return "."

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "".join(one(call) for call, _ in calls(name))


def names_of(name: str) -> set[str]:
    """What a text may begin with: the last part of the name, or what its function is called."""
    last = name.split(".")[-1]
    if name.startswith("Array.at."):
        return {f"x.at[...].{last}"}
    return {last, getattr(find(name), "__name__", last), f"tree_{last}"}


def form(name: str, text: str) -> str:
    """What is wrong with the form of a text; nothing if it is empty."""
    heads = "|".join(map(re.escape, names_of(name)))
    if not re.match(rf"([\w.]+\.)?({heads})(:|\(\) )", text):
        return "names another function"
    if re.match(r"[\w.\[\]]+\(\) (got|missing|takes)", text) or "What to do:" in text:
        return ""  # Python's own words about arguments; a text about traced values
    if ";" not in text or text.rsplit(";", 1)[1].strip().startswith("got"):
        return "does not say what to do"
    return ""


def complaints(name: str) -> list[tuple[str, str, str]]:
    """What is wrong with what a function says of its bad calls: kind, call, text."""
    found = []
    for (call, wild), theirs in zip(calls(name), stored("bad_calls", name, lambda: of_jax(name))):
        if theirs == ".":
            continue
        error = outcome(call, OURS)
        if error is None:
            found.append(("accepted", call, ""))
            continue
        text = str(error)
        kind = getattr(builtins, LETTERS.get(theirs, "Exception"))
        if not wild and not isinstance(error, kind):
            found.append(("class", call, f"{type(error).__name__} for {kind.__name__}: {text}"))
        if form(name, text):
            found.append(("text", call, f"{form(name, text)}: {text}"))
    return found


@pytest.mark.parametrize("name", TABLE)
def test_bad_calls(name: str) -> None:
    assert [c for c in complaints(name) if c[0] not in excused(name)] == []


def test_every_function_has_a_bad_call() -> None:
    wanted = {
        name
        for name, (kind, _) in NAMES.items()
        if kind in ("function", "ufunc", "method") and name.startswith(FAMILIES)
    }
    refused = {
        name for name in TABLE if set(stored("bad_calls", name, lambda n=name: of_jax(n))) - {"."}
    }
    assert {name for name in wanted - refused if "none" not in excused(name)} == set()


def test_exceptions_are_used() -> None:
    unused = []
    for pattern, what, why in EXCEPTIONS:
        assert what in ("none", "accepted", "class", "text"), pattern
        assert why, pattern
        names = [n for n in {*TABLE, *NAMES} if fnmatch.fnmatchcase(n, pattern)]
        if what == "none":
            used = bool(names)
        else:
            used = any(c[0] == what for n in names if n in TABLE for c in complaints(n))
        unused += [] if used else [f"{pattern} {what}"]
    assert unused == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("jnp.sum(x, axes=0)", "did you mean 'axis'"),
        ("x.shpae", "Did you mean: 'shape'"),
        ("x.at[0].sett(1)", "Did you mean: 'set'"),
        ("jnp.searchsorted(v, v, side='rigth')", "did you mean 'right'"),
        ("jnp.ones(3, dtype='flaot32')", "did you mean 'float32'"),
        ("x @ x", "matmul: contracting axes must be equally long; got (3,) and (2,)"),
        ("jnp.dot(x, x)", "dot: contracting axes"),
        ("jnp.squeeze(x, 0)", "squeeze: only axes of length 1"),
        ("jnp.hstack([x, m])", "hstack: arrays may differ along the joined axis only"),
        ("x[9, 9, 9]", "x[...]: too many indices; got 3"),
        ("x.at[0].set(jnp.ones(7))", "x.at[...].set: values do not broadcast"),
        ("x & x", "bitwise_and: it takes no operands of this dtype; got float32"),
    ],
)
def test_what_users_read(call: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = outcome(call, OURS)
    assert error is not None
    sys.__excepthook__(type(error), error, None)  # which adds Python's own suggestion
    assert words in capsys.readouterr().err


def test_a_users_own_error_is_left_alone() -> None:
    def users(v: Any) -> Any:
        raise ValueError("my own words")

    for call in (accnp.jit(users), accnp.vmap(users), accnp.grad(users)):
        with pytest.raises(ValueError, match=r"^my own words$"):
            call(jnp.ones(3))
