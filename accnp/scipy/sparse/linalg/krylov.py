"""`scipy.sparse.linalg`: iterative solvers of linear systems, which only multiply by the matrix.

The matrix may be a linear function, and vectors may be pytrees. Derivatives are those of the linear
system, which require another solve.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import cast
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import IncompatibleShapesError, api_boundary, not_one_of
from accnp.lax.control_flow.loops import fori_loop, while_loop
from accnp.lax.control_flow.solvers import custom_linear_solve
from accnp.lax.elementwise import rsqrt
from accnp.numpy.creation import asarray, eye, zeros, zeros_like
from accnp.numpy.joining import stack
from accnp.numpy.linalg.norms import norm
from accnp.numpy.number_parts import power_of_two
from accnp.numpy.products import matmul, tensordot, vdot
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import abs as _abs
from accnp.numpy.ufuncs import (
    isnan,
    logical_and,
    logical_not,
    maximum,
    minimum,
    sqrt,
)
from accnp.pytree import PyTree, tree_flatten, tree_map
from accnp.scipy.linalg.solving import solve as dense_solve
from accnp.scipy.linalg.solving import solve_triangular

__all__ = ["bicgstab", "cg", "gmres"]

Tree = Any
Linear = Callable[[Tree], Tree]


def _identity(x: Tree) -> Tree:
    return x


def _linear(a: Any, name: str) -> Linear:
    """Return a linear function: the given one, or the product with a square matrix."""
    if callable(a):
        return a
    if not hasattr(a, "__matmul__") or not hasattr(a, "shape"):
        raise TypeError(
            f"{name}: the operator must be a function or a matrix; got {a!r}; pass one of the two"
        )
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(
            f"{name}: the operator must be a square matrix; got shape {a.shape}; "
            "pass a square matrix, or a function"
        )
    return lambda x: a @ x


# --- trees as vectors ----------------------------------------------------------------------------


def _leaves(x: Tree) -> list[Array]:
    return tree_flatten(x)[0]


def _total(parts: list[Any]) -> Any:
    return reduce(lambda a, b: a + b, parts)


def _dot(x: Tree, y: Tree) -> Array:
    """Return the inner product, with x conjugated."""
    return _total([vdot(a, b) for a, b in zip(_leaves(x), _leaves(y), strict=True)])


def _real_dot(x: Tree, y: Tree) -> Array:
    return _dot(x, y).real


def _norm(x: Tree) -> Array:
    lengths = [norm(v.ravel()) for v in _leaves(x)]
    return lengths[0] if len(lengths) == 1 else norm(stack(lengths))


def _multiply(x: Tree, factor: Array) -> Tree:
    return tree_map(lambda v: v * factor.astype(v.dtype), x)


def _magnitude(x: Tree) -> Array:
    """Return the power of two nearest to the largest element; 1 if that is 0 or not finite."""
    return power_of_two(reduce(maximum, [_abs(v).max(initial=0) for v in _leaves(x)]))


def _add_scaled(x: Tree, factor: Any, y: Tree) -> Tree:
    """x + factor * y."""
    return tree_map(lambda a, b: a + factor * b, x, y)


def _minus(x: Tree, y: Tree) -> Tree:
    return tree_map(lambda a, b: a - b, x, y)


def _weak_as(b: Tree, x: Tree) -> Tree:
    """Make a solution weak if the right-hand side is."""
    return tree_map(
        lambda operand, solution: (
            wrap(cast(solution._node, solution.dtype, True)) if operand.weak_type else solution
        ),
        b,
        x,
    )


def _dtype(x: Tree) -> np.dtype:
    return dtypes.result_type(*_leaves(x))


class _System:
    """The arguments that all solvers share, after checks."""

    def __init__(self, name: str, a: Any, b: Any, x0: Any, maxiter: int | None, m: Any) -> None:
        self.name = f"sparse.linalg.{name}"
        self.b = tree_map(asarray, b)
        self.x0 = None if x0 is None else tree_map(asarray, x0)
        self.size = sum(x.size for x in _leaves(self.b))
        self.maxiter = 10 * self.size if maxiter is None else maxiter
        self.matvec = _linear(a, self.name)
        self.precondition = _identity if m is None else _linear(m, self.name)
        if self.x0 is None:
            return
        (leaves, tree), (start, other) = tree_flatten(self.b), tree_flatten(self.x0)
        if tree != other:
            raise ValueError(
                f"{self.name}: x0 and b need one tree structure; got {other} and {tree}; "
                "start from a tree like b, or leave x0 out"
            )
        shapes, others = [x.shape for x in leaves], [x.shape for x in start]
        if shapes != others:
            raise IncompatibleShapesError(
                f"{self.name}: x0 and b need equal shapes; got {others} and {shapes}; "
                "start from arrays like those of b, or leave x0 out"
            )


class _Scaled:
    """A system whose matrix, preconditioner and right-hand side are scaled to elements near 1.

    Solvers form inner products, which in float32 overflow or underflow for elements beyond 1e19 or
    below 1e-19. The scales are powers of two, so they do not change bits of solutions in range.
    """

    def __init__(self, system: _System, matvec: Linear, b: Tree) -> None:
        size = _magnitude(b)
        self.b = _multiply(b, 1 / size)
        m = system.precondition
        preconditioned = m(self.b)
        strength = asarray(1, size.dtype) if m is _identity else _magnitude(preconditioned)
        preconditioned = _multiply(preconditioned, 1 / strength)
        gain = _magnitude(matvec(preconditioned))
        self.precondition = m if m is _identity else lambda x: _multiply(m(x), 1 / strength)
        self.matvec = lambda x: _multiply(matvec(x), 1 / gain)
        self.back = size / gain
        self.size = size
        if system.x0 is None:
            self.x0, self.residual = tree_map(zeros_like, b), self.b
            return
        start = _multiply(system.x0, gain / size)
        residual = _minus(self.b, self.matvec(start))
        # For the much smaller right-hand sides of derivatives, the initial guess may be unsuitable.
        near = _norm(residual) < 16 * _norm(self.b)
        self.x0 = tree_map(lambda v: where(near, v, 0), start)
        self.residual = tree_map(lambda u, v: where(near, u, v), residual, self.b)

    def result(self, x: Tree) -> Tree:
        """Return the solution of the unscaled system."""
        return _multiply(x, self.back)


# --- conjugate gradients -------------------------------------------------------------------------


def _bound(scaled: _Scaled, tol: float, atol: float) -> Array:
    """Return the squared norm below which a residual is small enough."""
    absolute = atol / scaled.size
    return maximum(tol * tol * _real_dot(scaled.b, scaled.b), absolute * absolute)


@api_boundary
def cg(
    A: ArrayLike | Callable[..., PyTree],
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: ArrayLike | Callable[..., PyTree] | None = None,
) -> tuple[Any, None]:
    """Solve A x = b by conjugate gradients, for a Hermitian positive definite A.

    Parameters
    ----------
    {krylov_params}
    maxiter : int, optional
        Maximum number of steps. The default is 10 times the number of unknowns.
    {krylov_m}

    Returns
    -------
    x : pytree
        Solution of the structure, shapes and dtypes of `b`.
    info : None
        Present for compatibility with SciPy.

    Raises
    ------
    {raises_krylov}

    See Also
    --------
    bicgstab, gmres : Solvers for other matrices.
    lax.custom_linear_solve : Derivatives of any solver.

    Notes
    -----
    Unlike SciPy, unknowns may be trees of arrays, and steps are not counted.

    Examples
    --------
    >>> import accnp as jnp
    >>> A = jnp.array([[4., 1.], [1., 3.]])
    >>> x, _ = jnp.scipy.sparse.linalg.cg(A, jnp.array([5., 4.]))
    >>> jnp.round(x, 4)
    Array([1., 1.], dtype=float32)
    """
    system = _System("cg", A, b, x0, maxiter, M)

    def solve(matvec: Linear, b: Tree) -> Tree:
        scaled = _Scaled(system, matvec, b)
        bound = _bound(scaled, tol, atol)

        def more(state: Any) -> Any:
            _, r, gamma, _, k = state
            size = gamma.real if M is None else _real_dot(r, r)
            return (size > bound) & (k < system.maxiter)

        def step(state: Any) -> Any:
            x, r, gamma, p, k = state
            moved = scaled.matvec(p)
            alpha = gamma / _real_dot(p, moved).astype(dtype)
            x, r = _add_scaled(x, alpha, p), _add_scaled(r, -alpha, moved)
            z = scaled.precondition(r)
            after = _real_dot(r, z).astype(dtype)
            return x, r, after, _add_scaled(z, after / gamma, p), k + 1

        r = scaled.residual
        z = scaled.precondition(r)
        dtype = _dtype(z)
        start = (scaled.x0, r, _real_dot(r, z).astype(dtype), z, 0)
        return scaled.result(while_loop(more, step, start)[0])

    symmetric = all(x.dtype.kind != "c" for x in _leaves(system.b))
    return custom_linear_solve(
        system.matvec, system.b, solve, transpose_solve=solve, symmetric=symmetric
    ), None


@api_boundary
def bicgstab(
    A: ArrayLike | Callable[..., PyTree],
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: ArrayLike | Callable[..., PyTree] | None = None,
) -> tuple[Any, None]:
    """Solve A x = b by stabilized biconjugate gradients, for a regular A.

    Parameters
    ----------
    {krylov_params}
    maxiter : int, optional
        Maximum number of steps. The default is 10 times the number of unknowns.
    {krylov_m}

    Returns
    -------
    x : pytree
        Solution of the structure, shapes and dtypes of `b`.
    info : None
        Present for compatibility with SciPy.

    Raises
    ------
    {raises_krylov}

    See Also
    --------
    cg : Solver for positive definite matrices.
    gmres : Another solver for regular matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> A = jnp.array([[4., 1.], [0., 3.]])
    >>> x, _ = jnp.scipy.sparse.linalg.bicgstab(A, jnp.array([5., 3.]))
    >>> jnp.round(x, 4)
    Array([1., 1.], dtype=float32)
    """
    system = _System("bicgstab", A, b, x0, maxiter, M)

    def solve(matvec: Linear, b: Tree) -> Tree:
        scaled = _Scaled(system, matvec, b)
        bound = _bound(scaled, tol, atol)

        def more(state: Any) -> Any:
            _, r, *_, k = state
            return (_real_dot(r, r) > bound) & (k < system.maxiter) & (k >= 0)

        def step(state: Any) -> Any:
            x, r, first, alpha, omega, rho, p, q, k = state
            after = _dot(first, r)
            p = _add_scaled(r, after / rho * alpha / omega, _add_scaled(p, -omega, q))
            p_ = scaled.precondition(p)
            q = scaled.matvec(p_)
            alpha = after / _dot(first, q)
            s = _add_scaled(r, -alpha, q)
            done = _real_dot(s, s) < bound
            s_ = scaled.precondition(s)
            t = scaled.matvec(s_)
            omega = _dot(t, s) / _dot(t, t)
            half = _add_scaled(x, alpha, p_)
            x = tree_map(lambda u, v: where(done, u, v), half, _add_scaled(half, omega, s_))
            r = tree_map(lambda u, v: where(done, u, v), s, _add_scaled(s, -omega, t))
            # A negative count ends a loop that has broken down.
            k = where((omega == 0) | (alpha == 0), -11, k + 1)
            return x, r, first, alpha, omega, after, p, q, where(after == 0, -10, k)

        r, one = scaled.residual, asarray(1, _dtype(b))
        start = (scaled.x0, r, r, one, one, one, r, r, 0)
        return scaled.result(while_loop(more, step, start)[0])

    x = custom_linear_solve(system.matvec, system.b, solve, transpose_solve=solve)
    return _weak_as(system.b, x), None


# --- GMRES ---------------------------------------------------------------------------------------


def _unit(x: Tree, bound: Any = 0) -> tuple[Tree, Array]:
    """Normalize a vector and return its norm; zeros if that is not above the bound."""
    size = _norm(x)
    used = size > bound
    safe = where(used, size, 1)
    return tree_map(lambda v: where(used, v / safe.astype(v.dtype), 0), x), where(used, size, 0)


def _orthogonal(basis: Tree, x: Tree, size: Array) -> tuple[Tree, Array]:
    """Subtract the components along the columns of a basis, twice if much cancels; return the rest
    and the components."""

    def once(x: Tree) -> tuple[Tree, Array]:
        parts = zip(_leaves(basis), _leaves(x), strict=True)
        h = _total([tensordot(v.conj(), y, (range(y.ndim), range(y.ndim))) for v, y in parts])
        return tree_map(lambda v, y: y - v @ h, basis, x), h

    rest, h = once(x)
    again, more = once(rest)
    # Kahan's criterion: two passes are enough, and one if the norm has not dropped below the root.
    needed = _norm(rest) < size / sqrt(2.0)
    return tree_map(lambda u, v: where(needed, u, v), again, rest), where(needed, h + more, h)


def _arnoldi(k: Any, matvec: Linear, m: Linear, basis: Tree, h: Array) -> tuple[Tree, Array, Array]:
    """Add a vector to the basis and a row to the Hessenberg matrix; also return if it is zero."""
    x = m(matvec(tree_map(lambda v: v[..., k], basis)))
    size = _unit(x)[1]
    x, row = _orthogonal(basis, x, size)
    x, rest = _unit(x, float(dtypes.finfo(h.dtype).eps) * size)
    basis = tree_map(lambda v, y: v.at[..., k + 1].set(y), basis, x)
    row = row.at[k + 1].set(rest.astype(row.dtype))
    return basis, h.at[k].set(row.astype(h.dtype)), rest == 0


def _apply_rotation(x: Array, i: Any, c: Array, s: Array) -> Array:
    """Apply a rotation to two elements."""
    a, b = x[i], x[i + 1]
    return x.at[i].set(c.conj() * a - s.conj() * b).at[i + 1].set(s * a + c * b)


def _rotation(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rotation that zeroes the second of two elements."""
    swapped, nothing = _abs(a) < _abs(b), _abs(b) == 0
    t = -where(swapped, a, b) / where(nothing, 1, where(swapped, b, a))
    r = rsqrt(1 + _abs(t) ** 2).astype(t.dtype)
    c = where(nothing, 1, where(swapped, r * t, r))
    return c, where(nothing, 0, where(swapped, r, r * t))


