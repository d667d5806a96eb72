"""Ops that assemble their output from regions of their operands: `concatenate` and `pad`.

A `parts` rule returns triples (operand number, in_view, out_view), which say which operand fills
which region. A view is (shape, strides, offset) in elements, within the operand (as if it were
contiguous) or within the output. Fusion stores other kernels' results directly into such regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.errors import IncompatibleShapesError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Linear, Lowering, Op, o, register
from accnp.primitives.kinds import broadcast_to, dtypes_differ, full, zeros_like_aval
from accnp.primitives.views import Strided, contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params, Tangents

# --- concatenate ---

# The number of the operand that fills a region of the output, and how both lie in memory.
Part = tuple[int, Strided, Strided]


def _concat_infer(*xs: Aval, dimension: int) -> Aval:
    first = xs[0]
    for x in xs:
        if x.ndim != first.ndim or any(
            i != dimension and n != m
            for i, (n, m) in enumerate(zip(x.shape, first.shape, strict=True))
        ):
            shapes = ", ".join(str(v.shape) for v in xs)
            raise TypeError(
                "concatenate: Cannot concatenate arrays with shapes that differ in dimensions "
                f"other than the one being concatenated; got shapes {shapes} and axis {dimension}; "
                "slice or pad them"
            )
        if x.dtype != first.dtype:
            raise dtypes_differ("lax.concatenate", xs)
    total = sum(x.shape[dimension] for x in xs)
    shape = (*first.shape[:dimension], total, *first.shape[dimension + 1 :])
    return make_aval(shape, first.dtype, all(x.weak_type for x in xs))


def _concat_parts(avals: Sequence[Aval], params: Params) -> list[Part]:
    d: int = params["dimension"]
    out = _concat_infer(*avals, **params)
    strides = contiguous(out.shape)
    at, parts = 0, list[Part]()
    for k, x in enumerate(avals):
        parts.append((k, (x.shape, contiguous(x.shape), 0), (x.shape, strides, at * strides[d])))
        at += x.shape[d]
    return parts


def _concat_jvp(ts: Tangents, y: Node, xs: Sequence[Node], params: Params) -> Node | None:
    whole = [zeros_like_aval(x.aval) if t is None else t for t, x in zip(ts, xs, strict=True)]
    return o.concatenate(*whole, **params)


def _concat_transpose(ct: Node, *xs: Operand, dimension: int) -> tuple[Node | None, ...]:
    at, out = 0, list[Node | None]()
    for x in xs:
        n = x.aval.shape[dimension]
        if isinstance(x, Linear):
            start = [0] * ct.aval.ndim
            limit = list(ct.aval.shape)
            start[dimension], limit[dimension] = at, at + n
            out.append(
                o.slice(ct, start_indices=tuple(start), limit_indices=tuple(limit), strides=None)
            )
        else:
            out.append(None)
        at += n
    return tuple(out)


def _concat_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
) -> tuple[Node, bool]:
    whole = [
        x if b else broadcast_to(x, (size, *x.aval.shape)) for x, b in zip(xs, batched, strict=True)
    ]
    return o.concatenate(*whole, dimension=params["dimension"] + 1), True


def _concat_numpy(*xs: np.ndarray, dimension: int) -> np.ndarray:
    return np.concatenate(xs, dimension)


CONCATENATE = register(
    Op(
        "concatenate",
        "assemble",
        _concat_infer,
        numpy=_concat_numpy,
        jvp=_concat_jvp,
        transpose=_concat_transpose,
        batch=_concat_batch,
        additive=True,
        parts=_concat_parts,
        sharding="concatenate",
    )
)


# --- pad ---


def _pad_infer(x: Aval, value: Aval, *, padding_config: Sequence[tuple[int, int, int]]) -> Aval:
    if x.dtype != value.dtype:
        raise dtypes_differ("lax.pad", (x, value))
    if len(padding_config) != x.ndim or value.ndim != 0:
        raise IncompatibleShapesError(
            f"pad: padding_config needs one (low, high, interior) for each axis of shape {x.shape} "
            f"and a rank-0 padding value; got {padding_config} and shape {value.shape}; "
            "pass three integers for each axis"
        )
    shape: list[int] = []
    for n, (lo, hi, mid) in zip(x.shape, padding_config, strict=True):
        m = lo + hi + n + max(0, n - 1) * mid
        if m < 0 or mid < 0:
            raise ValueError(
                f"pad: a size would become negative; got {padding_config} for shape "
                f"{x.shape}; cut off less"
            )
        shape.append(m)
    return make_aval(tuple(shape), x.dtype, x.weak_type and value.weak_type)


def pad_regions(
    x: Aval, params: Params, src: tuple[int, ...] | None = None
) -> tuple[Aval, Strided, Strided]:
    """Return the output aval and the matching regions of x and the output (negative padding crops).
    `src` are the strides of x if it is not contiguous."""
    value = make_aval((), x.dtype)
    out = _pad_infer(x, value, **params)
    src, dst = src or contiguous(x.shape), contiguous(out.shape)
    shape, in_off, out_off, steps = list[int](), 0, 0, list[int]()
    for d, (lo, _, mid) in enumerate(params["padding_config"]):
        n, m, k = x.shape[d], out.shape[d], mid + 1
        first = 0 if lo >= 0 else -(lo // k)  # first element with an output index >= 0
        at = lo + first * k
        count = max(0, min(n - first, -(-(m - at) // k)))
        shape.append(count)
        in_off += first * src[d]
        out_off += at * dst[d]
        steps.append(dst[d] * k)
    return out, (tuple(shape), src, in_off), (tuple(shape), tuple(steps), out_off)


def _pad_parts(avals: Sequence[Aval], params: Params) -> list[Part]:
    out, src, dst = pad_regions(avals[0], params)
    fill = (1, (out.shape, (0,) * out.ndim, 0), (out.shape, contiguous(out.shape), 0))
    return [fill, (0, src, dst)]


def _pad_numpy(
    x: np.ndarray, value: np.ndarray | np.generic, *, padding_config: Sequence[tuple[int, int, int]]
) -> np.ndarray:
    aval = make_aval(x.shape, x.dtype)
    out, (shape, st, off), (_, dst, at) = pad_regions(aval, {"padding_config": padding_config})
    y = np.full(out.shape, value, x.dtype)
    if prod(shape):
        size = x.dtype.itemsize
        flat, target = np.ascontiguousarray(x).reshape(-1), y.reshape(-1)
        a = np.lib.stride_tricks.as_strided(flat[off:], shape, [v * size for v in st])
        b = np.lib.stride_tricks.as_strided(target[at:], shape, [v * size for v in dst])
        b[...] = a
    return y


def _pad_jvp(ts: Tangents, y: Node, xs: Sequence[Node], params: Params) -> Node | None:
    t, v = (zeros_like_aval(x.aval) if t is None else t for t, x in zip(ts, xs, strict=True))
    return o.pad(t, v, **params)


def _pad_transpose(
    ct: Node, x: Operand, value: Operand, *, padding_config: Sequence[tuple[int, int, int]]
) -> tuple[Node | None, Node | None]:
    zero = full((), 0, ct.aval.dtype)
    cropped = tuple((-lo, -hi, 0) for lo, hi, _ in padding_config)
    inner = o.pad(ct, zero, padding_config=cropped)
    rank = inner.aval.ndim
    ct_x = o.slice(
        inner,
        start_indices=(0,) * rank,
        limit_indices=inner.aval.shape,
        strides=tuple(mid + 1 for _, _, mid in padding_config),
    )
    ct_value = None
    if isinstance(value, Linear):
        axes = tuple(range(rank))
        ct_value = o.sub(o.reduce_sum(ct, axes=axes), o.reduce_sum(ct_x, axes=axes))
    return (ct_x if isinstance(x, Linear) else None, ct_value)


def _pad_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
) -> tuple[Node, bool]:
    config = ((0, 0, 0), *params["padding_config"])
    x = xs[0] if batched[0] else broadcast_to(xs[0], (size, *xs[0].aval.shape))
    if not batched[1]:
        return o.pad(x, xs[1], padding_config=config), True
    # For a padding value per example, pad a mask in the same way and select.
    inside = o.pad(
        full(x.aval.shape, True, np.dtype(bool)),
        full((), False, np.dtype(bool)),
        padding_config=config,
    )
    padded = o.pad(x, full((), 0, x.aval.dtype), padding_config=config)
    return o.select_n(inside, broadcast_to(xs[1], padded.aval.shape, (0,)), padded), True


register(
    Op(
        "pad",
        "assemble",
        _pad_infer,
        lowering=Lowering("indexing.pads.pad"),
        numpy=_pad_numpy,
        jvp=_pad_jvp,
        transpose=_pad_transpose,
        batch=_pad_batch,
        additive=True,
        parts=_pad_parts,
        makes_nan=True,
        halves="own",
        sharding="pad",
    )
)
