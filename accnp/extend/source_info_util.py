"""`accnp.extend.source_info_util`: which lines of a program errors show."""

from accnp.api.environment.process import register_exclusion
from accnp.module_getattr import install_getattr as _install_getattr

__all__ = ["register_exclusion"]

_install_getattr(__name__, __all__)
