"""`ravel_pytree`: concatenates the leaves of a pytree to a vector, and returns the inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast
from accnp.array_type import Array, wrap
from accnp.errors import api_boundary
from accnp.ir.aval import Aval
from accnp.ir.op import o
from accnp.primitives.kinds import dtype_kind, full
from accnp.pytree import PyTree, PyTreeDef, tree_flatten

__all__ = ["ravel_pytree"]


@dataclass(frozen=True)
class Unravel:
    """Function from a vector back to the tree; equal for trees of equal structure and types.

    If all leaves have the same dtype, the result has the dtype of the vector. Otherwise the vector
    must have the promoted dtype of the leaves.
    """

    treedef: PyTreeDef
    avals: tuple[Aval, ...]
    dtype: np.dtype

    @api_boundary
    def __call__(self, vector: Any) -> Any:
        x = as_node(vector, "unravel")
        size = sum([a.size for a in self.avals])
        if x.aval.shape != (size,) and self.avals:
            raise ValueError(
                f"unravel: the leaves have {size} elements in total; got an array of shape "
                f"{x.aval.shape}; pass one of shape ({size},)"
            )
        mixed = any(a.dtype != self.dtype for a in self.avals)
        if mixed and x.aval.dtype != self.dtype:
            raise TypeError(
                f"unravel function given array of dtype {x.aval.dtype.name}, but expected dtype "
                f"{self.dtype.name}; convert it with astype"
            )
        leaves, start = [], 0
        for a in self.avals:
            part = x
            if a.size != size:
                part = o.slice(
                    x, start_indices=(start,), limit_indices=(start + a.size,), strides=None
                )
            start += a.size
            if a.shape != part.aval.shape:
                part = o.reshape(part, new_sizes=a.shape, dimensions=None)
            if mixed and a.dtype != self.dtype:
                if dtype_kind(self.dtype) == "c" and dtype_kind(a.dtype) != "c":
                    part = o.real(part)
                part = cast(part, a.dtype)
            leaves.append(wrap(part))
        return self.treedef.unflatten(leaves)


@api_boundary
def ravel_pytree(pytree: PyTree) -> tuple[Array, Unravel]:
    """Join the leaves of a pytree into one vector.

    Parameters
    ----------
    pytree : pytree of array_like
        Arrays and numbers of any shape to join.

    Returns
    -------
    vector : Array
        Elements of all leaves, one leaf after the other, in their promoted dtype. An empty pytree
        gives an empty float32 vector.
    unravel : callable
        Function from a vector of the same length to a pytree with the structure, shapes and dtypes
        of the original.

    Raises
    ------
    TypeError
        If a leaf is not an array or number.

    See Also
    --------
    tree_util.tree_flatten : List of the leaves.
    numpy.ravel : Flatten one array.

    Examples
    --------
    >>> from accnp.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"a": 1.0, "b": [2.0, 3.0]})
    >>> vector
    Array([1., 2., 3.], dtype=float32, weak_type=True)
    >>> unravel(2 * vector)["b"][1]
    Array(6., dtype=float32, weak_type=True)
    """
    leaves, treedef = tree_flatten(pytree)
    nodes = [as_node(x, "ravel_pytree") for x in leaves]
    if not nodes:
        dtype = dtypes.canonicalize_dtype(np.float64)
        return wrap(full((0,), 0, dtype)), Unravel(treedef, (), dtype)
    # As in JAX, Python numbers are not weakly typed here.
    dtype, _ = dtypes.promote(tuple([(x.aval.dtype, False) for x in nodes]))
    parts = []
    for x in nodes:
        if x.aval.dtype != dtype:
            x = cast(x, dtype)
        parts.append(
            x if x.aval.ndim == 1 else o.reshape(x, new_sizes=(x.aval.size,), dimensions=None)
        )
    vector = parts[0] if len(parts) == 1 else o.concatenate(*parts, dimension=0)
    return wrap(vector), Unravel(treedef, tuple([x.aval for x in nodes]), dtype)
