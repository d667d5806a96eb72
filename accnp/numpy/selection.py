"""`where`: selection by a condition, or the indices at which the condition is true."""

from __future__ import annotations

from typing import Any, overload

from accnp.api.arguments.non_numeric import moves_elements
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.lazy_imports import imported
from accnp.numpy import ufuncs


@overload
def where(
    condition: ArrayLike,
    x: None = None,
    y: None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array: ...
@moves_elements("x", "y")
@api_boundary
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Any:
    """Choose elements from two operands by a condition, or find where it is true.

    Parameters
    ----------
    condition : array_like
        Condition that decides; elements other than zero are true.
    x : array_like, optional
        Values where the condition is true.
    y : array_like, optional
        Values where the condition is false. Give both `x` and `y`, or neither.
    {size_nonzero}
    {fill_nonzero}

    Returns
    -------
    Array or tuple of Array
        With `x` and `y`, an array with the broadcast shape of all three and the promoted dtype of
        `x` and `y`. With the condition alone, the indices of its true elements, one array of int32
        (int64 with `jax_enable_x64`) for each axis, as `nonzero` returns them.

    Raises
    ------
    TypeError
        If only one of `x` and `y` is given, or an operand is neither an array nor a number.
    ConcretizationTypeError
        If the condition is given alone under `jit`, without `size`.
    ValueError
        If `size` or `fill_value` is given with `x` and `y`.
    {raises_broadcast}

    See Also
    --------
    select : Choose from several operands by several conditions.
    nonzero : Indices of the elements that are not zero.
    lax.select : Choose without broadcasting and promotion.
    lax.cond : Choose between two functions.

    Notes
    -----
    Both `x` and `y` are computed. In gradients, a nan in the operand that is not chosen can make
    the gradient nan; replace such elements by a second `where` before the function that yields the
    nan.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.where(jnp.array([True, False]), 1, 2)
    Array([1, 2], dtype=int32, weak_type=True)
    """
    if x is None and y is None:
        taking = imported("accnp.numpy.taking")
        return taking.nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError(
            "where requires ndarray or scalar arguments, got None for one of x and y; pass both"
        )
    if size is not None or fill_value is not None:
        raise ValueError(
            "where: size and fill_value require the form where(condition); got x and y; omit them"
        )
    return ufuncs.where(condition, x, y)
