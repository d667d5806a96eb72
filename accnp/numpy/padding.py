"""`pad`: an array with borders in one of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, numpy_node, scalar_node
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import as_axis, as_static
from accnp.api.arguments.values import to_dtype
from accnp.api.jit.named_calls import shown
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary, not_one_of
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy import reductions as red
from accnp.numpy.functional_programming import apply_along_axis
from accnp.numpy.indexing import gather_axis
from accnp.numpy.manipulation import cut
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to

__all__ = ["pad"]

_OPTIONS = {
    "constant": "constant_values", "linear_ramp": "end_values", "maximum": "stat_length",
    "mean": "stat_length", "minimum": "stat_length", "median": "stat_length",
    "reflect": "reflect_type", "symmetric": "reflect_type", "edge": "", "wrap": "", "empty": "",
}  # fmt: skip


def _pairs(value: Any, rank: int, what: str) -> list[tuple[Any, Any]]:
    """Broadcast a number, a pair or a list of pairs to one (before, after) pair for each axis."""
    value = as_static(value, "jnp.pad")
    if value is None:
        raise TypeError(
            f"jnp.pad: {what} must be a number, a pair, or one pair for each of {rank} axes; "
            "got None; pass one of the three"
        )
    if isinstance(value, list | tuple) and any(type(v) is Array for v in value):
        value = [as_static(v, "jnp.pad") for v in value]
    try:
        whole = np.broadcast_to(np.asarray(value), (rank, 2))
    except ValueError:
        raise ValueError(
            f"jnp.pad: {what} with nd={rank} has unsupported shape {np.shape(value)}; got "
            f"{value!r}; pass a number, a pair, or one pair for each of {rank} axes"
        ) from None
    return [(a.item(), b.item()) for a, b in whole]


def _widths(value: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(value, dict):
        out = [(0, 0)] * rank
        for axis, width in value.items():
            out[as_axis(axis, rank, "jnp.pad")] = _pairs(width, 1, "pad_width")[0]
    else:
        out = _pairs(value, rank, "pad_width")
    for a, b in out:
        if not all(isinstance(v, int) for v in (a, b)):
            raise TypeError(
                f"jnp.pad: pad_width must be integers; got {value!r}; convert them with int()"
            )
        if a < 0 or b < 0:
            raise ValueError(
                f"jnp.pad: index can't contain negative values; got {value!r}; "
                "slice the array instead"
            )
    return out


@moves_elements("array")
@api_boundary
def pad(
    array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any
) -> Array:
    """Extend an array at its borders.

    Parameters
    ----------
    array : array_like
        Array to pad. Lists and tuples are not accepted.
    pad_width : int, pair, sequence of pairs or dict
        Numbers of elements before and after each axis, static: one number for all, one pair for
        all, one pair for each axis, or a dict from axes to these.
    mode : str or callable, optional
        What the new elements are: 'constant' (the default), 'edge', 'reflect', 'symmetric', 'wrap',
        'linear_ramp', 'maximum', 'mean', 'median', 'minimum' or 'empty'. A function gets each
        padded vector, the pair of widths, the axis and the dict of the other keywords, and returns
        the vector with its borders; in NumPy it writes into the vector.
    **kwargs : optional
        Option of the mode: `constant_values`, `end_values` (for 'linear_ramp'), `stat_length` (for
        the statistics) or `reflect_type` ('even' or 'odd').

    Returns
    -------
    Array
        Padded array, with the dtype of `array`.

    Raises
    ------
    TypeError
        If `array` is neither an array nor a number, or a width is not an integer.
    ValueError
        If widths are negative or do not fit, a keyword belongs to another mode, or an axis is
        empty.
    NotImplementedError
        If the mode is unknown.

    See Also
    --------
    lax.pad : Padding between elements as well, and negative padding.
    resize : Repeat the elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.pad(jnp.array([1, 2, 3]), (1, 2), "reflect")
    Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = as_node(array, "jnp.pad")
    if callable(mode):
        widths = _widths(pad_width, x.aval.ndim)
        out = wrap(_constant(x, widths, 0))
        for axis, width in enumerate(widths):
            out = apply_along_axis(mode, axis, out, width, axis, kwargs)
        return out
    if mode not in _OPTIONS:
        raise NotImplementedError(
            f"jnp.pad: unimplemented padding mode {mode!r}; use one of {', '.join(_OPTIONS)}"
        )
    unknown = set(kwargs) - {_OPTIONS[mode]}
    if unknown:
        raise ValueError(
            f"jnp.pad: mode {mode!r} does not accept some arguments; got {unknown}; leave them out"
        )
    widths = _widths(pad_width, x.aval.ndim)
    if not any(any(w) for w in widths):
        return wrap(x)
    option, aval = kwargs.get(_OPTIONS[mode]), x.aval
    if mode in ("constant", "empty"):
        x = _constant(x, widths, 0 if option is None else option)
        return wrap(cast(x, aval.dtype, aval.weak_type))
    for d, (before, after) in enumerate(widths):
        if before or after:
            if x.aval.shape[d] == 0:
                raise ValueError(
                    f"jnp.pad: cannot pad the empty axis {d} with mode {mode!r}; use 'constant'"
                )
            x = _PADDERS[mode](x, d, before, after, option, mode)
    return wrap(cast(x, aval.dtype, aval.weak_type))


