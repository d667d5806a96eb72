"""Checks of the source layout where ruff allows alternatives."""

from __future__ import annotations

import ast
import re
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


# Functions above ruff's limit of complexity. Remove a line when its function is split.
COMPLEX = {
    "accnp/api/arguments/convert.py": "as_node",
    "accnp/api/kernels/texts.py": "number_or_module",
    "accnp/compiler/fusion/program.py": "value_of",
    "accnp/compiler/ir_tools/interpreter.py": "statement",
    "accnp/compiler/ir_tools/parser.py": "statement",
    "accnp/compiler/ir_tools/verifier.py": "statement",
    "accnp/compiler/library/indexing/scatters.py": "scatter_kernel",
    "accnp/compiler/llvm/lower.py": "statement",
    "accnp/compiler/loops/printer.py": "_statement",
    "accnp/compiler/loops/visiting.py": "expressions",
    "accnp/compiler/numba/source.py": "statement",
    "accnp/engine/native.py": "body",
    "accnp/ir/node.py": "record",
    "accnp/jax_compat/export/symbolic_sizes.py": "_parse_size",
    "accnp/numpy/indexing.py": "_parse_index_item",
    "accnp/numpy/statistics.py": "_cov",
    "accnp/numpy/ufunc_factories.py": "make_binary",
    "accnp/scipy/stats/declaration.py": "_make",
    "accnp/transforms/jvp.py": "forward",
    "accnp/transforms/transpose.py": "backward",
    "benchmarks/first_calls.py": "rigid_bodies",
    "tests/processes/sharded_loops.py": "functions",
    "tests/sweep/result_comparison.py": "_iterate_differences",
}


def test_complex_functions_are_listed() -> None:
    """The list only becomes shorter: new functions stay within the limit."""
    found: dict[str, str] = {}
    for folder in (*FOLDERS, "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            names = re.findall(r"^ *def (\w+)\(.*# noqa: C901", path.read_text(), re.MULTILINE)
            if names:
                found[path.relative_to(ROOT).as_posix()] = " ".join(names)
    assert found == COMPLEX
