"""Operations on arrays over several devices: each is recorded as its shards require.

It takes an operation and its operands, some of which are sharded. If there are several processes,
it returns the array whose shard this process computes, by the same operation on shards and, where
the rules (`sharding_rules.py`) require it, a collective. For the devices of one process, which
share memory, it returns the sharding of the result. Both apply the same rules. Each process calls
the function of a callback with the whole arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.ir.aval import ShardedDevices, keeps_sharding, mesh_sharding, spans_processes
from accnp.ir.node import LITERAL, Node, items, record, together
from accnp.ir.op import Op, o
from accnp.ir.trace import in_shard_map, in_vmap, is_distributed
from accnp.primitives.shards import local_of
from accnp.sharding.meshes import AxisType, Mesh
from accnp.sharding.partition_specs import NamedSharding, PartitionSpec, axes_of, named_sharding
from accnp.sharding.process_shards import Entries as LocalEntries
from accnp.sharding.process_shards import (
    entries_of,
    local_whole,
    moved,
    refuse_to_close_over,
    whole_of,
    wholes_in_shard_map,
)
from accnp.sharding.requested_shardings import requested
from accnp.sharding.sharding_rules import (
    Case,
    Entries,
    ShardedExecution,
    execution_of,
    unsharded_execution,
)
from accnp.transforms.varying import sort_axes

__all__ = ["distribute"]


def distribute(op: Op, inputs: tuple[Node, ...], params: dict[str, Any], out: Any) -> Any:
    """The result of an operation on sharded operands as a node, or its devices, or None where these
    are those of the operands."""
    if op.kind in ("call", "mark", "item"):
        return None
    first = next(named_sharding(x.aval) for x in inputs if type(x.aval.devices) is ShardedDevices)
    mesh = first.mesh
    # In a mapped function only types matter: batching records its operations again.
    over = any([is_distributed(x.aval) for x in inputs])
    if in_shard_map():
        for x in inputs:
            refuse_to_close_over(x)
        if over:
            return record(op, tuple(wholes_in_shard_map(inputs)), params)
    if not over and (not mesh.explicit_axes or op.kind == "loop"):
        return None
    if in_vmap() and "axis_name" in params:  # along a mapped axis: batching replaces it
        return None
    inputs = tuple([_on_mesh(x, mesh, op.name) for x in inputs])
    assert isinstance(mesh, Mesh)
    types = zip(mesh.axis_names, mesh.axis_types, strict=True)
    explicit = any([kind is AxisType.Explicit for _, kind in types])
    names = [_names(x) for x in inputs]
    case = Case(op, [x.aval for x in inputs], params, names, dict(mesh.shape), explicit, out)
    if over and (request := requested()) is not None:
        case.explicit, case.requested = False, request.entries
    execution = unsharded_execution(case) if op.kind == "callback" else execution_of(case)
    if not over:
        return _result_placement(execution, mesh, out)
    return _on_shards(op, inputs, execution, mesh, out)


_INT8 = np.dtype(np.int8)


def _on_mesh(x: Node, mesh: Any, name: str) -> Node:
    """An operand on a mesh: of an array on another mesh of type Auto, the whole.

    Raises:
        ValueError: the meshes differ, and one has Explicit axes.
    """
    if not keeps_sharding(x.aval) or mesh_sharding(x.aval).mesh == mesh:
        return x
    other = mesh_sharding(x.aval).mesh
    if mesh.explicit_axes or other.explicit_axes:
        raise ValueError(
            f"{name}: the operands are on different meshes; got {mesh} and {other}; move one of "
            "them with device_put"
        )
    return local_whole(x)


def _names(x: Node) -> Entries:
    where = x.aval.devices
    if type(where) is not ShardedDevices or not isinstance(where.sharding, NamedSharding):
        return [()] * x.aval.ndim
    names = [axes_of(e) for e in where.sharding.spec]
    return names + [()] * (x.aval.ndim - len(names))


def _spec(entries: Entries, explicit: bool) -> PartitionSpec:
    """As jax has it: with an entry for each dimension on Explicit axes."""
    parts = [e or None for e in entries]
    while parts and parts[-1] is None and not explicit:
        del parts[-1]
    return PartitionSpec(*parts)


def _result_entries(execution: ShardedExecution) -> list[Entries]:
    return [execution.final] if execution.final is not None else execution.outs


def _result_placement(execution: ShardedExecution, mesh: Mesh, out: Any) -> Any:
    devices = tuple(mesh.devices.flat)
    placements = [
        ShardedDevices(NamedSharding(mesh, _spec(e, True)), devices)
        for e in _result_entries(execution)
    ]
    return tuple(placements) if isinstance(out, tuple) else placements[0]


def _on_shards(
    op: Op, inputs: tuple[Node, ...], execution: ShardedExecution, mesh: Mesh, out: Any
) -> Any:
    def axes(entries: Entries) -> LocalEntries:
        return [tuple(map(mesh.axis_over_processes, e)) for e in entries]

    shards = []
    for x, target in zip(inputs, execution.ins, strict=True):
        if spans_processes(x.aval):
            own = entries_of(named_sharding(x.aval), x.aval.ndim)
            x = local_of(x)
        else:
            own = [()] * x.aval.ndim
        shards.append(moved(x, own, axes(target)))
    every = {a for entries in execution.ins for e in axes(entries) for a in e}
    meeting = []
    for x, target in zip(shards, execution.ins, strict=True):
        missing = every - {a for e in axes(target) for a in e}
        if missing and x.op is not LITERAL:
            x = o.pvary(x, axis_name=sort_axes(missing), axis_index_groups=None)
        meeting.append(x)
    y = record(op, tuple(meeting), execution.params)
    if execution.combine:
        y = _reduce_over_axes(y, execution, tuple(map(mesh.axis_over_processes, execution.over)))
    several = isinstance(out, tuple)
    wholes = []
    outputs, types = (items(y), out) if several else ([y], [out])
    for y, entries, result, aval in zip(
        outputs, execution.outs, _result_entries(execution), types, strict=True
    ):
        if result is not entries:
            y = moved(y, axes(entries), axes(result))
        sharding = NamedSharding(mesh, _spec(result, bool(mesh.explicit_axes)))
        wholes.append(whole_of(y, sharding, aval.shape))
    return together(wholes) if several else wholes[0]


def _reduce_over_axes(y: Node, execution: ShardedExecution, axes: Any) -> Node:
    names = sort_axes(axes)
    dtype = y.aval.dtype
    if dtype.kind == "b":  # reductions of bools: the extremes of numbers
        y = o.convert_element_type(y, new_dtype=_INT8, weak_type=False)
    if execution.scatter is not None:
        y = o.reduce_scatter(
            y, axis_name=names, axis_index_groups=None, scatter_dimension=execution.scatter,
            axis_size=names[0].size, tiled=True,
        )  # fmt: skip
    else:
        y = getattr(o, execution.combine)(y, axis_name=names, axis_index_groups=None)
    if y.aval.dtype != dtype:
        y = o.convert_element_type(y, new_dtype=dtype, weak_type=False)
    return y
