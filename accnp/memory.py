"""`accnp.memory`: kinds of memory. Devices of the CPU use the host's."""

import enum

__all__ = ["Space"]


class Space(enum.Enum):
    """Where arrays live."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()
