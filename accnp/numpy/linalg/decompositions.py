"""`jnp.linalg`: linear systems, inverses, decompositions and determinants.

Matrices are in the last two axes; leading axes broadcast. Integers are converted to floats.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    broadcast_shapes,
    cast,
    check_ranks,
    promote_inexact,
    to_shape,
)
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.lax.linalg import factorizations as lax_linalg
from accnp.lax.linalg import spectra as lax_spectra
from accnp.numpy import products
from accnp.numpy.manipulation import expand_node
from accnp.numpy.matrices import diagonal as _diagonal
from accnp.numpy.rearranging import flip as _flip
from accnp.numpy.sorting import argsort, sort
from accnp.numpy.taking import take_along_axis
from accnp.numpy.ufuncs import abs as _abs
from accnp.numpy.ufuncs import sign
from accnp.numpy.vector_products import cross as _cross
from accnp.primitives.linalg import batched_identity, matrix_t

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "matrices", "qr", "slogdet", "solve", "svd", "svdvals",
    "trace",
]  # fmt: skip


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors, the result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors, the result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Factors of a matrix, the result of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Sign and logarithm of a determinant, the result of `slogdet`."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Factors of a matrix, the result of `svd`."""

    U: Array
    S: Array
    Vh: Array


def matrices(
    x: Any, function: str, square: bool = False, kind: type[Exception] = TypeError
) -> Node:
    """Convert an argument to matrices of floats; too few axes raise an error of type `kind`."""
    node = promote_inexact(function, x)[0]
    shape = node.aval.shape
    few = len(shape) < 2
    if few or (square and shape[-1] != shape[-2]):
        raise (kind if few else IncompatibleShapesError)(_shape_text(function, shape, square))
    if node.aval.weak_type:
        node = o.convert_element_type(node, new_dtype=node.aval.dtype, weak_type=False)
    return node


def _shape_text(function: str, shape: tuple[int, ...], square: bool) -> str:
    """Return the error message for a wrong shape, with the phrases of JAX that programs match."""
    if not square:
        return f"{function}: expected matrices in the last two axes; got shape {shape}; reshape it"
    name = function.rpartition(".")[2]
    if name in ("eig", "eigvals"):
        return (
            f"{function}: The input to eig must be a square matrix. Got shape {shape}; reshape it"
        )
    name = {"det": "_det()", "slogdet": "slogdet()"}.get(name, name)
    return (
        f"{function}: Argument to {name} must have shape [..., n, n], got {shape}; pass square "
        "matrices"
    )


P = ParamSpec("P")
R = TypeVar("R")


def weak_as_operands(function: Callable[P, R]) -> Callable[P, R]:
    """Make results weakly typed if the promoted array arguments are, as in JAX."""

    @functools.wraps(function)
    def flagged(*args: Any, **options: Any) -> Any:
        out: Any = function(*args, **options)
        arguments = [*args, *options.values()]
        if not any(x.weak_type for x in arguments if type(x) is Array):
            return out
        types = [dtypes.value_type(x) for x in arguments if isinstance(x, np.ndarray)]
        types += [(x.dtype, x.weak_type) for x in arguments if type(x) is Array]
        if not dtypes.promote(types)[1]:
            return out
        return _make_weak(out) if type(out) is Array else type(out)(*map(_make_weak, out))

    return flagged


def _make_weak(x: Array) -> Array:
    return wrap(cast(x._node, x.dtype, True))


@api_boundary
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Compute the cross product of vectors of 3 components.

    Parameters
    ----------
    x1 : array_like
        Vectors along `axis`; the other axes broadcast.
    x2 : array_like
        Second operands of the products, likewise.
    axis : int, optional
        Axis of the components. The default is the last one.

    Returns
    -------
    Array
        Cross products, of the promoted dtype.

    Raises
    ------
    ValueError
        If an operand does not have 3 components along the axis.
    TypeError
        If the other axes do not broadcast, or an operand is a list or a string.

    See Also
    --------
    numpy.cross : The same for vectors of 2 components, too.
    outer, vecdot : Other products of vectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    shapes = [as_node(x, "linalg.cross").aval.shape for x in (x1, x2)]
    if any(not -len(s) <= axis < len(s) or s[axis] != 3 for s in shapes):
        raise ValueError(
            f"linalg.cross: both operands need 3 components along axis {axis}; got shapes {shapes};"
            " use jnp.cross for vectors of 2, or pass the axis of components"
        )
    return _cross(x1, x2, axis=axis)


