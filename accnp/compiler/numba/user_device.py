"""Functions that users' kernels for GPUs call, and that LLVM's target for GPUs does not define.

They are votes and shuffles of a warp, atomic operations on floats, small functions of libdevice,
and its fast functions, which use the approximate units. `user_cuda.py` passes the texts of the
modules of a kernel; `find_declared` returns the functions among these that they declare, and
`define_functions` a module with definitions, which are inlined. This module also registers `max`
and `min` of several numbers with Numba's target for GPUs, which types them as functions of one
argument (Numba 0.68).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Concatenate

from llvmlite import ir
from numba.core import types
from numba.extending import overload

from accnp.compiler.llvm.ptx import TRIPLE
from accnp.compiler.llvm.scalars.approximate import FAST
from accnp.compiler.llvm.scalars.ir import (
    F32,
    F64,
    I1,
    I32,
    I64,
    MANT,
    V,
    bits,
    call,
    call_external,
    copysign,
    fabs,
    isnan,
    rint,
    sqrt,
    unbits,
    where,
)
from accnp.compiler.llvm.scalars.units import ex2, lg2, rcp

__all__ = ["define_functions", "find_declared", "rename_intrinsics"]

_PAIR = ir.LiteralStructType((I32, I1))
_LIBNVVM = re.compile(r'@"?llvm\.nvvm\.(shfl\.sync\.i32|vote\.sync|match\.all\.sync\.i\d+)"?(?=\()')
_DECLARED = re.compile(
    r'^declare [^@\n]*@"?((?:___numba|__nv|accnp|numba)_[\w.]+|hypotf?)"?\(', re.MULTILINE
)

Body = Callable[Concatenate[ir.IRBuilder, ...], object]
_Form = Callable[Concatenate[V, ...], V]
_known: dict[str, tuple[ir.Type, tuple[ir.Type, ...], Body]] = {}


def rename_intrinsics(text: str) -> str:
    """Return a module's text in which intrinsics of libnvvm that LLVM does not have are functions
    of this module."""
    return _LIBNVVM.sub(r'@"accnp_\1"', text)


def find_declared(texts: Iterable[str]) -> set[str]:
    """Return the functions of this module that modules declare."""
    return {name for t in texts for name in _DECLARED.findall(t) if name in _known}


def define_functions(names: Iterable[str]) -> str:
    """Return the text of a module that defines functions."""
    module = ir.Module("device")
    module.triple = TRIPLE
    for name in sorted(names):
        result, arguments, body = _known[name]
        function = ir.Function(module, ir.FunctionType(result, arguments), name)
        function.linkage = "linkonce_odr"
        function.attributes.add("alwaysinline")
        function.attributes.add("convergent")
        builder = ir.IRBuilder(function.append_basic_block())
        body(builder, *function.args)
    return str(module)


def _define(name: str, result: ir.Type, *arguments: ir.Type) -> Callable[[Body], Body]:
    """Return a decorator that registers the code of a function; the code gets a builder and the
    arguments, and writes the `ret`."""

    def keep(body: Body) -> Body:
        _known[name] = result, arguments, body
        return body

    return keep


def _formula(
    single: str, double: str, result: ir.Type | None, formula: _Form, *others: ir.Type | None
) -> None:
    """Define a function of a float and other arguments by a formula of values; `result` None means
    the float's type."""
    for name, kind in ((single, F32), (double, F64)):
        out = kind if result is None else result
        rest = [kind if t is None else t for t in others]

        def body(b: ir.IRBuilder, *arguments: ir.Value, out: ir.Type = out) -> None:
            value = formula(*[V(b, x) for x in arguments])
            b.ret(value.to(out, signed=value.type != I1).v)

        _define(name, out, kind, *rest)(body)


# --- threads of a warp ---

_SHUFFLES = ("idx", "up", "down", "bfly")
_VOTES = ("all", "any", "uni", "ballot")


def _switch_on_mode(
    b: ir.IRBuilder, mode: ir.Value, ways: Iterable[Callable[[], ir.Value]]
) -> None:
    """Write a switch over a mode, which is a constant after inlining. Each case returns the value
    of one of `ways`."""
    end = b.append_basic_block()
    switch = b.switch(mode, end)
    for k, way in enumerate(ways):
        block = b.append_basic_block()
        switch.add_case(k, block)
        b.position_at_end(block)
        b.ret(way())
    b.position_at_end(end)
    b.unreachable()


