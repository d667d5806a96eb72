"""Functions that are made of others, under the switches that refuse implicit promotion."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from accnp.config import config, numpy_dtype_promotion, numpy_rank_promotion

__all__ = ["promotes_inside"]

F = TypeVar("F", bound=Callable[..., Any])


def promotes_inside(function: F) -> F:
    """Let a function promote and broadcast what it computes on its way: `numpy_dtype_promotion` and
    `numpy_rank_promotion` are about what users write."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        if config.numpy_dtype_promotion == "standard" and config.numpy_rank_promotion == "allow":
            return function(*args, **kwargs)
        with numpy_dtype_promotion("standard"), numpy_rank_promotion("allow"):
            return function(*args, **kwargs)

    return inner  # type: ignore[return-value]
