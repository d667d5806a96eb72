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
from accnp.api import products
from accnp.api.convert import as_node, broadcast_shapes, promote_inexact, to_shape
from accnp.api.manipulation import expand_node, matrix_transpose, reshape_plain, transpose_node
from accnp.api.matrices import diagonal as _diagonal
from accnp.api.named import shown
from accnp.api.norms import matrix_norm, norm, singular_values, vector_norm
from accnp.api.products import matmul_nodes
from accnp.api.shapes import as_int
from accnp.array import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.primitives.custom import JvpRule, Maybe, boundary
from accnp.primitives.decompositions import last_axis
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to
from accnp.primitives.linalg import batched_identity, matrix_t, triangle

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

outer = products.outer
matmul = products.matmul
tensordot = products.tensordot
vecdot = products.vecdot


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


def _matrices(x: Any, function: str, square: bool = False) -> Node:
    node = promote_inexact(function, x)[0]
    shape = node.aval.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        what = "square matrices" if square else "matrices"
        raise ValueError(f"{function}: {what} in the last two axes are needed; got shape {shape}")
    if node.aval.weak_type:
        node = o.convert_element_type(node, new_dtype=node.aval.dtype, weak_type=False)
    return node


@api_boundary
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the cross product of vectors of 3 components."""
    return products.cross(x1, x2, axis=axis)


@api_boundary
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sum the diagonals of the matrices in the last two axes."""
    return products.trace(x, offset, -2, -1, dtype)


@api_boundary
def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Take the diagonals of the matrices in the last two axes."""
    return _diagonal(x, offset, -2, -1)


# --- systems and inverses ------------------------------------------------------------------------


@api_boundary
def solve(a: Any, b: Any) -> Array:
    """Solve a @ x = b for vectors or matrices b."""
    name = "linalg.solve"
    x, y = promote_inexact(name, a, b)
    return wrap(solve_nodes(_matrices(wrap(x), name, True), y, name))


def solve_nodes(a: Node, b: Node, name: str) -> Node:
    """Solve for a vector (one axis) or for matrices, with broadcasting."""
    vector = b.aval.ndim == 1
    if vector:
        b = expand_node(b, (1,))
    if b.aval.ndim < 2 or b.aval.shape[-2] != a.aval.shape[-1]:
        raise ValueError(f"{name}: shapes {a.aval.shape} and {b.aval.shape} do not fit")
    outer_shape = broadcast_shapes(name, [a.aval.shape[:-2], b.aval.shape[:-2]])
    a, b = (to_shape(v, (*outer_shape, *v.aval.shape[-2:])) for v in (a, b))
    out = o.linear_solve(a, b)
    return o.squeeze(out, dimensions=(out.aval.ndim - 1,)) if vector else out


@api_boundary
def inv(a: Any) -> Array:
    """Invert matrices."""
    x = _matrices(a, "linalg.inv", True)
    return wrap(o.linear_solve(x, batched_identity(x.aval)))


@api_boundary
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Solve tensordot(a, x, x.ndim) = b."""
    x, y = promote_inexact("linalg.tensorsolve", a, b)
    if axes is not None:
        moved = [d % x.aval.ndim for d in axes]
        order = [d for d in range(x.aval.ndim) if d not in moved] + moved
        x = transpose_node(x, tuple(order))
    shape = x.aval.shape[y.aval.ndim :]
    n = int(np.prod(shape))
    matrix = reshape_plain(x, (y.aval.size, n))
    out = solve_nodes(matrix, reshape_plain(y, (y.aval.size,)), "linalg.tensorsolve")
    return wrap(reshape_plain(out, shape))


