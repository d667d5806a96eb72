"""`BCSR`: sparse matrices by rows, as data, column indices and the start of each row.

Most operations convert them to BCOO.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.experimental.sparse.base import JAXSparse
from accnp.experimental.sparse.bcoo import (
    BCOO,
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dot_general,
    bcoo_extract,
    bcoo_fromdense,
    product,
    refuse_sharding,
    unbatched,
)
from accnp.numpy.creation import arange, asarray, zeros
from accnp.numpy.joining import stack
from accnp.numpy.taking import searchsorted
from accnp.pytree import register_pytree_node_class
from accnp.sharding.device_placement import with_out_sharding

__all__ = [
    "BCSR", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract",
    "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense",
]  # fmt: skip


@register_pytree_node_class
class BCSR(JAXSparse):
    """Sparse matrix in compressed row format: elements in the order of rows.

    Parameters
    ----------
    args : (array_like, array_like, array_like)
        Elements [nse], columns [nse], and the position where each row starts, [rows + 1]. Elements
        may be integers, floats or complex numbers.
    shape : sequence of int
        Shape of the dense matrix.
    indices_sorted : bool, optional
        Whether the columns are known to be sorted within each row. The default is False.
    unique_indices : bool, optional
        Whether each place is known to occur once. The default is False.

    Raises
    ------
    TypeError
        If `args` does not consist of three arrays.
    ValueError
        If the shapes do not match.

    See Also
    --------
    experimental.sparse.BCOO : Coordinate format.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.sparse import BCSR
    >>> m = BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.indptr
    Array([0, 1, 2], dtype=int32)
    >>> m @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    indptr: Array
    parts = ("data", "indices", "indptr")

    def _check(self) -> None:
        fits = self.data.shape == self.indices.shape and len(self.shape) == 2
        if not fits or self.data.ndim != 1 or self.indptr.shape != (self.shape[0] + 1,):
            raise ValueError(
                f"sparse.BCSR: arrays and shape do not fit; got data {self.data.shape}, indices "
                f"{self.indices.shape}, indptr {self.indptr.shape}, shape {self.shape}; data and "
                "indices are [nse], indptr is [rows + 1]"
            )

    @staticmethod
    def _of_dense(mat: Any, **how: Any) -> BCSR:
        return bcsr_fromdense(mat, **how)

    @staticmethod
    def _of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        mat = mat.tocsr()
        return mat.data, mat.indices.astype(index_dtype), mat.indptr.astype(index_dtype)

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        """The number of batch axes: 0."""
        return 0

    @property
    def n_sparse(self) -> int:
        """The number of axes with indices: 2."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense axes: 0."""
        return 0

    @classmethod
    @api_boundary
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Convert a matrix in coordinate format; shape and dtype do not change.

        Parameters
        ----------
        arr : BCOO
            Matrix to convert.

        Returns
        -------
        experimental.sparse.BCSR
            Matrix in compressed row format.

        Raises
        ------
        TypeError
            If the argument is not a `BCOO`.
        NotImplementedError
            If it has dense axes, or not exactly two sparse axes.

        Examples
        --------
        >>> import accnp as jnp
        >>> from accnp.experimental.sparse import BCOO, BCSR
        >>> BCSR.from_bcoo(BCOO.fromdense(jnp.eye(2))).indptr
        Array([0, 1, 2], dtype=int32)
        """
        if not isinstance(arr, BCOO):
            raise TypeError(
                f"sparse.BCSR.from_bcoo: a BCOO matrix is needed; got {arr!r}; "
                "make one with BCOO.fromdense"
            )
        arr = unbatched(arr)
        if arr.n_sparse != 2 or arr.n_dense:
            raise NotImplementedError(
                f"sparse.BCSR.from_bcoo: a matrix without dense axes is needed; got {arr!r}; "
                "use todense()"
            )
        arr = arr if arr.indices_sorted else arr.sort_indices()
        rows, kind = arr.indices[:, 0], arr.indices.dtype
        begin = searchsorted(rows, arange(arr.shape[0] + 1, dtype=kind)).astype(kind)
        return cls(
            (arr.data, arr.indices[:, 1], begin), shape=arr.shape, indices_sorted=True,
            unique_indices=arr.unique_indices,
        )  # fmt: skip

    @api_boundary
    def to_bcoo(self) -> BCOO:
        """Return the same matrix as BCOO."""
        place = arange(self.nse, dtype=self.indptr.dtype)
        rows = searchsorted(self.indptr, place, side="right").astype(self.indices.dtype) - 1
        return BCOO(
            (self.data, stack([rows, self.indices], axis=-1)), shape=self.shape,
            indices_sorted=self.indices_sorted, unique_indices=self.unique_indices,
        )  # fmt: skip

    @api_boundary
    def todense(self) -> Array:
        """Return the dense matrix."""
        return self.to_bcoo().todense()

    @api_boundary
    def transpose(self, axes: Any = None) -> Any:
        """Raise an error: the elements of the transpose have another order."""
        raise NotImplementedError(
            f"sparse.BCSR: the transpose is not made; got axes={axes}; use .to_bcoo().T"
        )

    @api_boundary
    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Add elements with equal indices, and remove zeros."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    @api_boundary
    def sum(self, axis: Any = None) -> Any:
        """Sum along axes to a sparse BCOO; along all axes, to a dense scalar."""
        mat: Any = self.to_bcoo()
        return mat.sum(axis)

    def __neg__(self) -> BCSR:
        return self.with_data(-self.data)

    def __pos__(self) -> BCSR:
        return self

    @api_boundary
    def __mul__(self, other: Any) -> BCSR:
        mat: Any = self.to_bcoo()
        other = other.to_bcoo() if isinstance(other, BCSR) else other
        return self.with_data((mat * other).data)

    __rmul__ = __mul__

    @api_boundary
    def __truediv__(self, other: Any) -> BCSR:
        mat: Any = self.to_bcoo()
        return self.with_data((mat / other).data)

    @api_boundary
    def __matmul__(self, other: Any) -> Any:
        return product(self.to_bcoo(), other.to_bcoo() if isinstance(other, BCSR) else other)

    @api_boundary
    def __rmatmul__(self, other: Any) -> Any:
        return product(other, self.to_bcoo())


@api_boundary
def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:  # fmt: skip
    """Make a matrix in compressed row format from the nonzero elements of a dense one.

    Parameters
    ----------
    mat : array_like
        Dense matrix to convert.
    {nse_nonzero}
    n_batch : int, optional
        Must be 0: batches are not supported.
    n_dense : int, optional
        Must be 0: dense axes are not supported.
    index_dtype : dtype_like, optional
        Integer type of the indices. The default is int32.

    Returns
    -------
    experimental.sparse.BCSR
        Sparse matrix of the same shape and dtype.

    Raises
    ------
    {raises_matrix}
    NotImplementedError
        If `n_batch` or `n_dense` is not 0.

    See Also
    --------
    experimental.sparse.bcsr_todense : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.bcsr_fromdense(jnp.eye(2)).indices
    Array([0, 1], dtype=int32)
    """
    name = "sparse.bcsr_fromdense"
    if n_batch or n_dense:
        raise NotImplementedError(
            f"{name}: only matrices with two sparse axes are; got n_batch={n_batch}, "
            f"n_dense={n_dense}; use BCOO"
        )
    x = asarray(mat)
    if x.ndim != 2:
        raise ValueError(f"{name}: a matrix is needed; got shape {x.shape}; reshape it")
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype))


@api_boundary
def bcsr_todense(mat: BCSR) -> Array:
    """Convert a matrix in compressed row format to a dense one.

    Parameters
    ----------
    mat : BCSR
        Sparse matrix to convert.

    Returns
    -------
    Array
        Dense matrix of the same shape and dtype.

    Raises
    ------
    {raises_sparse}

    See Also
    --------
    experimental.sparse.bcsr_fromdense : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.bcsr_todense(sparse.BCSR.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()


@api_boundary
@with_out_sharding
def bcsr_dot_general(
    lhs: BCSR, rhs: Any, *, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Contract a matrix in compressed row format with a dense array, as `lax.dot_general`.

    Parameters
    ----------
    lhs : BCSR
        Sparse left operand.
    rhs : array_like
        Dense right operand.
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
    {raises_sparse}
    {raises_dot}

    See Also
    --------
    experimental.sparse.bcoo_dot_general : Version for the coordinate format.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_dot_general(m, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([1., 1.], dtype=float32)
    """
    return bcoo_dot_general(
        lhs.to_bcoo(), rhs, dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@api_boundary
def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """Return the elements of a dense matrix at the positions of a sparse one.

    Parameters
    ----------
    indices : array_like of int
        Columns of the elements, of shape [nse].
    indptr : array_like of int
        Position where each row starts, of shape [rows + 1].
    mat : array_like
        Dense matrix to read.

    Returns
    -------
    Array
        Elements of the dense matrix, of shape [nse].

    Raises
    ------
    ValueError
        If the shapes do not match.

    See Also
    --------
    experimental.sparse.bcoo_extract : Version for the coordinate format.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.bcsr_extract(jnp.array([1]), jnp.array([0, 1, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([2], dtype=int32)
    """
    dense, places = asarray(mat), asarray(indices)
    rows = BCSR((zeros(places.shape, dense.dtype), places, indptr), shape=dense.shape)
    return bcoo_extract(rows.to_bcoo(), dense).data


@api_boundary
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Combine the elements of a sparse matrix at the same position by adding them.

    Parameters
    ----------
    mat : BCSR
        Sparse matrix, whose zeros are kept.
    nse : int, optional
        Static number of elements to store. The default is the number of different positions, which
        is not possible under `jit`.

    Returns
    -------
    experimental.sparse.BCSR
        Same matrix with unique positions.

    Raises
    ------
    {raises_sparse}

    See Also
    --------
    experimental.sparse.bcoo_sum_duplicates : Version for the coordinate format.

    Examples
    --------
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCSR(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 2))
    >>> sparse.bcsr_sum_duplicates(m).data
    Array([3.], dtype=float32)
    """
    return mat.sum_duplicates(nse, remove_zeros=False)


@api_boundary
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Join sparse matrices in compressed row format along an axis.

    Parameters
    ----------
    operands : sequence of BCSR
        Matrices to join.
    dimension : int
        Axis along which to join them.

    Returns
    -------
    experimental.sparse.BCSR
        Joined matrix.

    Raises
    ------
    {raises_sparse}
    ValueError
        If the axis is out of range, or the other axes differ in length.

    See Also
    --------
    experimental.sparse.bcoo_concatenate : Version for the coordinate format.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0, 7]]))
    >>> sparse.bcsr_concatenate([m, m], dimension=0).indptr
    Array([0, 1, 2], dtype=int32)
    """
    joined = bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension)
    return BCSR.from_bcoo(joined)


@api_boundary
def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """Broadcast a sparse matrix to a shape, as `lax.broadcast_in_dim`.

    Parameters
    ----------
    mat : BCSR
        Sparse matrix to repeat.
    {broadcast_in_dim}

    Returns
    -------
    experimental.sparse.BCSR
        Broadcast matrix.

    Raises
    ------
    {raises_sparse}
    ValueError
        If the axes do not match.

    See Also
    --------
    experimental.sparse.bcoo_broadcast_in_dim : Version for the coordinate format.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0, 7]]))
    >>> sparse.bcsr_broadcast_in_dim(m, shape=(2, 2), broadcast_dimensions=(0, 1)).todense()
    Array([[0, 7],
           [0, 7]], dtype=int32)
    """
    refuse_sharding("sparse.bcsr_broadcast_in_dim", sharding)
    return BCSR.from_bcoo(
        bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    )
