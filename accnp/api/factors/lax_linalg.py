"""`lax.linalg`: factors of matrices, products and solvers, one for each primitive of jax's.

In: floating or complex arrays, matrices in the last two axes, batches in front. Out: lazy Arrays.
Nothing is promoted. Matrices for which LAPACK fails give NaN. `lax_spectra` has eigenvalues.
"""

from __future__ import annotations

from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import as_node, as_nodes, cast
from accnp.api.arguments.shapes import as_int
from accnp.api.arrays.manipulation import expand_node
from accnp.array import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.linalg import matrix_t, triangle

__all__ = [
    "arrays", "cholesky", "cholesky_update", "geqp3", "geqrf", "householder_product", "lu",
    "lu_pivots_to_permutation", "ormqr", "qr", "symmetric", "symmetric_product", "symmetrized",
    "triangular_solve", "tridiagonal_solve",
]  # fmt: skip


def arrays(node: Node) -> tuple[Array, ...]:
    """The outputs of a factorisation."""
    return tuple([wrap(x) for x in items(node)])


def symmetric(x: Node) -> Node:
    """The mean of matrices and their adjoints."""
    both = o.add(x, matrix_t(x, True))
    return o.div(both, like(both, 2))


def symmetrized(name: str, x: Node, wanted: bool) -> Node:
    """Square matrices; their symmetric part if wanted."""
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
    if x.aval.dtype.kind in "biu" and wanted:
        kind = x.aval.dtype  # a mean is of the dtype that half of it has
        new = dtypes.default_float() if kind.kind == "b" else dtypes.to_inexact(kind)
        x = cast(x, new, x.aval.weak_type)
    if x.aval.dtype.kind in "biu":
        raise TypeError(
            f"{name}: the matrix must be floating or complex; got {x.aval.dtype.name}; "
            "convert with astype"
        )
    return symmetric(x) if wanted else x


@api_boundary
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with L @ L^H = x; NaN where x is not positive definite.

    Args:
        x: [..., n, n].
        symmetrize_input: take the mean of x and its adjoint; else the lower triangle alone is read.

    The shape [..., n, n] and the floating or complex dtype stay; the mean of integers is floating.

    Raises:
        ValueError: matrices are not square.
        TypeError: x has fewer than two axes, is a list, or has integers and is not symmetrized.

    >>> import accnp as jnp
    >>> jnp.lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    node = symmetrized("lax.linalg.cholesky", as_node(x, "lax.linalg.cholesky"), symmetrize_input)
    return wrap(triangle(o.cholesky(node)))


@api_boundary
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Return the upper triangular factor of R^T @ R + w w^T, given R, in O(n^2).

    Args:
        r_matrix: R, [..., n, n], real, upper triangular.
        w_vector: [..., n].

    The shape and the real, floating dtype of R stay.

    Raises:
        ValueError: R is not square, or w has not n elements.
        TypeError: R has fewer than two axes; dtypes are not the same, not real, or integers.

    >>> import accnp as jnp
    >>> jnp.lax.linalg.cholesky_update(jnp.array([[3.]]), jnp.array([4.]))
    Array([[5.]], dtype=float32)
    """
    r, w = as_nodes("lax.linalg.cholesky_update", r_matrix, w_vector)
    return wrap(o.cholesky_update(r, w))


@api_boundary
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Multiply Householder reflectors: the first columns of a unitary matrix.

    Args:
        a: [..., m, n] with m >= n; the reflectors lie below the diagonal.
        taus: [..., k] with k <= n, their factors.

    The shape [..., m, n] and the floating or complex dtype of a stay.

    Raises:
        ValueError: m < n or k > n.
        TypeError: a has fewer than two axes; dtypes differ or are integers.

    >>> import accnp as jnp
    >>> reflector = jnp.array([[1.], [0.]])
    >>> jnp.lax.linalg.householder_product(reflector, jnp.array([2.]))[0]
    Array([-1.], dtype=float32)
    """
    return wrap(o.householder_product(*as_nodes("lax.linalg.householder_product", a, taus)))


@api_boundary
def lu(x: ArrayLike) -> list[Array]:
    """Return the LU factors of matrices with exchanged rows: x[permutation] = L @ U.

    Returns:
        A list: L below the diagonal (its own diagonal is 1) and U in the rest, [..., m, n]; the
        exchanges, int32[..., min(m, n)]; and the order of rows that these make, int32[..., m].

    Raises:
        TypeError: x has fewer than two axes, or its dtype is neither floating nor complex.

    >>> import accnp as jnp
    >>> jnp.lax.linalg.lu(jnp.array([[0., 1.], [2., 3.]]))[2]
    Array([1, 0], dtype=int32)
    """
    return list(arrays(o.lu(as_node(x, "lax.linalg.lu"))))


