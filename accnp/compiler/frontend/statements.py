"""Translate statements of restricted Python to statements of the loop IR.

The input is assignments to names, `if`, `for ... in range(...)`, `while` and `break`. The output is
nodes in which every variable is assigned once: if the value of a name is read after a branch or a
loop (`liveness.py`), the node passes it on explicitly. A name that holds numbers of several types
gets the common type that Numba gives it. `Statements` is a base class: `source.py` adds memory and
calls of procedures for kernels, and `structured_function.py` is for users' functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NamedTuple

from accnp.compiler.frontend.indices import combined_index
from accnp.compiler.frontend.liveness import Liveness, assigned
from accnp.compiler.frontend.syntax import called_function, describe_statement, walk
from accnp.compiler.loops.builder import call
from accnp.compiler.loops.ir import (
    Address,
    Break,
    Buffer,
    Carried,
    Const,
    Expr,
    For,
    If,
    Joined,
    Let,
    Stmt,
    Var,
    While,
    dtype,
)
from accnp.compiler.loops.operators import cast_to, common_type, zero
from accnp.compiler.loops.types import I8, DType, Type
from accnp.compiler.unsupported import Unsupported

__all__ = ["StatementWriter", "Statements", "Values", "as_type"]

Values = dict[str, Expr | Buffer]
_ZERO, _ONE = Const(0, I8), Const(1, I8)


class StatementWriter:
    """The statements that were written so far, and the names of their variables."""

    def __init__(self, used: set[str]) -> None:
        self.used = used
        self.blocks: list[list[Stmt]] = [[]]
        self.stack: list[Buffer] = []
        self.count = 0
        self.pure = False  # whether no statement may be added: in the condition of a loop
        self.line = 0  # of the statement that is being read
        self.lines: dict[int, int] = {}  # of statements that were written, by their ids

    def fresh(self, name: str) -> str:
        """Return a name that does not exist in the kernel."""
        self.count += 1
        unique_name = f"{name}_{self.count}"
        while unique_name in self.used:
            self.count += 1
            unique_name = f"{name}_{self.count}"
        self.used.add(unique_name)
        return unique_name

    def add(self, s: Stmt) -> None:
        if self.pure:
            raise Unsupported("a condition with effects")
        self.lines[id(s)] = self.line
        self.blocks[-1].append(s)

    def let(self, name: str, value: Expr) -> Var:
        var = Var(self.fresh(name), dtype(value))
        self.add(Let(var, value))
        return var


class _Loop(NamedTuple):
    """A loop that is being translated: the variable of each name at the start of a step (None if it
    has no value there), the types of names where the loop is left, and names without a value
    there."""

    heads: dict[str, Var | None]
    left: dict[str, list[Type]]
    missing: set[str]


class Statements:
    """Translates the statements of a function, and keeps the current value of each name."""

    def __init__(self, tree: ast.FunctionDef, writer: StatementWriter) -> None:
        self.tree = tree
        self.out = writer
        self.liveness = Liveness(tree)
        self.values: Values = {}  # of the names so far
        self.loops: list[_Loop] = []  # the enclosing loops

    # --- what languages differ in ---

    def expr(self, x: ast.expr, name: str = "t") -> Expr:
        """Translate an expression."""
        raise NotImplementedError

    def test(self, x: ast.expr) -> Expr:
        """Translate a condition."""
        raise NotImplementedError

    def index(self, x: ast.expr) -> Expr:
        """Translate a limit of a loop."""
        raise NotImplementedError

    def counts(self, index: Var) -> None:
        """Note the index of a loop."""

    def let(self, name: str, value: Expr) -> Var:
        """Assign a value to a new variable, and return the variable."""
        return self.out.let(name, value)

    # --- statements ---

    def body(self, nodes: Sequence[ast.stmt]) -> None:
        around = self.out.line
        for node in nodes:
            self.out.line = node.lineno
            try:
                self.statement(node)
            except Unsupported as error:
                error.locate(node)
                raise
            finally:
                self.out.line = around
            if _leaves(self.out.blocks[-1]):
                break

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.If):
            self.choice(s)
        elif isinstance(s, ast.For):
            self.loop(s)
        elif isinstance(s, ast.While):
            self.condition_loop(s)
        elif isinstance(s, ast.Break):
            self.leave()
        elif not isinstance(s, ast.Pass) and not (
            isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
        ):
            raise Unsupported(describe_statement(s))

    def assign(self, name: str, value: Expr | Buffer) -> None:
        if not isinstance(value, Buffer | Const | Var):
            value = self.let(name, value)
        self.values[name] = value

    def inside(self, nodes: Sequence[ast.stmt]) -> tuple[tuple[Stmt, ...], Values]:
        """Translate a block. Return its statements, and the values of names after it."""
        before = dict(self.values)
        self.out.blocks.append([])
        self.body(nodes)
        after, self.values = self.values, before
        return tuple(self.out.blocks.pop()), after

    def choice(self, s: ast.If) -> None:
        test = self.test(s.test)
        if isinstance(test, Const):
            self.body(s.body if test.value else s.orelse)
            return
        then, values = self.inside(s.body)
        orelse, others = self.inside(s.orelse)
        leaves, other_leaves = _leaves(then), _leaves(orelse)
        if leaves and other_leaves:
            self.out.add(If(test, then, orelse))
            return
        if leaves or other_leaves:  # the other side continues, with the values that it has assigned
            self.out.add(If(test, then, ()) if leaves else If(call("not", test), orelse, ()))
            for other in orelse if leaves else then:
                self.out.add(other)
            self.values = others if leaves else values
            return
        joined: list[Joined] = []
        changed = assigned([*s.body, *s.orelse])
        for name in sorted(changed):
            self.values.pop(name, None)  # a value on one side only
            if name not in self.liveness.after[id(s)]:
                continue
            x, y = values.get(name), others.get(name)
            if x is None and y is None:
                continue
            if x == y:
                assert x is not None
                self.values[name] = x
                continue
            x, y = self.alike(x, y)
            var = Var(self.out.fresh(name), dtype(x))
            joined.append(Joined(var, x, y))
            self.values[name] = var
        self.out.add(If(test, then, orelse, tuple(joined)))

    def alike(self, x: Expr | Buffer | None, y: Expr | Buffer | None) -> tuple[Expr, Expr]:
        """Return two values that a name may have, converted to one type; missing values are 0."""
        operands = [self.address(v) for v in (x, y) if v is not None]
        of = common_type([dtype(v) for v in operands])
        if len(operands) == 2:
            return as_type(operands[0], of), as_type(operands[1], of)
        return (zero(of), operands[0]) if x is None else (operands[0], zero(of))

    def address(self, v: Expr | Buffer) -> Expr:
        return Address(v, _ZERO) if isinstance(v, Buffer) else v

    # --- loops ---

    def leave(self) -> None:
        """Leave the innermost loop."""
        if not self.loops:
            raise Unsupported("break outside of a loop")
        loop = self.loops[-1]
        values: list[Expr] = []
        for name, head in loop.heads.items():
            value = self.values.get(name, head)
            if value is None:
                loop.missing.add(name)
                values.append(_ZERO)
                continue
            value = self.address(value)
            loop.left.setdefault(name, []).append(dtype(value))
            values.append(value if head is None else as_type(value, head.dtype))
        self.out.add(Break(tuple(values)))

    def repeat(
        self, s: ast.For | ast.While, prepare: Callable[[], Expr]
    ) -> tuple[Expr, tuple[Stmt, ...], tuple[Carried, ...]]:
        """Translate the body of a loop. Return the result of `prepare` at the start of a step, the
        statements, and the carried values. Afterwards, names have their values after the loop.

        The types of names at the start of a step depend on what a step assigns, so the body is
        translated repeatedly until they no longer change.
        """
        live, at_head = self.liveness.after[id(s)], self.liveness.at_head[id(s)]
        own: set[str] = set()
        if isinstance(s, ast.For) and isinstance(s.target, ast.Name):
            own = {s.target.id}
        before, names = dict(self.values), sorted(assigned(s.body) - own)
        types = {n: dtype(self.address(before[n])) for n in names if n in before and n in at_head}
        handed = [n for n in names if n in types or n in live]
        stack = len(self.out.stack)
        while True:
            heads = {n: Var(self.out.fresh(n), types[n]) for n in handed if n in types}
            loop = _Loop({n: heads.get(n) for n in handed}, {}, set())
            self.values = {**before, **heads}
            self.out.blocks.append([])
            self.loops.append(loop)
            head = prepare()
            self.body(s.body)
            self.loops.pop()
            after, self.values = self.values, dict(before)
            body = tuple(self.out.blocks.pop())
            last = {n: self.address(after[n]) for n in handed if n in after}
            new_types = self.types_of(s, types, last, loop)
            alike = all(
                new_types[n] == types[n] if n in types else n in last and n not in loop.missing
                for n in new_types
            )
            if alike and len(new_types) == len(handed):
                break
            types, handed = new_types, [n for n in handed if n in new_types]
            del self.out.stack[stack:]
        for name in names:
            self.values.pop(name, None)
        carried: list[Carried] = []
        for name in handed:
            var = heads.get(name) or Var(self.out.fresh(name), new_types[name])
            known = before.get(name) if name in heads else None
            start = zero(var.dtype) if known is None else as_type(self.address(known), var.dtype)
            following = as_type(last[name], var.dtype) if name in last else var
            result = Var(self.out.fresh(name), var.dtype)
            carried.append(Carried(var, start, following, result))
            self.values[name] = result
        for name in own:
            self.values.pop(name, None)
        return head, body, tuple(carried)

    def types_of(
        self, s: ast.For | ast.While, types: dict[str, Type], last: dict[str, Expr], loop: _Loop
    ) -> dict[str, Type]:
        """Return the types of the carried values of a loop, from one translation of its body."""
        common_types: dict[str, Type] = {}
        for name in loop.heads:
            at_head: list[Type] = [types[name]] if name in types else []
            at_head += [dtype(last[name])] if name in last else []
            left = loop.left.get(name, [])
            if not at_head and not left:
                continue
            common_types[name] = common_type([*at_head, *left])
            if name not in types and any(t != common_types[name] for t in (*at_head, *left)):
                loop.missing.add(name)
            wider = at_head and common_types[name] != common_type(at_head)
            if wider and name in types and name in _read(s):
                raise Unsupported(f"{name} has another type where the loop is left")
        return common_types

    def loop(self, s: ast.For) -> None:
        limits = s.iter.args if isinstance(s.iter, ast.Call) else []
        if s.orelse:
            raise Unsupported("else of a loop")
        if not isinstance(s.target, ast.Name):
            raise Unsupported(f"a loop whose index is {ast.unparse(s.target)}; use one name")
        named = isinstance(s.iter, ast.Call) and s.iter.keywords
        if called_function(s.iter) != "range" or named or not 1 <= len(limits) <= 3:
            raise Unsupported(
                f"a loop over {ast.unparse(s.iter)}; loops are over a range of 1 to 3 numbers"
            )
        if "range" in self.values:
            raise Unsupported("a call of the variable range")
        name = s.target.id
        bounds = [self.index(a) for a in limits]
        start, stop = (_ZERO, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = bounds[2] if len(bounds) == 3 else _ONE
        if isinstance(step, Const) and not step.value:
            raise Unsupported("a range with a step of 0", s.iter)
        index = Var(self.out.fresh(name))
        self.counts(index)
        if isinstance(step, Const) and step.value > 0:
            limits_of_loop = (start, stop, int(step.value))
            user: Expr = index
        else:
            limits_of_loop, user = self.counted(start, stop, step, index)

        def prepare() -> Expr:
            self.assign(name, user)
            return user

        _, body, carried = self.repeat(s, prepare)
        self.out.add(For(index, *limits_of_loop, body, carried=carried))

    def counted(
        self, start: Expr, stop: Expr, step: Expr, index: Var
    ) -> tuple[tuple[Expr, Expr, int], Expr]:
        """Return the limits of a loop that counts its steps, and the user's index in terms of its
        index."""
        if isinstance(step, Const):
            size, span = Const(-step.value, I8), self.sum_of("sub", start, stop)
            steps = self.quotient(span, size)
        else:  # a step of 0 makes no steps, as in Numba
            forward, none = call("gt", step, _ZERO), call("eq", step, _ZERO)
            size = call("select", forward, step, self.sum_of("sub", _ZERO, step))
            size = self.let("size", call("select", none, _ONE, size))
            far, back = self.sum_of("sub", stop, start), self.sum_of("sub", start, stop)
            span = self.let("span", call("select", forward, far, back))
            steps = call("select", none, _ZERO, self.quotient(span, size))
        index_of = self.sum_of("add", start, self.sum_of("mul", index, step))
        return (_ZERO, steps, 1), index_of

    def quotient(self, span: Expr, size: Expr) -> Expr:
        """Return the number of steps of this size in a range."""
        more = self.sum_of("add", span, self.sum_of("sub", size, _ONE))
        return more if size == _ONE else call("floordiv", more, size)

    def sum_of(self, name: str, x: Expr, y: Expr) -> Expr:
        """Return the sum, the difference or the product of two indices."""
        return combined_index(name, x, y) or call(name, x, y)

    def condition_loop(self, s: ast.While) -> None:
        if s.orelse:
            raise Unsupported("else of a loop")

        def prepare() -> Expr:
            self.out.pure, outer = True, self.out.pure
            try:
                return self.test(s.test)
            finally:
                self.out.pure = outer

        test, body, carried = self.repeat(s, prepare)
        self.out.add(While(test, body, carried))


def _leaves(block: Sequence[Stmt]) -> bool:
    """Return whether statements always end by leaving a loop."""
    last = block[-1] if block else None
    if isinstance(last, If):
        return _leaves(last.then) and _leaves(last.orelse)
    return isinstance(last, Break)


def as_type(x: Expr, to: Type) -> Expr:
    """Return a value as another type."""
    if dtype(x) == to:
        return x
    if not isinstance(to, DType):
        raise Unsupported("a number as an array or address")
    return cast_to(x, to)


def _read(s: ast.For | ast.While) -> set[str]:
    """Return the names that a loop reads."""
    nodes = [n for x in (*s.body, getattr(s, "test", None)) if x is not None for n in walk(x)]
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    changed = [n.target for n in nodes if isinstance(n, ast.AugAssign)]
    return names | {t.id for t in changed if isinstance(t, ast.Name)}
