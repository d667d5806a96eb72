"""`accnp.memory`: kinds of memory. Devices of the CPU use the host's."""

import enum

from accnp.missing import nearest as _nearest

__all__ = ["Space"]


class Space(enum.Enum):
    """Where arrays live."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()


__getattr__ = _nearest(__name__, __all__)
