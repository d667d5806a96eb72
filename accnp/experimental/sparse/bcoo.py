"""`BCOO`: sparse arrays as data and indices of elements, and the functions of these arrays.

Elements with indices out of bounds are ignored. Elements with equal indices are added. Results are
sparse, except where a sum over elements is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import promote, wrap
from accnp.api.arguments.internal_promotion import broadcasts_inside
from accnp.api.arguments.shapes import as_axes, as_axis, as_int, as_static
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array
from accnp.errors import api_boundary, not_one_of, warn
from accnp.experimental.sparse.base import JAXSparse
from accnp.lax.slicing import dynamic_slice
from accnp.numpy import ufuncs as uf
from accnp.numpy.counting import unravel_index
from accnp.numpy.creation import arange, array, asarray, zeros
from accnp.numpy.cumulative import cumsum
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.manipulation import broadcast_to, moveaxis, permute_dims
from accnp.numpy.rearranging import flip
from accnp.numpy.reductions import any as any_of
from accnp.numpy.selection import where
from accnp.numpy.sorting import lexsort
from accnp.numpy.taking import nonzero
from accnp.numpy.ufuncs import clip
from accnp.pytree import register_pytree_node_class
from accnp.random.basic_samplers import choice, uniform
from accnp.random.keys import split
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "BCOO", "CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning",
    "added", "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dynamic_slice",
    "bcoo_extract", "bcoo_fromdense", "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse",
    "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices",
    "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
    "columns", "inside", "once", "product", "random_bcoo", "refuse_sharding", "sparse_shape",
    "unbatched",
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

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:  # fmt: skip
        """Return the array with other numbers of batch and dense axes: see `bcoo_update_layout`."""
        return bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def reshape(self, *shape: Any) -> BCOO:
        """Return the array with another shape of the same size."""
        new_shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        sizes = [int(n) for n in new_shape]
        known = prod(n for n in sizes if n != -1)
        return bcoo_reshape(
            self, new_sizes=[self.size // max(known, 1) if n == -1 else n for n in sizes]
        )

    def sum(self, axis: Any = None) -> Any:
        """Sum along axes to a sparse array; along all axes, to a dense scalar."""
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        out = bcoo_reduce_sum(self, axes=[as_axis(a, self.ndim, "sparse.BCOO.sum") for a in axes])
        return out if out.shape else out.todense()

    def astype(self, dtype: Any) -> BCOO:
        """Return the array with elements of another dtype."""
        return self.with_data(self.data.astype(dtype))

    def __neg__(self) -> BCOO:
        return self.with_data(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def __abs__(self) -> BCOO:
        mat = once(self)
        return mat.with_data(uf.abs(mat.data))

    def __mul__(self, other: Any) -> BCOO:
        several = isinstance(other, BCOO)
        return bcoo_multiply_sparse(self, other) if several else bcoo_multiply_dense(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> BCOO:
        if isinstance(other, BCOO):
            other = other.todense()
        x = asarray(other)
        if not x.ndim:
            return self.with_data(self.data / x)
        mat = unbatched(self)
        return mat.with_data(mat.data / bcoo_extract(mat, broadcast_to(x, mat.shape)).data)

    def __add__(self, other: Any) -> Any:
        return added(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return added(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return added(-self, other)

    def __matmul__(self, other: Any) -> Any:
        return product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return product(other, self)

    def __getitem__(self, item: Any) -> BCOO:
        """Return self[item] for static integers and slices with positive steps."""
        index = item if isinstance(item, tuple) else (item,)
        if Ellipsis in index:
            at = index.index(Ellipsis)
            missing = self.ndim - len(index) + 1
            index = (*index[:at], *[slice(None)] * missing, *index[at + 1 :])
        index = (*index, *[slice(None)] * (self.ndim - len(index)))
        starts, limits, steps, removed = [], [], [], []
        for d, (one, n) in enumerate(zip(index, self.shape, strict=True)):
            if isinstance(one, slice):
                a, b, k = one.indices(n)
                if k < 1:
                    raise NotImplementedError(
                        f"sparse.BCOO: steps of slices must be positive; got {one}; "
                        "use todense(), or leave the step out"
                    )
            elif isinstance(one, int | np.integer):
                a = as_axis(int(one), n, "sparse.BCOO") if n else 0
                b, k = a + 1, 1
                removed.append(d)
            else:
                raise NotImplementedError(
                    f"sparse.BCOO: an index is an integer, a slice or ...; got {one!r}; "
                    "use .todense()"
                )
            starts, limits, steps = [*starts, a], [*limits, max(a, b)], [*steps, k]
        part = bcoo_slice(self, start_indices=starts, limit_indices=limits, strides=steps)
        return bcoo_squeeze(part, dimensions=removed) if removed else part


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
    removed = {as_axis(a, mat.ndim, "sparse.bcoo_reduce_sum") for a in axes}
    n = mat.n_sparse
    data = where(expand_over_dense_axes(inside(mat), mat), mat.data, 0)
    data = data.sum(axis=tuple(1 + a - n for a in removed if a >= n))
    left = np.array([a for a in range(n) if a not in removed], int)
    shape = [s for a, s in enumerate(mat.shape) if a not in removed]
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


# --- products, sums, slices and reshapes ----------------------------------------------------------


@api_boundary
def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> BCOO:
    """Multiply a sparse array element by element by a dense one that broadcasts to it.

    Parameters
    ----------
    sp_mat : BCOO
        Sparse factor.
    v : array_like
        Dense factor.

    Returns
    -------
    experimental.sparse.BCOO
        Products at the indices of the sparse array.

    Raises
    ------
    {raises_bcoo}
    ValueError
        If the dense array does not broadcast to the shape.

    See Also
    --------
    experimental.sparse.bcoo_multiply_sparse : Product of two sparse arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 1], [3, 2]]))
    >>> sparse.bcoo_multiply_dense(m, jnp.array([10, 100])).todense()
    Array([[  0, 100],
           [ 30, 200]], dtype=int32)
    """
    mat, x = sp_mat, asarray(v)
    if not x.ndim:
        return mat.with_data(mat.data * x)
    mat = unbatched(mat)
    return mat.with_data(mat.data * bcoo_extract(mat, broadcast_to(x, mat.shape)).data)


@api_boundary
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Multiply two sparse arrays of the same shape element by element.

    Parameters
    ----------
    lhs : BCOO
        First factor, whose indices the result has.
    rhs : BCOO
        Second factor.

    Returns
    -------
    experimental.sparse.BCOO
        Products.

    Raises
    ------
    {raises_bcoo}
    ValueError
        If the shapes differ.

    See Also
    --------
    experimental.sparse.bcoo_multiply_dense : Product with a dense array.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m, n = (sparse.BCOO.fromdense(jnp.array(x)) for x in ([0, 2, 3], [4, 5, 0]))
    >>> sparse.bcoo_multiply_sparse(m, n).todense()
    Array([ 0, 10,  0], dtype=int32)
    """
    if lhs.shape != rhs.shape:
        raise ValueError(
            f"sparse.bcoo_multiply_sparse: shapes must be equal; got {lhs.shape} and {rhs.shape}; "
            "broadcast the dense way, with todense()"
        )
    return bcoo_multiply_dense(lhs, rhs.todense())


