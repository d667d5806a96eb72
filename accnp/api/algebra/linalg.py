"""`jnp.linalg`: systems, inverses, decompositions, determinants, ranks.

Matrices are the last two axes; leading axes broadcast. Integers become floats first.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from accnp import dtypes
from accnp.api.algebra import products
from accnp.api.algebra.vector_products import cross as _cross
from accnp.api.arguments.convert import (
    as_node,
    broadcast_shapes,
    cast,
    check_ranks,
    promote_inexact,
    to_shape,
)
from accnp.api.arrays.manipulation import expand_node
from accnp.api.arrays.matrices import diagonal as _diagonal
from accnp.api.arrays.reversing import flip as _flip
from accnp.api.compiled.named import shown
from accnp.api.elements.ufuncs import abs as _abs
from accnp.api.elements.ufuncs import sign
from accnp.api.factors import lax_linalg, lax_spectra
from accnp.api.folds.sorting import argsort, sort
from accnp.api.indexes.taking import take_along_axis
from accnp.array import Array, ArrayLike, wrap
from accnp.dtypes.names import DTypeLike
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.primitives.linalg import batched_identity, matrix_t

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "matrices", "qr", "slogdet", "solve", "svd", "svdvals",
    "trace",
]  # fmt: skip


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


def matrices(
    x: Any, function: str, square: bool = False, kind: type[Exception] = TypeError
) -> Node:
    """An argument as matrices of floats; what has too few axes is an error of this kind."""
    node = promote_inexact(function, x)[0]
    shape = node.aval.shape
    few = len(shape) < 2
    if few or (square and shape[-1] != shape[-2]):
        what = "square matrices" if square else "matrices"
        text = f"{function}: {what} in the last two axes are needed; got shape {shape}; reshape"
        raise (kind if few else IncompatibleShapesError)(text)
    if node.aval.weak_type:
        node = o.convert_element_type(node, new_dtype=node.aval.dtype, weak_type=False)
    return node


def weak_as_operands(function: Any) -> Any:
    """Give results the weak flag that the promoted arrays among the arguments have, as jax's do."""

    @functools.wraps(function)
    def flagged(*args: Any, **options: Any) -> Any:
        out = function(*args, **options)
        given = [*args, *options.values()]
        if not any(x.weak_type for x in given if type(x) is Array):
            return out
        types = [dtypes.value_type(x) for x in given if isinstance(x, np.ndarray)]
        types += [(x.dtype, x.weak_type) for x in given if type(x) is Array]
        if not dtypes.promote(types)[1]:
            return out
        return _weak(out) if type(out) is Array else type(out)(*map(_weak, out))

    return flagged


def _weak(x: Array) -> Array:
    return wrap(cast(x._node, x.dtype, True))


@api_boundary
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Return the cross product of vectors of 3 components.

    Other axes broadcast; the dtype is the promoted one.

    Raises:
        ValueError: an operand has not 3 components along the axis.
        TypeError: other axes do not broadcast, or an operand is a list or a text.

    >>> import accnp as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    shapes = [as_node(x, "linalg.cross").aval.shape for x in (x1, x2)]
    if any(not -len(s) <= axis < len(s) or s[axis] != 3 for s in shapes):
        raise ValueError(
            f"linalg.cross: both need 3 components along axis {axis}; got shapes {shapes}; "
            "use jnp.cross for vectors of 2, or move the axis of components"
        )
    return _cross(x1, x2, axis=axis)


@api_boundary
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the diagonals of the matrices in the last two axes.

    Shape (..., n, m) gives (...). Narrow integers become int32 (64-bit with jax_enable_x64).

    Raises:
        ValueError: there are fewer than two axes.
        TypeError: x is a list or a text.

    >>> import accnp as jnp
    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return products.trace(x, offset, -2, -1, dtype)


@api_boundary
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Take the diagonals of the matrices in the last two axes.

    Shape (..., n, m) gives (..., min(n, m)) for offset 0; the dtype stays.

    Raises:
        ValueError: there are fewer than two axes.
        TypeError: x is a list or a text.

    >>> import accnp as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _diagonal(x, offset, -2, -1)


# --- systems and inverses ------------------------------------------------------------------------


@api_boundary
@weak_as_operands
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve a @ x = b for vectors or matrices b.

    a has shape (..., n, n); b of one axis is a vector, as in NumPy 2. Integers become the default
    float, other dtypes stay, float16 and bfloat16, too. Unlike NumPy: a singular a gives inf or
    nan, not an error.

    Raises:
        ValueError: shapes do not fit.
        TypeError: a or b is a list or a text.

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
            f"{name}: b needs as many rows as a; got shapes {a.aval.shape} and "
            f"{b.aval.shape}; transpose or cut one"
        )
    outer = [a.aval.shape[:-2], b.aval.shape[:-2]]
    check_ranks(name, outer)
    outer_shape = broadcast_shapes(name, outer)
    a, b = (to_shape(v, (*outer_shape, *v.aval.shape[-2:])) for v in (a, b))
    out = o.linear_solve(a, b)
    return o.squeeze(out, dimensions=(out.aval.ndim - 1,)) if vector else out


