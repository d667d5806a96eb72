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
    "config": 0, "forks": 0, "lazy_imports": 0, "pytree": 0, "removed_names": 0,
    "command_line_flags": 0,
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
TOP = {path.stem for path in PACKAGE.iterdir()}  # modules and folders of the package
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
# Functions that load the module of a given name.
LOADERS = ("imported", "load_module", "import_module", "__import__")
# Files that compute the name of a module, and where it comes from.
COMPUTED_NAMES = {
    "module_getattr.py": "the generated table of public names",
    "lazy_imports.py": "the functions that load modules",
    "error_texts.py": "loaded modules of the generated table of public names",
    "ir/op.py": "the generated table of ops",
    "compiler/library/lowerings.py": "modules of this folder, by the declarations of ops",
    "compiler/numba/user_cuda.py": "modules that a user's function names",
    "api/arrays/methods.py": "a table of methods",
    "api/arrays/numpy_protocols.py": "the public module that corresponds to one of NumPy",
    "api/kernels/texts.py": "modules of Numba that have a function",
    "as_jax/__init__.py": "itself",
    "as_jax/finder.py": "the table of private modules of jax",
    "devtools/explain/session.py": "a table of the functions that are observed",
    "scipy/stats/declaration.py": "the module that it makes",
    "scipy/stats/discrete.py": "the module that it makes",
    "bench/gpu.py": "libraries to compare with",
    "__init__.py": "modules that an interrupted import left",
}
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
        # `from accnp import ir` names a module; other names are values of __init__.
        names = [alias.name for alias in node.names]
        return [f"accnp.{name}" if name in TOP else "accnp" for name in names]
    return [str(node.module)]


def constants(tree):
    """Return the strings that are assigned to names at the top of a module."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def text_of(node, known):
    """Return the string that an expression stands for, or None if it is computed.

    Of a formatted string, the part before the first value counts, if it names a package.
    """
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Name(name):
            return known.get(name)
        case ast.JoinedStr([ast.Constant(str(prefix)), *_]) if not prefix.startswith("accnp"):
            return prefix.rstrip(".")
    return None


def named_modules(tree):
    """Return the expressions that name a module to load or to look up, with the line of each."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(function) | ast.Attribute(attr=function)):
                values = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]
                if (function in LOADERS and values) or ast.unparse(node.func) == "sys.modules.get":
                    yield node.lineno, values[0]
            case ast.Subscript(value, index) if ast.unparse(value) == "sys.modules":
                yield node.lineno, index


def loaded_by_name(tree):
    """Return the modules that are loaded or looked up by name, with the line of each."""
    known = constants(tree)
    for line, node in named_modules(tree):
        text = text_of(node, known)
        if text is not None:
            yield line, text


def computed_names(tree):
    """Return the calls that load a module whose name is computed, and renamed loaders, with the
    line of each."""
    known = constants(tree)
    for line, node in named_modules(tree):
        if text_of(node, known) is None:
            yield line, ast.unparse(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in LOADERS and alias.asname:
                    yield node.lineno, f"{alias.name} as {alias.asname}"


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


def statement_problems(node, path, root, in_function, only_types):
    """Return the violations of an import statement. `in_function` says where it is, and
    `only_types` that it never runs."""
    module = module_name(path, root)
    part = part_of(module)
    for name in imported_modules(node, module):
        top = name.split(".")[0]
        target = part_of(name)
        if top == "jax":
            yield f"{name}: the package never imports jax"
        elif top == "accnp":
            if target == part and not only_types:
                yield from (f"{name}: {text}" for text in compiler_problems(node, name, module))
            is_installed = part == "_native" and only_types  # what higher layers install
            if rank(target) > rank(part) and not is_installed:
                yield f"{name}: upward, rank {rank(part)} to {rank(target)}"
            if in_function:
                yield f"{name}: own import inside a function"
        elif not only_types and not may_import(top, path, root):
            yield f"{name}: only {' and '.join(COMPILERS[top])} may import it"
        elif top == "scipy" and not in_function and part != "compiler":
            yield f"{name}: scipy at the top of a module"


def compiler_problems(node, name, module):
    """Return the violations of the layers of the compiler by an import statement."""
    names = [name]
    if name == "accnp.compiler":
        names = [f"{name}.{alias.name}" for alias in node.names]
    return filter(None, [compiler_violation(module, n) for n in names])


def name_problems(name, path, root):
    """Return the violations of loading a module by name."""
    module = module_name(path, root)
    ranks = rank(part_of(module)), rank(part_of(name))
    if name.split(".")[0] != "accnp":
        top = name.split(".")[0]
        if not may_import(top, path, root):
            yield f"{name}: only {' and '.join(COMPILERS[top])} may import it"
    elif ranks[1] > ranks[0]:
        yield f"{name}: upward by name, rank {ranks[0]} to {ranks[1]}"
    elif violation := compiler_violation(module, name):
        yield f"{name}: by name, {violation}"


def problems(path, root):
    """Return all violations in one file, as messages."""
    tree = ast.parse(path.read_text())
    deferred = {id(node) for node in inside_functions(tree)}
    only_types = {id(node) for node in type_checking_only(tree)}
    found = [
        (node.lineno, text)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for text in statement_problems(
            node, path, root, id(node) in deferred, id(node) in only_types
        )
    ]
    found += [
        (line, f"{name}: use lazy_imports.imported") for line, name in deferred_by_importlib(tree)
    ]
    found += [
        (line, text)
        for line, name in loaded_by_name(tree)
        for text in name_problems(name, path, root)
    ]
    if path.relative_to(root).as_posix() not in COMPUTED_NAMES:
        found += [(line, f"computed name: {text}") for line, text in computed_names(tree)]
    return [f"line {line}: {text}" for line, text in found]


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


def test_files_that_compute_names_are_listed():
    for place in COMPUTED_NAMES:
        assert list(computed_names(ast.parse((PACKAGE / place).read_text()))), place


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
            "use lazy_imports.imported",
        ),
        ("errors.py", 'sys.modules["accnp.array_type"].Array', "upward by name, rank 0 to 7"),
        ("errors.py", 'sys.modules.get("accnp.array_type")', "upward by name, rank 0 to 7"),
        ("ir/node.py", 'imported(name="accnp.engine")', "upward by name, rank 1 to 6"),
        ("ir/node.py", 'load_module("accnp.engine.plan")', "upward by name, rank 1 to 6"),
        ("ir/node.py", '__import__("accnp.engine")', "upward by name, rank 1 to 6"),
        ("ir/node.py", 'N = "accnp.engine"\nimported(N)', "upward by name, rank 1 to 6"),
        ("ir/node.py", "imported(f'accnp.engine.{m}')", "computed name"),
        ("ir/node.py", "imported(table['f'])", "computed name"),
        ("ir/node.py", "from importlib import import_module as load", "computed name"),
        ("lib.py", "from accnp import __version__", "upward, rank 8 to 9"),
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