class _Restart:
    """One restart cycle of GMRES: a Krylov space of `size` vectors and the best solution in it."""

    def __init__(self, scaled: _Scaled, size: int) -> None:
        self.matvec, self.m, self.b, self.size = scaled.matvec, scaled.precondition, scaled.b, size
        self.dtype = _dtype(self.b)
        whole = _norm(self.m(self.b))
        self.least = float(dtypes.finfo(whole.dtype).eps) * whole  # significant residual

    def basis(self, first: Tree) -> Tree:
        """Allocate all vectors, with the first one in place."""
        count = self.size + 1
        return tree_map(lambda v: zeros((*v.shape, count), v.dtype).at[..., 0].set(v), first)

    def improved(self, x: Tree, basis: Tree, y: Array) -> tuple[Tree, Tree, Array]:
        """Return the solution for weights of the basis, and its residual as direction and norm."""
        x = tree_map(lambda x, v: x + matmul(v[..., :-1], y), x, basis)
        return x, *_unit(self.m(_minus(self.b, self.matvec(x))), self.least)

    def batched(self, x: Tree, first: Tree, size: Array, bound: Array) -> tuple[Tree, Tree, Array]:
        """Compute all vectors first, then solve one least-squares problem."""
        h = eye(self.size, self.size + 1, dtype=self.dtype)

        def more(state: Any) -> Any:
            _, _, stuck, k = state
            return logical_and(k < self.size, logical_not(stuck))

        def step(state: Any) -> Any:
            basis, h, _, k = state
            return *_arnoldi(k, self.matvec, self.m, basis, h), k + 1

        basis, h, _, _ = while_loop(more, step, (self.basis(first), h, asarray(False), 0))
        right = zeros(self.size + 1, self.dtype).at[0].set(size.astype(self.dtype))
        back = h.conj()
        y = dense_solve(back @ h.T, back @ right, assume_a="pos")
        return self.improved(x, basis, y)

    def incremental(
        self, x: Tree, first: Tree, size: Array, bound: Array
    ) -> tuple[Tree, Tree, Array]:
        """Keep the matrix triangular by rotations, so the residual is known after each vector."""
        n = self.size
        h = eye(n, n + 1, dtype=self.dtype)
        right = zeros(n + 1, self.dtype).at[0].set(size.astype(self.dtype))

        def more(state: Any) -> Any:
            k, error, *_ = state
            return logical_and(k < n, error > bound)

        def step(state: Any) -> Any:
            k, _, basis, h, right, turns = state
            basis, h, _ = _arnoldi(k, self.matvec, self.m, basis, h)
            row = fori_loop(
                0, n, lambda i, row: where(i < k, _apply_rotation(row, i, *turns[i]), row), h[k]
            )
            c, s = _rotation(row[k], row[k + 1])
            turns = turns.at[k, 0].set(c).at[k, 1].set(s)
            right = _apply_rotation(right, k, c, s)
            h = h.at[k].set(_apply_rotation(row, k, c, s))
            return k + 1, _abs(right[k + 1]), basis, h, right, turns

        start = (0, size, self.basis(first), h, right, zeros((n, 2), self.dtype))
        _, _, basis, h, right, _ = while_loop(more, step, start)
        return self.improved(x, basis, solve_triangular(h[:, :-1].T, right[:-1]))


