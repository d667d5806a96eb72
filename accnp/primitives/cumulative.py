"""Cumulative reductions along an axis: cumsum, cumprod, cummax, cummin, cumlogsumexp.

The reference functions add in the same order as the kernels (`compiler/library/scans/`), so that
both give the same bits: prefixes within groups of GROUP elements, joined with the prefixes of the
groups. The derivative rules run the same reduction on pairs of value and tangent (`prefix.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import OPS, Lowering, o
from accnp.primitives.kinds import check_axis, dtype_kind, like_full, opaque, wrong_dtype
from accnp.primitives.prefix import AssociativeFunction, prefixes
from accnp.primitives.reference import quiet

if TYPE_CHECKING:
    from accnp.ir.op_types import JvpRule, Operand, Params

__all__ = ["GROUP", "cumulative_dtype", "cumulative_group"]

GROUP = 4  # elements reduced separately, then joined: shortens the dependency chain by this factor


def cumulative_dtype(dtype: np.dtype, combine: str) -> np.dtype:
    """Return the dtype in which a cumulative reduction computes; at least float64 for sums."""
    if dtype.kind == "c":
        return np.dtype(np.complex128)
    if dtype.kind in "biu":
        return dtype
    wide = combine in ("sum", "prod") or dtype.itemsize > 4
    return np.dtype(np.float64 if wide else np.float32)


def cumulative_group(dtype: np.dtype, combine: str) -> int:
    """Return how many elements are reduced separately. It is 1 for complex128 products: their
    groups may overflow, and there is no vectorized check for that."""
    return 1 if combine == "prod" and dtype == np.complex128 else GROUP


def _make_prefixes(ufunc: np.ufunc, combine: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes prefixes in the kernels' order: within groups, then joined
    with the total of all groups before."""

    def prefixes_of(x: np.ndarray) -> np.ndarray:
        if cumulative_group(x.dtype, combine) == 1:
            return ufunc.accumulate(x, axis=-1, dtype=x.dtype)
        n, lead = x.shape[-1], x.shape[:-1]
        groups = -(-n // GROUP)
        padded = np.zeros((*lead, groups * GROUP), cumulative_dtype(x.dtype, combine))
        padded[..., :n] = x
        each = padded.reshape(*lead, groups, GROUP)
        part = ufunc.accumulate(each, axis=-1, dtype=padded.dtype)
        lost = _find_lost_groups(part) if combine == "prod" and x.dtype == np.float64 else None
        if lost is not None and lost[..., 1:, :].any():
            for g in range(1, groups):
                before: np.ndarray = part[..., g - 1, -1]
                joined: np.ndarray = ufunc(before[..., None], part[..., g, :])
                for k in range(GROUP):
                    after: np.ndarray = ufunc(before, each[..., g, k])
                    before = np.where(lost[..., g, k], after, joined[..., k])
                    part[..., g, k] = before
        elif groups > 1:
            whole = ufunc.accumulate(part[..., -1], axis=-1, dtype=padded.dtype)
            part[..., 1:, :] = ufunc(whole[..., :-1, None], part[..., 1:, :])
        return part.reshape(padded.shape)[..., :n]

    return prefixes_of


def _find_lost_groups(part: np.ndarray) -> np.ndarray:
    """Return for each element whether a product of several leading elements of its group, up to
    this element, was not a normal number."""
    size = np.abs(part)
    odd = ~((size >= np.finfo(part.dtype).tiny) & (size < np.inf))
    odd[..., 0] = False
    return np.logical_or.accumulate(odd, axis=-1)


def _declare(
    name: str,
    prefixes: Callable[[np.ndarray], np.ndarray],
    dtypes: str,
    jvp: JvpRule,
    transpose: Callable[..., tuple[Node]] | None = None,
    float0: bool | None = None,
) -> None:
    """Declare the prefixes along an axis, or its suffixes with `reverse`; `prefixes` computes those
    of the last axis."""

    def infer(x: Aval, *, axis: int, reverse: bool = False) -> Aval:
        if dtype_kind(x.dtype) not in dtypes:
            raise wrong_dtype(name, x.dtype, dtypes)
        check_axis(name, axis, x.ndim)
        return make_aval(x.shape, x.dtype, x.weak_type)

    def numpy(x: np.ndarray, *, axis: int, reverse: bool = False) -> np.ndarray:
        step = -1 if reverse else 1
        out = prefixes(np.moveaxis(x, axis, -1)[..., ::step])[..., ::step]
        return np.moveaxis(out, -1, axis).astype(x.dtype)

    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
    ) -> tuple[Node, bool]:
        return getattr(o, name)(xs[0], **{**p, "axis": p["axis"] + 1}), True

    opaque(
        name, lowering=Lowering(f"scans.cumulative.{name}", gpu=f"cupy.calls.{name}"),
        infer=infer, numpy=quiet(numpy), jvp=(jvp,), batch=batch, dtypes=dtypes,
        halves="float32", makes_nan=True, sharding="along_axis",
        transpose=transpose, float0=float0,
    )  # fmt: skip


