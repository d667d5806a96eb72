"""Structured matrices: Toeplitz, Hankel, companion and others, and named test matrices.

Vectors are in the last axis; leading axes are batches. Matrices that depend only on a size are
computed exactly with Python ints and rounded once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, promote, promote_inexact
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_int, as_static
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of
from accnp.numpy.creation import asarray, eye, zeros, zeros_like
from accnp.numpy.joining import concatenate
from accnp.numpy.manipulation import broadcast_shapes, broadcast_to
from accnp.numpy.padding import pad
from accnp.numpy.rearranging import flip as _flip
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import abs as _abs
from accnp.numpy.ufuncs import conj

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
    "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _vector(x: Any, name: str) -> Array:
    """Convert an argument to an array of at least one axis."""
    array = wrap(as_node(x, f"linalg.{name}"))
    return array if array.ndim else array[None]


# --- from vectors --------------------------------------------------------------------------------


@api_boundary
def block_diag(*arrs: ArrayLike) -> Array:
    """Arrange matrices along the diagonal of a matrix of zeros.

    Parameters
    ----------
    *arrs : array_like
        Arrays of at most two axes. Numbers and vectors are matrices of one row.

    Returns
    -------
    Array
        Block diagonal matrix of the promoted dtype.

    Raises
    ------
    ValueError
        If an array has more than two axes.

    See Also
    --------
    numpy.diag : Diagonal matrix of numbers.
    numpy.block : Matrix of any blocks.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.block_diag(jnp.array([1, 2]), jnp.array([[3]]))
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    return run_small(_block_diag, arrs, ())


def _block_diag(*arrs: ArrayLike) -> Array:
    name = "linalg.block_diag"
    arrays = [wrap(cast(n, n.aval.dtype)) for n in promote(name, *(arrs or (zeros((1, 0)),)))]
    for i, x in enumerate(arrays):
        if x.ndim > 2:
            raise ValueError(
                f"{name}: arrays need at most two axes; got shape {x.shape} (argument {i}); "
                "pass matrices, vectors or numbers"
            )
    blocks = [x.reshape((1,) * (2 - x.ndim) + x.shape) for x in arrays]
    total, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(pad(x, ((0, 0), (before, total - before - x.shape[1]))))
        before += x.shape[1]
    return concatenate(rows)


def _spread(first: Array, rest: Array, index: np.ndarray) -> Array:
    """Index the concatenation of two vectors by a matrix of indices."""
    outer = broadcast_shapes(first.shape[:-1], rest.shape[:-1])
    parts = [broadcast_to(x, (*outer, x.shape[-1])) for x in (first, rest)]
    both = concatenate(parts, axis=-1)
    if not index.size:
        return zeros((*outer, *index.shape), both.dtype)
    return both[..., index]


def _number_of(m: int, n: int, step: int) -> np.ndarray:
    """Return i + j, or for step -1, (m - 1 - i) + j, at row i and column j."""
    rows = np.arange(m)[::step]
    return rows[:, None] + np.arange(n)


