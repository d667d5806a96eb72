"""Functions of memory: buffers on the stack and on the heap, addresses, reductions of a block in a
fixed order, copies, and prefetches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from accnp.compiler.llvm import mathlib
from accnp.compiler.llvm.intrinsics.table import Resolved, define, widest
from accnp.compiler.llvm.registers import from_memory, join_parts, memory_type, register_type
from accnp.compiler.llvm.scalars import across, block
from accnp.compiler.llvm.scalars.heap import free_aligned, malloc_aligned
from accnp.compiler.llvm.scalars.ir import I8, I64, V, fetch
from accnp.compiler.llvm.scalars.transpose import transpose
from accnp.compiler.llvm.templates import define_vectors, make_template
from accnp.compiler.loops.stack_lengths import STACK_LENGTHS
from accnp.compiler.loops.types import B1, DTYPES, F4, F8, DType, Pointer, Type, part_of
from accnp.ir.op import COMBINES, for_each_combine

__all__ = ["stack_memory", "write_reduce_columns", "write_reduce_elements"]

INT = DTYPES["i8"]
_BYTES = I8.as_pointer()


def stack_memory(b: ir.IRBuilder, of: DType, kind: ir.Type, align: int) -> ir.Value:
    """Return the address of memory on the stack, in the entry block: a call inside a loop does not
    grow the stack."""
    with b.goto_entry_block():
        p = b.alloca(kind)
        p.align = align
        return b.bitcast(p, register_type(Pointer(of)))


def _stack(kind: str, of: DType, count: int) -> None:
    def emit(b: ir.IRBuilder) -> ir.Value:
        return stack_memory(b, of, ir.ArrayType(memory_type(of), count), min(64, 16 * count))

    define(f"{kind}_{of.token}", 0, lambda: (Pointer(of), (), emit))


def _heap(of: DType) -> None:
    """Memory from the C library, aligned for vectors; `release` frees it."""

    def emit(b: ir.IRBuilder, count: ir.Value) -> ir.Value:
        place = malloc_aligned(b, b.mul(count, ir.Constant(I64, of.size)))
        return b.bitcast(place, register_type(Pointer(of)))

    def rule(n: Type) -> Resolved:
        return Pointer(of), (INT,), emit

    define("heap_" + of.token, 1, rule, acts=True)


def _release(p: Type) -> Resolved | None:
    return (None, (p,), free_aligned) if isinstance(p, Pointer) else None


def _define_null(of: DType) -> None:
    """The null address, for a name that has no memory on some path."""

    def emit(b: ir.IRBuilder) -> ir.Value:
        return ir.Constant(register_type(Pointer(of)), None)

    define("null_" + of.token, 0, lambda: (Pointer(of), (), emit))


def _resolve_at(p: Type, k: Type) -> Resolved | None:

    def emit(b: ir.IRBuilder, place: ir.Value, index: ir.Value) -> ir.Value:
        return b.gep(place, [index])

    return (p, (p, INT), emit) if isinstance(p, Pointer) else None


def _resolve_aligned(p: Type) -> Resolved | None:
    """Whether an address is a multiple of 16."""

    def emit(b: ir.IRBuilder, place: ir.Value) -> ir.Value:
        low = b.and_(b.ptrtoint(place, I64), ir.Constant(I64, 15))
        return b.icmp_unsigned("==", low, ir.Constant(I64, 0))

    return (B1, (p,), emit) if isinstance(p, Pointer) else None


def _move(to: Type, source: Type, n: Type) -> Resolved | None:
    """Copy n elements; the two may be the same memory."""
    if not isinstance(to, Pointer) or source != to:
        return None

    def emit(b: ir.IRBuilder, target: ir.Value, source: ir.Value, count: ir.Value) -> None:
        with b.if_then(b.icmp_unsigned("!=", target, source)):
            nbytes = b.mul(count, ir.Constant(I64, to.of.size))
            fn = b.module.declare_intrinsic("llvm.memmove", [_BYTES, _BYTES, I64])
            where = [b.bitcast(target, _BYTES), b.bitcast(source, _BYTES)]
            b.call(fn, [*where, nbytes, ir.Constant(ir.IntType(1), 0)])

    return None, (to, to, INT), emit


def _transpose(
    to: Type, ldt: Type, source: Type, lds: Type, rows: Type, columns: Type
) -> Resolved | None:
    """to[r * ldt + c] = source[r + c * lds]; `to` has room for whole squares
    (scalars.transpose)."""
    if not isinstance(to, Pointer) or source != to:
        return None
    of = to.of

    def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
        # Complex numbers are moved as integers of their size, booleans as bytes.
        t = register_type(of) if of.kind == "float" else ir.IntType(8 * of.size)
        operands = [b.bitcast(a, t.as_pointer()) if k in (0, 2) else a for k, a in enumerate(args)]
        transpose(b, t, of.size, operands)

    return None, (to, INT, to, INT, INT, INT), emit


def _prefetch(name: str, near: int) -> None:
    def emit(b: ir.IRBuilder, place: ir.Value) -> None:
        fetch(b, place, near)

    def rule(p: Type) -> Resolved | None:
        return (None, (p,), emit) if isinstance(p, Pointer) else None

    define(name, 1, rule)


def _resolve_touch(p: Type) -> Resolved | None:
    """Load a byte to bring its line into the caches, with a load that LLVM does not remove. Unlike
    a prefetch instruction, a load starts the hardware prefetcher."""

    def emit(b: ir.IRBuilder, place: ir.Value) -> None:
        b.load_atomic(b.bitcast(place, _BYTES), "monotonic", 1)

    return (None, (p,), emit) if isinstance(p, Pointer) else None


def _as_logic(name: str, of: DType) -> str:
    """The reduction that machine code computes: bools have logical ones."""
    return COMBINES[name].of_bools or name if of == B1 else name


def _define_column_reduction(
    name: str,
    write: Callable[[ir.IRBuilder, ir.Type, int, str, bool, Sequence[ir.Value]], None],
    step: Type,
) -> None:
    """Reductions over rows (scalars.across); the buffer of the results has room for whole
    vectors."""

    def rule(sums: Type, source: Type, steps: Type, rows: Type, wide: Type) -> Resolved | None:
        if not isinstance(sums, Pointer) or source != sums:
            return None
        of = sums.of
        if of.kind in ("complex", "half"):
            return None

        def emit(b: ir.IRBuilder, *args: ir.Value) -> None:
            write(b, memory_type(of), of.size, _as_logic(name, of), of.signed, args)

        return None, (sums, sums, step, INT, INT), emit

    define(f"{write.__name__}_{name}", 5, rule)


def write_reduce_elements(
    combine: str, of: DType, b: ir.IRBuilder, place: ir.Value, count: ir.Value
) -> ir.Value:
    """Write the reduction of a block of memory, in the order that is the same on all processors;
    returns the result."""
    if of.kind == "complex":
        part = memory_type(part_of(of))
        return join_parts(b, *block.block_reduce_complex(b, place, count, part, combine))
    kind = _as_logic(combine, of)
    return from_memory(of, b, block.block_reduce(b, place, count, memory_type(of), kind, of.signed))


def write_reduce_columns(
    combine: str, of: DType, b: ir.IRBuilder, values: Sequence[ir.Value]
) -> None:
    """Write reductions of columns; the arguments are those of `scalars.across.strips`."""
    across.strips(b, memory_type(of), of.size, _as_logic(combine, of), of.signed, values)


def _block(name: str) -> None:
    def rule(p: Type, n: Type) -> Resolved | None:
        if not isinstance(p, Pointer):
            return None
        of = p.of
        if of.kind == "half" or of.kind[0] not in COMBINES[name].kinds:
            return None

        def emit(b: ir.IRBuilder, place: ir.Value, count: ir.Value) -> ir.Value:
            return write_reduce_elements(name, of, b, place, count)

        return of, (p, INT), emit

    define("block_" + name, 2, rule)


def _call_combine(function: str) -> Callable[[V, V], V]:
    """A function that is more than an instruction: its code is written for scalars, and becomes a
    function of the module for vectors."""

    def combine(x: V, y: V) -> V:
        b, kind = x.b, x.v.type
        build = mathlib.BINARY[function]
        if not isinstance(kind, ir.VectorType):
            return build(x, y)
        symbol = f"accnp_combine_{function}_{kind.count}_{kind.element}"
        combiner = b.module.globals.get(symbol)
        if combiner is None:
            form = make_template(
                [kind.element] * 2, lambda b, args: build(*[V(b, a) for a in args]).v, kind.count
            )
            if isinstance(form, str):
                raise NotImplementedError(f"a reduction with {function}: {form}")
            combiner = define_vectors(b.module, symbol, form, kind.count)
        return V(b, b.call(combiner, [x.v, y.v]))

    return combine


def _define_reductions(name: str) -> None:
    """Define the reductions of memory with a function."""
    combine = COMBINES[name]
    emit = block.INSTRUCTIONS.get(combine.function) or _call_combine(combine.function)
    block.REDUCTIONS[name] = block.Reduction(emit, combine.identity, combine.order, combine.lanes)
    _block(name)
    _define_column_reduction(name, across.columns, INT)
    _define_column_reduction(name, across.strips, Pointer(INT))


def _wide_sum(p: Type, n: Type) -> Resolved | None:
    """The sum of a block of float32 in float64, with the bits of `block_sum` of a widened copy."""
    return (F8, (p, INT), block.block_wide_sum) if p == Pointer(F4) else None


def _find(p: Type, n: Type, value: Type) -> Resolved | None:
    """The index of the first element that equals a value, or n; NaN equals NaN."""
    if not isinstance(p, Pointer) or p.of.kind in ("complex", "half"):
        return None
    of = p.of

    def emit(b: ir.IRBuilder, place: ir.Value, count: ir.Value, value: ir.Value) -> ir.Value:
        value = b.zext(value, I8) if of == B1 else value
        return block.find(b, place, count, value, memory_type(of))

    return INT, (p, INT, of), emit


def _resolve_find_not_normal(p: Type, n: Type) -> Resolved | None:
    """The index of the first product that is not a normal number, or n."""
    if not isinstance(p, Pointer) or p.of.kind != "float":
        return None
    of = p.of

    def emit(b: ir.IRBuilder, place: ir.Value, count: ir.Value) -> ir.Value:
        return block.find_not_normal(b, place, count, memory_type(of))

    return INT, (p, INT), emit


def _join(name: str) -> None:
    """The step of `block_max` and `block_min`: of equal elements, it returns the first."""

    def rule(x: Type, y: Type) -> Resolved | None:
        t = widest(x, y)
        if not isinstance(t, DType) or t.kind == "complex":
            return None

        def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
            combine, _ = block.combine_and_identity(name, args[0].type, t.signed)
            return combine(*[V(b, a) for a in args]).v

        return t, (t, t), emit

    define("join_" + name, 2, rule)


for _type in DTYPES.values():
    for _kind, _count in STACK_LENGTHS.items():
        _stack(_kind, _type, _count)
    _heap(_type)
    _define_null(_type)
for_each_combine(_define_reductions)
for _name in ("max", "min"):
    _join(_name)
define("at", 2, _resolve_at)
define("aligned", 1, _resolve_aligned)
define("block_find", 3, _find)
define("block_wide_sum", 2, _wide_sum)
define("block_find_not_normal", 2, _resolve_find_not_normal)
define("move", 3, _move)
_prefetch("prefetch", 3)
_prefetch("prefetch_second", 2)
define("release", 1, _release)
define("touch", 1, _resolve_touch)
define("transpose", 6, _transpose)
