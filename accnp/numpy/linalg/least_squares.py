"""`jnp.linalg` functions based on singular values: matrix_rank, pinv, lstsq and cond.

Matrices are in the last two axes. Integers are converted to floats.
"""

from __future__ import annotations

from typing import Any

from accnp import dtypes
from accnp.api.arguments.convert import cast, promote_inexact
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small, run_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lax.linalg import factorizations as lax_linalg
from accnp.numpy.creation import asarray, zeros
from accnp.numpy.linalg.decompositions import inv, matrices, svd, svdvals
from accnp.numpy.linalg.norms import norm
from accnp.numpy.reductions import any as _any
from accnp.numpy.reductions import sum as _sum
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import conj, isnan
from accnp.primitives.custom import JvpRule, Maybe, boundary
from accnp.primitives.linalg import matrix_t

__all__ = ["cond", "lstsq", "matrix_rank", "pinv"]


def _eps(x: Array) -> float:
    return float(dtypes.finfo(x.dtype).eps)


def _choose_given(name: str, joint: str = " and ", **candidates: Any) -> Any:
    """Return the one of two arguments that was given, or None."""
    there = {k: v for k, v in candidates.items() if v is not None}
    if len(there) > 1:
        raise ValueError(
            f"{name.rpartition('.')[2]}: only one of {joint.join(there)} may be specified; got "
            "both; omit one"
        )
    return next(iter(there.values()), None)


def _bound(s: Array, relative: Any) -> Array:
    """Return the bound below which singular values count as zero, for each matrix."""
    bounds = asarray(relative).astype(s.dtype)[..., None]
    if bounds.ndim < s.ndim:
        bounds = bounds.reshape((1,) * (s.ndim - bounds.ndim) + bounds.shape)
    return bounds * s[..., :1]


@api_boundary
@shown()
@broadcasts_inside
@compiled_if_small("M", "rtol", "tol")
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Compute the rank of matrices by their singular values.

    Parameters
    ----------
    M : array_like
        Matrices of shape (..., m, n), or a vector.
    rtol : array_like, optional
        Tolerance relative to the largest singular value: smaller ones count as 0.
    {hermitian_svd}
    tol : array_like, optional
        Absolute tolerance.

    Returns
    -------
    Array
        Ranks of shape (...), of dtype int32 (int64 with `jax_enable_x64`). The rank of a vector is
        1 if it is not 0.

    Raises
    ------
    TypeError
        If `M` is a list or a string.

    See Also
    --------
    svdvals : Singular values.
    cond : Condition number.

    Notes
    -----
    `rtol` is relative as in NumPy and the array API standard, where JAX takes it as absolute.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    name = "linalg.matrix_rank"
    tolerance = _choose_given(name, " or ", tol=tol, rtol=rtol)
    x = wrap(promote_inexact(name, M)[0])
    if x.ndim < 2:
        return _any(x != 0).astype("int32")
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        bound = asarray(tol).astype(s.dtype)[..., None]
    else:
        bound = _bound(s, max(x.shape[-2:]) * _eps(s) if tolerance is None else tolerance)
    return _sum(s > bound, axis=-1)


