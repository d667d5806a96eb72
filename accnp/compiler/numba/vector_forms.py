"""Define scalar functions with vector variants in the modules that Numba compiles.

LLVM's vectorizer cannot vectorize functions that read tables or branch. The input is the name of
such a function, the type of its operands, and the module that Numba writes. The output is a
function in this module, whose attribute `vector-function-abi-variant` names the functions that
compute the same for several lanes. Their code is that of the LLVM back end, so that both back ends
give the same bits. `numba/functions.py` calls `vectorized_function` for each call of a scalar
function.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from llvmlite import ir

from accnp.compiler.llvm.functions import write_call
from accnp.compiler.llvm.private import add_attribute
from accnp.compiler.llvm.processor import VECTOR_BYTES
from accnp.compiler.llvm.registers import register_type
from accnp.compiler.llvm.scalars.cold import keep
from accnp.compiler.llvm.templates import Template, define_vectors, make_template
from accnp.compiler.loops.types import DType

__all__ = ["vectorized_function"]

SHORT = 12  # instructions that are inlined


def vectorized_function(module: ir.Module, name: str, of: Sequence[DType]) -> ir.Function | None:
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
    function = ir.Function(module, ir.FunctionType(t, [t] * len(of)), symbol)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", "readnone"):
        function.attributes.add(attribute)
    b = ir.IRBuilder(function.append_basic_block())
    b.ret(write_call(name, of, b, function.args))
    variants = [define_vectors(module, f"{symbol}_x{n}", form, n) for n, form in templates]
    names = [
        f"_ZGV_LLVM_N{n}{'v' * len(of)}_{symbol}({v.name})"
        for (n, _), v in zip(templates, variants, strict=True)
    ]
    add_attribute(function, f'"vector-function-abi-variant"="{",".join(names)}"')
    # Kept with all its parameters: LLVM removes one that is the same number in all calls from an
    # internal function, and then the attribute names another number of parameters than there are.
    keep(module, [function, *variants])
    return function


@functools.cache
def _templates(name: str, of: tuple[DType, ...]) -> list[tuple[int, Template]]:
    """Return the code for several numbers of lanes; none for functions that are short or have no
    such code."""
    kinds = [register_type(d) for d in of]
    templates: list[tuple[int, Template]] = []
    # As many lanes as there are doubles, too, for loops over numbers of both sizes.
    for n in sorted({VECTOR_BYTES // of[0].size, VECTOR_BYTES // 8}):
        form = make_template(kinds, lambda b, args: write_call(name, of, b, args), n)
        if isinstance(form, str) or form.type != kinds[0] or form.count <= SHORT:
            return []
        templates.append((n, form))
    return templates
