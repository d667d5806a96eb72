"""`minimize`: finds a minimum of a function from an initial guess."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from accnp.api.arguments.convert import as_node, wrap
from accnp.array_type import Array, ArrayLike
from accnp.errors import api_boundary
from accnp.scipy.optimize.bfgs import bfgs, lbfgs

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """Result of `minimize`.

    Fields are arrays of the shape and dtype of the initial guess, or scalars. A search that fails
    returns normally: check `success`.

    Parameters
    ----------
    x : Array
        Last point.
    success : Array
        Whether the gradient is small enough, a bool.
    status : Array
        Why the search ended; 0 for success.
    fun : Array
        Function value at the last point.
    jac : Array
        Gradient at the last point.
    hess_inv : Array or None
        Inverse of the Hessian, as BFGS estimates it.
    nfev : Array
        How many evaluations of the function there were.
    njev : Array
        How many evaluations of the gradient there were.
    nit : Array
        How many iterations there were.

    See Also
    --------
    minimize : Function that returns it.

    Examples
    --------
    >>> import accnp as jnp
    >>> result = jnp.scipy.optimize.minimize(lambda x: x @ x, jnp.ones(2), method="BFGS")
    >>> type(result).__name__, bool(result.success)
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
    fun: Callable[..., Any], x0: ArrayLike, args: tuple[Any, ...] = (), *, method: str,
    tol: float | None = None, options: Mapping[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """Minimize a scalar function of a vector, without constraints.

    Parameters
    ----------
    fun : callable
        Function fun(x, *args) that returns a scalar and is differentiable by x.
    x0 : array_like
        Initial guess, a vector of floating or complex dtype.
    args : tuple, optional
        Further arguments of the function.
    method : str
        "BFGS", or "l-bfgs-experimental-do-not-rely-on-this".
    tol : float, optional
        Accepted for compatibility with SciPy; it has no effect. The options have `gtol`.
    options : dict, optional
        Options of the method. Both methods: `maxiter`, `norm` (of the gradient), `gtol` (1e-5).
        BFGS: `line_search_maxiter` (10). L-BFGS: `maxcor` (10), `ftol`, `maxfun`, `maxgrad`,
        `maxls` (20).

    Returns
    -------
    OptimizeResults
        Last point, value and gradient there, and how the search ended.

    Raises
    ------
    TypeError
        If `args` is not a tuple, or an option is unknown.
    ValueError
        If `method` is unknown, or `x0` is not a vector.

    See Also
    --------
    OptimizeResults : The result.
    grad : Gradient of a function.

    Notes
    -----
    The search can be compiled by `jit`, mapped by `vmap`, and differentiated in forward mode.

    Examples
    --------
    >>> import accnp as jnp
    >>> result = jnp.scipy.optimize.minimize(
    ...     lambda x: ((x - 1) ** 2).sum(), jnp.zeros(2), method="BFGS")
    >>> result.x
    Array([1., 1.], dtype=float32)
    """
    name = "optimize.minimize"
    if not isinstance(args, tuple):
        raise TypeError(f"{name}: args must be a tuple; got {args!r}; write args=(a,) for one")
    solver = _METHODS.get(method.lower())
    if solver is None:
        raise ValueError(
            f"{name}: method must be one of {[*_METHODS]}; got {method!r}; pass one of these"
        )
    x = wrap(as_node(x0, name))
    if x.ndim != 1:
        raise ValueError(f"{name}: x0 must have rank 1; got shape {x.shape}; use x0.ravel()")
    return OptimizeResults(*solver(lambda v: fun(v, *args), x, **(options or {})))
