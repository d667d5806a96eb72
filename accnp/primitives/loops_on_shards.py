"""Run loops and branches over arrays on several processes: each process runs them on its shards.

The input is a control-flow op, its operands, and its parameters, whose programs take and return
whole arrays. The output is the results of the same op over shards. `control.call` uses this module
if an operand spans processes. The operations of the programs are distributed already
(`sharding/partitioning.py`): each is recorded on shards, between the ops `to_local` and
`to_global`. This module takes the shards of the operands and returns shards. A carried value keeps
the sharding that it has in the type of the body's input, and rows are sharded like the axes of the
array after the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.aval import Aval, make_aval, mesh_sharding, result_devices, spans_processes
from accnp.ir.graph import Graph, derive_graph, graphs_in, rewrite
from accnp.ir.node import Node, items, record
from accnp.ir.op import OPS, Op, o
from accnp.ir.trace import in_shard_map
from accnp.primitives.shards import TO_LOCAL, local_of, localize

if TYPE_CHECKING:
    from accnp.ir.aval import MeshSharding
    from accnp.ir.op_types import Params

__all__ = ["call_on_shards", "is_over_processes"]

Shardings = tuple[Any, ...]  # of values: a NamedSharding, or None for one that has no shards


def is_over_processes(inputs: Sequence[Node], params: Params) -> bool:
    """Return whether an operand of a call, or a value that its programs take or return, has shards
    in several processes."""
    avals = [x.aval for x in inputs]
    for graph in graphs_in(params):
        avals += [*graph.in_avals, *graph.out_avals]
    return any(map(spans_processes, avals))


def call_on_shards(op: Op, inputs: Sequence[Node], params: Params) -> list[Node]:
    """Record a control-flow op over the shards of its operands, and return whole arrays.

    Parameters
    ----------
    op : Op
        The op, of kind "loop".
    inputs : sequence of Node
        The operands: whole arrays, and others.
    params : dict
        The parameters of the op, with programs of whole arrays.

    Raises
    ------
    NotImplementedError
        In a function of shards that closes over a whole array.
    ValueError
        The operands are on different devices.
    """
    result_devices(op.name, [x.aval for x in inputs], ())
    if in_shard_map():
        aval = next(x.aval for x in inputs if spans_processes(x.aval))
        raise NotImplementedError(
            f"{op.name}: a loop in a function of shards cannot use an array over several processes "
            f"from outside of it; got {aval.str_short()}; pass it to shard_map as an argument"
        )
    return {"scan": _scan, "while": _while, "cond": _cond}[op.control](list(inputs), params)


def _scan(inputs: list[Node], params: Params) -> list[Node]:
    graph, length = params["jaxpr"], params["length"]
    first = params["num_consts"]
    at, n = first + params["num_carry"], params["num_carry"]
    ins = _shardings(graph.in_avals)
    outs = (*ins[first:at], *_shardings(graph.out_avals[n:]))
    rows = [_stacked_sharding(s, a) for s, a in zip(ins[at:], graph.in_avals[at:], strict=True)]
    shards = _shards(inputs, [*ins[:at], *rows])
    results = record(OPS["scan"], tuple(shards), {**params, "jaxpr": _local(graph, ins, outs)})
    types = graph.out_avals
    rows = [_stacked_sharding(s, a) for s, a in zip(outs[n:], types[n:], strict=True)]
    shapes = [*[a.shape for a in types[:n]], *[(length, *a.shape) for a in types[n:]]]
    return _gather_shards(items(results), [*outs[:n], *rows], shapes)


def _while(inputs: list[Node], params: Params) -> list[Node]:
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    a, b = params["cond_nconsts"], params["body_nconsts"]
    ins = _shardings(body.in_avals)
    tested = (*_shardings(test.in_avals[:a]), *ins[b:])
    programs = {
        "cond_jaxpr": _local(test, tested, (None,)),
        "body_jaxpr": _local(body, ins, ins[b:]),
    }
    shards = _shards(inputs, [*tested[:a], *ins])
    results = record(OPS["while"], tuple(shards), {**params, **programs})
    return _gather_shards(items(results), ins[b:], [x.shape for x in body.out_avals])


def _cond(inputs: list[Node], params: Params) -> list[Node]:
    branches = params["branches"]
    ins = _shardings(branches[0].in_avals)
    columns = zip(*[_shardings(g.out_avals) for g in branches], strict=True)
    outs = tuple([next((s for s in column if s is not None), None) for column in columns])
    local = tuple([_local(g, ins, outs) for g in branches])
    results = record(OPS["cond"], tuple(_shards(inputs, [None, *ins])), {"branches": local})
    return _gather_shards(items(results), outs, [a.shape for a in branches[0].out_avals])


def _shardings(avals: Sequence[Aval]) -> Shardings:
    return tuple([mesh_sharding(a) if spans_processes(a) else None for a in avals])


def _stacked_sharding(sharding: MeshSharding | None, row: Aval) -> MeshSharding | None:
    """Return the sharding of an array with rows of a type."""
    return None if sharding is None else sharding.behind_one(row.ndim + 1)


def _local(graph: Graph, ins: Shardings, outs: Shardings) -> Graph:
    """Return the program of shards for a program of whole arrays."""
    own = _shardings(graph.in_avals)

    def run(nodes: list[Node]) -> list[Node]:
        shapes = [a.shape for a in graph.in_avals]
        wholes = _gather_shards(nodes, ins, shapes)
        if ins != own:  # the operations of the program are those for its own shardings
            wholes = _gather_shards(_shards(wholes, own), own, shapes)
        return _shards(rewrite(graph, wholes, _shard_of_operand), outs)

    types = [
        make_aval(a.shape if s is None else s.shard_shape(a.shape), a.dtype, a.weak_type)
        for a, s in zip(graph.in_avals, ins, strict=True)
    ]
    return derive_graph(graph, ("on shards", ins, outs), run, types)


def _shard_of_operand(node: Node, operands: list[Node]) -> list[Node] | None:
    return [local_of(operands[0])] if node.op is TO_LOCAL else None


def _shards(xs: Sequence[Node], shardings: Sequence[Any]) -> list[Node]:
    """Return the shards of values; those without a sharding are needed as a whole."""
    shards: list[Node] = []
    for x, sharding in zip(xs, shardings, strict=True):
        if sharding is None and spans_processes(x.aval):
            sharding = mesh_sharding(x.aval).whole()
        shards.append(x if sharding is None else localize(x, sharding, x.aval.shape))
    return shards


def _gather_shards(
    xs: Sequence[Node], shardings: Sequence[Any], shapes: Sequence[tuple[int, ...]]
) -> list[Node]:
    results: list[Node] = []
    for x, sharding, shape in zip(xs, shardings, shapes, strict=True):
        if sharding is not None:
            x = o.to_global(x, sharding=sharding.in_types(len(shape)), shape=shape)
        results.append(x)
    return results
