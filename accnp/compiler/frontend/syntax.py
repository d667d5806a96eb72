"""Parsing and traversal of the syntax trees of kernels.

`parse_source` parses the text of kernels in restricted Python, `functions_of` returns their
definitions, and `walk` the nodes of a tree. The other modules of the front end use them. `ast.walk`
visits every field of every node, including operators and contexts, which took a third of the time
of lowering a kernel of a hundred operations; `walk` skips them.
"""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from typing import cast

__all__ = [
    "TOO_DEEP", "called_function", "describe_statement", "functions_of", "line_of_deepest",
    "line_of_longest", "parse_source", "walk",
]  # fmt: skip

_SKIPPED = {"op", "ops", "ctx", "type_comment", "decorator_list", "returns", "type_ignores", "kind"}

_MAX_ATTEMPTS = 8  # to parse a text
TOO_DEEP = "an expression or a statement that is nested too deeply; divide it into several"
# Statements whose class in `ast` has another name than they have in Python.
_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.AnnAssign: "an assignment with an annotation",
    ast.AsyncFor: "an async for statement",
    ast.AsyncFunctionDef: "an async function",
    ast.AsyncWith: "an async with statement",
    ast.Assign: "an assignment to something other than names",
    ast.AugAssign: "an augmented assignment",
    ast.ClassDef: "a class",
    ast.Delete: "a del statement",
    ast.Expr: "an expression whose value is not used",
    ast.FunctionDef: "a function in another one",
    ast.ImportFrom: "an import statement",
    ast.TryStar: "a try statement",
}


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


def called_function(x: ast.expr) -> str:
    """Return the name of the function that an expression calls, or "" if it is not such a call."""
    return x.func.id if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) else ""


def describe_statement(s: ast.stmt) -> str:
    """Return what a statement is, for an error message."""
    name = type(s).__name__.lower()
    article = "an" if name[0] in "aeiou" else "a"
    return _STATEMENTS.get(type(s), f"{article} {name} statement")


def line_of_deepest(tree: ast.AST) -> int:
    """Return the line of the statement with the most deeply nested part."""
    deepest_line, most = 1, -1
    waiting: list[tuple[ast.AST, int, int]] = [(tree, 0, 1)]
    while waiting:
        node, depth, line = waiting.pop()
        if isinstance(node, ast.stmt):
            line = node.lineno
        if depth > most:
            deepest_line, most = line, depth
        waiting += [(n, depth + 1, line) for n in ast.iter_child_nodes(node)]
    return deepest_line


def line_of_longest(source: str) -> int:
    """Return the line of the statement of the most tokens, in a text that cannot be parsed."""
    longest_line, most, begin, count = 1, 0, 1, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        begin = begin if count else token.start[0]
        count += 1
        if token.type in (tokenize.NEWLINE, tokenize.NL):
            longest_line, most = (begin, count) if count > most else (longest_line, most)
            count = 0
    return longest_line


@functools.cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return (
        ()
        if kind in (ast.Name, ast.Constant)
        else tuple([f for f in kind._fields if f not in _SKIPPED])
    )


def walk(tree: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, except those in the fields of `_SKIPPED`."""
    nodes = [tree]
    add = nodes.append
    for node in nodes:  # the list grows during the loop
        for field in _fields(type(node)):
            below: object = getattr(node, field)
            if type(below) is list:
                for n in cast("list[object]", below):
                    if isinstance(n, ast.AST):
                        add(n)
            elif isinstance(below, ast.AST):
                add(below)
    return nodes
