"""Write a user's function of numbers, with its loops and branches, into the kernel that calls it.

`jumps.py` first brings the function into a form whose only jumps are `break` and a last `return`.
`StructuredFunction` gets this syntax tree and the values of the arguments, writes statements of the
loop IR into the caller, and returns the value of the function. `functions.py` uses it for functions
that `branchless.py` does not support.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from accnp.compiler.frontend.expressions import Expressions, Users
from accnp.compiler.frontend.statements import Statements, StatementWriter, Values, as_type
from accnp.compiler.frontend.syntax import walk
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import Const, Expr, If, Joined, Stmt, Var, dtype
from accnp.compiler.loops.operators import cast_to, common_type, number_of
from accnp.compiler.loops.types import B1, I8
from accnp.compiler.unsupported import Unsupported

__all__ = ["StructuredFunction"]


class StructuredFunction(Expressions, Statements):
    """The statements of a function without jumps (`jumps.without_jumps`), for some arguments."""

    branches = True

    def __init__(
        self, tree: ast.FunctionDef, values: Values, users: Users, writer: StatementWriter
    ) -> None:
        Statements.__init__(self, tree, writer)
        self.values, self.users = values, users

    def result(self) -> Expr:
        """Return what the function returns."""
        *body, end = self.tree.body
        assert isinstance(end, ast.Return)
        assert end.value is not None
        self.body(body)
        return self.expr(end.value)

    def let(self, name: str, value: Expr) -> Var:
        return Statements.let(self, name, value)

    def statement(self, s: ast.stmt) -> None:
        self.users.count()
        if isinstance(s, ast.Assign):
            (target,) = s.targets
            if not isinstance(target, ast.Name):
                raise Unsupported("an assignment to an element")
            self.assign(target.id, self.expr(s.value))
        elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            name = s.target.id
            old = self.name(name)
            self.assign(name, self.binary(s.op, old, self.expr(s.value)))
        else:
            super().statement(s)

    def index(self, x: ast.expr) -> Expr:
        value = self.expr(x)
        if number_of(value).kind != "int":
            raise Unsupported("a range of other numbers than signed integers", x)
        return cast_to(value, I8)

    def loop(self, s: ast.For) -> None:
        if isinstance(s.iter, ast.Call) and len(s.iter.args) == 3:
            step = self.expr(s.iter.args[2])
            if not isinstance(step, Const) or not step.value:
                raise Unsupported("a step that is not known", s.iter.args[2])
        super().loop(s)

    def sum_of(self, name: str, x: Expr, y: Expr) -> Expr:
        return call(name, x, y)

    # --- operands that are computed only if needed, since they may not end ---

    def calls(self, *nodes: ast.expr) -> bool:
        """Return whether expressions call functions of users."""
        every = [n for x in nodes for n in walk(x)]
        return any(isinstance(n, ast.Name) and n.id in self.users.functions for n in every)

    def expr(self, x: ast.expr, name: str = "t") -> Expr:
        if isinstance(x, ast.IfExp) and self.calls(x.body, x.orelse):
            test = self.test(x.test)
            return self.lazy_select(test, lambda: self.expr(x.body), lambda: self.expr(x.orelse))
        if isinstance(x, ast.BoolOp) and self.calls(*x.values[1:]):
            return self.logical(x, self.expr)
        return super().expr(x, name)

    def test(self, x: ast.expr) -> Expr:
        if isinstance(x, ast.BoolOp) and self.calls(*x.values[1:]):
            return self.logical(x, self.test)
        return super().test(x)

    def logical(self, x: ast.BoolOp, value: Callable[[ast.expr], Expr]) -> Expr:
        """Return `and` or `or` of operands, of which later ones are computed only if needed."""
        result = value(x.values[0])
        for v in x.values[1:]:
            if dtype(result) != B1:
                raise Unsupported("and, or of values that are not bool")
            other: Callable[[], Expr] = lambda v=v: value(v)  # noqa: E731
            if isinstance(x.op, ast.Or):
                result = self.lazy_select(result, lambda: Const(True, B1), other)
            else:
                result = self.lazy_select(result, other, lambda: Const(False, B1))
        return result

    def lazy_select(self, test: Expr, then: Callable[[], Expr], orelse: Callable[[], Expr]) -> Expr:
        """Return one of two values; only this one is computed."""
        blocks: list[tuple[Stmt, ...]] = []
        values: list[Expr] = []
        for side in (then, orelse):
            self.out.blocks.append([])
            try:
                values.append(side())
            finally:
                blocks.append(tuple(self.out.blocks.pop()))
        of = common_type([dtype(v) for v in values])
        result = Var(self.out.fresh("choice"), of)
        joined = Joined(result, as_type(values[0], of), as_type(values[1], of))
        self.out.add(If(test, blocks[0], blocks[1], (joined,)))
        return result
