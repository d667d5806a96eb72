"""Layout changes of `BCOO`: batch, sparse and dense axes; broadcasting, reversal and dynamic
slices; random sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.shapes import as_axes, as_int
from accnp.api.mapping.vmap import vmap
from accnp.array_type import Array
from accnp.errors import api_boundary, not_one_of, warn
from accnp.experimental.sparse.bcoo import (
    BCOO,
    bcoo_sum_duplicates,
    bcoo_transpose,
    columns,
    expand_over_dense_axes,
    inside,
    refuse_sharding,
    sparse_shape,
    unbatched,
)
from accnp.experimental.sparse.bcoo_products import bcoo_reshape, bcoo_squeeze
from accnp.lax.slicing import dynamic_slice
from accnp.numpy.counting import unravel_index
from accnp.numpy.creation import arange, array, asarray, zeros
from accnp.numpy.joining import stack
from accnp.numpy.manipulation import broadcast_to
from accnp.numpy.rearranging import flip
from accnp.numpy.selection import where
from accnp.numpy.ufuncs import clip
from accnp.random.basic_samplers import choice, uniform
from accnp.random.keys import split

__all__ = [
    "CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning",
    "bcoo_broadcast_in_dim", "bcoo_dynamic_slice", "bcoo_gather", "bcoo_rev", "bcoo_update_layout",
    "random_bcoo",
]  # fmt: skip


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


def _update_layout(
    self: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:  # fmt: skip
    """Return the array with other numbers of batch and dense axes: see `bcoo_update_layout`."""
    return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


BCOO.update_layout = _update_layout  # type: ignore[attr-defined]
