"""Print a kernel of the loop IR as the Python source of a function for Numba.

The source calls the functions of `numba.functions` by name. Integers of less than 64 bits are
widened by the operators of Numba, so their results are converted back.
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.loops.functions import INFIX
from accnp.compiler.loops.ir import (
    LONG_SIZE,
    Address,
    Break,
    Buffer,
    Call,
    Cast,
    Const,
    Do,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    LoadVector,
    Memory,
    Prefetch,
    ReduceColumns,
    ReduceElements,
    Run,
    Share,
    Stmt,
    Store,
    StoreVector,
    Transpose,
    Var,
    While,
    dtype,
)
from accnp.compiler.loops.stack_lengths import STACK_LENGTHS
from accnp.compiler.loops.types import Pointer
from accnp.compiler.loops.visiting import fresh_name, make_unique_name, names_of, subexpressions
from accnp.compiler.passes.inline_indices import inline_indices
from accnp.compiler.passes.join_rows import join_rows
from accnp.compiler.passes.lower_reductions import lower_reductions
from accnp.compiler.user_definitions import is_defined

__all__ = ["numba_source"]

# The functions that give the first step of a loop for a thread, and the distance to its next one.
_FIRST_AND_STEP = {"grid": ("thread", "threads"), "blocks": ("block_of_grid", "blocks")}


def numba_source(kernel: Kernel, to_compile: bool = False) -> str:
    """Return the source of a function `kernel(first, last, *buffers, *integers)`, or, for a GPU,
    `kernel(*buffers, last, *integers)`.

    Parameters
    ----------
    kernel : Kernel
        A kernel of the loop IR.
    to_compile : bool, optional
        Whether the source is for the compiler only: it calls `distinct_buffers` first, and reduces
        columns several rows at once.
    """
    lowered = lower_reductions(inline_indices(kernel))
    return _Printer(join_rows(lowered) if to_compile else lowered, to_compile).text()


class _Printer:
    def __init__(self, kernel: Kernel, to_compile: bool) -> None:
        self.kernel = kernel
        self.to_compile = to_compile
        self.lines: list[str] = []
        self.around: list[For | While] = []  # the enclosing loops
        self.names: dict[Var, str] = {}  # of the results of loops, after them

    def text(self) -> str:
        k = self.kernel
        self.lines.append(f"def {k.name}({', '.join([a.name for a in k.parameters])}):")
        if self.to_compile:
            self.lines.append("    distinct_buffers()")
        else:  # the assumptions of the machine code; kernels get their names from the source
            self.lines += [f"    # {b.name}[i] is {of.name}[i + {n}]" for b, of, n in k.shifted]
            self.lines += [f"    # {v.name} >= {LONG_SIZE}" for v in k.long]
        for b in k.stack:
            self.lines.append(f"    {b.name} = {function_of(b)}()")
        for b in k.shared:
            self.lines.append(f"    {b.name} = shared_{b.dtype.token}({b.length})")
        for b, n in k.heap:
            self.lines.append(f"    {b.name} = heap_{b.dtype.token}({n.name})")
        self.block(k.body, "    ")
        self.lines += [f"    release({b.name})" for b, _ in k.heap]
        return "\n".join(self.lines) + "\n"

    # --- statements ---

    def block(
        self, body: Sequence[Stmt], pad: str, joined: Sequence[tuple[str, Expr]] = ()
    ) -> None:
        for s in body:
            self.statement(s, pad)
        if not (body and isinstance(body[-1], Break)):
            self.lines += [f"{pad}{name} = {self.expr(x)}" for name, x in joined]
        if not body and not joined:
            self.lines.append(f"{pad}pass")

    def listed(self, *xs: Expr) -> str:
        return ", ".join(map(self.expr, xs))

    def statement(self, s: Stmt, pad: str) -> None:  # noqa: C901
        add, inner = self.lines.append, pad + "    "
        if isinstance(s, Let):
            add(f"{pad}{s.var.name} = {self.expr(s.value)}")
        elif isinstance(s, Store):
            add(f"{pad}{self.memory(s.buffer)}[{self.place(s.index)}] = {self.expr(s.value)}")
        elif isinstance(s, LoadVector):
            self.load_vector(s, pad)
        elif isinstance(s, StoreVector):
            place = f"{self.memory(s.buffer)}, {self.place(s.index)}"
            add(f"{pad}store{len(s.values)}({place}, {self.listed(*s.values)})")
        elif isinstance(s, Prefetch):
            add(f"{pad}prefetch({self.at(s.buffer, s.index)})")
        elif isinstance(s, ReduceColumns):
            shape = f"{s.places.name}, {self.expr(s.rows)}, {self.expr(s.columns)}"
            add(f"{pad}strips_{s.combine}({s.to.name}, {self.at(s.buffer, s.start)}, {shape})")
        elif isinstance(s, Transpose):
            step, rows, columns = map(self.expr, (s.step, s.rows, s.columns))
            to, source = f"{s.to.name}, {s.width}", f"{self.at(s.buffer, s.start)}, {step}"
            add(f"{pad}transpose_{s.to.dtype.size}({to}, {source}, {rows}, {columns})")
        elif isinstance(s, If):
            add(f"{pad}if {self.expr(s.test)}:")
            self.block(s.then, inner, [(j.result.name, j.then) for j in s.joined])
            if s.orelse or s.joined:
                add(f"{pad}else:")
                self.block(s.orelse, inner, [(j.result.name, j.orelse) for j in s.joined])
        elif isinstance(s, While):
            self.begin(s, pad)
            add(f"{pad}while {self.expr(s.test)}:")
            self.step(s, inner)
        elif isinstance(s, Do):
            result = "" if s.result is None else f"{s.result.name} = "
            add(f"{pad}{result}{s.function}({self.listed(*s.args)})")
        elif isinstance(s, Run):
            add(f"{pad}{s.kernel}({self.listed(s.first, s.last, *s.args)})")
        elif isinstance(s, Share):
            how = self.listed(s.sharer, s.pool, s.helpers, s.count, s.chunk, *s.args)
            add(f"{pad}parallel_for({s.kernel}, {how})")
        elif isinstance(s, Break):
            self.assign([c.var for c in self.around[-1].carried], s.values, pad)
            add(f"{pad}break")
        elif isinstance(s, For):
            self.loop(s, pad)
        elif isinstance(s, ReduceElements):
            combine = "wide_sum" if s.wide else s.combine
            memory = self.at(s.buffer, s.start)
            add(f"{pad}{s.result.name} = block_{combine}({memory}, {self.expr(s.extent)})")

    def at(self, buffer: Memory, index: Expr) -> str:
        """Return the pointer to an element."""
        place = self.expr(index)
        name = self.memory(buffer)
        return name if place == "0" else f"at({name}, {place})"

    def place(self, x: Expr) -> str:
        """Return the index of an access."""
        if not self.kernel.narrow or not isinstance(x, Index):
            return self.expr(x)
        constant = f" {'-' if x.constant < 0 else '+'} {abs(x.constant)}" * bool(x.constant)
        return f"i4({self.index(x._replace(constant=0))}){constant}"

    def memory(self, buffer: Memory) -> str:
        return self.expr(buffer) if isinstance(buffer, Var) else buffer.name

    def load_vector(self, s: LoadVector, pad: str) -> None:
        vector = make_unique_name(f"{s.buffer.name}_", names_of(self.kernel))
        at = f"{self.memory(s.buffer)}, {self.place(s.index)}"
        self.lines.append(f"{pad}{vector} = load{len(s.results)}({at})")
        for k, v in enumerate(s.results):
            part = f"part({vector}, {k})"
            part = f"b1({part})" if s.buffer.element.kind == "bool" else part
            self.lines.append(f"{pad}{v.name} = {part}")

    def spread(self, s: For, pad: str) -> None:
        """Write a loop of which this thread, or its thread block, runs a part."""
        add, i = self.lines.append, s.index.name
        step = f" * {s.step}" if s.step != 1 else ""
        if s.spread in ("threads", "once"):
            number = "thread_of_block" if s.spread == "threads" else "block_of_grid"
            add(f"{pad}{i} = {number}(){step}")
            self.block(s.body, pad)
            return
        number, count = [f"{name}()" for name in _FIRST_AND_STEP[s.spread]]
        if s.part is not None:
            number, count = map(self.operand, s.part)
            if s.spread == "grid":
                number = f"({number} * threads_of_block() + thread_of_block())"
                count = f"({count} * threads_of_block())"
        start = "" if s.start == Const(0, s.index.dtype) else f"{self.expr(s.start)} + "
        add(f"{pad}{i} = {start}{number}{step}")
        add(f"{pad}while {i} < {self.expr(s.stop)}:")
        self.block(s.body, pad + "    ")
        add(f"{pad}    {i} = {i} + {count}{step}")

    def loop(self, s: For, pad: str) -> None:
        if s.spread:
            self.spread(s, pad)
            return
        add, inner = self.lines.append, pad + "    "
        self.begin(s, pad)
        limits = [] if s.start == Const(0, s.index.dtype) and s.step == 1 else [self.expr(s.start)]
        limits += [self.expr(s.stop), *[str(s.step)] * (s.step != 1)]
        add(f"{pad}for {s.index.name} in range({', '.join(limits)}):")
        self.step(s, inner)

    def begin(self, s: For | While, pad: str) -> None:
        """Write the initial values of the carried variables of a loop."""
        self.lines += [f"{pad}{c.var.name} = {self.expr(c.start)}" for c in s.carried]

    def step(self, s: For | While, pad: str) -> None:
        """Write the body of a loop, and the assignments for the next step."""
        self.around.append(s)
        self.block(s.body, pad)
        self.around.pop()
        self.assign([c.var for c in s.carried], [c.following for c in s.carried], pad)
        for c in s.carried:
            self.names[c.result] = c.var.name

    def assign(self, variables: Sequence[Var], values: Sequence[Expr], pad: str) -> None:
        """Assign several variables simultaneously: each one after the last value that reads it, and
        through a temporary variable if they depend on each other in a cycle."""
        names = {v: self.expr(v) for v in variables}
        texts = [(v, self.expr(x), x) for v, x in zip(variables, values, strict=True)]
        left = [(names[v], text, self.names_in(x)) for v, text, x in texts if text != names[v]]
        while left:
            free = [a for a in left if not any(a[0] in b[2] for b in left if b is not a)]
            if free:
                name, text, _ = free[0]
                self.lines.append(f"{pad}{name} = {text}")
                left.remove(free[0])
            else:
                name, text, _ = left[0]
                new = fresh_name(f"{name}_next", self.kernel)
                self.lines.append(f"{pad}{new} = {text}")
                left[0] = (name, new, {new})

    def names_in(self, x: Expr) -> set[str]:
        """Return the names of the variables that an expression reads."""
        return {self.expr(y) for y in subexpressions(x) if isinstance(y, Var)}

    # --- expressions ---

    def expr(self, x: Expr) -> str:
        if isinstance(x, Const):
            return _constant(x)
        if isinstance(x, Var):
            return self.names.get(x, x.name)
        if isinstance(x, Load):
            return f"{self.memory(x.buffer)}[{self.place(x.index)}]"
        if isinstance(x, Address):
            return self.at(x.buffer, x.index)
        if isinstance(x, Cast):
            return f"{x.dtype.token}({self.expr(x.value)})"
        if isinstance(x, Index):
            return self.index(x)
        return self.call(x)

    def operand(self, x: Expr) -> str:
        """Return an operand of an operator."""
        text = self.expr(x)
        return f"({text})" if self.is_operator(x) or text.startswith("-") else text

    def is_operator(self, x: Expr) -> bool:
        """Return whether an expression is printed as an operator, not as a call or a name."""
        if not isinstance(x, Call):
            return isinstance(x, Index)
        return (x.function in INFIX or x.function in ("neg", "not")) and not _is_widened(x)

    def call(self, x: Call) -> str:
        if x.function in ("real", "imag"):
            return f"{self.operand(x.args[0])}.{x.function}"
        if x.function == "conj":
            return f"{self.operand(x.args[0])}.conjugate()"
        if x.function in INFIX:
            text = f" {INFIX[x.function]} ".join(map(self.operand, x.args))
        elif x.function == "neg":
            text = f"-{self.operand(x.args[0])}"
        elif x.function == "not":
            sign = "not " if dtype(x.args[0]).kind == "bool" else "~"
            text = f"{sign}{self.operand(x.args[0])}"
        elif is_defined(x.function):  # a user's function, which may return another type
            return f"{x.dtype.token}({x.function}({self.listed(*x.args)}))"
        else:
            return f"{x.function}({self.listed(*x.args)})"
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
    """Return whether an operator of Numba gives a wider number."""
    return x.dtype.kind == "half" or (x.dtype.kind in ("int", "uint") and x.dtype.size < 8)


def function_of(b: Buffer) -> str:
    """Return the name of the function that allocates a buffer on the stack."""
    kinds = [name for name, most in STACK_LENGTHS.items() if b.length <= most]
    if not kinds:  # a panel has the bytes of vectors, a power of two
        size = b.length * b.dtype.size
        kinds = ["lanes" if size & (size - 1) else "panel"]
    kind = "cell" if b.exact and b.length == 1 else kinds[0]
    return f"{kind}_{b.dtype.token}"


def _constant(x: Const) -> str:
    value = x.value
    if isinstance(x.dtype, Pointer):
        return f"null_{x.dtype.of.token}()"
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            text = "1e999" if value > 0 else "-1e999"
        else:
            text = repr(value) if value == value else "(1e999 - 1e999)"
    else:
        text = repr(value)
    return text if x.dtype.token in ("b1", "i8", "f8") else f"{x.dtype.token}({text})"
