"""No module branches on the name of an op, except in files that are listed here."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from accnp.ir.op import OPS, Op
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
# Folders whose modules must not look anything up in a table that is keyed by the names of ops.
FOLDERS = ("ir", "primitives", "transforms", "compiler", "engine", "runtime")
# Modules whose tables are keyed by other names, some of which ops have, too.
OTHER_NAMES = {
    "compiler/formulas.py": "functions of kernels",
    "compiler/frontend/": "functions of Python and NumPy in the source of users' functions",
    "compiler/ir_tools/": "functions of kernels",
    "compiler/library/special_calls.py": "functions of kernels",
    "compiler/library/indexing/scatters.py": "functions that combine two numbers",
    "compiler/llvm/": "functions of kernels",
    "compiler/loops/": "functions of kernels",
    "compiler/passes/": "functions of kernels",
    "primitives/kinds.py": "keywords of Python",
}
# Fields of `Op` that are not names: a table may be keyed by their values ("cond", "scan", "iota").
FIELDS = {*Op.__slots__} - {"name", "jax_name", "user_name"}
LITERALS = (ast.Dict, ast.Set, ast.Tuple, ast.List)
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


def functions_with_names(tree: ast.Module) -> set[str]:
    """Return the functions that a module calls with the name of an op as an argument."""
    return {
        ast.unparse(n.func)
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
        and any(map(is_op_name, [*n.args, *[k.value for k in n.keywords]]))
    }


def lookups(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the pairs (table, key) of subscripts, calls of `get` and `pop`, and tests with `in`."""
    for n in ast.walk(tree):
        if isinstance(n, ast.Subscript):
            yield n.value, n.slice
        elif isinstance(n, ast.Compare):
            operands = [n.left, *n.comparators]
            for key, op, table in zip(operands, n.ops, n.comparators):
                if isinstance(op, ast.In | ast.NotIn):
                    yield table, key
        elif (
            isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr in ("get", "pop")
            and n.args
        ):
            yield n.func.value, n.args[0]


def has_names_of_ops(table: ast.expr | None, names: Collection[str]) -> bool:
    """Return whether a display contains, or has as keys, three or more names of ops."""
    if not isinstance(table, LITERALS):
        return False
    keys = table.keys if isinstance(table, ast.Dict) else table.elts
    return sum(isinstance(k, ast.Constant) and k.value in names for k in keys) >= 3


def tables_of_names(tree: ast.Module, names: Collection[str]) -> dict[str, int]:
    """Return the variables to which a table with the names of ops is assigned, and the lines."""
    tables = {}
    for n in ast.walk(tree):
        targets = n.targets if isinstance(n, ast.Assign) else [getattr(n, "target", None)]
        if isinstance(n, ast.Assign | ast.AnnAssign) and has_names_of_ops(n.value, names):
            tables |= {t.id: n.lineno for t in targets if isinstance(t, ast.Name)}
    return tables


def imported_names(tree: ast.Module) -> set[str]:
    """Return the names that a module imports from others."""
    return {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}


def name_lookups(trees: dict[str, ast.Module], names: Collection[str]) -> list[str]:
    """Return "path:line" of the tables with names of ops in which something is looked up."""
    used: dict[str, set[str]] = {}
    found = []
    for path, tree in trees.items():
        used[path] = set()
        for table, key in lookups(tree):
            if isinstance(key, ast.Attribute) and key.attr in FIELDS:
                continue
            if has_names_of_ops(table, names):
                found.append(f"{path}:{table.lineno}")
            elif isinstance(table, ast.Name):
                used[path].add(table.id)
            elif isinstance(table, ast.Attribute):  # `module.TABLE`
                used[path].add(table.attr)
    imports = {path: imported_names(tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        module = Path(path).stem
        for name, line in tables_of_names(tree, names).items():
            readers = [p for p in trees if p == path or imports[p] & {name, module}]
            if any(name in used[p] for p in readers):
                found.append(f"{path}:{line}")
    return sorted(found)


def test_few_functions_get_the_name_of_an_op() -> None:
    """A function that gets a name could branch on it without being found."""
    trees = [ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")]
    assert set[str]().union(*map(functions_with_names, trees)) == GET_NAMES


def test_no_table_is_keyed_by_the_names_of_ops() -> None:
    """What a pass does for an op is a field of the op, or a table that is keyed by the op."""
    trees = {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text())
        for folder in FOLDERS
        for path in sorted((PACKAGE / folder).rglob("*.py"))
    }
    found = name_lookups(trees, {*OPS.whole()})
    reported = [x for x in found if not x.startswith(tuple(OTHER_NAMES))]
    assert not reported
    needed = {prefix for prefix in OTHER_NAMES if any(x.startswith(prefix) for x in found)}
    assert needed == {*OTHER_NAMES}, "exceptions that are not needed"


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
    "unrolled(op.name, inputs, params)", "unrolled(name=node.op.name)", "f(x, eqn.primitive.name)",
])  # fmt: skip
def test_a_function_that_gets_a_name_is_found(text: str) -> None:
    assert functions_with_names(ast.parse(text)) - GET_NAMES


@pytest.mark.parametrize("texts", [
    ['CONSTANTS = {"jit": 1, "cond": 2, "scan": 3}\ndef f(name): CONSTANTS.get(name, {})'],
    ['T: dict[str, int] = {"cond": 1, "while": 2, "scan": 3}\ndef f(name): return T[name]'],
    ['T = {"jit", "cond", "scan"}', "from a.m0 import T\ndef f(name): return name not in T"],
    ['T = {"jit", "cond", "scan"}', "from a import m0\ndef f(name): return name in m0.T"],
    ['{"cond": f, "while": g, "scan": h}.get(name)'],
    ['{"cond": f, "while": g, "scan": h}[name]()'],
    ['step.label not in ("while", "scan", "cond")'],
])  # fmt: skip
def test_a_table_of_names_is_found(texts: list[str]) -> None:
    trees = {f"m{i}.py": ast.parse(text) for i, text in enumerate(texts)}
    assert len(name_lookups(trees, {"jit", "cond", "while", "scan"})) == 1


@pytest.mark.parametrize("text", [
    '{"cond": f, "while": g, "scan": h}[step.op.control]', 'x in ("cond", "while", "other")',
    '__all__ = ["cond", "while", "scan"]', "RULES = {COND: f, WHILE: g, SCAN: h}\nRULES[op]",
])  # fmt: skip
def test_other_tables_are_not(text: str) -> None:
    assert not name_lookups({"m.py": ast.parse(text)}, {"jit", "cond", "while", "scan"})


@pytest.mark.parametrize("text", [
    "op is ADD", 'f"{op.name}: wrong"', 'x.name == "add"',
    "def f(op):\n    name = op.name\ndef g(name):\n    return name in SET",
])  # fmt: skip
def test_other_uses_of_names_are_not(text: str) -> None:
    assert not [*name_tests(ast.parse(text))]
