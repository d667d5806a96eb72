"""Matrix products and linear systems: dot_general, linear_solve, triangular_solve, cholesky.

Matrices are the last two axes, and leading axes are batches. Each declaration has a type rule, a
reference function (NumPy, BLAS or LAPACK), and derivative and batching rules. The kernels are in
`compiler/library/products/` and `compiler/library/linalg/`. The module also contains helpers for
rules of other matrix ops, such as `matmul` and `triangle`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from accnp.errors import IncompatibleShapesError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Linear, Lowering, o
from accnp.primitives.kinds import bilinear_jvp, dtype_kind, full, opaque, weak_as_operands
from accnp.primitives.lapack_calls import (
    batched,
    fortran_routine,
    inexact,
    lapack_dtype,
    routine,
    square,
)
from accnp.primitives.reference import quiet

if TYPE_CHECKING:
    from accnp.ir.op_types import Batched, Operand, Params

__all__ = ["batched_identity", "matmul", "matrix_t", "triangle"]

if TYPE_CHECKING:
    Axes = Sequence[int]
    # Contracted axes of both operands, then batch axes of both.
    DotDimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]

    class _Triangular(TypedDict):
        """The static parameters of `triangular_solve`."""

        left_side: bool
        lower: bool
        transpose_a: bool
        conjugate_a: bool
        unit_diagonal: bool


# --- dot_general ---------------------------------------------------------------------------------


def _free_axes(rank: int, *used: Sequence[int]) -> list[int]:
    used_axes = {d for group in used for d in group}
    return [d for d in range(rank) if d not in used_axes]


def _dot_infer(
    a: Aval,
    b: Aval,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: object,
    preferred_element_type: np.dtype | None,
) -> Aval:
    (ac, bc), (ab, bb) = dimension_numbers
    for what, x, y in (("contracting", ac, bc), ("lhs batch dimensions and rhs batch", ab, bb)):
        sizes = tuple(a.shape[d] for d in x), tuple(b.shape[d] for d in y)
        if sizes[0] != sizes[1]:
            raise IncompatibleShapesError(
                f"dot_general requires {what} dimensions to have the same shape, got {sizes[0]} "
                f"and {sizes[1]} for shapes {a.shape} and {b.shape}; transpose or cut one"
            )
    dtype = preferred_element_type
    if dtype is None:
        if a.dtype != b.dtype:
            raise TypeError(
                "lax.dot_general requires arguments of the same dtype or preferred_element_type; "
                f"got {a.dtype.name} and {b.dtype.name}"
            )
        dtype = a.dtype
    shape = (
        *[a.shape[d] for d in ab],
        *[a.shape[d] for d in _free_axes(a.ndim, ac, ab)],
        *[b.shape[d] for d in _free_axes(b.ndim, bc, bb)],
    )
    return make_aval(shape, np.dtype(dtype), a.weak_type and b.weak_type)


def _compute_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the sums: float32 for half precision."""
    if dtype_kind(dtype) == "f" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return dtype


def _dot_numpy(
    a: np.ndarray,
    b: np.ndarray,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: object,
    preferred_element_type: np.dtype | None,
) -> np.ndarray:
    (ac, bc), (ab, bb) = dimension_numbers
    out = np.dtype(preferred_element_type or a.dtype)
    work = _compute_dtype(out)
    a, b = (x if x.dtype == work else x.astype(work) for x in (a, b))
    af, bf = _free_axes(a.ndim, ac, ab), _free_axes(b.ndim, bc, bb)
    batch = [a.shape[d] for d in ab]
    shape = (*batch, *[a.shape[d] for d in af], *[b.shape[d] for d in bf])
    k = prod(a.shape[d] for d in ac)
    # BLAS accepts transposed matrices, so only reshapes of several axes may copy.
    left = a.transpose(*ab, *af, *ac)
    right = b.transpose(*bb, *bc, *bf)
    if len(af) != 1 or len(ac) != 1:
        left = left.reshape(*batch, prod(a.shape[d] for d in af), k)
    if len(bf) != 1 or len(bc) != 1:
        right = right.reshape(*batch, k, prod(b.shape[d] for d in bf))
    y = np.multiply(left, right) if k == 1 and not ac else np.matmul(left, right)
    return y.reshape(shape).astype(out, copy=False)


