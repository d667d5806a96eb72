"""`scipy.linalg`: linear systems, Cholesky and LU factorizations, with SciPy's signatures.

Matrices are in the last two axes; leading axes are batches. Integers are converted to floats.
Arguments about SciPy's use of memory (`overwrite_a`) and checks of values (`check_finite`) have no
effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arguments.convert import broadcast_shapes, check_ranks, to_shape
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.values import inexact_arrays
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of, warn
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lax.linalg import factorizations as lax_linalg
from accnp.numpy.creation import arange, eye
from accnp.numpy.linalg import decompositions as linalg
from accnp.numpy.matrices import tril, triu
from accnp.numpy.sorting import argsort
from accnp.numpy.taking import take_along_axis
from accnp.numpy.ufuncs import conj, real
from accnp.primitives.custom import JvpRule, Maybe, boundary

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "inv", "lu", "lu_factor", "lu_solve", "solve",
    "solve_triangular",
]  # fmt: skip


def _inexact_array(name: str, x: Any) -> Array:
    return inexact_arrays(f"linalg.{name}", x)[0]


def _system(name: str, a: Any, b: Any) -> tuple[Array, Array, bool]:
    """Return square matrices and right-hand sides with equal batch axes; whether b was a vector."""
    name = f"linalg.{name}"
    x, y = (v._node for v in inexact_arrays(name, a, b))
    shape, right = x.aval.shape, y.aval.shape
    vector = len(right) == 1
    if len(right) > 1 and len(shape) == len(right) + 1 and shape[-1] == right[-1]:
        text = (
            f"{name}: batches of vectors, b.ndim = a.ndim - 1, will become matrices; "
            "pass b[..., None] and squeeze the result"
        )
        warn(text, FutureWarning)
        vector = True
    if vector:
        right = (*right, 1)
        y = o.reshape(y, new_sizes=right, dimensions=None)
    if len(shape) < 2 or shape[-1] != shape[-2] or len(right) < 2 or right[-2] != shape[-1]:
        raise ValueError(
            f"{name}: needs square matrices and right sides of as many rows; got shapes "
            f"{shape} and {y.aval.shape[:-1] if vector else right}; give b as many rows as a has"
        )
    check_ranks(name, [shape[:-2], right[:-2]])
    outer = broadcast_shapes(name, [shape[:-2], right[:-2]])
    x, y = (to_shape(v, (*outer, *v.aval.shape[-2:])) for v in (x, y))
    return wrap(x), wrap(y), vector


def _drop_vector_axis(x: Array, vector: bool) -> Array:
    return x[..., 0] if vector else x


# --- Cholesky ------------------------------------------------------------------------------------


@api_boundary
@shown()
@compiled_if_small("a")
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Compute the Cholesky factor of positive definite matrices.

    Parameters
    ----------
    a : array_like
        Symmetric or Hermitian positive definite matrices of shape (..., n, n), of which one
        triangle is read.
    {lower_factor}
    {overwrite_a}
    {check_finite}

    Returns
    -------
    Array
        L with L @ L^H = a, or U with U^H @ U = a, of the shape of `a`; nan where `a` is not
        positive definite. Integers give float32, other dtypes are unchanged.

    Raises
    ------
    {raises_square_array}

    See Also
    --------
    cho_factor, cho_solve : Solve systems with the factor.
    numpy.linalg.cholesky : The same by NumPy's name.

    Notes
    -----
    Unlike in SciPy, matrices may have batch axes, and no LinAlgError is raised.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = _inexact_array("cholesky", a)
    if lower:
        return lax_linalg.cholesky(x, symmetrize_input=False)
    return conj(lax_linalg.cholesky(conj(x.mT), symmetrize_input=False).mT)


@api_boundary
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Compute the Cholesky factor of positive definite matrices for `cho_solve`.

    Parameters
    ----------
    a : array_like
        Symmetric or Hermitian positive definite matrices of shape (..., n, n), of which one
        triangle is read.
    {lower_factor}
    {overwrite_a}
    {check_finite}

    Returns
    -------
    c : Array
        Factor of the shape of `a`, with zeros in the other triangle; nan where `a` is not positive
        definite. Integers give float32, other dtypes are unchanged.
    lower : bool
        Whether it is the lower factor.

    Raises
    ------
    {raises_square_array}

    See Also
    --------
    cho_solve : Solve systems with the factor.
    cholesky : The factor only.

    Notes
    -----
    Unlike in SciPy, matrices may have batch axes, and no LinAlgError is raised.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.cho_factor(jnp.array([[4.]]), lower=True)
    (Array([[2.]], dtype=float32), True)
    """
    return cholesky(a, lower=lower), lower


