"""What all sparse arrays have: `JAXSparse`, the class that they derive from."""

from __future__ import annotations

import abc
from math import prod
from typing import Any

import numpy as np

from accnp.array import Array, is_traced

__all__ = ["JAXSparse"]


class JAXSparse(abc.ABC):
    """A sparse array: `data` of the elements that are stored, and a `shape`.

    How many are stored (`nse`) is static; places that are not needed have indices beyond the shape.
    """

    data: Array
    shape: tuple[int, ...]
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

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
    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Take it apart: arrays, and what is static."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Any:
        """Put it together again."""

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
