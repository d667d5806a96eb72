"""Vector variants of functions that are called rarely, and features of the processor.

`masked_variants` gets a pure scalar function that is called under a condition, and whose operands
have the type of its result. It attaches a vector variant with a mask, which first tests whether any
lane needs the call. LLVM does not vectorize a loop with a call that has no variant, and executes a
call without a *masked* variant for every lane. `forms.rarely` uses the variants. The variables
below are set by `llvm/processor.py` and read by the modules of this folder.
"""

from __future__ import annotations

from llvmlite import ir

from accnp.compiler.llvm.private import add_attribute
from accnp.compiler.llvm.scalars.ir import I1, I32

# The vector width in bytes that LLVM's vectorizer is expected to choose. With another width, the
# code tests lane by lane, which is correct but slower.
vector_bytes = 32
# Features of the processor:
permutes = False  # permutations of 32 bytes by a register (AVX2)
shuffles = False  # permutations of 16 bytes, and selects by the sign (SSSE3 and SSE4.1)
neon = False  # vectors of AArch64, and lookups in tables of 64 bytes
halves = False  # instructions that convert numbers of half precision (F16C)


def masked_variants(fn: ir.Function) -> None:
    """Attach a masked vector variant to a function."""
    w = vector_bytes // (4 if isinstance(fn.ftype.return_type, ir.FloatType) else 8)
    v = variant(fn, w)
    text = f"_ZGV_LLVM_M{w}{'v' * len(fn.args)}_{fn.name}({v.name})"
    add_attribute(fn, f'"vector-function-abi-variant"="{text}"')
    keep(fn.module, [v])


def keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Add functions to llvm.compiler.used. Otherwise, LLVM would delete the variants, since nothing
    calls them before vectorization."""
    name = "llvm.compiler.used"
    g = module.globals.get(name)
    items = list(dict.fromkeys([*(g.initializer.constant if g else ()), *functions]))
    t = ir.ArrayType(ir.PointerType(), len(items))
    if g is None:
        g = ir.GlobalVariable(module, t, name)
        g.linkage, g.section = "appending", "llvm.metadata"
    g.value_type, g.type = t, t.as_pointer()
    g.initializer = ir.Constant(t, items)  # type: ignore[assignment]


def variant(fn: ir.Function, w: int) -> ir.Function:
    """Return the variant of a function for w lanes and a mask. Lanes that are not in the mask
    return the first argument."""
    t = fn.ftype.return_type
    vt, mt, bt = ir.VectorType(t, w), ir.VectorType(I1, w), ir.IntType(w)
    name = f"{fn.name}.x{w}"
    if name in fn.module.globals:
        return fn.module.globals[name]
    v = ir.Function(fn.module, ir.FunctionType(vt, [vt] * len(fn.args) + [mt]), name)
    v.linkage = "internal"
    for a in ("noinline", "nounwind", "readnone", "optnone", "cold"):
        v.attributes.add(a)
    *xs, mask = v.args
    entry, cold, lane, do, step, done, plain = (
        v.append_basic_block(n) for n in ["entry", "cold", "lane", "do", "step", "done", "plain"]
    )
    b = ir.IRBuilder(entry)
    m = b.bitcast(mask, bt)
    b.cbranch(b.icmp_unsigned("!=", m, ir.Constant(bt, 0)), cold, plain)
    ir.IRBuilder(plain).ret(xs[0])
    b = ir.IRBuilder(cold)
    b.branch(lane)
    b = ir.IRBuilder(lane)
    i = b.phi(I32)
    acc = b.phi(vt)
    i.add_incoming(ir.Constant(I32, 0), cold)
    acc.add_incoming(xs[0], cold)
    on = b.extract_element(mask, i)
    b.cbranch(on, do, step)
    b = ir.IRBuilder(do)
    y = b.insert_element(acc, b.call(fn, [b.extract_element(x, i) for x in xs]), i)
    b.branch(step)
    b = ir.IRBuilder(step)
    out = b.phi(vt)
    out.add_incoming(acc, lane)
    out.add_incoming(y, do)
    j = b.add(i, ir.Constant(I32, 1))
    i.add_incoming(j, step)
    acc.add_incoming(out, step)
    b.cbranch(b.icmp_unsigned("<", j, ir.Constant(I32, w)), lane, done)
    ir.IRBuilder(done).ret(out)
    return v
