"""Rarely used primitives: those that accnp implements by other ops, and those whose parameters
contain jaxprs.

They are bound by JAX's names and call functions of `lax`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.array_type import Array, wrap
from accnp.ir.equations import ClosedJaxpr
from accnp.ir.op import o
from accnp.jax_compat.jaxprs.evaluation import eval_jaxpr
from accnp.jax_compat.jaxprs.primitives import Primitive, primitive, set_primitive
from accnp.lax import elementwise as lax
from accnp.lax import user_reductions
from accnp.numpy import sorting
from accnp.numpy.composed_primitives import Composed, composed
from accnp.random import gamma_samples
from accnp.sharding import device_placement as placement

__all__ = [
    "approx_top_k_p", "device_put_p", "igamma_grad_a_p", "igamma_p", "igammac_p", "linear_solve_p",
    "random_gamma_p", "reduce_p", "reduce_precision_p", "reduce_window_p", "reduce_xor_p",
    "regularized_incomplete_beta_p", "remat_opt_p", "select_and_gather_add_p",
    "select_and_scatter_add_p", "select_and_scatter_p",
]  # fmt: skip

igamma_grad_a_p = primitive("igamma_grad_a")
igamma_p = primitive("igamma")
igammac_p = primitive("igammac")
linear_solve_p = primitive("custom_linear_solve")
regularized_incomplete_beta_p = primitive("regularized_incomplete_beta")
select_and_gather_add_p = primitive("select_and_gather_add")
select_and_scatter_add_p = primitive("select_and_scatter_add")


def _reduce_precision(x: Array, *, exponent_bits: int, mantissa_bits: int, **_: Any) -> Array:
    return lax.reduce_precision(x, exponent_bits, mantissa_bits)


def _device_put(*xs: Array, devices: Any = None, **_: Any) -> list[Array]:
    # JAX has one device for each operand; accnp's op has one operand.
    every = devices if isinstance(devices, tuple | list) else (devices,) * len(xs)
    return [placement.device_put(x, d) for x, d in zip(xs, every, strict=True)]


def _top_k(
    x: Array, *, k: int, reduction_dimension: int = -1, is_max_k: bool = True, **more: Any
) -> Any:
    results = (sorting.approx_max_k if is_max_k else sorting.approx_min_k)(
        x, k, reduction_dimension, aggregate_to_topk=more.get("aggregate_to_topk", True)
    )
    return list(results)


reduce_precision_p = set_primitive(
    composed("reduce_precision", _reduce_precision), "reduce_precision"
)
device_put_p = set_primitive(composed("device_put", _device_put, several=True), "device_put")
approx_top_k_p = composed("approx_top_k", _top_k, several=True)
reduce_xor_p = primitive("reduce_xor")


# --- programs ------------------------------------------------------------------------------------


def _function(jaxpr: Any, consts: Sequence[Any] = ()) -> Callable[..., list[Any]]:
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr, consts = jaxpr.jaxpr, jaxpr.consts
    return lambda *xs: eval_jaxpr(jaxpr, consts, *xs)


def _pairwise(jaxpr: Any, consts: Sequence[Any]) -> Callable[[Any, Any], Any]:
    run = _function(jaxpr, consts)
    return lambda xs, ys: tuple(run(*xs, *ys))


def _reduce(*xs: Array, jaxpr: Any, dimensions: Any, consts: Any = (), **_: Any) -> list[Array]:
    n = len(xs) // 2
    return list(user_reductions.reduce(xs[:n], xs[n:], _pairwise(jaxpr, consts), dimensions))


def _windows(*xs: Array, jaxpr: Any, consts: Any = (), **p: Any) -> list[Array]:
    n = len(xs) // 2
    return list(user_reductions.reduce_window(xs[:n], xs[n:], _pairwise(jaxpr, consts), **p))


reduce_p = composed("reduce", _reduce, several=True)
reduce_window_p = composed("reduce_window", _windows, several=True)

_SELECTS = {"ge": "ge", "gt": "ge", "le": "le", "lt": "le"}


def _select_and_scatter(
    operand: Array, source: Array, init: Array, *, select_jaxpr: Any, scatter_jaxpr: Any, **p: Any
) -> Array:
    """Select and scatter, for gradients of extremes: a window's extreme element gets the sum."""
    programs = [getattr(j, "jaxpr", j) for j in (select_jaxpr, scatter_jaxpr)]
    names = [[str(e.primitive) for e in j.eqns] for j in programs]
    select = _SELECTS.get(names[0][0]) if len(names[0]) == 1 else None
    if select is None or names[1] not in (["add"], ["add_any"]):
        raise NotImplementedError(
            "select_and_scatter: only comparisons as the selection and a sum as the scatter are "
            f"supported; got programs of {names[0]} and {names[1]}; "
            "use lax.reduce_window and lax.scatter_add"
        )
    rank = operand.ndim
    params = {k: tuple(p[k]) for k in ("window_dimensions", "window_strides", "padding")}
    params |= {"base_dilation": (1,) * rank, "window_dilation": (1,) * rank}
    out = o.select_and_scatter_add(source._node, operand._node, select_prim=select, **params)
    return wrap(out) + init


select_and_scatter_p = composed("select_and_scatter", _select_and_scatter)


# --- others --------------------------------------------------------------------------------------


class _RandomGamma(Primitive):
    """Gamma samples, or their logarithms, for a key and parameters."""

    def bind(self, *args: Any, **params: Any) -> Array:
        """Draw the samples."""
        key, a = args
        draw = gamma_samples.loggamma if params.get("log_space") else gamma_samples.gamma
        return draw(key, a, shape=a.shape, dtype=a.dtype)


random_gamma_p = _RandomGamma("random_gamma")


class _Optimized(Composed):
    """The rule of a `custom_vjp` with `optimize_remat`, which accnp does not have."""

    def bind(self, *args: Any, **params: Any) -> Any:
        """Raise NotImplementedError."""
        raise NotImplementedError(
            "remat_opt: custom_vjp rules are not split for rematerialization; got a call of "
            "the primitive; use jax.checkpoint"
        )


remat_opt_p = _Optimized("remat_opt", lambda *xs: list(xs))
remat_opt_p.multiple_results = True
