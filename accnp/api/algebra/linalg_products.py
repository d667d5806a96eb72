"""`linalg.matmul`, `outer` and `tensordot`: those of the namespace with the array API's signatures.

In: arrays. Out: lazy Arrays.
"""

from __future__ import annotations

from typing import Any

from accnp.api.algebra import products
from accnp.api.arguments.convert import as_node
from accnp.array import Array, ArrayLike
from accnp.dtypes.names import DTypeLike
from accnp.errors import api_boundary

__all__ = ["matmul", "outer", "tensordot"]


@api_boundary
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply matrices [..., n, k] and [..., k, m]; leading axes broadcast.

    Dtype and errors are those of `matmul` of the main namespace.

    Raises:
        ValueError: an operand is a number.
        TypeError: sizes do not fit.

    >>> import accnp as jnp
    >>> jnp.linalg.matmul(jnp.eye(2), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return products.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


@api_boundary
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply each element of the vector x1 with each of the vector x2.

    Shape (n, m), in the promoted dtype.

    Raises:
        ValueError: an argument is not a vector.

    >>> import accnp as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    shapes = [as_node(x, "linalg.outer").aval.shape for x in (x1, x2)]
    if [len(s) for s in shapes] != [1, 1]:
        raise ValueError(f"linalg.outer: takes two vectors; got shapes {shapes}; use jnp.outer")
    return products.outer(x1, x2)


@api_boundary
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Contract the last `axes` axes of x1 with the first of x2, or a pair of lists of axes.

    Shape, dtype and errors are those of `tensordot` of the main namespace.

    Raises:
        TypeError: contracted axes differ, or are too few.

    >>> import accnp as jnp
    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )  # fmt: skip
