"""Checks of the source layout where ruff allows alternatives."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("accnp", "benchmarks", "demos", "pytest_accnp")


def long_lists(source: str) -> list[int]:
    """Return the lines of lists in `__all__` and `__slots__` that have one name per line."""
    line_numbers = []
    for n in ast.walk(ast.parse(source)):
        if not isinstance(n, ast.Assign) or not isinstance(n.value, ast.List | ast.Tuple):
            continue
        names = n.value.elts
        is_list = getattr(n.targets[0], "id", "") in ("__all__", "__slots__") and len(names) > 1
        if is_list and len({name.lineno for name in names}) == len(names):
            line_numbers.append(n.lineno)
    return line_numbers


@pytest.mark.parametrize("folder", FOLDERS)
def test_lists_of_names_have_several_to_a_line(folder: str) -> None:
    """Write `# fmt: skip` after the bracket; otherwise ruff puts each name on a line of its own."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = path.read_text()
        if "__all__" in source or "__slots__" in source:
            assert not long_lists(source), path


def test_such_a_list_is_found() -> None:
    assert long_lists('__all__ = [\n    "a",\n    "b",\n]\n') == [1]
    assert long_lists('__all__ = [\n    "a", "b",\n]\n') == []


COMPLEX = 21  # functions above ruff's limit of complexity, in the package and what goes with it


def test_complex_functions_become_fewer() -> None:
    """Lower the number when a function is split."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    marks = sum(path.read_text().count("# noqa: C901") for path in files)
    assert marks <= COMPLEX, f"{marks} functions are too complex, at most {COMPLEX} are allowed"
