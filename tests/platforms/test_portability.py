"""The package has no unconditional use of Linux features, since it also runs on other systems.
Differences are handled by a condition or as an error, next to the code that needs Linux.

macOS and Windows are not available to the tests. These find names of POSIX or of Linux that code
uses unconditionally, and run a few programs with those names removed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("accnp", "pytest_accnp")
# Attributes of `os`, and modules, that Windows does not have.
NAMES = frozenset({
    "fork", "geteuid", "getloadavg", "getpgid", "getpriority", "getuid", "mkfifo",
    "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sched_yield", "setpriority",
    "sysconf", "uname",
})  # fmt: skip
FLAGS = frozenset({"O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"})
MODULES = frozenset({"fcntl", "grp", "pwd", "resource", "termios"})
FOLDERS = ("/proc/", "/sys/", "/dev/")
CONDITIONS = ("hasattr", "sys.platform", "os.name", "SUPPORTED", "MACHINE")
ERRORS = frozenset({"AttributeError", "OSError", "Exception", "ValueError"})
# Uses that are guarded elsewhere, by file, or by file and the beginning of a name.
GUARDED = {
    "accnp/compiler/private_folders.py": "`private_folder` returns early without user numbers",
    "accnp/compiler/executable_memory.py": "callers test SUPPORTED",
    "accnp/runtime/cupy_driver.py": "GPUs are supported on Linux only",
    "accnp/__main__.py: /sys/": "a pattern that matches no file elsewhere",
    "accnp/bench/timing.py: /proc/cpuinfo": "used if it is a file",
    "accnp/compiler/processor.py: /proc/cpuinfo": "`_describe_processor` tests for Linux",
    "accnp/config.py: /": "a default; `OSError` is handled where the file is read",
    "accnp/runtime/memory_regions.py: /proc/self/maps": "`OSError` is handled where it is read",
}


def uses(tree: ast.AST) -> Iterator[tuple[int, str, list[ast.AST]]]:
    """Yield the line, the name and the enclosing nodes of each use of a platform-specific name."""

    def visit(node: ast.AST, around: list[ast.AST]) -> Iterator[tuple[int, str, list[ast.AST]]]:
        use = ""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr in NAMES | FLAGS:
                use = f"os.{node.attr}"
        elif isinstance(node, ast.Import) and {a.name for a in node.names} & MODULES:
            use = ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.startswith(FOLDERS) and "\n" not in node.value:
                use = node.value
        elif isinstance(node, ast.Call) and ast.unparse(node).endswith("CDLL(None)"):
            use = "CDLL(None)"
        if use:
            yield getattr(node, "lineno", 0), use, around
        for child in ast.iter_child_nodes(node):
            yield from visit(child, [*around, node])

    yield from visit(tree, [])


def is_condition(test: ast.expr) -> bool:
    return any(text in ast.unparse(test) for text in CONDITIONS)


def is_guarded(around: list[ast.AST]) -> bool:
    for node in around:
        if isinstance(node, ast.If | ast.IfExp) and is_condition(node.test):
            return True
        if isinstance(node, ast.Try):
            types = [ast.unparse(h.type).strip("()") for h in node.handlers if h.type]
            if ERRORS.intersection(name for names in types for name in names.split(", ")):
                return True
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(inner, ast.If | ast.IfExp) and is_condition(inner.test)
            for inner in ast.walk(node)
        ):
            return True
    return False


def unconditional_uses() -> list[str]:
    places = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            tree = ast.parse(path.read_text(encoding="utf-8"))
            places += [
                f"{name}:{line}: {what}"
                for line, what, around in uses(tree)
                if not is_guarded(around)
                and not any(f"{name}: {what}".startswith(known) for known in GUARDED)
            ]
    return places


def test_names_of_linux_are_conditional() -> None:
    assert unconditional_uses() == []


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.uname()",
        "open('/proc/cpuinfo')",
        "import ctypes\nctypes.CDLL(None)",
        "import pwd",
    ],
)
def test_unconditional_names_are_found(source: str) -> None:
    assert any(not is_guarded(around) for _, _, around in uses(ast.parse(source)))


WITHOUT = """
import builtins, ctypes, io, mmap, os, sys
import numpy, scipy.linalg, llvmlite.binding, ml_dtypes, numba  # they may use what Linux has
for name in {names!r}:
    if hasattr(os, name):
        delattr(os, name)
for name in ("MAP_PRIVATE", "MAP_ANONYMOUS", "PROT_READ", "PROT_EXEC"):
    delattr(mmap, name)
for name in {modules!r}:
    sys.modules[name] = None
sys.platform, os.name = "win32", "nt"
os.environ["PROCESSOR_ARCHITECTURE"] = "AMD64"
library = ctypes.CDLL.__init__
def load(self, name, *args, **kwargs):
    assert name is not None, "CDLL(None)"
    library(self, name, *args, **kwargs)
ctypes.CDLL.__init__ = load
opened = builtins.open
def open_other(file, *args, **kwargs):
    if isinstance(file, str) and file.startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(file)
    return opened(file, *args, **kwargs)
builtins.open = io.open = open_other
"""
PROGRAM = """
import numpy as np
import accnp as jnp
from accnp.compiler import executable_memory
assert not executable_memory.SUPPORTED
x = np.linspace(-2, 2, 3000, dtype="f4")
np.testing.assert_allclose(jnp.exp(jnp.asarray(x)).sum(), np.exp(x).sum(), rtol=1e-5)
np.testing.assert_array_equal(jnp.sort(-jnp.asarray(x)), np.sort(-x))
m = x[:900].reshape(30, 30)
np.testing.assert_allclose(jnp.asarray(m) @ m.T, m @ m.T, rtol=1e-4, atol=1e-4)
np.testing.assert_allclose(
    jnp.jit(lambda v: jnp.lax.fori_loop(0, 9, lambda i, c: c * 0.5 + v, v))(2.0), 3.99609375
)
np.testing.assert_allclose(jnp.linalg.det(jnp.eye(9) * 2), 512)
y = jnp.asarray(np.ones((300, 3000), "f4"))
assert float((y * 2 + 1).sum()) == 2700000
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="removes names of Linux")
def test_programs_run_without_names_of_linux(tmp_path: Path) -> None:
    """In this configuration, LLVM's linker loads all code, and LLVM detects the CPU features."""
    before = WITHOUT.format(names=sorted(NAMES), modules=sorted(MODULES))
    for _ in range(2):  # the second time with kernels on disk
        done = subprocess.run(
            [sys.executable, "-c", before + PROGRAM],
            env={**os.environ, "ACCNP_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "done\n"
    assert list(tmp_path.glob("*.obj"))
