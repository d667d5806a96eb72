"""Rules of elementwise functions that consist of several ops.

Operands are nodes of one dtype that have been broadcast. The rules record the ops that JAX records,
so that jaxprs and special values agree. Where `state.named` is false, no jaxpr is being made, and a
more accurate or faster formula may be used.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, broadcast_nodes, cast, promote, to_shape, wrap
from accnp.api.jit.named_calls import named_rule
from accnp.errors import UnsupportedDtypeError
from accnp.ir.node import Node, literal, refuse_float0
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.primitives.kinds import BOOL, broadcast_to, dtype_kind, full, wrong_dtype

INF = math.inf


def kind(x: Node) -> str:
    """Return "b", "i", "u", "f" or "c"."""
    return dtype_kind(x.aval.dtype)


def like(x: Node, value: Any) -> Node:
    """Return a rank-0 constant of the dtype of x, weak if x is, so that results keep the flag."""
    a = x.aval
    return literal(_FROM[dtype_kind(a.dtype)](value), a.dtype, a.weak_type)


def strong(x: Node, value: Any) -> Node:
    """Return a rank-0 constant of the dtype of x that is not weak, so that results are strong."""
    return literal(_FROM[kind(x)](value), x.aval.dtype, False)


def constant(x: Node, value: Any) -> Node:
    """Return a constant as JAX's formulas have it: weak for scalars, strong for arrays."""
    return strong(x, value) if x.aval.ndim else like(x, value)


_FROM = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def filled(x: Node, value: Any, dtype: Any = None) -> Node:
    """Return one value in the shape of x, in its dtype (and as weak as x) or another."""
    if dtype is not None:
        return full(x.aval.shape, value, np.dtype(dtype))
    return broadcast_to(like(x, value), x.aval.shape)


def select(which: Node, yes: Node, no: Node) -> Node:
    """Return `yes` where `which` holds, `no` elsewhere."""
    return o.select_n(which, no, yes)


def choose(which: Node, yes: Node, no: Node) -> Node:
    """Like `select`, for operands of any dtypes, and of shapes that broadcast."""
    a, b = promote("where", wrap(yes), wrap(no))
    test, a, b = broadcast_nodes("where", [as_bool(which), a, b], any_ranks=True)
    shape = test.aval.shape
    if state.named and shape:  # as in JAX; kernels accept scalars
        a, b = to_shape(a, shape), to_shape(b, shape)
    if (not shape and (a.aval.ndim or b.aval.ndim)) or a.aval.shape == b.aval.shape == ():
        return o.select_n(test, b, a)
    wide = [v if v.aval.shape == () else to_shape(v, shape) for v in (b, a)]
    return o.select_n(test, *wide)


# The call that JAX shows in jaxprs for jnp.where.
where_ = named_rule(choose, "_where")


def apply_to_parts(x: Node, rule: Any) -> Node:
    """Apply a rule to the real and the imaginary part of a complex node, or to a real node."""
    if kind(x) != "c":
        return rule(x)
    return o.complex(rule(o.real(x)), rule(o.imag(x)))


# --- division -------------------------------------------------------------------------------------


def floor_divide(a: Node, b: Node) -> Node:
    k = kind(a)
    if k == "c":
        raise UnsupportedDtypeError(
            "floor_divide: complex numbers have no order; got complex operands; use jnp.divide"
        )
    if k == "u":
        return o.div(a, b)
    if k == "i":
        q = o.div(a, b)
        fix = o.and_(o.ne(o.sign(a), o.sign(b)), o.ne(o.rem(a, b), like(a, 0)))
        return where_(fix, o.sub(q, like(q, 1)), q)
    return float_divmod(a, b)[0]