def dot(
    a: Node,
    b: Node,
    contract: tuple[Axes, Axes],
    batch: tuple[Axes, Axes] = ((), ()),
    dtype: np.dtype | None = None,
    p: Params | None = None,
) -> Node:
    """Record a `dot_general`."""
    dims = tuple(tuple(tuple(int(d) for d in g) for g in pair) for pair in (contract, batch))
    return o.dot_general(
        a,
        b,
        dimension_numbers=dims,
        precision=None if p is None else p["precision"],
        preferred_element_type=np.dtype(dtype or a.aval.dtype),
    )


def _dot_transpose_one(
    ct: Node, x: Operand, y: Operand, dims: DotDimensionNumbers, first: bool, p: Params
) -> Node:
    """Return the cotangent of operand x (the first or second one), given the other operand y."""
    assert isinstance(y, Node)
    (xc, yc), (xb, yb) = dims
    x_kept, y_kept = _free_axes(x.aval.ndim, xc, xb), _free_axes(y.aval.ndim, yc, yb)
    nb = len(xb)
    ct_y = [nb + len(x_kept) + i for i in range(len(y_kept))]
    if not first:
        ct_y = [nb + i for i in range(len(y_kept))]
    own = x.aval.dtype
    kinds = ct.aval.dtype, y.aval.dtype
    whole = dtype_kind(own) != "c" and "c" in map(dtype_kind, kinds)  # take the real part
    out = dot(ct, y, (ct_y, y_kept), (range(nb), yb), np.result_type(*kinds) if whole else own, p)
    if whole:
        out = o.convert_element_type(o.real(out), new_dtype=own, weak_type=False)
    by_y: list[int] = [xc[i] for i in np.argsort(yc)] if yc else []
    order = np.argsort([*xb, *x_kept, *by_y])
    if list(order) == list(range(x.aval.ndim)):
        return out
    return o.transpose(out, permutation=tuple(int(d) for d in order))


def _dot_transpose(
    ct: Node, a: Operand, b: Operand, *, dimension_numbers: DotDimensionNumbers, **p: object
) -> tuple[Node, None] | tuple[None, Node]:
    (ac, bc), (ab, bb) = dimension_numbers
    if isinstance(a, Linear):
        return _dot_transpose_one(ct, a, b, ((ac, bc), (ab, bb)), True, p), None
    return None, _dot_transpose_one(ct, b, a, ((bc, ac), (bb, ab)), False, p)


def _shift_dims(dims: Axes) -> tuple[int, ...]:
    return tuple([d + 1 for d in dims])


def _dot_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
) -> tuple[Node, bool]:
    (ac, bc), (ab, bb) = p["dimension_numbers"]
    a, b = xs
    if batched[0] and batched[1]:
        dims = ((_shift_dims(ac), _shift_dims(bc)), ((0, *_shift_dims(ab)), (0, *_shift_dims(bb))))
        return o.dot_general(a, b, **{**p, "dimension_numbers": dims}), True
    if batched[0]:
        dims = ((_shift_dims(ac), bc), (_shift_dims(ab), bb))
        at = len(ab)
    else:
        dims = ((ac, _shift_dims(bc)), (ab, _shift_dims(bb)))
        at = a.aval.ndim - len(ac)
    out = o.dot_general(a, b, **{**p, "dimension_numbers": dims})
    if at == 0:
        return out, True
    order = (at, *[d for d in range(out.aval.ndim) if d != at])
    return o.transpose(out, permutation=order), True


def _show_dot(p: Params) -> Params:
    (ac, bc), (ab, bb) = p["dimension_numbers"]
    shown: dict[str, Any] = {
        "dimension_numbers": (([*ac], [*bc]), ([*ab], [*bb])),
        "preferred_element_type": p["preferred_element_type"],
    }
    if p["precision"] is not None:
        shown["precision"] = p["precision"]
    return shown


opaque(
    "dot_general",
    lowering=Lowering("products.dot_general.dot_general", gpu="cupy.calls.product"),
    infer=_dot_infer,
    numpy=quiet(_dot_numpy),
    jvp=bilinear_jvp("dot_general"),
    transpose=_dot_transpose,
    batch=_dot_batch,
    halves="own",
    contraction=True,
    dots_saveable=True,
    float0=False,
    makes_nan=True,
    show=_show_dot,
    sharding="contraction",
)


# --- helpers for rules ---------------------------------------------------------------------------


def matrix_t(x: Node, conjugate: bool = False) -> Node:
    """Swap the last two axes (and conjugate complex values)."""
    n = x.aval.ndim
    x = o.transpose(x, permutation=(*range(n - 2), n - 1, n - 2))
    return o.conj(x) if conjugate and x.aval.dtype.kind == "c" else x


