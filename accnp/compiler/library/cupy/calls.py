"""Implementations of ops with a GPU array library (CuPy: cuBLAS, cuSOLVER, cuFFT, CUB).

Each function takes the library, its arrays, and the parameters of the op. It returns new arrays, or
None for operands that it does not support, which the reference function then handles.
The module is imported when a plan for a GPU first contains such an op. It uses no features that
only CuPy has, except where `_is_cupy` is true, so that tests can run it with NumPy.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable, Generator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, SupportsInt, TypeVar, cast

import numpy as np

from accnp.ir.kernel import is_half
from accnp.primitives.reference import ordered_bits

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from accnp.compiler.library.cupy.array_types import Array, ArrayLibrary, Arrays, BinaryFunction

__all__ = [
    "allows_tf32", "cholesky", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum",
    "det", "eigh", "fft", "lu", "product", "qr", "searchsorted", "slogdet", "solve",
    "sort", "svd", "top_k", "triangular_solve",
]  # fmt: skip

_F = TypeVar("_F", bound=Callable[..., object])
_Axes = Sequence[int]

MAX_SEQUENTIAL_SYSTEMS = 64  # maximum batch size for which large systems are solved one by one
MAX_SMALL_SYSTEM = 512  # maximum number of unknowns of a small system


def _mark_as_blocking(function: _F) -> _F:
    """Mark a function that reads results back from the GPU, so that the host waits for it."""
    cast("Any", function).waits = True
    return function


# Precisions for which float32 products may use TF32 (19 bits).
_TF32_PRECISIONS = (
    "default", "fastest", "high", "bfloat16", "tensorfloat32", "tf32_tf32_f32", "bf16_bf16_f32",
    "f16_f16_f32", "any_f8_any_f8_f32",
)  # fmt: skip


def _is_cupy(xp: ArrayLibrary) -> bool:
    return xp.__name__ == "cupy"


def allows_tf32(precision: object) -> bool:
    """Return whether a precision allows TF32 for products of float32."""
    if precision is None:
        return False
    each = cast("tuple[object, ...]", precision) if isinstance(precision, tuple) else (precision,)
    names = [str(getattr(p, "name", p)).lower() for p in each if p is not None]
    return all(name in _TF32_PRECISIONS for name in names)


@contextlib.contextmanager
def _precision(xp: ArrayLibrary, precision: object, small: bool = False) -> Generator[None]:
    """Allow TF32 for float32 products if a program requests less than full precision, or if `small`
    says that the operands had 16 bits, which TF32 represents exactly.

    This sets the mode of the thread's cuBLAS handle. CuPy's own switch (`set_compute_type`) applies
    to the whole process, and products of stacked matrices ignore it.
    """
    if not (small or allows_tf32(precision)) or not _is_cupy(xp):
        yield
        return
    cublas, handle = xp.cuda.cublas, xp.cuda.device.get_cublas_handle()
    before = cublas.getMathMode(handle)
    cublas.setMathMode(handle, cublas.CUBLAS_TF32_TENSOR_OP_MATH)
    try:
        yield
    finally:
        cublas.setMathMode(handle, before)


def _remaining_axes(rank: int, *used: Sequence[int]) -> list[int]:
    used_axes = {d for group in used for d in group}
    return [d for d in range(rank) if d not in used_axes]


def product(
    xp: ArrayLibrary,
    a: Array,
    b: Array,
    *,
    dimension_numbers: tuple[tuple[_Axes, _Axes], tuple[_Axes, _Axes]],
    precision: object,
    preferred_element_type: DTypeLike | None,
) -> Array:
    """Implement dot_general."""
    (ac, bc), (ab, bb) = dimension_numbers
    out = np.dtype(preferred_element_type or a.dtype)
    work = out
    small = all(is_half(x.dtype) for x in (a, b))
    # cuBLAS accumulates products of halves in float32, but CuPy 14 does not use it for stacks.
    if is_half(out) and (ab or not _is_cupy(xp)):
        work = np.dtype(np.float32)
    a, b = (x if x.dtype == work else x.astype(work) for x in (a, b))
    af, bf = _remaining_axes(a.ndim, ac, ab), _remaining_axes(b.ndim, bc, bb)
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


# --- factorizations and systems ------------------------------------------------------------------


def _raise_failures(xp: ArrayLibrary) -> contextlib.AbstractContextManager[object]:
    """Make failures raise as in NumPy; CuPy leaves them in the result otherwise."""
    if not _is_cupy(xp):
        return contextlib.nullcontext()
    return importlib.import_module("cupyx").errstate(linalg="raise")


def _has_lapack(*xs: Array) -> bool:
    return all(x.dtype.char in "fdFD" and x.size for x in xs)


@_mark_as_blocking
def cholesky(xp: ArrayLibrary, a: Array) -> Array | None:
    """Implement cholesky; the reference handles matrices that are not positive definite."""
    if not _has_lapack(a):
        return None
    try:
        with _raise_failures(xp):
            return xp.tril(xp.linalg.cholesky(a))
    except np.linalg.LinAlgError:
        return None  # a matrix of the batch failed; the reference function determines which


def det(xp: ArrayLibrary, a: Array) -> Array | None:
    """Implement det."""
    return xp.linalg.det(a) if _has_lapack(a) else None


def slogdet(xp: ArrayLibrary, a: Array) -> Arrays | None:
    """Implement slogdet: signs, then logarithms."""
    return tuple(xp.linalg.slogdet(a)) if _has_lapack(a) else None


@_mark_as_blocking
def solve(xp: ArrayLibrary, a: Array, b: Array) -> Array | None:
    """Implement linear_solve."""
    if not _has_lapack(a, b):
        return None
    try:
        with _raise_failures(xp):
            return xp.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return None


def triangular_solve(
    xp: ArrayLibrary, a: Array, b: Array, *, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit_diagonal: bool,
) -> Array | None:  # fmt: skip
    """Implement triangular_solve: small matrices as one batch, large ones one by one."""
    if not _has_lapack(a, b):
        return None
    if _is_cupy(xp):
        library = importlib.import_module("cupyx.scipy.linalg")
    else:
        library = importlib.import_module("scipy.linalg")
    m = a.conj() if conjugate_a else a
    # With the unknowns on the left, the transposed system has them on the right.
    right = b if left_side else b.swapaxes(-1, -2)
    options = {
        "lower": lower,
        "unit_diagonal": unit_diagonal,
        "trans": int(transpose_a == left_side),
    }
    count = prod(a.shape[:-2])
    try:
        if _is_cupy(xp) and (count > MAX_SEQUENTIAL_SYSTEMS or a.shape[-1] <= MAX_SMALL_SYSTEM):
            y = library.solve_triangular(m, right, **options)
            return y if left_side else y.swapaxes(-1, -2)
        solutions = xp.empty(b.shape, b.dtype)
        for i in np.ndindex(a.shape[:-2]):
            y = library.solve_triangular(m[i], right[i], **options, check_finite=False)
            solutions[i] = y if left_side else y.T
    except np.linalg.LinAlgError:
        return None
    return solutions


@_mark_as_blocking
def lu(xp: ArrayLibrary, a: Array) -> Arrays | None:
    """Implement lu: factors, pivots, and the row order. CuPy has no batched version and checks for
    failure after each matrix. The host, which has waited by then, computes the order, because one
    GPU thread takes longer for sequential exchanges."""
    if not _has_lapack(a):
        return None
    if _is_cupy(xp):
        library = importlib.import_module("cupyx.scipy.linalg")
    else:
        library = importlib.import_module("scipy.linalg")
    *outer, m, n = a.shape
    factors, pivots = xp.empty(a.shape, a.dtype), xp.empty((*outer, min(m, n)), np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about pivots that are 0
        for i in np.ndindex(*outer):
            factors[i], pivots[i] = library.lu_factor(a[i], check_finite=False)
    order = np.empty((*outer, m), np.int32)
    pivot_rows = pivots.reshape(-1, min(m, n)).tolist()
    for matrix_order, exchanges in zip(order.reshape(-1, m), pivot_rows, strict=True):
        rows = list(range(m))
        for i, j in enumerate(exchanges):
            rows[i], rows[j] = rows[j], rows[i]
        matrix_order[:] = rows
    return factors, pivots, xp.asarray(order)


def qr(
    xp: ArrayLibrary, a: Array, *, pivoting: bool, full_matrices: bool, use_magma: object
) -> Arrays | None:
    """Implement qr without column pivoting."""
    if pivoting or not _has_lapack(a):
        return None
    return tuple(xp.linalg.qr(a, mode="complete" if full_matrices else "reduced"))


def svd(
    xp: ArrayLibrary,
    a: Array,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: object,
    algorithm: object,
) -> Arrays | None:
    """Implement svd: singular values, then both matrices if they are requested."""
    if subset_by_index is not None or not _has_lapack(a):
        return None
    if not compute_uv:
        return (xp.linalg.svd(a, compute_uv=False),)
    u, s, vh = xp.linalg.svd(a, full_matrices=full_matrices)
    return s, u, vh


def eigh(
    xp: ArrayLibrary, a: Array, *, lower: bool, subset_by_index: object, **_: object
) -> Arrays | None:
    """Implement eigh: eigenvectors, then eigenvalues."""
    if subset_by_index is not None or not _has_lapack(a):
        return None
    w, v = xp.linalg.eigh(a, "L" if lower else "U")
    return v, w


# --- Fourier transforms --------------------------------------------------------------------------


def fft(
    xp: ArrayLibrary, x: Array, *, fft_type: SupportsInt, fft_lengths: tuple[int, ...]
) -> Array | None:
    """Implement fft over the last axes."""
    if not x.size or not prod(fft_lengths):
        return None
    name = ("fftn", "ifftn", "rfftn", "irfftn")[int(fft_type)]
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    return getattr(xp.fft, name)(x, fft_lengths, axes)


# --- sorting, searching, cumulative reductions ---------------------------------------------------


def _sort_keys(xp: ArrayLibrary, x: Array) -> Array:
    """Return integers that sort like the elements of x: zeros are equal, and NaNs come last. CuPy's
    own kernels treat subnormal numbers as zeros."""
    if x.dtype.kind != "f":
        return x
    bits = xp.ascontiguousarray(x).view(f"i{x.itemsize}")
    info = np.iinfo(bits.dtype)
    bits = xp.where(bits == info.min, bits.dtype.type(0), bits)
    keys = ordered_bits(bits)
    infinite = int(np.array(np.inf, x.dtype).view(bits.dtype))
    return xp.where((bits & bits.dtype.type(info.max)) > infinite, bits.dtype.type(info.max), keys)


def _order(xp: ArrayLibrary, keys: Sequence[Array], axis: int) -> Array:
    """Return the stable order by several keys, the first of which is the most significant."""
    order: Array | None = None
    for key in reversed(keys):
        key = _sort_keys(xp, key)
        if order is not None:
            key = xp.take_along_axis(key, order, axis)
        by_key = xp.argsort(key, axis=axis, kind="stable")
        order = by_key if order is None else xp.take_along_axis(order, by_key, axis)
    assert order is not None
    return order


def sort(
    xp: ArrayLibrary, *xs: Array, dimension: int, is_stable: bool, num_keys: int
) -> Array | Arrays | None:
    """Implement sort of several operands by the first `num_keys` of them."""
    keys = xs[:num_keys]
    if not xs[0].size or any(k.dtype.kind not in "biuf" for k in keys):
        return None
    if len(xs) == 1:
        return xp.sort(xs[0], axis=dimension)
    order = _order(xp, keys, dimension)
    return tuple([xp.take_along_axis(x, order, dimension) for x in xs])


def top_k(xp: ArrayLibrary, x: Array, *, k: int, axis: int) -> Arrays | None:
    """Implement top_k; for ties, the lower index comes first."""
    if not x.size or x.dtype.kind not in "biuf":
        return None
    n, key = x.shape[axis], x
    if x.dtype.kind == "f":  # total order of the bits
        key = ordered_bits(xp.ascontiguousarray(x).view(f"i{x.itemsize}"))
    ascending = _order(xp, [xp.flip(key, axis)], axis)  # of ties, the last element of x first
    index = xp.take(n - 1 - xp.flip(ascending, axis), xp.arange(k), axis=axis)
    return xp.take_along_axis(x, index, axis), index.astype(np.int32)


def searchsorted(xp: ArrayLibrary, a: Array, v: Array, *, side: str) -> Array | None:
    """Implement searchsorted, for one sorted vector or one for each row."""
    if a.dtype.kind not in "biuf":
        return None
    if a.ndim > 1:
        out = xp.empty(v.shape, np.int32)
        for row in np.ndindex(a.shape[:-1]):
            indices = searchsorted(xp, a[row], v[row], side=side)
            assert indices is not None
            out[row] = indices
        return out
    return xp.searchsorted(_sort_keys(xp, a), _sort_keys(xp, v), side=side).astype(np.int32)


def cumsum(xp: ArrayLibrary, x: Array, *, axis: int, reverse: bool = False) -> Array | None:
    """Implement cumsum in CUB's order, which depends on the shape only."""
    return _cumulative(xp, xp.cumsum, x, axis, reverse)


