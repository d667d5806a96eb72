"""Programs whose results count only where a flag is true, for finished rows of batched loops.

The input is the program of one example, a scalar flag and the program's inputs; the results are
the new values if the flag is true and the old values otherwise. An indexed write,
`old.at[i].set(v)`, becomes a write that is dropped if the flag is false, instead of a selection
between two whole arrays. A loop over such writes remains linear in the number of steps, and its
buffers are updated in place. `loops.py` and `control.py` use these functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accnp.ir.graph import Graph, inline_calls
from accnp.ir.node import Node, record
from accnp.ir.op import o
from accnp.ir.trace import sets_site, state
from accnp.primitives.index import DROP, GatherScatterMode
from accnp.primitives.kinds import broadcast_to, full
from accnp.primitives.views import RESHAPE

__all__ = ["in_place", "masked", "masked_branches"]


def masked(graph: Graph, flag: Node, consts: Sequence[Node], old: Sequence[Node]) -> list[Node]:
    """Record a program that maps `consts` and `old` to new values of `old`. Return the new values
    if the flag is true and the old ones otherwise; intermediate values are then meaningless."""
    graph = inline_calls(graph)
    n = len(consts)
    inputs = [*consts, *old]
    results = _record_masked(graph, flag, inputs, inputs)
    return [
        y if root == n + i and y.aval.shape == x.aval.shape else _select(flag, x, y)
        for i, (x, y, root) in enumerate(zip(old, results, _find_roots(graph), strict=True))
    ]


def in_place(branches: Sequence[Graph]) -> dict[int, int]:
    """Return result number -> operand number for results that are an operand with indexed writes,
    provided that it is the same operand in all branches and no other result."""
    graphs = [inline_calls(g) for g in branches]
    columns = list(zip(*map(_find_roots, graphs), strict=True))
    roots: list[int | None] = [column[0] if len(set(column)) == 1 else None for column in columns]
    inputs_by_output: dict[int, int] = {}
    for c, j in enumerate(roots):
        if j is None or roots.count(j) > 1:
            continue
        same = all(g.outputs[c].aval.shape == g.inputs[j].aval.shape for g in graphs)
        if same and any(g.outputs[c] is not g.inputs[j] for g in graphs):
            inputs_by_output[c] = j
    return inputs_by_output


def masked_branches(
    branches: Sequence[Graph], columns: dict[int, int], index: Node, operands: Sequence[Node]
) -> list[Node]:
    """Record all branches in sequence; each drops its writes unless `index` selects it. Return the
    results that `in_place` found."""
    written = list(operands)
    for k, graph in enumerate(branches):
        flag = o.eq(index, full((), k, index.aval.dtype))
        reads = [o.taken_rows(x, flag) for x in written]
        results = _record_masked(inline_calls(graph), flag, reads, written)
        for c, j in columns.items():
            written[j] = results[c]
    return [written[j] for j in columns.values()]


def _find_roots(graph: Graph) -> list[int | None]:
    """For each output, return the number of the input that it is, apart from indexed writes, or
    None."""
    numbers: dict[int, int | None] = {id(x): i for i, x in enumerate(graph.inputs)}
    for node in graph.nodes:
        if _is_write(node) or node.op is RESHAPE:
            numbers[id(node)] = numbers.get(id(node.inputs[0]))
    return [numbers.get(id(y)) for y in graph.outputs]


@sets_site
def _record_masked(
    graph: Graph, flag: Node, reads: Sequence[Node], written: Sequence[Node]
) -> list[Node]:
    """Record a program that drops its writes if the flag is false, so that results with a root
    (`_find_roots`) are then equal to that operand. Writes apply to `written`; all other operations
    read `reads`."""
    new: dict[int, Node] = dict(zip(map(id, graph.inputs), reads, strict=True))
    targets: dict[int, Node] = dict(zip(map(id, graph.inputs), written, strict=True))
    for node in graph.nodes:
        state.site = node.site
        inputs = [new.get(id(x), x) for x in node.inputs]
        target = targets.get(id(node.inputs[0])) if node.inputs else None
        if target is not None and _is_write(node):
            write = _masked_slice if node.op.indexing == "update" else _masked_scatter
            result = targets[id(node)] = write(node, flag, [target, *inputs[1:]])
        elif target is not None and node.op is RESHAPE:
            result = targets[id(node)] = record(node.op, (target,), node.params)
        else:
            result = record(node.op, tuple(inputs), node.params)
        new[id(node)] = result
    return [targets.get(id(y), new.get(id(y), y)) for y in graph.outputs]


def _select(flag: Node, old: Node, new: Node) -> Node:
    return o.select_n(broadcast_to(flag, old.aval.shape, ()), old, new)


def _is_write(node: Node) -> bool:
    """Return whether a node is an indexed write that can be dropped. A scatter is dropped by an
    index out of bounds, so its mode must not move indices inside."""
    if node.op.indexing == "update":
        return True
    if node.op.indexing != "scatter" or node.params["mode"] is GatherScatterMode.CLIP:
        return False
    return bool(node.params["dimension_numbers"].scatter_dims_to_operand_dims)


def _masked_scatter(node: Node, flag: Node, inputs: Sequence[Node]) -> Node:
    """Record a scatter whose indices are out of bounds if the flag is false."""
    x, starts, updates = inputs
    dtype = starts.aval.dtype
    if dtype.kind == "u":  # all values of a narrow unsigned type may be in bounds
        dtype = np.dtype(np.int64 if dtype.itemsize == 8 else np.int32)
        starts = o.convert_element_type(starts, new_dtype=dtype, weak_type=False)
    shape = starts.aval.shape
    starts = o.select_n(broadcast_to(flag, shape, ()), full(shape, -1, dtype), starts)
    params = {**node.params, "mode": DROP, "indices_are_sorted": False}
    return record(node.op, (x, starts, updates), params)


def _masked_slice(node: Node, flag: Node, inputs: Sequence[Node]) -> Node:
    """Record a slice update that writes back the old values if the flag is false."""
    x, update, *starts = inputs
    there = o.dynamic_slice(x, *starts, slice_sizes=update.aval.shape)
    return record(node.op, (x, _select(flag, there, update), *starts), node.params)
