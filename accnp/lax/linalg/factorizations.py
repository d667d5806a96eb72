"""`lax.linalg`: matrix factorizations, products and solvers, one for each primitive of JAX.

Matrices are in the last two axes; leading axes are batches. Nothing is promoted. Matrices for which
LAPACK fails give NaN. Eigenvalues are in `spectra.py`.
"""

from __future__ import annotations

from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import as_node, as_nodes, cast
from accnp.api.arguments.shapes import as_int
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.numpy.manipulation import expand_node
from accnp.primitives.elementwise import like
from accnp.primitives.linalg import matrix_t, triangle

__all__ = [
    "arrays", "cholesky", "cholesky_update", "geqp3", "geqrf", "householder_product", "lu",
    "lu_pivots_to_permutation", "ormqr", "qr", "symmetric", "symmetric_product", "symmetrized",
    "triangular_solve", "tridiagonal_solve",
]  # fmt: skip


def arrays(node: Node) -> tuple[Array, ...]:
    """Return the outputs of a factorization as arrays."""
    return tuple([wrap(x) for x in items(node)])


def symmetric(x: Node) -> Node:
    """Return the mean of matrices and their adjoints."""
    both = o.add(x, matrix_t(x, True))
    return o.div(both, like(both, 2))


def symmetrized(name: str, x: Node, symmetrize: bool) -> Node:
    """Check that matrices are square; return their symmetric part if `symmetrize`."""
    if x.aval.ndim < 2:
        raise TypeError(
            f"{name}: matrices in the last two axes are needed; got {x.aval.shape}; "
            "add axes with x[None]"
        )
    if x.aval.shape[-1] != x.aval.shape[-2]:
        raise IncompatibleShapesError(
            f"{name}: needs square matrices in the last two axes; got {x.aval.shape}; "
            "cut or pad them"
        )
    if x.aval.dtype.kind in "biu" and symmetrize:
        kind = x.aval.dtype  # the mean has this dtype
        new = dtypes.default_float() if kind.kind == "b" else dtypes.to_inexact(kind)
        x = cast(x, new, x.aval.weak_type)
    if x.aval.dtype.kind in "biu":
        raise TypeError(
            f"{name}: the matrix must be floating or complex; got {x.aval.dtype.name}; "
            "convert with astype"
        )
    return symmetric(x) if symmetrize else x


@api_boundary
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Compute the lower triangular Cholesky factor of positive definite matrices.

    Parameters
    ----------
    x : array_like
        Symmetric or Hermitian positive definite matrices of shape (..., n, n).
    symmetrize_input : bool, optional
        Whether to factor the mean of `x` and its adjoint. If False, only the lower triangle is
        read. The default is True.

    Returns
    -------
    Array
        L with L @ L^H = x, of the shape and dtype of `x`; nan where `x` is not positive definite.
        Symmetrized integers give floats.

    Raises
    ------
    {raises_square}
    TypeError
        If `x` has fewer than two axes, is a list, or has integers that are not symmetrized.

    See Also
    --------
    numpy.linalg.cholesky : The same for integers and the upper factor, too.
    cholesky_update : Update a factor.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    node = symmetrized("lax.linalg.cholesky", as_node(x, "lax.linalg.cholesky"), symmetrize_input)
    return wrap(triangle(o.cholesky(node)))


@api_boundary
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Update a Cholesky factor after a rank-one change.

    Parameters
    ----------
    r_matrix : array_like
        Upper triangular factor R of shape (..., n, n), of real floating dtype.
    w_vector : array_like
        Vector w of shape (..., n), of the same dtype.

    Returns
    -------
    Array
        Upper triangular factor of R^T @ R + w w^T, of the shape and dtype of R.

    Raises
    ------
    ValueError
        If R is not square, or w does not have n elements.
    TypeError
        If R has fewer than two axes, or dtypes differ or are not real and floating.

    See Also
    --------
    cholesky : Compute a factor.

    Notes
    -----
    O(n^2) operations.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.cholesky_update(jnp.array([[3.]]), jnp.array([4.]))
    Array([[5.]], dtype=float32)
    """
    r, w = as_nodes("lax.linalg.cholesky_update", r_matrix, w_vector)
    return wrap(o.cholesky_update(r, w))


@api_boundary
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Multiply Householder reflectors, which gives the first columns of a unitary matrix.

    Parameters
    ----------
    a : array_like
        Reflectors below the diagonal, in an array of shape (..., m, n) with m >= n.
    taus : array_like
        Factors of the reflectors, of shape (..., k) with k <= n.

    Returns
    -------
    Array
        Orthonormal columns, of the shape and dtype of `a`.

    Raises
    ------
    ValueError
        If m < n or k > n.
    TypeError
        If `a` has fewer than two axes, or dtypes differ or are integers.

    See Also
    --------
    qr : QR factorization.
    ormqr : Multiply by the matrix without computing it.

    Examples
    --------
    >>> import accnp as jnp
    >>> reflector = jnp.array([[1.], [0.]])
    >>> jnp.lax.linalg.householder_product(reflector, jnp.array([2.]))[0]
    Array([-1.], dtype=float32)
    """
    return wrap(o.householder_product(*as_nodes("lax.linalg.householder_product", a, taus)))


