"""Reductions of windows: sums, maxima and minima, and the ops in their derivatives.

`select_and_gather_add` selects from each window of one array the element at the position where
another array has its extreme value (the first one for ties); `select_and_scatter_add` adds to such
elements. `select_prim` is "ge" for the largest and "le" for the smallest value. The kernels are in
`compiler/library/windows/pooling.py`; `lax.reduce_window` (`lax/user_reductions.py`) uses the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import ZERO, Lowering, o
from accnp.primitives.kinds import broadcast_to, dtype_kind, opaque, wrong_dtype
from accnp.primitives.monoids import largest_value, smallest_value
from accnp.primitives.reference import quiet
from accnp.primitives.windows import Window, dilated_length, extract_windows

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params

__all__ = ["windows_over"]


def windows_over(shape: Sequence[int], p: Params) -> list[Window]:
    """Return the window of each axis."""
    return [
        Window(n, taps, stride, low, high, base, dilation)
        for n, taps, stride, (low, high), base, dilation in zip(
            shape,
            p["window_dimensions"],
            p["window_strides"],
            p["padding"],
            p["base_dilation"],
            p["window_dilation"],
            strict=True,
        )
    ]


def _pooled_shape(shape: Sequence[int], p: Params) -> tuple[int, ...]:
    return tuple(w.places for w in windows_over(shape, p))


def _infer(name: str, dtypes: str) -> Callable[..., Aval]:
    def infer(x: Aval, **p: object) -> Aval:
        if dtype_kind(x.dtype) not in dtypes:
            raise wrong_dtype(name, x.dtype, dtypes)
        return make_aval(_pooled_shape(x.shape, p), x.dtype, x.weak_type)

    return infer


def _batched_params(p: Params) -> Params:
    one = {k: (1, *p[k]) for k in p if k.startswith("window") or k == "base_dilation"}
    return {**p, **one, "padding": ((0, 0), *p["padding"])}


def _batch(name: str) -> Callable[..., tuple[Node, bool]]:
    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
    ) -> tuple[Node, bool]:
        whole = [
            x if b else broadcast_to(x, (size, *x.aval.shape))
            for x, b in zip(xs, batched, strict=True)
        ]
        return getattr(o, name)(*whole, **_batched_params(p)), True

    return batch


def _taps_last(x: np.ndarray, p: Params, fill: float) -> np.ndarray:
    """Return all windows of an array, with their taps as a single last axis."""
    windows = extract_windows(x, windows_over(x.shape, p), fill)
    return windows.reshape(*windows.shape[: x.ndim], -1)


# --- reductions ----------------------------------------------------------------------------------


def _sum_numpy(x: np.ndarray, **p: object) -> np.ndarray:
    half = dtype_kind(x.dtype) == "f" and x.dtype.itemsize < 4
    out = _taps_last(x.astype(np.float32) if half else x, p, 0)
    return np.add.reduce(out, axis=-1, dtype=out.dtype).astype(x.dtype, copy=False)


def _sum_jvp(t: Node, y: Node, x: Node, **p: object) -> Node:
    return o.reduce_window_sum(t, **p)


def _sum_transpose(ct: Node, x: Operand, **p: object) -> tuple[Node]:
    """Give each element the sum over the windows that contain it, which is a window sum of the
    cotangent, dilated by the strides."""
    pads: list[tuple[int, int]] = []
    for w in windows_over(x.aval.shape, p):
        before = dilated_length(w.taps, w.dilation) - 1 - w.low
        room = dilated_length(w.size, w.base) + dilated_length(w.taps, w.dilation) - 1
        pads.append((before, room - dilated_length(w.places, w.stride) - before))
    changed = {
        "padding": tuple(pads),
        "base_dilation": p["window_strides"],
        "window_strides": p["base_dilation"],
    }
    return (o.reduce_window_sum(ct, **{**p, **changed}),)


opaque(
    "reduce_window_sum",
    lowering=Lowering("windows.pooling.window_sum"),
    infer=_infer("reduce_window_sum", "iufc"),
    numpy=quiet(_sum_numpy),
    jvp=(_sum_jvp,),
    transpose=_sum_transpose,
    batch=_batch("reduce_window_sum"),
    halves="float32",
    makes_nan=True,
)


def _declare_extreme(
    name: str, select: str, identity: Callable[[np.dtype], float], ufunc: np.ufunc
) -> None:
    def numpy(x: np.ndarray, **p: object) -> np.ndarray:
        return ufunc.reduce(_taps_last(x, p, identity(x.dtype)), axis=-1)

    def tangent(t: Node, y: Node, x: Node, **p: object) -> Node:
        return o.select_and_gather_add(t, x, select_prim=select, **p)

    opaque(
        name,
        lowering=Lowering(f"windows.pooling.{name.removeprefix('reduce_')}"),
        infer=_infer(name, "biuf"),
        numpy=quiet(numpy),
        jvp=(tangent,),
        batch=_batch(name),
        halves="float32",
    )


_declare_extreme("reduce_window_max", "ge", smallest_value, np.maximum)
_declare_extreme("reduce_window_min", "le", largest_value, np.minimum)


# --- derivatives of maxima and minima ------------------------------------------------------------


def _extreme_taps(x: np.ndarray, select_prim: str, p: Params) -> np.ndarray:
    """Return the tap number of each window's extreme value, as a last axis of length 1."""
    if select_prim == "ge":
        return np.argmax(_taps_last(x, p, smallest_value(x.dtype)), axis=-1)[..., None]
    return np.argmin(_taps_last(x, p, largest_value(x.dtype)), axis=-1)[..., None]


