"""`lax.linalg`: factorisations of matrices as strict functions, one for each primitive of jax's.

In: floating or complex arrays, matrices in the last two axes, batches in front. Out: lazy Arrays.
Nothing is promoted. Matrices for which LAPACK fails give NaN.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any

from accnp.api.arguments.convert import as_node, as_nodes
from accnp.api.arguments.shapes import as_int
from accnp.api.arrays.manipulation import expand_node
from accnp.array import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.linalg import matrix_t, triangle

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update",
    "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu",
    "lu_pivots_to_permutation", "ormqr", "qr", "schur", "svd", "symmetric", "symmetric_product",
    "triangular_solve", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip


class EigImplementation(enum.Enum):
    """Who computes general eigenvalues; there is LAPACK only."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How eigenvalues of symmetric matrices are computed; there is QR only."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """How singular values are computed; JACOBI and POLAR do not exist here."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _all(node: Node) -> tuple[Array, ...]:
    return tuple([wrap(x) for x in items(node)])


def symmetric(x: Node) -> Node:
    """The mean of matrices and their adjoints."""
    both = o.add(x, matrix_t(x, True))
    return o.div(both, like(both, 2))


def _symmetrized(name: str, x: Node, wanted: bool) -> Node:
    if wanted and x.aval.ndim < 2:
        raise TypeError(f"{name}: matrices in the last two axes are needed; got {x.aval.shape}")
    return symmetric(x) if wanted else x


@api_boundary
def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with L @ L^H = x; NaN where x is not positive definite.

    Args:
        x: [..., n, n].
        symmetrize_input: take the mean of x and its adjoint; else the lower triangle alone is read.

    >>> import accnp as jnp
    >>> jnp.lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    node = _symmetrized("lax.linalg.cholesky", as_node(x, "lax.linalg.cholesky"), symmetrize_input)
    return wrap(triangle(o.cholesky(node)))


@api_boundary
def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """Return the upper triangular factor of R^T @ R + w w^T, given R, in O(n^2).

    Args:
        r_matrix: R, [..., n, n], real, upper triangular.
        w_vector: [..., n].

    >>> import accnp as jnp
    >>> jnp.lax.linalg.cholesky_update(jnp.array([[3.]]), jnp.array([4.]))
    Array([[5.]], dtype=float32)
    """
    r, w = as_nodes("lax.linalg.cholesky_update", r_matrix, w_vector)
    return wrap(o.cholesky_update(r, w))


@api_boundary
def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Return eigenvalues, left and right eigenvectors of square matrices, complex.

    Args:
        x: [..., n, n].
        compute_left_eigenvectors: vl with vl^H @ x = w vl^H, columns of norm 1.
        compute_right_eigenvectors: vr with x @ vr = vr w, columns of norm 1.
        enable_eigvec_derivs: allow derivatives of vectors. They hold where all eigenvalues are
            distinct and no vector has two components of largest size.
        implementation: None or LAPACK.
        use_magma: deprecated, without effect but for True, which is refused.

    Example:
        >>> import accnp as jnp
        >>> w, = jnp.lax.linalg.eig(jnp.array([[0., 1.], [-1., 0.]]),
        ...     compute_left_eigenvectors=False, compute_right_eigenvectors=False)
        >>> w
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma is not None:
        text = "lax.linalg.eig: use_magma is deprecated; pass implementation= instead"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    node = o.eig(
        as_node(x, "lax.linalg.eig"),
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )
    return list(_all(node))


@api_boundary
def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Return eigenvectors and eigenvalues (ascending) of Hermitian matrices, in this order.

    Args:
        x: [..., n, n].
        lower: which triangle is read where the input is not symmetrized.
        symmetrize_input: take the mean of x and its adjoint.
        sort_eigenvalues: without effect, they always are.
        subset_by_index: None, or all of them: (0, n).
        implementation: None or QR.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.eigh(jnp.array([[0., 1.], [1., 0.]]))[1]
        Array([-1.,  1.], dtype=float32)
    """
    node = _symmetrized("lax.linalg.eigh", as_node(x, "lax.linalg.eigh"), symmetrize_input)
    out = o.eigh(
        node,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=_pair(subset_by_index),
        algorithm=implementation,
    )
    v, w = _all(out)
    return v, w


def _pair(subset: Any) -> tuple[int, ...] | None:
    return None if subset is None else tuple(int(n) for n in subset)


