"""The table of scalar builders over LLVM IR; needs llvmlite only.

In: nothing. Out: ``UNARY``, ``BINARY`` (float builders by name) and ``COMPLEX`` (builders over
pairs of doubles). Names that are missing here for a type have no meaning for it.
"""

from __future__ import annotations

from .math import arc, basic, bessel, cplx, cpower, exp, log, logsum, normal, power, special, trig
from .math.ir import copysign, fabs, floor, sqrt

UNARY = {
    "exp": exp.exp,
    "exp2": exp.exp2,
    "expm1": exp.expm1,
    "logistic": exp.logistic,
    "silu": exp.silu,
    "mish": exp.mish,
    "tanh_law": exp.tanh_law,
    "tanh_gelu": exp.tanh_gelu,
    "tanh": exp.tanh,
    "sinh": exp.sinh,
    "cosh": exp.cosh,
    "log": log.log,
    "log2": log.log2,
    "log10": log.log10,
    "log1p": log.log1p,
    "asinh": log.asinh,
    "acosh": log.acosh,
    "atanh": log.atanh,
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "sin_pi": trig.sin_pi,
    "asin": arc.asin,
    "acos": arc.acos,
    "atan": arc.atan,
    "cbrt": power.cbrt,
    "rsqrt": power.rsqrt,
    "sqrt": sqrt,
    "erf": special.erf,
    "erfc": special.erfc,
    "normal_law": special.normal_law,
    "normal_gelu": special.normal_gelu,
    "erf_inv": special.erf_inv,
    "lgamma": special.lgamma,
    "digamma": special.digamma,
    "bessel_i0": bessel.bessel_i0,
    "bessel_i0e": bessel.bessel_i0e,
    "bessel_i1": bessel.bessel_i1,
    "bessel_i1e": bessel.bessel_i1e,
    "erfcx": normal.erfcx,
    "log_ndtr": normal.log_ndtr,
    "ndtri": normal.ndtri,
    "abs": fabs,
    "floor": floor,
    "ceil": basic.ceil,
    "trunc": basic.trunc,
    "round_even": basic.round_even,
    "round_away": basic.round_away,
    "sign": basic.sign,
}
BINARY = {
    "pow": power.pow,
    "exp_difference": exp.exp_difference,
    "logaddexp": logsum.logaddexp,
    "logaddexp2": logsum.logaddexp2,
    "atan2": arc.atan2,
    "digamma_rise": special.digamma_rise,
    "fmax": basic.fmax,
    "fmin": basic.fmin,
    "rem": basic.fmod,
    "copysign": copysign,
}
COMPLEX = {
    "exp": cplx.cexp,
    "exp2": cplx.cexp2,
    "expm1": cplx.cexpm1,
    "log": cplx.clog,
    "log1p": cplx.clog1p,
    "logistic": cplx.clogistic,
    "sqrt": cplx.csqrt,
    "rsqrt": cplx.crsqrt,
    "sin": cplx.csin,
    "sin_pi": cplx.csin_pi,
    "cos": cplx.ccos,
    "tan": cplx.ctan,
    "sinh": cplx.csinh,
    "cosh": cplx.ccosh,
    "tanh": cplx.ctanh,
    "asin": cplx.casin,
    "acos": cplx.cacos,
    "atan": cplx.catan,
    "asinh": cplx.casinh,
    "acosh": cplx.cacosh,
    "atanh": cplx.catanh,
    "sign": cplx.csign,
}
COMPLEX_BINARY = {"pow": cpower.cpow, "cdiv": cplx.div, "fmax": cplx.cmax, "fmin": cplx.cmin}
# Squares of parts are in range, and doubles have digits to spare.
COMPLEX64_BINARY = {**COMPLEX_BINARY, "cdiv": cplx.narrow_div, "pow": cpower.narrow_pow}
__all__ = ["BINARY", "COMPLEX", "COMPLEX64_BINARY", "COMPLEX_BINARY", "UNARY"]
