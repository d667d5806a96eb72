"""Names of mapped axes: which names are bound during a trace, and which ones a program uses.

`vmap`, `pmap` and `shard_map` call `bind(name, size)` around the trace of the mapped function.
Collectives call `size_of(name)`, which raises for unbound names. `bound()` is part of the cache key
of everything that is traced inside. `names_used` returns the axis names of a node's collectives,
including those in the programs it contains; batching uses it.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Hashable
from contextlib import contextmanager

from accnp.ir.graph import Graph, graphs_in
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node

__all__ = ["bind", "bound", "names_used", "resolve", "size_of"]

_NONE: frozenset[Hashable] = frozenset()


class _Bound(threading.local):
    def __init__(self) -> None:
        self.sizes: tuple[tuple[Hashable, int | MeshAxis], ...] = ()


_bound = _Bound()


@contextmanager
def bind(name: Hashable, size: int | MeshAxis) -> Generator[None]:
    """Bind a name (None binds nothing) during a trace; it hides an outer binding.

    For a multi-process mesh, pass the axis itself instead of its size.
    """
    if name is None:
        yield
        return
    before = _bound.sizes
    _bound.sizes = (*[pair for pair in before if pair[0] != name], (name, size))
    try:
        yield
    finally:
        _bound.sizes = before


def bound() -> tuple[tuple[Hashable, int | MeshAxis], ...]:
    """The bound names with their sizes or, for multi-process meshes, their axes."""
    return _bound.sizes


def size_of(name: Hashable) -> int:
    """Return the size of the innermost axis of this name.

    Raises:
        NameError: no mapped function with this axis name is being traced.
    """
    if type(name) is MeshAxis:
        return name.size
    for known, size in _bound.sizes:
        if known == name:
            return size.size if isinstance(size, MeshAxis) else size
    names = [known for known, _ in _bound.sizes]
    raise NameError(
        f"unbound axis name: {name}; the names that are bound: {names}; "
        f"use it inside vmap(..., axis_name={name!r}) or pmap"
    )


def resolve(name: Hashable) -> Hashable:
    """Return the `MeshAxis` to which a name is bound, or the name itself if there is none."""
    for known, size in _bound.sizes:
        if known == name and type(size) is MeshAxis:
            return size
    return name


def names_used(node: Node) -> frozenset[Hashable]:
    """The axis names of a collective, or of the collectives in an operation's programs."""
    if not node.params:
        return _NONE
    own = node.params.get("axis_name")
    if own is not None:
        return frozenset(own)
    graphs = graphs_in(node.params)
    return _NONE.union(*map(_names_in, graphs)) if graphs else _NONE


def _names_in(graph: Graph) -> frozenset[Hashable]:
    names: frozenset[Hashable] | None = graph.extra.get("axis names")
    if names is None:
        names = graph.extra["axis names"] = _NONE.union(*map(names_used, graph.nodes))
    return names
