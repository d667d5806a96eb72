"""Building of kernels for GPUs: loop IR, and the passes that distribute it over threads.

Input: a `KernelSpec`, and the number of thread blocks that the device runs at a time. Output: a
kernel with `threads`, and how it is launched. `compiler/llvm` compiles it to PTX.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from accnp.compiler.loops.ir import Kernel, Var
from accnp.compiler.passes.divide_by_products import divide_by_products
from accnp.compiler.passes.patch import ACROSS, DOWN, HEIGHT, WIDTH, patch
from accnp.compiler.passes.reduce_columns import (
    LANES,
    reduce_columns,
    reduce_columns_in_two_kernels,
)
from accnp.compiler.passes.reduce_rows import RowPlan, reduce_chunks, reduce_rows
from accnp.compiler.passes.reduce_rows_across import reduce_rows_across
from accnp.compiler.passes.spread import spread
from accnp.compiler.passes.tile import SIDE, tile
from accnp.compiler.specs.grid_maps import add_grid_map
from accnp.compiler.specs.grid_reductions import (
    add_grid_chunks,
    add_grid_columns,
    add_grid_rows,
    multiplies_stored_values,
    separate_stores,
)
from accnp.compiler.specs.kernel_builder import KernelBuilder
from accnp.compiler.specs.layouts import transposed_axis
from accnp.compiler.specs.short_axes import has_short_axis
from accnp.compiler.specs.unrolled_rows import add_unrolled_rows
from accnp.ir.generated import GeneratedKernel, ScratchBuffer
from accnp.ir.kernel import BLOCK, ROWS, Access, KernelSpec, Phase

__all__ = ["NARROW", "THREADS", "WAVE", "build_for_grid", "elements_per_thread"]

THREADS = 256  # threads of a block
WAVE = 132 * 8  # blocks of this size that an H100 or H200 runs at a time
NARROW = 1 << 31  # indices below this are divided by a 64-bit multiplication
# Elements (for columns: rows) that a thread processes together, with the loads first. By the form
# of a kernel, pairs of a maximum cost and this number: more for simple kernels, since each element
# needs registers.
ELEMENTS_PER_THREAD = {
    "map": ((160, 4),),
    "patch": ((16, 8),),
    "row": ((60, 4), (1 << 62, 2)),
    "column": ((12, 16), (40, 8), (1 << 62, 4)),
}
WIDE = 4  # elements of one load or store
# The maximum number of waves of blocks for kernels whose threads load four adjacent elements:
# MAX_WAVES, or MAX_WAVES_COSTLY for kernels of more than the cost COSTLY. On an H200, 2, 16 and 32
# waves take 102, 98.6 and 103 us for a chain of 7 operations, and 4 and 16 waves take 74.3 and
# 79.8 us for Black-Scholes.
MAX_WAVES, MAX_WAVES_COSTLY, COSTLY = 16, 4, 64
# The fraction of a wave of blocks below which the parts of columns get separate blocks.
MIN_WAVE_FRACTION = 31 / 128
WARPS = 8  # warps of a thread block that reduces rows
# The same if each has one block of a row in registers, and for reductions of chunks.
WARPS_UNROLLED = 16
WARPS_IN_REGISTERS = 4  # the same if rows stay in registers
# The number of waves of blocks above which each block gets more rows, if these are short.
WAVES_BEFORE_GROUPING = 2
STEPS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)  # rows of 32 elements of a row in registers
MAX_UNROLLED_COST = 1280  # the maximum cost of the statements of a row that is unrolled
MIN_THREAD_USE = 0.7  # the minimum fraction of the threads of patches that must have work


def elements_per_thread(form: str, cost: float) -> int:
    """Return the number of elements that a thread of a kernel processes together."""
    return next((n for most, n in ELEMENTS_PER_THREAD[form] if cost <= most), 1)


def build_for_grid(spec: KernelSpec, wave: int) -> tuple[Kernel, GeneratedKernel]:
    """Return the kernel of a description for a GPU, and how it is launched.

    Parameters
    ----------
    spec : KernelSpec
        The description.
    wave : int
        Number of thread blocks that the device runs at a time.
    """
    if spec.form == "map":
        return _build_map(spec, wave)
    if spec.form == "row" and has_short_axis(spec):
        return _short_rows(spec, wave)
    if spec.form == "column":
        return _build_column_reduction(spec, wave)
    if spec.form == "split":
        return _build_chunk_reduction(spec)
    if len(spec.phases) == 1 and spec.reduced and not spec.phases[0].stores:
        outer = range(len(spec.outer))
        transposed = transposed_axis(spec, len(spec.outer) + len(spec.reduced) - 1, outer)
        if transposed is not None and prod(_sizes(spec)) < NARROW:
            return _rows_across(spec, transposed)
    return _build_row_reduction(spec, wave)


def _start_kernel(spec: KernelSpec) -> KernelBuilder:
    builder = KernelBuilder(spec)
    builder.start()
    builder.out.threads = THREADS
    return builder


def _finish_kernel(
    builder: KernelBuilder, kernel: Kernel, more: Collection[tuple[Var, int]] = ()
) -> tuple[Kernel, GeneratedKernel]:
    """Return the kernel after the division pass, and complete its integer arguments."""
    spec, out = builder.spec, builder.out
    out.ints += [n for _, n in more]
    values = dict(zip(kernel.integers, out.ints, strict=True))
    small = values if prod(_sizes(spec)) < NARROW else {}
    kernel, divided = divide_by_products(kernel, small)
    for v in divided:
        bits = 31 + (values[v] - 1).bit_length()
        out.ints += [(1 << bits) // values[v] + 1, bits]
    return kernel, out


def _sizes(spec: KernelSpec) -> tuple[int, ...]:
    return (*spec.outer, *spec.reduced, *spec.inner)


def _is_narrow(spec: KernelSpec) -> bool:
    """Return whether all indices and offsets fit into 32 bits."""
    sizes = _sizes(spec)
    ways = [sum([abs(s) * (n - 1) for s, n in zip(a.strides, sizes, strict=True)])
            for a in spec.accesses]  # fmt: skip
    return max([prod(sizes), *ways]) < NARROW


def _build_map(spec: KernelSpec, wave: int) -> tuple[Kernel, GeneratedKernel]:
    """Build a map, whose elements are independent."""
    along = len(spec.outer)
    transposed = transposed_axis(spec, along, range(along)) if spec.inner else None
    builder = _start_kernel(spec)
    add_grid_map(builder)
    if transposed is not None and prod(_sizes(spec)) < NARROW:
        return _transform_to_tiles(builder, transposed)
    kernel = builder.loop_ir.kernel()._replace(narrow=bool(spec.outer) and _is_narrow(spec))
    adjacent = bool(spec.inner) and bool(_adjacent(spec))
    if not adjacent and spec.outer and kernel.narrow and _suits_patches(spec):
        return _transform_to_patches(builder, kernel)
    out = builder.out
    several = WIDE if adjacent else elements_per_thread("map", spec.cost) if spec.inner else 1
    out.ints.insert(0, out.extent)
    out.blocks = _blocks(spec, -(-out.extent // several), wave, adjacent)
    return _finish_range(builder, spread(kernel, THREADS, several, adjacent))


def _finish_range(
    builder: KernelBuilder, kernel: Kernel, more: Collection[tuple[Var, int]] = ()
) -> tuple[Kernel, GeneratedKernel]:
    """Do the same if the first integer argument is the extent of the range."""
    whole, *ints = builder.out.ints
    builder.out.ints = ints
    result = _finish_kernel(builder, kernel, more)
    builder.out.ints.insert(0, whole)
    return result


def _suits_patches(spec: KernelSpec) -> bool:
    """Return whether a kernel has enough rows and columns, and little work per element."""
    if elements_per_thread("patch", spec.cost) < ACROSS * DOWN:
        return False
    return (
        _used_fraction(spec.outer[-1], HEIGHT) * _used_fraction(spec.inner[0], WIDTH)
        >= MIN_THREAD_USE
    )


def _used_fraction(n: int, side: int) -> float:
    return n / (-(-n // side) * side)


def _transform_to_patches(builder: KernelBuilder, kernel: Kernel) -> tuple[Kernel, GeneratedKernel]:
    spec, out = builder.spec, builder.out
    width, height = -(-spec.inner[0] // WIDTH), -(-spec.outer[-1] // HEIGHT)
    total = width * height * prod(spec.outer[:-1])
    out.blocks, out.extent, out.weight = total, total, spec.cost * WIDTH * HEIGHT
    kernel, side, below = patch(kernel)
    out.ints.insert(0, total)
    return _finish_range(builder, kernel, [(side, width), (below, height)])


def _transform_to_tiles(builder: KernelBuilder, transposed: int) -> tuple[Kernel, GeneratedKernel]:
    spec, out = builder.spec, builder.out
    kernel, side, below = tile(builder.loop_ir.kernel(), transposed)
    width, height = -(-spec.inner[0] // SIDE), -(-spec.outer[transposed] // SIDE)
    total = width * height * prod([n for d, n in enumerate(spec.outer) if d != transposed])
    out.blocks, out.extent, out.weight = total, total, spec.cost * SIDE * SIDE
    out.ints.insert(0, total)
    return _finish_range(builder, kernel, [(side, width), (below, height)])


def _blocks(spec: KernelSpec, items: int, wave: int, adjacent: bool) -> int:
    """Return the number of thread blocks for the items of a map, each with several elements."""
    blocks = max(1, -(-items // THREADS))
    waves = MAX_WAVES_COSTLY if spec.cost > COSTLY else MAX_WAVES
    return min(waves * wave, blocks) if adjacent else blocks


def _adjacent(spec: KernelSpec) -> list[Access]:
    """Return the operands that are accessed with loads and stores of four elements; none if this
    does not pay or a result cannot be stored this way."""
    inner = len(spec.outer)
    if elements_per_thread("map", spec.cost) < WIDE:
        return []
    accesses: list[Access] = []
    for a in spec.accesses:
        if a.strides[inner] == 1 and not a.terms and a.dtype.kind != "c":
            accesses.append(a)
        elif a.store:
            return []
    # Rows must begin at an address that is aligned to four elements.
    starts = [n for a in accesses for n in (a.offset, *a.strides[: len(spec.outer)])]
    return [] if any(n % WIDE for n in (*starts, *spec.inner[: len(spec.outer)])) else accesses


def _build_column_reduction(spec: KernelSpec, wave: int) -> tuple[Kernel, GeneratedKernel]:
    """Build a reduction of columns, with a thread block for 32 columns or parts of their rows."""
    builder = _start_kernel(spec)
    add_grid_columns(builder)
    kernel, out = builder.loop_ir.kernel(), builder.out
    rows, columns = prod(spec.reduced), prod(spec.outer) * spec.inner[0]
    parts, tiles = -(-rows // ROWS), -(-columns // LANES)
    side, warps = elements_per_thread("column", spec.cost), THREADS // LANES
    out.extent, out.weight = columns, spec.cost * rows
    if parts <= warps or tiles >= MIN_WAVE_FRACTION * wave:
        out.threads, out.blocks = LANES * min(warps, parts), tiles
        out.ints.insert(0, columns)
        return _finish_range(builder, reduce_columns(kernel, out.threads, side))
    split = reduce_columns_in_two_kernels(kernel, THREADS, side)
    out.blocks = -(-tiles * parts // warps)
    rooms = [ScratchBuffer(b.name, f.dtype, columns * parts)
             for b, f in zip(split.partials, spec.phases[0].reductions, strict=True)]  # fmt: skip
    then = GeneratedKernel()
    then.form, then.ints, then.pointers = out.form, list(out.ints), [*out.pointers, *rooms]
    then.threads, then.blocks = LANES, tiles  # there are few columns: a block for each 32
    then.extent, then.weight = columns, parts
    out.pointers += rooms
    out.ints.insert(0, tiles * parts)
    first = _finish_range(builder, split.first, [(split.columns, columns), (split.tiles, tiles)])
    builder.out = then
    then.ints.insert(0, columns)
    then.kernel, _ = _finish_range(builder, split.second, [(split.parts, parts)])
    out.then = (then,)
    return first


def _build_row_reduction(spec: KernelSpec, wave: int) -> tuple[Kernel, GeneratedKernel]:
    """Build a reduction of rows, with a warp or a thread block for each row."""
    builder = _start_kernel(spec)
    phases = separate_stores(spec.phases)
    out, rows, length = builder.out, prod(spec.outer), prod(spec.reduced)
    out.extent, out.weight = rows, spec.cost * length
    add_grid_rows(builder, phases)
    kernel = builder.loop_ir.kernel()
    out.ints.insert(0, rows)
    if not spec.reduced:
        out.blocks = _blocks(spec, rows, wave, False)
        return _finish_range(builder, spread(kernel, THREADS, 1, False))
    steps = (
        _unrolled_steps(spec, phases, min(length, BLOCK)) if length <= WARPS_UNROLLED * BLOCK else 0
    )
    side = elements_per_thread("row", spec.cost)
    if length > BLOCK:
        rest, most = length % BLOCK, WARPS_UNROLLED if steps else WARPS
        last = (_unrolled_steps(spec, phases, rest), _whole_steps(rest)) if steps and rest else None
        plan = RowPlan(
            LANES * min(most, -(-length // BLOCK)), True, steps=steps, clear=steps, rest=last,
            side=side, length=1 << (length - 1).bit_length(), once=0 < rows < NARROW,
        )  # fmt: skip
        kernel = reduce_rows(kernel, plan)
        out.threads, out.blocks, out.once = kernel.threads, rows, plan.once
        return _finish_range(builder, kernel)
    width = LANES if not steps or length > 16 else 8 if length <= 8 else 16
    per = WARPS_IN_REGISTERS if steps else WARPS
    plan = RowPlan(
        LANES * per, False, width, steps, _whole_steps(length) if steps else 0, None, side,
        min(BLOCK, 1 << max(7, (length - 1).bit_length())),
    )  # fmt: skip
    per = reduce_rows(kernel, plan).threads // LANES
    blocks, several = -(-rows // (per * LANES // width)), LANES // width
    # Each warp processes at least one block of elements, if there are enough for all warps.
    rounds = max(1, BLOCK // max(1, length * several))
    out.blocks = max(min(blocks, WAVES_BEFORE_GROUPING * wave), -(-blocks // rounds))
    out.once = rounds == 1 and 0 < rows < NARROW
    kernel = reduce_rows(kernel, plan._replace(once=out.once))
    out.threads = kernel.threads
    return _finish_range(builder, kernel)


def _rows_across(spec: KernelSpec, transposed: int) -> tuple[Kernel, GeneratedKernel]:
    """Build a reduction of rows with strided elements, with a thread block for 32 rows."""
    builder = _start_kernel(spec)
    add_grid_rows(builder, spec.phases)
    kernel, count = reduce_rows_across(builder.loop_ir.kernel(), transposed)
    out, groups = builder.out, -(-spec.outer[transposed] // SIDE)
    total = groups * prod([n for d, n in enumerate(spec.outer) if d != transposed])
    out.extent = out.blocks = total
    out.threads, out.weight = kernel.threads, spec.cost * prod(spec.reduced) * SIDE
    out.ints.insert(0, total)
    return _finish_range(builder, kernel, [(count, groups)])


def _build_chunk_reduction(spec: KernelSpec) -> tuple[Kernel, GeneratedKernel]:
    """Build a reduction of chunks of rows, with a thread block for each chunk."""
    builder = _start_kernel(spec)
    phases = separate_stores(spec.phases)
    add_grid_chunks(builder, phases)
    kernel, out, total = builder.loop_ir.kernel(), builder.out, prod(spec.reduced)
    unrolled = _unrolled_steps(spec, phases, BLOCK)
    whole = total % BLOCK == 0 and total <= WARPS_UNROLLED * BLOCK
    steps = unrolled if whole else 0
    plan = RowPlan(
        LANES * min(WARPS_UNROLLED, -(-total // BLOCK)), True, steps=steps, clear=steps,
        rest=(0, 0) if unrolled and not steps else None, side=elements_per_thread("row", spec.cost),
    )  # fmt: skip
    out.ints.insert(0, out.extent)
    out.threads, out.blocks = plan.threads, out.extent
    return _finish_range(builder, reduce_chunks(kernel, plan))


def _unrolled_steps(spec: KernelSpec, phases: Sequence[Phase], length: int) -> int:
    """Return the number of steps of 32 elements that are unrolled for whole rows; 0 if they are too
    many, or if a loop may need values that are in registers."""
    if multiplies_stored_values(phases):
        return 0
    steps = next(n for n in STEPS if length <= LANES * n)
    count = sum(len(p.full) + len(p.reductions) + len(p.stores) for p in phases)
    return steps if length and steps * max(spec.cost, count) <= MAX_UNROLLED_COST else 0


def _whole_steps(length: int) -> int:
    """Return how many unrolled steps are complete in any row of this length."""
    return max((n for n in STEPS if LANES * n <= length), default=0)


def _short_rows(spec: KernelSpec, wave: int) -> tuple[Kernel, GeneratedKernel]:
    """Build a reduction of short rows, with a thread for each row."""
    builder = _start_kernel(spec)
    builder.tiny = True  # makes a loop for each outer axis, which `spread` collapses to one
    add_unrolled_rows(builder)
    out = builder.out
    out.ints.insert(0, out.extent)
    out.blocks = _blocks(spec, out.extent, wave, False)
    return _finish_range(builder, spread(builder.loop_ir.kernel(), THREADS, 1, False))
