"""Lowering of collectives between processes to messages and reductions.

Input: a collective over axes of a mesh, and its operand, while `program.py` builds a program.
Output: the value of its result. The shards are gathered in the order of the processes and then
reduced in this order, by the kernel that also reduces the batched program of a single process. The
result therefore does not depend on MPI, and has the same bits as in a single process. Two processes
send each other what they add, without copies of their own arrays. With the option `mpi_allreduce`,
MPI adds numbers in its own order.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from accnp.config import config
from accnp.ir.aval import make_aval
from accnp.ir.kernel import is_half
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node
from accnp.ir.op import OPS
from accnp.primitives.collective import (
    ALL_GATHER,
    ALL_GATHER_INVARIANT,
    ALL_TO_ALL,
    AXIS_INDEX,
    REDUCE_SCATTER,
    VARY,
)
from accnp.primitives.kinds import dtype_kind, full

if TYPE_CHECKING:
    from accnp.compiler.fusion.program import ProgramBuilder, Value
    from accnp.ir.op import Op
    from accnp.ir.op_types import Params

__all__ = ["lower_collective"]

_SUMMED = frozenset(np.typecodes["AllInteger"] + "fdFD")  # the dtypes that MPI adds
# Bytes of an array from which each of n processes reduces one part and the parts are gathered. All
# processes together then send 2 (n - 1) arrays instead of n (n - 1).
LARGE = 1 << 16


def lower_collective(
    builder: ProgramBuilder, node: Node, inputs: tuple[Value, ...]
) -> Value | None:
    """Return a collective as messages and reductions; None for one that is a single message. The
    position of this process is a constant."""
    op, params = node.op, node.params
    if op is AXIS_INDEX:
        (axis,) = params["axis_name"]
        return builder.extra_leaf(full((), axis.here, node.aval.dtype))
    (x,) = inputs
    if op is VARY:
        return x
    if op.collective is not None and op.collective.reduce:
        # The last axis of the mesh comes first, as in the program of a single process.
        for axis in sorted(params["axis_name"], key=lambda a: -a.place):
            x = _lower_reduction(builder, node, x, axis, OPS[op.collective.reduce])
        return x
    if op is REDUCE_SCATTER:
        return _lower_reduce_scatter(builder, node, x)
    if op in (ALL_GATHER, ALL_GATHER_INVARIANT):
        return _lower_all_gather(builder, node, x)
    return _lower_all_to_all(builder, node, x) if op is ALL_TO_ALL else None


def _lower_all_gather(builder: ProgramBuilder, node: Node, x: Value) -> Value:
    p = node.params
    rows = builder.apply_op(node, "mesh_gather", _participants(node), (x,))
    rows = _move_axis(builder, node, rows, 0, p["all_gather_dimension"])
    return _view(builder, node, rows, node.aval.shape)


def _lower_all_to_all(builder: ProgramBuilder, node: Node, x: Value) -> Value:
    p = node.params
    n: int = p["axis_size"]
    at: int = p["split_axis"]
    if p["tiled"]:
        s = x.aval.shape
        x = _view(builder, node, x, (*s[:at], n, s[at] // n, *s[at + 1 :]))
    x = _move_axis(builder, node, x, at, 0)
    rows = builder.apply_op(node, "mesh_exchange", _participants(node), (x,))
    rows = _move_axis(builder, node, rows, 0, p["concat_axis"])
    return _view(builder, node, rows, node.aval.shape)


def _participants(node: Node) -> Params:
    """Return the parameters of a message: its participants, and the collective that it is part of,
    which error messages name."""
    params = {k: node.params[k] for k in ("axis_name", "axis_index_groups")}
    return {**params, "of": node.op.user_name}


def _move_axis(builder: ProgramBuilder, node: Node, x: Value, source: int, target: int) -> Value:
    if source == target:
        return x
    order = [d for d in range(x.aval.ndim) if d != source]
    order.insert(target, source)
    return builder.apply_op(node, "transpose", {"permutation": tuple(order)}, (x,))


def _lower_reduction(
    builder: ProgramBuilder, node: Node, x: Value, axis: MeshAxis, reduce: Op
) -> Value:
    groups = node.params["axis_index_groups"]
    n = len(axis.members(groups))
    uneven = groups is not None and len({len(g) for g in groups}) > 1
    params = {**_participants(node), "axis_name": (axis,)}
    half = is_half(x.aval.dtype)
    if config.mpi_allreduce and reduce.combine == "sum" and x.aval.dtype.char in _SUMMED:
        return builder.apply_op(node, "mesh_sum", params, (x,))
    if n == 2 and reduce.combine == "sum" and (half or x.aval.dtype.char in _SUMMED):
        return _add_two_processes(builder, node, x, axis, params)
    if x.aval.nbytes < LARGE or x.aval.size < 2 * n or uneven:
        rows = builder.apply_op(node, "mesh_gather", params, (x,))
        return _reduce_rows(builder, node, reduce, rows)
    shape, size = x.aval.shape, x.aval.size
    part = -(-size // n)
    flat = _view(builder, node, x, (size,))
    if part * n != size:
        zero = builder.extra_leaf(full((), 0, x.aval.dtype))
        pads = {"padding_config": ((0, part * n - size, 0),)}
        flat = builder.apply_op(node, "pad", pads, (flat, zero))
    rows = _view(builder, node, flat, (n, part))
    rows = builder.apply_op(node, "mesh_exchange", params, (rows,))
    total = _reduce_rows(builder, node, reduce, rows)
    rows = builder.apply_op(node, "mesh_gather", params, (total,))
    flat = _view(builder, node, rows, (n * part,))
    if part * n != size:
        cut = {"start_indices": (0,), "limit_indices": (size,), "strides": None}
        flat = builder.apply_op(node, "slice", cut, (flat,))
    return _view(builder, node, flat, shape)


def _add_two_processes(
    builder: ProgramBuilder, node: Node, x: Value, axis: MeshAxis, params: Params
) -> Value:
    """Add the arrays of two processes, which send them to each other."""
    other = builder.apply_op(node, "mesh_swap", params, (x,))
    first = axis.here == axis.members(params["axis_index_groups"])[0]
    a, b = (x, other) if first else (other, x)
    if dtype_kind(x.aval.dtype) in "fc":  # a sum begins with 0: -0 + -0 gives 0
        zero = builder.extra_leaf(full((), 0, x.aval.dtype))
        shape = {"shape": x.aval.shape, "broadcast_dimensions": ()}
        zeros = builder.apply_op(node, "broadcast_in_dim", shape, (zero,))
        a = builder.apply_op(node, "add", {}, (a, zeros))
    return builder.apply_op(node, "add", {}, (a, b))


def _lower_reduce_scatter(builder: ProgramBuilder, node: Node, x: Value) -> Value:
    p = node.params
    n: int = p["axis_size"]
    at: int = p["scatter_dimension"]
    shape = x.aval.shape
    split = (*shape[:at], n, shape[at] // n, *shape[at + 1 :])
    x = _view(builder, node, x, split)
    x = _move_axis(builder, node, x, at, 0)
    rows = builder.apply_op(node, "mesh_exchange", _participants(node), (x,))
    return _view(
        builder, node, _reduce_rows(builder, node, OPS["reduce_sum"], rows), node.aval.shape
    )


def _reduce_rows(builder: ProgramBuilder, node: Node, reduce: Op, rows: Value) -> Value:
    """Reduce the rows like a node of this op."""
    a = rows.aval
    aval = make_aval(a.shape[1:], a.dtype, a.weak_type)
    stand_in = Node(reduce, (), {"axes": (0,)}, aval, None, None, 0, node.site)
    if a.shape[0] == 1:
        return _view(builder, node, rows, a.shape[1:])
    return builder.reduce(stand_in, rows, (0,))


def _view(builder: ProgramBuilder, node: Node, x: Value, shape: tuple[int, ...]) -> Value:
    if x.aval.shape == shape:
        return x
    assert prod(shape) == x.aval.size
    return builder.apply_op(node, "reshape", {"new_sizes": shape, "dimensions": None}, (x,))
