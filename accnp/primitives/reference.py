"""NumPy reference implementations of map ops for which no single NumPy function agrees with JAX.

The declarations in `elementwise.py`, `conversion.py` and others pass these functions as `numpy`.
The engine runs them on the host, and tests compare kernels with them. Arrays of rank 0 may be NumPy
scalars, which have the same methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from accnp.dtypes.names import SUB_INTS
from accnp.dtypes.questions import iinfo
from accnp.lazy_imports import imported

if TYPE_CHECKING:
    from accnp.dtypes.names import DTypeLike

__all__ = [
    "cast", "clamp", "digamma_difference", "divide", "erf_inv", "exp_difference",
    "exp_near_unit_sum", "integer_pow", "lgamma", "log_near_unit_sum", "logaddexp",
    "logaddexp2", "logistic", "make_complex", "mish", "normal_gelu", "ordered_bits",
    "remainder", "rsqrt", "select_n", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "silu", "sin_pi", "special", "square", "tan", "tanh",
    "tanh_cdf", "tanh_gelu",
]  # fmt: skip


_P = ParamSpec("_P")
_R = TypeVar("_R")


def quiet(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a NumPy function so that nan, inf and overflow cause no warnings, as in kernels."""

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with np.errstate(all="ignore"):
            return fn(*args, **kwargs)

    call.__name__ = getattr(fn, "__name__", "call")
    return call


_Integers = TypeVar("_Integers")  # an array of NumPy or of CuPy


def ordered_bits(bits: _Integers) -> _Integers:
    """Return integers in the total order of the floats with these bits, which are signed integers:
    -NaN < -inf, -0.0 < 0.0, NaN > inf. The same function returns the bits of such integers.

    Arrays of CuPy are accepted, too. `compiler/library/sorts/ordered_keys.py` writes it in kernels.
    """
    integers: Any = bits
    info = np.iinfo(integers.dtype)
    return integers ^ ((integers >> (info.bits - 1)) & integers.dtype.type(info.max))