@shown("_pad", arrays=2)
def _pad_constant(array: Array, value: Any, widths: tuple[tuple[int, int], ...]) -> Array:
    x = as_node(array, "jnp.pad")
    fill = to_dtype(as_node(value, "jnp.pad"), x.aval.dtype)
    return wrap(o.pad(x, fill, padding_config=tuple([(a, b, 0) for a, b in widths])))


def _constant(x: Node, widths: list[tuple[int, int]], values: Any) -> Node:
    rank, dtype = x.aval.ndim, x.aval.dtype
    if np.ndim(values) == 0:
        return _pad_constant(wrap(x), values, tuple(widths))._node
    if type(values) is Array:
        values = as_static(values, "jnp.pad")
    pairs = _pairs(values, rank, "constant_values")
    for d, ((a, b), (first, last)) in enumerate(zip(widths, pairs, strict=True)):
        for width, value in (((a, 0, 0), first), ((0, b, 0), last)):
            if any(width):
                config = tuple([width if k == d else (0, 0, 0) for k in range(rank)])
                node = to_dtype(as_node(value, "jnp.pad"), dtype)
                x = o.pad(x, node, padding_config=config)
    return x


def _join(before: Node | None, x: Node, after: Node | None, d: int) -> Node:
    parts = [p for p in (before, x, after) if p is not None and p.aval.shape[d]]
    return parts[0] if len(parts) == 1 else o.concatenate(*parts, dimension=d)


def _repeat(x: Node, d: int, count: int) -> Node:
    shape = (*x.aval.shape[:d], count, *x.aval.shape[d + 1 :])
    return broadcast_to(x, shape, tuple(range(x.aval.ndim)))


def _edge(x: Node, d: int, before: int, after: int, option: Any, mode: str) -> Node:
    n = x.aval.shape[d]
    first, last = cut(x, d, 0, 1), cut(x, d, n - 1, n)
    return _join(_repeat(first, d, before), x, _repeat(last, d, after), d)


def _pad_mirrored(x: Node, d: int, before: int, after: int, option: Any, mode: str) -> Node:
    if option not in (None, "even", "odd"):
        raise not_one_of("jnp.pad", "reflect_type", option, (None, "even", "odd"))
    n, skip = x.aval.shape[d], int(mode == "reflect")
    if n - skip == 0:  # a single element repeats
        return _edge(x, d, before, after, None, mode)
    if option == "odd":
        return _pad_odd_reflection(x, d, before, after, skip)
    if max(before, after) > n - skip:
        name: Any = mode
        index = np.pad(np.arange(n), (before, after), mode=name)
        return gather_axis(x, numpy_node(index, "jnp.pad"), d)
    left = o.rev(cut(x, d, skip, skip + before), dimensions=(d,)) if before else None
    right = o.rev(cut(x, d, n - skip - after, n - skip), dimensions=(d,)) if after else None
    return _join(left, x, right, d)


