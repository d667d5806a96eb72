"""Decorators for public functions that are composed of other public functions.

The options `numpy_rank_promotion` and `numpy_dtype_promotion` apply to the operands that users
pass. These decorators disable them for the intermediate operands of the decorated function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from accnp.config import config, numpy_dtype_promotion, numpy_rank_promotion

__all__ = ["broadcasts_inside", "promotes_inside"]

F = TypeVar("F", bound=Callable[..., Any])


def broadcasts_inside(function: F) -> F:
    """Let a function combine operands of different ranks under `numpy_rank_promotion`.

    Dtypes are still checked, for functions whose operands must have one dtype.
    """

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        if config.numpy_rank_promotion == "allow":
            return function(*args, **kwargs)
        with numpy_rank_promotion("allow"):
            return function(*args, **kwargs)

    return inner  # type: ignore[return-value]


def promotes_inside(function: F) -> F:
    """Let a function promote and broadcast intermediate values under `numpy_dtype_promotion` and
    `numpy_rank_promotion`."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        if config.numpy_dtype_promotion == "standard" and config.numpy_rank_promotion == "allow":
            return function(*args, **kwargs)
        with numpy_dtype_promotion("standard"), numpy_rank_promotion("allow"):
            return function(*args, **kwargs)

    return inner  # type: ignore[return-value]