@api_boundary
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the diagonals of matrices.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n).
    offset : int, optional
        Which diagonal to sum: 0, the default, is the main one, positive numbers are above it.
    dtype : dtype_like, optional
        Dtype of the result. The default is that of `x`, but int32 (int64 with `jax_enable_x64`) for
        narrower integers.

    Returns
    -------
    Array
        Traces of shape (...).

    Raises
    ------
    ValueError
        If there are fewer than two axes.
    TypeError
        If `x` is a list or a string.

    See Also
    --------
    diagonal : The elements of the diagonals.
    numpy.trace : The same for any two axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return products.trace(x, offset, -2, -1, dtype)


@moves_elements()
@api_boundary
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Take the diagonals of matrices.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n).
    offset : int, optional
        Which diagonal to take: 0, the default, is the main one, positive numbers are above it.

    Returns
    -------
    Array
        Diagonals of shape (..., k), with k = min(m, n) for offset 0, and of the dtype of `x`.

    Raises
    ------
    ValueError
        If there are fewer than two axes.
    TypeError
        If `x` is a list or a string.

    See Also
    --------
    trace : Sum of the diagonals.
    numpy.diagonal : The same for any two axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _diagonal(x, offset, -2, -1)


# --- systems and inverses ------------------------------------------------------------------------