@api_boundary
def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a @ x = b with the Cholesky factor of a.

    Parameters
    ----------
    c_and_lower : (array_like, bool)
        Result of `cho_factor`: the factor of shape (..., n, n), and whether it is the lower one.
    {b_system}
    {overwrite_b}
    {check_finite}

    Returns
    -------
    Array
        Solutions x, of the shape of `b` with the batch axes of both. Integers give float32, other
        dtypes are unchanged.

    Raises
    ------
    {raises_system}

    See Also
    --------
    cho_factor : Compute the factor.
    solve : Solve systems in one step.

    Notes
    -----
    Unlike SciPy, there may be batch axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> factor = jnp.scipy.linalg.cho_factor(jnp.array([[4.]]))
    >>> jnp.scipy.linalg.cho_solve(factor, jnp.array([8.]))
    Array([2.], dtype=float32)
    """
    c, lower = c_and_lower
    factor, right, vector = _system("cho_solve", c, b)
    lower = bool(lower)
    for turned in (not lower, lower):
        right = lax_linalg.triangular_solve(
            factor, right, left_side=True, lower=lower, transpose_a=turned, conjugate_a=turned
        )
    return _drop_vector_axis(right, vector)


# --- LU ------------------------------------------------------------------------------------------


@api_boundary
@compiled_if_small("a")
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Compute the LU factorization of matrices for `lu_solve`.

    Parameters
    ----------
    a : array_like
        Matrices of shape (..., m, n).
    {overwrite_a}
    {check_finite}

    Returns
    -------
    lu : Array
        Factors L and U in one matrix of shape (..., m, n). Integers give float32, other dtypes are
        unchanged.
    piv : Array
        Row exchanges, of shape (..., min(m, n)) and dtype int32.

    Raises
    ------
    TypeError
        If `a` is not an array, or has fewer than two axes.

    See Also
    --------
    lu_solve : Solve systems with the factors.
    lu : The factors as matrices of their own.

    Notes
    -----
    Unlike SciPy, there may be batch axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.lu_factor(jnp.array([[0., 1.], [2., 3.]]))[1]
    Array([1, 1], dtype=int32)
    """
    packed, pivots, _ = lax_linalg.lu(_inexact_array("lu_factor", a))
    return packed, pivots


