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
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = [
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "not_mapped",
    "primitive_batchers",
]

_install_getattr(__name__, __all__)