@api_boundary
@with_out_sharding
def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Contract a sparse array with a dense one, as `lax.dot_general`.

    Parameters
    ----------
    lhs : BCOO or array_like
        Left operand. One of the two operands is sparse; of two sparse ones the second is made
        dense.
    rhs : BCOO or array_like
        Second factor of the product.
    {dot_dimensions}
    precision : Precision, optional
        How exactly products are computed, as for `lax.dot_general`.
    preferred_element_type : dtype_like, optional
        Type of the elements of the result.
    {out_sharding}

    Returns
    -------
    Array
        Dense product.

    Raises
    ------
    {raises_dot}
    NotImplementedError
        If the sparse operand has dense axes.

    See Also
    --------
    lax.dot_general : Product of dense arrays.
    experimental.sparse.bcoo_dot_general_sampled : Product of dense arrays at sparse indices.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 1.0], [3.0, 2.0]]))
    >>> sparse.bcoo_dot_general(m, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([1., 5.], dtype=float32)
    """
    name = "sparse.bcoo_dot_general"
    (left, right), (left_batch, right_batch) = dimension_numbers
    n = len(left_batch)
    if not isinstance(lhs, BCOO):
        out = bcoo_dot_general(
            rhs, lhs, dimension_numbers=((right, left), (right_batch, left_batch)),
            preferred_element_type=preferred_element_type,
        )  # fmt: skip
        free = rhs.ndim - len(right) - n
        return moveaxis(out, tuple(range(n, n + free)), tuple(range(-free, 0))) if free else out
    mat = unbatched(lhs)
    x = rhs.todense() if isinstance(rhs, BCOO) else asarray(rhs)
    # Both are looked up in the dense array; batch axes are axes of the result as well.
    shared = [as_axis(a, mat.ndim, name) for a in (*left_batch, *left)]
    others = [as_axis(a, x.ndim, name) for a in (*right_batch, *right)]
    if any(a >= mat.n_sparse for a in shared) or mat.n_dense:
        raise NotImplementedError(
            f"{name}: dense axes are not supported; got {mat!r}; use todense()"
        )
    if [mat.shape[a] for a in shared] != [x.shape[a] for a in others]:
        raise TypeError(
            f"{name}: contracted axes, and those of batches, must have equal lengths; got "
            f"{mat.shape} and {x.shape} with axes {shared} and {others}; make them equal"
        )
    x = moveaxis(x, tuple(others), tuple(range(len(others))))
    rest = x.shape[len(others) :]
    remaining = shared[:n] + [a for a in range(mat.ndim) if a not in shared]
    coordinates = columns(mat.indices)
    data = where(inside(mat), mat.data, 0)
    terms = data.reshape((-1,) + (1,) * len(rest))
    if shared:
        terms = terms * x.at[tuple([coordinates[a] for a in shared])].get(mode="fill", fill_value=0)
    else:
        terms = terms * x[None]
    if preferred_element_type is not None:
        terms = terms.astype(preferred_element_type)
    if not remaining:
        return terms.sum(axis=0)
    out = zeros((*[mat.shape[a] for a in remaining], *rest), terms.dtype)
    return out.at[tuple([coordinates[a] for a in remaining])].add(terms, mode="drop")


def product(lhs: Any, rhs: Any) -> Any:
    """Return lhs @ rhs, at least one of which is a BCOO; the product of two is a BCOO.

    Leading axes of both are equal batch axes.
    """
    a, b = (unbatched(x) if isinstance(x, BCOO) else asarray(x) for x in (lhs, rhs))
    batch = min(a.ndim, b.ndim) - 2
    if not a.ndim or not b.ndim or (batch > 0 and a.shape[:-2] != b.shape[:-2]):
        raise ValueError(
            "sparse.BCOO: products are of vectors, matrices and equal batches of them; got shapes "
            f"{a.shape} and {b.shape}; reshape them"
        )
    both = tuple(range(max(batch, 0)))
    numbers = (((a.ndim - 1,), (max(b.ndim - 2, 0),)), (both, both))
    out = bcoo_dot_general(a, b, dimension_numbers=numbers)
    if not both and b.ndim > 2 and a.ndim == 2:
        out = moveaxis(out, 0, -2)
    if not isinstance(a, BCOO) or not isinstance(b, BCOO) or not out.ndim:
        return out
    return bcoo_fromdense(out, nse=min(a.nse * b.nse, out.size))


# --- sums, parts, shapes -------------------------------------------------------------------------


@api_boundary
def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Join sparse arrays along a sparse axis.

    Parameters
    ----------
    operands : sequence of BCOO
        Sparse arrays to join, which agree in their other axes.
    dimension : int
        Axis along which to join them.

    Returns
    -------
    experimental.sparse.BCOO
        Joined array.

    Raises
    ------
    {raises_bcoo}
    ValueError
        If the axis is out of range or not sparse, or other axes differ in length.

    See Also
    --------
    numpy.concatenate : Join dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 7]))
    >>> sparse.bcoo_concatenate([m, m], dimension=0).todense()
    Array([0, 7, 0, 7], dtype=int32)
    """
    name = "sparse.bcoo_concatenate"
    mats = [unbatched(m) for m in operands]
    d = as_axis(dimension, mats[0].ndim, name)
    shapes = {(m.n_sparse, *m.shape[:d], *m.shape[d + 1 :]) for m in mats}
    if len(shapes) > 1 or d >= mats[0].n_sparse:
        raise ValueError(
            f"{name}: arrays must agree but for one sparse axis; "
            f"got {mats}, dimension={dimension}; "
            "make the others equal"
        )
    start, data, indices = 0, [], []
    for m in mats:
        n = m.n_sparse
        moved = m.indices + array(np.eye(n, dtype=int)[d : d + 1] * start, dtype=m.indices.dtype)
        # Elements out of bounds would be in the next array now.
        data.append(m.data)
        indices.append(where(inside(m)[:, None], moved, np.iinfo(m.indices.dtype).max))
        start += m.shape[d]
    shape = (*mats[0].shape[:d], start, *mats[0].shape[d + 1 :])
    return BCOO((concatenate(data), concatenate(indices)), shape=shape)


def added(lhs: Any, rhs: Any) -> Any:
    """Add two sparse arrays of one shape by joining their elements; with a dense array, densely."""
    if not isinstance(lhs, BCOO):
        return asarray(lhs) + rhs.todense()
    if not isinstance(rhs, BCOO):
        return lhs.todense() + asarray(rhs)
    a, b = unbatched(lhs), unbatched(rhs)
    if a.shape != b.shape or a.n_sparse != b.n_sparse:
        raise ValueError(
            f"sparse.BCOO: shapes must be equal in a sum; got {a!r} and {b!r}; "
            "pad or cut one of them"
        )
    data = [wrap(n) for n in promote("sparse.BCOO", a.data, b.data)]
    return BCOO((concatenate(data), concatenate([a.indices, b.indices])), shape=a.shape)


@api_boundary
def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Any = None, sharding: Any = None
) -> BCOO:
    """Change the shape of a sparse array without dense axes.

    Parameters
    ----------
    {bcoo}
    new_sizes : sequence of int
        Lengths of the axes of the result.
    dimensions : sequence of int, optional
        Not supported: must be None.
    sharding : None, optional
        Not supported: sparse arrays have no sharding.

    Returns
    -------
    experimental.sparse.BCOO
        Array of the new shape, with as many stored elements.

    Raises
    ------
    TypeError
        If the numbers of elements differ.
    ValueError
        If there are more positions than the dtype of the indices can hold; use int64.
    NotImplementedError
        If there are dense axes, or `dimensions` is given.

    See Also
    --------
    numpy.reshape : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 7, 0, 8]))
    >>> sparse.bcoo_reshape(m, new_sizes=(2, 2)).todense()
    Array([[0, 7],
           [0, 8]], dtype=int32)
    """
    refuse_sharding("sparse.bcoo_reshape", sharding)
    mat, sizes = unbatched(mat), tuple(new_sizes)
    if mat.n_dense or dimensions is not None:
        raise NotImplementedError(
            f"sparse.bcoo_reshape: arrays with dense axes, and dimensions, are not supported; got "
            f"{mat!r}, dimensions={dimensions}; use todense()"
        )
    if prod(sizes) != mat.size:
        raise TypeError(
            f"sparse.bcoo_reshape: sizes must have the same product; got {mat.shape} and {sizes}; "
            "pass sizes of that product"
        )
    if mat.size >= 2**31 and mat.indices.dtype.itemsize < 8:
        raise ValueError(
            f"sparse.bcoo_reshape: {mat.size} places are too many for indices of "
            f"{mat.indices.dtype.name}; use int64"
        )
    flat = zeros(mat.nse, mat.indices.dtype)
    for column, n in zip(columns(mat.indices), mat.shape, strict=True):
        flat = flat * n + column
    parts = []
    for n in sizes[::-1]:
        flat, part = flat // max(n, 1), flat % max(n, 1)
        parts.append(part)
    indices = stack(parts[::-1], axis=-1) if parts else zeros((mat.nse, 0), mat.indices.dtype)
    outside = array(sizes, dtype=mat.indices.dtype)
    return BCOO(
        (where(inside(mat), mat.data, 0), where(inside(mat)[:, None], indices, outside)),
        shape=sizes, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices,
    )  # fmt: skip


