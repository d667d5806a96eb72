"""Polynomials as vectors of their coefficients, highest power first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, promote, promote_inexact, wrap
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_int, as_static
from accnp.api.arguments.values import unroll_steps
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.lax.control_flow.loops import scan
from accnp.lax.convolutions.convolution import convolve
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import arange, array, full, ones, zeros
from accnp.numpy.joining import append, concatenate
from accnp.numpy.linalg import decompositions as linalg
from accnp.numpy.linalg.least_squares import lstsq
from accnp.numpy.matrices import diag, vander
from accnp.numpy.padding import pad
from accnp.numpy.products import matmul, outer
from accnp.numpy.rearranging import roll
from accnp.numpy.sorting import argsort

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "roots",
]  # fmt: skip


def _coefficients(name: str, *xs: Any) -> list[Array]:
    """Convert arguments to arrays of one inexact dtype."""
    return [wrap(n) for n in promote_inexact(f"jnp.{name}", *xs)]


def _row(name: str, *xs: Any) -> list[Array]:
    """Convert arguments to vectors of one inexact dtype."""
    arrays = _coefficients(name, *xs)
    _check_rows(name, *arrays)
    return arrays


def _check_rows(name: str, *xs: Array, most: int = 1) -> None:
    for x in xs:
        if not 1 <= x.ndim <= most:
            raise (ValueError if x.ndim else TypeError)(
                f"jnp.{name}: coefficients must be rank-1 arrays; got shape {x.shape}; ravel them"
            )


@api_boundary
@shown()
@broadcasts_inside
@compiled_if_small("a1", "a2")
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Add two polynomials, given by their coefficients.

    Parameters
    ----------
    {a12}

    Returns
    -------
    Array
        Coefficients of the sum, as many as the longer array has, with the promoted dtype.

    Raises
    ------
    {raises_operand}

    See Also
    --------
    polysub, polymul, polydiv : Other operations.
    polyval : Evaluate a polynomial.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3, 4, 5]))
    Array([3, 5, 7], dtype=int32)
    """
    a, b = [wrap(n) for n in promote("jnp.polyadd", a1, a2)]
    _check_rows("polyadd", a, b, most=64)
    short, long = sorted((a, b), key=len)
    missing = len(long) - len(short)
    return pad(short, ((missing, 0), *[(0, 0)] * (short.ndim - 1))) + long


