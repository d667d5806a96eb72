"""Sharding constraints within programs, such as `with_sharding_constraint`.

The devices of the host share its memory, so a constraint moves no data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from accnp.array_type import is_traced
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.pytree import PyTree
from accnp.sharding.device_placement import is_place, put_tree
from accnp.sharding.meshes import AbstractMesh, AxisType, Mesh, mesh_in_use, within
from accnp.sharding.partition_specs import NamedSharding

__all__ = ["auto_axes", "explicit_axes", "placed", "reshard", "with_sharding_constraint"]


@api_boundary
def with_sharding_constraint(x: PyTree, shardings: PyTree) -> Any:
    """Declare how values are placed on devices within a program.

    Parameters
    ----------
    x : pytree
        Array or tree of arrays of any shapes and dtypes.
    shardings : Sharding, PartitionSpec or pytree prefix of them
        Placement of the arrays. A PartitionSpec refers to the mesh in use.

    Returns
    -------
    pytree
        The same values, with their shapes and dtypes.

    Raises
    ------
    ValueError
        If no mesh is in use, or an axis cannot be divided evenly.

    See Also
    --------
    device_put : Place arrays outside of programs.
    make_mesh : Arrange devices in a mesh.

    Examples
    --------
    >>> import accnp as jnp
    >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
    >>> jnp.jit(lambda x: jnp.lax.with_sharding_constraint(x * 2, s))(jnp.ones(2)).sharding.spec
    P('x',)
    """
    name = "with_sharding_constraint"
    return put_tree(name, x, _require_shardings(name, shardings), _resolve_mesh)


def _resolve_mesh(sharding: Any, x: Node) -> Any:
    """Within a program an abstract mesh is that of the value, or says nothing where no mesh is in
    use."""
    if not isinstance(getattr(sharding, "mesh", None), AbstractMesh) or not is_traced(x):
        return sharding
    mesh = getattr(getattr(x.aval.devices, "sharding", None), "mesh", mesh_in_use())
    if mesh is None:
        return None
    same = isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple
    return NamedSharding(mesh, sharding.spec) if same else sharding


@api_boundary
def reshard(xs: PyTree, out_shardings: PyTree) -> Any:
    """Change the layout of arrays over devices, also in traced functions.

    Parameters
    ----------
    xs : pytree of array_like
        Values whose shapes and dtypes do not change.
    out_shardings : sharding, PartitionSpec or pytree
        New layout of all arrays, or a pytree prefix with one for each.

    Returns
    -------
    pytree of Array
        Arrays with the new layout.

    Raises
    ------
    ValueError
        If the sharding is unknown, no mesh is in use, or an axis cannot be divided evenly.
    TypeError
        If a leaf is not an array.

    See Also
    --------
    lax.with_sharding_constraint : The same function under another name.
    device_put : Put arrays on devices.

    Examples
    --------
    >>> import accnp as jnp
    >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
    >>> jnp.reshard(jnp.arange(2), s).sharding.spec
    P('x',)
    """
    return put_tree("reshard", xs, _require_shardings("reshard", out_shardings))


def _require_shardings(function: str, shardings: Any) -> Any:
    if shardings is None:
        raise ValueError(f"{function}: a sharding is needed; got None; pass one, or a tree of them")
    return shardings


def _make_axis_type_function(
    function: str, f: Callable[..., Any] | None, kind: AxisType, axes: Any, ins: Any, outs: Any
) -> Any:
    if f is None:
        return lambda g: _make_axis_type_function(function, g, kind, axes, ins, outs)

    @functools.wraps(f)
    @api_boundary
    def inner(*args: Any, **kwargs: Any) -> Any:
        mesh = mesh_in_use()
        if mesh is None or mesh.empty:
            raise ValueError(f"{function}: there is no mesh in use; got None; use set_mesh")
        names = mesh.axis_names if axes is None else _as_axis_tuple(axes)
        wrong = [n for n in names if n not in mesh.axis_names]
        if wrong:
            raise ValueError(
                f"{function}: axes must be axes of the mesh; got {wrong} for {mesh.axis_names}; "
                "use names of the mesh"
            )
        if ins is not None:
            args = put_tree(function, args, ins)
        pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
        types = tuple(kind if n in names else t for n, t in pairs)
        with within(mesh.update(axis_types=types)):
            out = f(*args, **kwargs)
        return out if outs is None else put_tree(function, out, outs)

    return inner


def _as_axis_tuple(axes: Any) -> tuple[Any, ...]:
    return tuple(axes) if isinstance(axes, tuple | list | set | frozenset) else (axes,)


@api_boundary
def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    out_sharding: PyTree = None,
) -> Any:
    """Make a function inside which axes of the current mesh have type Auto.

    Parameters
    ----------
    f : callable, optional
        Function of arrays. Without it, a decorator is returned.
    {mesh_axes}
    out_sharding : PartitionSpec or pytree, optional
        Layout of the results.

    Returns
    -------
    callable
        Function of the same arguments, or a decorator.

    Raises
    ------
    {raises_mesh}

    See Also
    --------
    sharding.explicit_axes : The same for type Explicit.
    sharding.AxisType : Types of mesh axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = jnp.sharding.auto_axes(lambda x: x + 1, out_sharding=jnp.P("x"))
    >>> with jnp.set_mesh(jnp.make_mesh((1,), ("x",))):
    ...     print(f(jnp.arange(2)).sharding.spec)
    P('x',)
    """
    return _make_axis_type_function("auto_axes", f, AxisType.Auto, axes, None, out_sharding)


@api_boundary
def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    in_sharding: PyTree = None,
) -> Any:
    """Make a function inside which axes of the current mesh have type Explicit.

    Parameters
    ----------
    f : callable, optional
        Function of arrays. Without it, a decorator is returned.
    {mesh_axes}
    in_sharding : PartitionSpec or pytree, optional
        Layout of the arguments.

    Returns
    -------
    callable
        Function of the same arguments, or a decorator.

    Raises
    ------
    {raises_mesh}

    See Also
    --------
    sharding.auto_axes : The same for type Auto.
    sharding.AxisType : Types of mesh axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = jnp.sharding.explicit_axes(lambda x: x + 1, in_sharding=(jnp.P("x"),))
    >>> with jnp.set_mesh(jnp.make_mesh((1,), ("x",))):
    ...     print(f(jnp.arange(2)).sharding.spec)
    P('x',)
    """
    return _make_axis_type_function("explicit_axes", f, AxisType.Explicit, axes, in_sharding, None)


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
    @api_boundary
    def inner(*args: Any, **kwargs: Any) -> Any:
        if in_shardings is not None:
            still = {i % len(args) for i in static if args}  # some count from the end
            moving = [i for i in range(len(args)) if i not in still]
            values = tuple([args[i] for i in moving])
            one = is_place(in_shardings)
            places = (in_shardings,) * len(values) if one else tuple(in_shardings)
            if len(places) != len(values):
                raise ValueError(
                    "jit: in_shardings must have an entry for each positional argument; got "
                    f"{len(places)} for {len(values)}; pass one for each, or one for all"
                )
            new_args = list(args)
            for i, v in zip(moving, put_tree("jit", values, places), strict=True):
                new_args[i] = v
            args = tuple(new_args)
        out = fun(*args, **kwargs)
        return out if out_shardings is None else put_tree("jit", out, out_shardings)

    return inner
