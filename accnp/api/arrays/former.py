"""Functions that jax used to have and programs still call: compositions of today's.

In: arrays, keys, devices. Out: arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.api.arrays.creation import asarray
from accnp.api.arrays.joining import stack
from accnp.api.arrays.manipulation import broadcast_to
from accnp.api.sampling.random import permutation
from accnp.array import Array
from accnp.errors import api_boundary
from accnp.pytree import tree_map

__all__ = ["device_put_replicated", "device_put_sharded", "shuffle"]


@api_boundary
def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """Return each leaf once for each device, along a new leading axis, as `pmap` takes it.

    >>> import accnp as jax
    >>> jax.device_put_replicated(1.0, jax.devices()[:1]).shape
    (1,)
    """
    count = len(devices)
    if not count:
        raise ValueError(
            "device_put_replicated: devices must name one at least; got none; pass jax.devices()"
        )

    def copies(leaf: Any) -> Array:
        leaf = asarray(leaf)
        return broadcast_to(leaf, (count, *leaf.shape))

    return tree_map(copies, x)


@api_boundary
def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Return the shards, trees of one structure, stacked along a new leading axis.

    >>> import accnp as jax
    >>> jax.device_put_sharded([[1, 2]], jax.devices()[:1])[0].shape
    (1,)
    """
    if len(shards) != len(devices):
        raise ValueError(
            f"device_put_sharded: as many shards as devices are needed; got {len(shards)} and "
            f"{len(devices)}; pass one shard for each device"
        )
    return tree_map(lambda *leaves: stack([asarray(v) for v in leaves]), *shards)


@api_boundary
def shuffle(key: Any, x: Any, axis: int = 0) -> Array:
    """Return the elements of each line of an axis in an order of its own.

    >>> import accnp as jax
    >>> jax.random.shuffle(jax.random.key(0), jax.numpy.arange(3)).shape
    (3,)
    """
    return permutation(key, x, axis, independent=True)
