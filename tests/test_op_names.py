"""No module branches on the name of an op, except in files that are listed here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from accnp.ir.op import OPS
from accnp.runtime.compiled_messages import KINDS

PACKAGE = Path(__file__).resolve().parent.parent / "accnp"
# Files that test for the names of ops, and how many tests they have. The numbers only fall: what a
# pass needs to know about an op is a field of `Op`, and a pass that is specific to one op compares
# with the op itself (`v.op is CONCATENATE`).
NAME_TESTS = {
    "jax_compat/export/checks.py": 4,  # the file format names ops
    "compiler/loops/functions.py": 2,  # functions of kernels that have the name of an op
    "ir/op.py": 4,  # the table of ops
}
# Functions that get the name of an op as an argument: for texts, for files, or to record the op.
GET_NAMES = {
    "build", "Event", "_on_mesh", "move", "refuse_float0", "result_devices", "retry_after_freeing",
    "self.launch", "wrap_foreign_array",  # labels and messages
    "OPS.later.get", "self.get", "self.value", "v.params.get", "params.get",  # tables, files
    "call", "rule",  # record an op of this name
}  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_op_name(x: ast.AST | None) -> bool:
    """Return whether an expression is `op.name`, `node.op.name` or `eqn.primitive.name`."""
    if not isinstance(x, ast.Attribute) or x.attr != "name":
        return False
    owner = x.value.attr if isinstance(x.value, ast.Attribute) else getattr(x.value, "id", "")
    return owner.lstrip("_") in ("op", "prim", "primitive")


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes of a module or function, without those of nested functions."""
    stack = [*ast.iter_child_nodes(scope)]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            stack += ast.iter_child_nodes(node)


def variables_with_names(nodes: list[ast.AST]) -> set[str]:
    """Return the variables to which the name of an op is assigned."""
    variables: set[str] = set()
    for n in nodes:
        if isinstance(n, ast.NamedExpr) and is_op_name(n.value):
            variables.add(n.target.id)
        for target in n.targets if isinstance(n, ast.Assign) else ():
            pairs: list[tuple[ast.expr, ast.expr]] = [(target, n.value)]  # type: ignore[union-attr]
            if isinstance(target, ast.Tuple) and isinstance(n.value, ast.Tuple):  # type: ignore[union-attr]
                pairs = list(zip(target.elts, n.value.elts))  # type: ignore[union-attr]
            variables |= {t.id for t, v in pairs if isinstance(t, ast.Name) and is_op_name(v)}
    return variables


def name_tests(tree: ast.Module) -> Iterator[int]:
    """Yield the lines where a module branches on, or looks up, the name of an op."""
    for scope in (tree, *[n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS)]):
        nodes = [*own_nodes(scope)]
        variables = variables_with_names(nodes)
        yield from [
            n.lineno for n in nodes if isinstance(n, ast.expr | ast.stmt) and branches(n, variables)
        ]


def branches(n: ast.AST, variables: set[str]) -> bool:
    """Return whether a node compares a name, or looks something up by it."""

    def reads(x: ast.AST) -> bool:
        x = x.value if isinstance(x, ast.NamedExpr) else x
        return is_op_name(x) or (isinstance(x, ast.Name) and x.id in variables)

    if isinstance(n, ast.Compare):
        return any(map(reads, (n.left, *n.comparators)))
    if isinstance(n, ast.Subscript):
        return reads(n.slice)
    if isinstance(n, ast.Match):
        return reads(n.subject)
    if not isinstance(n, ast.Call) or not isinstance(n.func, ast.Attribute):
        return False
    if n.func.attr in ("startswith", "endswith"):
        return reads(n.func.value)
    return n.func.attr in ("get", "pop") and bool(n.args) and reads(n.args[0])


def test_passes_do_not_test_for_the_names_of_ops() -> None:
    lines_by_path = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        mentioned = re.search(r"(op|prim|primitive)\.name", text)
        lines = [*name_tests(ast.parse(text))] if mentioned else []
        if lines:
            lines_by_path[str(path.relative_to(PACKAGE))] = lines
    assert {path: len(lines) for path, lines in lines_by_path.items()} == NAME_TESTS, lines_by_path


def test_few_functions_get_the_name_of_an_op() -> None:
    """A function that gets a name could branch on it without being found."""
    functions = {
        ast.unparse(n.func)
        for path in PACKAGE.rglob("*.py")
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Call)
        and any(map(is_op_name, [*n.args, *[k.value for k in n.keywords]]))
    }
    assert functions == GET_NAMES


def test_the_runtime_knows_no_collective_by_its_name() -> None:
    """The declaration of a collective has a field that says how it is sent."""
    names = {name for name, op in OPS.whole().items() if op.collective is not None}
    for path in sorted((PACKAGE / "runtime").glob("*.py")):
        words = [n.value for n in ast.walk(ast.parse(path.read_text())) if type(n) is ast.Constant]
        assert not names.intersection([w for w in words if isinstance(w, str)]), path.name


def test_messages_of_native_loops_are_numbered_as_in_the_extension() -> None:
    """A swap is a permutation of two processes whose parts are added."""
    (kinds,) = re.findall(r"enum \{ (GATHER.*) \};", (PACKAGE / "_native/messages.c").read_text())
    numbered = {kind: n for n, kind in enumerate(kinds.lower().split(", "))}
    assert numbered | {"swap": numbered["permute"]} == KINDS
    sent = {op.collective.message for op in OPS.whole().values() if op.collective is not None}
    assert sent == {"", "broadcast", "sum", *KINDS}


@pytest.mark.parametrize("text", [
    'x.op.name == "add"', "op.name in SET", "RULES[v.op.name]", "RULES.get(eqn.primitive.name)",
    'op.name.startswith("scatter")', 'if (n := op.name) == "add": pass',
    'def f(op):\n    name, p = op.name, 1\n    return name != "add"',
])  # fmt: skip
def test_a_test_for_a_name_is_found(text: str) -> None:
    assert [*name_tests(ast.parse(text))]


@pytest.mark.parametrize("text", [
    "op is ADD", 'f"{op.name}: wrong"', 'x.name == "add"',
    "def f(op):\n    name = op.name\ndef g(name):\n    return name in SET",
])  # fmt: skip
def test_other_uses_of_names_are_not(text: str) -> None:
    assert not [*name_tests(ast.parse(text))]
