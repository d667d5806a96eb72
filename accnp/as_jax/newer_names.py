"""Names that JAX has had since version 0.11 and that libraries use: `custom_remat` and `Inline`.

accnp has the namespace of `names.VERSION`; `names.NEWER` lists these names.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.convert import as_node, wrap
from accnp.api.differentiation.custom_vjp import custom_vjp
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.primitives.checkpoint import RESIDUAL
from accnp.pytree import map_arrays

__all__ = ["Inline", "custom_remat"]


class Inline(enum.Enum):
    """When calls of jitted functions are inlined. accnp always inlines them before fusion."""

    JAX_EARLY = enum.auto()
    JAX_LATE = enum.auto()
    XLA_EARLY = enum.auto()
    XLA_LATE = enum.auto()
    AUTO = enum.auto()


def custom_remat(
    f: Callable[..., Any],
    f_fwd: Callable[..., tuple[Any, Any]],
    f_rem: Callable[..., tuple[Any, Any]],
    f_bwd: Callable[[Any, Any], Sequence[Any]],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., Any]:
    """Give a function rules of its own for what is saved and recomputed within `checkpoint`.

    Elsewhere, the function is differentiated as it is.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays.
    f_fwd : callable
        Function `(policy, *args) -> (out, res)` of the forward pass, with the policy of the
        innermost `checkpoint`. `res` is saved.
    f_rem : callable
        Function `(res, *args) -> (out, res2)` of the backward pass.
    f_bwd : callable
        Function `(res2, cotangent) -> cotangents of the arguments`.
    static_argnums, static_argnames : int, str, or sequences of these, optional
        Arguments that are Python values. They have no cotangents.

    Returns
    -------
    callable
        Function with the same results as `f`.
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        state.policy_reads += 1
        if not state.policies:
            return f(*args, **kwargs)
        policy = state.policies[-1]
        fixed = {k: v for k, v in kwargs.items() if k in names}
        moving = {k: v for k, v in kwargs.items() if k not in names}
        if moving:  # by position, as the rules get them
            bound = inspect.signature(f).bind(*args, **moving)
            args, fixed = bound.args, {**bound.kwargs, **fixed}
        static = {n % len(args) for n in numbers if -len(args) <= n < len(args)}

        def whole(dynamic: Sequence[Any]) -> tuple[Any, ...]:
            rest = iter(dynamic)
            return tuple([x if i in static else next(rest) for i, x in enumerate(args)])

        @custom_vjp
        def ruled(*dynamic: Any) -> Any:
            return f(*whole(dynamic), **fixed)

        def forward(*dynamic: Any) -> tuple[Any, Any]:
            out, res = f_fwd(policy, *whole(dynamic), **fixed)
            return out, (map_arrays(_name_residual, res), dynamic)

        def backward(saved: Any, cotangent: Any) -> tuple[Any, ...]:
            res, dynamic = saved
            _, res2 = f_rem(res, *whole(dynamic), **fixed)
            cotangents = tuple(f_bwd(res2, cotangent))
            if static and len(cotangents) == len(args):
                cotangents = tuple([ct for i, ct in enumerate(cotangents) if i not in static])
            return cotangents

        ruled.defvjp(forward, backward)
        return ruled(*[x for i, x in enumerate(args) if i not in static])

    return call


def _name_residual(x: Any) -> Any:
    """Name a value so that each policy saves it."""
    return wrap(o.name(as_node(x, "custom_remat"), name=RESIDUAL))