@api_boundary
@broadcasts_inside
@compiled_if_small("a1", "a2")
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtract one polynomial from another, given by their coefficients.

    Parameters
    ----------
    {a12}

    Returns
    -------
    Array
        Coefficients of the difference, as many as the longer array has, with the promoted dtype.

    Raises
    ------
    {raises_operand}

    See Also
    --------
    polyadd, polymul, polydiv : Other operations.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.polysub(jnp.array([1., 2.]), jnp.array([1.]))
    Array([1., 1.], dtype=float32)
    """
    a, b = [wrap(n) for n in promote("jnp.polysub", a1, a2)]
    return polyadd(a, -b)


def _without_leading_zeros(x: Array, function: str) -> Array:
    """Remove leading zeros; the values must be concrete, since they determine the length."""
    known = as_static(x, f"jnp.{function}: trim_leading_zeros")
    places = np.flatnonzero(known)
    return x[places[0] if len(places) else len(known) :]


@api_boundary
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply two polynomials, given by their coefficients.

    Parameters
    ----------
    {a12}
    {trim_leading_zeros}

    Returns
    -------
    Array
        Coefficients of the product. Integers give the default float dtype, other dtypes promote.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number, or traced with `trim_leading_zeros`.
    ValueError
        If an operand is not a vector.

    See Also
    --------
    polydiv : Division of polynomials.
    convolve : Convolution, which this is.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.polymul(jnp.array([1., 2.]), jnp.array([1., -2.]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    a, b = _row("polymul", a1, a2)
    if trim_leading_zeros and max(len(a), len(b)) > 1:
        a, b = (_without_leading_zeros(x, "polymul") for x in (a, b))
    a, b = (x if len(x) else zeros(1, x.dtype) for x in (a, b))
    return convolve(a, b, mode="full")


@api_boundary
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide one polynomial by another, with a remainder.

    Parameters
    ----------
    u : array_like
        Coefficients of the dividend, a vector of length n, highest degree first.
    v : array_like
        Coefficients of the divisor, a vector of length m, whose first element is not zero.
    {trim_leading_zeros}

    Returns
    -------
    quotient, remainder : Array
        Coefficients of length max(1, n - m + 1) and n. Integers give the default float dtype, other
        dtypes promote.

    Raises
    ------
    TypeError
        If an operand is neither an array nor a number, or traced with `trim_leading_zeros`.

    See Also
    --------
    polymul : Product of polynomials.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.polydiv(jnp.array([1., 5., 6.]), jnp.array([1., 2.]))
    (Array([1., 3.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    a, b = _row("polydiv", u, v)
    steps = len(a) - len(b) + 1
    if steps < 1:
        quotient, rest = zeros(1, a.dtype), a
    else:
        # In each step, the window of the dividend that the divisor covers moves by one coefficient.
        def step(window: Array, entering: Array) -> tuple[Array, Array]:
            factor = window[0] / b[0]
            return append((window - factor * b)[1:], entering), factor

        entering = append(a[len(b) :], zeros(1, a.dtype))
        window, quotient = scan(step, a[: len(b)], entering)
        rest = pad(window[:-1], (len(a) - len(b) + 1, 0))
        quotient = wrap(cast(quotient._node, a.dtype))
        rest = wrap(cast(rest._node, a.dtype, a.weak_type and b.weak_type))
    return quotient, _without_leading_zeros(rest, "polydiv") if trim_leading_zeros else rest


@api_boundary
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate a polynomial at given positions.

    Parameters
    ----------
    p : array_like
        Coefficients along the first axis, highest degree first. Further axes broadcast against `x`.
    x : array_like
        Positions at which to evaluate it, of any shape.
    unroll : int, optional
        Largest number of coefficients for which the steps are written out; more are a loop. The
        default is 16.

    Returns
    -------
    Array
        Values with the broadcast shape and the promoted dtype. Integers stay integers.

    Raises
    ------
    TypeError
        If `p` or `x` is neither an array nor a number.
    IndexError
        If `p` is a scalar.

    See Also
    --------
    polyfit : Fit a polynomial.
    roots : Zeros of a polynomial.

    Notes
    -----
    The polynomial is evaluated by Horner's rule.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.polyval(jnp.array([1, 2, 3]), 2)
    Array(11, dtype=int32)
    """
    return run_small(_polyval, (p, x), (unroll,))


def _polyval(p: ArrayLike, x: ArrayLike, unroll: int) -> Array:
    c, at = [wrap(n) for n in promote("jnp.polyval", p, x)]
    if not c.ndim:
        raise IndexError(
            "jnp.polyval: coefficients must have an axis; got a scalar (p); use atleast_1d"
        )
    shape = np.broadcast_shapes(c.shape[1:], at.shape)
    value = full(shape, 0, c.dtype)
    if len(c) <= unroll_steps("jnp.polyval", unroll):
        for k in range(len(c)):
            value = value * at + c[k]
        return value
    return scan(lambda value, one: (value * at + one, None), value, c)[0]


