"""Scalar intrinsics: mathematics, integers, casts, bit casts, threefry.

In: scalar Numba values; the dtype of the arguments picks the code. Out: entries of ``NAMESPACE``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types

from . import mathlib, special_calls
from .factory import (
    SCALARS,
    Emit,
    complex_emit,
    context_type,
    define,
    joined,
    parts,
    simple,
    widest,
)
from .halves import Half, loaded, stored
from .math import basic, cplx, half, integer, units
from .math.approximate import FAST, FAST_BINARY, fast
from .math.gpu import GPU
from .math.ir import F32, F64, I32, V, fma, where
from .routines import special_symbol


def _complex_abs(context: Any, b: Any, sig: Any, args: Any) -> Any:
    y = cplx.scaled_abs(parts(context, b, sig.args[0], args[0]))
    return y.to(F32 if sig.return_type is types.float32 else F64).v


def _int_unary(name: str, t: Any) -> Callable[[V], V] | None:
    if name == "sign":
        if not t.signed:
            return lambda x: where(x.eq(0), x, 1)
        return lambda x: where(x > 0, 1, where(x.eq(0), x, x.const(-1)))
    if name == "abs":
        return (lambda x: where(x < 0, -x, x)) if t.signed else (lambda x: x)
    if name in ("floor", "ceil", "trunc", "round_even", "round_away"):
        return lambda x: x
    return None


def _unary(name: str, precise: Callable[[V], V]) -> None:
    def build(x: V) -> V:
        made = GPU.get(name, precise) if units.own(x) else precise
        return (FAST.get(name, made) if fast(x) else made)(x)

    def rule(t: Any) -> Any:
        if isinstance(t, types.Float):
            return t, (t,), simple(build)
        if isinstance(t, types.Complex):
            if name == "abs":
                return t.underlying_float, (t,), _complex_abs
            made = mathlib.COMPLEX.get(name)
            return None if made is None else (t, (t,), complex_emit(made))
        if isinstance(t, types.Integer):
            made = _int_unary(name, t)
            return None if made is None else (t, (t,), simple(made))
        return None

    define(name, 1, rule)


def _nextafter(x: Any, y: Any) -> Any:
    t = x if isinstance(x, Half) else widest(x, y)

    def of_half(x: V, y: V) -> V:
        return basic.nextafter(
            x, y, lambda v: half.narrow(v, t.code), lambda i: half.widen(i, t.code)
        )

    if not isinstance(t, Half | types.Float):
        return None
    return t, (t, t), simple(of_half if isinstance(t, Half) else basic.nextafter)


def _int_binary(name: str, t: Any) -> Callable[[V, V], V] | None:
    s = t.signed
    table = {
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

    def rule(x: Any, y: Any) -> Any:
        if name == "pow" and isinstance(y, types.Integer) and isinstance(x, types.Float):
            y = x
        t = widest(x, y)
        if isinstance(t, types.Float):
            return None if real is None else (t, (t, t), simple(build))
        if isinstance(t, types.Complex):
            narrow = t is types.complex64
            table = mathlib.COMPLEX64_BINARY if narrow else mathlib.COMPLEX_BINARY
            made = table.get(name)
            return None if made is None else (t, (t, t), complex_emit(made))
        if isinstance(t, types.Integer):
            whole = _int_binary(name, t)
            return None if whole is None else (t, (t, t), simple(whole))
        if name in ("fmax", "fmin"):
            return t, (t, t), simple(V.__or__ if name == "fmax" else V.__and__)
        return None

    define(name, 2, rule)


def cast_emit(source: Any, target: Any) -> Emit:
    """By jax's rules: float to integer saturates, complex to real drops the imaginary part."""

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        (value,) = args
        if isinstance(source, types.Complex):
            z = context.make_complex(b, source, value)
            if target is types.boolean:
                return b.or_(*(V(b, p).ne(0.0).v for p in (z.real, z.imag)))
            if isinstance(target, types.Complex):
                return joined(context, b, target, V(b, z.real), V(b, z.imag))
            return real(b, source.underlying_float, target, z.real).v
        if isinstance(target, types.Complex):
            re = real(b, source, target.underlying_float, value)
            return joined(context, b, target, re, re.const(0.0))
        return real(b, source, target, value).v

    def real(b: Any, s: Any, t: Any, value: Any) -> V:
        x = V(b, value)
        out = context_type(t)
        if t is types.boolean:
            return x if s is types.boolean else x.ne(0.0 if isinstance(s, types.Float) else 0)
        if isinstance(s, types.Float) and isinstance(t, types.Integer):
            return basic.to_int(x, out, t.signed)  # type: ignore[attr-defined]
        signed = isinstance(s, types.Integer) and s.signed  # type: ignore[attr-defined]
        return x.to(out, signed=signed)

    return emit


def _cast(name: str, target: Any) -> None:
    scalars = (types.Boolean, types.Integer, types.Float, types.Complex)

    def rule(t: Any) -> Any:
        return (target, (t,), cast_emit(t, target)) if isinstance(t, scalars) else None

    define(name, 1, rule)


