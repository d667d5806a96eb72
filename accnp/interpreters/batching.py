"""`accnp.interpreters.batching`: batching rules of primitives, re-exported one by one."""

from accnp.api.jaxprs.rules import (
    axis_primitive_batchers,
    bdim_at_front,
    broadcast,
    defbroadcasting,
    defvectorized,
    not_mapped,
    primitive_batchers,
)
from accnp.missing import nearest as _nearest

__all__ = [
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "not_mapped",
    "primitive_batchers",
]

__getattr__ = _nearest(__name__, __all__)
