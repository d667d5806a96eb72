"""Bring users' functions into a form without jumps, except for `break` and a last `return`.

The input is the syntax tree of a function, and the output a tree of the same meaning, which
`structured_function.py` translates to the structured statements of the loop IR. A `return` at
another place assigns the result and a flag, and the statements after it run only if the flag is not
set; inside a loop, it also leaves the loop. `continue` is replaced in the same way. An assignment
to several names becomes one assignment for each, the index of a loop becomes an ordinary variable,
and the condition of a `while` loop that is not a simple expression is computed before the loop and
at the end of each step. (Erosa and Hendren, Taming control flow: a structured approach to
eliminating goto statements, 1994.)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from accnp.compiler.frontend.syntax import walk
from accnp.compiler.unsupported import Unsupported

__all__ = ["falls_through", "has_loops", "split_assignment", "without_jumps"]

_SIMPLE = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute)


def has_loops(tree: ast.FunctionDef) -> bool:
    """Return whether a function has a loop."""
    return any(isinstance(n, ast.For | ast.While) for n in walk(tree))


def falls_through(body: Sequence[ast.stmt]) -> bool:
    """Return whether control may come to the end of statements."""
    return "next" in _exit_kinds(body)


def without_jumps(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function of the same meaning whose only jumps are `break` and a last `return`.

    Raises
    ------
    Unsupported
        If a way through the function returns nothing, or a statement is not in the language.
    """
    names = {n.id for n in walk(tree) if isinstance(n, ast.Name)}
    return _Structured(names).function(tree)


def split_assignment(
    s: ast.Assign | ast.AnnAssign, fresh: Callable[[str], str]
) -> list[ast.Assign]:
    """Return an assignment for each name; all values are computed first."""
    if isinstance(s, ast.AnnAssign):
        return [] if s.value is None else [_copy_location(ast.Assign([s.target], s.value), s)]
    several = [t for t in s.targets if isinstance(t, ast.Tuple)]
    if len(s.targets) == 1 and not several:
        return [s]
    if not several:
        value = fresh("value")
        pairs = [(t, value) for t in s.targets]
        assignments = [_assign(value, s.value, s)]
    elif isinstance(s.value, ast.Tuple) and len(several) == len(s.targets):
        parts = s.value.elts
        if any(len(t.elts) != len(parts) for t in several):
            raise Unsupported("a tuple of another length", s)
        values = [fresh("value") for _ in parts]
        assignments = [_assign(v, x, s) for v, x in zip(values, parts, strict=True)]
        pairs = [p for t in several for p in zip(t.elts, values, strict=True)]
    else:
        raise Unsupported("a tuple as a value", s)
    return [*assignments, *[_copy_location(ast.Assign([t], _read(v, s)), s) for t, v in pairs]]


class _Loop(NamedTuple):
    """The innermost loop around a statement: the flag that `continue` sets."""

    skip: str