def special(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of scipy.special that keeps the dtype; SciPy is imported on first use."""

    def call(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(getattr(imported("scipy.special"), name)(x)).astype(x.dtype)

    call.__name__ = name
    return call


def make_complex(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a complex number; a + 1j * b would be nan for infinite parts."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, np.complex64))
    out.real, out.imag = a, b
    return out


def erf_inv(x: np.ndarray) -> np.ndarray:
    """Return the inverse error function; SciPy's returns 0 instead of -0 for -0."""
    return np.copysign(special("erfinv")(x), x)


def lgamma(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of |gamma(x)|; it is inf at -inf, as in C and jax."""
    return np.where(np.isneginf(x), np.inf, special("gammaln")(x)).astype(x.dtype)


@quiet
def rsqrt(x: np.ndarray) -> np.ndarray:
    """Compute the root in float32 for half precision, so that it is rounded only once."""
    return (1 / np.sqrt(x.astype(np.result_type(x, np.float32)))).astype(x.dtype)


@quiet
def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Divide; integers are truncated, x / 0 is -1, and the lowest integer over -1 is itself."""
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    q = x // safe
    if x.dtype.kind == "i":  # turn floor into truncation; abs would overflow at the lowest integer
        q = q + (((x < 0) != (safe < 0)) & (q * safe != x))
    low = x.dtype.type(-1) if x.dtype.kind == "i" else np.iinfo(x.dtype).max
    if x.dtype.kind == "i":
        q = np.where(y == -1, np.negative(x), q)
    return np.where(y == 0, low, q).astype(x.dtype)


@quiet
def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder with the sign of x; for integers, x rem 0 is x."""
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    if x.dtype.kind == "i":
        safe = np.where(safe == -1, 1, safe).astype(y.dtype)
    return np.where(y == 0, x, np.fmod(x, safe)).astype(x.dtype)


def _bit_width(x: np.ndarray) -> int:
    return x.dtype.itemsize * 8


def shift_left(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    n = _bit_width(x)
    inside = (y >= 0) & (y < n)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(x.dtype)


def shift_right_arithmetic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    n = _bit_width(x)
    inside = (y >= 0) & (y < n)
    signed = x.astype(f"i{x.dtype.itemsize}")  # unsigned numbers are shifted like signed ones, too
    return np.right_shift(signed, np.where(inside, y, n - 1).astype(signed.dtype)).astype(x.dtype)


def shift_right_logical(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    n = _bit_width(x)
    inside = (y >= 0) & (y < n)
    u = np.dtype(f"u{x.dtype.itemsize}")
    shifted = np.right_shift(x.astype(u), np.where(inside, y, 0).astype(u))
    return np.where(inside, shifted, 0).astype(u).astype(x.dtype)


def sign(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        size = np.abs(x)
        with np.errstate(all="ignore"):
            return np.where(size == 0, 0, x / size).astype(x.dtype)
    return np.where(x == 0, 0, np.sign(x)).astype(x.dtype)  # the sign of -0 is 0


@quiet
def tanh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic tangent. At infinity, the imaginary part is a zero with the sign of x's
    imaginary part, as the array API standard requires (in C, with the sign of sin(2 y))."""
    y = np.tanh(x)
    if x.dtype.kind == "c":
        y = make_complex(
            np.real(y), np.where(np.isinf(np.real(x)), np.copysign(0, np.imag(x)), np.imag(y))
        )
    return y.astype(x.dtype)


@quiet
def tan(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.tan(x)
    y = tanh(make_complex(-np.imag(x), np.real(x)))
    return make_complex(np.imag(y), -np.real(y))


@quiet
def square(x: np.ndarray) -> np.ndarray:
    """Return x * x. For complex numbers the real part is (a - b) (a + b), which does not cancel for
    parts of similar size, and 0 if one of the factors is 0."""
    if x.dtype.kind != "c":
        return np.square(x)
    a, b = np.real(x), np.imag(x)
    less, more = a - b, a + b
    real = np.where((less == 0) | (more == 0), 0, less * more)
    imag = a * b
    return make_complex(real + a.dtype.type(0), imag + imag)


@quiet
def integer_pow(x: np.ndarray, *, y: int) -> np.ndarray:
    """Return x**y by repeated squaring, in the dtype of x."""
    if y < 0:
        one = np.ones_like(x)
        return divide(one, integer_pow(x, y=-y))
    out, base = None, x
    while y:
        if y & 1:
            out = base if out is None else out * base
        y >>= 1
        if y:
            base = square(base)
    return np.ones_like(x) if out is None else out


@quiet
def logistic(x: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-x))).astype(x.dtype)


def digamma_difference(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return digamma(x + h) - digamma(x)."""
    y = x.astype(np.float64)
    digamma = special("digamma")
    return (digamma(y + h) - digamma(y)).astype(x.dtype)


@quiet
def sin_pi(z: np.ndarray) -> np.ndarray:
    """Return sin(pi z) after subtracting the nearest integer from z."""
    whole = np.rint(np.real(z))
    return (np.sin(np.pi * (z - whole)) * (1 - 2 * (whole % 2))).astype(z.dtype)


def _is_near_one(top: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(top) / 2, np.abs(total - total.dtype.type(1))) < 0.75


@quiet
def exp_near_unit_sum(x: np.ndarray, top: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.where(_is_near_one(top, total) & (x != top), np.exp(x - top), x.dtype.type(0))


@quiet
def log_near_unit_sum(rest: np.ndarray, top: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.log1p(np.where(_is_near_one(top, total), rest, total - total.dtype.type(1)))


@quiet
def exp_difference(x: np.ndarray, top: np.ndarray) -> np.ndarray:
    return np.exp(x.astype(np.float64) - top).astype(x.dtype)


@quiet
def logaddexp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.logaddexp(a.astype(np.float64), b).astype(a.dtype)


@quiet
def logaddexp2(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.logaddexp2(a.astype(np.float64), b).astype(a.dtype)


@quiet
def silu(x: np.ndarray) -> np.ndarray:
    return (x * logistic(x.astype(np.float64))).astype(x.dtype)


@quiet
def tanh_cdf(x: np.ndarray) -> np.ndarray:
    cube = x + x.dtype.type(0.044715) * x**3
    return (1 / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * cube))).astype(x.dtype)


@quiet
def tanh_gelu(x: np.ndarray) -> np.ndarray:
    return (x * tanh_cdf(x.astype(np.float64))).astype(x.dtype)


@quiet
def mish(x: np.ndarray) -> np.ndarray:
    return (x * np.tanh(np.logaddexp(x.astype(np.float64), 0))).astype(x.dtype)


@quiet
def normal_gelu(x: np.ndarray) -> np.ndarray:
    return (x * special("ndtr")(x.astype(np.float64))).astype(x.dtype)


def select_n(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(which.shape, *[c.shape for c in cases])
    index = np.broadcast_to(which.astype(np.int32), shape)
    out = np.broadcast_to(cases[0], shape)
    for k, case in enumerate(cases[1:], 1):
        out = np.where(index >= k, case, out)
    return out


@quiet
def clamp(lo: np.ndarray, x: np.ndarray, hi: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(x, lo), hi)


@quiet
def cast(x: np.ndarray, *, new_dtype: DTypeLike, **_: object) -> np.ndarray:
    """Convert; float to integer saturates and maps NaN to 0, complex to real drops a part."""
    new = np.dtype(new_dtype)
    if new.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and new.kind != "c":
        x = np.real(x)
    if x.dtype.name in SUB_INTS and (new.kind in "iu" or new.name in SUB_INTS):
        x = x.astype(np.int8)  # ml_dtypes cannot convert between small integer types
    if x.dtype.kind not in "biuc" and (new.kind in "iu" or new.name in SUB_INTS):
        wide = x.astype(np.float64)
        info = iinfo(new)
        clipped = np.clip(wide, float(info.min), float(info.max))
        inside = np.where(np.isnan(wide), 0.0, clipped)
        out = np.where(inside >= float(info.max), 0, inside).astype(new)
        return np.where(inside >= float(info.max), new.type(info.max), out).astype(new)
    return x.astype(new)
