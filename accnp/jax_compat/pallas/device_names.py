"""Names of Pallas for TPUs and GPUs: memory spaces, compiler hints and asynchronous copies.

There is one memory space and one thread, so copies complete when they start, and hints have no
effect.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.arrays.reference_parts import Part
from accnp.api.arrays.references import Ref, new_ref
from accnp.array_type import Array, ArrayLike, wrap
from accnp.dtypes import canonicalize_dtype
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.jax_compat.pallas.calls import Block, step_of
from accnp.jax_compat.pallas.kernel_functions import grid_of
from accnp.jax_compat.pallas.specs import MemoryRef, typed
from accnp.lax.control_flow.loops import fori_loop
from accnp.lax.elementwise import bitcast_convert_type
from accnp.numpy.rearranging import roll as plain_roll
from accnp.pytree import PyTree, flatten_arrays, map_arrays

__all__ = [
    "AsyncCopyDescriptor", "ChipVersion", "CompilerParams", "GridDimensionSemantics",
    "SemaphoreType", "SideEffectType", "TpuMemorySpace", "TritonParams", "async_copy", "bitcast",
    "emit_pipeline", "get_tpu_info", "is_tpu_device", "make_async_copy", "roll", "sync_copy",
]  # fmt: skip

# --- memory ---


class TpuMemorySpace(enum.Enum):
    """Kinds of memory of TPUs, all of them the one memory here: `VMEM(shape, dtype)` is a type.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes of scratch memory.
    dtype : dtype_like
        Type of its elements.

    Returns
    -------
    MemoryRef
        Type of scratch memory.

    Raises
    ------
    TypeError
        If the dtype is unknown.

    See Also
    --------
    experimental.pallas.pallas_call : Run a kernel with scratch memory.

    Examples
    --------
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.VMEM((8, 128), "float32").shape
    (8, 128)
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return typed(shape, dtype, self)

    def like(self, x: Any) -> MemoryRef:
        """Return the type of an array in this memory space."""
        return typed(x.shape, x.dtype, self)

    def __repr__(self) -> str:
        return self.name