@api_boundary
def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Remove axes of length 1 from a sparse array.

    Parameters
    ----------
    arr : BCOO
        Sparse array to change.
    dimensions : sequence of int
        Axes of length 1 to remove.

    Returns
    -------
    experimental.sparse.BCOO
        Array without these axes.

    Raises
    ------
    ValueError
        If an axis has another length.

    See Also
    --------
    numpy.squeeze : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.BCOO.fromdense(jnp.array([[0, 7]])), dimensions=[0]).shape
    (2,)
    """
    axes = [as_axis(a, arr.ndim, "sparse.bcoo_squeeze") for a in dimensions]
    if any(arr.shape[a] != 1 for a in axes):
        raise ValueError(
            f"sparse.bcoo_squeeze: axes must have length 1; got axes {axes} of shape {arr.shape}; "
            "name axes of length 1"
        )
    return bcoo_reduce_sum(arr, axes=axes)


@api_boundary
def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Any = None
) -> BCOO:
    """Slice a sparse array without dense axes, with static bounds.

    Parameters
    ----------
    {bcoo}
    start_indices : sequence of int
        First index along each axis.
    limit_indices : sequence of int
        End along each axis, which is not included.
    strides : sequence of int, optional
        Step along each axis. The default is 1.

    Returns
    -------
    experimental.sparse.BCOO
        Slice, with as many stored elements.

    Raises
    ------
    ValueError
        If there is not one start and one end for each axis.
    NotImplementedError
        If there are dense axes.

    See Also
    --------
    experimental.sparse.bcoo_dynamic_slice : Slice with starts that may be traced.
    lax.slice : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 7, 0, 8]))
    >>> sparse.bcoo_slice(m, start_indices=[1], limit_indices=[4], strides=[2]).todense()
    Array([7, 8], dtype=int32)
    """
    mat = unbatched(mat)
    if mat.n_dense:
        raise NotImplementedError(
            f"sparse.bcoo_slice: arrays with dense axes are not supported; got {mat!r}; "
            "use todense()"
        )
    steps = [1] * mat.ndim if strides is None else [*strides]
    shape, keep, parts = [], inside(mat), []
    for column, a, b, k in zip(
        columns(mat.indices), start_indices, limit_indices, steps, strict=True
    ):
        shape.append(max(0, -(-(b - a) // k)))
        keep = keep & (column >= a) & (column < b) & ((column - a) % k == 0)
        parts.append((column - a) // k)
    outside = array(shape, dtype=mat.indices.dtype)
    indices = stack(parts, axis=-1) if parts else mat.indices
    return BCOO(
        (where(keep, mat.data, 0), where(keep[:, None], indices, outside)), shape=shape,
        unique_indices=mat.unique_indices,
    )  # fmt: skip


# --- layouts: batch, sparse and dense axes --------------------------------------------------------


class SparseEfficiencyError(ValueError):
    """Error: the requested layout stores many zeros.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> issubclass(sparse.SparseEfficiencyError, ValueError)
    True
    """


class SparseEfficiencyWarning(UserWarning):
    """Warning: the requested layout stores many zeros.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> issubclass(sparse.SparseEfficiencyWarning, UserWarning)
    True
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """Warning that cuSPARSE is not used.

    accnp never gives it; programs may name it in warning filters.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> issubclass(sparse.CuSparseEfficiencyWarning, UserWarning)
    True
    """