@api_boundary
def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a @ x = b with the LU factorization of a.

    Parameters
    ----------
    lu_and_piv : (array_like, array_like)
        Result of `lu_factor`: the factors of shape (..., n, n), and the row exchanges of shape
        (..., n).
    {b_system}
    trans : {0, 1, 2}, optional
        Whether to solve with the matrix, the default, its transpose, or its adjoint.
    {overwrite_b}
    {check_finite}

    Returns
    -------
    Array
        Solutions x, of the shape of `b`. Integers give float32, other dtypes are unchanged.

    Raises
    ------
    {raises_system}

    See Also
    --------
    lu_factor : Compute the factors.
    solve : Solve systems in one step.

    Notes
    -----
    Unlike SciPy, there may be batch axes. A ValueError is also raised for another `trans`.

    Examples
    --------
    >>> import accnp as jnp
    >>> factors = jnp.scipy.linalg.lu_factor(jnp.array([[4., 0.], [0., 2.]]))
    >>> jnp.scipy.linalg.lu_solve(factors, jnp.array([8., 2.]))
    Array([2., 1.], dtype=float32)
    """
    packed, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise not_one_of("linalg.lu_solve", "trans", trans, (0, 1, 2))
    x, right, vector = _system("lu_solve", packed, b)
    order = lax_linalg.lu_pivots_to_permutation(pivots, x.shape[-1])
    order = wrap(to_shape(order._node, x.shape[:-1]))
    how = {"left_side": True, "transpose_a": bool(trans), "conjugate_a": trans == 2}
    if not trans:
        right = take_along_axis(right, order[..., None], axis=-2)
    for lower in (True, False) if not trans else (False, True):
        right = lax_linalg.triangular_solve(x, right, lower=lower, unit_diagonal=lower, **how)
    if trans:
        right = take_along_axis(right, argsort(order, axis=-1)[..., None], axis=-2)
    return _drop_vector_axis(right, vector)


@api_boundary
@shown()
@promotes_inside
@compiled_if_small("a")
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """Compute the LU factorization of a matrix, as matrices of their own.

    Parameters
    ----------
    a : array_like
        Matrix of shape (m, n).
    permute_l : bool, optional
        If True, return the product of P and L. The default is False.
    {overwrite_a}
    {check_finite}

    Returns
    -------
    p : Array
        Permutation matrix of shape (m, m), missing if `permute_l`.
    l : Array
        Lower triangular matrix of shape (m, k) with k = min(m, n), or the product P @ L.
    u : Array
        Upper triangular matrix of shape (k, n), with a = P @ L @ U. Integers give float32, other
        dtypes are unchanged.

    Raises
    ------
    TypeError
        If `a` is not an array.
    ValueError
        If `a` is not a single matrix.

    See Also
    --------
    lu_factor : The factors in one matrix.
    lax.linalg.lu : The same for batches.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.lu(jnp.array([[0., 1.], [2., 3.]]))[2]
    Array([[2., 3.],
           [0., 1.]], dtype=float32)
    """
    x = _inexact_array("lu", a)
    if x.ndim != 2:
        raise IncompatibleShapesError(
            f"linalg.lu: one matrix is needed; got shape {x.shape}; use vmap"
        )
    m, n = x.shape
    packed, _, order = lax_linalg.lu(x)
    p = (order == arange(m, dtype=np.int32)[:, None]).astype(real(x).dtype)
    k = min(m, n)
    lower = tril(packed, -1)[:, :k] + eye(m, k, dtype=x.dtype)
    upper = triu(packed)[:k]
    return (p.astype(x.dtype) @ lower, upper) if permute_l else (p, lower, upper)


# --- systems -------------------------------------------------------------------------------------


@api_boundary
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinant of square matrices.

    Parameters
    ----------
    {a_square}
    {overwrite_a}
    {check_finite}

    Returns
    -------
    Array
        Determinants of shape (...). Integers give float32, other dtypes are unchanged.

    Raises
    ------
    {raises_square_array}

    See Also
    --------
    numpy.linalg.det, numpy.linalg.slogdet : The same by NumPy's names.

    Notes
    -----
    Unlike SciPy, there may be batch axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.det(jnp.array([[2., 1.], [0., 3.]]))
    Array(6., dtype=float32)
    """
    return linalg.det(a)


@api_boundary
@compiled_if_small("a")
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the inverse of matrices.

    Parameters
    ----------
    {a_square}
    {overwrite_a}
    {check_finite}

    Returns
    -------
    Array
        Inverses of the shape of `a`. Integers give float32, other dtypes are unchanged.

    Raises
    ------
    {raises_square_array}

    See Also
    --------
    solve : Solve systems, which is faster and more accurate.
    numpy.linalg.inv, numpy.linalg.pinv : The same by NumPy's name, and the pseudo-inverse.

    Notes
    -----
    Unlike SciPy, there may be batch axes, and singular matrices give inf or nan instead of a
    LinAlgError.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return linalg.inv(a)


