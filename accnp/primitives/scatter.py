"""The scatter ops: scatter (the last write wins), scatter_add, _mul, _min and _max.

The operands are the array, integer start indices and updates. Windows that are out of bounds are
dropped (or moved inside in clip mode), and duplicates are applied in the order of the updates. The
classes for parameters are in `index.py`, and the kernels in `compiler/library/indexing/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from accnp.errors import UnsupportedDtypeError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Linear, Lowering, o
from accnp.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    Windows,
    batched_dims,
    gather_positions,
    layout_of,
    window_axes,
)
from accnp.primitives.kinds import broadcast_to, dtype_kind, full, opaque, zeros_like_aval
from accnp.primitives.reference import quiet
from accnp.primitives.sort import gather_permuted, permutation_of

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params

__all__ = ["window_sizes"]

if TYPE_CHECKING:

    class _Scatter(TypedDict):
        """The static parameters of scatters."""

        dimension_numbers: ScatterDimensionNumbers
        indices_are_sorted: bool
        unique_indices: bool
        mode: GatherScatterMode


def window_sizes(
    shape: Sequence[int], updates: Sequence[int], dims: ScatterDimensionNumbers
) -> tuple[int, ...]:
    """Return the size of a window along each axis of the operand."""
    sizes = iter([updates[d] for d in dims.update_window_dims])
    axes = window_axes(len(shape), dims)
    return tuple([next(sizes) if d in axes else 1 for d in range(len(shape))])


def _infer(name: str) -> Callable[..., Aval]:
    def infer(x: Aval, starts: Aval, updates: Aval, **p: Unpack[_Scatter]) -> Aval:
        dims = p["dimension_numbers"]
        if x.dtype != updates.dtype:
            raise TypeError(
                f"lax.{name}: operand and updates need one dtype; "
                f"got {x.dtype.name} and {updates.dtype.name}; convert with astype"
            )
        if dtype_kind(starts.dtype) not in "iu":
            raise UnsupportedDtypeError(
                f"{name}: indices must be integers; got {starts.dtype.name}; "
                "convert with astype(int)"
            )
        if len(window_axes(x.ndim, dims)) != len(dims.update_window_dims):
            raise TypeError(
                f"{name}: update_window_dims do not fit shape {x.shape}; got {dims}; "
                "name axes of the updates"
            )
        outer = [n for d, n in enumerate(updates.shape) if d not in dims.update_window_dims]
        if tuple(outer) != starts.shape[:-1]:
            raise TypeError(
                f"{name}: the updates do not fit the indices; got shapes {updates.shape} and "
                f"{starts.shape}; make their axes outside the windows {starts.shape[:-1]}"
            )
        sizes = window_sizes(x.shape, updates.shape, dims)
        if any(s > n for s, n in zip(sizes, x.shape, strict=True)) and starts.size:
            raise TypeError(
                f"{name}: the updates do not fit into shape {x.shape}; got windows of shape "
                f"{tuple(sizes)}; pass smaller updates"
            )
        return make_aval(x.shape, x.dtype, x.weak_type)

    return infer


def _numpy(combine: np.ufunc | None) -> Callable[..., np.ndarray]:
    def run(
        x: np.ndarray,
        starts: np.ndarray,
        updates: np.ndarray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
    ) -> np.ndarray:
        dims = dimension_numbers
        out = np.array(x, order="C")
        if not updates.size or not x.size:
            return out
        sizes = window_sizes(x.shape, updates.shape, dims)
        p = gather_positions(x.shape, starts, sizes, dims, mode)
        layout = layout_of(p, dims.update_window_dims, window_axes(x.ndim, dims), updates.ndim)
        u = updates.transpose(np.argsort(layout))  # axes: starts, windowed, whole
        target = out.transpose(p.order)
        if not p.indices:  # all windows cover the whole operand
            each = u.reshape(-1, *target.shape)
            inside = np.ones(len(each), bool) if p.inside is None else p.inside.reshape(-1)
            for one in each[inside]:
                target[...] = one if combine is None else combine(target, one)
            return out
        n = len(p.indices)
        at = np.broadcast_arrays(*p.indices)
        at = [np.broadcast_to(a, u.shape[: u.ndim - len(p.whole)]) for a in at]
        if p.inside is not None:
            keep = np.broadcast_to(
                p.inside.reshape(p.inside.shape + (1,) * len(p.windowed)), at[0].shape
            )
            at, u = [a[keep] for a in at], u[keep]
        if combine is None:
            target[tuple(at)] = u
            return out
        if unique_indices:
            target[tuple(at)] = combine(target[tuple(at)], u)
            return out
        _combine_sequentially(combine, target, at, u, n)
        return out

    return quiet(run)


def _combine_sequentially(
    combine: np.ufunc, target: np.ndarray, at: Sequence[np.ndarray], u: np.ndarray, n: int
) -> None:
    """Combine one by one through flat indices, for which ufunc.at has a fast path."""
    base = np.ravel_multi_index(tuple(at), target.shape[:n])
    rest = prod(target.shape[n:])
    flat = np.ascontiguousarray(target).reshape(-1)
    index = (base.reshape(-1, 1) * rest + np.arange(rest)).reshape(-1)
    combine.at(flat, index, np.ascontiguousarray(u).reshape(-1))
    target[...] = flat.reshape(target.shape)


def _batch(name: str) -> Callable[..., tuple[Node, bool]]:
    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
    ) -> tuple[Node, bool]:
        x, starts, updates = xs
        if not batched[0]:
            x = broadcast_to(x, (size, *x.aval.shape))
        if not batched[2]:
            updates = broadcast_to(updates, (size, *updates.aval.shape))
        dims = batched_dims(p["dimension_numbers"], True, batched[1])
        return getattr(o, name)(x, starts, updates, **{**p, "dimension_numbers": dims}), True

    return batch


def _gather_windows(
    x: Node, like: Operand, starts: Node, p: Mapping[str, Any], fill: float = 0
) -> Node:
    """Gather from x the windows that a scatter with these parameters writes."""
    dims = p["dimension_numbers"]
    return o.gather(
        x,
        starts,
        dimension_numbers=GatherDimensionNumbers(*dims),
        slice_sizes=window_sizes(x.aval.shape, like.aval.shape, dims),
        indices_are_sorted=p["indices_are_sorted"],
        unique_indices=p["unique_indices"],
        mode=p["mode"],
        fill_value=fill,
    )


def _instantiate(ts: Sequence[Node | None], xs: Sequence[Node]) -> tuple[Node, Node] | None:
    if ts[0] is None and ts[2] is None:
        return None
    t, u = (
        zeros_like_aval(x.aval) if v is None else v for v, x in zip(ts[::2], xs[::2], strict=True)
    )
    return t, u


# --- scatter -------------------------------------------------------------------------------------


def _scatter_jvp(ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params) -> Node | None:
    # Duplicates are written in the same order for values and tangents, so the same update wins.
    both = _instantiate(ts, xs)
    return None if both is None else o.scatter(both[0], xs[1], both[1], **p)


def _scatter_transpose(
    ct: Node, x: Operand, starts: Node, updates: Operand, **p: Unpack[_Scatter]
) -> tuple[Node | None, ...]:
    ct_x = ct_u = None
    if isinstance(x, Linear):
        ct_x = o.scatter(ct, starts, zeros_like_aval(updates.aval), **p)
    if isinstance(updates, Linear):
        ct_u = _gather_windows(ct, updates, starts, p)
        if not p["unique_indices"]:  # only the update that won gets a cotangent
            shape = updates.aval.shape
            kind = np.dtype(np.int32)
            flat = o.iota(dtype=kind, shape=(prod(shape),), dimension=0)
            number = o.reshape(flat, new_sizes=shape, dimensions=None)
            last = o.scatter(full(x.aval.shape, -1, kind), starts, number, **p)
            won = o.eq(_gather_windows(last, updates, starts, p, -1), number)
            ct_u = o.select_n(won, zeros_like_aval(ct_u.aval), ct_u)
    return ct_x, None, ct_u


def _scattered_windows(xs: Sequence[Node], p: Params) -> Windows:
    dims = p["dimension_numbers"]
    axes = tuple(dims.scatter_dims_to_operand_dims)
    dropped = {*dims.inserted_window_dims, *getattr(dims, "operand_batching_dims", ())}
    windows = iter(dims.update_window_dims)
    shape = xs[0].aval.shape
    sizes = [1 if d in dropped else xs[2].aval.shape[next(windows)] for d in range(len(shape))]
    return xs[1], axes, [shape[d] - sizes[d] for d in axes]


def _declare(
    name: str,
    combine: str | None,
    numpy: np.ufunc | None,
    jvp: Callable[..., Node | None],
    transpose: Callable[..., tuple[Node | None, ...]] | None = None,
    additive: bool = False,
) -> None:
    """Declare a scatter. `combine` is the reduction that combines a new value with an old one."""
    opaque(
        name,
        lowering=Lowering(f"indexing.scatters.{name if combine else 'scatter_set'}"),
        infer=_infer(name),
        halves="own",
        updated_operand=0,
        numpy=_numpy(numpy),
        batch=_batch(name),
        indexing="scatter",
        windows=_scattered_windows,
        combine=combine,
        makes_nan=True,
        jax_name=name.replace("_", "-"),
        jvp=jvp,
        transpose=transpose,
        additive=additive,
    )


_declare("scatter", None, None, jvp=_scatter_jvp, transpose=_scatter_transpose, additive=True)


# --- scatter_add ---------------------------------------------------------------------------------


def _add_jvp(ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params) -> Node | None:
    both = _instantiate(ts, xs)
    return None if both is None else o.scatter_add(both[0], xs[1], both[1], **p)


def _add_transpose(
    ct: Node, x: Operand, starts: Node, updates: Operand, **p: Unpack[_Scatter]
) -> tuple[Node | None, ...]:
    return (
        ct if isinstance(x, Linear) else None,
        None,
        _gather_windows(ct, updates, starts, p) if isinstance(updates, Linear) else None,
    )


_declare("scatter_add", "sum", np.add, _add_jvp, _add_transpose, additive=True)


# --- scatter_mul, _min, _max ---------------------------------------------------------------------


def _products_of_others(x: Node, starts: Node, updates: Node, p: Params) -> Node:
    """For each factor, return the product of all other factors with the same target.

    Factors of a target are made neighbors by sorting. Running products from both sides take log2(n)
    steps, in each of which the distance doubles. There is no division, so zeros are no problem.
    """
    kind, shape, n = np.dtype(np.int32), updates.aval.shape, updates.aval.size
    count = o.iota(dtype=kind, shape=(x.aval.size,), dimension=0)
    place = o.reshape(count, new_sizes=x.aval.shape, dimensions=None)
    place = o.reshape(
        _gather_windows(place, updates, starts, p, -1), new_sizes=(n,), dimensions=None
    )
    order = permutation_of([place], 0)
    place = gather_permuted(place, order, 0)
    factors = o.reshape(updates, new_sizes=(n,), dimensions=None)
    factors = gather_permuted(factors, order, 0)
    one = full((), 1, updates.aval.dtype)
    nowhere = full((), -2, kind)

    def moved(v: Node, fill: Node, by: int) -> Node:
        return o.pad(v, fill, padding_config=((by, -by, 0),))

    def so_far(sign: int) -> Node:
        same = o.eq(place, moved(place, nowhere, sign))
        run = o.select_n(same, full((n,), 1, one.aval.dtype), moved(factors, one, sign))
        step = 1
        while step < n:
            by = sign * step
            same = o.eq(place, moved(place, nowhere, by))
            run = o.mul(run, o.select_n(same, full((n,), 1, one.aval.dtype), moved(run, one, by)))
            step *= 2
        return run

    products = o.mul(so_far(1), so_far(-1))
    back = permutation_of([order], 0)
    return o.reshape(gather_permuted(products, back, 0), new_sizes=shape, dimensions=None)


def _mul_jvp(ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params) -> Node | None:
    x, starts, updates = xs
    out = None if ts[0] is None else o.scatter_mul(ts[0], starts, updates, **p)
    if ts[2] is not None:
        t = ts[2]
        if not p["unique_indices"]:
            t = o.mul(t, _products_of_others(x, starts, updates, p))
        part = o.mul(x, o.scatter_add(zeros_like_aval(x.aval), starts, t, **p))
        out = part if out is None else o.add(out, part)
    return out


def _mul_transpose(
    ct: Node, x: Operand, starts: Node, updates: Operand, **p: object
) -> tuple[Node, None, None]:
    return o.scatter_mul(ct, starts, updates, **p), None, None


_declare("scatter_mul", "prod", np.multiply, jvp=_mul_jvp, transpose=_mul_transpose)


def _extreme_jvp(ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params) -> Node | None:
    """Return the mean of the tangents of the operand and the updates that attain the extreme."""
    both = _instantiate(ts, xs)
    if both is None:
        return None
    x, starts, updates = xs
    kind = x.aval.dtype
    mine = o.convert_element_type(o.eq(x, y), new_dtype=kind, weak_type=False)
    hit = o.eq(updates, _gather_windows(y, updates, starts, p))
    theirs = o.convert_element_type(hit, new_dtype=kind, weak_type=False)
    add = {**p}
    count = o.scatter_add(mine, starts, theirs, **add)
    # Nothing is equal to a nan, so the count is 0 and no tangent passes.
    count = o.max(count, full((), 1, kind))
    total = o.scatter_add(o.mul(mine, both[0]), starts, o.mul(theirs, both[1]), **add)
    return o.div(total, count)


_declare("scatter_min", "min", np.minimum, jvp=_extreme_jvp)
_declare("scatter_max", "max", np.maximum, jvp=_extreme_jvp)
