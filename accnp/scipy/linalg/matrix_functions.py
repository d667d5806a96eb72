"""Functions of matrices: exponential, square root, any function; the Sylvester equation.

They are compositions of products, Schur forms and loops over triangular matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import promote_inexact
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.values import inexact_arrays
from accnp.api.differentiation.derivatives import jvp
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary, not_one_of
from accnp.lax.control_flow.branches import cond, switch
from accnp.lax.control_flow.loops import fori_loop, scan
from accnp.lax.linalg import factorizations as lax_linalg
from accnp.lax.slicing import (
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
from accnp.numpy.creation import arange, array, asarray, eye, full_like, zeros_like
from accnp.numpy.linalg import decompositions as linalg
from accnp.numpy.linalg.norms import norm
from accnp.numpy.matrices import diag, triu
from accnp.numpy.number_parts import power_of_two
from accnp.numpy.reductions import any as _any
from accnp.numpy.reductions import sum as _sum
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import abs as _abs
from accnp.numpy.ufuncs import ceil, floor, isinf, log2, maximum, minimum, real, sqrt
from accnp.numpy.vectorizing import vectorize
from accnp.scipy.linalg.decompositions import as_complex, schur
from accnp.scipy.linalg.solving import solve_triangular

__all__ = ["expm", "expm_frechet", "funm", "rsf2csf", "solve_sylvester", "sqrtm"]


def _square(name: str, x: Array) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"linalg.{name}: square matrices are needed; got shape {x.shape}; "
            "use the last two axes for rows and columns"
        )


# --- exponential ---------------------------------------------------------------------------------

# Padé approximants of these orders are accurate to rounding up to these norms (the last one after
# halving): Higham (2005), The scaling and squaring method for the matrix exponential revisited.
_ORDERS = {
    "f4": ((3, 5, 7), (0.4258730016922831, 1.880152677804762), 3.925724783138660),
    "f8": (
        (3, 5, 7, 9, 13),
        (1.495585217958292e-2, 0.2539398330063230, 0.9504178996162932, 2.097847961257068),
        5.371920351148152,
    ),
}


def _approximant(order: int) -> Callable[[Array], tuple[Array, Array]]:
    """Return the odd and the even part of the numerator; the denominator is their difference."""
    b = [
        float(math.factorial(2 * order - j) // math.factorial(order - j) // math.factorial(j))
        for j in range(order + 1)
    ]

    def series(powers: list[Array], first: int) -> Array:
        out = b[first] * powers[0]
        for k, power in enumerate(powers[1:], 1):
            out = out + b[first + 2 * k] * power
        return out

    def parts(a: Array) -> tuple[Array, Array]:
        square = a @ a
        powers = [eye(a.shape[0], dtype=a.dtype), square]
        while 2 * len(powers) <= (order if order < 13 else 6):
            powers.append(powers[-1] @ square)
        odd, even = series(powers, 1), series(powers, 0)
        if order == 13:  # the higher half has the sixth power as a factor
            odd = odd + powers[3] @ series(powers[1:], 9)
            even = even + powers[3] @ series(powers[1:], 8)
        return a @ odd, even

    return parts


@api_boundary
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Compute the matrix exponential.

    Parameters
    ----------
    A : array_like
        Square matrices of shape (..., n, n), of at least single precision.
    upper_triangular : bool, optional
        Whether the matrices are upper triangular, so that triangular systems are solved. The
        default is False.
    max_squarings : int, optional
        Maximum number of squarings; matrices that need more give nan. The default is 16.

    Returns
    -------
    Array
        Exponentials of the shape of `A`. Integers give float32, other dtypes are unchanged.

    Raises
    ------
    TypeError
        If `A` is not an array, or has half precision.
    ValueError
        If the matrices are not square.

    See Also
    --------
    expm_frechet : Its derivative.
    sqrtm, funm : Other functions of matrices.

    Notes
    -----
    Scaling and squaring with a Padé approximant.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return run_small(_expm_of, (A,), (upper_triangular, max_squarings))


def _expm_of(A: ArrayLike, upper_triangular: bool, max_squarings: int) -> Array:
    x = wrap(promote_inexact("linalg.expm", A)[0])
    _square("expm", x)
    if x.dtype.kind not in "fc" or x.dtype.itemsize < 4:
        raise TypeError(f"linalg.expm: dtype {x.dtype} is not supported; use float32 or wider")

    def one(x: Array) -> Array:
        return _expm(x, bool(upper_triangular), int(max_squarings))

    return one(x) if x.ndim == 2 else vectorize(one, signature="(n,n)->(n,n)")(x)


def _expm(a: Array, triangular: bool, most: int) -> Array:
    orders, bounds, last = _ORDERS["f8" if dtypes.real_part(a.dtype).itemsize == 8 else "f4"]
    size = norm(a, 1)
    power = log2(size / last)
    times = maximum(0, ceil(power))  # JAX's floor leaves up to twice the allowed norm
    scaled = a / (2**times).astype(a.dtype)
    which = _sum(size >= asarray(bounds, size.dtype), dtype=np.int32)
    odd, even = switch(which, [_approximant(m) for m in orders], scaled)

    def squared(parts: tuple[Array, Array]) -> Array:
        odd, even = parts
        solve = solve_triangular if triangular else linalg.solve
        root = solve(even - odd, even + odd)

        def step(x: Array, i: Array) -> tuple[Array, None]:
            return cond(i < times, lambda x: x @ x, lambda x: x, x), None

        return scan(step, root, arange(most + 1, dtype=times.dtype))[0]

    return cond(
        maximum(0, floor(power)) > most,
        lambda parts: full_like(parts[0], np.nan),
        squared,
        (odd, even),
    )


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool
) -> Array | tuple[Array, Array]: ...
@api_boundary
@compiled_if_small("A", "E")
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Compute the derivative of the matrix exponential in a direction.

    Parameters
    ----------
    A : array_like
        Square matrices of shape (..., n, n).
    E : array_like
        Directions, of the same shape.
    method : str, optional
        Accepted for compatibility with SciPy; it has no effect.
    compute_expm : bool, optional
        Whether to return the exponential, too. The default is True.

    Returns
    -------
    expm_A : Array
        Matrix exponential, if requested. Integers give float32, other dtypes are unchanged.
    expm_frechet_AE : Array
        Derivative in the direction of `E`.

    Raises
    ------
    TypeError
        If `A` or `E` is not an array.
    ValueError
        If the matrices are not square, or have different shapes.

    See Also
    --------
    expm : Matrix exponential.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)))
    (Array([[1.]], dtype=float32), Array([[1.]], dtype=float32))
    """
    a, e = asarray(A), asarray(E)
    _square("expm_frechet", a)
    _square("expm_frechet", e)
    if a.shape != e.shape:
        raise ValueError(
            f"linalg.expm_frechet: A and E need one shape; got {a.shape} and {e.shape}; "
            "pass a direction of the shape of A"
        )
    out, change = jvp(expm, (a,), (e,))
    return (out, change) if compute_expm else change


