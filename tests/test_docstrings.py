"""Docstrings say what a caller has to know: an example, shapes, dtypes and errors.

In: the public functions of `jax.numpy`, `numpy.linalg` and `numpy.fft`, by the tables of names. And
what generated docstrings of elementwise functions say of dtypes is asked of the functions.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from api.test_names import NAMES, find

import accnp
from accnp.api.elements.doc_texts import refused
from accnp.api.elements.ufuncs import BINARY, UNARY

WORDS = {
    "an example": r">>> ",
    "shapes": r"[Ss]hape|ax[ei]s|\[(\d|n|m|k|M)\b|matri|vector|scalar|element|broadcast|\(n,",
    "dtypes": r"[Dd]types?\b|float|int\d|integer|\bbool|complex",
    "errors": r"Raises:|raise[sd]?\b|[Ee]rrors?\b",
}
# NumPy's own functions, which have NumPy's texts.
NUMPYS = {"get_printoptions", "iterable", "printoptions", "save", "savez", "set_printoptions"}
FUNCTIONS = {
    name: find(name)
    for name, (kind, _) in NAMES.items()
    if kind in ("function", "ufunc")
    and name.split(".")[0] == "numpy"
    and name.split(".")[-1] not in NUMPYS
    and callable(find(name))
}
MADE = {name: f for name, f in UNARY.items() if name not in ("modf", "isneginf", "isposinf")}
MADE |= {name: made.function for name, made in BINARY.items()}
TYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]


def prose(text: str) -> str:
    """A docstring without its examples."""
    return "\n".join(re.split(r"\n\s*>>> ", text)[:1])


@pytest.mark.parametrize("what", WORDS)
def test_docstrings_say(what: str) -> None:
    silent = []
    for name, function in FUNCTIONS.items():
        text = function.__doc__ or ""
        if not re.search(WORDS[what], text if what == "an example" else prose(text)):
            silent.append(name)
    assert not silent, f"docstrings without a word on {what}"


def test_there_are_functions() -> None:
    assert len(FUNCTIONS) > 350
    assert len(MADE) > 90


@pytest.mark.parametrize("name", MADE)
def test_what_elementwise_functions_say_of_dtypes(name: str) -> None:
    function, text = MADE[name], MADE[name].__doc__ or ""
    for given in TYPES:
        x = accnp.ones(2, given)
        operands = (x, x) if name in BINARY else (x,)
        kind = {"b": "b", "c": "c"}.get(x.dtype.kind, "f" if "float" in given else "i")
        if kind in refused(name):
            with pytest.raises(ValueError if name in ("gcd", "lcm") else TypeError):
                function(*operands)
            continue
        out: Any = function(*operands)
        first = out[0] if isinstance(out, tuple) else out
        assert str(first.dtype) == said(text, given, kind), (name, given)


def said(text: str, given: str, kind: str) -> str:
    """The dtype of a result by the words of a docstring."""
    if "dtype is bool" in text:
        return "bool"
    if "dtype is uint8" in text:
        return "uint8"
    if "of its parts if x is complex" in text and kind == "c":
        return "float32"
    if "become the default float" in text and kind in "bi":
        return "float32"
    if "Bools become int32" in text and kind == "b":
        return "int32"
    return given


def test_words_are_looked_for_outside_of_examples() -> None:
    text = "Do it.\n\n    >>> f(1)\n    Array(1, dtype=int32)\n"
    assert prose(text) == "Do it."
