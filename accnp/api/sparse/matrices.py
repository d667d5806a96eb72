"""Sparse matrices in the plain layouts: `COO` (rows and columns), `CSR` (row by row), `CSC` (column
by column).

In: dense or SciPy's matrices. Out: such matrices; what is computed with them goes by way of BCOO.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from accnp.api.arrays.creation import asarray
from accnp.api.arrays.joining import stack
from accnp.api.sparse.base import JAXSparse
from accnp.api.sparse.coordinates import BCOO, bcoo_fromdense
from accnp.api.sparse.products import product
from accnp.api.sparse.rows import BCSR
from accnp.array import Array
from accnp.errors import api_boundary
from accnp.pytree import register_pytree_node_class

__all__ = [
    "COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense",
    "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense",
]  # fmt: skip


class _Matrix(JAXSparse):
    """What the plain layouts share: two sparse axes, no others."""

    @classmethod
    @api_boundary
    def fromdense(  # pyright: ignore
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32
    ) -> Self:
        """Make one of the elements of a dense matrix that are not 0; see `coo_fromdense`."""
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
        """How many elements are stored."""
        return self.data.size

    @property
    def n_batch(self) -> int:
        """Axes of batches: none."""
        return 0

    @property
    def n_sparse(self) -> int:
        """Axes that have indices: both."""
        return 2

    @property
    def n_dense(self) -> int:
        """Axes along which all elements are stored: none."""
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
    """A sparse matrix as lists of elements, rows and columns.

    Args:
        args: data, rows and columns, [nse] each.
        shape: of the dense matrix.
        rows_sorted: whether elements are known to be in the order of rows.
        cols_sorted: whether they are known to be in the order of columns.

    BCOO has more operations. A ValueError if the arrays are no vectors.

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
        """Take it apart: its arrays, and what is static."""
        return (self.data, self.row, self.col), (self.shape, self._rows_sorted, self._cols_sorted)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Self:
        """Put it together again, from whatever children."""
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
    """`CSR` and `CSC`: data and indices along lines, and where each line begins."""

    indptr: Array
    parts = ("data", "indices", "indptr")

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        super().__init__(args, shape=shape)

    def _line_by_line(self, shape: tuple[int, ...]) -> BCOO:
        return BCSR((self.data, self.indices, self.indptr), shape=shape).to_bcoo()


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix row by row: data and columns, [nse], and where each row begins, [rows + 1].

    BCSR and BCOO have more operations. A ValueError if the arrays are no vectors.

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
    """A sparse matrix column by column: data and rows, [nse], and where each column begins.

    BCOO has more operations. A ValueError if the arrays are no vectors.

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


def _times(name: str, mat: _Matrix, other: Any, rank: int, transpose: bool) -> Array:
    x = asarray(other)
    if x.ndim != rank:
        raise ValueError(
            f"sparse.{name}: an array of rank {rank} is needed; got shape {x.shape}; reshape it"
        )
    turned = mat.transpose() if transpose else mat
    return turned @ x


@api_boundary
def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """Make a COO matrix of the elements of a dense one that are not 0.

    Args:
        mat: a dense matrix.
        nse: how many to store; static. The count of them, where the matrix is known.
        index_dtype: of rows and columns.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.coo_fromdense(jnp.eye(2)).col
    Array([0, 1], dtype=int32)
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


@api_boundary
def coo_todense(mat: COO) -> Array:
    """Return the dense matrix of a COO one.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.coo_todense(sparse.COO.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()


@api_boundary
def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """Multiply a COO matrix, or its transpose, by a dense vector.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.COO.fromdense(jnp.array([[0.0, 2.0], [0.0, 3.0]]))
    >>> sparse.coo_matvec(m, jnp.ones(2), transpose=True)
    Array([0., 5.], dtype=float32)
    """
    return _times("coo_matvec", mat, v, 1, transpose)


@api_boundary
def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:
    """Multiply a COO matrix, or its transpose, by a dense matrix.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.coo_matmat(sparse.COO.fromdense(2 * jnp.eye(2)), jnp.ones((2, 2)))
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    return _times("coo_matmat", mat, B, 2, transpose)


@api_boundary
def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """Make a CSR matrix of the elements of a dense one that are not 0: see `coo_fromdense`.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.csr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


@api_boundary
def csr_todense(mat: CSR) -> Array:
    """Return the dense matrix of a CSR one.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.csr_todense(sparse.CSR.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()


@api_boundary
def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """Multiply a CSR matrix, or its transpose, by a dense vector.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> m = sparse.CSR.fromdense(jnp.array([[0.0, 2.0], [0.0, 3.0]]))
    >>> sparse.csr_matvec(m, jnp.ones(2), transpose=True)
    Array([0., 5.], dtype=float32)
    """
    return _times("csr_matvec", mat, v, 1, transpose)


@api_boundary
def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:
    """Multiply a CSR matrix, or its transpose, by a dense matrix.

    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> sparse.csr_matmat(sparse.CSR.fromdense(2 * jnp.eye(2)), jnp.ones((2, 2)))
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    return _times("csr_matmat", mat, B, 2, transpose)
