"""What all sparse arrays have: `JAXSparse`, the class that they derive from."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from accnp.api.arguments.shapes import as_int
from accnp.api.arrays.creation import asarray
from accnp.array import Array, is_traced
from accnp.errors import api_boundary

__all__ = ["JAXSparse"]


class JAXSparse(abc.ABC):
    """A sparse array: `data` of the elements that are stored, and a `shape`.

    How many are stored (`nse`) is static; places that are not needed have indices beyond the shape.

    Elements are of any dtype that arrays have. Functions of dense arrays raise a TypeError for it:
    see `sparsify`.

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
    parts: ClassVar[tuple[str, ...]]  # the names of its arrays, the data first
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
        """Refuse arrays and a shape that do not fit."""

    @staticmethod
    @abc.abstractmethod
    def _of_dense(mat: Any, **how: Any) -> Any:
        """Make one of a dense array: `bcoo_fromdense` and its like."""

    @staticmethod
    @abc.abstractmethod
    def _of_scipy(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        """Return the parts of a matrix of SciPy's."""

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> Self:  # fmt: skip
        """Make a sparse array of a dense one: see `bcoo_fromdense` and `bcsr_fromdense`.

        Shape and dtype stay. A ValueError if n_batch, n_dense or nse do not fit the array.

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
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> Self:
        """Make one of a sparse matrix of SciPy's; shape and dtype stay, but for 64 bits.

        Raises:
            TypeError: it is none.
            NotImplementedError: n_dense or n_batch is given.

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
        """Take it apart: its arrays, and what is static."""
        static = self.shape, self.indices_sorted, self.unique_indices
        return tuple([getattr(self, name) for name in self.parts]), static

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Self:
        """Put it together again, from whatever children."""
        out = object.__new__(cls)
        for name, child in zip(cls.parts, children, strict=True):
            setattr(out, name, child)
        out.shape, out.indices_sorted, out.unique_indices = static
        return out

    def with_data(self, data: Any) -> Self:
        """The same places with other data."""
        children, static = self.tree_flatten()
        return self.tree_unflatten(static, (data, *children[1:]))

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """How many elements are stored."""

    @property
    @abc.abstractmethod
    def n_batch(self) -> int:
        """Leading axes, each of whose places has elements of its own."""

    @property
    @abc.abstractmethod
    def n_dense(self) -> int:
        """Last axes along which all elements are stored."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the data."""
        return self.data.dtype

    @property
    def size(self) -> int:
        """How many elements the dense array has."""
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
        except (AttributeError, TypeError):  # put together from other things than arrays
            return f"{kind}(<invalid>)"
        traced = type(self.data) is Array and is_traced(self.data._node)
        return f"Tracer[{text})]" if traced else f"{text})"

    @abc.abstractmethod
    def transpose(self, axes: Any = None) -> Any:
        """Return it with other orders of axes."""

    @abc.abstractmethod
    def todense(self) -> Array:
        """Return the dense array."""

    def block_until_ready(self) -> Any:
        """Wait for the arrays."""
        for child in self.tree_flatten()[0]:
            child.block_until_ready()
        return self
