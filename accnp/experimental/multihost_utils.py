"""`accnp.experimental.multihost_utils`: synchronization and broadcasts between processes.

All processes must call these functions, in the same order relative to other operations that
communicate. With one process, the functions return immediately.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.array_type import Array
from accnp.docstrings import filled
from accnp.lazy_imports import imported
from accnp.module_getattr import install_getattr as _install_getattr
from accnp.pytree import PyTree, broadcast_prefix, tree_flatten, tree_leaves, tree_map
from accnp.runtime import device
from accnp.runtime.stream import default_stream
from accnp.sharding.device_placement import device_put, put_tree
from accnp.sharding.partition_specs import NamedSharding, PartitionSpec
from accnp.sharding.shards import make_array_from_process_local_data

__all__ = [
    "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "process_allgather", "sync_global_devices",
]  # fmt: skip


def _connected_world() -> Any:
    """All processes, once what is queued has run; None for one process."""
    if device.process[1] == 1:
        return None
    default_stream().synchronize()
    return imported("accnp.runtime.mpi").world()


def sync_global_devices(name: str) -> None:
    """Wait until all processes have called this.

    Parameters
    ----------
    name : str
        Label of the barrier, for messages.

    See Also
    --------
    block_until_ready : Wait for arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("start")
    """
    world = _connected_world()
    if world is not None:
        world.barrier(name)


def process_allgather(in_tree: PyTree, tiled: bool = False) -> Any:
    """Gather the values of all processes as NumPy arrays.

    Parameters
    ----------
    in_tree : pytree of array_like
        Data of this process to gather, or arrays over all processes.
    tiled : bool, optional
        If True, join the values along their first axis. The default, False, stacks them along a new
        first axis. Arrays over all processes need True, and are returned as a whole.

    Returns
    -------
    pytree of ndarray
        Values of all processes, of the same dtypes.

    Raises
    ------
    ValueError
        If an array over several processes is gathered without `tiled`.

    See Also
    --------
    device_get : Copy arrays to NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.process_allgather(np.arange(2)).tolist()
    [[0, 1]]
    """

    def one(x: Any) -> np.ndarray:
        if isinstance(x, Array) and not x.is_fully_addressable:
            if not tiled:
                raise ValueError(
                    "process_allgather: Gathering global non-fully-addressable arrays only "
                    f"supports tiled=True; got {x!r}; pass tiled=True"
                )
            return np.asarray(device_put(x, NamedSharding(x.sharding.mesh, PartitionSpec())))
        value = np.asarray(x)
        world = _connected_world()
        if world is None:
            return value if tiled else value[None]
        rows = world.gather(value)
        return rows.reshape(-1, *value.shape[1:]) if tiled and value.ndim else rows

    return tree_map(one, in_tree)


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> Any:
    """Send the values of one process to all, as NumPy arrays.

    Parameters
    ----------
    in_tree : pytree of array_like
        Data of the source to send. The other processes pass data of the same shapes and dtypes.
    is_source : bool, optional
        Whether this process has the values. The default is that process 0 does.

    Returns
    -------
    pytree of ndarray
        Values of the source.

    Raises
    ------
    ValueError
        If not exactly one process is the source.

    See Also
    --------
    device_get : Copy arrays to NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all(np.arange(2)).tolist()
    [0, 1]
    """
    source = device.process[0] == 0 if is_source is None else bool(is_source)
    world = _connected_world()
    flags = [source] if world is None else world.gather_objects(source)
    if sum(flags) != 1:
        raise ValueError(
            f"broadcast_one_to_all: one process must be the source; got is_source={flags} of "
            f"{len(flags)} processes; pass True in one of them"
        )
    leaves = tree_map(np.asarray, in_tree)
    if world is None:
        return leaves
    return tree_map(lambda x: world.broadcast(x, flags.index(True)), leaves)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes have the same values.

    Parameters
    ----------
    in_tree : pytree of array_like
        Data to compare.
    fail_message : str, optional
        Text of the error.

    Raises
    ------
    AssertionError
        If the data differ from those of process 0.

    See Also
    --------
    experimental.multihost_utils.process_allgather : Gather values.

    Examples
    --------
    >>> import numpy as np
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.assert_equal(np.arange(2))
    """
    mine = [np.asarray(x) for x in tree_leaves(in_tree)]
    world = _connected_world()
    if world is None:
        return
    shapes = world.gather_objects([(x.shape, x.dtype.str) for x in mine])
    same = all(s == shapes[0] for s in shapes)
    for x in mine if same else ():
        first = world.broadcast(x, 0)
        same = same and bool(np.array_equal(first, x, equal_nan=x.dtype.kind in "fc"))
    verdicts = world.gather_objects(same)
    if not all(verdicts):
        others = [r for r, good in enumerate(verdicts) if not good]
        raise AssertionError(
            f"{fail_message or 'assert_equal'}: the values differ from those of process 0; got "
            f"others in processes {others or 'of other shapes'}; compare them with "
            "process_allgather"
        )


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


