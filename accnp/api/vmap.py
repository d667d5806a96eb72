"""`vmap`: trace a function for one example, record it for many. Pytrees in, graphs down."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.convert import as_node, wrap
from accnp.ir.aval import make_aval
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.pytree import broadcast_prefix, leaf_names, tree_flatten, tree_structure, tree_unflatten
from accnp.trace_fn import trace
from accnp.transforms.axes import bind
from accnp.transforms.batch import batched_outputs, spread
from accnp.transforms.tools import TOOLS, Tools

__all__ = ["argument_names", "move_axis", "vmap"]


def _is_none(x: Any) -> bool:
    return x is None


def move_axis(x: Node, source: int, target: int) -> Node:
    """Move one axis of a node."""
    if source == target:
        return x
    order = [d for d in range(x.aval.ndim) if d != source]
    order.insert(target, source)
    return o.transpose(x, permutation=tuple(order))


def argument_names(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """Name each leaf of a call's arguments as a user writes it: `x`, `params['w'][0]`."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for i, value in enumerate(args):
        root = f"args[{i}]"
        if i < len(parameters) and parameters[i].kind is not parameters[i].VAR_POSITIONAL:
            root = parameters[i].name
        elif parameters and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL:
            root = f"{parameters[-1].name}[{i - len(parameters) + 1}]"
        names += leaf_names(value, root)
    for key in sorted(kwargs):
        names += leaf_names(kwargs[key], key)
    return names


def _in_axes(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the axis of each leaf; keyword arguments are mapped along their leading axis."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            "positional "
            f"arguments passed to the function, but got {len(in_axes)=}, {len(args)=}"
        )
    try:
        axes = broadcast_prefix(in_axes, args, _is_none, "vmap in_axes")
    except ValueError as error:
        raise ValueError(
            f"vmap in_axes specification must be a tree prefix of the corresponding value, got "
            f"specification {in_axes} for value tree {tree_structure(args)}: {error}"
        ) from None
    for axis in axes:
        if axis is not None and not isinstance(axis, int):
            raise TypeError(
                "vmap in_axes must be an int, None, or (nested) container with those types as "
                "leaves, "
                f"but got {in_axes}."
            )
    return axes + [0] * tree_structure(kwargs).num_leaves


def _size(nodes: list[Node], axes: list[Any], names: list[str], axis_size: int | None) -> int:
    """Return the length of the mapped axes, and refuse them if they differ."""
    sizes: dict[int, list[str]] = {}
    for x, axis, name in zip(nodes, axes, names, strict=True):
        if axis is None:
            continue
        shape = x.aval.shape
        if not -len(shape) <= axis < len(shape):
            need = axis + 1 if axis >= 0 else -axis
            raise ValueError(
                f"vmap was requested to map its argument along axis {axis}, which implies that "
                "its rank "
                f"should be at least {need}, but is only {len(shape)} (its shape is {shape})"
            )
        sizes.setdefault(shape[axis], []).append(f"{name} of shape {shape} (axis {axis})")
    if axis_size is not None:
        sizes.setdefault(axis_size, []).append("the argument axis_size")
    if not sizes:
        raise ValueError("vmap must have at least one non-None value in in_axes")
    if len(sizes) > 1:
        lines = "\n".join(f"  * {n}: {', '.join(who)}" for n, who in sizes.items())
        raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped:\n{lines}")
    return next(iter(sizes))


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[..., Any]:
    """Return `fun` for many examples at once: arguments and results get a mapped axis.

    Args:
        fun: a function of one example.
        in_axes: the mapped axis of each argument, or None; an int, or a tuple of tree prefixes.
        out_axes: where the mapped axis goes in the results; None where they do not depend on it.
        axis_name: a name for the mapped axis.
        axis_size: its length, needed where no argument is mapped.
        spmd_axis_name: accepted for jax's sake.
        sum_match: accepted for jax's sake.

    Example:
        >>> import accnp as jnp
        >>> jnp.vmap(jnp.dot, (0, None))(jnp.ones((2, 3)), jnp.arange(3.0))
        Array([3., 3.], dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if in_axes is not None and not isinstance(in_axes, int | tuple):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            "positional "
            f"arguments passed to the function, but got {in_axes}."
        )

    @functools.wraps(fun)
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        axes = _in_axes(in_axes, args, kwargs)
        mapped = [i for i, axis in enumerate(axes) if axis is not None]
        every = argument_names(fun, args, kwargs)
        names = [every[i] for i in mapped]
        nodes = [as_node(leaves[i], "vmap") for i in mapped]
        along = [axes[i] for i in mapped]
        size = _size(nodes, along, names, axis_size)
        xs = [move_axis(x, axis % x.aval.ndim, 0) for x, axis in zip(nodes, along, strict=True)]
        avals = [make_aval(x.aval.shape[1:], x.aval.dtype, x.aval.weak_type) for x in xs]
        out_tree: list[Any] = []

        def one(examples: list[Node]) -> list[Node]:
            # What is not mapped is handed on as it is; it may be no array at all.
            whole = list(leaves)
            for i, x in zip(mapped, examples, strict=True):
                whole[i] = wrap(x)
            some_args, some_kwargs = tree_unflatten(tree, whole)
            found, structure = tree_flatten(fun(*some_args, **some_kwargs))
            out_tree.append(structure)
            return [as_node(x, "vmap") for x in found]

        with bind(axis_name, size):
            graph = trace(one, avals, of=fun, transform="vmap", names=names)
        tools = TOOLS if axis_name is None else Tools(axis_name)
        pairs = batched_outputs(graph, xs, [True] * len(xs), size, tools)
        return _results(pairs, out_tree[0], out_axes, size)

    return vmapped


def _results(pairs: Sequence[tuple[Node, bool]], tree: Any, out_axes: Any, size: int) -> Any:
    whole = tree_unflatten(tree, [0] * len(pairs))
    if isinstance(out_axes, list) and isinstance(whole, tuple):
        out_axes = tuple(out_axes)
    try:
        axes = broadcast_prefix(out_axes, whole, _is_none, "vmap out_axes")
    except ValueError as error:
        raise ValueError(
            "vmap out_axes specification must be a tree prefix of the corresponding value, got "
            f"specification {out_axes} for value tree {tree}: {error}"
        ) from None
    out = []
    for (x, batched), axis in zip(pairs, axes, strict=True):
        if axis is None:
            if batched:
                raise ValueError(
                    "vmap has mapped output but out_axes is None: a result depends on the mapped "
                    "axis; "
                    f"got a value of shape {x.aval.shape[1:]} for each example; give its place in "
                    "out_axes"
                )
            out.append(wrap(x))
            continue
        x = spread(x, batched, size)
        rank = x.aval.ndim
        if not -rank <= axis < rank:
            raise ValueError(
                f"axis {axis} is out of bounds for array of dimension {rank} (vmap "
                f"out_axes={out_axes})"
            )
        out.append(wrap(move_axis(x, 0, axis % rank)))
    return tree_unflatten(tree, out)
