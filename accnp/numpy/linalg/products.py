"""`linalg.matmul`, `outer` and `tensordot`: the signatures of the array API standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from accnp.api.arguments.convert import as_node
from accnp.array_type import Array, ArrayLike, ShardingLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary
from accnp.numpy import products

if TYPE_CHECKING:
    from accnp.lax.enumerations import PrecisionLike

__all__ = ["matmul", "outer", "tensordot"]


@api_boundary
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply matrices, or matrices and vectors.

    Parameters
    ----------
    x1 : array_like
        Matrices of shape (..., m, k), or a vector.
    x2 : array_like
        Matrices of shape (..., k, n), or a vector. Leading axes broadcast.
    {precision}
    {preferred_element_type}

    Returns
    -------
    Array
        Products of shape (..., m, n), of the promoted dtype or `preferred_element_type`.

    Raises
    ------
    ValueError
        If an operand is a number.
    TypeError
        If sizes do not fit, or an operand is a list or a string.

    See Also
    --------
    numpy.matmul : The same in the main namespace.
    multi_dot : Product of several matrices.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.matmul(jnp.eye(2), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return products.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


@api_boundary
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the outer product of two vectors.

    Parameters
    ----------
    x1 : array_like
        Vector of shape (m,).
    x2 : array_like
        Vector of shape (n,).

    Returns
    -------
    Array
        Products of each element of `x1` with each of `x2`, of shape (m, n) and the promoted dtype.

    Raises
    ------
    ValueError
        If an operand is not a vector.

    See Also
    --------
    numpy.outer : The same for any shapes, which are flattened.
    cross : Cross product.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    shapes = [as_node(x, "linalg.outer").aval.shape for x in (x1, x2)]
    if [len(s) for s in shapes] != [1, 1]:
        raise ValueError(f"linalg.outer: expected two vectors; got shapes {shapes}; use jnp.outer")
    return products.outer(x1, x2)


@api_boundary
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: SupportsIndex | Sequence[SupportsIndex] | Sequence[Sequence[SupportsIndex]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Contract axes of two arrays.

    Parameters
    ----------
    x1 : array_like
        First operand, of any shape.
    x2 : array_like
        Second operand, of any shape.
    axes : int or pair of sequences of int, optional
        How many of the last axes of `x1` to contract with the first ones of `x2`, or the axes of
        both. The default is 2.
    {precision}
    {preferred_element_type}
    {out_sharding}

    Returns
    -------
    Array
        Products with the other axes of `x1`, then those of `x2`, of the promoted dtype or
        `preferred_element_type`.

    Raises
    ------
    TypeError
        If contracted axes have different lengths, or there are too few.
    ValueError
        If lists of axes have different lengths, or an axis is out of bounds.

    See Also
    --------
    numpy.tensordot : The same in the main namespace.
    matmul : Product of matrices.
    numpy.einsum : Contractions by letters.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )  # fmt: skip
