"""`BCOO`: sparse arrays as data and indices of elements, and conversions of its layout.

Elements with indices out of bounds are ignored. Elements with equal indices are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_axis, as_int, as_static
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.experimental.sparse.base import JAXSparse
from accnp.numpy.creation import arange, array, asarray, zeros
from accnp.numpy.cumulative import cumsum
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.manipulation import broadcast_to, permute_dims
from accnp.numpy.reductions import any as any_of
from accnp.numpy.selection import where
from accnp.numpy.sorting import lexsort
from accnp.numpy.taking import nonzero
from accnp.pytree import register_pytree_node_class

__all__ = [
    "BCOO", "bcoo_extract", "bcoo_fromdense", "bcoo_reduce_sum", "bcoo_sort_indices",
    "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "columns", "inside", "once",
    "refuse_sharding", "sparse_shape", "unbatched",
]  # fmt: skip


@register_pytree_node_class
class BCOO(JAXSparse):
    """Batched sparse array in coordinate format: stored elements and their indices.

    Parameters
    ----------
    args : (array_like, array_like)
        Elements of shape [nse, ...] and indices of shape [nse, axes], both with leading batch axes
        if there are any. Elements may be integers, floats or complex numbers.
    shape : sequence of int
        Lengths of the axes of the dense array.
    indices_sorted : bool, optional
        Whether the indices are known to be in row-major order. The default is False.
    unique_indices : bool, optional
        Whether each index is known to occur once. The default is False.

    Raises
    ------
    TypeError
        If `args` is not a pair of arrays.
    ValueError
        If the shapes do not match.

    See Also
    --------
    experimental.sparse.BCSR : Compressed row format.
    experimental.sparse.sparsify : Call functions of dense arrays with sparse ones.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.sparse import BCOO
    >>> m = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m
    BCOO(float32[2, 2], nse=2)
    >>> m @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    parts = ("data", "indices")

    def _check(self) -> None:
        batch, axes = self.n_batch, self.n_sparse
        dense = self.shape[batch + axes :]
        fits = all(n in (1, m) for n, m in zip(self.data.shape[:batch], self.shape, strict=False))
        if not fits or self.data.shape[batch:] != (self.nse, *dense) or self.n_dense < 0:
            raise ValueError(
                f"sparse.BCOO: data, indices and shape do not fit; got data {self.data.shape}, "
                f"indices {self.indices.shape}, shape {self.shape}; data are [nse, ...] and "
                "indices [nse, axes]"
            )

    @staticmethod
    def _of_dense(mat: Any, **how: Any) -> BCOO:
        return bcoo_fromdense(mat, **how)

    @staticmethod
    def _of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        mat = mat.tocoo()
        return mat.data, np.stack([mat.row, mat.col], axis=-1).astype(index_dtype)

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of leading batch axes, with separate elements for each position."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of axes with indices."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of trailing dense axes, along which all elements are stored."""
        return self.data.ndim - 1 - self.n_batch

    @api_boundary
    def todense(self) -> Array:
        """Return the dense array."""
        return bcoo_todense(self)

    @api_boundary
    def transpose(self, axes: Any = None) -> BCOO:
        """Return the array with permuted axes: sparse and dense axes among themselves."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        return bcoo_transpose(self, permutation=order)

    @api_boundary
    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Add elements with equal indices; see `bcoo_sum_duplicates`."""
        mat = self
        if remove_zeros:
            nothing = mat.data == 0
            if mat.n_dense:
                nothing = nothing.all(axis=tuple(range(-mat.n_dense, 0)))
            outside = array(sparse_shape(mat), dtype=mat.indices.dtype)
            mat = BCOO((mat.data, where(nothing[..., None], outside, mat.indices)), shape=mat.shape)
        return bcoo_sum_duplicates(mat, nse=nse)

    @api_boundary
    def sort_indices(self) -> BCOO:
        """Return the array with indices in row-major order."""
        return bcoo_sort_indices(self)


def sparse_shape(mat: BCOO) -> tuple[int, ...]:
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def refuse_sharding(name: str, sharding: object) -> None:
    """Refuse a sharding of a sparse result: sparse arrays have none."""
    if sharding is not None:
        raise NotImplementedError(
            f"{name}: sparse arrays have no sharding; got {sharding}; shard a dense array, or the "
            "arrays of data and indices"
        )


def unbatched(mat: BCOO) -> BCOO:
    """Return the array as one list of elements: batch axes get indices, too."""
    n = mat.n_batch
    if not n:
        return mat
    batch, kind = mat.shape[:n], mat.indices.dtype
    whole = (*batch, mat.nse)
    places = [
        broadcast_to(arange(m, dtype=kind).reshape((m,) + (1,) * (n - d)), whole)
        for d, m in enumerate(batch)
    ] + [broadcast_to(c, whole) for c in columns(mat.indices)]
    data = broadcast_to(mat.data, (*batch, *mat.data.shape[n:]))
    return BCOO(
        (data.reshape((-1, *data.shape[n + 1 :])), stack(places, axis=-1).reshape(-1, len(places))),
        shape=mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices,
    )  # fmt: skip


@broadcasts_inside
def inside(mat: BCOO) -> Array:
    """Return which elements are in bounds, [nse]."""
    shape = array(sparse_shape(mat), dtype=mat.indices.dtype)
    return ((mat.indices >= 0) & (mat.indices < shape)).all(axis=-1)


def expand_over_dense_axes(mask: Array, mat: BCOO) -> Array:
    return mask.reshape(mask.shape + (1,) * mat.n_dense)


def once(mat: BCOO) -> BCOO:
    """Return the array with each index at most once."""
    return mat if mat.unique_indices else bcoo_sum_duplicates(mat, nse=mat.nse)


def columns(indices: Array) -> tuple[Array, ...]:
    return tuple([indices[..., i] for i in range(indices.shape[-1])])


@api_boundary
def bcoo_todense(mat: BCOO) -> Array:
    """Convert a sparse array to a dense one.

    Parameters
    ----------
    {bcoo}

    Returns
    -------
    Array
        Dense array of the same shape and dtype.

    Raises
    ------
    {raises_bcoo}

    See Also
    --------
    experimental.sparse.bcoo_fromdense : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.bcoo_todense(sparse.BCOO(([5.0], [[1]]), shape=(3,)))
    Array([0., 5., 0.], dtype=float32)
    """
    mat = unbatched(mat)
    if not mat.n_sparse:
        return mat.data.sum(axis=0)
    return zeros(mat.shape, mat.dtype).at[columns(mat.indices)].add(mat.data, mode="drop")


@api_boundary
def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCOO:  # fmt: skip
    """Make a sparse array from the nonzero elements of a dense one.

    Parameters
    ----------
    mat : array_like
        Dense array to convert.
    {nse_nonzero}
    n_batch : int, optional
        Number of leading axes that are batches: each of their positions has its own elements. The
        default is 0.
    n_dense : int, optional
        Number of trailing axes along which all elements are stored. The default is 0.
    index_dtype : dtype_like, optional
        Integer type of the indices. The default is int32.

    Returns
    -------
    experimental.sparse.BCOO
        Sparse array of the same shape and dtype.

    Raises
    ------
    ValueError
        If `n_batch` and `n_dense` do not match the rank, or `nse` is negative.
    ConcretizationTypeError
        If the array is traced and `nse` is not given.

    See Also
    --------
    experimental.sparse.bcoo_todense : Inverse of this function.
    experimental.sparse.BCOO.fromdense : The same as a method of the class.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.bcoo_fromdense(jnp.array([0, 7])).indices
    Array([[1]], dtype=int32)
    """
    name = "sparse.bcoo_fromdense"
    x = asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > x.ndim:
        raise ValueError(
            f"{name}: n_batch and n_dense must fit the array; got {n_batch} and {n_dense} for "
            f"shape {x.shape}; pass numbers whose sum is at most the rank"
        )
    there = x != 0
    if nse is not None and nse < 0:
        raise ValueError(f"{name}: nse must not be negative; got {nse}; pass 0 or more")
    if n_dense:
        there = any_of(there, axis=tuple(range(-n_dense, 0)))
    if nse is None:
        known = np.asarray(mat) != 0 if isinstance(mat, np.ndarray) else None
        if known is None:
            known = as_static(there, f"{name}: nse")
        elif n_dense:
            known = known.any(axis=tuple(range(-n_dense, 0)))
        counts = known.reshape((*known.shape[:n_batch], -1)).sum(axis=-1)
        nse = int(counts.max(initial=0))
    size = as_int(nse, name, "nse")
    axes = x.ndim - n_batch - n_dense
    shape = x.shape[n_batch : n_batch + axes]

    def one(x: Array, there: Array) -> tuple[Array, Array]:
        if not axes:
            return broadcast_to(x[None], (size, *x.shape)), zeros((size, 0), index_dtype)
        places = nonzero(there, size=size, fill_value=shape)
        indices = stack(list(places), axis=-1).astype(index_dtype)
        return x.at[places].get(mode="fill", fill_value=0), indices

    for _ in range(n_batch):
        one = vmap(one)
    return BCOO(one(x, there), shape=x.shape, indices_sorted=True, unique_indices=True)


@api_boundary
def bcoo_extract(sparr: BCOO, arr: Any) -> BCOO:
    """Return the elements of a dense array at the indices of a sparse one.

    Parameters
    ----------
    sparr : BCOO
        Array whose indices are used.
    arr : array_like
        Dense array of the same shape.

    Returns
    -------
    experimental.sparse.BCOO
        Sparse array with these elements.

    Raises
    ------
    {raises_bcoo}
    IndexError
        If the dense array has fewer axes.

    See Also
    --------
    experimental.sparse.bcoo_fromdense : Use the indices of the nonzero elements.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0.0, 7.0]))
    >>> sparse.bcoo_extract(m, jnp.array([3.0, 4.0])).data
    Array([4.], dtype=float32)
    """
    mat = unbatched(sparr)
    x = asarray(arr)
    return mat.with_data(x.at[columns(mat.indices)].get(mode="fill", fill_value=0))


@api_boundary
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Permute the axes of a sparse array, each kind of axes among themselves.

    Parameters
    ----------
    {bcoo}
    permutation : sequence of int
        Axis of the operand for each axis of the result.

    Returns
    -------
    experimental.sparse.BCOO
        Array with permuted axes.

    Raises
    ------
    {raises_bcoo}
    NotImplementedError
        If batch, sparse and dense axes would be mixed.

    See Also
    --------
    lax.transpose : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 1, 2]]))
    >>> sparse.bcoo_transpose(m, permutation=(1, 0)).shape
    (3, 1)
    """
    order = [as_axis(p, mat.ndim, "sparse.bcoo_transpose") for p in permutation]
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    kinds = [order[:n], order[n:end], order[end:]]
    if [sorted(k) for k in kinds] != [[*range(n)], [*range(n, end)], [*range(end, mat.ndim)]]:
        raise NotImplementedError(
            "sparse.bcoo_transpose: axes of batches, sparse and dense ones stay among themselves; "
            f"got permutation {order} of {mat!r}; permute within each kind"
        )
    batch, axes, dense = kinds
    data = permute_dims(mat.data, (*batch, n, *[1 + p - mat.n_sparse for p in dense]))
    indices = permute_dims(mat.indices, (*batch, n, n + 1))
    same_order = axes == [*range(n, end)]
    return BCOO(
        (data, indices[..., np.array(axes, int) - n]), shape=[mat.shape[p] for p in order],
        indices_sorted=mat.indices_sorted and same_order, unique_indices=mat.unique_indices,
    )  # fmt: skip


