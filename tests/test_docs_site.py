"""The sources of the documentation site are complete: settings, table of contents, links, examples.

These checks read the sources; `make docs` builds the site.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from api.test_names import NAMES, find_object
from doc_examples import Page, without_measurements

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = ("_build", "api", "errors")  # folders that the build writes
GALLERY = "gallery"  # checked by tests/test_gallery.py
PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in DOCS.rglob("*.md")
    if path.relative_to(DOCS).parts[0] not in (*GENERATED, GALLERY)
)
TEXTS = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in PAGES}
# Pages with examples that show their output.
SESSIONS = [name for name in PAGES if "```pycon" in TEXTS[name]]
COMPILER_PAGES = ["architecture", "seeing-inside"]
# Decision records, and the sections that each has after its title.
RECORDS = [name for name in PAGES if re.fullmatch(r"decisions/\d{4}-[a-z0-9-]+", name)]
RECORD_PARTS = ["Context", "Decision", "Alternatives considered", "Consequences"]
RECORD_WORDS = 850  # the maximum length: one page
RECORD_DATA = ROOT / "benchmarks" / "data" / "decisions"
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
# Pages whose examples this file runs; other pages have tests of their own.
EXECUTED = ["from-jax", "from-numpy", "index", "installation"]


def toctree_entries(page: str) -> list[str]:
    """Return the pages that the toctrees of a page list, relative to the folder of all pages."""
    lines = [line.strip() for body in TOCTREE.findall(TEXTS[page]) for line in body.splitlines()]
    folder = PurePosixPath(page).parent
    entries = [line for line in lines if line and not line.startswith(":")]
    names = [re.sub(r".+ <(.+)>", r"\1", entry) for entry in entries]  # "Title <page>"
    return [(folder / name).as_posix() for name in names]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as MyST and the repository's host derive them."""
    titles = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def link_targets(text: str) -> list[str]:
    """Return the targets of links and images within the repository."""
    plain = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    targets = re.findall(r"\]\(([^()\s]+)\)", plain)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def test_settings_are_readable() -> None:
    settings = runpy.run_path(str(DOCS / "conf.py"))
    assert settings["project"] == "accnp"
    assert settings["html_theme"] == "pydata_sphinx_theme"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = " ".join(extras["optional-dependencies"]["docs"])
    assert all(name in needed for name in ("sphinx", "myst-nb", "pydata-sphinx-theme"))


def test_every_page_is_in_one_toctree() -> None:
    listed = [entry for page in PAGES for entry in toctree_entries(page)]
    listed = [entry for entry in listed if not entry.startswith((*GENERATED, GALLERY))]
    assert sorted(listed) == sorted(set(PAGES) - {"index"})


@pytest.mark.parametrize("page", PAGES)
def test_link_targets_exist(page: str) -> None:
    for target in link_targets(TEXTS[page]):
        name, _, anchor = target.partition("#")
        path = (DOCS / page).parent / name if name else DOCS / f"{page}.md"
        if any(path.resolve().is_relative_to(DOCS / folder) for folder in GENERATED):
            continue  # the build checks these
        assert path.exists(), f"{page}.md links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{page}.md: {target}"


def test_external_links_are_well_formed() -> None:
    """Links to other hosts use https and are complete; `make linkcheck` requests them."""
    links = [
        (page, link)
        for page, text in TEXTS.items()
        for link in re.findall(r"\]\(([a-z]+:[^()\s]*)\)", FENCE.sub("", text))
    ]
    assert links
    for page, link in links:
        parts = urlsplit(link)
        assert parts.scheme == "https", f"{page}.md: {link}"
        assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc), f"{page}.md: {link}"


def named_files(text: str) -> Iterator[tuple[str, str]]:
    """Yield the folders and files that a page names in backquotes, as pairs (folder, name).

    A file in a row of a table is in the folder of that row, or of an earlier one; others have "".
    """
    folder = ""
    for line in FENCE.sub("", text).splitlines():
        names = re.findall(r"`([\w.*/-]*\w(?:\*?\.(?:py|c|h|md)|/))`", line)
        folders = [name for name in names if name.endswith("/")]
        folder = (folders[0] if folders else folder) if line.startswith("|") else ""
        yield from (("" if name in folders else folder, name) for name in names)


def test_make_targets_that_files_name_exist() -> None:
    rules = re.findall(r"^([\w-][\w -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()}
    places = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("accnp/**/*.py")]
    for path in [*places, *ROOT.glob("tests/**/*.py")]:
        named = re.findall(r"`make ([\w-]+)", path.read_text())
        assert set(named) <= targets, path


@pytest.mark.parametrize("page", ["architecture", *RECORDS])
def test_files_that_pages_name_exist(page: str) -> None:
    package = ROOT / "accnp"
    missing = []
    for folder, name in named_files(TEXTS[page]):
        here = [*ROOT.glob(name), *package.glob(name)]
        if not here and not any(package.rglob(folder + name)):
            missing.append(folder + name)
    assert not missing


