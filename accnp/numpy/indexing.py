"""NumPy's indexing, `x[key]`.

Static ints and slices become views, traced ints become dynamic slices, and integer arrays become
one gather. Masks must be concrete, since they determine the shape of the result.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from accnp.api.arguments.convert import (
    as_node,
    broadcast_shapes,
    cast,
    numpy_node,
    scalar_node,
    to_shape,
)
from accnp.api.arguments.non_numeric import accepts_keys
from accnp.api.arguments.values import node_of
from accnp.array_type import Array, concrete_value, const_of, wrap
from accnp.config import config
from accnp.engine import array_of
from accnp.errors import ConcretizationTypeError, NoElementsError, api_boundary
from accnp.ir.node import LITERAL, Node
from accnp.ir.op import o
from accnp.ir.trace import state, tracing
from accnp.numpy.index_cache import replayed, signature
from accnp.numpy.manipulation import expand_node
from accnp.primitives.index import GatherDimensionNumbers, GatherScatterMode
from accnp.primitives.kinds import INDEX, dtype_kind, dtype_of_indices

__all__ = ["Plan", "gather_axis", "getitem", "plan_of", "read", "wrap_negative"]

LISTED = 1 << 10  # the longest index arrays that are checked for being an arithmetic progression
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


class Entry(NamedTuple):
    """The part of a key for one axis of the operand, or for an inserted axis."""

    # "int" (static), "slice", "array" (also traced scalars), or "new": an inserted axis (value
    # None), or an index array of `value` zeros along an inserted axis.
    kind: str
    value: Any
    apart: bool = False  # follows an empty Ellipsis, which separates index arrays
    host_values: np.ndarray | None = None  # the values of a NumPy index array


TRUE, FALSE = Entry("new", 1), Entry("new", 0)


# --- parsing keys --------------------------------------------------------------------------------


def entries(shape: tuple[int, ...], key: Any, function: str = "indexing") -> list[Entry]:
    """Parse a key into one entry for each axis, with masks converted to integer arrays."""
    if isinstance(key, list):
        one_each = any(item is None or isinstance(item, Sequence | slice) for item in key)
        raise TypeError(
            "indexing: Using a non-tuple sequence for multidimensional indexing is not allowed; "
            f"use `arr[{'tuple' if one_each else 'array'}(seq)]` instead of `arr[seq]`; "
            f"got {str(key)[:80]}; "
            "an array indexes the first axis, a tuple has one index for each axis"
        )
    parts: list[Entry | None] = []  # None is the Ellipsis
    for item in key if isinstance(key, tuple) else (key,):
        parts.extend(_parse_index_item(item, len(parts), dtype_of_indices(max(shape, default=0))))
    if parts.count(None) > 1:
        raise IndexError(
            f"indexing: an index can only have a single ellipsis ('...'); got "
            f"{parts.count(None)}; keep one, and use ':' for single axes"
        )
    used = sum(_axes(p) for p in parts if p is not None)
    rank = len(shape)
    if used > rank:
        raise IndexError(
            f"indexing: Too many indices: array is {rank}-dimensional, but {used} were indexed; "
            f"got shape {shape}; remove some, or add axes"
        )
    rest = [Entry("slice", slice(None))] * (rank - used)
    at = parts.index(None) if None in parts else len(parts)
    whole = [*parts[:at], *rest, *parts[at + 1 :]]
    parted = at if at < len(parts) and not rest else -1  # the position of an empty Ellipsis
    out: list[Entry] = []
    d = 0
    # A True next to ints, arrays and other bools is an index array of one element; alone it is a
    # new axis.
    advanced = ("int", "array", "mask")
    advanced_items = sum(
        p is not None and (p.kind in advanced or p in (TRUE, FALSE)) for p in whole
    )
    for place, p in enumerate(whole):
        assert p is not None
        begin = len(out)
        if p.kind == "mask":
            mask = p.value
            for k, n in enumerate(mask.shape):
                if n not in (shape[d + k], 0):  # an empty axis of a mask matches any length
                    raise IndexError(
                        "indexing: boolean index did not match shape of indexed array in index "
                        f"{d}: got {mask.shape}, expected {[*shape[d : d + mask.ndim]]}; make the "
                        "mask of that shape"
                    )
            for i, n in zip(np.nonzero(mask), mask.shape, strict=True):
                places = const_of(i.astype(dtype_of_indices(n), copy=False), copy=False)
                out.append(Entry("array", places))
            d += mask.ndim
        elif p.kind == "new":
            out.append(Entry("new", None) if p == TRUE and advanced_items == 1 else p)
        else:
            out.append(Entry("slice", _slice(p.value, shape[d], d)) if p.kind == "slice" else p)
            d += 1
        if place == parted:
            out[begin:] = [out[begin]._replace(apart=True), *out[begin + 1 :]]
    return out


def are_adjacent(whole: Sequence[Entry], places: Sequence[int]) -> bool:
    """Return whether index arrays at these positions are adjacent, as NumPy defines it."""
    if not places or list(places) != list(range(places[0], places[0] + len(places))):
        return False
    return not any(whole[i].apart for i in places[1:])


def _axes(p: Entry) -> int:
    if p.kind == "mask":
        return p.value.ndim
    return 0 if p.kind == "new" else 1


def _parse_index_item(item: Any, position: int, widest: np.dtype) -> list[Entry | None]:  # noqa: C901
    if item is None:
        return [Entry("new", None)]
    if item is Ellipsis:
        return [None]
    if isinstance(item, slice):
        return [Entry("slice", item)]
    if isinstance(item, bool | np.bool_):
        return [TRUE if item else FALSE]
    if isinstance(item, int | np.integer):
        return [Entry("int", int(item))]
    if isinstance(item, str):
        raise TypeError(
            f"indexing: JAX does not support string indexing; got idx={item!r} at position "
            f"{position}; index with integers, slices, masks or integer arrays"
        )
    if type(item) is Array:
        node = item._node
    elif isinstance(item, Sequence) and _has_arrays(item):
        node = node_of(item, function="indexing")
    elif isinstance(item, Sequence):
        item = np.asarray(item, dtype=None if len(item) else INDEX)
        node = _index_array_node(item, widest)
    elif isinstance(item, np.ndarray):
        node = _index_array_node(item, widest)
    elif hasattr(item, "__index__") and not hasattr(item, "dtype"):
        return [Entry("int", operator.index(item))]
    else:
        try:
            node = as_node(item, "indexing")
        except TypeError as error:
            if type(error) is not TypeError:  # random keys
                raise
            raise IndexError(
                "indexing: only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and "
                f"integer or boolean arrays are valid indices. Got {item!r:.80}; convert it first"
            ) from None
    kind = dtype_kind(node.aval.dtype)
    if kind == "b":
        mask = concrete_value(node, "mask", "indexing")
        if mask.ndim == 0:
            return [TRUE if mask else FALSE]
        return [Entry("mask", mask)]
    if kind not in "iu":
        raise TypeError(
            "indexing: Indexer must have integer or boolean type, got indexer with type "
            f"{node.aval.dtype.name} at position {position}; convert it with astype(int), or int()"
        )
    if node.op is LITERAL:
        return [Entry("int", int(node.params["value"]))]
    if node.aval.ndim == 0 and node.trace is None and node.value is not None:
        return [Entry("int", int(array_of(node)))]
    return [Entry("array", node, host_values=item if isinstance(item, np.ndarray) else None)]


def _has_arrays(items: Sequence[Any]) -> bool:
    """Return whether a nested list contains Arrays."""
    return any(
        isinstance(x, Array) or (isinstance(x, list | tuple) and _has_arrays(x)) for x in items
    )


def _index_array_node(item: np.ndarray, widest: np.dtype) -> Node:
    """Return the node of a NumPy index array, as int64 if an axis needs it."""
    if item.dtype.kind == "i" and widest != INDEX:
        return const_of(item.astype(widest), copy=False)
    return numpy_node(item, "indexing")


def _slice(s: slice, n: int, d: int) -> tuple[int, int, int]:
    """Return (start, count, step)."""
    bounds = []
    for v in (s.start, s.stop, s.step):
        if type(v) is Array:
            try:
                v = concrete_value(v._node, "static", "indexing")
            except ConcretizationTypeError as error:
                raise IndexError(
                    f"indexing: Slice entries must be static integers. Got {s} at position {d}.\n"
                    f"{error}\n"
                    "For a traced start use lax.dynamic_slice with a static size."
                ) from None
        if v is not None:
            try:
                v = operator.index(v)
            except TypeError:
                # As in JAX: several numbers have no truth value; other types are not indices.
                kind = ValueError if getattr(v, "size", 1) != 1 else TypeError
                raise kind(
                    f"indexing: the entries of a slice must be integers; got {s} for axis {d}; "
                    "convert them with int()"
                ) from None
        bounds.append(v)
    if bounds[2] == 0:
        raise ValueError(f"indexing: the step of a slice cannot be 0; got {s}; use 1 or more")
    start, stop, step = slice(*bounds).indices(n)
    return start, len(range(start, stop, step)), step


# --- views ---------------------------------------------------------------------------------------


def cut_views(x: Node, whole: list[Entry], keep: Any = ()) -> tuple[Node, list[Entry]]:
    """Apply slices and static ints as views, then insert the new axes.

    Ints are left in place if `keep` contains their kind. Returns the view and the remaining
    entries, one for each of its axes ("slice" for axes that are complete).
    """
    start, limit, steps, flipped = [], [], [], []
    dropped: list[int] = []
    left: list[Entry] = []
    new: list[int] = []
    d = 0
    shape = x.aval.shape
    for e in whole:
        if e.kind == "new":
            new.append(len(left))
            left.append(Entry("slice", None) if e.value is None else e)
            continue
        n = shape[d]
        a, b, s = 0, n, 1
        if e.kind == "slice":
            first, count, step = e.value
            if step > 0:
                a, b, s = first, first + (count - 1) * step + 1, step
                b = n if first + count * step >= n else b  # to the end, including a remainder
            else:
                a, b, s = first + (count - 1) * step, first + 1, -step
                if count:
                    flipped.append(d)
            if not count:
                a, b, s = min(a, n), min(a, n), 1
                a = b = max(0, a)
            left.append(Entry("slice", None))
        elif e.kind == "int" and "int" not in keep:
            if not n:
                refuse_empty(shape, [d], ())
            i = e.value + n if e.value < 0 else e.value
            i = max(0, min(i, n - 1))  # indices out of bounds are clamped
            a, b = i, i + 1
            dropped.append(d)
        else:
            left.append(e)
        start.append(a)
        limit.append(b)
        steps.append(s)
        d += 1
    if any(start) or tuple(limit) != shape or any(s != 1 for s in steps):
        x = o.slice(
            x,
            start_indices=tuple(start),
            limit_indices=tuple(limit),
            strides=None if all(s == 1 for s in steps) else tuple(steps),
        )
    if flipped:
        x = o.rev(x, dimensions=tuple(flipped))
    if dropped:
        x = o.squeeze(x, dimensions=tuple(dropped))
    if new:
        x = expand_node(x, tuple(new))
    return x, left


def wrap_negative(index: Node, n: int) -> Node:
    """Let negative indices count from the end."""
    if index.aval.dtype.kind == "u":
        return index
    kind = index.aval.dtype
    zero, size = scalar_node(0, kind, False), scalar_node(n, kind, False)
    return o.select_n(o.lt(index, zero), index, o.add(index, size))


def index_node(index: Node, n: int, wrap_: bool = True) -> Node:
    """Return an index array in the dtype that gathers use, with negative indices wrapped."""
    kind, index_dtype = index.aval.dtype, dtype_of_indices(n)
    if kind != index_dtype:
        unsigned = dtype_kind(kind) == "u"
        if kind.itemsize + unsigned > index_dtype.itemsize:
            # Indices outside the range of index_dtype stay out of bounds.
            info = np.iinfo(index_dtype)
            index = o.min(index, scalar_node(int(info.max), kind, False))
            if not unsigned:
                index = o.max(index, scalar_node(int(info.min), kind, False))
        wrap_ = wrap_ and not unsigned
        index = cast(index, index_dtype)
    elif index.aval.weak_type:
        index = cast(index, kind)
    return wrap_negative(index, n) if wrap_ else index


# --- gathers -------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """One gather: indices of shape (*outer, axes), the indexed axes, and where `outer` goes."""

    starts: Node
    axes: tuple[int, ...]
    at: int  # the position of the axes of `outer` in the result


def plan_of(shape: tuple[int, ...], left: list[Entry], wrap_: bool = True) -> Plan:
    """Combine the index arrays of a key by NumPy's rules for advanced indices."""
    axes = [d for d, e in enumerate(left) if e.kind in ("array", "int", "new")]
    nodes = []
    for d in axes:
        e = left[d]
        if e.kind == "array":
            nodes.append(index_node(e.value, shape[d], wrap_))
        else:
            value = 0 if e.kind == "new" else e.value
            if wrap_ and value < 0:
                value += shape[d]
            node = scalar_node(value, dtype_of_indices(shape[d]), False)
            nodes.append(node if e.kind == "int" else to_shape(node, (e.value,)))
    outer = broadcast_shapes("indexing", [n.aval.shape for n in nodes])
    refuse_empty(shape, [d for d in axes if left[d].kind != "new"], outer)
    kind = np.dtype(np.int64) if any(n.aval.dtype.itemsize == 8 for n in nodes) else INDEX
    columns = [expand_node(to_shape(cast(n, kind), outer), (len(outer),)) for n in nodes]
    starts = columns[0] if len(columns) == 1 else o.concatenate(*columns, dimension=len(outer))
    return Plan(starts, tuple(axes), axes[0] if are_adjacent(left, axes) else 0)