@api_boundary
def gmres(
    A: ArrayLike | Callable[..., PyTree],
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: ArrayLike | Callable[..., PyTree] | None = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """Solve A x = b by the generalized minimal residual method, for a regular A.

    Parameters
    ----------
    {krylov_params}
    restart : int, optional
        Number of vectors after which a new Krylov space is started. The default is 20.
    maxiter : int, optional
        Maximum number of spaces. The default is 10 times the number of unknowns.
    {krylov_m}
    solve_method : {"batched", "incremental"}, optional
        "batched", the default, builds a whole space at once; "incremental" checks the residual
        after each vector.

    Returns
    -------
    x : pytree
        Solution of the structure, shapes and dtypes of `b`.
    info : Array
        0, or -1 if the solution is nan.

    Raises
    ------
    TypeError
        If `A` is neither a function nor a matrix, or does not fit `b`.
    ValueError
        If `x0` does not have the structure and shapes of `b`, or `solve_method` is unknown.

    See Also
    --------
    cg : Solver for positive definite matrices.
    bicgstab : Another solver for regular matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> A = jnp.array([[4., 1.], [0., 3.]])
    >>> x, info = jnp.scipy.sparse.linalg.gmres(A, jnp.array([5., 3.]))
    >>> jnp.round(x, 4)
    Array([1., 1.], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise not_one_of(
            "sparse.linalg.gmres", "solve_method", solve_method, ("batched", "incremental")
        )
    system = _System("gmres", A, b, x0, maxiter, M)

    def solve(matvec: Linear, b: Tree) -> Tree:
        scaled = _Scaled(system, matvec, b)
        size = _norm(scaled.b)
        bound = maximum(tol * size, atol / scaled.size)
        inner = _norm(scaled.precondition(scaled.b)) * minimum(1.0, bound / size)
        turn = _Restart(scaled, min(restart, system.size))
        improve = getattr(turn, solve_method)

        def more(state: Any) -> Any:
            _, k, _, error = state
            return logical_and(k < system.maxiter, error > bound)

        def step(state: Any) -> Any:
            x, k, first, error = state
            x, first, error = improve(x, first, error, inner)
            return x, k + 1, first, error

        first, error = _unit(scaled.precondition(scaled.residual), turn.least)
        return scaled.result(while_loop(more, step, (scaled.x0, 0, first, error))[0])

    x = custom_linear_solve(system.matvec, system.b, solve, transpose_solve=solve)
    return _weak_as(system.b, x), where(isnan(_norm(x)), -1, 0)
