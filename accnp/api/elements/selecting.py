"""`where` in both its forms.

In: a condition, perhaps two choices. Out: an Array, or the places that hold.
"""

from __future__ import annotations

from typing import Any, overload

from accnp.api.elements import ufuncs
from accnp.array import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.forks import imported


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
@api_boundary
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """x where the condition holds, y elsewhere; with the condition alone, where it holds.

    All three broadcast, x and y promote. With the condition alone: the indices of its true
    elements, int32, an array for each axis; under jit `size` says how many, and `fill_value` what
    the rest is.

    Raises:
        ValueError: shapes do not broadcast.
        TypeError: only one of x and y was given; the condition alone is traced, without `size`.

    >>> import accnp as jnp
    >>> jnp.where(jnp.array([True, False]), 1, 2)
    Array([1, 2], dtype=int32, weak_type=True)
    """
    if x is None and y is None:
        taking = imported("accnp.api.indexes.taking")
        return taking.nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError(
            "where requires ndarray or scalar arguments, got None for one of x and y; pass both"
        )
    if size is not None or fill_value is not None:
        raise ValueError(
            "where: size and fill_value belong to the form with the condition alone; drop them"
        )
    return ufuncs.where(condition, x, y)
