"""`lax.linalg`: eigenvalues, singular values, and the reduced forms that lead to them.

Matrices are in the last two axes; leading axes are batches. Nothing is promoted. Matrices for which
LAPACK fails give NaN.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, overload

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.shapes import as_int
from accnp.array_type import Array, ArrayLike
from accnp.errors import IncompatibleShapesError, api_boundary, warn
from accnp.ir.op import o
from accnp.lax.linalg.factorizations import arrays, symmetrized

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "eig", "eigh", "hessenberg", "schur",
    "svd", "tridiagonal",
]  # fmt: skip


class EigImplementation(enum.Enum):
    """Implementations of `lax.linalg.eig`, of which LAPACK is available.

    Attributes
    ----------
    CUSOLVER : EigImplementation
        For GPUs; not supported.
    MAGMA : EigImplementation
        For GPUs; not supported.
    LAPACK : EigImplementation
        The library for CPUs.

    Raises
    ------
    ValueError
        If `eig` is called with an implementation for GPUs.

    Examples
    --------
    >>> import accnp as jnp
    >>> which = jnp.lax.linalg.EigImplementation.LAPACK
    >>> len(jnp.lax.linalg.eig(jnp.eye(2), implementation=which))
    3
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Implementations of `lax.linalg.eigh`, of which QR is available.

    Attributes
    ----------
    QR : EighImplementation
        QR iterations of LAPACK.
    JACOBI : EighImplementation
        Not supported.
    QDWH : EighImplementation
        Not supported.

    Raises
    ------
    NotImplementedError
        If `eigh` is called with JACOBI or QDWH.

    Examples
    --------
    >>> import accnp as jnp
    >>> which = jnp.lax.linalg.EighImplementation.QR
    >>> jnp.lax.linalg.eigh(jnp.eye(2), implementation=which)[1]
    Array([1., 1.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Algorithms of `lax.linalg.svd`.

    Attributes
    ----------
    DEFAULT : SvdAlgorithm
        The fastest one.
    QR : SvdAlgorithm
        QR iterations.
    DIVIDE_AND_CONQUER : SvdAlgorithm
        Divide and conquer.
    JACOBI : SvdAlgorithm
        Not supported.
    POLAR : SvdAlgorithm
        Not supported.

    Raises
    ------
    NotImplementedError
        If `svd` is called with JACOBI or POLAR.

    Examples
    --------
    >>> import accnp as jnp
    >>> which = jnp.lax.linalg.SvdAlgorithm.QR
    >>> jnp.lax.linalg.svd(2 * jnp.eye(2), algorithm=which, compute_uv=False)
    Array([2., 2.], dtype=float32)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


@api_boundary
def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Compute eigenvalues, left and right eigenvectors of general square matrices.

    Parameters
    ----------
    {x_square}
    compute_left_eigenvectors : bool, optional
        Whether to return vl with vl^H @ x = w vl^H. The default is True.
    compute_right_eigenvectors : bool, optional
        Whether to return vr with x @ vr = vr w. The default is True.
    enable_eigvec_derivs : bool, optional
        Whether to allow derivatives of eigenvectors. They are correct if all eigenvalues are
        distinct and no vector has two components of largest size. The default is False.
    implementation : EigImplementation, optional
        Only LAPACK, the default, is supported.
    use_magma : bool, optional
        Deprecated. It has no effect, but True is refused.

    Returns
    -------
    w : Array
        Eigenvalues of shape (..., n), of dtype complex64 (complex128 for 64-bit numbers).
    vl, vr : Array
        Left and right eigenvectors, normalized columns of shape (..., n, n), if requested.

    Raises
    ------
    ValueError
        If the matrices are not square, or the implementation is for GPUs.
    TypeError
        If `x` has fewer than two axes or integers, or `implementation` has another type.

    See Also
    --------
    numpy.linalg.eig, numpy.linalg.eigvals : The same by NumPy's names.
    eigh : Eigenvalues of symmetric matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> w, = jnp.lax.linalg.eig(jnp.array([[0., 1.], [-1., 0.]]),
    ...     compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma is not None:
        text = "lax.linalg.eig: use_magma is deprecated; pass implementation= instead"
        warn(text, DeprecationWarning)
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    node = o.eig(
        as_node(x, "lax.linalg.eig"),
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=_as_enum_member("lax.linalg.eig", implementation, EigImplementation),
    )
    return list(arrays(node))


@api_boundary
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Compute eigenvectors and eigenvalues of symmetric or Hermitian matrices.

    Parameters
    ----------
    {x_square}
    lower : bool, optional
        Which triangle is read if `x` is not symmetrized. The default, True, is the lower one.
    symmetrize_input : bool, optional
        Whether to use the mean of `x` and its adjoint. The default is True.
    sort_eigenvalues : bool, optional
        Whether to sort the eigenvalues. They always are.
    subset_by_index : tuple of (int, int), optional
        Range of eigenvalues to compute. Only None and the whole range are supported.
    implementation : EighImplementation, optional
        Only QR, the default, is supported.

    Returns
    -------
    v : Array
        Normalized eigenvectors, columns of shape (..., n, n), of the dtype of `x` or floating for
        symmetrized integers.
    w : Array
        Eigenvalues of shape (..., n) in ascending order, of real dtype.

    Raises
    ------
    {raises_square}
    TypeError
        If `x` has fewer than two axes, or integers that are not symmetrized, or an option has
        another type.
    NotImplementedError
        If a part of the eigenvalues or another implementation is requested.

    See Also
    --------
    numpy.linalg.eigh : The same with the eigenvalues first.
    tridiagonal : Reduction to tridiagonal form.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.eigh(jnp.array([[0., 1.], [1., 0.]]))[1]
    Array([-1.,  1.], dtype=float32)
    """
    node = symmetrized("lax.linalg.eigh", as_node(x, "lax.linalg.eigh"), symmetrize_input)
    out = o.eigh(
        node,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=_pair("lax.linalg.eigh", subset_by_index),
        algorithm=_as_enum_member("lax.linalg.eigh", implementation, EighImplementation),
    )
    v, w = arrays(out)
    return v, w


def _pair(name: str, subset: Any) -> tuple[int, ...] | None:
    if subset is None:
        return None
    if not isinstance(subset, tuple | list) or len(subset) != 2:
        raise IncompatibleShapesError(
            f"{name}: subset_by_index must be two integers or None; got {subset!r}; "
            "pass the first index and the index after the last"
        )
    return tuple([as_int(n, name, "subset_by_index") for n in subset])


def _as_enum_member(name: str, value: Any, kind: type[enum.Enum]) -> Any:
    """Convert a value to a member of an enumeration, or None."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(
            f"{name}: needs a value of lax.linalg.{kind.__name__} or None; got {value!r}; "
            "pass one of its members"
        )
    return value


@api_boundary
def hessenberg(a: ArrayLike) -> list[Array]:
    """Reduce square matrices to Hessenberg form, as LAPACK stores it.

    Parameters
    ----------
    a : array_like
        Square matrices of shape (..., n, n), of floating or complex dtype.

    Returns
    -------
    a : Array
        Hessenberg form in the upper triangle and the first subdiagonal, reflectors below, of the
        shape and dtype of the input.
    taus : Array
        Factors of the reflectors, of shape (..., n - 1).

    Raises
    ------
    {raises_square}
    TypeError
        If `a` has fewer than two axes or integers.

    See Also
    --------
    scipy.linalg.hessenberg : The form as a matrix of its own.
    householder_product : Product of the reflectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> a, taus = jnp.lax.linalg.hessenberg(jnp.eye(3))
    >>> taus
    Array([0., 0.], dtype=float32)
    """
    return list(arrays(o.hessenberg(as_node(a, "lax.linalg.hessenberg"))))


@api_boundary
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Compute the Schur decomposition of square matrices.

    Parameters
    ----------
    {x_square}
    compute_schur_vectors : bool, optional
        Whether to return Z. The default is True.
    sort_eig_vals : bool, optional
        Whether to sort eigenvalues. Not supported.
    select_callable : callable, optional
        Criterion for sorting. It has no effect.

    Returns
    -------
    T : Array
        Upper triangular matrices with x = Z @ T @ Z^H, of the shape and dtype of `x`. Real matrices
        have blocks of 2 by 2 on the diagonal for pairs of complex eigenvalues.
    Z : Array
        Unitary matrices, if requested.

    Raises
    ------
    {raises_square}
    TypeError
        If `x` has fewer than two axes or integers.
    NotImplementedError
        If `sort_eig_vals` is True.

    See Also
    --------
    scipy.linalg.schur : The same by SciPy's name.
    eig : Eigenvalues and eigenvectors.

    Examples
    --------
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
    return list(arrays(node))


@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None,
) -> Array: ...  # fmt: skip
@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool,
    subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]: ...  # fmt: skip
