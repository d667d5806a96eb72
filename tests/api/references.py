"""Reference values where accnp and JAX differ: results by NumPy, SciPy or a formula in float64,
difference quotients for derivatives, and the parts of a result that are unspecified.

The functions take a name and a case (`recipes.py`), and return the numbers to compare with. They
are called only if accnp's result differs from JAX's, so they cost nothing where the two agree.
"""

from __future__ import annotations

import functools
import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import numpy as np
from api.answers import call, flatten_result
from api.recipes import CallLike

import accnp


def return_modified_copy(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy function that modifies its first operand as one that returns a new array."""

    def run(x: Any, *args: Any, inplace: bool = False, **kw: Any) -> Any:
        x = np.array(x)
        f(x, *args, **kw)
        return x

    return run


def softmax(x: Any, axis: Any = -1, where: Any = None, log: bool = False) -> Any:
    x = x if where is None else np.where(where, x, -np.inf)
    x = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    total = np.sum(np.exp(x), axis, keepdims=True)
    return x - np.log(total) if log else np.exp(x) / total


def squareplus(x: Any, b: Any = 4.0) -> Any:
    root = np.sqrt(x * x + b)
    return np.where(x > 0, (x + root) / 2, b / 2 / (root - x))


def standardize(x: Any, axis: Any = -1, epsilon: float = 1e-5) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + epsilon)


def attention(q: Any, k: Any, v: Any, return_residual: bool = False) -> Any:
    scores = np.einsum("btnh,bsnh->bnts", q, k) / math.sqrt(q.shape[-1])
    out = np.einsum("bnts,bsnh->btnh", softmax(scores), v)
    return (out, np.log(np.exp(scores).sum(-1)).swapaxes(1, 2)) if return_residual else out


def geometric(a: Any, b: Any, count: int) -> Any:
    """`np.geomspace` with exact end points, whatever the values between them."""
    steps = np.linspace(0, 1, count)[1:-1]
    return np.stack([a, *[a * (b / a) ** t for t in steps], b])


def segment_reduction(ufunc: Any, start: float) -> Callable[..., Any]:
    def run(x: Any, ids: Any, count: int) -> Any:
        out, inside = np.full(count, start, float), (ids >= 0) & (ids < count)
        ufunc.at(out, ids[inside].astype(int), x[inside])
        return out

    return run


def scatter_update(ufunc: Any) -> Callable[..., Any]:
    def run(x: Any, i: Any, v: Any) -> Any:
        out = x.astype(ufunc(x.ravel()[:1], np.ravel(v)[:1]).dtype)
        if np.ndim(i):  # what lies beyond the ends is dropped
            inside = (i >= -len(x)) & (i < len(x))
            i, v = i[inside], v[inside]
        ufunc.at(out, i, v)
        return out

    return run


def prefix_reductions(f: Callable[..., Any], x: Any) -> Any:
    """Return all prefix reductions along the first axis, of one or several arrays."""
    several = isinstance(x, tuple)
    rows = list(zip(*x, strict=True)) if several else list(x)
    for i in range(1, len(rows)):
        rows[i] = f(rows[i - 1], rows[i])
    return tuple(map(np.stack, zip(*rows, strict=True))) if several else np.stack(rows)


def largest_elements(
    x: Any, k: int, reduction_dimension: int = -1, sign: int = -1, **_: Any
) -> Any:
    """Return the k largest elements (smallest for `sign=1`) and their indices; NaN is larger than
    all numbers.
    """
    x = np.moveaxis(x, reduction_dimension, -1)
    order = np.lexsort((sign * x, sign * np.isnan(x)))[..., :k]
    outputs = np.take_along_axis(x, order, -1), order
    return tuple(np.moveaxis(v, -1, reduction_dimension) for v in outputs)


def polymul(a: Any, b: Any, trim_leading_zeros: bool = False) -> Any:
    if trim_leading_zeros:
        a, b = (np.trim_zeros(v, "f") for v in (a, b))
    return np.convolve(a, b)


def count_leading_zeros(x: Any) -> Any:
    size = 8 * x.dtype.itemsize
    return np.vectorize(lambda v: size - (int(v) % (1 << size)).bit_length(), otypes=[int])(x)


def bessel_functions(x: Any, v: int, n_iter: int = 50) -> Any:
    jv = importlib.import_module("scipy.special").jv
    del n_iter  # exact ones
    return np.stack([jv(k, x) for k in range(v + 1)])


def eigen(x: Any) -> Any:
    """Return eigenvalues, and left and right eigenvectors."""
    values, vectors = np.linalg.eig(x)
    left = np.linalg.inv(vectors).conj().swapaxes(-1, -2)
    return values, left / np.linalg.norm(left, axis=-2, keepdims=True), vectors


def igamma_order_gradient(a: Any, x: Any) -> Any:
    """Return the derivative of the incomplete gamma function with respect to its order."""
    special = importlib.import_module("scipy.special")
    h = 1e-4 * np.maximum(abs(a), 1e-3)
    near, far = (special.gammainc(a + n * h, x) - special.gammainc(a - n * h, x) for n in (1, 2))
    return (8 * near - far) / (12 * h)


def gamma_sample_gradient(a: Any, x: Any) -> Any:
    """Return the derivative of a gamma sample with respect to its parameter, by an expansion for
    large x.
    """
    special = importlib.import_module("scipy.special")
    far = np.log(x) - special.psi(a)
    return np.where((x > 1e3) & (x > 1e3 * a) & (a > 0), far, _gamma_sample_gradient(special, a, x))


def _gamma_sample_gradient(special: Any, a: Any, x: Any) -> Any:
    return -igamma_order_gradient(a, x) / np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))


def poisson_entropy(mean: Any, loc: float = 0) -> Any:
    """Sum all terms, or use an expansion for large means, for which SciPy's sum does not
    terminate.
    """
    special = importlib.import_module("scipy.special")
    counts = np.arange(200.0)
    logs = special.xlogy(counts, mean[..., None]) - mean[..., None] - special.gammaln(counts + 1)
    total = -np.sum(np.exp(logs) * np.where(np.isfinite(logs), logs, 0), -1)
    total = np.where(mean < 0, np.nan, total)
    series = 1 / 12 / mean + 1 / 24 / mean**2 + 19 / 360 / mean**3
    return np.where(mean > 50, np.log(2 * np.pi * np.e * mean) / 2 - series, total)


def double_exponential(y: Any, loc: float = 0, scale: float = 1) -> Any:
    """log(1 - exp(-exp(y))), also where exp(y) underflows."""
    y = (y - loc) / scale
    return np.where(y < -36, y, np.log(-np.expm1(-np.exp(y))))


def arctan2(y: Any, x: Any) -> Any:
    if np.iscomplexobj(y) or np.iscomplexobj(x):
        return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    return np.arctan2(y, x)


def logaddexp(x: Any, y: Any, base: float = math.e) -> Any:
    if not (np.iscomplexobj(x) or np.iscomplexobj(y)):
        return np.logaddexp(x, y) if base == math.e else np.logaddexp2(x, y)
    top, unit = np.maximum(np.real(x), np.real(y)), math.log(base)
    return top + np.log(np.exp((x - top) * unit) + np.exp((y - top) * unit)) / unit


# Of names that NumPy and SciPy have not, or have in another form.
def zeta(x: Any, q: Any) -> Any:
    """SciPy's function, with the limit 0 at huge orders, for which SciPy returns NaN."""
    special = importlib.import_module("scipy.special")
    return np.where((x > 1e15) & (q > 1), 0, special.zeta(x, q))


FORMULAS: dict[str, Callable[..., Any]] = {
    "numpy.fill_diagonal": return_modified_copy(np.fill_diagonal),
    "numpy.put": return_modified_copy(np.put),
    "numpy.put_along_axis": return_modified_copy(np.put_along_axis),
    **{
        f"Array.at.{name}": scatter_update(getattr(np, name.replace("mul", "multiply")))
        for name in ("add", "mul", "divide", "power")
    },
    "Array.at.multiply": scatter_update(np.multiply),
    # By the array API standard: infinity by a number is infinite.
    **dict.fromkeys(
        ("numpy.floor_divide", "Array.__floordiv__"), lambda a, b: np.floor(np.divide(a, b))
    ),
    "Array.__rfloordiv__": lambda b, a: np.floor(np.divide(a, b)),
    "Array.__divmod__": lambda a, b: (np.floor(np.divide(a, b)), np.mod(a, b)),
    "Array.__rdivmod__": lambda b, a: (np.floor(np.divide(a, b)), np.mod(a, b)),
    "numpy.divmod": lambda a, b: (np.floor(a / b), np.mod(a, b)),
    "numpy.geomspace": geometric,
    "numpy.polymul": polymul,
    "numpy.arctan2": arctan2,
    "numpy.logaddexp": logaddexp,
    "numpy.logaddexp2": functools.partial(logaddexp, base=2.0),
    "nn.softmax": softmax,
    "nn.log_softmax": functools.partial(softmax, log=True),
    "nn.log1mexp": lambda x: np.log(-np.expm1(-x)),
    "nn.squareplus": squareplus,
    "nn.standardize": standardize,
    "nn.dot_product_attention": attention,
    "ops.segment_sum": segment_reduction(np.add, 0),
    "ops.segment_prod": segment_reduction(np.multiply, 1),
    "ops.segment_max": segment_reduction(np.maximum, -np.inf),
    "ops.segment_min": segment_reduction(np.minimum, np.inf),
    "lax.associative_scan": prefix_reductions,
    "lax.approx_max_k": largest_elements,
    "lax.approx_min_k": functools.partial(largest_elements, sign=1),
    "lax.clz": count_leading_zeros,
    "lax.cumsum": functools.partial(np.cumsum, axis=0),
    "lax.igamma_grad_a": igamma_order_gradient,
    "lax.index_take": lambda x, places, axes: np.take(x, places[0].astype(int), axes[0]),
    "lax.linalg.eig": eigen,
    "lax.linalg.eigh": lambda x: np.linalg.eigh(x)[::-1],
    "lax.scaled_dot": np.matmul,
    "lax.reduce_max": lambda x, axes: np.max(x, tuple(axes)),
    "lax.reduce_min": lambda x, axes: np.min(x, tuple(axes)),
    "lax.max": np.maximum,
    "lax.min": np.minimum,
    "lax.random_gamma_grad": gamma_sample_gradient,
    "scipy.special.bessel_jn": bessel_functions,
    "scipy.stats.gumbel_l.logcdf": double_exponential,
    "scipy.stats.gumbel_r.logsf": lambda z, loc=0, scale=1: double_exponential(loc - z, 0, scale),
    "scipy.stats.poisson.entropy": poisson_entropy,
    **dict.fromkeys(("lax.zeta", "scipy.special.zeta"), zeta),
}
SAME_AS = {
    "lax.igamma": "scipy.special.gammainc",
    "lax.igammac": "scipy.special.gammaincc",
    "lax.lgamma": "scipy.special.gammaln",
}


def sort_partition(x: Any, a: Any, k: int, axis: int | None = -1) -> Any:
    """Sort both sides of a partition, so that results can be compared; signs of zeros are
    dropped.
    """
    x = x.ravel() if axis is None else np.moveaxis(x, axis, -1)
    x = x + x.dtype.type(0)
    return np.concatenate([np.sort(x[..., :k]), x[..., k : k + 1], np.sort(x[..., k + 1 :])], -1)


def sort_argpartition(x: Any, a: Any, k: int, axis: int | None = -1) -> Any:
    a, axis = (a.ravel(), 0) if axis is None else (a, axis)
    return sort_partition(np.take_along_axis(a, x, axis), a, k, axis)


def outer_products(vectors: Any) -> Any:
    """Return the product of each column with its own adjoint."""
    return np.einsum("...ik,...jk->...kij", vectors, vectors.conj())


# What of a result says all that is not free, of the result and the operands.
DETERMINED_PARTS: dict[str, Callable[..., Any]] = {
    "*.partition": sort_partition,
    "*.argpartition": sort_argpartition,
    # Of two equal zeros either is right.
    **dict.fromkeys(
        (
            "numpy.m??imum",
            "numpy.unique*",
            "numpy.[isu]*1d",
            "numpy.fft.*",
            "lax.m[ai][nx]",
            "lax.clamp",
            "lax.igamma_grad_a",
        ),
        lambda x, *_, **__: x + 0 if isinstance(x, np.ndarray) else [v + 0 for v in x],
    ),
    # Of equal numbers either is right, and so of two equal zeros.
    "lax.approx_m*_k": lambda x, a, k, reduction_dimension=-1, **_: [
        x[0] + x[0].dtype.type(0),
        np.take_along_axis(a, x[1], reduction_dimension) + x[0].dtype.type(0),
    ],
    # Rounding shows in these as it is beside the operands, however near these are to singular.
    "numpy.linalg.cond": lambda x, *_, **__: 1 / x,
    "numpy.linalg.pinv": lambda x, *_, **__: np.linalg.pinv(x),
    # Signs of vectors.
    "scipy.linalg.eigh_tridiagonal": lambda x, *_, **__: (
        x if isinstance(x, np.ndarray) else [x[0], outer_products(x[1])]
    ),
    "lax.linalg.eigh": lambda x, *_, **__: [outer_products(x[0]), x[1]],
    "lax.linalg.schur": lambda x, *_, **__: [abs(x[0]), *map(outer_products, x[1:])],
}


def widen(x: Any, whole: bool) -> Any:
    """Convert operands to float64 or complex128; keep integers if `whole`."""
    if isinstance(x, list | tuple):
        return type(x)(widen(v, whole) for v in x)
    if not isinstance(x, np.ndarray | np.generic) or (whole and x.dtype.kind in "biu"):
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@functools.cache
def reference_function(name: str) -> Callable[..., Any] | None:
    """Return the formula, NumPy function or SciPy function for a name, or None."""
    if name in FORMULAS:
        return FORMULAS[name]
    space, _, last = SAME_AS.get(name, name).rpartition(".")
    if space == "Array":
        return lambda x, *args, **kw: getattr(np.asarray(x), last)(*args, **kw)
    homes = {
        "lax": ("scipy.special", "numpy"), "numpy.fft": ("scipy.fft", "numpy.fft"),
        "random": (),  # Python's module is another
    }  # fmt: skip
    for home in homes.get(space, (space,)):
        module, *inner = home.partition("stats.")
        try:
            namespace = importlib.import_module(f"{module}{inner[0]}".rstrip("."))
            return getattr(getattr(namespace, inner[1]) if inner[1] else namespace, last)
        except (ImportError, AttributeError):
            continue
    return None


def evaluate_call(
    f: Callable[..., Any], case: CallLike, arrays: dict[str, Any], whole: bool
) -> list[Any]:
    """Return the arrays of a result. Operand expressions are evaluated in their own dtypes, the
    function in float64.
    """

    def run(*args: Any, **kw: Any) -> Any:
        return f(*widen(args, whole), **widen_values(kw, whole))

    scope = {
        "jnp": np, "np": np, "nn": SimpleNamespace(softmax=softmax),
        "lax": SimpleNamespace(add=np.add, mul=np.multiply, max=np.maximum, min=np.minimum),
        **arrays, "f": run,
    }  # fmt: skip
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(iterate_leaves(eval(f"f({case.arguments})", scope)))


def widen_values(x: dict[str, Any], whole: bool) -> dict[str, Any]:
    return {k: widen(v, whole) for k, v in x.items()}


def iterate_leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, list | tuple):
        for v in x:
            yield from iterate_leaves(v)
    else:
        yield np.asarray(x)