def _intrinsic(b: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
    return call_external(b, name, result, arguments)


@_define("accnp_shfl.sync.i32", _PAIR, I32, I32, I32, I32, I32)
def _shuffle(
    b: ir.IRBuilder, mask: ir.Value, mode: ir.Value, value: ir.Value, at: ir.Value, clamp: ir.Value
) -> None:
    names = [f"llvm.nvvm.shfl.sync.{k}.i32p" for k in _SHUFFLES]
    ways = [lambda n=n: _intrinsic(b, n, _PAIR, mask, value, at, clamp) for n in names]
    _switch_on_mode(b, mode, ways)


@_define("accnp_vote.sync", _PAIR, I32, I32, I1)
def _vote(b: ir.IRBuilder, mask: ir.Value, mode: ir.Value, predicate: ir.Value) -> None:
    def way(kind: str) -> ir.Value:
        many = kind == "ballot"
        name = f"llvm.nvvm.vote.{kind}.sync"
        vote = _intrinsic(b, name, I32 if many else I1, mask, predicate)
        return b.insert_value(ir.Constant(_PAIR, None), vote, 0 if many else 1)

    _switch_on_mode(b, mode, [lambda k=k: way(k) for k in _VOTES])


for _width in (I32, I64):

    @_define(f"accnp_match.all.sync.i{_width.width}", _PAIR, I32, _width)
    def _match(b: ir.IRBuilder, mask: ir.Value, value: ir.Value) -> None:
        b.ret(_intrinsic(b, f"llvm.nvvm.match.all.sync.{value.type}p", _PAIR, mask, value))


# --- atomic operations ---


def _atomics() -> None:
    for name, kind in (("float", F32), ("double", F64)):
        _exchange(f"___numba_atomic_{name}_sub", "fsub", kind)
        for what, less in (("max", "<"), ("min", ">")):
            _extreme(f"___numba_atomic_{name}_{what}", kind, less, False)
            _extreme(f"___numba_atomic_{name}_nan{what}", kind, less, True)
    for what in ("inc", "dec"):
        _exchange(f"___numba_atomic_u64_{what}", f"u{what}_wrap", I64)


def _exchange(name: str, operation: str, kind: ir.Type) -> None:
    @_define(name, kind, kind.as_pointer(), kind)
    def body(b: ir.IRBuilder, place: ir.Value, value: ir.Value) -> None:
        b.ret(b.atomic_rmw(operation, place, value, "monotonic"))


def _extreme(name: str, kind: ir.Type, less: str, missing: bool) -> None:
    """The larger (smaller) number stays in a place; a nan there stays, and one that comes is left
    out, unless a nan is a number that is `missing`."""

    @_define(name, kind, kind.as_pointer(), kind)
    def body(b: ir.IRBuilder, place: ir.Value, value: ir.Value) -> None:
        begin, look, change, end = b.block, *[b.append_basic_block() for _ in range(3)]
        width = I32 if kind == F32 else I64
        words = b.bitcast(place, width.as_pointer())
        first = b.load_atomic(words, "monotonic", width.width // 8)
        b.branch(look)
        b.position_at_end(look)
        old = b.phi(width)
        old.add_incoming(first, begin)
        number = b.bitcast(old, kind)
        if missing:
            ordered = b.fcmp_unordered(less, number, value)
            replaces = b.and_(ordered, b.fcmp_ordered("ord", value, value))
        else:
            replaces = b.fcmp_ordered(less, number, value)
        b.cbranch(replaces, change, end)
        b.position_at_end(change)
        word = b.bitcast(value, width)
        pair = b.cmpxchg(words, old, word, "monotonic", "monotonic")
        old.add_incoming(b.extract_value(pair, 0), change)
        b.cbranch(b.extract_value(pair, 1), end, look)
        b.position_at_end(end)
        b.ret(number)


_atomics()

# --- numbers ---


def _exponent_mask(x: V) -> int:
    return 0xFF if x.single else 0x7FF


def _scale(x: V, power: V) -> V:
    """Return x * 2^power, rounded once."""
    if x.single:
        power = where(power > 300, 300, where(power < -300, -300, power))
        return (x.to(F64) * unbits((power.to(I64) + 1023) << 52)).to(F32)
    # Steps of 2^1023 up; down, of such a size that only the last product rounds.
    for _ in range(2):
        up, down = power > 1023, power < -1022
        x = where(up, x * 2.0**1023, where(down, x * 2.0**-969, x))
        power = where(up, power - 1023, where(down, power + 969, power))
    power = where(power > 1023, 1023, where(power < -1022, -1022, power))
    return x * unbits((power.to(I64) + 1023) << 52)


def _split_exponent(x: V, place: V) -> V:
    """Return m, and store n, with x = m 2^n and 1/2 <= |m| < 1."""
    mantissa, mask = MANT[x.single], _exponent_mask(x)
    bias = mask >> 1
    tiny = fabs(x) < 2.0 ** (1 - bias)
    wide = bits(where(tiny, x * 2.0**54, x))
    biased_exponent = wide.lshr(mantissa) & mask
    plain = x.eq(0.0) | biased_exponent.eq(mask)
    exponent = where(
        plain, 0, biased_exponent - where(tiny, biased_exponent.const(bias + 53), bias - 1)
    )
    x.b.store(exponent.to(I32).v, place.v)
    half = (wide & ~(mask << mantissa)) | ((bias - 1) << mantissa)
    return where(plain, x, unbits(half))


def _modf(x: V, place: V) -> V:
    """Return the fractional part of x, and store the integral part."""
    whole = call("llvm.trunc", x)
    x.b.store(whole.v, place.v)
    return copysign(where(fabs(x).eq(float("inf")), 0.0, x - whole), x)


def _hypotenuse(x: V, y: V) -> V:
    """Return sqrt(x^2 + y^2); infinite if one of them is."""
    if x.single:
        length = sqrt(x.to(F64) * x.to(F64) + y.to(F64) * y.to(F64)).to(F32)
    else:
        a, c = fabs(x), fabs(y)
        large, small = where(a > c, a, c), where(a > c, c, a)
        part = small / large
        length = where(large.eq(0.0), large, large * sqrt(part * part + 1.0))
    infinite = fabs(x).eq(float("inf")) | fabs(y).eq(float("inf"))
    return where(infinite, float("inf"), length)


def _first_set(x: V) -> V:
    """Return the position of the lowest bit that is set, counted from 1; 0 if there is none."""
    kind = ir.FunctionType(x.type, [x.type, I1])
    function = x.b.module.declare_intrinsic("llvm.cttz", [x.type], kind)
    zeros = V(x.b, x.b.call(function, [x.v, ir.Constant(I1, 0)]))
    return where(x.eq(0), 0, zeros + 1).to(I32)


def _round_to_int64(x: V) -> V:
    return rint(x).to(I64)


def _return_body(form: _Form) -> Body:
    def body(b: ir.IRBuilder, *arguments: ir.Value) -> None:
        b.ret(form(*[V(b, x) for x in arguments]).v)

    return body


_INF = float("inf")
_formula("__nv_isnanf", "__nv_isnand", I32, isnan)
_formula("__nv_isinff", "__nv_isinfd", I32, lambda x: fabs(x).eq(_INF))
_formula("__nv_finitef", "__nv_isfinited", I32, lambda x: fabs(x) < _INF)
_formula("__nv_signbitf", "__nv_signbitd", I32, lambda x: bits(x) < 0)
_formula("__nv_llrintf", "__nv_llrint", I64, _round_to_int64)
for _own in ("__nv_", "numba_"):  # the latter are what Numba calls on a processor
    _formula(f"{_own}ldexpf", f"{_own}ldexp", None, _scale, I32)
    _formula(f"{_own}frexpf", f"{_own}frexp", None, _split_exponent, I32.as_pointer())
for _own in ("__nv_", ""):
    _formula(f"{_own}hypotf", f"{_own}hypot", None, _hypotenuse, None)
_define("__nv_modff", F32, F32, F32.as_pointer())(_return_body(_modf))
_define("__nv_modf", F64, F64, F64.as_pointer())(_return_body(_modf))
for _name, _kind in (("", I32), ("ll", I64)):
    _define(f"__nv_brev{_name}", _kind, _kind)(_return_body(lambda x: call("llvm.bitreverse", x)))
    _define(f"__nv_ffs{_name}", I32, _kind)(_return_body(_first_set))


# --- by the units, where a kernel is fast ---


def _power(x: V, y: V) -> V:
    return ex2(lg2(x) * y)


def _quotient(x: V, y: V) -> V:
    return x * rcp(y)


def _pair(b: ir.IRBuilder, x: ir.Value, first: ir.Value, second: ir.Value) -> None:
    b.store(FAST["sin"](V(b, x)).v, first)
    b.store(FAST["cos"](V(b, x)).v, second)
    b.ret_void()


for _fast in ("exp", "log", "log2", "log10", "sin", "cos", "tan"):
    _define(f"__nv_fast_{_fast}f", F32, F32)(_return_body(FAST[_fast]))
_define("__nv_fast_exp10f", F32, F32)(_return_body(lambda x: ex2(x * 3.3219280948873623)))
_define("__nv_fast_powf", F32, F32, F32)(_return_body(_power))
_define("__nv_fast_fdividef", F32, F32, F32)(_return_body(_quotient))
_define("__nv_fast_sincosf", ir.VoidType(), F32, F32.as_pointer(), F32.as_pointer())(_pair)

# --- max and min ---


def _are_numbers(*kinds: types.Type) -> bool:
    return all(isinstance(k, types.Number | types.Boolean) for k in kinds)


_Chosen = Callable[[float, float], float] | None
_Chosen3 = Callable[[float, float, float], float] | None


def _extreme_of(
    which: Callable[[float, float], float], better: Callable[[float, float], bool]
) -> None:
    """Define `max` or `min` of two and of three numbers for Numba's GPU target."""

    def of_two(x: types.Type, y: types.Type) -> _Chosen:
        return (lambda x, y: y if better(y, x) else x) if _are_numbers(x, y) else None

    def of_three(x: types.Type, y: types.Type, z: types.Type) -> _Chosen3:
        return (lambda x, y, z: which(which(x, y), z)) if _are_numbers(x, y, z) else None

    for form in (of_two, of_three):
        form.__annotations__ = {}  # Numba compares parameters to those of the function returned
        overload(which, target="cuda")(form)


_extreme_of(max, operator.gt)
_extreme_of(min, operator.lt)