def refuse_empty(shape: tuple[int, ...], axes: list[int], outer: tuple[int, ...]) -> None:
    """Raise if an axis without elements is indexed: not even a clamped index is valid."""
    empty = [d for d in axes if not shape[d]]
    if empty and 0 not in outer:
        raise NoElementsError(
            f"indexing: an index is out of bounds for axis {empty[0]} of size 0; "
            f"got shape {shape}; "
            "check the size first"
        )


def gather_planned(x: Node, plan: Plan, mode: Any, fill: Any = None, **hints: Any) -> Node:
    """Gather whole slices at the planned indices."""
    outer, rank = plan.starts.aval.ndim - 1, x.aval.ndim - len(plan.axes)
    offset = tuple([d if d < plan.at else d + outer for d in range(rank)])
    dims = GatherDimensionNumbers(offset, plan.axes, plan.axes)
    sizes = tuple([1 if d in plan.axes else n for d, n in enumerate(x.aval.shape)])
    return o.gather(
        x,
        plan.starts,
        dimension_numbers=dims,
        slice_sizes=sizes,
        indices_are_sorted=hints.get("indices_are_sorted", False),
        unique_indices=hints.get("unique_indices", False),
        mode=mode,
        fill_value=fill,
    )


def gather_axis(x: Node, index: Node, axis: int, mode: Any = PROMISE, fill: Any = None) -> Node:
    """Take elements along one axis, which the axes of the index replace; no indices wrap."""
    index = index_node(index, x.aval.shape[axis], False)
    starts = expand_node(index, (index.aval.ndim,))
    return gather_planned(x, Plan(starts, (axis,), axis), mode, fill)


