"""How the elements of an array lie in memory: `Layout`, and `Format`, which has the devices, too.

In: arrays. Out: row by row, always: what is computed is contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accnp.array import Array
from accnp.errors import api_boundary
from accnp.pytree import tree_map

__all__ = ["Format", "Layout", "format_of", "with_layout_constraint"]


@dataclass(frozen=True)
class Layout:
    """The axes of an array from the slowest to the fastest one in memory.

    Args:
        major_to_minor: the axes, the slowest first.
        tiling, sub_byte_element_size_in_bits: for other devices; kept.

    A TypeError if the axes are no sequence; `device_put` refuses other orders than that of rows.

    Example:
        >>> from accnp.experimental.layout import Layout
        >>> Layout((0, 1)).major_to_minor
        (0, 1)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))

    def check(self, shape: Sequence[int], function: str) -> None:
        """Refuse any order but that of rows."""
        if self.major_to_minor != tuple(range(len(shape))):
            raise NotImplementedError(
                f"{function}: elements lie in the order of rows; got {self} for shape "
                f"{tuple(shape)}; leave the layout out, or transpose the array"
            )


@dataclass(frozen=True)
class Format:
    """A layout and a sharding. `device_put` follows the sharding.

    Args:
        layout: a `Layout`, or None for rows.
        sharding: a `Sharding`, or None.

    Raises:
        NotImplementedError: `device_put` is asked for another order than that of rows.

    Example:
        >>> import accnp as jnp
        >>> from accnp.experimental.layout import Format, Layout
        >>> place = Format(Layout((0,)), jnp.ones(2).sharding)
        >>> jnp.device_put(jnp.arange(2), place).format.layout.major_to_minor
        (0,)
    """

    layout: Layout | None = None
    sharding: Any = None

    def placed(self, shape: tuple[int, ...], function: str) -> Any:
        """The devices of an array of this shape, as its type has them."""
        if self.layout is not None:
            self.layout.check(shape, function)
        return None if self.sharding is None else self.sharding.placed(shape, function)


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

    Args:
        x: a tree of arrays.
        layouts: a `Layout` for all of them, or a tree of such.

    Raises:
        NotImplementedError: another layout is asked for.

    Example:
        >>> import accnp as jnp
        >>> from accnp.experimental.layout import Layout, with_layout_constraint
        >>> with_layout_constraint(jnp.arange(2), Layout((0,)))
        Array([0, 1], dtype=int32)
    """

    def check(leaf: Any, layout: Layout) -> Any:
        layout.check(leaf.shape, "with_layout_constraint")
        return leaf

    if isinstance(layouts, Layout):
        return tree_map(lambda leaf: check(leaf, layouts), x)
    return tree_map(check, x, layouts)
