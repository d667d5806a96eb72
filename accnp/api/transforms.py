"""The transformations that users call, gathered; functions in, functions out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.custom_rules import (
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    stop_gradient,
)
from accnp.api.derivatives import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from accnp.api.jacobians import hessian, jacfwd, jacobian, jacrev
from accnp.api.vmap import vmap

__all__ = [
    "checkpoint",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "remat",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: bool = False,
) -> Callable[..., Any]:
    """Return a function with the values and derivatives of `fun`.

    Unlike jax's, it saves no memory: what the backward pass needs is kept, not computed again.
    """

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return checkpointed


remat = checkpoint
