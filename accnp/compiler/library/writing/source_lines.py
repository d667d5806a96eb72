"""The lines of a source, which are indented as blocks begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SourceLines"]


class SourceLines:
    """Collects indented lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.whiles = False  # whether there is a loop without a known count

    def add(self, *lines: str) -> None:
        """Append lines at the current indentation."""
        pad = "    " * self.depth
        self.lines.extend(pad + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Append a head line; what is added inside is indented (an empty body becomes `pass`)."""
        self.add(head)
        self.whiles |= head.startswith("while ")
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self.depth -= 1

    def text(self) -> str:
        """Return the source."""
        return "\n".join(self.lines) + "\n"
