"""Operations by functions of an array library on a GPU (CuPy: cuBLAS, cuSOLVER, cuFFT, CUB).

In: the library and its arrays. Out: fresh arrays of it; None for what a function does not do. This
module is loaded when a plan for a GPU first has such an operation. Nothing here is CuPy's alone, so
that the tests run it with NumPy.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.ir.kernel import is_half

__all__ = [
    "cholesky", "coarse", "cumlogsumexp", "cummax", "cummin", "cumprod",
    "cumsum", "det", "eigh", "fft", "lu", "product", "qr", "searchsorted", "slogdet", "solve",
    "sort", "svd", "top_k", "triangular_solve",
]  # fmt: skip

MATRICES = 64  # systems of a batch up to which large ones are solved one by one
SMALL = 512  # unknowns of a system from which it is large


def _waits(function: Any) -> Any:
    """Mark a function that looks at what the GPU said: the host waits for it."""
    function.waits = True
    return function


# Precisions that allow sums of products of 19 bits (TF32) for float32.
_COARSE = (
    "default", "fastest", "high", "bfloat16", "tensorfloat32", "tf32_tf32_f32", "bf16_bf16_f32",
    "f16_f16_f32", "any_f8_any_f8_f32",
)  # fmt: skip


def _is_cupy(xp: Any) -> bool:
    return xp.__name__ == "cupy"


def coarse(wanted: Any) -> bool:
    """Whether a precision allows products of float32 made of TF32."""
    both = wanted if isinstance(wanted, tuple) else (wanted,)
    named = [str(getattr(p, "name", p)).lower() for p in both if p is not None]
    return wanted is not None and all(name in _COARSE for name in named)


@contextlib.contextmanager
def _precision(xp: Any, wanted: Any, small: bool = False) -> Iterator[None]:
    """Let float32 products be made of TF32 where a program asks for less than full precision, or
    where `small` says that the operands were of 16 bits, which TF32 holds as they are.

    The mode is one of the thread's handle of cuBLAS: CuPy's own switch (`set_compute_type`) is the
    whole process's, and stacks of matrices do not look at it.
    """
    if not (small or coarse(wanted)) or not _is_cupy(xp):
        yield
        return
    cublas, handle = xp.cuda.cublas, xp.cuda.device.get_cublas_handle()
    before = cublas.getMathMode(handle)
    cublas.setMathMode(handle, cublas.CUBLAS_TF32_TENSOR_OP_MATH)
    try:
        yield
    finally:
        cublas.setMathMode(handle, before)


def _rest(rank: int, *used: Sequence[int]) -> list[int]:
    taken = {d for group in used for d in group}
    return [d for d in range(rank) if d not in taken]


def product(
    xp: Any, a: Any, b: Any, *, dimension_numbers: Any, precision: Any, preferred_element_type: Any
) -> Any:
    """dot_general."""
    (ac, bc), (ab, bb) = dimension_numbers
    out = np.dtype(preferred_element_type or a.dtype)
    work = out
    small = all(is_half(x.dtype) for x in (a, b))
    # cuBLAS adds products of halves up in float32 by itself, but CuPy 14 gives it no stacks of them
    if is_half(out) and (ab or not _is_cupy(xp)):
        work = np.dtype(np.float32)
    a, b = (x if x.dtype == work else x.astype(work) for x in (a, b))
    af, bf = _rest(a.ndim, ac, ab), _rest(b.ndim, bc, bb)
    batch = [a.shape[d] for d in ab]
    shape = (*batch, *[a.shape[d] for d in af], *[b.shape[d] for d in bf])
    k = prod([a.shape[d] for d in ac])
    if not prod(shape) or not k:
        return xp.zeros(shape, out)
    left = a.transpose(*ab, *af, *ac).reshape(*batch, prod([a.shape[d] for d in af]), k)
    right = b.transpose(*bb, *bc, *bf).reshape(*batch, k, prod([b.shape[d] for d in bf]))
    with _precision(xp, precision, small and work == np.float32):
        y = xp.matmul(left, right)
    return y.reshape(shape).astype(out, copy=False)


# --- factorisations and systems ------------------------------------------------------------------


def _strict(xp: Any) -> Any:
    """Let failures be errors, as they are in NumPy: CuPy leaves them in the result otherwise."""
    if not _is_cupy(xp):
        return contextlib.nullcontext()
    return importlib.import_module("cupyx").errstate(linalg="raise")


def _lapack(*xs: Any) -> bool:
    return all(x.dtype.char in "fdFD" and x.size for x in xs)


@_waits
def cholesky(xp: Any, a: Any) -> Any:
    """cholesky; matrices that are not positive definite give nan."""
    if not _lapack(a):
        return None
    try:
        with _strict(xp):
            return xp.tril(xp.linalg.cholesky(a))
    except np.linalg.LinAlgError:
        return None  # some matrix of a batch: the reference knows which


def det(xp: Any, a: Any) -> Any:
    """det."""
    return xp.linalg.det(a) if _lapack(a) else None


def slogdet(xp: Any, a: Any) -> Any:
    """slogdet: signs, then logarithms."""
    return tuple(xp.linalg.slogdet(a)) if _lapack(a) else None


@_waits
def solve(xp: Any, a: Any, b: Any) -> Any:
    """linear_solve."""
    if not _lapack(a, b):
        return None
    try:
        with _strict(xp):
            return xp.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return None


def triangular_solve(
    xp: Any, a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit_diagonal: bool,
) -> Any:  # fmt: skip
    """triangular_solve: small matrices of a batch at once, large ones one after the other."""
    if not _lapack(a, b):
        return None
    library = importlib.import_module("cupyx.scipy.linalg" if _is_cupy(xp) else "scipy.linalg")
    m = a.conj() if conjugate_a else a
    # With the unknowns on the left, the transpose of the system has them on the right.
    right = b if left_side else b.swapaxes(-1, -2)
    how = {"lower": lower, "unit_diagonal": unit_diagonal, "trans": int(transpose_a == left_side)}
    count = prod(a.shape[:-2])
    try:
        if _is_cupy(xp) and (count > MATRICES or a.shape[-1] <= SMALL):
            y = library.solve_triangular(m, right, **how)
            return y if left_side else y.swapaxes(-1, -2)
        found = xp.empty(b.shape, b.dtype)
        for i in np.ndindex(a.shape[:-2]):
            y = library.solve_triangular(m[i], right[i], **how, check_finite=False)
            found[i] = y if left_side else y.T
    except np.linalg.LinAlgError:
        return None
    return found


@_waits
def lu(xp: Any, a: Any) -> Any:
    """lu: factors, pivots, and the order of rows that they make. CuPy has no stacks of these, and
    looks after each whether it failed; the order is made by the host, which has waited by then: one
    thread of a GPU takes longer for exchanges that come one after the other."""
    if not _lapack(a):
        return None
    library = importlib.import_module("cupyx.scipy.linalg" if _is_cupy(xp) else "scipy.linalg")
    *outer, m, n = a.shape
    factors, pivots = xp.empty(a.shape, a.dtype), xp.empty((*outer, min(m, n)), np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of pivots that are 0
        for i in np.ndindex(*outer):
            factors[i], pivots[i] = library.lu_factor(a[i], check_finite=False)
    order = np.empty((*outer, m), np.int32)
    for found, given in zip(
        order.reshape(-1, m), pivots.reshape(-1, min(m, n)).tolist(), strict=True
    ):
        rows = list(range(m))
        for i, j in enumerate(given):
            rows[i], rows[j] = rows[j], rows[i]
        found[:] = rows
    return factors, pivots, xp.asarray(order)


def qr(xp: Any, a: Any, *, pivoting: bool, full_matrices: bool, use_magma: Any) -> Any:
    """qr without exchanges of columns."""
    if pivoting or not _lapack(a):
        return None
    return tuple(xp.linalg.qr(a, mode="complete" if full_matrices else "reduced"))


def svd(
    xp: Any, a: Any, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any
) -> Any:
    """svd: values, then both matrices if they are wanted."""
    if subset_by_index is not None or not _lapack(a):
        return None
    if not compute_uv:
        return (xp.linalg.svd(a, compute_uv=False),)
    u, s, vh = xp.linalg.svd(a, full_matrices=full_matrices)
    return s, u, vh


def eigh(xp: Any, a: Any, *, lower: bool, subset_by_index: Any, **_: Any) -> Any:
    """eigh: vectors, then values."""
    if subset_by_index is not None or not _lapack(a):
        return None
    w, v = xp.linalg.eigh(a, "L" if lower else "U")
    return v, w


# --- Fourier transforms --------------------------------------------------------------------------


def fft(xp: Any, x: Any, *, fft_type: Any, fft_lengths: tuple[int, ...]) -> Any:
    """fft over the last axes."""
    if not x.size or not prod(fft_lengths):
        return None
    name = ("fftn", "ifftn", "rfftn", "irfftn")[int(fft_type)]
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    return getattr(xp.fft, name)(x, fft_lengths, axes)


# --- orders --------------------------------------------------------------------------------------


def _rank(xp: Any, x: Any) -> Any:
    """Integers in the order of floating numbers: zeros are equal, NaN come last. CuPy's own kernels
    take subnormal numbers for zeros."""
    if x.dtype.kind != "f":
        return x
    bits = xp.ascontiguousarray(x).view(f"i{x.itemsize}")
    info = np.iinfo(bits.dtype)
    bits = xp.where(bits == info.min, bits.dtype.type(0), bits)
    rank = bits ^ ((bits >> (info.bits - 1)) & bits.dtype.type(info.max))
    infinite = int(np.array(np.inf, x.dtype).view(bits.dtype))
    return xp.where((bits & bits.dtype.type(info.max)) > infinite, bits.dtype.type(info.max), rank)


def _order(xp: Any, keys: Sequence[Any], axis: int) -> Any:
    """The stable order by several keys, the first of which weighs most."""
    order: Any = None
    for key in reversed(keys):
        key = _rank(xp, key)
        seen = key if order is None else xp.take_along_axis(key, order, axis)
        step = xp.argsort(seen, axis=axis, kind="stable")
        order = step if order is None else xp.take_along_axis(order, step, axis)
    return order


def sort(xp: Any, *xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    """sort of several operands by the first of them."""
    keys = xs[:num_keys]
    if not xs[0].size or any(k.dtype.kind not in "biuf" for k in keys):
        return None
    if len(xs) == 1:
        return xp.sort(xs[0], axis=dimension)
    order = _order(xp, keys, dimension)
    return tuple([xp.take_along_axis(x, order, dimension) for x in xs])


def top_k(xp: Any, x: Any, *, k: int, axis: int) -> Any:
    """The largest k: of equal ones the first."""
    if not x.size or x.dtype.kind not in "biuf":
        return None
    n, key = x.shape[axis], x
    if x.dtype.kind == "f":  # the total order of bits
        bits = xp.ascontiguousarray(x).view(f"i{x.itemsize}")
        key = bits ^ ((bits >> (8 * x.itemsize - 1)) & np.iinfo(bits.dtype).max)
    back = _order(xp, [xp.flip(key, axis)], axis)
    index = xp.take(n - 1 - xp.flip(back, axis), xp.arange(k), axis=axis)
    return xp.take_along_axis(x, index, axis), index.astype(np.int32)


def searchsorted(xp: Any, a: Any, v: Any, *, side: str) -> Any:
    """Places in a sorted vector, or in that of each row."""
    if a.dtype.kind not in "biuf":
        return None
    if a.ndim > 1:
        out = xp.empty(v.shape, np.int32)
        for row in np.ndindex(a.shape[:-1]):
            out[row] = searchsorted(xp, a[row], v[row], side=side)
        return out
    return xp.searchsorted(_rank(xp, a), _rank(xp, v), side=side).astype(np.int32)


def cumsum(xp: Any, x: Any, *, axis: int, reverse: bool = False) -> Any:
    """Sums up to each element; in CUB's order, which depends on the shape alone."""
    return _running(xp, xp.cumsum, x, axis, reverse)