@api_boundary
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make a Toeplitz matrix, whose diagonals are constant.

    Parameters
    ----------
    c : array_like
        First column, of shape (..., m).
    r : array_like, optional
        First row, of shape (..., n). Its first element is not read. The default is the conjugate of
        `c`.

    Returns
    -------
    Array
        Matrix of shape (..., m, n) and the promoted dtype.

    Raises
    ------
    {raises_lists}

    See Also
    --------
    hankel : Constant along the other diagonals.
    circulant : Circulant matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.toeplitz(jnp.array([1, 2]), jnp.array([0, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    column = _vector(c, "toeplitz")
    column = column.astype(column.dtype)  # not weak
    row = conj(column) if r is None else _vector(r, "toeplitz")
    m, n = column.shape[-1], row.shape[-1]
    return _spread(_flip(column, -1), row[..., 1:], _number_of(m, n, -1) if n else np.zeros((m, 0)))


@api_boundary
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make a Hankel matrix, which is constant along antidiagonals.

    Parameters
    ----------
    c : array_like
        First column, of shape (..., m).
    r : array_like, optional
        Last row, of shape (..., n). Its first element is not read. The default is zeros.

    Returns
    -------
    Array
        Matrix of shape (..., m, n) and the promoted dtype.

    Raises
    ------
    {raises_lists}

    See Also
    --------
    toeplitz : Constant along diagonals.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.hankel(jnp.array([1, 2]), jnp.array([0, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], dtype=int32)
    """
    column = wrap(as_node(c, "linalg.hankel"))
    row = zeros_like(column) if r is None else wrap(as_node(r, "linalg.hankel"))
    if not column.ndim or not row.ndim:
        raise ValueError("linalg.hankel: c and r need at least one axis; got a scalar; use [x]")
    m, n = column.shape[-1], row.shape[-1]
    return _spread(column, row[..., 1:], _number_of(m, n, 1) if m and n else np.zeros((m, n)))


@api_boundary
def circulant(c: ArrayLike) -> Array:
    """Make a circulant matrix, whose columns are rotations of a vector.

    Parameters
    ----------
    c : array_like
        First column, of shape (..., n).

    Returns
    -------
    Array
        Matrix of shape (..., n, n) and the dtype of `c`.

    Raises
    ------
    {raises_lists}

    See Also
    --------
    toeplitz : The general form.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    x = _vector(c, "circulant")
    n = x.shape[-1]
    if not n:
        return zeros((*x.shape, 0), x.dtype)
    return x[..., (np.arange(n)[:, None] - np.arange(n)) % n]


def _below_first_row(first: Array, below: Array) -> Array:
    """Return a matrix of a first row and a diagonal below it."""
    n = first.shape[-1]
    diagonal = where(eye(n - 1, dtype=bool), below[..., None], np.zeros((), below.dtype))
    rows = pad(diagonal, [(0, 0)] * (diagonal.ndim - 1) + [(0, 1)])
    outer = broadcast_shapes(first.shape[:-1], rows.shape[:-2])
    first = broadcast_to(first, (*outer, n))
    return concatenate([first[..., None, :], broadcast_to(rows, (*outer, n - 1, n))], axis=-2)


@api_boundary
@broadcasts_inside
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Make a Leslie matrix of a population model.

    Parameters
    ----------
    f : array_like
        Fecundities, the first row, of shape (..., n) with n >= 2.
    s : array_like
        Survival rates below the diagonal, of shape (..., n - 1).

    Returns
    -------
    Array
        Matrix of shape (..., n, n) and the promoted dtype.

    Raises
    ------
    ValueError
        If the lengths do not fit each other.

    See Also
    --------
    numpy.linalg.eigvals : Growth rates of the model.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.leslie(jnp.array([1., 2.]), jnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    x, y = (_vector(v, "leslie") for v in (f, s))
    if x.shape[-1] < 2 or y.shape[-1] != x.shape[-1] - 1:
        raise ValueError(
            "linalg.leslie: f needs at least 2 elements in its last axis, and s one less; got "
            f"shapes {x.shape} and {y.shape}; give f one more element than s"
        )
    return _below_first_row(*[wrap(n) for n in promote("linalg.leslie", x, y)])


@api_boundary
def companion(a: ArrayLike) -> Array:
    """Make the companion matrix of a polynomial, whose eigenvalues are its roots.

    Parameters
    ----------
    a : array_like
        Coefficients, highest power first, of shape (..., n) with n >= 2.

    Returns
    -------
    Array
        Matrix of shape (..., n - 1, n - 1). Integers give float32.

    Raises
    ------
    ValueError
        If there are fewer than 2 coefficients.

    See Also
    --------
    fiedler_companion : A pentadiagonal matrix with the same eigenvalues.
    numpy.roots : Roots of a polynomial.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    x = _vector(wrap(promote_inexact("linalg.companion", a)[0]), "companion")
    if x.shape[-1] < 2:
        raise ValueError(
            f"linalg.companion: at least 2 coefficients are needed; got {a!r:.60}; pass all"
        )
    first = -x[..., 1:] / x[..., :1]
    return _below_first_row(first, asarray(np.ones(first.shape[-1] - 1), first.dtype))


@api_boundary
def fiedler(a: ArrayLike) -> Array:
    """Make a Fiedler matrix, the absolute differences of the elements of a vector.

    Parameters
    ----------
    a : array_like
        Vectors of shape (..., n).

    Returns
    -------
    Array
        Symmetric matrices of shape (..., n, n) and the dtype of `a`.

    Raises
    ------
    {raises_lists}

    See Also
    --------
    fiedler_companion : Companion matrix by Fiedler.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    x = _vector(a, "fiedler")
    return _abs(x[..., None] - x[..., None, :])


@api_boundary
@broadcasts_inside
def fiedler_companion(a: ArrayLike) -> Array:
    """Make a pentadiagonal matrix whose eigenvalues are the roots of a polynomial.

    Parameters
    ----------
    a : array_like
        Coefficients, highest power first, of shape (..., n + 1).

    Returns
    -------
    Array
        Matrix of shape (..., n, n), of floating or complex dtype.

    Raises
    ------
    {raises_lists}

    See Also
    --------
    companion : Companion matrix in the usual form.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.fiedler_companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    x = _vector(wrap(promote_inexact("linalg.fiedler_companion", a)[0]), "fiedler_companion")
    n = x.shape[-1] - 1
    if n < 0:
        raise ValueError(
            f"linalg.fiedler_companion: at least one coefficient is needed; got shape {x.shape}; "
            "pass all of the polynomial's"
        )
    if not n:
        return zeros((*x.shape[:-1], 0, 0), x.dtype)
    x = -x / x[..., :1]
    which, one = np.zeros((n, n), np.int64), np.zeros((n, n), bool)
    which[0, 0] = 1
    for i in range(0, n, 2):  # even rows: coefficients beside the diagonal, then ones
        if i + 1 < n:
            which[i, i + 1] = i + 2
        if i >= 2:
            which[i, i - 1] = i + 1
        if i + 2 < n:
            one[i, i + 2] = True
    one[1:2, 0] = True
    for i in range(3, n, 2):
        one[i, i - 2] = True
    return where(which > 0, x[..., which], asarray(one, x.dtype))


@api_boundary
@broadcasts_inside
@compiled_if_small("a")
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Make the matrix whose product with a vector is its convolution with another one.

    Parameters
    ----------
    a : array_like
        Vectors to convolve with, of shape (..., m).
    n : int
        Length of the vectors to multiply, at least 1.
    mode : {"full", "same", "valid"}, optional
        Which part of the convolution to compute, as in `numpy.convolve`. The default is "full".

    Returns
    -------
    Array
        Matrices with n columns, of the dtype of `a`.

    Raises
    ------
    ValueError
        If `n` is less than 1, or `mode` is unknown.

    See Also
    --------
    toeplitz : The form of these matrices.
    numpy.convolve : Convolution without a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    name = "linalg.convolution_matrix"
    n = operator.index(n)
    if n <= 0:
        raise ValueError(f"{name}: n must be positive; got {n}; pass 1 or more")
    x = wrap(as_node(a, name))
    if not x.ndim or not x.shape[-1]:
        raise ValueError(f"{name}: a needs elements in its last axis; got {x.shape}; pass a vector")
    if mode not in ("full", "valid", "same"):
        raise not_one_of(name, "mode", mode, ("full", "valid", "same"))
    m = x.shape[-1]
    cut = {"full": 0, "same": min(n, m) - 1, "valid": 2 * (min(n, m) - 1)}[mode]
    first = cut // 2
    place = np.arange(first, m + n - 1 - (cut - first))[:, None] - np.arange(n)
    inside = (place >= 0) & (place < m)
    return where(inside, x[..., np.where(inside, place, 0)], asarray(0, x.dtype))


# --- from a size ---------------------------------------------------------------------------------


def _size(n: Any, name: str, least: int = 0) -> int:
    n = as_int(as_static(n, f"linalg.{name}"), f"linalg.{name}", "n", "shape")
    if n < least:
        raise IncompatibleShapesError(
            f"linalg.{name}: n must be at least {least}; got {n}; pass that or more"
        )
    return n


def _exact(n: int, element: Callable[[int, int], int], dtype: Any) -> Array:
    """Return a matrix of exact integers, rounded once; infinite if out of range."""
    rows = [[_round_to_float(element(i, j)) for j in range(n)] for i in range(n)]
    with np.errstate(over="ignore"):
        return asarray(np.array(rows, np.float64).reshape(n, n), dtype)


def _round_to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


@api_boundary
@compiled_if_small(limit=256)
def hilbert(n: int) -> Array:
    """Make a Hilbert matrix, with the elements 1 / (i + j + 1).

    Parameters
    ----------
    {n_square}

    Returns
    -------
    Array
        Matrix of shape (n, n) and the default float dtype.

    Raises
    ------
    {raises_n_square}

    See Also
    --------
    invhilbert : Its inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    at = np.arange(_size(n, "hilbert"), dtype=np.float64)
    return asarray(1 / (at[:, None] + at + 1), dtypes.default_float())


@api_boundary
def invhilbert(n: int) -> Array:
    """Make the inverse of a Hilbert matrix, whose elements are integers.

    Parameters
    ----------
    {n_square}

    Returns
    -------
    Array
        Matrix of shape (n, n) and the default float dtype.

    Raises
    ------
    {raises_n_square}

    See Also
    --------
    hilbert : The matrix itself.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _size(n, "invhilbert")

    def element(i: int, j: int) -> int:
        term = (i + j + 1) * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1)
        return (-1) ** (i + j) * term * math.comb(i + j, i) ** 2

    return _exact(n, element, dtypes.default_float())


def _check_kind(kind: Any, name: str) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise not_one_of(f"linalg.{name}", "kind", kind, (None, "symmetric", "lower", "upper"))
    return kind or "symmetric"


@api_boundary
def pascal(n: int, kind: str | None = None) -> Array:
    """Make a matrix of Pascal's triangle.

    Parameters
    ----------
    {n_square}
    kind : {"symmetric", "lower", "upper"}, optional
        "symmetric", the default, has the elements comb(i + j, i), "lower" the elements comb(i, j),
        and "upper" is its transpose.

    Returns
    -------
    Array
        Matrix of shape (n, n) and dtype float32.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `kind` is unknown.

    See Also
    --------
    invpascal : Its inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    n, kind = _size(n, "pascal"), _check_kind(kind, "pascal")
    if kind == "symmetric":
        return _exact(n, lambda i, j: math.comb(i + j, i), np.float32)
    return _exact(n, _transpose_if_upper(math.comb, kind), np.float32)


def _transpose_if_upper(element: Callable[[int, int], int], kind: str) -> Callable[[int, int], int]:
    return (lambda i, j: element(j, i)) if kind == "upper" else element


@api_boundary
def invpascal(n: int, kind: str | None = None) -> Array:
    """Make the inverse of a matrix of Pascal's triangle.

    Parameters
    ----------
    {n_square}
    kind : {"symmetric", "lower", "upper"}, optional
        Form of the matrix to invert, as for `pascal`.

    Returns
    -------
    Array
        Matrix of shape (n, n) and the default float dtype.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `kind` is unknown.

    See Also
    --------
    pascal : The matrix itself.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.invpascal(3, "lower")
    Array([[ 1.,  0.,  0.],
           [-1.,  1.,  0.],
           [ 1., -2.,  1.]], dtype=float32)
    """
    n, kind = _size(n, "invpascal"), _check_kind(kind, "invpascal")

    def lower(i: int, j: int) -> int:
        return (-1) ** (i - j) * math.comb(i, j) if j <= i else 0

    def whole(i: int, j: int) -> int:
        return sum(lower(k, i) * lower(k, j) for k in range(max(i, j), n))

    element = whole if kind == "symmetric" else _transpose_if_upper(lower, kind)
    return _exact(n, element, dtypes.default_float())


@api_boundary
@compiled_if_small(limit=256)
def helmert(n: int, full: bool = False) -> Array:
    """Make a Helmert matrix, with n - 1 orthonormal contrasts of n values as rows.

    Parameters
    ----------
    n : int
        Number of values, at least 1.
    full : bool, optional
        If True, put the row of the mean first, so that the matrix is orthogonal. The default is
        False.

    Returns
    -------
    Array
        Matrix of shape (n - 1, n) or (n, n), and the default float dtype.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` is less than 1.

    See Also
    --------
    hadamard : Orthogonal rows of 1 and -1.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = _size(n, "helmert", 1)
    k = np.arange(1, n)[:, None]
    at = np.arange(n)
    rows = np.where(at < k, 1.0, np.where(at == k, -1.0 * k, 0.0)) / np.sqrt(k * (k + 1.0))
    if full:
        rows = np.concatenate([np.full((1, n), n**-0.5), rows])
    return asarray(rows, dtypes.default_float())


@api_boundary
@compiled_if_small(limit=256)
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Make a Hadamard matrix, with orthogonal rows of 1 and -1, by Sylvester's construction.

    Parameters
    ----------
    n : int
        Number of rows and columns, a power of 2.
    dtype : dtype_like, optional
        Dtype of the matrix. The default is the default integer dtype.

    Returns
    -------
    Array
        Matrix of shape (n, n).

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` is not a power of 2.

    See Also
    --------
    dft, helmert : Other orthogonal matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = as_int(n, "linalg.hadamard", "n")
    if n < 1 or n & (n - 1):
        raise ValueError(f"linalg.hadamard: n must be a power of 2; got {n}; pass 1, 2, 4, 8...")
    out = np.ones((1, 1), np.int64)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return asarray(out, dtypes.requested_dtype(dtype, "linalg.hadamard"))


@api_boundary
@compiled_if_small(limit=256)
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Make the matrix of the discrete Fourier transform.

    Parameters
    ----------
    {n_square}
    scale : {None, "sqrtn", "n"}, optional
        Divisor: none, the default, the square root of n, which makes the matrix unitary, or n.
    dtype : dtype_like, optional
        Complex dtype. The default is complex64 (complex128 with `jax_enable_x64`).

    Returns
    -------
    Array
        Matrix of shape (n, n).

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `scale` is unknown.

    See Also
    --------
    numpy.fft.fft : The transform without a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.round(jnp.scipy.linalg.dft(4)[1].imag)
    Array([ 0., -1., -0.,  1.], dtype=float32)
    """
    n = _size(n, "dft")
    if scale not in (None, "sqrtn", "n"):
        raise not_one_of("linalg.dft", "scale", scale, (None, "sqrtn", "n"))
    result_dtype = dtypes.default_complex()
    if dtype is not None:
        result_dtype = dtypes.requested_dtype(dtype, "linalg.dft")
        if result_dtype.kind != "c":
            raise ValueError(
                f"linalg.dft: dtype must be complex; got {result_dtype.name}; leave it out"
            )
    at = np.arange(n)
    out = np.exp(-2j * np.pi * (at[:, None] * at % max(n, 1)) / max(n, 1))
    return asarray(out / {None: 1, "sqrtn": max(n, 1) ** 0.5, "n": max(n, 1)}[scale], result_dtype)
