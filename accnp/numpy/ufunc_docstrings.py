"""Docstrings of generated functions: elementwise functions, reductions and cumulative functions.

The functions of this module build a NumPy-style docstring from the declaration of a function, its
text in `TEXTS` and an example. `tests/test_docstrings.py` compares the statements about dtypes with
what the functions do.
"""

from __future__ import annotations

from typing import NamedTuple

from accnp.docstrings import BLOCKS
from accnp.numpy.ufunc_factories import documented

__all__ = [
    "REFUSED", "TEXTS", "Text", "cumulative_doc", "reduction_doc", "refused", "see_also",
    "ufunc_doc",
]  # fmt: skip

# Kinds of dtypes -> functions that do not accept them.
REFUSED = {
    "b": "negative sign subtract gcd lcm",
    "f": "bitwise_not bitwise_count gcd lcm bitwise_and bitwise_or bitwise_xor left_shift "
    "right_shift",
    "c": "fabs i0 cbrt floor ceil trunc signbit frexp floor_divide remainder fmod divmod hypot "
    "copysign nextafter heaviside bitwise_not bitwise_count gcd lcm bitwise_and bitwise_or "
    "bitwise_xor left_shift right_shift",
}
_KINDS = {"b": "bool", "f": "floating", "c": "complex"}
_OWN = {  # result dtypes that differ from the operands'
    "abs": "The dtype is that of `{0}`, or of its parts if `{0}` is complex.",
    "real": "The dtype is that of `{0}`, or of its parts if `{0}` is complex.",
    "imag": "The dtype is that of `{0}`, or of its parts if `{0}` is complex.",
    "rint": "Integers and bools give the default float dtype; other dtypes are unchanged.",
    "bitwise_count": "The dtype is uint8.",
}
# Functions of several results -> what is returned.
_RESULTS = {
    "divmod": [
        "quotient, remainder : Array",
        "Quotient, rounded down, and remainder.",
    ],
    "frexp": [
        "mantissa, exponent : Array",
        "Mantissa in the dtype of `{0}`, and exponent in int32.",
    ],
}


class Text(NamedTuple):
    """Text about one elementwise function."""

    summary: str
    operands: tuple[str, ...]
    related: str
    note: str = ""


_ANGLE = "Angle in radians."
_HYPERBOLIC = "Hyperbolic angle."
_NEGATIVE = (
    "Negative real numbers give nan, without a warning; convert them to a complex dtype for a "
    "complex result."
)
_OUTSIDE = "Real numbers outside of the domain give nan, without a warning."
_PAIR = ("First value to compare.", "Second value to compare.")
_BITS = ("First integers or bools.", "Second integers or bools.")
_TRUTHS = ("First condition; nonzero is true.", "Second condition; nonzero is true.")
_SHIFTED = ("Integers whose bits are shifted.", "Number of bits to shift by.")
_ROUNDED = "Numbers to round; integers and bools are returned as they are."
_COMPLEX_ORDER = "Complex numbers are ordered by real part, then by imaginary part."