@api_boundary
@compiled_if_small("a", "rtol", "rcond")
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Compute the Moore-Penrose pseudo-inverse of matrices.

    Parameters
    ----------
    a : array_like
        Matrices of shape (..., m, n).
    rtol : array_like, optional
        Tolerance relative to the largest singular value: smaller ones count as 0. The default is 10
        max(m, n) times the precision of the dtype.
    {hermitian_svd}
    rcond : array_like, optional
        Another name of `rtol`. Give only one of the two.

    Returns
    -------
    Array
        Pseudo-inverses of shape (..., n, m). Integers give the default float dtype; other dtypes
        are unchanged, also float16 and bfloat16.

    Raises
    ------
    ValueError
        If there are fewer than two axes.
    TypeError
        If `a` is a list or a string.

    See Also
    --------
    inv : Inverse of square matrices.
    lstsq : Least-squares solution.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.round(jnp.linalg.pinv(jnp.array([[2.0], [0.0]])), 3)
    Array([[0.5, 0. ]], dtype=float32)
    """
    rtol = _choose_given("linalg.pinv", rtol=rtol, rcond=rcond)
    x = matrices(a, "linalg.pinv", kind=ValueError)
    if not x.aval.size:
        return zeros((*x.aval.shape[:-2], *x.aval.shape[:-3:-1]), x.aval.dtype)

    def inverse(x: Node, *bound: Node) -> Array:
        return _inverse_where_regular(wrap(x), wrap(bound[0]) if bound else None, hermitian)

    def rule(xs: list[Node], ts: Maybe) -> tuple[list[Node], Maybe]:
        """Differentiate at constant rank: Golub and Pereyra (1973), formula 4.12."""
        p = inverse(*xs)
        if ts[0] is None:
            return [p._node], [None]
        nodes = [lax_linalg.symmetric(v) if hermitian else v for v in (xs[0], ts[0])]
        a, t = map(wrap, nodes)
        th, ph = _adjoint(t), _adjoint(p)
        out = p @ ph @ (th - th @ a @ p) + (th - p @ (a @ th)) @ ph @ p - p @ t @ p
        return [p._node], [out._node]

    xs = [x] if rtol is None else [x, asarray(rtol)._node]
    out = inverse(*[o.detach(x) for x in xs])._node
    return wrap(boundary(JvpRule("pinv", rule), xs, [out])[0])


def _adjoint(x: Array) -> Array:
    return wrap(matrix_t(x._node, True))


def _inverse_where_regular(x: Array, rtol: Any, hermitian: bool) -> Array:
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    used = s > _bound(s, 10.0 * max(x.shape[-2:]) * _eps(s) if rtol is None else rtol)
    inverse = where(used, 1 / where(used, s, 1), 0).astype(u.dtype)
    return (_adjoint(vh) * inverse[..., None, :]) @ _adjoint(u)


@api_boundary
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, ...]:
    """Solve a linear system in the least-squares sense.

    Parameters
    ----------
    a : array_like
        Matrix of shape (m, n).
    b : array_like
        Right-hand sides, of shape (m,) or (m, k).
    rcond : float, optional
        Singular values below `rcond` times the largest one are treated as 0. The default, None, is
        max(m, n) times the machine epsilon of the dtype, and a negative number means the epsilon.
    numpy_resid : bool, optional
        If True, residuals are empty where NumPy returns an empty array: if m <= n, or if the rank
        is below n. The rank must then be known, so this fails under `jit`. The default is False.

    Returns
    -------
    x : Array
        Solution that minimizes the norm of a @ x - b, of shape (n,) or (n, k). Integers give the
        default float dtype; other dtypes are unchanged, also float16 and bfloat16.
    residuals : Array
        Sums of the squared residuals.
    rank : Array
        Rank of `a`.
    s : Array
        Singular values of `a`.

    Raises
    ------
    ValueError
        If `a` and `b` have different numbers of rows.
    TypeError
        If `a` is not a matrix, or an operand is a list or a string.

    See Also
    --------
    solve : Exact solution of square systems.
    pinv : Pseudo-inverse.

    Examples
    --------
    >>> import accnp as jnp
    >>> x, *_ = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([2.0, 4.0]))
    >>> jnp.round(x, 3)
    Array([3.], dtype=float32)
    """
    if numpy_resid:  # the shape of the residuals depends on values
        return _lstsq(a, b, rcond, numpy_resid)
    return run_small(_lstsq, (a, b), (rcond, numpy_resid))


def _lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None, numpy_resid: bool
) -> tuple[Array, Array, Array, Array]:
    name = "linalg.lstsq"
    x, y = (wrap(n) for n in promote_inexact(name, a, b))
    if x.shape[:1] != y.shape[:1]:
        raise ValueError(
            f"{name}: a and b must have the same number of rows; got shapes {x.shape} and "
            f"{y.shape}; transpose or slice one"
        )
    if x.ndim != 2 or y.ndim not in (1, 2):
        raise TypeError(
            f"{name}: a must be a matrix, and b a matrix or vector; got shapes {x.shape} "
            f"and {y.shape}; "
            "reshape them"
        )
    (m, n), vector = x.shape, y.ndim == 1
    y = y[:, None] if vector else y
    if not x.size:
        s, rank = zeros(0, x.dtype), asarray(0, dtypes.default_int())
        out = zeros((n, y.shape[1]), x.dtype)
    else:
        u, s, vh = svd(x, full_matrices=False)
        least = _eps(s) * max(m, n) if rcond is None else where(rcond < 0, _eps(s), rcond)
        used = (s > 0) & (s >= asarray(least).astype(s.dtype) * s[0])
        rank = _sum(used)
        inverse = where(used, 1 / where(used, s, 1), 0).astype(u.dtype)
        out = _adjoint(vh) @ (inverse[:, None] * (_adjoint(u) @ y))
    none = numpy_resid and (m <= n or rank < n)
    # Not a squared norm, whose derivative is undefined where the residual is zero.
    left = y - x @ out
    residual = zeros(0) if none else _sum((left * conj(left)).real, axis=0)
    return out[:, 0] if vector else out, residual, rank, s


@api_boundary
@shown()
@compiled_if_small("x")
def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """Compute the condition number of matrices.

    Parameters
    ----------
    x : array_like
        Matrices of shape (..., m, n).
    p : {None, 1, -1, 2, -2, inf, -inf, "fro"}, optional
        Norm to use. The default is the 2-norm.

    Returns
    -------
    Array
        Condition numbers of shape (...), of real dtype.

    Raises
    ------
    ValueError
        If there are fewer than two axes or no elements, or a norm other than the 2-norm is
        requested of matrices that are not square.
    TypeError
        If `x` is a list or a string.

    See Also
    --------
    norm : Norms of matrices.
    matrix_rank : Rank of matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    Array(2., dtype=float32)
    """
    name = "linalg.cond"
    node = matrices(x, name, kind=ValueError)
    shape, a = node.aval.shape, wrap(node)
    if 0 in shape[-2:]:
        raise ValueError(
            f"{name}: empty matrices have no condition number; got shape {shape}; "
            "pass matrices with rows and columns"
        )
    weak = getattr(x, "weak_type", False) and p in (None, 2, -2)  # as in JAX
    if p in (None, 2):
        s = svdvals(a)
        out = s[..., 0] / s[..., -1]
        return wrap(cast(out._node, out.dtype, weak))
    if p == -2:
        s = svdvals(a)
        out = s[..., -1] / s[..., 0]
    elif shape[-1] != shape[-2]:
        raise ValueError(
            f"{name}: p={p!r} requires square matrices; got shape {shape}; "
            "use p=None, 2 or -2 for other matrices"
        )
    else:
        out = norm(a, p, (-2, -1)) * norm(inv(a), p, (-2, -1))
    bad = isnan(out) & ~_any(isnan(a), axis=(-2, -1))
    out = where(bad, float("inf"), out)
    return wrap(cast(out._node, out.dtype, weak))
