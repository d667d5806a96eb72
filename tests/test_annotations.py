"""Annotations in the compiler and the runtime: the files that pyright checks strictly, and the uses
of `Any`.

`pyproject.toml` lists the folders that pyright checks strictly. The numbers here may only decrease:
lower them as the code improves.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STRICT = ("ir", "compiler", "engine", "runtime", "transforms", "primitives")
STRICT_FILES = ("caches.py", "forks.py", "lazy_imports.py", "leaks.py", "trace_fn.py")
# Comments that switch off one rule, for a line or a file.
EXCEPTIONS = {
    "ir": 5,
    "compiler": 17,
    "engine": 9,
    "runtime": 5,
    "transforms": 3,
    "primitives": 0,
}
# Parameters and results whose annotation is `Any` alone. Values of users may have any type.
ANY = {
    "ir": 4,
    "compiler": 2,
    "engine": 1,
    "runtime": 3,
    "transforms": 0,
    "primitives": 0,
}
# All uses of `Any`, such as in `dict[str, Any]`: users' values, static parameters of ops, and
# objects of libraries without types.
ALL_ANY = {
    "ir": 86,
    "compiler": 13,
    "engine": 61,
    "runtime": 22,
    "transforms": 12,
    "primitives": 84,
}


def sources(folder):
    return [path.read_text() for path in sorted((ROOT / "accnp" / folder).rglob("*.py"))]


def annotations(tree):
    """Yield the annotations of all parameters and results."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = node.args
            all_args = [
                *parameters.posonlyargs,
                *parameters.args,
                *parameters.kwonlyargs,
                parameters.vararg,
                parameters.kwarg,
            ]
            yield from (a.annotation for a in all_args if a is not None)
            yield node.returns


def count_any(source):
    """Return the number of parameters and results annotated as exactly `Any`."""
    texts = [ast.unparse(a) for a in annotations(ast.parse(source)) if a is not None]
    return sum(text in ("Any", "typing.Any", "'Any'") for text in texts)


def count_every_any(source):
    """Return the number of uses of `Any`, also within other types and in quoted ones."""
    tree = ast.parse(source)
    names = sum(getattr(n, "id", getattr(n, "attr", "")) == "Any" for n in ast.walk(tree))
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    quoted = [t for t in texts if isinstance(t, str) and re.fullmatch(r"[\w\[\], .|]*", t)]
    return names + sum(len(re.findall(r"\bAny\b", t)) for t in quoted)


def check(name, counted, recorded):
    assert counted <= recorded, (
        f"{name}: counted {counted}, at most {recorded} are allowed; write the types"
    )


def test_folders_are_checked_strictly():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]
    assert options["strict"] == [f"accnp/{name}" for name in (*STRICT, *STRICT_FILES)]


@pytest.mark.parametrize("folder", STRICT)
def test_all_files_are_checked_strictly(folder):
    assert not any("# pyright: basic" in text for text in sources(folder))


@pytest.mark.parametrize("folder", STRICT)
def test_exceptions_become_fewer(folder):
    marks = re.compile(r"# pyright: (?:ignore|report\w+=)|# type: ignore")
    counted = sum(len(marks.findall(text)) for text in sources(folder))
    check(f"exceptions of pyright's rules in accnp/{folder}", counted, EXCEPTIONS[folder])


@pytest.mark.parametrize("folder", ANY)
def test_signatures_with_any_become_fewer(folder):
    counted = sum(map(count_any, sources(folder)))
    check(f"parameters and results of type Any in accnp/{folder}", counted, ANY[folder])


@pytest.mark.parametrize("folder", ALL_ANY)
def test_uses_of_any_become_fewer(folder):
    counted = sum(map(count_every_any, sources(folder)))
    check(f"uses of Any in accnp/{folder}", counted, ALL_ANY[folder])


def test_every_any_is_counted():
    source = (
        "def f(x: Any, y: list[Any] = 0) -> 'dict[str, Any]':\n    'Any: text'\n    z: t.Any = x"
    )
    assert count_every_any(source) == 4


def test_any_is_counted_in_signatures_only():
    source = "def f(x: Any, *a: Any, k: 'Any' = 0, y: list[Any] = 0) -> typing.Any:\n    z: Any = x"
    assert count_any(source) == 4