@filled
def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Any, pspecs: PyTree) -> Any:
    """Make arrays over a mesh from the parts of each process.

    Parameters
    ----------
    local_inputs : pytree of array_like
        Parts of this process, whose dtypes are kept.
    global_mesh : Mesh
        Devices of all processes.
    pspecs : PartitionSpec or pytree
        Layout of the arrays: a pytree prefix of specs.

    Returns
    -------
    pytree of Array
        Arrays over the mesh.

    Raises
    ------
    {raises_mesh_spec}

    See Also
    --------
    experimental.multihost_utils.global_array_to_host_local_array : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> import numpy as np
    >>> from accnp.experimental import multihost_utils
    >>> mesh = jnp.make_mesh((1,), ("x",))
    >>> make = multihost_utils.host_local_array_to_global_array
    >>> make(jnp.arange(2), mesh, jnp.P("x")).sharding.spec
    P('x',)
    """
    name = "host_local_array_to_global_array"
    specs = broadcast_prefix(pspecs, local_inputs, _is_spec, name)
    leaves, structure = tree_flatten(local_inputs)
    places = [NamedSharding(global_mesh, PartitionSpec() if s is None else s) for s in specs]
    put = [
        put_tree(name, x, s) if s.is_fully_addressable else make_array_from_process_local_data(s, x)
        for x, s in zip(leaves, places, strict=True)
    ]
    return structure.unflatten(put)


@filled
def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Any, pspecs: PyTree
) -> Any:
    """Return the parts of arrays over a mesh that this process has: of one process, all of them.

    Parameters
    ----------
    global_inputs : pytree of array_like
        Arrays over the mesh, whose shapes and dtypes are kept.
    global_mesh : Mesh
        Devices of all processes.
    pspecs : PartitionSpec or pytree
        Layout of the arrays: a pytree prefix of specs.

    Returns
    -------
    pytree of Array
        Arrays of this process.

    Raises
    ------
    {raises_mesh_spec}

    See Also
    --------
    experimental.multihost_utils.host_local_array_to_global_array : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> import numpy as np
    >>> from accnp.experimental import multihost_utils
    >>> mesh = jnp.make_mesh((1,), ("x",))
    >>> make = multihost_utils.global_array_to_host_local_array
    >>> make(jnp.arange(2), mesh, jnp.P("x"))
    Array([0, 1], dtype=int32)
    """
    if not global_mesh.is_multi_process:
        return host_local_array_to_global_array(global_inputs, global_mesh, pspecs)
    specs = broadcast_prefix(pspecs, global_inputs, _is_spec, "global_array_to_host_local_array")
    leaves, structure = tree_flatten(global_inputs)
    places = [NamedSharding(global_mesh, PartitionSpec() if s is None else s) for s in specs]
    put = [device_put(x, s).addressable_data(0) for x, s in zip(leaves, places, strict=True)]
    return structure.unflatten(put)


_install_getattr(__name__, __all__)
