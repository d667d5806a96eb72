"""Parsing and traversal of the syntax trees of kernels.

`parse_source` parses the text of kernels in restricted Python, `functions_of` returns their
definitions, and `walk` the nodes of a tree. The other modules of the front end use them. `ast.walk`
visits every field of every node, including operators and contexts, which took a third of the time
of lowering a kernel of a hundred operations.
"""

from __future__ import annotations

import ast
import functools
from typing import Any, cast

__all__ = ["functions_of", "parse_source", "walk"]

_SKIPPED = {"op", "ops", "ctx", "type_comment", "decorator_list", "returns", "type_ignores", "kind"}

_MAX_ATTEMPTS = 8  # to parse a text


def parse_source(source: str) -> ast.Module:
    """Return the syntax tree of a text.

    Python 3.11 counts the depth of trees for all threads together. `ast.parse` fails ("AST
    constructor recursion depth mismatch") if another thread parses at the same time; then it is
    called again.
    """
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)


def functions_of(source: str) -> dict[str, ast.FunctionDef]:
    """Return the functions of a text by name."""
    return {d.name: d for d in parse_source(source).body if isinstance(d, ast.FunctionDef)}


@functools.cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return (
        ()
        if kind in (ast.Name, ast.Constant)
        else tuple([f for f in kind._fields if f not in _SKIPPED])
    )


def walk(tree: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, without operators and contexts."""
    nodes = [tree]
    add = nodes.append
    for node in nodes:  # the list grows during the loop
        for field in _fields(type(node)):
            below: Any = getattr(node, field)
            if type(below) is list:
                for n in cast("list[Any]", below):
                    if isinstance(n, ast.AST):
                        add(n)
            elif isinstance(below, ast.AST):
                add(below)
    return nodes