def _pad_odd_reflection(x: Node, d: int, before: int, after: int, skip: int) -> Node:
    """Mirror at the end points: twice the end value minus the mirrored values."""
    while before or after:
        n = x.aval.shape[d]
        a, b = min(before, n - skip), min(after, n - skip)
        first, last = cut(x, d, 0, 1), cut(x, d, n - 1, n)
        left = right = None
        if a:
            mirror = o.rev(cut(x, d, skip, skip + a), dimensions=(d,))
            twice = o.mul(_repeat(first, d, a), like(x, 2))
            left = o.sub(twice, mirror)
        if b:
            mirror = o.rev(cut(x, d, n - skip - b, n - skip), dimensions=(d,))
            right = o.sub(o.mul(_repeat(last, d, b), like(x, 2)), mirror)
        x = _join(left, x, right, d)
        before, after = before - a, after - b
    return x


def _pad_wrapped(x: Node, d: int, before: int, after: int, option: Any, mode: str) -> Node:
    n = x.aval.shape[d]
    if max(before, after) > n:
        index = np.arange(-before, n + after) % n
        return gather_axis(x, numpy_node(index, "jnp.pad"), d)
    left = cut(x, d, n - before, n) if before else None
    return _join(left, x, cut(x, d, 0, after) if after else None, d)


def _ramp(x: Node, d: int, before: int, after: int, option: Any, mode: str) -> Node:
    pairs = _pairs(0 if option is None else option, x.aval.ndim, "end_values")
    n, dtype = x.aval.shape[d], x.aval.dtype
    work = dtype if dtype.kind in "fc" else np.dtype(np.float32)

    def side(edge: Node, end: Any, count: int, flipped: bool) -> Node | None:
        if not count:
            return None
        edge = _repeat(cast(edge, work), d, count)
        step = o.iota(dtype=work, shape=edge.aval.shape, dimension=d)
        part = o.div(step, scalar_node(count, work, False))
        start = scalar_node(end, work, False)
        ramp = o.add(start, o.mul(o.sub(edge, start), part))
        ramp = o.rev(ramp, dimensions=(d,)) if flipped else ramp
        if dtype.kind in "iu":
            ramp = o.floor(ramp)
        return cast(ramp, dtype)

    left = side(cut(x, d, 0, 1), pairs[d][0], before, False)
    right = side(cut(x, d, n - 1, n), pairs[d][1], after, True)
    return _join(left, x, right, d)


def _statistic(x: Node, d: int, before: int, after: int, option: Any, mode: str) -> Node:
    n, dtype = x.aval.shape[d], x.aval.dtype
    lengths = (n, n) if option is None else _pairs(option, x.aval.ndim, "stat_length")[d]
    if any(int(v) < 1 for v in lengths) and option is not None:
        raise ValueError(
            f"jnp.pad: stat_length must be 1 or more for mode {mode!r}; got {option!r}; pass 1"
        )
    sizes = [min(max(int(v), 1), n) for v in lengths]

    def side(part: Node, count: int) -> Node | None:
        if not count:
            return None
        if mode in ("maximum", "minimum"):
            reduce = red.max if mode == "maximum" else red.min  # also for complex
            value = reduce(wrap(part), axis=d)._node
        else:
            work = dtype if dtype.kind in "fc" else np.dtype(np.float32)
            value = _mean_or_median(cast(part, work), d, mode)
            if dtype.kind in "iu":
                value = o.round(value, rounding_method=1)
            value = cast(value, dtype)
        rank = x.aval.ndim
        other_axes = tuple([k for k in range(rank) if k != d])
        shape = (*x.aval.shape[:d], count, *x.aval.shape[d + 1 :])
        return broadcast_to(value, shape, other_axes)

    left = side(cut(x, d, 0, sizes[0]), before)
    right = side(cut(x, d, n - sizes[1], n), after)
    return _join(left, x, right, d)


def _mean_or_median(x: Node, d: int, mode: str) -> Node:
    """Return the mean or the median along an axis."""
    n = x.aval.shape[d]
    if mode == "mean":
        return o.div(o.reduce_sum(x, axes=(d,)), like(x, n))
    ordered = o.sort(x, dimension=d, is_stable=True, num_keys=1)
    low, high = (n - 1) // 2, n // 2
    pair = cut(ordered, d, low, high + 1)
    return o.div(o.reduce_sum(pair, axes=(d,)), like(x, high - low + 1))


_PADDERS: dict[str, Any] = {
    "edge": _edge,
    "reflect": _pad_mirrored,
    "symmetric": _pad_mirrored,
    "wrap": _pad_wrapped,
    "linear_ramp": _ramp,
    "maximum": _statistic,
    "minimum": _statistic,
    "mean": _statistic,
    "median": _statistic,
}
