"""`accnp.interpreters.batching`: batching rules of primitives, re-exported one by one."""

from accnp.api.jaxprs.rules import (
    bdim_at_front,
    broadcast,
    defbroadcasting,
    defvectorized,
    not_mapped,
    primitive_batchers,
)
from accnp.missing import nearest as _nearest

__all__ = [
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "not_mapped",
    "primitive_batchers",
]

__getattr__ = _nearest(__name__, __all__)
