"""Printing of jaxprs in the notation of JAX 0.10.

`write` and `jaxpr_text` print whole programs, for `print(jaxpr)` and the tools of `inspect`;
`eqn_text` prints one equation, and `equation_text` the operation of a graph node for error
messages. The line breaks are decided by `ir/doc.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.doc import Doc, brk, concat, group, join, layout, nest, text
from accnp.ir.equations import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
)
from accnp.ir.node import Node
from accnp.ir.op import Op, as_tuple

if TYPE_CHECKING:
    from accnp.dtypes.names import DTypeLike

__all__ = ["eqn_text", "equation_text", "jaxpr_text", "short_aval", "short_dtype", "write"]

_LETTERS = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf"}


def short_dtype(dtype: DTypeLike) -> str:
    """Return "f32" for float32, "bf16" for bfloat16, "f8_e4m3fn" for float8_e4m3fn, and so on."""
    name = np.dtype(dtype).name
    match = re.fullmatch(r"(bfloat|float|uint|int|complex)(\d+.*)", name)
    return _LETTERS[match[1]] + match[2] if match else name


def short_aval(aval: Aval) -> str:
    """Return dtype and shape as jaxprs show them, such as "f32[2,3]"."""
    return f"{short_dtype(aval.dtype)}[{','.join(map(str, aval.shape))}]"


def equation_text(node: Node) -> str:
    """Return the operation of a node without variable names, for error messages."""
    ins = " ".join(_describe_type(x.aval) for x in node.inputs)
    params = " ".join(f"{k}={v}" for k, v in node.params.items())
    return f"{_describe_type(node.aval)} = {node.op.name}[{params}] {ins}"


def _describe_type(aval: Aval | tuple[Aval, ...]) -> str:
    if isinstance(aval, tuple):
        return "(" + ", ".join(map(_describe_type, aval)) + ")"
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"


@dataclass(frozen=True, slots=True)
class Style:
    """Options of printing: source lines, types, concise parameters, effects."""

    source_info: bool = False
    print_shapes: bool = True
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


def jaxpr_text(jaxpr: Jaxpr, width: int = 80, style: Style = Style()) -> str:
    """Return the text of a whole program; inner programs that occur twice or have more than 10
    equations are printed first, with a name."""
    printer = _Printer(jaxpr, style)
    docs = [printer.shared_definition(j, name) for j, name in printer.shared.values()]
    return layout(concat([*docs, printer.skeleton(jaxpr)]), width)


def eqn_text(eqn: JaxprEqn) -> str:
    """Return the text of one equation, with variable names starting at `a`."""
    return layout(_Printer(Jaxpr([], [], [], [eqn])).equation(eqn))


def _variable_name(n: int) -> str:
    out = ""
    while not out or n:
        n, i = divmod(n, 26)
        out = chr(97 + i) + out
    return out


class _Printer:
    def __init__(self, jaxpr: Jaxpr, style: Style = Style()) -> None:
        self.style = style
        self.names: dict[int, str] = {}
        self.shared: dict[int, tuple[Jaxpr, str]] = {}
        self._name_shared(jaxpr)
        used_names = {name for _, name in self.shared.values()}
        self.fresh = (s for s in map(_variable_name, count()) if s not in used_names)

    def _name_shared(self, top: Jaxpr) -> None:
        counts: Counter[int] = Counter()
        names: dict[int, str] = {}
        by_id: dict[int, Jaxpr] = {}
        queue = [top]
        for jaxpr in queue:  # breadth first: the loop appends to the list
            by_id[id(jaxpr)] = jaxpr
            counts[id(jaxpr)] += 1
            if jaxpr is not top and len(jaxpr.eqns) > 10:
                counts[id(jaxpr)] += 1
            for eqn in jaxpr.eqns:
                name = eqn.params.get("name")
                for inner in jaxprs_in_params(eqn.params):
                    queue.append(inner)
                    if name is not None:
                        names.setdefault(id(inner), str(name).strip("<>"))
        uses: Counter[str] = Counter()
        for key, n in counts.items():
            if n == 1:
                continue
            name = names.get(key, "jaxpr")
            seen = uses[name]
            uses[name] += 1
            if seen:
                name += str(seen)
                uses[name] += 1
            self.shared[key] = by_id[key], name

    def name(self, v: Var) -> str:
        if isinstance(v, DropVar):
            return "_"
        label = self.names.get(id(v))
        if label is None:
            label = self.names[id(v)] = next(self.fresh)
        return label

    def atom(self, v: Atom) -> str:
        if isinstance(v, Literal):
            return f"{v.text()}:{short_aval(v.aval)}"
        return self.name(v)

    def variables(self, vs: Sequence[Atom], separator: str = "", types: bool = False) -> Doc:
        types = types and self.style.print_shapes
        docs = [text(self.atom(v) + (f":{short_aval(v.aval)}" if types else "")) for v in vs]
        return nest(2, group(join(concat([text(separator), group(brk())]), docs)))

    def skeleton(self, jaxpr: Jaxpr) -> Doc:
        consts = self.variables(jaxpr.constvars, types=True)
        ins = self.variables(jaxpr.invars, types=True)
        eqns = join(brk("; "), [self.equation(e) for e in jaxpr.eqns])
        outs = self.variables(jaxpr.outvars, ",")
        close = text(",)" if len(jaxpr.outvars) == 1 else ")")
        body = [text("{ lambda "), consts, text("; "), ins, text(". let")]
        body += [nest(2, concat([brk(), eqns])), brk(), text("in ("), outs, close]
        if self.style.print_effects:
            body.append(text(" : { " + ", ".join(sorted(map(str, jaxpr.effects))) + " }"))
        return group(concat([nest(2, concat(body)), text(" }")]))

    def shared_definition(self, jaxpr: Jaxpr, name: str) -> Doc:
        return concat([text(f"let {name} = "), self.skeleton(jaxpr), text(" in"), brk()])

    def inner(self, jaxpr: Jaxpr) -> Doc:
        shared = self.shared.get(id(jaxpr))
        return text(shared[1]) if shared else self.skeleton(jaxpr)

    def equation(self, eqn: JaxprEqn) -> Doc:
        name, params = eqn.primitive.name, eqn.params
        op: Op | None = getattr(eqn.primitive, "op", None)  # not of primitives of users
        show = getattr(eqn.primitive, "show", None)
        if self.style.custom_pp_eqn_rules:
            if show is not None:
                params = show(params)
            if op is not None and op.inline:
                self._suggest_names(eqn)
        keys = sorted(params)
        call = op is not None and op.kind == "call"  # jax prints the parameter `name` first
        if call and "name" in params and self.style.custom_pp_eqn_rules:
            keys.remove("name")
            keys.insert(0, "name")
        left = self.variables(eqn.outvars, types=True)
        place = str(eqn.source_info) if self.style.source_info else ""
        right = [text(name, place)]
        if keys:
            pairs = [concat([text(f"{k}="), self.value(params[k])]) for k in keys]
            inside = nest(2, concat([text("["), brk(""), join(brk(), pairs)]))
            right.append(group(concat([inside, brk(""), text("]")])))
        right += [text(" "), self.variables(eqn.invars)]
        return concat([left, text(" = "), *right]) if eqn.outvars else concat(right)

    def value(self, v: object) -> Doc:
        if isinstance(v, ClosedJaxpr):
            return self.inner(v.jaxpr)
        if isinstance(v, Jaxpr):
            return self.inner(v)
        values = as_tuple(v)
        if all(isinstance(j, ClosedJaxpr | Jaxpr) for j in values):
            docs = [self.value(j) for j in values]
            inside = nest(2, concat([text("("), brk(""), join(brk(), docs)]))
            return group(concat([inside, brk(""), text(")")]))
        if isinstance(v, frozenset):
            elements = cast("frozenset[Any]", v)
            return text("frozenset({" + ", ".join(map(repr, sorted(elements))) + "})")
        return text(re.sub(r" at 0x([0-9a-fA-F]+)", lambda m: " at 0x" + "X" * len(m[1]), str(v)))

    def _suggest_names(self, eqn: JaxprEqn) -> None:
        """Name the variables of a called program like the operands and results of the call, unless
        one of these is passed twice."""
        inner = next(jaxprs_in_params(eqn.params))
        if id(inner) in self.shared:
            return
        for own, outer in ((inner.invars, eqn.invars), (inner.outvars, eqn.outvars)):
            if len(own) != len(outer):
                continue
            used: set[int] = set()
            for v, like in zip(own, outer, strict=True):
                fresh = isinstance(v, Var) and id(v) not in self.names
                if fresh and isinstance(like, Var) and id(like) not in used:
                    used.add(id(like))
                    self.names[id(v)] = self.name(like)


def _open_jaxpr(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


def write(program: Jaxpr | ClosedJaxpr, width: int = 80, **style: bool) -> str:
    """Return the text of a `Jaxpr` or `ClosedJaxpr`."""
    return jaxpr_text(_open_jaxpr(program), width, Style(**style))