_Pair = tuple[Array, Array]


def _for_each(one: Callable[..., Any], mat: BCOO, n: int) -> _Pair:
    """Map a function of data and indices over the positions of the first `n` batch axes."""
    batch = mat.shape[: mat.n_batch]
    data = broadcast_to(mat.data, (*batch, *mat.data.shape[len(batch) :]))
    indices = broadcast_to(mat.indices, (*batch, *mat.indices.shape[len(batch) :]))
    for _ in range(n):
        one = vmap(one)
    return one(data, indices)


def _inefficient(what: str, old: int, new: int, mat: BCOO, how: str | None) -> None:
    text = (
        f"sparse.bcoo_update_layout: For matrix of shape {mat.shape}, increasing {what} from {old} "
        f"to {new} results in inefficient storage."
    )
    if how == "error":
        raise SparseEfficiencyError(f"{text} Pass on_inefficient='warn' or None to do it.")
    if how == "warn":
        warn(
            f"{text} Pass on_inefficient=None for no warning.",
            SparseEfficiencyWarning,
        )


@api_boundary
def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:  # fmt: skip
    """Return the same sparse array with other numbers of batch axes and dense axes.

    Parameters
    ----------
    {bcoo}
    n_batch : int, optional
        Number of leading axes that are batches. The default keeps it.
    n_dense : int, optional
        Number of trailing axes along which all elements are stored. The default keeps it.
    on_inefficient : str or None, optional
        What to do if axes longer than 1 become batch or dense axes, so that zeros are stored:
        "error" (the default), "warn" or None.

    Returns
    -------
    experimental.sparse.BCOO
        Same array in the new layout.

    Raises
    ------
    SparseEfficiencyError
        If zeros would be stored; see `on_inefficient`.
    ValueError
        If the numbers do not match the rank.

    See Also
    --------
    experimental.sparse.bcoo_fromdense : Choose the layout from the start.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.eye(2), n_batch=1)
    >>> sparse.bcoo_update_layout(m, n_batch=0)
    BCOO(float32[2, 2], nse=2)
    """
    name = "sparse.bcoo_update_layout"
    batch = mat.n_batch if n_batch is None else as_int(n_batch, name, "n_batch")
    dense = mat.n_dense if n_dense is None else as_int(n_dense, name, "n_dense")
    if (batch, dense) == (mat.n_batch, mat.n_dense):
        return mat
    if on_inefficient not in ("error", "warn", None):
        raise not_one_of(name, "on_inefficient", on_inefficient, ("error", "warn", None))
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise ValueError(
            f"{name}: n_batch and n_dense must not be negative, and their sum at most the rank; "
            f"got {batch} and {dense} for {mat!r}; pass smaller numbers"
        )
    if any(n > 1 for n in mat.shape[mat.ndim - dense : mat.ndim - mat.n_dense]):
        _inefficient("n_dense", mat.n_dense, dense, mat, on_inefficient)
    if any(n > 1 for n in mat.shape[mat.n_batch : batch]):
        _inefficient("n_batch", mat.n_batch, batch, mat, on_inefficient)
    shape = mat.shape

    def build(one: Callable[..., Any], n: int) -> BCOO:
        return BCOO(_for_each(one, mat, n), shape=shape)

    if dense < mat.n_dense:
        mat = build(_dense_as_sparse(shape[mat.ndim - mat.n_dense : mat.ndim - dense]), mat.n_batch)
    if batch < mat.n_batch:
        part = shape[batch:]

        def merged(data: Array, indices: Array) -> _Pair:
            sparse_part = unbatched(BCOO((data, indices), shape=part))
            return sparse_part.data, sparse_part.indices

        mat = build(merged, batch)
    if dense > mat.n_dense:
        sizes = shape[mat.ndim - dense : mat.ndim - mat.n_dense]
        mat = build(_sparse_as_dense(sizes), mat.n_batch)
    if batch > mat.n_batch:
        n = batch - mat.n_batch
        mat = build(_sparse_as_batch(sparse_shape(mat), n), mat.n_batch)
    return mat


