"""The exception of what the loop IR does not express: its callers try another way."""

from __future__ import annotations

import ast

__all__ = ["Unsupported"]


class Unsupported(Exception):
    """What the loop IR does not express yet.

    Parameters
    ----------
    what : str
        What it is.
    node : ast.AST, optional
        The syntax that means it, of which `line` and `column` are taken.

    Attributes
    ----------
    line, column : int or None
        The place in the source, both from 1 on; None if it is not known.
    """

    def __init__(self, what: str, node: ast.AST | None = None) -> None:
        super().__init__(what)
        self.line: int | None = None
        self.column: int | None = None
        if node is not None:
            self.locate(node)

    def move(self, lines: int) -> None:
        """Count lines from another one on; a place before that is not known."""
        if self.line is not None:
            self.line = self.line + lines if self.line + lines > 0 else None

    def locate(self, node: ast.AST) -> None:
        """Say where it is, unless that is known already."""
        if self.line is None and isinstance(node, ast.stmt | ast.expr) and hasattr(node, "lineno"):
            self.line, self.column = node.lineno, node.col_offset + 1