def cumprod(xp: ArrayLibrary, x: Array, *, axis: int, reverse: bool = False) -> Array | None:
    """Implement cumprod in float64: CUB multiplies intermediate products, which may over- or
    underflow even if the prefixes do not."""
    accumulator = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype)
    return _cumulative(xp, xp.cumprod, x, axis, reverse, accumulator)


def _cumulative(
    xp: ArrayLibrary,
    accumulate: Callable[..., Array],
    x: Array,
    axis: int,
    reverse: bool,
    accumulator: DTypeLike | None = None,
) -> Array | None:
    if not x.size or x.dtype.kind not in "iufc" or x.dtype.itemsize < 4:
        return None
    y = accumulate(xp.flip(x, axis) if reverse else x, axis=axis, dtype=accumulator or x.dtype)
    y = y.astype(x.dtype, copy=False)
    return xp.flip(y, axis) if reverse else y


def cummax(xp: ArrayLibrary, x: Array, *, axis: int, reverse: bool = False) -> Array:
    """Implement cummax."""
    return _cumulative_extreme(xp, True, x, axis, reverse)


def cummin(xp: ArrayLibrary, x: Array, *, axis: int, reverse: bool = False) -> Array:
    """Implement cummin."""
    return _cumulative_extreme(xp, False, x, axis, reverse)