@api_boundary
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Sum a sparse array along axes.

    Parameters
    ----------
    mat : BCOO
        Sparse operand to reduce.
    axes : sequence of int
        Axes to sum over, which the result does not have.

    Returns
    -------
    experimental.sparse.BCOO
        Sums, of the dtype of `numpy.sum`.

    Raises
    ------
    TypeError
        If `mat` is not a `BCOO`.
    ValueError
        If an axis is out of range.

    See Also
    --------
    numpy.sum : Sum of a dense array.
    experimental.sparse.BCOO : Class of the array.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 1], [3, 2]]))
    >>> sparse.bcoo_reduce_sum(m, axes=[0]).todense()
    Array([3, 3], dtype=int32)
    """
    if not isinstance(mat, BCOO):
        raise TypeError(
            f"sparse.bcoo_reduce_sum: a BCOO array is needed; got {mat!r}; "
            "make one with BCOO.fromdense"
        )
    mat = unbatched(mat)
    gone = {as_axis(a, mat.ndim, "sparse.bcoo_reduce_sum") for a in axes}
    n = mat.n_sparse
    data = where(expand_over_dense_axes(inside(mat), mat), mat.data, 0)
    data = data.sum(axis=tuple(1 + a - n for a in gone if a >= n))
    left = np.array([a for a in range(n) if a not in gone], int)
    shape = [s for a, s in enumerate(mat.shape) if a not in gone]
    return BCOO((data, mat.indices[:, left]), shape=shape)


def _row_major_order(mat: BCOO) -> tuple[Array, Array]:
    """Return the row-major order, and the indices in it; those out of bounds come last."""
    outside = array(sparse_shape(mat), dtype=mat.indices.dtype)
    indices = where(inside(mat)[:, None], mat.indices, outside)
    order = lexsort(columns(indices)[::-1])
    return order, indices[order]


@api_boundary
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Sort the indices of a sparse array in row-major order.

    Parameters
    ----------
    {bcoo}

    Returns
    -------
    experimental.sparse.BCOO
        Same array with sorted indices.

    Raises
    ------
    {raises_bcoo}

    See Also
    --------
    experimental.sparse.bcoo_sum_duplicates : Combine elements with equal indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO(([1, 2], [[2], [0]]), shape=(3,))
    >>> sparse.bcoo_sort_indices(m).data
    Array([2, 1], dtype=int32)
    """
    mat = unbatched(mat)
    if not mat.n_sparse:
        return mat
    order, indices = _row_major_order(mat)
    return BCOO(
        (mat.data[order], indices), shape=mat.shape, indices_sorted=True,
        unique_indices=mat.unique_indices,
    )  # fmt: skip


