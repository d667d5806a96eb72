"""Analysis of the memory layout of operands, which decides about tiles and the order of loops.

Input: a description of a kernel. Output: the axis along which transposed operands are contiguous,
the axes that can be merged, and the sizes of tiles. The bits of results do not depend on these
choices.
"""

from __future__ import annotations

from math import prod

from accnp.compiler.specs.short_axes import LANES
from accnp.config import default_threads
from accnp.ir.kernel import Access, KernelSpec, RowReduction, Statement
from accnp.ir.op import COMBINES

__all__ = [
    "LINE", "MIN_TILED_LENGTH", "TILE_DEPTH", "TILE_WIDTH", "is_contiguous_reduction",
    "reduces_operand_directly", "supports_transposed_rows", "tile_width", "transposed_axis",
    "transposed_loads", "transposed_rows_shape",
]  # fmt: skip

TILE_DEPTH, TILE_WIDTH = 16, 256  # their product is STACK_LENGTHS["tile"]
MIN_TILED_LENGTH = LANES + 1  # shorter axes are not tiled
LINE = 64  # bytes of a cache line
TILES_PER_CPU = 2  # tiles per CPU; few wide tiles read longer runs of memory
MIN_TILES = 4  # the minimum number of tiles, if the axis is long enough
# Bytes of a row of a tile whose rows are far apart: a block of them fits into the second-level
# cache.
MAX_ROW_BYTES = 512


def transposed_axis(
    spec: KernelSpec, inner: int, candidates: range, least: int = MIN_TILED_LENGTH
) -> int | None:
    """Return the axis along which most of the loads are contiguous that have large strides along
    the axis `inner`; None if there are none."""
    sizes = (*spec.outer, *spec.reduced, *spec.inner)
    if sizes[inner] < least:
        return None
    counts: dict[int, int] = {}
    for d in candidates:
        if sizes[d] >= least:
            counts[d] = len(transposed_loads(spec, inner, d))
    best = max(counts, key=counts.__getitem__, default=None)
    return best if best is not None and counts[best] else None


def transposed_loads(spec: KernelSpec, inner: int, d: int) -> list[Access]:
    """Return the loads with stride 1 along axis d and a larger stride along the axis `inner`."""
    return [
        a
        for a in spec.accesses
        if not (a.store or a.terms) and a.strides[d] == 1 and a.strides[inner] not in (-1, 0, 1)
    ]


def is_contiguous_reduction(spec: KernelSpec, d: int) -> bool:
    """Return whether all operands of a reduction are contiguous along the reduced axis d."""
    phase = spec.phases[0]
    return (
        all(a.strides[d] in (0, 1) for a in _loads(phase.full))
        and not phase.stores
        and not any(f.dtype.kind == "c" for f in phase.reductions)
    )


def reduces_operand_directly(f: RowReduction, d: int) -> bool:
    """Return whether a reduction reads an operand unchanged, contiguously along axis d."""
    return f.direct is not None and f.direct.dtype == f.dtype and f.direct.strides[d] == 1


def _tiles() -> int:
    """Return the number of tiles of the inner axis. The bits of results do not depend on it."""
    return max(MIN_TILES, TILES_PER_CPU * default_threads())


def tile_width(spec: KernelSpec, most: int) -> tuple[int, int]:
    """Return the columns of a tile, at most `most`, and the tiles of the inner axis."""
    width = -(-spec.inner[0] * prod(spec.outer) // _tiles())
    width = min(most, max(64, -(-width // 64) * 64))
    return width, -(-spec.inner[0] // width)


def supports_transposed_rows(spec: KernelSpec, d: int) -> bool:
    """Return whether `add_transposed_rows` supports a row kernel: no large strides along d."""
    reductions = spec.phases[0].reductions
    return (
        len({COMBINES[f.combine].lanes for f in reductions}) == 1
        and not any(f.dtype.kind == "c" for f in reductions)
        and all(a.strides[d] in (0, 1) for a in _loads(spec.phases[0].full))
        and not any(s.index is not None for s in spec.phases[0].full)
        and not any(a.strides[d] for a in _loads(spec.row_head))
    )


def _loads(statements: list[Statement]) -> list[Access]:
    return [s.access for s in statements if s.access is not None]


def _mergeable_axes(spec: KernelSpec, d: int) -> list[int]:
    """Return axis d and the kept axes that continue it in the memory of all operands. They can be
    merged into one axis, whatever the layout of the results."""
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


def transposed_rows_shape(spec: KernelSpec, d: int) -> tuple[list[int], int, int]:
    """Return the merged axes of a reduction of transposed rows, their size, and the width of a
    tile. The rows are adjacent in memory along axis d."""
    chain = _mergeable_axes(spec, d)
    size = prod(spec.outer[k] for k in chain)
    width = -(-prod(spec.outer) // _tiles())
    narrow = MAX_ROW_BYTES // min(f.dtype.itemsize for f in spec.phases[0].reductions)
    most = narrow if len(spec.reduced) > 1 else TILE_WIDTH
    return chain, size, min(most, max(64, -(-width // 64) * 64))
