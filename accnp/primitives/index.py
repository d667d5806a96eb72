"""Indexed reads and writes: `gather`, `dynamic_slice` and `dynamic_update_slice`.

The operands are the array, integer start indices (for gather, the last axis holds the coordinates
of one window), and the update. Dimension numbers are those of XLA, so that jaxprs print as in JAX.
The scatter ops are in `scatter.py` and share the classes defined here; the kernels are in
`compiler/library/indexing/`, and the public functions in `accnp/numpy/`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeVar, Unpack

import numpy as np

from accnp.errors import IncompatibleShapesError, UnsupportedDtypeError
from accnp.ir.aval import Aval, make_aval
from accnp.ir.node import Node
from accnp.ir.op import Linear, Lowering, o
from accnp.primitives.kinds import (
    broadcast_to,
    dtype_kind,
    dtypes_differ,
    full,
    opaque,
    zeros_like_aval,
)

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import Number

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers"]


class GatherDimensionNumbers(NamedTuple):
    """Roles of the axes of operand, indices and result of `gather`.

    Parameters
    ----------
    offset_dims : tuple of int
        Axes of the result that run inside a window.
    collapsed_slice_dims : tuple of int
        Axes of the operand along which windows have length 1 and which the result lacks.
    start_index_map : tuple of int
        Axis of the operand for each coordinate of an index.
    operand_batching_dims : tuple of int, optional
        Batch axes of the operand, which the result has, too.
    start_indices_batching_dims : tuple of int, optional
        Axes of the indices that belong to these batch axes.

    Raises
    ------
    TypeError
        If `gather` gets numbers that do not fit its operands.

    Examples
    --------
    >>> import accnp as jnp
    >>> rows = jnp.lax.GatherDimensionNumbers(
    ...     offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> jnp.lax.gather(jnp.eye(3), jnp.array([[2]]), rows, (1, 3))
    Array([[0., 0., 1.]], dtype=float32)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Roles of the axes of operand, indices and updates of `scatter`.

    Parameters
    ----------
    update_window_dims : tuple of int
        Axes of the updates that run inside a window.
    inserted_window_dims : tuple of int
        Axes of the operand along which windows have length 1 and which the updates lack.
    scatter_dims_to_operand_dims : tuple of int
        Axis of the operand for each coordinate of an index.
    operand_batching_dims : tuple of int, optional
        Batch axes of the operand, which the updates have, too.
    scatter_indices_batching_dims : tuple of int, optional
        Axes of the indices that belong to these batch axes.

    Raises
    ------
    TypeError
        If `scatter` gets numbers that do not fit its operands.

    Examples
    --------
    >>> import accnp as jnp
    >>> one = jnp.lax.ScatterDimensionNumbers(
    ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> jnp.lax.scatter_add(jnp.zeros(3), jnp.array([[1]]), jnp.array([5.0]), one)
    Array([0., 5., 0.], dtype=float32)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """Treatment of windows that are not inside of the operand.

    Attributes
    ----------
    CLIP : GatherScatterMode
        Move them inside.
    FILL_OR_DROP : GatherScatterMode
        Read a fill value, and write nothing.
    PROMISE_IN_BOUNDS : GatherScatterMode
        The caller guarantees that there are none.
    ONE_HOT : GatherScatterMode
        Present for compatibility with JAX.

    Raises
    ------
    ValueError
        If a string is given that names no mode.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.arange(3).at[9].get(mode=jnp.lax.GatherScatterMode.CLIP)
    Array(2, dtype=int32)
    """

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3

    def __repr__(self) -> str:
        return f"GatherScatterMode.{self.name}"

    __str__ = __repr__

    @staticmethod
    def from_any(s: GatherScatterMode | str | None, function: str = "gather") -> GatherScatterMode:
        """Return the mode for a user's string or None."""
        if isinstance(s, GatherScatterMode):
            return s
        mode = _MODES.get(s)
        if mode is None:
            raise ValueError(
                f"{function}: unknown mode; got {s!r}; "
                f"pass one of {', '.join(repr(k) for k in _MODES if k)}"
            )
        return mode


_MODES = {
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    None: GatherScatterMode.FILL_OR_DROP,
}
DROP = GatherScatterMode.FILL_OR_DROP


if TYPE_CHECKING:

    class _Gather(TypedDict):
        """The static parameters of `gather`."""

        dimension_numbers: GatherDimensionNumbers
        slice_sizes: tuple[int, ...]
        indices_are_sorted: bool
        unique_indices: bool
        mode: GatherScatterMode
        fill_value: Number | None


DimensionNumbers = GatherDimensionNumbers | ScatterDimensionNumbers
_Dims = TypeVar("_Dims", GatherDimensionNumbers, ScatterDimensionNumbers)


# --- positions of windows ------------------------------------------------------------------------


class _Places(NamedTuple):
    """NumPy indices of the operand's axes `axes` (moved to the front), and which windows are
    inside.

    `order` permutes these axes to the front and axes that are taken whole to the end. The indices
    have one axis for each axis of the starts, then one for each indexed axis that has a window.
    """

    order: tuple[int, ...]
    indices: tuple[np.ndarray, ...]
    inside: np.ndarray | None  # bools of the shape of the starts; None: all windows are inside
    batch: int  # number of axes of the starts
    windowed: tuple[int, ...]  # operand axes with a window among `axes`
    whole: tuple[int, ...]  # operand axes taken whole


def gather_positions(
    shape: Sequence[int],
    starts: np.ndarray,
    sizes: Sequence[int],
    dims: DimensionNumbers,
    mode: GatherScatterMode,
) -> _Places:
    _, collapsed, mapped, batching, starts_batching = dims
    rank, batch = len(shape), starts.ndim - 1
    if starts.dtype == np.uint64:
        starts = np.minimum(starts, np.iinfo(np.int64).max)
    coordinate = {d: starts[..., k].astype(np.int64) for k, d in enumerate(mapped)}
    inside = None
    for d, at in coordinate.items():
        top = shape[d] - sizes[d]
        if mode is DROP:
            ok = (at >= 0) & (at <= top)
            if not ok.all():
                inside = ok if inside is None else inside & ok
        if at.size:
            coordinate[d] = np.clip(at, 0, max(top, 0))
    for k, d in enumerate(batching):
        axis = starts_batching[k]
        length: int = starts.shape[axis]
        coordinate[d] = np.arange(length).reshape([-1 if i == axis else 1 for i in range(batch)])
    indexed = [d for d in range(rank) if d in collapsed or d in batching]
    # A window over a whole axis can only start at 0, so it needs no index.
    whole = [d for d in range(rank) if d not in indexed and sizes[d] == shape[d]]
    windowed = [d for d in range(rank) if d not in indexed and d not in whole]
    for d in (*indexed, *windowed):
        coordinate.setdefault(d, np.zeros((1,) * batch, np.int64))
    index: list[np.ndarray] = []
    for d in [*indexed, *windowed]:
        at = coordinate[d]
        at = at.reshape(at.shape + (1,) * len(windowed))
        if d in windowed:
            run = np.arange(sizes[d])
            at = at + run.reshape([-1 if w == d else 1 for w in windowed])
        index.append(at)
    return _Places(
        (*indexed, *windowed, *whole), tuple(index), inside, batch, tuple(windowed), tuple(whole)
    )


def layout_of(
    p: _Places, window_dims: Sequence[int], axes: Sequence[int], rank: int
) -> tuple[int, ...]:
    """Return the position of each output axis in an array with axes (starts, windowed, whole)."""
    position_of = {d: p.batch + k for k, d in enumerate((*p.windowed, *p.whole))}
    inner = [position_of[d] for d in axes]
    outer = iter(range(p.batch))
    windows = dict(zip(window_dims, inner, strict=True))
    return tuple([windows[i] if i in windows else next(outer) for i in range(rank)])


def window_axes(rank: int, dims: DimensionNumbers) -> list[int]:
    return [d for d in range(rank) if d not in dims[1] and d not in dims[3]]


def fill_value_of(dtype: np.dtype, fill: Number | None) -> Number:
    """Return the value that a gather reads outside an operand: nan, lowest int, highest uint."""
    if fill is not None:
        return fill
    kind = dtype_kind(dtype)
    if kind in "fc":
        return np.nan
    if kind == "b":
        return True
    return np.iinfo(dtype).min if kind == "i" else np.iinfo(dtype).max


def _gather_numpy(
    x: np.ndarray,
    starts: np.ndarray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    fill_value: Number | None,
) -> np.ndarray:
    dims = dimension_numbers
    batch_shape = starts.shape[:-1]
    rank = len(batch_shape) + len(dims.offset_dims)
    axes = window_axes(x.ndim, dims)
    sizes = [slice_sizes[d] for d in axes]
    if any(n == 0 for d, n in enumerate(x.shape) if slice_sizes[d] > n) or 0 in batch_shape:
        shape = _output_shape(batch_shape, sizes, dims.offset_dims)
        return np.full(shape, fill_value_of(x.dtype, fill_value), x.dtype)
    p = gather_positions(x.shape, starts, slice_sizes, dims, mode)
    moved = x.transpose(p.order)
    if p.indices:
        out = moved[p.indices]
        expected = (*batch_shape, *[slice_sizes[d] for d in (*p.windowed, *p.whole)])
        out = np.broadcast_to(out, expected) if out.shape != expected else out
    else:
        out = np.broadcast_to(moved, (*batch_shape, *moved.shape))
    if p.inside is not None:
        shown = p.inside.reshape(p.inside.shape + (1,) * (out.ndim - p.batch))
        fill = np.asarray(fill_value_of(x.dtype, fill_value)).astype(x.dtype)
        out = np.where(shown, out, fill)
    return out.transpose(layout_of(p, dims.offset_dims, axes, rank))


def _output_shape(
    batch: Sequence[int], sizes: Sequence[int], offset_dims: Sequence[int]
) -> tuple[int, ...]:
    inner, outer = iter(sizes), iter(batch)
    rank = len(batch) + len(sizes)
    return tuple([next(inner) if i in offset_dims else next(outer) for i in range(rank)])


def _gather_infer(x: Aval, starts: Aval, **p: Unpack[_Gather]) -> Aval:
    dims, sizes = p["dimension_numbers"], p["slice_sizes"]
    if dtype_kind(starts.dtype) not in "iu":
        raise UnsupportedDtypeError(
            f"gather: indices must be integers; got {starts.dtype.name}; convert them"
        )
    if starts.ndim < 1 or starts.shape[-1] != len(dims.start_index_map):
        raise TypeError(
            "gather: the last axis of the indices must be as long as start_index_map; got shape "
            f"{starts.shape} (indices) and {dims.start_index_map} (start_index_map); add or remove "
            "coordinates"
        )
    fits = len(sizes) == x.ndim and all(0 <= s <= n for s, n in zip(sizes, x.shape, strict=True))
    if not fits and 0 not in x.shape:
        raise TypeError(
            f"gather: slice sizes do not fit into shape {x.shape}; got slice_sizes={sizes}; "
            "pass one size for each axis, of at most the length of the axis"
        )
    wide = [d for d in dims.collapsed_slice_dims if sizes[d] > 1]
    if wide:
        raise TypeError(
            "gather: windows must have size 1 along collapsed axes; got slice_sizes "
            f"{sizes} and collapsed_slice_dims {dims.collapsed_slice_dims}; remove axis {wide[0]} "
            "from the latter"
        )
    window_shape = [sizes[d] for d in window_axes(x.ndim, dims)]
    if len(window_shape) != len(dims.offset_dims):
        raise TypeError(
            "gather: offset_dims needs one entry for each axis of the window that is not collapsed;"
            f" got {dims.offset_dims} for {len(window_shape)} axes; pass that many"
        )
    return make_aval(
        _output_shape(starts.shape[:-1], window_shape, dims.offset_dims), x.dtype, x.weak_type
    )


def _gather_jvp(t: Node, y: Node, x: Node, starts: Node, **p: Unpack[_Gather]) -> Node:
    return o.gather(t, starts, **{**p, "fill_value": 0})


def scatter_dims(dims: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """Return the dimension numbers of the scatter that writes where a gather reads."""
    return ScatterDimensionNumbers(*dims)


def _gather_transpose(
    ct: Node, x: Operand, starts: Node, **p: Unpack[_Gather]
) -> tuple[Node, None]:
    # Indices that are out of bounds despite the promise are clamped by the gather but dropped here,
    # as in jax.
    promised = p["mode"] is GatherScatterMode.PROMISE_IN_BOUNDS
    out = o.scatter_add(
        zeros_like_aval(x.aval),
        starts,
        ct,
        dimension_numbers=scatter_dims(p["dimension_numbers"]),
        indices_are_sorted=p["indices_are_sorted"],
        unique_indices=p["unique_indices"],
        mode=DROP if promised else p["mode"],
    )
    return out, None


def _shift_dims(dims: Sequence[int], by: int = 1) -> tuple[int, ...]:
    return tuple([d + by for d in dims])


def batched_dims(dims: _Dims, operand: bool, starts: bool) -> _Dims:
    """Return dimension numbers if an operand or starts (and updates) have a batch axis in front."""
    window, collapsed, mapped, batching, starts_batching = dims
    if operand and starts:
        return type(dims)(
            _shift_dims(window),
            _shift_dims(collapsed),
            _shift_dims(mapped),
            (0, *_shift_dims(batching)),
            (0, *_shift_dims(starts_batching)),
        )
    if operand:
        return type(dims)(
            (0, *_shift_dims(window)),
            _shift_dims(collapsed),
            _shift_dims(mapped),
            _shift_dims(batching),
            starts_batching,
        )
    return type(dims)(
        _shift_dims(window), collapsed, mapped, batching, _shift_dims(starts_batching)
    )


def _gather_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
) -> tuple[Node, bool]:
    dims = batched_dims(p["dimension_numbers"], *batched)
    sizes = p["slice_sizes"]
    if batched[0]:
        sizes = (1 if batched[1] else size, *sizes)
    return o.gather(*xs, **{**p, "dimension_numbers": dims, "slice_sizes": sizes}), True


# The starts of windows (the last axis has one column for each indexed axis), the axes, and the last
# valid start along each of them.
Windows = tuple[Node, tuple[int, ...], list[int]]


def _gathered_windows(xs: Sequence[Node], p: Params) -> Windows:
    axes = tuple(p["dimension_numbers"].start_index_map)
    return xs[1], axes, [xs[0].aval.shape[d] - p["slice_sizes"][d] for d in axes]


opaque(
    "gather",
    lowering=Lowering("indexing.gathers.gather"),
    infer=_gather_infer,
    halves="own",
    numpy=_gather_numpy,
    jvp=lambda ts, y, xs, p: None if ts[0] is None else _gather_jvp(ts[0], y, *xs, **p),
    transpose=_gather_transpose,
    batch=_gather_batch,
    indexing="gather",
    windows=_gathered_windows,
    sharding="gather",
)


# --- dynamic slices ------------------------------------------------------------------------------


def _clamp_starts(
    shape: Sequence[int], sizes: Sequence[int], starts: Sequence[np.ndarray]
) -> list[int]:
    return [min(max(int(s), 0), n - k) for n, k, s in zip(shape, sizes, starts, strict=True)]


def _clamped_window(
    shape: Sequence[int], sizes: Sequence[int], starts: Sequence[np.ndarray]
) -> tuple[slice, ...]:
    at = _clamp_starts(shape, sizes, starts)
    return tuple([slice(s, s + k) for s, k in zip(at, sizes, strict=True)])


def _check_starts(
    name: str, x: Aval, sizes: Sequence[int], starts: Sequence[Aval], what: str, rule: str
) -> None:
    """Check the sizes and starts of a window; `what` are the sizes, for which `rule` holds."""
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise IncompatibleShapesError(
            f"{name}: expected one start index and one size for each axis of shape {x.shape}; got "
            f"{len(starts)} start indices and sizes {tuple(sizes)}; pass {x.ndim} of each"
        )
    if any(not 0 <= k <= n for k, n in zip(sizes, x.shape, strict=True)):
        raise TypeError(
            f"{name}: {rule}, got {what} {tuple(sizes)} for operand shape {x.shape}; pass sizes "
            "between 0 and the length of each axis"
        )
    if any(s.ndim or dtype_kind(s.dtype) not in "iu" for s in starts):
        raise TypeError(
            f"{name}: start indices must be integer scalars; got {list(starts)}; "
            "convert with astype(int), one number for each axis"
        )


def _slice_infer(x: Aval, *starts: Aval, slice_sizes: tuple[int, ...]) -> Aval:
    rule = "slice slice_sizes must be less than or equal to operand shape"
    _check_starts("dynamic_slice", x, slice_sizes, starts, "slice_sizes", rule)
    return make_aval(tuple(slice_sizes), x.dtype, x.weak_type)


def _stack_starts(starts: Sequence[Node], batched: Sequence[bool], size: int) -> Node:
    """Stack start indices, one per axis, into an array of shape (size, axes)."""
    kind = np.dtype(np.int64 if any(s.aval.dtype.itemsize == 8 for s in starts) else np.int32)
    columns: list[Node] = []
    for s, b in zip(starts, batched, strict=True):
        wide = (
            s
            if s.aval.dtype == kind
            else o.convert_element_type(s, new_dtype=kind, weak_type=False)
        )
        columns.append(broadcast_to(wide, (size, 1), (0,) if b else ()))
    if not columns:
        return full((size, 0), 0, kind)
    return o.concatenate(*columns, dimension=1)


def _window_of_slice(starts: Sequence[Node], shape: Sequence[int], sizes: Sequence[int]) -> Windows:
    kind = np.dtype(np.int64 if any(x.aval.dtype.itemsize == 8 for x in starts) else np.int32)
    columns = [o.convert_element_type(x, new_dtype=kind, weak_type=False) for x in starts]
    wide = [broadcast_to(x, (1,), ()) for x in columns]
    table = o.concatenate(*wide, dimension=0) if wide else full((0,), 0, np.dtype(np.int32))
    return table, tuple(range(len(shape))), [n - m for n, m in zip(shape, sizes, strict=True)]


def _slice_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
) -> tuple[Node, bool]:
    x, starts = xs[0], xs[1:]
    if not any(batched[1:]):
        zero = full((), 0, starts[0].aval.dtype) if starts else full((), 0, np.dtype(np.int32))
        return o.dynamic_slice(x, zero, *starts, slice_sizes=(size, *p["slice_sizes"])), True
    rank, sizes = x.aval.ndim - batched[0], p["slice_sizes"]
    axes = tuple(range(rank))
    dims = GatherDimensionNumbers(_shift_dims(axes), (), axes)
    if batched[0]:
        dims = GatherDimensionNumbers(_shift_dims(axes), (), _shift_dims(axes), (0,), (0,))
        sizes = (1, *sizes)
    out = o.gather(
        x,
        _stack_starts(starts, batched[1:], size),
        dimension_numbers=dims,
        slice_sizes=tuple(sizes),
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )
    return out, True


def _slice_numpy(x: np.ndarray, *starts: np.ndarray, slice_sizes: tuple[int, ...]) -> np.ndarray:
    return x[_clamped_window(x.shape, slice_sizes, starts)]


def _slice_transpose(
    ct: Node, x: Operand, *starts: Node, slice_sizes: tuple[int, ...]
) -> tuple[Node | None, ...]:
    whole = o.dynamic_update_slice(zeros_like_aval(x.aval), ct, *starts)
    return whole, *[None] * len(starts)


opaque(
    "dynamic_slice",
    lowering=Lowering("indexing.gathers.dynamic_slice"),
    infer=_slice_infer,
    halves="own",
    numpy=_slice_numpy,
    jvp=lambda ts, y, xs, p: None if ts[0] is None else o.dynamic_slice(ts[0], *xs[1:], **p),
    transpose=_slice_transpose,
    batch=_slice_batch,
    indexing="slice",
    windows=lambda xs, p: _window_of_slice(xs[1:], xs[0].aval.shape, p["slice_sizes"]),
    sharding="dynamic_slice",
)


def _update_infer(x: Aval, update: Aval, *starts: Aval) -> Aval:
    if x.dtype != update.dtype:
        raise dtypes_differ("lax.dynamic_update_slice", (x, update))
    rule = "update shape must be smaller than operand shape"
    _check_starts("dynamic_update_slice", x, update.shape, starts, "update shape", rule)
    weak = x.weak_type and update.weak_type and not starts  # the indices have a strong type
    return make_aval(x.shape, x.dtype, weak)


def _update_numpy(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out = np.array(x)
    out[_clamped_window(x.shape, update.shape, starts)] = update
    return out


def _update_jvp(ts: Sequence[Node | None], y: Node, xs: Sequence[Node], p: Params) -> Node | None:
    if ts[0] is None and ts[1] is None:
        return None
    t, u = (zeros_like_aval(x.aval) if v is None else v for v, x in zip(ts, xs[:2], strict=False))
    return o.dynamic_update_slice(t, u, *xs[2:])


def _update_transpose(
    ct: Node, x: Operand, update: Operand, *starts: Node
) -> tuple[Node | None, ...]:
    ct_x = ct_u = None
    if isinstance(x, Linear):
        ct_x = o.dynamic_update_slice(ct, zeros_like_aval(update.aval), *starts)
    if isinstance(update, Linear):
        ct_u = o.dynamic_slice(ct, *starts, slice_sizes=update.aval.shape)
    return (ct_x, ct_u, *[None] * len(starts))


def _update_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], p: Params
) -> tuple[Node, bool]:
    x, update, *starts = xs
    if not batched[0]:
        x = broadcast_to(x, (size, *x.aval.shape))
    if not batched[1]:
        update = broadcast_to(update, (size, *update.aval.shape))
    if not any(batched[2:]):
        zero = full((), 0, starts[0].aval.dtype) if starts else full((), 0, np.dtype(np.int32))
        return o.dynamic_update_slice(x, update, zero, *starts), True
    axes = tuple(range(1, x.aval.ndim))
    out = o.scatter(
        x,
        _stack_starts(starts, batched[2:], size),
        update,
        dimension_numbers=ScatterDimensionNumbers(axes, (), axes, (0,), (0,)),
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
    )
    return out, True


opaque(
    "dynamic_update_slice",
    lowering=Lowering("indexing.scatters.dynamic_update_slice"),
    infer=_update_infer,
    halves="own",
    updated_operand=0,
    numpy=_update_numpy,
    jvp=_update_jvp,
    transpose=_update_transpose,
    batch=_update_batch,
    additive=True,
    indexing="update",
    windows=lambda xs, p: _window_of_slice(xs[2:], xs[0].aval.shape, xs[1].aval.shape),
    sharding="update",
)