TEXTS = {
    # --- arithmetic
    "add": Text(
        "Add two operands, elementwise.",
        ("First summand.", "Second summand."),
        "subtract multiply sum",
    ),
    "subtract": Text(
        "Subtract the second operand from the first, elementwise.",
        ("Minuend, from which `{1}` is subtracted.", "Subtrahend, which is subtracted."),
        "add negative diff",
    ),
    "multiply": Text(
        "Multiply two operands, elementwise.",
        ("First factor.", "Second factor."),
        "divide matmul prod",
        "For the product of matrices, use `matmul`.",
    ),
    "divide": Text(
        "Divide two operands, elementwise, with a floating or complex result.",
        ("Dividend, or numerator.", "Divisor, or denominator."),
        "floor_divide remainder reciprocal",
        "Division by zero gives inf or nan, without a warning.",
    ),
    "floor_divide": Text(
        "Divide two operands and round the quotient down, elementwise.",
        ("Dividend, or numerator.", "Divisor, or denominator."),
        "divide remainder divmod floor",
        "An integer divided by zero gives an unspecified integer, without a warning.",
    ),
    "remainder": Text(
        "Compute the remainder of a division, with the sign of the divisor, elementwise.",
        ("Dividend, or numerator.", "Divisor, whose sign the remainder has."),
        "fmod divmod floor_divide",
        "This is `{0} - {1} * floor_divide({0}, {1})`, like Python's `%`.",
    ),
    "fmod": Text(
        "Compute the remainder of a division, with the sign of the dividend, elementwise.",
        ("Dividend, whose sign the remainder has.", "Divisor, or denominator."),
        "remainder divide trunc",
        "This is like `fmod` in C: the quotient is rounded towards zero.",
    ),
    "divmod": Text(
        "Compute the quotient rounded down and the remainder, elementwise.",
        ("Dividend, or numerator.", "Divisor, whose sign the remainder has."),
        "floor_divide remainder",
        "This is `(floor_divide({0}, {1}), remainder({0}, {1}))`.",
    ),
    "float_power": Text(
        "Raise the first operand to the power of the second in floating point, elementwise.",
        ("Base of the power.", "Exponent of the power."),
        "power exp square",
        _NEGATIVE.replace("Negative real numbers", "Negative bases with fractional exponents"),
    ),
    "negative": Text(
        "Negate the operand, elementwise.",
        ("Numbers whose sign is changed.",),
        "positive subtract abs",
        "Unsigned integers wrap around.",
    ),
    "positive": Text(
        "Return the operand unchanged, elementwise.",
        ("Numbers that are returned.",),
        "negative abs",
    ),
    "abs": Text(
        "Compute the absolute value, elementwise.",
        ("Numbers whose distance from zero is wanted.",),
        "fabs sign negative",
        "The smallest signed integer is returned as it is, since its negative is out of range.",
    ),
    "fabs": Text(
        "Compute the absolute value in floating point, elementwise.",
        ("Real numbers whose distance from zero is wanted.",),
        "abs sign copysign",
    ),
    "sign": Text(
        "Compute the sign (-1, 0 or 1), elementwise.",
        ("Numbers whose sign is wanted.",),
        "signbit copysign abs",
        "The sign of a complex number `z` is `z / abs(z)`, or 0. The sign of nan is nan.",
    ),
    "square": Text(
        "Multiply the operand by itself, elementwise.",
        ("Base, which is multiplied by itself.",),
        "sqrt power",
    ),
    "reciprocal": Text(
        "Compute one divided by the operand, elementwise.",
        ("Divisor, or denominator.",),
        "divide power",
        "Zero gives inf, without a warning. Unlike in NumPy, the result for integers is floating.",
    ),
    "sqrt": Text(
        "Compute the square root, elementwise.",
        ("Numbers under the root.",),
        "square cbrt hypot",
        _NEGATIVE,
    ),
    "cbrt": Text(
        "Compute the cube root, elementwise.",
        ("Real numbers under the root, of either sign.",),
        "sqrt power",
    ),
    "hypot": Text(
        "Compute the hypotenuse of right triangles, without overflow, elementwise.",
        ("Length of the first leg.", "Length of the second leg."),
        "sqrt abs linalg.norm",
        "This is `sqrt({0}**2 + {1}**2)`, scaled so that the squares stay in range.",
    ),
    "gcd": Text(
        "Compute the greatest common divisor, elementwise.",
        ("First integer.", "Second integer."),
        "lcm remainder",
        "The result is never negative. The divisor of 0 and 0 is 0.",
    ),
    "lcm": Text(
        "Compute the least common multiple, elementwise.",
        ("First integer.", "Second integer."),
        "gcd multiply",
        "The result is never negative. A multiple of 0 is 0.",
    ),
    # --- exponentials, logarithms
    "exp": Text(
        "Compute the exponential function, elementwise.",
        ("Exponent of e.",),
        "expm1 exp2 log",
        "Results beyond the largest number are inf, without a warning.",
    ),
    "exp2": Text(
        "Compute 2 to the power of the operand, elementwise.", ("Exponent of 2.",), "exp log2 power"
    ),
    "expm1": Text(
        "Compute the exponential minus one, accurate near zero, elementwise.",
        ("Exponent of e.",),
        "exp log1p",
    ),
    "log": Text(
        "Compute the natural logarithm, elementwise.",
        ("Positive, or complex, numbers.",),
        "log2 log10 log1p exp",
        "The logarithm of zero is -inf. " + _NEGATIVE,
    ),
    "log2": Text(
        "Compute the logarithm to base 2, elementwise.",
        ("Positive, or complex, numbers.",),
        "log log10 exp2",
        "The logarithm of zero is -inf. " + _NEGATIVE,
    ),
    "log10": Text(
        "Compute the logarithm to base 10, elementwise.",
        ("Positive, or complex, numbers.",),
        "log log2 power",
        "The logarithm of zero is -inf. " + _NEGATIVE,
    ),
    "log1p": Text(
        "Compute the logarithm of one plus the operand, accurate near zero, elementwise.",
        ("Numbers above -1, or complex numbers.",),
        "log expm1",
        "Minus one gives -inf, and smaller real numbers give nan, without a warning.",
    ),
    "logaddexp": Text(
        "Compute the logarithm of the sum of two exponentials, elementwise.",
        ("Logarithm of the first summand.", "Logarithm of the second summand."),
        "logaddexp2 log exp",
        "This is `log(exp({0}) + exp({1}))`, without overflow.",
    ),
    "logaddexp2": Text(
        "Compute the logarithm to base 2 of the sum of two powers of 2, elementwise.",
        ("Logarithm to base 2 of the first summand.", "Logarithm to base 2 of the second summand."),
        "logaddexp log2 exp2",
        "This is `log2(2**{0} + 2**{1})`, without overflow.",
    ),
    "i0": Text(
        "Compute the modified Bessel function of the first kind and order 0, elementwise.",
        ("Real numbers at which to evaluate it.",),
        "kaiser exp",
    ),
    # --- trigonometry
    "sin": Text("Compute the trigonometric sine, elementwise.", (_ANGLE,), "cos tan arcsin"),
    "cos": Text("Compute the trigonometric cosine, elementwise.", (_ANGLE,), "sin tan arccos"),
    "tan": Text("Compute the trigonometric tangent, elementwise.", (_ANGLE,), "sin cos arctan"),
    "arcsin": Text(
        "Compute the inverse sine, elementwise, in [-pi/2, pi/2].",
        ("Sine of the angle, real numbers in [-1, 1].",),
        "sin arccos arctan",
        _OUTSIDE,
    ),
    "arccos": Text(
        "Compute the inverse cosine, elementwise, in [0, pi].",
        ("Cosine of the angle, real numbers in [-1, 1].",),
        "cos arcsin arctan",
        _OUTSIDE,
    ),
    "arctan": Text(
        "Compute the inverse tangent, elementwise, in [-pi/2, pi/2].",
        ("Tangent of the angle.",),
        "tan arctan2 arcsin",
    ),
    "arctan2": Text(
        "Compute the angle of points in the plane, elementwise, in [-pi, pi].",
        ("Ordinate (y coordinate) of the point.", "Abscissa (x coordinate) of the point."),
        "arctan angle hypot",
        "This is the angle between the positive x axis and the ray from the origin to the point.",
    ),
    "sinh": Text("Compute the hyperbolic sine, elementwise.", (_HYPERBOLIC,), "cosh tanh arcsinh"),
    "cosh": Text(
        "Compute the hyperbolic cosine, elementwise.", (_HYPERBOLIC,), "sinh tanh arccosh"
    ),
    "tanh": Text(
        "Compute the hyperbolic tangent, elementwise.", (_HYPERBOLIC,), "sinh cosh arctanh"
    ),
    "arcsinh": Text(
        "Compute the inverse hyperbolic sine, elementwise.",
        ("Hyperbolic sine of the angle.",),
        "sinh arccosh arctanh",
    ),
    "arccosh": Text(
        "Compute the inverse hyperbolic cosine, elementwise.",
        ("Hyperbolic cosine of the angle, real numbers not below 1.",),
        "cosh arcsinh arctanh",
        _OUTSIDE,
    ),
    "arctanh": Text(
        "Compute the inverse hyperbolic tangent, elementwise.",
        ("Hyperbolic tangent of the angle, real numbers in [-1, 1].",),
        "tanh arcsinh arccosh",
        _OUTSIDE,
    ),
    "deg2rad": Text(
        "Convert angles from degrees to radians, elementwise.",
        ("Angle in degrees.",),
        "rad2deg sin",
    ),
    "rad2deg": Text(
        "Convert angles from radians to degrees, elementwise.", (_ANGLE,), "deg2rad angle"
    ),
    "sinc": Text(
        "Compute the normalized sinc function, elementwise.",
        ("Numbers at which to evaluate it, in half periods of the sine.",),
        "sin",
        "This is `sin(pi*{0}) / (pi*{0})`, and 1 at zero, where all derivatives exist as well.",
    ),
    # --- rounding, parts, signs
    "floor": Text(
        "Round down to the largest integer not above the operand, elementwise.",
        (_ROUNDED,),
        "ceil trunc rint",
    ),
    "ceil": Text(
        "Round up to the smallest integer not below the operand, elementwise.",
        (_ROUNDED,),
        "floor trunc rint",
    ),
    "trunc": Text(
        "Round towards zero, dropping the fraction, elementwise.",
        (_ROUNDED,),
        "floor ceil rint modf",
    ),
    "rint": Text(
        "Round to the nearest integer, elementwise, halves to the even neighbor.",
        ("Numbers to round; complex numbers are rounded by parts.",),
        "round floor ceil trunc",
    ),
    "signbit": Text(
        "Test whether the sign bit is set, elementwise.",
        ("Real numbers; the sign bit of -0.0 is set.",),
        "sign copysign",
    ),
    "copysign": Text(
        "Combine the magnitude of one operand with the sign of another, elementwise.",
        ("Numbers whose magnitude is used.", "Numbers whose sign is used."),
        "signbit sign abs",
    ),
    "nextafter": Text(
        "Find the next floating-point number in a direction, elementwise.",
        ("Numbers to start from.", "Direction in which to look."),
        "spacing finfo",
    ),
    "heaviside": Text(
        "Compute the Heaviside step function, elementwise.",
        ("Position, relative to the step.", "Value at the step, where `{0}` is 0."),
        "sign where",
        "The function is 0 below the step, `{1}` at the step, and 1 above it.",
    ),
    "frexp": Text(
        "Split numbers into mantissa and binary exponent, elementwise.",
        ("Real numbers to split.",),
        "ldexp modf log2",
        "The number is `mantissa * 2**exponent`, with the size of the mantissa in [0.5, 1), or 0.",
    ),
    "real": Text(
        "Take the real part of complex numbers, elementwise.",
        ("Numbers; real ones are returned as they are.",),
        "imag conj angle abs",
    ),
    "imag": Text(
        "Take the imaginary part of complex numbers, elementwise.",
        ("Numbers; the imaginary part of real ones is 0.",),
        "real conj angle abs",
    ),
    "conj": Text(
        "Compute the complex conjugate, elementwise.",
        ("Numbers; real ones are returned as they are.",),
        "real imag angle",
    ),
    # --- comparison, logic, bits
    "equal": Text("Test for equality, elementwise.", _PAIR, "not_equal isclose array_equal"),
    "not_equal": Text("Test for inequality, elementwise.", _PAIR, "equal isclose"),
    "less": Text(
        "Test whether the first operand is smaller, elementwise.",
        _PAIR,
        "less_equal greater minimum",
        _COMPLEX_ORDER,
    ),
    "less_equal": Text(
        "Test whether the first operand is smaller or equal, elementwise.",
        _PAIR,
        "less greater_equal",
        _COMPLEX_ORDER,
    ),
    "greater": Text(
        "Test whether the first operand is larger, elementwise.",
        _PAIR,
        "greater_equal less maximum",
        _COMPLEX_ORDER,
    ),
    "greater_equal": Text(
        "Test whether the first operand is larger or equal, elementwise.",
        _PAIR,
        "greater less_equal",
        _COMPLEX_ORDER,
    ),
    "maximum": Text(
        "Take the larger of two operands, elementwise, or nan if one of them is nan.",
        _PAIR,
        "minimum fmax max clip",
        _COMPLEX_ORDER,
    ),
    "minimum": Text(
        "Take the smaller of two operands, elementwise, or nan if one of them is nan.",
        _PAIR,
        "maximum fmin min clip",
        _COMPLEX_ORDER,
    ),
    "fmax": Text(
        "Take the larger of two operands, elementwise, ignoring nan.",
        _PAIR,
        "maximum fmin nanmax",
        "If one operand is nan, the result is the other one.",
    ),
    "fmin": Text(
        "Take the smaller of two operands, elementwise, ignoring nan.",
        _PAIR,
        "minimum fmax nanmin",
        "If one operand is nan, the result is the other one.",
    ),
    "logical_and": Text(
        "Test whether both operands are true, elementwise.", _TRUTHS, "logical_or bitwise_and all"
    ),
    "logical_or": Text(
        "Test whether at least one operand is true, elementwise.",
        _TRUTHS,
        "logical_and bitwise_or any",
    ),
    "logical_xor": Text(
        "Test whether exactly one operand is true, elementwise.",
        _TRUTHS,
        "logical_or bitwise_xor not_equal",
    ),
    "logical_not": Text(
        "Test whether the operand is false, elementwise.",
        ("Condition to negate; nonzero is true.",),
        "logical_and bitwise_not",
    ),
    "bitwise_and": Text(
        "Compute the bitwise AND, elementwise.", _BITS, "bitwise_or bitwise_xor logical_and"
    ),
    "bitwise_or": Text(
        "Compute the bitwise OR, elementwise.", _BITS, "bitwise_and bitwise_xor logical_or"
    ),
    "bitwise_xor": Text(
        "Compute the bitwise exclusive OR, elementwise.",
        _BITS,
        "bitwise_and bitwise_or logical_xor",
    ),
    "bitwise_not": Text(
        "Invert every bit, elementwise.",
        ("Integers, or bools, which are negated.",),
        "bitwise_and bitwise_xor logical_not",
    ),
    "left_shift": Text(
        "Shift bits to the left, elementwise, filling with zeros.",
        _SHIFTED,
        "right_shift multiply",
        "Shifting by as many bits as the dtype has, or more, gives 0.",
    ),
    "right_shift": Text(
        "Shift bits to the right, elementwise.",
        _SHIFTED,
        "left_shift floor_divide",
        "Signed integers are filled with copies of the sign bit, unsigned ones with zeros.",
    ),
    "bitwise_count": Text(
        "Count the bits that are one in the absolute value, elementwise.",
        ("Integers or bools whose bits are counted.",),
        "bitwise_and unpackbits",
    ),
    "isnan": Text(
        "Test for nan, elementwise.",
        ("Numbers; a complex number is nan if one of its parts is.",),
        "isfinite isinf nan_to_num",
    ),
    "isinf": Text(
        "Test for positive or negative infinity, elementwise.",
        ("Numbers; a complex number is infinite if one of its parts is.",),
        "isposinf isneginf isfinite isnan",
    ),
    "isfinite": Text(
        "Test for being neither infinite nor nan, elementwise.",
        ("Numbers; both parts of a complex number have to be finite.",),
        "isinf isnan nan_to_num",
    ),
    "iscomplex": Text(
        "Test for a nonzero imaginary part, elementwise.",
        ("Numbers whose imaginary part is compared with 0.",),
        "isreal iscomplexobj",
        "The values decide; for the dtype, use `iscomplexobj`.",
    ),
    "isreal": Text(
        "Test for an imaginary part of zero, elementwise.",
        ("Numbers whose imaginary part is compared with 0.",),
        "iscomplex isrealobj",
        "The values decide; for the dtype, use `isrealobj`.",
    ),
}
TEXTS |= {
    short: TEXTS[name]
    for short, name in [
        ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("atan2", "arctan2"),
        ("asinh", "arcsinh"), ("acosh", "arccosh"), ("atanh", "arctanh"),
    ]
}  # fmt: skip

