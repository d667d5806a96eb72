"""Approximate functions of float32, for fast kernels on GPUs.

The functions get a float ``V`` of a module for a GPU that is compiled for speed, and return a
``V``. Most of them are one or two instructions of the approximate units, and have the errors that
`units.py` gives. The errors of exp and log are larger if their argument or result is large, or near
1. `intrinsics/scalars.py` uses the tables `FAST` and `FAST_BINARY` in place of the precise
functions if `fast` is true, and `numba/user_device.py` uses `FAST` for device functions of users.
"""

from __future__ import annotations

from collections.abc import Callable

from accnp.compiler.llvm.scalars.exp import RATE
from accnp.compiler.llvm.scalars.ir import V, clamp_above, fabs
from accnp.compiler.llvm.scalars.logsum import fix_infinite_operands, larger_operand
from accnp.compiler.llvm.scalars.units import approximate, cos, ex2, lg2, rcp, sin

__all__ = ["FAST", "FAST_BINARY", "fast"]

LOG2E, LN2, LOG10_2 = 1.4426950216293335, 0.6931471824645996, 0.3010300099849701


def fast(x: V) -> bool:
    """Return whether these functions are used for a value: a float32 in a fast kernel for a GPU."""
    return x.single and getattr(x.b.module, "approximate", False)


def _logistic(x: V) -> V:
    return rcp(ex2(x * -LOG2E) + 1.0)


def _tanh_cdf(x: V) -> V:
    return _logistic(x * (x * x * RATE + RATE / 0.044715))


def _logaddexp2(a: V, b: V) -> V:
    return fix_infinite_operands(a, b, larger_operand(a, b) + lg2(ex2(-fabs(a - b)) + 1.0))


def _logaddexp(a: V, b: V) -> V:
    tail = lg2(ex2(fabs(a - b) * -LOG2E) + 1.0)
    return fix_infinite_operands(a, b, larger_operand(a, b) + tail * LN2)


def _mish(x: V) -> V:
    e = ex2(clamp_above(x, 20.0) * LOG2E)
    n = e * (e + 2.0)
    return x * (n * rcp(n + 2.0))


FAST: dict[str, Callable[[V], V]] = {
    "exp": lambda x: ex2(x * LOG2E),
    "exp2": ex2,
    "log": lambda x: lg2(x) * LN2,
    "log2": lg2,
    "log10": lambda x: lg2(x) * LOG10_2,
    "sin": sin,
    "cos": cos,
    "tan": lambda x: sin(x) * rcp(cos(x)),
    "tanh": approximate("tanh.approx"),
    "logistic": _logistic,
    "silu": lambda x: x * _logistic(x),
    "mish": _mish,
    "tanh_cdf": _tanh_cdf,
    "rsqrt": approximate("rsqrt.approx.ftz"),
    "sqrt": approximate("sqrt.approx.ftz"),
}
# The precise functions of float32 compute in float64.
FAST_BINARY: dict[str, Callable[[V, V], V]] = {
    "logaddexp": _logaddexp,
    "logaddexp2": _logaddexp2,
}
