"""View ops, whose output shows the operand's elements through another index map, and `iota`.

broadcast_in_dim, reshape, squeeze, transpose, rev and slice are declared here. Fusion evaluates
them by changing the strides of loads: a `strides` rule takes and returns (shape, strides, offset)
in elements, like NumPy's views, or returns None if no strides express the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.errors import IncompatibleShapesError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Op, Strided, o, register
from accnp.primitives.kinds import check_index_dtype, full, reduced_shape, view

if TYPE_CHECKING:
    from accnp.dtypes.names import DTypeLike
    from accnp.ir.op_types import Operand, Params

__all__ = [
    "BROADCAST", "RESHAPE", "SQUEEZE", "TRANSPOSE", "Strided", "contiguous", "reshape_strides",
]  # fmt: skip

Shape = tuple[int, ...]


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return row-major strides, in elements."""
    out: list[int] = []
    step = 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(reversed(out))


# --- broadcast_in_dim -----------------------------------------------------------------------------


def _broadcast_infer(
    x: Aval, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Aval:
    if len(broadcast_dimensions) != x.ndim:
        raise IncompatibleShapesError(
            "broadcast_in_dim: broadcast_dimensions must have length equal to operand ndim; "
            f"got {broadcast_dimensions} for rank {x.ndim}; name a place for each axis"
        )
    if any(a >= b for a, b in pairwise(broadcast_dimensions)):
        raise TypeError(
            f"broadcast_in_dim: broadcast_dimensions must be strictly increasing; "
            f"got {tuple(broadcast_dimensions)}; "
            "use transpose to change the order of axes"
        )
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        if not 0 <= d < len(shape) or (n not in (1, shape[d])):
            raise TypeError(
                "broadcast_in_dim: operand dimension sizes must either be 1, or be equal to their "
                f"corresponding dimensions in the target broadcast shape; got {x.shape} for "
                f"{tuple(shape)} by dimensions {tuple(broadcast_dimensions)}; broadcast it first"
            )
    return make_aval(tuple(shape), x.dtype, x.weak_type)


def _broadcast_numpy(
    x: np.ndarray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> np.ndarray:
    full_shape = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        full_shape[d] = n
    return np.broadcast_to(np.reshape(x, full_shape), shape)


def _broadcast_strides(
    s: Shape, st: Shape, off: int, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Strided:
    out = [0] * len(shape)
    for n, step, d in zip(s, st, broadcast_dimensions, strict=True):
        out[d] = step if n == shape[d] and n != 1 else 0
    return tuple(shape), tuple(out), off


def _broadcast_transpose(
    ct: Node, x: Operand, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> tuple[Any]:
    same_axes = {
        d for n, d in zip(x.aval.shape, broadcast_dimensions, strict=True) if n == shape[d]
    }
    axes = tuple(d for d in range(len(shape)) if d not in same_axes)
    if axes:
        ct = o.reduce_sum(ct, axes=axes)
    if ct.aval.shape != x.aval.shape:
        ct = o.reshape(ct, new_sizes=x.aval.shape, dimensions=None)
    return (ct,)


def _broadcast_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params
) -> tuple[Node, bool]:
    dims = (0, *(d + 1 for d in params["broadcast_dimensions"]))
    shape = (size, *params["shape"])
    return o.broadcast_in_dim(xs[0], shape=shape, broadcast_dimensions=dims), True


BROADCAST = view(
    "broadcast_in_dim",
    infer=_broadcast_infer,
    numpy=_broadcast_numpy,
    strides=_broadcast_strides,
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    keeps_order=True,
    # The shape is that of the result; jax prints the dimensions only if there are any.
    show=lambda p: {k: v for k, v in p.items() if k == "broadcast_dimensions" and v},
    sharding="broadcast",
)

# --- reshape, squeeze -----------------------------------------------------------------------------


def _reshape_infer(
    x: Aval, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None = None
) -> Aval:
    if prod(new_sizes) != x.size:
        raise IncompatibleShapesError(
            "reshape: the number of elements must not change; got shape "
            f"{x.shape} with {x.size} elements (operand) and {tuple(new_sizes)} with "
            f"{prod(new_sizes)} elements (new_sizes); pass sizes with the same product"
        )
    return make_aval(tuple(new_sizes), x.dtype, x.weak_type)


def reshape_strides(
    shape: Sequence[int], strides: Sequence[int], new: Sequence[int]
) -> tuple[int, ...] | None:
    """Return strides that show a strided array in a new shape, or None if there are none."""
    old = [(n, st) for n, st in zip(shape, strides, strict=True) if n != 1]
    out: list[int] = []
    i = 0
    new = list(new)
    if prod(shape) == 0:
        return contiguous(new)
    k = 0
    while k < len(new):
        if new[k] == 1:
            out.append(0)
            k += 1
            continue
        # Extend a group of old axes and a group of new axes until their sizes are equal.
        group: list[tuple[int, int]] = []
        old_size, new_size, j = 1, new[k], k + 1
        while old_size != new_size:
            if old_size < new_size:
                if i >= len(old):
                    return None
                group.append(old[i])
                old_size *= old[i][0]
                i += 1
            else:
                if j >= len(new):
                    return None
                new_size *= new[j]
                j += 1
        for (_, s0), (n1, s1) in pairwise(group):
            if s0 != n1 * s1:
                return None
        step = group[-1][1]
        steps: list[int] = []
        for n in reversed(new[k:j]):
            steps.append(step)
            step *= n
        out.extend(reversed(steps))
        k = j
    return tuple(out)


def _reshape_strided(
    s: Shape,
    st: Shape,
    off: int,
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None = None,
) -> Strided | None:
    steps = reshape_strides(s, st, new_sizes)
    return None if steps is None else (tuple(new_sizes), steps, off)


def _reshape_numpy(
    x: np.ndarray, *, new_sizes: Shape, dimensions: Shape | None = None
) -> np.ndarray:
    return np.reshape(x, new_sizes)


def _reshape_back(ct: Node, x: Operand, **_: object) -> tuple[Node]:
    return (o.reshape(ct, new_sizes=x.aval.shape, dimensions=None),)


RESHAPE = view(
    "reshape",
    infer=_reshape_infer,
    numpy=_reshape_numpy,
    strides=_reshape_strided,
    keeps_order=True,
    transpose=_reshape_back,
    batch=lambda size, xs, batched, p: (
        o.reshape(xs[0], new_sizes=(size, *p["new_sizes"]), dimensions=None),
        True,
    ),
    show=lambda p: {
        "dimensions": p.get("dimensions"),
        "new_sizes": p["new_sizes"],
        "sharding": None,
    },
    sharding="reshape",
)


def _squeeze_infer(x: Aval, *, dimensions: tuple[int, ...]) -> Aval:
    for d in dimensions:
        if not 0 <= d < x.ndim or x.shape[d] != 1:
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not equal to one; "
                f"got shape {x.shape} and axes {tuple(dimensions)}; index the others"
            )
    return make_aval(reduced_shape(x.shape, tuple(dimensions)), x.dtype, x.weak_type)


def _squeeze_numpy(x: np.ndarray, *, dimensions: Shape) -> np.ndarray:
    return np.squeeze(x, tuple(dimensions))


def _squeeze_strides(s: Shape, st: Shape, off: int, *, dimensions: Shape) -> Strided:
    return (
        tuple(n for i, n in enumerate(s) if i not in dimensions),
        tuple(v for i, v in enumerate(st) if i not in dimensions),
        off,
    )


SQUEEZE = view(
    "squeeze",
    infer=_squeeze_infer,
    numpy=_squeeze_numpy,
    keeps_order=True,
    strides=_squeeze_strides,
    transpose=_reshape_back,
    batch=lambda size, xs, batched, p: (
        o.squeeze(xs[0], dimensions=tuple(d + 1 for d in p["dimensions"])),
        True,
    ),
    sharding="squeeze",
)

# --- transpose, reverse ---------------------------------------------------------------------------


def _transpose_infer(x: Aval, *, permutation: tuple[int, ...]) -> Aval:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{tuple(permutation)} for operand shape {x.shape}; name each axis once"
        )
    return make_aval(tuple(x.shape[p] for p in permutation), x.dtype, x.weak_type)


def _inverse(perm: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(perm))


def _transpose_numpy(x: np.ndarray, *, permutation: Shape) -> np.ndarray:
    return np.transpose(x, permutation)


def _transpose_strides(s: Shape, st: Shape, off: int, *, permutation: Shape) -> Strided:
    return tuple(s[p] for p in permutation), tuple(st[p] for p in permutation), off


def _transpose_back(ct: Node, x: Operand, *, permutation: Shape) -> tuple[Node]:
    return (o.transpose(ct, permutation=_inverse(permutation)),)


TRANSPOSE = view(
    "transpose",
    infer=_transpose_infer,
    numpy=_transpose_numpy,
    strides=_transpose_strides,
    transpose=_transpose_back,
    batch=lambda size, xs, batched, p: (
        o.transpose(xs[0], permutation=(0, *(d + 1 for d in p["permutation"]))),
        True,
    ),
    sharding="transpose",
)


def _rev_strides(s: Shape, st: Shape, off: int, *, dimensions: tuple[int, ...]) -> Strided:
    steps = list(st)
    for d in dimensions:
        if s[d]:
            off += (s[d] - 1) * steps[d]
        steps[d] = -steps[d]
    return tuple(s), tuple(steps), off


def _rev_infer(x: Aval, *, dimensions: Shape) -> Aval:
    return make_aval(x.shape, x.dtype, x.weak_type)


def _rev_numpy(x: np.ndarray, *, dimensions: Shape) -> np.ndarray:
    return np.flip(x, tuple(dimensions))


def _rev_transpose(ct: Node, x: Operand, *, dimensions: Shape) -> tuple[Node]:
    return (o.rev(ct, dimensions=dimensions),)


view(
    "rev",
    infer=_rev_infer,
    numpy=_rev_numpy,
    strides=_rev_strides,
    transpose=_rev_transpose,
    batch=lambda size, xs, batched, p: (
        o.rev(xs[0], dimensions=tuple(d + 1 for d in p["dimensions"])),
        True,
    ),
    sharding="reverse",
)

# --- slice ----------------------------------------------------------------------------------------


def _slice_infer(
    x: Aval,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
) -> Aval:
    steps = strides or (1,) * x.ndim
    if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
        raise IncompatibleShapesError(
            "slice: start_indices, limit_indices and strides need one entry for each axis of "
            f"shape {x.shape}; got {start_indices}, {limit_indices}, {strides}; pass that many"
        )
    shape: list[int] = []
    for n, a, b, s in zip(x.shape, start_indices, limit_indices, steps, strict=True):
        if not 0 <= a <= b <= n or s <= 0:
            raise TypeError(
                f"slice: bounds that do not fit; got {tuple(start_indices)} to "
                f"{tuple(limit_indices)} by {steps} for shape {x.shape}; keep them "
                "within it"
            )
        shape.append(max(0, -(-(b - a) // s)))
    return make_aval(tuple(shape), x.dtype, x.weak_type)


def _slice_strides(
    s: Shape,
    st: Shape,
    off: int,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
) -> Strided:
    steps = strides or (1,) * len(s)
    shape = tuple(
        max(0, -(-(b - a) // k))
        for a, b, k in zip(start_indices, limit_indices, steps, strict=True)
    )
    off += sum(a * v for a, v in zip(start_indices, st, strict=True))
    return shape, tuple(v * k for v, k in zip(st, steps, strict=True)), off


def _slice_transpose(
    ct: Node,
    x: Operand,
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
) -> tuple[Any]:
    steps = strides or (1,) * x.aval.ndim
    config: list[tuple[int, int, int]] = []
    for n, a, m, k in zip(x.aval.shape, start_indices, ct.aval.shape, steps, strict=True):
        used = a + (m - 1) * k + 1 if m else a
        config.append((a, n - used, k - 1) if m else (a, n - a, 0))
    zero = full((), 0, ct.aval.dtype)
    return (o.pad(ct, zero, padding_config=tuple(config)),)


def _slice_numpy(
    x: np.ndarray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None = None
) -> np.ndarray:
    steps = strides or (1,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


view(
    "slice",
    infer=_slice_infer,
    numpy=_slice_numpy,
    strides=_slice_strides,
    transpose=_slice_transpose,
    batch=lambda size, xs, batched, p: (
        o.slice(
            xs[0],
            start_indices=(0, *p["start_indices"]),
            limit_indices=(size, *p["limit_indices"]),
            strides=None if p.get("strides") is None else (1, *p["strides"]),
        ),
        True,
    ),
    show=lambda p: {
        "limit_indices": p["limit_indices"],
        "start_indices": p["start_indices"],
        "strides": p.get("strides"),
    },
    sharding="slice",
)

# --- iota -----------------------------------------------------------------------------------------


def _iota_infer(*, dtype: DTypeLike, shape: tuple[int, ...], dimension: int) -> Aval:
    kind = np.dtype(dtype)
    if kind.itemsize == 4 and kind.kind in "iu":  # narrower types wrap around, as in jax
        check_index_dtype("iota", shape[dimension], kind)
    return make_aval(tuple(shape), kind)


def _iota_numpy(*, dtype: DTypeLike, shape: tuple[int, ...], dimension: int) -> np.ndarray:
    index = np.arange(shape[dimension]).astype(dtype)
    return np.broadcast_to(
        index.reshape([-1 if i == dimension else 1 for i in range(len(shape))]), shape
    )


register(
    Op(
        "iota",
        "iota",
        _iota_infer,
        numpy=_iota_numpy,
        jvp=(),
        batch=None,
        show=lambda p: {
            "dimension": p["dimension"],
            "dtype": np.dtype(p["dtype"]),
            "shape": p["shape"],
            "sharding": None,
        },
    )
)
