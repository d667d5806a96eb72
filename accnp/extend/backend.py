"""`accnp.extend.backend`: queries about the back ends and default devices, for libraries."""

from accnp.lib import xla_bridge as _bridge
from accnp.module_getattr import install_getattr as _install_getattr

backends = _bridge.backends
get_backend = _bridge.get_backend
get_default_device = _bridge.get_default_device

__all__ = ["backends", "get_backend", "get_default_device"]

_install_getattr(__name__, __all__)
