"""Derivatives of Kummer's function by its parameters a and b, which have no closed form.

The functions take and return arrays and compute in float64 by series (NIST's Digital Library of
Mathematical Functions, 13.2.2, 13.2.39, 13.7.2). `derivative_op` declares ops for such derivatives,
here and in `gauss.py`; the JVP rules of `hyp1f1` and `hyp2f1` use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lazy_imports import imported
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import map_infer, move_batch_first, opaque
from accnp.primitives.special_functions import unknown

if TYPE_CHECKING:
    from accnp.ir.op_types import Params

# From here on |x|**-k decreases fast enough for the series in powers of 1 / x. Below, the terms of
# the other series and their sum do not overflow in float64.
FAR = 600.0
TERMS = 3000  # of the series in powers of x; it needs about |x| + 20 sqrt(|x|)


def _power_series(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives by a and b of the sum of (a)_n / (b)_n x**n / n!, term by term.

    This avoids the digamma function of a, which has poles where the derivative has none.
    """
    term, by_a, by_b = np.ones_like(x), np.zeros_like(x), np.zeros_like(x)
    sum_a, sum_b = by_a.copy(), by_b.copy()
    for n in range(TERMS):
        step = x / (n + 1) / (b + n)
        by_b = step * (a + n) * (by_b - term / (b + n))
        by_a = step * (by_a * (a + n) + term)
        term = step * (a + n) * term
        sum_a, sum_b = sum_a + by_a, sum_b + by_b
        small = np.abs(by_a) <= 1e-17 * np.abs(sum_a)
        small &= np.abs(by_b) <= 1e-17 * np.abs(sum_b)
        if n > 2 and (small | ~np.isfinite(sum_a) | ~np.isfinite(sum_b)).all():
            break
    return sum_a, sum_b


def inverse_gamma(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / gamma(z) and its derivative, which is finite at poles of gamma, too."""
    special = imported("scipy.special")
    pole = (z <= 0) & (z == np.floor(z))
    safe = np.where(pole, 1.0, z)
    value: np.ndarray = special.rgamma(safe)
    at_pole: np.ndarray = np.where(z % 2 == 0, 1.0, -1.0) * special.gamma(
        1 - np.where(pole, z, 0.0)
    )
    return np.where(pole, 0.0, value), np.where(pole, at_pole, -special.digamma(safe) * value)


def _asymptotic_series(
    a: np.ndarray, b: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for large negative x: gamma(b) / gamma(b - a) y**-a times a series in 1 / y,
    where y = -x."""
    special = imported("scipy.special")
    y = -x
    c = a - b + 1
    term, by_a, by_c = np.ones_like(x), np.zeros_like(x), np.zeros_like(x)
    total, sum_a, sum_c = term.copy(), by_a.copy(), by_c.copy()
    going = np.ones(x.shape, bool)
    for n in range(60):
        step = 1 / ((n + 1) * y)
        last = np.abs(term)
        by_a = step * (c + n) * (by_a * (a + n) + term)
        by_c = step * (a + n) * (by_c * (c + n) + term)
        term = step * (a + n) * (c + n) * term
        going = going & (np.abs(term) <= last)  # asymptotic series: stop when terms grow
        total = total + np.where(going, term, 0.0)
        sum_a, sum_c = sum_a + np.where(going, by_a, 0.0), sum_c + np.where(going, by_c, 0.0)
    value, derivative = inverse_gamma(b - a)
    size = special.gamma(b) * y**-a
    slope_a = -derivative * total + value * (sum_a + sum_c - np.log(y) * total)
    slope_b = derivative * total + value * (special.digamma(b) * total - sum_c)
    return size * slope_a, size * slope_b


def _derivatives(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of Kummer's function by a and b.

    The terms of the series have both signs for x < 0, so M(a, b, x) = exp(x) M(b - a, b, -x) is
    used.
    """
    shape, derivatives = x.shape, np.empty((2, x.size))
    a, b, x = (np.ravel(v) for v in (a, b, x))
    for far in (False, True):
        for turned in (False, True):
            at = np.flatnonzero(((np.abs(x) >= FAR) == far) & ((x < 0) == (turned != far)))
            if not at.size:
                continue
            p, q, z = a[at], b[at], x[at]
            by_a, by_b = (_asymptotic_series if far else _power_series)(
                q - p if turned else p, q, -z if turned else z
            )
            if turned:
                size = np.exp(z)
                by_a, by_b = -size * by_a, size * (by_a + by_b)
            derivatives[:, at] = by_a, by_b
    return derivatives[0].reshape(shape), derivatives[1].reshape(shape)


def derivative_op(
    name: str,
    of: str,
    parameters: str,
    derivatives: Callable[..., Any],
    which: int,
    by_x: Callable[..., Node],
) -> None:
    """Declare an op for the derivative of the function `of` by one of its parameters. `derivatives`
    computes those by all parameters in float64, and `by_x` is the op's derivative by x."""

    def run(*xs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return derivatives(*np.broadcast_arrays(*map(np.float64, xs)))[which].astype(
                xs[-1].dtype
            )

    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
    ) -> tuple[Node, bool]:
        return getattr(o, name)(*move_batch_first(size, xs, batched)), True

    def move_tangent(t: Node, y: Node, *xs: Node) -> Node:
        return o.mul(t, by_x(*xs))

    refused = [unknown(f"{of}, of second order", p) for p in parameters]
    opaque(
        name,
        infer=map_infer(name, "same", "f"),
        numpy=run,
        jvp=(*refused, move_tangent),
        batch=batch,
    )


def _declare(name: str, which: int) -> None:
    def by_x(a: Node, b: Node, x: Node) -> Node:
        # The derivative of a / b M(a + 1, b + 1, x), which is the derivative by x, by a or b.
        up = o.add(a, like(a, 1)), o.add(b, like(b, 1)), x
        ratio = o.div(a, b)
        part = o.div(o.hyp1f1(*up), b)
        if which:
            part = o.neg(o.mul(part, ratio))
        return o.add(part, o.mul(ratio, getattr(o, name)(*up)))

    derivative_op(name, "hyp1f1", "ab", _derivatives, which, by_x)


_declare("hyp1f1_grad_a", 0)
_declare("hyp1f1_grad_b", 1)
