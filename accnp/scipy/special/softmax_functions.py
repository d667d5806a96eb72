"""`scipy.special.softmax` and `log_softmax`: those of `nn`, with all axes as the default."""

from __future__ import annotations

from collections.abc import Sequence

from accnp.api.jit.small_calls import compiled_if_small
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.nn import normalization as nn

__all__ = ["log_softmax", "softmax"]


@api_boundary
def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """Compute exp(x) over its sum along the given axes.

    Parameters
    ----------
    x : array_like
        Exponents, in an array of any shape.
    axis : int or tuple of int, optional
        Axes along which to sum. The default is all axes.

    Returns
    -------
    Array
        Positive numbers that add up to 1 along the axes, of the shape and dtype of `x`. Integers
        give float32.

    Raises
    ------
    TypeError
        If `x` is not an array or a number.
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    log_softmax : Its logarithm.
    nn.softmax : The same along the last axis by default.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.special.softmax(jnp.zeros((2, 2)))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return nn.softmax(x, axis)


@api_boundary
@compiled_if_small("x")
def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """Compute the logarithm of `softmax`.

    Parameters
    ----------
    x : array_like
        Exponents, in an array of any shape.
    axis : int or tuple of int, optional
        Axes along which to sum. The default is all axes.

    Returns
    -------
    Array
        Logarithms of the shape and dtype of `x`. Integers give float32.

    Raises
    ------
    TypeError
        If `x` is not an array or a number.
    ValueError
        If an axis is out of bounds.

    See Also
    --------
    softmax : The function itself.
    logsumexp : Logarithm of the sum of exponentials.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.scipy.special.log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return nn.log_softmax(x, axis)
