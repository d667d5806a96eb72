"""`x.at[key]`: updated copies of an array.

A key is converted to the scatter that updates the selected elements, or to the gather that reads
them. Updates of static contiguous parts are recorded as slice updates.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    broadcast_shapes,
    cast,
    numpy_node,
    scalar_node,
    to_shape,
)
from accnp.api.arguments.non_numeric import accepts_keys
from accnp.api.arguments.shapes import concrete
from accnp.api.arguments.values import check_callable, node_of, number_node, to_dtype
from accnp.array_type import Array, ArrayLike, IndexMode, ShardingLike, wrap
from accnp.errors import api_boundary, warn
from accnp.ir.node import LITERAL, Node
from accnp.ir.op import distinct_number, o
from accnp.ir.trace import state
from accnp.lax.control_flow.loops import while_loop
from accnp.numpy import reductions, ufuncs
from accnp.numpy.indexing import are_adjacent, entries, index_node, read, refuse_empty
from accnp.numpy.manipulation import reshape_plain
from accnp.primitives.index import GatherScatterMode, ScatterDimensionNumbers
from accnp.primitives.kinds import INDEX, broadcast_to, dtype_of_indices
from accnp.primitives.kinds import full as full_node
from accnp.sharding.device_placement import record_sharded

__all__ = [
    "ADD", "MAX", "MIN", "MULTIPLY", "SET", "At", "AtIndex", "Update", "at", "shape_at", "write",
]  # fmt: skip


class Update(NamedTuple):
    """How values are combined with the elements of an array.

    Attributes:
        method: the method of `x.at[key]`.
        op: name of the op that writes them.
        elementwise: name of the op that combines whole arrays; "" if values replace elements.
    """

    method: str
    op: str
    elementwise: str


SET = Update("set", "scatter", "")
ADD = Update("add", "scatter_add", "add")
MULTIPLY = Update("multiply", "scatter_mul", "mul")
MIN = Update("min", "scatter_min", "min")
MAX = Update("max", "scatter_max", "max")


class _Target(NamedTuple):
    """The positions of updates: indices, dimension numbers, and the shapes of the updates."""

    starts: Node
    dims: ScatterDimensionNumbers
    shown: tuple[int, ...]  # the shape of x[key], to which values are broadcast
    updates: tuple[int, ...]  # the same without new axes
    static: bool  # no index arrays, so no element is written twice


class _Window(NamedTuple):
    """A contiguous part of an array at a static position, entirely inside: its start indices, its
    sizes, and the shape of x[key]."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    shown: tuple[int, ...]


def _window(shape: tuple[int, ...], key: Any, wrap_: bool) -> _Window | None:
    """Return the window that a key selects, or None if it does not select one."""
    starts, sizes, shown = [], [], []
    for e in entries(shape, key):
        d = len(starts)
        if e.kind == "new" and e.value is None:
            shown.append(1)
        elif e.kind == "slice" and (e.value[2] == 1 or e.value[1] == 1):
            starts.append(e.value[0])
            sizes.append(e.value[1])
            shown.append(e.value[1])
        elif e.kind == "int" and type(e.value) is int:
            starts.append(e.value + shape[d] if wrap_ and e.value < 0 else e.value)
            sizes.append(1)
        else:
            return None
    if len(starts) != len(shape) or 0 in sizes:
        return None
    inside = all(0 <= i <= n - m for i, n, m in zip(starts, shape, sizes, strict=True))
    return _Window(tuple(starts), tuple(sizes), tuple(shown)) if inside else None


def _target(shape: tuple[int, ...], key: Any, wrap_: bool) -> _Target:
    whole = entries(shape, key)
    advanced: list[tuple[int, Node]] = []
    slots: list[Any] = []  # in the order of x[key]: "outer", "new" or (axis, start, count, step)
    places: list[int] = []
    d, static = 0, True
    for i, e in enumerate(whole):
        if e.kind == "new" and e.value is None:
            slots.append("new")
            continue
        if e.kind == "slice":
            slots.append((d, *e.value))
            d += 1
            continue
        places.append(i)
        if e.kind == "new":  # a bool: one element, or none
            slots.append((None, to_shape(scalar_node(0, INDEX, False), (e.value,))))
            continue
        if e.kind == "int":
            value = e.value + shape[d] if wrap_ and e.value < 0 else e.value
            node = scalar_node(value, dtype_of_indices(shape[d]), False)
        else:
            node, static = index_node(e.value, shape[d], wrap_), static and e.value.aval.ndim == 0
        advanced.append((d, node))
        slots.append((None, node))
        d += 1
    outer = broadcast_shapes(
        "indexing", [s[1].aval.shape for s in slots if isinstance(s, tuple) and s[0] is None]
    )
    refuse_empty(shape, [d for d, n in advanced if not n.aval.ndim], outer)
    together = are_adjacent(whole, places)
    first = (
        slots.index(next(s for s in slots if isinstance(s, tuple) and s[0] is None))
        if (places)
        else 0
    )
    order = [s for s in slots if not (isinstance(s, tuple) and s[0] is None)]
    if places:
        order.insert(first if together else 0, "outer")
    return _assemble(shape, order, advanced, outer, static)


