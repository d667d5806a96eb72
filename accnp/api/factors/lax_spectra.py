"""`lax.linalg`: eigenvalues, singular values, and the forms that lead to them.

In: floating or complex arrays, matrices in the last two axes, batches in front. Out: lazy Arrays.
Nothing is promoted. Matrices for which LAPACK fails give NaN.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.api.arguments.shapes import as_int
from accnp.api.factors.lax_linalg import arrays, symmetrized
from accnp.array import Array, ArrayLike
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.op import o

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "eig", "eigh", "hessenberg", "schur",
    "svd", "tridiagonal",
]  # fmt: skip


class EigImplementation(enum.Enum):
    """Who computes general eigenvalues, as `lax.linalg.eig` takes it; LAPACK does here.

    CUSOLVER and MAGMA, for GPUs, are refused with a ValueError.

    >>> import accnp as jnp
    >>> which = jnp.lax.linalg.EigImplementation.LAPACK
    >>> len(jnp.lax.linalg.eig(jnp.eye(2), implementation=which))
    3
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How `lax.linalg.eigh` computes eigenvalues: by QR here.

    JACOBI and QDWH are refused with a NotImplementedError.

    >>> import accnp as jnp
    >>> which = jnp.lax.linalg.EighImplementation.QR
    >>> jnp.lax.linalg.eigh(jnp.eye(2), implementation=which)[1]
    Array([1., 1.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """How singular values are computed, as `lax.linalg.svd` takes it.

    JACOBI and POLAR are refused with a NotImplementedError.

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
    """Return eigenvalues, left and right eigenvectors of square matrices, complex.

    Args:
        x: [..., n, n].
        compute_left_eigenvectors: vl with vl^H @ x = w vl^H, columns of norm 1.
        compute_right_eigenvectors: vr with x @ vr = vr w, columns of norm 1.
        enable_eigvec_derivs: allow derivatives of vectors. They hold where all eigenvalues are
            distinct and no vector has two components of largest size.
        implementation: None or LAPACK.
        use_magma: deprecated, without effect but for True, which is refused.

    Returns:
        A list: w [..., n], then what is wanted of vl and vr, [..., n, n]; complex64, or complex128
        for 64 bits.

    Raises:
        ValueError: matrices are not square, or the implementation is one for GPUs.
        TypeError: x has fewer than two axes or integers, or the implementation is none.

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
        implementation=_choice("lax.linalg.eig", implementation, EigImplementation),
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
    """Return eigenvectors and eigenvalues (ascending) of Hermitian matrices, in this order.

    Args:
        x: [..., n, n].
        lower: which triangle is read where the input is not symmetrized.
        symmetrize_input: take the mean of x and its adjoint.
        sort_eigenvalues: without effect, they always are.
        subset_by_index: None, or all of them: (0, n).
        implementation: None or QR.

    Returns:
        v [..., n, n] of the dtype of x (floating, where integers are symmetrized), and w [..., n],
        real.

    Raises:
        ValueError: matrices are not square.
        TypeError: x has fewer than two axes, or integers that are not symmetrized; an option is of
            another kind.
        NotImplementedError: subset_by_index is a part of them, or the implementation is not QR.

    Example:
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
        algorithm=_choice("lax.linalg.eigh", implementation, EighImplementation),
    )
    v, w = arrays(out)
    return v, w


def _pair(name: str, subset: Any) -> tuple[int, ...] | None:
    if subset is None:
        return None
    if not isinstance(subset, tuple | list) or len(subset) != 2:
        raise IncompatibleShapesError(
            f"{name}: subset_by_index must be two integers or None; got {subset!r}; "
            "pass the first place and the one behind the last"
        )
    return tuple([as_int(n, name, "subset_by_index") for n in subset])


def _choice(name: str, value: Any, kind: type[enum.Enum]) -> Any:
    """A value of an enumeration, or None."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(
            f"{name}: needs a value of lax.linalg.{kind.__name__} or None; got {value!r}; "
            "pass one of its members"
        )
    return value


@api_boundary
def hessenberg(a: ArrayLike) -> list[Array]:
    """Reduce square matrices to Hessenberg form, as LAPACK stores it.

    Returns:
        A list: the form in the upper triangle and first subdiagonal, reflectors below; and their
        factors, [..., n - 1].

    The dtype stays, floating or complex.

    Raises:
        ValueError: matrices are not square.
        TypeError: a has fewer than two axes or integers.

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
    """Return a list of T and, if wanted, Z with x = Z @ T @ Z^H; T is upper triangular.

    For real matrices T has blocks of 2 by 2 for pairs of complex eigenvalues.

    Args:
        x: [..., n, n].
        compute_schur_vectors: return Z.
        sort_eig_vals: not implemented.
        select_callable: without effect.

    Shapes and the floating or complex dtype stay.

    Raises:
        ValueError: matrices are not square.
        TypeError: x has fewer than two axes or integers.
        NotImplementedError: sort_eig_vals is true.

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
    return list(arrays(node))


@api_boundary
def svd(
    x: ArrayLike,
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

    Returns:
        U [..., m, m], S [..., k], real and descending, and Vh [..., n, n]; k = min(m, n). The dtype
        of U and Vh is that of x.

    Raises:
        ValueError: subset_by_index is a part of them with full_matrices.
        TypeError: x has fewer than two axes or integers; an option is of another kind.
        NotImplementedError: subset_by_index is a part of them, or the algorithm JACOBI or POLAR.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    found = arrays(
        o.svd(
            as_node(x, "lax.linalg.svd"),
            full_matrices=bool(full_matrices),
            compute_uv=bool(compute_uv),
            subset_by_index=_pair("lax.linalg.svd", subset_by_index),
            algorithm=_choice("lax.linalg.svd", algorithm, SvdAlgorithm),
        )
    )
    return (found[1], found[0], found[2]) if compute_uv else found[0]


@api_boundary
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Reduce Hermitian matrices to tridiagonal form, as LAPACK stores it.

    Args:
        a: [..., n, n].
        lower: which triangle is read.

    Returns:
        A list: the form with reflectors beside it, [..., n, n]; its diagonal, [..., n], and the one
        beside it, [..., n - 1], real; the factors of the reflectors, [..., n - 1].

    Raises:
        ValueError: matrices are not square.
        TypeError: a has fewer than two axes, or its dtype is neither floating nor complex.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.linalg.tridiagonal(jnp.array([[1., 2.], [2., 3.]]))[2]
        Array([2.], dtype=float32)
    """
    node = as_node(a, "lax.linalg.tridiagonal")
    return list(arrays(o.tridiagonal(node, lower=bool(lower))))