def float_divmod(a: Node, b: Node) -> tuple[Node, Node]:
    """Return the quotient rounded down, and the remainder with the sign of b.

    The quotient of zeros and infinities is floor(a / b), as the array API standard defines it (JAX
    returns nan for inf // 2, -1 for -1 // inf and 0 for -0 // 2).
    """
    m = o.rem(a, b)
    zero = o.eq(b, like(b, 0))
    q = o.div(where_(zero, a, o.sub(a, m)), b)
    wrong = o.and_(o.ne(m, like(m, 0)), o.ne(o.sign(b), o.sign(m)))
    m = select(wrong, o.add(m, b), m)
    q = o.round(select(wrong, o.sub(q, like(q, 1)), q), rounding_method=0)
    odd = o.or_(o.eq(a, like(a, 0)), o.not_(o.and_(o.is_finite(a), o.is_finite(b))))
    return select(odd, o.floor(o.div(a, b)), q), signed_zero(m, b)


def signed_zero(m: Node, b: Node) -> Node:
    """Return m, with the sign of b where m is 0. The additions do not affect derivatives."""
    zero = like(m, 0)
    return select(o.lt(b, zero), o.neg(o.add(o.neg(m), zero)), o.add(m, zero))


def _safe_divisor(b: Node) -> Node:
    return where_(o.eq(b, like(b, 0)), filled(b, 1), b) if kind(b) in "iu" else b


def remainder(a: Node, b: Node) -> Node:
    b = _safe_divisor(b)
    m = o.rem(a, b)
    zero = like(m, 0)
    some = o.ne(m, zero)
    wrong = o.and_(o.ne(o.lt(m, zero), o.lt(b, zero)), some)
    m = select(wrong, o.add(m, b), m)
    return signed_zero(m, b) if kind(a) == "f" else m


def fmod(a: Node, b: Node) -> Node:
    return o.rem(a, _safe_divisor(b))


def divmod_(a: Node, b: Node) -> tuple[Node, Node]:
    if kind(a) == "f":
        return float_divmod(a, b)
    return floor_divide(a, b), remainder(a, b)


# --- powers and logarithms ------------------------------------------------------------------------


def integer_power(a: Node, b: Node) -> Node:
    """Raise integers to integer powers by six squarings, enough for all results of 64 bits."""
    zero = like(a, 0)
    both = b if a.aval.weak_type else a  # weak if the result is
    out = where_(o.and_(o.eq(a, zero), o.ne(b, like(b, 0))), constant(both, 0), constant(both, 1))
    unit = like(b, 1)
    for _ in range(6):
        out = where_(o.and_(b, unit), o.mul(out, a), out)
        a, b = o.mul(a, a), o.shift_right_logical(b, unit)
    return out


def log2(x: Node) -> Node:
    if kind(x) == "f" and not state.named:
        # rounds once, where the quotient of logarithms rounds three times
        return cast(o.log_base(x, base=2), x.aval.dtype)
    return apply_to_parts(o.log(x), lambda y: o.div(y, o.log(full((), 2, y.aval.dtype))))


def log10(x: Node) -> Node:
    if kind(x) == "f" and not state.named:
        return cast(o.log_base(x, base=10), x.aval.dtype)
    return apply_to_parts(o.log(x), lambda y: o.mul(y, full((), 1 / math.log(10), y.aval.dtype)))


def atan2(a: Node, b: Node) -> Node:
    if kind(a) != "c":
        return o.atan2(a, b)
    unit = o.div(o.add(b, o.mul(like(a, 1j), a)), o.sqrt(o.add(o.square(a), o.square(b))))
    return o.mul(like(a, -1j), o.log(unit))


def bitwise_count(x: Node) -> Node:
    if kind(x) == "b":
        return cast(x, np.dtype(np.uint8))
    if kind(x) == "c":
        raise wrong_dtype("bitwise_count", x.aval.dtype, "biu")
    return cast(o.population_count(x if kind(x) == "u" else o.abs(x)), np.dtype(np.uint8))


