"""Syntax trees of kernels: texts come in, definitions go out; an expression, and its nodes.

`ast.walk` looks at every field of every node, operators and contexts among them, and took a third
of the time that lowering a kernel of a hundred operations took.
"""

from __future__ import annotations

import ast
import functools
from typing import Any, cast

__all__ = ["functions_of", "parse_source", "walk"]

_MARKS = {"op", "ops", "ctx", "type_comment", "decorator_list", "returns", "type_ignores", "kind"}

_TIMES = 8  # that a text is parsed, at most


def parse_source(source: str) -> ast.Module:
    """The tree of a text.

    Python 3.11 counts the depth of trees for all threads together, and fails where another one
    makes a tree meanwhile ("AST constructor recursion depth mismatch"): then it is done again.
    """
    for _ in range(_TIMES - 1):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)


def functions_of(source: str) -> dict[str, ast.FunctionDef]:
    """The functions of a text by their names."""
    return {d.name: d for d in parse_source(source).body if isinstance(d, ast.FunctionDef)}


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
    add = found.append
    for node in found:  # which grows meanwhile
        for field in _fields(type(node)):
            below: Any = getattr(node, field)
            if type(below) is list:
                for n in cast("list[Any]", below):
                    if isinstance(n, ast.AST):
                        add(n)
            elif isinstance(below, ast.AST):
                add(below)
    return found
