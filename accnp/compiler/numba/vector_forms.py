"""Scalar functions as functions of their own, with variants for vectors.

In: the name of a function, the type of its operands, and the module that Numba writes. Out: a
function in that module. LLVM's vectorizer cannot read the code of functions that look numbers up in
tables, or branch; the attribute `vector-function-abi-variant` says which function does the same for
several lanes. Its code is that of the other back end, so the bits are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from accnp.compiler.llvm.functions import write_call
from accnp.compiler.llvm.private import add_attribute
from accnp.compiler.llvm.processor import VECTOR_BYTES
from accnp.compiler.llvm.registers import register_type
from accnp.compiler.llvm.scalars.cold import keep
from accnp.compiler.llvm.templates import INLINED_ATTRIBUTES, Template, make_template, vector
from accnp.compiler.loops.types import DType

__all__ = ["vectorized_function"]

SHORT = 12  # instructions that are inlined


class _Text:
    """What a module contains as text, under a name."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __str__(self) -> str:
        return self.text


class _Variant(ir.Function):
    """A function for several lanes, whose definition is text."""

    text = ""

    def __str__(self) -> str:
        return self.text

    @property
    def is_declaration(self) -> bool:
        return False


def vectorized_function(module: Any, name: str, of: Sequence[DType]) -> Any:
    """Return the function of operands of some types in a module; None for one that is inlined.

    Parameters
    ----------
    module : llvmlite module
        The module that calls it.
    name : str
        A function of the loop IR.
    of : sequence of DType
        The types of the operands.
    """
    if not of or any(d != of[0] or d.kind != "float" for d in of):
        return None
    templates = _templates(name, tuple(of))
    if not templates:
        return None
    symbol = f"accnp_{name}_{of[0].token}"
    known = module.globals.get(symbol)
    if known is not None:
        return known
    t = register_type(of[0])
    made = ir.Function(module, ir.FunctionType(t, [t] * len(of)), symbol)
    made.linkage = "internal"
    for attribute in ("noinline", "nounwind", "readnone"):
        made.attributes.add(attribute)
    b = ir.IRBuilder(made.append_basic_block())
    b.ret(write_call(name, of, b, made.args))
    variants = [_variant(module, f"{symbol}_x{n}", form, n) for n, form in templates]
    names = [
        f"_ZGV_LLVM_N{n}{'v' * len(of)}_{symbol}({v.name})"
        for (n, _), v in zip(templates, variants, strict=True)
    ]
    add_attribute(made, f'"vector-function-abi-variant"="{",".join(names)}"')
    keep(module, variants)
    return made


@functools.cache
def _templates(name: str, of: tuple[DType, ...]) -> list[tuple[int, Template]]:
    """The code for several numbers of lanes; none for what is short, or has no such code."""
    kinds = [register_type(d) for d in of]
    found = []
    # As many lanes as there are doubles, too, for loops over numbers of both sizes.
    for n in sorted({VECTOR_BYTES // of[0].size, VECTOR_BYTES // 8}):
        form = make_template(kinds, lambda b, args: write_call(name, of, b, args), n)
        if isinstance(form, str) or form.type != kinds[0] or form.count <= SHORT:
            return []
        found.append((n, form))
    return found


def _variant(module: Any, symbol: str, form: Template, n: int) -> Any:
    group = f"attributes #{INLINED_ATTRIBUTES}"
    texts = {group: f"{group} = {{ nounwind }}", **form.declares}
    for name, text in texts.items():
        name = name.strip('@"')
        if name not in module.globals:
            module.add_global(_Text(name, text))
    kind = vector(form.type, n)
    given = [f"{vector(k, n)} %a{i}" for i, k in enumerate(form.kinds)]
    names = ["v", *[f"%a{i}" for i in range(len(form.kinds))]]
    lanes = ir.VectorType(form.type, n)
    made = _Variant(module, ir.FunctionType(lanes, [lanes] * len(given)), symbol)
    made.text = "\n".join(
        [
            f'define internal {kind} @"{symbol}"({", ".join(given)}) noinline nounwind {{',
            *["  " + line.format(*names) for line in form.lines],
            f"  ret {kind} {form.result.format(*names)}",
            "}\n",
        ]
    )
    return made
