"""What the docstrings of the strict elementwise functions say: a table, and the ops' declarations.

In: an op. Out: text; what it takes and gives is asked of the op, so that it stays true.
"""

from __future__ import annotations

import numpy as np

from accnp.ir.aval import make_aval
from accnp.ir.op import Op
from accnp.primitives.kinds import dtype_kind

_OF_KIND = {"b": "bool", "i": "int32", "u": "uint32", "f": "float32", "c": "complex64"}
_KINDS = {"b": "bool", "i": "signed", "u": "unsigned", "f": "floating", "c": "complex"}
_LINES = """abs: The size of x
acos: The inverse cosine, in radians
acosh: The inverse hyperbolic cosine
asin: The inverse sine, in radians
asinh: The inverse hyperbolic sine
atan: The inverse tangent, in radians
atanh: The inverse hyperbolic tangent
bessel_i0e: exp(-|x|) times the modified Bessel function of order 0
bessel_i1e: exp(-|x|) times the modified Bessel function of order 1
bitwise_not: Each bit the other way; of bools, the negation
cbrt: The real cube root
ceil: The smallest whole number that is not below x
clz: The number of zeros above the highest bit that is set
cos: The cosine of x in radians
cosh: The hyperbolic cosine
digamma: The derivative of log |gamma(x)|
erf: The error function
erf_inv: The inverse of the error function
erfc: 1 - erf(x), exact where it is small
exp: e to the power x
exp2: 2 to the power x
expm1: exp(x) - 1, exact where it is small
floor: The largest whole number that is not above x
imag: The imaginary part
is_finite: True where x is neither infinite nor nan
lgamma: log |gamma(x)|
log: The natural logarithm
log1p: log(1 + x), exact where it is small
logistic: 1 / (1 + exp(-x))
neg: -x; unsigned numbers wrap around
population_count: The number of bits that are set
real: The real part
rsqrt: 1 / sqrt(x)
sign: -1, 0 or 1 as x is; of complex numbers x / |x|
sin: The sine of x in radians
sinh: The hyperbolic sine
sqrt: The square root; nan for real numbers below 0
square: x times x
tan: The tangent of x in radians
tanh: The hyperbolic tangent
add: x + y; integers wrap around
atan2: The angle of the point (y, x), in (-pi, pi]: the first operand is its height
bitwise_and: The bits that are set in both
bitwise_or: The bits that are set in either
bitwise_xor: The bits that are set in one of both
complex: x + iy, of parts of float32 or float64
div: x / y; of integers the quotient towards 0
eq: True where x equals y
ge: True where x is at least y
gt: True where x is above y
igamma: The regularised lower incomplete gamma function of order a
igamma_grad_a: The derivative of igamma by a
igammac: The regularised upper incomplete gamma function of order a
le: True where x is at most y
lt: True where x is below y
max: The larger one; nan where either is
min: The smaller one; nan where either is
mul: The product
ne: True where x differs from y
nextafter: The next number of the dtype after x1 on the way to x2
polygamma: The derivative of order m of digamma
random_gamma_grad: The derivative of gamma samples by their parameter
rem: The remainder of the quotient towards 0, with the sign of x
shift_left: x shifted up by y bits
shift_right_arithmetic: x shifted down by y bits; copies of its sign come in
shift_right_logical: x shifted down by y bits; zeros come in
sub: x - y; integers wrap around
zeta: The sum of 1 / (k + q)**x over k from 0 on
betainc: The regularised incomplete beta function up to x"""
_WHAT: dict[str, str] = {
    line.split(": ")[0]: line.split(": ", 1)[1] for line in _LINES.splitlines()
}


def op_text(name: str, op: Op, count: int, accurate: bool) -> str:
    """What a function does, takes and refuses, as the declaration of its op says."""
    taken = op.dtypes or "f"
    outs = {}
    for kind in taken:
        aval = make_aval((), np.dtype(_OF_KIND[kind]), False)
        outs[kind] = dtype_kind(op.infer(*[aval] * count).dtype)
    if set(outs.values()) == {"b"} != {*taken}:
        out = "of dtype bool"
    elif all(k == v for k, v in outs.items()):
        out = "of the dtype of x" if count == 1 else "of that dtype"
    elif "c" in outs.values():
        out = "complex, of the same precision"
    else:
        out = "real, of the same precision"
    kinds = ", ".join(_KINDS[k] for k in taken)
    wrong = "no array or number is given, or one of another dtype"
    if count == 1:
        lines = (
            f"Takes an array or a number; dtypes: {kinds}.\n    The result has its shape, {out}."
        )
    else:
        lines = (
            f"Takes arrays or numbers of one dtype ({kinds})\n"
            "    and one shape; rank 0 and axes of 1 stretch. Nothing is promoted.\n"
            f"    The result has that shape, {out}."
        )
        wrong += ",\n            or dtypes or shapes do not agree"
    more = (
        "\n        NotImplementedError: accuracy, which changes nothing, is neither None, nor an\n"
        "            AccuracyMode or a Tolerance."
    ) * accurate
    what = f"{_WHAT[name]}, elementwise.\n\n    {lines}"
    return f"{what}\n\n    Raises:\n        TypeError: {wrong}.{more}"
