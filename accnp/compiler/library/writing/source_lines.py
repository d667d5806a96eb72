"""The lines of a source, which are indented as blocks begin and end."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["SourceLines"]


class SourceLines:
    """Collects indented lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.whiles = False  # whether there is a loop without a known count
        self.loops = 0  # around the next line

    @property
    def in_loop(self) -> bool:
        """Return whether the next line is in a loop."""
        return self.loops > 0

    def add(self, *lines: str) -> None:
        """Append lines at the current indentation."""
        pad = "    " * self.depth
        self.lines.extend(pad + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Append a head line; what is added inside is indented (an empty body becomes `pass`)."""
        self.add(head)
        self.whiles |= head.startswith("while ")
        is_loop = head.startswith(("for ", "while "))
        self.loops += is_loop
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self.depth -= 1
        self.loops -= is_loop

    def text(self) -> str:
        """Return the source."""
        return "\n".join(self.lines) + "\n"
