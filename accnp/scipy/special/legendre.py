"""Associated Legendre functions and spherical harmonics.

Degrees are computed by the three-term recurrence, for all orders at once, starting from the closed
form where degree and order are equal. Orthonormal functions neither overflow nor underflow; the
others are computed in pairs of doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import pi, prod, sqrt
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, as_nodes, cast, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.shapes import as_int, as_static
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike
from accnp.config import enable_x64
from accnp.errors import UnsupportedDtypeError, api_boundary
from accnp.ir.op import o
from accnp.lax.control_flow.loops import scan
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array, zeros
from accnp.numpy.cumulative import cumprod
from accnp.numpy.joining import concatenate
from accnp.numpy.manipulation import broadcast_arrays, broadcast_to, swapaxes
from accnp.numpy.padding import pad
from accnp.numpy.selection import where

__all__ = ["lpmn", "lpmn_values", "sph_harm_y"]

Pair = tuple[Array, Array]  # a number and its rounding error


def _to_float64(x: Array) -> Array:
    return wrap(cast(x._node, np.dtype(np.float64)))


def _orthonormal(top: int, x: Array, sine: Array) -> Array:
    """Return orthonormal functions up to a degree, [order, degree, points]; 0 if order > degree.

    Computed in float64, since terms cancel near zeros. `sine` is sqrt(1 - x**2).
    """
    m, n = np.arange(top + 1.0), np.arange(top + 1.0)[:, None]
    k = np.arange(1.0, top + 1)
    with np.errstate(all="ignore"):
        once = np.sqrt((4 * n * n - 1) / (n * n - m * m))
        twice = np.sqrt((2 * n + 1) * ((n - 1) ** 2 - m * m) / ((2 * n - 3) * (n * n - m * m)))
        once, twice = np.where(m < n, once, 0), np.where(m < n - 1, twice, 0)
    factors = np.append(1, np.cumprod(-np.sqrt(1 + 0.5 / k))) * 0.5 / sqrt(pi)
    sines = broadcast_to(sine, (top, x.size))
    powers = cumprod(concatenate([x[None] * 0 + 1, sines]), axis=0)
    diagonal = array(factors, dtype=x.dtype)[:, None] * powers
    none = zeros((top + 1, x.size), x.dtype)

    def degree(carry: Any, row: Any) -> Any:
        before, earlier = carry
        a, b, here = row
        value = a[:, None] * x * before - b[:, None] * earlier + here[:, None] * diagonal
        return (value, before), value

    rows = [array(v, dtype=x.dtype) for v in (once, twice, np.eye(top + 1))]
    return swapaxes(scan(degree, (none, none), rows)[1], 0, 1)


def _root(x: Array) -> Array:
    """Return sqrt(1 - x**2), from exact differences."""
    return uf.sqrt((1 - x) * (1 + x))


def _product(a: Pair, b: Pair) -> Pair:
    """The product of two pairs, arrays of one shape."""
    (x, x_lo), (y, y_lo) = a, b
    p = x * y
    lost = wrap(o.fma(x._node, y._node, uf.negative(p)._node))
    return p, lost + (x * y_lo + x_lo * y)


def _difference(a: Pair, b: Pair) -> Pair:
    (x, x_lo), (y, y_lo) = a, b
    s = x - y
    t = s - x
    low = ((x - (s - t)) - (y + t)) + (x_lo - y_lo)
    y = s + low
    return y, low - (y - s)


def _pairs(values: Sequence[Fraction | int]) -> np.ndarray:
    """Return exact numbers as doubles and their rounding errors, [2, ...]."""
    near = [float(v) for v in values]
    return np.array([near, [float(v - Fraction(w)) for v, w in zip(values, near, strict=True)]])


def _derivatives(top: int, x: Array) -> Pair:
    """Return derivatives of Legendre polynomials, [order, degree, points], as pairs of doubles.

    They are the associated functions without powers of -sqrt(1 - x**2), and satisfy the same
    recurrence. Its terms cancel near zeros, so that twice the digits are needed.
    """
    orders, none = range(top + 1), zeros((top + 1, x.size), x.dtype)
    shape = none.shape
    rows: list[Any] = []
    for n in orders:
        once = _pairs([Fraction(2 * n - 1, n - m) if m < n else 0 for m in orders])
        twice = _pairs([Fraction(n + m - 1, n - m) if m < n - 1 else 0 for m in orders])
        first = [float(prod(range(1, 2 * n, 2))) if m == n else 0.0 for m in orders]
        rows.append([*once, *twice, first])
    wide = broadcast_to(x, shape)

    def degree(carry: Any, row: Any) -> Any:
        before, earlier = carry
        a, a_lo, b, b_lo, here = (broadcast_to(row[k][:, None], shape) for k in range(5))
        step = _product(_product(before, (wide, none)), (a, a_lo))
        value, low = _difference(step, _product(earlier, (b, b_lo)))
        value = value + here
        return ((value, low), before), (value, low)

    start = ((none, none), (none, none))
    value, low = scan(degree, start, array(np.array(rows), dtype=x.dtype))[1]
    return swapaxes(value, 0, 1), swapaxes(low, 0, 1)


def _below_one(x: Array) -> Pair:
    """1 - x**2"""
    one, none = x * 0 + 1, x * 0
    return _difference((one, none), _product((x, none), (x, none)))


def _powers(top: int, x: Array) -> Array:
    """Return the powers 0 to top of sqrt(1 - x**2), [power, points]; even ones without a root."""
    square = _below_one(x)[0]
    squares = broadcast_to(square, (top // 2, x.size))
    even = cumprod(concatenate([x[None] * 0 + 1, squares]), axis=0)
    both = concatenate([even[:, None], (even * uf.sqrt(square))[:, None]], axis=1)
    return both.reshape(-1, x.size)[: top + 1]


def _signs(top: int) -> Array:
    return array((-1.0) ** np.arange(top + 1))[:, None]


def _apply_signs(p: Array, powers: Array) -> Array:
    """Convert derivatives of polynomials to associated functions; zeros have no sign."""
    return p * (_signs(p.shape[0] - 1) * powers)[:, None] + 0.0


def _function_derivatives(p: Pair, x: Array, powers: Array) -> Array:
    """Return the derivatives of the associated functions from the result of `_derivatives`.

    They are a power of the root, two less than the order, times (1 - x**2) p' - order x p. Only for
    order 1, whose derivative is infinite at both ends, this divides by the root.
    """
    top, shape = p[0].shape[0] - 1, p[0].shape
    above, above_lo = (pad(part, ((0, 1), (0, 0), (0, 0)))[1:] for part in p)
    if not top:
        return above
    none = zeros(shape, x.dtype)
    below = _below_one(x)
    first = _product((broadcast_to(below[0], shape), broadcast_to(below[1], shape)),
                     (above, above_lo))  # fmt: skip
    order = broadcast_to(array(np.arange(top + 1.0))[:, None, None], shape)
    second = _product(_product(p, (broadcast_to(x, shape), none)), (order, none))
    parts = _difference(first, second)[0] * _signs(top)[:, :, None]
    once = parts[1:2] / powers[1]
    inside = np.arange(top + 1)[:, None] <= np.arange(top + 1)
    derivatives = concatenate([above[:1], once, parts[2:] * powers[: top - 1, None]])
    return where(inside[:, :, None], derivatives, 0)


def _check_arguments(name: str, m: Any, n: Any, z: Any) -> tuple[int, Array]:
    x = wrap(as_node(z, name))
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name}: z must be of float32 or float64; got {x.dtype.name}; convert with astype"
        )
    if x.ndim != 1:
        raise ValueError(f"{name}: z must have rank 1; got shape {x.shape}; use z.ravel()")
    order, degree = as_int(m, name, "m"), as_int(n, name, "n")
    if order != degree:
        raise NotImplementedError(
            f"{name}: m and n must be equal; got m={order}, n={degree}; "
            "pass the greater for both, and take a part"
        )
    return degree, x


@api_boundary
@promotes_inside
@compiled_if_small("z")
def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Compute associated Legendre functions of the first kind and their derivatives.

    Parameters
    ----------
    m : int
        Largest order, static.
    n : int
        Largest degree, the same number; static.
    z : array_like
        Points from -1 to 1, of shape (k,) and dtype float32 or float64.

    Returns
    -------
    p : Array
        Values of shape (m + 1, n + 1, k); 0 where the order is larger than the degree.
    dp : Array
        Derivatives, likewise.

    Raises
    ------
    {raises_lpmn}

    See Also
    --------
    lpmn_values : The values only, normalized if wanted.
    sph_harm_y : Spherical harmonics.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.special.lpmn(1, 1, jnp.array([0.0]))[0][:, :, 0]
    Array([[ 1.,  0.],
           [ 0., -1.]], dtype=float32)
    """
    degree, x = _check_arguments("special.lpmn", m, n, z)
    with enable_x64(True):
        wide = _to_float64(x)
        parts, powers = _derivatives(degree, wide), _powers(degree, wide)
        values = _apply_signs(parts[0], powers)
        derivatives = _function_derivatives(parts, wide, powers)
    return values.astype(x.dtype), derivatives.astype(x.dtype)