def _exit_kinds(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Return how control leaves statements: "next", "break", "continue" or "return"."""
    kinds: frozenset[str] = frozenset()
    for s in body:
        its = _ways_of(s)
        kinds |= its - {"next"}
        if "next" not in its:
            return kinds
    return kinds | {"next"}


def _ways_of(s: ast.stmt) -> frozenset[str]:
    if isinstance(s, ast.Return):
        return frozenset({"return"})
    if isinstance(s, ast.Break | ast.Continue):
        return frozenset({"break" if isinstance(s, ast.Break) else "continue"})
    if isinstance(s, ast.If):
        return _exit_kinds(s.body) | _exit_kinds(s.orelse)
    if isinstance(s, ast.For | ast.While):
        inside = _exit_kinds(s.body)
        forever = isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and s.test.value
        ends: set[str] = {"next"} if not forever or "break" in inside else set()
        return frozenset(ends | (inside & {"return"}))
    return frozenset({"next"})


class _Structured:
    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.result, self.done = self.fresh("result"), self.fresh("done")

    def fresh(self, name: str) -> str:
        unique_name, k = name, 0
        while unique_name in self.names:
            k += 1
            unique_name = f"{name}_{k}"
        self.names.add(unique_name)
        return unique_name

    def function(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        if falls_through(tree.body):
            raise Unsupported("a way that returns nothing", tree)
        body = self.block(tree.body, None)
        flags = any(isinstance(n, ast.Name) and n.id == self.done for s in body for n in walk(s))
        begin = [_assign(self.done, ast.Constant(False), tree)] if flags else []
        end = ast.copy_location(ast.Return(_read(self.result, tree)), tree)
        return ast.copy_location(
            ast.FunctionDef(tree.name, tree.args, [*begin, *body, end], [], None), tree
        )

    def block(self, body: Sequence[ast.stmt], loop: _Loop | None) -> list[ast.stmt]:
        """Return the statements up to the first one after which control does not continue."""
        statements: list[ast.stmt] = []
        for k, s in enumerate(body):
            ways, rest = _ways_of(s), body[k + 1 :]
            if isinstance(s, ast.If):
                if self.jumps(ways, loop) and rest:
                    return [*statements, *self.divide_branches(s, rest, loop)]
                statements.append(
                    self.make_if(s, self.block(s.body, loop), self.block(s.orelse, loop))
                )
            elif isinstance(s, ast.For | ast.While):
                statements += self.loop(s)
                if "return" in ways and "next" in ways:
                    return [*statements, *self.after_loop(s, rest, loop)]
                if "return" in ways and loop is not None:
                    statements.append(_copy_location(ast.Break(), s))
            else:
                statements += self.statement(s, loop)
            if "next" not in ways:
                break
        return statements

    def jumps(self, ways: frozenset[str], loop: _Loop | None) -> bool:
        """Return whether a statement may skip those after it without leaving a loop."""
        return ("return" if loop is None else "continue") in ways

    def divide_branches(
        self, s: ast.If, rest: Sequence[ast.stmt], loop: _Loop | None
    ) -> list[ast.stmt]:
        """Return an `if` that may skip what follows it, which moves to the side that continues."""
        then, orelse = _exit_kinds(s.body), _exit_kinds(s.orelse)
        if "next" not in then:
            below = self.block([*s.orelse, *rest], loop)
            return [self.make_if(s, self.block(s.body, loop), below)]
        if "next" not in orelse:
            below = self.block([*s.body, *rest], loop)
            return [self.make_if(s, below, self.block(s.orelse, loop))]
        flag = self.done if loop is None else loop.skip
        first = self.make_if(s, self.block(s.body, loop), self.block(s.orelse, loop))
        return [first, self.unless(flag, self.block(rest, loop), s)]

    def after_loop(
        self, s: ast.For | ast.While, rest: Sequence[ast.stmt], loop: _Loop | None
    ) -> list[ast.stmt]:
        """Return the statements after a loop that may have returned."""
        if loop is None:
            return [self.unless(self.done, self.block(rest, loop), s)] if rest else []
        leave = ast.If(_read(self.done, s), [_copy_location(ast.Break(), s)], [])
        return [_copy_location(leave, s), *self.block(rest, loop)]

    def make_if(self, s: ast.If, then: list[ast.stmt], orelse: list[ast.stmt]) -> ast.stmt:
        return _copy_location(ast.If(s.test, then or [_copy_location(ast.Pass(), s)], orelse), s)

    def unless(self, flag: str, body: list[ast.stmt], at: ast.stmt) -> ast.stmt:
        return _copy_location(
            ast.If(_copy_location(ast.UnaryOp(ast.Not(), _read(flag, at)), at), body, []), at
        )

    def statement(self, s: ast.stmt, loop: _Loop | None) -> Sequence[ast.stmt]:
        if isinstance(s, ast.Return):
            if s.value is None:
                raise Unsupported("a way that returns nothing", s)
            assignments = [
                _assign(self.result, s.value, s),
                _assign(self.done, ast.Constant(True), s),
            ]
            return (
                [*assignments, _copy_location(ast.Break(), s)] if loop is not None else assignments
            )
        if isinstance(s, ast.Continue):
            assert loop is not None
            return [_assign(loop.skip, ast.Constant(True), s)]
        return (
            [*split_assignment(s, self.fresh)] if isinstance(s, ast.Assign | ast.AnnAssign) else [s]
        )

    def loop(self, s: ast.For | ast.While) -> list[ast.stmt]:
        if s.orelse:
            raise Unsupported("else of a loop", s.orelse[0])
        skip = self.fresh("skip")
        body = self.block(s.body, _Loop(skip))
        if any(isinstance(n, ast.Name) and n.id == skip for x in body for n in walk(x)):
            body = [_assign(skip, ast.Constant(False), s), *body]
        if isinstance(s, ast.For):
            if not isinstance(s.target, ast.Name):
                raise Unsupported("a loop over anything but a range", s.target)
            index = self.fresh(s.target.id)
            body = [_assign(s.target.id, _read(index, s.target), s.target), *body]
            target = ast.copy_location(ast.Name(index, ast.Store()), s.target)
            return [_copy_location(ast.For(target, s.iter, body, []), s)]
        if all(isinstance(x, _SIMPLE) and not _uses_values_twice(x) for x in walk(s.test)):
            return [_copy_location(ast.While(s.test, body, []), s)]
        test = self.fresh("test")
        holds = ast.IfExp(
            s.test, _copy_location(ast.Constant(True), s), _copy_location(ast.Constant(False), s)
        )
        again = [_assign(test, _copy_location(holds, s.test), s.test)]
        return [*again, _copy_location(ast.While(_read(test, s), [*body, *again], []), s)]


def _uses_values_twice(x: ast.AST) -> bool:
    """Return whether an expression needs the value of one of its parts more than once."""
    return (isinstance(x, ast.Compare) and len(x.ops) > 1) or (
        isinstance(x, ast.BinOp) and isinstance(x.op, ast.Pow)
    )


_Node = TypeVar("_Node", bound=ast.AST)


def _copy_location(s: _Node, where: ast.AST) -> _Node:
    return ast.copy_location(s, where)


def _read(name: str, where: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), where)


def _assign(name: str, value: ast.expr, where: ast.AST) -> ast.Assign:
    if not hasattr(value, "lineno"):
        ast.copy_location(value, where)
    target = ast.copy_location(ast.Name(name, ast.Store()), where)
    return ast.copy_location(ast.Assign([target], value), where)
