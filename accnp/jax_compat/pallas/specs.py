"""Specifications of kernels over grids: blocks, grids, memory spaces and compiler hints.

Memory spaces and hints are accepted and have no effect, since there is one memory space.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.shapes import AxesLike
from accnp.array_type import Array
from accnp.dtypes import canonicalize_dtype
from accnp.errors import api_boundary
from accnp.ir.aval import make_aval

__all__ = [
    "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CostEstimate", "Element", "GridSpec",
    "Indirect", "MemoryRef", "MemorySpace", "PrefetchScalarGridSpec", "RevisitMode", "Squeezed",
    "no_block_spec", "squeezed",
]  # fmt: skip


# --- axes of blocks ---


@dataclasses.dataclass(frozen=True)
class Blocked:
    """Axis in blocks of one size, which the index map counts; the meaning of a plain integer.

    Parameters
    ----------
    block_size : int
        How many elements a block has along the axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> call = pl.pallas_call(
    ...     double,
    ...     jnp.ShapeDtypeStruct((4,), jnp.int32),
    ...     grid=(2,),
    ...     in_specs=[pl.BlockSpec((pl.Blocked(2),), lambda i: (i,))],
    ...     out_specs=pl.BlockSpec((2,), lambda i: (i,)),
    ... )
    >>> call(jnp.arange(4))
    Array([0, 2, 4, 6], dtype=int32)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """Axis whose blocks start at any element, which the index map returns.

    Parameters
    ----------
    block_size : int
        How many elements a block has along the axis.
    padding : (int, int), optional
        Elements added before and after the array. The default is (0, 0).

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> call = pl.pallas_call(
    ...     double,
    ...     jnp.ShapeDtypeStruct((4,), jnp.int32),
    ...     grid=(2,),
    ...     in_specs=[pl.BlockSpec((pl.Element(2),), lambda i: (2 * i,))],
    ...     out_specs=pl.BlockSpec((2,), lambda i: (i,)),
    ... )
    >>> call(jnp.arange(4))
    Array([0, 2, 4, 6], dtype=int32)
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """Axis along which a block has one element; the reference does not have this axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> row = pl.BlockSpec((pl.Squeezed(), 2), lambda i: (i, 0))
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> shape = jnp.ShapeDtypeStruct((2, 2), jnp.int32)
    >>> call = pl.pallas_call(double, shape, grid=(2,), in_specs=[row], out_specs=row)
    >>> call(jnp.arange(4).reshape(2, 2)).tolist()
    [[0, 2], [4, 6]]
    """


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """Axis whose blocks are slices of computed size, which `pallas_call` rejects.

    Shapes are static in accnp, for arrays of any dtype.

    Parameters
    ----------
    block_size : int
        Upper limit of the length of a slice.

    Raises
    ------
    NotImplementedError
        From `pallas_call`.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.BoundedSlice(4)
    BoundedSlice(block_size=4)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """Axis whose blocks are gathered by arrays of indices, which `pallas_call` rejects.

    Index the reference by an integer array in the kernel instead.

    Parameters
    ----------
    block_size : int
        Number of elements that are gathered.

    Raises
    ------
    NotImplementedError
        From `pallas_call`.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.Indirect(4)
    Indirect(block_size=4)
    """

    block_size: int


squeezed = Squeezed()


class RevisitMode(enum.Enum):
    """When a block of a result may be visited again. accnp always allows it.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> pl.RevisitMode("any")
    <RevisitMode.ANY: 'any'>
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """Number of copies of a block that a pipeline keeps: a hint without effect on shape or dtype.

    Parameters
    ----------
    buffer_count : int
        How many copies to keep.
    use_lookahead : bool, optional
        Whether to fetch blocks before they are needed.
    revisit : RevisitMode, optional
        What happens to blocks that are used again.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.Buffered(2).buffer_count
    2
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


