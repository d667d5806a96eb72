# isort: skip_file
"""`accnp.extend`: primitives, jaxprs and their evaluation, for libraries that extend accnp."""

from typing import TYPE_CHECKING

from accnp.module_getattr import install_getattr as _install_getattr

if TYPE_CHECKING:  # loaded on first use, by accnp/module_getattr.py
    from accnp.extend import backend, core, linear_util, random, source_info_util

__all__ = ["backend", "core", "linear_util", "random", "source_info_util"]

_install_getattr(__name__, __all__)