@pytest.mark.parametrize("page", RECORDS)
def test_records_have_one_form(page: str) -> None:
    text = TEXTS[page]
    number = int(re.findall(r"\d+", page)[0])
    assert re.match(rf"# {number}\. .+\n\n- Status: (accepted|superseded)", text)
    assert re.search(r"^- Date: \d{4}-\d{2}-\d{2}", text, re.MULTILINE)
    source = re.search(r"^- Source: (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert source is not None
    assert link_targets(source[1])
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == RECORD_PARTS
    words = re.findall(r"\S*\w\S*", text)  # not the rules below headers of tables
    assert len(words) <= RECORD_WORDS


def test_numbers_of_records_are_unique() -> None:
    numbers = [int(re.findall(r"\d+", page)[0]) for page in RECORDS]
    assert numbers == list(range(1, len(numbers) + 1))


def test_data_of_records_is_shown_and_complete() -> None:
    shown = "".join(TEXTS[page] for page in RECORDS)
    files = sorted(RECORD_DATA.glob("*.csv"))
    assert files
    for path in files:
        assert f"data/decisions/{path.name}" in shown
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert rows
        assert all(len(row) == len(header) for row in rows), path.name


@pytest.mark.parametrize("page", EXECUTED)
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of a page run in one namespace, one after the other."""
    blocks = re.findall(r"^```python\n(.*?)^```", TEXTS[page], re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/{page}.md, block {number}", "exec"), namespace)
    assert capsys.readouterr().out.strip()


def test_the_page_of_libraries_names_the_releases_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(r.split("==") for r in project["optional-dependencies"]["libraries"])
    rows = re.findall(
        r"^\| \[(\S+)\]\(\S+\) \| (\S+) \|", TEXTS["libraries"].split("\n## SciPy")[0], re.MULTILINE
    )
    names = {"haiku": "dm-haiku"}
    assert {names.get(n.lower(), n.lower()): release for n, release in rows} == pinned


@pytest.mark.parametrize("page", COMPILER_PAGES)
def test_pages_show_what_the_compiler_prints(page: str) -> None:
    """Both pages run in `make test`, since most changes of the compiler change them."""
    check_session(page)


@pytest.mark.parametrize("page", [name for name in SESSIONS if name not in COMPILER_PAGES])
def test_sessions_show_what_is_printed(page: str) -> None:
    check_session(page)


def check_session(page: str) -> None:
    """Run the examples of a page and compare their outputs."""
    session = Page(DOCS / f"{page}.md")
    session.run()
    wrong = [
        f"{example.source}expected:\n{example.want}got:\n{example.got}"
        for example in session.examples()
        if not example.matches()
    ]
    assert not wrong, "\n".join([*wrong, f"python -m tests.doc_examples docs/{page}.md"])


@pytest.mark.usefixtures("by_llvm")
def test_debug_logs_are_those_of_the_page(tmp_path: Path) -> None:
    """Compare a first and a second run at level 1, and launches at level 5, in any order, because
    several threads compile kernels."""
    text = TEXTS["seeing-inside"].split("\n## ")
    (section,) = [part for part in text if part.startswith("`ACCNP_DEBUG`")]
    (source,) = re.findall(r"```python\n(# example.py\n.*?)```", section, re.DOTALL)
    (tmp_path / "example.py").write_text(source)
    for level, shown in zip(
        "115", re.findall(r"```text\n(.*?)```", section, re.DOTALL), strict=True
    ):
        logs = {"ACCNP_DEBUG": level, "ACCNP_CACHE_DIR": str(tmp_path / "kernels")}
        done = subprocess.run(
            [sys.executable, "example.py"], cwd=tmp_path, env={**os.environ, **logs},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        printed = (done.stdout + done.stderr).replace(f"{tmp_path}{os.sep}", "")
        lines = [x for x in printed.splitlines() if level == "1" or x.startswith("accnp: launch ")]
        actual, expected = (map(without_measurements, x) for x in (lines, shown.splitlines()))
        assert sorted(actual) == sorted(expected)


def api_reference() -> ModuleType:
    """Return the extension that writes the API reference."""
    spec = importlib.util.spec_from_file_location("api_reference", DOCS / "api_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_a_page() -> None:
    """Applies to names of modules; attributes of classes and other objects are on the page of their
    object."""
    reference = api_reference()
    documented = reference.public_names()
    pages = {id(module): path for path, module in reference.namespaces().items()}
    arrays = set(documented["accnp.numpy"])
    missing = []
    for name in NAMES:
        head, _, last = name.rpartition(".")
        module = find_object(head) if head else reference.resolve("accnp")
        value = find_object(name)
        if not isinstance(module, ModuleType) or value is None or last.startswith("__"):
            continue
        if isinstance(value, ModuleType):
            continue
        path = pages.get(id(module))
        if path is None or last not in (arrays if path == "accnp" else set()) | set(
            documented[path]
        ):
            missing.append(name)
    assert not missing
    assert sum(map(len, documented.values())) > 2000


def test_docstrings_become_markdown() -> None:
    text = """Add `a_b` to x_y.

    Args:
        x: a number, or
            an array.

    Raises:
        TypeError: x is a list[int].

    >>> add(1)
    2
    """
    markdown = api_reference().markdown(text)
    assert markdown.startswith("Add `a_b` to x\\_y.")
    assert "`x`\n: a number, or an array.\n" in markdown
    assert "`TypeError`\n: x is a list\\[int\\]." in markdown
    assert "````pycon\n>>> add(1)\n2\n````" in markdown


def test_sections_in_numpy_style_become_markdown() -> None:
    text = """Add `a_b` to x_y.

    Parameters
    ----------
    x, y : array_like
        A number, or
        an array.

    Returns
    -------
    Array
        The sum.

    See Also
    --------
    sub, neg : What is left.

    Examples
    --------
    >>> add(1)
    2
    """
    markdown = api_reference().markdown(text)
    assert "**Parameters**\n\n`x, y` : array\\_like\n: A number, or\n  an array.\n" in markdown
    assert "**Returns**\n\n`Array`\n: The sum.\n" in markdown
    assert "- `sub`, `neg`: What is left." in markdown
    assert "````pycon\n>>> add(1)\n2\n````" in markdown