# Summaries of functions that are documented elsewhere, for the sections "See Also".
_ELSEWHERE = {
    "all": "Test whether all elements along the given axes are true.",
    "angle": "Compute the angle of complex numbers, elementwise.",
    "any": "Test whether any element along the given axes is true.",
    "argmax": "Find the index of the maximum along an axis.",
    "argmin": "Find the index of the minimum along an axis.",
    "argsort": "Return the indices that sort an array.",
    "array_equal": "Test whether two arrays have the same shape and elements.",
    "clip": "Limit the elements of an array to an interval.",
    "cumprod": "Compute the cumulative product along an axis.",
    "cumsum": "Compute the cumulative sum along an axis.",
    "cumulative_prod": "Compute the cumulative product along an axis, as in the array API.",
    "cumulative_sum": "Compute the cumulative sum along an axis, as in the array API.",
    "diff": "Compute the n-th differences of neighbors along an axis.",
    "finfo": "Return the limits of a floating dtype, such as `eps`, `max` and `tiny`.",
    "isclose": "Test whether two operands are equal within a tolerance, elementwise.",
    "iscomplexobj": "Test whether an array or number has a complex dtype.",
    "isneginf": "Test for negative infinity, elementwise.",
    "isposinf": "Test for positive infinity, elementwise.",
    "isrealobj": "Test whether an array or number has a dtype that is not complex.",
    "kaiser": "Return the Kaiser window, whose shape is given by a parameter.",
    "ldexp": "Multiply by a power of two, elementwise.",
    "linalg.norm": "Compute the norm of vectors or matrices.",
    "matmul": "Multiply matrices in the last two axes.",
    "max": "Find the largest element along the given axes, or nan if there is a nan.",
    "mean": "Compute the arithmetic mean along the given axes.",
    "min": "Find the smallest element along the given axes, or nan if there is a nan.",
    "modf": "Split numbers into fraction and whole part, elementwise.",
    "nan_to_num": "Replace nan and infinities by finite numbers.",
    "nanargmax": "Find the index of the maximum along an axis, ignoring nan.",
    "nanargmin": "Find the index of the minimum along an axis, ignoring nan.",
    "nancumprod": "Compute the cumulative product along an axis, treating nan as one.",
    "nancumsum": "Compute the cumulative sum along an axis, treating nan as zero.",
    "nanmax": "Find the maximum along the given axes, ignoring nan.",
    "nanmean": "Compute the arithmetic mean along the given axes, ignoring nan.",
    "nanmin": "Find the minimum along the given axes, ignoring nan.",
    "nanprod": "Compute the product of the elements along the given axes, ignoring nan.",
    "nansum": "Compute the sum of the elements along the given axes, ignoring nan.",
    "power": "Raise the first operand to the power of the second, elementwise.",
    "prod": "Multiply the elements along the given axes.",
    "round": "Round to a number of decimals, with halves to the even neighbor.",
    "spacing": "Compute the distance to the next number away from zero, elementwise.",
    "sum": "Add up the elements along the given axes.",
    "trapezoid": "Integrate along an axis by the trapezoidal rule.",
    "unpackbits": "Unpack each byte into eight bits.",
    "unravel_index": "Convert flat indices to one index for each axis of a shape.",
    "where": "Choose elements from two operands by a condition, or find where it is true.",
}