def _dense_as_sparse(sizes: tuple[int, ...]) -> Callable[[Array, Array], _Pair]:
    """Give the first dense axes, of these sizes, indices."""
    n, count = len(sizes), prod(sizes)

    def one(data: Array, indices: Array) -> _Pair:
        nse, axes = indices.shape
        grid = np.indices(sizes).reshape(n, count).T
        more = broadcast_to(array(grid, dtype=indices.dtype)[None], (nse, count, n))
        old = broadcast_to(indices[:, None], (nse, count, axes))
        places = [*columns(old), *columns(more)]
        return (
            data.reshape((nse * count, *data.shape[1 + n :])),
            stack(places, axis=-1).reshape(nse * count, axes + n),
        )

    return one


def _sparse_as_dense(sizes: tuple[int, ...]) -> Callable[[Array, Array], _Pair]:
    """Convert the last sparse axes, of these sizes, to dense axes."""

    def one(data: Array, indices: Array) -> _Pair:
        nse, axes = indices.shape
        n_sparse = axes - len(sizes)
        place = (arange(nse), *columns(indices)[n_sparse:])
        wide = zeros((nse, *sizes, *data.shape[1:]), data.dtype)
        return wide.at[place].set(data, mode="drop"), indices[:, :n_sparse]

    return one


