"""Programs whose results count only where a flag is true, for rows of a batch that have ended.

In: the program of one example, a scalar flag, the program's inputs. Out: its results where the flag
is true, the old values elsewhere. A write at an index, `old.at[i].set(v)`, becomes a write that is
dropped where the flag is false, instead of a choice between two whole arrays: a loop over such
writes stays linear in the number of steps, and its buffers are updated in place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accnp.ir.graph import Graph, expanded
from accnp.ir.node import Node, record
from accnp.ir.op import o
from accnp.ir.trace import sets_site, state
from accnp.primitives.index import DROP, GatherScatterMode
from accnp.primitives.kinds import broadcast_to, full

__all__ = ["in_place", "masked", "masked_branches"]

_WRITES = ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")


def masked(graph: Graph, flag: Node, consts: Sequence[Node], old: Sequence[Node]) -> list[Node]:
    """Record a program that maps `consts` and `old` to new values of `old`; returns these where the
    flag is true, and the old ones elsewhere. What is computed on the way is of no use there."""
    graph = expanded(graph)
    n = len(consts)
    inputs = [*consts, *old]
    results = _recorded(graph, flag, inputs, inputs)
    return [
        y if root == n + i and y.aval.shape == x.aval.shape else _chosen(flag, x, y)
        for i, (x, y, root) in enumerate(zip(old, results, _roots_of(graph), strict=True))
    ]


def in_place(branches: Sequence[Graph]) -> dict[int, int]:
    """By the numbers of those results that are an operand with writes in it, the same operand in
    all branches and no other result: the number of the operand."""
    graphs = [expanded(g) for g in branches]
    columns = list(zip(*map(_roots_of, graphs), strict=True))
    roots = [column[0] if len(set(column)) == 1 else None for column in columns]
    found = {}
    for c, j in enumerate(roots):
        if j is None or roots.count(j) > 1:
            continue
        same = all(g.outputs[c].aval.shape == g.inputs[j].aval.shape for g in graphs)
        if same and any(g.outputs[c] is not g.inputs[j] for g in graphs):
            found[c] = j
    return found


def masked_branches(
    branches: Sequence[Graph], columns: dict[int, int], index: Node, operands: Sequence[Node]
) -> list[Node]:
    """Record all branches, one after the other, each with its writes dropped unless `index` names
    it; returns the results that `in_place` found."""
    written = list(operands)
    for k, graph in enumerate(branches):
        flag = o.eq(index, full((), k, index.aval.dtype))
        reads = [o.taken_rows(x, flag) for x in written]
        results = _recorded(expanded(graph), flag, reads, written)
        for c, j in columns.items():
            written[j] = results[c]
    return [written[j] for j in columns.values()]


def _roots_of(graph: Graph) -> list[int | None]:
    """For each output the number of the input that it is, but for writes at indices; None if there
    is none."""
    numbers: dict[int, int | None] = {id(x): i for i, x in enumerate(graph.inputs)}
    for node in graph.nodes:
        if _is_write(node) or node.op.name == "reshape":
            numbers[id(node)] = numbers.get(id(node.inputs[0]))
    return [numbers.get(id(y)) for y in graph.outputs]


@sets_site
def _recorded(
    graph: Graph, flag: Node, reads: Sequence[Node], written: Sequence[Node]
) -> list[Node]:
    """Record a program with its writes dropped where the flag is false: results that have a root
    (`_roots_of`) are that operand then. Writes go to `written`, everything else sees `reads`."""
    new: dict[int, Node] = dict(zip(map(id, graph.inputs), reads, strict=True))
    targets: dict[int, Node] = dict(zip(map(id, graph.inputs), written, strict=True))
    for node in graph.nodes:
        state.site = node.site
        inputs = [new.get(id(x), x) for x in node.inputs]
        target = targets.get(id(node.inputs[0])) if node.inputs else None
        if target is not None and _is_write(node):
            write = _masked_slice if node.op.name == "dynamic_update_slice" else _masked_scatter
            made = targets[id(node)] = write(node, flag, [target, *inputs[1:]])
        elif target is not None and node.op.name == "reshape":
            made = targets[id(node)] = record(node.op, (target,), node.params)
        else:
            made = record(node.op, tuple(inputs), node.params)
        new[id(node)] = made
    return [targets.get(id(y), new.get(id(y), y)) for y in graph.outputs]


def _chosen(flag: Node, old: Node, new: Node) -> Node:
    return o.select_n(broadcast_to(flag, old.aval.shape, ()), old, new)


def _is_write(node: Node) -> bool:
    """Whether a node writes at an index, and can be turned off: a scatter by an index out of
    bounds, which must not be moved inside."""
    if node.op.name == "dynamic_update_slice":
        return True
    if node.op.name not in _WRITES or node.params["mode"] is GatherScatterMode.CLIP:
        return False
    return bool(node.params["dimension_numbers"].scatter_dims_to_operand_dims)


def _masked_scatter(node: Node, flag: Node, inputs: Sequence[Node]) -> Node:
    """A scatter whose indices are out of bounds where the flag is false."""
    x, starts, updates = inputs
    dtype = starts.aval.dtype
    if dtype.kind == "u":  # all values of a narrow one may be in bounds
        dtype = np.dtype(np.int64 if dtype.itemsize == 8 else np.int32)
        starts = o.convert_element_type(starts, new_dtype=dtype, weak_type=False)
    shape = starts.aval.shape
    starts = o.select_n(broadcast_to(flag, shape, ()), full(shape, -1, dtype), starts)
    params = {**node.params, "mode": DROP, "indices_are_sorted": False}
    return record(node.op, (x, starts, updates), params)


def _masked_slice(node: Node, flag: Node, inputs: Sequence[Node]) -> Node:
    """A write of a slice that writes what is there where the flag is false."""
    x, update, *starts = inputs
    there = o.dynamic_slice(x, *starts, slice_sizes=update.aval.shape)
    return record(node.op, (x, _chosen(flag, there, update), *starts), node.params)