def _dynamic(x: Node, left: list[Entry]) -> Node:
    """Index with traced scalars only: one dynamic slice."""
    shape = x.aval.shape
    kind = dtype_of_indices(max(shape))
    zero = scalar_node(0, kind, False)
    starts, sizes, dropped = [], [], []
    for d, e in enumerate(left):
        if e.kind == "array":
            starts.append(cast(index_node(e.value, shape[d]), kind))
            sizes.append(1)
            dropped.append(d)
        else:
            starts.append(zero)
            sizes.append(shape[d])
    out = o.dynamic_slice(x, *starts, slice_sizes=tuple(sizes))
    return o.squeeze(out, dimensions=tuple(dropped))


def read(
    x: Node,
    key: Any,
    mode: Any = None,
    fill: Any = None,
    wrap_: bool = True,
    **hints: Any,
) -> Node:
    """Return x[key]; `mode` says what out-of-bounds indices read (None: clamped)."""
    if not wrap_ or (mode is not None and mode is not PROMISE and mode != "promise_in_bounds"):
        how = PROMISE if mode is None else GatherScatterMode.from_any(mode)
        x, left = cut_views(x, entries(x.aval.shape, key), keep=("int",))
    else:
        how = PROMISE
        whole = entries(x.aval.shape, key)
        if config.check_static_indices:
            _check_static_ints(whole, x.aval.shape)
        whole = (
            _with_ints_as_arrays(whole, x.aval.shape)
            if state.named
            else _as_slice(whole, x.aval.shape)
        )
        arrays = [e for e in whole if e.kind == "array"]
        truths = any(e.kind == "new" and e.value is not None for e in whole)
        advanced = truths or any(e.value.aval.ndim for e in arrays)
        keep = ("int",) if advanced else ()
        x, left = cut_views(x, whole, keep)
        if arrays and not advanced:
            if all(n for d, n in enumerate(x.aval.shape) if left[d].kind == "array"):
                return _dynamic(x, left)
            raise IndexError(
                f"indexing: an axis of size 0 has no elements; got an index into shape "
                f"{x.aval.shape}; check the size first"
            )
    if all(e.kind == "slice" for e in left):
        return x
    return gather_planned(x, plan_of(x.aval.shape, left, wrap_), how, fill, **hints)


