"""The gamma function, its logarithm, and erfcx of complex numbers, as compositions of ops.

complex64 is computed in complex128. For real parts of at least 1/2, log(gamma(z)) is the series of
Lanczos (J. SIAM Numer. Anal. B 1, 1964) with Godfrey's nine coefficients; otherwise the reflection
log(pi) - log(sin(pi z)) - loggamma(1 - z). In the upper half plane, the logarithm of the sine is
continued as log(1 - q) - i pi z + i pi / 2 - log(2) with q = exp(2 i pi z), where |q| <= 1. The
lower half plane is its mirror image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from accnp.api.arguments.convert import cast
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like, like_full
from accnp.primitives.kinds import full

__all__ = ["erfcx", "gamma", "loggamma"]

_SHIFT = 7.5
_FIRST = 0.99999999999980993
_SERIES = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
_WIDE = np.dtype(np.complex128)


def _in_doubles(f: Callable[[Node], Node]) -> Callable[[Node], Node]:
    """Compute complex64 in complex128."""

    def wide(z: Node) -> Node:
        dtype = z.aval.dtype
        return f(z) if dtype == _WIDE else cast(f(cast(z, _WIDE)), dtype)

    return wide


def _log_gamma_right_half(z: Node) -> Node:
    """Return log(gamma(z)) for real parts of at least 1/2."""
    less = o.sub(z, like(z, 1))
    terms = [o.div(like(z, c), o.add(less, like(z, k))) for k, c in enumerate(_SERIES, 1)]
    series = reduce(o.add, terms, like_full(z, _FIRST))
    t = o.add(less, like(z, _SHIFT))
    power = o.sub(o.mul(o.add(less, like(z, 0.5)), o.log(t)), t)
    return o.add(power, o.add(o.log(series), like(z, 0.5 * math.log(2 * math.pi))))


def _log_sine(z: Node) -> Node:
    """Return log(sin(pi z)) for z in the upper half plane, where it is analytic."""
    high = o.gt(o.imag(z), full((), 20.0, np.dtype(np.float64)))
    low = o.select_n(high, z, like_full(z, 0.5))  # elsewhere the sine is too large
    rest = o.mul(like(z, -2j), o.mul(o.exp(o.mul(like(z, 1j * math.pi), low)), o.sin_pi(low)))
    rest = o.select_n(high, rest, like_full(z, 1))  # 1 - exp(2 i pi z)
    turn = o.mul(like(z, -1j * math.pi), o.sub(z, like(z, 0.5)))
    return o.add(o.log(rest), o.sub(turn, like(z, math.log(2))))


@_in_doubles
def loggamma(z: Node) -> Node:
    """Return the principal branch of log(gamma(z)); nan at the poles."""
    zero = full((), 0.0, np.dtype(np.float64))
    lower = o.lt(o.imag(z), zero)
    u = o.select_n(lower, z, o.conj(z))
    left = o.lt(o.real(u), full((), 0.5, np.dtype(np.float64)))
    at_right = _log_gamma_right_half(o.select_n(left, u, o.sub(like(u, 1), u)))
    inside = o.select_n(left, like_full(u, 0.5j), u)  # where the sine is needed
    mirrored = o.sub(o.sub(like(u, math.log(math.pi)), _log_sine(inside)), at_right)
    y = o.select_n(left, at_right, mirrored)
    x = o.real(u)
    pole = o.and_(o.and_(o.eq(o.imag(u), zero), o.le(x, zero)), o.eq(o.floor(x), x))
    y = o.select_n(pole, y, like_full(y, complex(math.nan, math.nan)))
    return o.select_n(lower, y, o.conj(y))


@_in_doubles
def gamma(z: Node) -> Node:
    """gamma(z); nan at the poles."""
    return o.exp(loggamma(z))


def erfcx(z: Node) -> Node:
    """exp(z**2) erfc(z)."""
    return o.wofz(o.mul(like(z, 1j), z))