KEEPS_INTEGERS = ("numpy.", "Array.", "lax.associative_scan", "lax.clz", "scipy.special.sph_harm_y")


@functools.cache
def reference_results(name: str, case: CallLike, dtypes: tuple[np.dtype, ...]) -> list[np.ndarray]:
    """Return the reference results, rounded to `dtypes`; an empty list if there is no reference."""
    f = reference_function(name)
    try:
        outputs = (
            evaluate_call(f, case, case.operands(), name.startswith(KEEPS_INTEGERS)) if f else []
        )
    except Exception:  # it refuses what accnp takes: no answer
        return []
    if len(outputs) != len(dtypes):
        return []
    with np.errstate(all="ignore"):
        return [x.astype(dtype) for x, dtype in zip(outputs, dtypes, strict=True)]


def determined_part(name: str, case: CallLike, values: list[np.ndarray]) -> list[np.ndarray]:
    """Return the part of a result that the function's definition determines."""
    rule = next((f for names, f in DETERMINED_PARTS.items() if fnmatchcase(name, names)), None)
    if rule is None:
        return values
    outputs = values[0] if len(values) == 1 else values

    def run(*args: Any, **kw: Any) -> Any:
        return rule(outputs, *args, **kw)

    return evaluate_call(run, case, case.operands(), True)


