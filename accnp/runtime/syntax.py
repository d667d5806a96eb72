"""The nodes of a syntax tree that kernels are asked for: an expression comes in, a list goes out.

`ast.walk` looks at every field of every node, operators and contexts among them, and took a third
of the time that lowering a kernel of a hundred operations took.
"""

from __future__ import annotations

import ast
import functools

__all__ = ["walk"]

_MARKS = {"op", "ops", "ctx", "type_comment", "decorator_list", "returns", "type_ignores", "kind"}


@functools.cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return (
        ()
        if kind in (ast.Name, ast.Constant)
        else tuple([f for f in kind._fields if f not in _MARKS])
    )


def walk(tree: ast.AST) -> list[ast.AST]:
    """A node and what is below it, without operators and contexts."""
    found = [tree]
    for node in found:  # which grows meanwhile
        for field in _fields(type(node)):
            below = getattr(node, field)
            if isinstance(below, list):
                found += [n for n in below if isinstance(n, ast.AST)]
            elif isinstance(below, ast.AST):
                found.append(below)
    return found
