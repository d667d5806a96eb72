"""Sparse matrices in plain layouts: `COO` (rows and columns), `CSR` (by rows), `CSC` (by columns).

Most operations convert them to BCOO.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.experimental.sparse.base import JAXSparse
from accnp.experimental.sparse.bcoo import BCOO, bcoo_fromdense, product
from accnp.experimental.sparse.bcsr import BCSR
from accnp.numpy.creation import asarray
from accnp.numpy.joining import stack
from accnp.pytree import register_pytree_node_class

__all__ = [
    "COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense",
    "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense",
]  # fmt: skip


class _Matrix(JAXSparse):
    """Base class of the plain layouts: two sparse axes and no others."""

    @classmethod
    @api_boundary
    def fromdense(  # pyright: ignore
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32
    ) -> Self:
        """Store the nonzero elements of a dense matrix; see `coo_fromdense`."""
        return cls._of_dense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _of_dense(cls, mat: Any, **how: Any) -> Any:
        if (x := asarray(mat)).ndim != 2:
            raise ValueError(
                f"sparse.{cls.__name__}: a matrix is needed; got shape {x.shape}; reshape it"
            )
        return cls.of_bcoo(bcoo_fromdense(mat, **how))

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> Any:
        """Return the same matrix in this layout."""
        raise NotImplementedError

    def to_bcoo(self) -> BCOO:
        """Return the same matrix as BCOO."""
        raise NotImplementedError

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.data.size

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

    def _check(self) -> None:
        if len(self.shape) != 2 or any(getattr(self, part).ndim != 1 for part in self.parts):
            raise ValueError(
                f"sparse.{type(self).__name__}: the shape of a matrix and vectors are needed; got "
                f"shape {self.shape} and {[getattr(self, part).shape for part in self.parts]}"
            )

    @api_boundary
    def todense(self) -> Array:
        """Return the dense matrix."""
        return self.to_bcoo().todense()

    @api_boundary
    def __matmul__(self, other: Any) -> Array:
        if isinstance(other, JAXSparse):
            raise NotImplementedError(
                f"sparse.{type(self).__name__}: products of two sparse matrices are not supported; "
                f"got {other!r}; use BCOO"
            )
        other = asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(
                f"sparse.{type(self).__name__}: only vectors and matrices can be multiplied; got "
                f"shape {other.shape}; use BCOO"
            )
        return product(self.to_bcoo(), other)


@register_pytree_node_class
class COO(_Matrix):
    """Sparse matrix in coordinate format: elements, rows and columns.

    Parameters
    ----------
    args : (array_like, array_like, array_like)
        Elements, rows and columns, of shape [nse] each.
    shape : (int, int)
        Lengths of the axes of the dense matrix.
    rows_sorted : bool, optional
        Whether the elements are known to be sorted by row. The default is False.
    cols_sorted : bool, optional
        Whether the elements are known to be sorted by column. The default is False.

    Raises
    ------
    ValueError
        If an array is not a vector.

    See Also
    --------
    experimental.sparse.BCOO : Format with more operations.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.sparse import COO
    >>> m = COO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m, m.row
    (COO(float32[2, 2], nse=2), Array([0, 1], dtype=int32))
    """

    row: Array
    col: Array
    parts = ("data", "row", "col")

    def __init__(
        self, args: Sequence[Any], *, shape: Sequence[int], rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return the arrays and the static data."""
        return (self.data, self.row, self.col), (self.shape, self._rows_sorted, self._cols_sorted)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Self:
        """Build an instance from children of any type."""
        out = object.__new__(cls)
        out.data, out.row, out.col = children
        out.shape, out._rows_sorted, out._cols_sorted = static
        return out

    @staticmethod
    def _of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        mat = mat.tocoo()
        return mat.data, mat.row.astype(index_dtype), mat.col.astype(index_dtype)

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> COO:
        """Return the same matrix in this layout."""
        parts = (mat.data, mat.indices[:, 0], mat.indices[:, 1])
        return cls(parts, shape=mat.shape, rows_sorted=mat.indices_sorted)

    def to_bcoo(self) -> BCOO:
        """Return the same matrix as BCOO."""
        return BCOO(
            (self.data, stack([self.row, self.col], axis=-1)), shape=self.shape,
            indices_sorted=self._rows_sorted,
        )  # fmt: skip

    @api_boundary
    def transpose(self, axes: Any = None) -> COO:
        """Return the transpose, with the same data."""
        _no_axes("COO", axes)
        return COO(
            (self.data, self.col, self.row), shape=self.shape[::-1],
            rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted,
        )  # fmt: skip