@api_boundary
@promotes_inside
@compiled_if_small("z")
def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Compute associated Legendre functions of the first kind.

    Parameters
    ----------
    m : int
        Largest order, static.
    n : int
        Largest degree, the same number; static.
    z : array_like
        Points from -1 to 1, of shape (k,) and dtype float32 or float64.
    is_normalized : bool
        Whether to multiply by the factors that make spherical harmonics orthonormal.

    Returns
    -------
    Array
        Values of shape (m + 1, n + 1, k); 0 where the order is larger than the degree.

    Raises
    ------
    {raises_lpmn}

    See Also
    --------
    lpmn : Values and derivatives.
    sph_harm_y : Spherical harmonics.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.special.lpmn_values(2, 2, jnp.array([0.5]), False)[0, :, 0]
    Array([ 1.   ,  0.5  , -0.125], dtype=float32)
    """
    degree, x = _check_arguments("special.lpmn_values", m, n, z)
    with enable_x64(True):
        wide = _to_float64(x)
        if is_normalized:
            values = _orthonormal(degree, wide, _root(wide))
        else:
            values = _apply_signs(_derivatives(degree, wide)[0], _powers(degree, wide))
    return values.astype(x.dtype)


@api_boundary
@promotes_inside
def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: None = None,
    n_max: int | None = None,
) -> Array:
    """Compute spherical harmonics, orthonormal functions on the sphere.

    Parameters
    ----------
    n : array_like of int
        Degrees, not negative. All four arrays broadcast.
    m : array_like of int
        Orders from -n to n.
    theta : array_like
        Polar angles, from 0 to pi.
    phi : array_like
        Azimuthal angles, from 0 to 2 pi.
    diff_n : None, optional
        Order of derivatives. Not supported.
    n_max : int, optional
        Largest degree, static; larger degrees and orders count as this one. By default it is read
        from `n`, which must then be concrete.

    Returns
    -------
    Array
        Complex values, in an array of at least one axis.

    Raises
    ------
    NotImplementedError
        If `diff_n` is given.
    ConcretizationTypeError
        If `n_max` is missing and the degrees are traced.

    See Also
    --------
    lpmn_values : Associated Legendre functions.

    Examples
    --------
    >>> import accnp as jnp
    >>> y = jnp.scipy.special.sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.zeros(1), jnp.zeros(1))
    >>> jnp.round(y.real, 4)
    Array([0.4886], dtype=float32)
    """
    name = "special.sph_harm_y"
    if diff_n is not None:
        raise NotImplementedError(
            f"{name}: derivatives are taken by jax.jvp; got diff_n={diff_n!r}; leave it"
        )
    for order in as_nodes(name, n, m):
        if order.aval.dtype.kind in "fc":
            raise UnsupportedDtypeError(
                f"{name}: n and m must be integers; got {order.aval.dtype.name}; use astype(int)"
            )
    if n_max is None:
        n_max = int(np.max(as_static(n, f"{name}: n_max")))
    return run_small(_spherical_harmonics, (n, m, theta, phi), (as_int(n_max, name, "n_max"),))


def _spherical_harmonics(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, top: int
) -> Array:
    name = "special.sph_harm_y"
    colatitude, longitude = (wrap(v) for v in promote_inexact(name, theta, phi))
    degree, order, colatitude, longitude = broadcast_arrays(
        wrap(as_node(n, name)), wrap(as_node(m, name)), colatitude, longitude
    )
    shape = degree.shape or (1,)
    degree, order, colatitude, longitude = (
        v.reshape(-1) for v in (degree, order, colatitude, longitude)
    )
    size = uf.abs(order)
    place = np.arange(colatitude.size)
    with enable_x64(True):
        polar, around = _to_float64(colatitude), _to_float64(longitude)
        sine = uf.sin(polar)  # Legendre functions use the positive root
        all_values = _orthonormal(top, uf.cos(polar), where(sine < 0, -sine, sine))
        value = all_values[uf.minimum(size, top), uf.clip(degree, 0, top), place]
        angle = size * around
        negative = order < 0
        sign = where(negative & (size % 2 == 1), -1, 1)
        re = sign * value * uf.cos(angle)
        im = where(negative, -sign, sign) * value * uf.sin(angle)
    re, im = re.astype(colatitude.dtype), im.astype(colatitude.dtype)
    return wrap(o.complex(re._node, im._node)).reshape(shape)
