"""The console script `accnp`: its entry point, `--version`, `docs`, and invalid commands."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import accnp
from accnp import __main__ as command

ROOT = Path(__file__).parent.parent


def test_the_entry_point_is_main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"accnp": "accnp.__main__:main"}
    assert project["version"] == accnp.__version__


def test_arguments_default_to_those_of_the_process(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["accnp", "--version"])
    assert command.main() == 0
    assert capsys.readouterr().out == f"accnp {accnp.__version__}\n"


def test_help_names_every_command(capsys):
    assert command.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("--version", "info", "bench", "clear-cache", "docs"))


@pytest.mark.parametrize("words", [["bench-mark"], ["info", "more"], ["--nothing"]])
def test_unknown_commands_are_named(words, capsys):
    assert command.main(words) == 2
    assert f"unknown command: {' '.join(words)}" in capsys.readouterr().err


def test_docs_command_prints_the_docstring(capsys):
    assert command.main(["docs", "lax.scan", "accnp.jit"]) == 0
    text = capsys.readouterr().out
    assert "accnp.lax.scan: function scan" in text
    assert "accnp.jit: function jit" in text
    assert "\b" not in text  # no overstrikes of terminals
    assert command.main(["docs", "jnp.sum", "jax.vmap"]) == 0
    assert "accnp.sum: function sum" in capsys.readouterr().out
    assert command.main(["docs", "lax.scna"]) == 2
    assert "did you mean 'scan'?" in capsys.readouterr().err


def test_closed_output_pipe_ends_the_command_quietly():
    program = f"{sys.executable} -m accnp docs Array jit vmap | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("accnp.Array: class Array")
    assert done.stderr == ""
    assert done.returncode == 1


def test_docs_command_prints_the_documentation_url(capsys, monkeypatch):
    assert command.main(["docs"]) == 0
    assert capsys.readouterr().out.strip() == command.documentation()
    links = {"Project-URL": ["Source, https://a.example/", "Documentation, https://b.example/"]}

    class Metadata:
        get_all = staticmethod(links.get)

    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: Metadata)
    assert command.documentation() == "https://b.example/"
