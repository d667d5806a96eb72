"""`accnp.experimental.shard_map`: the former location of `shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp.module_getattr import install_getattr as _install_getattr
from accnp.pytree import PyTree
from accnp.sharding.shard_mapping import shard_map as _shard_map

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any], mesh: Any, in_specs: PyTree, out_specs: PyTree, check_rep: bool = True
) -> Any:
    """Map a function over the parts of arrays, one for each device of a mesh.

    The former name of `accnp.shard_map`.

    Parameters
    ----------
    f : callable
        Function of parts, of any dtype.
    mesh : Mesh
        Devices to use.
    in_specs : PartitionSpec or pytree
        How the arguments are divided.
    out_specs : PartitionSpec or pytree
        How the parts of the results are joined.
    check_rep : bool, optional
        Whether to reject results that differ along an axis that `out_specs` does not name. The
        default is True.

    Returns
    -------
    callable
        Function of whole arrays; results have the joined shapes of the parts.

    Raises
    ------
    ValueError
        If an axis cannot be divided evenly, or a spec names an unknown axis.

    See Also
    --------
    accnp.shard_map : Function with more options.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.shard_map import shard_map
    >>> mesh = jnp.make_mesh((1,), ("x",), (jnp.sharding.AxisType.Auto,))
    >>> shard_map(lambda x: x + 1, mesh, jnp.P("x"), jnp.P("x"))(jnp.arange(2))
    Array([1, 2], dtype=int32)
    """
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_install_getattr(__name__, __all__)
