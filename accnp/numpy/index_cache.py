"""Cache of what indexing expressions record, by the avals of operands and index arrays.

Eager loops that evaluate `x[rows]` parse a key once; later evaluations replay the recorded ops on
new nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from accnp.array_type import Array
from accnp.caches import BoundedCache
from accnp.ir.graph import build, toposort
from accnp.ir.node import Node, record

__all__ = ["replayed", "signature"]


class RecordedOps(NamedTuple):
    """Operations in order (op, parameters, positions of operands), and which one is the result."""

    start: list[Any]  # operands (None), literals, then results
    steps: list[tuple[Any, dict[str, Any], tuple[int, ...]]]
    result: int


_recipes: BoundedCache[Any, RecordedOps] = BoundedCache("type_cache_size").register(
    "index recipes", "what indexing expressions record"
)


def signature(key: Any, arrays: list[Node]) -> Any:
    """Return a cache key for an indexing key, and append its index arrays to `arrays`.

    Returns None for keys without index arrays, and for masks, traced scalars and other items that
    must be inspected each time.
    """
    out = []
    for item in key if type(key) is tuple else (key,):
        if type(item) is Array:
            node = item._node
            if node.aval.ndim == 0 or node.aval.dtype.kind not in "iu":
                return None
            arrays.append(node)
            out.append(node.aval)
        elif type(item) is slice:
            bounds = (item.start, item.stop, item.step)
            if not all([type(v) is int or v is None for v in bounds]):
                return None
            out.append(bounds)
        elif item is None or item is Ellipsis or type(item) is int:
            out.append(item)
        else:
            return None
    return tuple(out) if arrays else None


def replayed(key: Any, inputs: Sequence[Node], make: Callable[[Sequence[Node]], Node]) -> Node:
    """Record what `make` records on these inputs; the result must depend only on `key` and the
    types of the inputs."""
    recipe = _recipes.get(key) or _recipes.recall(key)
    if recipe is None:
        recipe = _write_recipe(inputs, make)
        _recipes.store(key, recipe)
    nodes = [*inputs, *recipe.start[len(inputs) :]]
    for op, params, places in recipe.steps:
        nodes.append(record(op, tuple([nodes[i] for i in places]), params))
    return nodes[recipe.result]


def _write_recipe(inputs: Sequence[Node], make: Callable[[Sequence[Node]], Node]) -> RecordedOps:
    graph = build(lambda leaves: [make(leaves)], [x.aval for x in inputs])
    place = {id(x): i for i, x in enumerate(graph.inputs)}
    start: list[Any] = [None] * len(place)
    order = toposort(graph.outputs)
    for node in order:
        for x in node.inputs:
            if x.op.kind == "leaf" and id(x) not in place:
                place[id(x)] = len(start)
                start.append(x)
    steps = []
    for node in order:
        steps.append((node.op, node.params, tuple([place[id(x)] for x in node.inputs])))
        place[id(node)] = len(start) + len(steps) - 1
    return RecordedOps(start, steps, place[id(graph.outputs[0])])
