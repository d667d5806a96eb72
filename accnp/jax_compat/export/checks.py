"""Checks of deserialized programs before they are recorded.

Programs come from untrusted bytes. The rules by which ops infer types (`Op.infer`) trust the
parameters that functions of this package pass, so every parameter is checked first: its type, and
that axes, sizes and windows are within the operands, since kernels do not check bounds again.
Invalid programs raise ValueError.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from accnp.dtypes.names import DTYPES, SMALL_FLOATS, SUB_INTS
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph
from accnp.ir.op import OPS, Op
from accnp.lax.enumerations import Precision
from accnp.numpy.fft.transforms import FftType
from accnp.primitives.convolution import ConvDimensionNumbers
from accnp.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from accnp.primitives.kinds import dtype_kind

__all__ = [
    "check_operation", "check_result", "dtype_of", "fixed_bools", "read_json", "reject", "require",
]  # fmt: skip

MOST_JSON = 64 << 20  # bytes; a program of 100,000 operations has some 10 MB
MOST_PARTS = 8 << 20  # lists and objects in it
MOST_DEPTH = 200  # of lists and objects; each loop within a loop has 6
MOST_AXES = 64  # as NumPy
MOST_BYTES = 1 << 48  # of an array: addresses have as many bits
_WORD = 1 << 31  # windows, strides and padding: their products fit into 64 bits
_NUMBER = 1 << 64

_KINDS = ("map", "view", "iota", "reduce", "assemble", "opaque", "barrier", "item")
_HOLDERS = ("reduce_precision",)


def reject(what: str) -> NoReturn:
    """Raise the error for bytes that hold no valid program."""
    raise ValueError(
        f"export.deserialize: the program is not valid: {what}; export the function again"
    )


def require(condition: object, what: str) -> None:
    """Raise the error for an invalid program unless a condition holds."""
    if not condition:
        reject(what)


def dtype_of(name: Any) -> np.dtype:
    """Return a dtype by its name, including those of ml_dtypes.

    Raises:
        ValueError: arrays cannot have it.
    """
    dtype = DTYPES.get(name) if isinstance(name, str) else None
    if dtype is None:
        reject(f"there is no dtype {name!r}")
    return dtype


# --- bytes ----------------------------------------------------------------------------------------


def read_json(packed: bytes) -> Any:
    """Parse compressed JSON with limits on size, depth and numbers.

    Raises:
        ValueError: the bytes are not of this form.
    """
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, MOST_JSON)
    except zlib.error as error:
        reject(f"it cannot be decompressed ({error})")
    require(unpacking.eof and not unpacking.unused_data, f"it has more than {MOST_JSON} bytes")
    require(text.count(b"[") + text.count(b"{") <= MOST_PARTS, "it has too many parts")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        reject(f"it is no JSON ({type(error).__name__})")
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        below: list[Any] = []
        for x in level:
            if isinstance(x, dict):
                below.extend(x.values())
            elif isinstance(x, list):
                below.extend(x)
            elif isinstance(x, int):
                require(-_NUMBER < x < _NUMBER, "a number in it is too large")
        if not below:
            return value
        level = below
    return reject(f"it is nested more than {MOST_DEPTH} times")


def fixed_bools(x: np.ndarray) -> np.ndarray:
    """Return an array of deserialized bytes with valid values of its dtype: bools are 0 or 1, and
    numbers of less than 8 bits have only their low bits set."""
    if x.dtype == np.bool_:
        return x.view(np.uint8) != 0
    name = x.dtype.name
    if name in SUB_INTS:
        return x.astype(np.int8).astype(x.dtype)
    bits = _bits(x.dtype)
    if bits < 8:
        require(not (x.view(np.uint8) >> bits).any(), f"a value is no {name}")
    return x


# --- operations -----------------------------------------------------------------------------------


def check_operation(op: Op, avals: Sequence[Any], params: Mapping[str, Any]) -> None:
    """Check an operation of an untrusted program before it is recorded.

    Raises:
        ValueError: programs cannot contain it, or operands or parameters are invalid.
    """
    name = op.name
    fits = op.kind in _KINDS or op.control or name in _HOLDERS
    if not fits or op.effect or name == "fft_mirror" or not OPS.holds(op):
        reject(f"programs do not hold the operation {name!r}")
    require(len(params) <= 16, f"{name} has {len(params)} parameters")
    if op.kind == "item":
        require(len(avals) == 1 and isinstance(avals[0], tuple), "item of one result")
        index = params.get("index")
        require(type(index) is int and 0 <= index < len(avals[0]), f"there is no result {index}")
        require(params.keys() == {"index"}, "parameters of item")
        return
    require(all(isinstance(a, Aval) for a in avals), f"{name} takes several results as one operand")
    if op.kind == "map" and isinstance(op.jvp, tuple):
        require(len(avals) == len(op.jvp), f"{name} of {len(avals)} operands")
    if op.kind == "opaque" and avals and op.dtypes:
        kind = dtype_kind(avals[0].dtype)
        require(kind in op.dtypes, f"{name} of {avals[0].dtype.name}")
    for key, value in params.items():
        check = _PARAMETERS.get(key)
        if check is None or not check(value, avals):
            reject(f"the parameter {key} of {name} is {str(value)[:60]}")
    _check_call(op, avals, params)
    missing = _REQUIRED.get(name, frozenset()) - params.keys()
    require(not missing, f"{name} has no {', '.join(missing)}")
    special = _OPERATIONS.get(name)
    if special is not None:
        require(special(avals, dict(params)), f"the parameters of {name} do not fit its operands")


def check_result(name: str, aval: Any) -> None:
    """Check the type that an operation infers.

    Raises:
        ValueError: arrays cannot have it.
    """
    for a in aval if isinstance(aval, tuple) else (aval,):
        fits = len(a.shape) <= MOST_AXES and all(n >= 0 for n in a.shape)
        size = math.prod([max(n, 1) for n in a.shape])
        require(fits and size * a.dtype.itemsize < MOST_BYTES, f"{name} has a result of {a}")
        require(DTYPES.get(a.dtype.name) == a.dtype, f"{name} has a result of {a.dtype}")


@functools.cache
def _signatures(op: Op) -> list[inspect.Signature]:
    signatures = []
    for f in (op.infer, op.numpy):
        if f is not None and not isinstance(f, np.ufunc):
            try:
                signatures.append(inspect.signature(f))
            except (TypeError, ValueError):  # a C function
                continue
    return signatures


def _check_call(op: Op, avals: Sequence[Aval], params: Mapping[str, Any]) -> None:
    """Check that operands and parameters have the number and names that the op expects."""
    if isinstance(op.numpy, np.ufunc):
        require(len(avals) == op.numpy.nin, f"{op.name} of {len(avals)} operands")
    for signature in _signatures(op):
        try:
            signature.bind(*avals, **params)
        except TypeError as error:
            reject(f"{op.name}: {error}")


# --- values of parameters ------------------------------------------------------------------------

Check = Callable[[Any, Sequence[Any]], bool]


def _is_int(v: Any, low: int = -_WORD, high: int = _WORD) -> bool:
    return type(v) is int and low <= v <= high


def _are_ints(v: Any, low: int = -_WORD, high: int = _WORD) -> bool:
    return type(v) is tuple and len(v) <= MOST_AXES and all(_is_int(x, low, high) for x in v)


def _are_axes(v: Any, rank: int) -> bool:
    return _are_ints(v, 0, rank - 1) and len(set(v)) == len(v)


def _is_dtype(v: Any, kinds: str = "biufc") -> bool:
    return isinstance(v, np.dtype) and DTYPES.get(v.name) == v and dtype_kind(v) in kinds


def _are_pairs(v: Any, n: int = 2) -> bool:
    return type(v) is tuple and len(v) <= MOST_AXES and all(_are_ints(x) and len(x) == n for x in v)


def _is_bool(v: Any, _: Any) -> bool:
    return type(v) is bool


def _is_none(v: Any, _: Any) -> bool:
    return v is None


def _is_number(v: Any, _: Any) -> bool:
    return isinstance(v, bool | int | float | complex | np.generic)


def _is_size(v: Any, _: Any) -> bool:
    return _is_int(v, 0, MOST_BYTES)


def _are_sizes(v: Any, _: Any) -> bool:
    return _are_ints(v, 0, MOST_BYTES)


def _are_steps(v: Any, _: Any) -> bool:
    return _are_ints(v, 1)


def _axis(v: Any, avals: Sequence[Aval]) -> bool:
    return not avals or _is_int(v, 0, avals[0].ndim - 1)


def _axes(v: Any, avals: Sequence[Aval]) -> bool:
    return bool(avals) and _are_axes(v, avals[0].ndim)


def _one_of(*values: Any) -> Check:
    return lambda v, _: any(v is x or (type(v) is type(x) and v == x) for x in values)


def _none_or(check: Check) -> Check:
    return lambda v, avals: v is None or check(v, avals)


def _is_precision(v: Any, _: Any) -> bool:
    if type(v) is tuple:
        return len(v) == 2 and all(_is_precision(x, None) for x in v)
    return v is None or isinstance(v, Precision) or (isinstance(v, str) and len(v) < 100)


def _is_program(v: Any, _: Any) -> bool:
    return isinstance(v, Graph)


def _any_dimension_numbers(v: Any, _: Any) -> bool:
    if type(v) is tuple:
        return all(type(pair) is tuple and len(pair) == 2 for pair in v)
    known = (ConvDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers)
    return isinstance(v, known) and all(_are_ints(group, 0, MOST_AXES) for group in v)


_PARAMETERS: dict[str, Check] = {
    # flags
    **dict.fromkeys(
        (
            "left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal", "left",
            "transpose",
            "sort_eigenvalues", "compute_left_eigenvectors", "compute_right_eigenvectors",
            "enable_eigvec_derivs", "full_matrices", "compute_uv", "pivoting",
            "compute_schur_vectors", "sort_eig_vals", "perturb_singular", "weak_type", "reverse",
            "indices_are_sorted", "unique_indices", "is_stable",
        ),
        _is_bool,
    ),
    **dict.fromkeys(
        ("algorithm", "implementation", "use_magma", "select_callable", "accuracy", "out_sharding"),
        _is_none,
    ),
    # numbers
    **dict.fromkeys(("alpha", "beta", "tol"), lambda v, _: isinstance(v, int | float)),
    **dict.fromkeys(
        ("permutation_size", "kth", "k", "num_keys", "length", "num_consts", "num_carry",
         "cond_nconsts", "body_nconsts"), _is_size,
    ),
    **dict.fromkeys(
        ("feature_group_count", "batch_group_count", "unroll"), lambda v, _: _is_int(v, 1)
    ),
    **dict.fromkeys(("exponent_bits", "mantissa_bits"), lambda v, _: _is_int(v, 0, 64)),
    "y": lambda v, _: _is_int(v),
    "rounding_method": lambda v, _: type(v) is int and v in (0, 1),
    "base": lambda v, _: type(v) is int and v in (2, 10),
    "fill_value": _none_or(_is_number),
    # texts and names
    "name": lambda v, _: isinstance(v, str) and len(v) < 1000,
    "side": _one_of("left", "right"),
    "select_prim": _one_of("ge", "le"),
    "mode": lambda v, _: isinstance(v, GatherScatterMode),
    "fft_type": lambda v, _: isinstance(v, FftType),
    "precision": _is_precision,
    # dtypes
    "new_dtype": lambda v, _: _is_dtype(v),
    "dtype": lambda v, _: _is_dtype(v),
    "index_dtype": lambda v, _: _is_dtype(v, "iu"),
    "preferred_element_type": lambda v, _: v is None or _is_dtype(v),
    # axes
    "axes": _axes,
    "axis": _axis,
    "dimension": _axis,
    "dimensions": _none_or(_axes),
    "permutation": _axes,
    "broadcast_dimensions": lambda v, _: _are_ints(v, 0, MOST_AXES),
    "dimension_numbers": _any_dimension_numbers,
    # sizes
    **dict.fromkeys(
        ("shape", "new_sizes", "slice_sizes", "start_indices", "limit_indices"), _are_sizes
    ),
    "fft_lengths": _are_sizes,
    "strides": _none_or(_are_steps),
    **dict.fromkeys(
        ("window_strides", "lhs_dilation", "rhs_dilation", "base_dilation", "window_dilation",
         "window_dimensions"), _are_steps,
    ),
    "padding": lambda v, _: _are_pairs(v),
    "padding_config": lambda v, _: _are_pairs(v, 3),
    "subset": _none_or(lambda v, _: _are_ints(v, 0) and len(v) == 2),
    "subset_by_index": _none_or(lambda v, _: _are_ints(v, 0) and len(v) == 2),
    "values": lambda v, _: type(v) is tuple and all(_is_int(x) for x in v),
    # programs
    **dict.fromkeys(("jaxpr", "cond_jaxpr", "body_jaxpr"), _is_program),
    "branches": lambda v, _: type(v) is tuple and v != () and all(isinstance(g, Graph) for g in v),
}  # fmt: skip


# For ops whose rules do not name their parameters.
_WRITES = frozenset(("dimension_numbers", "indices_are_sorted", "unique_indices", "mode"))
_WINDOWS = frozenset(
    ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
)
_SCATTERS = ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")
_POOLS = ("reduce_window_sum", "reduce_window_max", "reduce_window_min")
_REQUIRED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_SCATTERS, _WRITES),
    "gather": _WRITES | {"slice_sizes", "fill_value"},
    **dict.fromkeys(_POOLS, _WINDOWS),
    "select_and_gather_add": _WINDOWS | {"select_prim"},
    "select_and_scatter_add": _WINDOWS | {"select_prim"},
    "triangular_solve": frozenset(
        ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    ),
    "conv_general_dilated": frozenset(
        (
            "dimension_numbers", "window_strides", "padding", "lhs_dilation", "rhs_dilation",
            "feature_group_count", "batch_group_count", "precision", "preferred_element_type",
        )
    ),
    "eigh_tridiagonal": frozenset(("subset", "tol")),
}  # fmt: skip


# --- parameters and operands together ------------------------------------------------------------


def _dot(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    dims = p["dimension_numbers"]
    if type(dims) is not tuple or len(dims) != 2:
        return False
    (ac, bc), (ab, bb) = dims
    return (
        all(_are_ints(group, 0) for group in (ac, bc, ab, bb))
        and _are_axes((*ab, *ac), avals[0].ndim)
        and _are_axes((*bb, *bc), avals[1].ndim)
        and len(ac) == len(bc)
        and len(ab) == len(bb)
    )


def _convolution(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    dims, n = p["dimension_numbers"], avals[0].ndim
    if not isinstance(dims, ConvDimensionNumbers) or avals[1].ndim != n or n < 2:
        return False
    windows = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
    return all(_are_axes(spec, n) and len(spec) == n for spec in dims) and all(
        len(p[key]) == n - 2 for key in windows
    )


def _check_indexing(
    dims: GatherDimensionNumbers | ScatterDimensionNumbers,
    x: Aval,
    starts: Aval,
    rank: int,
    sizes: Sequence[int],
) -> bool:
    """Return whether dimension numbers are valid; `rank` is that of the array, `sizes` a window."""
    window, dropped, mapped, batching, starts_batching = dims
    if starts.ndim < 1:
        return False
    outer = starts.shape[:-1]
    return (
        _are_axes(window, rank)
        and list(window) == sorted(window)
        and _are_axes((*dropped, *batching), x.ndim)
        and _are_axes((*mapped, *batching), x.ndim)
        and _are_axes(starts_batching, len(outer))
        and len(mapped) == starts.shape[-1]
        and len(batching) == len(starts_batching)
        and len(outer) + len(window) == rank
        and all(x.shape[d] == outer[s] for d, s in zip(batching, starts_batching, strict=True))
        and len(sizes) == x.ndim
        and all(sizes[d] <= 1 for d in (*dropped, *batching))
    )


def _gather(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    (x, starts), dims, sizes = avals, p["dimension_numbers"], p["slice_sizes"]
    if not isinstance(dims, GatherDimensionNumbers):
        return False
    rank = starts.ndim - 1 + len(dims.offset_dims)
    if not _check_indexing(dims, x, starts, rank, sizes):
        return False
    inside = all(s <= n for s, n in zip(sizes, x.shape, strict=True))
    return inside or 0 in (*starts.shape[:-1], *sizes) or p["mode"].name == "FILL_OR_DROP"


def _scatter(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    (x, starts, updates), dims = avals, p["dimension_numbers"]
    if not isinstance(dims, ScatterDimensionNumbers):
        return False
    window, dropped, _, batching, _ = dims
    if not _are_axes(window, updates.ndim) or not _are_axes((*dropped, *batching), x.ndim):
        return False
    kept_axes = [d for d in range(x.ndim) if d not in (*dropped, *batching)]
    if len(kept_axes) != len(window):
        return False
    sizes = [1] * x.ndim
    for d, at in zip(kept_axes, window, strict=True):
        sizes[d] = updates.shape[at]
    inside = all(s <= n for s, n in zip(sizes, x.shape, strict=True))
    return _check_indexing(dims, x, starts, updates.ndim, sizes) and (inside or not updates.size)


def _check_pooling(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    windows = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    return all(len(p[key]) == avals[0].ndim for key in windows)


def _pooled_two(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    """Return whether the operands of a pooling derivative have matching shapes."""
    a, x = avals
    if not _check_pooling([x], p) or a.dtype != x.dtype or dtype_kind(x.dtype) not in "iuf":
        return False
    forward = OPS["reduce_window_max"].infer(x, **{k: p[k] for k in p if k != "select_prim"})
    return a.shape == (x.shape, forward.shape)["scatter" in p]


def _fft(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    kind, lengths, x = p["fft_type"], p["fft_lengths"], avals[0]
    if not 1 <= len(lengths) <= x.ndim or x.dtype.name not in (
        "float32", "float64", "complex64", "complex128"
    ):  # fmt: skip
        return False
    if 0 in lengths and kind not in (FftType.FFT, FftType.IFFT):
        return False
    expected = lengths
    if kind is FftType.IRFFT:
        expected = (*lengths[:-1], lengths[-1] // 2 + 1)
    return x.shape[x.ndim - len(lengths) :] == expected


def _floats(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    return all(dtype_kind(a.dtype) == "f" for a in avals)


def _bitcast(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    """Check a bitcast: bytes of numbers of less than 8 bits have unused bits."""
    old, new = avals[0].dtype, p["new_dtype"]
    alike = {old.name, new.name} <= {*SUB_INTS} and _bits(old) == _bits(new)
    return old == new or alike or not any(_bits(d) < 8 for d in (old, new))


def _bits(dtype: np.dtype) -> int:
    """The bits that numbers have in their bytes, of one byte those that count."""
    name = dtype.name
    if name in SUB_INTS:
        return int(name[-1])
    return int(name[5]) if name in SMALL_FLOATS else 8 * dtype.itemsize


def _view(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    x, new = avals[0], p["new_dtype"]
    if x.ndim < 1 or x.shape[-1] * x.dtype.itemsize % new.itemsize:
        return False
    return new.kind != "b" and x.dtype.kind != "b" and _bitcast(avals, p)


def _check_tridiagonal(avals: Sequence[Aval], p: dict[str, Any]) -> bool:
    d, e = avals
    n, subset = d.shape[-1], p["subset"] or (0, d.shape[-1] - 1)
    return n >= 1 and e.shape[-1] == n - 1 and subset[0] <= subset[1] < n


_OPERATIONS: dict[str, Callable[[Sequence[Any], dict[str, Any]], bool]] = {
    "dot_general": _dot,
    "conv_general_dilated": _convolution,
    "gather": _gather,
    **dict.fromkeys(_SCATTERS, _scatter),
    **dict.fromkeys(_POOLS, _check_pooling),
    "select_and_gather_add": _pooled_two,
    "select_and_scatter_add": lambda avals, p: _pooled_two(avals, {**p, "scatter": True}),
    "fft": _fft,
    "fresnel": _floats,
    "sici": _floats,
    "bitcast_convert_type": _bitcast,
    "view_bytes": _view,
    "iota": lambda avals, p: not avals and _is_int(p["dimension"], 0, len(p["shape"]) - 1),
    "argmax": lambda avals, p: len(p["axes"]) == 1,
    "argmin": lambda avals, p: len(p["axes"]) == 1,
    "concatenate": lambda avals, p: len(avals) > 0,
    "eigh_tridiagonal": _check_tridiagonal,
    "table": lambda avals, p: not avals,
    "reshape": lambda avals, p: p.get("dimensions") is None,
}