def _sparse_as_batch(shape: tuple[int, ...], n: int) -> Callable[[Array, Array], _Pair]:
    """Convert the first `n` sparse axes, of this shape, to batch axes."""
    sizes, rest = shape[:n], shape[n:]

    def one(data: Array, indices: Array) -> _Pair:
        nse = indices.shape[0]
        place = (*columns(indices)[:n], arange(nse))
        outside = array(rest, dtype=indices.dtype)
        wide = zeros((*sizes, nse, *data.shape[1:]), data.dtype)
        places = broadcast_to(outside, (*sizes, nse, len(rest)))
        return (
            wide.at[place].set(data, mode="drop"),
            places.at[place].set(indices[:, n:], mode="drop"),
        )

    return one


@api_boundary
def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """Broadcast a sparse array to a shape, as `lax.broadcast_in_dim`.

    Parameters
    ----------
    {bcoo}
    {broadcast_in_dim}

    Returns
    -------
    experimental.sparse.BCOO
        Broadcast array. Axes before the sparse ones are batch axes, and along sparse axes that are
        repeated all elements of the result are stored.

    Raises
    ------
    ValueError
        If the axes do not match, or kinds of axes would be mixed.

    See Also
    --------
    lax.broadcast_in_dim : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 7]))
    >>> sparse.bcoo_broadcast_in_dim(m, shape=(2, 2), broadcast_dimensions=(1,)).todense()
    Array([[0, 7],
           [0, 7]], dtype=int32)
    """
    name = "sparse.bcoo_broadcast_in_dim"
    refuse_sharding(name, sharding)
    dimensions, sizes = [*broadcast_dimensions], tuple(shape)
    fits = len(dimensions) == mat.ndim and dimensions == sorted(set(dimensions))
    fits = fits and all(0 <= d < len(sizes) for d in dimensions)
    if not fits or any(n not in (1, sizes[d]) for n, d in zip(mat.shape, dimensions, strict=True)):
        raise ValueError(
            f"{name}: broadcast_dimensions must name an axis of the result for each axis, in "
            f"order, of the same length or for one of length 1; got {tuple(dimensions)} for shapes "
            f"{mat.shape} and {sizes}; name others"
        )
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, axes, dense = dimensions[:n], dimensions[n:end], dimensions[end:]
    new_batch = min([*axes, *dense], default=len(sizes))
    stop = min(dense, default=len(sizes))
    # Data and indices along batch axes, and data along dense axes.
    data = _expand_axes(
        mat.data,
        [*batch, new_batch, *[1 + d - (stop - new_batch) for d in dense]],
        (*sizes[:new_batch], mat.nse, *sizes[stop:]),
    )
    indices = _expand_axes(
        mat.indices,
        [*batch, new_batch, new_batch + 1],
        (*sizes[:new_batch], mat.nse, mat.n_sparse),
    )
    lead, tail = sizes[:new_batch], sizes[stop:]
    old = dict(zip(axes, range(n, end), strict=True))
    repeated = [
        d
        for d in range(new_batch, stop)
        if sizes[d] != 1 and (d not in old or mat.shape[old[d]] == 1)
    ]
    count = prod(sizes[d] for d in repeated)
    rows = (*lead, mat.nse, count)
    grid = np.indices([sizes[d] for d in repeated]).reshape(len(repeated), count)
    parts = []
    for d in range(new_batch, stop):
        column = indices[..., old[d] - n, None] if d in old else None
        if d in repeated:
            new = array(grid[repeated.index(d)], dtype=indices.dtype)
            # Elements out of bounds stay out of bounds.
            new = new if column is None else where(column == 0, new, sizes[d])
        else:
            new = zeros((1,), indices.dtype) if column is None else column
        parts.append(broadcast_to(new, rows))
    data = broadcast_to(data[(*[slice(None)] * (len(lead) + 1), None)], (*rows, *tail))
    flat = (*lead, mat.nse * count)
    places = stack(parts, axis=-1) if parts else zeros((*rows, 0), indices.dtype)
    return BCOO((data.reshape((*flat, *tail)), places.reshape((*flat, len(parts)))), shape=sizes)


def _expand_axes(x: Array, axes: Sequence[int], shape: tuple[int, ...]) -> Array:
    """Make axis i of x axis `axes[i]` of an array of this shape."""
    wide = [1] * len(shape)
    for n, d in zip(x.shape, axes, strict=True):
        wide[d] = n
    return broadcast_to(x.reshape(wide), shape)