def _assemble(
    shape: tuple[int, ...],
    order: list[Any],
    advanced: list[tuple[int, Node]],
    outer: tuple[int, ...],
    static: bool,
) -> _Target:
    shown: list[int] = []
    updates: list[int] = []
    windows: list[int] = []
    batch: list[int] = []
    columns: dict[int, Any] = {}
    inserted = [d for d, _ in advanced]
    outer_at = 0
    for slot in order:
        if slot == "outer":
            outer_at = len(batch)
            batch.extend(outer)
            shown.extend(outer)
            updates.extend(outer)
            continue
        if slot == "new":
            shown.append(1)
            continue
        d, start, count, step = slot
        shown.append(count)
        if step == 1 or count == 1:
            windows.append(len(updates))
            if count != shape[d]:
                columns[d] = scalar_node(start, dtype_of_indices(shape[d]), False)
        else:
            columns[d] = (len(batch), start, count, step)
            inserted.append(d)
            batch.append(count)
        updates.append(count)
    mapped = sorted({*columns, *(d for d, _ in advanced)})
    indices = dict(advanced)
    wide = any(n.aval.dtype.itemsize == 8 for n in indices.values())
    kind = (
        np.dtype(np.int64) if wide else dtype_of_indices(max([shape[d] for d in mapped], default=0))
    )
    whole = (*batch, 1)
    parts = []
    for d in mapped:
        if d in indices:
            node = to_shape(indices[d], outer)
            dims = tuple(range(outer_at, outer_at + len(outer)))
        elif isinstance(columns[d], tuple):
            at, start, count, step = columns[d]
            node = o.iota(dtype=kind, shape=(count,), dimension=0)
            if step != 1:
                node = o.mul(node, scalar_node(step, kind, False))
            node = o.add(node, scalar_node(start, kind, False)) if start else node
            dims = (at,)
        else:
            node, dims = columns[d], ()
        parts.append(broadcast_to(cast(node, kind), whole, dims))
    known = [_literal_value(indices.get(d, columns.get(d))) for d in mapped]
    if not parts:
        starts = full_node((*batch, 0), 0, kind)
    elif len(parts) > 1 and not batch and None not in known and not state.named:
        starts = numpy_node(np.array(known, kind), "x.at[...]")  # avoids a kernel
        starts.params = {"places": tuple(known)}  # for the planner
    else:
        starts = parts[0] if len(parts) == 1 else o.concatenate(*parts, dimension=len(batch))
    numbers = ScatterDimensionNumbers(tuple(windows), tuple(sorted(inserted)), tuple(mapped))
    return _Target(starts, numbers, tuple(shown), tuple(updates), static)


def shape_at(shape: tuple[int, ...], key: Any) -> tuple[int, ...]:
    """Return the shape of x[key] for an array of a shape."""
    return (_window(shape, key, True) or _target(shape, key, True)).shown


def _literal_value(place: Any) -> int | None:
    """Return the value of an index that is a literal, or None."""
    literal = type(place) is Node and place.op is LITERAL
    return place.params["value"] if literal else None


