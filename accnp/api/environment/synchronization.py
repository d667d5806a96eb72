"""Functions that wait for pending arrays or callbacks, or copy arrays to the host.

They are public names of `accnp` and take pytrees of arrays. The module also has `counters`, which
returns how many traces, compilations and launches the process has made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp import engine, pytree
from accnp.array_type import Array, is_traced
from accnp.compiler.cache_state import counters as kernels
from accnp.errors import api_boundary, hide_frames
from accnp.key_array import PRNGKeyArray
from accnp.pytree import PyTree, tree_leaves
from accnp.runtime.stream import default_stream
from accnp.trace_fn import counters as traces

__all__ = [
    "block_until_ready", "copy_to_host_async", "counters", "device_get", "effects_barrier",
]  # fmt: skip


def block_until_ready(x: PyTree) -> Any:
    """Wait until every array of a pytree is computed, and return the pytree.

    Parameters
    ----------
    x : pytree
        Arrays of any shape and dtype. Other leaves are ignored.

    Returns
    -------
    pytree
        `x` itself.

    Raises
    ------
    JaxRuntimeError
        If a callback that the arrays depend on failed.

    See Also
    --------
    effects_barrier : Wait for callbacks.
    copy_to_host_async : Start the computation without waiting.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.block_until_ready({"a": jnp.ones(2)})
    {'a': Array([1., 1.], dtype=float32)}
    """
    try:
        return x.block_until_ready() if type(x) is Array else _block_until_all_ready(x)
    except Exception as error:
        hide_frames(error)
        raise


def _block_until_all_ready(x: Any) -> Any:
    """Wait for all leaves of a pytree. The pending arrays are computed together, not one by one."""
    late = [
        leaf
        for leaf in tree_leaves(x)
        if type(leaf) is not Array or not engine.is_ready(leaf._node)
    ]
    nodes = [x._node for x in late if type(x) is Array and not is_traced(x._node)]
    if nodes:
        engine.materialize(nodes)
    for leaf in late:
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


@api_boundary
def copy_to_host_async(x: PyTree) -> Any:
    """Start computing every array of a pytree without waiting.

    Parameters
    ----------
    x : pytree
        Arrays of any shape and dtype. Other leaves are ignored.

    Returns
    -------
    pytree
        `x` itself.

    See Also
    --------
    block_until_ready : Wait for the arrays.
    device_get : Copy arrays to NumPy.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.copy_to_host_async(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    for leaf in tree_leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


@api_boundary
def device_get(x: PyTree) -> Any:
    """Copy the arrays of a pytree to NumPy arrays of the same shape and dtype.

    Parameters
    ----------
    x : pytree
        Arrays to copy from their devices.

    Returns
    -------
    pytree
        The same structure with NumPy arrays as leaves. PRNG keys, which NumPy does not have, traced
        arrays, which have no value yet, and other leaves are returned as they are.

    Raises
    ------
    RuntimeError
        If an array has been deleted or donated, or the computation of its value failed.

    See Also
    --------
    device_put : Transfer to a device.
    block_until_ready : Wait without copying.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.device_get(jnp.ones(2))
    array([1., 1.], dtype=float32)
    """

    def to_numpy(leaf: Any) -> Any:
        if isinstance(leaf, PRNGKeyArray) or (type(leaf) is Array and is_traced(leaf._node)):
            return leaf
        return np.asarray(leaf) if hasattr(leaf, "__array__") else leaf

    return pytree.tree_map(to_numpy, x)


@api_boundary
def effects_barrier() -> None:
    """Wait until all callbacks recorded so far have run.

    Raises
    ------
    JaxRuntimeError
        If a callback failed, and its error was not raised before.

    See Also
    --------
    block_until_ready : Wait for arrays.
    debug.callback : Record a callback.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.effects_barrier()
    """
    default_stream().synchronize()


def counters() -> dict[str, int]:
    """Return how often functions were traced, and kernels compiled, loaded and launched.

    Returns
    -------
    dict
        Counts since the start of the process: `traces` of functions, `compiles` of kernels,
        `disk_hits` (kernels loaded from the cache on disk), `kernels` (the sum of these two) and
        `launches` of kernels.

    See Also
    --------
    explain : Explain one call.
    monitoring.register_event_listener : Receive events.

    Examples
    --------
    >>> import accnp as jnp
    >>> sorted(jnp.counters())
    ['compiles', 'disk_hits', 'kernels', 'launches', 'traces']
    """
    counts = kernels.as_dict()
    return {
        "traces": traces["traces"],
        "compiles": counts["compiles"],
        "disk_hits": counts["disk_hits"],
        "launches": counts["launches"],
        "kernels": counts["compiles"] + counts["disk_hits"],
    }
