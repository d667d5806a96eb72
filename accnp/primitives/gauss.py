"""Derivatives of Gauss's hypergeometric function by its parameters, which have no closed form.

The functions take and return arrays and compute in float64. They use the power series up to 1/2
and, beyond, Taylor series of the differential equation in steps that halve the distance to 1
(NIST's Digital Library of Mathematical Functions, 15.2.1, 15.4.20, 15.8.1, 15.10.1). The ops
`hyp2f1_grad_a`, `_b` and `_c` are declared from them; `hyp2f1` uses these in its JVP rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lazy_imports import imported
from accnp.primitives.elementwise import like
from accnp.primitives.kummer import derivative_op, inverse_gamma

TERMS = 2000  # of a series; 60 are sufficient unless parameters are in the hundreds

# Arrays have four rows: the value, and its derivatives by a, b and c.


def _multiply(value: np.ndarray, derivatives: Sequence[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the product of a number, with given derivatives by a, b and c, and an array x."""
    out = value * x
    for row, derivative in zip(out[1:], derivatives, strict=True):
        row += derivative * x[0]
    return out


def _has_converged(x: np.ndarray, total: np.ndarray) -> bool:
    return bool(((np.abs(x) <= 1e-17 * np.abs(total)) | ~np.isfinite(total)).all())


def _sum_series(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the function at z in 0..1/2, and z times its derivative by z."""
    term = np.zeros((4, z.size))
    term[0] = 1
    total, moved = term.copy(), np.zeros_like(term)
    for n in range(TERMS):
        step = z / ((n + 1) * (c + n))
        ratio = step * (a + n) * (b + n)
        term = _multiply(ratio, (step * (b + n), step * (a + n), -ratio / (c + n)), term)
        total, moved = total + term, moved + (n + 1) * term
        if n > 2 and _has_converged(term, total) and _has_converged((n + 1) * term, moved):
            break
    return total, moved


def _taylor_step(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    w: np.ndarray | float,
    t: np.ndarray,
    f: np.ndarray,
    derivative: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the function and its derivative by z at 1 - w + t, from those at 1 - w."""
    z = 1 - w
    last, term = f, t * derivative
    total, moved = last + term, term.copy()
    for n in range(TERMS):
        size = 1 / (z * w * (n + 2) * (n + 1))
        far, near = size * t * t, size * t * (n + 1)
        after = _multiply(far * (n + a) * (n + b), (far * (n + b), far * (n + a), 0 * far), last)
        linear = (1 - 2 * z) * n + c - (a + b + 1) * z
        after -= _multiply(near * linear, (-near * z, -near * z, near), term)
        last, term = term, after
        total, moved = total + term, moved + (n + 2) * term
        if n > 2 and _has_converged(term, total) and _has_converged(last, total):
            break
    return total, moved / t


def _evaluate(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, z: np.ndarray, w: np.ndarray
) -> np.ndarray:
    """Return the function with its derivatives by a, b and c at z in [0, 1), where w is 1 - z."""
    f, derivative = _sum_series(a, b, c, np.minimum(z, 0.5))
    derivative = 2 * derivative  # divides by z = 1/2; only the derivative at 1/2 is used
    at, here = np.flatnonzero(w < 0.5), 0.5
    while at.size:
        t = np.minimum(here - w[at], here / 2)
        f[:, at], derivative[:, at] = _taylor_step(
            a[at], b[at], c[at], here, t, f[:, at], derivative[:, at]
        )
        here /= 2
        at = at[w[at] < here]
    return f


def _derivatives_at_one(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Differentiate gamma(c) gamma(c - a - b) / (gamma(c - a) gamma(c - b)) by a, b and c."""
    special = imported("scipy.special")
    rest = c - a - b
    size = np.where(rest > 0, special.gamma(c) * special.gamma(rest), np.nan)
    (u, du), (v, dv) = inverse_gamma(c - a), inverse_gamma(c - b)
    psi = special.digamma(rest) * u * v
    by_c = special.digamma(c) * u * v + psi + du * v + u * dv
    return size * np.stack([-psi - du * v, -psi - u * dv, by_c])


def _derivatives(*operands: np.ndarray) -> np.ndarray:
    """Return the derivatives by a, b and c for x up to 1, and nan beyond."""
    a, b, c, x = (np.ravel(v) for v in operands)
    turned = b > a  # for x < 0, choose the transformation with the smaller exponent
    a, b = np.where(turned, b, a), np.where(turned, a, b)
    derivatives = np.full((3, x.size), np.nan)
    at = np.flatnonzero((x >= 0) & (x < 1))
    derivatives[:, at] = _evaluate(a[at], b[at], c[at], x[at], 1 - x[at])[1:]
    at = np.flatnonzero(x == 1)
    derivatives[:, at] = _derivatives_at_one(a[at], b[at], c[at])
    # (1 - x)**-a F(a, c - b, c, x / (x - 1))
    at = np.flatnonzero((x < 0) & np.isfinite(x))
    p, q, r, y = a[at], b[at], c[at], x[at]
    value, by_a, by_b, by_c = _evaluate(p, r - q, r, y / (y - 1), 1 / (1 - y))
    size = (1 - y) ** -p
    derivatives[:, at] = size * (by_a - np.log1p(-y) * value), -size * by_b, size * (by_b + by_c)
    derivatives[:2] = np.where(turned, derivatives[1::-1], derivatives[:2])
    return derivatives.reshape(3, *operands[0].shape)


def _declare(name: str, which: int) -> None:
    def by_x(a: Node, b: Node, c: Node, x: Node) -> Node:
        # The derivative of a b / c F(a + 1, b + 1, c + 1, x), which is the derivative by x, by the
        # parameter.
        up = *(o.add(p, like(p, 1)) for p in (a, b, c)), x
        ratio = o.div(o.mul(a, b), c)
        part = (o.div(b, c), o.div(a, c), o.neg(o.div(ratio, c)))[which]
        return o.add(o.mul(part, o.hyp2f1(*up)), o.mul(ratio, getattr(o, name)(*up)))

    derivative_op(name, "hyp2f1", "abc", _derivatives, which, by_x)


for _which, _parameter in enumerate("abc"):
    _declare(f"hyp2f1_grad_{_parameter}", _which)