def write(
    x: Node,
    key: Any,
    values: Any,
    how: Update,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    wrap_negative_indices: bool = True,
) -> Node:
    """Return x with values combined into the elements of a key as `how` says."""
    a, how_out = x.aval, GatherScatterMode.from_any(mode, "x.at[...]")
    if values is None or isinstance(values, list | tuple):
        values = wrap(node_of(values, function="x.at[...]"))
    y = number_node(values, a.dtype, f"x.at[...].{how.method}")
    kind = dtypes.promote(((a.dtype, a.weak_type), (y.aval.dtype, y.aval.weak_type)))[0]
    if kind != a.dtype and kind == dtypes.canonicalize_dtype(a.dtype):
        kind = a.dtype  # x was created while 64-bit types were enabled
    elif kind != a.dtype:
        warn(
            f"x.at[...].{how.method}: scatter inputs have incompatible types: cannot "
            f"safely cast value from dtype={y.aval.dtype.name} to dtype={a.dtype.name}; the value "
            "is cast, which will be an error in a future release; convert it with astype",
            FutureWarning,
        )
    if how is SET:
        kind = a.dtype
    window = _window(a.shape, key, wrap_negative_indices) if how is SET else None
    target = window or _target(a.shape, key, wrap_negative_indices)
    if 0 in target.shown:  # nothing is written; values may have any shape
        return x
    try:
        y = to_shape(to_dtype(y, kind), target.shown)
    except ValueError:
        raise ValueError(
            f"x.at[...].{how.method}: Incompatible shapes for broadcasting; "
            f"got shape {y.aval.shape} for {target.shown}; make trailing axes equal, or 1"
        ) from None
    if 0 in a.shape:  # there are no elements
        return x
    if isinstance(target, _Window):
        y = reshape_plain(y, target.sizes)
        if target.sizes != a.shape:  # fusion can store the values in place
            dtypes_of = [dtype_of_indices(n) for n in a.shape]
            places = [
                scalar_node(i, d, False) for i, d in zip(target.starts, dtypes_of, strict=True)
            ]
            y = o.dynamic_update_slice(cast(x, kind), y, *places)
        return cast(y, a.dtype, a.weak_type)
    if not target.dims.scatter_dims_to_operand_dims and target.updates == a.shape:
        # All elements in order: recorded without a scatter, so that it fuses with other ops.
        y = reshape_plain(y, a.shape)
        whole = y if how is SET else getattr(o, how.elementwise)(cast(x, kind), y)
        return cast(whole, a.dtype, a.weak_type)
    out = getattr(o, how.op)(
        cast(x, kind),
        target.starts,
        reshape_plain(y, target.updates),
        dimension_numbers=target.dims,
        indices_are_sorted=indices_are_sorted or target.static,
        unique_indices=unique_indices or target.static,
        mode=how_out,
    )
    return cast(out, a.dtype, a.weak_type)