def matmul(a: Node, b: Node) -> Node:
    """Multiply matrices that have equal batch axes."""
    n = a.aval.ndim
    outer = tuple(range(n - 2))
    return dot(a, b, ((n - 1,), (n - 2,)), (outer, outer))


def triangle(x: Node, k: int = 0, upper: bool = False) -> Node:
    """Keep the lower (or upper) triangle of the last two axes."""
    shape, kind = x.aval.shape, np.dtype(np.int32)
    rank = len(shape)
    row = o.iota(dtype=kind, shape=shape, dimension=rank - 2)
    col = o.iota(dtype=kind, shape=shape, dimension=rank - 1)
    row = o.add(row, full((), k, kind)) if k else row
    keep = (o.le if upper else o.ge)(row, col)
    return o.select_n(keep, full(shape, 0, x.aval.dtype, x.aval.weak_type), x)


def batched_identity(x: Aval) -> Node:
    """Return an identity matrix for each matrix in an aval's last two axes."""
    shape, kind = x.shape, np.dtype(np.int32)
    row = o.iota(dtype=kind, shape=shape, dimension=len(shape) - 2)
    col = o.iota(dtype=kind, shape=shape, dimension=len(shape) - 1)
    return o.convert_element_type(o.eq(row, col), new_dtype=x.dtype, weak_type=False)


def map_matrices(fn: Callable[..., np.ndarray], *xs: np.ndarray) -> np.ndarray:
    """Apply a function of matrices to each element of the batch axes; there is at least one."""
    outer = xs[0].shape[:-2]
    flat = [x.reshape(-1, *x.shape[-2:]) for x in xs]
    out = [fn(*parts) for parts in zip(*flat, strict=True)]
    return np.stack(out).reshape(*outer, *out[0].shape)


def _solve_batch(name: str) -> Callable[..., Batched]:
    """Return the batching rule of a linear system: if all examples have the same matrix, their
    right sides become columns of one right side (or rows, if the matrix is on the right)."""
    general = batched(name)

    def batch(size: int, xs: Sequence[Node], flags: Sequence[bool], p: Params) -> Batched:
        if flags[0]:
            return general(size, xs, flags, p)
        a, b = xs
        rank = b.aval.ndim
        at = rank - 2 if p.get("left_side", True) else rank - 3
        # Move the batch axis from the front to before the columns, or before the rows.
        b = o.transpose(b, permutation=(*range(1, at + 1), 0, *range(at + 1, rank)))
        shape = b.aval.shape
        flat = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
        out = getattr(o, name)(a, o.reshape(b, new_sizes=flat, dimensions=None), **p)
        out = o.reshape(out, new_sizes=shape, dimensions=None)
        return o.transpose(out, permutation=(at, *range(at), *range(at + 1, rank))), True

    return batch


# --- linear_solve: x with a @ x = b --------------------------------------------------------------


@weak_as_operands
def _solve_infer(a: Aval, b: Aval) -> Aval:
    square("solve", a)
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1] or a.dtype != b.dtype:
        raise ValueError(
            f"solve: right sides need as many rows as the matrices; got shapes {a.shape} "
            f"and {b.shape}; transpose or cut one"
        )
    return make_aval(b.shape, b.dtype)


def _solve_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    work = lapack_dtype(a.dtype)
    a, b = a.astype(work), b.astype(work)
    if not a.size or not b.size:
        return np.zeros(b.shape, b.dtype)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return map_matrices(_solve_one, a, b)