# Of four points on a side of x, in steps: weights whose sum is the slope.
CENTRAL_STENCIL = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
RIGHT_STENCIL = {0: -25 / 12, 1: 4, 2: -3, 3: 4 / 3, 4: -1 / 4}
STENCILS = (CENTRAL_STENCIL, RIGHT_STENCIL, {-k: -v for k, v in RIGHT_STENCIL.items()})
STEP = 2.0**-10


def evaluate_along(
    name: str, case: CallLike, moves: dict[str, np.ndarray]
) -> Callable[[int], list[Any]]:
    """Return a function of a number of steps that evaluates a call with its operands moved along
    `moves`.
    """
    arrays = wide_operands(case)
    f = (
        None
        if any(fnmatchcase(name, names) for names in DETERMINED_PARTS)
        else reference_function(name)
    )
    if f is not None:
        try:
            evaluate_call(f, case, arrays, name.startswith(KEEPS_INTEGERS))
        except Exception:  # it refuses what accnp takes
            f = None

    @functools.cache
    def at(steps: int) -> list[Any]:
        moved = arrays | {k: arrays[k] + steps * STEP * move for k, move in moves.items()}
        if f is not None:
            return evaluate_call(f, case, moved, name.startswith(KEEPS_INTEGERS))
        return evaluate_with_accnp(name, case, moved)

    return at