def _no_axes(kind: str, axes: Any) -> None:
    if axes is not None:
        raise NotImplementedError(
            f"sparse.{kind}: the transpose takes no axes; got {axes}; leave them out"
        )


class _Compressed(_Matrix):
    """`CSR` and `CSC`: data and indices along lines, and the start of each line."""

    indptr: Array
    parts = ("data", "indices", "indptr")

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        super().__init__(args, shape=shape)

    def _line_by_line(self, shape: tuple[int, ...]) -> BCOO:
        return BCSR((self.data, self.indices, self.indptr), shape=shape).to_bcoo()


@register_pytree_node_class
class CSR(_Compressed):
    """Sparse matrix in compressed row format: elements, columns, and the start of each row.

    Parameters
    ----------
    args : (array_like, array_like, array_like)
        Elements [nse], columns [nse], and the position where each row starts, [rows + 1].
    shape : (int, int)
        Lengths of the axes of the dense matrix.
    indices_sorted : bool, optional
        Whether the columns are known to be sorted within each row.
    unique_indices : bool, optional
        Whether each position is known to occur once.

    Raises
    ------
    ValueError
        If an array is not a vector.

    See Also
    --------
    experimental.sparse.BCSR : Format with more operations.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.sparse import CSR
    >>> m = CSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.indptr, m @ jnp.array([1.0, 10.0])
    (Array([0, 1, 2], dtype=int32), Array([20.,  3.], dtype=float32))
    """

    @staticmethod
    def _of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        mat = mat.tocsr()
        return mat.data, mat.indices.astype(index_dtype), mat.indptr.astype(index_dtype)

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> CSR:
        """Return the same matrix in this layout."""
        rows = BCSR.from_bcoo(mat)
        return cls((rows.data, rows.indices, rows.indptr), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """Return the same matrix as BCOO."""
        return self._line_by_line(self.shape)

    @api_boundary
    def transpose(self, axes: Any = None) -> CSC:
        """Return the transpose, with the same arrays."""
        _no_axes("CSR", axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Compressed):
    """Sparse matrix in compressed column format: elements, rows, and the start of each column.

    Parameters
    ----------
    args : (array_like, array_like, array_like)
        Elements [nse], rows [nse], and the position where each column starts, [columns + 1].
    shape : (int, int)
        Lengths of the axes of the dense matrix.
    indices_sorted : bool, optional
        Whether the rows are known to be sorted within each column.
    unique_indices : bool, optional
        Whether each position is known to occur once.

    Raises
    ------
    ValueError
        If an array is not a vector.

    See Also
    --------
    experimental.sparse.BCOO : Format with more operations.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.sparse import CSC
    >>> CSC.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]])).data
    Array([3., 2.], dtype=float32)
    """

    @staticmethod
    def _of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        mat = mat.tocsc()
        return mat.data, mat.indices.astype(index_dtype), mat.indptr.astype(index_dtype)

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> CSC:
        """Return the same matrix in this layout."""
        turned = mat.transpose()
        turned.indices_sorted = False
        return CSR.of_bcoo(turned).transpose()

    def to_bcoo(self) -> BCOO:
        """Return the same matrix as BCOO."""
        return self._line_by_line(self.shape[::-1]).transpose()

    @api_boundary
    def transpose(self, axes: Any = None) -> CSR:
        """Return the transpose, with the same arrays."""
        _no_axes("CSC", axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


# --- functions of them ---------------------------------------------------------------------------


def _multiply(name: str, mat: _Matrix, other: Any, rank: int, transpose: bool) -> Array:
    x = asarray(other)
    if x.ndim != rank:
        raise ValueError(
            f"sparse.{name}: an array of rank {rank} is needed; got shape {x.shape}; reshape it"
        )
    turned = mat.transpose() if transpose else mat
    return turned @ x


@api_boundary
def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """Make a matrix in coordinate format from the nonzero elements of a dense one.

    Parameters
    ----------
    mat : array_like
        Dense matrix to convert.
    {nse_nonzero}
    index_dtype : dtype_like, optional
        Integer type of rows and columns. The default is int32.

    Returns
    -------
    experimental.sparse.COO
        Sparse matrix of the same shape and dtype.

    Raises
    ------
    {raises_matrix}

    See Also
    --------
    experimental.sparse.coo_todense : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.coo_fromdense(jnp.eye(2)).col
    Array([0, 1], dtype=int32)
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


@api_boundary
def coo_todense(mat: COO) -> Array:
    """Convert a matrix in coordinate format to a dense one.

    Parameters
    ----------
    mat : COO
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
    experimental.sparse.coo_fromdense : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.coo_todense(sparse.COO.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()


@api_boundary
def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """Multiply a matrix in coordinate format, or its transpose, by a dense vector.

    Parameters
    ----------
    mat : COO
        Sparse left operand.
    v : array_like
        Dense vector.
    transpose : bool, optional
        Whether to multiply by the transpose. The default is False.

    Returns
    -------
    Array
        Product, a dense vector.

    Raises
    ------
    {raises_dot}

    See Also
    --------
    experimental.sparse.coo_matmat : Product with a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.COO.fromdense(jnp.array([[0.0, 2.0], [0.0, 3.0]]))
    >>> sparse.coo_matvec(m, jnp.ones(2), transpose=True)
    Array([0., 5.], dtype=float32)
    """
    return _multiply("coo_matvec", mat, v, 1, transpose)


@api_boundary
def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:
    """Multiply a matrix in coordinate format, or its transpose, by a dense matrix.

    Parameters
    ----------
    mat : COO
        Sparse left operand.
    B : array_like
        Dense matrix.
    transpose : bool, optional
        Whether to multiply by the transpose. The default is False.

    Returns
    -------
    Array
        Product, a dense matrix.

    Raises
    ------
    {raises_dot}

    See Also
    --------
    experimental.sparse.coo_matvec : Product with a vector.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.coo_matmat(sparse.COO.fromdense(2 * jnp.eye(2)), jnp.ones((2, 2)))
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    return _multiply("coo_matmat", mat, B, 2, transpose)


@api_boundary
def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """Make a matrix in compressed row format from the nonzero elements of a dense one.

    Parameters
    ----------
    mat : array_like
        Dense matrix to convert.
    {nse_nonzero}
    index_dtype : dtype_like, optional
        Integer type of the indices. The default is int32.

    Returns
    -------
    experimental.sparse.CSR
        Sparse matrix of the same shape and dtype.

    Raises
    ------
    {raises_matrix}

    See Also
    --------
    experimental.sparse.csr_todense : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.csr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


@api_boundary
def csr_todense(mat: CSR) -> Array:
    """Convert a matrix in compressed row format to a dense one.

    Parameters
    ----------
    mat : CSR
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
    experimental.sparse.csr_fromdense : Inverse of this function.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.csr_todense(sparse.CSR.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()


@api_boundary
def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """Multiply a matrix in compressed row format, or its transpose, by a dense vector.

    Parameters
    ----------
    mat : CSR
        Sparse left operand.
    v : array_like
        Dense vector.
    transpose : bool, optional
        Whether to multiply by the transpose. The default is False.

    Returns
    -------
    Array
        Product, a dense vector.

    Raises
    ------
    {raises_dot}

    See Also
    --------
    experimental.sparse.csr_matmat : Product with a matrix.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.CSR.fromdense(jnp.array([[0.0, 2.0], [0.0, 3.0]]))
    >>> sparse.csr_matvec(m, jnp.ones(2), transpose=True)
    Array([0., 5.], dtype=float32)
    """
    return _multiply("csr_matvec", mat, v, 1, transpose)


@api_boundary
def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:
    """Multiply a matrix in compressed row format, or its transpose, by a dense matrix.

    Parameters
    ----------
    mat : CSR
        Sparse left operand.
    B : array_like
        Dense matrix.
    transpose : bool, optional
        Whether to multiply by the transpose. The default is False.

    Returns
    -------
    Array
        Product, a dense matrix.

    Raises
    ------
    {raises_dot}

    See Also
    --------
    experimental.sparse.csr_matvec : Product with a vector.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.csr_matmat(sparse.CSR.fromdense(2 * jnp.eye(2)), jnp.ones((2, 2)))
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    return _multiply("csr_matmat", mat, B, 2, transpose)