def _cumulative_extreme(
    xp: ArrayLibrary, largest: bool, x: Array, axis: int, reverse: bool
) -> Array:
    """Compute extremes of float32 as those of integers in the order of bits, with NaN as the best
    value; CuPy's own kernels treat subnormal numbers as zeros."""
    combine = xp.maximum if largest else xp.minimum
    if x.dtype != np.float32:
        return _prefixes_by_doubling(xp, combine, x, axis, reverse)
    bits, most = xp.ascontiguousarray(x).view(np.int32), np.int32(np.iinfo(np.int32).max)
    best = most if largest else ~most
    is_nan = (bits & most) > np.float32(np.inf).view(np.int32)
    keys = xp.where(is_nan, best, ordered_bits(bits))
    keys = _prefixes_by_doubling(xp, combine, keys, axis, reverse)
    return xp.ascontiguousarray(ordered_bits(keys)).view(np.float32)


def cumlogsumexp(xp: ArrayLibrary, x: Array, *, axis: int, reverse: bool = False) -> Array:
    """Implement cumlogsumexp in float64."""
    return _prefixes_by_doubling(xp, xp.logaddexp, x.astype(np.float64), axis, reverse).astype(
        x.dtype
    )


def _prefixes_by_doubling(
    xp: ArrayLibrary, combine: BinaryFunction, x: Array, axis: int, reverse: bool
) -> Array:
    """Compute prefixes in steps of 1, 2, 4, ... positions, each of which processes all elements in
    parallel (Hillis, Steele: Data parallel algorithms, 1986)."""
    y, step, n = x.swapaxes(axis, -1), 1, x.shape[axis]
    while step < n:
        first, rest = slice(step), slice(step, None)
        before, after = slice(-step), slice(-step, None)
        fresh = xp.empty(y.shape, y.dtype)
        if reverse:
            fresh[..., after] = y[..., after]
            fresh[..., before] = combine(y[..., rest], y[..., before])
        else:
            fresh[..., first] = y[..., first]
            fresh[..., rest] = combine(y[..., before], y[..., rest])
        y, step = fresh, 2 * step
    return y.swapaxes(axis, -1)