def refused(name: str) -> str:
    """Return the kinds of dtypes, out of "bfc", that a function does not accept."""
    return "".join([kind for kind, names in REFUSED.items() if name in names.split()])


def see_also(related: str) -> list[str]:
    """Return the section of related functions, given by names, with a line about each."""
    lines = ["", "See Also", "--------"]
    for name in related.split():
        summary = TEXTS[name].summary if name in TEXTS else _ELSEWHERE[name]
        lines.append(f"{name} : {summary}")
    return lines


def _result_dtype(name: str, to_floats: bool, truths: bool, keeps_bools: bool, two: bool) -> str:
    """Return the sentence about the dtype of the result."""
    if name in _OWN:
        return _OWN[name]
    if truths:
        return "The dtype is bool."
    if to_floats:
        float_kinds = "floating" if "c" in refused(name) else "floating and complex"
        return (
            f"Integers and bools give the default float dtype; {float_kinds} dtypes are unchanged."
        )
    if not keeps_bools:
        return "Bools give int32; other dtypes are unchanged."
    return "The dtype is the promoted dtype." if two else "The dtype is that of `{0}`."


def _dtype_errors(name: str) -> list[str]:
    if name in ("gcd", "lcm"):
        return ["ValueError", "    If the promoted dtype is not an integer dtype."]
    wrong = " or ".join([_KINDS[kind] for kind in refused(name)])
    return ["UnsupportedDtypeError", f"    If the promoted dtype is {wrong}."] if wrong else []