def _cast_to_half(name: str, target: Half) -> None:
    def rule(t: Any) -> Any:
        if isinstance(t, types.Complex):
            real = t.underlying_float

            def part(context: Any, b: Any, sig: Any, args: Any) -> Any:
                return context.cast(b, context.make_complex(b, t, args[0]).real, real, target)

            return target, (t,), part

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            return context.cast(b, args[0], t, target)

        kinds = (types.Boolean, types.Integer, types.Float, Half)
        return (target, (t,), emit) if isinstance(t, kinds) else None

    define(name, 1, rule, halves=True)


def _bitcast(name: str, target: Any) -> None:
    def rule(t: Any) -> Any:
        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            if t is target:
                return args[0]
            v = stored(b, t, args[0]) if isinstance(t, Half) else args[0]
            if isinstance(target, Half):
                return loaded(b, target, v)
            out = context_type(target)
            return v if v.type == out else b.bitcast(v, out)

        kinds = (types.Integer, types.Float, Half)
        return (target, (t,), emit) if isinstance(t, kinds) else None

    define(name, 1, rule, halves=True)


def _ints(name: str, build: Callable[[V], V]) -> None:
    define(name, 1, lambda t: (t, (t,), simple(build)) if isinstance(t, types.Integer) else None)


def _one(t: Any) -> Any:
    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return context.get_constant(t, True if t is types.boolean else 1)

    return t, (t,), emit


def _square(t: Any) -> Any:
    if isinstance(t, types.Complex):

        def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
            z = context.make_complex(b, t, args[0])
            x, y = V(b, z.real), V(b, z.imag)
            # Not inf - inf, and no digits lost, where the parts are about the same; a difference
            # of squares that is 0 is +0, also where the other factor is beyond the largest number.
            less, more = x - y, x + y
            zero = b.or_(*(b.fcmp_ordered("==", v.v, v.const(0.0).v) for v in (less, more)))
            real = b.select(zero, x.const(0.0).v, (less * more + 0.0).v)
            return joined(context, b, t, V(b, real), x * y + x * y)

        return t, (t,), emit
    # plain instructions, so that fastmath reaches them as it does user arithmetic
    op = "fmul" if isinstance(t, types.Float) else "mul"
    return t, (t,), lambda context, b, sig, args: getattr(b, op)(args[0], args[0])


def _complex_product(x: Any, y: Any) -> Any:
    """Numba's own would be compiled from Python, which costs 0.3 s in a process."""
    if not isinstance(x, types.Complex) or x != y:
        return None

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        p, q = (context.make_complex(b, x, a) for a in args)
        z = context.make_complex(b, x)
        z.real = b.fsub(b.fmul(p.real, q.real), b.fmul(p.imag, q.imag))
        z.imag = b.fadd(b.fmul(p.real, q.imag), b.fmul(p.imag, q.real))
        return z._getvalue()

    return x, (x, x), emit


def _select(c: Any, x: Any, y: Any) -> Any:
    t = widest(x, y)

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.select(*args)

    return t, (types.boolean, t, t), emit


def _make_complex(x: Any, y: Any) -> Any:
    t = types.complex64 if widest(x, y) is types.float32 else types.complex128
    part = t.underlying_float
    return (
        t,
        (part, part),
        lambda context, b, sig, args: joined(context, b, t, *(V(b, a) for a in args)),
    )


def _fma(x: Any, y: Any, z: Any) -> Any:
    t = widest(x, y, z)
    return (t, (t, t, t), simple(fma)) if isinstance(t, types.Float) else None


def _threefry(name: str, pick: Callable[[V, V], V]) -> None:
    word = (types.uint32,) * 4

    def rule(*ts: Any) -> Any:
        return types.uint32, word, simple(lambda *xs: pick(*integer.threefry(*xs)))

    define(name, 4, rule)


def _special(name: str, count: int) -> None:
    """A function of SciPy's, called by its address."""

    def emit(context: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(F64, [F64] * count + [I32])
        symbol = special_symbol(name)
        callee = b.module.globals.get(symbol) or ir.Function(b.module, kind, symbol)
        found = b.call(callee, [V(b, a).to(F64).v for a in args] + [ir.Constant(I32, 0)])
        return V(b, found).to(F32 if sig.return_type is types.float32 else F64).v

    def rule(*ts: Any) -> Any:
        return (ts[0], ts, emit) if all(isinstance(t, types.Float) for t in ts) else None

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
for _name, _type in SCALARS.items():
    if isinstance(_type, Half):
        _cast_to_half(_name, _type)
    else:
        _cast(_name, _type)
    if not isinstance(_type, (types.Complex, types.Boolean)):
        _bitcast("bitcast_" + _name, _type)
_ints("clz", integer.clz)
_ints("popcount", integer.popcount)
define("nextafter", 2, _nextafter, halves=True)
define("one", 1, _one)
define("cmul", 2, _complex_product)
define("sq", 1, _square)
define("select", 3, _select)
define("make_complex", 2, _make_complex)
define("fma", 3, _fma)
define("is_finite", 1, lambda t: (types.boolean, (t,), simple(basic.is_finite)))
_threefry("threefry_0", lambda x, y: x)
_threefry("threefry_1", lambda x, y: y)
_threefry("threefry_xor", lambda x, y: x ^ y)
