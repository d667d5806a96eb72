# isort: skip_file
"""`accnp.interpreters.xla`: application of primitives, and types that are converted to arrays."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.api.arguments.convert import canonicalize_dtype_handlers
    from accnp.jax_compat.primitives.lowering_rules import apply_primitive

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]

_install_getattr(__name__, __all__)