@api_boundary
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Combine the elements of a sparse array that have equal indices by adding them.

    Parameters
    ----------
    {bcoo}
    nse : int, optional
        Static number of elements to store. The default is the number of different indices, which is
        not possible under `jit`.

    Returns
    -------
    experimental.sparse.BCOO
        Same array with unique indices.

    Raises
    ------
    {raises_bcoo}

    See Also
    --------
    experimental.sparse.bcoo_sort_indices : Sort the indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO(([1, 2, 4], [[2], [0], [2]]), shape=(3,))
    >>> sparse.bcoo_sum_duplicates(m).data
    Array([2, 5], dtype=int32)
    """
    name = "sparse.bcoo_sum_duplicates"
    mat = unbatched(mat)
    shape = sparse_shape(mat)
    if not mat.n_sparse:
        return mat
    order, indices = _row_major_order(mat)
    data = where(expand_over_dense_axes(inside(mat), mat), mat.data, 0)[order]
    new = (indices[1:] != indices[:-1]).any(axis=-1)
    slot = concatenate([zeros(min(1, mat.nse), np.int32), cumsum(new.astype(np.int32))])
    if nse is None:
        known = as_static(indices, f"{name}: nse")
        nse = len(np.unique(known[(known < np.array(shape)).all(axis=-1)], axis=0))
    size = as_int(nse, name, "nse")
    outside = broadcast_to(array(shape, dtype=indices.dtype), (size, len(shape)))
    return BCOO(
        (zeros((size, *data.shape[1:]), data.dtype).at[slot].add(data, mode="drop"),
         outside.at[slot].set(indices, mode="drop")),
        shape=mat.shape, indices_sorted=True, unique_indices=True,
    )  # fmt: skip