@api_boundary
@shown()
@compiled_if_small("p")
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial, given by its coefficients.

    Parameters
    ----------
    p : array_like
        Coefficients along the first axis, highest degree first.
    m : int, optional
        Order of the derivative, static. The default is 1.

    Returns
    -------
    Array
        Coefficients of the derivative, fewer by `m`. Integers give the default float dtype.

    Raises
    ------
    TypeError
        If `p` is neither an array nor a number, or `m` is not an integer.
    ValueError
        If `m` is negative.

    See Also
    --------
    polyint : Integral of a polynomial.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.polyder(jnp.array([1., 2., 3.]))
    Array([2., 2.], dtype=float32)
    """
    order = as_int(m, "jnp.polyder", "m")
    if order < 0:
        raise ValueError(
            f"jnp.polyder: the order of a derivative cannot be negative; got m={m}; pass 0 or more"
        )
    (c,) = _coefficients("polyder", p)
    if not order:
        return c
    powers = np.arange(len(c) - 1, order - 1, -1)
    factors = np.ones(len(powers))
    for k in range(order):
        factors = factors * (powers - k)
    return c[: len(powers)] * array(factors, dtype=c.dtype)


@api_boundary
@compiled_if_small("p")
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | Sequence[float] | None = None) -> Array:
    """Integrate a polynomial, given by its coefficients.

    Parameters
    ----------
    p : array_like
        Vector of coefficients, highest degree first.
    m : int, optional
        Number of times to integrate, static. The default is 1.
    k : array_like, optional
        Constants of integration, one or `m` of them, that of the first integral first. The default
        is zero.

    Returns
    -------
    Array
        Coefficients of the integral, more by `m`. Integers give the default float dtype.

    Raises
    ------
    TypeError
        If `p` is neither an array nor a number.
    ValueError
        If `m` is negative, or `k` has neither 1 nor `m` elements.

    See Also
    --------
    polyder : Derivative of a polynomial.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.polyint(jnp.array([3., 2., 1.]))
    Array([1., 1., 1., 0.], dtype=float32)
    """
    order = as_int(m, "jnp.polyint", "m")
    if order < 0:
        raise ValueError(
            f"jnp.polyint: the order of an integral cannot be negative; got m={m}; pass 0 or more"
        )
    c, constants = _coefficients("polyint", p, 0 if k is None else k)
    _check_rows("polyint", c, most=64)
    constants = constants.reshape(-1) if constants.ndim < 2 else constants
    if constants.shape == (1,):
        constants = constants * ones(order, c.dtype)
    if constants.shape != (order,):
        raise ValueError(
            f"jnp.polyint: k must be one constant or m={order} constants; "
            f"got shape {constants.shape}; "
            "pass one for each order"
        )
    if not order:
        return c
    whole = concatenate([c, constants])
    powers = np.arange(len(whole) - 1, -1, -1)
    divisors = np.ones(len(whole))
    for j in range(order):  # a constant is integrated in later steps only
        divisors = divisors * np.maximum(powers - j, 1)
    return whole / array(divisors, dtype=c.dtype)


@api_boundary
@compiled_if_small("seq_of_zeros")
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Compute the coefficients of the polynomial with given zeros.

    Parameters
    ----------
    seq_of_zeros : array_like
        Vector of n zeros, or a matrix of shape (n, n), whose eigenvalues are the zeros.

    Returns
    -------
    Array
        Vector of n + 1 coefficients, highest degree first; the first one is 1. Integers give the
        default float dtype, and a matrix a complex dtype.

    Raises
    ------
    TypeError
        If `seq_of_zeros` is neither an array nor a number.
    ValueError
        If it is neither a vector nor a square matrix.

    See Also
    --------
    roots : The inverse.
    polyval : Evaluate a polynomial.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.poly(jnp.array([1., 2.]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    (at,) = _coefficients("poly", seq_of_zeros)
    if at.ndim == 2 and at.shape[0] == at.shape[1] and len(at):
        at = linalg.eigvals(at)
    elif at.ndim == 0:
        at = at[None]
    elif at.ndim != 1:
        raise ValueError(
            "jnp.poly: the roots must be a vector, or a square matrix with these eigenvalues; "
            f"got shape {at.shape}; ravel them, or pass a square matrix"
        )
    if not len(at):
        return ones((), at.dtype)
    # Multiplying by (x - r) adds the coefficients times -r, shifted by one position.
    unit = append(ones(1, at.dtype), zeros(len(at), at.dtype))
    moved = lambda c: pad(c[:-1], (1, 0))  # noqa: E731
    return scan(lambda c, root: (c - root * moved(c), None), unit, at)[0]


@api_boundary
def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Compute the zeros of a polynomial, given by its coefficients.

    Parameters
    ----------
    p : array_like
        Vector of n coefficients, highest degree first.
    strip_zeros : bool, optional
        If True, the default, leading zeros are dropped, which needs concrete values. If False,
        which works under `jit`, there is a nan at the end of the result for each of them.

    Returns
    -------
    Array
        Vector of n - 1 zeros, or fewer if leading zeros are dropped, with a complex dtype.

    Raises
    ------
    TypeError
        If `p` is neither an array nor a number, or is traced with `strip_zeros`.

    See Also
    --------
    poly : The inverse.
    polyval : Evaluate a polynomial.
    linalg.eigvals : Eigenvalues of a matrix.

    Notes
    -----
    The zeros are the eigenvalues of the companion matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.round(jnp.sort(jnp.roots(jnp.array([1., 0., -4.]))), 3)
    Array([-2.+0.j,  2.+0.j], dtype=complex64)
    """
    (c,) = _coefficients("roots", p)
    c = c if c.ndim else c[None]  # one coefficient
    _check_rows("roots", c)
    c = c.astype("float32") if c.dtype.itemsize == 2 else c  # 16-bit quotients are inaccurate
    if len(c) < 2:
        return _eigenvalues(c)  # a constant has no roots
    if strip_zeros:
        places = np.flatnonzero(as_static(c, "jnp.roots (strip_zeros=False allows it)"))
        return _eigenvalues(c[int(places[0]) if len(places) else len(c) :])
    some = (c != 0).any()
    dropped = uf.where(some, (c != 0).argmax(), len(c))
    eigenvalues = _eigenvalues(roll(uf.where(some, c, 1), -dropped))
    eigenvalues = eigenvalues[argsort(eigenvalues == 0)]
    valid = arange(len(eigenvalues)) < len(eigenvalues) - dropped
    return uf.where(valid, eigenvalues, np.asarray(complex(np.nan, np.nan), eigenvalues.dtype))


