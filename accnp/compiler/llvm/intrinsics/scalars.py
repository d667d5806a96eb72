"""Scalar functions: mathematics, integers, conversions, bits of numbers, and threefry."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from accnp.compiler.library import special_calls
from accnp.compiler.library.routines import special_symbol
from accnp.compiler.llvm import mathlib
from accnp.compiler.llvm.casts import write_cast
from accnp.compiler.llvm.intrinsics.table import (
    Emit,
    Resolved,
    complex_emit,
    define,
    simple,
    widest,
)
from accnp.compiler.llvm.registers import (
    from_memory,
    join_parts,
    register_type,
    split_parts,
    to_memory,
)
from accnp.compiler.llvm.scalars import basic, cplx, half, integer, units
from accnp.compiler.llvm.scalars.approximate import FAST, FAST_BINARY, fast
from accnp.compiler.llvm.scalars.gpu import GPU
from accnp.compiler.llvm.scalars.ir import F32, F64, I32, V, call_external, fma, where
from accnp.compiler.loops.types import B1, C8, C16, DTYPES, F4, U4, DType, Type, part_of

_WHOLE = ("int", "uint")


def _complex_abs(of: DType) -> Emit:
    def emit(b: ir.IRBuilder, z: ir.Value) -> ir.Value:
        real, imag = split_parts(b, z)
        y = cplx.scaled_abs((V(b, real).to(F64), V(b, imag).to(F64)))
        return y.to(F32 if of == C8 else F64).v

    return emit


def _int_unary(name: str, t: Type) -> Callable[[V], V] | None:
    signed = t.kind == "int"
    if name == "sign":
        if not signed:
            return lambda x: where(x.eq(0), x, 1)
        return lambda x: where(x > 0, 1, where(x.eq(0), x, x.const(-1)))
    if name == "abs":
        return (lambda x: where(x < 0, -x, x)) if signed else (lambda x: x)
    if name in ("floor", "ceil", "trunc", "round_even", "round_away"):
        return lambda x: x
    return None


def _unary(name: str, precise: Callable[[V], V]) -> None:
    def build(x: V) -> V:
        function = GPU.get(name, precise) if units.has_units(x) else precise
        return (FAST.get(name, function) if fast(x) else function)(x)

    def rule(t: Type) -> Resolved | None:
        if t.kind == "float":
            return t, (t,), simple(build)
        if isinstance(t, DType) and t.kind == "complex":
            if name == "abs":
                return part_of(t), (t,), _complex_abs(t)
            of_complex = mathlib.COMPLEX.get(name)
            return None if of_complex is None else (t, (t,), complex_emit(t, of_complex))
        if t.kind in _WHOLE:
            of_whole = _int_unary(name, t)
            return None if of_whole is None else (t, (t,), simple(of_whole))
        return None

    define(name, 1, rule)


def _nextafter(x: Type, y: Type) -> Resolved | None:
    t = x if x.kind == "half" else widest(x, y)

    def of_half(x: V, y: V) -> V:
        return basic.nextafter(
            x, y, lambda v: half.narrow(v, t.token), lambda i: half.widen(i, t.token)
        )

    if t.kind not in ("half", "float"):
        return None
    return t, (t, t), simple(of_half if t.kind == "half" else basic.nextafter)


def _int_binary(name: str, t: Type) -> Callable[[V, V], V] | None:
    s = t.kind == "int"
    table: dict[str, Callable[[V, V], V]] = {
        "rem": lambda x, y: integer.irem(x, y, s),
        "idiv": lambda x, y: integer.idiv(x, y, s),
        "fmax": lambda x, y: where(x.cmp(">", y, s), x, y),
        "fmin": lambda x, y: where(x.cmp("<", y, s), x, y),
        "shift_left": integer.shift_left,
        "shift_right_logical": integer.shift_right_logical,
        "shift_right_arithmetic": integer.shift_right_arithmetic,
    }
    return table.get(name)


def _binary(name: str) -> None:
    real = mathlib.BINARY.get(name)
    unit = FAST_BINARY.get(name, real)

    def build(x: V, y: V) -> V:
        chosen = unit if fast(x) else real
        assert chosen is not None
        return chosen(x, y)

    def rule(x: Type, y: Type) -> Resolved | None:
        if name == "pow" and y.kind in _WHOLE and x.kind == "float":
            y = x
        t = widest(x, y)
        if t.kind == "float":
            return None if real is None else (t, (t, t), simple(build))
        if t.kind == "complex":
            table = mathlib.COMPLEX64_BINARY if t == C8 else mathlib.COMPLEX_BINARY
            of_complex = table.get(name)
            return None if of_complex is None else (t, (t, t), complex_emit(t, of_complex))
        if t.kind in _WHOLE:
            of_whole = _int_binary(name, t)
            return None if of_whole is None else (t, (t, t), simple(of_whole))
        if t == B1 and name in ("fmax", "fmin"):
            return t, (t, t), simple(V.__or__ if name == "fmax" else V.__and__)
        return None

    define(name, 2, rule)


def _cast(target: DType) -> None:
    """Define a conversion with JAX's rules: floats saturate to integers, and complex numbers lose
    their imaginary part if the target is real."""

    def rule(t: Type) -> Resolved | None:
        if not isinstance(t, DType):
            return None

        def emit(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
            return write_cast(t, target, b, x)

        return target, (t,), emit

    define(target.token, 1, rule, halves=True)


def _bitcast(target: DType) -> None:
    def rule(t: Type) -> Resolved | None:
        if not isinstance(t, DType) or t.kind not in ("int", "uint", "float", "half"):
            return None

        def emit(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
            if t == target:
                return x
            v = to_memory(t, b, x)
            if target.kind == "half":
                return from_memory(target, b, v)
            out = register_type(target)
            return v if v.type == out else b.bitcast(v, out)

        return target, (t,), emit

    define(f"bitcast_{target.token}", 1, rule, halves=True)


def _ints(name: str, build: Callable[[V], V]) -> None:
    def rule(t: Type) -> Resolved | None:
        return (t, (t,), simple(build)) if t.kind in _WHOLE else None

    define(name, 1, rule)


def _resolve_one(t: Type) -> Resolved | None:
    def emit(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
        if t.kind == "complex":
            part = register_type(part_of(t))
            return ir.Constant(x.type, [ir.Constant(part, 1), ir.Constant(part, 0)])
        return ir.Constant(x.type, 1.0 if t.kind in ("half", "float") else 1)

    return t, (t,), emit


def _square(t: Type) -> Resolved | None:
    if t.kind == "complex":

        def emit(b: ir.IRBuilder, z: ir.Value) -> ir.Value:
            x, y = [V(b, p) for p in split_parts(b, z)]
            # Not inf - inf, and no digits lost, where the parts are about the same; a difference
            # of squares that is 0 is +0, also where the other factor is beyond the largest number.
            less, more = x - y, x + y
            at_zero = [b.fcmp_ordered("==", v.v, v.const(0.0).v) for v in (less, more)]
            zero = b.or_(at_zero[0], at_zero[1])
            real = b.select(zero, x.const(0.0).v, (less * more + 0.0).v)
            return join_parts(b, real, (x * y + x * y).v)

        return t, (t,), emit
    # plain instructions, so that fastmath reaches them as it does user arithmetic
    op = "fmul" if t.kind == "float" else "mul"

    def multiply(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return getattr(b, op)(x, x)

    return t, (t,), multiply


def _complex_product(x: Type, y: Type) -> Resolved | None:
    if x.kind != "complex" or x != y:
        return None

    def emit(b: ir.IRBuilder, p: ir.Value, q: ir.Value) -> ir.Value:
        (pr, pi), (qr, qi) = split_parts(b, p), split_parts(b, q)
        real = b.fsub(b.fmul(pr, qr), b.fmul(pi, qi))
        return join_parts(b, real, b.fadd(b.fmul(pr, qi), b.fmul(pi, qr)))

    return x, (x, x), emit


def _select(c: Type, x: Type, y: Type) -> Resolved | None:
    t = widest(x, y)
    return t, (B1, t, t), lambda b, *args: b.select(*args)


def _make_complex(x: Type, y: Type) -> Resolved | None:
    t = C8 if widest(x, y) == F4 else C16
    return t, (part_of(t),) * 2, join_parts


def _fma(x: Type, y: Type, z: Type) -> Resolved | None:
    t = widest(x, y, z)
    return (t, (t, t, t), simple(fma)) if t.kind == "float" else None


def _is_finite(t: Type) -> Resolved:
    return B1, (t,), simple(basic.is_finite)


def _threefry(name: str, pick: Callable[[V, V], V]) -> None:
    emit = simple(lambda *xs: pick(*integer.threefry(*xs)))
    define(name, 4, lambda *of: (U4, (U4,) * 4, emit))


def _special(name: str, count: int) -> None:
    """Define a function of SciPy, which is called by its address."""

    def rule(*of: Type) -> Resolved | None:
        def emit(b: ir.IRBuilder, *args: ir.Value) -> ir.Value:
            passed = [V(b, a).to(F64).v for a in args] + [ir.Constant(I32, 0)]
            result = call_external(b, special_symbol(name), F64, passed)
            return V(b, result).to(F32 if of[0] == F4 else F64).v

        return (of[0], of, emit) if all(t.kind == "float" for t in of) else None

    define(name, count, rule)


for _name, (_count, *_) in special_calls.CALLS.items():
    _special(_name, _count)
for _name, _build in mathlib.UNARY.items():
    _unary(_name, _build)
for _name in (
    *mathlib.BINARY,
    "cdiv",
    "idiv",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
):
    _binary(_name)
for _type in DTYPES.values():
    _cast(_type)
    if _type.kind not in ("complex", "bool"):
        _bitcast(_type)
_ints("clz", integer.clz)
_ints("popcount", integer.popcount)
define("nextafter", 2, _nextafter, halves=True)
define("one", 1, _resolve_one)
define("cmul", 2, _complex_product)
define("sq", 1, _square)
define("select", 3, _select)
define("make_complex", 2, _make_complex)
define("fma", 3, _fma)
define("is_finite", 1, _is_finite)
_threefry("threefry_0", lambda x, y: x)
_threefry("threefry_1", lambda x, y: y)
_threefry("threefry_xor", lambda x, y: x ^ y)
