"""`accnp.experimental.layout`: the order of an array's elements in memory. It is the rows' here."""

from __future__ import annotations

from typing import Any

from accnp.missing import nearest

__all__ = ["Format", "Layout"]


class Layout:
    """Which axes vary slowest, first to last.

    Args:
        major_to_minor: the axes, the slowest first.
        tiling, sub_byte_element_size_in_bits: for other devices; kept.

    Example:
        >>> from accnp.experimental.layout import Layout
        >>> Layout((0, 1)).major_to_minor
        (0, 1)
    """

    def __init__(
        self,
        major_to_minor: tuple[int, ...],
        tiling: Any = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = tiling
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.major_to_minor)

    def __repr__(self) -> str:
        return f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling})"


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
        >>> jnp.device_put(jnp.arange(2), place).format.layout
        Layout(major_to_minor=(0,), tiling=None)
    """

    def __init__(self, layout: Any = None, sharding: Any = None) -> None:
        self.layout, self.sharding = layout, sharding

    def placed(self, shape: tuple[int, ...], function: str) -> Any:
        """The devices of an array of this shape, as its type has them."""
        order = getattr(self.layout, "major_to_minor", None)
        if order is not None and order != tuple(range(len(shape))):
            raise NotImplementedError(
                f"{function}: elements lie in the order of rows; got {self.layout} for shape "
                f"{shape}; leave the layout out"
            )
        return None if self.sharding is None else self.sharding.placed(shape, function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


__getattr__ = nearest(__name__, __all__)
