"""Transposition: propagate cotangents backward through the linear part of a program.

`backward` takes the nodes in order, the leaves in which they are linear, the outputs and their
cotangents. It first separates results that do not depend on the leaves (`split_linear.py`), then
applies the ops' transpose rules in reverse order. It returns one cotangent per leaf, None for zero.
`vjp.py` and the transposition of call ops (`tools.py`) use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.aval import (
    Aval,
    ShardedDevices,
    make_aval,
    mesh_sharding,
    on_devices,
)  # fmt: skip
from accnp.ir.node import Node
from accnp.ir.op import CALLS, Linear, o
from accnp.ir.trace import is_distributed, sets_site, state
from accnp.primitives.kinds import zeros_like_aval
from accnp.transforms.split_linear import separate_nonlinear

if TYPE_CHECKING:
    from accnp.transforms.tools import Tools

__all__ = ["backward", "zero_cotangent"]


@sets_site
def backward(  # noqa: C901
    order: Sequence[Node],
    leaves: Sequence[Node],
    outputs: Sequence[Node | None],
    cts: Sequence[Node | None],
    tools: Tools,
) -> list[Node | None]:
    """Propagate the cotangents of the outputs to the leaves."""
    chain, leaves, outputs = separate_nonlinear(order, leaves, outputs, tools)
    linear = {id(x): x for x in leaves}
    linear.update((id(n), n) for n in chain)
    sharded = any([_has_sharding(x.aval) for x in linear.values()])
    acc: dict[int, Any] = {}

    def add(x: Node, ct: Node | None) -> None:
        if ct is None or id(x) not in linear:
            return
        if ct.aval.shape != x.aval.shape:
            ct = _sum_to_shape(ct, x.aval.shape)
        if sharded:
            ct = _put_like(x.aval, ct)
        if state.varying is not None:
            ct = state.varying.sum_over_extra_axes(ct, x)
        have = acc.get(id(x))
        acc[id(x)] = ct if have is None else o.add_any(have, ct)

    for x, ct in zip(outputs, cts, strict=True):
        if x is not None:
            add(x, ct)
    for node in reversed(chain):
        state.site = node.site
        ct = acc.pop(id(node), None)
        if ct is None:
            continue
        op = node.op
        if op.kind == "item":
            parent = node.inputs[0]
            whole = acc.setdefault(id(parent), [None] * len(parent.aval))
            k = node.params["index"]
            whole[k] = ct if whole[k] is None else o.add_any(whole[k], ct)
            continue
        if op.transpose is None and op.kind == "mark":
            # This includes the boundaries of custom rules inside linear user functions: what passes
            # them is linear already.
            add(node.inputs[0], ct)
            continue
        if op.transpose is None:
            raise NotImplementedError(
                f"{op.name}: reverse-mode differentiation is not known for it; got it where a "
                "value depends on the argument; use forward mode (jvp, jacfwd) or custom_vjp"
            )
        args = [Linear(x.aval) if id(x) in linear else x for x in node.inputs]
        if sharded and op.kind not in CALLS:
            args = [_without_sharding(x) for x in args]
            ct = _without_shardings(ct)
        if op.kind in CALLS:
            several = isinstance(node.aval, tuple)
            cotangents = op.transpose(ct if several else [ct], args, node.params, tools)
        else:
            cotangents = op.transpose(ct, *args, **node.params)
        for x, part in zip(node.inputs, cotangents, strict=False):
            if part is not None and isinstance(node.aval, Aval) and op.kind not in CALLS:
                part = _match_weak_type(part, x.aval.weak_type, node.aval.weak_type)
            add(x, part)
    return [acc.get(id(x)) for x in leaves]


def _has_sharding(a: Aval | tuple[Aval, ...]) -> bool:
    """Return whether a type has a sharding, which the type of the cotangent then has as well.

    Types over Explicit meshes have one. Over several processes, programs consist of operations on
    shards, whose transposes have this property already, except in functions that `vmap` maps.
    """
    where = a.devices if type(a) is Aval else None
    if type(where) is not ShardedDevices or is_distributed(a):
        return False
    return bool(where.sharding.mesh.explicit_axes)


def zero_cotangent(a: Aval) -> Node:
    """Return zeros of a type, with its sharding if it has one."""
    if not is_distributed(a):
        return _put_like(a, zeros_like_aval(a))
    sharding = mesh_sharding(a)
    shard = zeros_like_aval(make_aval(sharding.shard_shape(a.shape), a.dtype, a.weak_type))
    return o.to_global(shard, sharding=sharding.of_rank(a.ndim), shape=a.shape)


def _put_like(a: Aval, ct: Node) -> Node:
    """Give a cotangent the sharding of the type of its primal value, if that has one."""
    if not _has_sharding(a):
        return ct
    where: Any = a.devices
    return _put_on_devices(ct, ShardedDevices(where.sharding.of_rank(a.ndim), where))


def _put_on_devices(x: Node, where: ShardedDevices) -> Node:
    if x.aval.devices == where:
        return x
    return o.device_put(x, devices=where, source=x.aval.devices)


def _without_sharding(x: Node | Linear | None) -> Node | Linear | None:
    """Return an operand of a transposed operation as an array that is not sharded.

    The shardings of the operands do not decide that of the result: it follows from the type of the
    original operand, as if `out_sharding` said it.
    """
    if x is None or not _has_sharding(x.aval):
        return x
    where: Any = x.aval.devices
    whole = ShardedDevices(where.sharding.whole(), where)
    return _put_on_devices(x, whole) if isinstance(x, Node) else Linear(on_devices(x.aval, whole))


def _without_shardings(
    ct: Node | list[Node | None],
) -> Node | Linear | list[Node | Linear | None] | None:
    """Return a cotangent, or those of several results, as arrays that are not sharded."""
    return [_without_sharding(x) for x in ct] if isinstance(ct, list) else _without_sharding(ct)


def _match_weak_type(ct: Node, weak: bool, weak_result: bool) -> Node:
    """Give a cotangent the weak-type flag that it would have if promotion were an operation in the
    graph: a weak operand is promoted to strong for a strong result, and so is a weak number next to
    a strong operand."""
    if ct.aval.weak_type == weak or (weak and weak_result):
        return ct
    return o.convert_element_type(ct, new_dtype=ct.aval.dtype, weak_type=weak)


def _sum_to_shape(ct: Node, shape: tuple[int, ...]) -> Node:
    """Sum a cotangent over the axes along which its operand was broadcast."""
    if not shape:
        return o.reduce_sum(ct, axes=tuple(range(ct.aval.ndim)))
    axes = tuple(d for d, (m, n) in enumerate(zip(ct.aval.shape, shape, strict=True)) if m != n)
    return o.reshape(o.reduce_sum(ct, axes=axes), new_sizes=shape, dimensions=None)