@api_boundary
def hessenberg(a: Any) -> tuple[Array, Array]:
    """Reduce square matrices to Hessenberg form, as LAPACK stores it.

    Returns:
        The form in the upper triangle and first subdiagonal, reflectors below; and their factors,
        [..., n - 1].

    >>> import accnp as jnp
    >>> a, taus = jnp.lax.linalg.hessenberg(jnp.eye(3))
    >>> taus
    Array([0., 0.], dtype=float32)
    """
    h, taus = _all(o.hessenberg(as_node(a, "lax.linalg.hessenberg")))
    return h, taus


@api_boundary
def householder_product(a: Any, taus: Any) -> Array:
    """Multiply Householder reflectors: the first columns of a unitary matrix.

    Args:
        a: [..., m, n] with m >= n; the reflectors lie below the diagonal.
        taus: [..., k] with k <= n, their factors.

    >>> import accnp as jnp
    >>> reflector = jnp.array([[1.], [0.]])
    >>> jnp.lax.linalg.householder_product(reflector, jnp.array([2.]))[0]
    Array([-1.], dtype=float32)
    """
    return wrap(o.householder_product(*as_nodes("lax.linalg.householder_product", a, taus)))


@api_boundary
def lu(x: Any) -> tuple[Array, Array, Array]:
    """Return the LU factors of matrices with exchanged rows: x[permutation] = L @ U.

    Returns:
        L below the diagonal (its own diagonal is 1) and U in the rest, [..., m, n]; the exchanges,
        int32[..., min(m, n)]; and the order of rows that these make, int32[..., m].

    >>> import accnp as jnp
    >>> jnp.lax.linalg.lu(jnp.array([[0., 1.], [2., 3.]]))[2]
    Array([1, 0], dtype=int32)
    """
    packed, pivots, order = _all(o.lu(as_node(x, "lax.linalg.lu")))
    return packed, pivots, order


@api_boundary
def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """Return the order of rows after exchanges: of row i with row pivots[i], one after the other.

    Args:
        pivots: int32[..., k].
        permutation_size: the number of rows, at least k.

    >>> import accnp as jnp
    >>> jnp.lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1]), 4)
    Array([2, 1, 0, 3], dtype=int32)
    """
    name = "lax.linalg.lu_pivots_to_permutation"
    size = as_int(permutation_size, name, "permutation_size")
    return wrap(o.lu_pivots_to_permutation(as_node(pivots, name), permutation_size=size))


@api_boundary
def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """Multiply by the unitary matrix Q that Householder reflectors stand for, without making it.

    Args:
        a: [..., m, n], reflectors below the diagonal.
        taus: [..., k], their factors.
        c: the matrices to multiply.
        left: Q @ c; else c @ Q.
        transpose: multiply by the adjoint of Q.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.ormqr(jnp.eye(2), jnp.zeros(1), jnp.ones((2, 1)))
        Array([[1.],
               [1.]], dtype=float32)
    """
    nodes = as_nodes("lax.linalg.ormqr", a, taus, c)
    return wrap(o.ormqr(*nodes, left=bool(left), transpose=bool(transpose)))


def geqrf(a: Array) -> tuple[Array, Array]:
    """Return R above reflectors, and the factors of these."""
    packed, taus = _all(o.geqrf(a._node))
    return packed, taus


def geqp3(a: Array) -> tuple[Array, Array, Array]:
    """Return R above reflectors, the order of columns, the factors of the reflectors."""
    packed, order, taus = _all(o.geqp3(a._node))
    return packed, order, taus


@api_boundary
def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, ...]:
    """Return Q and R with x = Q @ R; and with pivoting P, where x[..., P] = Q @ R.

    Args:
        x: [..., m, n].
        pivoting: choose the order of columns so that the diagonal of R does not grow.
        full_matrices: Q is [..., m, m]; else it has min(m, n) columns.
        use_magma: without effect.

    Example:
        >>> import accnp as jnp
        >>> q, r, p = jnp.lax.linalg.qr(jnp.array([[1., 0.], [0., 2.]]), pivoting=True)
        >>> p
        Array([1, 0], dtype=int32)
    """
    flags = {"pivoting": bool(pivoting), "full_matrices": bool(full_matrices)}
    return _all(o.qr(as_node(x, "lax.linalg.qr"), **flags, use_magma=use_magma))


