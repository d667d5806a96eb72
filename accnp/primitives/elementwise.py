"""Elementwise arithmetic, comparison, logic, bit operations, rounding and transcendental functions.

Each declaration registers a map op: its dtypes, NumPy reference, scalar expression for kernels, and
derivative rules. JVP rules take (t, y, *x): tangent, output, operands. The formulas avoid
intermediate results that overflow or cancel; while a jaxpr is made (`state.named`), some rules use
JAX's formulas instead, so that the printed equations agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import ZERO, Linear, o
from accnp.ir.trace import state
from accnp.primitives import reference as ref
from accnp.primitives.kinds import (
    binary,
    broadcast_scalar,
    compare,
    dtype_kind,
    full,
    in_float32,
    like_full,
    map_infer,
    map_op,
    map_shape,
    unary,
)

if TYPE_CHECKING:
    from accnp.ir.op_types import JvpRule, Params
    from accnp.primitives.rule_types import Number

REAL, NUMERIC, INEXACT, FLOAT, INTEGER = "iuf", "iufc", "fc", "f", "iu"
q = ref.quiet


def like(x: Node, value: Number) -> Node:
    """Return a rank-0 constant of the dtype of x."""
    return full((), value, x.aval.dtype, x.aval.weak_type)


def const(x: Node, value: Number) -> Node:
    """Return a constant for a derivative: strong if x has axes, because JAX's constants are."""
    return full((), value, x.aval.dtype, x.aval.weak_type and not x.aval.shape)


def _for_both(rule: JvpRule) -> tuple[JvpRule, JvpRule]:
    return rule, rule


# --- arithmetic -----------------------------------------------------------------------------------

ADD = binary(
    "add", NUMERIC, np.add, "{0} + {1}",
    _for_both(lambda t, y, a, b: t), transpose=lambda ct, a, b: (ct, ct), jvp_shapes="tangents",
    additive=True,
)  # fmt: skip
# The sum of partial tangents or cotangents of one value.
_infer_sum = map_infer("add_any", "same", "biufc")


def _add_any_infer(a: Aval, b: Aval) -> Aval:
    """Return the type of the sum; the weak flag is that of the first operand, as in JAX."""
    y = _infer_sum(a, b)
    return y if y.weak_type == a.weak_type else make_aval(y.shape, y.dtype, a.weak_type)


binary(
    "add_any", "biufc", np.add, {"b": "{0} or {1}", "": "{0} + {1}"},
    _for_both(lambda t, y, a, b: t), transpose=lambda ct, a, b: (ct, ct), infer=_add_any_infer,
    jvp_shapes="tangents", additive=True, makes_nan=False,
)  # fmt: skip
binary(
    "sub", NUMERIC, np.subtract, "{0} - {1}",
    (lambda t, y, a, b: t, lambda t, y, a, b: o.neg(t)),
    transpose=lambda ct, a, b: (ct, o.neg(ct)), jvp_shapes="tangents", additive=True,
)  # fmt: skip
MUL = binary(
    "mul", NUMERIC, q(np.multiply), {"c": "cmul({0}, {1})", "": "{0} * {1}"},
    (lambda t, y, a, b: o.mul(t, b), lambda t, y, a, b: o.mul(a, t)),
    transpose=lambda ct, a, b: (
        (o.mul(ct, b), None) if isinstance(a, Linear) else (None, o.mul(a, ct))
    ), jvp_shapes="any",
)  # fmt: skip
DIV = binary(
    "div", NUMERIC, ref.divide, {"iu": "idiv({0}, {1})", "c": "cdiv({0}, {1})", "": "{0} / {1}"},
    (
        lambda t, y, a, b: o.div(t, b),
        # Not a * b**-2, since b**-2 underflows or overflows from 1e19 on in float32. Not y / b
        # either, since a is a residual in any case. The derivative by a shares the first quotient.
        lambda t, y, a, b: o.div(o.mul(o.neg(o.div(t, b)), a), b),
    ),
    transpose=lambda ct, a, b: (o.div(ct, b), None), cost=4, jvp_shapes="any",
)  # fmt: skip
binary(
    "rem", REAL, ref.remainder, "rem({0}, {1})",
    (
        lambda t, y, a, b: t,
        lambda t, y, a, b: o.mul(o.neg(t), o.mul(o.sign(o.div(a, b)), o.floor(o.abs(o.div(a, b))))),
    ),
    cost=10,
)  # fmt: skip


