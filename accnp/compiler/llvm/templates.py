"""Make operations on vectors, as LLVM text, from the code for scalars.

`make_template` gets a function that writes the scalar code of an operation, and the number of
lanes. It returns a `Template`, which is the text of the same instructions on vectors, so scalar and
vector code compute the same bits. The vector loops of `lower.py` and `vector_loop.py` insert
templates into their bodies. `Functions` collects the long ones, which become functions of the
module. `define_vectors` adds one function to a module, for `intrinsics/memory.py` and
`numba/vector_forms.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from llvmlite import ir
from llvmlite.ir import instructions as ins

from accnp.compiler.llvm.scalars.forms import Lanes, vector_call

__all__ = [
    "INLINED_ATTRIBUTES", "Functions", "Index", "LaneValue", "Template", "Vector", "byte_size",
    "define_vectors", "make_template", "vector",
]  # fmt: skip

INLINED_ATTRIBUTES = 772  # the number of the attribute group of functions of vectors
INLINED = 4  # a function with at most this many calls is inlined
_PURE = frozenset(
    """fadd fsub fmul fdiv frem fneg add sub mul shl lshr ashr and or xor trunc zext sext fptrunc
    fpext fptosi fptoui sitofp uitofp bitcast icmp fcmp select call""".split()  # noqa: SIM905
)
# Intrinsics whose vector form takes vectors for all arguments, except those of one bit.
_INTRINSICS = frozenset(
    """fma fabs copysign sqrt floor ceil trunc roundeven ctlz cttz ctpop minnum maxnum minimum
    maximum smin smax umin umax fshl fshr fptosi.sat fptoui.sat""".split()  # noqa: SIM905
)
_OVERLOADED = re.compile(r"[fi]\d+")


def vector(kind: ir.Type | str, n: int) -> str:
    """Return the text of a vector type."""
    return f"<{n} x {kind}>"


def byte_size(kind: ir.Type | str) -> int:
    """Return the size of a number in memory, in bytes."""
    size = max(1, getattr(kind, "width", 0) // 8)
    return {"float": 4, "double": 8}.get(str(kind), size)


class Vector:
    """A vector in LLVM text: the LLVM type of a lane, and the name of the value."""

    __slots__ = ("name", "type")

    def __init__(self, kind: ir.Type, name: str) -> None:
        self.type = kind
        self.name = name


class Index:
    """Integers that increase by `step`, a number or a value, from lane to lane. The first one is
    `now`, plus the loop-invariant value `offset` if there is one."""

    __slots__ = ("now", "offset", "step")

    def __init__(
        self, now: ir.Value, step: ir.Value | int = 1, offset: ir.Value | None = None
    ) -> None:
        self.now = now
        self.step = step
        self.offset = offset


# A value in a vector loop. An `ir.Value` is the same in all lanes.
LaneValue = Vector | Index | ir.Value


class Template:
    """An operation on vectors as text: lines with placeholders for a prefix and the operands."""

    def __init__(
        self,
        arguments: Sequence[ir.Value],
        code: Sequence[ir.Instruction],
        result: ir.Value,
        n: int,
        beside: dict[str, str],
    ) -> None:
        self.count = len(code)
        self.type = result.type
        self.kinds = [a.type for a in arguments]
        self.declares = dict(beside)  # and definitions
        names = {id(a): f"{{{i + 1}}}" for i, a in enumerate(arguments)}
        self.lines: list[str] = []
        for k, instruction in enumerate(code):
            names[id(instruction)] = f"%{{0}}.{k}"
            self.lines.append(f"%{{0}}.{k} = " + self._line(instruction, names, n))
        self.result = self._name(result, names)

    def _name(self, value: ir.Value, names: dict[int, str]) -> str:
        if isinstance(value, ir.Constant):
            return f"splat ({value.type} {value.get_reference()})".replace("{", "{{")
        return names[id(value)]

    def _line(self, i: ins.Instruction, names: dict[int, str], n: int) -> str:
        if isinstance(i, ins.CallInstr):
            return self._call(i, names, n)
        operands = [self._name(x, names) for x in i.operands]
        kinds = [vector(x.type, n) for x in i.operands]
        op = " ".join([i.opname, *i.flags])
        if isinstance(i, ins.CompareInstr):
            return f"{op} {i.op} {kinds[0]} {', '.join(operands)}"
        if isinstance(i, ins.CastInstr):
            return f"{op} {kinds[0]} {operands[0]} to {vector(i.type, n)}"
        if isinstance(i, ins.SelectInstr):
            return f"{op} " + ", ".join(map(" ".join, zip(kinds, operands, strict=True)))
        return f"{op} {kinds[0]} {', '.join(operands)}"

    def _call(self, i: ins.CallInstr, names: dict[int, str], n: int) -> str:
        prefix, *name = i.callee.name.split(".")
        if prefix == "accnp":
            return self._form(i, names, n)
        base = ".".join([x for x in name if not _OVERLOADED.fullmatch(x)])
        if prefix != "llvm" or base not in _INTRINSICS:
            raise ValueError(i.callee.name)
        one_bit = [isinstance(x, ir.Constant) and x.type == ir.IntType(1) for x in i.args]
        kinds = ["i1" if bit else vector(x.type, n) for x, bit in zip(i.args, one_bit, strict=True)]
        kind = vector(i.type, n)
        suffixes = [f"v{n}{x}" for x in name if _OVERLOADED.fullmatch(x)]
        name = "@" + ".".join(["llvm", base, *suffixes])
        self.declares[name] = f"declare {kind} {name}({', '.join(kinds)})"
        operands = [
            x.get_reference() if bit else self._name(x, names)
            for x, bit in zip(i.args, one_bit, strict=True)
        ]
        return f"call {kind} {name}({', '.join(map(' '.join, zip(kinds, operands, strict=True)))})"

    def _form(self, i: ins.CallInstr, names: dict[int, str], n: int) -> str:
        """Return a call of the vector form of a function."""
        callee, definitions = vector_call(i.callee.name, [x.type for x in i.args], i.type, n)
        self.declares.update(definitions)
        passed = [
            f"{x.type} {x.get_reference()}"
            if isinstance(x.type, ir.VectorType)
            else f"{vector(x.type, n)} {self._name(x, names)}"
            for x in i.args
        ]
        return f"call {vector(i.type, n)} {callee}({', '.join(passed)})"


class Functions:
    """The functions that the vector loops of a module call, and the number of calls of each."""

    def __init__(self) -> None:
        self.declares: dict[str, str] = {}
        self.templates: dict[str, tuple[Template, int]] = {}
        self.calls: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.serial = 0

    def called(self, template: Template, what: str, n: int) -> str:
        """Count a call of a template as a function, and return the name of the function."""
        name = self.names.get(id(template))
        if name is None:
            name = self.names[id(template)] = f"@accnp_lanes_{what}_{len(self.names)}"
            self.templates[name] = (template, n)
        self.calls[name] = self.calls.get(name, 0) + 1
        return name

    def text(self, known: Collection[str]) -> str:
        """Return the text of the functions, and of the declarations that are not `known` yet."""
        definitions: list[str] = []
        for name, (template, n) in self.templates.items():
            inlined = self.calls[name] <= INLINED
            kind = vector(template.type, n)
            arguments = [f"{vector(k, n)} %a{i}" for i, k in enumerate(template.kinds)]
            names = ["v", *[f"%a{i}" for i in range(len(template.kinds))]]
            attributes = "alwaysinline" if inlined else "noinline"
            definitions += [
                f"define internal {kind} {name}({', '.join(arguments)}) "
                f"#{INLINED_ATTRIBUTES} {attributes} {{",
                *["  " + line.format(*names) for line in template.lines],
                f"  ret {kind} {template.result.format(*names)}",
                "}",
            ]
            self.declares.update(template.declares)
        fresh = [text for name, text in self.declares.items() if name.strip('@"') not in known]
        return "\n".join([*fresh, *definitions, ""])


def make_template(
    kinds: Sequence[ir.Type],
    write: Callable[[ir.IRBuilder, Sequence[ir.Value]], ir.Value],
    n: int,
    leading: Sequence[ir.Type] = (),
) -> Template | str:
    """Return an operation on vectors, made from the code for scalars, or a string that says why
    this is not possible.

    Branches are removed, and both sides are computed: they have no side effects, and no value
    depends on the branch that was taken.

    Parameters
    ----------
    kinds : sequence of llvmlite types
        The types of the operands.
    write : callable
        Writes the code with a builder and operands, and returns the result.
    n : int
        The number of lanes.
    leading : sequence of llvmlite types, optional
        The types of arguments before the operands, which the code must not use.
    """
    kind = ir.FunctionType(ir.VoidType(), [*leading, *kinds])
    scratch = ir.Function(ir.Module(), kind, "scratch")
    builder = Lanes(scratch.append_basic_block("entry"), n)
    operands = scratch.args[len(leading) :]
    try:
        result = write(builder, operands)
    except NotImplementedError as error:
        return str(error)
    code: dict[int, ir.Instruction] = {}
    for block in scratch.blocks:
        for i in block.instructions:
            if isinstance(i, ins.Branch | ins.ConditionalBranch):
                continue
            if i.opname not in _PURE:
                return f"{i.opname} in an operation"
            code[id(i)] = i
    live: set[int] = set()
    stack: list[ir.Value] = [result]
    while stack:
        v = stack.pop()
        if id(v) in code and id(v) not in live:
            live.add(id(v))
            stack += [x for x in code[id(v)].operands if not isinstance(x, ir.Function)]
    vectors = (ir.IntType, ir.HalfType, ir.FloatType, ir.DoubleType)
    beside = {
        f'@"{g.name}"': str(g)
        for g in scratch.module.globals.values()
        if g is not scratch and not getattr(g, "is_declaration", False)
    }
    used = [i for i in code.values() if id(i) in live]
    if not all(isinstance(x.type, vectors) for x in (*used, *operands)):
        return "a value that is not a number"
    try:
        return Template(operands, used, result, n, beside)
    except ValueError as error:
        return f"a call of {error}"


class _Text:
    """A named global of a module whose definition is given as text."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __str__(self) -> str:
        return self.text


