"""`accnp.experimental.multihost_utils`: agreement of several processes. There is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.api.arrays.placement import put_tree
from accnp.api.sharding.specs import NamedSharding, PartitionSpec
from accnp.missing import install_getattr as _install_getattr
from accnp.pytree import broadcast_prefix, tree_flatten, tree_leaves, tree_map

__all__ = [
    "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "host_local_array_to_global_array", "process_allgather", "sync_global_devices",
]  # fmt: skip


def sync_global_devices(name: str) -> None:
    """Wait for the other processes: there are none.

    There is nothing that could fail: no errors.

    Example:
        >>> from accnp.experimental import multihost_utils
        >>> multihost_utils.sync_global_devices("start")
    """


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Gather the values of all processes, as NumPy arrays.

    Args:
        in_tree: a tree of arrays.
        tiled: join them along their first axis; otherwise along a new one, of length 1 here.

    Shapes grow by that axis, dtypes stay. No error can come from a transfer: there is one process.

    Example:
        >>> from accnp.experimental import multihost_utils
        >>> multihost_utils.process_allgather(np.arange(2)).tolist()
        [[0, 1]]
    """
    return tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Give all processes the values of one, as NumPy arrays.

    Args:
        in_tree: a tree of arrays.
        is_source: whether this process has them: it does.

    Raises:
        ValueError: no process has them.

    Example:
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
    """Check that all processes have the same values: there is one.

    Example:
        >>> from accnp.experimental import multihost_utils
        >>> multihost_utils.assert_equal(np.arange(2))
    """
    tree_leaves(in_tree)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Make arrays over a mesh of the parts that this process has, which are the whole.

    Args:
        local_inputs: a tree of arrays.
        global_mesh: the mesh.
        pspecs: a tree prefix of `PartitionSpec`s.

    Shapes and dtypes stay. A TypeError if the mesh is none, a ValueError if a spec does not fit it.

    Example:
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


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Return the parts of arrays that this process has: all.

    Args:
        global_inputs: a tree of arrays.
        global_mesh, pspecs: as in `host_local_array_to_global_array`.

    Shapes and dtypes stay. A TypeError if the mesh is none, a ValueError if a spec does not fit it.

    Example:
        >>> import accnp as jnp
        >>> from accnp.experimental import multihost_utils
        >>> mesh = jnp.make_mesh((1,), ("x",))
        >>> make = multihost_utils.global_array_to_host_local_array
        >>> make(jnp.arange(2), mesh, jnp.P("x"))
        Array([0, 1], dtype=int32)
    """
    return host_local_array_to_global_array(global_inputs, global_mesh, pspecs)


_install_getattr(__name__, __all__)
