"""Functions that apply a user's function along axes, by pieces or by index; and `place`."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.internal_promotion import promotes_inside
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.arguments.shapes import as_axis, as_shape
from accnp.api.arguments.values import check_callable
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array, ArrayLike, ArraySequence
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.lax.control_flow.branches import switch
from accnp.numpy.assigning import assign_in_place
from accnp.numpy.creation import arange, asarray, zeros_like
from accnp.numpy.cumulative import cumsum
from accnp.numpy.manipulation import broadcast_to, expand_dims
from accnp.numpy.selection import where

__all__ = ["apply_along_axis", "apply_over_axes", "fromfunction", "piecewise", "place"]


@api_boundary
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Any:
    """Apply a function to each vector along an axis of an array.

    Parameters
    ----------
    func1d : callable
        Function of a vector, called as `func1d(vector, *args, **kwargs)`. It is traced once, by
        `vmap`.
    axis : int
        Axis of the vectors, static.
    arr : array_like
        Array with at least one axis. Lists and tuples are not accepted.
    *args, **kwargs : optional
        Further arguments of `func1d`.

    Returns
    -------
    Array or pytree of Array
        Results with their dtype, whose axes take the place of `axis`.

    Raises
    ------
    TypeError
        If `arr` is neither an array nor a number.
    ValueError
        If the axis is out of bounds.

    See Also
    --------
    vmap : Map a function over axes of several arguments.
    apply_over_axes : Apply a function of an array and an axis.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.apply_along_axis(jnp.sum, 1, jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    x = arr if isinstance(arr, Array) else wrap(as_node(arr, "jnp.apply_along_axis"))
    d = as_axis(axis, x.ndim, "jnp.apply_along_axis")
    function: Any = lambda line: func1d(line, *args, **kwargs)  # noqa: E731
    # The innermost vmap maps the axis that follows `d`, the outer ones map the later axes.
    for at in range(1, x.ndim - d):
        function = vmap(function, in_axes=at, out_axes=-1)
    for _ in range(d):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(x)


@api_boundary
def apply_over_axes(
    func: Callable[[Array, int], Array], a: ArrayLike, axes: int | Sequence[int]
) -> Array:
    """Apply a function of an array and an axis over several axes, one after the other.

    Parameters
    ----------
    func : callable
        Function that is called as `func(array, axis)`. Its result keeps the number of axes, or
        lacks just the given one, which is put back with length 1.
    a : array_like
        Array that the first call gets. Lists and tuples are not accepted.
    axes : int or sequence of int
        Axes over which to apply it, static.

    Returns
    -------
    Array
        Last result, with its dtype and as many axes as `a`.

    Raises
    ------
    TypeError
        If `a` is neither an array nor a number.
    ValueError
        If an axis is out of bounds, or a result has another number of axes.

    See Also
    --------
    apply_along_axis : Apply a function to vectors.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), [0, 2]).shape
    (1, 3, 1)
    """
    x = wrap(as_node(a, "jnp.apply_over_axes"))
    for axis in axes if isinstance(axes, Sequence | np.ndarray) else (axes,):
        out = func(x, axis)
        if out.ndim == x.ndim - 1:
            out = expand_dims(out, axis)
        if out.ndim != x.ndim:
            raise ValueError(
                "jnp.apply_over_axes: the function must keep the rank or remove one axis; got "
                f"shape {out.shape} for {x.shape} and axis {axis}; use keepdims=True in it"
            )
        x = out
    return x


@functools.lru_cache(maxsize=64, typed=True)
def _branch(piece: Any, kind: np.dtype) -> Callable[[Array], Array]:
    """Return a function or number of `piecewise` as a branch of `switch`.

    The branch is a `partial`, so that the cache of recorded branches can compare its arguments.
    """
    return partial(_evaluate_piece, piece, kind)


def _evaluate_piece(piece: Any, kind: np.dtype, v: Array) -> Array:
    value: Any = piece(v) if callable(piece) else piece
    return asarray(value, dtype=kind)


@api_boundary
def piecewise(
    x: ArrayLike,
    condlist: ArraySequence,
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Evaluate a function that is defined piece by piece.

    Parameters
    ----------
    x : array_like
        Positions at which to evaluate it. Lists and tuples are not accepted.
    condlist : sequence of array_like
        Conditions, which broadcast to the shape of `x`. Where several hold, the last one counts.
    funclist : sequence of callable or scalar
        Function or number for each condition, and optionally one more for where none holds (0 by
        default). Functions are called with a scalar, `*args` and `**kw`. They are traced once, by
        `vmap`.
    *args, **kw : optional
        Further arguments of the functions.

    Returns
    -------
    Array
        Values with the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is neither an array nor a number.
    ValueError
        If the number of functions does not fit that of the conditions.

    See Also
    --------
    select : Choose from arrays by conditions.
    where : Choose by one condition.
    lax.switch : Choose a function by an index.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(-2., 3.)
    >>> jnp.piecewise(x, [x < 0, x >= 0], [-1, lambda v: v * 2])
    Array([-1., -1.,  0.,  2.,  4.], dtype=float32)
    """
    values = wrap(as_node(x, "jnp.piecewise"))
    conditions = asarray(condlist, dtype=bool)
    n = len(conditions)
    if len(funclist) not in (n, n + 1):
        raise ValueError(
            f"jnp.piecewise: {n} conditions need {n} or {n + 1} functions; got {len(funclist)}; "
            "pass one function for each condition, and optionally one for all other elements"
        )
    chosen = zeros_like(values, dtype=np.int32)
    for k in range(n):
        chosen = where(conditions[k], k + 1, chosen)
    values = broadcast_to(values, chosen.shape)
    kind = values.dtype

    def as_branch(piece: Any) -> Callable[[Array], Array]:
        if not (args or kw):
            # `switch` reuses what it recorded for a branch if it gets the same object again.
            with contextlib.suppress(TypeError):  # the piece is unhashable
                return _branch(piece, kind)
        if callable(piece):
            function: Callable[..., Any] = piece
            return lambda v: asarray(function(v, *args, **kw), dtype=kind)
        return lambda _: asarray(piece, dtype=kind)

    rest = funclist[n] if len(funclist) > n else 0
    branches = [as_branch(piece) for piece in [rest, *funclist[:n]]]
    # vmap over elements, so that only the chosen piece contributes to the derivative.
    one = vmap(lambda k, v: switch(k, branches, v))
    return one(chosen.reshape(-1), values.reshape(-1)).reshape(values.shape)


@moves_elements("arr", "vals")
@api_boundary
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Store values where a mask is true, in a copy or in the array.

    Parameters
    ----------
    arr : array_like
        Array to copy or to change. Lists and tuples are not accepted.
    mask : array_like
        Truth values, as many as `arr` has elements.
    vals : array_like
        Values to store in order; they are repeated if there are too few.
    {inplace}

    Returns
    -------
    {returns_updated}

    Raises
    ------
    ValueError
        If `mask` has another size, `vals` is empty, or `inplace` is True without the option
        `item_assignment`.

    See Also
    --------
    extract : Elements where a condition holds.
    put : Store values at indices.
    where : Choose by a condition.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.place(jnp.arange(5), jnp.arange(5) > 1, jnp.array([8, 9]), inplace=False)
    Array([0, 1, 8, 9, 8], dtype=int32)
    """
    name = "jnp.place"
    if inplace:
        references = sys.getrefcount(arr)
        return assign_in_place(name, arr, vals, references, lambda x, v: _place_values(x, mask, v))
    return _place_values(arr, mask, vals)


@promotes_inside
def _place_values(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike) -> Array:
    name = "jnp.place"
    x, chosen, values = (wrap(as_node(v, name)) for v in (arr, mask, vals))
    if chosen.size != x.size:
        raise ValueError(
            f"{name}: arr and mask must have the same number of elements; "
            f"got shapes {x.shape}, {chosen.shape}; "
            "reshape the mask"
        )
    if not values.size:
        raise ValueError(
            f"{name}: there are no values to place; got vals of shape {values.shape}; "
            "pass at least one value"
        )
    flat = chosen.reshape(-1) != 0
    numbers = cumsum(flat) - 1
    replacements = values.reshape(-1)[numbers % values.size].astype(x.dtype)
    out = where(flat, replacements, x.reshape(-1)).reshape(x.shape)._node
    return wrap(cast(out, x.dtype, x.weak_type))


@api_boundary
def fromfunction(
    function: Callable[..., Any],
    shape: Sequence[SupportsIndex],
    *,
    dtype: DTypeLike = float,
    **kwargs: Any,
) -> Any:
    """Evaluate a function at each position of a grid.

    Parameters
    ----------
    function : callable
        Function of as many scalars as the grid has axes. It is called once, by `vmap`, so that it
        may return arrays as well.
    shape : sequence of int
        Shape of the grid, static.
    dtype : dtype_like, optional
        Dtype of the indices that the function gets. The default is float32 (float64 with
        `jax_enable_x64`); None means integers.
    **kwargs : optional
        Further arguments of the function.

    Returns
    -------
    Array or pytree of Array
        Results, whose axes follow those of the grid.

    Raises
    ------
    TypeError
        If a size is negative, traced or not an integer.

    See Also
    --------
    indices : Indices of a grid.
    vmap : Map a function over axes.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fromfunction(lambda i: i * 2, (3,))
    Array([0., 2., 4.], dtype=float32)
    """
    sizes = as_shape(shape, "jnp.fromfunction")
    kind = None if dtype is None else dtypes.requested_dtype(dtype, "jnp.fromfunction")
    check_callable("fromfunction", function)
    rank = len(sizes)
    steps = [arange(n, dtype=kind) for n in sizes]
    each = partial(function, **kwargs)
    for d in range(rank)[::-1]:
        each = vmap(each, in_axes=tuple([0 if i == d else None for i in range(rank)]))
    return each(*steps)
