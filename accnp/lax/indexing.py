"""Functions of `jax.lax` that read and write at indices: gathers, scatters and sorts."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import as_axes, as_axis, as_shape, concrete
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array, ArrayLike, ArraySequence, IndexMode, Shape
from accnp.docstrings import fill
from accnp.errors import IncompatibleShapesError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import distinct_number, o
from accnp.lax.control_flow.loops import fori_loop
from accnp.numpy.composed_primitives import composed
from accnp.numpy.selection import where
from accnp.primitives.index import (
    DROP,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from accnp.primitives.kinds import INDEX, dtype_kind, full

PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


@moves_elements()
@api_boundary
def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Collect windows of an array that start at given indices.

    Parameters
    ----------
    operand : array_like
        Array to read, of any shape and dtype.
    start_indices : array_like of int
        Starts of the windows; the last axis holds the coordinates of one window.
    dimension_numbers : GatherDimensionNumbers
        Roles of the axes of operand, indices and result.
    slice_sizes : sequence of int
        Lengths of a window along each axis of the operand.
    {unique_indices}
    {indices_are_sorted}
    {mode_gather}
    fill_value : scalar, optional
        Value read outside of the operand with mode "fill". The default is nan, the lowest signed
        integer, the greatest unsigned integer, or True.

    Returns
    -------
    Array
        Windows, of the dtype of `operand`.

    Raises
    ------
    TypeError
        If `operand` is a list, `dimension_numbers` has another type, or sizes do not fit.
    ValueError
        If indices are not integers, or the mode is unknown.

    See Also
    --------
    numpy.take, numpy.take_along_axis : Simpler functions.
    dynamic_slice : A single window.
    scatter : Write windows.

    Examples
    --------
    >>> import accnp as jnp
    >>> numbers = jnp.lax.GatherDimensionNumbers((), (0,), (0,))
    >>> jnp.lax.gather(jnp.array([2, 3, 4]), jnp.array([[2], [0]]), numbers, (1,))
    Array([4, 2], dtype=int32)
    """
    x, starts = as_node(operand, "lax.gather"), as_node(start_indices, "lax.gather")
    how = PROMISE if mode is None else GatherScatterMode.from_any(mode, "lax.gather")
    _check_numbers("lax.gather", dimension_numbers, GatherDimensionNumbers)
    sizes = as_shape(slice_sizes, "lax.gather")
    some = 0 not in starts.aval.shape[:-1]
    if some and any(s > n for s, n in zip(sizes, x.aval.shape, strict=False)):
        raise TypeError(
            f"lax.gather: slice_sizes must fit into the operand; got {sizes} for shape "
            f"{x.aval.shape}; pass lengths of at most that"
        )
    return wrap(
        o.gather(
            x,
            starts,
            dimension_numbers=dimension_numbers,
            slice_sizes=sizes,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=how,
            fill_value=_fill(x, fill_value) if how is DROP else None,
        )
    )


def _check_numbers(name: str, numbers: Any, kind: type) -> None:
    if not hasattr(numbers, kind._fields[0]):  # pyright: ignore[reportAttributeAccessIssue]
        raise TypeError(
            f"{name}: dimension_numbers must be a lax.{kind.__name__}; got {numbers!r}; "
            "construct one"
        )


def _check_named(name: str, numbers: Any, x: Node) -> None:
    """Raise TypeError unless the dimension numbers of a scatter name each axis of the operand."""
    parts = (
        numbers.update_window_dims, numbers.inserted_window_dims, numbers.operand_batching_dims
    )  # fmt: skip
    if (rank := sum(map(len, parts))) != x.aval.ndim:
        raise TypeError(
            f"{name}: dimension_numbers must name each axis of the operand once; got {rank} names "
            f"for shape {x.aval.shape}; name all of them"
        )


def _fill(x: Node, value: Any) -> Any:
    """Return the value that out-of-bounds windows read: nan, the extreme integer, or True."""
    if value is not None:
        return distinct_number(value)
    kind = dtype_kind(x.aval.dtype)
    if kind in "fc":
        return math.nan
    if kind == "b":
        return True
    info = np.iinfo(x.aval.dtype)
    return int(info.min if kind == "i" else info.max)