def wide_operands(case: CallLike) -> dict[str, Any]:
    return {
        k: widen(v, True) if isinstance(v, np.ndarray) else v for k, v in case.operands().items()
    }


def evaluate_with_accnp(name: str, case: CallLike, arrays: dict[str, Any]) -> list[np.ndarray]:
    """Evaluate a call with accnp itself and 64-bit types."""
    with accnp.enable_x64(True):
        inputs = {
            k: accnp.numpy.asarray(v) if isinstance(v, np.ndarray) else v for k, v in arrays.items()
        }
        return [np.asarray(x) for x in flatten_result(accnp, call(accnp, name, case, inputs))[1]]


def gradient_quotients(name: str, case: CallLike, letter: str, place: int) -> list[float]:
    """Return difference quotients of the weighted sum of a result with respect to one number.

    They are the central quotient and those of the right and left side.
    """
    move = np.zeros(case.operands()[letter].shape)
    move.flat[place] = 1
    at = evaluate_along(name, case, {letter: move})

    def derivative(weights: dict[int, float]) -> float:
        return sum(
            weighted_quotient(at, weights, i) for i, x in enumerate(at(0)) if x.dtype.kind in "fc"
        )

    with np.errstate(all="ignore"):
        return [derivative(w) for w in STENCILS]


