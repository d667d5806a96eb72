"""`fwd_and_bwd`: the forward and the backward pass of a function, as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.values import needs_function
from accnp.api.compiled.jit import jit
from accnp.api.differentiation.derivatives import vjp
from accnp.api.differentiation.linearised import checked_argnums
from accnp.errors import api_boundary

__all__ = ["fwd_and_bwd"]


@api_boundary
def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the forward and the backward pass of a function, each traced once for a signature.

    Args:
        fun: a function of arrays and trees of these.
        argnums: the arguments with respect to which to differentiate, a number or several.
        has_aux: whether `fun` returns a pair, whose second element is handed on as it is.
        jitted: whether both are under `jit`.

    Returns:
        fwd: of the arguments; gives the value (and then the auxiliary data) and what the backward
            pass needs.
        bwd: of that and a cotangent of the value; gives a tuple of cotangents, one for each of
            `argnums`.

    Dtypes are floating or complex. A TypeError if `fun` is no function.

    Example:
        >>> import accnp as jnp
        >>> fwd, bwd = jnp.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
        >>> value, residuals = fwd(2.0, 3.0)
        >>> [float(ct) for ct in bwd(residuals, 1.0)]
        [3.0, 2.0]
    """
    needs_function("fwd_and_bwd", fun)
    places = checked_argnums("fwd_and_bwd", argnums)

    def fwd(*args: Any) -> Any:
        def of(*moving: Any) -> Any:
            whole = list(args)
            for i, x in zip(places, moving, strict=True):
                whole[i] = x
            return fun(*whole)

        found: Any = vjp(of, *[args[i] for i in places], has_aux=has_aux)
        if has_aux:
            value, pull, aux = found
            return value, aux, pull
        return found

    def bwd(residuals: Any, ct: Any) -> Any:
        return residuals(ct)

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
