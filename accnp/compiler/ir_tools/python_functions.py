"""NumPy versions of all functions that kernels call, so that kernels run as ordinary Python.

``NAMESPACE`` maps the names of the intrinsics, library kernels and routines to functions of NumPy
scalars, and of arrays in place of pointers. Tests execute the sources of kernels with it and
compare the results with those of compiled kernels. The interpreter of the loop IR uses it for
procedures, and for functions without another reference. Values agree with the compiled ones to a
few ulp; casts, integers, bits and special values agree exactly.
"""

from __future__ import annotations

import importlib
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, SupportsFloat, SupportsInt

import ml_dtypes
import numpy as np

from accnp.compiler.ir_tools import python_gemm, python_lapack
from accnp.compiler.library import special_calls
from accnp.compiler.loops.functions import FUNCTIONS_OF_OPS
from accnp.compiler.loops.stack_lengths import STACK_LENGTHS
from accnp.ir.op import COMBINES, Combine, for_each_combine

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from accnp.compiler.ir_tools.python_types import Functions, Integer, Number, Places, Pointer

DTYPES: dict[str, type[np.generic]] = {
    "b1": np.bool_,
    "i1": np.int8,
    "i2": np.int16,
    "i4": np.int32,
    "i8": np.int64,
    "u1": np.uint8,
    "u2": np.uint16,
    "u4": np.uint32,
    "u8": np.uint64,
    "f2": np.float16,
    "e2": ml_dtypes.bfloat16,
    "f4": np.float32,
    "f8": np.float64,
    "c8": np.complex64,
    "c16": np.complex128,
}
special = importlib.import_module("scipy.special")  # has no types
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _without_warnings(f: Callable[..., ArrayLike]) -> Callable[..., Number]:
    """Return the function in the dtype of its first argument, without warnings."""

    def call(*xs: ArrayLike) -> Number:
        with np.errstate(all="ignore"):
            x = np.asarray(xs[0])
            return _as_scalar(np.asarray(f(*xs)).astype(x.dtype))

    return call


def _as_scalar(x: np.ndarray) -> Number:
    """Return the number in an array without axes."""
    return typing.cast("Number", x[()])


def _keep_integers(f: Callable[..., object]) -> Callable[..., object]:
    """Return a rounding function that returns integers unchanged."""

    def call(x: object) -> object:
        return x if np.asarray(x).dtype.kind in "iu" else f(x)

    return call


def cast(dtype: DTypeLike) -> Callable[[ArrayLike], Number]:
    """Return a conversion by JAX's rules: float to integer saturates, and NaN becomes 0."""
    target = np.dtype(dtype)

    def call(x: ArrayLike) -> Number:
        array = np.asarray(x)
        if array.dtype.kind == "c" and target.kind not in "cb":
            array = np.real(array)
        with np.errstate(all="ignore"):
            if array.dtype.kind == "f" and target.kind in "iu":
                return _saturate(array, target)
            return _as_scalar(array.astype(target))

    return call


def _saturate(x: np.ndarray, target: np.dtype) -> Number:
    info = np.iinfo(target)
    # 2^bits is exact as a float, the largest integer may not be
    top = 2.0 ** (info.bits - (target.kind == "i"))
    inside = (x > float(info.min) - 1) & (x < top) | (x == float(info.min))
    y = np.where(inside, x, 0).astype(target)
    y = np.where(~inside & (x >= top), info.max, y)
    return _as_scalar(np.where(~inside & (x < 0), info.min, y).astype(target))


def idiv(x: Integer, y: Integer) -> Number:
    dtype = np.asarray(x).dtype
    a, b = int(x), int(y)
    if b == 0:
        return dtype.type(-1 if dtype.kind == "i" else np.iinfo(dtype).max)
    q = abs(a) // abs(b)
    return _as_scalar(np.asarray(-q if (a < 0) != (b < 0) else q).astype(dtype))


def rem(x: Number, y: Number) -> Number:
    dtype = np.asarray(x).dtype
    if dtype.kind not in "iu":
        return _without_warnings(np.fmod)(x, y)
    a, b = int(x), int(y)
    if b == 0:
        return dtype.type(a)
    return dtype.type(-(-a % abs(b)) if a < 0 else a % abs(b))


def _unsigned(x: Integer) -> tuple[int, np.dtype[np.integer]]:
    dtype = np.asarray(x).dtype
    return int(x) & ((1 << 8 * dtype.itemsize) - 1), dtype


def _wrap(value: int, dtype: np.dtype[np.integer]) -> np.integer:
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return dtype.type(value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value)


