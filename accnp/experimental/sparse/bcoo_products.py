"""Products and sums of sparse arrays, slices and reshapes, and the operators of `BCOO`.

The results are sparse, except where a sum over elements is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.api.arguments.convert import promote, wrap
from accnp.api.arguments.shapes import as_axis
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.experimental.sparse.bcoo import (
    BCOO,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_reduce_sum,
    inside,
    once,
    refuse_sharding,
    unbatched,
)  # fmt: skip
from accnp.experimental.sparse.bcoo import columns as columns_of
from accnp.numpy import ufuncs as uf
from accnp.numpy.creation import array, asarray, zeros
from accnp.numpy.joining import concatenate, stack
from accnp.numpy.manipulation import broadcast_to, moveaxis
from accnp.numpy.selection import where
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "added", "bcoo_concatenate", "bcoo_dot_general", "bcoo_multiply_dense", "bcoo_multiply_sparse",
    "bcoo_reshape", "bcoo_slice", "bcoo_squeeze", "product",
]  # fmt: skip


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
    columns = columns_of(mat.indices)
    data = where(inside(mat), mat.data, 0)
    terms = data.reshape((-1,) + (1,) * len(rest))
    if shared:
        terms = terms * x.at[tuple([columns[a] for a in shared])].get(mode="fill", fill_value=0)
    else:
        terms = terms * x[None]
    if preferred_element_type is not None:
        terms = terms.astype(preferred_element_type)
    if not remaining:
        return terms.sum(axis=0)
    out = zeros((*[mat.shape[a] for a in remaining], *rest), terms.dtype)
    return out.at[tuple([columns[a] for a in remaining])].add(terms, mode="drop")


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
    for column, n in zip(columns_of(mat.indices), mat.shape, strict=True):
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
        columns_of(mat.indices), start_indices, limit_indices, steps, strict=True
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


def _index_static(mat: BCOO, item: Any) -> BCOO:
    """Return mat[item] for static integers and slices with positive steps."""
    index = item if isinstance(item, tuple) else (item,)
    if Ellipsis in index:
        at = index.index(Ellipsis)
        missing = mat.ndim - len(index) + 1
        index = (*index[:at], *[slice(None)] * missing, *index[at + 1 :])
    index = (*index, *[slice(None)] * (mat.ndim - len(index)))
    starts, limits, steps, gone = [], [], [], []
    for d, (one, n) in enumerate(zip(index, mat.shape, strict=True)):
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
            gone.append(d)
        else:
            raise NotImplementedError(
                f"sparse.BCOO: an index is an integer, a slice or ...; got {one!r}; use .todense()"
            )
        starts, limits, steps = [*starts, a], [*limits, max(a, b)], [*steps, k]
    part = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=steps)
    return bcoo_squeeze(part, dimensions=gone) if gone else part


# --- operators of BCOO ---------------------------------------------------------------------------


def _reshape(self: BCOO, *shape: Any) -> BCOO:
    """Return the array with another shape of the same size."""
    new_shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    sizes = [int(n) for n in new_shape]
    known = prod(n for n in sizes if n != -1)
    return bcoo_reshape(
        self, new_sizes=[self.size // max(known, 1) if n == -1 else n for n in sizes]
    )


def _sum(self: BCOO, axis: Any = None) -> Any:
    """Sum along axes to a sparse array; along all axes, to a dense scalar."""
    axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    out = bcoo_reduce_sum(self, axes=[as_axis(a, self.ndim, "sparse.BCOO.sum") for a in axes])
    return out if out.shape else out.todense()


def _abs(self: BCOO) -> BCOO:
    mat = once(self)
    return mat.with_data(uf.abs(mat.data))


def _multiply(self: BCOO, other: Any) -> BCOO:
    several = isinstance(other, BCOO)
    return bcoo_multiply_sparse(self, other) if several else bcoo_multiply_dense(self, other)


def _divide(self: BCOO, other: Any) -> BCOO:
    if isinstance(other, BCOO):
        other = other.todense()
    x = asarray(other)
    if not x.ndim:
        return self.with_data(self.data / x)
    mat = unbatched(self)
    return mat.with_data(mat.data / bcoo_extract(mat, broadcast_to(x, mat.shape)).data)


_METHODS: dict[str, Any] = {
    "reshape": _reshape,
    "sum": _sum,
    "astype": lambda self, dtype: self.with_data(self.data.astype(dtype)),
    "__neg__": lambda self: self.with_data(-self.data),
    "__pos__": lambda self: self,
    "__abs__": _abs,
    "__mul__": _multiply,
    "__rmul__": _multiply,
    "__truediv__": _divide,
    "__add__": added,
    "__radd__": added,
    "__sub__": lambda self, other: added(self, -other),
    "__rsub__": lambda self, other: added(-self, other),
    "__matmul__": lambda self, other: product(self, other),
    "__rmatmul__": lambda self, other: product(other, self),
    "__getitem__": _index_static,
}
for _name, _function in _METHODS.items():
    setattr(BCOO, _name, _function)