if TYPE_CHECKING:

    class Scatter(Protocol):
        """A function that writes windows of an array."""

        def __call__(
            self,
            operand: ArrayLike,
            scatter_indices: ArrayLike,
            updates: ArrayLike,
            dimension_numbers: ScatterDimensionNumbers,
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: IndexMode = None,
        ) -> Array: ...


def _make_scatter(
    name: str, what: str, gives: str, related: str, *, accepts_bools: bool = True
) -> Scatter:
    @api_boundary
    def scatter_(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        nodes = [as_node(v, f"lax.{name}") for v in (operand, scatter_indices, updates)]
        if not accepts_bools and nodes[0].aval.dtype.kind == "b":
            raise TypeError(f"lax.{name}: operands must be numeric; got bool; use scatter_max")
        _check_numbers(f"lax.{name}", dimension_numbers, ScatterDimensionNumbers)
        return wrap(
            getattr(o, name)(
                *nodes,
                dimension_numbers=dimension_numbers,
                indices_are_sorted=bool(indices_are_sorted),
                unique_indices=bool(unique_indices),
                mode=GatherScatterMode.from_any(mode, f"lax.{name}"),
            )
        )

    scatter_.__name__ = scatter_.__qualname__ = name
    scatter_.__doc__ = fill(
        f"{what} windows of an array at given indices.\n\n"
        "    Parameters\n    ----------\n    {scatter_params}\n\n"
        "    Returns\n    -------\n    {returns_scatter}\n\n"
        "    Raises\n    ------\n    {raises_scatter}\n\n"
        "    See Also\n    --------\n"
        "    gather : Read windows.\n"
        f"    {related}\n\n"
        "    Examples\n    --------\n"
        "    >>> import accnp as jnp\n"
        "    >>> numbers = jnp.lax.ScatterDimensionNumbers((), (0,), (0,))\n"
        "    >>> places, updates = jnp.array([[1]]), jnp.array([5.0])\n"
        f"    >>> jnp.lax.{name}(jnp.array([2.0, 3.0, 4.0]), places, updates, numbers)\n"
        f"    Array({gives}, dtype=float32)\n    "
    )
    return scatter_


scatter = moves_elements("operand", "updates")(
    _make_scatter("scatter", "Replace", "[2., 5., 4.]", "scatter_add, scatter_apply")
)
scatter_add = _make_scatter(
    "scatter_add", "Add to", "[2., 8., 4.]", "scatter_sub, scatter_mul", accepts_bools=False
)
scatter_mul = _make_scatter(
    "scatter_mul", "Multiply", "[ 2., 15.,  4.]", "scatter_add", accepts_bools=False
)
scatter_min = _make_scatter("scatter_min", "Take minima with", "[2., 3., 4.]", "scatter_max")
scatter_max = _make_scatter("scatter_max", "Take maxima with", "[2., 5., 4.]", "scatter_min")


@contextmanager
def _sums_named(name: str) -> Iterator[None]:
    """Raise errors of `scatter_add` under the name of the function that calls it."""
    try:
        yield
    except TypeError as e:
        raise type(e)(re.sub(r"(lax\.)?scatter_add", name, str(e))) from None


def _subtract(x: Array, starts: Array, updates: Array, **p: Any) -> Array:
    return wrap(o.scatter_add(x._node, starts._node, o.neg(updates._node), **p))


scatter_sub_p = composed("scatter-sub", _subtract)


@api_boundary
def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Subtract updates from windows of an array at given indices.

    Parameters
    ----------
    {scatter_params}

    Returns
    -------
    {returns_scatter}

    Raises
    ------
    {raises_scatter}

    See Also
    --------
    scatter_add : Add updates.
    gather : Read windows.

    Examples
    --------
    >>> import accnp as jnp
    >>> numbers = jnp.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> jnp.lax.scatter_sub(jnp.zeros(3), jnp.array([[1], [1]]), jnp.ones(2), numbers)
    Array([ 0., -2.,  0.], dtype=float32)
    """
    name = "lax.scatter_sub"
    nodes = [as_node(v, name) for v in (operand, scatter_indices, updates)]
    _check_numbers(name, dimension_numbers, ScatterDimensionNumbers)
    _check_named(name, dimension_numbers, nodes[0])
    with _sums_named(name):
        return scatter_sub_p.bind(
            *map(wrap, nodes),
            dimension_numbers=dimension_numbers,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode, name),
        )


@api_boundary
def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Shape = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Apply a function to the elements of windows at given indices.

    Parameters
    ----------
    operand : array_like
        Array to change a copy of, of any shape and dtype.
    scatter_indices : array_like of int
        Starts of the windows; the last axis holds the coordinates of one window.
    func : callable
        Function of one element that returns its new value.
    dimension_numbers : ScatterDimensionNumbers
        Roles of the axes of operand, indices and updates.
    update_shape : sequence of int, optional
        Shape that the updates of a `scatter` would have.
    {indices_are_sorted}
    unique_indices : bool, optional
        Promise that no element is named twice. The default, False, applies the function as often as
        an element is named.
    {mode_scatter}

    Returns
    -------
    {returns_scatter}

    Raises
    ------
    TypeError
        If `func` does not return a scalar, indices are not integers, or `update_shape` does not
        fit.
    ValueError
        If the mode is unknown.

    See Also
    --------
    scatter : Write given values.

    Examples
    --------
    >>> import accnp as jnp
    >>> numbers = jnp.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> places = jnp.array([[0], [0], [2]])
    >>> jnp.lax.scatter_apply(
    ...     jnp.ones(3), places, lambda x: 2 * x, numbers, update_shape=(3,))
    Array([4., 1., 2.], dtype=float32)
    """
    name = "lax.scatter_apply"
    x, starts = as_node(operand, name), as_node(scatter_indices, name)
    shape = as_shape(update_shape, name)
    _check_numbers(name, dimension_numbers, ScatterDimensionNumbers)
    _check_named(name, dimension_numbers, x)
    with _sums_named(name):
        counts = o.scatter_add(
            full(x.aval.shape, 0, INDEX),
            starts,
            full(shape, 1, INDEX),
            dimension_numbers=dimension_numbers,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode, name),
        )
    times = wrap(counts)

    def once(k: Any, v: Array) -> Array:
        each = vmap(func)(v.ravel())
        if each.ndim != 1:
            raise TypeError(
                f"{name}: func must return a scalar; got shape {each.shape[1:]}; "
                "reduce it to one number"
            )
        new = each.reshape(v.shape)
        return where(times > k, wrap(cast(new._node, x.aval.dtype)), v)

    start = wrap(cast(x, x.aval.dtype))
    most = 1 if unique_indices or not x.aval.size else times.max()
    n_rounds = most if isinstance(most, int) else concrete(most._node)
    if n_rounds is None:
        out = fori_loop(0, most, once, start)
    else:
        out = functools.reduce(lambda v, k: once(k, v), range(int(n_rounds)), start)
    return wrap(cast(out._node, x.aval.dtype, x.aval.weak_type))


