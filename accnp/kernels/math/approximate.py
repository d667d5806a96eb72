"""The approximate units of GPUs, for fast kernels: float32 functions in one or two instructions.

In: a float ``V`` of a fast module for a GPU. Out: a ``V``. As far from the right number as NVIDIA
says: 2 ulp of exp2 and log2 (so exp and log more where their argument or result is large, or near
1), 2^-11 of tanh, an absolute 2^-21 of sine and cosine within a turn, more beyond.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .exp import RATE
from .ir import F32, V, clamp_above, fabs
from .logsum import edges, larger

__all__ = ["FAST", "FAST_BINARY", "ex2", "fast", "rcp"]

LOG2E, LN2, LOG10_2 = 1.4426950216293335, 0.6931471824645996, 0.3010300099849701


def fast(x: V) -> bool:
    """Whether a value is of a module and a type for which these are."""
    return x.single and getattr(x.b.module, "approximate", False)


def _unit(name: str) -> Callable[[V], V]:
    text = f"{name}.approx{'' if name == 'tanh' else '.ftz'}.f32 $0, $1;"

    def build(x: V) -> V:
        asm = ir.InlineAsm(ir.FunctionType(F32, [F32]), text, "=f,f")
        return V(x.b, x.b.call(asm, [x.v]))

    return build


ex2, _lg2, _sin, _cos, rcp = (_unit(n) for n in ("ex2", "lg2", "sin", "cos", "rcp"))


def _logistic(x: V) -> V:
    return rcp(ex2(x * -LOG2E) + 1.0)


def _tanh_law(x: V) -> V:
    return _logistic(x * (x * x * RATE + RATE / 0.044715))


def _logaddexp2(a: V, b: V) -> V:
    return edges(a, b, larger(a, b) + _lg2(ex2(-fabs(a - b)) + 1.0))


def _logaddexp(a: V, b: V) -> V:
    tail = _lg2(ex2(fabs(a - b) * -LOG2E) + 1.0)
    return edges(a, b, larger(a, b) + tail * LN2)


def _mish(x: V) -> V:
    e = ex2(clamp_above(x, 20.0) * LOG2E)
    n = e * (e + 2.0)
    return x * (n * rcp(n + 2.0))


FAST: dict[str, Callable[[V], V]] = {
    "exp": lambda x: ex2(x * LOG2E),
    "exp2": ex2,
    "log": lambda x: _lg2(x) * LN2,
    "log2": _lg2,
    "log10": lambda x: _lg2(x) * LOG10_2,
    "sin": _sin,
    "cos": _cos,
    "tan": lambda x: _sin(x) * rcp(_cos(x)),
    "tanh": _unit("tanh"),
    "logistic": _logistic,
    "silu": lambda x: x * _logistic(x),
    "mish": _mish,
    "tanh_law": _tanh_law,
    "rsqrt": _unit("rsqrt"),
    "sqrt": _unit("sqrt"),
}
# The precise ones of floats are in doubles.
FAST_BINARY: dict[str, Callable[[V, V], V]] = {
    "logaddexp": _logaddexp,
    "logaddexp2": _logaddexp2,
}
