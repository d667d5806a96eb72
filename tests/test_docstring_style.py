"""Docstrings of public names follow the NumPy style.

The test covers the public functions, classes and methods of the tables of names. A docstring has a
summary, a description of every parameter, the return value, the errors, related functions and an
example. `docstring_exceptions.txt` lists sections that are not required, with the reason.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from api.test_names import NAMES, find_object
from test_docs_site import api_reference
from test_docstrings import PUBLIC, excused

from accnp import errors
from accnp.docstrings import BLOCKS, fill
from accnp.numpy import numpy_only as numpy_names

# Functions that NumPy has and jax lacks, which the tables of names do not list. isfortran raises
# no errors.
OTHERS = {
    f"numpy.{name}": value
    for name in numpy_names.__all__
    if inspect.isfunction(value := getattr(numpy_names, name)) and name != "isfortran"
}
SECTIONS = ["Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes",
            "References", "Examples"]  # fmt: skip
_TITLE = re.compile(r"^([A-Z][A-Za-z ]+)\n(-{3,})$", re.MULTILINE)
# Titles on one line with text, and those of another style.
_BROKEN = re.compile(
    rf"\b(?:{'|'.join(SECTIONS)}) -{{3,}} |^ *(?:Args|Example|Raises|Returns):$", re.MULTILINE
)
_ENTRY = re.compile(r"^(\S[^:\n]*?)(?: : (.+))?$")
# Words that say nothing by themselves: articles, and those that repeat a type.
EMPTY = set(
    re.findall(
        r"\w+",
        "a an the of to and or in is it its as by for with that this input output array arrays "
        "array_like value values number numbers argument parameter operand optional default given "
        "any if int float bool str tuple list dtype none true false",
    )
)


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by title; the text before the first has the title ""."""
    parts = _TITLE.split(text)
    bodies = {"": parts[0].strip()}
    for title, line, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        assert len(title) == len(line), f"underline of {title}"
        bodies[title] = body.strip("\n")
    return bodies


def entries(body: str) -> dict[str, tuple[str, str]]:
    """Return the names of a section with type and description; "x, y" counts as two names."""
    descriptions: dict[str, tuple[str, str]] = {}
    for item in re.split(r"\n(?=\S)", body):
        first, *rest = item.split("\n")
        match = _ENTRY.match(first.strip())
        if match:
            for name in match[1].split(", "):
                descriptions[name.lstrip("*")] = (
                    match[2] or "",
                    " ".join(map(str.strip, rest)).strip(),
                )
    return descriptions


def says_something(name: str, kind: str, description: str) -> bool:
    """Return whether a description has words other than those of the name and the type."""
    known = EMPTY | set(re.findall(r"[a-z0-9]+", f"{name} {kind}".lower()))
    return len(set(re.findall(r"[a-z0-9]+", description.lower())) - known) >= 2


def parameters(value: Any) -> list[str]:
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return []  # members are looked up, not made
    try:
        signature = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in signature if p.name not in ("self", "cls") and p.name[0] != "_"]


def returns_nothing(value: Any) -> bool:
    if isinstance(value, type):
        return True
    return getattr(value, "__annotations__", {}).get("return", "") in ("None", None)


def is_excused(what: str, name: str) -> bool:
    return any(name in names for names in excused(what).values())


def wrong_form(text: str, parts: dict[str, str]) -> list[str]:
    """Yield problems of the summary, the titles and the blocks."""
    wrong = [f"unknown section {title}" for title in parts if title and title not in SECTIONS]
    order = [SECTIONS.index(title) for title in parts if title in SECTIONS]
    if order != sorted(order):
        wrong.append("order of sections")
    summary = parts[""].split("\n\n")[0]
    if "\n" in summary or not summary.endswith(".") or len(summary.split()) < 3:
        wrong.append("summary of one line")
    if re.search(r"^ *\{\w+\}$", text, re.MULTILINE):
        wrong.append("an unfilled block")
    wrong += [f"broken title {title.strip()}" for title in _BROKEN.findall(text)]
    return wrong


def wrong_parameters(value: Any, body: str) -> list[str]:
    """Yield parameters that are not described, and descriptions without a parameter."""
    wrong, described = [], entries(body)
    for parameter in parameters(value):
        kind, description = described.get(parameter, ("", ""))
        if parameter not in described:
            wrong.append(f"parameter {parameter}")
        elif not kind or not says_something(parameter, kind, description):
            wrong.append(f"description of {parameter}")
    if inspect.isfunction(value):
        surplus = set(described) - set(inspect.signature(value).parameters)
        wrong += [f"no parameter {parameter}" for parameter in sorted(surplus)]
    return wrong


