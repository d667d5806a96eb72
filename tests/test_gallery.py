"""The notebooks of the gallery run, each in a fresh process with an empty kernel cache: all of them
in `make test-full`, a sample in `make test`.

Their assertions check the results: energies, accuracies, prices. `make docs` executes them as well.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sample

pytest.importorskip("sklearn", reason="some notebooks read their data from scikit-learn")
pytest.importorskip("matplotlib", reason="the notebooks draw with matplotlib")

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "gallery"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")


def test_the_index_lists_every_notebook_once() -> None:
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^```\{gallery\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    names = [line.split()[0] for row in rows for line in row.splitlines()]
    assert sorted(names) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_have_the_required_parts(name: str) -> None:
    """A notebook has a title, an introduction of two paragraphs, assertions, figures with labels,
    and links."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    head, title, body = re.split(r"^# (.+)\n\n", text, maxsplit=1, flags=re.MULTILINE)
    assert "format_name: myst" in head
    assert title
    introduction = body.partition("```{code-cell}")[0].strip().split("\n\n")
    assert len(introduction) >= 2
    for what in ("\nassert ", ".set(", "title", "\n## Next\n"):
        assert what in body, f"{name}.md has no {what!r}"
    for target in re.findall(r"\]\(([^():#\s]+)[^()\s]*\)", body):
        # The other pages are the sources of the site; those of the API are generated.
        assert target.startswith("../api/") or (FOLDER / target).exists(), target


def test_unknown_names_are_listed() -> None:
    command = [sys.executable, str(FOLDER / "run.py"), "tsne", "n-body"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "unknown notebooks: tsne; the names are " in done.stderr
    assert "Traceback" not in done.stderr


def test_code_is_formatted(tmp_path: Path) -> None:
    """Code cells follow the repository's format; a semicolon at the end hides the last value."""
    for name in NOTEBOOKS:
        text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for number, source in enumerate(cells):
            source = source.removesuffix(";\n").removesuffix("\n") + "\n"
            (tmp_path / f"{name}-{number}.py").write_text(source, encoding="utf-8")
    config = ["--config", str(ROOT / "pyproject.toml")]
    command = ["-m", "ruff", "format", "--quiet", "--diff", *config, str(tmp_path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sample(NOTEBOOKS, 4))
def test_notebook_runs(name: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "ACCNP_CACHE_DIR": str(tmp_path / "cache"),
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-W", "error", str(FOLDER / "run.py"), name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
