"""`scipy.linalg`: QR, Schur, singular values and eigenvalues, with SciPy's signatures.

Matrices are in the last two axes; leading axes are batches. Integers are converted to floats.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from accnp.api.arguments.convert import as_node, broadcast_shapes, to_shape
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.values import inexact_arrays
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of
from accnp.ir.node import items
from accnp.ir.op import o
from accnp.lax.linalg import factorizations as lax_linalg
from accnp.lax.linalg import spectra as lax_spectra
from accnp.numpy.creation import asarray, eye, ones, zeros, zeros_like
from accnp.numpy.cumulative import cumprod
from accnp.numpy.joining import block, concatenate
from accnp.numpy.matrices import triu
from accnp.numpy.ufuncs import abs as _abs
from accnp.numpy.ufuncs import conj, real
from accnp.random.keys import key_words

__all__ = [
    "as_complex", "eigh", "eigh_tridiagonal", "hessenberg", "qr", "qr_multiply", "schur", "svd",
]  # fmt: skip


def _inexact_array(name: str, x: Any) -> Array:
    return inexact_arrays(f"linalg.{name}", x)[0]


# --- QR, Schur, singular values ------------------------------------------------------------------


@api_boundary
@compiled_if_small("a")
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Compute the QR factorization of matrices, with column pivoting if wanted.

    Parameters
    ----------
    a : array_like
        Matrices of shape (..., m, n).
    {overwrite_a}
    lwork : int, optional
        Accepted for compatibility with SciPy; it has no effect.
    mode : {"full", "r", "economic"}, optional
        "full", the default, returns a square Q, "economic" min(m, n) columns, and "r" a tuple
        without Q.
    pivoting : bool, optional
        If True, choose the order of columns such that the diagonal of R does not increase. The
        default is False.
    {check_finite}

    Returns
    -------
    Q : Array
        Matrices with orthonormal columns. Integers give float32, other dtypes are unchanged.
    R : Array
        Upper triangular matrices, with a = Q @ R.
    P : Array
        With `pivoting`, the order of columns: a[..., P] = Q @ R.

    Raises
    ------
    TypeError
        If `a` is not an array, or has fewer than two axes.
    ValueError
        If `mode` is unknown.

    See Also
    --------
    qr_multiply : Multiply by Q.
    numpy.linalg.qr : The same by NumPy's name.

    Notes
    -----
    Unlike SciPy, there may be batch axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.qr(jnp.array([[2., 1.], [0., 1.]]), mode="r")
    (Array([[2., 1.],
           [0., 1.]], dtype=float32),)
    """
    if mode not in ("full", "r", "economic"):
        raise not_one_of("linalg.qr", "mode", mode, ("full", "r", "economic"))
    x = _inexact_array("qr", a)
    out = lax_linalg.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