@moves_elements()
@api_boundary
def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Take slices of an array at indices along several axes.

    Parameters
    ----------
    src : array_like
        Array to read, of any dtype, of any shape.
    idxs : sequence of array_like of int
        One vector of indices for each of the axes. Negative ones count from the end.
    axes : sequence of int
        Axes that the vectors index.

    Returns
    -------
    Array
        Slices of the dtype of `src`, of shape (n, ...): one for each element of the vectors, with
        the other axes.

    Raises
    ------
    ValueError
        If an axis is out of bounds, there is not one vector for each axis, or vectors differ in
        length or are not integers.

    See Also
    --------
    gather : The general form.
    numpy.take : Take along one axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> jnp.lax.index_take(x, (jnp.array([0, 1]), jnp.array([2, -1])), (0, 1))
    Array([2., 5.], dtype=float32)
    """
    x = as_node(src, "lax.index_take")
    each = [as_node(i, "lax.index_take") for i in idxs]
    axes = as_axes(tuple(axes), x.aval.ndim, "lax.index_take")
    shapes = [i.aval.shape for i in each]
    if len(each) != len(axes) or len({*shapes}) > 1 or any(len(s) != 1 for s in shapes):
        raise IncompatibleShapesError(
            "lax.index_take: idxs must be vectors of equal length, one for each axis; got "
            f"{tuple(idxs)!r:.60} of shapes {shapes} for axes {tuple(axes)}; pass such vectors"
        )
    sizes = [x.aval.shape[d] for d in axes]
    columns = [(wrap(i) % n)._node for i, n in zip(each, sizes, strict=True)]
    wide = [o.reshape(c, new_sizes=(*c.aval.shape, 1), dimensions=None) for c in columns]
    starts = wide[0] if len(wide) == 1 else o.concatenate(*wide, dimension=1)
    dims = GatherDimensionNumbers(
        tuple(range(1, x.aval.ndim - len(axes) + 1)), tuple(axes), tuple(axes)
    )
    cut = tuple(1 if d in axes else n for d, n in enumerate(x.aval.shape))
    return gather(src, wrap(starts), dims, cut)


# --- sorting -------------------------------------------------------------------------------------


@overload
def sort(
    operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
@api_boundary
def sort(
    operand: ArraySequence, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array | tuple[Array, ...]:
    """Sort an array, or several arrays by keys, along an axis.

    Parameters
    ----------
    operand : array_like or sequence of array_like
        Array to sort, or arrays of one shape of which the first ones are keys.
    dimension : int, optional
        Axis to sort along. The default is the last one.
    is_stable : bool, optional
        Whether equal elements keep their order. They always do.
    num_keys : int, optional
        Number of operands that are compared, the first one first. The default is 1.

    Returns
    -------
    Array or tuple of Array
        Sorted arrays, of the same shapes and dtypes.

    Raises
    ------
    TypeError
        If no operand is given, or shapes differ.
    ValueError
        If `dimension` is out of bounds, or `num_keys` is not between 1 and the number of operands.

    See Also
    --------
    sort_key_val : Sort one array by another.
    numpy.sort, numpy.argsort : Simpler functions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    many = isinstance(operand, Sequence)
    nodes = [as_node(x, "lax.sort") for x in (operand if many else [operand])]
    if not nodes:
        raise TypeError("lax.sort: Sort requires at least one operand; got none; pass arrays")
    at = as_axis(dimension, nodes[0].aval.ndim, "lax.sort")
    out = o.sort(*nodes, dimension=at, is_stable=bool(is_stable), num_keys=num_keys)
    results = unpack(out)
    return tuple(results) if many else results[0]


def unpack(node: Node) -> list[Array]:
    """Return the results of an op, which may have several, as arrays."""
    if not isinstance(node.aval, tuple):
        return [wrap(node)]
    return [wrap(o.item(node, index=i)) for i in range(len(node.aval))]


@api_boundary
def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys along an axis, and move values with them.

    Parameters
    ----------
    keys : array_like
        Array to sort by, of any shape.
    values : array_like
        Array of the same shape, to bring into the same order.
    dimension : int, optional
        Axis to sort along. The default is the last one.
    is_stable : bool, optional
        Whether equal keys keep their order. They always do.

    Returns
    -------
    keys : Array
        Sorted keys, of the same shape and dtype.
    values : Array
        Values in the order of the keys, of the same shape and dtype.

    Raises
    ------
    TypeError
        If shapes differ.
    ValueError
        If `dimension` is out of bounds.

    See Also
    --------
    sort : The general form.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.sort_key_val(jnp.array([3, 1]), jnp.array([0, 1]))
    (Array([1, 3], dtype=int32), Array([1, 0], dtype=int32))
    """
    ordered, moved = sort((keys, values), dimension, is_stable, 1)
    return ordered, moved
