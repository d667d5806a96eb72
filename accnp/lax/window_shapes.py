"""Positions of windows over an array: named padding, strides, dilations, and result shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.api.arguments.shapes import as_int, as_shape
from accnp.errors import api_boundary
from accnp.ir.node import Node, literal
from accnp.ir.op import o
from accnp.primitives.kinds import dtype_kind
from accnp.primitives.windows import dilated_length, pads_of

__all__ = ["Windows", "padtype_to_pads", "reduce_window_shape_tuple"]


class Windows:
    """The positions of windows over an array: sizes, strides, padding and dilations by axis."""

    def __init__(
        self,
        shape: Sequence[int],
        window: Any,
        strides: Any,
        padding: Any,
        base_dilation: Any,
        window_dilation: Any,
    ) -> None:
        rank = len(shape)
        self.window = _expand_to_rank("window_dimensions", window, rank)
        self.strides = _expand_to_rank("window_strides", strides, rank)
        self.base = _expand_to_rank("base_dilation", base_dilation, rank)
        self.dilation = _expand_to_rank("window_dilation", window_dilation, rank)
        wide = [dilated_length(n, d) for n, d in zip(shape, self.base, strict=True)]
        spans = [dilated_length(n, d) for n, d in zip(self.window, self.dilation, strict=True)]
        if isinstance(padding, str):
            # As in JAX, padding is computed for the array without base dilation.
            padding = padtype_to_pads(shape, spans, self.strides, padding)
        self.pads = [_pair(p) for p in padding]
        if len(self.pads) != rank:
            raise ValueError(
                f"lax.reduce_window: padding needs a pair (low, high) for each axis; got "
                f"{self.pads} for shape {tuple(shape)}; pass one for each axis"
            )
        self.out = tuple(
            max(0, (n + low + high - span) // stride + 1)
            for n, (low, high), span, stride in zip(
                wide, self.pads, spans, self.strides, strict=True
            )
        )

    @property
    def params(self) -> dict[str, Any]:
        """Return the parameters of the ops that reduce windows."""
        return {
            "window_dimensions": self.window,
            "window_strides": self.strides,
            "padding": tuple(self.pads),
            "base_dilation": self.base,
            "window_dilation": self.dilation,
        }

    @property
    def padded(self) -> bool:
        """Whether windows contain positions without an element of the array."""
        return any(p != (0, 0) for p in self.pads) or any(d != 1 for d in self.base)

    def fill(self, x: Node, value: Any) -> Node:
        """Pad the array with a value at all positions without an element."""
        if not self.padded:
            return x
        pads = zip(self.pads, self.base, strict=True)
        config = tuple((low, high, d - 1) for (low, high), d in pads)
        if dtype_kind(x.aval.dtype) in "fc":
            value = float(value) if dtype_kind(x.aval.dtype) == "f" else complex(value)
        return o.pad(x, literal(value, x.aval.dtype, False), padding_config=config)


def _expand_to_rank(name: str, values: Any, rank: int) -> tuple[int, ...]:
    if values is None and name != "window_dimensions":
        return (1,) * rank
    if values is None:
        raise TypeError(f"lax.reduce_window: {name} must be integers; got None; pass {rank} sizes")
    sizes = tuple([as_int(v, "lax.reduce_window", f"each of {name}") for v in values])
    if len(sizes) != rank:
        raise TypeError(
            f"lax.reduce_window: {name} needs one entry for each axis; got {sizes} for an array of "
            f"rank {rank}; pass one for each axis"
        )
    if any(v < 1 for v in sizes):
        raise TypeError(f"lax.reduce_window: {name} must be positive; got {sizes}; pass 1 or more")
    return sizes


def _pair(padding: Any) -> tuple[int, int]:
    low, high = (as_int(v, "lax.reduce_window", "each padding") for v in padding)
    return low, high


@api_boundary
def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Return the padding of each axis that a name stands for.

    Parameters
    ----------
    in_shape : sequence of int
        Lengths of the axes of the array.
    window_shape : sequence of int
        Size of the window along each axis.
    window_strides : sequence of int
        Distance between windows along each axis.
    padding : str
        "SAME", "SAME_LOWER" or "VALID".

    Returns
    -------
    list of (int, int)
        Number of elements to add before and after each axis.

    Raises
    ------
    ValueError
        If the padding is unknown, the numbers of axes differ, or a stride is 0.

    See Also
    --------
    reduce_window, conv_general_dilated : Functions that accept these names.

    Notes
    -----
    "SAME" makes ceil(size / stride) windows. If the number of added elements is odd, the additional
    one is after the axis, with "SAME_LOWER" before it.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    name = "lax.padtype_to_pads"
    kind = padding.upper() if isinstance(padding, str) else ""
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise ValueError(
            f"{name}: padding must be 'VALID', 'SAME', 'SAME_LOWER' got {padding!r}; "
            "pass one of these"
        )
    sizes, window, strides = (as_shape(s, name) for s in (in_shape, window_shape, window_strides))
    if not len(sizes) == len(window) == len(strides) or not all(strides):
        raise ValueError(
            f"{name}: sizes, windows and positive strides must have one entry for each axis; "
            f"got {sizes}, {window} and {strides}; pass one for each axis"
        )
    return pads_of(sizes, window, strides, kind)


@api_boundary
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return the shape of the result of `reduce_window`.

    Parameters
    ----------
    operand_shape : sequence of int
        Lengths of the axes of the array.
    window_dimensions : sequence of int
        Size of the window along each axis.
    window_strides : sequence of int or None
        Distance between windows along each axis. None means 1.
    padding : str or sequence of (int, int)
        Name of a padding, or how many places to add before and after each axis.
    base_dilation : sequence of int, optional
        Distance between the elements of the array. The default is 1.
    window_dilation : sequence of int, optional
        Distance between the elements of a window. The default is 1.

    Returns
    -------
    tuple of int
        Number of windows along each axis; 0 if none fits.

    Raises
    ------
    TypeError
        If there is not one positive number for each axis.
    ValueError
        If the padding is unknown, or does not have one pair for each axis.

    See Also
    --------
    reduce_window : Reduce each window of an array.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.reduce_window_shape_tuple((5, 6), (2, 2), (1, 2), "VALID")
    (4, 3)
    """
    where = window_dimensions, window_strides, padding, base_dilation, window_dilation
    return Windows(operand_shape, *where).out
