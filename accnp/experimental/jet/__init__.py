# isort: skip_file
"""`accnp.experimental.jet`: Taylor series through functions."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.experimental.jet.taylor import jet

__all__ = ["jet"]

_install_getattr(__name__, __all__)
