"""`accnp.memory`: kinds of memory. CPU devices use the memory of the host."""

import enum

from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["Space"]


class Space(enum.Enum):
    """Kinds of memory where arrays can be stored.

    accnp has one memory for each device, so all kinds are the same.

    Examples
    --------
    >>> import accnp as jnp
    >>> [kind.name for kind in jnp.memory.Space]
    ['Device', 'Host', 'Any']
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()


_install_getattr(__name__, __all__)