# --- functions by the Schur form -----------------------------------------------------------------


def _positions_above_diagonal(n: int) -> np.ndarray:
    """Return the positions above the diagonal, one diagonal after the other."""
    pairs = [(i, i + p) for p in range(1, n) for i in range(n - p)]
    return np.array(pairs, np.int32).reshape(-1, 2)


def _fill_above(first: Array, element: Callable[..., Array]) -> Array:
    """Fill an upper triangular matrix from its diagonal outwards: element(X, i, j)."""

    def step(x: Array, at: Array) -> tuple[Array, None]:
        i, j = at[0], at[1]
        return x.at[i, j].set(element(x, i, j)), None

    return scan(step, first, asarray(_positions_above_diagonal(first.shape[0])))[0]


@api_boundary
@compiled_if_small("A")
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Compute the principal square root of a matrix.

    Parameters
    ----------
    A : array_like
        Square matrix of shape (n, n).
    blocksize : int, optional
        Block size in SciPy. Only 1 is supported.

    Returns
    -------
    Array
        Square root of shape (n, n), of complex dtype.

    Raises
    ------
    TypeError
        If `A` is not an array.
    ValueError
        If the matrix is not square.
    NotImplementedError
        If `blocksize` is not 1.

    See Also
    --------
    expm, funm : Other functions of matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.sqrtm(jnp.array([[4., 0.], [0., 9.]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    if blocksize > 1:
        raise NotImplementedError(
            f"linalg.sqrtm: blocksize must be 1; got {blocksize}; leave it out"
        )
    t, z = schur(A, output="complex")
    if t.ndim != 2:
        raise ValueError(f"linalg.sqrtm: one matrix is needed; got shape {t.shape}; use vmap")
    roots = sqrt(diag(t))

    def element(u: Array, i: Array, j: Array) -> Array:
        rest = t[i, j] - _sum(u[i] * u[:, j])  # the terms at both ends are still zero
        both = roots[i] + roots[j]
        return where(rest == 0, 0, rest / both)

    return z @ _fill_above(diag(roots), element) @ z.conj().T


@overload
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: Literal[True] = True) -> Array: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: Literal[False]
) -> tuple[Array, Array]: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool
) -> Array | tuple[Array, Array]: ...
@api_boundary
@promotes_inside
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> Array | tuple[Array, Array]:
    """Apply a function to a matrix by Parlett's recurrence.

    Parameters
    ----------
    A : array_like
        Square matrix of shape (n, n). Eigenvalues that are close to each other cost accuracy.
    func : callable
        Function that is applied to the vector of eigenvalues.
    disp : bool, optional
        If True, the default, return the result only.

    Returns
    -------
    result : Array
        Function of the matrix, of complex dtype.
    error : Array
        Estimate of the relative error, if `disp` is False.

    Raises
    ------
    TypeError
        If `A` is not an array.
    ValueError
        If `A` is not a single square matrix.

    See Also
    --------
    expm, sqrtm : Special functions of matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.funm(jnp.array([[2., 0.], [0., 3.]]), lambda x: x * x)
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 9.+0.j]], dtype=complex64)
    """
    x = asarray(A)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(
            f"linalg.funm: one square matrix is needed; got shape {x.shape}; use vmap for several"
        )
    t, z = rsf2csf(*schur(x))
    return run_small(_from_diagonal, (func(diag(t)), t, z), (disp,))


