"""`scipy.special.softmax` and `log_softmax`, whose default is all axes: those of `nn` otherwise.

In: arrays. Out: lazy Arrays.
"""

from __future__ import annotations

from typing import Any

from accnp.api.networks import nn
from accnp.array import Array, ArrayLike
from accnp.errors import api_boundary

__all__ = ["log_softmax", "softmax"]


@api_boundary
def softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """exp(x) over its sum along the given axes; over all elements by default.

    Shape and dtype stay; integers give float32.

    Raises:
        TypeError: no array or number is given.
        ValueError: there is no such axis.

    >>> import accnp as jnp
    >>> jnp.scipy.special.softmax(jnp.zeros((2, 2)))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return nn.softmax(x, axis)


@api_boundary
def log_softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """The logarithm of `softmax`; over all elements by default.

    Shape and dtype stay; integers give float32.

    Raises:
        TypeError: no array or number is given.
        ValueError: there is no such axis.

    >>> import accnp as jnp
    >>> jnp.scipy.special.log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return nn.log_softmax(x, axis)
