"""Functions for use inside `shard_map` that state along which mesh axes a value varies."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from accnp.api.arguments.convert import as_node, wrap
from accnp.errors import api_boundary
from accnp.ir.trace import state
from accnp.lax.parallel.reductions import axis_names
from accnp.pytree import PyTree, map_arrays
from accnp.transforms.axes import size_of

__all__ = ["pcast", "pvary"]


@api_boundary
def pvary(x: Any, axis_name: Any) -> Any:
    """Mark values as varying along mapped axes.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}

    Returns
    -------
    pytree
        The same values, with their shapes and dtypes.

    Raises
    ------
    {raises_axis_name}

    See Also
    --------
    pcast : The general form.
    shard_map : Map a function over the parts of arrays.

    Notes
    -----
    The derivative of a varying value is that of one part of it.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.vmap(lambda x: jnp.lax.pvary(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    names = axis_names(axis_name)
    for name in names:
        size_of(name)
    if state.varying is None:
        return x
    return map_arrays(lambda leaf: wrap(state.varying.spread(as_node(leaf, "pvary"), names)), x)


@api_boundary
def pcast(x: PyTree, axis_name: Hashable, *, to: str) -> Any:
    """Declare whether values vary along mapped axes.

    Parameters
    ----------
    {x_mapped}
    {axis_name_or_names}
    to : str
        "varying". To get a value that does not vary, reduce it, for example by `psum`.

    Returns
    -------
    pytree
        The same values, with their shapes and dtypes.

    Raises
    ------
    {raises_axis_name}
    ValueError
        If `to` is not "varying".

    See Also
    --------
    pvary : The same with "varying".
    psum : Reduce varying values.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = lambda x: jnp.lax.pcast(x, "i", to="varying")
    >>> jnp.vmap(f, axis_name="i")(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if to != "varying":
        raise ValueError(f"pcast: to must be 'varying'; got {to!r}; reduce with psum or pmean")
    return pvary(x, axis_name)