@api_boundary
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of rows after exchanges: of row i with row pivots[i], one after the other.

    Args:
        pivots: int32[..., k].
        permutation_size: the number of rows, at least k.

    Returns:
        int32[..., permutation_size].

    Raises:
        ValueError: permutation_size is below k.
        TypeError: pivots is a scalar or not int32, or permutation_size is no integer.

    >>> import accnp as jnp
    >>> jnp.lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1]), 4)
    Array([2, 1, 0, 3], dtype=int32)
    """
    name = "lax.linalg.lu_pivots_to_permutation"
    size = as_int(permutation_size, name, "permutation_size")
    return wrap(o.lu_pivots_to_permutation(as_node(pivots, name), permutation_size=size))


@api_boundary
def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiply by the unitary matrix Q that Householder reflectors stand for, without making it.

    Args:
        a: [..., m, n], reflectors below the diagonal.
        taus: [..., k], their factors.
        c: the matrices to multiply.
        left: Q @ c; else c @ Q.
        transpose: multiply by the adjoint of Q.

    Returns:
        The product, of the shape and the floating or complex dtype of c.

    Raises:
        ValueError: c does not fit Q, or there are more factors than reflectors.
        TypeError: an operand has too few axes; dtypes differ or are integers.

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
    packed, taus = arrays(o.geqrf(a._node))
    return packed, taus


def geqp3(a: Array) -> tuple[Array, Array, Array]:
    """Return R above reflectors, the order of columns, the factors of the reflectors."""
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
    """Return Q and R with x = Q @ R; and with pivoting P, where x[..., P] = Q @ R.

    Args:
        x: [..., m, n].
        pivoting: choose the order of columns so that the diagonal of R does not grow.
        full_matrices: Q is [..., m, m]; else it has min(m, n) columns.
        use_magma: without effect.

    Returns:
        Q [..., m, m] and R [..., m, n] of the dtype of x, or [..., m, k] and [..., k, n] with
        k = min(m, n); with pivoting P, int32[..., n], too.

    Raises:
        TypeError: x has fewer than two axes, or its dtype is neither floating nor complex.

    Example:
        >>> import accnp as jnp
        >>> q, r, p = jnp.lax.linalg.qr(jnp.array([[1., 0.], [0., 2.]]), pivoting=True)
        >>> p
        Array([1, 0], dtype=int32)
    """
    flags = {"pivoting": bool(pivoting), "full_matrices": bool(full_matrices)}
    return arrays(o.qr(as_node(x, "lax.linalg.qr"), **flags, use_magma=use_magma))


def _number(name: str, value: Any) -> float:
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
    """Return alpha a @ a^T + beta c, for real matrices and symmetric c.

    Args:
        a_matrix: [..., m, n].
        c_matrix: [..., m, m].
        alpha: a number.
        beta: a number.
        symmetrize_output: copy the lower triangle of the result to the upper one.

    The shape and the real, floating dtype are those of c.

    Raises:
        ValueError: shapes do not fit.
        TypeError: an operand has fewer than two axes; dtypes differ or are not real and floating;
            alpha or beta is no number.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.symmetric_product(jnp.array([[1., 2.]]), jnp.array([[1.]]), beta=3.0)
        Array([[8.]], dtype=float32)
    """
    a, c = as_nodes("lax.linalg.symmetric_product", a_matrix, c_matrix)
    factors = {"alpha": _number("alpha", alpha), "beta": _number("beta", beta)}
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
    """Solve op(a) @ x = b, or x @ op(a) = b, for triangular a.

    Args:
        a: [..., m, m]; one triangle is read.
        b: [..., m, n] if left_side, else [..., n, m]; or one vector for each matrix.
        left_side: a stands on the left.
        lower: which triangle is read.
        transpose_a: op transposes.
        conjugate_a: op conjugates.
        unit_diagonal: the diagonal is 1 and not read.

    Returns:
        x, of the shape and the floating or complex dtype of b.

    Raises:
        ValueError: a is not square, or b does not fit it.
        TypeError: a has fewer than two axes; batch axes or dtypes differ; dtypes are integers.

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
def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
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

    The dtype stays, floating or complex, the same for all operands.

    Raises:
        TypeError: shapes do not fit, or dtypes differ or are integers.

    Example:
        >>> import accnp as jnp
        >>> one = jnp.ones(2)
        >>> jnp.lax.linalg.tridiagonal_solve(one, 2 * one, one, jnp.array([[3.], [3.]]))
        Array([[1.],
               [1.]], dtype=float32)
    """
    nodes = as_nodes("lax.linalg.tridiagonal_solve", dl, d, du, b)
    return wrap(o.tridiagonal_solve(*nodes, perturb_singular=bool(perturb_singular)))