def _pow_wrt_exponent(t: Node, y: Node, a: Node, b: Node) -> Node:
    # At a == 0 the logarithm is taken of 1, so that the derivative of 0**b is 0 instead of nan.
    safe = o.select_n(o.eq(a, like(a, 0)), a, like_full(a, 1))
    derivative = o.mul(t, o.mul(o.log(safe), y))
    if not derivative.aval.weak_type:
        return derivative
    return o.convert_element_type(derivative, new_dtype=derivative.aval.dtype, weak_type=False)


def _pow_infer(a: Aval, b: Aval) -> Aval:
    if dtype_kind(a.dtype) not in "fc":
        raise TypeError(
            f"pow: the base must be floating or complex; got {a.dtype.name}; "
            "convert with astype, or use jnp.power"
        )
    if b.dtype != a.dtype and dtype_kind(b.dtype) not in "iu":
        raise TypeError(
            "lax.pow: the exponent must be of the dtype of the base, or integer; "
            f"got {a.dtype.name} and {b.dtype.name}; convert with astype, or use jnp.power"
        )
    return make_aval(map_shape("pow", (a, b)), a.dtype, a.weak_type and b.weak_type)


def _pow_wrt_base(t: Node, y: Node, a: Node, b: Node) -> Node:
    if dtype_kind(b.aval.dtype) in "iu":
        less = o.sub(b, like(b, 1))
        b_float = o.convert_element_type(b, new_dtype=a.aval.dtype, weak_type=False)
        is_zero = o.eq(b, like(b, 0))
        shape = y.aval.shape
        value = o.mul(b_float, o.pow(a, o.select_n(is_zero, less, like_full(b, 1))))
        # a ** 0 is 1 for every a, including infinities.
        value = o.select_n(is_zero, value, like_full(value, 0))
        return o.mul(t, broadcast_scalar(value, shape))
    derivative = o.mul(b, o.pow(a, o.sub(b, full((), 1, b.aval.dtype))))  # strong type, as in JAX
    return o.mul(t, derivative)


@q
def _pow_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.power(a, b).astype(a.dtype)


map_op(
    "pow", numpy=_pow_numpy, infer=_pow_infer,
    scalar="pow({0}, {1})", jvp=(_pow_wrt_base, lambda t, y, a, b: _pow_wrt_exponent(t, y, a, b)),
    dtypes=INEXACT, cost=30,
)  # fmt: skip


def _ipow_scalar(params: Params, dtype: np.dtype) -> str:
    """Return an expression of repeated squaring, for Python and kernels, without a call of pow."""
    n = abs(params["y"])
    body = _squarings(n)
    if params["y"] >= 0:
        return body
    return f"cdiv(one({{0}}), {body})" if dtype.kind == "c" else f"one({{0}}) / ({body})"


