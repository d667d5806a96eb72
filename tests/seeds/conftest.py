"""Run a seed program as written, with only its imports changed.

`ours` and `theirs` take the name of a file in `programs/`, which contains the source as its authors
wrote it. They return a `Run` with the printed output, the global names and the exception that ended
it. Notebook timing lines (`%timeit expression`) evaluate the expression once.
"""

import contextlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
IMPORTS = [
    (r"^import jax$", "import accnp as jax"),
    (r"^import jax\.numpy as jnp\b", "import accnp.numpy as jnp"),
    (r"^from jax import ", "from accnp import "),
]
MAGIC = (r"^%time(it)?( -\w+)* ", "")


@dataclass
class Run:
    """The outcome of a program: its output, its global names and its exception."""

    path: Path
    output: str
    names: dict[str, Any]
    error: Exception | None

    def line_of(self, text: str) -> int:
        """Return the number of the first line that contains `text`."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return next(i for i, line in enumerate(lines, 1) if text in line)


def execute(name: str, library: str) -> Run:
    """Run one program with "accnp" or "jax"."""
    path = PROGRAMS / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    changes = [MAGIC, *IMPORTS] if library == "accnp" else [MAGIC]
    for pattern, new in changes:
        source = re.sub(pattern, new, source, flags=re.MULTILINE)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    output, error = io.StringIO(), None
    with contextlib.redirect_stdout(output):
        try:
            exec(compile(source, str(path), "exec"), names)
        except Exception as caught:
            error = caught
    return Run(path, output.getvalue(), names, error)


@pytest.fixture
def ours() -> Callable[[str], Run]:
    """Provide `ours(name)`, which runs the program with accnp."""
    return lambda name: execute(name, "accnp")


@pytest.fixture
def theirs() -> Callable[[str], Run]:
    """Provide `theirs(name)`, which runs the program with JAX, the reference."""
    pytest.importorskip("jax")
    return lambda name: execute(name, "jax")