@dataclasses.dataclass
class BlockSpec:
    """Block of an array that each step of a grid gets, for arrays of any dtype.

    Parameters
    ----------
    block_shape : sequence, optional
        For each axis of the array a size, `Element(size)`, or None for an axis along which a block
        has one element and the reference has no axis. The default is the whole array.
    index_map : callable, optional
        Function of the step along each axis of the grid, followed by references to prefetched
        scalars, that returns the number of the block along each axis of the array. The default is
        the first block.
    memory_space : object, optional
        Ignored hint.
    pipeline_mode : Buffered, optional
        Ignored hint.

    Raises
    ------
    ValueError
        From `pallas_call`, if the spec does not match the array.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.BlockSpec((8, None), lambda i, j: (i, j)).block_shape
    (8, None)
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    replace = dataclasses.replace


class _NoBlockSpec:
    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


# --- grids ---


class GridSpec:
    """Grid, blocks of operands and results, and scratch memory, in one object.

    Parameters
    ----------
    grid : int or tuple of int, optional
        Number of steps along each axis; they may be traced scalars.
    in_specs : pytree of BlockSpec, optional
        Block of each operand, of any dtype.
    out_specs : pytree of BlockSpec, optional
        Block of each result.
    scratch_shapes : tuple or dict, optional
        Types of memory that belongs to the kernel.

    Raises
    ------
    ValueError
        If the grid does not consist of integers, or `in_specs` is not a sequence.

    See Also
    --------
    experimental.pallas.pallas_call : Run a kernel on a grid.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.GridSpec((2, 3)).grid
    (2, 3)
    """

    @api_boundary
    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        if in_specs is not no_block_spec and not isinstance(in_specs, list | tuple):
            raise ValueError(
                f"GridSpec: in_specs must be a tuple or a list; got {in_specs!r}; "
                "pass one BlockSpec for each operand in a tuple"
            )
        sizes: tuple[Any, ...] = (grid,) if isinstance(grid, int) else tuple(grid)
        named = bool(sizes) and isinstance(sizes[0], tuple)
        self.grid_names = tuple([g[0] for g in sizes]) if named else None
        self.grid = tuple([g[1] for g in sizes]) if named else sizes
        for g in self.grid:
            if not (isinstance(g, int | np.integer | Array) and not isinstance(g, bool)):
                raise ValueError(
                    f"GridSpec: the grid must be a tuple of integers; got {self.grid!r}; "
                    "pass integers in a tuple"
                )
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = scratch_shapes
        self.num_scalar_prefetch = 0

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(grid={self.grid}, in_specs={self.in_specs}, "
            f"out_specs={self.out_specs}, scratch_shapes={self.scratch_shapes})"
        )


class PrefetchScalarGridSpec(GridSpec):
    """Grid whose index maps read the first operands, integer arrays that select blocks.

    These operands, of any shape, are passed as references to index maps (after the indices of the
    step) and to the kernel (before the others).

    Parameters
    ----------
    num_scalar_prefetch : int
        How many operands are prefetched, of an integer dtype.
    grid : int or tuple of int, optional
        Number of steps along each axis.
    in_specs : pytree of BlockSpec, optional
        Block of each further operand.
    out_specs : pytree of BlockSpec, optional
        Block of each result.
    scratch_shapes : tuple or dict, optional
        Types of memory that belongs to the kernel.

    Raises
    ------
    ValueError
        From `pallas_call`, if the specs do not match the arrays.

    Examples
    --------
    >>> from accnp.experimental.pallas import tpu as pltpu
    >>> pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=4).num_scalar_prefetch
    1
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: AxesLike = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """Estimated cost of a kernel, which changes no shape, dtype or value here.

    `estimate_cost` makes one.

    Parameters
    ----------
    flops : int
        Number of floating-point operations.
    transcendentals : int
        Number of evaluations of functions such as exp.
    bytes_accessed : int
        Memory that is read and written, in bytes.
    remote_bytes_transferred : int, optional
        Amount of data sent to other devices, in bytes.

    Raises
    ------
    ValueError
        If a number is not an integer.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.CostEstimate(flops=200, transcendentals=0, bytes_accessed=1200).flops
    200
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise ValueError(
                    f"CostEstimate: {name} must be an int; got {value!r}; convert it with int()"
                )


# --- memory ---


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Type of scratch memory: a shape, a dtype, and a kind of memory.

    Parameters
    ----------
    inner_aval : ShapedArray
        Shape and dtype of the memory.
    memory_space : object
        Kind of memory; all are the same here.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.pallas import tpu
    >>> memory = tpu.VMEM((2, 3), jnp.float32)
    >>> memory.shape, memory.dtype
    ((2, 3), dtype('float32'))
    """

    inner_aval: Any
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.inner_aval.dtype


class MemorySpace(enum.Enum):
    """Kinds of memory that all devices have: `MemorySpace.ANY(shape, dtype)` is a type.

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
    >>> from accnp.experimental import pallas as pl
    >>> pl.MemorySpace.ANY((2,), "float32").shape
    (2,)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return typed(shape, dtype, self)


def typed(shape: Sequence[int], dtype: Any, space: Any) -> MemoryRef:
    """Return the type of a piece of memory."""
    return MemoryRef(make_aval(tuple(shape), np.dtype(canonicalize_dtype(dtype))), space)
