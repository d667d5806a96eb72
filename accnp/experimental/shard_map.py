"""`accnp.experimental.shard_map`: an earlier place of `shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp.api.sharding.mapped import shard_map as _shard_map
from accnp.missing import install_getattr as _install_getattr

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Any:
    """Return a function of whole arrays that runs `f` on the part of each device of a mesh.

    Args:
        f: a function of parts.
        mesh: the mesh.
        in_specs, out_specs: how arguments are cut, and results joined.
        check_rep: `check_vma` of `accnp.shard_map`.

    Errors are those of `accnp.shard_map`; dtypes are those of f, shapes those of its parts, joined.

    Example:
        >>> import accnp as jnp
        >>> from accnp.experimental.shard_map import shard_map
        >>> mesh = jnp.make_mesh((1,), ("x",))
        >>> shard_map(lambda x: x + 1, mesh, jnp.P("x"), jnp.P("x"))(jnp.arange(2))
        Array([1, 2], dtype=int32)
    """
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_install_getattr(__name__, __all__)
