"""The ops `to_local`, `to_global` and `take_as_same`, for programs on several processes.

Each process records such a program as it runs it, on its own shards. `to_global` gives a shard the
type of the whole array, and `to_local` converts it back; kernels look through both. The cotangent
of a whole array is sharded like the array. `take_as_same` declares that a value does not differ
along axes of the mesh if this cannot be derived (`transforms/varying.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accnp.ir.aval import Aval, ShardedDevices, make_aval, mesh_sharding, on_devices
from accnp.ir.node import Node, const
from accnp.ir.op import Op, o, register
from accnp.primitives.kinds import broadcast_to, full, zeros_like_aval

if TYPE_CHECKING:
    from accnp.ir.aval import MeshSharding
    from accnp.ir.op_types import Operand, Params, Tangents
    from accnp.primitives.rule_types import Tools

__all__ = ["TO_GLOBAL", "TO_LOCAL", "gather_operands", "install_localize", "local_of", "localize"]

_localize: list[Callable[[Node, MeshSharding, tuple[int, ...]], Node]] = []
_wholes: list[Callable[[Sequence[Node]], list[Node]]] = []


def install_localize(
    localize: Callable[[Node, Any, tuple[int, ...]], Node],
    gather_operands: Callable[[Sequence[Node]], list[Node]],
) -> None:
    """Set the function that returns the shard of a value for a sharding and a shape, and the one
    that returns the wholes of operands in a function of shards."""
    _localize[:], _wholes[:] = [localize], [gather_operands]


def localize(x: Node, sharding: MeshSharding, shape: tuple[int, ...]) -> Node:
    """Return this process's shard of a value under a sharding."""
    return _localize[0](x, sharding, shape)


def gather_operands(xs: Sequence[Node]) -> list[Node]:
    """Return the operands of an operation in a function of shards, with wholes for arrays over
    processes."""
    return _wholes[0](xs)


def local_of(x: Node) -> Node:
    """Return this process's shard of a global array."""
    if x.op is TO_GLOBAL and x.inputs:
        return x.inputs[0]
    if x.trace is None and hasattr(x.value, "ptr"):
        shard = _shard_infer(x.aval, sharding=mesh_sharding(x.aval))
        return const(x.value, shard)  # computed: the buffer contains only the shard
    return o.to_local(x, sharding=mesh_sharding(x.aval))


def _identity(x: np.ndarray, **_: object) -> np.ndarray:
    return x


def _whole_infer(x: Aval, *, sharding: MeshSharding, shape: tuple[int, ...]) -> Aval:
    where = ShardedDevices(sharding, sharding.mesh.devices.flat)
    return on_devices(make_aval(shape, x.dtype, x.weak_type), where)


def _shard_infer(x: Aval, *, sharding: MeshSharding) -> Aval:
    return make_aval(sharding.shard_shape(x.shape), x.dtype, x.weak_type)


def _whole_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    (t,) = ts
    return [y], [t if t is None else o.to_global(t, **params)]


def _shard_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    (t,) = ts
    return [y], [t if t is None else localize(t, params["sharding"], xs[0].aval.shape)]


def _whole_transpose(
    ct: Node, x: Operand, *, sharding: MeshSharding, shape: tuple[int, ...]
) -> tuple[Node]:
    return (localize(ct, sharding, shape),)


def _shard_transpose(ct: Node, x: Operand, *, sharding: MeshSharding) -> tuple[Node]:
    return (o.to_global(ct, sharding=sharding.in_types(x.aval.ndim), shape=x.aval.shape),)


def _whole_batch(
    size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    (x,) = xs
    if flags[0]:
        shape = (size, *params["shape"])
        sharding = params["sharding"].behind_one(len(shape))
        x = o.to_global(x, sharding=sharding, shape=shape)
    else:
        x = o.to_global(x, **params)
    return [x], [flags[0]]


def _shard_batch(
    size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    """Return the shards of all examples: in each process those of its part of each example."""
    (x,), sharding = xs, params["sharding"]
    if flags[0]:
        return [localize(x, sharding.behind_one(x.aval.ndim), x.aval.shape)], [True]
    return [localize(x, sharding, x.aval.shape)], [False]


TO_GLOBAL = register(
    Op(
        "to_global", "mark", _whole_infer, numpy=_identity, jvp=_whole_jvp,
        transpose=_whole_transpose, batch=_whole_batch,
    )
)  # fmt: skip
TO_LOCAL = register(
    Op(
        "to_local", "mark", _shard_infer, numpy=_identity, jvp=_shard_jvp,
        transpose=_shard_transpose, batch=_shard_batch, places=True,
    )
)  # fmt: skip


def _same_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    (t,) = ts
    return [y], [t if t is None else o.take_as_same(t, **params)]


def _same_transpose(ct: Node, x: Operand, *, axis_name: tuple[Any, ...]) -> tuple[Node]:
    """Pass the cotangent to the first process along each axis; cotangents of other processes are
    not used."""
    ct = o.pvary(ct, axis_name=axis_name, axis_index_groups=None)
    zero = full((), 0, np.dtype(np.int32))
    for axis in axis_name:
        here = o.eq(o.axis_index(axis_name=(axis,)), zero)
        ct = o.select_n(broadcast_to(here, ct.aval.shape, ()), zeros_like_aval(ct.aval), ct)
    return (ct,)


def _same_batch(
    size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    return [o.take_as_same(xs[0], **params)], [flags[0]]


def _same_infer(x: Aval, *, axis_name: tuple[Hashable, ...]) -> Aval:
    return x


register(
    Op(
        "take_as_same", "mark", _same_infer, numpy=_identity, jvp=_same_jvp,
        transpose=_same_transpose, batch=_same_batch,
    )
)  # fmt: skip
