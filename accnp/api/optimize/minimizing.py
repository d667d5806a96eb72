"""`minimize`: a function and a first guess come in, a minimum goes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from accnp.api.arguments.convert import as_node, wrap
from accnp.api.optimize.bfgs import bfgs, lbfgs
from accnp.array import Array
from accnp.errors import api_boundary

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    `x` is the last point, `fun` and `jac` are value and gradient there; `success` says whether the
    gradient is small enough, `status` why it ended (0 for success); `nfev`, `njev` and `nit` count
    evaluations, gradients and iterations. `hess_inv` is the inverse Hessian as BFGS knows it.

    Fields are arrays of the shape and dtype of the guess, or scalars. Nothing raises where the
    search fails: ask `success`.

    >>> import accnp as jnp
    >>> found = jnp.scipy.optimize.minimize(lambda x: x @ x, jnp.ones(2), method="BFGS")
    >>> type(found).__name__, bool(found.success)
    ('OptimizeResults', True)
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


_METHODS: dict[str, Callable[..., Any]] = {
    "bfgs": bfgs,
    "l-bfgs-experimental-do-not-rely-on-this": lbfgs,
}


@api_boundary
def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str,
    tol: float | None = None, options: Mapping[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """Minimise a function of many variables, without constraints.

    Args:
        fun: `fun(x, *args)` is a number, with a derivative by x.
        x0: the first guess, a vector of an inexact dtype.
        args: further arguments of the function.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this".
        tol: accepted, and without effect; the options have `gtol`.
        options: keywords of the method. Both: `maxiter`, `norm` (of the gradient), `gtol` (1e-5).
            BFGS: `line_search_maxiter` (10). L-BFGS: `maxcor` (10), `ftol`, `maxfun`, `maxgrad`,
            `maxls` (20).

    Returns:
        `OptimizeResults`. It can be jitted and batched, and has derivatives in forward mode.

    Raises:
        TypeError: `args` is no tuple, or an option is unknown.
        ValueError: an unknown method, or a guess whose rank is not 1.

    >>> import accnp as jnp
    >>> found = jnp.scipy.optimize.minimize(
    ...     lambda x: ((x - 1) ** 2).sum(), jnp.zeros(2), method="BFGS")
    >>> found.x
    Array([1., 1.], dtype=float32)
    """
    name = "optimize.minimize"
    if not isinstance(args, tuple):
        raise TypeError(f"{name}: args must be a tuple; got {args!r}; write args=(a,) for one")
    found = _METHODS.get(method.lower())
    if found is None:
        raise ValueError(
            f"{name}: method must be one of {[*_METHODS]}; got {method!r}; pass one of these"
        )
    x = wrap(as_node(x0, name))
    if x.ndim != 1:
        raise ValueError(f"{name}: x0 must have rank 1; got shape {x.shape}; use x0.ravel()")
    return OptimizeResults(*found(lambda v: fun(v, *args), x, **(options or {})))
