"""`accnp.ref`: mutable references to arrays."""

from accnp.api.arrays.refs import (
    AbstractRef,
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)  # fmt: skip
from accnp.missing import nearest as _nearest

__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set",
    "swap",
]  # fmt: skip

__getattr__ = _nearest(__name__, __all__)
