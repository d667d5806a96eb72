"""Functions of numbers with loops, written into the kernels that call them as they stand."""

from __future__ import annotations

import ast
from collections.abc import Callable

from accnp.compiler.frontend.expressions import Expressions, Users
from accnp.compiler.frontend.operators import cast_to, common_type
from accnp.compiler.frontend.statements import Statements, Values, Written, as_type
from accnp.compiler.frontend.syntax import walk
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import Const, Expr, If, Joined, Stmt, Var, dtype, number_type
from accnp.compiler.loops.types import B1, I8
from accnp.compiler.unsupported import Unsupported

__all__ = ["Steps"]


class Steps(Expressions, Statements):
    """The statements of a function without jumps (`jumps`), for some arguments."""

    branches = True

    def __init__(
        self, tree: ast.FunctionDef, values: Values, users: Users, written: Written
    ) -> None:
        Statements.__init__(self, tree, written)
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
        if number_type(value).kind != "int":
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

    # --- what is computed only where it is needed, since it may not end ---

    def calls(self, *nodes: ast.expr) -> bool:
        """Whether expressions call functions of users."""
        every = [n for x in nodes for n in walk(x)]
        return any(isinstance(n, ast.Name) and n.id in self.users.functions for n in every)

    def expr(self, x: ast.expr, name: str = "t") -> Expr:
        if isinstance(x, ast.IfExp) and self.calls(x.body, x.orelse):
            test = self.test(x.test)
            return self.either(test, lambda: self.expr(x.body), lambda: self.expr(x.orelse))
        if isinstance(x, ast.BoolOp) and self.calls(*x.values[1:]):
            return self.logical(x, self.expr)
        return super().expr(x, name)

    def test(self, x: ast.expr) -> Expr:
        if isinstance(x, ast.BoolOp) and self.calls(*x.values[1:]):
            return self.logical(x, self.test)
        return super().test(x)

    def logical(self, x: ast.BoolOp, value: Callable[[ast.expr], Expr]) -> Expr:
        """`and` and `or`, of which later operands are computed only if they matter."""
        found = value(x.values[0])
        for v in x.values[1:]:
            if dtype(found) != B1:
                raise Unsupported("and, or of values that are not bool")
            other: Callable[[], Expr] = lambda v=v: value(v)  # noqa: E731
            if isinstance(x.op, ast.Or):
                found = self.either(found, lambda: Const(True, B1), other)
            else:
                found = self.either(found, other, lambda: Const(False, B1))
        return found

    def either(self, test: Expr, then: Callable[[], Expr], orelse: Callable[[], Expr]) -> Expr:
        """One of two values, of which the other one is not computed."""
        ways: list[tuple[Stmt, ...]] = []
        values: list[Expr] = []
        for side in (then, orelse):
            self.out.blocks.append([])
            try:
                values.append(side())
            finally:
                ways.append(tuple(self.out.blocks.pop()))
        of = common_type([dtype(v) for v in values])
        made = Var(self.out.fresh("choice"), of)
        joined = Joined(made, as_type(values[0], of), as_type(values[1], of))
        self.out.add(If(test, ways[0], ways[1], (joined,)))
        return made