def _as_slice(whole: list[Entry], shape: tuple[int, ...]) -> list[Entry]:
    """Replace the only index array by a slice if it is a concrete arithmetic progression."""
    axes = iter(range(len(shape)))
    selection, others = [], [e for e in whole if e.kind == "int" or (e.kind == "new" and e.value)]
    arrays = sum(e.kind == "array" for e in whole)
    for e in whole:
        n = 0 if e.kind == "new" else shape[next(axes)]
        if e.host_values is not None and e.host_values.ndim == 1 and arrays == 1 and not others:
            places = e.host_values
            if 1 < places.size <= LISTED and -n <= places.min() and places.max() < n:
                first, step = int(places[0] % n), int(places[1] % n) - int(places[0] % n)
                if step and (places % n == first + step * np.arange(places.size)).all():
                    e = Entry("slice", (first, places.size, step))
        selection.append(e)
    return selection


def _check_static_ints(whole: list[Entry], shape: tuple[int, ...]) -> None:
    """Raise for Python ints out of bounds, as the option check_static_indices requires."""
    axis = -1
    for e in whole:
        axis += e.kind != "new"
        if e.kind == "int" and not -shape[axis] <= e.value < shape[axis]:
            raise IndexError(
                f"indexing: index {e.value} is out of bounds for axis {axis} with size "
                f"{shape[axis]}; got shape {shape} while check_static_indices is set; pass a valid "
                "index"
            )