def ufunc_doc(name: str, prepare: str, parameters: str, example: str) -> str:
    """Return the docstring of a function; `prepare` is the name of its promotion function."""
    text, kinds = TEXTS[name], refused(name)
    operands = parameters.removesuffix(", /").split(", ")
    two = len(operands) == 2
    result = example.split(" -> ")[1]
    truths = "T" in result or "F" in result
    to_floats = prepare in ("inexact", "real_inexact", "_real_strong", "_logs") and not truths
    keeps_bools = prepare != "numeric" or "b" in kinds
    lines = [text.summary, "", "Parameters", "----------"]
    for operand, description in zip(operands, text.operands, strict=True):
        lines += [f"{operand} : array_like", "    " + _with_names(description, operands)]
    first, *more = _RESULTS.get(name, ["Array"])
    lines += ["", "Returns", "-------", first]
    lines += ["    " + _with_names(line, operands) for line in more]
    shape = "the broadcast shape of the operands" if two else f"the shape of `{operands[0]}`"
    types = _result_dtype(name, to_floats, truths, keeps_bools, two)
    which = "Each has" if more else "Array with"
    lines += [f"    {which} {shape}. {_with_names(types, operands)}"]
    lines += ["", "Raises", "------", "{raises_operand}", *_dtype_errors(name)]
    lines += ["{raises_broadcast}"] * two
    lines += [*see_also(text.related), "", "Notes", "-----"]
    lines += [_with_names(text.note, operands), ""] if text.note else []
    promotes = two and "f" not in kinds
    note = "{note_inexact}" if to_floats else "{note_promotion}" if promotes else "{note_ufunc}"
    return _finish_docstring([*lines, note], name, example)


