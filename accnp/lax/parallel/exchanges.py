"""Collectives that exchange values between the examples along mapped axes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.shapes import as_axis
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.key_array import PRNGKeyArray
from accnp.lax.parallel.reductions import (
    Groups,
    axis_names,
    axis_size,
    check_parts,
    group_size,
    index_groups,
)  # fmt: skip
from accnp.pytree import PyTree, map_arrays, tree_map
from accnp.transforms.axes import size_of

__all__ = ["all_to_all", "pbroadcast", "ppermute", "pshuffle", "pswapaxes"]


@api_boundary
def all_to_all(
    x: PyTree,
    axis_name: Hashable,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """Exchange slices of arrays along a mapped axis: example k gets slice k of every example.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    split_axis : int
        Axis that is cut into slices. Unless `tiled`, it has as many elements as there are examples,
        and is removed.
    concat_axis : int
        Position of the new axis or, if `tiled`, the axis along which slices are joined.
    {axis_index_groups}
    tiled : bool, optional
        If True, both axes stay. The default is False.

    Returns
    -------
    pytree
        Exchanged slices, of the same dtypes.

    Raises
    ------
    {raises_axis_name}
    ValueError
        If `split_axis` cannot be distributed evenly over the examples.

    See Also
    --------
    all_gather : Gather all values.
    ppermute : Send values along pairs of examples.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.lax.all_to_all(x, "i", 0, 0)
    >>> jnp.vmap(f, axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    names = axis_names(axis_name)
    groups = index_groups("all_to_all", axis_index_groups, names, True)
    n = axis_size(names) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        key = isinstance(leaf, PRNGKeyArray)
        node = leaf._base._node if key else as_node(leaf, "all_to_all")
        rank = node.aval.ndim - key
        split = as_axis(split_axis, rank, "all_to_all")
        join = as_axis(concat_axis, rank, "all_to_all")
        check_parts("all_to_all", node.aval.shape[split], split, n, tiled)
        if len(names) == 1:
            node = _all_to_all(node, names[0], split, join, groups, tiled)
        else:
            node = _exchanged_over(names, node, split, join, n, tiled)
        return leaf._with_words(node) if key else wrap(node)

    return tree_map(one, x)


def _all_to_all(
    node: Node, name: Any, split: int, join: int, groups: Groups | None, tiled: bool
) -> Node:
    return o.all_to_all(
        node,
        axis_name=(name,),
        axis_index_groups=groups,
        split_axis=split,
        concat_axis=join,
        axis_size=group_size(groups, name),
        tiled=tiled,
    )


def _exchanged_over(
    names: Sequence[Any], node: Node, split: int, join: int, n: int, tiled: bool
) -> Node:
    """Exchange along several names, one after the other, each with an axis of its own."""
    sizes = [size_of(name) for name in names]
    k = len(sizes)
    s = node.aval.shape
    node = o.reshape(
        node,
        new_sizes=(*s[:split], *sizes, s[split] // n, *s[split + 1 :]),
        dimensions=None,
    )
    order = [d for d in range(node.aval.ndim) if not split <= d < split + k]
    node = o.transpose(node, permutation=(*range(split, split + k), *order))
    for i, name in enumerate(names):
        node = _all_to_all(node, name, i, i, None, False)
    # The axes of the sources are leading; the rest of the split axis is in its old position.
    rest: tuple[int, ...] = node.aval.shape[k:]
    if not tiled:
        rest = (*rest[:split], *rest[split + 1 :])
    node = o.reshape(node, new_sizes=(n, *rest), dimensions=None)
    node = o.transpose(node, permutation=(*range(1, join + 1), 0, *range(join + 1, len(rest) + 1)))
    if tiled:
        joined = (*rest[:join], n * rest[join], *rest[join + 1 :])
        node = o.reshape(node, new_sizes=joined, dimensions=None)
    return node


@api_boundary
def pswapaxes(
    x: PyTree,
    axis_name: Hashable,
    axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Any:
    """Swap a mapped axis with an axis of the array.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    axis : int
        Axis of the array, of the length of the mapped axis.
    {axis_index_groups}

    Returns
    -------
    pytree
        Arrays of the same shapes and dtypes.

    Raises
    ------
    {raises_axis_name}
    ValueError
        If the lengths differ, or `axis` is out of bounds.

    See Also
    --------
    all_to_all : The general form.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.lax.pswapaxes(x, "i", 0)
    >>> jnp.vmap(f, axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


@api_boundary
def ppermute(x: PyTree, axis_name: Hashable, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along pairs of examples of a mapped axis.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    perm : sequence of (int, int)
        Pairs of the positions of sender and receiver.

    Returns
    -------
    pytree
        Received values, of the same shapes and dtypes. Examples that receive nothing get zeros.

    Raises
    ------
    {raises_axis_name}
    ValueError
        If a sender or a receiver occurs twice, or is out of bounds.

    See Also
    --------
    pshuffle : Permute the values of all examples.
    all_to_all : Exchange slices.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> jnp.vmap(f, axis_name="i")(jnp.array([5, 6, 7]))
    Array([0, 5, 6], dtype=int32)
    """
    names = axis_names(axis_name)
    n = axis_size(names)
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    for side in (0, 1):
        if len({pair[side] for pair in pairs}) != len(pairs):
            raise ValueError(
                f"ppermute sources and destinations must be unique; got {pairs}; list each once"
            )
    if any(not 0 <= i < n for pair in pairs for i in pair):
        raise ValueError(f"ppermute: positions must be in [0, {n}); got {pairs}; correct them")
    if len(names) > 1:
        raise NotImplementedError(
            f"ppermute: several axis names are not supported; got {names}; use all_gather and index"
        )
    return map_arrays(
        lambda leaf: wrap(
            o.ppermute(
                as_node(leaf, "ppermute"), axis_name=names, axis_index_groups=None, perm=pairs
            )
        ),
        x,
    )


@api_boundary
def pshuffle(x: PyTree, axis_name: Hashable, perm: Sequence[int]) -> Any:
    """Permute the values of the examples of a mapped axis.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    perm : sequence of int
        Permutation of the positions: example i gets the value of example perm[i].

    Returns
    -------
    pytree
        Permuted values, of the same shapes and dtypes.

    Raises
    ------
    {raises_axis_name}
    ValueError
        If `perm` is not a permutation of the positions.

    See Also
    --------
    ppermute : Send values along pairs.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.lax.pshuffle(x, "i", [2, 0, 1])
    >>> jnp.vmap(f, axis_name="i")(jnp.array([5, 6, 7]))
    Array([7, 5, 6], dtype=int32)
    """
    n = len(perm)
    if sorted(perm) != list(range(n)) or n != axis_size(axis_name):
        raise ValueError(
            f"pshuffle: perm is not a permutation of the positions; got {perm!r}; "
            "list each position once"
        )
    return ppermute(x, axis_name, list(zip(perm, range(n), strict=True)))


@api_boundary
def pbroadcast(x: PyTree, axis_name: Hashable, source: int) -> Any:
    """Give every example of a mapped axis the value of one of them.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    source : int
        Position of the example whose value is taken.

    Returns
    -------
    pytree
        Values of that example, of the same shapes and dtypes.

    Raises
    ------
    {raises_axis_name}
    ValueError
        If `source` is out of bounds.

    See Also
    --------
    ppermute : Send values along pairs.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vmap(lambda x: jnp.lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([5, 6]))
    Array([6, 6], dtype=int32)
    """
    (name,) = axis_names(axis_name)
    at = as_axis(source, size_of(name), "pbroadcast")
    params = {"axis_name": (name,), "axis_index_groups": None, "source": at}
    return map_arrays(lambda leaf: wrap(o.pbroadcast(as_node(leaf, "pbroadcast"), **params)), x)