def hypot(a: Node, b: Node) -> Node:
    x, y = o.abs(a), o.abs(b)
    infinite = o.or_(o.eq(x, like(x, INF)), o.eq(y, like(y, INF)))
    top = most = o.max(x, y)
    low = o.min(x, y)
    if not state.named:  # jaxprs show the formula that JAX uses
        # Keep the signs, and select one of two equal numbers: derivatives through abs at 0 or
        # through the mean of both numbers would be wrong in second order.
        first = o.ge(x, y)
        top, low = o.select_n(first, b, a), o.select_n(first, a, b)
    length = most if state.named else o.abs(top)
    zero = o.eq(most, like(most, 0))
    ratio = o.div(low, where_(o.eq(most, like(most, 0)), filled(top, 1), top))
    size = o.mul(length, o.sqrt(o.add(constant(top, 1), o.square(ratio))))
    return where_(infinite, like(size, INF), where_(zero, most, size))


# --- signs, bits, parts ---------------------------------------------------------------------------

_INT_OF = {2: np.int16, 4: np.int32, 8: np.int64}


def positive(x: Node) -> Node:
    refuse_float0("positive", [x.aval])
    return x


def signbit(x: Node) -> Node:
    k = kind(x)
    if k == "i":
        return o.lt(x, strong(x, 0))
    if k in "ub":
        return filled(x, False, BOOL)
    if k == "c":
        raise UnsupportedDtypeError(
            "signbit: complex numbers have no sign; got a complex array; take jnp.real first"
        )
    refuse_float0("signbit", [x.aval])
    ints = np.dtype(_INT_OF[x.aval.dtype.itemsize])
    bits = o.bitcast_convert_type(x, new_dtype=ints)
    last = like(bits, 8 * ints.itemsize - 1)
    return cast(o.shift_right_arithmetic(bits, last), BOOL)


_signbit = named_rule(signbit, "signbit")


def copysign(a: Node, b: Node) -> Node:
    # The result is weak only if both operands are.
    a = a if b.aval.weak_type else cast(a, a.aval.dtype)
    return where_(_signbit(b), o.neg(o.abs(a)), o.abs(a))


def _exp2_int(n: Node, dtype: np.dtype) -> Node:
    """Compute 2**n exactly from its bits, for int32 n in the range of normal numbers."""
    info = np.finfo(dtype) if dtype.kind == "f" else dtypes.finfo(dtype)
    bias, mantissa = int(info.maxexp) - 1, int(info.nmant)
    ints = np.dtype(_INT_OF[dtype.itemsize])
    wide = cast(n, ints)
    bits = o.shift_left(o.add(wide, like(wide, bias)), like(wide, mantissa))
    return o.bitcast_convert_type(bits, new_dtype=dtype)


def scale_by_power(x: Node, n: Node) -> Node:
    """Compute x * 2**n for int32 n, in three factors so that none overflows."""
    bound = int(dtypes.finfo(x.aval.dtype).maxexp) - 2
    n = o.max(o.min(n, like(n, 3 * bound)), like(n, -3 * bound))
    third = o.div(n, like(n, 3))
    rest = o.sub(n, o.add(third, third))
    first = _exp2_int(third, x.aval.dtype)
    return o.mul(o.mul(o.mul(x, first), first), _exp2_int(rest, x.aval.dtype))


def frexp(x: Node) -> tuple[Node, Node]:
    """Return a mantissa in [0.5, 1) and the exponent; x * 2**-exponent is differentiable."""
    dtype = x.aval.dtype
    info = dtypes.finfo(dtype)
    mantissa, bias = int(info.nmant), int(info.maxexp) - 1
    ints = np.dtype(_INT_OF[dtype.itemsize])
    tiny = o.lt(o.abs(x), like(x, float(info.smallest_normal)))
    normal = select(tiny, o.mul(x, like(x, 2.0**mantissa)), x)
    bits = o.bitcast_convert_type(normal, new_dtype=ints)
    raw = o.and_(o.shift_right_arithmetic(bits, like(bits, mantissa)), like(bits, 2 * bias + 1))
    exponent = o.add(cast(raw, np.dtype(np.int32)), literal_int(raw, 1 - bias))
    exponent = o.add(exponent, select(tiny, filled(exponent, -mantissa), filled(exponent, 0)))
    odd = o.or_(o.eq(x, like(x, 0)), o.not_(is_finite(x)))
    exponent = select(odd, filled(exponent, 0), exponent)
    return scale_by_power(x, o.neg(exponent)), exponent