def jvp_quotients(
    name: str, case: CallLike, moves: dict[str, np.ndarray]
) -> list[list[np.ndarray]]:
    """Return difference quotients of all numbers of a result along `moves`: central, right and
    left.
    """
    at = evaluate_along(name, case, moves)

    def derivative(weights: dict[int, float]) -> list[np.ndarray]:
        return [
            difference_quotient(at, weights, i)[0]
            for i, x in enumerate(at(0))
            if x.dtype.kind in "fc"
        ]

    with np.errstate(all="ignore"):
        return [derivative(w) for w in STENCILS]


def difference_quotient(
    at: Callable[[int], list[Any]], weights: dict[int, float], i: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the difference quotients of one leaf, and where it changes; 0 where it does not
    change, also if it is infinite.
    """
    first = at(next(iter(weights)))[i]
    total, moves = np.zeros_like(first), np.zeros(first.shape, bool)
    for k, weight in weights.items():
        stays = (at(k)[i] == first) | (np.isnan(at(k)[i]) & np.isnan(first))
        total = total + weight * np.where(stays, 0, at(k)[i] - first)
        moves |= ~stays
    unknown = np.isnan(first) & ~moves  # as far as one can see
    return np.where(unknown, np.nan, total / STEP), moves


def weighted_quotient(at: Callable[[int], list[Any]], weights: dict[int, float], i: int) -> float:
    """Return the contribution of one leaf to the difference quotient of the weighted sum."""
    total, moves = difference_quotient(at, weights, i)
    if moves.any():
        total[np.isnan(total) & ~moves] = 0
    factors = np.cos(np.arange(total.size)).reshape(total.shape)
    sums = (total.real * factors).sum()
    if total.dtype.kind == "c":
        sums += (total.imag * (factors + 0.5)).sum()
    return float(sums)
