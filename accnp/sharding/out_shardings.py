"""The parameter `out_sharding`: results whose sharding the caller requests.

It takes a function that records an operation (`record_as`), or any function of arrays (`call_as`),
its operands, and the sharding of the result, and returns the result with this sharding. The request
also decides cases that are ambiguous on Explicit meshes: operands are moved as the result requires.
If there are several processes, the rules see the sharding (`requested`), so that a product scatters
its sums instead of gathering them. The devices of one process share their memory; there, the
operands count as whole, and only the result has a sharding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.array_type import Array, wrap
from accnp.ir.aval import ShardedDevices
from accnp.ir.node import Node
from accnp.ir.trace import in_vmap, is_distributed
from accnp.pytree import flatten_arrays
from accnp.sharding.device_placement import put_node
from accnp.sharding.meshes import AxisType, Mesh, get_mesh
from accnp.sharding.partition_specs import NamedSharding, PartitionSpec, axes_of
from accnp.sharding.requested_shardings import RequestedSharding, requesting

__all__ = ["call_as", "record_as"]


def record_as(
    function: str, sharding: Any, nodes: Sequence[Node], record: Callable[..., Node]
) -> Node:
    """Record an operation on `nodes` whose result has the sharding; None asks for none."""
    out_sharding = None if sharding is None else _resolve_sharding(function, sharding, nodes)
    if out_sharding is None:
        return record(*nodes)
    if any([is_distributed(x.aval) for x in nodes]):
        with requesting(RequestedSharding([axes_of(e) for e in out_sharding.spec])):
            y = record(*nodes)
    else:
        y = record(*[_replicate_on_devices(function, x, out_sharding) for x in nodes])
    return _put_as(function, out_sharding, y, y.aval.shape)


def call_as(
    function: Callable[..., Any], sharding: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Call a function whose results, a pytree of arrays, have the sharding."""
    name = function.__name__
    arg_leaves, of_call = flatten_arrays((list(args), kwargs))
    at = [i for i, x in enumerate(arg_leaves) if isinstance(x, Array)]
    nodes = [arg_leaves[i]._node for i in at]
    out_sharding = _resolve_sharding(name, sharding, nodes)
    if out_sharding is None:
        return function(*args, **kwargs)

    if any([is_distributed(x.aval) for x in nodes]):
        with requesting(RequestedSharding(None)):
            results = function(*args, **kwargs)
    else:
        for i, x in zip(at, nodes, strict=True):
            arg_leaves[i] = wrap(_replicate_on_devices(name, x, out_sharding))
        positional, named = of_call.unflatten(arg_leaves)
        results = function(*positional, **named)
    leaves, structure = flatten_arrays(results)
    shown = structure.shown_leaves([x._node.aval for x in leaves])
    return structure.unflatten(
        [
            wrap(_put_as(name, out_sharding, x._node, a.shape))
            for x, a in zip(leaves, shown, strict=True)
        ]
    )


def _put_as(function: str, sharding: NamedSharding, x: Node, shape: tuple[int, ...]) -> Node:
    """Give a result its sharding; `shape` is as users see it, without the words of keys."""
    places = sharding.placed(shape, function)
    return put_node(x, ShardedDevices(sharding.in_types(len(shape)), places))


def _replicate_on_devices(function: str, x: Node, sharding: NamedSharding) -> Node:
    """Return a value of one process as an array that is whole on each device."""
    where = x.aval.devices
    if where is None and x.trace is not None and in_vmap():
        # A type in a mapped function may have no sharding although the batched values have one.
        return put_node(x, sharding.whole().placed(x.aval.shape, function))
    if type(where) is not ShardedDevices or not isinstance(where.sharding, NamedSharding):
        return x
    return put_node(x, ShardedDevices(where.sharding.whole(), where))


def _resolve_sharding(function: str, sharding: Any, nodes: Sequence[Node]) -> NamedSharding | None:
    """The sharding over a mesh of devices; None if its mesh is empty."""
    if not isinstance(sharding, NamedSharding | PartitionSpec):
        raise TypeError(
            f"{function}: out_sharding must be a NamedSharding or a PartitionSpec; got "
            f"{sharding!r}; make one with jax.NamedSharding(mesh, jax.P(...))"
        )
    if isinstance(sharding, PartitionSpec):
        mesh = get_mesh()
        if mesh.empty:
            raise ValueError(
                f"{function}: a PartitionSpec as out_sharding needs a mesh in use; got {sharding}; "
                "pass a NamedSharding, or use jax.set_mesh"
            )
        sharding = NamedSharding(mesh, sharding)
    if sharding.mesh.empty:
        return None
    if sharding.spec.unreduced or sharding.spec.reduced:
        raise NotImplementedError(
            f"{function}: results that are not reduced do not exist; got {sharding.spec}; leave "
            "unreduced and reduced out of the spec"
        )
    of_type = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    for name in (n for entry in sharding.spec for n in axes_of(entry)):
        if of_type[name] is not AxisType.Explicit:
            raise ValueError(
                f"{function}: out_sharding cannot contain axis names that are of type Auto or "
                f"Manual; got {sharding.spec}, in which {name!r} is of type {of_type[name].name}; "
                "use lax.with_sharding_constraint"
            )
    for x in nodes:
        mesh = getattr(getattr(x.aval.devices, "sharding", None), "mesh", None)
        if not isinstance(mesh, Mesh):
            continue
        if mesh.shape_tuple != sharding.mesh.shape_tuple:
            raise ValueError(
                f"{function}: out_sharding must be over the mesh of the operands; got "
                f"{sharding.mesh} and {mesh}; move the operands with device_put"
            )
        if not isinstance(sharding.mesh, Mesh):
            return NamedSharding(mesh, sharding.spec)
    return sharding