@api_boundary
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Reverse a sparse array along axes, as `lax.rev`.

    Parameters
    ----------
    operand : BCOO
        Sparse array to reverse.
    dimensions : sequence of int
        Axes along which the order is reversed.

    Returns
    -------
    experimental.sparse.BCOO
        Reversed array.

    Raises
    ------
    ValueError
        If an axis is out of range.

    See Also
    --------
    lax.rev : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.bcoo_rev(sparse.BCOO.fromdense(jnp.array([0, 7, 8])), (0,)).todense()
    Array([8, 7, 0], dtype=int32)
    """
    mat = operand
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    axes = as_axes(tuple(dimensions), mat.ndim, "sparse.bcoo_rev")
    batch = tuple(a for a in axes if a < n)
    rest = tuple(a - mat.n_sparse + 1 for a in axes if a >= end)
    data, indices = flip(mat.data, (*batch, *rest)), flip(mat.indices, batch)
    parts = [
        where(c < mat.shape[n + i], mat.shape[n + i] - 1 - c, c) if n + i in axes else c
        for i, c in enumerate(columns(indices))
    ]
    indices = stack(parts, axis=-1) if parts else indices
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


@api_boundary
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Slice a sparse array at starts that may be traced, as `lax.dynamic_slice`.

    Parameters
    ----------
    {bcoo}
    start_indices : sequence of int or Array
        Start along each axis. A slice that is partly outside is moved inside.
    slice_sizes : sequence of int
        Length of the slice along each axis.

    Returns
    -------
    experimental.sparse.BCOO
        Slice of the array.

    Raises
    ------
    TypeError
        If the operand is not a `BCOO`.
    ValueError
        If there is not one start and one size for each axis.

    See Also
    --------
    experimental.sparse.bcoo_slice : Slice with static bounds.
    lax.dynamic_slice : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 7, 0, 8]))
    >>> sparse.bcoo_dynamic_slice(m, [2], [2]).todense()
    Array([0, 8], dtype=int32)
    """
    name = "sparse.bcoo_dynamic_slice"
    if not isinstance(mat, BCOO):
        raise TypeError(f"{name}: a BCOO array is needed; got {mat!r}; use lax.dynamic_slice")
    mat = unbatched(mat)
    sizes = [as_int(n, name, "slice_sizes") for n in slice_sizes]
    starts = [asarray(i) for i in start_indices]
    if not len(sizes) == len(starts) == mat.ndim:
        raise ValueError(
            f"{name}: a start and a size are needed for each axis; got {len(starts)} and "
            f"{len(sizes)} for {mat!r}; pass {mat.ndim} of each"
        )
    if any(not 0 <= n <= m for n, m in zip(sizes, mat.shape, strict=True)):
        raise TypeError(
            f"{name}: slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{tuple(sizes)} for operand shape {mat.shape}; pass smaller ones"
        )
    n, kind = mat.n_sparse, mat.indices.dtype
    data = mat.data
    if mat.n_dense:
        data = dynamic_slice(data, [0, *starts[n:]], [mat.nse, *sizes[n:]])
    if not n:
        return BCOO((data, mat.indices), shape=sizes)
    keep, parts = inside(mat), []
    for column, start, size, length in zip(
        columns(mat.indices), starts, sizes, mat.shape, strict=False
    ):
        start = clip(where(start < 0, start + length, start).astype(kind), 0, length - size)
        keep = keep & (column >= start) & (column < start + size)
        parts.append(column - start)
    outside = array(sizes[:n], dtype=kind)
    indices = where(keep[:, None], stack(parts, axis=-1), outside)
    data = where(expand_over_dense_axes(keep, mat), data, 0)
    out = BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices)
    most = prod(sizes[:n])
    return bcoo_sum_duplicates(out, nse=most) if out.nse > most else out


