"""LLVM IR for reductions of contiguous memory, and for searches in it.

The functions get an IR builder ``b`` and a pointer ``p`` to ``n`` elements of LLVM type ``t``. They
emit code and return the LLVM value of the result. The intrinsics in `intrinsics/memory.py` and
`llvm/lower.py` call them; `across.py` uses the same functions for reductions over rows.

The order of a reduction depends neither on the vector width of the machine nor on fusion. Element j
is combined with lane j mod 32, or mod 64 for a maximum or minimum, whose steps have a longer
latency. Then the upper half of the lanes is combined with the lower half until one lane is left.
The bits are the same on every machine, since LLVM splits the vectors without reordering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from accnp.compiler.llvm.scalars.ir import F32, F64, I32, I64, V, below, is_float, masked_load
from accnp.compiler.llvm.scalars.products import (
    constant,
    exponent_type,
    is_not_normal,
    multiply,
    scale_by_power_of_two,
    split_exponents,
)

LANES = 32
SEARCH_LANES = 64  # elements that a search tests in one step; the results are the bits of an i64
EmitCombine = Callable[[V, V], V]  # emits the code that combines two values
State = Sequence[ir.Value]
Step = Callable[[State, ir.Value], State]  # (state, vector of elements) -> new state


def _select_extreme(op: str, signed: bool) -> EmitCombine:
    """Return the combining function of a maximum (`op` is ">") or minimum ("<"): of equal
    numbers it returns the first, and NaN if there is one."""

    def combine(x: V, y: V) -> V:
        b = x.b
        if is_float(x.v.type.element if isinstance(x.v.type, ir.VectorType) else x.v.type):
            take = b.or_(b.fcmp_ordered(op, y.v, x.v), b.fcmp_unordered("uno", y.v, y.v))
        else:
            take = (b.icmp_signed if signed else b.icmp_unsigned)(op, y.v, x.v)
        return V(b, b.select(take, y.v, x.v))

    return combine


def _emit_instruction(fop: str | None, iop: str) -> EmitCombine:
    """Return the combining function that is one instruction: the builder's method `fop` for
    floats, or `iop`."""

    def combine(x: V, y: V) -> V:
        t = x.v.type.element if isinstance(x.v.type, ir.VectorType) else x.v.type
        if is_float(t):
            assert fop is not None
            return V(x.b, getattr(x.b, fop)(x.v, y.v, flags=("afn",)))
        return V(x.b, getattr(x.b, iop)(x.v, y.v))

    return combine


class Reduction(NamedTuple):
    """The code that combines two numbers of a reduction, and attributes of its `ir.op.Combine`."""

    combine: EmitCombine
    identity: Callable[[np.dtype], float]
    order: str  # ">" or "<" for a maximum or minimum, which do not use `combine`; otherwise ""
    lanes: int


REDUCTIONS: dict[str, Reduction] = {}  # filled by `compiler/llvm/intrinsics/memory.py`
# The functions of reductions that are one instruction.
INSTRUCTIONS: dict[str, EmitCombine] = {
    "add": _emit_instruction("fadd", "add"),
    "mul": _emit_instruction("fmul", "mul"),
    "and": _emit_instruction(None, "and_"),
    "or": _emit_instruction(None, "or_"),
    "xor": _emit_instruction(None, "xor"),
}


def combine_and_identity(name: str, t: ir.Type, signed: bool) -> tuple[EmitCombine, float]:
    """Return the combining function and the identity element of a reduction for an element type."""
    reduction = REDUCTIONS[name]
    identity = reduction.identity(_dtype_of(t, signed))
    if is_float(t):
        identity = float(identity)
    if reduction.order:
        return _select_extreme(reduction.order, signed), identity
    return reduction.combine, identity


def _dtype_of(t: ir.Type, signed: bool) -> np.dtype:
    if is_float(t):
        return np.dtype(f"f{_size_in_bytes(t)}")
    return np.dtype(f"{'i' if signed else 'u'}{_size_in_bytes(t)}")


def block_reduce(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, t: ir.Type, name: str, signed: bool
) -> ir.Value:
    """Emit the reduction `name` of n real elements of type t at p, and return its result."""
    combine, identity = combine_and_identity(name, t, signed)
    count = REDUCTIONS[name].lanes
    start = ir.Constant(ir.VectorType(t, count), [ir.Constant(t, identity)] * count)
    if (order := REDUCTIONS[name].order) and is_float(t):
        return _float_extreme(b, p, n, start, order, combine)
    if name == "prod" and is_float(t):
        return _float_product(b, p, n, start, combine)
    return _reduce_block(b, p, n, start, combine)


def block_wide_sum(b: ir.IRBuilder, p: ir.Value, n: ir.Value) -> ir.Value:
    """Emit the float64 sum of n float32 elements at p, which are converted as they are loaded."""
    combine, _ = combine_and_identity("sum", F64, True)
    wide, narrow = (ir.VectorType(t, LANES) for t in (F64, F32))
    start, pad = (ir.Constant(t, [ir.Constant(t.element, 0.0)] * LANES) for t in (wide, narrow))
    (acc,) = _loop_over_lanes(
        b, p, n, pad, [start], lambda s, x: [combine(V(b, s[0]), V(b, b.fpext(x, wide))).v]
    )
    return _combined_lanes(V(b, acc), combine)


def _reduce_block(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, start: ir.Value, combine: EmitCombine
) -> ir.Value:
    """Emit a reduction; `start` has the identity element in each lane."""
    (acc,) = _loop_over_lanes(
        b, p, n, start, [start], lambda s, x: [combine(V(b, s[0]), V(b, x)).v]
    )
    return _combined_lanes(V(b, acc), combine)


def _float_extreme(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, start: ir.Value, op: str, combine: EmitCombine
) -> ir.Value:
    """Emit a maximum or minimum of floats.

    The first loop ignores NaN in the result, but records whether there is one. Only then, a second
    loop computes the reduction with `combine`, which propagates NaN. One comparison finds the NaNs
    of two vectors, and is not part of the dependency chain of a lane. For 1.5e6 float32 elements in
    cache, one thread takes 0.067 ms, and 0.101 ms if each step checks for NaN (AVX-512,
    2026-11-22; decision 0014).
    """
    count = start.type.count
    part = 64 // _size_in_bytes(start.type.element)
    mask_type = ir.VectorType(ir.IntType(1), part)
    clear = [ir.Constant(mask_type, [0] * part)] * (count // part // 2)
    undef = ir.Constant(start.type, ir.Undefined)

    def larger(x: V, y: V) -> V:
        return V(b, b.select(b.fcmp_ordered(op, y.v, x.v), y.v, x.v))

    def step(state: State, x: ir.Value) -> State:
        parts = [
            b.shuffle_vector(
                x, undef, ir.Constant(ir.VectorType(I32, part), list(range(k, k + part)))
            )
            for k in range(0, count, part)
        ]
        nans = [b.fcmp_unordered("uno", u, v) for u, v in zip(parts[::2], parts[1::2], strict=True)]
        nans = [b.or_(u, v) for u, v in zip(state[1:], nans, strict=True)]
        return [larger(V(b, state[0]), V(b, x)).v, *nans]

    acc, *nans = _loop_over_lanes(b, p, n, start, [start, *clear], step)
    result = _combined_lanes(V(b, acc), larger)
    has_nan = nans[0]
    for mask in nans[1:]:
        has_nan = b.or_(has_nan, mask)
    bits = b.bitcast(has_nan, ir.IntType(part))
    is_right = b.icmp_unsigned("==", bits, ir.Constant(bits.type, 0))
    return _select_or_compute(b, is_right, result, lambda: _reduce_block(b, p, n, start, combine))


def _select_or_compute(
    b: ir.IRBuilder, is_right: ir.Value, value: ir.Value, compute: Callable[[], ir.Value]
) -> ir.Value:
    """Emit a branch: `value` if `is_right` is true, otherwise the value that `compute` emits."""
    return _select_or_compute_all(b, is_right, [value], lambda: [compute()])[0]


def _select_or_compute_all(
    b: ir.IRBuilder,
    is_right: ir.Value,
    values: Sequence[ir.Value],
    compute: Callable[[], Sequence[ir.Value]],
) -> Sequence[ir.Value]:
    """`_select_or_compute` for several values."""
    before = b.block
    again, end = (b.function.append_basic_block(s) for s in ("again", "known"))
    b.cbranch(is_right, end, again)
    b.position_at_end(again)
    computed = compute()
    after = b.block
    b.branch(end)
    b.position_at_end(end)
    out = [b.phi(x.type) for x in values]
    for phi, x, y in zip(out, values, computed, strict=True):
        phi.add_incoming(x, before)
        phi.add_incoming(y, after)
    return out


def _float_product(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, start: ir.Value, combine: EmitCombine
) -> ir.Value:
    """Emit a product of floats.

    A lane may overflow or underflow although the whole product does not. If the product by lanes is
    not a normal number, it is therefore computed again with separate exponents, except where its
    value 0 is known to be right.
    """
    product = _reduce_block(b, p, n, start, combine)
    t = product.type
    is_right = b.not_(is_not_normal(b, [product]))
    is_zero = V(b, product).eq(0.0).v

    def zero_or_scaled() -> ir.Value:
        """A product of 0 is right if an element is 0."""
        place = find(b, p, n, ir.Constant(t, 0.0), t)
        has_zero = b.icmp_signed("<", place, n)
        return _select_or_compute(b, b.and_(is_zero, has_zero), product, shrunk_or_scaled)

    def shrunk_or_scaled() -> ir.Value:
        """A product of 0 is right if no element is larger than 1 in magnitude: partial products
        then never grow, in any order."""
        squares = _loop_over_lanes(
            b, p, n, start, [start], lambda s, x: [larger(s[0], b.fmul(x, x))]
        )[0]
        largest = _combined_lanes(V(b, squares), lambda x, y: V(b, larger(x.v, y.v)))
        never_grows = V(b, largest).eq(1.0).v
        return _select_or_compute(
            b,
            b.and_(is_zero, never_grows),
            product,
            lambda: _scaled_product(b, p, n, start, 1)[0],
        )

    def larger(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.select(b.fcmp_ordered(">", y, x), y, x)

    return _select_or_compute(b, is_right, product, zero_or_scaled)


def _scaled_product(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, pad: ir.Value, parts: int
) -> Sequence[ir.Value]:
    """Emit a product with separate exponents: that of the mantissas, times 2 to the sum of the
    exponents.

    Each step normalizes the mantissas. A subnormal result is rounded once more. Complex numbers
    have two `parts`, which alternate in memory and in `pad`.
    """
    t = ir.VectorType(pad.type.element, LANES)
    exponents = exponent_type(t)
    one = [constant(t, 1.0), constant(t, 0.0)][:parts]

    def step(state: State, x: ir.Value) -> State:
        *acc, total = state
        mantissas, first = split_exponents(
            b, [_strided_elements(b, x, k, parts) for k in range(parts)]
        )
        acc, second = split_exponents(b, multiply(b, acc, mantissas))
        return [*acc, b.add(total, b.add(first, second))]

    *acc, total = _loop_over_lanes(b, p, n, pad, [*one, constant(exponents, 0)], step)
    while acc[0].type.count > 1:  # 32 numbers of a few bits cannot overflow
        half = acc[0].type.count // 2
        lower, upper = (
            [_adjacent_elements(b, x, k, half) for x in (*acc, total)] for k in (0, half)
        )
        acc, total = multiply(b, lower[:-1], upper[:-1]), b.add(lower[-1], upper[-1])
    power = V(b, _lane(b, total, 0))
    return [scale_by_power_of_two(V(b, _lane(b, x, 0)), power).v for x in acc]


def _strided_elements(b: ir.IRBuilder, x: ir.Value, first: int, step: int) -> ir.Value:
    """Emit the vector of the elements `first`, `first + step`, and so on."""
    if step == 1:
        return x
    mask = ir.Constant(
        ir.VectorType(I32, x.type.count // step), list(range(first, x.type.count, step))
    )
    return b.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), mask)


def _adjacent_elements(b: ir.IRBuilder, x: ir.Value, first: int, count: int) -> ir.Value:
    """Emit the vector of `count` adjacent elements from `first` on."""
    mask = ir.Constant(ir.VectorType(I32, count), list(range(first, first + count)))
    return b.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), mask)


def _lane(b: ir.IRBuilder, x: ir.Value, k: int) -> ir.Value:
    return b.extract_element(x, ir.Constant(I32, k))


def block_reduce_complex(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, t: ir.Type, name: str
) -> tuple[ir.Value, ir.Value]:
    """Emit the sum or product of n complex numbers, and return its real and imaginary parts.

    In memory, real and imaginary parts of type t alternate.
    """
    if name == "sum":
        combine, one = _emit_instruction("fadd", "add"), 0.0
    else:
        combine, one = _complex_product, 1.0
    start = [ir.Constant(t, one), ir.Constant(t, 0.0)] * LANES
    pad = ir.Constant(ir.VectorType(t, 2 * LANES), start)
    count = b.shl(n, ir.Constant(I64, 1))
    (acc,) = _loop_over_lanes(
        b, p, count, pad, [pad], lambda s, x: [combine(V(b, s[0]), V(b, x)).v]
    )
    pair = _combine_halves(V(b, acc), 2, combine).v
    result: Sequence[ir.Value] = [_lane(b, pair, k) for k in (0, 1)]
    if name == "prod":
        is_right = b.not_(is_not_normal(b, result))
        result = _select_or_compute_all(
            b, is_right, result, lambda: _scaled_product(b, p, count, pad, 2)
        )
    real, imag = result
    return real, imag


def _complex_product(x: V, y: V) -> V:
    """Emit the products of complex numbers in vectors with alternating real and imaginary parts."""
    b, count = x.b, x.v.type.count
    pairs = range(0, count, 2)

    def pick(v: ir.Value, even: int, odd: int) -> ir.Value:
        order = [k + d for k in pairs for d in (even, odd)]
        mask = ir.Constant(ir.VectorType(I32, count), order)
        return b.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), mask)

    t = x.v.type.element
    signs = ir.Constant(x.v.type, [ir.Constant(t, -1.0), ir.Constant(t, 1.0)] * (count // 2))
    keep = ("afn",)
    direct = b.fmul(x.v, pick(y.v, 0, 0), flags=keep)
    crossed = b.fmul(b.fmul(pick(x.v, 1, 0), pick(y.v, 1, 1), flags=keep), signs, flags=keep)
    return V(b, b.fadd(direct, crossed, flags=keep))


def _combined_lanes(acc: V, combine: EmitCombine) -> ir.Value:
    """Emit the value of all lanes of a vector, combined by halves."""
    return _lane(acc.b, _combine_halves(acc, 1, combine).v, 0)


def _combine_halves(acc: V, last: int, combine: EmitCombine) -> V:
    """Combine the lower and upper halves of a vector until it has `last` elements."""
    b, width = acc.b, acc.v.type.count
    while width > last:
        width //= 2
        parts: list[V] = []
        for first in (0, width):
            mask = ir.Constant(ir.VectorType(I32, width), list(range(first, first + width)))
            undef = ir.Constant(acc.v.type, ir.Undefined)
            parts.append(V(b, b.shuffle_vector(acc.v, undef, mask)))
        acc = combine(*parts)
    return acc


def _size_in_bytes(t: ir.Type) -> int:
    """Return the size of an element; bools take one byte."""
    if isinstance(t, ir.IntType):
        return max(1, t.width // 8)
    return 4 if isinstance(t, ir.FloatType) else 8


def _element_pointer(b: ir.IRBuilder, p: ir.Value, k: ir.Value, t: ir.Type) -> ir.Value:
    return b.gep(b.bitcast(p, t.as_pointer()), [k])


def _load_vector(
    b: ir.IRBuilder, p: ir.Value, k: ir.Value, element: ir.Type, t: ir.VectorType
) -> ir.Value:
    v = b.load(b.bitcast(_element_pointer(b, p, k, element), t.as_pointer()))
    v.align = _size_in_bytes(element)
    return v


def _loop_over_lanes(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, pad: ir.Value, start: State, step: Step
) -> State:
    """Emit a loop over the n elements at p, and return its final state.

    The state starts as `start`. `step` updates it for each full vector of elements, then for the
    remaining elements, if any: their vector has the values of `pad` in its other lanes.
    """
    lanes, t = pad.type, pad.type.element
    fn, size, zero = b.function, pad.type.count, ir.Constant(I64, 0)
    loop, tail, fill, end = (fn.append_basic_block(s) for s in ("block", "tail", "fill", "end"))
    whole = b.and_(n, ir.Constant(I64, -size))
    rest = b.sub(n, whole)
    before = b.block
    b.cbranch(b.icmp_signed(">", whole, zero), loop, tail)

    b.position_at_end(loop)
    i, acc = b.phi(I64), [b.phi(x.type) for x in start]
    new = step(acc, _load_vector(b, p, i, t, lanes))
    i_next = b.add(i, ir.Constant(I64, size))
    b.cbranch(b.icmp_signed("<", i_next, whole), loop, tail)

    b.position_at_end(tail)
    mid = [b.phi(x.type) for x in start]
    b.cbranch(b.icmp_signed(">", rest, zero), fill, end)

    b.position_at_end(fill)
    place = b.bitcast(_element_pointer(b, p, whole, t), lanes.as_pointer())
    padded = step(mid, masked_load(b, place, lanes, _size_in_bytes(t), below(b, rest, size), pad))
    b.branch(end)

    b.position_at_end(end)
    out = [b.phi(x.type) for x in start]
    for phi, incoming in (
        (i, ((zero, before), (i_next, loop))),
        *[(x, ((s, before), (y, loop))) for x, s, y in zip(acc, start, new, strict=True)],
        *[(x, ((s, before), (y, loop))) for x, s, y in zip(mid, start, new, strict=True)],
        *[(x, ((s, tail), (y, fill))) for x, s, y in zip(out, mid, padded, strict=True)],
    ):
        for value, block in incoming:
            phi.add_incoming(value, block)
    return out


def find(b: ir.IRBuilder, p: ir.Value, n: ir.Value, value: ir.Value, t: ir.Type) -> ir.Value:
    """Emit the index of the first of n elements of type t at p that equals a value, or n if there
    is none. NaN equals NaN."""
    undef = ir.Constant(ir.VectorType(t, SEARCH_LANES), ir.Undefined)
    first = b.insert_element(undef, value, ir.Constant(I32, 0))
    splat = b.shuffle_vector(first, undef, ir.Constant(ir.VectorType(I32, SEARCH_LANES), None))

    def test(x: ir.Value) -> ir.Value:
        if not is_float(t):
            return b.icmp_signed("==", x, splat)
        both_nan = b.and_(b.fcmp_unordered("uno", x, x), b.fcmp_unordered("uno", splat, splat))
        return b.or_(b.fcmp_ordered("==", x, splat), both_nan)

    return _find_first(b, p, n, t, test)


def find_not_normal(b: ir.IRBuilder, p: ir.Value, n: ir.Value, t: ir.Type) -> ir.Value:
    """Emit the index of the first of n products at p that is not a normal number, or n."""
    return _find_first(b, p, n, t, lambda x: is_not_normal(b, [x]))


def _find_first(
    b: ir.IRBuilder, p: ir.Value, n: ir.Value, t: ir.Type, test: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Emit the index of the first of n elements for which `test` is true, or n.

    `test` emits the test of a vector of elements, and returns a mask.
    """
    vector, zero = ir.VectorType(t, SEARCH_LANES), ir.Constant(I64, 0)
    undef = ir.Constant(vector, ir.Undefined)
    loop, again, tail, fill, end = (
        b.function.append_basic_block(s) for s in ("search", "again", "tail", "fill", "found")
    )
    whole = b.and_(n, ir.Constant(I64, -SEARCH_LANES))
    before = b.block
    b.cbranch(b.icmp_signed(">", whole, zero), loop, tail)
    b.position_at_end(loop)
    i = b.phi(I64)
    i.add_incoming(zero, before)
    bits = b.bitcast(test(_load_vector(b, p, i, t, vector)), I64)
    b.cbranch(b.icmp_unsigned("==", bits, zero), again, end)
    b.position_at_end(again)
    following = b.add(i, ir.Constant(I64, SEARCH_LANES))
    i.add_incoming(following, again)
    b.cbranch(b.icmp_signed("<", following, whole), loop, tail)
    b.position_at_end(tail)
    rest = b.sub(n, whole)
    b.cbranch(b.icmp_signed(">", rest, zero), fill, end)
    b.position_at_end(fill)
    place = b.bitcast(_element_pointer(b, p, whole, t), vector.as_pointer())
    mask = below(b, rest, SEARCH_LANES)
    rest_bits = b.bitcast(
        b.and_(test(masked_load(b, place, vector, _size_in_bytes(t), mask, undef)), mask), I64
    )
    b.branch(end)
    b.position_at_end(end)
    start, hits = b.phi(I64), b.phi(I64)
    for block, first, block_hits in ((loop, i, bits), (tail, n, zero), (fill, whole, rest_bits)):
        start.add_incoming(first, block)
        hits.add_incoming(block_hits, block)
    place = b.add(start, b.cttz(hits, ir.Constant(ir.IntType(1), 0)))
    return b.select(b.icmp_unsigned("==", hits, zero), n, place)
