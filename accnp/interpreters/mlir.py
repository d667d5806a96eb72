# isort: skip_file
"""`accnp.interpreters.mlir`: registration of lowerings for user-defined primitives.

accnp does not use MLIR. A lowering is a function that is traced.
"""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.primitives.lowering_rules import lower_fun, register_lowering

__all__ = ["lower_fun", "register_lowering"]

_install_getattr(__name__, __all__)