@api_boundary
@weak_as_operands
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve systems of linear equations a @ x = b.

    Parameters
    ----------
    {a_square}
    b : array_like
        Right-hand sides, of shape (..., n, k). An array of one axis is a vector, as in NumPy 2.

    Returns
    -------
    Array
        Solutions x, of the shape of `b` with broadcast batch axes. Integers give the default float
        dtype; other dtypes are unchanged, also float16 and bfloat16.

    Raises
    ------
    ValueError
        If shapes do not fit each other.
    TypeError
        If an operand is a list or a string.

    See Also
    --------
    inv : Inverse of matrices.
    lstsq : Least-squares solution of overdetermined systems.
    scipy.linalg.solve_triangular, scipy.linalg.cho_solve : Solvers for special matrices.

    Notes
    -----
    LU factorization with partial pivoting. Unlike NumPy, a singular matrix gives inf or nan instead
    of an error.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.solve(2 * jnp.eye(2), jnp.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    name = "linalg.solve"
    x, y = promote_inexact(name, a, b)
    return wrap(solve_nodes(matrices(wrap(x), name, True, ValueError), y, name))


def solve_nodes(a: Node, b: Node, name: str) -> Node:
    """Solve for a vector (one axis) or for matrices, with broadcasting."""
    vector = b.aval.ndim == 1
    if vector:
        b = expand_node(b, (1,))
    if b.aval.ndim < 2 or b.aval.shape[-2] != a.aval.shape[-1]:
        raise ValueError(
            f"{name}: a and b must have the same number of rows; got shapes {a.aval.shape} and "
            f"{b.aval.shape}; transpose or slice one"
        )
    outer = [a.aval.shape[:-2], b.aval.shape[:-2]]
    check_ranks(name, outer)
    outer_shape = broadcast_shapes(name, outer)
    a, b = (to_shape(v, (*outer_shape, *v.aval.shape[-2:])) for v in (a, b))
    out = o.linear_solve(a, b)
    return o.squeeze(out, dimensions=(out.aval.ndim - 1,)) if vector else out


@api_boundary
@compiled_if_small("a")
def inv(a: ArrayLike) -> Array:
    """Compute the inverse of matrices.

    Parameters
    ----------
    {a_square}

    Returns
    -------
    Array
        Inverses, of the shape of `a`. Integers give the default float dtype; other dtypes are
        unchanged, also float16 and bfloat16.

    Raises
    ------
    ValueError
        If the last two axes do not have the same length.
    TypeError
        If `a` is a list or a string.

    See Also
    --------
    solve : Solve linear equations, which is faster and more accurate than a product with the
        inverse.
    pinv : Pseudo-inverse.

    Notes
    -----
    Unlike NumPy, singular matrices give inf or nan instead of an error.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.inv(2 * jnp.eye(2))
    Array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """
    x = matrices(a, "linalg.inv", True, ValueError)
    return wrap(o.linear_solve(x, batched_identity(x.aval)))


# --- decompositions ------------------------------------------------------------------------------


@api_boundary
@weak_as_operands
@shown()
@compiled_if_small("a")
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Compute the Cholesky factor of positive definite matrices.

    Parameters
    ----------
    a : array_like
        Symmetric or Hermitian positive definite matrices of shape (..., n, n).
    upper : bool, optional
        If True, return the upper triangular factor, the adjoint of the lower one. The default is
        False.
    symmetrize_input : bool, optional
        Whether to factor the mean of `a` and its adjoint. If False, only the lower triangle is
        read. The default is True.

    Returns
    -------
    Array
        Lower triangular L with L @ L^H = a, of the shape of `a`; nan where `a` is not positive
        definite. Integers give the default float dtype; other dtypes are unchanged, also float16
        and bfloat16.

    Raises
    ------
    ValueError
        If the last two axes have different lengths.
    TypeError
        If `a` has fewer than two axes, or is a list or a string.

    See Also
    --------
    scipy.linalg.cho_solve : Solve linear equations with the factor.
    qr, svd, eigh : Other factorizations.

    Notes
    -----
    Unlike NumPy, there is no error where `a` is not positive definite, and `a` is symmetrized first
    unless `symmetrize_input` is False.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.cholesky(4 * jnp.eye(2))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    x = matrices(a, "linalg.cholesky", True)
    out = lax_linalg.cholesky(wrap(x), symmetrize_input=symmetrize_input)
    return wrap(matrix_t(out._node, True)) if upper else out


@api_boundary
@weak_as_operands
@shown()
@compiled_if_small("a")
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Compute eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    {a_square}
    UPLO : {"L", "U"}, optional
        Triangle that is read if `a` is not symmetrized: the lower one, the default, or the upper
        one.
    symmetrize_input : bool, optional
        Whether to use the mean of `a` and its adjoint. The default is True.

    Returns
    -------
    eigenvalues : Array
        Eigenvalues of shape (..., n) in ascending order, of real dtype.
    eigenvectors : Array
        Normalized eigenvectors, the columns of matrices of shape (..., n, n). Integers give the
        default float dtype; other dtypes are unchanged, also float16 and bfloat16.

    Raises
    ------
    ValueError
        If `UPLO` is unknown, or the matrices are not square.
    TypeError
        If `a` has fewer than two axes, or is a list or a string.

    See Also
    --------
    eigvalsh : The eigenvalues only.
    eig : Eigenvalues of general matrices.
    svd : Singular value decomposition.

    Notes
    -----
    Unlike NumPy, `a` is symmetrized first unless `symmetrize_input` is False.

    Examples
    --------
    >>> import accnp as jnp
    >>> values, vectors = jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> values
    Array([1., 2.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise not_one_of("linalg.eigh", "UPLO", UPLO, (None, "L", "U"))
    x = wrap(matrices(a, "linalg.eigh", True))
    v, w = lax_spectra.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@api_boundary
@shown()
@compiled_if_small("a")
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Compute the eigenvalues of symmetric or Hermitian matrices.

    Parameters
    ----------
    {a_square}
    UPLO : {"L", "U"}, optional
        Triangle that is read if `a` is not symmetrized: the lower one, the default, or the upper
        one.
    symmetrize_input : bool, optional
        Whether to use the mean of `a` and its adjoint. The default is True.

    Returns
    -------
    Array
        Eigenvalues of shape (..., n) in ascending order, of real dtype.

    Raises
    ------
    ValueError
        If `UPLO` is unknown, or the matrices are not square.
    TypeError
        If `a` has fewer than two axes, or is a list or a string.

    See Also
    --------
    eigh : Eigenvalues and eigenvectors.
    eigvals : Eigenvalues of general matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.eigvalsh(jnp.eye(2))
    Array([1., 1.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@api_boundary
@weak_as_operands
@compiled_if_small("a")
def eig(a: ArrayLike) -> EigResult:
    """Compute eigenvalues and eigenvectors of general square matrices.

    Parameters
    ----------
    {a_square}

    Returns
    -------
    eigenvalues : Array
        Eigenvalues of shape (..., n), of complex dtype; nan where `a` is not finite.
    eigenvectors : Array
        Normalized right eigenvectors, the columns of matrices of shape (..., n, n), of complex
        dtype.

    Raises
    ------
    ValueError
        If the last two axes have different lengths.
    TypeError
        If `a` has fewer than two axes, or is a list or a string.

    See Also
    --------
    eigvals : The eigenvalues only, which are differentiable.
    eigh : Eigenvalues of symmetric matrices.
    lax.linalg.eig : Left eigenvectors, too, and derivatives on demand.

    Notes
    -----
    Unlike NumPy, the result is always complex. There are no derivatives, as in JAX.

    Examples
    --------
    >>> import accnp as jnp
    >>> values, vectors = jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
    >>> values
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    x = wrap(matrices(a, "linalg.eig", True))
    return EigResult(*lax_spectra.eig(x, compute_left_eigenvectors=False))


@api_boundary
@weak_as_operands
@shown()
@compiled_if_small("a")
def eigvals(a: ArrayLike) -> Array:
    """Compute the eigenvalues of general square matrices.

    Parameters
    ----------
    {a_square}

    Returns
    -------
    Array
        Eigenvalues of shape (..., n), of complex dtype.

    Raises
    ------
    ValueError
        If the last two axes have different lengths.
    TypeError
        If `a` has fewer than two axes, or is a list or a string.

    See Also
    --------
    eig : Eigenvalues and eigenvectors.
    eigvalsh : Eigenvalues of symmetric matrices.

    Notes
    -----
    Unlike NumPy, the result is always complex.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    x = wrap(matrices(a, "linalg.eigvals", True))
    return lax_spectra.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True,
    hermitian: bool = False, subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False],
    hermitian: bool = False, subset_by_index: tuple[int, int] | None = None,
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
    hermitian: bool = False, subset_by_index: tuple[int, int] | None = None,
) -> Any: ...  # fmt: skip
@api_boundary
@weak_as_operands
@shown()
@compiled_if_small("a")
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Compute the singular value decomposition of matrices.

    Parameters
    ----------
    a : array_like
        Matrices of shape (..., m, n).
    full_matrices : bool, optional
        If True, the default, U and Vh are square. Otherwise U has k columns and Vh has k rows, with
        k = min(m, n).
    compute_uv : bool, optional
        If False, only the singular values are computed. The default is True.
    {hermitian_svd}
    subset_by_index : tuple of (int, int), optional
        Range of singular values to compute. Only None and the whole range are supported.

    Returns
    -------
    U : Array
        Left singular vectors, of shape (..., m, m) or (..., m, k). Integers give the default float
        dtype; other dtypes are unchanged, also float16 and bfloat16.
    S : Array
        Singular values of shape (..., k), real and in descending order.
    Vh : Array
        Adjoint of the right singular vectors, of shape (..., n, n) or (..., k, n). U and Vh are
        missing if `compute_uv` is False.

    Raises
    ------
    ValueError
        If `subset_by_index` is not supported.
    TypeError
        If `a` has fewer than two axes, or is a list or a string.

    See Also
    --------
    svdvals : The singular values only.
    eigh : Eigenvalues of symmetric matrices.
    pinv, matrix_rank : Functions based on it.

    Notes
    -----
    a = (U * S) @ Vh.

    Examples
    --------
    >>> import accnp as jnp
    >>> u, s, vh = jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> s
    Array([4., 3.], dtype=float32)
    """
    x = wrap(matrices(a, "linalg.svd"))
    if not hermitian:
        out = lax_spectra.svd(
            x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
        )
        return SVDResult(*out) if compute_uv else out
    v, w = lax_spectra.eigh(x, subset_by_index=subset_by_index)
    size = _abs(w)
    if not compute_uv:
        return _flip(sort(size), -1)
    order = _flip(argsort(size), -1)
    u = take_along_axis(v, order[..., None, :], axis=-1)
    turned = u * sign(take_along_axis(w, order, axis=-1))[..., None, :].astype(u.dtype)
    vh = wrap(matrix_t(turned._node, True))
    return SVDResult(u, take_along_axis(size, order, axis=-1), vh)


@api_boundary
@compiled_if_small("x")
def svdvals(x: ArrayLike, /) -> Array:
    """Compute the singular values of matrices.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n).

    Returns
    -------
    Array
        Singular values of shape (..., min(m, n)) in descending order, of real dtype.

    Raises
    ------
    TypeError
        If `x` has fewer than two axes, or is a list or a string.

    See Also
    --------
    svd : Singular value decomposition.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "full"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str = "reduced") -> Any: ...
@api_boundary
@weak_as_operands
@shown()
@compiled_if_small("a")
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Compute the QR factorization of matrices.

    Parameters
    ----------
    a : array_like
        Matrices of shape (..., m, n).
    mode : {"reduced", "complete", "r", "raw", "full"}, optional
        "reduced", the default, and "full" return Q of shape (..., m, k) and R of shape (..., k, n),
        with k = min(m, n). "complete" returns a square Q, "r" only R. "raw" returns R and the
        Householder reflectors in one transposed matrix, and the factors of the reflectors.

    Returns
    -------
    Q : Array
        Matrices with orthonormal columns. Integers give the default float dtype; other dtypes are
        unchanged, also float16 and bfloat16.
    R : Array
        Upper triangular matrices, with a = Q @ R.

    Raises
    ------
    ValueError
        If `mode` is unknown.
    TypeError
        If `a` has fewer than two axes, or is a list or a string.

    See Also
    --------
    scipy.linalg.qr : The same with column pivoting.
    cholesky, svd : Other factorizations.
    lstsq : Least-squares solution.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.qr(jnp.array([[0.0], [2.0]]))
    QRResult(Q=Array([[ 0.],
           [-1.]], dtype=float32), R=Array([[-2.]], dtype=float32))
    """
    if mode not in ("reduced", "r", "full", "complete", "raw"):
        raise not_one_of("linalg.qr", "mode", mode, ("reduced", "r", "full", "complete", "raw"))
    x = wrap(matrices(a, "linalg.qr"))
    if mode == "raw":
        packed, taus = lax_linalg.geqrf(x)
        return QRResult(packed.mT, taus)
    q, r = lax_linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


# --- determinants ----------------------------------------------------------------------


@api_boundary
@weak_as_operands
def det(a: ArrayLike) -> Array:
    """Compute the determinant of square matrices.

    Parameters
    ----------
    {a_square}

    Returns
    -------
    Array
        Determinants of shape (...). Integers give the default float dtype; other dtypes are
        unchanged, also float16 and bfloat16.

    Raises
    ------
    ValueError
        If the last two axes do not have the same length.
    TypeError
        If `a` is a list or a string.

    See Also
    --------
    slogdet : Its sign and logarithm, without overflow.

    Notes
    -----
    Computed by LU factorization. Up to 3 by 3 the determinant is expanded, so that derivatives of
    any order are correct for singular matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.det(2 * jnp.eye(2))
    Array(4., dtype=float32)
    """
    return run_small(_det, (a,), ())


def _det(a: ArrayLike) -> Array:
    x = matrices(a, "linalg.det", True, ValueError)
    n = x.aval.shape[-1]
    return wrap(_written_out(x) if n in (1, 2, 3) else o.det(x))


def _written_out(x: Node) -> Node:
    a, n = wrap(x), x.aval.shape[-1]

    def product(columns: Sequence[int]) -> Array:
        return functools.reduce(operator.mul, [a[..., i, j] for i, j in enumerate(columns)])

    if n == 1:
        return product((0,))._node
    if n == 2:
        return (product((0, 1)) - product((1, 0)))._node
    even = product((0, 1, 2)) + product((1, 2, 0)) + product((2, 0, 1))
    return (even - product((2, 1, 0)) - product((0, 2, 1)) - product((1, 0, 2)))._node


@api_boundary
@shown()
@compiled_if_small("a")
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Compute the sign and the logarithm of the determinant of square matrices.

    Parameters
    ----------
    {a_square}
    method : {"lu", "qr"}, optional
        Factorization to use. The default is "lu".

    Returns
    -------
    sign : Array
        Signs of the determinants, of shape (...); complex numbers of size 1 for complex matrices.
    logabsdet : Array
        Logarithms of their absolute values, of real dtype.

    Raises
    ------
    ValueError
        If the matrices are not square, or `method` is unknown.
    TypeError
        If `a` is a list or a string.
    NotImplementedError
        If `method` is "qr" and the matrices are complex.

    See Also
    --------
    det : The determinant itself, which may overflow.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.slogdet(jnp.eye(2))
    SlogdetResult(sign=Array(1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise not_one_of("linalg.slogdet", "method", method, (None, "lu", "qr"))
    x = matrices(a, "linalg.slogdet", True, ValueError)
    if method == "qr" and x.aval.dtype.kind == "c":
        raise NotImplementedError(
            "linalg.slogdet: method='qr' supports only real matrices; got a complex dtype; use 'lu'"
        )
    signs, log = items(o.slogdet(x))
    return SlogdetResult(wrap(signs), wrap(log))