def literal_int(_: Node, value: int) -> Node:
    return full((), value, np.dtype(np.int32))


def modf(x: Node) -> tuple[Node, Node]:
    whole = where_(o.ge(x, like(x, 0)), o.floor(x), o.ceil(x))
    return o.sub(x, whole), whole


def conj(x: Node) -> Node:
    return o.conj(x) if kind(x) == "c" else x


def real(x: Node) -> Node:
    return o.real(x) if kind(x) == "c" else x


def imag(x: Node) -> Node:
    if x.aval.dtype == dtypes.float0:  # as in JAX, unchanged
        return x
    return o.imag(x) if kind(x) == "c" else filled(x, 0)


# --- rounding, classification ---------------------------------------------------------------------


def trunc(x: Node) -> Node:
    if kind(x) in "biu":
        return x
    return where_(o.lt(x, like(x, 0)), o.ceil(x), o.floor(x))


def rounded(op: Any) -> Any:
    """Make a rounding function from an op; integers are returned unchanged."""
    return lambda x: x if kind(x) in "biu" else op(x)


def rint(x: Node) -> Node:
    if kind(x) in "biu":
        return cast(x, dtypes.default_float())
    out = apply_to_parts(x, lambda y: o.round(y, rounding_method=1))
    return cast(out, x.aval.dtype, x.aval.weak_type)


def isnan(x: Node) -> Node:
    return o.ne(x, x)


def _is_exact(x: Node) -> bool:
    """Return whether a dtype has neither infinities nor nan: integers, bools and float0."""
    return kind(x) in "biu" or x.aval.dtype == dtypes.float0


def isinf(x: Node) -> Node:
    if _is_exact(x):
        return filled(x, False, BOOL)
    if kind(x) == "c":
        return o.or_(isinf(o.real(x)), isinf(o.imag(x)))
    return o.eq(o.abs(x), strong(x, INF))


def is_finite(x: Node) -> Node:
    if _is_exact(x):
        return filled(x, True, BOOL)
    if kind(x) == "c":
        return o.and_(o.is_finite(o.real(x)), o.is_finite(o.imag(x)))
    return o.is_finite(x)


def is_infinite_with(sign: float, name: str) -> Any:
    def rule(x: Node) -> Node:
        if kind(x) == "c":
            raise ValueError(
                f"{name}: complex numbers have no sign; got a complex array; take jnp.real first"
            )
        return filled(x, False, BOOL) if _is_exact(x) else o.eq(x, strong(x, sign * INF))

    return rule


# --- comparison, logic ----------------------------------------------------------------------------


def compare(name: str) -> Any:
    """Make a comparison; complex numbers compare by real part, then by imaginary part.

    As in NumPy, comparisons with a NaN in an imaginary part are false.
    """

    def rule(a: Node, b: Node) -> Node:
        op = getattr(o, name)
        if kind(a) != "c":
            return op(a, b)
        (ra, ia), (rb, ib) = ((o.real(x), o.imag(x)) for x in (a, b))
        apart = getattr(o, name[:1] + "t")(ra, rb)
        if not state.named:  # jaxprs show the formula that JAX uses
            apart = o.and_(apart, o.and_(o.eq(ia, ia), o.eq(ib, ib)))
        return select(o.eq(ra, rb), op(ia, ib), apart)

    return rule


def maximum(a: Node, b: Node) -> Node:
    # Also for complex numbers: selection by a comparison would differentiate one of two equal ones.
    return o.max(a, b)


def minimum(a: Node, b: Node) -> Node:
    return o.min(a, b)


def fmax(a: Node, b: Node) -> Node:
    return where_(o.or_(compare("gt")(a, b), o.ne(b, b)), a, b)


def fmin(a: Node, b: Node) -> Node:
    return where_(o.or_(compare("lt")(a, b), o.ne(b, b)), a, b)


def as_bool(x: Node) -> Node:
    """Convert to bool; weak scalars give weak results, weak arrays strong ones."""
    if x.aval.dtype == BOOL:
        return x
    return o.ne(x, full((), 0, x.aval.dtype, x.aval.weak_type and not x.aval.ndim))


