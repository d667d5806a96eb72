"""What the reference functions of LAPACK's ops share: a loop over the matrices of a batch, checks
of operands, and the rules for batches.

In: a function of single matrices. Out: one of batches, which may be empty. Matrices for which the
routine fails are NaN, as in jax.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.forks import load_extension
from accnp.ir.aval import Aval
from accnp.ir.node import Node, items
from accnp.ir.op import o
from accnp.primitives.kinds import broadcast_to, dtype_kind

__all__ = [
    "batched", "by_power", "each", "far_power", "inexact", "lapack_dtype", "real_dtype", "routine",
    "square",
]  # fmt: skip

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}  # with which names of routines begin
Result = tuple[tuple[int, ...], Any]  # shape and dtype


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the absolute values."""
    return np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype


def lapack_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which LAPACK computes."""
    return dtype if dtype.kind in "fc" and dtype.itemsize >= 4 else np.dtype(np.float32)


def routine(name: str, complex_name: str, like: np.ndarray) -> Any:
    """A routine of LAPACK, through SciPy, for matrices such as this one."""
    if like.dtype.kind == "c":
        name = complex_name
    return fortran_routine("_flapack", name, like.dtype)


def fortran_routine(library: str, name: str, dtype: np.dtype) -> Any:
    """A routine of SciPy's "_flapack" or "_fblas", for elements of a dtype that LAPACK has."""
    return getattr(load_extension(f"scipy.linalg.{library}"), _LETTERS[dtype.char] + name)


def far_power(x: Any) -> int:
    """The power of two that brings far too large or small numbers to at most 1; 0 for others.

    SciPy's geev (1.17) does not take the scale of eigenvalues back that it gives to matrices beyond
    1e12 and below 1e-12 in float32 (1e138), and stebz squares.
    """
    parts = (np.abs(part).max() for part in (x.real, x.imag))
    power = int(np.frexp(max(parts))[1])
    return power if abs(power) > 30 else 0


def by_power(x: Any, power: int) -> Any:
    """Numbers times a power of two, each part of complex ones alone."""
    if not power:
        return x
    real = np.ascontiguousarray(x).view(x.real.dtype)
    return np.ldexp(real, power).view(x.dtype)


def each(
    fn: Callable[..., Any], ranks: str, xs: Sequence[np.ndarray], results: Sequence[Result]
) -> tuple[np.ndarray, ...]:
    """Apply a function of single arrays, of these ranks, to each of a batch.

    `results` says shape and dtype of what it returns, a tuple, for one; None is a failure.
    """
    outer = xs[0].shape[: xs[0].ndim - int(ranks[0])]
    outs = tuple([np.zeros((*outer, *shape), dtype) for shape, dtype in results])
    if all(x.size for x in xs):
        with np.errstate(all="ignore"):
            for at in np.ndindex(*outer):
                found = fn(*[x[at] for x in xs])
                for i, out in enumerate(outs):
                    nan = complex(np.nan, np.nan) if out.dtype.kind == "c" else np.nan
                    out[at] = nan if found is None else found[i]
    return outs


def inexact(name: str, ranks: str, *avals: Aval) -> None:
    """Check operands: their ranks, equal batch axes, one floating or complex dtype."""
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
    """Check that these are square matrices of floating or complex numbers."""
    inexact(name, "2", a)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"{name}: needs square matrices in the last two axes; got {a.shape}; cut or pad them"
        )


def batched(name: str) -> Callable[..., Any]:
    """Make the rule for batches: leading axes are batches anyway."""

    def batch(size: int, xs: Any, flags: Any, p: dict[str, Any]) -> Any:
        wide: list[Node] = [
            x if f else broadcast_to(x, (size, *x.aval.shape))
            for x, f in zip(xs, flags, strict=True)
        ]
        out = getattr(o, name)(*wide, **p)
        if isinstance(out.aval, tuple):
            return list(items(out)), [True] * len(out.aval)
        return out, True

    return batch