def cumprod(xp: Any, x: Any, *, axis: int, reverse: bool = False) -> Any:
    """Products up to each element, in double precision: CUB joins products of elements in between,
    which may overflow or vanish where those up to an element do not."""
    wide = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype)
    return _running(xp, xp.cumprod, x, axis, reverse, wide)


def _running(xp: Any, fold: Any, x: Any, axis: int, reverse: bool, wide: Any = None) -> Any:
    if not x.size or x.dtype.kind not in "iufc" or x.dtype.itemsize < 4:
        return None
    y = fold(xp.flip(x, axis) if reverse else x, axis=axis, dtype=wide or x.dtype)
    y = y.astype(x.dtype, copy=False)
    return xp.flip(y, axis) if reverse else y


def cummax(xp: Any, x: Any, *, axis: int, reverse: bool = False) -> Any:
    """Largest up to each element."""
    return _extreme(xp, True, x, axis, reverse)


def cummin(xp: Any, x: Any, *, axis: int, reverse: bool = False) -> Any:
    """Smallest up to each element."""
    return _extreme(xp, False, x, axis, reverse)


def _extreme(xp: Any, largest: bool, x: Any, axis: int, reverse: bool) -> Any:
    """Extremes of float32 as those of integers in the order of bits, with NaN at the better end:
    CuPy's own kernels take subnormal numbers for zeros."""
    join = xp.maximum if largest else xp.minimum
    if x.dtype != np.float32:
        return _doubled(xp, join, x, axis, reverse)
    bits, most = xp.ascontiguousarray(x).view(np.int32), np.int32(np.iinfo(np.int32).max)
    better = most if largest else ~most
    lost = (bits & most) > np.float32(np.inf).view(np.int32)
    keys = xp.where(lost, better, bits ^ ((bits >> 31) & most))
    keys = _doubled(xp, join, keys, axis, reverse)
    return xp.ascontiguousarray(keys ^ ((keys >> 31) & most)).view(np.float32)


def cumlogsumexp(xp: Any, x: Any, *, axis: int, reverse: bool = False) -> Any:
    """Logarithms of sums of exponentials up to each element."""
    return _doubled(xp, xp.logaddexp, x.astype(np.float64), axis, reverse).astype(x.dtype)


def _doubled(xp: Any, join: Any, x: Any, axis: int, reverse: bool) -> Any:
    """Running folds in steps of 1, 2, 4... places, each of which all elements do at once
    (Hillis, Steele: Data parallel algorithms, 1986)."""
    y, step, n = x.swapaxes(axis, -1), 1, x.shape[axis]
    while step < n:
        first, rest = slice(step), slice(step, None)
        before, after = slice(-step), slice(-step, None)
        fresh = xp.empty(y.shape, y.dtype)
        if reverse:
            fresh[..., after] = y[..., after]
            fresh[..., before] = join(y[..., rest], y[..., before])
        else:
            fresh[..., first] = y[..., first]
            fresh[..., rest] = join(y[..., before], y[..., rest])
        y, step = fresh, 2 * step
    return y.swapaxes(axis, -1)
