"""The pages of the error classes, written from their docstrings.

A Sphinx extension. Before Sphinx reads the sources, `write_pages` writes one MyST page per class of
`accnp.errors` into `docs/errors`, which is not under version control. The text before the first
section of a docstring says what causes the error, `Notes` how to fix it, and `Examples` has a
program that raises it. `accnp docs errors.NAME` prints the same docstring.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

from api_reference import error_classes, prose, summary, write_files

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTION = re.compile(r"\n\n(Notes|Examples)\n-+\n")
HEADINGS = {"Notes": "Fix", "Examples": "Example"}
INDEX = """# Errors

Errors in shapes, dtypes, and axes are raised at the line that causes them. Errors that depend on
values are raised where a value is used. Tracebacks show the frames of your program only;
`accnp.config.update("traceback_filtering", "off")` shows all.

All classes are subclasses of built-in ones, so `except TypeError` and `except ValueError` catch
them. Most errors are built-in classes themselves. The following classes are in `accnp.errors`, and
have the names that JAX has where it has them. The text of each error names its page, which
`accnp docs errors.NAME` prints in a terminal.

| Error | Cause |
|---|---|
"""


def page(error: type[BaseException]) -> str:
    """The page of one class: what it means, its cause, the fix and an example."""
    text = inspect.getdoc(error) or ""
    first, *rest = SECTION.split(text)
    meaning, _, cause = first.partition("\n\n")
    bases = ", ".join(f"`{base.__name__}`" for base in error.__mro__[1:-3])
    written = [
        f"# {error.__name__}\n",
        *prose(meaning),
        "## Cause\n",
        *prose(cause),
    ]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        written += [f"## {HEADINGS[title]}\n", *prose(body)]
    written.append(
        f"## Class\n\n```{{py:exception}} accnp.errors.{error.__name__}\n```\n\nBases: {bases}\n"
    )
    return "\n".join(written)


def write_pages(folder: Path) -> int:
    """Write the pages and their index into `folder`; returns the number of classes."""
    classes = error_classes()
    rows = "".join(f"| [`{name}`]({name}.md) | {summary(classes[name])} |\n" for name in classes)
    tree = "\n".join(classes)
    pages = {folder / f"{name}.md": page(error) for name, error in classes.items()}
    pages[folder / "index.md"] = (
        f"{INDEX}{rows}\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{tree}\n```\n"
    )
    write_files(folder, pages)
    return len(classes)


def on_builder_inited(app: Sphinx) -> None:
    write_pages(Path(app.srcdir) / "errors")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", on_builder_inited)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