def _solve_one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve with a singular matrix; dividing by zero pivots gives inf or nan."""
    factors, pivots, _ = routine("getrf", "getrf", a)(a)
    return routine("getrs", "getrs", a)(factors, pivots, b)[0]


def _solve_transpose(ct: Node, a: Node, b: Operand) -> tuple[None, Node]:
    return None, o.linear_solve(matrix_t(a), ct)


opaque(
    "linear_solve",
    lowering=Lowering(
        "linalg.lowering.linear_solve", "linalg.block_factors.solve", "cupy.calls.solve"
    ),
    infer=_solve_infer,
    numpy=quiet(_solve_numpy),
    jvp=(
        lambda t, y, a, b: o.neg(o.linear_solve(a, matmul(t, y))),
        lambda t, y, a, b: o.linear_solve(a, t),
    ),
    transpose=_solve_transpose,
    batch=_solve_batch("linear_solve"),
    makes_nan=True,
)


# --- triangular_solve ----------------------------------------------------------------------------


@weak_as_operands
def _tri_infer(a: Aval, b: Aval, **p: Unpack[_Triangular]) -> Aval:
    inexact("triangular_solve", "22", a, b)
    square("triangular_solve", a)
    if b.shape[-2 if p["left_side"] else -1] != a.shape[-1]:
        raise ValueError(
            "triangular_solve: right sides need as many rows as the matrices; got "
            f"{a.shape} and {b.shape}; transpose or cut one"
        )
    return make_aval(b.shape, b.dtype)


def _tri_numpy(
    a: np.ndarray,
    b: np.ndarray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> np.ndarray:
    work = lapack_dtype(a.dtype)
    a, b = a.astype(work), b.astype(work)
    if not b.size:
        return b

    trsm = fortran_routine("_fblas", "trsm", work)

    def one(m: np.ndarray, v: np.ndarray) -> np.ndarray:
        m = m.conj() if conjugate_a else m
        how = {"side": not left_side, "lower": lower, "trans_a": transpose_a}
        return trsm(1.0, m, v, **how, diag=unit_diagonal)

    return map_matrices(one, a, b)


def _tri_wrt_a(t: Node, y: Node, a: Node, b: Node, **p: Unpack[_Triangular]) -> Node:
    k = -1 if p["unit_diagonal"] else 0
    t = triangle(t, k, False) if p["lower"] else triangle(t, -k, True)
    t = matrix_t(t) if p["transpose_a"] else t
    t = o.conj(t) if p["conjugate_a"] and t.aval.dtype.kind == "c" else t
    right = matmul(t, y) if p["left_side"] else matmul(y, t)
    return o.neg(o.triangular_solve(a, right, **p))


def _tri_wrt_b(t: Node, y: Node, a: Node, b: Node, **p: Unpack[_Triangular]) -> Node:
    return o.triangular_solve(a, t, **p)


def _tri_transpose(ct: Node, a: Operand, b: Operand, **p: Unpack[_Triangular]) -> tuple[None, Node]:
    return None, o.triangular_solve(a, ct, **{**p, "transpose_a": not p["transpose_a"]})


opaque(
    "triangular_solve",
    lowering=Lowering(
        "linalg.lowering.triangular_solve",
        "linalg.block_factors.triangular_solve",
        "cupy.calls.triangular_solve",
    ),
    infer=_tri_infer,
    numpy=quiet(_tri_numpy),
    jvp=(_tri_wrt_a, _tri_wrt_b),
    transpose=_tri_transpose,
    batch=_solve_batch("triangular_solve"),
)


def solve_lower(a: Node, b: Node, transpose: bool = False, left: bool = True) -> Node:
    """Solve with a lower triangular matrix; `transpose` solves with its conjugate transpose."""
    return o.triangular_solve(
        a,
        b,
        left_side=left,
        lower=True,
        transpose_a=transpose,
        conjugate_a=transpose and a.aval.dtype.kind == "c",
        unit_diagonal=False,
    )


# --- cholesky ------------------------------------------------------------------------------------


@weak_as_operands
def _cholesky_infer(a: Aval) -> Aval:
    square("cholesky", a)
    return make_aval(a.shape, a.dtype)


def _cholesky_numpy(a: np.ndarray) -> np.ndarray:
    work = lapack_dtype(a.dtype)
    a = a.astype(work)
    if not a.size:
        return a
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return map_matrices(_cholesky_one, a)


def _cholesky_one(a: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return np.tril(np.full(a.shape, np.nan, a.dtype))


def _cholesky_jvp(t: Node, y: Node, a: Node) -> Node:
    """Return y times the lower triangle of y^-1 t y^-H with its diagonal halved."""
    inner = solve_lower(y, t)
    inner = solve_lower(y, inner, transpose=True, left=False)
    half = full((), 0.5, a.aval.dtype)
    eye = batched_identity(a.aval)
    weight = o.sub(triangle(full(a.aval.shape, 1, a.aval.dtype)), o.mul(eye, half))
    return matmul(y, o.mul(inner, weight))


opaque(
    "cholesky",
    lowering=Lowering(
        "linalg.lowering.cholesky", "linalg.block_factors.cholesky", "cupy.calls.cholesky"
    ),
    infer=_cholesky_infer,
    numpy=quiet(_cholesky_numpy),
    jvp=(_cholesky_jvp,),
    batch=batched("cholesky"),
)