# Kinds of reductions -> parameters, what is returned, errors and notes.
_REDUCTIONS = {
    "total": (
        "{a} {axes_reduced} {dtype_sum} {out} {keepdims} {initial} {where} {promote_integers}",
        "{}, with the shape of `a` without the reduced axes.",
        [
            "ValueError",
            "    If an axis is out of bounds or given twice, `where` is not bool or does "
            "not broadcast, or `initial` is not a scalar.",
        ],
        "Bools and narrow signed integers are widened to the default integer dtype, int32 (int64 "
        "with `jax_enable_x64`), and narrow unsigned integers to uint32 (uint64). Other dtypes "
        "stay; float16 and bfloat16 are accumulated in float32.",
    ),
    "extreme": (
        "{a} {axes_reduced} {out} {keepdims} {initial} {where}",
        "{}, with the shape of `a` without the reduced axes, and the dtype of `a`.",
        [
            "ValueError",
            "    If the array is empty and `initial` is not given, `where` is given without "
            "`initial` or is not bool, `initial` is not a scalar, or an axis is out of bounds.",
        ],
        "Complex numbers are ordered by real part, then by imaginary part.",
    ),
    "truth": (
        "{a} {axes_reduced} {out} {keepdims} {where}",
        "{}, as bools with the shape of `a` without the reduced axes.",
        [
            "ValueError",
            "    If an axis is out of bounds, or `where` is not bool or does not broadcast.",
        ],
        "Numbers other than zero are true, nan included.",
    ),
    "place": (
        "{a} {axis_or_flat} {out} {keepdims}",
        "{}, with the shape of `a` without the axis. The dtype is the default integer, int32 "
        "(int64 with `jax_enable_x64`).",
        [
            "ValueError",
            "    If the axis has no elements, or the axis is out of bounds.",
        ],
        "If several elements are equal, the index is that of the first one.",
    ),
}


