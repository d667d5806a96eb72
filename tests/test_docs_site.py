"""The sources of the documentation site are complete: settings, table of contents, links, examples.

These checks read the sources; `make docs` builds the site.
"""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))
TEXTS = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in PAGES}
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
# Pages whose examples this file runs; other pages have tests of their own.
EXECUTED = ["index"]


def toctree_entries(text: str) -> list[str]:
    """The pages that the toctrees of a page list."""
    lines = [line.strip() for body in TOCTREE.findall(text) for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as MyST and the repository's host derive them."""
    titles = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def link_targets(text: str) -> list[str]:
    """The targets of links and pictures within the repository."""
    plain = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    targets = re.findall(r"\]\(([^()\s]+)\)", plain)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def test_settings_are_readable() -> None:
    settings = runpy.run_path(str(DOCS / "conf.py"))
    assert settings["project"] == "accnp"
    assert settings["html_theme"] == "pydata_sphinx_theme"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = " ".join(extras["optional-dependencies"]["docs"])
    assert all(name in needed for name in ("sphinx", "myst-parser", "pydata-sphinx-theme"))


def test_every_page_is_in_one_toctree() -> None:
    listed = [entry for text in TEXTS.values() for entry in toctree_entries(text)]
    listed = [entry for entry in listed if not entry.startswith("api/")]  # generated
    assert sorted(listed) == sorted(set(PAGES) - {"index"})


@pytest.mark.parametrize("page", PAGES)
def test_link_targets_exist(page: str) -> None:
    for target in link_targets(TEXTS[page]):
        name, _, anchor = target.partition("#")
        path = DOCS / name if name else DOCS / f"{page}.md"
        assert path.exists(), f"{page}.md links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{page}.md: {target}"


@pytest.mark.parametrize("page", EXECUTED)
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of a page run in one namespace, one after the other."""
    blocks = re.findall(r"^```python\n(.*?)^```", TEXTS[page], re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/{page}.md, block {number}", "exec"), namespace)
    assert capsys.readouterr().out.strip()