def _squarings(n: int) -> str:
    if n == 0:
        return "one({0})"
    if n == 1:
        return "{0}"
    if n % 2:
        return f"({_squarings(n - 1)}) * {{0}}"
    half = _squarings(n // 2)
    return f"sq({half})"


_numeric_infer = map_infer("integer_pow", "same", NUMERIC)


def _ipow_infer(x: Aval, *, y: int) -> Aval:
    if y < 0 and dtype_kind(x.dtype) in "iu":
        shape = ",".join(map(str, x.shape))
        raise TypeError(
            "Integers cannot be raised to negative powers, "
            f"got integer_pow({x.dtype.name}[{shape}], {y})"
        )
    return _numeric_infer(x)


def _ipow_jvp(t: Node, power: Node, x: Node, *, y: int) -> Node:
    if y == 0:
        return like_full(t, 0)
    if y == 1:
        return o.mul(t, like(x, 1))
    if y < 0 and not state.named:  # x ** (y - 1) may overflow although the derivative does not
        return o.mul(o.mul(t, power), o.div(const(x, y), x))
    return o.mul(t, o.mul(const(x, y), x if y == 2 else o.integer_pow(x, y=y - 1)))


unary("integer_pow", NUMERIC, ref.integer_pow, _ipow_scalar, _ipow_jvp, cost=3, infer=_ipow_infer)
unary("neg", NUMERIC, q(np.negative), "-{0}", lambda t, y, x: o.neg(t),
            transpose=lambda ct, x: (o.neg(ct),), makes_nan=False)  # fmt: skip
unary("sign", NUMERIC, ref.sign, "sign({0})", ZERO)
unary("square", NUMERIC, ref.square, "sq({0})",
      lambda t, y, x: o.mul(t, o.mul(const(x, 2), x)), makes_nan=False)  # fmt: skip


def _abs_jvp(t: Node, y: Node, x: Node) -> Node:
    if x.aval.dtype.kind == "c":
        size = o.select_n(o.eq(y, like(y, 0)), y, like_full(y, 1))
        wide = o.convert_element_type(size, new_dtype=x.aval.dtype, weak_type=False)
        return o.real(o.mul(t, o.div(o.conj(x), wide)))
    return o.select_n(o.ge(x, like(x, 0)), o.neg(t), t)


map_op("abs", numpy=q(np.abs), scalar="abs({0})", jvp=(_abs_jvp,), out="real", dtypes="ifc",
       makes_nan=False)  # fmt: skip


def _extreme_jvps(choose: Callable[[Node, Node], Node]) -> tuple[JvpRule, JvpRule]:
    """JVP rules of max and min: the tangent of the chosen operand, the mean of both for ties."""

    def rule(k: int) -> JvpRule:
        def go(t: Node, y: Node, a: Node, b: Node) -> Node:
            mine, other = (a, b) if k == 0 else (b, a)
            half, one, zero = like(y, 0.5), like(y, 1), like(y, 0)
            tie = o.eq(a, b)
            # Comparisons do not order complex numbers, so compare with the maximum itself.
            chosen = (
                _broadcast_like(o.eq(mine, y), y)
                if y.aval.dtype.kind == "c"
                else choose(mine, other)
            )
            weight = o.select_n(chosen, _broadcast_like(zero, y), _broadcast_like(one, y))
            return o.mul(t, o.select_n(_broadcast_like(tie, y), weight, _broadcast_like(half, y)))

        return go

    return rule(0), rule(1)


def _broadcast_like(x: Node, y: Node) -> Node:
    return broadcast_scalar(x, y.aval.shape)


MAX = binary("max", "biufc", q(np.maximum), {"b": "{0} or {1}", "": "fmax({0}, {1})"},
       _extreme_jvps(lambda a, b: _is_greater(a, b)), makes_nan=False)  # fmt: skip
MIN = binary("min", "biufc", q(np.minimum), {"b": "{0} and {1}", "": "fmin({0}, {1})"},
       _extreme_jvps(lambda a, b: _is_greater(b, a)), makes_nan=False)  # fmt: skip


def _is_greater(a: Node, b: Node) -> Node:
    shape = a.aval.shape or b.aval.shape
    return o.gt(broadcast_scalar(a, shape), b)


binary("nextafter", FLOAT, np.nextafter, "nextafter({0}, {1})", None)


def _divide_by_squares(t: Node, top: Node, a: Node, b: Node) -> Node:
    """Return t * top / (a * a + b * b), where top is a or b. It uses ratios, because squares
    underflow below 1e-19 and overflow above 1e19 in float32."""
    shape = a.aval.shape or b.aval.shape
    a, b, top = (broadcast_scalar(x, shape) for x in (a, b, top))
    first = o.ge(o.abs(a), o.abs(b))
    large, small = o.select_n(first, b, a), o.select_n(first, a, b)
    ratio = o.div(small, large)
    part = o.div(o.div(top, large), o.add(like_full(ratio, 1), o.square(ratio)))
    return o.div(o.mul(t, part), large)


binary(
    "atan2", FLOAT, q(np.arctan2), "atan2({0}, {1})",
    (
        lambda t, y, a, b: _divide_by_squares(t, b, a, b),
        lambda t, y, a, b: _divide_by_squares(t, o.neg(a), a, b),
    ), cost=30,
)  # fmt: skip
map_op(
    "clamp", numpy=ref.clamp, dtypes="biuf",
    scalar={"b": "({1} or {0}) and {2}", "": "fmin(fmax({1}, {0}), {2})"},
    jvp=(
        lambda t, y, lo, x, hi: o.select_n(
            o.and_(_broadcast_like(o.gt(lo, x), y), _broadcast_like(o.lt(lo, hi), y)),
            like_full(y, 0), t),
        lambda t, y, lo, x, hi: o.select_n(
            o.and_(_broadcast_like(o.lt(lo, x), y), _broadcast_like(o.lt(x, hi), y)),
            like_full(y, 0), t),
        lambda t, y, lo, x, hi: o.select_n(_broadcast_like(o.lt(hi, x), y), like_full(y, 0), t),
    ), cost=2, makes_nan=False,
)  # fmt: skip

# --- comparison, logic, bits ----------------------------------------------------------------------

compare("eq", "biufc", q(np.equal), "{0} == {1}", constants=True)
compare("ne", "biufc", q(np.not_equal), "{0} != {1}", constants=True)
compare("lt", "biuf", q(np.less), "{0} < {1}")
compare("le", "biuf", q(np.less_equal), "{0} <= {1}")
compare("gt", "biuf", q(np.greater), "{0} > {1}")
compare("ge", "biuf", q(np.greater_equal), "{0} >= {1}")
AND = binary("and", "biu", np.bitwise_and, "{0} & {1}", ZERO, constants=True)
OR = binary("or", "biu", np.bitwise_or, "{0} | {1}", ZERO, constants=True)
XOR = binary("xor", "biu", np.bitwise_xor, "{0} ^ {1}", ZERO, constants=True)
unary("not", "biu", np.bitwise_not, {"b": "not {0}", "": "~{0}"}, ZERO)
binary("shift_left", INTEGER, ref.shift_left, "shift_left({0}, {1})", ZERO, constants=True)
binary(
    "shift_right_logical",
    INTEGER,
    ref.shift_right_logical,
    "shift_right_logical({0}, {1})",
    ZERO,
    constants=True,
)
binary("shift_right_arithmetic", INTEGER, ref.shift_right_arithmetic,
       "shift_right_arithmetic({0}, {1})", ZERO, constants=True)  # fmt: skip


def _count_bits(x: np.ndarray) -> np.ndarray:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


unary(
    "population_count",
    INTEGER,
    _count_bits,
    "popcount({0})",
    ZERO,
)


def _clz(x: np.ndarray) -> np.ndarray:
    bits = x.dtype.itemsize * 8
    u = x.astype(f"u{x.dtype.itemsize}").astype(np.uint64)
    out = np.full(x.shape, bits, np.int64)
    for k in range(bits):
        out = np.where(u >> np.uint64(k) & np.uint64(1), bits - 1 - k, out)
    return out.astype(x.dtype)


unary("clz", INTEGER, _clz, "clz({0})", ZERO)
map_op(
    "is_finite", numpy=np.isfinite, scalar="is_finite({0})", jvp=(ZERO,), out="bool", dtypes=FLOAT
)

# --- rounding -------------------------------------------------------------------------------------

unary("floor", FLOAT, np.floor, "floor({0})", ZERO)
unary("ceil", FLOAT, np.ceil, "ceil({0})", ZERO)


@q
def _round_numpy(x: np.ndarray, *, rounding_method: int) -> np.ndarray:
    if int(rounding_method) == 1:
        return np.rint(x)
    size = np.abs(x)
    low = np.floor(size)  # not floor(size + 0.5): that sum rounds to 1 for the float below 0.5
    return np.copysign(np.where(size - low < 0.5, low, low + 1), x).astype(x.dtype)


def _round_scalar(params: Params, _: np.dtype) -> str:
    return "round_even({0})" if int(params["rounding_method"]) == 1 else "round_away({0})"


unary("round", FLOAT, _round_numpy, _round_scalar, ZERO)

# --- exponentials and friends ---------------------------------------------------------------------

unary("exp", INEXACT, q(np.exp), "exp({0})", lambda t, y, x: o.mul(t, y), cost=15)
unary("exp2", INEXACT, q(np.exp2), "exp2({0})",
      lambda t, y, x: o.mul(const(x, np.log(2)), o.mul(t, y)), cost=15,
      makes_nan=False)  # fmt: skip
unary("expm1", INEXACT, q(np.expm1), "expm1({0})",
      lambda t, y, x: o.mul(t, o.exp(x)), cost=20)  # y + 1 would cancel  # fmt: skip
unary("log", INEXACT, q(np.log), "log({0})", lambda t, y, x: o.div(t, x), cost=15)
unary("log1p", INEXACT, q(np.log1p), "log1p({0})",
      lambda t, y, x: o.div(t, o.add(x, like(x, 1))), cost=20)  # fmt: skip
unary("sqrt", INEXACT, q(np.sqrt), "sqrt({0})",
      lambda t, y, x: o.mul(t, o.div(const(x, 0.5), y)), cost=6)  # fmt: skip
unary("rsqrt", INEXACT, ref.rsqrt, "rsqrt({0})",
      lambda t, y, x: o.mul(o.mul(t, y), o.div(const(x, -0.5), x)), cost=8)  # fmt: skip


@q
def _log_numpy(x: np.ndarray, *, base: int) -> np.ndarray:
    return np.log2(x) if base == 2 else np.log10(x)


def _log_scalar(params: Params, _: np.dtype) -> str:
    return f"log{params['base']}({{0}})"


def _log_jvp(t: Node, y: Node, x: Node, *, base: int) -> Node:
    return o.div(t, o.mul(x, like(x, np.log(base))))


unary("log_base", FLOAT, _log_numpy, _log_scalar, _log_jvp, cost=25)
unary(
    "cbrt", FLOAT, q(np.cbrt), "cbrt({0})",
    lambda t, y, x: o.mul(t, o.mul(const(x, 1 / 3), o.integer_pow(y, y=-2))), cost=20,
)  # fmt: skip
binary("exp_difference", FLOAT, ref.exp_difference, "exp_difference({0}, {1})",
       (lambda t, y, x, top: o.mul(t, y), lambda t, y, x, top: o.neg(o.mul(t, y))),
       cost=20)  # fmt: skip


def _log_sum_jvps(exp: str) -> tuple[JvpRule, JvpRule]:
    def by_first(t: Node, y: Node, a: Node, b: Node) -> Node:
        return o.mul(t, getattr(o, exp)(o.sub(a, y)))

    def by_second(t: Node, y: Node, a: Node, b: Node) -> Node:
        return o.mul(t, getattr(o, exp)(o.sub(b, y)))

    return by_first, by_second


# These rules are wrong for infinite results; `numpy/derivative_rules.py` handles that case.
for _name, _exp, _function in (
    ("logaddexp", "exp", ref.logaddexp),
    ("logaddexp2", "exp2", ref.logaddexp2),
):
    binary(_name, FLOAT, _function, f"{_name}({{0}}, {{1}})", _log_sum_jvps(_exp), cost=40)


def _logistic_jvp(t: Node, y: Node, x: Node) -> Node:
    return o.mul(t, o.mul(y, o.sub(like(y, 1), y)))


@in_float32
def _silu_jvp(t: Node, y: Node, x: Node) -> Node:
    part = o.logistic(x)
    return o.add(o.mul(t, part), o.mul(x, _logistic_jvp(t, part, x)))


unary("logistic", INEXACT, ref.logistic, "logistic({0})", _logistic_jvp, cost=20)
unary("silu", FLOAT, ref.silu, "silu({0})", _silu_jvp, cost=20)


def _tanh_cdf_jvp(t: Node, y: Node, x: Node) -> Node:
    x = o.clamp(like(x, -1e3), x, like(x, 1e3))  # y is 0 or 1 beyond; the square could overflow
    scale = 2 * np.sqrt(2 / np.pi)
    inner = o.add(o.mul(like(x, scale * 3 * 0.044715), o.square(x)), like(x, scale))
    return o.mul(t, o.mul(o.mul(y, o.sub(like(y, 1), y)), inner))


unary(
    "sin_pi", INEXACT, ref.sin_pi, "sin_pi({0})",
    lambda t, y, x: o.mul(t, o.mul(like(x, np.pi), o.sin_pi(o.add(x, like(x, 0.5))))),
    cost=60,
)  # fmt: skip


@in_float32
def _mish_jvp(t: Node, y: Node, x: Node) -> Node:
    # From 20 on the derivative is 1 in all digits, and n of `llvm.scalars.exp.mish` would overflow.
    # At infinity the result is nan.
    c = o.min(x, like(x, 20))
    e = o.exp(c)
    n = o.mul(e, o.add(e, like(x, 2)))
    below = o.add(n, like(x, 2))
    bend = o.mul(o.mul(like(x, 4), c), o.div(o.mul(e, o.add(e, like(x, 1))), below))
    derivative = o.add(o.div(o.add(n, bend), below), o.mul(o.sub(x, c), like(x, 0)))
    return o.mul(t, derivative)


@in_float32
def _tanh_gelu_jvp(t: Node, y: Node, x: Node) -> Node:
    part = o.tanh_cdf(x)
    return o.add(o.mul(t, part), o.mul(x, _tanh_cdf_jvp(t, part, x)))


unary("tanh_gelu", FLOAT, ref.tanh_gelu, "tanh_gelu({0})", _tanh_gelu_jvp, cost=25)
unary("tanh_cdf", FLOAT, ref.tanh_cdf, "tanh_cdf({0})", _tanh_cdf_jvp, cost=25)
unary("mish", FLOAT, ref.mish, "mish({0})", _mish_jvp, cost=25)

# --- trigonometry ---------------------------------------------------------------------------------

unary("sin", INEXACT, q(np.sin), "sin({0})", lambda t, y, x: o.mul(t, o.cos(x)), cost=20)
unary("cos", INEXACT, q(np.cos), "cos({0})", lambda t, y, x: o.neg(o.mul(t, o.sin(x))), cost=20)
unary("tan", INEXACT, ref.tan, "tan({0})",
      lambda t, y, x: o.mul(t, o.add(const(y, 1), o.square(y))), cost=25)  # fmt: skip


# The derivatives of the inverse functions factor 1 - x^2 and 1 + x^2 for complex numbers, because
# squares overflow from 1e19 on, and avoid the squares of large real numbers.


def _asin_derivative(x: Node) -> Node:
    one = const(x, 1)
    if x.aval.dtype.kind == "c":
        return o.mul(o.rsqrt(o.sub(one, x)), o.rsqrt(o.add(one, x)))
    return o.rsqrt(o.sub(one, o.square(x)))


def _clamp_below_one(x: Node) -> Node:
    """Return max(|x|, 1), and 1 for infinities and nan."""
    size = o.max(o.abs(x), like(x, 1))
    return o.select_n(o.is_finite(x), like_full(x, 1), size)


def _imaginary(x: Node) -> Node:
    return o.mul(x, like(x, 1j))


def _atan_jvp(t: Node, y: Node, x: Node) -> Node:
    one = const(x, 1)
    if x.aval.dtype.kind == "c":
        turned = _imaginary(x)
        return o.div(o.div(t, o.add(one, turned)), o.sub(one, turned))
    if state.named:
        return o.div(t, o.add(one, o.square(x)))
    size = _clamp_below_one(x)
    return o.div(o.div(t, size), o.add(o.div(one, size), o.mul(x, o.div(x, size))))


def _asinh_jvp(t: Node, y: Node, x: Node) -> Node:
    if x.aval.dtype.kind == "c":
        turned, one = _imaginary(x), const(x, 1)
        return o.mul(t, o.mul(o.rsqrt(o.add(one, turned)), o.rsqrt(o.sub(one, turned))))
    if state.named:
        return o.mul(t, o.rsqrt(o.add(o.square(x), like(x, 1))))
    size = _clamp_below_one(x)
    squares = o.add(o.square(o.div(x, size)), o.square(o.div(const(x, 1), size)))
    return o.div(o.mul(t, o.rsqrt(squares)), size)


unary("asin", INEXACT, q(np.arcsin), "asin({0})",
      lambda t, y, x: o.mul(t, _asin_derivative(x)), cost=25)  # fmt: skip
unary("acos", INEXACT, q(np.arccos), "acos({0})",
      lambda t, y, x: o.mul(t, o.neg(_asin_derivative(x))), cost=25)  # fmt: skip
unary("atan", INEXACT, q(np.arctan), "atan({0})", _atan_jvp, cost=25)
unary("sinh", INEXACT, q(np.sinh), "sinh({0})", lambda t, y, x: o.mul(t, o.cosh(x)), cost=25)
unary("cosh", INEXACT, q(np.cosh), "cosh({0})", lambda t, y, x: o.mul(t, o.sinh(x)), cost=25)
unary("tanh", INEXACT, ref.tanh, "tanh({0})",
      # (1 + y) * (1 - y), because 1 - y * y cancels for |y| near 1.
      lambda t, y, x: o.mul(o.add_any(t, o.mul(t, y)), o.sub(like(y, 1), y)), cost=20)  # fmt: skip
unary("asinh", INEXACT, q(np.arcsinh), "asinh({0})", _asinh_jvp, cost=30)
unary(
    "acosh",
    INEXACT,
    q(np.arccosh),
    "acosh({0})",
    lambda t, y, x: o.mul(t, o.mul(o.rsqrt(o.sub(x, like(x, 1))), o.rsqrt(o.add(x, like(x, 1))))),
    cost=30,
)
unary("atanh", INEXACT, q(np.arctanh), "atanh({0})",
      lambda t, y, x: o.mul(
          o.div(t, o.sub(like(x, 1), x)), o.div(like(x, 1), o.add(like(x, 1), x))
      ), cost=30)  # fmt: skip

# --- special functions ----------------------------------------------------------------------------

_TWO_OVER_ROOT_PI = 2 / np.sqrt(np.pi)
unary(
    "erf",
    FLOAT,
    ref.special("erf"),
    "erf({0})",
    lambda t, y, x: o.mul(const(x, _TWO_OVER_ROOT_PI), o.mul(t, o.exp(o.neg(o.square(x))))),
    cost=30,
)
unary(
    "erfc",
    FLOAT,
    ref.special("erfc"),
    "erfc({0})",
    lambda t, y, x: o.mul(const(x, -_TWO_OVER_ROOT_PI), o.mul(t, o.exp(o.neg(o.square(x))))),
    cost=40,
)


def _normal_cdf_jvp(t: Node, y: Node, x: Node) -> Node:
    density = o.exp(o.mul(like(x, -0.5), o.square(x)))
    return o.mul(t, o.mul(like(x, 1 / np.sqrt(2 * np.pi)), density))


@in_float32
def _normal_gelu_jvp(t: Node, y: Node, x: Node) -> Node:
    return o.add(o.mul(t, o.normal_cdf(x)), o.mul(x, _normal_cdf_jvp(t, y, x)))


unary("normal_cdf", FLOAT, ref.special("ndtr"), "normal_cdf({0})", _normal_cdf_jvp, cost=40)
unary("normal_gelu", FLOAT, ref.normal_gelu, "normal_gelu({0})", _normal_gelu_jvp, cost=45)
unary(
    "erf_inv", FLOAT, ref.erf_inv, "erf_inv({0})",
    lambda t, y, x: o.mul(const(x, 1 / _TWO_OVER_ROOT_PI), o.mul(t, o.exp(o.square(y)))),
    cost=40,
)  # fmt: skip
unary("lgamma", FLOAT, ref.lgamma, "lgamma({0})",
      lambda t, y, x: o.mul(t, o.digamma(x)), cost=60)  # fmt: skip
unary("digamma", FLOAT, ref.special("digamma"), "digamma({0})",
      lambda t, y, x: o.mul(t, o.polygamma(like_full(x, 1), x)), cost=60)  # fmt: skip
binary(
    "digamma_difference", FLOAT, ref.digamma_difference, "digamma_difference({0}, {1})",
    (
        lambda t, y, x, h: o.mul(t, o.sub(_trigamma(o.add(x, h)), _trigamma(x))),
        lambda t, y, x, h: o.mul(t, _trigamma(o.add(x, h))),
    ), cost=120,
)  # fmt: skip


def _trigamma(x: Node) -> Node:
    return o.polygamma(like_full(x, 1), x)
