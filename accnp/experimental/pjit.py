"""`accnp.experimental.pjit`: an earlier name of `jit` with shardings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accnp.api.compiled.jit import jit
from accnp.api.sharding.placing import with_sharding_constraint
from accnp.missing import install_getattr as _install_getattr

__all__ = ["pjit", "with_sharding_constraint"]


class UnspecifiedValue:
    """Lie as it comes."""


UNSPECIFIED = UnspecifiedValue()


def pjit(
    fun: Callable[..., Any],
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function whose arguments and results lie as asked for: `jit`.

    Args:
        fun: a function of pytrees of arrays.
        in_shardings, out_shardings, and the rest: as in `jit`.

    Errors are those of `jit`; arrays may have any shape and dtype.

    Example:
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