def _declare_reduction(
    name: str,
    ufunc: np.ufunc,
    dtypes: str,
    jvp: JvpRule,
    transpose: Callable[..., tuple[Node]] | None = None,
) -> None:
    _declare(name, _make_prefixes(ufunc, name[3:]), dtypes, jvp, transpose, float0=False)


def _prefix_jvp(combine: AssociativeFunction) -> Callable[..., Node]:
    """Return the JVP rule of a cumulative reduction: prefixes of pairs (value, tangent)."""

    def rule(t: Node, y: Node, x: Node, *, axis: int, reverse: bool = False) -> Node:
        return prefixes(combine, [x, t], axis, reverse)[1]

    return rule


def _combine_pairs(op: str) -> AssociativeFunction:
    """Return a function that applies a binary op to pairs (value, tangent)."""

    def combine(a: list[Node], b: list[Node]) -> list[Node]:
        (x, t), (z, u) = a, b
        y = getattr(o, op)(x, z)
        left, right = OPS[op].jvp
        return [y, o.add(left(t, y, x, z), right(u, y, x, z))]

    return combine


def _logaddexp(a: list[Node], b: list[Node]) -> list[Node]:
    """Return the logarithm of the sum of two exponentials, for pairs (value, tangent)."""
    (x, t), (z, u) = a, b
    gap = o.neg(o.abs(o.sub(x, z)))
    larger = o.add(o.max(x, z), o.log1p(o.exp(gap)))
    same = o.eq(x, z)  # includes the case that both are infinite
    y = o.select_n(same, larger, o.add(x, like_full(x, math.log(2))))

    def finite(v: Node) -> Node:
        return o.select_n(o.eq(v, like_full(v, math.inf)), v, like_full(v, 0))

    def weight(v: Node) -> Node:
        return o.exp(o.sub(finite(v), finite(y)))

    return [y, o.add(o.mul(t, weight(x)), o.mul(u, weight(z)))]


def _log_sums(x: np.ndarray) -> np.ndarray:
    # A sum of zeros, log(1) + -0.0, is 0.0, also where NumPy takes an element as it is.
    return np.logaddexp.accumulate(x.astype(np.float64), axis=-1) + 0.0


def _sum_jvp(t: Node, y: Node, x: Node, *, axis: int, reverse: bool = False) -> Node:
    return o.cumsum(t, axis=axis, reverse=reverse)


def _sum_transpose(ct: Node, x: Operand, *, axis: int, reverse: bool = False) -> tuple[Node]:
    return (o.cumsum(ct, axis=axis, reverse=not reverse),)


_declare_reduction("cumsum", np.add, "iufc", _sum_jvp, _sum_transpose)
_declare_reduction("cumprod", np.multiply, "iufc", _prefix_jvp(_combine_pairs("mul")))
_declare_reduction("cummax", np.maximum, "iufc", _prefix_jvp(_combine_pairs("max")))
_declare_reduction("cummin", np.minimum, "iufc", _prefix_jvp(_combine_pairs("min")))
_declare("cumlogsumexp", _log_sums, "f", _prefix_jvp(_logaddexp))
