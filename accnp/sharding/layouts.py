"""Memory layouts: `Layout`, and `Format`, which pairs a layout with a sharding.

accnp's arrays are always contiguous and row-major, so other layouts raise an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.pytree import PyTree, tree_map

__all__ = ["Format", "Layout", "format_of", "with_layout_constraint"]


@dataclass(frozen=True)
class Layout:
    """Order of the axes of an array in memory, from the slowest to the fastest.

    Parameters
    ----------
    major_to_minor : tuple of int
        Axes, the one with the largest stride first.
    tiling : tuple of tuple of int, optional
        Tiles on other devices; stored without effect.
    sub_byte_element_size_in_bits : int, optional
        Size of packed elements on other devices; stored without effect.

    Raises
    ------
    TypeError
        If the axes are not a sequence.
    NotImplementedError
        From `device_put`, if the order is not row-major.

    Examples
    --------
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
        """Raise NotImplementedError for any order but row-major."""
        if self.major_to_minor != tuple(range(len(shape))):
            raise NotImplementedError(
                f"{function}: arrays are always row-major; got {self} for shape "
                f"{tuple(shape)}; leave the layout out, or transpose the array"
            )


@dataclass(frozen=True)
class Format:
    """Pair of a layout and a sharding, as a target of `device_put`.

    Parameters
    ----------
    layout : Layout, optional
        Order of axes in memory. The default, None, is row-major.
    sharding : Sharding, optional
        Placement on devices, which `device_put` applies.

    Raises
    ------
    NotImplementedError
        From `device_put`, if the layout is not row-major.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.layout import Format, Layout
    >>> place = Format(Layout((0,)), jnp.ones(2).sharding)
    >>> jnp.device_put(jnp.arange(2), place).format.layout.major_to_minor
    (0,)
    """

    layout: Layout | None = None
    sharding: Any = None

    def placed(self, shape: tuple[int, ...], function: str) -> Any:
        """Return the devices of an array of this shape, in the form that avals store."""
        if self.layout is not None:
            self.layout.check(shape, function)
        return None if self.sharding is None else self.sharding.placed(shape, function)


def format_of(x: Array) -> Format:
    """Return the layout and sharding of an array.

    Example:
        >>> import accnp as jnp
        >>> jnp.zeros((2, 3)).format.layout.major_to_minor
        (0, 1)
    """
    return Format(Layout(tuple(range(x.ndim)), ()), x.sharding)


@api_boundary
def with_layout_constraint(x: PyTree, layouts: PyTree) -> Any:
    """Return a pytree of arrays unchanged, after checking that the layout is row-major.

    Parameters
    ----------
    x : pytree of array_like
        Values whose layouts to check.
    layouts : Layout or pytree of Layout
        Layout of all arrays, or one for each.

    Returns
    -------
    pytree of Array
        The values of `x`.

    Raises
    ------
    NotImplementedError
        If a layout is not row-major.

    See Also
    --------
    device_put : Put arrays on a device.

    Examples
    --------
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