def logical(name: str) -> Any:
    return lambda *xs: getattr(o, name)(*map(as_bool, xs))


def shift_right(a: Node, b: Node) -> Node:
    return (o.shift_right_logical if kind(a) == "u" else o.shift_right_arithmetic)(a, b)


def add(a: Node, b: Node) -> Node:
    return (o.or_ if kind(a) == "b" else o.add)(a, b)


def factors(name: str, *xs: Any) -> list[Node]:
    """Promote the operands of `multiply`, except masks in the shape of the result.

    A product of a mask and real or complex numbers selects: elements that are masked out are 0,
    even if the number is inf or nan. XLA compiles such products to the same, and masked losses
    rely on it. Jaxprs show both operands promoted, as JAX's do.
    """
    nodes = promote(name, *xs)
    truths = [type(x) is bool or getattr(x, "dtype", None) == BOOL for x in xs]
    if True not in truths or kind(nodes[0]) not in "fc" or state.named:
        return nodes
    operands = [as_node(x, name) for x in xs]
    for i, (which, x) in enumerate((operands, operands[::-1])):
        if kind(which) == "b" and _broadcasts_to(which.aval.shape, x.aval.shape):
            nodes[i] = which
    return nodes


def _broadcasts_to(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether `other` broadcasts to `shape`."""
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return len(other) <= len(shape) and all(n in (1, m) for m, n in pairs)


def multiply(a: Node, b: Node) -> Node:
    if kind(a) != kind(b):
        which, x = (a, b) if kind(a) == "b" else (b, a)
        return choose(which, x, like(x, 0))
    return (o.and_ if kind(a) == "b" else o.mul)(a, b)


def heaviside(x: Node, at_zero: Node) -> Node:
    zero = constant(x, 0)
    below, above = o.lt(x, zero), o.gt(x, zero)
    inner = where_(o.ne(x, x), x, at_zero)
    return where_(below, zero, where_(above, constant(x, 1), inner))


def gcd(a: Node, b: Node) -> Node:
    return strong_array(o.gcd(a, b))


def strong_array(x: Node) -> Node:
    """Make an array strong; as in JAX's functions with constants, scalars stay weak."""
    return cast(x, x.aval.dtype) if x.aval.weak_type and x.aval.ndim else x


def lcm(a: Node, b: Node) -> Node:
    size_a, size_b = (x if kind(x) == "u" else o.abs(x) for x in (a, b))
    divisor = o.gcd(a, b)
    none = o.eq(divisor, like(divisor, 0))
    safe = select(none, filled(divisor, 1), divisor)
    out = select(none, filled(divisor, 0), o.mul(size_a, o.div(spread(size_b, divisor), safe)))
    return strong_array(out)


def spread(x: Node, like_this: Node) -> Node:
    return to_shape(x, like_this.aval.shape)


def isclose(a: Node, b: Node, rtol: Node, atol: Node, equal_nan: bool) -> Node:
    if kind(a) in "biu":
        out = o.eq(a, b)
        return out
    both_nan = o.and_(o.ne(a, a), o.ne(b, b))
    finite, distance = is_finite(b), o.abs(o.sub(a, b))
    near = o.le(distance, o.add(atol, o.mul(rtol, o.abs(b))))
    same = o.eq(a, b)
    out = o.or_(same, o.and_(finite, near))
    return o.or_(out, both_nan) if equal_nan else out


def nan_to_num(x: Node, nan: Any, posinf: Any, neginf: Any) -> Node:
    if kind(x) in "biu":
        return x
    if kind(x) == "c":
        return apply_to_parts(x, lambda y: nan_to_num(y, nan, posinf, neginf))
    info = dtypes.finfo(x.aval.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    x = where_(isnan(x), _constant(x, nan), x)
    x = where_(o.eq(x, like(x, INF)), _constant(x, high), x)
    return where_(o.eq(x, like(x, -INF)), _constant(x, low), x)


def _constant(x: Node, value: Any) -> Node:
    return value if isinstance(value, Node) else like(x, value)