class At:
    """The property `at` of arrays: index it with a key, then call a method that updates."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class AtIndex:
    """Indexed elements of an array, `x.at[key]`; each method returns an updated copy.

    Updates out of bounds are dropped; `mode="clip"` moves them to the nearest element.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def __getattr__(self, name: str) -> Any:
        known = ", ".join([m for m in dir(AtIndex) if m[0] != "_" and m not in self.__slots__])
        raise AttributeError(f"x.at[...] has no method {name!r}; use one of {known}")

    @accepts_keys("get_at")
    @api_boundary
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: IndexMode = None,
        fill_value: ArrayLike | None = None,
        out_sharding: ShardingLike = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the indexed elements, with a choice for indices out of bounds.

        Parameters
        ----------
        indices_are_sorted : bool, optional
            Promise that the indices are in rising order. The default is False.
        unique_indices : bool, optional
            Promise that no element is indexed twice. The default is False.
        mode : {'clip', 'fill', 'drop', 'promise_in_bounds'} or GatherScatterMode, optional
            What is read out of bounds: the nearest element ('clip' and the default, None), or
            `fill_value` ('fill', also named 'drop').
        fill_value : scalar, optional
            Value out of bounds for `mode='fill'`. The default is nan for floating and complex
            dtypes, the smallest number for signed integers, the largest for unsigned ones, and True
            for bools.
        {out_sharding}
        wrap_negative_indices : bool, optional
            If True, the default, negative indices count from the end of the axis.

        Returns
        -------
        Array
            `x[key]` for `x.at[key]`, with the dtype of the array.

        Raises
        ------
        IndexError, TypeError
            If the index is not valid for the array.
        ValueError
            If the mode is unknown.

        See Also
        --------
        take : Take elements along an axis.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).at[7].get(mode="fill", fill_value=-1)
        Array(-1, dtype=int32)
        """
        fill = None if fill_value is None else distinct_number(np.asarray(fill_value).item())

        def record(x: Node) -> Node:
            return read(
                x,
                self.index,
                mode,
                fill,
                wrap_negative_indices,
                indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices,
            )

        return wrap(record_sharded("x.at[...].get", out_sharding, record, self.array._node))

    def _write(self, how: Update, values: Any, hints: dict[str, Any]) -> Array:
        if (sharding := hints.pop("out_sharding", None)) is None:
            return wrap(write(self.array._node, self.index, values, how, **hints))

        def record(x: Node) -> Node:
            return write(x, self.index, values, how, **hints)

        return wrap(record_sharded(f"x.at[...]: {how.op}", sharding, record, self.array._node))

    @accepts_keys("set_at")
    @api_boundary
    def set(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which the indexed elements have new values.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.add : Add to the elements.
        lax.dynamic_update_slice : Update a slice at a traced position.

        Notes
        -----
        This is `x[key] = values` for immutable arrays. If an element is indexed several times, one
        of the values is stored, and it is not specified which one. Under `jit` the update is in
        place where the array is not needed afterwards.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.zeros(3).at[1].set(5.0)
        Array([0., 5., 0.], dtype=float32)
        """
        return self._write(SET, values, hints)

    @api_boundary
    def add(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which values are added to the indexed elements.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.set : Store values.
        ops.segment_sum : Sums of segments.

        Notes
        -----
        This is `x[key] += values` for immutable arrays. If an element is indexed several times, all
        values are added to it.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.zeros(3).at[jnp.array([0, 0])].add(1.0)
        Array([2., 0., 0.], dtype=float32)
        """
        return self._write(ADD, values, hints)

    @api_boundary
    def subtract(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which values are subtracted from the indexed elements.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.add : Add to the elements.

        Notes
        -----
        This is `x[key] -= values` for immutable arrays. If an element is indexed several times, all
        values are subtracted from it.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.zeros(3).at[1].subtract(1.0)
        Array([ 0., -1.,  0.], dtype=float32)
        """
        node = node_of(values, function="x.at[...].subtract")
        if node.aval.dtype.kind in "bu":  # cast first, so that negation does not wrap
            a, b = self.array._node.aval, node.aval
            kind = dtypes.promote(((a.dtype, a.weak_type), (b.dtype, b.weak_type)))[0]
            node = cast(node, kind, b.weak_type and kind.kind != "b")
        return self._write(ADD, ufuncs.negative(wrap(node)), hints)

    @api_boundary
    def multiply(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which the indexed elements are multiplied by values.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.divide : Divide the elements.

        Notes
        -----
        This is `x[key] *= values` for immutable arrays. If an element is indexed several times, it
        is multiplied by all values.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).at[1:].multiply(10)
        Array([ 0, 10, 20], dtype=int32)
        """
        return self._write(MULTIPLY, values, hints)

    mul = multiply

    @api_boundary
    def min(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which the indexed elements are limited from above by values.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.max : Limit from below.
        minimum : The function of two arrays.

        Notes
        -----
        This is `x[key] = minimum(x[key], values)` for immutable arrays. If an element is indexed
        several times, the smallest of the values counts.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).at[:].min(1)
        Array([0, 1, 1], dtype=int32)
        """
        return self._write(MIN, values, hints)

    @api_boundary
    def max(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which the indexed elements are limited from below by values.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.min : Limit from above.
        maximum : The function of two arrays.

        Notes
        -----
        This is `x[key] = maximum(x[key], values)` for immutable arrays. If an element is indexed
        several times, the largest of the values counts.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).at[:].max(1)
        Array([1, 1, 2], dtype=int32)
        """
        return self._write(MAX, values, hints)

    def _multiplication_factors(self, values: Any, hints: dict[str, Any]) -> Array:
        a = self.array._node.aval
        ones = cast(full_node(a.shape, 1, a.dtype), a.dtype, a.weak_type)
        return wrap(write(ones, self.index, values, MULTIPLY, **hints))

    @api_boundary
    def divide(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which the indexed elements are divided by values.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        Array
            Updated copy, with the shape of the array. Integers give a floating dtype.

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.multiply : Multiply the elements.

        Notes
        -----
        This is `x[key] /= values` for immutable arrays. If an element is indexed several times, it
        is divided by the product of the values.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3.0).at[2].divide(4)
        Array([0. , 1. , 0.5], dtype=float32)
        """
        sharding = hints.pop("out_sharding", None)
        out = ufuncs.divide(self.array, self._multiplication_factors(values, hints))
        return wrap(record_sharded("x.at[...].divide", sharding, lambda x: x, out._node))

    @api_boundary
    def power(self, values: ArrayLike, **hints: Any) -> Array:
        """Return a copy in which the indexed elements are raised to the power of values.

        Parameters
        ----------
        {at_values}
        {index_hints}
        {out_sharding}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        {raises_index}

        See Also
        --------
        Array.at.multiply : Multiply the elements.
        power : The function of two arrays.

        Notes
        -----
        This is `x[key] **= values` for immutable arrays. If an element is indexed several times, it
        is raised to the product of the values.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).at[2].power(3)
        Array([0, 1, 8], dtype=int32)
        """
        sharding = hints.pop("out_sharding", None)
        out = ufuncs.power(self.array, self._multiplication_factors(values, hints))
        return wrap(record_sharded("x.at[...].power", sharding, lambda x: x, out._node))

    @accepts_keys("apply_at")
    @api_boundary
    def apply(self, func: Callable[[Any], Any], **hints: Any) -> Array:
        """Return a copy in which a function was applied to the indexed elements.

        Parameters
        ----------
        func : callable
            Function of an array that returns an array of the same shape, elementwise.
        {index_hints}

        Returns
        -------
        {returns_updated}

        Raises
        ------
        IndexError, TypeError
            If the index is not valid for the array, or `func` is not callable.
        ValueError
            If the mode is unknown.

        See Also
        --------
        ufunc.at : The method of ufuncs.

        Notes
        -----
        If an element is indexed several times, the function is applied to it several times.

        Examples
        --------
        >>> import accnp as jnp
        >>> jnp.arange(3).at[1:].apply(lambda v: v * v + 1)
        Array([0, 2, 5], dtype=int32)
        """
        check_callable("x.at[...].apply", func)
        x = self.array._node
        aval = x.aval
        target = _target(aval.shape, self.index, hints.get("wrap_negative_indices", True))
        if not (target.static or hints.get("unique_indices")):
            zero = full_node(aval.shape, 0, INDEX)
            times = wrap(write(zero, self.index, 1, ADD, **hints))

            def once(k: Any, out: Array) -> Array:
                changed = wrap(
                    cast(as_node(func(out), "x.at[...].apply"), aval.dtype, aval.weak_type)
                )
                return ufuncs.where(ufuncs.greater(times, k), changed, out)

            most = reductions.max(times, initial=0)
            if concrete(target.starts) is None:
                return while_loop(
                    lambda c: ufuncs.less(c[0], most),
                    lambda c: (ufuncs.add(c[0], 1), once(*c)),
                    (wrap(full_node((), 0, INDEX)), self.array),
                )[1]
            if int(most) > 1:
                out = self.array
                for k in range(int(most)):
                    out = once(k, out)
                return out
        here = wrap(read(x, self.index, "clip"))
        return self._write(SET, func(here), hints)


def _state_hints() -> None:
    """Set the signatures of the methods, with the hints that `write` accepts.

    The methods pass hints on as one dictionary, which is cheaper.
    """
    hints = [p for p in signature(write).parameters.values() if p.kind is p.KEYWORD_ONLY]
    hints.insert(3, Parameter("out_sharding", Parameter.KEYWORD_ONLY, default=None))
    for name in ("set", "add", "multiply", "min", "max", "subtract", "divide", "power", "apply"):
        method = getattr(AtIndex, name)
        parameters = [
            p for p in signature(method).parameters.values() if p.kind is not p.VAR_KEYWORD
        ]
        hint_parameters = (
            hints if name != "apply" else [p for p in hints if p.name != "out_sharding"]
        )
        method.__signature__ = Signature([*parameters, *hint_parameters])


_state_hints()


@property
def at(self: Array) -> At:
    """Make updated copies of the array: `x.at[key].set(values)` replaces `x[key] = values`.

    Arrays are immutable. Index the property with a key as in NumPy, then call a method to say how
    the elements change: `set`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max`, or
    `apply`. `get` reads the elements. If nothing else refers to the array, accnp updates its
    buffer in place.

    See Also
    --------
    numpy.put : Updated copy at flat indices.
    lax.scatter : General form of the updates.

    Notes
    -----
    Updates out of bounds are dropped, and repeated indices are all applied by `add` and the other
    methods that compute.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.zeros(4)
    >>> x.at[1:3].set(5.0)
    Array([0., 5., 5., 0.], dtype=float32)
    >>> x.at[jnp.array([0, 0, 3])].add(1.0)
    Array([2., 0., 0., 1.], dtype=float32)
    """
    return At(self)
