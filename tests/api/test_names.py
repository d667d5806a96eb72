"""Every public name of JAX 0.10 exists with the same signature. `names.tsv` lists the names, and
`exceptions.txt` the intended differences with their reasons.
"""

from __future__ import annotations

import ast
import enum
import fnmatch
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
from api.exceptions import exceptions

import accnp

FOLDER = Path(__file__).parent
NAMES = {
    name: (kind, *signature, "")[:2]
    for name, kind, *signature in (
        line.split("\t") for line in (FOLDER / "names.tsv").read_text().splitlines()
    )
}
EXCEPTIONS = exceptions("names")
# Defaults that jax has an object of its own for, which means "not given".
SENTINELS = {
    "DeprecatedArg", "NoDefault", "NotSpecified", "Unspecified", "UnspecifiedValue", "object",
}  # fmt: skip
# Their rows are the signatures of classes, and instances are what users meet, or of operators.
WITHOUT_SIGNATURE = {"constant", "dunder", "exception", "module", "primitive", "property", "used"}


def listed_differences(name: str) -> dict[str, str]:
    """Return the class of the listed difference of a name, and its reason."""
    return {what: why for pattern, what, _, why in EXCEPTIONS if fnmatch.fnmatchcase(name, pattern)}


def find_object(name: str) -> Any:
    """Return the object with a dotted name; None if it does not exist."""
    value: Any = accnp
    if name.startswith("Array.at."):
        value, name = accnp.numpy.zeros(3).at[0], name.removeprefix("Array.at.")
    parts = name.split(".")
    for i, part in enumerate(parts):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(["accnp", *parts[: i + 1]]))
            except ImportError:
                return None
    return True if value is None else value


Parameters = dict[str, tuple[str, str | None]]


def parse_signature(signature: str) -> Parameters:
    """Parse a signature of the table: name -> kind, source of the default."""
    definition = ast.parse(f"def f{signature}: pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    a = definition.args
    places = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(places) - len(a.defaults)) + list(a.defaults)
    declared = {}
    for i, (p, value) in enumerate(zip(places, defaults)):
        kind = "POSITIONAL_ONLY" if i < len(a.posonlyargs) else "POSITIONAL_OR_KEYWORD"
        declared[p.arg] = (kind, value and ast.unparse(value))
    if a.vararg:
        declared[a.vararg.arg] = ("VAR_POSITIONAL", None)
    for p, value in zip(a.kwonlyargs, a.kw_defaults):
        declared[p.arg] = ("KEYWORD_ONLY", value and ast.unparse(value))
    if a.kwarg:
        declared[a.kwarg.arg] = ("VAR_KEYWORD", None)
    return declared


def same_default(text: str | None, parameter: inspect.Parameter) -> bool:
    """Return whether a default matches the table, which lists objects without a source by their
    class.
    """
    if text is None or parameter.default is parameter.empty:
        return text is None and parameter.default is parameter.empty
    if text in SENTINELS:
        return True
    value = parameter.default
    return text in (repr(value), getattr(value, "__name__", None), type(value).__name__)


def differences(name: str, kind: str, signature: str) -> tuple[str, str]:
    """Return how a name differs ("", "absent", "signature" or "more"), and a description."""
    value = find_object(name)
    if value is None:
        return "absent", "there is no such name"
    is_enum = isinstance(value, type) and issubclass(value, enum.Enum)
    if kind in WITHOUT_SIGNATURE or not signature or is_enum:
        return "", ""
    if kind == "class" and signature in ("()", "(*args, **kwargs)"):
        return "", ""  # not made by calling, or by whatever the class of the class takes
    try:
        ours = dict(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return "signature", f"it has no signature, where jax has {signature}"
    theirs = parse_signature(signature)
    shown = f"{inspect.signature(value)}, where jax has {signature}"
    if kind == "method":  # of the class: the array is the first parameter
        theirs.pop("self", None)
        if not name.startswith("Array.at."):
            ours.pop(next(iter(ours)))
    extra = [n for n in ours if n not in theirs]
    rest = {n: p for n, p in ours.items() if n in theirs}
    order = [n for n, p in rest.items() if p.kind is not p.KEYWORD_ONLY]
    matches = order == [n for n, (k, _) in theirs.items() if k != "KEYWORD_ONLY"] and all(
        n in rest and rest[n].kind.name == k and same_default(default, rest[n])
        for n, (k, default) in theirs.items()
    )
    if not matches or any(_required(ours[n]) for n in extra):
        return "signature", shown
    return ("more", shown) if extra else ("", "")


def _required(p: inspect.Parameter) -> bool:
    return p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)


@pytest.mark.parametrize("name", NAMES)
def test_name(name: str) -> None:
    what, words = differences(name, *NAMES[name])
    assert not what or what in listed_differences(name), f"{name}: {words}"


def test_exceptions_are_needed_and_have_reasons() -> None:
    different = {n: differences(n, *row)[0] for n, row in NAMES.items()}
    for pattern, what, _, why in EXCEPTIONS:
        differing = {different[n] for n in fnmatch.filter(NAMES, pattern)}
        assert what in differing - {""}, f"{pattern} is {what} no more: the line can go"
        assert len(why.split()) > 3, pattern