def shift_left(x: Integer, n: Integer) -> np.integer:
    value, dtype = _unsigned(x)
    return _wrap(value << int(n) if 0 <= int(n) < 8 * dtype.itemsize else 0, dtype)


def shift_right_logical(x: Integer, n: Integer) -> np.integer:
    value, dtype = _unsigned(x)
    return _wrap(value >> int(n) if 0 <= int(n) < 8 * dtype.itemsize else 0, dtype)


def shift_right_arithmetic(x: Integer, n: Integer) -> np.integer:
    _, dtype = _unsigned(x)
    bits = 8 * dtype.itemsize
    value = int(x) - (1 << bits) if dtype.kind == "u" and int(x) >> (bits - 1) else int(x)
    return _wrap(value >> (int(n) if 0 <= int(n) < bits else bits - 1), dtype)


def clz(x: Integer) -> np.integer:
    value, dtype = _unsigned(x)
    return dtype.type(8 * dtype.itemsize - value.bit_length())


def popcount(x: Integer) -> np.integer:
    value, dtype = _unsigned(x)
    return dtype.type(value.bit_count())


def fmax(x: Number, y: Number) -> Number:
    if np.asarray(x).dtype.kind == "f" and x == 0 and y == 0:
        return x if np.signbit(y) else y
    return np.maximum(x, y)


def fmin(x: Number, y: Number) -> Number:
    if np.asarray(x).dtype.kind == "f" and x == 0 and y == 0:
        return x if np.signbit(x) else y
    return np.minimum(x, y)


def sign(x: Number) -> Number:
    return np.sign(x) + type(x)(0)  # -0 becomes 0


def round_away(x: Number) -> Number:
    t = np.trunc(x)
    with np.errstate(invalid="ignore"):
        y = t + np.copysign(1, x) if abs(x - t) >= 0.5 else t
    return np.copysign(y, x).astype(x.dtype)


def fma(x: Number, y: Number, z: Number) -> Number:
    """Return x * y + z, rounded twice in the widest type, unlike the compiled function."""
    wide = np.longdouble
    with np.errstate(all="ignore"):
        return _as_scalar(np.asarray(wide(x) * wide(y) + wide(z)).astype(np.asarray(x).dtype))


def square(x: Number) -> Number:
    """Return x * x. The real part of a complex square is the product of a difference and a sum."""
    if not np.iscomplexobj(x):
        return x * x
    less, more, imag = x.real - x.imag, x.real + x.imag, x.real * x.imag
    real = x.real.dtype.type(0) if less == 0 or more == 0 else less * more
    return make_complex(real + x.real.dtype.type(0), imag + imag)


