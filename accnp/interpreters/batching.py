# isort: skip_file
"""`accnp.interpreters.batching`: batching rules of primitives."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.jaxprs.rules import (
        axis_primitive_batchers, bdim_at_front, broadcast, defbroadcasting, defvectorized,
        not_mapped, primitive_batchers,
    )  # fmt: skip

__all__ = [
    "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defvectorized",
    "not_mapped", "primitive_batchers",
]  # fmt: skip

_install_getattr(__name__, __all__)
