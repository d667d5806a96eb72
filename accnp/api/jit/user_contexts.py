"""User-defined context values on which traces of jitted functions depend."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Hashable, Iterator
from typing import Any

from accnp.config import config, scope
from accnp.errors import api_boundary
from accnp.forks import renewed

__all__ = ["UserConfig", "make_user_context"]

_numbers = itertools.count()
_setting = renewed(threading.Lock())


class UserConfig:
    """A value that holds within a `with` block; `jit` traces functions anew for each value."""

    def __init__(self, default_value: Any = None) -> None:
        self._number = next(_numbers)
        self._default = default_value

    @property
    def value(self) -> Any:
        """The current value: that of a `with` block, else the global one, else the default."""
        return dict(config.user_contexts or ()).get(self._number, self.get_global())

    def get_global(self) -> Any:
        """Return the value outside of `with` blocks, in all threads."""
        return dict(config.user_globals or ()).get(self._number, self._default)

    def set_global(self, value: Any) -> None:
        """Set the value outside of `with` blocks, in all threads.

        >>> import accnp as jnp
        >>> scale = jnp.make_user_context(1)
        >>> scale.set_global(3)
        >>> scale.value
        3
        """
        with _setting:
            values = {**dict(config.user_globals or ()), self._number: value}
            config.update("user_globals", tuple(sorted(values.items(), key=lambda pair: pair[0])))

    @contextlib.contextmanager
    def __call__(self, new_val: Any) -> Iterator[None]:
        values = {**dict(config.user_contexts or ()), self._number: new_val}
        with scope("user_contexts", tuple(sorted(values.items(), key=lambda pair: pair[0]))):
            yield


@api_boundary
def make_user_context(default_value: Hashable | None = None) -> UserConfig:
    """Make a context variable whose value is part of the key of jitted traces.

    A jitted function that reads the value is traced anew when it changes.

    Parameters
    ----------
    default_value : hashable, optional
        Value outside of all contexts. The default is None.

    Returns
    -------
    UserConfig
        Callable that returns a context manager which sets the value: `with context(value)`. Its
        attribute `value` holds the current value.

    See Also
    --------
    jit : Compile a function.

    Examples
    --------
    >>> import accnp as jnp
    >>> scale = jnp.make_user_context(1)
    >>> f = jnp.jit(lambda x: x * scale.value)
    >>> with scale(3):
    ...     print(f(2))
    6
    >>> print(f(2))
    2
    """
    return UserConfig(default_value)