@api_boundary
def lu(x: ArrayLike) -> list[Array]:
    """Compute the LU factorization of matrices with row exchanges.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n), of floating or complex dtype.

    Returns
    -------
    lu : Array
        Lower triangular factor L below the diagonal, whose own diagonal is 1, and upper triangular
        factor U in the rest, of shape (..., m, n).
    pivots : Array
        Row exchanges, of shape (..., min(m, n)) and dtype int32.
    permutation : Array
        Resulting order of the rows, of shape (..., m) and dtype int32: x[permutation] = L @ U.

    Raises
    ------
    TypeError
        If `x` has fewer than two axes, or is neither floating nor complex.

    See Also
    --------
    lu_pivots_to_permutation : Order of rows after exchanges.
    scipy.linalg.lu, scipy.linalg.lu_factor : The same by SciPy's names.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.lu(jnp.array([[0., 1.], [2., 3.]]))[2]
    Array([1, 0], dtype=int32)
    """
    return list(arrays(o.lu(as_node(x, "lax.linalg.lu"))))


@api_boundary
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of rows after a sequence of row exchanges.

    Parameters
    ----------
    pivots : array_like of int32
        Exchanges of shape (..., k): row i is exchanged with row pivots[i], one after the other.
    permutation_size : int
        Number of rows, at least k.

    Returns
    -------
    Array
        Permutation of shape (..., permutation_size) and dtype int32.

    Raises
    ------
    ValueError
        If `permutation_size` is less than k.
    TypeError
        If `pivots` is a scalar or not int32, or `permutation_size` is not an integer.

    See Also
    --------
    lu : LU factorization.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1]), 4)
    Array([2, 1, 0, 3], dtype=int32)
    """
    name = "lax.linalg.lu_pivots_to_permutation"
    size = as_int(permutation_size, name, "permutation_size", "shape")
    return wrap(o.lu_pivots_to_permutation(as_node(pivots, name), permutation_size=size))


@api_boundary
def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiply by the unitary matrix Q of Householder reflectors without computing it.

    Parameters
    ----------
    a : array_like
        Reflectors below the diagonal, in an array of shape (..., m, n).
    taus : array_like
        Factors of the reflectors, of shape (..., k).
    c : array_like
        Matrices to multiply.
    left : bool, optional
        Whether Q is the left factor. The default is True.
    transpose : bool, optional
        Whether to use the adjoint of Q. The default is False.

    Returns
    -------
    Array
        Products of the shape and dtype of `c`.

    Raises
    ------
    ValueError
        If `c` does not fit Q, or there are more factors than reflectors.
    TypeError
        If an operand has too few axes, or dtypes differ or are integers.

    See Also
    --------
    householder_product : The matrix Q itself.
    qr : QR factorization.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.ormqr(jnp.eye(2), jnp.zeros(1), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)
    """
    nodes = as_nodes("lax.linalg.ormqr", a, taus, c)
    return wrap(o.ormqr(*nodes, left=bool(left), transpose=bool(transpose)))


def geqrf(a: Array) -> tuple[Array, Array]:
    """Return R with the reflectors below it, and the factors of the reflectors."""
    packed, taus = arrays(o.geqrf(a._node))
    return packed, taus


def geqp3(a: Array) -> tuple[Array, Array, Array]:
    """Return R with the reflectors below it, the order of columns, and the reflectors' factors."""
    packed, order, taus = arrays(o.geqp3(a._node))
    return packed, order, taus


@api_boundary
def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """Compute the QR factorization of matrices, with column pivoting if wanted.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n), of floating or complex dtype.
    pivoting : bool, optional
        If True, choose the order of columns such that the diagonal of R does not increase. The
        default is False.
    full_matrices : bool, optional
        If True, the default, Q is square. Otherwise it has k = min(m, n) columns.
    use_magma : bool, optional
        Library on GPUs in JAX. It is accepted and has no effect.

    Returns
    -------
    Q : Array
        Matrices with orthonormal columns, of shape (..., m, m) or (..., m, k).
    R : Array
        Upper triangular matrices of shape (..., m, n) or (..., k, n), with x = Q @ R.
    P : Array
        With `pivoting`, the order of columns: x[..., P] = Q @ R, of shape (..., n) and dtype int32.

    Raises
    ------
    TypeError
        If `x` has fewer than two axes, or is neither floating nor complex.

    See Also
    --------
    numpy.linalg.qr : The same for integers, too.
    householder_product : Product of reflectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> q, r, p = jnp.lax.linalg.qr(jnp.array([[1., 0.], [0., 2.]]), pivoting=True)
    >>> p
    Array([1, 0], dtype=int32)
    """
    flags = {"pivoting": bool(pivoting), "full_matrices": bool(full_matrices)}
    return arrays(o.qr(as_node(x, "lax.linalg.qr"), **flags, use_magma=use_magma))