@api_boundary
def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Array, ...]:
    """Return T and, if wanted, Z with x = Z @ T @ Z^H; T is upper triangular.

    For real matrices T has blocks of 2 by 2 for pairs of complex eigenvalues.

    Args:
        x: [..., n, n].
        compute_schur_vectors: return Z.
        sort_eig_vals: not implemented.
        select_callable: without effect.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.schur(jnp.eye(2))[0]
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    node = o.schur(
        as_node(x, "lax.linalg.schur"),
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=bool(sort_eig_vals),
        select_callable=select_callable,
    )
    return _all(node)


@api_boundary
def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Return U, the singular values, Vh with x = (U * S) @ Vh; or the singular values alone.

    Args:
        x: [..., m, n].
        full_matrices: U and Vh are square; else they have min(m, n) columns and rows.
        compute_uv: return U and Vh.
        subset_by_index: None, or all of them.
        algorithm: a value of SvdAlgorithm.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    found = _all(
        o.svd(
            as_node(x, "lax.linalg.svd"),
            full_matrices=bool(full_matrices),
            compute_uv=bool(compute_uv),
            subset_by_index=_pair(subset_by_index),
            algorithm=algorithm,
        )
    )
    return (found[1], found[0], found[2]) if compute_uv else found[0]


@api_boundary
def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Return alpha a @ a^T + beta c, for real matrices and symmetric c.

    Args:
        a_matrix: [..., m, n].
        c_matrix: [..., m, m].
        alpha: a number.
        beta: a number.
        symmetrize_output: copy the lower triangle of the result to the upper one.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.symmetric_product(jnp.array([[1., 2.]]), jnp.array([[1.]]), beta=3.0)
        Array([[8.]], dtype=float32)
    """
    a, c = as_nodes("lax.linalg.symmetric_product", a_matrix, c_matrix)
    out = o.symmetric_product(a, c, alpha=float(alpha), beta=float(beta))
    if symmetrize_output:
        out = o.add(triangle(out), matrix_t(triangle(out, -1)))
    return wrap(out)


@api_boundary
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve op(a) @ x = b, or x @ op(a) = b, for triangular a.

    Args:
        a: [..., m, m]; one triangle is read.
        b: [..., m, n] if left_side, else [..., n, m]; or one vector for each matrix.
        left_side: a stands on the left.
        lower: which triangle is read.
        transpose_a: op transposes.
        conjugate_a: op conjugates.
        unit_diagonal: the diagonal is 1 and not read.

    Example:
        >>> import accnp as jnp
        >>> a = jnp.array([[1., 0.], [2., 4.]])
        >>> jnp.lax.linalg.triangular_solve(a, jnp.array([1., 6.]), left_side=True, lower=True)
        Array([1., 1.], dtype=float32)
    """
    x, y = as_nodes("lax.linalg.triangular_solve", a, b)
    vector = y.aval.ndim == x.aval.ndim - 1
    rank = y.aval.ndim
    axis = rank if left_side else rank - 1
    out = o.triangular_solve(
        x,
        expand_node(y, (axis,)) if vector else y,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and x.aval.dtype.kind == "c",
        unit_diagonal=bool(unit_diagonal),
    )
    return wrap(o.squeeze(out, dimensions=(axis,)) if vector else out)


@api_boundary
def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduce Hermitian matrices to tridiagonal form, as LAPACK stores it.

    Args:
        a: [..., n, n].
        lower: which triangle is read.

    Returns:
        The form with reflectors beside it, [..., n, n]; its diagonal, [..., n], and the one beside
        it, [..., n - 1], real; the factors of the reflectors, [..., n - 1].

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.tridiagonal(jnp.array([[1., 2.], [2., 3.]]))[2]
        Array([2.], dtype=float32)
    """
    node = as_node(a, "lax.linalg.tridiagonal")
    out, d, e, taus = _all(o.tridiagonal(node, lower=bool(lower)))
    return out, d, e, taus


@api_boundary
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Array:
    """Solve systems with tridiagonal matrices.

    Args:
        dl: the lower diagonal, [..., m]; dl[i] stands in row i, the first is not read.
        d: the diagonal, [..., m].
        du: the upper diagonal, [..., m]; du[i] stands in row i, the last is not read.
        b: right sides, [..., m, k].
        perturb_singular: make tiny pivots eps times the largest element of the upper factor, so
            that singular systems have finite results.

    Returns:
        [..., m, k]; NaN where the matrix is singular.

    Example:
        >>> import accnp as jnp
        >>> one = jnp.ones(2)
        >>> jnp.lax.linalg.tridiagonal_solve(one, 2 * one, one, jnp.array([[3.], [3.]]))
        Array([[1.],
               [1.]], dtype=float32)
    """
    nodes = as_nodes("lax.linalg.tridiagonal_solve", dl, d, du, b)
    return wrap(o.tridiagonal_solve(*nodes, perturb_singular=bool(perturb_singular)))
