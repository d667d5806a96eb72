"""Arrays with values stored at indices, along an axis, or on the diagonal.

The functions return updated copies. With `inplace=True`, the default as in NumPy, they change their
argument, which the option `item_assignment` permits (`assigning.py`).
"""

from __future__ import annotations

import sys

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    cast,
    scalar_node,
)
from accnp.api.arguments.non_numeric import moves_elements
from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.op import o
from accnp.numpy.assigning import assign_in_place
from accnp.numpy.index_updates import SET, write
from accnp.numpy.indexing import index_node
from accnp.numpy.manipulation import cut, reshape_plain
from accnp.numpy.taking import along, integers, modulo
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import INDEX, dtype_of_indices

__all__ = ["fill_diagonal", "put", "put_along_axis"]

_wrap = wrap  # fill_diagonal has a parameter named wrap


@moves_elements("arr", "values")
@api_boundary
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Store values at a given index along an axis for each position, in a copy or in the array.

    Parameters
    ----------
    arr : array_like
        Array to copy or to change. Lists and tuples are not accepted.
    indices : array_like of int
        Index along the axis for each position, for example the result of `argmax`.
    values : array_like
        Values to store, which broadcast to `indices`.
    axis : int or None
        Axis along which to index; None uses the flattened array.
    {inplace}
    mode : {'drop', 'fill', 'clip', 'promise_in_bounds'}, optional
        What happens to updates out of bounds: 'drop' (also named 'fill'), the default, leaves them
        out, and 'clip' moves them to the nearest element.

    Returns
    -------
    {returns_updated}

    Raises
    ------
    TypeError
        If `indices` does not hold integers.
    ValueError
        If the numbers of axes differ, the axis is out of bounds, or `inplace` is True without the
        option `item_assignment`.

    See Also
    --------
    take_along_axis : Take elements at such indices.
    Array.at : Updated copies for any index.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.put_along_axis(jnp.zeros(3), jnp.array([1]), 7.0, 0, inplace=False)
    Array([0., 7., 0.], dtype=float32)
    """
    name = "jnp.put_along_axis"
    if inplace:
        references = sys.getrefcount(arr)
        return assign_in_place(
            name, arr, values, references,
            lambda x, v: _with_values_along_axis(x, indices, v, axis, mode),
        )  # fmt: skip
    return _with_values_along_axis(arr, indices, values, axis, mode)


@compiled_if_small("arr", "indices", "values")
def _with_values_along_axis(
    arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, mode: str | None
) -> Array:
    name = "jnp.put_along_axis"
    if dtypes.result_type(indices).kind == "b":
        raise TypeError(f"{name}: indices must be integers; got bool; use jnp.where for a mask")
    whole = as_node(arr, name)
    x, index, d = along(whole, integers(indices, name), axis, name)
    shape = index.aval.shape
    if axis is not None:
        x = whole  # other axes of length 1 broadcast
    grid = [
        o.iota(dtype=dtype_of_indices(n), shape=shape, dimension=k) for k, n in enumerate(shape)
    ]
    spread = [n < m for n, m in zip(x.aval.shape, shape, strict=True)]
    key = tuple(
        [wrap(index if k == d else like(g, 0) if spread[k] else g) for k, g in enumerate(grid)]
    )
    out = write(x, key, values, SET, mode=mode)
    return wrap(reshape_plain(out, whole.aval.shape))


@moves_elements("a", "v")
@api_boundary
def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Store values at flat indices, in a copy or in the array.

    Parameters
    ----------
    a : array_like
        Array to copy or to change. Lists and tuples are not accepted.
    ind : array_like of int
        Indices into the flattened array.
    v : array_like
        Values to store. They are repeated if there are fewer than indices.
    mode : {'clip', 'wrap', 'drop'}, optional
        What happens to indices out of bounds: the nearest element is written (None, the default,
        and 'clip', for which negative indices count as too small), the element at the index modulo
        the size ('wrap'), or none ('drop').
    {inplace}

    Returns
    -------
    {returns_updated}

    Raises
    ------
    TypeError
        If `ind` does not hold integers.
    ValueError
        If `a` has no axis, or `inplace` is True without the option `item_assignment`.

    See Also
    --------
    Array.at : Updated copies for any index.
    place : Store values where a condition holds.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.put(jnp.zeros(3), jnp.array([0, 2]), jnp.array([4.0, 5.0]), inplace=False)
    Array([4., 0., 5.], dtype=float32)
    """
    name = "jnp.put"
    if inplace:
        references = sys.getrefcount(a)
        return assign_in_place(
            name, a, v, references, lambda x, v: put(x, ind, v, mode, inplace=False)
        )
    x, index, values = as_node(a, name), wrap(integers(ind, name)).ravel()._node, as_node(v, name)
    if not x.aval.ndim:
        raise ValueError(f"{name}: expected at least one axis; got shape (); use jnp.atleast_1d")
    if mode == "wrap":
        index, mode = modulo(index, x.aval.size), None
    elif mode in (None, "clip"):  # out-of-bounds indices move to the nearest end
        kind = dtype_of_indices(x.aval.size)
        low, high = (scalar_node(v, kind, False) for v in (0, max(0, x.aval.size - 1)))
        # Negative indices count from the end, except in mode "clip", which moves them to 0.
        counted = index if mode == "clip" else index_node(index, x.aval.size)
        index, mode = o.clamp(low, cast(counted, kind), high), None
    values, n = reshape_plain(values, (values.aval.size,)), index.aval.size
    if not values.aval.size:
        return wrap(x)
    if values.aval.size < n:
        times = -(-n // values.aval.size)
        values = o.concatenate(*[values] * times, dimension=0)
    flat = reshape_plain(x, (x.aval.size,))
    out = write(flat, wrap(index), wrap(cut(values, 0, 0, n)), SET, mode=mode)
    return wrap(reshape_plain(out, x.aval.shape))


@moves_elements("a", "val")
@api_boundary
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Fill the main diagonal, in a copy or in the array.

    Parameters
    ----------
    a : array_like
        Matrix to copy or to change, or array of several axes of one length.
    val : array_like
        Value, or values that are repeated along the diagonal.
    wrap : bool, optional
        Not supported; present for compatibility with NumPy.
    {inplace}

    Returns
    -------
    {returns_updated}

    Raises
    ------
    ValueError
        If `a` has one axis, or more than two that differ in length, or `inplace` is True without
        the option `item_assignment`.
    NotImplementedError
        If `wrap` is True.

    See Also
    --------
    diag_indices : Indices of the diagonal.
    diag : Matrix with given numbers on a diagonal.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    name = "jnp.fill_diagonal"
    if inplace:
        references = sys.getrefcount(a)
        return assign_in_place(
            name, a, val, references, lambda x, v: fill_diagonal(x, v, wrap, inplace=False)
        )
    x, v = as_node(a, name), as_node(val, name)
    if x.aval.ndim < 2 or (x.aval.ndim > 2 and len(set(x.aval.shape)) != 1):
        raise ValueError(
            f"{name}: expected a matrix or axes of equal length; got {x.aval.shape}; reshape it"
        )
    if wrap:
        raise NotImplementedError(
            f"{name}: wrap=True is not supported; got {wrap} (wrap); leave it out"
        )
    n = min(x.aval.shape)
    if not n:
        return _wrap(x)
    if v.aval.ndim:
        v = reshape_plain(v, (v.aval.size,))
        v = cut(o.concatenate(*[v] * -(-n // v.aval.size), dimension=0), 0, 0, n)
    index = _wrap(o.iota(dtype=INDEX, shape=(n,), dimension=0))
    return _wrap(write(x, (index,) * x.aval.ndim, _wrap(v), SET))
