"""`scipy.linalg`: QR, Schur, singular values and eigenvalues, in SciPy's spelling.

In: arrays of any numbers, matrices in the last two axes, batches in front. Out: lazy Arrays.
Integers become floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, broadcast_shapes, to_shape
from accnp.api.arguments.inside import promotes_inside
from accnp.api.arguments.values import inexact_arrays
from accnp.api.arrays.creation import asarray, eye, ones, zeros, zeros_like
from accnp.api.arrays.joining import block, concatenate
from accnp.api.arrays.matrices import triu
from accnp.api.elements.ufuncs import abs as _abs
from accnp.api.elements.ufuncs import conj, real
from accnp.api.factors import lax_linalg, lax_spectra
from accnp.api.folds.cumulative import cumprod
from accnp.api.sampling.keys import key_words
from accnp.array import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of
from accnp.ir.node import items
from accnp.ir.op import o

__all__ = [
    "as_complex", "eigh", "eigh_tridiagonal", "hessenberg", "qr", "qr_multiply", "schur", "svd",
]  # fmt: skip


def _one(name: str, x: Any) -> Array:
    return inexact_arrays(f"linalg.{name}", x)[0]


# --- QR, Schur, singular values ------------------------------------------------------------------


@api_boundary
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Return Q and R with a = Q @ R, and with pivoting the order of columns.

    Args:
        a: [..., m, n].
        mode: "full", "economic", or "r": a tuple without Q.
        pivoting: a[..., P] = Q @ R with a diagonal of R that does not grow.

    Integers give float32; floating and complex dtypes stay.

    Differs from SciPy: batches; check_finite and the overwriting are accepted and change nothing.

    Raises:
        TypeError: a is no array, or has fewer than two axes.
        ValueError: there is no such mode.

    >>> import accnp as jnp
    >>> jnp.scipy.linalg.qr(jnp.array([[2., 1.], [0., 1.]]), mode="r")
    (Array([[2., 1.],
           [0., 1.]], dtype=float32),)
    """
    if mode not in ("full", "r", "economic"):
        raise not_one_of("linalg.qr", "mode", mode, ("full", "r", "economic"))
    x = _one("qr", a)
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
    """Multiply by the Q of a QR factorisation without making it; and return R.

    Args:
        a: [..., m, n].
        c: [..., p, m] for "right", [..., k, p] for "left" with k = min(m, n); or one vector.
        mode: "right": c @ Q; "left": Q @ c.
        pivoting: exchange columns, and return their order as well.
        conjugate: multiply by the conjugate of Q.

    Integers give float32; floating and complex dtypes stay.

    Raises:
        TypeError: a is no array, or has fewer than two axes.
        ValueError: there is no such mode, or c does not fit.

    Example:
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
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Return T and Z with a = Z @ T @ Z^H, Z unitary.

    Args:
        a: [..., n, n].
        output: "real": T has blocks of 2 by 2 for pairs of complex eigenvalues of a real matrix;
            "complex": T is upper triangular and complex.

    The dtype stays, or becomes complex.

    Differs from SciPy: batches; integers only with output="complex"; no lists.

    Raises:
        TypeError: a is no array, or has integers.
        ValueError: the matrices are not square, or there is no such output.

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
    """The array in the complex dtype of its precision."""
    if x.dtype.kind == "c":
        return x
    return x.astype(np.complex128 if x.dtype.itemsize == 8 else np.complex64)


@api_boundary
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Return the Hessenberg form H, or H and Q with a = Q @ H @ Q^H.

    Args:
        a: [..., n, n].
        calc_q: return Q.

    The dtype stays, floating or complex.

    Differs from SciPy: batches; no integers, no lists; check_finite and the overwriting are
    accepted and change nothing.

    Raises:
        TypeError: a is no array, or has integers.
        ValueError: the matrices are not square.

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


@api_boundary
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Return U, the singular values, Vh with a = (U * s) @ Vh; or the singular values alone.

    Args:
        a: [..., m, n].
        full_matrices: U and Vh are square.
        compute_uv: return U and Vh.
        lapack_driver: without effect.

    Integers give float32; floating and complex dtypes stay. The singular values are real,
    descending.

    Differs from SciPy: batches; check_finite and the overwriting are accepted and change nothing.

    Raises:
        TypeError: a is no array, or has fewer than two axes.

    >>> import accnp as jnp
    >>> jnp.scipy.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    return lax_spectra.svd(_one("svd", a), full_matrices=full_matrices, compute_uv=compute_uv)


# --- symmetric eigenvalues -----------------------------------------------------------------------


@api_boundary
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: Any = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Return the eigenvalues (ascending) and eigenvectors of Hermitian matrices.

    Args:
        a: [..., n, n]; the mean of it and its adjoint is taken.
        b: None; generalised problems are not implemented, nor are `type` and `eigvals`.
        lower: without effect, since both triangles are read.
        eigvals_only: return the eigenvalues alone.

    Integers give float32; floating and complex dtypes stay. Eigenvalues are real.

    Raises:
        TypeError: a is no array, or its matrices are not square.
        NotImplementedError: b, eigvals or another type is given.

    >>> import accnp as jnp
    >>> jnp.scipy.linalg.eigh(jnp.array([[0., 1.], [1., 0.]]), eigvals_only=True)
    Array([-1.,  1.], dtype=float32)
    """
    for what, given, only in (("b", b, None), ("type", type, 1), ("eigvals", eigvals, None)):
        if (only is None and given is not None) or (only is not None and given != only):
            raise NotImplementedError(f"linalg.eigh: only {what}={only} is implemented")
    v, w = lax_spectra.eigh(_one("eigh", a), lower=lower)
    return w if eigvals_only else (w, v)


@api_boundary
@promotes_inside
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Return the eigenvalues (ascending) and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
        d: its diagonal, [n], floating or complex; real parts are read.
        e: what is right of the diagonal, [n - 1], of the same dtype.
        eigvals_only: return the eigenvalues alone.
        select: "a" for all, "i" for those of a range of places.
        select_range: first and last place, for "i".
        tol: absolute tolerance of the eigenvalues, where they are found by bisection ("i").
        key: without effect: vectors are computed without random numbers.

    Raises:
        TypeError: dtypes differ, or are not float32, float64, complex64, complex128.
        NotImplementedError: select="v".

    Example:
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
    if beta.dtype.kind == "c":  # a diagonal unitary matrix makes it real
        size = _abs(beta)
        unit = conj(beta) / (size + (size == 0)) + (size == 0)
        phases = cumprod(concatenate([ones(1, beta.dtype), unit]))
        alpha, beta = real(alpha), size
    w, v = items(o.eigh_tridiagonal(alpha._node, beta._node, subset=subset, tol=float(tol or 0)))
    if eigvals_only:
        return wrap(w)
    return wrap(w), wrap(v) if phases is None else phases[:, None] * wrap(v)