def _as_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"lax.linalg.symmetric_product: {name} must be a number; got {value!r}; "
            "pass a Python number"
        ) from None


@api_boundary
def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Compute alpha a @ a^T + beta c for real matrices.

    Parameters
    ----------
    a_matrix : array_like
        Matrices of shape (..., m, n), of real floating dtype.
    c_matrix : array_like
        Symmetric matrices of shape (..., m, m), of the same dtype.
    alpha : float, optional
        Factor of the product. The default is 1.
    beta : float, optional
        Factor of `c_matrix`. The default is 0.
    symmetrize_output : bool, optional
        If True, copy the lower triangle of the result to the upper one. The default is False.

    Returns
    -------
    Array
        Matrices of the shape and dtype of `c_matrix`.

    Raises
    ------
    ValueError
        If shapes do not fit.
    TypeError
        If an operand has fewer than two axes, dtypes differ or are not real and floating, or a
        factor is not a number.

    See Also
    --------
    numpy.linalg.matmul : Product of matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.symmetric_product(jnp.array([[1., 2.]]), jnp.array([[1.]]), beta=3.0)
    Array([[8.]], dtype=float32)
    """
    a, c = as_nodes("lax.linalg.symmetric_product", a_matrix, c_matrix)
    factors = {"alpha": _as_float("alpha", alpha), "beta": _as_float("beta", beta)}
    out = o.symmetric_product(a, c, **factors)
    if symmetrize_output:
        out = o.add(triangle(out), matrix_t(triangle(out, -1)))
    return wrap(out)


@api_boundary
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve op(a) @ x = b or x @ op(a) = b for triangular matrices.

    Parameters
    ----------
    a : array_like
        Triangular matrices of shape (..., m, m); the other triangle is not read.
    b : array_like
        Right-hand sides of shape (..., m, n) if `left_side`, otherwise (..., n, m), or one vector
        for each matrix.
    left_side : bool, optional
        Whether `a` is the left factor. The default is False.
    lower : bool, optional
        Whether `a` is lower triangular. The default is False.
    transpose_a : bool, optional
        Whether op transposes. The default is False.
    conjugate_a : bool, optional
        Whether op conjugates. The default is False.
    unit_diagonal : bool, optional
        Whether the diagonal of `a` is taken to be 1 and not read. The default is False.

    Returns
    -------
    Array
        Solutions x, of the shape and dtype of `b`.

    Raises
    ------
    ValueError
        If `a` is not square, or `b` does not fit it.
    TypeError
        If `a` has fewer than two axes, batch axes or dtypes differ, or dtypes are integers.

    See Also
    --------
    scipy.linalg.solve_triangular : The same by SciPy's name.
    numpy.linalg.solve : Solve general systems.

    Examples
    --------
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
def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve systems of linear equations with tridiagonal matrices.

    Parameters
    ----------
    dl : array_like
        Lower diagonals of shape (..., m): dl[i] is in row i, and the first element is not read.
    d : array_like
        Main diagonals of shape (..., m).
    du : array_like
        Upper diagonals of shape (..., m): du[i] is in row i, and the last element is not read.
    b : array_like
        Right-hand sides of shape (..., m, k).
    perturb_singular : bool, optional
        If True, replace pivots that are zero or subnormal by the precision times the largest
        element of the upper factor, so that singular systems have finite solutions. The default
        is False.

    Returns
    -------
    Array
        Solutions of shape (..., m, k), of the dtype of the operands; nan where the matrix is
        singular.

    Raises
    ------
    TypeError
        If shapes do not fit, or dtypes differ or are integers.

    See Also
    --------
    numpy.linalg.solve : Solve general systems.

    Examples
    --------
    >>> import accnp as jnp
    >>> one = jnp.ones(2)
    >>> jnp.lax.linalg.tridiagonal_solve(one, 2 * one, one, jnp.array([[3.], [3.]]))
    Array([[1.],
           [1.]], dtype=float32)
    """
    nodes = as_nodes("lax.linalg.tridiagonal_solve", dl, d, du, b)
    return wrap(o.tridiagonal_solve(*nodes, perturb_singular=bool(perturb_singular)))