class SemaphoreType(enum.Enum):
    """Types of semaphores in scratch memory, which nothing waits for here.

    A member is the type of one semaphore, of shape () and dtype int16, as in the interpreter of
    JAX. Called with a shape, it is the type of several. Copies are done when they start.

    Parameters
    ----------
    shape : sequence of int
        How many semaphores there are along each axis.

    Returns
    -------
    MemoryRef
        Type of scratch memory.

    Raises
    ------
    TypeError
        If the shape is not iterable.

    See Also
    --------
    experimental.pallas.pallas_call : Run a kernel with scratch memory.

    Examples
    --------
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.SemaphoreType.DMA((2,)).shape
    (2,)
    """

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        return typed(shape, self.dtype, TpuMemorySpace.SEMAPHORE)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a semaphore."""
        return ()

    @property
    def dtype(self) -> Any:
        """The dtype that represents a semaphore."""
        return np.dtype(np.int16)


# --- hints ---


class GridDimensionSemantics(enum.Enum):
    """Whether steps along an axis of a grid may run in any order. accnp runs them in order.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu
    >>> tpu.GridDimensionSemantics("parallel")
    <GridDimensionSemantics.PARALLEL: 'parallel'>
    """

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


class SideEffectType(enum.Enum):
    """Whether a kernel may be dropped. accnp drops kernels that no result needs.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu
    >>> tpu.SideEffectType("pure")
    <SideEffectType.PURE: 'pure'>
    """

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Hints to the compiler for TPUs, which change no shape, dtype or value here.

    Parameters
    ----------
    dimension_semantics : sequence, optional
        Whether steps along each axis of the grid are independent.
    allow_input_fusion : sequence of bool, optional
        Which operands may be fused.
    vmem_limit_bytes : int, optional
        Largest memory of a kernel.
    collective_id : int, optional
        Number of the barrier semaphore.
    has_side_effects : bool or SideEffectType, optional
        Whether the kernel may be removed.
    flags : dict, optional
        Options of the compiler.
    internal_scratch_in_bytes : int, optional
        Memory for the compiler.
    serialization_format : int, optional
        Version of the kernel's format.
    disable_bounds_checks : bool, optional
        Whether to omit checks of bounds.
    disable_semaphore_checks : bool, optional
        Whether to omit checks of semaphores.
    skip_device_barrier : bool, optional
        Whether to omit the barrier at the start.
    allow_collective_id_without_custom_barrier : bool, optional
        Whether `collective_id` may be given without a barrier.
    shape_invariant_numerics : bool, optional
        Whether results must not depend on shapes.
    use_tc_tiling_on_sc : bool, optional
        Layout of tiles on sparse cores.
    needs_layout_passes : bool, optional
        Whether layouts are inferred.
    fuse_transposed_lhs_in_matmul : bool, optional
        Whether transposed operands are fused into products.

    Raises
    ------
    TypeError
        If a keyword is not the name of a hint in JAX.

    Examples
    --------
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.CompilerParams(dimension_semantics=("parallel",)).dimension_semantics
    ('parallel',)
    """

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: dict[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    replace = dataclasses.replace


@dataclasses.dataclass(frozen=True)
class TritonParams:
    """Hints to the compiler for GPUs, which change no shape, dtype or value here.

    Parameters
    ----------
    num_warps : int, optional
        Number of warps of a block of threads.
    num_stages : int, optional
        Depth of software pipelines.

    Raises
    ------
    TypeError
        If a keyword is not the name of a hint in JAX.

    Examples
    --------
    >>> from accnp.experimental.pallas import triton as plgpu
    >>> plgpu.CompilerParams(num_warps=4).num_warps
    4
    """

    num_warps: int | None = None
    num_stages: int | None = None


# --- the machine ---


class ChipVersion(enum.Enum):
    """Versions of TPUs, for programs that compare them; no array has a shape or dtype for one here.

    Raises
    ------
    ValueError
        If the version is unknown.

    Examples
    --------
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> str(pltpu.ChipVersion.TPU_V5E)
    'v5e'
    """

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"

    def __str__(self) -> str:
        return self.value


@api_boundary
def is_tpu_device() -> bool:
    """Return False, since accnp has no TPUs.

    Returns
    -------
    bool
        False.

    See Also
    --------
    devices : List of the devices.

    Examples
    --------
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.is_tpu_device()
    False
    """
    return False


@api_boundary
def get_tpu_info() -> Any:
    """Raise a ValueError, as JAX does on a machine without a TPU.

    Returns
    -------
    object
        Never returned, whatever the shapes and dtypes of arrays.

    Raises
    ------
    ValueError
        Always.

    See Also
    --------
    experimental.pallas.tpu.is_tpu_device : Whether there is a TPU.

    Examples
    --------
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.is_tpu_device() and pltpu.get_tpu_info()
    False
    """
    raise ValueError(
        "get_tpu_info: Unsupported TPU device kind: cpu; there is no TPU; ask is_tpu_device() first"
    )


# --- copies ---


def _copy(source: Any, target: Any, add: bool) -> None:
    for x in (source, target):
        if not isinstance(x, Ref | Part):
            raise ValueError(
                f"sync_copy: both must be references, or parts of them; got {x!r}; see jax.new_ref"
            )
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ValueError(
            f"sync_copy: both need one type; got {source.dtype}{list(source.shape)} to "
            f"{target.dtype}{list(target.shape)}; cut one of them by ref.at[i]"
        )
    target[...] = target[...] + source[...] if add else source[...]


@api_boundary
def sync_copy(src_ref: PyTree, dst_ref: PyTree, *, add: bool = False) -> None:
    """Copy the content of references to others of the same shapes and dtypes.

    Parameters
    ----------
    src_ref : pytree of Ref
        References, or parts of them, to read.
    dst_ref : pytree of Ref
        References, or parts of them, to write.
    add : bool, optional
        Whether to accumulate into the destination instead of replacing it. The default is False.

    Raises
    ------
    ValueError
        If types differ, or a leaf is not a reference.

    See Also
    --------
    experimental.pallas.tpu.make_async_copy : Copy in two steps.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> a, b = jnp.new_ref(jnp.arange(4)), jnp.new_ref(jnp.zeros(2, int))
    >>> pltpu.sync_copy(a.at[2:], b)
    >>> b[...]
    Array([2, 3], dtype=int32)
    """
    map_arrays(lambda x, y: _copy(x, y, add), src_ref, dst_ref)


class AsyncCopyDescriptor:
    """Copy between references that completes when it starts; made by `make_async_copy`.

    Parameters
    ----------
    src_ref : Ref
        Reference, or part of one, to read.
    dst_ref : Ref
        Reference, or part of one, to write.
    dst_sem : Ref or None
        Semaphore, which nothing waits for here.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> from accnp.experimental.pallas import tpu
    >>> def copy(x_ref, o_ref, sem):
    ...     descriptor = tpu.make_async_copy(x_ref, o_ref, sem)
    ...     descriptor.start()
    ...     descriptor.wait()
    >>> shape = jnp.ShapeDtypeStruct((3,), jnp.int32)
    >>> call = pl.pallas_call(copy, shape, scratch_shapes=[tpu.SemaphoreType.DMA])
    >>> call(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """

    def __init__(self, src_ref: Any, dst_ref: Any, dst_sem: Any) -> None:
        self.src_ref, self.dst_ref, self.dst_sem = src_ref, dst_ref, dst_sem

    @property
    def is_remote(self) -> bool:
        """Whether the target is another device: never."""
        return False

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copy or add immediately."""
        _copy(self.src_ref, self.dst_ref, add)

    def wait(self) -> None:
        """Do nothing, since the copy is complete."""

    wait_recv = wait


@api_boundary
def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """Describe a copy between references; its method `start` copies immediately.

    Parameters
    ----------
    src_ref : Ref
        Reference, or part of one, to read.
    dst_ref : Ref
        Reference, or part of one, to write, of the same shape and dtype.
    sem : Ref or None
        Semaphore, which nothing waits for here.

    Returns
    -------
    AsyncCopyDescriptor
        Object with the methods `start` and `wait`.

    Raises
    ------
    ValueError
        From `start`, if types differ.

    See Also
    --------
    experimental.pallas.tpu.sync_copy : Copy in one step.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> a, b = jnp.new_ref(jnp.arange(4)), jnp.new_ref(jnp.zeros(2, int))
    >>> copy = pltpu.make_async_copy(a.at[2:], b, None)
    >>> copy.start()
    >>> copy.wait()
    >>> b[...]
    Array([2, 3], dtype=int32)
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


@api_boundary
def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """Start a copy between references, and return its descriptor.

    Parameters
    ----------
    src_ref : Ref
        Reference, or part of one, to read.
    dst_ref : Ref
        Reference, or part of one, to write, of the same shape and dtype.
    sem : Ref or None
        Semaphore, which nothing waits for here.
    priority : int, optional
        Ignored hint.
    add : bool, optional
        Whether to accumulate into the destination. The default is False.

    Returns
    -------
    AsyncCopyDescriptor
        Object with the methods `start` and `wait`.

    Raises
    ------
    ValueError
        If types differ.

    See Also
    --------
    experimental.pallas.tpu.make_async_copy : Describe a copy without starting it.
    experimental.pallas.tpu.sync_copy : Copy without a descriptor.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> a, b = jnp.new_ref(jnp.arange(2)), jnp.new_ref(jnp.zeros(2, int))
    >>> pltpu.async_copy(a, b, None).wait()
    >>> b[...]
    Array([0, 1], dtype=int32)
    """
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(add=add)
    return copy


# --- a grid within a kernel ---


@api_boundary
def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Any,
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: object = None,
    core_axis: int | None = None,
    core_axis_name: str | None = None,
    dimension_semantics: Any = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """Make a function of references that runs a body for each step of a grid, on their blocks.

    It is `pallas_call` inside a kernel.

    Parameters
    ----------
    body : callable
        Function of references to blocks of what is read, then of what is written.
    grid : int or tuple of int
        Number of steps along each axis.
    in_specs : sequence of BlockSpec, optional
        Block of each reference that is read.
    out_specs : sequence of BlockSpec, optional
        Block of each reference that is written, of any dtype.
    tiling : object, optional
        Ignored; present for compatibility with JAX.
    core_axis : int, optional
        Ignored hint.
    core_axis_name : str, optional
        Ignored hint.
    dimension_semantics : sequence, optional
        Ignored hint.
    trace_scopes : bool, optional
        Ignored hint.
    no_pipelining : bool, optional
        Ignored hint.

    Returns
    -------
    callable
        Function of the references.

    Raises
    ------
    ValueError
        If the specs do not match the references.

    See Also
    --------
    experimental.pallas.pallas_call : Run a kernel on arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> two = pl.BlockSpec((2,), lambda i: i)
    >>> x, y = jnp.new_ref(jnp.arange(4)), jnp.new_ref(jnp.zeros(4, int))
    >>> pltpu.emit_pipeline(double, grid=(2,), in_specs=[two], out_specs=[two])(x, y)
    >>> y[...]
    Array([0, 2, 4, 6], dtype=int32)
    """
    sizes = [grid] if isinstance(grid, int) else list(grid)
    specs = [*flatten_arrays(in_specs)[0], *flatten_arrays(out_specs)[0]]

    def run(*refs: Any, scratches: Sequence[Any] = (), allocations: Any = None) -> None:
        if len(refs) != len(specs):
            raise ValueError(
                f"emit_pipeline: {len(specs)} specs need as many references; got {len(refs)}; "
                "pass one reference for each spec"
            )
        named = zip(refs, specs, strict=True)
        blocks = [Block(f"refs[{i}]", tuple(r.shape), s) for i, (r, s) in enumerate(named)]

        def step(i: Any, _: Any) -> None:
            ids = step_of(i, sizes)
            with grid_of(ids, sizes):
                whole = [b.padded(r[...]) for b, r in zip(blocks, refs, strict=True)]
                starts = [b.starts(ids, ()) for b in blocks]
                cut = zip(blocks, whole, starts, strict=True)
                parts = [new_ref(b.cut(x, s)) for b, x, s in cut]
                before = [p.content._node for p in parts]
                body(*([tuple(ids)] if _explicit_indices else []), *parts, *scratches)
            every = zip(refs, blocks, whole, starts, parts, before, strict=True)
            for ref, block, x, s, part, node in every:
                if part.content._node is not node:
                    ref[...] = block.cropped(block.put(x, s, part.content))

        fori_loop(0, prod(sizes), step, None)

    return run


@api_boundary
def roll(
    x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None
) -> Array:
    """Shift the elements of an array along an axis; those shifted out come in again.

    Parameters
    ----------
    x : array_like
        Elements to move.
    shift : int or Array
        Number of places to move them.
    axis : int
        Axis along which to shift.
    stride : int, optional
        Not supported.
    stride_axis : int, optional
        Not supported.

    Returns
    -------
    Array
        Array of the same shape and dtype.

    Raises
    ------
    NotImplementedError
        If `stride` is given.

    See Also
    --------
    numpy.roll : The same for several axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.roll(jnp.arange(4), 1, 0)
    Array([3, 0, 1, 2], dtype=int32)
    """
    if stride is not None:
        raise NotImplementedError(
            f"roll: shifts that grow along another axis are not there; got stride={stride}; "
            "leave stride out"
        )
    return plain_roll(wrap(as_node(x, "roll")), shift, axis)


@api_boundary
def bitcast(x: ArrayLike, ty: DTypeLike) -> Array:
    """Reinterpret the bits of an array as another dtype along the second-to-last axis.

    Parameters
    ----------
    x : array_like
        Array of rank 2 or more.
    ty : dtype_like
        Type of the result.

    Returns
    -------
    Array
        Array with a shorter or longer second-to-last axis. A larger dtype combines neighbors along
        that axis, the first one as its lowest bits.

    Raises
    ------
    ValueError
        If the rank is less than 2, or the length of the axis is not a multiple.

    See Also
    --------
    lax.bitcast_convert_type : Version for the last axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.bitcast(jnp.array([[1], [2]], jnp.int16), jnp.int32)
    Array([[131073]], dtype=int32)
    """
    a, dtype = wrap(as_node(x, "bitcast")), np.dtype(canonicalize_dtype(ty))
    if a.ndim < 2:
        raise ValueError(f"bitcast: needs a rank of at least 2; got shape {a.shape}; add axes")
    *lead, m, n = a.shape
    ratio = dtype.itemsize // a.dtype.itemsize
    if ratio > 1:
        if m % ratio:
            raise ValueError(
                f"bitcast: {ratio} rows of {a.dtype} make one of {dtype}; got shape {a.shape}; "
                "pad the rows to a multiple"
            )
        a = a.reshape(*lead, m // ratio, ratio, n).swapaxes(-1, -2)
    out = bitcast_convert_type(a, dtype)
    if out.ndim > len(lead) + 2:
        out = out.swapaxes(-1, -2).reshape(*lead, -1, n)
    return out
