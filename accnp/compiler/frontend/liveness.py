"""Liveness of the names of a function: which of them are read later.

`Liveness` takes the syntax tree of a function. `statements.py` uses the result to pass on only
those names from a loop or a branch that are read after it.

Source: Aho, Lam, Sethi and Ullman, Compilers, 2nd edition, 9.2.5. The blocks are those of the
syntax tree; the only jump is `break`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from accnp.compiler.frontend.syntax import walk

__all__ = ["Liveness", "assigned", "names_in"]


def names_in(*nodes: ast.AST) -> set[str]:
    """Return the names in expressions."""
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


def assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements, and those in them, assign."""
    return {
        n.id
        for s in body
        for n in walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


class Liveness:
    """The names that are read after statements of a function.

    `after` has those of each `if` and loop, and `at_head` those that are read after the beginning
    of a step of each loop; keys are the ids of the nodes. `at_entry` has those that are read on
    some path from the beginning of the function on, and `after_loops` the indices of loops that are
    read after them.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self.after: dict[int, set[str]] = {}
        self.at_head: dict[int, set[str]] = {}
        self._exits: list[set[str]] = []  # the names that are read after the enclosing loops
        self.after_loops: set[str] = set()
        self.at_entry = self.block(function.body, set())

    def block(self, body: Sequence[ast.stmt], live: set[str]) -> set[str]:
        """Return the names that are read from the beginning of statements on."""
        for s in reversed(body):
            live = self.statement(s, live)
        return live

    def statement(self, s: ast.stmt, live: set[str]) -> set[str]:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name | ast.Tuple):
            return (live - names_in(s.targets[0])) | names_in(s.value)
        if isinstance(s, ast.If):
            self.after[id(s)] = live
            return self.block(s.body, live) | self.block(s.orelse, live) | names_in(s.test)
        if isinstance(s, ast.For | ast.While):
            return self.loop(s, live)
        if isinstance(s, ast.Break) and self._exits:
            return self._exits[-1]
        return live | names_in(s)

    def loop(self, s: ast.For | ast.While, live: set[str]) -> set[str]:
        self.after[id(s)] = live
        own: set[str] = names_in(s.target) if isinstance(s, ast.For) else set()
        self.after_loops |= own & live
        head: set[str] = names_in(s.test) | live if isinstance(s, ast.While) else live.copy()
        self._exits.append(live)
        while True:  # what a step reads, the step before may have assigned
            more = head | (self.block(s.body, head) - own)
            if more == head:
                break
            head = more
        self._exits.pop()
        self.at_head[id(s)] = head
        return head | names_in(s.iter) if isinstance(s, ast.For) else head