@api_boundary
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, ...]:
    """Compute the singular value decomposition of matrices.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n), of floating or complex dtype.
    full_matrices : bool, optional
        If True, the default, U and Vh are square. Otherwise U has k columns and Vh has k rows, with
        k = min(m, n).
    compute_uv : bool, optional
        If False, only the singular values are computed. The default is True.
    subset_by_index : tuple of (int, int), optional
        Range of singular values to compute. Only None and the whole range are supported.
    algorithm : SvdAlgorithm, optional
        Algorithm to use: DEFAULT or QR.

    Returns
    -------
    U : Array
        Left singular vectors, of shape (..., m, m) or (..., m, k) and of the dtype of `x`.
    S : Array
        Singular values of shape (..., k), real and in descending order.
    Vh : Array
        Adjoint of the right singular vectors, of shape (..., n, n) or (..., k, n). U and Vh are
        missing if `compute_uv` is False.

    Raises
    ------
    ValueError
        If a part of the values is requested together with `full_matrices`.
    TypeError
        If `x` has fewer than two axes or integers, or an option has another type.
    NotImplementedError
        If a part of the values, or JACOBI or POLAR, is requested.

    See Also
    --------
    numpy.linalg.svd : The same for integers, too.

    Notes
    -----
    x = (U * S) @ Vh.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    factors = arrays(
        o.svd(
            as_node(x, "lax.linalg.svd"),
            full_matrices=bool(full_matrices),
            compute_uv=bool(compute_uv),
            subset_by_index=_pair("lax.linalg.svd", subset_by_index),
            algorithm=_as_enum_member("lax.linalg.svd", algorithm, SvdAlgorithm),
        )
    )
    return (factors[1], factors[0], factors[2]) if compute_uv else factors[0]


@api_boundary
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Reduce Hermitian matrices to tridiagonal form, as LAPACK stores it.

    Parameters
    ----------
    a : array_like
        Hermitian matrices of shape (..., n, n), of floating or complex dtype.
    lower : bool, optional
        Which triangle is read. The default, True, is the lower one.

    Returns
    -------
    a : Array
        Tridiagonal form with the reflectors beside it, of shape (..., n, n).
    d : Array
        Main diagonals of shape (..., n), of real dtype.
    e : Array
        Diagonals beside them, of shape (..., n - 1), of real dtype.
    taus : Array
        Factors of the reflectors, of shape (..., n - 1).

    Raises
    ------
    {raises_square}
    TypeError
        If `a` has fewer than two axes, or is neither floating nor complex.

    See Also
    --------
    eigh : Eigenvalues and eigenvectors.
    scipy.linalg.eigh_tridiagonal : Eigenvalues of tridiagonal matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.linalg.tridiagonal(jnp.array([[1., 2.], [2., 3.]]))[2]
    Array([2.], dtype=float32)
    """
    node = as_node(a, "lax.linalg.tridiagonal")
    return list(arrays(o.tridiagonal(node, lower=bool(lower))))