@api_boundary
def inv(a: ArrayLike) -> Array:
    """Invert matrices.

    The shape stays. Integers become the default float, other dtypes stay, float16 and bfloat16,
    too. Unlike NumPy: singular matrices give inf or nan, not an error.

    Raises:
        ValueError: the last two axes are not there, or not equally long.
        TypeError: a is a list or a text.

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
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with L @ L.T = a; NaN where a is not positive definite.

    The shape stays. Integers become the default float, other dtypes stay, float16 and bfloat16,
    too. Unlike NumPy: no error where a is not positive definite, and (a + a.T) / 2 is what is
    factored unless symmetrize_input=False.

    Raises:
        ValueError: the last two axes are not equally long.
        TypeError: a has fewer than two axes, or is a list or a text.

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
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Return eigenvalues (ascending) and eigenvectors of symmetric matrices.

    Shape (..., n, n) gives (..., n) and (..., n, n). Integers become the default float, other
    dtypes stay, float16 and bfloat16, too. Eigenvalues are real. Unlike NumPy: (a + a.T) / 2 is
    used unless symmetrize_input=False.

    Raises:
        ValueError: UPLO is neither 'L' nor 'U', or matrices are not square.
        TypeError: a has fewer than two axes, or is a list or a text.

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
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return the eigenvalues of symmetric matrices, ascending.

    Shape (..., n, n) gives (..., n), of real dtype. Errors are those of `eigh`.

    >>> import accnp as jnp
    >>> jnp.linalg.eigvalsh(jnp.eye(2))
    Array([1., 1.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@api_boundary
@weak_as_operands
def eig(a: ArrayLike) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices, complex; NaN where a is not finite.

    There are no derivatives, as in jax: `lax.linalg.eig` has them on demand, `eigvals` has its own.

    Shape (..., n, n) gives (..., n) and (..., n, n). Unlike NumPy: always a complex dtype.

    Raises:
        ValueError: the last two axes are not equally long.
        TypeError: a has fewer than two axes, or is a list or a text.

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
def eigvals(a: ArrayLike) -> Array:
    """Return the eigenvalues of square matrices, complex.

    Shape (..., n, n) gives (..., n). Unlike NumPy: always a complex dtype.

    Raises:
        ValueError: the last two axes are not equally long.
        TypeError: a has fewer than two axes, or is a list or a text.

    >>> import accnp as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    x = wrap(matrices(a, "linalg.eigvals", True))
    return lax_spectra.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@api_boundary
@weak_as_operands
@shown()
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Return U, S, Vh with a = (U * S) @ Vh, or S only.

    `hermitian` computes them from eigenvalues. `subset_by_index` must be None, or all of them.

    Shape (..., n, m) gives (..., n, n), (..., min(n, m)), (..., m, m), with full_matrices=False
    min(n, m) for n and m. Integers become the default float, other dtypes stay, float16 and
    bfloat16, too. S is real.

    Raises:
        ValueError: subset_by_index that is not supported.
        TypeError: a has fewer than two axes, or is a list or a text.

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
def svdvals(x: ArrayLike, /) -> Array:
    """Return the singular values of matrices, largest first.

    Shape (..., n, m) gives (..., min(n, m)), of real dtype.

    Raises:
        TypeError: x has fewer than two axes, or is a list or a text.

    >>> import accnp as jnp
    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


@api_boundary
@weak_as_operands
@shown()
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Return Q and R with a = Q @ R; "r" returns R only, "complete" a square Q.

    "raw" returns what LAPACK makes, transposed: R and reflectors in one matrix, and their factors.
    "full" is "reduced", as in jax.

    Shape (..., n, m) gives (..., n, k) and (..., k, m), k the smaller of n and m. Integers become
    the default float, other dtypes stay, float16 and bfloat16, too.

    Raises:
        ValueError: there is no such mode.
        TypeError: a has fewer than two axes, or is a list or a text.

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
    """Return the determinants of square matrices.

    Up to 3 by 3 they are written out, so that derivatives of any order are right when singular.

    Shape (..., n, n) gives (...). Integers become the default float, other dtypes stay, float16 and
    bfloat16, too.

    Raises:
        ValueError: the last two axes are not there, or not equally long.
        TypeError: a is a list or a text.

    >>> import accnp as jnp
    >>> jnp.linalg.det(2 * jnp.eye(2))
    Array(4., dtype=float32)
    """
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
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the sign and the logarithm of the absolute value of determinants.

    Shape (..., n, n) gives (...) twice; logabsdet is real. Integers become the default float, other
    dtypes stay, float16 and bfloat16, too.

    Raises:
        ValueError: matrices are not square, or method is neither 'lu' nor 'qr'.
        TypeError: a is a list or a text.
        NotImplementedError: 'qr' of complex matrices.

    >>> import accnp as jnp
    >>> jnp.linalg.slogdet(jnp.eye(2))
    SlogdetResult(sign=Array(1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise not_one_of("linalg.slogdet", "method", method, (None, "lu", "qr"))
    x = matrices(a, "linalg.slogdet", True, ValueError)
    if method == "qr" and x.aval.dtype.kind == "c":
        raise NotImplementedError(
            "linalg.slogdet: method='qr' is for real matrices; got a complex dtype; use 'lu'"
        )
    signs, log = items(o.slogdet(x))
    return SlogdetResult(wrap(signs), wrap(log))
