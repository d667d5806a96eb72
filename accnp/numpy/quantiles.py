"""Quantiles: median, percentile, quantile, and their forms that ignore nan.

Values are sorted once along the reduced axes, merged into one. NaNs sort last, so the last value
shows whether there are any. The axis of the probabilities comes first in the result.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, promote_inexact, scalar_node
from accnp.api.arguments.shapes import AxesLike
from accnp.api.jit.named_calls import shown
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, ShardingLike, wrap
from accnp.errors import NoElementsError, api_boundary
from accnp.ir.node import LITERAL, Node, items
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.indexing import gather_axis
from accnp.numpy.manipulation import cut, expand_node, reshape_plain, transpose_node
from accnp.numpy.reductions import axes_of, axes_shape, spread_along
from accnp.numpy.taking import gather_along
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import broadcast_to
from accnp.sharding.device_placement import with_out_sharding

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
_INT = np.dtype(np.int32)


def _no_overwriting(name: str, out: Any, overwrite_input: bool) -> None:
    if overwrite_input or out is not None:
        raise ValueError(
            f"{name}: out and overwrite_input are not supported, since arrays are immutable; "
            f"got out={out!r} and overwrite_input={overwrite_input!r}; use the result"
        )


def _quantile(
    name: str, a: Any, q: Node, of: int, axis: Any, method: str, keepdims: bool, skip: bool,
    weights: Any,
) -> Node:  # fmt: skip
    if method not in _METHODS:
        raise ValueError(
            f"{name}: method can only be one of {_METHODS}; got {method!r}; pass one of these"
        )
    if weights is None:
        (x,) = promote_inexact(name, a)
        w = None
    else:
        if method != "inverted_cdf":
            raise NotImplementedError(
                f"{name}: weights require method='inverted_cdf'; got {method!r} and weights "
                f"{weights!r:.60}; pass that method"
            )
        x, w = promote_inexact(name, a, weights)
    for operand in (x, q):
        if operand.aval.dtype.kind == "c":
            raise ValueError(
                f"{name} does not support complex input, as the operation is poorly defined; "
                f"got {operand.aval.dtype.name}; take the real part"
            )
    if q.aval.ndim > 1:
        raise ValueError(f"{name}: q must be a scalar or vector; got {q.aval.shape}; ravel it")
    if q.aval.dtype.kind in "biu":
        raise TypeError(
            f"{name}: q must be of floating dtype; got {q.aval.dtype.name}; pass 1.0 for 1"
        )
    axes = axes_of(axis, x.aval.ndim, name)
    if w is not None:
        w = _broadcast_weights(name, w, x, axis)
    keepdims_shape = tuple(1 if d in axes else n for d, n in enumerate(x.aval.shape))
    x, d = _one_axis(x, axes)
    w = None if w is None else _one_axis(w, axes)[0]
    if not x.aval.shape[d]:
        raise NoElementsError(
            f"{name}: the array is empty; got shape {x.aval.shape}; pass elements"
        )
    probabilities = reshape_plain(q, (q.aval.size,))
    if method == "inverted_cdf":
        out = _first_reaching_weight(x, probabilities, of, d, w, skip)
    else:
        out = _interpolate_sorted(x, probabilities, of, d, method, skip)
    # Move the axis of the probabilities, d, to the front.
    rank = out.aval.ndim
    out = transpose_node(out, (d, *[k for k in range(rank) if k != d]))
    shape = (*q.aval.shape, *(keepdims_shape if keepdims else out.aval.shape[1:]))
    return cast(reshape_plain(out, shape), x.aval.dtype)


def _broadcast_weights(name: str, w: Node, x: Node, axis: Any) -> Node:
    if w.aval.shape == x.aval.shape:
        return w
    if axis is None or w.aval.shape != axes_shape(x, axis, name):
        raise ValueError(
            f"{name}: weights must have the shape of the array or of its reduced axes; "
            f"got {w.aval.shape} for {x.aval.shape} and axis {axis}; broadcast them"
        )
    return spread_along(w, x, axis, name)


def _one_axis(x: Node, axes: tuple[int, ...]) -> tuple[Node, int]:
    """Merge the reduced axes into one; return the array and the position of that axis."""
    rank, shape = x.aval.ndim, x.aval.shape
    if len(axes) == 1:
        return x, axes[0]
    others = [d for d in range(rank) if d not in axes]
    x = transpose_node(x, (*others, *axes)) if axes and others else x
    left = tuple(shape[d] for d in others)
    return reshape_plain(x, (*left, prod([shape[d] for d in axes]))), len(others)


def _reshape_probabilities(q: Node, d: int, rank: int) -> Node:
    """Reshape the probabilities so that they lie along axis d."""
    return reshape_plain(q, tuple(q.aval.size if k == d else 1 for k in range(rank)))


def _spread(x: Node, like_: Node) -> Node:
    return broadcast_to(x, like_.aval.shape, tuple(range(x.aval.ndim)))


def _count(mask: Node, d: int, dtype: Any) -> Node:
    """Count the true elements along an axis, which is kept with length 1."""
    return expand_node(o.reduce_sum(cast(mask, dtype), axes=(d,)), (d,))


def _any_nan(ordered: Node, d: int) -> Node:
    last = cut(ordered, d, ordered.aval.shape[d] - 1, ordered.aval.shape[d])
    return rules.isnan(last)


def _with_nan(out: Node, where: Node) -> Node:
    return o.select_n(_spread(where, out), out, like(out, np.nan))


_WIDE = np.dtype(np.float64)


def _divide_probabilities(q: Node, of: int) -> Node:
    """Divide probabilities by `of`, in float64: float32 cannot represent positions in long axes."""
    dtype = q.aval.dtype if state.named else _WIDE  # as in JAX's jaxprs
    fraction = cast(q, dtype)
    return fraction if of == 1 else o.div(fraction, like(fraction, of))


def _precision(q: Node) -> float:
    """Return the relative error of a probability rounded to its dtype; 0 for Python numbers."""
    if q.op is LITERAL and q.aval.weak_type:
        return 0.0
    digits = dtypes.finfo(q.aval.dtype).nmant
    return 2.0**-digits if digits < 50 else 0.0


def _round_positions(position: Node, q: Node, halves: bool = False) -> Node:
    """Round positions to whole numbers, or halves, if they differ from these only by the rounding
    error of the probability."""
    error = _precision(q)
    if not error or state.named:
        return position
    if halves:
        whole = o.round(o.add(position, position), rounding_method=1)
        whole = o.mul(whole, like(whole, 0.5))
    else:
        whole = o.round(position, rounding_method=1)
    is_near = o.le(o.abs(o.sub(position, whole)), o.mul(o.abs(position), like(position, error)))
    return o.select_n(is_near, position, whole)


def _interpolate_sorted(x: Node, q: Node, of: int, d: int, method: str, skip: bool) -> Node:
    """Return values interpolated between two neighbors of the sorted array."""
    n, rank, count = x.aval.shape[d], x.aval.ndim, q.aval.size
    ordered = o.sort(x, dimension=d, is_stable=True, num_keys=1)
    dtype = q.aval.dtype
    fraction = _divide_probabilities(q, of)
    position_dtype = fraction.aval.dtype
    if skip:
        valid_counts = _count(o.not_(rules.isnan(ordered)), d, position_dtype)
        shape = tuple(count if k == d else m for k, m in enumerate(valid_counts.aval.shape))
        last = broadcast_to(o.sub(valid_counts, like(valid_counts, 1)), shape, tuple(range(rank)))
        position = o.mul(
            broadcast_to(_reshape_probabilities(fraction, d, rank), shape, tuple(range(rank))), last
        )
    else:
        last = broadcast_to(scalar_node(n - 1, position_dtype, False), q.aval.shape)
        position = o.mul(fraction, last)
    position = _round_positions(position, q, method == "nearest")
    low, high = o.floor(position), o.ceil(position)
    above = o.sub(position, low)
    below = o.sub(like(above, 1), above)
    whole = o.eq(low, high)
    values = []
    for end in (low, high):
        index = o.max(like(end, 0), o.min(end, last))
        index = o.convert_element_type(index, new_dtype=_INT, weak_type=False)
        values.append(gather_along(ordered, index, d) if skip else gather_axis(ordered, index, d))
    first, second = values
    if method == "lower":
        out = first
    elif method == "higher":
        out = second
    elif method == "midpoint":
        neighbors = cast(first, dtype), cast(second, dtype)  # halve first, since sums may overflow
        out = o.add(
            o.mul(neighbors[0], like(neighbors[0], 0.5)),
            o.mul(neighbors[1], like(neighbors[1], 0.5)),
        )
    else:
        if not skip:
            shape = first.aval.shape
            above, below, whole = (broadcast_to(v, shape, (d,)) for v in (above, below, whole))
        if method == "nearest":
            out = o.select_n(o.le(above, like(above, 0.5)), second, first)
        else:
            # At an element, the other neighbor has weight 0; if infinite, its product would be nan.
            neighbors = [cast(v, dtype) for v in (first, second)]
            masked = [
                o.select_n(whole, v, broadcast_to(like(v, 0), v.aval.shape)) for v in neighbors
            ]
            interpolated = o.add(
                o.mul(masked[0], cast(below, dtype)), o.mul(masked[1], cast(above, dtype))
            )
            out = o.select_n(whole, interpolated, neighbors[0])
    return out if skip else _with_nan(out, _any_nan(ordered, d))


def _first_reaching_weight(x: Node, q: Node, of: int, d: int, w: Node | None, skip: bool) -> Node:
    """Return the first elements at which the cumulative weight is at least q of the total."""
    n, rank, shape = x.aval.shape[d], x.aval.ndim, x.aval.shape
    other_shape = tuple([m for k, m in enumerate(shape) if k != d])
    if w is None:
        ordered = o.sort(x, dimension=d, is_stable=True, num_keys=1)
    else:
        ordered, w = items(o.sort(x, w, dimension=d, is_stable=True, num_keys=1))
    missing = rules.isnan(ordered)
    valid = o.reduce_sum(cast(o.not_(missing), _INT), axes=(d,)) if skip else None
    result_shape = (*other_shape, q.aval.size)  # the probabilities are the last axis
    other_axes = tuple(range(rank - 1))
    if w is None:
        count = scalar_node(n, _WIDE, False) if valid is None else cast(valid, _WIDE)
        counts = broadcast_to(count, result_shape, other_axes if valid is not None else ())
        fraction = broadcast_to(_divide_probabilities(q, of), result_shape, (rank - 1,))
        target = _round_positions(o.mul(cast(fraction, _WIDE), counts), q)
        position = o.sub(o.ceil(target), like(target, 1))
        position = o.convert_element_type(
            o.max(like(position, 0), o.min(position, like(position, n - 1))),
            new_dtype=_INT,
            weak_type=False,
        )
        has_invalid_weight = None
    else:
        w = cast(w, _WIDE)  # float32 is too narrow for sums of many weights
        zeros = broadcast_to(like(w, 0), shape)
        is_invalid = o.or_(o.lt(w, zeros), rules.isnan(w))
        w = o.select_n(o.or_(is_invalid, missing), w, zeros)
        sums = o.cumsum(w, axis=d, reverse=False)
        total = reshape_plain(cut(sums, d, n - 1, n), other_shape)
        fraction = cast(
            broadcast_to(_divide_probabilities(q, of), result_shape, (rank - 1,)), _WIDE
        )
        target = o.mul(fraction, broadcast_to(total, result_shape, other_axes))
        if error := _precision(q):  # tolerate the rounding error of q
            target = o.mul(target, like(target, 1 - error))
        full_shape = (*shape, q.aval.size)  # cumulative weights are along axis d
        others = tuple([k for k in range(rank) if k != d])
        less = o.lt(
            broadcast_to(sums, full_shape, tuple(range(rank))),
            broadcast_to(target, full_shape, (*others, rank)),
        )
        position = o.reduce_sum(cast(less, _INT), axes=(d,))
        has_invalid_weight = expand_node(o.reduce_or(is_invalid, axes=(d,)), (d,))
    position = transpose_node(position, (*range(d), rank - 1, *range(d, rank - 1)))
    last = like(position, n - 1)
    if valid is not None:
        valid = expand_node(valid, (d,))
        last = _spread(o.sub(valid, like(valid, 1)), position)
    position = o.max(like(position, 0), o.min(position, last))
    out = gather_along(ordered, position, d)
    is_nan = _any_nan(ordered, d) if valid is None else o.eq(valid, like(valid, 0))
    return _with_nan(
        out, is_nan if has_invalid_weight is None else o.or_(has_invalid_weight, is_nan)
    )


if TYPE_CHECKING:

    class Quantile(Protocol):
        """A function of an array and probabilities."""

        def __call__(
            self, a: ArrayLike, q: ArrayLike, axis: AxesLike | None = None, out: None = None,
            overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
            weights: ArrayLike | None = None,
        ) -> Array: ...  # fmt: skip

    class ShardedQuantile(Protocol):
        """A quantile function that takes `out_sharding`."""

        def __call__(
            self, a: ArrayLike, q: ArrayLike, axis: AxesLike | None = None, out: None = None,
            overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
            weights: ArrayLike | None = None, out_sharding: ShardingLike = None,
        ) -> Array: ...  # fmt: skip

    class MedianFunction(Protocol):
        """The type of `median` and `nanmedian`."""

        def __call__(
            self, a: ArrayLike, axis: AxesLike | None = None, out: None = None,
            overwrite_input: bool = False, keepdims: bool = False,
        ) -> Array: ...  # fmt: skip


@overload
def _make_quantile(
    name: Literal["percentile"], of: int, skip: bool, doc: str
) -> ShardedQuantile: ...
@overload
def _make_quantile(name: str, of: int, skip: bool, doc: str) -> Quantile: ...
def _make_quantile(name: str, of: int, skip: bool, doc: str) -> Quantile:
    """Make a function of an array and probabilities, fractions of `of`; `skip` ignores nan."""

    def function(
        a: ArrayLike,
        q: ArrayLike,
        axis: AxesLike | None = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: ArrayLike | None = None,
    ) -> Array:
        label = f"jnp.{name}"
        _no_overwriting(label, out, overwrite_input)
        q_node = as_node(q, label) if of == 1 else promote_inexact(label, q)[0]
        return wrap(_quantile(label, a, q_node, of, axis, method, keepdims, skip, weights))

    def function_sharded(
        a: ArrayLike,
        q: ArrayLike,
        axis: AxesLike | None = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: ArrayLike | None = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        return function(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)

    if name == "percentile":  # only this one has the parameter in JAX
        function_sharded.__doc__ = doc
        function_sharded.__name__ = name
        return _make_public(with_out_sharding(function_sharded), name, "a", "q", "weights")
    function.__doc__ = doc
    return _make_public(function, name, "a", "q", "weights")


def _make_median(name: str, skip: bool, doc: str) -> MedianFunction:
    """Make `median` or `nanmedian`; `skip` ignores nan."""

    def function(
        a: ArrayLike,
        axis: AxesLike | None = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array:
        label = f"jnp.{name}"
        _no_overwriting(label, out, overwrite_input)
        half = scalar_node(0.5)
        return wrap(_quantile(label, a, half, 1, axis, "midpoint", keepdims, skip, None))

    function.__doc__ = doc
    return _make_public(function, name, "a")


def _make_public(function: Any, name: str, *arrays: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__  # doctest collects by this
    first = min(2, len(arrays))
    return api_boundary(shown(arrays=first)(compiled_if_small(*arrays)(function)))


quantile = _make_quantile(
    "quantile",
    1,
    False,
    """Compute the values below which given shares of the elements lie.

    Parameters
    ----------
    {a}
    q : array_like of float
        Share, or vector of shares, from 0 to 1. A vector becomes the first axis of the result.
    {quantile_axis}
    {quantile_out}
    {quantile_method}
    {keepdims}
    {quantile_weights}

    Returns
    -------
    Array
        Quantiles, with the shape of `q` followed by that of `a` without the reduced axes.
        Integers give the default float dtype.

    Raises
    ------
    {raises_quantile}

    See Also
    --------
    percentile : The same with percentages.
    nanquantile : Quantiles that ignore nan.
    median : The quantile of one half.

    Notes
    -----
    If there is a nan among the elements, the result is nan. Elements are sorted once for all
    shares.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.25)
    Array(1.5, dtype=float32)
    """,
)
nanquantile = _make_quantile(
    "nanquantile",
    1,
    True,
    """Compute the values below which given shares of the elements lie, ignoring nan.

    Parameters
    ----------
    {a}
    q : array_like of float
        Share, or vector of shares, from 0 to 1. A vector becomes the first axis of the result.
    {quantile_axis}
    {quantile_out}
    {quantile_method}
    {keepdims}
    {quantile_weights}

    Returns
    -------
    Array
        Quantiles, with the shape of `q` followed by that of `a` without the reduced axes.
        Integers give the default float dtype.

    Raises
    ------
    {raises_quantile}

    See Also
    --------
    quantile : Quantiles of all elements.
    nanpercentile : The same with percentages.

    Notes
    -----
    If all elements are nan, the result is nan, without a warning.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nanquantile(jnp.array([1.0, 2.0, jnp.nan]), 0.5)
    Array(1.5, dtype=float32)
    """,
)
percentile = _make_quantile(
    "percentile",
    100,
    False,
    """Compute the values below which given percentages of the elements lie.

    Parameters
    ----------
    {a}
    q : array_like of float
        Percentage, or vector of percentages, from 0 to 100. A vector becomes the first axis of
        the result.
    {quantile_axis}
    {quantile_out}
    {quantile_method}
    {keepdims}
    {quantile_weights}
    {out_sharding}

    Returns
    -------
    Array
        Percentiles, with the shape of `q` followed by that of `a` without the reduced axes.
        Integers give the default float dtype.

    Raises
    ------
    {raises_quantile}

    See Also
    --------
    quantile : The same with shares from 0 to 1.
    nanpercentile : Percentiles that ignore nan.

    Notes
    -----
    If there is a nan among the elements, the result is nan. Elements are sorted once for all
    percentages.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 75)
    Array(3., dtype=float32)
    """,
)
nanpercentile = _make_quantile(
    "nanpercentile",
    100,
    True,
    """Compute the values below which given percentages of the elements lie, ignoring nan.

    Parameters
    ----------
    {a}
    q : array_like of float
        Percentage, or vector of percentages, from 0 to 100. A vector becomes the first axis of
        the result.
    {quantile_axis}
    {quantile_out}
    {quantile_method}
    {keepdims}
    {quantile_weights}

    Returns
    -------
    Array
        Percentiles, with the shape of `q` followed by that of `a` without the reduced axes.
        Integers give the default float dtype.

    Raises
    ------
    {raises_quantile}

    See Also
    --------
    percentile : Percentiles of all elements.
    nanquantile : The same with shares from 0 to 1.

    Notes
    -----
    If all elements are nan, the result is nan, without a warning.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
    Array(2., dtype=float32)
    """,
)
median = _make_median(
    "median",
    False,
    """Compute the middle value of the elements along the given axes.

    Parameters
    ----------
    {a}
    {quantile_axis}
    {quantile_out}
    {keepdims}

    Returns
    -------
    Array
        Medians, with the shape of `a` without the reduced axes. Integers give the default float
        dtype.

    Raises
    ------
    {raises_median}

    See Also
    --------
    mean : Arithmetic mean.
    quantile : Values below which other shares lie.
    nanmedian : Median that ignores nan.

    Notes
    -----
    For an even number of elements, it is the mean of the two in the middle. If there is a nan among
    the elements, the result is nan.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.median(jnp.array([3, 1, 2, 9]))
    Array(2.5, dtype=float32)
    """,
)
nanmedian = _make_median(
    "nanmedian",
    True,
    """Compute the middle value of the elements along the given axes, ignoring nan.

    Parameters
    ----------
    {a}
    {quantile_axis}
    {quantile_out}
    {keepdims}

    Returns
    -------
    Array
        Medians, with the shape of `a` without the reduced axes. Integers give the default float
        dtype.

    Raises
    ------
    {raises_median}

    See Also
    --------
    median : Median of all elements.
    nanmean : Mean that ignores nan.
    nanquantile : Quantiles that ignore nan.

    Notes
    -----
    If all elements are nan, the result is nan, without a warning.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """,
)
