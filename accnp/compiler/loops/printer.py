"""Printing of loop IR as text, which `parser.py` can read:

kernel kernel(a0: f4[], a1: f4[], n0) for lo..hi {
  for i in lo..hi independent {
    let t1: f4 = mul(a0[i], 2.0:f4)
    a1[i] = t1
  }
}
"""

from __future__ import annotations

from collections.abc import Sequence

from accnp.compiler.loops.ir import (
    Address,
    Break,
    Buffer,
    Call,
    Carried,
    Cast,
    Const,
    Do,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoadVector,
    Prefetch,
    Reduce,
    ReduceColumns,
    Run,
    Share,
    Stmt,
    Store,
    StoreVector,
    Transpose,
    Var,
    While,
)

__all__ = ["print_expr", "print_kernel"]


def print_expr(x: Expr) -> str:
    """Return the text of an expression."""
    if isinstance(x, Const):
        return f"{x.value!r}:{x.dtype.token}"
    if isinstance(x, Var):
        return x.name
    if isinstance(x, Load):
        return f"{x.buffer.name}[{print_expr(x.index)}]"
    if isinstance(x, Address):
        return f"&{x.buffer.name}[{print_expr(x.index)}]"
    if isinstance(x, Cast):
        return f"{x.dtype.token}({print_expr(x.value)})"
    if isinstance(x, Call):
        return f"{x.function}({', '.join(map(print_expr, x.args))})"
    terms = [f"{_factor(k)}*{v.name}" for v, k in x.terms]
    return f"<{' + '.join([*terms, str(x.constant)])}>"


def _factor(k: int | Var) -> str:
    return k.name if isinstance(k, Var) else str(k)


def print_kernel(k: Kernel) -> str:
    """Return the text of a kernel."""
    arguments = [
        f"{a.name}: {a.dtype.token}[]" if isinstance(a, Buffer) else a.name for a in k.arguments
    ]
    words = [f"kernel {k.name}({', '.join(arguments)}) for {k.first.name}..{k.last.name}"]
    if k.threads and k.order:
        words.append("in steps" if k.first in k.order else "in order")
    words += [f"nontemporal {k.nontemporal.name}"] if k.nontemporal is not None else []
    words += ["sized"] * k.sized + [f"threads {k.threads}"] * bool(k.threads)
    words += ["narrow"] * k.narrow
    head = f"{' '.join(words)} {{"
    lines = [f"  stack {b.name}: {b.dtype.token}[{b.length}]{' exact' * b.exact}" for b in k.stack]
    lines += [f"  shared {b.name}: {b.dtype.token}[{b.length}]" for b in k.shared]
    lines += [f"  heap {b.name}: {b.dtype.token}[{n.name}]" for b, n in k.heap]
    for c in k.callees:
        lines.append(f"  calls {c.name}({', '.join([t.token for t in c.arguments])})")
    lines += [f"  shifted {b.name} = {of.name} + {n}" for b, of, n in k.shifted]
    lines += [f"  long {v.name}" for v in k.long]
    _statements(k.body, "  ", lines)
    return "\n".join([head, *lines, "}", ""])


def _statements(body: Sequence[Stmt], pad: str, lines: list[str]) -> None:
    for s in body:
        _statement(s, pad, lines)


def _print_variable(v: Var) -> str:
    return f"{v.name}: {v.dtype.token}"


def _print_list(*xs: Expr) -> str:
    return ", ".join(map(print_expr, xs))


def _print_carried(carried: Sequence[Carried]) -> list[str]:
    return [
        f"carry {_print_variable(c.var)} = {print_expr(c.start)} then {c.result.name}"
        for c in carried
    ]


