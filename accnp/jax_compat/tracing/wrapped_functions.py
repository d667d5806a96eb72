"""`WrappedFun` (`jax.extend.linear_util`): a function with keyword arguments that are bound to
each call, called by `call_wrapped`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["WrappedFun", "wrap_init"]


class WrappedFun:
    """Function together with keyword arguments for each call; made by `wrap_init`.

    Parameters
    ----------
    f : callable
        Function of flat arguments.
    params : dict, optional
        Keyword arguments of each call.
    debug_info : DebugInfo, optional
        Description of the function.

    Examples
    --------
    >>> import accnp as jnp
    >>> f = jnp.extend.linear_util.wrap_init(lambda x: x + 1)
    >>> f.call_wrapped(1)
    2
    """

    __slots__ = ("debug_info", "f", "params")

    def __init__(
        self, f: Callable[..., Any], params: dict[str, Any] | None = None, debug_info: Any = None
    ) -> None:
        self.f = f
        self.params = params or {}
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.f(*args, **{**self.params, **kwargs})

    __call__ = call_wrapped

    def wrap(self, f: Callable[..., Any]) -> WrappedFun:
        """Wrap a function that takes the place of this one."""
        functools.update_wrapper(f, self, assigned=("__name__",), updated=())
        return WrappedFun(f, None, self.debug_info)

    def __repr__(self) -> str:
        return f"Wrapped function: {self.__name__}"


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """Wrap a function so that transformations of `linear_util` apply to it.

    Parameters
    ----------
    f : callable
        Function of flat arguments.
    params : dict, optional
        Keyword arguments of each call.
    debug_info : DebugInfo, optional
        Description of the function.

    Returns
    -------
    WrappedFun
        Function to be called by `call_wrapped`.

    See Also
    --------
    extend.linear_util.transformation : Make a transformation.

    Examples
    --------
    >>> from accnp.extend import linear_util as lu
    >>> lu.wrap_init(lambda x, by: x * by, {"by": 2}).call_wrapped(3)
    6
    """
    return WrappedFun(f, params, debug_info)
