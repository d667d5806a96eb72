"""Saying within a program where values lie. The devices share their memory: nothing is moved."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

from accnp.api.placement import is_place, put_tree

__all__ = ["placed", "reshard", "with_sharding_constraint"]


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Say within a program how values lie on devices.

    Args:
        x: a tree of arrays.
        shardings: a sharding, a `PartitionSpec` over the mesh in use, or a tree prefix of these.

    Raises:
        ValueError: there is no mesh in use, or an axis cannot be cut evenly.

    Example:
        >>> import accnp as jnp
        >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
        >>> jnp.jit(lambda x: jnp.lax.with_sharding_constraint(x * 2, s))(jnp.ones(2)).sharding.spec
        P('x',)
    """
    return put_tree("with_sharding_constraint", x, shardings)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Lay arrays on devices in another way, anywhere: `with_sharding_constraint` by another name.

    Example:
        >>> import accnp as jnp
        >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
        >>> jnp.reshard(jnp.arange(2), s).sharding.spec
        P('x',)
    """
    return put_tree("reshard", xs, out_shardings)


def placed(
    fun: Callable[..., Any], in_shardings: Any, out_shardings: Any, static: Collection[int]
) -> Callable[..., Any]:
    """Make a function whose arguments and results lie as asked for.

    Args:
        fun: the function.
        in_shardings: for the positional arguments that are not static; a tree prefix, or None.
        out_shardings: for the results, likewise.
        static: positions of static arguments.
    """

    @functools.wraps(fun)
    def inner(*args: Any, **kwargs: Any) -> Any:
        if in_shardings is not None:
            moving = [i for i in range(len(args)) if i not in static]
            values = tuple([args[i] for i in moving])
            one = is_place(in_shardings)
            places = (in_shardings,) * len(values) if one else tuple(in_shardings)
            if len(places) != len(values):
                raise ValueError(
                    "jit: in_shardings must have an entry for each positional argument; got "
                    f"{len(places)} for {len(values)}"
                )
            found = list(args)
            for i, v in zip(moving, put_tree("jit", values, places), strict=True):
                found[i] = v
            args = tuple(found)
        out = fun(*args, **kwargs)
        return out if out_shardings is None else put_tree("jit", out, out_shardings)

    return inner