def _statement(s: Stmt, pad: str, lines: list[str]) -> None:  # noqa: C901
    inner = pad + "  "
    if isinstance(s, Let):
        lines.append(f"{pad}let {_print_variable(s.var)} = {print_expr(s.value)}")
    elif isinstance(s, Store):
        lines.append(f"{pad}{s.buffer.name}[{print_expr(s.index)}] = {print_expr(s.value)}")
    elif isinstance(s, LoadVector):
        results = ", ".join(map(_print_variable, s.results))
        lines.append(f"{pad}load {results} = {s.buffer.name}[{print_expr(s.index)}]")
    elif isinstance(s, StoreVector):
        place = f"{s.buffer.name}[{print_expr(s.index)}]"
        lines.append(f"{pad}store {place} = {_print_list(*s.values)}")
    elif isinstance(s, Prefetch):
        lines.append(f"{pad}prefetch {s.buffer.name}[{print_expr(s.index)}]")
    elif isinstance(s, ReduceColumns):
        memory = f"{s.buffer.name}[{print_expr(s.start)}] rows {s.places.name}"
        shape = f"shape {print_expr(s.rows)} by {print_expr(s.columns)}"
        lines.append(f"{pad}columns {s.combine} {s.to.name} = {memory} {shape}")
    elif isinstance(s, Transpose):
        start, step, *shape = map(print_expr, (s.start, s.step, s.rows, s.columns))
        tile = f"{s.to.name}[{s.width}] = {s.buffer.name}[{start}]"
        lines.append(f"{pad}transpose {tile} step {step} shape {' by '.join(shape)}")
    elif isinstance(s, For):
        words = [f"for {s.index.name} in {print_expr(s.start)}..{print_expr(s.stop)}"]
        words += [f"step {s.step}"] * (s.step != 1) + ["independent"] * s.independent
        words += ["interchangeable"] * s.interchangeable
        words += [f"spread {s.spread}"] * bool(s.spread)
        words += [f"part {' of '.join(map(print_expr, s.part))}"] if s.part is not None else []
        if s.vector is not None:
            facts = [", nontemporal"] * s.vector.nontemporal + [", peel"] * s.vector.peel
            words.append(f"vector({s.vector.lanes}, {s.vector.rest}{''.join(facts)})")
        _loop([*words, *_print_carried(s.carried)], s, pad, lines)
    elif isinstance(s, While):
        _loop(["loop", *_print_carried(s.carried), "while", print_expr(s.test)], s, pad, lines)
    elif isinstance(s, Do):
        result = "" if s.result is None else f"{_print_variable(s.result)} = "
        lines.append(f"{pad}do {result}{s.function}({_print_list(*s.args)})")
    elif isinstance(s, Break):
        lines.append(f"{pad}break({_print_list(*s.values)})")
    elif isinstance(s, Run):
        steps = f"{print_expr(s.first)}..{print_expr(s.last)}"
        lines.append(f"{pad}run {s.kernel}({_print_list(*s.args)}) for {steps}")
    elif isinstance(s, Share):
        how = _print_list(s.sharer, s.pool, s.helpers, s.count, s.chunk)
        lines.append(f"{pad}share {s.kernel}({_print_list(*s.args)}) by ({how})")
    elif isinstance(s, If):
        lines.append(f"{pad}if {print_expr(s.test)} {{")
        _statements(s.then, inner, lines)
        if s.orelse:
            lines.append(f"{pad}}} else {{")
            _statements(s.orelse, inner, lines)
        lines.append(f"{pad}}}")
        for j in s.joined:
            values = f"{print_expr(j.then)} else {print_expr(j.orelse)}"
            lines.append(f"{pad}join {_print_variable(j.result)} = {values}")
    elif isinstance(s, Reduce):
        lines.append(f"{pad}reduce {s.index.name} in 0..{print_expr(s.extent)} {{")
        _statements(s.body, inner, lines)
        for f in s.reductions:
            head = f"reduction {f.combine}{' wide' * f.wide} {_print_variable(f.result)}"
            lines.append(f"{inner}{head} of {print_expr(f.value)}")
        lines.append(f"{pad}}}")
    else:
        memory = f"{s.buffer.name}[{print_expr(s.start)}] extent {print_expr(s.extent)}"
        lines.append(
            f"{pad}reduction {s.combine}{' wide' * s.wide} {_print_variable(s.result)} = {memory}"
        )


def _loop(words: Sequence[str], s: For | While, pad: str, lines: list[str]) -> None:
    inner = pad + "  "
    lines.append(f"{pad}{' '.join(words)} {{")
    _statements(s.body, inner, lines)
    lines += [f"{inner}next {c.var.name} = {print_expr(c.following)}" for c in s.carried]
    lines.append(f"{pad}}}")
