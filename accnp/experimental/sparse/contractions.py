"""Dense products sampled at sparse indices, and convolutions of sparse arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.api.jit.abstract_evaluation import ShapeDtypeStruct, eval_shape
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.experimental.sparse.bcoo import BCOO, columns, inside, refuse_sharding, unbatched
from accnp.lax.convolutions.convolution import conv_general_dilated
from accnp.numpy.creation import arange, asarray
from accnp.numpy.manipulation import moveaxis
from accnp.numpy.products import dot_general
from accnp.numpy.selection import where

__all__ = ["bcoo_conv_general_dilated", "bcoo_dot_general_sampled"]


def _as_axis_tuple(axes: Any) -> tuple[int, ...]:
    return (axes,) if isinstance(axes, int) else tuple(axes)


@api_boundary
def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:
    """Contract two dense arrays and return the elements of the result at sparse indices only.

    Parameters
    ----------
    A : array_like
        Left dense operand.
    B : array_like
        Right dense operand.
    indices : array_like of int
        Indices of a `BCOO` array of the shape of the result.
    {dot_dimensions}

    Returns
    -------
    Array
        Data of that array. Indices beyond its shape give 0.

    Raises
    ------
    {raises_dot}

    See Also
    --------
    experimental.sparse.bcoo_dot_general : Product of a sparse and a dense array.
    lax.dot_general : Product of dense arrays.

    Notes
    -----
    If all axes of the result have indices, other elements are not computed.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> numbers = (((1,), (0,)), ((), ()))
    >>> sparse.bcoo_dot_general_sampled(x, x, jnp.array([[1, 0]]), dimension_numbers=numbers)
    Array([15.], dtype=float32)
    """
    x, y, places = asarray(A), asarray(B), asarray(indices)
    (left, right), (left_batch, right_batch) = [
        [_as_axis_tuple(axes) for axes in pair] for pair in dimension_numbers
    ]
    numbers = ((left, right), (left_batch, right_batch))
    out = eval_shape(lambda u, v: dot_general(u, v, numbers), *map(_type_of, (x, y)))
    if places.ndim == 2 and places.shape[1] == len(out.shape) and x.ndim and y.ndim:
        n = len(left_batch)
        rows = columns(places)
        free = x.ndim - len(left) - n
        u = _gather_rows(x, left_batch, left, (*rows[:n], *rows[n : n + free]))
        v = _gather_rows(y, right_batch, right, (*rows[:n], *rows[n + free :]))
        data = (u * v).sum(axis=tuple(range(1, 1 + len(left)))) if left else u * v
        return data.astype(out.dtype)
    dense = dot_general(x, y, numbers)

    def one(product: Array, here: Array) -> Array:
        return product.at[columns(here)].get(mode="fill", fill_value=0)

    for _ in range(places.ndim - 2):
        one = vmap(one)
    return one(dense, places)


def _type_of(x: Array) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype)


def _gather_rows(
    x: Array, batch: Sequence[int], contracted: Sequence[int], rows: tuple[Array, ...]
) -> Array:
    """Gather along batch and free axes; contracted axes come last."""
    free = [a for a in range(x.ndim) if a not in batch and a not in contracted]
    order = (*batch, *free, *contracted)
    x = moveaxis(x, order, tuple(range(x.ndim)))
    if not rows:
        return x[None]
    return x.at[rows].get(mode="fill", fill_value=0)


@api_boundary
def bcoo_conv_general_dilated(
    lhs: Any, rhs: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, dimension_numbers: Any = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:  # fmt: skip
    """Convolve sparse arrays of shape (1, 1, n); one of the two may be dense.

    Parameters
    ----------
    lhs : BCOO or array_like
        Signal to convolve.
    rhs : BCOO or array_like
        Kernel to convolve with.
    window_strides : sequence of int
        Must be (1,).
    padding : str or sequence of (int, int)
        Padding before and after, as for `lax.conv_general_dilated`.
    lhs_dilation : sequence of int, optional
        Not supported.
    rhs_dilation : sequence of int, optional
        Not supported.
    dimension_numbers : object, optional
        Not supported other than the default.
    feature_group_count : int, optional
        Must be 1: groups are not supported.
    batch_group_count : int, optional
        Must be 1: groups are not supported.
    precision : Precision, optional
        How exactly products are computed, as for `lax.dot_general`.
    preferred_element_type : dtype_like, optional
        Type of the elements of the result.
    out_sharding : None, optional
        Not supported: sparse arrays have no sharding.

    Returns
    -------
    experimental.sparse.BCOO
        Result, with one element for each pair of elements.

    Raises
    ------
    NotImplementedError
        If there are more axes, batches or features, or strides, dilation or groups.

    See Also
    --------
    lax.conv_general_dilated : Convolution of dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([[[0.0, 7.0, 0.0]]]))
    >>> y = jnp.array([[[1.0, 2.0]]])
    >>> sparse.bcoo_conv_general_dilated(x, y, window_strides=(1,), padding=[(0, 0)]).todense()
    Array([[[14.,  7.]]], dtype=float32)
    """
    name = "sparse.bcoo_conv_general_dilated"
    refuse_sharding(name, out_sharding)
    steps = [window_strides, lhs_dilation, rhs_dilation]
    plain = all(n == 1 for s in steps if s is not None for n in _as_axis_tuple(s))
    plain = plain and feature_group_count == batch_group_count == 1
    alike = all(len(x.shape) == 3 and tuple(x.shape[:2]) == (1, 1) for x in (lhs, rhs))
    if not plain or not alike or dimension_numbers not in (None, ("NCH", "OIH", "NCH")):
        raise NotImplementedError(
            f"{name}: only arrays of shape (1, 1, n) are supported, without strides, dilation and "
            f"groups; got shapes {lhs.shape} and {rhs.shape}; use todense()"
        )
    n, m = lhs.shape[2], rhs.shape[2]
    out = eval_shape(
        lambda x, y: conv_general_dilated(
            x, y, window_strides, padding, preferred_element_type=preferred_element_type
        ),
        *[ShapeDtypeStruct(x.shape, x.dtype) for x in (lhs, rhs)],
    )
    size = out.shape[2]
    if isinstance(padding, str):
        total = size - n + m - 1
        low = total - total // 2 if padding.upper() == "SAME_LOWER" else total // 2
    else:
        low = int(padding[0][0])
    (x, i), (y, k) = _line(lhs), _line(rhs)
    place = (i[:, None] + low - k[None, :]).reshape(-1)
    place = where((place < 0) | (place > size), size, place)
    data = (x[:, None] * y[None, :]).reshape(-1).astype(out.dtype)
    return BCOO((data[None, None], place[None, None, :, None]), shape=out.shape)


def _line(x: Any) -> tuple[Array, Array]:
    """Return data and indices along the last axis; data out of bounds are 0."""
    if not isinstance(x, BCOO):
        x = asarray(x)[0, 0]
        return x, arange(x.shape[0], dtype="int32")
    mat = unbatched(x)
    if mat.n_dense:
        mat = BCOO.fromdense(mat.todense(), nse=mat.size)
    return where(inside(mat), mat.data, 0), mat.indices[:, -1]
