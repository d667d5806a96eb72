"""How the elements of an array lie in memory: `Layout`, and `Format`, which has the devices, too.

In: arrays. Out: row by row, always: what is computed is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accnp.array import Array
from accnp.errors import api_boundary
from accnp.pytree import tree_map

__all__ = ["Format", "Layout", "format_of", "with_layout_constraint"]


@dataclass(frozen=True)
class Layout:
    """The axes of an array from the slowest to the fastest one in memory."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0


@dataclass(frozen=True)
class Format:
    """A layout and a sharding."""

    layout: Layout | None = None
    sharding: Any = None


def format_of(x: Array) -> Format:
    """How an array lies in memory and on devices.

    Example:
        >>> import accnp as jnp
        >>> jnp.zeros((2, 3)).format.layout.major_to_minor
        (0, 1)
    """
    return Format(Layout(tuple(range(x.ndim)), ()), x.sharding)


@api_boundary
def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """The tree of arrays as it is, if its layouts are rows by rows.

    Raises:
        NotImplementedError: another layout is asked for.
    """

    def check(leaf: Any, layout: Any) -> Any:
        if tuple(layout.major_to_minor) != tuple(range(leaf.ndim)):
            raise NotImplementedError(
                "with_layout_constraint: arrays lie row by row; got "
                f"{layout.major_to_minor}; transpose the array"
            )
        return leaf

    return (
        tree_map(check, x, layouts)
        if not isinstance(layouts, Layout)
        else tree_map(lambda leaf: check(leaf, layouts), x)
    )