def _from_diagonal(values: Array, t: Array, z: Array, disp: bool) -> Array | tuple[Array, Array]:
    """Return the function of z @ t @ z^H for a triangular t with these values on its diagonal."""
    f = diag(values).astype(t.dtype)
    place = np.arange(len(t))
    # Divided differences, whose products do not overflow.
    original, t = t, t / power_of_two(_abs(t).max(initial=0)).astype(t.dtype)

    def element(f: Array, i: Array, j: Array) -> Array:
        between = (place > i) & (place < j)
        rest = _sum(where(between, t[i] * f[:, j] - f[i] * t[:, j], 0))
        rest = rest + t[i, j] * (f[j, j] - f[i, i])
        gap = t[j, j] - t[i, i]
        return where(gap != 0, rest / where(gap != 0, gap, 1), rest)

    out = z @ _fill_above(f, element) @ z.conj().T
    if disp:
        return out
    t = original
    w = diag(t)
    eps = float(dtypes.finfo(dtypes.real_part(t.dtype)).eps)
    pairs = _positions_above_diagonal(len(t))
    gaps = [_abs(w[:1]), _abs(w[pairs[:, 0]] - w[pairs[:, 1]])]
    least = minimum(*[g.min(initial=np.inf) for g in gaps])
    least = where(least == 0, eps, least)
    bound = maximum(eps, eps / least * norm(triu(t, 1), 1))
    return out, where(_any(isinf(out)), np.inf, minimum(1, bound))


