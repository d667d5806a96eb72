"""Elementwise ops: gcd, Bessel functions, zeta and polygamma; stop_gradient and byte views.

Bessel functions, zeta and polygamma are map ops, whose scalar functions are in
`compiler/llvm/scalars/`; functions of `scipy.special` are their references. `gcd` and the byte ops
are opaque ops. The other modules of special functions use the helpers that wrap SciPy's functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from accnp import dtypes
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import ZERO, Lowering, o
from accnp.lazy_imports import imported
from accnp.primitives.elementwise import like, like_full
from accnp.primitives.kinds import binary, map_infer, move_batch_first, opaque, unary

if TYPE_CHECKING:
    from accnp.ir.op_types import Jvp, Params

_SINGLE = np.dtype(np.float32)


def scipy_function(name: str) -> Callable[..., np.ndarray]:
    """Return a function of scipy.special (imported on first use) in its last operand's dtype."""

    def call(*xs: np.ndarray) -> np.ndarray:
        special = imported("scipy.special")
        with np.errstate(all="ignore"):
            return np.asarray(getattr(special, name)(*xs)).astype(xs[-1].dtype)

    call.__name__ = name
    return call


def odd_function(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return the same for odd functions, for which SciPy returns 0 instead of -0 for -0."""
    call = scipy_function(name)

    def odd(x: np.ndarray) -> np.ndarray:
        return np.copysign(call(x), x)

    return odd


def _elementwise(name: str, dtypes: str, numpy: Callable[..., np.ndarray], jvp: Jvp) -> None:
    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
    ) -> tuple[Node, bool]:
        return getattr(o, name)(*move_batch_first(size, xs, batched)), True

    infer = map_infer(name, "same", dtypes)
    lowering = Lowering(f"iterations.{name}")
    opaque(name, lowering=lowering, infer=infer, numpy=numpy, jvp=jvp, batch=batch)


def _gcd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.gcd(a, b).astype(a.dtype)


_elementwise("gcd", "iu", _gcd, (ZERO, ZERO))
unary(
    "bessel_i0e",
    "f",
    scipy_function("i0e"),
    "bessel_i0e({0})",
    lambda t, y, x: o.mul(t, o.sub(o.bessel_i1e(x), o.mul(o.sign(x), y))),
    cost=40,
)


def _i1e_jvp(t: Node, y: Node, x: Node) -> Node:
    # The derivative i0e(x) - y * (sign(x) + 1/x) tends to 1/2 at 0.
    tiny = o.le(o.abs(x), like(x, dtypes.finfo(x.aval.dtype).eps))
    safe = o.select_n(tiny, x, like_full(x, 1))
    derivative = o.sub(o.bessel_i0e(safe), o.mul(y, o.add(o.sign(safe), o.integer_pow(safe, y=-1))))
    return o.mul(t, o.select_n(tiny, derivative, like_full(x, 0.5)))


unary(
    "bessel_i1e",
    "f",
    odd_function("i1e"),
    "bessel_i1e({0})",
    _i1e_jvp,
    cost=40,
)


@cache
def _tail_factors(count: int) -> list[float]:
    """Return B_2j / (2 j)! for j >= 1, the even coefficients of t / (exp(t) - 1)."""
    from fractions import Fraction  # takes 2 ms, so it is imported only if needed

    factors = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        parts = [c / math.factorial(n + 1 - k) for k, c in enumerate(factors)]
        factors.append(-sum(parts, Fraction(0)))
    return [float(c) for c in factors[2::2]]


def _zeta_by_order(t: Node, y: Node, s: Node, q: Node) -> Node:
    """Return the derivative of zeta by s with the Euler-Maclaurin formula (NIST's Digital Library
    of Mathematical Functions, 25.11.5). It consists of ops, so higher derivatives exist."""
    dtype = y.aval.dtype
    if dtype.itemsize < 4:
        s, q = (o.convert_element_type(x, new_dtype=_SINGLE, weak_type=False) for x in (s, q))
    first, count = (16, 12) if dtype.itemsize == 8 else (8, 8)
    one, below = like(s, 1), o.neg(s)
    derivative = None
    for k in range(first):
        at = o.add(q, like(q, k))
        term = o.mul(o.log(at), o.pow(at, below))
        derivative = term if derivative is None else o.add(derivative, term)
    # The tail after the first terms and its derivative, both divided by w**-s unless that is 0.
    w = o.add(q, like(q, first))
    size = o.pow(w, below)
    none = o.eq(size, like(size, 0))
    unknown = o.lt(s, one)
    s = o.select_n(none, s, like_full(s, 2))
    less = o.sub(s, one)
    whole = o.div(w, less)
    moved = o.neg(o.div(whole, less))
    whole = o.add(whole, like(s, 0.5))
    rising, sums = o.div(s, w), o.div(one, s)
    for j, factor in enumerate(_tail_factors(count)):
        for i in (2 * j - 1, 2 * j) if j else ():
            up = o.add(s, like(s, i))
            rising, sums = o.mul(rising, o.div(up, w)), o.add(sums, o.div(one, up))
        part = o.mul(like(s, factor), rising)
        whole, moved = o.add(whole, part), o.add(moved, o.mul(part, sums))
    derivative = o.sub(o.mul(size, o.sub(moved, o.mul(o.log(w), whole))), derivative)
    derivative = o.select_n(unknown, derivative, like_full(derivative, math.nan))
    if dtype.itemsize < 4:
        derivative = o.convert_element_type(derivative, new_dtype=dtype, weak_type=y.aval.weak_type)
    return o.mul(t, derivative)


binary("zeta", "f", scipy_function("zeta"), "zeta({0}, {1})", (
    _zeta_by_order,
    lambda t, y, x, q: o.mul(t, o.mul(o.neg(x), o.zeta(o.add(x, like(x, 1)), q))),
), cost=250)  # fmt: skip


def _unknown_order_derivative(*_: object) -> NoReturn:
    raise NotImplementedError(
        "polygamma: the derivative by the first operand, the order, is not known; got one that "
        "is differentiated; use stop_gradient, or give the function a rule with custom_jvp"
    )


binary(
    "polygamma",
    "f",
    lambda n, x: scipy_function("polygamma")(n.astype(np.float64), x),
    "polygamma({0}, {1})",
    (_unknown_order_derivative, lambda t, y, n, x: o.mul(t, o.polygamma(o.add(n, like(n, 1)), x))),
    cost=300,
)

# The identity without a derivative.
unary("stop_gradient", "biufc", np.array, "{0}", ZERO, identity=True)


def _view_infer(x: Aval, *, new_dtype: np.dtype) -> Aval:
    new = np.dtype(new_dtype)
    last = x.shape[-1] * x.dtype.itemsize // new.itemsize
    return make_aval((*x.shape[:-1], last), new)


def _view_numpy(x: np.ndarray, *, new_dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(x).view(new_dtype).copy()


def _swap_infer(x: Aval) -> Aval:
    return make_aval(x.shape, x.dtype)


def _swap_numpy(x: np.ndarray) -> np.ndarray:
    return x.byteswap()


# The bytes of the last axis, read as a dtype of another width.
opaque(
    "view_bytes",
    infer=_view_infer,
    numpy=_view_numpy,
    jvp=(ZERO,),
    batch=lambda size, xs, batched, p: (o.view_bytes(xs[0], new_dtype=p["new_dtype"]), True),
)
opaque(
    "swap_bytes",
    infer=_swap_infer,
    numpy=_swap_numpy,
    jvp=(ZERO,),
    batch=lambda size, xs, batched, p: (o.swap_bytes(xs[0]), True),
)