def wrong_names(name: str, parts: dict[str, str]) -> list[str]:
    """Yield the errors and the related functions that do not exist."""
    home, wrong = name.rpartition(".")[0], []
    for error in entries(parts.get("Raises", "")):
        if not (
            hasattr(builtins, error) or hasattr(errors, error) or find_object(f"{home}.{error}")
        ):
            wrong.append(f"Raises {error}")
    for other in related(parts):
        ours = other.removeprefix("accnp.")
        if not any(find_object(path) for path in (f"{home}.{ours}", ours, f"numpy.{ours}")):
            wrong.append(f"See Also {other}")
    return wrong


def related(parts: dict[str, str]) -> list[str]:
    """Return the names in the section See Also."""
    names = r"^([\w.]+(?:, [\w.]+)*)(?: :|$)"
    matches = re.findall(names, parts.get("See Also", ""), re.MULTILINE)
    return [name for line in matches for name in line.split(", ")]


def problems(name: str) -> list[str]:
    """Return what the docstring of a public name lacks."""
    value = PUBLIC.get(name) or OTHERS[name]
    text = inspect.getdoc(value) or ""
    parts = sections(text)
    wrong = wrong_form(text, parts) + wrong_parameters(value, parts.get("Parameters", ""))
    if not returns_nothing(value) and not {"Returns", "Yields"} & set(parts):
        wrong.append("Returns")
    if "Raises" not in parts and not is_excused("errors", name):
        wrong.append("Raises")
    kind = NAMES[name][0] if name in NAMES else "function"
    if not related(parts) and kind in ("function", "ufunc") and not is_excused("see also", name):
        wrong.append("See Also")
    if ">>> " not in parts.get("Examples", "") and not is_excused("an example", name):
        wrong.append("Examples")
    return wrong + wrong_names(name, parts)


@pytest.mark.parametrize("name", sorted(set(PUBLIC) | set(OTHERS)))
def test_docstring_is_complete(name: str) -> None:
    assert not problems(name)


def test_blocks_are_used_and_complete() -> None:
    package = Path(inspect.getfile(fill)).parent
    used = {n for p in package.rglob("*.py") for n in re.findall(r"\{(\w+)\}", p.read_text())}
    assert not set(BLOCKS) - used
    for name, block in BLOCKS.items():
        described = entries(block)
        assert described, name
        if not name.startswith(("raises_", "note_")):
            assert all(says_something(key, *value) for key, value in described.items()), name


def test_fill_keeps_the_indentation() -> None:
    text = "Do it.\n\n    Parameters\n    ----------\n    {keepdims}\n    dtype : {not a block}\n"
    filled = fill(text)
    assert "\n    keepdims : bool, optional\n        If True" in filled
    assert "{not a block}" in filled


def test_names_that_do_not_exist_are_found() -> None:
    def function(x: int) -> None: ...

    assert wrong_parameters(function, "x : int\n    Rows of a matrix.\ny : int") == [
        "no parameter y"
    ]
    parts = {"Raises": "TypeError\nNoError", "See Also": "sum, nosuch : Sums.\nprod"}
    assert wrong_names("numpy.f", parts) == ["Raises NoError", "See Also nosuch"]


def test_broken_titles_are_found() -> None:
    parts = {"": "Add two numbers."}
    assert wrong_form("Add two numbers.\n\nNotes ----- Sums.\n\nRaises:\n", parts) == [
        "broken title Notes -----",
        "broken title Raises:",
    ]


def test_empty_descriptions_are_found() -> None:
    assert not says_something("x", "array_like", "The input array x.")
    assert not says_something("dtype", "dtype_like", "The dtype.")
    assert says_something("x", "array_like", "Angle in radians.")


def test_signatures_show_no_addresses() -> None:
    """Defaults that stand for "not given" have a readable text, as has the rest of `help`."""
    made_by_calls = "example_libraries.stax."  # initializers, which are functions made by functions
    shown = []
    for name in PUBLIC:
        try:
            text = str(inspect.signature(find_object(name)))
        except (TypeError, ValueError):
            continue  # built in
        if re.search(r" at 0x|\bred\.", text) and not name.startswith(made_by_calls):
            shown.append(f"{name}{text}")
    assert not shown


def test_other_documented_names_have_examples() -> None:
    """Applies to records, choices and errors of the API reference that the tables of names do not
    list."""
    reference = api_reference()
    servers = {"register_subprocess", "start_server", "stop_server"}  # they would open a port
    lacking = []
    for path, names in reference.public_names().items():
        for name in set(names) - servers:
            value = getattr(reference.resolve(path), name)
            own = str(getattr(value, "__module__", "")).startswith("accnp")
            if own and callable(value) and ">>> " not in reference.docstring(value):
                lacking.append(f"{path}.{name}")
    assert not lacking
