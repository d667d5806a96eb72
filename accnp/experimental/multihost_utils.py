"""`accnp.experimental.multihost_utils`: agreement of several processes. There is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arrays.placement import put_tree
from accnp.api.sharding.specs import NamedSharding, PartitionSpec
from accnp.docstrings import filled
from accnp.missing import install_getattr as _install_getattr
from accnp.pytree import PyTree, broadcast_prefix, tree_flatten, tree_leaves, tree_map

__all__ = [
    "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "process_allgather", "sync_global_devices",
]  # fmt: skip


def sync_global_devices(name: str) -> None:
    """Wait for the other processes, of which there are none.

    Parameters
    ----------
    name : str
        Label of the barrier; not used.

    See Also
    --------
    block_until_ready : Wait for arrays.

    Examples
    --------
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("start")
    """


def process_allgather(in_tree: PyTree, tiled: bool = False) -> Any:
    """Gather the values of all processes, of which there is one, as NumPy arrays.

    Parameters
    ----------
    in_tree : pytree of array_like
        Data of this process to gather.
    tiled : bool, optional
        If True, join the values along their first axis. The default, False, stacks them along a new
        first axis, of length 1.

    Returns
    -------
    pytree of ndarray
        Values of all processes, of the same dtypes.

    See Also
    --------
    device_get : Copy arrays to NumPy.

    Examples
    --------
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.process_allgather(np.arange(2)).tolist()
    [[0, 1]]
    """
    return tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> Any:
    """Send the values of one process to all, as NumPy arrays; there is one process.

    Parameters
    ----------
    in_tree : pytree of array_like
        Data of the source to send.
    is_source : bool, optional
        Whether this process has the values. The default is that it does.

    Returns
    -------
    pytree of ndarray
        Values of the source.

    Raises
    ------
    ValueError
        If no process is the source.

    See Also
    --------
    device_get : Copy arrays to NumPy.

    Examples
    --------
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all(np.arange(2)).tolist()
    [0, 1]
    """
    if is_source is not None and not is_source:
        raise ValueError(
            "broadcast_one_to_all: this process is the only one; got is_source=False; pass True"
        )
    return tree_map(np.asarray, in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes have the same values; there is one process.

    Parameters
    ----------
    in_tree : pytree of array_like
        Data to compare.
    fail_message : str, optional
        Text of the error.

    See Also
    --------
    experimental.multihost_utils.process_allgather : Gather values.

    Examples
    --------
    >>> from accnp.experimental import multihost_utils
    >>> multihost_utils.assert_equal(np.arange(2))
    """
    tree_leaves(in_tree)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


@filled
def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Any, pspecs: PyTree) -> Any:
    """Make arrays over a mesh from the parts of this process, which are the whole.

    Parameters
    ----------
    local_inputs : pytree of array_like
        Parts, whose shapes and dtypes are kept.
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
    put = [put_tree(name, x, s) for x, s in zip(leaves, places, strict=True)]
    return structure.unflatten(put)


@filled
def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Any, pspecs: PyTree
) -> Any:
    """Return the parts of arrays over a mesh that this process has: all of them.

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
    >>> from accnp.experimental import multihost_utils
    >>> mesh = jnp.make_mesh((1,), ("x",))
    >>> make = multihost_utils.global_array_to_host_local_array
    >>> make(jnp.arange(2), mesh, jnp.P("x"))
    Array([0, 1], dtype=int32)
    """
    return host_local_array_to_global_array(global_inputs, global_mesh, pspecs)


_install_getattr(__name__, __all__)
