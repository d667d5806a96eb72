"""Reductions and gathers over named mapped axes, such as `lax.psum`, of trees of arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, is_host_value, promote_inexact, wrap
from accnp.api.arguments.shapes import as_axis
from accnp.array_type import Array
from accnp.docstrings import fill
from accnp.errors import api_boundary, not_one_of
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.key_array import PRNGKeyArray
from accnp.primitives.kinds import full
from accnp.pytree import PyTree, tree_map
from accnp.transforms.axes import resolve, size_of

__all__ = ["all_gather", "axis_index", "axis_size", "pmax", "pmean", "pmin", "psum", "psum_scatter"]

_INT = np.dtype(np.int32)
Groups = tuple[tuple[int, ...], ...]


# --- axes and groups ---


def axis_names(axis_name: Any) -> tuple[Any, ...]:
    """Return the names as a tuple; names bound to several mesh axes are replaced by these."""
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    return tuple(map(resolve, names))


def _axes(function: str, axis_name: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Split the axes of a reduction into bound names and axes of the array."""
    every = axis_names(axis_name)
    if len(set(every)) != len(every):
        raise ValueError(f"{function}: an axis was given twice; got {every}; pass each axis once")
    names = tuple([n for n in every if not isinstance(n, int)])
    for name in names:
        size_of(name)
    return names, tuple([n for n in every if isinstance(n, int)])


def index_groups(function: str, groups: Any, names: Sequence[Any], even: bool) -> Groups | None:
    """Check that groups of positions partition an axis, and convert them to tuples of ints."""
    if groups is None:
        return None
    if len(names) != 1:
        raise NotImplementedError(
            f"{function}: axis_index_groups require one named axis; got {tuple(names)}; pass one"
        )
    try:
        index_tuples = tuple([tuple([int(i) for i in group]) for group in groups])
    except (TypeError, ValueError):
        raise TypeError(
            f"{function}: axis_index_groups must be a list of lists of indices, such as [[0, 1]]; "
            f"got {groups!r}; put the indices of each group into a list"
        ) from None
    n = size_of(names[0])
    if sorted(i for group in index_tuples for i in group) != list(range(n)):
        raise ValueError(
            f"{function}: axis_index_groups must cover all indices exactly once; got {groups} for "
            f"an axis of length {n}; list each once"
        )
    if even and len({len(group) for group in index_tuples}) > 1:
        raise ValueError(
            f"{function}: axis_index_groups must have equal lengths; got {groups}; make them equal"
        )
    return index_tuples


def group_size(groups: Groups | None, name: Any) -> int:
    return size_of(name) if groups is None else len(groups[0])


def check_parts(function: str, length: int, axis: int, n: int, tiled: bool) -> None:
    """Check that an axis can be distributed over `n` examples."""
    if length % n if tiled else length != n:
        need = f"a multiple of {n}" if tiled else f"{n}, or tiled=True"
        raise ValueError(
            f"{function}: axis {axis} of length {length} cannot be split over {n} examples; "
            f"its length must be {need}"
        )


@api_boundary
def axis_size(axis_name: Hashable) -> int:
    """Return the length of a mapped axis.

    Parameters
    ----------
    {axis_name_or_names}

    Returns
    -------
    int
        Length of the axis as a Python integer, or the product of the lengths of several axes.

    Raises
    ------
    {raises_axis_name}

    See Also
    --------
    axis_index : Position along the axis.
    psum : Sum over the axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vmap(lambda x: x / jnp.lax.axis_size("i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.5, 1.5], dtype=float32)
    """
    size = 1
    for name in axis_names(axis_name):
        size *= size_of(name)
    return size


@api_boundary
def axis_index(axis_name: Hashable) -> Array:
    """Return the position of this example along a mapped axis.

    Parameters
    ----------
    {axis_name_or_names}

    Returns
    -------
    Array
        Position, an int32 of shape (). Over several axes, the first one is the slowest.

    Raises
    ------
    {raises_axis_name}

    See Also
    --------
    axis_size : Length of the axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vmap(lambda x: x * jnp.lax.axis_index("i"), axis_name="i")(jnp.array([5, 7]))
    Array([0, 7], dtype=int32)
    """
    index = None
    for name in axis_names(axis_name):
        size = size_of(name)
        here = o.axis_index(axis_name=(name,))
        index = here if index is None else o.add(o.mul(index, full((), size, _INT)), here)
    return wrap(full((), 0, _INT) if index is None else index)


# --- reductions ---


def _is_constant(leaf: Any) -> bool:
    """Return whether a value is a number or a NumPy array, which is the same in all examples."""
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind != "b"
    return isinstance(leaf, int | float | complex) and not isinstance(leaf, bool)


