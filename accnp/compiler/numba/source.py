"""Print a kernel of the loop IR as the Python source of a function for Numba.

The source calls the functions of `numba.functions` by name. Integers of less than 64 bits are
widened by the operators of Numba, so their results are converted back.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.loops.functions import INFIX
from accnp.compiler.loops.ir import (
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Fold,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
    Transpose,
    Var,
    dtype,
)
from accnp.compiler.loops.visiting import fresh_name
from accnp.compiler.passes.inline_indices import inline_indices
from accnp.compiler.passes.lower_reductions import lower_reductions
from accnp.ir.kernel import BLOCK

__all__ = ["STACKS", "numba_source"]

# Elements of buffers on the stack, by the names of the functions that give them.
STACKS = {"stack": BLOCK, "tile": 4 * BLOCK, "slab": 16 * BLOCK}


def numba_source(kernel: Kernel) -> str:
    """Return the source of a function `kernel(first, last, *buffers, *integers)`."""
    return _Printer(lower_reductions(inline_indices(kernel))).text()


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.names: dict[Var, str] = {}  # of what loops have handed on, after them

    def text(self) -> str:
        k = self.kernel
        arguments = [k.first, k.last, *k.buffers, *k.integers]
        self.lines.append(f"def {k.name}({', '.join([a.name for a in arguments])}):")
        for b in k.stack:
            kind = next(name for name, most in STACKS.items() if b.length <= most)
            self.lines.append(f"    {b.name} = {kind}_{b.dtype.token}()")
        for b, n in k.heap:
            self.lines.append(f"    {b.name} = heap_{b.dtype.token}({n.name})")
        self.block(k.body, "    ")
        self.lines += [f"    release({b.name})" for b, _ in k.heap]
        return "\n".join(self.lines) + "\n"

    # --- statements ---

    def block(self, body: Sequence[Stmt], pad: str) -> None:
        for s in body:
            self.statement(s, pad)
        if not body:
            self.lines.append(f"{pad}pass")

    def statement(self, s: Stmt, pad: str) -> None:
        add, inner = self.lines.append, pad + "    "
        if isinstance(s, Let):
            add(f"{pad}{s.var.name} = {self.expr(s.value)}")
        elif isinstance(s, Store):
            add(f"{pad}{s.buffer.name}[{self.expr(s.index)}] = {self.expr(s.value)}")
        elif isinstance(s, Prefetch):
            add(f"{pad}prefetch({self.at(s.buffer, s.index)})")
        elif isinstance(s, Transpose):
            step, rows, columns = map(self.expr, (s.step, s.rows, s.columns))
            to, source = f"{s.to.name}, {s.width}", f"{self.at(s.buffer, s.start)}, {step}"
            add(f"{pad}transpose_{s.to.dtype.size}({to}, {source}, {rows}, {columns})")
        elif isinstance(s, If):
            add(f"{pad}if {self.expr(s.test)}:")
            self.block(s.then, inner)
            if s.orelse:
                add(f"{pad}else:")
                self.block(s.orelse, inner)
        elif isinstance(s, For):
            self.loop(s, pad)
        elif isinstance(s, Fold):
            fold = "wide_sum" if s.wide else s.combine
            memory = self.at(s.buffer, s.start)
            add(f"{pad}{s.result.name} = block_{fold}({memory}, {self.expr(s.extent)})")

    def at(self, buffer: Buffer, index: Expr) -> str:
        """The pointer to an element."""
        place = self.expr(index)
        return buffer.name if place == "0" else f"at({buffer.name}, {place})"

    def loop(self, s: For, pad: str) -> None:
        add, inner = self.lines.append, pad + "    "
        for c in s.carried:
            add(f"{pad}{c.var.name} = {self.expr(c.start)}")
        limits = [] if s.start == Const(0, s.index.dtype) and s.step == 1 else [self.expr(s.start)]
        limits += [self.expr(s.stop), *[str(s.step)] * (s.step != 1)]
        add(f"{pad}for {s.index.name} in range({', '.join(limits)}):")
        self.block(s.body, inner)
        several = len(s.carried) > 1
        names = [c.var.name for c in s.carried]
        if several:  # all are computed before one is assigned
            names = [fresh_name(f"{name}_next", self.kernel) for name in names]
        for c, name in zip(s.carried, names, strict=True):
            add(f"{inner}{name} = {self.expr(c.following)}")
        if several:
            for c, name in zip(s.carried, names, strict=True):
                add(f"{inner}{c.var.name} = {name}")
        for c in s.carried:
            self.names[c.result] = c.var.name

    # --- expressions ---

    def expr(self, x: Expr) -> str:
        if isinstance(x, Const):
            return _constant(x)
        if isinstance(x, Var):
            return self.names.get(x, x.name)
        if isinstance(x, Load):
            return f"{x.buffer.name}[{self.expr(x.index)}]"
        if isinstance(x, Cast):
            return f"{x.dtype.token}({self.expr(x.value)})"
        if isinstance(x, Index):
            return self.index(x)
        return self.call(x)

    def operand(self, x: Expr) -> str:
        """An operand of an operator."""
        text = self.expr(x)
        return f"({text})" if self.is_operator(x) or text.startswith("-") else text

    def is_operator(self, x: Expr) -> bool:
        """Whether an expression is printed as an operator, not as a call or a name."""
        if not isinstance(x, Call):
            return isinstance(x, Index)
        return (x.function in INFIX or x.function in ("neg", "not")) and not _is_widened(x)

    def call(self, x: Call) -> str:
        if x.function in INFIX:
            text = f" {INFIX[x.function]} ".join(map(self.operand, x.args))
        elif x.function == "neg":
            text = f"-{self.operand(x.args[0])}"
        elif x.function == "not":
            sign = "not " if dtype(x.args[0]).kind == "bool" else "~"
            text = f"{sign}{self.operand(x.args[0])}"
        else:
            return f"{x.function}({', '.join(map(self.expr, x.args))})"
        return f"{x.dtype.token}({text})" if _is_widened(x) else text

    def index(self, x: Index) -> str:
        text = ""
        for v, k in x.terms:
            negative = isinstance(k, int) and k < 0
            factor = self.expr(k) if isinstance(k, Var) else str(abs(k))
            term = self.expr(v) + ("" if factor == "1" else f" * {factor}")
            text += f" {'-' if negative else '+'} {term}" if text else "-" * negative + term
        if x.constant:
            text += f" {'-' if x.constant < 0 else '+'} {abs(x.constant)}"
        return text


def _is_widened(x: Call) -> bool:
    """Whether an operator of Numba gives a wider integer."""
    return x.dtype.kind in ("int", "uint") and x.dtype.size < 8


def _constant(x: Const) -> str:
    value = x.value
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            text = "1e999" if value > 0 else "-1e999"
        else:
            text = repr(value) if value == value else "(1e999 - 1e999)"
    else:
        text = repr(value)
    return text if x.dtype.token in ("b1", "i8", "f8") else f"{x.dtype.token}({text})"
