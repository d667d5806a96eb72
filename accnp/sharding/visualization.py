"""Tables, as text, that show the devices of each part of an array.

The input is a shape and a sharding, or an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.values import check_callable
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.pytree import PyTree, tree_leaves

__all__ = ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]


def _sharding(name: str, x: Any) -> Any:
    if not hasattr(x, "sharding"):
        raise TypeError(
            f"{name}: an array is needed; got {x!r} of type {type(x).__name__}; "
            "convert it with jnp.asarray"
        )
    return x.sharding


@api_boundary
def inspect_array_sharding(value: PyTree, *, callback: Callable[[Any], None]) -> None:
    """Call a function with the sharding of each array of a pytree, also in traced functions.

    Parameters
    ----------
    value : pytree of array_like
        Arrays, which may be traced.
    callback : callable
        Function that gets the `Sharding`.

    See Also
    --------
    debug.visualize_array_sharding : Print the layout.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.debug.inspect_array_sharding(jnp.ones(2), callback=lambda s: print(s.device_set))
    {CpuDevice(id=0)}
    """
    check_callable("debug.inspect_array_sharding", callback)
    for leaf in tree_leaves(value):
        callback(_sharding("debug.inspect_array_sharding", leaf))


@api_boundary
def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: object = None,
) -> None:
    """Print which devices hold which part of an array of rank 1 or 2.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes of the array.
    sharding : Sharding
        Layout to draw.
    use_color : bool, optional
        Ignored: the picture is plain text.
    scale : float, optional
        Width of the drawing of a whole axis. The default is 1.
    min_width : int, optional
        Smallest width of a part, in characters. The default is 9.
    max_width : int, optional
        Largest width of the picture, in characters. The default is 80.
    color_map : object, optional
        Ignored: the picture is plain text.

    Raises
    ------
    ValueError
        If the shape has another rank.

    See Also
    --------
    debug.visualize_array_sharding : Draw the layout of an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> s = jnp.NamedSharding(jnp.make_mesh((1,), ("x",)), jnp.P("x"))
    >>> jnp.debug.visualize_sharding((4,), s)
    +--------------------+
    |       CPU 0        |
    +--------------------+
    """
    if len(shape) not in (1, 2):
        raise ValueError(
            f"visualize_sharding: arrays of rank 1 and 2 can be drawn; got shape {tuple(shape)}; "
            "reshape it"
        )
    cells: dict[tuple[tuple[int, ...], ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        spans = tuple([s.indices(n)[:2] for s, n in zip(index, shape, strict=True)])
        cells.setdefault(spans, []).append(device)
    rows = sorted({spans[0] for spans in cells}) if len(shape) == 2 else [(0, 1)]
    columns = sorted({spans[-1] for spans in cells})
    texts = [[_names(cells[(r, c) if len(shape) == 2 else (c,)]) for c in columns] for r in rows]
    longest = max(len(t) for line in texts for t in line)
    width = max(min_width, longest + 2, int(scale * max_width / 4 / len(columns)))
    width = max(longest + 2, min(width, max(max_width // len(columns) - 1, 1)))
    rule = "+" + ("-" * width + "+") * len(columns)
    lines = [rule]
    for line in texts:
        lines.append("|" + "".join(t.center(width) + "|" for t in line))
        lines.append(rule)
    print("\n".join(lines))


def _names(devices: Sequence[Any]) -> str:
    return f"{devices[0].platform.upper()} {','.join(str(d.id) for d in devices)}"


@api_boundary
def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Print which devices hold which part of an array.

    Parameters
    ----------
    arr : Array
        Array of rank 1 or 2.
    **kwargs : object
        Options of `visualize_sharding`.

    Raises
    ------
    ValueError
        If the array has another rank.

    See Also
    --------
    debug.visualize_sharding : Draw the layout of a shape.
    debug.inspect_array_sharding : Get the layout inside a traced function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.debug.visualize_array_sharding(jnp.ones((2, 2)))
    +--------------------+
    |       CPU 0        |
    +--------------------+
    """
    where = _sharding("debug.visualize_array_sharding", arr)
    visualize_sharding(arr.shape, where, **kwargs)
