"""Ops for updates of known positions, which passes of fusion create and programs never record.

`update_slice`: (x, update) -> x with the update written to a region, in place.
`overlay`: (x, *updates) -> x with each update at its position, later ones over earlier ones. It is
an "assemble" op, so that a kernel writes each element of the result once.

`compiler/fusion/updates.py` and `compiler/fusion/update_regions.py` create them from scatters and
slice updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.op import Lowering, Op
from accnp.primitives.views import contiguous

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["OVERLAY", "UPDATE", "Region"]


class Region(NamedTuple):
    """The region of an array that an update fills: the index of its first element, and for each
    axis of the update the axis of the array and the step along it (-1 and 0 if there is none)."""

    starts: tuple[int, ...]
    axes: tuple[tuple[int, int], ...]

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the strides of the update in a contiguous array of this shape."""
        whole = contiguous(shape)
        return tuple([step and whole[d] * step for d, step in self.axes])

    def offset(self, shape: tuple[int, ...]) -> int:
        """Return the flat index of its first element."""
        return sum([i * s for i, s in zip(self.starts, contiguous(shape), strict=True)])

    @property
    def in_order(self) -> bool:
        """Return whether the axes of the update are in the order of those of the array."""
        axes = [d for d, _ in self.axes if d >= 0]
        return axes == sorted(axes)

    def sizes(self, shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """Return the lengths of an update of this shape along each axis of the array."""
        lengths = [1] * rank
        for n, (d, _) in zip(shape, self.axes, strict=True):
            lengths[d] = n if d >= 0 else lengths[d]
        return tuple(lengths)


def _update_numpy(x: np.ndarray, update: np.ndarray, *, region: Region) -> np.ndarray:
    out = np.array(x, order="C")
    size, at = out.dtype.itemsize, region.offset(out.shape)
    strides = [s * size for s in region.strides(out.shape)]
    np.lib.stride_tricks.as_strided(out.reshape(-1)[at:], update.shape, strides)[...] = update
    return out


def _update_infer(x: Aval, update: Aval, *, region: Region) -> Aval:
    return x


UPDATE = Op(
    "update_slice",
    "opaque",
    _update_infer,
    lowering=Lowering("indexing.scatters.update_slice"),
    halves="own",
    updated_operand=0,
    numpy=_update_numpy,
    indexing="update",
)


def _overlay_parts(avals: Sequence[Aval], params: Params) -> list[Any]:
    x, *updates = avals
    steps = contiguous(x.shape)
    parts: list[Any] = [(0, (x.shape, steps, 0), (x.shape, steps, 0))]
    for k, (u, starts) in enumerate(zip(updates, params["starts"], strict=True), 1):
        at = sum([i * s for i, s in zip(starts, steps, strict=True)])
        parts.append((k, (u.shape, contiguous(u.shape), 0), (u.shape, steps, at)))
    return parts


def _overlay_numpy(
    x: np.ndarray, *updates: np.ndarray, starts: Sequence[Sequence[int]]
) -> np.ndarray:
    out = np.array(x, order="C")
    for u, at in zip(updates, starts, strict=True):
        out[tuple([slice(i, i + n) for i, n in zip(at, u.shape, strict=True)])] = u
    return out


def _overlay_infer(x: Aval, *_: Aval, **__: object) -> Aval:
    return x


OVERLAY = Op(
    "overlay",
    "assemble",
    _overlay_infer,
    numpy=_overlay_numpy,
    parts=_overlay_parts,
)
