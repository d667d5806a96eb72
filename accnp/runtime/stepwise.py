"""Functions of numbers with loops, written into the kernels that call them as they stand.

In: the syntax tree of a function and its arguments. Out: the value it returns, behind its branches
and loops, in a kernel whose own loop is not in vectors; for every target. What is beyond this
(`NoForm`) is compiled by Numba as a function that the kernel calls.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from accnp.runtime.inline import Body, NoForm, Typed

__all__ = ["stepwise"]


def stepwise(f: Any, tree: ast.FunctionDef, arguments: Sequence[Typed]) -> Typed:
    """Write the body of a function with its branches and loops where the kernel's builder stands.

    Raises:
        NoForm: Numba must do it.
    """
    return _Steps(f).run(tree, arguments)


class _Places(dict[str, Any]):
    """Variables in memory, by name: types and places, read and written like values."""

    def __init__(self, builder: Any) -> None:
        super().__init__()
        self.builder = builder

    def __getitem__(self, name: str) -> Typed:
        kind, place = super().__getitem__(name)
        return kind, self.builder.load(place)

    def __setitem__(self, name: str, value: Typed) -> None:
        kind, v = value
        if name not in self:
            super().__setitem__(name, (kind, cgutils.alloca_once(self.builder, v.type)))
        known, place = super().__getitem__(name)
        if known != kind:
            raise NoForm(f"{name} holds both {known} and {kind}")
        self.builder.store(v, place)


class _Steps(Body):
    """A function written as it stands; every statement says whether control ends there."""

    def __init__(self, f: Any) -> None:
        super().__init__(f, f.b)
        self.places = _Places(f.b)
        self.exits: list[tuple[Any, Any]] = []  # where `continue` and `break` go
        self.end = f.b.append_basic_block("end")

    def run(self, tree: ast.FunctionDef, arguments: Sequence[Typed]) -> Typed:
        names = [a.arg for a in tree.args.args]
        if len(names) != len(arguments):
            raise NoForm(f"{tree.name} takes {len(names)} arguments")
        for name, value in zip(names, arguments, strict=True):
            self.places[name] = value
        if not self.all(tree.body):
            raise NoForm("a way that returns nothing")
        self.b.position_at_end(self.end)
        return self.places["return"]

    def all(self, nodes: Sequence[ast.stmt]) -> bool:
        return any(self.one(node) for node in nodes)

    def one(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Return) and node.value is not None:
            self.places["return"] = self.value(node.value, self.places)
            self.b.branch(self.end)
        elif isinstance(node, ast.Break | ast.Continue):
            self.b.branch(self.exits[-1][isinstance(node, ast.Break)])
        elif isinstance(node, ast.If):
            return self.fork(node)
        elif isinstance(node, ast.While) and not node.orelse:
            self.loop(node.body, lambda: self.value(node.test, self.places))
            return False
        elif isinstance(node, ast.For) and not node.orelse:
            self.count(node)
            return False
        else:
            self.statement(node, self.places)
            return False
        return True

    def fork(self, node: ast.If) -> bool:
        test = self.truth(self.value(node.test, self.places))[1]
        ends = []
        with self.b.if_else(test) as sides:
            for side, nodes in zip(sides, (node.body, node.orelse), strict=True):
                with side:
                    ends.append(self.all(nodes))
        if all(ends):
            self.b.unreachable()
        return all(ends)

    def loop(self, body: Sequence[ast.stmt], test: Any, after: Any = None) -> None:
        head, inside, on, out = (
            self.b.append_basic_block(n) for n in ("head", "inside", "on", "out")
        )
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(self.truth(test())[1], inside, out)
        self.b.position_at_end(inside)
        self.exits.append((on, out))
        if not self.all(body):
            self.b.branch(on)
        self.exits.pop()
        self.b.position_at_end(on)
        if after is not None:
            after()
        self.b.branch(head)
        self.b.position_at_end(out)

    def count(self, node: ast.For) -> None:
        """A loop over a range, with a constant step."""
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(node.target, ast.Name):
            raise NoForm("a loop over anything but a range")
        if self.meant(call.func, self.places) is not range or len(call.args) == 3:
            raise NoForm("a loop over anything but a range with step 1")
        limits = [(types.int64, self.converted(self.value(a, self.places), types.int64))
                  for a in call.args]  # fmt: skip
        zero = self.constant(0)
        begin, stop = limits if len(limits) == 2 else (zero, *limits)
        # The loop's own count: the body may give its variable another value.
        place = cgutils.alloca_once(self.b, begin[1].type)
        self.b.store(begin[1], place)

        def test() -> Typed:
            now = types.int64, self.b.load(place)
            return self.apply(operator.lt, [now, stop])

        def after() -> None:
            self.b.store(self.b.add(self.b.load(place), ir.Constant(ir.IntType(64), 1)), place)

        name = node.target.id
        index = _Index(lambda: self.places.__setitem__(name, (types.int64, self.b.load(place))))
        self.loop([index, *node.body], test, after)

    def statement(self, node: ast.stmt, env: Any) -> None:
        if isinstance(node, _Index):
            node.write()
        else:
            super().statement(node, env)

    def assign(self, target: ast.expr, value: Typed, env: Any) -> None:
        if not isinstance(target, ast.Name):
            raise NoForm("an assignment to several names")
        env[target.id] = value

    def value(self, x: ast.expr, env: Any) -> Typed:
        if isinstance(x, ast.IfExp):
            return self.either(x.test, lambda: self.value(x.body, env),
                               lambda: self.value(x.orelse, env), env)  # fmt: skip
        if isinstance(x, ast.BoolOp) and len(x.values) == 2:
            first, second = x.values
            known = lambda: self.constant(isinstance(x.op, ast.Or))  # noqa: E731
            other = lambda: self.truth(self.value(second, env))  # noqa: E731
            sides = (known, other) if isinstance(x.op, ast.Or) else (other, known)
            return self.either(first, *sides, env)
        return super().value(x, env)

    def either(self, test: ast.expr, then: Any, otherwise: Any, env: Any) -> Typed:
        """A value of two that are not both computed."""
        found: list[tuple[Typed, Any]] = []
        with self.b.if_else(self.truth(self.value(test, env))[1]) as sides:
            for side, make in zip(sides, (then, otherwise), strict=True):
                with side:
                    found.append((make(), self.b.block))
        (a, before), (b, beside) = found
        if a[0] != b[0]:
            raise NoForm(f"a choice between {a[0]} and {b[0]}")
        joined = self.b.phi(a[1].type)
        joined.add_incoming(a[1], before)
        joined.add_incoming(b[1], beside)
        return a[0], joined

    def brought(self, callee: Any, arguments: list[Typed]) -> Typed:
        return self.apply(callee, arguments)


class _Index(ast.stmt):
    """Gives the variable of a loop its value."""

    def __init__(self, write: Any) -> None:
        super().__init__()
        self.write = write
