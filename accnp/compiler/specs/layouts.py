"""How operands lie in memory, and what follows for the loops: whether these go over tiles, which
axes are one axis of a walk, and how long a tile is.

In: a description of a kernel. Out: axes, sizes, and accesses. No bit of a result depends on them.
"""

from __future__ import annotations

from math import prod

from accnp.compiler.specs.accumulators import lanes
from accnp.compiler.specs.short_axes import LANES
from accnp.config import default_threads
from accnp.ir.kernel import Access, Fold, KernelSpec, Statement

__all__ = [
    "DEEP", "LEAST", "LINE", "WIDE", "across", "crossing", "is_plain", "is_straight", "tile_width",
    "walk_shape", "walkable",
]  # fmt: skip

DEEP, WIDE = 16, 256  # a tile: DEEP * WIDE elements are compiler.intrinsics.memory.TILE
LEAST = LANES + 1  # shorter axes are left as they are
LINE = 64  # bytes of a cache line
TILES = 2  # for each processor: wide tiles read longer pieces of memory
LEAST_TILES = 4  # in all, if the axis is long enough
NARROW = 512  # bytes of a row of a tile whose rows lie apart: a block of them fits the second cache


def across(spec: KernelSpec, inner: int, candidates: range, least: int = LEAST) -> int | None:
    """The axis along which most of the loads run that jump along the axis `inner`."""
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    if sizes[inner] < least:
        return None
    found = {}
    for d in candidates:
        if sizes[d] >= least:
            found[d] = len(crossing(spec, inner, d))
    best = max(found, key=lambda d: found[d], default=None)
    return best if best is not None and found[best] else None


def crossing(spec: KernelSpec, inner: int, d: int) -> list[Access]:
    """The loads that have stride 1 along axis d, and a longer one along the axis `inner`."""
    return [
        a
        for a in spec.accesses
        if not (a.store or a.terms) and a.strides[d] == 1 and a.strides[inner] not in (-1, 0, 1)
    ]


def is_straight(spec: KernelSpec, d: int) -> bool:
    """Whether all that is folded lies along the folded axis d in memory."""
    phase = spec.phases[0]
    return (
        all(a.strides[d] in (0, 1) for a in _loads(phase.full))
        and not phase.stores
        and not any(f.dtype.kind == "c" for f in phase.folds)
    )


def is_plain(f: Fold, d: int) -> bool:
    """Whether what is folded is an operand as it lies in memory, along axis d."""
    return f.direct is not None and f.direct.dtype == f.dtype and f.direct.strides[d] == 1


def _tiles() -> int:
    """Into how many tiles the inner axis is cut; no bit of a result depends on it."""
    return max(LEAST_TILES, TILES * default_threads())


def tile_width(spec: KernelSpec, most: int) -> tuple[int, int]:
    """Return the columns of a tile, at most `most`, and the tiles of the inner axis."""
    width = -(-spec.inner[0] * prod(spec.outer) // _tiles())
    width = min(most, max(64, -(-width // 64) * 64))
    return width, -(-spec.inner[0] // width)


def walkable(spec: KernelSpec, d: int) -> bool:
    """Whether `row_across` can do a row kernel: no load of it jumps along axis d."""
    folds = spec.phases[0].folds
    return (
        len({lanes(f.combine) for f in folds}) == 1
        and not any(f.dtype.kind == "c" for f in folds)
        and all(a.strides[d] in (0, 1) for a in _loads(spec.phases[0].full))
        and not any(s.index is not None for s in spec.phases[0].full)
        and not any(a.strides[d] for a in _loads(spec.row_head))
    )


def _loads(statements: list[Statement]) -> list[Access]:
    return [s.access for s in statements if s.access is not None]


def _in_a_row(spec: KernelSpec, d: int) -> list[int]:
    """Axis d and the kept ones that follow it in the memory of all that is folded: together they
    are one axis of a walk, however the results lie."""
    loads = _loads([*spec.phases[0].full, *spec.row_head])
    chain, size = [d], spec.outer[d]
    while True:
        more = [
            k
            for k in range(len(spec.outer))
            if k not in chain and all(a.strides[k] == size * a.strides[d] for a in loads)
        ]
        if not more:
            return chain
        chain.append(more[0])
        size *= spec.outer[more[0]]


def walk_shape(spec: KernelSpec, d: int) -> tuple[list[int], int, int]:
    """The axes that are one axis of a walk along axis d, its size, and the columns of a tile."""
    chain = _in_a_row(spec, d)
    size = prod(spec.outer[k] for k in chain)
    width = -(-prod(spec.outer) // _tiles())
    narrow = NARROW // min(f.dtype.itemsize for f in spec.phases[0].folds)
    most = narrow if len(spec.reduced) > 1 else WIDE
    return chain, size, min(most, max(64, -(-width // 64) * 64))
