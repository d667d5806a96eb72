"""The op `conv_general_dilated`: windows of an array times a kernel, summed over features and taps.

`lhs` has axes for examples, features and space, `rhs` for output features, input features and taps;
the dimension numbers say which axis is which. With feature groups, groups of features have kernels
of their own; with batch groups, groups of examples do. The derivatives are convolutions again. The
kernels are in `compiler/library/windows/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Linear, Lowering, o
from accnp.primitives.kinds import bilinear_jvp, dtype_kind, dtypes_differ, full, opaque
from accnp.primitives.reference import quiet
from accnp.primitives.windows import Window, dilated_length, extract_windows

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params

__all__ = ["ConvDimensionNumbers", "windows_of"]


class ConvDimensionNumbers(NamedTuple):
    """Roles of the axes of a convolution.

    Parameters
    ----------
    lhs_spec : sequence of int
        Axes of the array: examples, features, and spatial axes.
    rhs_spec : sequence of int
        Axes of the kernel: output features, input features, and spatial axes.
    out_spec : sequence of int
        Axes of the result: examples, features, and spatial axes.

    Raises
    ------
    TypeError
        If a convolution gets numbers that do not fit its operands.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)).lhs_spec
    (0, 1, 2)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


if TYPE_CHECKING:

    class _Static(TypedDict):
        """The static parameters of a convolution."""

        dimension_numbers: ConvDimensionNumbers
        window_strides: Sequence[int]
        padding: Sequence[tuple[int, int]]
        lhs_dilation: Sequence[int]
        rhs_dilation: Sequence[int]
        feature_group_count: int
        batch_group_count: int
        precision: object
        preferred_element_type: np.dtype | None


def windows_of(lhs: Sequence[int], rhs: Sequence[int], p: Mapping[str, Any]) -> list[Window]:
    """Return the window of each spatial axis, given the shapes of the operands."""
    dims = p["dimension_numbers"]
    return [
        Window(lhs[i], rhs[k], stride, low, high, base, dilation)
        for i, k, stride, (low, high), base, dilation in zip(
            dims.lhs_spec[2:],
            dims.rhs_spec[2:],
            p["window_strides"],
            p["padding"],
            p["lhs_dilation"],
            p["rhs_dilation"],
            strict=True,
        )
    ]


