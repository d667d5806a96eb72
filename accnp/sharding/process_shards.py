"""Shards of this process: the parts of arrays over several processes that each process holds.

It takes values of any kind, and shardings over a mesh of several processes. `shard_of` returns the
shard of this process, and `whole_of` returns an array that consists of shards. A value that is on
no device is assumed to be the same in all processes (this is not checked); its shard is a part of
it. An array with another sharding is moved: its shards are gathered along the axes that are no
longer sharded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from accnp.ir.aval import Aval, keeps_sharding, spans_processes
from accnp.ir.mesh_axis import MeshAxis
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import is_outside_shard_map, outside_shard_map
from accnp.primitives.collective import part_of
from accnp.primitives.shards import install_localize, local_of
from accnp.sharding.meshes import Mesh
from accnp.sharding.partition_specs import NamedSharding, axes_of, named_sharding

__all__ = [
    "entries_of", "local_whole", "moved", "refuse_to_close_over", "shard_of", "whole_of",
    "wholes_in_shard_map",
]  # fmt: skip

Entries = list[tuple[MeshAxis, ...]]


def entries_of(sharding: NamedSharding, ndim: int) -> Entries:
    """The mesh axes that cut each dimension."""
    mesh = sharding.mesh
    assert isinstance(mesh, Mesh)
    entries = [tuple(map(mesh.axis_over_processes, axes_of(e))) for e in sharding.spec]
    return entries + [()] * (ndim - len(entries))


def whole_of(x: Node, sharding: NamedSharding, shape: tuple[int, ...]) -> Node:
    """The array of which `x` is the shard of this process."""
    return o.to_global(x, sharding=sharding, shape=shape)


def shard_of(x: Node, sharding: NamedSharding, shape: tuple[int, ...]) -> Node:
    """The shard of a value under a sharding, whatever the value's own sharding is."""
    target = entries_of(sharding, len(shape))
    if not spans_processes(x.aval):
        return moved(x, [()] * len(shape), target)
    old = named_sharding(x.aval)
    own = entries_of(old, len(shape))
    if own != target and old.mesh != sharding.mesh:
        own_ranks = [d.process_index for d in old.mesh.devices.flat]
        ranks = [d.process_index for d in sharding.mesh.devices.flat]
        if sorted(own_ranks) != sorted(ranks):
            raise NotImplementedError(
                f"device_put: arrays move between meshes of the same processes; got {own_ranks} "
                f"and {ranks}; gather the array with multihost_utils.process_allgather"
            )
        return moved(moved(local_of(x), own, [()] * len(shape)), [()] * len(shape), target)
    return moved(local_of(x), own, target)


def local_whole(x: Node) -> Node:
    """The whole of a value, which each process then has, as a value without a sharding."""
    if not spans_processes(x.aval):
        return x
    return shard_of(x, named_sharding(x.aval).whole(), x.aval.shape)


def wholes_in_shard_map(xs: Sequence[Node]) -> list[Node]:
    """Return the operands of an operation in a function of shards, with arrays over processes
    replaced by their gathered values.

    Arrays over which the function closes are gathered before it is called: inside of it, some
    processes may not reach the operation, or reach it more often than others.

    Raises:
        NotImplementedError: the function closes over an array that is sharded on Explicit axes.
    """
    nodes = []
    for x in xs:
        refuse_to_close_over(x)
        if spans_processes(x.aval):
            with outside_shard_map() if is_outside_shard_map(x) else nullcontext():
                x = local_whole(x)
        nodes.append(x)
    return nodes


def refuse_to_close_over(x: Node) -> None:
    """Raise NotImplementedError if a function of shards closes over an operand that is sharded on
    Explicit axes, as jax does."""
    if not isinstance(x.aval, Aval) or not keeps_sharding(x.aval) or not is_outside_shard_map(x):
        return
    sharding = named_sharding(x.aval)
    explicit = sharding.mesh.explicit_axes
    if any([n in explicit for entry in sharding.spec for n in axes_of(entry)]):
        raise NotImplementedError(
            "shard_map: a function of shards cannot close over an array that is sharded on "
            f"Explicit axes; got {x.aval.str_short()} with {sharding.spec}; pass it as an argument"
        )


def moved(x: Node, own: Entries, target: Entries) -> Node:
    """The shard of a value for other entries, from that for its own."""
    own = list(own)
    for d, e, axis in _exchanged_axes(own, target):
        x = o.all_to_all(
            x, axis_name=(axis,), axis_index_groups=None, split_axis=e, concat_axis=d,
            axis_size=axis.size, tiled=True,
        )  # fmt: skip
        own[d], own[e] = (), (axis,)
    for d, (before, after) in enumerate(zip(own, target, strict=True)):
        n_common = _count_common_axes(before, after)
        for axis in reversed(before[n_common:]):
            x = o.all_gather_invariant(
                x, axis_name=(axis,), axis_index_groups=None, all_gather_dimension=d,
                axis_size=axis.size, tiled=True,
            )  # fmt: skip
    for d, (before, after) in enumerate(zip(own, target, strict=True)):
        for axis in after[_count_common_axes(before, after) :]:
            x = part_of(x, d, axis)
    return x


def _exchanged_axes(own: Entries, target: Entries) -> list[tuple[int, int, MeshAxis]]:
    """The axes that cut one dimension (the first number) and are to cut another one."""
    exchanges = []
    for d, before in enumerate(own):
        for e, after in enumerate(target):
            if len(before) == 1 and before == after and not target[d] and not own[e]:
                exchanges.append((d, e, before[0]))
    return exchanges


def _count_common_axes(a: tuple[MeshAxis, ...], b: tuple[MeshAxis, ...]) -> int:
    """How many axes both begin with: a shard along these stays where it is."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


install_localize(shard_of, wholes_in_shard_map)
