"""Docstrings of the strict elementwise functions, from a table and from the declarations of ops.

The docstrings are in NumPy style, without examples. The dtypes of operands and results are read
from the op, so that they stay correct.
"""

from __future__ import annotations

import numpy as np

from accnp.docstrings import fill
from accnp.ir.aval import make_aval
from accnp.ir.op import Op
from accnp.primitives.kinds import dtype_kind

_OF_KIND = {"b": "bool", "i": "int32", "u": "uint32", "f": "float32", "c": "complex64"}
_KINDS = {
    "b": "bool",
    "i": "signed integer",
    "u": "unsigned integer",
    "f": "floating",
    "c": "complex",
}
# Name | summary | See Also. The op's declaration describes operands and results.
_LINES = """abs | Compute the absolute value of x | numpy.abs, sign
acos | Compute the inverse cosine of x, in radians | numpy.acos, cos
acosh | Compute the inverse hyperbolic cosine of x | numpy.acosh, cosh
asin | Compute the inverse sine of x, in radians | numpy.asin, sin
asinh | Compute the inverse hyperbolic sine of x | numpy.asinh, sinh
atan | Compute the inverse tangent of x, in radians | numpy.atan, atan2, tan
atanh | Compute the inverse hyperbolic tangent of x | numpy.atanh, tanh
bessel_i0e | Compute the scaled Bessel function exp(-abs(x)) I0(x) | scipy.special.i0e, bessel_i1e
bessel_i1e | Compute the scaled Bessel function exp(-abs(x)) I1(x) | scipy.special.i1e, bessel_i0e
bitwise_not | Invert each bit of x; bools are negated | numpy.bitwise_not, bitwise_and
cbrt | Compute the real cube root of x | numpy.cbrt, sqrt
ceil | Round x up to a whole number | numpy.ceil, floor, round
clz | Count the leading zero bits of x | population_count
cos | Compute the cosine of x | numpy.cos, acos, sin
cosh | Compute the hyperbolic cosine of x | numpy.cosh, acosh
digamma | Compute the derivative of log(abs(gamma(x))) | scipy.special.digamma, lgamma
erf | Compute the error function of x | scipy.special.erf, erfc, erf_inv
erf_inv | Compute the inverse of the error function | scipy.special.erfinv, erf
erfc | Compute 1 - erf(x), accurately where it is small | scipy.special.erfc, erf
exp | Compute e to the power x | numpy.exp, expm1, log
exp2 | Compute 2 to the power x | numpy.exp2, exp
expm1 | Compute exp(x) - 1, accurately where it is small | numpy.expm1, exp, log1p
floor | Round x down to a whole number | numpy.floor, ceil, round
imag | Return the imaginary part of x | numpy.imag, real, complex
is_finite | Test whether x is neither infinite nor nan | numpy.isfinite
lgamma | Compute log(abs(gamma(x))) | scipy.special.gammaln, digamma
log | Compute the natural logarithm of x | numpy.log, log1p, exp
log1p | Compute log(1 + x), accurately where it is small | numpy.log1p, log, expm1
logistic | Compute the logistic sigmoid 1 / (1 + exp(-x)) | nn.sigmoid, tanh
neg | Negate x; unsigned integers wrap around | numpy.negative, sub
population_count | Count the bits of x that are set | numpy.bitwise_count, clz
real | Return the real part of x | numpy.real, imag, complex
rsqrt | Compute 1 / sqrt(x) | sqrt, reciprocal
sign | Return -1, 0 or 1 as x is; x / abs(x) for complex numbers | numpy.sign, abs
sin | Compute the sine of x | numpy.sin, asin, cos
sinh | Compute the hyperbolic sine of x | numpy.sinh, asinh
sqrt | Compute the square root of x; nan for negative real numbers | numpy.sqrt, rsqrt, cbrt
square | Multiply x by itself | numpy.square, integer_pow
tan | Compute the tangent of x | numpy.tan, atan
tanh | Compute the hyperbolic tangent of x | numpy.tanh, atanh
add | Add two arrays; integers wrap around | numpy.add, sub
atan2 | Compute the angle of the point (y, x), in (-pi, pi] | numpy.atan2, atan
bitwise_and | Compute the bits that are set in both operands | numpy.bitwise_and, bitwise_or
bitwise_or | Compute the bits that are set in either operand | numpy.bitwise_or, bitwise_and
bitwise_xor | Compute the bits that are set in one of two operands | numpy.bitwise_xor, bitwise_or
complex | Make complex numbers of real and imaginary parts | real, imag
div | Divide x by y; quotients of integers are rounded towards 0 | numpy.divide, rem
eq | Test whether x equals y | numpy.equal, ne
ge | Test whether x is greater than or equal to y | numpy.greater_equal, gt
gt | Test whether x is greater than y | numpy.greater, ge
igamma | Compute the regularized lower incomplete gamma function | scipy.special.gammainc, igammac
igamma_grad_a | Compute the derivative of `igamma` with respect to a | igamma, random_gamma_grad
igammac | Compute the regularized upper incomplete gamma function | scipy.special.gammaincc, igamma
le | Test whether x is less than or equal to y | numpy.less_equal, lt
lt | Test whether x is less than y | numpy.less, le
max | Return the greater of two operands; nan if either is nan | numpy.maximum, min
min | Return the smaller of two operands; nan if either is nan | numpy.minimum, max
mul | Multiply two arrays; integers wrap around | numpy.multiply, div
ne | Test whether x differs from y | numpy.not_equal, eq
nextafter | Return the next number after x1 towards x2 | numpy.nextafter
polygamma | Compute the derivative of order m of `digamma` | scipy.special.polygamma, digamma
random_gamma_grad | Compute the derivative of gamma samples by their parameter | random.gamma
rem | Compute the remainder of division towards 0, with the sign of x | numpy.fmod, div
shift_left | Shift the bits of x left by y | numpy.left_shift, shift_right_logical
shift_right_arithmetic | Shift the bits of x right, copying the sign | numpy.right_shift
shift_right_logical | Shift the bits of x right, filling with zeros | shift_right_arithmetic
sub | Subtract y from x; integers wrap around | numpy.subtract, add
zeta | Compute the Hurwitz zeta function, the sum of (k + q)**-x for k >= 0 | scipy.special.zeta
betainc | Compute the regularized incomplete beta function | scipy.special.betainc, lgamma"""
_ENTRIES = {line.split(" | ")[0]: line.split(" | ")[1:] for line in _LINES.splitlines()}
# Additional descriptions of operands: function or "", and name -> description.
_ROLES = {
    ("sin", "x"): "Angles in radians, ",
    ("cos", "x"): "Angles in radians, ",
    ("tan", "x"): "Angles in radians, ",
    ("atan2", "x"): "Vertical coordinate of the point, ",
    ("atan2", "y"): "Horizontal coordinate of the point, ",
    ("complex", "x"): "Real part, ",
    ("complex", "y"): "Imaginary part, ",
    ("igamma", "a"): "Order of the function, positive, ",
    ("igammac", "a"): "Order of the function, positive, ",
    ("igamma_grad_a", "a"): "Order of the function, positive, ",
    ("betainc", "a"): "First parameter, positive, ",
    ("betainc", "b"): "Second parameter, positive, ",
    ("betainc", "x"): "Upper limit of the integral, between 0 and 1, ",
    ("polygamma", "m"): "Order of the derivative, a whole number, ",
    ("shift_left", "y"): "Number of bits to shift by, ",
    ("shift_right_logical", "y"): "Number of bits to shift by, ",
    ("shift_right_arithmetic", "y"): "Number of bits to shift by, ",
    ("zeta", "x"): "Exponent, greater than 1, ",
    ("zeta", "q"): "Offset of the summands, ",
}
_SHAPES = "It has the same shape as the others, or rank 0; axes of length 1 are repeated."