def _infer(lhs: Aval, rhs: Aval, **p: Unpack[_Static]) -> Aval:
    dims, fgc, bgc = p["dimension_numbers"], p["feature_group_count"], p["batch_group_count"]
    if lhs.ndim != rhs.ndim:
        raise ValueError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, but got "
            f"{lhs.shape} and {rhs.shape}."
        )
    n, c = (lhs.shape[d] for d in dims.lhs_spec[:2])
    features, inputs = (rhs.shape[d] for d in dims.rhs_spec[:2])
    for name, count in (("feature_group_count", fgc), ("batch_group_count", bgc)):
        if count < 1:
            raise ValueError(
                f"conv_general_dilated {name} must be a positive integer, got {count}."
            )
        if features % count:
            raise ValueError(
                "conv_general_dilated rhs output feature dimension size must be a multiple of "
                f"{name}, but {features} is not a multiple of {count}."
            )
    if fgc > 1 and bgc > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={bgc} and feature_group_count={fgc}"
        )
    if n % bgc:
        raise ValueError(
            "conv_general_dilated lhs input batch dimension size must be a multiple of "
            f"batch_group_count, but {n} is not a multiple of {bgc}."
        )
    if c != inputs * fgc:
        raise ValueError(
            "conv_general_dilated feature_group_count must divide lhs feature dimension size, and "
            "the quotient must be the rhs input feature dimension size: "
            f"got lhs features {c}, feature_group_count {fgc}, rhs input features {inputs}."
        )
    dtype = p["preferred_element_type"]
    if dtype is None:
        if lhs.dtype != rhs.dtype:
            raise dtypes_differ("lax.conv_general_dilated", (lhs, rhs))
        dtype = lhs.dtype
    shape = [0] * lhs.ndim
    sizes = [n // bgc, features, *[w.places for w in windows_of(lhs.shape, rhs.shape, p)]]
    for d, size in zip(dims.out_spec, sizes, strict=True):
        shape[d] = size
    return make_aval(tuple(shape), np.dtype(dtype), lhs.weak_type and rhs.weak_type)


def _numpy(lhs: np.ndarray, rhs: np.ndarray, **p: Unpack[_Static]) -> np.ndarray:
    dims, groups = p["dimension_numbers"], p["feature_group_count"] * p["batch_group_count"]
    dtype = np.dtype(p["preferred_element_type"] or lhs.dtype)
    half = dtype_kind(dtype) == "f" and dtype.itemsize < 4
    work = np.dtype(np.float32) if half else dtype
    windows = windows_of(lhs.shape, rhs.shape, p)
    x = lhs.transpose(dims.lhs_spec).astype(work)
    w = rhs.transpose(dims.rhs_spec).astype(work)
    if not lhs.size:
        w = np.zeros_like(w)  # only padding is read, so the kernel's values (inf, nan) don't matter
    n, c = x.shape[:2]
    features, inputs = w.shape[:2]
    places, taps = [v.places for v in windows], [v.taps for v in windows]
    x = extract_windows(x, [Window(n, 1), Window(c, 1), *windows], 0)
    x = x.reshape(n, c, prod(places), prod(taps))
    if p["batch_group_count"] > 1:
        x = x.reshape(groups, n // groups, inputs, prod(places), prod(taps))
    else:
        x = x.reshape(n, groups, inputs, prod(places), prod(taps)).transpose(1, 0, 2, 3, 4)
    n = x.shape[1]
    left = x.transpose(0, 1, 3, 2, 4).reshape(groups, n * prod(places), inputs * prod(taps))
    right = w.reshape(groups, features // groups, inputs * prod(taps)).transpose(0, 2, 1)
    y = np.matmul(left, right)  # groups, examples and places, features
    y = y.reshape(groups, n, *places, features // groups)
    y = np.moveaxis(y, (0, -1), (1, 2)).reshape(n, features, *places)
    return y.transpose(np.argsort(dims.out_spec)).astype(dtype, copy=False)


# --- derivatives ---------------------------------------------------------------------------------


def _swap_features(spec: Sequence[int]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


def _reshape(x: Node, shape: Sequence[int]) -> Node:
    return o.reshape(x, new_sizes=tuple(shape), dimensions=None)


def _split_axis(x: Node, axis: int, count: int) -> Node:
    """Split an axis into `count` parts: an axis of parts and an axis within the parts."""
    shape = x.aval.shape
    return _reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))


def _merge_axis(x: Node, axis: int, to: int) -> Node:
    """Move an axis before another one (numbered without it), and merge the two."""
    order = [d for d in range(x.aval.ndim) if d != axis]
    order.insert(to, axis)
    if order != list(range(x.aval.ndim)):
        x = o.transpose(x, permutation=tuple(order))
    shape = x.aval.shape
    return _reshape(x, (*shape[:to], shape[to] * shape[to + 1], *shape[to + 2 :]))


def _move_groups(x: Node, source: int, to: int, count: int) -> Node:
    """Split an axis into `count` parts, and merge the axis of parts into another axis."""
    if count == 1:
        return x
    x = _split_axis(x, source, count)
    return _merge_axis(x, source, to)


def _wrt_lhs(ct: Node, lhs: Aval, rhs: Node, p: _Static) -> Node:
    dims, fgc, bgc = p["dimension_numbers"], p["feature_group_count"], p["batch_group_count"]
    pads: list[tuple[int, int]] = []
    for w in windows_of(lhs.shape, rhs.aval.shape, p):
        span = dilated_length(w.taps, w.dilation)
        before = span - w.low - 1
        room = dilated_length(w.size, w.base) + span - 1
        pads.append((before, room - dilated_length(w.places, w.stride) - before))
    rhs = _move_groups(rhs, dims.rhs_spec[0], dims.rhs_spec[1], max(fgc, bgc))
    flipped = o.rev(rhs, dimensions=tuple(dims.rhs_spec[2:])) if len(dims.rhs_spec) > 2 else rhs
    numbers = ConvDimensionNumbers(dims.out_spec, _swap_features(dims.rhs_spec), dims.lhs_spec)
    changed = {
        "window_strides": p["lhs_dilation"],
        "lhs_dilation": p["window_strides"],
        "padding": tuple(pads),
        "dimension_numbers": numbers,
        "feature_group_count": max(fgc, bgc),
        "batch_group_count": 1,
        "preferred_element_type": _preferred_dtype(p, lhs),
    }
    out = o.conv_general_dilated(ct, flipped, **{**p, **changed})
    return _move_groups(out, dims.lhs_spec[1], dims.lhs_spec[0], bgc)


def _wrt_rhs(ct: Node, lhs: Node, rhs: Aval, p: _Static) -> Node:
    dims, fgc, bgc = p["dimension_numbers"], p["feature_group_count"], p["batch_group_count"]
    pads: list[tuple[int, int]] = []
    for w in windows_of(lhs.aval.shape, rhs.shape, p):
        room = dilated_length(w.places, w.stride) + dilated_length(w.taps, w.dilation) - 1
        pads.append((w.low, room - dilated_length(w.size, w.base) - w.low))
    numbers = ConvDimensionNumbers(
        _swap_features(dims.lhs_spec), _swap_features(dims.out_spec), _swap_features(dims.rhs_spec)
    )
    changed = {
        "window_strides": p["rhs_dilation"],
        "rhs_dilation": p["window_strides"],
        "padding": tuple(pads),
        "dimension_numbers": numbers,
        "feature_group_count": bgc,
        "batch_group_count": fgc,
        "preferred_element_type": _preferred_dtype(p, rhs),
    }
    return o.conv_general_dilated(lhs, ct, **{**p, **changed})


def _preferred_dtype(p: _Static, x: Aval) -> np.dtype | None:
    return None if p["preferred_element_type"] is None else x.dtype


def _transpose(
    ct: Node, lhs: Operand, rhs: Operand, **p: Unpack[_Static]
) -> tuple[Node, None] | tuple[None, Node]:
    if isinstance(lhs, Linear):
        assert isinstance(rhs, Node)
        return _wrt_lhs(ct, lhs.aval, rhs, p), None
    assert isinstance(lhs, Node)
    return None, _wrt_rhs(ct, lhs, rhs.aval, p)


# --- batching ------------------------------------------------------------------------------------


def _batch(size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params) -> tuple[Node, bool]:
    dims, fgc, bgc = p["dimension_numbers"], p["feature_group_count"], p["batch_group_count"]
    lhs, rhs = xs
    examples, features = dims.lhs_spec[:2]
    outs = dims.rhs_spec[0]
    if size == 0:  # there is no example, so groups of examples cannot be formed
        one = [
            make_aval(x.aval.shape[1:], x.aval.dtype) if along else x.aval
            for x, along in zip(xs, batched, strict=True)
        ]
        y = _infer(*one, **p)
        return full((0, *y.shape), 0, y.dtype), True
    if all(batched):
        # The examples of the batch become groups, outside of the existing groups.
        name = "batch_group_count" if bgc > 1 else "feature_group_count"
        lhs = _merge_axis(lhs, 0, examples if bgc > 1 else features)
        y = o.conv_general_dilated(lhs, _merge_axis(rhs, 0, outs), **{**p, name: p[name] * size})
        return _to_front(_split_axis(y, dims.out_spec[1], size), dims.out_spec[1]), True
    if batched[0]:
        if bgc > 1:  # the order of examples is group, then batch, then the rest
            lhs = _split_axis(lhs, examples + 1, bgc)
            lhs = _merge_axis(_merge_axis(lhs, 0, examples + 1), examples, examples)
        else:
            lhs = _merge_axis(lhs, 0, examples)
        y = o.conv_general_dilated(lhs, rhs, **p)
        return _to_front(_split_axis(y, dims.out_spec[0], size), dims.out_spec[0]), True
    groups = fgc * bgc
    at = dims.out_spec[1]
    if groups == 1:
        y = o.conv_general_dilated(lhs, _merge_axis(rhs, 0, outs), **p)
        return _to_front(_split_axis(y, at, size), at), True
    rhs = _split_axis(rhs, outs + 1, groups)
    rhs = _merge_axis(_merge_axis(rhs, 0, outs + 1), outs, outs)
    y = o.conv_general_dilated(lhs, rhs, **p)
    shape = y.aval.shape
    each = shape[at] // (groups * size)
    y = _reshape(y, (*shape[:at], groups, size, each, *shape[at + 1 :]))
    y = _to_front(y, at + 1)
    shape = y.aval.shape
    k = at + 1
    return _reshape(y, (*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :])), True


def _to_front(x: Node, axis: int) -> Node:
    if axis == 0:
        return x
    order = (axis, *[d for d in range(x.aval.ndim) if d != axis])
    return o.transpose(x, permutation=order)


CONVOLUTION = opaque(
    "conv_general_dilated",
    lowering=Lowering("windows.convolutions.convolution", "windows.block_convolutions.convolution"),
    infer=_infer,
    numpy=quiet(_numpy),
    jvp=bilinear_jvp("conv_general_dilated"),
    transpose=_transpose,
    batch=_batch,
    halves="own",
    show=lambda p: {**p, "out_sharding": None},
    makes_nan=True,
    dots_saveable=True,
)