@api_boundary
@promotes_inside
@compiled_if_small("T", "Z")
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Convert the real Schur form to the complex one.

    Parameters
    ----------
    T : array_like
        Real Schur form of shape (..., n, n), with blocks of at most 2 by 2 on the diagonal.
    Z : array_like
        Schur vectors, of the same shape.
    {check_finite}

    Returns
    -------
    T : Array
        Upper triangular matrices of complex dtype.
    Z : Array
        Schur vectors of complex dtype.

    Raises
    ------
    TypeError
        If `T` or `Z` is not an array.
    ValueError
        If the matrices are not square, or have different sizes.

    See Also
    --------
    schur : Schur decomposition.

    Examples
    --------
    >>> import accnp as jnp
    >>> T, Z = jnp.scipy.linalg.rsf2csf(jnp.array([[0., 1.], [-1., 0.]]), jnp.eye(2))
    >>> T.dtype
    dtype('complex64')
    """
    t, z = asarray(T), asarray(Z)
    _square("rsf2csf", t)
    _square("rsf2csf", z)
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(
            f"linalg.rsf2csf: T and Z need one size; got shapes {t.shape} and {z.shape}; "
            "pass both results of one schur"
        )
    t, z = (as_complex(x) for x in inexact_arrays("linalg.rsf2csf", t, z))
    if t.ndim == z.ndim == 2:
        return _complex_form(t, z)
    return vectorize(_complex_form, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _complex_form(t: Array, z: Array) -> tuple[Array, Array]:
    n = t.shape[0]
    eps = float(dtypes.finfo(t.dtype).eps)
    place = np.arange(n)

    def rotated(m: Any, t: Array, z: Array) -> tuple[Array, Array]:
        block = dynamic_slice(t, (m - 1, m - 1), (2, 2))
        mu = linalg.eigvals(block)[0] - t[m, m]
        low = t[m, m - 1]
        r = norm(array([mu, low])).astype(t.dtype)
        c, s = mu / r, low / r
        turn = array([[c.conj(), s], [-s, c]])
        back = turn.conj().T
        rows = dynamic_slice_in_dim(t, m - 1, 2, axis=0)
        rows = where(place >= m - 1, turn @ rows, rows)
        t = dynamic_update_slice_in_dim(t, rows, m - 1, axis=0)
        columns = dynamic_slice_in_dim(t, m - 1, 2, axis=1)
        columns = where(place[:, None] < m + 1, columns @ back, columns)
        t = dynamic_update_slice_in_dim(t, columns, m - 1, axis=1)
        vectors = dynamic_slice_in_dim(z, m - 1, 2, axis=1) @ back
        return t, dynamic_update_slice_in_dim(z, vectors, m - 1, axis=1)

    def step(i: Any, both: tuple[Array, Array]) -> tuple[Array, Array]:
        (t, z), m = both, n - i
        large = _abs(t[m, m - 1]) > eps * (_abs(t[m - 1, m - 1]) + _abs(t[m, m]))
        t, z = cond(large, rotated, lambda m, t, z: (t, z), m, t, z)
        return t.at[m, m - 1].set(0), z

    return fori_loop(1, n, step, (t, z)) if n > 1 else (t, z)


# --- Sylvester's equation ------------------------------------------------------------------------


@api_boundary
@promotes_inside
@compiled_if_small("A", "B", "C", "tol")
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve the Sylvester equation A @ X + X @ B = C.

    Parameters
    ----------
    A : array_like
        Matrix of shape (..., m, m). Integers give float32.
    B : array_like
        Matrix of shape (..., n, n).
    C : array_like
        Right-hand side of shape (..., m, n).
    method : {"schur", "eigen"}, optional
        Decomposition to use. The default is "schur".
    tol : float, optional
        If the sum of an eigenvalue of `A` and one of `B` is smaller, the equation is singular and
        the result is nan. It is relative to the largest sum if that is below 1. The default is
        1e-8.

    Returns
    -------
    Array
        Solution X of shape (..., m, n).

    Raises
    ------
    TypeError
        If an argument is not an array.
    ValueError
        If shapes do not fit, or `method` is unknown.

    See Also
    --------
    schur : Schur decomposition.
    solve : Solve linear systems.

    Examples
    --------
    >>> import accnp as jnp
    >>> one = jnp.ones((1, 1))
    >>> jnp.scipy.linalg.solve_sylvester(one, 2 * one, 6 * one)
    Array([[2.]], dtype=float32)
    """
    a, b, c = inexact_arrays("linalg.solve_sylvester", A, B, C)
    if method not in ("schur", "eigen"):
        raise not_one_of("linalg.solve_sylvester", "method", method, ("schur", "eigen"))
    if c.ndim < 2 or a.shape[-2:] != (c.shape[-2],) * 2 or b.shape[-2:] != (c.shape[-1],) * 2:
        raise ValueError(
            "linalg.solve_sylvester: needs shapes [m, m], [n, n] and [m, n]; got "
            f"{a.shape}, {b.shape} and {c.shape}; reshape to these"
        )

    def one(a: Array, b: Array, c: Array) -> Array:
        solution = (_by_schur if method == "schur" else _by_eigenvalues)(a, b, c)
        x = solution if c.dtype.kind == "c" else real(solution)
        sums = _abs(linalg.eigvals(a)[:, None] + linalg.eigvals(b))
        return where(_any(sums < tol * minimum(1, sums.max(initial=0))), np.nan, x)

    if a.ndim == b.ndim == c.ndim == 2:
        return one(a, b, c)
    return vectorize(one, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _by_schur(a: Array, b: Array, c: Array) -> Array:
    """Solve R Y + Y S^H = F for one column of Y after the other, from the last to the first."""
    r, u = schur(a, output="complex")
    s, v = schur(b.conj().T, output="complex")
    f, low = u.conj().T @ c.astype(r.dtype) @ v, s.conj().T
    unit = eye(a.shape[0], dtype=r.dtype)

    def step(y: Array, j: Array) -> tuple[Array, None]:
        right = f[:, j] - y @ low[:, j]  # columns before j are still zero
        column = lax_linalg.triangular_solve(r + low[j, j] * unit, right, left_side=True)
        return y.at[:, j].set(column), None

    y, _ = scan(step, zeros_like(f), arange(b.shape[0], dtype=np.int32), reverse=True)
    return u @ y @ v.conj().T


def _by_eigenvalues(a: Array, b: Array, c: Array) -> Array:
    (wa, ua), (wb, ub) = linalg.eig(a), linalg.eig(b)
    f = linalg.solve(ua, c.astype(wa.dtype) @ ub)
    return ua @ (f / (wa[:, None] + wb)) @ linalg.inv(ub)