def _eigenvalues(c: Array) -> Array:
    """Return the eigenvalues of the companion matrix; the first coefficient must not be 0."""
    if len(c) < 2:
        return zeros(0, np.result_type(c.dtype, np.complex64))
    return linalg.eigvals(diag(ones(len(c) - 2, c.dtype), -1).at[0].set(-c[1:] / c[0]))


@api_boundary
@broadcasts_inside
@compiled_if_small("x", "y", "w")
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Fit a polynomial to points by least squares.

    Parameters
    ----------
    x : array_like
        Vector of n positions.
    y : array_like
        Vector of n values, or a matrix of shape (n, k) for k fits at once.
    deg : int
        Degree of the polynomial, static.
    rcond : float, optional
        Singular values below `rcond` times the largest one count as zero. The default is n times
        the precision of the dtype.
    full : bool, optional
        If True, return what the solver found as well. The default is False.
    w : array_like, optional
        Weight of each value, which multiplies the residual.
    cov : bool or 'unscaled', optional
        If True, return the covariance matrix of the coefficients as well, scaled by the residuals
        unless it is 'unscaled'. The default is False.

    Returns
    -------
    Array or tuple of Array
        Coefficients of shape (deg + 1,) or (deg + 1, k), highest degree first. With `full` also
        residuals, rank, singular values and `rcond`, and with `cov` also the covariance, of shape
        (deg + 1, deg + 1) or (deg + 1, deg + 1, k). Integers give the default float dtype.

    Raises
    ------
    TypeError
        If the shapes do not fit, or `x` or `y` is neither an array nor a number.
    ValueError
        If `deg` is negative, or there are too few points for a covariance.

    See Also
    --------
    polyval : Evaluate a polynomial.
    linalg.lstsq : General least squares.
    vander : Matrix of the powers.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(4.)
    >>> jnp.round(jnp.polyfit(x, 3 * x + 1, 1), 3)
    Array([3., 1.], dtype=float32)
    """
    name = "jnp.polyfit"
    degree = as_int(deg, name, "deg")
    if degree < 0:
        raise ValueError(f"{name}: the degree cannot be negative; got deg={deg}; pass 0 or more")
    at, values = _coefficients("polyfit", x, y)
    if at.ndim != 1 or not len(at):
        raise TypeError(
            f"{name}: x must be a rank-1 array with elements; got shape {at.shape}; ravel it"
        )
    if values.ndim not in (1, 2) or len(values) != len(at):
        raise TypeError(
            f"{name}: expected x and y to have same length; got shapes {at.shape} and "
            f"{values.shape}; give y a row for each x"
        )
    if rcond is None:
        rcond = len(at) * float(np.finfo(at.dtype).eps)
    matrix = vander(at, degree + 1)
    if w is not None:
        (weights,) = _coefficients("polyfit", w)
        if weights.shape != at.shape:
            raise TypeError(
                f"{name}: w must have the shape of x, {at.shape}; got {weights.shape}; "
                "pass one weight for each point"
            )
        matrix = matrix * weights[:, None]
        values = values * (weights[:, None] if values.ndim == 2 else weights)
    scale = ((matrix * matrix).sum(axis=0)) ** 0.5
    fit, residuals, rank, singular = lstsq(matrix / scale, values, rcond)
    fit = (fit.T / scale).T
    if full:
        return fit, residuals, rank, singular, array(rcond)
    if not cov:
        return fit
    base = linalg.inv(matmul(matrix.T, matrix) / outer(scale, scale)) / outer(scale, scale)
    if base.dtype.kind == "c" and as_node(x, name).aval.dtype.kind != "c":
        base = base.real
    base = base if values.ndim == 1 else base[..., None]
    if cov != "unscaled":
        if len(at) <= degree + 1:
            raise ValueError(
                f"{name}: a scaled covariance needs more points than deg + 1 = {degree + 1}; got "
                f"{len(at)}; use cov='unscaled'"
            )
        base = base * (residuals / (len(at) - degree - 1))
    return fit, base
