"""Docstrings contain what a caller must know: an example, shapes, dtypes and errors.

The test covers the public functions, classes and methods of the tables of names.
`docstring_exceptions.txt` lists exceptions: a pattern of names, what is not required, and the
reason. The dtypes that generated docstrings of elementwise functions state are checked by calling
the functions.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from types import GenericAlias
from typing import Any

import pytest
from api.test_names import NAMES, find_object

import accnp
from accnp.numpy.ufunc_docstrings import refused
from accnp.numpy.ufuncs import BINARY, UNARY

WORDS = {
    "an example": r">>> ",
    "shapes": r"[Ss]hape|ax[ei]s|\[(\d|n|m|k|M)\b|matri|vector|scalar|element|broadcast|\(n,",
    "dtypes": r"[Dd]types?\b|[Ff]loat|int\d|[Ii]nteger|\b[Bb]ool|[Cc]omplex",
    "errors": r"Raises:|raise[sd]?\b|[Ee]rrors?\b",
}
KINDS = {"class", "exception", "function", "method", "ufunc", "used"}
EXCEPTIONS = [
    tuple(part.strip() for part in line.split(" | "))
    for line in (Path(__file__).parent / "docstring_exceptions.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]
# Type aliases have no docstring, and re-exported objects of NumPy keep NumPy's.
PUBLIC = {
    name: found
    for name, (kind, _) in NAMES.items()
    if kind in KINDS
    and callable(found := find_object(name))
    and not isinstance(found, GenericAlias)
    and str(getattr(found, "__module__", "accnp")).startswith("accnp")
}
MADE = {name: f for name, f in UNARY.items() if name not in ("modf", "isneginf", "isposinf")}
MADE |= {name: made.function for name, made in BINARY.items()}
TYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]


def prose(text: str) -> str:
    """Return a docstring without its examples."""
    return "\n".join(re.split(r"\n\s*>>> ", text)[:1])


def silent(what: str) -> set[str]:
    """Return the names whose docstrings contain none of the words for this topic."""
    names = set()
    for name, value in PUBLIC.items():
        text = getattr(value, "__doc__", None) or ""
        if not re.search(WORDS[what], text if what == "an example" else prose(text)):
            names.add(name)
    return names


def excused(what: str) -> dict[str, set[str]]:
    """Return the exceptions for this topic, with the names that each applies to."""
    patterns = [p for p, whats, _ in EXCEPTIONS if what in [w.strip() for w in whats.split(",")]]
    return {p: set(fnmatch.filter(PUBLIC, p)) for p in patterns}


@pytest.mark.parametrize("what", WORDS)
def test_docstrings_contain_required_words(what: str) -> None:
    missing = silent(what) - set().union(*excused(what).values())
    assert not missing, f"docstrings without a word on {what}: {sorted(missing)}"


@pytest.mark.parametrize("what", WORDS)
def test_exceptions_are_needed_and_have_reasons(what: str) -> None:
    for pattern, names in excused(what).items():
        assert names & silent(what), f"{pattern} says {what} by now: the word can go"
    assert all(len(why.split()) > 3 for _, _, why in EXCEPTIONS)


def test_there_are_functions() -> None:
    assert len(PUBLIC) > 1200
    assert len(MADE) > 90


@pytest.mark.parametrize("name", MADE)
def test_docstrings_of_elementwise_functions_describe_dtypes(name: str) -> None:
    function, text = MADE[name], MADE[name].__doc__ or ""
    for dtype in TYPES:
        x = accnp.ones(2, dtype)
        operands = (x, x) if name in BINARY else (x,)
        kind = {"b": "b", "c": "c"}.get(x.dtype.kind, "f" if "float" in dtype else "i")
        if kind in refused(name):
            with pytest.raises(ValueError if name in ("gcd", "lcm") else TypeError):
                function(*operands)
            continue
        out: Any = function(*operands)
        first = out[0] if isinstance(out, tuple) else out
        assert str(first.dtype) == documented_dtype(text, dtype, kind), (name, dtype)


def documented_dtype(text: str, dtype: str, kind: str) -> str:
    """Return the dtype of a result according to a docstring."""
    if "The dtype is bool" in text:
        return "bool"
    if "dtype is uint8" in text:
        return "uint8"
    if "or of its parts if" in text and kind == "c":
        return "float32"
    if "give the default float dtype" in text and kind in "bi":
        return "float32"
    if "Bools give int32" in text and kind == "b":
        return "int32"
    return dtype


def test_words_are_searched_outside_of_examples() -> None:
    text = "Do it.\n\n    >>> f(1)\n    Array(1, dtype=int32)\n"
    assert prose(text) == "Do it."