def _reduce(
    function: str, op: str, reduce: str, leaf: Any, axes: Any, groups: Groups | None
) -> Node:
    """Reduce a leaf over its own axes by the op `reduce`, and over mapped axes by `op`."""
    names, own = axes
    node = _reduce_own_axes(function, reduce, as_node(leaf, function), own)
    return getattr(o, op)(node, axis_name=names, axis_index_groups=groups) if names else node


def _reduce_own_axes(function: str, reduce: str, node: Node, own: Sequence[int]) -> Node:
    if not own:
        return node
    places = tuple(sorted(as_axis(a, node.aval.ndim, function) for a in own))
    return getattr(o, reduce)(node, axes=places)


def _sum(function: str, leaf: Any, axes: Any, groups: Groups | None) -> Node:
    node = as_node(leaf, function)
    names, own = axes
    if (names or own) and node.aval.dtype.kind == "b":
        node = cast(node, _INT)
    node = _reduce_own_axes(function, "reduce_sum", node, own)
    if names and groups is None and state.varying is not None:
        return o.psum_invariant(
            state.varying.spread(node, names), axis_name=names, axis_index_groups=None
        )
    return o.psum(node, axis_name=names, axis_index_groups=groups) if names else node


@api_boundary
def psum(
    x: PyTree, axis_name: Hashable, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any:
    """Sum over a mapped axis.

    Parameters
    ----------
    {x_mapped}
    axis_name : hashable or tuple
        Name of the mapped axis, or a tuple of names and of axes of the arrays.
    {axis_index_groups}

    Returns
    -------
    pytree
        Sums with the shapes and dtypes of the arrays, without the axes of the arrays that are
        named. Bools give int32, and Python numbers give Python numbers.

    Raises
    ------
    {raises_axis_name}
    TypeError
        If a leaf is not an array or a number.
    ValueError
        If groups do not partition the positions.

    See Also
    --------
    pmean, pmax, pmin : Other reductions.
    psum_scatter : Sum of which each example gets a part.
    vmap : Map a function over an axis and name it.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vmap(lambda x: x / jnp.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    axes = _axes("psum", axis_name)
    groups = index_groups("psum", axis_index_groups, axes[0], False)
    n = axis_size(axes[0]) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        if not axes[0] and not axes[1] and is_host_value(leaf):
            return leaf
        if _is_constant(leaf) and not axes[1]:
            return leaf * n
        return wrap(_sum("psum", leaf, axes, groups))

    return tree_map(one, x)


@api_boundary
def pmean(
    x: PyTree, axis_name: Hashable, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any:
    """Average over a mapped axis.

    Parameters
    ----------
    {x_mapped}
    axis_name : hashable or tuple
        Name of the mapped axis, or a tuple of names and of axes of the arrays.
    {axis_index_groups}

    Returns
    -------
    pytree
        Means with the shapes of the arrays. Integers give the default float dtype.

    Raises
    ------
    {raises_axis_name}
    TypeError
        If a leaf is not an array or a number.

    See Also
    --------
    psum, pmax, pmin : Other reductions.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vmap(lambda x: x - jnp.lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([-1.,  1.], dtype=float32)
    """
    axes = _axes("pmean", axis_name)
    groups = index_groups("pmean", axis_index_groups, axes[0], False)
    n = axis_size(axes[0]) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        if not axes[1] and (_is_constant(leaf) or (not axes[0] and is_host_value(leaf))):
            return leaf * n / n
        (node,) = promote_inexact("pmean", leaf)
        count = n
        for a in axes[1]:
            count *= node.aval.shape[as_axis(a, node.aval.ndim, "pmean")]
        total = _sum("pmean", wrap(node), axes, groups)
        return wrap(o.div(total, full((), count, total.aval.dtype, total.aval.weak_type)))

    return tree_map(one, x)


def _extreme(function: str, reduce: str, values: str, gives: str) -> Callable[..., Any]:
    @api_boundary
    def extreme(
        x: PyTree, axis_name: Hashable, *, axis_index_groups: Sequence[Sequence[int]] | None = None
    ) -> Any:
        axes = _axes(function, axis_name)
        groups = index_groups(function, axis_index_groups, axes[0], False)
        return tree_map(
            lambda leaf: wrap(_reduce(function, function, reduce, leaf, axes, groups)), x
        )

    extreme.__name__ = extreme.__qualname__ = function
    extreme.__doc__ = fill(
        f"Take the {function[1:]}imum over a mapped axis.\n\n"
        "    Parameters\n    ----------\n    {x_mapped}\n"
        "    axis_name : hashable or tuple\n"
        "        Name of the mapped axis, or a tuple of names and of axes of the arrays.\n"
        "    {axis_index_groups}\n\n"
        "    Returns\n    -------\n"
        "    pytree\n        Extremes, of the same shapes and dtypes.\n\n"
        "    Raises\n    ------\n    {raises_axis_name}\n"
        "    TypeError\n        If a leaf is not an array or a number.\n\n"
        "    See Also\n    --------\n    psum, pmean, pmax, pmin : Other reductions.\n\n"
        "    Examples\n    --------\n    >>> import accnp as jnp\n    >>> jnp.vmap(\n"
        f"    ...     lambda x: jnp.lax.{function}(x, 'i'), axis_name='i')(jnp.array([{values}]))\n"
        f"    Array([{gives}], dtype=int32)\n    "
    )
    return extreme


pmax = _extreme("pmax", "reduce_max", "1, 3", "3, 3")
pmin = _extreme("pmin", "reduce_min", "1, 3", "1, 1")


# --- gathering and scattering ---


def _all_gather(node: Node, name: Any, at: int, tiled: bool, groups: Groups | None) -> Node:
    return o.all_gather(
        node,
        axis_name=(name,),
        axis_index_groups=groups,
        all_gather_dimension=at,
        axis_size=group_size(groups, name),
        tiled=tiled,
    )


_GATHERED = ("varying", "invarying", "reduced")


@api_boundary
def all_gather(
    x: PyTree,
    axis_name: Hashable,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Gather the values of all examples of a mapped axis.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    {axis_index_groups}
    axis : int, optional
        Position of the new axis or, if `tiled`, the existing axis along which values are joined.
        The default is 0.
    tiled : bool, optional
        If True, join the values along an existing axis. By default there is a new one.
    to : str, optional
        Type of the result in JAX's sharding system. It is accepted and has no effect.

    Returns
    -------
    pytree
        Gathered values of the same dtypes; the new axis has the length of the mapped one.

    Raises
    ------
    {raises_axis_name}
    TypeError
        If a leaf is not an array or a number.
    ValueError
        If an array does not have the axis.

    See Also
    --------
    all_to_all : Exchange slices.
    psum_scatter : Its transpose.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.lax.all_gather(x, "i") - x
    >>> jnp.vmap(f, axis_name="i")(jnp.array([1.0, 3.0]))
    Array([[ 0.,  2.],
           [-2.,  0.]], dtype=float32)
    """
    names = axis_names(axis_name)
    if to not in _GATHERED:
        raise not_one_of("all_gather", "to", to, _GATHERED)
    axis_size(names)  # raises for unbound names, even without arrays
    groups = index_groups("all_gather", axis_index_groups, names, True)

    def one(leaf: Any) -> Any:
        key = isinstance(leaf, PRNGKeyArray)
        node = leaf._base._node if key else as_node(leaf, "all_gather")
        at = as_axis(axis, node.aval.ndim - key + (not tiled), "all_gather")
        for name in reversed(names):
            node = _all_gather(node, name, at, tiled, groups)
        if len(names) > 1 and not tiled:
            s = node.aval.shape
            joined = (*s[:at], axis_size(names), *s[at + len(names) :])
            node = o.reshape(node, new_sizes=joined, dimensions=None)
        return leaf._with_words(node) if key else wrap(node)

    return tree_map(one, x)


@api_boundary
def psum_scatter(
    x: PyTree,
    axis_name: Hashable,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """Sum over a mapped axis, and give each example its part of the sum.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    scatter_dimension : int, optional
        Axis of the sum that is distributed over the examples. The default is 0.
    {axis_index_groups}
    tiled : bool, optional
        If True, the axis stays, with a part of its length. By default it has one element for each
        example and is removed.

    Returns
    -------
    pytree
        Parts of the sums, of the same dtypes.

    Raises
    ------
    ValueError
        If the axis cannot be distributed evenly over the examples.
    TypeError
        If an array is bool.

    See Also
    --------
    psum : The whole sum.
    all_gather : Its transpose.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.lax.psum_scatter(x, "i")
    >>> jnp.vmap(f, axis_name="i")(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([4., 6.], dtype=float32)
    """
    names = axis_names(axis_name)
    groups = index_groups("psum_scatter", axis_index_groups, names, True)
    n = axis_size(names) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        node = as_node(leaf, "psum_scatter")
        if node.aval.dtype.kind == "b":
            raise TypeError(
                "lax.psum_scatter: bool cannot be summed; got an array of bool; convert with astype"
            )
        at = as_axis(scatter_dimension, node.aval.ndim, "psum_scatter")
        check_parts("psum_scatter", node.aval.shape[at], at, n, tiled)
        drop = not tiled and len(names) > 1
        for name in names:
            node = o.reduce_scatter(
                node,
                axis_name=(name,),
                axis_index_groups=groups,
                scatter_dimension=at,
                axis_size=group_size(groups, name),
                tiled=tiled or drop,
            )
        return wrap(o.squeeze(node, dimensions=(at,)) if drop else node)

    return tree_map(one, x)
