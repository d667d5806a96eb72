# isort: skip_file
"""`accnp.example_libraries`: small libraries of optimizers and of network layers."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.example_libraries import optimizers, stax

__all__ = ["optimizers", "stax"]

_install_getattr(__name__, __all__)