def op_text(name: str, op: Op, names: list[str], accurate: bool) -> str:
    """Return the docstring of a function from the declaration of its op."""
    summary, related = _ENTRIES[name]
    count = len(names)
    in_kinds = op.dtypes or "f"
    outs = {}
    for kind in in_kinds:
        aval = make_aval((), np.dtype(_OF_KIND[kind]), False)
        outs[kind] = dtype_kind(op.infer(*[aval] * count).dtype)
    if set(outs.values()) == {"b"} != {*in_kinds}:
        out = "Its dtype is bool."
    elif all(k == v for k, v in outs.items()):
        out = "Its dtype is that of the operands." if count > 1 else "Its dtype is that of x."
    elif "c" in outs.values():
        out = "Its dtype is complex, of the same precision."
    else:
        out = "Its dtype is the real one of the same precision."
    kinds = [_KINDS[k] for k in in_kinds]
    several = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
    lines = [f"{summary}, elementwise.", "", "Parameters", "----------"]
    for i, parameter in enumerate(names):
        lines.append(f"{parameter} : array_like")
        role = _ROLES.get((name, parameter), "Array or number ")
        if i == 0:
            lines += [f"    {role}of any shape.", f"    Its dtype is {several}."]
        else:
            lines.append(f"    {role}of the same dtype as `{names[0]}`.")
            lines.append(f"    {_SHAPES}")
    if accurate:
        lines += ["{accuracy}"]
    shape = "the shape of `x`" if count == 1 else "the shape to which the operands are repeated"
    lines += ["", "Returns", "-------", "Array", f"    Result with {shape}.", f"    {out}"]
    wrong = "an operand is" if count > 1 else f"`{names[0]}` is"
    lines += ["", "Raises", "------", "TypeError"]
    lines += [f"    If {wrong} not an array or a number, or is of another dtype."]
    if count > 1:
        lines += ["    Also if the dtypes or the shapes of the operands differ."]
    if accurate:
        lines += ["{raises_accuracy}"]
    wide, *others = related.split(", ")
    lines += ["", "See Also", "--------"]
    if wide.startswith("numpy."):
        more = "with promotion of dtypes" if count > 1 else "for more dtypes"
        lines += [f"{wide} : The same {more}."]
    else:
        others.insert(0, wide)
    lines += [", ".join(others)] if others else []
    if count > 1:
        lines += ["", "Notes", "-----", "Unlike functions of `numpy`, it does not promote dtypes."]
    return fill("\n    ".join(lines).replace("\n    \n", "\n\n"))
