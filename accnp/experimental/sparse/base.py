"""`JAXSparse`, the base class of all sparse arrays."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from accnp.api.arguments.shapes import as_int
from accnp.array_type import Array, ArrayLike, is_traced
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.numpy.creation import asarray

__all__ = ["JAXSparse"]


class JAXSparse(abc.ABC):
    """Abstract class of sparse arrays: `data` with the stored elements, and a `shape`.

    The number of stored elements, `nse`, is static. Unused places have indices beyond the shape.
    Elements may have any dtype.

    Parameters
    ----------
    args : sequence of array_like
        Stored elements and their indices.
    shape : sequence of int
        Lengths of the axes of the dense array.
    indices_sorted : bool, optional
        Whether the indices are known to be sorted. The default is False.
    unique_indices : bool, optional
        Whether each index is known to occur once. The default is False.

    Raises
    ------
    TypeError
        If a function of dense arrays is called with a sparse array; see `sparsify`.

    See Also
    --------
    experimental.sparse.BCOO : Coordinate format.
    experimental.sparse.BCSR : Compressed row format.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import sparse
    >>> isinstance(sparse.BCOO.fromdense(jnp.eye(2)), sparse.JAXSparse)
    True
    """

    data: Array
    indices: Array
    shape: tuple[int, ...]
    indices_sorted: bool
    unique_indices: bool
    parts: ClassVar[tuple[str, ...]]  # names of the arrays, data first
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __init__(
        self, args: Sequence[Any], *, shape: Sequence[int], indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(args, tuple | list) or len(args) != len(self.parts):
            raise TypeError(
                f"sparse.{type(self).__name__}: the arrays {', '.join(self.parts)} are needed; "
                f"got {args!r}; fromdense makes them"
            )
        for name, part in zip(self.parts, args, strict=True):
            setattr(self, name, asarray(part))
        self.shape = tuple([as_int(n, f"sparse.{type(self).__name__}", "shape") for n in shape])
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        self._check()

    @abc.abstractmethod
    def _check(self) -> None:
        """Raise if the arrays and the shape do not match."""

    @staticmethod
    @abc.abstractmethod
    def _of_dense(mat: Any, **how: Any) -> Any:
        """Convert a dense array, like `bcoo_fromdense`."""

    @staticmethod
    @abc.abstractmethod
    def _of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        """Return the arrays of a SciPy matrix."""

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32,
        n_dense: int = 0, n_batch: int = 0,
    ) -> Self:  # fmt: skip
        """Make a sparse array from a dense one of the same shape and dtype.

        Parameters
        ----------
        mat : array_like
            Dense array to convert.
        nse : int, optional
            Number of elements to store. The default is to count the nonzero ones, which is not
            possible under `jit`.
        index_dtype : dtype_like, optional
            Integer type of the indices. The default is int32.
        n_dense : int, optional
            Number of trailing axes that are stored as a whole. The default is 0.
        n_batch : int, optional
            Number of leading axes that are batches. The default is 0.

        Returns
        -------
        sparse array
            Array of this class.

        Raises
        ------
        ValueError
            If `n_batch`, `n_dense` or `nse` does not match the array.

        Examples
        --------
        >>> import accnp as jnp
        >>> from accnp.experimental.sparse import BCOO
        >>> BCOO.fromdense(jnp.eye(3))
        BCOO(float32[3, 3], nse=3)
        """
        how = {"nse": nse, "n_batch": n_batch, "n_dense": n_dense, "index_dtype": index_dtype}
        return cls._of_dense(mat, **how)

    @classmethod
    @api_boundary
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> Self:
        """Make a sparse array from a SciPy sparse matrix of the same shape.

        Parameters
        ----------
        mat : scipy.sparse matrix
            Matrix to convert. Its dtype is kept, but 64-bit dtypes become 32-bit without
            `enable_x64`.
        index_dtype : dtype_like, optional
            Integer type of the indices.
        n_dense : int, optional
            Must be 0: dense axes are not supported.
        n_batch : int, optional
            Must be 0: batches are not supported.

        Returns
        -------
        sparse array
            Array of this class.

        Raises
        ------
        TypeError
            If the argument is not a SciPy sparse matrix.
        NotImplementedError
            If `n_dense` or `n_batch` is given.

        Examples
        --------
        >>> import scipy.sparse
        >>> from accnp.experimental.sparse import BCOO
        >>> BCOO.from_scipy_sparse(scipy.sparse.eye(2, dtype="float32"))
        BCOO(float32[2, 2], nse=2)
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                f"sparse.{cls.__name__}.from_scipy_sparse: matrices have neither dense axes nor "
                f"such of batches; got n_dense={n_dense}, n_batch={n_batch}; leave them"
            )
        if not hasattr(mat, "tocoo"):
            raise TypeError(
                f"sparse.{cls.__name__}.from_scipy_sparse: a sparse matrix of SciPy's is needed; "
                f"got {mat!r}; use fromdense for arrays"
            )
        return cls(cls._of_scipy(mat, index_dtype or np.int32), shape=mat.shape)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return the arrays and the static data."""
        static = self.shape, self.indices_sorted, self.unique_indices
        return tuple([getattr(self, name) for name in self.parts]), static

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Self:
        """Build an instance from children of any type."""
        out = object.__new__(cls)
        for name, child in zip(cls.parts, children, strict=True):
            setattr(out, name, child)
        out.shape, out.indices_sorted, out.unique_indices = static
        return out

    def with_data(self, data: Any) -> Self:
        """Return an array with the same indices and other data."""
        children, static = self.tree_flatten()
        return self.tree_unflatten(static, (data, *children[1:]))

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """The number of stored elements."""

    @property
    @abc.abstractmethod
    def n_batch(self) -> int:
        """The number of leading batch axes, with separate elements for each position."""

    @property
    @abc.abstractmethod
    def n_dense(self) -> int:
        """The number of trailing dense axes, along which all elements are stored."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the data."""
        return self.data.dtype

    @property
    def size(self) -> int:
        """The number of elements of the dense array."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        kind = type(self).__name__
        try:
            text = f"{kind}({self.dtype.name}{[*self.shape]}, nse={self.nse}"
            for name in ("n_batch", "n_dense"):
                if getattr(self, name):
                    text += f", {name}={getattr(self, name)}"
        except (AttributeError, TypeError):  # children that are not arrays
            return f"{kind}(<invalid>)"
        traced = type(self.data) is Array and is_traced(self.data._node)
        return f"Tracer[{text})]" if traced else f"{text})"

    @abc.abstractmethod
    def transpose(self, axes: Any = None) -> Any:
        """Return the array with permuted axes."""

    @abc.abstractmethod
    def todense(self) -> Array:
        """Return the dense array."""

    def block_until_ready(self) -> Any:
        """Wait for the arrays."""
        for child in self.tree_flatten()[0]:
            child.block_until_ready()
        return self