def _with_ints_as_arrays(whole: list[Entry], shape: tuple[int, ...]) -> list[Entry]:
    """Treat out-of-bounds ints like traced ones, so that checkify sees them in jaxprs."""
    lengths = iter(shape)
    selection = []
    for e in whole:
        n = 0 if e.kind == "new" else next(lengths)
        if e.kind == "int" and not -n <= e.value < n and abs(e.value) < 1 << 31:
            e = Entry("array", scalar_node(e.value, dtype_of_indices(n), False), e.apart)
        selection.append(e)
    return selection


@accepts_keys("get_item")
@api_boundary
def getitem(x: Array, key: Any) -> Array:
    """Return x[key], for all of NumPy's indexing."""
    node = x._node
    if not (tracing and state.abstract is not None) and not config.check_static_indices:
        arrays: list[Node] = []
        key_signature = signature(key, arrays)
        if key_signature is not None:
            known = (node.aval, key_signature)
            return wrap(
                replayed(known, [node, *arrays], lambda xs: read(xs[0], _with_nodes(key, xs)))
            )
    return wrap(read(node, key))


def _with_nodes(key: Any, nodes: Sequence[Node]) -> tuple[Any, ...]:
    """Return a key with its index arrays replaced by the nodes after the first."""
    rest = iter(nodes[1:])
    items = key if type(key) is tuple else (key,)
    return tuple([wrap(next(rest)) if type(item) is Array else item for item in items])