class _Defined(ir.Function):
    """A function whose definition is given as text."""

    text = ""

    def __str__(self) -> str:
        return self.text

    @property
    def is_declaration(self) -> bool:
        return False


def define_vectors(module: ir.Module, symbol: str, form: Template, n: int) -> ir.Function:
    """Add a template to a module as a function of vectors with n lanes, and return the function."""
    group = f"attributes #{INLINED_ATTRIBUTES}"
    texts = {group: f"{group} = {{ nounwind }}", **form.declares}
    for name, text in texts.items():
        name = name.strip('@"')
        if name not in module.globals:
            module.add_global(_Text(name, text))
    kind = vector(form.type, n)
    parameters = [f"{vector(k, n)} %a{i}" for i, k in enumerate(form.kinds)]
    names = ["v", *[f"%a{i}" for i in range(len(form.kinds))]]
    lanes = ir.VectorType(form.type, n)
    function = _Defined(module, ir.FunctionType(lanes, [lanes] * len(parameters)), symbol)
    function.text = "\n".join(
        [
            f'define internal {kind} @"{symbol}"({", ".join(parameters)}) noinline nounwind {{',
            *["  " + line.format(*names) for line in form.lines],
            f"  ret {kind} {form.result.format(*names)}",
            "}\n",
        ]
    )
    return function
