"""Run a seed program as written, with only its imports changed.

`ours` and `theirs` take the name of a file in `programs/` (with the source as its authors wrote
it), and return a `Run` with the printed output, the global names and the exception that ended it.
Notebook timing lines (`%timeit expression`) evaluate the expression once.
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
    """What a program did."""

    path: Path
    output: str
    names: dict[str, Any]
    error: Exception | None

    def line_of(self, text: str) -> int:
        """The number of the first line that holds `text`."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return next(i for i, line in enumerate(lines, 1) if text in line)


def execute(name: str, library: str) -> Run:
    """Run one program on "accnp" or on "jax"."""
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
    """`ours(name)`: the program on accnp."""
    return lambda name: execute(name, "accnp")


@pytest.fixture
def theirs() -> Callable[[str], Run]:
    """`theirs(name)`: the program on jax, the oracle."""
    pytest.importorskip("jax")
    return lambda name: execute(name, "jax")
