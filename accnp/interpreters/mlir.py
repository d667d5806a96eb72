# isort: skip_file
"""`accnp.interpreters.mlir`: how primitives are compiled. Lowerings are functions that are traced;
there is no MLIR."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.jax_compat.primitives.lowering_rules import lower_fun, register_lowering

__all__ = ["lower_fun", "register_lowering"]

_install_getattr(__name__, __all__)
