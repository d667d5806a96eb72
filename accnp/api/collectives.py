"""`lax.psum` and the other functions over a named mapped axis. Pytrees in, pytrees out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.convert import as_node, promote_inexact, wrap
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ops.kinds import broadcast_to, full
from accnp.pytree import tree_map
from accnp.transforms.axes import size_of

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pvary",
]

_INT = np.dtype(np.int32)


def _names(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _no_groups(function: str, groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError(
            f"{function}: axis_index_groups is not supported; got {groups}; use two mapped axes"
        )


def axis_size(axis_name: Any) -> int:
    """Return the length of a mapped axis, or the product for several names."""
    size = 1
    for name in _names(axis_name):
        size *= size_of(name)
    return size


def axis_index(axis_name: Any) -> Any:
    """Return the position of this example along a mapped axis."""
    index = None
    for name in _names(axis_name):
        here = o.axis_index(axis_name=name, size=size_of(name))
        if index is not None:
            here = o.add(o.mul(index, full((), size_of(name), _INT)), here)
        index = here
    assert index is not None
    return wrap(index)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sum a tree of arrays over a mapped axis.

    Example:
        >>> import accnp as jnp
        >>> jnp.vmap(lambda x: x / jnp.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
        Array([0.25, 0.75], dtype=float32)
    """
    _no_groups("psum", axis_index_groups)

    def one(leaf: Any) -> Any:
        if isinstance(leaf, int | float | complex) and not isinstance(leaf, bool | np.generic):
            return leaf * axis_size(axis_name)
        node = as_node(leaf, "psum")
        for name in _names(axis_name):
            node = o.psum(node, axis_name=name, size=size_of(name))
        return wrap(node)

    return tree_map(one, x)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Average a tree of arrays over a mapped axis."""
    _no_groups("pmean", axis_index_groups)
    n = axis_size(axis_name)

    def one(leaf: Any) -> Any:
        (node,) = promote_inexact("pmean", leaf)
        for name in _names(axis_name):
            node = o.psum(node, axis_name=name, size=size_of(name))
        return wrap(o.div(node, full((), n, node.aval.dtype, node.aval.weak_type)))

    return tree_map(one, x)


def _gathered(leaf: Any, name: Any, function: str) -> Node:
    return o.all_gather(as_node(leaf, function), axis_name=name, size=size_of(name))


def _extreme(function: str, reduce: str) -> Callable[..., Any]:
    def fold(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
        _no_groups(function, axis_index_groups)

        def one(leaf: Any) -> Any:
            for name in _names(axis_name):
                leaf = wrap(getattr(o, reduce)(_gathered(leaf, name, function), axes=(0,)))
            return leaf

        return tree_map(one, x)

    fold.__name__ = fold.__qualname__ = function
    fold.__doc__ = f"Take the {function[1:]}imum of a tree of arrays over a mapped axis."
    return fold


pmax = _extreme("pmax", "reduce_max")
pmin = _extreme("pmin", "reduce_min")


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False
) -> Any:
    """Gather the values of all examples along a new axis (or, tiled, along one that is there)."""
    _no_groups("all_gather", axis_index_groups)
    if isinstance(axis_name, tuple | list) and len(axis_name) > 1:
        raise NotImplementedError(
            f"all_gather: one axis name at a time; got {axis_name}; call it for each"
        )

    def one(leaf: Any) -> Any:
        node = _gathered(leaf, _names(axis_name)[0], "all_gather")
        rank = node.aval.ndim - tiled
        at = axis % rank if rank else 0
        order = (*range(1, at + 1), 0, *range(at + 1, node.aval.ndim))
        node = o.transpose(node, permutation=order)
        if tiled:
            shape = node.aval.shape
            joined = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
            node = o.reshape(node, new_sizes=joined, dimensions=None)
        return wrap(node)

    return tree_map(one, x)


def _row(table: Node, index: Node) -> Node:
    """Return table[index]."""
    shape = table.aval.shape[1:]
    zeros = [full((), 0, _INT)] * len(shape)
    row = o.dynamic_slice(table, index, *zeros, slice_sizes=(1, *shape))
    return o.reshape(row, new_sizes=shape, dimensions=None)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along pairs (source, destination); examples that receive nothing get zeros."""
    name = _names(axis_name)[0]
    n = size_of(name)
    sources, targets = ([p[k] for p in perm] for k in (0, 1))
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError(
            f"ppermute sources and destinations must be unique; got {list(perm)}; give each once"
        )
    if any(not 0 <= i < n for p in perm for i in p):
        raise ValueError(
            f"ppermute: positions must lie in [0, {n}); got {list(perm)}; correct them"
        )
    came_from = dict(zip(targets, sources, strict=True))
    index = o.axis_index(axis_name=name, size=n)

    def one(leaf: Any) -> Any:
        table = _gathered(leaf, name, "ppermute")
        shape, dtype = table.aval.shape[1:], table.aval.dtype
        whole = (1, *shape)
        none = full(whole, 0, dtype)
        rows = []
        for target in range(n):
            source = came_from.get(target)
            if source is None:
                rows.append(none)
                continue
            start = (source, *[0] * len(shape))
            rows.append(
                o.slice(
                    table,
                    start_indices=start,
                    limit_indices=(source + 1, *shape),
                    strides=None,
                )
            )
        return wrap(_row(o.concatenate(*rows, dimension=0), index))

    return tree_map(one, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Permute the values of the examples: example i gets that of example perm[i]."""
    n = axis_size(axis_name)
    if sorted(perm) != list(range(n)):
        raise ValueError(f"pshuffle: not a permutation of {n} positions; got {list(perm)}")
    return ppermute(x, axis_name, list(zip(perm, range(n), strict=True)))


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchange a mapped axis with an axis of the array."""
    _no_groups("all_to_all", axis_index_groups)
    name = _names(axis_name)[0]
    n = size_of(name)
    index = o.axis_index(axis_name=name, size=n)

    def one(leaf: Any) -> Any:
        table = _gathered(leaf, name, "all_to_all")  # (source, ...)
        shape = table.aval.shape[1:]
        split, join = split_axis % len(shape), concat_axis % len(shape)
        if shape[split] % n or (not tiled and shape[split] != n):
            raise ValueError(
                f"all_to_all: axis {split} of length {shape[split]} cannot be split over {n} "
                "examples"
            )
        part = shape[split] // n
        # Bring this example's piece of every source to the front, then join the pieces.
        cut = (n, *shape[:split], n, part, *shape[split + 1 :])
        pieces = o.reshape(table, new_sizes=cut, dimensions=None)
        order = (split + 1, *[d for d in range(len(cut)) if d != split + 1])
        mine = _row(o.transpose(pieces, permutation=order), index)  # (source, ..., part, ...)
        if not tiled:
            shape_1 = (n, *[m for d, m in enumerate(shape) if d != split])
            mine = o.reshape(mine, new_sizes=shape_1, dimensions=None)
            order = (*range(1, join + 1), 0, *range(join + 1, mine.aval.ndim))
            return wrap(o.transpose(mine, permutation=order))
        order = (*range(1, join + 1), 0, *range(join + 1, mine.aval.ndim))
        mine = o.transpose(mine, permutation=order)
        s = mine.aval.shape
        joined = (*s[:join], s[join] * s[join + 1], *s[join + 2 :])
        return wrap(o.reshape(mine, new_sizes=joined, dimensions=None))

    return tree_map(one, x)


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Sum over a mapped axis, and give each example its part of an axis of the sum."""
    _no_groups("psum_scatter", axis_index_groups)
    name = _names(axis_name)[0]
    n = size_of(name)
    index = o.axis_index(axis_name=name, size=n)

    def one(leaf: Any) -> Any:
        total = o.psum(as_node(leaf, "psum_scatter"), axis_name=name, size=n)
        shape = total.aval.shape
        at = scatter_dimension % len(shape)
        if shape[at] % n or (not tiled and shape[at] != n):
            raise ValueError(
                f"psum_scatter: axis {at} of length {shape[at]} cannot be split over {n} examples"
            )
        part = shape[at] // n
        cut = (*shape[:at], n, part, *shape[at + 1 :])
        pieces = o.reshape(total, new_sizes=cut, dimensions=None)
        order = (at, *[d for d in range(len(cut)) if d != at])
        mine = _row(o.transpose(pieces, permutation=order), index)
        if not tiled:
            kept = tuple(m for d, m in enumerate(shape) if d != at)
            mine = o.reshape(mine, new_sizes=kept, dimensions=None)
        return wrap(mine)

    return tree_map(one, x)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Give every example the value of one of them."""
    name = _names(axis_name)[0]
    at = full((), source, _INT)
    return tree_map(lambda leaf: wrap(_row(_gathered(leaf, name, "pbroadcast"), at)), x)


def pvary(x: Any, axis_name: Any) -> Any:
    """Return the values; jax wants to be told that they differ between examples, we do not."""
    for name in _names(axis_name):
        size_of(name)
    return tree_map(lambda leaf: wrap(broadcast_to(as_node(leaf), as_node(leaf).aval.shape)), x)
