"""Run the examples of documentation pages: the blocks of type `pycon`, in one namespace per page.

The functions take the path of a Markdown page, and return the examples whose output differs from
the page. Measured numbers may differ: times, speeds, and percentages.

`python -m tests.doc_examples PAGE...` writes the outputs of accnp into the pages; outputs that an
ellipsis still matches are kept. Read the difference before committing it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
import sys
import textwrap
import traceback
from collections.abc import Iterator
from pathlib import Path

# Measured times and speeds, and percentages of these: any others are equal.
MEASURED = re.compile(r"\d+(?:\.\d+)?(?= ?(?:ns|us|ms|GB/s|%))")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^( *)```pycon\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def without_measurements(text: str) -> str:
    """Replace the measured numbers in an output by a constant."""
    return MEASURED.sub("1", text)


class Example:
    """One statement of a page, its output, and the output that the page shows."""

    def __init__(self, source: str, expected: str) -> None:
        self.source = source
        self.want = expected
        self.got = ""

    def run(self, namespace: dict[str, object], number: int) -> None:
        """Run the statement as an interactive session does.

        The source is registered under a file name, where `jnp.kernel` finds the source of
        functions.
        """
        name = f"example_{number}.py"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[name] = (len(self.source), None, lines, name)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(self.source, name, "single"), namespace)
            except Exception as error:
                text = "".join(traceback.format_exception_only(error))
                print(f"Traceback (most recent call last):\n    ...\n{text}", end="")
        self.got = re.sub(r"^$(?=\n)", "<BLANKLINE>", printed.getvalue(), flags=re.MULTILINE)

    def matches(self) -> bool:
        expected, actual = (
            without_measurements(x.replace("<BLANKLINE>", "")) for x in (self.want, self.got)
        )
        return doctest.OutputChecker().check_output(expected, actual, FLAGS)

    def text(self) -> str:
        """The statement with its prompts and its output."""
        first, *rest = self.source.rstrip("\n").split("\n")
        shown = self.want if self.want and self.matches() else self.got
        return "\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in rest), shown])


class Page:
    """The examples of a page. `run` computes their outputs."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        parser = doctest.DocTestParser()
        self.blocks = [
            [Example(e.source, e.want) for e in parser.get_examples(textwrap.dedent(match[2]))]
            for match in BLOCK.finditer(self.text)
        ]

    def run(self) -> None:
        namespace: dict[str, object] = {"__name__": "__main__"}
        for number, example in enumerate(self.examples(), 1):
            example.run(namespace, number)

    def examples(self) -> Iterator[Example]:
        for block in self.blocks:
            yield from block

    def rewritten(self) -> str:
        """Return the text of the page with the outputs of this run."""
        blocks = iter(self.blocks)

        def block(match: re.Match[str]) -> str:
            lines = "\n".join(example.text().rstrip("\n") for example in next(blocks))
            return textwrap.indent(f"```pycon\n{lines}\n```", match[1])

        return BLOCK.sub(block, self.text)


def main() -> None:
    for name in sys.argv[1:]:
        page = Page(Path(name))
        page.run()
        Path(name).write_text(page.rewritten(), encoding="utf-8")


if __name__ == "__main__":
    main()
