"""`accnp.experimental.pjit`: the former name of `jit` with shardings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from accnp.api.jit.jit import jit
from accnp.array_type import DeviceLike
from accnp.docstrings import filled
from accnp.module_getattr import install_getattr as _install_getattr
from accnp.pytree import PyTree
from accnp.sharding.constraints import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]


class UnspecifiedValue:
    """The sharding of an argument or result that `pjit` does not change."""

    def __repr__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = UnspecifiedValue()


@filled
def pjit(
    fun: Callable[..., Any],
    in_shardings: PyTree = UNSPECIFIED,
    out_shardings: PyTree = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: DeviceLike = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function whose arguments and results have given shardings, by `jit`.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays of any shape and dtype.
    in_shardings : sharding or pytree, optional
        Layout of the arguments, as for `jit`.
    out_shardings : sharding or pytree, optional
        Layout of the results, as for `jit`.
    {static_argnums}
    donate_argnums : int or sequence of int, optional
        Positions of arguments whose buffers may be reused for the results.
    donate_argnames : str or iterable of str, optional
        Names of arguments to donate.
    keep_unused : bool, optional
        Whether arguments that the function does not use can be donated, too.
    device : Device, optional
        Where the function runs.
    backend : str, optional
        Platform on whose first device the function runs.
    inline : bool, optional
        Has no effect; present for compatibility with JAX.
    compiler_options : dict, optional
        Options of XLA, which have no effect.

    Returns
    -------
    stages.Wrapped
        Jitted function.

    Raises
    ------
    TypeError
        If `fun` is not callable.

    See Also
    --------
    jit : The same function with all options.

    Examples
    --------
    >>> from accnp.experimental.pjit import pjit
    >>> float(pjit(lambda x: x + 1)(1.0))
    2.0
    """
    return jit(
        fun,
        in_shardings=None if in_shardings is UNSPECIFIED else in_shardings,
        out_shardings=None if out_shardings is UNSPECIFIED else out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )


_install_getattr(__name__, __all__)
