"""Read kernels of the loop IR from the text that `printer` writes.

The grammar, with `x*` for any number of x, and NAME, INT and NUMBER as in Python:

    text      = kernel kernel*
    kernel    = "kernel" NAME "(" argument,* ")" "for" NAME ".." NAME ["in" ("order" | "steps")]
                ["nontemporal" NAME] ["sized"] ["threads" INT] ["narrow"]
                "{" stack* shared* heap* calls* shifted* long* statement* "}"
    argument  = NAME ":" TYPE "[" "]"  |  NAME
    stack     = "stack" NAME ":" TYPE "[" INT "]" ["exact"]
    shared    = "shared" NAME ":" TYPE "[" INT "]"
    heap      = "heap" NAME ":" TYPE "[" NAME "]"
    calls     = "calls" NAME "(" TYPE ["*"],* ")"
    shifted   = "shifted" NAME "=" NAME "+" INT
    long      = "long" NAME
    statement = "let" NAME ":" TYPE "=" expr
              | NAME "[" expr "]" "=" expr
              | "load" (NAME ":" TYPE),* "=" NAME "[" expr "]"
              | "store" NAME "[" expr "]" "=" expr,*
              | "prefetch" NAME "[" expr "]"
              | "columns" NAME NAME "=" NAME "[" expr "]" "rows" NAME "shape" expr "by" expr
              | "transpose" NAME "[" INT "]" "=" NAME "[" expr "]" "step" expr
                "shape" expr "by" expr
              | "for" NAME "in" expr ".." expr ["step" INT] ["independent"]
                ["interchangeable"] ["spread" ("grid" | "blocks" | "once" | "threads")]
                ["part" expr "of" expr]
                ["vector" "(" INT "," NAME ["," "nontemporal"] ["," "peel"] ")"]
                carry* "{" statement* next* "}"
              | "loop" carry* "while" expr "{" statement* next* "}"
              | "break" "(" expr,* ")"
              | "if" expr "{" statement* "}" ["else" "{" statement* "}"] join*
              | "reduce" NAME "in" "0" ".." expr "{" statement* (reduction "of" expr)* "}"
              | reduction "=" NAME "[" expr "]" "extent" expr
              | "do" [NAME ":" TYPE "="] NAME "(" expr,* ")"
              | "run" NAME "(" expr,* ")" "for" expr ".." expr
              | "share" NAME "(" expr,* ")" "by" "(" expr "," expr "," expr "," expr "," expr ")"
    reduction = "reduction" NAME ["wide"] NAME ":" TYPE
    carry     = "carry" NAME ":" TYPE "=" expr "then" NAME
    next      = "next" NAME "=" expr
    join      = "join" NAME ":" TYPE "=" expr "else" expr
    expr      = NUMBER ":" TYPE  |  NAME  |  ["&"] NAME "[" expr "]"  |  NAME "(" expr,* ")"
              | "<" (factor "*" NAME "+")* INT ">"
    factor    = INT | NAME
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from accnp.compiler.ir_tools.signatures import type_of_call
from accnp.compiler.loops.ir import (
    Address,
    Break,
    Buffer,
    Call,
    Callee,
    Carried,
    Cast,
    Const,
    Do,
    Expr,
    For,
    Heap,
    If,
    Index,
    Joined,
    Kernel,
    Let,
    Load,
    LoadVector,
    Memory,
    Prefetch,
    Reduce,
    ReduceColumns,
    ReduceElements,
    Reduction,
    Run,
    Share,
    Shifted,
    Spread,
    Stmt,
    Store,
    StoreVector,
    Transpose,
    Var,
    Vector,
    While,
    dtype,
)
from accnp.compiler.loops.types import B1, DTYPES, I8, DType, Pointer, Type

__all__ = ["ParseError", "parse_kernel", "parse_kernels"]

_TOKEN = re.compile(
    r"\s*(?:#[^\n]*\s*)*(?:(?P<number>-?(?:\d+\.(?!\.)\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+|inf\b)|nan\b)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<mark>\.\.|[()\[\]{}<>,:=*+&])|(?P<end>\Z))",
    re.ASCII,
)
NESTED = 100  # the maximum nesting of statements and expressions, because passes are recursive
DIGITS = 400  # the maximum digits of a number; the largest float has 309
_Item = TypeVar("_Item")
_RESTS = ("tail", "masked", "whole")
_SPREADS: tuple[Spread, ...] = ("grid", "blocks", "once", "threads")


class ParseError(ValueError):
    """The text is not a kernel; the message says where."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0  # the position after the current token
        self.depth = 0  # statements and expressions around the current token
        self.buffers: dict[str, Buffer] = {}
        self.variables: dict[str, Var] = {}
        self.kind = self.token = ""
        self.begin = 0
        self.advance()

    # --- tokens ---

    def fail(self, expected: str) -> NoReturn:
        line = self.text.count("\n", 0, self.begin) + 1
        column = self.begin - self.text.rfind("\n", 0, self.begin)
        actual = repr(self.token) if self.token else "the end"
        raise ParseError(f"line {line}, column {column}: expected {expected}, got {actual}")

    def advance(self) -> str:
        before = self.token
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at :]
            self.begin = self.at + len(rest) - len(rest.lstrip())
            self.token = self.text[self.begin]
            self.fail("a token")
        self.kind = match.lastgroup or ""
        self.token = match.group(self.kind)
        self.begin, self.at = match.start(self.kind), match.end()
        return before

    def accept(self, token: str) -> bool:
        if self.token != token or not token:
            return False
        self.advance()
        return True

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if not self.accept(token):
                self.fail(repr(token))

    def name(self) -> str:
        if self.kind != "name":
            self.fail("a name")
        return self.advance()

    def integer(self) -> int:
        if self.kind != "number" or not self.token.lstrip("-").isdigit():
            self.fail("an integer")
        return int(self.number())

    def number(self) -> str:
        if len(self.token) > DIGITS:
            self.fail(f"a number of at most {DIGITS} digits")
        return self.advance()

    @contextmanager
    def nested(self) -> Generator[None]:
        if self.depth == NESTED:
            self.fail(f"at most {NESTED} statements and expressions inside of each other")
        self.depth += 1
        yield
        self.depth -= 1

    def type(self) -> Type:
        of = self.dtype()
        return Pointer(of) if self.accept("*") else of

    def dtype(self) -> DType:
        if self.token not in DTYPES:
            self.fail("a type")
        return DTYPES[self.advance()]

    # --- kernels ---

    def kernel(self) -> Kernel:
        self.expect("kernel")
        name = self.name()
        self.buffers.clear()
        self.variables.clear()
        buffers: list[Buffer] = []
        integers: list[Var] = []
        stack: list[Buffer] = []
        heap: list[Heap] = []
        order: list[Memory] = []
        self.expect("(")
        while not self.accept(")"):
            argument = self.name()
            if self.accept(":"):
                buffers.append(self.new_buffer(argument))
                self.expect("[", "]")
                order.append(buffers[-1])
            else:
                integers.append(self.new(argument))
                order.append(integers[-1])
            if self.token != ")":
                self.expect(",")
        self.expect("for")
        first = self.new(self.name())
        self.expect("..")
        last = self.new(self.name())
        explicit = self.accept("in")
        if explicit and self.accept("steps"):
            order = [first, last, *order]
        elif explicit:
            self.expect("order")
        nontemporal = self.variable() if self.accept("nontemporal") else None
        sized = self.accept("sized")
        threads = self.integer() if self.accept("threads") else 0
        narrow = self.accept("narrow")
        self.expect("{")
        while self.accept("stack"):
            declaration = self.sized_buffer()
            stack.append(declaration._replace(exact=self.accept("exact")))
            self.buffers[declaration.name] = stack[-1]
        shared: list[Buffer] = []
        while self.accept("shared"):
            shared.append(self.sized_buffer())
        while self.accept("heap"):
            declaration = self.typed_buffer()
            self.expect("[")
            heap.append(Heap(declaration, self.variable()))
            self.expect("]")
        callees: list[Callee] = []
        while self.accept("calls"):
            callees.append(Callee(self.name(), tuple(self.parse_list(self.type))))
        shifted: list[Shifted] = []
        while self.accept("shifted"):
            buffer = self.memory()
            self.expect("=")
            of = self.memory()
            self.expect("+")
            shifted.append(Shifted(buffer, of, self.integer()))
        long: list[Var] = []
        while self.accept("long"):
            long.append(self.variable())
        body = self.block()
        self.expect("}")
        in_order = () if order == [*buffers, *integers] and not explicit else tuple(order)
        return Kernel(
            first, last, tuple(buffers), tuple(integers), tuple(stack), body, name, tuple(heap),
            in_order, tuple(callees), nontemporal, sized, threads, tuple(shared),
            narrow, tuple(shifted), tuple(long),
        )  # fmt: skip

    def typed_buffer(self) -> Buffer:
        name = self.name()
        self.expect(":")
        return self.new_buffer(name)

    def sized_buffer(self) -> Buffer:
        """Parse a buffer with a known number of elements."""
        buffer = self.typed_buffer()
        self.expect("[")
        self.buffers[buffer.name] = buffer._replace(length=self.integer())
        self.expect("]")
        return self.buffers[buffer.name]

    def parse_list(self, item: Callable[[], _Item]) -> list[_Item]:
        """Parse a list in parentheses."""
        items: list[_Item] = []
        self.expect("(")
        while not self.accept(")"):
            items.append(item())
            if self.token != ")":
                self.expect(",")
        return items

    def new(self, name: str, of: Type = I8) -> Var:
        self.variables[name] = Var(name, of)
        return self.variables[name]

    def new_buffer(self, name: str) -> Buffer:
        self.buffers[name] = Buffer(name, self.dtype())
        return self.buffers[name]

    def typed(self) -> Var:
        name = self.name()
        self.expect(":")
        return self.new(name, self.type())

    # --- statements ---

    def block(self) -> tuple[Stmt, ...]:
        """Parse statements up to a token that ends a block."""
        statements: list[Stmt] = []
        while self.token not in ("}", "next"):
            with self.nested():
                statements.append(self.statement())
        return tuple(statements)

    def statement(self) -> Stmt:  # noqa: C901
        if self.token in self.buffers or self.token in self.variables:
            buffer, index = self.element()
            self.expect("=")
            return Store(buffer, index, self.expr())
        if self.accept("let"):
            name = self.name()
            self.expect(":")
            of = self.type()
            self.expect("=")
            value = self.expr()
            return Let(self.new(name, of), value)
        if self.accept("for"):
            return self.loop()
        if self.accept("loop"):
            return self.condition_loop()
        if self.accept("do"):
            return self.do()
        if self.accept("break"):
            return Break(tuple(self.parse_list(self.expr)))
        if self.accept("run"):
            kernel, args = self.name(), tuple(self.parse_list(self.expr))
            self.expect("for")
            first = self.expr()
            self.expect("..")
            return Run(kernel, first, self.expr(), args)
        if self.accept("share"):
            kernel, args = self.name(), tuple(self.parse_list(self.expr))
            self.expect("by")
            how = self.parse_list(self.expr)
            if len(how) != 5:
                self.fail("five arguments")
            return Share(kernel, *how, args)  # type: ignore[call-arg]
        if self.accept("if"):
            test = self.expr()
            self.expect("{")
            then, orelse = self.block(), ()
            self.expect("}")
            if self.accept("else"):
                self.expect("{")
                orelse = self.block()
                self.expect("}")
            joined: list[Joined] = []
            while self.accept("join"):
                name = self.name()
                self.expect(":")
                of = self.type()
                self.expect("=")
                value = self.expr()
                self.expect("else")
                joined.append(Joined(self.new(name, of), value, self.expr()))
            return If(test, then, orelse, tuple(joined))
        if self.accept("reduce"):
            return self.reduction()
        if self.accept("reduction"):
            combine, wide, result = self.reduction_head()
            self.expect("=")
            buffer, start = self.element()
            self.expect("extent")
            return ReduceElements(result, combine, buffer, start, self.expr(), wide)
        if self.accept("load"):
            results = self.several(self.typed)
            self.expect("=")
            return LoadVector(results, *self.element())
        if self.accept("store"):
            buffer, index = self.element()
            self.expect("=")
            return StoreVector(buffer, index, self.several(self.expr))
        if self.accept("prefetch"):
            return Prefetch(*self.element())
        if self.accept("columns"):
            return self.columns()
        if self.accept("transpose"):
            return self.transpose()
        self.fail("a statement")

    def several(self, item: Callable[[], _Item]) -> tuple[_Item, ...]:
        """Parse items that are separated by commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def do(self) -> Do:
        name = self.name()
        if not self.accept(":"):
            return Do(name, tuple(self.parse_list(self.expr)))
        of = self.type()
        self.expect("=")
        function, args = self.name(), tuple(self.parse_list(self.expr))
        return Do(function, args, self.new(name, of))

    def condition_loop(self) -> While:
        heads = self.carries()
        self.expect("while")
        test = self.expr()
        self.expect("{")
        body = self.block()
        return While(test, body, self.following(heads))

    def carries(self) -> list[tuple[Var, Expr, str]]:
        heads: list[tuple[Var, Expr, str]] = []
        while self.accept("carry"):
            name = self.name()
            self.expect(":")
            of = self.type()
            self.expect("=")
            initial = self.expr()
            self.expect("then")
            heads.append((self.new(name, of), initial, self.name()))
        return heads

    def following(self, heads: Sequence[tuple[Var, Expr, str]]) -> tuple[Carried, ...]:
        """Parse the carried values at the end of a loop."""
        carried: list[tuple[Var, Expr, Expr, str]] = []
        for carry, initial, result in heads:
            self.expect("next", carry.name, "=")
            carried.append((carry, initial, self.expr(), result))
        self.expect("}")
        return tuple([Carried(v, x, y, self.new(r, v.dtype)) for v, x, y, r in carried])

    def transpose(self) -> Transpose:
        to = self.memory()
        self.expect("[")
        width = self.integer()
        self.expect("]", "=")
        buffer = self.memory()
        self.expect("[")
        start = self.expr()
        self.expect("]", "step")
        return Transpose(to, width, buffer, start, self.expr(), *self.shape())

    def columns(self) -> ReduceColumns:
        combine, to = self.name(), self.memory()
        self.expect("=")
        buffer = self.memory()
        self.expect("[")
        start = self.expr()
        self.expect("]", "rows")
        return ReduceColumns(to, combine, buffer, start, self.memory(), *self.shape())

    def shape(self) -> tuple[Expr, Expr]:
        self.expect("shape")
        rows = self.expr()
        self.expect("by")
        return rows, self.expr()

    def loop(self) -> For:
        index = self.name()
        self.expect("in")
        start = self.expr()
        self.expect("..")
        stop = self.expr()
        step = self.integer() if self.accept("step") else 1
        independent = self.accept("independent")
        interchangeable = self.accept("interchangeable")
        spread = self.spread() if self.accept("spread") else ""
        part = None
        if self.accept("part"):
            number = self.expr()
            self.expect("of")
            part = number, self.expr()
        vector = self.vector() if self.accept("vector") else None
        var = self.new(index)
        heads = self.carries()
        self.expect("{")
        body = self.block()
        following = self.following(heads)
        return For(
            var,
            start,
            stop,
            step,
            body,
            independent,
            following,
            vector,
            interchangeable,
            spread,
            part,
        )

    def spread(self) -> Spread:
        for spread in _SPREADS:
            if self.accept(spread):
                return spread
        self.fail(" or ".join(_SPREADS))

    def vector(self) -> Vector:
        self.expect("(")
        lanes = self.integer()
        self.expect(",")
        for rest in _RESTS:
            if self.accept(rest):
                facts: set[str] = set()
                while self.accept(","):
                    facts.add(self.name())
                if not facts <= {"nontemporal", "peel"}:
                    self.fail("nontemporal or peel")
                self.expect(")")
                return Vector(lanes, rest, "nontemporal" in facts, "peel" in facts)
        self.fail(" or ".join(_RESTS))

    def reduction(self) -> Reduce:
        index = self.name()
        self.expect("in", "0", "..")
        extent = self.expr()
        var = self.new(index)
        self.expect("{")
        body: list[Let | Store] = []
        while self.token not in ("reduction", "}"):
            s = self.statement()
            if not isinstance(s, Let | Store):
                self.fail("assignments and stores only")
            body.append(s)
        reductions: list[Reduction] = []
        while self.accept("reduction"):
            combine, wide, result = self.reduction_head()
            self.expect("of")
            reductions.append(Reduction(result, combine, self.expr(), wide))
        self.expect("}")
        return Reduce(var, extent, tuple(body), tuple(reductions))

    def reduction_head(self) -> tuple[str, bool, Var]:
        return self.name(), self.accept("wide"), self.typed()

    # --- expressions ---

    def memory(self) -> Buffer:
        if self.token not in self.buffers:
            self.fail("a buffer")
        return self.buffers[self.advance()]

    def element(self) -> tuple[Memory, Expr]:
        if self.token not in self.buffers and self.token not in self.variables:
            self.fail("a buffer")
        name = self.advance()
        buffer = self.buffers.get(name) or self.variables[name]
        if isinstance(buffer, Var) and not isinstance(buffer.dtype, Pointer):
            self.fail("an address")
        return buffer, self.place()

    def place(self) -> Expr:
        self.expect("[")
        index = self.expr()
        self.expect("]")
        return index

    def variable(self) -> Var:
        if self.token not in self.variables:
            self.fail("a variable")
        return self.variables[self.advance()]

    def expr(self) -> Expr:
        with self.nested():
            return self.unlimited_expr()

    def unlimited_expr(self) -> Expr:
        if self.kind == "number" or self.token in ("True", "False"):
            return self.constant()
        if self.accept("<"):
            return self.index()
        if self.token in self.buffers:
            return Load(*self.element())
        if self.accept("&"):
            return Address(*self.element())
        if self.token in self.variables:
            variable = self.variable()
            if self.token != "[" or not isinstance(variable.dtype, Pointer):
                return variable
            self.advance()
            load = Load(variable, self.expr())
            self.expect("]")
            return load
        at = self.begin
        name = self.name()
        if not self.accept("("):
            self.begin, self.token = at, name
            self.fail("an expression")
        args: list[Expr] = []
        while not self.accept(")"):
            args.append(self.expr())
            if self.token != ")":
                self.expect(",")
        if name in DTYPES and len(args) == 1:
            return Cast(args[0], DTYPES[name])
        result = type_of_call(name, [dtype(a) for a in args])
        if result is None:
            self.begin, self.token = at, name
            operand_types = ", ".join([dtype(a).token for a in args])
            self.fail(f"a scalar function ({name}: no scalar function of ({operand_types}))")
        return Call(name, tuple(args), result)

    def constant(self) -> Const:
        at, text = self.begin, self.number()
        self.expect(":")
        of = self.type()
        if isinstance(of, Pointer):
            return Const(int(text), of)
        is_bool = text in ("True", "False")
        if is_bool and of == B1:
            return Const(text == "True", of)
        if of.kind == "float" and not is_bool:
            return Const(float(text), of)
        if of.kind in ("int", "uint") and text.lstrip("-").isdigit():
            return Const(int(text), of)
        self.begin, self.token = at, text
        self.fail(f"a number of type {of.token}")

    def index(self) -> Index:
        terms: list[tuple[Var, int | Var]] = []
        while True:
            number = self.kind == "number"
            factor = self.integer() if number else self.variable()
            if not self.accept("*"):
                if isinstance(factor, Var):
                    self.fail("'*'")
                self.expect(">")
                return Index(tuple(terms), factor)
            terms.append((self.variable(), factor))
            self.expect("+")


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes.

    Parameters
    ----------
    text : str
        Output of `print_kernel`; `#` starts a comment.

    Raises
    ------
    ParseError
        If the text is not a kernel. The message states line and column.
    """
    parser = _Parser(text)
    kernel = parser.kernel()
    if parser.kind != "end":
        parser.fail("the end")
    return kernel


def parse_kernels(text: str) -> list[Kernel]:
    """Return the kernels that a text describes, one after the other.

    Parameters
    ----------
    text : str
        Outputs of `print_kernel`.

    Raises
    ------
    ParseError
        If the text is not one kernel or more.
    """
    parser = _Parser(text)
    kernels = [parser.kernel()]
    while parser.kind != "end":
        kernels.append(parser.kernel())
    return kernels
