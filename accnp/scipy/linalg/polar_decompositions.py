"""Polar decompositions: `lax.linalg.qdwh` and `scipy.linalg.polar`.

The algorithm is the Halley iteration with weights that depend on the smallest singular value
(Nakatsukasa, Bai, Gygi, 2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_int, as_static
from accnp.api.jit.small_calls import run_small
from accnp.array_type import Array, ArrayLike, is_traced, wrap
from accnp.errors import UnsupportedDtypeError, api_boundary, not_one_of
from accnp.lax.control_flow.loops import while_loop
from accnp.lax.elementwise import rsqrt
from accnp.lax.linalg import factorizations as lax_linalg
from accnp.lax.linalg import spectra as lax_spectra
from accnp.numpy.creation import arange, asarray, eye
from accnp.numpy.joining import concatenate
from accnp.numpy.linalg.norms import norm
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import logical_and, logical_not, maximum, minimum
from accnp.numpy.vectorizing import vectorize

__all__ = ["polar", "qdwh"]

# With larger weights, the matrix of a Cholesky-based step is ill-conditioned, so QR is used.
_CHOLESKY = 100


def _inexact(name: str, x: Array) -> None:
    if x.dtype.kind in "biu":
        raise UnsupportedDtypeError(
            f"{name}: a floating or complex dtype is needed; got {x.dtype.name}; convert it first"
        )


def _adjoint(x: Array) -> Array:
    return x.mT.conj() if x.dtype.kind == "c" else x.mT


def _weights(eps: float, most: int | None) -> list[tuple[float, float, float]]:
    """Return the weights a, b, c of the steps from a smallest singular value of eps to 1."""
    out, least, near = [], eps, 5 * eps
    while least + near < 1 and (most is None or len(out) < most):
        square = least * least
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (2 - d + 2 * (2 - square) / (square * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        out.append((a, b, a + b - 1))
        least = least * (a + b * square) / (1 + (a + b - 1) * square)
    return out


def _by_qr(u: Array, a: float, b: float, c: float) -> Array:
    m, n = u.shape
    q, _ = lax_linalg.qr(concatenate([c**0.5 * u, eye(n, dtype=u.dtype)]), full_matrices=False)
    return b / c * u + (a - b / c) / c**0.5 * (q[:m] @ _adjoint(q[m:]))


def _by_cholesky(u: Array, a: float, b: float, c: float) -> Array:
    x = c * (_adjoint(u) @ u) + eye(u.shape[1], dtype=u.dtype)
    lower = lax_linalg.cholesky(x, symmetrize_input=False)
    how = {"left_side": True, "lower": True}
    z = lax_linalg.triangular_solve(lower, _adjoint(u), **how)
    z = lax_linalg.triangular_solve(lower, z, **how, transpose_a=True, conjugate_a=True)
    return b / c * u + (a - b / c) * _adjoint(z)


@api_boundary
def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Any, Array]:
    """Compute the polar decomposition of a matrix by the QDWH algorithm.

    Parameters
    ----------
    x : array_like
        Matrix of shape (m, n) with m >= n, of floating or complex dtype.
    is_hermitian : bool, optional
        Whether the matrix is Hermitian. It has no effect.
    max_iterations : int, optional
        Maximum number of iterations. The default is 10.
    eps : float, optional
        Smallest singular value to consider, relative to the largest one. The default is the
        precision of the dtype.
    dynamic_shape : tuple of (int, int), optional
        Number of rows and columns that are used, if the rest is padding. They may be traced.

    Returns
    -------
    u : Array
        Matrix with orthonormal columns, of the shape and dtype of `x`.
    h : Array
        Hermitian positive semidefinite matrix of shape (n, n), with x = u @ h.
    num_iters : Array
        Number of iterations, of dtype int32.
    is_converged : Array
        Whether they converged, a bool.

    Raises
    ------
    ValueError
        If `x` is not a single matrix, or has more columns than rows.
    TypeError
        If `x` is a list, or is neither floating nor complex.

    See Also
    --------
    scipy.linalg.polar : The same with options.
    svd : Singular value decomposition.

    Notes
    -----
    QR-based dynamically weighted Halley iteration of Y. Nakatsukasa, Z. Bai and F. Gygi, SIAM J.
    Matrix Anal. Appl. 31 (2010). It needs products, QR and Cholesky factorizations only.

    Examples
    --------
    >>> import accnp as jnp
    >>> u, h, steps, done = jnp.lax.linalg.qdwh(jnp.array([[2., 0.], [0., -3.]]))
    >>> bool(done)
    True
    """
    name = "lax.linalg.qdwh"
    as_static(is_hermitian, name)
    a = wrap(as_node(x, name))
    if a.ndim != 2 or a.shape[0] < a.shape[1]:
        raise ValueError(
            f"{name}: a matrix with at least as many rows as columns is needed; got {a.shape}; "
            "transpose it"
        )
    _inexact(name, a)
    most = 10 if max_iterations is None else as_int(max_iterations, name, "max_iterations")
    if dynamic_shape is not None:
        m, n = dynamic_shape
        inside = (arange(a.shape[0])[:, None] < m) & (arange(a.shape[1]) < n)
        a = where(inside, a, 0)
    return _iterate_qdwh(a, eps, most)


def _iterate_qdwh(
    a: Array, eps: float | None, most: int | Array
) -> tuple[Array, Array, Array, Array]:
    """Return the results of `qdwh`; the number of iterations may be traced."""
    name = "lax.linalg.qdwh"
    least = float(dtypes.finfo(a.dtype).eps) if eps is None else float(as_static(eps, name))
    near = (5 * least) ** (1 / 3)
    one, largest = norm(a, 1), norm(a, np.inf)
    u = a * where(one == 0, 1, rsqrt(one) * rsqrt(largest)).astype(a.dtype)
    moving: Any = True
    known = most if isinstance(most, int) else None
    weights = _weights(least, known)
    for k, (a_, b, c) in enumerate(weights):
        after = (_by_qr if c > _CHOLESKY else _by_cholesky)(u, a_, b, c)
        moved = norm(after - u) > near if c <= _CHOLESKY else moving
        if known is None:
            after, moved = where(k < most, after, u), where(k < most, moved, moving)
        u, moving = after, moved

    def more(state: Any) -> Any:
        k, _, moving = state
        return logical_and(moving, k < most)

    def step(state: Any) -> Any:
        k, before, _ = state
        u = _by_cholesky(before, 3.0, 1.0, 3.0)
        return k + 1, u, norm(u - before) > near

    start = len(weights) if known is not None else minimum(len(weights), maximum(most, 0))
    count, u, moving = while_loop(more, step, (start, u, moving))
    # One Newton step makes u orthonormal to the last bit.
    u = 1.5 * u - 0.5 * u @ (_adjoint(u) @ u)
    h = _adjoint(u) @ a
    return u, (h + _adjoint(h)) / 2, count, logical_not(moving)


def _polar(
    a: Array, side: str, method: str, eps: float | None, most: int | Array
) -> tuple[Array, Array]:
    m, n = a.shape
    if method == "svd":
        u, s, vh = lax_spectra.svd(a, full_matrices=False)
        s = s.astype(u.dtype)
        half = _adjoint(vh) * s @ vh if side == "right" else u * s @ _adjoint(u)
        return u @ vh, half
    if method != "qdwh":
        raise ValueError(
            f"linalg.polar: method must be 'qdwh' or 'svd'; got {method!r}; pass one of the two"
        )
    if (m >= n) != (side == "right"):
        raise NotImplementedError(
            "linalg.polar: method 'qdwh' is for side='right' with at least as many rows as columns "
            f"and side='left' with less; got shape {a.shape} and side={side!r}; use method='svd'"
        )
    if side == "right":
        return _iterate_qdwh(a, eps, most)[:2]
    u, h = _iterate_qdwh(_adjoint(a), eps, most)[:2]
    return _adjoint(u), _adjoint(h)


@api_boundary
@broadcasts_inside
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | Array | None = None,
) -> tuple[Array, Array]:
    """Compute the polar decomposition of matrices.

    Parameters
    ----------
    a : array_like
        Matrices of shape (..., m, n), of floating or complex dtype.
    side : {"right", "left"}, optional
        Whether a = u @ p, the default, or a = p @ u.
    method : {"qdwh", "svd"}, optional
        Algorithm. "qdwh", the default, is for side "right" with m >= n and for side "left" with m <
        n.
    eps : float, optional
        For "qdwh", the smallest singular value to consider, relative to the largest one.
    max_iterations : int, optional
        For "qdwh", the maximum number of iterations. It may be traced.

    Returns
    -------
    u : Array
        Matrices with orthonormal columns or rows, of the shape and dtype of `a`.
    p : Array
        Positive semidefinite matrices of shape (..., n, n), or (..., m, m) for side "left".

    Raises
    ------
    ValueError
        If `a` has fewer than two axes, or `side` or `method` is unknown.
    NotImplementedError
        If "qdwh" is requested for a shape that it does not support.
    TypeError
        If `a` is not an array, or is neither floating nor complex.

    See Also
    --------
    svd : Singular value decomposition.
    lax.linalg.qdwh : The iteration for one matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.polar(jnp.array([[0., 2.], [-3., 0.]]), method="svd")[1]
    Array([[3., 0.],
           [0., 2.]], dtype=float32)
    """
    return run_small(_polar_of, (a,), (side, method, eps, max_iterations))


def _polar_of(
    a: ArrayLike, side: str, method: str, eps: float | None, max_iterations: int | Array | None
) -> tuple[Array, Array]:
    x = asarray(a)
    _inexact("linalg.polar", x)
    if x.ndim < 2:
        raise ValueError(
            f"linalg.polar: matrices are needed; got shape {x.shape}; add axes with x[None]"
        )
    if side not in ("right", "left"):
        raise not_one_of("linalg.polar", "side", side, ("right", "left"))
    for v in (eps, max_iterations):
        if v is not None:
            as_node(v, "linalg.polar")
    most = 10 if max_iterations is None else max_iterations
    if type(most) is not Array or not is_traced(most._node):
        most = as_int(most, "linalg.polar", "max_iterations")
    if x.ndim == 2:
        return _polar(x, side, method, eps, most)
    core = "(n,n)" if side == "right" else "(m,m)"
    each = vectorize(lambda x: _polar(x, side, method, eps, most), signature=f"(m,n)->(m,n),{core}")
    return each(x)