def reduction_doc(
    summary: str, kind: str, name: str, result: str, related: str, example: str, note: str = ""
) -> str:
    """Return the docstring of a reduction; `kind` is a key of `_REDUCTIONS`."""
    parameters, returned, errors, kinds_note = _REDUCTIONS[kind]
    blocks = parameters.split()
    if kind == "total" and name.startswith("nan"):
        blocks.remove("{promote_integers}")
    lines = [summary, "", "Parameters", "----------", *blocks]
    lines += ["", "Returns", "-------", "Array", f"    {returned.format(result)}"]
    lines += ["", "Raises", "------"]
    lines += ["{raises_no_complex}" if kind == "place" else "{raises_not_array}"]
    lines += [*errors, "{raises_out}", *see_also(related)]
    lines += ["", "Notes", "-----", f"{kinds_note} {note}".strip()]
    return _finish_docstring(lines, name, example)


def cumulative_doc(summary: str, result: str, name: str, related: str, example: str) -> str:
    """Return the docstring of a cumulative sum or product."""
    lines = [summary, "", "Parameters", "----------", "{a}", "{axis_or_flat}", "{dtype_sum}"]
    lines += ["{out}", "", "Returns", "-------", "Array"]
    lines += [f"    {result}, with the shape of `a`, or of the flattened `a` if `axis` is None."]
    lines += ["", "Raises", "------", "{raises_not_array}", "ValueError"]
    lines += ["    If the axis is out of bounds.", "{raises_out}", *see_also(related)]
    lines += ["", "Notes", "-----"]
    lines += ["Bools give int32 (int64 with `jax_enable_x64`). Other dtypes are unchanged, also "
              "int8 and int16, which NumPy widens."]  # fmt: skip
    return _finish_docstring(lines, name, example)


def _with_names(line: str, operands: list[str]) -> str:
    return line.format(*operands) if "{" in line else line


def _finish_docstring(lines: list[str], name: str, example: str) -> str:
    """Break long lines, insert the blocks of shared text and append the example."""
    parts: list[str] = []
    for line in lines:
        if line[:1] == "{":
            parts.append(BLOCKS[line[1:-1]].replace("\n", "\n    "))
        elif len(line) > 96:
            parts += _break_line(line)
        else:
            parts.append(line)
    return documented("\n    ".join(parts).replace("\n    \n", "\n\n"), name, example)


def _break_line(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    lines = []
    while len(line) > 96:
        at = line.rfind(" ", 0, 96)
        lines.append(line[:at])
        line = indent + line[at + 1 :]
    return [*lines, line]
