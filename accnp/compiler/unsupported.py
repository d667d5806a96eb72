"""The exception for programs that the loop IR cannot express. Callers then use a fallback."""

from __future__ import annotations

import ast

__all__ = ["Unsupported"]


class Unsupported(Exception):
    """Raised for something that the loop IR does not express.

    Parameters
    ----------
    what : str
        Description of what is not supported.
    node : ast.AST, optional
        Its syntax, which determines `line` and `column`.

    Attributes
    ----------
    line, column : int or None
        The position in the source, both counted from 1; None if it is not known.
    """

    def __init__(self, what: str, node: ast.AST | None = None) -> None:
        super().__init__(what)
        self.line: int | None = None
        self.column: int | None = None
        if node is not None:
            self.locate(node)

    def move(self, lines: int) -> None:
        """Add a number of lines to the position; it becomes unknown if it is then before the first
        line."""
        if self.line is not None:
            self.line = self.line + lines if self.line + lines > 0 else None

    def locate(self, node: ast.AST) -> None:
        """Set the position, unless it is known already."""
        if self.line is None and isinstance(node, ast.stmt | ast.expr) and hasattr(node, "lineno"):
            self.line, self.column = node.lineno, node.col_offset + 1
