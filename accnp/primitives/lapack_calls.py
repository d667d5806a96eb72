"""Shared helpers of ops whose reference functions call LAPACK: loop over batches, checks, batching.

`map_batch` turns a function of matrices into one of batches, which may be empty; results are NaN
for matrices for which the routine fails, as in JAX. `inexact` and `square` check operands in type
rules, and `batched` is the batching rule. `decompositions.py`, `eigen.py`, `linalg.py` and others
use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.lazy_imports import load_extension
from accnp.primitives.kinds import broadcast_to, dtype_kind

if TYPE_CHECKING:
    from accnp.dtypes.names import DTypeLike
    from accnp.ir.op_types import Batched, Params

__all__ = [
    "batched", "inexact", "lapack_dtype", "map_batch", "real_dtype", "routine", "scale_by_power",
    "scaling_power", "square",
]  # fmt: skip

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}  # first letter of routine names, by dtype char
Result = tuple[tuple[int, ...], "DTypeLike"]  # shape and dtype


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of absolute values."""
    return np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype


def lapack_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which LAPACK computes."""
    return dtype if dtype.kind in "fc" and dtype.itemsize >= 4 else np.dtype(np.float32)


def routine(name: str, complex_name: str, like: np.ndarray) -> Callable[..., Any]:
    """Return a LAPACK routine from SciPy for matrices with the dtype of `like`."""
    if like.dtype.kind == "c":
        name = complex_name
    return fortran_routine("_flapack", name, like.dtype)


def fortran_routine(library: str, name: str, dtype: np.dtype) -> Callable[..., Any]:
    """Return a routine of SciPy's "_flapack" or "_fblas" for a dtype that LAPACK supports."""
    return getattr(load_extension(f"scipy.linalg.{library}"), _LETTERS[dtype.char] + name)


def scaling_power(x: np.ndarray) -> int:
    """Return the power of two that scales very large or small numbers to at most 1, otherwise 0.

    SciPy 1.17's geev scales matrices beyond 1e12 or below 1e-12 (float32; 1e138 in float64) but
    does not scale the eigenvalues back, and stebz squares its input.
    """
    parts = (np.abs(part).max() for part in (np.real(x), np.imag(x)))
    power = int(np.frexp(max(parts))[1])
    return power if abs(power) > 30 else 0


def scale_by_power(x: np.ndarray, power: int) -> np.ndarray:
    """Multiply numbers by a power of two, the parts of complex numbers separately."""
    if not power:
        return x
    real = np.ascontiguousarray(x).view(np.real(x).dtype)
    return np.ldexp(real, power).view(x.dtype)


def map_batch(
    fn: Callable[..., Sequence[np.ndarray] | None],
    ranks: str,
    xs: Sequence[np.ndarray],
    results: Sequence[Result],
) -> tuple[np.ndarray, ...]:
    """Apply a function of single arrays with these ranks to each element of a batch.

    `results` contains the shape and dtype of each of its results for one element. The function
    returns a tuple, or None if it failed.
    """
    outer = xs[0].shape[: xs[0].ndim - int(ranks[0])]
    outs = tuple([np.zeros((*outer, *shape), dtype) for shape, dtype in results])
    if all(x.size for x in xs):
        with np.errstate(all="ignore"):
            for at in np.ndindex(*outer):
                row_results = fn(*[x[at] for x in xs])
                for i, out in enumerate(outs):
                    nan = complex(np.nan, np.nan) if out.dtype.kind == "c" else np.nan
                    out[at] = nan if row_results is None else row_results[i]
    return outs


def inexact(name: str, ranks: str, *avals: Aval) -> None:
    """Check operands: their ranks, equal batch axes, and the same floating or complex dtype."""
    for i, (a, rank) in enumerate(zip(avals, ranks, strict=True)):
        if a.ndim < int(rank):
            raise TypeError(
                f"{name}: operand {i} needs at least {rank} axes; got shape {a.shape}; add axes"
            )
        if dtype_kind(a.dtype) not in "fc":
            raise TypeError(
                f"{name}: operand {i} must be floating or complex; got {a.dtype.name}; "
                "convert with astype"
            )
        if a.dtype != avals[0].dtype:
            raise TypeError(
                f"{name}: operands need one dtype; got {avals[0].dtype.name} and {a.dtype.name}; "
                "convert with astype"
            )
    outer = [a.shape[: a.ndim - int(rank)] for a, rank in zip(avals, ranks, strict=True)]
    if any(shape != outer[0] for shape in outer):
        kind = TypeError if len({len(shape) for shape in outer}) > 1 else ValueError
        shapes = [a.shape for a in avals]
        raise kind(f"{name}: operands need equal batch axes; got shapes {shapes}; broadcast them")


def square(name: str, a: Aval) -> None:
    """Check that an operand consists of square matrices of floating or complex numbers."""
    inexact(name, "2", a)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"{name}: needs square matrices in the last two axes; got {a.shape}; cut or pad them"
        )


def batched(name: str) -> Callable[..., Batched]:
    """Return the batching rule of an op whose leading axes are batches already."""

    def batch(size: int, xs: Sequence[Node], flags: Sequence[bool], p: Params) -> Batched:
        wide: list[Node] = [
            x if f else broadcast_to(x, (size, *x.aval.shape))
            for x, f in zip(xs, flags, strict=True)
        ]
        out = getattr(o, name)(*wide, **p)
        if isinstance(out.aval, tuple):
            results = items(out)
            return results, [True] * len(results)
        return out, True

    return batch


def uses_qr(algorithm: Enum | None) -> bool:
    """Return whether the parameter `algorithm` of `svd` asks for the QR iteration."""
    return algorithm is not None and algorithm.name == "QR"
