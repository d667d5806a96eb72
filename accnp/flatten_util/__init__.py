# isort: skip_file
"""`accnp.flatten_util`: conversion of a pytree of arrays to one vector and back."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.flatten_util.raveling import ravel_pytree

__all__ = ["ravel_pytree"]

_install_getattr(__name__, __all__)
