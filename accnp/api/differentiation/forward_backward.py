"""`fwd_and_bwd`: the forward and the backward pass of a function as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.values import check_callable
from accnp.api.differentiation.derivatives import vjp
from accnp.api.differentiation.linearize import checked_argnums
from accnp.api.jit.jit import jit
from accnp.errors import api_boundary

__all__ = ["fwd_and_bwd"]


@api_boundary
def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the forward and the backward pass of a function as two functions.

    Each is traced once for each signature.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays with floating or complex dtypes and any shapes.
    argnums : int or sequence of int
        Positions of the arguments to differentiate with respect to.
    {has_aux}
    jitted : bool, optional
        Whether both functions are jitted. The default is True.

    Returns
    -------
    fwd : callable
        Function of the arguments of `fun` that returns `(value, residuals)`, or `(value, aux,
        residuals)` with `has_aux`.
    bwd : callable
        Function of the residuals and a cotangent of the value that returns a tuple with a cotangent
        for each of `argnums`.

    Raises
    ------
    TypeError
        If `fun` is not callable.

    See Also
    --------
    vjp : Forward pass and backward pass at one point.

    Examples
    --------
    >>> import accnp as jnp
    >>> fwd, bwd = jnp.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> value, residuals = fwd(2.0, 3.0)
    >>> [float(ct) for ct in bwd(residuals, 1.0)]
    [3.0, 2.0]
    """
    check_callable("fwd_and_bwd", fun)
    places = checked_argnums("fwd_and_bwd", argnums)

    def fwd(*args: Any) -> Any:
        def of(*moving: Any) -> Any:
            whole = list(args)
            for i, x in zip(places, moving, strict=True):
                whole[i] = x
            return fun(*whole)

        result: Any = vjp(of, *[args[i] for i in places], has_aux=has_aux)
        if has_aux:
            value, pull, aux = result
            return value, aux, pull
        return result

    def bwd(residuals: Any, ct: Any) -> Any:
        return residuals(ct)

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
