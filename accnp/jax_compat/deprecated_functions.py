"""Functions that JAX has removed or deprecated, composed of current ones.

Programs written for older versions of JAX still call them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.numpy.creation import asarray
from accnp.numpy.joining import stack
from accnp.numpy.manipulation import broadcast_to
from accnp.pytree import tree_map
from accnp.random.basic_samplers import permutation

__all__ = ["device_put_replicated", "device_put_sharded", "shuffle"]


@api_boundary
def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """Stack one copy of each leaf for each device, as an argument of `pmap`.

    Parameters
    ----------
    x : pytree of array_like
        Leaves to replicate, of any shape.
    devices : sequence of Device
        Devices, which are only counted.

    Returns
    -------
    pytree of Array
        Leaves with a new leading axis as long as `devices`.

    Raises
    ------
    ValueError
        If `devices` is empty.

    See Also
    --------
    device_put : Put arrays on a device, which replaces this function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.device_put_replicated(1.0, jax.devices()[:1]).shape
    (1,)
    """
    count = len(devices)
    if not count:
        raise ValueError(
            "device_put_replicated: devices must not be empty; got none; pass jax.devices()"
        )

    def copies(leaf: Any) -> Array:
        leaf = asarray(leaf)
        return broadcast_to(leaf, (count, *leaf.shape))

    return tree_map(copies, x)


@api_boundary
def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Stack pytrees, one for each device, as an argument of `pmap`.

    Parameters
    ----------
    shards : sequence of pytree of array_like
        Pytrees of one structure, one for each device.
    devices : sequence of Device
        Devices, which are only counted.

    Returns
    -------
    pytree of Array
        Leaves stacked along a new leading axis.

    Raises
    ------
    ValueError
        If the numbers of shards and devices differ, or the pytrees differ in structure.

    See Also
    --------
    device_put : Put arrays on a device, which replaces this function.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.device_put_sharded([[1, 2]], jax.devices()[:1])[0].shape
    (1,)
    """
    if len(shards) != len(devices):
        raise ValueError(
            f"device_put_sharded: shards and devices must be equally many; got {len(shards)} and "
            f"{len(devices)}; pass one shard for each device"
        )
    return tree_map(lambda *leaves: stack([asarray(v) for v in leaves]), *shards)


@api_boundary
def shuffle(key: Any, x: Any, axis: int = 0) -> Array:
    """Shuffle the elements along an axis, each slice independently.

    Parameters
    ----------
    key : Array
        PRNG key, typed or raw.
    x : array_like
        Array whose elements are shuffled.
    axis : int, optional
        Axis along which to shuffle. The default is 0.

    Returns
    -------
    Array
        Shuffled array, with the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `key` is not a PRNG key.

    See Also
    --------
    permutation : The function that replaces this one.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.random.shuffle(jax.random.key(0), jax.numpy.arange(3)).shape
    (3,)
    """
    return permutation(key, x, axis, independent=True)
