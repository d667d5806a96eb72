"""`experimental.sparse.linalg.lobpcg_standard`: the largest eigenvalues of a symmetric operator.

The operator is a matrix, or a function that multiplies a block of vectors. The algorithm is the
locally optimal block preconditioned conjugate gradient method (Knyazev, 2001), with the orthonormal
bases of Duersch, Shao, Yang and Gu (2018), without preconditioning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import as_node
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.lax.control_flow.loops import while_loop
from accnp.numpy.creation import eye, zeros
from accnp.numpy.joining import concatenate
from accnp.numpy.linalg import decompositions as linalg
from accnp.numpy.linalg.norms import norm
from accnp.numpy.matrices import diagonal
from accnp.numpy.products import matmul
from accnp.numpy.reductions import sum as _sum
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import logical_and, maximum
from accnp.pytree import PyTree

__all__ = ["lobpcg_standard"]


def _normalize_columns(x: Array) -> Array:
    """Scale columns to norm 1; zero columns are kept."""
    size = norm(x, axis=0, keepdims=True)
    return x / where(size == 0, 1, size)


def _eigh_descending(a: Array) -> tuple[Array, Array]:
    w, v = linalg.eigh(a)
    return w[::-1], v[:, ::-1]


def _orthonormal(x: Array) -> Array:
    """Orthonormalize columns, twice because of rounding; dependent columns become zeros."""
    for _ in range(2):
        x = _normalize_columns(x)
        inner = x.T @ x
        w, v = _eigh_descending(inner)
        least = float(dtypes.finfo(x.dtype).eps) * w[0]
        x = x @ (v * where(least > 0, maximum(w, least), 1) ** -0.5)
        kept = ((w > least) & (diagonal(inner) > 0))[None]
        x = _normalize_columns(where(kept, x, 0))
    return x


def _project_out(basis: Array, x: Array) -> Array:
    """Subtract the components of vectors in a basis; zeros if little remains."""
    for _ in range(2):
        x = _orthonormal(x - basis @ (basis.T @ x))
    for _ in range(2):
        x = x - basis @ (basis.T @ x)
    return where(norm(x, axis=0, keepdims=True) >= 0.99, x, 0)


def _complement(x: Array) -> Array:
    """Return equally many orthonormal vectors, orthogonal to the given ones: columns of a block
    reflector that maps these to the first unit vectors."""
    n, k = x.shape
    u, s, vt = linalg.svd(x[:k])
    y = concatenate([x[:k] + u @ vt, x[k:]])
    w = y @ (vt.T * (2 * (1 + s)) ** -0.5)
    units = concatenate([eye(k, dtype=x.dtype), zeros((n - 2 * k, k), x.dtype)])
    h = -2 * w @ (w[k:].T @ units)
    return h.at[k:].add(units)


@api_boundary
@broadcasts_inside
def lobpcg_standard(
    A: ArrayLike | Callable[..., PyTree], X: ArrayLike, m: int = 100, tol: float | None = None
) -> tuple[Array, Array, Array]:
    """Compute the largest eigenvalues of a symmetric matrix and their eigenvectors by LOBPCG.

    Parameters
    ----------
    A : array_like or callable
        Symmetric matrix of shape [n, n], or a function that multiplies it by an array of shape [n,
        any].
    X : array_like
        First guesses of the eigenvectors, real, of shape [n, k] with 5 k < n.
    m : int, optional
        Largest number of iterations. The default is 100.
    tol : float, optional
        Iterations stop when all residuals are less than `tol` times 10 n times the norm of A X plus
        the eigenvalue. The default is the precision of the dtype.

    Returns
    -------
    eigenvalues : Array
        The k largest eigenvalues in descending order.
    eigenvectors : Array
        Eigenvectors as columns, of shape [n, k].
    iterations : Array
        Number of iterations.

    Raises
    ------
    ValueError
        If there are too many columns or none, or the shape of A does not match.

    See Also
    --------
    numpy.linalg.eigh : All eigenvalues of a dense matrix.

    Notes
    -----
    Locally optimal block preconditioned conjugate gradient method; see Knyazev, "Toward the Optimal
    Preconditioned Eigensolver" (2001).

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.sparse.linalg import lobpcg_standard
    >>> A = jnp.diag(jnp.arange(1., 21.))
    >>> w, v, steps = lobpcg_standard(A, jnp.ones((20, 1)))
    >>> jnp.round(w, 2)
    Array([20.], dtype=float32)
    """
    name = "lobpcg_standard"
    x = wrap(as_node(X, name))
    multiply: Any = A if callable(A) else partial(matmul, wrap(as_node(A, name)))
    n, k = x.shape
    if not 0 < 5 * k < n:
        raise ValueError(
            f"{name}: X needs columns, 5 times as many less than rows; got shape {x.shape}; "
            "pass fewer columns, or use eigh"
        )
    first = multiply(zeros((n, 1), x.dtype))
    if first.dtype != x.dtype or first.shape != (n, 1):
        raise ValueError(
            f"{name}: A must take [{n}, 1] to the same shape and dtype {x.dtype}; got "
            f"{first.shape} of {first.dtype}; let A take columns and give columns"
        )
    bound = float(dtypes.finfo(x.dtype).eps) if tol is None else tol

    def more(state: Any) -> Any:
        i, _, _, _, count, _ = state
        return logical_and(i < m, count < k)

    def step(state: Any) -> Any:
        i, x, p, r, _, _ = state
        r = _project_out(concatenate([x, p], axis=1), r)
        basis = concatenate([x, p, r], axis=1)
        theta, q = _eigh_descending(basis.T @ multiply(basis))
        best = q[:, :k]
        x = basis @ (best / norm(best, axis=0, keepdims=True))
        x = x / norm(x, axis=0, keepdims=True)
        # The change of x in the basis, orthogonal to x: the next direction.
        turn, _ = linalg.qr(q[:k, k:].T)
        p = _normalize_columns(basis @ (q[:, k:] @ turn))
        moved = multiply(x)
        r = moved - theta[:k] * x
        scale = 10 * n * (norm(moved, axis=0) + theta[:k])
        done = _sum(norm(r, axis=0) < bound * scale)
        return i + 1, x, p, r, done, theta[:k]

    x = _orthonormal(x)
    p = _complement(x)
    moved = multiply(x)
    theta = _sum(x * moved, axis=0)
    none = zeros((), dtypes.default_int())
    state = (0, x, p, moved - theta * x, none, theta)
    i, x, _, _, _, theta = while_loop(more, step, state)
    return theta, x, wrap(as_node(i))
