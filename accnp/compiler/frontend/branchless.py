"""Write a user's function of numbers without loops into the kernel that calls it, without branches.

Both sides of an `if` are computed, and one of the values is selected, so that a loop around the
call can become vector code. `Branchless` gets the syntax tree of the function and the values of its
arguments, and returns the value of the function. `functions.py` uses it first, and
`structured_function.py` for functions that it does not support.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from accnp.compiler.frontend.expressions import Expressions, Users
from accnp.compiler.frontend.jumps import split_assignment
from accnp.compiler.frontend.statements import StatementWriter, Values
from accnp.compiler.frontend.syntax import walk
from accnp.compiler.loops.ir import Buffer, Const, Expr, Var
from accnp.compiler.unsupported import Unsupported

__all__ = ["Branchless"]


class Branchless(Expressions):
    """The value of a function of some arguments."""

    branches = False

    def __init__(
        self, tree: ast.FunctionDef, values: Values, users: Users, writer: StatementWriter
    ) -> None:
        self.tree, self.values, self.users, self.out = tree, values, users, writer

    def result(self) -> Expr:
        """Return what the function returns."""
        value = self.block(self.tree.body)
        if value is None:
            raise Unsupported("a way that returns nothing", self.tree)
        return value

    def let(self, name: str, value: Expr) -> Var:
        return self.out.let(name, value)

    def block(self, nodes: Sequence[ast.stmt]) -> Expr | None:
        """Translate statements. Return the value that they return, or None if they do not
        return."""
        for k, node in enumerate(nodes):
            self.users.count()
            try:
                if isinstance(node, ast.Return) and node.value is not None:
                    return self.expr(node.value)
                if isinstance(node, ast.If):
                    value = self.branch(node, nodes[k + 1 :])
                    if value is not None:
                        return value
                else:
                    self.statement(node)
            except Unsupported as error:
                error.locate(node)
                raise
        return None

    def side(self, nodes: Sequence[ast.stmt]) -> tuple[Expr | None, Values]:
        """Return the value that statements return, and the values of names after them."""
        before = dict(self.values)
        value = self.block(nodes)
        after, self.values = self.values, before
        return value, after

    def branch(self, node: ast.If, rest: Sequence[ast.stmt]) -> Expr | None:
        test = self.let_once("test", self.test(node.test))
        if isinstance(test, Const):
            return self.block([*(node.body if test.value else node.orelse), *rest])
        inside = [n for s in (*node.body, *node.orelse) for n in walk(s)]
        if any(isinstance(n, ast.Return) for n in inside):  # each side goes on to the end
            a, _ = self.side([*node.body, *rest])
            b, _ = self.side([*node.orelse, *rest])
            if a is None or b is None:
                raise Unsupported("a way that returns nothing")
            return self.select(test, a, b)
        _, mine = self.side(node.body)
        _, other = self.side(node.orelse)
        for name in sorted({*mine, *other}):
            x, y = mine.get(name), other.get(name)
            if x is None or y is None or isinstance(x, Buffer) or isinstance(y, Buffer):
                self.values.pop(name, None)  # has a value on one side only
            elif x is not y:
                self.values[name] = self.let_once(name, self.select(test, x, y))
        return None

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for s in split_assignment(node, self.out.fresh):
                (target,) = s.targets
                if not isinstance(target, ast.Name):
                    raise Unsupported("an assignment to an element")
                self.values[target.id] = self.let_once(target.id, self.expr(s.value))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            old = self.name(name)
            self.values[name] = self.let_once(
                name, self.binary(node.op, old, self.expr(node.value))
            )
        elif not isinstance(node, ast.Pass) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            raise Unsupported(type(node).__name__)
