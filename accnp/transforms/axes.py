"""Names of mapped axes: which are bound while a mapped function is traced, which a program uses.

In: `bind(name, size)` around the trace. Out: `size_of(name)`, an error for unbound names, and
`bound()`, which is part of the key of everything that is traced inside. In: a node. Out: the names
that its collectives, or those of the programs it holds, work over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accnp.ir.graph import Graph, graphs_in
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node

__all__ = ["bind", "bound", "names_used", "resolve", "size_of"]

_NONE: frozenset[Any] = frozenset()


class _Bound(threading.local):
    def __init__(self) -> None:
        self.sizes: tuple[tuple[Any, int | MeshAxis], ...] = ()


_bound = _Bound()


@contextmanager
def bind(name: Any, size: int | MeshAxis) -> Iterator[None]:
    """Bind a name (None binds nothing) for the length of a trace; it hides an outer one.

    Over processes, the axis itself is passed in place of its size.
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


def bound() -> tuple[tuple[Any, int | MeshAxis], ...]:
    """The bound names and their sizes, or the axes of meshes over processes."""
    return _bound.sizes


def size_of(name: Any) -> int:
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


def resolve(name: Any) -> Any:
    """Return the axis that a name is bound to, over processes; elsewhere the name itself."""
    for known, size in _bound.sizes:
        if known == name and type(size) is MeshAxis:
            return size
    return name


def names_used(node: Node) -> frozenset[Any]:
    """The axis names of a collective, or of those in the programs that an operation holds."""
    if not node.params:
        return _NONE
    own = node.params.get("axis_name")
    if own is not None:
        return frozenset(own)
    graphs = graphs_in(node.params)
    return _NONE.union(*map(_names_in, graphs)) if graphs else _NONE


def _names_in(graph: Graph) -> frozenset[Any]:
    found = graph.extra.get("axis names")
    if found is None:
        found = graph.extra["axis names"] = _NONE.union(*map(names_used, graph.nodes))
    return found
