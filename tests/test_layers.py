"""Dependencies between our files: imports only go down the layers of docs/architecture.md."""

import ast
import functools
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "accnp"
RANKS = {
    "_native": 0, "module_getattr": 0, "errors": 0, "error_texts": 0, "docstrings": 0, "dtypes": 0,
    "address_space": 0, "host_machine": 0, "caches": 0,
    "config": 0, "forks": 0, "pytree": 0, "removed_names": 0, "command_line_flags": 0,
    "numpy_start": 0, "debug_log": 0, "public_names": 0, "fast_exit": 0, "blas_threads": 0,
    "ir": 1,
    "primitives": 2,
    "transforms": 3,
    "compiler": 4,
    "runtime": 5,
    "engine": 6,
    "array_type": 7, "key_array": 7, "trace_fn": 7, "leaks": 7,
    "api": 8,
    "__init__": 9, "as_jax": 9, "bench": 9, "__main__": 9,
}  # fmt: skip
PUBLIC = 8  # other modules at the top are thin public namespaces
# The layers within `compiler`: folders, and modules that are in no folder.
COMPILER_LAYERS = (
    (
        "code_symbols", "executable_memory", "external_symbols", "object_files", "private_folders",
        "ptx_code", "unsupported", "user_definitions", "worker_threads",
    ),
    ("disk_cache", "loops", "processor"),
    ("cache_state", "library", "passes"),
    ("fusion", "llvm"),
    ("ir_tools", "numba"),
    ("elf_loader", "pipeline"),
    ("background_compile", "frontend"),
    ("formulas", "kernel_cache"),
    ("build_library", "ptx", "specs"),
    ("grid_kernels", "__main__"),
)  # fmt: skip
COMPILER_RANKS = {name: k for k, names in enumerate(COMPILER_LAYERS) for name in names}
# Where the packages for machine code may be imported; by name, too. Functions for Numba are
# declared with `numba.extending.intrinsic`, which get llvmlite's builder.
COMPILERS = {
    "numba": ("compiler/numba/",),
    "numba_cuda": ("compiler/numba/",),
    "llvmlite": ("compiler/llvm/", "compiler/numba/", "compiler/processor.py"),
    "cupy": ("runtime/", "bench/"),
}


def part_of(module):
    """Return the folder or top-level module of `accnp.x.y`, which is x."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def rank(part):
    return RANKS.get(part, PUBLIC)


def compiler_rank(module):
    """Return the rank of a module within `compiler`, or None for other modules."""
    parts = module.split(".")[1:]
    return COMPILER_RANKS.get(parts[1]) if parts[0] == "compiler" and len(parts) > 1 else None


def compiler_violation(module, name):
    """Return how an import within `compiler` violates its layers, or "" if it does not.

    Modules of one folder may import each other, modules of two folders of one layer may not.
    """
    ranks = compiler_rank(module), compiler_rank(name)
    if None in ranks or module.split(".")[2] == name.split(".")[2] or ranks[1] < ranks[0]:
        return ""
    return f"layer {ranks[0]} to {ranks[1]} of the compiler"


def module_name(path, root):
    parts = list(path.relative_to(root.parent).with_suffix("").parts)
    return ".".join(parts)


def imported_modules(node, module):
    """Return the modules that an import statement names, as absolute names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level:
        base = module.split(".")[: -node.level]
        return [".".join([*base, node.module] if node.module else base)]
    if node.module == "accnp":
        # `from accnp import ir` names a module, not a value of __init__.
        return [f"accnp.{alias.name}" for alias in node.names]
    return [str(node.module)]


def loaded_by_name(tree):
    """Return the modules that calls of `imported` and `import_module` name, with the
    line of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name = node.args[0].value
            if function in ("imported", "import_module"):
                yield node.lineno, str(name)


def inside_functions(tree):
    """Return the import statements inside functions."""
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(outer):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node


def deferred_by_importlib(tree):
    """Return our modules that functions import with `import_module` instead of `imported`, with
    the line of each."""
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(outer):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
                    name = getattr(node.args[0], "value", "")
                    if str(name).startswith("accnp."):
                        yield node.lineno, name


def type_checking_only(tree):
    """Return the import statements under `if TYPE_CHECKING:`, which never run."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for inner in node.body:
                yield from (
                    n for n in ast.walk(inner) if isinstance(n, ast.Import | ast.ImportFrom)
                )


def may_import(top, path, root):
    """Return whether a file may import a third-party package."""
    place = path.relative_to(root).as_posix()
    return place.startswith(COMPILERS.get(top, ("",)))