@api_boundary
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Multiply by the Q of a QR factorization without computing it.

    Parameters
    ----------
    a : array_like
        Matrices to factor, of shape (..., m, n).
    c : array_like
        Matrices to multiply, of shape (..., p, m) for "right", or (..., k, p) for "left" with k =
        min(m, n); or a vector.
    mode : {"right", "left"}, optional
        Whether to compute c @ Q, the default, or Q @ c.
    pivoting : bool, optional
        If True, use column pivoting and return the order of columns, too. The default is False.
    conjugate : bool, optional
        Whether to multiply by the conjugate of Q. The default is False.
    {overwrite_a}
    overwrite_c : bool, optional
        Accepted for compatibility with SciPy; it has no effect.

    Returns
    -------
    CQ : Array
        Products. Integers give float32, other dtypes are unchanged.
    R : Array
        Upper triangular factor.
    P : Array
        With `pivoting`, the order of columns.

    Raises
    ------
    TypeError
        If `a` is not an array, or has fewer than two axes.
    ValueError
        If `mode` is unknown, or `c` does not fit.

    See Also
    --------
    qr : The factors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.qr_multiply(jnp.array([[2., 1.], [0., 1.]]), jnp.ones(2))[0]
    Array([1., 1.], dtype=float32)
    """
    name = "linalg.qr_multiply"
    x, y = inexact_arrays(name, a, c)
    if mode not in ("right", "left"):
        raise not_one_of(name, "mode", mode, ("right", "left"))
    left, vector = mode == "left", y.ndim == 1
    if vector:
        y = y[:, None] if left else y[None]
    m, n = x.shape[-2:]
    k = min(m, n)
    if y.shape[-2 if left else -1] != (k if left else m):
        raise ValueError(
            f"{name}: c needs {k} rows for Q @ c, or {m} columns for c @ Q; got shape {y.shape} "
            f"and mode={mode!r}; make it fit, or change mode"
        )
    outer = broadcast_shapes(name, [x.shape[:-2], y.shape[:-2]])
    x, y = (wrap(to_shape(v._node, (*outer, *v.shape[-2:]))) for v in (x, y))
    order: tuple[Array, ...] = ()
    if pivoting:
        packed, places, taus = lax_linalg.geqp3(x)
        order = (places,)
    else:
        packed, taus = lax_linalg.geqrf(x)
    if left and m > k:
        y = concatenate([y, zeros((*outer, m - k, y.shape[-1]), y.dtype)], axis=-2)
    if conjugate:  # conj(Q) @ c is the transpose of c^T @ Q^H
        out = lax_linalg.ormqr(packed, taus, y.mT, left=not left, transpose=True).mT
    else:
        out = lax_linalg.ormqr(packed, taus, y, left=left)
    out = out if left else out[..., :k]
    out = out.ravel() if vector else out
    return out, triu(packed[..., :k, :]), *order


@api_boundary
@compiled_if_small("a")
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Compute the Schur decomposition of square matrices.

    Parameters
    ----------
    {a_square}
    output : {"real", "complex"}, optional
        "real", the default, has blocks of 2 by 2 on the diagonal for pairs of complex eigenvalues
        of a real matrix; "complex" gives a triangular, complex T.

    Returns
    -------
    T : Array
        Upper triangular matrices, apart from these blocks; the dtype is unchanged or becomes
        complex.
    Z : Array
        Unitary matrices, with a = Z @ T @ Z^H.

    Raises
    ------
    TypeError
        If `a` is not an array, or has an integer dtype with output="real".
    ValueError
        If the matrices are not square, or `output` is unknown.

    See Also
    --------
    rsf2csf : Complex form of a real one.
    hessenberg : Hessenberg form.

    Notes
    -----
    Unlike SciPy, there may be batch axes, and lists are not accepted.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.schur(jnp.array([[1., 2.], [0., 3.]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise not_one_of("linalg.schur", "output", output, ("real", "complex"))
    x = wrap(as_node(a, "linalg.schur"))
    t, z = lax_spectra.schur(as_complex(x) if output == "complex" else x)
    return t, z


def as_complex(x: Array) -> Array:
    """Convert an array to the complex dtype of its precision."""
    if x.dtype.kind == "c":
        return x
    return x.astype(np.complex128 if x.dtype.itemsize == 8 else np.complex64)


@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[False] = False, overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array: ...  # fmt: skip
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]: ...
@api_boundary
@compiled_if_small("a")
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Compute the Hessenberg form of square matrices.

    Parameters
    ----------
    {a_square}
    calc_q : bool, optional
        If True, return Q, too. The default is False.
    {overwrite_a}
    {check_finite}

    Returns
    -------
    H : Array
        Matrices with zeros below the first subdiagonal, of the dtype of `a`.
    Q : Array
        Unitary matrices with a = Q @ H @ Q^H, if requested.

    Raises
    ------
    TypeError
        If `a` is not an array, or has an integer dtype.
    ValueError
        If the matrices are not square.

    See Also
    --------
    schur : Schur decomposition.
    lax.linalg.hessenberg : The form as LAPACK stores it.

    Notes
    -----
    Unlike SciPy, there may be batch axes, and neither integers nor lists are accepted.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x = wrap(as_node(a, "linalg.hessenberg"))
    n = x.shape[-1] if x.ndim else 0
    if x.ndim > 1 and not n:
        return (zeros_like(x), zeros_like(x)) if calc_q else zeros_like(x)
    packed, taus = lax_spectra.hessenberg(x)
    h = triu(packed, -1)
    if not calc_q:
        return h
    outer = x.shape[:-2]
    q = lax_linalg.householder_product(packed[..., 1:, :-1], taus)
    side = zeros((*outer, n - 1, 1), x.dtype)
    return h, block([[ones((*outer, 1, 1), x.dtype), side.mT], [side, q]])


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True,
    overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False],
    overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool, compute_uv: Literal[False],
    overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
    overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]: ...  # fmt: skip
@api_boundary
@compiled_if_small("a")
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
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
    {overwrite_a}
    {check_finite}
    lapack_driver : str, optional
        Accepted for compatibility with SciPy; it has no effect.

    Returns
    -------
    U : Array
        Left singular vectors. Integers give float32, other dtypes are unchanged.
    s : Array
        Singular values of shape (..., k), real and in descending order.
    Vh : Array
        Adjoint of the right singular vectors, with a = (U * s) @ Vh. U and Vh are missing if
        `compute_uv` is False.

    Raises
    ------
    TypeError
        If `a` is not an array, or has fewer than two axes.

    See Also
    --------
    numpy.linalg.svd : The same by NumPy's name.
    polar : Polar decomposition.

    Notes
    -----
    Unlike SciPy, there may be batch axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    return lax_spectra.svd(
        _inexact_array("svd", a), full_matrices=full_matrices, compute_uv=compute_uv
    )


# --- symmetric eigenvalues -----------------------------------------------------------------------


@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True,
    eigvals_only: Literal[False] = False, overwrite_a: bool = False, overwrite_b: bool = False,
    turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, *,
    eigvals_only: Literal[True], overwrite_a: bool = False, overwrite_b: bool = False,
    turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Array: ...  # fmt: skip
@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
    overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
    eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
@api_boundary
@compiled_if_small("a", "b")
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Compute eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    a : array_like
        Matrices of shape (..., n, n), of which the mean with the adjoint is used.
    b : None, optional
        Second matrix of a generalized problem. Not supported.
    lower : bool, optional
        Which triangle is read in SciPy. It has no effect, since both are.
    eigvals_only : bool, optional
        If True, return the eigenvalues only. The default is False.
    {overwrite_a}
    {overwrite_b}
    turbo : bool, optional
        Accepted for compatibility with SciPy; it has no effect.
    eigvals : None, optional
        Range of eigenvalues to compute. Not supported.
    type : int, optional
        Type of a generalized problem. Only 1 is supported.
    {check_finite}

    Returns
    -------
    w : Array
        Eigenvalues of shape (..., n) in ascending order, of real dtype.
    v : Array
        Normalized eigenvectors, columns of shape (..., n, n). Integers give float32, other dtypes
        are unchanged.

    Raises
    ------
    TypeError
        If `a` is not an array, or the matrices are not square.
    NotImplementedError
        If `b`, `eigvals` or another `type` is given.

    See Also
    --------
    eigh_tridiagonal : The same for tridiagonal matrices.
    numpy.linalg.eigh : The same by NumPy's name.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.eigh(jnp.array([[0., 1.], [1., 0.]]), eigvals_only=True)
    Array([-1.,  1.], dtype=float32)
    """
    for what, value, only in (("b", b, None), ("type", type, 1), ("eigvals", eigvals, None)):
        if (only is None and value is not None) or (only is not None and value != only):
            raise NotImplementedError(
                f"linalg.eigh: only {what}={only} is implemented; got {value!r}; leave {what} out"
            )
    v, w = lax_spectra.eigh(_inexact_array("eigh", a), lower=lower)
    return w if eigvals_only else (w, v)