def _gather_numpy(t: np.ndarray, x: np.ndarray, *, select_prim: str, **p: object) -> np.ndarray:
    taps = _taps_last(t, p, 0)
    return np.take_along_axis(taps, _extreme_taps(x, select_prim, p), -1)[..., 0]


def _scatter_numpy(ct: np.ndarray, x: np.ndarray, *, select_prim: str, **p: object) -> np.ndarray:
    places = np.arange(1, x.size + 1).reshape(x.shape)  # 0: no element
    where = np.take_along_axis(_taps_last(places, p, 0), _extreme_taps(x, select_prim, p), -1)
    out = np.zeros(x.size + 1, ct.dtype)
    np.add.at(out, where.ravel(), ct.ravel())
    return out[1:].reshape(x.shape)


def _gather_infer(t: Aval, x: Aval, *, select_prim: str, **p: object) -> Aval:
    return make_aval(_pooled_shape(x.shape, p), t.dtype, t.weak_type)


def _scatter_infer(ct: Aval, x: Aval, *, select_prim: str, **p: object) -> Aval:
    return make_aval(x.shape, ct.dtype, ct.weak_type)


def _gather_jvp(t: Node, y: Node, u: Node, x: Node, **p: object) -> Node:
    return o.select_and_gather_add(t, x, **p)


def _gather_transpose(ct: Node, t: Operand, x: Node, **p: object) -> tuple[Node, None]:
    return o.select_and_scatter_add(ct, x, **p), None


def _scatter_jvp(t: Node, y: Node, ct: Node, x: Node, **p: object) -> Node:
    return o.select_and_scatter_add(t, x, **p)


def _scatter_transpose(ct: Node, u: Operand, x: Node, **p: object) -> tuple[Node, None]:
    return o.select_and_gather_add(ct, x, **p), None


def _show_scatter(p: Params) -> Params:
    """Print parameters as JAX does, whose op has no dilations."""
    plain = all(d == 1 for k in ("base_dilation", "window_dilation") for d in p[k])
    return {k: v for k, v in p.items() if not (plain and k.endswith("dilation"))}


opaque(
    "select_and_gather_add",
    lowering=Lowering("windows.pooling.gather_extremes"),
    infer=_gather_infer,
    numpy=_gather_numpy,
    jvp=(_gather_jvp, ZERO),
    transpose=_gather_transpose,
    batch=_batch("select_and_gather_add"),
)
opaque(
    "select_and_scatter_add",
    lowering=Lowering("windows.pooling.scatter_extremes"),
    infer=_scatter_infer,
    numpy=_scatter_numpy,
    jvp=(_scatter_jvp, ZERO),
    transpose=_scatter_transpose,
    batch=_batch("select_and_scatter_add"),
    show=_show_scatter,
)