@api_boundary
def tensorinv(a: Any, ind: int = 2) -> Array:
    """Invert with respect to tensordot over `ind` axes."""
    x = promote_inexact("linalg.tensorinv", a)[0]
    if ind <= 0:
        raise ValueError(f"linalg.tensorinv: ind must be positive; got {ind}")
    shape = x.aval.shape
    rows = int(np.prod(shape[:ind]))
    out = inv(wrap(reshape_plain(x, (rows, x.aval.size // max(rows, 1)))))
    return wrap(reshape_plain(out._node, (*shape[ind:], *shape[:ind])))


@api_boundary
@shown()
def matrix_power(a: Any, n: int) -> Array:
    """Multiply square matrices with themselves n times (n < 0: their inverses)."""
    name = "linalg.matrix_power"
    n = as_int(n, name, "n")
    x = as_node(a, name)
    if n < 0:
        x, n = inv(a)._node, -n
    shape = x.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{name}: square matrices are needed; got shape {shape}")
    result: Node | None = None
    while n:
        if n & 1:
            result = x if result is None else matmul_nodes(result, x)
        n >>= 1
        x = matmul_nodes(x, x) if n else x
    return wrap(batched_identity(x.aval) if result is None else result)


@api_boundary
def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
    """Multiply a chain of matrices in the cheapest order."""
    if len(arrays) < 2:
        raise ValueError(f"linalg.multi_dot: at least two arrays are needed; got {len(arrays)}")
    nodes = products.promote("linalg.multi_dot", *arrays)
    first, last = nodes[0].aval.ndim == 1, nodes[-1].aval.ndim == 1
    if first:
        nodes[0] = expand_node(nodes[0], (0,))
    if last:
        nodes[-1] = expand_node(nodes[-1], (1,))
    if any(n.aval.ndim != 2 for n in nodes):
        raise ValueError("linalg.multi_dot: matrices are needed (vectors at the ends only)")
    sizes = [n.aval.shape[0] for n in nodes] + [nodes[-1].aval.shape[1]]
    out = _chain(nodes, _cheapest(sizes), 0, len(nodes) - 1, precision)
    gone = tuple([d for d, used in ((0, first), (1, last)) if used])
    return wrap(o.squeeze(out, dimensions=gone) if gone else out)


def _cheapest(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of the chain (matrix-chain order)."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def _chain(nodes: list[Node], split: Any, i: int, j: int, precision: Any) -> Node:
    if i == j:
        return nodes[i]
    k = split[i, j]
    left = _chain(nodes, split, i, k, precision)
    return matmul_nodes(left, _chain(nodes, split, k + 1, j, precision), precision)


# --- decompositions ------------------------------------------------------------------------------


def _symmetric(x: Node) -> Node:
    both = o.add(x, matrix_t(x, True))
    return o.div(both, like(both, 2))


@api_boundary
@shown()
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with L @ L.T = a; NaN where a is not positive definite."""
    x = _matrices(a, "linalg.cholesky", True)
    out = o.cholesky(_symmetric(x) if symmetrize_input else x)
    out = triangle(out)
    return wrap(matrix_t(out, True) if upper else out)


@api_boundary
@shown()
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Return eigenvalues (ascending) and eigenvectors of symmetric matrices."""
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"linalg.eigh: UPLO must be 'L' or 'U'; got {UPLO!r}")
    x = _matrices(a, "linalg.eigh", True)
    if symmetrize_input:
        x = _symmetric(x)
    elif UPLO == "U":
        x = matrix_t(x, True)
    v, w = items(o.eigh(x))
    return EighResult(wrap(w), wrap(v))


@api_boundary
@shown()
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return the eigenvalues of symmetric matrices, ascending."""
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@api_boundary
def eig(a: Any) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices, complex."""
    w, v = items(o.eig(_matrices(a, "linalg.eig", True)))
    return EigResult(wrap(w), wrap(v))


@api_boundary
def eigvals(a: Any) -> Array:
    """Return the eigenvalues of square matrices, complex."""
    return eig(a).eigenvalues


@api_boundary
@shown()
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Return U, S, Vh with a = (U * S) @ Vh, or S only."""
    if subset_by_index is not None:
        raise NotImplementedError("linalg.svd: subset_by_index is not supported; slice the result")
    x = _matrices(a, "linalg.svd")
    if not compute_uv:
        return wrap(singular_values(x))
    u, s, vh = items(o.svd(x, full_matrices=bool(full_matrices)))
    return SVDResult(wrap(u), wrap(s), wrap(vh))


@api_boundary
def svdvals(x: Any, /) -> Array:
    """Return the singular values of matrices, largest first."""
    return wrap(singular_values(_matrices(x, "linalg.svdvals")))


@api_boundary
@shown()
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return Q and R with a = Q @ R; mode "r" returns R only."""
    if mode not in ("reduced", "r", "full", "complete", "raw"):
        raise ValueError(f"linalg.qr: mode must be 'reduced', 'complete' or 'r'; got {mode!r}")
    if mode == "raw":
        raise NotImplementedError("linalg.qr: mode 'raw' is not supported; use 'reduced'")
    x = _matrices(a, "linalg.qr")
    q, r = items(o.qr(x, full_matrices=mode in ("full", "complete")))
    return wrap(r) if mode == "r" else QRResult(wrap(q), wrap(r))


# --- determinants and ranks ----------------------------------------------------------------------


@api_boundary
def det(a: Any) -> Array:
    """Return the determinants of square matrices.

    Up to 3 by 3 they are written out, so that derivatives of any order are right when singular.
    """
    x = _matrices(a, "linalg.det", True)
    n = x.aval.shape[-1]
    return wrap(_written_out(x) if n in (2, 3) else o.det(x))


def _written_out(x: Node) -> Node:
    a, n = wrap(x), x.aval.shape[-1]

    def product(columns: Sequence[int]) -> Array:
        return functools.reduce(operator.mul, [a[..., i, j] for i, j in enumerate(columns)])

    if n == 2:
        return (product((0, 1)) - product((1, 0)))._node
    even = product((0, 1, 2)) + product((1, 2, 0)) + product((2, 0, 1))
    return (even - product((2, 1, 0)) - product((0, 2, 1)) - product((1, 0, 2)))._node


@api_boundary
@shown()
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Return the sign and the logarithm of the absolute value of determinants."""
    if method not in (None, "lu", "qr"):
        raise ValueError(f"linalg.slogdet: method must be 'lu' or 'qr'; got {method!r}")
    sign, log = items(o.slogdet(_matrices(a, "linalg.slogdet", True)))
    return SlogdetResult(wrap(sign), wrap(log))


def _tolerance(s: Node, shape: tuple[int, ...], given: Any, name: str) -> Node:
    """The bound below which singular values count as zero, one for each matrix."""
    last = s.aval.ndim - 1
    if given is None:
        eps = max(shape[-2:]) * float(dtypes.finfo(s.aval.dtype).eps)
        return o.mul(o.reduce_max(s, axes=(last,)), like(s, eps))
    tol = promote_inexact(name, given)[0]
    tol = o.convert_element_type(tol, new_dtype=s.aval.dtype, weak_type=False)
    top = o.reduce_max(s, axes=(last,))
    return o.mul(to_shape(tol, top.aval.shape), top)


@api_boundary
@shown()
def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Array:
    """Return how many singular values are not negligible."""
    name = "linalg.matrix_rank"
    x = _matrices(M, name)
    s = singular_values(x)
    if tol is not None:
        bound = promote_inexact(name, tol)[0]
        bound = o.convert_element_type(bound, new_dtype=s.aval.dtype, weak_type=False)
        bound = to_shape(bound, s.aval.shape[:-1])
    else:
        bound = _tolerance(s, x.aval.shape, rtol, "linalg.pinv")
    wide = broadcast_to(bound, s.aval.shape, tuple(range(s.aval.ndim - 1)))
    count = o.convert_element_type(o.gt(s, wide), new_dtype=dtypes.default_int(), weak_type=False)
    return wrap(o.reduce_sum(count, axes=(s.aval.ndim - 1,)))


@api_boundary
def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Array:
    """Return the pseudo-inverse of matrices."""
    x = _matrices(a, "linalg.pinv")
    rtol = rcond if rtol is None else rtol

    def rule(xs: list[Node], ts: Maybe) -> tuple[list[Node], Maybe]:
        """The derivative at constant rank: Golub and Pereyra (1973), formula 4.12."""
        (a,), (t,) = xs, ts
        p = _inverse_where_regular(a, rtol)
        if t is None:
            return [p], [None]
        th, ph = matrix_t(t, True), matrix_t(p, True)
        rows = o.sub(th, matmul_nodes(matmul_nodes(th, a), p))
        columns = o.sub(th, matmul_nodes(p, matmul_nodes(a, th)))
        out = matmul_nodes(matmul_nodes(p, ph), rows)
        out = o.add(out, matmul_nodes(matmul_nodes(columns, ph), p))
        return [p], [o.sub(out, matmul_nodes(matmul_nodes(p, t), p))]

    out = _inverse_where_regular(o.detach(x), rtol)
    return wrap(boundary(JvpRule("pinv", rule), [x], [out])[0])


def _inverse_where_regular(x: Node, rtol: Any) -> Node:
    u, s, vh = items(o.svd(x, full_matrices=False))
    if rtol is None:
        rtol = 10.0 * max(x.aval.shape[-2:]) * float(dtypes.finfo(s.aval.dtype).eps)
    bound = _tolerance(s, x.aval.shape, rtol, "linalg.pinv")
    wide = broadcast_to(bound, s.aval.shape, tuple(range(s.aval.ndim - 1)))
    used = o.gt(s, wide)
    ones = broadcast_to(like(s, 1), s.aval.shape)
    zeros = broadcast_to(like(s, 0), s.aval.shape)
    inverse = o.select_n(used, zeros, o.div(ones, o.select_n(used, ones, s)))
    if inverse.aval.dtype != u.aval.dtype:
        inverse = o.convert_element_type(inverse, new_dtype=u.aval.dtype, weak_type=False)
    v = matrix_t(vh, True)
    return matmul_nodes(o.mul(v, last_axis(inverse, v.aval.shape)), matrix_t(u, True))


@api_boundary
def lstsq(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> tuple[Array, ...]:
    """Return the least-squares solution, residuals, rank and singular values."""
    name = "linalg.lstsq"
    x, y = promote_inexact(name, a, b)
    if x.aval.ndim != 2 or y.aval.ndim not in (1, 2) or x.aval.shape[0] != y.aval.shape[0]:
        raise ValueError(f"{name}: shapes {x.aval.shape} and {y.aval.shape} do not fit")
    m, n = x.aval.shape
    vector = y.aval.ndim == 1
    y = expand_node(y, (1,)) if vector else y
    u, s, vh = items(o.svd(x, full_matrices=False))
    eps = float(dtypes.finfo(s.aval.dtype).eps)
    cut_off = eps * max(m, n) if rcond is None else rcond
    bound = _tolerance(s, (m, n), eps if rcond is not None and rcond < 0 else cut_off, name)
    used = o.ge(s, broadcast_to(bound, s.aval.shape))
    ones = broadcast_to(like(s, 1), s.aval.shape)
    zeros = broadcast_to(like(s, 0), s.aval.shape)
    safe = o.select_n(used, zeros, o.div(ones, o.select_n(used, ones, s)))
    if safe.aval.dtype != u.aval.dtype:
        safe = o.convert_element_type(safe, new_dtype=u.aval.dtype, weak_type=False)
    part = matmul_nodes(matrix_t(u, True), y)
    out = matmul_nodes(matrix_t(vh, True), o.mul(broadcast_to(safe, part.aval.shape, (0,)), part))
    rest = o.abs(o.sub(y, matmul_nodes(x, out)))
    residual = o.reduce_sum(o.mul(rest, rest), axes=(0,))
    count = o.convert_element_type(used, new_dtype=dtypes.int32, weak_type=False)
    rank = o.reduce_sum(count, axes=(0,))
    if numpy_resid and m <= n:
        residual = broadcast_to(like(residual, 0), (0,))
    out = o.squeeze(out, dimensions=(1,)) if vector else out
    return wrap(out), wrap(residual), wrap(rank), wrap(s)


@api_boundary
@shown()
def cond(x: Any, p: Any = None) -> Array:
    """Return the condition number of matrices in a norm (default: the 2-norm)."""
    node = _matrices(x, "linalg.cond")
    if p in (None, 2, -2):
        s = wrap(singular_values(node))
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    a, b = norm(wrap(node), p, (-2, -1)), norm(inv(wrap(node)), p, (-2, -1))
    return wrap(o.mul(a._node, b._node))