def problems(path, root):  # noqa: C901
    """Return all violations in one file, as messages."""
    module = module_name(path, root)
    part = part_of(module)
    source = path.read_text()
    tree = ast.parse(source)
    messages = []
    deferred = {id(node) for node in inside_functions(tree)}
    type_checking_imports = {id(node) for node in type_checking_only(tree)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for name in imported_modules(node, module):
            top = name.split(".")[0]
            where = f"line {node.lineno}: {name}"
            if top == "accnp":
                target = part_of(name)
                if target == part:
                    modules = (
                        [name]
                        if name != "accnp.compiler"
                        else [f"{name}.{alias.name}" for alias in node.names]
                    )
                    violations = [compiler_violation(module, m) for m in modules]
                    if any(violations) and id(node) not in type_checking_imports:
                        messages.append(f"{where}: {', '.join(filter(None, violations))}")
                elif part == "_native" and id(node) in type_checking_imports:
                    pass  # types of what higher layers install
                elif rank(target) > rank(part):
                    messages.append(f"{where}: upward, rank {rank(part)} to {rank(target)}")
                if id(node) in deferred:
                    messages.append(f"{where}: own import inside a function")
            elif top == "jax":
                messages.append(f"{where}: the package never imports jax")
            elif id(node) not in type_checking_imports and not may_import(top, path, root):
                messages.append(f"{where}: only {' and '.join(COMPILERS[top])} may import it")
            elif top == "scipy" and id(node) not in deferred and part != "compiler":
                messages.append(f"{where}: scipy at the top of a module")
    messages += [
        f"line {line}: {name}: use forks.imported" for line, name in deferred_by_importlib(tree)
    ]
    for line, name in loaded_by_name(tree):
        if not name.startswith("accnp."):
            top = name.split(".")[0]
            if not may_import(top, path, root):
                messages.append(
                    f"line {line}: {name}: only {' and '.join(COMPILERS[top])} may import it"
                )
        elif rank(part_of(name)) > rank(part):
            up = f"rank {rank(part)} to {rank(part_of(name))}"
            messages.append(f"line {line}: {name}: upward by name, {up}")
        elif violation := compiler_violation(module, name):
            messages.append(f"line {line}: {name}: by name, {violation}")
    return messages


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_layers(path):
    assert problems(path, PACKAGE) == []


def public_folder(name):
    """Return the folder of a module of the public layer, without `accnp.`, or None for other
    modules."""
    parts = name.split(".")[1:-1]
    return ".".join(parts) if parts and rank(parts[0]) == PUBLIC else None


@functools.cache
def module_imports():
    """Return, for each of our modules, those that it imports, also on first use and by name."""
    known = {module_name(path, PACKAGE) for path in FILES if path.name != "__init__.py"}
    imports = {}
    for path in FILES:
        module = module_name(path, PACKAGE)
        if path.name == "__init__.py":
            continue
        tree = ast.parse(path.read_text())
        type_checking_imports = {id(node) for node in type_checking_only(tree)}
        names = [name for _, name in loaded_by_name(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in type_checking_imports:
                base = imported_modules(node, module)[0]
                names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        imports[module] = (set(names) & known) - {module}
    return imports


def folder_imports():
    """Return, for each folder of the public layer, the folders that its modules import."""
    imports = {}
    for module, names in module_imports().items():
        folder = public_folder(module)
        if folder is not None:
            targets = {public_folder(name) for name in names}
            imports.setdefault(folder, set()).update(targets - {folder, None})
    return imports


def test_folders_of_the_public_layer_form_no_cycles():
    left = folder_imports()
    while free := [f for f, targets in left.items() if not targets & set(left)]:
        for folder in free:
            del left[folder]
    assert left == {}


# Groups of modules that import each other in a cycle, all within one folder: a class, for example,
# and the module that prints it, which is loaded on first use. The number may only decrease.
MODULE_CYCLES = 16
LONGEST_MODULE_CYCLE = 5


def reachable(module, imports):
    """Return the modules that `module` imports, directly or through others."""
    found = set()
    waiting = [module]
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def cycles(imports):
    """Return the groups of modules that import each other, directly or through others."""
    below = {module: reachable(module, imports) for module in imports}
    groups = {
        frozenset(other for other in below[module] if module in below[other]) for module in imports
    }
    return groups - {frozenset()}


def test_cycles_of_modules_stay_within_folders_and_become_fewer():
    groups = cycles(module_imports())
    assert all(len({name.rpartition(".")[0] for name in group}) == 1 for group in groups)
    assert len(groups) <= MODULE_CYCLES, sorted(map(sorted, groups))
    assert max(map(len, groups), default=0) <= LONGEST_MODULE_CYCLE


def test_a_cycle_of_modules_is_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {frozenset("bc")}


def test_scalar_functions_import_only_allowed_packages():
    allowed = {
        "numba",
        "numpy",
        "ml_dtypes",
        "llvmlite",
        "math",
        "cmath",
        "scipy",
        "accnp",
        "__future__",
    }
    allowed |= {
        "collections",
        "ctypes",
        "importlib",
        "dataclasses",
        "functools",
        "operator",
        "typing",
    }
    wrong = []
    for path in sorted((PACKAGE / "compiler" / "llvm" / "scalars").rglob("*.py")):
        module = module_name(path, PACKAGE)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in imported_modules(node, module):
                    own = name.split(".")[0] == "accnp" and not name.startswith(
                        (
                            "accnp.compiler.llvm.scalars",
                            "accnp.compiler.llvm.private",
                            "accnp.compiler.library",
                        )
                    )
                    if own or name.split(".")[0] not in allowed:
                        wrong.append(f"{path.name}:{node.lineno}: {name}")
    assert wrong == []


def test_every_part_of_the_compiler_has_a_layer():
    parts = {path.stem for path in (PACKAGE / "compiler").iterdir() if path.suffix == ".py"}
    parts |= {path.parent.name for path in (PACKAGE / "compiler").glob("*/__init__.py")}
    assert parts - {"__init__"} == set(COMPILER_RANKS)


def test_imports_are_found():
    parts = {part_of(module_name(path, PACKAGE)) for path in FILES}
    assert {"errors", "dtypes", "config", "pytree"} <= parts


@pytest.mark.parametrize(
    ("place", "source", "expected"),
    [
        ("ir/node.py", "from accnp.primitives import sin", "upward, rank 1 to 2"),
        ("ir/node.py", "import accnp.api.jit.jit", "upward, rank 1 to 8"),
        ("ir/node.py", "from ..ops import sin", "upward"),
        ("primitives/view.py", "from accnp import engine", "upward, rank 2 to 6"),
        ("primitives/view.py", "def f():\n    from accnp.ir import node", "inside a function"),
        ("engine/plan.py", "import numba", "only compiler/numba/ may import it"),
        ("compiler/llvm/lower.py", "import numba", "only compiler/numba/ may import it"),
        ("api/x.py", "def f():\n    import llvmlite.binding", "only compiler/llvm/ and"),
        ("runtime/x.py", 'imported("llvmlite.binding")', "only compiler/llvm/ and"),
        ("compiler/pipeline.py", 'imported("llvmlite.binding")', "only compiler/llvm/ and"),
        ("primitives/sort.py", "from accnp.compiler.library import lowerings", "rank 2 to 4"),
        ("numpy/linalg/decompositions.py", "import scipy.linalg", "scipy at the top"),
        ("numpy/linalg/decompositions.py", "import jax.numpy", "never imports jax"),
        ("errors.py", "from accnp.ir.node import Node", "upward, rank 0 to 1"),
        ("array_type.py", "from accnp.random import key", "upward, rank 7 to 8"),
        ("ir/node.py", 'imported("accnp.api.jit.jit")', "upward by name, rank 1 to 8"),
        ("errors.py", 'importlib.import_module("accnp.ir.node").f()', "upward by name, rank 0"),
        (
            "api/x.py",
            'def f():\n    importlib.import_module("accnp.ir.node")',
            "use forks.imported",
        ),
        ("compiler/loops/ir.py", "from accnp.compiler.llvm import lower", "layer 1 to 3"),
        ("compiler/loops/ir.py", "from accnp.compiler import ptx", "layer 1 to 8"),
        ("compiler/llvm/x.py", 'imported("accnp.compiler.numba.source")', "layer 3 to 4"),
        ("compiler/numba/x.py", "from accnp.compiler.ir_tools import verifier", "layer 4 to 4"),
    ],
)
def test_layer_violation_is_found(tmp_path, place, source, expected):
    path = tmp_path / "accnp" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    messages = problems(path, tmp_path / "accnp")
    assert len(messages) == 1
    assert expected in messages[0]


@pytest.mark.parametrize(
    ("place", "source"),
    [
        (
            "primitives/view.py",
            "from accnp.ir.node import record\nfrom accnp.primitives.kinds import unary",
        ),
        (
            "primitives/view.py",
            "from .kinds import unary\nfrom ..ir import node\nfrom accnp import dtypes",
        ),
        ("compiler/numba/x.py", "import scipy\ndef f():\n    import numba"),
        ("compiler/llvm/x.py", "import llvmlite\nimport numpy as np"),
        ("numpy/linalg/decompositions.py", "def f():\n    import scipy.linalg"),
        (
            "compiler/fusion/fuse.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numba",
        ),
        ("__init__.py", "from accnp.api.jit.jit import jit\nfrom accnp import random"),
    ],
)
def test_allowed_imports_pass(tmp_path, place, source):
    path = tmp_path / "accnp" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert problems(path, tmp_path / "accnp") == []


def attributes_by_name(tree):
    """Return modules that are loaded by name, with the attributes read from them and the line."""
    functions = ("imported", "import_module")

    def loaded(node):
        is_call = isinstance(node, ast.Call) and node.args
        name = is_call and getattr(node.func, "attr", getattr(node.func, "id", ""))
        constant = name in functions and isinstance(node.args[0], ast.Constant)
        return {str(node.args[0].value)} if constant else set()

    variables = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and loaded(node.value):
                    variables.setdefault(target.id, set()).update(loaded(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            modules = loaded(node.value)
            if isinstance(node.value, ast.Name):
                modules = variables.get(node.value.id, set())
            yield from ((node.lineno, module, node.attr) for module in modules)


def test_attributes_of_modules_that_are_loaded_by_name_exist():
    """Neither pyright nor ruff checks these names, so they would miss a renamed function."""
    missing, count = [], 0
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, module, name in attributes_by_name(ast.parse(path.read_text())):
            if module.startswith("accnp"):
                count += 1
                if not hasattr(importlib.import_module(module), name):
                    missing.append(f"{path.relative_to(ROOT)}:{line}: {module}.{name}")
    assert missing == []
    assert count > 150