@overload
def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: Literal[False] = False, select: str = "a",
    select_range: tuple[float, float] | None = None, tol: float | None = None, key: object = None,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: Literal[True], select: str = "a",
    select_range: tuple[float, float] | None = None, tol: float | None = None, key: object = None,
) -> Array: ...  # fmt: skip
@overload
def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: bool, select: str = "a",
    select_range: tuple[float, float] | None = None, tol: float | None = None, key: object = None,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
@api_boundary
@promotes_inside
@compiled_if_small("d", "e")
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: object = None,
) -> Array | tuple[Array, Array]:
    """Compute eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Parameters
    ----------
    d : array_like
        Main diagonal of shape (n,), of floating or complex dtype, whose real part is read.
    e : array_like
        Diagonal above it, of shape (n - 1,) and the same dtype.
    eigvals_only : bool, optional
        If True, return the eigenvalues only. The default is False.
    select : {"a", "i"}, optional
        "a", the default, computes all eigenvalues, "i" those of a range of indices.
    select_range : tuple of (int, int), optional
        First and last index for "i".
    tol : float, optional
        Absolute tolerance of the eigenvalues for "i", which are found by bisection.
    key : Array, optional
        PRNG key in JAX. It has no effect, since no random numbers are needed.

    Returns
    -------
    w : Array
        Eigenvalues in ascending order, of real dtype.
    v : Array
        Normalized eigenvectors as columns, unless `eigvals_only`.

    Raises
    ------
    TypeError
        If the dtypes differ, or are not one of float32, float64, complex64 and complex128.
    NotImplementedError
        If `select` is "v".

    See Also
    --------
    eigh : The same for full matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.eigh_tridiagonal(jnp.zeros(2), jnp.ones(1), eigvals_only=True)
    Array([-1.,  1.], dtype=float32)
    """
    name = "linalg.eigh_tridiagonal"
    alpha, beta = asarray(d), asarray(e)
    if alpha.dtype != beta.dtype or alpha.dtype.kind not in "fc" or alpha.dtype.itemsize < 4:
        raise TypeError(
            f"{name}: d and e need one dtype of float32, float64, complex64, complex128; got "
            f"{alpha.dtype} and {beta.dtype}; convert with astype"
        )
    if alpha.ndim != 1 or beta.shape != (max(alpha.size - 1, 0),):
        raise IncompatibleShapesError(
            f"{name}: d and e need one axis, e one element less; got shapes {alpha.shape} and "
            f"{beta.shape}; cut one of them"
        )
    if key is not None:
        key_words(key, name)
    n = alpha.shape[0]
    if n <= 1:
        w = real(alpha)
        return w if eigvals_only else (w, eye(n, dtype=alpha.dtype))
    if select == "v":
        raise NotImplementedError(f"{name}: select='v' is not implemented; use 'i' or 'a'")
    if select not in ("a", "i"):
        raise not_one_of(name, "select", select, ("a", "i"))
    subset = None
    if select == "i":
        if select_range is None or select_range[0] > select_range[1]:
            raise ValueError(
                f"{name}: select='i' needs a range of places; got {select_range}; "
                "say select_range=(first, last)"
            )
        subset = (int(select_range[0]), int(select_range[1]))
    phases = None
    if beta.dtype.kind == "c":  # made real by a diagonal unitary matrix
        size = _abs(beta)
        unit = conj(beta) / (size + (size == 0)) + (size == 0)
        phases = cumprod(concatenate([ones(1, beta.dtype), unit]))
        alpha, beta = real(alpha), size
    w, v = items(o.eigh_tridiagonal(alpha._node, beta._node, subset=subset, tol=float(tol or 0)))
    if eigvals_only:
        return wrap(w)
    return wrap(w), wrap(v) if phases is None else phases[:, None] * wrap(v)