def make_complex(x: Number, y: Number) -> Number:
    out = np.empty((), np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return _as_scalar(out)


def bitcast(dtype: DTypeLike) -> Callable[[ArrayLike], Number]:
    return lambda x: _as_scalar(np.asarray(x).view(dtype))


def threefry(
    k0: SupportsInt, k1: SupportsInt, c0: SupportsInt, c1: SupportsInt
) -> tuple[np.uint32, np.uint32]:
    """Return the two output words of threefry2x32 with 20 rounds."""
    mask = 0xFFFFFFFF
    k0, k1 = int(k0), int(k1)
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x, y = int(c0) + k0 & mask, int(c1) + k1 & mask
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x = x + y & mask
            y = x ^ (y << r | y >> (32 - r)) & mask
        x, y = x + keys[(i + 1) % 3] & mask, y + keys[(i + 2) % 3] + i + 1 & mask
    return np.uint32(x), np.uint32(y)


def _stack(dtype: DTypeLike, count: int) -> Callable[[], np.ndarray]:
    return lambda: np.empty(count, dtype)


def _offset_array(a: Pointer, k: Integer) -> Pointer:
    """Return an array, or an object in place of a pointer, from an element on."""
    if isinstance(a, np.ndarray):
        return a[int(k) :]
    return a.moved(int(k))


def _move(to: Pointer, source: Pointer, n: Integer) -> None:
    to[: int(n)] = source[: int(n)]


def _transpose(
    to: Pointer, ldt: Integer, source: Pointer, lds: Integer, rows: Integer, columns: Integer
) -> None:
    for r in range(int(rows)):
        for c in range(int(columns)):
            to[r * ldt + c] = source[r + c * lds]


def _columns(function: Callable[[Number, Number], Number]) -> Callable[..., None]:
    def call(sums: Pointer, source: Pointer, step: Integer, rows: Integer, wide: Integer) -> None:
        for c in range(int(wide)):
            for r in range(int(rows)):
                sums[c] = function(sums[c], source[r + c * step])

    return call


def _strip_reduction(block: Callable[[Pointer, Integer], Number]) -> Callable[..., None]:
    def call(
        sums: np.ndarray, source: Pointer, places: Places, rows: Integer, wide: Integer
    ) -> None:
        for c in range(int(wide)):
            column = np.array([source[places[r] + c] for r in range(int(rows))], sums.dtype)
            sums[c] = block(column, rows)

    return call


def _block(combine: Combine) -> Callable[[Pointer, Integer], Number]:
    def call(a: Pointer, n: Integer) -> Number:
        a = a[: int(n)]
        combine_of_type = (
            COMBINES[combine.of_bools] if a.dtype == bool and combine.of_bools else combine
        )
        with np.errstate(all="ignore"):
            start = a.dtype.type(combine_of_type.identity(a.dtype))
            reference = typing.cast("np.ufunc", combine_of_type.reference)
            return _as_scalar(np.asarray(reference.reduce(a, initial=start)).astype(a.dtype))

    return call


def _find(a: Pointer, n: Integer, value: Number) -> np.int64:
    a = a[: int(n)]
    same = np.flatnonzero((a == value) | ((a != a) & (value != value)))
    return np.int64(same[0] if same.size else n)


def _is_not_normal(x: np.ndarray | np.number) -> np.bool | np.ndarray:
    """Return whether elements are zero, subnormal, infinite or NaN."""
    size = np.maximum(np.abs(np.real(x)), np.abs(np.imag(x)))
    return ~((size >= np.finfo(size.dtype).tiny) & (size < np.inf))


def _find_not_normal(a: Pointer, n: Integer) -> np.int64:
    indices = np.flatnonzero(_is_not_normal(a[: int(n)]))
    return np.int64(indices[0] if indices.size else n)


def _compute_in_float64(f: Callable[..., ArrayLike]) -> Callable[..., Number]:
    """Return a function in float64, with the type of its first operand as the result's."""
    return _without_warnings(lambda *xs: f(*[np.float64(x) for x in xs]))


def _widen_to_float64(f: Callable[..., ArrayLike]) -> Callable[..., Number]:
    """Return the reference of an op in float64, with the type of its first operand as the
    result's."""

    def widened(x: ArrayLike) -> np.ndarray:
        array = np.asarray(x)
        is_integer = array.dtype.kind in "biu"
        return array if is_integer else array.astype(np.result_type(array.dtype, np.float64))

    return _without_warnings(lambda *xs: f(*map(widened, xs)))


# --- functions of one line -----------------------------------------------------------------------


def _quotient(x: np.integer, m: np.integer, s: np.integer) -> np.integer:
    return x * m >> s


def _inverse(d: SupportsFloat) -> np.float64:
    return 1 / np.float64(d)


def _multiply_by_inverse(x: np.number, inverse: np.float64) -> np.float32:
    return np.float32(x * inverse)


def _zeta(x: SupportsFloat, q: SupportsFloat) -> np.float64:
    return special.zeta(np.float64(x), q)


def _polygamma(n: SupportsFloat, x: SupportsFloat) -> np.float64:
    return special.polygamma(np.float64(n), x)


def _bessel_i1(x: np.float64) -> np.float64:
    return np.copysign(special.i1(x), x)


def _bessel_i1e(x: np.float64) -> np.float64:
    return np.copysign(special.i1e(x), x)


def _cdiv(x: np.number, y: np.number) -> np.number:
    return x / y


def _one_of_dtype(x: object) -> np.generic:
    return np.asarray(x).dtype.type(1)


def _select(c: object, x: object, y: object) -> object:
    return x if c else y


def _threefry_0(*xs: SupportsInt) -> np.uint32:
    return threefry(*xs)[0]


def _threefry_1(*xs: SupportsInt) -> np.uint32:
    return threefry(*xs)[1]


def _threefry_xor(*xs: SupportsInt) -> np.uint32:
    return np.bitwise_xor(*threefry(*xs))


def _join_max(x: np.number, y: np.number) -> np.number:
    return y if y > x or y != y else x


def _join_min(x: np.number, y: np.number) -> np.number:
    return y if y < x or y != y else x


def _is_aligned(a: np.ndarray) -> bool:
    return a.ctypes.data % 16 == 0


def _is_stopped(count: object, mask: object) -> bool:
    return False


def _run_all(
    k: Callable[..., object], sharer: object, pool: object, helpers: object,
    n: object, chunk: object, *x: object,
) -> object:  # fmt: skip
    return k(0, n, *x)


def _ignore_pointer(p: object) -> None:
    pass


def _wide_sum(a: np.ndarray, n: SupportsInt) -> np.float64:
    return np.sum(a[: int(n)], dtype=np.float64)


def _heap(dtype: type[np.generic]) -> Callable[[SupportsInt], np.ndarray]:
    return lambda n: np.empty(int(n), dtype)


NAMESPACE: Functions = {
    "quotient": _quotient,
    "inverse": _inverse,
    "divided": _multiply_by_inverse,
    "sqrt": _without_warnings(np.sqrt),
    "log2": _without_warnings(np.log2),
    "log10": _without_warnings(np.log10),
    "zeta": _without_warnings(_zeta),
    "polygamma": _without_warnings(_polygamma),
    "abs": np.abs,
    "floor": _keep_integers(np.floor),
    "ceil": _keep_integers(np.ceil),
    "trunc": _keep_integers(np.trunc),
    "round_even": _keep_integers(np.rint),
    "round_away": _keep_integers(round_away),
    "sign": sign,
    "fmax": fmax,
    "fmin": fmin,
    "rem": rem,
    "cdiv": _without_warnings(_cdiv),
    "idiv": idiv,
    "nextafter": _without_warnings(np.nextafter),
    "copysign": np.copysign,
    "shift_left": shift_left,
    "shift_right_logical": shift_right_logical,
    "shift_right_arithmetic": shift_right_arithmetic,
    "clz": clz,
    "popcount": popcount,
    "is_finite": np.isfinite,
    "one": _one_of_dtype,
    "sq": _without_warnings(square),
    "select": _select,
    "make_complex": make_complex,
    "cmul": _without_warnings(np.multiply),
    "fma": fma,
    "threefry_0": _threefry_0,
    "threefry_1": _threefry_1,
    "threefry_xor": _threefry_xor,
    "join_max": _join_max,
    "join_min": _join_min,
    "at": _offset_array,
    "aligned": _is_aligned,
    "nontemporal_requested": lambda: 0,
    "stopped": _is_stopped,
    "parallel_for": _run_all,
    "move": _move,
    "transpose": _transpose,
    "prefetch": _ignore_pointer,
    "prefetch_second": _ignore_pointer,
    "touch": _ignore_pointer,
    "block_find": _find,
    "block_find_not_normal": _find_not_normal,
    "not_normal": _is_not_normal,
    "block_wide_sum": _wide_sum,
}
for _name, _function in FUNCTIONS_OF_OPS.items():
    NAMESPACE[_name] = _widen_to_float64(_function.reference)


def _declare_reductions(name: str) -> None:
    combine = COMBINES[name]
    block = _block(combine)
    function = NAMESPACE.get(combine.function, combine.reference)
    NAMESPACE["block_" + name] = block
    NAMESPACE["columns_" + name] = _columns(
        typing.cast("Callable[[Number, Number], Number]", function)
    )
    NAMESPACE["strips_" + name] = _strip_reduction(block)


for_each_combine(_declare_reductions)
for _name, _dtype in DTYPES.items():
    NAMESPACE[_name] = cast(_dtype)
    for _kind, _count in STACK_LENGTHS.items():
        NAMESPACE[f"{_kind}_{_name}"] = _stack(_dtype, _count)
    NAMESPACE["null_" + _name] = lambda: None
    NAMESPACE["heap_" + _name] = _heap(_dtype)
    if np.dtype(_dtype).kind in "iufV":
        NAMESPACE["bitcast_" + _name] = bitcast(_dtype)
NAMESPACE.update(python_gemm.namespace(fma, NAMESPACE))
NAMESPACE.update(python_lapack.namespace())
for _name in ("dawsn", "erfcx", "log_ndtr", "ndtri"):
    NAMESPACE[_name] = _compute_in_float64(getattr(special, _name))
NAMESPACE["bessel_i0"] = _compute_in_float64(special.i0)
NAMESPACE["bessel_i0e"] = _compute_in_float64(special.i0e)
NAMESPACE["bessel_i1"] = _compute_in_float64(_bessel_i1)
NAMESPACE["bessel_i1e"] = _compute_in_float64(_bessel_i1e)
for _name, (_, _ufunc, _) in special_calls.CALLS.items():
    NAMESPACE[_name] = _compute_in_float64(getattr(special, _ufunc))