@api_boundary
@compiled_if_small("a", "b")
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve systems of linear equations a @ x = b.

    Parameters
    ----------
    {a_square}
    {b_system}
    lower : bool, optional
        Which triangle of `a` is read with assume_a="pos". The default, False, is the upper one.
    {overwrite_a}
    {overwrite_b}
    debug : bool, optional
        Accepted for compatibility with SciPy; it has no effect.
    {check_finite}
    assume_a : {"gen", "sym", "her", "pos"}, optional
        Structure of `a`. With "pos" it is positive definite, and a Cholesky factorization is used.
        The default is "gen".

    Returns
    -------
    Array
        Solutions x, of the shape of `b`. Integers give float32, other dtypes are unchanged.

    Raises
    ------
    {raises_system}

    See Also
    --------
    solve_triangular, cho_solve, lu_solve : Solvers for factors.
    numpy.linalg.solve : The same by NumPy's name.

    Notes
    -----
    Unlike SciPy, there may be batch axes, and singular matrices give inf or nan instead of a
    LinAlgError. A ValueError is also raised for another `assume_a`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.linalg.solve(jnp.array([[2., 0.], [0., 4.]]), jnp.ones(2), assume_a="pos")
    Array([0.5 , 0.25], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise not_one_of("linalg.solve", "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    if assume_a != "pos":
        return linalg.solve(a, b)
    x, right, vector = _system("solve", a, b)

    def solved(x: Node, right: Node) -> Node:
        return cho_solve(cho_factor(wrap(x), lower=lower), wrap(right))._node

    def rule(xs: list[Node], ts: Maybe) -> tuple[list[Node], Maybe]:
        """Solve a dx = db - da x, whichever triangle is read."""
        y, (t, tb) = solved(*xs), ts
        if t is not None:
            moved = o.neg((wrap(t) @ wrap(y))._node)
            tb = moved if tb is None else o.add(tb, moved)
        return [y], [None if tb is None else solved(xs[0], tb)]

    out = solved(o.detach(x._node), o.detach(right._node))
    return _drop_vector_axis(
        wrap(boundary(JvpRule("solve", rule), [x._node, right._node], [out])[0]), vector
    )


@api_boundary
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: None = None,
    check_finite: bool = True,
) -> Array:
    """Solve op(a) @ x = b for triangular matrices.

    Parameters
    ----------
    a : array_like
        Triangular matrices of shape (..., n, n); the other triangle is not read.
    {b_system}
    trans : {0, 1, 2, "N", "T", "C"}, optional
        Whether to solve with the matrix (0 or "N", the default), its transpose (1 or "T"), or its
        adjoint (2 or "C").
    lower : bool, optional
        Whether `a` is lower triangular. The default is False.
    unit_diagonal : bool, optional
        Whether the diagonal is taken to be 1 and not read. The default is False.
    {overwrite_b}
    debug : None, optional
        Accepted for compatibility with SciPy; it has no effect.
    {check_finite}

    Returns
    -------
    Array
        Solutions x, of the shape of `b`. Integers give float32, other dtypes are unchanged.

    Raises
    ------
    {raises_system}

    See Also
    --------
    solve : Solve general systems.
    lax.linalg.triangular_solve : The same with the matrix on either side.

    Notes
    -----
    Unlike SciPy, there may be batch axes, and singular matrices give inf or nan instead of a
    LinAlgError. A ValueError is also raised for another `trans`.

    Examples
    --------
    >>> import accnp as jnp
    >>> a = jnp.array([[1., 2.], [0., 4.]])
    >>> jnp.scipy.linalg.solve_triangular(a, jnp.array([5., 8.]))
    Array([1., 2.], dtype=float32)
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise not_one_of("linalg.solve_triangular", "trans", trans, (0, 1, 2, "N", "T", "C"))
    x, right, vector = _system("solve_triangular", a, b)
    out = lax_linalg.triangular_solve(
        x,
        right,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return _drop_vector_axis(out, vector)
