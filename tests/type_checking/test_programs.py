"""What type checkers say of users' programs: pyright, over all of `programs` in one process.

A line of a program with `# error: RULE` must have an error of that rule, and no other line may have
one. Types are asserted with `typing.assert_type`.
"""

import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_overloads

import pytest

import accnp

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
EXPECTED = re.compile(r"# error: (\w+)")


@pytest.fixture(scope="module")
def errors():
    """The errors of each program, as pairs of line and rule."""
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, *map(str, PROGRAMS)], capture_output=True, text=True, check=False
    )
    found = {path.name: [] for path in PROGRAMS}
    for told in json.loads(done.stdout)["generalDiagnostics"]:
        if told["severity"] == "error":
            line = told["range"]["start"]["line"] + 1
            found[Path(told["file"]).name].append((line, told.get("rule"), told["message"]))
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_errors_are_those_expected(program, errors):
    lines = enumerate(program.read_text().splitlines(), 1)
    expected = {(n, m[1]) for n, line in lines if (m := EXPECTED.search(line))}
    found = {(line, rule): message for line, rule, message in errors[program.name]}
    unexpected = [
        f"{line}: {rule}: {text}"
        for (line, rule), text in found.items()
        if (line, rule) not in expected
    ]
    assert not unexpected, "\n".join(unexpected)
    assert not sorted(expected - set(found)), "no error on these lines"


def test_the_marker_of_typed_packages_is_shipped():
    assert (ROOT / "accnp/py.typed").read_text() == ""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # Hatchling takes all files of these folders that git does not ignore.
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert list(wheel) == ["packages"]
    assert "accnp" in wheel["packages"]
    assert not any("typed" in line for line in (ROOT / ".gitignore").read_text().splitlines())
    assert "Typing :: Typed" in project["project"]["classifiers"]


def test_overloads_of_jit_have_all_options():
    options = inspect.signature(accnp.jit).parameters
    found = get_overloads(inspect.unwrap(accnp.jit))
    assert len(found) == 2
    for overload in found:
        given = inspect.signature(overload).parameters
        assert list(given) == list(options)
        assert all(given[name].default == options[name].default for name in list(options)[1:])