@api_boundary
def bcoo_gather(
    operand: BCOO, start_indices: Any, dimension_numbers: Any, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: Any = None,
    fill_value: Any = None,
) -> BCOO:  # fmt: skip
    """Gather slices of a sparse array, as `lax.gather` with indices that are in bounds.

    Parameters
    ----------
    operand : BCOO
        Sparse array to read.
    start_indices : array_like of int
        Starts of the slices.
    dimension_numbers : GatherDimensionNumbers
        Meaning of the axes, as for `lax.gather`.
    slice_sizes : sequence of int
        Length of each slice along each axis.
    unique_indices : bool, optional
        Whether the caller guarantees that no two slices overlap.
    indices_are_sorted : bool, optional
        Whether the caller guarantees that the starts are sorted.
    mode : GatherScatterMode, optional
        Must be the default, which promises that slices are in bounds.
    fill_value : array_like, optional
        Not used, since slices are in bounds.

    Returns
    -------
    experimental.sparse.BCOO
        Gathered slices.

    Raises
    ------
    NotImplementedError
        If there is another mode, or there are batching dimensions of the operand.

    See Also
    --------
    lax.gather : Version for dense arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> numbers = jnp.lax.GatherDimensionNumbers((), (0,), (0,))
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 7, 8]))
    >>> sparse.bcoo_gather(m, jnp.array([[2], [0]]), numbers, (1,)).todense()
    Array([8, 0], dtype=int32)
    """
    name = "sparse.bcoo_gather"
    numbers = dimension_numbers
    inside_only = mode is None or str(getattr(mode, "name", mode)).lower() == "promise_in_bounds"
    if not inside_only or getattr(numbers, "operand_batching_dims", ()):
        raise NotImplementedError(
            f"{name}: only the mode 'promise_in_bounds' without batching dimensions is supported; "
            f"got mode={mode!r}, {numbers}; use todense()"
        )
    mat = bcoo_update_layout(unbatched(operand), n_dense=0)
    starts, sizes = asarray(start_indices), tuple(slice_sizes)
    places = tuple(numbers.start_index_map)

    def one(row: Array) -> _Pair:
        full: list[Any] = [0] * mat.ndim
        for i, d in enumerate(places):
            full[d] = row[i]
        part = bcoo_dynamic_slice(mat, full, sizes)
        return part.data, part.indices

    many = starts.shape[:-1]
    count = prod(many)
    data, indices = vmap(one)(starts.reshape(count, starts.shape[-1]))
    rows = unbatched(BCOO((data, indices), shape=(count, *sizes)))
    rows = bcoo_squeeze(rows, dimensions=[1 + d for d in numbers.collapsed_slice_dims])
    rest = rows.shape[1:]
    rows = bcoo_reshape(rows, new_sizes=(*many, *rest))
    offset = list(numbers.offset_dims)
    batch = [d for d in range(rows.ndim) if d not in offset]
    order = [0] * rows.ndim
    for source, d in enumerate((*batch, *offset)):
        order[d] = source
    out = bcoo_transpose(rows, permutation=order)
    return out.with_data(out.data.astype(operand.dtype))


@api_boundary
def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = float, indices_dtype: Any = None,
    nse: float = 0.2, n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True,
    sorted_indices: bool = False, generator: Callable[..., Any] = uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """Draw a random sparse array, with the same elements as in JAX for the same key.

    Parameters
    ----------
    key : Array
        PRNG key; each call needs its own.
    shape : sequence of int
        Lengths of the axes of the array.
    dtype : dtype_like, optional
        Type of the elements. The default is the default float dtype.
    indices_dtype : dtype_like, optional
        Type of the indices. The default is the default integer dtype.
    nse : int or float, optional
        Number of elements to store, or a fraction of all. The default is 0.2.
    n_batch : int, optional
        Number of leading axes that are batches. The default is 0.
    n_dense : int, optional
        Number of trailing dense axes. The default is 0.
    unique_indices : bool, optional
        Whether each index occurs at most once. The default is True.
    sorted_indices : bool, optional
        Whether indices are in row-major order. The default is False.
    generator : callable, optional
        Function of the key, a shape and a dtype that draws the elements. The default is
        `random.uniform`.
    **kwds : object
        Further arguments of `generator`.

    Returns
    -------
    experimental.sparse.BCOO
        Random array.

    Raises
    ------
    ValueError
        If a number does not match the shape.

    See Also
    --------
    random.uniform : Dense random numbers.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.random_bcoo(jnp.random.key(0), (10, 10), nse=7)
    BCOO(float32[10, 10], nse=7)
    """
    name = "sparse.random_bcoo"
    sizes = tuple(as_int(n, name, "shape") for n in shape)
    batch, dense = as_int(n_batch, name, "n_batch"), as_int(n_dense, name, "n_dense")
    if batch < 0 or dense < 0 or batch + dense > len(sizes):
        raise ValueError(
            f"{name}: n_batch and n_dense must fit the shape; got {batch} and {dense} for {sizes}; "
            "pass numbers whose sum is at most the rank"
        )
    end = len(sizes) - dense
    axes = sizes[batch:end]
    most = prod(axes)
    if not 0 <= nse < most:
        raise ValueError(
            f"{name}: nse must be between 0 and {most}; got {nse}; pass a number of elements or a "
            "fraction of all"
        )
    count = ceil(nse * most) if 0 < nse < 1 else as_int(nse, name, "nse")
    kind = np.dtype(dtypes.default_int() if indices_dtype is None else indices_dtype)
    if most > np.iinfo(kind).max:
        raise ValueError(
            f"{name}: indices of {kind.name} do not hold {most} places; pass a wider indices_dtype"
        )

    def places(one: Any) -> Array:
        flat = choice(one, most, (count,), replace=not unique_indices).astype(kind)
        return stack(list(unravel_index(flat, axes)), axis=-1)

    keys = split(key, prod(sizes[:batch]) + 1)
    whole = (*sizes[:batch], count)
    data = generator(keys[0], shape=(*whole, *sizes[end:]), dtype=dtype, **kwds)
    indices = vmap(places)(keys[1:]) if axes else zeros((*whole, 0), kind)
    mat = BCOO((data, indices.reshape((*whole, len(axes)))), shape=sizes)
    return mat.sort_indices() if sorted_indices else mat
